"""One step of DP-SGD: sampler, clipping, noise and event in one frozen object, so that they cannot disagree."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor, nn

from skfairdp._networks._clipping import PerSampleLoss, clipped_gradient_sum
from skfairdp.privacy import (
    DpEvent,
    GaussianDpEvent,
    GaussianMechanism,
    NeighboringRelation,
    NoiseSource,
    PoissonSample,
    PoissonSampledDpEvent,
    calibrate_noise,
    compose,
    gdp_mu,
    repeat,
)


@dataclass(frozen=True)
class DPStep:
    """The plan of a DP-SGD run, and its single step.

    Each step draws a Poisson batch (every row with the same probability, independently, in secret), sums the clipped
    per-sample gradients, adds Gaussian noise and divides by the *expected* batch size: the realised one is private. An
    empty batch gives a step of pure noise, and counts.
    """

    sampling_probability: float
    noise_multiplier: float
    max_grad_norm: float
    steps: int
    expected_batch_size: float
    relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        for name, value in (
            ("sampling_probability", self.sampling_probability),
            ("noise_multiplier", self.noise_multiplier),
            ("max_grad_norm", self.max_grad_norm),
            ("expected_batch_size", self.expected_batch_size),
        ):
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} of DPStep must be positive and finite. Got {value!r} instead.")
        if not 1e-100 <= self.max_grad_norm <= 1e100:
            raise ValueError(
                f"max_grad_norm of DPStep must lie between 1e-100 and 1e100, so that squares do not overflow. "
                f"Got {self.max_grad_norm!r} instead."
            )
        if self.sampling_probability > 1:
            raise ValueError(
                f"sampling_probability of DPStep must be at most 1. Got {self.sampling_probability!r} instead."
            )
        if self.steps < 1:
            raise ValueError(f"steps of DPStep must be at least 1. Got {self.steps!r} instead.")

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        n_rows: int,
        batch_size: int,
        epochs: float,
        max_grad_norm: float,
        noise_multiplier: float | None = None,
        beside: DpEvent | None = None,
        relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
        nothing_left: str | None = None,
    ) -> "DPStep":
        """The plan for so many passes over the rows whose certified ε, with what is released ``beside``, is at most
        ``epsilon``. Where there is none, ``nothing_left`` says what to do."""
        probability = min(1.0, batch_size / n_rows)
        steps = max(1, math.ceil(epochs / probability))
        if noise_multiplier is None:
            guess = _central_limit_noise(probability, steps, epsilon, delta)
            try:
                noise_multiplier = calibrate_noise(
                    lambda sigma: _with(_event(probability, sigma, steps), beside), epsilon, delta, guess=guess
                )
            except ValueError as reason:
                raise ValueError(nothing_left or str(reason)) from None
        return cls(probability, noise_multiplier, max_grad_norm, steps, probability * n_rows, relation)

    @property
    def event(self) -> DpEvent:
        """All steps together."""
        return self.event_with(None)

    def event_with(self, beside: DpEvent | None) -> DpEvent:
        """All steps together with what else is released."""
        return _with(_event(self.sampling_probability, self.noise_multiplier, self.steps), beside)

    @property
    def sums(self) -> GaussianMechanism:
        """For the sum of the clipped gradients of a batch."""
        return GaussianMechanism(
            self.noise_multiplier * self.max_grad_norm, sensitivity=self.max_grad_norm, relation=self.relation
        )

    @property
    def declared_rows(self) -> int:
        """The public number of rows that probability, steps and divisor follow from."""
        return max(1, round(self.expected_batch_size / self.sampling_probability))

    def sample(self, n_rows: int, source: NoiseSource) -> NDArray[np.int64]:
        """Positions of a fresh Poisson batch; private, never to be logged."""
        return PoissonSample(self.sampling_probability).draw(n_rows, source)

    def release(
        self, module: nn.Module, loss: PerSampleLoss, X: Tensor, y: Tensor, source: NoiseSource, **options: Any
    ) -> dict[str, Tensor]:
        """The noisy mean gradient of a batch, by parameter name."""
        total = clipped_gradient_sum(module, loss, X, y, self.max_grad_norm, **options)
        return released_mean(total, self.sums, source, self.expected_batch_size)


def released_mean(
    sums: dict[str, Tensor], mechanism: GaussianMechanism, source: NoiseSource, divisor: float
) -> dict[str, Tensor]:
    """Release the sums of all parameters as one vector, over a public divisor.

    Each noisy sum is a multiple of the mechanism's grid; what follows, and the precision it is stored in, is
    post-processing.
    """
    flat = torch.cat([value.flatten() for value in sums.values()]).double().cpu()
    noisy = torch.from_numpy(mechanism.release(flat.numpy(), source)) / divisor
    parts = noisy.split([value.numel() for value in sums.values()])
    return {name: part.view_as(value).to(value) for (name, value), part in zip(sums.items(), parts, strict=True)}


def _central_limit_noise(probability: float, steps: int, epsilon: float, delta: float) -> float:
    """Where the search starts: many sampled steps are about μ-GDP, μ = q sqrt(T (exp(1/σ²) - 1)) (Bu et al. 2020)."""
    per_step = gdp_mu(epsilon, delta) / (probability * math.sqrt(steps))
    central = 1.02 / math.sqrt(math.log1p(per_step**2))
    # Where ε is large, what counts is how often a record is sampled.
    often = max(1.0, float(binom.isf(delta / 2, steps, probability)))
    return min(central, math.sqrt(often) / gdp_mu(epsilon, delta / 2))


def _event(probability: float, noise_multiplier: float, steps: int) -> DpEvent:
    step: DpEvent = GaussianDpEvent(noise_multiplier)
    return repeat(step if probability == 1 else PoissonSampledDpEvent(probability, step), steps)


def _with(event: DpEvent, beside: DpEvent | None) -> DpEvent:
    return event if beside is None else compose(event, beside)
