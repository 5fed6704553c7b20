"""A model to read: terms add up to the decision exactly, and go in one direction where they are told to."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from skfairdp import FairDPSGDClassifier, PFLDClassifier
from skfairdp.exceptions import FairnessWarning, UtilityWarning
from skfairdp.gradient import mlp
from skfairdp.inspection import AdditiveTerms
from skfairdp.schema import Boolean, Category, Date, Number, Schema
from tests._tools.sources import recording_noise

QUICK = mlp((), max_epochs=2, batch_size=300)
DAYS = pd.date_range("2020-01-01", "2021-06-30")
ODD = [None, float("nan"), "no such value", 1e12, -1e12, True, 7]


def schema(n_classes=2):
    columns = {
        "amount": Number(0, 1000),
        "years": Number(0, 50, step=1, missing=True),
        "day": Date("2020-01-01", "2021-06-30"),
        "kind": Category(["a", "b", "c"]),
        "vip": Boolean(),
        "rank": Category(["x", "y"], missing=True),
        "group": Category(["f", "m"]),
        "label": Category(list(range(n_classes))),
    }
    return Schema(columns, label="label", groups="group")


def table(n, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "amount": rng.lognormal(1, 1, n),
            "years": rng.uniform(0, 40, n).round(),
            "day": rng.choice(DAYS, n),
            "kind": rng.choice(["a", "b", "c"], n),
            "vip": rng.random(n) < 0.3,
            "rank": rng.choice(["x", "y", None], n),
            "group": rng.choice(["f", "m"], n),
        }
    )
    score = np.log(found["amount"]) - 0.05 * found["years"] + found["vip"] + rng.normal(size=n)
    found["label"] = np.digitize(score, np.linspace(-0.5, 1.5, n_classes + 1)[1:-1])
    found.loc[rng.random(n) < 0.1, "years"] = np.nan
    return found


def fitted(n=1500, n_classes=2, epsilon=3.0, net=QUICK, **options):
    model = FairDPSGDClassifier(
        epsilon=epsilon, net=net, schema=schema(n_classes), random_state=0, **{"lam": 0, **options}
    )
    with recording_noise(entropy=5), warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        return model.fit(table(n, n_classes))


#: With knots, without (too few rows for tables of columns), of three classes, and one class for everybody.
MODELS = {
    "knots": {},
    "lines": {"n": 200, "epsilon": 2.0},
    "three classes": {"n_classes": 3},
    "most frequent class": {"n": 40, "epsilon": 0.05},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return fitted(**MODELS[request.param])


@pytest.fixture(scope="module")
def curved():
    return fitted()


CELLS = {
    "amount": st.floats(-10, 2000) | st.sampled_from(ODD),
    "years": st.integers(-3, 60) | st.sampled_from(ODD),
    "day": st.sampled_from([*DAYS[::50], pd.Timestamp("1999-01-01"), None, "2020-05-05", "no day"]),
    "kind": st.sampled_from(["a", "b", "c", *ODD]),
    "vip": st.sampled_from([True, False, "true", *ODD]),
    "rank": st.sampled_from(["x", "y", *ODD]),
}


@st.composite
def raw_rows(draw):
    n = draw(st.integers(1, 8))
    return pd.DataFrame(
        {name: pd.Series([draw(cells) for _ in range(n)], dtype=object) for name, cells in CELLS.items()}
    )


def days(values):
    return (pd.to_datetime(values) - pd.Timestamp(0)) / pd.Timedelta(days=1)


# ---- exact --------------------------------------------------------------------------------------------------------
@pytest.mark.few(1)
def test_terms_of_any_raw_rows_add_up_to_the_decision(model):
    terms = AdditiveTerms(model)

    @settings(max_examples=15, deadline=None)
    @given(raw_rows())
    def check(X):
        explained, decision = terms.explain(X), model.decision_function(X)
        assert list(explained.index) == list(X.index)
        if len(model.classes_) == 2:
            assert list(explained.columns) == ["(intercept)", *model.schema.features]
            total = explained.sum(axis=1).to_numpy()
        else:
            total = np.stack([explained[k].sum(axis=1) for k in model.classes_], axis=1)
        np.testing.assert_allclose(total, decision, rtol=0, atol=1e-9)

    check()


def test_the_models_here_are_of_every_kind():
    kinds = {name: type(fitted(**options).net_.module_).__name__ for name, options in MODELS.items()}
    assert list(kinds.values()) == ["ScaledMLP", "MLP", "ScaledMLP", "OneAnswer"]


def test_numbers_exactly_at_a_knot_and_between_knots_that_lie_close_are_exact_too(curved):
    terms = AdditiveTerms(curved)
    frame = terms.to_frame()
    points = np.array(frame.loc[(frame["column"] == "amount") & (frame["value"] != "(missing)"), "value"], dtype=float)
    X = pd.concat([table(1)] * (3 * len(points)), ignore_index=True)
    X["amount"] = np.concatenate([points, points + 1e-9, points - 1e-7])
    np.testing.assert_allclose(terms.explain(X).sum(axis=1), curved.decision_function(X), rtol=0, atol=1e-9)


def test_the_frame_alone_gives_the_decision_of_every_row(model):
    frame, X = AdditiveTerms(model).to_frame(), table(200, seed=3)
    scores = list(frame.columns[2:])
    total = np.tile(frame.loc[frame["column"] == "(intercept)", scores].to_numpy(dtype=float), (200, 1))
    for name in model.schema.features:
        mine = frame[frame["column"] == name]
        known, missing = mine[mine["value"] != "(missing)"], mine[mine["value"] == "(missing)"]
        for k, score in enumerate(scores):
            if name in ("amount", "years", "day"):
                at, cells = known["value"].astype(float) if name != "day" else days(known["value"]), X[name]
                cells = days(cells) if name == "day" else cells
                added = np.interp(cells, at, known[score])
            else:
                added = X[name].map(dict(zip(known["value"], known[score], strict=True))).to_numpy(dtype=float)
            total[:, k] += np.where(X[name].isna(), missing[score].iloc[0], added)
    np.testing.assert_allclose(total if len(scores) > 1 else total[:, 0], model.decision_function(X), atol=1e-6)


def test_the_decision_is_the_log_odds_and_agrees_with_probabilities_and_labels(model):
    X = table(100, seed=4)
    decision, proba = model.decision_function(X), model.predict_proba(X)
    if len(model.classes_) == 2:
        np.testing.assert_allclose(decision, np.log(proba[:, 1] / proba[:, 0]), atol=1e-9)
        codes = (decision > 0).astype(int)
    else:
        np.testing.assert_allclose(decision.sum(axis=1), 0, atol=1e-9)
        codes = decision.argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[codes], model.predict(X))


def test_only_a_network_in_double_precision_has_a_decision_function(curved):
    assert hasattr(curved, "decision_function") and not hasattr(
        FairDPSGDClassifier(net="additive"), "decision_function"
    )
    assert not hasattr(fitted(n=400, net=mlp((2,), max_epochs=1, batch_size=300)), "decision_function")


def test_terms_have_mean_zero_over_knots_or_listed_values_and_the_largest_comes_first(curved):
    terms = AdditiveTerms(curved)
    frame = terms.to_frame()
    for name in ("kind", "vip", "rank"):
        values = frame.loc[(frame["column"] == name) & (frame["value"] != "(missing)"), "log_odds"]
        assert values.mean() == pytest.approx(0, abs=1e-12)
        assert terms.importances[name] == pytest.approx(np.ptp(values))
    assert terms.importances.index[0] == "amount" and terms.importances.is_monotonic_decreasing
    assert isinstance(terms.intercept, float)


def test_a_day_and_a_truth_value_are_shown_as_what_they_are(curved):
    frame = AdditiveTerms(curved).to_frame()
    assert frame.loc[frame["column"] == "vip", "value"].tolist() == [False, True, "(missing)"]
    days = frame.loc[frame["column"] == "day", "value"].tolist()[:-1]
    assert days[0] == DAYS[0] and days[-1] == DAYS[-1]


def test_reading_costs_nothing_and_changes_nothing(curved):
    before, X = curved.privacy_, table(50, seed=5)
    decision = curved.decision_function(X)
    with recording_noise(entropy=1) as record:
        AdditiveTerms(curved).monotone({"amount": 1}).predict(X)
    assert not record.releases and curved.privacy_ is before
    np.testing.assert_array_equal(curved.decision_function(X), decision)


@pytest.mark.slow
def test_the_plot_shows_every_column_that_is_asked_for(curved):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    try:
        terms = AdditiveTerms(curved).plot()
        assert [ax.get_title().split(" ")[0] for ax in terms.axes_] == list(terms.importances.index)
        terms.figure_.canvas.draw()
        amount = terms.axes_[list(terms.importances.index).index("amount")].lines[0]
        assert np.ptp(amount.get_ydata()) == pytest.approx(terms.importances["amount"])
        _, ax = plt.subplots()
        assert terms.plot(["kind"], axes=ax).axes_[0] is ax
        assert len(AdditiveTerms(fitted(n_classes=3)).plot(["vip"]).axes_[0].lines) == 3
    finally:
        plt.close("all")


# ---- monotone -----------------------------------------------------------------------------------------------------
DIRECTIONS = {"amount": -1, "years": 1, "day": 1, "vip": -1}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["knots", "lines", "most frequent class"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_monotone_model_goes_in_one_direction_everywhere_and_nothing_else_moves(name, sign):
    model = fitted(**MODELS[name])
    directions = {column: sign * direction for column, direction in DIRECTIONS.items()}
    other = AdditiveTerms(model).monotone(directions)
    X = pd.concat([table(1)] * 400, ignore_index=True)
    values = {"amount": np.linspace(-5, 1100, 400), "years": np.linspace(-1, 55, 400), "vip": [False, True] * 200}
    values["day"] = pd.date_range("2019-12-01", "2021-08-01", periods=400)
    for column, direction in directions.items():
        swept = X.assign(**{column: values[column]})
        assert (np.diff(other.decision_function(swept)[: 2 if column == "vip" else None]) * direction >= -1e-9).all()
    test = table(300, seed=6)
    before, after = AdditiveTerms(model).explain(test), AdditiveTerms(other).explain(test)
    np.testing.assert_array_equal(before[["kind", "rank"]], after[["kind", "rank"]])
    assert other.privacy_ == model.privacy_ and type(other) is type(model)
    np.testing.assert_allclose(other.predict_proba(test)[:, 1], 1 / (1 + np.exp(-other.decision_function(test))))


def test_making_it_monotone_twice_is_making_it_monotone_once(curved):
    test = table(300, seed=7)
    once = AdditiveTerms(curved).monotone(DIRECTIONS)
    twice = AdditiveTerms(once).monotone(DIRECTIONS)
    assert (
        np.abs(once.decision_function(test) - curved.decision_function(test)).max() > 0.01
    )  # there was something to do
    np.testing.assert_allclose(twice.decision_function(test), once.decision_function(test), rtol=0, atol=1e-9)


def test_a_curve_that_goes_the_right_way_already_is_left_as_it_is(curved):
    rising = AdditiveTerms(curved).monotone({"years": 1})
    test = table(300, seed=8)
    again = AdditiveTerms(rising).monotone({"years": 1})
    np.testing.assert_allclose(again.decision_function(test), rising.decision_function(test), rtol=0, atol=1e-9)
    parts = AdditiveTerms(curved)._parts
    knots = parts.monotone(0, -1)
    values = np.stack([one.curve(0, one.knots[0])[:, 1] - one.curve(0, one.knots[0])[:, 0] for one in (parts, knots)])
    assert (np.diff(values[1]) <= 1e-9).all()
    assert values[0].mean() == pytest.approx(values[1].mean())  # least squares with equal weights keeps the mean


def test_what_a_missing_value_adds_is_no_part_of_the_curve(curved):
    X = table(50, seed=9).assign(years=np.nan)
    other = AdditiveTerms(curved).monotone({"years": -1})
    np.testing.assert_allclose(other.decision_function(X), curved.decision_function(X), rtol=0, atol=1e-12)


def test_a_model_trained_under_a_constraint_says_that_its_rates_are_measured_no_more():
    with pytest.warns(FairnessWarning, match="does not measure it for the curves") as caught:
        AdditiveTerms(fitted(parity="signed_loss", lam=0.5)).monotone({"amount": 1})
    assert caught[0].filename == __file__


# ---- refused ------------------------------------------------------------------------------------------------------
REFUSED = {
    "a category": ({"kind": 1}, "'kind' is a category, which has no order"),
    "no such column": ({"aeg": 1}, "must be among"),
    "the label": ({"label": 1}, "must be among"),
    "no direction": ({"amount": 0}, "direction of 'amount' in monotone of AdditiveTerms must be 1 or -1"),
    "a truth": ({"amount": True}, "must be 1 or -1"),
    "nothing": ({}, "must be a dict of feature to 1 or -1"),
    "a name": ("amount", "must be a dict of feature to 1 or -1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_monotone_is_refused_with_the_reason(curved, name):
    directions, message = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        AdditiveTerms(curved).monotone(directions)


def test_more_than_two_classes_are_refused():
    with pytest.raises(ValueError, match="monotone of AdditiveTerms needs two classes"):
        AdditiveTerms(fitted(n_classes=3)).monotone({"amount": 1})


def test_models_that_cannot_be_read_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="needs a model without hidden layers"):
        AdditiveTerms(fitted(net=mlp((2,), max_epochs=1, batch_size=300)))
    X = np.random.default_rng(0).normal(size=(2000, 2))
    plain = FairDPSGDClassifier(lam=0, net=QUICK, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(ValueError, match="needs a model with a 'schema'"):
        AdditiveTerms(plain)
    with pytest.raises(ValueError, match=r"reads a fitted FairDPSGDClassifier\. Got PFLDClassifier"):
        AdditiveTerms(PFLDClassifier())
    with pytest.raises(ValueError, match="is not fitted yet"):
        AdditiveTerms(FairDPSGDClassifier())


def test_the_shorthand_is_the_network_without_hidden_layers(curved):
    short = fitted(net="additive", n=400)
    long = fitted(net=mlp(()), n=400)
    X = table(50, seed=2)
    np.testing.assert_array_equal(short.predict_proba(X), long.predict_proba(X))
    assert AdditiveTerms(short).to_frame().equals(AdditiveTerms(long).to_frame())
