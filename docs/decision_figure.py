"""Draw the figure of "Which estimator?" into docs/images: ``python docs/decision_figure.py``."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path(__file__).parent / "images" / "which_estimator.png"

#: For whatever you start from: what you want, and what to take.
BRANCHES = {
    "a table whose records\nmust stay secret": [
        ("one classifier, as accurate\nas possible", "FairDPSGDClassifier"),
        ("sweep the fairness bound\nat no extra cost", "FairPATEClassifier"),
        ("a learner of your own", "SyntheticDataClassifier"),
        ("rows to hand out", "PFGuardGenerator"),
    ],
    "a table whose sensitive\nattribute must": [
        ("one classifier", "PFLDClassifier"),
        ("an ensemble, or a fair\nlearner of your own", "SFPATEClassifier"),
        ("pure ε (δ = 0)", "RandomizedResponseClassifier"),
    ],
    "a trained model": [
        ("every row answered,\nyou have public rows", "FairnessCalibrator"),
        ("every row answered,\nyou have none", "PrivateThresholds"),
        ("some rows may be refused", "IDP3"),
    ],
}
BLUE, GREY, GREEN = "#dbe9f6", "#f2f2f2", "#ddf0dd"


def box(axes: plt.Axes, x: float, y: float, text: str, colour: str, *, family: str = "sans-serif") -> float:
    """Write a text in a box that begins at x; return where it ends."""
    style = {"boxstyle": "round,pad=0.45", "facecolor": colour, "edgecolor": "#666666", "linewidth": 0.8}
    drawn = axes.text(x, y, text, ha="left", va="center", fontsize=9, family=family, bbox=style)
    axes.figure.canvas.draw()
    extent = axes.transData.inverted().transform(drawn.get_bbox_patch().get_window_extent())
    return float(extent[1, 0])


def arrow(axes: plt.Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow from one box to the next."""
    axes.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": "#666666", "linewidth": 0.8})


def main() -> None:
    n_leaves = sum(map(len, BRANCHES.values()))
    figure, axes = plt.subplots(figsize=(10.5, 7.0))
    axes.set(xlim=(0, 11), ylim=(-0.5, n_leaves + 1.6))
    axes.axis("off")
    middle_of_all, height = (n_leaves + 0.5) / 2, n_leaves + 0.5
    begin = box(axes, 0.1, middle_of_all, "What do you\nstart from?", GREY)
    for answer, wishes in BRANCHES.items():
        heights = [height - i for i in range(len(wishes))]
        middle = sum(heights) / len(heights)
        arrow(axes, (begin, middle_of_all), (1.8, middle))
        end = box(axes, 1.95, middle, answer, BLUE)
        for y, (wish, name) in zip(heights, wishes, strict=True):
            arrow(axes, (end, middle), (4.6, y))
            arrow(axes, (box(axes, 4.75, y, wish, GREY), y), (7.5, y))
            box(axes, 7.65, y, name, GREEN, family="monospace")
        height -= len(wishes) + 0.4
    axes.text(4.7, n_leaves + 1.2, "What do you want?", fontsize=9, weight="bold")
    axes.text(7.6, n_leaves + 1.2, "Take", fontsize=9, weight="bold")
    figure.savefig(OUT, dpi=120, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
