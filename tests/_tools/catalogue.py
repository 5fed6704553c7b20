"""Every estimator with its main options, as small fits: an option is listed here once and tested everywhere.

``test_golden.py`` compares each fit with results frozen before; ``replay/`` fits each on neighbouring data. A new
estimator, or an option that touches private rows, gets an entry.
"""

import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    IDP3,
    DemographicParityFilter,
    FairClippingClassifier,
    FairDPSGDClassifier,
    FairDPSGDRegressor,
    FairnessCalibrator,
    FairPATEClassifier,
    LagrangianClassifier,
    ParetoSearchCV,
    PATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivateSearchCV,
    PublicData,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
    SyntheticDataRegressor,
    SyntheticRows,
)
from skfairdp.baselines import GroupRandomizer, ParityLogisticRegression
from skfairdp.ensemble import LogisticTeachers, MLPTeachers
from skfairdp.fairness import RateBound, RateParity
from skfairdp.generative import MarginalsBackend, TableCodec
from skfairdp.gradient import PublicPenalty, SignedLoss, mlp
from skfairdp.lagrangian import GroupModel, NoisyGradients
from skfairdp.papers import DataLensBackend, GlobalAdapt, GPATEBackend, GSWGANBackend, PATEGANBackend
from skfairdp.pate import (
    ConfidentVoting,
    ConstrainedStudent,
    FairTeachers,
    LabelGate,
    ParityPenaltyStudent,
    SoftVoting,
    VoteGate,
)
from skfairdp.postprocessing import FineTuning, PrivateBarycenter, PrivateThresholds, Thresholds
from skfairdp.schema import Category, Number, Schema, SchemaEncoder
from tests._tools.lagrangian import BOUNDED
from tests._tools.layers import cover

__all__ = ["CATALOGUE", "OF_EACH_KIND", "SPENDING", "Fit", "Rows", "by_name", "make_rows"]

#: What a neighbour may change, as the reports say it.
RECORD = "replace one record"
NULL = "replace one record by a null record"
GUEST = "add or remove one record"
ATTRIBUTE = "replace one sensitive attribute"


@dataclass(frozen=True)
class Rows:
    """Private rows, public ones, and rows to predict for."""

    X: Any
    y: Any
    groups: Any
    X_public: Any
    y_public: Any
    groups_public: Any
    X_test: Any
    y_test: Any
    groups_test: Any

    @property
    def public(self) -> PublicData:
        return PublicData(self.X_public, self.groups_public)

    @property
    def validation(self) -> PublicData:
        return PublicData(self.X_public, self.groups_public, y=self.y_public)

    def but(self, **changed: Any) -> "Rows":
        return replace(self, **changed)


def make_rows(n_classes: int = 2, n: int = 240, n_public: int = 80, n_test: int = 40, seed: int = 0) -> Rows:
    """Four features, of which two follow the class and one the group; the class follows the group a little."""
    rng = np.random.default_rng(seed)
    total = n + n_public + n_test
    X = rng.normal(size=(total, 4)).round(6)
    groups = rng.integers(2, size=total)
    score = X[:, 0] + 0.5 * X[:, 1] + 0.8 * groups + 0.3 * rng.normal(size=total)
    X[:, 2] += 2 * groups
    y = np.digitize(score, np.linspace(-1.0, 1.8, n_classes + 1)[1:-1])
    parts = [slice(0, n), slice(n, n + n_public), slice(n + n_public, total)]
    return Rows(*(values[part] for part in parts for values in (X, y, groups)))


@dataclass(frozen=True)
class Fit:
    """One estimator with one set of options, on one kind of rows.

    Parameters
    ----------
    name : str
    make : callable
        Returns the unfitted estimator; takes ``noise_seed`` and ``ledger`` where the estimator has them.
    fit : callable of (estimator, Rows)
        Returns what ``probe`` looks at: the fitted estimator as a rule.
    probe : callable of (fitted, Rows)
        Name → array of what the fitted object answers: predictions, probabilities, samples.
    relation : str or None
        What a neighbour may change; None where there is no guarantee.
    private : tuple of str
        Which fields of the rows hold what is protected.
    rows : callable
        Returns the Rows to fit on.
    slow : bool
        Replayed by ``make test-all`` only: another entry takes the same paths, or it takes long.
    """

    name: str
    make: Callable[..., Any]
    fit: Callable[[Any, Rows], Any]
    probe: Callable[[Any, Rows], Mapping[str, Any]]
    relation: str | None
    private: tuple[str, ...]
    rows: Callable[[], Rows] = make_rows
    slow: bool = field(default=False)

    @property
    def spends(self) -> bool:
        """Whether it releases anything noisy, and so has a ``noise_seed`` and a ledger."""
        return self.relation is not None


# ---- how each kind is fitted and asked -------------------------------------------------------------------------
def answers(fitted: Any, rows: Rows) -> dict[str, Any]:
    """Predictions for rows to come, and probabilities where there are any."""
    found = {"predict": fitted.predict(rows.X_test)}
    if hasattr(fitted, "predict_proba"):
        found["predict_proba"] = fitted.predict_proba(rows.X_test)
    return found


def answers_and_log_odds(fitted: Any, rows: Rows) -> dict[str, Any]:
    """Of a network without hidden layers, whose scores are those of its terms to the last digit."""
    return {**answers(fitted, rows), "decision_function": fitted.decision_function(rows.X_test)}


def answers_with_groups(fitted: Any, rows: Rows) -> dict[str, Any]:
    return {"predict": fitted.predict(rows.X_test, sensitive_features=rows.groups_test)}


def with_public_rows(estimator: Any, rows: Rows) -> Any:
    return estimator.fit(rows.X, rows.y, X_public=rows.X_public)


def with_public_groups(estimator: Any, rows: Rows) -> Any:
    return estimator.fit(rows.X, rows.y, X_public=rows.public)


def with_all_groups(estimator: Any, rows: Rows) -> Any:
    return estimator.fit(rows.X, rows.y, sensitive_features=rows.groups, X_public=rows.public)


def with_few_public_rows(estimator: Any, rows: Rows) -> Any:
    few = PublicData(rows.public.X[:20], rows.public.sensitive_features[:20])
    return estimator.fit(rows.X, rows.y, sensitive_features=rows.groups, X_public=few)


def with_private_groups(estimator: Any, rows: Rows) -> Any:
    return estimator.fit(rows.X, rows.y, sensitive_features=rows.groups)


def without_groups(estimator: Any, rows: Rows) -> Any:
    return estimator.fit(rows.X, rows.y)


def with_exposures(estimator: Any, rows: Rows) -> Any:
    """A private number above 0 beside every row."""
    numbers = pd.to_numeric(pd.Series(np.asarray(rows.X)[:, 0]), errors="coerce").fillna(0.0)
    return estimator.fit(rows.X, rows.y, exposure=1.5 + np.tanh(numbers.to_numpy(np.float64)))


def without_answers(fitted: Any, rows: Rows) -> dict[str, Any]:
    """Of what is replayed for its releases alone."""
    return {"edges": fitted.edges_, "answers": fitted.answers_}


def samples(fitted: Any, rows: Rows) -> dict[str, Any]:
    X, y, groups = fitted.sample_labels(30, return_sensitive=True, random_state=1)
    return {"X": np.asarray(X), "y": np.asarray(y), "groups": np.asarray(groups)}


def samples_without_groups(fitted: Any, rows: Rows) -> dict[str, Any]:
    X, y = fitted.sample_labels(30, random_state=1)
    return {"X": np.asarray(X), "y": np.asarray(y)}


# ---- PATE ------------------------------------------------------------------------------------------------------
def pate(**options: Any) -> Callable[..., Any]:
    return partial(PATEClassifier, **{**_VOTES, **options})


def fair_pate(**options: Any) -> Callable[..., Any]:
    return partial(FairPATEClassifier, **{**_VOTES, "gamma": 0.1, "gate": VoteGate(min_count=5), **options})


_VOTES: dict[str, Any] = {"epsilon": 8.0, "n_teachers": 12, "classes": [0, 1], "random_state": 0}
CLEARLY = {"epsilon": 40.0}  # so that the student is not replaced by the most frequent class
THREE = {"classes": [0, 1, 2]}
three_classes = partial(make_rows, 3)


def _pate_fits() -> list[Fit]:
    fits = []
    for voting in ("soft", "gnmax", "confident"):
        for n_classes, rows, options in ((2, make_rows, {}), (3, three_classes, THREE)):
            more = {**options, **(CLEARLY if voting == "confident" else {})}
            fits += [
                Fit(f"PATE-{voting}-{n_classes}", pate(voting=voting, **more), with_public_rows, answers, RECORD,
                    ("X", "y"), rows),
                Fit(f"FairPATE-{voting}-{n_classes}", fair_pate(voting=voting, **more), with_public_groups, answers,
                    RECORD, ("X", "y"), rows),
            ]  # fmt: skip
    options: list[tuple[str, dict[str, Any]]] = [
        ("unconstrained", {"gamma": None}),
        ("discrete", {"voting": SoftVoting(noise="discrete_gaussian", max_queries=40)}),
        ("filter", {"voting": ConfidentVoting(accounting="gdp")}),
        ("student-data", {"gate": LabelGate(min_count=5)}),
        ("student-data-confident", {"gate": LabelGate(min_count=5), "voting": "confident"}),
        ("student-loss", {"gate": None, "student": ParityPenaltyStudent(penalty_weight=0.3)}),
        ("student-loss-gnmax", {"gate": None, "student": ParityPenaltyStudent(penalty_weight=0.3), "voting": "gnmax"}),
        ("tree-teachers", {"teacher": DecisionTreeClassifier(max_depth=2), **CLEARLY}),
        ("mlp-teachers", {"teacher": MLPTeachers(hidden=(4,), epochs=2), **CLEARLY}),
        ("given-student", {"student": LogisticRegression(), "voting": "confident", **CLEARLY}),
    ]
    for name, more in options:
        fits.append(Fit(f"FairPATE-{name}", fair_pate(**more), with_public_groups, answers, RECORD, ("X", "y")))
    few = {"epsilon": 0.5, "n_teachers": "auto"}
    fits += [
        Fit("PATE-class-counts", pate(**few), with_public_rows, answers, RECORD, ("X", "y")),
        Fit("FairPATE-class-counts-3", fair_pate(**few, **THREE), with_public_groups,
            answers, RECORD, ("X", "y"), three_classes),
        Fit("FairPATE-second-look", fair_pate(epsilon=3.0, n_teachers="auto", teacher=LogisticTeachers()),
            with_public_groups, answers, RECORD, ("X", "y")),
        Fit("FairPATE-sums-alone", fair_pate(epsilon=3.0, n_teachers="auto"), with_public_groups, answers, RECORD,
            ("X", "y")),
        Fit("PATE-sums-alone-3", pate(epsilon=3.0, n_teachers="auto", **THREE), without_groups, answers, RECORD,
            ("X", "y"), three_classes),
        Fit("PATE-sums", pate(n_teachers="auto", **CLEARLY), with_public_rows, answers, RECORD, ("X", "y")),
        Fit("FairPATE-sums-3", fair_pate(n_teachers="auto", **CLEARLY, **THREE), with_public_groups, answers, RECORD,
            ("X", "y"), three_classes),
    ]  # fmt: skip
    own = {"epsilon": 40.0, "public_data": SyntheticRows(n_rows=80)}
    every = ("X", "y", "groups")
    fits += [
        Fit("FairPATE-sums-alone-own-rows", fair_pate(epsilon=4.0, n_teachers="auto", groups=[0, 1]),
            with_private_groups, answers, RECORD, every),
        Fit("PATE-own-rows", pate(), without_groups, answers, RECORD, ("X", "y")),
        Fit("PATE-own-rows-3", pate(**own, **THREE), without_groups, answers, RECORD, ("X", "y"), three_classes),
        Fit("FairPATE-own-rows", fair_pate(groups=[0, 1]), with_private_groups, answers, RECORD, every),
        Fit("FairPATE-constrained", fair_pate(student=ConstrainedStudent("equal_opportunity"), **CLEARLY),
            with_all_groups, answers, RECORD, every),
        Fit("FairPATE-constrained-3", fair_pate(student=ConstrainedStudent("demographic_parity"), **CLEARLY, **THREE),
            with_public_groups, answers, RECORD, ("X", "y"), three_classes),
        Fit("FairPATE-few-public", fair_pate(**CLEARLY), with_few_public_rows, answers, RECORD, every),
        Fit("FairPATE-constrained-few-public",
            fair_pate(student=ConstrainedStudent("demographic_parity"), **CLEARLY), with_few_public_rows, answers,
            RECORD, every),
        Fit("FairPATE-constrained-own-rows",
            fair_pate(groups=[0, 1], student=ConstrainedStudent("equalized_odds"), **own), with_private_groups, answers,
            RECORD, every),
        Fit("FairPATE-own-rows-gnmax", fair_pate(groups=[0, 1], voting="gnmax", **own), with_private_groups, answers,
            RECORD, every),
        Fit("FairPATE-own-rows-confident", fair_pate(groups=[0, 1], voting="confident", **own), with_private_groups,
            answers, RECORD, every),
    ]  # fmt: skip
    return fits


# ---- what protects the group -----------------------------------------------------------------------------------
# Steps so long that a few of them are ahead of the most frequent class, to which a network that is not gives way.
NET: dict[str, Any] = {"net": mlp((4,), max_epochs=6, batch_size=60, lr=0.1), "dual_steps": 4}
UNTAUGHT = mlp((4,), max_epochs=1, batch_size=60, lr=1e-6)
LAGRANGIAN = LagrangianClassifier(random_state=0, **NET)


def sf_pate(**options: Any) -> Callable[..., Any]:
    given = {"epsilon": 8.0, "n_teachers": 6, "groups": [0, 1], "fair_estimator": LAGRANGIAN, "random_state": 0}
    return partial(SFPATEClassifier, **{**given, **options})


#: Asks about some of the rows, as of a table of more than 100,000.
_FEW_KEPT: Any = type("SFPATEClassifier", (SFPATEClassifier,), {"_most_kept": 50})


def pfld(**options: Any) -> Callable[..., Any]:
    given = {"epsilon": 8.0, "groups": [0, 1], "lam_max": 0.5, "random_state": 0, **NET}
    return partial(PFLDClassifier, **{**given, **options})


def randomised(**options: Any) -> Callable[..., Any]:
    return partial(RandomizedResponseClassifier, **{"epsilon": 2.0, "groups": [0, 1], "random_state": 0, **options})


def _attribute_fits() -> list[Fit]:
    def of(name: str, make: Callable[..., Any], **more: Any) -> Fit:
        return Fit(name, make, with_private_groups, answers, ATTRIBUTE, ("groups",), **more)

    return [
        of("SFPATE-student", sf_pate()),
        of("SFPATE-student-gnmax", sf_pate(voting="gnmax")),
        of("SFPATE-student-discrete", sf_pate(voting=SoftVoting(noise="discrete_gaussian", max_queries=40))),
        of("SFPATE-student-parity-logistic", sf_pate(fair_estimator=ParityLogisticRegression(slack=0.1))),
        of("SFPATE-student-3", sf_pate(classes=[0, 1, 2]), rows=three_classes),
        of("SFPATE-some-kept", partial(_FEW_KEPT, **sf_pate().keywords)),
        of("SFPATE-teacher", sf_pate(variant=FairTeachers(LAGRANGIAN))),
        of("SFPATE-teacher-gnmax", sf_pate(variant=FairTeachers(LogisticRegression()), voting="gnmax")),
        of("PFLD-group-model", pfld()),
        of("PFLD-group-model-odds-3", pfld(constraints="equalized_odds", classes=[0, 1, 2]), rows=three_classes),
        of("PFLD-some-asked", pfld(primal=_FewRows(32))),
        of("PFLD-gives-way", pfld(net=mlp((4,), max_epochs=4, batch_size=60, lr=0.1), lam_max=5.0)),
        of("SFPATE-gives-way", sf_pate(fair_estimator=LagrangianClassifier(net=UNTAUGHT, random_state=0))),
        of("PFLD-several", pfld(constraints=["demographic_parity", "accuracy_parity"], violations="probabilities")),
        of("PFLD-opportunity", pfld(constraints="equal_opportunity")),
        of("PFLD-bounds", pfld(constraints=BOUNDED)),
        of("PFLD-gradient-bounds", pfld(constraints=BOUNDED, primal=NoisyGradients(6))),
        of(
            "SFPATE-student-bounds",
            sf_pate(fair_estimator=LagrangianClassifier(constraints=BOUNDED, random_state=0, **NET)),
        ),
        of("PFLD-gradient", pfld(primal=NoisyGradients(6))),
        of(
            "PFLD-gradient-odds",
            pfld(constraints="equalized_odds", primal=NoisyGradients(6, max_grad_norm=0.05, n_components=4)),
        ),
        of("PFLD-poisson", pfld(primal=NoisyGradients(6, sampling_probability=0.3))),
        of("RandomizedResponse", randomised(fair_estimator=LAGRANGIAN)),
        of("RandomizedResponse-logistic", randomised()),
        of("RandomizedResponse-biased", randomised(debias=False)),
        Fit(
            "GroupRandomizer",
            partial(GroupRandomizer, epsilon=2.0, groups=[0, 1]),
            lambda randomizer, rows: (randomizer, randomizer.release(rows.groups)),
            lambda pair, rows: {"released": pair[1], "weights": pair[0].weights(pair[1])},
            ATTRIBUTE,
            ("groups",),
        ),
    ]


# ---- DP-SGD ----------------------------------------------------------------------------------------------------
SGD: dict[str, Any] = {"epsilon": 8.0, "classes": [0, 1], "random_state": 0}
QUICK_NET: dict[str, Any] = {"hidden": (4,), "max_epochs": 4, "batch_size": 60}


def dpsgd(net: dict[str, Any] | str | None = None, **options: Any) -> Callable[..., Any]:
    def make(**more: Any) -> Any:
        given = net if isinstance(net, str) else mlp(**{**QUICK_NET, **(net or {})})
        return FairDPSGDClassifier(**{**SGD, "net": given, **options, **more})

    return make


def amounts(net: dict[str, Any] | None = None, **options: Any) -> Callable[..., Any]:
    """Labels are amounts here: numbers, of which only bounds are declared."""

    def make(**more: Any) -> Any:
        given = {"epsilon": 8.0, "random_state": 0, "bounds": (0.0, 2.0), "net": mlp(**{**QUICK_NET, **(net or {})})}
        return FairDPSGDRegressor(**{**given, **options, **more})

    return make


def clipping(**options: Any) -> Callable[..., Any]:
    def make(**more: Any) -> Any:
        return FairClippingClassifier(**{**SGD, "net": mlp(**QUICK_NET), **options, **more})

    return make


def _gradient_fits() -> list[Fit]:
    X, every = ("X", "y"), ("X", "y", "groups")
    none = {"parity": SignedLoss(dual_steps=4), "groups": [0, 1]}
    odds = {"parity": SignedLoss(constraints="equalized_odds", dual_steps=4), "groups": [0, 1]}
    several = [RateParity("selection_rate", ratio_bound=0.8), RateBound("false_negative_rate", upper=0.1)]
    bounds = {"parity": SignedLoss(constraints=several, dual_steps=4), "groups": [0, 1]}
    inside = PublicPenalty(apply_to="per_sample")
    momentum = {"optimizer__momentum": 0.5, "optimizer__average_last": 0.0}
    return [
        Fit("FairDPSGD-public", dpsgd(), with_public_groups, answers, NULL, X),
        Fit("FairDPSGD-public-3", dpsgd(**THREE), with_public_groups, answers, NULL, X, three_classes),
        Fit("FairDPSGD-per-sample", dpsgd(parity=inside), with_public_groups, answers, NULL, X),
        Fit("FairDPSGD-few-public", dpsgd(), with_few_public_rows, answers, NULL, every),
        Fit("FairDPSGD-public-all-groups", dpsgd(), with_all_groups, answers, NULL, every),
        Fit("FairDPSGD-none", dpsgd(**none), with_private_groups, answers, NULL, every),
        Fit("FairDPSGD-none-3", dpsgd(**none, **THREE), with_private_groups, answers, NULL, every, three_classes),
        Fit("FairDPSGD-odds", dpsgd(**odds), with_private_groups, answers, NULL, every),
        Fit("FairDPSGD-several-3", dpsgd(**bounds, **THREE), with_private_groups, answers, NULL, every, three_classes),
        Fit("FairDPSGD-plain", dpsgd(lam=0.0), without_groups, answers, NULL, X),
        Fit("FairDPSGD-additive", dpsgd({"hidden": ()}), with_public_groups, answers_and_log_odds, NULL, X),
        Fit("FairDPSGD-second-look", dpsgd(lam=0.0, epsilon=0.3), without_groups, answers, NULL, X),
        Fit("FairDPSGD-declared-rows", dpsgd(lam=0.0, public_n_rows=250), without_groups, answers, GUEST, X),
        Fit("FairDPSGD-momentum", dpsgd(momentum, lam=0.0), without_groups, answers, NULL, X),
        Fit("FairDPSGDRegressor-plain", amounts(), without_groups, answers, NULL, X),
        Fit("FairDPSGDRegressor-few-rows", amounts(epsilon=1.0), without_groups, answers, NULL, X),
        Fit("FairDPSGDRegressor-poisson", amounts(loss="poisson"), without_groups, answers, NULL, X),
        Fit("FairDPSGDRegressor-public", amounts(), with_public_groups, answers, NULL, X),
        Fit("FairDPSGDRegressor-mean-parity", amounts(gamma=0.1, groups=[0, 1]), with_private_groups, answers, NULL,
            every),
        Fit("FairDPSGDRegressor-moved", amounts(constraints="demographic_parity", groups=[0, 1]), with_private_groups,
            answers_with_groups, NULL, every),
        Fit("FairDPSGDRegressor-declared-rows", amounts(gamma=0.1, groups=[0, 1], public_n_rows=250),
            with_private_groups, answers, GUEST, every),
        Fit("FairClipping-reweight", clipping(groups=[0, 1]), with_private_groups, answers, NULL, every),
        Fit("FairClipping-dpsgd-f", clipping(groups=[0, 1], method="dpsgd_f"), with_private_groups, answers, NULL,
            every),
        Fit("FairClipping-global-adapt", clipping(method=GlobalAdapt(start=1.0)), without_groups, answers, NULL, X),
    ]  # fmt: skip


# ---- thresholds from private rows ------------------------------------------------------------------------------
def thresholds(rows: Rows | None = None, **options: Any) -> Callable[..., Any]:
    """Around a classifier of public rows, so that all noise is the thresholds' own."""
    rows = make_rows() if rows is None else rows
    model = LogisticRegression().fit(rows.X_public, rows.y_public)
    return partial(PrivateThresholds, model, **{"epsilon": 8.0, "groups": [0, 1], "random_state": 0, **options})


def around_a_network() -> Callable[..., Any]:
    """The same around a classifier for which a record gives way to a null record."""
    rows = make_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is hardly trained
        model = dpsgd({"max_epochs": 1}, lam=0.0)().fit(rows.X_public, rows.y_public)
    return partial(PrivateThresholds, model, epsilon=8.0, groups=[0, 1], random_state=0)


class Tied(ClassifierMixin, BaseEstimator):
    """As rounding does where rows are tied, how many rows a call has and where each stands decide between two scores.
    A row that is far away makes the call fail."""

    predicts_rows_alone = True

    def fit(self, X: Any, y: Any) -> "Tied":
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X: Any) -> Any:
        rows = np.asarray(X, dtype=float)
        if not (np.abs(rows) < 30).all():
            raise ValueError("too far away")
        second = self._scores(rows)
        return np.column_stack([1 - second, second])

    def _scores(self, rows: Any) -> Any:
        return np.full(len(rows), 0.9) if len(rows) == 1 else np.where(np.arange(len(rows)) % 2, 0.1, 0.4)

    def predict(self, X: Any) -> Any:
        return self.predict_proba(X).argmax(axis=1)


class Flipped(Tied):
    """Draws its scores when it is asked."""

    predicts_rows_alone = None

    def _scores(self, rows: Any) -> Any:
        return np.random.random(len(rows))  # noqa: NPY002


def fragile(model: Any) -> Callable[..., Any]:
    rows = make_rows()
    return partial(
        PrivateThresholds, model.fit(rows.X_public, rows.y_public), epsilon=8.0, groups=[0, 1], random_state=0
    )


def barycenter(**more: Any) -> Any:
    """Around a model of public rows."""
    rows = make_rows(seed=1)
    return PrivateBarycenter(
        LinearRegression().fit(rows.X, rows.y), **{"epsilon": 8.0, "groups": [0, 1], "bounds": (-2.0, 3.0), **more}
    )


def guessing_barycenter(**more: Any) -> Any:
    """Without the group at prediction."""
    return barycenter(group_at_prediction=False, random_state=0, **more)


def _threshold_fits() -> list[Fit]:
    every = ("X", "y", "groups")
    aware = thresholds(constraints="equalized_odds", group_at_prediction=True)
    return [
        Fit("PrivateThresholds", thresholds(), with_private_groups, answers, RECORD, every),
        Fit("PrivateThresholds-null", around_a_network(), with_private_groups, answers, NULL, every),
        Fit("PrivateThresholds-tied", fragile(Tied()), with_private_groups, without_answers, RECORD, every),
        Fit(
            "PrivateThresholds-coins",
            fragile(Flipped()),
            with_private_groups,
            without_answers,
            RECORD,
            every,
            partial(make_rows, n=100),
        ),
        Fit("PrivateThresholds-odds-group", aware, with_private_groups, answers_with_groups, RECORD, every),
        Fit("PrivateBarycenter", barycenter, with_private_groups, answers_with_groups, RECORD, ("X", "groups")),
        Fit("PrivateBarycenter-guess", guessing_barycenter, with_private_groups, answers, RECORD, ("X", "groups")),
    ]


# ---- the generator ---------------------------------------------------------------------------------------------
SMALL: dict[str, Any] = {"n_teachers": 8, "n_steps": 3, "batch_size": 6, "hidden": (8,), "latent": 4}


def pfguard(**options: Any) -> Callable[..., Any]:
    given = {"epsilon": 8.0, "codec": TableCodec(n_bins=6), "bounds": (-6.0, 6.0), "classes": [0, 1], "groups": [0, 1],
             "random_state": 0}  # fmt: skip
    return partial(PFGuardGenerator, **{**given, **options})


def make_tables() -> Rows:
    """The rows as DataFrames with a column of strings, one of integers and a category; groups are strings."""

    def table(X: Any) -> pd.DataFrame:
        return pd.DataFrame({
            "score": X[:, 0],
            "count": np.clip(np.round(X[:, 1] * 2 + 5), 0, 11).astype(int),
            "town": np.where(X[:, 2] > 1, "Athens", "Bergen").astype(object),
            "kind": pd.Categorical(np.where(X[:, 3] > 0, "up", "down"), categories=["down", "up"]),
        })  # fmt: skip

    def names(groups: Any) -> pd.Series:
        return pd.Series(np.where(groups == 0, "f", "m").astype(object), name="sex")

    rows = make_rows()
    return rows.but(
        X=table(rows.X), X_public=table(rows.X_public), X_test=table(rows.X_test), y=pd.Series(rows.y, name="label"),
        groups=names(rows.groups), groups_public=names(rows.groups_public), groups_test=names(rows.groups_test),
    )  # fmt: skip


TABLE = {
    "bounds": {"score": (-5.0, 5.0), "count": (0, 11)},
    "categories": {"town": ["Athens", "Bergen", "Cork"], "kind": ["down", "up"]},
    "dtypes": {"count": int},
    "groups": ["f", "m"],
}


def table_samples(fitted: Any, rows: Rows) -> dict[str, Any]:
    X, y, groups = fitted.sample_labels(30, return_sensitive=True, random_state=1)
    return {**{str(name): X[name].to_numpy() for name in X}, "y": np.asarray(y), "groups": np.asarray(groups)}


def _generator_fits() -> list[Fit]:
    every = ("X", "y", "groups")

    def of(name: str, make: Callable[..., Any], **more: Any) -> Fit:
        return Fit(f"PFGuard-{name}", make, with_private_groups, samples, RECORD, every, **more)

    return [
        of("marginals", pfguard()),
        of("marginals-star-group", pfguard(backend=MarginalsBackend(structure="star"), balance="group")),
        of("marginals-unbalanced", pfguard(balance=None)),
        of("marginals-interactions", pfguard(backend=MarginalsBackend(structure="interactions"))),
        of("marginals-rates", pfguard(balance={0: 0.3, 1: 0.6})),
        of("marginals-admissible", pfguard(admissible=[1, 2])),
        of("marginals-bins-paid-for", pfguard(bounds=None, dtypes=float, codec=TableCodec(n_bins=4))),
        of("marginals-3", pfguard(classes=[0, 1, 2]), rows=three_classes),
        Fit(
            "PFGuard-marginals-table", pfguard(**TABLE), with_private_groups, table_samples, RECORD, every, make_tables
        ),
        Fit(
            "SyntheticData",
            partial(
                SyntheticDataClassifier,
                LogisticRegression(),
                epsilon=8.0,
                n_samples=500,
                random_state=0,
                classes=[0, 1],
                **TABLE,
            ),
            with_private_groups,
            answers,
            RECORD,
            every,
            make_tables,
        ),
        Fit(
            "SyntheticData-sums",
            partial(
                SyntheticDataClassifier,
                LogisticRegression(),
                epsilon=4.0,
                n_samples=500,
                random_state=0,
                classes=[0, 1],
                **TABLE,
            ),
            with_private_groups,
            answers,
            RECORD,
            every,
            make_tables,
        ),
        Fit(
            "SyntheticData-amounts",
            partial(
                SyntheticDataRegressor,
                LinearRegression(),
                epsilon=8.0,
                n_samples=500,
                random_state=0,
                bounds_y=(0.0, 2.0),
                **TABLE,
            ),
            with_private_groups,
            answers,
            RECORD,
            every,
            make_tables,
        ),
        of("pate-gan", pfguard(backend=PATEGANBackend(student_steps=2, generator_steps=2, **SMALL))),
        of("gs-wgan", pfguard(backend=GSWGANBackend(**SMALL))),
        of("gs-wgan-one", pfguard(backend=GSWGANBackend(discriminators="one", **SMALL))),
        of("gs-wgan-dpsgd-f", pfguard(backend=GSWGANBackend(clipping="dpsgd_f", **SMALL))),
        of("gs-wgan-global-adapt", pfguard(backend=GSWGANBackend(clipping="global_adapt", **SMALL))),
        of("gs-wgan-stratified", pfguard(backend=GSWGANBackend(sampling="stratified", normalization="N2", **SMALL))),
        of("gs-wgan-cnn", pfguard(backend=GSWGANBackend(**{**SMALL, "hidden": "cnn"}), codec="units")),
        of("gs-wgan-weights-gold", pfguard(backend=GSWGANBackend(sampling="weights", teacher_loss="gold", **SMALL))),
        Fit(
            "PFGuard-gs-wgan-public-rows",
            pfguard(backend=GSWGANBackend(**SMALL), groups=None),
            lambda generator, rows: generator.fit(rows.X, rows.y, X_public=rows.X_public),
            samples_without_groups,
            RECORD,
            ("X", "y"),
        ),
        of("g-pate", pfguard(backend=GPATEBackend(n_coordinates=3, **SMALL))),
        of("datalens", pfguard(backend=DataLensBackend(k=4, **SMALL))),
    ]


# ---- what has no guarantee of its own --------------------------------------------------------------------------
def _calibrated(**options: Any) -> Callable[[Any, Rows], Any]:
    def fit(make_calibrator: Any, rows: Rows) -> Any:
        model = LogisticRegression().fit(rows.X, rows.y)
        return make_calibrator(model, **options).fit(rows.X_public, sensitive_features=rows.groups_public)

    return fit


def _constrained(**options: Any) -> Callable[[Any, Rows], Any]:
    def fit(make_calibrator: Any, rows: Rows) -> Any:
        model = LogisticRegression().fit(rows.X, rows.y)
        fair = make_calibrator(model, **options)
        return fair.fit(rows.X_public, rows.y_public, sensitive_features=rows.groups_public)

    return fit


def _fine_tuned(model: Any, rows: Rows) -> Any:
    calibrator = FairnessCalibrator(model.fit(rows.X, rows.y), method=FineTuning(steps=5), gap_weight=0.5)
    return calibrator.fit(rows.X_public, sensitive_features=rows.groups_public)


def _filtered(parity_filter: Any, rows: Rows) -> Any:
    return parity_filter, *parity_filter.fit_resample(rows.X, rows.y, sensitive_features=rows.groups)


def _streamed(idp: Any, rows: Rows) -> dict[str, Any]:
    found = answers_with_groups(idp, rows)
    idp.update(rows.y_test, sensitive_features=rows.groups_test)
    return {**found, "after an update": idp.predict(rows.X_test, sensitive_features=rows.groups_test)}


def _labelled_later(idp: Any, rows: Rows) -> dict[str, Any]:
    groups, tickets = rows.groups_test, np.arange(len(rows.y_test))
    idp.update(rows.y_test, sensitive_features=groups, tickets=tickets)
    idp.update_labels(1 - rows.y_test[::2], tickets=tickets[::2])
    return {**answers_with_groups(idp, rows), "labelled": idp.label_counts_, "outstanding": idp.outstanding_counts_}


def _plain_fits() -> list[Fit]:
    def of(name: str, make: Callable[..., Any], fit: Any = with_private_groups, probe: Any = answers, **more: Any):
        return Fit(name, make, fit, probe, None, (), **more)

    def lagrangian(**options: Any) -> Callable[..., Any]:
        return partial(LagrangianClassifier, **{"random_state": 0, **NET, **options})

    def idp(**options: Any) -> Callable[..., Any]:
        return partial(IDP3, LogisticRegression(), **{"groups": [0, 1], "gamma": 0.1, "min_count": 3, **options})

    return [
        of("Lagrangian", lagrangian()),
        of("Lagrangian-odds-3", lagrangian(constraints="equalized_odds"), rows=three_classes),
        of("Lagrangian-several", lagrangian(constraints=["accuracy_parity", "generalized_demographic_parity"])),
        of("ParityLogistic", ParityLogisticRegression),
        of("ParityLogistic-odds", partial(ParityLogisticRegression, constraints="equalized_odds", slack=0.05)),
        of("IDP3", idp(), probe=_streamed),
        of("IDP3-between-local", idp(disparity="between", gate="local", reject_label=9), probe=_streamed),
        of("IDP3-constraints", idp(gamma=0.05, min_count=10, constraints=RateParity("selection_rate", 0.1)),
           probe=_streamed),
        of("IDP3-labels", idp(gamma=0.05, min_count=5, constraints=RateParity("true_positive_rate", 0.4)),
           probe=_labelled_later),
        of("Calibrator-threshold", lambda: FairnessCalibrator, _calibrated(gamma=0.1)),
        of("Calibrator-group-at-prediction", lambda: FairnessCalibrator,
           _calibrated(gamma=0.05, method=Thresholds(group_at_prediction=True)), answers_with_groups),
        of("Calibrator-odds", lambda: FairnessCalibrator, _constrained(constraints="equalized_odds")),
        of("Calibrator-several-group", lambda: FairnessCalibrator,
           _constrained(constraints=["demographic_parity", RateBound("error_rate", upper=0.4)],
                        method=Thresholds(group_at_prediction=True)), answers_with_groups),
        Fit("IDP3-over-dpsgd", lambda **given: IDP3(dpsgd(lam=0.0)(**given), groups=[0, 1], gamma=0.1, min_count=3),
            with_private_groups, answers_with_groups, NULL, ("X", "y", "groups")),
        Fit("Calibrator-fine-tuned", dpsgd(lam=0.0), _fine_tuned, answers, NULL, ("X", "y")),
        of("ParityFilter", partial(DemographicParityFilter, gamma=0.05, min_count=10), _filtered,
           lambda kept, rows: {"kept": kept[0].sample_indices_, "y": kept[2]}),
        of("ParityFilter-shuffled", partial(DemographicParityFilter, gamma=0.02, min_count=5, shuffle=True,
                                            random_state=0), _filtered,
           lambda kept, rows: {"kept": kept[0].sample_indices_, "y": kept[2]}),
    ]  # fmt: skip


# ---- searches --------------------------------------------------------------------------------------------------
def _search(cls: type, make: Callable[..., Any], grid: Any, **options: Any) -> Callable[..., Any]:
    """A search has no noise of its own: seed and ledger are the estimator's."""
    return lambda **given: cls(make(**given), grid, random_state=0, **options)


def _searched(fitted: Any, rows: Rows) -> dict[str, Any]:
    found = answers(fitted, rows)
    results = getattr(fitted, "cv_results_", {})
    return {**found, **{name: results[name] for name in results if name.startswith("mean_test_")}}


def _with_validation(search: Any, rows: Rows) -> Any:
    return search.fit(rows.X, rows.y, X_public=rows.public, validation=rows.validation)


class SchemaRelease:
    """``Schema.release`` as a fit: of one table with the label and the group among its columns."""

    def __init__(self, noise_seed: int | None = None, ledger: Any = None, **options: Any) -> None:
        self.noise_seed, self.ledger, self.options = noise_seed, ledger, options

    def fit(self, rows: Rows) -> "SchemaRelease":
        X = rows.X if isinstance(rows.X, pd.DataFrame) else pd.DataFrame(np.asarray(rows.X), columns=list("abcd"))
        table = X.assign(label=rows.y, group=np.asarray(rows.groups), **self.beside(rows))
        self.schema_ = Schema.release(
            table, epsilon=12.0, label="label", groups="group", noise_seed=self.noise_seed, ledger=self.ledger,
            **self.options,
        )  # fmt: skip
        self.privacy_ = self.schema_.privacy_
        return self

    def beside(self, rows: Rows) -> dict[str, Any]:
        """Further columns."""
        return {}

    def privacy_statement(self) -> Any:
        return self.privacy_.statement(subject="Schema.release", ledger=self.ledger)

    def __repr__(self) -> str:
        return f"SchemaRelease({vars(self).get('schema_')!r})"


def _described(fitted: Any, rows: Rows) -> dict[str, Any]:
    text = json.dumps(fitted.schema_._description, sort_keys=True)
    return {"schema": np.frombuffer(text.encode(), dtype=np.uint8)}


def _schema_fits() -> list[Fit]:
    private = ("X", "y", "groups")
    make = partial(SchemaRelease, known={"town": "category", "count": "whole"})
    return [Fit("Schema-release", make, lambda made, rows: made.fit(rows), _described, RECORD, private, make_tables)]


# ---- raw tables, by a schema -----------------------------------------------------------------------------------
#: Of the rows of ``make_tables``, but for a town and for numbers that its neighbours put there.
RAW: dict[str, Any] = {
    "schema": Schema(
        {
            "score": Number(-5.0, 5.0),
            "count": Number(0, 11, step=1, missing=True),
            "town": Category(["Athens", "Bergen"], missing=True),
            "kind": Category(["down", "up"]),
            "label": Category([0, 1]),
            "sex": Category(["f", "m"]),
        },
        label="label",
        groups="sex",
    )
}


class _FewRows(GroupModel):
    """Learns from some of the rows, as of a table of more than a million."""

    MOST_ROWS = 150


def raw_table(rows: Rows) -> pd.DataFrame:
    """One table, with the label and the group among its columns."""
    return rows.X.assign(label=rows.y, sex=rows.groups)


def raw_public(rows: Rows) -> PublicData:
    return PublicData(rows.X_public.assign(sex=rows.groups_public))


def _raw_samples(fitted: Any, rows: Rows) -> dict[str, Any]:
    sampled = fitted.sample(30, random_state=1)
    return {name: sampled[name].to_numpy() for name in sampled}


def _cut_by_bytes(table: pd.DataFrame) -> list[pd.DataFrame]:
    """As writers do: a file ends once its rows have so many bytes, so that a longer cell moves rows to the next."""
    lengths = np.array([len(",".join(map(str, row))) for row in table.itertuples(index=False)])
    return [some for _, some in table.groupby((np.cumsum(lengths) - lengths) // 400)]


def _released_in_chunks(randomizer: Any, rows: Rows) -> Any:
    table = raw_table(rows)
    chunks = randomizer.release_chunks(lambda: [table.iloc[k : k + 50] for k in range(0, len(table), 50)])
    return randomizer, pd.concat(chunks)


def _raw_thresholds(model: Any) -> Callable[..., Any]:
    rows, schema = make_tables(), RAW["schema"]
    model = model.fit(SchemaEncoder(schema).transform(rows.X_public), rows.y_public)
    return partial(PrivateThresholds, model, epsilon=8.0, random_state=0, **RAW)


def _raw_fits() -> list[Fit]:
    every = ("X", "y", "groups")

    def alone(estimator: Any, rows: Rows) -> Any:
        return estimator.fit(raw_table(rows))

    def with_public(estimator: Any, rows: Rows) -> Any:
        return estimator.fit(raw_table(rows), X_public=raw_public(rows))

    def in_chunks(estimator: Any, rows: Rows, **public: Any) -> Any:
        table = raw_table(rows)
        return estimator.fit(lambda: [table.iloc[k : k + 50] for k in range(0, len(table), 50)], **public)

    def in_files_with_public(estimator: Any, rows: Rows) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            for k, some in enumerate(_cut_by_bytes(raw_table(rows))):
                some.to_parquet(f"{folder}/part.{k}.parquet", index=False)
            return estimator.fit(folder, X_public=raw_public(rows))

    def cut_by_bytes(estimator: Any, rows: Rows) -> Any:
        return estimator.fit(lambda: _cut_by_bytes(raw_table(rows)))

    def in_chunks_with_public(estimator: Any, rows: Rows) -> Any:
        return in_chunks(estimator, rows, X_public=raw_public(rows))

    def of(name: str, make: Any, fit: Any, relation: Any, private: Any = every, probe: Any = answers) -> Fit:
        return Fit(f"{name}-raw", make, fit, probe, relation, private, make_tables)

    undeclared: dict[str, Any] = {"classes": None, "groups": None, **RAW}
    signed = {"parity": SignedLoss(dual_steps=4), "classes": None, **RAW}
    generator = partial(PFGuardGenerator, epsilon=8.0, codec=TableCodec(n_bins=6), random_state=0, **RAW)
    synthetic = partial(
        SyntheticDataClassifier, LogisticRegression(), epsilon=8.0, n_samples=500, random_state=0, **RAW
    )
    search = _search(ParetoSearchCV, synthetic, {"n_samples": [200, 400]}, cv=2, score_epsilon=2.0)
    return [
        of("FairPATE", fair_pate(**undeclared, **CLEARLY), with_public, RECORD),
        of("FairDPSGD-public", dpsgd(**undeclared, public_data=raw_public(make_tables())), alone, NULL),
        of("FairDPSGD-none", dpsgd(**signed), alone, NULL),
        of("FairDPSGD-plain", dpsgd(lam=0.0, **undeclared), alone, NULL),
        of("FairDPSGD-additive", dpsgd("additive", **signed), alone, NULL, probe=answers_and_log_odds),
        of("FairDPSGD-auto", dpsgd("auto", lam=0.0, **undeclared), alone, NULL, probe=answers_and_log_odds),
        of("PFLD", pfld(**undeclared), alone, ATTRIBUTE, ("groups",)),
        of("PFGuard", generator, alone, RECORD, probe=_raw_samples),
        of("SyntheticData", synthetic, alone, RECORD),
        of("FairPATE-chunks", fair_pate(**undeclared), in_chunks_with_public, RECORD),
        of("FairPATE-files", fair_pate(**undeclared), in_files_with_public, RECORD),
        of("SFPATE-chunks", sf_pate(**undeclared), in_chunks, ATTRIBUTE, ("groups",)),
        of("PFLD-chunks", pfld(**undeclared, primal=_FewRows(32)), in_chunks, ATTRIBUTE, ("groups",)),
        Fit(
            "GroupRandomizer-chunks-raw",
            partial(GroupRandomizer, epsilon=2.0, **RAW),
            _released_in_chunks,
            lambda pair, rows: {"released": pair[1]["sex"].to_numpy()},
            ATTRIBUTE,
            ("groups",),
            make_tables,
        ),
        of("PFGuard-chunks", generator, in_chunks, RECORD, probe=_raw_samples),
        of("PrivateThresholds", _raw_thresholds(LogisticRegression()), alone, RECORD),
        of("PrivateThresholds-cut-by-bytes", _raw_thresholds(Tied()), cut_by_bytes, RECORD, probe=without_answers),
        of("ParetoSearch", search, alone, RECORD, probe=_searched),
    ]


GAMMAS = {"gamma": [0.02, 0.2]}


def _search_fits() -> list[Fit]:
    X, every = ("X", "y"), ("X", "y", "groups")
    pareto, private = partial(_search, ParetoSearchCV), partial(_search, PrivateSearchCV)
    quick = dpsgd({"max_epochs": 1}, lam=0.0)
    return [
        Fit("Pareto-private-folds", pareto(fair_pate(), GAMMAS, cv=2, score_epsilon=4.0), with_all_groups, _searched,
            RECORD, every),
        Fit("Pareto-public", pareto(fair_pate(), GAMMAS), _with_validation, _searched, RECORD, X),
        Fit("Pareto-dpsgd", pareto(quick, {"net__lr": [0.5, 2.0]}, scoring=("accuracy", "epsilon"), cv=2,
                                   score_epsilon=4.0), without_groups, _searched, NULL, X),
        Fit("Pareto-Regressor", pareto(amounts({"max_epochs": 1}), {"net__lr": [0.5, 2.0]}, scoring=("epsilon", "r2"),
                                       cv=2, score_epsilon=4.0), without_groups, _searched, NULL, X),
        Fit("Pareto-Regressor-exposure", pareto(amounts({"max_epochs": 1}, loss="poisson"), {"net__lr": [0.5, 2.0]},
                                                scoring=("epsilon", "r2"), cv=2, score_epsilon=4.0), with_exposures,
            _searched, NULL, X),
        Fit("Pareto-attribute", pareto(randomised(), {"debias": [True, False]}, cv=2, score_epsilon=4.0, delta=1e-5),
            with_private_groups, _searched, ATTRIBUTE, ("groups",)),
        Fit("Private-selection", private(pate(), {"voting__threshold": [0.6, 0.7, 0.8, 0.9]}, method="selection",
                                         score_epsilon=4.0), with_public_rows, answers, RECORD, X),
        Fit("Private-composition", private(pate(), {"voting__threshold": [0.6, 0.8]}, method="composition", cv=2,
                                           score_epsilon=4.0), with_public_rows, answers, RECORD, X),
        Fit("Private-public", private(fair_pate(), GAMMAS, method="selection"), _with_validation, answers, RECORD, X),
    ]  # fmt: skip


SLOW = {
    "PATE-gnmax-3", "PATE-confident-3", "FairPATE-soft-3", "FairPATE-gnmax-3", "FairPATE-student-data",
    "FairPATE-student-loss", "SFPATE-student-3", "SFPATE-student-discrete", "PFLD-group-model-odds-3",
    "PFLD-gradient-odds", "FairDPSGD-public-3", "FairDPSGD-none-3", "FairDPSGD-momentum", "FairClipping-dpsgd-f",
    "PFGuard-marginals-3", "PFGuard-marginals-star-group", "PFGuard-marginals-rates", "PFGuard-gs-wgan-stratified",
    "PFGuard-gs-wgan-dpsgd-f", "PFGuard-gs-wgan-one", "Pareto-dpsgd", "FairPATE-unconstrained", "FairPATE-discrete",
    "FairPATE-student-data-confident", "FairPATE-student-loss-gnmax", "FairPATE-filter", "FairPATE-constrained-3",
    "FairPATE-constrained-few-public", "FairPATE-constrained-own-rows", "FairPATE-confident-3", "FairPATE-second-look",
    "FairPATE-own-rows-gnmax", "FairPATE-files-raw", "SFPATE-student-gnmax", "SFPATE-student-bounds",
    "SFPATE-some-kept", "SFPATE-chunks-raw", "FairDPSGD-odds", "FairDPSGD-few-public", "FairDPSGD-several-3",
    "FairDPSGD-per-sample", "PFGuard-gs-wgan-cnn", "Pareto-attribute", "Pareto-public", "ParetoSearch-raw",
    "Private-public", "Private-composition",
}  # fmt: skip

CATALOGUE: tuple[Fit, ...] = tuple(
    replace(entry, slow=entry.name in SLOW)
    for entry in (
        *_pate_fits(),
        *_attribute_fits(),
        *_gradient_fits(),
        *_threshold_fits(),
        *_generator_fits(),
        *_raw_fits(),
        *_plain_fits(),
        *_search_fits(),
        *_schema_fits(),
    )
)


#: An entry of each class and relation: for tests that look at what every fit states, in ``make test``.
SPENDING = [entry for entry in CATALOGUE if entry.spends]
OF_EACH_KIND = [SPENDING[i] for i in cover([{(type(entry.make()).__name__, entry.relation)} for entry in SPENDING])]


def by_name(name: str) -> Fit:
    """The entry of that name."""
    (found,) = (entry for entry in CATALOGUE if entry.name == name)
    return found


def what_spent(model: Any, fitted: Any) -> Any:
    """The estimator that states the guarantee of a fit: itself, or the one inside a post-processor, whose ε it is."""
    stated = model if isinstance(fitted, tuple) else fitted
    return stated.estimator_ if isinstance(stated, IDP3) else stated
