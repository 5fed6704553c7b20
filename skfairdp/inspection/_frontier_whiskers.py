"""Whiskers of a frontier: from the gap of a model to what it is at most in the population, with 95 % confidence."""

from typing import Any

import numpy as np
import pandas as pd


def has_whiskers(rows: pd.DataFrame, x: str, y: str) -> bool:
    """Whether there is a bound to draw, and an axis to draw it along."""
    return (x == "disparity") != (y == "disparity") and "gap_bound" in rows and bool(rows["gap_bound"].notna().any())


def draw_whiskers(ax: Any, rows: pd.DataFrame, x: str, y: str, color: str) -> None:
    """A line from each gap to its bound. Few rows make it long; it is cut off where the models end."""
    if not has_whiskers(rows, x, y):
        return
    from matplotlib.collections import LineCollection

    gap = rows["disparity"].to_numpy(float)
    ends = np.stack([gap, np.fmax(gap, rows["gap_bound"].to_numpy(float))], axis=1)
    level = np.repeat(rows[y if x == "disparity" else x].to_numpy(float)[:, None], 2, axis=1)
    lines = np.stack([ends, level] if x == "disparity" else [level, ends], axis=2)
    ax.add_collection(LineCollection(list(lines), colors=color, linewidths=1.0, alpha=0.4, zorder=1), autolim=False)
