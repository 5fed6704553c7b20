"""Entries of a ledger as lines of text, chained so that no line can be cut, changed, moved or doubled unnoticed.

A file of the format ``skfairdp-ledger-2`` starts with a header of fixed length, which names the budget, the number of
entries and the hash of the last one. One line per entry follows. The hash in a line covers the line and the hash before
it, and the first hash covers the budget. The chain is no signature: whoever can write the file can write another valid
chain. It shows damage, and it shows every object that remembers a hash whether the file still continues from there.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from skfairdp.privacy._accountants import epsilon_of
from skfairdp.privacy._attribute_cost import counted_for
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import check_event, compose, event_from_dict, event_to_dict
from skfairdp.privacy._report import PROTECTS, NeighboringRelation, Protects, common_relation, unit_and_relation

FORMAT = "skfairdp-ledger-2"
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
        protects, relation = unit_and_relation(self.protects, self.neighboring_relation)
        check_event(self.event, relation)
        if self.rows_of and protects != Protects.SUBJECT:
            raise ValueError(f"rows_of says who a subject is, and what is protected is one {protects}.")
        object.__setattr__(self, "protects", protects)
        object.__setattr__(self, "neighboring_relation", relation)
        object.__setattr__(self, "releases", tuple(self.releases))

    @property
    def kind(self) -> tuple[str, str]:
        """Entries that agree in it add up."""
        return self.neighboring_relation, self.rows_of


def promised(entries: Iterable[LedgerEntry], protects: str) -> list[LedgerEntry]:
    """The entries whose promise is one for this unit: a fit for subjects protects each of their rows as well."""
    return [entry for entry in entries if entry.protects in Protects(protects).kept_by]


def total_event(entries: Iterable[LedgerEntry], protects: str) -> DpEvent:
    """What counts in the total of one kind of protection: the fits that promise it; of attributes every fit."""
    kinds = PROTECTS if protects == Protects.SENSITIVE_ATTRIBUTE else Protects(protects).kept_by
    kept = [one for one in entries if one.protects in kinds]
    return compose(*[one.event if one.protects == protects else _counted(one, protects)[0] for one in kept])


def relation_of(entries: Iterable[LedgerEntry], protects: str) -> NeighboringRelation | None:
    """The relation that the total of one kind of protection holds under; None where its entries do not add up."""
    return common_relation(
        NeighboringRelation(one.neighboring_relation) if one.protects == protects else _counted(one, protects)[1]
        for one in promised(entries, protects)
    )


def _counted(entry: LedgerEntry, protects: str) -> tuple[DpEvent, NeighboringRelation]:
    """A fit in the total of another unit than its own."""
    return counted_for(protects, entry.event, entry.neighboring_relation)


@dataclass(frozen=True)
class Chain:
    """What is on record. It never changes: a longer one takes its place in a single assignment, so that a thread, a
    fork or an interrupt meets all of a charge or nothing of it."""

    epsilon: float
    delta: float
    entries: tuple[LedgerEntry, ...] = ()
    hashes: tuple[str, ...] = ()  # one more than entries: the first is that of the budget
    lines: bytes = b""

    @classmethod
    def empty(cls, epsilon: float, delta: float) -> "Chain":
        return cls(epsilon, delta, hashes=(hashlib.sha256(_budget(epsilon, delta).encode()).hexdigest(),))

    @property
    def totals(self) -> dict[Protects, float]:
        """The composed ε of each kind of protection that an entry promises."""
        promised = {entry.protects for entry in self.entries}
        return {kind: epsilon_of(total_event(self.entries, kind), self.delta) for kind in PROTECTS if kind in promised}

    @property
    def header(self) -> bytes:
        """First line of the file. It is as long for every number of entries, so it is replaced in place."""
        mutable = f', "count": {len(self.entries):{_DIGITS}d}, "head": "{self.hashes[-1]}"}}\n'
        return (_budget(self.epsilon, self.delta)[:-1] + mutable).encode()

    def check_header(self, line: bytes) -> int:
        """Refuse a header of another budget, or one that was damaged; return its count of entries.

        Only the budget has to be that of this chain, not the count.
        """
        fields = json.loads(line)
        budget = _budget(fields["epsilon"], fields["delta"])
        if budget != _budget(_plain(self.epsilon), self.delta):
            raise OtherBudgetError(fields["epsilon"], fields["delta"])
        count, head = fields["count"], fields["head"]
        rebuilt = budget[:-1] + f', "count": {count:{_DIGITS}d}, "head": "{head}"}}\n'
        if rebuilt.encode() != line + b"\n" or not 0 <= count < 10**_DIGITS:
            raise ValueError("the header is not as it was written")
        return int(count)

    def appended(self, *entries: LedgerEntry) -> "Chain":
        """A longer chain. An entry under a relation that does not add up with the earlier ones is refused."""
        hashes, lines = list(self.hashes), [self.lines]
        of_each_kind = {entry.kind: entry for entry in self.entries}
        for index, entry in enumerate(entries, len(self.entries) + 1):
            if of_each_kind and entry.kind not in of_each_kind:
                _check_adds_up(entry, list(of_each_kind.values()))
            of_each_kind[entry.kind] = entry
            said = {
                "index": index,
                "label": entry.label,
                "protects": str(entry.protects),
                "neighboring_relation": str(entry.neighboring_relation),
                "releases": list(entry.releases),
                "event": event_to_dict(entry.event),
                **({"rows_of": entry.rows_of} if entry.rows_of else {}),
            }
            content = json.dumps(said, allow_nan=False)
            hashes.append(hashlib.sha256(f"{hashes[-1]}\n{content}".encode()).hexdigest())
            lines.append(f'{content[:-1]}, "hash": "{hashes[-1]}"}}\n'.encode())
        return Chain(self.epsilon, self.delta, (*self.entries, *entries), tuple(hashes), b"".join(lines))

    def continued(self, lines: Iterable[bytes]) -> "Chain":
        """The chain with these lines of a file (without their newlines) added.

        The lines are written again from what they say, at the place they stand: the smallest difference, in an index,
        a hash, a value or a space, means that a line was changed, moved, doubled, or that one before it was cut.
        """
        lines = list(lines)
        longer = self.appended(*(_entry_from_dict(json.loads(line)) for line in lines))
        if longer.lines[len(self.lines) :] != b"".join(line + b"\n" for line in lines):
            raise ValueError("a line does not continue the chain of those before it")
        return longer

    def continues(self, count: int, head: str) -> bool:
        """Whether the first ``count`` entries are those that had this last hash."""
        return count < len(self.hashes) and self.hashes[count] == head


def _check_adds_up(entry: LedgerEntry, earlier: list[LedgerEntry]) -> None:
    """Refuse an entry by which a total would hold under no relation, or for two kinds of subjects at once."""
    for one in earlier:
        kinds = [kind for kind in PROTECTS if len(promised([one, entry], kind)) == 2]
        if any(relation_of([one, entry], kind) is None for kind in kinds):
            raise ValueError(
                f"This ledger holds guarantees under '{one.neighboring_relation}'; one under "
                f"'{entry.neighboring_relation}' does not add up with them. Keep a separate PrivacyLedger for it."
            )
        if Protects.SUBJECT in kinds and one.rows_of != entry.rows_of:  # who is a subject is said by another column
            raise ValueError(
                f"This ledger holds guarantees for all rows of one {one.rows_of or 'subject'!r}; one for all rows of "
                f"one {entry.rows_of or 'subject'!r} does not add up with them. Name the same column, or keep a "
                "separate PrivacyLedger for it."
            )


class OtherBudgetError(Exception):
    """The header names another ε or δ than the ledger was opened with."""


def _budget(epsilon: float | str, delta: float) -> str:
    return json.dumps(
        {"format": FORMAT, "epsilon": epsilon if isinstance(epsilon, str) else _plain(epsilon), "delta": delta}
    )


def _plain(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def _entry_from_dict(fields: dict[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        fields["label"],
        event_from_dict(fields["event"]),
        fields["protects"],
        fields["neighboring_relation"],
        tuple(fields["releases"]),
        fields.get("rows_of", ""),
    )
