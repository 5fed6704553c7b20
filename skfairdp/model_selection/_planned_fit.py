"""What a fit will put on record, known before it: asked of an estimator of ours, found out of somebody else's."""

from collections.abc import Mapping
from typing import Any

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object, process_routing

from skfairdp.privacy import LedgerEntry


def planned_entry(model: Any, ledger: str, X: Any, y: Any, arguments: Mapping[str, Any]) -> LedgerEntry | None:
    """The entry that a fit would put on record, or None where it puts none.

    A private estimator says what it plans. A Pipeline fits the steps before it, and a post-processor of ours hands the
    question on. A meta-estimator that is not ours is fitted, up to the point where the fit inside of it would spend.
    """
    if hasattr(model, "_planned_entry"):
        entry: LedgerEntry = model._planned_entry(X, y, **arguments)
        return entry
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
    name = pipeline.steps[-1][0]
    if get_config()["enable_metadata_routing"]:
        given = dict(process_routing(pipeline, "fit", **arguments)[name].fit)
        if len(pipeline) == 1:
            return X, given
        taken = get_routing_for_object(pipeline[:-1]).consumes("fit_transform", arguments)
        return pipeline[:-1].fit_transform(X, y, **{key: arguments[key] for key in taken}), given
    mine = f"{name}__"
    given = {key.removeprefix(mine): value for key, value in arguments.items() if key.startswith(mine)}
    if len(pipeline) == 1:
        return X, given
    others = {key: value for key, value in arguments.items() if not key.startswith(mine)}
    return pipeline[:-1].fit_transform(X, y, **others), given


class _PlanReady(BaseException):
    """Ends a fit. Not an Exception: nothing that fits on behalf of others may take it for a failure."""

    def __init__(self, entry: LedgerEntry) -> None:
        super().__init__("The plan is ready.")
        self.entry = entry


class _EndsTheFit:
    """Stands in for a ledger: the first charge, which comes before the first release, goes no further than here."""

    def charge(self, event: Any, *, label: str, protects: Any, neighboring_relation: Any, releases: Any = (),
               dry_run: bool = False) -> None:  # fmt: skip
        raise _PlanReady(LedgerEntry(label, event, protects, neighboring_relation, tuple(releases)))

    def __sklearn_clone__(self) -> "_EndsTheFit":
        return self
