"""Where labels are public a classifier that does not beat the most frequent class gives way to it, and says so."""

import warnings

import numpy as np
import pytest

from skfairdp import PFLDClassifier, RandomizedResponseClassifier, SFPATEClassifier
from skfairdp._public_trial import LEAST_ROWS, MOST_ROWS, may_give_way, seen, tried
from skfairdp.exceptions import UtilityWarning
from skfairdp.lagrangian import LagrangianClassifier, NoisyGradients, mlp
from skfairdp.pate import FairTeachers
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


@pytest.mark.parametrize("name", MODELS)
def test_pure_noise_is_answered_by_the_most_frequent_class_and_told(name):
    """A network learned the rows by heart, and was .05 to .11 behind on others without a word."""
    X, y, groups = rows(signal=0.0)
    model, told = fitted(MODELS[name](), X, y, groups)
    assert set(model.predict(X)) == {0}
    assert len(told) == 1 and "predicts the class 0 for every row" in told[0]
    assert model.predict_proba(X).shape == (N_ROWS, 2)


@pytest.mark.parametrize("name", MODELS)
def test_what_features_say_is_kept_in_silence(name):
    X, y, groups = rows(signal=8.0)
    model, told = fitted(MODELS[name](), X, y, groups)
    assert np.mean(model.predict(X) == y) > 0.8 and not told


def test_giving_way_releases_and_costs_the_same():
    reports = [fitted(pfld(), *rows(signal))[0] for signal in (0.0, 8.0)]
    assert reports[0].privacy_.event == reports[1].privacy_.event
    assert reports[0].violation_ == 0.0 == reports[0].violation_noise_
    assert reports[0].noisy_counts_.shape == reports[1].noisy_counts_.shape


def test_equal_errors_are_no_constants_so_that_it_is_only_told():
    for model in (pfld(constraints="accuracy_parity"), sf_pate(constraints="accuracy_parity")):
        found, told = fitted(model, *rows(signal=0.0))
        assert len(told) == 1 and "no better than the class 0" in told[0]
    assert len(set(found.predict(rows(0.0)[0]))) == 2  # PF-LD's own network has one answer here


def test_a_learner_of_ones_own_is_not_tried():
    class Counting:
        fits = 0

        def get_params(self, deep=True):
            return {}

        def fit(self, X, y, sensitive_features):
            type(self).fits += 1
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    _, told = fitted(randomised(fair_estimator=Counting(), debias=False), *rows(signal=8.0))
    assert Counting.fits == 1 and len(told) == 1 and "no better than the class 0" in told[0]


def test_no_trial_of_a_handful_of_rows_nor_of_many():
    for n, may in ((LEAST_ROWS - 1, False), (LEAST_ROWS, True), (MOST_ROWS, True), (MOST_ROWS + 1, False)):
        assert may_give_way(np.arange(n) % 2) == may
    assert not may_give_way(np.zeros(100, dtype=int))


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
    assert (seen(np.array([0, 0, 1, 0]), y).right, seen(y, y).of_usual) == (0.5, 0.75)
