"""Private amounts in, any regressor out: one guarantee, and no row but synthetic ones reaches the learner."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import BoundedGroupLoss, ExponentiatedGradient, SquareLoss
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import PrivacyLedger, SyntheticDataRegressor
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning, UtilityWarning
from skfairdp.privacy import GaussianDpEvent, GaussianMechanism, NeighboringRelation, Spending, epsilon_of, flatten
from tests._tools.inside import AmountMean, verify_file
from tests._tools.sources import ZeroNoise, recording_noise

BOUNDS_Y = (0.0, 80.0)
PUBLIC = {"bounds_y": BOUNDS_Y, "bounds": (-6.0, 6.0), "dtypes": float, "random_state": 0}


def made(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    X = rng.normal(size=(n, 5))
    X[:, 2] += groups
    return X, 30 + 4 * X[:, 0] + 3 * X[:, 2] + 3 * rng.normal(size=n), groups


X, Y, GROUPS = made()
TRAIN, TEST = slice(0, 6000), slice(6000, None)


def fitted(learner=None, y=Y, rows=TRAIN, groups=None, X=X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model = SyntheticDataRegressor(learner, **{**PUBLIC, "noise_seed": 0, **options})
        return model.fit(X[rows], y[rows], sensitive_features=groups)


class Recorder(RegressorMixin, BaseEstimator):
    """Remembers what it was given, outside of itself: a learner is cloned before it is fitted."""

    seen = []

    def fit(self, X, y, sensitive_features=None):
        type(self).seen.append((np.array(X), np.array(y), np.array(sensitive_features)))
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


# ---- what it learns ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", [None, LinearRegression(), make_pipeline(StandardScaler(), Ridge())])
def test_it_comes_near_a_ridge_without_privacy(learner):
    ridge = Ridge().fit(X[TRAIN], Y[TRAIN]).score(X[TEST], Y[TEST])
    model = fitted(learner, epsilon=3.0)
    assert is_regressor(model) and model.score(X[TEST], Y[TEST]) > ridge - 0.12


@pytest.mark.filterwarnings("ignore")
def test_the_learner_sees_synthetic_rows_only():
    Recorder.seen.clear()
    model = SyntheticDataRegressor(Recorder(), epsilon=9.0, n_samples=500, groups=[0, 1], **PUBLIC)
    model.fit(X[:400], Y[:400], sensitive_features=GROUPS[:400])
    seen, amounts, given = Recorder.seen[1]  # made-up rows before anything is paid for, then the sampled ones
    rows, drawn, drawn_groups = model.generator_.sample_labels(
        500, return_sensitive=True, random_state=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(seen, model.encoder_.transform(pd.DataFrame(rows).set_axis(list("01234"), axis=1)))
    np.testing.assert_array_equal(amounts, drawn)
    np.testing.assert_array_equal(given, drawn_groups)
    assert not set(Y[:400]) & set(amounts)


def test_amounts_keep_their_order_and_come_in_the_container_of_y():
    model = fitted(LinearRegression(), epsilon=8.0)
    rows, y = model.generator_.sample_labels(5000, random_state=0)
    assert isinstance(y, np.ndarray) and BOUNDS_Y[0] <= y.min() < y.max() <= BOUNDS_Y[1]
    assert abs(y.mean() - Y.mean()) < 1 and 0.8 < y.std() / Y.std() < 1.25
    assert np.corrcoef(rows[:, 0], y)[0, 1] == pytest.approx(np.corrcoef(X[:, 0], Y)[0, 1], abs=0.12)
    table, named = pd.DataFrame(X[TRAIN]).add_prefix("c"), pd.Series(Y[TRAIN], name="price")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model = SyntheticDataRegressor(LinearRegression(), noise_seed=0, **PUBLIC).fit(table, named)
    assert model.generator_.sample_labels(10, random_state=0)[1].name == "price"


def test_amounts_beyond_the_bounds_count_as_the_bound_and_predictions_stay_within():
    wild = np.where(np.arange(len(Y)) % 50 == 0, 1e9, Y)
    model = fitted(epsilon=3.0, y=wild)
    np.testing.assert_array_equal(
        model.predict(X[TEST]), fitted(epsilon=3.0, y=np.clip(wild, *BOUNDS_Y)).predict(X[TEST])
    )
    said = model.predict(1e6 * X[TEST])
    assert BOUNDS_Y[0] <= said.min() and said.max() <= BOUNDS_Y[1]


@pytest.mark.filterwarnings("ignore:Sett:pandas.errors.Pandas4Warning")  # within fairlearn
def test_a_reduction_of_fairlearn_gets_groups_and_predicts_what_it_expects():
    reduction = ExponentiatedGradient(
        LinearRegression(), BoundedGroupLoss(SquareLoss(*BOUNDS_Y), upper_bound=0.05), max_iter=5
    )
    model = fitted(reduction, epsilon=8.0, groups=GROUPS[TRAIN], n_samples=3000)
    said = model.predict(X[TEST])
    np.testing.assert_array_equal(said, model.predict(X[TEST]))
    assert model.score(X[TEST], Y[TEST]) > 0.3


# ---- what it costs -------------------------------------------------------------------------------------------
def test_the_price_is_that_of_the_event_planned_charged_once_and_never_above_what_was_asked(tmp_path):
    ledger = PrivacyLedger(epsilon=1.2)
    model = SyntheticDataRegressor(LinearRegression(), epsilon=1.0, ledger=ledger, **PUBLIC)
    planned = model.planned_privacy(X[TRAIN], Y[TRAIN])
    model.fit(X[TRAIN], Y[TRAIN])
    spent = model.privacy_
    assert spent.epsilon == planned.epsilon == epsilon_of(spent.event, spent.delta) <= 1.0
    assert spent.neighboring_relation is NeighboringRelation.REPLACE_ONE
    (entry,) = ledger.entries
    assert entry.event == spent.event and "by how much the model is ahead of a constant" in entry.releases
    facts = {fact.name: fact.value for fact in spent.public}
    assert facts["bounds of y"] == list(BOUNDS_Y)
    with pytest.raises(BudgetExceededError):
        model.fit(X[TRAIN], Y[TRAIN])
    (tmp_path / "statement.json").write_text(model.privacy_statement().to_json())
    assert all(check.holds for check in verify_file(tmp_path / "statement.json"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "epsilon"), [(6000, 3.0), (6000, 0.2), (60, 0.5)])
def test_everything_that_is_released_is_on_the_event(n, epsilon):
    """Bins, places of amounts, counts, tables and the look; tables of pairs only where pairs show."""
    beside = np.column_stack([X, X[:, 1] + 0.1 * X[:, 0]])[:n]
    with recording_noise(entropy=0) as record:
        model = SyntheticDataRegressor(LinearRegression(), epsilon=epsilon, **PUBLIC).fit(beside, Y[:n])
    drawn = sorted(one.mechanism.sensitivity / one.mechanism.sigma for one in record.releases)
    assert all(isinstance(one.mechanism, GaussianMechanism) for one in record.releases)
    paid = [part for part in flatten(model.privacy_.event).items() if isinstance(part[0], GaussianDpEvent)]
    declared = sorted(1 / part.noise_multiplier for part, times in paid for _ in range(times))
    if len(drawn) < len(declared):
        assert epsilon < 1
        pairs = next(k for k, one in enumerate(declared) if k == len(drawn) or abs(one / drawn[k] - 1) > 1e-6)
        del declared[pairs]
    np.testing.assert_allclose(drawn, declared, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("last", [(80.0, 6.0), (0.0, -6.0), (31.0, 0.0), (1e12, np.nan)])
def test_no_row_moves_a_release_by_more_than_its_sensitivity(last):
    """One row in place of another, its amount and its columns at extremes; all that is told before is the same."""

    def releases(row, replay=None):
        X_, y_ = X[:500].copy(), Y[:500].copy()
        X_[-1], y_[-1] = row[1], row[0]
        given = {"entropy": 0} if replay is None else {"replay": replay}
        with recording_noise(**given) as record:
            SyntheticDataRegressor(LinearRegression(), epsilon=5.0, n_samples=500, **PUBLIC).fit(X_, y_)
        return record

    one = releases((20.0, 1.0))
    other = releases(last, replay=one)
    assert len(one.releases) == len(other.releases) >= 6
    for a, b in zip(one.releases, other.releases, strict=True):
        moved = np.linalg.norm(np.asarray(a.value, float).ravel() - np.asarray(b.value, float).ravel())
        assert moved <= a.mechanism.sensitivity * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [3.0, 0.3])
def test_given_the_releases_no_amount_hangs_on_the_rows(epsilon):
    with recording_noise(entropy=0) as record:
        one = SyntheticDataRegressor(LinearRegression(), epsilon=epsilon, **PUBLIC).fit(X[TRAIN], Y[TRAIN])
    rows = np.random.default_rng(5).permutation(6000)
    with recording_noise(replay=record):
        other = SyntheticDataRegressor(LinearRegression(), epsilon=epsilon, **PUBLIC).fit(2 * X[rows], 0.5 * Y[TRAIN])
    np.testing.assert_array_equal(one.predict(X[TEST]), other.predict(X[TEST]))


def test_another_learner_costs_nothing_and_another_generator_is_refused():
    ledger = PrivacyLedger(epsilon=2.0)
    model = fitted(LinearRegression(), epsilon=2.0, noise_seed=None, ledger=ledger)
    other = model.refit(Ridge(), n_samples=4000)
    assert other.privacy_.epsilon == model.privacy_.epsilon and len(ledger.entries) == 1
    assert other.score(X[TEST], Y[TEST]) > 0.4 and other.generator_ is model.generator_
    with pytest.raises(ValueError, match=r"changes 'estimator', 'n_samples' and the learner's parameters.*'bounds_y'"):
        model.refit(bounds_y=(0, 100))


def test_all_rows_of_a_subject_are_protected_together():
    ids = pd.Series(np.arange(6000) // 3, name="customer")
    model = SyntheticDataRegressor(LinearRegression(), epsilon=3.0, **PUBLIC).fit(X[TRAIN], Y[TRAIN], subject=ids)
    assert model.privacy_.neighboring_relation is NeighboringRelation.REPLACE_SUBJECT
    assert model.privacy_.rows_of == "customer" and model.predict(X[TEST]).shape == (2000,)


# ---- where it is of no use -----------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "epsilon"), [(40, 0.5), (400, 0.05)])
def test_where_noise_hides_everything_a_released_constant_is_predicted_and_told(n, epsilon):
    with pytest.warns(UtilityWarning, match=r"predicts for every row the constant .* would suffice"):
        model = fitted(rows=slice(0, n), epsilon=epsilon)
    assert len(np.unique(model.predict(X[TEST]))) == 1 and isinstance(model.estimator_, DummyRegressor)


@pytest.mark.parametrize(("low", "said"), [(0, "narrow"), (-1e9, "told apart there. Narrow")])
def test_bounds_that_are_far_too_wide_are_named_by_their_parameter(low, said):
    """Found: 'bounds' was named, which are those of the columns here."""
    with pytest.warns(UtilityWarning, match=f"of its 'bounds_y'.* {said} 'bounds_y'"):
        fitted(bounds_y=(low, 1e9))


@pytest.mark.parametrize("units", ["private rows", "subjects"])
def test_what_is_told_counts_what_is_protected(units):
    """Found: subjects were called private rows."""
    ids = {"subject": pd.Series(np.arange(400) // 4, name="id")} if units == "subjects" else {}
    n = 100 if ids else 400
    with pytest.warns(UtilityWarning, match=rf" {n} {units} and epsilon=0.05 .*[\d,]+ {units} or epsilon="):
        SyntheticDataRegressor(LinearRegression(), epsilon=0.05, **PUBLIC).fit(X[:400], Y[:400], **ids)


@pytest.mark.parametrize("is_skewed", [False, True])
def test_with_a_small_epsilon_it_is_as_good_as_the_mean_of_new_amounts(is_skewed):
    """R² was down to -0.3: noise was learned from, and the constant beside it was another one."""
    rng, lost = np.random.default_rng(3), []
    for seed in range(8):
        rows = rng.normal(size=(6000, 8))
        amounts = 20 + rows[:, :3] @ [4.0, 2.0, 1.0] + 4 * rng.normal(size=6000)
        amounts = np.exp(amounts / 10) if is_skewed else amounts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            bounds = (-20, 500 if is_skewed else 60)
            model = fitted(y=amounts, X=rows, rows=slice(0, 4000), epsilon=0.15, bounds_y=bounds, noise_seed=seed)
        lost.append(model.score(rows[4000:], amounts[4000:]))
    assert np.mean(lost) > -0.015 and min(lost) > -0.06


def test_the_released_mean_moves_by_what_a_row_says_and_lies_where_it_is():
    rng = np.random.default_rng(0)
    for relation in (NeighboringRelation.REPLACE_ONE, NeighboringRelation.ZERO_OUT):
        mean, farthest = AmountMean(300, 5.0, 1e-5, relation, 0.15), 0.0
        for _ in range(300):
            amounts, moved = rng.normal(30, rng.choice([1.0, 30.0]), 300), []
            for last in (rng.choice([-1e9, 30.0, 1e9]), np.nan if relation.by_null else rng.choice([-1e9, 1e9])):
                amounts[-1] = last
                with recording_noise(entropy=0) as record, spending(mean, relation) as noise:
                    mean.release(amounts, 30.0, 5.0, noise)
                moved.append(record.releases[0].private)
            farthest = max(farthest, float(np.abs(np.subtract(*moved)).max()))
        assert 0.95 * mean.total.sensitivity < farthest <= mean.total.sensitivity
    exact = AmountMean(300, 1e5, 1e-5, relation, 0.15).release(np.full(300, 33.0), 30.0, 5.0, ZeroNoise())
    assert exact == pytest.approx(33.0, abs=0.1)  # a little of it is noise, as far as one knows


def spending(mean, relation):
    return Spending(mean.event, 1e-5, relation, label="x", ledger=None, noise_seed=None)


def test_features_that_say_nothing_leave_the_released_mean():
    nothing = np.random.default_rng(1).permutation(Y)
    with pytest.warns(UtilityWarning, match=r"the constant 3\d"):
        model = fitted(y=nothing, epsilon=2.0)
    assert np.abs(model.predict(X[TEST]) - nothing.mean()).max() < 3


def test_a_learner_that_fails_is_told_before_anything_is_spent():
    class Fails(Recorder):
        def fit(self, X, y):
            raise RuntimeError("no such engine")

    ledger = PrivacyLedger(epsilon=2.0)
    with pytest.raises(ValueError, match=r"SyntheticDataRegressor fails on made-up rows.*no such engine"):
        SyntheticDataRegressor(Fails(), ledger=ledger, **PUBLIC).fit(X[TRAIN], Y[TRAIN])
    assert not ledger.entries


@pytest.mark.parametrize(
    ("options", "y", "says"),
    [
        ({"bounds_y": None}, Y[TRAIN], r"needs 'bounds_y'.*bounds_y=\(0, 200\)"),
        ({"bounds_y": (5, 5)}, Y[TRAIN], r"needs 'bounds_y'"),
        ({"estimator": LogisticRegression()}, Y[TRAIN], r"must be a regressor"),
        ({}, None, r"requires y"),
        ({}, Y[:3], r"one number per row"),
        ({}, np.where(Y[TRAIN] > 50, np.nan, Y[TRAIN]), r"missing"),
        ({}, np.array(["a"] * 6000), r"y of SyntheticDataRegressor"),
        ({"backend": "g_wgan"}, Y[TRAIN], r"'backend' parameter"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(options, y, says):
    ledger = PrivacyLedger(epsilon=2.0)
    with pytest.raises(ValueError, match=says):
        SyntheticDataRegressor(**{**PUBLIC, "ledger": ledger, **options}).fit(X[TRAIN], y)
    assert not ledger.entries


def test_it_is_cloned_and_pickled():
    model = fitted(LinearRegression(), epsilon=3.0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[TEST]), model.predict(X[TEST]))
    assert not hasattr(clone(model), "generator_")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_columns", [3, 9])
@pytest.mark.parametrize("groups", [None, [0, 1, 2]])
def test_there_is_a_plan_for_any_number_of_rows_and_any_epsilon(groups, n_columns):
    """Where nothing but the constant was worth asking for, what asked for it cost more than there was."""
    rng = np.random.default_rng(0)
    X, y, of = rng.normal(size=(3000, n_columns)), rng.normal(size=3000), rng.integers(3, size=3000)
    given = {"bounds": (-5, 5), "bounds_y": (-5, 5), "dtypes": float, "groups": groups}
    for n in (50, 200, 300, 500, 1000, 3000):
        named = {} if groups is None else {"sensitive_features": of[:n]}
        for epsilon in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0):
            planned = SyntheticDataRegressor(epsilon=epsilon, **given).planned_privacy(X[:n], y[:n], **named)
            assert planned.epsilon <= epsilon
