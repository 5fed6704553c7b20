"""What a file of skops may hold of ours: plain classes, none of which runs anything when it is read."""

import importlib

from sklearn.base import BaseEstimator

_ROOMS = (
    "baselines", "ensemble", "generative", "gradient", "lagrangian", "model_selection", "papers", "pate",
    "postprocessing", "preprocessing", "schema",
)  # fmt: skip
#: What fitted estimators hold beside estimators.
_INSIDE = """
    _class_sums.PublicScale _class_sums.SoftmaxRule _estimator.PlainLedger _inputs._data.PublicRows _judge.Judgement
    _networks._nets.FittedAmounts _networks._nets.FittedNet _networks._nets.UnsetNet _networks._stored.StoredModule
    _networks._stored.StoredType _tables._columns.CategoryColumn _tables._columns.NumberColumn
    _tables._declared.Form _tables._declared.SampleForm _tables._interactions.InteractionModel
    _tables._interactions.Levels _tables._marginals.TreeModel _transport.Transport _usefulness.VoteForecast
    _utils._plain_state.PlainDtype _utils._plain_state.PlainFrame _utils._plain_state.PlainMember
    _utils._containers.PublicData fairness._rates.RateBound fairness._rates.RateConstraints
    fairness._rates.RateParity generative._amounts.AmountForm generative._amounts.AmountLevels
    generative._group_rates.AdmissibleLabels generative._group_rates.CodeFeatures
    generative._group_rates.ModelBySums generative._table_codec.TableEncoder generative._table_codec.UnitEncoder
    generative._usefulness.TableForecast lagrangian._perceptron.Perceptron papers._adversarial.NetworkModel
    pate._constrained_student.BlindRule pate._query_plan.SumsForecast pate._sfpate_student.NetworkStudent
    pate._soft_label_student.HingeFeatures pate._soft_label_student.LevelRates pate._student_training.ConstantStudent
    pate._student_training.StudentTrainingSet pate._votes.ReleasedVotes postprocessing._constrained.BinAnswers
    postprocessing._thresholding.CalibratedModel postprocessing._gated.LaterLabels
    postprocessing._group_guess.GroupGuess postprocessing._group_guess.GuessedTransport
    postprocessing._thresholding.MovedThresholds
    privacy._mechanisms.RandomizedResponse privacy._report.NeighboringRelation privacy._report.PerformedRelease
    privacy._report.PrivacySpent privacy._statement.PrivacyStatement schema._columns.PlainPaid schema._schema.Schema
"""


def trusted_types() -> list[str]:
    """Return the types that ``skops.io.load`` has to trust to read a fitted model, or a statement, of this library.

    None of them runs code of a file. To trust every name that begins with "skfairdp." would: a file could then call
    any function of the library. Classes of your own inside a model, such as a torch module, are not listed, nor are
    trees of scikit-learn: skops says what trusting these risks.

    Returns
    -------
    list of str
        Names of classes, for ``trusted``.

    Examples
    --------
    >>> from skfairdp.export import trusted_types
    >>> [name for name in trusted_types() if name.endswith(".PATEClassifier")]
    ['skfairdp.pate._pate.PATEClassifier']
    """
    public = [vars(importlib.import_module(f"skfairdp.{room}")) for room in _ROOMS]
    kinds = [names[name] for names in public for name in names["__all__"]]
    estimators = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseEstimator)]
    found = {f"{kind.__module__}.{kind.__qualname__}" for kind in estimators}
    # numpy.dtype: of numbers that scikit-learn's imputer read, which skops does not list
    return sorted({"numpy.dtype", *found, *(f"skfairdp.{name}" for name in _INSIDE.split())})
