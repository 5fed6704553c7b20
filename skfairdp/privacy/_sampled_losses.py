"""Many Poisson-sampled Gaussian releases: their ε from privacy losses on a folded grid, and from how often they sample.

Two proven upper bounds that take milliseconds, whatever the number of steps, the rate and the noise. A release is a
triple (q, σ, T): T steps, each of which sees a record with probability q, at noise σ; q = 1 is a plain Gaussian.

**Losses** (:func:`losses_epsilon`). One step is dominated by the pair (1 - q) N(0) + q N(1) against N(0), noise σ, in
both directions. An interval of losses [l, l + g] with mass p under the first and r under the second becomes two atoms
at its ends that keep both masses: the interval is a post-processing of its atoms, so that the atoms lose no less
(Doroshenko et al. 2022). All masses are rounded towards the upper end. Intervals are narrow near 0 and widen with the
loss, so that a few thousand serve losses of any size. Losses add up over steps: the law of the sum is a product of
Fourier transforms on a window of the grid, modulo its length. What lies above the window would reappear below; its mass
is bounded (Chernoff) and charged to δ in full. What lies below reappears above, which is no less.

**Inclusions** (:func:`inclusion_epsilon`). The dominating pair is a mixture over which steps sampled the record, of
plain Gaussians at distance sqrt(k) / σ for k samplings. Hockey-stick divergences are jointly convex, so that δ(ε) is at
most the probability of more than k samplings plus δ(ε) of that Gaussian. Nearly all there is to say where ε is large.
"""

import math
from collections.abc import Sequence

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from skfairdp.privacy._gdp import gdp_epsilon

Array = NDArray[np.float64]
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
    return min(_included(releases, delta, share, rest) for share in _SPLITS)


def _included(releases: Sequence[tuple[float, float, int]], delta: float, share: float, rest: float) -> float:
    left, squared = delta * (1 - 2.0**-40), rest
    for q, reach, steps in releases:
        most = _most_inclusions(q, steps, share * delta / len(releases))
        left -= float(binom.sf(most, steps, q)) * (1 + 1e-6)
        squared += most * reach * reach
    return gdp_epsilon(math.sqrt(squared) * (1 + 2.0**-46), left) if left > 0 else math.inf


def _most_inclusions(q: float, steps: int, delta: float) -> int:
    """The fewest samplings, at least one, that are exceeded with probability ``delta`` at most."""
    most = int(min(max(binom.isf(delta, steps, q), 1), steps)) if q < 1 else steps
    while most < steps and binom.sf(most, steps, q) > delta:
        most += 1
    return most


# ---- losses ------------------------------------------------------------------------------------------------------
def losses_epsilon(releases: Sequence[Steps], delta: float, coarseness: int = 1) -> float:
    """ε at δ of all steps of all releases together: an upper bound, inf where the grid proves nothing."""
    grid = coarseness * min(_grid(*release) for release in releases)
    return max(_one_way(releases, delta, grid, remove, _MOST_CELLS // coarseness) for remove in (True, False))


def _grid(q: float, noise: float, steps: int) -> float:
    """A cell: a share of the typical loss of one step, whose rounding adds that share, squared, to its variance."""
    typical = q * math.sqrt(math.expm1(min(noise**-2, 700.0)))
    if noise > 0.5:
        return typical / 16
    return min(typical / 16, math.sqrt(q) * (0.5 / noise + 1) / noise / 256)


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
    infinite = _beyond(beyond, q, noise) if remove else float(ndtr(beyond / noise))
    held = masses > 0
    return cells[held], masses[held], infinite * (1 + _SLIP)


def _beyond(place: float, q: float, noise: float) -> float:
    return float((1 - q) * ndtr(-place / noise) + q * ndtr((1 - place) / noise))


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
    variance = math.fsum(
        law[3] * max(float(law[1] @ (law[0] - mean) ** 2), 0.0) for law, mean in zip(laws, means, strict=True)
    )
    rate = math.sqrt(2 * tail / max(variance, 1e-300))
    low, high = -math.inf, math.inf
    for slowing in 2.0 ** -np.arange(0, 11, 1.5):
        up = tail
        down = tail
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
