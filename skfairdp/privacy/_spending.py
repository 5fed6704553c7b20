"""A budget being spent: refused before the work, charged by the first noise, reported at the end."""

import os
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Protocol

from skfairdp.privacy import _noise
from skfairdp.privacy._dp_accounting import DpEvent, NoOpDpEvent
from skfairdp.privacy._relations import NeighboringRelation
from skfairdp.privacy._report import PerformedRelease, PrivacySpent

__all__ = ["Spending"]

_MOST_KINDS = 64


class _Charges(Protocol):
    """What a ledger has to offer."""

    def charge(
        self,
        event: DpEvent,
        *,
        label: str,
        protects: str,
        neighboring_relation: str,
        releases: tuple[str, ...] = (),
        dry_run: bool = False,
    ) -> object: ...


class Spending:
    """The only thing that hands out noise, and the thing that charges for it.

    Entering asks the ledger whether the whole fit is affordable, before any work is done. The noise that comes out of
    it charges the ledger when it is first drawn, so no value can leave unpaid. Leaving without an error settles: a fit
    that drew nothing is on record all the same, and the report is handed over. An interrupted fit has charged if it
    drew.

    Parameters
    ----------
    event : DpEvent
        The cap of everything that will be released.
    delta : float
    relation : NeighboringRelation
        Of the guarantee. A mechanism made for other neighbours is refused.
    label : str
        Who spends, for the ledger.
    ledger : PrivacyLedger or None
    noise_seed : int or None
        For research and tests: the report then says ``epsilon=inf``.
    releases : iterable of str, default=()
        The kinds of release, in words, for the ledger.
    public : iterable of str, default=()
        What the guarantee takes as public knowledge.
    report_to : callable or None, default=None
        Called with the :class:`PrivacySpent` at the end.

    Raises
    ------
    BudgetExceededError
        On entering, where the ledger cannot afford the event.
    RuntimeError
        From the noise: outside the ``with`` block, in another process than the one that entered it, or for a mechanism
        made for another neighbouring relation.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianMechanism, NeighboringRelation, PrivacyLedger, Spending
    >>> ledger = PrivacyLedger(epsilon=1.0)
    >>> mean = GaussianMechanism(sigma=5.0, relation=NeighboringRelation.REPLACE_ONE)
    >>> spending = Spending(mean.event, 1e-5, NeighboringRelation.REPLACE_ONE, label="a mean", ledger=ledger)
    >>> with spending as noise:
    ...     before = len(ledger.entries)
    ...     _ = mean.release([3.0], noise)
    >>> before, len(ledger.entries), round(spending.report.epsilon, 3)
    (0, 1, 0.726)
    """

    def __init__(
        self,
        event: DpEvent,
        delta: float,
        relation: NeighboringRelation,
        *,
        label: str,
        ledger: _Charges | None = None,
        noise_seed: int | None = None,
        releases: Iterable[str] = (),
        public: Iterable[str] = (),
        report_to: Callable[[PrivacySpent], None] | None = None,
    ) -> None:
        self.event, self.delta, self.relation = event, delta, NeighboringRelation(relation)
        self.label, self.ledger, self.noise_seed = label, ledger, noise_seed
        self.releases, self.public, self.report_to = tuple(releases), tuple(public), report_to
        self._performed: dict[Any, int] = {}
        self._lock = threading.Lock()
        self._open = self._charged = False
        self._process = 0

    # ------------------------------------------------------------------ as a block

    def __enter__(self) -> _noise.NoiseSource:
        if self._process:
            raise RuntimeError("A Spending is entered once: what is released again costs again. Make another one.")
        self._charge(dry_run=True)
        self._open, self._process = True, os.getpid()
        return _noise.open_source(self.noise_seed).guarded_by(self._guard)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.settle()
                if self.report_to is not None:
                    self.report_to(self.report)
        finally:
            self._open = False

    def settle(self) -> None:
        """Charge, unless that has happened. A search calls it first: the noise of its fits is drawn elsewhere."""
        with self._lock:
            if not self._charged:
                self._charge(dry_run=False)
                self._charged = True

    @property
    def report(self) -> PrivacySpent:
        """What the whole costs: a cap, known before anything is released."""
        return PrivacySpent.of(
            self.event,
            self.delta,
            protects=self.relation.protects,
            neighboring_relation=self.relation,
            secret_noise=self.noise_seed is None,
            public=self.public,
            performed=_listed(self._performed),
        )

    # ------------------------------------------------------------------ at every draw

    def _guard(self, mechanism: Any) -> None:
        """Called by the source before a release (with its mechanism) and before a draw (with None)."""
        if not self._open:
            raise RuntimeError("This noise belongs to a fit that is over. Each release happens inside its Spending.")
        if os.getpid() != self._process:
            raise RuntimeError("Noise is drawn in the process that pays for it, not in a worker. Release there.")
        if mechanism is not None:
            if isinstance(self.event, NoOpDpEvent):
                raise RuntimeError(f"{type(mechanism).__name__} releases, but this fit certifies that nothing does.")
            relation = getattr(mechanism, "relation", None)
            if relation is not None and relation != self.relation:
                raise RuntimeError(
                    f"{type(mechanism).__name__} was made for '{relation}', but this fit certifies '{self.relation}'."
                )
        self.settle()
        if mechanism is not None:
            with self._lock:
                self._performed[mechanism] = self._performed.get(mechanism, 0) + 1

    def _charge(self, *, dry_run: bool) -> None:
        if self.ledger is not None and not isinstance(self.event, NoOpDpEvent):
            self.ledger.charge(
                self.event,
                label=self.label,
                protects=self.relation.protects,
                neighboring_relation=self.relation,
                releases=self.releases,
                dry_run=dry_run,
            )


def _listed(performed: dict[Any, int]) -> tuple[PerformedRelease, ...]:
    """One line for each scale of each mechanism; where scales change from step to step, one for the mechanism."""
    lines = [
        PerformedRelease(
            type(mechanism).__name__, getattr(mechanism, "sensitivity", None), getattr(mechanism, "sigma", None), times
        )
        for mechanism, times in performed.items()
    ]
    if len(lines) <= _MOST_KINDS:
        return tuple(lines)
    totals: dict[str, int] = {}
    for line in lines:
        totals[line.mechanism] = totals.get(line.mechanism, 0) + line.times
    return tuple(PerformedRelease(name, None, None, times) for name, times in totals.items())
