"""A table with columns of every type, and a generator that knows all of them."""

import numpy as np
import pandas as pd

from skfairdp import PFGuardGenerator

N = 3000
DTYPES = {
    "age": np.dtype("int64"),
    "small": np.dtype("uint8"),
    "height": np.dtype("float32"),
    "income": np.dtype("float64"),
    "visits": pd.Int32Dtype(),
    "job": np.dtype("O"),
    "town": "string",
    "level": pd.CategoricalDtype(["low", "mid", "high"], ordered=True),
    "married": np.dtype("bool"),
    "maybe": pd.BooleanDtype(),
}
BOUNDS = {"age": (17, 90), "small": (0, 9), "height": (100.0, 220.0), "visits": (0, 50)}
CATEGORIES = {
    "job": ["cook", "smith"],
    "town": ["here", "there"],
    "level": ["low", "mid", "high"],
    "maybe": [False, True],
}


def mixed_table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.3
    y = (rng.random(n) < np.where(group, 0.1, 0.4)).astype(int)
    job = np.where(rng.random(n) < 0.2 + 0.5 * y, "cook", "smith").astype(object)
    job[rng.random(n) < 0.1] = None
    visits = pd.array(rng.poisson(4, n), dtype="Int32")
    visits[rng.random(n) < 0.2] = pd.NA
    maybe = pd.array(rng.random(n) < 0.5, dtype="boolean")
    maybe[rng.random(n) < 0.3] = pd.NA
    income = np.where(rng.random(n) < 0.5, 0.0, rng.lognormal(8, 2, n))
    income[rng.random(n) < 0.15] = np.nan
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "small": rng.integers(0, 10, n).astype("uint8"),
            "height": rng.normal(170 - 10 * group, 8, n).astype("float32"),
            "income": income,
            "visits": visits,
            "job": job,
            "town": pd.array(np.where(rng.random(n) < 0.6, "here", "there"), dtype="string"),
            "level": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "married": rng.random(n) < 0.5,
            "maybe": maybe,
        }
    )
    sex = pd.Series(np.where(group, "f", "m"), name="sex")
    return frame, pd.Series(np.where(y == 1, ">50K", "<=50K"), name="pay"), sex


def make(**more):
    given = {
        "epsilon": 5.0,
        "bounds": BOUNDS,
        "categories": CATEGORIES,
        "dtypes": DTYPES,
        "classes": ["<=50K", ">50K"],
        "groups": ["f", "m"],
        "random_state": 0,
    }
    return PFGuardGenerator(**{**given, **more})
