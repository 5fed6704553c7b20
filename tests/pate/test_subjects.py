"""Several rows of one subject: who they are dealt to, what they add to each release, and what follows their number."""

import unicodedata
import uuid
import warnings
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp import (
    IDP3,
    FairClippingClassifier,
    FairDPSGDClassifier,
    FairDPSGDRegressor,
    FairnessCalibrator,
    FairPATEClassifier,
    ParetoSearchCV,
    PATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivacyLedger,
    PublicData,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
    SyntheticRows,
    _class_sums,
)
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning, UnplannedReleaseError, UtilityWarning
from skfairdp.lagrangian import LagrangianClassifier
from skfairdp.postprocessing import PrivateThresholds
from skfairdp.privacy import GaussianDpEvent, NeighboringRelation, PublicReads
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import Subjects
from tests._tools.sources import FixedAnswers, installed

N = 90
COLUMNS = list("abc")


def visits(seed=0, n=N, most=6):
    """Rows of subjects, those of one in different places."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(1000 + np.arange(n), rng.integers(1, most + 1, n)))
    X = pd.DataFrame(rng.normal(size=(len(ids), 3)), columns=COLUMNS)
    return X, (X["a"] > 0).astype(int), pd.Series(ids, name="patient_id"), rng.integers(0, 2, len(ids))


def public_rows():
    return pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=COLUMNS)


def read(ids, n_rows=None):
    return Subjects.read(None, ids, len(ids) if n_rows is None else n_rows, owner="a fit")


# ---- who learns from whose rows --------------------------------------------------------------------------------------
def test_all_rows_of_a_subject_have_one_teacher_whatever_else_is_in_the_table():
    ids = visits()[2]
    teachers = read(ids).parts(7, np.random.default_rng(0))
    of = dict(zip(ids, teachers, strict=True))
    assert all(of[one] == teacher for one, teacher in zip(ids, teachers, strict=True))
    assert set(teachers) == set(range(7))
    rng = np.random.default_rng(3)
    for others in (ids[rng.permutation(len(ids))], ids[ids != ids[0]], pd.concat([ids, ids[:5]]), ids.astype(str)):
        found = read(others).parts(7, np.random.default_rng(0))
        assert all(of[int(one)] == teacher for one, teacher in zip(others, found, strict=True))


def test_subjects_are_as_many_as_their_ids_however_these_are_written_and_however_many_rows_there_are():
    ids = visits()[2]
    for same in (ids, ids.to_numpy(), ids.astype(str), ids.astype(float).tolist(), pd.concat([ids, ids])):
        assert read(same).n == N
    assert read([1, "1", 1.0, 2]).n == 2
    listed = pd.Categorical([1, 2, 2], categories=[1, 2, 3])  # one has no rows
    for same in (listed, pd.CategoricalIndex(listed), pd.Series(listed), pd.DataFrame({"patient_id": listed})):
        assert read(same).n == 3


def sums_of(units, y, subject=None, n_classes=2):
    """What subjects add to the sums, whatever noise there is."""
    subject = np.zeros(len(y), dtype=np.int64) if subject is None else subject
    order = np.lexsort([y, subject])
    return _class_sums._of_subjects(units[order], y[order], subject[order], n_classes)


def drawn_subject(rng, n_features=3, n_classes=2):
    """Rows within the unit ball on their grid: alike or not, at the ends of one line, of one class or of all."""
    n = int(rng.choice([1, 2, 3, 7, 40, 400]))
    one = rng.normal(size=n_features)
    rows = {
        "any": rng.normal(size=(n, n_features)), "alike": np.tile(one, (n, 1)), "none": np.zeros((n, n_features)),
        "either end": one * rng.choice([-1, 1], n)[:, None],
    }[rng.choice(["any", "alike", "none", "either end"])]  # fmt: skip
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    units = rows / lengths * (1 - 1e-14) * rng.choice([1.0, 0.3, 1.0])
    kind = rng.choice(["first", "last", "any", "by sign"])
    y = {"first": np.zeros(n), "last": np.full(n, n_classes - 1), "any": rng.integers(0, n_classes, n),
         "by sign": units[:, 0] > 0}[kind]  # fmt: skip
    return np.trunc(units / _class_sums.GRID) * _class_sums.GRID, np.asarray(y, dtype=np.int64)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_move_by_no_more_than_two_whatever_rows_a_subject_has(n_classes):
    """By brute force: any two of 1,500 subjects, and none; and two at opposite ends move them as far as that."""
    rng = np.random.default_rng(0)
    added = [sums_of(*drawn_subject(rng, n_classes=n_classes), n_classes=n_classes).ravel() for _ in range(1500)]
    end = np.trunc([[1 - 1e-9, 0, 0]] / np.float64(_class_sums.GRID)) * _class_sums.GRID
    ends = [sums_of(one, np.array([0]), n_classes=n_classes).ravel() for one in (end, -end)]
    added = np.array([np.zeros_like(added[0]), *ends, *added])
    assert (np.linalg.norm(added, axis=1) <= np.sqrt(2)).all()
    squares = np.einsum("ij,ij->i", added, added)
    farthest = np.sqrt((squares[:, None] + squares - 2 * added @ added.T).max())
    assert 1.999 < farthest <= 2 + 1e-12


def test_rows_of_a_subject_that_say_different_things_count_for_more_than_their_mean_and_one_counts_as_a_row():
    rng = np.random.default_rng(0)
    units = np.trunc(np.eye(4) * 0.9 / _class_sums.GRID) * _class_sums.GRID
    found = sums_of(units, np.array([0, 1, 0, 1]))
    assert found[:, 0].sum() > 1.5 and (found[:, 0] == found[0, 0]).all()
    np.testing.assert_allclose(np.linalg.norm(found), np.sqrt(2), rtol=1e-5)
    row = np.trunc(rng.normal(size=(1, 4)) / 3 / _class_sums.GRID) * _class_sums.GRID
    np.testing.assert_array_equal(sums_of(row, np.array([1])), [[0, 0, 0, 0, 0], [1, *row[0]]])
    alike = sums_of(np.repeat(row / np.linalg.norm(row), 7, axis=0), np.zeros(7, dtype=int))
    np.testing.assert_allclose(alike[0, 0], 1, rtol=1e-4)  # as their mean


def test_sums_of_subjects_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    subjects = [drawn_subject(rng) for _ in range(300)]
    units, y = (np.concatenate(column) for column in zip(*subjects, strict=True))
    subject = np.repeat(np.arange(300), [len(labels) for _, labels in subjects])
    expected = sum(sums_of(*one) for one in subjects)
    for _ in range(3):
        mixed = rng.permutation(len(y))
        np.testing.assert_array_equal(sums_of(units[mixed], y[mixed], subject[mixed]), expected)
    assert (expected / _class_sums.GRID == np.rint(expected / _class_sums.GRID)).all()


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_sums_do_not_follow_where_blocks_end(at_once, monkeypatch):
    world, found = visits(), []
    for most in (10**6, at_once):
        monkeypatch.setattr("skfairdp._utils._containers.ROWS_AT_ONCE", most)
        with installed(FixedAnswers()) as source:
            PATEClassifier(epsilon=100.0, classes=[0, 1], random_state=0).fit(
                *world[:2], X_public=public_rows(), subject=world[2]
            )
        found.append(source.log[0][1])
    np.testing.assert_array_equal(*found)


def test_one_row_of_each_subject_follows_from_its_own_rows_alone():
    ids = visits()[2]
    kept = read(ids).one_row_each
    assert sorted(ids[kept]) == sorted(set(ids))
    other = pd.concat([ids, ids[ids == 1003], pd.Series([1005, 1003])], ignore_index=True)
    both = [dict(zip(one[rows], rows, strict=True)) for one, rows in ((ids, kept), (other, read(other).one_row_each))]
    assert {k for k in both[0] if both[0][k] != both[1][k]} <= {1003, 1005}


# ---- what a subject adds ---------------------------------------------------------------------------------------------
SIZES = {"sums": {"epsilon": 100.0}, "counts": {"epsilon": 0.6}, "given": {"epsilon": 8.0, "n_teachers": 9},
         "own rows": {"epsilon": 40.0, "public_data": SyntheticRows(n_rows=200)}}  # fmt: skip


def releases_of(world, settings):
    X, y, ids, groups = world
    own = "public_data" in settings
    model = FairPATEClassifier(classes=[0, 1], groups=[0, 1], random_state=0, gamma=0.1, **settings)
    given = {"sensitive_features": groups} if own else {"X_public": public_rows(), "sensitive_features_public":
                                                        np.arange(60) % 2}  # fmt: skip
    with installed(FixedAnswers()) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so much noise, so little, so few rows
        model.fit(X, y, subject=ids, **given)
    return source.log, model


def other_rows(world, rng, how):
    """The same table but for all rows of one subject: extreme ones of either kind, as many, more, one or none."""
    X, y, ids, groups = world
    one = rng.choice(ids.unique())
    kept = (ids != one).to_numpy()
    n = {"others": int((~kept).sum()), "more": 40, "one": 1, "none": 0}[how]
    rows = pd.DataFrame(rng.choice([1e12, -1e12, 0.0, 3.0], size=(n, 3)), columns=COLUMNS)
    # Its rows are in any places; those of others keep their order.
    at = np.argsort(np.r_[np.linspace(0, 1, kept.sum()), rng.random(n)], kind="stable")
    mixed = [
        np.concatenate([np.asarray(column)[kept], new])[at]
        for column, new in ((y, rng.integers(0, 2, n)), (ids, np.full(n, one)), (groups, rng.integers(0, 2, n)))
    ]
    table = pd.concat([X[kept], rows]).iloc[at].reset_index(drop=True)
    return table, mixed[0], pd.Series(pd.Categorical(mixed[1], categories=sorted(ids.unique()))), mixed[2]


@pytest.mark.parametrize("name", SIZES)
def test_no_release_moves_further_than_declared_where_all_rows_of_a_subject_are_others(name):
    rng, world = np.random.default_rng(0), visits()
    here, model = releases_of(world, SIZES[name])
    farthest = np.zeros(len(here))
    for how in ("others", "more", "one", "none") * 3:
        there, other = releases_of(other_rows(world, rng, how), SIZES[name])
        assert model.privacy_.event == other.privacy_.event
        assert [one for one, _ in here] == [one for one, _ in there]
        for i, ((mechanism, a), (_, b)) in enumerate(zip(here, there, strict=True)):
            moved = np.abs(np.asarray(a, dtype=float) - np.asarray(b, dtype=float))
            rows = moved[..., 1:] if type(mechanism).__name__ in ("NoisyVotes", "LaplaceCounts") else moved
            each = rows.reshape(len(rows), -1) if type(mechanism).__name__ == "NoisyVotes" else rows.reshape(1, -1)
            move = float(np.linalg.norm(each, axis=1).max())
            farthest[i] = max(farthest[i], move / mechanism.sensitivity)
    assert (farthest <= 1 + 1e-12).all() and farthest.max() > 0.7, farthest


def test_where_each_subject_has_one_row_sums_are_those_of_rows():
    rng = np.random.default_rng(0)
    sums = {}
    for ids in (None, np.arange(N)):
        world = visits(most=1)
        with installed(FixedAnswers()) as source:
            PATEClassifier(epsilon=100.0, classes=[0, 1], random_state=0).fit(
                *world[:2], X_public=public_rows(), subject=None if ids is None else rng.permutation(ids)
            )
        sums[ids is None] = source.log[0][1]
    assert np.array_equal(sums[True], sums[False])


# ---- what is public --------------------------------------------------------------------------------------------------
def fitted(world, subject, make=PATEClassifier, **more):
    X, y = world[:2]
    return make(epsilon=8.0, classes=[0, 1], random_state=0, **more).fit(X, y, X_public=public_rows(), subject=subject)


def test_the_number_of_subjects_is_on_the_list_and_that_of_rows_is_nowhere():
    world = visits()
    model = fitted(world, world[2])
    facts = {fact.name: fact.value for fact in model.privacy_.public}
    assert facts["number of subjects"] == N and facts["ids of the subjects"] == "patient_id"
    assert "number of private rows" not in facts
    n_rows = str(len(world[0]))
    assert n_rows not in model.privacy_statement().to_json()
    assert model.privacy_.rows_of == "patient_id" and "'patient_id'" in str(model.privacy_)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_twice_the_rows_change_nothing_that_is_planned(epsilon, own):
    X, y, ids, _ = visits()
    model = PATEClassifier(epsilon=epsilon, classes=[0, 1])
    one, two = (
        model._plan(
            model._read(
                pd.concat([X] * k, ignore_index=True),
                np.tile(y, k),
                X_public=None if own else public_rows(),
                subject=np.tile(ids, k),
            )
        )
        for k in (1, 2)
    )
    assert one == two and one.relation == "replace all rows of one subject"


def test_warnings_and_errors_count_subjects():
    X, y, ids, _ = visits()
    with pytest.raises(ValueError, match=f"more teachers than subjects: X has rows of {N} subjects"):
        PATEClassifier(n_teachers=N + 1, classes=[0, 1]).fit(X, y, X_public=public_rows(), subject=ids)
    with pytest.warns(UtilityWarning, match=f"With {N} subjects at epsilon=0.1"):
        PATEClassifier(epsilon=0.1, classes=[0, 1]).fit(X, y, X_public=public_rows(), subject=ids)
    with pytest.warns(PrivacyLeakWarning, match=f"above 1 / {N}, one over the number of subjects"):
        PATEClassifier(epsilon=8.0, delta=0.02, classes=[0, 1]).fit(X, y, X_public=public_rows(), subject=ids)


@pytest.mark.parametrize(("n_rows", "delta", "advised"), [(60, 0.02, "1e-05"), (360_000, 1e-5, "1e-07")])
def test_the_delta_that_is_advised_is_below_one_over_the_number_of_rows(n_rows, delta, advised):
    """Found: of 1e-5 that 1e-5 is usual."""
    X, y, public = np.random.default_rng(0).normal(size=(n_rows, 2)), np.arange(n_rows) % 2, np.zeros((8, 2))
    model = PATEClassifier(epsilon=1.0, delta=delta, n_teachers=5, classes=[0, 1])
    with pytest.warns(PrivacyLeakWarning, match=rf"Choose delta well below that, as {advised}\."):
        model.fit(X, y, X_public=public)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        model.set_params(delta=float(advised)).fit(X, y, X_public=public)


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        ("visit", "'subject' of PATEClassifier names 'visit', which is not exactly one column of X"),
        ([1, 2], "inconsistent length: it must have one entry per row of X"),
        ("missing", "subject of PATEClassifier contains missing values"),
    ],
)
def test_ids_that_cannot_be_used_are_refused_in_words_that_hold_none(subject, says):
    world = visits()
    ids = world[2].astype(object)
    ids[3] = None
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=says):
        fitted(world, ids if subject == "missing" else subject, ledger=ledger)
    assert not ledger.entries


def chunks_of_a_file(text, n_rows):
    """What ``pandas.read_csv(chunksize=)`` hands out: each chunk has its own types."""
    return lambda: pd.read_csv(StringIO(text), chunksize=n_rows)


BY_COLUMNS = Schema({**{name: Number(-3, 3) for name in COLUMNS}, "y": Category([0, 1])}, label="y")


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning", "ignore:.*draws its noise from 'noise_seed'")
@pytest.mark.parametrize("written", ["{}.0", "{:>6}", "{}.50", "{}e3", "{:06}", "P{}"])
def test_a_text_among_the_ids_of_a_chunk_makes_no_others_of_the_rest(written):
    """Found: ids like 12.10 were numbers in the chunks without a text, and so two subjects each."""
    X, y, ids, _ = visits()
    table = X.assign(y=y, pid=[written.format(one) for one in ids])
    other = table.iloc[[0]].assign(pid="A1")
    counted, votes = set(), []
    for n_rows, parts in ((60, [other, table]), (60, [table, other]), (1000, [other, table])):
        text = pd.concat(parts).to_csv(index=False)
        model = PATEClassifier(epsilon=8.0, schema=BY_COLUMNS, n_teachers=5, random_state=0, noise_seed=3)
        model.fit(chunks_of_a_file(text, n_rows), X_public=public_rows(), subject="pid")
        counted.add(next(fact.value for fact in model.privacy_.public if fact.name == "number of subjects"))
        votes.append(model.released_votes_)
    assert counted == {N + 1}
    assert all(np.array_equal(votes[0], one) for one in votes)


@pytest.mark.filterwarnings("ignore:Columns .* have mixed types")
def test_ids_of_mixed_types_in_one_table_are_told_apart_as_in_a_table_of_texts():
    ids = pd.Series([12.1, "12.10", " 7", 7, "A1", "A1 ", True, "1"], dtype=object)
    subjects = read(ids)
    assert subjects.n == 4 and subjects.of[::2].tolist() == subjects.of[1::2].tolist()


@pytest.mark.parametrize(
    "forms",
    [
        (b"abc", memoryview(b"abc"), "abc"),  # what drivers of databases give of one column
        ("é", unicodedata.normalize("NFD", "é")),
        (Decimal("12345678901234567890.00"), "12345678901234567890.00", 12345678901234567890, "12345678901234567890.0"),
        ("1e20", 10**20, Decimal("1E+20")),
        (uuid.UUID(int=5), str(uuid.UUID(int=5))),
    ],
)  # fmt: skip
def test_an_id_has_one_text_in_all_its_forms(forms):
    assert read(pd.Series(forms, dtype=object)).n == 1


@pytest.mark.parametrize("one", [object(), frozenset("ab"), Fraction(1, 2), 2 + 1j, pd.Interval(0, 1)])
def test_an_id_whose_text_need_not_follow_its_value_is_refused(one):
    """Two equal ones could have two texts, such as their addresses, and one person would be two subjects in chunks."""
    with pytest.raises(ValueError, match="must be whole numbers or texts"):
        read(pd.Series([1, one], dtype=object))


@pytest.mark.parametrize("where", ["memory", "chunks"])
@pytest.mark.parametrize("name", ["y", "a"])
def test_a_column_that_is_learned_from_says_of_nobody_whose_a_row_is(name, where):
    X, y, ids, _ = visits()
    table, ledger = X.assign(y=y, patient_id=ids), PrivacyLedger()
    model = PATEClassifier(epsilon=8.0, schema=BY_COLUMNS, ledger=ledger)
    with pytest.raises(
        ValueError, match=f"'subject' of PATEClassifier names '{name}', which is a column of its schema"
    ):
        model.fit(table if where == "memory" else lambda: [table], X_public=public_rows(), subject=name)
    model = PATEClassifier(epsilon=8.0, classes=[0, 1], ledger=ledger)
    with pytest.raises(ValueError, match="names 'y', which is the column of labels"):
        model.fit(X, y.rename("y"), X_public=public_rows(), subject=y.rename("y"))
    assert not ledger.entries


@pytest.mark.parametrize("where", ["memory", "chunks"])
def test_infinite_ids_are_refused(where):
    X, y, ids, _ = visits()
    table, ledger = X.assign(y=y, patient_id=ids.astype(float).replace(1003, np.inf)), PrivacyLedger()
    model = PATEClassifier(epsilon=8.0, schema=BY_COLUMNS, ledger=ledger)
    with pytest.raises(ValueError, match="Some are infinite"):
        model.fit(table if where == "memory" else lambda: [table], X_public=public_rows(), subject="patient_id")
    assert not ledger.entries


def test_a_table_of_one_column_names_the_subjects():
    X, y, ids, _ = visits()
    model = fitted((X.assign(patient_id=ids), y), ids.to_frame())
    assert model.privacy_.rows_of == "patient_id" and model.feature_names_in_.tolist() == COLUMNS


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning", "ignore::skfairdp.exceptions.FairnessWarning")
def test_teachers_for_the_group_are_as_many_as_subjects_allow():
    X, y, ids, groups = visits()
    model = SFPATEClassifier(epsilon=0.1, groups=[0, 1], classes=[0, 1], random_state=0, variant="teacher")
    one, two = (
        model._plan(
            model._read(
                pd.concat([X] * k, ignore_index=True), np.tile(y, k), sensitive_features=np.tile(groups, k),
                subject=np.tile(ids, k),
            )
        ).n_teachers
        for k in (1, 5)
    )  # fmt: skip
    assert one == two
    given = {"sensitive_features": groups, "subject": ids}
    with pytest.raises(ValueError, match=f"more teachers than subjects: X has rows of {N} subjects"):
        model.set_params(n_teachers=N + 1).fit(X, y, **given)
    with pytest.warns(FairnessWarning, match=rf"each of 30 teachers learns fairness from {N // 30} subjects"):
        model.set_params(n_teachers=30).fit(X, y, **given)


# ---- by the name of a column -----------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
@pytest.mark.parametrize("make", [PATEClassifier, FairPATEClassifier])
def test_a_column_of_ids_is_no_feature_and_may_stay_in_the_rows_of_a_prediction(make):
    X, y, ids, _ = visits()
    table = X.assign(patient_id=ids)
    more = {} if make is PATEClassifier else {"gamma": None}
    by_name = fitted((table, y), "patient_id", make, noise_seed=1, **more)
    by_ids = fitted((X, y), ids.to_numpy(), make, noise_seed=1, **more)
    assert by_name.feature_names_in_.tolist() == COLUMNS
    assert np.array_equal(by_name.released_votes_, by_ids.released_votes_)
    assert np.array_equal(by_name.predict(table), by_ids.predict(X)) and by_name.score(table, y) == by_ids.score(X, y)
    assert (by_name.privacy_.rows_of, by_ids.privacy_.rows_of) == ("patient_id", "")
    assert fitted((X, y), None, make, **more).privacy_.neighboring_relation == "replace one record"


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
def test_by_a_schema_the_column_need_not_be_one_of_it():
    X, y, ids, _ = visits()
    schema = Schema({**{name: Number(-3, 3) for name in COLUMNS}, "y": Category([0, 1])}, label="y")
    model = PATEClassifier(epsilon=8.0, schema=schema, random_state=0)
    model.fit(X.assign(y=y, patient_id=ids), X_public=public_rows(), subject="patient_id")
    assert (model.privacy_.rows_of, model.n_features_in_) == ("patient_id", 3)


def test_a_column_that_is_called_as_the_ids_are_is_no_feature():
    X, y, ids, _ = visits()
    model = fitted((X.assign(patient_id=ids), y), ids)
    assert model.feature_names_in_.tolist() == COLUMNS and model.privacy_.rows_of == "patient_id"
    with pytest.warns(PrivacyLeakWarning, match="'patient_id', which is an id by its name. The model learns from it"):
        PATEClassifier(epsilon=8.0, classes=[0, 1]).fit(
            X.assign(patient_id=ids), y, X_public=public_rows().assign(patient_id=0), subject=ids.to_numpy()
        )


def test_a_calibrator_takes_rows_with_and_without_the_column_of_ids_of_its_model():
    X, y, ids, _ = visits()
    public = public_rows()
    model = fitted((X.assign(patient_id=ids), y), "patient_id")
    answers = []
    for rows in (public, public.assign(patient_id=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few rows
            calibrator = FairnessCalibrator(model, gamma=0.2).fit(
                rows, public["a"] > 0, sensitive_features=np.arange(60) % 2
            )
        answers += [calibrator.predict(public), calibrator.predict(public.assign(patient_id=7))]
        assert calibrator.feature_names_in_.tolist() == COLUMNS
    assert all(np.array_equal(answers[0], one) for one in answers)


class RowByRow(FairPATEClassifier):
    """Takes no ids."""

    def fit(self, X, y=None):
        return super().fit(X, y)


# ---- other ways in ---------------------------------------------------------------------------------------------------
def test_what_does_not_protect_subjects_says_so():
    X, y, ids, groups = visits()
    with pytest.raises(TypeError, match="It has no subject: it does not protect several rows of one person together"):
        LagrangianClassifier().fit(X, y, sensitive_features=groups, subject=ids)
    schema = Schema({"a": Number(-9, 9), "sex": Category(["f", "m"]), "y": Category([0, 1])}, label="y", groups="sex",
                    subject="patient_id")  # fmt: skip
    with pytest.raises(ValueError, match="protects each row by itself, and its schema says that rows are those of"):
        RowByRow(schema=schema).fit(X.assign(y=y, sex="f", patient_id=ids))
    with pytest.raises(ValueError, match="got subject='hh', and its schema says that rows are those of one"):
        FairDPSGDClassifier(schema=schema, lam=0).fit(X.assign(y=y, sex="f", patient_id=ids, hh=1), subject="hh")


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("model", [RandomizedResponseClassifier, SFPATEClassifier, PFLDClassifier])
def test_thresholds_do_not_add_up_with_a_model_for_the_group_of_a_subject(model, by_name):
    ledger = PrivacyLedger()
    X, y, ids, groups = visits()
    ids, groups = ids if by_name else ids.to_numpy(), (ids % 2).to_numpy()
    first = model(epsilon=8.0, classes=[0, 1], groups=[0, 1], random_state=0, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first.fit(X, y, sensitive_features=groups, subject=ids)
    for subject in (None, ids):
        with pytest.raises(ValueError, match="around a model that protects groups alone give none to either"):
            PrivateThresholds(first, groups=[0, 1], ledger=ledger).fit(X, y, sensitive_features=groups, subject=subject)
    assert len(ledger.entries) == 1


def test_a_model_fitted_on_rows_alone_is_not_set_right_by_subject_nor_the_other_way_round():
    X, y, ids, groups = visits()
    for inside, outside in ((None, ids), (ids, None)):
        model = SyntheticDataClassifier(epsilon=4.0, bounds=(-6, 6), dtypes=float, classes=[0, 1], random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, subject=inside)
        with pytest.raises(ValueError, match="Give both the same 'subject', or none"):
            PrivateThresholds(model, groups=[0, 1]).fit(X, y, sensitive_features=groups, subject=outside)


@pytest.mark.parametrize("relation", [relation for relation in NeighboringRelation if relation.of_subjects])
def test_no_fit_spends_for_subjects_whose_ids_it_has_not_read(relation):
    ledger = PrivacyLedger()
    plan = SimpleNamespace(event=GaussianDpEvent(5.0), relation=relation, releases=())
    with pytest.raises(UnplannedReleaseError, match=r"has not read 'subject'\. Nothing was spent"):
        PATEClassifier(ledger=ledger)._spend(plan, PublicReads())
    assert not ledger.entries


def test_private_rows_are_no_public_ones_where_ids_are_given():
    X, y, ids, groups = visits()
    with pytest.raises(ValueError, match="X_public of PFGuardGenerator has rows of X"):
        PFGuardGenerator(classes=[0, 1], groups=[0, 1]).fit(X, y, sensitive_features=groups, X_public=X, subject=ids)


def test_public_rows_of_a_generator_may_hold_a_column_of_ids_as_well():
    X, y, ids, groups = visits()
    public = public_rows().assign(patient_id=range(60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = PFGuardGenerator(
            epsilon=8.0, bounds=(-6, 6), dtypes=float, classes=[0, 1], groups=[0, 1], random_state=0
        )
        made.fit(X.assign(patient_id=ids), y, sensitive_features=groups, X_public=public, subject="patient_id")
    assert list(made.sample(3).columns)[:3] == COLUMNS


def test_ids_are_routed_and_go_through_a_pipeline():
    X, y, ids, _ = visits()
    model = PATEClassifier(epsilon=8.0, classes=[0, 1], public_data=None, random_state=0)
    plain = make_pipeline(FunctionTransformer(), model)
    plain.fit(X, y, pateclassifier__subject=ids, pateclassifier__X_public=public_rows())
    assert plain[-1].privacy_.protects == "subject"
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(FunctionTransformer(), model.set_fit_request(subject=True))
        routed.fit(X, y, subject=ids, X_public=public_rows())
        assert routed[-1].privacy_.protects == "subject"


def test_nothing_of_the_ids_outlives_the_fit():
    world = visits()
    model = fitted((world[0].assign(patient_id=world[2]), world[1]), "patient_id")
    held = [value for value in vars(model).values() if isinstance(value, Subjects | pd.Series | pd.DataFrame)]
    assert not held and not isinstance(model._lessons, Subjects)


# ---- a column that is called like an id ------------------------------------------------------------------------------
def table_with(name, n_rows=400):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((n_rows, 2)), columns=["a", "b"])
    return table.assign(**{name: np.arange(n_rows) // 4}), (table["a"] > 0).astype(int).to_numpy()


ESTIMATORS = {
    "PATE": (lambda: FairPATEClassifier(gamma=None, classes=[0, 1]), "fit.*subject='{}'"),
    "DP-SGD": (lambda: FairDPSGDClassifier(lam=0.0, classes=[0, 1]), "fit.*subject='{}'"),
    "generator": (lambda: PFGuardGenerator(classes=[0, 1], balance=None), "fit.*subject='{}'"),
    "row by row": (lambda: RowByRow(gamma=None, classes=[0, 1]), "regressors and generators protect"),
}


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning", "ignore:.*types or categories")
@pytest.mark.parametrize("which", ESTIMATORS)
@pytest.mark.parametrize("name", ["patient_id", "PatientId", "customer", "account no", "household id"])
def test_a_column_that_is_called_like_an_id_is_told_of_by_its_name(which, name):
    made, said = ESTIMATORS[which]
    X, y = table_with(name)
    with pytest.warns(PrivacyLeakWarning, match=f"column {name!r}, which is an id by its name.*{said.format(name)}"):
        made().fit(X, y)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("name", ["hidden", "paid", "idle", "humid", "client_age", "number", "students", "bid", "id"])
def test_other_names_are_not(name):
    X, y = table_with(name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FairDPSGDClassifier(lam=0.0, classes=[0, 1]).fit(X, y)
    assert not any("which is an id by its name" in str(one.message) for one in caught)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("as_column", [True, False])
def test_nor_is_it_where_subjects_are_given(as_column):
    X, y = table_with("patient_id")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subject = "patient_id" if as_column else X["patient_id"]
        FairPATEClassifier(gamma=None, classes=[0, 1]).fit(X, y, subject=subject)
    assert not any("which is an id by its name" in str(one.message) for one in caught)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning", "ignore:.*given to fit")
@pytest.mark.parametrize(
    "folded",
    [
        lambda model, X, y, ids: GridSearchCV(model, {"epsilon": [5.0]}, cv=KFold(2)).fit(X, y, subject=ids),
        lambda model, X, y, ids: cross_val_score(model, X, y, cv=KFold(2), params={"subject": ids}),
    ],
)
def test_folds_that_cut_through_subjects_are_told_of(folded):
    X, y = table_with("visit", 300)
    X, ids = X[["a", "b"]], X["visit"].to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        model = PATEClassifier(epsilon=5.0, classes=[0, 1], random_state=0)
        model.set_fit_request(subject=True, X_public=False)
        with pytest.warns(PrivacyLeakWarning, match="on some of the rows. The number of subjects among them"):
            folded(model, X, y, ids)


FEW = {
    "synthetic rows": lambda: SyntheticDataClassifier(bounds=(-5.0, 5.0), dtypes=float, classes=[0, 1], groups=[0, 1]),
    "PF-LD": lambda: PFLDClassifier(classes=[0, 1], groups=[0, 1]),
    "SF-PATE": lambda: SFPATEClassifier(classes=[0, 1], groups=[0, 1]),
    "randomised response": lambda: RandomizedResponseClassifier(classes=[0, 1], groups=[0, 1]),
    "thresholds": lambda: PrivateThresholds(LogisticRegression().fit(*visits()[:2]), groups=[0, 1]),
    "amounts": lambda: FairDPSGDRegressor(bounds=(0, 1), groups=[0, 1], gamma=0.1),
    "clipping": lambda: FairClippingClassifier(classes=[0, 1], groups=[0, 1]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_subjects", [1, 2, 7])
@pytest.mark.parametrize("name", FEW)
def test_few_subjects_are_fitted_and_stated_as_many_are(name, n_subjects):
    X, y, ids, groups = visits()
    model = FEW[name]().fit(X, y, sensitive_features=groups, subject=ids % n_subjects)
    assert model.privacy_.rows_of == "patient_id" and model.privacy_.neighboring_relation.of_subjects


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inside", [False, True])
def test_a_filter_of_predictions_hands_ids_on_to_what_it_fits(inside):
    X, y, ids, groups = visits()
    model = FairDPSGDClassifier(classes=[0, 1], groups=[0, 1], lam=0.0, random_state=0)
    idp = IDP3(model, groups=[0, 1], gamma=0.2)
    if inside:  # and in a search
        search, shown = ParetoSearchCV(idp, {"gamma": [0.1, 0.2]}, random_state=0), PublicData(X, groups, y)
        given = {"sensitive_features": groups, "subject": "patient_id", "validation": shown}
        found = search.fit(X.assign(patient_id=ids), y, **given).privacy_
    else:
        fitted = idp.fit(X.assign(patient_id=ids), y, sensitive_features=groups, subject="patient_id")
        found = fitted.estimator_.privacy_
        for table in (X, X.assign(patient_id=ids)):
            assert len(fitted.predict(table, sensitive_features=groups)) == len(X)
    assert found.protects == "subject" and found.rows_of == "patient_id"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("routing", [False, True])
def test_a_calibrator_hands_ids_on_to_what_it_fits(inside, routing):
    X, y, ids, groups = visits()
    table, shown = X.assign(patient_id=ids), X + 0.01
    model = FairDPSGDClassifier(classes=[0, 1], groups=[0, 1], lam=0.0, random_state=0)
    calibrator = FairnessCalibrator(model, method="threshold", groups=[0, 1])
    given = {"sensitive_features": groups, "subject": "patient_id"}
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            model.set_fit_request(subject=True, sensitive_features=True)
        if inside:
            search = ParetoSearchCV(calibrator, {"gap_weight": [0.5, 1.0]}, random_state=0)
            found = search.fit(table, y, X_public=shown, sensitive_features_public=groups, **given).privacy_
        else:
            fitted = calibrator.fit(table, y, X_public=PublicData(table + 0.01, groups, y), **given)
            found = fitted.privacy_
            answers = [fitted.predict(rows) for rows in (X, table)]
            np.testing.assert_array_equal(*answers)
    assert found.protects == "subject" and found.rows_of == "patient_id"


def test_a_calibrator_that_fits_nothing_refuses_ids():
    X, y, ids, groups = visits()
    fitted = FairnessCalibrator(LogisticRegression().fit(X, y), groups=[0, 1])
    with pytest.raises(ValueError, match="'subject' protects nobody here"):
        fitted.fit(X, sensitive_features=groups, subject=ids)
    with pytest.raises(ValueError, match="hands subject on to its estimator, and LogisticRegression takes none"):
        FairnessCalibrator(LogisticRegression(), groups=[0, 1]).fit(
            X, y, sensitive_features=groups, subject=ids, X_public=PublicData(X, groups)
        )


def test_a_filter_around_what_takes_no_ids_refuses_them():
    X, y, ids, groups = visits()
    with pytest.raises(ValueError, match="hands subject on to its estimator, and LogisticRegression takes none"):
        IDP3(LogisticRegression(), groups=[0, 1]).fit(X, y, sensitive_features=groups, subject=ids)
