"""Tables written for spreadsheets, in which no cell is a formula."""

import csv
from pathlib import Path
from typing import Any

import pandas as pd

from skfairdp.utils._files import write_text

__all__ = ["write_csv"]

#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table of results as a CSV file that a spreadsheet opens without running anything.

    Names of columns, groups and models are the user's, or those of whoever wrote their data: a group called
    ``=HYPERLINK(...)`` would be run where the file is opened. Such a text gets an apostrophe in front, which
    spreadsheets read as "this is text"; quotes alone do not stop them. Numbers, negative ones too, stay as they are.

    Parameters
    ----------
    frame : DataFrame
    path : str or Path

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from pathlib import Path
    >>> from skfairdp.utils import write_csv
    >>> table = pd.DataFrame({"model": ["=1+1", "-0.5", "PATE"], "gap": [-0.5, 0.0, 0.1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(table, Path(folder, "table.csv"))
    ...     print(Path(folder, "table.csv").read_text().splitlines()[1])
    "'=1+1",-0.5
    """
    safe = frame.map(_as_text)
    safe.columns = [_as_text(name) for name in frame.columns]
    write_text(path, safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC))  # a text may hold the end of a line


def _as_text(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell
