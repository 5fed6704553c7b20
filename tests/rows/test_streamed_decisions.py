"""Decisions over chunks: counts are carried, so that a cut stream is the same stream, in the memory of a chunk."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from skfairdp import IDP3, DemographicParityFilter
from tests.rows.test_streamed_generator import SCHEMA, chunked, of_engine, table

pytestmark = [pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")]


def stream(n, seed=0):
    """Predictions and groups, of which one is chosen far less often."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(3, size=n)
    return (rng.random(n) < np.array([0.2, 0.4, 0.35])[groups]).astype(int), groups


def post_processor():
    return IDP3(groups=[0, 1, 2]).fit(None, [0, 1])


def decided(n, size, seed=0):
    """Answers of one post-processor that is asked chunk by chunk and commits each."""
    idp = post_processor()
    for start in range(0, n, size):
        predicted, groups = stream(min(size, n - start), seed + start)
        answered = idp.transform(predicted, sensitive_features=groups)
        idp.update(answered, sensitive_features=groups)
        yield answered, idp


@pytest.mark.parametrize("sizes", [[1, 7, 500], [4000], [999]])
def test_a_stream_in_chunks_that_carries_its_counts_is_answered_as_in_one_call(sizes):
    predicted, groups = stream(9000)
    one, found, start = post_processor(), [], 0
    expected = one.transform(predicted, sensitive_features=groups)
    one.update(expected, sensitive_features=groups)
    idp = post_processor()
    while start < len(predicted):
        for size in sizes:
            some = slice(start, start + size)
            if len(predicted[some]):
                found.append(idp.transform(predicted[some], sensitive_features=groups[some]))
                idp.update(found[-1], sensitive_features=groups[some])
            start += size
    np.testing.assert_array_equal(np.concatenate(found), expected)
    np.testing.assert_array_equal(idp.counts_, one.counts_)
    assert idp.coverage_ == one.coverage_ and 0.5 < idp.coverage_ < 1


@pytest.mark.slow
def test_memory_follows_the_chunk_and_not_the_stream():
    def peak(n):
        tracemalloc.start()
        for _ in decided(n, 5000):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10_000)  # compiles
    assert peak(40_000) < 1.5 * peak(10_000)


def filtered(X, **options):
    parity = DemographicParityFilter(schema=SCHEMA, min_count=20, **options)
    rows, labels = zip(*parity.resample_chunks(X), strict=True)
    return parity, pd.concat(rows, ignore_index=True), np.concatenate(labels)


def skewed():
    frame = table()
    return frame[(frame["group"] != "a") | (frame["label"] == "no") | (frame["id"] % 3 == 0)].reset_index(drop=True)


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ["chunks", "polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_the_filter_keeps_the_rows_that_it_keeps_in_memory(engine, tmp_path):
    frame = skewed()
    frame["job"] = frame["job"].where(frame["job"] != "astronaut")  # what a schema does not list is an error here
    whole = DemographicParityFilter(schema=SCHEMA, min_count=20)
    X, y = whole.fit_resample(frame)
    parity, rows, labels = filtered(of_engine(engine, frame, tmp_path))
    np.testing.assert_array_equal(rows["id"], X["id"])
    np.testing.assert_array_equal(labels, y)
    assert 0 < len(X) < len(frame) and parity.kept_gap_ == whole.kept_gap_
    np.testing.assert_array_equal(parity.counts_, whole.counts_)
    assert parity.rejection_rate_by_group_ == pytest.approx(whole.rejection_rate_by_group_)


@pytest.mark.parametrize("options", [{"schema": None}, {"shuffle": True}])
def test_what_the_filter_cannot_take_in_chunks_is_refused(options):
    parity = DemographicParityFilter(**({"schema": SCHEMA} | options))
    with pytest.raises(ValueError, match="resample_chunks"):
        next(parity.resample_chunks(chunked(table())))
    with pytest.raises(ValueError, match="fit_resample"):
        next(DemographicParityFilter(schema=SCHEMA).resample_chunks(table()))
