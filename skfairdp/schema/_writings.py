"""How texts write days and numbers: the usual ways, and which of them reads most of a column.

A text may be read in several ways (03/04/2001 by two, 1,200 as twelve hundred or as one and a fifth). So a column is
told by a table of counts in which each cell has one place, that of all ways which read it. A way is chosen by what the
table says, noisy or not: the first of those that read as much as any, but for what noise explains.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.schema._columns import TIME_OF_DAY, _number_written

_EVIDENCE = 4.0  # standard deviations of the noise by which a way has to read more than one before it

_DAY = re.compile(
    r"(\d{1,4}([/.\- ])(\d{1,2}|[A-Za-z]{3,9})\2\d{1,4}|[A-Za-z]{3,9} \d{1,2}, \d{4})(" + TIME_OF_DAY.pattern + ")?"
)
_ORDERS = ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%Y{0}%m{0}%d", "%d{0}%m{0}%y", "%m{0}%d{0}%y", "%d{0}%b{0}%Y")
_FORMATS = [
    *(order.format(mark) for mark in "/.- " for order in _ORDERS if (order, mark) != ("%Y{0}%m{0}%d", "-")),
    *("%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
]

_UNITS = (
    *("", "$", "€", "£", "%", "¥", "₹", "kr", "EUR", "USD", "GBP", "CHF", "kg", "km", "cm"),
    *("R$", "zł", "Kč", "₽", "₩", "¢", "°C", "°F", "lb", "lbs", "g", "mg", "m", "mm", "h", "min", "ft", "mi"),
)
_ANY_UNIT = f"({'|'.join(map(re.escape, _UNITS[1:]))})?"
_NUMBER = re.compile(
    rf"({_ANY_UNIT}\s*\()?[-+\u2212]?\s*{_ANY_UNIT}\s*[-+\u2212]?\d[\d.,' \u00a0\u202f]*{_ANY_UNIT}\s*[-\u2212]?"
    rf"(\)\s*{_ANY_UNIT})?"
)
#: Of which the point may be for thousands: neither 0.125 nor 1,234.567.
LIKE_1200 = re.compile(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,eE])")
_MARKS = ((".", ","), (",", ""), (",", "."), (",", " "), (".", " "), (".", "'"))


@dataclass(frozen=True)
class Writings:
    """Ways to write one kind of values, in the order in which they are preferred."""

    shape: "re.Pattern[str]"
    ways: tuple[Mapping[str, Any], ...]
    examples: tuple[str, ...]

    #: Whether a way reads any two texts that differ in digits after the first one, or neither.
    any_digits: bool = False

    def reading(self, text: str) -> tuple[int, ...]:
        """The ways that read a text."""
        text = text.strip()
        if not self.shape.fullmatch(text):
            return ()
        return self._readers(_FIRST_DIGIT.sub(_with_ones, text) if self.any_digits else text)

    @cached_property
    def _readers(self) -> Any:
        return lru_cache(maxsize=4096)(lambda text: tuple(j for j, way in enumerate(self.ways) if _reads(text, **way)))

    def forget(self) -> None:
        """What was remembered of private texts: the ways are there as long as the process."""
        self._readers.cache_clear()

    @cached_property
    def readings(self) -> dict[tuple[int, ...], int]:
        """Places of a table of counts, by the ways that read a text."""
        found = dict.fromkeys(self.reading(text) for text in self.examples)
        return {reading: place for place, reading in enumerate(reading for reading in found if reading)}

    def counts(self, cells: Iterable[Any]) -> NDArray[np.int64]:
        """Count texts by the ways that read them; other cells count nothing."""
        place = cache(lambda text: self.readings.get(self.reading(text), -1))
        try:
            places = np.array([place(cell) if type(cell) is str else -1 for cell in cells], dtype=np.int64)
        finally:
            self.forget()
        return np.bincount(places[places >= 0], minlength=len(self.readings))

    def best(self, counts: NDArray[Any], sigma: float = 0.0) -> tuple[dict[str, Any], str]:
        """The way that reads most, by counts with so much noise each; and a format that may as well be that of days.
        Two ways differ by the counts of what one of them reads and the other does not. The format has day and month the
        other way round; it is empty where the counts show which of both it is."""
        at = [{place for ways, place in self.readings.items() if j in ways} for j in range(len(self.ways))]
        reads = [sum(counts[place] for place in places) for places in at]
        most = int(np.argmax(reads))
        doubts = [_EVIDENCE * sigma * math.sqrt(len(places ^ at[most])) for places in at]
        compared = zip(self.ways, reads, doubts, strict=True)
        as_good = [way for way, read, doubt in compared if reads[most] - read <= doubt]
        turned = {"format": as_good[0].get("format", "").translate(_TURNED)}
        return dict(as_good[0]), turned["format"] if turned in as_good[1:] else ""

    def place(self, text: str) -> int:
        """The place of an example in the table of counts."""
        return self.readings[self.reading(text)]


_TURNED = str.maketrans("dm", "md")
_FIRST_DIGIT = re.compile(r"([0-9])(.*)", re.DOTALL)
_ONES = str.maketrans("023456789", "1" * 9)


def _with_ones(found: "re.Match[str]") -> str:
    return ("0" if found[1] == "0" else "1") + found[2].translate(_ONES)


def _reads(text: str, format: str = "", decimal: str = ".", thousands: str = "", unit: str = "") -> bool:
    if format:
        text = TIME_OF_DAY.sub("", text)
        if format[2] not in text or ("b" in format.lower()) != any(mark.isalpha() for mark in text):
            return False  # strptime is slow
        try:
            return datetime.strptime(text, format).year > 0
        except ValueError:
            return False
    return (not unit or unit in text) and not math.isnan(_number_written(text, decimal, thousands, unit))


DAYS = Writings(
    _DAY,
    tuple({"format": format} for format in _FORMATS),
    tuple(date(2001, month, day).strftime(format) for format in _FORMATS for month, day in ((4, 25), (4, 3), (5, 3))),
)

_SPELLED = ("1,200", "1,200.5", "0,5", "1.200,5", "1.200.000", "1 200", "1 200,5", "1 200.5", "1'200", "1'200.5")
_WITH_UNIT = ("5", "0.5", "1.200", *_SPELLED)
NUMBERS = Writings(
    _NUMBER,
    tuple(
        {"decimal": decimal, "thousands": thousands, "unit": unit}
        for unit in _UNITS
        for decimal, thousands in ([(".", "")] if unit else []) + list(_MARKS)
    ),
    (*_SPELLED, *(f"{text}{unit}" for unit in _UNITS[1:] for text in _WITH_UNIT)),
    any_digits=True,
)
