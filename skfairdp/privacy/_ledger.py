"""The record of everything that was spent on one data set: shared, written before the noise, and hard to fool."""

import atexit
import contextlib
import json
import math
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from skfairdp.exceptions import BudgetExceededError, LedgerError
from skfairdp.privacy._accountants import epsilon_of
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import compose, event_from_dict, event_to_dict
from skfairdp.privacy._gdp import _check_delta
from skfairdp.privacy._report import PROTECTS, PrivacySpent

__all__ = ["LedgerEntry", "PrivacyLedger"]

_FORMAT = "skfairdp-ledger-1"


@dataclass(frozen=True)
class LedgerEntry:
    """One fit.

    Parameters
    ----------
    label : str
        Who spent it, for example the estimator's class name.
    event : DpEvent
        Everything the fit may release: its cap.
    protects : {"record", "sensitive attribute"}
    neighboring_relation : str
    releases : tuple of str
        The kinds of release inside, in words.
    """

    label: str
    event: DpEvent
    protects: str
    neighboring_relation: str
    releases: tuple[str, ...] = ()


class PrivacyLedger:
    """Counts every fit on one data set, composes their ε, and refuses the fit that would exceed the budget.

    Pass one ledger to all estimators that see the same private rows. It is shared *by identity*: ``clone``,
    ``copy``, ``GridSearchCV`` and pipelines keep pointing to it, and worker processes share it through a locked file.
    An entry is on record before any noise is drawn, so an interrupted or killed fit leaves what it may have spent.

    Parameters
    ----------
    epsilon : float, default=inf
        Ceiling for the composed ε of all entries, at ``delta``. inf only counts.
    delta : float, default=1e-5
        Of the composed guarantee, in (0, 1).
    path : str or path-like, default=None
        File that holds the ledger. An existing one is continued (its budget must be the same). Without a path the
        ledger lives in memory and moves to a locked temporary file, deleted when this process ends, as soon as it is
        pickled. Guarantees against ``kill -9`` of this process, and across sessions, need a path.

    Attributes
    ----------
    entries : tuple of LedgerEntry
        One per fit, in order.
    epsilon_spent : float
        Composed ε of the entries at ``delta``; the larger one where records and sensitive attributes are both
        protected (their totals are kept apart, and each is held under the ceiling).

    Raises
    ------
    BudgetExceededError
        From ``charge``, before the release that would exceed the ceiling; nothing is written then.
    LedgerError
        The file is damaged, or belongs to another budget.

    Notes
    -----
    ``epsilon_spent`` composes the caps of all entries as one plan. Each fit's cap is fixed before it runs. Where the
    user chooses *later* budgets by looking at earlier results, the ceiling is a proven filter for Gaussian events
    (their squared costs add up); for others the composed figure is proven for the plan that was carried out, because
    the accountant and the Rényi order are picked for that plan.

    An unpickled ledger whose file no longer exists counts as exhausted, never as fresh.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, PrivacyLedger
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    >>> _ = ledger.charge(GaussianDpEvent(5.0), label="a mean", protects="record",
    ...                   neighboring_relation="replace one record")
    >>> len(ledger.entries), round(ledger.epsilon_spent, 3)
    (1, 0.726)
    >>> from copy import deepcopy
    >>> deepcopy(ledger) is ledger
    True
    """

    def __init__(
        self, epsilon: float = math.inf, delta: float = 1e-5, path: str | os.PathLike[str] | None = None
    ) -> None:
        if not (isinstance(epsilon, int | float) and epsilon > 0):
            raise ValueError(
                f"The 'epsilon' parameter of PrivacyLedger must be a float in the range (0.0, inf]. Got {epsilon!r}."
            )
        _check_delta(delta)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self._entries: list[LedgerEntry] = []
        self._offset = 0
        self._path: Path | None = None
        self._lost = False
        self._mutex = threading.RLock()
        if path is not None:
            self._attach(Path(path).absolute(), create=True)

    # ------------------------------------------------------------------ reading

    @property
    def path(self) -> Path | None:
        """The file behind the ledger, or None while it lives in memory."""
        return self._path

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        with self._locked():
            return tuple(self._entries)

    @property
    def epsilon_spent(self) -> float:
        with self._locked():
            if self._lost:
                return math.inf
            return max((self._total(kind) for kind in PROTECTS), default=0.0)

    def spent(self, protects: str = "record") -> PrivacySpent | None:
        """The composed guarantee for one kind of protection; None where nothing of the kind was spent."""
        if protects not in PROTECTS:
            raise ValueError(f"protects must be one of {PROTECTS}. Got {protects!r} instead.")
        with self._locked():
            of_kind = [entry for entry in self._entries if entry.protects == protects]
        if not of_kind:
            return None
        return PrivacySpent.of(
            compose(*(entry.event for entry in of_kind)),
            self.delta,
            protects=protects,
            neighboring_relation=of_kind[0].neighboring_relation,
        )

    def __repr__(self) -> str:
        where = "in memory" if self._path is None else f"at {self._path}"
        return f"PrivacyLedger(epsilon={self.epsilon:g}, delta={self.delta:g}; {len(self.entries)} entries, {where})"

    # ------------------------------------------------------------------ writing

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
        """Put a fit on record, before its first release.

        Parameters
        ----------
        event : DpEvent
            The cap of everything the fit may release.
        label : str
        protects : {"record", "sensitive attribute"}
        neighboring_relation : str
            All entries of one kind must agree on it: guarantees under different relations do not add up.
        releases : sequence of str
        dry_run : bool, default=False
            Only see whether the fit is affordable; nothing is written.

        Returns
        -------
        LedgerEntry

        Raises
        ------
        BudgetExceededError
            The composed ε would pass the ceiling, or the ledger's file is lost. Nothing is written.
        ValueError
            The neighbouring relation differs from the earlier entries', or no accountant composes the events.
        """
        entry = LedgerEntry(label, event, protects, neighboring_relation, tuple(releases))
        if protects not in PROTECTS:
            raise ValueError(f"protects must be one of {PROTECTS}. Got {protects!r} instead.")
        line = (json.dumps(_entry_to_dict(entry)) + "\n").encode()
        with self._locked():
            if self._lost:
                raise BudgetExceededError(
                    f"The ledger file {self._path} no longer exists, so what was spent is unknown and the budget "
                    "counts as exhausted. Restore the file, or open a new ledger for a new data set."
                )
            for earlier in self._entries:
                if earlier.protects == protects and earlier.neighboring_relation != neighboring_relation:
                    raise ValueError(
                        f"This ledger holds guarantees under '{earlier.neighboring_relation}'; one under "
                        f"'{neighboring_relation}' does not add up with them. Keep a separate PrivacyLedger for it."
                    )
            total = self._total(protects, event)
            if total > self.epsilon:
                raise BudgetExceededError(
                    f"{label} would bring the epsilon of this ledger from {self._total(protects):.4g} to {total:.4g}, "
                    f"over its ceiling of {self.epsilon:.4g} at delta={self.delta:g}. Nothing was released."
                )
            if not dry_run:
                if self._path is not None:
                    self._append(line)
                self._entries.append(entry)
        return entry

    def _total(self, protects: str, extra: DpEvent | None = None) -> float:
        events = [entry.event for entry in self._entries if entry.protects == protects]
        if extra is not None:
            events.append(extra)
        return epsilon_of(compose(*events), self.delta) if events else 0.0

    # ------------------------------------------------------------------ identity

    def __sklearn_clone__(self) -> "PrivacyLedger":
        return self

    def __copy__(self) -> "PrivacyLedger":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivacyLedger":
        return self

    def __reduce__(self) -> Any:
        with self._mutex:
            if self._path is None:
                self._promote()
            return _reopen, (str(self._path), self.epsilon, self.delta)

    def _promote(self) -> None:
        """Move an in-memory ledger to a temporary file, so that other processes count into the same one."""
        descriptor, name = tempfile.mkstemp(prefix="skfairdp-ledger-", suffix=".jsonl")
        os.close(descriptor)
        os.unlink(name)
        entries = self._entries
        self._entries = []
        self._attach(Path(name), create=True)
        with self._locked():
            for entry in entries:
                self._append((json.dumps(_entry_to_dict(entry)) + "\n").encode())
                self._entries.append(entry)
        atexit.register(_remove, name, os.getpid())

    # ------------------------------------------------------------------ file

    def _attach(self, path: Path, *, create: bool) -> None:
        self._path = path
        self._offset = 0
        with self._mutex, FileLock(f"{path}.lock"):
            if path.exists() and path.stat().st_size > 0:
                self._read()
            elif create:
                header = {"format": _FORMAT, "epsilon": _plain(self.epsilon), "delta": self.delta}
                self._append((json.dumps(header) + "\n").encode())
            else:
                self._lost = True
        _OPEN[str(path)] = self

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._mutex:
            if self._path is None or self._lost:
                yield
                return
            if not self._path.exists():
                self._lost = True
                yield
                return
            with FileLock(f"{self._path}.lock"):
                self._read()
                yield

    def _read(self) -> None:
        """Take in what other processes have written. A last line without its newline was never completed: its fit
        released nothing, because releases wait for the write to reach the disk."""
        assert self._path is not None
        with open(self._path, "rb") as file:
            file.seek(self._offset)
            block = file.read()
        complete = block[: block.rfind(b"\n") + 1]
        try:
            lines = [json.loads(line) for line in complete.splitlines()]
            if self._offset == 0:
                if not lines:
                    raise ValueError("no header")
                self._check_header(lines.pop(0))
            self._entries.extend(_entry_from_dict(line) for line in lines)
        except LedgerError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                f"The ledger file {self._path} is damaged ({error}); what was spent is unknown, so nothing more can be."
            ) from None
        self._offset += len(complete)

    def _check_header(self, header: dict[str, Any]) -> None:
        if header["format"] != _FORMAT:
            raise LedgerError(f"{self._path} is not a ledger of this version (format {header['format']!r}).")
        if (float(header["epsilon"]), header["delta"]) != (self.epsilon, self.delta):
            raise LedgerError(
                f"{self._path} is a ledger for epsilon={header['epsilon']}, delta={header['delta']}; it was opened "
                f"with epsilon={self.epsilon:g}, delta={self.delta:g}. Open it with its own budget."
            )

    def _append(self, line: bytes) -> None:
        assert self._path is not None
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, self._offset)  # drop an uncompleted last line
            os.lseek(descriptor, self._offset, os.SEEK_SET)
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
            os.fsync(descriptor)  # on disk before any noise is drawn
        finally:
            os.close(descriptor)
        self._offset += len(line)


_OPEN: "weakref.WeakValueDictionary[str, PrivacyLedger]" = weakref.WeakValueDictionary()


def _reopen(path: str, epsilon: float, delta: float) -> PrivacyLedger:
    """Unpickle: the same object in the same process, the same file in another, exhausted where that is gone."""
    ledger = _OPEN.get(path)
    if ledger is None:
        ledger = PrivacyLedger(epsilon, delta)
        ledger._attach(Path(path), create=False)
    return ledger


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not delete its parent's ledger
        for name in (path, f"{path}.lock"):
            with contextlib.suppress(OSError):
                os.unlink(name)


def _plain(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def _entry_to_dict(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "label": entry.label,
        "protects": entry.protects,
        "neighboring_relation": entry.neighboring_relation,
        "releases": list(entry.releases),
        "event": event_to_dict(entry.event),
    }


def _entry_from_dict(fields: dict[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        fields["label"],
        event_from_dict(fields["event"]),
        fields["protects"],
        fields["neighboring_relation"],
        tuple(fields["releases"]),
    )
