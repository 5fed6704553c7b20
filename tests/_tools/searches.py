"""For tests of searches and frontiers: the smallest private estimators, and frames with made-up figures."""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

from skfairdp import ParetoSearchCV
from skfairdp.model_selection import pareto_frontier
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


# ---- frames --------------------------------------------------------------------------------------------------
def make_frame(protects="record", relation="replace one record", epsilons=(0.5, 1.0, 5.0), dataset="toy"):
    rows = []
    for level, epsilon in enumerate(epsilons):
        for gamma in (0.01, 0.05, None):
            for idp3 in (False, True):
                if gamma is None and idp3:
                    continue
                gap = 0.1 if gamma is None else gamma * (0.5 if idp3 else 0.9)
                rows.append(
                    {
                        "dataset": dataset,
                        "estimator": "FairPATEClassifier",
                        "epsilon": epsilon,
                        "delta": 1e-5,
                        "protects": protects,
                        "neighboring_relation": relation,
                        "gamma": np.nan if gamma is None else gamma,
                        "idp3": idp3,
                        "disparity": gap,
                        "accuracy": 0.78 + 0.01 * level + 0.2 * gap,
                        "coverage": 0.9 if idp3 else 1.0,
                        "params": f"FairPATEClassifier(epsilon={epsilon}, gamma={gamma})",
                    }
                )
    frame = pd.DataFrame(rows)
    frame["non_dominated"] = pareto_frontier(
        frame[["epsilon", "disparity", "accuracy", "coverage"]].to_numpy(), [True, True, False, False]
    )
    record = {"protects": protects, "neighboring_relation": relation, "delta": 1e-5, "epsilon_total": 5.3, "n_fits": 3}
    frame.attrs.update({"guarantees": [record], "n_test": 1000, **record})
    return frame


def two_guarantees():
    first, second = (make_frame(), make_frame("sensitive attribute", "replace one sensitive attribute", (1.0, 3.0)))
    guarantees = [*first.attrs["guarantees"], *second.attrs["guarantees"]]
    first.attrs, second.attrs = {}, {}
    both = pd.concat([first, second], ignore_index=True)
    both.attrs["guarantees"] = guarantees
    return both
