"""Searching and comparing models, with the ε of the search."""

from skfairdp.model_selection._frame import hypervolume, join_frontiers, pareto_frontier, utility_in
from skfairdp.model_selection._frontier import frontier
from skfairdp.model_selection._own_table import OwnFrontier, frontier_of_table
from skfairdp.model_selection._pareto_search import ParetoSearchCV
from skfairdp.model_selection._private_search import PrivateSearchCV
from skfairdp.model_selection._transfer import measure_estimators, transfer_frontier

__all__ = ["ParetoSearchCV", "PrivateSearchCV", "frontier", "frontier_of_table", "hypervolume"]
__all__ += ["pareto_frontier", "transfer_frontier"]
