"""Figures of synthetic data: how balanced its groups are, what a model trained on it is worth, how near it looks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, roc_auc_score

from skfairdp._typing import ArrayLike, Floats, MaybeValues
from skfairdp._utils import check_same_index, hits
from skfairdp.metrics import _fairness


def kl_to_uniform(sensitive_features: Any, *, groups: MaybeValues = None) -> float:
    """Return the Kullback-Leibler divergence Σ p(s) ln(m p(s)) of the groups' frequencies from equal ones.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_rows,), Series or DataFrame
        Group of each (synthetic) row.
    groups : sequence or None, default=None
        All m groups, also those without a row. None takes those that occur.

    Returns
    -------
    float
        In nats, from 0 (equally frequent) to ln m.

    Raises
    ------
    ValueError
        No rows, missing values, a group outside ``groups``.

    References
    ----------
    Kim et al. (2024), PFGuard, Section 5.

    Examples
    --------
    >>> from skfairdp.metrics import kl_to_uniform
    >>> kl_to_uniform(list("aabb")), round(kl_to_uniform(list("aaaa"), groups=["a", "b"]), 6)
    (0.0, 0.693147)
    """
    shares = _shares(sensitive_features, groups, "kl_to_uniform")
    present = shares[shares > 0]
    return max(0.0, float(np.sum(present * np.log(len(shares) * present))))


def distribution_disparity(sensitive_features: Any, *, groups: MaybeValues = None) -> float:
    """Return the Euclidean distance of the groups' frequencies from equal ones.

    Parameters
    ----------
    sensitive_features, groups : object
        As for :func:`kl_to_uniform`.

    Returns
    -------
    float
        From 0 to √(1 − 1/m).

    Raises
    ------
    ValueError
        As for :func:`kl_to_uniform`.

    References
    ----------
    Kim et al. (2024), PFGuard, Section 5, after Choi et al. (2020).

    Examples
    --------
    >>> from skfairdp.metrics import distribution_disparity
    >>> distribution_disparity(list("aabb")), round(distribution_disparity(list("aaab")), 6)
    (0.0, 0.353553)
    """
    shares = _shares(sensitive_features, groups, "distribution_disparity")
    return float(np.linalg.norm(shares - 1 / len(shares)))


def _shares(sensitive_features: Any, groups: Any, owner: str) -> Floats:
    n_rows = len(sensitive_features)
    if n_rows == 0:
        raise ValueError(f"sensitive_features of {owner} must have at least one row.")
    codes, domain = _fairness.group_codes(sensitive_features, groups, n_rows, owner)
    return np.bincount(codes, minlength=len(domain)) / n_rows


def recall_disparity(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the largest difference between two classes' recall, the paper's "accuracy disparity" under class bias.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels.

    Returns
    -------
    float
        max over classes k, l that occur of |P(ŷ = k | y = k) − P(ŷ = l | y = l)|.

    Raises
    ------
    ValueError
        No rows, missing values, lengths differ.

    References
    ----------
    Kim et al. (2024), PFGuard, Section 5.

    Examples
    --------
    >>> from skfairdp.metrics import recall_disparity
    >>> recall_disparity([0, 0, 1, 1], [0, 0, 1, 0])
    0.5
    """
    check_same_index("recall_disparity", y_true=y_true, y_pred=y_pred)
    truth = _fairness.read_labels(y_true, "y_true", "recall_disparity")
    hit = hits(truth, _fairness.read_labels(y_pred, "y_pred", "recall_disparity", len(truth)), "recall_disparity")
    recalls = [float(np.mean(hit[truth == label])) for label in dict.fromkeys(truth.tolist())]
    return max(recalls) - min(recalls)


def downstream_scores(
    estimator: Any, X_synthetic: Any, y_synthetic: ArrayLike, X_test: Any, y_test: ArrayLike, *, sensitive_features: Any
) -> dict[str, float]:
    """Train a classifier on synthetic rows and measure it on real ones.

    Parameters
    ----------
    estimator : classifier or pipeline
        Cloned; with ``predict_proba`` for the area under the curve.
    X_synthetic, y_synthetic : array-like or DataFrame
        Rows and labels to train on.
    X_test, y_test : array-like or DataFrame
        Real rows and labels.
    sensitive_features : array-like of shape (n_test,), Series or DataFrame
        Groups of the real rows. The classifier does not see them unless they are columns.

    Returns
    -------
    dict
        ``accuracy``; ``auroc`` (for more than two classes one against the rest; NaN without probabilities);
        ``equalized_odds_disparity``; ``demographic_disparity``, the largest difference between two groups' rates;
        ``accuracy_disparity`` between groups; ``recall_disparity`` between classes.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import downstream_scores
    >>> X, y, s = make_biased_classification(2000, random_state=0)
    >>> scores = downstream_scores(LogisticRegression(), X[:1000], y[:1000], X[1000:], y[1000:],
    ...                            sensitive_features=s[1000:])
    >>> list(scores)[:4]
    ['accuracy', 'auroc', 'equalized_odds_disparity', 'demographic_disparity']
    >>> round(float(scores["accuracy"]), 1), round(float(scores["demographic_disparity"]), 1)
    (0.9, 0.2)
    """
    model = clone(estimator).fit(X_synthetic, y_synthetic)
    predicted = model.predict(X_test)
    of: dict[str, Any] = {"sensitive_features": sensitive_features}
    return {
        "accuracy": float(accuracy_score(y_test, predicted)),
        "auroc": _auroc(model, X_test, y_test),
        "equalized_odds_disparity": _fairness.equalized_odds_disparity(y_test, predicted, **of),
        "demographic_disparity": _fairness.demographic_disparity(None, predicted, gap="between", **of),
        "accuracy_disparity": _fairness.accuracy_disparity(y_test, predicted, **of),
        "recall_disparity": recall_disparity(y_test, predicted),
    }


def _auroc(model: Any, X_test: Any, y_test: ArrayLike) -> float:
    if not hasattr(model, "predict_proba"):
        return float("nan")
    proba, classes = np.asarray(model.predict_proba(X_test)), list(model.classes_)
    if len(classes) == 2:
        return float(roc_auc_score(np.asarray(y_test) == classes[1], proba[:, 1]))
    if set(np.asarray(y_test).tolist()) != set(classes):
        return float("nan")
    return float(roc_auc_score(y_test, proba, multi_class="ovr", labels=classes))


def frechet_distance(
    X_real: ArrayLike, X_synthetic: ArrayLike, *, extractor: Callable[[Any], ArrayLike] | None = None
) -> float:
    """Return the Fréchet distance between Gaussians fitted to features of real and of synthetic rows.

    ``|m₁ − m₂|² + tr(C₁ + C₂ − 2 (C₁ C₂)^½)``; the FID where the features are those of an Inception network.

    Parameters
    ----------
    X_real, X_synthetic : array-like
        Rows that ``extractor`` takes; without one, tables of features.
    extractor : callable or None, default=None
        Rows to features of shape (n_rows, n_features).

    Returns
    -------
    float
        At least 0.

    Raises
    ------
    ValueError
        Fewer than two rows on a side, or different numbers of features.

    References
    ----------
    Heusel et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.metrics import frechet_distance
    >>> rows = np.random.default_rng(0).normal(size=(500, 3))
    >>> round(frechet_distance(rows, rows + 2.0), 6)
    12.0
    """
    sides = []
    for rows in (X_real, X_synthetic):
        features = np.asarray(rows if extractor is None else extractor(rows), dtype=np.float64)
        if features.ndim != 2 or len(features) < 2:
            raise ValueError(
                "frechet_distance needs two or more rows of features on each side, in a table. Got shape "
                f"{features.shape}."
            )
        sides.append((features.mean(axis=0), np.atleast_2d(np.cov(features, rowvar=False))))
    (mean_1, cov_1), (mean_2, cov_2) = sides
    if mean_1.shape != mean_2.shape:
        raise ValueError(
            f"frechet_distance needs as many features on one side as on the other. Got {mean_1.size} and {mean_2.size}."
        )
    values, vectors = np.linalg.eigh(cov_1)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    # The trace of (C₁ C₂)^½ is that of the symmetric (C₁^½ C₂ C₁^½)^½, whose eigenvalues are real.
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ cov_2 @ root), 0)).sum()
    return max(0.0, float(np.sum((mean_1 - mean_2) ** 2) + np.trace(cov_1) + np.trace(cov_2) - 2 * shared))
