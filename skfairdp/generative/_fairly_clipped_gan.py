"""GS-WGAN whose clipping treats groups of generated rows differently: two baselines, with the sensitivity they have."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.generative._gs_wgan_plans import MeanGSWGANPlan
from skfairdp.generative._releases import MeanGradient, at_least
from skfairdp.privacy import DpEvent, GaussianDpEvent, GaussianMechanism, NoiseSource, compose, repeat

__all__ = ["CountsOfRows", "FairlyClippedPlan"]

_COUNT_SHARE = 0.05  # of a step's squared cost
_LARGEST = 4.0  # bound of a group, over C
_QUANTILE, _START = 0.1, 2.0  # share of gradients above Z that is steered towards, and the first Z


@dataclass(frozen=True)
class CountsOfRows:
    """How many gradients of all discriminators are above a bound, by group of the generated rows, with noise.

    Which rows a group has is public: they are generated. One record changes one discriminator, whose rows may all
    change sides: a group's two counts move by up to its number of rows each, in opposite directions.

    Parameters
    ----------
    sizes : tuple of int
        Rows of each group in the batch; one number where groups are not told apart.
    noise_multiplier : float
    two_sided : bool
        Count rows below the bound, too.
    """

    sizes: tuple[int, ...]
    noise_multiplier: float
    two_sided: bool

    @property
    def _vector(self) -> GaussianMechanism:
        sensitivity = math.sqrt((2 if self.two_sided else 1) * sum(size**2 for size in self.sizes))
        return at_least(self.noise_multiplier, sensitivity)

    @property
    def event(self) -> DpEvent:
        """One step."""
        return GaussianDpEvent(self.noise_multiplier)

    def release(self, counts: NDArray[np.float64], source: NoiseSource) -> NDArray[np.float64]:
        """Noisy counts."""
        return self._vector.release(counts, source)


class FairlyClippedPlan(MeanGSWGANPlan):
    """In each step noisy counts, by which bounds move, and the mean of gradients clipped to those bounds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.settings.clipping == "dpsgd_f" and self.layout.n_groups < 2:
            raise ValueError(
                "GSWGANBackend(clipping='dpsgd_f') has a bound for each group of PFGuardGenerator: pass "
                "sensitive_features to fit, or use 'global_adapt', which reads no groups."
            )

    def multiplier_at(self, noise: float, share: float) -> float:
        """Of a release in each step that is to have this share of the squared cost."""
        return noise * math.sqrt(self.settings.n_steps / share)

    def counts_at(self, noise: float, sizes: tuple[int, ...]) -> CountsOfRows:
        two_sided = self.settings.clipping == "dpsgd_f"
        return CountsOfRows(sizes, self.multiplier_at(noise, _COUNT_SHARE), two_sided)

    def mean_at(self, noise: float, clip: float) -> MeanGradient:
        multiplier = self.multiplier_at(noise, 1 - _COUNT_SHARE)
        return MeanGradient(self.layout.n_teachers, self.settings.batch_size, clip, multiplier)

    def event_at(self, noise: float) -> DpEvent:
        # Both events depend on the multiplier alone, not on the sizes and bounds of a step.
        return repeat(
            compose(self.counts_at(noise, (self.settings.batch_size,)).event, self.mean_at(noise, 1.0).event),
            self.settings.n_steps,
        )

    @property
    def releases(self) -> tuple[str, ...]:
        return (f"{self.settings.n_steps} noisy counts of long gradients", *super().releases)

    def run(self, training: Any, noise: float, source: NoiseSource) -> None:
        from skfairdp._networks import BoundsByGroup, GlobalScaling

        n_teachers, batch_size = self.layout.n_teachers, self.settings.batch_size
        by_group = self.settings.clipping == "dpsgd_f"
        n_groups = self.layout.n_groups if by_group else 1
        strata_per_group = self.layout.n_classes if by_group else self.layout.n_strata
        rule = (
            BoundsByGroup(n_groups, max_norm=1.0, max_ratio=_LARGEST, count_share=_COUNT_SHARE)
            if by_group
            else GlobalScaling(
                max_norm=1.0,
                start=_START,
                quantile=_QUANTILE,
                batch_size=n_teachers * batch_size,
                count_share=_COUNT_SHARE,
            )
        )
        for _ in self.steps():
            training.teach()
            values, shown = training.fakes(batch_size)
            groups = training.strata(shown) // strata_per_group
            sizes = tuple(np.bincount(groups, minlength=n_groups).tolist())
            counts = self.counts_at(noise, sizes)
            gradients = np.nan_to_num(training.directions(shown), posinf=0.0, neginf=0.0)
            norms = np.linalg.norm(gradients.astype(np.float64), axis=2)
            factors = rule.factors_of_arrays(
                norms.ravel(), np.tile(groups, n_teachers), partial(counts.release, source=source)
            )
            mean = self.mean_at(noise, rule.bound)
            training.follow(values, mean.release(gradients * factors.reshape(*norms.shape, 1), source))
