"""Searching and comparing models, with the ε of the search."""

from skfairdp.model_selection._frontier import frontier
from skfairdp.model_selection._pareto import hypervolume, pareto_frontier

__all__ = ["frontier", "hypervolume", "pareto_frontier"]
