"""Learners of any kind inside searches: what they draw tells nothing, and what they are made of stops no search."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.tree import DecisionTreeClassifier

from skfairdp import ParetoSearchCV, PATEClassifier, PrivateSearchCV, SyntheticDataClassifier
from skfairdp.generative import SyntheticDataRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))
PUBLIC = RNG.normal(size=(150, 3))
GROUPS = RNG.integers(0, 2, 700)
Y = (X[:, 0] + 0.3 * GROUPS > 0).astype(int)
GIVEN = {"epsilon": 0.3, "bounds": (-5, 5), "dtypes": float, "random_state": 0}


def synthetic(learner):
    return SyntheticDataClassifier(learner, classes=[0, 1], groups=[0, 1], **GIVEN)


class DrawsByRows(SGDClassifier):
    """Draws once for every row of the second class, and from all global generators."""

    def fit(self, X, y):
        for _ in range(int(np.sum(y))):
            np.random.rand(), random.random(), torch.rand(1)  # noqa: NPY002
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model",
    [
        PATEClassifier(classes=[0, 1], teacher=DrawsByRows(loss="log_loss"), n_teachers=5, random_state=0),
        PATEClassifier(classes=[0, 1], student=DrawsByRows(loss="log_loss"), random_state=0),
        synthetic(DrawsByRows(loss="log_loss")),
        PrivateSearchCV(synthetic(SGDClassifier()), {"n_samples": [300, 400, 500]}, random_state=0),
    ],
    ids=["teacher", "student", "learner", "search"],
)
def test_what_a_learner_draws_from_global_generators_does_not_show_there(model):
    """A search leaves as many draws as it made trials, whose number is a secret; a teacher as many as its rows say."""
    before = np.random.get_state()[1].tobytes(), np.random.get_state()[2], random.getstate()  # noqa: NPY002
    tensors = torch.get_rng_state().clone()
    rows = {"X_public": PUBLIC} if isinstance(model, PATEClassifier) else {"sensitive_features": GROUPS}
    model.fit(X, Y, **rows)
    after = np.random.get_state()[1].tobytes(), np.random.get_state()[2], random.getstate()  # noqa: NPY002
    assert after == before and torch.equal(torch.get_rng_state(), tensors)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", [DecisionTreeClassifier(), RandomForestClassifier(n_estimators=3)])
@pytest.mark.parametrize("search", [PrivateSearchCV, ParetoSearchCV])
def test_trees_are_searched(search, learner):
    """They hold compiled objects, which have no attributes: the search ended with an error after it had spent."""
    found = search(synthetic(learner), {"n_samples": [300, 400]}, random_state=0)
    found.fit(X, Y, sensitive_features=GROUPS)
    assert found.best_estimator_.privacy_ == found.privacy_ and set(found.predict(X)) <= {0, 1}


@pytest.mark.filterwarnings("ignore")
def test_a_forest_for_amounts_is_searched():
    model = SyntheticDataRegressor(RandomForestRegressor(n_estimators=3), bounds_y=(-5, 5), **GIVEN | {"epsilon": 2.0})
    found = PrivateSearchCV(model, {"n_samples": [300, 400]}, random_state=0).fit(X, X[:, 0])
    assert found.best_estimator_.privacy_ == found.privacy_


def test_a_fit_that_imports_torch_does_not_seed_it():
    """In a process of its own torch begins with a state that nobody knows, and goes on with one."""
    script = (
        "import sys; from skfairdp import FairDPSGDClassifier; assert 'torch' not in sys.modules\n"
        "X = [[0.0], [1.0]] * 50\n"
        "FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0).fit(X, [0, 1] * 50)\n"
        "import torch; print(torch.rand(3).tolist())"
    )
    run = [subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True) for _ in "ab"]
    assert all(one.returncode == 0 for one in run) and run[0].stdout != run[1].stdout
