"""The text of an id: readers of files give the same one several types."""

import math
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np

from skfairdp._utils._messages import private_error

_DIGITS = 15  # a float keeps so many
_WHOLE = re.compile(r"[+-]?[0-9]+")


def texts_of_ids(ids: Iterable[Any]) -> list[str]:
    """The one text of each id, none of which is missing."""
    texts = [_text_of(cell) for cell in ids]
    found = [text for text in texts if text is not None]
    if len(found) < len(texts):
        raise private_error("no ids")
    return found


def _text_of(cell: Any) -> str | None:
    """The text of an id, by it alone and the same whatever type a reader gave it; None where there is no such text.

    Cells that are equal have the same one. Where readers make one number of two texts, so does this: two ids may become
    one, and that protects both together. One never becomes two: a date, a float that may have lost digits, and an
    object whose text need not follow its value have no text.
    """
    if isinstance(cell, str):
        return _text_of_text(cell)
    if isinstance(cell, float | np.floating):
        return _text_of_float(cell)
    if isinstance(cell, tuple):
        texts = [_text_of(part) for part in cell]
        return None if None in texts else repr(texts)
    if isinstance(cell, bool | np.bool_ | Integral):
        return str(int(cell))
    if isinstance(cell, bytes | bytearray | memoryview):
        return _text_of_text(bytes(cell).decode("utf-8", "backslashreplace"))
    if isinstance(cell, Decimal) and not cell.is_finite():
        return None
    return _text_of_text(str(cell)) if isinstance(cell, Decimal | UUID) else None


def _text_of_float(cell: Any) -> str | None:
    """Of as many digits as its type keeps for certain: readers may be wrong in the last place of those behind them."""
    number, digits, unsure = float(cell), _DIGITS, math.ulp(float(cell))
    if isinstance(cell, np.float16 | np.float32):
        digits, unsure = np.finfo(type(cell)).precision, abs(float(np.spacing(cell)))
    if not abs(number) < 10**digits:
        return None
    near = f"{number:.{digits}g}"
    return _text_of_text(near) if abs(float(near) - number) <= unsure else None


def _text_of_text(text: str) -> str:
    """Digits alone with all of them but zeros in front; another number as its float; the rest without blanks around."""
    text = unicodedata.normalize("NFC", text.strip().encode("utf-8", "backslashreplace").decode())
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    try:
        number = float(text)
    except ValueError:
        return text
    if math.isnan(number):
        return ""
    digits = text.replace("_", "")  # pandas.read_json reads through them
    if not _WHOLE.fullmatch(digits):
        digits = f"{number:.{_DIGITS}g}" if abs(number) < 10**_DIGITS else _exactly(text, number)
    if not _WHOLE.fullmatch(digits):
        return digits
    size = digits.lstrip("+-0") or "0"
    return f"-{size}" if digits[0] == "-" and size != "0" else size


def _exactly(text: str, number: float) -> str:
    """All digits of a number of which a float keeps some, so that such a float would be refused."""
    found = text if math.isinf(number) else f"{Decimal(text):f}"
    return found.rstrip("0").rstrip(".") if "." in found else found
