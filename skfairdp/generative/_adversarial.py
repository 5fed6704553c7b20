"""What the networks' backends share: teachers on their parts, a conditional generator, and the order of a step."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.generative._backend import BackendPlan, FittedModel, GeneratorBackend, Layout, PrivateRows
from skfairdp.generative._samplers import TeacherParts
from skfairdp.privacy import NoiseSource
from skfairdp.utils import progress_bar
from skfairdp.utils._sklearn import Interval

__all__ = ["AdversarialBackend", "AdversarialPlan", "NetworkModel"]


class AdversarialBackend(GeneratorBackend):
    """Base of the backends whose teachers are discriminators. Its attributes are the parameters that all of them have.

    ``n_steps`` is declared: releases are counted by it before the fit, and no step is left out or added. Each backend
    documents the rest.
    """

    _parameter_constraints: dict[str, Any] = {
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "teacher_steps": [Interval(Integral, 1, None, closed="left")],
        "hidden": [tuple, list],
        "latent": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "teacher_lr": [Interval(Real, 0, None, closed="neither")],
    }

    n_steps: int
    batch_size: int
    teacher_steps: int
    hidden: Sequence[int]
    latent: int
    lr: float
    teacher_lr: float


@dataclass(frozen=True)
class AdversarialPlan(BackendPlan):
    """Parameters of the backend and the layout; subclasses say what is released in a step.

    Parameters
    ----------
    settings : AdversarialBackend
    layout : Layout
    """

    settings: Any
    layout: Layout
    loss = "logistic"

    def __post_init__(self) -> None:
        from skfairdp._networks import resolve_device

        resolve_device(self.layout.settings["device"], owner="PFGuardGenerator")
        if self.layout.n_teachers > self.layout.n_rows:
            raise ValueError(
                "The 'n_teachers' parameter of PFGuardGenerator must be an integer in [1, number of private rows]: "
                f"there are more teachers than rows ({self.layout.n_teachers} > {self.layout.n_rows}). Use fewer."
            )

    def learn(self, rows: PrivateRows, noise: float, source: NoiseSource) -> "NetworkModel":
        from skfairdp._networks import AdversarialTraining

        layout, settings = self.layout, self.settings
        strata = rows.groups * layout.n_classes + rows.labels
        unknown = layout.settings["unknown_groups"]
        parts = TeacherParts(
            strata,
            rows.law.ravel(),
            layout.n_teachers,
            layout.random_state,
            balanced=layout.settings["balance"] is not None,
            sampling=layout.settings["sampling"],
            normalization=layout.settings["normalization"],
            features=_as_features(rows.values, rows.n_cells) if unknown else None,
            reference=_as_features(rows.reference, rows.n_cells) if unknown else None,
        )
        training = AdversarialTraining(
            rows.values,
            strata,
            rows.law.ravel(),
            rows.n_cells,
            np.concatenate(rows.sampled) if rows.n_cells else np.zeros(0, dtype=bool),
            parts.batch,
            layout.n_teachers,
            weights=parts.loss_weights,
            hidden=tuple(settings.hidden),
            latent=settings.latent,
            lr=settings.lr,
            teacher_lr=settings.teacher_lr,
            batch_size=settings.batch_size,
            teacher_steps=settings.teacher_steps,
            loss=self.loss,
            gold=layout.settings["teacher_loss"] == "gold",
            device=layout.settings["device"],
            owner="PFGuardGenerator",
            rng=layout.random_state,
        )
        with np.errstate(all="ignore"):  # whether an answer overflows is private; all that leaves is finite
            self.run(training, noise, source)
        return NetworkModel(training.finished())

    @abstractmethod
    def run(self, training: Any, noise: float, source: NoiseSource) -> None:
        """Teach, release and follow, as often as was declared."""

    def steps(self) -> Any:
        return progress_bar(range(self.settings.n_steps), desc="releases", verbose=self.layout.settings["verbose"])


def _as_features(values: Any, n_cells: tuple[int, ...]) -> NDArray[np.float64]:
    """Rows for a linear classifier: cells one by one, units as they are."""
    if not n_cells:
        return np.asarray(values, dtype=np.float64)
    out = np.zeros((len(values), sum(n_cells)))
    np.put_along_axis(out, values + np.cumsum([0, *n_cells[:-1]]), 1.0, axis=1)
    return out


class NetworkModel(FittedModel):
    """A generator network: a function of released values and public randomness.

    Parameters
    ----------
    net : GeneratorNet
    """

    def __init__(self, net: Any) -> None:
        self.net = net

    def sample(self, strata: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        return np.asarray(self.net.rows(strata, rng))
