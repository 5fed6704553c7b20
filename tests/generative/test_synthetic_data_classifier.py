"""Private rows in, any learner out: one guarantee, and no row but synthetic ones reaches the learner."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import PFGuardGenerator, PrivacyLedger, SyntheticDataClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, PrivacyLeakWarning
from skfairdp.schema import Category, Number, Schema

PUBLIC = {"bounds": (-6.0, 6.0), "classes": [0, 1], "groups": [0, 1], "random_state": 0}


@pytest.fixture(scope="module")
def table():
    X, y, groups = make_biased_classification(4000, disparity=0.3, as_frame=True, random_state=0)
    return X, y, groups


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was given, outside of itself: a learner is cloned before it is fitted."""

    seen = []

    def fit(self, X, y, sensitive_features=None):
        type(self).seen.append((np.array(X), np.array(y), np.array(sensitive_features)))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_the_learner_sees_synthetic_rows_only(table):
    X, y, groups = (part[:400] for part in table)  # a learner that nobody knows is asked for one row after the other
    Recorder.seen.clear()
    model = SyntheticDataClassifier(Recorder(), n_samples=500, **PUBLIC).fit(X, y, sensitive_features=groups)
    _, (seen, labels, given) = Recorder.seen  # made-up rows before anything is paid for, then the sampled ones
    rows, drawn, drawn_groups = model.generator_.sample_labels(
        500, return_sensitive=True, random_state=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(seen, model.encoder_.transform(rows.set_axis([str(c) for c in rows], axis=1)))
    np.testing.assert_array_equal(labels, drawn)  # the classes are 0 and 1
    np.testing.assert_array_equal(given, drawn_groups)
    assert not {tuple(row) for row in X.to_numpy()} & {tuple(row) for row in rows.to_numpy()}


@pytest.mark.parametrize(("given", "says"), [({"noise_seed": 0}, "draws its noise"), ({"delta": 0.1}, "is above 1 /")])
def test_warnings_of_a_guarantee_are_in_its_own_name(table, given, says):
    X, y, groups = (part[:400] for part in table)
    with pytest.warns(PrivacyLeakWarning, match=says) as caught:
        SyntheticDataClassifier(LogisticRegression(), **given, **PUBLIC).fit(X, y, sensitive_features=groups)
    assert not [one for one in caught if "PFGuardGenerator" in str(one.message)]


def test_epsilon_is_the_generators_and_is_planned_and_charged_once(table):
    X, y, groups = table
    ledger = PrivacyLedger(epsilon=1.2)
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=1.0, ledger=ledger, **PUBLIC)
    planned = model.planned_privacy(X, y, sensitive_features=groups)
    model.fit(X, y, sensitive_features=groups)
    alone = PFGuardGenerator(epsilon=1.0, balance=None, **PUBLIC)
    expected = alone.planned_privacy(X, y, sensitive_features=groups)
    assert model.privacy_.epsilon == planned.epsilon <= 1.0
    assert model.privacy_.epsilon == pytest.approx(expected.epsilon, rel=1e-3)  # another split of the same budget
    assert len(ledger.entries) == 1 and ledger.entries[0].event == model.privacy_.event
    with pytest.raises(BudgetExceededError):
        model.fit(X, y, sensitive_features=groups)


def test_a_model_of_private_rows_alone_is_better_than_the_majority(table):
    X, y, groups = table
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=2.0, **PUBLIC).fit(X, y, sensitive_features=groups)
    assert model.score(X, y) > max(np.mean(y), 1 - np.mean(y)) + 0.1


@pytest.mark.slow
def test_a_constraint_of_fairlearn_holds_on_real_rows(table):
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    X, y, groups = table
    fair = ExponentiatedGradient(LogisticRegression(), DemographicParity())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own, about pandas
        models = [
            SyntheticDataClassifier(learner, epsilon=2.0, **PUBLIC).fit(X, y, sensitive_features=groups)
            for learner in (LogisticRegression(), fair)
        ]
        rates = [[np.mean(model.predict(X)[groups == g]) for g in (0, 1)] for model in models]
    free, held = (abs(a - b) for a, b in rates)
    assert held < 0.5 * free


@pytest.mark.slow
def test_a_reduction_that_did_not_reach_its_constraint_is_told(table):
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    def told(**settings):
        fair = ExponentiatedGradient(LogisticRegression(), DemographicParity(), **settings)
        model = SyntheticDataClassifier(fair, epsilon=2.0, n_samples=4000, **PUBLIC)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(table[0], table[1], sensitive_features=table[2])
        return [str(one.message) for one in caught if "did not reach its constraint" in str(one.message)]

    stopped = told(max_iter=1)  # the learner without the constraint
    assert len(stopped) == 1 and "predictions for private rows" in stopped[0]
    assert not told()


class Careless(LogisticRegression):
    """A learner that says of a constraint, and does nothing for it."""

    constraints = "demographic_parity"

    def fit(self, X, y, sensitive_features):
        return super().fit(X, y)


def test_a_broken_constraint_is_told_by_the_names_of_the_classes(table):
    """Found: by their positions, so that class 2 of 1, 2 and 3 was called 1."""
    X, y, groups = table
    named = {**PUBLIC, "classes": ["granted", "refused"]}
    with pytest.warns(FairnessWarning, match="did not reach its constraint 'selection_rate of (granted|refused), "):
        SyntheticDataClassifier(Careless(), epsilon=2.0, **named).fit(
            X, np.where(y == 1, "granted", "refused"), sensitive_features=groups
        )


def test_strings_missing_values_and_the_group_as_a_column_are_read(table):
    X, y, groups = table
    raw = X.iloc[:, :2].assign(job=np.where(X.iloc[:, 2] > 0, "clerk", None), sex=np.where(groups == 1, "m", "f"))
    raw.iloc[::7, 0] = np.nan
    model = SyntheticDataClassifier(
        epsilon=2.0, bounds=dict.fromkeys(raw.columns[:2], (-6.0, 6.0)), categories={"job": ["clerk"]},
        dtypes={"sex": "str"}, classes=[0, 1], groups=["f", "m"], sensitive_columns="sex", random_state=0,
    ).fit(raw, y)  # fmt: skip
    assert "sex" not in model.encoder_.schema.columns
    unforeseen = raw.assign(job="astronaut")
    assert set(model.predict(unforeseen)) <= {0, 1}
    assert model.predict_proba(raw).shape == (len(raw), 2)
    with pytest.warns(UserWarning, match="does not have valid feature names"):  # then columns go by their places
        np.testing.assert_array_equal(model.predict(raw.to_numpy()), model.predict(raw))


def test_arrays_go_in_as_well_as_tables(table):
    X, y, groups = table
    model = SyntheticDataClassifier(LogisticRegression(), **PUBLIC)
    predicted = model.fit(X.to_numpy(), y.to_numpy(), sensitive_features=groups).predict(X.to_numpy())
    assert predicted.shape == (len(X),)


def test_a_search_over_the_learner_releases_once(table):
    X, y, groups = table
    ledger = PrivacyLedger(epsilon=1.0)
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.01, 1]})
    model = SyntheticDataClassifier(search, epsilon=1.0, ledger=ledger, **PUBLIC).fit(X, y, sensitive_features=groups)
    assert len(ledger.entries) == 1 and model.estimator_.best_params_


def test_a_learner_that_needs_groups_to_predict_is_refused_before_anything_is_spent(table):
    from fairlearn.postprocessing import ThresholdOptimizer

    X, y, groups = table
    ledger = PrivacyLedger(epsilon=1.0)
    model = SyntheticDataClassifier(ThresholdOptimizer(estimator=LogisticRegression()), ledger=ledger, **PUBLIC)
    with pytest.raises(ValueError, match="The 'estimator' of SyntheticDataClassifier must predict without groups"):
        model.fit(X, y, sensitive_features=groups)
    assert not ledger.entries


def test_a_reduction_of_fairlearn_for_three_classes_is_refused_before_anything_is_spent(table):
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    X, y, groups = table
    three, ledger = np.arange(len(y)) % 3, PrivacyLedger(epsilon=1.0)
    public = {**PUBLIC, "classes": [0, 1, 2]}
    reduction = ExponentiatedGradient(LogisticRegression(), DemographicParity())
    model = SyntheticDataClassifier(reduction, ledger=ledger, **public)
    with pytest.raises(ValueError, match="There are 3: take a learner of many classes"):
        model.fit(X, three, sensitive_features=groups)
    assert not ledger.entries


@pytest.mark.parametrize("learner", ["forest", LogisticRegression])
def test_an_unusable_learner_is_named_before_anything_is_spent(learner, table):
    X, y, groups = table
    ledger = PrivacyLedger(epsilon=1.0)
    with pytest.raises(ValueError, match="'estimator' parameter of SyntheticDataClassifier"):
        SyntheticDataClassifier(learner, ledger=ledger, **PUBLIC).fit(X, y, sensitive_features=groups)
    assert not ledger.entries


def test_the_number_of_rows_to_draw_does_not_change_what_is_released(table):
    X, y, groups = table
    few, many = (
        SyntheticDataClassifier(LogisticRegression(), n_samples=n, **PUBLIC).planned_privacy(
            X, y, sensitive_features=groups
        )
        for n in (100, 10_000)
    )
    assert few.event == many.event


class Fails(Recorder):
    def fit(self, X, y, sensitive_features=None):
        if len(X) > 500:  # no made-up rows any more
            raise RuntimeError("no")
        return super().fit(X, y, sensitive_features)


def test_what_is_paid_for_is_kept_where_the_learner_fails(table):
    X, y, groups = table
    model = SyntheticDataClassifier(Fails(), **PUBLIC)
    with pytest.raises(RuntimeError) as caught:
        model.fit(X, y, sensitive_features=groups)
    assert "The generator is released" in caught.value.__notes__[0]
    assert model.generator_.sample(5).shape == (5, X.shape[1]) and model.privacy_.epsilon <= 1.0


def test_labels_of_any_kind_come_back(table):
    X, y, groups = table
    names = np.where(y == 1, "yes", "no")
    options = {**PUBLIC, "classes": ["no", "yes"]}
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=2.0, **options)
    model.fit(X, names, sensitive_features=groups)
    assert model.score(X, names) > 0.6 and model.predict_proba(X).shape == (len(X), 2)
    assert set(model.predict(X)) == {"no", "yes"}


@pytest.mark.parametrize(("n_rows", "n_synthetic"), [(400, 20_000), (50_000, 50_000), (10**6, 100_000)])
def test_a_learner_sees_as_many_synthetic_rows_as_private_ones_but_neither_few_nor_a_million(n_rows, n_synthetic):
    """A million of them took most of 36 seconds and 2.5 GiB."""
    model, generator = SyntheticDataClassifier(), SimpleNamespace(classes_=np.array([0, 1]))
    model._adopt(generator, SimpleNamespace(layout=SimpleNamespace(n_rows=n_rows)))
    assert model._n_default == n_synthetic


def test_a_seeded_fit_is_the_same_again():
    """Its usual learner takes part of the rows by chance: that chance is seeded as well."""
    X, y, groups = make_biased_classification(6000, random_state=0)
    options = {"epsilon": 3.0, "classes": [0, 1], "groups": sorted(set(groups)), "random_state": 0, "noise_seed": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, again = (
            SyntheticDataClassifier(**options).fit(X, y, sensitive_features=groups).predict_proba(X[:500])
            for _ in range(2)
        )
    np.testing.assert_array_equal(one, again)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize("gamma", [None, 0.1])
@pytest.mark.parametrize("n_samples", [1, 2, 5])
def test_few_samples_teach_the_most_frequent_class_and_lose_nothing_that_is_paid_for(n_samples, gamma):
    X, y, groups = make_biased_classification(400, n_features=4, random_state=0)
    model = SyntheticDataClassifier(
        epsilon=5.0, n_samples=n_samples, gamma=gamma, bounds=(-9, 9), classes=[0, 1], groups=[0, 1], random_state=0
    )
    assert set(model.fit(X, y, sensitive_features=groups).predict(X)) <= {0, 1}


def test_a_learner_that_so_few_samples_do_not_suffice_for_is_refused_before_anything_is_paid():
    X, y, groups = make_biased_classification(400, n_features=4, random_state=0)
    ledger = PrivacyLedger(epsilon=10.0)
    model = SyntheticDataClassifier(
        CalibratedClassifierCV(LogisticRegression(), cv=40), n_samples=20, bounds=(-9, 9), classes=[0, 1],
        groups=[0, 1], ledger=ledger,
    )  # fmt: skip
    with pytest.raises(ValueError, match="fails on made-up rows, in a trial"):
        model.fit(X, y, sensitive_features=groups)
    assert not ledger.entries


def test_a_tiny_number_of_samples_is_named_where_one_class_is_all_that_is_learned(table):
    X, y, groups = table
    model = SyntheticDataClassifier(LogisticRegression(), n_samples=3, classes=[0, 1], groups=[0, 1], random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups)
    assert any("'n_samples'=3 rows: more of them cost nothing" in str(one.message) for one in said)


@pytest.fixture(scope="module")
def clear_table():
    """Labels that follow from two columns; and a group that depends on one of them, or on nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = (X.sum(axis=1) + rng.normal(size=4000) > 0).astype(int)
    groups = {"chance": np.arange(4000) < 40, "column": X[:, 0] + 0.5 * rng.normal(size=4000) > 1.2}
    return X, y, {name: np.where(few, "few", "many") for name, few in groups.items()}


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning", "ignore::UserWarning")
@pytest.mark.filterwarnings("ignore:Sett:pandas.errors.Pandas4Warning")  # within fairlearn
@pytest.mark.parametrize("learner", [None, LogisticRegression()])
@pytest.mark.parametrize("noise_seed", [1, 3])
def test_a_small_group_that_only_chance_sets_apart_costs_no_accuracy(clear_table, learner, noise_seed):
    X, y, groups = clear_table
    how = PUBLIC | {"groups": ["few", "many"], "n_samples": 4000, "noise_seed": noise_seed}
    model = SyntheticDataClassifier(learner, gamma=0.05, **how).fit(X, y, sensitive_features=groups["chance"])
    free = model.refit(gamma=1.0)
    assert np.mean(model.predict(X) == y) > np.mean(free.predict(X) == y) - 0.02


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning", "ignore::UserWarning")
@pytest.mark.parametrize("noise_seed", [0, 1])
def test_a_small_group_that_truly_differs_is_held_to_its_bound(clear_table, noise_seed):
    X, y, groups = clear_table
    how = PUBLIC | {"groups": ["few", "many"], "n_samples": 4000, "noise_seed": noise_seed}
    model = SyntheticDataClassifier(gamma=0.05, **how).fit(X, y, sensitive_features=groups["column"])
    few = groups["column"] == "few"

    def gap(found):
        answers = found.predict(X)
        return abs(answers[few].mean() - answers[~few].mean())

    assert gap(model.refit(gamma=1.0)) > 0.3
    assert gap(model) < 0.15  # its bound, and what noise leaves unknown of 600 rows


@pytest.mark.parametrize("step", [None, 1])
def test_far_too_wide_bounds_of_a_number_do_not_hide_it_from_a_linear_learner(step):
    """Without narrower ones it is right on .58 of the rows."""
    rng, n = np.random.default_rng(0), 4000
    table = pd.DataFrame({"pay": np.exp(rng.normal(8, 1, n)).round(), "sex": rng.choice(["f", "m"], n)})
    table["label"] = np.where(np.log(table["pay"]) + rng.logistic(0, 0.3, n) > 8, "yes", "no")
    columns = {"pay": Number(0, 10_000_000, step=step), "sex": Category(["f", "m"]), "label": Category(["no", "yes"])}
    schema = Schema(columns, label="label", groups="sex")
    model = SyntheticDataClassifier(LogisticRegression(), schema=schema, epsilon=1, random_state=0).fit(table[:3000])
    assert model.score(table[3000:]) > 0.75
    read = model.encoder_.schema
    assert read.columns["pay"].high < 1_000_000 and model.schema is schema
    assert {name: one for name, one in read.columns.items() if name != "pay"} == {
        name: one for name, one in schema.columns.items() if name != "pay"
    }


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
def test_bands_that_pandas_has_cut_are_categories(declared):
    """Found: refused when they reached the learner, with the budget spent."""
    rng = np.random.default_rng(0)
    age, groups = rng.integers(18, 80, 600), rng.integers(0, 2, 600)
    X, y = pd.DataFrame({"band": pd.cut(age, [0, 30, 50, 100])}), (age > 50).astype(int)
    given = {"categories": {"band": X["band"].cat.categories.tolist()}} if declared else {}
    model = SyntheticDataClassifier(epsilon=8, classes=[0, 1], groups=[0, 1], random_state=0, **given)
    assert model.fit(X, y, sensitive_features=groups).score(X, y) > 0.95


@pytest.mark.parametrize("cells", [pd.period_range("2020-01", periods=3, freq="M"), [b"a", b"b", b"c"]])
@pytest.mark.parametrize("declared", [False, True])
def test_categories_that_no_schema_knows_are_refused_before_anything_is_spent(cells, declared):
    X, ledger = (
        pd.DataFrame({"c": pd.Categorical.from_codes([0, 1, 2] * 50, categories=cells)}),
        PrivacyLedger(epsilon=5),
    )
    given = {"categories": {"c": list(cells)}} if declared else {}
    model = SyntheticDataClassifier(classes=[0, 1], groups=[0, 1], ledger=ledger, **given)
    with pytest.raises(ValueError, match=r"Column 'c' .* neither numbers nor categories, such as (Period|bytes)"):
        model.fit(X, [0, 1] * 75, sensitive_features=[0, 1] * 75)
    assert not ledger.entries


@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
def test_trees_of_two_splits_learn_more_from_noisy_tables_than_deep_ones():
    """Columns that say nearly the same: how many of them go with a label together, tables do not say."""
    ahead = 0.0
    for seed in range(2):

        def rows(n, seed):
            rng = np.random.default_rng(seed)
            said = rng.normal(size=n)
            X = np.column_stack([said + 0.3 * rng.normal(size=n) for _ in range(12)])
            return X, (rng.random(n) < 1 / (1 + np.exp(-said))).astype(int)

        X, y = rows(6000, seed)
        usual = SyntheticDataClassifier(bounds=(-4.0, 4.0), classes=[0, 1], random_state=0, noise_seed=seed).fit(X, y)
        deep = usual.refit(HistGradientBoostingClassifier(random_state=0))
        X, y = rows(8000, 100 + seed)
        ahead += np.mean(usual.predict(X) == y) - np.mean(deep.predict(X) == y)
    assert ahead / 2 > 0.005
