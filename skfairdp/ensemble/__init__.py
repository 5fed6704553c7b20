"""Teachers on disjoint parts of the private rows, and the histogram of their votes.

Everything in this room is private except the shapes: assignment, teachers, predictions and histograms must not
leave the fit that made them. Only a mechanism of ``skfairdp.privacy`` may release what is computed here.
"""

from skfairdp.ensemble._fair_teachers import check_fair_learner, fit_fair_teachers
from skfairdp.ensemble._lagrangian_classifier import (
    NOTIONS,
    LagrangianClassifier,
    Layers,
    check_notions,
    network_scores,
    standard_scale,
    train_network,
    unscaled,
)
from skfairdp.ensemble._logistic import LogisticTeachers
from skfairdp.ensemble._partition import iid_partition, position_partition
from skfairdp.ensemble._rehearsal import rehearse_fair_teacher, rehearse_teacher
from skfairdp.ensemble._stacks import MLPTeachers, ModuleTeachers
from skfairdp.ensemble._teachers import Teachers, fit_teachers
from skfairdp.ensemble._votes import vote_histogram

__all__ = [
    "NOTIONS",
    "LagrangianClassifier",
    "Layers",
    "LogisticTeachers",
    "MLPTeachers",
    "ModuleTeachers",
    "Teachers",
    "check_fair_learner",
    "check_notions",
    "fit_fair_teachers",
    "fit_teachers",
    "iid_partition",
    "network_scores",
    "position_partition",
    "rehearse_fair_teacher",
    "rehearse_teacher",
    "standard_scale",
    "train_network",
    "unscaled",
    "vote_histogram",
]
