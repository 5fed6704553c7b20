"""Labels of synthetic rows by sums of the features of each class: what is charged, what follows, and where."""

import math
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skfairdp import SyntheticDataClassifier
from skfairdp._class_sums import ClassSums, PublicScale, SoftmaxRule
from skfairdp._tables import Column, MarginalsBackend, NumberColumn
from skfairdp.exceptions import UtilityWarning
from skfairdp.generative import TableCodec
from skfairdp.generative._group_rates import CodeFeatures, ModelBySums
from skfairdp.generative._usefulness import FOR_SUMS, TableForecast
from skfairdp.privacy import GaussianDpEvent, GaussianMechanism, epsilon_of, gdp_mu
from tests._tools.sources import FixedAnswers, installed, recording_noise

GIVEN = {"bounds": (-4.0, 4.0), "dtypes": float, "n_samples": 1000, "random_state": 0}
#: Rows that may take the place of any other: at either end, beyond it, missing, and in the middle.
STRANGERS = [([4.0] * 4, 1), ([-4.0] * 4, 0), ([1e300, -1e300, 0.0, 9.0], 1), ([np.nan] * 4, 0), ([0.0] * 4, 1)]


def world(n, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 4)), rng.integers(2, size=n)
    score = X @ [2.0, -1.5, 1.0, 0.0] + groups + rng.logistic(size=n)
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1] ** 0.7)), groups


def classifier(n_classes=2, **given):
    return SyntheticDataClassifier(LogisticRegression(), classes=range(n_classes), **{**GIVEN, **given})


def fitted(model, X, y, groups):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        return model.fit(X, y, sensitive_features=groups)


def releases_of(X, y, groups, n_classes, subject=None):
    model = classifier(n_classes, epsilon=3.0, groups=[0, 1])
    with installed(FixedAnswers()) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sensitive_features=groups, subject=subject)
    return source.log, model


# ---- what is charged -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_release_moves_further_than_its_declared_sensitivity(n_classes):
    X, y, groups = world(300, n_classes)
    here, model = releases_of(X, y, groups, n_classes)
    of_sums = [k for k, (mechanism, _) in enumerate(here) if getattr(mechanism, "sensitivity", 0) == math.sqrt(4.5)]
    assert len(of_sums) == 1 and len(here) >= 6
    farthest = 0.0
    for position in (0, 171):
        for row, label in STRANGERS:
            others = X.copy(), y.copy(), groups.copy()
            others[0][position], others[1][position], others[2][position] = row, label, 1 - groups[position]
            there, other = releases_of(*others, n_classes)
            assert model.privacy_ == other.privacy_
            assert [mechanism for mechanism, _ in here] == [mechanism for mechanism, _ in there]
            for (mechanism, mine), (_, theirs) in zip(here, there, strict=True):
                assert np.linalg.norm(np.subtract(mine, theirs)) <= mechanism.sensitivity
            farthest = max(farthest, float(np.linalg.norm(here[of_sums[0]][1] - there[of_sums[0]][1])))
    assert farthest > 1.4, "the neighbours are too tame to test anything"


def test_a_subject_moves_no_release_further_whatever_rows_it_has_and_if_it_has_none():
    X, y, groups = world(300)
    ids = np.arange(300) // 2
    whose = np.arange(150)

    def released(kept, X):
        subject = pd.Series(pd.Categorical(ids[kept], categories=whose))
        return releases_of(X[kept], y[kept], groups[kept], 2, subject)[0]

    everybody, other = np.ones(300, dtype=bool), X.copy()
    other[20:22] = [[4.0] * 4, [-4.0] * 4]
    here = released(everybody, X)
    for there in (released(everybody, other), released(ids != 10, X)):
        assert [mechanism for mechanism, _ in here] == [mechanism for mechanism, _ in there]
        for (mechanism, mine), (_, theirs) in zip(here, there, strict=True):
            assert np.linalg.norm(np.subtract(mine, theirs)) <= mechanism.sensitivity


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("constraint", [{}, {"gamma": 0.1}])
def test_what_is_planned_is_spent_and_is_at_most_epsilon(epsilon, constraint):
    X, y, groups = world(500)
    model = SyntheticDataClassifier(classes=[0, 1], groups=[0, 1], epsilon=epsilon, **GIVEN, **constraint)
    planned = model.planned_privacy(X, y, sensitive_features=groups)
    with recording_noise(entropy=0) as record, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sensitive_features=groups)
    assert model.privacy_.epsilon == planned.epsilon <= epsilon
    squared = sum((one.sensitivity / one.sigma) ** 2 for one in (r.mechanism for r in record.of(GaussianMechanism)))
    assert epsilon_of(GaussianDpEvent(1 / math.sqrt(squared)), 1e-5) <= model.privacy_.epsilon * (1 + 1e-9)
    assert sum(r.mechanism.sensitivity == math.sqrt(4.5) for r in record.of(GaussianMechanism)) == 1


def test_sums_get_their_share():
    X, y, groups = world(500)
    model = classifier(groups=[0, 1])
    plan = model._plan(model._read(X, y, sensitive_features=groups))
    assert plan.sums.mu**2 == pytest.approx(FOR_SUMS * gdp_mu(1.0, 1e-5) ** 2)
    assert "sums of the features of each class, and of squares of all" in plan.releases
    assert plan.backend.layout.n_classes == 1 and 0.99 < epsilon_of(plan.event, 1e-5) <= 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_replaying_the_releases_gives_the_model_without_the_private_rows(n_classes):
    X, y, groups = world(300, n_classes)
    models = []
    with recording_noise(entropy=0) as record:
        models.append(fitted(classifier(n_classes, groups=[0, 1], epsilon=3.0), X, y, groups))
    with recording_noise(entropy=0, replay=record):
        others = -3 * X[::-1], n_classes - 1 - y, 1 - groups
        models.append(fitted(classifier(n_classes, groups=[0, 1], epsilon=3.0), *others))
    here, there = (vars(model.generator_.model_) for model in models)
    assert joblib.hash(here) == joblib.hash(there)
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


# ---- where there are any -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("n", "given"),
    [
        (60, {}),  # the counts in the sums would not name the largest class
        (4000, {}),  # tables tell as much, and of more than straight lines
        (500, {"balance": "label"}),
        (500, {"admissible": [0]}),
        (500, {"backend": MarginalsBackend(structure="interactions")}),
    ],
)
def test_tables_tell_the_labels_where_sums_are_hidden_not_needed_or_not_what_is_asked_for(n, given):
    X, y, groups = world(n)
    model = classifier(groups=[0, 1], **given)
    assert model._plan(model._read(X, y, sensitive_features=groups)).sums is None


def test_public_numbers_alone_decide():
    assert TableForecast(500, 4, 2, 2, 1.0, 1e-5).sums is None
    one = TableForecast(500, 4, 2, 2, 1.0, 1e-5, may_sum=True)
    assert isinstance(one.sums, ClassSums) and one.snr_marginal and not one.snr_too_low
    assert TableForecast(500, 4, 2, 1, 1.0, 1e-5, may_sum=True).sums is None


def test_bins_that_are_given_are_kept():
    X, y, groups = world(500)
    model = fitted(classifier(groups=[0, 1], codec=TableCodec(n_bins=4)), X, y, groups)
    assert [column.n_values for column in model.generator_._codec.columns] == [4] * 4


# ---- what follows --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_rows_teach_a_learner_what_tables_of_counts_do_not(n_classes):
    gains = {}
    for kind, given in (("sums", {}), ("tables", {"backend": MarginalsBackend(structure="interactions")})):
        gains[kind] = []
        for seed in range(3):
            X, y, groups = world(4000, n_classes, seed)
            with recording_noise(entropy=seed):
                model = fitted(classifier(n_classes, groups=[0, 1], **given), X[:600], y[:600], groups[:600])
            usual = np.bincount(y[600:]).max() / len(y[600:])
            gains[kind].append(np.mean(model.predict(X[600:]) == y[600:]) - usual)
    assert np.mean(gains["sums"]) > np.mean(gains["tables"]) + 0.03 and np.mean(gains["sums"]) > 0.08, gains


def test_nothing_is_learned_where_features_say_nothing():
    rng = np.random.default_rng(0)
    for seed in range(6):
        X, y = rng.normal(size=(3000, 4)), (rng.random(3000) < 0.4).astype(int)
        with recording_noise(entropy=seed):
            model = fitted(classifier(), X[:700], y[:700], None)
        assert np.mean(model.predict(X[700:]) == y[700:]) > 1 - y[700:].mean() - 0.01


def test_rows_of_the_generator_have_the_labels_that_the_sums_tell_in_each_group():
    X, y, groups = world(600)
    model = fitted(classifier(groups=[0, 1], epsilon=4.0), *(part[:300] for part in (X, y, groups)))
    generator = model.generator_
    assert isinstance(generator.model_, ModelBySums)
    rows, labels, drawn = generator.sample_labels(20_000, return_sensitive=True, random_state=0)
    found = np.array([[np.mean((drawn == s) & (labels == k)) for k in (0, 1)] for s in (0, 1)])
    np.testing.assert_allclose(found, generator.rates_, atol=0.01)
    taught = LogisticRegression().fit(rows, labels)
    true = np.array([2.0, -1.5, 1.0, 0.0])
    assert taught.coef_[0] @ true / np.linalg.norm(taught.coef_) / np.linalg.norm(true) > 0.9
    assert np.mean(taught.predict(generator.sample(500, conditions={"y": 1}, random_state=0))) > 0.7


def test_densities_are_those_of_the_rows_that_are_sampled():
    columns: list[Column] = [NumberColumn("a", np.dtype(float), False, np.array([0.0, 1.0, 2.0]), 3.0)]

    class Even:
        def sample(self, cells, rng):
            return rng.integers(3, size=(len(cells), 1))

        def log_likelihood(self, values):
            return np.full((len(values), 2), -math.log(3))

    features = CodeFeatures.of(columns, 2)
    scale = PublicScale.of(features(np.array([[0, 0], [1, 1], [2, 0], [0, 1]])))
    weights = np.array([[0.3], [2.0], [-1.0]])
    codes = np.array([[0], [1], [2]])
    second = [
        expit(weights[0] + scale(features(np.column_stack([codes, [s] * 3]))) @ weights[1:])[:, 0] for s in (0, 1)
    ]
    rates = np.array([[(1 - p.mean()) / 2, p.mean() / 2] for p in second])
    model = ModelBySums(Even(), features, SoftmaxRule(scale, weights), rates)
    cells = np.random.default_rng(0).choice(4, size=40_000, p=rates.ravel())
    values = model.sample(cells, np.random.default_rng(1))[:, 0]
    found = np.array([np.bincount(values[cells == cell], minlength=3) / np.sum(cells == cell) for cell in range(4)])
    np.testing.assert_allclose(found.T, np.exp(model.log_likelihood(codes)), atol=0.015)


@pytest.mark.parametrize(
    ("bounds", "values", "low", "high"),
    [
        ((-40.0, 40.0), lambda rng, n: rng.normal(size=n), (-20.0, -2.0), (2.0, 20.0)),
        (None, lambda rng, n: 1e6 * rng.normal(size=n), (-5e6, -1e6), (1e6, 5e6)),
        (None, lambda rng, n: rng.uniform(100, 120, size=n), (60, 100), (120, 130)),
        (None, lambda rng, n: -rng.uniform(100, 120, size=n), (-130, -120), (-100, -60)),
        (None, lambda rng, n: (rng.random(n) < 0.5) * 3.0, (-0.1, 0.1), (3.0, 4.0)),
    ],
)
def test_where_few_rows_are_is_found_in_wide_bounds_and_without_any(bounds, values, low, high):
    rng = np.random.default_rng(0)
    X, y = np.column_stack([values(rng, 800) for _ in range(4)]), rng.integers(2, size=800)
    ends = []
    for seed in range(3):
        with recording_noise(entropy=seed):
            model = fitted(classifier(bounds=bounds), X, y, None)
        ends += [(column.starts[0], column.high) for column in model.generator_._codec.columns]
    found = np.array(ends)
    inside = (low[0] <= found[:, 0]) & (found[:, 0] <= low[1]) & (high[0] <= found[:, 1]) & (found[:, 1] <= high[1])
    assert inside.mean() >= 0.8, found


def test_where_noise_hides_the_range_of_few_rows_it_is_said():
    rng = np.random.default_rng(0)
    X = np.column_stack([10.0 ** rng.uniform(-9, 9, size=400) for _ in range(4)])
    with recording_noise(entropy=0), pytest.warns(UtilityWarning, match="The noise hides the range of"):
        classifier(bounds=None).fit(X, rng.integers(2, size=400))


def test_a_refit_costs_nothing_and_follows_the_same_rows():
    X, y, groups = world(600)
    model = fitted(classifier(groups=[0, 1], epsilon=3.0), X, y, groups)
    for changes in ({"estimator__C": 0.1}, {"balance": "label"}, {"admissible": [0, 1]}, {"n_samples": 2000}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = model.refit(**changes)
        assert other.privacy_ == model.privacy_ and np.isfinite(other.predict_proba(X)).all()
