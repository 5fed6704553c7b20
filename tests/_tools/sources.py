"""The one place where tests listen to noise: a source that writes down every release, and noise that a test chooses.

Every noisy value of the package leaves through ``NoiseSource.release``, and every source is made by
``skfairdp.privacy._noise.open_source``. So one stand-in sees all of it, whichever file a release is written in::

    with recording_noise() as record:                    # the fit's own noise, written down
        PFLDClassifier(...).fit(X, y, sensitive_features=groups)
    for release in record.releases:
        release.mechanism, release.sensitivity, release.sigma, release.event
        release.value     # what noise is added to: the function whose sensitivity is declared
        release.output    # what was let out
        release.noise     # what was added to the value
    record.of(GaussianMechanism)                         # the releases of one kind of mechanism
    record.order                                         # releases and, with a WatchedLedger, charges between them

The noise itself can be chosen:

* ``recording_noise(0)``: none; ``recording_noise(1)``: every standard normal is one, which shows the scale.
* ``recording_noise(np.random.default_rng(3))``, or any function of a shape: draws of the test's own.
* ``recording_noise(..., scale=0.5)``: half of it (the mechanisms do not know).
* ``recording_noise(0, exact=True)``: sums of Gaussian mechanisms are not rounded, to compare floats.
* ``recording_noise(entropy=0)``: real noise and real secret draws, reproducible, and still secret to the fit.
* ``recording_noise(replay=record)``: the outputs of another record, one after the other, whatever the true values are.
* ``recording_noise(answer=lambda release: ...)``: what the test says is let out, instead of ``release.output``.

A mechanism or plan that is used by itself takes a source directly: ``mechanism.release(values, RecordingNoise(0))``, or
``ZeroNoise()`` and ``UnitNoise()``, which round nothing; ``source.record`` is its record. To choose secret draws
(Poisson samples), subclass ``ChosenNoise`` and override ``bernoulli`` or ``normal``; ``installed(source)`` hands it to
every fit inside.
"""

import contextlib
import copy
import functools
import itertools
import os
import random
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from skfairdp.privacy import (
    ExponentialMechanism,
    GaussianMechanism,
    GNMax,
    LaplaceCounts,
    NoiseSource,
    NoisyThreshold,
    NoisyVotes,
    _noise,
)

__all__ = [
    "ChosenNoise",
    "Record",
    "RecordingNoise",
    "Release",
    "UnitNoise",
    "ZeroNoise",
    "fixed_entropy",
    "installed",
    "moves",
    "recording_noise",
]


# ---- what is written down --------------------------------------------------------------------------------------
@dataclass
class Release:
    """One noisy value that left a fit.

    Attributes
    ----------
    mechanism : object
        As it was used: sensitivity, scale, relation and event are its.
    private, public : tuple, dict
        What it was given.
    output : object
        What it let out.
    drawn : list of ndarray
        The standard normals that the source supplied, where it could tell.
    """

    mechanism: Any
    private: tuple[Any, ...]
    public: dict[str, Any]
    output: Any = None
    drawn: list[np.ndarray] = field(default_factory=list)
    rest: np.ndarray | None = None  # what the rounding was left with, in steps of the grid
    _added: list[np.ndarray] = field(default_factory=list)

    @property
    def declared(self) -> tuple[Any, ...]:
        """What is said about it: the mechanism with sensitivity, scale and relation, its event, public arguments."""
        said = (type(self.mechanism).__name__, repr(self.mechanism), repr(getattr(self.mechanism, "event", None)))
        return (*said, repr(self.public), _shape(self.output))

    @property
    def sensitivity(self) -> float:
        return float(self.mechanism.sensitivity)

    @property
    def sigma(self) -> float:
        return float(self.mechanism.sigma)

    @property
    def event(self) -> Any:
        return self.mechanism.event

    @property
    def adds(self) -> Any:
        """The mechanism that adds the noise: votes leave through a Gaussian one."""
        one = self.mechanism
        if isinstance(one, NoisyVotes):
            return GaussianMechanism(one.sigma, one.noise, one.sensitivity, relation=one.relation)
        return one

    @property
    def value(self) -> np.ndarray:
        """What the noise is added to, one row per query: the function whose sensitivity is declared."""
        value = np.array(self.private[0], dtype=float)
        admissible = self.public.get("admissible")
        if admissible is not None:
            value = value[np.flatnonzero(admissible)]
        if self._first_follows:
            value = value[..., 1]
        if isinstance(self.mechanism, GNMax):
            return value.reshape(1, -1)
        return value.reshape(value.shape[0] if value.ndim else 1, -1)

    @property
    def _first_follows(self) -> bool:
        """Whether there are two counts, of which the second is released: the first follows from it."""
        votes = isinstance(self.mechanism, NoisyVotes) and self.mechanism.n_classes == 2
        return votes or (isinstance(self.mechanism, LaplaceCounts) and self.mechanism.n_kinds == 2)

    @property
    def noise(self) -> np.ndarray:
        """What was added to the value, in its shape."""
        if isinstance(self.adds, GaussianMechanism | LaplaceCounts):
            output = np.asarray(self.output, dtype=float)
            if self._first_follows:
                output = output[..., 1]
            return output.reshape(self.value.shape) - self.value
        assert len(self._added) == 1, f"{self.mechanism} added noise {len(self._added)} times"
        return self._added[0].reshape(self.value.shape)

    @property
    def scaled_draws(self) -> np.ndarray:
        """The scale times the standard normals that the source supplied: what the noise should have been."""
        assert len(self.drawn) == 1, f"{self.mechanism} drew noise {len(self.drawn)} times"
        return self.sigma * self.drawn[0].reshape(self.value.shape)


@dataclass
class Record:
    """What left a fit, in order: releases, and charges among them."""

    releases: list[Release] = field(default_factory=list)
    n_sources: int = 0
    n_secrets: int = 0  # draws that are no noise: samples, folds, choices; counted where the entropy is chosen
    _steps: list[Release | str] = field(default_factory=list)

    @property
    def order(self) -> list[str]:
        """Releases and charges, in words."""
        return [step if isinstance(step, str) else f"releases {step.declared}" for step in self._steps]

    def of(self, *kinds: type) -> list[Release]:
        """The releases of these mechanisms."""
        return [release for release in self.releases if isinstance(release.mechanism, kinds)]

    def write(self, release: Release) -> None:
        self.releases.append(release)
        self._steps.append(release)

    def charged(self, entry: dict[str, Any], dry_run: bool) -> None:
        self._steps.append(f"{'would charge' if dry_run else 'charges'} {entry}")


def _shape(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


# ---- sources ---------------------------------------------------------------------------------------------------
class RecordingNoise(NoiseSource):
    """A source that writes down every release.

    Parameters
    ----------
    noise : None, number, Generator or callable of a shape, default=None
        The standard normals. None: drawn as the package draws them.
    scale : float, default=1.0
        What all of them are multiplied by, behind the mechanisms' backs.
    exact : bool, default=False
        Whether a Gaussian mechanism returns ``value + sigma * normal`` without rounding it.
    seed : int or None, default=None
        As of ``NoiseSource``: voids the guarantee.
    entropy : int or None, default=None
        Real noise and secret draws from a stream of their own, each call by itself: the secret draws do not depend on
        how much is released, nor, row by row, on how many rows there are.
    replay : Record or None, default=None
        Its outputs are let out instead. The true values are made noisy too: that may not fail either.
    answer : callable of a Release, default=None
        Says what is let out; the record keeps what would have been.
    record : Record or None, default=None
        Where releases are written. None: into a new one.
    before_draws : callable, default=None
        Called before anything is drawn.
    """

    def __init__(
        self,
        noise: float | np.random.Generator | Callable[..., Any] | None = None,
        *,
        scale: float = 1.0,
        exact: bool = False,
        seed: int | None = None,
        entropy: int | None = None,
        replay: Record | None = None,
        answer: Callable[[Release], Any] | None = None,
        record: Record | None = None,
        before_draws: Callable[[], Any] = lambda: None,
    ) -> None:
        super().__init__(seed if entropy is None else None)
        self.record = Record() if record is None else record
        self._choice, self._scale, self._exact = noise, scale, exact
        self._entropy, self._replay, self._answer, self._before_draws = entropy, replay, answer, before_draws
        self._stream = (entropy, self.record.n_sources)
        self._calls = {True: 0, False: 0}
        self._current: list[Release] = []
        self.record.n_sources += 1

    @property
    def releases(self) -> list[Release]:
        return self.record.releases

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        release = Release(mechanism, copy.deepcopy(private), copy.deepcopy(public))
        self._announce(mechanism, *private)
        self._current.append(release)
        try:
            output = self._noisy(mechanism, *private, **public)
        finally:
            self._current.pop()
        release.output = copy.deepcopy(output)
        self.record.write(release)
        at = len(self.record.releases) - 1
        if self._replay is not None and at < len(self._replay.releases):
            return copy.deepcopy(self._replay.releases[at].output)
        if self._answer is not None:
            return self._answer(release)
        return output  # in a replay: one release too many, which the comparison of the records will say

    def _noisy(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        if self._exact and isinstance(mechanism, GaussianMechanism) and mechanism.noise == "gaussian":
            values = np.asarray(private[0], dtype=np.float64)
            return values + mechanism.sigma * np.asarray(self.normal(values.shape))
        if isinstance(mechanism, GNMax | NoisyThreshold):  # bits do not show the noise: hear what is drawn for them
            mechanism = _heard(mechanism, self._current[-1])
        return mechanism.noisy(self, *private, **public)

    # -------------------------------------------------------------- draws
    def normal(self, size: Any = 1) -> Any:
        self._check(None)
        return self._noted(self._scale * (super().normal(size) if self._choice is None else self._chosen(size)))

    def rounded_normal(self, centers: Any, scale: float) -> Any:
        if self._current:
            self._current[-1].rest = np.array(centers)
        if self._choice is None and self._scale <= 1 and type(self).normal is RecordingNoise.normal:
            return super().rounded_normal(centers, scale * self._scale)
        return np.rint(centers + scale * np.asarray(self.normal(np.shape(centers))))

    def discrete_gaussian(self, sigma: float, size: Any = 1) -> Any:
        if self._choice is None:
            drawn = super().discrete_gaussian(sigma, size)
            return drawn if self._scale == 1 else np.rint(self._scale * drawn).astype(np.int64)
        return np.rint(sigma * np.asarray(self.normal(size))).astype(np.int64)

    def floored_laplace(self, scale: int, size: Any = 1) -> Any:
        if self._choice is None:
            drawn = super().floored_laplace(scale, size)
            return drawn if self._scale == 1 else np.floor(self._scale * drawn).astype(np.int64)
        return np.floor(scale * np.asarray(self.normal(size))).astype(np.int64)

    def _chosen(self, size: Any) -> np.ndarray:
        if isinstance(self._choice, np.random.Generator):
            return self._choice.standard_normal(size)
        if callable(self._choice):
            return np.asarray(self._choice(size))
        return np.full(size, float(self._choice))  # type: ignore[arg-type]

    def _noted(self, drawn: np.ndarray) -> np.ndarray:
        if self._current:
            self._current[-1].drawn.append(np.array(drawn, dtype=float))
        return drawn

    # -------------------------------------------------------------- bits
    def _generator(self) -> np.random.Generator:
        releasing = bool(self._current)
        self._calls[releasing] += 1
        self.record.n_secrets += not releasing
        return np.random.default_rng((*self._stream, int(releasing), self._calls[releasing]))

    def _words(self, n: int) -> Any:
        self._before_draws()
        if self._entropy is None:
            return super()._words(n)
        self._check(None)
        return self._generator().integers(0, 2**64, size=n, dtype=np.uint64)

    def _below(self, n: int) -> int:
        self._before_draws()
        if self._entropy is None:
            return super()._below(n)
        self._check(None)
        return int(self._generator().integers(n))


class FixedAnswers(NoiseSource):
    """Notes what every release adds noise to; what is let out is one answer that no row had a part in.

    Later releases are then equal for neighbours, as adaptive composition asks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[Any, np.ndarray]] = []

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        self._announce(mechanism, *private)
        values = np.array(private[0], dtype=float)
        self.log.append((mechanism, values))
        if isinstance(mechanism, ExponentialMechanism):
            return len(self.log) % len(values)
        return 1e6 * np.random.default_rng(len(self.log)).random(values.shape)  # so large that every table is worth it


def moves(here: FixedAnswers, there: FixedAnswers) -> list[float]:
    """How far apart two neighbours' releases are, in declared sensitivities, which none of them may exceed."""
    found = []
    for (one, first), (two, second) in zip(here.log, there.log, strict=True):
        assert one == two, "noise or sensitivity depends on the rows"
        assert first.shape == second.shape, "how much is released depends on the rows"
        if isinstance(one, NoisyVotes):  # each query is a release of its own; of two counts one says all
            apart = first - second if one.n_classes > 2 else (first - second)[:, 1:]
            move = float(np.linalg.norm(apart, axis=1).max())
        elif isinstance(one, LaplaceCounts):
            apart = first - second if one.n_kinds > 2 else (first - second)[..., 1:]
            move = float(np.abs(apart).sum())
        elif isinstance(one, ExponentialMechanism):
            move = float(np.abs(first - second).max())
        else:
            move = float(np.linalg.norm(first - second))
        assert move <= one.sensitivity * (1 + 1e-9)
        found.append(move / one.sensitivity)
    return found


class ChosenNoise(RecordingNoise):
    """Rounds nothing and adds ``sigma * self.normal(shape)``: none, unless a subclass says otherwise."""

    def __init__(self, noise: Any = 0, **settings: Any) -> None:
        super().__init__(noise, exact=True, **settings)

    def joined(self, probability: float, n_rows: int) -> Any:
        return np.flatnonzero(self.bernoulli(probability, n_rows))  # a coin per row, for tests that choose the coins


class ZeroNoise(ChosenNoise):
    """No noise."""


class UnitNoise(ChosenNoise):
    """All ones, so that a release shows the scale of its noise."""

    def __init__(self) -> None:
        super().__init__(1)


def _heard(mechanism: Any, release: Release) -> Any:
    """The same mechanism, which tells what noise it adds."""
    heard = object.__new__(_heard_class(type(mechanism)))
    heard.__dict__.update(mechanism.__dict__, _release=release)
    return heard


@functools.cache
def _heard_class(kind: Any) -> Any:
    class Heard(kind):  # type: ignore[misc]
        def _draw(self, shape: Any, source: Any) -> Any:
            drawn = super()._draw(shape, source)
            self._release._added.append(np.array(drawn, dtype=float))
            return drawn

    Heard.__name__ = kind.__name__
    return Heard


# ---- where fits get theirs -------------------------------------------------------------------------------------
@contextlib.contextmanager
def recording_noise(
    noise: float | np.random.Generator | Callable[..., Any] | None = None,
    *,
    scale: float = 1.0,
    exact: bool = False,
    entropy: int | None = None,
    replay: Record | None = None,
    answer: Callable[[Release], Any] | None = None,
    record: Record | None = None,
    before_draws: Callable[[], Any] = lambda: None,
) -> Iterator[Record]:
    """Every fit inside gets its noise from a :class:`RecordingNoise` with these settings; all write into one record.

    A fit with a ``noise_seed`` keeps the noise of its seed, unless noise or entropy is chosen here.
    """
    heard = Record() if record is None else record

    def source(seed: int | None = None) -> NoiseSource:
        return RecordingNoise(
            noise,
            scale=scale,
            exact=exact,
            seed=seed,
            entropy=entropy,
            replay=replay,
            answer=answer,
            record=heard,
            before_draws=before_draws,
        )

    with _opening(source):
        yield heard


@contextlib.contextmanager
def installed(source: NoiseSource) -> Iterator[NoiseSource]:
    """Every fit inside gets its noise from this source."""
    with _opening(lambda seed=None: source):
        yield source


@contextlib.contextmanager
def _opening(make: Callable[..., NoiseSource]) -> Iterator[None]:
    """The one name of the package that tests replace: the function that makes sources."""
    names = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise, "open_source", make)
        # The names are public randomness, the same in both worlds.
        patch.setattr(secrets, "token_hex", lambda n_bytes=16: f"{next(names):0{2 * n_bytes}x}")
        yield


@contextlib.contextmanager
def fixed_entropy(seed: int) -> Iterator[None]:
    """An operating system whose entropy is a seeded stream: noise is secret to the package, and reproducible here."""
    stream = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", stream.randbytes)
        patch.setattr(secrets, "randbelow", stream.randrange)
        yield
