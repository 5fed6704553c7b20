"""A small library of another author, as audits meet it: private classifiers, sound or with one well-known fault."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skfairdp.privacy import GaussianDpEvent, PrivacySpent


class ToyNB(ClassifierMixin, BaseEstimator):
    """Gaussian naive Bayes of two classes from noisy counts, sums and sums of squares; Laplace noise, replace-one.

    Faults, by their numbers in the list of traps: 3 "delta" and 2 "xor" (of the Gaussian noise), 5 "no composition",
    6 "bounds from data", 10 "inverse scale", 22 "shared noise"; "no clipping", "no noise", "half sensitivity".
    """

    def __init__(self, epsilon=1.0, bounds=(0.0, 1.0), delta=0.0, fault=None, random_state=None):
        self.epsilon, self.bounds, self.delta = epsilon, bounds, delta
        self.fault, self.random_state = fault, random_state

    def fit(self, X, y):
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        low, high = (X.min(), X.max()) if self.fault == "bounds from data" else self.bounds
        self.low_, self.high_ = float(low), float(high)
        if self.fault != "no clipping":
            X = np.clip(X, low, high)
        X = (X - low) / (high - low) if high > low else X * 0
        rows = np.column_stack([np.ones(len(X)), X, X**2])  # each row moves 1 + 2d numbers by at most 1, in two classes
        sums = np.array([rows[y == k].sum(axis=0) for k in (0, 1)])
        self.sums_ = sums + self._noise(sums.shape)
        counts = np.maximum(self.sums_[:, 0], 1.0)
        d = X.shape[1]
        self.theta_ = self.sums_[:, 1 : 1 + d] / counts[:, None]
        self.var_ = np.maximum(self.sums_[:, 1 + d :] / counts[:, None] - self.theta_**2, 1e-2)
        self.class_prior_ = counts / counts.sum()
        self.classes_ = np.array([0, 1])
        return self

    def _noise(self, shape):
        rng = np.random.default_rng(self.random_state)
        moved = 2.0 * shape[1]  # L1: the row leaves one class and joins the other
        if self.delta > 0:
            return self._gaussian(np.sqrt(moved), shape, rng)
        scale = {
            "no composition": 2.0 / self.epsilon,
            "half sensitivity": moved / 2 / self.epsilon,
            "inverse scale": self.epsilon / moved,
            "no noise": 1e-9,
        }.get(self.fault, moved / self.epsilon)
        if self.fault == "shared noise":
            return np.full(shape, rng.laplace(scale=scale))
        return rng.laplace(scale=scale, size=shape)

    def _gaussian(self, sensitivity, shape, rng):
        digits = round(-np.log10(self.delta))
        delta = {"xor": 1.0 / (10 ^ digits), "scale by ten to the delta": None}.get(self.fault, self.delta)
        classical = np.sqrt(2 * np.log(1.25 / (delta or self.delta))) * sensitivity / self.epsilon
        if delta is None:
            classical = sensitivity / self.epsilon * 10**self.delta  # 10 ** delta is 1
        return rng.normal(scale=classical, size=shape)

    def predict_proba(self, X):
        X = (np.clip(np.asarray(X, dtype=float), self.low_, self.high_) - self.low_) / max(self.high_ - self.low_, 1e-9)
        log = np.log(self.class_prior_) - 0.5 * (
            np.log(self.var_).sum(axis=1) + ((X[:, None] - self.theta_) ** 2 / self.var_).sum(axis=2)
        )
        log -= log.max(axis=1, keepdims=True)
        return np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class ToyVotes(ClassifierMixin, BaseEstimator):
    """A lookup table: each cell of a public grid answers by its noisy count of either class; Laplace, add or remove.

    Faults: "same draw" (one draw for both classes), "refuses" (an error where a private cell is rare),
    "dtype" (float32 tables where all counts are small), "stale" (noise drawn once, at import: the same in each fit).
    """

    def __init__(self, epsilon=1.0, n_cells=4, fault=None, random_state=None):
        self.epsilon, self.n_cells, self.fault, self.random_state = epsilon, n_cells, fault, random_state

    def fit(self, X, y):
        cells = self._cells(X)
        counts = np.zeros((self.n_cells, 2))
        np.add.at(counts, (cells, np.asarray(y)), 1.0)
        rng = np.random.default_rng(7 if self.fault == "stale" else self.random_state)
        shape = (self.n_cells, 1) if self.fault == "same draw" else counts.shape
        if self.fault == "refuses" and (counts.sum(axis=1) < 1).any():
            raise ValueError("a cell is empty")
        self.table_ = counts + rng.laplace(scale=1 / self.epsilon, size=shape)
        if self.fault == "dtype" and counts.sum() < 40:
            self.table_ = self.table_.astype(np.float32)
        self.classes_ = np.array([0, 1])
        return self

    def _cells(self, X):
        return np.clip((np.asarray(X, dtype=float)[:, 0] * self.n_cells).astype(int), 0, self.n_cells - 1)

    def predict_proba(self, X):
        votes = np.maximum(self.table_[self._cells(X)], 1e-3)
        return votes / votes.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class ToySum(BaseEstimator):
    """A sum of numbers in [-1, 1] that states its cost for a record and a null record, which moves it by half as much.

    ``factor``: noise too small by that.
    """

    def __init__(self, noise=2.0, factor=1.0, random_state=None):
        self.noise, self.factor, self.random_state = noise, factor, random_state

    def fit(self, X, y):
        draw = np.random.default_rng(self.random_state).normal(scale=self.noise / self.factor)
        self.sum_ = np.clip(np.asarray(X)[:, 0], -1, 1).sum() + draw
        null = "replace one record by a null record"
        relation = null if getattr(self, "public_n_rows", None) is None else "add or remove one record"
        event = GaussianDpEvent(self.noise)
        self.privacy_ = PrivacySpent.of(event, 1e-5, protects="record", neighboring_relation=relation)
        return self


class ToyDeclaredSum(ToySum):
    """The same, which can be told how many rows there are."""

    def __init__(self, noise=2.0, factor=1.0, public_n_rows=None, random_state=None):
        super().__init__(noise, factor, random_state)
        self.public_n_rows = public_n_rows


def rows(n=40, d=2, seed=0):
    """Rows in the unit cube, and their labels."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0.5).astype(int)
