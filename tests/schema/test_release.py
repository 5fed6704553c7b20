"""A schema from private rows: what it finds, what it costs, and that nothing else shows."""

import contextlib
import copy
import datetime
import json
import math
import pickle
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st
from sklearn.base import clone

from skfairdp import FairPATEClassifier, PrivacyLedger, privacy as dp
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.privacy import compose, epsilon_of, flatten, verify_file
from skfairdp.schema import Boolean, Category, Date, IncompleteSchemaError, Number, Schema
from skfairdp.schema._columns import _as_days, _as_numbers
from skfairdp.schema._release import (
    _BEYOND,
    _LOST,
    ColumnRelease,
    _held,
    _kinds_of_cells,
    _plain_values,
    _with_neighbors,
    _without_tails,
    plan_release,
)
from skfairdp.schema._writings import DAYS, NUMBERS, _reads
from tests._tools.layers import examples
from tests._tools.raw import with_record
from tests._tools.replay import Recording, distance
from tests._tools.sources import RecordingNoise, recording_noise
from tests.schema.test_schema import CELLS, Hostile

N = 3000


def table(n=N, seed=0):
    """Every kind of column; names and identifiers that one record alone holds."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2001-03-01") + rng.integers(0, 3000, n).astype("timedelta64[D]")
    wage = rng.lognormal(10, 0.5, n)
    return pd.DataFrame({
        "age": rng.integers(17, 91, n),
        "wage": np.where(rng.random(n) < 0.2, np.nan, wage),
        "gain": np.where(rng.random(n) < 0.6, 0, -rng.integers(100, 5000, n)),
        "job": rng.choice(np.array(["nurse", "clerk", None], dtype=object), n, p=[0.5, 0.3, 0.2]),
        "level": rng.integers(1, 4, n),
        "citizen": rng.random(n) < 0.9,
        "hired": days,
        "name": [f"person {i}" for i in range(n)],
        "sex": rng.choice(["Male", "Female"], n),
        "income": rng.choice([">50K", "<=50K"], n, p=[0.3, 0.7]),
    })  # fmt: skip


TABLE = table()
ROLES = {"label": "income", "groups": "sex"}


def quiet_release(rows, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Schema.release(rows, **{"epsilon": 3.0, **ROLES, **given})


# ---------------------------------------------------------------------- what it finds


def test_it_finds_kinds_ranges_and_values():
    with recording_noise(entropy=0), pytest.warns(UserWarning, match=r"leaves out \['name'\]"):
        schema = Schema.release(TABLE, epsilon=12.0, known={"level": "category"}, **ROLES)
    columns = dict(schema.columns)
    assert columns["job"] == Category(["clerk", "nurse"], missing=True)
    assert columns["level"] == Category([1, 2, 3])
    assert columns["citizen"] == Boolean(missing=True)
    assert (schema.classes, schema.group_values) == (("<=50K", ">50K"), ("Female", "Male"))
    age, wage, gain, hired = (columns[name] for name in ("age", "wage", "gain", "hired"))
    assert age.step == 1 and not age.missing and 16 <= age.low <= 22 and 84 <= age.high <= 95
    assert wage.step is None and wage.missing and 0 < wage.low < 15000 and 40000 < wage.high < 140000
    assert gain.step == 1 and gain.low < -4000 and gain.high == 63
    assert isinstance(hired, Date) and hired.first.year in (2000, 2001) and 2008 <= hired.last.year <= 2010
    assert list(schema.columns) == [name for name in TABLE if name != "name"]


def test_a_table_of_texts_gives_the_same_description_of_its_numbers():
    """As a CSV file read without guessing types."""
    texts = TABLE.astype(object).where(TABLE.notna(), None).map(lambda cell: None if cell is None else str(cell))
    with recording_noise(entropy=0):
        one = quiet_release(TABLE, known={"level": "whole"})
    with recording_noise(entropy=0):
        other = quiet_release(texts, known={"level": "whole"})
    assert one == other


def test_what_is_known_costs_nothing():
    known = {
        "age": Number(17, 90, step=1), "wage": None, "gain": None, "job": Category(["clerk", "nurse"], missing=True),
        "level": None, "citizen": "boolean", "hired": None, "name": None, "sex": Category(["Female", "Male"]),
        "income": Category(["<=50K", ">50K"]),
    }  # fmt: skip
    with recording_noise() as record:
        free = quiet_release(TABLE, known=known)
    assert free.privacy_.epsilon == 0 and not record.releases
    assert free.columns["citizen"] == Boolean(missing=True) and list(free.columns) == ["age", "job", "citizen", "sex",
                                                                                      "income"]  # fmt: skip
    paid = quiet_release(TABLE, known={**known, "age": "whole"})
    assert paid.privacy_.epsilon == pytest.approx(3.0, rel=1e-6) and paid.columns["age"].high > 80


def test_it_is_a_schema_as_any_other_and_keeps_its_report():
    schema = quiet_release(TABLE)
    for copied in (copy.deepcopy(schema), pickle.loads(pickle.dumps(schema)), clone(schema)):
        assert copied == schema and copied.privacy_ == schema.privacy_
    written = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert written == schema and written.privacy_.release == schema.privacy_.release
    rows = schema.read(TABLE)
    assert len(rows.X) == N and set(rows.y) == {"<=50K", ">50K"}


@pytest.mark.slow
def test_more_noise_finds_less_and_the_middle_of_the_rows_stays_inside():
    found = []
    for epsilon in (0.2, 1.0, 8.0):
        with recording_noise(entropy=4):
            columns = quiet_release(table(20000), epsilon=epsilon, known={"name": None}).columns
        ages = columns["age"]
        assert ages.low <= 35 and ages.high >= 70
        found.append((ages.high - ages.low, len(columns)))
    assert found[-1][0] >= 72


@pytest.mark.parametrize("sigma", [1.0, 10.0, 100.0, 1000.0])
def test_noise_cuts_off_next_to_no_rows(sigma):
    """Noise makes bounds wider, up to the whole range, and never so narrow that a third of the rows lie beyond."""
    counts = np.random.default_rng(0).multinomial(3000, np.full(128, 1 / 128))
    for seed in range(20):
        noisy = counts + np.random.default_rng(seed).normal(0, sigma, 128)
        first, last = _without_tails(noisy, 3000, sigma)
        cut = 1 - counts[first : last + 1].sum() / 3000
        assert cut <= 2 * (_BEYOND + 2 * _LOST)
        assert (first, last) == (0, 127) or 3 * sigma <= _LOST * 3000


@pytest.mark.parametrize(
    ("noisy", "expected"),
    [
        ([2, 0, 2, 2, 9, 9, 2, 0, 2], [2, 6]),
        ([1, 0, 1, 1, 9, 9, 1, 0, 1], [4, 5]),
        ([2, 2, 2, 2, 9, 9, 2, 2, 2], [0, 8]),
        ([0, 0, 1, 1.9, 9, 9, 1.5, 1.6, 1.7, 1.8], [4, 9]),  # four that do together
        ([0, 0, 3, 1.5, 9, 9, 0, 0, 0], [2, 5]),  # two that do
    ],
)
def test_a_cell_beside_sure_ones_needs_less_to_be_believed(noisy, expected):
    sure = np.isin(np.arange(len(noisy)), [4, 5])
    assert _with_neighbors(sure, np.array(noisy, dtype=float), 1.0).tolist() == expected


@pytest.mark.parametrize(("share", "expected"), [(9.0, [3]), (3.0, [2, 3]), (2.5, [0, 1, 2, 3]), (0.5, [])])
def test_cells_that_hold_rows_only_together_are_found_together(share, expected):
    noisy = np.zeros(33)
    noisy[{9.0: [3], 3.0: [2, 3], 2.5: [0, 1, 2, 3], 0.5: [0, 1, 2, 3]}[share]] = share
    assert np.flatnonzero(_held(noisy, 1.0)).tolist() == expected


@pytest.mark.parametrize("n_rows", [4000, 6000])
def test_rows_spread_thinly_are_within_the_bounds_that_are_found_or_that_is_told(n_rows):
    """Found: fifty years of birth in 6,000 rows had bounds of three years, those of the one block that stood out."""
    rng = np.random.default_rng(0)
    born = pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 18000, n_rows), unit="D")
    rows = pd.DataFrame({"y": rng.integers(0, 2, n_rows), "born": born, **{f"x{j}": rng.random(n_rows) for j in "abc"}})
    inside, told = [], []
    for entropy in range(6):
        with recording_noise(entropy=entropy), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = Schema.release(rows, epsilon=0.2, delta=2e-6, label="y", known={"born": "date"}).columns.get("born")
        if found is not None:
            inside.append(born.to_series().between(str(found.first), str(found.last)).mean())
            told.append(any("less than half of the rows" in str(warning.message) for warning in caught))
    assert len(inside) >= 3 and all(warned or share > 0.3 for share, warned in zip(inside, told, strict=True))
    assert n_rows == 4000 or (np.mean(inside) > 0.7 and not any(told))


def test_noise_in_a_thousand_empty_cells_below_1_is_no_sign_of_far_rows():
    kids = np.random.default_rng(0).poisson(1, 6000)
    rows = pd.DataFrame(
        {"y": kids % 2, "kids": kids, **{f"x{j}": np.random.default_rng(j).random(6000) for j in range(8)}}
    )
    known = {name: "number" for name in rows if name != "y"}
    for entropy in range(10):
        with recording_noise(entropy=entropy), warnings.catch_warnings():
            warnings.simplefilter("error")
            Schema.release(rows, epsilon=0.4, delta=1e-6, label="y", known=known)


def test_few_rows_keep_their_range_among_many_columns():
    rows = pd.DataFrame({f"x{j}": np.random.default_rng(j).integers(18, 90, 3000) for j in range(10)})
    with recording_noise(entropy=4):
        columns = Schema.release(rows, epsilon=0.5, delta=1e-6, known=dict.fromkeys(rows, "whole")).columns
    beyond = [((rows[name] < one.low) | (rows[name] > one.high)).mean() for name, one in columns.items()]
    assert len(beyond) >= 8 and np.mean(beyond) < 0.1 and max(beyond) < 0.3


def test_without_noise_the_bounds_hold_all_but_the_tails():
    rows = pd.DataFrame({"x": np.arange(10000) / 100.0, "y": np.arange(10000) - 5000})
    with recording_noise(0):
        columns = Schema.release(rows, epsilon=100.0, known={"x": "number", "y": "whole"}).columns
    for name, width in (("x", 1.0), ("y", 128.0)):
        low, high = rows[name].quantile([_BEYOND, 1 - _BEYOND])
        column = columns[name]
        assert low - width - 1 <= column.low <= low + 1e-9 + 1 and high - 1 <= column.high <= high + width + 1


@pytest.mark.parametrize(
    "cells",
    [[0.0] * 50, [5] * 50, [-3.5] * 50, [1e300, -1e300] * 25, [1e-300] * 50, [2**61] * 50, [-1] * 50],
    ids=["zeros", "one value", "a negative fraction", "huge", "tiny", "a large power", "minus one"],
)
def test_odd_numbers_have_finite_bounds(cells):
    rows = pd.DataFrame({"x": cells})
    for kind in ("number", "whole"):
        column = quiet_release(rows, epsilon=200.0, known={"x": kind}, label=None, groups=()).columns["x"]
        assert math.isfinite(column.low) and column.low < column.high
        value = np.clip(cells[0], -(2.0**995), 2.0**995)
        assert column.low <= value <= column.high


def beside(cells):
    """A column of N cells in a table that has more to tell."""
    return pd.DataFrame({"y": np.arange(N) % 2, "x": np.arange(N) % 10, "c": pd.Series(cells).to_numpy()})


@pytest.mark.parametrize("size", [1e-200, 1e-20, 1e-11, 1e-3, 1e20, 1e100, 5e298])
@pytest.mark.parametrize("low", [-1.0, 1.0])
def test_numbers_of_every_size_are_told_apart(size, low):
    """Found: numbers around 1e-11, or beyond 2^62, became a constant, in silence."""
    cells = size * np.random.default_rng(0).uniform(low, 2.0, N)
    with recording_noise(entropy=0):
        column = Schema.release(beside(cells), epsilon=12.0, label="y").columns["c"]
    places = np.unique(np.floor((column.read(cells) - column.low) / (column.high - column.low) * 8))
    assert len(places) >= 6 and column.step is None


RNG = np.random.default_rng(0)
ALIKE, FAR, FEW = r"one value in \['c'\]", r"far values in \['c'\]", r"values of \['c'\] that less than half"
SENTINEL = np.where(RNG.random(N) < 0.03, 99999, RNG.normal(size=N))


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (np.full(N, 7), ALIKE),
        (np.zeros(N), ALIKE),
        (["5 %"] * N, ALIKE),
        ([True] * N, ALIKE),
        (["yes"] * N, ALIKE),
        (["2001-03-04"] * N, ALIKE),
        (1e9 + RNG.random(N), ALIKE),
        (2**62 + RNG.integers(0, 2**40, N), ALIKE),
        (SENTINEL, FAR),
        (np.where(SENTINEL > 99, 1e300, SENTINEL), FAR),
        (np.where(SENTINEL > 99, 9999, RNG.integers(1, 9, N)), FAR),
        (np.where(RNG.random(N) < 0.1, "common", [f"text {i}" for i in range(N)]), FEW),
        ([f"{1 + i % 28}/{1 + i % 12}/{1990 + i % 20}" for i in range(N)], None),
        (np.where(RNG.random(N) < 0.9, 0, RNG.integers(1, 5000, N)), None),
        (RNG.random(N) < 0.05, None),
        (np.where(RNG.random(N) < 0.6, None, "known"), None),
        (np.exp(2 * RNG.normal(size=N)), None),
    ],
    ids=["sevens", "zeros", "a unit", "true", "yes", "one day", "close", "keys", "99999", "1e300", "9999", "rare texts",
         "days", "mostly zero", "rarely true", "often missing", "skewed"],
)  # fmt: skip
def test_a_column_that_tells_rows_hardly_apart_is_named(cells, says):
    with recording_noise(entropy=0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Schema.release(beside(cells), epsilon=12.0, label="y")
    told = [str(warning.message) for warning in caught]
    assert [re.search(says, text) is not None for text in told] == [True] if says else told == []


@pytest.mark.parametrize("cell", [None, "inf", math.nan, "NA"], ids=repr)
def test_a_column_in_which_nothing_can_be_read_is_named(cell):
    """Found: the noise in the counts of its kinds made it a Boolean, of which every cell was missing."""
    for entropy in range(5):
        with recording_noise(entropy=entropy), pytest.warns(UserWarning, match=r" \['c'\]"):
            found = Schema.release(beside(np.full(N, cell)), epsilon=3.0, label="y")
        assert "c" not in found.columns or found.columns["c"] == Category([cell])  # a word for nothing is one as well


ARABIC, WIDE = (str.maketrans("0123456789", "".join(map(chr, range(zero, zero + 10)))) for zero in (0x660, 0xFF10))


@pytest.mark.parametrize("digits", [ARABIC, WIDE], ids=["arabic", "wide"])
def test_digits_of_other_scripts_are_texts(digits):
    cells = [str(cell).translate(digits) for cell in np.arange(N) % 5]
    with recording_noise(entropy=0):
        found = Schema.release(beside(cells), epsilon=3.0, label="y")
    assert set(found.columns["c"].values) == set(cells) and not found.misfits(beside(cells)).any()


@pytest.mark.parametrize("written", ["\u2212{}", "\u00a0{} ", "\u2212{},5 €"])
def test_printed_minus_signs_and_spaces_are_read(written):
    cells = [written.format(cell) for cell in 1 + np.arange(N) % 50]
    with recording_noise(entropy=0):
        column = Schema.release(beside(cells), epsilon=12.0, label="y").columns["c"]
    sign, rest = -1 if "\u2212" in written else 1, 0.5 if "," in written else 0
    assert np.array_equal(column.read(cells), np.clip(sign * (1 + np.arange(N) % 50 + rest), column.low, column.high))
    assert column.high - column.low >= 45


@pytest.mark.parametrize("written", ["({:,})", "{:,}-", "(${:,})", "({:,}) €", "€ ({:,})", "({})", "{}-", "{}\u2212"])
def test_accounts_write_below_zero_in_brackets_or_with_the_minus_behind(written):
    rng = np.random.default_rng(0)
    sums = rng.integers(1000, 4000, size=2000) * np.where(np.arange(2000) % 4, 1, -1)
    plain = written.replace("(", "").replace(")", "").replace("-", "").replace("\u2212", "")
    texts = [written.format(-one) if one < 0 else plain.format(one) for one in sums.tolist()]
    table = pd.DataFrame({"sum": texts, "rich": np.where(sums > 2000, "yes", "no")})
    with recording_noise(entropy=0):
        column = Schema.release(table, epsilon=9.0, label="rich").columns["sum"]
    assert column.low < -2000 and column.high > 2000
    np.testing.assert_array_equal(column.read(table["sum"]), np.clip(sums, column.low, column.high))


@pytest.mark.parametrize("text", ["(x)", "-(5)", "1-2", "((5))", "-", "()", "5-%"])
def test_what_only_looks_so_is_no_number(text):
    assert not Number(-9, 9).fits([text])[0]


@pytest.mark.parametrize("text", [">5000", "n.k.", "1200 or more"])
def test_texts_beside_numbers_are_told_of(text):
    numbers = np.random.default_rng(0).integers(1000, 5000, size=2000)
    table = pd.DataFrame({"pay": [text if one > 4500 else str(one) for one in numbers], "rich": numbers > 2000})
    with (
        recording_noise(entropy=0),
        pytest.warns(
            UserWarning, match=r"found texts beside numbers.*\['pay'\].*read as missing.*'01234', which is read as 1234"
        ),
    ):
        column = Schema.release(table, epsilon=9.0, label="rich").columns["pay"]
    assert column.missing and np.isnan(column.read([text])[0])


AGES = np.random.default_rng(0).integers(18, 95, 2 * N)
SOME = np.random.default_rng(1).random(2 * N) < 0.4
BORN = pd.Series(pd.Timestamp("2000-01-01") + pd.to_timedelta(100 * AGES, unit="D"))


def in_two_ways(one, other):
    return [b if some else a for a, b, some in zip(one, other, SOME, strict=True)]


def grouped(mark, times):
    return [f"{age * times:,}".replace(",", mark) for age in AGES]


ISO, UNREAD = BORN.dt.strftime("%Y-%m-%d"), r"cannot read about (3[5-9]|4[0-5]) % of the rows of \['c'\], .* it reads "
TWO_WAYS = {
    "dates": (in_two_ways(BORN.dt.strftime("%d/%m/%Y"), ISO), UNREAD + "cells with format '%d/%m/%Y', and they"),
    "decimals": (in_two_ways([f"{age},5" for age in AGES], [f"{age}.5" for age in AGES]), UNREAD + ".* decimal"),
    "units": (in_two_ways([f"{age} kg" for age in AGES], [f"{age}000 g" for age in AGES]), UNREAD + ".* unit 'kg'"),
    "currencies": (in_two_ways([f"${age}" for age in AGES], [f"€{age}" for age in AGES]), UNREAD + r".* unit '\$'"),
    "dates among years": (in_two_ways(2000 + AGES, ISO), UNREAD + "numbers like 1200.5"),
    "dates among truths": (in_two_ways((AGES > 50).tolist(), ISO), UNREAD + "True and False, 1 and 0"),
    "fives among truths": (in_two_ways((AGES > 50).tolist(), [5] * len(AGES)), UNREAD + "True and False, 1 and 0"),
    "years among dates": (in_two_ways(ISO, 2000 + AGES), r"found numbers beside days in \['c'\].*since 1970"),
    "thousands": (in_two_ways(grouped(",", 1000), grouped(".", 1000)), r"numbers like 1.200 in \['c'\] as one and a f"),
    "German thousands": (grouped(".", 20), r"numbers like 1.200 in \['c'\].*decimal=',', thousands='.'"),
    "German thousands with a unit": ([f"{text} €" for text in grouped(".", 20)], r"numbers like 1.200 in \['c'\]"),
}  # fmt: skip


def told_of(table, entropy, epsilon):
    with recording_noise(entropy=entropy), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Schema.release(table, epsilon=epsilon, label="y")
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("what", TWO_WAYS)
def test_a_column_that_is_written_in_two_ways_is_told_of(what):
    """Found: up to half of the cells became missing, or another number, without a word."""
    cells, says = TWO_WAYS[what]
    table = pd.DataFrame({"y": AGES % 2, "x": AGES, "c": pd.Series(cells, dtype=object)})
    for entropy in range(3):
        (said,) = told_of(table, entropy, 2.0)
        assert said.startswith("Schema.release ") and re.search(says, said)


@pytest.mark.few(2)
@pytest.mark.parametrize("blank", [None, "NA", ""])
@pytest.mark.parametrize("epsilon", [1.0, 12.0])
def test_a_column_that_is_written_in_one_way_is_not(blank, epsilon):
    thirds = np.random.default_rng(2).uniform(1, 4000, len(AGES))
    table = pd.DataFrame({
        "iso": ISO, "slashes": BORN.dt.strftime("%d/%m/%Y"), "days": BORN, "whole": AGES, "truth": AGES > 50,
        "comma": [f"{age},5" for age in AGES], "kg": [f"{age} kg" for age in AGES], "thousands": grouped(",", 20),
        "euro": [f"{age * 20:,}.50 €".translate(str.maketrans(",.", ".,")) for age in AGES],
        "three decimals": [f"{one:,.3f}" for one in thirds], "three of few": [f"{one / 50:.3f}" for one in thirds],
        "all decimals": [str(round(one / 50, 3 if some else 1)) for one, some in zip(thirds, SOME, strict=True)],
    }).astype(object)  # fmt: skip
    table = table.mask(np.random.default_rng(3).random(table.shape) < 0.3, blank) if blank is not None else table
    table = table.assign(y=AGES % 2)
    for entropy in range(4):
        said = told_of(table, entropy, epsilon)
        assert not [one for one in said if re.search("cannot read|beside|one and a fifth", one)], said


@pytest.mark.parametrize("few", [0, 30])
def test_what_is_said_of_other_writings_follows_from_the_noisy_counts(few):
    """A few cells in another writing may be hidden by the noise: whether they are there is not told."""
    cells = BORN.dt.strftime("%d/%m/%Y").mask(np.arange(len(BORN)) < few, ISO)
    assert told_of(pd.DataFrame({"y": AGES % 2, "x": AGES, "c": cells}), 0, 1.0) == []


def test_a_template_names_the_marks_that_a_point_may_be():
    for cells in (grouped(".", 20), [f"{text} €" for text in grouped(".", 20)]):
        assert Schema.template(pd.DataFrame({"c": cells}))["columns"]["c"]["guess"]["or"] == {
            "decimal": ",", "thousands": ".",
        }  # fmt: skip
    for cells in (
        ["1.250", "0.125"],
        ["1.250", "950.5"],
        ["1,250", "950"],
        ["1,234.567", "2.000"],
        ["1.250,50", "1.250"],
    ):
        assert "or" not in Schema.template(pd.DataFrame({"c": cells}))["columns"]["c"].get("guess", {})


@pytest.mark.parametrize("role", ["y", "sex"])
@pytest.mark.parametrize("missing", [5, 150])
def test_a_missing_label_or_group_never_counts_as_one_that_is_listed(role, missing):
    """Found: up to a tenth of the labels was missing, and read as the commonest one without a word."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": rng.random(2000), "y": rng.choice(["no", "yes"], 2000), "sex": rng.choice([*"fm"], 2000)}
    )
    before = table[role].value_counts()
    table.loc[: missing - 1, role] = None
    with recording_noise(entropy=0):
        schema = Schema.release(table, epsilon=0.5, label="y", groups="sex", known={"x": Number(0, 1)})
    column = schema.columns[role]
    if column.others is None:
        assert schema.misfits(table)[role] == missing
        with pytest.raises(ValueError, match=r"Category\(\[\.\.\.\], others="):
            schema.read(table)
    else:
        assert column.others == "other" and not set(before.index) - {"other", *column.values}
        assert (np.asarray(column.values)[column.read(table[role]).astype(int)] == "other").sum() == missing


def test_a_fit_says_what_a_row_without_a_listed_group_counts_as():
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(2000) < 0.4, "f", "m").astype(object)
    sex[:300] = None
    table = pd.DataFrame({"age": rng.integers(20, 60, size=2000), "sex": sex, "rich": rng.random(2000) < 0.5})
    with recording_noise(entropy=0):
        schema = Schema.release(table, epsilon=0.5, label="rich", groups="sex")
    assert schema.columns["sex"] == Category(("f", "m", "other"), others="other")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = FairPATEClassifier(epsilon=1.0, schema=schema).fit(table)
    (fact,) = [fact for fact in fit.privacy_.public if fact.name == "names of the groups"]
    assert "a row without one of them counts as 'other' in sex" in fact


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["f", "f ", "m", "m"], ("f", "f ", "m")),
        (["José", "Jose\u0301", "Ana", "Ana"], ("Ana", "Jose\u0301", "José")),
        ([True, "yes", False, False], ("0", "1", "yes")),
        (["yes", "Yes", "no", "no"], ("Yes", "no", "yes")),
    ],
)
def test_values_that_may_be_one_are_told_of(cells, found):
    data = beside(np.resize(np.array(cells, dtype=object), N)).rename(columns={"c": "sex"})
    with (
        recording_noise(entropy=0),
        pytest.warns(UserWarning, match=r"lists values of \['sex'\] that differ by no more"),
    ):
        column = Schema.release(data, epsilon=12.0, label="y", groups="sex").columns["sex"]
    assert tuple(sorted(column.values)) == found  # of one kind, so that groups can be compared
    np.testing.assert_array_equal(np.isnan(column.read(data["sex"])), False)


@pytest.mark.parametrize("epsilon", [12.0, 0.4])
def test_years_of_two_digits_are_read_by_a_rule_that_is_said(epsilon):
    """Found: where noise leaves no finer bounds the rule was not said."""
    days = pd.Series(np.datetime64("1985-01-01") + (np.arange(N) % 1500).astype("timedelta64[D]"))
    with recording_noise(entropy=0), pytest.warns(UserWarning, match=r"digits in \['c'\]: 69 to 99 as 1969 to 1999"):
        column = Schema.release(beside(days.dt.strftime("%d/%m/%y")), epsilon=epsilon, label="y").columns["c"]
    read = pd.Timestamp("1970-01-01") + pd.to_timedelta(column.read(["25/12/87", "01/02/88"]), unit="D")
    assert [str(day.date()) for day in read] == ["1987-12-25", "1988-02-01"]
    pivot = Date("1900-01-01", "2100-01-01", format="%d/%m/%y").read(["01/01/69", "31/12/68"])
    assert pivot.tolist() == [-365.0, 36159.0]


@pytest.mark.parametrize("written", ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%y"])
@pytest.mark.parametrize("most", [12, 28])
def test_the_order_of_day_and_month_is_said_where_nothing_shows_it(written, most):
    """Found: where no day was above the twelfth, 03/04/2001 was the third of April without a word."""
    n = np.arange(N)
    days = pd.to_datetime(pd.DataFrame({"year": 1990 + n % 20, "month": 1 + n % 12, "day": 1 + n % most}))
    with recording_noise(entropy=0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        column = Schema.release(beside(days.dt.strftime(written)), epsilon=12.0, label="y").columns["c"]
    taken = written if most > 12 else written.replace("%m/%d", "%d/%m")
    other = taken.replace("d", "-").replace("m", "d").replace("-", "m")
    said = [str(one.message) for one in caught]
    told = f"the days in ['c'] by the format '{taken}', though its noisy counts do not show whether it is '{other}'"
    assert column.format == taken and sum(told in one for one in said) == (most == 12)
    assert any("digits in ['c']" in one for one in said) == ("%y" in written)
    guess = Schema.template(beside(days.dt.strftime(written)))["columns"]["c"]["guess"]
    assert guess == {"kind": "date", "format": taken, **({"or": other} if most == 12 else {})}


def test_what_is_said_of_the_order_of_day_and_month_follows_from_the_noisy_counts():
    """A few rows that show the order may be hidden by the noise: whether they are there is not told."""
    few, said = ["25/04/2001"] * 3, []
    for cells in (["03/04/2001"] * N, few + ["03/04/2001"] * (N - len(few))):
        with recording_noise(entropy=0), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Schema.release(beside(cells), epsilon=1.0, label="y", known={"x": None})
        said.append([str(one.message) for one in caught])
    assert said[0] == said[1] and "do not show whether it is '%m/%d/%Y'" in said[0][0]


# ---------------------------------------------------------------------- what it costs


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from([None, "category", "number", "whole", "date", "boolean"]), min_size=1, max_size=30),
    st.floats(0.01, 20.0), st.sampled_from([1e-3, 1e-5, 1e-9]),
)  # fmt: skip
def test_the_event_costs_what_was_asked_for_and_every_path_of_a_column_is_covered(kinds, epsilon, delta):
    plan = plan_release({f"c{i}": kind for i, kind in enumerate(kinds)}, epsilon, delta)
    spent = epsilon_of(plan.event, delta)
    assert spent <= epsilon
    paying = [column for column in plan.columns.values() if not isinstance(column, Boolean)]
    if paying:
        assert spent >= epsilon * 0.999
    for column in paying:
        for path in ([0.1, 0.9 * 0.3, 0.9 * 0.7], [0.1, 0.9], [0.3, 0.7], [1.0]):
            assert sum((math.sqrt(2) / column._gaussian(share).sigma) ** 2 for share in path) <= column.mu**2 * (
                1 + 1e-12
            )
    failures = sum(column.failure for column in paying if column.kind in (None, "category"))
    assert failures <= delta / 10


def test_label_and_groups_have_half_of_the_budget_where_they_are_fewer_than_the_others():
    names = [f"c{i}" for i in range(8)]
    plan = plan_release(dict.fromkeys(names), 1.0, 1e-5, ("c0", "c1"))
    mu = np.array([plan.columns[name].mu for name in names])
    assert mu[0] == mu[1] and (mu[2:] == mu[2]).all()
    assert 2 * mu[0] ** 2 == pytest.approx(6 * mu[2] ** 2) and epsilon_of(plan.event, 1e-5) <= 1.0
    even = plan_release(dict.fromkeys(names[:3]), 1.0, 1e-5, ("c0", "c1"))
    assert len({column.mu for column in even.columns.values()}) == 1


@pytest.mark.parametrize("role", ["label", "groups"])
def test_a_label_or_group_of_which_one_value_is_found_is_told(role):
    rare = np.where(np.arange(N) < 20, "rare", "common")
    rows = pd.DataFrame({"x": np.arange(N) % 7, "a": np.arange(N) % 2, "b": rare})
    roles = {"label": "b", "groups": "a"} if role == "label" else {"label": "a", "groups": "b"}
    with recording_noise(entropy=0), pytest.warns(UserWarning, match=r"only one value in \['b'\], the label or"):
        found = Schema.release(rows, epsilon=0.5, **roles)
    assert found.columns["b"] == Category(["common"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = {"b": Category(["common", "rare"])}
        assert Schema.release(rows, epsilon=0.5, known=known, **roles).columns["b"].values == ("common", "rare")


@pytest.mark.parametrize("cell", [None, "distinct"])
def test_groups_that_a_release_does_not_list_are_one_of_their_own(cell):
    """Found: of six races a released schema listed four, and the rows of the others counted as the first of them."""
    rest = [f"rare {i}" for i in range(N)] if cell == "distinct" else [cell] * N
    groups = np.where(np.arange(N) % 5 == 0, np.array(rest, dtype=object), np.where(np.arange(N) % 2, "A", "B"))
    rows = pd.DataFrame({"x": np.arange(N) % 7, "y": np.arange(N) % 2, "race": groups})
    found = Schema.release(rows, label="y", groups="race", epsilon=3.0, known={"x": Number(0, 6)})
    assert found.group_values == ("A", "B", "other") and found.misfits(rows).sum() == 0
    counts = found.read(rows).sensitive_features["race"].value_counts()
    assert counts.to_dict() == {"other": N // 5, "A": (groups == "A").sum(), "B": (groups == "B").sum()}


@pytest.mark.parametrize(
    "cells",
    [pd.to_timedelta(np.arange(N), unit="D"), [b"7"] * N, [[1]] * N, [1j] * N],
    ids=["durations", "bytes", "lists", "complex"],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_column_of_no_kind_is_not_found_whatever_one_record_holds(cells, alone):
    """Found: it was refused for nothing, and with one number among its cells it was released. What one record decides
    must follow from what was paid for, so that such a column costs what others do."""
    rows, said = beside(pd.Series(cells))[["y", "c"] if alone else ["y", "x", "c"]], []
    with recording_noise(entropy=0) as record:
        for replay, cell in ((None, None), (record, 3.0), (record, "text")):
            ledger = dp.PrivacyLedger()
            table = rows if cell is None else rows.assign(c=[cell, *rows["c"][1:]])
            noise = contextlib.nullcontext() if replay is None else recording_noise(entropy=0, replay=record)
            with noise, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    found = dict(Schema.release(table, epsilon=1.0, label="y", ledger=ledger).columns)
                except IncompleteSchemaError as error:
                    found = str(error)
            assert len(ledger.entries) == 1
            said.append((found, [str(one.message) for one in caught]))
    assert said[0] == said[1] == said[2]
    if alone:
        assert "['c']" in said[0][0] and "Durations, lists and bytes are no values" in said[0][0]
    else:
        assert list(said[0][0]) == ["y", "x"] and "leaves out ['c']" in said[0][1][0] and "dt.days" in said[0][1][0]


def test_a_template_with_nulls_is_what_is_known(tmp_path):
    said = {"columns": {"x": {"kind": "number", "low": None, "high": 9, "step": None}, "y": {"kind": "boolean"},
                        "z": {"kind": "category", "values": ["a", "b"]}}, "label": "y", "groups": "z"}  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(said))
    assert Schema.load_known(tmp_path / "s.json") == {
        "known": {"x": "number", "y": Boolean(), "z": Category(["a", "b"])}, "label": "y", "groups": "z",
    }  # fmt: skip
    (tmp_path / "bad.json").write_text(json.dumps({"columns": {"x": {"kind": "text", "values": None}}}))
    with pytest.raises(ValueError, match=r"Column 'x' of a Schema needs a 'kind'.*Free text is refused"):
        Schema.load_known(tmp_path / "bad.json")


def test_a_released_schema_charges_what_its_mechanisms_declare():
    """The noise and the failures that were used, composed, cost no more than what the report says."""
    with recording_noise() as record:
        schema = quiet_release(TABLE, known={"level": "category"})
    squared, failures = 0.0, 0.0
    for release in record.releases:
        squared += (release.sensitivity / release.sigma) ** 2
        failures += release.mechanism.failure if isinstance(release.mechanism, dp.CommonValues) else 0.0
    made = compose(dp.GaussianDpEvent(squared**-0.5), dp.RareDisclosure(failures))
    assert epsilon_of(made, 1e-5) <= schema.privacy_.epsilon * (1 + 1e-9)
    charged = flatten(schema.privacy_.event).items()
    assert failures <= sum(leaf.probability * n for leaf, n in charged if isinstance(leaf, dp.RareDisclosure))
    assert schema.privacy_.epsilon <= 3.0


def test_its_statement_holds_by_the_second_opinion(tmp_path):
    schema = quiet_release(TABLE, known={"name": None})
    path = tmp_path / "statement.json"
    path.write_text(schema.privacy_.statement(subject="a schema").to_json())
    assert all(check.holds for check in verify_file(path))


def test_a_ledger_is_charged_once_and_refuses_before_any_noise():
    ledger = PrivacyLedger(epsilon=3.5, delta=1e-5)
    quiet_release(TABLE, ledger=ledger)
    assert [entry.label for entry in ledger.entries] == ["Schema.release"]
    with recording_noise() as record, pytest.raises(BudgetExceededError):
        quiet_release(TABLE, ledger=ledger)
    assert not record.releases and len(ledger.entries) == 1


def test_the_report_lists_what_is_public_and_no_dtype_is_among_it():
    spent = quiet_release(TABLE, known={"name": None}).privacy_
    names = [fact.name for fact in spent.public]
    assert names[:3] == ["number of private rows", "names of columns", "what was said of columns"]
    assert not any("type" in str(fact) for fact in spent.public)
    assert str(spent.neighboring_relation) == "replace one record"


def test_seeded_noise_has_no_guarantee_and_no_ledger():
    with pytest.warns(PrivacyLeakWarning, match="Schema.release draws its noise from 'noise_seed'"):
        schema = Schema.release(TABLE[["age", "sex"]], epsilon=3.0, noise_seed=1)
    assert schema.privacy_.epsilon == math.inf
    with pytest.raises(ValueError, match="both 'noise_seed' and 'ledger'"):
        Schema.release(TABLE, epsilon=3.0, noise_seed=1, ledger=PrivacyLedger())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"epsilon": 0.0}, "'epsilon' parameter of Schema.release must be a float in the range"),
        ({"epsilon": math.inf}, "'epsilon' parameter"),
        ({"epsilon": True}, "'epsilon' parameter"),
        ({"delta": 1.0}, "'delta' parameter"),
        ({"label": "wages"}, r"names that the table does not have: \['wages'\]"),
        ({"known": {"town": "category"}}, r"does not have: \['town'\]"),
        ({"known": {"age": "text"}}, "one of .*'whole'.* Got 'text' for 'age'"),
        ({"known": {"age": (17, 90)}}, "Got .17, 90. for 'age'"),
        ({"known": {"sex": "number"}}, "label and the groups of a Schema are categories"),
        ({"known": {"income": None}}, "label and the groups of a Schema are categories"),
        ({"label": "sex"}, "Column 'sex' is named twice in 'label' and 'groups'"),
        ({"groups": ("sex", "sex")}, "Column 'sex' is named twice in 'label' and 'groups'"),
        (
            {"rows": TABLE[["sex", "income"]], "known": None},
            "at least one column that is neither the label nor a group",
        ),
        ({"rows": [1, 2]}, "reads a DataFrame"),
        ({"rows": TABLE.iloc[:0]}, "needs rows"),
        ({"rows": pd.concat([TABLE, TABLE], axis=1)}, "more than one column 'age', 'wage'"),
    ],
    ids=str,
)
def test_mistakes_are_named_before_anything_is_spent(given, says):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=says):
        quiet_release(given.pop("rows", TABLE), ledger=ledger, **given)
    assert not ledger.entries


def test_a_label_that_nobody_shares_is_an_error_that_follows_from_the_release():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"no value that enough records share in \['name'\].*The epsilon is spent"):
        Schema.release(TABLE[["age", "name"]], epsilon=3.0, label="name", ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(("n_rows", "refused"), [(200, True), (258, True), (420, False), (2000, False)])
def test_a_label_of_which_two_values_cannot_be_found_costs_nothing(n_rows, refused):
    """By public numbers: a fifth of ε = 1 for fifteen columns, on the rows of a small table."""
    half = np.where(np.arange(n_rows) % 2, "no", "yes")  # as common as two values can be
    rows = pd.DataFrame({f"x{i}": np.arange(n_rows) % 9 for i in range(13)} | {"a": half, "b": half})
    ledger, call = PrivacyLedger(), {"label": "a", "groups": "b", "epsilon": 0.2, "delta": 2e-6}
    if not refused:
        with contextlib.suppress(ValueError):  # where luck finds nothing
            quiet_release(rows, ledger=ledger, **call)
        assert len(ledger.entries) == 1
        return
    with pytest.raises(ValueError, match=r"cannot find the values of \['a', 'b'\].*Nothing was spent") as said:
        Schema.release(rows, ledger=ledger, **call)
    assert not ledger.entries
    known = {"a": Category(["no", "yes"]), "b": Category(["no", "yes"])}
    more = float(re.search(r"([0-9.]+) times the epsilon", str(said.value))[1])
    for enough in ({"known": known}, {"epsilon": more * 0.2}):
        with contextlib.suppress(ValueError):
            quiet_release(rows, ledger=ledger, **{**call, **enough})
    assert len(ledger.entries) == 2


def test_what_is_refused_would_have_been_found_in_one_run_of_twenty_at_most():
    mechanism = ColumnRelease("category", 0.03, 1e-8).common_values()
    most = math.ceil(2 * (mechanism.threshold - 2 * mechanism.sigma)) - 1  # rows of which a release is refused
    with recording_noise(entropy=0):
        found = [mechanism.release({"no": most // 2, "yes": most // 2}, dp.NoiseSource()) for _ in range(300)]
    assert 3 <= sum(map(len, found)) <= 30  # of 600 values, 2.3 % each
    assert sum(len(values) == 2 for values in found) < 15


# ---------------------------------------------------------------------- that nothing else shows


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_does_not_show(seed):
    columns = ["income", "sex", "job"]
    schemas = []
    for rows in (TABLE.sort_values(columns), TABLE.sort_values(columns, ascending=False)):
        with recording_noise(entropy=seed):
            schemas.append(quiet_release(rows))
    assert json.dumps(schemas[0].to_dict()) == json.dumps(schemas[1].to_dict())


class Made:
    """``Schema.release`` in the shape of an estimator, for the replay."""

    def __init__(self, ledger=None):
        self.ledger = ledger

    def __repr__(self):
        return f"Made({vars(self).get('schema_')!r})"


def released(made, rows):
    made.schema_ = Schema.release(rows, epsilon=8.0, ledger=made.ledger, known={"level": "category"}, **ROLES)
    return made


def probe(made):
    return {"text": np.frombuffer(json.dumps(made.schema_.to_dict()).encode(), dtype=np.uint8)}


class Unordered(str):
    """A text of a class of its own, which cannot be sorted among others."""

    def __str__(self):
        return self

    def __lt__(self, other):
        raise RuntimeError("order")

    __gt__ = __lt__
    __hash__ = str.__hash__


NASTY = {
    "half a surrogate pair": dict.fromkeys(TABLE, "\ud800"),
    "unordered": {name: Unordered("Ms Smith") for name in TABLE},
    "extreme": dict.fromkeys(TABLE, 1e300),
    "infinite": dict.fromkeys(TABLE, math.inf),
    "negative": dict.fromkeys(TABLE, -math.inf),
    "missing": dict.fromkeys(TABLE),
    "texts": dict.fromkeys(TABLE, "nan"),
    "hostile": {name: Hostile() for name in TABLE},
    "large integers": dict.fromkeys(TABLE, 2**64 + 1),
    "lists": {name: [1, 2] for name in TABLE},
    "dates": dict.fromkeys(TABLE, datetime.date(1, 1, 1)),
    "truths": dict.fromkeys(TABLE, True),
    "another person": dict(TABLE.iloc[1]),
}


@pytest.fixture(scope="module")
def recording():
    return Recording(Made, released, TABLE, probe)


@pytest.mark.covering
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", NASTY)
@pytest.mark.parametrize("at", [0, N - 1])
def test_whatever_one_record_holds_the_releases_are_all_that_shows(recording, what, at):
    assert not recording.on(with_record(TABLE, NASTY[what], at)).differences()


@pytest.mark.filterwarnings("ignore")
def test_the_only_false_among_truths_does_not_show():
    def release(made, rows):
        made.schema_ = Schema.release(rows, epsilon=8.0, ledger=made.ledger)
        return made

    rows = pd.DataFrame({"truth": [True] * N, "age": np.arange(N) % 70})
    other = rows.copy()
    other.loc[0, "truth"] = False
    assert not Recording(Made, release, rows, probe).on(other).differences()


@pytest.mark.filterwarnings("ignore")
def test_a_record_of_the_same_types_does_not_show_either(recording):
    neighbour = TABLE.copy()
    neighbour.iloc[7] = TABLE.iloc[8]
    assert not recording.on(neighbour).differences()


ODD = st.one_of(
    CELLS, st.sampled_from(["1_000", " 12 ", "١٢", "1e3", "inf", "-0.0", "0x1f", "2020-01-31", "true", "", "9" * 30]),
    st.integers(2**62, 2**66), st.integers(-(2**66), -(2**62)), st.decimals(), st.complex_numbers(),
    st.binary(max_size=3),
)  # fmt: skip


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(ODD, min_size=1, max_size=8))
@example([2**64 - 1, -1, None, "x"])
@example(["1_000", Hostile()])
@example([b"7", Hostile()])
@example([True, "x"])
def test_what_a_cell_is_read_as_follows_from_that_cell_alone(cells):
    """Or one record would move more than one cell of a table of counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = pd.Series([None] * len(cells), dtype=object)
        for i, cell in enumerate(cells):
            whole.iat[i] = cell
        for read in (
            _as_numbers,
            _as_days,
            _kinds_of_cells,
            lambda column: np.array(_plain_values(column), dtype=object),
        ):
            together = read(whole)
            for i in range(len(cells)):
                (alone,) = read(whole.iloc[[i]])
                assert type(together[i]) is type(alone)
                assert together[i] == alone or (together[i] != together[i] and alone != alone)


@pytest.mark.parametrize("cells", [[0, 1], [True, False], [1.5, 2.0], [1, 20, 300]], ids=repr)
def test_values_of_a_file_are_released_alike_where_one_cell_of_it_is_none(cells):
    """Or their types would tell of one row: pandas makes texts of all cells of such a column."""
    rows = pd.DataFrame({"y": np.resize(cells, 900), "of": np.resize(["a", "b"], 900), "x": np.arange(900)})
    odd = rows.astype({"y": str})
    odd.loc[5, "y"] = "n.k."
    how = {"epsilon": 30.0, "label": "y", "groups": "of"}
    found, beside = (Schema.release(table, **how).columns["y"] for table in (rows, odd))
    assert found.values[: len(cells)] == beside.values[: len(cells)] == tuple(sorted(cells))
    assert [*map(type, found.values)] == [*map(type, beside.values)]


#: Cells among which pandas finds one type for the whole column, and the cell that turns it into another.
NATURAL = [
    1, -3, 0.5, 2**53 + 1, 2**64, True, None, np.nan, complex(1, 2), complex(3, 0), complex(0, math.nan),
    pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01T23:30", tz="US/Pacific"), datetime.datetime(9999, 12, 31),
    datetime.date(2021, 5, 1), np.datetime64("2020-01-01"), np.timedelta64(1, "D"), pd.NaT, pd.NA, np.float32(0.1),
    np.int8(3), np.inf, 1e308, "7", "a", pd.Interval(0, 10), pd.Interval(0.5, 10), pd.Interval(0, 2**60, "left"),
]  # fmt: skip


@pytest.mark.few(10)
@pytest.mark.parametrize("beside", NATURAL, ids=repr)
def test_what_a_cell_is_read_as_follows_from_no_type_of_a_column(beside):
    """One complex number makes all of its column complex, one text makes them objects: they stay what they are."""
    declared = (
        Number(-5, 5),
        Category([0, 1, 3, "a", "(0, 10]", "(0.5, 10]"]),
        Boolean(missing=True),
        Date("2015-01-01", "2030-01-01"),
    )
    reads = [column.read for column in declared] + [column.fits for column in declared]
    reads += [_kinds_of_cells, lambda column: np.array([*_plain_values(column), None], dtype=object)[:-1]]
    for cell in NATURAL:
        together, alone = pd.Series([cell, beside]), pd.Series([None], dtype=object)
        alone.iat[0] = cell
        for read in reads:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found, expected = read(together)[0], read(alone)[0]
            assert found == expected or (found != found and expected != expected), (cell, found, expected)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.integers(-5, 300), min_size=3, max_size=12),
    st.integers(0, 11),
    st.sampled_from([None, "number", "date"]),
)
def test_tables_of_counts_move_by_no_more_than_is_declared(values, at, kind):
    """The steps after the first are chosen from what was released, which is the same for both."""
    changed = [*values]
    changed[at % len(values)] = "no number at all"
    (column,) = plan_release({"x": kind}, 5.0, 1e-5).columns.values()
    source = RecordingNoise(entropy=0)
    column.release(pd.Series(values), source)
    other = RecordingNoise(entropy=0, replay=source.record)
    column.release(pd.Series(changed, dtype=object), other)
    assert len(source.releases) == len(other.releases)
    for mine, theirs in zip(source.releases, other.releases, strict=True):
        assert mine.declared == theirs.declared
        moved, allowed = distance(mine, theirs)
        assert moved <= allowed * (1 + 1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries_are_read_alike(library):
    module = pytest.importorskip(library)
    rows = TABLE.drop(columns="hired")
    other = module.from_pandas(rows) if library == "polars" else module.Table.from_pandas(rows)
    schemas = []
    for one in (rows, other):
        with recording_noise(entropy=0):
            schemas.append(quiet_release(one))
    assert schemas[0] == schemas[1]


def test_every_mechanism_was_made_for_the_relation_that_is_certified():
    with recording_noise() as record:
        quiet_release(TABLE)
    assert {type(release.mechanism) for release in record.releases} == {dp.GaussianMechanism, dp.CommonValues}
    assert {str(release.mechanism.relation) for release in record.releases} == {"replace one record"}


def test_codes_with_leading_zeros_stay_names():
    rows = pd.DataFrame({"place": ["007", "012", "0950"] * 400, "age": ["7", "12", "0.5"] * 400, "none": ["0"] * 1200})
    columns = quiet_release(rows, epsilon=50.0, label=None, groups=()).columns
    assert columns["place"] == Category(("007", "012", "0950"), missing=False)
    assert isinstance(columns["age"], Number) and isinstance(columns["none"], Number)


def test_how_far_a_column_reaches_follows_released_counts_alone():
    """Two tables of as many rows, of which one has cells that cannot be read: by the same outputs, the same schema."""
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(3, 1.0, N)
    whole = pd.DataFrame({"pay": numbers, "sex": rng.choice(["f", "m"], N), "y": rng.choice(["no", "yes"], N)})
    told = {"label": "y", "groups": "sex", "epsilon": 3.0, "known": {"pay": "number"}}
    part = whole.assign(pay=np.where(np.arange(N) % 3, numbers, np.nan))
    with recording_noise(entropy=0) as record:
        first = Schema.release(part, **told)
    with recording_noise(entropy=0, replay=record):
        second = Schema.release(whole, **told)
    assert first.columns["pay"] == second.columns["pay"]
    assert first.columns["pay"].high > 50


@pytest.mark.parametrize("unit", ["R$", "zł", "lbs", "°C", "¢", "kg", "%"])
def test_numbers_with_a_unit_are_read_whatever_their_digits(unit):
    numbers = np.random.default_rng(0).integers(1000, 9000, size=N)
    texts = [f"{one / 10:.1f} {unit}".replace(".", ",") for one in numbers]
    with recording_noise(entropy=0):
        column = Schema.release(beside(texts), epsilon=12.0, label="y").columns["c"]
    assert (column.unit, column.decimal) == (unit, ",")
    np.testing.assert_allclose(column.read(texts), np.clip(numbers / 10, column.low, column.high))


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"\A[-(]?\d{1,4}([.,' ]\d{1,3}){0,3}( ?(kg|€|%))?[-)]?\Z"))
def test_the_ways_that_read_a_number_follow_from_its_first_digit_and_its_marks(text):
    every = tuple(j for j, way in enumerate(NUMBERS.ways) if _reads(text.strip(), **way))
    assert NUMBERS.reading(text) == (every if NUMBERS.shape.fullmatch(text.strip()) else ())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("read", [partial(Schema.release, epsilon=3.0, label="y"), Schema.template])
def test_no_private_text_is_kept_by_what_reads_the_ways_of_writing(read):
    """They are there as long as the process: whoever asked them could tell which texts a column had held."""
    read(beside(["03/11/2019", "1,204.50 €"] * (N // 2)))
    for ways, text in ((DAYS, "03/11/2019"), (NUMBERS, "1,204.50 €")):
        remembered = ways._readers.cache_info().hits
        assert ways.reading(text)
        assert ways._readers.cache_info().hits == remembered
