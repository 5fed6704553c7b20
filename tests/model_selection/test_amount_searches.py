"""Searches and frontiers of predicted amounts: what is released of private rows, what it costs, and what is refused."""

import inspect
import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp import (
    FairDPSGDClassifier,
    FairDPSGDRegressor,
    ParetoSearchCV,
    PrivacyLedger,
    PrivateSearchCV,
    PublicData,
    SyntheticDataRegressor,
)
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient import mlp
from skfairdp.inspection import ParetoFrontierDisplay
from skfairdp.metrics import ks_disparity
from skfairdp.model_selection import frontier_of_table
from skfairdp.privacy import NeighboringRelation, Spending, verify_file
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import AmountTable, ReleasedAmounts, frontier_page
from tests._tools.sources import ZeroNoise, recording_noise

RNG = np.random.default_rng(0)
N = 3000
GROUPS = RNG.choice(["f", "m"], N)
X = RNG.normal(size=(N, 3)) + (GROUPS == "m")[:, None] * [1.0, 0.0, 0.0]
Y = 20 + X @ [3.0, 2.0, 0.0] + RNG.normal(size=N)
ROWS = {"sensitive_features": GROUPS}


def network(**given):
    return FairDPSGDRegressor(**{"epsilon": 2.0, "bounds": (0, 60), "groups": ["f", "m"], "random_state": 0, **given})


LOSSES = {"loss": ["squared", "absolute"]}


@pytest.mark.parametrize("relation", [NeighboringRelation.REPLACE_ONE, NeighboringRelation.ADD_OR_REMOVE_ONE])
def test_no_neighbour_moves_the_sums_by_more_than_their_sensitivity(relation):
    rng = np.random.default_rng(1)
    table = AmountTable(np.array(["a", "b", "c"]), 1.0, 1e-5, relation)
    farthest = 0.0
    for _ in range(2000):
        n = int(rng.integers(2, 30))
        amounts, codes = rng.normal(0, rng.choice([0.1, 10.0]), n), rng.integers(3, size=n)
        predicted = np.where(rng.random(n) < 0.2, np.nan, rng.normal(0, rng.choice([0.1, 10.0]), n))
        years = rng.choice([np.ones(n), rng.lognormal(0, 2, n)])
        here = table.sums(amounts, predicted, codes, (0.0, 1.0), years)
        if relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
            there = table.sums(amounts[:-1], predicted[:-1], codes[:-1], (0.0, 1.0), years[:-1])
        else:
            amounts[-1], predicted[-1], codes[-1], years[-1] = (
                rng.choice([-9.0, 0.0, 9.0]),
                rng.choice([-9.0, 0.0]),
                rng.integers(3),
                rng.choice([1.0, 1e-6, 1e6]),
            )
            there = table.sums(amounts, predicted, codes, (0.0, 1.0), years)
        farthest = max(farthest, float(np.linalg.norm(here - there)))
    assert 0.95 * table.mechanism.sensitivity < farthest <= table.mechanism.sensitivity * (1 + 1e-12)


def test_scores_without_noise_are_those_of_the_rows():
    """But for errors and squares that count as 2.5 spreads where they are more."""
    table = AmountTable(np.array(["f", "m"]), 1e4, 1e-5, NeighboringRelation.REPLACE_ONE)
    predicted = 20.5 + X @ [3.0, 1.0, 0.0]
    sums = table.sums(Y, predicted, (GROUPS == "m").astype(np.int64), (float(Y.mean()), float(Y.std())))
    released = table.release(sums, ZeroNoise(), N)
    assert released.r2 == pytest.approx(r2_score(Y, predicted), abs=0.02)
    assert released.gaps[0] == pytest.approx(ks_disparity(None, predicted, sensitive_features=GROUPS), abs=0.03)


def test_errors_of_counts_are_those_of_the_expected_count_and_groups_compare_rates():
    table = AmountTable(np.array(["f", "m"]), 1e4, 1e-5, NeighboringRelation.REPLACE_ONE)
    years, rates = RNG.uniform(0.1, 2.0, N), np.exp(0.4 * X[:, 0])
    counts, codes = RNG.poisson(years * rates).astype(float), (GROUPS == "m").astype(np.int64)
    spread = 0.0, 8.0
    released = table.release(table.sums(counts, rates, codes, spread, years), ZeroNoise(), N)
    assert released.r2 == pytest.approx(r2_score(counts, rates * years), abs=0.02)
    assert released.gaps[0] == pytest.approx(ks_disparity(None, rates, sensitive_features=GROUPS), abs=0.05)
    without = table.release(table.sums(counts, rates, codes, spread), ZeroNoise(), N)
    assert without.r2 < released.r2 - 0.1 and without.gaps == released.gaps


@pytest.mark.parametrize("kind", [ParetoSearchCV, PrivateSearchCV])
def test_folds_cut_exposures_as_rows_and_scores_compare_by_them(kind, monkeypatch):
    years = np.exp(0.8 * X[:, 1])
    counts, seen, honest = RNG.poisson(years * np.exp(0.5 * X[:, 0])), [], FairDPSGDRegressor.fit

    def fit(self, rows, y=None, *, exposure=None, **given):
        seen.append((len(rows), np.allclose(exposure, np.exp(0.8 * rows[:, 1]))))
        return honest(self, rows, y, exposure=exposure, **given)

    fit.__signature__ = inspect.signature(honest)
    monkeypatch.setattr(FairDPSGDRegressor, "fit", fit)
    model = network(loss="poisson", bounds=(0, 60), epsilon=8.0)
    search = kind(model, {"max_grad_norm": [1.0, 2.0]}, score_epsilon=500.0, random_state=0)
    with recording_noise(entropy=0):  # of two trials one may be far off by chance
        search = search.fit(X, counts, exposure=years, **ROWS)
    assert all(alike for _, alike in seen) and min(n for n, _ in seen) < N
    winner = search.best_estimator_
    exact = winner.score(X, counts, exposure=years)
    assert search.score(X, counts, exposure=years) == exact > winner.score(X, counts) + 0.05
    told = search.best_score_ if kind is PrivateSearchCV else search.cv_results_["mean_test_r2"].max()
    assert told == pytest.approx(exact, abs=0.12)


def test_scores_of_counts_are_known_however_wide_the_bounds():
    """Spreads of counts were half of the bounds, and noise hid squares beside those: every score was NaN."""
    counts = np.random.default_rng(1).poisson(2 * np.exp(0.5 * X[:, 0])).astype(float)
    model, grid = network(loss="poisson", bounds=(0, 1000)), {"max_grad_norm": [2.0, 4.0]}
    search = PrivateSearchCV(model, grid, score_epsilon=1.0, random_state=0).fit(X, counts)
    assert search.best_score_ == pytest.approx(search.best_estimator_.score(X, counts), abs=0.25)


@pytest.mark.parametrize("bounds", [None, {"disparity": "<= 0.05"}])
def test_what_has_no_score_is_never_the_best_while_another_has_one(bounds, monkeypatch):
    """One that met the bounds was ahead of all that missed them, though nobody knew its R²."""
    scores, gaps = iter([1.0, math.nan, 0.3, math.nan]), iter([0.0, 0.0, 0.2, 0.0])  # the first are rehearsed
    monkeypatch.setattr(ReleasedAmounts, "r2", property(lambda self: next(scores)))
    monkeypatch.setattr(ReleasedAmounts, "gaps", property(lambda self: (next(gaps), 1.0)))
    grid = {"max_grad_norm": [0.5, 1.0, 2.0]}
    search = PrivateSearchCV(network(net=mlp((2,), max_epochs=1)), grid, bounds=bounds, random_state=0).fit(
        X, Y, **ROWS
    )
    assert search.best_score_ == 0.3 and search.best_params_ == {"max_grad_norm": 1.0}


def test_where_no_score_is_known_the_user_hears_why(monkeypatch):
    model = network(net=mlp((2,), max_epochs=1), noise_multiplier=100.0, bounds=(-1e6, 1e6))
    with pytest.warns(UtilityWarning, match=r"has no score.*2 candidates.*noise hides.*score_epsilon.*'bounds'"):
        search = PrivateSearchCV(model, {"max_grad_norm": [1.0, 2.0]}, random_state=0).fit(X, Y)
    assert math.isnan(search.best_score_)


@pytest.mark.parametrize(
    ("model", "given", "says"),
    [
        (SyntheticDataRegressor(bounds_y=(0, 60), bounds=(-6.0, 6.0), dtypes=float), {}, "takes none"),
        (network(loss="poisson"), {"validation": PublicData(X[:50], GROUPS[:50], Y[:50])}, "public rows"),
        (network(loss="poisson"), {"exposure": np.ones(N - 1)}, "exposure"),
        (network(loss="poisson"), {"exposure": np.zeros(N)}, "not above 0"),
        (network(), {}, "loss='poisson'"),
    ],
)
def test_an_exposure_that_cannot_be_is_refused_before_anything_is_spent(model, given, says):
    ledger = PrivacyLedger()
    search = ParetoSearchCV(model.set_params(ledger=ledger), {"epsilon": [1.0]}, scoring=("epsilon", "r2"))
    with pytest.raises((ValueError, TypeError), match=says):
        search.fit(X, Y, **{"exposure": np.ones(N), **given})
    assert ledger.entries == ()


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_winner_is_asked_with_groups_and_exposures(wrapped):
    years = np.exp(0.8 * X[:, 1])
    counts = np.random.default_rng(1).poisson(years * np.exp(0.5 * X[:, 0]))
    model, step = network(loss="poisson", constraints="demographic_parity", net=mlp((4,), max_epochs=2)), ""
    if wrapped:
        model, step = make_pipeline(FunctionTransformer(), model), "fairdpsgdregressor__"
    search = PrivateSearchCV(model, {f"{step}max_grad_norm": [4.0]}, score_epsilon=9.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, counts, exposure=years, **ROWS)
    inner = search.best_estimator_[-1] if wrapped else search.best_estimator_
    np.testing.assert_array_equal(
        search.predict(X, exposure=years, **ROWS), inner.predict(X, exposure=years, sensitive_features=GROUPS)
    )
    exact = inner.score(X, counts, exposure=years, sensitive_features=GROUPS)
    assert search.score(X, counts, exposure=years, **ROWS) == exact
    with pytest.raises(ValueError, match="sensitive_features"):
        search.predict(X)


def test_groups_are_left_out_where_the_winner_takes_none():
    model = FairDPSGDClassifier(classes=[0, 1], net=mlp((4,), max_epochs=1), epsilon=4.0, lam=0, random_state=0)
    search = PrivateSearchCV(model, {}, score_epsilon=4.0).fit(X, (Y > 20).astype(int))
    np.testing.assert_array_equal(search.predict(X, **ROWS), search.predict(X))
    with pytest.raises(TypeError, match="exposure"):
        search.predict(X, exposure=np.ones(N))


def test_a_row_without_a_prediction_is_as_wrong_as_any():
    table = AmountTable(np.array(["f"]), 1e4, 1e-5, NeighboringRelation.REPLACE_ONE)
    sums = table.sums(Y, np.full(N, np.nan), np.zeros(N, dtype=np.int64), (0.0, 1.0))
    assert sums[0] == N and sums[3:].sum() == pytest.approx(math.sqrt(0.5) * N)


def test_squares_behind_their_noise_tell_no_r2():
    released = ReleasedAmounts(3.0, 5.0, 0.0, np.ones((1, 8)), 2.0, 100)
    assert math.isnan(released.r2) and math.isnan(released.error)


def test_r2_is_that_around_the_mean_wherever_the_middle_was_found():
    """Around a middle that is far off, errors are small beside squares: that is not what R² says."""
    rng = np.random.default_rng(0)
    amounts, table = rng.normal(1000, 100, N), AmountTable(np.array(["f"]), 1e4, 1e-5, NeighboringRelation.REPLACE_ONE)
    for predicted, truth in ((np.full(N, 1300.0), -9.0), (amounts + 50 * rng.normal(size=N), 0.75)):
        sums = table.sums(amounts, predicted, np.zeros(N, dtype=np.int64), (2000.0, 1000.0))
        assert table.release(sums, ZeroNoise(), N).r2 == pytest.approx(truth, abs=0.6 if truth < 0 else 0.03)
    noisy = AmountTable(np.array(["f"]), 1.0, 1e-5, NeighboringRelation.REPLACE_ONE)
    sums = noisy.sums(amounts, predicted, np.zeros(N, dtype=np.int64), (25_000.0, 25_000.0))
    with recording_noise(1), open_spending(noisy) as noise:
        assert math.isnan(noisy.release(sums, noise, N).r2)  # the noise hides how amounts differ


def test_groups_whose_predictions_are_in_one_cell_have_no_known_distance():
    table = AmountTable(np.array(["f", "m"]), 1e4, 1e-5, NeighboringRelation.REPLACE_ONE)
    sums = table.sums(Y, 20 + 0.001 * Y, (GROUPS == "m").astype(np.int64), (5000.0, 5000.0))
    assert math.isnan(table.release(sums, ZeroNoise(), N).gaps[0])


def open_spending(table):
    return Spending(table.event, 1e-5, table.relation, label="x", ledger=None, noise_seed=None)


def test_a_search_on_private_folds_shows_r2_and_the_distance_of_groups():
    search = ParetoSearchCV(network(), LOSSES, cv=2, score_epsilon=6.0)
    assert search.scoring is None
    search.fit(X, Y, **ROWS)
    table = search.pareto_table_
    assert "accuracy" not in table and table["r2"].between(0.85, 1.0).all()
    assert table["disparity"].between(0.2, 0.5).all() and (table["coverage"] == 1.0).all()
    assert table.attrs["references"][0]["name"] == "constant prediction"
    assert table["epsilon"].between(1.9, 2.0).all()
    assert search.best_estimator_.score(X, Y) == pytest.approx(search.score(X, Y))
    assert ParetoFrontierDisplay.from_search(search).ax_.get_ylabel() == "R² of predictions"


def test_the_whole_search_costs_its_total():
    ledger = PrivacyLedger(epsilon=3.0)
    search = PrivateSearchCV(network(ledger=ledger), LOSSES, total_epsilon=3.0, bounds={"disparity": "<= 0.9"})
    search.fit(X, Y, **ROWS)
    assert 2.99 < search.privacy_.epsilon <= 3.0 and ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon)
    assert search.best_params_["loss"] in LOSSES["loss"]


@pytest.mark.parametrize("model", [network(), FairDPSGDClassifier(classes=[0, 1], random_state=0)], ids=["r", "c"])
def test_the_statement_of_a_choice_among_several_candidates_can_be_verified(model, tmp_path):
    """That of one among four was refused as too large."""
    labels = Y if "bounds" in model.get_params() else (Y > 20).astype(int)
    grid = {"net__max_epochs": [2, 4], "net__batch_size": [128, 256]}
    search = PrivateSearchCV(model.set_params(net=mlp((8,))), grid, method="selection")
    planned = search.planned_privacy(X, labels, **ROWS)
    (tmp_path / "privacy.json").write_text(planned.statement(subject="a search").to_json(), encoding="utf-8")
    assert all(check.holds for check in verify_file(tmp_path / "privacy.json"))


def test_on_public_rows_any_scorer_counts_as_it_is():
    held = slice(0, 1000)
    names = ["r2", "neg_mean_absolute_error", "wasserstein_disparity", "ks_disparity"]
    search = ParetoSearchCV(network(), LOSSES, scoring=names, refit="neg_mean_absolute_error")
    search.fit(
        X[1000:], Y[1000:], sensitive_features=GROUPS[1000:], validation=PublicData(X[held], GROUPS[held], Y[held])
    )
    said = search.best_estimator_.predict(X[held])
    row = search.pareto_table_.iloc[search.best_index_]
    assert row["r2"] == pytest.approx(r2_score(Y[held], said))
    assert row["neg_mean_absolute_error"] == pytest.approx(-mean_absolute_error(Y[held], said))
    assert (
        row["ks_disparity"]
        == row["disparity"]
        == pytest.approx(ks_disparity(None, said, sensitive_features=GROUPS[held]))
    )
    assert search.privacy_.epsilon < 4.0  # no scores are paid for


@pytest.mark.parametrize(
    ("scoring", "says"),
    [
        ("accuracy", "does not judge predicted amounts"),
        ("demographic_disparity", "does not judge predicted amounts"),
        ("neg_mean_absolute_error", "needs predictions as they are"),
        ("wasserstein_disparity", "needs predictions as they are"),
    ],
)
def test_what_private_folds_do_not_tell_is_refused_before_anything_is_paid(scoring, says):
    ledger = PrivacyLedger()
    for kind in (ParetoSearchCV, PrivateSearchCV):
        with pytest.raises(ValueError, match=says):
            kind(network(ledger=ledger), LOSSES, scoring=scoring).fit(X, Y, **ROWS)
    assert ledger.entries == ()


def test_gaps_of_amounts_are_not_those_of_classes():
    with pytest.raises(ValueError, match="does not judge predicted classes"):
        ParetoSearchCV(FairDPSGDClassifier(classes=[0, 1]), {}, scoring="ks_disparity").fit(X, (Y > 20).astype(int))


def test_learners_on_synthetic_rows_are_searched_at_one_price():
    model = SyntheticDataRegressor(
        LinearRegression(), epsilon=2.0, bounds_y=(0, 60), bounds=(-6.0, 6.0), dtypes=float, random_state=0
    )
    grid = {"estimator__fit_intercept": [True, False]}
    search = ParetoSearchCV(model, grid, scoring=["r2", "epsilon"], cv=2, score_epsilon=6.0).fit(X, Y)
    assert search.best_params_ == {"estimator__fit_intercept": True}


def test_folds_by_subject_score_one_row_of_each():
    ids = np.repeat(np.arange(N // 3), 3)
    with recording_noise(entropy=0) as record:
        search = ParetoSearchCV(network(), {}, cv=2, score_epsilon=6.0).fit(X, Y, **ROWS, subject=ids)
    assert search.privacy_.neighboring_relation.of_subjects
    sums = [one for one in record.releases if np.ndim(one.private[0]) == 1 and len(one.private[0]) > 16]
    counted = [float(np.asarray(one.private[0])[3:].sum()) / math.sqrt(0.5) for one in sums]
    assert counted == pytest.approx([N / 6] * 2)


# ---------------------------------------------------------------------- a table of one's own

COLUMNS = {"a": Number(-5, 6), "b": Number(-5, 5), "pay": Number(0, 60), "sex": Category(["f", "m"])}
SCHEMA = Schema(COLUMNS, label="pay", groups="sex")
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "pay": Y, "sex": GROUPS})
pytestmark = pytest.mark.filterwarnings("ignore:.*not compared with a table")


def swept(**given):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*predicts for every row|.*hardly better|.*did not reach")
        return frontier_of_table(TABLE, label="pay", groups="sex", **{"schema": SCHEMA, "epsilons": [4.0], **given})


def test_a_frontier_of_amounts_has_regressors_and_a_barycenter_within_its_epsilon(tmp_path):
    ledger = PrivacyLedger()
    found = swept(ledger=ledger)
    frame = found.frame.set_index("estimator")
    assert set(frame.index) == {"SyntheticDataRegressor", "FairDPSGDRegressor", "PrivateBarycenter"}
    assert (frame["epsilon"] <= 4.0).all() and frame["epsilon"].min() > 3.9
    assert frame["r2"]["FairDPSGDRegressor"] > 0.7 and frame["r2_error"].between(0.001, 0.6).all()
    assert frame["disparity"]["PrivateBarycenter"] < frame["disparity"]["FairDPSGDRegressor"]
    assert ledger.epsilon_spent == pytest.approx(found.privacy.epsilon)
    (tmp_path / "privacy.json").write_text(found.privacy.statement(subject="a frontier").to_json(), encoding="utf-8")
    assert all(check.holds for check in verify_file(tmp_path / "privacy.json"))


YEARS = np.exp(0.8 * np.random.default_rng(3).normal(size=N)).round(6)  # which no feature tells
COUNTS = TABLE.assign(n=np.random.default_rng(2).poisson(YEARS * np.exp(0.5 * X[:, 0])), years=YEARS.astype(str))
COUNTS = COUNTS.drop(columns="pay")
OF_COUNTS = {**{name: column for name, column in COLUMNS.items() if name != "pay"}, "n": Number(0, 10)}
WITH_YEARS = Schema({**OF_COUNTS, "years": Number(0.01, 30)}, label="n", groups="sex")


def swept_counts(table=COUNTS, **given):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*predicts for every row|.*hardly better|.*did not reach")
        asked = {"schema": Schema(OF_COUNTS, label="n", groups="sex"), "epsilons": [20.0], "exposure": "years", **given}
        return frontier_of_table(table, label="n", groups="sex", **asked)


@pytest.mark.parametrize("schema", [WITH_YEARS, {"n": Number(0, 10)}], ids=["a feature before", "to be found"])
def test_a_frontier_of_counts_compares_with_the_rate_times_the_exposure(schema):
    found = swept_counts(schema=schema)
    frame = found.frame.set_index("estimator")
    assert set(frame.index) == {"FairDPSGDRegressor", "PrivateBarycenter"} and "years" not in found.schema.columns
    ones = swept_counts(COUNTS.assign(years=1.0), methods=["dpsgd"]).frame["r2"][0]
    assert frame["r2"]["FairDPSGDRegressor"] > ones + 0.2
    assert "exposure=table['years']" in frame["params"]["PrivateBarycenter"]
    for point in points_on_the_page(found.frame):
        code = point["code"].replace('Schema.load("schema.yaml")', "schema")
        assert code.count("exposure=table['years']") == 1 and "loss='poisson'" in code
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, {"schema": found.schema, "table": COUNTS.assign(years=YEARS), "new_table": COUNTS})


def points_on_the_page(frame):
    page = re.search(r'id="data">(.*?)</script>', frontier_page(frame), re.S)
    return json.loads(page[1])["panels"][0]["points"]


def test_neighbours_that_differ_in_an_exposure_spend_alike_and_one_of_zero_is_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    other = COUNTS.assign(years=["1e9", *COUNTS["years"][1:]])
    one, two = (swept_counts(table, methods=["dpsgd"]) for table in (COUNTS, other))
    assert one.privacy.event == two.privacy.event
    for wrong, says in (
        ({"exposure": "n"}, "neither label, group nor subject"),
        ({"exposure": "months"}, "neither label, group nor subject"),
        ({"methods": ["synthetic"]}, "a count with exposure"),
        ({"schema": Schema({**OF_COUNTS, "n": Number(-1, 10)}, label="n", groups="sex")}, "bounds from 0 on"),
        ({"table": COUNTS.assign(years="0")}, "not above 0"),
        ({"table": COUNTS.assign(years="long")}, "years|exposure"),
    ):
        with pytest.raises(ValueError, match=says):
            swept_counts(ledger=ledger, **wrong)
    assert ledger.entries == ()


def test_what_a_frontier_of_amounts_announces_it_spends():
    said, ledger = [], PrivacyLedger()
    found = swept(announce=said.append, ledger=ledger, methods=["barycenter"])
    assert said == [pytest.approx(found.privacy.epsilon, rel=1e-3)]


def test_bounds_of_the_label_suffice_and_the_rest_of_the_schema_is_found():
    found = swept(schema={"pay": Number(0, 60)}, methods=["dpsgd"])
    assert found.schema.amounts == Number(0, 60) and found.schema.group_values == ("f", "m")
    assert found.privacy.epsilon <= 4.0 and 3.9 < found.frame["epsilon"][0] <= 4.0  # one model, which is measured


@pytest.mark.parametrize(("schema", "method"), [(SCHEMA, "fair_pate"), (None, "barycenter")])
def test_a_method_that_does_not_predict_such_a_label_is_refused(schema, method):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"where the label is a(n amount| class)"):
        swept(schema=schema, methods=[method], ledger=ledger)
    assert ledger.entries == ()


def test_a_label_of_amounts_without_bounds_and_groups_that_are_numbers_are_refused():
    with pytest.raises(ValueError, match="a label of amounts is a Number with bounds"):
        swept(schema={"pay": "number"})
    with pytest.raises(ValueError, match="a label of amounts is a Number with bounds"):
        swept(schema={"pay": Number(0, 60), "sex": Number(0, 1)})


def test_the_page_of_a_frontier_of_amounts_speaks_of_r2(tmp_path):
    found = swept(methods=["dpsgd"])
    page = ParetoFrontierDisplay(found.frame).to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"amounts": true' in page and "Kolmogorov" in page and "Accuracy, gap" not in page


def test_a_search_does_not_score_what_changes_the_unit_around_the_private_estimator():
    from sklearn.compose import TransformedTargetRegressor

    ledger = PrivacyLedger()
    of_logs = TransformedTargetRegressor(network(bounds=(0, 5), ledger=ledger), func=np.log1p, inverse_func=np.expm1)
    search = ParetoSearchCV(of_logs, {"regressor__loss": ["squared", "absolute"]}, scoring=["r2", "epsilon"], cv=2)
    with pytest.raises(ValueError, match="TransformedTargetRegressor may change their unit"):
        search.fit(X, Y)
    assert ledger.entries == ()
    public = PublicData(X[:1000], None, Y[:1000])
    found = search.fit(X[1000:], Y[1000:], validation=public)
    said = found.best_estimator_.predict(X[:1000])
    assert found.best_score_ == pytest.approx(r2_score(Y[:1000], said))


def test_a_learner_that_lost_against_the_constant_does_not_bind_the_next_one():
    from sklearn.linear_model import Ridge

    from skfairdp.exceptions import UtilityWarning

    model = SyntheticDataRegressor(
        Ridge(1e12), epsilon=3.0, bounds_y=(0, 60), bounds=(-6.0, 6.0), dtypes=float, random_state=0
    )
    with pytest.warns(UtilityWarning, match="the constant"):
        model.fit(X, Y)
    with pytest.warns(UtilityWarning, match="This one was not compared"):
        other = model.refit(Ridge(1.0))
    assert other.score(X, Y) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.3, 0.0), (1.0, 1.5), (-0.5, 0.0)])
def test_r2_lies_within_the_error_that_is_stated(slope, offset):
    """In 95 of 100 draws of rows and noise, or more, of models that are good and bad."""
    table, inside, rng = AmountTable(np.array(["f"]), 2.0, 1e-5, NeighboringRelation.REPLACE_ONE), [], None
    rng, spread = np.random.default_rng(3), (0.4, 1.22)
    far = rng.normal(size=200_000)
    truth = 1.0
    for seed in range(301):
        x = far if seed == 0 else rng.normal(size=1500)
        y, predicted = x + 0.7 * rng.normal(size=len(x)), slope * x + offset
        sums = table.sums(y, predicted, np.zeros(len(x), dtype=np.int64), spread)
        if seed == 0:
            truth = table.release(sums, ZeroNoise(), len(x)).r2
            continue
        with recording_noise(rng), open_spending(table) as noise:
            released = table.release(sums, noise, len(x))
        inside.append(abs(released.r2 - truth) <= released.error)
    assert np.mean(inside) >= 0.95
