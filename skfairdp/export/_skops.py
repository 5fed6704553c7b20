"""What a file of skops may hold of ours: plain classes, none of which runs anything when it is read."""

import importlib

from sklearn.base import BaseEstimator

_ROOMS = (
    "baselines", "ensemble", "generative", "gradient", "lagrangian", "model_selection", "papers", "pate",
    "postprocessing", "preprocessing", "schema",
)  # fmt: skip
#: What fitted estimators hold beside estimators. numpy.dtype is a type of columns, which skops does not list.
_INSIDE = {
    "numpy": "dtype",
    "skfairdp._inputs._data": "PublicRows",
    "skfairdp._judge": "Judgement",
    "skfairdp._networks._nets": "FittedAmounts FittedNet UnsetNet",
    "skfairdp._networks._stored": "StoredModule StoredType",
    "skfairdp._tables._columns": "CategoryColumn NumberColumn",
    "skfairdp._tables._declared": "Form SampleForm",
    "skfairdp._tables._marginals": "TreeModel",
    "skfairdp._usefulness": "VoteForecast",
    "skfairdp._utils._plain_state": "PlainDtype PlainFrame PlainMember",
    "skfairdp._utils._public": "PublicData",
    "skfairdp.fairness._rates": "RateBound RateConstraints RateParity",
    "skfairdp.generative._amounts": "AmountForm AmountLevels",
    "skfairdp.generative._group_rates": "AdmissibleLabels",
    "skfairdp.generative._table_codec": "TableEncoder UnitEncoder",
    "skfairdp.generative._usefulness": "TableForecast",
    "skfairdp.lagrangian._perceptron": "Perceptron",
    "skfairdp.papers._adversarial": "NetworkModel",
    "skfairdp.pate._constrained_student": "BlindRule",
    "skfairdp.pate._sfpate_student": "NetworkStudent",
    "skfairdp.pate._soft_label_student": "HingeFeatures",
    "skfairdp.pate._student_training": "ConstantStudent StudentTrainingSet",
    "skfairdp.pate._votes": "ReleasedVotes",
    "skfairdp.postprocessing._constrained": "BinAnswers",
    "skfairdp.postprocessing._fine_tuning": "FineTunedNetwork",
    "skfairdp.postprocessing._gated": "LaterLabels",
    "skfairdp.postprocessing._thresholding": "MovedThresholds",
    "skfairdp.postprocessing._transport": "Transport",
    "skfairdp.privacy._ledger": "PrivacyLedger",
    "skfairdp.privacy._mechanisms": "RandomizedResponse",
    "skfairdp.privacy._report": "NeighboringRelation PerformedRelease PrivacySpent",
    "skfairdp.privacy._statement": "PrivacyStatement",
    "skfairdp.schema._columns": "PlainPaid",
    "skfairdp.schema._schema": "Schema",
}


def trusted_types() -> list[str]:
    """Return the types that ``skops.io.load`` has to trust to read a fitted model, or a statement, of this library.

    None of them runs code of a file. A class of your own inside a model, such as a teacher or a torch module, is not
    among them.

    Returns
    -------
    list of str
        Names of classes, for ``trusted``.

    Examples
    --------
    >>> from skfairdp.export import trusted_types
    >>> "skfairdp.pate._pate.PATEClassifier" in trusted_types()
    True
    """
    public = [vars(importlib.import_module(f"skfairdp.{room}")) for room in _ROOMS]
    kinds = [names[name] for names in public for name in names["__all__"]]
    estimators = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseEstimator)]
    inside = {f"{module}.{name}" for module, names in _INSIDE.items() for name in names.split()}
    return sorted({f"{kind.__module__}.{kind.__qualname__}" for kind in estimators} | inside)
