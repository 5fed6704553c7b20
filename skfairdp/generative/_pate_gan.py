"""PATE-GAN with a Gaussian bit aggregator and a number of queries that is declared."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from skfairdp.generative._adversarial import AdversarialBackend, AdversarialPlan
from skfairdp.generative._backend import Layout
from skfairdp.generative._releases import MajorityBits
from skfairdp.privacy import DpEvent, NoiseSource, repeat
from skfairdp.utils._sklearn import Interval

__all__ = ["PATEGANBackend"]

_REMEMBERED = 10  # rounds: rows that the generator made long ago say little about those it makes now


class PATEGANBackend(AdversarialBackend):
    """Teachers tell real rows from generated ones; a student learns from their noisy majority, the generator from it.

    **Guarantee.** Differential privacy for one replaced record. All that leaves the teachers are
    ``n_steps * batch_size`` bits, "most take this generated row for real", each with Gaussian noise of its own on the
    count (sensitivity 1) and accounted exactly as a bit, whatever it says. Their number is declared; nothing depends on
    a data-dependent bound. Student and generator see generated rows and bits only.

    Jordon, Yoon & van der Schaar (2019), with fair batches of PFGuard inside the teachers. Two hundred bits at ε = 1
    need noise of about forty votes: there have to be many teachers, and there is little to learn from.

    Parameters
    ----------
    n_steps, batch_size : int, default=40, 16
        Rounds of queries, and bits in each.
    teacher_steps : int, default=2
        Steps of all teachers before each round.
    student_steps, generator_steps : int, default=10, 10
        Steps after each round, on the bits of the last ten rounds: post-processing.
    hidden : tuple of int, default=(64, 64)
    latent : int, default=16
    lr, teacher_lr : float, default=1e-3, 5e-4

    Examples
    --------
    >>> from skfairdp.generative import PATEGANBackend
    >>> PATEGANBackend(n_steps=10)
    PATEGANBackend(n_steps=10)
    """

    _parameter_constraints: dict[str, Any] = {
        **AdversarialBackend._parameter_constraints,
        "student_steps": [Interval(Integral, 1, None, closed="left")],
        "generator_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_steps: int = 40,
        batch_size: int = 16,
        teacher_steps: int = 2,
        student_steps: int = 10,
        generator_steps: int = 10,
        hidden: Sequence[int] = (64, 64),
        latent: int = 16,
        lr: float = 1e-3,
        teacher_lr: float = 5e-4,
    ) -> None:
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.teacher_steps = teacher_steps
        self.student_steps = student_steps
        self.generator_steps = generator_steps
        self.hidden = hidden
        self.latent = latent
        self.lr = lr
        self.teacher_lr = teacher_lr

    def plan(self, layout: Layout) -> "PATEGANPlan":
        """Declare the number of bits."""
        self._validate_params()
        return PATEGANPlan(self, layout)


class PATEGANPlan(AdversarialPlan):
    @property
    def n_bits(self) -> int:
        return self.settings.n_steps * self.settings.batch_size

    def bits_at(self, noise: float) -> MajorityBits:
        return MajorityBits(self.layout.n_teachers, noise * self.n_bits**0.5)

    def event_at(self, noise: float) -> DpEvent:
        return repeat(self.bits_at(noise).event, self.n_bits)

    @property
    def releases(self) -> tuple[str, ...]:
        return (f"{self.n_bits} noisy majorities of {self.layout.n_teachers} discriminators",)

    def run(self, training: Any, noise: float, source: NoiseSource) -> None:
        bits_at, asked, answers = self.bits_at(noise), [], []
        for _ in self.steps():
            training.teach()
            _, shown = training.fakes(self.settings.batch_size)
            asked.append(shown.detach())
            answers.append(bits_at.release(training.votes(shown), source))
            training.follow_student(
                asked[-_REMEMBERED:],
                np.concatenate(answers[-_REMEMBERED:]),
                student_steps=self.settings.student_steps,
                generator_steps=self.settings.generator_steps,
            )
