"""privacy_of: guarantees inside pipelines, ensembles and searches are composed, and what is not covered is named."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    GradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, KFold, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from skfairdp import (
    IDP3,
    FairDPSGDClassifier,
    FairnessCalibrator,
    PATEClassifier,
    PrivacyLedger,
    PrivateSearchCV,
    PublicData,
    RandomizedResponseClassifier,
)
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.gradient import FairDPSGDRegressor, mlp
from skfairdp.postprocessing import PrivateThresholds
from skfairdp.privacy import epsilon_of, privacy_of

pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")

SPLIT = train_private_public_test_split(*make_biased_classification(1500, random_state=0), random_state=0)
X, Y, PUBLIC = SPLIT.X, SPLIT.y, SPLIT.public


def pate(epsilon=1.0, **options):
    return PATEClassifier(epsilon=epsilon, n_teachers=8, classes=[0, 1], public_data=PUBLIC, **options)


def test_of_a_private_estimator_and_a_post_processor_it_is_their_own():
    model = pate().fit(X, Y)
    assert privacy_of(model).epsilon == model.privacy_.epsilon
    around = IDP3(model, groups=[0, 1]).fit(X, sensitive_features=SPLIT.sensitive_features)
    assert privacy_of(around).epsilon == model.privacy_.epsilon
    assert privacy_of(around).statement().epsilon == model.privacy_.epsilon


@pytest.mark.filterwarnings("ignore:The Pipeline around")
def test_a_step_that_reads_private_rows_is_named():
    model = make_pipeline(StandardScaler(), pate()).fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler"):
        spent = privacy_of(model)
    assert any("StandardScaler" in fact for fact in spent.public)


def test_what_learned_beside_a_private_model_is_named_from_outside_as_well():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner = make_pipeline(StandardScaler(), FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1]))
        search = PrivateSearchCV(inner, {"fairdpsgdclassifier__lam": [0.0]}).fit(X, y)
        fitted = inner.fit(X, y)
        thresholds = PrivateThresholds(fitted, epsilon=1.0, groups=[0, 1]).fit(X, y, sensitive_features=groups)
        calibrator = FairnessCalibrator(fitted, method="threshold").fit(X, sensitive_features=groups)
    for model in (search, thresholds, calibrator):
        with pytest.warns(PrivacyLeakWarning, match=r"cannot see what these read: .*\(StandardScaler\)"):
            assert privacy_of(model).epsilon == pytest.approx(model.privacy_.epsilon)


def test_folds_of_a_chain_are_told_of():
    X = np.random.default_rng(0).normal(size=(400, 2))
    chain = ClassifierChain(FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1]), cv=KFold(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chain.fit(X, (X > 0).astype(int))
    with pytest.warns(PrivacyLeakWarning, match="fits on folds of ClassifierChain"):
        privacy_of(chain)


def test_two_models_that_vote_are_composed():
    model = VotingClassifier([("a", pate()), ("b", pate(2.0))]).fit(X, Y)
    parts = [part.privacy_ for part in model.estimators_]
    assert privacy_of(model).epsilon == (parts[0] + parts[1]).epsilon > max(part.epsilon for part in parts)


@pytest.mark.filterwarnings("ignore:.*is fitted on folds of Stratified", "ignore:The Pipeline around")
def test_a_network_that_is_not_fitted_is_not_named_and_hides_nothing_that_is():
    """An unfitted net of skorch has attributes that end with an underscore: it was named in place of what chose."""
    one = FairDPSGDRegressor(epsilon=8.0, bounds=(0, 1), net=mlp((), max_epochs=1))
    privacy_of(VotingRegressor([("a", one)]).fit(X, Y))  # a warning would be an error
    chooses = SequentialFeatureSelector(one, n_features_to_select=1, cv=2)
    with pytest.warns(PrivacyLeakWarning, match=r"Pipeline.steps \(SequentialFeatureSelector\)\. The"):
        privacy_of(make_pipeline(chooses, one).fit(X[:200], Y[:200]))


@pytest.mark.filterwarnings("ignore:.*is fitted on folds of Stratified")
@pytest.mark.filterwarnings("ignore:The StackingClassifier around PATEClassifier fits")
def test_a_stack_names_its_last_learner_and_its_folds():
    model = StackingClassifier([("a", pate()), ("b", pate(2.0))], final_estimator=LogisticRegression(), cv=2).fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match=r"final_estimator_ \(LogisticRegression\).*fits on folds"):
        spent = privacy_of(model)
    parts = [part.privacy_ for part in model.estimators_]
    assert spent.epsilon == (parts[0] + parts[1]).epsilon


class Holding(ClassifierMixin, BaseEstimator):
    """A user's wrapper, which keeps a private model in its own way."""

    def __init__(self, keep=None):
        self.keep = keep

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.__dict__.update(self.keep(pate().fit(X, y)))
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


#: What learns from the rows itself, beside a private model inside of it.
LEARNING_THEMSELVES = {
    "boosting that starts from it": GradientBoostingClassifier(init=pate(), n_estimators=2),
    "adaptive boosting": AdaBoostRegressor(FairDPSGDRegressor(bounds=(0, 1)), n_estimators=1, random_state=0),
    "a threshold": TunedThresholdClassifierCV(pate(9.0), cv=KFold(2), store_cv_results=True),
    "labels of its own": SelfTrainingClassifier(pate()),
    "a wrapper": Holding(lambda model: {"model_": model}),
    "a wrapper with another name": Holding(lambda model: {"model": model}),
    "a wrapper with a hidden name": Holding(lambda model: {"_models": {"a": [model]}}),
    "a wrapper with an array": Holding(lambda model: {"models_": np.array([model], dtype=object)}),
    "a wrapper with a set": Holding(lambda model: {"models_": {model}}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning:sklearn")
@pytest.mark.filterwarnings(
    "ignore:.*(cannot be reproduced|draws rows with replacement|on folds|y contains no unlabeled|fits its threshold)"
)
@pytest.mark.parametrize("kind", LEARNING_THEMSELVES)
def test_a_private_model_inside_does_not_vouch_for_what_is_around_it(kind):
    model = clone(LEARNING_THEMSELVES[kind])
    fitted = model.fit(X, Y)
    inside = [one for one in (getattr(fitted, "estimator_", None), getattr(fitted, "init_", None)) if one is not None]
    with pytest.warns(PrivacyLeakWarning, match=f"cannot see what these read: .*{type(model).__name__}"):
        spent = privacy_of(fitted)
    assert spent.epsilon >= max((one.privacy_.epsilon for one in inside if hasattr(one, "privacy_")), default=0.9)
    assert any(type(model).__name__ in str(fact) for fact in spent.public)


@pytest.mark.parametrize("model", [
    VotingClassifier([("a", pate())]), OneVsRestClassifier(pate()), FrozenEstimator(pate().fit(X, Y)),
    FixedThresholdClassifier(pate(), threshold=0.4),
])  # fmt: skip
def test_what_only_hands_rows_on_is_not_named(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        assert privacy_of(clone(model).fit(X, Y)).epsilon > 0.9


@pytest.mark.filterwarnings("ignore:.*is fitted on folds of Stratified")
def test_a_search_with_a_ledger_counts_its_folds_and_tells_of_its_choice():
    ledger = PrivacyLedger()
    search = GridSearchCV(pate(ledger=ledger), {"epsilon": [0.5, 1.0]}, cv=2).fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="the choice of GridSearchCV by scores of the rows that it held out"):
        spent = privacy_of(search)
    assert len(ledger.entries) == 5
    assert (
        spent.epsilon == pytest.approx(ledger.epsilon_spent) and spent.epsilon > search.best_estimator_.epsilon_spent_
    )
    assert spent.epsilon == epsilon_of(spent.event, spent.delta)
    unknown = GridSearchCV(pate(), {"epsilon": [0.5]}, cv=2).fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="fits on folds of GridSearchCV"):
        privacy_of(unknown)


@pytest.mark.filterwarnings("ignore:The StackingClassifier around")
def test_fits_on_folds_that_only_a_ledger_has_are_named_where_figures_leave_ledgers_out():
    """privacy_ of a post-processor said 1.9, and the ledger had 4.3."""
    ledger = PrivacyLedger()
    inner = [("a", pate(ledger=ledger)), ("b", pate(ledger=ledger))]
    stack = StackingClassifier(inner, final_estimator=LogisticRegression(), cv=KFold(2))
    around = PrivateThresholds(stack.fit(X, Y), groups=[0, 1], ledger=ledger, group_at_prediction=True)
    with pytest.warns(PrivacyLeakWarning, match="PrivateThresholds cannot see .*fits on folds of StackingClassifier"):
        around.fit(X, Y, sensitive_features=SPLIT.sensitive_features)


def test_a_search_over_what_is_no_number_is_looked_through():
    """Scikit-learn keeps the grid in masked arrays, of which one entry cannot be asked for."""
    search = GridSearchCV(pate(ledger=PrivacyLedger()), {"student": [None]}, cv=KFold(2)).fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="the choice of GridSearchCV"):
        assert privacy_of(search).epsilon > 1.5


@pytest.mark.parametrize("bootstrap", [True, False])
def test_records_that_bagging_repeats_are_told_of(bootstrap):
    """Each fit protects a row, and a record may be several."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        bag = BaggingClassifier(pate(ledger=PrivacyLedger()), n_estimators=2, max_samples=0.8, bootstrap=bootstrap)
        bag.fit(X, Y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        privacy_of(bag)
    assert any("drew with replacement" in str(one.message) for one in said) == bootstrap


def test_another_ledger_takes_nothing_away():
    model = pate(ledger=PrivacyLedger()).fit(X, Y)
    other = model.set_params(ledger=PrivacyLedger())
    with pytest.warns(PrivacyLeakWarning, match="cannot see the ledger that PATEClassifier was charged to"):
        assert privacy_of(make_pipeline(other)).epsilon == pytest.approx(model.privacy_.epsilon)


@pytest.mark.filterwarnings("ignore:.*Keep to one kind")
def test_of_the_attribute_it_counts_the_fits_for_records_on_the_ledger():
    ledger = PrivacyLedger()
    pate(ledger=ledger).fit(X, Y)
    model = RandomizedResponseClassifier(epsilon=1.0, classes=[0, 1], groups=[0, 1], ledger=ledger)
    model.fit(X, Y, sensitive_features=SPLIT.sensitive_features)
    assert privacy_of(model).epsilon == pytest.approx(ledger.epsilon_spent) and ledger.epsilon_spent > 1.3


def test_without_any_guarantee_there_is_nothing_to_say():
    with pytest.raises(ValueError, match="no guarantee in this LogisticRegression"):
        privacy_of(LogisticRegression().fit(X, Y))
    with pytest.raises(ValueError, match="Fit it"):
        privacy_of(pate())
    assert isinstance(PUBLIC, PublicData)
