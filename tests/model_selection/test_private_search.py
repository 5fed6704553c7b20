"""PrivateSearchCV: only the winner comes out, and what that costs is charged before it."""

import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    BudgetExceededError,
    FairDPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    PrivacyLedger,
    PrivateSearchCV,
    PublicData,
    RandomizedResponseClassifier,
)
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.exceptions import FairnessWarning, UtilityWarning
from skfairdp.gradient import mlp
from skfairdp.model_selection import ParetoSearchCV
from skfairdp.pate import VoteGate
from skfairdp.privacy import (
    GaussianDpEvent,
    NoiseSource,
    PrivateSelection,
    RepeatAndSelectDpEvent,
    SecretChoice,
    WorstOf,
    compose,
    epsilon_of,
    flatten,
    gdp_epsilon,
    gdp_mu,
    repeat,
)
from tests._tools.searches import Toy, ToyOfAttributes, ToyOfGuests, make_rows

X, Y, Z = make_rows()
CHECKED = PublicData(X[:500], Z[:500], y=Y[:500])
CUTS = {"cut": [-1.0, -0.75, -0.5, 0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 2.0]}


@pytest.fixture(autouse=True)
def _forget_fits():
    Toy.made.clear()


def fitted(estimator=None, grid=CUTS, *, validation=CHECKED, **options):
    search = PrivateSearchCV(Toy() if estimator is None else estimator, grid, **options)
    return search.fit(X, Y, sensitive_features=Z, validation=validation)


# ---- what it costs -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("law", "epsilon"), [("logarithmic", 0.693839), ("half", 0.775738), ("geometric", 0.849245), ("poisson", 0.897764)]
)
def test_ten_candidates_cost_what_the_vectors_say(law, epsilon):
    search = fitted(trial_distribution=law, method="selection")
    assert search.privacy_.epsilon == pytest.approx(epsilon, rel=1e-3)
    assert search.privacy_.event == RepeatAndSelectDpEvent(
        WorstOf((GaussianDpEvent(10.0),) * 10), 10.0, PrivateSelection(GaussianDpEvent(1.0), 2.0, law).event.shape
    )
    assert epsilon_of(search.privacy_.event, 1e-5) == search.epsilon_spent_


def test_composition_is_chosen_where_it_is_cheaper_and_for_up_to_three():
    assert fitted().method_ == "selection"
    for n in (1, 2, 3):
        Toy.made.clear()
        search = fitted(grid={"cut": CUTS["cut"][:n]})
        assert search.method_ == "composition"
        assert search.privacy_.epsilon == pytest.approx(gdp_epsilon(math.sqrt(n) / 10, 1e-5), rel=1e-9)
        assert len(Toy.made) == n
    many = fitted(grid={"cut": CUTS["cut"][:5]})
    other = fitted(grid={"cut": CUTS["cut"][:5]}, method="composition" if many.method_ == "selection" else "selection")
    assert many.privacy_.epsilon <= other.privacy_.epsilon


def test_the_costliest_candidate_prices_every_trial():
    search = fitted(grid={"noise": [10.0, 20.0, 30.0, 40.0]}, method="selection", expected_trials=10.0)
    assert search.privacy_.epsilon == pytest.approx(0.693839, rel=1e-3)


def test_more_expected_trials_cost_more_and_one_costs_one_fit():
    costs = [fitted(method="selection", expected_trials=m).privacy_.epsilon for m in (1.0, 5.0, 50.0)]
    assert costs[0] == pytest.approx(gdp_epsilon(0.1, 1e-5), rel=1e-9)
    assert costs[0] < costs[1] < costs[2]


def test_private_scores_of_a_holdout_cost_no_more_than_the_fit():
    Toy.made.clear()
    search = fitted(validation=None, method="selection")
    assert search.privacy_.epsilon == pytest.approx(0.693839, rel=1e-3)
    assert {params["n"] for params in Toy.made} == {2400}
    dear = fitted(validation=None, method="selection", score_epsilon=1.0)
    trial = epsilon_of(PrivateSelection(GaussianDpEvent(1 / gdp_mu(1.0, 1e-5)), 10.0).event, 1e-5)
    assert dear.privacy_.epsilon == pytest.approx(trial, rel=1e-3)


def test_folds_make_every_trial_pay_for_all_of_its_fits():
    search = fitted(validation=None, grid={"cut": [0.0, 1.0]}, cv=3)
    trial = compose(repeat(GaussianDpEvent(10.0), 3), GaussianDpEvent(1 / gdp_mu(0.25, 1e-5)))
    assert search.method_ == "composition"
    assert search.privacy_.epsilon == pytest.approx(epsilon_of(repeat(trial, 2), 1e-5), rel=1e-6)
    assert [params["n"] for params in Toy.made] == [2000, 2000, 2000, 3000] * 2


def test_the_ledger_has_one_entry_written_before_any_trial(monkeypatch):
    ledger, at_first_fit = PrivacyLedger(), []
    real = Toy.fit

    def watched(self, X, y, **kwargs):
        if self.ledger is None:
            at_first_fit.append(len(ledger.entries))
        return real(self, X, y, **kwargs)

    monkeypatch.setattr(Toy, "fit", watched)
    search = fitted(Toy(ledger=ledger))
    assert len(ledger.entries) == 1 and set(at_first_fit) == {1}
    entry = ledger.entries[0]
    assert entry.label == "PrivateSearchCV of Toy" and "10 candidates" in entry.releases[0]
    assert ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon, rel=1e-9)
    assert search.best_estimator_.ledger is ledger


def test_a_ceiling_refuses_the_search_before_any_trial():
    ledger = PrivacyLedger(epsilon=0.6)
    with pytest.raises(BudgetExceededError, match="Nothing was released"):
        fitted(Toy(ledger=ledger))
    assert Toy.made == [] and ledger.entries == ()


def test_the_winner_reports_the_cost_of_the_search_not_of_its_fit():
    search = fitted()
    assert search.best_estimator_.privacy_ is search.privacy_
    assert search.privacy_.epsilon > gdp_epsilon(0.1, 1e-5)


# ---- what stays secret ---------------------------------------------------------------------------------------
def test_nothing_but_the_winner_is_left():
    search = fitted(Toy(verbose=1))
    assert set(vars(search)) - set(search.get_params(deep=False)) == {
        "method_", "privacy_", "n_candidates_", "best_params_", "best_score_", "best_estimator_",
        "_fitted_with",  # values that parameters had in the fit
    }  # fmt: skip
    made = len(Toy.made)
    payload = pickle.dumps(search)
    assert not hasattr(search, "cv_results_")
    assert payload.count(b"cut") < 10 or made < 10  # one winner, whatever the number of trials
    assert all(params["verbose"] == 0 for params in Toy.made)  # a progress bar would count the trials


@pytest.mark.slow
def test_the_report_does_not_tell_how_often_something_was_released():
    """The number of tables is the number of trials: it varies from search to search, and what is shown does not."""
    shown = set()
    for _ in range(6):
        Toy.made.clear()
        search = fitted(validation=None, method="selection", score_epsilon=2.0)
        shown.add((repr(search.privacy_), search.privacy_.performed, search.best_estimator_.privacy_.performed))
    assert len(shown) == 1 and next(iter(shown))[1:] == ((), ())


def test_a_search_prints_nothing(capsys):
    fitted(Toy(verbose=1))
    assert capsys.readouterr() == ("", "")


def test_warnings_of_trials_but_the_winners_are_kept_back(monkeypatch):
    real = Toy.fit

    def noisy(self, X, y, **kwargs):
        warnings.warn("a trial was made", UserWarning, stacklevel=2)
        return real(self, X, y, **kwargs)

    monkeypatch.setattr(Toy, "fit", noisy)
    Toy.made.clear()  # those of tests before, where mutants run this one without its fixtures
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(grid={"cut": [0.0, 0.3, 0.6]})  # composed: three trials
    assert len(Toy.made) == 3 and len(caught) == 2  # of the plan, which is public, and of the winner


class WarningTree(DecisionTreeClassifier):
    """A teacher that tells what it sees."""

    def fit(self, X, y, sample_weight=None):
        warnings.warn(f"private: {X[0]}", UtilityWarning, stacklevel=2)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("search", [PrivateSearchCV, ParetoSearchCV])
def test_what_a_fit_is_silent_of_is_no_warning_of_the_winner(search):
    model = PATEClassifier(teacher=WarningTree(max_depth=2), n_teachers=20, classes=[0, 1], random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search(model, {"epsilon": [0.5, 1.0]}).fit(X[500:], Y[500:], X_public=X[:500], validation=CHECKED)
    assert not [one for one in caught if "private: " in str(one.message)]


@pytest.mark.parametrize("search", [PrivateSearchCV, ParetoSearchCV])
def test_where_warnings_are_errors_what_was_paid_for_is_kept(search):
    """A bound that no fit can hold, of groups that a feature tells."""
    model = FairDPSGDClassifier(delta=1e-5, classes=[0, 1], groups=[0, 1], gamma=0.01, random_state=0)
    made, groups = search(model, {"lam": [0.1, 1.0]}, total_epsilon=1.0), (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FairnessWarning, match="did not reach its constraint"):
            made.fit(X, groups, sensitive_features=groups)
    assert made.predict(X).shape == Y.shape and made.best_estimator_.constraint_holds_ == "no"


def test_the_number_of_trials_varies_and_no_seed_repeats_it():
    counts = []
    for _ in range(12):
        Toy.made.clear()
        fitted(Toy(random_state=0), random_state=0, method="selection")
        counts.append(len(Toy.made))
    assert len(set(counts)) > 3


@pytest.mark.parametrize("method", ["composition", "selection"])
def test_a_fit_that_fails_neither_loses_nor_tells_why(method):
    """Toy fails after its charge, as on private rows: were it to lose, a record could choose among the others."""
    ledger = PrivacyLedger()
    grid = {"fails": [True, False], "cut": [0.0, 1.0]} if method == "composition" else {"fails": [True]}
    search = PrivateSearchCV(Toy(ledger=ledger), grid, method=method)
    with pytest.raises(RuntimeError, match="A fit of PrivateSearchCV failed after the search was charged") as caught:
        search.fit(X, Y, validation=CHECKED)
    assert caught.value.__context__ is None and "42" not in str(caught.value)  # nor does its traceback lead there
    assert not hasattr(search, "best_estimator_") and search.privacy_.epsilon > 0
    assert ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon)


def test_a_search_without_a_winner_does_not_show_an_earlier_one():
    search = fitted(grid={"cut": [0.0]})
    with pytest.raises(RuntimeError, match="failed after the search was charged"):
        search.set_params(param_grid={"fails": [True]}).fit(X, Y, validation=CHECKED)
    assert not hasattr(search, "best_estimator_") and not hasattr(search, "best_params_")


def test_a_poisson_number_of_no_trials_leaves_no_winner(monkeypatch):
    monkeypatch.setattr(PrivateSelection, "draw", lambda self, source, size=1: np.zeros(size, dtype=int))
    with pytest.warns(UserWarning, match="has no winner"):
        search = fitted(trial_distribution="poisson", method="selection")
    assert search.privacy_.epsilon == pytest.approx(0.897764, rel=1e-3)


# ---- what wins -----------------------------------------------------------------------------------------------
def test_the_best_candidate_wins_on_public_rows_and_nearly_so_on_noisy_ones():
    exact = fitted(grid={"cut": [-1.0, 0.0, 1.0]})
    assert exact.best_params_ == {"cut": 0.0} and exact.best_score_ == 1.0
    # At the default score_epsilon the accuracy of 600 rows has a noise of .03, which no seed repeats.
    noisy = fitted(grid={"cut": [-1.0, 0.0, 1.0]}, validation=None, score_epsilon=10.0)
    assert noisy.best_params_ == {"cut": 0.0} and noisy.best_score_ == pytest.approx(1.0, abs=0.1)
    assert exact.predict(X).shape == (3000,) and exact.score(X, Y) == 1.0
    gap = fitted(grid={"cut": [0.0, 9.0]}, scoring="disparity")
    assert gap.best_params_ == {"cut": 9.0} and gap.best_score_ == 0.0


def test_candidates_are_drawn_evenly():
    source = NoiseSource(seed=1)
    counts = np.bincount([SecretChoice(5).draw(source) for _ in range(5000)], minlength=5)
    assert np.all(np.abs(counts - 1000) < 4 * math.sqrt(800))


def test_bounds_decide_before_the_objective():
    search = fitted(grid={"cut": [0.0, 9.0]}, bounds={"coverage": ">= 0.5", "accuracy": "<= 0.9"})
    assert search.best_params_ == {"cut": 9.0}
    closest = fitted(grid={"cut": [0.0, 9.0]}, bounds={"accuracy": ">= 1.5"})
    assert closest.best_params_ == {"cut": 0.0}


@pytest.mark.slow
def test_whole_searches_are_the_selections_whose_leak_is_simulated():
    """The winner follows the law of the mechanism that tests/privacy/test_private_selection.py attacks.

    A trial releases a number and is scored by its level; the best level of K trials has a known distribution.
    """

    class Number(Toy):
        def fit(self, X, y, *, sensitive_features=None):
            super().fit(X, y)
            value = float(NoiseSource().normal()[0])
            self.level_ = 2 if value < -1.5 else 1 if value > 1.0 else 0
            return self

        def predict(self, X):
            return np.repeat([0, 1], [2 - self.level_, self.level_])

    validation = PublicData(np.zeros((2, 1)), y=np.array([1, 1]))
    search = PrivateSearchCV(Number(), {"cut": [0.0, 1.0, 2.0, 3.0]}, method="selection", expected_trials=6.0)
    runs, levels = 250, []
    for _ in range(runs):
        levels.append(search.fit(np.zeros((2, 1)), np.array([0, 1]), validation=validation).best_score_)
    mass = PrivateSelection(GaussianDpEvent(1.0), 6.0).probabilities()

    def none_of(probability):
        return float(mass @ (1 - probability) ** np.arange(len(mass)))

    high, middle = norm.cdf(-1.5), norm.sf(1.0)
    for level, expected in ((1.0, 1 - none_of(high)), (0.5, none_of(high) - none_of(high + middle))):
        share = np.mean(np.array(levels) == level)
        assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / runs)
    never = 1 - none_of(high + middle)
    assert abs(never - (high + middle)) > 0.2  # one trial alone would be told from this


# ---- folds and kinds -----------------------------------------------------------------------------------------
def test_folds_that_look_at_private_labels_are_refused():
    with pytest.raises(ValueError, match="private labels of others"):
        fitted(validation=None, cv=StratifiedKFold(3))
    assert fitted(ToyOfAttributes(), validation=None, cv=StratifiedKFold(3)).privacy_.protects == "sensitive attribute"


def test_where_records_come_and_go_the_holdout_is_drawn_in_secret():
    with pytest.raises(ValueError, match="no 'public_n_rows' is declared"):
        fitted(ToyOfGuests(), grid={"cut": [0.0]}, validation=None)
    Toy.made.clear()
    search = fitted(ToyOfGuests(public_n_rows=3000), grid={"cut": [0.0]}, validation=None)
    assert Toy.made[0]["public_n_rows"] == 2400 and Toy.made[0]["n"] != 2400
    assert search.privacy_.neighboring_relation == "add or remove one record"
    with pytest.raises(ValueError, match="draws its fold by itself"):
        fitted(ToyOfGuests(public_n_rows=3000), validation=None, cv=KFold(3))


def test_unlike_guarantees_in_one_grid_are_refused():
    class Either(Toy):
        @property
        def guarantee(self):
            return ToyOfAttributes.guarantee if self.cut else Toy.guarantee

    with pytest.raises(ValueError, match="unlike guarantees"):
        fitted(Either(), {"cut": [0.0, 1.0]})


@pytest.mark.parametrize("options", [{"trial_distribution": "binomial"}, {"method": "magic"}, {"expected_trials": 0.5}])
def test_impossible_parameters_are_errors(options):
    with pytest.raises(ValueError, match="PrivateSearchCV"):
        fitted(**options)
    assert Toy.made == []


@pytest.mark.parametrize("scoring", [["accuracy", "coverage"], 3, {"a": "accuracy", "b": "coverage"}])
def test_more_than_one_objective_is_an_error(scoring):
    with pytest.raises(ValueError, match="scoring"):
        fitted(scoring=scoring)


# ---- with the package's estimators ---------------------------------------------------------------------------
@pytest.fixture(scope="module")
def split():
    rows = make_biased_classification(5000, disparity=0.25, random_state=0)
    return train_private_public_test_split(*rows, random_state=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_fairpate_is_searched_for_little_more_than_one_fit(split):
    model = FairPATEClassifier(epsilon=0.5, classes=[0, 1], gate=VoteGate(min_count=10), random_state=0)
    grid = {"n_teachers": [10, 20, 40], "gamma": [0.1, 0.2, 0.4], "voting": ["soft"]}
    checked = PublicData(split.public.X, split.public.sensitive_features, y=split.y_public)
    search = PrivateSearchCV(model, grid, bounds={"disparity": "<= 0.3"})
    search.fit(split.X, split.y, X_public=split.public, validation=checked)
    assert search.method_ == "selection" and 0.5 < search.privacy_.epsilon < 1.1
    assert search.best_params_["n_teachers"] in (10, 20, 40)
    assert search.predict_proba(split.X_test).shape == (len(split.X_test), 2)
    assert clone(search).get_params()["trial_distribution"] == "logarithmic"


@pytest.mark.slow
def test_dpsgd_selection_is_accounted_by_renyi_divergences(split):
    model = FairDPSGDClassifier(net=mlp((4,), max_epochs=1, batch_size=200), classes=[0, 1], lam=0.0)
    checked = PublicData(split.X_test, y=split.y_test)
    search = PrivateSearchCV(model, {"net__lr": [0.5, 1.0, 2.0, 4.0]}, method="selection", expected_trials=2.0)
    search.fit(split.X, split.y, validation=checked)
    base = model.planned_privacy(split.X, split.y).event
    assert flatten(search.privacy_.event) == flatten(RepeatAndSelectDpEvent(base, 2.0, 0.0))
    assert 1.0 < search.privacy_.epsilon < 3.0


def test_pure_guarantees_stay_pure(split):
    model = RandomizedResponseClassifier(groups=[0, 1], classes=[0, 1], epsilon=0.5)
    checked = PublicData(split.X_test, split.sensitive_features_test, y=split.y_test)
    search = PrivateSearchCV(model, {"debias": [True], "random_state": list(range(8))}, method="selection")
    search.fit(split.X, split.y, sensitive_features=split.sensitive_features, validation=checked)
    assert search.privacy_.delta == 0 and search.privacy_.epsilon == pytest.approx(1.0, rel=1e-6)  # (2 + η) ε
    with pytest.raises(ValueError, match="needs its 'delta' parameter"):
        clone(search).set_params(trial_distribution="poisson").fit(
            split.X, split.y, sensitive_features=split.sensitive_features, validation=checked
        )
