"""IDP3: what it promises about the gap, what it refuses, and what it says about bad input."""

import copy
import pickle
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity
from hypothesis import example, given, settings, strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfairdp import FairDPSGDClassifier, PrivacyLedger
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.fairness import (
    FairnessGate,
    RateBound,
    RateConstraints,
    RateParity,
    largest_disparity,
    read_rate_constraints,
)
from skfairdp.metrics import demographic_disparity
from skfairdp.postprocessing import IDP3
from tests._tools.layers import examples


def fitted(classes=(0, 1), groups=("a", "b"), **parameters):
    """A post-processor of predictions: no estimator, only the two domains."""
    return IDP3(groups=list(groups), **parameters).fit(None, list(classes))


@pytest.fixture
def stream():
    """Predictions at the true rates .1 and .6: a gap of .5 before any refusal."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], size=1000)
    return (rng.random(1000) < np.where(groups == "a", 0.1, 0.6)).astype(int), groups


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    groups = np.where(X[:, 0] > 0, "m", "f")
    y = (X[:, 1] + 0.8 * (groups == "m") + rng.normal(size=600) > 0.4).astype(int)
    return X, y, groups


# ---- constraints -----------------------------------------------------------------------------------------------
PARITIES = {
    "name": "demographic_parity",
    "bound": RateParity("selection_rate", difference_bound=0.03),
    "overall": RateParity("selection_rate", difference_bound=0.03, method="to_overall"),
    "fairlearn": DemographicParity(difference_bound=0.02),
}


@pytest.mark.covering
@pytest.mark.parametrize(("n_groups", "n_classes"), [(2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("constraints", PARITIES.values(), ids=PARITIES)
def test_constraints_hold_after_every_answer_from_the_first_moment_they_do(constraints, n_groups, n_classes):
    """Judged by the constraint itself, over the answers so far, behind the cold start."""
    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=5000)
    predicted = ((rng.random(5000) + 0.1 * groups) * n_classes).astype(int).clip(0, n_classes - 1)
    asked = read_rate_constraints(constraints, "a test")
    judge = RateConstraints(asked, list(range(n_groups)), list(range(n_classes)))
    min_count = 250  # so that one answer moves a rate by less than a tenth of the bounds
    idp = fitted(range(n_classes), range(n_groups), constraints=constraints, min_count=min_count)
    refused = idp.reject_mask(predicted, sensitive_features=groups)
    answers = np.zeros((np.sum(~refused), n_groups, n_classes))
    answers[np.arange(len(answers)), groups[~refused], predicted[~refused]] = 1
    counts = answers.cumsum(axis=0)[np.flatnonzero(answers.cumsum(axis=0).sum(axis=2).min(axis=1) >= min_count)]
    rates = np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1)
    rates = (rates / rates.sum(axis=2, keepdims=True))[..., slice(1, None) if n_classes == 2 else slice(None)]
    broken = (np.einsum("jar,nar->nj", judge.coefficients, rates) - judge.bounds).max(axis=1)
    assert broken[-1] == pytest.approx(judge.violations(counts[-1][:, None]).max())
    held = broken <= 1e-9
    assert held[-1] and held[held.argmax() :].all() and held.sum() > 200 and 0.03 < refused.mean() < 0.7


OTHERS = {
    "four fifths": RateParity("selection_rate", ratio_bound=0.8),
    "a ratio and a difference": RateParity("selection_rate", difference_bound=0.02, ratio_bound=0.8),
    "a ratio to all": RateParity("selection_rate", ratio_bound=0.9, method="to_overall"),
    "fairlearn": DemographicParity(ratio_bound=0.85),
    "a bound of each": RateBound("selection_rate", upper=0.48, of_class=1),
    "a bound of one": RateBound("selection_rate", upper=0.45, groups=[1], of_class=1),
    "a bound of all": RateBound("selection_rate", lower=0.3, upper=0.36, groups="overall", of_class=1),
    "several": [
        RateParity("selection_rate", ratio_bound=0.7), RateBound("selection_rate", upper=0.4, groups="overall")
    ],
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize(("n_groups", "n_classes"), [(2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("constraints", OTHERS.values(), ids=OTHERS)
def test_a_ratio_or_a_bound_holds_at_every_moment_once_it_does_behind_the_cold_start(constraints, n_groups, n_classes):
    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=5000)
    likely = np.array([[0.5, 0.2, 0.3], [0.2, 0.55, 0.25], [0.25, 0.4, 0.35]])[:n_groups]
    if n_classes == 2:
        likely = np.array([[0.7, 0.3], [0.4, 0.6], [0.55, 0.45]])[:n_groups]
    predicted = (rng.random(5000)[:, None] > likely.cumsum(axis=1)[groups][:, :-1]).sum(axis=1)
    judge = RateConstraints(read_rate_constraints(constraints, "a test"), range(n_groups), range(n_classes))
    idp = fitted(range(n_classes), range(n_groups), constraints=constraints, min_count=100)
    refused = idp.reject_mask(predicted, sensitive_features=groups)
    answers = np.zeros((np.sum(~refused), n_groups, 1, n_classes))
    answers[np.arange(len(answers)), groups[~refused], 0, predicted[~refused]] = 1
    counts = answers.cumsum(axis=0)[np.flatnonzero(answers.cumsum(axis=0).sum(axis=(2, 3)).min(axis=1) >= 100)]
    broken = np.array([np.maximum(judge.violations(table), 0.0).sum() for table in counts])
    assert (np.diff(broken) <= 1e-9).all()  # what is broken is never broken more
    held = broken <= 1e-9
    assert held[-1] and held[held.argmax() :].all() and held.sum() > 500 and 0.01 < refused.mean() < 0.7


def test_four_fifths_of_answers_are_what_the_ratio_of_rates_says():
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], size=6000)
    predicted = (rng.random(6000) < np.where(groups == "a", 0.2, 0.4)).astype(int)
    idp = fitted(constraints=RateParity("selection_rate", ratio_bound=0.8))
    told = ~idp.reject_mask(predicted, sensitive_features=groups)
    low, high = sorted(predicted[told & (groups == name)].mean() for name in ("a", "b"))
    assert 0.8 <= low / high < 0.81 and told.mean() > 0.8


def test_a_ratio_of_rare_answers_says_when_no_group_may_have_them():
    """Of no answer 1 at all, the first to one group is infinitely more than the other has."""
    zeros, names = np.zeros(200, dtype=int), np.arange(200) % 2
    idp = fitted(groups=[0, 1], constraints=RateParity("selection_rate", ratio_bound=0.8))
    idp = idp.update(zeros, sensitive_features=names)
    with pytest.warns(FairnessWarning, match="can give the answer 1 to no group any more: no group has more than 0"):
        assert idp.reject_mask([1, 1], sensitive_features=[0, 1]).all()
    idp = fitted(groups=[0, 1], constraints=RateParity("selection_rate", 0.02, 0.8)).update(
        zeros, sensitive_features=names
    )
    assert not idp.reject_mask([1, 1], sensitive_features=[0, 1]).any()


@pytest.mark.parametrize(
    ("constraints", "match"),
    [
        (RateParity("selection_rate", of_class=2), "name 2 in 'of_class'"),
        (RateBound("selection_rate", lower=0.2, groups=["d"]), "name 'd' in 'groups'"),
        ([], "is empty"),
        ("fair", "'constraints' parameter of IDP3 must be one or several of"),
    ],
)
def test_what_speaks_of_no_known_rate_group_or_class_is_refused_before_anything_is_spent(rows, constraints, match):
    X, y, groups = rows
    ledger = PrivacyLedger()
    private = FairDPSGDClassifier(classes=[0, 1], groups=["f", "m"], ledger=ledger)
    with pytest.raises(ValueError, match=match):
        IDP3(private, constraints=constraints).fit(X, y, sensitive_features=groups)
    assert not ledger.entries


@pytest.mark.parametrize("option", [{"gamma": 0.2}, {"gamma": None}, {"disparity": "overall"}, {"gate": "local"}])
def test_constraints_and_what_follows_from_them_are_not_given_together(option):
    with pytest.raises(ValueError, match=f"both 'constraints' and '{next(iter(option))}'"):
        fitted(constraints="demographic_parity", **option)


def test_refusing_by_group_and_answer_leaves_the_odds_ratio_of_a_group_as_it_is():
    """Why no gate that knows group and answer reaches equalized odds where labels are told apart unequally well."""
    rates = {"a": (0.8, 0.1), "b": (0.6, 0.2)}  # of answer 1 among labels 1 and 0

    def answered(rate, no, yes):
        return rate * yes / (rate * yes + (1 - rate) * no)

    no, yes = (values.ravel() for values in np.meshgrid(*2 * [np.geomspace(0.001, 1, 30)]))
    found = {group: np.stack([answered(rate, no, yes) for rate in both], axis=1) for group, both in rates.items()}
    for group, (true, false) in rates.items():
        odds = found[group] / (1 - found[group])
        np.testing.assert_allclose(odds[:, 0] / odds[:, 1], true / (1 - true) / (false / (1 - false)))
    alike = np.abs(found["a"][:, None] - found["b"][None]).max(axis=2) <= 0.01
    of_a = found["a"][alike.any(axis=1)]
    assert len(of_a) > 10
    assert ((of_a.max(axis=1) < 0.1) | (of_a.min(axis=1) > 0.9)).all()  # one answer for nearly everybody


# ---- what holds
# ---------------------------------------------------------------------------------------------
def test_one_call_keeps_the_gap_and_single_row_calls_from_zero_counts_keep_nothing(stream):
    predicted, groups = stream
    idp = fitted()
    at_once = idp.transform(predicted, sensitive_features=groups)
    assert demographic_disparity(None, at_once, sensitive_features=groups, reject_label=-1) <= 0.05
    with pytest.warns(FairnessWarning, match=r"zero counts"):
        one_by_one = np.concatenate(
            [idp.transform(predicted[[i]], sensitive_features=groups[[i]]) for i in range(len(predicted))]
        )
    assert demographic_disparity(None, one_by_one, sensitive_features=groups) > 0.45
    assert idp.counts_.sum() == 0  # neither way committed anything


@pytest.mark.slow
def test_single_row_calls_that_carry_their_counts_equal_one_call(stream):
    predicted, groups = stream
    at_once = fitted().transform(predicted, sensitive_features=groups)
    service, answers = fitted(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # the first row is predicted from zero counts
        for i in range(len(predicted)):
            answers.append(service.transform(predicted[[i]], sensitive_features=groups[[i]]))
            service.update(answers[-1], sensitive_features=groups[[i]])
    np.testing.assert_array_equal(np.concatenate(answers), at_once)
    assert service.coverage_ == np.mean(at_once != -1)
    assert largest_disparity(service.counts_) <= 0.05


def test_predict_is_pure(rows):
    X, y, groups = rows
    idp = IDP3(LogisticRegression()).fit(X, y, sensitive_features=groups)
    before = pickle.dumps(idp)
    first = idp.predict(X, sensitive_features=groups)
    idp.score(X, y, sensitive_features=groups)
    idp.reject_mask(y, sensitive_features=groups)
    np.testing.assert_array_equal(idp.predict(X, sensitive_features=groups), first)
    assert pickle.dumps(idp) == before


def test_decisions_are_the_gates(rows):
    X, y, groups = rows
    for gap, gate in product(["others", "overall", "between"], ["excess", "local"]):
        idp = IDP3(LogisticRegression(), gamma=0.1, min_count=20, disparity=gap, gate=gate)
        idp.fit(X, y, sensitive_features=groups)
        labels = idp.estimator_.predict(X)
        admitted = FairnessGate(2, 2, gamma=0.1, min_count=20, disparity=gap, gate=gate).run(
            (groups == "m").astype(int), labels
        )
        assert 0 < admitted.sum() < 600
        np.testing.assert_array_equal(idp.predict(X, sensitive_features=groups), np.where(admitted, labels, -1))
        np.testing.assert_array_equal(idp.reject_mask(labels, sensitive_features=groups), ~admitted)


def test_score_is_the_accuracy_of_the_answered_rows(rows):
    X, y, groups = rows
    idp = IDP3(LogisticRegression()).fit(X, y, sensitive_features=groups)
    predicted = idp.predict(X, sensitive_features=groups)
    kept = predicted != -1
    assert 0 < kept.sum() < 600
    assert idp.score(X, y, sensitive_features=groups) == np.mean(predicted[kept] == y[kept])
    weights = np.linspace(1, 2, 600)
    expected = np.average(predicted[kept] == y[kept], weights=weights[kept])
    assert idp.score(X, y, sensitive_features=groups, sample_weight=weights) == pytest.approx(expected)


def test_score_of_nothing_answered_is_not_a_number(rows):
    X, y, _ = rows
    idp = IDP3(DummyClassifier(), gamma=0, min_count=0, groups=["m", "f"]).fit(X, y)
    with pytest.warns(FairnessWarning, match="refuses all further rows"):
        assert np.isnan(idp.score(X, y, sensitive_features=np.repeat("m", 600)))


def test_counts_from_which_no_answer_is_possible_are_reported():
    idp = fitted(min_count=2).update([0, 1, 0, 1], sensitive_features=["a", "a", "b", "b"])
    with pytest.warns(FairnessWarning, match="refuses all further rows"):
        assert idp.transform([0, 1], sensitive_features=["a", "b"]).tolist() == [-1, -1]
    idp.update([0, 0, 1, 1] * 10, sensitive_features=["a", "b"] * 20)  # people decide
    assert (idp.transform([0, 1], sensitive_features=["a", "b"]) != -1).any()


@pytest.mark.parametrize("gamma", [None, 1.0])
def test_without_gamma_everything_is_answered(stream, gamma):
    predicted, groups = stream
    np.testing.assert_array_equal(fitted(gamma=gamma).transform(predicted, sensitive_features=groups), predicted)


# ---- counts
# --------------------------------------------------------------------------------------------------
def test_counts_start_at_zero_and_hold_what_is_committed_human_decisions_too():
    idp = fitted(classes=["no", "yes"])
    assert idp.counts_.tolist() == [[0, 0], [0, 0]] and not hasattr(idp, "coverage_")
    assert idp.update(["yes", "reject", "no"], sensitive_features=["a", "a", "b"]) is idp
    assert idp.counts_.tolist() == [[0, 1], [1, 0]]
    assert idp.coverage_ == pytest.approx(2 / 3)
    assert idp.rejection_rate_by_group_ == {"a": 0.5, "b": 0.0}
    idp.update(["yes"], sensitive_features=["a"])  # a person answered what had been refused
    assert idp.counts_.tolist() == [[0, 2], [1, 0]]
    assert idp.coverage_ == 0.75
    assert idp.rejection_rate_by_group_ == {"a": pytest.approx(1 / 3), "b": 0.0}


def test_a_group_without_rows_has_no_rejection_rate():
    idp = fitted().update([0], sensitive_features=["a"])
    assert idp.rejection_rate_by_group_["a"] == 0.0 and np.isnan(idp.rejection_rate_by_group_["b"])


def test_refit_forgets_what_was_committed():
    idp = fitted().update([0], sensitive_features=["a"]).fit(None, [0, 1])
    assert idp.counts_.sum() == 0 and not hasattr(idp, "coverage_")


def test_cold_start_warning_says_the_public_numbers_and_stops_once_counts_are_carried(stream):
    predicted, groups = stream
    idp = fitted(min_count=10)
    with pytest.warns(FairnessWarning, match=r"19 row\(s\).*20"):
        idp.transform(predicted[:19], sensitive_features=groups[:19])
    idp.transform(predicted[:20], sensitive_features=groups[:20])
    idp.update(predicted[:5], sensitive_features=groups[:5])
    idp.transform(predicted[:1], sensitive_features=groups[:1])


# ---- labels, groups, containers
# ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([0, 1], -1),
        ([0.0, 1.0], -1),
        ([False, True], -1),
        (["no", "yes"], "reject"),
        (np.array(["no", "yes"], dtype=object), "reject"),
        ([-1, 1], -2),
        (np.array([0, 200], dtype=np.uint8), -1),
    ],
)
def test_default_reject_label(classes, expected):
    idp = fitted(classes=classes, gamma=0.05, min_count=0)
    assert idp.reject_label_ == expected
    # Nobody is in group b yet, so the first row is answered and the contrary second one refused.
    assert idp.transform([classes[0], classes[1]], sensitive_features=["a", "b"]).tolist() == [classes[0], expected]


@pytest.mark.parametrize("label", [9, -5])
def test_given_reject_label(label):
    idp = fitted(reject_label=label, min_count=0)
    assert idp.transform([0, 1], sensitive_features=["a", "b"]).tolist() == [0, label]


@pytest.mark.parametrize(
    ("classes", "label", "message"),
    [
        ([0, 1], 1, "is one of the classes"),
        (["no", "yes"], "no", "is one of the classes"),
        (["reject", "accept"], None, "is one of the classes"),
        ([0, 1], "reject", "type"),
        ([0, 1], 1.5, "type"),
        ([0, 1], True, "type"),
        ([0.5, 1.5], float("nan"), "type"),
        (["no", "yes"], -1, "type"),
        ([0, 1], [3], "type"),
    ],
)
def test_bad_reject_label_is_refused_at_fit(classes, label, message):
    if classes == [0.5, 1.5]:
        classes = [0.0, 1.0]
    with pytest.raises(ValueError, match=f"'reject_label'.*IDP3.*{message}"):
        fitted(classes=classes, reject_label=label)


def test_refusals_among_the_given_predictions_stay_refusals_and_are_not_counted():
    idp = fitted(min_count=1)
    predicted, groups = [-1, 0, -1, 0], ["a", "a", "b", "b"]
    assert idp.transform(predicted, sensitive_features=groups).tolist() == predicted


def test_groups_come_from_any_container_and_a_table_means_intersections(stream):
    predicted, groups = stream
    expected = fitted().transform(predicted, sensitive_features=groups)
    for container in (list, pd.Series, lambda g: pd.DataFrame({"sex": g}), lambda g: np.array(g, dtype=object)):
        np.testing.assert_array_equal(fitted().transform(predicted, sensitive_features=container(groups)), expected)
    table = pd.DataFrame({"sex": groups, "old": np.arange(1000) % 2})
    idp = IDP3().fit(None, predicted, sensitive_features=table)
    assert idp.groups_.tolist() == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    given = IDP3(groups=[("b", 1), ("a", 0), ("a", 1), ("b", 0)]).fit(None, [0, 1])
    np.testing.assert_array_equal(
        given.transform(predicted, sensitive_features=table), idp.transform(predicted, sensitive_features=table)
    )


@pytest.mark.parametrize("names", [["sex"], "sex", [0], 0])
def test_sensitive_columns_are_groups_and_no_features(rows, names):
    X, y, groups = rows
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(sex=groups)[["sex", "x0", "x1", "x2"]]
    idp = IDP3(LogisticRegression(), sensitive_columns=names).fit(frame, y)
    assert idp.n_features_in_ == 4 and idp.estimator_.n_features_in_ == 3
    assert list(idp.feature_names_in_) == ["sex", "x0", "x1", "x2"]
    assert list(idp.estimator_.feature_names_in_) == ["x0", "x1", "x2"]
    expected = IDP3(LogisticRegression()).fit(frame[["x0", "x1", "x2"]], y, sensitive_features=groups)
    np.testing.assert_array_equal(
        idp.predict(frame), expected.predict(frame[["x0", "x1", "x2"]], sensitive_features=groups)
    )
    assert idp.score(frame, y) == expected.score(frame[["x0", "x1", "x2"]], y, sensitive_features=groups)


def test_sensitive_columns_of_an_array(rows):
    X, y, groups = rows
    table = np.column_stack([X, groups == "m"])
    idp = IDP3(LogisticRegression(), sensitive_columns=3).fit(table, y)
    assert idp.groups_.tolist() == [0.0, 1.0]
    expected = IDP3(LogisticRegression()).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(idp.predict(table), expected.predict(X, sensitive_features=groups))


# ---- estimators
# ----------------------------------------------------------------------------------------------
def test_fitted_estimator_needs_neither_y_nor_refitting(rows):
    X, y, groups = rows
    model = LogisticRegression().fit(X, y)
    idp = IDP3(FrozenEstimator(model)).fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(idp.classes_, [0, 1])
    np.testing.assert_array_equal(idp.estimator_.predict(X), model.predict(X))


def test_the_given_estimator_is_not_changed(rows):
    X, y, groups = rows
    model = LogisticRegression()
    IDP3(model).fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "coef_")


class PrivateModel(DummyClassifier):
    """A classifier that reports a guarantee."""

    def fit(self, X, y):
        self.privacy_ = "epsilon = 1"
        return super().fit(X, y)


def test_groups_read_beside_a_private_fit_are_said_to_leak(rows):
    X, y, groups = rows
    with pytest.warns(PrivacyLeakWarning, match="'groups'"):
        IDP3(PrivateModel()).fit(X, y, sensitive_features=groups)
    IDP3(PrivateModel(), groups=["f", "m"]).fit(X, y)
    IDP3(FrozenEstimator(PrivateModel().fit(X, y))).fit(X, sensitive_features=groups)  # these rows may be public


def test_an_estimator_without_classes_gets_them_from_y(rows):
    X, y, groups = rows

    class Bare:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

        def get_params(self, deep=True):
            return {}

    idp = IDP3(Bare()).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(idp.classes_, [0, 1])


def test_copies_predict_the_same(rows):
    X, y, groups = rows
    idp = IDP3(LogisticRegression()).fit(X, y, sensitive_features=groups)
    idp.update(idp.predict(X, sensitive_features=groups), sensitive_features=groups)
    expected = idp.predict(X[:50], sensitive_features=groups[:50])
    for other in (pickle.loads(pickle.dumps(idp)), copy.deepcopy(idp)):
        np.testing.assert_array_equal(other.predict(X[:50], sensitive_features=groups[:50]), expected)


# ---- bad input
# -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": -0.1}, "'gamma' parameter of IDP3"),
        ({"gamma": "0.1"}, "'gamma' parameter of IDP3"),
        ({"gamma": float("nan")}, "'gamma' parameter"),
        ({"min_count": -1}, "'min_count' parameter of IDP3"),
        ({"min_count": 0.5}, "'min_count' parameter of IDP3"),
        ({"disparity": "else"}, "'disparity' parameter of IDP3"),
        ({"gate": "else"}, "'gate' parameter of IDP3"),
        ({"estimator": "logistic"}, "'estimator' parameter of IDP3"),
        ({"groups": []}, "'groups'"),
        ({"groups": ["a", "a"]}, "'groups'"),
        ({"groups": ["a", None]}, "'groups'"),
        ({"groups": "ab"}, "'groups'"),
        ({"sensitive_columns": ["sex"], "groups": ["a"]}, "sensitive_columns"),
        ({"sensitive_columns": 9}, "sensitive_columns"),
    ],
)
def test_bad_parameters_are_refused_before_the_estimator_is_fitted(rows, parameters, message):
    X, y, groups = rows

    class NeverFitted(LogisticRegression):
        def fit(self, X, y):
            raise AssertionError("fitted before validation")

    passed = None if "sensitive_columns" in parameters else groups
    with pytest.raises(ValueError, match=message):
        IDP3(**{"estimator": NeverFitted(), **parameters}).fit(X, y, sensitive_features=passed)


@pytest.mark.parametrize(
    ("X", "y", "groups", "message"),
    [
        ([[0.0], [1.0]], [0, 1], None, "sensitive_features"),
        ([[0.0], [1.0]], [0, 1], ["a", np.nan], "missing"),
        ([[0.0], [1.0]], [0, 1], ["a"], "inconsistent length"),
        ([[0.0], [1.0]], [0], ["a", "b"], "inconsistent"),
        ([[0.0], [1.0]], [0, 1], ["a", "a"], "only one group"),
        ([[0.0], [1.0]], [0, 1], [["a"], ["b", "c"]], "sensitive_features"),
        (np.empty((0, 2)), [], [], r"0 sample\(s\)"),
        ([[0.0], [np.nan]], [0, 1], ["a", "b"], "NaN"),
        ([[0.0], [1.0]], None, ["a", "b"], "requires y"),
    ],
)
def test_bad_fit_input_is_a_value_error(X, y, groups, message):
    with pytest.raises(ValueError, match=message):
        IDP3(LogisticRegression()).fit(X, y, sensitive_features=groups)


def test_one_group_proceeds_where_groups_are_given():
    idp = IDP3(LogisticRegression(), groups=["a", "b"]).fit([[0.0], [1.0]], [0, 1], sensitive_features=["a", "a"])
    assert idp.groups_.tolist() == ["a", "b"]
    assert IDP3(groups=["a"], min_count=0).fit(None, [0, 1]).transform(
        [1, 0], sensitive_features=["a", "a"]
    ).tolist() == [1, 0]


def test_only_the_domains_are_learned_without_an_estimator():
    idp = IDP3(min_count=0).fit(None, ["x", "y", "x"], sensitive_features=[1, 0, 0])
    assert idp.classes_.tolist() == ["x", "y"] and idp.groups_.tolist() == [0, 1]
    assert not hasattr(idp, "n_features_in_") and not hasattr(idp, "estimator_")
    with pytest.raises(ValueError, match=r"no estimator.*transform"):
        idp.predict([[0.0]], sensitive_features=[0])
    with pytest.raises(ValueError, match="requires y"):
        IDP3(groups=[0, 1]).fit(None)
    with pytest.raises(ValueError, match="Unknown label type"):
        IDP3(groups=[0, 1]).fit(None, [0.25, 0.5])
    with pytest.raises(ValueError, match="missing"):
        IDP3(groups=[0, 1]).fit(None, ["x", None])
    with pytest.raises(ValueError, match="requires X"):
        IDP3(sensitive_columns=[0]).fit(None, [0, 1])


def test_transform_is_for_the_post_processor_without_an_estimator():
    assert hasattr(IDP3(), "transform") and not hasattr(IDP3(LogisticRegression()), "transform")


@pytest.mark.parametrize("method", ["transform", "reject_mask", "update"])
@pytest.mark.parametrize(
    ("labels", "groups", "message"),
    [
        ([0, 1], None, "sensitive_features"),
        ([0, 1], ["a", None], "missing"),
        ([0, 1], ["a"], "inconsistent length"),
        ([0, 1], ["a", "c"], "'groups'"),
        ([0, 2], ["a", "b"], "not in '"),
        ([0, np.nan], ["a", "b"], "not in '"),
        ([], [], "at least one row"),
        ([[0, 1]], ["a"], "one column"),
        ([{}, 1], ["a", "b"], "not in '"),
    ],
)
def test_bad_prediction_input_is_a_value_error(method, labels, groups, message):
    idp = fitted()
    with pytest.raises(ValueError, match=message):
        getattr(idp, method)(labels, sensitive_features=groups)
    assert idp.counts_.sum() == 0 and not hasattr(idp, "coverage_")


def test_messages_name_no_group_and_no_label_of_a_row():
    idp = fitted()
    for labels, groups in ([0, 1], ["a", "canary"]), (["canary", 1], ["a", "b"]):
        with pytest.raises(ValueError) as error:
            idp.transform(labels, sensitive_features=groups)
        assert "canary" not in str(error.value)


def test_groups_given_twice_are_refused(rows):
    X, y, groups = rows
    table = np.column_stack([X, groups == "m"])
    idp = IDP3(LogisticRegression(), sensitive_columns=3)
    with pytest.raises(ValueError, match="both"):
        idp.fit(table, y, sensitive_features=groups)
    idp.fit(table, y)
    with pytest.raises(ValueError, match="both"):
        idp.predict(table, sensitive_features=groups)


@pytest.mark.parametrize("method", ["transform", "reject_mask", "update", "predict", "score"])
def test_unfitted_use_is_named(method):
    idp = IDP3() if method == "transform" else IDP3(LogisticRegression())
    arguments = ([[0.0]], [0]) if method == "score" else ([[0.0]],)
    with pytest.raises(NotFittedError, match="IDP3"):
        getattr(idp, method)(*arguments, sensitive_features=["a"])


def test_score_needs_as_many_labels_as_rows(rows):
    X, y, groups = rows
    idp = IDP3(LogisticRegression()).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="inconsistent"):
        idp.score(X, y[:-1], sensitive_features=groups)


odd = st.one_of(
    st.none(),
    st.integers(-2, 3),
    st.sampled_from([0.0, float("nan"), float("inf"), "a", "b", "", b"a", True, (0, 1), ("a",), pd.NA, pd.NaT]),
    st.just([]),
    st.builds(dict),
    st.complex_numbers(max_magnitude=2),
)
columns = st.one_of(
    st.lists(odd, max_size=4),
    st.lists(st.integers(0, 1), max_size=4),
    st.lists(st.lists(odd, max_size=2), max_size=3),
    st.lists(odd, max_size=3).map(lambda v: pd.Series(v, dtype=object)),
    odd,
)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@settings(max_examples=examples(400), deadline=None, derandomize=True)
@given(columns, columns, columns, st.one_of(st.none(), columns), odd, odd, odd)
@example([0, 1], [0, 1], [0, 1], None, 0.05, 0, None)
def test_odd_input_raises_value_errors_only(y, groups, labels, domain, gamma, min_count, reject_label):
    answered = problem = None
    try:
        idp = IDP3(gamma=gamma, min_count=min_count, groups=domain, reject_label=reject_label)
        idp.fit(None, y, sensitive_features=groups)
        answered = idp.transform(labels, sensitive_features=groups)
        idp.update(labels, sensitive_features=groups)
    except ValueError as error:
        problem = error
    assert problem is not None or len(answered) == len(labels)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_labels_of_another_type_than_the_predictions_are_not_quoted():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = IDP3(FrozenEstimator(LogisticRegression().fit(X, (X[:, 0] > 0).astype(int))), groups=[0, 1])
    model = model.fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="y of IDP3 has labels of another type") as raised:
        model.score(X, np.where(X[:, 0] > 0, "canary", "no"), sensitive_features=groups)
    assert "canary" not in str(raised.value)
