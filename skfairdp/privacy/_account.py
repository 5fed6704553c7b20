"""One account: what was paid for and is inside of something, and what all of it costs together."""

import contextlib
import hashlib
import inspect
import json
import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.privacy._accountants import epsilon_of
from skfairdp.privacy._attribute_cost import counted_for
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import compose, event_from_dict, event_to_dict
from skfairdp.privacy._ledger_block import ledgers_of
from skfairdp.privacy._report import UNNAMED, NeighboringRelation, PrivacySpent, Protects, common_relation

#: Of what has fitted on folds and kept nothing of those fits.
_FOLDS = ("cv_results_", "final_estimator_")
#: What a figure takes for granted that adds up fits for ids without a name.
SAME = "that ids without a name say the same subjects"
#: Where rows say what was paid for them.
_PAID = "skfairdp releases"
#: These see no private row, or only the names of the classes.
_PUBLIC = ("PublicPreprocessor", "SchemaEncoder", "LabelEncoder", "LabelBinarizer")
#: These hand rows on to what is inside of them and learn nothing from them themselves: boosting and thresholds do.
_HAND_ON = (
    "Pipeline", "FeatureUnion", "ColumnTransformer", "FrozenEstimator", "TransformedTargetRegressor",
    "VotingClassifier", "VotingRegressor", "StackingClassifier", "StackingRegressor", "BaggingClassifier",
    "BaggingRegressor", "CalibratedClassifierCV", "FixedThresholdClassifier", "MultiOutputClassifier",
    "MultiOutputRegressor", "ClassifierChain", "RegressorChain", "OneVsRestClassifier", "OneVsOneClassifier",
    "OutputCodeClassifier",
)  # fmt: skip


def composed(first: PrivacySpent, *others: PrivacySpent) -> PrivacySpent:
    """What all of these cost together, each release once: the one place where guarantees are added up. They are stated
    for what ``first`` protects, at its δ; where no ε holds at that δ, at the largest of them."""
    every = (part for spent in (first, *others) for part in spent.parts or (spent,))
    parts = tuple({part.release or id(part): part for part in every}.values())
    if len(parts) == len(first.parts or (first,)):
        return first
    counted = [counted_for(first.protects, part.event, part.neighboring_relation) for part in parts]
    relation = common_relation(under for _, under in counted)
    event = compose(*(event for event, _ in counted))
    subjects = {part.rows_of for part in parts} if relation is not None and relation.of_subjects else set()
    if relation is None or relation.protects != first.protects or len(subjects) > 1:
        raise ValueError(_unlike(parts))
    if subjects == {""}:
        warnings.warn(UNNAMED, PrivacyLeakWarning, stacklevel=3)
    delta = first.delta
    if math.isinf(_stated(event, delta)):
        delta = max(part.delta for part in parts)
    public = [*(fact for part in parts for fact in part.public), *[SAME] * (subjects == {""})]
    total = PrivacySpent.of(
        event, delta, protects=first.protects, neighboring_relation=relation, public=dict.fromkeys(public),
        secret_noise=all(part.epsilon == part.mechanism_epsilon for part in parts),
        performed=[release for part in parts for release in part.performed], rows_of=first.rows_of if subjects else "",
    )  # fmt: skip
    return replace(total, parts=parts)


def _stated(event: DpEvent, delta: float) -> float:
    """ε at δ; infinite at δ = 0 where a release has no pure ε."""
    try:
        return epsilon_of(event, delta)
    except ValueError:
        if delta > 0:
            raise
        return math.inf


def _unlike(parts: Iterable[PrivacySpent]) -> str:
    kinds = dict.fromkeys((part.label or "a fit", str(part.neighboring_relation), part.rows_of) for part in parts)
    said = "; ".join(f"{label} for '{relation}'{of and f' ({of})'}" for label, relation, of in kinds)
    remedy = " Leave out the declared number of rows (public_n_rows, or n_rows of a schema): it is public elsewhere."
    if all(relation != NeighboringRelation.ADD_OR_REMOVE_ONE for _, relation, _ in kinds):
        remedy = ""
    return f"Guarantees with different neighboring_relation do not add up: {said}. Report them separately.{remedy}"


def record_of(spent: PrivacySpent) -> dict[str, Any]:
    """What was paid for something, as values of a file beside it: a report that was not composed."""
    figures = {"epsilon": "inf" if math.isinf(spent.epsilon) else spent.epsilon, "delta": spent.delta}
    of = {"neighboring_relation": str(spent.neighboring_relation), "on_record": spent.on_record}
    record = {"release": spent.release, "label": spent.label, **figures, **of, "event": event_to_dict(spent.event)}
    record |= {"rows_of": spent.rows_of} if spent.rows_of else {}
    return {**record, "digest": _digest(record)}


def releases_of(records: Any, *, owner: str) -> dict[str, PrivacySpent]:
    """Read what :func:`record_of` wrote, by the names of the releases."""
    found = {}
    for record in records if isinstance(records, list) else [None]:
        spent = _from_record(record)
        if spent is None or spent.release in found:
            raise ValueError(
                f"The 'releases' of {owner}, which record its cost, were edited or cut since they were written. What "
                "it cost is unknown, so it cannot be used. Take the file as it was saved."
            )
        found[spent.release] = spent
    return found


def note_paid(rows: Any, spent: PrivacySpent) -> None:
    """Rows say what was paid for them, where pandas keeps it through copies, selections and Parquet files."""
    if isinstance(getattr(rows, "attrs", None), dict):
        rows.attrs[_PAID] = [record_of(part) for part in spent.parts or (spent,)]


def _from_record(record: Any) -> PrivacySpent | None:
    try:
        relation = NeighboringRelation(record["neighboring_relation"])
        spent = PrivacySpent.of(
            event_from_dict(record["event"]), record["delta"], protects=relation.protects,
            neighboring_relation=relation, secret_noise=record["epsilon"] != "inf", label=record["label"],
            release=record["release"], on_record=record["on_record"], rows_of=record.get("rows_of", ""),
        )  # fmt: skip
        same = {**record_of(spent), "epsilon": record["epsilon"]}
        said = math.inf if record["epsilon"] == "inf" else record["epsilon"]
        figure = said == spent.epsilon or math.isclose(said, spent.epsilon, rel_tol=1e-6)
        same["digest"] = _digest({key: value for key, value in same.items() if key != "digest"})
        return spent if spent.release and figure and record == same else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _digest(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def held_by(*things: Any) -> tuple[PrivacySpent, ...]:
    """What was paid for and is among the parameters of an estimator, or in a list or dict of values: schemas, columns,
    values, generated rows, fitted models with a ``privacy_``."""
    account = Account()
    for thing in things:
        for value in thing.get_params(deep=False).values() if hasattr(thing, "get_params") else [thing]:
            for child in _leaves(value):
                account.look_at(child, "")
            account.look_at_value(value)
    return tuple(spent for spent, _ in account.found.values())


def carrying(model: Any, spent: PrivacySpent) -> Any:
    """The model itself, which says wherever it goes what was paid for it, beside its own report, which may be of
    released rows alone. So do private models that it has fitted; what came fitted keeps what it says."""
    waiting, seen = [model], dict[int, Any]()
    while waiting:
        part = waiting.pop()
        is_new = id(part) not in seen
        seen[id(part)] = part
        if type(part).__name__ == "FrozenEstimator":
            seen[id(part.estimator)] = part.estimator
        elif is_new:
            own = getattr(part, "privacy_", None)
            states = isinstance(own, PrivacySpent)
            if states or not type(part).__module__.startswith("skfairdp."):
                names = (*_fitted_attributes(part), "steps", "estimator")  # the last is looked at first
                waiting += [inner for name in names for inner in _leaves(getattr(part, name, None))]
            if states or part is model:
                with contextlib.suppress(AttributeError):
                    part.privacy_ = spent
                    with contextlib.suppress(ValueError):  # of another unit: it learned from what is paid for anyway
                        part.privacy_ = composed(spent, own) if isinstance(own, PrivacySpent) else spent
    return model


def privacy_of(estimator: Any) -> PrivacySpent:
    """What a fitted estimator guarantees, from everything inside it that states a guarantee.

    **What it covers.** The guarantees that are found are composed, each release once, as if all had read the same rows:
    of models, and of released schemas. Where a ledger was given, all of its entries of that kind count for
    what was charged to it (for the attribute those for records too), with them the fits on folds that a search or a
    stack has thrown away, and whatever else is on it.

    **What it cannot see** is said in a PrivacyLeakWarning and in ``public``: parts that learned from rows without a
    guarantee (a scaler, the last learner of a stack), a choice by exact scores (``GridSearchCV``), records that
    bagging repeats, and, without a ledger, fits on folds. The figure holds if what such parts read was public.

    Parameters
    ----------
    estimator : estimator
        Fitted: a Pipeline, a stack, a vote, a search, a post-processor, or a private estimator.

    Returns
    -------
    PrivacySpent
        With ``statement()``, as every report.

    Raises
    ------
    ValueError
        Nothing inside states a guarantee, or guarantees of several kinds do, which do not add up.

    Warns
    -----
    PrivacyLeakWarning
        Something inside read rows and states no guarantee.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> from skfairdp.privacy import privacy_of
    >>> split = train_private_public_test_split(*make_biased_classification(2000, random_state=0), random_state=0)
    >>> model = make_pipeline(PATEClassifier(epsilon=1.0, classes=[0, 1], public_data=split.public))
    >>> round(privacy_of(model.fit(split.X, split.y)).epsilon, 3)
    1.0
    """
    found = Account.of(estimator, adds_ledgers=True)
    if not found.reports:
        raise ValueError(
            f"privacy_of found no guarantee in this {type(estimator).__name__}: nothing inside has a privacy_. Fit it "
            "first, with a private estimator in it."
        )
    total = found.with_ledgers()
    if found.unseen:
        warnings.warn(found.warning("privacy_of"), PrivacyLeakWarning, stacklevel=2)
    if away := found.away:
        warnings.warn(
            f"privacy_of cannot see the ledger that {', '.join(away)} was charged to: its file is gone or elsewhere, "
            "or it was in the memory of another process. Other fits on it are not included. Ask whoever keeps it.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
    unseen = (f"what was read by {part}" for part in found.unseen)
    charged = (f"what else is on the ledger of {part}" for part in away)
    return replace(total, public=(*total.public, *unseen, *charged))


class Account:
    """What a walk through an estimator has met: reports, and parts that learned without one."""

    def __init__(self) -> None:
        self.found: dict[Any, tuple[PrivacySpent, Any]] = {}  # a report, and the ledgers it was charged to
        self.private: list[Any] = []  # parts that have one, and those that they hold
        self.unseen: list[str] = []
        self._folds: list[str] = []
        self._adds_ledgers = False
        self._seen: dict[int, Any] = {}  # kept, so that no number is given to another object

    @classmethod
    def of(cls, estimator: Any, *, adds_ledgers: bool = False) -> "Account":
        """Of a fitted estimator with all that is inside. Whoever adds all that is on their ledgers sees fits that were
        thrown away."""
        account = cls()
        account._adds_ledgers = adds_ledgers
        account.look_at(estimator, type(estimator).__name__)
        account.unseen = list(dict.fromkeys([*account.unseen, *account._folds]))
        return account

    @property
    def reports(self) -> list[PrivacySpent]:
        """Of fits, and of what fits were given, such as schemas."""
        return [spent for spent, _ in self.found.values()]

    def warning(self, owner: str) -> str:
        """What to tell of parts without a guarantee."""
        return (
            f"{owner} cannot see what these read: {'; '.join(self.unseen)}. The figure holds only if that is public. "
            "Give every private estimator a ledger, and use PublicPreprocessor or SchemaEncoder before them."
        )

    @property
    def away(self) -> list[str]:
        """Fits that were charged to a ledger which is not at hand."""
        fits = [one for (kind, _), one in self.found.items() if kind == "fit"]
        parts = [(part, ledgers) for spent, ledgers in fits for part in spent.parts or (spent,) if part.on_record]
        gone = [part for part, ledgers in parts if not any(one.continues(part.on_record) for one in ledgers)]
        return list(dict.fromkeys(part.label or "a fit" for part in gone))

    def total(self) -> PrivacySpent | None:
        """All reports composed; None where there is none."""
        return composed(*self._of_one_kind()) if self.found else None

    def with_ledgers(self) -> PrivacySpent:
        """All reports composed; of what is on a ledger, everything on it, of their kind."""
        total = composed(*self._of_one_kind())
        ledgers = {id(ledger): ledger for _, several in self.found.values() for ledger in several}
        if not ledgers:
            return total

        # A ledger that was put in the place of another one does not take away what the fit itself reports.
        def on_record(part: PrivacySpent) -> bool:
            return bool(part.on_record) and any(ledger.continues(part.on_record) for ledger in ledgers.values())

        alone = [part for part in total.parts or (total,) if not on_record(part)]
        entire = [one for ledger in ledgers.values() for one in _everything_on(ledger, total.protects)]
        if not entire:
            return total
        # Of fits with a pure ε, δ = 0 is stated; what else is on the ledger has an ε at the δ of the ledger.
        result = composed(*sorted([*entire, *alone], key=lambda part: part.protects != total.protects))
        figure = _stated(result.event, total.delta)
        if math.isfinite(figure) and result.delta != total.delta:
            epsilon = figure if result.epsilon == result.mechanism_epsilon else math.inf
            result = replace(result, delta=total.delta, mechanism_epsilon=figure, epsilon=epsilon)
        return replace(result, public=total.public)

    def _of_one_kind(self) -> list[PrivacySpent]:
        """Of fits for records and for subjects, one for records first: both promise that. No other two kinds add up."""
        fits = [spent for (kind, _), (spent, _) in self.found.items() if kind == "fit"]
        fits.sort(key=lambda spent: spent.protects == Protects.SUBJECT)
        if any(spent.protects not in fits[0].protects.kept_by for spent in fits):
            raise ValueError(
                "Guarantees with different protects do not add up: fits for "
                f"{' and fits for '.join(sorted({f'{spent.protects}s' for spent in fits}))} are inside. Report them "
                "separately."
            )
        return [*fits, *(spent for (kind, _), (spent, _) in self.found.items() if kind != "fit")]

    # ------------------------------------------------------------------ walking

    def look_at(self, part: Any, name: str) -> bool:
        """Note a part and what is inside; whether it is, or holds, something that has been fitted."""
        if id(part) in self._seen:
            return True
        self._seen[id(part)] = part
        spent = getattr(part, "privacy_", None)
        if isinstance(spent, PrivacySpent):
            self.found["fit", spent.release or id(spent)] = spent, ledgers_of(part)
            self.private.append(part)
            inner = Account()  # its cost is known, and what learned beside it is not
            inner._adds_ledgers = self._adds_ledgers
            for where in () if hasattr(part, "generator_") else ("estimator", "estimator_", "best_estimator_"):
                inner.look_at(getattr(part, where, None), f"{name}.{where}")
            self.private += inner.private
            if inner.found:
                self.unseen, self._folds = [*self.unseen, *inner.unseen], [*self._folds, *inner._folds]
            return True
        if hasattr(part, "get_params"):
            self.look_at_value([part.get_params(deep=False), getattr(part, "_paid", None)])
        before, unseen = len(self.found), len(self.unseen)
        inside = [self.look_at(child, f"{name}.{where}") for where, child in _children(part)]
        told = len(self.unseen)
        for child in _hidden(part):
            self.look_at(child, name)
        del self.unseen[told:]  # whoever hides a private model is told of itself
        new = list(self.found.values())[before:]
        threw_away = any(hasattr(part, attribute) for attribute in _FOLDS) or _predicted_folds(part)
        if threw_away and any(not (ledgers and self._adds_ledgers) for _, ledgers in new):
            self._folds.append(f"fits on folds of {name}")
        if new and getattr(part, "bootstrap", False):
            self._folds.append(f"rows that {name} drew with replacement, one record maybe several times")
        if hasattr(part, "best_index_"):
            self._folds.append(f"the choice of {name} by scores of the rows that it held out")
        if type(part).__name__ in _PUBLIC:  # what is inside of it read no private row, but may hold a private model
            del self.unseen[unseen:]
            return True
        fitted = bool(_fitted_attributes(part)) and hasattr(part, "fit")
        if fitted and not (any(inside) and (not new or _hands_on(part))):
            self.unseen.append(f"{name} ({type(part).__name__})")
        return fitted or any(inside)

    def look_at_value(self, value: Any) -> None:
        """Note a schema, a column or values that were released, alone or in lists, dicts and parameters."""
        spent = None if hasattr(value, "get_params") else getattr(value, "privacy_", value)
        if isinstance(spent, PrivacySpent):
            for part in spent.parts or (spent,):
                self.found["value", part.release or id(part)] = part, []
        elif isinstance(getattr(value, "attrs", None), dict):  # a DataFrame or a Series
            paid = releases_of(value.attrs.get(_PAID, []), owner="A table of synthetic rows (its 'attrs')")
            self.look_at_value(list(paid.values()))
        elif hasattr(value, "sensitive_features"):  # public rows, with their groups and labels
            self.look_at_value([one for one in vars(value).values() if hasattr(one, "attrs")])
        elif isinstance(value, partial):
            self.look_at_value([value.args, value.keywords])
        elif isinstance(value, list | tuple | dict):
            for one in value.values() if isinstance(value, dict) else value:
                self.look_at_value(one)
        elif not isinstance(value, type) and hasattr(value, "named_modules"):  # a torch module; one inside may be paid
            for _, module in value.named_modules():
                self.look_at_value(getattr(module, "privacy_", None))
        elif not isinstance(value, type) and hasattr(value, "get_params"):
            self.look_at_value(value.get_params(deep=False))


def _everything_on(ledger: Any, protects: Protects) -> Iterator[PrivacySpent]:
    """A report of all entries of a ledger that count for what is protected, of each relation one."""
    kinds: dict[tuple[Any, str], list[DpEvent]] = {}
    for entry in ledger.entries:
        if entry.protects in protects.kept_by or protects == Protects.SENSITIVE_ATTRIBUTE:
            kinds.setdefault((NeighboringRelation(entry.neighboring_relation), entry.rows_of), []).append(entry.event)
    for (relation, rows_of), events in kinds.items():
        yield PrivacySpent.of(
            compose(*events), ledger.delta, protects=relation.protects, neighboring_relation=relation,
            label="everything on the ledger", on_record=ledger.head, rows_of=rows_of,
        )  # fmt: skip


def _hands_on(part: Any) -> bool:
    """Whether all that it learned is in what is inside: a search's choice among folds is told of as such."""
    kind = type(part)
    return kind.__name__ in _HAND_ON or kind.__module__.startswith(("skfairdp.", "sklearn.model_selection._search"))


def _predicted_folds(part: Any) -> bool:
    """Whether it was taught by answers of fits on folds that it has thrown away."""
    chained = type(part).__name__ in ("ClassifierChain", "RegressorChain") and part.cv is not None
    return chained or (type(part).__name__ == "CalibratedClassifierCV" and part.ensemble is False)


def _fitted_attributes(part: Any) -> list[str]:
    state = getattr(part, "__dict__", {})
    is_new = state.get("initialized_") is False  # a net of skorch, which has others before it is fitted
    return [name for name in state if name.endswith("_") and not name.startswith("_") and not is_new]


def _children(part: Any) -> Iterator[tuple[str, Any]]:
    """Estimators that an estimator holds, also in lists and dicts and behind functions, by the names of attributes."""
    state = getattr(part, "__dict__", {})
    parameters = part.get_params(deep=False) if hasattr(part, "get_params") and not isinstance(part, type) else {}
    names = [*_fitted_attributes(part), *(name for name in ("steps", "estimator", "calibrators") if name in state)]
    for name, value in {**parameters, **{name: state[name] for name in names}}.items():
        for child in _leaves(value):
            yield name, child


def _hidden(part: Any) -> Iterator[Any]:
    """Estimators in any other attribute of an estimator: not everybody's end with an underscore."""
    if hasattr(part, "fit") and not isinstance(part, type):
        for value in list(getattr(part, "__dict__", {}).values()):
            yield from _leaves(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray) and value.dtype == object and value.size:
        items = value.ravel().tolist()  # a masked one, as searches have, breaks where one entry is asked for
        value = items if hasattr(items[0], "get_params") else value  # so keeps boosting its trees
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, partial):
        yield from _leaves([value.func, value.args, value.keywords])
    elif inspect.ismethod(value):
        yield from _leaves(value.__self__)
    elif isinstance(value, type):
        return
    elif hasattr(value, "predict") or hasattr(value, "transform") or hasattr(value, "get_params"):
        yield value
    elif hasattr(value, "predict_proba") and hasattr(value, "estimator"):  # so keeps CalibratedClassifierCV its models
        yield from _leaves(vars(value))
