"""Clipped sums of per-sample gradients: one forward and one backward per batch, norms and sums in double precision."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.func import functional_call, grad, vmap
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from skfairdp._networks._hooked_gradients import hooked_gradients
from skfairdp._networks._layers import rule_for
from skfairdp._networks._wide_sums import SLACK, DenseRows, GradientRows, LayerRows, Prepared
from skfairdp._utils import by_halves

PerSampleLoss = Callable[[Tensor, Tensor], Tensor]
Factors = Callable[[Tensor], Tensor]


def check_rows_stay_apart(module: nn.Module) -> None:
    """Refuse modules in which one row's output depends on the rest of the batch."""
    for name, child in module.named_modules():
        if isinstance(child, _BatchNorm):
            raise ValueError(
                f"{type(child).__name__} ('{name}') makes each sample depend on its batch and cannot be trained with "
                "differential privacy; use GroupNorm. opacus' ModuleValidator.fix(module) does this."
            )
        if isinstance(child, _InstanceNorm) and child.track_running_stats:
            raise ValueError(
                f"{type(child).__name__} ('{name}') keeps running statistics of private rows, which no noise covers; "
                "use track_running_stats=False."
            )
        if isinstance(child, nn.Embedding | nn.EmbeddingBag) and child.max_norm is not None:
            raise ValueError(
                f"{type(child).__name__} ('{name}') with max_norm rescales the rows of its table that a private batch "
                "looks up, which no noise covers; use max_norm=None."
            )


def fused_layers(module: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """Layers of the fused path, or None where a trainable parameter has no rule or is shared between layers."""
    layers: list[tuple[str, nn.Module]] = []
    seen: set[int] = set()
    for name, child in module.named_modules(remove_duplicate=False):
        own = {key: p for key, p in child.named_parameters(recurse=False) if p.requires_grad}
        if not own:
            continue
        # other names than these are a layer that computes its weight from them
        if rule_for(child) is None or own.keys() - {"weight", "bias"} or any(id(p) in seen for p in own.values()):
            return None
        seen.update(id(p) for p in own.values())
        layers.append((name, child))
    return layers


def clipped_gradient_sum(
    module: nn.Module,
    loss: PerSampleLoss,
    X: Tensor,
    y: Tensor,
    max_norm: float,
    *,
    weights: Tensor | None = None,
    present: Tensor | None = None,
    fused: bool | None = None,
    vectorized: bool = True,
    hooked: bool = False,
    shared: dict[str, Tensor] | None = None,
    factors: Factors | None = None,
) -> dict[str, Tensor]:
    """Sum of the per-sample gradients, each scaled to a norm of at most ``max_norm``, in double precision.

    The norm is taken over all trainable parameters of a sample together. Making one row absent moves the result by at
    most ``max_norm``, in float arithmetic as it runs, whatever the precision of the module: batches keep their shape,
    norms and sums are of double precision, and gradients are scaled to a little less (the proof is in
    ``_wide_sums.py``). Taking a row *out* gives the others new places in a batch of another shape, where kernels round
    them otherwise: then it holds up to the rounding of the module.

    With ``weights`` of shape (n, k) a sample is k rows, X has the shape (n, k, ...) and y (n, k, ...): its gradient is
    the weighted sum of those of its rows, and is clipped once. An absent row has the weight 0 and keeps its place.

    It is total: a row whose gradient is not finite, or at which the module fails, contributes nothing.
    """
    if shared is not None and fused is not False:
        raise _Misuse("A gradient shared by all rows can only be added to per-sample gradients: use fused=False.")
    layers = fused_layers(module)
    if fused and layers is None:
        raise _Misuse("This module has trainable layers without a fused rule or shared weights: use fused=False.")
    factors = factors or partial(_clip_factors, max_norm=max_norm)
    total = {
        name: torch.zeros(p.shape, dtype=torch.float64, device=p.device)
        for name, p in module.named_parameters()
        if p.requires_grad
    }
    if len(X) == 0:
        factors(torch.zeros(0, dtype=torch.float64, device=X.device))
        return total
    form = partial(
        _gradient_rows, module, loss, layers=layers, fused=fused, form=_former(vectorized, hooked), shared=shared
    )
    gradients, fails = _formed(module, loss, form, (X, y) if weights is None else (X, y, weights))
    norms = gradients.norms()
    nothing = ~torch.isfinite(norms) | fails
    if present is not None:
        nothing |= ~present
    some = bool(nothing.any())
    scales = factors(norms.masked_fill(nothing, torch.inf) if some else norms).double()
    total.update(gradients.weighted_sum(scales.masked_fill(nothing, 0.0), nothing if some else None))
    return total


class _Misuse(ValueError):
    """Says something about the module or the call, never about what a row holds."""


@dataclass(frozen=True)
class LayerTrace:
    """A forward pass whose layers can be asked for per-sample gradients."""

    outputs: Tensor
    layers: dict[str, nn.Module]
    inputs: dict[str, Tensor]
    edges: dict[str, GradientEdge]

    def prepared(
        self, of: Tensor, grad_outputs: Tensor | None = None, *, retain_graph: bool = False
    ) -> dict[str, Prepared]:
        """For each layer that ``of`` depends on: its rule, and what that needs of the gradient of ``of``."""
        gradients = torch.autograd.grad(
            of, list(self.edges.values()), grad_outputs=grad_outputs, allow_unused=True, retain_graph=retain_graph
        )
        out: dict[str, Prepared] = {}
        for name, gradient in zip(self.edges, gradients, strict=True):
            if gradient is not None:
                rule = rule_for(self.layers[name])
                assert rule is not None
                out[name] = (rule, rule.prepare(self.layers[name], self.inputs[name], gradient))
        return out


def trace_layers(module: nn.Module, layers: list[tuple[str, nn.Module]], X: Tensor) -> LayerTrace | None:
    """Run a module and remember what its layers were given; None where one of them ran more than once."""
    inputs: dict[str, tuple[Tensor, int]] = {}
    edges: dict[str, GradientEdge] = {}
    repeated = False

    def remember(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            nonlocal repeated
            repeated |= name in inputs
            inputs[name] = (args[0].detach(), args[0]._version)
            edges[name] = get_gradient_edge(output)  # taken now: a later in-place activation must not shift it

        return hook

    handles = [child.register_forward_hook(remember(name)) for name, child in layers]
    try:
        outputs = module(X)
    finally:
        for handle in handles:
            handle.remove()
    if repeated:
        return None
    for name, (value, version) in inputs.items():
        if value._version != version:
            raise _Misuse(
                f"The input of layer '{name}' was changed in place after it ran; make that operation out of place."
            )
    in_order = {name: edges[name] for name, _ in layers if name in edges}
    return LayerTrace(outputs, dict(layers), {name: value for name, (value, _) in inputs.items()}, in_order)


def _gradient_rows(
    module: nn.Module,
    loss: PerSampleLoss,
    X: Tensor,
    y: Tensor,
    weights: Tensor | None = None,
    *,
    layers: list[tuple[str, nn.Module]] | None,
    fused: bool | None,
    form: Callable[..., dict[str, Tensor]],
    shared: dict[str, Tensor] | None,
) -> GradientRows:
    if weights is not None:
        X, y = X.flatten(0, 1), y.flatten(0, 1)
    if layers is not None and fused is not False:
        trace = trace_layers(module, layers, X)
        if trace is not None:
            losses = loss(trace.outputs, y)
            _check_losses(losses, X)
            if weights is None:
                return LayerRows(trace.layers, trace.prepared(losses.sum()))
            prepared = trace.prepared((losses * weights.flatten().to(losses)).sum())
            return LayerRows(trace.layers, _joined(prepared, weights.shape[1]))
        if fused:
            raise _Misuse("A layer of this module ran more than once per forward; use fused=False.")
    gradients = form(module, loss, X, y)
    if weights is not None:
        gradients = {name: _weighed(gradient, weights) for name, gradient in gradients.items()}
    return DenseRows(gradients, shared)


def _joined(prepared: dict[str, Prepared], times: int) -> dict[str, Prepared]:
    """The rows of a sample as positions of it."""
    return {name: (rule, tuple(rule.joined(part, times) for part in parts)) for name, (rule, parts) in prepared.items()}


def _weighed(gradient: Tensor, weights: Tensor) -> Tensor:
    """Weighted sums of the gradients of the rows of each sample, in double precision."""
    of_rows = gradient.flatten(1).unflatten(0, tuple(weights.shape)).double()
    return torch.einsum("nkp,nk->np", of_rows, weights.double()).unflatten(1, gradient.shape[1:])


def _former(vectorized: bool, hooked: bool) -> Callable[..., dict[str, Tensor]]:
    """How gradients are formed one per sample."""
    if hooked:
        return hooked_gradients
    return vectorized_gradients if vectorized else looped_gradients


@torch.no_grad()
def private_outputs(module: nn.Module, X: Any, batch: int) -> Tensor:
    """What a module says of private rows, in calls of ``batch`` rows; NaN for a row that it has no finite answer for.

    Where their number is public so is the shape of each call, and the place of a row in it; where it is not, ``batch``
    has to be 1.
    """

    def ask(rows: tuple[Tensor, ...]) -> Tensor:
        answers: Tensor = module(rows[0])
        if answers.ndim != 2 or len(answers) != len(rows[0]):
            raise ValueError("not one line of logits for each row")
        return answers

    training, parts = module.training, []
    module.eval()
    for i in range(0, max(len(X), 1), batch):
        found, fails = _without_failures(ask, ask, (X[i : i + batch],))
        unknown = fails | ~torch.isfinite(found).all(1)
        parts.append(torch.where(unknown[:, None], torch.nan, found))
    module.train(training)
    return torch.cat(parts)


def _formed(
    module: nn.Module, loss: PerSampleLoss, form: Callable[..., GradientRows], samples: tuple[Tensor, ...]
) -> tuple[GradientRows, Tensor]:
    """The gradients of a batch, and at which samples the module fails."""

    def forward(samples: tuple[Tensor, ...]) -> Tensor:
        X, y = samples[:2] if len(samples) == 2 else (part.flatten(0, 1) for part in samples[:2])
        return loss(module(X), y)

    return _without_failures(lambda samples: form(*samples), forward, samples)


def _without_failures(
    run: Callable[[tuple[Tensor, ...]], Any], forward: Callable[[tuple[Tensor, ...]], Any], rows: tuple[Tensor, ...]
) -> tuple[Any, Tensor]:
    """Run on a batch where no row makes it fail, and say which rows would.

    Each is tried at its own place of a batch of the same shape, and rows of zeros, which are public, stand in all other
    places, and in the end in those of the rows that fail. Generators are put back, so that the others have the
    gradients and dropout masks that they have without a failure.
    """
    device, n_rows = rows[0].device, len(rows[0])
    states = torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    try:
        return run(rows), torch.zeros(n_rows, dtype=torch.bool, device=device)
    except _Misuse:
        raise
    except Exception:
        pass
    for attempt in (torch.no_grad()(forward), run):  # the second where it is a backward pass that fails
        good = by_halves(partial(_passes, attempt, rows), np.arange(n_rows))
        fails = torch.ones(n_rows, dtype=torch.bool, device=device)
        fails[torch.from_numpy(good).to(device)] = False
        torch.set_rng_state(states[0])
        if states[1] is not None:
            torch.cuda.set_rng_state(states[1], device)
        with contextlib.suppress(Exception):
            return run(_only(rows, good)), fails
    raise RuntimeError(f"The module fails on {n_rows} rows of zeros, though on fewer it does not.")


def _only(rows: tuple[Tensor, ...], some: NDArray[np.int64]) -> tuple[Tensor, ...]:
    """These rows at their places, and zeros in all others."""
    kept = torch.zeros(len(rows[0]), dtype=torch.bool)
    kept[torch.from_numpy(some)] = True
    return tuple(torch.where(kept.view(-1, *[1] * (r.ndim - 1)).to(r.device), r, torch.zeros_like(r)) for r in rows)


def _passes(attempt: Callable[[tuple[Tensor, ...]], Any], rows: tuple[Tensor, ...], some: NDArray[np.int64]) -> bool:
    try:
        attempt(_only(rows, some))
    except Exception:
        return False
    return True


def vectorized_gradients(module: nn.Module, loss: PerSampleLoss, X: Tensor, y: Tensor) -> dict[str, Tensor]:
    trainable = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    fixed = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}
    buffers = dict(module.named_buffers())

    def one(parameters: dict[str, Tensor], x: Tensor, target: Tensor) -> Tensor:
        outputs = functional_call(module, (parameters, fixed, buffers), (x.unsqueeze(0),))
        losses = loss(outputs, target.unsqueeze(0))
        _check_losses(losses, x.unsqueeze(0))
        return losses[0]

    return vmap(grad(one), in_dims=(None, 0, 0), randomness="different")(trainable, X, y)


def looped_gradients(module: nn.Module, loss: PerSampleLoss, X: Tensor, y: Tensor) -> dict[str, Tensor]:
    named = {name: p for name, p in module.named_parameters() if p.requires_grad}
    rows: list[tuple[Tensor, ...]] = []
    for x, target in zip(X, y, strict=True):
        losses = loss(module(x.unsqueeze(0)), target.unsqueeze(0))
        _check_losses(losses, x.unsqueeze(0))
        found = torch.autograd.grad(losses[0], list(named.values()), allow_unused=True)
        rows.append(tuple(torch.zeros_like(p) if g is None else g for p, g in zip(named.values(), found, strict=True)))
    return {name: torch.stack(parts) for name, parts in zip(named, zip(*rows, strict=True), strict=True)}


def _clip_factors(norms: Tensor, max_norm: float) -> Tensor:
    """min(1, C/‖g‖), a little less so that rounding cannot take a sum past the bound."""
    return (max_norm * (1 - SLACK) / norms.clamp_min(1e-300)).clamp_max(1.0)


def _check_losses(losses: Tensor, X: Tensor) -> None:
    if losses.shape != (len(X),):
        raise _Misuse(
            f"A per-sample loss must return one number per row: shape ({len(X)},). Got {tuple(losses.shape)} instead."
        )
