"""One-run audit: the bound is the theorem's, holds as often as it says, and sees what there is to see."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest

from skfairdp.inspection import OneRunAuditResult, audit_one_run
from skfairdp.inspection._audit import _epsilon_lower, _log_probability
from skfairdp.privacy import gdp_epsilon, gdp_mu

DELTA = 1e-5


def theorem(m, r, v, delta, epsilon):
    """The theorem's bound in 60 digits, as it is printed."""
    with mpmath.workdps(60):
        q = mpmath.e**epsilon / (1 + mpmath.e**epsilon)
        mass = [mpmath.binomial(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
        f = [mpmath.fsum(mass[least:]) for least in range(r + 2)]
        worst = max((f[max(v - i, 0)] - f[v]) / i for i in range(1, m + 1))
        return f[v] + 2 * m * mpmath.mpf(delta) * worst


def audit_of_counts(m, r, v, **options):
    """Scores and coins of which exactly v of r guesses are right."""
    included = np.zeros(m, dtype=bool)
    included[m - (r - r // 2) :] = True
    wrong = [*range(r // 2), *range(m - (r - r // 2), m)][: r - v]
    included[wrong] = ~included[wrong]
    return audit_one_run(np.arange(m), included, n_guesses=r, **options)


# ---- the figure ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (5, 3, 2), (12, 12, 9), (40, 25, 25), (30, 30, 0), (60, 20, 14)])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_probability_is_the_theorems_to_twelve_digits(m, r, v, delta):
    for epsilon in (0.0, 0.3, 2.0, 9.0, 45.0):
        expected = theorem(m, r, v, delta, epsilon)
        found = _log_probability(m, r, v, delta, epsilon)
        assert found == pytest.approx(float(mpmath.log(expected)), rel=1e-12, abs=1e-12)


def test_pure_privacy_is_brute_force_over_all_guesses():
    m, epsilon = 6, 0.9
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    for v in range(m + 1):
        mass = sum(q ** sum(o) * (1 - q) ** (m - sum(o)) for o in product((0, 1), repeat=m) if sum(o) >= v)
        assert math.exp(_log_probability(m, m, v, 0.0, epsilon)) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize(("m", "r", "v"), [(20, 20, 20), (20, 20, 17), (50, 10, 10), (200, 60, 52)])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_bound_is_the_epsilon_where_the_theorem_reaches_the_risk(m, r, v, delta):
    result = audit_of_counts(m, r, v, delta=delta, confidence=0.9)
    assert (result.n_canaries, result.n_guesses, result.n_correct) == (m, r, v)
    lower = result.epsilon_lower
    if theorem(m, r, v, delta, 0.0) > 0.1:
        assert lower == 0.0
    else:
        assert lower > 0
        assert theorem(m, r, v, delta, lower) <= 0.1 < theorem(m, r, v, delta, lower + 1e-6)


def test_all_right_without_delta_has_a_closed_form():
    q = 0.05 ** (1 / 30)
    lower = audit_of_counts(30, 30, 30, delta=0.0).epsilon_lower
    assert lower == pytest.approx(math.log(q / (1 - q)), abs=1e-7)


@pytest.mark.few(2)
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3, 0.03])
@pytest.mark.parametrize(("m", "r"), [(2, 2), (40, 40), (1000, 30), (1000, 700), (100_000, 500)])
def test_probability_grows_with_epsilon_as_far_as_a_bound_can_lie(m, r, delta):
    """So that the first ε that is not refuted is found by bisection."""
    grid = np.linspace(0, 12, 80)
    for v in np.unique(np.linspace(1, r, 7).astype(int)):
        values = np.array([_log_probability(m, r, int(v), delta, epsilon) for epsilon in grid])
        crossed = np.flatnonzero(values > math.log(0.5))
        below = values[: crossed[0]] if len(crossed) else values
        assert (np.diff(below) >= -1e-12).all()
        if len(crossed):
            assert (values[crossed[0] :] > math.log(0.25)).all()


@pytest.mark.slow
def test_more_right_guesses_never_lower_the_bound():
    for delta in (0.0, 1e-5, 1e-3):
        bounds = [_epsilon_lower(300, 80, v, 0.05, delta=delta) for v in range(81)]
        assert bounds == sorted(bounds)
        assert bounds[40] == 0.0 < bounds[80]


def test_more_delta_or_more_confidence_never_raise_the_bound():
    by_delta = [audit_of_counts(200, 50, 48, delta=delta).epsilon_lower for delta in (0.0, 1e-6, 1e-4, 1e-3)]
    assert by_delta == sorted(by_delta, reverse=True) and by_delta[0] > by_delta[-1]
    by_confidence = [
        audit_of_counts(200, 50, 48, delta=DELTA, confidence=c).epsilon_lower for c in (0.5, 0.9, 0.99, 0.9999)
    ]
    assert by_confidence == sorted(by_confidence, reverse=True) and by_confidence[0] > by_confidence[-1]


def test_several_numbers_of_guesses_share_the_risk():
    rng = np.random.default_rng(2)
    included = rng.random(500) < 0.5
    scores = 3 * included + rng.normal(size=500)
    several = audit_one_run(scores, included, delta=DELTA, confidence=0.94, n_guesses=[20, 100, 300])
    alone = [audit_one_run(scores, included, delta=DELTA, confidence=0.98, n_guesses=r) for r in (20, 100, 300)]
    assert several.epsilon_lower == max(result.epsilon_lower for result in alone)
    default = audit_one_run(scores, included, delta=DELTA)
    assert default == audit_one_run(scores, included, delta=DELTA, n_guesses=np.array([25, 150]))


def test_guesses_are_the_ends_of_the_scores_and_ties_do_not_look_at_the_coins():
    included = np.array([False, True, False, True, True, False, True, True])
    result = audit_one_run(np.arange(8), included, delta=0.0, n_guesses=5)
    assert (result.n_guesses, result.n_correct) == (5, 3)  # out: 0, 1; in: 5, 6, 7
    tied = audit_one_run(np.zeros(8), included, delta=0.0, n_guesses=5)
    assert tied.n_correct == 3


# ---- what is never passed --------------------------------------------------------------------------------------
def lower_bounds(draw, seeds, m, r, delta, confidence):
    """Bounds of many runs; there are few different counts, so each is bounded once."""
    known, found = {}, []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        included = rng.random(m) < 0.5
        order = np.argsort(draw(included, rng), kind="stable")
        v = int((~included[order[: r // 2]]).sum() + included[order[m - (r - r // 2) :]].sum())
        if v not in known:
            known[v] = audit_of_counts(m, r, v, delta=delta, confidence=confidence).epsilon_lower
        found.append(known[v])
    return np.array(found)


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_randomised_response_passes_the_bound_in_nearly_the_nominal_share_of_runs(epsilon, confidence):
    """Every guess is then right with probability e^ε/(1+e^ε): the theorem is tight but for the steps of the count."""
    m, seeds = 300, 3000
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    bounds = lower_bounds(
        lambda included, rng: np.where(rng.random(m) < keep, included, ~included), seeds, m, 100, 0.0, confidence
    )
    passed = (bounds > epsilon).mean()
    error = 4 * math.sqrt(confidence * (1 - confidence) / seeds)
    assert passed <= 1 - confidence + error
    assert passed >= (1 - confidence) / 3  # able to fail: a bound a little higher would be passed too often


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_one_gaussian_release_is_never_bounded_above_its_epsilon(epsilon):
    m, mu = 400, gdp_mu(epsilon, DELTA)
    bounds = lower_bounds(lambda included, rng: mu * included + rng.normal(size=m), 1500, m, 60, DELTA, 0.95)
    assert (bounds > epsilon).mean() <= 0.05
    assert epsilon < 1 or np.median(bounds) > 0


@pytest.mark.slow
def test_the_best_of_many_numbers_of_guesses_still_holds():
    """Without sharing the risk, the best of so many numbers passes ε = 0 too often."""
    m, seeds, numbers = 200, 600, list(range(4, 201, 4))
    shared = alone = 0
    limits = {
        (r, risk): next(v for v in range(r + 2) if v > r or _log_probability(m, r, v, 0.0, 0.0) <= math.log(risk))
        for r in numbers
        for risk in (0.05, 0.05 / len(numbers))
    }
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        included = rng.random(m) < 0.5  # scores in order of position carry nothing
        right = {r: int((~included[: r // 2]).sum() + included[m - (r - r // 2) :].sum()) for r in numbers}
        shared += any(right[r] >= limits[r, 0.05 / len(numbers)] for r in numbers)
        alone += any(right[r] >= limits[r, 0.05] for r in numbers)
        if seed < 10:
            bound = audit_one_run(np.arange(m), included, delta=0.0, n_guesses=numbers).epsilon_lower
            assert (bound > 0) == any(right[r] > 0 and right[r] >= limits[r, 0.05 / len(numbers)] for r in numbers)
    assert shared / seeds <= 0.05
    assert alone / seeds > 0.1


# ---- what is seen ----------------------------------------------------------------------------------------------
# The best of five numbers, with no allowance for having chosen it, would show about 3.8, 2.1, 1.0 and 0.4.
@pytest.mark.few(1)
@pytest.mark.parametrize(("epsilon", "median"), [(8.0, 3.43), (4.0, 1.84), (2.0, 0.92), (1.0, 0.35)])
def test_five_thousand_canaries_in_one_gaussian_release(epsilon, median):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        included = rng.random(5000) < 0.5
        scores = gdp_mu(epsilon, DELTA) * included + rng.normal(size=5000)
        found.append(audit_one_run(scores, included, delta=DELTA).epsilon_lower)
    assert np.median(found) == pytest.approx(median, rel=0.03)


def test_noise_too_small_by_a_factor_of_five_is_refuted():
    rng = np.random.default_rng(3)
    included = rng.random(2000) < 0.5
    claimed = gdp_epsilon(0.5, DELTA)
    honest = audit_one_run(0.5 * included + rng.normal(size=2000), included, delta=DELTA)
    broken = audit_one_run(0.5 * included + rng.normal(size=2000) / 5, included, delta=DELTA)
    assert not honest.refutes(claimed) and broken.refutes(claimed)


def test_scores_without_information_give_nothing():
    rng = np.random.default_rng(4)
    assert audit_one_run(rng.normal(size=1000), rng.random(1000) < 0.5, delta=DELTA).epsilon_lower == 0.0
    single = audit_one_run([1.0], [True], delta=DELTA)
    assert single == OneRunAuditResult(0.0, DELTA, 0.95, 1, 1, 1)


def test_booleans_and_zeros_and_ones_are_the_same():
    rng = np.random.default_rng(5)
    included = rng.random(100) < 0.5
    scores = 9.0 * included + rng.normal(size=100)
    expected = audit_one_run(scores, included, delta=0.0)
    for same in (included.astype(int), included.astype(float).tolist(), included.tolist()):
        assert audit_one_run(scores.tolist(), same, delta=0.0) == expected


# ---- bad input -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scores": [[1.0, 2.0]]}, r"scores must be a finite array .* Got shape \(1, 2\)"),
        ({"scores": [1.0, math.nan, 0.0, 2.0]}, "scores must be a finite array"),
        ({"scores": [], "included": []}, r"Got shape \(0,\)"),
        ({"included": [True, False]}, r"included must have the shape of scores, \(4,\)"),
        ({"included": [0, 1, 2, 1]}, "included must hold booleans"),
        ({"included": ["a", "b", "a", "b"]}, "included must hold booleans"),
        ({"delta": -1e-5}, r"delta must be a float in the range \[0.0, 1.0\)"),
        ({"delta": 1.0}, r"delta must be a float in the range \[0.0, 1.0\)"),
        ({"delta": math.nan}, "delta must be a float"),
        ({"confidence": 1.0}, r"confidence must be a float in the range \(0.0, 1.0\)"),
        ({"confidence": 0.0}, "confidence must be a float"),
        ({"n_guesses": 0}, "n_guesses must be an integer between 1 and the number of canaries, 4"),
        ({"n_guesses": 5}, "Got 5 instead"),
        ({"n_guesses": True}, "n_guesses must be an integer"),
        ({"n_guesses": 2.5}, "n_guesses must be an integer"),
        ({"n_guesses": []}, "n_guesses must be an integer"),
        ({"n_guesses": [2, 7]}, r"Got \[2, 7\] instead"),
    ],
)
def test_bad_input_is_an_error_that_names_the_parameter(changed, message):
    given = {"scores": [0.0, 1.0, 2.0, 3.0], "included": [False, True, False, True], "delta": DELTA, **changed}
    with pytest.raises(ValueError, match=message):
        audit_one_run(given.pop("scores"), given.pop("included"), **given)
