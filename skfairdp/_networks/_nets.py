"""What ``net=`` of an estimator stands for: how a network is built and trained, read from a shorthand, module or net.

Our own loops do the training of private rows. They read what a skorch net is configured with, and run nothing of it
that would publish what it measures: no callbacks, no held-out rows.
"""

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet, NeuralNetClassifier, NeuralNetRegressor
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from skfairdp._networks._process import own_generator, resolve_device
from skfairdp._networks._shorthands import CNN, MLP, ResNet, widths
from skfairdp._networks._stored import PlainNet
from skfairdp._typing import Array, Floats
from skfairdp._usefulness import larger_batches
from skfairdp._utils import invalid_parameter, warn_caller
from skfairdp.privacy import held_by

_AUTO = "'auto', "
_SHORTHANDS: dict[str, type[nn.Module]] = {"mlp": MLP, "cnn": CNN, "resnet": ResNet}
_NUMBERS: dict[str, tuple[Any, str]] = {
    "lr": (Real, "a positive, finite number"),
    "batch_size": (Integral, "a positive integer"),
    "max_epochs": (Real, "a positive, finite number"),
}
# What a skorch net can be told that our loop does not follow; all else is either read or only a matter of display.
_NEVER_RUN = ("callbacks", "train_split", "iterator_train", "dataset", "warm_start", "compile")


@dataclass(frozen=True)
class Net:
    """A network to be built, and how it is to be trained. Public."""

    module: nn.Module | Callable[..., nn.Module]
    lr: Any
    batch_size: Any
    max_epochs: Any
    optimizer: Any
    device: torch.device
    owner: str
    module_options: Mapping[str, Any] = field(default_factory=dict)
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)
    average_last: float = 0.0

    @property
    def hidden(self) -> tuple[int, ...] | None:
        """Widths of the hidden layers of our own "mlp"; None for any other network."""
        if self.module is not MLP:
            return None
        if not self.module_options.keys() <= {"hidden"}:
            MLP(1, 1, **self.module_options)  # fails, and names what it does not know
        return widths(**self.module_options)

    def settled(self, n_rows: int, max_grad_norm: float, *, lr: float = 2.0) -> "Net":
        """The net with steps, batches and passes of DP-SGD chosen where it leaves them open.
        With all three open, batches and steps are larger for many rows, and passes fewer (:func:`larger_batches`)."""
        larger = larger_batches(n_rows) if self.lr is self.batch_size is self.max_epochs is None else 1.0
        return replace(
            self,
            lr=lr * larger / max_grad_norm if self.lr is None else self.lr,
            batch_size=round(512 * larger) if self.batch_size is None else self.batch_size,
            max_epochs=20 / larger if self.max_epochs is None else self.max_epochs,
        )

    def width(self, n_features: int, n_outputs: int) -> int:
        """How many features what learns is given."""
        return max(n_features, 0 if self.hidden is not None else width_of(self.build(n_features, n_outputs, 0)))

    def reads_columns(self, n_features: int, n_classes: int) -> bool:
        """Whether it weighs all columns before anything else, so that they may be scaled for it; images are not."""
        if self.hidden is not None:
            return True
        every = self.build(n_features, n_classes, 0).modules()
        layers = [layer for layer in every if any(True for _ in layer.parameters(recurse=False))]
        if any(isinstance(layer, _ConvNd | nn.Embedding | nn.EmbeddingBag) for layer in layers):
            return False
        return bool(layers) and isinstance(layers[0], nn.Linear) and layers[0].in_features == n_features

    def build(self, n_features: int, n_classes: int, seed: int) -> nn.Module:
        """Return a module of its own, on the CPU, whose initial weights follow from ``seed``.
        torch's global generator is left as it was. A module instance keeps the weights it has."""
        if isinstance(self.module, nn.Module) and not self.module_options:
            module = deepcopy(self.module).cpu()
            module.zero_grad(set_to_none=True)
            return module
        make = type(self.module) if isinstance(self.module, nn.Module) else self.module
        known, sizes = _argument_names(make), {"n_features": n_features, "n_classes": n_classes}
        options = {name: size for name, size in sizes.items() if name in known} | dict(self.module_options)
        with own_generator(seed):
            try:
                module = make(**options)
            except Exception as error:
                raise ValueError(
                    f"The module of the 'net' parameter of {self.owner} cannot be built ({type(error).__name__}): "
                    f"{error}"
                ) from error
        if not isinstance(module, nn.Module):
            raise ValueError(
                f"The module of the 'net' parameter of {self.owner} must be a torch.nn.Module, its class, or a "
                f"callable that returns one. Got an object of type {type(module).__name__} instead."
            )
        paid = [spent.release for spent in held_by([self.module, dict(self.module_options)])]
        for part in module.modules():
            spent = getattr(part, "privacy_", None)
            if spent is not None and spent.release not in paid:
                raise ValueError(
                    f"The callable of the 'net' parameter of {self.owner} returns a network with parts that were "
                    "trained on private rows, and their epsilon would not be counted. Give the module itself, or as "
                    "an option of the net (module__body=...)."
                )
        return module.cpu()

    def make_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """Return the optimiser of the trainable parameters of a module."""
        trained = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        given = {f"optimizer__{name}": value for name, value in self.optimizer_options.items()}
        args, options = NeuralNetClassifier(module, lr=self.lr, **given).get_params_for_optimizer("optimizer", trained)
        try:
            return self.optimizer(*args, **options)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The optimizer of the 'net' parameter of {self.owner} cannot be built: {error}. Change the options "
                "optimizer__*."
            ) from error

    def check_optimizer(self, module: nn.Module) -> None:
        """Refuse an optimiser that cannot take a step from given gradients, before anything is spent."""
        closure = inspect.signature(self.make_optimizer(module).step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise ValueError(
                f"The optimizer of the 'net' parameter of {self.owner} must take its step from gradients that are "
                f"given to it. {self.optimizer.__name__} computes its own; take for example torch.optim.SGD or "
                "torch.optim.Adam."
            )


def as_net(
    net: Any,
    *,
    owner: str,
    lr: float | None = 0.01,
    batch_size: int | None = 128,
    max_epochs: float | None = 10,
    optimizer: Any = torch.optim.SGD,
    auto: bool = False,
    average_last: float | None = None,
) -> Net:
    """Read the ``net`` parameter of an estimator. With ``average_last`` its optimizer may average its last iterates."""
    usual: dict[str, Any] = {"lr": lr, "batch_size": batch_size, "max_epochs": max_epochs}
    own: dict[str, Any] = {}
    if isinstance(net, str) and net == "additive":
        net = unset_net(MLP, module__hidden=())
    if isinstance(net, NeuralNetClassifier):
        own = net.get_params(deep=False)
        _check_names(net, own, owner)
        _check_criterion(own, owner)
        _warn_of_what_is_not_run(own, owner)
        module = own["module"]
    else:
        module = _SHORTHANDS.get(net, net) if isinstance(net, str) else net
    if isinstance(module, str) or not callable(module):
        got = repr(net) if isinstance(net, str | int | float | None) else f"an object of type {type(net).__name__}"
        raise ValueError(
            f"The 'net' parameter of {owner} must be {_AUTO if auto else ''}'mlp', 'additive', 'cnn', 'resnet', a "
            f"torch.nn.Module (class or instance) or a skorch.NeuralNetClassifier. Got {got} instead."
        )
    numbers = {name: value if own.get(name) is None else own[name] for name, value in usual.items()}
    for name, value in numbers.items():
        kind, what = _NUMBERS[name]
        if value is None:  # the estimator chooses
            continue
        if not isinstance(value, kind) or isinstance(value, bool) or not 0 < float(value) < np.inf:
            raise invalid_parameter(f"net__{name}", owner, what, value)
    given = _options("optimizer__", own)
    if average_last is not None:
        average_last = given.pop("average_last", average_last)
        if not isinstance(average_last, Real) or isinstance(average_last, bool) or not 0 <= float(average_last) <= 1:
            must = "a number from 0 to 1, the share of the last iterates whose average is kept"
            raise invalid_parameter("net__optimizer__average_last", owner, must, average_last)
    return Net(
        module,
        **numbers,
        optimizer=own.get("optimizer") or optimizer,
        device=resolve_device(own.get("device") or "cpu", owner=owner),
        owner=owner,
        module_options=_options("module__", own),
        optimizer_options=given,
        average_last=float(average_last or 0.0),
    )


def input_dtype(module: nn.Module) -> torch.dtype:
    """Precision of a module's parameters, in which it expects its rows."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


class _InOwnPrecision(PlainNet, NeuralNet):
    """Rows reach the network in the precision of its parameters."""

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """Give the logits of one batch of rows."""
        rows = torch.as_tensor(x, device=self.device).to(input_dtype(self.module_))
        return super().infer(rows, **fit_params)


class FittedNet(_InOwnPrecision, NeuralNetClassifier):
    """A skorch net around a trained network."""


class FittedAmounts(_InOwnPrecision, NeuralNetRegressor):
    """The same around a network that predicts amounts."""


class ConstantModule(nn.Module):
    """The same logits for every row."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits, requires_grad=False)

    def forward(self, X: Tensor) -> Tensor:
        return self.logits.expand(X.shape[0], -1)  # len(X) would be a constant of an exported graph


class OneAnswer(ConstantModule):
    """The most frequent class for every row; how likely it is follows the scores of a network, by a small share."""

    def __init__(self, logits: Tensor, network: nn.Module, share: float) -> None:
        super().__init__(logits)
        self.network = network
        self.share = nn.Parameter(torch.tensor(share), requires_grad=False)  # saved and loaded with the rest

    def forward(self, X: Tensor) -> Tensor:
        moved = self.logits + self.share * self.network(X)
        kept = torch.isfinite(moved).all(dim=1) & (moved.argmax(dim=1) == self.logits.argmax())
        return torch.where(kept[:, None], moved, self.logits)


def constant_module(probabilities: Floats) -> nn.Module:
    """Return a network that answers every row with these probabilities of the classes."""
    return ConstantModule(torch.log(torch.as_tensor(np.asarray(probabilities), dtype=torch.float32))).eval()


def is_constant(module: nn.Module) -> bool:
    """Whether it is one of :func:`constant_module`."""
    return isinstance(module, ConstantModule)


@torch.no_grad()
def scale_last_layer(module: Any, factor: float) -> Any:
    """Multiply the logits of a sequence that ends in a linear layer; the module is changed and returned."""
    for parameter in module[-1].parameters():
        parameter.mul_(factor)
    return module


def fitted_net(net: Net, module: nn.Module, classes: Array, spent: Any) -> Any:
    """An initialised skorch net, on the CPU, that holds a trained module; without classes it predicts amounts. Our own
    "mlp" without hidden layers is kept in double precision, so that what its features add is the sum that it computes.
    Net and module carry ``spent``: they may be given as ``net`` again."""
    module = module.double() if net.hidden == () else module
    kind, more = (FittedNet, {"classes": classes}) if len(classes) else (FittedAmounts, {})
    fitted = kind(
        module.cpu(),
        criterion=nn.CrossEntropyLoss if len(classes) else nn.MSELoss,
        optimizer=net.optimizer,
        lr=net.lr,
        batch_size=net.batch_size,
        max_epochs=10 if net.max_epochs is None else int(np.ceil(net.max_epochs)),
        train_split=None,
        callbacks="disable",
        verbose=0,
        device="cpu",
        **more,
        **{f"optimizer__{name}": value for name, value in net.optimizer_options.items()},
    )
    fitted.initialize()
    fitted.module_.eval()
    for part in (fitted, *fitted.module_.modules()):  # any of them may become part of another network
        part.privacy_ = spent
    return fitted


class UnsetNet(PlainNet, NeuralNetClassifier):
    """A skorch net some settings of which are chosen by the estimator that gets it."""


def unset_net(module: Any, **settings: Any) -> NeuralNetClassifier:
    """Return a skorch net that leaves to the estimator whatever is not given here."""
    unset: dict[str, Any] = dict.fromkeys(("lr", "batch_size", "max_epochs", "optimizer", "train_split"))
    unset |= {"callbacks": "disable", "verbose": 0}
    return UnsetNet(module, criterion=nn.CrossEntropyLoss, **{**unset, **settings})


def module_of(net: Any) -> Any:
    """Return the module of a trained skorch net; a module is its own."""
    return getattr(net, "module_", net)


def width_of(module: nn.Module) -> int:
    """How many numbers the first weights that learn are given, in a module of the user's: what stands before them may
    make many of a column. 0 for our own, whose columns say it."""
    module = getattr(module, "module", module)  # behind scales
    if type(module).__module__.startswith("skfairdp."):
        return 0
    return next((w[0].numel() for w in module.parameters() if w.requires_grad and w.ndim > 1), 0)


def _argument_names(make: Any) -> set[str]:
    try:
        return set(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        return set()


def _options(prefix: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in params.items() if name.startswith(prefix)}


def _check_names(net: NeuralNetClassifier, params: Mapping[str, Any], owner: str) -> None:
    """Refuse a misspelt setting, which skorch itself would only find when it trains."""
    known = {name for kind in type(net).__mro__ for name in _argument_names(kind)}
    unknown = sorted(name for name in params if "__" not in name and name not in known and name[0] != "_")
    if unknown:
        raise ValueError(
            f"The 'net' parameter of {owner} has unknown settings {unknown}. Options of the module and the optimizer "
            "are spelt with two underscores, for example module__hidden or optimizer__momentum."
        )


def _check_criterion(params: Mapping[str, Any], owner: str) -> None:
    """Only plain cross-entropy; NLLLoss is skorch's default for it."""
    criterion = params["criterion"]
    kind = criterion if isinstance(criterion, type) else type(criterion)
    options = sorted(name for name in params if name.startswith("criterion__"))
    plain = kind in (nn.CrossEntropyLoss, nn.NLLLoss) and not options
    if plain and not isinstance(criterion, type):
        plain = criterion.weight is None and getattr(criterion, "label_smoothing", 0.0) == 0.0
    if not plain:
        got = f"{kind.__name__} with {options}" if options else kind.__name__
        raise ValueError(
            f"The criterion of the 'net' parameter of {owner} must be plain torch.nn.CrossEntropyLoss, the loss that "
            f"is trained here. Got {got} instead. Leave 'criterion' out."
        )


def _warn_of_what_is_not_run(params: Mapping[str, Any], owner: str) -> None:
    usual = NeuralNetClassifier(None).get_params(deep=False)
    named = [name for name in _NEVER_RUN if not _alike(params.get(name), usual.get(name))]
    given = [name for name, value in params.items() if value is not None]
    named += sorted(name for name in given if name.startswith(("callbacks__", "iterator_train__")))
    if named:
        warn_caller(
            f"{owner} never runs {', '.join(named)} of its 'net': what they measure or keep of private rows would be "
            "published without protection. Leave these settings out."
        )


def _alike(value: Any, usual: Any) -> bool:
    """Whether a setting says nothing beyond skorch's default: that default (or a copy of it), or that it is off."""
    if value is None or value is usual or (isinstance(value, str | list | tuple) and value in ("disable", [], ())):
        return True
    return type(value) is type(usual) and getattr(value, "__dict__", value) == getattr(usual, "__dict__", usual)
