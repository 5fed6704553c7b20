"""What a fitted SF-PATE does without reading a group again: predict, and train another student."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skfairdp.lagrangian import LagrangianClassifier, as_perceptron
from skfairdp.pate._learning import LearnsFromVotes
from skfairdp.pate._sfpate_student import Released, fair_student, plain_student

__all__ = ["AfterVotes"]

PROXIMAL_WEIGHT = 1e-3
#: What says what is fair, and to whom.
FAIR = frozenset({"fair_estimator", "constraints", "moments"})


class AfterVotes(LearnsFromVotes):
    _shorthands: ClassVar[dict[str, Any]] = {}
    """The half of SFPATEClassifier that reads released votes and public rows only."""

    variant: str
    voting: str
    fair_estimator: Any
    student: Any
    proximal_weight: float | None
    groups_: NDArray[Any]
    _released: Released
    _student_seed: int

    @property
    def _given_student(self) -> Any:
        return self.fair_estimator if self.variant == "student" else self.student

    @property
    def _free_parameters(self) -> frozenset[str]:
        """What refit can change: a search pays once for all their values."""
        return frozenset({"proximal_weight", *(FAIR if self.variant == "student" else {"student"})})

    def refit(self, **changes: Any) -> Any:
        """Train another student from the votes already released, at no privacy cost.

        Works on the estimator that was fitted, and on what this returns. Copies and pickles hold no rows, and cannot.

        Parameters
        ----------
        **changes
            Other values of ``fair_estimator``, ``constraints`` and ``moments`` ("student" variant), of ``student``
            ("teacher" variant), and of ``proximal_weight``; what is absent stays as it is.

        Returns
        -------
        estimator
            A new fitted estimator with the same ``privacy_``; this one is unchanged, and nothing is charged.

        Raises
        ------
        ValueError
            The released votes do not determine the answer asked for, or the estimator is a copy without rows.
        """
        check_is_fitted(self, "student_")
        owner = type(self).__name__
        for name in changes:
            if self.variant == "teacher" and name in FAIR:
                raise ValueError(
                    f"The teachers of {owner}(variant='teacher') are fair already, so another '{name}' needs a new "
                    "fit. Their votes determine another 'student' or 'proximal_weight'."
                )
            self._refuse_paid(name)
        if not hasattr(self, "_released"):
            raise ValueError(
                f"This {owner} is a copy or comes from a pickle, which hold no rows to train a student on. Call "
                "refit on the estimator that was fitted."
            )
        other: Any = clone(self).set_params(**changes)
        other._validate_params()
        network = other._check_learners()
        parameters = other.get_params(deep=False)
        for name, value in vars(self).items():
            if name not in parameters:
                setattr(other, name, value)
        other.student_ = other._teach_student(network)
        return other

    def _teach_student(self, network: LagrangianClassifier) -> Any:
        """Post-processing of released votes and public rows; the same seed for every student."""
        released, rng = self._released, np.random.default_rng(self._student_seed)
        weight = self.proximal_weight
        if weight is None:
            weight = PROXIMAL_WEIGHT if self.voting == "gnmax" else 0.0
        if self.variant == "student":
            given = None if as_perceptron(self.fair_estimator) is not None else self.fair_estimator
            return fair_student(released, given, network, weight, rng)
        if as_perceptron(self.student) is not None:  # learns shares, and may be tied to θ*
            return plain_student(released, None, self.student, weight, rng)
        return plain_student(released, self.student, LagrangianClassifier(constraints=None), weight, rng)

    def __getstate__(self) -> dict[str, Any]:
        """All but the rows: they are public, but nobody expects them in a model that is handed on."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        state = dict(state)
        state.pop("_released", None)
        return state
