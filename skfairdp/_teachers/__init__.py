"""Teachers on disjoint parts of the private rows, and the histogram of their votes.

Everything in this room is private except the shapes: assignment, teachers, predictions and histograms must not
leave the fit that made them. Only a mechanism of ``skfairdp.privacy`` may release what is computed here.
"""

from skfairdp._teachers._classifiers import (
    ClassifierEnsemble,
    as_classifiers,
    check_answers,
    check_fair_learner,
    made_up_cells,
    refuse_callbacks,
    rehearse_learner,
    rehearse_student,
    seeded_clone,
    seeded_predictions,
    takes_groups,
    total_fit,
)
from skfairdp._teachers._logistic import LogisticTeachers
from skfairdp._teachers._network_teachers import MLPTeachers, ModuleTeachers, fit_stacks
from skfairdp._teachers._partition import Parts, in_turns, position_partition, run_tasks, vote_histogram
from skfairdp._teachers._teachers import (
    Teachers,
    bytes_on_disk,
    counted_once,
    counted_rows,
    engine_of,
    fit_teachers,
    streamed_class_counts,
    streamed_counts,
    streamed_votes,
)
