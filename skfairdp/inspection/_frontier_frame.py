"""What the plot and the page both need from a frontier frame: its parts, its words and its colours."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._typing import Floats, Ints
from skfairdp.model_selection import utility_in
from skfairdp.privacy import NeighboringRelation, rounded_up

_NEEDED = (
    "epsilon", "delta", "protects", "neighboring_relation", "gamma", "idp3", "disparity", "coverage",
    "non_dominated",
)  # fmt: skip
#: What axes may show, and whether less is better.
AXES = {
    "disparity": ("Fairness gap (demographic disparity)", True),
    "accuracy": ("Accuracy of answered rows", False),
    "r2": ("R² of predictions", False),
    "coverage": ("Coverage (share of rows answered)", False),
    "epsilon": ("Privacy cost ε", True),
}
#: Mechanisms stay below one budget by a little, each by its own: ε that lie closer than this are one budget.
_SAME_BUDGET = 1.02
# From private (cool) to less private (hot); light and dark backgrounds need different lightness.
_RAMPS = {
    "light": ("#3730a3", "#7e22ce", "#c026a3", "#dd4040", "#d07200"),
    "dark": ("#7c8cff", "#b07cff", "#f472c8", "#ff8a7a", "#ffc14d"),
}


INK, SOFT = "#16161d", "#5a5c6b"  # of words and axes


@dataclass(frozen=True)
class Part:
    """The rows that may share one pair of axes: one data set, one kind of guarantee."""

    rows: pd.DataFrame
    dataset: str
    protects: str
    neighboring_relation: str
    delta: float
    epsilon_total: float
    n_fits: int
    references: tuple[dict[str, Any], ...] = ()

    @property
    def delta_text(self) -> str:
        """δ without a padded exponent."""
        return f"{self.delta:g}".replace("e-0", "e-")

    @property
    def protection(self) -> str:
        """What ε protects, in words."""
        return f"ε protects one {self.protects} ({self.neighboring_relation}), δ\u00a0=\u00a0{self.delta_text}"

    @property
    def total_text(self) -> str:
        """What publishing all of these costs, in words."""
        if not math.isfinite(self.epsilon_total):
            return "The cost of publishing all these models is not certified"
        return f"Publishing all these models costs ε = {epsilon_text(self.epsilon_total)} at δ = {self.delta_text}"

    @property
    def of_amounts(self) -> bool:
        """Whether models predict amounts, and not classes."""
        return self.utility == "r2"

    @property
    def utility(self) -> str:
        """The column that says how good predictions are."""
        return utility_in(self.rows)

    def axis(self, column: str) -> tuple[str, bool]:
        """The words of an axis, and whether less is better."""
        if column == "disparity" and self.of_amounts:
            return "Fairness gap (Kolmogorov-Smirnov distance)", True
        return AXES[column]

    @property
    def error_text(self) -> str:
        """How far that column is to be trusted, where it is noisy, in words."""
        if (errors := self.rows.get(f"{self.utility}_error")) is None:
            return ""
        most = rounded_up(errors.max(), 2) if self.of_amounts else f"{rounded_up(100 * errors.max(), 2)}%"
        return (
            f" Each {'R²' if self.of_amounts else 'accuracy'} is right to within {most} (95 %), noise and sampling "
            "together: smaller differences between models are within it."
        )

    @property
    def meaning(self) -> str:
        """What the cost of all these models means, for a reader who has ten seconds."""
        return epsilon_meaning(self.epsilon_total, self.delta, self.protects, self.neighboring_relation)

    @property
    def subject(self) -> str:
        """Data set and estimator; of several estimators the legend tells the names."""
        names = self.estimators if len(self.estimators) == 1 or not self.dataset else []
        return " · ".join(filter(None, (self.dataset, *names)))

    @property
    def estimators(self) -> list[str]:
        """The distinct estimators, as they come."""
        return list(dict.fromkeys(str(name) for name in self.rows.get("estimator", pd.Series(dtype=object))))

    @property
    def levels(self) -> list[float]:
        """The budgets to tell apart, in increasing order: of ε that nearly agree the largest, which bounds them all."""
        levels: list[float] = []
        first = -math.inf
        for epsilon in sorted(set(self.rows["epsilon"].astype(float))):
            if levels and epsilon <= first * _SAME_BUDGET:
                levels[-1] = epsilon
            else:
                levels.append(epsilon)
                first = epsilon
        return levels

    def level_of(self, epsilon: Any) -> Ints:
        """Which of the levels each ε belongs to."""
        return np.searchsorted(self.levels, np.asarray(epsilon, dtype=float))


def check_frame(frame: Any) -> pd.DataFrame:
    """Return the frame, or raise a ValueError that says which columns are missing."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"ParetoFrontierDisplay needs the DataFrame that frontier() returns. Got {type(frame).__name__}."
        )
    missing = [column for column in (*_NEEDED, utility_in(frame)) if column not in frame.columns]
    if missing:
        raise ValueError(
            f"The frame of ParetoFrontierDisplay lacks the column(s) {missing}; frontier() makes such frames."
        )
    if frame.empty:
        raise ValueError("The frame of ParetoFrontierDisplay has no rows.")
    return frame


def parts_of(frame: pd.DataFrame) -> list[Part]:
    """Split a frame so that unlike guarantees, and different data sets, never share axes."""
    records = {(r["protects"], r["neighboring_relation"]): r for r in frame.attrs.get("guarantees", [])}
    dataset = frame.get("dataset", pd.Series("", index=frame.index)).fillna("").astype(str)
    parts = []
    keys = [dataset, frame["protects"].astype(str), frame["neighboring_relation"].astype(str)]
    for key, rows in frame.groupby(keys, sort=False):
        name, protects, relation = (str(value) for value in key)
        record = records.get((protects, relation), {})
        delta, total = float(record.get("delta", rows["delta"].max())), float(record.get("epsilon_total", math.nan))
        marks = tuple(one for one in frame.attrs.get("references", []) if str(one.get("dataset", "")) == name)
        parts.append(Part(rows, name, protects, relation, delta, total, int(record.get("n_fits", 0)), marks))
    return parts


def epsilon_text(value: float) -> str:
    """Write ε with three significant digits, rounded up: an upper bound rounded down would no longer be one."""
    if not math.isfinite(value) or value <= 0:
        return "0" if value == 0 else "∞"
    return rounded_up(value, 3)


_ONE = {
    "record": "One record is one row of the private table; several rows of one person are protected less.",
    "sensitive attribute": "It protects the group that a row belongs to; all other values of the row count as public.",
    "subject": "One subject is all rows that have the same id, such as those of one person.",
}


def epsilon_meaning(epsilon: float, delta: float, protects: str, relation: str) -> str:
    """Say in words what (ε, δ) bounds: whoever sees the release names the right one of two equally likely values of a
    record with probability at most (e^ε + δ) / (e^ε + 1). Where neighbours have nothing in its place two values are two
    steps apart: there it is about a record that is there or left out."""
    if not math.isfinite(epsilon):
        return ""
    share = 1 / (1 + math.exp(-epsilon)) + delta / (1 + math.exp(min(epsilon, 700.0)))
    percent = min(math.ceil(share * 1000 - 1e-9) / 10, 100.0)
    of = {"record": "one record has", "subject": "all rows of one subject have"}
    what = f"which of two values {of.get(protects, 'the group of one record or subject has')}"
    if relation in set(NeighboringRelation) and NeighboringRelation(relation).by_null:
        which = "the rows of one subject are" if protects == "subject" else "one record is"
        what = f"whether {which} there or left out"
    return (
        f"An attacker who sees all of this and knows all other rows guesses {what}: the guess is right at "
        f"most {percent:g} % of the time, and a random one 50 %. {_ONE.get(protects, '')}"
    )


def level_colors(n: int, theme: str) -> list[str]:
    """``n`` colours along the ramp, evenly spaced; linear between its stops."""
    ramp = [tuple(int(stop[i : i + 2], 16) for i in (1, 3, 5)) for stop in _RAMPS[theme]]
    colors = []
    for j in range(n):
        at = (j / (n - 1) if n > 1 else 0.25) * (len(ramp) - 1)
        low = min(int(at), len(ramp) - 2)
        mix = [a + (b - a) * (at - low) for a, b in zip(ramp[low], ramp[low + 1], strict=True)]
        colors.append("#" + "".join(f"{round(channel):02x}" for channel in mix))
    return colors


def refusal_kind(row: Any) -> str:
    """How γ is held: "no" refusals, IDP3 on "top" of a student held to γ, or IDP3 "alone"."""
    if not row["idp3"]:
        return "no"
    student = row.get("student_gamma", row["gamma"])
    return "alone" if student is None or math.isnan(student) else "top"


def staircase_surface(epsilon: Floats, gap: Floats, utility: Floats) -> tuple[Floats, Floats, Floats]:
    """Bounds on ε and on the gap, and the best utility among the models that meet both (NaN where none does)."""
    most, widest = np.unique(epsilon), np.unique(gap)
    met = (epsilon <= most[:, None, None]) & (gap <= widest[:, None])
    best = np.where(met, utility, -np.inf).max(axis=2, initial=-np.inf)
    return most, widest, np.where(met.any(axis=2), best, np.nan)


def draw_surface(ax: Any, part: Part) -> None:
    """Draw one part on three-dimensional axes."""
    names = ["epsilon", "disparity", part.utility]
    rows = part.rows[np.isfinite(part.rows[names].to_numpy(float)).all(axis=1)]
    if rows.empty:
        said = f"No model has a finite ε, gap and {'R²' if part.of_amounts else 'accuracy'}."
        ax.text2D(0.5, 0.5, said, transform=ax.transAxes, ha="center")
        return
    epsilon, gap, utility = (rows[name].to_numpy(float) for name in names)
    e, g, best = staircase_surface(epsilon, gap, utility)
    # Every bound twice, where one step ends and the next begins, so that the surface has treads and risers.
    e_edges, g_edges = (np.repeat(np.r_[bounds, bounds[-1] * 1.1 + 1e-3], 2)[1:-1] for bounds in (e, g))
    steps = best.repeat(2, axis=0).repeat(2, axis=1)
    for i in range(len(e_edges) - 1):
        for j in range(len(g_edges) - 1):
            height = steps[i : i + 2, j : j + 2]
            if np.isfinite(height).all():
                corners = np.meshgrid(e_edges[i : i + 2], g_edges[j : j + 2], indexing="ij")
                shade = "#8f93d8" if np.ptp(height) == 0 else "#6b6fb5"
                ax.plot_surface(*corners, height, color=shade, alpha=0.2, linewidth=0)
    levels = part.levels
    for j, (level, color) in enumerate(zip(levels, level_colors(len(levels), "light"), strict=True)):
        at = part.level_of(epsilon) == j
        if not at.any():
            continue
        for kept in (False, True):
            some = at & (rows["non_dominated"].to_numpy(bool) == kept)
            ax.scatter(
                epsilon[some], gap[some], utility[some], s=34, color=color, alpha=1.0 if kept else 0.2,
                depthshade=False, label=f"ε = {epsilon_text(level)}" if kept else None,
            )  # fmt: skip
    ax.set_xlabel(f"ε protecting one {part.protects}", color=INK, fontsize=9)
    ax.set_ylabel("Fairness gap", color=INK, fontsize=9)
    ax.set_zlabel(AXES[part.utility][0], color=INK, fontsize=9)
    ax.tick_params(colors=SOFT, labelsize=8)
    ax.view_init(elev=24, azim=-128)
    subject = part.subject or f"Privacy, fairness and {'R²' if part.of_amounts else 'accuracy'}"
    ax.set_title(f"{subject}\n{part.protection}\n{part.total_text}", loc="left", fontsize=9.5, color=INK)


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
