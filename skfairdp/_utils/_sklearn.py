"""What we take of scikit-learn's private names (nobody else imports them), and what all our estimators do beyond it."""

import functools
import inspect
import random
import sys
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_features as n_columns

# As a module: a class of somebody else's script goes to other processes with all that its wrapped methods name.
from skfairdp._utils import _messages, _numeric  # as modules: a lock goes to no other process with a class
from skfairdp._utils._plain_state import PlainState
from skfairdp.exceptions import UtilityWarning

__all__ = ["HasMethods", "Interval", "StrOptions", "n_columns", "take_rows"]

#: Scorers that ask a model for predictions of X and hand it nothing else, unless metadata is routed.
_SCORERS = frozenset({"_PassthroughScorer", "_Scorer", "_MultimetricScorer"})


#: What joblib takes: 0 is an error of its own, which would come after the charge.
N_JOBS = [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None]


class Having(HasMethods):
    """An object with some methods, by words that say what to give.

    Parameters
    ----------
    methods : list of str
        What it must have.
    words : str
        What a message says that the parameter must be.
    """

    def __init__(self, methods: list[str], words: str) -> None:
        super().__init__(methods)
        self.words = words

    def __str__(self) -> str:
        return self.words


class Learning(Having):
    """What has ``fit`` and ``predict``, or a classifier that has the latter once it is fitted: it is tried anyway."""

    def __init__(self, words: str = "an object implementing 'fit' and 'predict'") -> None:
        super().__init__(["fit"], words)

    def is_satisfied_by(self, val: Any) -> bool:
        learns = not isinstance(val, type) and bool(super().is_satisfied_by(val))  # a class has both as well
        return learns and (hasattr(val, "predict") or (isinstance(val, BaseEstimator) and is_classifier(val)))


A_LEARNER = Learning()


def scored_without_metadata() -> bool:
    """Whether a search or cross-validation of scikit-learn calls this fit, and is going to score by X and y alone. Its
    scorers turn every error into NaN, so that a model which needs more would lose without a word."""
    scored = None if get_config()["enable_metadata_routing"] else _inside_of("_fit_and_score")
    return scored is not None and type(scored.f_locals.get("scorer")).__name__ in _SCORERS


def encoded_by_cross_val_predict() -> bool:
    """Whether scikit-learn's cross_val_predict calls this fit, which hands on positions of labels for probabilities."""
    predicted = _inside_of("_fit_and_predict")
    return predicted is not None and predicted.f_locals.get("method") != "predict"


def _inside_of(function: str) -> Any:
    """The innermost call of a function of scikit-learn that is running; None where there is none."""
    frame: Any = sys._getframe(1)
    while frame and not (frame.f_code.co_name == function and frame.f_globals.get("__name__", "")[:8] == "sklearn."):
        frame = frame.f_back
    return frame


class NamedEstimator(PlainState, BaseEstimator):
    """An estimator whose pickle says which skfairdp wrote it, and whose constructor says how it is called."""

    #: Parameters by which rows to come are read: the values that a fit had are kept where others are set after it.
    _read_after_fit: ClassVar[frozenset[str]] = frozenset({
        "schema", "classes", "groups", "sensitive_columns", "bounds", "bounds_y", "categories", "dtypes", "loss",
        "estimator", "group_at_prediction",
    })  # fmt: skip

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        if args:
            accepted = list(inspect.signature(cls.__init__).parameters.values())[1:]
            unnamed = [one for one in accepted if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
            if len(args) > len(unnamed) and len(accepted) > len(unnamed):
                example = f"{cls.__name__}({accepted[len(unnamed)].name}=...)"
                raise TypeError(
                    f"{cls.__name__} takes its parameters by name, for example {example}. Got "
                    f"{len(args) - len(unnamed)} argument(s) without a name. Rows belong in fit."
                )
        return super().__new__(cls)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        for name, wrapped in (("fit", _saying_what_it_takes), ("fit_resample", _all_or_nothing)):
            if inspect.isfunction(method := cls.__dict__.get(name)):
                setattr(cls, name, wrapped(method))

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__(), "_skfairdp_version": _version()}
        if "_fitted_with" in state:  # nothing is stored twice
            now = vars(self)
            state["_fitted_with"] = {n: v for n, v in now["_fitted_with"].items() if now.get(n) is not v}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written, fitted_with = state.pop("_skfairdp_version", "of unknown number"), state.pop("_fitted_with", None)
        if written != _version():
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=f"{type(self).__name__} of skfairdp",
                    current_sklearn_version=_version(),
                    original_sklearn_version=written,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)
        if fitted_with is not None:
            now = {name: vars(self)[name] for name in self._read_after_fit & vars(self).keys()}
            self.__dict__["_fitted_with"] = {**now, **fitted_with}


def _saying_what_it_takes(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The same method; whoever passes what it does not take, or groups without their name, is told what to do."""
    signature, fitted = inspect.signature(fit), _all_or_nothing(fit)
    accepted = list(signature.parameters.values())[1:]
    unnamed = [one.name for one in accepted if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    others = [one.name for one in accepted if one.kind is inspect.Parameter.KEYWORD_ONLY]

    @functools.wraps(fit)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        try:
            given = signature.bind(self, *args, **named).arguments
        except TypeError as error:
            owner, unknown = type(self).__name__, [name for name in named if name not in signature.parameters]
            says = f"{owner}.fit takes {' and '.join(unnamed)}" + (f" and, by name, {others}" if others else "")
            if unknown == ["sample_weight"]:
                says += ". It has no sample_weight: a weight would scale what one record can change. Leave it out"
            elif unknown == ["subject"]:
                says += (
                    ". It has no subject: it does not protect several rows of one person together. Private "
                    "classifiers, regressors, generators and searches take one"
                )
            elif len(args) > len(unnamed) and others:
                example = "sensitive_features" if "sensitive_features" in others else others[0]
                says += f". Got {len(args)} without a name: pass groups and the like by name, as {example!r}"
            else:
                says += f": {error}"
            raise TypeError(f"{says}.") from None
        X, label = given.get("X"), getattr(given.get("y"), "name", None)
        if isinstance(label, str) and isinstance(X, pd.DataFrame) and label in X and not getattr(self, "schema", None):
            _messages.warn_caller(
                f"X of {type(self).__name__} holds the label y, {label!r}, as a feature: what is learned is to read "
                "it. Drop that column from X.",
                UtilityWarning,
            )
        return fitted(self, *args, **named)

    return checked


def _all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The same method; where it ends without a result all attributes are those of before, but what has been spent stays
    told. Whatever numpy and scikit-learn are told elsewhere, a NaN is looked for, and no arithmetic of a private number
    is an error. Global generators are left as they were: how often learners drew may follow from private rows, or a
    secret."""

    @functools.wraps(fit)
    def fitted(self: Any, *args: Any, **named: Any) -> Any:
        before, is_outermost = dict(vars(self)), not _messages.PAID.is_fit
        torch: Any = sys.modules.get("torch")
        vars(self).pop("_fitted_with", None)
        with _numeric.GENERATORS[0]:
            arrays, plain = np.random.get_state(), random.getstate()  # noqa: NPY002
            tensors = torch.get_rng_state() if hasattr(torch, "set_rng_state") else None  # else it may be half imported
        try:
            _messages.PAID.is_fit = True
            with config_context(assume_finite=False), np.errstate(all="warn", under="ignore"):
                result = fit(self, *args, **named)
            vars(self)["_fitted_with"] = {name: vars(self)[name] for name in self._read_after_fit & vars(self).keys()}
        except BaseException:
            now = vars(self)
            if now.get("privacy_") is before.get("privacy_"):
                new = ((n, v, getattr(v, "steps", [(n, v)])) for n, v in now.items() if v is not before.get(n))
                bought = {n: v for n, v, steps in new if hasattr(steps[-1][1], "privacy_")}
                now.clear()
                now.update({**before, **bought})
            raise
        finally:
            told = _messages.PAID.first if is_outermost else None
            if is_outermost:
                vars(_messages.PAID).clear()
            with _numeric.GENERATORS[0]:
                np.random.set_state(arrays)  # noqa: NPY002
                random.setstate(plain)
                if tensors is not None:
                    torch.set_rng_state(tensors)
                elif own := getattr(sys.modules.get("torch"), "default_generator", None):  # since, seeded by nobody
                    own.seed()
        if told is not None:
            raise told
        return result

    return fitted


def as_fitted(estimator: Any) -> Any:
    """The estimator as its fit left it: parameters that were set since count from the next fit on."""
    now = vars(estimator)
    fitted_with = now.get("_fitted_with", {})
    if all(now.get(name) is value for name, value in fitted_with.items()):
        return estimator
    view = object.__new__(type(estimator))
    vars(view).update({**now, **fitted_with})
    return view


def answers_as_fitted(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, by the parameters that the estimator was fitted with."""

    @functools.wraps(method)
    def answered(self: Any, *args: Any, **named: Any) -> Any:
        return method(as_fitted(self), *args, **named)

    return answered


def _version() -> str:
    from skfairdp import __version__

    return __version__
