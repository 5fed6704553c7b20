"""``inspection.audit`` of a released schema: what an attacker proves from many releases stays below what is claimed."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from skfairdp.inspection import Canary, audit
from skfairdp.privacy import CommonValues
from skfairdp.schema import Schema, _release

pytestmark = pytest.mark.filterwarnings("ignore")

VALUES = np.array(["common", "edge", "Ms Smith"])
KNOWN = {"number": {"x": "number", "job": "category"}, "category": {"x": None, "job": "category"}}


class Released(BaseEstimator):
    """A schema as an estimator: bounds and values that came out, as numbers."""

    def __init__(self, epsilon=1.0, kind="category", spends=1.0):
        self.epsilon, self.kind, self.spends = epsilon, kind, spends

    def fit(self, X, y):
        table = pd.DataFrame({"x": X[:, 0], "job": VALUES[X[:, 1].astype(int)], "one": 1})
        known = {**KNOWN[self.kind], "one": "boolean"}
        schema = Schema.release(table, epsilon=self.epsilon * self.spends, known=known)
        job, x = schema.columns.get("job"), schema.columns.get("x")
        self.shown_ = np.isin(VALUES, job.values if job else ()).astype(float)
        self.bounds_ = np.array([x.low, x.high] if x else [0.0, 0.0])
        return self

    def predict(self, X):
        return np.tile(self.shown_ @ [1, 2, 4], len(X))


def rows(epsilon, kind):
    """Rows of which one value is held by about as many as the threshold asks for."""
    column = _release.plan_release(KNOWN[kind] if kind == "number" else {"job": "category"}, epsilon, 1e-5).columns[
        "job"
    ]
    mechanism = CommonValues(column._gaussian(1.0).sigma, column.failure)
    n_edge = math.ceil(mechanism.threshold) - 1
    X = np.zeros((n_edge + 150, 2))
    X[-n_edge:, 1] = 1
    X[:, 0] = np.linspace(0, 10, len(X))
    return X, np.zeros(len(X), dtype=int)


def found(kind):
    X, y = rows(1.0, kind)
    edge, smith, far = (Canary((np.array([5.0, 0]), 0), (np.array(other), 0), name=name) for name, other in
                        (("edge", [5.0, 1]), ("one of her name", [5.0, 2]), ("far", [1e9, 1])))  # fmt: skip
    return audit(Released(epsilon=1.0, kind=kind), X, y, canaries=[edge, smith, far], delta=1e-5, n_runs=100,
                 random_state=0)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KNOWN)
def test_a_released_schema_is_not_accused(kind):
    """A hundred runs can prove more than the ε of 1 that is claimed here, as the next test does."""
    result = found(kind)
    assert not result.violates and result.epsilon_lower <= 1.0


@pytest.mark.slow
def test_a_schema_that_spends_more_than_it_claims_is_found():
    X, y = rows(400.0, "category")
    edge = Canary((np.array([5.0, 0]), 0), (np.array([5.0, 1]), 0), name="edge")
    result = audit(Released(epsilon=1.0, spends=400.0), X, y, canaries=[edge], delta=1e-5, n_runs=100, random_state=0)
    assert result.violates and result.epsilon_lower > 1.0
