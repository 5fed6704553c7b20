"""Divergences between the outputs on neighbouring data, of one release: rounded up, at every order or at every loss."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import binom

from skfairdp.privacy._dp_accounting import DpEvent, LaplaceDpEvent, PoissonSampledDpEvent, RandomizedResponseDpEvent
from skfairdp.privacy._events import ArgmaxBit, ReplaceSampledGaussian, ThresholdBit
from skfairdp.privacy._gdp import gdp_epsilon

Array = NDArray[np.float64]

_UNIT = 2.0**-53

# ---- one-bit releases: the worst pair of neighbouring vote counts, at every order -------------------------------
# A published bit reveals less than the noisy count behind it (about 2/π of its Rényi divergence). The bounds are
# suprema over all vote counts, so they depend on no data, hold under adaptive composition, and the supremum of the
# hockey-stick curves is again a valid curve with a dominating pair (Zhu, Dong & Wang 2022).
_BIT_LOG = 64 * _UNIT  # relative error of a log-probability: log_ndtr, its argument and the sums below, with room


def _discrete_gaussian_tails(sigma: float, low: int, high: int, *, difference: bool) -> tuple[Array, Array]:
    """Log P(N >= x) and log P(N < x) for integers x in low..high, N a discrete Gaussian or the difference of two, whose
    mass at x is exp(-x²/(4σ²)) times a theta function of the parity of x: no convolution is needed."""
    spread = sigma * (math.sqrt(2) if difference else 1)
    far = max(abs(low), abs(high))
    reach = math.ceil(math.hypot(far, 10 * spread)) + 2  # beyond lies less than exp(-50) of the tail at far
    plain = reach <= 35 * spread  # no mass underflows, and plain sums (of small numbers first) will do
    x = np.arange(-reach, reach + 1)
    if difference:
        y = np.arange(-math.ceil(8 * sigma) - 1, math.ceil(8 * sigma) + 2)
        even = np.log(np.exp(-((y / sigma) ** 2)).sum())
        odd = np.log(np.exp(-(((y - 0.5) / sigma) ** 2)).sum())
        log_mass = -((x / (2 * sigma)) ** 2) + np.where(x % 2 == 0, even, odd)
    else:
        log_mass = -((x / sigma) ** 2) / 2
    at = np.arange(low, high + 1) + reach
    if plain:
        mass = np.exp(log_mass)
        from_below = mass.cumsum()
        total = math.log(from_below[-1])
        return np.log(mass[::-1].cumsum()[::-1][at]) - total, np.log(from_below[at - 1]) - total
    from_above = np.logaddexp.accumulate(log_mass[::-1])[::-1]
    from_below = np.logaddexp.accumulate(log_mass)
    total = from_below[-1]
    return from_above[at] - total, from_below[at - 1] - total


@lru_cache(maxsize=256)
def _worst_pairs(event: ThresholdBit | ArgmaxBit) -> tuple[Array, Array, Array, Array]:
    """Log P(1), log P(0) on one vote count and on its neighbour, for all ordered neighbouring pairs."""
    n, of_threshold = int(event.n_teachers), isinstance(event, ThresholdBit)
    # The counts; of two classes the difference second - first, which has the parity of n and moves by 2 where all n
    # votes are on these.
    counts = np.arange(n + 1) if of_threshold else np.arange(-n, n + 1, 1 if event.restricted else 2)
    with np.errstate(over="ignore", divide="ignore"):
        if event.noise == "gaussian":
            shift, scale = (event.threshold, event.sigma) if of_threshold else (0, math.sqrt(2) * event.sigma)
            z = (counts - shift) / scale
            log_one, log_zero = log_ndtr(z), log_ndtr(-z)
        else:
            # Integer noise: counts + N >= T exactly when N >= ceil(T) - counts. Ties of two classes go to the first:
            # the second wins exactly when N2 - N1 >= 1 - difference.
            needed = (math.ceil(event.threshold) if of_threshold else 1) - counts
            low, high = int(needed.min()), int(needed.max())
            tails = _discrete_gaussian_tails(event.sigma, low, high, difference=not of_threshold)
            log_one, log_zero = (tail[needed - low] for tail in tails)
    pairs = []
    for step in [1, 2] if not of_threshold and event.restricted else [1]:
        here, there = slice(0, -step), slice(step, None)
        for left, right in ((here, there), (there, here)):
            pairs.append((log_one[left], log_zero[left], log_one[right], log_zero[right]))
    p1, p0, q1, q0 = (np.concatenate(column) for column in zip(*pairs, strict=True))
    for array in (p1, p0, q1, q0):
        array.setflags(write=False)  # cached: a caller must not change it
    return p1, p0, q1, q0


def bit_rdp(event: ThresholdBit | ArgmaxBit, orders: Array) -> Array:
    """Rényi divergence of the bit at every order, maximised over all neighbouring vote counts."""
    # Rounded up: every term of the moment falls with p's error and grows with q's.
    p1, p0, q1, q0 = (column[:, None] for column in _outward(event))
    orders = np.asarray(orders, dtype=float)
    if np.any(orders <= 1):
        raise ValueError("Rényi orders must be greater than 1.")
    out = np.empty(orders.shape)
    for start in range(0, len(orders), 64):  # blocks of orders keep the table in cache
        a = orders[None, start : start + 64]
        with np.errstate(invalid="ignore", over="ignore"):
            log_moment = np.logaddexp(a * p1 + (1 - a) * q1, a * p0 + (1 - a) * q0)
        log_moment[np.isnan(log_moment)] = np.inf  # no noise to speak of: a probability that no float holds
        out[start : start + 64] = ((log_moment + 8 * _UNIT) / (a - 1)).max(axis=0)
    return np.maximum(out, 0.0) * (1 + 8 * _UNIT)


def _outward(event: ThresholdBit | ArgmaxBit) -> tuple[Array, Array, Array, Array]:
    """The table with its errors against us: log-probabilities of the one nearer 0, of the other further from it."""
    p1, p0, q1, q0 = _worst_pairs(event)
    up = [np.minimum(log_p * (1 - _BIT_LOG) + _BIT_LOG, 0.0) for log_p in (p1, p0)]
    down = [log_q * (1 + _BIT_LOG) - _BIT_LOG for log_q in (q1, q0)]
    return up[0], up[1], down[0], down[1]


def bit_deltas(event: ThresholdBit | ArgmaxBit, epsilons: NDArray[np.floating]) -> Array:
    """Hockey-stick divergence of the bit at every ε (any sign), maximised over all neighbouring vote counts."""
    p1, p0, q1, q0 = (np.exp(column)[:, None] for column in _outward(event))
    out = np.empty(len(epsilons))
    for start in range(0, len(epsilons), 256):
        gamma = np.exp(epsilons[None, start : start + 256]) * (1 - 4 * _UNIT)
        out[start : start + 256] = (np.maximum(p1 - gamma * q1, 0) + np.maximum(p0 - gamma * q0, 0)).max(axis=0)
    return np.clip(out * (1 + 8 * _UNIT), 0.0, 1.0)


def max_loss(event: ThresholdBit | ArgmaxBit, tail_mass: float) -> float:
    """Privacy loss beyond which the bit's hockey-stick curve stays below ``tail_mass``."""
    p1, p0, q1, q0 = _worst_pairs(event)
    likely1, likely0 = p1 > math.log(tail_mass), p0 > math.log(tail_mass)
    return float(max(np.max((p1 - q1)[likely1], initial=0.0), np.max((p0 - q0)[likely0], initial=0.0)))


# ---- releases with a pure ε: exact ratios of probabilities ------------------------------------------------------
_PURE_UP = 1 + 2.0**-49  # above the rounding errors of the expressions below, and of a sum of them
_PURE_LOG = 2.0**-49  # the same of a logarithm of a sum near 1


def pure_epsilon(event: DpEvent) -> float | None:
    """ε of one release at δ = 0, rounded up; None where the event is no release with a pure ε of its own."""
    if isinstance(event, RandomizedResponseDpEvent):
        p, k = event.noise_parameter, event.num_buckets
        if k == 1 or p == 1:
            return 0.0
        return math.log1p(k * (1 - p) / p) * _PURE_UP if p > 0 else math.inf
    if isinstance(event, LaplaceDpEvent):
        return _PURE_UP / event.noise_multiplier if event.noise_multiplier > 0 else math.inf
    return None


def randomized_response_rdp(event: RandomizedResponseDpEvent, orders: Array) -> Array:
    """Rényi divergence between the answers to two values, rounded up: any two are alike."""
    p, k = event.noise_parameter, event.num_buckets
    if k == 1 or p == 1:
        return np.zeros(len(orders))
    if p == 0:
        return np.full(len(orders), np.inf)
    truth, lie = math.log1p(-p * (k - 1) / k), math.log(p / k)
    # Logarithms are negative: nearer 0 where they are added, further from it where they are taken away.
    terms = [
        orders * truth / _PURE_UP + (1 - orders) * lie * _PURE_UP,
        orders * lie / _PURE_UP + (1 - orders) * truth * _PURE_UP,
    ]
    if k > 2:
        terms.append(np.full(len(orders), math.log(k - 2) + lie / _PURE_UP))
    return np.asarray((np.maximum(logsumexp(terms, axis=0), 0.0) + _PURE_LOG) * _PURE_UP / (orders - 1))


def laplace_rdp(event: LaplaceDpEvent, orders: Array) -> Array:
    """Rényi divergence of the Laplace mechanism with unit sensitivity, rounded up (Mironov 2017, Proposition 6)."""
    b = event.noise_multiplier
    if b == 0:
        return np.full(len(orders), np.inf)
    with np.errstate(over="ignore"):
        far = np.log(orders / (2 * orders - 1)) + (orders - 1) / b * _PURE_UP
        near = np.log((orders - 1) / (2 * orders - 1)) - orders / b / _PURE_UP
        return np.asarray((np.maximum(np.logaddexp(far, near), 0.0) + _PURE_LOG) * _PURE_UP / (orders - 1))


# ---- Poisson-sampled Gaussians: quadrature, and the hockey-stick curve ------------------------------------------
_LARGEST_ORDER = 256.0  # beyond it a divergence is taken as infinite, which is no less than it is
_STEPS = 8  # nodes per noise standard deviation: the error of the trapezoidal rule falls faster than geometrically
_RULE_UP = 1 + 1e-9  # above the error of the rule
_MOST_NOISE = 1e9  # more is taken for that, which costs no less
_MOST_NODES = 1_000_000  # with noise so small that more were needed, a divergence is taken as infinite too


def sampled_gaussian_rdp(event: PoissonSampledDpEvent | ReplaceSampledGaussian, orders: Array) -> Array:
    """Rényi divergence of one release at each order: of records that come and go the larger direction (Mironov, Talwar
    & Zhang 2019, Theorem 5); of records that change between mixtures with means 1 and -1, which dominate every pair of
    norm 1 (:func:`replace_sampled_deltas`, D = 2c), whatever ``difference`` says."""
    replaced = isinstance(event, ReplaceSampledGaussian)
    noise = event.noise_multiplier if replaced else event.event.noise_multiplier
    if not noise > 0:
        return np.full(len(orders), np.inf)
    noise = min(noise, _MOST_NOISE)
    q = event.sampling_probability
    return np.array([_sampled_divergence(q, noise, replaced, float(order)) for order in orders])


@lru_cache(maxsize=4096)
def _sampled_divergence(q: float, noise: float, replaced: bool, order: float) -> float:
    step = noise / _STEPS
    if order > _LARGEST_ORDER or 2 * order + 30 * noise > _MOST_NODES * step:
        return np.inf
    # The integrand peaks between the means and what the order extrapolates from them.
    x = np.arange(-2.0 - 14 * noise, 2 * order + 1.0 + 14 * noise, step)

    def mixture(mean: float) -> Array:
        with np.errstate(divide="ignore"):
            parts = np.stack([-(x**2) / (2 * noise**2), -((x - mean) ** 2) / (2 * noise**2)])
            return np.asarray(logsumexp(parts, axis=0, b=np.array([[1 - q], [q]])))

    other = mixture(-1.0) if replaced else -(x**2) / (2 * noise**2)
    mixed = mixture(1.0)
    exponent = order * mixed + (1 - order) * other
    total = logsumexp(exponent)
    # Rounding: of every exponent relative to what it is the difference of, weighed as the terms are; of the sum itself.
    weights = np.exp(exponent - total)
    terms = order * np.abs(mixed) + (order - 1) * np.abs(other)
    rounding = _UNIT * (64 + 16 * float(weights @ np.where(np.isfinite(terms), terms, 0.0)))
    integral = float(total) + math.log(step / (noise * math.sqrt(2 * math.pi)))
    return (max(0.0, integral) * _RULE_UP + rounding) / (order - 1)


def replace_sampled_deltas(event: ReplaceSampledGaussian, losses: Array) -> Array:
    """Hockey-stick curve of a Poisson-sampled Gaussian whose neighbours replace a contribution.

    With contributions u, v of norm at most c and at most D apart, and noise s, the neighbours' outputs are
    P = (1-q) N(0, s²) + q N(u, s²) and Q, the same with v. For g = exp(loss) ≥ 1, with g' = 1 + (g-1)/q and b = g/g':

        H_g(P || Q) ≤ q sup_t [ Φ(t) - g' ((1-b) Φ(t - c/s) + b Φ(t - D/s)) ]

    (Advanced joint convexity of Balle, Barthe & Gaboardi 2018, then the Neyman-Pearson lemma for N(u) against each part
    of the mixture.) The rest of the sample is a common shift. Where D = 2c, u = c and v = -c attain it. For g < 1 by
    symmetry, H_g(P || Q) = 1 - g + g H_{1/g}(Q || P).
    """
    upper = _upper(event, np.abs(losses))
    return np.where(losses >= 0, upper, -np.expm1(np.minimum(losses, 0)) + np.exp(np.minimum(losses, 0)) * upper)


def largest_loss(event: ReplaceSampledGaussian) -> float:
    """A loss beyond which the curve stays below 1e-17."""
    high = 1.0
    while _upper(event, np.array([high]))[0] > 1e-17 and high < 600:
        high *= 1.25
    return high


def _upper(event: ReplaceSampledGaussian, losses: Array) -> Array:
    q, near, far = event.sampling_probability, 1 / event.noise_multiplier, event.difference / event.noise_multiplier
    scale = 1 + np.expm1(losses) / q  # g'
    share = np.exp(losses) / scale  # b

    def excess(t: Array) -> Array:
        # Both exponents rise with t: the bracket of the bound rises up to the root of this and falls after it.
        first, second = near * t - near**2 / 2, far * t - far**2 / 2
        parts = np.logaddexp(np.log1p(-np.minimum(share, 1 - 1e-300)) + first, np.log(share) + second)
        return parts + np.log(scale)

    low = np.full(len(losses), -1e3 - 1e3 / min(near, far))
    high = np.full(len(losses), max(near, far) + 1.0)
    with np.errstate(divide="ignore"):
        for _ in range(80):
            middle = (low + high) / 2
            above = excess(middle) > 0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
    t = (low + high) / 2
    inside = ndtr(t) - scale * ((1 - share) * ndtr(t - near) + share * ndtr(t - far))
    rounding = 4 * np.finfo(float).eps * ndtr(t)  # of the subtraction, charged to us
    return np.asarray(np.clip(q * (inside + rounding), 0.0, 1.0))


# ---- the best of a random number of runs (Papernot & Steinke 2022) ----------------------------------------------
_SELECTION_UP = 1 + 2.0**-40  # above the rounding errors of the sums below, and of the root γ


def stopping_parameter(mean: float, shape: float) -> float:
    """The γ in (0, 1) at which a truncated negative binomial law of this shape η has this mean (Definition 1): ``E K =
    η (1-γ) / (γ (1-γ^η))``; for η = 0 the limit ``(1/γ - 1) / ln(1/γ)``."""
    if not (mean > 1 and math.isfinite(mean)):
        raise ValueError(f"The mean number of trials must be greater than 1 and finite. Got {mean!r} instead.")

    def expected(log_gamma: float) -> float:
        odds = math.expm1(-log_gamma)  # 1/γ - 1
        return odds / -log_gamma if shape == 0 else shape * odds / -math.expm1(shape * log_gamma)

    low = -1.0
    while expected(low) < mean:
        low *= 2
    return math.exp(brentq(lambda v: expected(v) - mean, low, -1e-12, xtol=1e-14, rtol=1e-14))


def selection_rdp(orders: Array, rdp: Array, mean: float, shape: float, all_orders: Array, all_rdp: Array) -> Array:
    """Rényi divergence of the best of K runs, K random and secret, from that of one run at all orders h. Theorem 2:
    ``r'(l) = r(l) + (1+η) min_h [(1-1/h) r(h) + ln(1/γ)/h] + ln(E K)/(l-1)``. Theorem 6 (Poisson, mean m):
    ``r'(l) = r(l) + m δ(l) + ln(m)/(l-1)``, δ(l) being that of one run at ε = ln(1 + 1/(l-1))."""
    if math.isinf(shape):
        exposed = mean * _deltas_of_rdp(np.log1p(1 / (orders - 1)), all_orders, all_rdp)
        return (rdp + exposed + math.log(mean) / (orders - 1)) * _SELECTION_UP
    if mean == 1:
        return rdp  # one run, always
    try:
        gamma = stopping_parameter(mean, shape)
    except (ValueError, OverflowError):  # a law so extreme that no γ is found for it
        return np.full(len(orders), np.inf)
    constant = (1 + shape) * float(np.min((1 - 1 / all_orders) * all_rdp - math.log(gamma) / all_orders))
    return (rdp + constant + math.log(mean) / (orders - 1)) * _SELECTION_UP


def _deltas_of_rdp(epsilons: Array, orders: Array, rdp: Array) -> Array:
    """Smallest δ at each ε that the divergences prove (Canonne et al. 2020, Prop. 12; Bretagnolle & Huber 1979)."""
    usable = np.isfinite(rdp)
    orders, rdp = orders[usable], rdp[usable]
    exponents = (orders - 1) * (rdp - epsilons[:, None] + np.log1p(-1 / orders)) - np.log(orders)
    # Any divergence of an order above 1 is at least that of order 1, which bounds the total variation.
    total_variation = 0.5 * np.log(-np.expm1(-rdp.min())) if len(rdp) and rdp.min() > 0 else -np.inf
    if not len(rdp):
        return np.ones(len(epsilons))
    return np.asarray(np.exp(np.minimum(np.minimum(exponents.min(axis=1), total_variation), 0.0)))


Steps = tuple[float, float, int]  # sampling probability, noise, number of steps

_REACH = 9.2  # standard deviations: what lies beyond counts as an infinite loss
_FINE = 6000  # cells on either side of 0 before intervals widen
_WIDENING = 1 / 400  # of an interval per loss, beyond them
_EXACT = 30.0  # above such a loss all mass goes to the upper end
_TAIL = 1e-4  # of δ, spent on each of the two ends of the window
_MOST_CELLS = 2**17  # of the window; more steps than that take a coarser grid
_SLIP = 2.0**-46  # relative error of Φ and of what is made of it: 64 times what it has
_SPLITS = (0.5, 0.2, 0.05, 0.8, 0.95)  # shares of δ for "more than k samplings"


# ---- inclusions --------------------------------------------------------------------------------------------------
def inclusion_epsilon(releases: Sequence[tuple[float, float, int]], delta: float, rest: float = 0.0) -> float:
    """ε at δ of releases (q, contribution over noise, steps) and of Gaussians with μ² = ``rest``: an upper bound."""
    best = math.inf
    for share in _SPLITS:
        left, squared, allowed = delta * (1 - 2.0**-40), rest, share * delta / len(releases)
        for q, reach, steps in releases:
            # The fewest samplings, at least one, that are exceeded with this probability at most.
            most = int(min(max(binom.isf(allowed, steps, q), 1), steps)) if q < 1 else steps
            while most < steps and binom.sf(most, steps, q) > allowed:
                most += 1
            left -= float(binom.sf(most, steps, q)) * (1 + 1e-6)
            squared += most * reach * reach
        if left > 0:
            best = min(best, gdp_epsilon(math.sqrt(squared) * (1 + 2.0**-46), left))
    return best


# ---- losses ------------------------------------------------------------------------------------------------------
def losses_epsilon(releases: Sequence[Steps], delta: float, coarseness: int = 1) -> float:
    """ε at δ of all steps of all releases together: an upper bound, inf where the grid proves nothing."""
    grid = coarseness * min(_grid(*release) for release in releases)
    return max(_one_way(releases, delta, grid, remove, _MOST_CELLS // coarseness) for remove in (True, False))


def _grid(q: float, noise: float, steps: int) -> float:
    """A cell: a share of the typical loss of one step, whose rounding adds that share, squared, to its variance."""
    typical = q * math.sqrt(math.expm1(min(noise**-2, 700.0)))
    return typical / 16 if noise > 0.5 else min(typical / 16, math.sqrt(q) * (0.5 / noise + 1) / noise / 256)


def _one_way(releases: Sequence[Steps], delta: float, grid: float, remove: bool, most_cells: int) -> float:
    """ε in one direction, on this grid or on one as coarse as so many cells ask for."""
    for _ in range(9):
        laws = [(*_atoms(q, noise, grid, remove), steps) for q, noise, steps in releases]
        low, high = _window(laws, delta)
        if high - low <= most_cells:
            break
        grid *= min(1.02 * (high - low) / most_cells, 1000.0)
    else:
        return math.inf
    lost = math.fsum(steps * infinite for _, _, infinite, steps in laws)
    size = scipy.fft.next_fast_len(high - low + 2, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for cells, masses, _, steps in laws:
        spectrum *= _power(scipy.fft.rfft(np.bincount(cells % size, masses, size)), steps)
    total = np.maximum(np.roll(scipy.fft.irfft(spectrum, size), -(low % size)), 0.0)
    # Each coefficient of a transform is wrong by log2(N) roundings of its l1 norm, 1; its T-th power T times that; and
    # Cauchy and Schwarz turn the root of the sum of squares, |total|, into a sum.
    steps = sum(steps for *_, steps in laws)
    slipped = 8 * math.log2(size) * 2.0**-53 * (steps + 1) * math.sqrt(size) * float(np.linalg.norm(total))
    left = delta * (1 - 2.0**-40 - _TAIL) - lost - slipped
    return _smallest_epsilon(total, low, grid, left) if left > 0 else math.inf


def _power(values: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """By squaring: as wrong as ``times`` roundings, and far faster than complex powers."""
    out = np.ones_like(values)
    while times:
        if times & 1:
            out *= values
        times >>= 1
        if times:
            values = values * values
    return out


def _atoms(q: float, noise: float, grid: float, remove: bool) -> tuple[NDArray[np.int64], Array, float]:
    """Cells, their masses, and the mass of infinite losses of one step."""
    far = 0.5 / noise**2 + _REACH / noise
    cells = _edges(math.ceil(far / grid) + 1)
    lowest, highest = (math.log1p(-q) if q < 1 else -math.inf), far
    if not remove:
        lowest, highest = -far, -lowest
    cells = cells[(cells >= lowest / grid - 2) & (cells <= max(highest / grid + 2, 1))]
    losses: Array = cells * np.float64(grid)
    places = _place(losses if remove else -losses, q, noise)
    places[0] = -math.inf if remove else math.inf  # what is lower still goes to the first cell
    start, end = (places[:-1], places[1:]) if remove else (places[1:], places[:-1])
    plain, plain_slip = _normal_masses(start / noise, end / noise)
    moved, moved_slip = _normal_masses((start - 1) / noise, (end - 1) / noise)
    mixed, mixed_slip = (1 - q) * plain + q * moved, (1 - q) * plain_slip + q * moved_slip
    mass, other = (mixed, plain) if remove else (plain, mixed)
    slip, other_slip = (mixed_slip, plain_slip) if remove else (plain_slip, mixed_slip)
    lower, gaps = losses[:-1], np.diff(losses)
    scale = np.exp(np.minimum(lower, _EXACT))
    upper = (mass - scale * other + slip + scale * other_slip) / -np.expm1(-gaps) + slip
    upper = np.where(lower > _EXACT, mass, np.clip(upper, 0.0, mass))
    masses = np.zeros(len(cells))
    masses[:-1] += mass - upper
    masses[1:] += upper
    beyond = places[-1]
    infinite = (1 - q) * ndtr(-beyond / noise) + q * ndtr((1 - beyond) / noise) if remove else ndtr(beyond / noise)
    held = masses > 0
    return cells[held], masses[held], float(infinite) * (1 + _SLIP)


def _edges(last: int) -> NDArray[np.int64]:
    """Cells -last..last: all of them near 0, then ever fewer."""
    if last <= _FINE:
        return np.arange(-last, last + 1)
    n_wide = math.ceil(math.log(last / _FINE) / _WIDENING) + 2
    wide = np.unique((_FINE * np.exp(_WIDENING * np.arange(n_wide))).astype(np.int64))
    return np.concatenate([-wide[::-1], np.arange(-_FINE + 1, _FINE), wide])


def _place(losses: Array, q: float, noise: float) -> Array:
    """Where the loss of removing a record has these values: x with log(1 - q + q exp((2 x - 1) / 2 σ²)) = loss."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inside = np.where(losses > 0, np.log1p(-(1 - q) * np.exp(-losses)) + losses, np.log(np.expm1(losses) + q))
        places = 0.5 + noise**2 * (inside - math.log(q))
    return np.where(np.isnan(places), -math.inf, places)


def _normal_masses(start: Array, end: Array) -> tuple[Array, Array]:
    """Masses of N(0, 1) in intervals, from the nearer tail, and bounds of their rounding errors."""
    right = start > 0
    low, high = np.where(right, -end, start), np.where(right, -start, end)
    larger = ndtr(high)
    return np.maximum(larger - ndtr(low), 0.0), _SLIP * larger


def _window(laws: Sequence[tuple[NDArray[np.int64], Array, float, int]], delta: float) -> tuple[int, int]:
    """First and last cell between which all losses add up, but for a mass of ``_TAIL`` δ / 2 at each end (Chernoff)."""
    tail = math.log(2 / (_TAIL * delta))
    means = [float(masses @ cells) for cells, masses, *_ in laws]
    around = zip(laws, means, strict=True)
    variance = math.fsum(n * max(float(masses @ (cells - mean) ** 2), 0.0) for (cells, masses, _, n), mean in around)
    rate = math.sqrt(2 * tail / max(variance, 1e-300))
    low, high = -math.inf, math.inf
    for slowing in 2.0 ** -np.arange(0, 11, 1.5):
        up = down = tail
        for cells, masses, _, steps in laws:
            up += steps * _log_moment(cells, masses, rate * slowing)
            down += steps * _log_moment(cells, masses, -rate * slowing)
        high, low = min(high, up / (rate * slowing)), max(low, -down / (rate * slowing))
    if not (math.isfinite(high) and math.isfinite(low)):
        return 0, 2 * _MOST_CELLS
    return math.floor(low) - 2, math.ceil(high) + 2


def _log_moment(cells: NDArray[np.int64], masses: Array, rate: float) -> float:
    exponents = rate * cells
    top = float(exponents.max())
    if top > 300:
        return top + math.log(float(masses @ np.exp(exponents - top)))
    # Of a sum that is 1 but for little, the little: many steps multiply it.
    little = float(masses @ np.expm1(exponents)) - max(0.0, 1 - float(masses.sum()))
    return math.log1p(little) if little > -0.5 else math.log(float(masses @ np.exp(exponents)))


def _smallest_epsilon(total: Array, low: int, grid: float, delta: float) -> float:
    """Smallest ε ≥ 0 whose hockey-stick divergence is δ at most."""

    weights = -np.expm1(-grid * np.arange(1, len(total) + 1))

    def spent(cell: int) -> float:  # at ε = cell * grid
        above = total[cell + 1 - low :]
        return float(above @ weights[: len(above)])

    first, last = max(low, 0), low + len(total) - 1
    if first > last or (low <= 0 and spent(0) <= delta):
        return 0.0
    if low > 0 and spent(low) <= delta:
        return low * grid
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if spent(middle) > delta else (first, middle)
    # Between two cells δ is a - b exp(ε - first): solved, and rounded up.
    above = total[last - low :]
    mass, weighed = float(above.sum()), float(above @ np.exp(-grid * np.arange(1, len(above) + 1)))
    inside = math.log((mass - delta) / weighed) if mass > delta and weighed > 0 else grid
    return (first * grid + min(max(inside, 0.0) + 1e-12 * grid, grid)) * (1 + 2.0**-46)
