"""Looking at models: frontiers, audits and displays; they read frames and say what is private."""

from skfairdp.inspection._frontier_display import ParetoFrontierDisplay

__all__ = ["ParetoFrontierDisplay"]
