"""A warning names the user's line, whoever calls in between."""

import threading
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV

from skfairdp._utils import warn_caller

_HERE = __file__


def _deep(n_calls, message="look here"):
    """Warn below ``n_calls`` frames that belong to the package."""
    code = "def go(n, message):\n    return go(n - 1, message) if n else warn_caller(message)"
    _defined(code, "skfairdp", warn_caller=warn_caller)(n_calls, message)


@pytest.mark.parametrize("n_calls", [0, 1, 7])
def test_the_first_line_outside_the_package_is_blamed_at_every_depth(n_calls):
    with pytest.warns(UserWarning, match="look here") as caught:
        _deep(n_calls)
    assert caught[0].filename == _HERE


class _Warns(ClassifierMixin, BaseEstimator):
    def __init__(self, depth=2):
        self.depth = depth

    def fit(self, X, y):
        _deep(self.depth, "from a fit")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_line_of_the_user_between_scikit_learn_and_the_package_is_nearest_and_blamed():
    X, y = np.zeros((8, 1)), np.tile([0, 1], 4)
    with pytest.warns(UserWarning, match="from a fit") as caught:
        GridSearchCV(_Warns(), {"depth": [2]}, cv=2, refit=False).fit(X, y)
    assert {warning.filename for warning in caught} == {_HERE}


def _defined(code, package, **names):
    """Return the function ``go`` of a module of that package."""
    names["__name__"] = f"{package}.room._module"
    exec(compile(code, f"{package}.py", "exec"), names)
    return names["go"]


@pytest.mark.parametrize("between", ["sklearn", "joblib"])
def test_frames_of_scikit_learn_and_joblib_are_passed_over(between):
    ours = _defined("def go():\n    warn_caller('look here')", "skfairdp", warn_caller=warn_caller)
    theirs = _defined("def go():\n    ours()", between, ours=ours)
    with pytest.warns(UserWarning, match="look here") as caught:
        theirs()
    assert caught[0].filename == _HERE


def test_a_package_whose_name_only_begins_like_ours_is_outside():
    ours = _defined("def go():\n    warn_caller('look here')", "skfairdp", warn_caller=warn_caller)
    theirs = _defined("def go():\n    ours()", "skfairdp_extras", ours=ours)
    with pytest.warns(UserWarning, match="look here") as caught:
        theirs()
    assert caught[0].filename == "skfairdp_extras.py"


def test_a_thread_with_no_line_of_the_user_warns_as_well():
    # The thread's outermost frames are those of threading: whose they are does not matter, that it ends does.
    ours = _defined("def go():\n    warn_caller('from a thread')", "skfairdp", warn_caller=warn_caller)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread = threading.Thread(target=ours)
        thread.start()
        thread.join()
    assert [str(warning.message) for warning in caught] == ["from a thread"]


def test_the_category_is_kept():
    with pytest.warns(RuntimeWarning):
        warn_caller("x", RuntimeWarning)
