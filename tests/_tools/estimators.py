"""Every estimator of the package, ready for scikit-learn's suite: groups and public rows are supplied here."""

import contextlib
import importlib
import inspect

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

import skfairdp
from skfairdp import (
    IDP3,
    FairClippingClassifier,
    FairDPSGDClassifier,
    FairDPSGDRegressor,
    FairnessCalibrator,
    FairPATEClassifier,
    ParetoSearchCV,
    PATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivateSearchCV,
    SFPATEClassifier,
    SyntheticDataClassifier,
    SyntheticDataRegressor,
)
from skfairdp.baselines import LagrangianClassifier, ParityLogisticRegression, RandomizedResponseClassifier
from skfairdp.fairness import RateParity
from skfairdp.gradient import mlp
from skfairdp.lagrangian import NoisyGradients
from skfairdp.papers import GlobalAdapt
from skfairdp.pate import ConstrainedStudent, FairTeachers, LabelGate, ParityPenaltyStudent, VoteGate
from skfairdp.postprocessing import FineTuning, PrivateBarycenter, PrivateThresholds, Thresholds
from skfairdp.preprocessing import PublicPreprocessor
from tests._tools.inside import PrivateEstimator

#: Classes with a fit of scikit-learn's form that the suite does not know how to call, and why.
NOT_IN_THE_SUITE = {
    "ConstrainedStudent": "its target is a table of noisy vote shares, not a column of labels",
    "ParityPenaltyStudent": "its target is a table of noisy vote shares, not a column of labels",
    "DemographicParityFilter": "a sampler: it has fit_resample(X, y), which the suite does not know, and no fit",
    "DataLensBackend": "a configuration without fit: PFGuardGenerator plans with it and learns by the plan",
    "GPATEBackend": "a configuration without fit: PFGuardGenerator plans with it and learns by the plan",
    "GSWGANBackend": "a configuration without fit: PFGuardGenerator plans with it and learns by the plan",
    "PATEGANBackend": "a configuration without fit: PFGuardGenerator plans with it and learns by the plan",
    "MarginalsBackend": "a configuration without fit: PFGuardGenerator plans with it and learns by the plan",
    "GroupRandomizer": "it releases groups and has no fit",
    "SoftLabelStudent": "its target is a table of noisy vote shares, not a column of labels",
    "LogisticTeachers": "a configuration without fit(X, y): parts are fitted by fit_teachers",
    "MLPTeachers": "a configuration without fit(X, y): parts are fitted by fit_teachers",
    "ModuleTeachers": "a configuration without fit(X, y): parts are fitted by fit_teachers",
    "PublicPenalty": "a part: its estimator asks it, and fits",
    "SignedLoss": "a part: its estimator asks it, and fits",
    "Reweighting": "a part: its estimator asks it, and fits",
    "DPSGDF": "a part: its estimator asks it, and fits",
    "GlobalAdapt": "a part: its estimator asks it, and fits",
    "FairTeachers": "a part: its estimator asks it, and fits",
    "GroupTeachers": "a part: its estimator asks it, and fits",
    "GroupModel": "a part: its estimator asks it, and fits",
    "NoisyGradients": "a part: its estimator asks it, and fits",
    "SchemaEncoder": "it reads tables with the columns of its schema, not whatever table comes",
    "SyntheticRows": "a part: its estimator plans with it, and samples",
    "SoftVoting": "a part: its estimator asks it, and fits",
    "ConvolutionalLayers": "a part: its estimator asks it, and fits",
    "TableCodec": "a part: its estimator asks it, and fits",
    "UnitCodec": "a part: its estimator asks it, and fits",
    "FineTuning": "a part: its estimator asks it, and fits",
    "Thresholds": "a part: its estimator asks it, and fits",
    "GNMaxVoting": "a part: its estimator asks it, and fits",
    "ConfidentVoting": "a part: its estimator asks it, and fits",
    "VoteGate": "a part: its estimator asks it, and fits",
    "LabelGate": "a part: its estimator asks it, and fits",
}

STREAM = "IDP3 answers a stream: whether a row is refused depends on the rows before it in the same call"
#: The checks of scikit-learn that a class cannot pass, and why. Nothing else is excepted.
EXPECTED_FAILURES = {
    "IDP3": {"check_methods_sample_order_invariance": STREAM, "check_methods_subset_invariance": STREAM}
}


def groups_of(X):
    """A made-up attribute: a function of the row's first value that says nothing about its class."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if X.ndim == 2 and X.shape[1] and X.dtype.kind in "iufO":
        with contextlib.suppress(TypeError, ValueError):  # objects that are no numbers
            column = np.nan_to_num(np.abs(X[:, 0].astype(float)), posinf=0.0)
            return np.floor(column * 997).astype(int) % 2
    return np.zeros(len(X) if X.ndim else 1, dtype=int)


def of_column_zero(cls):
    """The class with ``groups_of(X)`` as sensitive features wherever it takes some; the suite passes none."""
    name = f"{cls.__name__}OfColumnZero"
    if name not in globals():
        own = {method: inspect.getattr_static(cls, method, None) for method in ("fit", "predict", "score")}
        methods = {
            method: _with_groups(function)
            for method, function in own.items()
            if inspect.isfunction(function) and "sensitive_features" in inspect.signature(function).parameters
        }
        # Under its name in this module, so that it pickles.
        globals()[name] = type(name, (cls,), {"__module__": __name__, "__doc__": cls.__doc__, **methods})
    return globals()[name]


def _with_groups(method):
    """The method of scikit-learn's form: (X), (X, y) or (X, y=None)."""
    parameters = inspect.signature(method).parameters
    if "y" not in parameters:

        def call(self, X, *, sensitive_features=None):
            return method(self, X, sensitive_features=groups_of(X))

    elif parameters["y"].default is None:

        def call(self, X, y=None):
            return method(self, X, y, sensitive_features=groups_of(X))

    else:

        def call(self, X, y):
            return method(self, X, y, sensitive_features=groups_of(X))

    call.__name__ = method.__name__
    return call


class FairnessCalibratorOfItsRows(FairnessCalibrator):
    """The suite brings no fitted classifier; one fitted on its rows serves."""

    def _fitted_estimator(self):
        return self._fitted

    def fit(self, X, y, *, sensitive_features=None):
        self._fitted = clone(self.estimator).fit(X, y)
        return super().fit(X, sensitive_features=sensitive_features)


class PrivateThresholdsOfItsRows(PrivateThresholds):
    """The suite brings no fitted classifier; one fitted on its rows serves."""

    @property
    def classes(self):
        return getattr(getattr(self, "_fitted", None), "classes_", None)

    def _fitted_estimator(self):
        return self._fitted

    def fit(self, X, y, *, sensitive_features=None):
        self._fitted = clone(self.estimator).fit(X, y)
        return super().fit(X, y, sensitive_features=sensitive_features)


class PrivateBarycenterOfItsRows(PrivateBarycenter):
    """The suite brings no fitted regressor; one fitted on its rows serves."""

    def _fitted_estimator(self):
        return self._fitted

    def fit(self, X, y, *, sensitive_features=None):
        self._fitted = clone(self.estimator).fit(X, y)
        return super().fit(X, y, sensitive_features=sensitive_features)


class PublicPreprocessorOfItsRows(PublicPreprocessor):
    """The suite brings tables of many widths; the rows given to fit serve as the public ones."""

    def _public_rows(self, X):
        return X if hasattr(X, "shape") else np.asarray(X)


SEEDED = {"epsilon": 1000.0, "n_teachers": 3, "noise_seed": 0}
DPSGD = {"epsilon": 1000.0, "net": mlp((8,), batch_size=1000, max_epochs=30), "noise_seed": 0, "random_state": 0}
PFLD = {
    "epsilon": 1000.0,
    "groups": [0, 1],
    "net": mlp((8,), max_epochs=20, lr=0.02, batch_size=32),
    "lam_max": 0.1,
    "noise_seed": 0,
    "random_state": 0,
}
SFPATE = {"epsilon": 1000.0, "n_teachers": 3, "groups": [0, 1], "noise_seed": 0, "random_state": 0}
NETWORK = {"net": mlp((8,), max_epochs=12, lr=0.08, batch_size=32), "lam_max": 0.1, "random_state": 0}
FAIR = {**SEEDED, "gamma": 0.2, "gate": VoteGate(min_count=2)}


def fast_instances():
    """One setting of each class, where it takes a class no network to learn from a handful of rows."""
    return [
        PATEClassifier(**SEEDED),
        of_column_zero(FairPATEClassifier)(**FAIR),
        PublicPreprocessorOfItsRows(StandardScaler()),
        of_column_zero(RandomizedResponseClassifier)(epsilon=5.0, groups=[0, 1], noise_seed=0),
        of_column_zero(ParityLogisticRegression)(),
        of_column_zero(LagrangianClassifier)(**NETWORK),
        of_column_zero(SFPATEClassifier)(**SFPATE, fair_estimator=LagrangianClassifier(**NETWORK)),
        of_column_zero(PFGuardGenerator)(noise_seed=0, random_state=0),
        of_column_zero(SyntheticDataClassifier)(
            LogisticRegression(), epsilon=1000.0, n_samples=2000, noise_seed=0, random_state=0
        ),
        of_column_zero(SyntheticDataRegressor)(
            LinearRegression(),
            epsilon=1000.0,
            bounds_y=(-200, 200),
            groups=[0, 1],
            n_samples=2000,
            noise_seed=0,
            random_state=0,
        ),
        of_column_zero(IDP3)(LogisticRegression(), groups=[0, 1], gamma=0.15, min_count=3),
        ParetoSearchCV(
            PATEClassifier(**SEEDED),
            {"voting__threshold": [0.6, 0.8]},
            scoring="accuracy",
            score_epsilon=1e4,
            cv=ShuffleSplit(2, test_size=0.25, random_state=0),
        ),
        PrivateSearchCV(PATEClassifier(**SEEDED), {"n_teachers": [2, 3]}, score_epsilon=1e4),
        of_column_zero(PrivateThresholdsOfItsRows)(
            LogisticRegression(),
            constraints="equalized_odds",
            epsilon=1000.0,
            groups=[0, 1],
            noise_seed=0,
            random_state=0,
        ),
        of_column_zero(PrivateBarycenterOfItsRows)(
            LinearRegression(), epsilon=1000.0, bounds=(-200, 200), groups=[0, 1], noise_seed=0
        ),
        of_column_zero(FairnessCalibratorOfItsRows)(LogisticRegression(), gap_weight=0.3),
    ]


def slow_instances():
    """The other settings, and classes that train a network on private rows."""
    return [
        of_column_zero(FairPATEClassifier)(voting="confident", **FAIR),
        of_column_zero(SFPATEClassifier)(
            **SFPATE, fair_estimator=LagrangianClassifier(**NETWORK), variant=FairTeachers(LogisticRegression())
        ),
        of_column_zero(FairnessCalibratorOfItsRows)(
            LogisticRegression(), gamma=0.1, method=Thresholds(group_at_prediction=True)
        ),
        of_column_zero(FairnessCalibratorOfItsRows)(LogisticRegression(), constraints="demographic_parity"),
        of_column_zero(RandomizedResponseClassifier)(epsilon=5.0, groups=[0, 1], noise_seed=0, debias=False),
        of_column_zero(ParityLogisticRegression)(constraints="equalized_odds", slack=0.1),
        of_column_zero(LagrangianClassifier)(
            constraints=["accuracy_parity", "generalized_demographic_parity"], **NETWORK
        ),
        of_column_zero(SFPATEClassifier)(**SFPATE, fair_estimator=LagrangianClassifier(**NETWORK), voting="gnmax"),
        of_column_zero(SFPATEClassifier)(**SFPATE, fair_estimator=ParityLogisticRegression(slack=0.2)),
        of_column_zero(SFPATEClassifier)(
            **SFPATE, fair_estimator=ParityLogisticRegression(slack=0.2), variant=FairTeachers(LogisticRegression())
        ),
        PATEClassifier(voting="confident", **SEEDED),
        PATEClassifier(voting="gnmax", **SEEDED),
        of_column_zero(FairPATEClassifier)(voting="gnmax", **FAIR),
        of_column_zero(FairPATEClassifier)(**{**FAIR, "gamma": None}),
        of_column_zero(FairPATEClassifier)(**{**FAIR, "gate": LabelGate(min_count=2)}),
        of_column_zero(FairPATEClassifier)(
            **{**FAIR, "gate": None, "student": ParityPenaltyStudent(penalty_weight=0.1)}
        ),
        # A parity of .01 would leave the blobs of the suite no accuracy: column zero tells their classes.
        of_column_zero(FairPATEClassifier)(
            **{**FAIR, "student": ConstrainedStudent(RateParity("selection_rate", 0.2))}
        ),
        of_column_zero(FairPATEClassifier)(**{**FAIR, "student": ConstrainedStudent()}),
        of_column_zero(FairDPSGDClassifier)(**DPSGD, lam=0.1),
        of_column_zero(FairDPSGDClassifier)(**DPSGD, lam=0.1, parity="signed_loss", groups=[0, 1]),
        FairDPSGDClassifier(**DPSGD, lam=0.0),
        FairDPSGDRegressor(**DPSGD, bounds=(-20, 20)),
        of_column_zero(FairDPSGDRegressor)(**DPSGD, bounds=(-20, 20), gamma=5.0, groups=[0, 1]),
        of_column_zero(FairClippingClassifier)(**DPSGD, groups=[0, 1]),
        of_column_zero(FairClippingClassifier)(**DPSGD, groups=[0, 1], method="dpsgd_f"),
        FairClippingClassifier(**DPSGD, method=GlobalAdapt(start=1.0)),
        of_column_zero(PFLDClassifier)(**PFLD),
        of_column_zero(PFLDClassifier)(**PFLD, primal=NoisyGradients(5), constraints="equalized_odds"),
        of_column_zero(PFLDClassifier)(**PFLD, primal=NoisyGradients(sampling_probability=0.5)),
        of_column_zero(FairnessCalibratorOfItsRows)(
            FairDPSGDClassifier(**DPSGD, lam=0.0), gap_weight=0.1, method=FineTuning(steps=20)
        ),
    ]


def public_name(estimator):
    """The name of the package's class behind an estimator of the harness."""
    return next(c.__name__ for c in type(estimator).__mro__ if c.__module__.startswith("skfairdp."))


def expected_failures(estimator):
    return EXPECTED_FAILURES.get(public_name(estimator), {})


def estimator_classes():
    """All estimators that the rooms of the package export."""
    found = {}
    for room in skfairdp._ROOMS:
        module = importlib.import_module(f"skfairdp.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and issubclass(value, BaseEstimator):
                found[name] = value
    return found


def private_classes():
    """Those that certify their own releases."""
    return {name: value for name, value in estimator_classes().items() if issubclass(value, PrivateEstimator)}
