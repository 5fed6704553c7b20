"""The replay test: what an observer sees of a fit follows from its releases, from public values, and nothing else.

A fit on D is recorded: every release with its mechanism, its true value and its output, and every charge of a ledger.
Then the same fit runs on a neighbour D' with a source of noise that hands out the outputs of D, whatever the true
values are. Everything that can be seen must come out byte for byte the same; where it does not, something has reached
the observer past the noise. See the guide, ``docs/guide/replay.md``.
"""

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from skfairdp import PrivacyLedger
from skfairdp.privacy import GaussianMechanism, GNMax, NoiseSource, NoisyThreshold, NoisyVotes, RandomizedResponse
from skfairdp.privacy import _noise as noise_module

from .observing import Seen, observed

__all__ = ["Recording", "Release", "Replay", "Tape", "distance", "recorded", "replay", "replayed"]

#: Rounding in sums that should agree, relative to the sensitivity.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Release:
    """One noisy value that left a fit."""

    mechanism: Any
    private: tuple[Any, ...]
    public: dict[str, Any]
    output: Any

    @property
    def declared(self) -> tuple[Any, ...]:
        """What is said about it: the mechanism with sensitivity, scale and relation, its event, public arguments."""
        said = (type(self.mechanism).__name__, repr(self.mechanism), repr(getattr(self.mechanism, "event", None)))
        return (*said, repr(self.public), _shape(self.output))


@dataclass
class Tape:
    """What left a fit, in order: releases, and charges among them."""

    releases: list[Release] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    sources: int = 0

    def charged(self, entry: dict[str, Any], dry_run: bool) -> None:
        self.order.append(f"{'would charge' if dry_run else 'charges'} {entry}")


class RecordingSource(NoiseSource):
    """Writes down every release.

    Secret draws that are no release (Poisson samples, folds) come from ``secrets``, apart from the noise, so that they
    are the same in two fits: call by call, and row by row where one has a row more.
    """

    def __init__(self, tape: Tape, secrets: int) -> None:
        super().__init__()
        self.tape = tape
        self._stream = (secrets, tape.sources)
        self._calls, self._releasing = {True: 0, False: 0}, False
        tape.sources += 1

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        output = self._noisy(mechanism, *private, **public)
        self._write(Release(mechanism, copy.deepcopy(private), copy.deepcopy(public), copy.deepcopy(output)))
        return output

    def _noisy(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        self._releasing = True
        try:
            return super().release(mechanism, *private, **public)
        finally:
            self._releasing = False

    def _write(self, release: Release) -> None:
        self.tape.releases.append(release)
        self.tape.order.append(f"releases {release.declared}")

    def _generator(self) -> np.random.Generator:
        self._calls[self._releasing] += 1
        return np.random.default_rng((*self._stream, int(self._releasing), self._calls[self._releasing]))

    def _words(self, n: int) -> Any:
        self._check(None)
        return self._generator().integers(0, 2**64, size=n, dtype=np.uint64)

    def _below(self, n: int) -> int:
        self._check(None)
        return int(self._generator().integers(n))


class ReplayingSource(RecordingSource):
    """Lets out what another fit let out, in the same order. The true values are noisy too: that may not fail either."""

    def __init__(self, tape: Tape, original: Tape, secrets: int) -> None:
        super().__init__(tape, secrets)
        self.original = original

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        own = self._noisy(mechanism, *private, **public)
        self._write(Release(mechanism, copy.deepcopy(private), copy.deepcopy(public), own))
        at = len(self.tape.releases) - 1
        if at >= len(self.original.releases):
            return own  # one release too many, which the comparison of the tapes will say
        return copy.deepcopy(self.original.releases[at].output)


class WatchedLedger(PrivacyLedger):
    """An ordinary ledger whose charges are on the tape, between the releases."""

    tape: Tape | None = None

    def charge(self, event: Any, **given: Any) -> None:
        if self.tape is not None:
            said = {name: str(given[name]) for name in sorted(given) if name != "dry_run"}
            self.tape.charged({"event": repr(event), **said}, bool(given.get("dry_run")))
        super().charge(event, **given)


@contextlib.contextmanager
def recorded(tape: Tape, *, secrets: int = 0) -> Iterator[Tape]:
    """Within it, every fit writes what it releases on the tape."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_module, "open_source", lambda seed=None: RecordingSource(tape, secrets))
        yield tape


@contextlib.contextmanager
def replayed(original: Tape, tape: Tape, *, secrets: int = 0) -> Iterator[Tape]:
    """Within it, every fit is handed the outputs of the original; what it would have released is on its own tape."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_module, "open_source", lambda seed=None: ReplayingSource(tape, original, secrets))
        yield tape


@dataclass
class Replay:
    """A fit on D and its replay on D'."""

    original: Seen
    neighbour: Seen
    tape: Tape
    other: Tape

    def differences(self, *, times: float | None = 1.0) -> list[str]:
        """In words, what an observer could tell D from D' by; empty where there is nothing.

        ``times`` is how many sensitivities apart true values may be; None leaves them uncompared.
        """
        told = self.original.differences(self.neighbour)
        told += _first_difference("order of charges and releases", self.tape.order, self.other.order)
        if times is not None:
            told += self.too_far(times)
        return told

    def too_far(self, times: float = 1.0) -> list[str]:
        """Releases whose true values are further apart than their mechanism declares."""
        told = []
        for i, (mine, theirs) in enumerate(zip(self.tape.releases, self.other.releases, strict=False)):
            moved, allowed = distance(mine, theirs)
            if not moved <= times * allowed * (1 + ROUNDING):
                told.append(
                    f"release {i} of {type(mine.mechanism).__name__}: true values are {moved:.9g} apart, where "
                    f"{times * allowed:.9g} is declared"
                )
        return told


class Recording:
    """A fit whose releases are on a tape, ready to be compared with fits on neighbours.

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
        self.tape = Tape()
        with recorded(self.tape):
            self.seen = self._observed(data, self.tape)

    def on(self, neighbour: Any, *, same_secrets: bool = True) -> Replay:
        """Fit on a neighbour with the outputs of the recorded fit.

        Parameters
        ----------
        neighbour : object
            A data set that the estimator's neighbouring relation calls a neighbour.
        same_secrets : bool, default=True
            Whether secret samples are drawn the same in both fits. Only then are true values comparable.
        """
        other = Tape()
        with replayed(self.tape, other, secrets=0 if same_secrets else 1):
            found = self._observed(neighbour, other)
        return Replay(self.seen, found, self.tape, other)

    def _observed(self, data: Any, tape: Tape) -> Seen:
        ledger = WatchedLedger()
        ledger.tape = tape
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
    a, b = (np.asarray(release.private[0]) for release in (mine, theirs))
    if isinstance(mechanism, RandomizedResponse):
        return float(np.count_nonzero(a != b)) if a.shape == b.shape else math.inf, 1.0
    if a.shape != b.shape:
        return math.inf, float(mechanism.sensitivity)
    moved = np.abs(a.astype(np.float64) - b.astype(np.float64))
    if isinstance(mechanism, NoisyVotes):  # each query is a release of its own; two classes let out one number
        rows = moved[:, 1:] if mechanism.n_classes == 2 else moved
        return float(np.linalg.norm(rows, axis=1).max(initial=0.0)), mechanism.sensitivity
    if isinstance(mechanism, NoisyThreshold):  # each bit is one
        return float(moved.max(initial=0.0)), mechanism.sensitivity
    if isinstance(mechanism, GaussianMechanism | GNMax):
        return float(np.linalg.norm(moved)), mechanism.sensitivity
    raise TypeError(f"Say here how far the true values of {type(mechanism).__name__} may be apart.")


def _shape(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


def _first_difference(what: str, mine: list[str], theirs: list[str]) -> list[str]:
    for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if a != b:
            return [f"{what}: number {i} is {a} on D, {b} on D'"]
    return [] if len(mine) == len(theirs) else [f"{what}: {len(mine)} on D, {len(theirs)} on D'"]
