"""The gate's arithmetic, row by row: plain Python over flat sequences, which numba compiles as it stands.

``counts`` is the (Z, K) table m[z, k] flattened by rows, ``sizes`` its row sums r_z, ``sums`` its column sums
and ``total`` the sum of everything. Python passes lists of ints, numba int64 arrays.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

OTHERS, OVERALL, BETWEEN = 0, 1, 2

# Two values of E or Γ closer than this are equal. Rounding stays far below it: each Γ carries at most 3e-16,
# a sum of Z·K of them Z·K·3e-16. True differences stay above it while a group has fewer than 1e6 answers: an
# answer moves a rate m/r by m/(r(r+1)) or (r-m)/(r(r+1)), so by at least 1e-12 or not at all, and Γ differs
# from a round γ such as 1/20 by at least 1/(20·r·r') or not at all. Where it errs, it errs by 1e-12: a Γ that
# counts as "at most γ" is at most γ + 1e-12.
TOLERANCE = 1e-12

# All cells are looked at again after about this many answers (see ``run``): enough to pay the pass over Z·K
# cells rarely, few enough to keep the cells within reach of γ few.
_HORIZON = 32


def cell(gap: int, counts: Any, sizes: Any, sums: Any, total: int, z: int, k: int) -> Any:
    """Γ(z, k); 0 while either side is empty."""
    size = sizes[z]
    if size == 0:
        return 0.0
    n_classes = len(sums)
    count = counts[z * n_classes + k]
    if gap == OTHERS:
        return 0.0 if total == size else count / size - (sums[k] - count) / (total - size)
    if gap == OVERALL:
        return count / size - sums[k] / total
    largest = 0.0
    for a in range(len(sizes)):
        if sizes[a] > 0:
            largest = max(largest, abs(count / size - counts[a * n_classes + k] / sizes[a]))
    return largest


def run(
    gap: int, local: bool, gamma: float, min_count: int, counts: Any, sizes: Any, sums: Any, groups: Any, labels: Any,
    mask: Any,
) -> None:  # fmt: skip
    """Decide a stream in order; write decisions to ``mask`` (given all False) and answers to the counts. One answer to
    group z moves every Γ by at most 1/(r_z + 1), with r_z its earlier answers: after a pass over all cells only those
    above γ - radius ("hot") need a look until the answers since have moved more than ``radius`` together."""
    n_classes, limit, total = len(sums), gamma - TOLERANCE, 0
    for z in range(len(sizes)):
        total += sizes[z]
    hot_z, hot_k = [0], [0]
    excess, raised, moved, step, own = 0.0, 0.0, 0.0, 0.0, 0.0
    radius = -1.0  # no pass made yet
    for i in range(len(groups)):
        z, k = groups[i], labels[i]
        at, size = z * n_classes + k, sizes[z]
        gated = size >= min_count
        if gated:
            if not local:
                step = 1.0 / (size + 1)
                if moved + step > radius:
                    moved, radius = 0.0, max(step, min(_HORIZON * step, gamma / 2))
                    excess = look(gap, gamma, gamma - radius - TOLERANCE, counts, sizes, sums, total, hot_z, hot_k)
            if gap == OTHERS:  # written out: Γ'(z, k) without committing, as most refusals end here
                own = 0.0
                if total > size:
                    own = (counts[at] + 1) / (size + 1) - (sums[k] - counts[at]) / (total - size)
                if own >= limit and (local or excess == 0.0):
                    continue
        counts[at] += 1
        sizes[z] += 1
        sums[k] += 1
        total += 1
        if gated:
            if gap != OTHERS:
                own = cell(gap, counts, sizes, sums, total, z, k)
            accepted = own < limit
            if not local and (accepted or excess > 0.0):  # E = 0 cannot fall
                raised = 0.0
                for h in range(len(hot_z)):
                    value = cell(gap, counts, sizes, sums, total, hot_z[h], hot_k[h]) - gamma
                    if value > TOLERANCE:
                        raised += value
                        if raised > excess + TOLERANCE:
                            break
                accepted = raised < excess - TOLERANCE or (raised <= excess + TOLERANCE and accepted)
            if not accepted:
                counts[at] -= 1
                sizes[z] -= 1
                sums[k] -= 1
                total -= 1
                continue
            excess = raised
            moved += step
        else:
            radius = -1.0  # a cold start may raise E: look at every cell before the next decision
        mask[i] = True


def look(
    gap: int, gamma: float, floor: float, counts: Any, sizes: Any, sums: Any, total: int, hot_z: Any, hot_k: Any
) -> float:
    """Look at all cells: keep those above ``floor`` as the hot ones, and return E."""
    excess = 0.0
    hot_z.clear()
    hot_k.clear()
    for a in range(len(sizes)):
        for b in range(len(sums)):
            value = cell(gap, counts, sizes, sums, total, a, b)
            if value > floor:
                hot_z.append(a)
                hot_k.append(b)
            if value - gamma > TOLERANCE:
                excess += value - gamma
    return excess


def excess_and_peak(gap: int, gamma: float, counts: Any, sizes: Any, sums: Any) -> tuple[float, float]:
    """Return E and the largest Γ."""
    excess, peak, total = 0.0, -1.0, sum(sizes)
    for z in range(len(sizes)):
        for k in range(len(sums)):
            value = cell(gap, counts, sizes, sums, total, z, k)
            peak = max(peak, value)
            if value - gamma > TOLERANCE:
                excess += value - gamma
    return excess, peak


def admissible(
    gap: int, local: bool, gamma: float, counts: Any, sizes: Any, sums: Any, z: int, excess: float
) -> list[bool]:
    """Return for every class whether the gate lets group z have it, in O(Z·K) for all classes together.
    ``excess`` is E of the counts, which are left as they were found."""
    limit, n_classes, total = gamma - TOLERANCE, len(sums), sum(sizes) + 1

    def column(k: int) -> float:
        over = 0.0
        for a in range(len(sizes)):
            value = cell(gap, counts, sizes, sums, total, a, k) - gamma
            if value > TOLERANCE:
                over += value
        return over

    # An answer k enlarges group z in every column, but adds to a class count in column k only. So E' is the
    # sum of all columns as they are once z has one answer more of another class, with column k exchanged.
    sizes[z] += 1
    others = [0.0 if local else column(k) for k in range(n_classes)]
    everything = sum(others)
    decisions = []
    for k in range(n_classes):
        counts[z * n_classes + k] += 1
        sums[k] += 1
        decision = cell(gap, counts, sizes, sums, total, z, k) < limit
        if not local and (decision or excess > 0.0):  # E = 0 cannot fall
            raised = everything - others[k] + column(k)
            decision = raised < excess - TOLERANCE or (raised <= excess + TOLERANCE and decision)
        decisions.append(decision)
        counts[z * n_classes + k] -= 1
        sums[k] -= 1
    sizes[z] -= 1
    return decisions


@cache
def compiled_run() -> Callable[..., None] | None:
    """Return ``run`` compiled by numba, or None where numba is not installed."""
    try:
        from numba import njit
        from numba.extending import register_jitable
    except ImportError:
        return None
    for part in (cell, look):
        register_jitable(part)
    compiled: Callable[..., None]
    try:
        compiled = njit(run, cache=True)
    except RuntimeError:  # numba finds nowhere to keep the compiled code
        compiled = njit(run)
    return compiled
