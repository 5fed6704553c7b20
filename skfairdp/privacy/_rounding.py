"""Figures for people to read, rounded against ourselves."""

import math
from decimal import ROUND_CEILING, Context, Decimal

__all__ = ["rounded_up"]


def rounded_up(value: float, digits: int = 4) -> str:
    """The figure with so many significant digits, never below the certified one.

    Examples
    --------
    >>> from skfairdp.privacy._rounding import rounded_up
    >>> rounded_up(0.92631), rounded_up(1.0), rounded_up(1234.5)
    ('0.9264', '1', '1235')
    """
    if not math.isfinite(value):
        return f"{value:g}"
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value))
    return f"{float(up):.{digits}g}"
