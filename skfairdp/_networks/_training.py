"""The DP-SGD loop: private gradients from a :class:`DPStep`, and a public fairness gradient beside them."""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._clipping import PerSampleLoss
from skfairdp._networks._cnn import build_cnn
from skfairdp._networks._dp_step import DPStep
from skfairdp._networks._nets import Net
from skfairdp._networks._parity import PublicPenalty
from skfairdp._networks._places import Places
from skfairdp._networks._row_isolation import check_network, input_dtype, vectorizes
from skfairdp._networks._shorthands import CNN, MLP
from skfairdp._networks._signed_loss import DualPlan, PrivateParity
from skfairdp._networks._stacked import resolve_device
from skfairdp.privacy import NoiseSource
from skfairdp.utils import progress_bar

__all__ = ["Network", "build_mlp", "predict_logits", "prepare_network", "train_privately"]

Array = NDArray[np.floating[Any]]


def build_mlp(n_features: int, hidden: tuple[int, ...], n_classes: int, generator: torch.Generator) -> nn.Module:
    """A plain network with tanh units (bounded activations lose least to clipping), initialised from ``generator``."""
    layers: list[nn.Module] = []
    sizes = (n_features, *hidden)
    # A plain nn.Linear() would draw weights of its own from the global generator.
    for size_in, size_out in pairwise(sizes):
        layers += [nn.utils.skip_init(nn.Linear, size_in, size_out), nn.Tanh()]
    layers.append(nn.utils.skip_init(nn.Linear, sizes[-1], n_classes))
    module = nn.Sequential(*layers)
    with torch.no_grad():
        for layer in module:
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                layer.weight.copy_((torch.rand(layer.weight.shape, generator=generator) * 2 - 1) * bound)
                layer.bias.zero_()
        # start from equal logits: the first noisy steps then set the direction, not an accident of initialisation
        assert isinstance(layers[-1], nn.Linear)
        layers[-1].weight.zero_()
    return module


def train_privately(
    module: nn.Module,
    X: Tensor,
    y: Tensor,
    step: DPStep,
    source: NoiseSource,
    *,
    lr: float,
    momentum: float = 0.0,
    penalty: PublicPenalty | None = None,
    penalty_inside: bool = False,
    parity: PrivateParity | None = None,
    groups: Tensor | None = None,
    average_last: float = 0.0,
    fused: bool | None = None,
    vectorized: bool = True,
    verbose: int = 0,
) -> None:
    """Train ``module`` in place; nothing about the private rows is recorded.

    Dropout masks, and the secret places of rows where these may come and go (:class:`~._places.Places`), are drawn from
    torch's global generators, seeded from ``source`` for the time of the training and put back afterwards.

    Parameters
    ----------
    module : nn.Module
        Maps rows to logits.
    X, y : Tensor
        Private rows and class codes.
    step : DPStep
    source : NoiseSource
    lr : float
        Step size of plain SGD (post-processing of the released gradients).
    momentum : float, default=0.0
    penalty : PublicPenalty or None
        Its gradient is computed apart, on public rows, unclipped and without noise.
    penalty_inside : bool, default=False
        Add the penalty to every per-sample loss instead, inside the clipping (Algorithm 6 as printed).
    parity : PrivateParity or None
        Train the signed loss of private groups instead of cross-entropy alone, with its own noisy releases.
    groups : Tensor or None
        Private group codes, where the step reads them (:class:`FairClippingStep`).
    average_last : float, default=0.0
        Share of the last iterates whose average is returned (post-processing).
    fused : bool or None, default=None
    vectorized : bool, default=True
        See :func:`clipped_gradient_sum`.
    verbose : int, default=0
    """
    devices = [X.device] if X.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(source.seed())
        places = Places(len(X)) if step.relation.number_is_public else Places.secret(len(X), step.declared_rows)
        X, y = places.lay(X), places.lay(y)
        groups = None if groups is None else places.lay(groups)
        parity = None if parity is None else replace(parity, groups=places.lay(parity.groups))
        present = None if places.present is None else places.present.to(X.device)
        how = {"fused": fused, "vectorized": vectorized}
        fairness = (penalty, penalty_inside, parity, groups)
        _train(module, X, y, present, step, source, lr, momentum, *fairness, average_last, how, verbose)


def _train(
    module: nn.Module,
    X: Tensor,
    y: Tensor,
    present: Tensor | None,
    step: DPStep,
    source: NoiseSource,
    lr: float,
    momentum: float,
    penalty: PublicPenalty | None,
    penalty_inside: bool,
    parity: PrivateParity | None,
    groups: Tensor | None,
    average_last: float,
    how: dict[str, Any],
    verbose: int,
) -> None:
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    optimizer = torch.optim.SGD(parameters.values(), lr=lr, momentum=momentum)
    first_averaged = step.steps - max(1, round(average_last * step.steps)) if average_last else step.steps
    mean: dict[str, Tensor] = {}
    loss: PerSampleLoss = _cross_entropy
    signed, targets, releases = None, y, frozenset[int]()
    if groups is not None:
        loss, targets = _cross_entropy_of_first, torch.stack([y, groups], dim=1)
    if parity is not None:
        loss = signed = parity.loss()
        targets = torch.stack([y, parity.groups], dim=1)
        releases = parity.plan.times(step.steps)
    inside = {**how, "fused": False}  # clip(g_i + λr) needs each g_i
    module.train()
    for t in progress_bar(range(step.steps), desc="DP-SGD", verbose=verbose):
        if signed is not None and parity is not None and t in releases:
            signed.update(parity.plan.release(module, X, parity.groups, parity.n_groups, source, present=present))
        rows = torch.from_numpy(step.sample(len(X), source)).to(X.device)
        here = None if present is None else present[rows]
        if penalty is not None and penalty_inside:
            shared = {name: torch.zeros_like(p) for name, p in parameters.items()} | penalty.gradients(module)
            released = step.release(module, loss, X[rows], targets[rows], source, **inside, shared=shared, present=here)
        else:
            released = step.release(module, loss, X[rows], targets[rows], source, **how, present=here)
            if penalty is not None:
                for name, gradient in penalty.gradients(module).items():
                    released[name] += gradient
        for name, parameter in parameters.items():
            parameter.grad = released[name].to(parameter.dtype)  # rounding of what is released: post-processing
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if t >= first_averaged:
            weight = 1.0 / (t - first_averaged + 1)
            for name, parameter in parameters.items():
                value = parameter.detach()
                mean[name] = value.clone() if name not in mean else mean[name].lerp_(value, weight)
    with torch.no_grad():
        for name, value in mean.items():
            parameters[name].copy_(value)
    module.eval()


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def _cross_entropy_of_first(outputs: Tensor, targets: Tensor) -> Tensor:
    return _cross_entropy(outputs, targets[:, 0])


@dataclass(frozen=True)
class Network:
    """A network that has been found fit for private training, and how it is to be trained.

    Parameters
    ----------
    module : nn.Module
        Untrained; nobody else holds it.
    device : torch.device
    fused : bool or None
    vectorized : bool
        See :func:`clipped_gradient_sum`.
    """

    module: nn.Module
    device: torch.device
    fused: bool | None = None
    vectorized: bool = True

    def tensor(self, X: Array) -> Tensor:
        """Rows in the precision and at the place of the parameters; a copy, which a module may change."""
        return _copied(X).to(dtype=input_dtype(self.module), device=self.device)

    def penalty(
        self,
        X: Array,
        groups: NDArray[np.int64],
        n_groups: int,
        *,
        lam: float,
        temperature: float,
        maximum: str,
        batch_size: int | None,
        seed: int,
    ) -> PublicPenalty:
        """The parity term on public arrays, where the network can read them."""
        codes = _copied(groups).to(self.device)
        return PublicPenalty(lam, self.tensor(X), codes, n_groups, temperature, maximum, batch_size, seed)

    def parity(
        self, groups: NDArray[np.int64], n_groups: int, n_classes: int, *, plan: DualPlan, lam: float, rate: float
    ) -> PrivateParity:
        """The signed loss of private groups, where the network can read them."""
        return PrivateParity(plan, _copied(groups).to(self.device), n_groups, n_classes, lam, rate)

    def trained(
        self,
        X: Array,
        y: NDArray[np.int64],
        step: DPStep,
        source: NoiseSource,
        *,
        groups: NDArray[np.int64] | None = None,
        **training: Any,
    ) -> nn.Module:
        """Train a copy on arrays; see :func:`train_privately`. Returned on the CPU, in evaluation mode.

        Only parameters and buffers leave the training: what else a module may have put on itself while it saw private
        rows stays behind.
        """
        module = deepcopy(self.module).to(self.device)
        train_privately(
            module,
            self.tensor(X),
            _copied(y).to(self.device),
            step,
            source,
            groups=None if groups is None else _copied(groups).to(self.device),
            fused=self.fused,
            vectorized=self.vectorized,
            **training,
        )
        result = deepcopy(self.module)
        result.load_state_dict({name: value.cpu() for name, value in module.state_dict().items()})
        return result.eval()


def prepare_network(
    module: Net | nn.Module | str,
    n_features: int,
    n_classes: int,
    *,
    hidden: tuple[int, ...] = (64,),
    image_shape: Sequence[int] | None = None,
    seed: int,
    device: str = "cpu",
    owner: str,
) -> Network:
    """Build a network, or copy the given one, after every check that can be made before anything is spent.

    Raises
    ------
    ValueError
        See :func:`check_network` and :func:`resolve_device`; ``hidden`` that does not list positive integers.
    """
    if isinstance(module, Net):
        built = module.build(n_features, n_classes, seed)
        ours = type(built) in (MLP, CNN)
        fused = None if ours else check_network(built, n_features, n_classes, owner=owner)
        module.check_optimizer(built)
        return Network(built, module.device, fused, vectorized=ours or vectorizes(built, n_features))
    where = resolve_device(device, owner=owner)
    generator = torch.Generator().manual_seed(seed)
    if module == "mlp":
        if not all(isinstance(size, int | np.integer) and size >= 1 for size in hidden):
            raise ValueError(f"The 'hidden' parameter of {owner} must list positive integers. Got {hidden!r} instead.")
        return Network(build_mlp(n_features, hidden, n_classes, generator), where)
    if module == "cnn":
        if image_shape is None:
            raise ValueError(
                f"module='cnn' of {owner} needs 'image_shape', the channels, height and width that the rows of X hold "
                "flat. Give for example image_shape=(3, 14, 14)."
            )
        built = build_cnn(image_shape, n_classes, generator, owner=owner)
        if math.prod(image_shape) != n_features:
            raise ValueError(
                f"image_shape={tuple(image_shape)} of {owner} stands for rows of {math.prod(image_shape)} features, "
                f"but X has {n_features}."
            )
        return Network(built, where)
    if isinstance(module, str):
        raise ValueError(f"The 'module' parameter of {owner} must be 'mlp', 'cnn' or a module. Got {module!r} instead.")
    fused = check_network(module, n_features, n_classes, owner=owner)
    copy = deepcopy(module).cpu()
    copy.zero_grad(set_to_none=True)
    return Network(copy, where, fused, vectorized=vectorizes(copy, n_features))


def _copied(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.array(values))  # arrays from a memory map cannot be written to


@torch.no_grad()
def predict_logits(module: nn.Module, X: Array, batch: int = 8192) -> NDArray[np.float64]:
    """Logits of shape (n_rows, n_classes), in batches."""
    rows = _copied(X).to(input_dtype(module))
    parts = [module(rows[i : i + batch]) for i in range(0, len(rows), batch)]
    return torch.cat(parts).double().numpy()
