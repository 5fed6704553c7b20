"""The estimator that a search tries: its rows, its parameters, what its fits will cost."""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object, process_routing

from skfairdp._estimator import steps_fitted_on_private_rows
from skfairdp._inputs import amounts_of
from skfairdp._rows import RowSource, SubjectRows, Subjects, opened
from skfairdp._utils import PRIVATE_ERRORS, warn_caller
from skfairdp._utils._sklearn import take_rows
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.privacy import UNCHARGED, LedgerEntry, PrivacySpent, ledger_in_use, refuse_ledger_of_seed
from skfairdp.schema import RawTable


def planned_entry(model: Any, ledger: str, X: Any, y: Any, arguments: Mapping[str, Any]) -> LedgerEntry | None:
    """The entry that a fit would put on record, None where it puts none. Whoever is no estimator, Pipeline or
    post-processor of ours is fitted, up to the point where the fit inside of it would spend."""
    if hasattr(model, "_planned_entry"):
        return model._planned_entry(X, y, **arguments)
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        X, given = _before_the_last(model, X, y, arguments)
        return planned_entry(last, ledger.removeprefix(f"{name}__"), X, y, given)
    if hasattr(model, "_handed_on") and model.estimator is not None:
        X, y, given = model._handed_on(X, y, **arguments)
        return planned_entry(model.estimator, ledger.removeprefix("estimator__"), X, y, given)
    try:
        model.set_params(**{ledger: _EndsTheFit()}).fit(X, y, **arguments)
    except _PlanReady as ready:
        return ready.entry
    return None


def _before_the_last(pipeline: Pipeline, X: Any, y: Any, arguments: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """X after all steps but the last of a pipeline, and the arguments of the last one's ``fit``."""
    name, before = pipeline.steps[-1][0], pipeline[:-1]
    if get_config()["enable_metadata_routing"]:
        given = dict(process_routing(pipeline, "fit", **arguments)[name].fit)
        taken = get_routing_for_object(before).consumes("fit_transform", arguments) if len(before) else ()
        others = {key: arguments[key] for key in taken}
    else:
        mine = f"{name}__"
        given = {key.removeprefix(mine): value for key, value in arguments.items() if key.startswith(mine)}
        others = {key: value for key, value in arguments.items() if not key.startswith(mine)}
    return before.fit_transform(X, y, **others) if len(before) else X, given


class _PlanReady(BaseException):
    """Ends a fit. Not an Exception: nothing that fits on behalf of others may take it for a failure."""

    def __init__(self, entry: LedgerEntry) -> None:
        super().__init__("The plan is ready.")
        self.entry = entry


class _EndsTheFit:
    """Stands in for a ledger: the first charge, which comes before the first release, goes no further than here."""

    def charge(self, event: Any, *, label: str, protects: Any, neighboring_relation: Any, releases: Any = (),
               dry_run: bool = False, rows_of: str = "") -> None:  # fmt: skip
        raise _PlanReady(LedgerEntry(label, event, protects, neighboring_relation, tuple(releases), rows_of))

    def __sklearn_clone__(self) -> "_EndsTheFit":
        return self


class SearchFailedError(RuntimeError):
    """A fit failed after it was charged. Nothing comes out of the search, and nobody learns which fit, or why."""

    def __init__(self, owner: str) -> None:
        super().__init__(PRIVATE_ERRORS["search failed"].text.format(owner=owner))


#: Some of the rows: their positions, those of some subjects, or what reads them where they are read in chunks.
Part = NDArray[np.int64] | SubjectRows | RowSource


@dataclass(frozen=True)
class Rows:
    """The arguments of ``fit``, to be handed on whole or in part. Private. Of rows that are read in chunks X is what
    reads them, and ``y`` is None: their parts are sources as well."""

    X: Any
    y: Any
    sensitive_features: Any
    public: Mapping[str, Any]
    subjects: Subjects | None = None
    exposure: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.y is not None:
            return len(self.y)
        source = opened(self.X)
        assert source is not None
        return source.n_rows

    def arguments(self, estimator: Any, part: Part | None = None) -> tuple[Any, Any, dict[str, Any]]:
        """X, y and what else the estimator's ``fit`` takes, of all rows or of some."""
        beside = {"sensitive_features": self.sensitive_features, "exposure": self.exposure}
        given = {**self.public, **beside}
        X, y, positions = self.X, self.y, part
        if self.subjects is not None and self.y is None:
            given["subject"] = self.subjects.name
        elif self.subjects is not None:
            mine = part if isinstance(part, SubjectRows) else self.subjects.part(np.arange(self.subjects.n))
            given["subject"], positions = mine.subject, mine.rows
        if isinstance(positions, RowSource):
            X = positions
        elif positions is not None:
            X, y = take_rows(X, positions), take_rows(y, positions)
            given |= {name: take_rows(values, positions) for name, values in beside.items() if values is not None}
        if hasattr(given.get("subject"), "cat") and hasattr(X, "index") and hasattr(X, "columns"):
            given["subject"] = given["subject"].set_axis(X.index)
        given = {name: value for name, value in given.items() if value is not None}
        if isinstance(estimator, Pipeline) and not get_config()["enable_metadata_routing"]:
            name, last = estimator.steps[-1]
            taken = inspect.signature(last.fit).parameters
            return X, y, {f"{name}__{key}": value for key, value in given.items() if key in taken}
        taken = inspect.signature(estimator.fit).parameters
        if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken.values()):
            return X, y, given
        return X, y, {key: value for key, value in given.items() if key in taken}


class Candidate:
    """An estimator whose fits are planned, paid for by the search, and made without a ledger of their own. All get the
    same public randomness, so that teachers can be shared and candidates compared."""

    def __init__(self, estimator: Any, *, owner: str, seed: int, quiet: bool = False) -> None:
        estimator = clone(estimator)
        names = [n for n in estimator.get_params(deep=True) if n == "ledger" or n.endswith("__ledger")]
        if len(names) != 1:
            raise ValueError(
                f"The 'estimator' of {owner} must hold exactly one private estimator, one with a parameter 'ledger', "
                f"so that what its fit costs is known beforehand. Got {type(estimator).__name__}, with {len(names)}."
            )
        for name in steps_fitted_on_private_rows(estimator) if isinstance(estimator, Pipeline) else []:
            warn_caller(
                f"The step {name!r} of the Pipeline in {owner} is fitted on private rows, or mixes them, which reveals "
                "more than the guarantee covers. Fit it on public ones: PublicPreprocessor(transformer, X_public).",
                PrivacyLeakWarning,
            )
        self.estimator, self.name, self.prefix = estimator, names[0], names[0].removesuffix("ledger")
        self._check_fits_once(owner)
        refuse_ledger_of_seed(f"The estimator of {owner}", self.parameter("noise_seed"), self.parameter("ledger"))
        params, changes = estimator.get_params(deep=True), {}
        if self.has("random_state") and self.parameter("random_state") is None:
            changes[self.prefix + "random_state"] = seed
        if quiet:  # progress bars would count the fits
            talks = [n for n, v in params.items() if n.split("__")[-1] == "verbose" and isinstance(v, bool | int)]
            changes.update({n: type(params[n])(0) for n in talks})
        estimator.set_params(**changes)

    def _check_fits_once(self, owner: str) -> None:
        """Refuse what may fit the private estimator several times, or learn from private rows beside it: it is planned
        and paid for once."""
        for part in self._nested(self.estimator)[:-1]:
            once = isinstance(part, Pipeline) or type(part).__module__.startswith("skfairdp.")
            if not (once or (isinstance(part, TransformedTargetRegressor) and part.transformer is None)):
                raise ValueError(
                    f"{owner} pays for one fit of its private estimator, and {type(part).__name__} around it may make "
                    "several, or learn from private rows itself. Search the private estimator alone, at the end of a "
                    "Pipeline, or in a post-processor of this package."
                )

    def parameter(self, name: str) -> Any:
        """A parameter of the private estimator, None where it has none of that name."""
        return self.estimator.get_params(deep=True).get(self.prefix + name)

    def domain(self, name: str) -> Any:
        """``classes``, ``groups`` or ``sensitive_columns``: of the private estimator, or of what it is inside of."""
        levels, params = self.prefix.split("__"), self.estimator.get_params(deep=True)
        places = ("__".join([*levels[:depth], name]) for depth in range(len(levels) - 1, -1, -1))
        return next((params[place] for place in places if params.get(place) is not None), None)

    @property
    def of_amounts(self) -> bool:
        """Whether it predicts amounts, and not classes."""
        return is_regressor(self.estimator)

    def amounts(self, y: Any, raw: RawTable | None = None) -> NDArray[np.float64]:
        """Amounts of rows as they are."""
        return amounts_of(self.private_part(self.estimator), y, len(y) if raw is None else raw.n_rows, raw)

    def check_unit(self, owner: str) -> None:
        """Refuse to score private amounts of what changes their unit around the private estimator, or hides it."""
        for part in self._nested(self.estimator)[:-1]:
            if not isinstance(part, Pipeline) and not type(part).__module__.startswith("skfairdp."):
                raise ValueError(
                    f"{owner} scores private amounts within the quantiles that its private estimator released, and "
                    f"{type(part).__name__} may change their unit. Search "
                    f"{type(self.private_part(self.estimator)).__name__} alone or at the end of a Pipeline, or score "
                    "on public rows: fit(..., validation=PublicData(X, groups, y))."
                )

    @property
    def declared_rows(self) -> int | None:
        """The public number of rows that the private estimator or its schema declares; None where rows are counted."""
        if not self.has("public_n_rows"):
            return None
        given = self.parameter("public_n_rows")
        return getattr(self.parameter("schema"), "n_rows", None) if given is None else int(given)

    def scaled(self, factor: float) -> "Candidate":
        """The same with another ε for its fits: so many times the one it has."""
        other = copy(self)
        other.estimator = clone(self.estimator)
        other.estimator.set_params(**{f"{self.prefix}epsilon": factor * self.parameter("epsilon")})
        return other

    def has(self, name: str) -> bool:
        return self.prefix + name in self.estimator.get_params(deep=True)

    def private_part(self, estimator: Any) -> Any:
        """The private estimator inside one of this kind."""
        return self._nested(estimator)[-1]

    def _nested(self, estimator: Any) -> list[Any]:
        """It, and what it holds, down to the private one; what is fitted where it is."""
        parts = [estimator]
        for step in self.prefix.split("__")[:-1]:
            last = parts[-1]
            fitted = last.named_steps[step] if isinstance(last, Pipeline) else getattr(last, f"{step}_", None)
            parts.append(getattr(last, step) if fitted is None else fitted)
        return parts

    def model(self, params: Mapping[str, Any], **private: Any) -> Any:
        """A clone with these parameters that charges no ledger, also inside of the block of one: the search pays."""
        model = clone(self.estimator).set_params(**deepcopy(dict(params)))  # a step of a Pipeline is fitted in place
        for name in ("noise_seed", "ledger"):
            given, usual = model.get_params(deep=True).get(self.prefix + name), self.parameter(name)
            if given is not None and given is not usual and given != usual:
                raise ValueError(
                    f"A candidate sets {name!r}, which the search reads of its estimator: of all fits it is the same. "
                    f"Leave it out of 'param_grid', and give it to the estimator."
                )
        model.set_params(**{self.prefix + name: value for name, value in private.items()})
        return model.set_params(**{self.name: None if ledger_in_use() is None else UNCHARGED})

    def chosen(self, fitted: Any, spent: PrivacySpent) -> Any:
        """The winner, which states what the search has cost: without it, it would not be this one. What was fitted
        before and is only part of it keeps its own. Fitted again, all of it charges the ledger that was given."""
        inner = self.private_part(fitted)
        release = inner.privacy_.own.release if hasattr(inner, "privacy_") else None
        inner.privacy_ = spent
        for part in _parts_of(fitted, {}):
            own = getattr(part, "__dict__", {})
            stated = own.get("privacy_")
            if isinstance(stated, PrivacySpent) and stated.own.release == release:
                part.privacy_ = spent
            if isinstance(own.get("ledger", part), type(UNCHARGED) | None):
                part.ledger = self.parameter("ledger")
        return fitted.set_params(**{self.name: self.parameter("ledger")})

    def plan(self, model: Any, rows: Rows, part: Part | None = None, *, warn: bool) -> LedgerEntry:
        """What the fit of a model will cost. ``warn`` lets through the warnings that every fit repeats."""
        planned = clone(model)
        if self.has("noise_seed"):
            planned.set_params(**{self.prefix + "noise_seed": None})
        X, y, arguments = rows.arguments(planned, part)
        with warnings.catch_warnings():
            if not warn:
                warnings.simplefilter("ignore")
            entry = planned_entry(planned, self.name, X, y, arguments)
        if entry is None:
            raise ValueError(
                f"{type(model).__name__} was fitted without charging its ledger, so nothing says what it cost. Use an "
                "estimator that charges before it releases."
            )
        return entry


def _parts_of(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """An estimator and all that it has fitted, networks with their parts."""
    if isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _parts_of(one, seen)
    elif any(hasattr(value, own) for own in ("get_params", "predict", "named_modules")) and not (
        isinstance(value, type) or id(value) in seen
    ):
        seen[id(value)] = value
        yield value
        yield from _parts_of(list(getattr(value, "__dict__", {}).values()), seen)  # a compiled tree has none
