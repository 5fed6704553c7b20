"""From an event to ε: one function, the tightest proven accountant for what the event contains."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, reduce
from typing import Any

import attr
import numpy as np
from numpy.typing import NDArray

from skfairdp.privacy import _divergences, _dp_accounting as dpa, _events
from skfairdp.privacy._divergences import pure_epsilon
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import RareDisclosure, WorstOf
from skfairdp.privacy._gdp import _check_delta, gdp_epsilon

#: Orders at which Rényi divergences are evaluated; fixed in advance, never chosen after seeing a transcript.
RDP_ORDERS: NDArray[np.float64] = np.concatenate(
    [np.arange(1.02, 4, 0.02), np.arange(4, 20, 0.1), np.arange(20, 100, 1.0), np.geomspace(100, 1e5, 120)]
)
RDP_ORDERS.setflags(write=False)

_GRID = 1e-4  # privacy-loss grid of Laplace, and the coarsest for bits and randomised response
_SAMPLED_GRIDS = (1e-5, 2e-3)  # finest and coarsest for Poisson-sampled Gaussians, whose own scale decides
_RAREST = 1e-12  # of batches: a grid for rarer ones has more cells than integers
_SMALLEST = 2.0**-1022  # no release with a signal is taken for one without, however much noise there is
_LEAST_NOISE, _MOST_NOISE = 1e-2, 1e9  # of sampled releases; more than that is taken for that, which costs no less
_WIDEST = 2**16  # grid points of one release; larger losses take a coarser grid
_SLOW = 2**15  # grid points from which on steps of sampled Gaussians are added up by our own transforms
_STRIDE = 16  # orders per step of the coarse search: about the root of half their number
_NEXT_TO_NOTHING = 1e-9  # a pure ε, over all its releases, that is added to a bound instead of put on a grid
_UP = 1 + 2.0**-48  # above the roundings of a sum of products of a few factors each
_BITS = (_events.ThresholdBit, _events.ArgmaxBit)
_PURE = (dpa.LaplaceDpEvent, dpa.RandomizedResponseDpEvent)
_SAMPLED_OR_PURE = (*_PURE, dpa.PoissonSampledDpEvent, _events.ReplaceSampledGaussian)
#: What dp-accounting's Rényi accountant is asked.
_LIBRARY = (dpa.GaussianDpEvent, _events.DiscreteGaussian, dpa.PoissonSampledDpEvent)
_NESTED = (WorstOf, dpa.RepeatAndSelectDpEvent)
_WITHOUT_PURE = (*_BITS, *_LIBRARY, _events.ReplaceSampledGaussian)  # at δ = 0 they have no finite ε of their own


def epsilon_of(event: DpEvent, delta: float, *, accountant: str = "auto") -> float:
    """Recompute ε from an event alone: a proven upper bound that does not depend on the data.

    Parameters
    ----------
    event : DpEvent
        What was released, as found in ``privacy_.event``.
    delta : float
        In (0, 1); or 0, for releases that all have a pure ε.
    accountant : {"auto", "gdp", "rdp", "pld", "pure"}, default="auto"
        "auto" takes the smallest bound among the accountants that have a proof for this event; naming one is for
        cross-checks.

    Returns
    -------
    float
        Non-negative; inf for an event that is not private.

    Raises
    ------
    ValueError
        δ outside its range, or an event the accountant has no proof for.

    Notes
    -----
    * ``"gdp"``: exact for Gaussian releases; a bit taken from Gaussian noise counts as the noisy number behind it.
    * ``"rdp"``: Rényi divergences. Exact per order for bits, where the worst vote count differs from order to order
      but is one count, so this beats the Gaussian curve; the order is taken over a grid fixed in advance.
    * ``"pld"``: privacy loss distributions, for Poisson-sampled Gaussians, Laplace and randomised response. The
      counts of each kind of release are declared, so any adaptive order is a post-processing of independent draws
      from the dominating pairs.
    * ``"pure"``: the sum of the pure ε of randomised response and Laplace releases, whatever δ is.
    * A :class:`RareDisclosure` is paid by δ before any of them is asked; inside of one worst case by its own branch.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, epsilon_of, repeat
    >>> round(epsilon_of(repeat(GaussianDpEvent(40 / 2**0.5), 200), 1e-5), 6)
    1.993091
    """
    if delta != 0:
        _check_delta(delta)
    if accountant not in ("auto", *_ACCOUNTANTS):
        raise ValueError(f"accountant must be 'auto', 'gdp', 'rdp', 'pld' or 'pure'. Got {accountant!r} instead.")
    return min(_bounds(event, delta, accountant).values())


def quick_epsilon_of(event: DpEvent, delta: float) -> float:
    """As :func:`epsilon_of`, sampled Gaussians on a grid four times as coarse: still an upper bound, for searches."""
    return min(_bounds(event, delta, "auto", coarseness=4).values())


def accountant_of(event: DpEvent, delta: float) -> str:
    """Name the accountant whose bound :func:`epsilon_of` returns: "gdp", "pld", "rdp" or "pure", or else "none"."""
    bounds = _bounds(event, delta, "auto")
    return min(bounds, key=lambda kind: bounds[kind])


def _bounds(event: DpEvent, delta: float, accountant: str, coarseness: int = 1) -> dict[str, float]:
    leaves = _events.flatten(event)
    elementary = [*_elementary(leaves)]
    types = {*map(type, elementary)}
    noises = (getattr(getattr(leaf, "event", leaf), "noise_multiplier", None) for leaf in elementary)
    losses = (pure_epsilon(leaf) for leaf in elementary if isinstance(leaf, _PURE))
    if dpa.NonPrivateDpEvent in types or 0 in noises or math.inf in losses:
        return {"none": math.inf}
    key = tuple(sorted(leaves.items(), key=repr))
    kinds = tuple(_ACCOUNTANTS) if accountant == "auto" else (accountant,)
    if RareDisclosure in types:
        if branches := _branches(key) if delta > 0 else []:
            found = [_bounds(branch, delta, accountant, coarseness) for branch in branches]
            return max(found, key=lambda bounds: min(bounds.values()))
        exposed, key = _apart(key)
        delta = math.nextafter(delta - exposed, 0.0)
        if delta <= 0:
            return {"none": math.inf}
    if delta == 0:
        pure = _pure_bound(key, delta)
        if pure is None or "pure" not in kinds:
            raise ValueError(
                "delta=0 is possible only for releases with a pure ε, such as randomised response, and these have "
                "none. Give a delta in (0, 1)."
            )
        return {"pure": _certain(pure)}
    bounds: dict[str, float] = {}
    # Of a worst case beside bits "pld" knows no more than the Gaussian that is above them.
    knows_all = types.isdisjoint(_BITS) or WorstOf not in {*map(type, leaves)}
    for kind in kinds:
        # For sampled and pure releases "pld" is the tighter; "rdp" is asked where it has no proof, or by name.
        if not (accountant == "auto" and kind == "rdp" and knows_all and bounds.get("pld", math.inf) < math.inf):
            value = _pld_bound(key, delta, coarseness) if kind == "pld" else _ACCOUNTANTS[kind](key, delta)
            if value is not None:
                bounds[kind] = _certain(value)
    if not bounds:
        names = sorted({type(leaf).__name__ for leaf in leaves})
        raise ValueError(
            f"The accountants tried ({', '.join(kinds)}) have no proof for {names} composed together. Take "
            "accountant='auto', or report these releases separately."
        )
    return bounds


Leaves = tuple[tuple[DpEvent, int], ...]


def _apart(leaves: Leaves) -> tuple[float, Leaves]:
    """The probability of rare disclosures, rounded up, and the other releases.
    A disclosure that happens with probability p is a mixture: with p anything, else the same for both neighbours. So
    with probability P, at most the sum of all p, something is disclosed, and δ of the whole is at most P + (1 - P) δ of
    the rest. Of several worst cases each branch is charged the largest P of all branches."""
    exposed, rest = 0.0, []
    for leaf, times in leaves:
        if isinstance(leaf, RareDisclosure):
            exposed += times * leaf.probability * _UP
            continue
        if isinstance(leaf, WorstOf):
            branches = [_apart(_leaves_of(option)) for option in leaf.events]
            worst = max(probability for probability, _ in branches)
            if worst > 0:
                exposed += times * worst * _UP
                hidden = ([_events.repeat(one, n) for one, n in branch] for _, branch in branches)
                leaf = WorstOf(tuple(_events.compose(*each) for each in hidden))
        rest.append((leaf, times))
    others = _events.flatten(_events.compose(*(_events.repeat(leaf, times) for leaf, times in rest)))
    return exposed * _UP, tuple(sorted(others.items(), key=repr))


def _branches(leaves: Leaves) -> list[DpEvent]:
    """What may happen to a record where there is one worst case: each of its branches, with all else; empty if not."""
    worst = [(leaf, times) for leaf, times in leaves if isinstance(leaf, WorstOf)]
    if len(worst) != 1 or worst[0][1] != 1:
        return []
    rest = [_events.repeat(leaf, times) for leaf, times in leaves if not isinstance(leaf, WorstOf)]
    return [_events.compose(*rest, option) for option in worst[0][0].events]


def _certain(value: float) -> float:
    """What is no number proves nothing: ``max(0, nan)`` is 0 in Python, and would be a release for free."""
    return math.inf if math.isnan(value) else max(0.0, float(value))


def _elementary(leaves: Iterable[DpEvent]) -> Iterator[DpEvent]:
    """Releases, those inside of worst cases and selections too."""
    for leaf in leaves:
        yield leaf
        inside = (leaf.event,) if isinstance(leaf, dpa.RepeatAndSelectDpEvent) else getattr(leaf, "events", ())
        for inner in inside:
            yield from _elementary(_events.flatten(inner))


def _leaves_of(event: DpEvent) -> Leaves:
    return tuple(_events.flatten(event).items())


def _gdp_bound(leaves: Leaves, delta: float) -> float | None:
    mu_squared = _mu_squared(leaves)
    return None if mu_squared is None else gdp_epsilon(math.sqrt(mu_squared) * _UP, delta)


@lru_cache(maxsize=1024)
def _rdp_bound(leaves: Leaves, delta: float) -> float | None:
    types = {*map(type, dict(leaves))}
    if not leaves:
        return 0.0
    if dpa.PoissonSampledDpEvent not in types or not types <= {*_LIBRARY}:
        return _smallest_over_orders(leaves, delta)
    if any(_noise_of(leaf) < _LEAST_NOISE for leaf, _ in leaves if _is_sampled(leaf)):
        return math.inf
    events = []
    for leaf, times in leaves:
        if isinstance(leaf, _events.DiscreteGaussian):
            leaf = dpa.ZCDpEvent(float(_squared(leaf.sensitivity, leaf.sigma)) / 2)
        elif _is_sampled(leaf):
            leaf = dpa.PoissonSampledDpEvent(leaf.sampling_probability, dpa.GaussianDpEvent(_noise_of(leaf)))
        events.append(dpa.SelfComposedDpEvent(leaf, times))
    return dpa.rdp_epsilon(dpa.ComposedDpEvent(events), delta)


def _smallest_over_orders(leaves: Leaves, delta: float) -> float:
    """Smallest ε over ``RDP_ORDERS``, from an eighth of the divergences.
    (α − 1) times the ε of order α is convex: (α − 1) D_α is, for each pair of vote counts and so for the worst one, and
    so is what the conversion adds, whose second derivative is 1 / (α (α − 1)). Hence ε falls and then rises along the
    grid, and its smallest value lies beside the best of every 16th order. Any order gives a valid bound."""
    coarse = np.unique(np.append(np.arange(0, len(RDP_ORDERS), _STRIDE), len(RDP_ORDERS) - 1))
    _, order = dpa.rdp_to_epsilon_and_order(RDP_ORDERS[coarse], _rdp(leaves, RDP_ORDERS[coarse]), delta)
    best = int(np.searchsorted(RDP_ORDERS, order))
    fine = RDP_ORDERS[max(best - _STRIDE, 0) : best + _STRIDE + 1]
    return dpa.rdp_to_epsilon(fine, _rdp(leaves, fine), delta)


@lru_cache(maxsize=4096)
def _pld_bound(leaves: Leaves, delta: float, coarseness: int = 1) -> float | None:
    types = {*map(type, dict(leaves))}
    if WorstOf in types:
        return _worst_pld_bound(leaves, delta, coarseness)
    # For Gaussians the closed form is exact, and for bits the envelope curve is the Gaussian's.
    if types.isdisjoint(_SAMPLED_OR_PURE) or types & {dpa.RepeatAndSelectDpEvent, _events.DiscreteGaussian}:
        return None
    charged, leaves = _charged_as_pure(leaves)
    if all(isinstance(leaf, dpa.GaussianDpEvent) for leaf, _ in leaves):
        epsilon = _gdp_bound(leaves, delta) or 0.0
    else:
        epsilon = _inclusion_bound(leaves, delta)
        with contextlib.suppress(OverflowError):  # a loss so large that dp-accounting takes no exponential of it
            epsilon = min(epsilon, _loss_bound(leaves, delta, coarseness))
    return (charged + epsilon) * _UP if charged else epsilon


def _inclusion_bound(leaves: Leaves, delta: float) -> float:
    """From how often a record is sampled, and the Gaussians that are left then; inf where other releases are left."""
    sampled = [(leaf, times) for leaf, times in leaves if _is_sampled(leaf)]
    rest = _mu_squared(tuple(pair for pair in leaves if pair not in sampled))
    if rest is None or not sampled or math.isinf(rest):
        return math.inf
    reaches = [getattr(leaf, "difference", 1.0) / _noise_of(leaf) for leaf, _ in sampled]
    releases = [(float(one.sampling_probability), far, int(n)) for (one, n), far in zip(sampled, reaches, strict=True)]
    return _divergences.inclusion_epsilon(releases, delta, rest)


def _loss_bound(leaves: Leaves, delta: float, coarseness: int) -> float:
    """From privacy loss distributions."""
    sampled = [(leaf, times) for leaf, times in leaves if _is_sampled(leaf)]
    if any(_noise_of(leaf) < _LEAST_NOISE for leaf, _ in sampled):
        return math.inf
    largest = max(map(_largest_loss, dict(leaves)))
    if all(isinstance(leaf, dpa.GaussianDpEvent | dpa.PoissonSampledDpEvent) for leaf, _ in leaves):
        steps = [_steps(leaf, times) for leaf, times in leaves]
        # Rare batches, large noise: a step loses less than dp-accounting's finest grid tells apart.
        tiny = any(_typical_loss(leaf) < _SAMPLED_GRIDS[0] for leaf, _ in sampled)
        if tiny and all(leaf.sampling_probability >= _RAREST for leaf, _ in sampled):
            return _divergences.losses_epsilon(steps, delta, 2)
        # Many grid points for one step, or all: ours is as quick on the fine grid, and a search ends where it began.
        together = max(20 * math.sqrt(times) * _typical_loss(leaf) for leaf, times in sampled)
        if max(largest, together) > _SLOW * _grid(leaves):
            return _divergences.losses_epsilon(steps, delta)
    grid = max(_grid(leaves, coarseness), largest / _WIDEST)
    mu_squared = _mu_squared(tuple((leaf, n) for leaf, n in leaves if isinstance(leaf, dpa.GaussianDpEvent))) or 0.0
    if math.isinf(mu_squared) or any(pure_epsilon(leaf) == math.inf for leaf, _ in leaves):
        return math.inf
    finite = 1.0
    for leaf, times in leaves:
        if not isinstance(leaf, dpa.GaussianDpEvent):
            finite *= (1 - float(_pld_of(leaf, grid).get_delta_for_epsilon(math.inf))) ** times
    if 1 - finite > delta:
        # Losses beyond the widest grid make up more than δ. dp-accounting breaks where next to no mass is left.
        return math.inf
    total = _composed_losses(leaves, mu_squared, grid)
    return dpa.epsilon_from_pld(total, delta, compositions=sum(times for _, times in leaves))


@lru_cache(maxsize=8)
def _composed_losses(leaves: Leaves, mu_squared: float, grid: float) -> dpa.PrivacyLossDistribution:
    """Of Gaussians, whose μ² is given, and of the other releases; kept, as a curve asks for many δ."""
    parts = [dpa.gaussian_pld(1 / (math.sqrt(mu_squared) * _UP), grid)] if mu_squared else []
    others = ((leaf, times) for leaf, times in leaves if not isinstance(leaf, dpa.GaussianDpEvent))
    parts += [_pld_of(leaf, grid, times) for leaf, times in others]
    return reduce(lambda total, part: total.compose(part, tail_mass_truncation=dpa.TAIL_MASS), parts)


def _steps(leaf: DpEvent, times: int) -> tuple[float, float, int]:
    noise = _noise_of(leaf) if _is_sampled(leaf) else float(leaf.noise_multiplier)
    return float(getattr(leaf, "sampling_probability", 1.0)), noise, int(times)


def _charged_as_pure(leaves: Leaves) -> tuple[float, Leaves]:
    """Pure ε of the responses that give away next to nothing, and the other releases: their losses never exceed that ε,
    so it adds to any ε of the others at the same δ. A grid as fine as theirs would have millions of points."""
    pure = [(leaf, times) for leaf, times in leaves if isinstance(leaf, dpa.RandomizedResponseDpEvent)]
    costs = {leaf: (pure_epsilon(leaf) or 0.0) * times for leaf, times in pure}
    tiny = {leaf: cost for leaf, cost in costs.items() if cost <= _NEXT_TO_NOTHING}
    return math.fsum(tiny.values()), tuple((leaf, times) for leaf, times in leaves if leaf not in tiny)


@lru_cache(maxsize=128)  # each charge of a ledger composes all that are on it
def _pld_of(leaf: DpEvent, grid: float, times: int = 1) -> Any:
    """The privacy loss distribution of one release on the grid, or of as many."""
    if times > 1:
        return dpa.self_compose(_pld_of(leaf, grid), times)
    if isinstance(leaf, _BITS):
        half_width = math.ceil(_divergences.max_loss(leaf, 1e-18) / grid) + 1
        losses = np.arange(-half_width, half_width + 1) * grid
        return dpa.pld_from_deltas(_divergences.bit_deltas(leaf, losses), half_width, grid)
    if isinstance(leaf, _events.ReplaceSampledGaussian):
        leaf = attr.evolve(leaf, noise_multiplier=_noise_of(leaf))
        if leaf.difference == 2:
            return dpa.gaussian_pld(leaf.noise_multiplier, grid, leaf.sampling_probability, replaced=True)
        half_width = math.ceil(_divergences.largest_loss(leaf) / grid) + 1
        losses = np.arange(-half_width, half_width + 1, dtype=np.float64) * grid
        return dpa.pld_from_deltas(_divergences.replace_sampled_deltas(leaf, losses), half_width, grid)
    if isinstance(leaf, dpa.LaplaceDpEvent):
        return dpa.from_laplace_mechanism(leaf.noise_multiplier, value_discretization_interval=grid)
    if isinstance(leaf, dpa.RandomizedResponseDpEvent):
        values = leaf.noise_parameter, leaf.num_buckets
        return dpa.from_randomized_response(*values, value_discretization_interval=grid)
    return dpa.gaussian_pld(_noise_of(leaf), grid, leaf.sampling_probability)


def _worst_pld_bound(leaves: Leaves, delta: float, coarseness: int) -> float | None:
    """Branch by branch for a single worst case; of several, all their branches together, which is no less."""
    branches = _branches(leaves)
    if not branches:
        parts = ((leaf.events if isinstance(leaf, WorstOf) else (leaf,), times) for leaf, times in leaves)
        branches = [_events.compose(*(_events.repeat(option, times) for options, times in parts for option in options))]
    bounds = []
    for branch in map(_leaves_of, branches):
        values = [_pld_bound(branch, delta, coarseness), _gdp_bound(branch, delta)]
        bounds.append(min((value for value in values if value is not None), default=None))
    return _worst(bounds)


def _worst(costs: list[float | None]) -> float | None:
    """Of the options of a worst case; None where one of them has no such cost."""
    known = [cost for cost in costs if cost is not None]
    return max(known) if len(known) == len(costs) else None


def _pure_bound(leaves: Leaves, delta: float) -> float | None:
    """Valid at every δ, and nearly tight for one release at the δ that people report."""
    if not {*map(type, dict(leaves))}.isdisjoint(_WITHOUT_PURE):
        return None
    costs = [cost * times for leaf, times in leaves if (cost := _pure(leaf, delta)) is not None]
    return math.fsum(costs) if len(costs) == len(leaves) else None  # each is rounded up enough


def _pure(leaf: DpEvent, delta: float) -> float | None:
    if isinstance(leaf, WorstOf):
        return _worst([_pure_bound(_leaves_of(option), delta) for option in leaf.events])
    if isinstance(leaf, dpa.RepeatAndSelectDpEvent):
        # The limit of large orders of the Rényi bound (Papernot & Steinke 2022, Theorem 2).
        base = _pure_bound(_leaves_of(leaf.event), delta)
        return None if base is None or math.isinf(leaf.shape) else (2 + leaf.shape) * base
    return pure_epsilon(leaf)


_Bound = Callable[[Leaves, float], float | None]
_ACCOUNTANTS: dict[str, _Bound] = {"gdp": _gdp_bound, "pld": _pld_bound, "pure": _pure_bound, "rdp": _rdp_bound}


def rdp_of(event: DpEvent, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rényi divergence of an event at each order, maximised over data sets."""
    orders = np.asarray(orders, dtype=float)
    if not np.all(orders > 1):
        raise ValueError("Rényi orders must be greater than 1.")
    return _rdp(_leaves_of(event), orders)


def _rdp(leaves: Leaves, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros(len(orders))
    for leaf, times in leaves:
        total += times * _RDP[type(leaf)](leaf, orders)
    return np.where(np.isnan(total), np.inf, total * _UP)


def _selected_rdp(leaf: DpEvent, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    base = _leaves_of(leaf.event)
    own, law = _rdp(base, orders), (leaf.mean, leaf.shape)
    return _divergences.selection_rdp(orders, own, *law, RDP_ORDERS, _rdp_on_the_grid(base))


#: Rényi divergences of each elementary release at some orders.
_RDP: dict[type[DpEvent], Callable[[Any, NDArray[np.float64]], Any]] = {
    _events.ArgmaxBit: _divergences.bit_rdp,
    _events.DiscreteGaussian: lambda leaf, orders: orders / 2 * _squared(leaf.sensitivity, leaf.sigma),
    dpa.GaussianDpEvent: lambda leaf, orders: orders / 2 * _squared(1.0, leaf.noise_multiplier),
    dpa.LaplaceDpEvent: _divergences.laplace_rdp,
    dpa.NonPrivateDpEvent: lambda leaf, orders: np.inf,
    dpa.PoissonSampledDpEvent: _divergences.sampled_gaussian_rdp,
    dpa.RandomizedResponseDpEvent: _divergences.randomized_response_rdp,
    RareDisclosure: lambda leaf, orders: np.inf,
    dpa.RepeatAndSelectDpEvent: _selected_rdp,
    _events.ReplaceSampledGaussian: _divergences.sampled_gaussian_rdp,
    _events.ThresholdBit: _divergences.bit_rdp,
    WorstOf: lambda leaf, orders: np.max([_rdp(_leaves_of(option), orders) for option in leaf.events], axis=0),
}


def _squared(sensitivity: float, sigma: float) -> np.float64:
    """Square of their ratio, inf without noise."""
    with np.errstate(divide="ignore", over="ignore", under="ignore"):  # inf and _SMALLEST are what they stand for
        ratio = np.float64(sensitivity) / np.float64(sigma)
        squared: np.float64 = np.maximum(ratio * ratio, _SMALLEST)
        return squared


@lru_cache(maxsize=256)
def _rdp_on_the_grid(leaves: Leaves) -> NDArray[np.float64]:
    return _rdp(leaves, RDP_ORDERS)


def _mu_squared(leaves: Leaves) -> float | None:
    """Sum of squared Gaussian costs; None where a release is not a post-processing of Gaussian noise."""
    costs = []
    for leaf, times in leaves:
        if isinstance(leaf, dpa.GaussianDpEvent):
            scale = leaf.noise_multiplier
        elif isinstance(leaf, _BITS) and leaf.noise == "gaussian":
            scale = leaf.sigma / (1.0 if isinstance(leaf, _events.ThresholdBit) else math.sqrt(2.0))
        elif isinstance(leaf, WorstOf):
            worst = _worst([_mu_squared(_leaves_of(option)) for option in leaf.events])
            if worst is None:
                return None
            costs.append(times * worst)
            continue
        else:
            return None
        costs.append(times / scale / scale if scale > 0 else math.inf)
    return max(math.fsum(costs), _SMALLEST) if costs else 0.0


def _is_sampled(leaf: DpEvent) -> bool:
    return isinstance(leaf, dpa.PoissonSampledDpEvent | _events.ReplaceSampledGaussian)


def _noise_of(leaf: DpEvent) -> float:
    """Noise of a sampled release, or less."""
    noise = leaf.noise_multiplier if isinstance(leaf, _events.ReplaceSampledGaussian) else leaf.event.noise_multiplier
    return min(float(noise), _MOST_NOISE)


def _largest_loss(leaf: DpEvent) -> float:
    """About the largest loss of one release, but for a mass below ``TAIL_MASS``."""
    if not _is_sampled(leaf):  # Gaussians and bits are as wide as their accountant makes them
        return pure_epsilon(leaf) or 0.0
    mu = getattr(leaf, "difference", 1.0) / _noise_of(leaf)
    return mu * mu / 2 + 9 * mu


def _typical_loss(leaf: DpEvent) -> float:
    """Root of the mean square of the loss of one sampled Gaussian."""
    return float(leaf.sampling_probability) * math.sqrt(math.expm1(min(_noise_of(leaf) ** -2, 700.0)))


def _grid(leaves: Leaves, coarseness: int = 1) -> float:
    """Grid of privacy losses: a fortieth of the typical loss of *one* release, since rounding adds to its variance and
    both add up over the steps. That overstates ε by about 5e-5 of it, at 400 steps as at 20 000."""
    grids = []
    for leaf, _ in leaves:
        if isinstance(leaf, (*_BITS, dpa.RandomizedResponseDpEvent)):
            # order-2 divergence ≈ variance of the loss: its root is the typical size of one bit's loss
            typical = math.sqrt(float(_RDP[type(leaf)](leaf, np.array([2.0]))[0]))
            grids.append(min(max(typical / 40, 1e-6), _GRID))
        elif _is_sampled(leaf):
            finest, coarsest = _SAMPLED_GRIDS
            grids.append(coarseness * min(max(_typical_loss(leaf) / 40, finest), coarsest))
        elif not isinstance(leaf, dpa.GaussianDpEvent):
            grids.append(_GRID)
    return min(grids)
