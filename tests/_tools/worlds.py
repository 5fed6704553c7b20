"""Small private data sets, their public rows, and the estimators that the statistical tests fit on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from skfairdp import FairPATEClassifier, PATEClassifier, PublicData
from skfairdp.pate import ConfidentVoting, GNMaxVoting, LabelGate, ParityPenaltyStudent, SoftVoting, VoteGate
from tests._tools.layers import cover

N_ROWS, N_TEACHERS, N_PUBLIC = 48, 12, 30


@dataclass(frozen=True)
class World:
    X: np.ndarray
    y: np.ndarray
    public: PublicData
    n_classes: int


def make_world(n_classes: int, *, seed: int = 0) -> World:
    """Classes of unequal size, the last the rarest; groups of public rows differ in their features."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(N_ROWS, 2))
    cuts = [0.3] if n_classes == 2 else np.linspace(-0.3, 0.5, n_classes - 1)
    y = np.digitize(X[:, 0] / 2 + 0.2 * rng.normal(size=N_ROWS), cuts)
    groups = np.arange(N_PUBLIC) % 2
    X_public = 2 * rng.normal(size=(N_PUBLIC, 2)) + groups[:, None]
    return World(X, y, PublicData(X_public, groups), n_classes)


#: The paper's names for FairPATEClassifier with parity behind the aggregation.
BASELINES = ("S_pre", "S_in")


def voting_part(voting: str, **wanted: Any) -> Any:
    """The part of this name, with those of the wanted parameters that it has."""
    part = {"soft": SoftVoting(), "gnmax": GNMaxVoting(), "confident": ConfidentVoting()}[voting]
    return part.set_params(**{name: value for name, value in wanted.items() if name in part.get_params()})


def pate_setting(
    fair: bool, voting: str, n_classes: int, noise: str = "gaussian", accounting: str = "auto", **more: Any
) -> dict[str, Any]:
    return {"fair": fair, "voting": voting, "n_classes": n_classes, "noise": noise, "accounting": accounting, **more}


def name_of(setting: dict[str, Any]) -> str:
    estimator = setting.get("baseline", "FairPATE" if setting["fair"] else "PATE")
    parts = [estimator, setting["voting"], f"{setting['n_classes']}classes"]
    if setting["noise"] != "gaussian":
        parts.append("discrete")
    if setting["accounting"] != "auto":
        parts.append(setting["accounting"])
    return "-".join(parts)


class ReleasesOnly:
    """A fit that is over after its last release. What follows is post-processing (test_post_processing.py)."""

    def _learn(self, *judged) -> Any:
        return self


class PATEWithoutStudent(ReleasesOnly, PATEClassifier):
    """Releases, and learns nothing."""


class FairPATEWithoutStudent(ReleasesOnly, FairPATEClassifier):
    """Releases, and learns nothing."""


def make_estimator(setting: dict[str, Any], *, learns: bool = True, **changes: Any) -> Any:
    """The estimator of a setting; parameters of its voting part are given like its own."""
    own = {"accounting", "threshold", "sigma", "sigma_threshold", "noise", "max_queries"}
    asked = {**setting, **changes}
    parameters = {key: value for key, value in asked.items() if key not in {"fair", "n_classes", "baseline", *own}}
    parameters = {
        "epsilon": 4.0,
        "n_teachers": N_TEACHERS,
        "random_state": 0,
        "classes": list(range(setting["n_classes"])),
        **parameters,
        "voting": voting_part(setting["voting"], **{name: asked[name] for name in own & asked.keys()}),
    }
    if not setting["fair"]:
        return (PATEClassifier if learns else PATEWithoutStudent)(**parameters)
    fairness: dict[str, Any] = {
        "S_pre": {"gate": LabelGate(min_count=4)},
        "S_in": {"gate": None, "student": ParityPenaltyStudent(penalty_weight=0.5)},
    }.get(setting.get("baseline", ""), {"gate": VoteGate(min_count=4)})
    return (FairPATEClassifier if learns else FairPATEWithoutStudent)(**{"gamma": 0.1, **fairness, **parameters})


#: Every voting mode, accounting and noise of both estimators, for two classes and for three; then the baselines.
SETTINGS = {
    name_of(setting): setting
    for n_classes in (2, 3)
    for fair in (True, False)
    for noise in ("gaussian", "discrete_gaussian")
    for setting in (
        pate_setting(fair, "soft", n_classes, noise),
        pate_setting(fair, "gnmax", n_classes, noise),
        pate_setting(fair, "confident", n_classes, noise, "binary"),
        *([pate_setting(fair, "confident", n_classes, noise, "gdp")] if noise == "gaussian" else []),
    )
}
SETTINGS |= {
    name_of(setting): setting
    for n_classes in (2, 3)
    for baseline in BASELINES
    for voting in ("soft", "gnmax", "confident")
    for setting in (pate_setting(True, voting, n_classes, baseline=baseline),)
}


def in_turn(names):
    """Parameters: each method with each vote, noise and number of classes once; all others in ``make test-all``."""
    parts = [name.split("-") for name in names]
    kept = cover([{tuple(part[:2]), *part[2:]} for part in parts])
    return [pytest.param(name, marks=[pytest.mark.slow] * (i not in kept)) for i, name in enumerate(names)]
