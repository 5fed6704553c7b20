"""The record of everything that was spent on one data set: shared, written before the noise, and failing closed."""

import atexit
import contextlib
import math
import os
import secrets
import shutil
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skfairdp.exceptions import BudgetExceededError, LedgerError, PrivacyLeakWarning
from skfairdp.privacy._accountants import epsilon_of
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._gdp import _check_delta
from skfairdp.privacy._ledger_block import enter_block, leave_block
from skfairdp.privacy._ledger_file import Chain, LedgerEntry, LedgerFile, relation_of, total_event
from skfairdp.privacy._report import PROTECTS, UNNAMED, NeighboringRelation, PrivacySpent, Protects, rounded_up

if TYPE_CHECKING:
    import pandas as pd

_PATIENCE = 30.0  # seconds that a fork waits for a charge of another thread


class PrivacyLedger:
    """Tracks the privacy budget of all fits on one data set, and refuses any fit that would exceed it.

    Pass one ledger to all estimators that see the same private rows, or open it once around them:
    ``with PrivacyLedger(epsilon=1) as ledger:`` makes it the ledger of every estimator, search, ``Schema.release`` and
    own ``Spending`` inside that is given none. It is shared *by identity*: ``clone``,
    ``copy``, ``GridSearchCV`` and pipelines keep pointing to it, and other processes, forked or spawned, count into
    the same one through a locked file. An entry is on disk before any noise is drawn, so an interrupted or killed fit
    leaves what it may have spent. Whatever goes wrong with the file, the answer is a refusal and never a fresh budget.

    Parameters
    ----------
    epsilon : float, default=inf
        Ceiling for the composed ε of all entries, at ``delta``. inf only counts.
    delta : float, default=1e-5
        Of the composed guarantee, in (0, 1).
    path : str or path-like, default=None
        File that holds the ledger. An existing one is continued (its budget must be the same). Without a path the
        ledger lives in memory, and moves to a locked temporary file, deleted when this process ends, as soon as it is
        pickled or its process forks. Guarantees against ``kill -9`` of this process, and across sessions, need a path.

    Attributes
    ----------
    entries : tuple of LedgerEntry
        One per fit, in order.
    epsilon_spent : float
        Composed ε of the entries at ``delta``; where fits protect several kinds of units the largest of their totals
        (each is held under the ceiling).
    head : str
        Number and hash of the last entry, as ``"3:9f86d0…"``. Note it where the file cannot reach (in a paper, in a
        commit), and ``continues(head)`` tells later whether the file still contains what it contained then.
    id : str
        Drawn when the ledger was made, and kept in the first line of its file: statements name their ledger by it. All
        hashes follow it, so a ledger with the same entries is not taken for this one. Empty in files of earlier
        versions.

    Raises
    ------
    BudgetExceededError
        From ``charge``, before the release that would exceed the ceiling; nothing is written then.
    LedgerError
        The file is damaged, belongs to another budget, or cannot be read or written.

    Notes
    -----
    ``epsilon_spent`` composes the caps of all entries as one plan. Each fit's cap is fixed before it runs. Where the
    user chooses *later* budgets by looking at earlier results, the ceiling is a proven filter for Gaussian events
    (their squared costs add up); for others the composed figure is proven for the plan that was carried out, because
    the accountant and the Rényi order are picked for that plan.

    *Records and attributes.* Fits for records have seen the sensitive attribute too. From the first fit for attributes
    on there is a total for them, of *all* entries: what all fits together reveal about one record's attribute. Another
    attribute is another record, so an entry for "replace one record" counts as it is; one for a null record, or for a
    record added or removed, counts with the event of a record replaced (:func:`attribute_event`). The total for records
    is of the fits for records alone. Fits for attributes take features and labels as public, so no figure bounds what
    they reveal about those: keep to fits for records where whole records are what you protect.

    *Records and subjects.* A fit for all rows of one subject protects each of these rows as well, so it counts, as it
    is, in the total for records too; one for a subject whose rows give way to none counts twice as far there, since one
    row of several that is another is two such steps away (:func:`attribute_event`). The total for subjects is of the
    fits for subjects alone: a fit for records may reveal k times as much of a subject of k rows. Entries for subjects
    must name the same column, or none: then it is unknown whether they protect the same, and a warning says so.

    *What it notices.* Each line carries its number and a hash over itself and the line before; the header carries the
    number of entries. A line that was cut, edited, moved or doubled is refused by every process. A file that was
    rolled back to an older copy, deleted, or replaced is refused by every object that has read more of it, and by
    every pickle of the ledger, which remembers its head. A file that is gone counts as exhausted, never as fresh. A
    last line whose newline was lost counts; a torn one counts only where the header says that its charge was
    completed, and then the file is refused, because what was spent is unknown.

    *What it cannot notice.* The chain is no signature. Who can write the file can delete it and start a new one, or
    write another valid chain, and where no object, pickle or note of ``head`` remembers the old one it is not noticed.
    The ledger is the memory of an honest user, not a guard against its owner. Nor does it know which rows a fit has
    seen: another ledger, or none, counts nothing here.

    *The block.* Inside, a fit without ``ledger=`` counts as one with it does; a ledger that is given wins, and so does
    the inner one of two blocks. It holds for what this thread does, for joblib's workers (processes and threads), for
    forked processes, and for other threads that have no block of their own; spawned processes and the workers of dask
    need ``ledger=``. No estimator keeps it. Seeded noise, and audits, which no ledger may count, are refused inside.

    *Locks.* All names of one file share one lock (``flock`` on the file itself). Systems without ``flock`` lock
    ``<path>.lock`` and refuse a file that has several hard links. A process that was forked while its ledger in memory
    could not be moved to a file (a full disk) is refused, since it would count on a copy of its own.

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
    >>> from skfairdp import RandomizedResponseClassifier
    >>> with PrivacyLedger(epsilon=1.0) as ledger:
    ...     model = RandomizedResponseClassifier(epsilon=0.5, classes=[0, 1], groups=[0, 1], random_state=0)
    ...     model = model.fit([[0.0], [1.0]] * 500, [0, 1] * 500, sensitive_features=[0, 0, 1, 1] * 250)
    >>> [entry.label for entry in ledger.entries]
    ['RandomizedResponseClassifier']
    >>> note = ledger.head
    >>> ledger.continues(note)
    True
    """

    def __init__(
        self, epsilon: float = math.inf, delta: float = 1e-5, path: str | os.PathLike[str] | None = None
    ) -> None:
        if isinstance(epsilon, bool) or not (isinstance(epsilon, int | float | np.number) and epsilon > 0):
            raise ValueError(
                f"The 'epsilon' parameter of PrivacyLedger must be a float in the range (0.0, inf]. Got {epsilon!r}."
            )
        _check_delta(delta)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self._chain = Chain.empty(self.epsilon, self.delta, secrets.token_hex(16))
        self._remembered: set[tuple[int, str]] = set()  # heads that pickles have brought
        self._file: LedgerFile | None = None
        self._owner = os.getpid()
        self._mutex = threading.RLock()
        if path is not None:
            file = LedgerFile.named(path)
            if not file.create(self._chain):
                self._chain = Chain.empty(self.epsilon, self.delta, None)
            self._file = file
            with self._locked():
                pass  # an existing file that is damaged or of another budget is refused at once
            if self._chain.identity == "":
                warnings.warn(_WITHOUT_IDENTITY.format(path=file.path), PrivacyLeakWarning, stacklevel=2)
            _OPEN[str(file.path)] = self
        with _REGISTRY_LOCK:
            _LIVE.add(self)

    # ------------------------------------------------------------------ as a block

    def __enter__(self) -> "PrivacyLedger":
        enter_block(self)
        return self

    def __exit__(self, *error: object) -> None:
        leave_block(self)

    # ------------------------------------------------------------------ reading

    @property
    def path(self) -> Path | None:
        """The file behind the ledger, its links resolved, or None while it lives in memory."""
        return None if self._file is None else self._file.path

    @property
    def id(self) -> str:
        """Which ledger it is: drawn when it was made; empty where an earlier version made it."""
        with self._locked():
            return self._chain.identity or ""

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every entry, in the order of their charges."""
        with self._locked():
            return self._chain.entries

    @property
    def epsilon_spent(self) -> float:
        """The largest composed ε of all kinds of protection; inf where the file cannot be read."""
        with self._locked() as unknown:
            return math.inf if unknown else max(self._chain.totals.values(), default=0.0)

    @property
    def head(self) -> str:
        """The number of entries and the hash of the last one: note it to see later whether any was taken away."""
        with self._locked():
            return f"{len(self._chain.entries)}:{self._chain.hashes[-1]}"

    def continues(self, head: str) -> bool:
        """Whether the ledger still starts with the entries it had when ``head`` was noted.

        Parameters
        ----------
        head : str
            What the attribute ``head`` was at that time.

        Returns
        -------
        continues : bool
            False where an entry was changed or taken away since, or the file cannot be read.
        """
        count, _, digest = head.partition(":")
        if not (count.isdecimal() and digest):
            raise ValueError(f"head must be what the attribute 'head' of a ledger was. Got {head!r} instead.")
        with self._locked() as unknown:
            return not unknown and self._chain.continues(int(count), digest)

    def spent(self, protects: str = "record") -> PrivacySpent | None:
        """The composed guarantee for one kind of protection; None where no fit is for that kind.

        Parameters
        ----------
        protects : Protects or str, default="record"
            ``"record"``, ``"sensitive attribute"`` or ``"subject"``.

        Returns
        -------
        spent : PrivacySpent or None
            For records the report of all entries that protect records, those for subjects among them; where there are
            no others, the report is one for subjects. For the attribute that of all entries: they have seen it. For
            subjects that of the fits for subjects alone.
        """
        if protects not in PROTECTS:
            raise ValueError(f"protects must be one of {tuple(map(str, PROTECTS))}. Got {protects!r} instead.")
        unit, entries = Protects(protects), self._known().entries
        promised = [entry for entry in entries if entry.protects in unit.kept_by]
        if not promised:
            return None
        relation = relation_of(entries, protects)
        assert relation is not None, "a ledger holds guarantees that add up"
        event, rows_of = total_event(entries, protects), promised[0].rows_of if relation.of_subjects else ""
        of: dict[str, Any] = {"protects": relation.protects, "neighboring_relation": relation, "rows_of": rows_of}
        return PrivacySpent.of(event, self.delta, **of)

    def to_frame(self) -> "pd.DataFrame":
        """The entries as a table: one row each, with its ε alone and the composed ε up to it.

        Returns
        -------
        pandas.DataFrame
            Indexed by the number of the entry. Columns: ``label``, ``protects``, ``neighboring_relation``,
            ``releases``, ``epsilon`` (of the entry alone), ``epsilon_total`` (``epsilon_spent`` after it, which is held
            under the ceiling) and ``hash``. No times: the same charges give the same table, but for the hashes.

        Examples
        --------
        >>> from skfairdp.privacy import GaussianDpEvent, PrivacyLedger
        >>> ledger = PrivacyLedger()
        >>> for noise in (5.0, 8.0):
        ...     _ = ledger.charge(GaussianDpEvent(noise), label="a mean", protects="record",
        ...                       neighboring_relation="replace one record")
        >>> print(ledger.to_frame()[["label", "epsilon", "epsilon_total"]].round(3).to_string(index=False))
         label  epsilon  epsilon_total
        a mean    0.726          0.726
        a mean    0.434          0.869
        """
        import pandas as pd  # only here: accounting needs no tables

        return pd.DataFrame(_rows_of(self._known()), columns=list(_COLUMNS)).set_index("index")

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table of ``to_frame`` under the budget, as one page of HTML that needs no other file.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write the page; None only returns it.

        Returns
        -------
        page : str
            The page.
        """
        from skfairdp._utils import page, write_text  # only here: accounting needs no tables

        whole = page("Privacy ledger", _html_of(self._known(), self._where()))
        if path is not None:
            write_text(path, whole)
        return whole

    def _repr_html_(self) -> str:
        from skfairdp._utils import section  # only here: accounting needs no tables

        try:
            return section(_html_of(self._known(), self._where()))
        except LedgerError as error:
            return section(_html_of(Chain.empty(self.epsilon, self.delta), f"unreadable: {error}"))

    def __repr__(self) -> str:
        try:
            state = f"{len(self._known().entries)} entries, {self._where()}"
        except LedgerError as error:
            state = f"unreadable: {error}"
        return f"PrivacyLedger(epsilon={self.epsilon:g}, delta={self.delta:g}; {state})"

    def _known(self) -> Chain:
        with self._locked() as unknown:
            if unknown:
                raise LedgerError(unknown)
            return self._chain

    def _where(self) -> str:
        return "in memory" if self.path is None else f"at {self.path}"

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
        rows_of: str = "",
    ) -> LedgerEntry:
        """Put a fit on record, before its first release.

        Parameters
        ----------
        event : DpEvent
            The cap of everything the fit may release.
        label : str
            Who spends, for example the class of the estimator.
        protects : Protects or str
            ``"record"``, ``"sensitive attribute"`` or ``"subject"``.
        neighboring_relation : NeighboringRelation or str
            All entries of one kind must add up under one relation: "replace one record" implies "replace one record by
            a null record", and the total of both is a guarantee of the second; nothing else adds up.
        releases : sequence of str, default=()
            What is released, in words.
        dry_run : bool, default=False
            Only see whether the charge would be accepted; nothing is written. What it refuses is what a charge refuses.
        rows_of : str, default=""
            For subjects: the column that says who a subject is.

        Returns
        -------
        entry : LedgerEntry
            What was, or with ``dry_run`` would be, put on record.

        Raises
        ------
        BudgetExceededError
            A total would pass the ceiling, or what was spent is unknown. Nothing is written. Once there is an entry for
            attributes, entries for records count in both totals.
        LedgerError
            The file is damaged or cannot be written, or the call comes out of a signal handler that interrupted
            another call on this ledger. Nothing may be released.
        ValueError
            The event, the unit or the relation is not well-formed, the event holds a release whose cost is not proven
            for these neighbours (a Poisson-sampled one where a record is replaced), the relation differs from the
            earlier entries', or no accountant composes the events.

        Warns
        -----
        PrivacyLeakWarning
            The first entry of another kind: no total counts all fits of every kind. The second entry for subjects whose
            ids have no name: the total holds only where they are the same.
        """
        entry = LedgerEntry(label, event, protects, neighboring_relation, releases, rows_of)
        if self._inside_another_call:
            raise LedgerError(_INSIDE)
        with self._locked(writing=True) as unknown:
            if unknown:
                raise BudgetExceededError(unknown)
            longer = self._chain.appended(entry)
            for kind, total in longer.totals.items():
                if not total <= self.epsilon:
                    raise BudgetExceededError(self._too_much(label, kind, total, longer))
            if not dry_run:
                kinds = [one.protects for one in self._chain.entries]
                if kinds and entry.protects not in kinds:  # its totals leave some of them out
                    says = [text for kind, text in _UNCOUNTED.items() if kind in (entry.protects, kinds[-1])]
                    told = f"{label} protects a {entry.protects}, and the earlier fits on this ledger a {kinds[-1]}."
                    warnings.warn(f"{told} {' '.join(says)}", PrivacyLeakWarning, stacklevel=2)
                unnamed = NeighboringRelation(neighboring_relation).of_subjects and not rows_of
                if unnamed and kinds.count(entry.protects) == 1:
                    warnings.warn(UNNAMED, PrivacyLeakWarning, stacklevel=2)
                if self._file is None:
                    self._chain = longer
                else:
                    self._append(longer.lines[len(self._chain.lines) :])
                    self._chain = self._file.read(self._chain)  # what is on disk, not what was meant to be
        return entry

    @property
    def _inside_another_call(self) -> bool:
        """A signal handler, or a hook on warnings, may run in the middle of a call: the lock lets its own thread pass.
        What it charged would be lost to the call that goes on with what it had read before."""
        frame = sys._getframe(1).f_back  # of whoever called charge
        while frame is not None:
            if frame.f_code.co_filename == __file__ and frame.f_locals.get("self") is self:
                return True
            frame = frame.f_back
        return False

    def _append(self, line: bytes) -> None:
        assert self._file is not None
        self._file.append(line, self._chain)

    def _too_much(self, label: str, kind: Protects, total: float, longer: Chain) -> str:
        which = "" if len(longer.totals) == 1 else f" for {kind}s"
        if which and kind == Protects.SENSITIVE_ATTRIBUTE:
            which += ", which counts every fit,"
        before = self._chain.totals.get(kind, 0.0)
        return (
            f"{label} would bring the epsilon of this ledger{which} from {rounded_up(before)} to {rounded_up(total)}, "
            f"over its ceiling of {self.epsilon:g} at delta={self.delta:g}. Nothing was released."
        )

    @contextlib.contextmanager
    def _locked(self, *, writing: bool = False) -> Iterator[str | None]:
        """Keep others out, and take in what they have written. Yields why what was spent is unknown, or None."""
        with self._mutex:
            file = self._file
            if file is None:
                yield None if os.getpid() == self._owner else _FORKED
                return
            if file.holds(writing=writing):
                yield None
                return
            try:
                file.unlock()  # left over from an interrupt, if anything
                if not file.lock(writing=writing):
                    yield _missing(file.path)
                    return
                self._chain = self._verified(file.read(self._chain))
                yield None
            finally:
                try:
                    file.unlock()
                except BaseException:
                    file.unlock()  # an interrupt came between
                    raise

    def _verified(self, chain: Chain) -> Chain:
        """Refuse a file that does not hold what a pickle of this ledger has seen in it."""
        if not all(chain.continues(count, head) for count, head in self._remembered):
            raise LedgerError(
                f"The ledger file {self.path} does not hold entries that it held when this ledger was pickled: it was "
                "rolled back or replaced. What was spent is unknown, so nothing more can be. Restore the later file."
            )
        self._remembered.clear()  # from here on the chain itself is compared
        return chain

    # ------------------------------------------------------------------ identity

    def __sklearn_clone__(self) -> "PrivacyLedger":
        return self

    __copy__ = __sklearn_clone__

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivacyLedger":
        return self

    def __reduce__(self) -> Any:
        with self._mutex:
            if self._file is None:
                self._promote()
            with contextlib.suppress(LedgerError), self._locked():
                pass  # a pickle remembers the latest head; of a damaged file, the last good one
            chain = self._chain
            known = "" if chain.identity is None else chain.hashes[-1]
            return reopen, (str(self.path), self.epsilon, self.delta, len(chain.entries), known)

    def _promote(self) -> None:
        """Move an in-memory ledger to a temporary file, so that other processes count into the same one. The file is
        complete and on disk before it takes the place of what is in memory; if it cannot be written, nothing has
        changed. Its folder is new and belongs to this user alone: nobody else can plant a link there."""
        self._known()
        try:
            folder = os.path.realpath(tempfile.mkdtemp(prefix="skfairdp-ledger-"))
        except OSError as error:
            raise LedgerError(
                f"A ledger in memory could not be moved to a file for other processes ({error.strerror or error}). "
                "What was spent is still counted here. Give the ledger a path, or make room for temporary files."
            ) from error
        file = LedgerFile(Path(folder, "ledger.jsonl"))
        try:
            if not file.create(self._chain):
                raise LedgerError(f"{file.path} was there before this ledger made it; nothing was written to it.")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        atexit.register(_remove, folder, os.getpid())
        self._file = file
        _OPEN[str(file.path)] = self

    # ------------------------------------------------------------------ fork

    def _before_fork(self) -> None:
        """Go where the child will look for it. A child whose parent could not is refused by ``_locked``."""
        if self._file is None and self._owner == os.getpid() and self._mutex.acquire(timeout=_PATIENCE):
            try:
                if self._file is None:
                    with contextlib.suppress(LedgerError):
                        self._promote()
            finally:
                self._mutex.release()

    def _after_fork_in_child(self) -> None:
        """A thread that does not exist here may have held the locks. What it was about to add is read from the file."""
        self._mutex = threading.RLock()
        if self._file is not None:
            self._file.after_fork_in_child()


_OPEN: "weakref.WeakValueDictionary[str, PrivacyLedger]" = weakref.WeakValueDictionary()
_LIVE: "weakref.WeakSet[PrivacyLedger]" = weakref.WeakSet()
_REGISTRY_LOCK = threading.Lock()  # held through a fork, so that no other thread holds it in the child

_INSIDE = (
    "This ledger was in the middle of another call when a signal handler, or a hook on warnings, charged it in the "
    "same thread. Nothing was released. Fit outside of handlers."
)
_WITHOUT_IDENTITY = (
    "The ledger file {path} was made by an earlier version and has no id, so a copy with the same first entries "
    "cannot be distinguished from it. It keeps counting; open a new ledger for a new data set."
)
_FORKED = (
    "This ledger is in the memory of the process that was forked, and could not be moved to a file. What was spent "
    "there is unknown here, so the budget counts as exhausted. Give the ledger a path."
)


#: What the totals do not count, where a ledger holds entries of several kinds.
_UNCOUNTED = {
    Protects.SENSITIVE_ATTRIBUTE: (
        "The total for sensitive attributes counts all of them. The total for records covers the fits for records "
        "alone: fits for attributes take features and labels as public. Keep to one kind: records, if these are what "
        "you protect."
    ),
    Protects.SUBJECT: (
        "The total for subjects covers the fits for subjects alone: others may reveal more about a subject with "
        "several rows. To protect subjects, use fits for subjects only."
    ),
}


def _missing(path: Path) -> str:
    return (
        f"The ledger file {path} no longer exists, so what was spent is unknown and the budget counts as exhausted. "
        "Restore the file, or open a new ledger for a new data set."
    )


def _before_fork() -> None:
    _REGISTRY_LOCK.acquire()
    for ledger in list(_LIVE):
        ledger._before_fork()


def _after_fork_in_child() -> None:
    global _REGISTRY_LOCK
    _REGISTRY_LOCK = threading.Lock()
    for ledger in list(_LIVE):
        ledger._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    in_parent = {"after_in_parent": lambda: _REGISTRY_LOCK.release()}
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child, **in_parent)


def reopen(path: str, epsilon: float, delta: float, count: int = 0, head: str = "") -> PrivacyLedger:
    """Unpickle: the same object in the same process, the same file in another, exhausted where that is gone. Nothing is
    read here, so that a model can be loaded whatever became of the ledger it was fitted with."""
    ledger = _OPEN.get(path)
    if ledger is None:
        ledger = PrivacyLedger(epsilon, delta)
        ledger._file, ledger._chain = LedgerFile(Path(path)), Chain.empty(epsilon, delta, None)
        _OPEN[path] = ledger
    if head:
        ledger._remembered.add((count, head))
    return ledger


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not delete its parent's ledger
        shutil.rmtree(folder, ignore_errors=True)


# ---- a ledger to look at: a table of its entries for analysis, and the same on a page ------------------------------
_COLUMNS = ("index", "label", "protects", "neighboring_relation", "releases", "epsilon", "epsilon_total", "hash")


def _rows_of(chain: Chain) -> list[dict[str, Any]]:
    """One row per entry: who spent what, its ε alone, and the composed ε up to it, of the kind that costs more."""
    rows = []
    for index, entry in enumerate(chain.entries, 1):
        said = entry.label, str(entry.protects), str(entry.neighboring_relation), "; ".join(entry.releases)
        total = max(replace(chain, entries=chain.entries[:index]).totals.values())
        cells = index, *said, epsilon_of(entry.event, chain.delta), total, chain.hashes[index]
        rows.append(dict(zip(_COLUMNS, cells, strict=True)))
    return rows


def _html_of(chain: Chain, where: str) -> str:
    from skfairdp._utils import html_table  # only here: accounting needs no tables

    titles = ("", "who", "protects one", "neighbours", "releases", "ε alone", "ε so far", "hash")
    table = html_table(titles, (list(map(_cell, row.items())) for row in _rows_of(chain)), numbers=titles[5:7])
    total = max(chain.totals.values(), default=0.0)
    said = (
        f"The results of all entries together are differentially private with ε = {rounded_up(total)} at "
        f"δ = {chain.delta:g}, for one of those that each protects."
    )
    ceiling = f"Ceiling ε = {chain.epsilon:g}, δ = {chain.delta:g}; number of entries: {len(chain.entries)}; {where}"
    head = f'<p class="note">Head: {len(chain.entries)}:{chain.hashes[-1]}</p>'
    return f"<h2>Privacy ledger</h2><p>{said}</p><p>{escape(ceiling)}</p>{table}{head}"


def _cell(item: tuple[str, Any]) -> str:
    name, value = item
    return value[:12] if name == "hash" else rounded_up(value) if isinstance(value, float) else str(value)
