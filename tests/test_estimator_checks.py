"""Every estimator of the package: scikit-learn's whole suite, then the promises of our own."""

import dataclasses
import inspect
import random
import re
import warnings
from collections import defaultdict

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skfairdp import (
    IDP3,
    FairClippingClassifier,
    FairDPSGDClassifier,
    FairDPSGDRegressor,
    FairnessCalibrator,
    FairPATEClassifier,
    PATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivacyLedger,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
    SyntheticDataRegressor,
)
from skfairdp.baselines import LagrangianClassifier, ParityLogisticRegression
from skfairdp.ensemble import MLPTeachers
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.generative import MarginalsBackend, TableCodec
from skfairdp.gradient import mlp
from skfairdp.lagrangian import NoisyGradients
from skfairdp.model_selection import ParetoSearchCV, PrivateSearchCV
from skfairdp.pate import (
    ConfidentVoting,
    ConstrainedStudent,
    FairTeachers,
    ParityPenaltyStudent,
    SoftLabelStudent,
    SoftVoting,
    VoteGate,
)
from skfairdp.postprocessing import FineTuning, PrivateBarycenter, PrivateThresholds
from skfairdp.preprocessing import PublicPreprocessor
from skfairdp.privacy import epsilon_of
from skfairdp.schema import Number, Schema, SchemaEncoder
from tests._tools.estimators import (
    EXPECTED_FAILURES,
    NOT_IN_THE_SUITE,
    estimator_classes,
    expected_failures,
    fast_instances,
    private_classes,
    public_name,
    slow_instances,
)

pytestmark = [
    # The suite gives neither classes nor secret noise, and a handful of rows.
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]


# ---- scikit-learn's suite ------------------------------------------------------------------------------------
def checks_of(estimators):
    """Scikit-learn's checks of each estimator: all of them in ``test-all``; in ``make test`` each check of every fifth
    estimator, where they take turns. What another check does as well is left for later too: sparse matrices are read as
    sparse arrays are, and of training from read-only memory one of two types of numbers is enough.
    """
    parametrized = parametrize_with_checks(estimators, expected_failed_checks=expected_failures)
    names, checks = parametrized.args
    called = parametrized.kwargs["ids"]
    printed = {id(estimator): called(estimator) for estimator in estimators}  # once, not for every check
    checks = [given if hasattr(given, "marks") else pytest.param(*given) for given in checks]
    by_check = defaultdict(list)
    for place, check in enumerate(checks):
        if not said_by_another(check.values[1]):
            by_check[called(check.values[1])].append(place)
    now = {place for j, places in enumerate(by_check.values()) for place in places[j % min(5, len(places)) :: 5]}
    marked = [
        pytest.param(*check.values, marks=[*check.marks, *[pytest.mark.slow] * (place not in now)])
        for place, check in enumerate(checks)
    ]
    return pytest.mark.parametrize(names, marked, ids=lambda value: printed.get(id(value)) or called(value))


def name_of(check):
    return getattr(check, "func", check).__name__


def said_by_another(check):
    train_read_only = name_of(check) == "check_classifiers_train" and check.keywords == {"readonly_memmap": True}
    return name_of(check) == "check_estimator_sparse_matrix" or train_read_only


@checks_of(fast_instances())
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@checks_of(slow_instances())
def test_scikit_learns_checks_of_the_other_settings(estimator, check):
    check(estimator)


def test_the_suite_covers_every_estimator_of_the_package():
    covered = {public_name(estimator) for estimator in [*fast_instances(), *slow_instances()]}
    assert covered | set(NOT_IN_THE_SUITE) == set(estimator_classes())
    assert not covered & set(NOT_IN_THE_SUITE)


def test_only_idp3_has_exceptions():
    assert set(EXPECTED_FAILURES) == {"IDP3"}
    assert set(EXPECTED_FAILURES["IDP3"]) == {
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    }


# ---- our own promises ----------------------------------------------------------------------------------------
SETTINGS = [
    pytest.param(PATEClassifier, {"voting": "soft"}, id="PATE-soft"),
    pytest.param(PATEClassifier, {"voting": "confident"}, id="PATE-confident"),
    pytest.param(PATEClassifier, {"voting": "gnmax"}, id="PATE-gnmax"),
    pytest.param(FairPATEClassifier, {"voting": "soft"}, id="Fair-soft"),
    pytest.param(FairPATEClassifier, {"voting": "confident"}, id="Fair-confident"),
    pytest.param(FairPATEClassifier, {"voting": ConfidentVoting(accounting="gdp")}, id="Fair-filter"),
    pytest.param(FairPATEClassifier, {"voting": "gnmax"}, id="Fair-gnmax"),
    pytest.param(FairPATEClassifier, {"voting": SoftVoting(noise="discrete_gaussian")}, id="Fair-discrete"),
    pytest.param(FairPATEClassifier, {"gamma": None}, id="Fair-unconstrained"),
    pytest.param(FairPATEClassifier, {"student": LogisticRegression()}, id="Fair-given-student"),
    pytest.param(FairPATEClassifier, {"gate": "labels"}, id="S_pre"),
    pytest.param(
        FairPATEClassifier, {"gate": None, "student": ParityPenaltyStudent(), "voting": "confident"}, id="S_in"
    ),
    pytest.param(FairDPSGDClassifier, {"noise_multiplier": None}, id="DPSGD"),
    pytest.param(FairDPSGDClassifier, {"lam": 0.0}, id="DPSGD-unconstrained"),
    pytest.param(FairDPSGDRegressor, {}, id="DPSGD-amounts"),
    pytest.param(FairClippingClassifier, {}, id="reweighting"),
    pytest.param(FairClippingClassifier, {"method": "dpsgd_f"}, id="DPSGD-F"),
    pytest.param(FairClippingClassifier, {"method": "global_adapt"}, id="global-adapt"),
    pytest.param(FairPATEClassifier, {"teacher": MLPTeachers(hidden=(4,), epochs=1)}, id="Fair-mlp"),
    pytest.param(RandomizedResponseClassifier, {}, id="randomised-response"),
    pytest.param(RandomizedResponseClassifier, {"debias": False}, id="randomised-response-biased"),
    pytest.param(PFGuardGenerator, {}, id="PFGuard"),
    pytest.param(PFGuardGenerator, {"backend": MarginalsBackend(structure="star")}, id="PFGuard-star"),
    pytest.param(SFPATEClassifier, {}, id="SFS"),
    pytest.param(SFPATEClassifier, {"voting": "gnmax"}, id="SFS-gnmax"),
    pytest.param(
        SFPATEClassifier, {"voting": SoftVoting(noise="discrete_gaussian", max_queries=50)}, id="SFS-discrete"
    ),
    pytest.param(SFPATEClassifier, {"variant": FairTeachers(LagrangianClassifier(net=mlp(max_epochs=1)))}, id="SFT"),
    pytest.param(SFPATEClassifier, {"variant": FairTeachers(LogisticRegression()), "voting": "gnmax"}, id="SFT-gnmax"),
    pytest.param(PFLDClassifier, {}, id="PFLD"),
    pytest.param(PFLDClassifier, {"primal": NoisyGradients(3)}, id="PFLD-gradient"),
    pytest.param(PFLDClassifier, {"primal": NoisyGradients(5, sampling_probability=0.05)}, id="PFLD-poisson"),
    pytest.param(SyntheticDataClassifier, {}, id="Synthetic"),
    pytest.param(SyntheticDataRegressor, {}, id="Synthetic-amounts"),
    pytest.param(PrivateThresholds, {}, id="thresholds"),
    pytest.param(PrivateBarycenter, {}, id="barycenter"),
]
every_setting = pytest.mark.parametrize(("cls", "settings"), SETTINGS)
#: What takes fits of its own: one setting of each class in ``make test``.
of_each_class = pytest.mark.covering("cls")


#: What makes a class quick here.
QUICK = {
    FairClippingClassifier: {"groups": [0, 1], "net": mlp((4,), max_epochs=1, batch_size=100)},
    FairDPSGDClassifier: {"net": mlp((4,), max_epochs=1, batch_size=100)},
    FairDPSGDRegressor: {
        "net": mlp((4,), max_epochs=1, batch_size=100),
        "bounds": (0, 1),
        "gamma": 0.1,
        "groups": [0, 1],
    },
    PFLDClassifier: {"net": mlp((4,), max_epochs=1, batch_size=100), "groups": [0, 1], "dual_steps": 3},
    PrivateThresholds: {
        "groups": [0, 1],
        "estimator": FrozenEstimator(LogisticRegression().fit(np.eye(4) * 4 - 1, [0, 1, 0, 1])),
    },
    PrivateBarycenter: {
        "groups": [0, 1],
        "bounds": (-5, 5),
        "estimator": FrozenEstimator(LinearRegression().fit(np.eye(4) * 4 - 1, [0, 1, 0, 1])),
    },
    RandomizedResponseClassifier: {"groups": [0, 1]},
    SFPATEClassifier: {
        "groups": [0, 1],
        "n_teachers": 20,
        "fair_estimator": LagrangianClassifier(net=mlp((4,), max_epochs=1, batch_size=100), dual_steps=3),
    },
    SyntheticDataClassifier: {
        "estimator": LogisticRegression(),
        "n_samples": 500,
        "groups": [0, 1],
        "bounds": (-6.0, 6.0),
    },
    SyntheticDataRegressor: {
        "estimator": LinearRegression(),
        "n_samples": 500,
        "groups": [0, 1],
        "bounds_y": (0, 1),
        "bounds": (-6.0, 6.0),
    },
    PFGuardGenerator: {"groups": [0, 1], "bounds": (-6.0, 6.0), "codec": TableCodec(n_bins=8)},
}
#: What protects the groups of the rows given to fit, reads them, and needs no public rows.
OF_GROUPS = {PFLDClassifier, RandomizedResponseClassifier, SFPATEClassifier}
#: Classes that read the groups of the rows given to fit.
READING_GROUPS = {
    *OF_GROUPS,
    FairClippingClassifier,
    FairDPSGDRegressor,
    PFGuardGenerator,
    PrivateThresholds,
    SyntheticDataClassifier,
    SyntheticDataRegressor,
    PrivateBarycenter,
}


#: Their classes are those of the classifier they are given, or there are none.
WITHOUT_CLASSES = {PrivateThresholds, PrivateBarycenter, FairDPSGDRegressor, SyntheticDataRegressor}


def make(cls, settings, **more):
    given = {"epsilon": 3.0, "classes": [0, 1], "random_state": 0}
    if cls in WITHOUT_CLASSES:
        del given["classes"]
    given |= {**QUICK.get(cls, {"n_teachers": 20}), **settings, **more}
    if cls is PrivateBarycenter:  # it draws nothing that is public
        del given["random_state"]
    return cls(**given)


def public_of(cls, rows):
    return rows.X_public if cls is PATEClassifier else rows.public


def fit(estimator, rows, X=None, y=None):
    X, y = rows.X if X is None else X, rows.y if y is None else y
    if type(estimator) in READING_GROUPS:
        return estimator.fit(X, y, sensitive_features=rows.groups)
    return estimator.fit(X, y, X_public=public_of(type(estimator), rows))


def released(estimator, rows):
    """What the noise shows in."""
    if hasattr(estimator, "released_groups_"):
        return estimator.released_groups_
    if isinstance(estimator, PFGuardGenerator):
        return np.concatenate([table.ravel() for table in estimator.model_.tables])
    if isinstance(estimator, PrivateThresholds | PrivateBarycenter):
        return estimator.counts_
    if is_regressor(estimator):
        return estimator.predict(rows.X)
    return estimator.released_votes_ if hasattr(estimator, "student_") else estimator.predict_proba(rows.X)


@pytest.fixture(scope="module")
def fitted_and_given(rows):
    """One fit of each setting, and the parameters that it was given."""
    found = {}

    def of(cls, settings):
        if (cls, id(settings)) not in found:
            estimator = make(cls, settings)
            given = estimator.get_params(deep=False)
            found[cls, id(settings)] = fit(estimator, rows), given
        return found[cls, id(settings)]

    return of


@pytest.fixture(scope="module")
def fitted(fitted_and_given):
    """The same fits, for the tests that only look at them."""
    return lambda cls, settings: fitted_and_given(cls, settings)[0]


def test_the_settings_cover_every_private_estimator():
    assert {setting.values[0] for setting in SETTINGS} == set(private_classes().values())


@every_setting
def test_fit_changes_no_parameter(fitted_and_given, cls, settings):
    estimator, before = fitted_and_given(cls, settings)
    after = estimator.get_params(deep=False)
    assert all(after[name] is before[name] for name in before)
    student = settings.get("student")
    assert student is None or not hasattr(student, "coef_")


@every_setting
def test_certified_epsilon_is_at_most_what_was_asked_and_follows_from_the_event(fitted, cls, settings):
    spent = fitted(cls, settings).privacy_
    assert 0.9 * 3.0 < spent.epsilon <= 3.0  # the budget is used, and never overdrawn
    assert spent.epsilon == spent.mechanism_epsilon == epsilon_of(spent.event, spent.delta)
    protected = "sensitive attribute" if cls in OF_GROUPS else "record"
    assert (spent.delta, spent.protects) == (0.0 if cls is RandomizedResponseClassifier else 1e-5, protected)
    assert spent.neighboring_relation.protects == protected
    assert spent.data_dependent is False


@of_each_class
@every_setting
def test_the_cap_is_the_same_for_every_data_set_of_a_shape(rows, fitted, cls, settings):
    first = fitted(cls, settings)
    other = make(cls, settings)
    rng = np.random.default_rng(5)
    fit(other, rows, rng.normal(size=rows.X.shape) * 50, rng.integers(2, size=len(rows.y)))
    assert first.privacy_ == other.privacy_
    unanimous = make(cls, settings)
    fit(unanimous, rows, y=np.zeros_like(rows.y))
    assert first.privacy_ == unanimous.privacy_


@every_setting
def test_report_is_frozen(fitted, cls, settings):
    estimator = fitted(cls, settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimator.privacy_.epsilon = 0.1
    with pytest.raises(AttributeError):
        estimator.epsilon_spent_ = 0.1
    assert estimator.epsilon_spent_ == estimator.privacy_.epsilon


@of_each_class
@every_setting
def test_seeded_noise_certifies_nothing_and_says_so(rows, cls, settings):
    with pytest.warns(PrivacyLeakWarning, match="'noise_seed'"):
        estimator = fit(make(cls, settings, noise_seed=0), rows)
    assert estimator.privacy_.epsilon == np.inf
    assert 0 < estimator.privacy_.mechanism_epsilon <= 3.0
    again = fit(make(cls, settings, noise_seed=0), rows)
    np.testing.assert_array_equal(released(estimator, rows), released(again, rows))
    other = fit(make(cls, settings, noise_seed=1), rows)
    assert not np.array_equal(released(estimator, rows), released(other, rows))


@of_each_class
@every_setting
def test_random_state_does_not_fix_the_noise(rows, fitted, cls, settings):
    first, second = fitted(cls, settings), fit(make(cls, settings), rows)
    assert not np.array_equal(released(first, rows), released(second, rows))
    if hasattr(first, "query_indices_"):  # what is public is the same
        np.testing.assert_array_equal(first.query_indices_, second.query_indices_)


@every_setting
def test_no_ledger_counts_seeded_noise(rows, cls, settings):
    ledger = PrivacyLedger(epsilon=10)
    with pytest.raises(ValueError, match="'noise_seed' and 'ledger'"):
        fit(make(cls, settings, noise_seed=0, ledger=ledger), rows)
    assert ledger.entries == ()


@of_each_class
@every_setting
def test_one_fit_is_one_entry_of_the_ledger_and_clones_share_it(rows, cls, settings):
    ledger = PrivacyLedger(epsilon=10)
    estimator = make(cls, settings, ledger=ledger)
    assert clone(estimator).ledger is ledger and clone(clone(estimator)).ledger is ledger
    fit(clone(estimator), rows)
    (entry,) = ledger.entries
    fitted = fit(estimator, rows)
    assert len(ledger.entries) == 2
    assert entry.event == fitted.privacy_.event and entry.label == cls.__name__ and entry.releases
    assert 3.0 < ledger.epsilon_spent < 6.0


@of_each_class
@every_setting
def test_fit_leaves_the_global_generators_alone(rows, cls, settings):
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the global generator is what is watched
    torch.manual_seed(1)
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    estimator = fit(make(cls, settings, random_state=None), rows)
    if cls is PrivateBarycenter:
        estimator.predict(rows.X_public, sensitive_features=rows.groups_public)
    else:
        estimator.predict(rows.X_public) if hasattr(estimator, "predict") else estimator.sample(10)
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("cls", private_classes().values())
def test_non_deterministic_exactly_when_the_noise_is_secret(cls, seed):
    public = {} if cls is PrivateBarycenter else {"random_state": 0}
    assert get_tags(cls(noise_seed=seed, **public)).non_deterministic is (seed is None)


@pytest.mark.parametrize("cls", private_classes().values())
def test_constructor_takes_keywords_only_and_validates_each(cls):
    parameters = inspect.signature(cls).parameters
    # what an estimator wraps comes first and may go without its name, as everywhere in scikit-learn
    kinds = {p.kind for name, p in parameters.items() if name != "estimator"}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    assert set(cls._parameter_constraints) == set(cls().get_params(deep=False))


@pytest.mark.parametrize("cls", estimator_classes().values())
def test_fit_names_all_its_arguments(cls):
    if not hasattr(cls, "fit"):
        assert cls.__name__ in NOT_IN_THE_SUITE
        return
    kinds = {p.kind for p in inspect.signature(cls.fit).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


# ---- documentation -------------------------------------------------------------------------------------------
def documented(cls, section):
    """Names that a section of a numpydoc docstring describes."""
    match = re.search(rf"\n{section}\n-+\n(.*?)(?=\n\S[^\n]*\n-+\n|\Z)", inspect.getdoc(cls), re.DOTALL)
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", match.group(1), re.MULTILINE) if match else []
    return {name.strip() for head in heads for name in head.split(",")}


@pytest.mark.parametrize("cls", estimator_classes().values())
def test_every_parameter_is_documented(cls):
    if cls.__init__ is object.__init__:  # a base class whose __new__ takes those of its subclasses
        assert cls.__name__ in NOT_IN_THE_SUITE
        return
    assert set(inspect.signature(cls).parameters) == documented(cls, "Parameters")


def fitted_examples(rows, fitted):
    for setting in SETTINGS:
        cls, settings = setting.values
        yield fitted(cls, settings)
        if "student" in settings and hasattr(cls, "refit"):
            yield fit(make(cls, settings), rows).refit(student=None)
    soft = np.column_stack([1 - rows.y, rows.y]).astype(float)
    yield SoftLabelStudent().fit(rows.X, soft)
    yield SoftLabelStudent(gamma=0.1).fit(rows.X, soft, groups=rows.groups)
    yield ParityPenaltyStudent().fit(rows.X, soft, groups=rows.groups)
    yield ConstrainedStudent().fit(rows.X, soft, groups=rows.groups)
    idp = IDP3(LogisticRegression(), groups=[0, 1]).fit(rows.X, rows.y)
    yield idp.update(rows.y, sensitive_features=rows.groups)
    yield SchemaEncoder(Schema({"age": Number(0, 100)})).fit()
    yield ParityLogisticRegression().fit(rows.X, rows.y, sensitive_features=rows.groups)
    yield LagrangianClassifier(net=mlp(max_epochs=1)).fit(rows.X, rows.y, sensitive_features=rows.groups)
    yield PublicPreprocessor(StandardScaler(), rows.X_public).fit(rows.X)
    yield ParetoSearchCV(PATEClassifier(n_teachers=2), {"voting__threshold": [0.6]}, scoring="accuracy", cv=2).fit(
        rows.X, rows.y, X_public=rows.X_public)  # fmt: skip
    yield PrivateSearchCV(PATEClassifier(n_teachers=2), {"n_teachers": [2]}).fit(rows.X, rows.y, X_public=rows.X_public)
    private = fit(make(FairDPSGDClassifier, {}), rows)
    for model, method in ((LogisticRegression().fit(rows.X, rows.y), "auto"), (private, FineTuning(steps=2))):
        yield FairnessCalibrator(model, method=method).fit(rows.X_public, sensitive_features=rows.groups_public)
    odds = FairnessCalibrator(LogisticRegression().fit(rows.X, rows.y), constraints="equalized_odds")
    yield odds.fit(rows.X_public, rows.y[: len(rows.X_public)], sensitive_features=rows.groups_public)


def test_every_public_fitted_attribute_is_documented(rows, fitted):
    seen = set()
    for estimator in fitted_examples(rows, fitted):
        cls = type(estimator)
        seen.add(cls.__name__)
        state = {name for name in vars(estimator) if not name.startswith("_")} - set(estimator.get_params(deep=False))
        assert all(name.endswith("_") for name in state)
        properties = {name for name, _ in inspect.getmembers(cls, lambda v: isinstance(v, property))}
        public = state | {name for name in properties if name.endswith("_") and not name.startswith("_")}
        assert public <= documented(cls, "Attributes"), cls.__name__
    assert seen == {name for name, cls in estimator_classes().items() if hasattr(cls, "fit")}


def test_every_documented_attribute_of_a_private_estimator_exists(rows):
    frame_only, of_a_bound = {"feature_names_in_"}, {"gap_", "gap_bound_", "constraint_holds_"}
    more = {SyntheticDataClassifier: of_a_bound, PrivateBarycenter: {"strength_"}}  # the latter of a guessed group
    for cls in private_classes().values():
        estimator = fit(make(cls, {}), rows)
        missing = {name for name in documented(cls, "Attributes") if not hasattr(estimator, name)}
        assert missing == frame_only | more.get(cls, set())


def test_warnings_say_what_leaks_and_how_to_avoid_it(rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FairPATEClassifier(epsilon=15.0, random_state=0, gamma=None, n_teachers=20).fit(
            rows.X, rows.y, X_public=rows.X_public
        )
    (leak,) = caught
    assert leak.category is PrivacyLeakWarning and "'classes'" in str(leak.message)
    assert leak.filename == __file__
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FairPATEClassifier(epsilon=15.0, classes=[0, 1], random_state=0, gate=VoteGate(min_count=1000)).fit(
            rows.X, rows.y, X_public=rows.public
        )
    assert {w.category for w in caught} == {FairnessWarning} and caught[0].filename == __file__
