"""What a set of fits costs together, and how one of them is written down."""

import inspect
import math
from typing import Any

from sklearn.base import clone

from skfairdp.privacy import PrivacyLedger, PrivacySpent, compose

__all__ = ["Spending", "expression"]

# Not part of what a reader needs to make the model again.
_HOUSEKEEPING = frozenset({"ledger", "memory", "n_jobs", "verbose", "random_state"})


class Spending:
    """Counts what the fits of one call spend: by their ledgers, by ``privacy_`` where there is none."""

    def __init__(self) -> None:
        self._ledgers: dict[int, tuple[PrivacyLedger, int]] = {}
        self._fits: list[tuple[PrivacySpent, bool]] = []

    def prepare(self, estimator: Any, seed: int) -> Any:
        """Clone an estimator, seed its public randomness, and give it a counting ledger where it has none."""
        base = clone(estimator)
        params = base.get_params(deep=False)
        if "random_state" in params and params["random_state"] is None:
            base.set_params(random_state=seed)
        # Seeded noise and a ledger exclude each other: nothing private is left to count.
        if "ledger" in params and params["ledger"] is None and params.get("noise_seed") is None:
            base.set_params(ledger=PrivacyLedger(delta=params["delta"]))
        ledger = base.get_params(deep=False).get("ledger")
        if ledger is not None and id(ledger) not in self._ledgers:
            self._ledgers[id(ledger)] = (ledger, len(ledger.entries))
        return base

    def add(self, fitted_privacy: PrivacySpent, *, on_ledger: bool) -> None:
        """Note one finished fit."""
        self._fits.append((fitted_privacy, on_ledger))

    def guarantees(self, delta: float) -> list[dict[str, Any]]:
        """Compose what was spent, one total for each kind of guarantee: unlike ones are never added."""
        entries = [entry for ledger, before in self._ledgers.values() for entry in ledger.entries[before:]]
        records = []
        for protects, relation in dict.fromkeys((fit.protects, fit.neighboring_relation) for fit, _ in self._fits):
            mine = [
                (fit, kept)
                for fit, kept in self._fits
                if (fit.protects, fit.neighboring_relation) == (protects, relation)
            ]
            events = [e.event for e in entries if (e.protects, e.neighboring_relation) == (protects, relation)]
            kept_events = [fit.event for fit, kept in mine if kept]
            # A ledger knows more than the fits (a fit that failed has spent); it can never know less.
            events = events if len(events) >= len(kept_events) else kept_events
            total = PrivacySpent.of(
                compose(*events, *(fit.event for fit, kept in mine if not kept)),
                delta,
                protects=protects,
                neighboring_relation=relation,
                secret_noise=all(math.isfinite(fit.epsilon) for fit, _ in mine),
            )
            records.append(
                {
                    "protects": protects,
                    "neighboring_relation": relation,
                    "delta": delta,
                    "epsilon_total": total.epsilon,
                    "n_fits": len(mine),
                }
            )
        return records


def expression(estimator: Any) -> str:
    """The constructor call that makes the estimator, without what only concerns this machine."""
    values = estimator.get_params(deep=False)
    shown = {
        name: values[name]
        for name, parameter in inspect.signature(type(estimator)).parameters.items()
        if name not in _HOUSEKEEPING
        and (name in ("epsilon", "delta", "gamma") or repr(values[name]) != repr(parameter.default))
    }
    inside = ", ".join(f"{name}={' '.join(repr(value).split())}" for name, value in shown.items())
    return f"{type(estimator).__name__}({inside})"
