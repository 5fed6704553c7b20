"""Draw the figure of "Which estimator?" into docs/images: ``python docs/decision_figure.py``."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path(__file__).parent / "images" / "which_estimator.png"

#: For whatever you start from: what you want, and what to take.
BRANCHES = {
    "a table whose records must stay secret": [
        ("one classifier, as accurate\nas possible", "FairDPSGDClassifier"),
        ("sweep the fairness bound\nat no extra cost", "FairPATEClassifier"),
        ("a learner of your own", "SyntheticDataClassifier"),
        ("rows to hand out", "PFGuardGenerator"),
    ],
    "a table whose sensitive attribute must stay secret": [
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
    style = {"boxstyle": "round,pad=0.4", "facecolor": colour, "edgecolor": "#666666", "linewidth": 0.8}
    drawn = axes.text(x, y, text, ha="left", va="center", fontsize=10, family=family, bbox=style)
    axes.figure.canvas.draw()
    extent = axes.transData.inverted().transform(drawn.get_bbox_patch().get_window_extent())
    return float(extent[1, 0])


def main() -> None:
    """One block for each start, so that a phone shows it in letters that can be read."""
    lines = sum(map(len, BRANCHES.values())) + len(BRANCHES)
    figure, axes = plt.subplots(figsize=(6.1, 0.62 * lines))
    axes.set(xlim=(0, 10), ylim=(-0.5, lines - 0.5))
    axes.axis("off")
    y = lines - 1.0
    for answer, wishes in BRANCHES.items():
        box(axes, 0.2, y, f"You start from {answer}", BLUE)
        for wish, name in wishes:
            y -= 1.0
            end = box(axes, 0.6, y, wish, GREY)
            arrow = {"arrowstyle": "-|>", "color": "#666666", "linewidth": 0.8}
            axes.annotate("", xy=(5.35, y), xytext=(end, y), arrowprops=arrow)
            box(axes, 5.5, y, name, GREEN, family="monospace")
        y -= 1.0
    figure.savefig(OUT, dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
