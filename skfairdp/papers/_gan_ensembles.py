"""Three published ensembles of discriminators, each with the accounting that holds: PATE-GAN, G-PATE and DataLens.

They reproduce papers. At a small ε they learn little, for their noise is that of single rows or bits.
"""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from skfairdp._docs import shared_docs
from skfairdp._utils._sklearn import Interval
from skfairdp.papers._adversarial import (
    AdversarialBackend,
    AdversarialPlan,
    BinnedGradients,
    ConvolutionalLayers,
    MajorityBits,
    TopSigns,
)
from skfairdp.privacy import DpEvent, NoiseSource, repeat

_REMEMBERED = 10  # rounds of PATE-GAN: rows made long ago say little about those that the generator makes now
_THRESHOLD_SHARE = 0.2  # of G-PATE's squared cost


class PATEGANPlan(AdversarialPlan):
    @property
    def n_bits(self) -> int:
        return self.backend.n_steps * self.backend.batch_size

    def bits_at(self, scale: float) -> MajorityBits:
        return MajorityBits(self.backend.n_teachers, scale * self.n_bits**0.5)

    def answers_at(self, scale: float) -> DpEvent:
        return repeat(self.bits_at(scale).event, self.n_bits)

    @property
    def released_answers(self) -> tuple[str, ...]:
        return (f"{self.n_bits} noisy majorities of {self.backend.n_teachers} discriminators",)

    def run(self, training: Any, scale: float, noise: NoiseSource, rng: np.random.Generator) -> None:
        bits_at, asked, answers = self.bits_at(scale), [], []
        for _ in self.steps():
            training.teach()
            _, shown = training.fakes(self.backend.batch_size)
            asked.append(shown.detach())
            answers.append(bits_at.release(training.votes(shown), noise))
            training.follow_student(
                asked[-_REMEMBERED:],
                np.concatenate(answers[-_REMEMBERED:]),
                student_steps=self.backend.student_steps,
                generator_steps=self.backend.generator_steps,
            )


@shared_docs
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
    {discriminators}
    n_steps, batch_size : int, default=40, 16
        Rounds of queries, and bits in each.
    teacher_steps : int, default=2
        Steps of all teachers before each round.
    student_steps, generator_steps : int, default=10, 10
        Steps after each round, on the bits of the last ten rounds: post-processing.
    {networks_of_gan, device, verbose}

    Examples
    --------
    >>> from skfairdp.papers import PATEGANBackend
    >>> PATEGANBackend(n_steps=10)
    PATEGANBackend(n_steps=10)
    """

    _plan_of = PATEGANPlan
    _parameter_constraints: dict[str, Any] = {
        **AdversarialBackend._parameter_constraints,
        "student_steps": [Interval(Integral, 1, None, closed="left")],
        "generator_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_teachers: int = 100,
        sampling: str | None = None,
        normalization: str | None = None,
        teacher_loss: str = "plain",
        n_steps: int = 40,
        batch_size: int = 16,
        teacher_steps: int = 2,
        student_steps: int = 10,
        generator_steps: int = 10,
        hidden: Sequence[int] | str | ConvolutionalLayers = (64, 64),
        latent: int = 16,
        lr: float = 1e-3,
        teacher_lr: float = 5e-4,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_teachers=n_teachers,
            sampling=sampling,
            normalization=normalization,
            teacher_loss=teacher_loss,
            n_steps=n_steps,
            batch_size=batch_size,
            teacher_steps=teacher_steps,
            hidden=hidden,
            latent=latent,
            lr=lr,
            teacher_lr=teacher_lr,
            device=device,
            verbose=verbose,
        )
        self.student_steps = student_steps
        self.generator_steps = generator_steps


class GPATEPlan(AdversarialPlan):
    @property
    def n_gradients(self) -> int:
        return int(self.backend.n_steps * self.backend.batch_size)

    def bins_at(self, scale: float) -> BinnedGradients:
        votes = scale * math.sqrt(self.n_gradients * self.backend.n_coordinates)
        return BinnedGradients(
            self.backend.n_coordinates,
            sigma_threshold=votes / math.sqrt(_THRESHOLD_SHARE),
            sigma=votes * math.sqrt(2 / (1 - _THRESHOLD_SHARE)),
        )

    def answers_at(self, scale: float) -> DpEvent:
        return repeat(self.bins_at(scale).event, self.n_gradients)

    @property
    def released_answers(self) -> tuple[str, ...]:
        n = self.n_gradients * self.backend.n_coordinates
        return (f"{n} noisy thresholds", f"{n} noisy argmaxes over {self.backend.n_bins} bins")

    def run(self, training: Any, scale: float, noise: NoiseSource, rng: np.random.Generator) -> None:
        mechanism, backend = self.bins_at(scale), self.backend
        shape = (training.width, backend.n_coordinates)
        projection = rng.normal(size=shape)
        width = 4.0 / backend.n_bins
        for _ in self.steps():
            training.teach()
            values, shown = training.fakes(backend.batch_size)
            private = np.nan_to_num(training.directions(shown).astype(np.float64))
            private /= np.maximum(np.linalg.norm(private, axis=2, keepdims=True), 1e-12)
            bins = np.clip(np.floor((private @ projection + 2.0) / width), 0, backend.n_bins - 1).astype(np.int64)
            histograms = (bins[..., None] == np.arange(backend.n_bins)).sum(axis=0)
            winners, answered = mechanism.release(histograms, noise, threshold=backend.threshold * backend.n_teachers)
            centres = np.where(answered, (winners + 0.5) * width - 2.0, 0.0)
            training.follow(values, centres @ projection.T / backend.n_coordinates)


@shared_docs
class GPATEBackend(AdversarialBackend):
    """Teachers vote on bins of a few random directions of the gradient.

    **Guarantee.** Differential privacy for one replaced record: for each of ``n_steps * batch_size`` gradients and each
    of ``n_coordinates`` directions a noisy threshold and a noisy argmax over bins, all charged, answered or not. The
    published budgets hold only with data-dependent bounds.

    Long et al. (2021), with fair batches of PFGuard.

    Parameters
    ----------
    {discriminators}
    n_steps, batch_size : int, default=10, 16
        Steps of the generator, and rows (aggregated gradients) in each.
    {teacher_steps}
    n_coordinates : int, default=10
        Random directions, public and fixed for the fit.
    n_bins : int, default=5
        Cells of a coordinate between −2 and 2, of gradients of norm one.
    threshold : float, default=0.4
        Share of the teachers that must agree on a bin.
    {networks_of_gan, device, verbose}

    Examples
    --------
    >>> from skfairdp.papers import GPATEBackend
    >>> GPATEBackend(n_coordinates=5)
    GPATEBackend(n_coordinates=5)
    """

    _plan_of = GPATEPlan
    _parameter_constraints: dict[str, Any] = {
        **AdversarialBackend._parameter_constraints,
        "n_coordinates": [Interval(Integral, 1, None, closed="left")],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        *,
        n_teachers: int = 100,
        sampling: str | None = None,
        normalization: str | None = None,
        teacher_loss: str = "plain",
        n_steps: int = 10,
        batch_size: int = 16,
        teacher_steps: int = 2,
        n_coordinates: int = 10,
        n_bins: int = 5,
        threshold: float = 0.4,
        hidden: Sequence[int] | str | ConvolutionalLayers = (64, 64),
        latent: int = 16,
        lr: float = 1e-3,
        teacher_lr: float = 5e-4,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_teachers=n_teachers,
            sampling=sampling,
            normalization=normalization,
            teacher_loss=teacher_loss,
            n_steps=n_steps,
            batch_size=batch_size,
            teacher_steps=teacher_steps,
            hidden=hidden,
            latent=latent,
            lr=lr,
            teacher_lr=teacher_lr,
            device=device,
            verbose=verbose,
        )
        self.n_coordinates = n_coordinates
        self.n_bins = n_bins
        self.threshold = threshold


class DataLensPlan(AdversarialPlan):
    @property
    def n_gradients(self) -> int:
        return int(self.backend.n_steps * self.backend.batch_size)

    def signs_at(self, scale: float) -> TopSigns:
        return TopSigns(self.backend.k, scale * 2 * math.sqrt(self.backend.k * self.n_gradients))

    def answers_at(self, scale: float) -> DpEvent:
        return repeat(self.signs_at(scale).event, self.n_gradients)

    @property
    def released_answers(self) -> tuple[str, ...]:
        return (f"{self.n_gradients} sums of top-{self.backend.k} signs",)

    def run(self, training: Any, scale: float, noise: NoiseSource, rng: np.random.Generator) -> None:
        mechanism = self.signs_at(scale)
        for _ in self.steps():
            training.teach()
            values, shown = training.fakes(self.backend.batch_size)
            private = training.directions(shown)
            released = [
                mechanism.release(
                    mechanism.votes(private[:, row]), noise, least=self.backend.min_norm * mechanism.sigma
                )
                for row in range(self.backend.batch_size)
            ]
            training.follow(values, np.stack(released))


@shared_docs
class DataLensBackend(AdversarialBackend):
    """Teachers vote with the signs of their gradients' largest coordinates.

    **Guarantee.** Differential privacy for one replaced record: ``n_steps * batch_size`` sums of votes, each with
    sensitivity 2√k and Gaussian noise of its own. Cutting off weak votes is post-processing. No data-dependent bound is
    used: the published one is about an argmax, which this is not.

    Wang et al. (2021), with fair batches of PFGuard.

    Parameters
    ----------
    {discriminators}
    n_steps, batch_size : int, default=10, 32
        Steps of the generator, and rows (aggregated gradients) in each.
    {teacher_steps}
    k : int, default=20
        Coordinates that a teacher votes on.
    min_norm : float, default=1.0
        Votes below this many standard deviations of the noise count as none.
    {networks_of_gan, device, verbose}

    Examples
    --------
    >>> from skfairdp.papers import DataLensBackend
    >>> DataLensBackend(k=50)
    DataLensBackend(k=50)
    """

    _plan_of = DataLensPlan
    _parameter_constraints: dict[str, Any] = {
        **AdversarialBackend._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
        "min_norm": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_teachers: int = 100,
        sampling: str | None = None,
        normalization: str | None = None,
        teacher_loss: str = "plain",
        n_steps: int = 10,
        batch_size: int = 32,
        teacher_steps: int = 2,
        k: int = 20,
        min_norm: float = 1.0,
        hidden: Sequence[int] | str | ConvolutionalLayers = (64, 64),
        latent: int = 16,
        lr: float = 1e-3,
        teacher_lr: float = 5e-4,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_teachers=n_teachers,
            sampling=sampling,
            normalization=normalization,
            teacher_loss=teacher_loss,
            n_steps=n_steps,
            batch_size=batch_size,
            teacher_steps=teacher_steps,
            hidden=hidden,
            latent=latent,
            lr=lr,
            teacher_lr=teacher_lr,
            device=device,
            verbose=verbose,
        )
        self.k = k
        self.min_norm = min_norm
