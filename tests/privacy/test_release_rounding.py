"""Gaussian releases: the exact sum of value and noise, rounded to a public grid."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2, norm

from skfairdp.privacy import GaussianMechanism, NoiseSource, _noise


class Bits(NoiseSource):
    """Hands out given 64-bit words."""

    def __init__(self, *words):
        super().__init__()
        self.given = list(words)

    def _words(self, n):
        taken, self.given = self.given[:n], self.given[n:]
        assert len(taken) == n
        return np.array(taken, dtype=np.uint64)


@given(st.floats(-1e30, 1e30), st.floats(1e-6, 1e6))
def test_every_release_is_a_multiple_of_a_grid_that_follows_sigma_alone(value, sigma):
    mechanism = GaussianMechanism(sigma)
    assert mechanism.grid == 2.0 ** math.floor(math.log2(sigma / 1024))
    released = float(mechanism.release([value], NoiseSource())[0])
    assert math.fmod(released, mechanism.grid) == 0
    # 40 standard deviations, and what a float of this size cannot tell apart
    assert abs(released - value) <= 40 * sigma + 2 * math.ulp(value)


@given(st.integers(0, 2**64 - 1), st.floats(-0.5, 0.5), st.floats(1024.0, 2047.9))
def test_the_fast_path_and_many_digits_round_alike(word, center, scale):
    """The integer that 64 bits decide is the one that 320 bits which begin alike decide."""
    fast = Bits(word, *([2**63] * 8)).rounded_normal(np.array([center]), scale)[0]
    sign = 1 if word & 1 else -1
    with mpmath.workprec(400):
        digits = (word >> 1) << 64 | 2**63
        half = mpmath.ldexp(mpmath.mpf(digits), -128)
        exact = mpmath.nint(mpmath.mpf(center) - scale * sign * mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * half))
    assert fast == float(exact)


def test_a_doubtful_word_is_decided_by_further_bits():
    """A center whose sum lies on an edge within the margin: the next bits say on which side."""
    word = (2**62) << 1 | 1
    scale = 1500.0
    with mpmath.workprec(300):
        low = scale * _noise._lower_quantile(2**62, 64)
        center = float(mpmath.nint(low) + mpmath.mpf("0.5") - low)
        center -= round(center)
    sides = {
        float(Bits(word, *more).rounded_normal(np.array([center]), scale)[0]) for more in ([0] * 8, [2**64 - 1] * 8)
    }
    assert len(sides) <= 2 and max(sides) - min(sides) <= 1
    source = Bits(word, *([0] * 8))
    source.rounded_normal(np.array([center]), scale)
    assert len(source.given) < 8, "an edge within the margin asks for more bits"


def test_the_tails_do_not_end():
    """The smallest word stands for all of a tail beyond 9.16 standard deviations: how far out is drawn in turn."""
    reached = [
        -float(Bits(0, *[0] * k, 1 << 40, *[0] * 8).rounded_normal(np.array([0.0]), 1024.0)[0]) / 1024 for k in range(3)
    ]
    assert 9.16 < abs(reached[0]) < abs(reached[1]) < abs(reached[2])
    expected = [norm.isf(2.0 ** (-64 * (k + 2) + 40)) for k in range(3)]
    assert np.abs(reached) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("value", [0.0, 0.37, 12345.678, -9e9])
def test_released_cells_have_the_probabilities_of_the_exact_gaussian(value):
    """Chi-squared over cells of a coarse grid; a seed, so that a wrong law fails every time and a right one never."""
    sigma, n = 3.0, 200_000
    mechanism = GaussianMechanism(sigma)
    released = mechanism.release(np.full(n, value), NoiseSource(seed=1))
    steps = np.rint((value + sigma * np.linspace(-3, 3, 49)) / mechanism.grid) + 0.5  # between two points of the grid
    edges = np.concatenate([[-np.inf], steps * mechanism.grid, [np.inf]])
    counts = np.histogram(released, edges)[0]
    law = np.diff(norm.cdf((edges - value) / sigma))
    statistic = float(((counts - n * law) ** 2 / (n * law)).sum())
    assert chi2.isf(1 - 1e-6, len(law) - 1) < statistic < chi2.isf(1e-6, len(law) - 1)


def test_neighbours_have_the_same_possible_releases():
    """Among all floats, which ones can occur tells the value: 77 of 3,000 releases did, before rounding."""
    mechanism = GaussianMechanism(26.4)
    here, there = (np.unique(mechanism.release(np.full(300_000, c), NoiseSource(seed=c))) for c in (30, 31))
    inner = (here > -20) & (here < 80)
    assert np.isin(here[inner], there).mean() > 0.99


def test_a_value_that_is_not_finite_is_refused_in_words_that_do_not_show_it():
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=r"^A release needs finite values\.$"):
            GaussianMechanism(1.0).release([bad], NoiseSource())
    with pytest.raises(ValueError, match="finite values"):
        GaussianMechanism(1e-300).release([1e300], NoiseSource())
