"""A schema from private rows, at a price: kinds, bounds and values of columns found by noisy counts."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from skfairdp import privacy
from skfairdp._rows import Subjects
from skfairdp._typing import Array, Bools, Floats, Ints
from skfairdp._usefulness import units_of
from skfairdp._utils import warn_caller, warn_of_seed
from skfairdp.privacy import GaussianDpEvent, RareDisclosure
from skfairdp.schema import _columns
from skfairdp.schema._columns import TRUTHS, Boolean, Category, _as_days, _as_numbers, _day_of
from skfairdp.schema._frames import as_dataframe, column_names
from skfairdp.schema._writings import DAYS, LIKE_1200, NUMBERS, Writings

#: What a column may be said to be, where its bounds or values are to be found.
_KINDS = ("number", "whole", "category", "boolean", "date", "any")

_APART = math.sqrt(2.0)  # a record leaves one cell of a table of counts and enters another
_FAILURES = 0.1  # of δ, for values that one record alone holds
_COARSE_SHARE = 0.3  # of the μ² of a column of numbers, where a fine table shows anything at all
#: Of that of a column whose kind has to be found: at most so much, and at least. So that four counts together have
#: noise of a quarter of the rows: a column that is taken for another kind is lost.
_KIND_SHARE, _MOST_FOR_KIND = 0.1, 0.3
_ROLES_SHARE = 0.5  # of the μ² of a schema, for the label and the groups together
_BEYOND = 0.005  # of the rows may lie beyond either bound
_LOST = 0.02  # of the rows may lie beyond a bound for all that noise hides; no tail is cut where it hides more
_FALSE_ALARM = 1e-3  # the chance that any empty cell of a coarse table looks as if it held rows
_N_CELLS = 128  # of the fine table, or a few more
_NEARLY_ALL, _ALIKE = 0.95, 0.75  # of the rows in one cell of a fine table; of those, in one of the coarse one
_FAR_APART = 16  # cells of a fine table, between bounds that far values may have stretched
_FEW_LISTED = 0.5  # of the rows: where the values or bounds that were found stand for less, that is told

_ONE_VALUE = (
    "found one value in {names}, or numbers that lie too close together to be distinguished. If they differ by little "
    "give bounds, known={{'name': Number(low, high)}}; otherwise leave the column out, known={{'name': None}}."
)
_FAR_VALUES = (
    "found far values in {names}: nearly all rows lie in a 64th part of the bounds, and hardly differ there. If far "
    "values are codes, such as 9999 for missing, give bounds of the others: known={{'name': Number(low, high)}}."
)
_FEW_WITHIN = (
    "shows by its noisy counts less than half of the rows within the bounds that it found for {names}: those beyond "
    "count as the bounds. Raise epsilon, or give bounds: known={{'name': Number(low, high) or Date(first, last)}}."
)
_FEW_VALUES = (
    "lists values of {names} that less than half of the rows have; the others are read as missing. Free text, "
    "identifiers and dates in an unusual format look like this. Leave the column out, known={{'name': None}}, or "
    "describe it, such as known={{'name': Category([...])}}."
)
_TWO_DIGITS = (
    "reads years of two digits in {names}: 69 to 99 as 1969 to 1999, and 00 to 68 as 2000 to 2068. Write years with "
    "four digits if others are meant, as dates of birth before 1969."
)

_EITHER_ORDER = (
    "reads the days in {names} by the format '%s', though its noisy counts do not show whether it is '%s'. Where that "
    "is meant, say so: known={{'name': Date(first, last, format=...)}}."
)
_UNREADABLE = (
    "found texts beside numbers, dates or booleans in {names}, such as '>5000' or 'n.k.', which are read as missing, "
    "or '01234', which is read as 1234. Replace them by numbers, or give known={{'name': 'category'}}."
)
_OTHER_WAY = (
    "cannot read about %.0f %% of the rows of {names}, which are not blank: it reads %s, and they are written in "
    "another way, with another format, mark or unit. Write all cells in one way (pd.to_datetime, str.replace), or make "
    "two columns, one of each way, and describe them: known={{'name': Date(first, last, format=...)}}."
)
_NUMBERS_BESIDE_DAYS = (
    "found numbers beside days in {names}: a number is read as days since 1970-01-01. If numbers are years or the days "
    "of a spreadsheet make days of them; if they are something else put them into a column of their own."
)
_POINTS = (
    "reads numbers like 1.200 in {names} as one and a fifth, though its noisy counts do not show whether the point is "
    "for thousands. Where it is, say so: known={{'name': Number(low, high, decimal=',', thousands='.')}}. Where "
    "numbers like 1,200 stand beside them, write all in one way."
)
_READS = {"date": "days like 2001-04-25", "boolean": "True and False, 1 and 0"}  # where it is no way of its own

_MISSING, _BOOLEAN, _WHOLE, _FRACTION, _DAY, _TEXT, _WRITTEN_DAY, _LIKE_1200, _WRITTEN_NUMBER = range(9)


class IncompleteSchemaError(ValueError):
    """A schema was paid for, and its label, a group or every feature is too rare to be found.

    Parameters
    ----------
    absent : sequence of str
        The columns that are needed and were not found.
    found : dict of str to Column
        The others. They know what was paid for them: a schema that is made of them, or a release that takes them as
        ``known``, adds it up.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.schema import Category, IncompleteSchemaError, Schema
    >>> table = pd.DataFrame({"member": [True, False] * 200, "sex": ["f", "m"] * 200, "code": range(400)})
    >>> try:
    ...     Schema.release(table, epsilon=2.0, label="code", groups="sex")
    ... except IncompleteSchemaError as error:
    ...     print(error.absent, list(error.found))
    ('code',) ['member', 'sex']
    """

    def __init__(self, absent: Sequence[str], found: Mapping[str, _columns.Column]) -> None:
        self.absent, self.found = tuple(absent), dict(found)
        kept = (
            f" Columns that were found, {list(found)}, are in 'found' of this error: known={{**error.found, ...}} "
            "reuses them at no cost."
            if found
            else ""
        )
        super().__init__(
            f"Schema.release found no value that enough records share in {list(absent)}. The epsilon is spent.{kept} "
            "Raise epsilon, or give the values if they are public: known={'name': Category([...])}. A label of amounts "
            "needs bounds: known={'name': Number(low, high)}. Durations, lists and bytes are no values: make numbers "
            "or texts of them, or leave them out, known={'name': None}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.absent, self.found)


# ---------------------------------------------------------------------- what is released of one column


@dataclass(frozen=True)
class ColumnRelease:
    """The budget of one column, and how it is spent: first on its kind where nobody said it (or on how texts of days or
    numbers are written), then on its values. Every step is a table of counts in which a record fills at most one cell,
    so that a replaced one moves it by √2; all cost at most ``mu`` together, whichever kind is found."""

    kind: str | None
    mu: float
    failure: float
    is_role: bool = False
    relation: privacy.NeighboringRelation = privacy.NeighboringRelation.REPLACE_ONE

    def release(self, column: "pd.Series[Any]", noise: privacy.NoiseSource) -> "Found":
        """Release the counts of a column; return the description that follows from them."""
        if self.kind is not None:
            return self._found(column, self.kind, {}, 1.0, noise)
        own, way, odd, written = self.share_of_kind(len(column)), dict[str, Any](), list[str](), np.zeros(0)
        mechanism, share = self._gaussian(own), 1 - own
        noisy = mechanism.release(counts_of_kinds(column), noise)
        kind, writings = likeliest(noisy, mechanism.sigma)
        doubt = max(_BEYOND * len(column), 4 * mechanism.sigma)
        if writings is not None:
            written = mechanism.release(writings.counts(column), noise)
            way, turned = writings.best(written, mechanism.sigma)
            share -= own
            odd += [_EITHER_ORDER % (way["format"], turned)] if turned else []
        found = self._found(column, kind, way, share, noise)
        if kind == "category" or found.column is None:
            return found
        odd += [_POINTS] if kind == "number" and _points_unclear(noisy, written, way, doubt) else []
        odd += [_UNREADABLE] if noisy[_TEXT] > doubt else []
        odd += [_NUMBERS_BESIDE_DAYS] if kind == "date" and noisy[_WHOLE] + noisy[_FRACTION] > 2 * doubt else []
        lost = found.unread - noisy[_MISSING] - noisy[_TEXT]
        if lost > max(2 * _BEYOND * len(column), 4 * math.sqrt(found.variance + 2 * mechanism.sigma**2)):
            said = ", ".join(f"{name} {value!r}" for name, value in way.items() if value)
            reads = f"cells with {said}" if way else _READS.get(kind, "numbers like 1200.5")
            odd.append(_OTHER_WAY % (min(100 * lost / len(column), 99), reads))
        return replace(found, odd=" It ".join(filter(None, [*odd, found.odd])))

    def _found(
        self, column: "pd.Series[Any]", kind: str, way: Mapping[str, Any], share: float, noise: privacy.NoiseSource
    ) -> "Found":
        if kind in ("category", "boolean"):
            return (self._values if kind == "category" else self._truths)(column, share, noise)
        return self._bounds(column, kind, way, share, noise)

    def _gaussian(self, share: float) -> privacy.GaussianMechanism:
        sigma = _APART / (self.mu * math.sqrt(share))
        return privacy.GaussianMechanism(sigma, sensitivity=_APART, relation=self.relation)

    def share_of_kind(self, n_rows: int) -> float:
        """Of the μ² of the column, to find its kind among so many rows: none where it is known."""
        if self.kind is not None:
            return 0.0
        return min(max(_KIND_SHARE, 4 * (4 * self._gaussian(1.0).sigma / n_rows) ** 2), _MOST_FOR_KIND)

    def common_values(self, share: float = 1.0) -> privacy.CommonValues:
        """Which values of a column of categories are let out, for this share of its μ²."""
        return privacy.CommonValues(self._gaussian(share).sigma, self.failure, relation=self.relation, with_counts=True)

    def _truths(self, column: "pd.Series[Any]", share: float, noise: privacy.NoiseSource) -> "Found":
        mechanism, places = self._gaussian(share), Boolean(missing=True).read(column)
        noisy = mechanism.release(np.bincount(places[~np.isnan(places)].astype(np.int64), minlength=2), noise)
        held = _held(np.append(noisy, 0.0), mechanism.sigma)[:-1]
        if not held.any():
            return Found(None)
        odd = "" if held.all() else _ONE_VALUE
        return Found(Boolean(missing=True), odd, len(places) - noisy.sum(), 2 * mechanism.sigma**2)

    def _values(self, column: "pd.Series[Any]", share: float, noise: privacy.NoiseSource) -> "Found":
        mechanism = self.common_values(share)
        # That a value may be missing is public: its cell is there, whether or not one is.
        found = mechanism.release({None: 0, **Counter(_plain_values(column))}, noise)
        known = {value: count for value, count in found.items() if value is not None}
        if not known:
            return Found(None)
        if not self.is_role:
            few = sum(found.values()) < _FEW_LISTED * len(column) - _hidden_by(mechanism.sigma, len(found))
            one = _ONE_VALUE if len(found) == 1 else ""
            return Found(Category(tuple(known), missing=None in found), _FEW_VALUES if few else one)
        # Rows without one of these values: a value of their own where the counts show some, else a fit refuses them.
        rest = len(column) - sum(known.values())
        if len({isinstance(value, str) for value in known}) > 1:  # which no estimator tells apart: texts read as both
            known = dict.fromkeys(map(str, known))
        if rest <= 2 * mechanism.sigma * math.sqrt(len(known)):
            return Found(Category(tuple(known)))
        name = next(name for name in ("other", "missing or other", "none of these") if name not in known)
        return Found(Category((*known, name), others=name))

    def _bounds(
        self, column: "pd.Series[Any]", kind: str, way: Mapping[str, Any], share: float, noise: privacy.NoiseSource
    ) -> "Found":
        scale: _Magnitudes | _Blocks = _Blocks() if kind == "date" else _Magnitudes()
        numbers = _as_days(column, **way) if kind == "date" else _as_numbers(column, **way)
        known = numbers[~np.isnan(numbers)]

        fine = self._gaussian(share * (1 - _COARSE_SHARE))
        shows = _hidden_by(fine.sigma) <= _LOST * len(numbers)  # else no tail would be cut off, whatever it said
        coarse = self._gaussian(share * (_COARSE_SHARE if shows else 1.0))
        cells = np.bincount(scale.cells(known), minlength=scale.n_cells)
        noisy = coarse.release(np.append(cells, len(numbers) - len(known)), noise)
        held = _held(noisy, coarse.sigma, len(numbers))
        unread = noisy[-1], coarse.sigma**2
        if not held[:-1].any():
            return Found(None)
        # Eight blocks of days may be one stretch; eight powers of two are too far.
        ends = _with_neighbors(held[:-1], noisy[:-1], coarse.sigma, 4 if kind == "date" else 3)
        low, high = scale.range_of(ends)
        rule = _TWO_DIGITS if "%y" in way.get("format", "") else ""
        if not shows:
            inside, rows = noisy[ends[0] : ends[1] + 1], len(numbers) - noisy[-1]
            few = inside.sum() < _FEW_LISTED * rows - _hidden_by(coarse.sigma, len(inside))
            return Found(_described(kind, low, high, bool(held[-1]), way), _FEW_WITHIN if few else rule, *unread)

        step = max(math.ldexp(1.0, math.ceil(math.log2((high - low) / _N_CELLS))), 0.0 if kind == "number" else 1.0)
        first, last = math.floor(low / step), math.ceil(high / step) if high > 0 else math.floor(high / step) + 1
        at = np.floor(np.clip(known, first * step, last * step) / step) - first
        counts = np.bincount(np.clip(at, 0, last - first - 1).astype(np.int64), minlength=last - first)
        finer = fine.release(counts, noise)
        inner = _without_tails(finer, len(numbers), fine.sigma)
        low, high = (first + inner[0]) * step, (first + inner[1] + 1) * step
        fullest = (first + int(np.argmax(finer)) + np.arange(2)) * step
        powers = scale.cells(np.array([fullest[0], np.nextafter(fullest[1], fullest[0])]))
        zero = np.flatnonzero(np.arange(powers[0], powers[1] + 1) == scale.zero)
        odd = _odd(finer, inner, np.where(held, noisy, 0)[powers[0] : powers[1] + 1], zero)
        return Found(_described(kind, low, high, bool(held[-1]), way), odd or rule, *unread)


@dataclass(frozen=True)
class Found:
    """The description of a column, None where nothing in it is common enough, and what is odd about it. How many cells
    it does not read is as noisy as ``variance`` says."""

    column: _columns.Column | None
    odd: str = ""
    unread: float = 0.0
    variance: float = math.inf


def _odd(fine: Floats, inner: tuple[int, int], power: Floats, zero: Ints) -> str:
    """What is odd where nearly all rows are in one cell of the fine table, or in two: it has so many by power of two.
    That most rows are zero is usual; of others they are so many only where something else is far away."""
    full = _NEARLY_ALL * fine.sum()
    if inner[0] == inner[1]:
        return _ONE_VALUE if fine.max() >= full and power.max() >= _ALIKE * power.sum() else ""
    if inner[1] - inner[0] < _FAR_APART or (fine[1:] + fine[:-1]).max() < full:
        return ""
    return "" if power[zero].sum() >= _ALIKE * fine.max() else _FAR_VALUES


def _described(kind: str, low: float, high: float, missing: bool, way: Mapping[str, Any]) -> _columns.Column:
    """The bounds as a column; where whole numbers lie in cells, the last one of the last cell is the bound."""
    if kind == "number":
        return _columns.Number(low, high, missing=missing, **way)
    last = max(high - 1, low + 1)
    if kind == "whole" and max(abs(low), abs(high)) > _columns.WHOLE_BELOW:
        return _columns.Number(low, high, missing=missing)
    if kind == "whole":
        return _columns.Number(int(low), int(last), step=1, missing=missing)
    days = [date(1970, 1, 1) + timedelta(days=int(day)) for day in (low, last)]
    return _columns.Date(days[0], days[1], missing=missing, **way)


def _held(noisy: Floats, sigma: float, n_rows: int = 0) -> Bools:
    """The cells that surely hold rows; where none does alone, or those that do lack more than a few rows, two,
    four or eight neighbours that do together as well. The last cell, of what is no number, stands alone."""
    least = -sigma * float(ndtri(_FALSE_ALARM / len(noisy)))
    cells, last = noisy[:-1], noisy[-1] >= least
    held = np.zeros(len(cells), dtype=bool)
    for width in (1, 2, 4, 8):
        rest = np.where(held, 0.0, cells)
        together = np.add.reduceat(rest, np.arange(0, len(cells), width)) >= least * math.sqrt(width)
        held |= np.repeat(together, width)[: len(cells)]
        if held.any() and cells[held].sum() >= _NEARLY_ALL * (n_rows - noisy[-1]):
            break
    return np.append(held, last)


def _with_neighbors(held: Bools, noisy: Floats, sigma: float, n_steps: int = 3) -> Ints:
    """The first and the last cell that surely hold rows, and what likely does in one stretch before and after them. Few
    cells touch the sure ones, so that chance rarely adds any; a bound that is too wide costs less than lost rows. Two,
    four or (by the fourth step) eight that only do together have to be likelier: they widen a range by more."""
    first, last = (int(cell) for cell in np.flatnonzero(held)[[0, -1]])
    before, after = noisy[:first][::-1], noisy[last + 1 :]
    return np.array([first - _stretch(before, sigma, n_steps), last + _stretch(after, sigma, n_steps)])


def _stretch(noisy: Floats, sigma: float, n_steps: int) -> int:
    """How many of the first cells likely hold rows."""
    length = 0
    while length < len(noisy):
        steps = ((1, 2.0), (2, 3.0), (4, 3.0), (8, 3.0))[:n_steps]
        sums = ((width, noisy[length : length + width].sum(), least * math.sqrt(width)) for width, least in steps)
        step = next((width for width, together, least in sums if together >= least * sigma), 0)
        if not step:
            break
        length += step
    return min(length, len(noisy))


def _hidden_by(sigma: float, n_cells: Any = 1) -> Any:
    """How many rows the noise in so many cells may hide."""
    return 3 * sigma * np.sqrt(n_cells)


def _without_tails(noisy: Floats, n_rows: int, sigma: float) -> tuple[int, int]:
    """The first and the last cell, but for a share of the rows on either side, and for what may be noise alone. Noise
    in a sum grows with the number of its cells. Where it could hide more rows than may be lost, a tail ends."""
    noise = _hidden_by(sigma, np.arange(1, len(noisy) + 1))
    longest = int(np.searchsorted(noise, _LOST * n_rows, side="right"))

    def passed(counts: Floats) -> int:
        enough = np.cumsum(counts) >= np.maximum(_BEYOND * n_rows, noise)
        return min(int(np.argmax(enough)) if enough.any() else 0, longest)

    first, last = passed(noisy), len(noisy) - 1 - passed(noisy[::-1])
    return (first, last) if first <= last else (0, len(noisy) - 1)


class _Magnitudes:
    """Cells of numbers: the sign and the power of two below the size; between -2^-1000 and 2^-1000 everything is 0."""

    least, most = -1000, 995
    n_cells = 2 * (most - least + 1) + 1
    zero = n_cells // 2

    def cells(self, numbers: Floats) -> Ints:
        size = np.clip(np.abs(numbers), 0.0, 2.0**self.most)
        power = np.frexp(size)[1].astype(np.int64) - 1 - self.least
        power = np.where(size < 2.0**self.least, -1, power)
        return np.asarray((self.zero + np.sign(numbers) * (power + 1)).astype(np.int64))

    def range_of(self, held: Ints) -> tuple[float, float]:
        low, high = (int(cell) - self.zero for cell in (held[0], held[-1]))
        # Cell k > 0 holds the numbers from 2^(k + least - 1), which is its lower edge, to the next power.
        inner = [0.0 if k == 0 else math.copysign(2.0 ** (abs(k) - 1 + self.least), k) for k in (low, high)]
        outer = [0.0 if k == 0 else math.copysign(2.0 ** (abs(k) + self.least), k) for k in (low, high)]
        bounds = inner[0] if low > 0 else outer[0], outer[1] if high > 0 else inner[1]
        return bounds if bounds[0] < bounds[1] else (bounds[0], bounds[0] + 1.0)


class _Blocks:
    """Cells of days: blocks of 512 from 1790 to 2149, days before and after in the outermost ones."""

    width, half = 512, 128
    n_cells, zero = 2 * half, -1

    def cells(self, days: Floats) -> Ints:
        block = np.clip(np.floor(days / self.width), -self.half, self.half - 1)
        return np.asarray(block.astype(np.int64) + self.half)

    def range_of(self, held: Ints) -> tuple[float, float]:
        return (float(held[0]) - self.half) * self.width, (float(held[-1]) + 1 - self.half) * self.width


# ---------------------------------------------------------------------- total readers of cells


def likeliest(noisy: Array, sigma: float = 0.0) -> tuple[str, Writings | None]:
    """The kind of a column, from the numbers of its cells of each kind, with so much noise in each. And in which of its
    writings it is, where it is texts that are not written as this package reads them."""
    numbers = noisy[_WHOLE] + noisy[_FRACTION] + noisy[_LIKE_1200] + noisy[_WRITTEN_NUMBER]
    days = noisy[_DAY] + noisy[_WRITTEN_DAY]
    largest = max(numbers, noisy[_BOOLEAN], days, noisy[_TEXT])
    if largest == noisy[_TEXT]:
        return "category", None
    if largest == noisy[_BOOLEAN]:
        return "boolean", None
    if largest == days:
        return "date", DAYS if noisy[_WRITTEN_DAY] > noisy[_DAY] else None
    doubt = max(_BEYOND * numbers, 4 * sigma)
    if noisy[_WRITTEN_NUMBER] > doubt:
        return "number", NUMBERS
    return "whole" if max(noisy[_FRACTION], noisy[_LIKE_1200]) <= doubt else "number", None


def _points_unclear(noisy: Array, written: Array, way: Mapping[str, str], doubt: float) -> bool:
    """Whether counts show numbers like 1.200, which are read as fractions, beside some like 5 or 1,200, and no other
    fractions."""
    shown = {"1.200": noisy[_LIKE_1200], "5": noisy[_WHOLE], "0.5": noisy[_FRACTION], "1,200": 0.0, "1,200.5": 0.0}
    if way:
        told = shown if way["unit"] else ("1,200", "1,200.5")
        shown |= {text: written[NUMBERS.place(text + way["unit"])] for text in told}
    whole, others = max(shown["5"], shown["1,200"]), max(shown["0.5"], shown["1,200.5"])
    return bool(way.get("decimal", ".") == "." and min(shown["1.200"], whole) > doubt >= others)


def counts_of_kinds(column: "pd.Series[Any]") -> Ints:
    """How many cells of a column are of each kind."""
    try:
        return np.bincount(_kinds_of_cells(column), minlength=_WRITTEN_NUMBER + 1)
    finally:
        for ways in (DAYS, NUMBERS):
            ways.forget()


def _kinds_of_cells(column: "pd.Series[Any]") -> Ints:
    """What each cell is, by itself: neither the dtype of its column nor another cell matters."""
    column = _columns.cells_of(column)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return np.where(column.isna().to_numpy(), _MISSING, _DAY)
    if pd.api.types.is_bool_dtype(column.dtype) and column.dtype != object:
        return np.where(column.isna().to_numpy(), _MISSING, _BOOLEAN)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _kinds_of_numbers(_as_numbers(column))
    kinds = np.array(_columns.of_each(column, _kind_of_object, _kind_of_text), dtype=np.int64)
    unsaid = kinds < 0
    kinds[unsaid] = _kinds_of_numbers(_as_numbers(column)[unsaid])
    return kinds


def _kinds_of_numbers(numbers: Floats) -> Ints:
    return np.where(np.isnan(numbers), _MISSING, np.where(numbers == np.rint(numbers), _WHOLE, _FRACTION))


def _kind_of_text(cell: str) -> int:
    text = cell.strip()
    if text in _columns.READ_AS_TRUTHS:
        return _BOOLEAN
    if not math.isnan(_columns.number_of_text(text)):
        if LIKE_1200.match(text.lstrip("+-\u2212(")):
            return _LIKE_1200
        return _TEXT if _is_name(text) else -1
    if text in _columns.NOTHING:
        return _MISSING
    if not np.isnan(_day_of(text)):
        return _DAY
    return _WRITTEN_DAY if DAYS.reading(text) else _WRITTEN_NUMBER if NUMBERS.reading(text) else _TEXT


def _is_name(text: str) -> bool:
    """Tell whether a text of digits is the name of a place or a firm, as 007."""
    digits = text.lstrip("+-\u2212(")
    return digits[:1] == "0" and digits[1:2].isdigit()


def _kind_of_object(cell: Any) -> int:
    """-1 where it is a number, or nothing."""
    try:
        cell = _columns.plain_cell(cell)
        if isinstance(cell, bool | np.bool_):
            return _BOOLEAN
        if isinstance(cell, np.datetime64 | np.timedelta64):  # as in a column of them
            return _MISSING if np.isnat(cell) else _DAY if isinstance(cell, np.datetime64) else _TEXT
        if cell is None or cell is pd.NA or cell is pd.NaT or isinstance(cell, int | float | np.number):
            return -1
        return _TEXT if isinstance(cell, str) or not hasattr(cell, "year") else _DAY
    except Exception:
        return _TEXT


def _plain_values(column: "pd.Series[Any]") -> list[Any]:
    """Each cell as a text, an int, a float, or None. Equal numbers become one, whatever their type, and as a text."""
    return _columns.of_each(_columns.cells_of(column), _plain)


def _plain(cell: Any) -> Any:
    try:
        cell = _columns.plain_cell(cell)
        if isinstance(cell, str):
            text = str.__str__(cell)  # one of a class of its own may be equal to all others
            cell = text if _is_name(text.strip()) else _columns.as_read(text)
            cell = text if isinstance(cell, int) and not isinstance(cell, bool) else cell  # digits that no float has
            if isinstance(cell, str):
                return cell
        if isinstance(cell, bool | np.bool_):
            return int(cell)
        if isinstance(cell, int | float | np.integer | np.floating):
            number = float(cell)
            if abs(number) < _columns.WHOLE_BELOW:
                return int(number) if number.is_integer() else number
    except Exception:  # a cell that cannot be looked at
        return None
    return None


# ---------------------------------------------------------------------- the plan, and the whole


@dataclass(frozen=True)
class SchemaPlan:
    """What a release of a schema will let out: the same for every table with these columns."""

    columns: Mapping[str, _columns.Column | ColumnRelease]
    event: privacy.DpEvent
    delta: float
    relation: privacy.NeighboringRelation
    releases: tuple[str, ...]
    roles: Sequence[str]
    given: Sequence[str] = ()
    subject: str | None = None

    def surely_shown(self) -> float:
        """The number of rows of which a value of a label or a group that has to be found is shown, with 97.5 %."""
        asked = [one.common_values() for one in self.columns.values() if isinstance(one, ColumnRelease) and one.is_role]
        return max((common.threshold + 2 * common.sigma for common in asked), default=0.0)


def plan_release(
    columns: Mapping[str, _columns.Column | str | None],
    epsilon: float,
    delta: float,
    roles: Sequence[str] = (),
    relation: privacy.NeighboringRelation = privacy.NeighboringRelation.REPLACE_ONE,
) -> SchemaPlan:
    """Share the budget among the columns that are to be found: half of μ² for label and groups, half for the others."""
    kinds = {n: said for n, said in columns.items() if not isinstance(said, _columns.Column) and said != "boolean"}
    mu, share = dict[str, float](), 0.0
    event, releases = privacy.compose(), tuple[str, ...]()
    if kinds:
        listed = [name for name, kind in kinds.items() if kind in (None, "category")]
        failures = _FAILURES * delta if listed else 0.0
        whole = privacy.gdp_mu(epsilon, delta - failures) * (1 - 1e-9)
        mu = {name: whole * math.sqrt(part) for name, part in _shares(list(kinds), roles).items()}
        share = failures / max(len(listed), 1) * (1 - 1e-9)
        # The steps of a column add up to its mu but for a rounding.
        gaussians = [privacy.repeat(GaussianDpEvent((1 - 1e-12) / one), n) for one, n in Counter(mu.values()).items()]
        event = privacy.compose(*gaussians, *([privacy.repeat(RareDisclosure(share), len(listed))] if listed else []))
        releases = (f"noisy counts of the values of {len(kinds)} columns",)
    found = {name: ColumnRelease(kind, mu[name], share, name in roles, relation) for name, kind in kinds.items()}
    truths = {name: Boolean(missing=name not in roles) for name, said in columns.items() if said == "boolean"}
    plan: dict[str, Any] = {**columns, **found, **truths}
    return SchemaPlan(plan, event, delta, relation, releases, roles)


def planned_schema(
    table: Any,
    *,
    epsilon: float,
    delta: float,
    label: str | None,
    groups: Sequence[str],
    known: Mapping[str, Any],
    subject: str | None = None,
) -> SchemaPlan:
    """What ``released_columns`` will let out; raises the errors that cost nothing."""
    roles = (*([] if label is None else [label]), *groups)
    names, relation = column_names(table), privacy.NeighboringRelation.REPLACE_ONE
    if subject is not None:
        if subject not in names or subject in (*roles, *known):
            raise ValueError(
                "The 'subject' of Schema.release must name the column that says who a row is about, and is neither the "
                f"label, nor a group, nor in 'known'. Got {subject!r} instead; the table has {names[:20]}."
            )
        names, relation = [name for name in names if name != subject], privacy.NeighboringRelation.REPLACE_SUBJECT
    _check(names, epsilon, delta, roles, known)
    for name in roles:
        said, bounded = known.get(name, "any"), name == label and isinstance(known.get(name), _columns.Number)
        if not (bounded or isinstance(said, Category | Boolean) or said in ("category", "boolean", "any")):
            raise ValueError(
                "The label and the groups of a Schema are categories or booleans, and a label of amounts is a Number "
                f"with bounds. Got {said!r} for {name!r}. Give 'category', or leave it out of 'known'."
            )
    said = {name: known.get(name, "any") for name in names if name not in known or known[name] is not None}
    unsaid = {name: "category" if name in roles else None for name in said if said[name] == "any"}
    plan = plan_release({**said, **unsaid}, epsilon, delta, roles, relation)
    return replace(plan, given=[name for name in said if name in known], subject=subject)


def _shares(names: Sequence[str], roles: Sequence[str]) -> dict[str, float]:
    """Of μ², for each column. Where label and groups are half of the columns or more, all have the same."""
    n_roles = len(set(names) & set(roles))
    if 2 * n_roles >= len(names):
        return dict.fromkeys(names, 1 / len(names))
    rest = 1 - _ROLES_SHARE if n_roles else 1.0
    return {name: _ROLES_SHARE / n_roles if name in roles else rest / (len(names) - n_roles) for name in names}


def released_columns(
    table: Any, plan: SchemaPlan, *, ledger: Any, noise_seed: int | None
) -> tuple[dict[str, _columns.Column], privacy.PrivacySpent]:
    """What ``Schema.release`` finds, and what it cost."""
    if noise_seed is not None:
        privacy.refuse_ledger_of_seed("Schema.release", noise_seed, ledger)
        warn_of_seed("Schema.release")
    frame, subjects = as_dataframe(table, list(plan.columns)), None
    if not len(frame):
        raise ValueError("Schema.release needs rows. Got a table without any.")
    if plan.subject is not None:
        subjects = Subjects.read(as_dataframe(table, [plan.subject]), plan.subject, len(frame), owner="Schema.release")
        frame = subjects.one_row_or_none_of(frame)
    _refuse_in_vain(plan, len(frame))
    described = list(plan.columns.values())
    reads = privacy.PublicReads()
    reads.note_number_of_rows(len(frame))
    reads.note("names of columns", "read", column_names(table), "public")
    reads.note("what was said of columns", "given", plan.given or None, "public", by=described)
    if subjects is not None:
        reads.note_subjects(subjects.n, subjects.name)

    spent: list[privacy.PrivacySpent] = []
    with privacy.Spending(
        plan.event, plan.delta, plan.relation, label="Schema.release", ledger=ledger, noise_seed=noise_seed,
        releases=plan.releases, public=privacy.public_facts(reads, plan.relation), report_to=spent.append,
        holds=privacy.held_by(described), rows_of=plan.subject or "",
    ) as noise:  # fmt: skip
        found = {
            name: column.release(frame[name], noise) if isinstance(column, ColumnRelease) else Found(column)
            for name, column in plan.columns.items()
        }
    columns = _kept({name: one.column for name, one in found.items()}, plan, spent[0].own)
    try:
        _warn_of(columns, plan, len(frame))
        for odd in dict.fromkeys(one.odd for one in found.values() if one.odd):
            warn_caller("Schema.release " + odd.format(names=[name for name, one in found.items() if one.odd == odd]))
        say_identifiers({name: one for name, one in columns.items() if name not in plan.given}, "Schema.release")
    except Warning as error:  # where warnings are errors, nothing else would hold what was paid for
        vars(error)["found"] = columns
        error.add_note("The columns that were found are in 'found' of this error: known={**error.found} reuses them.")
        raise
    return columns, spent[0]


def _refuse_in_vain(plan: SchemaPlan, n_rows: int) -> None:
    """Nothing is spent where two values of a label or a group, half of the rows each, are not found: by public numbers.
    A half is the most that the rarer of two values can have; two standard deviations of luck do not help it either."""
    asked = {name: one.common_values() for name in plan.roles if isinstance(one := plan.columns[name], ColumnRelease)}
    vain = [name for name, common in asked.items() if n_rows / 2 + 2 * common.sigma < common.threshold]
    if vain:
        needed, units = 2 * max(asked[name].threshold for name in vain), units_of(plan.relation)
        raise ValueError(
            f"Schema.release cannot find the values of {vain}: with this epsilon and {len(plan.columns)} columns a "
            f"value stands out from noise if about {needed / 2:,.0f} {units} share it, and {n_rows:,} cannot hold two "
            f"such values. Nothing was spent. Give at least {needed:,.0f} of them, {needed / n_rows:.1f} times the "
            "epsilon, or give the values if they are public: known={'name': Category([...])}."
        )


def _kept(
    found: Mapping[str, _columns.Column | None], plan: SchemaPlan, spent: privacy.PrivacySpent
) -> dict[str, _columns.Column]:
    """The columns in which something was found; those that were not given know what was paid for them."""
    columns = {name: column for name, column in found.items() if column is not None}
    bought = [name for name in columns if isinstance(plan.columns[name], ColumnRelease)]
    columns |= {name: replace(columns[name], privacy_=spent) for name in bought}
    absent = [name for name in found if name not in columns]
    needed = [name for name in absent if name in plan.roles]
    if needed or not set(columns) - set(plan.roles):
        raise IncompleteSchemaError(needed or absent, columns)
    return columns


def _warn_of(columns: Mapping[str, _columns.Column], plan: SchemaPlan, n_rows: int) -> None:
    """Name columns that were not found, and roles of which one value was."""
    absent = [name for name in plan.columns if name not in columns]
    roles = {name: columns[name] for name in plan.roles}
    alone = [name for name, one in roles.items() if isinstance(one, Category) and len(one.values) == 1]
    if alone:
        warn_caller(
            f"Schema.release found only one value in {alone}, the label or a group: the others are too rare for this "
            "epsilon, and a model needs two. Raise epsilon, or give the values if they are public: known={'name': "
            "Category([...])}."
        )
    if absent:  # how many rows have to share a value to be found follows from public numbers
        asked = [one for name in absent if isinstance(one := plan.columns[name], ColumnRelease)]
        needed_rows = max(one.common_values(1 - one.share_of_kind(n_rows)).threshold for one in asked)
        warn_caller(
            f"Schema.release leaves out {absent}: {len(plan.columns)} columns share the epsilon, so that a value "
            f"stands out from noise only if about {needed_rows:,.0f} of the {n_rows:,} "
            f"{units_of(plan.relation)} share it. Describe what is public, at no cost: known={{'age': Number(17, 90), "
            "'id': None}; or raise epsilon, or give more rows. Free text, identifiers, durations (make numbers of "
            "them: series.dt.days), lists, and numbers or dates in another format than declared are never found."
        )


def say_identifiers(columns: Mapping[str, _columns.Column], owner: str, numbering: Sequence[str] = ()) -> None:
    """Name columns that are whole numbers and tell one record from all others, and those whose values may be one."""
    listed = ((name, column.values) for name, column in columns.items() if isinstance(column, Category))
    alike = [name for name, values in listed if len(set(map(_as_spoken, values))) < len(values)]
    if alike:
        warn_caller(
            f"{owner} lists values of {alike} that differ by no more than spaces, case or the coding of an accent, "
            "such as 'f' and 'f ', or that are True and 'yes': each counts as a value of its own. Write them in one "
            "way (str.strip, str.lower), or describe the column: known={'name': Category([...])}."
        )
    whole = [name for name, column in columns.items() if isinstance(column, _columns.Number) and column.step == 1]
    named = [name for name in whole if is_called_identifier(name) or name in numbering]
    if named:
        why = "By their values" if set(named) <= set(numbering) else "By their names"
        warn_caller(
            f"{owner} describes {named} as whole numbers to learn from. {why} they identify records, and a model "
            "learns nothing but chance from them. Leave them out of the table, or of the release: "
            f"known={{{named[0]!r}: None}}."
        )


def _as_spoken(value: Any) -> Any:
    text = " ".join(unicodedata.normalize("NFKC", str(value)).casefold().split())
    return {"0": 0, "1": 1, **TRUTHS}.get(text, text)


def is_called_identifier(name: str) -> bool:
    """Whether a column has the name of an identifier."""
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
    return re.search(r"(^|[\W_])(id|uuid|guid|rowid|rownum|index|unnamed: \d+)$", words) is not None


def _check(names: Sequence[Any], epsilon: float, delta: float, roles: Sequence[str], known: Mapping[str, Any]) -> None:
    """Everything that can be wrong, before anything is spent."""
    for parameter, value, most in (("epsilon", epsilon, math.inf), ("delta", delta, 1.0)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < most:
            raise ValueError(
                f"The {parameter!r} parameter of Schema.release must be a float in the range (0.0, {most}). "
                f"Got {value!r} instead."
            )
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("Schema.release needs a table whose columns have different names, all of them texts.")
    unknown = [name for name in (*roles, *known) if name not in names]
    if unknown:
        raise ValueError(f"Schema.release got names that the table does not have: {unknown}. It has {names[:20]}.")
    if len(set(roles)) < len(roles):
        twice = next(name for name in roles if roles.count(name) > 1)
        raise ValueError(f"Column {twice!r} is named twice in 'label' and 'groups' of Schema.release. Name it once.")
    if not [name for name in names if name not in roles and known.get(name, "") is not None]:
        raise ValueError(
            "Schema.release needs at least one column that is neither the label nor a group, and not left out by "
            "'known'. Give a table with features."
        )
    for name, said in known.items():
        if not (said is None or isinstance(said, _columns.Column) or said in _KINDS):
            raise ValueError(
                "The 'known' parameter of Schema.release must give for a column a Number, Category, Boolean or Date, "
                f"one of {list(_KINDS)}, or None to leave it out. Got {said!r} for {name!r} instead."
            )
