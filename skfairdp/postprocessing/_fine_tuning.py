"""Fine-tuning the network of a fitted classifier on public rows, for less disparity."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._utils import without_cells
from skfairdp._utils._sklearn import Interval
from skfairdp.postprocessing._inputs import class_codes, network_of, network_view, with_network
from skfairdp.postprocessing._thresholding import CalibrationRows, TradeOff


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
        self.steps = steps
        self.lr = lr
        self.temperature = temperature

    def _check(self, model: Any, owner: str) -> None:
        """Raise a ValueError where a parameter is wrong, or the model has no network."""
        self._validate_params()
        if network_of(model) is None:
            raise ValueError(
                f"method='fine_tune' of {owner} needs an estimator with a torch network in net_; "
                f"{type(model).__name__} has none. Use method='threshold'."
            )

    def _calibrate(
        self, model: Any, rows: CalibrationRows, trade_off: Callable[[NDArray[np.float64]], TradeOff], *, owner: str
    ) -> tuple["FineTunedNetwork", TradeOff]:
        """Train a copy of the network on public rows; see :class:`FairnessCalibrator`."""
        from skfairdp._networks import fine_tune_for_parity

        read, utility = network_view(model, rows.features, len(rows.before), len(rows.classes), owner=owner)
        choice = trade_off(utility)
        settings: dict[str, Any] = {"steps": self.steps, "lr": self.lr, "temperature": self.temperature}
        tuned = fine_tune_for_parity(network_of(model), read, choice.groups, choice.shape[0], choice.keep, **settings)
        calibrated = FineTunedNetwork(model if tuned is None else with_network(model, tuned), rows.classes, owner)
        if choice.gap_of(calibrated.answer(rows.features)) > choice.gap_before:
            calibrated = FineTunedNetwork(model, rows.classes, owner)  # it turns logits into labels in a way of its own
        return calibrated, choice


class FineTunedNetwork:
    """A model with another network; it predicts as it did."""

    reads_groups = False

    def __init__(self, estimator: Any, classes: NDArray[Any], owner: str) -> None:
        self.estimator, self.classes, self.owner = estimator, classes, owner

    def attributes(self) -> dict[str, Any]:
        """What the calibrator shows of it."""
        return {"estimator_": self.estimator}

    def answer(self, features: Any, table: Any = None, groups: Any = None) -> NDArray[np.int64]:
        """Return the code of each row's class."""
        predicted = without_cells(self.estimator.predict, features, owner=self.owner)
        return class_codes(predicted, self.classes, owner=self.owner)
