"""Synthetic rows beside real ones: columns, groups, and what a classifier trained on either is worth."""

import html
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._utils import as_groups, html_table, page, write_text
from skfairdp.metrics import distribution_disparity, downstream_scores, kl_to_uniform

_OWNER = "SyntheticDataReport"
_NOTE = (
    "Figures of the real rows are exact and not covered by any ε: where these rows are private, keep this page with "
    "them."
)
_ROW = 28  # units of a drawing, for two bars
_STYLE = """
.key span { padding: 0 .5em; } .real { color: var(--real); } .made { color: var(--made); }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; break-inside: avoid; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
svg .r { fill: var(--real); } svg .m { fill: var(--made); }
"""


@dataclass(frozen=True)
class SyntheticDataReport:
    """Compare synthetic rows with real ones: every column side by side, balance of groups, a downstream table.

    **Not private.** Figures of the real rows are exact. Where those rows are private, the report is for their curator;
    to publish one, compare with public rows.

    Made with :meth:`from_data`; :meth:`to_html` writes one page that loads nothing.

    Parameters
    ----------
    marginals : DataFrame
        Columns ``column``, ``cell``, ``real``, ``synthetic``: shares of rows in each cell of each column.
    balance : DataFrame
        Index ``real`` and ``synthetic``; a share for each group, ``kl_to_uniform`` and ``distribution_disparity``.
        Empty without groups.
    downstream : DataFrame
        One row for each classifier and each set it was trained on (``real``, ``synthetic``), scores of
        :func:`skfairdp.metrics.downstream_scores` on the test rows. Empty without a test set.
    privacy : str
        What the synthetic rows guarantee, in words.

    Attributes
    ----------
    private : bool
        False, of every report.
    total_variation : Series
        By column: half the L1 distance between the shares of real and synthetic rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import SyntheticDataReport
    >>> real, made = pd.DataFrame({"job": list("aabb")}), pd.DataFrame({"job": list("aaab")})
    >>> report = SyntheticDataReport.from_data(real, made)
    >>> float(report.total_variation["job"]), report.private
    (0.25, False)
    """

    marginals: pd.DataFrame
    balance: pd.DataFrame
    downstream: pd.DataFrame
    privacy: str = ""
    private: ClassVar[bool] = False

    @classmethod
    def from_data(
        cls,
        X_real: Any,
        X_synthetic: Any,
        *,
        y_real: Any = None,
        y_synthetic: Any = None,
        sensitive_features_real: Any = None,
        sensitive_features_synthetic: Any = None,
        estimators: Mapping[str, Any] | None = None,
        X_test: Any = None,
        y_test: Any = None,
        sensitive_features_test: Any = None,
        privacy: Any = None,
        n_bins: int = 10,
    ) -> "SyntheticDataReport":
        """Measure the two tables.

        Parameters
        ----------
        X_real, X_synthetic : DataFrame or array of the same columns
            The two tables.
        y_real, y_synthetic : labels, default=None
            Shown as a column, and needed for ``estimators``.
        sensitive_features_real, sensitive_features_synthetic : groups, default=None
            Shown as a column.
        estimators : dict of name to classifier, default=None
            Trained on each table in turn and measured on the test rows.
        X_test, y_test, sensitive_features_test : default=None
            Real rows that neither table holds.
        privacy : PrivacySpent or str, default=None
            ``generator.privacy_``.
        n_bins : int, default=10
            Cells of a column of numbers: quantiles of the real rows.

        Returns
        -------
        SyntheticDataReport

        Raises
        ------
        ValueError
            The columns differ, or ``estimators`` come without labels and test rows.
        """
        real, made = _frame(X_real), _frame(X_synthetic)
        if list(real.columns) != list(made.columns):
            raise ValueError(f"X_real and X_synthetic of {_OWNER} must have the same columns in the same order.")
        if y_real is not None and y_synthetic is not None:
            real, made = real.copy(), made.copy()
            real["(label)"], made["(label)"] = np.asarray(y_real), np.asarray(y_synthetic)
        marginals = pd.concat([_marginal(name, real[name], made[name], n_bins) for name in real.columns])
        balance, downstream = pd.DataFrame(), pd.DataFrame()
        if sensitive_features_real is not None and sensitive_features_synthetic is not None:
            groups = (sensitive_features_real, len(real)), (sensitive_features_synthetic, len(made))
            balance = _balance(*(as_groups(own, n_rows, owner=_OWNER) for own, n_rows in groups))
        if estimators:
            trained_on = {"real": (X_real, y_real), "synthetic": (X_synthetic, y_synthetic)}
            downstream = _downstream(estimators, trained_on, X_test, y_test, sensitive_features_test)
        return cls(marginals.reset_index(drop=True), balance, downstream, "" if privacy is None else str(privacy))

    @property
    def total_variation(self) -> pd.Series:
        """The total variation distance between the two tables, column by column."""
        distance = (self.marginals["real"] - self.marginals["synthetic"]).abs() / 2
        return distance.groupby(self.marginals["column"], sort=False).sum()

    def to_html(self, path: str | os.PathLike[str], *, title: str = "Synthetic data beside real data") -> Path:
        """Write one self-contained page: no script, no request.

        Parameters
        ----------
        path : path-like
            File to write. An existing one is replaced.
        title : str, default="Synthetic data beside real data"
            Heading.

        Returns
        -------
        path : pathlib.Path
            The file.
        """
        return write_text(path, self._page(title))

    def _page(self, title: str) -> str:
        distance = self.total_variation
        columns = self.marginals.groupby("column", sort=False)
        figures = "".join(_figure(str(name), rows, float(distance[name])) for name, rows in columns)
        words = (
            f"Columns of the synthetic rows differ from the real ones by {distance.mean():.3f} on average, and most in "
            f"{html.escape(str(distance.idxmax()))}, by {distance.max():.3f} (total variation distance: 0 is the same, "
            "1 has nothing in common)."
        )
        parts = [
            f"<h1>{html.escape(title)}</h1>",
            f"<p>{words}</p>",
            f"<p>Synthetic rows: {html.escape(self.privacy)}.</p>" if self.privacy else "",
            f'<p class="note">{_NOTE}</p>',
            "<h2>Balance of groups</h2>" + _table(self.balance, index=True) if len(self.balance) else "",
            "<h2>Classifiers on real test rows</h2>" + _table(self.downstream) if len(self.downstream) else "",
            '<h2>Columns</h2><p class="key"><span class="real">■ real</span><span class="made">■ synthetic</span></p>',
            f'<div class="columns">{figures}</div>',
        ]
        return page(title, "".join(parts), style=_STYLE)


def _frame(X: Any) -> pd.DataFrame:
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))


def _marginal(name: Any, real: pd.Series, made: pd.Series, n_bins: int) -> pd.DataFrame:
    """Shares of both tables in the cells of one column."""
    if pd.api.types.is_numeric_dtype(real.dtype) and not pd.api.types.is_bool_dtype(real.dtype) and real.nunique() > 12:
        cuts = np.unique(np.nanquantile(real.to_numpy(dtype=float, na_value=np.nan), np.linspace(0, 1, n_bins + 1)))
        codes = [_cell(column.to_numpy(dtype=float, na_value=np.nan), cuts) for column in (real, made)]
        labels = [f"{low:.4g} – {high:.4g}" for low, high in itertools.pairwise(cuts)]
        return _shares(name, [*labels, "missing"], codes)
    sides = [column.astype(object).where(column.notna(), "missing").astype(str) for column in (real, made)]
    labels = list(dict.fromkeys([*sides[0].value_counts().index, *sides[1].value_counts().index]))
    place = {label: k for k, label in enumerate(labels)}
    return _shares(name, labels, [side.map(place).to_numpy() for side in sides])


def _cell(numbers: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.int64]:
    inside = np.clip(np.searchsorted(cuts, numbers, side="right") - 1, 0, max(len(cuts) - 2, 0))
    return np.where(np.isnan(numbers), max(len(cuts) - 1, 1), inside)


def _shares(name: Any, labels: list[str], codes: Sequence[NDArray[np.integer]]) -> pd.DataFrame:
    counted = [np.bincount(side.astype(int), minlength=len(labels)) / max(len(side), 1) for side in codes]
    frame = pd.DataFrame({"column": name, "cell": labels, "real": counted[0], "synthetic": counted[1]})
    return frame[(frame["cell"] != "missing") | (frame["real"] > 0) | (frame["synthetic"] > 0)]


def _balance(real: NDArray[np.object_], made: NDArray[np.object_]) -> pd.DataFrame:
    groups = list(dict.fromkeys([*sorted(set(real), key=repr), *sorted(set(made), key=repr)]))
    rows = {}
    for kind, values in (("real", real), ("synthetic", made)):
        counts = pd.Series([groups.index(value) for value in values.tolist()]).value_counts(normalize=True)
        rows[kind] = {str(group): float(counts.get(k, 0.0)) for k, group in enumerate(groups)} | {
            "kl_to_uniform": kl_to_uniform(values, groups=groups),
            "distribution_disparity": distribution_disparity(values, groups=groups),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _downstream(
    estimators: Mapping[str, Any], trained_on: Mapping[str, tuple[Any, Any]], X_test: Any, y_test: Any, groups_test: Any
) -> pd.DataFrame:
    """Each classifier, trained on each table in turn, on the test rows."""
    needed = {f"y_{kind}": y for kind, (_, y) in trained_on.items()}
    needed |= {"X_test": X_test, "y_test": y_test, "sensitive_features_test": groups_test}
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise ValueError(f"'estimators' of {_OWNER} needs {', '.join(missing)} as well.")
    rows = []
    for (name, estimator), (kind, (X, y)) in itertools.product(estimators.items(), trained_on.items()):
        scores = downstream_scores(estimator, X, y, X_test, y_test, sensitive_features=groups_test)
        rows.append({"classifier": name, "trained on": kind, **scores})
    return pd.DataFrame(rows)


def _table(frame: pd.DataFrame, *, index: bool = False) -> str:
    names = ([""] if index else []) + [str(name).replace("_", " ") for name in frame.columns]
    rows: list[list[Any]] = frame.astype(object).to_numpy().tolist()
    lines = (
        ([str(label)] if index else []) + [f"{v:.3f}" if isinstance(v, float) else str(v) for v in row]
        for label, row in zip(frame.index, rows, strict=True)
    )
    return html_table(names, lines)


def _figure(name: str, rows: pd.DataFrame, distance: float) -> str:
    """One column as paired bars, the most frequent cells first where there are many."""
    if len(rows) > 14:
        rows = rows.assign(either=rows[["real", "synthetic"]].max(axis=1)).nlargest(14, "either")
    widest = max(float(rows[["real", "synthetic"]].to_numpy().max()), 1e-9)
    bars = []
    cells: list[dict[Any, Any]] = rows.to_dict("records")
    for k, row in enumerate(cells):
        y, real, made = _ROW * k, row["real"], row["synthetic"]
        label = row["cell"] if len(row["cell"]) <= 20 else row["cell"][:19] + "…"
        bars.append(
            f'<text x="118" y="{y + 16}" text-anchor="end">{html.escape(label)}</text>'
            f'<rect class="r" x="124" y="{y + 2}" height="11" width="{130 * real / widest:.1f}"></rect>'
            f'<rect class="m" x="124" y="{y + 13}" height="11" width="{130 * made / widest:.1f}"></rect>'
            f'<text x="258" y="{y + 11}">{100 * real:.1f} %</text>'
            f'<text x="258" y="{y + 23}">{100 * made:.1f} %</text>'
        )
    described = f"{html.escape(name)}: shares of real and of synthetic rows"
    caption = f'{html.escape(name)} <span class="note">total variation {distance:.3f}</span>'
    drawing = f'<svg viewBox="0 0 300 {_ROW * len(rows) + 4}" role="img" aria-label="{described}">{"".join(bars)}</svg>'
    return f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>"
