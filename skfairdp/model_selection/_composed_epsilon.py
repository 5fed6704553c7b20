"""What a set of fits costs together, and how one of them is written down."""

import inspect
import math
from typing import Any

from sklearn.base import clone

from skfairdp.model_selection._frame import guarantee_record
from skfairdp.privacy import (
    DpEvent,
    LedgerEntry,
    PrivacyLedger,
    PrivacySpent,
    Protects,
    attribute_event,
    compose,
    ledger_in_use,
)

# Not part of what a reader needs to make the model again.
_HOUSEKEEPING = frozenset({"ledger", "memory", "n_jobs", "verbose", "random_state"})
_ALWAYS = ("epsilon", "delta", "gamma")


class Totals:
    """Counts what the fits of one call spend: by their ledgers, by ``privacy_`` where those say nothing.

    Whatever was charged stays in the total. A fit that tried, failed and tried again has spent twice.
    """

    def __init__(self) -> None:
        self._ledgers: dict[int, tuple[PrivacyLedger, int]] = {}
        self._fits: list[tuple[PrivacySpent, tuple[LedgerEntry, ...] | None]] = []

    def prepare(self, estimator: Any, seed: int) -> Any:
        """Clone an estimator, seed its public randomness, and watch the ledger it was given."""
        base = clone(estimator)
        params = base.get_params(deep=False)
        if "random_state" in params and params["random_state"] is None:
            base.set_params(random_state=seed)
        ledger = ledger_in_use(params.get("ledger")) if "ledger" in params else None
        if ledger is not None and id(ledger) not in self._ledgers:
            self._ledgers[id(ledger)] = (ledger, len(ledger.entries))
        return base

    def add(self, spent: PrivacySpent, charged: tuple[LedgerEntry, ...] | None) -> None:
        """Note one finished fit: what it says it spent, and what it charged; None where a given ledger was charged."""
        self._fits.append((spent, charged))

    def guarantees(self, delta: float) -> list[dict[str, Any]]:
        """Compose what was spent, one total for each kind of guarantee: unlike ones are never added.

        What fits for records tell of the attribute is part of the total for attributes.
        """
        given = [entry for ledger, before in self._ledgers.values() for entry in ledger.entries[before:]]
        own = [entry for _, charged in self._fits for entry in charged or ()]
        kinds = dict.fromkeys([*(_kind(spent) for spent, _ in self._fits), *map(_kind, own), *map(_kind, given)])
        events = {kind: self._events(kind, given, own) for kind in kinds}
        return [self._guarantee(kind, delta, events) for kind in kinds]

    def _events(self, kind: tuple[str, str], given: list[LedgerEntry], own: list[LedgerEntry]) -> list[DpEvent]:
        fits = self._of(kind)
        on_ledger = [spent.own.event for spent, charged in fits if charged is None]
        charged_there = [entry.event for entry in given if _kind(entry) == kind]
        return [
            # A ledger knows more than the fits (a fit that failed has spent); it can never know less.
            *(charged_there if len(charged_there) >= len(on_ledger) else on_ledger),
            *(entry.event for entry in own if _kind(entry) == kind),
            *(spent.own.event for spent, charged in fits if charged == ()),  # it keeps no books
            *self._given(kind),
        ]

    def _given(self, kind: tuple[str, str]) -> list[DpEvent]:
        """What was paid for before and given to these fits, such as a schema: once each."""
        held = {part.release or id(part): part for spent, _ in self._of(kind) for part in spent.parts[1:]}
        if kind[0] == Protects.SENSITIVE_ATTRIBUTE:
            return [attribute_event(part.event, part.neighboring_relation) for part in held.values()]
        return [part.event for part in held.values()]

    def _guarantee(
        self, kind: tuple[str, str], delta: float, events: dict[tuple[str, str], list[DpEvent]]
    ) -> dict[str, Any]:
        counted, secret = events[kind], self._of(kind)
        if kind[0] == Protects.SENSITIVE_ATTRIBUTE:  # which fits for records have seen too
            counted = [attribute_event(event, other[1]) for other, spent in events.items() for event in spent]
            secret = self._fits
        total = PrivacySpent.of(
            compose(*counted),
            delta,
            protects=kind[0],
            neighboring_relation=kind[1],
            secret_noise=all(math.isfinite(spent.epsilon) for spent, _ in secret),
        )
        return guarantee_record(*kind, delta, total.epsilon, len(self._of(kind)))

    def _of(self, kind: tuple[str, str]) -> list[tuple[PrivacySpent, tuple[LedgerEntry, ...] | None]]:
        return [(spent, charged) for spent, charged in self._fits if _kind(spent) == kind]


def counting_ledger(estimator: Any) -> PrivacyLedger | None:
    """Give an estimator without a ledger one that counts, where the fit is made; None where it has one, or none helps.

    Seeded noise and a ledger exclude each other: nothing private is left to count.
    """
    params = estimator.get_params(deep=False)
    if "ledger" not in params or ledger_in_use(params["ledger"]) is not None or params.get("noise_seed") is not None:
        return None
    ledger = PrivacyLedger(delta=params["delta"])
    estimator.set_params(ledger=ledger)
    return ledger


def _kind(spent: PrivacySpent | LedgerEntry) -> tuple[str, str]:
    return spent.protects, spent.neighboring_relation


def expression(estimator: Any) -> str:
    """The constructor call that makes the estimator, without what only concerns this machine."""
    values = estimator.get_params(deep=False)
    shown = {
        name: values[name]
        for name, parameter in inspect.signature(type(estimator)).parameters.items()
        if name not in _HOUSEKEEPING
        and ((name in _ALWAYS and values[name] is not None) or repr(values[name]) != repr(parameter.default))
    }
    inside = ", ".join(f"{name}={' '.join(repr(value).split())}" for name, value in shown.items())
    return f"{type(estimator).__name__}({inside})"
