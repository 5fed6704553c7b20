"""The surface of the best accuracy over bounds on the gap and on ε."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.inspection._frontier_frame import Part, epsilon_text, level_colors


def staircase_surface(
    epsilon: NDArray[np.float64], gap: NDArray[np.float64], accuracy: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Bounds on ε and on the gap, and the best accuracy among the models that meet both (NaN where none does)."""
    bounds = [np.unique(values) for values in (epsilon, gap)]
    best = np.full((len(bounds[0]), len(bounds[1])), np.nan)
    for i, most in enumerate(bounds[0]):
        for j, widest in enumerate(bounds[1]):
            met = (epsilon <= most) & (gap <= widest)
            if met.any():
                best[i, j] = accuracy[met].max()
    return bounds[0], bounds[1], best


def draw_surface(ax: Any, part: Part) -> None:
    """Draw one part on three-dimensional axes."""
    ink, soft = "#16161d", "#5a5c6b"
    rows = part.rows[np.isfinite(part.rows[["epsilon", "disparity", "accuracy"]].to_numpy(float)).all(axis=1)]
    if rows.empty:
        ax.text2D(0.5, 0.5, "No model has a finite ε, gap and accuracy.", transform=ax.transAxes, ha="center")
        return
    epsilon, gap, accuracy = (rows[name].to_numpy(float) for name in ("epsilon", "disparity", "accuracy"))
    e, g, best = staircase_surface(epsilon, gap, accuracy)
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
                epsilon[some], gap[some], accuracy[some], s=34, color=color, alpha=1.0 if kept else 0.2,
                depthshade=False, label=f"ε = {epsilon_text(level)}" if kept else None,
            )  # fmt: skip
    ax.set_xlabel(f"ε protecting one {part.protects}", color=ink, fontsize=9)
    ax.set_ylabel("Fairness gap", color=ink, fontsize=9)
    ax.set_zlabel("Accuracy of answered rows", color=ink, fontsize=9)
    ax.tick_params(colors=soft, labelsize=8)
    ax.view_init(elev=24, azim=-128)
    subject = part.subject or "Privacy, fairness and accuracy"
    ax.set_title(f"{subject}\n{part.protection}\n{part.total_text}", loc="left", fontsize=9.5, color=ink)
