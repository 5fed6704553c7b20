"""Thresholds that meet constraints on rates: public rows counted by score, group and label, and what is answered."""

import hashlib
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import issparse

from skfairdp._typing import Array, Floats, Ints, Objects
from skfairdp._utils import coins_of
from skfairdp.fairness import RateBound, RateConstraints, RateParity, gaps_of
from skfairdp.postprocessing import _thresholding as thresholding
from skfairdp.postprocessing._bins import bins_of
from skfairdp.postprocessing._inputs import probabilities
from skfairdp.postprocessing._thresholding import CalibrationRows, Thresholds

# What a violation of 1 costs, in accuracy: no constraint is ever broken for accuracy's sake.
_PRICE = 100.0
#: Standard deviations of noise by which counts have to speak against a classifier's own answers.
DOUBT = 2.0


def fair_answers(
    constraints: RateConstraints,
    counts: Floats,
    *,
    by_group: bool,
    sizes: Floats | None = None,
    in_favour: Floats | None = None,
    right_sides: Floats | None = None,
) -> Floats:
    """Return how often each bin is answered by the second class, so that constraints hold on the counts. Where nothing
    meets them, they are broken by as little as possible. With groups a higher score has never less of a chance within
    its group. Without, bins are free: a rule that knows nothing but the score has no other way to parity."""
    n_bins, n_groups, _ = counts.shape
    n_rules = n_groups if by_group else 1
    sizes = sizes_of(counts) if sizes is None else sizes
    total = sizes.sum()
    for_second = counts[..., 1] - counts[..., 0] + (0.0 if in_favour is None else in_favour)
    gain = _by_rule(for_second / total, by_group)
    lines, bounds = [], []
    right_sides = constraints.bounds if right_sides is None else right_sides
    for j in range(constraints.n_inequalities):
        weights = constraints.row_weights(np.arange(constraints.n_inequalities) == j, sizes)
        slope = np.einsum("bgy,gy->bg", counts, weights[..., 1] - weights[..., 0]) / total
        lines.append(np.append(_by_rule(slope, by_group), -1.0))
        bounds.append(right_sides[j] - float((counts * weights[..., 0]).sum() / total))
    if by_group:
        rising = np.kron(np.eye(n_rules), -np.diff(np.eye(n_bins), axis=0))
        lines += list(np.pad(rising, ((0, 0), (0, 1))))
        bounds += [0.0] * len(rising)
    limits = [(0.0, 1.0)] * (n_rules * n_bins) + [(0.0, None)]
    found = linprog(np.append(-gain, _PRICE), A_ub=np.array(lines), b_ub=np.array(bounds), bounds=limits)
    assert found.x is not None  # all answers are feasible at the price of a violation
    return np.clip(found.x[:-1], 0.0, 1.0).reshape(n_rules, n_bins)


def for_own_answers(counts: Floats, edges: Floats, sigma: float, n_rows: float) -> Floats:
    """Rows by which a classifier is in the right before any is counted: ``DOUBT`` times the noise of all counts. They
    lie where its rows lie, so that answering all rows otherwise takes that much evidence, and a part of them as large a
    part. Without it noise alone had a classifier of 150 rows answer the rarer class for all of them."""
    rows = np.maximum(counts.sum(2), 0.0)
    own = np.resize(np.where(np.append(0.0, edges) >= 0.5, 1.0, -1.0), len(counts))[:, None]
    return np.asarray(DOUBT * sigma * np.sqrt(counts.size) * own * rows / max(float(rows.sum()), n_rows))


def predicted_counts(counts: Floats, answers: Floats) -> Floats:
    """Rows by group, true and predicted class, as the answers have them on average."""
    second = np.einsum("bgy,bg->gy", counts, np.broadcast_to(answers, (counts.shape[1], counts.shape[0])).T)
    return np.stack([counts.sum(0) - second, second], axis=-1)


def sizes_of(counts: Floats) -> Floats:
    """Rows by group and true class; noise may leave a small cell with nothing, or less."""
    sizes = counts.sum(0)
    return np.maximum(sizes, max(float(sizes.sum()), 1.0) / (100 * sizes.size))


def answer_counts(constraints: RateConstraints, groups: Any, labels: Any, given: Any) -> Ints:
    """Rows by group, true class and answer; all true classes together where no constraint looks at them."""
    counts = constraints.tally(groups, labels if constraints.needs_labels else np.zeros_like(labels), given)
    return counts if constraints.needs_labels else counts[:, :1]


def _by_rule(slopes: Floats, by_group: bool) -> Floats:
    """One number for each group and bin, or for each bin: (n_bins, n_groups) → (n_rules * n_bins,)."""
    return (slopes.T if by_group else slopes.sum(1, keepdims=True).T).ravel()


MOST_BINS = 32
ROWS_PER_CELL = 10  # a rate of ten rows moves by a tenth with each of them: finer bins would follow single rows
MET = 1e-6  # what a linear program calls met
_HALF_STEP = 5e-13  # of scores, which are rounded to twelve digits: no score lies where a bin ends
_KEY = b"skfairdp.FairnessCalibrator"  # public: rows are drawn alike in every fit


@dataclass(eq=False, repr=False)
class BinAnswers(thresholding.CalibratedModel):
    """A model whose scores are read in bins; in each the second class is answered with a chance of its own."""

    edges: Any = ()
    answers: Floats | None = None  # the model's own

    def attributes(self) -> dict[str, Any]:
        """What the calibrator shows of it."""
        return {**super().attributes(), "edges_": self.edges, "answers_": self.answers}

    def cells(self, scores: Floats, table: Any, groups: Ints | None) -> tuple[Ints, ...]:
        """The rule and the bin of every row: that of its group, or of the one it has most in common with."""
        if groups is None or not self.reads_groups:
            groups = (self.membership(table) / self.shares).argmax(axis=1)
        return groups, bins_of(scores, self.edges)

    def answer(self, features: Any, table: Any, groups: Ints | None) -> Ints:
        """Return the code of each row's class, which follows from the row alone."""
        if self.answers is None:
            return super().answer(features, table, groups)
        scores = rounded(probabilities(self.estimator, features, 2, owner=self.owner))
        chances = self.answers[self.cells(scores, table, groups)]
        drawn = (chances > 0) & (chances < 1)
        second = chances >= 1
        if drawn.any():
            second[drawn] = (coins_of(row_numbers(table), _KEY) < chances)[drawn]
        return second.astype(np.int64)


def look_at_labels(asked: tuple[RateParity | RateBound, ...]) -> bool:
    """Whether any of these constraints looks at the true label."""
    return any(one.rate != "selection_rate" for one in asked)


def constraints_of(
    asked: tuple[RateParity | RateBound, ...], domain: Objects, classes: Array, owner: str
) -> RateConstraints:
    """The constraints for these groups and classes, of which there have to be two."""
    if len(classes) != 2:
        raise ValueError(
            f"Only binary classification is supported by {owner} with 'constraints': its 'estimator' must know two "
            "classes. For more leave 'constraints' out, which holds demographic parity, or use FairDPSGDClassifier."
        )
    return RateConstraints(asked, domain.tolist(), classes.tolist(), owner)


def refuse_unlabelled(asked: tuple[RateParity | RateBound, ...], owner: str) -> NoReturn:
    """Say which constraint needs labels, and where they come from."""
    rate = next(one.rate for one in asked if one.rate != "selection_rate")
    raise ValueError(
        f"The 'constraints' parameter of {owner} asks for {rate}, which needs the true label of every public row, and "
        "there are none. Give labels: fit(X, y, sensitive_features=...) of public rows around a fitted model, "
        "X_public=PublicData(X, groups, y) around one that is fitted here. Without public labels use "
        "PrivateThresholds, which reads private ones within a budget."
    )


def meet_constraints(
    model: Any, rows: CalibrationRows, constraints: RateConstraints, labels: Ints | None, method: Thresholds, owner: str
) -> tuple[BinAnswers, float, float, float]:
    """Return the most accurate answers that meet the constraints on public rows; the model's own where they do.
    Beside them the gap before and after, and the violation that is left."""
    utility = probabilities(model, rows.features, 2, owner=owner)
    weights = utility if labels is None else np.eye(2)[labels]
    before = _counted((rows.groups, rows.before), weights, (rows.n_groups, 2)).transpose(0, 2, 1)
    check_rates(constraints, before, owner)
    scores, shift = rounded(utility), thresholding.own_threshold(utility, rows.before)
    edges = edges_of(scores, (1 - float(shift[1])) / 2, rows.n_groups)
    calibrated = BinAnswers(model, rows.classes, owner, *thresholding.fit_groups(method, rows, owner), edges)
    gaps, after = gaps_of(constraints), before
    if constraints.largest_violation(before) > 0:
        rules, bins = calibrated.cells(scores, rows.table, rows.groups)
        n_bins = len(edges) + 1
        if not method.group_at_prediction:
            # a cell that knows nothing of the group but what it guesses is a bin like any other
            bins, n_bins = rules * n_bins + bins, rows.n_groups * n_bins
        counts = _counted((bins, rows.groups), weights, (n_bins, rows.n_groups))
        answers = fair_answers(
            constraints,
            counts,
            by_group=method.group_at_prediction,
            sizes=np.maximum(counts.sum(0), 1e-9),  # of a label that no constraint looks at there may be no row
            right_sides=constraints.bounds_on_few(before),
        )
        expected = predicted_counts(counts, answers)
        if constraints.largest_violation(expected) < constraints.largest_violation(before):
            calibrated.answers, after = answers.reshape(rows.n_groups, len(edges) + 1), expected
    gap_before, gap_after = (max(float(gaps.violations(counts).max()), 0.0) for counts in (before, after))
    return calibrated, gap_before, gap_after, constraints.largest_violation(after)


def check_rates(constraints: RateConstraints, counts: Any, owner: str) -> None:
    """Raise a ValueError where a rate that is constrained counts none of the public rows."""
    unknown = ~np.isfinite(constraints.rates(counts)) & (constraints.coefficients != 0).any(axis=0)
    if unknown.any():
        group, rate = np.argwhere(unknown)[0]
        raise ValueError(
            f"{owner} has no public row that the {constraints.rate_names[rate]} of the group "
            f"{constraints.groups[group]!r} counts. Add public rows of that group and label, or leave the group out."
        )


def edges_of(scores: Floats, threshold: float, n_groups: int) -> Floats:
    """Where bins of about equally many public rows end; the model's own threshold is among them."""
    n_bins = int(np.clip(len(scores) / (2 * n_groups * ROWS_PER_CELL), 2, MOST_BINS))
    ends = np.quantile(scores, np.arange(1, n_bins) / n_bins, method="lower")
    return np.unique(np.append(ends, round(threshold, 12))) + _HALF_STEP


def rounded(probability: Floats) -> Floats:
    """The scores of the second class, without what rounding leaves: a row's bin is the same in any batch."""
    return np.round(probability[:, 1], 12)


def row_numbers(table: Any) -> Floats:
    """A row of numbers for every row of a table: a number is itself, anything else a hash of its text."""
    if issparse(table):
        table = table.toarray()
    if not isinstance(table, pd.DataFrame):
        array = np.asarray(table)
        array = array.reshape(len(array), -1)
        if array.dtype.kind in "fiub":
            return array.astype(np.float64)
        table = pd.DataFrame(array)
    return np.column_stack([_cells_as_numbers(table.iloc[:, j]) for j in range(table.shape[1])])


def _cells_as_numbers(column: "pd.Series[Any]") -> Floats:
    if column.dtype.kind in "fiub":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    codes, values = pd.factorize(column.astype(object))
    return np.array([*map(_as_number, values), np.nan], dtype=np.float64)[codes]


def _as_number(value: Any) -> float:
    if isinstance(value, Real):
        return float(value)
    digest = hashlib.blake2b(str(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "little") >> 11)


def _counted(cells: tuple[Ints, ...], weights: Floats, shape: tuple[int, ...]) -> Floats:
    """Rows by cell and label, each by how likely it has that label; shape (*shape, 2)."""
    where = np.ravel_multi_index(cells, shape)
    columns = [np.bincount(where, column, int(np.prod(shape))).astype(np.float64) for column in weights.T]
    return np.asarray(np.stack(columns, axis=-1).reshape(*shape, 2))
