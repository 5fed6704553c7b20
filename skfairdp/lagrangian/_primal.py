"""What the primal steps of PF-LD release of the groups: moments of a model of the groups, or gradients."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._estimator import as_part
from skfairdp._utils._sklearn import Interval
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._group_model import PublicFeatures, estimate_groups, group_coefficients
from skfairdp.lagrangian._plan import PFLDPlan
from skfairdp.privacy import NoiseSource

if TYPE_CHECKING:
    from torch import Tensor

    from skfairdp._networks import Network

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
    #: From so many rows of a larger table the model learns, and these are whom multipliers follow; all rows are
    #: estimated by it and have a loss. At ε = 1 its noise then moves the log-odds of a row by .02 between equal groups,
    #: and by .6 for a group of one row in a hundred, whose rate chance moves by .014.
    MOST_ROWS: ClassVar[int] = 2**17

    def __init__(self, n_features: int = 64) -> None:
        self.n_features = n_features

    def _planned(self) -> dict[str, Any]:
        """What a :class:`PFLDPlan` has to know."""
        return {"primal_steps": 1, "moments": True}

    def _chosen(self, n_rows: int, seed: int) -> NDArray[np.int64] | None:
        """Positions of the rows that the model learns from, in their order; None for all."""
        if n_rows <= self.MOST_ROWS:
            return None
        rng = np.random.default_rng([seed, 1])
        return np.sort(rng.choice(n_rows, self.MOST_ROWS, replace=False, shuffle=False))

    def _on_rows(
        self,
        X: Array,
        read: "Tensor",
        rows: "Tensor",
        constraints: FairnessConstraints,
        plan: PFLDPlan,
        network: "Network",
        seed: int,
    ) -> PrimalRelease:
        if not plan.is_private:
            return _KnownGroups(plan)
        chosen, y, n_classes = self._chosen(len(read), seed), constraints.y, constraints.n_classes
        which = chosen if len(X) == len(read) else None  # of rows that are not in memory X has these alone
        described = PublicFeatures(X, y if chosen is None else y[chosen], n_classes, self.n_features, seed, which)
        return _EstimatedGroups(plan, described, n_classes, chosen, read, y)


class _KnownGroups:
    """Without privacy groups are their own estimates."""

    def __init__(self, plan: PFLDPlan) -> None:
        self._plan = plan

    def release(self, groups: NDArray[np.int64], noise: NoiseSource) -> dict[str, Any]:
        return {"membership": np.eye(self._plan.n_groups)[groups]}


@dataclass(frozen=True)
class _EstimatedGroups:
    """Estimates from the moments of described rows: of these rows, or of all where only some were chosen."""

    plan: PFLDPlan
    described: PublicFeatures
    n_classes: int
    chosen: NDArray[np.int64] | None
    rows: "Tensor"
    y: NDArray[np.int64]

    def release(self, groups: NDArray[np.int64], noise: NoiseSource) -> dict[str, Any]:
        described = self.described
        of_rows = described.features, described.weights, self.n_classes
        if self.chosen is None:
            return {"membership": estimate_groups(*of_rows, groups, self.plan, noise)}
        coefficients = group_coefficients(*of_rows, groups[self.chosen], self.plan, noise)
        return {"membership": described.estimates(coefficients, self.rows.cpu(), self.y)}


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

    def _chosen(self, n_rows: int, seed: int) -> NDArray[np.int64] | None:
        return None

    def _on_rows(
        self,
        X: Array,
        read: "Tensor",
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
