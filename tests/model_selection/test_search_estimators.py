"""ParetoSearchCV over the estimators of the package: what they share, in pipelines, with real splits."""

import contextlib
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skfairdp import (
    IDP3,
    FairDPSGDClassifier,
    FairPATEClassifier,
    ParetoSearchCV,
    PATEClassifier,
    PrivacyLeakWarning,
    PrivacyLedger,
    PublicData,
    PublicPreprocessor,
    RandomizedResponseClassifier,
    SyntheticDataClassifier,
)
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.ensemble import LogisticTeachers
from skfairdp.fairness import RateParity
from skfairdp.gradient import mlp
from skfairdp.pate import ConstrainedStudent, VoteGate
from skfairdp.privacy import GaussianDpEvent, compose, epsilon_of, flatten, gdp_mu, repeat
from tests._tools.searches import Toy, X, Y, Z, fitted, toy_search

SCORE_MU = gdp_mu(0.25, 1e-5)


@pytest.fixture(autouse=True)
def _forget_fits():
    Toy.made.clear()


@pytest.fixture(scope="module")
def split():
    rows = make_biased_classification(6000, disparity=0.25, random_state=0)
    return train_private_public_test_split(*rows, random_state=0)


def fit_on(search, split, **more):
    arguments = {"sensitive_features": split.sensitive_features, "X_public": split.public, **more}
    return search.fit(split.X, split.y, **arguments)


def fair(**params):
    return FairPATEClassifier(
        **{"n_teachers": 20, "classes": [0, 1], "random_state": 0, "gate": VoteGate(min_count=10), **params}
    )


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_free_parameters_share_one_release_per_fold(split):
    ledger = PrivacyLedger()
    grid = {"gamma": [0.2, 0.3, None], "voting__threshold": [0.6, 0.8], "epsilon": [1.0]}
    search = fit_on(ParetoSearchCV(fair(ledger=ledger), grid, cv=2, refit=False), split)
    assert len(ledger.entries) == 1 and "6 candidates" in ledger.entries[0].releases[0]
    one_fit = fair().planned_privacy(split.X, split.y, X_public=split.public).event
    expected = epsilon_of(compose(one_fit, repeat(GaussianDpEvent(1 / SCORE_MU), 6)), 1e-5)
    assert search.privacy_.epsilon == pytest.approx(expected, rel=1e-6)
    confident = fit_on(ParetoSearchCV(fair(voting="confident"), {"gamma": [0.2, 0.3]}, cv=2, refit=False), split)
    assert len(confident.cv_results_["params"]) == 2 and confident.privacy_.epsilon > 1.3  # two releases


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_teachers_are_trained_once_per_fold_across_voting_parameters(split, monkeypatch):
    trained = []
    real = LogisticTeachers._fit_parts
    monkeypatch.setattr(
        LogisticTeachers, "_fit_parts", lambda self, *args, **kw: (trained.append(1), real(self, *args, **kw))[1]
    )
    grid = {"voting": ["soft", "confident"], "epsilon": [1.0, 2.0], "gamma": [0.2, 0.4]}
    fit_on(ParetoSearchCV(fair(), grid, cv=3, refit=False), split)
    assert len(trained) == 3
    trained.clear()
    fit_on(ParetoSearchCV(fair(), {"n_teachers": [10, 20]}, cv=3, refit=False), split)
    assert len(trained) == 6


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_search_over_fairpate_finds_the_constrained_winner(split, n_jobs):
    search = ParetoSearchCV(
        fair(noise_seed=0), {"gamma": [0.1, None], "epsilon": [4.0]}, cv=2, score_epsilon=4.0, n_jobs=n_jobs,
        bounds={"disparity": "<= 0.15"},
    )  # fmt: skip
    fit_on(search, split)
    assert search.best_params_["gamma"] == 0.1
    winner = search.best_estimator_
    assert 4.0 < winner.privacy_.mechanism_epsilon == search.privacy_.mechanism_epsilon < search.privacy_.epsilon
    np.testing.assert_array_equal(search.predict(split.X_test), winner.predict(split.X_test))
    assert search.predict_proba(split.X_test).shape == (len(split.X_test), 2)
    assert search.score(split.X_test, split.y_test) > 0.6 and search.classes_.tolist() == [0, 1]
    assert winner.memory is None and b"_Teachers" not in pickle.dumps(winner)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_pareto_table_feeds_the_display(split):
    from skfairdp.inspection import ParetoFrontierDisplay

    validation = PublicData(split.public.X, split.public.sensitive_features, y=split.y_public)
    search = ParetoSearchCV(fair(), {"gamma": [0.1, 0.3, None], "epsilon": [1.0, 2.0]})
    table = fit_on(search, split, validation=validation).pareto_table_
    assert len(table) == 6 and table.attrs["epsilon_total"] == search.privacy_.epsilon
    assert table["epsilon"].max() <= 2.0 and set(table["protects"]) == {"record"}
    assert table["params"].str.startswith("FairPATEClassifier(").all()
    assert np.isnan(table["gamma"]).sum() == 2
    assert isinstance(ParetoFrontierDisplay(table).frame, pd.DataFrame)


@pytest.mark.parametrize("n_rows", [1, 5, 3000, 20_000])
def test_where_records_come_and_go_the_plan_does_not_tell_how_many_there_are(n_rows):
    """Cost and charges with folds drawn in secret, some of which may be empty, are those of any number of rows."""
    from tests._tools.inside import split_event

    fits, score = [GaussianDpEvent(4.0 + j) for j in range(3)], GaussianDpEvent(9.0)
    fold = np.random.default_rng(n_rows).integers(0, 3, n_rows)
    splits = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(3)]
    known = split_event([(np.r_[3:9], np.r_[0:3]), (np.r_[0:3, 6:9], np.r_[3:6]), (np.r_[0:6], np.r_[6:9])], fits,
                        score, 2, n_rows=9)  # fmt: skip
    assert epsilon_of(split_event(splits, fits, score, 2, n_rows=None), 1e-5) == epsilon_of(known, 1e-5)
    assert split_event(splits, fits, score, 2, n_rows=None) == split_event(splits[::-1], fits, score, 2, n_rows=None)
    holdout = split_event(splits[:1], fits[:1], score, 2, n_rows=None)
    assert epsilon_of(holdout, 1e-5) == epsilon_of(compose(fits[0]), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("declared", [False, True])
def test_dpsgd_is_searched_over_folds_of_its_relation(split, declared):
    """Folds by position where the number of rows is public, drawn in secret where it is declared."""
    n_rows = len(split.y) if declared else None
    model = FairDPSGDClassifier(
        net=mlp((4,), max_epochs=1, batch_size=200), classes=[0, 1], random_state=0, public_n_rows=n_rows
    )
    search = fit_on(ParetoSearchCV(model, {"lam": [0.0, 1.0]}, cv=2, n_jobs=None), split)
    relation = "add or remove one record" if declared else "replace one record by a null record"
    assert search.privacy_.neighboring_relation == relation
    half = len(split.y) // 2

    def event(lam, X, y, n_rows):  # without a penalty there are no public rows that would say how wide columns are
        one = clone(model).set_params(lam=lam, public_n_rows=n_rows)
        return one.planned_privacy(X, y, X_public=split.public).event

    best = event(search.best_params_["lam"], split.X, split.y, n_rows)
    fits = [event(lam, split.X[:half], split.y[:half], (declared and round(n_rows / 2)) or None) for lam in (0.0, 1.0)]
    both = compose(*fits, best, repeat(GaussianDpEvent(1 / SCORE_MU), 2))
    assert search.privacy_.epsilon == pytest.approx(epsilon_of(both, 1e-5), rel=1e-3)


@pytest.mark.slow
def test_randomised_response_needs_a_delta_for_noisy_scores(split):
    model = RandomizedResponseClassifier(groups=[0, 1])
    search = ParetoSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=StratifiedKFold(2))
    with pytest.raises(ValueError, match="needs its 'delta' parameter"):
        search.fit(split.X, split.y, sensitive_features=split.sensitive_features)
    search.set_params(delta=1e-5).fit(split.X, split.y, sensitive_features=split.sensitive_features)
    assert search.privacy_.protects == "sensitive attribute" and search.privacy_.epsilon < 3.5


@pytest.mark.slow
def test_idp3_in_the_search_answers_only_part_of_public_rows_and_coverage_is_measured(split):
    private = PATEClassifier(epsilon=50.0, n_teachers=20, classes=[0, 1], random_state=0)
    model = IDP3(private, groups=[0, 1])
    checked = PublicData(split.X_test, split.sensitive_features_test, y=split.y_test)
    search = ParetoSearchCV(model, {"gamma": [0.05, 0.9]}, scoring=["accuracy", "coverage"])
    search = search.fit(split.X, split.y, sensitive_features=split.sensitive_features, validation=checked)
    coverage = search.cv_results_["mean_test_coverage"]
    assert coverage[0] < coverage[1] <= 1.0


def test_who_cannot_refuse_has_full_coverage_whatever_the_noise():
    results = fitted(scoring=["accuracy", "coverage"], score_epsilon=0.05).cv_results_
    assert results["mean_test_coverage"].tolist() == [1.0] * 3


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("given", [True, False])
def test_what_a_winner_holds_charges_its_ledger_where_it_is_fitted_again(split, given):
    """Found: it stayed on no ledger, for which the search had paid, and so did a clone of it."""
    ledger = PrivacyLedger()
    own = SyntheticDataClassifier(epsilon=1.0, classes=[0, 1], groups=[0, 1], ledger=ledger if given else None)
    checked = PublicData(split.public.X, split.public.sensitive_features, y=split.y_public)
    with contextlib.nullcontext() if given else ledger:
        search = ParetoSearchCV(IDP3(own, gamma=0.1, groups=[0, 1]), {"estimator__n_samples": [500]})
        search.fit(split.X, split.y, sensitive_features=split.sensitive_features, validation=checked)
        winner, before = search.best_estimator_.estimator_, len(ledger.entries)
        for part in (winner, winner.generator_):
            clone(part).fit(split.X, split.y, sensitive_features=split.sensitive_features)
    assert before == 1 and len(ledger.entries) == 3


def test_steps_fitted_on_private_rows_are_announced(split):
    grid = {"toy__cut": [0.0]}
    with pytest.warns(PrivacyLeakWarning, match="step 'standardscaler'"):
        fitted(make_pipeline(StandardScaler(), Toy()), grid, scoring="accuracy")
    public = PublicPreprocessor(StandardScaler(), PublicData(X))
    fitted(make_pipeline(Normalizer(), public, Toy()), grid, scoring="accuracy")  # warnings are errors here


@pytest.mark.few(1)
@pytest.mark.parametrize("route", [False, True])
def test_pipelines_are_searched_with_and_without_routing(split, route):
    model = make_pipeline(PublicPreprocessor(StandardScaler(), PublicData(split.public.X)), fair(gamma=None))
    with sklearn.config_context(enable_metadata_routing=route):
        search = ParetoSearchCV(model, {"fairpateclassifier__epsilon": [1.0, 2.0]}, cv=2)
        fit_on(search, split)
    assert search.best_params_["fairpateclassifier__epsilon"] in (1.0, 2.0)
    assert search.privacy_.epsilon < 6


def test_a_search_inside_a_pipeline_gets_its_groups_by_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(Normalizer(), toy_search())
        model.fit(X, Y, sensitive_features=Z)
        assert model.score(X, Y, sensitive_features=Z) == 1.0
    assert np.isfinite(model[-1].cv_results_["mean_test_disparity"]).all()


def test_estimators_without_privacy_or_with_two_are_refused():
    with pytest.raises(ValueError, match="exactly one private estimator"):
        fitted(LogisticRegression(), {"C": [1.0]})
    with pytest.raises(ValueError, match="exactly one private estimator"):
        fitted(make_pipeline(Toy(), Toy()), {"toy-1__cut": [1.0]})


def test_search_is_cloned_and_pickled_without_private_rows(split):
    search = toy_search()
    assert clone(search).get_params()["score_epsilon"] == 0.25
    marked = split.X.copy()
    marked[:, 0] = 123456.789
    again = pickle.loads(pickle.dumps(toy_search(scoring="accuracy").fit(marked, split.y)))
    assert np.float64(123456.789).tobytes() not in pickle.dumps(again)
    assert again.predict(split.X_test).shape == (len(split.X_test),)


def test_data_frames_intersections_and_string_labels():
    frame = pd.DataFrame(X, columns=["income", "age"])
    groups = pd.DataFrame({"sex": np.where(Z, "f", "m"), "old": X[:, 1] > 1})
    labels = np.where(Y, "yes", "no")
    domain = [("f", True), ("f", False), ("m", False)]
    model = Toy(classes=("no", "yes"), groups=domain)

    class Named(Toy):
        def predict(self, X):
            return self.classes_[(X["income"].to_numpy() > self.cut).astype(int)]

    model = Named(**model.get_params())
    search = toy_search(model, score_epsilon=2.0).fit(frame, labels, sensitive_features=groups)
    assert search.best_params_ == {"cut": 0.0} and search.classes_.tolist() == ["no", "yes"]
    assert search.best_score_ == pytest.approx(1.0, abs=0.05)
    assert np.isfinite(search.cv_results_["mean_test_disparity"]).all()
    with pytest.raises(ValueError, match="not in '"):
        toy_search(Named(**{**model.get_params(), "groups": domain[:2]})).fit(frame, labels, sensitive_features=groups)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize("gives_public", [False, True])
def test_a_winner_whose_own_fit_would_release_something_else_is_fitted_as_it_was_scored(gives_public):
    """A student under constraints looks at other tables of private rows than the built-in one."""
    X, y, groups = make_biased_classification(2500, n_features=4, disparity=0.5, random_state=0)
    search = ParetoSearchCV(
        FairPATEClassifier(epsilon=8.0, classes=[0, 1], groups=[0, 1], gamma=None, random_state=0),
        {"student": [ConstrainedStudent(RateParity("selection_rate", 0.0)), None]},
        refit="accuracy", random_state=0,
    )  # fmt: skip
    public = {"X_public": PublicData(X[:300], groups[:300])} if gives_public else {}
    search.fit(X[300:], y[300:], sensitive_features=groups[300:], **public)
    assert search.best_params_ == {"student": None} and search.best_estimator_.student is None


def test_what_a_search_releases_does_not_follow_the_order_of_its_candidates():
    """With a bound there is a look at private rows, which one fit for all has in either order."""
    X, y, groups = make_biased_classification(4500, n_features=4, disparity=0.3, random_state=0)
    model = FairPATEClassifier(epsilon=2.0, classes=[0, 1], groups=[0, 1], random_state=0)
    given = {"sensitive_features": groups[300:], "X_public": PublicData(X[:300], groups[:300])}
    alone = model.set_params(gamma=0.05).planned_privacy(X[300:], y[300:], **given)
    on_public = PublicData(X[:300], groups[:300], y[:300])
    for grid in ([None, 0.05], [0.05, None]):
        search = ParetoSearchCV(model, {"gamma": grid}, random_state=0)
        planned = search.planned_privacy(X[300:], y[300:], validation=on_public, **given)
        assert flatten(planned.event) == flatten(alone.event)
