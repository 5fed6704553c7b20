"""Accuracy, fairness gap and coverage of fitted classifiers on test rows."""

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator

from skfairdp._utils import PublicData, as_groups, encode_labels, group_domain
from skfairdp.fairness import largest_disparity, parity_bound, tally
from skfairdp.model_selection._frame import (
    as_gamma,
    composed_epsilon,
    guarantee_record,
    mark_non_dominated,
    of_the_attribute,
)
from skfairdp.postprocessing import IDP3
from skfairdp.privacy import Account, PrivacySpent, Protects


class EvaluationSet:
    """Rows to measure on."""

    def __init__(self, X: Any, y: Any, sensitive_features: Any) -> None:
        self.X, self.y = X, np.asarray(y)
        self.groups = as_groups(sensitive_features, len(self.y), owner="frontier", name="sensitive_features_test")
        self.codes = encode_labels(
            self.groups,
            group_domain(self.groups),
            owner="frontier",
            name="sensitive_features_test",
            parameter="sensitive_features_test",
        )
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if rows != len(self.y):
            raise ValueError(f"y_test of frontier has inconsistent length: {len(self.y)} rows where X_test has {rows}.")

    def measure(self, student: Any, public: PublicData | None, gamma: float | None) -> dict[str, float]:
        """Accuracy and disparity of the answered rows, and their share; with IDP3 where gamma is given."""
        if gamma is None:
            predicted = student.predict(self.X)
        else:
            refusing = IDP3(FrozenEstimator(student), gamma=gamma)
            if public is None or public.sensitive_features is None:
                refusing.set_params(groups=group_domain(self.groups).tolist()).fit(
                    self.X, sensitive_features=self.groups
                )
            else:
                refusing.fit(public.X, sensitive_features=public.sensitive_features)
            predicted = refusing.predict(self.X, sensitive_features=self.groups)
        return self.measure_predictions(predicted, student.classes_)

    def references(self, dataset: str = "", **fitted: Any) -> list[dict[str, Any]]:
        """What to compare with: the commonest class for everybody, and fitted models by name, which have no ε."""
        values, counts = np.unique(self.y, return_counts=True)
        common = self.measure_predictions(np.full(len(self.y), values[counts.argmax()]), values)
        marks = [{"name": "the commonest class for everybody", "private": True, **common}]
        for name, model in fitted.items():
            measured = self.measure_predictions(np.asarray(model.predict(self.X)), model.classes_)
            marks.append({"name": name.replace("_", " "), "private": False, **measured})
        return [{"dataset": dataset, **mark} for mark in marks]

    def measure_predictions(self, predicted: Any, known_classes: Any) -> dict[str, float]:
        """The same of predictions; what is no class is a refusal."""
        classes = list(known_classes)
        answered = np.isin(predicted, classes)
        if not answered.any():
            return {"accuracy": math.nan, "disparity": math.nan, "gap_bound": math.nan, "coverage": 0.0}
        columns = np.array([classes.index(label) for label in predicted[answered].tolist()])
        counts = tally(self.codes[answered], columns, (int(self.codes.max()) + 1, len(classes)))
        return {
            "accuracy": float(np.mean(predicted[answered] == self.y[answered])),
            "disparity": largest_disparity(counts),
            # what is refused follows from the rows before it: these answers are no independent draws
            "gap_bound": parity_bound(counts) if answered.all() else math.nan,
            "coverage": float(answered.mean()),
        }


def measure_estimators(estimators: Any, X: Any, y: Any, *, sensitive_features: Any, dataset: str = "") -> pd.DataFrame:
    """Measure accuracy, fairness gap and coverage of fitted estimators on the same rows.

    Estimators that were fitted on the same private rows are composed: ``attrs["guarantees"]`` holds the ε of publishing
    all of them. Nothing is spent here, and no ε covers the rows to measure on: they have to be public, or the figures
    are for your eyes only.

    Parameters
    ----------
    estimators : dict of name → estimator, or list of estimators
        Fitted, on the same private rows. Each has ``privacy_``, or post-processes one that has it
        (:class:`~skfairdp.postprocessing.IDP3`).
    X, y, sensitive_features
        Rows to measure on, their labels and groups.
    dataset : str, default=""
        Name for the column ``dataset``.

    Returns
    -------
    DataFrame
        One row for each estimator, with columns as of :func:`frontier`.

    Raises
    ------
    ValueError
        An estimator without ``privacy_``, or lengths that do not match.

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> from skfairdp.model_selection import measure_estimators
    >>> rows = make_biased_classification(2000, disparity=0.2, random_state=0)
    >>> split = train_private_public_test_split(*rows, random_state=0)
    >>> model = PATEClassifier(classes=[0, 1]).fit(split.X, split.y, X_public=split.public)
    >>> table = measure_estimators(
    ...     {"PATE": model}, split.X_test, split.y_test, sensitive_features=split.sensitive_features_test)
    >>> table["estimator"].tolist(), table["coverage"].tolist(), round(table.attrs["guarantees"][0]["epsilon_total"], 2)
    (['PATE'], [1.0], 1.0)
    """
    test = EvaluationSet(X, y, sensitive_features)
    rows: list[dict[str, Any]] = []
    spent: dict[tuple[str, str], PrivacySpent] = {}
    n_fits: dict[tuple[str, str], set[Any]] = {}
    for name, estimator in _by_name(estimators).items():
        privacy = _privacy_of(name, estimator)
        kind = privacy.protects, privacy.neighboring_relation
        spent[kind] = spent[kind] + privacy if kind in spent else privacy
        fits = {
            privacy.own.release or id(privacy)
        }  # students of one release, and what post-processes a model, share it
        n_fits.setdefault(kind, set()).update(fits)
        rows.append({"dataset": dataset, "estimator": name, **_point(estimator, privacy, test)})
    frame = pd.DataFrame(rows)
    references = test.references(dataset)
    frame["non_dominated"] = mark_non_dominated(frame, references)
    frame.attrs["references"] = references
    frame.attrs["n_test"] = len(frame) and len(test.y)
    frame.attrs["guarantees"] = [
        guarantee_record(*kind, total.delta, _epsilon(kind[0], total, spent.values()), len(n_fits[kind]))
        for kind, total in spent.items()
    ]
    return frame


def _epsilon(protects: str, total: PrivacySpent, every: Iterable[PrivacySpent]) -> float:
    """Of the fits of a kind; of the attribute that of all fits, for those for records have seen it."""
    if protects != Protects.SENSITIVE_ATTRIBUTE:
        return total.epsilon
    return composed_epsilon([of_the_attribute(one) for one in every])


def _by_name(estimators: Any) -> dict[str, Any]:
    if isinstance(estimators, Mapping):
        return dict(estimators)
    listed = list(estimators)
    named = {type(estimator).__name__: estimator for estimator in listed}
    if len(named) == len(listed):
        return named
    return {f"{type(estimator).__name__} {j + 1}": estimator for j, estimator in enumerate(listed)}


def _point(estimator: Any, privacy: PrivacySpent, test: EvaluationSet) -> dict[str, Any]:
    gamma = as_gamma(estimator.get_params(deep=False).get("gamma"))
    refuses = "sensitive_features" in inspect.signature(estimator.predict).parameters
    asked = {"sensitive_features": test.groups} if refuses else {}
    return {
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "protects": privacy.protects,
        "neighboring_relation": privacy.neighboring_relation,
        "gamma": gamma,
        "student_gamma": gamma,
        "idp3": refuses,
        **test.measure_predictions(estimator.predict(test.X, **asked), estimator.classes_),
    }


def _privacy_of(name: str, estimator: Any) -> PrivacySpent:
    """Of an estimator with all that is inside."""
    spent = Account.of(estimator).total()
    if spent is None:
        raise ValueError(
            f"measure_estimators cannot place {name!r}: it has no privacy_, so nothing says what it protects. Leave it "
            "out."
        )
    return spent
