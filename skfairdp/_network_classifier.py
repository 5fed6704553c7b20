"""Predictions of a fitted network."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

__all__ = ["NetworkPredictions"]


class NetworkPredictions:
    """``predict`` and ``predict_proba`` of a classifier that holds ``net_``; the group is never needed."""

    net_: Any
    classes_: NDArray[Any]

    def _logits(self, X: ArrayLike) -> NDArray[np.float64]:
        from skfairdp._networks import predict_logits

        check_is_fitted(self, "net_")
        features, _ = self._split_features(X)  # type: ignore[attr-defined]
        return predict_logits(self.net_, features)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row; the group is not needed.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        codes = self._logits(X).argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities, the softmax of the network's logits.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return softmax(self._logits(X), axis=1)
