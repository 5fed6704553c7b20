"""What the primal steps of PF-LD release of the groups: moments of a model of the groups, or gradients."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._estimator import as_part
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._group_model import estimate_groups, public_features
from skfairdp.lagrangian._plan import PFLDPlan
from skfairdp.privacy import NoiseSource
from skfairdp.utils._sklearn import Interval

if TYPE_CHECKING:
    from torch import Tensor

    from skfairdp._networks import Network

__all__ = ["GroupModel", "NoisyGradients", "PrimalRelease", "as_primal"]

Array = NDArray[np.float64]


class PrimalRelease(Protocol):
    """A kind of primal release for certain rows, all of which is public; only ``release`` is given the groups."""

    def release(self, groups: NDArray[np.int64], noise: NoiseSource) -> dict[str, Any]:
        """Give what :func:`train_lagrangian` follows: ``membership`` or ``gradient``."""


class GroupModel(BaseEstimator):
    """Primal steps that follow estimates of the groups.

    Noisy moments of public features in each group are released once. From them the group of every row is estimated, and
    all steps follow those estimates at no further cost.

    Parameters
    ----------
    n_features : int, default=64
        Features of the model: of X, of X by class, and random nonlinear ones.

    See Also
    --------
    NoisyGradients : Release gradients instead.

    Examples
    --------
    >>> from skfairdp.lagrangian import GroupModel, PFLDClassifier
    >>> PFLDClassifier(primal=GroupModel(n_features=32)).get_params()["primal__n_features"]
    32
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_features": [Interval(Integral, 1, None, closed="left")]}
    usual_split: ClassVar[Mapping[str, float]] = {"sizes": 0.02, "primal": 0.49, "dual": 0.49}

    def __init__(self, n_features: int = 64) -> None:
        self.n_features = n_features

    def _planned(self) -> dict[str, Any]:
        """What a :class:`PFLDPlan` has to know."""
        return {"primal_steps": 1, "moments": True}

    def _on_rows(
        self,
        X: Array,
        rows: "Tensor",
        constraints: FairnessConstraints,
        plan: PFLDPlan,
        network: "Network",
        seed: int,
    ) -> PrimalRelease:
        described = None
        if plan.is_private:
            described = public_features(X, constraints.y, constraints.n_classes, self.n_features, seed)
        return _EstimatedGroups(plan, described, constraints.n_classes)


class _EstimatedGroups:
    def __init__(self, plan: PFLDPlan, described: tuple[Array, Array] | None, n_classes: int) -> None:
        self._plan, self._described, self._n_classes = plan, described, n_classes

    def release(self, groups: NDArray[np.int64], noise: NoiseSource) -> dict[str, Any]:
        if self._described is None:  # without privacy groups are their own estimates
            return {"membership": np.eye(self._plan.n_groups)[groups]}
        return {"membership": estimate_groups(*self._described, self._n_classes, groups, self._plan, noise)}


class NoisyGradients(BaseEstimator):
    """Primal steps that follow noisy gradients of the constraints.

    Parameters
    ----------
    n_steps : int, default=200
        Number of noisy gradients, spread over the training; each is followed until the next.
    sampling_probability : float, default=None
        Share of the rows that a gradient reads, a secret Poisson sample, which is faster. None reads all rows.
    max_grad_norm : float, default=None
        Clipping bound of centred gradients. None takes the largest norm there is, which is public: no bias.
    n_components : int, default=None
        Project the gradients on so many principal directions of the public centred gradients. None does not.

    See Also
    --------
    GroupModel : Release moments once instead.

    Examples
    --------
    >>> from skfairdp.lagrangian import NoisyGradients, PFLDClassifier
    >>> PFLDClassifier(primal=NoisyGradients(n_steps=50, sampling_probability=0.05)).get_params()["primal__n_steps"]
    50
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "sampling_probability": [Interval(Real, 0, 1, closed="neither"), None],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }
    usual_split: ClassVar[Mapping[str, float]] = {"sizes": 0.02, "primal": 0.78, "dual": 0.20}

    def __init__(
        self,
        n_steps: int = 200,
        sampling_probability: float | None = None,
        max_grad_norm: float | None = None,
        n_components: int | None = None,
    ) -> None:
        self.n_steps = n_steps
        self.sampling_probability = sampling_probability
        self.max_grad_norm = max_grad_norm
        self.n_components = n_components

    def _planned(self) -> dict[str, Any]:
        """What a :class:`PFLDPlan` has to know."""
        share = 1.0 if self.sampling_probability is None else self.sampling_probability
        return {"primal_steps": self.n_steps, "sampling_probability": share}

    def _on_rows(
        self,
        X: Array,
        rows: "Tensor",
        constraints: FairnessConstraints,
        plan: PFLDPlan,
        network: "Network",
        seed: int,
    ) -> PrimalRelease:
        return _GradientsOfRows(self, rows, constraints, plan, network)


class _GradientsOfRows:
    def __init__(
        self,
        primal: NoisyGradients,
        rows: "Tensor",
        constraints: FairnessConstraints,
        plan: PFLDPlan,
        network: "Network",
    ) -> None:
        self._of = (network, rows, constraints, plan)
        self._options: dict[str, Any] = {"clip": primal.max_grad_norm, "n_components": primal.n_components}

    def release(self, groups: NDArray[np.int64], noise: NoiseSource) -> dict[str, Any]:
        from skfairdp.lagrangian._constraint_gradient import ConstraintGradient

        network, rows, constraints, plan = self._of
        return {"gradient": ConstraintGradient.of(network, rows, groups, constraints, plan, noise, **self._options)}


_SHORTHANDS: dict[str, type[GroupModel] | type[NoisyGradients]] = {
    "group_model": GroupModel,
    "gradient": NoisyGradients,
}


def as_primal(primal: Any, owner: str) -> GroupModel | NoisyGradients:
    """The part that a ``primal`` parameter names or is, its own parameters checked."""
    part: GroupModel | NoisyGradients = as_part(primal, _SHORTHANDS, parameter="primal", owner=owner)
    return part
