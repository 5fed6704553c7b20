"""The DP-SGD loop: private gradients from a :class:`DPStep`, and a public fairness gradient beside them."""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from skfairdp._networks import _clipping, _process
from skfairdp._networks._mlp import ColumnScales, ScaledMLP, ScaledModule
from skfairdp._networks._nets import Net, input_dtype
from skfairdp._networks._parity import ParityPenalty
from skfairdp._networks._shorthands import CNN, MLP
from skfairdp._networks._wide_sums import Places
from skfairdp._typing import Array, Floats, Ints, Reals
from skfairdp._utils import progress_bar
from skfairdp.privacy import NoiseSource
from skfairdp.schema import RowStore

#: Rows that a table of counts is made of: a rate of a group of one in a hundred has a sampling error of .005 then.
MOST_COUNTED = 2**20


@dataclass(frozen=True)
class PrivateRows:
    """The private rows at their places (:class:`~._wide_sums.Places`), where the network can read them."""

    X: Any
    targets: Tensor
    present: Tensor | None
    weights: Tensor | None = None
    of_each: Tensor | None = None

    def __len__(self) -> int:
        """How many there are of what is drawn: rows, or subjects."""
        return len(self.X if self.of_each is None else self.of_each)

    @classmethod
    def laid(
        cls, X: "Tensor | RowsOnDemand", y: Tensor, groups: Tensor | None, step: _clipping.DPStep, of: Tensor | None
    ) -> "PrivateRows":
        """Lay the rows at secret places where their number is not public. ``of`` has the positions of the rows of each
        subject, (n, k), -1 where there is none: a subject has a public place, and so has each of its k rows."""
        targets = y if groups is None else torch.stack([y, groups], dim=1)
        if of is not None:
            targets = torch.cat([targets, targets.new_zeros(1, *targets.shape[1:])])  # for -1
            X = torch.cat([X, X.new_zeros(1, *X.shape[1:])]) if isinstance(X, Tensor) else X
            laid = cls(X, targets, None, None, of.to(X.device))
            return laid.one_each if of.shape[1] == 1 else laid
        places = Places(len(X)) if step.relation.number_is_public else Places.secret(len(X), step.declared_rows)
        present = None if places.present is None else places.present.to(X.device)
        if isinstance(X, RowsOnDemand):
            assert step.relation.number_is_public  # so that row i lies at place i
            return cls(X, targets, None)
        return cls(places.lay(X), places.lay(targets), present)

    def drawn(self, batch: Ints) -> "PrivateRows":
        """The rows of a batch."""
        rows = torch.from_numpy(batch).to(self.X.device)
        if self.of_each is not None:
            rows = self.of_each[rows]
            there = (rows >= 0).double()
            weights = there / there.sum(1, keepdim=True).clamp_min(1.0)
            return PrivateRows(self.X[rows], self.targets[rows], there.any(1), weights)
        return PrivateRows(self.X[rows], self.targets[rows], None if self.present is None else self.present[rows])

    @property
    def one_each(self) -> "PrivateRows":
        """One row of each subject at its place, for counts to which a subject adds one; of rows, all of them."""
        if self.of_each is None:
            return self
        first = self.of_each[:, 0]
        return replace(self._at(first), present=first >= 0)

    def counted(self, turn: int) -> "PrivateRows":
        """Those of ``one_each`` that a table of counts is made of: of very many one in so many, by public places, and
        others at each turn. A row adds no more to a table than it would if all were counted."""
        rows = self.one_each
        stride = max(-(-len(rows) // MOST_COUNTED), 1)
        return rows if stride == 1 else rows._at(torch.arange(turn % stride, len(rows), stride, device=rows.X.device))

    def _at(self, places: Tensor) -> "PrivateRows":
        X = self.X.part(places) if isinstance(self.X, RowsOnDemand) else self.X[places]
        return PrivateRows(X, self.targets[places], None if self.present is None else self.present[places])


class RowLoss(Protocol):
    """A loss of every private row that changes during the training."""

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Losses of shape (n_rows,); targets hold classes and groups."""

    def update(self, t: int, module: nn.Module, rows: PrivateRows, source: NoiseSource) -> None:
        """Called before step ``t``: the place for releases of its own."""


class TailAverage:
    """The mean of the last iterates, from step ``first`` on: ``module`` is what would be returned by now."""

    def __init__(self, module: nn.Module, steps: int, share: float) -> None:
        self._iterate, self.module = module, module
        self.first = steps - max(1, round(share * steps)) if share else steps

    @torch.no_grad()
    def add(self, t: int) -> None:
        """Let the values after step ``t`` enter the mean."""
        if t < self.first:
            return
        if t == self.first:
            self.module = deepcopy(self._iterate)
        weight = 1.0 / (t - self.first + 1)
        for kept, value in zip(self.module.parameters(), self._iterate.parameters(), strict=True):
            if value.requires_grad:
                kept.lerp_(value, weight)

    @torch.no_grad()
    def put(self) -> None:
        """Put the mean in the place of the last iterate."""
        for value, kept in zip(self._iterate.parameters(), self.module.parameters(), strict=True):
            value.copy_(kept)


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


@dataclass(frozen=True)
class Network:
    """A network that has been found fit for private training, and how it is to be trained."""

    module: nn.Module
    device: torch.device
    fused: bool | None = None
    vectorized: bool = True
    hooked: bool = False
    net: Net | Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of rows, in numpy's words."""
        return np.dtype(str(input_dtype(self.module)).removeprefix("torch."))

    @property
    def scales(self) -> ColumnScales | None:
        """The layer that scales the columns of a table, where there is one."""
        return next((layer for layer in self.module.children() if isinstance(layer, ColumnScales)), None)

    def tensor(self, X: Reals) -> Tensor:
        """Rows in the precision and at the place of the parameters; a copy, which a module may change."""
        dtype = input_dtype(self.module)
        narrow = np.float32 if dtype.is_floating_point and dtype.itemsize <= 4 else None  # else two copies are made
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is infinite, and no warning tells it
            return torch.from_numpy(np.array(X, dtype=narrow)).to(dtype=dtype, device=self.device)

    def rows(self, X: Reals | RowStore) -> "Tensor | RowsOnDemand":
        """The same of an array; of rows that are kept elsewhere, what makes such copies of those that are asked for."""
        return RowsOnDemand(X, self) if isinstance(X, RowStore) else self.tensor(X)

    def codes(self, codes: Ints) -> Tensor:
        """Codes of classes or groups, at the place of the parameters; a copy."""
        return _copied(codes).to(self.device)

    def trained(
        self,
        X: Reals | RowStore,
        y: Ints,
        step: _clipping.DPStep,
        source: NoiseSource,
        *,
        groups: Ints | None = None,
        of_each: Ints | None = None,
        loss: RowLoss | None = None,
        penalty: ParityPenalty | None = None,
        verbose: int = 0,
    ) -> nn.Module:
        """Train a copy on arrays; returned on the CPU, in evaluation mode. Only parameters and buffers leave the
        training. Dropout masks, and secret places (:class:`~._wide_sums.Places`), are drawn from torch's generators,
        seeded from ``source`` for the time of the training and put back afterwards."""
        module = deepcopy(self.module).to(self.device)
        optimizer, average = self.net.make_optimizer(module), TailAverage(module, step.steps, self.net.average_last)
        parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        row_loss: Any = loss or (_cross_entropy if groups is None else lambda said, y: _cross_entropy(said, y[:, 0]))
        how: dict[str, Any] = {"fused": self.fused, "vectorized": self.vectorized, "hooked": self.hooked}
        codes = [None if part is None else self.codes(part) for part in (groups, of_each)]
        of_step = _process.products_of_step(step.expected_batch_size, module)
        seconds = _process.seconds_of_steps(step.steps, of_step, row_by_row=True)
        with _process.own_generator(source.seed(), self.device), _process.threads_of_steps(of_step):
            rows = PrivateRows.laid(self.rows(X), self.codes(y), codes[0], step, codes[1])
            module.train()
            for t in progress_bar(range(step.steps), desc="DP-SGD", verbose=verbose, seconds=seconds):
                if loss is not None:
                    loss.update(t, average.module, rows, source)
                batch = rows.drawn(step.sample(len(rows), source))
                how |= {"present": batch.present, "weights": batch.weights}
                if penalty is not None and penalty.per_sample:  # clip(g_i + λr) needs each g_i
                    zeros = {name: torch.zeros_like(p) for name, p in parameters.items()}
                    how |= {"fused": False, "shared": zeros | penalty.gradients(module)}
                released = step.release(module, row_loss, batch.X, batch.targets, source, **how)
                if penalty is not None and not penalty.per_sample:
                    for name, gradient in penalty.gradients(module).items():
                        released[name] += gradient
                for name, parameter in parameters.items():
                    parameter.grad = released[name].to(parameter.dtype)  # rounding of what is released: post-processing
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                average.add(t)
            average.put()
        result = deepcopy(self.module)
        result.load_state_dict({name: value.cpu() for name, value in module.state_dict().items()})
        return result.eval()


class RowsOnDemand:
    """Private rows of which only those are made that a step asks for, by positions of any shape; -1 is one of zeros."""

    def __init__(self, X: RowStore, network: Network, places: Ints | None = None) -> None:
        self._X, self._network, self._places = X, network, places
        self.device = network.device

    def __len__(self) -> int:
        return len(self._X if self._places is None else self._places)

    def part(self, places: Tensor) -> "RowsOnDemand":
        """The rows at these positions alone."""
        rows = places.cpu().numpy()
        return RowsOnDemand(self._X, self._network, rows if self._places is None else self._places[rows])

    def __getitem__(self, index: slice | Tensor) -> Tensor:
        rows = index.cpu().numpy() if isinstance(index, Tensor) else index
        rows = rows if self._places is None else self._places[rows]
        if isinstance(rows, slice):
            return self._network.tensor(self._X[rows])
        made = self._network.tensor(self._X[np.maximum(rows, 0).ravel()])
        made[torch.from_numpy(rows.ravel() < 0)] = 0
        return made.reshape(*rows.shape, *made.shape[1:])


def prepare_network(
    net: Net, n_features: int, n_classes: int, *, seed: int, owner: str, scales: ColumnScales | None = None
) -> Network:
    """Build a network, or copy the given one, after every check that can be made before anything is spent.
    With ``scales`` they become its first layer."""
    if scales is not None and net.hidden is not None:
        net = replace(net, module=partial(ScaledMLP, scales))
    built = net.build(n_features, n_classes, seed)
    ours = type(built) in (MLP, CNN, ScaledMLP)
    fused = ours or check_network(built, n_features, n_classes, owner=owner)
    net.check_optimizer(built)
    if ours:
        return Network(built, net.device, net=net)
    hooked = not fused and hooks_agree(built, n_features, n_classes)
    vectorized = hooked or vectorizes(built, n_features)
    if scales is not None:
        built = ScaledModule(scales.to(input_dtype(built)), built)
    return Network(built, net.device, fused, vectorized, hooked, net)


def _copied(values: Array) -> Tensor:
    return torch.from_numpy(np.array(values))  # arrays from a memory map cannot be written to


def private_logits(module: nn.Module, X: Reals, batch: int) -> Floats:
    """Logits of private rows in calls of ``batch`` rows, see :func:`private_outputs`."""
    return _clipping.private_outputs(module, _copied(X).to(input_dtype(module)), batch).double().numpy()


@torch.no_grad()
def predict_logits(module: nn.Module, X: Reals | Tensor, batch: int = 8192) -> Floats:
    """Logits of shape (n_rows, n_classes), in batches; of a tensor as it is, which may lie on another device."""
    precision = input_dtype(module)
    parts = (X[i : i + batch] for i in range(0, max(len(X), 1), batch))
    rows = (part.cpu() if isinstance(part, Tensor) else _copied(part).to(precision) for part in parts)
    return torch.cat([module(some).double() for some in rows]).numpy()


_SIZES = (5, 3)  # two batch sizes, so that no other axis can pass for the rows in both


def check_network(module: nn.Module, n_features: int, n_classes: int, *, owner: str) -> bool:
    """Refuse a module that cannot be trained privately; say whether the fused path gives its clipped gradients. Rows
    are zeros and ones, numbers and codes, the last of zeros alone; module and generators stay as they were."""
    _process.check_module_precision(module, owner)
    _clipping.check_rows_stay_apart(module)
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError(
            f"The module of 'net' of {owner} has no trainable parameter. Set requires_grad of those to train."
        )
    with _process.own_generator(0):
        # Weights that start at zero would hide what the layers before them do.
        copy = deepcopy(module).cpu()
        with torch.no_grad():
            for p in copy.parameters():
                if p.is_floating_point():
                    p.add_(0.1 * torch.randn_like(p))
        batches = [torch.randint(0, 2, (n, n_features)).to(input_dtype(copy)) for n in _SIZES]
        for X in batches:
            X[-1] = 0  # such rows stand in the places of those that it fails on
        with _process.PrecisionWatch(f"The module of 'net' of {owner}"):
            for X in batches:
                _check_outputs(copy, X, n_classes, owner)
            _check_state(copy, batches, owner)
            _check_rows(copy, batches[0], owner)
        return _clipping.fused_layers(copy) is not None and _agrees(copy.eval(), batches, n_classes, fused=True)


def hooks_agree(module: nn.Module, n_features: int, n_classes: int) -> bool:
    """Whether opacus has a rule for all layers and its gradients, clipped and summed, are those of one row at a time.
    For a module that passed :func:`check_network`. Where it has no rule, torch.func forms the gradients."""
    with _process.own_generator(0):
        copy = deepcopy(module).cpu().eval()
        for layer in copy.modules():  # opacus listens to layers in training mode; dropout would hide what they say
            layer.training = any(p.requires_grad for p in layer.parameters(recurse=False))
        batches = [torch.randint(0, 2, (n, n_features)).to(input_dtype(copy)) for n in _SIZES]
        return _clipping.has_hooks(copy) and _agrees(copy, batches, n_classes, fused=False, hooked=True)


def vectorizes(module: nn.Module, n_features: int) -> bool:
    """Whether torch.func forms the per-sample gradients of a module that passed :func:`check_network`."""
    with _process.own_generator():
        copy = deepcopy(module).cpu().train()
        X = torch.randint(0, 2, (_SIZES[0], n_features)).to(input_dtype(copy))
        try:
            y = torch.zeros(len(X), dtype=torch.long)
            _clipping.clipped_gradient_sum(copy, _trial_loss, X, y, 1.0, fused=False)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            return False
    return True


def _check_outputs(module: nn.Module, X: Tensor, n_classes: int, owner: str) -> None:
    try:
        outputs = module.train()(X)
    except Exception as error:
        raise ValueError(
            f"The module of 'net' of {owner} fails on rows with {X.shape[1]} features "
            f"({type(error).__name__}: {error}). It must map float rows of shape "
            f"(n_rows, {X.shape[1]}) to logits of shape (n_rows, {n_classes})."
        ) from error
    shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if shape != (len(X), n_classes):
        raise ValueError(
            f"The module of 'net' of {owner} must give one logit for each of the {n_classes} classes: shape "
            f"({len(X)}, {n_classes}) for {len(X)} rows. Got {shape} instead."
        )
    if bool((outputs >= 0).all()) and torch.allclose(outputs.sum(1), torch.ones_like(outputs[:, 0])):
        raise ValueError(
            f"The module of 'net' of {owner} gives probabilities, but the loss here is cross-entropy of logits: leave "
            "out its softmax."
        )


def _check_rows(module: nn.Module, X: Tensor, owner: str) -> None:
    """No output may depend on another row: by derivative in training mode, by leaving rows out in evaluation mode."""
    probe = X.clone().requires_grad_()
    (reach,) = torch.autograd.grad(module.train()(probe)[0].square().sum(), [probe], allow_unused=True)
    apart = reach is None or not bool(reach[1:].any())
    with torch.no_grad():
        module.eval()
        apart &= torch.allclose(module(X)[:2], module(X[:2]), rtol=1e-3, atol=1e-5)
    if not apart:
        raise ValueError(
            f"In the module of 'net' of {owner} the output of one row depends on the other rows of its batch, so no "
            "per-sample gradient exists. Use operations within a row, for example GroupNorm or LayerNorm."
        )


def _check_state(module: nn.Module, batches: list[Tensor], owner: str) -> None:
    """A forward pass may change buffers (power iteration does), but not in a way that depends on the rows."""
    after = []
    for X in batches:
        copy = deepcopy(module).train()
        with torch.no_grad():
            copy(X)
        parameters = dict(copy.named_parameters())
        if any(not torch.equal(p, parameters[name]) for name, p in module.named_parameters()):
            raise ValueError(
                f"The module of 'net' of {owner} changes its own parameters in the forward pass, by private rows and "
                "without noise. Take that update out of 'forward'."
            )
        after.append(dict(copy.named_buffers()))
    for name, value in after[0].items():
        if not torch.equal(value, after[1][name]):
            raise ValueError(
                f"The buffer '{name}' of the module of 'net' of {owner} keeps something of the rows it has seen, which "
                "no noise covers. Use a layer without running statistics."
            )


def _agrees(module: nn.Module, batches: list[Tensor], n_classes: int, **how: Any) -> bool:
    """Whether a way to clipped sums agrees with one row at a time, also where rows are clipped.
    Rules layer by layer cannot see a weight used outside its layer, nor know which axis of an input counts the rows."""
    for X in batches:
        y = torch.arange(len(X)) % n_classes
        rows = _clipping.looped_gradients(module, _trial_loss, X, y)
        flat = torch.cat([gradients.flatten(1) for gradients in rows.values()], dim=1)
        norms = flat.norm(dim=1, keepdim=True)
        bound = max(float(norms.median()), 1e-6)
        expected = (flat * (bound / norms.clamp_min(1e-30)).clamp_max(1.0)).sum(0)
        try:
            total = _clipping.clipped_gradient_sum(module, _trial_loss, X, y, bound, **how)
        except (ValueError, RuntimeError, IndexError, NotImplementedError, AttributeError, KeyError):
            return False
        if set(total) != set(rows):
            return False
        found = torch.cat([total[name].flatten() for name in rows])
        if not torch.allclose(found.to(expected), expected, rtol=1e-2, atol=1e-3 * bound):
            return False
    return True


def _trial_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    if outputs.shape[1] == 1:  # of one output it is 0 everywhere, and would show nothing
        return (outputs[:, 0] - 1).square()
    return nn.functional.cross_entropy(outputs, targets, reduction="none")
