"""Files that the package writes where its user says."""

import csv
import os
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a file whole, or not at all: what stood there stays until then, and nothing is written through a link."""
    target = Path(path)
    if target.is_symlink():
        raise ValueError(
            f"{target} is a link to another file, which would be overwritten. Remove the link, or name another file."
        )
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        file = Path(folder, "new")
        file.write_text(text, encoding="utf-8", newline="")
        if target.is_file():
            file.chmod(target.stat().st_mode)
        os.replace(file, target)
    return target


#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table of results as a CSV file that a spreadsheet opens without running anything.

    Names of columns, groups and models are the user's, or those of whoever wrote their data: a group called
    ``=HYPERLINK(...)`` would be run where the file is opened. Such a text gets an apostrophe in front, which
    spreadsheets read as "this is text"; quotes alone do not stop them. Numbers, negative ones too, stay as they are.
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
