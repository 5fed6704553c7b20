"""Plots of the PATE fairness analysis."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from skfairdp._docs import shared_docs
from skfairdp.papers._pate_analysis import PATEAnalysis

_WARNING = "from raw votes: not private"


class _AnalysisDisplay(ABC):
    """What the displays of an analysis share."""

    ax_: Any
    figure_: Any

    def __init__(self, analysis: PATEAnalysis) -> None:
        self.analysis = analysis

    @classmethod
    def from_analysis(cls, analysis: PATEAnalysis, *, ax: Any = None) -> Self:
        """Make the display of an analysis and plot it.

        Parameters
        ----------
        analysis : PATEAnalysis
            What to show.
        ax : matplotlib Axes, default=None
            None makes a figure.

        Returns
        -------
        display : display
            Drawn.
        """
        return cls(analysis).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.

        Returns
        -------
        self : display
            With ``ax_`` and ``figure_``.
        """
        self.figure_, self.ax_ = _axes(ax)
        self._draw()
        return self

    @abstractmethod
    def _draw(self) -> None:
        """Draw on ``ax_``."""


@shared_docs
class ExcessiveRiskDisplay(_AnalysisDisplay):
    """Excessive risk of each group, with hard and with soft labels. **Not private**, like the analysis it shows.

    {of_analysis}

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.papers import ExcessiveRiskDisplay, PATEFairnessAnalysis
    >>> from skfairdp.pate import GNMaxVoting
    >>> X, y, groups = make_biased_classification(600, random_state=0)
    >>> analysis = PATEFairnessAnalysis(PATEClassifier(n_teachers=10, voting=GNMaxVoting(sigma=5.0)), repeats=3)
    >>> display = ExcessiveRiskDisplay.from_analysis(analysis.analyse(X[:500], y[:500], X[500:], groups[500:]))
    >>> display.ax_.get_ylabel()
    'excessive risk'
    """

    def _draw(self) -> None:
        names = list(self.analysis.hard.excessive_risk_by_group)
        places = np.arange(len(names))
        for shift, label, effect in ((-0.2, "hard", self.analysis.hard), (0.2, "soft", self.analysis.soft)):
            heights = [effect.excessive_risk_by_group[name] for name in names]
            self.ax_.bar(places + shift, heights, width=0.38, label=f"{label} labels")
        self.ax_.set_xticks(places, [str(name) for name in names])
        self.ax_.set(xlabel="group", ylabel="excessive risk", title=f"Excessive risk by group ({_WARNING})")
        self.ax_.axhline(0.0, color="0.4", linewidth=0.8)
        self.ax_.legend()


@shared_docs
class FlippingProbabilityDisplay(_AnalysisDisplay):
    """Flipping probability of each public row against how close it is to the boundary. **Not private.**

    {of_analysis}

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.papers import FlippingProbabilityDisplay, PATEFairnessAnalysis
    >>> from skfairdp.pate import GNMaxVoting
    >>> X, y, groups = make_biased_classification(600, random_state=0)
    >>> analysis = PATEFairnessAnalysis(PATEClassifier(n_teachers=10, voting=GNMaxVoting(sigma=5.0)), repeats=3)
    >>> display = FlippingProbabilityDisplay.from_analysis(analysis.analyse(X[:500], y[:500], X[500:], groups[500:]))
    >>> display.ax_.get_ylabel()
    'flipping probability'
    """

    def _draw(self) -> None:
        found = self.analysis
        for group in found.hard.excessive_risk_by_group:
            mine = found.groups == group
            self.ax_.scatter(found.closeness[mine], found.flipping_probability[mine], s=9, alpha=0.6, label=str(group))
        rank = found.correlations["closeness", "flipping probability"]
        unanimous = found.unanimous_flipping_probability
        self.ax_.axhline(unanimous, color="0.4", linewidth=0.8, linestyle="--", label="if all teachers agree")
        self.ax_.set(
            xlabel="closeness to the decision boundary",
            ylabel="flipping probability",
            title=f"Spearman correlation {rank:.2f} ({_WARNING})",
        )
        self.ax_.legend(title="group")


def _axes(ax: Any) -> tuple[Any, Any]:
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=(5, 3.6), layout="constrained")
    return ax.figure, ax
