"""A second opinion on ε: bounds recomputed from an event without the accountants that certified them.

Where dp-accounting knows a release, its own code computes the bound. The other releases (bits of votes, worst cases,
sampled Gaussians under replacement closer than the worst, discrete Gaussians) are written anew here, from their
definitions, and share no line with ``_accountants``. Each route is a proof of its own, so a claim has to reach the
smallest of the bounds.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import dp_accounting as dp
import numpy as np
from dp_accounting.dp_event import RandomizedResponseDpEvent, RepeatAndSelectDpEvent
from dp_accounting.pld import pld_pmf, privacy_loss_distribution as pld
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant
from scipy import stats
from scipy.integrate import simpson
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, logsumexp

from skfairdp._typing import Floats, Ints
from skfairdp.privacy import _events as ours

_GRIDS = 50.0, 200.0  # steps of the privacy loss per typical loss of one release: the finer one decides
_CURVED = (ours.ThresholdBit, ours.ArgmaxBit)
_LOSSY = (dp.PoissonSampledDpEvent, dp.LaplaceDpEvent, RandomizedResponseDpEvent, ours.ReplaceSampledGaussian)


Releases = list[tuple[Any, int]]
_ENOUGH = 60.0  # seconds, roughly; all but the largest honest events need a hundredth of it
_MOST_POINTS = 2e7  # of a privacy loss distribution
_COARSER = 100.0  # than the typical loss of a release asks for: beyond it no ε of use comes out
_NESTED = 6  # worst cases inside of one another


def check_effort(events: Sequence[Any]) -> None:
    """Refuse events that would hold the computer for long, before anything of them is computed."""
    releases = [release for event in events for release in releases_of(event)]
    lossy = any(isinstance(leaf, _LOSSY) for leaf in _nodes(releases))
    if not math.fsum(_effort(leaf, lossy, 1.0, 0) for leaf, _ in releases) <= _ENOUGH:
        raise ValueError(
            "its events are too large to be computed again: too many unlike releases, too many teachers or values, "
            "noise next to none, or too many worst cases inside of others"
        )


def _nodes(releases: Releases) -> Iterator[Any]:
    for leaf, _ in releases:
        yield leaf
        for option in _options(leaf):
            yield from _nodes(option)


def _effort(leaf: Any, lossy: bool, times: float, nested: int) -> float:
    """Seconds, roughly. Of what is selected only divergences are computed, for a Poisson law again at every order."""
    if options := _options(leaf):
        nested += 1
        if nested > _NESTED:
            return math.inf
        if isinstance(leaf, RepeatAndSelectDpEvent):
            times *= 4.0 if math.isinf(leaf.shape) else 0.25
        # a chosen kind of trial, such as a candidate of a search on folds, has releases that others have as well
        unlike = dict.fromkeys(part for option in options for part, _ in option)
        return math.fsum(_effort(part, lossy, times, nested) for part in unlike)
    if isinstance(leaf, _CURVED):
        rows, reach = 8.0 * leaf.n_teachers, 28 * leaf.sigma
        lattice = 0.0 if leaf.noise == "gaussian" else 2e-8 * (2 * rows + reach) * (2 + 28 * min(leaf.sigma, 20.0))
        return times * rows * (1e-4 if lossy else 2e-5) + lattice
    return times * (0.4 if isinstance(leaf, _LOSSY) else 0.01)


def releases_of(event: Any) -> Releases:
    """Elementary releases of an event tree with their counts, in the order of the tree. They can be hashed, and of a
    worst case each option is there once."""
    found: dict[Any, int] = {}

    def walk(node: Any, times: int) -> None:
        if isinstance(node, dp.ComposedDpEvent):
            for part in node.events:
                walk(part, times)
        elif isinstance(node, dp.SelfComposedDpEvent):
            walk(node.event, times * node.count)
        elif isinstance(node, ours.WorstOf):
            options = {frozenset(releases): releases for releases in map(releases_of, node.events)}
            if len(options) == 1:  # the worst of several alike
                walk(_composed(next(iter(options.values()))), times)
            else:
                leaf = ours.WorstOf(tuple(map(_composed, options.values())))
                found[leaf] = found.get(leaf, 0) + times
        elif not isinstance(node, dp.NoOpDpEvent) and times:
            if isinstance(node, RepeatAndSelectDpEvent):
                node = RepeatAndSelectDpEvent(_composed(releases_of(node.event)), node.mean, node.shape)
            found[node] = found.get(node, 0) + times

    walk(event, 1)
    return [*found.items()]


@lru_cache(maxsize=4096)
def _options(leaf: Any) -> tuple[Releases, ...]:
    """What a worst case or a selection has inside; nothing of other releases."""
    inside = leaf.events if isinstance(leaf, ours.WorstOf) else ()
    return tuple(map(releases_of, (leaf.event,) if isinstance(leaf, RepeatAndSelectDpEvent) else inside))


class SecondOpinion:
    """Bounds for one event."""

    def __init__(self, event: Any) -> None:
        self.releases = releases_of(event)
        self.disclosed, hidden = _disclosed(self.releases)
        # Who is touched by one branch alone is exposed by its disclosures alone.
        alone = _branches(self.releases) if self.disclosed and _one_worst_case(self.releases) else []
        self._alone = [SecondOpinion(_composed(branch) if branch else dp.NoOpDpEvent()) for branch in alone]
        if self.disclosed:
            self.releases = hidden
            event = _composed(hidden) if hidden else dp.NoOpDpEvent()
        self.event = event
        self._losses: dict[tuple[int, float], Any] = {}

    @property
    def mu(self) -> float | None:
        """Root of summed squares of sensitivity over noise; None where a release is not made from Gaussian noise."""
        return None if self.disclosed else self._rest_mu

    @property
    def _rest_mu(self) -> float | None:
        squared = _mu_squared(self.releases)
        return None if squared is None else math.sqrt(squared)

    @property
    def accountants(self) -> set[str]:
        """Names of those that can certify these releases: "gdp" and "pure" where all of them have such a cost."""
        found = {"pld", "rdp"} | ({"gdp"} if self._rest_mu is not None else set())
        if _pure(self.releases) is not None:
            found.add("pure")
        return found.union(*(option.accountants for option in self._alone))

    def epsilon(self, delta: float, claim: float = -math.inf) -> float:
        """Smallest proven ε at δ, looked for until it is no more than the claim."""
        if any(isinstance(leaf, dp.NonPrivateDpEvent) for leaf in _nodes(self.releases)):
            return math.inf
        if self._alone and delta > 0:
            return max(option.epsilon(delta, claim) for option in self._alone)
        if self.disclosed:
            if delta <= self.disclosed:
                return math.inf
            delta = (delta - self.disclosed) / (1 - self.disclosed)  # δ = P + (1 - P) δ of the rest
        pure = _pure(self.releases)
        best = math.inf if pure is None else pure
        coarse, fine = (partial(self._by_losses, fineness=fineness) for fineness in _GRIDS)
        routes = (self._gaussian, self._inclusions, coarse, self._renyi, fine)
        for route in routes if delta > 0 else ():
            if best <= claim:
                break
            bound = route(delta)
            best = best if bound is None else min(best, bound)
        return best

    def _gaussian(self, delta: float) -> float | None:
        mu = self._rest_mu
        if mu is None or mu == 0 or math.isinf(mu):
            return mu
        return float(dp.get_epsilon_gaussian(1 / mu, delta, tol=1e-13))

    def _inclusions(self, delta: float) -> float | None:
        """All that was sampled at most so often is a plain Gaussian; more often happens with a share of δ."""
        bounds = [_inclusion_bound(branch, delta) for branch in _branches(self.releases)]
        return None if any(b is None for b in bounds) else max((b for b in bounds if b is not None), default=0.0)

    def _renyi(self, delta: float) -> float | None:
        def converted(order: float) -> float:  # Canonne, Kamath & Steinke 2020, Proposition 12
            terms = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
            return max(0.0, _renyi(self.releases, order) + terms)

        bounds = [_smallest(converted)]
        accountant = RdpAccountant()
        # Its series for sampled Gaussians does not always converge, and says so on standard error.
        sampled = any(isinstance(leaf, dp.PoissonSampledDpEvent) for leaf in _nodes(self.releases))
        if not sampled and accountant.supports(self.event):
            bounds.append(float(accountant.compose(self.event).get_epsilon(delta)))
        return min(bounds)

    def _by_losses(self, delta: float, fineness: float) -> float | None:
        """From privacy loss distributions, a worst case taken branch by branch."""
        if not any(isinstance(leaf, _LOSSY) for leaf in _nodes(self.releases)):
            return None  # nothing to gain over the closed form, and over the divergences of bits
        bounds = []
        for j, branch in enumerate(_branches(self.releases)):
            if _mu_squared(branch) is not None:
                bounds.append(SecondOpinion(_composed(branch))._gaussian(delta) or 0.0)
                continue
            if (j, fineness) not in self._losses:
                self._losses[j, fineness] = _loss_distribution(branch, fineness)
            losses = self._losses[j, fineness]
            if losses is None:
                return None
            bounds.append(_epsilon_of_losses(losses, delta))
        return max(bounds, default=0.0)


def _disclosed(releases: Releases) -> tuple[float, Releases]:
    """The chance that a rare disclosure happens, and the other releases; of a worst case the largest chance."""
    log_not, rest = 0.0, []
    for leaf, times in releases:
        if isinstance(leaf, ours.RareDisclosure):
            log_not += times * (math.log1p(-leaf.probability) if leaf.probability < 1 else -math.inf)
            continue
        if isinstance(leaf, ours.WorstOf):
            parts = [*map(_disclosed, _options(leaf))]
            most = max(chance for chance, _ in parts)
            if most:
                log_not += times * (math.log1p(-most) if most < 1 else -math.inf)
                leaf = ours.WorstOf(tuple(_composed(part) if part else dp.NoOpDpEvent() for _, part in parts))
        rest.append((leaf, times))
    return -math.expm1(log_not), rest


def _composed(releases: Releases) -> Any:
    """Their event, which can be hashed as they can."""
    return dp.ComposedDpEvent(tuple(dp.SelfComposedDpEvent(leaf, times) for leaf, times in releases))


# ---- a record replaced by another one --------------------------------------------------------------------------------
def to_replace_one(event: Any) -> Any:
    """The event of the same releases where a record becomes another one, of an event for none in its place: by what
    each event promises for one step, record → none, of which the change is two."""
    parts: list[Any] = [dp.SelfComposedDpEvent(_two_steps(leaf), times) for leaf, times in releases_of(event)]
    return dp.ComposedDpEvent(parts) if parts else dp.NoOpDpEvent()


def _two_steps(leaf: Any) -> Any:
    if isinstance(leaf, ours.WorstOf):
        return ours.WorstOf(tuple(to_replace_one(option) for option in leaf.events))
    if isinstance(leaf, RepeatAndSelectDpEvent):
        return RepeatAndSelectDpEvent(to_replace_one(leaf.event), leaf.mean, leaf.shape)
    if isinstance(leaf, dp.GaussianDpEvent | dp.LaplaceDpEvent):
        return type(leaf)(0.5 * leaf.noise_multiplier)
    if isinstance(leaf, dp.PoissonSampledDpEvent):  # the null record's mean 0 gives way to a mean -1
        q, s = leaf.sampling_probability, leaf.event.noise_multiplier
        return dp.GaussianDpEvent(s / 2) if q == 1 or s == 0 else ours.ReplaceSampledGaussian(q, s, 2.0)
    if isinstance(leaf, ours.ReplaceSampledGaussian):
        far = min(2 * leaf.difference, 2.0)
        return ours.ReplaceSampledGaussian(leaf.sampling_probability, leaf.noise_multiplier, far)
    if isinstance(leaf, ours.RareDisclosure):
        return ours.RareDisclosure(min(2 * leaf.probability, 1.0))
    if isinstance(leaf, RandomizedResponseDpEvent):
        odds = math.exp(min(-2 * (_pure([(leaf, 1)]) or 0.0), 0.0))  # of a lie, between two answers
        return RandomizedResponseDpEvent(2 * odds / (1 + odds), 2) if odds > 1e-300 else dp.NonPrivateDpEvent()
    if isinstance(leaf, (ours.DiscreteGaussian, *_CURVED)):
        moved = 2 * getattr(leaf, "sensitivity", math.sqrt(2) if isinstance(leaf, ours.ArgmaxBit) else 1.0)
        if getattr(leaf, "noise", "") == "gaussian":
            return dp.GaussianDpEvent(leaf.sigma / moved)
        return ours.DiscreteGaussian(leaf.sigma, moved) if math.isfinite(moved) else dp.NonPrivateDpEvent()
    return dp.NonPrivateDpEvent()


# ---- Gaussian and pure costs -----------------------------------------------------------------------------------------
def _worst(cost: Callable[[Releases], float | None], leaf: Any) -> float | None:
    """Of the options of a worst case; None where one of them has no such cost."""
    costs = [*map(cost, _options(leaf))]
    return None if any(part is None for part in costs) else max(part for part in costs if part is not None)


def _summed(releases: Releases, cost_of: Callable[[Any], float | None]) -> float | None:
    costs = [(cost_of(leaf), times) for leaf, times in releases]
    if any(cost is None for cost, _ in costs):
        return None
    return math.fsum(times * cost for cost, times in costs if cost is not None)


def _mu_squared(releases: Releases) -> float | None:
    def cost_of(leaf: Any) -> float | None:
        if isinstance(leaf, dp.GaussianDpEvent):
            return math.inf if leaf.noise_multiplier == 0 else float(leaf.noise_multiplier**-2)
        if isinstance(leaf, _CURVED) and leaf.noise == "gaussian":
            # one vote moves a count by one, and two counts by one each
            return float((1 if isinstance(leaf, ours.ThresholdBit) else 2) * leaf.sigma**-2)
        return _worst(_mu_squared, leaf) if isinstance(leaf, ours.WorstOf) else None

    return _summed(releases, cost_of)


def _pure(releases: Releases) -> float | None:
    def cost_of(leaf: Any) -> float | None:
        if isinstance(leaf, RandomizedResponseDpEvent):
            p, k = leaf.noise_parameter, leaf.num_buckets
            return 0.0 if k == 1 else math.inf if p == 0 else math.log((1 - p + p / k) / (p / k))
        if isinstance(leaf, dp.LaplaceDpEvent):
            return math.inf if leaf.noise_multiplier == 0 else 1 / leaf.noise_multiplier
        if isinstance(leaf, RepeatAndSelectDpEvent) and math.isfinite(leaf.shape):
            base = _pure(_options(leaf)[0])
            return None if base is None else (2 + leaf.shape) * base
        return _worst(_pure, leaf) if isinstance(leaf, ours.WorstOf) else None

    return _summed(releases, cost_of)


def _inclusion_bound(releases: Releases, delta: float) -> float | None:
    kinds = dp.PoissonSampledDpEvent | ours.ReplaceSampledGaussian
    sampled = [(leaf, times) for leaf, times in releases if isinstance(leaf, kinds)]
    rest = _mu_squared([pair for pair in releases if pair not in sampled])
    if not sampled or rest is None or math.isinf(rest):
        return None
    if any(_noise_of(leaf) == 0 for leaf, _ in sampled):
        return math.inf
    q, times = np.array([(float(leaf.sampling_probability), times) for leaf, times in sampled]).T
    # how far apart the contributions of two neighbours are, over the noise
    reach = np.array([float(getattr(leaf, "difference", 1.0) / _noise_of(leaf)) for leaf, _ in sampled])
    shares = np.arange(1, 40) / 40 * delta / len(sampled)  # of δ for the samplings, the rest for the noise
    most = np.maximum(stats.binom.isf(shares[:, None], times, q), 1)
    bounds = []
    for counts in np.unique(most, axis=0):  # many shares allow the same counts
        left = delta - float(stats.binom.sf(counts, times, q).sum())
        if left > 0:
            squared = rest + float(counts @ reach**2)
            bounds.append(float(dp.get_epsilon_gaussian(squared**-0.5, left, tol=1e-13)))
    return min(bounds, default=None)


def _noise_of(leaf: Any) -> Any:
    return (leaf.event if hasattr(leaf, "event") else leaf).noise_multiplier  # of sampled Gaussians


# ---- Rényi divergences -----------------------------------------------------------------------------------------------
def _smallest(bound: Callable[[float], float]) -> float:
    """The smallest bound over the order: over a wide grid first, then beside its best point."""
    logs = np.linspace(math.log(5e-3), math.log(1e6), 90)  # of order - 1
    values = [bound(1 + math.exp(v)) for v in logs]
    best = int(np.argmin(values))
    if not math.isfinite(values[best]):
        return values[best]
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    how: dict[str, Any] = {"method": "bounded", "options": {"xatol": 1e-7}}
    found = minimize_scalar(lambda v: bound(1 + math.exp(v)), bounds=(low, high), **how)
    return float(min(found.fun, values[best]))


def _renyi(releases: Releases, order: float) -> float:
    return math.fsum(times * _renyi_of(leaf, order) for leaf, times in releases)


def _renyi_of(leaf: Any, order: float) -> float:
    if isinstance(leaf, dp.GaussianDpEvent):
        return math.inf if leaf.noise_multiplier == 0 else order / (2 * leaf.noise_multiplier**2)
    if isinstance(leaf, ours.DiscreteGaussian):
        return order * leaf.sensitivity**2 / (2 * leaf.sigma**2)
    if isinstance(leaf, _CURVED):
        p1, p0, q1, q0 = _outcomes(leaf)
        terms = np.logaddexp(order * p1 + (1 - order) * q1, order * p0 + (1 - order) * q0)
        return max(0.0, float(terms.max()) / (order - 1))
    if isinstance(leaf, RandomizedResponseDpEvent):
        p, k = leaf.noise_parameter, leaf.num_buckets
        if k == 1 or p == 1:
            return 0.0
        if p == 0:
            return math.inf
        truth, lie = math.log(1 - p + p / k), math.log(p / k)
        answers = [order * truth + (1 - order) * lie, order * lie + (1 - order) * truth]
        answers += [math.log(k - 2) + lie] if k > 2 else []  # the answers that neither of the two values is
        return max(0.0, float(logsumexp(answers))) / (order - 1)
    if isinstance(leaf, dp.LaplaceDpEvent):
        return _laplace(leaf.noise_multiplier, order)
    if isinstance(leaf, dp.PoissonSampledDpEvent) and isinstance(leaf.event, dp.GaussianDpEvent):
        return _sampled(leaf.sampling_probability, leaf.event.noise_multiplier, order, far=0.0)
    if isinstance(leaf, ours.ReplaceSampledGaussian):
        return _sampled(leaf.sampling_probability, leaf.noise_multiplier, order, far=-1.0)
    if isinstance(leaf, ours.WorstOf):
        return max(_renyi(option, order) for option in _options(leaf))
    return _selected(leaf, order) if isinstance(leaf, RepeatAndSelectDpEvent) else math.inf


def _laplace(scale: float, order: float) -> float:
    """By the three pieces of the density ratio: left of both means, right of both, and between them."""
    if scale == 0:
        return math.inf
    shift = 1 / scale
    left = math.log(0.5) + (order - 1) * shift
    right = math.log(0.5) - order * shift
    slope = 2 * order - 1
    # Between the means the integrand is exp((order - 1) shift - slope t) / (2 scale), t from 0 to 1 / scale.
    between = math.log(0.5) + (order - 1) * shift + math.log(-math.expm1(-slope * shift) / slope)
    return max(0.0, float(logsumexp([left, right, between]))) / (order - 1)


@lru_cache(maxsize=4096)
def _sampled(q: float, noise: float, order: float, far: float) -> float:
    """Between a mixture of N(0) and N(1) and, of the neighbour, N(0) (far = 0) or a mixture with N(far)."""
    if noise == 0 or order > 300:
        return math.inf  # no less than it is
    if noise < 0.05:  # next to none: as if every row were sampled
        return order * (1 - far) ** 2 / (2 * noise**2)
    x = np.linspace(-3 - 16 * noise, 2 * order + 2 + 16 * noise, 1 + 2 * int(24 * (order + 3 + 16 * noise) / noise))
    plain = -0.5 * (x / noise) ** 2  # up to a constant, which is taken off at the end
    with np.errstate(divide="ignore"):
        rest = np.log1p(-q) + plain if q < 1 else np.full(len(x), -np.inf)
        upper = np.logaddexp(rest, math.log(q) - 0.5 * ((x - 1) / noise) ** 2)
        lower = plain if far == 0 else np.logaddexp(rest, math.log(q) - 0.5 * ((x - far) / noise) ** 2)
    exponent = order * upper + (1 - order) * lower
    top = float(exponent.max())
    total = float(simpson(np.exp(exponent - top), dx=float(x[1] - x[0])))
    return max(0.0, top + math.log(total) - math.log(noise * math.sqrt(2 * math.pi))) / (order - 1)


def _selected(leaf: Any, order: float) -> float:
    """The best of a random number of runs (Papernot & Steinke 2022, Theorems 2 and 6)."""
    (base,) = _options(leaf)
    mean: float = leaf.mean
    own = _renyi(base, order) + math.log(mean) / (order - 1)
    if math.isinf(leaf.shape):
        return own + mean * _delta_of(leaf.event, math.log1p(1 / (order - 1)))
    return own + _selection_constant(leaf)


@lru_cache(maxsize=64)
def _selection_constant(leaf: Any) -> float:
    """What the random number of runs adds at every order: the stopping rate γ, and the order that suits it best."""
    eta: float = leaf.shape
    mean: float = leaf.mean

    def expected(gamma: float) -> float:
        if eta == 0:
            return (1 / gamma - 1) / math.log(1 / gamma)
        left: float = gamma**eta
        return eta * (1 - gamma) / (gamma * (1 - left))

    rate: float = brentq(lambda log_gamma: expected(math.exp(log_gamma)) - mean, -700.0, -1e-9, xtol=1e-13)
    (base,) = _options(leaf)
    return (1 + eta) * _smallest(lambda order: (1 - 1 / order) * _renyi(base, order) - rate / order)


@lru_cache(maxsize=4096)
def _delta_of(event: Any, epsilon: float) -> float:
    """Smallest δ at ε that the divergences of one run prove."""
    base = releases_of(event)

    def log_delta(order: float) -> float:
        divergence = _renyi(base, order)
        if divergence == 0:
            return -math.inf
        by_order = (order - 1) * (divergence - epsilon + math.log1p(-1 / order)) - math.log(order)
        return min(by_order, 0.5 * math.log(-math.expm1(-divergence)), 0.0)

    return math.exp(_smallest(log_delta))


# ---- bits of votes ---------------------------------------------------------------------------------------------------
@lru_cache(maxsize=64)
def _outcomes(leaf: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Log-probabilities of 1 and of 0, for every count of votes and for every one that a changed vote makes of it."""
    n = leaf.n_teachers
    shifts: tuple[int, ...] = (1,)
    if isinstance(leaf, ours.ThresholdBit):
        counts = np.arange(n + 1)
    else:
        shifts = (1, 2) if leaf.restricted else (2,)
        counts = np.arange(-n, n + 1, 1 if leaf.restricted else 2)
    ones, zeros = _bits(leaf, counts)
    step = int(counts[1] - counts[0])
    pairs = []
    for shift in shifts:
        k = shift // step
        here, there = (ones[:-k], zeros[:-k]), (ones[k:], zeros[k:])
        pairs += [(*here, *there), (*there, *here)]
    first, second, third, fourth = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return first, second, third, fourth


def _bits(leaf: Any, counts: Ints) -> tuple[Floats, Floats]:
    """Log-probability of 1 and of 0 where the maximum (or the lead of the second class) is so many votes."""
    spread = leaf.sigma if isinstance(leaf, ours.ThresholdBit) else math.sqrt(2) * leaf.sigma
    needed = (leaf.threshold if isinstance(leaf, ours.ThresholdBit) else 0.0) - counts
    if leaf.noise == "gaussian":
        return log_ndtr(-needed / spread), log_ndtr(needed / spread)
    # Whole numbers: 1 where the noise is at least ceil(needed), and, for two classes, more than -count: ties go first.
    least = (np.ceil(needed) if isinstance(leaf, ours.ThresholdBit) else 1.0 - counts).astype(np.int64)
    x, log_mass = _lattice(leaf.sigma, isinstance(leaf, ours.ArgmaxBit), int(np.abs(least).max()))
    below = np.logaddexp.accumulate(log_mass)
    above = np.logaddexp.accumulate(log_mass[::-1])[::-1]
    at = least - int(x[0])
    return above[at] - below[-1], below[at - 1] - below[-1]


def _lattice(sigma: float, difference: bool, reach: int) -> tuple[Ints, Floats]:
    """Log-masses of the discrete Gaussian, or of the difference of two, up to a constant."""
    far = reach + math.ceil(14 * sigma) + 4
    x = np.arange(-far, far + 1)
    if not difference:
        return x, -(x**2) / (2 * sigma**2)
    if sigma > 20:  # the lattice shows in the 500th digit only
        return x, -(x**2) / (4 * sigma**2)
    # The other of the two is -x/2 and a little more or less.
    found = np.full(len(x), -np.inf)
    for near in range(-math.ceil(14 * sigma) - 4, math.ceil(14 * sigma) + 5):
        y = near - x // 2
        found = np.logaddexp(found, -(y**2 + (y + x) ** 2) / (2 * sigma**2))
    return x, found


# ---- privacy losses --------------------------------------------------------------------------------------------------
def _one_worst_case(releases: Releases) -> bool:
    return [times for leaf, times in releases if isinstance(leaf, ours.WorstOf)] == [1]


def _branches(releases: Releases) -> list[Releases]:
    """One for each option of a single worst case; of several worst cases all options together, which is no less."""
    worst = [(leaf, times) for leaf, times in releases if isinstance(leaf, ours.WorstOf)]
    rest = [(leaf, times) for leaf, times in releases if not isinstance(leaf, ours.WorstOf)]
    if not worst:
        return [rest]
    if _one_worst_case(releases):
        parts = [*_options(worst[0][0])]
    else:
        parts = [[(leaf, times * n) for option, times in worst for part in _options(option) for leaf, n in part]]
    return [branch for part in parts for branch in _branches([*rest, *part])]


def _typical(leaf: Any) -> float | None:
    """Size of the privacy loss of one release, for the grid. None: the release brings no grid of its own."""
    if isinstance(leaf, dp.GaussianDpEvent):
        return None
    if isinstance(leaf, dp.PoissonSampledDpEvent | ours.ReplaceSampledGaussian):
        loss = leaf.sampling_probability * math.sqrt(math.expm1(min(_noise_of(leaf) ** -2, 700.0)))
        least = 4e-4
        if isinstance(leaf, dp.PoissonSampledDpEvent):  # rare batches lose less; finer than an eighth, rounding counts
            rare = math.log1p(leaf.sampling_probability * math.expm1(min(_largest(leaf), 700.0)))
            least = min(least, max(loss * _GRIDS[0] / 8, rare / 20_000))
        return min(max(loss, least), max(0.08, _largest(leaf) / 330))
    if isinstance(leaf, (*_CURVED, RandomizedResponseDpEvent)):
        return min(max(math.sqrt(_renyi_of(leaf, 2.0)), 4e-5), 4e-3)
    return 4e-3


def _loss_distribution(releases: Releases, fineness: float) -> Any:
    """Pessimistic privacy losses of all releases together; None where one of them has none here."""
    sizes = [size for leaf, _ in releases if (size := _typical(leaf)) is not None]
    gaussians = [(leaf, times) for leaf, times in releases if isinstance(leaf, dp.GaussianDpEvent)]
    squared = _mu_squared(gaussians)
    if squared is None or math.isinf(squared):
        return None
    rest = [(leaf, times) for leaf, times in releases if not isinstance(leaf, dp.GaussianDpEvent)]
    others = [(leaf, times) for leaf, times in rest if _pure([(leaf, 1)]) != 0]
    if not all(isinstance(leaf, (*_LOSSY, *_CURVED)) for leaf, _ in others):
        return None
    grid = min(sizes, default=4e-3) / fineness
    coarser = max(sum(_points(leaf, times, grid) for leaf, times in others) / _MOST_POINTS, 1.0)
    if coarser > _COARSER:
        return None
    grid *= coarser
    if largest := max((_pure([(leaf, 1)]) or 0.0 for leaf, _ in others), default=0.0):
        # The largest loss, which many answers have, is on the grid: above a point it would count as the next one.
        grid = largest / math.ceil(largest / grid) * (1 + 1e-13)
    total = pld.from_gaussian_mechanism(squared**-0.5, value_discretization_interval=grid) if squared else None
    for leaf, times in others:
        part = _losses_of_many(leaf, times, grid)
        if part is None:
            return None
        total = part if total is None else total.compose(part)
    return total


def _points(leaf: Any, times: int, grid: float) -> float:
    """Of the grid, that all privacy losses of a release take up."""
    if hasattr(leaf, "sampling_probability"):
        one = _largest(leaf)
        mean = float(leaf.sampling_probability) * one  # of its losses, at most; their square is at most one * mean
        return 2 * min(times * one, one + times * mean + 10 * math.sqrt(times * one * mean)) / grid
    pure = _pure([(leaf, 1)])
    one = 50.0 if pure is None else pure
    mean = _renyi_of(leaf, 2.0)
    return 2 * min(times * one, one + times * mean + 40 * math.sqrt(times * mean)) / grid


@lru_cache(maxsize=16)
def _losses_of_many(leaf: Any, times: int, grid: float) -> Any:
    one = _losses_of(leaf, grid)
    return one if one is None or times == 1 else one.self_compose(times)


def _largest(leaf: Any) -> float:
    """The largest loss of one sampled Gaussian, but for next to no mass."""
    mu = getattr(leaf, "difference", 1.0) / max(_noise_of(leaf), 1e-150)
    return float(min(mu * mu / 2 + 9 * mu, 1e300))


def _epsilon_of_losses(losses: Any, delta: float) -> float:
    with np.errstate(over="ignore"):
        bound = float(losses.get_epsilon_for_delta(delta))
        if math.isnan(bound):
            return math.inf
        if not 700 < bound < math.inf:
            return bound
        # Of losses that large dp-accounting leaves out a term, for their exp(-loss) is 0: its δ has it.
        low, high = 0.0, bound
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if losses.get_delta_for_epsilon(middle) > delta else (low, middle)
        return high


def _losses_of(leaf: Any, grid: float) -> Any:
    at: dict[str, Any] = {"value_discretization_interval": grid}
    if isinstance(leaf, dp.PoissonSampledDpEvent) and isinstance(leaf.event, dp.GaussianDpEvent):
        at["sampling_prob"] = leaf.sampling_probability
        return pld.from_gaussian_mechanism(leaf.event.noise_multiplier, **at)
    if isinstance(leaf, dp.LaplaceDpEvent):
        return pld.from_laplace_mechanism(leaf.noise_multiplier, **at)
    if isinstance(leaf, RandomizedResponseDpEvent):
        return pld.from_randomized_response(leaf.noise_parameter, leaf.num_buckets, **at)
    if isinstance(leaf, ours.ReplaceSampledGaussian) and leaf.difference == 2:
        # dp-accounting reads the multiplier as noise over the norm of a contribution, at distance 2.
        at |= {"sampling_prob": leaf.sampling_probability, "neighboring_relation": dp.NeighboringRelation.REPLACE_ONE}
        return pld.from_gaussian_mechanism(leaf.noise_multiplier, **at)
    return _from_curve(leaf, grid) if isinstance(leaf, (*_CURVED, ours.ReplaceSampledGaussian)) else None


def _from_curve(leaf: Any, grid: float) -> Any:
    deltas = _bit_curve if isinstance(leaf, _CURVED) else _replaced_curve
    high = 1e-3  # no further: each point without mass adds its rounding to it
    while deltas(leaf, np.array([high]))[0] > 1e-18 and high < 500:
        high *= 1.2
    steps = math.ceil(high / grid) + 1
    curve = deltas(leaf, np.arange(-steps, steps + 1, dtype=np.float64) * grid)
    curve = np.clip(np.minimum.accumulate(curve), 0.0, 1.0)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, -steps, steps, curve)
    return pld.PrivacyLossDistribution(pmf)


def _bit_curve(leaf: Any, losses: Floats) -> Floats:
    p1, p0, q1, q0 = (np.exp(column)[:, None] for column in _outcomes(leaf))
    out = []
    for block in np.array_split(losses, max(1, len(losses) * len(p1) // 10**6)):
        g = np.exp(block)[None, :]
        out.append((np.maximum(p1 - g * q1, 0) + np.maximum(p0 - g * q0, 0)).max(axis=0))
    return np.concatenate(out)


def _replaced_curve(leaf: ours.ReplaceSampledGaussian, losses: Floats) -> Floats:
    """``q sup_t [Φ(t) - g' ((1-b) Φ(t - c/s) + b Φ(t - D/s))]`` with ``g' = 1 + (g-1)/q`` and ``b = g/g'``. At the
    supremum ``g' ((1-b) exp(ct/s - c²/2s²) + b exp(Dt/s - D²/2s²)) = 1``. The logarithm of the left side is convex and
    rises, so Newton's steps from the right of its root never pass it."""
    q, near, far = leaf.sampling_probability, 1 / leaf.noise_multiplier, leaf.difference / leaf.noise_multiplier
    size = np.abs(losses)
    scale = 1 + np.expm1(size) / q
    with np.errstate(divide="ignore"):
        first, second = np.log(np.maximum(scale - np.exp(size), 0.0)), size  # logs of g' (1-b) and of g' b
    t = np.full(len(losses), max(near, far))
    for _ in range(100):
        a, b = first + near * t - near**2 / 2, second + far * t - far**2 / 2
        value = np.logaddexp(a, b)
        slope = near * np.exp(a - value) + far * np.exp(b - value)
        t = t - value / slope
    share = np.exp(size) / scale
    inside = stats.norm.cdf(t) - scale * ((1 - share) * stats.norm.cdf(t - near) + share * stats.norm.cdf(t - far))
    values = q * np.maximum(inside + 1e-15 * stats.norm.cdf(t), 0.0)
    mirrored = -np.expm1(np.minimum(losses, 0)) + np.exp(np.minimum(losses, 0)) * values
    return np.asarray(np.where(losses >= 0, values, mirrored))
