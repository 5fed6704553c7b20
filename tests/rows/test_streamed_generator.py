"""Noisy tables of rows that are read in chunks: the same release, bit for bit, from every engine, order and retry."""

import numpy as np
import pandas as pd
import pytest

from skfairdp import PrivacyLedger
from skfairdp.generative import MarginalsBackend, PFGuardGenerator
from skfairdp.schema import Boolean, Category, Date, Number, Schema
from tests._tools.inside import FrameRows, RowSource
from tests._tools.sources import recording_noise

pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")

N = 3000
SCHEMA = Schema(
    {
        "age": Number(17, 90, step=1),
        "score": Number(-3, 3, missing=True),
        "job": Category(["clerk", "nurse", "other"], missing=True),
        "since": Date("2020-01-01", "2024-12-31"),
        "member": Boolean(),
        "group": Category(["a", "b", "c"], others="a"),
        "label": Category(["no", "yes"], others="no"),
    },
    label="label",
    groups="group",
)


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    score = rng.normal(size=n) + label
    job = np.array(["clerk", "nurse", "other", "astronaut"], dtype=object)[rng.integers(0, 4, n)]
    job[rng.random(n) < 0.05] = None
    return pd.DataFrame(
        {
            "id": np.arange(n),  # a column that the schema does not know
            "age": np.where(job == "nurse", 60, 20) + rng.integers(-10, 39, n),
            "score": np.where(rng.random(n) < 0.1, np.nan, score),
            "job": pd.Series(job, dtype=object),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(-9, 1900, n), unit="D"),
            "member": rng.random(n) < np.where(job == "clerk", 0.9, 0.1),
            "group": np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, n)],
            "label": np.array(["no", "yes"], dtype=object)[label],
        }
    )


def chunked(frame, sizes=(0, 7, 1000, 1, 0, 400)):
    """A function that hands out the rows in chunks of these sizes, over and over."""

    def factory():
        start, k = 0, 0
        while start < len(frame):
            yield frame.iloc[start : start + sizes[k % len(sizes)]]
            start, k = start + sizes[k % len(sizes)], k + 1

    return factory


def written(frame, folder, row_group_size=250):
    for j, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(folder / f"part{j}.parquet", row_group_size=row_group_size, index=False)
    return folder


def of_engine(name, frame, folder):
    if name == "frame":
        return frame
    if name == "chunks":
        return chunked(frame)
    if name == "polars chunks":
        pl = pytest.importorskip("polars")
        return lambda: (pl.from_pandas(part) for part in chunked(frame)())
    if name in ("parquet", "dataset", "lazy"):
        pytest.importorskip("pyarrow")
        path = written(frame, folder)
        if name == "parquet":
            return path
        if name == "dataset":
            import pyarrow.dataset

            return pyarrow.dataset.dataset(path)
        pl = pytest.importorskip("polars")
        return pl.scan_parquet(path / "*.parquet")
    assert name == "dask"
    dask_frames = pytest.importorskip("dask.dataframe")
    return dask_frames.from_pandas(frame, npartitions=5)


def generator(**options):
    return PFGuardGenerator(**({"epsilon": 2.0, "schema": SCHEMA, "random_state": 0} | options))


def released(X, **options):
    """What is released without noise, and what is sampled."""
    with recording_noise(0) as record:
        model = generator(**options).fit(X)
    return [np.asarray(release.output) for release in record.releases], model.sample_labels(50, random_state=1)


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ["chunks", "polars chunks", "parquet", "dataset", "lazy", "dask"])
@pytest.mark.parametrize("structure", ["tree", "star"])
def test_counts_are_the_same_bit_for_bit_from_every_engine(engine, structure, tmp_path):
    backend = MarginalsBackend(structure=structure)
    expected, rows = released(table(), backend=backend)
    found, sampled = released(of_engine(engine, table(), tmp_path), backend=backend)
    assert len(found) == len(expected) == (6 if structure == "tree" else 4)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(sampled, rows, strict=True):
        (pd.testing.assert_frame_equal if isinstance(one, pd.DataFrame) else np.testing.assert_array_equal)(one, other)


def test_counts_do_not_depend_on_the_order_or_the_size_of_chunks():
    expected, _ = released(table())
    for seed in range(3):
        mixed = table().sample(frac=1, random_state=seed)
        found, _ = released(chunked(mixed, sizes=(1 + 500 * seed, 333)))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


class Retried(FrameRows):
    """Every other task fails once after its work, and is run again: only what it returns the second time counts."""

    def map_reduce(self, function, add):
        total = None
        for j, chunk in enumerate(self.chunks()):
            value = function(chunk)
            value = function(chunk) if j % 2 else value
            total = value if total is None else add(total, value)
        return total


def test_tasks_that_are_tried_again_count_once():
    expected, _ = released(table())
    found, _ = released(Retried(table(), 170))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


class Counted(FrameRows):
    def map_reduce(self, function, add):
        self.passes = getattr(self, "passes", 0) + 1
        return super().map_reduce(function, add)


def test_a_tree_of_few_codes_takes_two_passes():
    source = Counted(table(), 500)
    generator().fit(source)
    assert source.passes == 2


@pytest.mark.parametrize("role", ["group", "label"])
def test_labels_and_groups_that_are_not_listed_are_refused_before_anything_is_spent(role):
    listed = {name: Category(SCHEMA.columns[name].values) for name in ("group", "label")}
    schema = Schema({**SCHEMA.columns, **listed}, label="label", groups="group")
    rows = table()
    rows.loc[len(rows) - 1, role] = "d"
    ledger = PrivacyLedger(epsilon=10.0)
    with pytest.raises(ValueError, match="holds a label or a group that is missing or not among those"):
        generator().set_params(schema=schema, ledger=ledger, noise_seed=None).fit(Counted(rows, 500))
    assert not ledger.entries


class Weighed(FrameRows):
    """Says how many counts a task returns, beside that of its rows."""

    def map_reduce(self, function, add):
        self.sums = [*getattr(self, "sums", []), *(function(chunk)[0].size for chunk in self.chunks())]
        return super().map_reduce(function, add)


def test_a_task_returns_as_many_counts_as_tables_have_cells_whatever_its_rows():
    """The formula of the guide, from the codes of the columns that the fit ended up with."""
    source = Weighed(table(), 500)
    codes = generator().fit(source)._codec.n_codes
    pairs = (sum(codes) ** 2 - sum(size**2 for size in codes)) // 2
    assert source.sums[-1] == 6 * sum(codes) + pairs and len(set(source.sums)) == 2


class Doubled(FrameRows):
    """An engine that adds the sums of a retried task twice."""

    def map_reduce(self, function, add):
        total = super().map_reduce(function, add)
        return add(total, function(next(iter(self.chunks()))))


def test_rows_that_are_counted_twice_are_noticed():
    with pytest.raises(RuntimeError, match="another number of rows"):
        generator().fit(Doubled(table(), 500))


class Lost(FrameRows):
    """A worker dies in the second pass, when noise has been drawn."""

    passes = 0

    def map_reduce(self, function, add):
        self.passes += 1
        if self.passes == 2:
            raise KeyboardInterrupt
        return super().map_reduce(function, add)


def test_a_worker_that_dies_leaves_the_ledger_charged_and_no_half_fit():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    model = generator(ledger=ledger)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Lost(table(), 500))
    assert len(ledger.entries) == 1
    assert not hasattr(model, "model_") and not hasattr(model, "rates_")


def test_a_fit_in_chunks_is_planned_and_charged_as_one_in_memory():
    in_memory, in_chunks = generator().planned_privacy(table()), generator().planned_privacy(chunked(table()))
    assert in_memory.event == in_chunks.event and in_memory.epsilon == in_chunks.epsilon
    fitted = generator().fit(chunked(table()))
    assert fitted.privacy_.event == in_memory.event


def test_what_a_fit_shows_of_a_replayed_neighbour_is_the_same():
    """One record differs: with the outputs of the first fit, the second shows the same to the last bit."""
    neighbour = table().astype(object)
    neighbour.loc[17, ["age", "score", "job", "group", "label"]] = [1e308, np.inf, "no such job", "z", None]
    with recording_noise(entropy=0) as first:
        one = generator().fit(chunked(table()))
    with recording_noise(entropy=0, replay=first) as second:
        other = generator().fit(chunked(neighbour))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    for a, b in zip(first.releases, second.releases, strict=True):
        assert np.linalg.norm(np.ravel(a.value) - np.ravel(b.value)) <= a.sensitivity * (1 + 1e-12)
    pd.testing.assert_frame_equal(one.sample(200, random_state=0), other.sample(200, random_state=0))
    assert repr(one) == repr(other) and one.privacy_ == other.privacy_


@pytest.mark.parametrize(
    ("options", "fit", "text"),
    [({"schema": None}, {}, "schema"), ({"backend": "gs_wgan"}, {}, "marginals"), ({}, {"y": ["no"] * N}, "label")],
)
def test_what_cannot_be_read_in_chunks_is_refused_before_anything_is_spent(options, fit, text):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match=text):
        generator(ledger=ledger, **options).fit(chunked(table()), **fit)
    assert not ledger.entries


def test_a_source_without_a_column_of_the_schema_is_refused_before_anything_is_spent(tmp_path):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match="lacks 1 column"):
        generator(ledger=ledger).fit(written(table().drop(columns="age"), tmp_path))
    assert not ledger.entries


def test_an_iterator_that_is_used_up_is_no_source():
    handed = iter([table()])
    with pytest.raises((ValueError, RuntimeError), match=r"used up|another number"):
        generator().fit(lambda: handed)


def test_a_function_that_returns_nothing_is_told_what_to_return():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match=r"must return an iterable of DataFrames, or yield them\. Got NoneType"):
        generator(ledger=ledger).fit(lambda: None)
    assert not ledger.entries


def test_engines_read_columns_and_rows_without_reading_cells(tmp_path):
    from tests._tools.inside import opened

    for engine in ("chunks", "parquet", "dataset", "lazy", "dask"):
        (tmp_path / engine).mkdir()
        source = opened(of_engine(engine, table(), tmp_path / engine))
        assert isinstance(source, RowSource)
        assert source.columns == list(table().columns) and source.n_rows == N
        assert sum(len(chunk.table) for chunk in source.chunks()) == N
        places = [chunk.place for chunk in source.chunks() if len(chunk.table)]
        assert places == [chunk.place for chunk in source.chunks() if len(chunk.table)] and len(set(places)) == len(
            places
        )
    assert opened(table()) is None and opened(np.zeros((3, 2))) is None and opened([[1, 2]]) is None
