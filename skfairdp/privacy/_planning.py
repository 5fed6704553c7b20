"""What a fit is going to cost: the fit itself, ended where it would put its event on record."""

from collections.abc import Callable, Sequence

from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._ledger import LedgerEntry

__all__ = ["planned_entry"]


class _PlanReady(BaseException):
    """Ends the fit. Not an Exception: nothing that fits on behalf of others may take it for a failure."""

    def __init__(self, entry: LedgerEntry) -> None:
        super().__init__("The plan is ready.")
        self.entry = entry


class _PlanningLedger:
    """Stands in for a ledger. The first charge comes before the first release, and goes no further than here."""

    def charge(
        self,
        event: DpEvent,
        *,
        label: str,
        protects: str,
        neighboring_relation: str,
        releases: Sequence[str] = (),
        dry_run: bool = False,
    ) -> LedgerEntry:
        raise _PlanReady(LedgerEntry(label, event, protects, neighboring_relation, tuple(releases)))

    def __sklearn_clone__(self) -> "_PlanningLedger":
        return self


def planned_entry(fit_with_ledger: Callable[[_PlanningLedger], object]) -> LedgerEntry | None:
    """The entry that a fit would put on record, or None where it puts none.

    Parameters
    ----------
    fit_with_ledger : callable
        Fits something with the ledger it is given. It is ended before anything is released.
    """
    try:
        fit_with_ledger(_PlanningLedger())
    except _PlanReady as ready:
        return ready.entry
    return None
