"""Files that the package writes where its user says, and the pages of HTML that it shows: they load nothing."""

import csv
import html
import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
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
    """Write a table of results as a CSV file that a spreadsheet opens without running anything: a group called
    ``=HYPERLINK(...)`` would be run there. Such a text gets an apostrophe in front, which says "this is text"; quotes
    alone do not stop it. Numbers, negative ones too, stay as they are."""
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


# ---- pages: one style, for a screen in light and dark, a phone, paper and a notebook ----
_COLOURS = """
.skfairdp { --ink: #1c1c1c; --soft: #595959; --line: #d0d0d0; --real: #3b6ea5; --made: #a85a14; color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
.skfairdp table { border-collapse: collapse; display: block; overflow-x: auto; margin: .5rem 0 1.5rem; }
.skfairdp th, .skfairdp td { text-align: left; vertical-align: top; padding: .25rem .75rem;
  border-bottom: 1px solid var(--line); }
.skfairdp td { font-variant-numeric: tabular-nums; }
.skfairdp td.n { text-align: right; }
.skfairdp caption { text-align: left; font-weight: 600; padding: .5em 0; }
.skfairdp code { font-size: 12px; }
.skfairdp .note { color: var(--soft); }
.skfairdp p { overflow-wrap: anywhere; }
@media (max-width: 30rem) {
  .skfairdp .wide, .skfairdp .wide tbody, .skfairdp .wide tr, .skfairdp .wide td { display: block; }
  .skfairdp .wide thead, .skfairdp .wide td:empty { display: none; }
  .skfairdp .wide tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .skfairdp .wide td, .skfairdp .wide td.n { border: 0; padding: 0; text-align: left; overflow-wrap: anywhere; }
  .skfairdp .wide td::before { content: attr(data-label) " "; color: var(--soft); }
}
"""
_DARK = """
@media screen and (prefers-color-scheme: dark) { .skfairdp { --ink: #eee; --soft: #b0b0b0; --line: #444;
  --real: #7fb0e6; --made: #f0a860; } }
"""
_PAGE = """
:root { color-scheme: light dark; }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: #fff; }
@media screen and (prefers-color-scheme: dark) { body { background: #161616; } }
@media (max-width: 30rem) { body { margin: 1rem auto; } .skfairdp th, .skfairdp td { padding: .25rem .4rem; } }
@media print { body { margin: 0; max-width: none; } .skfairdp table { display: table; } tr { break-inside: avoid; } }
"""


def html_table(head: Sequence[str], lines: Iterable[Sequence[str]], *, numbers: Collection[str] = ()) -> str:
    """A table of texts; on a phone each line of one with more than three columns is a list of its cells."""
    names = [html.escape(str(name)) for name in head]
    kinds = [f'{" class=n" * (name in numbers)} data-label="{html.escape(str(name))}"' for name in head]
    body = (
        "".join(f"<td{kind}>{html.escape(str(cell))}</td>" for kind, cell in zip(kinds, line, strict=True))
        for line in lines
    )
    titles = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "\n".join(f"<tr>{line}</tr>" for line in body)
    wide = " class=wide" if len(names) > 3 else ""
    return f"<table{wide}><thead><tr>{titles}</tr></thead><tbody>\n{rows}\n</tbody></table>"


def section(body: str) -> str:
    """A part of a notebook, which has its own background and says itself whether it is dark."""
    style = _COLOURS.replace("--ink: #1c1c1c;", "--ink: inherit;").replace("--line: #d0d0d0", "--line: #8886")
    return f'<section class="skfairdp"><style>{style}</style>\n{body}\n</section>\n'


def page(title: str, body: str, *, style: str = "") -> str:
    """A whole page; ``title`` is a text, ``body`` and ``style`` are written as they are."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_COLOURS}{_DARK}{_PAGE}{style}</style></head>\n"
        f'<body><main class="skfairdp">\n{body}\n</main></body></html>\n'
    )
