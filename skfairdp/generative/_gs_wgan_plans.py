"""How GS-WGAN spends a budget: in each step the mean of all gradients, or those of one drawn in secret."""

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from skfairdp.generative._adversarial import AdversarialPlan
from skfairdp.generative._releases import MeanGradient, SanitisedGradient
from skfairdp.privacy import DpEvent, NoiseSource, repeat

__all__ = ["DrawnGSWGANPlan", "GSWGANPlan", "MeanGSWGANPlan"]


class GSWGANPlan(AdversarialPlan):
    """What both ways of answering share: a gradient penalty, and gradients of norm one."""

    loss = "wasserstein"

    def event_at(self, noise: float) -> DpEvent:
        return repeat(self.gradient_at(noise).event, self.settings.n_steps)

    @abstractmethod
    def gradient_at(self, noise: float) -> MeanGradient | SanitisedGradient:
        """The release of one step."""

    @abstractmethod
    def asked(self, mechanism: Any, source: NoiseSource) -> int | None:
        """Who answers: one discriminator, or all."""

    def run(self, training: Any, noise: float, source: NoiseSource) -> None:
        mechanism = self.gradient_at(noise)
        for _ in self.steps():
            training.teach()
            values, shown = training.fakes(self.settings.batch_size)
            gradients = training.directions(shown, self.asked(mechanism, source))
            # Of norm one, about as the gradient penalty makes them: clipping then takes nothing off.
            gradients = gradients / np.maximum(np.linalg.norm(gradients, axis=-1, keepdims=True), 1e-12)
            training.follow(values, mechanism.release(gradients, source))


class MeanGSWGANPlan(GSWGANPlan):
    def gradient_at(self, noise: float) -> MeanGradient:
        multiplier = noise * math.sqrt(self.settings.n_steps)
        return MeanGradient(self.layout.n_teachers, self.settings.batch_size, 1.0, multiplier)

    @property
    def releases(self) -> tuple[str, ...]:
        return (f"{self.settings.n_steps} mean gradients of {self.layout.n_teachers} discriminators",)

    def asked(self, mechanism: Any, source: NoiseSource) -> None:
        return None


class DrawnGSWGANPlan(GSWGANPlan):
    def gradient_at(self, noise: float) -> SanitisedGradient:
        return SanitisedGradient(self.layout.n_teachers, self.settings.batch_size, 1.0, noise)

    @property
    def releases(self) -> tuple[str, ...]:
        return (f"{self.settings.n_steps} sanitised gradients of one of {self.layout.n_teachers} discriminators",)

    def asked(self, mechanism: Any, source: NoiseSource) -> int:
        return int(mechanism.draw(source))
