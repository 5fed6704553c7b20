"""The disparity Γ of counts (FairPATE, App. H.1), and the gate: which classes a group may still be given within it."""

import math
import numbers
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from skfairdp._typing import ArrayLike, Bools, Floats, Ints, MaybeArray, Objects, Pair
from skfairdp._utils import invalid_parameter
from skfairdp.fairness import _gate_stream as _stream

GAPS = ("others", "overall", "between")
_LEAST = 512  # rows that are worth a look at all cells
_MOST = 2**20  # rows at a time, whatever the gate allows
_ROW_BY_ROW = (1024, 2**16)  # before the next look, an eighth of what was answered in between
_TABLE = 128  # cells that a loop over them looks at in the time of arithmetic with a whole table, however small
_ROUNDING = 1e-9  # far above that of any Γ, and of what is added to one

Counts = Ints


def check_option(value: Any, allowed: tuple[str, ...], name: str, owner: str) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ValueError(f"The {name!r} parameter of {owner} must be one of {sorted(allowed)}. Got {value!r} instead.")


def as_counts(counts: MaybeArray, shape: Pair | None, *, owner: str) -> Ints:
    """Return ``counts`` (None: zeros) as a fresh (Z, K) integer table, or raise a ValueError that names ``owner``."""
    if counts is None and shape is not None:
        return np.zeros(shape, dtype=np.int64)
    wanted = "a table (groups, classes) of non-negative integers" + ("" if shape is None else f" of shape {shape}")
    try:
        given = np.asarray(counts)
        table = given.astype(np.int64) if given.dtype.kind in "iufb" and np.isfinite(given).all() else None
    except (TypeError, ValueError):
        table = None
    if table is None or table.ndim != 2 or table.size == 0 or (shape is not None and table.shape != shape):
        raise ValueError(f"The 'counts' parameter of {owner} must be {wanted}.")
    if (table < 0).any() or (table != given).any():
        raise ValueError(
            f"The 'counts' parameter of {owner} must be {wanted}; some entries are negative or fractional."
        )
    return table


def disparities(counts: ArrayLike, gap: str = "others") -> Floats:
    """Return the demographic disparity Γ(z, k) of every group and class.

    Parameters
    ----------
    counts : array-like of shape (n_groups, n_classes)
        ``counts[z, k]``: how many members of group z were given class k. Non-negative integers.
    gap : {"others", "overall", "between"}, default="others"
        What a group's rate P(k | z) is compared with:

        - ``"others"``: the pooled rate of all other groups (the paper's choice, its equation 4);
        - ``"overall"``: the rate of everyone, the group included (equation 3);
        - ``"between"``: the group that differs most, in absolute value (equation 2).

    Returns
    -------
    ndarray of shape (n_groups, n_classes)
        Differences of rates, in [-1, 1]; 0 where either side of the comparison is empty.

    Raises
    ------
    ValueError
        ``counts`` is not a table of non-negative integers, or ``gap`` is unknown.

    References
    ----------
    Yaghini et al. (2023), "Learning to walk impartially on the Pareto frontier", Section 2 and Appendix H.1.

    Examples
    --------
    >>> from skfairdp.fairness import disparities
    >>> disparities([[30, 10], [20, 20]])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    check_option(gap, GAPS, "gap", "disparities")
    table = as_counts(counts, None, owner="disparities")
    return disparities_of(table, table.sum(axis=1), table.sum(axis=0), gap)


def disparities_of(counts: Ints, sizes: Ints, sums: Ints, gap: str) -> Floats:
    """:func:`disparities` of a table that needs no checks, with the sums of its rows and columns."""
    size = sizes[:, None]
    rates = counts / np.maximum(size, 1)
    if gap == "between":
        present = rates[sizes > 0] if sizes.any() else rates
        return np.where(size > 0, np.maximum(rates - present.min(axis=0), present.max(axis=0) - rates), 0.0)
    others = sums - (0 if gap == "overall" else counts)
    rest = sizes.sum() - (0 if gap == "overall" else size)
    return np.where((size > 0) & (rest > 0), rates - others / np.maximum(rest, 1), 0.0)


def largest_disparity(counts: ArrayLike, gap: str = "others") -> float:
    """Return max over z and k of Γ(z, k), the fairness gap that γ bounds; 0 while fewer than two groups have counts."""
    return float(disparities(counts, gap).max())


def tally(groups: Ints, labels: Ints, shape: Pair) -> Ints:
    """Return how many rows of each group have each class."""
    return np.bincount(groups * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)


def rejection_rates(kept: Bools, groups: Ints, domain: Objects) -> dict[Any, float]:
    """Return for every group the share of its rows that were refused; NaN for a group without rows."""
    asked = np.bincount(groups, minlength=len(domain))
    refused = np.bincount(groups[~kept], minlength=len(domain))
    return {name: float(r / a) if a else math.nan for name, r, a in zip(domain.tolist(), refused, asked, strict=True)}


Rule = tuple[int, bool, float, int]  # as the compiled loop has it: disparity, whether it is local, gamma, min_count


def run_in_blocks(rule: Rule, counts: Counts, groups: Counts, labels: Counts, *, amounts: bool = False) -> Bools:
    """Decide a stream in order as ``_gate_stream.run`` does, or AmountGate, and add the answers to the counts.
    **Why a run of rows may be counted at once.** Let r_z be the answers of group z before the run and n_z its rows in
    it. If all rows are answered, the rate of any class in group z moves by at most 1/(r_z + 1) + ... + 1/(r_z + n_z) <=
    log(1 + n_z / r_z) until any row of the run; so does the rate of what a group is compared with. If no Γ plus the sum
    of the two reaches γ, then every row, asked in its turn, finds E = 0 and leaves all Γ below γ: it is admitted. The
    same holds of the share of amounts up to a limit, as of the rate of any set of answers."""
    return decided_in_blocks(
        counts, groups, labels, _LEAST,
        fitting=lambda some: _rows_that_fit(GAPS[rule[0]], rule[2], counts, some, amounts),
        one_by_one=lambda some, of: (
            _by_tables(rule, counts, some, of, True) if amounts else _row_by_row(rule, counts, some, of)
        ),
        n_others=lambda: int(np.clip(counts.sum() // 8, *_ROW_BY_ROW)),
    )  # fmt: skip


def decided_in_blocks(
    counts: Counts,
    groups: Counts,
    labels: Counts,
    least: int,
    *,
    fitting: Callable[[Counts], int],
    one_by_one: Callable[[Counts, Counts], Bools],
    n_others: Callable[[], int],
) -> Bools:
    """Decide a stream in order: all rows at once that fit whatever their labels are, so many others one by one."""
    mask, start, sure = np.zeros(len(groups), dtype=bool), 0, 0
    while start < len(groups):
        sure = fitting(groups[start : start + 2 * max(sure, least)])
        some = slice(start, start + (sure or n_others()))
        if sure:
            mask[some] = True
            counts += tally(groups[some], labels[some], (counts.shape[0], counts.shape[1]))
        else:
            mask[some] = one_by_one(groups[some], labels[some])
        start = some.stop
    return mask


def _rows_that_fit(disparity: str, gamma: float, counts: Counts, groups: Counts, amounts: bool = False) -> int:
    """How many of the next rows are admitted, whatever their labels are; 0 instead of a few."""
    room = gamma - _ROUNDING - _all_gaps(counts, disparity, amounts).max(axis=1)
    n_rows = min(len(groups), _MOST) if room.min() > 0 else 0
    while n_rows >= _LEAST:
        more = np.bincount(groups[:n_rows], minlength=len(counts))
        if (_largest_move(disparity, counts.sum(axis=1), more) < room).all():
            return n_rows
        n_rows //= 2
    return 0


def _largest_move(disparity: str, sizes: Counts, more: Counts) -> Floats:
    """How far a Γ of each group can move while so many more answers are counted."""
    own = _move_of_rate(sizes, more)
    if disparity == "others":
        return own + _move_of_rate(sizes.sum() - sizes, more.sum() - more)
    if disparity == "overall":
        return own + _move_of_rate(sizes.sum(keepdims=True), more.sum(keepdims=True))
    return own + float(own.max())


def _move_of_rate(sizes: Counts, more: Counts) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(more > 0, np.log1p(more / sizes), 0.0)


def _all_gaps(counts: Counts, disparity: str, amounts: bool) -> Floats:
    """All Γ of classes; of amounts, how far the shares up to each bin lie from what they are compared with."""
    table = counts.cumsum(axis=1) if amounts else counts
    return _gaps(table, counts.sum(axis=1), table.sum(axis=0), disparity, amounts)


def _row_by_row(rule: Rule, counts: Counts, groups: Counts, labels: Counts) -> Bools:
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


def _by_tables(rule: Rule, counts: Counts, groups: Counts, labels: Counts, amounts: bool = False) -> Bools:
    """Decide rows one after the other by the excess rule, all Γ at once: a row costs as much as there are cells.
    An amount counts in its bin and all above, and is near enough if its group is at the end of every bin."""
    gap, (_, gamma, min_count) = GAPS[rule[0]], rule[1:]
    limit, mask = gamma - _stream.TOLERANCE, np.zeros(len(groups), dtype=bool)
    table = counts.cumsum(axis=1) if amounts else counts.copy()
    sizes, sums, excess = counts.sum(axis=1), table.sum(axis=0), math.nan  # unknown
    for i, (z, k) in enumerate(zip(groups.tolist(), labels.tolist(), strict=True)):
        gated, cells = sizes[z] >= min_count, slice(k, None if amounts else k + 1)
        if gated and math.isnan(excess):
            excess = _excess(_gaps(table, sizes, sums, gap, amounts), gamma)
        table[z, cells] += 1
        sizes[z] += 1
        sums[cells] += 1
        raised, mask[i] = math.nan, True  # a cold start may do anything
        if gated:
            gaps = _gaps(table, sizes, sums, gap, amounts)
            raised, near = _excess(gaps, gamma), bool((gaps[z] if amounts else gaps[z, k]).max() < limit)
            less, same = raised < excess - _stream.TOLERANCE, raised <= excess + _stream.TOLERANCE
            mask[i] = less or (same and near)
        if mask[i]:
            excess = raised
        else:
            table[z, cells] -= 1
            sizes[z] -= 1
            sums[cells] -= 1
    counts += tally(groups[mask], labels[mask], (counts.shape[0], counts.shape[1]))
    return mask


def _gaps(table: Counts, sizes: Counts, sums: Counts, gap: str, amounts: bool) -> Floats:
    gaps = disparities_of(table, sizes, sums, gap)
    return np.abs(gaps) if amounts else gaps


def _excess(gaps: Floats, gamma: float) -> float:
    over = gaps - gamma
    return float(over[over > _stream.TOLERANCE].sum())


GATES = ("excess", "local")

# Below about this many rows, importing numba and loading the compiled loop takes longer than running the
# plain one.
_WORTH_COMPILING = 200_000
_WORTH_BLOCKS = 8192
_MANY_CELLS = 128


class FairnessGate:
    """Decide, answer by answer, which classes a group may be given under γ-demographic parity.

    The gate keeps counts m[z, k] of the answers given so far and knows nothing else: no data, no privacy.
    With E = Σ max(0, Γ(z, k) - γ) over all groups and classes, an answer (z, k) is admissible if, counted, it
    gives E' < E, or E' = E and Γ'(z, k) < γ. While group z has fewer than ``min_count`` answers every class
    is admissible (cold start). What follows: no answer outside a cold start raises E; and once every group
    has ``min_count`` answers and E = 0, every Γ stays at most γ for the rest of the stream. A cold start
    alone can leave a gap far above γ.

    Parameters
    ----------
    n_groups, n_classes : int
        Z and K; both at least 1. Groups and classes are integer codes 0..Z-1 and 0..K-1.
    gamma : float or None
        γ >= 0, the largest disparity let through. None or ``inf`` admits everything.
    min_count : int, default=50
        M >= 0: answers a group gets unconditionally.
    disparity : {"others", "overall", "between"}, default="others"
        Definition of Γ, see :func:`disparities`.
    gate : {"excess", "local"}, default="excess"
        ``"excess"`` is the rule above. ``"local"`` is the FairPATE paper's check, Γ'(z, k) < γ alone: it does not keep
        the gap within γ for three or more groups or classes. The two agree for Z = K = 2 with ``disparity="others"``
        whenever 2γ(M + 1) >= 1, so that one answer cannot carry Γ across the whole band [-γ, γ].
    counts : array-like of shape (n_groups, n_classes) or None, default=None
        Answers already given; None starts from zero.

    Raises
    ------
    ValueError
        A parameter is outside its range.

    Notes
    -----
    Values of E and Γ that differ by less than 1e-12 count as equal (so a γ below that is 0). Ties are thus decided as
    in exact arithmetic while groups have fewer than about 1e5 answers, and every bound above holds to 1e-12 beyond.

    The counts can reach a state in which every answer raises E; from there nothing is admissible
    (:meth:`is_stuck`). It happens where one answer moves a rate by more than γ: with fair predictions, five groups
    and five classes, to more than a fifth of the streams at γ = 0.01 and M = 50, to none at γ = 0.05 and M = 50.
    Keep γ(M + 1) above 2, or above 1/2 for two classes; with γ = 0 every gate gets stuck.

    References
    ----------
    Yaghini et al. (2023), "Learning to walk impartially on the Pareto frontier", Algorithms 1 and 2, for the counts,
    the cold start and the local check. The excess rule replaces that check because the latter lets other pairs drift
    beyond γ.

    Examples
    --------
    >>> from skfairdp.fairness import FairnessGate
    >>> gate = FairnessGate(2, 2, gamma=0.1, counts=[[50, 50], [45, 55]])
    >>> gate.admissible(0), gate.admissible(1)
    (array([ True,  True]), array([ True,  True]))
    >>> gate.run([0] * 30, [0] * 30).sum()  # group 0 may have class 0 until Γ(0, 0) reaches 0.1
    np.int64(11)
    >>> gate.admissible(0), gate.admissible(1)
    (array([False,  True]), array([ True, False]))
    """

    _amounts = False

    def __init__(
        self,
        n_groups: int,
        n_classes: int,
        *,
        gamma: float | None,
        min_count: int = 50,
        disparity: str = "others",
        gate: str = "excess",
        counts: MaybeArray = None,
    ) -> None:
        for name, value, low in (("n_groups", n_groups, 1), ("n_classes", n_classes, 1), ("min_count", min_count, 0)):
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < low:
                raise invalid_parameter(name, "FairnessGate", f"an int in the range [{low}, inf)", value)
        if gamma is not None and not (isinstance(gamma, numbers.Real) and not isinstance(gamma, bool) and gamma >= 0):
            raise invalid_parameter("gamma", "FairnessGate", "None or a float in the range [0, inf]", gamma)
        check_option(disparity, GAPS, "disparity", "FairnessGate")
        check_option(gate, GATES, "gate", "FairnessGate")
        self.n_groups, self.n_classes = int(n_groups), int(n_classes)
        self._bound = math.inf if gamma is None else float(gamma)
        self.gamma = None if math.isinf(self._bound) else self._bound
        self.min_count, self.disparity, self.gate = int(min_count), disparity, gate
        self._count(as_counts(counts, (self.n_groups, self.n_classes), owner="FairnessGate"))
        # E of the counts, and an upper bound on every Γ; NaN where a look is due.
        self._excess = self._peak = math.nan

    def _count(self, table: Ints) -> None:
        # Lists, not arrays: single entries are read and written far more often than the whole.
        self._state = table.ravel().tolist(), table.sum(1).tolist(), table.sum(0).tolist()

    @property
    def counts(self) -> Ints:
        """Answers given so far, shape (n_groups, n_classes); a copy."""
        return np.array(self._state[0], dtype=np.int64).reshape(self.n_groups, self.n_classes)

    def admissible(self, z: int) -> Bools:
        """Return which classes group ``z`` may be given next: K_t, a mask of shape (n_classes,).

        Parameters
        ----------
        z : int
            Code of the group.

        Returns
        -------
        admissible : ndarray of bool of shape (n_classes,)
            Whether each class may be given.
        """
        z = self._code(z, self.n_groups, "group")
        size = self._state[1][z]
        gap, local, gamma = self._rule
        if size < self.min_count or (not local and self._far_from_gamma(size)):
            return np.ones(self.n_classes, dtype=bool)
        if self._amounts:
            return np.array([self.copy().run([z], [k])[0] for k in range(self.n_classes)])
        excess = 0.0 if local else self.excess()
        return np.array(_stream.admissible(gap, local, gamma, *self._state, z, excess))

    def record(self, z: int, k: int) -> None:
        """Count one answer of class ``k`` to group ``z``, admissible or not.

        Parameters
        ----------
        z, k : int
            Codes of the group and of the class.
        """
        z, k = self._code(z, self.n_groups, "group"), self._code(k, self.n_classes, "class")
        counts, sizes, sums = self._state
        counts[z * self.n_classes + k] += 1
        sizes[z] += 1
        sums[k] += 1
        self._excess = math.nan
        self._peak += 1.0 / sizes[z]

    def excess(self) -> float:
        """Return E = Σ max(0, Γ(z, k) - γ), the amount by which the answers so far exceed γ in total.

        Returns
        -------
        excess : float
            At least 0.
        """
        if math.isnan(self._excess):
            self._look()
        return self._excess

    def is_stuck(self) -> bool:
        """Return whether no group may have any class: nothing is answered any more unless counts come from outside.

        Returns
        -------
        is_stuck : bool
            Whether every answer would be refused.
        """
        return not any(self.admissible(z).any() for z in range(self.n_groups))

    def run(self, groups: ArrayLike, labels: ArrayLike, *, engine: str = "auto") -> Bools:
        """Process a stream in order, count every admissible row and refuse the others.

        Parameters
        ----------
        groups, labels : array-like of shape (n_rows,)
            Integer codes of each row's group and proposed class.
        engine : {"auto", "python", "numba"}, default="auto"
            Both make the same decisions. ``"auto"`` takes numba (extra ``fast``) for long streams where it is
            installed. Without it rows are counted at once while no Γ can reach γ; near γ one takes about a microsecond.

        Returns
        -------
        ndarray of shape (n_rows,), bool
            True where the row was admitted and counted.

        Raises
        ------
        ValueError
            Codes out of range, or of different lengths. Nothing has been counted then.
        ImportError
            ``engine="numba"`` without numba.
        """
        check_option(engine, ("auto", "python", "numba"), "engine", "FairnessGate.run")
        z = self._codes(groups, self.n_groups, "groups")
        k = self._codes(labels, self.n_classes, "labels")
        if len(z) != len(k):
            raise ValueError(f"FairnessGate.run needs as many labels as groups; got {len(k)} and {len(z)}.")
        if self.gamma is None:
            self._count(self.counts + tally(z, k, (self.n_groups, self.n_classes)))
            return np.ones(len(z), dtype=bool)
        compiles = engine == "numba" or (engine == "auto" and len(z) >= _WORTH_COMPILING)
        compiled = _stream.compiled_run() if compiles else None
        if engine == "numba" and compiled is None:
            raise ImportError("engine='numba' of FairnessGate.run needs numba: pip install 'skfairdp[fast]'.")
        amounts = self._amounts
        if not amounts and compiled is None and len(z) < _WORTH_BLOCKS and len(self._state[0]) < _MANY_CELLS:
            mask = bytearray(len(z))
            _stream.run(*self._rule, self.min_count, *self._state, z.tolist(), k.tolist(), mask)
            decisions = np.frombuffer(mask, dtype=bool).copy()
        elif amounts or compiled is None:
            inner = self.counts
            decisions = run_in_blocks((*self._rule, self.min_count), inner, z, k, amounts=amounts)
            self._count(inner)
        else:
            decisions = np.zeros(len(z), dtype=bool)
            state = [np.array(part, dtype=np.int64) for part in self._state]
            compiled(*self._rule, self.min_count, *state, z, k, decisions)
            self._count(state[0].reshape(self.n_groups, self.n_classes))
        self._excess = self._peak = math.nan
        return decisions

    def copy(self) -> "FairnessGate":
        """Return an independent gate with the same rule and counts.

        Returns
        -------
        gate : FairnessGate
            Counting on by itself.
        """
        return deepcopy(self)

    @property
    def _rule(self) -> tuple[int, bool, float]:
        # Where the two gates agree (see the class docstring) the local one is run: it looks at one cell.
        agree = self.n_groups == self.n_classes == 2 and 2 * self._bound * (self.min_count + 1) >= 1
        local = not self._amounts and (self.gate == "local" or (agree and self.disparity == "others"))
        return GAPS.index(self.disparity), local, self._bound

    def _look(self) -> None:
        if not self._amounts:
            self._excess, self._peak = _stream.excess_and_peak(GAPS.index(self.disparity), self._bound, *self._state)
            return
        gaps = _all_gaps(self.counts, self.disparity, True)
        self._excess, self._peak = _excess(gaps, self._bound), float(gaps.max())

    def _far_from_gamma(self, size: int) -> bool:
        """Whether an answer to a group of ``size``, moving Γ by at most 1/(size + 1), keeps all below γ."""
        reach = self._bound - _stream.TOLERANCE - 1.0 / (size + 1)
        if math.isnan(self._peak) or (self._peak >= reach and math.isnan(self._excess)):
            self._look()
        return self._peak < reach

    def _code(self, code: int, n: int, what: str) -> int:
        if not (isinstance(code, numbers.Integral) and 0 <= code < n):
            raise ValueError(f"FairnessGate needs a {what} code in 0..{n - 1}.")
        return int(code)

    def _codes(self, codes: ArrayLike, n: int, name: str) -> Ints:
        array = np.asarray(codes)
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            raise ValueError(f"The '{name}' of FairnessGate.run must be one column of integer codes.")
        if array.size and (array.min() < 0 or array.max() >= n):
            raise ValueError(f"The '{name}' of FairnessGate.run must lie in 0..{n - 1}.")
        return array.astype(np.int64, copy=False)


class AmountGate(FairnessGate):
    """The same of amounts, whose bins in rising order are the classes of ``counts``.
    At the end t of each bin an answer is at most t or above, so that every t is a gate of two classes, and Γ(z, t) is
    by how much the share of group z's answers up to t differs, in either direction: the largest Γ is the
    Kolmogorov-Smirnov distance at these t. E is the sum over all z and t. An answer is admissible if it lowers E, or
    leaves E as it is with every Γ(z, t) of its group below γ. What the other gate promises follows in the same way."""

    _amounts = True
