"""Bounds on the gap that stand beside ε: how often they hold, through the whole code that releases them."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from skfairdp.fairness import RateParity
from skfairdp.postprocessing import PrivateThresholds
from skfairdp.privacy import NoiseSource, gdp_mu
from skfairdp.schema import Category, Schema
from tests._tools.inside import LabelFigures

REPEATS = 1000
RATES = {"f": 0.35, "m": 0.55}
SCHEMA = Schema(
    {"x": Category(("no", "yes")), "who": Category(("f", "m")), "y": Category((0, 1))}, label="y", groups="who"
)


def off(repeats: int) -> float:
    """How far the share of so many runs may lie from 95 %."""
    return 3.3 * math.sqrt(0.95 * 0.05 / repeats)


class SaysX(BaseEstimator):
    """A model that answers what it reads."""

    predicts_rows_alone = True  # many rows a call: one by one a thousand runs take a quarter of an hour

    def predict(self, rows):
        return (rows["x"] == "yes").astype(int).to_numpy()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_gap_of_the_population_stays_below_the_bound_of_a_noisy_table_in_95_of_100_runs(epsilon):
    """A model that answers what it reads, and that no row of the table has taught."""
    rng, held = np.random.default_rng(0), 0
    figures = LabelFigures(SCHEMA, gdp_mu(epsilon, 1e-5), 1e-5, 2)
    model = SaysX()
    for seed in range(REPEATS):
        who = rng.choice(["f", "m"], size=3000, p=[0.3, 0.7])
        yes = rng.random(3000) < np.where(who == "f", RATES["f"], RATES["m"])
        table = pd.DataFrame({"x": np.where(yes, "yes", "no"), "who": who, "y": rng.integers(2, size=3000)})
        found = figures.release(model, table, figures.codes(table), NoiseSource(seed))
        held += found["gap_bound"] >= RATES["m"] - RATES["f"]
    assert 0.95 - off(REPEATS) <= held / REPEATS <= 0.97 + off(REPEATS), held


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*given to PrivateThresholds has no privacy_")
@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize(("known", "epsilon", "repeats"), [(True, 4.0, REPEATS), (False, 4.0, 100), (False, 2.0, 100)])
def test_the_gap_of_the_population_stays_below_the_bound_of_private_thresholds_in_95_of_100_runs(
    known, epsilon, repeats
):
    """Thresholds that are let a gap of .2: that of the population is worked out from their chances, bin by bin.

    Where groups are known, or guessed at ε = 2, the bound is of the rows by whose noisy counts the thresholds were
    chosen. A guess learns a network: there are fewer runs of it.
    """
    rng, held = np.random.default_rng(1), 0
    levels = np.linspace(-2.0, 2.0, 9)  # of the one feature: what the population is, is known exactly
    by_group = np.stack([np.linspace(2.0, 0.2, 9), np.linspace(0.2, 2.0, 9)])
    by_group /= by_group.sum(axis=1, keepdims=True)
    model = LogisticRegression().fit(levels[:, None], (levels > 0.3).astype(int))
    shaken = np.arange(400) / 1e6  # rows of their own, so that each tosses its own coin
    for seed in range(repeats):
        groups = rng.integers(2, size=3000)
        at = (rng.random(3000)[:, None] > by_group.cumsum(axis=1)[groups, :-1]).sum(axis=1)
        X = (levels[at] + rng.choice(shaken, 3000))[:, None]
        y = (rng.random(3000) < model.predict_proba(X)[:, 1]).astype(int)
        made = PrivateThresholds(
            model, constraints=RateParity("selection_rate", 0.2), epsilon=epsilon, groups=[0, 1], random_state=seed,
            noise_seed=seed, group_at_prediction=known,
        )  # fmt: skip
        made.fit(X, y, sensitive_features=groups)
        rows = np.repeat(levels, 400)[:, None] + np.tile(shaken, 9)[:, None]
        rates = []
        for group in range(2):
            given = {"sensitive_features": np.full(len(rows), group)} if known else {}
            rates.append(by_group[group] @ made.predict(rows, **given).reshape(9, -1).mean(axis=1))
        held += made.gap_bound_ >= abs(float(rates[0] - rates[1]))
    assert 0.95 - off(repeats) <= held / repeats <= 0.97 + off(repeats), held
