"""Private aggregation of teacher ensembles, plain and fair."""

from skfairdp.pate._constrained_student import ConstrainedStudent
from skfairdp.pate._fair_pate import FairPATEClassifier
from skfairdp.pate._fair_votes import FairTeachers, GroupTeachers
from skfairdp.pate._parity_penalty_student import ParityPenaltyStudent
from skfairdp.pate._pate import PATEClassifier
from skfairdp.pate._query_plan import count_teachers as count_teachers, default_teacher as default_teacher
from skfairdp.pate._sf_pate import SFPATEClassifier
from skfairdp.pate._sfpate_student import NetworkStudent as NetworkStudent
from skfairdp.pate._soft_label_student import SoftLabelStudent
from skfairdp.pate._student_training import ConstantStudent as ConstantStudent, LabelGate, VoteGate
from skfairdp.pate._votes import ConfidentVoting, GNMaxVoting, SoftVoting

__all__ = ["ConfidentVoting", "ConstrainedStudent", "FairPATEClassifier", "FairTeachers", "GNMaxVoting"]
__all__ += ["GroupTeachers", "LabelGate", "PATEClassifier", "ParityPenaltyStudent", "SFPATEClassifier"]
__all__ += ["SoftLabelStudent", "SoftVoting", "VoteGate"]
