"""How often each group and label is sampled, by released counts; and labels of few rows, by sums of features."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import softmax

from skfairdp._class_sums import SoftmaxRule
from skfairdp._tables import Column, GeneratorPlan, MarginalsBackend, Model, NumberColumn, Rows, drawn_cells, on_simplex
from skfairdp._typing import Array, Floats, Ints, Values
from skfairdp.privacy import NoiseSource

BALANCES = ("label", "group", "group_and_label", "fair")
_EVEN_GROUPS = ("group", "group_and_label", "fair")

#: A name, shares of the labels in each group, or None.
Balance = str | Floats | None

_TINY = 1e-300
_ROWS_PER_CELL = 4000
_MOST_DENSITIES = 10**7  # rows times cells: fewer rows of each where there are many cells
_TILTS = np.arange(-1.0, 1.01, 0.1)
_SHARPENINGS = np.arange(0.0, 0.61, 0.1)
_ACCURACY_GIVEN = 0.01  # most that may be lost for fairness
_DEMOGRAPHIC_WEIGHT = 1.8  # against equalized odds, which this classifier overstates more than trained ones show


def target_rates(observed: Floats, balance: Balance) -> Floats:
    """Shares of (group, label) in what is sampled. Of ``"fair"`` those that a search starts from."""
    n_groups = len(observed)
    if isinstance(balance, np.ndarray):
        return observed.sum(axis=1)[:, None] * balance
    groups = np.full(n_groups, 1.0 / n_groups) if balance in _EVEN_GROUPS else observed.sum(axis=1)
    return groups[:, None] * tilted_label_rates(observed, -1.0 if balance in (None, "group") else 0.0)


def tilted_label_rates(observed: Floats, tilt: float, sharpening: float = 0.0) -> Floats:
    """Shares of the labels in each group, moved against its own: p(y)^(1 + sharpening) (p(y | s) / p(y))^(-tilt). A
    tilt of −1 gives each group's own shares, 0 the overall ones in every group; beyond 0 a label that is rarer in a
    group becomes more frequent there than overall. Sharpening makes frequent labels more frequent in all groups."""
    overall = observed.sum(axis=0)
    floor = 1e-9
    own = observed / np.maximum(observed.sum(axis=1, keepdims=True), floor)
    ratio = np.maximum(own, floor) / np.maximum(overall, floor)
    rates = np.maximum(overall, floor) ** (1 + sharpening) * ratio**-tilt
    return np.asarray(rates / rates.sum(axis=1, keepdims=True))


def given_label_rates(given: Any, groups: list[Any], n_classes: int, owner: str) -> Floats:
    """Read a ``balance`` given as {group: share of the last class, or shares of all classes}."""
    problem = ValueError(
        f"The 'balance' parameter of {owner}, where it is a dict, must map each group to the share of the last class, "
        f"or to the shares of all {n_classes} classes, which add up to 1."
    )
    if not isinstance(given, Mapping) or set(given) != set(groups):
        raise problem
    rates = np.empty((len(groups), n_classes))
    for row, group in zip(rates, groups, strict=True):
        try:
            shares = np.asarray(given[group], dtype=np.float64)
        except (TypeError, ValueError):
            raise problem from None
        if shares.ndim == 0 and n_classes == 2:
            shares = np.array([1 - shares, shares])
        if shares.shape != (n_classes,) or not np.all(shares >= 0) or abs(shares.sum() - 1) > 1e-6:
            raise problem
        row[:] = shares / shares.sum()
    return rates


def fair_label_rates(model: Model, observed: Floats, rng: Generator) -> Floats:
    """Shares of the labels in each group under which a classifier trained on the synthetic rows is least unfair; no
    private row is read. Rows of every group and label are drawn from the model, and its own densities give the
    classifier that unlimited rows would teach, for each tilt and sharpening of :func:`tilted_label_rates`. Of those
    with at most .01 less accuracy than the overall shares, by the released shares, the smallest sum of squares of
    equalized-odds disparity and 1.8 times demographic disparity wins."""
    n_groups, n_classes = observed.shape
    best = tilted_label_rates(observed, 0.0)
    n_cells = n_groups * n_classes
    n_rows = min(_ROWS_PER_CELL, _MOST_DENSITIES // n_cells**2)
    if n_groups < 2 or n_classes < 2 or n_rows == 0:
        return best
    values = model.sample(np.repeat(np.arange(n_cells), n_rows), rng)
    logs = model.log_likelihood(values)
    if logs is None:
        return best
    densities = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(len(values), n_groups, n_classes)
    unfairness, accuracy = _judged(densities, best, observed)
    least = accuracy - _ACCURACY_GIVEN
    for tilt, sharpening in itertools.product(_TILTS, _SHARPENINGS):
        rates = tilted_label_rates(observed, tilt, sharpening)
        found, accuracy = _judged(densities, rates, observed)
        if accuracy >= least and found < unfairness:
            best, unfairness = rates, found
    return best


def _judged(densities: Floats, label_rates: Floats, observed: Floats) -> tuple[float, float]:
    """Unfairness and accuracy of the best classifier of a model under these shares of the labels."""
    n_groups, n_classes = observed.shape
    of_label = observed / np.maximum(observed.sum(axis=1, keepdims=True), 1e-12)
    predicted = np.einsum("nsy,sy->ny", densities, label_rates).argmax(axis=1)
    n_cells = n_groups * n_classes
    n_rows = len(predicted) // n_cells
    counts = np.bincount(np.repeat(np.arange(n_cells) * n_classes, n_rows) + predicted, minlength=n_cells * n_classes)
    hits = counts.reshape(n_groups, n_classes, n_classes) / n_rows
    of_truth = np.einsum("syy->sy", hits)
    odds = np.ptp(of_truth, axis=0).max()
    demographic = np.ptp(np.einsum("sy,syk->sk", of_label, hits), axis=0).max()
    return float(odds**2 + (_DEMOGRAPHIC_WEIGHT * demographic) ** 2), float((observed * of_truth).sum())


def restricted(rates: Floats, conditions: Mapping[str, Any] | None, groups: Any, classes: Any, owner: str) -> Floats:
    """The rates given that the label or the group is known."""
    if conditions is None:
        return rates / rates.sum()
    if not isinstance(conditions, Mapping) or not set(conditions) <= {"y", "sensitive_features"}:
        raise ValueError(
            f"'conditions' of {owner}.sample must be a dict with the keys 'y' and 'sensitive_features' or one of them."
        )
    kept = np.ones(rates.shape, dtype=bool)
    for key, domain, axis in (("sensitive_features", groups, 0), ("y", classes, 1)):
        if key not in conditions:
            continue
        wanted = conditions[key]
        known = [] if domain is None else domain.tolist()
        if wanted not in known:
            raise ValueError(
                f"'conditions' of {owner}.sample asks for {key}={wanted!r}, which is not among the "
                f"{len(known)} known ones: {known}."
            )
        chosen = np.arange(rates.shape[axis]) == known.index(wanted)
        kept &= chosen[:, None] if axis == 0 else chosen
    inside = np.where(kept, rates, 0.0)
    if not inside.sum() > 0:  # asked for all the same: the model has such rows, only their rate is zero
        inside = kept.astype(np.float64)
    return inside / inside.sum()


_AT_ONCE = 2000  # rows: each takes groups times labels times codes of a column


def read_admissible(estimator: Any, names: Values, classes: Any, groups: Any) -> tuple[int, ...]:
    """Positions of the admissible columns among those that are learnt, from public values only."""
    given, owner, backend = estimator.admissible, type(estimator).__name__, estimator.backend
    if given is None:
        return ()
    if not (backend == "marginals" or isinstance(backend, MarginalsBackend)):
        raise ValueError(f"'admissible' of {owner} needs the tables of backend='marginals'. Set it, or leave it out.")
    if classes is None or groups is None:
        raise ValueError(f"'admissible' of {owner} needs both y and groups.")
    if estimator.balance == "fair" or isinstance(estimator.balance, Mapping):
        raise ValueError(
            f"{owner} got 'admissible' and a 'balance' with shares of labels, and each of them sets which labels are "
            "drawn. Leave out 'admissible', or set balance='label' or 'group'."
        )
    columns = getattr(estimator, "feature_names_in_", ())  # an array's are numbered as they are
    wanted = [_name(item, columns) for item in ([given] if isinstance(given, str | Integral) else list(given))]
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        said = f"names {unknown[0]!r}, which is no column that is learnt" if unknown else "is empty"
        raise ValueError(
            f"The 'admissible' parameter of {owner} {said}. Name columns of X, among them none of the label or groups."
        )
    return tuple(sorted({list(names).index(name) for name in wanted}))


def _name(item: Any, columns: Values) -> Any:
    """The label of a column that is named, or that is meant by its position in X."""
    position = int(item) if isinstance(item, Integral) and item not in list(columns) else len(columns)
    return columns[position] if -len(columns) <= position < len(columns) else item


@dataclass(frozen=True)
class AdmissibleLabels:
    """The label given admissible columns, by a released model: P(y | admissible), the same for every group. Labels
    drawn from it are independent of the group, and of every other column, given the admissible ones."""

    model: Model
    columns: tuple[int, ...]
    observed: Floats

    def shares(self, values: Array) -> Floats:
        """P(label | admissible columns) of each row, (n_rows, n_classes)."""
        known = np.log(np.maximum(self.observed, _TINY)).ravel()
        parts = [values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE)]
        of_cells = [softmax(self.model.log_likelihood_of(part, self.columns) + known, axis=1) for part in parts]
        return np.concatenate(of_cells).reshape(-1, *self.observed.shape).sum(axis=1)

    def draw(self, values: Array, rng: Generator) -> Ints:
        """A label for each row."""
        reached = np.cumsum(self.shares(values), axis=1)
        marks = rng.random((len(values), 1)) * reached[:, -1:]
        return np.asarray((marks >= reached[:, :-1]).sum(axis=1), dtype=np.int64)

    def rates(self, drawn: Floats, n_rows: int, rng: Generator) -> Floats:
        """Shares of groups and labels after the labels are drawn anew, measured on rows of the model."""
        of_groups = drawn.sum(axis=1)
        out = np.zeros(drawn.shape)
        for group in np.flatnonzero(of_groups > 0):
            labels = rng.choice(drawn.shape[1], n_rows, p=drawn[group] / of_groups[group])
            values = self.model.sample(group * drawn.shape[1] + labels, rng)
            out[group] = of_groups[group] * self.shares(values).mean(axis=0)
        return out


# ---- labels by sums -------------------------------------------------------------------------------------------
#: Rows in whose place the private ones are expected; and from how many at least those of a label are chosen.
_DRAWN, _LEAST_DRAWN = 10_000, 2000


@dataclass(frozen=True)
class CodeFeatures:
    """Codes of columns, and that of the group after them, as numbers: of a bin its middle, of a category a flag."""

    tables: tuple[Floats, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], n_groups: int) -> "CodeFeatures":
        """By released bins and public categories."""
        return cls((*map(_numbers_of, columns), np.eye(n_groups)[:, int(n_groups <= 2) :]))

    def __call__(self, codes: Any) -> Floats:
        return np.concatenate([table[codes[:, j]] for j, table in enumerate(self.tables)], axis=1)


def _numbers_of(column: Column) -> Floats:
    """One line for each code. A value that is missing or none of the domain is in the middle, and a flag says so."""
    flags = np.eye(column.n_codes)[:, :-1]
    if not isinstance(column, NumberColumn):
        return flags[:, int(column.n_codes <= 3) :]
    middles = (column.starts + np.append(column.starts[1:], column.high)) / 2
    further = np.full(column.n_codes - len(middles), np.median(middles))
    return np.column_stack([np.append(middles, further), flags[:, len(middles) :]])


class ModelBySums(Model):
    """Columns as a model of the groups draws them, given a label by the logistic regression that sums tell."""

    def __init__(self, of_groups: Model, features: CodeFeatures, rule: SoftmaxRule, rates: Floats) -> None:
        self.of_groups, self.features, self.rule, self.rates = of_groups, features, rule, rates

    def sample(self, cells: Ints, rng: Generator) -> Array:
        """Of twice as many rows of each group those that have the label, each as often as it is likely."""
        groups, labels = np.divmod(cells, self.rates.shape[1])
        out: list[Array] = []
        order = np.argsort(cells, kind="stable")
        for group in np.unique(groups):
            pool = np.full(max(2 * int(np.count_nonzero(groups == group)), _LEAST_DRAWN), int(group))
            values = self.of_groups.sample(pool, rng)
            shares = self._shares(values, group)
            for label, n in enumerate(np.bincount(labels[groups == group], minlength=shares.shape[1])):
                likely = np.maximum(shares[:, label], _TINY)
                out.append(values[rng.choice(len(values), n, p=likely / likely.sum())])
        return np.concatenate(out)[np.argsort(order, kind="stable")]

    def log_likelihood(self, values: Array) -> Floats:
        """Log density of rows in each cell."""
        of_groups = self.of_groups.log_likelihood(values)
        assert of_groups is not None
        return self._densities(values, of_groups, self.features)

    def log_likelihood_of(self, values: Array, columns: Sequence[int]) -> Floats:
        """Of some columns, where the label does not hear of the others: they are as on average."""
        tables = [
            table
            if j in columns or j == len(self.features.tables) - 1
            else np.tile(table.mean(axis=0), (len(table), 1))
            for j, table in enumerate(self.features.tables)
        ]
        return self._densities(values, self.of_groups.log_likelihood_of(values, columns), CodeFeatures(tuple(tables)))

    def _densities(self, values: Array, of_groups: Floats, features: CodeFeatures) -> Floats:
        rates = self.rates / np.maximum(self.rates.sum(axis=1, keepdims=True), _TINY)
        given = [self._shares(values, group, features) / np.maximum(own, _TINY) for group, own in enumerate(rates)]
        return np.asarray(np.repeat(of_groups, rates.shape[1], axis=1) + np.log(np.maximum(np.hstack(given), _TINY)))

    def _shares(self, values: Array, group: int, features: CodeFeatures | None = None) -> Floats:
        return self.rule((features or self.features)(np.column_stack([values, np.full(len(values), group)])))


def release_by_sums(
    plan: GeneratorPlan, columns: Sequence[Column], rows: Rows, noise: NoiseSource, rng: Generator
) -> tuple[ModelBySums, Floats]:
    """Release tables of the groups' rows, and sums of what these rows are in; return a model of groups and labels, and
    their shares, in which those of labels are as the sums count them."""
    n_groups, n_classes = rows.observed.shape
    groups, labels = np.divmod(rows.cells, n_classes)
    of_groups = rows.observed.sum(axis=1, keepdims=True)
    rows_of_groups = replace(rows, cells=groups, observed=of_groups, rates=of_groups)
    model = plan.backend.release(rows_of_groups, plan.scale, noise, rng)
    features, cells = CodeFeatures.of(columns, n_groups), drawn_cells(of_groups.ravel(), _DRAWN, rng)
    sampled, codes = (np.column_stack(both) for both in ((model.sample(cells, rng), cells), (rows.values, groups)))
    rule, _, counts = plan.sums.release(codes, labels, sampled, noise, terms=features, once=codes)
    # Released values only from here on.
    of_labels = rows.observed.sum(axis=0)
    of_group = np.where(of_labels > 0, rows.observed / np.where(of_labels > 0, of_labels, 1.0), of_groups)
    rates = of_group * on_simplex(counts)
    return ModelBySums(model, features, rule, rates), rates
