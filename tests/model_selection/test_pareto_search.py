"""ParetoSearchCV: what it costs, what it shows, and what it refuses."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from skfairdp import BudgetExceededError, ParetoSearchCV, PATEClassifier, PrivacyLeakWarning, PrivacyLedger, PublicData
from skfairdp.exceptions import FairnessWarning
from skfairdp.model_selection import hypervolume, pareto_frontier
from skfairdp.privacy import GaussianDpEvent, epsilon_of, gdp_epsilon, gdp_mu
from tests._tools.searches import Toy, ToyOfAttributes, ToyOfGuests, X, Y, Z, fitted, toy_search

SCORE_MU = gdp_mu(0.25, 1e-5)


@pytest.fixture(autouse=True)
def _forget_fits():
    Toy.made.clear()


def gaussian(*terms):
    """ε at 1e-5 of Gaussian releases with these (times, squared cost)."""
    return gdp_epsilon(math.sqrt(sum(times * cost for times, cost in terms)), 1e-5)


# ---- what it costs -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("folds", [2, 3, 5])
def test_k_folds_cost_k_minus_one_fits_and_one_score_per_candidate_and_the_refit(folds):
    search = fitted(cv=folds)
    expected = gaussian((3 * (folds - 1) + 1, 0.01), (3, SCORE_MU**2))
    assert search.privacy_.epsilon == pytest.approx(expected, rel=1e-6)
    assert search.epsilon_spent_ == epsilon_of(search.privacy_.event, 1e-5)
    assert len(Toy.made) == 3 * folds + 1 and search.n_splits_ == folds


VECTORS = Path(__file__).parents[1] / "vectors" / "private_selection.json"
VECTOR = json.loads(VECTORS.read_text())["cross_validation"][0]


def test_vector_of_plain_cross_validation():
    """One candidate: five folds, five folds and the refit, a holdout."""
    model = Toy(noise=1 / VECTOR["mu_fit"], delta=VECTOR["delta"])
    given = {"grid": {"cut": [0.0]}, "score_epsilon": gdp_epsilon(VECTOR["mu_score"], VECTOR["delta"])}
    alone = fitted(model, cv=VECTOR["folds"], refit=False, **given)
    assert alone.privacy_.epsilon == pytest.approx(VECTOR["epsilon"], abs=1e-5)
    refitted = fitted(model, cv=VECTOR["folds"], **given)
    assert refitted.privacy_.epsilon == pytest.approx(VECTOR["with_refit"], abs=1e-5)
    holdout = fitted(model, cv=ShuffleSplit(1, random_state=0), refit=False, **given)
    assert holdout.privacy_.epsilon == pytest.approx(VECTOR["holdout"], abs=1e-5)


def test_a_holdout_costs_the_larger_of_fit_and_score():
    cheap_score = fitted(cv=ShuffleSplit(1, random_state=0), refit=False)
    assert cheap_score.privacy_.epsilon == pytest.approx(gaussian((3, max(0.01, SCORE_MU**2))), rel=1e-6)
    dear_score = fitted(cv=ShuffleSplit(1, random_state=0), refit=False, score_epsilon=1.0)
    assert dear_score.privacy_.epsilon == pytest.approx(gaussian((3, gdp_mu(1.0, 1e-5) ** 2)), rel=1e-6)


def test_folds_that_overlap_cost_what_the_worst_placed_record_pays():
    search = fitted(cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), refit=False)
    assert search.privacy_.epsilon == pytest.approx(gaussian((3 * 4, 0.01), (3 * 2, SCORE_MU**2)), rel=1e-6)
    # Positions 0..9 are in both train parts and no test part, the rest in one train part and one test part.
    halves = [(np.r_[0:10, 10:1500], np.arange(1500, 3000)), (np.r_[0:10, 1500:3000], np.arange(10, 1500))]
    search = fitted(cv=halves, refit=False, score_epsilon=0.01)
    assert search.privacy_.epsilon == pytest.approx(gaussian((3 * 2, 0.01)), rel=1e-6)


def test_public_rows_score_for_free_without_folds_and_without_a_refit():
    rows = PublicData(X[:500], Z[:500], y=Y[:500])
    search = toy_search().fit(X[500:], Y[500:], validation=rows)
    assert search.privacy_.epsilon == pytest.approx(gaussian((3, 0.01)), rel=1e-6)
    assert len(Toy.made) == 3 and search.n_splits_ == 0
    assert search.best_params_ == {"cut": 0.0} and search.best_score_ == 1.0
    assert Toy.made[0]["n"] == 2500


def test_the_ledger_has_an_entry_for_each_candidate_and_the_refit_and_the_same_total():
    ledger = PrivacyLedger()
    search = fitted(Toy(ledger=ledger))
    assert [entry.label for entry in ledger.entries] == ["ParetoSearchCV of Toy"] * 4
    assert ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon, rel=1e-9)
    assert search.best_estimator_.ledger is ledger
    assert all(params["ledger"] is None for params in Toy.made)  # no fit charged it a second time


@pytest.mark.few(1)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_ceiling_stops_before_what_would_exceed_it_and_keeps_what_is_finished(n_jobs):
    two_and_refit = gaussian((2 * 2 + 1, 0.01), (2, SCORE_MU**2))
    ledger = PrivacyLedger(epsilon=two_and_refit * 1.0001)
    with pytest.warns(UserWarning, match=r"leaves out 1 of its 3 candidates, \[2\].*The first: \{'cut'"):
        search = fitted(Toy(ledger=ledger), n_jobs=n_jobs)
    assert search.cv_results_["status"].tolist() == ["scored", "scored", "over the ceiling"]
    assert np.isnan(search.cv_results_["mean_test_accuracy"][2])
    assert search.best_params_ == {"cut": 0.0}  # and the refit was kept in reserve
    assert hasattr(search, "best_estimator_")
    assert ledger.epsilon_spent <= ledger.epsilon
    assert ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon, rel=1e-9)


def test_a_ceiling_that_affords_nothing_refuses_before_the_first_fit():
    Toy.made.clear()
    ledger = PrivacyLedger(epsilon=0.1)
    with pytest.raises(BudgetExceededError):
        fitted(Toy(ledger=ledger))
    assert Toy.made == [] and ledger.entries == ()


def test_a_cheaper_candidate_may_still_fit_under_the_ceiling():
    grid = {"noise": [1.0, 20.0]}
    ledger = PrivacyLedger(epsilon=1.0)
    with pytest.warns(UserWarning, match=r"leaves out 1 of its 2 candidates, \[0\].*The first: \{'noise': 1.0\}"):
        search = fitted(Toy(ledger=ledger), grid)
    assert search.cv_results_["status"].tolist() == ["over the ceiling", "scored"]


def test_an_interrupted_search_leaves_what_it_may_have_spent(monkeypatch):
    ledger = PrivacyLedger()
    real = Toy.fit

    def interrupted(self, X, y, **kwargs):
        if self.ledger is None and self.cut == 0.0:
            raise KeyboardInterrupt
        return real(self, X, y, **kwargs)

    monkeypatch.setattr(Toy, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(Toy(ledger=ledger))
    assert len(ledger.entries) == 2  # the finished candidate and the one that was under way; not the third


def test_a_search_whose_refit_is_interrupted_tells_what_the_refit_cost(monkeypatch):
    ledger, real, n_rows = PrivacyLedger(), Toy.fit, len(X)

    def interrupted(self, X, y, **kwargs):
        real(self, X, y, **kwargs)
        if len(X) == n_rows:
            raise KeyboardInterrupt
        return self

    monkeypatch.setattr(Toy, "fit", interrupted)
    search = toy_search(Toy(ledger=ledger), cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y, sensitive_features=Z)
    assert search.privacy_.epsilon == pytest.approx(ledger.epsilon_spent, rel=1e-6)


def test_seeded_noise_makes_the_whole_search_uncertified_and_repeatable():
    first, second = fitted(Toy(noise_seed=3)), fitted(Toy(noise_seed=3))
    assert first.privacy_.epsilon == math.inf and np.isfinite(first.privacy_.mechanism_epsilon)
    np.testing.assert_array_equal(first.cv_results_["mean_test_accuracy"], second.cv_results_["mean_test_accuracy"])
    with pytest.raises(ValueError, match="both 'noise_seed' and 'ledger'"):
        fitted(Toy(noise_seed=3, ledger=PrivacyLedger()))


def test_a_fit_that_releases_something_else_than_it_planned_is_an_error(monkeypatch):
    class Liar(Toy):
        def fit(self, X, y, *, sensitive_features=None):
            super().fit(X, y)
            self.privacy_ = fitted_privacy
            return self

    from skfairdp.privacy import PrivacySpent

    fitted_privacy = PrivacySpent.of(GaussianDpEvent(0.5), 1e-5, **Toy.guarantee)
    with pytest.raises(RuntimeError, match="something else than it had planned"):
        fitted(Liar())


# ---- folds ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cv", [StratifiedKFold(3), StratifiedShuffleSplit(1), GroupKFold(3)])
def test_folds_that_look_at_private_data_are_refused_with_the_reason(cv):
    with pytest.raises(ValueError, match=r"private labels of others|must go by position"):
        fitted(cv=cv)
    assert Toy.made == []


def test_folds_by_a_public_label_are_allowed_where_only_the_attribute_is_protected():
    search = fitted(ToyOfAttributes(), cv=StratifiedKFold(3))
    assert search.privacy_.protects == "sensitive attribute"
    assert search.privacy_.epsilon == pytest.approx(gaussian((7, 0.01), (3, SCORE_MU**2)), rel=1e-6)


def test_one_changed_record_moves_no_other_between_folds():
    """Zero-noise differential: which rows each fit sees must not depend on the values of any row."""
    seen = []

    class Watched(Toy):
        def fit(self, X, y, *, sensitive_features=None):
            if self.ledger is None:
                seen.append(np.asarray(X)[:, 1].copy())
            return super().fit(X, y)

    marked = np.column_stack([X[:, 0], np.arange(len(X))])
    toy_search(Watched(), refit=False).fit(marked, Y, sensitive_features=Z)
    before, other = list(seen), Y.copy()
    seen.clear()
    other[17] = 1 - other[17]
    toy_search(Watched(), refit=False).fit(marked, other, sensitive_features=Z)
    assert all(np.array_equal(a, b) for a, b in zip(before, seen, strict=True))


def test_where_records_come_and_go_each_row_draws_its_fold_in_secret():
    first = fitted(ToyOfGuests(public_n_rows=3000), refit=False)
    sizes = [params["n"] for params in Toy.made[:3]]
    fitted(ToyOfGuests(public_n_rows=3000, random_state=0), refit=False, random_state=0)
    assert sizes != [params["n"] for params in Toy.made[9:12]]  # no seed brings them back
    assert abs(sum(sizes) / 3 - 2000) == 0 and len(set(sizes)) > 1
    assert {params["public_n_rows"] for params in Toy.made} == {2000}  # what the fit may know of its size
    # The table's sensitivity is 1, and it is accounted so.
    assert first.privacy_.epsilon == pytest.approx(gaussian((6, 0.01), (3, SCORE_MU**2)), rel=1e-6)
    with pytest.raises(ValueError, match="draws its fold by itself"):
        fitted(ToyOfGuests(public_n_rows=3000), cv=KFold(3))


@pytest.mark.parametrize("cv", [1, 5000, [], [(np.arange(10), np.arange(5, 20))], [([], [1])], "five"])
def test_impossible_folds_are_errors_before_anything_is_spent(cv):
    with pytest.raises(ValueError, match="'cv' parameter of ParetoSearchCV"):
        fitted(cv=cv)
    assert Toy.made == []


# ---- what it shows -------------------------------------------------------------------------------------------
def test_results_are_gridsearchs_columns_without_times_or_exact_scores():
    results = fitted(score_epsilon=2.0).cv_results_
    for name in ("accuracy", "disparity", "epsilon"):
        folds = np.column_stack([results[f"split{j}_test_{name}"] for j in range(3)])
        np.testing.assert_allclose(results[f"mean_test_{name}"], folds.mean(axis=1))
        np.testing.assert_allclose(results[f"std_test_{name}"], folds.std(axis=1))
        assert results[f"rank_test_{name}"].min() == 1
    assert results["params"] == [{"cut": -1.0}, {"cut": 0.0}, {"cut": 1.0}]
    assert results["param_cut"].tolist() == [-1.0, 0.0, 1.0]
    assert not [name for name in results if "time" in name]
    exact = np.mean((X[:1000, 0] > -1.0) == Y[:1000])
    assert results["split0_test_accuracy"][0] != exact
    assert results["split0_test_accuracy"][0] == pytest.approx(exact, abs=0.05)


def test_noise_of_the_table_is_what_is_accounted():
    """Two-sided: the spread of one cell's count over many tables is the declared one."""
    from skfairdp.privacy import NeighboringRelation, NoiseSource
    from tests._tools.inside import ScoreTable

    for relation, sensitivity in (
        (NeighboringRelation.REPLACE_ONE, math.sqrt(2)),
        (NeighboringRelation.ADD_OR_REMOVE_ONE, 1.0),
    ):
        table = ScoreTable(np.array(["a", "b"], dtype=object), 0.5, 1e-5, relation, np.array([0, 1]))
        assert epsilon_of(table.event, 1e-5) <= 0.5
        assert table.mechanism.sensitivity == sensitivity
        codes, source = np.zeros(3000, dtype=int), NoiseSource(0)
        counts = []
        for _ in range(300):
            answers = table.release(table.counts(codes, codes, codes), source, with_groups=True)
            counts.append(np.sum((answers.groups == "a") & (answers.y_true == 0) & (answers.y_pred == 0)))
        spread = np.std(counts) / (sensitivity / gdp_mu(0.5, 1e-5))
        assert 1 / 1.2 < spread < 1.2


def test_one_changed_record_moves_a_table_by_no_more_than_its_sensitivity(monkeypatch):
    from skfairdp.privacy import GaussianMechanism, NeighboringRelation, NoiseSource
    from tests._tools.inside import ScoreTable

    released = []
    monkeypatch.setattr(GaussianMechanism, "release", lambda self, v, s: (released.append(np.array(v)), v)[1])
    table = ScoreTable(np.array([0, 1], dtype=object), 0.5, 1e-5, NeighboringRelation.REPLACE_ONE, np.array([0, 1]))
    rng = np.random.default_rng(0)
    y, z, k = (rng.integers(0, 2, 40) for _ in range(3))
    k[:5] = 9  # refusals
    table.release(table.counts(y, z, k), NoiseSource(0), with_groups=True)
    for row in range(40):
        for label, group, answer in ((1 - y[row], z[row], k[row]), (y[row], 1 - z[row], 9), (1 - y[row], 1, 0)):
            other = [np.array(column) for column in (y, z, k)]
            for column, value in zip(other, (label, group, answer), strict=True):
                column[row] = value
            table.release(table.counts(*other), NoiseSource(0), with_groups=True)
            assert np.linalg.norm(released[-1] - released[0]) <= table.mechanism.sensitivity + 1e-12


def test_frontier_and_hypervolume_are_those_of_the_functions():
    search = fitted(grid={"cut": [-1.0, -0.5, 0.0, 0.5], "noise": [5.0, 10.0]}, score_epsilon=3.0)
    values = np.column_stack([search.cv_results_[f"mean_test_{n}"] for n in ("accuracy", "disparity", "epsilon")])
    mask = pareto_frontier(values, [False, True, True])
    np.testing.assert_array_equal(search.cv_results_["pareto_optimal"], mask)
    reference = [search.reference_[n] for n in ("accuracy", "disparity", "epsilon")]
    assert reference == [values[:, 0].min(), values[:, 1].max(), values[:, 2].max()]
    assert search.hypervolume_ == hypervolume(values, reference, [False, True, True])
    given = fitted(score_epsilon=3.0, reference={"accuracy": 0.5, "disparity": 1.0, "epsilon": 2.0})
    assert given.hypervolume_ > 0 and given.reference_["epsilon"] == 2.0


def test_bounds_rule_candidates_out_and_an_impossible_one_leaves_no_winner():
    rows = PublicData(X, Z, y=Y)
    unbounded = toy_search(grid={"cut": [0.0, 0.5], "noise": [5.0, 20.0]}).fit(X, Y, validation=rows)
    assert unbounded.best_params_ == {"cut": 0.0, "noise": 5.0}
    bounded = toy_search(grid={"cut": [0.0, 0.5], "noise": [5.0, 20.0]}, bounds={"epsilon": "<= 0.5"})
    assert bounded.fit(X, Y, validation=rows).best_params_ == {"cut": 0.0, "noise": 20.0}
    impossible = toy_search(bounds={"accuracy": ">= 1.5"})
    with pytest.warns(FairnessWarning, match="No candidate"):
        impossible.fit(X, Y, validation=rows)
    assert not hasattr(impossible, "best_estimator_") and len(impossible.pareto_table_) == 3
    with pytest.raises(sklearn.exceptions.NotFittedError, match="no best estimator"):
        impossible.predict(X)


class Judged(Toy):
    def fit(self, X, y, *, sensitive_features=None):
        self.gap_bound_ = 0.3  # what it has found of its own gap
        return super().fit(X, y, sensitive_features=sensitive_features)


def test_a_winner_whose_gap_may_be_beyond_the_bound_that_its_score_met_is_told():
    """The rows that chose it met the bound by chance as well: of 27 winners 14 broke it on others."""
    rows = PublicData(X, Z, y=Y)
    with pytest.warns(FairnessWarning, match="by its score, on rows that chose it.* at most 0.3"):
        toy_search(Judged(), bounds={"disparity": "<= 0.2"}).fit(X, Y, validation=rows)
    toy_search(Judged(), bounds={"disparity": "<= 0.4"}).fit(X, Y, validation=rows)


def test_refit_names_the_objective_that_decides():
    rows = PublicData(X, Z, y=Y)
    grid = {"cut": [0.0, 9.0]}
    assert toy_search(grid=grid, refit="disparity").fit(X, Y, validation=rows).best_params_ == {"cut": 9.0}
    assert toy_search(grid=grid, refit=True).fit(X, Y, validation=rows).best_params_ == {"cut": 0.0}
    with pytest.raises(ValueError, match="must be a bool or one of the objectives"):
        fitted(refit="beauty")


def test_any_scorer_any_metric_any_gap():
    def largest_group(y_true, y_pred, *, sensitive_features):
        return max(np.mean(sensitive_features == g) for g in set(sensitive_features))

    scoring = {
        "balanced_accuracy": "balanced_accuracy",
        "f1": make_scorer(f1_score),
        "odds": "equalized_odds_disparity",
        "accuracy_disparity": "accuracy_disparity",
        "largest": (largest_group, "minimize"),
        "coverage": "coverage",
    }
    private = fitted(scoring=scoring, score_epsilon=10.0).cv_results_
    public = toy_search(scoring=scoring).fit(X, Y, validation=PublicData(X, Z, y=Y)).cv_results_
    for name in scoring:
        np.testing.assert_allclose(private[f"mean_test_{name}"], public[f"mean_test_{name}"], atol=0.06)
    assert public["rank_test_f1"].argmin() == 1 and public["mean_test_coverage"].tolist() == [1.0] * 3


def test_a_scorer_of_probabilities_needs_public_rows():
    estimator = PATEClassifier(n_teachers=10, classes=[0, 1], random_state=0)
    options = {"scoring": {"auc": "roc_auc"}, "error_score": "raise"}
    with pytest.raises(ValueError, match="more than predicted labels"):
        ParetoSearchCV(estimator, {"epsilon": [1.0]}, **options).fit(X, Y, X_public=X[:200].copy())
    search = ParetoSearchCV(estimator, {"epsilon": [1000.0]}, **options)  # next to no noise: it has no seed here
    assert search.fit(X, Y, X_public=X[:200].copy(), validation=PublicData(X, y=Y)).best_score_ > 0.9


@pytest.mark.parametrize(
    "scoring", [[], "no_such_scorer", {"a": ("accuracy", "minimize")}, {"x": "accuracy"}, 3, {"m": (max, "upwards")}]
)
def test_scoring_that_does_not_exist_is_an_error(scoring):
    with pytest.raises(ValueError, match="ParetoSearchCV"):
        fitted(scoring=scoring)


@pytest.mark.parametrize("bounds", [{"beauty": "<= 1"}, {"accuracy": "about .8"}, {"accuracy": 0.8}])
def test_bounds_that_cannot_be_read_are_errors(bounds):
    with pytest.raises(ValueError, match="'bounds' parameter of ParetoSearchCV"):
        fitted(bounds=bounds)


def test_gaps_without_groups_are_an_error_not_a_zero():
    with pytest.raises(ValueError, match="needs the groups"):
        toy_search().fit(X, Y)
    with pytest.raises(ValueError, match="needs the groups"):
        toy_search().fit(X, Y, validation=PublicData(X, y=Y))
    assert Toy.made == []


def test_domains_read_from_private_rows_are_announced():
    with pytest.warns(PrivacyLeakWarning, match="read its groups from the private rows"):
        fitted(Toy(groups=None))
    with pytest.warns(PrivacyLeakWarning, match="read its classes"):
        toy_search(Toy(classes=None), {"classes": [[0, 1]]}, scoring="accuracy").fit(X, Y)


@pytest.mark.covering
@pytest.mark.parametrize("error_score", [math.nan, "raise"])
@pytest.mark.parametrize("fails", [(True, False), (False, True), (True,)])
def test_a_fit_that_fails_after_the_charge_ends_the_search_and_tells_nothing(fails, error_score):
    """Which candidate, why and when: none of it is visible, and neither is it from the charges."""
    ledger, whole = PrivacyLedger(), PrivacyLedger()
    with pytest.raises(RuntimeError, match="A fit of ParetoSearchCV failed after the search was charged") as caught:
        fitted(Toy(ledger=ledger), {"fails": list(fails), "cut": [0.0, 1.0]}, error_score=error_score)
    assert caught.value.__context__ is None and "42" not in str(caught.value)
    fitted(Toy(ledger=whole), {"random_state": [1, 2][: len(fails)], "cut": [0.0, 1.0]}, refit=False)
    assert [entry.event for entry in ledger.entries] == [entry.event for entry in whole.entries]


def test_a_candidate_given_twice_is_scored_twice_from_one_fit():
    search = fitted(grid={"cut": [0.0, 0.0]}, refit=False)
    assert search.cv_results_["status"].tolist() == ["scored"] * 2 and len(Toy.made) == 3


def test_a_candidate_that_cannot_be_planned_costs_nothing_and_the_others_go_on():
    """Wrong parameters show before the charge, and are nobody's secret."""

    class Careful(Toy):
        def fit(self, X, y, *, sensitive_features=None):
            if self.cut > 1:
                raise ValueError("cut must be at most 1")
            return super().fit(X, y)

    with pytest.warns(sklearn.exceptions.FitFailedWarning, match=r"Candidates \[0\] cannot be fitted: ValueError"):
        search = fitted(Careful(), {"cut": [2.0, 0.0]})
    assert search.cv_results_["status"].tolist() == ["failed", "scored"]
    assert search.best_params_ == {"cut": 0.0}
    assert search.privacy_.epsilon == pytest.approx(fitted(Careful(), {"cut": [0.0]}).privacy_.epsilon)
    for grid, options in (({"cut": [2.0, 3.0]}, {}), ({"cut": [0.0, 2.0]}, {"error_score": "raise"})):
        ledger = PrivacyLedger()
        with pytest.raises(ValueError, match="cut must be at most 1"):
            fitted(Careful(ledger=ledger), grid, **options)
        assert ledger.entries == ()


@pytest.mark.parametrize("public", [False, True])
def test_a_candidate_that_one_class_for_everybody_beats_is_not_said_to_be_unbeaten(public):
    validation = {"validation": PublicData(X[:500], Z[:500], y=Y[:500])} if public else {}
    side = 1 if Y.mean() > 0.5 else -1  # all rows get the rarer class
    search = toy_search(grid={"cut": [0.0, side * 9.0]}, cv=2, score_epsilon=50.0).fit(
        X[500:], Y[500:], sensitive_features=Z[500:], **validation
    )
    table = search.pareto_table_
    (mark,) = table.attrs["references"]
    common = np.bincount(Y[:500] if public else Y[500:]).max() / (500 if public else len(Y) - 500)
    assert mark["accuracy"] == pytest.approx(common, abs=0 if public else 0.01)
    assert table["accuracy"][1] < mark["accuracy"] and table["disparity"][1] < 0.01
    assert table["non_dominated"].tolist() == [True, False]


def test_scores_are_of_the_nearest_whole_numbers_of_rows(monkeypatch):
    """A noisy count is of no whole rows: cut off, it would be half a row short on average, in every cell."""
    from skfairdp.privacy import GaussianMechanism, NeighboringRelation
    from tests._tools.inside import ScoreTable

    noisy = np.array([[[2.6, 2.4], [0.6, -3.0]], [[0.4, 7.5001], [1.0, 4.7]]])
    monkeypatch.setattr(GaussianMechanism, "release", lambda self, counts, source: noisy)
    table = ScoreTable(np.array([0, 1], dtype=object), 0.5, 1e-5, NeighboringRelation.REPLACE_ONE, np.array([0, 1]),
                       refusals=False)  # fmt: skip
    found = table.release(np.zeros(noisy.shape, dtype=np.int64), None, with_groups=True)
    counts = np.zeros(noisy.shape, dtype=int)
    np.add.at(counts, (found.groups.astype(int), found.y_true, found.y_pred), 1)
    assert counts.tolist() == [[[3, 2], [1, 0]], [[0, 8], [1, 5]]]
