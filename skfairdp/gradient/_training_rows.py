"""What private SGD trains on: rows, classes, and the groups of public or of private rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._base import FairPrivateMixin, PublicRows

__all__ = ["ReadsTrainingRows", "TrainingRows"]


@dataclass(frozen=True)
class TrainingRows:
    """Rows that have passed every check.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Private.
    codes : ndarray of int of shape (n_rows,)
        Private class codes.
    classes : ndarray of shape (n_classes,)
    public : PublicRows or None
    groups : ndarray of int of shape (n_rows,) or None
        Private group codes, where the fairness term needs them.
    domain : ndarray or None
        Names of the groups, where any are used.
    """

    X: NDArray[np.float64]
    codes: NDArray[np.int64]
    classes: NDArray[Any]
    public: PublicRows | None
    groups: NDArray[np.int64] | None
    domain: NDArray[np.object_] | None


class ReadsTrainingRows(FairPrivateMixin):
    """For a classifier with the parameters ``lam``, ``public``, ``public_size`` and ``n_rows``."""

    lam: float
    public: str
    public_size: float | None
    n_rows: int | None

    @property
    def _signed(self) -> bool:
        """Whether parity is a loss of the private rows."""
        return self.public == "none" and self.lam > 0

    def _read_rows(
        self, X: Any, y: Any, sensitive_features: Any, X_public: Any, sensitive_features_public: Any
    ) -> TrainingRows:
        self._refuse_counted_rows()
        features, groups_in_X = self._split_features(
            X, reset=True, read_groups=self._signed or self.public_size is not None
        )
        classes, codes = self._encode_classes(self._check_target(y, len(features)))
        if self.public == "none":
            self._refuse_public_rows(X_public, sensitive_features_public)
            groups = domain = None
            if self._signed:
                groups, domain = self._private_groups(groups_in_X, sensitive_features, len(features))
            return TrainingRows(features, codes, classes, None, groups, domain)
        if self.lam == 0 and X_public is None and self.public_size is None:
            return TrainingRows(features, codes, classes, None, None, None)
        features, codes, public = self._public_rows(
            features,
            codes,
            groups_in_X,
            sensitive_features,
            X_public,
            sensitive_features_public,
            use_groups="required" if self.lam > 0 else "optional",
        )
        return TrainingRows(features, codes, classes, public, None, public.domain)

    def _refuse_counted_rows(self) -> None:
        """Which rows are held out follows from how many there are; with a declared number that is nothing public."""
        if self.n_rows is not None and self.public_size is not None:
            raise ValueError(
                f"{type(self).__name__} got 'n_rows' together with 'public_size'. Which rows are held out as public "
                "follows from the true number of rows, which 'n_rows' keeps private: one record more would make other "
                "records public. Pass public rows as X_public, or leave 'n_rows' out, which makes the number public."
            )

    def _refuse_public_rows(self, X_public: Any, sensitive_features_public: Any) -> None:
        if X_public is not None or sensitive_features_public is not None or self.public_size is not None:
            raise ValueError(
                f"{type(self).__name__} got public rows together with public='none'. Leave out X_public, "
                "sensitive_features_public and 'public_size', or set public='rows', which costs nothing."
            )
