"""Private aggregation of teacher ensembles, plain and fair."""

from skfairdp.pate._fair_pate import FairPATEClassifier
from skfairdp.pate._parity_penalty_student import ParityPenaltyStudent
from skfairdp.pate._pate import PATEClassifier
from skfairdp.pate._sf_pate import SFPATEClassifier
from skfairdp.pate._soft_label_student import SoftLabelStudent

__all__ = ["FairPATEClassifier", "PATEClassifier", "ParityPenaltyStudent", "SFPATEClassifier", "SoftLabelStudent"]
