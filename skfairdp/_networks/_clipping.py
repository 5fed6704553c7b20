"""Clipped sums of per-sample gradients: one forward and one backward per batch, norms and sums in double precision."""

import contextlib
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.func import functional_call, grad, vmap
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from skfairdp import privacy
from skfairdp._networks._layers import rule_for
from skfairdp._networks._wide_sums import SLACK, DenseRows, LayerRows, Prepared
from skfairdp._typing import ArrayLike, Floats, Ints
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
    """Sum of the per-sample gradients, each scaled to a norm of at most ``max_norm`` over all parameters, in double
    precision. Making one row absent moves the result by at most ``max_norm``, in float arithmetic as it runs (the proof
    is in ``_wide_sums.py``); taking it *out* gives the others new places, where kernels round them otherwise. With
    ``weights`` of shape (n, k) a sample is k rows, whose gradients are added up with these weights and clipped once; X
    and y have the shape (n, k, ...). It is total: a row whose gradient is not finite, or at which the module fails,
    adds nothing."""
    if shared is not None and fused is not False:
        raise _Misuse("A gradient shared by all rows can only be added to per-sample gradients: use fused=False.")
    layers = fused_layers(module)
    if fused and layers is None:
        raise _Misuse("This module has trainable layers without a fused rule or shared weights: use fused=False.")
    factors = factors or partial(_clip_factors, max_norm=max_norm)
    total = {
        name: p.new_zeros(p.shape, dtype=torch.float64) for name, p in module.named_parameters() if p.requires_grad
    }
    if len(X) == 0:
        factors(torch.zeros(0, dtype=torch.float64, device=X.device))
        return total
    each = hooked_gradients if hooked else vectorized_gradients if vectorized else looped_gradients
    form = partial(_gradient_rows, module, loss, layers=layers, fused=fused, form=each, shared=shared)

    def forward(samples: tuple[Tensor, ...]) -> Tensor:
        rows, targets = samples[:2] if weights is None else (part.flatten(0, 1) for part in samples[:2])
        return loss(module(rows), targets)

    samples = (X, y) if weights is None else (X, y, weights)
    gradients, fails = _without_failures(lambda samples: form(*samples), forward, samples)
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
) -> LayerRows | DenseRows:
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
            of_samples = {  # the rows of a sample are positions of it
                name: (rule, tuple(rule.joined(part, weights.shape[1]) for part in parts))
                for name, (rule, parts) in prepared.items()
            }
            return LayerRows(trace.layers, of_samples)
        if fused:
            raise _Misuse("A layer of this module ran more than once per forward; use fused=False.")
    gradients = form(module, loss, X, y)
    if weights is not None:
        for name, gradient in gradients.items():
            of_rows = gradient.flatten(1).unflatten(0, tuple(weights.shape)).double()
            summed = torch.einsum("nkp,nk->np", of_rows, weights.double())
            gradients[name] = summed.unflatten(1, gradient.shape[1:])
    return DenseRows(gradients, shared)


@torch.no_grad()
def private_outputs(module: nn.Module, X: Any, batch: int) -> Tensor:
    """What a module says of private rows; NaN for a row that it has no finite answer for. In calls of ``batch`` rows
    where their number is public, and so the place of a row in a call; where it is not, ``batch`` has to be 1."""

    def ask(rows: tuple[Tensor, ...]) -> Tensor:
        answers: Tensor = module(rows[0])
        if answers.ndim != 2 or len(answers) != len(rows[0]):
            raise ValueError("not one line of logits for each row")
        return answers

    training, parts = module.training, []
    module.eval()
    for i in range(0, max(len(X), 1), batch):
        found, fails = _without_failures(ask, ask, (X[i : i + batch],))
        parts.append(torch.where((fails | ~torch.isfinite(found).all(1))[:, None], torch.nan, found))
    module.train(training)
    return torch.cat(parts)


def _without_failures(
    run: Callable[[tuple[Tensor, ...]], Any], forward: Callable[[tuple[Tensor, ...]], Any], rows: tuple[Tensor, ...]
) -> tuple[Any, Tensor]:
    """Run on a batch where no row makes it fail, and say which rows would: each is tried at its own place of a batch of
    the same shape, with rows of zeros, which are public, in all others, and in the end in those of the rows that fail.
    Generators are put back, so that the others have the gradients that they have without a failure."""
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


def _only(rows: tuple[Tensor, ...], some: Ints) -> tuple[Tensor, ...]:
    """These rows at their places, and zeros in all others."""
    kept = torch.zeros(len(rows[0]), dtype=torch.bool)
    kept[torch.from_numpy(some)] = True
    return tuple(torch.where(kept.view(-1, *[1] * (r.ndim - 1)).to(r.device), r, torch.zeros_like(r)) for r in rows)


def _passes(attempt: Callable[[tuple[Tensor, ...]], Any], rows: tuple[Tensor, ...], some: Ints) -> bool:
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
        losses = loss(functional_call(module, (parameters, fixed, buffers), (x.unsqueeze(0),)), target.unsqueeze(0))
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


def has_hooks(module: nn.Module) -> bool:
    """Whether every parameter to train belongs to a layer that opacus has a rule for."""
    from opacus import GradSampleModule

    ruled = (layer for layer in module.modules() if type(layer) in GradSampleModule.GRAD_SAMPLERS)
    covered = {id(p) for layer in ruled for p in layer.parameters(recurse=False)}
    return all(id(p) in covered for p in module.parameters() if p.requires_grad)


def hooked_gradients(module: nn.Module, loss: Any, X: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Gradients of shape (n_rows, ...) of the loss of each row, by parameter name; one forward and one backward.
    Clipping, sum and noise stay ours. The hooks are gone afterwards, and so is whatever they left on the parameters."""
    from opacus import GradSampleModule

    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    gradients: dict[str, Tensor] = {}
    hooked = GradSampleModule(module, batch_first=True, loss_reduction="sum", strict=False)
    try:
        losses = loss(hooked(X), y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that rows need no gradient of their own
            torch.autograd.backward(losses.sum(), inputs=list(trained.values()))
        for name, p in trained.items():
            found = getattr(p, "grad_sample", None)
            gradients[name] = p.new_zeros((len(X), *p.shape)) if found is None else found
    finally:
        hooked.to_standard_module()
        module.zero_grad(set_to_none=True)
    return gradients


def _clip_factors(norms: Tensor, max_norm: float | Tensor) -> Tensor:
    """min(1, C/‖g‖), a little less so that rounding cannot take a sum past the bound."""
    return (max_norm * (1 - SLACK) / norms.clamp_min(1e-300)).clamp_max(1.0)


def _check_losses(losses: Tensor, X: Tensor) -> None:
    if losses.shape != (len(X),):
        raise _Misuse(
            f"A per-sample loss must return one number per row: shape ({len(X)},). Got {tuple(losses.shape)} instead."
        )


@dataclass(frozen=True)
class DPStep:
    """The plan of a DP-SGD run, and its single step: a Poisson batch, drawn in secret, the sum of its clipped
    gradients, noise, divided by the *expected* batch size, as the realised one is private. An empty batch gives a step
    of pure noise, and counts. Where a record may be replaced by *any* other one, the sum moves by twice the bound, and
    every step reads all rows."""

    sampling_probability: float
    noise_multiplier: float
    max_grad_norm: float
    steps: int
    expected_batch_size: float
    relation: privacy.NeighboringRelation = privacy.NeighboringRelation.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        if not 1e-100 <= self.max_grad_norm <= 1e100:
            raise ValueError(
                "max_grad_norm of DPStep must lie between 1e-100 and 1e100, so that squares do not overflow. "
                f"Got {self.max_grad_norm!r} instead."
            )
        if not (self.relation.by_null or self.sampling_probability == 1):
            raise ValueError(
                f"For '{self.relation}' DPStep reads all rows in every step: no bound for samples is proven."
            )

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        n_rows: int,
        batch_size: int,
        epochs: float,
        max_grad_norm: float,
        noise_multiplier: float | None = None,
        beside: privacy.DpEvent | None = None,
        relation: privacy.NeighboringRelation = privacy.NeighboringRelation.ADD_OR_REMOVE_ONE,
        nothing_left: str | None = None,
    ) -> "DPStep":
        """The plan for so many passes over the rows whose certified ε, with what is released ``beside``, is at most
        ``epsilon``. Where there is none, ``nothing_left`` says what to do."""
        probability = min(1.0, batch_size / n_rows)
        steps = max(1, math.ceil(epochs / probability))
        if noise_multiplier is None:
            # Many steps are about μ-GDP, μ = q sqrt(T (exp(1/σ²) - 1)) (Bu et al. 2020): there the search starts.
            per_step = privacy.gdp_mu(epsilon, delta) / (probability * math.sqrt(steps))
            central = 1.02 / math.sqrt(math.log1p(per_step**2))
            # Where ε is large, what counts is how often a record is sampled.
            often = max(1.0, float(binom.isf(delta / 2, steps, probability)))
            guess = min(central, math.sqrt(often) / privacy.gdp_mu(epsilon, delta / 2))
            try:
                noise_multiplier = privacy.calibrate_noise(
                    lambda sigma: _event(probability, sigma, steps, beside), epsilon, delta, guess=guess
                )
            except ValueError as reason:
                raise ValueError(nothing_left or str(reason)) from None
        return cls(probability, noise_multiplier, max_grad_norm, steps, probability * n_rows, relation)

    @property
    def event(self) -> privacy.DpEvent:
        """All steps together."""
        return self.event_with(None)

    def event_with(self, beside: privacy.DpEvent | None) -> privacy.DpEvent:
        """All steps together with what else is released."""
        return _event(self.sampling_probability, self.noise_multiplier, self.steps, beside)

    @property
    def sums(self) -> privacy.GaussianMechanism:
        """For the sum of the clipped gradients of a batch."""
        moved = self.max_grad_norm * (1 if self.relation.by_null else 2)  # one gradient leaves, another one enters
        return privacy.GaussianMechanism(self.noise_multiplier * moved, sensitivity=moved, relation=self.relation)

    @property
    def declared_rows(self) -> int:
        """The public number of rows that probability, steps and divisor follow from."""
        return max(1, round(self.expected_batch_size / self.sampling_probability))

    def sample(self, n_rows: int, source: privacy.NoiseSource) -> Ints:
        """Positions of a fresh Poisson batch; private, never to be logged."""
        return privacy.PoissonSample(self.sampling_probability).draw(n_rows, source)

    def release(
        self, module: nn.Module, loss: PerSampleLoss, X: Tensor, y: Tensor, source: privacy.NoiseSource, **options: Any
    ) -> dict[str, Tensor]:
        """The noisy mean gradient of a batch, by parameter name."""
        sums = clipped_gradient_sum(module, loss, X, y, self.max_grad_norm, **options)
        flat = torch.cat([value.flatten() for value in sums.values()]).double().cpu()  # one vector of all parameters
        noisy = torch.from_numpy(self.sums.release(flat.numpy(), source)) / self.expected_batch_size
        parts = noisy.split([value.numel() for value in sums.values()])
        return {name: part.view_as(value).to(value) for (name, value), part in zip(sums.items(), parts, strict=True)}


def _event(probability: float, noise_multiplier: float, steps: int, beside: Any = None) -> privacy.DpEvent:
    step: privacy.DpEvent = privacy.GaussianDpEvent(noise_multiplier)
    event = privacy.repeat(step if probability == 1 else privacy.PoissonSampledDpEvent(probability, step), steps)
    return event if beside is None else privacy.compose(event, beside)


Counting = Callable[[Tensor], Tensor]
_ROOM = 1 - SLACK  # rounding cannot take a sum past the bound


class ClippingRule(ABC):
    """What each row's gradient is multiplied by.
    ``count_share`` is the share of a step's squared cost that pays for its counts; 0 where a rule makes none."""

    count_share: float = 0.0

    @property
    @abstractmethod
    def bound(self) -> float:
        """No row adds more than this norm to the sum, given what was released so far."""

    @abstractmethod
    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        """Factors of shape (n_rows,)."""

    def factors_of_arrays(self, norms: Floats, groups: Ints, counted: Callable[[Floats], Floats]) -> Floats:
        """The same from and to arrays."""
        return self.factors(
            torch.from_numpy(norms), torch.from_numpy(groups), lambda exact: torch.from_numpy(counted(exact.numpy()))
        ).numpy()


class WeightsByGroup(ClippingRule):
    """Clipped gradients times a public or released weight of their group: sensitivity C times the largest weight."""

    def __init__(self, weights: ArrayLike, *, max_norm: float) -> None:
        self.weights, self.max_norm = torch.tensor(np.asarray(weights, dtype=np.float64)), max_norm

    @staticmethod
    def balancing(sizes: Floats, max_weight: float) -> Floats:
        """Weights that make groups of these (noisy) sizes count alike, none above ``max_weight``."""
        total = max(float(sizes.sum()), 1.0)
        # noise may leave a small group with nothing, or less
        sizes = np.maximum(sizes, total / (100 * len(sizes)))
        return np.minimum(total / (len(sizes) * sizes), max_weight)

    @property
    def bound(self) -> float:
        return self.max_norm * float(self.weights.max())

    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        return _clip_factors(norms, self.max_norm) * self.weights.to(norms)[groups]


class BoundsByGroup(ClippingRule):
    """DP-SGD-F: ``C_k = C (1 + share of group k above C / share of all rows above C)``, at most ``max_ratio`` times C,
    from noisy counts of the batch (Xu, Du & Wu 2020). The sum moves by the *largest* bound of any group, of an empty
    one too."""

    def __init__(self, n_groups: int, *, max_norm: float, max_ratio: float, count_share: float) -> None:
        self.n_groups, self.max_norm, self.max_ratio, self.count_share = n_groups, max_norm, max_ratio, count_share
        self.bounds = torch.full((n_groups,), max_norm, dtype=torch.float64)

    @property
    def bound(self) -> float:
        return float(self.bounds.max())

    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        above = (norms > self.max_norm).long()
        cells = torch.zeros(self.n_groups * 2, dtype=torch.float64, device=norms.device)
        cells.index_add_(0, groups * 2 + above, torch.isfinite(norms).double())
        self.update(counted(cells.cpu()).reshape(self.n_groups, 2))
        return _clip_factors(norms, self.bounds.to(norms)[groups])

    def update(self, counts: Tensor) -> None:
        """Set the bounds by noisy counts of shape (n_groups, 2), of gradients within and above C; post-processing."""
        counts = counts.double().clamp_min(0.0)
        share = counts[:, 1] / counts.sum(1).clamp_min(1.0)
        overall = counts[:, 1].sum() / counts.sum().clamp_min(1.0)
        self.bounds = self.max_norm * (1 + share / overall.clamp_min(1e-9)).clamp_max(self.max_ratio)


class GlobalScaling(ClippingRule):
    """DPSGD-Global-Adapt: gradients are scaled by C/Z, and only those above Z are clipped, to C. ``Z ← Z exp(share of
    the rows above Z - quantile)``, by a noisy count (Esipova et al. 2022). Sensitivity C; no groups are read."""

    def __init__(
        self, *, max_norm: float, start: float, quantile: float, batch_size: float, count_share: float
    ) -> None:
        self.max_norm, self.strict, self.quantile = max_norm, start, quantile
        self.batch_size, self.count_share = batch_size, count_share

    @property
    def bound(self) -> float:
        return self.max_norm

    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        out = self.max_norm * _ROOM / norms.clamp_min(self.strict)
        self.update(counted(((norms > self.strict) & torch.isfinite(norms)).sum().double().cpu()[None]))
        return out

    def update(self, above: Tensor) -> None:
        """Move Z by a noisy count; post-processing."""
        step = float(above[0]) / self.batch_size - self.quantile
        # a wild draw of the noise must not end the training
        self.strict = min(max(self.strict * math.exp(min(step, 1.0)), 1e-2 * self.max_norm), 1e3 * self.max_norm)


@dataclass(frozen=True)
class FairClippingStep(DPStep):
    """A step of private SGD whose gradients a :class:`ClippingRule` scales.
    Counts and gradients of a step are one release of one Poisson batch: adding or removing a row moves the counts by 1
    and then, given them, the sum by the rule's bound. With noise σ/√f on the counts (f is ``count_share``) and σ/√(1-f)
    times the bound on the sum, μ² = f/σ² + (1-f)/σ²: given the batch, N(0, 1) against N(1/σ, 1) dominates the two, and
    sampling the batch keeps what dominates (Zhu, Dong & Wang 2022, Theorem 11). So the event is that of one sampled
    Gaussian with multiplier σ, in every step. ``max_grad_norm`` is the rule's base C; targets have shape (n_rows, 2)
    and hold classes and groups."""

    rule: Any = None

    @property
    def counts(self) -> privacy.GaussianMechanism:
        """For the counts of a batch."""
        sigma = self.noise_multiplier / math.sqrt(self.rule.count_share)
        return privacy.GaussianMechanism(sigma, sensitivity=1.0, relation=self.relation)

    @property
    def sums(self) -> privacy.GaussianMechanism:
        """For the sum of a batch, given its released counts."""
        bound = self.rule.bound
        sigma = self.noise_multiplier / math.sqrt(1 - self.rule.count_share) * bound
        return privacy.GaussianMechanism(sigma, sensitivity=bound, relation=self.relation)

    def release_counts(self, exact: Tensor, source: privacy.NoiseSource) -> Tensor:
        """Noisy counts of a batch."""
        return torch.from_numpy(self.counts.release(exact.numpy(), source))

    def release(
        self, module: nn.Module, loss: PerSampleLoss, X: Tensor, y: Tensor, source: privacy.NoiseSource, **options: Any
    ) -> dict[str, Tensor]:
        """The noisy mean gradient of a batch, by parameter name."""

        def factors(norms: Tensor) -> Tensor:
            return self.rule.factors(norms, y[:, 1], lambda exact: self.release_counts(exact, source))

        return super().release(module, loss, X, y, source, factors=factors, **options)
