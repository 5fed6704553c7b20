"""Which values are common: the ones whose noisy count reaches a threshold that a single record hardly ever reaches."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import RareDisclosure, compose
from skfairdp.privacy._mechanisms import GaussianMechanism
from skfairdp.privacy._noise import NoiseSource
from skfairdp.privacy._report import NeighboringRelation


@dataclass(frozen=True)
class CommonValues:
    """Release the values of a column whose noisy count reaches a threshold (partition selection).

    **Guarantee.** Every record holds one value. The counts of the values that both of two neighbours hold are a vector
    that moves by at most √2 where a record is replaced (one count less, another more): Gaussian noise on it is a
    Gaussian release. Beside them each of the two may hold one value that the other does not, and then holds it once.
    That value is shown with probability at most ``failure``, by noise of its own, so what it adds is a release at
    distance ``failure`` in total variation: :class:`RareDisclosure`. Nothing else depends on a value's being there: the
    order of what is shown is that of the values themselves.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each count.
    failure : float
        In (0, 1/2): the largest probability with which a value of one record only is shown.
    relation : NeighboringRelation, default=None
        The neighbours: of equally many records, of which one is replaced.
    with_counts : bool, default=False
        Whether the noisy counts of the values come along, as a dict.

    Examples
    --------
    >>> from skfairdp.privacy import CommonValues, NoiseSource
    >>> mechanism = CommonValues(sigma=2.0, failure=1e-6)
    >>> round(mechanism.threshold, 1)
    10.5
    >>> mechanism.release({"Male": 400, "Female": 500, "Ms Smith": 1}, NoiseSource())
    ('Female', 'Male')
    """

    sigma: float
    failure: float
    relation: NeighboringRelation | None = field(default=None, kw_only=True)
    with_counts: bool = field(default=False, kw_only=True)

    sensitivity = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if not 0 < self.failure < 0.5:
            raise ValueError(f"failure must lie in (0, 1/2). Got {self.failure!r} instead.")
        self._counts  # noqa: B018  # refuses a sigma that is none

    @property
    def event(self) -> DpEvent:
        """Noisy counts, and the value of one record only that may slip through."""
        return compose(self._counts.event, RareDisclosure(self.failure))

    @property
    def threshold(self) -> float:
        """The smallest noisy count, on the grid of the noise, that one record reaches with at most ``failure``."""
        grid = self._counts.grid
        # What rounds to the threshold may lie half a step below it. The quantile is good to 1e-13 of itself.
        least = 1 - self.sigma * float(ndtri(self.failure)) * (1 + 1e-9) + grid / 2
        return math.ceil(least / grid) * grid

    @property
    def _counts(self) -> GaussianMechanism:
        return GaussianMechanism(self.sigma, sensitivity=self.sensitivity, relation=self.relation)

    def release(self, counts: Mapping[Any, int], source: NoiseSource) -> Any:
        """The common values: None first, then numbers, then texts, each in their order.

        Parameters
        ----------
        counts : mapping of None, int, float or str to int
            How many records hold each value. A value that is always a key is public: for it alone 0 is a count.
        source : NoiseSource
            Of the Spending that pays.

        Returns
        -------
        tuple or dict
            Some of the keys.
        """
        return source.release(self, counts)

    def noisy(self, source: NoiseSource, counts: Mapping[Any, int]) -> Any:
        """What ``source.release`` lets out.

        Parameters
        ----------
        source : NoiseSource
            Of the Spending that pays.
        counts : mapping
            As :meth:`release` takes it.

        Returns
        -------
        tuple
            As :meth:`release` returns it.
        """
        values = sorted(counts, key=_place)
        noisy = self._counts.noisy(source, np.array([counts[value] for value in values], dtype=np.float64))
        found = {value: count for value, count in zip(values, noisy.tolist(), strict=True) if count >= self.threshold}
        return found if self.with_counts else tuple(found)


def _place(value: Any) -> tuple[int, Any]:
    return (0, 0) if value is None else (2, value) if isinstance(value, str) else (1, value)
