"""A guarantee for one record, said of several: the conversion is an upper bound, and no smaller one exists."""

import itertools
import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skfairdp.privacy import gdp_delta, gdp_epsilon, group_privacy
from tests._tools.layers import examples

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "group_privacy.json").read_text())["group_privacy"]
epsilons = st.one_of(st.just(0.0), st.floats(1e-12, 50))
deltas = st.one_of(st.just(0.0), st.floats(1e-300, 1.0))
sizes = st.integers(1, 200)


def exact(epsilon, delta, size):
    """The sum itself, in 60 digits: no quotient, so nothing to go wrong at ε = 0."""
    with mpmath.workdps(60):
        return mpmath.mpf(delta) * mpmath.fsum(mpmath.exp(i * mpmath.mpf(epsilon)) for i in range(size))


@pytest.mark.parametrize("vector", VECTORS)
def test_vectors_and_the_looser_bounds_beside_them(vector):
    epsilon, delta, size = vector["epsilon"], vector["delta"], vector["size"]
    total, tight = group_privacy(epsilon, delta, size)
    assert total == size * epsilon
    assert tight == pytest.approx(vector["tight"], rel=1e-6)
    assert size * math.exp((size - 1) * epsilon) * delta == pytest.approx(vector["standard"], rel=1e-6)
    assert size * math.exp(size * epsilon) * delta == pytest.approx(vector["paper"], rel=1e-6)
    assert round(vector["standard"] / tight, 1) == 2.0 and round(vector["paper"] / tight, 1) == 5.4


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(epsilons, deltas, sizes)
def test_it_is_the_sum_rounded_up_and_capped_at_one(epsilon, delta, size):
    total, converted = group_privacy(epsilon, delta, size)
    with mpmath.workdps(60):
        assert mpmath.mpf(total) >= mpmath.mpf(epsilon) * size
        assert total <= epsilon * size * (1 + 1e-15)
        truth = exact(epsilon, delta, size)
        assert 0 <= converted <= 1 and mpmath.mpf(converted) >= min(truth, 1)
        assert mpmath.mpf(converted) <= truth * (1 + mpmath.mpf(10) ** -9)


def test_no_figure_is_below_the_truth_in_very_many_settings():
    """Of every size: close to 0, where e^ε - 1 cancels, close to 1, and where floats are denormal. None is loose."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(420):
        for _ in range(examples(4000)):
            epsilon = float(rng.choice([rng.uniform(0, 5), 10.0 ** rng.uniform(-323, 3), 5e-324, 1e-16, 0.1, 709.0]))
            delta = float(rng.choice([10.0 ** rng.uniform(-323, 0), 1e-5, 5e-324, 0.5, rng.random()]))
            size = int(rng.choice([2, 3, 10, rng.integers(2, 200), rng.integers(2, 10**12)]))
            total, converted = group_privacy(epsilon, delta, size)
            one = mpmath.mpf(epsilon)
            truth = mpmath.mpf(delta) * mpmath.expm1(size * one) / mpmath.expm1(one)
            assert mpmath.mpf(total) >= size * one
            assert mpmath.mpf(converted) >= min(truth, 1), (epsilon, delta, size)
            assert converted == 1.0 or mpmath.mpf(math.nextafter(converted, 0.0)) <= truth * (1 + mpmath.mpf(10) ** -30)


def hockey_stick(p, q, epsilon):
    """Largest P(S) - e^ε Q(S) for two coins, over both events."""
    return max(0.0, p - math.exp(epsilon) * q, (1 - p) - math.exp(epsilon) * (1 - q))


CHAINS = [(1.0, 1e-5, 3), (0.1, 1e-3, 10), (0.0, 0.01, 20), (2.0, 1e-6, 6)]


@pytest.mark.parametrize(("epsilon", "delta", "size"), CHAINS)
def test_a_chain_of_coins_attains_it(epsilon, delta, size):
    """Each neighbour is (ε, δ)-private in both directions; the ends need all of δ'."""
    chain = [0.0]
    for _ in range(size):
        chain.append(math.exp(epsilon) * chain[-1] + delta)
    assert chain[-1] < 0.5
    for p, q in itertools.pairwise(chain):
        assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= delta * (1 + 1e-9)
    total, converted = group_privacy(epsilon, delta, size)
    assert hockey_stick(chain[-1], chain[0], total) == pytest.approx(converted, rel=1e-9)


def test_it_holds_for_a_mechanism_whose_group_guarantee_is_known():
    """A Gaussian release is μ-GDP for one record and Kμ-GDP for K."""
    for mu, size in itertools.product((0.1, 0.5, 1.0), (2, 3, 5)):
        epsilon, delta = gdp_epsilon(mu, 1e-5), 1e-5
        total, converted = group_privacy(epsilon, delta, size)
        assert gdp_delta(total, size * mu) <= converted


def test_one_record_is_unchanged_and_groups_of_groups_compose():
    assert group_privacy(0.7, 1e-6, 1) == (0.7, 1e-6)
    assert group_privacy(*group_privacy(0.7, 1e-9, 3), 4) == pytest.approx(group_privacy(0.7, 1e-9, 12), rel=1e-12)


def test_extremes():
    assert group_privacy(0.0, 0.25, 3) == (0.0, 0.75) and group_privacy(0.0, 0.5, 3) == (0.0, 1.0)
    assert group_privacy(5.0, 0.0, 1000) == (5000.0, 0.0)
    assert group_privacy(1.0, 1e-5, 1000) == (1000.0, 1.0)
    assert group_privacy(math.inf, 1e-5, 2) == (math.inf, 1.0) and group_privacy(math.inf, 0.0, 2) == (math.inf, 0.0)
    assert group_privacy(1e308, 1e-5, 10) == (math.inf, 1.0)
    assert group_privacy(1e-300, 1e-5, 7)[1] == pytest.approx(7e-5, rel=1e-9)
    assert group_privacy(1.0, 1e-5, 10**400) == (math.inf, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 1e-5, 2), r"'epsilon' parameter of group_privacy must be a float in the range \[0.0, inf\]. Got -0.1"),
        ((math.nan, 1e-5, 2), "'epsilon'"),
        (("1", 1e-5, 2), "'epsilon'"),
        ((1.0, -1e-9, 2), "'delta'"),
        ((1.0, 1.5, 2), "'delta'"),
        ((1.0, True, 2), "'delta'"),
        ((1.0, 1e-5, 0), r"'size' parameter of group_privacy must be an int in the range \[1, inf\). Got 0"),
        ((1.0, 1e-5, 2.0), "'size'"),
        ((1.0, 1e-5, True), "'size'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        group_privacy(*arguments)
