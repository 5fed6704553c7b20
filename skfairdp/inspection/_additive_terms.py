"""A private model to read: what each raw column adds to the log odds, value by value, and curves made monotone."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skfairdp._typing import Array, Floats
from skfairdp._utils import warn_caller
from skfairdp._utils._sklearn import as_fitted
from skfairdp.exceptions import FairnessWarning
from skfairdp.gradient import FairDPSGDClassifier
from skfairdp.schema import Boolean, Category, Column, Date, Number, RawTable, Schema, feature_places

if TYPE_CHECKING:
    from skfairdp._networks import AdditiveParts


_OWNER = "AdditiveTerms"
_INTERCEPT, _MISSING = "(intercept)", "(missing)"
_SHOWN = 9  # curves drawn by default


@dataclass(frozen=True)
class _Term:
    """What one column adds to each score."""

    column: Column
    points: Floats
    encoded: Floats
    values: Floats
    missing: Floats
    centre: Floats

    @property
    def is_curve(self) -> bool:
        """Whether values in between are on a line."""
        return isinstance(self.column, Number | Date)

    def at(self, numbers: Floats, encoded: Floats) -> Floats:
        """What it adds for rows: of shape (n_rows, n_scores)."""
        known = ~np.isnan(numbers)
        if self.is_curve:
            added = np.stack([np.interp(encoded, self.encoded, line) for line in self.values.T], axis=1)
        else:
            added = self.values[np.where(known, numbers, 0).astype(np.int64)]
        return np.where(known[:, None], added, self.missing)

    def labels(self) -> list[Any]:
        """The points as the table has them."""
        if isinstance(self.column, Category):
            return list(self.column.values)
        if isinstance(self.column, Date):
            return [*pd.to_datetime(self.points, unit="D", origin="unix")]
        return [bool(p) if isinstance(self.column, Boolean) else float(p) for p in self.points]


class AdditiveTerms:
    """What each column of a table adds to the log odds of a private model, exactly.

    **Guarantee.** All of it is post-processing of the released weights and of the schema, which is public: reading,
    drawing and publishing it costs nothing beyond the ``privacy_`` of the model, and so does :meth:`monotone`.
    :meth:`explain` reads the rows it is given; what it returns of a private row is as private as that row.

    Terms and intercept add up to ``decision_function``: the log odds of the second class, or of more than two classes
    one score each, which add up to 0. Every term has mean 0 over its knots (released quantiles of its column, where
    there are any) or its listed values; the rest is in the intercept.

    Parameters
    ----------
    estimator : FairDPSGDClassifier
        Fitted, with a ``schema`` and ``net="additive"`` (or ``mlp(())``: no hidden layer).

    Attributes
    ----------
    intercept : float or ndarray of shape (n_classes,)
    importances : Series
        By column: how far the values of its term lie apart, largest first.
    classes_ : ndarray of shape (n_classes,)
    axes_, figure_ : matplotlib
        After :meth:`plot`.

    Raises
    ------
    ValueError
        The model has hidden layers or a network of your own, or no schema.

    See Also
    --------
    FairDPSGDClassifier : Trains such a model.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skfairdp import FairDPSGDClassifier
    >>> from skfairdp.inspection import AdditiveTerms
    >>> from skfairdp.schema import Category, Number, Schema
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.uniform(18, 90, 4000).round(), "job": rng.choice(["clerk", "nurse"], 4000)})
    >>> table["sick"] = rng.random(4000) < np.where(table["age"] > 60, 0.8, 0.2)
    >>> schema = Schema({"age": Number(18, 90), "job": Category(["clerk", "nurse"]), "sick": Category([False, True])},
    ...                 label="sick")
    >>> model = FairDPSGDClassifier(epsilon=1.0, lam=0, net="additive", schema=schema, random_state=0).fit(table)
    >>> terms = AdditiveTerms(model)
    >>> list(terms.importances.index)
    ['age', 'job']
    >>> row = pd.DataFrame({"age": [70], "job": ["nurse"]})
    >>> apart = terms.explain(row).sum(axis=1) - model.decision_function(row)  # terms add up to the score
    >>> round(float(abs(apart).max()), 6)
    0.0
    >>> older = terms.monotone({"age": 1})  # a classifier whose odds never fall with age
    """

    def __init__(self, estimator: FairDPSGDClassifier) -> None:
        self.estimator = estimator
        self.schema, self._parts = _taken_apart(estimator)
        self.classes_: Array = estimator.classes_
        n = len(self.classes_)
        # log odds of two classes; of others scores that add up to 0
        self._scores = np.array([[-1.0], [1.0]]) if n == 2 else np.eye(n) - 1 / n
        self._places = feature_places(self.schema)
        self._terms = {name: self._term(name) for name in self.schema.features}
        added = sum((term.centre for term in self._terms.values()), self._parts.bias @ self._scores)
        self._intercept: Floats = np.asarray(added)

    @property
    def intercept(self) -> Any:
        """What every row gets."""
        return float(self._intercept[0]) if len(self._intercept) == 1 else self._intercept

    @property
    def importances(self) -> "pd.Series[float]":
        """How far the values of each term lie apart, largest first."""
        # Of several scores the one where that is most.
        apart = {name: float(np.ptp(term.values, axis=0).max(initial=0.0)) for name, term in self._terms.items()}
        return pd.Series(apart, dtype=float).sort_values(ascending=False, kind="stable")

    def to_frame(self) -> pd.DataFrame:
        """Return all terms as one table.

        Returns
        -------
        DataFrame
            ``column``, ``value`` and ``log_odds``, or one column for each of more than two classes. Between two values
            of a number or a day the term is a straight line. The value "(missing)" stands for cells without a value,
            and for those that a category does not list; the first row is the intercept.
        """
        rows: list[list[Any]] = [[_INTERCEPT, None, *self._intercept]]
        for name, term in self._terms.items():
            rows += [[name, label, *added] for label, added in zip(term.labels(), term.values, strict=True)]
            rows.append([name, _MISSING, *term.missing])
        return pd.DataFrame(rows, columns=["column", "value", *self._names])

    def explain(self, X: Any) -> pd.DataFrame:
        """Say what each column adds for each row.

        Parameters
        ----------
        X : DataFrame
            Raw rows with the features of the schema.

        Returns
        -------
        DataFrame
            "(intercept)" and one column for each feature; they add up to ``decision_function(X)``. With more than two
            classes that for each class, under its name.
        """
        table = RawTable.read(self.schema, X, owner=_OWNER)
        features = table.features
        added = {_INTERCEPT: np.tile(self._intercept, (table.n_rows, 1))}
        for name, term in self._terms.items():
            added[name] = term.at(table.numbers[name], features[:, self._places[name].start])
        index = X.index if isinstance(X, pd.DataFrame) else None
        of = {score: {name: values[:, k] for name, values in added.items()} for k, score in enumerate(self._names)}
        parts = {score: pd.DataFrame(columns, index=index) for score, columns in of.items()}
        return parts["log_odds"] if len(self.classes_) == 2 else pd.concat(parts, axis=1)

    def monotone(self, directions: Mapping[str, int]) -> FairDPSGDClassifier:
        """Return the same classifier with curves that go in one direction: post-processing, at no cost.

        Values at the knots become the closest ones, by least squares, that never fall or never rise; each knot stands
        for as many rows, by released counts. Beyond the outermost knots a line that goes the wrong way becomes flat.
        What other columns add, and what a missing value adds, stays as it is.

        Parameters
        ----------
        directions : dict of str to {1, -1}
            By column of numbers, days or truth values: 1 where the log odds of the second class must never fall with
            it, -1 where they must never rise.

        Returns
        -------
        FairDPSGDClassifier
            A copy, with the same ``privacy_``.

        Raises
        ------
        ValueError
            No feature of that name, a category (it has no order), another direction, or more than two classes.

        Warns
        -----
        FairnessWarning
            The model was trained under a constraint: rates of groups are no longer those it was held to.
        """
        from skfairdp._networks import with_parts

        self._check_directions(directions)
        parts = self._parts
        for name, direction in directions.items():
            parts = parts.monotone(self._places[name].start, int(direction))
        other = copy(self.estimator)
        other.net_ = with_parts(self.estimator.net_, parts)
        if hasattr(self.estimator, "groups_"):
            warn_caller(
                "The fairness constraint of this model was enforced for the curves before: monotone of "
                f"{_OWNER} does not measure it for the curves that it returns. Measure gaps again, or fit "
                "postprocessing.PrivateThresholds on top.",
                FairnessWarning,
            )
        return other

    def plot(self, columns: Sequence[str] | None = None, *, axes: Any = None) -> "AdditiveTerms":
        """Draw terms with matplotlib.

        Parameters
        ----------
        columns : list of str, default=None
            Which ones. None is the nine that move the log odds most.
        axes : array of matplotlib Axes, default=None
            One for each of the columns. None makes a figure.

        Returns
        -------
        self : AdditiveTerms
            With ``axes_`` and ``figure_``.
        """
        from matplotlib import pyplot

        names = list(self.importances.index[:_SHOWN]) if columns is None else list(columns)
        self._check_names(names, "columns")
        if axes is None:
            wide = min(3, max(len(names), 1))
            high = -(-len(names) // wide)
            how: dict[str, Any] = {"figsize": (3.4 * wide, 2.6 * high), "layout": "constrained"}
            self.figure_, grid = pyplot.subplots(high, wide, squeeze=False, sharey=True, **how)
            self.axes_ = grid.ravel()[: len(names)]
            for unused in grid.ravel()[len(names) :]:
                unused.set_visible(False)
        else:
            self.axes_ = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
            self.figure_ = self.axes_[0].figure
        for name, ax in zip(names, self.axes_, strict=True):
            self._draw(name, ax)
        return self

    # ------------------------------------------------------------------ pieces

    @property
    def _names(self) -> list[Any]:
        return ["log_odds"] if len(self.classes_) == 2 else list(self.classes_)

    def _term(self, name: str) -> _Term:
        column, place, parts = self.schema.columns[name], self._places[name], self._parts
        missing = parts.weights[:, place.stop - 1] if column.missing else np.zeros(len(parts.bias))
        points, encoded, values, middle = self._points(column, place.start)
        values, missing = values @ self._scores, missing @ self._scores
        centre = middle @ self._scores
        return _Term(column, points, encoded, values - centre, missing - centre, centre)

    def _points(self, column: Column, start: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Points as read and as encoded, what is added to the logits at them, and the mean of that."""
        parts = self._parts
        if isinstance(column, Category):
            values = parts.weights[:, start : start + len(column.values)].T
            codes = np.arange(float(len(values)))
            return codes, codes, values, values.mean(axis=0)
        ends = np.array([-1.0, 1.0])
        weight = parts.weights[:, start]
        low, high = (0.0, 1.0) if isinstance(column, Boolean) else column.ends
        place = np.flatnonzero(parts.columns == start)
        if isinstance(column, Boolean) or not len(place):
            return np.array([low, high]), ends, ends[:, None] * weight, np.zeros(len(weight))
        encoded = parts.breakpoints(place[0])
        values, knots = (parts.curve(place[0], points) for points in (encoded, parts.knots[place[0]]))
        return low + (encoded + 1) / 2 * (high - low), encoded, values, knots.mean(axis=0)

    def _check_names(self, names: Sequence[str], parameter: str) -> None:
        unknown = [name for name in names if name not in self._terms]
        if unknown:
            raise ValueError(f"'{parameter}' of {_OWNER} must be among {list(self._terms)}. Got {unknown} as well.")

    def _check_directions(self, directions: Mapping[str, int]) -> None:
        if not isinstance(directions, Mapping) or not directions:
            raise ValueError(
                f"The 'directions' of monotone of {_OWNER} must be a dict of feature to 1 or -1, for example "
                f"{{'age': 1}}. Got {directions!r} instead."
            )
        if len(self.classes_) != 2:
            raise ValueError(
                f"monotone of {_OWNER} needs two classes: with {len(self.classes_)} a class may become less likely "
                "though its score rises. Train a model for each class against the others."
            )
        self._check_names(list(directions), "directions")
        for name, direction in directions.items():
            if isinstance(self._terms[name].column, Category):
                raise ValueError(
                    f"{name!r} is a category, which has no order, so monotone of {_OWNER} refuses it. Declare it as a "
                    "Number in the schema where its values are ranks, and train again."
                )
            if isinstance(direction, bool) or direction not in (1, -1):
                raise ValueError(
                    f"The direction of {name!r} in monotone of {_OWNER} must be 1 or -1. Got {direction!r}."
                )

    def _draw(self, name: str, ax: Any) -> None:
        term = self._terms[name]
        labels, may_miss = term.labels(), term.column.missing
        words = [str(label) for label in labels] + ([_MISSING] if may_miss else [])
        for score, values, missing in zip(self._names, term.values.T, term.missing, strict=True):
            if term.is_curve:
                (line,) = ax.plot(labels, values, marker=".", label=str(score))
                if may_miss:
                    ax.axhline(missing, color=line.get_color(), linestyle=":", linewidth=1)
            else:
                ax.plot(range(len(words)), [*values, missing][: len(words)], "o", label=str(score))
        if not term.is_curve:
            ax.set_xticks(range(len(words)), words)
        if not term.is_curve or isinstance(term.column, Date):
            ax.tick_params("x", rotation=45)
        ax.set_title(f"{name} (dotted: missing)" if term.is_curve and may_miss else name, fontsize="medium")
        if ax.get_subplotspec() is None or ax.get_subplotspec().is_first_col():
            ax.set_ylabel("log odds")
        if len(self._names) > 1:
            ax.legend(title="class", fontsize="small")


def _taken_apart(estimator: Any) -> tuple[Schema, "AdditiveParts"]:
    """The schema of a fitted model and what its network computes, or the reason why it cannot be read."""
    from skfairdp._networks import additive_parts

    if not isinstance(estimator, FairDPSGDClassifier):
        raise ValueError(
            f"{_OWNER} reads a fitted FairDPSGDClassifier. Got {type(estimator).__name__} instead. For other models "
            "use sklearn.inspection.PartialDependenceDisplay."
        )
    check_is_fitted(estimator, "net_")
    estimator = as_fitted(estimator)
    if estimator.schema is None:
        raise ValueError(
            f"{_OWNER} needs a model with a 'schema', which says what a column is and between which bounds it lies. "
            "Fit FairDPSGDClassifier(schema=..., net='additive') on the raw table."
        )
    n_features = max((place.stop for place in feature_places(estimator.schema).values()), default=0)
    if (parts := additive_parts(estimator.net_, n_features)) is None:
        raise ValueError(
            f"{_OWNER} needs a model without hidden layers, in which each column adds a term of its own; in this one "
            "columns work together. Fit FairDPSGDClassifier with net='additive'."
        )
    return estimator.schema, parts
