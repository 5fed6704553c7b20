"""The place of a row, where it has no key: no private cell of any record moves it."""

import contextlib
import datetime
import itertools
import operator
from decimal import Decimal
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from skfairdp import FairDPSGDClassifier, KeyedRows, ParetoSearchCV, PFLDClassifier, PrivacyLedger
from skfairdp.model_selection import PrivateSearchCV
from tests._tools.inside import Chunk, PartWork, PrivateRowsError, opened, row_hashes
from tests._tools.sources import recording_noise
from tests.rows.test_streamed_generator import SCHEMA, table
from tests.rows.test_streamed_teachers import fair_pate, votes

frames = pytest.importorskip("dask.dataframe", reason="needs dask")
pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]
N = 90
UUIDS = ["0a1b2c3d-0123-4567-89ab-0123456789ab", "11112222-0123-4567-89ab-0123456789ac"]


def hashes(X):
    """The hash of each row's key or place, by the id of the row."""
    found = {}
    for chunk in opened(X).chunks():
        found.update(zip(chunk.table["id"].tolist(), row_hashes(chunk, None, 7).tolist(), strict=True))
    return found


def dask_rows(ends):
    """A dask frame whose partitions end before these rows, as blocks of a text file may."""
    import dask

    rows, edges = table(N), [0, *ends, N]
    parts = [dask.delayed(rows.iloc[start:stop]) for start, stop in itertools.pairwise(edges)]
    return frames.from_delayed(parts, meta=rows[:0])


def seen_by_workers(frame):
    """Hashes that tasks on partitions make, by both ways in which a fit reads them."""
    source = opened(frame)
    split = lambda chunk: (row_hashes(chunk, None, 7), np.zeros(len(chunk.table), np.int64))  # noqa: E731
    listed = lambda part, rows: [rows.tolist()]  # noqa: E731
    dealt = source.by_part(PartWork(split, listed, 1, np.dtype(np.uint64), operator.add))
    each = [hash for made in source.each(lambda chunk: row_hashes(chunk, None, 7).tolist()) for hash in made]
    summed = source.map_reduce(lambda chunk: row_hashes(chunk, None, 7).tolist(), lambda one, two: one + two)
    return sorted(dealt[0]), each, summed


def test_a_record_that_moves_the_ends_of_partitions_moves_no_row_to_another_teacher():
    """A longer text in one line of a CSV file: the blocks that dask reads end elsewhere."""
    one, other = dask_rows([30, 60]), dask_rows([29, 59])
    assert hashes(one) == hashes(other) == hashes(lambda: iter([table(N)]))
    expected = list(hashes(one).values())
    for frame in (one, other, dask_rows([30, 30, 60])):  # also where a partition is empty
        dealt, each, summed = seen_by_workers(frame)
        assert dealt == sorted(expected) and each == summed == expected


def cut_by_bytes(frame, folder, most=400):
    """What writers do: a file ends once its rows have so many bytes."""
    folder.mkdir()
    lengths = [len(",".join(map(str, row))) for row in frame.itertuples(index=False)]
    of_row = (np.cumsum(lengths) - lengths) // most
    for j in range(of_row.max() + 1):
        frame[of_row == j].to_parquet(folder / f"part.{j}.parquet", index=False, row_group_size=4)
    return of_row


def longer(frame, at):
    """The same numbers as texts, one of them written longer."""
    texts = frame["age"].astype(str)
    texts.iloc[at] = f"{texts.iloc[at]}.{'0' * 60}"
    return frame.assign(age=texts)


def two_stores(tmp_path):
    pytest.importorskip("pyarrow")
    cuts = [cut_by_bytes(longer(table(N), at), tmp_path / name) for at, name in ((0, "one"), (N // 2, "other"))]
    assert (cuts[0] != cuts[1]).sum() >= 5 and cuts[0].max() > 10  # 10 comes before 2 as a text
    return tmp_path / "one", tmp_path / "other"


def test_a_longer_text_that_moves_rows_to_the_next_file_moves_none_to_another_teacher(tmp_path):
    """Files come in the order of their numbers, and a row's place is its number over all of them."""
    import pyarrow.dataset

    expected = hashes(lambda: iter([table(N)]))
    for store in two_stores(tmp_path):
        assert hashes(store) == hashes(pyarrow.dataset.dataset(store)) == expected


def test_votes_of_stores_that_are_cut_by_bytes_are_the_same(tmp_path):
    """Both hold the same numbers, so not a vote may differ."""
    one, other = (votes(store)[0] for store in two_stores(tmp_path))
    assert one.tolist() == other.tolist()


@pytest.mark.slow
def test_sums_of_a_search_on_folds_of_stores_that_are_cut_by_bytes_are_the_same(tmp_path):
    searched = []
    for store in two_stores(tmp_path):
        with recording_noise(0) as record:
            ParetoSearchCV(fair_pate(), {"gamma": [0.1]}, cv=2, score_epsilon=2.0, random_state=0).fit(store)
        searched.append([np.asarray(release.output).tolist() for release in record.releases])
    assert searched[0] == searched[1]


def test_a_record_moves_no_query_by_more_than_a_vote_wherever_files_end(tmp_path):
    """Without noise: one record differs, and as it is longer or shorter, so do the ends of files."""
    rows, found = longer(table(N), N // 2), []
    for k in range(3):
        rows.loc[0, "label"] = ["no", "yes"][k % 2]
        rows.loc[0, "age"] = "20." + "0" * (50 * k)
        cut_by_bytes(rows, tmp_path / str(k))
        found.append(votes(tmp_path / str(k))[0].reshape(-1, 2))
    moved = [abs(found[i] - found[j]).sum(axis=1).max() for i, j in ((0, 1), (1, 2), (0, 2))]
    assert max(moved) == 2


def test_a_copied_or_renamed_folder_has_the_same_teachers(tmp_path):
    pytest.importorskip("pyarrow")
    cut_by_bytes(table(N), tmp_path / "here")
    found = hashes(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    assert hashes(tmp_path / "there") == found == hashes(f"file://{tmp_path}/there")


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (["part-0", "part-1", "part-10"], True),
        (["000", "001"], True),
        ([f"part-00000-{UUIDS[0]}-c000", f"part-00001-{UUIDS[1]}-c000"], True),
        ([f"{UUIDS[0].replace('-', '')}-0", f"{UUIDS[1].replace('-', '')}-1"], True),
        ([f"{UUIDS[0]}-0", f"{UUIDS[1]}-0"], False),
        (["f", "m"], False),
        (["f-0", "m-1"], False),
        (["f/part-0", "m/part-0"], False),
        (["f/part-0", "m/part-1"], False),
        (["f/part-0"], False),
        (["sex=f/part-0"], False),
        (["part-0", "more/part-1"], False),
        (["part-1", "part-01"], False),
    ],
)  # fmt: skip
def test_only_files_that_are_numbered_in_one_folder_have_places(names, known, tmp_path):
    pytest.importorskip("pyarrow")
    for name, rows in zip(names, np.array_split(np.arange(N), len(names)), strict=True):
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        table(N).iloc[rows].to_parquet(path, index=False)
    assert opened(tmp_path).knows_places is known
    assert opened(f"file://{tmp_path}").knows_places is known
    if not known:
        ledger = PrivacyLedger()
        with pytest.raises(ValueError, match=r"numbered in one folder.*KeyedRows\(X, key=\.\.\.\)"):
            fair_pate(ledger=ledger).fit(tmp_path)
        assert not ledger.entries
    assert opened(KeyedRows(tmp_path, key="id")).n_rows == N


def test_fits_that_use_rows_in_their_order_refuse_files_named_after_values(tmp_path):
    pytest.importorskip("pyarrow")
    for name, rows in table(N).groupby("group"):
        rows.to_parquet(tmp_path / f"{name}.parquet", index=False)
    for cls in (FairDPSGDClassifier, PFLDClassifier):
        ledger = PrivacyLedger()
        with pytest.raises(ValueError, match="uses rows in their order, which may depend on private values"):
            cls(epsilon=1.0, schema=SCHEMA, ledger=ledger, random_state=0).fit(KeyedRows(tmp_path, key="id"))
        assert not ledger.entries


def test_one_file_has_places_whatever_its_name(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    (tmp_path / "sex=f").mkdir()
    table(N).to_parquet(tmp_path / "sex=f" / "women.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    assert opened("sex=f/women.parquet").knows_places and opened("./sex=f").knows_places


def test_a_key_is_hashed_by_itself_whatever_else_is_in_its_chunk():
    """Chunks of a reader get their types one by one: a text or a gap among ids makes texts or floats of the others."""
    ids = [7, 123, -5, 10**19]
    for kind in ([7, 123, -5], [7.0, 123.0, -5.0, None], ["7", "123", "-5", "A7"], [7, "123", -5.0, "A7"], ids):
        found = row_hashes(Chunk(pd.DataFrame({"id": kind}), ()), "id", 3)
        assert found[:3].tolist() == row_hashes(Chunk(pd.DataFrame({"id": ids[:3]}), ()), "id", 3).tolist()


def hashes_of(cells, seed=3):
    return row_hashes(Chunk(pd.DataFrame({"id": cells}), ()), "id", seed)


#: Cells of one id each, by the dtype that neighbours in their chunk may give it.
ONE_ID = {
    "whole": [7, 7.0, "7", "007", " 7", "7 ", "+7", "7.0", "7.", "7e0", "0.7e1", b"7", np.int8(7), np.float32(7)],
    "decimal number": [Decimal("7.00"), 7],
    "fraction": [12.1, "12.1", "12.10", "012.10", "1.21e1", Decimal("12.100"), np.float32(12.1)],
    "exponent": [7000.0, "7e3", "7E+03", "7000"],
    "zero": [0, "0", "-0", -0.0, "00e12"],
    "truth": [True, np.True_, "True", "TRUE", 1],
    "long": [2**53 + 1, str(2**53 + 1), "0" + str(2**53 + 1), np.uint64(2**53 + 1)],
    "longer": [2**64 + 1, str(2**64 + 1)],
    "tiny": [1e-5, "0.00001", "1e-05"],
    "text": ["A1", " A1", "A1\t", b"A1"],
    "underscore": ["12_34", 1234],
    "thousands": [1234, 1234.0, "1,234", "1'234", "1’234", "1 234", "1\xa0234", "1,234.0", "01,234", b"1,234"],
    "thousands of a fraction": [-1234.5, "-1,234.50", "-1 234.5"],
    "pair": [("a", 1), ("a", 1.0), ("a", "01")],
    "gap": [None, np.nan, "nan"],
}


@pytest.mark.parametrize("one", ONE_ID)
def test_an_id_has_one_hash_whatever_type_its_reader_gave_it(one):
    """Found: readers made a number of 12.10 or 123.0 where its chunk had no text, and one person became two."""
    cells = ONE_ID[one]
    assert len({hashes_of(pd.Series([cell], dtype=object))[0] for cell in cells}) == 1
    assert len(set(hashes_of(pd.Series(cells, dtype=object)))) == 1
    assert len(set(hashes_of(pd.Series([*cells, "A7"], dtype=object))[:-1])) == 1


def test_different_ids_stay_different():
    cells = ["A1", "a1", "A 1", "1234e567", "1234e568", 2**53, 2**53 + 1, 2**64, 2**64 + 1, -7, 7, "12.1", "12.2", "7-"]
    assert len(set(hashes_of(np.array(cells, dtype=object)))) == len(cells)


@pytest.mark.parametrize(
    "column",
    [
        "7", "00{}", "{}.0", " {} ", "{}e3", "{}.50", "{}.10", "-{}", "1{}e-7", "9007199254740{}", "+{}.",
        "{}00000000000000000", "True", "1234567890{}.25",
    ],
)  # fmt: skip
@pytest.mark.parametrize("beside", ["A1", "0.5", "12345678901234567", "-3", "True", "8e2", ""])
def test_pandas_reads_an_id_to_the_same_hash_or_none_whatever_is_beside_it(column, beside):
    ids = [column.format(i) for i in range(101, 120)]
    alone, all_texts = (pd.read_csv(StringIO("\n".join(["id", *ids])), dtype=kind).id for kind in (None, str))
    both = pd.read_csv(StringIO("\n".join(["id,x", *(f"{one},1" for one in [*ids, beside])]))).id
    found = []
    for read in (alone, all_texts, both):
        with contextlib.suppress(PrivateRowsError):
            found.append(hashes_of(read)[: len(ids)].tolist())
    assert found and all(one == found[0] for one in found)


@pytest.mark.parametrize("sign", [",", "'", " ", "_", "’", "\xa0", "\u202f"])
@pytest.mark.parametrize("column", ["1{}234", "12{}345{}678", "-1{}23{}4", "+0{}123.0", "1{}234.5"])
@pytest.mark.parametrize("beside", ["A1", "0.5", "12,A", ""])
def test_signs_between_thousands_are_read_in_chunks_as_one_id(column, sign, beside):
    """Found: pandas takes them out where a chunk holds numbers only, and one person became two beside a text."""
    one = column.replace("{}", sign)
    lines = "\n".join(["id", f'"{one}"', f'"{one}"', f'"{beside}"'])
    chunks = pd.read_csv(StringIO(lines), thousands=sign, chunksize=2, engine="python", skip_blank_lines=False)
    whole = pd.read_csv(StringIO(lines), thousands=sign, engine="python", skip_blank_lines=False)
    texts = pd.read_csv(StringIO(lines), dtype=str, skip_blank_lines=False)
    assert len({hashes_of(read.id)[0] for read in (next(chunks), whole, texts)}) == 1


@pytest.mark.parametrize(
    "cell",
    [np.inf, -np.inf, Decimal("inf"), 1e15, 2.0**53, 1 / 3, np.float32(123456789),
     pd.Timestamp("2020-01-01"), pd.Timedelta(1), datetime.date(2020, 1, 1), pd.Period("2020-01")],
    ids=repr,
)  # fmt: skip
def test_what_a_reader_may_have_changed_is_no_id(cell):
    with pytest.raises(PrivateRowsError, match="must be whole numbers or texts"):
        hashes_of(pd.Series([cell, 1], dtype=object))
    with pytest.raises(PrivateRowsError, match="must be whole numbers or texts"):
        hashes_of(pd.Series([cell]))


@pytest.mark.parametrize("declared", [False, True])
def test_files_in_folders_named_after_values_need_a_key(declared, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    for name, rows in table(N).groupby("group"):
        (tmp_path / f"group={name}").mkdir()
        columns = rows.drop(columns="group") if declared else rows
        columns.to_parquet(tmp_path / f"group={name}" / "part-0.parquet", index=False)
    X = dataset.dataset(tmp_path, partitioning="hive") if declared else tmp_path
    with pytest.raises(ValueError, match="numbered in one folder"):
        fair_pate().fit(X)
    for search in (ParetoSearchCV, PrivateSearchCV):
        with pytest.raises(ValueError, match="numbered in one folder"):
            search(fair_pate(), {"epsilon": [1.0]}, cv=2).fit(X)
    assert opened(KeyedRows(X, key="id")).n_rows == N
