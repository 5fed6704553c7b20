"""Predictions on private rows, each a function of its own row, whatever the predictor does with others in a call."""

import contextlib
import copy
import inspect
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp.utils import silence

__all__ = ["NO_CLASS", "check_rows_alone", "known_row_wise", "predict_with_groups", "row_wise_predictions"]

#: Stands where a row has no prediction: an error, a wrong shape. No label of any kind is equal to it.
NO_CLASS = object()

_KNOWN = ("sklearn", "skfairdp")
_KNOWN_REDUCTIONS = "fairlearn.reductions."  # what they hold is looked at; a draw of theirs is public randomness
#: Of scikit-learn, by name: the rows of a call are factorised together, or draw from one generator one after the other.
_TOGETHER = ("NMF", "MiniBatchNMF", "IterativeImputer")
_VALUES = ("builtins", "numpy", "pandas", "scipy", "datetime", "joblib", *_KNOWN)
_NOT_AT_PREDICTION = ("teacher", "ledger", "memory")  # parameters of ours that only fit reads


def known_row_wise(estimator: Any) -> bool:
    """Whether an estimator is known to predict each row from this row alone, so that one call may predict them all.

    Those of this package and of scikit-learn are, and wrappers of them: Pipeline, CalibratedClassifierCV. Not so NMF,
    which factorises the rows of a call together, and IterativeImputer, which may draw. A class of somebody else's is
    not unless it says ``predicts_rows_alone = True``, nor is one with a function among its parameters
    (``FunctionTransformer``, the weights of a KNeighborsClassifier, a torch module).
    """
    return all(map(_is_known, _parts(estimator)))


def check_rows_alone(models: Iterable[Any], owner: str) -> None:
    """Refuse what says of itself that its answers depend on other rows of the call, as IDP3 does.

    Raises
    ------
    ValueError
        One record would move the scores of many. It depends on parameters only.
    """
    for model in models:
        for part in _parts(model):
            if getattr(part, "predicts_rows_alone", None) is False:
                raise ValueError(
                    f"{owner} cannot score {type(part).__name__} on private rows: whether it answers one row depends "
                    "on the others, so that one record would move the scores of many, for which no noise is added. "
                    "Score it on public rows, fit(..., validation=PublicData(X, groups, y)), or search the estimator "
                    "inside of it."
                )


def row_wise_predictions(fitted: Any, X: Any, groups: NDArray[Any] | None, *, at_once: bool) -> NDArray[np.object_]:
    """Predict private rows; every entry is a function of its own row and the fitted state before the call.

    Total and silent: a row that makes the predictor fail, or that it gives no single answer for, is NO_CLASS.

    Parameters
    ----------
    fitted : estimator
        Released, as far as it knows anything of private rows.
    X : rows, as the estimator takes them
    groups : ndarray of shape (n_rows,) or None
        Handed on where ``predict`` takes ``sensitive_features``.
    at_once : bool
        Whether an estimator that is known to be row-wise may predict all rows in one call, which is much faster. The
        others get one row a call, each in a copy of their own, so that nothing they count passes from row to row; also
        the global generators of numpy and Python start alike for each. (What a class keeps outside of its instances is
        out of reach.) In one call and row by row, sums of floats may differ in their last bits, and with them answers
        at an exact tie. So one call is for rows whose number is public: it has the same shape then for neighbours.
    """
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    known = known_row_wise(fitted)
    with silence():
        if at_once and known and n_rows:
            try:
                answers = _as_list(predict_with_groups(fitted, X, groups))
            except Exception:  # one row can make the call fail: then each is asked alone
                answers = []
            if len(answers) == n_rows:
                return _objects(answers)
        copy_of = (lambda: fitted) if known else _copies(fitted)
        with contextlib.nullcontext() if known else _global_generators() as restart:
            return _objects([_alone(copy_of, X, groups, row, restart) for row in range(n_rows)])


def predict_with_groups(fitted: Any, X: Any, groups: Any) -> Any:
    """Predictions; the groups go to a ``predict`` that takes them and does not find them in the columns of X."""
    last = fitted.steps[-1][1] if isinstance(fitted, Pipeline) else fitted
    wanted = groups is not None and "sensitive_features" in inspect.signature(last.predict).parameters
    if not wanted or getattr(last, "sensitive_columns", None) is not None or _has_groups(last, X):
        return fitted.predict(X)
    if last is not fitted:
        X = fitted[:-1].transform(X) if len(fitted) > 1 else X
    return last.predict(X, sensitive_features=groups)


def _has_groups(fitted: Any, X: Any) -> bool:
    """Whether a schema names columns of X as the group."""
    named = getattr(getattr(fitted, "schema", None), "groups", ())
    return bool(named) and set(named) <= set(map(str, getattr(X, "columns", ())))


def _alone(copy_of: Callable[[], Any], X: Any, groups: Any, row: int, restart: Any) -> Any:
    this = slice(row, row + 1)
    try:
        if restart is not None:
            restart()
        own = None if groups is None else groups[this]
        answers = _as_list(predict_with_groups(copy_of(), X.iloc[this] if hasattr(X, "iloc") else X[this], own))
    except Exception:
        return NO_CLASS
    return answers[0] if len(answers) == 1 else NO_CLASS


def _as_list(predicted: Any) -> list[Any]:
    return np.asarray(predicted).ravel().tolist()


def _objects(answers: list[Any]) -> NDArray[np.object_]:
    out = np.empty(len(answers), dtype=object)
    out[:] = answers
    return out


def _copies(fitted: Any) -> Callable[[], Any]:
    """Makes copies of a fitted estimator as it is now."""
    try:
        state = pickle.dumps(fitted)
        pickle.loads(state)
    except Exception:
        original = copy.deepcopy(fitted)
        return lambda: copy.deepcopy(original)
    return lambda: pickle.loads(state)


@contextlib.contextmanager
def _global_generators() -> Iterator[Callable[[], None]]:
    """Gives what starts both global generators anew, and leaves them as they were."""
    arrays, plain = np.random.get_state(), random.getstate()  # noqa: NPY002
    fixed = np.random.RandomState(0).get_state(), random.Random(0).getstate()

    def restart() -> None:
        np.random.set_state(fixed[0])  # noqa: NPY002
        random.setstate(fixed[1])

    try:
        yield restart
    finally:
        np.random.set_state(arrays)  # noqa: NPY002
        random.setstate(plain)


def _parts(estimator: Any) -> Iterator[Any]:
    """The estimator and everything among its parameters that a prediction may call."""
    yield estimator
    parameters = estimator.get_params(deep=True)
    nets = tuple(f"{name}__" for name, value in parameters.items() if _is_net(value))
    for name, value in parameters.items():
        if name.split("__")[-1] not in _NOT_AT_PREDICTION and not name.startswith(nets):
            yield from _leaves(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def _is_net(value: Any) -> bool:
    """Whether it is a plain skorch net: of all it is configured with, a prediction calls the module alone."""
    return type(value).__module__.split(".")[0] == "skorch" and hasattr(value, "module")


def _is_known(part: Any) -> bool:
    said = getattr(part.module if _is_net(part) else part, "predicts_rows_alone", None)
    if said is not None:
        return said is True
    if isinstance(part, type):
        return part.__module__ in ("builtins", "numpy")  # a dtype
    if type(part).__module__.startswith(_KNOWN_REDUCTIONS):
        return True
    home = type(part).__module__.split(".")[0]
    if home == "sklearn" and type(part).__name__ in _TOGETHER:
        return False
    if callable(part) or hasattr(part, "predict"):
        return home in _KNOWN and not isinstance(part, FunctionTransformer)
    return home in _VALUES and not isinstance(part, FunctionTransformer)
