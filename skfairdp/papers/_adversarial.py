"""What the networks' backends share: teachers on their parts, a conditional generator, and the order of a step."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp._tables import RELATION, BackendPlan, GeneratorBackend, Layout, Model, Rows
from skfairdp._utils import progress_bar
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.papers._convolutional import ConvolutionalLayers, layers_for
from skfairdp.papers._gan_samplers import NORMALIZATIONS, SAMPLINGS, TeacherParts
from skfairdp.privacy import DpEvent, GaussianMechanism, NoiseSource, compose

_MISSING_SHARE = 0.05  # of the squared cost of the answers, for how many values each column misses
_EVIDENCE = 4.0  # standard deviations of noise that such a count must exceed


@shared_docs
class AdversarialBackend(GeneratorBackend):
    """Base of the backends whose teachers are discriminators. Its parameters are those that all of them have.

    ``n_steps`` is declared: releases are counted by it before the fit, and no step is left out or added. Each backend
    has defaults of its own, and documents them.
    """

    _parameter_constraints: dict[str, Any] = {
        "n_teachers": [Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions(set(SAMPLINGS)), None],
        "normalization": [StrOptions(set(NORMALIZATIONS)), None],
        "teacher_loss": [StrOptions({"plain", "gold"})],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "teacher_steps": [Interval(Integral, 1, None, closed="left")],
        "hidden": [tuple, list, StrOptions({"cnn"}), ConvolutionalLayers],
        "latent": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "teacher_lr": [Interval(Real, 0, None, closed="neither")],
        "device": [str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_teachers: int,
        sampling: str | None,
        normalization: str | None,
        teacher_loss: str,
        n_steps: int,
        batch_size: int,
        teacher_steps: int,
        hidden: Sequence[int] | str | ConvolutionalLayers,
        latent: int,
        lr: float,
        teacher_lr: float,
        device: str,
        verbose: int,
    ) -> None:
        self.n_teachers = n_teachers
        self.sampling = sampling
        self.normalization = normalization
        self.teacher_loss = teacher_loss
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.teacher_steps = teacher_steps
        self.hidden = hidden
        self.latent = latent
        self.lr = lr
        self.teacher_lr = teacher_lr
        self.device = device
        self.verbose = verbose

    #: What this backend releases in a step.
    _plan_of: ClassVar[type["AdversarialPlan"]]

    def plan(self, layout: Layout) -> "AdversarialPlan":
        """Declare the number of releases.

        Parameters
        ----------
        {layout}

        Returns
        -------
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
        layers_for(self.hidden, layout.kind, layout.n_columns, owner)
        given = [name for name in ("sampling", "normalization") if getattr(self, name) is not None]
        if layout.balance is None and given:
            raise ValueError(
                f"The '{given[0]}' parameter of {owner} says how groups and labels are balanced, but the generator has "
                "balance=None. Leave it None, or give the generator a 'balance'."
            )
        if self.n_teachers > layout.n_rows:
            raise ValueError(
                f"The 'n_teachers' parameter of {owner} must be an integer in [1, number of private rows]: "
                f"there are more teachers than rows ({self.n_teachers} > {layout.n_rows}). Use fewer."
            )


@dataclass(frozen=True)
class AdversarialPlan(BackendPlan):
    """A backend and the layout it serves; subclasses say what is released in a step.

    Networks that have learnt little make missing values as often as any others. So the missing values of columns are
    counted, and made only where the counts show that there are some.
    """

    backend: Any
    layout: Layout
    loss: ClassVar[str] = "logistic"

    @abstractmethod
    def answers_at(self, scale: float) -> DpEvent:
        """The event of all that the teachers let out at this noise scale."""

    @property
    @abstractmethod
    def released_answers(self) -> tuple[str, ...]:
        """What they let out, in words."""

    def missing_at(self, scale: float) -> GaussianMechanism | None:
        """For how many values each column misses: a replaced row moves each of these counts by one."""
        if not self.layout.n_nullable:
            return None
        sensitivity = math.sqrt(self.layout.n_nullable)
        return GaussianMechanism(
            sensitivity * scale / math.sqrt(_MISSING_SHARE), sensitivity=sensitivity, relation=RELATION
        )

    def event_at(self, scale: float) -> DpEvent:
        missing = self.missing_at(scale)
        return compose(*([missing.event] if missing else []), self.answers_at(scale))

    @property
    def releases(self) -> tuple[str, ...]:
        return (*(["counts of missing values"] if self.layout.n_nullable else []), *self.released_answers)

    def release(self, rows: Rows, scale: float, noise: NoiseSource, rng: np.random.Generator) -> "NetworkModel":
        rows = self._without_missing(rows, scale, noise)
        training = self._training(rows, self._parts(rows, rng), rng)
        with np.errstate(all="ignore"):  # whether an answer overflows is private; all that leaves is finite
            self.run(training, scale, noise, rng)
        return NetworkModel(training.finished())

    @abstractmethod
    def run(self, training: Any, scale: float, noise: NoiseSource, rng: np.random.Generator) -> None:
        """Teach, release and follow, as often as was declared."""

    def _without_missing(self, rows: Rows, scale: float, noise: NoiseSource) -> Rows:
        """The same, with no missing values to be sampled in columns whose released counts show none."""
        mechanism = self.missing_at(scale)
        if mechanism is None:
            return rows
        places = [(j, rows.n_codes[j] - 2) for j, nullable in enumerate(rows.nullable) if nullable]
        counts = np.array([np.count_nonzero(rows.values[:, j] == code) for j, code in places])
        shown = mechanism.release(counts, noise) > _EVIDENCE * mechanism.sigma
        sampled = [codes.copy() for codes in rows.sampled]
        for (j, code), some in zip(places, shown, strict=True):
            sampled[j][code] = some
        return replace(rows, sampled=tuple(sampled))

    def steps(self) -> Iterator[int]:
        return progress_bar(range(self.backend.n_steps), desc="releases", verbose=self.backend.verbose)

    def _parts(self, rows: Rows, rng: np.random.Generator) -> TeacherParts:
        known = self.layout.groups_known
        return TeacherParts(
            rows.cells,
            rows.rates.ravel(),
            self.backend.n_teachers,
            rng,
            balanced=self.layout.balance is not None,
            sampling=self.backend.sampling or "importance",
            normalization=self.backend.normalization or "N1",
            features=None if known else _as_features(rows.values, rows.n_codes),
            public=None if known else _as_features(rows.public, rows.n_codes),
        )

    def _training(self, rows: Rows, parts: TeacherParts, rng: np.random.Generator) -> Any:
        from skfairdp._networks import AdversarialTraining

        backend = self.backend
        return AdversarialTraining(
            rows.values,
            rows.cells,
            rows.rates.ravel(),
            rows.n_codes,
            np.concatenate(rows.sampled) if rows.n_codes else np.zeros(0, dtype=bool),
            parts.batch,
            backend.n_teachers,
            weights=parts.loss_weights,
            hidden=layers_for(backend.hidden, self.layout.kind, self.layout.n_columns, type(backend).__name__),
            latent=backend.latent,
            lr=backend.lr,
            teacher_lr=backend.teacher_lr,
            batch_size=backend.batch_size,
            teacher_steps=backend.teacher_steps,
            loss=self.loss,
            gold=backend.teacher_loss == "gold",
            device=backend.device,
            owner=type(backend).__name__,
            rng=rng,
        )


def _as_features(values: Any, n_codes: tuple[int, ...]) -> NDArray[np.float64]:
    """Rows for a linear classifier: codes one-hot, units as they are."""
    if not n_codes:
        return np.asarray(values, dtype=np.float64)
    out = np.zeros((len(values), sum(n_codes)))
    np.put_along_axis(out, values + np.cumsum([0, *n_codes[:-1]]), 1.0, axis=1)
    return out


class NetworkModel(Model):
    """A generator network: a function of released values and public randomness."""

    def __init__(self, net: Any) -> None:
        self.net = net

    def sample(self, cells: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        return np.asarray(self.net.rows(cells, rng))
