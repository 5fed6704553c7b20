"""Bounds on the gap that stand beside ε: how often they hold, through the whole code that releases them."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from skfairdp.model_selection._own_table import _Figures
from skfairdp.privacy import NoiseSource
from skfairdp.schema import Category, Schema

REPEATS = 1000
OFF = 3.3 * math.sqrt(0.95 * 0.05 / REPEATS)
RATES = {"f": 0.35, "m": 0.55}
SCHEMA = Schema(
    {"x": Category(("no", "yes")), "who": Category(("f", "m")), "y": Category((0, 1))}, label="y", groups="who"
)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_gap_of_the_population_stays_below_the_bound_of_a_noisy_table_in_95_of_100_runs(epsilon):
    """A model that answers what it reads, and that no row of the table has taught."""
    rng, held = np.random.default_rng(0), 0
    figures = _Figures(SCHEMA, epsilon, 1e-5, 2)
    model = SimpleNamespace(predict=lambda rows: (rows["x"] == "yes").astype(int).to_numpy())
    for seed in range(REPEATS):
        who = rng.choice(["f", "m"], size=3000, p=[0.3, 0.7])
        yes = rng.random(3000) < np.where(who == "f", RATES["f"], RATES["m"])
        table = pd.DataFrame({"x": np.where(yes, "yes", "no"), "who": who, "y": rng.integers(2, size=3000)})
        found = figures.measured(model, table, figures.codes(table), NoiseSource(seed))
        held += found["gap_bound"] >= RATES["m"] - RATES["f"]
    assert abs(held / REPEATS - 0.95) <= OFF, held
