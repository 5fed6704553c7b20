"""The smallest private estimators, for tests of what a search does with them."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skfairdp import ParetoSearchCV
from skfairdp.privacy import GaussianDpEvent, PrivacySpent

RECORD = {"protects": "record", "neighboring_relation": "replace one record"}
ATTRIBUTE = {"protects": "sensitive attribute", "neighboring_relation": "replace one sensitive attribute"}
COMES_AND_GOES = {"protects": "record", "neighboring_relation": "add or remove one record"}


class Toy(ClassifierMixin, BaseEstimator):
    """Charges one Gaussian and predicts whether the first feature passes ``cut``; ``made`` lists all fits."""

    made: list = []
    guarantee = RECORD
    predicts_rows_alone = True

    def __init__(self, cut=0.0, noise=10.0, delta=1e-5, classes=(0, 1), groups=(0, 1), noise_seed=None,
                 random_state=None, ledger=None, fails=False, verbose=0):  # fmt: skip
        self.cut = cut
        self.noise = noise
        self.delta = delta
        self.classes = classes
        self.groups = groups
        self.noise_seed = noise_seed
        self.random_state = random_state
        self.ledger = ledger
        self.fails = fails
        self.verbose = verbose

    def fit(self, X, y, *, sensitive_features=None):
        event = GaussianDpEvent(self.noise)
        if self.ledger is not None:
            self.ledger.charge(event, label="Toy", releases=("one number",), **self.guarantee)
        Toy.made.append({**self.get_params(), "n": len(X)})
        if self.fails:
            raise ArithmeticError("a private value: 42")
        self.classes_ = np.asarray(self.classes)
        self.n_features_in_ = np.asarray(X).shape[1]
        self.privacy_ = PrivacySpent.of(event, self.delta, **self.guarantee)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > self.cut).astype(int)]


class ToyOfAttributes(Toy):
    guarantee = ATTRIBUTE


class ToyOfGuests(Toy):
    """Its neighbours add or remove a record."""

    guarantee = COMES_AND_GOES

    def __init__(self, cut=0.0, noise=10.0, delta=1e-5, classes=(0, 1), groups=(0, 1), noise_seed=None,
                 random_state=None, ledger=None, fails=False, verbose=0, public_n_rows=None):  # fmt: skip
        super().__init__(cut, noise, delta, classes, groups, noise_seed, random_state, ledger, fails, verbose)
        self.public_n_rows = public_n_rows


def make_rows(n=3000, seed=0):
    """Label = (first feature > 0), group = (second feature > 0)."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, (X[:, 0] > 0).astype(int), (X[:, 1] > 0).astype(int)


X, Y, Z = make_rows()
CUTS = {"cut": [-1.0, 0.0, 1.0]}


def toy_search(estimator=None, grid=CUTS, **options):
    """ParetoSearchCV over a toy, not fitted."""
    return ParetoSearchCV(Toy() if estimator is None else estimator, grid, **options)


def fitted(estimator=None, grid=CUTS, **options):
    """The same, fitted on the rows above."""
    return toy_search(estimator, grid, **options).fit(X, Y, sensitive_features=Z)
