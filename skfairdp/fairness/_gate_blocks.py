"""The gate without numba, quicker: answers far from γ are counted at once, many cells are looked at together."""

import math

import numpy as np
from numpy.typing import NDArray

from skfairdp.fairness import _gate_stream as _stream
from skfairdp.fairness._gaps import GAPS, disparities, tally

_LEAST = 512  # rows that are worth a look at all cells
_MOST = 2**20  # rows at a time, whatever the gate allows
_ROW_BY_ROW = (1024, 2**16)  # before the next look, an eighth of what was answered in between
_TABLE = 128  # cells that a loop over them looks at in the time of arithmetic with a whole table, however small
_ROUNDING = 1e-9  # far above that of any Γ, and of what is added to one
_CODES = dict(zip(GAPS, (_stream.OTHERS, _stream.OVERALL, _stream.BETWEEN), strict=True))

Counts = NDArray[np.int64]


def run_in_blocks(
    disparity: str, local: bool, gamma: float, min_count: int, counts: Counts, groups: Counts, labels: Counts
) -> NDArray[np.bool_]:
    """Decide a stream in order as ``_gate_stream.run`` does, and add the answers to the counts.

    **Why a run of rows may be counted at once.** Let r_z be the answers of group z before the run and n_z its rows in
    it. If all rows are answered, the rate of any class in group z moves by at most 1/(r_z + 1) + ... + 1/(r_z + n_z) <=
    log(1 + n_z / r_z) until any row of the run; so does the rate of what a group is compared with. If no Γ plus the
    sum of the two reaches γ, then every row, asked in its turn, finds E = 0 and leaves all Γ below γ: it is admitted.
    """
    rule = _CODES[disparity], local, gamma, min_count
    mask = np.zeros(len(groups), dtype=bool)
    start, sure = 0, 0
    while start < len(groups):
        sure = _rows_that_fit(disparity, gamma, counts, groups[start : start + 2 * max(sure, _LEAST)])
        some = slice(start, start + (sure or int(np.clip(counts.sum() // 8, *_ROW_BY_ROW))))
        if sure:
            mask[some] = True
            counts += tally(groups[some], labels[some], (counts.shape[0], counts.shape[1]))
        else:
            mask[some] = _row_by_row(rule, counts, groups[some], labels[some])
        start = some.stop
    return mask


def _rows_that_fit(disparity: str, gamma: float, counts: Counts, groups: Counts) -> int:
    """How many of the next rows are admitted, whatever their labels are; 0 instead of a few."""
    room = gamma - _ROUNDING - disparities(counts, disparity).max(axis=1)
    n_rows = min(len(groups), _MOST) if room.min() > 0 else 0
    while n_rows >= _LEAST:
        more = np.bincount(groups[:n_rows], minlength=len(counts))
        if (_largest_move(disparity, counts.sum(axis=1), more) < room).all():
            return n_rows
        n_rows //= 2
    return 0


def _largest_move(disparity: str, sizes: Counts, more: Counts) -> NDArray[np.float64]:
    """How far a Γ of each group can move while so many more answers are counted."""
    own = _move_of_rate(sizes, more)
    if disparity == "others":
        return own + _move_of_rate(sizes.sum() - sizes, more.sum() - more)
    if disparity == "overall":
        return own + _move_of_rate(sizes.sum(keepdims=True), more.sum(keepdims=True))
    return own + float(own.max())


def _move_of_rate(sizes: Counts, more: Counts) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(more > 0, np.log1p(more / sizes), 0.0)


def _row_by_row(
    rule: tuple[int, bool, float, int], counts: Counts, groups: Counts, labels: Counts
) -> NDArray[np.bool_]:
    _, local, gamma, _ = rule
    # While groups are small, one answer moves Γ by so much that a loop soon has to look at all cells again.
    looks = max(1.0, min(32.0, gamma / 2 * counts.sum() / len(counts)))
    if not local and counts.size > _TABLE * looks:
        return _by_tables(rule, counts, groups, labels)
    state = counts.ravel().tolist(), counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    mask = bytearray(len(groups))
    _stream.run(*rule, *state, groups.tolist(), labels.tolist(), mask)
    counts[:] = np.array(state[0], dtype=np.int64).reshape(counts.shape)
    return np.frombuffer(mask, dtype=bool)


def _by_tables(rule: tuple[int, bool, float, int], counts: Counts, groups: Counts, labels: Counts) -> NDArray[np.bool_]:
    """Decide rows one after the other by the excess rule, all Γ at once: a row costs as much as there are cells."""
    code, _, gamma, min_count = rule
    limit, mask = gamma - _stream.TOLERANCE, np.zeros(len(groups), dtype=bool)
    sizes, sums, excess = counts.sum(axis=1), counts.sum(axis=0), math.nan  # unknown
    for i, (z, k) in enumerate(zip(groups.tolist(), labels.tolist(), strict=True)):
        gated = sizes[z] >= min_count
        if gated and math.isnan(excess):
            excess = _excess(_gaps(code, counts, sizes, sums), gamma)
        counts[z, k] += 1
        sizes[z] += 1
        sums[k] += 1
        raised, mask[i] = math.nan, True  # a cold start may do anything
        if gated:
            gaps = _gaps(code, counts, sizes, sums)
            raised, near = _excess(gaps, gamma), bool(gaps[z, k] < limit)
            less, same = raised < excess - _stream.TOLERANCE, raised <= excess + _stream.TOLERANCE
            mask[i] = less or (same and near)
        if mask[i]:
            excess = raised
        else:
            counts[z, k] -= 1
            sizes[z] -= 1
            sums[k] -= 1
    return mask


def _excess(gaps: NDArray[np.float64], gamma: float) -> float:
    over = gaps - gamma
    return float(over[over > _stream.TOLERANCE].sum())


def _gaps(code: int, counts: Counts, sizes: Counts, sums: Counts) -> NDArray[np.float64]:
    """Γ of all cells, as :func:`disparities` has it, of tables that need no checks."""
    size = sizes[:, None]
    rates = counts / np.maximum(size, 1)
    if code == _stream.BETWEEN:
        present = rates[sizes > 0] if sizes.any() else rates
        found = np.maximum(rates - present.min(axis=0), present.max(axis=0) - rates)
        return np.where(size > 0, found, 0.0)
    others = sums - (0 if code == _stream.OVERALL else counts)
    rest = sizes.sum() - (0 if code == _stream.OVERALL else size)
    return np.where((size > 0) & (rest > 0), rates - others / np.maximum(rest, 1), 0.0)
