"""Recorded fits: what goes into each release of a fit, what would have gone in on a neighbour, and what came out.

A fit on D is recorded; a fit on D' is handed the outputs of D, whatever its own values are. So both worlds are known
along the same path: mechanisms, and the values that they add noise to. That is the white box of an auditor.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from skfairdp.privacy import NoiseSource, _noise


@dataclass
class Release:
    """One use of a mechanism on D, and what it is given on D'."""

    mechanism: Any
    values: Any
    public: dict[str, Any]
    output: Any
    others: Any = None

    @property
    def sigma(self) -> float:
        return float(self.mechanism.sigma)

    @property
    def moved(self) -> np.ndarray:
        """How far the released numbers lie apart in the two worlds."""
        return self._column(self.others) - self._column(self.values)

    @property
    def residuals(self) -> np.ndarray:
        """Noise that was added on D, in units of its declared scale."""
        return (self._column(self.output) - self._column(self.values)) / self.sigma

    def _column(self, values: Any) -> np.ndarray:
        values = np.asarray(values, dtype=float)
        if getattr(self.mechanism, "n_classes", 0) == 2:  # votes of two classes: one number is released
            values = values[:, 1]
        return values.ravel()


class Recorder(NoiseSource):
    """Notes every release."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.releases: list[Release] = []

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        output = super().release(mechanism, *private, **public)
        self.releases.append(Release(mechanism, _copy(private[0]), public, _copy(output)))
        return output


class Replayer(NoiseSource):
    """Hands out what was recorded, in order, and notes what it was given instead."""

    def __init__(self, seed: int, releases: list[Release]) -> None:
        super().__init__(seed)
        self.left = list(releases)

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        self._check(mechanism)
        entry = self.left.pop(0)
        assert type(entry.mechanism) is type(mechanism), "neighbours release in another order"
        entry.others = _copy(private[0])
        return _copy(entry.output)


def _copy(values: Any) -> Any:
    return np.array(values) if isinstance(values, np.ndarray | list | tuple) else values


def recorded(fit: Callable[[], Any], fit_neighbour: Callable[[], Any], seed: int) -> tuple[list[Release], Any]:
    """Record the first, replay the second; return the releases and the model of the first."""
    recorder = Recorder(seed)
    with _installed(recorder):
        model = fit()
    replayer = Replayer(seed, recorder.releases)
    with _installed(replayer):
        fit_neighbour()
    assert not replayer.left, "neighbours release a different number of times"
    return recorder.releases, model


@contextmanager
def _installed(source: NoiseSource) -> Iterator[None]:
    with mock.patch.object(_noise, "open_source", return_value=source):
        yield


def matched_scores(releases: list[Release], n_draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Release again and again on both worlds, and project what comes out on how far they lie apart.

    The score is the log-likelihood ratio of Gaussian noise but for scale and shift. Coordinates that hold next to
    nothing of the distance are left out, which an attacker may do.
    """
    source = NoiseSource(seed)
    scores = np.zeros((2, n_draws))
    for entry, at in zip(releases, _telling(releases), strict=True):
        if not len(at):
            continue
        mechanism, moved = getattr(entry.mechanism, "_vector", entry.mechanism), entry.moved[at]
        for world, values in enumerate((entry.values, entry.others)):
            centers = entry._column(values)[at]
            for start in range(0, n_draws, 20_000):
                part = slice(start, min(start + 20_000, n_draws))
                out = mechanism.noisy(source, np.tile(centers, (part.stop - part.start, 1)))
                scores[world, part] += (out - entry._column(entry.values)[at]) @ moved / entry.sigma**2
    return scores[0], scores[1]


def _telling(releases: list[Release]) -> list[np.ndarray]:
    """Positions in each release that hold 99.5 percent of the squared distance together, at most 300 in all."""
    held = [(entry.moved / entry.sigma) ** 2 for entry in releases]
    ranked = np.sort(np.concatenate(held))[::-1][:300]
    n = min(int(np.searchsorted(ranked.cumsum(), 0.995 * sum(map(np.sum, held)))) + 1, len(ranked))
    least = max(float(ranked[n - 1]), 1e-300)
    return [np.flatnonzero(squares >= least) for squares in held]


def shift_of(releases: list[Release]) -> float:
    """L2 distance of the worlds over all releases, in units of declared noise: the μ of this pair."""
    return float(np.sqrt(sum(float(entry.moved @ entry.moved) / entry.sigma**2 for entry in releases)))
