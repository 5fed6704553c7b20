"""An attack learned from runs of both worlds: one number for each later run, larger where the second form was in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

from skfairdp.inspection._audit_rates import rates_epsilon, rates_of_band
from skfairdp.inspection._audit_worlds import Seen

Array = NDArray[np.float64]

_FAR = 1e30  # beyond, numbers are as good as infinite, and their squares overflow
_RIDGES = (1e-9, 1e-3, 0.3)  # the least finds differences that have no noise at all; the others survive many columns


class LearnedScore:
    """The best of a few classifiers of runs, chosen by cross-validation among the runs that it learns from."""

    def __init__(self, runs: Sequence[Sequence[Seen]], *, linear: bool, seed: int) -> None:
        everything = [seen for world in runs for seen in world]
        sizes = [len(seen.numbers) for seen in everything]
        self._length = max(set(sizes), key=sizes.count)
        self._signatures = list(dict.fromkeys(seen.signature for seen in everything))[:20]
        table, labels = self._table(everything), np.repeat([0, 1], [len(world) for world in runs])
        self._kept = np.ptp(table, axis=0) > 0
        self.strength = 0.0
        self._model: Any = None
        if not self._kept.any():
            return  # both worlds look alike in every run
        for model in self._candidates(linear, seed):
            scores = cross_val_predict(model, table[:, self._kept], labels, cv=3, method="predict_proba")
            logits = _logit(scores[:, 1])
            strength = _strength(logits[labels == 0], logits[labels == 1])
            if strength > self.strength:
                self.strength, self._model = strength, model
        if self._model is not None:
            self._model.fit(table[:, self._kept], labels)

    def __call__(self, runs: Sequence[Seen]) -> Array:
        """Score runs that were not learned from."""
        if self._model is None:
            return np.zeros(len(runs))
        return _logit(self._model.predict_proba(self._table(runs)[:, self._kept])[:, 1])

    def _table(self, runs: Sequence[Seen]) -> Array:
        rows = []
        for seen in runs:
            fits = len(seen.numbers) == self._length
            numbers = np.nan_to_num(seen.numbers, posinf=_FAR, neginf=-_FAR) if fits else np.zeros(self._length)
            rows.append([*numbers, *(float(seen.signature == known) for known in self._signatures), float(fits)])
        return np.array(rows).clip(-_FAR, _FAR)

    @staticmethod
    def _candidates(linear: bool, seed: int) -> list[Any]:
        models: list[Any] = [
            make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=ridge))
            for ridge in _RIDGES
        ]
        if not linear:
            models.append(ExtraTreesClassifier(40, min_samples_leaf=3, random_state=seed))
            squashed = make_pipeline(RobustScaler(), FunctionTransformer(np.tanh), StandardScaler())
            lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-3)
            models.append(make_pipeline(squashed, lda))  # for heavy tails
        return models


def _logit(probability: Array) -> Array:
    p = np.clip(probability, 1e-300, 1 - 1e-16)
    return np.log(p) - np.log1p(-p)


def _strength(scores_0: Array, scores_1: Array) -> float:
    order = float(np.mean(scores_0[:, None] < scores_1) + np.mean(scores_0[:, None] == scores_1) / 2)
    return rates_epsilon(rates_of_band(scores_0, scores_1, 0.95), 0.0) + max(0.0, order - 0.5)
