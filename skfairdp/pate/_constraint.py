"""Where FairPATE and its baselines enforce parity: in the votes, on the labels, or in the loss of the student."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skfairdp._base import PublicRows
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessGate
from skfairdp.pate._base_pate import BasePATE
from skfairdp.pate._parity_penalty_student import ParityPenaltyStudent
from skfairdp.pate._soft_label_student import SoftLabelStudent

__all__ = ["ConstrainedPATE"]


class ConstrainedPATE(BasePATE):
    """The fairness half of FairPATEClassifier. All it reads is public or released."""

    min_count: int
    gate: str
    lam: float

    @property
    def _constrained(self) -> bool:
        return self.lam > 0 if self.constraint_at == "student_loss" else self._gated

    @property
    def _gated(self) -> bool:
        """Whether labels have to pass the gate, before or after they are released."""
        return self.gamma is not None and self.constraint_at in ("aggregation", "student_data")

    @property
    def _gates_votes(self) -> bool:
        return super()._gates_votes and self.constraint_at in ("aggregation", None)

    @property
    def _use_groups(self) -> str:
        return "required" if self._constrained else "optional"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        penalised = isinstance(self.student, ParityPenaltyStudent)
        if self.student is not None and penalised != (self.constraint_at == "student_loss"):
            raise ValueError(
                f"The 'student' parameter of {type(self).__name__} must be None or a ParityPenaltyStudent with "
                "constraint_at='student_loss', which changes the loss, and any other classifier elsewhere. Got "
                f"{type(self.student).__name__} and constraint_at={self.constraint_at!r}."
            )
        if penalised:
            self.student.check_parameters()

    def _check_groups(self, public: PublicRows) -> None:
        if not self._gated:
            return
        assert public.groups is not None
        smallest = int(np.bincount(public.groups, minlength=public.n_groups).min())
        if smallest < self.min_count:
            warnings.warn(
                f"The smallest group has {smallest} public rows, fewer than min_count={self.min_count}: its labels "
                "stay in the cold start, where the gate admits everything. Add public rows of that group, or lower "
                "'min_count'.",
                FairnessWarning,
                stacklevel=4,
            )

    def _check_answers(self, public: PublicRows, counts: NDArray[np.int64]) -> None:
        gate = self._gate(public, counts)
        if gate is not None and gate.is_stuck():
            warnings.warn(
                f"The gate of {type(self).__name__} ended where every further label would raise the disparity, so some "
                f"queries went unanswered (gamma={self.gamma}, min_count={self.min_count}). Raise 'gamma' or "
                "'min_count'; gamma * (min_count + 1) above 2 keeps it moving.",
                FairnessWarning,
                stacklevel=5,
            )

    def _gate(self, public: PublicRows, counts: NDArray[np.int64] | None = None) -> FairnessGate | None:
        if not self._gated:
            return None
        return FairnessGate(
            self._n_groups(public),
            len(self.classes_),
            gamma=self.gamma,
            min_count=self.min_count,
            gap=self.gap,
            gate=self.gate,
            counts=counts,
        )

    def _n_groups(self, public: PublicRows) -> int:
        if public.groups is None:
            raise ValueError(
                f"{type(self).__name__} was fitted without the groups of the public rows, so nothing can be held to "
                "parity afterwards. Fit it with sensitive_features_public."
            )
        return public.n_groups

    # ------------------------------------------------------------------ students

    def _teach_student(self, X: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
        if self.constraint_at == "student_loss":
            return self._fit_penalised_student(*self._lessons(X, labels))
        if self.constraint_at == "student_data" and self._gated and self.student is None:
            return self._fit_default_student(*self._lessons(X, labels, answered_only=True))
        return super()._teach_student(X, labels)

    def _fit_penalised_student(self, X: NDArray[np.float64], shares: NDArray[np.float64], noise_std: float) -> Any:
        public, constant = self._public, self._constant_student(len(X))
        if constant is not None:
            return constant
        student = ParityPenaltyStudent(gap=self.gap) if self.student is None else clone(self.student)
        student.set_params(lam=self.lam)
        n_groups = self._n_groups(public) if self._constrained else public.n_groups
        student = self._seeded(student).fit(
            X, shares, noise_std=noise_std, X_public=public.X, groups=public.groups, n_groups=n_groups or None
        )
        if self.gamma is not None and student.gap_ is not None and student.gap_ > self.gamma:
            warnings.warn(
                f"With lam={self.lam} the student of {type(self).__name__} has a demographic disparity of "
                f"{student.gap_:.3f} on the public rows, above gamma={self.gamma}. Raise 'lam' (refit_student(lam=...) "
                "is free), or use IDP3 at prediction.",
                FairnessWarning,
                stacklevel=6,
            )
        return student

    def _held_to_parity(self, student: Any) -> Any:
        if not self._gated or not isinstance(student, SoftLabelStudent):
            return student
        held = student.with_gamma(self.gamma)
        if not held.satisfied_:
            warnings.warn(
                f"The smallest demographic disparity the student of {type(self).__name__} reaches on the public rows "
                f"is {held.gap_:.3f}, above gamma={self.gamma}. Add public rows, or use IDP3 at prediction.",
                FairnessWarning,
                stacklevel=7,
            )
        return held
