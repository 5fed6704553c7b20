"""Bad input to PATE and FairPATE: a clear error before anything is spent (what it says: test_error_messages.py)."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from skfairdp import (
    IDP3,
    FairnessCalibrator,
    FairPATEClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    Schema,
    SyntheticDataClassifier,
    SyntheticRows,
)
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, PrivacyLeakWarning
from skfairdp.fairness import FairnessGate
from skfairdp.pate import ConfidentVoting, GNMaxVoting, SoftVoting, VoteGate
from skfairdp.privacy import GaussianDpEvent
from skfairdp.schema import Category, Number
from tests._tools.estimators import private_classes
from tests._tools.teachers import WatchedTeachers

# So few public rows leave the gate and the student little room; what is said about it is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")

NAMES = ["a", "b", "c", "d"]


def attempt(rows, cls=FairPATEClassifier, X=None, y=None, public=None, fit=None, **parameters):
    """Fit with one thing changed and a ledger on watch; whatever fails must fail before the ledger is written."""
    ledger = parameters.pop("ledger", PrivacyLedger())
    before = len(ledger.entries)
    given = {"classes": [0, 1], "n_teachers": 5, "random_state": 0, "ledger": ledger, **parameters}
    if cls is FairPATEClassifier:
        given = {"gate": VoteGate(min_count=5), **given}
    default = rows.X_public if cls is PATEClassifier else rows.public
    arguments = {"X_public": default if public is None else public, **(fit or {})}
    try:
        model = cls(**given)
        return model.fit(rows.X if X is None else X, rows.y if y is None else y, **arguments)
    except Exception:
        assert len(ledger.entries) == before, "the fit failed after it had been charged"
        raise


def changed(table, value, dtype=float):
    table = np.array(table, dtype=dtype)
    table[3, 1] = value
    return table


# ---- rows ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["X", "public"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda X: changed(X, np.nan), "contains NaN"),
        (lambda X: changed(X, np.inf), "infinity"),
        (lambda X: changed(X, None, object), "contains NaN"),
        (lambda X: changed(X, 10**400, object), "X.* of FairPATEClassifier.*too large"),
        (lambda X: changed(X, "tall", object), "X.* of FairPATEClassifier.*not numbers.*PublicPreprocessor"),
        (lambda X: pd.DataFrame(X, columns=NAMES).assign(a="tall").to_numpy(), "not numbers"),
        (lambda X: pd.DataFrame({0: pd.Timestamp("2019-09-08"), **dict(enumerate(X.T[1:], 1))}), "not numbers"),
        (lambda X: X.astype(complex), "X.* of FairPATEClassifier must hold real numbers"),
        (lambda X: X[:, 0], "X.* of FairPATEClassifier.*Reshape your data"),
        (lambda X: pd.Series(X[:, 0]), "X.* of FairPATEClassifier.*Reshape your data|the 4 columns of X"),
        (lambda X: X[:, :, None], "dim 3"),
        (lambda X: X[:0], r"0 sample\(s\)|X_public of FairPATEClassifier has no rows"),
        (lambda X: X[:, :0], r"0 feature\(s\)|the 4 columns of X.*Got 0"),
        (lambda X: 3.0, "Expected 2D array"),
        (lambda X: [[1.0, 2.0], [3.0]], "inhomogeneous"),
        (lambda X: scipy.sparse.csr_matrix((len(X), 10**9)), "sparse_output=False|the 4 columns of X"),
    ],
)
def test_unusable_rows(rows, where, bad, message):
    if where == "X":
        arguments = {"X": bad(rows.X)}
    else:
        arguments = {"public": bad(rows.X_public), "fit": {"sensitive_features_public": rows.groups_public}}
    with pytest.raises((ValueError, TypeError), match=message):
        attempt(rows, **arguments)


def test_public_rows_with_other_columns_or_numbers_past_all_bounds(rows):
    with pytest.raises(ValueError, match=r"X_public of FairPATEClassifier must have the 4 columns of X.*Got 3"):
        attempt(rows, public=PublicData(rows.X_public[:, :3], rows.groups_public))
    named = pd.DataFrame(rows.X_public, columns=NAMES)
    with pytest.raises(ValueError, match=r"X_public of FairPATEClassifier must have the columns of X.*Got \['a', 'b'"):
        attempt(rows, X=pd.DataFrame(rows.X, columns=list("wxyz")), public=PublicData(named, rows.groups_public))
    with pytest.raises(ValueError, match=r"public rows of FairPATEClassifier hold numbers beyond 1e\+100"):
        attempt(rows, public=PublicData(changed(rows.X_public, 1e200), rows.groups_public))
    attempt(rows, X=changed(rows.X, 1e300))  # of a private row, one teacher's trouble


def test_no_public_rows(rows):
    with pytest.raises(ValueError, match="FairPATEClassifier needs the groups of the private rows"):
        attempt(rows, fit={"X_public": None})
    with pytest.raises(ValueError, match="sensitive_features_public without X_public"):
        attempt(rows, fit={"X_public": None, "sensitive_features_public": rows.groups_public})
    with pytest.raises(ValueError, match="public rows twice"):
        attempt(rows, public_data=SyntheticRows())


# ---- labels --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("given_classes", [None, [0, 1]])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda y: y.astype(float) * np.nan, "NaN"),
        (lambda y: pd.Series(y, dtype="Int64").where(np.arange(len(y)) != 3), "NaN"),
        (lambda y: np.where(y == 1, None, y), "missing"),
        (lambda y: np.where(np.arange(len(y)) == 3, pd.NA, y), "missing"),
        (lambda y: np.array(["yes", 1] * (len(y) // 2), dtype=object), "Unknown label type|not in 'classes'"),
        (lambda y: y + 0.5j, "Complex data not supported: y"),
        (lambda y: y + np.linspace(0, 0.1, len(y)), "Unknown label type|not in 'classes'"),
        (lambda y: np.column_stack([y, y]), "1d array"),
        (lambda y: y[:-1], "y of FairPATEClassifier has inconsistent length"),
        (lambda y: y[:0], "y of FairPATEClassifier has inconsistent length"),
        (lambda y: "yes", "1d array"),
    ],
)
def test_unusable_labels(rows, given_classes, bad, message):
    with pytest.raises(ValueError, match=message):
        attempt(rows, y=bad(rows.y), classes=given_classes)


@pytest.mark.parametrize("y", [None, "no labels"])
def test_y_is_required(rows, y):
    with pytest.raises(ValueError, match=r"requires y|1d array"):
        FairPATEClassifier(gamma=None).fit(rows.X, y)


def test_one_class_is_an_error_only_where_classes_are_inferred(rows):
    one = np.zeros_like(rows.y)
    with pytest.raises(ValueError, match=r"one class.*'classes'"):
        attempt(rows, y=one, classes=None)
    assert attempt(rows, y=one).classes_.tolist() == [0, 1]
    with pytest.warns(PrivacyLeakWarning, match="'classes'"):
        attempt(rows, classes=None)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([], "'classes' parameter of FairPATEClassifier"),
        ([0], "'classes'"),
        ([0, 0, 1], "'classes' parameter of FairPATEClassifier lists a value twice"),
        ("01", "'classes' parameter of FairPATEClassifier"),
        ([0, None], "'classes' parameter of FairPATEClassifier"),
        ([0, np.nan], "'classes' parameter of FairPATEClassifier"),
        ([0, "a"], "'classes' parameter of FairPATEClassifier must be labels of one kind"),
        ([[0], [1]], "'classes' parameter of FairPATEClassifier must be labels of one kind"),
        ([{}, 1], "'classes' parameter of FairPATEClassifier"),
        (3, "'classes' parameter of FairPATEClassifier"),
        ([1, 2], "'classes'"),
    ],
)
def test_unusable_classes(rows, classes, message):
    with pytest.raises(ValueError, match=message):
        attempt(rows, classes=classes)


# ---- groups --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda g: None, "needs (the )?groups"),
        (lambda g: g[:-1], "sensitive_features_public of FairPATEClassifier has inconsistent length"),
        (lambda g: np.where(np.arange(len(g)) == 3, np.nan, g), "missing values"),
        (lambda g: g * 0, "only one group.*'groups'"),
        (lambda g: g[:, None, None], "3 dimensions"),
        (lambda g: [{}] * len(g), "cannot be groups"),
        (lambda g: [[1], [1, 2]] * (len(g) // 2), "one entry per row|cannot be groups"),
        (lambda g: pd.DataFrame(index=range(len(g))), "no columns"),
    ],
)
def test_unusable_public_groups(rows, bad, message):
    with pytest.raises(ValueError, match=message):
        attempt(rows, public=PublicData(rows.X_public, bad(rows.groups_public)))
    with pytest.raises(ValueError, match=message.replace("_public", "")):
        attempt(rows, fit={"X_public": None, "sensitive_features": bad(rows.groups)})


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1, 2], "1 of the 3 groups of FairPATEClassifier have no public row"),
        ([0, 2], r"'groups'"),
        ([0, 0, 1], "'groups' parameter of FairPATEClassifier lists a value twice"),
        ([], "'groups' parameter of FairPATEClassifier"),
        ("01", "'groups' parameter of FairPATEClassifier"),
        ([0, np.nan], "'groups' parameter of FairPATEClassifier"),
        ([{}, {}], "'groups' parameter of FairPATEClassifier"),
        (np.zeros((2, 2)), "'groups' parameter of FairPATEClassifier"),
    ],
)
def test_unusable_group_domains(rows, groups, message):
    with pytest.raises(ValueError, match=message):
        attempt(rows, groups=groups)


def test_one_group_is_an_error_only_where_groups_are_inferred(rows):
    one = PublicData(rows.X_public, rows.groups_public * 0)
    assert attempt(rows, public=one, groups=[0]).released_gap_ == 0
    assert attempt(rows, public=one, gamma=None).groups_.tolist() == [0]


def test_groups_given_twice(rows):
    with pytest.raises(ValueError, match="public groups twice"):
        attempt(rows, fit={"sensitive_features_public": rows.groups_public})
    X = np.column_stack([rows.groups, rows.X])
    public = np.column_stack([rows.groups_public, rows.X_public])
    for extra in ({"sensitive_features": rows.groups}, {"sensitive_features_public": rows.groups_public}):
        with pytest.raises(ValueError, match="groups twice: by 'sensitive_columns'"):
            attempt(rows, X=X, public=public, sensitive_columns=0, fit=extra)
    assert attempt(rows, public=PublicData(rows.X_public), fit={"sensitive_features_public": rows.groups_public})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (9, "names column 9, but X has 4"),
        (["sex"], "needs X to be a DataFrame"),
        ([], "is empty"),
        ([0, 1, 2, 3], "no feature is left"),
        (0.5, "'sensitive_columns' parameter of FairPATEClassifier"),
    ],
)
def test_unusable_sensitive_columns(rows, columns, message):
    with pytest.raises(ValueError, match=message):
        attempt(rows, public=rows.X_public, sensitive_columns=columns)


def test_small_groups_are_a_warning_with_the_public_numbers(rows):
    with pytest.warns(FairnessWarning, match=r"smallest group has \d+ public rows, fewer than min_count=150"):
        attempt(rows, gate=VoteGate(min_count=150))


# ---- parameters ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "parameters",
    [
        *({"epsilon": value} for value in (0, -1, np.nan, np.inf, 1e10, "1", None, True, 10**400)),
        *({"delta": value} for value in (0, -1e-5, 1, 1.5, np.nan, None, True)),
        *({"gamma": value} for value in (-0.1, np.nan, "0.1", True, 10**400)),
        *({"gate__min_count": value} for value in (-1, 0.5, None, True, 10**400)),
        *({"n_teachers": value} for value in (0, -1, 401, 2.5, "many", None, True, 10**400)),
        *({"voting__threshold": value} for value in (0.5, 0.2, 1.1, np.nan, None, True)),
        *({"voting__max_queries": value} for value in (0, -1, 2.5, "all", True)),
        *({"public_data": value} for value in (0.5, "own", SyntheticRows)),
        *({"noise_seed": value, "ledger": None} for value in (-1, 0.5, "x")),
        *({"random_state": value} for value in (-1, 0.5, "x")),
        *(
            {name: value}
            for name in ("gate__disparity", "voting", "gate__rule", "voting__noise")
            for value in ("x", None, 1)
        ),
        *({"voting": "confident", "voting__accounting": value} for value in ("x", None, 1)),
        *({"gate": value} for value in ("student", 1, FairnessGate(2, 2, gamma=0.1))),
        *({"teacher": value} for value in ("forest", 1, [], LinearRegression(), LogisticRegression)),
        *({"student": value} for value in ("forest", 1, StandardScaler(), object())),
        *({"memory": value} for value in (1, object())),
        *({"n_jobs": value} for value in ("all", 1.5, True, 10**400)),
        {"ledger": object()},
        {"ledger": 1.0},
        *({"voting__sigma": value} for value in (0, -1, 1e-10, 1e10, np.nan, True)),
        *({"voting": "confident", "voting__sigma_threshold": value} for value in (0, -1, 1e-320, 1e300, np.nan, True)),
        *({"voting": "confident", "voting__max_answers": value} for value in (0, -1, 0.5, True)),
    ],
    ids=lambda parameters: ",".join(f"{k}={str(v)[:12]}" for k, v in parameters.items()),
)
def test_parameters_out_of_range_are_named_with_their_class(rows, parameters):
    ledger = parameters.get("ledger", PrivacyLedger())
    name = next(name for name in reversed(parameters) if name != "ledger" or len(parameters) == 1)
    given = {"classes": [0, 1], "n_teachers": 5, "gate": VoteGate(min_count=5), "ledger": ledger, **parameters}
    model = FairPATEClassifier().set_params(**given)
    part, _, own = name.rpartition("__")
    voting = "ConfidentVoting" if model.voting == "confident" or "Confident" in repr(model.voting) else "SoftVoting"
    owner = {"": "FairPATEClassifier", "gate": "VoteGate", "voting": voting}[part]
    with pytest.raises(ValueError, match=f"'{own}' parameter") as caught:
        model.fit(rows.X, rows.y, X_public=rows.public)
    assert owner in str(caught.value) or name == "teacher"  # that one is shared by all ensembles
    assert getattr(ledger, "entries", ()) == ()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"voting": SoftVoting(sigma=5.0)}, "given to SoftVoting cost epsilon=.*than the epsilon=1 asked for"),
        ({"voting": GNMaxVoting(sigma=5.0)}, "given to GNMaxVoting cost epsilon="),
        ({"voting": ConfidentVoting(sigma=5.0)}, "noise scale given to ConfidentVoting alone costs more"),
        ({"voting": ConfidentVoting(sigma=5.0, sigma_threshold=5.0)}, "given to ConfidentVoting cost epsilon="),
        ({"voting": ConfidentVoting(accounting="gdp", sigma=1.0)}, "not even one query"),
        ({"voting": ConfidentVoting(accounting="gdp", noise="discrete_gaussian")}, "needs noise='gaussian'"),
        ({"voting": SoftVoting(noise="discrete_gaussian"), "epsilon": 1e-6}, "scale of about .* votes"),
        ({"epsilon": 1e-300, "delta": 1e-320}, "so small that no noise is enough"),
        ({"teacher": torch.nn.Linear(3, 2)}, "cannot read rows of shape"),
        ({"teacher": torch.nn.Linear(4, 3)}, "one logit per row and class"),
        ({"teacher": torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))}, "BatchNorm"),
    ],
)
def test_parameters_that_do_not_fit_together(rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        attempt(rows, **parameters)


def test_a_student_that_is_a_class_is_refused_before_anything_is_spent(rows):
    with pytest.raises(ValueError, match=r"'student' parameter of FairPATEClassifier must be.*odds'\)\. Got <class"):
        attempt(rows, student=LogisticRegression, epsilon=1e4)


@pytest.mark.parametrize(
    "parameters",
    [*({"budget_share": share} for share in (0, 1, -0.5, np.nan, None)), {"n_rows": 0}, {"n_rows": 2.5}, {"n_bins": 1}],
)
def test_bad_parameters_of_synthetic_rows_are_refused_before_anything_is_spent(rows, parameters):
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of SyntheticRows"):
        attempt(rows, public_data=SyntheticRows(**parameters), gamma=None, fit={"X_public": None})


# ---- the ledger ----------------------------------------------------------------------------------------------
def test_exhausted_ledger_refuses_before_teachers_are_trained(rows):
    ledger, teachers = PrivacyLedger(epsilon=0.5), WatchedTeachers()
    with pytest.raises(BudgetExceededError, match="FairPATEClassifier would bring"):
        attempt(rows, ledger=ledger, memory=teachers)
    assert ledger.epsilon_spent == 0 and not teachers.rows
    attempt(rows, memory=teachers)
    assert teachers.rows, "they would have been seen"


def test_ledger_of_another_guarantee_is_refused(rows):
    ledger = PrivacyLedger()
    ledger.charge(GaussianDpEvent(5.0), label="x", protects="record", neighboring_relation="add or remove one record")
    with pytest.raises(ValueError, match="does not add up"):
        attempt(rows, ledger=ledger)


class Late(LogisticRegression):
    """Learns from made-up rows, on which it is tried before the noise, and not from those that votes are about."""

    def fit(self, X, y):
        if len(X) not in (4, 100):  # 2 or 50 of each class
            raise ValueError("late")
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore:.*noise_seed")
def test_a_student_that_fails_leaves_the_paid_votes_usable(rows):
    ledger = PrivacyLedger()
    model = FairPATEClassifier(epsilon=1e4, n_teachers=5, classes=[0, 1], random_state=0, ledger=ledger, student=Late())
    with pytest.raises(ValueError, match="late") as caught:
        model.fit(rows.X, rows.y, X_public=rows.public)
    assert len(ledger.entries) == 1 and "refit(student=...)" in caught.value.__notes__[0]
    repaired = model.refit(student=None)
    assert len(ledger.entries) == 1 and repaired.score(rows.X, rows.y) > 0.8


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score", "refit", "epsilon_spent_"])
def test_unfitted_use_is_named(rows, method):
    arguments = {"refit": (), "score": (rows.X, rows.y)}.get(method, (rows.X,))
    for cls in (PATEClassifier, FairPATEClassifier):
        with pytest.raises(NotFittedError, match=cls.__name__):
            getattr(cls(), method)(*arguments)


@pytest.mark.parametrize(
    ("voting", "arguments", "message"),
    [
        ("confident", {"gamma": 0.5}, "'gamma', which needs a new fit"),
        ("confident", {"gate": None}, "'gate', which needs a new fit"),
        ("gnmax", {"voting__threshold": 0.7}, "'voting__threshold', which needs a new fit"),
        ("soft", {"voting__threshold": 0.3}, "'threshold' parameter"),
        ("soft", {"gate__min_count": -1}, "'min_count' parameter"),
        ("soft", {"voting": "gnmax"}, "'voting', which needs a new fit"),
        ("soft", {"threshold": 0.7}, "'threshold', which is no parameter of FairPATEClassifier"),
        ("soft", {"gamma": -1}, "'gamma' parameter"),
        ("soft", {"gamma": True}, "'gamma' parameter"),
        ("soft", {"student": StandardScaler()}, "'student' parameter"),
    ],
)
def test_what_released_votes_cannot_answer(rows, voting, arguments, message):
    model = attempt(rows, voting=voting)
    with pytest.raises(ValueError, match=message):
        model.refit(**arguments)


def test_refitting_for_a_gap_needs_groups(rows):
    model = attempt(rows, public=rows.X_public, gamma=None)
    with pytest.raises(ValueError, match="groups"):
        model.refit(gamma=0.1)


# ---- every estimator -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(private_classes()))
def test_true_is_no_number(name):
    cls = private_classes()[name]
    wrong = cls(LogisticRegression()) if name in ("SyntheticDataClassifier", "PrivateThresholds") else cls()
    numbers = [one for one in ("epsilon", "public_n_rows") if one in wrong.get_params()]
    for parameter in numbers:
        with pytest.raises((ValueError, TypeError), match=f"'{parameter}' parameter of .* no bool"):
            clone(wrong).set_params(**{parameter: True})._validate_params()


@pytest.mark.parametrize("learner", [KMeans(2, n_init=1), LinearRegression(), IsolationForest(n_estimators=2)])
def test_what_is_no_classifier_is_no_learner_though_it_answers_by_names_of_classes(rows, learner):
    given = {"classes": [0, 1], "groups": [0, 1], "ledger": PrivacyLedger()}
    for model in (
        SyntheticDataClassifier(learner, bounds=(-9, 9), **given),
        FairPATEClassifier(student=learner, **given),
    ):
        with pytest.raises(ValueError, match=r"must be a classifier\. Got .*, an? \w+"):
            model.fit(rows.X, rows.y, sensitive_features=rows.groups)
    assert not given["ledger"].entries


def test_rows_in_chunks_are_refused_with_the_call_that_gathers_them(rows, tmp_path):
    table = pd.DataFrame(rows.X, columns=NAMES).assign(y=rows.y)
    table.to_parquet(tmp_path / "rows.parquet")
    table.to_csv(tmp_path / "rows.csv")
    features = table[NAMES]
    model = LogisticRegression().fit(features, rows.y)
    schema = Schema({name: Number(-9, 9) for name in NAMES} | {"y": Category([0, 1])}, label="y")
    private = PATEClassifier(schema=schema, n_teachers=5, random_state=0).fit(table, X_public=features[:50] + 0.5)
    for rows_in_chunks, way in (
        (str(tmp_path / "rows.parquet"), r"pandas\.read_parquet\(X\)"),
        (pl.scan_parquet(tmp_path / "rows.parquet"), r"X\.collect\(\)"),
    ):
        for call in (FairnessCalibrator(model).fit, IDP3(model).fit, private.predict, private.score):
            with pytest.raises(ValueError, match=f"in chunks.* Pass {way}"):
                call(rows_in_chunks)
    with pytest.raises(ValueError, match=r"rows\.csv is no Parquet file.*pandas\.read_csv"):
        PATEClassifier(schema=schema).fit(str(tmp_path / "rows.csv"), X_public=features[:50] + 0.5)


def test_a_warning_of_small_groups_that_is_an_error_leaves_the_paid_votes_usable(rows):
    ledger, gate = PrivacyLedger(), VoteGate(min_count=10**6)
    model = FairPATEClassifier(epsilon=8.0, classes=[0, 1], groups=[0, 1], gate=gate, random_state=0, ledger=ledger)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The smallest group")
        with pytest.raises(FairnessWarning):  # once the fit is through
            model.fit(rows.X, rows.y, sensitive_features=rows.groups)
    assert model.score(rows.X, rows.y) > 0.5
    assert model.refit(gate=VoteGate()).student_gap_ < 1 and len(ledger.entries) == 1
