from skfairdp import (
    baselines as baselines,
    datasets as datasets,
    ensemble as ensemble,
    exceptions as exceptions,
    export as export,
    fairness as fairness,
    generative as generative,
    gradient as gradient,
    inspection as inspection,
    lagrangian as lagrangian,
    metrics as metrics,
    model_selection as model_selection,
    papers as papers,
    pate as pate,
    postprocessing as postprocessing,
    preprocessing as preprocessing,
    privacy as privacy,
    schema as schema,
)
from skfairdp._utils import PublicData as PublicData
from skfairdp.baselines import RandomizedResponseClassifier as RandomizedResponseClassifier
from skfairdp.exceptions import (
    BudgetExceededError as BudgetExceededError,
    FairnessWarning as FairnessWarning,
    LedgerError as LedgerError,
    PrivacyLeakWarning as PrivacyLeakWarning,
)
from skfairdp.generative import (
    PFGuardGenerator as PFGuardGenerator,
    SyntheticDataClassifier as SyntheticDataClassifier,
    SyntheticDataRegressor as SyntheticDataRegressor,
    SyntheticRows as SyntheticRows,
)
from skfairdp.gradient import FairDPSGDClassifier as FairDPSGDClassifier, FairDPSGDRegressor as FairDPSGDRegressor
from skfairdp.inspection import ParetoFrontierDisplay as ParetoFrontierDisplay
from skfairdp.lagrangian import LagrangianClassifier as LagrangianClassifier, PFLDClassifier as PFLDClassifier
from skfairdp.model_selection import (
    ParetoSearchCV as ParetoSearchCV,
    PrivateSearchCV as PrivateSearchCV,
    frontier as frontier,
    pareto_frontier as pareto_frontier,
    transfer_frontier as transfer_frontier,
)
from skfairdp.papers import FairClippingClassifier as FairClippingClassifier
from skfairdp.pate import (
    FairPATEClassifier as FairPATEClassifier,
    PATEClassifier as PATEClassifier,
    SFPATEClassifier as SFPATEClassifier,
)
from skfairdp.postprocessing import IDP3 as IDP3, FairnessCalibrator as FairnessCalibrator
from skfairdp.preprocessing import (
    DemographicParityFilter as DemographicParityFilter,
    PublicPreprocessor as PublicPreprocessor,
)
from skfairdp.privacy import PrivacyLedger as PrivacyLedger, PrivacySpent as PrivacySpent
from skfairdp.schema import KeyedRows as KeyedRows, Schema as Schema, SchemaEncoder as SchemaEncoder

__all__: list[str]
__version__: str
