"""Files that commands read and write: tables, schemas, and a folder with the results."""

import os
import tempfile
from collections.abc import Sequence
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


def read_table(name: str, *, types: bool) -> "pd.DataFrame":
    """A table as pandas reads it; without types, every cell as the text that the file holds."""
    import pandas as pd

    path = Path(name).expanduser()
    parts = [suffix for suffix in path.suffixes if suffix in (".csv", ".tsv", ".txt", ".parquet", ".pq")]
    if not parts:
        raise UsageError(f"{name} must be a .csv, .tsv or .parquet file (compressed: .csv.gz)")
    try:
        if parts[-1] in (".parquet", ".pq"):
            return pd.read_parquet(path)
        separator = "\t" if parts[-1] == ".tsv" else ","
        given: dict[str, Any] = {} if types else {"dtype": str}
        table = pd.read_csv(path, sep=separator, skipinitialspace=True, **given)
        first = pd.read_csv(path, sep=separator, skipinitialspace=True, header=None, nrows=1, dtype=str)
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
