"""What noise hid, what no cell says and what nobody can read is not handed on as data without a word.

One table for each kind of silence: a situation, and what is returned or said in it.
"""

import re
import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from skfairdp import PATEClassifier, PFGuardGenerator, PublicData
from skfairdp._tables import fine_grid, merged_grid
from skfairdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skfairdp.model_selection import join_frontiers
from skfairdp.papers import DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend
from skfairdp.preprocessing import PublicPreprocessor
from skfairdp.privacy import compose, epsilon_of
from skfairdp.schema import Boolean, Category, Date, Number, Schema
from tests._tools.inside import mark_non_dominated, plan_release

# ---- numbers whose range the noise hides --------------------------------------------------------------------------
SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "pay": lambda rng, n: rng.lognormal(10, 1, n),
    "debts": lambda rng, n: -rng.gamma(2, 50, n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.lognormal(8, 1, n)),
}


@pytest.mark.covering
@pytest.mark.parametrize("rows_per_noise", [5, 20, 40, 100, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_bins_without_bounds_reach_as_far_as_rows_show_and_no_further(shape, rows_per_noise):
    rng, sigma = np.random.default_rng(0), 30.0
    starts, high = fine_grid(None, False)
    for _ in range(20):
        values = SHAPES[shape](rng, rows_per_noise * 30)
        counts = np.bincount(np.searchsorted(starts, values, side="right") - 1, minlength=len(starts))
        kept, end = merged_grid(starts, high, counts + sigma * rng.normal(size=len(starts)), sigma, 12)
        assert max(abs(kept[0]), abs(end)) <= 8 * np.abs(values).max()
        if rows_per_noise == 1000:
            assert np.mean((values >= kept[0]) & (values <= end)) > 0.95


@pytest.mark.few(2)
@pytest.mark.parametrize("backend", [GSWGANBackend, PATEGANBackend, GPATEBackend, DataLensBackend])
def test_networks_make_missing_values_only_where_some_are(backend):
    X, y, groups = hidden_table(4000)
    X["b"] = X["b"].where(np.arange(4000) % 2 == 0)
    said = {"classes": [0, 1], "groups": ["F", "M"], "bounds": (-4, 4), "dtypes": {"a": "Int64", "c": "float32"}}
    generator = PFGuardGenerator(epsilon=2.0, backend=backend(n_steps=3, n_teachers=10), random_state=0, **said)
    plan = generator._plan(generator._read(X, y, sensitive_features=groups))
    missing, answers = plan.backend.missing_at(plan.scale), plan.backend.answers_at(plan.scale)
    others = [plan.bins.event, plan.bins.event, plan.counts.event]  # bins are looked at twice
    assert "counts of missing values" in plan.releases and missing.sensitivity == 2.0  # four counts that move by one
    assert 1.95 < epsilon_of(compose(missing.event, answers, *others), 1e-5) <= 2.0
    missing = generator.fit(X, y, sensitive_features=groups).sample(2000).isna().sum()
    assert missing["b"] > 0 and missing.drop("b").sum() == 0


def hidden_table(n=1500, **columns):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")).assign(**columns)
    return X, np.arange(n) % 2, np.where(np.arange(n) % 3, "F", "M")


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("backend", ["marginals", "pate_gan"])
@pytest.mark.parametrize("dtypes", [float, "Int64", "float32"])
def test_numbers_that_the_noise_hides_are_named_and_no_large_ones(dtypes, backend):
    X, y, groups = hidden_table()
    generator = PFGuardGenerator(
        epsilon=0.02, dtypes=dtypes, backend=backend, balance=None, classes=[0, 1], groups=["F", "M"], random_state=0
    )
    with pytest.warns(UtilityWarning, match=r"hides the range of 'a', 'b', 'c', 'd', so .* are 0"):
        generator.fit(X, y, sensitive_features=groups)
    assert (generator.sample(500).fillna(0) == 0).all(axis=None)


def test_a_column_that_shows_keeps_its_numbers_beside_those_that_do_not():
    rng = np.random.default_rng(0)
    X, y, groups = hidden_table(n=6000, **{name: np.exp(rng.normal(0, 15, 6000)) for name in "acd"}, b=7.0)
    generator = PFGuardGenerator(
        epsilon=0.3, balance=None, dtypes=float, classes=[0, 1], groups=["F", "M"], random_state=0
    )
    with pytest.warns(UtilityWarning, match="hides the range of 'a', 'c', 'd'"):
        generator.fit(X, y, sensitive_features=groups)
    sampled = generator.sample(500)
    assert ((sampled["b"] > 5.9) & (sampled["b"] < 8.1)).mean() > 0.9 and (sampled["a"].fillna(0) == 0).all()


def test_numbers_of_which_most_are_hidden_are_named_with_what_shows():
    rng = np.random.default_rng(0)
    wide = np.where(rng.random(6000) < 0.35, 7.0, np.exp(rng.normal(0, 12, 6000)))
    X, y, groups = hidden_table(n=6000, a=7.0, b=wide, c=7.0, d=7.0)
    generator = PFGuardGenerator(epsilon=0.3, balance=None, dtypes=float, classes=[0, 1], groups=["F", "M"])
    with pytest.warns(UtilityWarning, match=r"more than half of the rows in 'b' \(6\.\d+ to 7\.\d+\)"):
        generator.fit(X, y, sensitive_features=groups)
    assert generator.sample(500)["b"].max() < 9


# ---- what a frontier says is not beaten ---------------------------------------------------------------------------
def points(**columns):
    usual = {"dataset": "", "epsilon": 1.0, "protects": "record", "neighboring_relation": "replace one record"}
    return pd.DataFrame({**usual, "coverage": 1.0, **columns})


COMMON = {"dataset": "", "name": "majority class", "private": True, "accuracy": 0.7}
UNKNOWN = float("nan")


@pytest.mark.parametrize(
    ("accuracy", "disparity", "expected"),
    [
        ([0.9, 0.8], [0.1, 0.0], [True, True]),
        ([0.9, 0.8], [0.1, UNKNOWN], [True, False]),  # fairer, perhaps
        ([0.9, 0.95], [0.1, UNKNOWN], [True, False]),  # more accurate, and nobody knows how unfair
        ([0.9, 0.8], [UNKNOWN, UNKNOWN], [True, False]),  # nobody was asked for a gap
        ([0.69, 0.9], [0.0, 0.1], [False, True]),  # one class for everybody is right more often
        ([0.7, 0.9], [0.02, 0.1], [False, True]),  # it has no gap either
        ([0.7, 0.9], [0.0, 0.1], [True, True]),  # is it
        ([0.6, 0.5], [0.0, 0.1], [False, False]),
    ],
)
def test_unbeaten_is_what_is_known_to_be_and_beats_one_class_for_everybody(accuracy, disparity, expected):
    frame = points(accuracy=accuracy, disparity=disparity)
    assert mark_non_dominated(frame, [COMMON]).tolist() == expected
    not_private = [{**COMMON, "private": False, "accuracy": 1.0}]  # a model without any privacy is no rival
    assert mark_non_dominated(frame, not_private).any()


def test_a_joined_frontier_judges_by_the_same_class_for_everybody():
    frame = points(accuracy=[0.6, 0.9], disparity=[0.0, 0.1])
    frame.attrs["references"] = [{**COMMON, "disparity": 0.0}]
    assert join_frontiers([frame, points(accuracy=[0.65], disparity=[0.0])])["non_dominated"].tolist() == [
        False, True, False,
    ]  # fmt: skip


# ---- what is done with private rows around a fit ------------------------------------------------------------------
def pate(n=600):
    X, y, _ = hidden_table(n)
    public = PublicData(-X[:200].to_numpy())
    return PATEClassifier(classes=[0, 1], n_teachers=5, public_data=public, random_state=0), X.to_numpy(), y


class Learnt(StandardScaler):
    """A scaler whose class nobody knows."""


def piped(*steps):
    model, X, y = pate()
    return lambda: make_pipeline(*steps, model).fit(X, y)


def searched(cv, **given):
    model, X, y = pate()
    return lambda: GridSearchCV(model, {"n_teachers": [4]}, cv=cv, error_score="raise", **given).fit(X, y)


def scored(cv):
    model, X, y = pate()
    return lambda: cross_validate(model, X, y, cv=cv, error_score="raise")


def stacked(cv):
    model, X, y = pate()
    return lambda: StackingClassifier([("one", model)], LogisticRegression(), cv=cv).fit(X, y)


def bagged(**settings):
    model, X, y = pate()
    return lambda: BaggingClassifier(model, n_estimators=1, random_state=0, **settings).fit(X, y)


def scored_by_group(cv):
    model, X, y = pate()
    return lambda: cross_validate(model, X, y, groups=np.arange(len(X)) % 3, cv=cv, error_score="raise")


SCALER = r"The Pipeline around PATEClassifier fits 'standardscaler'.*PublicPreprocessor"
STRATIFIED = "PATEClassifier is fitted on folds of StratifiedKFold.*KFold"
AROUND = {
    "alone": (piped(), None),
    "no state": (piped(Normalizer(), "passthrough", FunctionTransformer()), None),
    "public rows": (piped(PublicPreprocessor(StandardScaler(), hidden_table()[0].to_numpy())), None),
    "a scaler": (piped(StandardScaler()), SCALER),
    "a class of its own": (piped(Learnt()), "fits 'learnt' on private rows"),
    "two": (piped(StandardScaler(), Normalizer(), PCA(4)), "fits 'standardscaler', 'pca' on private rows"),
    "a scaler inside a pipeline": (lambda: make_pipeline(make_pipeline(StandardScaler(), pate()[0])).fit(*pate()[1:]),
                                   SCALER),
    "folds by place": (searched(KFold(2)), None),
    "a number of folds": (searched(2), STRATIFIED),
    "folds by label, no refit": (searched(StratifiedKFold(2), refit=False), STRATIFIED),
    "shuffled by label": (searched(StratifiedShuffleSplit(2)), "folds of StratifiedShuffleSplit"),
    "scores": (scored(2), STRATIFIED),
    "scores by place": (scored(KFold(2)), None),
    "a stack": (stacked(2), f"{STRATIFIED}|StackingClassifier around .* fits its final estimator"),
    "folds by group": (scored_by_group(GroupKFold(2)), "GroupKFold, which assigns rows to folds by their groups"),
    "rows drawn with replacement": (bagged(), "BaggingClassifier draws rows with replacement.*bootstrap=False"),
    "rows drawn by weight": (
        lambda: BaggingClassifier(pate()[0], 2, bootstrap=False, max_samples=0.5).fit(
            *pate()[1:], sample_weight=np.linspace(0, 1, len(pate()[1]))
        ),
        "BaggingClassifier draws rows .*by their weights.*give no sample_weight",
    ),
    "rows drawn once": (bagged(bootstrap=False, max_samples=0.5), None),
}  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
def test_what_reads_private_rows_around_a_fit_is_named(around):
    fit, said = AROUND[around]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    leaks = [str(one.message) for one in caught if issubclass(one.category, PrivacyLeakWarning)]
    assert (not leaks) if said is None else (leaks and all(re.search(said, leak) for leak in leaks))


# ---- how days, numbers and truths are written ---------------------------------------------------------------------
DAYS = pd.date_range("2001-01-05", periods=200, freq="9D")
COUNTS = np.arange(1, 201) * 37.5
WRITTEN = {
    "%d/%m/%Y": (DAYS.strftime("%d/%m/%Y"), {"kind": "date", "format": "%d/%m/%Y"}),
    "%d.%m.%Y": (DAYS.strftime("%d.%m.%Y"), {"kind": "date", "format": "%d.%m.%Y"}),
    "%m/%d/%y": (DAYS.strftime("%m/%d/%y"), {"kind": "date", "format": "%m/%d/%y"}),
    "%Y/%m/%d": (DAYS.strftime("%Y/%m/%d"), {"kind": "date", "format": "%Y/%m/%d"}),
    "%d-%b-%Y": (DAYS.strftime("%d-%b-%Y"), {"kind": "date", "format": "%d-%b-%Y"}),
    "%d %B %Y": (DAYS.strftime("%d %B %Y"), {"kind": "date", "format": "%d %B %Y"}),
    "%B %d, %Y": (DAYS.strftime("%B %d, %Y"), {"kind": "date", "format": "%B %d, %Y"}),
    "%b %d, %Y": (DAYS.strftime("%b %d, %Y"), {"kind": "date", "format": "%b %d, %Y"}),
    "%d-%b-%y": (DAYS.strftime("%d-%b-%y"), {"kind": "date", "format": "%d-%b-%y"}),
    "a day and a time": (DAYS.strftime("%d/%m/%Y %H:%M"), {"kind": "date", "format": "%d/%m/%Y"}),
    "a day and a time of noon": (DAYS.strftime("%m/%d/%Y %I:%M:%S %p"), {"kind": "date", "format": "%m/%d/%Y"}),
    "days as the calendar has them": (DAYS.strftime("%Y-%m-%d"), {"kind": "date"}),
    "date objects": (list(DAYS.date), {"kind": "date"}),
    "thousands": ([f"{1000 + 40 * c:,.0f}" for c in COUNTS], {"kind": "number", "thousands": ","}),
    "thousands, some small": ([f"{40 * c // 7:,.0f}" for c in COUNTS], {"kind": "number", "thousands": ","}),
    "decimal comma": ([f"{c / 1000:.3f}".replace(".", ",") for c in COUNTS], {"kind": "number", "decimal": ","}),
    "both, as in German": ([f"{c * 40:_.2f}".replace(".", ",").replace("_", ".") for c in COUNTS],
                           {"kind": "number", "decimal": ",", "thousands": "."}),
    "dollars": ([f"${c:.0f}" for c in COUNTS], {"kind": "number", "unit": "$"}),
    "dollars with thousands": ([f"${c * 40:,.2f}" for c in COUNTS], {"kind": "number", "thousands": ",", "unit": "$"}),
    "per cent": ([f"{c / 100:.1f} %" for c in COUNTS], {"kind": "number", "unit": "%"}),
    "kroner": ([f"{c * 40:_.0f} kr".replace("_", " ") for c in COUNTS],
               {"kind": "number", "decimal": ",", "thousands": " ", "unit": "kr"}),
    "EUR, decimal comma": ([f"{c / 10:.2f} EUR".replace(".", ",") for c in COUNTS],
                           {"kind": "number", "decimal": ",", "unit": "EUR"}),
    "USD before": ([f"USD {c * 40:,.2f}" for c in COUNTS], {"kind": "number", "thousands": ",", "unit": "USD"}),
    "lakhs": ([f"{int(c) % 90 + 1},{int(c) % 90 + 10},{int(c) % 900 + 100}" for c in COUNTS],
              {"kind": "number", "thousands": ","}),
    "kilograms": ([f"{c / 10:.1f} kg" for c in COUNTS], {"kind": "number", "unit": "kg"}),
    "decimals": ([Decimal(str(c)) for c in COUNTS], {"kind": "number"}),
    "yes, no and ja": (["yes", "no", "ja", "No"] * 50, {"kind": "boolean"}),
    "True and true": (["True", "true", "false", "FALSE"] * 50, {"kind": "boolean"}),
    "dollars, some missing": ([f"${c:.0f}" for c in COUNTS[:150]] + ["NA"] * 50, {"kind": "number", "unit": "$"}),
}  # fmt: skip
NO_GUESS = {
    "names": [f"Street {j}" for j in range(200)],
    "codes": [f"{j:04}" for j in range(200)],
    "codes with letters": [f"A{j}" for j in range(200)],
    "sizes with words": [f"{j} Main Street" for j in range(200)],
    "versions": ["1.2.3", "10.4.11"] * 100,
    "telephones": [f"12-34-{j}" for j in range(100, 300)],
    "missing": [None] * 200,
    "lists": [[1]] * 200,
}


@pytest.mark.parametrize("name", [*WRITTEN, *NO_GUESS])
def test_a_template_marks_what_texts_look_like_as_a_guess_that_is_no_schema(name):
    cells, guess = WRITTEN.get(name, (NO_GUESS.get(name), None))
    column = Schema.template(pd.DataFrame({"a": cells}))["columns"]["a"]
    assert column.pop("guess", None) == guess
    assert column["kind"] == "category" and column["values"] is None
    if guess is not None:
        with pytest.raises(ValueError, match=r"not filled in yet: values.*the template guesses"):
            Schema.from_dict({"columns": {"a": {**column, "guess": guess}}})
        ends = {"date": {"first": "2001-01-01", "last": "2009-01-01"}, "number": {"low": 0.0, "high": 1e7}}
        schema = Schema.from_dict({"columns": {"a": {**guess, **ends.get(guess["kind"], {}), "missing": True}}})
        counted = schema.misfits_by_kind(pd.DataFrame({"a": cells})).loc["a"]
        assert counted["unreadable"] == list(cells).count("ja") and counted["beyond"] == 0


@pytest.mark.filterwarnings("ignore:Schema.release draws its noise")
def test_a_number_that_is_called_an_identifier_is_marked_and_named():
    table = pd.DataFrame({"PatientID": np.arange(300), "age": np.arange(300) % 70, "paid": np.arange(300) % 9})
    template = Schema.template(table)["columns"]
    assert "identifier" in template["PatientID"]["guess"] and "guess" not in template["paid"]
    with pytest.warns(UserWarning, match=r"from_public describes \['PatientID'\] as whole numbers"):
        Schema.from_public(table)
    with pytest.warns(UserWarning, match=r"release describes \['PatientID'\] as whole"):
        Schema.release(table, epsilon=50.0, noise_seed=0)


NUMBERS = {
    "a case number": (np.random.default_rng(0).permutation(300) + 70_000, True),
    "every third": (np.arange(300) * 3, True),
    "as texts of floats": (np.arange(300.0), True),
    "pay in cents": (np.random.default_rng(0).integers(0, 10**7, 300), False),
    "years": (1950 + np.arange(300) % 70, False),
    "measured": (np.arange(300) + 0.5, False),
    "too few to tell": (np.arange(30), False),
}


@pytest.mark.parametrize("situation", NUMBERS)
def test_public_numbers_that_tell_rows_apart_are_named_whatever_they_are_called(situation):
    cells, is_one = NUMBERS[situation]
    table = pd.DataFrame({"file": cells, "age": np.arange(len(cells)) % 20})
    assert ("guess" in Schema.template(table)["columns"]["file"]) == is_one
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Schema.from_public(table)
    said = [str(one.message) for one in caught]
    assert ("By their values" in said[0] and "['file']" in said[0]) if is_one else not said


@pytest.mark.few(9)
@pytest.mark.filterwarnings("ignore:Schema.release draws its noise")
@pytest.mark.parametrize("name", sorted(set(WRITTEN) - {"yes, no and ja", "True and true"}))
@pytest.mark.filterwarnings("ignore:Schema.release reads years of two digits")
def test_a_release_finds_how_days_and_numbers_are_written(name):
    cells, guess = WRITTEN[name]
    table = pd.DataFrame({"a": np.repeat(np.array(list(cells), dtype=object), 20), "b": np.arange(4000) % 50})
    column = Schema.release(table, epsilon=2.0, noise_seed=1, known={"b": Number(0, 49, step=1)}).columns["a"]
    assert column.kind == guess["kind"]
    said = {key: value for key, value in guess.items() if key != "kind"}
    assert {key: getattr(column, key) for key in said} == said
    assert np.mean(column.misfits(table["a"])["unreadable"]) == 0
    assert np.mean(column.misfits(table["a"])["beyond"]) < 0.05


@pytest.mark.filterwarnings("ignore:Schema.release draws its noise")
def test_a_release_that_leaves_columns_out_says_how_many_rows_would_do():
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(20)]
    table = pd.DataFrame({name: rng.choice(list("abcdefgh"), 1000) for name in names} | {"fee": 7.5, "y": [0, 1] * 500})
    with pytest.warns(UserWarning, match="leaves out") as caught:
        Schema.release(table, epsilon=0.3, label="y", noise_seed=0)
    said = next(str(one.message) for one in caught if "leaves out" in str(one.message))
    told = re.search(r"22 columns share the epsilon.*only if about (\d+) of the 1,000 private rows share it", said)
    plan = plan_release({**dict.fromkeys([*names, "fee"]), "y": "category"}, 0.3, 1e-5, ("y",))
    left = plan.columns["c0"].common_values(1 - plan.columns["c0"].share_of_kind(1000))
    assert float(told[1]) == pytest.approx(left.threshold, abs=1) and float(told[1]) > 125


def many_columns(n, k=20):
    """Numbers, counts, texts and days in turns; a label and groups."""
    rng = np.random.default_rng(0)
    makes = (
        lambda: rng.normal(50, 10, n).round(1),
        lambda: rng.integers(0, 100, n),
        lambda: rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]),
        lambda: pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), unit="D"),
    )
    features = {f"c{j}": makes[j % 4]() for j in range(k)}
    return pd.DataFrame({**features, "sex": rng.choice(["f", "m"], n), "y": rng.choice(["lo", "hi"], n)})


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:Schema.release")
@pytest.mark.parametrize(
    ("n_rows", "epsilon", "most_lost"),
    [(1000, 1.0, 1), (1000, 0.5, 6), (5000, 0.2, 1), (5000, 0.1, 3), (10_000, 0.1, 1)],
)
def test_a_small_epsilon_finds_most_of_many_columns_and_each_as_what_it_is(n_rows, epsilon, most_lost):
    table, lost, beyond = many_columns(n_rows), [], []
    for seed in range(3):
        found = Schema.release(table, epsilon=epsilon, label="y", groups="sex", noise_seed=seed).columns
        kinds = {f"c{j}": ("number", "number", "category", "date")[j % 4] for j in range(20)}
        lost.append(sum(name not in found or found[name].kind != kind for name, kind in kinds.items()))
        for name in set(found) & {name for name, kind in kinds.items() if kind in ("number", "date")}:
            beyond += [np.mean(found[name].misfits(table[name])["beyond"])] if found[name].kind == kinds[name] else []
    assert np.mean(lost) <= most_lost and np.mean(beyond) < 0.2


# ---- cells that are nothing of what a schema knows ---------------------------------------------------------------
STRANGE = {
    "lists": ([[1], [2]], r"Column 'odd' has cells that are no numbers, dates, texts or booleans \(list\)"),
    "durations": (pd.to_timedelta([1, 2]), r"Column 'odd'.*\(Timedelta\)"),
    "bytes": ([b"a", b"b"], r"Column 'odd'.*\(bytes\)"),
    "one list among texts": (["a", [1]], r"Column 'odd'.*\(list\)"),
    "infinity": ([1.0, np.inf], "Column 'odd' holds numbers that are infinite"),
    "the largest number": ([1.0, -1.7e308], "Column 'odd' holds numbers that are infinite"),
    "an infinite decimal": ([Decimal(1), Decimal("Infinity")], "Column 'odd' holds numbers that are infinite"),
    "nothing": ([None, pd.NaT], "Column 'odd' holds no value"),
    "no day": ([pd.NaT, pd.NaT], "Column 'odd' holds no value"),
    "many texts": ([str(j) for j in range(200)], "Column 'odd' has 200 different values"),
}


@pytest.mark.parametrize("situation", STRANGE)
def test_public_rows_that_a_schema_cannot_describe_are_refused_by_the_name_of_the_column(situation):
    cells, said = STRANGE[situation]
    with pytest.raises(ValueError, match=said):
        Schema.from_public(pd.DataFrame({"age": range(len(cells)), "odd": cells}))


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ([date(2020, 1, 2), date(2020, 3, 4), None], Date("2020-01-02", "2020-03-04", missing=True)),
        ([date(2020, 1, 2)] * 3, Date("2020-01-02", "2020-01-03")),
        ([Decimal("1.5"), Decimal(4), Decimal("NaN")], Number(1.5, 4, missing=True)),
        ([Decimal(1), 2, 3.0], Number(1, 3, step=1)),
        ([1, 2, None], Number(1, 2, step=1, missing=True)),
        ([True, None, False], Boolean(missing=True)),
        (["a", "b", None], Category(["a", "b"], missing=True)),
    ],
)
def test_objects_are_described_as_the_columns_that_they_would_be(cells, column):
    assert (
        Schema.from_public(pd.DataFrame({"odd": pd.Series(cells, dtype=object), "age": range(3)})).columns["odd"]
        == column
    )


@pytest.mark.parametrize("make", [lambda table: Schema.from_public(table), Schema.template])
def test_two_columns_of_one_name_are_named(make):
    with pytest.raises(ValueError, match="more than one column 'a'"):
        make(pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"]))


@pytest.mark.parametrize(
    "column",
    [Number(0, 9), Number(0, 9, step=0.1), Category([0.1, 1, 2.5]), Boolean(), Date("1970-01-01", "1970-01-09")],
)
def test_decimals_are_read_alike_as_objects_and_as_columns_of_arrow(column):
    pa = pytest.importorskip("pyarrow")
    cells = [Decimal("0.1"), Decimal("1.0"), Decimal("2.5"), None, Decimal("7.0"), Decimal("300.0")]
    array = pa.array(cells, pa.decimal128(6, 1))
    read = [
        Schema({"a": column}).numbers(table)["a"]
        for table in (
            pd.DataFrame({"a": pd.Series(cells, dtype=object)}),
            pd.DataFrame({"a": pd.Series(array, dtype=pd.ArrowDtype(array.type))}),
            pa.table({"a": array}),
            pd.DataFrame({"a": [0.1, 1.0, 2.5, np.nan, 7.0, 300.0]}),
        )
    ]
    for other in read[1:]:
        np.testing.assert_array_equal(read[0], other)
    columns = pd.Series(cells, dtype=object), pd.Series(array, dtype=pd.ArrowDtype(array.type))
    kinds = [Schema({"a": column}).misfits_by_kind(pd.DataFrame({"a": one})).loc["a"].tolist() for one in columns]
    assert kinds[0] == kinds[1]
