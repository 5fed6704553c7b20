"""What errors say of private rows: nothing. And no input raises anything but a clear error."""

import functools
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from skfairdp import (
    FairDPSGDRegressor,
    FairPATEClassifier,
    PATEClassifier,
    PFGuardGenerator,
    PrivacyLedger,
    PublicPreprocessor,
    SyntheticDataClassifier,
    SyntheticRows,
)
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, UtilityWarning
from skfairdp.pate import ConfidentVoting, GNMaxVoting, LabelGate, ParityPenaltyStudent, SoftVoting, VoteGate

NAMES = ["a", "b", "c", "d"]
SECRET = "-".join(("canary", "of", "a", "row"))
NUMBER = 987654.25
TRACES = (SECRET, "987654", "9.87654")


def said_by(error):
    """All that an error and those behind it say, printed or not."""
    seen = []
    while error is not None:
        seen += [str(error), repr(error.args), *getattr(error, "__notes__", [])]
        error = error.__cause__ or error.__context__
    return "\n".join(seen)


def changed(table, value, dtype=float):
    table = np.array(table, dtype=dtype)
    table[3, 1] = value
    return table


def marked(X):
    return np.column_stack([np.full(400, SECRET, dtype=object), X])


def secretive(*entries):
    return np.array([*entries, *["x"] * (400 - len(entries))], dtype=object)


CASES = {
    "X string": {"X": lambda r: changed(r.X, SECRET, object)},
    "X bytes": {"X": lambda r: changed(r.X, SECRET.encode(), object)},
    "X strings": {"X": lambda r: np.full((400, 4), SECRET)},
    "X frame": {"X": lambda r: pd.DataFrame(r.X, columns=NAMES).assign(b=SECRET)},
    "X categories": {"X": lambda r: pd.DataFrame(r.X, columns=NAMES).assign(b=pd.Categorical([SECRET] * 400))},
    "X complex": {"X": lambda r: r.X + NUMBER * 1j},
    "X complex entry": {"X": lambda r: changed(r.X, NUMBER * 1j, object)},
    "X column": {"X": lambda r: r.X[:, 0] + NUMBER},
    "X row": {"X": lambda r: [NUMBER]},
    "X scalar": {"X": lambda r: NUMBER},
    "X word": {"X": lambda r: SECRET},
    "X list": {"X": lambda r: [*changed(r.X, NUMBER, object).tolist()[:3], [NUMBER]]},
    "X dict": {"X": lambda r: changed(r.X, {SECRET: NUMBER}, object)},
    "X infinite": {"X": lambda r: changed(r.X + NUMBER, np.inf)},
    "y unknown": {"y": lambda r: secretive(SECRET), "classes": ["x", "z"]},
    "y mixed": {"y": lambda r: secretive(SECRET, NUMBER)},
    "y complex": {"y": lambda r: r.y + NUMBER * 1j},
    "y continuous": {"y": lambda r: r.y + NUMBER + 0.1},
    "y missing": {"y": lambda r: secretive(SECRET, None)},
    "y table": {"y": lambda r: np.full((400, 2), SECRET)},
    "y scalar": {"y": lambda r: SECRET},
    "group unseen": {"groups_of": lambda r: secretive(*[SECRET] * 200), "groups": ["x", "z"]},
    "group missing": {"groups_of": lambda r: secretive(SECRET, None)},
    "group list": {"groups_of": lambda r: secretive([SECRET])},
    "groups short": {"groups_of": lambda r: [SECRET] * 3},
    "groups one": {"groups_of": lambda r: [SECRET] * 400},
    "column unseen": {"X": lambda r: marked(r.X), "sensitive_columns": 0},
    "column string": {"X": lambda r: marked(r.X), "sensitive_columns": 1},
}


def error_of(call):
    """All that the failing call says, warnings included."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except (ValueError, TypeError) as error:
            return said_by(error) + "".join(str(warning.message) for warning in caught)
    return pytest.fail("no error")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_errors_repeat_nothing_of_a_private_row(rows, case):
    case = dict(case)
    X, y = (case.pop(name, lambda r, name=name: getattr(r, name))(rows) for name in ("X", "y"))
    fit = {"X_public": rows.public}
    if "groups_of" in case or "sensitive_columns" in case:
        fit = {"sensitive_features": case.pop("groups_of")(rows)} if "groups_of" in case else {}
    said = error_of(lambda: FairPATEClassifier(n_teachers=5, random_state=0, **case).fit(X, y, **fit))
    assert not any(trace in said for trace in TRACES), said


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_prediction_errors_repeat_nothing_either(rows):
    model = FairPATEClassifier(n_teachers=5, random_state=0, classes=[0, 1]).fit(rows.X, rows.y, X_public=rows.public)
    for X in (changed(rows.X, SECRET, object), rows.X[:, 0] + NUMBER, rows.X + NUMBER * 1j):
        for method in (model.predict, model.predict_proba):
            said = error_of(lambda method=method, X=X: method(X))
            assert not any(trace in said for trace in TRACES), said


@pytest.mark.parametrize(
    ("transformer", "message"),
    [(StandardScaler(), "not numbers"), (OneHotEncoder(), "categories unknown"), (MinMaxScaler(), "not numbers")],
)
def test_a_preprocessor_repeats_nothing_of_the_rows_it_transforms(transformer, message):
    public = np.array([[0.0, 1.0], [1.0, 2.0]])
    X = np.array([[0.0, SECRET]], dtype=object)
    fitted = PublicPreprocessor(transformer, public).fit(X)
    said = error_of(lambda: fitted.transform(X))
    assert message in said and SECRET not in said


# ---- anything at all -----------------------------------------------------------------------------------------
ODD = [None, -1, 0, 1.5, 10**400, float("nan"), float("inf"), True, np.float32(0.3), np.array(1.0), "x", "", b"a"]
odd = st.sampled_from([*ODD, (), [], {}, ["a"], 1j, pd.NA, pd.NaT, object(), int])


def number(low, high, *extremes):
    return st.one_of(st.floats(low, high), st.sampled_from(extremes))


def option(*names):
    return st.sampled_from(names)


scale = st.one_of(st.none(), number(0.1, 100, 1e-9, 1e9, 1e-10, 3e5))
threshold = number(0.5, 1, 0.5000001)
votes = {"sigma": scale, "noise": option("gaussian", "discrete_gaussian"), "max_queries": st.integers(1, 20)}
disparity = option("others", "overall", "between")
domain = st.lists(st.sampled_from([0, 1, 2, "a", "b", None, (0, 1), 0.5, True]), max_size=4)
#: For each parameter, values that mostly get past its own check: what then meets the others is what is tried.
PLAUSIBLE = {
    "schema": st.none(),
    "epsilon": number(1e-2, 50, 1e-300, 1e-9, 1e-5, 1e3, 1e9, 1e10),
    "delta": number(1e-9, 0.5, 1e-320, 1e-100, 0.999999),
    "gamma": st.one_of(st.none(), number(0, 1, 1e-320, 1e300)),
    "constraints": option(None, "demographic_parity", "equalized_odds", "parity"),
    "gate": st.one_of(
        option("votes", "labels", None),
        st.builds(VoteGate, min_count=st.integers(0, 20), rule=option("excess", "local"), disparity=disparity),
        st.builds(LabelGate, min_count=st.integers(0, 20), rule=option("excess", "local"), disparity=disparity),
    ),
    "student": st.one_of(
        st.none(), st.builds(ParityPenaltyStudent, penalty_weight=number(0, 5, 1e-320, 1e9, 1e10), max_iter=st.just(20))
    ),
    "n_teachers": st.one_of(st.integers(1, 14), st.just("auto")),
    "voting": st.one_of(
        option("soft", "confident", "gnmax"),
        st.builds(SoftVoting, threshold=threshold, **votes),
        st.builds(GNMaxVoting, **votes),
        st.builds(
            ConfidentVoting,
            threshold=threshold,
            sigma_threshold=scale,
            **votes,
            max_answers=st.one_of(st.none(), st.integers(1, 20)),
            accounting=option("auto", "binary", "gdp"),
        ),
    ),
    "public_data": st.one_of(
        st.none(),
        st.builds(
            SyntheticRows,
            budget_share=number(0.01, 0.99, 1e-300, 1.0),
            n_rows=st.integers(1, 40),
            n_bins=st.one_of(st.none(), st.integers(2, 30)),
        ),
    ),
    "classes": st.one_of(st.none(), domain),
    "groups": st.one_of(st.none(), domain),
    "sensitive_columns": st.one_of(st.integers(-3, 3), st.lists(st.integers(-3, 3), max_size=3)),
    "random_state": st.one_of(st.none(), st.integers(0, 2**32 - 1)),
}
#: These run or keep what they are given: an error of theirs is their own.
NOT_TRIED = {"memory", "ledger", "noise_seed", "teacher", "n_jobs", "verbose"}
parameters = st.sets(st.sampled_from(sorted(PLAUSIBLE)), min_size=1, max_size=4).flatmap(
    lambda names: st.fixed_dictionaries({name: PLAUSIBLE[name] for name in sorted(names)})
)
entry = st.one_of(st.floats(-3, 3), st.floats(), st.sampled_from([1e100, -1e308, 0.0]), st.just(SECRET), odd)


def mostly(usual, *others):
    """Three times in four the usual; one_of alone would weigh by the number of branches inside."""
    rest = st.integers(0, len(others) - 1).flatmap(others.__getitem__)
    return st.integers(0, 3).flatmap(lambda k: usual if k else rest)


def table(n):
    """Mostly n rows of two numbers; or with an entry of any kind, or huge, or nothing like a table."""
    floats = st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=n, max_size=n)
    huge = st.lists(st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)), min_size=n, max_size=n)
    spoilt = st.tuples(floats, st.integers(0, n - 1), st.lists(entry, min_size=2, max_size=2)).map(
        lambda drawn: [*drawn[0][: drawn[1]], tuple(drawn[2]), *drawn[0][drawn[1] + 1 :]]
    )
    anything = st.one_of(entry, st.lists(st.lists(entry, max_size=3), max_size=5))
    return mostly(floats.map(np.array), huge.map(np.array), spoilt, spoilt.map(pd.DataFrame), anything)


def column(n):
    """Mostly n labels of two kinds; or with an entry of any kind, or nothing like a column."""
    codes = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    words = st.lists(st.sampled_from(["no", "yes", SECRET]), min_size=n, max_size=n)
    spoilt = st.tuples(codes, entry).map(lambda drawn: [*drawn[0][1:], drawn[1]])
    crossed = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=n, max_size=n)
    anything = st.one_of(entry, st.lists(entry, max_size=9))
    return mostly(codes, words, crossed, spoilt, spoilt.map(lambda v: pd.Series(v, dtype=object)), anything)


calls = st.tuples(st.integers(6, 12), st.integers(4, 8)).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "X": table(n[0]),
            "y": column(n[0]),
            "sensitive_features": mostly(column(n[0]), st.none()),
            "X_public": mostly(table(n[1]), st.none()),
            "sensitive_features_public": mostly(column(n[1]), st.none()),
        }
    )
)
calm = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
#: A quarter of the examples, or all of them in ``make test-all``.
share = pytest.mark.parametrize("share", [0.25, pytest.param(1.0, marks=pytest.mark.slow)])


def some(share):
    return settings(calm, max_examples=int(200 * share))


def test_every_parameter_is_tried():
    assert set(PLAUSIBLE) | NOT_TRIED == set(FairPATEClassifier().get_params())


def only_clear_errors(call):
    """Run it; what it raises may quote parameters, which are public, but no entry of a row. Whether it went through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except (ValueError, TypeError, BudgetExceededError) as error:
            words, said = str(error), said_by(error)
        else:
            return True
    assert words.strip(), "an error without words"
    assert SECRET not in said
    return False


@share
def test_no_parameters_raise_anything_else(share):
    """A fit is refused in clear words, and then for free; or it is paid for once, and costs at most what was asked."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(28, 2)), np.arange(28) % 2
    y = (X[:, 0] > 0).astype(int)
    outcomes = Counter()

    @some(share)
    @given(parameters, st.one_of(st.none(), st.tuples(st.sampled_from(sorted(PLAUSIBLE)), odd)), st.booleans())
    def attempt(parameters, strange, hold_out):
        given = {"epsilon": 5.0, "n_teachers": 3, "classes": [0, 1], "random_state": 0, "public_data": None}
        given["gate"] = VoteGate(min_count=1)
        given |= parameters | ({} if strange is None else {strange[0]: strange[1]})
        public = None if hold_out else X[14:]
        in_X = given.get("sensitive_columns") is not None
        fit = {
            "sensitive_features": None if in_X else groups[:14],
            "sensitive_features_public": None if in_X or hold_out else groups[14:],
        }
        ledger = PrivacyLedger()
        model = FairPATEClassifier(**given, ledger=ledger)
        through = only_clear_errors(lambda: model.fit(X[:14], y[:14], X_public=public, **fit))
        assert len(ledger.entries) == through
        assert not through or model.privacy_.epsilon <= model.epsilon
        outcomes[through] += 1

    attempt()
    assert min(outcomes[True], outcomes[False]) >= 20 * share, outcomes


@share
def test_no_arguments_raise_anything_else(share):
    outcomes = Counter()

    @some(share)
    @given(calls, PLAUSIBLE["voting"], st.booleans())
    def attempt(call, voting, fair):
        ledger = PrivacyLedger()
        model = FairPATEClassifier(epsilon=5.0, n_teachers=2, voting=voting, random_state=0, ledger=ledger)
        model.set_params(gamma=0.3 if fair else None, gate__min_count=1)
        if call["X_public"] is None:
            call["sensitive_features_public"] = None
        through = only_clear_errors(lambda: model.fit(**call))
        assert through == hasattr(model, "student_") and len(ledger.entries) == through
        outcomes[through] += 1
        if through:
            outcomes["predicted"] += only_clear_errors(lambda: model.predict_proba(call["X"]))

    attempt()
    assert min(outcomes[True], outcomes[False], outcomes["predicted"]) >= 5 * share, outcomes


@functools.cache
def fitted():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 2))
    model = FairPATEClassifier(epsilon=5.0, n_teachers=2, classes=[0, 1], gamma=None, random_state=0)
    return model.fit(rows, (rows[:, 0] > 0).astype(int), X_public=rows[:5].copy())


def test_no_predictions_raise_anything_else():
    """All of the answers or none: rows that one method reads, the others read."""
    model, outcomes = fitted(), Counter()

    # hypothesis takes constants from all loaded modules, so that how many tables are bad hangs on the tests before
    bad = st.sampled_from([np.zeros((6, 3)), np.full((6, 2), np.inf), np.full((6, 2), "a", dtype=object)])

    @calm
    @given(st.one_of(table(6), table(6), bad), column(6))
    def attempt(X, y):
        labels, chances = only_clear_errors(lambda: model.predict(X)), only_clear_errors(lambda: model.predict_proba(X))
        only_clear_errors(lambda: model.score(X, y, sensitive_features=y))
        assert labels == chances
        outcomes[labels] += 1

    attempt()
    assert min(outcomes[True], outcomes[False]) >= 5, outcomes


def few_rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 3)), rng.integers(0, 2, 200), rng.integers(0, 2, 200)


@pytest.mark.parametrize(
    "model",
    [
        PFGuardGenerator(epsilon=0.05, bounds=(-4, 4), dtypes=float, classes=[0, 1], groups=[0, 1]),
        SyntheticDataClassifier(epsilon=2.0, bounds=(-4, 4), dtypes=float, classes=[0, 1], groups=[0, 1]),
        pytest.param(FairDPSGDRegressor(epsilon=0.1, bounds=(0, 1)), marks=pytest.mark.slow),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_was_paid_for_is_kept_where_warnings_are_errors(model):
    """Found: the fit was charged, and nothing was left of it."""
    X, y, groups = few_rows()
    if isinstance(model, SyntheticDataClassifier):
        X[:, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((FairnessWarning, UtilityWarning)):
            model.fit(X, y, sensitive_features=groups)
    rows = model.sample(3) if isinstance(model, PFGuardGenerator) else model.predict(X[:3])
    assert len(rows) == 3 and model.privacy_.epsilon <= model.epsilon


def test_warnings_of_a_refit_name_the_line_that_asked_for_it():
    """Found: a line of numpy, whose errstate wraps the method."""
    X, y, _ = few_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PATEClassifier(epsilon=0.1, classes=[0, 1]).fit(X, y, X_public=X[:30] + 1)
    with pytest.warns(UtilityWarning) as told:
        model.refit()
    assert {warning.filename for warning in told} == {__file__}


@pytest.mark.parametrize("weights", [[np.nan], ["a"], [1.0, 1.0]], ids=["missing", "a text", "another number of them"])
def test_a_score_that_weights_make_impossible_does_not_blame_the_labels_alone(weights):
    X, y, _ = few_rows()
    model = SyntheticDataClassifier(epsilon=8.0, classes=[0, 1], n_samples=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"^sample_weight of the score of Synth.* one finite number for each"):
        model.score(X, y, sample_weight=weights * len(y))
    with pytest.raises(ValueError, match=r"^y of SyntheticDataClassifier"):
        model.score(X, ["no", *y[1:]])
    with pytest.raises(ValueError, match=r"^y of SyntheticDataClassifier"):
        model.score(X, ["no", *y[1:]], sample_weight=[1.0] * len(y))
