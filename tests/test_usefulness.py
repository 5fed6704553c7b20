"""The judge of usefulness: no model that is no better than the most frequent class leaves a fit without a word."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    PFLDClassifier,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
)
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient import mlp as dpsgd_mlp
from skfairdp.lagrangian import LagrangianClassifier, NoisyGradients, mlp
from skfairdp.papers import FairClippingClassifier
from skfairdp.pate import FairTeachers
from tests._tools.inside import (
    LEAST_ROWS,
    MOST_ROWS,
    Comparison,
    learned_by_heart,
    may_fall_back,
    rows_to_try,
    seen,
    spread_by_rows,
    tried,
    tried_on_parts,
)
from tests._tools.sources import recording_noise

N_ROWS = 240
QUICK = mlp((16,), max_epochs=60, batch_size=60, lr=0.02)  # learns rows by heart


def rows(signal, seed=0, n=N_ROWS):
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 6)), rng.integers(2, size=n)
    score = signal * X[:, 0] + rng.logistic(size=n)
    return X, (score > np.quantile(score, 0.7)).astype(int), groups


def pfld(**more):
    return PFLDClassifier(epsilon=1.0, groups=[0, 1], net=QUICK, dual_steps=5, random_state=0, **more)


def sf_pate(**more):
    learner = LagrangianClassifier(net=QUICK, constraints=more.pop("constraints", "demographic_parity"))
    return SFPATEClassifier(epsilon=8.0, groups=[0, 1], fair_estimator=learner, random_state=0, **more)


def randomised(**more):
    return RandomizedResponseClassifier(epsilon=1.0, groups=[0, 1], random_state=0, **more)


def fitted(model, X, y, groups):
    """The model, and what of use it said."""
    with recording_noise(entropy=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups)
    return model, [str(w.message) for w in caught if w.category is UtilityWarning]


MODELS = {
    "PF-LD": pfld,
    "PF-LD, gradients": lambda: pfld(primal=NoisyGradients(5)),
    "PF-LD, odds": lambda: pfld(constraints="equalized_odds"),
    "SF-PATE": sf_pate,
    "SF-PATE, gnmax": lambda: sf_pate(voting="gnmax"),
    "SF-PATE, teacher": lambda: sf_pate(variant=FairTeachers(LagrangianClassifier(constraints=None, net=QUICK))),
    "randomised response": randomised,
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", MODELS)
def test_pure_noise_is_answered_by_the_most_frequent_class_and_told(name):
    """A network learned the rows by heart, and was .05 to .11 behind on others without a word."""
    X, y, groups = rows(signal=0.0)
    model, told = fitted(MODELS[name](), X, y, groups)
    assert set(model.predict(X)) == {0}
    assert len(told) == 1 and "predicts the class 0 for every row" in told[0]
    assert model.predict_proba(X).shape == (N_ROWS, 2)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", MODELS)
def test_what_features_say_is_kept_in_silence(name):
    X, y, groups = rows(signal=8.0)
    model, told = fitted(MODELS[name](), X, y, groups)
    assert np.mean(model.predict(X) == y) > 0.8 and not told


@pytest.mark.slow
def test_a_network_that_says_it_all_is_not_given_up_for_what_few_rows_say_of_the_groups():
    """Networks on two thirds of 398 rows, held to noisy estimates of their groups, answered one class for every row."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(X))
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[order], y[order]
    groups = rng.integers(2, size=len(X))
    model = PFLDClassifier(epsilon=1.0, groups=[0, 1], random_state=1, noise_seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[:398], y[:398], sensitive_features=groups[:398])
    assert model.score(X[398:], y[398:]) > 0.9
    assert not [w for w in caught if w.category is UtilityWarning]


def of_subjects(n, each, seed=0, share=0.35):
    """Rows of subjects, those of one nearly alike; labels and groups are chance."""
    rng = np.random.default_rng(seed)
    X, of = rng.normal(size=(n, 20)), np.repeat(np.arange(n), each)
    y, groups = (rng.random(n) < share).astype(int), (rng.random(n) < 0.4).astype(int)
    return X[of] + 0.05 * rng.normal(size=(len(of), 20)), y[of], groups[of], of


@pytest.mark.parametrize("make", [PFLDClassifier, SFPATEClassifier])
def test_rows_of_one_subject_are_kept_from_a_network_together(make):
    """Of each some taught it, and others said that it was right: no class took the place of what it knew by heart."""
    X, y, groups, of = of_subjects(200, 10)
    model = make(epsilon=8.0, groups=[0, 1], random_state=0)
    with pytest.warns(UtilityWarning, match="rows that were kept from"):
        model.fit(X, y, sensitive_features=groups, subject=of)
    assert set(model.predict(X)) == {0}


def by_heart(X, y):
    """Answers to all rows by that of the nearest of some."""
    return lambda learned: KNeighborsClassifier(1).fit(X[learned], y[learned]).predict(X)


def test_what_is_known_by_heart_is_found_on_other_subjects_and_of_a_tree_does_not_shrink_with_rows():
    X, y, _, of = of_subjects(200, 10)
    blind, seen = (tried_on_parts(y, by_heart(X, y), 0, len(y), of=one) for one in (None, of))
    assert blind[0].ahead > 0.3 and blind[2].right < 0.05  # rows of whoever taught are no others
    assert seen[0].ahead < 0.05 and seen[2].right > 0.3
    assert seen[0].error > 2 * blind[0].error > 0
    X, y, _, _ = of_subjects(900, 1)
    y = np.where(np.arange(900) % 3, 1 * (X[:, 0] > 0), y)  # some is to be known
    half = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)

    def answers(learned):
        return clone(half).fit(X[learned], y[learned]).predict(X)

    few, of_a_network, of_a_tree = (tried_on_parts(y, answers, 0, n)[2].right for n in (900, 90_000, None))
    assert of_a_network < few / 2 < few < of_a_tree  # a tree that is right nearly everywhere would know all of it


def test_rows_to_try_are_those_of_whole_subjects_but_for_the_last():
    of = np.random.default_rng(0).integers(3000, size=30_000)
    some = rows_to_try(len(of), 0, of)
    of_each, of_some = np.bincount(of), np.bincount(of[some], minlength=3000)
    assert len(some) == len(set(some)) == MOST_ROWS
    assert ((of_some > 0) & (of_some < of_each)).sum() <= 1
    np.testing.assert_array_equal(np.sort(rows_to_try(50, 0)), np.arange(50))


def test_of_two_subjects_nobody_can_be_kept():
    X, y, _, of = of_subjects(2, 50)
    assert tried_on_parts(y, by_heart(X, y), 0, len(y), of=of)[2].right == 1.0


def test_giving_way_releases_and_costs_the_same():
    reports = [fitted(pfld(), *rows(signal))[0] for signal in (0.0, 8.0)]
    assert reports[0].privacy_.event == reports[1].privacy_.event
    assert reports[0].violation_ < 0.1 and reports[0].constraint_holds_ != "no"  # one answer for everybody
    assert reports[0].noisy_counts_.shape == reports[1].noisy_counts_.shape


@pytest.mark.slow
def test_equal_errors_are_no_constants_so_that_it_is_only_told():
    for model in (pfld(constraints="accuracy_parity"), sf_pate(constraints="accuracy_parity")):
        found, told = fitted(model, *rows(signal=0.0))
        assert len(told) == 1 and "no better than the class 0" in told[0]
    assert len(set(found.predict(rows(0.0)[0]))) == 2  # PF-LD's own network has one answer here


def test_a_learner_of_ones_own_is_not_tried():
    class Counting:
        of = []

        def get_params(self, deep=True):
            return {}

        def fit(self, X, y, sensitive_features):
            self.of.append(len(X))
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    table = rows(signal=8.0)
    _, told = fitted(randomised(fair_estimator=Counting(), debias=False), *table)
    made_up, *fits = Counting.of
    assert made_up <= 8 and fits == [len(table[0])] and len(told) == 1 and "no better than the class 0" in told[0]


def test_no_trial_of_a_handful_of_rows_nor_of_many():
    for n, may in ((LEAST_ROWS - 1, False), (LEAST_ROWS, True), (MOST_ROWS, True), (MOST_ROWS + 1, False)):
        assert may_fall_back(np.arange(n) % 2) == may
    assert not may_fall_back(np.zeros(100, dtype=int))


def test_clear_cases_take_one_fold():
    y, asked = np.arange(900) % 3 // 2, []

    def right(learned, others):
        assert not set(learned) & set(others)
        asked.append(len(others))
        return y[others]

    assert tried(y, right, seed=0).is_passed and asked == [300]


def test_folds_are_made_of_positions_alone():
    """Nothing but the number of rows and a public seed says who is asked about what."""
    folds = []
    for y in (np.arange(90) % 3 // 2, (np.arange(90) % 5 == 0).astype(int)):
        tried(y, lambda learned, asked: folds.append(asked) or np.zeros(len(asked), dtype=int), seed=3)
    for mine, others in zip(folds[:3], folds[3:], strict=True):
        np.testing.assert_array_equal(mine, others)


def test_what_a_row_is_right_on_is_counted():
    y = np.array([0, 0, 0, 1])
    assert (seen(np.array([0, 0, 1, 0]), y).ahead, seen(y, y).of_usual) == (-0.25, 0.75)


# ---- what is told, whatever the method -------------------------------------------------------------------------------
def table(n, rate, signal, *, raw=False, seed=0, n_features=5):
    """Rows to learn from and others; the last class is as frequent in all of them as ``rate``."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n + 8000, n_features)), rng.integers(2, size=n + 8000)
    score = signal * X.sum(axis=1) / n_features**0.5 + rng.logistic(size=len(X))
    y = (score > np.quantile(score, 1 - rate)).astype(int)
    if raw:
        X = X * 10.0 ** np.arange(n_features) + 10.0 ** np.arange(n_features)[::-1]
    return (X[:n], y[:n], groups[:n]), (X[n:], y[n:])


PLAIN = {"classes": [0, 1], "random_state": 0}
FAIR = {**PLAIN, "groups": [0, 1]}
STEPS = {"net": dpsgd_mlp((16,), max_epochs=5, batch_size=250, lr=0.5)}
PUBLIC = {"groups": [0, 1], "random_state": 0}
FEW = mlp((8,), max_epochs=5, batch_size=200, lr=0.02)
METHODS = {
    "DP-SGD": (FairDPSGDClassifier, {**PLAIN, **STEPS, "lam": 0.0}, "none"),
    "DP-SGD, signed loss": (FairDPSGDClassifier, {**FAIR, **STEPS}, "private"),
    "DP-SGD, public rows": (FairDPSGDClassifier, {**FAIR, **STEPS, "lam": 0.1}, "public"),
    "fair clipping": (FairClippingClassifier, {**FAIR, **STEPS}, "private"),
    "PF-LD": (PFLDClassifier, {**PUBLIC, "net": FEW, "dual_steps": 5}, "private"),
    "SF-PATE": (SFPATEClassifier, {**PUBLIC, "fair_estimator": LagrangianClassifier(net=FEW)}, "private"),
    "randomised response": (RandomizedResponseClassifier, PUBLIC, "private"),
    "FairPATE": (FairPATEClassifier, {**FAIR, "gamma": 0.2}, "public"),
    "FairPATE, no public rows": (FairPATEClassifier, {**FAIR, "gamma": 0.2}, "private"),
    "PATE": (PATEClassifier, PLAIN, "unlabelled"),
    "PATE, labels": (PATEClassifier, {**PLAIN, "voting": "gnmax"}, "unlabelled"),
    "synthetic rows": (
        SyntheticDataClassifier,
        {**FAIR, "estimator": LogisticRegression(), "n_samples": 4000},
        "private",
    ),
}


def outcome(name, rows, others, epsilon=2.0):
    """By how much a fit is ahead of the most frequent class on other rows, and whether it said that it hardly is."""
    (X, y, groups), (X_test, y_test), (make, options, read) = rows, others, METHODS[name]
    given, private = {}, slice(0, None)
    if make is SyntheticDataClassifier:
        options = {**options, "bounds": {j: (float(X[:, j].min()), float(X[:, j].max())) for j in range(X.shape[1])}}
    if read == "private":
        given = {"sensitive_features": groups}
    if read in ("public", "unlabelled"):
        private, given = slice(600, None), {"X_public": X[:600]}
        if read == "public":
            given["sensitive_features_public"] = groups[:600]
    with recording_noise(entropy=3), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(epsilon=epsilon, **options).fit(X[private], y[private], **given)
    ahead = np.mean(model.predict(X_test) == y_test) - max(np.mean(y_test), 1 - np.mean(y_test))
    of_model = (w for w in caught if "so close together" not in str(w.message))  # a raw column is 10,000 ± 1
    return float(ahead), any(w.category is UtilityWarning for w in of_model)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("n", "rate", "signal"),
    [
        pytest.param(6000, 0.1, 0.5, id="a rare class"),  # law school: 48 of 20,798 rows got it
        pytest.param(1500, 0.3, 0.0, id="nothing to learn"),
    ],
)
def test_a_model_that_is_no_better_is_told(name, n, rate, signal):
    ahead, told = outcome(name, *table(n, rate, signal))
    assert told and ahead > -0.01, ahead


@pytest.mark.few(6)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("raw", [False, True], ids=["scaled", "raw"])
def test_a_model_that_is_better_is_not_told(name, raw):
    ahead, told = outcome(name, *table(3000, 0.3, 4.0, raw=raw))
    assert not told and ahead > 0.05, ahead


@pytest.mark.parametrize(("rate", "n", "d"), [(0.5, 400, 10), (0.5, 4000, 10), (0.4, 200, 20), (0.2, 1000, 5)])
def test_what_a_linear_rule_learns_by_heart_is_what_it_is_ahead_by_on_its_rows(rate, n, d):
    rng, gains = np.random.default_rng(0), []
    for _ in range(60):
        X, y = rng.normal(size=(n, d)), (np.arange(n) < rate * n).astype(int)
        rule = np.linalg.lstsq(np.column_stack([np.ones(n), X]), y - 0.5, rcond=None)[0]
        found = (np.column_stack([np.ones(n), X]) @ rule > 0).astype(int)
        gains.append(np.mean(found == y) - np.mean(y == (rate > 0.5)))
    rates = np.array([1 - rate, rate])
    assert learned_by_heart(rates, spread_by_rows(rates, d, n)) == pytest.approx(np.mean(gains), rel=0.25, abs=0.004)
    assert learned_by_heart(rates, 0.0) == 0.0


@pytest.mark.parametrize(("ahead", "of_usual", "said"), [(0.4, 1.05, "1.000 .* 1.000"), (-0.9, 0.6, "0.000 .* 0.600")])
def test_no_share_beyond_one_is_printed(ahead, of_usual, said):
    """Found: noisy counts made it right on 1.453 of the subjects."""
    with pytest.warns(UtilityWarning, match=f"it is right on {said}"):
        Comparison(0, ahead, of_usual, error=0.5).warn(0, "X", falls_back=False)
