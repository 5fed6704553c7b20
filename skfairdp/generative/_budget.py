"""What a fit of the generator pays for, in one object: cells of numbers, the law of groups and labels, the backend."""

import math
from dataclasses import dataclass

from skfairdp.generative._backend import RELATION, BackendPlan
from skfairdp.privacy import DpEvent, GaussianMechanism, calibrate_noise, compose, gdp_mu

__all__ = ["Budget"]

_RANGES_SHARE, _LAW_SHARE = 0.08, 0.02


@dataclass(frozen=True)
class Budget:
    """All releases of a fit, from public values only.

    Parameters
    ----------
    epsilon, delta : float
    ranges_sensitivity : float
        Of the fine histograms of numbers whose cells are not public; 0 where there are none.
    n_strata : int
        Groups times classes. Their counts are released where there is more than one.
    backend : BackendPlan
        Gets what is left.
    """

    epsilon: float
    delta: float
    ranges_sensitivity: float
    n_strata: int
    backend: BackendPlan

    @property
    def ranges(self) -> GaussianMechanism | None:
        """For the fine histograms."""
        return self._of(_RANGES_SHARE, self.ranges_sensitivity) if self.ranges_sensitivity else None

    @property
    def law(self) -> GaussianMechanism | None:
        """For the counts of groups by labels: a replaced row moves two of them by one."""
        return self._of(_LAW_SHARE, math.sqrt(2.0)) if self.n_strata > 1 else None

    def _of(self, share: float, sensitivity: float) -> GaussianMechanism:
        mu = math.sqrt(share) * gdp_mu(self.epsilon, self.delta)
        return GaussianMechanism(sensitivity / mu, sensitivity=sensitivity, relation=RELATION)

    def event_at(self, noise: float) -> DpEvent:
        """Everything, with this noise scale of the backend."""
        extras = [mechanism.event for mechanism in (self.ranges, self.law) if mechanism is not None]
        return compose(*extras, self.backend.event_at(noise))

    def calibrated(self) -> float:
        """The backend's noise scale with which everything costs at most ``epsilon``."""
        return calibrate_noise(self.event_at, self.epsilon, self.delta, guess=1.1 / gdp_mu(self.epsilon, self.delta))

    @property
    def releases(self) -> tuple[str, ...]:
        words = ["fine histograms of numbers"] if self.ranges else []
        words += ["counts of groups and labels"] if self.law else []
        return (*words, *self.backend.releases)
