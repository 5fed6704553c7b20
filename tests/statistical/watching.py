"""Watching the releases of a fit: which mechanism, what value its noise was added to, what came out."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skfairdp import FairPATEClassifier, PATEClassifier
from skfairdp.pate._learning import Lessons
from skfairdp.privacy import GaussianMechanism, GNMax, NoiseSource, NoisyThreshold, NoisyVotes, _noise
from skfairdp.privacy._mechanisms import _Noise


@dataclass
class Release:
    """One use of a mechanism."""

    mechanism: Any
    noise: np.ndarray
    values: list[np.ndarray] = field(default_factory=list)
    output: Any = None
    rest: np.ndarray | None = None  # what the rounding was left with, in steps of the grid

    @property
    def value(self) -> np.ndarray:
        """What the noise was added to, one row per query: the function whose sensitivity is declared."""
        assert len(self.values) == 1, f"{self.mechanism} drew noise and added it {len(self.values)} times"
        (value,) = self.values
        if isinstance(self.mechanism, GNMax):
            return value.reshape(1, -1)
        return value.reshape(value.shape[0] if value.ndim else 1, -1)


class _FixedNoise(NoiseSource):
    """Zeros, or draws that depend on nothing but their order; remembers what bits and maxima were taken of."""

    def __init__(self, rng: np.random.Generator | None, scale: float, release: Release) -> None:
        super().__init__()
        self._rng, self._scale, self._release = rng, scale, release

    def _fixed(self, shape: Any) -> np.ndarray:
        drawn = np.zeros(shape) if self._rng is None else self._scale * self._rng.standard_normal(shape)
        self._release.noise = drawn
        return drawn

    def normal(self, size: Any = 1) -> np.ndarray:
        return self._fixed(size)

    def rounded_normal(self, centers: Any, scale: float) -> np.ndarray:
        self._release.rest = np.array(centers)
        return np.rint(centers + scale * self._fixed(np.shape(centers)))

    def discrete_gaussian(self, sigma: float, size: Any = 1) -> np.ndarray:
        return np.rint(sigma * self._fixed(size)).astype(np.int64)


@contextlib.contextmanager
def watched_releases(noise: int | None = None, *, scale: float = 1.0) -> Iterator[list[Release]]:
    """Record every release made inside, its noise replaced by zeros, or by a fixed draw.

    ``noise`` seeds a draw that depends on nothing but the order of the releases, ``scale`` times as large as the
    mechanism's own.
    """
    log: list[Release] = []
    rng = None if noise is None else np.random.default_rng(noise)

    def release(source: Any, mechanism: Any, *private: Any, **public: Any) -> Any:
        entry = Release(mechanism._vector if isinstance(mechanism, NoisyVotes) else mechanism, np.zeros(0))
        log.append(entry)
        source._check(mechanism)
        value = np.array(private[0], dtype=float)
        admissible = public.get("admissible")
        if admissible is not None:
            value = value[np.flatnonzero(admissible)]
        if isinstance(mechanism, NoisyVotes) and mechanism.n_classes == 2:
            value = value[:, 1]  # the other count follows from it
        entry.values.append(value)
        output = mechanism.noisy(_FixedNoise(rng, scale, entry), *private, **public)
        entry.output = bool(output[0]) if isinstance(mechanism, NoisyThreshold) and len(output) == 1 else output
        entry.noise = mechanism.sigma * entry.noise
        return output

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoiseSource, "release", release)
        yield log


@contextlib.contextmanager
def fixed_entropy(seed: int) -> Iterator[None]:
    """Replace the operating system's entropy by a seeded stream: secret noise, only reproducible inside."""
    stream = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise, "os", SimpleNamespace(urandom=stream.randbytes))
        patch.setattr(_noise, "secrets", SimpleNamespace(randbelow=stream.randrange))
        yield


@contextlib.contextmanager
def recorded_noise() -> Iterator[list[tuple[Any, np.ndarray]]]:
    """Record the noise that mechanisms really draw inside, as (mechanism, draws)."""
    log: list[tuple[Any, np.ndarray]] = []
    original, original_sum = _Noise._draw, GaussianMechanism._rounded

    def draw(mechanism: Any, shape: tuple[int, ...], source: Any) -> np.ndarray:
        drawn = original(mechanism, shape, source)
        log.append((mechanism, np.array(drawn, dtype=float)))
        return drawn

    def rounded(mechanism: Any, values: np.ndarray, source: Any) -> np.ndarray:
        released = original_sum(mechanism, values, source)
        log.append((mechanism, released - values))
        return released

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Noise, "_draw", draw)
        patch.setattr(GaussianMechanism, "_rounded", rounded)
        yield log


@contextlib.contextmanager
def no_student() -> Iterator[None]:
    """Stop a fit after its last release. What follows is post-processing (test_post_processing.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Lessons, "of", lambda public, queries, votes, n_classes, *_: Lessons(public, queries, votes, n_classes)
        )
        for estimator in (PATEClassifier, FairPATEClassifier):
            patch.setattr(estimator, "_learn", lambda self: self)
        yield
