"""Divergences between the outputs on neighbouring data, of one release: rounded up, at every order or at every loss."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr

from skfairdp.privacy._dp_accounting import (
    DpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
)
from skfairdp.privacy._events import ArgmaxBit, ReplaceSampledGaussian, ThresholdBit

Array = NDArray[np.float64]

_UNIT = 2.0**-53

# ---- one-bit releases: the worst pair of neighbouring vote counts, at every order -------------------------------
# A published bit reveals less than the noisy count behind it (about 2/π of its Rényi divergence). The bounds are
# suprema over all vote counts, so they depend on no data, hold under adaptive composition, and the supremum of the
# hockey-stick curves is again a valid curve with a dominating pair (Zhu, Dong & Wang 2022).
_BIT_LOG = 64 * _UNIT  # relative error of a log-probability: log_ndtr, its argument and the sums below, with room


def _discrete_gaussian_tails(sigma: float, low: int, high: int, *, difference: bool) -> tuple[Array, Array]:
    """Log P(N >= x) and log P(N < x) for integers x in low..high.

    N is a discrete Gaussian of scale sigma, or the difference of two independent ones. The difference's mass at x is
    exp(-x²/(4σ²)) times a theta function that depends only on the parity of x, so no convolution is needed.
    """
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
    with np.errstate(over="ignore", divide="ignore"):
        return _tables(event, int(event.n_teachers))


def _tables(event: ThresholdBit | ArgmaxBit, n: int) -> tuple[Array, Array, Array, Array]:
    if isinstance(event, ThresholdBit):
        steps = [1]
        votes = np.arange(n + 1)
        if event.noise == "gaussian":
            z = (votes - event.threshold) / event.sigma
            log_one, log_zero = log_ndtr(z), log_ndtr(-z)
        else:  # integer noise: votes + N >= T exactly when N >= ceil(T) - votes
            needed = math.ceil(event.threshold) - votes
            one, zero = _discrete_gaussian_tails(event.sigma, int(needed.min()), int(needed.max()), difference=False)
            log_one, log_zero = one[needed - needed.min()], zero[needed - needed.min()]
    else:
        # The difference second - first. All n votes on the two classes: it has the parity of n and moves by 2.
        steps = [1, 2] if event.restricted else [1]
        difference = np.arange(-n, n + 1, 1 if event.restricted else 2)
        if event.noise == "gaussian":
            z = difference / (math.sqrt(2) * event.sigma)
            log_one, log_zero = log_ndtr(z), log_ndtr(-z)
        else:  # ties go to the first class: the second wins exactly when N2 - N1 >= 1 - difference
            needed = 1 - difference
            one, zero = _discrete_gaussian_tails(event.sigma, int(needed.min()), int(needed.max()), difference=True)
            log_one, log_zero = one[needed - needed.min()], zero[needed - needed.min()]
    pairs = []
    for step in steps:
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
    """Rényi divergence of one release at each order.

    Records that come and go: between a mixture and the Gaussian without the record, the larger of the two directions
    (Mironov, Talwar & Zhang 2019, Theorem 5). Records that change: between the mixtures with means 1 and -1, which
    dominate every pair of contributions of norm 1 (the theorem of :func:`replace_sampled_deltas`, D = 2c), whatever
    ``difference`` says.
    """
    replaced = isinstance(event, ReplaceSampledGaussian)
    noise = event.noise_multiplier if replaced else event.event.noise_multiplier
    if not noise > 0:
        return np.full(len(orders), np.inf)
    noise = min(noise, _MOST_NOISE)
    return np.array(
        [_sampled_divergence(event.sampling_probability, noise, replaced, float(order)) for order in orders]
    )


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


def largest_loss(event: ReplaceSampledGaussian, tail: float = 1e-17) -> float:
    """A loss beyond which the curve stays below ``tail``."""
    high = 1.0
    while _upper(event, np.array([high]))[0] > tail and high < 600:
        high *= 1.25
    return high


def _upper(event: ReplaceSampledGaussian, losses: Array) -> Array:
    q, near, far = event.sampling_probability, 1 / event.noise_multiplier, event.difference / event.noise_multiplier
    scale = 1 + np.expm1(losses) / q  # g'
    share = np.exp(losses) / scale  # b

    def excess(t: Array) -> Array:
        # Both exponents rise with t: the bracket of the bound rises up to the root of this and falls after it.
        parts = np.logaddexp(
            np.log1p(-np.minimum(share, 1 - 1e-300)) + near * t - near**2 / 2, np.log(share) + far * t - far**2 / 2
        )
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
    """The γ in (0, 1) at which a truncated negative binomial law of this shape η has this mean (Definition 1).

    ``E K = η (1-γ) / (γ (1-γ^η))``; for η = 0 the limit ``(1/γ - 1) / ln(1/γ)``.
    """
    if not (mean > 1 and math.isfinite(mean)):
        raise ValueError(f"The mean number of trials must be greater than 1 and finite. Got {mean!r} instead.")

    def expected(log_gamma: float) -> float:
        odds = math.expm1(-log_gamma)  # 1/γ - 1
        return odds / -log_gamma if shape == 0 else shape * odds / -math.expm1(shape * log_gamma)

    low = -1.0
    while expected(low) < mean:
        low *= 2
    return math.exp(brentq(lambda v: expected(v) - mean, low, -1e-12, xtol=1e-14, rtol=1e-14))


def selection_rdp(
    orders: Array,
    rdp: Array,
    mean: float,
    shape: float,
    all_orders: Array | None = None,
    all_rdp: Array | None = None,
) -> Array:
    """Rényi divergence of the best of K runs, K random and secret, from that of one run.

    Notes
    -----
    Theorem 2: ``r'(l) = r(l) + (1+η) min_h [(1-1/h) r(h) + ln(1/γ)/h] + ln(E K)/(l-1)``. Theorem 6 (Poisson, mean m):
    ``r'(l) = r(l) + m δ(l) + ln(m)/(l-1)``, δ(l) being that of one run at ε = ln(1 + 1/(l-1)).
    """
    if all_orders is None or all_rdp is None:
        all_orders, all_rdp = orders, rdp
    if math.isinf(shape):
        epsilons = np.log1p(1 / (orders - 1))
        return (
            rdp + mean * _deltas_of_rdp(epsilons, all_orders, all_rdp) + math.log(mean) / (orders - 1)
        ) * _SELECTION_UP
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
