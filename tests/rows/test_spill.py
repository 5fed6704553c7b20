"""Encoded rows: no bit is lost in small types, and what lies on the disk belongs to one user and dies with the fit."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest

from skfairdp import PrivacyLedger
from skfairdp.generative import MarginalsBackend
from skfairdp.schema import Boolean, Category, CompactRows, Date, Number, RawTable, Schema
from tests._tools.inside import FrameRows, Spill, bytes_on_disk, check_free_disk
from tests.rows.test_streamed_generator import SCHEMA, N, generator, table
from tests.rows.test_streamed_teachers import fair_pate, public_votes

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

WIDE = Schema(
    {
        "age": Number(17, 90, step=1),
        "tenth": Number(-3, 3, step=0.1, missing=True),
        "uneven": Number(0.3, 7.77, step=0.7),
        "fine": Number(1e5, 1e5 + 1, step=1e-6, missing=True),
        "far": Number(1e15, 1e15 + 10, step=0.5),
        "any": Number(-1e300, 1e300, missing=True),
        "day": Date("1969-12-30", "2024-12-31", missing=True),
        "one": Category(["only"], missing=True),
        "many": Category(list(range(300))),
        "yes": Boolean(missing=True),
        "label": Category(["no", "yes"], others="no"),
    },
    label="label",
)


def strange(n=2000, seed=0):
    """Cells of every kind, most of them beyond what the schema foresees."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.normal(size=n) * 10.0 ** rng.integers(-9, 17, n) for name in WIDE.columns})
    frame["age"], frame["many"] = rng.integers(0, 120, n), rng.integers(-5, 305, n)
    frame["fine"] = 1e5 + rng.random(n) * 1.2
    frame["far"] = 1e15 + rng.integers(0, 12, n)
    frame["uneven"] = rng.random(n) * 9
    frame["day"] = rng.integers(-10, 30000, n)
    frame["yes"] = rng.integers(0, 3, n)
    frame["label"] = rng.choice(["no", "yes", "maybe"], n)
    return frame.mask(rng.random(frame.shape) < 0.1)


@pytest.mark.parametrize(("schema", "rows"), [(WIDE, strange()), (SCHEMA, table())], ids=["wide", "usual"])
def test_small_types_lose_no_bit_of_what_a_schema_reads(schema, rows):
    raw = RawTable.read(schema, rows, owner="test")
    compact = CompactRows(schema, "test", tuple(schema.columns))
    encoded = np.empty(len(rows), dtype=compact.fields)
    compact.fill(encoded, raw.numbers)
    back = compact.table(encoded)
    for name in schema.columns:
        bits = [np.nan_to_num(numbers[name], nan=7e300).view(np.int64) for numbers in (back.numbers, raw.numbers)]
        np.testing.assert_array_equal(*bits)
    np.testing.assert_array_equal(back.features, raw.features)
    np.testing.assert_array_equal(back.labels(), raw.labels())


def test_types_follow_from_the_schema_and_are_the_smallest():
    sizes = [dtype.itemsize for _, dtype in CompactRows(WIDE, "test", tuple(WIDE.columns)).fields]
    assert sizes == [1, 1, 1, 4, 8, 8, 2, 1, 2, 1, 1]
    assert bytes_on_disk(WIDE, 10) == 10 * (8 + sum(sizes))


def rows_of(n, seed):
    rng = np.random.default_rng(seed)
    rows = np.empty(n, dtype=[("a", np.uint8), ("b", np.float64)])
    rows["a"], rows["b"] = rng.integers(256, size=n), rng.random(n)
    return rows, rng.integers(7, size=n)


@pytest.mark.parametrize("held", [1, 4000, 2**30])
def test_what_was_dealt_comes_back_part_by_part_from_memory_and_disk(held):
    dealt = [rows_of(n, seed) for seed, n in enumerate((300, 1, 0, 1000, 50))]
    with Spill(7, held) as spill:
        for rows, parts in dealt:
            spill.add(rows, parts)
        for part in (3, 0, 6, 3):
            expected = np.concatenate([rows[parts == part] for rows, parts in dealt])
            np.testing.assert_array_equal(spill.read(part, dealt[0][0].dtype), expected)


class Counted(FrameRows):
    reads = 0

    def chunks(self):
        self.reads += 1
        return super().chunks()


def test_one_pass_whatever_the_number_of_parts_and_the_votes_of_one_part():
    source = Counted(table(), 170)
    found = public_votes(source, most_bytes=20_000)  # many parts
    assert source.reads == 1
    np.testing.assert_array_equal(found, public_votes(FrameRows(table(), 170)))


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs a system with files without names")
def test_the_file_is_the_users_alone_and_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Spill(7, 1) as spill:
        spill.add(*rows_of(300, 0))
        assert not list(tmp_path.iterdir())
        status = os.fstat(spill._file.fileno())
        assert status.st_size == 300 * 9 and status.st_nlink == 0 and status.st_mode & 0o077 == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_disk_is_free_again_after_an_error_and_ctrl_c(error, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spill = Spill(7, 1)

    def fails():
        with spill:
            spill.add(*rows_of(300, 0))
            raise error

    with pytest.raises(error):
        fails()
    assert spill._file.closed and not list(tmp_path.iterdir())


KILLED = """
import sys, time
import numpy as np
from skfairdp._rows._source import Spill
with Spill(1, 1) as spill:
    spill.add(np.zeros(10**6, dtype=[("a", np.uint8)]), np.zeros(10**6, dtype=np.int64))
    print("written", flush=True)
    time.sleep(60)
"""


def test_a_killed_process_leaves_no_file(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_too_small_is_told_before_anything_is_read_or_spent(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 10**9 - 5, 5))
    source, ledger = Counted(table(), 170), PrivacyLedger(epsilon=5.0, delta=1e-4)
    many = 10**8
    monkeypatch.setattr(FrameRows, "n_rows", property(lambda self: many))
    with pytest.raises(OSError, match=r"FairPATEClassifier keeps .* GB in .*TMPDIR"):
        fair_pate(ledger=ledger).fit(source)
    assert not source.reads and not ledger.entries


def test_the_disk_that_is_needed_is_said_before_it_is_used(capsys):
    check_free_disk(10**8, "FairPATEClassifier", verbose=1)
    assert "0.10 GB" in capsys.readouterr().err
    for quiet in ({"n_bytes": 10**8}, {"n_bytes": 10**6, "verbose": 1}):  # small tables stay in memory
        check_free_disk(**{"owner": "FairPATEClassifier", **quiet})
    assert not capsys.readouterr().err


class Slow(FrameRows):
    """As slow as a bar needs to show every chunk."""

    def each(self, function):
        for value in super().each(function):
            time.sleep(0.12)
            yield value


@pytest.mark.few(1)
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_bar_over_chunks_shows_public_totals_and_no_rate(verbose, capsys):
    fair_pate(verbose=verbose).fit(Slow(table(), 1000))
    shown = capsys.readouterr().err
    seen = {int(n) for n in re.findall(rf"(\d+)/{N}\b", shown)}
    assert seen == ({N * tenth // 10 for tenth in range(11)} if verbose else set())
    assert "/s" not in shown and "?" not in shown


@pytest.mark.few(1)
@pytest.mark.parametrize("verbose", [0, 1])
def test_the_generator_shows_the_same_bar_in_each_pass(verbose, capsys):
    generator(backend=MarginalsBackend(verbose=verbose)).fit(Slow(table(), 1000))
    shown = capsys.readouterr().err
    seen = re.findall(rf"(\d+)/{N}\b", shown)
    assert {int(n) for n in seen} <= {N * tenth // 10 for tenth in range(11)}
    assert bool(seen) == bool(verbose) and seen.count("0") == 2 * bool(verbose)
    assert "/s" not in shown and "?" not in shown


def test_a_file_that_is_shorter_than_what_was_written_is_an_error_and_no_rows_of_chance():
    rows = np.arange(64, dtype=np.float64)
    with Spill(2, held=1) as spill:
        spill.add(rows, np.arange(64) % 2)
        spill._file.truncate(8 * 60)
        assert spill.read(0, rows.dtype).tolist() == rows[::2].tolist()
        with pytest.raises(RuntimeError, match="shorter than what was written"):
            spill.read(1, rows.dtype)
