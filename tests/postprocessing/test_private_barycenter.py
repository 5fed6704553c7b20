"""PrivateBarycenter: distributions of amounts agree between groups, at a price that is all counted, with a bound."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, ks_2samp, norm
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from skfairdp import FairDPSGDRegressor, PrivacyLedger, SyntheticDataRegressor
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, PrivacyLeakWarning, UtilityWarning
from skfairdp.metrics import ks_disparity
from skfairdp.postprocessing import PrivateBarycenter
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, NoiseSource, compose, epsilon_of, verify_file
from tests._tools.inside import KSJudgement, Transport, TransportPlan, without_far_ends
from tests._tools.sources import recording_noise

pytestmark = pytest.mark.filterwarnings("ignore:.*given to PrivateBarycenter has no privacy_")

BOUNDS = (0.0, 50.0)
NULL, REPLACED = NeighboringRelation.ZERO_OUT, NeighboringRelation.REPLACE_ONE


def made_rows(n, seed, n_groups=2):
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 3)) + groups[:, None] * [1.0, 0.0, 0.0]
    return X, 20 + X @ [3.0, 2.0, 0.0] + rng.normal(size=n), groups


X, Y, GROUPS = made_rows(6000, 0)
X_NEW, Y_NEW, GROUPS_NEW = made_rows(20_000, 1)
PUBLIC = LinearRegression().fit(*made_rows(500, 2)[:2])


def fitted(model=PUBLIC, rows=slice(None), loud=False, **options):
    given = {"epsilon": 1.0, "bounds": BOUNDS, "groups": [0, 1], **options}
    with warnings.catch_warnings():
        if not loud:
            warnings.simplefilter("ignore", FairnessWarning)
        return PrivateBarycenter(model, **given).fit(X[rows], sensitive_features=GROUPS[rows])


def ks(amounts, groups=GROUPS_NEW):
    return ks_disparity(None, amounts, sensitive_features=groups)


# ---- what it does --------------------------------------------------------------------------------------------
def test_distributions_agree_at_hardly_more_than_the_least_error():
    fair = fitted()
    moved = fair.predict(X_NEW, sensitive_features=GROUPS_NEW)
    assert ks(PUBLIC.predict(X_NEW)) > 0.3 and ks(moved) < 0.05
    # groups of equal size whose laws differ by a shift: each gets half of it
    least = PUBLIC.predict(X_NEW) + np.where(GROUPS_NEW == 1, -0.5, 0.5) * 3.0
    assert np.mean((moved - Y_NEW) ** 2) < 1.1 * np.mean((least - Y_NEW) ** 2)


def test_order_within_a_group_is_kept_and_amounts_stay_within_the_bounds():
    fair = fitted()
    for group in (0, 1):
        mine = X_NEW[group == GROUPS_NEW]
        moved = fair.predict(mine, sensitive_features=np.full(len(mine), group))
        assert (np.diff(moved[np.argsort(PUBLIC.predict(mine))]) >= -1e-3).all()
    far = fair.predict(1e6 * np.eye(3), sensitive_features=[0, 1, 0])
    assert ((far >= 0) & (far <= 50)).all()


def test_bounds_that_are_set_after_the_fit_move_no_prediction():
    inner = LinearRegression().fit(*made_rows(500, 2)[:2])
    inner.bounds = BOUNDS
    for fair in (fitted(), fitted(inner, bounds=None)):
        before = fair.predict(X_NEW, sensitive_features=GROUPS_NEW)
        (inner if fair.bounds is None else fair).bounds = (0.0, 100.0)
        assert np.array_equal(fair.predict(X_NEW, sensitive_features=GROUPS_NEW), before)


def test_a_second_fit_states_the_bounds_of_its_own_estimator():
    narrow, wide = (LinearRegression().fit(X[:500], scale * Y[:500]) for scale in (1, 100))
    narrow.bounds, wide.bounds = BOUNDS, (0.0, 5000.0)
    fair = fitted(narrow, rows=slice(1000), bounds=None, loud=False).set_params(estimator=wide)
    fair.fit(X[:1000], sensitive_features=GROUPS[:1000])
    assert "bounds of predictions: 0.0, 5000.0 (given)" in fair.privacy_.public


def test_bounds_that_are_far_too_wide_cost_little():
    fair = fitted(bounds=(-5000.0, 5000.0))
    assert ks(fair.predict(X_NEW, sensitive_features=GROUPS_NEW)) < 0.06


def test_rows_of_the_last_cell_in_sight_lie_at_its_near_end_and_those_of_heavy_tails_where_they_are():
    """Two far edges moved predictions of the highest rows by the whole range, in one fit of a hundred."""
    even, rows = np.linspace(0.1, 0.2, 31), np.full(30, 100.0)
    stretched, few = np.concatenate([[0.0], even, [0.7, 1.0]]), np.concatenate([[9.0], rows, [9.0, 0.0]])
    cut = without_far_ends(stretched, np.stack([few, few]), 1.0)
    assert cut[[0, -1]] == pytest.approx([0.1 - 4 / 300, 0.2 + 4 / 300])
    np.testing.assert_allclose(cut[1:-2], even)
    np.testing.assert_allclose(without_far_ends(even, np.stack([rows, rows]), 1.0), even)
    heavy = 0.01 / (1 - np.arange(1, 32) / 32.5)  # equal shares of a law whose tail is 1/x
    np.testing.assert_allclose(without_far_ends(heavy, np.stack([rows, rows]), 1.0)[:-1], heavy[:-1])
    zeros = np.full(28, 1e-9).cumsum()
    for part in (np.concatenate([zeros, [0.3, 0.6, 0.9]]), np.concatenate([zeros, zeros[:3] + 0.5])):
        np.testing.assert_allclose(without_far_ends(part, np.stack([rows, rows]), 1.0), part)


@pytest.mark.parametrize("bounds", [(-700.0, 1300.0), (-7000.0, 13_000.0)])
def test_bounds_that_are_far_too_wide_move_no_row_far_away(bounds):
    """The outermost cell reached to a bound, and some rows of it were moved there: R² was -4e3 to -1e5."""
    rng = np.random.default_rng(0)
    groups, rule = rng.integers(2, size=8000), LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    rows = rng.normal(3, 1.2, size=(8000, 1)) + 0.3 * groups[:, None]
    for seed in range(5):
        fair = PrivateBarycenter(rule, epsilon=1, bounds=bounds, groups=[0, 1], random_state=seed)
        moved = fair.fit(rows, sensitive_features=groups).predict(rows, sensitive_features=groups)
        assert np.abs(moved - rows[:, 0]).max() < 12


def test_one_group_is_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="compares every two groups, and got 1: at least 2"):
        PrivateBarycenter(PUBLIC, bounds=BOUNDS, groups=[0], ledger=ledger).fit(X, sensitive_features=0 * GROUPS)
    assert ledger.entries == ()


@pytest.mark.slow
def test_no_fit_of_two_hundred_moves_amounts_far_away_whatever_its_noise():
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=4000)
    rows = rng.normal(30, 8, size=(4000, 1)) + 4 * groups[:, None]
    rule = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(200):
            fair = PrivateBarycenter(rule, bounds=(0, 2000), groups=[0, 1]).fit(rows, sensitive_features=groups)
            assert np.abs(fair.predict(rows, sensitive_features=groups) - rows[:, 0]).max() < 30


def test_without_noise_it_is_the_barycenter_of_the_counts():
    edges = np.linspace(0, 1, 201)
    counts = np.stack([np.diff(norm.cdf(edges, center, 0.05)) * 1e6 for center in (0.4, 0.6)])
    transport = Transport(edges, counts * [[1.0], [3.0]], 0.0)
    for group, center in enumerate((0.4, 0.6)):
        scores = np.linspace(center - 0.1, center + 0.1, 21)
        np.testing.assert_allclose(
            transport.move(scores, np.full(21, group)), scores - center + 0.25 * 0.4 + 0.75 * 0.6, atol=2e-3
        )


def test_three_groups_agree_as_well():
    rows, _, groups = made_rows(9000, 3, n_groups=3)
    new, _, later = made_rows(20_000, 4, n_groups=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fair = PrivateBarycenter(PUBLIC, epsilon=2.0, bounds=BOUNDS, groups=[0, 1, 2])
        fair.fit(rows, sensitive_features=groups)
    assert ks(PUBLIC.predict(new), later) > 0.5 > 0.06 > ks(fair.predict(new, sensitive_features=later), later)


# ---- what it certifies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "epsilon"), [(3000, 1.0), (800, 40.0)])
def test_the_bound_holds_in_nineteen_of_twenty_runs_and_says_something(n, epsilon):
    plan = TransportPlan(n, 2, epsilon, 1e-5, REPLACED)
    first, second = n * 3 // 5, n * 2 // 5
    rng, bounds, gaps = np.random.default_rng(0), [], []
    grid = np.linspace(0, 1, 20_001)
    for _ in range(300):
        scores = np.concatenate([rng.normal(0.4, 0.05, first), rng.normal(0.5, 0.07, second)]).clip(0, 1)
        groups = np.repeat([0, 1], [first, second])
        edges = np.unique(np.quantile(scores, np.linspace(0, 1, 33)))
        counts = plan.counts(scores, groups, edges)
        transport = Transport(edges, counts + plan.table.sigma * rng.normal(size=counts.shape), plan.table.sigma)
        moved = plan.counts(transport.move(scores, groups), groups, ends := transport.ends(plan.n_looked_at))
        judged = KSJudgement(moved + plan.look.sigma * rng.normal(size=(2, len(ends) - 1)), plan.look.sigma)
        # the laws of moved scores: those of scores at the points that move there
        laws = []
        for code, law in enumerate((norm(0.4, 0.05), norm(0.5, 0.07))):
            at = transport.move(grid, np.full(len(grid), code))
            laws.append(np.interp(grid, *_rising(at, law.cdf(grid))))
        _, bound, _ = judged.said(0.05)
        bounds.append(bound)
        gaps.append(np.abs(laws[0] - laws[1]).max())
    assert np.mean(np.greater_equal(bounds, gaps)) > 0.94
    assert np.mean(bounds) < 2.3 * np.mean(gaps)  # it was more than three times what is left


def _rising(at, levels):
    """The largest level that is reached at each point."""
    points, first = np.unique(at, return_index=True)
    last = np.append(first[1:], len(at)) - 1
    return points, levels[last]


def with_points(center, spread, *points):
    """A law of 2,000 scores: normal ones, and a share of them at each point."""
    of_each = [round(2000 * share) for share, _ in points]
    rest = 2000 - sum(of_each)
    there = np.repeat([at for _, at in points], of_each)
    return np.concatenate([norm.ppf((np.arange(rest) + 0.5) / rest, center, spread), there]).clip(0, 1).round(6)


def integers(p):
    """A law of the scores 0, 1/10, … 1."""
    return np.repeat(np.arange(11) / 10, (2000 * binom.pmf(range(11), 10, p)).round().astype(int))


LAWS = {
    "half of one group": (with_points(0.4, 0.1, (0.5, 0.5)), with_points(0.5, 0.1)),
    "zeros": (with_points(0.4, 0.1, (0.3, 0.0)), with_points(0.5, 0.1, (0.5, 0.0))),
    "several": (with_points(0.4, 0.1, (0.2, 0.2), (0.3, 0.6)), with_points(0.5, 0.1, (0.3, 0.2), (0.1, 0.6))),
    "integers": (integers(0.4), integers(0.5)),
    "no points": (with_points(0.4, 0.05), with_points(0.5, 0.07)),
}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("law", "n", "epsilon", "above"),
    [
        ("half of one group", 60_000, 3.0, 0.02),  # the bound held in 37 of 60 runs
        ("zeros", 8000, 1.0, 0.05),  # and was .33 above the distance
        ("several", 8000, 1.0, 0.05),
        ("integers", 8000, 1.0, 0.05),
        ("half of one group", 1500, 1.0, 0.25),
        ("no points", 8000, 1.0, 0.05),
    ],
)
def test_the_bound_holds_where_many_rows_are_at_a_point(law, n, epsilon, above):
    plan, groups = TransportPlan(n, 2, epsilon, 1e-5, NULL), np.arange(n) % 2
    bounds, gaps = [], []
    for seed in range(60):
        rng, noise = np.random.default_rng(seed), NoiseSource(seed)
        scores = np.column_stack([rng.choice(one, n // 2) for one in LAWS[law]]).ravel()
        transport = plan.release(scores, groups, noise)
        bounds.append(plan.release_judgement(transport, scores, groups, groups, noise).said(0.05)[1])
        moved = [transport.move(one, np.full(len(one), code)) for code, one in enumerate(LAWS[law])]
        gaps.append(ks_2samp(*moved).statistic)
    # of 60 draws 95 of 100 are 57, and their standard deviation is 1.7
    assert np.greater_equal(bounds, gaps).sum() >= 55
    assert np.mean(bounds) < np.mean(gaps) + above


def test_it_says_yes_where_many_rows_show_it_and_warns_where_it_cannot_be():
    rows, _, groups = made_rows(60_000, 5)
    fair = PrivateBarycenter(PUBLIC, epsilon=3.0, bounds=BOUNDS, groups=[0, 1]).fit(rows, sensitive_features=groups)
    assert fair.constraint_holds_ == "yes" and fair.gap_ <= fair.gap_bound_ <= 0.05
    # all predictions of a group at one of two points: no rising map makes them agree
    spikes = LinearRegression().fit([[0.0], [1.0]], [0.0, 10.0])
    half, group = np.tile([0.0, 1.0, 1.0, 1.0], 2000)[:, None], np.tile([0, 0, 1, 1], 2000)
    worst = PrivateBarycenter(spikes, epsilon=5.0, bounds=(0, 10), groups=[0, 1])
    with pytest.warns(FairnessWarning, match="did not reach gamma"):
        worst.fit(half, sensitive_features=group)
    assert worst.constraint_holds_ == "no"


class _ForSome(RegressorMixin, BaseEstimator):
    """Has no prediction for half of a group."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.where((X[:, 1] > 0) & (X[:, 0] > 0), np.nan, 20 + 4 * X[:, 0])


def test_rows_without_a_prediction_count_where_they_are_put():
    rng = np.random.default_rng(0)
    rows, group = rng.normal(size=(4000, 2)), rng.integers(2, size=4000)
    rows[:, 1] = group
    model = PrivateBarycenter(_ForSome().fit(rows, group), epsilon=2.0, groups=[0, 1], bounds=(0, 50), noise_seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, sensitive_features=group)
    said = model.predict(rows, sensitive_features=group)
    assert np.isfinite(said).all()
    assert model.gap_bound_ >= ks(said, group) > 0.3


@pytest.mark.filterwarnings("ignore:PrivateBarycenter did not reach gamma")
@pytest.mark.parametrize(("bounds", "end"), [((0, 5), "5"), ((100, 200), "100"), ((0, 1e6), "0")])
def test_predictions_in_another_unit_than_the_bounds_are_told_of(bounds, end):
    with pytest.warns(UtilityWarning, match=f"nearly all predictions .* lie at {end}, one end.*same unit"):
        fitted(bounds=bounds, loud=True)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
def test_no_warning_says_that_a_row_is_predicted_far_away():
    far = X.copy()
    far[7] = 3e307
    model = PrivateBarycenter(PUBLIC, epsilon=2.0, groups=[0, 1], bounds=(0.0, 0.01))
    assert model.fit(far, sensitive_features=GROUPS).gap_ <= 1.0


def test_a_regressor_of_several_amounts_is_refused():
    model = LinearRegression().fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="returns no finite score for any of"):
        fitted(model)


def test_a_group_that_noise_hides_is_told():
    with pytest.warns(FairnessWarning, match="hides the distribution of predictions in the group"):
        model = fitted(rows=slice(0, 200), epsilon=0.1, loud=True)
    assert model.gap_bound_ == 1.0 and model.constraint_holds_ == "within the noise"


# ---- what it costs -------------------------------------------------------------------------------------------
def test_the_price_is_that_of_the_tables_and_of_the_model_inside(tmp_path):
    ledger = PrivacyLedger(epsilon=1.5)
    model = FairDPSGDRegressor(epsilon=0.5, bounds=BOUNDS, random_state=0, ledger=ledger).fit(X, Y)
    fair = fitted(model, bounds=None, epsilon=0.7, ledger=ledger)
    assert len(ledger.entries) == 2 and ledger.entries[1].event == fair.privacy_.parts[0].event
    assert epsilon_of(ledger.entries[1].event, 1e-5) <= 0.7 < fair.epsilon_spent_ <= 1.2
    assert str(fair.privacy_.neighboring_relation) == str(NULL)
    (tmp_path / "statement.json").write_text(fair.privacy_statement().to_json())
    assert all(check.holds for check in verify_file(tmp_path / "statement.json"))
    assert "Kolmogorov" not in str(fair.privacy_) and fair.planned_privacy(X, sensitive_features=GROUPS).epsilon
    with pytest.raises(BudgetExceededError):
        fitted(model, bounds=None, epsilon=5.0, ledger=ledger)
    assert len(ledger.entries) == 2


@pytest.mark.parametrize("relation", [NULL, REPLACED])
def test_one_row_moves_no_table_by_more_than_declared(relation):
    plan = TransportPlan(50, 3, 1.0, 1e-5, relation)
    rng = np.random.default_rng(0)
    scores, groups, edges = rng.random(50), rng.integers(3, size=50), np.linspace(0, 1, 9)
    before, moved = plan.counts(scores, groups, edges), 0.0
    without = plan.counts(np.delete(scores, 7), np.delete(groups, 7), edges)
    moved = float(np.linalg.norm(without - before))  # a null record is in no cell
    for score in (0.0, 0.3, 0.5, 1.0) if relation is REPLACED else ():
        for group in range(3):
            other, its = scores.copy(), groups.copy()
            other[7], its[7] = score, group
            moved = max(moved, float(np.linalg.norm(plan.counts(other, its, edges) - before)))
    assert moved <= plan.table.sensitivity <= plan.look.sensitivity * (1 + 1e-12)
    assert plan.cells.counts.sensitivity == plan.table.sensitivity
    assert relation is NULL or moved == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("relation", [NULL, REPLACED])
def test_all_tables_together_cost_at_most_epsilon(relation):
    plan = TransportPlan(3000, 2, 1.0, 1e-5, relation)
    tables = [*[plan.cells.counts.event] * 3, plan.table.event, plan.look.event]
    assert 0.95 < epsilon_of(plan.event, 1e-5) <= 1.0
    assert epsilon_of(plan.event, 1e-5) == pytest.approx(epsilon_of(compose(*tables), 1e-5))


def test_every_release_is_on_the_event():
    with recording_noise(entropy=0) as record:
        fair = fitted()
    released = [one.mechanism for one in record.releases if isinstance(one.mechanism, GaussianMechanism)]
    assert len(released) == 5 and fair.privacy_.epsilon <= 1.0


# ---- what is refused, before anything is spent ---------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "options", "kind", "says"),
    [
        (None, {}, ValueError, "needs a fitted regressor"),
        (LinearRegression(), {}, NotFittedError, "fitted already"),
        (LogisticRegression().fit(X[:100], GROUPS[:100]), {}, ValueError, "must be a regressor"),
        (PUBLIC, {"bounds": None}, ValueError, "needs 'bounds'"),
        (PUBLIC, {"gamma": 2.0}, ValueError, "gamma"),
        (LinearRegression().fit(X[:, :2], Y), {}, ValueError, "other columns"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(model, options, kind, says):
    ledger = PrivacyLedger(epsilon=1.0)
    with pytest.raises(kind, match=says):
        fitted(model, ledger=ledger, **options)
    assert ledger.entries == ()


@pytest.mark.parametrize(("bounds", "groups"), [((5, -5), GROUPS), (None, np.arange(len(X)) % 101)])
def test_what_needs_no_fit_to_be_refused_is_refused_before_the_first_one(bounds, groups):
    both = PrivateBarycenter(FairDPSGDRegressor(bounds=(-9, 9)), bounds=bounds)
    with pytest.raises(ValueError, match=r"needs 'bounds'|got 101: at least 2, and at most 100"):
        both.fit(X, Y, sensitive_features=groups)
    assert not hasattr(both, "estimator_")


def test_bounds_of_features_are_none_of_amounts():
    """Half of the predictions were cut at the largest feature."""
    made = SyntheticDataRegressor(bounds=(-5, 5), bounds_y=(0, 200), dtypes=float, groups=[0, 1])
    both = PrivateBarycenter(made, groups=[0, 1], group_at_prediction=True, random_state=0)
    both.fit(X, 100 + 20 * X[:, 0], sensitive_features=GROUPS)
    assert both.predict(X, sensitive_features=GROUPS).max() > 80


def test_predictions_need_the_group():
    with pytest.raises(ValueError, match="needs sensitive_features to predict"):
        fitted().predict(X_NEW)


# ---- how it is used ------------------------------------------------------------------------------------------
def test_it_works_with_tables_columns_of_groups_and_frozen_models():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=np.where(GROUPS == 1, "f", "m"))
    model = LinearRegression().fit(frame[["a", "b", "c"]][:500], Y[:500])
    fair = PrivateBarycenter(FrozenEstimator(model), bounds=BOUNDS, groups=["f", "m"], sensitive_columns="sex")
    assert is_regressor(fair)
    fair = clone(fair).fit(frame)
    assert ks(fair.predict(frame), GROUPS) < 0.08 and fair.score(frame, Y) > 0.5


def test_a_model_without_a_guarantee_counts_as_public_and_that_is_said():
    with pytest.warns(PrivacyLeakWarning, match="has no privacy_"):
        fitted()
