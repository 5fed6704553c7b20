"""What a gate can hold of a constraint, its run over a call's rows, and a word where its decisions mean little."""

import contextlib
import json
import math
import os
import secrets
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock

from skfairdp._typing import Array, Bools, Ints
from skfairdp._utils import warn_caller
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import AnswerGate, FairnessGate, RateBound, RateGate, RateParity, read_rate_constraints, tally
from skfairdp.postprocessing._inputs import column_of, label_codes


def asked_of_labels(constraints: Any) -> tuple[RateParity | RateBound, ...]:
    """Return what is asked where any of it looks at true labels; nothing where answers alone decide."""
    if constraints is None:
        return ()
    asked = read_rate_constraints(constraints, "IDP3")
    return asked if any(one.rate != "selection_rate" for one in asked) else ()


def warn_of_noise(constraints: Any, min_count: int, amounts_within: float | None) -> None:
    """Say so where the gaps with which constraints, or γ of amounts, come into force are the noise of few rows.
    Two shares of M rows each differ by about 1/√(2M) in groups that are alike, where the share is a half."""
    bounds = [one.factor_and_slack[1] for one in asked_of_labels(constraints) if isinstance(one, RateParity)]
    rates, rows = ("rates", "labels") if amounts_within is None else ("shares of amounts", "answers")
    bounds += [] if amounts_within is None else [amounts_within]
    smallest = min((bound for bound in bounds if bound > 0), default=math.inf)
    needed = math.ceil(round(0.5 / smallest**2, 6))  # 0 where no difference is bounded
    if min_count < needed:
        warn_caller(
            f"IDP3 starts to compare {rates} at min_count={min_count} {rows} each. By chance alone they differ by "
            f"about {math.sqrt(0.5 / max(min_count, 1)):.3f} then, and the bound is {smallest:g}: from such a state "
            f"every further answer may be refused. Raise 'min_count' to {needed}, or the bound.",
            FairnessWarning,
        )


def admitted(gate: FairnessGate | AnswerGate, groups: Ints, labels: Ints) -> Bools:
    """Return which rows are answered; rows with label code ``n_classes`` are refusals already and are not counted."""
    cold = gate.n_groups * gate.min_count
    bounded = isinstance(gate, AnswerGate) or gate.gamma is not None
    if bounded and len(labels) < cold and not gate.counts.any():
        warn_caller(
            f"IDP3 got {len(labels)} row(s) and starts from zero counts: with {gate.n_groups} groups, up to {cold} "
            "rows are answered regardless of the gap. Pass more rows in one call, or keep the counts between calls "
            "with answer() or update().",
            FairnessWarning,
        )
    mask = labels < gate.n_classes
    mask[mask] = gate.run(groups[mask], labels[mask])
    if gate.is_stuck():
        warn_caller(
            "IDP3 refuses all further rows: after these, every answer would widen the gap. Raise "
            f"'min_count' or {'the bound' if isinstance(gate, AnswerGate) else repr('gamma')}, or let people decide "
            "and record their decisions with update().",
            FairnessWarning,
        )
    elif isinstance(gate, AnswerGate):
        for k in gate.starved().tolist():
            most = int(gate.counts[:, k].max())
            warn_caller(
                f"IDP3 can give the answer {gate.constraints.classes[k]!r} to no group any more: no group has more "
                f"than {most} of it, and one more would violate the ratio. Raise 'min_count', so that more such "
                "answers come before the ratio applies, or allow a small difference beside it: RateParity(..., "
                "difference_bound=0.02, ratio_bound=...).",
                FairnessWarning,
            )
    return mask


def admitted_by_rates(gate: RateGate, groups: Ints, labels: Ints) -> Bools:
    """Return which rows are answered where labels come later; refusals, of code ``n_classes``, are not counted."""
    if not gate.all_in_force():
        warn_caller(
            f"IDP3 does not enforce all of its constraints yet: fewer than min_count={gate.min_count} labels have "
            "arrived for some rate that they compare, so answers are given regardless of it. Pass labels to "
            "update_labels().",
            FairnessWarning,
        )
    if gate.is_stuck():
        waits = bool(gate.outstanding.any())
        what = (
            "pass labels that have arrived to update_labels(), and None for those that never will"
            if waits
            else "let people decide and record that with update() and update_labels(), allow a larger difference, or "
            "make the classifier fairer first, with FairnessCalibrator or PrivateThresholds of the same constraints"
        )
        why = "could break a constraint by the label that comes back" if waits else "would widen a gap or could"
        warn_caller(f"IDP3 refuses all rows: every further answer {why}. To go on, {what}.", FairnessWarning)
    mask = labels < gate.n_classes
    mask[mask] = gate.run(groups[mask], labels[mask])
    return mask


Counts = Ints


class LaterLabels:
    """Answers by group and label, answers without a label, and the tickets of the latter. Both counts are replaced
    together, never changed in place: readers in other threads see one moment; whoever writes holds the lock of IDP3."""

    def __init__(self, n_groups: int, n_classes: int) -> None:
        self.n_groups, self.n_classes = n_groups, n_classes
        self.counts: tuple[Counts, Counts] = (
            np.zeros((n_groups, n_classes, n_classes), dtype=np.int64),
            np.zeros((n_groups, n_classes), dtype=np.int64),
        )
        self._waiting: dict[Hashable, int] = {}

    def copy(self) -> "LaterLabels":
        """The same, counting on by itself."""
        found = LaterLabels(self.n_groups, self.n_classes)
        found.counts, found._waiting = self.counts, dict(self._waiting)
        return found

    def waiting(self) -> list[tuple[Any, int]]:
        """The tickets of outstanding labels, and the cell of each."""
        return list(self._waiting.items())

    def restore(self, labelled: Counts, waiting: list[tuple[Any, int]]) -> None:
        """Go on from what another process has counted."""
        self._waiting = dict(waiting)
        cells = np.fromiter(self._waiting.values(), dtype=np.int64, count=len(self._waiting))
        self.counts = labelled, tally(*np.divmod(cells, self.n_classes), (self.n_groups, self.n_classes))

    def answered(self, tickets: list[Any], groups: Counts, answers: Counts) -> None:
        """Remember answers; refusals, of code ``n_classes``, have no label to wait for."""
        given = answers < self.n_classes
        cells = (groups * self.n_classes + answers)[given].tolist()
        new = dict(zip((tickets[i] for i in np.flatnonzero(given)), cells, strict=True))
        if len(new) < len(cells):
            raise ValueError("The 'tickets' of IDP3 contain a value twice. Give each row a ticket of its own.")
        if any(ticket in self._waiting for ticket in new):
            raise ValueError(
                "The 'tickets' of IDP3 contain one of a row that was answered before and has no label yet. Give "
                "each row a ticket of its own, and record each answer once."
            )
        self._waiting.update(new)
        labelled, outstanding = self.counts
        self.counts = labelled, outstanding + tally(groups[given], answers[given], outstanding.shape)

    def labelled(self, tickets: list[Any], labels: Counts) -> None:
        """Take the labels of answered rows; of code -1 are those that will never come."""
        if len(set(tickets)) < len(tickets):
            raise ValueError("The 'tickets' of IDP3.update_labels name a row twice. Give every row one label.")
        unknown = [position for position, ticket in enumerate(tickets) if ticket not in self._waiting]
        if unknown:
            raise ValueError(
                f"The 'tickets' of IDP3.update_labels name a row, at position {unknown[0]}, that waits for no label: "
                "it was never given to update(), was refused there, or has its label already. Leave it out. Nothing "
                "has been counted."
            )
        cells = np.array([self._waiting.pop(ticket) for ticket in tickets], dtype=np.int64)
        groups, answers = np.divmod(cells, self.n_classes)
        labelled, outstanding = self.counts
        back, k = labels >= 0, self.n_classes
        flat = tally(groups[back], labels[back] * k + answers[back], (self.n_groups, k * k))
        gone = tally(groups, answers, outstanding.shape)
        self.counts = labelled + flat.reshape(labelled.shape), outstanding - gone


def tickets_of(tickets: Any, rows: int, method: str) -> list[Any]:
    """Return one hashable name per row, or raise a ValueError."""
    given = None if tickets is None or isinstance(tickets, str) or not isinstance(tickets, Iterable) else tickets
    names = [] if given is None else given.tolist() if hasattr(given, "tolist") else list(given)
    if given is None or len(names) != rows:
        raise ValueError(
            f"The 'tickets' of IDP3.{method} must be one name per row, such as the index of the table: constraints on "
            "true labels match each later label with its answer."
        )
    if not all(isinstance(name, Hashable) and name is not None and name == name for name in names):
        raise ValueError(
            f"The 'tickets' of IDP3.{method} must be names without missing values: numbers, strings or tuples."
        )
    return names


def label_or_none(y: Any, classes: Array) -> Counts:
    """Return each label's position in ``classes``, -1 where it is missing."""
    values = column_of(y, "y_true")
    known = ~np.asarray(pd.isna(values), dtype=bool)
    codes = np.full(len(values), -1, dtype=np.int64)
    if known.any():
        codes[known] = label_codes(values[known], classes, "y_true")
    return codes


_FORMAT = "skfairdp-answers-1"


class AnswerStore:
    """Counts in a file that is replaced whole, under the lock of ``<path>.lock``; only its owner can read it."""

    def __init__(self, path: str | os.PathLike[str], groups: list[Any], classes: list[Any]) -> None:
        self.path = os.path.realpath(path)
        self.about = json.loads(json.dumps({"format": _FORMAT, "groups": groups, "classes": classes}, default=str))
        self.shape = len(groups), len(classes)

    def locked(self) -> contextlib.AbstractContextManager[Any]:
        """Keep all other processes out."""
        return FileLock(f"{self.path}.lock")

    def read(self, with_labels: bool) -> tuple[Counts, Counts, LaterLabels | None] | None:
        """Answers, refusals and what is remembered of labels; None where there is no file yet."""
        try:
            with open(self.path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return None
        except ValueError:
            found = {}
        if {name: found.get(name) for name in self.about} != self.about or with_labels != ("waiting" in found):
            raise ValueError(
                f"The file {self.path} of IDP3's 'store' holds no answers to these groups, classes and constraints. "
                "Give each stream of answers a file of its own."
            )
        counts, refused = (np.array(found[name], dtype=np.int64) for name in ("answered", "refused"))
        later = LaterLabels(*self.shape) if with_labels else None
        if later is not None:
            labelled = np.array(found["labelled"], dtype=np.int64)
            later.restore(labelled, [(_ticket(name), cell) for name, cell in found["waiting"]])
        return counts, refused, later

    def write(self, answered: Counts, refused: Counts, later: LaterLabels | None) -> None:
        """Replace the file. It is on the disk when this returns."""
        content = {**self.about, "answered": answered.tolist(), "refused": refused.tolist()}
        if later is not None:
            content |= {"labelled": later.counts[0].tolist(), "waiting": later.waiting()}
            if any(not _is_plain(name) for name, _ in content["waiting"]):
                raise ValueError(
                    "The 'tickets' of IDP3 with a 'store' must be strings, whole numbers, or tuples of these."
                )
        draft = f"{self.path}.{secrets.token_hex(8)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise


def _is_plain(name: Any) -> bool:
    return all(map(_is_plain, name)) if isinstance(name, tuple) else type(name) in (str, int)


def _ticket(name: Any) -> Any:
    return tuple(map(_ticket, name)) if isinstance(name, list) else name
