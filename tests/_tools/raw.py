"""A raw table as people have it: texts, dates, gaps, the label and the group among its columns."""

from typing import Any

import numpy as np
import pandas as pd

from skfairdp.schema import Boolean, Category, Date, Number, Schema

__all__ = ["RAW_SCHEMA", "raw_rows", "with_record"]

RAW_SCHEMA = Schema(
    {
        "age": Number(17, 90, step=1),
        "job": Category(["clerk", "nurse", "pilot"], missing=True),
        "wage": Number(0.0, 200.0, missing=True),
        "hired": Date("1990-01-01", "2026-01-01", missing=True),
        "citizen": Boolean(missing=True),
        "sex": Category(["Female", "Male"]),
        "income": Category(["<=50K", ">50K"]),
    },
    label="income",
    groups="sex",
)


def raw_rows(n_rows: int, *, seed: int) -> pd.DataFrame:
    """Rows that fit ``RAW_SCHEMA``; the label follows age, job and, a little, the group."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(17, 91, n_rows), rng.choice(["Female", "Male"], n_rows)
    job = rng.choice(["clerk", "nurse", "pilot", "?"], n_rows)
    score = age / 40 + 0.6 * (sex == "Male") + (job == "pilot") + rng.normal(0, 0.3, n_rows)
    return pd.DataFrame(
        {
            "age": age,
            "job": job,
            "wage": np.where(rng.random(n_rows) < 0.1, np.nan, rng.uniform(0, 200, n_rows).round(2)),
            "hired": [f"{year}-03-01" for year in rng.integers(1990, 2026, n_rows)],
            "citizen": rng.random(n_rows) < 0.7,
            "sex": sex,
            "income": np.where(score > 1.9, ">50K", "<=50K"),
        }
    )


def with_record(table: pd.DataFrame, cells: dict[str, Any], at: int) -> pd.DataFrame:
    """The table with another record in one place, as columns of objects, which hold any cell."""
    neighbour = table.astype(object)
    for j, name in enumerate(table):
        column = neighbour[name].to_numpy(copy=True)
        column[at] = cells[name]
        neighbour.isetitem(j, pd.Series(column, dtype=object))
    return neighbour
