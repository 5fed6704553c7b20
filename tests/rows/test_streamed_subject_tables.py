"""Several rows of one subject in chunks: noisy tables, and groups alone, are those of the same rows in memory."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skfairdp import KeyedRows, PFGuardGenerator, PrivacyLedger, SFPATEClassifier, SyntheticDataClassifier
from skfairdp.lagrangian import LagrangianClassifier, mlp
from skfairdp.papers import GSWGANBackend
from skfairdp.pate import FairTeachers, SoftVoting
from skfairdp.schema import Category, Number, Schema
from tests._tools.engines import Retried
from tests._tools.inside import StreamedTable, Subjects, counted_once, opened
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import of_engine
from tests.rows.test_streamed_subjects import SCHEMA, SIZES, N, in_chunks, keyed, visits, with_other_rows

pytestmark = pytest.mark.filterwarnings(
    "ignore::skfairdp.exceptions.FairnessWarning",
    "ignore::skfairdp.exceptions.UtilityWarning",
    "ignore:.*draws its noise from 'noise_seed'",
)
N_TEACHERS = 9
QUICK = LagrangianClassifier(constraints="demographic_parity", net=mlp((), max_epochs=1, batch_size=256))
ENGINES = ["chunks", "polars chunks", "parquet", "dataset", "lazy", "dask"]


def released(model, X):
    """What is released without noise, and the model."""
    with recording_noise(0) as record:
        model.fit(X, subject="patient_id")
    return [np.asarray(release.value) for release in record.releases], model


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


# ---- noisy tables ----------------------------------------------------------------------------------------------------
def generator(**options):
    return PFGuardGenerator(**{"epsilon": 2.0, "schema": SCHEMA, "random_state": 0, **options})


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_tables_in_chunks_are_those_in_memory(engine, tmp_path):
    table = visits().astype({"patient_id": str})
    expected, here = released(generator(), table)
    found, there = released(generator(), of_engine(engine, table, tmp_path))
    assert_same(found, expected)
    assert here.privacy_ == there.privacy_ and list(here.privacy_.public) == list(there.privacy_.public)
    assert here.privacy_.rows_of == "patient_id" and there.privacy_.protects == "subject"
    pd.testing.assert_frame_equal(here.sample(40, random_state=1), there.sample(40, random_state=1))


def test_tables_follow_neither_the_order_of_rows_nor_where_chunks_end():
    expected, _ = released(generator(), visits())
    for seed, X in enumerate((visits(), in_chunks(visits(), 1), Retried(visits(), 40), spark_frame(visits()))):
        if isinstance(X, pd.DataFrame):
            X = X.sample(frac=1, random_state=seed)
        assert_same(released(generator(), X)[0], expected)
    mixed = visits().sample(frac=1, random_state=5)
    assert_same(released(generator(), KeyedRows(in_chunks(mixed), key="patient_id"))[0], expected)


def tables_of(X):
    table = StreamedTable(keyed(X), SCHEMA, 2, 2, "test", N)
    encoder = generator()._read(visits(), subject="patient_id").encoder
    histograms, cells = table.first_counts(encoder)
    return [*histograms, cells]


@pytest.mark.parametrize("how", SIZES)
def test_a_subject_with_other_rows_moves_one_count_of_each_table(how):
    here = tables_of(in_chunks(visits()))
    assert all(counts.sum() == N for counts in here)
    for seed in range(6):
        there = tables_of(in_chunks(with_other_rows(SIZES[how], seed, f"p{7 * seed}")))
        for one, other in zip(here, there, strict=True):
            moved = other - one
            assert np.abs(moved).sum() <= 2 and moved.sum() == (-1 if how == "none" else 0)


def test_the_row_that_is_counted_is_the_same_in_all_tables():
    """In tables of two columns and of three the same rows are counted, so that the tables agree."""
    names = ("a", "b", "sex", "ill")
    table = visits()
    contents = table["a"].clip(-3, 3).to_numpy(), table["b"].clip(-3, 3).to_numpy()
    subjects = replace(Subjects.read(table, "patient_id", len(table), owner="test"), contents=contents)
    kept = table.iloc[subjects.one_row_each]

    def ill_by_sex(raw, teachers, seeds):
        return np.bincount(2 * raw.groups() + raw.labels(), minlength=4)

    found = counted_once(ill_by_sex, keyed(in_chunks(table)), SCHEMA, "test", N, columns=names)
    np.testing.assert_array_equal(found.reshape(2, 2), pd.crosstab(kept["sex"], kept["ill"]))


def test_a_classifier_of_synthetic_rows_states_subjects_and_no_number_of_rows():
    ledger, table = PrivacyLedger(), visits()
    model = SyntheticDataClassifier(epsilon=8.0, schema=SCHEMA, random_state=0, ledger=ledger)
    model.fit(in_chunks(table), subject="patient_id")
    facts = {fact.name: fact.value for fact in model.privacy_.public}
    assert facts["number of subjects"] == N and "number of private rows" not in facts
    assert not re.search(rf"\b{len(table)}\b", model.privacy_statement().to_json())
    assert ledger.entries[0].rows_of == "patient_id" and len(model.predict(table)) == len(table)


def test_networks_refuse_chunks_before_anything_is_spent_and_learn_from_subjects_in_memory():
    ledger, small = PrivacyLedger(), GSWGANBackend(n_teachers=8, n_steps=2, batch_size=6, hidden=(8,), latent=4)
    with recording_noise() as record, pytest.raises(ValueError, match="backend='marginals'"):
        generator(backend=small, ledger=ledger).fit(in_chunks(visits()), subject="patient_id")
    assert not record.releases and not ledger.entries
    found = generator(backend=small, ledger=ledger).fit(visits(), subject="patient_id")
    assert found.privacy_.protects == ledger.entries[0].protects == "subject"


# ---- groups alone ----------------------------------------------------------------------------------------------------
def known(agree=True, seed=0):
    """Rows that the schema foresees, for they are public; those of a subject are of one group, or of any."""
    table = visits(seed)
    table[["a", "b"]] = table[["a", "b"]].clip(-3, 3)
    return table.assign(sex=np.where(table["patient_id"].cat.codes % 3, "f", "m")) if agree else table


def sf_pate(**options):
    usual = {"epsilon": 4.0, "schema": SCHEMA, "n_teachers": N_TEACHERS, "random_state": 0, "fair_estimator": QUICK}
    return SFPATEClassifier(**{**usual, **options})


def sorted_rows(values):
    return values[np.lexsort(values.T)] if values.ndim == 2 else values


VARIANTS = {
    "groups": {},
    "labels": {"variant": FairTeachers(QUICK)},
    "exact": {"voting": SoftVoting(noise="discrete_gaussian")},
}


@pytest.mark.parametrize("agree", [True, False])
@pytest.mark.parametrize("name", ["groups", "exact"])
def test_votes_on_groups_in_chunks_are_those_in_memory(name, agree):
    """All rows are asked about, in another order; shares are rounded down to a step of each teacher."""
    (votes, *_), here = released(sf_pate(**VARIANTS[name]), known(agree))
    (found, *_), there = released(sf_pate(**VARIANTS[name]), in_chunks(known(agree)))
    step = 0 if name == "exact" else N_TEACHERS * 2.0**-16
    np.testing.assert_allclose(sorted_rows(found), sorted_rows(votes), rtol=0, atol=step + 1e-6)
    assert here.privacy_.epsilon == there.privacy_.epsilon
    assert there.privacy_.neighboring_relation == "replace the sensitive attribute of one subject"
    facts = [{fact.name: fact.value for fact in one.privacy_.public} for one in (here, there)]
    assert {name: value for name, value in facts[1].items() if name in facts[0]} == facts[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", VARIANTS)
def test_votes_on_groups_follow_neither_the_order_of_rows_nor_where_chunks_end(name):
    expected, _ = released(sf_pate(**VARIANTS[name]), in_chunks(known()))
    mixed = known().sample(frac=1, random_state=1)
    for X in (in_chunks(known(), 1), in_chunks(mixed, 50), spark_frame(mixed)):
        assert_same(released(sf_pate(**VARIANTS[name]), X)[0], expected)


def test_rows_that_disagree_about_the_group_follow_the_first_one():
    table = known(agree=False)
    first = table.groupby("patient_id", observed=True)["sex"].transform("first")
    assert (first != table["sex"]).any()
    expected, _ = released(sf_pate(), in_chunks(table.assign(sex=first)))
    assert_same(released(sf_pate(), in_chunks(table, 11))[0], expected)


@pytest.mark.parametrize("name", ["groups", "labels"])
def test_a_subject_of_another_group_moves_one_vote_and_one_answer(name):
    here, _ = released(sf_pate(**VARIANTS[name]), in_chunks(known()))
    moved = []
    for one in ("p3", "p17", "p88"):
        table = known()
        other = np.where(table["sex"] == "f", "m", "f")
        table["sex"] = np.where(table["patient_id"] == one, other, table["sex"])
        there, _ = released(sf_pate(**VARIANTS[name]), in_chunks(table))
        moved.append(np.linalg.norm(np.atleast_2d(there[0] - here[0]), axis=1).max())
        if len(there) == len(here):  # the student is another, but counts are of as many subjects
            assert there[-1].sum() == here[-1].sum() == N
    assert max(moved) <= np.sqrt(2) + 1e-12 and (name == "labels" or max(moved) > 0)


def test_groups_are_the_only_thing_that_moves_and_ids_are_nowhere():
    model = sf_pate().fit(in_chunks(known()), subject="patient_id")
    assert "p17" not in model.privacy_statement().to_json() and "p17" not in repr(vars(model).keys())
    assert not [value for value in vars(model).values() if isinstance(value, Subjects | pd.DataFrame)]


def test_ids_must_be_a_column_of_rows_in_chunks():
    ledger = PrivacyLedger()
    for model in (generator(ledger=ledger), sf_pate(ledger=ledger)):
        with pytest.raises(ValueError, match="'subject' must name exactly one column of it"):
            model.fit(in_chunks(known()), subject=visits()["patient_id"])
        schema = Schema({"a": Number(-3, 3), "ill": Category(["no", "yes"]), "sex": Category(["f", "m"])}, label="ill",
                        groups="sex", subject="visit")  # fmt: skip
        with pytest.raises(ValueError, match="exactly one column"):
            model.set_params(schema=schema).fit(in_chunks(known()))
    assert not ledger.entries and opened(in_chunks(known())).key is None
