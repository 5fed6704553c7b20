"""Files that commands read and write: tables, schemas, and a folder with the results."""

import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FRONTIER_FILES",
    "UsageError",
    "check_columns",
    "read_schema",
    "read_table",
    "with_roles",
    "writable_folder",
    "write_frontier",
]

#: What a frontier is written to.
FRONTIER_FILES = ("frontier.csv", "frontier.png", "frontier.html")


class UsageError(Exception):
    """Something the caller has to change; its text is the one line that is shown."""


def read_table(name: str, *, types: bool, listed: Mapping[str, Collection[Any]] | None = None) -> "pd.DataFrame":
    """A table as pandas reads it; without types, every cell as the text that the file holds.

    Words like NA, which pandas takes for a missing value, stay words in a column that lists them as one of its values.
    """
    import pandas as pd

    path = Path(name).expanduser()
    parts = [suffix for suffix in path.suffixes if suffix in (".csv", ".tsv", ".txt", ".parquet", ".pq")]
    if not parts:
        raise UsageError(f"{name} must be a .csv, .tsv or .parquet file (compressed: .csv.gz)")
    try:
        if parts[-1] in (".parquet", ".pq"):
            return pd.read_parquet(path)
        given: dict[str, Any] = {"sep": "\t" if parts[-1] == ".tsv" else ",", "skipinitialspace": True}
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, **given)
        _check_separator(first, name)
        table = pd.read_csv(path, **given, **({} if types else {"dtype": str}))
        _keep_words(
            table, listed or {}, lambda at: pd.read_csv(path, dtype=str, keep_default_na=False, usecols=at, **given)
        )
    except UsageError:
        raise
    except UnicodeDecodeError:
        raise UsageError(
            f"cannot read {name}: it is not UTF-8 text. Save it as such, or where it comes from Windows: "
            f"iconv -f CP1252 -t UTF-8 {name} > utf8.csv"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or ' '.join(str(error).split())}") from None
    except ImportError:
        raise UsageError(f"reading {name} needs pyarrow (pip install 'skfairdp[tables]')") from None
    except Exception as error:  # a parser's, a codec's: pandas has many
        raise UsageError(f"cannot read {name}: {' '.join(str(error).split())}") from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas makes the first cells an index: all names would move
        raise UsageError(
            f"cannot read {name}: its rows have more cells than its first line has names. Name every column, or take "
            "the separator at the end of the lines away"
        )
    names = first.iloc[0].dropna().str.strip()
    if names.duplicated().any():  # pandas numbers them, and a second label would be a feature
        twice = ", ".join(map(repr, names[names.duplicated()].unique()))
        raise UsageError(f"{name} names a column twice: {twice}. Give each column a name of its own")
    table.columns = table.columns.astype(str).str.strip()
    return table


def _check_separator(first: "pd.DataFrame", name: str) -> None:
    """Refuse a first line that is one name, with other separators in it."""
    line = str(first.iloc[0, 0])
    other = next((mark for mark in ";\t|" if mark in line), None)
    if first.shape[1] == 1 and other is not None:
        raise UsageError(
            f"cannot read {name}: its cells are separated by {other!r}. Write it with commas, and numbers with points; "
            f"in Python: pandas.read_csv({name!r}, sep={other!r}, decimal=',').to_csv('commas.csv', index=False)"
        )


def _keep_words(
    table: "pd.DataFrame", listed: Mapping[str, Collection[Any]], read: Callable[[list[int]], "pd.DataFrame"]
) -> None:
    """Put the words back that are values of their columns."""
    names = [str(column).strip() for column in table.columns]
    at = [j for j, column in enumerate(names) if column in listed and table.iloc[:, j].isna().any()]
    if at:
        for j, (_, cells) in zip(at, read(at).items(), strict=True):
            words = cells.str.strip().isin({str(value) for value in listed[names[j]]})
            table.isetitem(j, table.iloc[:, j].astype(object).where(~words, cells))


def check_columns(table: "pd.DataFrame", asked: Sequence[str], name: str) -> None:
    """Refuse what is no column of the table: in quotes, where a space would not be seen."""
    absent = [column for column in asked if column not in table.columns]
    if absent:
        raise UsageError(
            f"{name} has no column {', '.join(map(repr, absent))}; it has {', '.join(map(repr, table.columns))}"
        )


def read_schema(name: str) -> tuple[Any, dict[str, Any]]:
    """A schema, or None where something in the file is null; and what the file says."""
    from skfairdp.schema import Schema

    path = Path(name).expanduser()
    try:
        said = Schema.load_known(path)
        whole = not any(isinstance(known, str) for known in said["known"].values())
        return Schema.load(path) if whole else None, said
    except OSError as error:
        raise UsageError(f"cannot read --schema {name}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"--schema {name}: {' '.join(str(error).split())}") from None


def with_roles(schema: Any, label: str, groups: tuple[str, ...], name: str) -> Any:
    """The schema with label and groups of the command line."""
    from skfairdp.schema import Schema

    try:
        return Schema(dict(schema.columns), label=label, groups=groups, n_rows=schema.n_rows)
    except ValueError as error:
        raise UsageError(f"--schema {name}: {error}") from None


def writable_folder(out: str, files: Sequence[str] = FRONTIER_FILES) -> Path:
    """Make the folder and prove that files can be written there, before minutes of work."""
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"cannot write to --out {out}: {error.strerror or error}") from None
    for file in files:
        path = folder / file
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            raise UsageError(f"cannot replace {path}: it is not a writable file")
    return folder


def write_frontier(table: "pd.DataFrame", folder: Path) -> list[str]:
    """Write the table, its page and, with matplotlib, its picture; return their names."""
    from skfairdp.inspection import ParetoFrontierDisplay
    from skfairdp.utils import write_csv

    write_csv(table, folder / "frontier.csv")
    display = ParetoFrontierDisplay(table)
    display.to_html(folder / "frontier.html")
    try:
        from matplotlib import use
    except ImportError:
        print("No frontier.png: it needs matplotlib (pip install 'skfairdp[plots]').")
        return ["frontier.csv", "frontier.html"]
    use("Agg")  # the picture goes to a file; no window system is needed
    display.plot().figure_.savefig(folder / "frontier.png", dpi=160)
    return list(FRONTIER_FILES)
