"""Draws the frontier of accuracy, fairness and privacy from a table of operating points."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._docs import shared_docs
from skfairdp._utils import invalid_parameter, write_text
from skfairdp.inspection import _frontier_frame as frames
from skfairdp.inspection._frontier_frame import AXES, INK, SOFT, Part, epsilon_text, parts_of, refusal_kind
from skfairdp.inspection._html import frontier_page
from skfairdp.model_selection import join_frontiers, measure_estimators, utility_in

# Marker, its area and its words.
_KINDS: dict[str, tuple[str, float, str]] = {
    "no": ("o", 52, "answers everyone"),
    "top": ("D", 34, "IDP3 on top of a fair student"),
    "alone": ("s", 44, "IDP3 alone: refuses more"),
}

#: Of who answers everyone, where several estimators are compared.
_MAKERS = ("o", "^", "v", "h")


@shared_docs
class ParetoFrontierDisplay:
    """Plot of the trade-off between privacy, fairness, accuracy and coverage.

    Every ε shown is the certified one of the release behind a model, and the legend says what it protects. Models with
    unlike guarantees (another unit of protection, another neighbouring relation) are drawn on axes of their own: their
    ε cannot be compared. Nothing here reads private data; the figures are those of the frame.

    Made of frames (:meth:`from_frame`), of searches (:meth:`from_search`) or of fitted estimators
    (:meth:`from_estimators`). :meth:`plot` draws one pair of quantities, :meth:`plot_panels` several side by side,
    :meth:`plot_surface` the accuracy that a gap and an ε allow, :meth:`to_html` a page to explore.

    Parameters
    ----------
    frame : DataFrame
        As :func:`skfairdp.model_selection.frontier` returns it, ``attrs`` included.
    x, y : {"disparity", "accuracy", "r2", "coverage", "epsilon"}, default="disparity", None
        Columns on the two axes. ``y=None`` is accuracy, or R² of models that predict amounts.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of them
        One for each kind of guarantee and data set.
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        The frame lacks a column, or ``x`` or ``y`` is none of these.

    See Also
    --------
    skfairdp.model_selection.frontier : Makes the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import ParetoFrontierDisplay
    >>> frame = pd.DataFrame({
    ...     "epsilon": [1.0, 1.0, 5.0], "delta": 1e-5, "protects": "record",
    ...     "neighboring_relation": "replace one record", "gamma": [0.05, None, 0.05], "idp3": False,
    ...     "disparity": [0.03, 0.10, 0.04], "accuracy": [0.80, 0.82, 0.82], "coverage": 1.0,
    ...     "non_dominated": True})
    >>> display = ParetoFrontierDisplay.from_frame(frame)
    >>> display.ax_.get_xlabel()
    'Fairness gap (demographic disparity)'
    """

    def __init__(self, frame: pd.DataFrame, *, x: str = "disparity", y: str | None = None) -> None:
        self.frame = frames.check_frame(frame)
        utility = utility_in(frame)
        drawn = {*AXES} - ({"accuracy", "r2"} - {utility})
        y = utility if y is None else y
        for name, value in (("x", x), ("y", y)):
            if value not in drawn:
                raise invalid_parameter(name, "ParetoFrontierDisplay", f"one of {sorted(drawn)}", value)
        self.x, self.y = x, y

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame | Sequence[pd.DataFrame], *, x: str = "disparity", y: str | None = None, ax: Any = None
    ) -> "ParetoFrontierDisplay":
        """Make the display of a frame and plot it.

        Parameters
        ----------
        frame : DataFrame or sequence of them
            As :func:`skfairdp.model_selection.frontier` returns it. Of several with the same kind of guarantee the cost
            of publishing all is not known.
        x, y : {"disparity", "accuracy", "r2", "coverage", "epsilon"}, default="disparity", None
            What the axes show. ``y=None`` is accuracy, or R² of models that predict amounts.
        ax : matplotlib Axes, or sequence of them, default=None
            One for each kind of guarantee and data set in the frame. None makes a figure.

        Returns
        -------
        ParetoFrontierDisplay
            Drawn.
        """
        given = frame if isinstance(frame, pd.DataFrame) else join_frontiers(list(map(frames.check_frame, frame)))
        return cls(given, x=x, y=y).plot(ax=ax)

    @classmethod
    def from_search(
        cls, search: Any, *, x: str = "disparity", y: str | None = None, ax: Any = None
    ) -> "ParetoFrontierDisplay":
        """Make the display of searches and plot it.

        Parameters
        ----------
        search : ParetoSearchCV, list of them, or dict of name → ParetoSearchCV
            Fitted, on the same private rows: what they cost together is composed.
        {drawn_frontier}
        """
        return cls(join_frontiers(search), x=x, y=y).plot(ax=ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Any,
        X: Any,
        y_true: Any,
        *,
        sensitive_features: Any,
        dataset: str = "",
        x: str = "disparity",
        y: str | None = None,
        ax: Any = None,
    ) -> "ParetoFrontierDisplay":
        """Measure fitted estimators on the same rows and plot them.

        Parameters
        ----------
        estimators : dict of name → estimator, or list of estimators
            Fitted, on the same private rows: what they cost together is composed. Each has ``privacy_``, or
            post-processes one that has it (:class:`IDP3`).
        X, y_true, sensitive_features : array-like or DataFrame
            Rows to measure on, their labels and groups; no ε covers them.
        dataset : str, default=""
            Name in titles.
        {drawn_frontier}
        """
        frame = measure_estimators(estimators, X, y_true, sensitive_features=sensitive_features, dataset=dataset)
        return cls(frame, x=x, y=y).plot(ax=ax)

    def plot(self, ax: Any = None) -> "ParetoFrontierDisplay":
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, default=None
            One for each kind of guarantee and data set in the frame. None makes a figure.

        Returns
        -------
        self : ParetoFrontierDisplay
            With ``ax_`` and ``figure_``.

        Raises
        ------
        ImportError
            matplotlib is not installed.
        ValueError
            The number of axes is not that of the parts.
        """
        pyplot = _pyplot()
        parts = parts_of(self.frame)
        if ax is None:
            size = 6.2 * len(parts), 7.2
            figure, axes = pyplot.subplots(1, len(parts), figsize=size, squeeze=False, layout="constrained")
            axes, legend = axes[0], "below"  # where a phone has room for it
        else:
            axes, legend = np.atleast_1d(np.asarray(ax, dtype=object)), "beside"
            figure = axes[0].figure
        if len(axes) != len(parts):
            raise ValueError(
                f"ParetoFrontierDisplay needs {len(parts)} axes, one for each kind of guarantee and data set; got "
                f"{len(axes)}. Unlike guarantees are never drawn on one pair of axes."
            )
        for axis, part in zip(axes, parts, strict=True):
            self._draw(axis, part, legend)
        self.ax_ = axes[0] if len(axes) == 1 else axes
        self.figure_ = figure
        return self

    def plot_panels(self, pairs: Sequence[tuple[str, str]] | None = None) -> "ParetoFrontierDisplay":
        """Draw several pairs of quantities side by side, one row for each kind of guarantee and data set.

        Parameters
        ----------
        pairs : sequence of (x, y), default=None
            None: gap and accuracy (or R²), ε and accuracy, ε and gap; with coverage where some rows are refused.

        Returns
        -------
        self : ParetoFrontierDisplay
            ``ax_`` is an array of shape (n_parts, n_pairs).
        """
        parts = parts_of(self.frame)
        if pairs is None:
            utility = utility_in(self.frame)
            pairs = [("disparity", utility), ("epsilon", utility), ("epsilon", "disparity")]
            if (self.frame["coverage"] < 1).any():
                pairs.append(("coverage", utility))
        figure, axes = _pyplot().subplots(
            len(parts), len(pairs), figsize=(5.4 * len(pairs) + 2.2, 4.6 * len(parts)), squeeze=False,
            layout="constrained",
        )  # fmt: skip
        for row, part in zip(axes, parts, strict=True):
            for j, (axis, (x, y)) in enumerate(zip(row, pairs, strict=True)):
                legend = "beside" if j == len(pairs) - 1 else ""
                ParetoFrontierDisplay(self.frame, x=x, y=y)._draw(axis, part, legend, title=j == 0)
        self.ax_, self.figure_ = axes, figure
        return self

    def plot_surface(self) -> "ParetoFrontierDisplay":
        """Draw the best accuracy that a bound on the gap and one on ε allow, as a surface in three dimensions.

        One surface for each kind of guarantee and data set; the models stand on or below it, dominated ones faded. It
        is a staircase: between two models none was made.

        Returns
        -------
        self : ParetoFrontierDisplay
            ``ax_`` is an array of three-dimensional axes, one for each part.
        """
        parts = parts_of(self.frame)
        figure = _pyplot().figure(figsize=(7.4 * len(parts), 6.2), layout="constrained")
        axes = [figure.add_subplot(1, len(parts), j, projection="3d") for j in range(1, len(parts) + 1)]
        self.ax_ = np.array(axes, dtype=object)
        for axis, part in zip(self.ax_, parts, strict=True):
            frames.draw_surface(axis, part)
        self.figure_ = figure
        return self

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write one self-contained interactive page.

        Hovering or focusing a model shows its parameters, its ε and what ε protects; sliders bound ε, gap and coverage;
        a table follows. The page works offline, makes no request, and can be used with the keyboard alone.

        Parameters
        ----------
        path : path-like
            File to write. An existing one is replaced.
        title : str, default=None
            Heading. None: made from the data set's name.

        Returns
        -------
        path : pathlib.Path
            The file.
        """
        return write_text(path, frontier_page(self.frame, title=title))

    def _draw(self, ax: Any, part: Part, legend: str, *, title: bool = True) -> None:
        of_level = part.level_of(part.rows["epsilon"])
        for j, color in enumerate(frames.level_colors(len(part.levels), "light")):
            rows = part.rows[of_level == j]
            frames.draw_whiskers(ax, rows, self.x, self.y, color)
            for kind, marker, mine in _alike(rows, part.estimators):
                self._draw_alike(ax, mine, kind, marker, color)
            ax.scatter([], [], s=52, color=color, label=f"ε = {epsilon_text(part.levels[j])}")
        for marker, face, area, label in _shapes(part):
            mark = {"marker": marker, "facecolor": SOFT if face else "none", "edgecolor": SOFT, "label": label}
            ax.scatter([], [], s=0.8 * area, **mark)
        if not part.rows["non_dominated"].astype(bool).all():
            ax.scatter([], [], s=46, marker="o", color=SOFT, alpha=0.22, label="beaten by another model")
        if frames.has_whiskers(part.rows, self.x, self.y):
            ax.plot([], [], color=SOFT, linewidth=1.0, alpha=0.6, label="gap at most, 95 % confidence")
        for one in part.references:
            self._compare(ax, one)
        if legend:
            self._explain(ax, part, legend)
        self._dress(ax, part, title)

    def _draw_alike(self, ax: Any, mine: pd.DataFrame, kind: str, marker: str, color: str) -> None:
        """Models of one budget and one estimator that hold γ alike: their marks, and what joins them."""
        points = mine[[self.x, self.y]].dropna().to_numpy(float)
        # the coverage of others differs: theirs would be no frontier
        if kind == "no" and "epsilon" not in (self.x, self.y) and len(points) > 1:
            line = {"color": color, "linewidth": 1.7, "alpha": 0.45, "zorder": 1}
            ax.step(*_staircase(points, AXES[self.x][1], AXES[self.y][1]).T, where="post", **line)
        for best in (False, True):
            some = mine[mine["non_dominated"].astype(bool) == best]
            size = _KINDS[kind][1] * (0.25 + 0.75 * some["coverage"].to_numpy(float) ** 2)
            ax.scatter(some[self.x], some[self.y], s=size, marker=marker, **_look(kind, color, best))

    def _compare(self, ax: Any, one: Mapping[str, Any]) -> None:
        """A mark that is no model of the table: a cross, or a line where it has no place on one of the axes."""
        at = {**one, "coverage": 1.0, "epsilon": None}
        color, marker = (INK, "x") if one.get("private", True) else (SOFT, "+")
        if at[self.x] is not None and at[self.y] is not None:
            ax.scatter([at[self.x]], [at[self.y]], marker=marker, s=60, color=color, linewidth=1.8, zorder=6,
                       label=one["name"])  # fmt: skip
        else:
            for draw, place in ((ax.axhline, at[self.y]), (ax.axvline, at[self.x])):
                if place is not None:
                    draw(place, color=color, linestyle=(0, (5, 3)), linewidth=1.1, zorder=1, label=one["name"])

    def _explain(self, ax: Any, part: Part, where: str) -> None:
        if "epsilon" not in (self.x, self.y):
            ax.plot([], [], color=SOFT, linewidth=1.7, alpha=0.45, label="best at one ε, answering all")
        at: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
        if where == "below":
            at = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.12), "ncols": 2, "columnspacing": 1.0}
        title = f"ε protects one {part.protects}\n({part.neighboring_relation}, δ = {part.delta_text})"
        at |= {"frameon": False, "alignment": "left", "labelcolor": INK, "handletextpad": 0.4, "labelspacing": 0.6}
        ax.legend(title=title, fontsize=10, title_fontsize=10, **at).get_title().set_color(INK)

    def _dress(self, ax: Any, part: Part, title: bool) -> None:
        from matplotlib.ticker import PercentFormatter

        (x_label, x_less), (y_label, y_less) = (part.axis(name) for name in (self.x, self.y))
        for axis, column in ((ax.xaxis, self.x), (ax.yaxis, self.y)):
            if column in ("accuracy", "coverage"):
                axis.set_major_formatter(PercentFormatter(1.0, decimals=None, symbol=" %"))
        ax.set_xlabel(x_label, color=INK, fontsize=11)
        ax.set_ylabel(y_label, color=INK, fontsize=11)
        ax.grid(color="#ecedf3", linewidth=1)
        ax.set_axisbelow(True)
        ax.tick_params(colors=SOFT, labelsize=10, length=0)
        ax.spines[:].set_visible(False)
        ax.margins(0.06, 0.08)
        if self.x == "disparity":
            ax.set_xlim(left=-0.015 * ax.get_xlim()[1])  # room for a marker at a gap of zero
        if title:
            subject = part.subject or f"Privacy, fairness and {'R²' if part.of_amounts else 'accuracy'}"
            ax.set_title(subject, loc="left", fontsize=12.5, fontweight="bold", color=INK, pad=26)
            ax.text(0, 1.025, part.total_text, transform=ax.transAxes, fontsize=10, color=SOFT)
        corner = (0.012 if x_less else 0.988, 0.03 if y_less else 0.97)
        arrow = {(True, False): "↖", (True, True): "↙", (False, False): "↗", (False, True): "↘"}[x_less, y_less]
        aligned = {"ha": "left" if x_less else "right", "va": "bottom" if y_less else "top"}
        ax.text(*corner, f"{arrow} better", transform=ax.transAxes, fontsize=10, color=SOFT, **aligned)


def _alike(rows: pd.DataFrame, estimators: Sequence[str]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Rows of one estimator that hold γ alike, with how they do and their marker."""
    how = rows.apply(refusal_kind, axis=1)
    maker = rows["estimator"].astype(str) if len(estimators) > 1 else pd.Series("", index=rows.index)
    for j, name in enumerate(estimators if len(estimators) > 1 else [""]):
        for kind, (marker, _, _) in _KINDS.items():
            yield kind, _MAKERS[j % len(_MAKERS)] if kind == "no" else marker, rows[(how == kind) & (maker == name)]


def _shapes(part: Part) -> Iterator[tuple[str, bool, float, str]]:
    """Markers that the legend explains: of the estimators where there are several, and of who refuses."""
    present = set(part.rows.apply(refusal_kind, axis=1))
    several = len(part.estimators) > 1
    if several:
        yield from ((_MAKERS[j % len(_MAKERS)], True, 52, name) for j, name in enumerate(part.estimators))
    for kind, (marker, area, label) in _KINDS.items():
        if kind in present and not (kind == "no" and (several or present == {"no"})):
            yield marker, kind == "no", area, label


def _look(kind: str, color: str, best: bool) -> dict[str, Any]:
    """Of a mark: who refuses is drawn hollow and below, so that it hides nobody at the same place."""
    faded = {"alpha": 1.0, "zorder": 5 if kind == "no" else 4} if best else {"alpha": 0.22, "zorder": 2}
    if kind == "no":
        return {"facecolor": color, "edgecolor": "white", "linewidth": 0.9, **faded}
    return {"facecolor": "none", "edgecolor": color, "linewidth": 1.5, **faded}


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "ParetoFrontierDisplay needs matplotlib to plot: pip install 'skfairdp[plots]'. to_html() works without it."
        ) from None
    return pyplot


def _staircase(points: np.ndarray, x_less: bool, y_less: bool) -> np.ndarray:
    """The points that are best in y so far, walking x from good to bad."""
    sx, sy = (1 if x_less else -1), (1 if y_less else -1)
    points = points[np.lexsort((sy * points[:, 1], sx * points[:, 0]))]
    best = np.minimum.accumulate(sy * points[:, 1])
    return points[np.r_[True, best[1:] < best[:-1]]]
