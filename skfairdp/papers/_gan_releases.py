"""What teachers of a generative network let out: bits, sanitised gradients, votes. Each one owns noise and event."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skfairdp._tables import RELATION
from skfairdp.privacy import (
    DpEvent,
    GaussianDpEvent,
    GaussianMechanism,
    NoiseSource,
    NoisyThreshold,
    ReplaceSampledGaussian,
    SecretChoice,
    compose,
    repeat,
)


@dataclass(frozen=True)
class MajorityBits:
    """PATE-GAN: for each generated row one bit, whether most teachers take it for real, ``n₁ + N(0, σ²) ≥ k/2``.

    One record changes one teacher, hence one vote of n₁: sensitivity 1 for each bit.
    """

    n_teachers: int
    sigma: float

    @property
    def _bit(self) -> NoisyThreshold:
        return NoisyThreshold(
            self.sigma,
            n_teachers=self.n_teachers,
            threshold=self.n_teachers / 2,
            relation=RELATION,
        )

    @property
    def event(self) -> DpEvent:
        """One bit."""
        return self._bit.event

    def release(self, votes: NDArray[np.int64], source: NoiseSource) -> NDArray[np.bool_]:
        """A bit for each entry of ``votes`` (numbers of teachers that say "real")."""
        return self._bit.release_each(votes, source)


@dataclass(frozen=True)
class _RowGradients:
    """Of discriminators by each of the rows of a batch, clipped."""

    n_discriminators: int
    batch_size: int
    clip: float
    noise_multiplier: float


@dataclass(frozen=True)
class SanitisedGradient(_RowGradients):
    """GS-WGAN: the gradients of one discriminator, drawn in secret, by each of B generated rows, clipped, with noise.

    All B rows share the draw, so the event is one subsampled release of the whole batch. One record changes what one
    discriminator would answer, by up to 2C in each row: by D = 2C√B for the batch. The other discriminators may answer
    anything, up to as far away, so contributions have norm c = D around theirs: a Poisson-sampled pair with c = D, not
    one centred around zero.

    Accounting step by step asks that, given all that was let out, what the discriminators know does not depend on
    earlier secret draws. So **all** of them train at every step, not only the one drawn.
    """

    @property
    def _vector(self) -> GaussianMechanism:
        sensitivity = 2 * self.clip * math.sqrt(self.batch_size)
        return GaussianMechanism(self.noise_multiplier * sensitivity, sensitivity=sensitivity, relation=RELATION)

    @property
    def event(self) -> DpEvent:
        """One step."""
        return ReplaceSampledGaussian(1 / self.n_discriminators, self.noise_multiplier, difference=1.0)

    def draw(self, source: NoiseSource) -> int:
        """Which discriminator answers. Never let out."""
        return SecretChoice(self.n_discriminators).draw(source)

    def clipped(self, gradients: NDArray[np.floating]) -> NDArray[np.float64]:
        """Rows of norm at most C."""
        return clipped_rows(gradients, self.clip)

    def release(self, gradients: NDArray[np.floating], source: NoiseSource) -> NDArray[np.float64]:
        """Noisy clipped gradients (batch_size, n_features)."""
        if len(gradients) != self.batch_size:
            raise ValueError(f"One step lets out {self.batch_size} gradients, but there are {len(gradients)}.")
        return self._vector.release(self.clipped(gradients), source)


@dataclass(frozen=True)
class MeanGradient(_RowGradients):
    """The mean over **all** discriminators of their gradients by each of B generated rows, clipped, with noise.

    One record changes what one discriminator answers, by up to 2C in each row: the mean moves by at most
    2C√B / n_discriminators. Nothing is drawn, so nothing needs to be kept secret, and the event is a plain Gaussian.
    """

    @property
    def _vector(self) -> GaussianMechanism:
        sensitivity = 2 * self.clip * math.sqrt(self.batch_size) / self.n_discriminators
        return at_least(self.noise_multiplier, sensitivity)

    @property
    def event(self) -> DpEvent:
        """One step."""
        return GaussianDpEvent(self.noise_multiplier)

    def mean(self, gradients: NDArray[np.floating]) -> NDArray[np.float64]:
        """Mean of gradients of norm at most C."""
        if gradients.shape[:2] != (self.n_discriminators, self.batch_size):
            raise ValueError(
                f"One step lets out {self.n_discriminators} x {self.batch_size} gradients, but there are "
                f"{gradients.shape[0]} x {gradients.shape[1]}."
            )
        total = np.zeros(gradients.shape[1:])
        for own in gradients:
            total += clipped_rows(own, self.clip)
        return total / self.n_discriminators

    def release(self, gradients: NDArray[np.floating], source: NoiseSource) -> NDArray[np.float64]:
        """Noisy mean of clipped gradients (batch_size, n_features)."""
        return self._vector.release(self.mean(gradients), source)


def at_least(noise_multiplier: float, sensitivity: float) -> GaussianMechanism:
    """The mechanism whose noise over its sensitivity is what a plan declares for every step, or a rounding more."""
    sigma = math.nextafter(noise_multiplier * sensitivity, math.inf)
    return GaussianMechanism(sigma, sensitivity=sensitivity, relation=RELATION)


def clipped_rows(gradients: NDArray[np.floating], clip: float) -> NDArray[np.float64]:
    """Rows of norm at most ``clip``, whatever comes in."""
    gradients = np.nan_to_num(np.asarray(gradients, dtype=np.float64), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-300)) * (1 - 1e-12))


@dataclass(frozen=True)
class CountsOfRows:
    """How many gradients of all discriminators are above a bound, by group of the generated rows, with noise.

    Which rows a group has is public: they are generated. One record changes one discriminator, whose rows may all
    change sides: a group's two counts move by up to its number of rows each, in opposite directions.
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


@dataclass(frozen=True)
class TopSigns:
    """DataLens: each teacher votes with the signs of its k largest coordinates; votes are summed, with noise.

    One record changes one teacher's vote from v to v', each with k entries of ±1: by at most 2√k in L2 norm. Cutting
    off the coordinates with few noisy votes is post-processing.
    """

    k: int
    sigma: float

    @property
    def _vector(self) -> GaussianMechanism:
        return GaussianMechanism(self.sigma, sensitivity=2 * math.sqrt(self.k), relation=RELATION)

    @property
    def event(self) -> DpEvent:
        """One aggregated gradient."""
        return self._vector.event

    def votes(self, gradients: NDArray[np.floating]) -> NDArray[np.float64]:
        """Sum over teachers of their top-k signs."""
        gradients = np.nan_to_num(np.asarray(gradients, dtype=np.float64))
        if self.k >= gradients.shape[1]:
            return np.sign(gradients).sum(axis=0)
        largest = np.argpartition(-np.abs(gradients), self.k, axis=1)[:, : self.k]
        signs = np.zeros(gradients.shape)
        np.put_along_axis(signs, largest, np.sign(np.take_along_axis(gradients, largest, axis=1)), axis=1)
        return signs.sum(axis=0)

    def release(self, votes: NDArray[np.float64], source: NoiseSource, *, least: float) -> NDArray[np.float64]:
        """Signs of the coordinates with at least ``least`` noisy votes either way, 0 elsewhere."""
        noisy = self._vector.release(votes, source)
        return np.where(np.abs(noisy) >= least, np.sign(noisy), 0.0)


@dataclass(frozen=True)
class BinnedGradients:
    """G-PATE: for each coordinate of a publicly projected gradient, the bin that most teachers vote for.

    One record changes one teacher's bin in every coordinate: its histogram moves by √2, the largest count by 1. A
    coordinate is answered if the largest count plus N(0, σ₁²) reaches a threshold, by the largest of the counts plus
    N(0, σ₂²). Both are charged for every coordinate, answered or not: μ² = coordinates (1/σ₁² + 2/σ₂²).
    """

    n_coordinates: int
    sigma_threshold: float
    sigma: float

    @property
    def event(self) -> DpEvent:
        """One gradient."""
        one = compose(GaussianDpEvent(self.sigma_threshold), GaussianDpEvent(self.sigma / math.sqrt(2)))
        return repeat(one, self.n_coordinates)

    def release(
        self, histograms: NDArray[np.int64], source: NoiseSource, *, threshold: float
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Winning bin of each coordinate, and whether it is answered."""
        n_answers = math.prod(histograms.shape[:2])  # one record may move all of them
        largest = GaussianMechanism(self.sigma_threshold, sensitivity=math.sqrt(n_answers), relation=RELATION)
        counts = GaussianMechanism(self.sigma, sensitivity=math.sqrt(2 * n_answers), relation=RELATION)
        answered = largest.release(histograms.max(axis=2), source) >= threshold
        return counts.release(histograms, source).argmax(axis=2), answered
