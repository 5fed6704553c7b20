"""Ways to calibrate: thresholds that Lagrange multipliers move at the least expected cost, or further training."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import indexable

from skfairdp._typing import Array, Bools, Floats, Ints
from skfairdp._utils import without_cells
from skfairdp._utils._sklearn import HasMethods, Interval, take_rows
from skfairdp.fairness import disparities, largest_disparity, tally
from skfairdp.postprocessing._inputs import class_codes, network_of, network_view, probabilities, with_network


@dataclass(frozen=True)
class CalibrationRows:
    """Public rows of a calibration, and what the model says of them before it."""

    features: Any
    table: Any
    groups: Ints
    n_groups: int
    classes: Array
    before: Ints

    def part(self, rows: Bools) -> "CalibrationRows":
        """Some of the rows."""
        at = np.flatnonzero(rows)
        features, table = (take_rows(one, at) for one in indexable(self.features, self.table))
        return replace(self, features=features, table=table, groups=self.groups[at], before=self.before[at])


class TradeOff:
    """Keeps the best set of predictions it was offered; the unchanged ones are the first.
    No candidate is kept whose gap is above that of the unchanged predictions, so the gap never rises."""

    def __init__(
        self, rows: CalibrationRows, utility: Floats, *, gap_weight: float, gamma: float | None, disparity: str
    ) -> None:
        self.groups, self.utility = rows.groups, utility
        self.shape = (rows.n_groups, utility.shape[1])
        self.gap_weight, self.gamma, self.disparity = gap_weight, gamma, disparity
        self.gap_before = self.gap_of(rows.before)
        self._best = self._rank(rows.before, self.gap_before)

    def gap_of(self, codes: Ints) -> float:
        """Return the largest disparity of these predictions."""
        return largest_disparity(tally(self.groups, codes, self.shape), self.disparity)

    def is_settled(self) -> bool:
        """Whether nothing is asked for that the best predictions so far do not give: further search would be idle."""
        return (self.gap_weight == 0 or self.gap_before == 0) if self.gamma is None else self._best[0] == 0.0

    def keep(self, codes: Ints) -> bool:
        """Say whether these predictions are better than all before them; the caller then stores what made them."""
        gap = self.gap_of(codes)
        if gap > self.gap_before:
            return False
        rank = self._rank(codes, gap)
        if rank <= self._best:
            return False
        self._best = rank
        return True

    def _rank(self, codes: Ints, gap: float) -> tuple[float, float]:
        utility = float(self.utility[np.arange(len(codes)), codes].mean())
        if self.gamma is None:
            return utility - self.gap_weight * gap, -gap
        return (0.0, utility) if gap <= self.gamma else (-gap, utility)


_LEVELS = 10
_STEPS = 40


class Thresholds(BaseEstimator):
    """Calibrate any classifier with scores by moving its thresholds: ``method="threshold"`` of FairnessCalibrator.

    Answers ``argmax_k p_k(x) - Σ_z μ_zk (q_z(x)/π_z - (1 - q_z(x))/(1 - π_z))``, the form of the most accurate
    classifier under parity, where p are the model's probabilities, π_z is the share of group z, and q_z(x) is 0 or 1
    where the group is given at prediction time, else its probability from the features.

    Parameters
    ----------
    group_at_prediction : bool, default=False
        Let ``predict`` and ``score`` read the group of each row. Without it, **the group is estimated from the
        features**, by a model fitted on the public rows.
    group_estimator : classifier or None, default=None
        Cloned and fitted to estimate the group from the features, where it is not given at prediction. None: a
        regularised logistic regression, on one-hot names too where X is a DataFrame.

    Examples
    --------
    >>> from skfairdp import FairnessCalibrator
    >>> from skfairdp.postprocessing import Thresholds
    >>> from sklearn.linear_model import LogisticRegression
    >>> calibrator = FairnessCalibrator(LogisticRegression(), method=Thresholds(group_at_prediction=True))
    >>> calibrator.set_params(method__group_at_prediction=False).method
    Thresholds()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "group_at_prediction": ["boolean"],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
    }

    def __init__(self, *, group_at_prediction: bool = False, group_estimator: Any = None) -> None:
        self.group_at_prediction, self.group_estimator = group_at_prediction, group_estimator

    def _check(self, model: Any, owner: str) -> None:
        """Raise a ValueError where a parameter is wrong; any classifier will do."""
        self._validate_params()
        if self.group_at_prediction and self.group_estimator is not None:
            raise ValueError(
                f"The 'group_estimator' parameter of Thresholds of {owner} is not used with group_at_prediction=True. "
                "Leave one of them out."
            )

    def _calibrate(
        self, model: Any, rows: CalibrationRows, trade_off: Callable[[Floats], TradeOff], *, owner: str
    ) -> tuple["MovedThresholds", TradeOff]:
        """Search for multipliers on public rows; see :class:`FairnessCalibrator`."""
        utility = probabilities(model, rows.features, len(rows.classes), owner=owner)
        shift = own_threshold(utility, rows.before)
        choice = trade_off(utility + shift)
        moved = MovedThresholds(model, rows.classes, owner, *fit_groups(self, rows, owner), shift)
        moved.multipliers = search_multipliers(choice, moved.contrasts(rows.table, rows.groups))
        return moved, choice


@dataclass(eq=False, repr=False)
class CalibratedModel:
    """A model after calibration: by itself one that predicts as it does, with another network if it was fine-tuned."""

    estimator: Any
    classes: Array
    owner: str
    shares: Any = None
    group_estimator: Any = None

    @property
    def reads_groups(self) -> bool:
        """Whether an answer needs the group of its row."""
        return self.shares is not None and self.group_estimator is None

    def attributes(self) -> dict[str, Any]:
        """What the calibrator shows of it."""
        shown = {"estimator_": self.estimator}
        return shown if self.group_estimator is None else {**shown, "group_estimator_": self.group_estimator}

    def answer(self, features: Any, table: Any, groups: Ints | None) -> Ints:
        """Return the code of each row's class."""
        predicted = without_cells(self.estimator.predict, features, owner=self.owner)
        return class_codes(predicted, self.classes, owner=self.owner)

    def membership(self, table: Any) -> Floats:
        """Return the probability of each group by the features of each row, or raise a ValueError."""
        found, n_groups = np.asarray(self.group_estimator.predict_proba(table), dtype=float), len(self.shares)
        if found.ndim != 2 or found.shape[1] != n_groups or not np.isfinite(found).all():
            raise ValueError(
                f"The 'group_estimator' of {self.owner} must give one probability for each of the {n_groups} groups, "
                f"all finite. Got an array of shape {found.shape}."
            )
        return found


@dataclass(eq=False, repr=False)
class MovedThresholds(CalibratedModel):
    """A model whose scores are corrected by the group before the largest is taken."""

    shift: Any = 0.0
    multipliers: Any = None

    def attributes(self) -> dict[str, Any]:
        """What the calibrator shows of it."""
        return {**super().attributes(), "multipliers_": self.multipliers[:, None, :]}

    def contrasts(self, table: Any, groups: Ints | None) -> Floats:
        """Return how much an answer to each row moves each group's disparity."""
        if self.reads_groups:
            return contrast(np.eye(len(self.shares))[groups], self.shares)
        return contrast(self.membership(table), self.shares)

    def answer(self, features: Any, table: Any, groups: Ints | None) -> Ints:
        """Return the code of each row's class."""
        if not self.multipliers.any():
            return super().answer(features, table, groups)
        utility = probabilities(self.estimator, features, len(self.classes), owner=self.owner) + self.shift
        return (utility - self.contrasts(table, groups) @ self.multipliers).argmax(axis=1)


def contrast(membership: Floats, shares: Floats) -> Floats:
    """Return how much an answer to each row moves Γ(z, ·), times the number of rows; shape (n_rows, n_groups)."""
    return membership / shares - (1 - membership) / (1 - shares)


def search_multipliers(trade_off: TradeOff, contrasts: Floats) -> Floats:
    """Multipliers of shape (n_groups, n_classes); zeros where nothing is better than no change. The best classifier
    under Γ(z, k) <= t answers ``argmax_k utility_k - Σ_z μ_zk contrast_z`` for some μ >= 0, found by dual ascent on the
    public rows while t goes down from the present gap to 0 (with ``gamma``, until it is met)."""
    shares = np.bincount(trade_off.groups, minlength=trade_off.shape[0]) / len(trade_off.groups)
    rate = 0.4 * (shares * (1 - shares))[:, None]  # a step then moves scores alike for groups of any size
    multipliers = best = np.zeros(trade_off.shape)
    for target in _targets(trade_off.gap_before, trade_off.gamma):
        if trade_off.is_settled():
            break
        for t in range(_STEPS):
            codes = (trade_off.utility - contrasts @ multipliers).argmax(axis=1)
            if multipliers.any() and trade_off.keep(codes):
                best = multipliers
            disparity = disparities(tally(trade_off.groups, codes, trade_off.shape))
            multipliers = np.maximum(0.0, multipliers + rate / np.sqrt(1 + t) * (disparity - target))
    return best


def _targets(gap: float, gamma: float | None) -> Floats:
    ends = (gap, 0.0) if gamma is None or gamma >= gap else (gap, gamma, 0.0)
    return np.concatenate([np.linspace(high, low, _LEVELS + 1)[1:] for high, low in pairwise(ends)])


def own_threshold(utility: Floats, before: Ints) -> Floats:
    """Return what to add to the probabilities so that the largest is what a two-class model predicts.
    A model may have a threshold of its own (``TunedThresholdClassifierCV``); it is kept, and moved from there."""
    shift = np.zeros(utility.shape[1])
    if len(shift) == 2 and 0 < before.sum() < len(before) and (utility.argmax(axis=1) != before).any():
        difference = utility[:, 1] - utility[:, 0]
        shift[1] = -(difference[before == 0].max() + difference[before == 1].min()) / 2
    return shift


def fit_groups(method: Thresholds, rows: CalibrationRows, owner: str) -> tuple[Floats, Any]:
    """Return shares of groups and a model of the group, by default a logistic regression; None where it is given."""
    shares = np.bincount(rows.groups, minlength=rows.n_groups) / len(rows.groups)
    if method.group_at_prediction:
        return shares, None
    if method.group_estimator is not None:
        return shares, clone(method.group_estimator).fit(rows.table, rows.groups)
    try:
        return shares, _logistic_regression(rows.table).fit(rows.table, rows.groups)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{owner} cannot estimate the group from these features by logistic regression ({error}). Give a "
            "classifier that reads them with the 'group_estimator' parameter of Thresholds, or set its "
            "group_at_prediction=True."
        ) from error


def _logistic_regression(X: Any) -> Pipeline:
    """Return a regularised logistic regression on tables of numbers, and of names where X is a frame."""
    numeric = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(with_mean=not issparse(X)))
    encoder: Any = numeric
    if isinstance(X, pd.DataFrame):
        numbers = make_column_selector(dtype_include=["number", "bool"])
        names = make_column_selector(dtype_exclude=["number", "bool"])
        one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=10)
        encoder = make_column_transformer((numeric, numbers), (one_hot, names))
    return make_pipeline(encoder, LogisticRegression(C=0.1, max_iter=1000))


class FineTuning(BaseEstimator):
    """Calibrate a torch network by training it further: ``method="fine_tune"`` of FairnessCalibrator.

    A copy of the network takes steps of Adam over all public rows at once, without any randomness: near its own soft
    predictions, with a rising weight on a differentiable disparity. For classifiers with a network in ``net_``, such as
    :class:`~skfairdp.FairDPSGDClassifier`, and for fitted skorch nets.

    Parameters
    ----------
    steps : int, default=200
        Over all rows each.
    lr : float, default=0.01
        Step size of Adam.
    temperature : float, default=0.1
        Softness of the disparity, in units of the median lead of the network's largest logit.

    Examples
    --------
    >>> from skfairdp import FairDPSGDClassifier, FairnessCalibrator
    >>> from skfairdp.postprocessing import FineTuning
    >>> calibrator = FairnessCalibrator(FairDPSGDClassifier(), method=FineTuning(steps=50))
    >>> calibrator.set_params(method__lr=0.1).method
    FineTuning(lr=0.1, steps=50)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "steps": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, steps: int = 200, lr: float = 0.01, temperature: float = 0.1) -> None:
        self.steps, self.lr, self.temperature = steps, lr, temperature

    def _check(self, model: Any, owner: str) -> None:
        """Raise a ValueError where a parameter is wrong, or the model has no network."""
        self._validate_params()
        if network_of(model) is None:
            raise ValueError(
                f"method='fine_tune' of {owner} needs an estimator with a torch network in net_; "
                f"{type(model).__name__} has none. Use method='threshold'."
            )

    def _calibrate(
        self, model: Any, rows: CalibrationRows, trade_off: Callable[[Floats], TradeOff], *, owner: str
    ) -> tuple[CalibratedModel, TradeOff]:
        """Train a copy of the network on public rows; see :class:`FairnessCalibrator`."""
        from skfairdp._networks import fine_tune_for_parity

        read, utility = network_view(model, rows.features, len(rows.before), len(rows.classes), owner=owner)
        choice = trade_off(utility)
        settings: dict[str, Any] = {"steps": self.steps, "lr": self.lr, "temperature": self.temperature}
        tuned = fine_tune_for_parity(network_of(model), read, choice.groups, choice.shape[0], choice.keep, **settings)
        calibrated = CalibratedModel(model if tuned is None else with_network(model, tuned), rows.classes, owner)
        if choice.gap_of(calibrated.answer(rows.features, rows.table, None)) > choice.gap_before:
            calibrated = CalibratedModel(model, rows.classes, owner)  # it turns logits into labels in a way of its own
        return calibrated, choice
