"""Teachers on disjoint parts of the private rows, and the histogram of their votes.

Everything in this room is private except the shapes: assignment, teachers, predictions and histograms must not
leave the fit that made them. Only a mechanism of ``skfairdp.privacy`` may release what is computed here.
"""

from skfairdp.ensemble._logistic import LogisticTeachers
from skfairdp.ensemble._partition import iid_partition, position_partition
from skfairdp.ensemble._stacks import MLPTeachers, ModuleTeachers
from skfairdp.ensemble._teachers import Teachers, fit_teachers
from skfairdp.ensemble._votes import vote_histogram

__all__ = [
    "LogisticTeachers",
    "MLPTeachers",
    "ModuleTeachers",
    "Teachers",
    "fit_teachers",
    "iid_partition",
    "position_partition",
    "vote_histogram",
]
