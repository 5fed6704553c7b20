"""Descriptions of a table from elsewhere: pandera's schemas, SDV's metadata, a schema's file, a look at the rows."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp.schema import _columns
from skfairdp.schema._columns import Boolean, Category, Column, Date, Number
from skfairdp.schema._release import counts_of_kinds, is_called_identifier, likeliest
from skfairdp.schema._writings import LIKE_1200

#: A column in full; or its kind, where bounds or values are not said; or None, where it is of no use.
Said = dict[str, Column | str | None]


def pandera_columns(schema: Any) -> Said:
    """What a pandera schema says of each column, by its dtype and its checks."""
    schema = schema.to_schema() if isinstance(schema, type) and hasattr(schema, "to_schema") else schema
    described = getattr(schema, "columns", None)
    if not isinstance(described, Mapping) or not all(hasattr(column, "checks") for column in described.values()):
        raise ValueError(
            f"Schema.from_pandera takes a DataFrameSchema or a DataFrameModel of pandera. Got {type(schema).__name__}."
        )
    return {str(name): _from_checks(column) for name, column in described.items()}


def _from_checks(column: Any) -> Column | str:
    dtype, missing = str(column.dtype).lower(), bool(column.nullable)
    checks = [(check.name, check.statistics or {}) for check in column.checks]
    listed = [said["allowed_values"] for name, said in checks if name == "isin"]
    listed += [[said["value"]] for name, said in checks if name == "equal_to"]
    if dtype in ("bool", "boolean"):
        return Boolean(missing=missing)
    values = listed[0] if listed else getattr(column.dtype, "categories", None)
    if values is not None and len(values):
        return Category(tuple(values), missing=missing)
    if dtype.startswith(("datetime", "date", "timestamp")):
        return _bounded("date", checks, missing)
    if dtype.startswith(("int", "uint")):
        return _bounded("whole", checks, missing)
    return _bounded("number", checks, missing) if dtype.startswith(("float", "decimal")) else "category"


_LEAST = {"greater_than_or_equal_to": True, "greater_than": False}  # whether the bound itself is allowed
_MOST = {"less_than_or_equal_to": True, "less_than": False}


def _bounded(kind: str, checks: list[tuple[str, Mapping[str, Any]]], missing: bool) -> Column | str:
    low = [(said["min_value"], _LEAST[name]) for name, said in checks if name in _LEAST]
    high = [(said["max_value"], _MOST[name]) for name, said in checks if name in _MOST]
    for name, said in checks:
        if name == "in_range":
            low.append((said["min_value"], said.get("include_min", True)))
            high.append((said["max_value"], said.get("include_max", True)))
    if not low or not high:
        return kind
    least, most = max(value for value, _ in low), min(value for value, _ in high)
    if kind == "date":
        first, last = (getattr(day, "date", lambda day=day: day)() for day in (least, most))
        return Date(first, last, missing=missing)
    if kind == "number":
        return Number(float(least), float(most), missing=missing)
    # A whole number above 0 is at least 1.
    least = max(math.ceil(value) + (0 if allowed or math.ceil(value) > value else 1) for value, allowed in low)
    most = min(math.floor(value) - (0 if allowed or math.floor(value) < value else 1) for value, allowed in high)
    return Number(least, most, step=1, missing=missing)


_SDTYPES = {"numerical": "number", "categorical": "category", "boolean": "boolean", "datetime": "date"}


def sdv_columns(metadata: Any, table: str | None) -> Said:
    """What SDV's metadata say of each column: its kind, never its bounds or values."""
    content = _content_of(metadata)
    tables = content.get("tables")
    if isinstance(tables, Mapping):
        if table is None and len(tables) != 1:
            raise ValueError(f"The metadata describe several tables. Name one of {sorted(tables)} in 'table'.")
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise ValueError(f"The metadata have no table {name!r}. Name one of {sorted(tables)} in 'table'.")
        content = tables[name]
    columns = content.get("columns") if isinstance(content, Mapping) else None
    described = columns.values() if isinstance(columns, Mapping) else [None]
    if columns is None or not all(isinstance(said, Mapping) and "sdtype" in said for said in described):
        raise ValueError("Schema.from_sdv takes metadata in which 'columns' maps each name to its 'sdtype'.")
    kinds = {str(name): None if said.get("pii") else _SDTYPES.get(said["sdtype"]) for name, said in columns.items()}
    whole = [str(name) for name, said in columns.items() if "int" in str(said.get("computer_representation")).lower()]
    return {name: "whole" if kind == "number" and name in whole else kind for name, kind in kinds.items()}


def _content_of(metadata: Any) -> Mapping[str, Any]:
    if hasattr(metadata, "to_dict"):
        metadata = metadata.to_dict()
    if isinstance(metadata, str | Path):
        text = str(metadata)
        if not text.lstrip().startswith("{"):
            text = Path(metadata).read_text(encoding="utf-8")
        try:
            metadata = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"Schema.from_sdv cannot read the metadata as JSON: {error}.") from None
    if not isinstance(metadata, Mapping):
        raise ValueError(f"Schema.from_sdv takes metadata of SDV, a dict or JSON. Got {type(metadata).__name__}.")
    return metadata


def completed(said: Said, columns: Mapping[str, Column | None], roles: tuple[str, ...], by: str) -> dict[str, Column]:
    """What was said, and what the user adds; what nobody said is asked for."""
    absent = [name for name in (*columns, *roles) if name not in said]
    if absent:
        raise ValueError(f"{by} got names that are not in the description: {absent}. It has {list(said)[:20]}.")
    merged: Said = {**said, **columns}
    merged = {name: Boolean(missing=name not in roles) if told == "boolean" else told for name, told in merged.items()}
    asked = {name: "category" if name in roles else told for name, told in merged.items()
             if isinstance(told, str) or (told is None and name in roles)}  # fmt: skip
    if asked:
        wanted = "; ".join(f"{name}: {_WANTED[str(kind)]}" for name, kind in asked.items())
        raise ValueError(
            f"{by} needs facts that are not in the description ({wanted}). Add it in 'columns', for example "
            f"columns={{{next(iter(asked))!r}: {_EXAMPLES[str(next(iter(asked.values())))]}}}, or spend epsilon on it "
            f"with Schema.release(table, epsilon=..., known={asked})."
        )
    return {name: told for name, told in merged.items() if isinstance(told, Column)}


_WANTED = {"number": "bounds", "whole": "bounds", "date": "first and last day", "category": "values"}
_EXAMPLES = {
    "number": "Number(0, 100)",
    "whole": "Number(0, 100, step=1)",
    "date": "Date('2000-01-01', '2030-01-01')",
    "category": "Category(['a', 'b'])",
}


#: What YAML 1.1 reads otherwise: ``no`` and ``off`` as False, ``012`` as 10, ``12:30`` as 750. A label is a word.
_PLAIN = {
    "tag:yaml.org,2002:bool": re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"),
    "tag:yaml.org,2002:int": re.compile(r"^[-+]?(?:0|[1-9][0-9_]*)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}


def content_of(path: Path) -> Any:
    """What a file holds."""
    text = path.read_text(encoding="utf-8")
    try:
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=_once)
        return _yaml(path).load(text, _loader(_yaml(path)))
    except Exception as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        raise ValueError(f"{path} cannot be read as {path.suffix.lstrip('.') or 'YAML'}: {error}") from None


def text_of(content: Any, path: Path) -> str:
    """What to write into a file of this name."""
    if path.suffix == ".json":
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    yaml = _yaml(path)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True)
    if yaml.load(text, _loader(yaml)) != content:  # some spaces and ends of lines are lost but for their numbers
        text = yaml.dump(content, Dumper=dumper, sort_keys=False)
    return text


def _yaml(path: Path) -> Any:
    if path.suffix not in (".yaml", ".yml"):
        raise ValueError(f"A Schema is kept in a file that ends with .json, .yaml or .yml. Got {path.name!r} instead.")
    import yaml

    return yaml


def _loader(yaml: Any) -> Any:
    """A loader of plain values that reads numbers and truths as YAML 1.2 does; in C, where there is one, it is fast."""

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers = {
            first: [(tag, _PLAIN.get(tag, pattern)) for tag, pattern in kinds]
            for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _once([(self.construct_object(key, deep=True), None) for key, _ in node.value])
            return super().construct_mapping(node, deep)

    return Loader


def _once(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise ValueError(f"it says {twice[0]!r} twice")
    return dict(pairs)


_FEW, _DENSE = 100, 10  # of fewer rows nothing is said; numbers of n rows lie in a range of so many times n


def guessed(column: "pd.Series[Any]", name: str) -> dict[str, Any]:
    """What a column looks like beside what its dtype says: ``{"guess": ...}``, or nothing."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        return {"guess": "an identifier: leave it out"} if is_called_identifier(name) or is_numbering(column) else {}
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype):
        return {}
    kind, writings = likeliest(counts_of_kinds(column))
    known = [cell.strip() for cell in column if isinstance(cell, str) and not _columns._is_missing(cell)]
    truths = [_columns.TRUTHS[text] for text in known if text in _columns.TRUTHS]
    if len(truths) > len(known) / 2 and {*truths} == {0, 1}:
        kind = "boolean"
    if kind == "category" or all(map(_columns._is_missing, column)):
        return {}
    way, turned = ({}, "") if writings is None else writings.best(writings.counts(column))
    said = {key: value for key, value in way.items() if value != ("." if key == "decimal" else "")}
    dotted = [text for text in known if "." in text]
    other: Any = turned
    if dotted and kind in ("number", "whole") and way.get("decimal", ".") == "." and all(map(LIKE_1200.search, dotted)):
        other = {"decimal": ",", "thousands": "."}  # 1.200 may be twelve hundred
    return {"guess": {"kind": "number" if kind == "whole" else kind, **said, **({"or": other} if other else {})}}


def is_numbering(column: "pd.Series[Any]") -> bool:
    """Whether numbers tell rows apart: all of them whole and different, and too close for that to be chance. Of n
    numbers that were drawn from 10 n, some two are the same but for a chance of exp(-n/20)."""
    numbers = _columns._as_numbers(column)
    if len(numbers) < _FEW or np.isnan(numbers).any() or (numbers != np.rint(numbers)).any():
        return False
    return bool(len(np.unique(numbers)) == len(numbers) and np.ptp(numbers) < _DENSE * len(numbers))


def described(series: "pd.Series[Any]", name: str, role: bool, max_categories: int) -> _columns.Column:
    """The narrowest declaration that fits public rows."""
    # Of numbers no cell need be looked at alone.
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf" and not role:
        numbers = series.to_numpy(np.float64)
        known = numbers[~np.isnan(numbers)]
        if len(known) and known.min() < known.max():
            return _number(known, name, missing=len(known) < len(numbers))
    cells = [_columns.plain_cell(cell) for cell in _distinct(series)]
    known = pd.Series([cell for cell in cells if isinstance(cell, str) or not _columns._is_missing(cell)], dtype=object)
    missing = len(known) < len(cells) and not role
    if not len(known):
        raise ValueError(f"Column {name!r} holds no value, and nothing follows from it. Leave the column out.")
    kinds = {_kind(cell) for cell in known}
    if None in kinds:
        kind = type(next(cell for cell in known if _kind(cell) is None)).__name__
        raise ValueError(
            f"Column {name!r} has cells that are no numbers, dates, texts or booleans ({kind}). Make numbers or texts "
            "of them, or leave the column out."
        )
    if kinds == {"boolean"}:
        return _columns.Boolean(missing=missing)
    if kinds == {"date"}:
        days = [cell.date() if isinstance(cell, datetime) else cell for cell in known]
        return _columns.Date(min(days), max(max(days), min(days) + timedelta(days=1)), missing=missing)
    if kinds == {"number"} and not isinstance(series.dtype, pd.CategoricalDtype):
        numbers = _columns._as_numbers(known)
        if not role and numbers.min() < numbers.max():
            return _number(numbers, name, missing=missing)
        _refuse_far(numbers, name)
    values = _sorted(known.unique())
    if len(values) > max_categories:
        raise ValueError(
            f"Column {name!r} has {len(values)} different values, more than max_categories={max_categories}. Free text "
            "is refused: leave the column out, or raise 'max_categories'."
        )
    try:
        return _columns.Category(tuple(values), missing=missing)
    except ValueError as error:
        raise ValueError(f"Column {name!r}: {error}") from None


def _kind(cell: Any) -> str | None:
    """A number, a date, a text or a truth; None for what is nothing of these."""
    if isinstance(cell, bool | np.bool_):
        return "boolean"
    if isinstance(cell, str):
        return "text"
    if isinstance(cell, int | float | np.integer | np.floating):
        return "number"
    return "date" if isinstance(cell, date) else None


def _distinct(series: "pd.Series[Any]") -> "pd.Series[Any]":
    try:
        return pd.Series(series.unique())
    except TypeError:  # lists cannot be compared
        return series


def _number(known: NDArray[np.float64], name: str, *, missing: bool) -> _columns.Number:
    _refuse_far(known, name)
    whole = bool((known == np.round(known)).all())
    return _columns.Number(float(known.min()), float(known.max()), step=1.0 if whole else None, missing=missing)


def _refuse_far(known: NDArray[np.float64], name: str) -> None:
    if not (np.abs(known) <= _columns.FARTHEST).all():
        raise ValueError(
            f"Column {name!r} holds numbers that are infinite or beyond {_columns.FARTHEST:g}, which stand for "
            "something else. Leave them empty, or leave the column out."
        )


def _sorted(values: Iterable[Any]) -> list[Any]:
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    try:
        return sorted(plain)
    except TypeError:
        return sorted(plain, key=lambda value: (type(value).__name__, str(value)))
