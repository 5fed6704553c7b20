"""What the networks' backends share: teachers on their parts, a conditional generator, and the order of a step."""

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from skfairdp import privacy
from skfairdp._docs import shared_docs
from skfairdp._tables import RELATION, BackendPlan, GeneratorBackend, Layout, Model, Rows
from skfairdp._teachers import position_partition
from skfairdp._typing import Array, Bools, Floats, Ints, Reals
from skfairdp._utils import PlainState, progress_bar
from skfairdp._utils._sklearn import Interval, StrOptions


@dataclass(eq=False, repr=False)
class ConvolutionalLayers(BaseEstimator):
    """Convolutional generator and discriminators, for ``hidden=`` of a backend; "cnn" is this with its defaults.

    A discriminator has one convolution (3 x 3, stride 2) for each entry of ``channels``, and every position of the
    image is shown which group and label is asked for. The generator has the same channels in reverse, doubling height
    and width, with group normalisation. The networks change what is learnt, not what is released or what it costs.

    Parameters
    ----------
    image_shape : tuple of three int, default=None
        Channels, height and width of the images that rows hold, channels first. None is for square images of one or
        three channels.
    channels : tuple of int, default=(16, 32)
        Of each block.

    Examples
    --------
    >>> from skfairdp.papers import ConvolutionalLayers, GSWGANBackend
    >>> GSWGANBackend(hidden=ConvolutionalLayers(channels=(8, 16))).get_params()["hidden__channels"]
    (8, 16)
    """

    image_shape: Sequence[int] | None = None
    channels: Sequence[int] = (16, 32)


def layers_for(backend: Any, layout: Layout) -> Any:
    """Widths of hidden layers, or the sizes of convolutions for rows of this public shape."""
    hidden, owner = backend.hidden, type(backend).__name__
    if isinstance(hidden, tuple | list):
        return tuple(hidden)
    from skfairdp._networks import ImageLayers

    asked = ConvolutionalLayers() if isinstance(hidden, str) else hidden
    if layout.kind != "units":
        raise ValueError(
            f"The 'hidden' parameter of {owner} asks for convolutions, which need images: an array of numbers between "
            "'bounds'. A table has columns of codes; give widths of hidden layers, such as (64, 64)."
        )
    try:
        return ImageLayers.of(asked.image_shape, asked.channels, layout.n_columns)
    except ValueError as error:
        raise ValueError(f"The 'hidden' parameter of {owner} does not fit the rows: {error}") from None


SAMPLINGS = ("importance", "stratified", "weights", "by_group")
NORMALIZATIONS = ("N1", "N2")

_LARGEST_RATIO = 20.0


def importance_weights(cells: Ints, rates: Floats, normalization: str = "N1") -> Floats:
    """Probabilities of sampling-importance resampling from the rows of **one** teacher to the rates wanted. h(x) = rate
    of (s, y) / share of (s, y) among these rows (PFGuard, Eq. 5, with the teacher's own counts in place of those of the
    whole table, which would let one record reach every teacher)."""
    counts = np.bincount(cells, minlength=len(rates))
    return normalized(rates[cells] / np.maximum(counts, 1)[cells], normalization)


def normalized(ratios: Floats, normalization: str) -> Floats:
    """Resampling probabilities from likelihood ratios; even ones where no ratio is positive."""
    total = ratios.sum()
    if not total > 0:
        return np.full(len(ratios), 1.0 / max(len(ratios), 1))
    if normalization == "N2" and len(ratios) > 1:
        rest = total - ratios
        if (rest > 1e-12 * total).all():
            ratios = ratios / rest
    return np.asarray(ratios / ratios.sum())


def density_ratios(rows: Floats, public: Floats, classifier: Any = None) -> Floats:
    """Ratio of densities, unbiased public rows to those of **one** teacher, where groups are unknown: the odds of a
    classifier that tells them apart (Choi et al. 2020), held within [1/20, 20]. A part on which none can be fitted gets
    even ratios, and no warning: what goes wrong in a part follows from its rows."""
    if not len(rows):
        return np.zeros(0)
    if classifier is None:
        classifier = LogisticRegression(C=0.1, class_weight="balanced", max_iter=200)
    truth = np.repeat([0, 1], [len(rows), len(public)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            odds = classifier.fit(np.vstack([rows, public]), truth).decision_function(rows)
        except Exception:
            odds = np.zeros(len(rows))
    return np.exp(np.clip(odds, -np.log(_LARGEST_RATIO), np.log(_LARGEST_RATIO)))


class TeacherParts:
    """The rows of each teacher, fixed for the whole fit, and batches of equal size from all of them. Which positions a
    teacher has depends on the number of rows and on public randomness alone. The uniform numbers that pick rows are
    public too, and the same whatever the rows are; only a teacher's own rows turn them into a batch."""

    def __init__(
        self,
        cells: Ints,
        rates: Floats,
        n_teachers: int,
        rng: Generator,
        *,
        balanced: bool = True,
        sampling: str = "importance",
        normalization: str = "N1",
        features: Floats | None = None,
        public: Floats | None = None,
    ) -> None:
        self._rng = rng
        self.assignment = position_partition(len(cells), n_teachers, random_state=rng)
        self.rows = [np.flatnonzero(self.assignment == teacher) for teacher in range(n_teachers)]
        self._reached, rates = [], np.atleast_2d(rates)
        self.loss_weights = np.ones(len(cells)) if sampling == "weights" else None
        for teacher, own in enumerate(self.rows):
            order, weights = np.arange(len(own)), np.full(len(own), 1.0 / len(own))
            if features is not None and public is not None:
                weights = normalized(density_ratios(features[own], public), normalization)
            elif balanced:
                weights = importance_weights(cells[own], rates[teacher % len(rates)], normalization)
                if sampling == "stratified":
                    order = np.argsort(cells[own], kind="stable")
            if self.loss_weights is not None:
                self.loss_weights[own] = weights * len(own)
                weights = np.full(len(own), 1.0 / len(own))
            reached = np.cumsum(weights[order])
            self._reached.append((own[order], reached / reached[-1]))
        self._systematic = sampling == "stratified" and balanced

    def batch(self, batch_size: int) -> Ints:
        """Row positions (n_teachers, batch_size), those of a line from one part only."""
        n_teachers = len(self.rows)
        if self._systematic:
            # Evenly spaced marks over rows sorted by cell: each cell's number is right up to one row.
            marks = (np.arange(batch_size) + self._rng.random((n_teachers, batch_size))) / batch_size
            marks = self._rng.permuted(marks, axis=1)
        else:
            marks = self._rng.random((n_teachers, batch_size))
        of_each = zip(self._reached, marks, strict=True)
        drawn = ((own, np.searchsorted(reached, mark, side="right")) for (own, reached), mark in of_each)
        return np.stack([own[np.minimum(places, len(own) - 1)] for own, places in drawn])


_MISSING_SHARE = 0.05  # of the squared cost of the answers, for how many values each column misses
_EVIDENCE = 4.0  # standard deviations of noise that such a count must exceed
_COUNTS = ("n_teachers", "n_steps", "batch_size", "teacher_steps", "latent")


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class AdversarialBackend(GeneratorBackend):
    """Base of the backends whose teachers are discriminators, with the parameters that all of them have. ``n_steps`` is
    declared: releases are counted by it before the fit, and no step is left out or added."""

    n_teachers: int = 100
    sampling: str | None = None
    normalization: str | None = None
    teacher_loss: str = "plain"
    n_steps: int = 10
    batch_size: int = 16
    teacher_steps: int = 2
    hidden: Sequence[int] | str | ConvolutionalLayers = (64, 64)
    latent: int = 16
    lr: float = 1e-3
    teacher_lr: float = 5e-4
    device: str = "cpu"
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: [Interval(Integral, 1, None, closed="left")] for name in _COUNTS},
        "sampling": [StrOptions(set(SAMPLINGS)), None],
        "normalization": [StrOptions(set(NORMALIZATIONS)), None],
        "teacher_loss": [StrOptions({"plain", "gold"})],
        "hidden": [tuple, list, StrOptions({"cnn"}), ConvolutionalLayers],
        **{name: [Interval(Real, 0, None, closed="neither")] for name in ("lr", "teacher_lr")},
        "device": [str],
        "verbose": ["verbose"],
    }

    #: What this backend releases in a step.
    _plan_of: ClassVar[type["AdversarialPlan"]]

    def plan(self, layout: Layout) -> "AdversarialPlan":
        """Declare the number of releases.

        {layout}

        {returns_plan}
        """
        self._checked(layout)
        return self._plan_of(self, layout)

    def _checked(self, layout: Layout) -> None:
        """Refuse what no fit on a table of this shape can do, before anything is spent."""
        from skfairdp._networks import resolve_device

        self._validate_params()
        owner = type(self).__name__
        resolve_device(self.device, owner=owner)
        layers_for(self, layout)
        given = [name for name in ("sampling", "normalization") if getattr(self, name) is not None]
        if layout.balance is None and given:
            raise ValueError(
                f"The '{given[0]}' parameter of {owner} sets how groups and labels are balanced, but the generator "
                "has balance=None. Leave it None, or give the generator a 'balance'."
            )
        if self.sampling == "by_group" and not layout.groups_known:
            raise ValueError(
                f"The 'sampling' parameter of {owner} is 'by_group', which gives each teacher the rows of one group: "
                "the generator needs 'groups'. Set it, or use sampling='importance'."
            )
        if self.n_teachers > layout.n_rows:
            raise ValueError(
                f"The 'n_teachers' parameter of {owner} must be an integer in [1, number of private rows]: "
                f"there are more teachers than rows ({self.n_teachers} > {layout.n_rows}). Use fewer."
            )


@dataclass(frozen=True)
class AdversarialPlan(BackendPlan):
    """A backend and the layout it serves; subclasses say what is released in a step. Networks that have learnt little
    make missing values anywhere: those of columns are counted, and made only where counts show some."""

    backend: Any
    layout: Layout
    loss: ClassVar[str] = "logistic"

    @property
    def n_answers(self) -> int:
        """One to each row that is asked about."""
        return int(self.backend.n_steps * self.backend.batch_size)

    def mechanism_at(self, scale: float) -> Any:
        """Of one answer."""
        raise NotImplementedError

    def answers_at(self, scale: float) -> privacy.DpEvent:
        """The event of all that the teachers let out at this noise scale."""
        return privacy.repeat(self.mechanism_at(scale).event, self.n_answers)

    @property
    @abstractmethod
    def released_answers(self) -> tuple[str, ...]:
        """What they let out, in words."""

    def missing_at(self, scale: float) -> privacy.GaussianMechanism | None:
        """For how many values each column misses: a replaced row moves each of these counts by one."""
        if not self.layout.n_nullable:
            return None
        sensitivity = math.sqrt(self.layout.n_nullable)
        sigma = sensitivity * scale / math.sqrt(_MISSING_SHARE)
        return privacy.GaussianMechanism(sigma, sensitivity=sensitivity, relation=self.layout.relation)

    def event_at(self, scale: float) -> privacy.DpEvent:
        missing = self.missing_at(scale)
        return privacy.compose(*([missing.event] if missing else []), self.answers_at(scale))

    @property
    def releases(self) -> tuple[str, ...]:
        return (*(["counts of missing values"] if self.layout.n_nullable else []), *self.released_answers)

    def release(self, rows: Rows, scale: float, noise: privacy.NoiseSource, rng: Generator) -> "NetworkModel":
        from skfairdp._networks import AdversarialTraining

        rows, missing = rows.at_their_places(self.layout.n_rows), self.missing_at(scale)
        if missing is not None:  # none is sampled in columns whose released counts show none
            places = [(j, rows.n_codes[j] - 2) for j, nullable in enumerate(rows.nullable) if nullable]
            counts = np.array([np.count_nonzero(rows.values[:, j] == code) for j, code in places])
            shown = missing.release(counts, noise) > _EVIDENCE * missing.sigma
            sampled = [codes.copy() for codes in rows.sampled]
            for (j, code), some in zip(places, shown, strict=True):
                sampled[j][code] = some
            rows = replace(rows, sampled=tuple(sampled))
        parts, hidden = self._parts(rows, rng), layers_for(self.backend, self.layout)
        training = AdversarialTraining(rows, parts, hidden, self.backend, loss=self.loss, rng=rng)
        with np.errstate(all="ignore"):  # whether an answer overflows is private; all that leaves is finite
            self.run(training, scale, noise, rng)
        return NetworkModel(training.net.requires_grad_(False).cpu())

    @abstractmethod
    def run(self, training: Any, scale: float, noise: privacy.NoiseSource, rng: Generator) -> None:
        """Teach, release and follow, as often as was declared."""

    def rounds(self, training: Any) -> Iterator[tuple[Any, Any]]:
        """In each the discriminators are taught, then a batch of the generator: its values, and what they are shown."""
        for _ in progress_bar(range(self.backend.n_steps), desc="releases", verbose=self.backend.verbose):
            training.teach()
            yield training.fakes(self.backend.batch_size)

    def _parts(self, rows: Rows, rng: Generator) -> TeacherParts:
        from skfairdp._networks import as_features

        rates: Floats = rows.rates.ravel()
        if self.backend.sampling == "by_group":  # a teacher's group follows its number: nothing private moves a row
            rates = (np.eye(len(rows.rates))[:, :, None] * rows.rates).reshape(len(rows.rates), -1)
        how: dict[str, Any] = {"balanced": self.layout.balance is not None}
        how |= {"sampling": self.backend.sampling or "importance", "normalization": self.backend.normalization or "N1"}
        if not self.layout.groups_known:
            told = {"public": rows.public, "features": rows.values}
            how |= {name: as_features(values, rows.n_codes) for name, values in told.items()}
        return TeacherParts(rows.cells, rates, self.backend.n_teachers, rng, **how)


class NetworkModel(PlainState, Model):
    """A generator network: a function of released values and public randomness."""

    def __init__(self, net: Any) -> None:
        self.net = net

    def sample(self, cells: Ints, rng: Generator) -> Array:
        return np.asarray(self.net.rows(cells, rng))


@dataclass(frozen=True)
class _RowGradients:
    """Of discriminators by each of the rows of a batch, clipped."""

    n_discriminators: int
    batch_size: int
    clip: float
    noise_multiplier: float
    relation: privacy.NeighboringRelation = RELATION


@dataclass(frozen=True)
class SanitisedGradient(_RowGradients):
    """GS-WGAN: the gradients of one discriminator, drawn in secret, by each of B generated rows, clipped, with noise;
    one subsampled release of the whole batch. One record changes what one discriminator would answer, by up to D = 2C√B
    for the batch; the others may answer anything up to as far away, so contributions have norm c = D around theirs: a
    Poisson-sampled pair with c = D. Step-by-step accounting asks that, given all that was let out, what discriminators
    know does not depend on earlier secret draws: **all** of them train at every step."""

    @property
    def _vector(self) -> privacy.GaussianMechanism:
        sensitivity = 2 * self.clip * math.sqrt(self.batch_size)
        sigma = self.noise_multiplier * sensitivity
        return privacy.GaussianMechanism(sigma, sensitivity=sensitivity, relation=self.relation)

    @property
    def event(self) -> privacy.DpEvent:
        """One step."""
        return privacy.ReplaceSampledGaussian(1 / self.n_discriminators, self.noise_multiplier, difference=1.0)

    def draw(self, source: privacy.NoiseSource) -> int:
        """Which discriminator answers. Never let out."""
        return privacy.SecretChoice(self.n_discriminators).draw(source)

    def clipped(self, gradients: Reals) -> Floats:
        """Rows of norm at most C."""
        return clipped_rows(gradients, self.clip)

    def release(self, gradients: Reals, source: privacy.NoiseSource) -> Floats:
        """Noisy clipped gradients (batch_size, n_features)."""
        if len(gradients) != self.batch_size:
            raise ValueError(f"One step releases {self.batch_size} gradients, but there are {len(gradients)}.")
        return self._vector.release(self.clipped(gradients), source)


@dataclass(frozen=True)
class MeanGradient(_RowGradients):
    """The mean over **all** discriminators of their gradients by each of B generated rows, clipped, with noise. One
    record changes what one discriminator answers, by up to 2C in each row: the mean moves by at most 2C√B /
    n_discriminators. Nothing is drawn, so nothing needs to be kept secret, and the event is a plain Gaussian."""

    @property
    def _vector(self) -> privacy.GaussianMechanism:
        sensitivity = 2 * self.clip * math.sqrt(self.batch_size) / self.n_discriminators
        return at_least(self.noise_multiplier, sensitivity, self.relation)

    @property
    def event(self) -> privacy.DpEvent:
        """One step."""
        return privacy.GaussianDpEvent(self.noise_multiplier)

    def mean(self, gradients: Reals) -> Floats:
        """Mean of gradients of norm at most C."""
        if gradients.shape[:2] != (self.n_discriminators, self.batch_size):
            raise ValueError(
                f"One step releases {self.n_discriminators} x {self.batch_size} gradients, but there are "
                f"{gradients.shape[0]} x {gradients.shape[1]}."
            )
        total = np.zeros(gradients.shape[1:])
        for own in gradients:
            total += clipped_rows(own, self.clip)
        return total / self.n_discriminators

    def release(self, gradients: Reals, source: privacy.NoiseSource) -> Floats:
        """Noisy mean of clipped gradients (batch_size, n_features)."""
        return self._vector.release(self.mean(gradients), source)


def at_least(
    noise_multiplier: float, sensitivity: float, relation: privacy.NeighboringRelation
) -> privacy.GaussianMechanism:
    """The mechanism whose noise over its sensitivity is what a plan declares for every step, or a rounding more."""
    sigma = math.nextafter(noise_multiplier * sensitivity, math.inf)
    return privacy.GaussianMechanism(sigma, sensitivity=sensitivity, relation=relation)


def clipped_rows(gradients: Reals, clip: float) -> Floats:
    """Rows of norm at most ``clip``, whatever comes in."""
    gradients = np.nan_to_num(np.asarray(gradients, dtype=np.float64), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-300)) * (1 - 1e-12))


@dataclass(frozen=True)
class CountsOfRows:
    """How many gradients of all discriminators are above a bound, by group of the generated rows, with noise. Which
    rows a group has is public: they are generated. One record changes one discriminator, whose rows may all change
    sides: a group's two counts move by up to its number of rows each, in opposite directions."""

    sizes: tuple[int, ...]
    noise_multiplier: float
    two_sided: bool
    relation: privacy.NeighboringRelation = RELATION

    @property
    def _vector(self) -> privacy.GaussianMechanism:
        sensitivity = math.sqrt((2 if self.two_sided else 1) * sum(size**2 for size in self.sizes))
        return at_least(self.noise_multiplier, sensitivity, self.relation)

    @property
    def event(self) -> privacy.DpEvent:
        """One step."""
        return privacy.GaussianDpEvent(self.noise_multiplier)

    def release(self, counts: Floats, source: privacy.NoiseSource) -> Floats:
        """Noisy counts."""
        return self._vector.release(counts, source)


@dataclass(frozen=True)
class TopSigns:
    """DataLens: the noisy sum of each teacher's signs of its k largest coordinates. One record changes one vote from v
    to v', each k entries of ±1: by at most 2√k in L2 norm. Cutting off few noisy votes is post-processing."""

    k: int
    sigma: float
    relation: privacy.NeighboringRelation = RELATION

    @property
    def _vector(self) -> privacy.GaussianMechanism:
        return privacy.GaussianMechanism(self.sigma, sensitivity=2 * math.sqrt(self.k), relation=self.relation)

    @property
    def event(self) -> privacy.DpEvent:
        """One aggregated gradient."""
        return self._vector.event

    def votes(self, gradients: Reals) -> Floats:
        """Sum over teachers of their top-k signs."""
        gradients = np.nan_to_num(np.asarray(gradients, dtype=np.float64))
        if self.k >= gradients.shape[1]:
            return np.sign(gradients).sum(axis=0)
        largest = np.argpartition(-np.abs(gradients), self.k, axis=1)[:, : self.k]
        signs = np.zeros(gradients.shape)
        np.put_along_axis(signs, largest, np.sign(np.take_along_axis(gradients, largest, axis=1)), axis=1)
        return signs.sum(axis=0)

    def release(self, votes: Floats, source: privacy.NoiseSource, *, least: float) -> Floats:
        """Signs of the coordinates with at least ``least`` noisy votes either way, 0 elsewhere."""
        noisy = self._vector.release(votes, source)
        return np.where(np.abs(noisy) >= least, np.sign(noisy), 0.0)


@dataclass(frozen=True)
class BinnedGradients:
    """G-PATE: for each coordinate of a publicly projected gradient, the bin that most teachers vote for. One record
    changes one teacher's bin: a histogram moves by √2, the largest count by 1. It is answered if that plus N(0, σ₁²)
    reaches a threshold, by the largest of the counts plus N(0, σ₂²). Both are charged, answered or not: μ² =
    coordinates (1/σ₁² + 2/σ₂²)."""

    n_coordinates: int
    sigma_threshold: float
    sigma: float
    relation: privacy.NeighboringRelation = RELATION

    @property
    def event(self) -> privacy.DpEvent:
        """One gradient."""
        noises = self.sigma_threshold, self.sigma / math.sqrt(2)
        return privacy.repeat(privacy.compose(*map(privacy.GaussianDpEvent, noises)), self.n_coordinates)

    def release(self, histograms: Ints, source: privacy.NoiseSource, *, threshold: float) -> tuple[Ints, Bools]:
        """Winning bin of each coordinate, and whether it is answered."""
        n = math.prod(histograms.shape[:2])  # answers: one record may move all of them
        largest = privacy.GaussianMechanism(self.sigma_threshold, sensitivity=math.sqrt(n), relation=self.relation)
        counts = privacy.GaussianMechanism(self.sigma, sensitivity=math.sqrt(2 * n), relation=self.relation)
        answered = largest.release(histograms.max(axis=2), source) >= threshold
        return counts.release(histograms, source).argmax(axis=2), answered
