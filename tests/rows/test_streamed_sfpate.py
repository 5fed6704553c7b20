"""SF-PATE on rows that are read in chunks: the same votes from every engine and order; a group moves one vote."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skfairdp import KeyedRows, PrivacyLedger, SFPATEClassifier
from skfairdp._utils import child_seeds
from skfairdp.baselines import ParityLogisticRegression
from skfairdp.lagrangian import LagrangianClassifier, mlp, standard_scale
from skfairdp.pate import FairTeachers, GroupTeachers, SoftVoting, _fair_votes as room
from skfairdp.schema import Category, RawTable, Schema, subsample_rows
from tests._tools.engines import Retried
from tests._tools.inside import Chunk, FrameRows, MLPTeachers, fit_teachers, opened, row_hashes, streamed_counts
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import SCHEMA, chunked, of_engine, table

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

N, N_TEACHERS = 500, 40
QUICK = LagrangianClassifier(constraints="demographic_parity", net=mlp((), max_epochs=1, batch_size=256))
SMALL = LagrangianClassifier(constraints="demographic_parity", net=mlp((3,), max_epochs=1, batch_size=16))
VARIANTS = {
    "groups": {},
    "groups, whole votes": {"voting": "gnmax", "proximal_weight": 0.0},
    "groups, exact noise": {"voting": SoftVoting(noise="discrete_gaussian", max_queries=50)},
    "groups, trees": {"variant": GroupTeachers(DecisionTreeClassifier(max_depth=2, random_state=0))},
    "labels": {"variant": FairTeachers(QUICK), "fair_estimator": SMALL},
    "labels, clones": {"variant": FairTeachers(QUICK), "fair_estimator": ParityLogisticRegression(max_rounds=1)},
}


def rows(n=N):
    """Rows whose features and labels the schema foresees, for they are public; one group is none it lists."""
    frame = table(n).replace({"job": {"astronaut": "other"}})
    frame["since"] = frame["since"].clip("2020-01-01", "2024-12-31")
    frame["age"], frame["score"] = frame["age"].clip(17, 90), frame["score"].clip(-3, 3)
    frame.loc[3, "group"] = "z"
    return frame


def made(**options):
    usual = {"epsilon": 4.0, "schema": SCHEMA, "n_teachers": N_TEACHERS, "random_state": 0, "fair_estimator": QUICK}
    return SFPATEClassifier(**(usual | options))


def votes(X, **options):
    """What is released without noise, and what the student makes of it."""
    with recording_noise(0) as record:
        model = made(**options).fit(X)
    return np.concatenate([np.ravel(release.output) for release in record.releases]), model.predict(rows(200))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_shares_are_those_of_arrays_with_the_same_parts():
    """The rows in one matrix, dealt by the same hashes: shares differ by their rounding alone, 40 steps at most."""
    with recording_noise(0) as record:
        made().fit(KeyedRows(chunked(rows()), key="id"))
    released, *_ = record.releases
    rng = np.random.default_rng(0)
    kept, _ = subsample_rows(opened(KeyedRows(rows(), key="id")), SCHEMA, owner="test", most=N)
    rng.permutation(N)
    seed, seeds = int(rng.integers(2**63 - 1)), child_seeds(rng, N_TEACHERS)
    hashes = row_hashes(Chunk(rows(), (0,)), "id", seed)
    order, raw = np.argsort(hashes), RawTable.read(SCHEMA, rows(), owner="test")
    center, scale = standard_scale(kept.features)
    told, asked = (
        room.features_and_labels((table.features - center) / scale, table.labels(), 2) for table in (raw, kept)
    )
    teachers = fit_teachers(
        "logistic", told[order], raw.groups()[order], (hashes[order] % np.uint64(N_TEACHERS)).astype(np.int64),
        n_teachers=N_TEACHERS, n_classes=3, seeds=seeds,
    )  # fmt: skip
    expected = teachers.summed_probabilities(asked, 3)
    assert released.value.shape == expected.shape == (N, 3)
    short = expected - released.value
    assert short.min() > -1e-9 and 0 < short.max() < N_TEACHERS * room.STEP


@pytest.mark.few(2)
@pytest.mark.parametrize("name", VARIANTS)
def test_with_a_key_votes_do_not_depend_on_the_order_of_rows_or_on_chunks(name):
    expected = votes(KeyedRows(rows(), key="id"), **VARIANTS[name])
    mixed = rows().sample(frac=1, random_state=1)
    assert_same(votes(KeyedRows(chunked(mixed, sizes=(1, 333, 0)), key="id"), **VARIANTS[name]), expected)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("engine", "name"),
    [("polars chunks", "groups"), ("parquet", "groups"), ("dataset", "groups"), ("lazy", "groups"), ("dask", "groups"),
     ("parquet", "labels"), ("dask", "labels")],
)  # fmt: skip
def test_with_a_key_votes_are_the_same_bit_for_bit_from_every_engine(engine, name, tmp_path):
    """dask cuts the teachers into other parts, and every sum is the same."""
    expected = votes(KeyedRows(rows(), key="id"), **VARIANTS[name])
    assert_same(votes(KeyedRows(of_engine(engine, rows(), tmp_path), key="id"), **VARIANTS[name]), expected)


@pytest.mark.slow
def test_a_stand_in_for_spark_gives_the_same_votes():
    assert_same(votes(KeyedRows(spark_frame(rows()), key="id")), votes(KeyedRows(rows(), key="id")))


def test_without_a_key_chunks_of_any_size_agree():
    assert_same(votes(chunked(rows(), sizes=(333,))), votes(chunked(rows())))


# ---- one group changes one teacher ---------------------------------------------------------------------------


def regrouped(row, to):
    other = rows()
    other.loc[row, "group"] = to
    return other


def value_of(frame, **options):
    with recording_noise(0) as record:
        made(**options).fit(FrameRows(frame, 170))
    (release,) = record.releases[-1:]
    return release


def rows_and_groups(raw, teachers, seeds):
    """What each teacher was given: how many rows, and their groups added up."""
    groups = np.bincount(teachers, weights=raw.groups(), minlength=len(seeds)).astype(np.int64)
    return np.stack([np.bincount(teachers, minlength=len(seeds)), groups])


@pytest.mark.parametrize("key", [None, "id"])
def test_the_group_of_a_row_moves_no_row_to_another_teacher(key):
    def given(frame):
        source = opened(KeyedRows(frame, key=key) if key else chunked(frame))
        return streamed_counts(
            rows_and_groups, source, columns=(*SCHEMA.features, "label", "group"), schema=SCHEMA, owner="test",
            n_teachers=N_TEACHERS, n_features=9, rng=np.random.default_rng(0),
        ).reshape(2, -1)  # fmt: skip

    one = given(rows())
    assert one[0].sum() == N and one[0].max() < 40
    for row in (0, 17, N - 1):
        other = given(regrouped(row, "a" if rows()["group"][row] == "c" else "c"))
        np.testing.assert_array_equal(other[0], one[0])
        assert np.count_nonzero(other[1] != one[1]) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["groups", "groups, trees", "labels"])
def test_a_changed_group_changes_one_teacher_and_moves_the_votes_on_a_row_by_root_two(name):
    one, largest = value_of(rows(), **VARIANTS[name]), 0.0
    for row, to in ((0, "a"), (17, "no such group"), (N - 1, None))[: 3 if name == "groups" else 2]:
        other = value_of(regrouped(row, to), **VARIANTS[name])
        assert other.declared == one.declared
        moved = np.linalg.norm(np.asarray(one.value) - np.asarray(other.value), axis=1)
        largest = max(largest, moved.max())
    assert largest <= np.sqrt(2) + 1e-12
    if name == "groups":
        assert largest > 0


def test_what_a_fit_shows_of_a_replayed_neighbour_is_the_same():
    """One group differs: with the outputs of the first fit, the second shows the same to the last bit."""
    probes = rows(100)
    for options in (VARIANTS["groups"], VARIANTS["labels"]):
        with recording_noise(entropy=0) as first:
            one = made(**options).fit(chunked(rows()))
        with recording_noise(entropy=0, replay=first) as second:
            other = made(**options).fit(chunked(regrouped(17, float("nan"))))
        assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
        np.testing.assert_array_equal(one.predict(probes), other.predict(probes))
        assert repr(one) == repr(other) and one.privacy_ == other.privacy_
        np.testing.assert_array_equal(one.released_votes_, other.released_votes_)


@pytest.mark.parametrize("teacher", ["logistic", MLPTeachers(hidden=(3,), epochs=1), DecisionTreeClassifier()])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_shares_in_steps_are_exact_in_any_order_and_no_more_than_one_vote(teacher, n_groups):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 3)), rng.integers(n_groups, size=300)
    groups[:30] = 0  # the first teacher knows one group
    parts, step = np.repeat(np.arange(10), 30), room.STEP
    teachers = fit_teachers(teacher, X, groups, parts, n_teachers=10, n_classes=n_groups, random_state=0)
    shares = teachers.summed_probabilities(X, n_groups, step)
    assert (shares / step == np.rint(shares / step)).all() and (shares >= 0).all()
    assert (shares <= teachers.summed_probabilities(X, n_groups) + 1e-6).all() or n_groups == 2
    assert (shares.sum(axis=1) <= 10).all() and (shares.sum(axis=1) > 10 * (1 - n_groups * step) - 1e-9).all()


# ---- rows that are kept --------------------------------------------------------------------------------------


def test_kept_rows_are_those_with_the_smallest_hashes_from_every_engine(tmp_path):
    frame = rows()
    kept, _ = subsample_rows(opened(KeyedRows(frame, key="id")), SCHEMA, owner="test", most=150)
    every, _ = subsample_rows(opened(KeyedRows(frame, key="id")), SCHEMA, owner="test", most=N)
    assert kept.n_rows == 150 and every.n_rows == N and not kept.has_groups
    np.testing.assert_array_equal(kept.features, every.features[:150])
    np.testing.assert_array_equal(kept.labels(), every.labels()[:150])
    for engine in ("chunks", "parquet", "dask"):
        other = opened(KeyedRows(of_engine(engine, frame, tmp_path), key="id"))
        found, _ = subsample_rows(other, SCHEMA, owner="test", most=150)
        np.testing.assert_array_equal(found.features, kept.features)
    shares = [frame["member"].mean(), frame["age"].mean()]
    found = [kept.numbers["member"].mean(), kept.numbers["age"].mean()]
    np.testing.assert_allclose(found, shares, rtol=0.25)  # no share of the table is kept more than another


def test_which_rows_are_kept_does_not_follow_their_groups():
    kept = [
        subsample_rows(opened(chunked(frame)), SCHEMA, owner="test", most=150)[0].features
        for frame in (rows(), rows().assign(group="b"))
    ]
    np.testing.assert_array_equal(*kept)


def test_equal_keys_are_told_apart_by_what_is_public_of_their_rows():
    frame = rows().assign(id=np.arange(N) // 2)
    kept, _ = subsample_rows(opened(KeyedRows(frame, key="id")), SCHEMA, owner="test", most=N)
    mixed = frame.sample(frac=1, random_state=0)
    other, _ = subsample_rows(opened(KeyedRows(mixed, key="id")), SCHEMA, owner="test", most=N)
    np.testing.assert_array_equal(other.features, kept.features)
    one_id = chunked(frame.assign(id=7))
    with pytest.raises(ValueError, match="keys of X of SFPATEClassifier are no ids"):
        subsample_rows(opened(KeyedRows(one_id, key="id")), SCHEMA, owner="SFPATEClassifier", most=5)


@pytest.mark.parametrize("column", ["since", "label"])
def test_public_cells_that_the_schema_does_not_foresee_are_refused_before_anything_is_spent(column):
    frame = rows().astype({column: object})
    frame.loc[N - 1, column] = "no such value"
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    schema = Schema({**SCHEMA.columns, "label": Category(["no", "yes"])}, label="label", groups="group")
    with pytest.raises(ValueError, match=r"SFPATEClassifier (has values that its schema does not|holds a label or a)"):
        made(ledger=ledger).set_params(schema=schema).fit(chunked(frame))
    assert not ledger.entries


# ---- charges, retries, failures ------------------------------------------------------------------------------


def test_a_fit_in_chunks_is_planned_and_charged_as_one_in_memory():
    frame = rows().replace({"group": {"z": "a"}})
    in_memory, in_chunks = made().planned_privacy(frame), made().planned_privacy(chunked(frame))
    assert in_memory.event == in_chunks.event and in_memory.epsilon == in_chunks.epsilon
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    model = made(ledger=ledger).fit(chunked(frame))
    assert model.privacy_.event == in_memory.event and len(ledger.entries) == 1
    refitted = model.refit(fair_estimator=ParityLogisticRegression(max_rounds=1))
    assert refitted.privacy_ is model.privacy_ and len(ledger.entries) == 1


class Doubled(FrameRows):
    """An engine that hands on what a retried task returns twice, at the n-th reading."""

    def __init__(self, table, size, reading):
        super().__init__(table, size)
        self.reading, self.readings = reading, 0

    def each(self, function):
        self.readings += 1
        yield from super().each(function)
        if self.readings == self.reading:
            yield function(next(iter(self.chunks())))


def test_tasks_that_are_tried_again_count_once():
    assert_same(votes(Retried(rows(), 170)), votes(FrameRows(rows(), 400)))


@pytest.mark.parametrize("reading", [1, 2])
def test_rows_that_are_counted_twice_are_noticed_before_anything_is_released_or_spent(reading):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with recording_noise() as record, pytest.raises(RuntimeError, match="another number of rows"):
        made(ledger=ledger).fit(Doubled(rows(), 500, reading))
    assert not record.releases and not ledger.entries


class Lost(FrameRows):
    """A worker dies while rows are read for the second time."""

    readings = 0

    def each(self, function):
        self.readings += 1
        for k, value in enumerate(super().each(function)):
            if k and self.readings == 2:
                raise KeyboardInterrupt
            yield value


def test_a_worker_that_dies_leaves_no_half_fit_and_nothing_released():
    model = made()
    with recording_noise() as record, pytest.raises(KeyboardInterrupt):
        model.fit(Lost(rows(), 170))
    assert not record.releases and not hasattr(model, "student_") and not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("options", "X", "fit", "text"),
    [
        ({"schema": None, "classes": ["no", "yes"], "groups": list("abc")}, chunked(rows()), {}, "schema"),
        ({}, chunked(rows()), {"y": ["no"] * N}, "label"),
        ({}, spark_frame(pd.DataFrame(rows())), {}, "KeyedRows"),
    ],
)
def test_what_cannot_be_read_in_chunks_is_refused_before_anything_is_spent(options, X, fit, text):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match=text):
        made(ledger=ledger, **options).fit(X, **fit)
    assert not ledger.entries


@pytest.mark.parametrize("most", [1, 3, 40, 150, 260, 400])
def test_as_many_public_rows_are_chosen_as_are_asked_for(most):
    """Hashes of keys are even, not evenly spaced: the bound that spares the others leaves room for that."""
    for first in (0, 1000, 5000):
        frame = rows().assign(id=np.arange(first, first + N))
        found, _ = subsample_rows(opened(KeyedRows(chunked(frame), key="id")), SCHEMA, owner="test", most=most)
        assert len(found.features) == most
