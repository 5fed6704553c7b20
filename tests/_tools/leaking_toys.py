"""A small private estimator that is sound, and the ways in which it could leak past its noise."""

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from skfairdp.privacy import GaussianMechanism, NeighboringRelation, PrivacySpent, Spending, repeat

__all__ = ["LEAKS", "PrivateMean"]


class PrivateMean(BaseEstimator):
    """The mean of numbers between 0 and 1, with noise; ``leak`` names a mistake from LEAKS."""

    def __init__(self, epsilon: float = 1.0, sigma: float = 5.0, leak: str | None = None, ledger: Any = None) -> None:
        self.epsilon = epsilon
        self.sigma = sigma
        self.leak = leak
        self.ledger = ledger

    def fit(self, x: Any) -> "PrivateMean":
        values = np.clip(np.nan_to_num(np.asarray(x, dtype=float)), 0.0, 1.0)
        relation = NeighboringRelation.REPLACE_ONE
        total = GaussianMechanism(self._sigma(x), sensitivity=self._sensitivity(), relation=relation)
        paid = repeat(total.event, 2) if self.leak == "one release more" else total.event  # else it is refused
        spending = Spending(paid, 1e-5, relation, label="PrivateMean", ledger=self.ledger, report_to=self._report)
        if self.leak in LEAKS:
            LEAKS[self.leak](self, x)
        with spending as noise:
            exact = [values.sum() if self.leak != "unclipped" else np.asarray(x, dtype=float).sum()]
            self.mean_ = float(total.release(exact, noise)[0]) / len(values)
            if self.leak == "one release more" and x[0] > 1:
                total.release(exact, noise)
        if self.leak == "charged again" and self.ledger is not None and x[0] > 1:
            self.ledger.charge(total.event, label="more", protects="record", neighboring_relation=relation)
        return self

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.mean_ + getattr(self, "_shift", 0.0))

    def _sigma(self, x: Any) -> float:
        return self.sigma * 2 if self.leak == "noise follows the data" and x[0] > 1 else self.sigma

    def _sensitivity(self) -> float:
        return 0.5 if self.leak == "sensitivity too small" else 1.0

    def _report(self, privacy: PrivacySpent) -> None:
        self.privacy_ = privacy


def _extreme(x: Any) -> bool:
    return bool(np.max(x) > 1)


def _fails(toy: Any, x: Any) -> None:
    if _extreme(x):
        raise ValueError(f"{x[0]} is too large")


def _fails_in_a_row(toy: Any, x: Any) -> None:
    try:
        raise ArithmeticError(f"the largest is {np.max(x)}")
    except ArithmeticError:
        raise ValueError("These rows cannot be used.") from None


#: Each shows something of x beside the noisy mean.
LEAKS: dict[str, Any] = {
    "an attribute": lambda toy, x: setattr(toy, "n_extreme_", int(np.sum(np.asarray(x) > 1))),
    "a private attribute": lambda toy, x: setattr(toy, "_largest", float(np.max(x))),
    "a type": lambda toy, x: setattr(toy, "zero_", np.zeros(1, dtype=np.asarray(x).dtype)),
    "a string's length": lambda toy, x: setattr(toy, "name_", np.array(["a", "b" * (2 + 3 * _extreme(x))])[:1]),
    "a category": lambda toy, x: setattr(
        toy, "levels_", pd.Series(pd.Categorical(["low"], categories=["low", "high"][: 1 + _extreme(x)]))
    ),
    "minus zero": lambda toy, x: setattr(toy, "zero_", -0.0 if _extreme(x) else 0.0),
    "a truth for a one": lambda toy, x: setattr(toy, "one_", True if _extreme(x) else 1),
    "the order of a set": lambda toy, x: setattr(toy, "order_", dict.fromkeys(["a", "b"][:: -1 if _extreme(x) else 1])),
    "a prediction": lambda toy, x: setattr(toy, "_shift", 1e-12 * _extreme(x)),
    "a warning": lambda toy, x: warnings.warn("extreme rows", UserWarning) if _extreme(x) else None,
    "the text of a warning": lambda toy, x: warnings.warn(f"largest: {np.max(x)}", UserWarning),
    "printed text": lambda toy, x: print("largest", np.max(x)),
    "text from C": lambda toy, x: os.write(2, f"largest {np.max(x)}\n".encode()),
    "a log record": lambda toy, x: logging.getLogger("toy").debug("largest %s", np.max(x)),
    "a file": lambda toy, x: Path("notes.txt").write_text(str(np.max(x))),
    "an exception": _fails,
    "the cause of an exception": _fails_in_a_row,
    "a draw from the global generator": lambda toy, x: np.random.rand() if _extreme(x) else None,  # noqa: NPY002
    "unclipped": lambda toy, x: None,
    "one release more": lambda toy, x: None,
    "charged again": lambda toy, x: None,
    "noise follows the data": lambda toy, x: None,
    "sensitivity too small": lambda toy, x: None,
}
