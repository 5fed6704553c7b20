"""The file behind a ledger: one lock per inode, written before the noise, made whole or not at all.

A charge writes its line, waits for the disk, and then raises the count in the header and waits again. A process that
dies in between leaves a whole line beyond the count, which counts, or a torn one, which the count proves was never
completed: its fit released nothing. Fewer lines than the count mean that the file was cut.
"""

import contextlib
import hashlib
import importlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from skfairdp.exceptions import LedgerError
from skfairdp.privacy._accountants import epsilon_of
from skfairdp.privacy._attribute_cost import counted_for
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import compose, event_from_dict, event_to_dict
from skfairdp.privacy._report import PROTECTS, NeighboringRelation, Protects, check_guarantee, common_relation

FORMAT = "skfairdp-ledger-2"
_FIRST_FORMAT = (
    "{path} was written by version 0.1.0, whose lines are not chained. Keep it for the record, open a new ledger at "
    "another path, and charge each line after the first to it: new.charge(event_from_dict(line['event']), "
    "label=line['label'], protects=line['protects'], neighboring_relation=line['neighboring_relation'])."
)
_DIGITS = 10  # of the count in the header, padded so that it can be replaced in place


@dataclass(frozen=True)
class LedgerEntry:
    """One fit. Whatever is not well-formed is refused here, whether it comes from a caller or from a file.

    Parameters
    ----------
    label : str
        Who spent it, for example the estimator's class name.
    event : DpEvent
        Everything the fit may release: its cap.
    protects : Protects or str
        ``"record"`` or ``"sensitive attribute"``.
    neighboring_relation : NeighboringRelation or str
        It implies what is protected, so the two must agree.
    releases : sequence of str
        The kinds of release inside, in words. Kept as a tuple.
    rows_of : str
        The column that says who a subject is, where subjects are protected and a column does.
    """

    label: str
    event: DpEvent
    protects: str
    neighboring_relation: str
    releases: Sequence[str] = ()
    rows_of: str = ""

    def __post_init__(self) -> None:
        for name in ("label", "rows_of"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a str. Got {getattr(self, name)!r} instead.")
        if isinstance(self.releases, str) or not all(isinstance(release, str) for release in self.releases):
            raise ValueError(f"releases must be a sequence of str. Got {self.releases!r} instead.")
        protects, relation = check_guarantee(self)
        if self.rows_of and not relation.of_subjects:
            raise ValueError(f"rows_of must be '' unless one subject is protected, and here it is one {protects}.")
        object.__setattr__(self, "releases", tuple(self.releases))

    @property
    def plain(self) -> dict[str, Any]:
        """What it says, as a line of the file and a statement hold it."""
        of = {"protects": str(self.protects), "neighboring_relation": str(self.neighboring_relation)}
        whose = {"rows_of": self.rows_of} if self.rows_of else {}
        event = event_to_dict(self.event)
        return {"label": self.label, **of, "releases": list(self.releases), "event": event, **whose}

    @classmethod
    def of_plain(cls, said: dict[str, Any]) -> "LedgerEntry":
        """Inverse of :attr:`plain`, of what else a line says as well."""
        named = {name: said[name] for name in ("label", "protects", "neighboring_relation", "releases")}
        return cls(event=event_from_dict(said["event"]), rows_of=said.get("rows_of", ""), **named)

    @property
    def kind(self) -> tuple[str, str]:
        """Entries that agree in it add up."""
        return self.neighboring_relation, self.rows_of


def total_event(entries: Iterable[LedgerEntry], protects: str) -> DpEvent:
    """What counts in the total of one kind of protection: the fits that promise it; of attributes every fit."""
    return compose(*(event for event, _ in _counted(entries, protects)))


def relation_of(entries: Iterable[LedgerEntry], protects: str) -> NeighboringRelation | None:
    """The relation that the total of one kind of protection holds under; None where its entries do not add up."""
    return common_relation(relation for _, relation in _counted(entries, protects))


def _counted(entries: Iterable[LedgerEntry], protects: str) -> Iterator[tuple[DpEvent, NeighboringRelation]]:
    """The fits in the total of a unit: of another unit than their own as that allows. Those whose promise is one for
    this unit, as a fit for subjects protects each of their rows; of attributes all."""
    for one in entries:
        if one.protects == protects:
            yield one.event, NeighboringRelation(one.neighboring_relation)
        elif protects == Protects.SENSITIVE_ATTRIBUTE or one.protects in Protects(protects).kept_by:
            yield counted_for(protects, one.event, one.neighboring_relation)


@dataclass(frozen=True)
class Chain:
    """What is on record. It never changes: a longer one takes its place in a single assignment, so that a thread, a
    fork or an interrupt meets all of a charge or nothing of it."""

    epsilon: float
    delta: float
    identity: str | None = ""  # drawn when the ledger is made; "" in files without one, None until a file is read
    entries: tuple[LedgerEntry, ...] = ()
    hashes: tuple[str, ...] = ()  # one more than entries: the first is that of the budget and the identity
    lines: bytes = b""

    @classmethod
    def empty(cls, epsilon: float, delta: float, identity: str | None = "") -> "Chain":
        first = hashlib.sha256(_budget(epsilon, delta, identity).encode()).hexdigest()
        return cls(epsilon, delta, identity, hashes=(first,))

    @property
    def totals(self) -> dict[Protects, float]:
        """The composed ε of each kind of protection that an entry promises."""
        promised = {entry.protects for entry in self.entries}
        return {kind: epsilon_of(total_event(self.entries, kind), self.delta) for kind in PROTECTS if kind in promised}

    @property
    def header(self) -> bytes:
        """First line of the file. It is as long for every number of entries, so it is replaced in place."""
        return self._header(len(self.entries), self.hashes[-1])

    def check_header(self, line: bytes) -> int:
        """Refuse a header of another budget, or one that was damaged; return its count of entries. Only the budget has
        to be that of this chain, not the count."""
        fields = json.loads(line)
        if _budget(fields["epsilon"], fields["delta"]) != _budget(_plain(self.epsilon), self.delta):
            raise OtherBudgetError(fields["epsilon"], fields["delta"])
        if self.identity and not is_identity(self.identity):
            raise ValueError("its id is none that a ledger draws")
        if fields.get("id", "") != self.identity:
            raise ValueError("it was replaced by another ledger after it was last read")
        count = fields["count"]
        if self._header(count, fields["head"]) != line + b"\n" or not 0 <= count < 10**_DIGITS:
            raise ValueError("the header is not as it was written")
        return int(count)

    def _header(self, count: int, head: str) -> bytes:
        mutable = f', "count": {count:{_DIGITS}d}, "head": "{head}"}}\n'
        return (_budget(self.epsilon, self.delta, self.identity)[:-1] + mutable).encode()

    def appended(self, *entries: LedgerEntry) -> "Chain":
        """A longer chain. An entry under a relation that does not add up with the earlier ones is refused."""
        hashes, lines = list(self.hashes), [self.lines]
        of_each_kind = {entry.kind: entry for entry in self.entries}
        for index, entry in enumerate(entries, len(self.entries) + 1):
            if of_each_kind and entry.kind not in of_each_kind:
                _check_adds_up(entry, list(of_each_kind.values()))
            of_each_kind[entry.kind] = entry
            content = json.dumps({"index": index, **entry.plain}, allow_nan=False)
            hashes.append(hashlib.sha256(f"{hashes[-1]}\n{content}".encode()).hexdigest())
            lines.append(f'{content[:-1]}, "hash": "{hashes[-1]}"}}\n'.encode())
        return replace(self, entries=(*self.entries, *entries), hashes=tuple(hashes), lines=b"".join(lines))

    def continued(self, lines: Iterable[bytes]) -> "Chain":
        """The chain with these lines of a file (without their newlines) added. The lines are written again from what
        they say, at the place they stand: the smallest difference, in an index, a hash, a value or a space, means that
        a line was changed, moved, doubled, or that one before it was cut."""
        lines = list(lines)
        longer = self.appended(*(LedgerEntry.of_plain(json.loads(line)) for line in lines))
        if longer.lines[len(self.lines) :] != b"".join(line + b"\n" for line in lines):
            raise ValueError("a line does not continue the chain of those before it")
        return longer

    def continues(self, count: int, head: str) -> bool:
        """Whether the first ``count`` entries are those that had this last hash."""
        return count < len(self.hashes) and self.hashes[count] == head


def _check_adds_up(entry: LedgerEntry, earlier: list[LedgerEntry]) -> None:
    """Refuse an entry by which a total would hold under no relation, or for two kinds of subjects at once."""
    for one in earlier:
        kinds = [kind for kind in PROTECTS if {one.protects, entry.protects} <= {*kind.kept_by}]
        if any(relation_of([one, entry], kind) is None for kind in kinds):
            raise ValueError(
                f"This ledger holds guarantees under '{one.neighboring_relation}'; one under "
                f"'{entry.neighboring_relation}' does not add up with them. Keep a separate PrivacyLedger for it."
            )
        of_subjects = all(NeighboringRelation(each.neighboring_relation).of_subjects for each in (one, entry))
        if one.protects == entry.protects and of_subjects and one.rows_of != entry.rows_of:  # that says who one is
            raise ValueError(
                f"This ledger holds guarantees for all rows of one {one.rows_of or 'subject'!r}; one for all rows of "
                f"one {entry.rows_of or 'subject'!r} does not add up with them. Name the same column, or keep a "
                "separate PrivacyLedger for it."
            )


def is_identity(value: Any) -> bool:
    """Whether a ledger may have drawn it: 32 hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


class OtherBudgetError(Exception):
    """The header names another ε or δ than the ledger was opened with."""


def _budget(epsilon: float | str, delta: float, identity: str | None = "") -> str:
    plain = epsilon if isinstance(epsilon, str) else _plain(epsilon)
    return json.dumps({"format": FORMAT, "epsilon": plain, "delta": delta, **({"id": identity} if identity else {})})


def _plain(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # not a POSIX system
    fcntl = None

_BINARY = getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # the path is resolved once: a link that appears there later is not ours


class LedgerFile:
    """Reads and extends the file of a ledger, under a lock of the inode, so that all names of one file share it:
    ``flock`` on the file itself. Systems without it (Windows) lock ``<path>.lock`` and refuse a file with several hard
    links. Between machines the lock is as good as that of their common file system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1  # not while the lock is held
        self._writing = False
        self._named_lock: FileLock | None = None

    @classmethod
    def named(cls, path: str | os.PathLike[str]) -> "LedgerFile":
        """The file that a user's path leads to."""
        return cls(Path(os.path.realpath(os.path.expanduser(path))))

    # ------------------------------------------------------------------ lock

    def lock(self, *, writing: bool) -> bool:
        """Open and lock the file; False where it does not exist. The caller keeps other threads out, and unlocks."""
        while True:
            try:
                if not stat.S_ISREG(os.stat(self.path).st_mode):
                    raise LedgerError(f"{self.path} is not a regular file. Give the path of a ledger, or a new one.")
                # Assigned before it is locked: a child forked by another thread finds it there, and closes its copy.
                self._descriptor = os.open(self.path, (os.O_RDWR if writing else os.O_RDONLY) | _BINARY | _NO_FOLLOW)
                if fcntl is not None:
                    fcntl.flock(self._descriptor, fcntl.LOCK_EX if writing else fcntl.LOCK_SH)
                else:
                    self._named_lock = FileLock(f"{self.path}.lock")
                    self._named_lock.acquire()
                here, there = os.fstat(self._descriptor), os.stat(self.path)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise self._failure("written" if writing else "read", error) from error
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
                break
            self.unlock()  # another file took its name while we waited
        if fcntl is None and here.st_nlink > 1:
            raise LedgerError(
                f"{self.path} has {here.st_nlink} hard links, and this system locks a file by its name: charges under "
                "another name could be lost. Remove the other names."
            )
        self._writing = writing
        return True

    def unlock(self) -> None:
        """Let go of what is held, if anything. Interrupted, it can be called again."""
        if self._descriptor >= 0:
            if fcntl is not None:
                # Said, not left to close: a forked child may hold a copy of the descriptor for a while.
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        if self._named_lock is not None:
            self._named_lock.release()
            self._named_lock = None

    def holds(self, *, writing: bool) -> bool:
        """Whether this object holds the file already, as for a signal handler that runs during a charge."""
        return self._descriptor >= 0 and (self._writing or not writing)

    def after_fork_in_child(self) -> None:
        """Give up what a thread of the parent holds, without unlocking it for the parent."""
        descriptor, self._descriptor = self._descriptor, -1
        self._named_lock = None
        if descriptor >= 0:
            os.close(descriptor)

    # ------------------------------------------------------------------ reading

    def read(self, known: Chain) -> Chain:
        """The chain in the file, which has to continue the one that is known. Call it under the lock."""
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            return self.parsed(b"".join(iter(lambda: os.read(self._descriptor, 1 << 20), b"")), known)
        except OtherBudgetError as error:
            epsilon, delta = error.args
            raise LedgerError(
                f"{self.path} is a ledger for epsilon={epsilon}, delta={delta}; it was opened with "
                f"epsilon={known.epsilon:g}, delta={known.delta:g}. Open it with its own budget."
            ) from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise LedgerError(
                f"The ledger file {self.path} is damaged ({error}); what was spent is unknown, so nothing more can be. "
                "Restore it from a copy that is complete, or start a new ledger for a new data set."
            ) from None
        except OSError as error:
            raise self._failure("read", error) from error

    def parsed(self, data: bytes, known: Chain) -> Chain:
        """The chain in these bytes, as ``read``; what is wrong with them is an error."""
        header, newline, body = data.partition(b"\n")
        if not data:
            raise ValueError("it is empty, which a ledger never is; to start one there, delete the file first")
        fields: Any = json.loads(header)
        if fields["format"] == "skfairdp-ledger-1":
            raise LedgerError(_FIRST_FORMAT.format(path=self.path))
        if fields["format"] != FORMAT:
            raise LedgerError(f"{self.path} is not a ledger of this version (format {fields['format']!r}).")
        if known.identity is None:
            known = Chain.empty(known.epsilon, known.delta, str(fields.get("id", "")))
        count = known.check_header(header)
        *lines, tail = body.split(b"\n")
        if not (body + b"\n" if tail else body).startswith(known.lines):
            raise ValueError("it was cut, edited, or replaced by another copy after it was last read")
        chain = known.continued(lines[len(known.entries) :])
        if tail and len(lines) >= len(known.entries):  # else it is the last known line
            # It counts where it is whole, and is ignored only where the header says that no charge ever completed it.
            try:
                chain = chain.continued([tail])
            except (ValueError, KeyError, TypeError):
                if count > len(chain.entries):
                    raise
        if len(chain.entries) < count:
            raise ValueError("it has fewer entries than were charged")
        if f'"head": "{chain.hashes[count]}"'.encode() not in header or not newline:
            raise ValueError("its header does not belong to its entries")
        return chain

    # ------------------------------------------------------------------ writing

    def append(self, line: bytes, before: Chain) -> None:
        """Add a line, with its newline, to the chain that was just read. It is on disk when this returns."""
        start = len(before.header) + len(before.lines)
        after = before.continued([line.removesuffix(b"\n")])
        try:
            try:
                size = os.fstat(self._descriptor).st_size
                if size > start:
                    os.ftruncate(self._descriptor, start)  # the torn line of an interrupted charge
                # Where the newline of the last line was lost, it is written again.
                _write_at(self._descriptor, min(size, start), b"\n" * (start - min(size, start)) + line)
                os.fsync(self._descriptor)
                _write_at(self._descriptor, 0, after.header)
                os.fsync(self._descriptor)  # on disk before any noise is drawn
            except OSError:
                with contextlib.suppress(OSError):
                    _write_at(self._descriptor, 0, before.header)
                    os.ftruncate(self._descriptor, start)
                    os.fsync(self._descriptor)
                raise
        except OSError as error:
            raise self._failure("written; nothing was released", error) from error

    def create(self, chain: Chain) -> bool:
        """Write a new file with this chain; False where there is one already. It appears whole, or not at all."""
        if self.path.exists():
            return False
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            try:
                _write_new(draft, chain.header + chain.lines)
                try:
                    os.link(draft, self.path)  # unlike a renaming, it never replaces what is there
                except FileExistsError:
                    return False
                except (OSError, NotImplementedError, AttributeError):  # a file system without hard links
                    _write_new(self.path, chain.header + chain.lines)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(draft)
            with contextlib.suppress(OSError):  # the new name lasts; a system that cannot is left alone
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._failure("created", error) from error
        return True

    def _failure(self, what: str, error: OSError) -> LedgerError:
        return LedgerError(
            f"The ledger file {self.path} could not be {what} ({error.strerror or error}). See that the folder exists, "
            "may be written to, and has room."
        )


def _write_at(descriptor: int, position: int, data: bytes) -> None:
    os.lseek(descriptor, position, os.SEEK_SET)
    while data:
        data = data[os.write(descriptor, data) :]


def _write_new(path: Path, data: bytes) -> None:
    """Create a file that only its owner can read, follow no link, and leave nothing behind on failure."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NO_FOLLOW, 0o600)
    try:
        try:
            _write_at(descriptor, 0, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
