from skfairdp import baselines as baselines
from skfairdp import datasets as datasets
from skfairdp import ensemble as ensemble
from skfairdp import exceptions as exceptions
from skfairdp import fairness as fairness
from skfairdp import gradient as gradient
from skfairdp import inspection as inspection
from skfairdp import metrics as metrics
from skfairdp import model_selection as model_selection
from skfairdp import neural as neural
from skfairdp import pate as pate
from skfairdp import postprocessing as postprocessing
from skfairdp import preprocessing as preprocessing
from skfairdp import privacy as privacy
from skfairdp import utils as utils
from skfairdp.baselines import RandomizedResponseClassifier as RandomizedResponseClassifier
from skfairdp.exceptions import BudgetExceededError as BudgetExceededError
from skfairdp.exceptions import FairnessWarning as FairnessWarning
from skfairdp.exceptions import LedgerError as LedgerError
from skfairdp.exceptions import PrivacyLeakWarning as PrivacyLeakWarning
from skfairdp.gradient import FairDPSGDClassifier as FairDPSGDClassifier
from skfairdp.gradient import PFLDClassifier as PFLDClassifier
from skfairdp.inspection import ParetoFrontierDisplay as ParetoFrontierDisplay
from skfairdp.model_selection import frontier as frontier
from skfairdp.model_selection import pareto_frontier as pareto_frontier
from skfairdp.pate import FairPATEClassifier as FairPATEClassifier
from skfairdp.pate import PATEClassifier as PATEClassifier
from skfairdp.postprocessing import IDP3 as IDP3
from skfairdp.postprocessing import FairnessCalibrator as FairnessCalibrator
from skfairdp.preprocessing import DemographicParityFilter as DemographicParityFilter
from skfairdp.preprocessing import PublicPreprocessor as PublicPreprocessor
from skfairdp.privacy import PrivacyLedger as PrivacyLedger
from skfairdp.privacy import PrivacySpent as PrivacySpent
from skfairdp.utils import PublicData as PublicData

__all__: list[str]
__version__: str
