"""The guarantee of all that is private inside a pipeline, an ensemble, a search or a post-processor."""

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.privacy._events import compose, flatten, repeat
from skfairdp.privacy._ledger_chain import total_event
from skfairdp.privacy._report import NeighboringRelation, PrivacySpent, common_relation

__all__ = ["privacy_of"]

#: Of what has fitted on folds and kept nothing of those fits.
_FOLDS = ("cv_results_", "final_estimator_")
#: These see no private row, or only the names of the classes.
_PUBLIC = ("PublicPreprocessor", "SchemaEncoder", "LabelEncoder")


def privacy_of(estimator: Any) -> PrivacySpent:
    """What a fitted estimator guarantees, from everything inside it that states a guarantee.

    **What it covers.** The guarantees that are found are composed, each object once, as if all had read the same rows;
    where a ledger was given, all of its entries of that kind count instead (for the attribute those for records too),
    with them the fits on folds that a search or a stack has thrown away, and whatever else was charged to it.

    **What it cannot see** is said in a PrivacyLeakWarning and in ``public``: parts that learned from rows without a
    guarantee (a scaler, the last learner of a stack), and, without a ledger, fits on folds. The figure holds if what
    such parts read was public.

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
    >>> privacy_of(model.fit(split.X, split.y)).epsilon <= 1.0
    True
    """
    found = _Found()
    found.look_at(estimator, type(estimator).__name__)
    if not found.parts:
        raise ValueError(
            f"privacy_of found no guarantee in this {type(estimator).__name__}: nothing inside has a privacy_. Fit it "
            "first, with a private estimator in it."
        )
    total = found.total()
    unseen = list(dict.fromkeys([*found.unprotected, *found.folds]))
    if unseen:
        warnings.warn(
            f"privacy_of cannot see what these read: {'; '.join(unseen)}. The figure holds only if that is public. "
            "Give every private estimator a ledger, and use PublicPreprocessor or SchemaEncoder before them.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
    return PrivacySpent.of(
        total.event,
        total.delta,
        protects=total.protects,
        neighboring_relation=total.neighboring_relation,
        secret_noise=total.epsilon == total.mechanism_epsilon,
        public=dict.fromkeys((*total.public, *(f"what was read by {part}" for part in unseen))),
    )


class _Found:
    """What a walk through fitted attributes has met."""

    def __init__(self) -> None:
        self.parts: dict[int, tuple[PrivacySpent, Any]] = {}  # a report, and the ledger it was charged to
        self.unprotected: list[str] = []
        self.folds: list[str] = []
        self._seen: dict[int, Any] = {}  # kept, so that no number is given to another object

    def look_at(self, part: Any, name: str) -> bool:
        """Note a part and what is inside; whether it is, or holds, something that has been fitted."""
        if id(part) in self._seen or type(part).__name__ in _PUBLIC:
            return True
        self._seen[id(part)] = part
        spent = getattr(part, "privacy_", None)
        if isinstance(spent, PrivacySpent):
            self.parts[id(spent)] = spent, _ledger_of(part)
            return True
        before = len(self.parts)
        inside = [self.look_at(child, f"{name}.{where}") for where, child in _children(part)]
        new = list(self.parts.values())[before:]
        if any(hasattr(part, attribute) for attribute in _FOLDS) and any(ledger is None for _, ledger in new):
            self.folds.append(f"fits on folds of {name}")
        if not any(inside) and hasattr(part, "fit") and _fitted_attributes(part):
            self.unprotected.append(f"{name} ({type(part).__name__})")
        return True

    def total(self) -> PrivacySpent:
        """All guarantees composed; with a ledger everything that it holds of their kind, and what it lacks of them.

        Of the attribute whatever is on the ledger tells: all of it.
        """
        ledgers = {id(ledger): ledger for _, ledger in self.parts.values() if ledger is not None}
        alone = [spent.event for spent, ledger in self.parts.values() if ledger is None]
        charged = [spent.event for spent, ledger in self.parts.values() if ledger is not None]
        every = [spent for spent, _ in self.parts.values()]
        total = every[0]
        for spent in every[1:]:
            total = total + spent  # an error where they do not add up
        entries = [entry for ledger in ledgers.values() for entry in ledger.entries]
        of_kind = [entry for entry in entries if entry.protects == total.protects]
        relations = [*(s.neighboring_relation for s in every), *(e.neighboring_relation for e in of_kind)]
        relation = common_relation(map(NeighboringRelation, relations))
        if relation is None:
            raise ValueError(
                f"Guarantees under {len(set(relations))} neighboring relations are inside, or on the ledger, and do "
                "not add up. Report them separately."
            )
        # A ledger that was put in the place of another one does not take away what the fit itself reports.
        own = Counter(flatten(compose(*charged)))
        known = Counter(flatten(total_event(entries, total.protects))) | own
        # Of fits with a pure ε, δ = 0 is stated; what else is on the ledger has an ε at the δ of the ledger.
        delta = total.delta if total.delta or known == own else max(ledger.delta for ledger in ledgers.values())
        return PrivacySpent.of(
            compose(*alone, *(repeat(event, times) for event, times in known.items())),
            delta,
            protects=total.protects,
            neighboring_relation=relation,
            secret_noise=total.epsilon == total.mechanism_epsilon,
            public=total.public,
        )


def _ledger_of(part: Any) -> Any:
    parameters = part.get_params(deep=True) if hasattr(part, "get_params") else {}
    given = [value for name, value in parameters.items() if name.rsplit("__", 1)[-1] == "ledger"]
    return next((value for value in given if hasattr(value, "entries")), None)


def _fitted_attributes(part: Any) -> list[str]:
    state = getattr(part, "__dict__", {})
    return [name for name in state if name.endswith("_") and not name.startswith("_")]


def _children(part: Any) -> Iterator[tuple[str, Any]]:
    """Fitted estimators that an estimator holds, also in lists and dicts, by the names of the attributes."""
    state = getattr(part, "__dict__", {})
    names = [*_fitted_attributes(part), *(name for name in ("steps", "estimator", "calibrators") if name in state)]
    unfitted = "estimator" in state and any(name.startswith(("estimator", "best_", "calibrated")) for name in
                                            _fitted_attributes(part))  # fmt: skip
    for name in names:
        if not (unfitted and name == "estimator"):
            for child in _leaves(state[name]):
                yield name, child


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif (hasattr(value, "predict") or hasattr(value, "transform")) and not isinstance(value, type):
        yield value
