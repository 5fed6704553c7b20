"""Data-dependent PATE bounds: reference vectors, the theorem in mpmath, exact divergences, brute force."""

import itertools
import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

from skfairdp.papers._data_dependent import _local_sensitivities, check_conditions, smooth_sensitivity
from skfairdp.privacy import smooth_sensitivity_release_cost
from tests._tools.inside import data_dependent_rdp, log_q
from tests._tools.layers import examples

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "pate_bounds.json").read_text())


# ---------------------------------------------------------------- reference vectors


@pytest.mark.parametrize("case", VECTORS["gnmax"], ids=lambda case: str(case["votes"]))
def test_reference_vectors_of_gnmax(case):
    q = log_q(case["votes"], case["sigma"])
    assert q == pytest.approx([case["log_q"]], abs=5e-7)
    orders = [float(order) for order in case["rdp"]]
    # The figures are printed to 9 decimals.
    np.testing.assert_allclose(
        data_dependent_rdp(q, case["sigma"], orders)[0], list(case["rdp"].values()), rtol=0, atol=5.1e-10
    )


@pytest.mark.parametrize("case", VECTORS["falls_back"], ids=lambda case: str(case["votes"]))
def test_votes_without_consensus_cost_the_data_independent_bound(case):
    orders = np.array([1.5, 2, 4, 10, 100])
    bound = data_dependent_rdp(log_q(case["votes"], case["sigma"]), case["sigma"], orders)
    np.testing.assert_array_equal(bound[0], orders / case["sigma"] ** 2)


@pytest.mark.parametrize("case", VECTORS["release_cost"])
def test_reference_vectors_of_the_smooth_sensitivity_release(case):
    cost = smooth_sensitivity_release_cost(case["order"], case["beta"], case["sigma"])
    assert cost == pytest.approx(case["rdp"], abs=5.1e-10)


@pytest.mark.parametrize("case", VECTORS["conditions"])
def test_reference_vectors_of_conditions_c5_and_c6(case):
    assert check_conditions(case["sigma"], case["n_classes"], case["order"]) is case["holds"]


def test_reference_vectors_of_local_sensitivity_by_distance():
    near, far = VECTORS["local_sensitivity"]
    rising = _local_sensitivities(np.array([near["votes"]]), near["sigma"], near["order"])
    np.testing.assert_allclose(rising[:3], near["first"], rtol=1e-7)
    falling = _local_sensitivities(np.array([far["votes"]]), far["sigma"], far["order"])
    np.testing.assert_array_equal(falling[: far["leading_zeros"]], 0.0)
    zeros = far["leading_zeros"]
    np.testing.assert_allclose(falling[zeros : zeros + 2], far["then"], rtol=1e-7)
    np.testing.assert_allclose(falling[zeros + 2 :], far["plateau"], rtol=1e-7)


# ---------------------------------------------------------------- the theorem itself


def theorem_6(log_q_, sigma, order):
    """Theorem 6 with Proposition 10 as printed; 400 digits, so that 1 - q keeps a q of exp(-600)."""
    with mpmath.workdps(400):
        q = mpmath.exp(mpmath.mpf(float(log_q_)))
        sigma, order = mpmath.mpf(float(sigma)), mpmath.mpf(float(order))
        independent = order / sigma**2
        mu2 = sigma * mpmath.sqrt(mpmath.log(1 / q))
        mu1 = mu2 + 1
        eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
        if mu2 <= 1 or order > mu1:
            return float(independent)
        if q > mpmath.exp((mu2 - 1) * eps2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
            return float(independent)
        a = (1 - q) / (1 - (q * mpmath.exp(eps2)) ** ((mu2 - 1) / mu2))
        b = mpmath.exp(eps1) / q ** (1 / (mu1 - 1))
        bound = mpmath.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
        return float(min(bound, independent))


@pytest.mark.few(2)
@pytest.mark.parametrize("sigma", [0.6, 2.0, 40.0, 300.0])
def test_bound_equals_theorem_6_evaluated_in_many_digits(sigma):
    orders = np.array([1.001, 1.25, 2.0, 3.5, 8.0, 25.0, 64.0, 250.0])
    logs = -np.concatenate([[1e-9, 1e-3], np.geomspace(0.05, 600.0, 40)])
    ours = data_dependent_rdp(logs, sigma, orders)
    truth = [[theorem_6(value, sigma, order) for order in orders] for value in logs]
    # An order of 1.001 loses three digits to the division by order - 1.
    np.testing.assert_allclose(ours, truth, rtol=1e-10)
    assert (ours < orders / sigma**2).mean() > 0.1  # the theorem, not the fallback, is being compared


def test_orders_above_mu1_fall_back_although_the_formula_would_be_smaller():
    sigma, order = 40.0, 200.0
    q = log_q([200, 30, 20], sigma)
    root = math.sqrt(-q[0])
    assert order > sigma * root + 1
    unchecked = q[0] / (order - 1) + 2 * root / sigma + 1 / sigma**2  # q B^(order-1) alone, the larger term
    assert unchecked < 0.9 * order / sigma**2
    assert data_dependent_rdp(q, sigma, [order])[0, 0] == order / sigma**2


def test_conditions_met_by_a_hair_give_no_nan():
    # mu2 = 1 + 1e-9 with a small sigma: every condition holds and every logarithm is near its pole.
    sigma = 1e-3
    q = -np.square(np.array([1.0, 1 + 1e-15, 1 + 1e-9, 1 + 1e-6, 1.01]) / sigma)
    bound = data_dependent_rdp(q, sigma, [1.0 + 1e-12, 1.5, 2.0])
    assert ((bound >= 0) & (bound <= np.array([1.0 + 1e-12, 1.5, 2.0]) / sigma**2)).all()


def test_rounding_next_to_order_one_gives_nothing_negative():
    orders = 1 + np.geomspace(1e-15, 1e-9, 30)
    bound = data_dependent_rdp(-np.geomspace(1.1, 30, 200), 1e6, orders)
    assert ((bound >= 0) & (bound <= orders / 1e12)).all()


@pytest.mark.parametrize("log_q_", [0.0, -1e-300, -1e-12, -0.3, -0.69])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 40.0])
def test_a_likely_other_answer_falls_back(log_q_, sigma):
    orders = np.array([1.01, 2.0])
    np.testing.assert_array_equal(data_dependent_rdp([log_q_], sigma, orders)[0], orders / sigma**2)


def test_an_answer_that_cannot_change_costs_nothing():
    bound = data_dependent_rdp([-1.0, -np.inf, -9.0], 40, [2, 100])
    np.testing.assert_array_equal(bound[1], 0.0)
    np.testing.assert_array_equal(bound[2], data_dependent_rdp([-9.0], 40, [2, 100])[0])
    assert log_q([[250]], 40)[0] == -np.inf


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(
    logs=st.lists(st.floats(-1e300, 0.0), min_size=1, max_size=6),
    sigma=st.floats(1e-3, 1e6),
    orders=st.lists(st.floats(1.0, 1e6, exclude_min=True), min_size=1, max_size=6),
)
def test_bound_lies_between_zero_and_the_data_independent_bound(logs, sigma, orders):
    bound = data_dependent_rdp(logs, sigma, orders)
    assert bound.shape == (len(logs), len(orders))
    assert (bound >= 0).all()  # false for NaN too
    assert (bound <= np.array(orders) / sigma**2).all()


def test_bound_does_not_depend_on_neighbours_in_the_batch():
    rng = np.random.default_rng(3)
    votes = rng.multinomial(250, rng.dirichlet([9.0, 1.0, 0.5, 0.5], size=700))
    orders = np.array([3.0, 1.5, 300.0, 20.0, 20.0, 2.0])  # unsorted, repeated
    table = data_dependent_rdp(log_q(votes, 40.0), 40.0, orders)
    for i in (0, 17, 699):
        for j, order in enumerate(orders):
            assert table[i, j] == data_dependent_rdp(log_q(votes[i], 40.0), 40.0, order)[0, 0]


# ---------------------------------------------------------------- exact divergences


def renyi(p, q, order):
    """D_order(p || q) of two finite distributions."""
    with np.errstate(divide="ignore"):
        return np.log(np.sum(p**order * q ** (1 - order))) / (order - 1)


@pytest.mark.parametrize(("n_teachers", "sigma"), [(20, 3.0), (250, 40.0), (6, 0.7)])
def test_two_class_bound_covers_the_exact_divergence_to_every_neighbour(n_teachers, sigma):
    first = np.arange(n_teachers + 1)
    z = (2 * first - n_teachers) / (math.sqrt(2) * sigma)
    answers = np.exp(np.stack([log_ndtr(z), log_ndtr(-z)], axis=1))
    votes = np.stack([first, n_teachers - first], axis=1)
    orders = np.array([1.1, 1.5, 2.0, 4.0, 10.0])
    bounds = data_dependent_rdp(log_q(votes, sigma), sigma, orders)
    assert (bounds < orders / sigma**2).any()
    for i in range(n_teachers + 1):
        for other in {max(i - 1, 0), min(i + 1, n_teachers)} - {i}:
            exact = np.array([renyi(answers[i], answers[other], order) for order in orders])
            assert (exact <= bounds[i] * (1 + 1e-9)).all()


def gnmax_law(votes, sigma):
    """Law of the noisy argmax: trapezoidal rule over the winner's noisy count, exact to 1e-14 here."""
    votes = np.asarray(votes, dtype=float)
    x = np.linspace(votes.min() - 10 * sigma, votes.max() + 10 * sigma, 4001)
    z = (x - votes[:, None]) / sigma
    below = norm.cdf(z)
    density = [norm.pdf(z[k]) * np.delete(below, k, axis=0).prod(axis=0) for k in range(len(votes))]
    law = np.sum(density, axis=1) * (x[1] - x[0]) / sigma
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    return law


def test_three_class_bound_covers_the_exact_divergence_to_every_neighbour():
    sigma, orders = 2.0, np.array([1.2, 1.6, 2.5])
    for votes in ([14, 2, 1], [11, 6, 0], [8, 8, 1]):
        law = gnmax_law(votes, sigma)
        bound = data_dependent_rdp(log_q(votes, sigma), sigma, orders)[0]
        for giver, taker in itertools.permutations(range(3), 2):
            neighbour = list(votes)
            neighbour[giver] -= 1
            neighbour[taker] += 1
            if min(neighbour) < 0:
                continue
            exact = [renyi(law, gnmax_law(neighbour, sigma), order) for order in orders]
            assert (np.array(exact) <= bound + 1e-9).all()


# ---------------------------------------------------------------- log q


def test_two_class_q_is_exact_and_three_class_q_is_an_upper_bound():
    assert log_q([7, 3], 2.0)[0] == pytest.approx(norm.logsf(4 / (math.sqrt(2) * 2.0)), rel=1e-12)
    for votes in ([7, 3, 0], [5, 4, 1], [4, 3, 3]):
        wrong = 1 - gnmax_law(votes, 2.0)[0]
        assert wrong <= math.exp(log_q(votes, 2.0)[0]) + 1e-10


def test_q_is_capped_at_a_uniform_guess_and_ties_count():
    np.testing.assert_allclose(log_q([[5, 5, 5], [5, 5, 5]], 1.0), math.log(2 / 3), rtol=1e-15)
    # A tie is beaten with probability 1/2, a third class adds to it only.
    assert log_q([[10, 10]], 1.0)[0] == pytest.approx(math.log(0.5), rel=1e-15)


def test_q_equals_its_definition_in_60_digits_for_counts_of_any_type():
    rng = np.random.default_rng(0)
    votes = rng.multinomial(1000, rng.dirichlet([4.0, 1.0, 0.2, 0.1, 0.1], size=50))
    truth = []
    with mpmath.workdps(60):
        for row in votes:
            gaps = np.delete(row.max() - row, row.argmax())
            union = sum(mpmath.erfc(mpmath.mpf(int(gap)) / (2 * 12)) / 2 for gap in gaps)
            truth.append(float(mpmath.log(min(union, mpmath.mpf(4) / 5))))
    np.testing.assert_allclose(log_q(votes, 12), truth, rtol=1e-12)
    np.testing.assert_allclose(log_q(votes.astype(float), 12), truth, rtol=1e-12)
    # A few queries with a huge gap go past the table of tails; unsigned counts must not wrap around.
    np.testing.assert_allclose(log_q(votes[:1].astype(np.uint16), 12), truth[:1], rtol=1e-12)


def test_q_far_below_the_smallest_float_keeps_its_logarithm():
    assert log_q([10**7, 0], 1.0)[0] == pytest.approx(float(log_ndtr(-(10**7) / math.sqrt(2))), rel=1e-12)


@pytest.mark.parametrize(
    ("votes", "sigma"),
    [
        ([[1.0, np.nan]], 1.0),
        (np.zeros((2, 0)), 1.0),
        (np.zeros((2, 2, 2)), 1.0),
        ([["a", "b"]], 1.0),
        ([[3, 1]], 0.0),
        ([[3, 1]], -1.0),
        ([[3, 1]], np.inf),
        ([[3, 1]], np.nan),
    ],
)
def test_log_q_refuses_malformed_input(votes, sigma):
    with pytest.raises(ValueError, match=r"votes|sigma"):
        log_q(votes, sigma)


@pytest.mark.parametrize(
    ("log_q_", "sigma", "orders"),
    [
        ([0.1], 1.0, [2.0]),
        ([np.nan], 1.0, [2.0]),
        ([[-1.0]], 1.0, [2.0]),
        ([-1.0], 0.0, [2.0]),
        ([-1.0], 1.0, [1.0]),
        ([-1.0], 1.0, [np.inf]),
        ([-1.0], 1.0, [np.nan]),
        ([-1.0], 1.0, [[2.0]]),
    ],
)
def test_data_dependent_rdp_refuses_malformed_input(log_q_, sigma, orders):
    with pytest.raises(ValueError, match=r"log_q|sigma|orders"):
        data_dependent_rdp(log_q_, sigma, orders)


# ---------------------------------------------------------------- smooth sensitivity


def histograms(n_teachers, n_classes):
    every = itertools.product(range(n_teachers + 1), repeat=n_classes)
    return [votes for votes in every if sum(votes) == n_teachers]


def neighbours(votes):
    """Histograms after one teacher changed its vote, or did not."""
    found = {votes}
    for giver, taker in itertools.permutations(range(len(votes)), 2):
        if votes[giver] > 0:
            moved = list(votes)
            moved[giver] -= 1
            moved[taker] += 1
            found.add(tuple(moved))
    return found


# sigma and order where the data-dependent bound is active on so few teachers, and C5 and C6 hold.
TINY = [(n, k, sigma, 1.5) for n in (3, 5, 6) for k in (2, 3) for sigma in (0.5, 0.7, 1.0)]


@pytest.mark.covering
@pytest.mark.parametrize(("n_teachers", "n_classes", "sigma", "order"), TINY)
def test_smooth_sensitivity_is_smooth_and_covers_every_local_sensitivity(n_teachers, n_classes, sigma, order):
    everything = histograms(n_teachers, n_classes)
    cost = {v: data_dependent_rdp(log_q(v, sigma), sigma, order)[0, 0] for v in everything}
    assert min(cost.values()) < 0.9 * order / sigma**2  # the data-dependent part is active
    for beta in (0.0, 0.1, 0.4):
        smooth = {v: smooth_sensitivity(v, sigma, order, beta) for v in everything}
        for v in everything:
            for w in neighbours(v):
                assert smooth[v] >= math.exp(-beta) * smooth[w] * (1 - 1e-12)
                assert smooth[v] >= abs(cost[v] - cost[w]) * (1 - 1e-12)


def test_local_sensitivity_at_distance_d_covers_the_ball_of_radius_d():
    sigma, order, n_classes = 0.7, 1.5, 3
    everything = histograms(6, n_classes)
    cost = {v: data_dependent_rdp(log_q(v, sigma), sigma, order)[0, 0] for v in everything}
    here = {v: max(abs(cost[v] - cost[w]) for w in neighbours(v)) for v in everything}
    for v in everything:
        bounds = _local_sensitivities(np.array([v]), sigma, order)
        assert bounds.shape == (7,)
        ball = {v}
        for bound in bounds:
            assert bound >= max(here[w] for w in ball) * (1 - 1e-12)
            ball = set().union(*(neighbours(w) for w in ball))


def test_smooth_sensitivity_of_a_sum_covers_a_teacher_that_changes_every_answer():
    sigma, order, beta = 0.7, 1.5, 0.2
    everything = histograms(4, 3)
    cost = {v: data_dependent_rdp(log_q(v, sigma), sigma, order)[0, 0] for v in everything}
    rng = np.random.default_rng(0)
    for _ in range(150):
        d = [everything[i] for i in rng.integers(len(everything), size=3)]
        near = [sorted(neighbours(v)) for v in d]
        e = [options[rng.integers(len(options))] for options in near]
        smooth_d, smooth_e = (smooth_sensitivity(x, sigma, order, beta) for x in (d, e))
        assert smooth_d >= math.exp(-beta) * smooth_e * (1 - 1e-12)
        assert smooth_d >= abs(sum(cost[v] for v in d) - sum(cost[v] for v in e)) * (1 - 1e-12)


def test_smooth_sensitivity_of_a_realistic_sum_is_far_below_its_worst_case():
    votes = np.array([[230, 20], [240, 10], [225, 25]] * 100)
    smooth, once = (smooth_sensitivity(v, sigma=40, order=8, beta=0.02) for v in (votes, votes[:3]))
    assert 0 < smooth < 0.2 * 300 * 8 / 40**2
    assert smooth == pytest.approx(100 * once, rel=1e-12)  # equal queries add


def test_smooth_sensitivity_does_not_change_its_input_or_depend_on_class_order():
    votes = np.array([[3, 9, 1], [2, 2, 9]])
    before = votes.copy()
    smooth = smooth_sensitivity(votes, 1.0, 1.5, 0.1)
    np.testing.assert_array_equal(votes, before)
    assert smooth == smooth_sensitivity(votes[:, ::-1], 1.0, 1.5, 0.1)


def test_smooth_sensitivity_is_refused_where_its_conditions_fail():
    assert not check_conditions(20.0, 10, 25.0)
    with pytest.raises(ValueError, match="C5 and C6"):
        smooth_sensitivity([[100] + [0] * 9], sigma=20.0, order=25.0, beta=0.01)


def test_a_single_class_has_no_sensitivity():
    assert smooth_sensitivity([[9], [9]], 1.0, 1.5, 0.1) == 0.0


@pytest.mark.parametrize(
    ("votes", "sigma", "order", "beta"),
    [
        ([[3, 1], [3, 2]], 1.0, 1.5, 0.1),
        ([[3.0, 1.0]], 1.0, 1.5, 0.1),
        ([[5, -1]], 1.0, 1.5, 0.1),
        (np.zeros((0, 2), dtype=int), 1.0, 1.5, 0.1),
        ([[3, 1]], 0.0, 1.5, 0.1),
        ([[3, 1]], 1.0, 1.0, 0.1),
        ([[3, 1]], 1.0, 1.5, -0.1),
        ([[3, 1]], 1.0, 1.5, np.nan),
    ],
)
def test_smooth_sensitivity_refuses_malformed_input(votes, sigma, order, beta):
    with pytest.raises(ValueError, match=r"votes|sigma|order|beta"):
        smooth_sensitivity(votes, sigma, order, beta)


@pytest.mark.parametrize(("beta", "order", "sigma"), [(0.02, 8, 12), (0.1, 2, 3), (0.01, 20, 20), (0.2, 1.5, 1.0)])
def test_release_cost_covers_the_exact_divergence_of_two_scaled_gaussians(beta, order, sigma):
    cost = smooth_sensitivity_release_cost(order, beta, sigma)
    worst = 0.0
    # Values differ by at most one sensitivity, and the sensitivities by at most a factor e^beta.
    for log_ratio in np.linspace(-beta, beta, 41):
        s, t = sigma, sigma * math.exp(log_ratio)
        mixed = order * t**2 + (1 - order) * s**2
        assert mixed > 0
        spread = math.log(math.sqrt(mixed) / (s ** (1 - order) * t**order)) / (1 - order)
        worst = max(worst, order / (2 * mixed) + spread)
    assert worst <= cost


@pytest.mark.parametrize(
    ("order", "beta", "sigma"), [(1.0, 0.1, 1.0), (5.0, 0.1, 1.0), (2.0, -0.1, 1.0), (2.0, 0.1, 0.0), (2.0, 0.25, 1.0)]
)
def test_release_cost_refuses_orders_outside_its_range(order, beta, sigma):
    with pytest.raises(ValueError, match=r"order|beta|sigma"):
        smooth_sensitivity_release_cost(order, beta, sigma)
