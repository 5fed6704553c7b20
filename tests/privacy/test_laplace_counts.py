"""Counts with Laplace noise: the noise is what the event says, on a public grid, and neighbours move no further."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2, laplace

from skfairdp.privacy import (
    GaussianDpEvent,
    LaplaceCounts,
    LaplaceDpEvent,
    NeighboringRelation,
    NoiseSource,
    Spending,
    compose,
    epsilon_of,
    gdp_mu,
)
from tests._tools.replay import distance
from tests._tools.sources import RecordingNoise, Release, UnitNoise, ZeroNoise


def half_epsilon(n_kinds: int, n_rows: int) -> LaplaceCounts:
    return LaplaceCounts.at(0.5, n_rows=n_rows, n_kinds=n_kinds)


later = [pytest.param(scale, marks=pytest.mark.slow) for scale in (2.0, 5.7)]


@pytest.mark.few(1)
@pytest.mark.parametrize("scale", [0.3, *later, 3000.5])
def test_noise_is_laplace_noise_of_the_accounted_scale_rounded_down_to_the_grid(scale):
    mechanism = LaplaceCounts(scale, n_rows=10, n_kinds=3)
    source = NoiseSource(seed=0)
    drawn = np.concatenate([mechanism.release([5, 3, 2], source) - [5, 3, 2] for _ in range(2000)])
    assert mechanism.scale >= scale and mechanism.event == LaplaceDpEvent(mechanism.scale / 2)
    assert np.all(drawn / mechanism.grid == np.rint(drawn / mechanism.grid))
    edges = mechanism.grid * np.rint(laplace.ppf(np.linspace(0, 1, 41)[1:-1], scale=mechanism.scale) / mechanism.grid)
    expected = np.diff([0.0, *laplace.cdf(edges, scale=mechanism.scale), 1.0]) * len(drawn)
    seen = np.diff([0, *np.searchsorted(np.sort(drawn), edges), len(drawn)])  # on the grid: below an edge, or not
    assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(expected) - 1)
    assert mechanism.sigma == pytest.approx(drawn.std(), rel=0.05)


def test_a_released_count_follows_the_true_one_through_whole_steps_only():
    """Values on the grid shift the released distribution as a whole: no last digit tells them apart."""
    mechanism = LaplaceCounts(2.3, n_rows=9, n_kinds=3)
    one, other = (mechanism.release(counts, NoiseSource(seed=4)) for counts in ([4, 3, 2], [3, 4, 2]))
    np.testing.assert_array_equal(one - other, [1.0, -1.0, 0.0])


@pytest.mark.parametrize("n_kinds", [2, 3, 4])
def test_no_replaced_record_moves_counts_further_than_declared(n_kinds):
    """By brute force: every table of four rows, every row, every other kind."""
    mechanism, furthest = half_epsilon(n_kinds, 4), 0.0
    for kinds in itertools.product(range(n_kinds), repeat=4):
        for row, other in itertools.product(range(4), range(n_kinds)):
            neighbour = [other if i == row else kind for i, kind in enumerate(kinds)]
            releases = (
                Release(mechanism, (np.bincount(one, minlength=n_kinds),), {}, None) for one in (kinds, neighbour)
            )
            moved, allowed = distance(*releases)
            assert moved <= allowed
            furthest = max(furthest, moved / allowed)
    assert furthest == 1.0


@pytest.mark.parametrize("n_kinds", [2, 3, 6])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3.0])
def test_it_costs_the_pure_epsilon_asked_for_and_no_delta(n_kinds, epsilon):
    mechanism = LaplaceCounts.at(epsilon, n_rows=150, n_kinds=n_kinds)
    assert 0.998 * epsilon < epsilon_of(mechanism.event, 0.0) <= epsilon
    assert mechanism.epsilon == pytest.approx(epsilon_of(mechanism.event, 0.0))


def test_beside_gaussian_releases_its_epsilon_is_added_at_most():
    mechanism, mu = half_epsilon(3, 150), gdp_mu(0.2, 1e-5)
    together = epsilon_of(compose(mechanism.event, GaussianDpEvent(1 / mu)), 1e-5)
    assert 0.5 < together <= 0.7


def test_of_two_kinds_the_first_count_follows_from_the_second():
    mechanism = half_epsilon(2, 10)
    counts = mechanism.release([7, 3], NoiseSource(seed=1))
    assert counts.sum() == 10.0 and counts[1] != 3.0
    np.testing.assert_array_equal(mechanism.release([[7, 3]], ZeroNoise()), [[7.0, 3.0]])
    assert mechanism.release([7, 3], UnitNoise())[1] == pytest.approx(3 + mechanism.scale, abs=mechanism.grid)
    source = RecordingNoise(entropy=0)
    source.release(mechanism, np.array([7, 3]))
    assert source.releases[0].value.tolist() == [[3.0]] and source.releases[0].noise.any()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scale": 0.0, "n_rows": 3}, "scale must be positive"),
        ({"scale": math.inf, "n_rows": 3}, "scale must be positive"),
        ({"scale": 1.0, "n_rows": 3, "n_kinds": 1}, "n_kinds must be at least 2"),
    ],
)
def test_what_is_no_mechanism_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        LaplaceCounts(**given)


@pytest.mark.parametrize("counts", [[1.5, 2.0, 3.0], [1, 2], [np.nan, 1, 1], [np.inf, 1, 1]])
def test_what_is_no_count_is_refused(counts):
    with pytest.raises(ValueError, match=r"^A release of these counts needs 3 whole numbers\.$"):  # no private value
        half_epsilon(3, 4).noisy(NoiseSource(), counts)


def test_a_fit_whose_neighbours_differ_in_their_number_of_rows_refuses_it():
    """The number of rows is public for replaced records only."""
    mechanism, relation = half_epsilon(2, 4), NeighboringRelation.ADD_OR_REMOVE_ONE
    with (
        pytest.raises(RuntimeError, match="was made for"),
        Spending(mechanism.event, 1e-5, relation, label="counts") as noise,
    ):
        mechanism.release([3, 1], noise)
