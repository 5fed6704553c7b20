"""Watching the releases of a fit: which mechanism, what value its noise was added to, what came out."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skfairdp.pate import _base_pate
from skfairdp.privacy import GNMax, NoisyThreshold, NoisyVotes, _noise
from skfairdp.privacy._mechanisms import _Noise

RELEASES = (NoisyThreshold, GNMax, NoisyVotes)


@dataclass
class Release:
    """One use of a mechanism."""

    mechanism: Any
    noise: np.ndarray
    values: list[np.ndarray] = field(default_factory=list)
    output: Any = None

    @property
    def value(self) -> np.ndarray:
        """What the noise was added to, one row per query: the function whose sensitivity is declared."""
        assert len(self.values) == 1, f"{self.mechanism} drew noise and added it {len(self.values)} times"
        (value,) = self.values
        if isinstance(self.mechanism, GNMax):
            return value.reshape(1, -1)
        return value.reshape(value.shape[0] if value.ndim else 1, -1)


class _WatchedNoise(np.ndarray):
    """Noise that notes what it is added to. Everything computed from it is a plain array."""

    release: Release

    def __array_finalize__(self, parent: Any) -> None:
        self.release = getattr(parent, "release", None)

    def __getitem__(self, key: Any) -> Any:  # an array also where numpy would give a scalar
        return super().__getitem__((*key, ...) if isinstance(key, tuple) else (key, ...))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(item) if isinstance(item, _WatchedNoise) else item for item in inputs]
        if ufunc is np.add and method == "__call__":
            others = [item for item in inputs if not isinstance(item, _WatchedNoise)]
            self.release.values.extend(np.array(other, dtype=float) for other in others)
        return getattr(ufunc, method)(*plain, **kwargs)


@contextlib.contextmanager
def watched_releases(noise: int | None = None, *, scale: float = 1.0) -> Iterator[list[Release]]:
    """Record every release made inside, its noise replaced by zeros, or by a fixed draw.

    ``noise`` seeds a draw that depends on nothing but the order of the releases, ``scale`` times as large as the
    mechanism's own.
    """
    log: list[Release] = []
    rng = None if noise is None else np.random.default_rng(noise)

    def draw(mechanism: Any, shape: tuple[int, ...], source: Any) -> np.ndarray:
        fixed = np.zeros(shape) if rng is None else scale * mechanism.sigma * rng.standard_normal(shape)
        if mechanism.noise == "discrete_gaussian":
            fixed = np.rint(fixed)
        log.append(Release(mechanism, fixed))
        watched = fixed.view(_WatchedNoise)
        watched.release = log[-1]
        return watched

    def noting_output(original: Any) -> Any:
        def release(mechanism: Any, *args: Any, **kwargs: Any) -> Any:
            before = len(log)
            output = original(mechanism, *args, **kwargs)
            for entry in log[before:]:
                entry.output = output
            return output

        return release

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Noise, "_draw", draw)
        for mechanism in RELEASES:
            patch.setattr(mechanism, "release", noting_output(mechanism.release))
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
    original = _Noise._draw

    def draw(mechanism: Any, shape: tuple[int, ...], source: Any) -> np.ndarray:
        drawn = original(mechanism, shape, source)
        log.append((mechanism, np.array(drawn, dtype=float)))
        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Noise, "_draw", draw)
        yield log


@contextlib.contextmanager
def no_student() -> Iterator[None]:
    """Stop a fit after its last release. What follows is post-processing (test_post_processing.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_base_pate.BasePATE, "_fit_default_student", lambda self, *_, **__: None)
        patch.setattr(_base_pate.BasePATE, "_finish", lambda self: self)
        yield
