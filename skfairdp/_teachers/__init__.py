"""Teachers on disjoint parts of the private rows, and the histogram of their votes.

Everything in this room is private except the shapes: assignment, teachers, predictions and histograms must not
leave the fit that made them. Only a mechanism of ``skfairdp.privacy`` may release what is computed here.
"""

from skfairdp._teachers._classifiers import ClassifierEnsemble, check_fair_learner, seeded_clone, total_fit
from skfairdp._teachers._logistic import LogisticTeachers
from skfairdp._teachers._partition import iid_partition, position_partition
from skfairdp._teachers._stacks import MLPTeachers, ModuleTeachers
from skfairdp._teachers._teachers import Teachers, fit_teachers
from skfairdp._teachers._votes import vote_histogram

__all__ = [
    "ClassifierEnsemble",
    "LogisticTeachers",
    "MLPTeachers",
    "ModuleTeachers",
    "Teachers",
    "check_fair_learner",
    "fit_teachers",
    "iid_partition",
    "position_partition",
    "seeded_clone",
    "total_fit",
    "vote_histogram",
]
