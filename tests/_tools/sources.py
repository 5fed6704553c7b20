"""Sources of noise for tests: chosen, recorded, installed at the one place where sources come from."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from skfairdp.privacy import GaussianMechanism, NoiseSource, _noise


class ChosenNoise(NoiseSource):
    """Adds ``sigma * self.normal(shape)`` to what a Gaussian mechanism is given, unrounded: tests choose ``normal``."""

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        if isinstance(mechanism, GaussianMechanism) and mechanism.noise == "gaussian":
            self._check(mechanism)
            values = np.asarray(private[0], dtype=np.float64)
            return values + mechanism.sigma * np.asarray(self.normal(values.shape))
        return super().release(mechanism, *private, **public)

    def rounded_normal(self, centers: Any, scale: float) -> Any:
        return np.rint(centers + scale * np.asarray(self.normal(np.shape(centers))))


class ZeroNoise(ChosenNoise):
    """No noise; remembers nothing."""

    def normal(self, size: Any = 1) -> Any:
        return np.zeros(size)


class UnitNoise(ChosenNoise):
    """All ones, so that a release shows the scale of its noise."""

    def normal(self, size: Any = 1) -> Any:
        return np.ones(size)


@contextlib.contextmanager
def installed(source: NoiseSource) -> Iterator[NoiseSource]:
    """Every fit inside gets its noise from this source."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_noise, "open_source", lambda seed=None: source)
        yield source
