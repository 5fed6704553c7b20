"""Whether a bound that was asked for holds on new rows, and whether the fit says so where it does not.

    python benchmarks/bench_bounds.py

Every estimator that takes a bound, with default parameters, on made tables and public ones. Made tables are measured on
50,000 new rows. The reference is fairlearn's reduction around a logistic regression, without privacy.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import _common as common
import numpy as np

from skfairdp import (
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    PFLDClassifier,
    PublicData,
    SFPATEClassifier,
    SyntheticDataClassifier,
    metrics,
)
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import RateParity
from skfairdp.postprocessing import PrivateThresholds

DELTA = 1e-5
RATES = {"demographic_parity": "selection_rate", "equalized_odds": "selection_rate_by_label"}
#: Rows that teach, and what the table is made of.
MADE: dict[str, tuple[int, dict[str, Any]]] = {
    "4,300 rows, strong proxy": (4300, {"n_features": 8, "disparity": 0.3, "group_sep": 2.0}),
    "14,500 rows, rare class": (14_500, {"n_features": 12, "disparity": 0.1, "base_rate": 0.11}),
    "40,000 rows, three groups": (40_000, {"disparity": 0.2, "group_proportions": (0.5, 0.35, 0.15), "base_rate": 0.3}),
}
NEW_ROWS = 50_000
Fit = Callable[[Any], Any]


class Problem:
    """Rows to learn from, public rows, new rows, and what every estimator is told."""

    def __init__(self, rows: Any, public: Any, new: Any, constraint: str, bound: float, epsilon: float, seed: int):
        (self.X, self.y, self.groups), (self.X_public, _, self.groups_public) = rows, public
        self.X_new, self.y_new, self.groups_new = new
        self.parity = RateParity(RATES[constraint], difference_bound=bound)
        self.constraint, self.bound, self.epsilon, self.seed = constraint, bound, epsilon, seed
        low, high = self.X_public.min(axis=0), self.X_public.max(axis=0)
        reach = 0.1 * (high - low) + 1e-3
        self.bounds = {j: (a, b) for j, (a, b) in enumerate(zip((low - reach).tolist(), (high + reach).tolist(), strict=True))}

    def given(self, share: float = 1.0) -> dict[str, Any]:
        return {"epsilon": share * self.epsilon, "delta": DELTA, "random_state": self.seed}

    @property
    def known(self) -> dict[str, Any]:
        return {"classes": [0, 1], "groups": np.unique(self.groups_public).tolist()}


def fits(problem: Problem) -> Iterator[tuple[str, Fit, bool]]:
    """Every estimator, and whether it reads the group of a new row."""
    p, parity = problem, problem.parity
    both = {"sensitive_features": p.groups}
    yield "FairDPSGD", lambda _: FairDPSGDClassifier(constraints=parity, **p.known, **p.given()).fit(p.X, p.y, **both), False
    yield "FairPATE", lambda _: FairPATEClassifier(constraints=parity, **p.known, **p.given()).fit(p.X, p.y, **both), False
    yield "FairPATE, public rows", lambda _: FairPATEClassifier(constraints=parity, classes=[0, 1], **p.given()).fit(
        p.X, p.y, X_public=PublicData(p.X_public, p.groups_public)), False
    yield "PFLD", lambda _: PFLDClassifier(constraints=parity, groups=p.known["groups"], **p.given()).fit(p.X, p.y, **both), False
    yield "SFPATE", lambda _: SFPATEClassifier(constraints=parity, groups=p.known["groups"], **p.given()).fit(p.X, p.y, **both), False
    yield "SyntheticDataClassifier", lambda _: SyntheticDataClassifier(
        reduction(p), bounds=p.bounds, **p.known, **p.given()).fit(p.X, p.y, **both), False
    for aware in (False, True):
        yield f"PrivateThresholds, {'aware' if aware else 'blind'}", lambda _, aware=aware: thresholds(p, aware), aware
    yield "FairnessCalibrator", lambda _: calibrated(p), False
    yield "no privacy", lambda _: reduction(p).fit(p.X, p.y, sensitive_features=p.groups), False


def reduction(p: Problem) -> Any:
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    moment = {"demographic_parity": DemographicParity, "equalized_odds": EqualizedOdds}[p.constraint]
    learner = make_pipeline(StandardScaler(), LogisticRegression())
    return ExponentiatedGradient(learner, moment(difference_bound=p.bound / 2), sample_weight_name="logisticregression__sample_weight")


def thresholds(p: Problem, aware: bool) -> Any:
    model = FairDPSGDClassifier(lam=0.0, **p.known, **p.given(0.8)).fit(p.X, p.y, sensitive_features=p.groups)
    made = PrivateThresholds(model, constraints=p.parity, group_at_prediction=aware, groups=p.known["groups"], **p.given(0.45))
    return made.fit(p.X, p.y, sensitive_features=p.groups)


def calibrated(p: Problem) -> Any:
    model = FairDPSGDClassifier(lam=0.0, **p.known, **p.given()).fit(p.X, p.y, sensitive_features=p.groups)
    return FairnessCalibrator(model, constraints=p.parity).fit(p.X_public, sensitive_features=p.groups_public)


def made(name: str, seed: int) -> tuple[Any, Any, Any]:
    n, how = MADE[name]
    X, y, groups = make_biased_classification(n + n // 14 + NEW_ROWS, random_state=seed, **how)
    ends = (n, n + n // 14)
    return tuple((X[s], y[s], groups[s]) for s in (slice(0, ends[0]), slice(*ends), slice(ends[1], None)))  # type: ignore[return-value]


def measured(problem: Problem, fit: Fit, aware: bool) -> dict[str, Any]:
    """One fit: accuracy and gap on new rows, what the fit said, and whether it warned."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(problem)
        reads = {"sensitive_features": problem.groups_new} if aware else {}
        predicted = model.predict(problem.X_new, **reads)
    what = metrics.demographic_disparity if problem.constraint == "demographic_parity" else metrics.equalized_odds_disparity
    new = (problem.y_new, predicted)
    return {
        "accuracy": float(np.mean(predicted == problem.y_new)),
        "majority": float(max(np.mean(problem.y_new), 1 - np.mean(problem.y_new))),
        "gap": float(what(*new, sensitive_features=problem.groups_new)),
        "gap_said": float(getattr(model, "gap_", np.nan)),
        "gap_bound": float(getattr(model, "gap_bound_", np.nan)),
        "holds": getattr(model, "constraint_holds_", ""),
        "warned": any(issubclass(w.category, FairnessWarning) for w in caught),
        "words": sorted({f"{w.category.__name__}: {str(w.message)[:160]}" for w in caught}),
        "seconds": time.perf_counter() - started,
    }
