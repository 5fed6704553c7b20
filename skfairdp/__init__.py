"""skfairdp: scikit-learn estimators that are differentially private and fair.

Names are loaded on first use (PEP 562), so that ``import skfairdp`` imports neither torch nor scikit-learn.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_WHERE = {
    "BudgetExceededError": "exceptions",
    "DemographicParityFilter": "preprocessing",
    "FairClippingClassifier": "papers",
    "FairDPSGDClassifier": "gradient",
    "FairDPSGDRegressor": "gradient",
    "FairPATEClassifier": "pate",
    "FairnessCalibrator": "postprocessing",
    "FairnessWarning": "exceptions",
    "IDP3": "postprocessing",
    "KeyedRows": "schema",
    "LagrangianClassifier": "lagrangian",
    "LedgerError": "exceptions",
    "PFGuardGenerator": "generative",
    "PATEClassifier": "pate",
    "PFLDClassifier": "lagrangian",
    "ParetoFrontierDisplay": "inspection",
    "ParetoSearchCV": "model_selection",
    "PrivacyLeakWarning": "exceptions",
    "PrivacyLedger": "privacy",
    "PrivacySpent": "privacy",
    "PrivateSearchCV": "model_selection",
    "PublicData": "_utils",
    "PublicPreprocessor": "preprocessing",
    "RandomizedResponseClassifier": "baselines",
    "SFPATEClassifier": "pate",
    "Schema": "schema",
    "SchemaEncoder": "schema",
    "SyntheticDataClassifier": "generative",
    "SyntheticDataRegressor": "generative",
    "SyntheticRows": "generative",
    "frontier": "model_selection",
    "pareto_frontier": "model_selection",
    "transfer_frontier": "model_selection",
}
_ROOMS = [
    "baselines",
    "datasets",
    "ensemble",
    "exceptions",
    "export",
    "fairness",
    "generative",
    "gradient",
    "inspection",
    "lagrangian",
    "metrics",
    "model_selection",
    "papers",
    "pate",
    "postprocessing",
    "preprocessing",
    "privacy",
    "schema",
]

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(f"skfairdp.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"skfairdp.{name}")
    raise AttributeError(f"module 'skfairdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
