"""The replay test: what an observer sees of a fit follows from its releases, from public values, and nothing else.

A fit on D is recorded: every release with its mechanism, its true value and its output, and every charge of a ledger.
Then the same fit runs on a neighbour D' with a source of noise that hands out the outputs of D, whatever the true
values are. Everything that can be seen must come out byte for byte the same; where it does not, something has reached
the observer past the noise. See the guide, ``docs/guide/replay.md``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfairdp import PrivacyLedger
from skfairdp.privacy import (
    CommonValues,
    ExponentialMechanism,
    GaussianMechanism,
    GNMax,
    LaplaceCounts,
    NoisyThreshold,
    NoisyVotes,
    RandomizedResponse,
)
from tests._tools.observing import Seen, observed
from tests._tools.sources import Record, Release, recording_noise

__all__ = ["Recording", "Replay", "WatchedLedger", "distance", "replay"]

#: Rounding in sums that should agree, relative to the sensitivity.
ROUNDING = 1e-9


class WatchedLedger(PrivacyLedger):
    """An ordinary ledger whose charges are on record, between the releases."""

    record: Record | None = None

    def charge(self, event: Any, **given: Any) -> None:
        if self.record is not None:
            said = {name: str(given[name]) for name in sorted(given) if name != "dry_run"}
            self.record.charged({"event": repr(event), **said}, bool(given.get("dry_run")))
        super().charge(event, **given)


@dataclass
class Replay:
    """A fit on D and its replay on D'."""

    original: Seen
    neighbour: Seen
    record: Record
    other: Record

    def differences(self, *, times: float | None = 1.0) -> list[str]:
        """In words, what an observer could tell D from D' by; empty where there is nothing.

        ``times`` is how many sensitivities apart true values may be; None leaves them uncompared.
        """
        told = self.original.differences(self.neighbour)
        told += _first_difference("order of charges and releases", self.record.order, self.other.order)
        if times is not None:
            told += self.too_far(times)
        return told

    def too_far(self, times: float = 1.0) -> list[str]:
        """Releases whose true values are further apart than their mechanism declares."""
        told = []
        for i, (mine, theirs) in enumerate(zip(self.record.releases, self.other.releases, strict=False)):
            moved, allowed = distance(mine, theirs)
            if not moved <= times * allowed * (1 + ROUNDING):
                told.append(
                    f"release {i} of {type(mine.mechanism).__name__}: true values are {moved:.9g} apart, where "
                    f"{times * allowed:.9g} is declared"
                )
        return told


class Recording:
    """A fit whose releases are on record, ready to be compared with fits on neighbours.

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator; takes the keyword ``ledger`` (and may ignore it).
    fit : callable of (estimator, data)
        Returns what is looked at.
    data : object
        The data set.
    probe : callable of the fitted object, default=None
        Predictions or samples to look at as well.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        fit: Callable[[Any, Any], Any],
        data: Any,
        probe: Callable[[Any], Any] | None = None,
    ) -> None:
        self.make, self.fit, self.probe = make, fit, probe
        self.record = Record()
        with recording_noise(entropy=0, record=self.record):
            self.seen = self._observed(data, self.record)

    def on(self, neighbour: Any, *, same_secrets: bool = True) -> Replay:
        """Fit on a neighbour with the outputs of the recorded fit.

        Parameters
        ----------
        neighbour : object
            A data set that the estimator's neighbouring relation calls a neighbour.
        same_secrets : bool, default=True
            Whether secret samples are drawn the same in both fits. Only then are true values comparable.
        """
        other = Record()
        with recording_noise(entropy=0 if same_secrets else 1, replay=self.record, record=other):
            found = self._observed(neighbour, other)
        return Replay(self.seen, found, self.record, other)

    def _observed(self, data: Any, record: Record) -> Seen:
        ledger = WatchedLedger()
        ledger.record = record
        return observed(lambda: self.make(ledger=ledger), lambda estimator: self.fit(estimator, data), self.probe)


def replay(
    make: Callable[..., Any],
    fit: Callable[[Any, Any], Any],
    data: Any,
    neighbour: Any,
    probe: Callable[[Any], Any] | None = None,
) -> Replay:
    """Fit on ``data``, fit on ``neighbour`` with the outputs of the first, and look at both; see :class:`Recording`."""
    return Recording(make, fit, data, probe).on(neighbour)


def distance(mine: Release, theirs: Release) -> tuple[float, float]:
    """How far apart the true values of two releases are, and how far their mechanism says they can be."""
    mechanism = mine.mechanism
    if type(mechanism) is not type(theirs.mechanism):
        return math.inf, 0.0
    if isinstance(mechanism, CommonValues):
        one, other = mine.private[0], theirs.private[0]
        return math.hypot(*(one.get(v, 0) - other.get(v, 0) for v in {*one, *other})), mechanism.sensitivity
    a, b = (np.asarray(release.private[0]) for release in (mine, theirs))
    if isinstance(mechanism, RandomizedResponse):
        return float(np.count_nonzero(a != b)) if a.shape == b.shape else math.inf, 1.0
    if a.shape != b.shape:
        return math.inf, float(mechanism.sensitivity)
    moved = np.abs(a.astype(np.float64) - b.astype(np.float64))
    if isinstance(mechanism, NoisyVotes):  # each query is a release of its own; two classes let out one number
        rows = moved[:, 1:] if mechanism.n_classes == 2 else moved
        return float(np.linalg.norm(rows, axis=1).max(initial=0.0)), mechanism.sensitivity
    if isinstance(mechanism, LaplaceCounts):
        return float((moved[..., 1:] if mechanism.n_kinds == 2 else moved).sum()), mechanism.sensitivity
    if isinstance(mechanism, NoisyThreshold | ExponentialMechanism):  # each bit is one; each score moves by so much
        return float(moved.max(initial=0.0)), mechanism.sensitivity
    if isinstance(mechanism, GaussianMechanism | GNMax):
        return float(np.linalg.norm(moved)), mechanism.sensitivity
    raise TypeError(f"Say here how far the true values of {type(mechanism).__name__} may be apart.")


def _first_difference(what: str, mine: list[str], theirs: list[str]) -> list[str]:
    for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if a != b:
            return [f"{what}: number {i} is {a} on D, {b} on D'"]
    return [] if len(mine) == len(theirs) else [f"{what}: {len(mine)} on D, {len(theirs)} on D'"]
