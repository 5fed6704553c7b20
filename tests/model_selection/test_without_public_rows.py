"""The frontier and an accounted search without public rows: own rows, private groups, learners at no further cost."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    ParetoSearchCV,
    PFGuardGenerator,
    PrivacyLedger,
    PrivateSearchCV,
    SyntheticDataClassifier,
    frontier,
)
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.gradient import mlp

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

SPLIT = train_private_public_test_split(
    *make_biased_classification(1500, disparity=0.3, random_state=0), random_state=0
)
DOMAINS = {"classes": [0, 1], "groups": [0, 1], "random_state": 0}
TESTED = {"X_test": SPLIT.X_test, "y_test": SPLIT.y_test, "sensitive_features_test": SPLIT.sensitive_features_test}


#: So large that by public numbers no learner is in doubt: none gives way to the most frequent class.
CLEAR = {"epsilon": 16.0}


def synthetic(**options):
    learner = LogisticRegression()
    return SyntheticDataClassifier(learner, n_samples=500, bounds=(-6.0, 6.0), **DOMAINS, **options)


@pytest.mark.slow
def test_frontier_sweeps_three_methods_without_public_rows():
    methods = {
        "FairPATE": FairPATEClassifier(n_teachers=5, **DOMAINS),
        "DP-SGD": FairDPSGDClassifier(net=mlp((), max_epochs=2, batch_size=200), **DOMAINS),
        "synthetic": synthetic(),
    }
    table = frontier(methods, SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features, epsilons=(2.0,),
                     gammas=(0.3, None), lams=(0.0, 1.0), idp3=(False, True), random_state=0, **TESTED)  # fmt: skip
    assert table["estimator"].value_counts().to_dict() == {"FairPATE": 3, "DP-SGD": 4, "synthetic": 2}
    assert (table["epsilon"] <= 2.0).all() and table["accuracy"].notna().all()
    assert sum(kind["n_fits"] for kind in table.attrs["guarantees"]) == 4


def test_groups_of_public_rows_without_the_rows_are_an_error():
    with pytest.raises(ValueError, match="sensitive_features_public without X_public"):
        frontier(synthetic(), SPLIT.X, SPLIT.y, sensitive_features_public=[0], **TESTED)


def test_learners_on_synthetic_rows_share_one_release_a_fold():
    ledger = PrivacyLedger()
    grid = {"estimator__C": [0.01, 1.0, 100.0], "n_samples": [300, 500]}
    search = ParetoSearchCV(synthetic(ledger=ledger, **CLEAR), grid, scoring="accuracy", cv=2, score_epsilon=2.0)
    search.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features)
    assert [entry.releases[0] for entry in ledger.entries] == ["2 fits, 6 candidates", "refit of the winner"]
    assert search.best_params_["estimator__C"] == search.best_estimator_.estimator_.C
    assert np.isfinite(search.cv_results_["mean_test_accuracy"]).all()


@pytest.mark.parametrize("grid", [[{"estimator__C": [1e-6]}, {}], [{}, {"estimator__C": [1e-6]}]])
def test_whoever_leaves_out_what_another_candidate_changes_has_the_value_of_the_estimator(grid):
    search = ParetoSearchCV(synthetic(**CLEAR), grid, scoring="accuracy", cv=2, score_epsilon=20.0)
    search.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features)
    scores = dict(zip(map(str, search.cv_results_["params"]), search.cv_results_["mean_test_accuracy"], strict=True))
    assert scores["{}"] > scores["{'estimator__C': 1e-06}"] + 0.05
    assert search.best_params_ == {} and search.best_estimator_.estimator_.C == 1.0


def test_refit_changes_what_is_free_and_nothing_else():
    ledger = PrivacyLedger()
    model = synthetic(ledger=ledger, **CLEAR)
    model.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features)
    other = model.refit(estimator__C=0.01, n_samples=200, balance="group")
    assert (other.estimator_.C, model.estimator_.C) == (0.01, 1.0)
    assert (other.generator_.balance, model.generator_.balance) == ("group", None)
    np.testing.assert_allclose(other.generator_.rates_.sum(axis=1), 0.5)
    assert other.privacy_ is model.privacy_ and len(ledger.entries) == 1
    with pytest.raises(ValueError, match="Got 'epsilon', which needs another generator"):
        model.refit(epsilon=3.0)


@pytest.mark.slow
def test_a_search_over_a_generator_is_one_over_learners_of_its_rows():
    """What the refusal of a bare generator names: its own parameters and downstream scores, with one ledger."""
    ledger = PrivacyLedger()
    grid = {"balance": [None, "group_and_label"], "estimator__C": [0.01, 1.0]}
    search = ParetoSearchCV(synthetic(ledger=ledger), grid, cv=2, score_epsilon=2.0, scoring=("accuracy", "disparity"))
    search.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features)
    # One generator in every fold serves both balances and both learners; then the winner's.
    assert [entry.releases[0] for entry in ledger.entries] == ["2 fits, 4 candidates", "refit of the winner"]
    assert np.isfinite(search.pareto_table_[["accuracy", "disparity"]].to_numpy(float)).all()
    generator = search.best_estimator_.generator_
    assert generator.balance == search.best_params_["balance"] and len(generator.sample(7)) == 7
    assert search.privacy_.epsilon == search.best_estimator_.privacy_.epsilon > synthetic().epsilon
    for cls in (ParetoSearchCV, PrivateSearchCV):
        with pytest.raises(ValueError, match=r"makes none. Search SyntheticDataClassifier\(learner, ...\)"):
            cls(PFGuardGenerator(ledger=PrivacyLedger()), {"epsilon": [1.0]}).fit(SPLIT.X, SPLIT.y)
