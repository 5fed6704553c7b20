"""Backends whose teachers vote with their gradients: DataLens and G-PATE, each with the accounting that holds."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from skfairdp.generative._adversarial import AdversarialBackend, AdversarialPlan
from skfairdp.generative._backend import Layout
from skfairdp.generative._releases import BinnedGradients, TopSigns
from skfairdp.privacy import DpEvent, NoiseSource, repeat
from skfairdp.utils._sklearn import Interval

__all__ = ["DataLensBackend", "GPATEBackend"]

_THRESHOLD_SHARE = 0.2  # of G-PATE's squared cost


class DataLensBackend(AdversarialBackend):
    """Teachers vote with the signs of their gradients' largest coordinates.

    **Guarantee.** Differential privacy for one replaced record: ``n_steps * batch_size`` sums of votes, each with
    sensitivity 2√k and Gaussian noise of its own. Cutting off weak votes is post-processing. No data-dependent bound is
    used: the published one is about an argmax, which this is not.

    Wang et al. (2021), with fair batches of PFGuard.

    Parameters
    ----------
    n_steps, batch_size : int, default=10, 32
        Steps of the generator, and rows (aggregated gradients) in each.
    teacher_steps : int, default=2
    k : int, default=20
        Coordinates that a teacher votes on.
    least : float, default=1.0
        Votes below this many standard deviations of the noise count as none.
    hidden : tuple of int, default=(64, 64)
    latent : int, default=16
    lr, teacher_lr : float, default=1e-3, 5e-4

    Examples
    --------
    >>> from skfairdp.generative import DataLensBackend
    >>> DataLensBackend(k=50)
    DataLensBackend(k=50)
    """

    _parameter_constraints: dict[str, Any] = {
        **AdversarialBackend._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
        "least": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_steps: int = 10,
        batch_size: int = 32,
        teacher_steps: int = 2,
        k: int = 20,
        least: float = 1.0,
        hidden: Sequence[int] = (64, 64),
        latent: int = 16,
        lr: float = 1e-3,
        teacher_lr: float = 5e-4,
    ) -> None:
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.teacher_steps = teacher_steps
        self.k = k
        self.least = least
        self.hidden = hidden
        self.latent = latent
        self.lr = lr
        self.teacher_lr = teacher_lr

    def plan(self, layout: Layout) -> "DataLensPlan":
        """Declare the number of aggregated gradients."""
        self._validate_params()
        return DataLensPlan(self, layout)


class DataLensPlan(AdversarialPlan):
    @property
    def n_gradients(self) -> int:
        return int(self.settings.n_steps * self.settings.batch_size)

    def signs_at(self, noise: float) -> TopSigns:
        return TopSigns(self.settings.k, noise * 2 * math.sqrt(self.settings.k * self.n_gradients))

    def event_at(self, noise: float) -> DpEvent:
        return repeat(self.signs_at(noise).event, self.n_gradients)

    @property
    def releases(self) -> tuple[str, ...]:
        return (f"{self.n_gradients} sums of top-{self.settings.k} signs",)

    def run(self, training: Any, noise: float, source: NoiseSource) -> None:
        mechanism = self.signs_at(noise)
        for _ in self.steps():
            training.teach()
            values, shown = training.fakes(self.settings.batch_size)
            private = training.directions(shown)
            released = [
                mechanism.release(mechanism.votes(private[:, row]), source, least=self.settings.least * mechanism.sigma)
                for row in range(self.settings.batch_size)
            ]
            training.follow(values, np.stack(released))


class GPATEBackend(AdversarialBackend):
    """Teachers vote on bins of a few random directions of the gradient.

    **Guarantee.** Differential privacy for one replaced record: for each of ``n_steps * batch_size`` gradients and each
    of ``n_coordinates`` directions a noisy threshold and a noisy argmax over bins, all charged, answered or not. The
    published budgets hold only with data-dependent bounds.

    Long et al. (2021), with fair batches of PFGuard.

    Parameters
    ----------
    n_steps, batch_size : int, default=10, 16
        Steps of the generator, and rows (aggregated gradients) in each.
    teacher_steps : int, default=2
    n_coordinates : int, default=10
        Random directions, public and fixed for the fit.
    n_bins : int, default=5
        Cells of a coordinate between −2 and 2, of gradients of norm one.
    threshold : float, default=0.4
        Share of the teachers that must agree on a bin.
    hidden : tuple of int, default=(64, 64)
    latent : int, default=16
    lr, teacher_lr : float, default=1e-3, 5e-4

    Examples
    --------
    >>> from skfairdp.generative import GPATEBackend
    >>> GPATEBackend(n_coordinates=5)
    GPATEBackend(n_coordinates=5)
    """

    _parameter_constraints: dict[str, Any] = {
        **AdversarialBackend._parameter_constraints,
        "n_coordinates": [Interval(Integral, 1, None, closed="left")],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        *,
        n_steps: int = 10,
        batch_size: int = 16,
        teacher_steps: int = 2,
        n_coordinates: int = 10,
        n_bins: int = 5,
        threshold: float = 0.4,
        hidden: Sequence[int] = (64, 64),
        latent: int = 16,
        lr: float = 1e-3,
        teacher_lr: float = 5e-4,
    ) -> None:
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.teacher_steps = teacher_steps
        self.n_coordinates = n_coordinates
        self.n_bins = n_bins
        self.threshold = threshold
        self.hidden = hidden
        self.latent = latent
        self.lr = lr
        self.teacher_lr = teacher_lr

    def plan(self, layout: Layout) -> "GPATEPlan":
        """Declare the number of gradients."""
        self._validate_params()
        return GPATEPlan(self, layout)


class GPATEPlan(AdversarialPlan):
    @property
    def n_gradients(self) -> int:
        return int(self.settings.n_steps * self.settings.batch_size)

    def bins_at(self, noise: float) -> BinnedGradients:
        scale = noise * math.sqrt(self.n_gradients * self.settings.n_coordinates)
        return BinnedGradients(
            self.settings.n_coordinates,
            sigma_threshold=scale / math.sqrt(_THRESHOLD_SHARE),
            sigma=scale * math.sqrt(2 / (1 - _THRESHOLD_SHARE)),
        )

    def event_at(self, noise: float) -> DpEvent:
        return repeat(self.bins_at(noise).event, self.n_gradients)

    @property
    def releases(self) -> tuple[str, ...]:
        n = self.n_gradients * self.settings.n_coordinates
        return (f"{n} noisy thresholds", f"{n} noisy argmaxes over {self.settings.n_bins} bins")

    def run(self, training: Any, noise: float, source: NoiseSource) -> None:
        mechanism, settings = self.bins_at(noise), self.settings
        shape = (training.width, settings.n_coordinates)
        projection = self.layout.random_state.normal(size=shape)
        width = 4.0 / settings.n_bins
        for _ in self.steps():
            training.teach()
            values, shown = training.fakes(settings.batch_size)
            private = np.nan_to_num(training.directions(shown).astype(np.float64))
            private /= np.maximum(np.linalg.norm(private, axis=2, keepdims=True), 1e-12)
            bins = np.clip(np.floor((private @ projection + 2.0) / width), 0, settings.n_bins - 1).astype(np.int64)
            histograms = (bins[..., None] == np.arange(settings.n_bins)).sum(axis=0)
            winners, answered = mechanism.release(
                histograms, source, threshold=settings.threshold * self.layout.n_teachers
            )
            centres = np.where(answered, (winners + 0.5) * width - 2.0, 0.0)
            training.follow(values, centres @ projection.T / settings.n_coordinates)
