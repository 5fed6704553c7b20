"""Looking at models: frontiers, audits and displays; they read frames and say what is private."""

from skfairdp.inspection._frontier_display import ParetoFrontierDisplay
from skfairdp.inspection._frontier_frame import epsilon_text

__all__ = ["ParetoFrontierDisplay", "epsilon_text"]
