"""Files that commands read and write: tables, schemas, and a folder with the results."""

import bz2
import contextlib
import csv
import gzip
import itertools
import json
import lzma
import math
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: What a frontier is written to.
FRONTIER_FILES = ("frontier.csv", "frontier.png", "frontier.html")
#: The account of all runs that write into one folder.
LEDGER_FILE = "ledger.jsonl"

_TWICE = "names given twice"


class UsageError(Exception):
    """Something the caller has to change; its text is the one line that is shown."""


def read_table(name: str, *, types: bool, listed: Mapping[str, Collection[Any]] | None = None) -> "pd.DataFrame":
    """A table with rows, as pandas reads it; without types, every cell as the text that the file holds. Words like NA,
    which pandas takes for a missing value, stay words in a column that lists them as one of its values."""
    import pandas as pd

    path = Path(name).expanduser()
    parts = [suffix for suffix in path.suffixes if suffix in (".csv", ".tsv", ".txt", ".parquet", ".pq")]
    if not parts:
        raise UsageError(f"{name} must be a .csv, .tsv or .parquet file (compressed: .csv.gz)")
    try:
        if parts[-1] in (".parquet", ".pq"):
            path.stat()  # says what is wrong, as its reader does not
            table = pd.read_parquet(path, dtype_backend="pyarrow")  # of types that each cell fits
            table = table.reset_index([level for level in table.index.names if level is not None])
            table.columns = pd.Index([*map(str, table.columns)])  # those of several levels are tuples
            return _with_rows(table, name)
        _check_width(path, name)
        given: dict[str, Any] = {"sep": "\t" if parts[-1] == ".tsv" else ",", "skipinitialspace": True}
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, **given)
        _check_separator(first, name)
        table = pd.read_csv(path, **given, **({} if types else {"dtype": str}))
        as_texts = partial(pd.read_csv, path, dtype=str, keep_default_na=False, **given)
        _check_lengths(path, name, given, table.shape[1], aloud=not types)  # a template reads twice
        _keep_words(table, listed or {}, lambda at: as_texts(usecols=at))
    except UsageError:
        raise
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {name}: {_encoding(name, error.object)}") from None
    except ImportError:
        raise UsageError(f"reading {name} needs pyarrow (pip install 'skfairdp[tables]')") from None
    except Exception as error:  # a parser's, a codec's: pandas has many
        said = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise UsageError(f"cannot read {name}: {said}") from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas makes the first cells an index: all names would move
        raise UsageError(
            f"cannot read {name}: its rows have more cells than its first line has names. Name every column, or take "
            "the separator at the end of the lines away"
        )
    names = ["" if cell != cell else str(cell).strip() for cell in first.iloc[0]]
    if len(names) == table.shape[1]:
        read = [str(column).strip() for column in table.columns]
        names = [name or other for name, other in zip(names, read, strict=True)]
        table.columns, table.attrs[_TWICE] = _numbered(names), sorted({one for one in names if names.count(one) > 1})
    else:
        table.columns = table.columns.astype(str).str.strip()
    return _with_rows(table, name)


def _with_rows(table: "pd.DataFrame", name: str) -> "pd.DataFrame":
    if not len(table):
        raise UsageError(f"{name} has no rows below the names of its columns")
    return table


def _check_width(path: Path, name: str) -> None:
    """Refuse two bytes a letter without the mark that says so, which pandas takes for letters between nothings."""
    with path.open("rb") as file:
        start = file.read(64)
    codes = {"UTF-16LE": 1, "UTF-16BE": 0}.items() if len(start) > 3 else ()
    if wide := next((code for code, at in codes if not any(start[at::2])), ""):
        raise UsageError(
            f"cannot read {name}: it is {wide} text. Write it as UTF-8: iconv -f {wide} -t UTF-8 {name} > utf8.csv"
        )


def _encoding(name: str, read: bytes) -> str:
    """Why bytes are no UTF-8, and the command that makes it of them."""
    if read[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return f"it is UTF-16 text. Write it as UTF-8: iconv -f UTF-16 -t UTF-8 {name} > utf8.csv"
    return (
        "it is not UTF-8 text. Save it as such, or where it comes from Windows: "
        f"iconv -f CP1252 -t UTF-8 {name} > utf8.csv"
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """Names of which no two are the same: the second "age" is "age.1", as in pandas."""
    found: list[str] = []
    for name in names:
        own = (f"{name}.{k}" for k in itertools.count(1))
        found.append(name if name not in found else next(one for one in own if one not in found and one not in names))
    return found


def _check_separator(first: "pd.DataFrame", name: str) -> None:
    """Refuse a first line that is one name, with other separators in it."""
    other = next((mark for mark in ";\t|" if mark in str(first.iloc[0, 0])), None)
    if first.shape[1] == 1 and other is not None:
        raise UsageError(
            f"cannot read {name}: its cells are separated by {other!r}. Write it with commas, and its numbers as they "
            f"are; in Python: pandas.read_csv({name!r}, sep={other!r}, dtype=str).to_csv('commas.csv', index=False)"
        )


def _check_lengths(path: Path, name: str, given: Mapping[str, Any], width: int, *, aloud: bool) -> None:
    """Refuse rows with fewer cells than columns: pandas moves all that follow a cell left out, and adds blank ones."""
    kind = path.suffix.lower()
    if kind in (".zip", ".zst") or ".tar" in path.suffixes:
        return
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(kind, open)
    csv.field_size_limit(2**31 - 1)  # as long a cell as pandas reads
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        rows, ends, short = csv.reader(file, delimiter=given["sep"], skipinitialspace=True), [0], []
        for row in rows:
            ends.append(rows.line_num)
            if len(row) < width and any(row):
                short.append(rows.line_num)
    if short:
        raise UsageError(
            f"cannot read {name}: {len(short):,} of its rows have fewer cells than its first line has names, the first "
            f"in line {short[0]:,}. Give each cell its place, with nothing between separators where nothing is known"
        )
    long = [start + 1 for start, end in itertools.pairwise(ends) if end > start + 1]
    if long and aloud:
        print(
            f"Note: {name} has rows of several lines, the first from line {long[0]:,} on, {len(long):,} in all: what "
            'is in quotes, or follows a quote (") that nothing closes, which makes one row of many.',
            file=sys.stderr,
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


def _is_cell(name: str) -> bool:
    """Whether the name of a column is a number, as the first line of a file without names has."""
    with contextlib.suppress(ValueError):
        return math.isfinite(float(name))
    return False


def check_columns(table: "pd.DataFrame", asked: Sequence[str], name: str, *, roles: Sequence[str]) -> None:
    """Refuse what is no column of the table, in quotes, where a space would not be seen, and a role for two of them."""
    absent = [column for column in dict.fromkeys(asked) if column not in table.columns]
    if absent and any(map(_is_cell, table.columns)):  # cells of a person, which no error shows
        raise UsageError(
            f"{name} has no column {', '.join(map(repr, absent))}, and its first line holds cells, such as numbers, in "
            "place of names. Write a line with the names of the columns above it"
        )
    if absent:
        raise UsageError(
            f"{name} has no column {', '.join(map(repr, absent))}; it has {', '.join(map(repr, table.columns))}"
        )
    twice = table.attrs.pop(_TWICE, [])
    named = ", ".join(map(repr, [column for column in twice if column in roles]))
    if named:  # the second one may be a copy, and a copy of the label would be a feature
        raise UsageError(f"{name} names a column twice: {named}. Give each column another name")
    if twice:
        print(
            f"Note: {name} names columns twice: {', '.join(map(repr, twice))}. Of each, the second is called "
            f"{twice[0] + '.1'!r} and so on.",
            file=sys.stderr,
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


def with_roles(schema: Any, label: str, groups: tuple[str, ...], subject: str | None, name: str) -> Any:
    """The schema with label, groups and subject of the command line."""
    from skfairdp.schema import Schema

    try:
        return Schema(dict(schema.columns), label=label, groups=groups, n_rows=schema.n_rows, subject=subject)
    except ValueError as error:
        raise UsageError(f"--schema {name}: {error}") from None


def writable_folder(out: str, files: Sequence[str] = FRONTIER_FILES, read: Sequence[str] = ()) -> Path:
    """Make the folder and prove that files can be written there, before minutes of work, and over none that is read."""
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"cannot write to --out {out}: {error.strerror or error}") from None
    for file in files:
        path = folder / file
        if any(os.path.realpath(path) == os.path.realpath(Path(one).expanduser()) for one in read):
            raise UsageError(f"cannot replace {path}: it is what this command reads. Rename it, or name another --out")
        if path.is_symlink():
            raise UsageError(f"cannot replace {path}: it is a link to another file. Remove it, or name another --out")
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            raise UsageError(f"cannot replace {path}: it is not a writable file")
    return folder


def refuse_handwritten(path: Path) -> None:
    """Refuse to replace a schema that nothing was paid for: somebody wrote it."""
    if path.is_file() and "releases" not in path.read_text(encoding="utf-8", errors="replace"):
        raise UsageError(f"cannot replace {path}: somebody wrote it. Use it, --schema {path}, or name another --out")


@contextlib.contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A new folder of which all files take their places at the end: what a link there leads to is never written. What
    was paid for is kept where somebody has removed the folder meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as new:
        yield Path(new)
        for file in sorted(Path(new).iterdir()):
            os.replace(file, folder / file.name)


def write_frontier(table: "pd.DataFrame", folder: Path) -> list[str]:
    """Write the table, its page and, with matplotlib, its picture; return their names."""
    from skfairdp._utils import write_csv
    from skfairdp.inspection import ParetoFrontierDisplay

    with replaced(folder) as new:
        write_csv(table, new / "frontier.csv")
        display = ParetoFrontierDisplay(table)
        display.to_html(new / "frontier.html")
        try:
            from matplotlib import use
        except ImportError:
            print("No frontier.png: it needs matplotlib (pip install 'skfairdp[plots]').")
            return ["frontier.csv", "frontier.html"]
        use("Agg")  # the picture goes to a file; no window system is needed
        display.plot().figure_.savefig(new / "frontier.png", dpi=120)
    return list(FRONTIER_FILES)


@contextlib.contextmanager
def _or_shown(content: Any) -> Iterator[None]:
    """A schema that was paid for is on the terminal where the disk takes no more."""
    try:
        yield
    except OSError:
        print(f"The schema that was paid for, to be kept as schema.json:\n{json.dumps(content)}", file=sys.stderr)
        raise


def save_schema(schema: Any, folder: Path) -> None:
    """Keep a schema that was paid for."""
    with _or_shown(schema.to_dict()), replaced(folder) as new:
        schema.save(new / "schema.yaml")


def save_unfinished(error: Any, folder: Path, label: str, groups: Sequence[str], subject: str | None) -> Path:
    """Keep what was found of a schema: a file in which what was not is null."""
    import yaml

    from skfairdp.schema import Schema

    content = {**Schema(error.found).to_dict(), "label": label, "groups": list(groups)}
    content |= {} if subject is None else {"subject": subject}
    for name in error.absent:
        content["columns"][name] = {"kind": "category", "values": None} if name in (label, *groups) else {"kind": None}
    with _or_shown(content), replaced(folder) as new:
        (new / "schema.yaml").write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return folder / "schema.yaml"


def open_ledger(name: str, budget: float | None, delta: float) -> Any:
    """The account of a table. An existing one goes on with its own ceiling and δ."""
    from skfairdp.exceptions import LedgerError
    from skfairdp.privacy import PrivacyLedger

    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline(4096))
        ceiling, delta = float(header["epsilon"]), float(header["delta"])
        if budget is not None and budget != ceiling:
            raise UsageError(f"--budget {budget:g}: the account {path} has a ceiling of {ceiling:g} already")
        budget = ceiling
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"cannot read --ledger {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"--ledger {path} is not the account of an earlier run. Name another file") from None
    try:
        return PrivacyLedger(math.inf if budget is None else budget, delta, path)
    except (LedgerError, OSError) as error:
        raise UsageError(f"--ledger {path}: {error}") from None
