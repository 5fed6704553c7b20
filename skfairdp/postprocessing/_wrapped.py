"""The estimator inside a post-processor: fitted already, or fitted here on what it asks for."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import check_is_fitted

from skfairdp._utils import PublicData, decode_labels, split_sensitive_columns
from skfairdp.postprocessing._inputs import shape_of


@dataclass(frozen=True)
class FitArguments:
    """What a post-processor hands its estimator's ``fit``, as it was given and after the group columns are dropped."""

    X: Any
    y: Any
    sensitive_features: Any
    X_public: Any
    sensitive_features_public: Any
    named: bool = True

    def metadata(self, wrapper: Any) -> dict[str, Any]:
        """What the estimator of a wrapper asks for, in the form that its ``fit`` takes.

        With metadata routing scikit-learn decides. Without it public rows are handed on to an estimator whose ``fit``
        takes them, and groups to one that requests them by default, as all of this package do.
        """
        estimator = wrapper.estimator
        given = {name: getattr(self, name) for name in ("sensitive_features", *_PUBLIC)}
        given = {name: value for name, value in given.items() if value is not None}
        asked = _requested(estimator, set(given))
        routed = get_config()["enable_metadata_routing"]
        wanted = "sensitive_features" in asked and _takes("sensitive_features", estimator)
        if not (wanted and not _reads_groups(estimator)) and not (routed and self.named):
            given.pop("sensitive_features", None)
        if routed:
            return dict(process_routing(wrapper, "fit", **given)["estimator"]["fit"]) if given else {}
        prefix, steps = "", estimator
        while isinstance(steps, Pipeline) or _searches(steps):
            name, steps = steps.steps[-1] if isinstance(steps, Pipeline) else ("", steps.estimator)
            prefix += name and f"{name}__"
        return {prefix + name: value for name, value in given.items() if _takes(name, estimator)}


_PUBLIC = ("X_public", "sensitive_features_public")


def router_of(wrapper: Any) -> MetadataRouter:
    """Who asks for which metadata: a post-processor itself, and in ``fit`` the estimator that it fits."""
    router = MetadataRouter(owner=wrapper).add_self_request(wrapper)
    if wrapper.estimator is not None:
        router.add(estimator=wrapper.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    return router


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator has been fitted, also inside a FrozenEstimator or as the last step of a Pipeline."""
    try:
        check_is_fitted(estimator)
    except (NotFittedError, AttributeError):  # the second: it is of no class of scikit-learn's
        return False
    return True


def fits_its_estimator(wrapper: Any) -> bool:
    """Whether the estimator of a post-processor is fitted by the post-processor's ``fit``."""
    estimator = wrapper.estimator
    return not (estimator is None or isinstance(estimator, FrozenEstimator) or is_fitted(estimator))


def last_part(estimator: Any) -> Any:
    """The estimator, or what is at the end of its pipelines, unfrozen."""
    while isinstance(estimator, FrozenEstimator | Pipeline):
        estimator = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator.steps[-1][1]
    return estimator


def classes_of(model: Any) -> NDArray[Any]:
    """The classes of a fitted model, in the form that it answers them in."""
    return decode_labels(last_part(model), np.arange(len(model.classes_)))


def needs_labels(estimator: Any) -> bool:
    """Whether the ``fit`` of an estimator cannot do without y: a schema finds the labels in X."""
    if getattr(last_part(estimator), "schema", None) is not None:
        return False
    return not hasattr(estimator, "__sklearn_tags__") or bool(get_tags(estimator).target_tags.required)


def takes_public_rows(estimator: Any) -> bool:
    """Whether the ``fit`` of an estimator has X_public, or hands on what it does not know."""
    return _takes("X_public", estimator)


def reads_whole(estimator: Any, X: Any) -> bool:
    """Whether an estimator gets the columns of the group as well: it takes them out itself, or was fitted with them."""
    return _reads_groups(estimator) or shape_of(X)[1:] == (getattr(estimator, "n_features_in_", None),)


def without_group_columns(wrapper: Any, X: Any, X_public: Any, groups: Any) -> tuple[Any, Any]:
    """Public rows for an estimator that gets X without the columns of the group, which are read as groups."""
    columns = wrapper.sensitive_columns
    if X_public is None or columns is None or reads_whole(wrapper.estimator, X):
        return X_public, groups
    public = X_public if isinstance(X_public, PublicData) else PublicData(X_public, groups)
    if shape_of(public.X)[1:] != shape_of(X)[1:]:
        return X_public, groups
    features, found = split_sensitive_columns(public.X, columns, owner=type(wrapper).__name__)
    own = public.sensitive_features
    return PublicData(features, found if own is None else own, public.y), None


def _reads_groups(estimator: Any) -> bool:
    part = last_part(estimator)
    return any(getattr(part, name, None) is not None for name in ("sensitive_columns", "schema"))


def _takes(name: str, estimator: Any) -> bool:
    """Whether a ``fit`` has this argument, or hands on what it does not know: with routing, or to what it searches."""
    part = _last_step(estimator)
    parameters = inspect.signature(part.fit).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return name in parameters or (open_ended and bool(get_config()["enable_metadata_routing"]))


def _searches(estimator: Any) -> bool:
    """Whether a ``fit`` hands on what it does not know to the estimator inside."""
    return all(hasattr(estimator, name) for name in ("refit", "cv", "estimator"))


def _last_step(estimator: Any) -> Any:
    while isinstance(estimator, Pipeline) or _searches(estimator):
        estimator = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator.estimator
    return estimator


def _requested(estimator: Any, names: set[str]) -> set[str]:
    return set(get_routing_for_object(_last_step(estimator)).consumes("fit", names))
