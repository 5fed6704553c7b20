"""Several rows of one subject, read in chunks: the fit in memory, wherever chunks end; and nothing follows how many."""

import contextlib
import io
import itertools
import re
import shutil
import warnings
from collections import namedtuple
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    FairPATEClassifier,
    KeyedRows,
    ParetoSearchCV,
    PATEClassifier,
    PrivacyLedger,
    RandomizedResponseClassifier,
    SyntheticRows,
)
from skfairdp.ensemble import MLPTeachers
from skfairdp.papers import FairClippingClassifier
from skfairdp.pate import SoftVoting
from skfairdp.schema import Category, Number, Schema
from tests._tools.engines import Doubled, Retried
from tests._tools.inside import (
    FrameRows,
    RowSource,
    Subjects,
    bytes_on_disk,
    fit_teachers,
    opened,
    streamed_class_counts,
    streamed_votes,
    vote_histogram,
)
from tests._tools.sources import FixedAnswers, installed, moves, recording_noise
from tests.rows.test_streamed_generator import of_engine

pytestmark = pytest.mark.filterwarnings(
    "ignore::skfairdp.exceptions.FairnessWarning",
    "ignore::skfairdp.exceptions.UtilityWarning",
    "ignore:.*draws its noise from 'noise_seed'",
)
N, N_TEACHERS = 90, 9
COLUMNS = {
    "a": Number(-3, 3),
    "b": Number(-3, 3, step=0.01),
    "sex": Category(["f", "m"]),
    "ill": Category(["no", "yes"]),
}
SCHEMA = Schema(COLUMNS, label="ill", groups="sex")
NETWORKS = MLPTeachers(hidden=(4,), epochs=1)


def rows_of(ids, rng):
    a = rng.normal(size=len(ids))
    return pd.DataFrame(
        {
            "patient_id": ids,
            "a": a,
            "b": rng.normal(size=len(ids)).round(2),
            "sex": rng.choice(["f", "m"], len(ids)),
            "ill": np.where(a + rng.normal(size=len(ids)) > 0, "yes", "no"),
        }
    )


def visits(seed=0, most=6):
    """Rows of subjects, those of one in different places; the column lists all of them."""
    rng = np.random.default_rng(seed)
    names = np.array([f"p{j}" for j in range(N)])
    ids = rng.permutation(np.repeat(names, rng.integers(1, most + 1, N)))
    return rows_of(pd.Categorical(ids, categories=names), rng)


def with_other_rows(n, seed=0, one="p17"):
    """The same table but for all rows of one subject: extreme ones of either kind, so many, in any places."""
    rng, kept = np.random.default_rng(seed), visits()[lambda table: table["patient_id"] != one]
    new = pd.DataFrame(
        {
            "patient_id": pd.Categorical([one] * n, categories=kept["patient_id"].cat.categories),
            "a": rng.choice([1e12, -1e12, np.nan, 3.0], n),
            "b": rng.choice([1e12, -1e12, 0.0, np.inf], n),
            "sex": rng.choice(["f", "m"], n),
            "ill": rng.choice(["no", "yes"], n),
        }
    )
    at = np.argsort(np.r_[np.linspace(0, 1, len(kept)), rng.random(n)], kind="stable")
    return pd.concat([kept, new], ignore_index=True).iloc[at].reset_index(drop=True)


PUBLIC = rows_of(np.arange(60), np.random.default_rng(1)).drop(columns=["patient_id", "ill"])
PUBLIC[["a", "b"]] = PUBLIC[["a", "b"]].clip(-3, 3)
SIZES = {"more": 60, "one": 1, "none": 0}


def in_chunks(table, size=37):
    pieces = [table[start : start + size] for start in range(0, len(table), size)]
    return lambda: pieces


def made(make=PATEClassifier, **options):
    return make(**{"epsilon": 8.0, "schema": SCHEMA, "n_teachers": N_TEACHERS, "random_state": 0, **options})


def fitted(X, model=None, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (made() if model is None else model).fit(X, **{"X_public": PUBLIC, "subject": "patient_id", **given})


def votes(X, teacher="logistic", seed=0, **options):
    """By the function itself, from a source whose key is the subject."""
    queries = PUBLIC_FEATURES[:40]
    how = {"schema": SCHEMA, "owner": "test", "n_teachers": N_TEACHERS, "n_classes": 2, "n_units": N, **options}
    return streamed_votes(teacher, keyed(X), queries, rng=np.random.default_rng(seed), **how)


def keyed(X):
    return opened(KeyedRows(X, key="patient_id"))


def features(table):
    from skfairdp.schema import RawTable

    return RawTable.read(SCHEMA, table, owner="test").features


PUBLIC_FEATURES = features(PUBLIC.assign(ill="no"))


# ---- the fit in memory -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ["chunks", "polars chunks", "parquet", "dataset", "lazy", "dask"])
@pytest.mark.parametrize("make", [PATEClassifier, partial(FairPATEClassifier, gamma=0.2)])
def test_a_fit_in_chunks_is_that_in_memory(engine, make, tmp_path):
    table = visits()
    here = fitted(table, made(make, noise_seed=1))
    there = fitted(of_engine(engine, table.astype({"patient_id": str}), tmp_path), made(make, noise_seed=1))
    np.testing.assert_array_equal(here.released_votes_, there.released_votes_)
    np.testing.assert_array_equal(here.predict(table), there.predict(table))
    assert here.privacy_ == there.privacy_ and list(here.privacy_.public) == list(there.privacy_.public)
    one, other = here.privacy_statement().to_dict(), there.privacy_statement().to_dict()
    assert {name for name in one if one[name] != other[name]} <= {"made", "digest", "id", "when"}, (one, other)


@pytest.mark.parametrize("teacher", ["logistic", DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_teachers_are_those_of_memory(teacher):
    table, rng = visits(), np.random.default_rng(0)
    parts = Subjects.read(table, "patient_id", len(table), owner="test").parts(N_TEACHERS, rng)
    fitted = fit_teachers(
        teacher, features(table), (table["ill"] == "yes").to_numpy(dtype=int), parts, n_teachers=N_TEACHERS,
        n_classes=2, random_state=rng,
    )  # fmt: skip
    expected = vote_histogram(fitted.predict(PUBLIC_FEATURES[:40]), 2)
    np.testing.assert_array_equal(votes(in_chunks(table), teacher), expected)
    assert len(np.unique(expected)) > 4


@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
def test_the_plan_is_that_of_memory(noise):
    for options in ({}, {"n_teachers": "auto", "epsilon": 0.3}):
        in_memory, chunked = (
            made(voting=SoftVoting(noise=noise), **options).planned_privacy(X, X_public=PUBLIC, subject="patient_id")
            for X in (visits(), in_chunks(visits()))
        )
        assert in_memory.event == chunked.event and in_memory.neighboring_relation == chunked.neighboring_relation


def test_a_schema_may_name_the_subject_and_keys_may_name_it_as_well():
    schema = Schema(COLUMNS, label="ill", groups="sex", subject="patient_id")
    expected = fitted(in_chunks(visits()), made(noise_seed=1)).released_votes_
    for X in (in_chunks(visits()), KeyedRows(visits(), key="patient_id"), KeyedRows(in_chunks(visits()), "patient_id")):
        for model, subject in ((made(noise_seed=1, schema=schema), None), (made(noise_seed=1), "patient_id")):
            found = fitted(X, model, subject=subject)
            np.testing.assert_array_equal(found.released_votes_, expected)
            assert found.privacy_.rows_of == "patient_id" and found.privacy_.protects == "subject"


# ---- order and size of chunks ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("teacher", ["logistic", NETWORKS], ids=["logistic", "networks"])
def test_neither_the_order_of_rows_nor_where_chunks_end_matters(teacher):
    """Networks learn in the order of their rows: that of a teacher follows from what is in them."""
    expected, counts = votes(visits(), teacher), class_counts(visits())
    for seed in range(3 if teacher == "logistic" else 1):
        mixed = visits().sample(frac=1, random_state=seed)
        X = in_chunks(mixed, (1, 37, 1000)[seed])
        np.testing.assert_array_equal(votes(X, teacher), expected)
        np.testing.assert_array_equal(votes(X, teacher, most_bytes=10 ** (3 + seed)), expected)
        np.testing.assert_array_equal(class_counts(X), counts)


def test_tasks_that_are_tried_again_count_once_and_rows_that_are_handed_on_twice_are_noticed():
    class Late(Doubled):
        """Goes wrong after the list of subjects has been read."""

        def each(self, function):
            return super().each(function) if "split" in repr(function) else FrameRows.each(self, function)

    np.testing.assert_array_equal(votes(Retried(visits(), 40)), votes(visits()))
    with recording_noise() as record, pytest.raises(RuntimeError, match="another number of rows"):
        fitted(Late(visits(), 40))
    assert not record.releases


# ---- what a subject adds ---------------------------------------------------------------------------------------------
def class_counts(X):
    return streamed_class_counts(keyed(X), SCHEMA, "test", N)


@pytest.mark.parametrize("how", SIZES)
def test_a_subject_with_other_rows_moves_one_vote_and_one_count(how):
    one, counts = votes(in_chunks(visits())), class_counts(in_chunks(visits()))
    for seed in range(6):
        table = with_other_rows(SIZES[how], seed, one=f"p{7 * seed}")
        assert np.abs(one - votes(in_chunks(table))).sum(axis=1).max() <= 2
        moved = class_counts(in_chunks(table)) - counts
        assert np.abs(moved).sum() <= 2 and moved.sum() == (-1 if how == "none" else 0)


def test_counts_take_one_row_of_each_subject_as_often_the_one_as_the_other():
    alike = visits().assign(ill=lambda table: np.where(table["patient_id"].cat.codes % 3, "yes", "no"))
    np.testing.assert_array_equal(class_counts(in_chunks(alike)), [N / 3, 2 * N / 3])
    ids = np.repeat(np.arange(4000), 4)
    table = rows_of(ids, np.random.default_rng(0)).assign(ill=np.tile(["yes", "no", "no", "no"], 4000))
    assert abs(class_counts(in_chunks(table, 999))[1] - 1000) < 5 * np.sqrt(750)


@pytest.mark.parametrize("options", [{}, {"n_teachers": "auto", "epsilon": 0.5}])
@pytest.mark.parametrize("make", [PATEClassifier, partial(FairPATEClassifier, gamma=0.2)])
def test_no_release_moves_further_than_declared(make, options):
    def released(table):
        with installed(FixedAnswers()) as source:
            fitted(in_chunks(table), made(make, **options))
        return source

    here = released(visits())
    assert here.log and all(move <= 1 for n in SIZES.values() for move in moves(here, released(with_other_rows(n))))


# ---- what is public --------------------------------------------------------------------------------------------------
def test_the_number_of_subjects_is_stated_and_charged_and_that_of_rows_is_nowhere():
    ledger, table = PrivacyLedger(), visits()
    model = fitted(in_chunks(table), made(ledger=ledger))
    facts = {fact.name: fact.value for fact in model.privacy_.public}
    assert facts["number of subjects"] == N and facts["ids of the subjects"] == "patient_id"
    assert not {"number of private rows", "keys of the rows of X"} & set(facts)
    assert "replace all rows of one subject" in str(model.privacy_) and "patient_id" in str(ledger.entries)
    assert not re.search(rf"\b{len(table)}\b", model.privacy_statement().to_json())
    assert not [value for value in vars(model).values() if isinstance(value, Subjects | RowSource | pd.DataFrame)]


def shown(X, model, **options):
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        votes_of = fitted(X, model.set_params(verbose=1, **options))
    assert votes_of.privacy_.protects == "subject"
    return printed.getvalue()


@pytest.mark.parametrize("engine", ["chunks", "parquet", "lazy", "dask"])
def test_bars_count_tenths_and_no_rows(engine, tmp_path):
    one, other = visits(), pd.concat([visits(), visits()], ignore_index=True)
    seen = []
    for j, table in enumerate((one, other)):
        (tmp_path / str(j)).mkdir()
        X = of_engine(engine, table.astype({"patient_id": str}), tmp_path / str(j))
        seen.append(shown(X, made()))
    assert seen[0] == seen[1] and "tenths of X" in seen[0] and "10/10" in seen[0]


@pytest.mark.parametrize("epsilon", [0.3, 8.0])
def test_twice_the_rows_change_neither_plan_nor_parts(epsilon):
    class Noted(FrameRows):
        """Notes into how many parts rows are dealt."""

        def by_part(self, work):
            parts.append(work.n_parts)
            return super().by_part(work)

    parts: list[int] = []
    plans = []
    for table in (visits(), pd.concat([visits()] * 4, ignore_index=True)):
        model = made(n_teachers="auto", epsilon=epsilon)
        plans.append(model._plan(model._read(in_chunks(table), None, X_public=PUBLIC, subject="patient_id")))
        votes(Noted(table), most_bytes=500)
    assert plans[0] == plans[1] and plans[0].relation == "replace all rows of one subject"
    assert parts[0] == parts[1] > 1


def test_the_disk_that_is_asked_for_follows_the_number_of_subjects(monkeypatch):
    usage, many = namedtuple("usage", "total used free"), 250_000
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**7, 0, 10**7))
    more = [f"x{j}" for j in range(40)]
    wide, told = Schema({**COLUMNS, **dict.fromkeys(more, Number(0, 1))}, label="ill", groups="sex"), []
    for times in (1, 4):
        table = pd.concat([visits()] * times, ignore_index=True).assign(**dict.fromkeys(more, 0.5))
        codes = table["patient_id"].cat.codes.to_numpy()
        table["patient_id"] = pd.Categorical.from_codes(codes, categories=np.arange(many))
        with pytest.raises(OSError, match="keeps the encoded rows of X on disk") as error:
            fitted(in_chunks(table, 10**6), made(schema=wide), X_public=PUBLIC.assign(**dict.fromkeys(more, 0.5)))
        told.append(str(error.value))
    assert told[0] == told[1] and f"{bytes_on_disk(wide, many) / 1e9:.2f} GB" in told[0]


# ---- what is refused -------------------------------------------------------------------------------------------------
def lacking(value, ids):
    """A table in which one of the last rows has no id."""
    table = visits().astype({"patient_id": object})
    if ids == "numbers":
        table["patient_id"] = pd.Series(range(len(table)), dtype="Int64" if value is pd.NA else float)
    table.loc[len(table) - 3, "patient_id"] = value
    return table.astype({"patient_id": "category"}) if ids == "categories" else table


@pytest.mark.parametrize(
    ("ids", "value"),
    [
        *itertools.product(["texts", "categories"], [None, np.nan, pd.NA, pd.NaT]),
        ("numbers", np.nan),
        ("numbers", pd.NA),
    ],
)
def test_missing_ids_are_refused_before_anything_is_spent_in_words_that_hold_none(ids, value):
    ledger = PrivacyLedger()
    said = "^subject of PATEClassifier contains missing values"
    with recording_noise() as record, pytest.raises(ValueError, match=said) as told:
        fitted(in_chunks(lacking(value, ids)), made(ledger=ledger))
    assert not record.releases and not ledger.entries and "p1" not in str(told.value)


KEYED = KeyedRows(visits().assign(visit=range(len(visits()))), key="visit")


@pytest.mark.parametrize(
    ("X", "options", "given", "text"),
    [
        (KEYED, {}, {}, "KeyedRows with key='visit', and 'subject' names 'patient_id'"),
        (None, {}, {"subject": visits()["patient_id"]}, "'subject' must name exactly one column of it"),
        (None, {}, {"subject": "person"}, "'subject' must name exactly one column of it"),
        (None, {"schema": None, "classes": ["no", "yes"]}, {}, "only with a 'schema'"),
        (None, {}, {"X_public": None}, "needs public rows"),
        (None, {"public_data": SyntheticRows()}, {"X_public": None}, "needs public rows"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_spent(X, options, given, text):
    ledger = PrivacyLedger()
    with recording_noise() as record, pytest.raises(ValueError, match=text):
        fitted(in_chunks(visits()) if X is None else X, made(ledger=ledger, **options), **given)
    assert not record.releases and not ledger.entries


@pytest.mark.parametrize(
    "make",
    [
        FairClippingClassifier,
        RandomizedResponseClassifier,
        lambda schema, ledger: ParetoSearchCV(FairClippingClassifier(schema=schema, ledger=ledger), {"epsilon": [1.0]}),
    ],
)
@pytest.mark.parametrize("keys", [False, True])
def test_what_reads_no_chunks_takes_subjects_in_memory_alone_and_says_so(make, keys):
    ledger = PrivacyLedger()
    X = KeyedRows(visits(), key="patient_id") if keys else in_chunks(visits())
    with pytest.raises(ValueError, match="in memory"):
        make(schema=SCHEMA, ledger=ledger).fit(X, subject="patient_id")
    assert not ledger.entries


def test_without_a_subject_the_number_of_rows_is_public_as_it_was():
    facts = {fact.name: fact.value for fact in fitted(in_chunks(visits()), subject=None).privacy_.public}
    assert facts["number of private rows"] == len(visits()) and "number of subjects" not in facts
