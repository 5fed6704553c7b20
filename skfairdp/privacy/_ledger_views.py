"""A ledger to look at: a table of its entries for analysis, and the same on a page."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from skfairdp.privacy._accountants import epsilon_of
from skfairdp.privacy._ledger_file import Chain
from skfairdp.privacy._report import rounded_up

if TYPE_CHECKING:
    import pandas as pd

_STYLE = (
    "<style>.skfairdp-ledger{border-collapse:collapse;font:14px system-ui,sans-serif}"
    ".skfairdp-ledger th,.skfairdp-ledger td{padding:.3em .8em;border-bottom:1px solid #8886;text-align:left}"
    ".skfairdp-ledger caption{text-align:left;padding:.5em 0;font-weight:600}"
    ".skfairdp-ledger td.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".skfairdp-ledger code{font-size:12px}</style>"
)


def rows_of(chain: Chain) -> list[dict[str, Any]]:
    """One row per entry: who spent what, its ε alone, and the composed ε up to it, of the kind that costs more."""
    rows: list[dict[str, Any]] = []
    for index, entry in enumerate(chain.entries, 1):
        rows.append(
            {
                "index": index,
                "label": entry.label,
                "protects": str(entry.protects),
                "neighboring_relation": str(entry.neighboring_relation),
                "releases": "; ".join(entry.releases),
                "epsilon": epsilon_of(entry.event, chain.delta),
                "epsilon_total": max(replace(chain, entries=chain.entries[:index]).totals.values()),
                "hash": chain.hashes[index],
            }
        )
    return rows


_COLUMNS = ("index", "label", "protects", "neighboring_relation", "releases", "epsilon", "epsilon_total", "hash")


def frame_of(chain: Chain) -> pd.DataFrame:
    import pandas as pd  # only here: accounting needs no tables

    return pd.DataFrame(rows_of(chain), columns=list(_COLUMNS)).set_index("index")


def html_of(chain: Chain, where: str, *, whole_page: bool) -> str:
    titles = ("", "who", "protects one", "neighbours", "releases", "ε alone", "ε so far", "hash")
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(map(_cell, row.items()))}</tr>" for row in rows_of(chain))
    ceiling = f"ceiling ε = {chain.epsilon:g}, δ = {chain.delta:g}; {len(chain.entries)} entries, {where}"
    table = (
        f'{_STYLE}<table class="skfairdp-ledger"><caption>Privacy ledger: {escape(ceiling)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    if not whole_page:
        return table
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Privacy ledger</title></head>'
        f"<body>{table}</body></html>\n"
    )


def _cell(item: tuple[str, Any]) -> str:
    name, value = item
    if name == "hash":
        return f'<td><code title="{value}">{value[:12]}</code></td>'
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    return f'<td class="n">{rounded_up(value)}</td>' if isinstance(value, float) else f'<td class="n">{value}</td>'
