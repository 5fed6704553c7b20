"""skfairdp: scikit-learn estimators that are differentially private and fair.

Names are loaded on first use (PEP 562), so that ``import skfairdp`` imports neither torch nor scikit-learn.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_NAMES = {
    "_utils": ("PublicData",),
    "baselines": ("RandomizedResponseClassifier",),
    "exceptions": ("BudgetExceededError", "FairnessWarning", "LedgerError", "PrivacyLeakWarning"),
    "generative": ("PFGuardGenerator", "SyntheticDataClassifier", "SyntheticDataRegressor", "SyntheticRows"),
    "gradient": ("FairDPSGDClassifier", "FairDPSGDRegressor"),
    "inspection": ("ParetoFrontierDisplay",),
    "lagrangian": ("LagrangianClassifier", "PFLDClassifier"),
    "model_selection": ("ParetoSearchCV", "PrivateSearchCV", "frontier", "pareto_frontier", "transfer_frontier"),
    "papers": ("FairClippingClassifier",),
    "pate": ("FairPATEClassifier", "PATEClassifier", "SFPATEClassifier"),
    "postprocessing": ("FairnessCalibrator", "IDP3"),
    "preprocessing": ("DemographicParityFilter", "PublicPreprocessor"),
    "privacy": ("PrivacyLedger", "PrivacySpent"),
    "schema": ("KeyedRows", "Schema", "SchemaEncoder"),
}
_WHERE = {name: room for room, names in _NAMES.items() for name in names}
_ROOMS = [
    "baselines", "datasets", "ensemble", "exceptions", "export", "fairness", "generative", "gradient",
    "inspection", "lagrangian", "metrics", "model_selection", "papers", "pate", "postprocessing", "preprocessing",
    "privacy", "schema",
]  # fmt: skip

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
