"""What the post-processors read from their inputs: rows, classes, groups and the label of a refusal."""

import inspect
import math
import numbers
from collections.abc import Hashable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn import get_config
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags, metadata_routing as routing
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp import _utils
from skfairdp._inputs import amount_bounds, refuse_chunks, without_subject
from skfairdp._typing import Array, Floats, Ints, Objects
from skfairdp._utils._sklearn import scored_without_metadata
from skfairdp.schema import RawTable, Schema, schema_of, with_schema


def predicts_amounts(estimator: Any) -> bool:
    """Whether an estimator, where there is one, predicts numbers and no classes."""
    return hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator)


#: Of so many equal parts are the bins of amounts: of their range, or of the predictions of public rows.
_N_BINS = 64


def range_of_amounts(wrapper: Any) -> tuple[float, float] | None:
    """The public bounds of the amounts that a post-processor, or what it wraps, declares; None where there are none."""
    model = wrapper
    while model is not None:
        model = last_part(model)
        declared = any(getattr(model, name, None) is not None for name in ("bounds_y", "bounds"))
        if declared or getattr(schema_of(model), "amounts", None) is not None:
            return amount_bounds(model)
        model = getattr(model, "estimator", None)
    return None


def limits_of_amounts(wrapper: Any, X_public: Any) -> Floats:
    """The limits between bins: equal shares of what is predicted of public rows, else equal parts of the range."""
    levels = np.linspace(0, 1, _N_BINS + 1)[1:-1]
    if X_public is None:
        low, high = range_of_amounts(wrapper) or (0.0, 1.0)
        return low + (high - low) * levels
    rows = X_public.X if isinstance(X_public, _utils.PublicData) else X_public
    predicted = _utils.without_cells(wrapper.estimator_.predict, rows, owner="IDP3")
    return np.unique(np.quantile(_utils.as_amounts(predicted, shape_of(rows)[0], owner="IDP3", name="y_pred"), levels))


def bins_of_amounts(y: Any, limits: Floats, name: str) -> tuple[Floats, Ints]:
    """Amounts, and the bin of each; NaN, which is no answer, has the code after the last."""
    values = column_of(y, name)
    missing = np.asarray(pd.isna(values), dtype=bool)
    amounts = np.full(len(values), np.nan)
    amounts[~missing] = _utils.as_amounts(values[~missing], int((~missing).sum()), owner="IDP3", name=name)
    return amounts, np.where(missing, len(limits) + 1, np.searchsorted(limits, amounts))


def shape_of(X: Any) -> tuple[int, ...]:
    return tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)


def schema_for(wrapper: Any) -> Schema | None:
    """The schema of a post-processor, else that of its estimator, unless the post-processor itself names groups."""
    schema = schema_of(wrapper)
    if schema is not None or wrapper.groups is not None or wrapper.sensitive_columns is not None:
        return schema
    inner = getattr(thawed(wrapper.estimator), "schema", None)
    return inner if isinstance(inner, Schema) and inner.groups else None


def thawed(model: Any) -> Any:
    """Out of its FrozenEstimator, which hides the parameters of what it holds."""
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    return model


def split_rows(
    estimator: Any, X: Any, sensitive_features: Any, *, reset: bool, owner: str = "IDP3", private: bool = False
) -> tuple[Any, Any]:
    """Return the features, and the groups from ``sensitive_columns`` or as given (None where there are none). With a
    schema features are the table as it is, read by the estimator's own; no group of a private row is an error then."""
    refuse_chunks(owner, X=X)
    _utils.refuse_masked(X, owner=owner, name="X", kind="not finite")
    schema = schema_for(estimator)
    if schema is not None:
        raw = RawTable.read(schema, X, owner=owner)
        if reset:
            estimator.n_features_in_ = len(schema.features)
            estimator.feature_names_in_ = np.asarray(schema.features, dtype=object)
        if sensitive_features is None and not raw.has_groups:
            return X, None
        return X, raw.domain[raw.groups(sensitive_features, public=not private)]
    _utils.check_same_index(owner, X=X, sensitive_features=sensitive_features)
    X = without_subject(thawed(getattr(estimator, "estimator_", estimator.estimator)), X)  # as the model itself does
    shape = shape_of(X)
    if len(shape) == 2:  # anything else is the wrapped estimator's to accept or refuse
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if shape[:1] in ((), (0,)):
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required by {owner}.")
    if estimator.sensitive_columns is None:
        return X, sensitive_features
    if sensitive_features is not None:
        raise ValueError(f"{owner} got both 'sensitive_columns' and sensitive_features; leave one of them out.")
    return _utils.split_sensitive_columns(X, estimator.sensitive_columns, owner=owner)


def declared_groups(estimator: Any) -> Any:
    """The groups that a parameter lists, or a schema in its place; None where neither does."""
    schema = schema_for(estimator)
    return estimator.groups if schema is None else schema.group_values


def read_classes(y: Any) -> Array:
    """Return the sorted distinct labels of y, or raise a ValueError that says why they cannot be classes."""
    if y is None:
        raise ValueError("IDP3 requires y to be passed, but the target y is None.")
    labels = column_of(y, "y")
    if bool(pd.isna(labels).any()):
        raise ValueError("y of IDP3 contains missing values (NaN or None).")
    if labels.dtype.kind not in "iufbUO" or (labels.dtype.kind == "f" and (labels != np.floor(labels)).any()):
        raise ValueError("Unknown label type: y of IDP3 must hold class labels, not numbers from a continuum.")
    try:
        return np.unique(labels)
    except TypeError:
        raise ValueError("Unknown label type: y of IDP3 mixes labels that cannot be ordered.") from None


def read_groups(groups: Any, given: Any, rows: int) -> Objects:
    """Return the group domain: ``given`` (every row is then checked against it), else the groups that occur."""
    if groups is None and given is None:
        raise ValueError(
            "IDP3 does not know the groups: pass sensitive_features to fit, list them with the 'groups' parameter, "
            "name the columns of X that hold them with 'sensitive_columns', or describe the table with 'schema'."
        )
    if groups is None:
        return _utils.given_domain(given, owner="IDP3", parameter="groups")
    _, domain = _utils.encode_within(_utils.as_groups(groups, rows, owner="IDP3"), given, owner="IDP3")
    if given is None and len(domain) < 2:
        raise ValueError(
            "IDP3 found only one group in the rows given to fit, so every fairness statement would be vacuous. "
            "If this is intended, list the groups with the 'groups' parameter."
        )
    return domain


def public_groups(groups: Any, given: Any, rows: int, *, owner: str) -> tuple[Objects, Ints]:
    """Return groups and each public row's code, where every group needs public rows."""
    if groups is None:
        raise ValueError(
            f"{owner} needs the group of every public row: pass sensitive_features to fit, or name the columns of X "
            "that hold them with 'sensitive_columns'."
        )
    values = _utils.as_groups(groups, rows, owner=owner)
    domain = (
        _utils.group_domain(values) if given is None else _utils.given_domain(given, owner=owner, parameter="groups")
    )
    if len(domain) < 2:
        raise ValueError(
            f"{owner} found only one group in the {'public rows' if given is None else 'groups parameter'}, so that "
            "there is no gap to lower. Add public rows of the other groups."
        )
    codes = _utils.encode_labels(values, domain, owner=owner, name="sensitive_features", parameter="groups")
    absent = len(domain) - len(np.unique(codes))
    if absent:
        raise ValueError(
            f"{owner} got no public row of {absent} of the {len(domain)} groups. Add public rows of every group, or "
            "leave those out of 'groups'."
        )
    return domain, codes


def public_labels(estimator: Any, X: Any, y: Any, *, owner: str) -> Array | None:
    """Return the labels of public rows, as given or from the column that a schema names; None where there are none."""
    schema = schema_for(estimator)
    if schema is not None:
        raw = RawTable.read(schema, X, owner=owner)
        if schema.label is None or (y is None and schema.label not in raw.numbers):
            return None
        return raw.classes[raw.labels(y, public=True)]
    if y is None:
        return None
    _utils.check_same_index(owner, X=X, y=y)
    check_consistent_length(X, y)
    return column_of(y, "y", owner)


def group_codes(groups: Any, domain: Objects, rows: int) -> Ints:
    """Return each row's position in ``domain``."""
    if groups is None:
        raise ValueError("IDP3 needs the group of every row to predict: pass sensitive_features.")
    return _utils.encode_groups(groups, domain, rows, owner="IDP3", parameter="groups")


def label_codes(y: Any, labels: Array, name: str) -> Ints:
    """Return each row's position in ``labels``."""
    return _utils.encode_many(column_of(y, name), labels, owner="IDP3", name=name, parameter="y")


def reject_label(given: Any, classes: Array) -> Any:
    """Return the label of a refusal, which is no class and of the classes' type: as given, else of our choice."""
    if np.ndim(given):
        raise ValueError(
            f"The 'reject_label' parameter of IDP3 must be one label, of the type of the classes. Got {given!r}."
        )
    labels = classes.tolist()
    kinds = (str, numbers.Integral, numbers.Real)
    kind: Any = next((kind for kind in kinds if all(isinstance(label, kind) for label in labels)), None)
    odd = isinstance(given, bool | np.bool_) or (isinstance(given, float) and math.isnan(given))
    if given is None:
        if kind is None:
            raise ValueError(
                "The 'reject_label' parameter of IDP3 has no default of a type that fits these classes; give one."
            )
        given = "reject" if kind is str else -1 if -1 not in labels else math.floor(min(labels)) - 1
    elif odd or not isinstance(given, kind or Hashable):
        raise ValueError(
            f"The 'reject_label' parameter of IDP3 must be of the type of the classes. Got {given!r} instead."
        )
    if given in labels:
        raise ValueError(
            f"The 'reject_label' parameter of IDP3 must not be a class, but {given!r} is one of the classes. "
            "Give another label."
        )
    return given


def column_of(values: Any, name: str, owner: str = "IDP3") -> Array:
    _utils.refuse_masked(values, owner=owner, name=name)
    try:
        array = np.asarray(_utils.label_array(values))
    except (ValueError, TypeError, OverflowError):
        array = np.empty((0, 0))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{name} of {owner} must be one column of labels with at least one row.")
    return array


def refuse_search_by_X_alone(who: str) -> None:
    """Raise a ValueError in a search whose scores would be NaN, as it hands on no groups of the rows that it scores."""
    if scored_without_metadata():
        raise ValueError(
            f"{who} needs the group of every row that is scored, and this search hands groups to fit at most: its "
            "scores would be NaN. Name the columns of X that hold them with 'sensitive_columns', or set "
            "sklearn.set_config(enable_metadata_routing=True)."
        )


@dataclass(frozen=True)
class FitArguments:
    """What a post-processor hands its estimator's ``fit``, as it was given and after the group columns are dropped."""

    X: Any
    y: Any
    sensitive_features: Any
    X_public: Any
    sensitive_features_public: Any
    named: bool = True
    subject: Any = None

    def metadata(self, wrapper: Any) -> dict[str, Any]:
        """What the estimator of a wrapper asks for, in the form that its ``fit`` takes. With metadata routing
        scikit-learn decides. Without it public rows are handed on to an estimator whose ``fit`` takes them, and groups
        to one that requests them by default, as all of this package do."""
        estimator = wrapper.estimator
        given = {name: getattr(self, name) for name in ("sensitive_features", "subject", *_PUBLIC)}
        given = {name: value for name, value in given.items() if value is not None}
        asked = routing.get_routing_for_object(_last_step(estimator)).consumes("fit", given)
        routed = get_config()["enable_metadata_routing"]
        wanted = "sensitive_features" in asked and _takes("sensitive_features", estimator)
        if not (wanted and not _reads_groups(estimator)) and not (routed and self.named):
            given.pop("sensitive_features", None)
        if routed:
            routes = given and isinstance(wrapper, RoutesToEstimator)
            return dict(routing.process_routing(wrapper, "fit", **given)["estimator"]["fit"]) if routes else given
        prefix, steps = "", estimator
        while isinstance(steps, Pipeline) or _searches(steps):
            name, steps = steps.steps[-1] if isinstance(steps, Pipeline) else ("", steps.estimator)
            prefix += name and f"{name}__"
        return {prefix + name: value for name, value in given.items() if _takes(name, estimator)}


_PUBLIC = ("X_public", "sensitive_features_public")


@with_schema
class RoutesToEstimator:
    """A post-processor that hands metadata on to the estimator that it fits, and answers as that estimator does."""

    estimator: Any
    groups: Sequence[Hashable] | None = None
    sensitive_columns: Sequence[str | int] | str | int | None = None
    schema: Schema | None = None

    # Asked for by default, so that a search or pipeline with metadata routing never drops the groups by accident.
    __metadata_request__fit = {"sensitive_features": True, **dict.fromkeys((*_PUBLIC, "subject"), routing.UNUSED)}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags, tags.non_deterministic = inner.input_tags, inner.non_deterministic
            if inner.classifier_tags is not None:
                tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        if self.sensitive_columns is not None:
            tags.input_tags.sparse = False
        return tags

    @property
    def _finds_groups(self) -> bool:
        """Whether the columns of X hold the groups."""
        return self.sensitive_columns is not None or schema_for(self) is not None

    def get_metadata_routing(self) -> routing.MetadataRouter:
        """Return who asks for which metadata: the post-processor itself, and in ``fit`` the estimator that it fits.

        Returns
        -------
        router : MetadataRouter
            As scikit-learn's.
        """
        router = routing.MetadataRouter(owner=self).add_self_request(self)
        if self.estimator is not None:
            router.add(estimator=self.estimator, method_mapping=routing.MethodMapping().add(caller="fit", callee="fit"))
        return router


def fits_its_estimator(wrapper: Any) -> bool:
    """Whether the estimator of a post-processor is fitted by the post-processor's ``fit``."""
    estimator = wrapper.estimator
    if estimator is None or isinstance(estimator, FrozenEstimator):
        return False
    try:
        check_is_fitted(estimator)
    except (NotFittedError, AttributeError):  # the second: it is of no class of scikit-learn's
        return True
    return False


def last_part(estimator: Any) -> Any:
    """The estimator, or what is at the end of its pipelines, unfrozen."""
    while isinstance(estimator := thawed(estimator), Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def classes_of(model: Any) -> Array:
    """The classes of a fitted model, in the form that it answers them in."""
    return _utils.decode_labels(last_part(model), np.arange(len(model.classes_)))


def needs_labels(estimator: Any) -> bool:
    """Whether the ``fit`` of an estimator cannot do without y: a schema finds the labels in X."""
    if getattr(last_part(estimator), "schema", None) is not None:
        return False
    return not hasattr(estimator, "__sklearn_tags__") or bool(get_tags(estimator).target_tags.required)


def check_takes(estimator: Any, owner: str, **given: Any) -> None:
    """Refuse what the ``fit`` of an estimator neither has nor hands on."""
    for name in [name for name, value in given.items() if value is not None and not _takes(name, estimator)]:
        raise ValueError(
            f"{owner} hands {name} on to its estimator, and {type(last_part(estimator)).__name__} takes none. "
            f"Leave {name} out, or give an estimator whose fit has it."
        )


def apart_from_ids(X: Any, subject: Any) -> tuple[Any, Any]:
    """The table without the column that says who a row is about, and that column; as given where none is named."""
    named = isinstance(subject, str) and (_utils.column_names(X) or []).count(subject) == 1
    return (_utils.as_pandas(X).drop(columns=subject), _utils.as_pandas(X)[subject]) if named else (X, subject)


def reads_whole(estimator: Any, X: Any) -> bool:
    """Whether an estimator gets the columns of the group as well: it takes them out itself, or was fitted with them."""
    return _reads_groups(estimator) or shape_of(X)[1:] == (getattr(estimator, "n_features_in_", None),)


def without_group_columns(wrapper: Any, X: Any, X_public: Any, groups: Any) -> tuple[Any, Any]:
    """Public rows for an estimator that gets X without the columns of the group, which are read as groups."""
    columns = wrapper.sensitive_columns
    if X_public is None or columns is None or reads_whole(wrapper.estimator, X):
        return X_public, groups
    public = X_public if isinstance(X_public, _utils.PublicData) else _utils.PublicData(X_public, groups)
    if shape_of(public.X)[1:] != shape_of(X)[1:]:
        return X_public, groups
    features, found = _utils.split_sensitive_columns(public.X, columns, owner=type(wrapper).__name__)
    own = public.sensitive_features
    return _utils.PublicData(features, found if own is None else own, public.y), None


def _reads_groups(estimator: Any) -> bool:
    part = last_part(estimator)
    return any(getattr(part, name, None) is not None for name in ("sensitive_columns", "schema"))


def _takes(name: str, estimator: Any) -> bool:
    """Whether a ``fit`` has this argument, or hands on what it does not know: with routing, or to what it searches."""
    parameters = inspect.signature(_last_step(estimator).fit).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return name in parameters or (open_ended and bool(get_config()["enable_metadata_routing"]))


def _searches(estimator: Any) -> bool:
    """Whether a ``fit`` hands on what it does not know to the estimator inside."""
    return all(hasattr(estimator, name) for name in ("refit", "cv", "estimator"))


def _last_step(estimator: Any) -> Any:
    while isinstance(estimator, Pipeline) or _searches(estimator):
        estimator = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator.estimator
    return estimator


def fitted(estimator: Any, owner: str, kind: str = "classifier") -> Any:
    """The estimator that a calibrator is around: there, fitted, and of its kind."""
    if estimator is None:
        raise ValueError(f"{owner} needs a fitted {kind}: give one with the 'estimator' parameter.")
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise NotFittedError(
            f"{owner} calibrates a {kind} that is fitted already; this {type(estimator).__name__} is not. Fit it "
            "first, and wrap it in sklearn.frozen.FrozenEstimator where the calibrator is cloned."
        ) from None
    is_one, more, instead = is_regressor(estimator), "", "; for classes take PrivateThresholds"
    if kind == "classifier":
        is_one, more, instead = is_classifier(estimator) and hasattr(estimator, "classes_"), " with classes_", ""
    if not is_one:
        raise ValueError(
            f"The 'estimator' parameter of {owner} must be a {kind}{more}. Got {type(estimator).__name__} instead"
            f"{instead}."
        )
    return estimator


def probabilities(model: Any, X: Any, n_classes: int, *, owner: str, finite: bool = True) -> Floats:
    """Return the model's own probabilities, shape (n_rows, n_classes); decision values are read as log-odds."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(_utils.without_cells(model.predict_proba, X, owner=owner), dtype=float)
    elif hasattr(model, "decision_function"):
        found = np.asarray(model.decision_function(X), dtype=float)
        found = softmax(np.column_stack([np.zeros(len(found)), found]) if found.ndim == 1 else found, axis=1)
    else:
        raise ValueError(
            f"Thresholds of {owner} needs an estimator with predict_proba or decision_function; "
            f"{type(model).__name__} has neither."
        )
    if found.ndim != 2 or found.shape[1] != n_classes:
        raise ValueError(
            f"{owner} expects one score for each of the {n_classes} classes of {type(model).__name__}; got an array "
            f"of shape {found.shape}."
        )
    if finite and not np.isfinite(found).all():
        raise ValueError(f"The scores of {type(model).__name__} given to {owner} are not all finite.")
    return found


def class_codes(predicted: Any, classes: Array, *, owner: str) -> Ints:
    """Return the position of each predicted label in ``classes``."""
    return _utils.encode_labels(np.asarray(predicted), classes, owner=owner, name="y_pred", parameter="estimator")


def network_of(model: Any) -> Any:
    """Return the torch module of a fitted classifier (of a skorch net, or in ``net_``); None where there is none."""
    last = last_part(model)
    net = getattr(last, "net_", None)
    return getattr(last, "module_", None) if net is None else getattr(net, "module_", net)


def network_view(model: Any, X: Any, n_rows: int, n_classes: int, *, owner: str) -> tuple[Any, Floats]:
    """Return the rows that the network reads when the model predicts X, and its probabilities for them."""
    from skfairdp._networks import predict_logits, rows_read_by

    net = network_of(model)
    rows = rows_read_by(net, lambda: model.predict(X))
    logits = predict_logits(net, rows.numpy())
    if logits.shape != (n_rows, n_classes):
        raise ValueError(
            f"FineTuning of {owner} needs a network that gives one logit for each of the {n_classes} classes "
            f"and each row: shape ({n_rows}, {n_classes}). Got {logits.shape} instead."
        )
    return rows, softmax(logits, axis=1)


def with_network(model: Any, module: Any) -> Any:
    """Return a copy of a classifier (frozen, or at the end of a pipeline) that holds another network."""
    if hasattr(model, "module_"):
        net = deepcopy(model)
        net.module_.load_state_dict(module.state_dict())
        return net
    other = copy(model)
    if isinstance(model, FrozenEstimator):
        other.estimator = with_network(model.estimator, module)
    elif isinstance(model, Pipeline):
        name, last = model.steps[-1]
        other.steps = [*model.steps[:-1], (name, with_network(last, module))]
    else:
        other.net_ = with_network(model.net_, module) if hasattr(model.net_, "module_") else module
    return other
