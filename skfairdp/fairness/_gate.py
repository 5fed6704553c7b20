"""The running-count gate: which classes may still be given to a group without widening the fairness gap."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp.fairness import _gate_stream as _stream
from skfairdp.fairness._gaps import GAPS, as_counts, check_option, tally
from skfairdp.fairness._gate_blocks import run_in_blocks

GATES = ("excess", "local")
_GAP_CODES = {"others": _stream.OTHERS, "overall": _stream.OVERALL, "between": _stream.BETWEEN}

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
        ``"excess"`` is the rule above. ``"local"`` is the FairPATE paper's check, Γ'(z, k) < γ alone: it does
        not keep the gap within γ for three or more groups or classes. The two agree for Z = K = 2 with
        ``disparity="others"`` whenever 2γ(M + 1) >= 1, so that one answer cannot carry Γ across the whole band [-γ,
        γ].
    counts : array-like of shape (n_groups, n_classes) or None, default=None
        Answers already given; None starts from zero.

    Raises
    ------
    ValueError
        A parameter is outside its range.

    Notes
    -----
    Values of E and Γ that differ by less than 1e-12 count as equal (so a γ below that is 0). Ties are thus
    decided as in exact arithmetic while groups have fewer than about 1e5 answers, and every bound above holds
    to 1e-12 beyond.

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

    def __init__(
        self,
        n_groups: int,
        n_classes: int,
        *,
        gamma: float | None,
        min_count: int = 50,
        disparity: str = "others",
        gate: str = "excess",
        counts: ArrayLike | None = None,
    ) -> None:
        _check_integer(n_groups, 1, "n_groups")
        _check_integer(n_classes, 1, "n_classes")
        _check_integer(min_count, 0, "min_count")
        if gamma is not None and not (isinstance(gamma, numbers.Real) and not isinstance(gamma, bool) and gamma >= 0):
            raise ValueError(
                "The 'gamma' parameter of FairnessGate must be None or a float in the range [0, inf]. "
                f"Got {gamma!r} instead."
            )
        check_option(disparity, GAPS, "disparity", "FairnessGate")
        check_option(gate, GATES, "gate", "FairnessGate")
        self.n_groups, self.n_classes = int(n_groups), int(n_classes)
        self.gamma = None if gamma is None or np.isinf(gamma) else float(gamma)
        self.min_count, self.disparity, self.gate = int(min_count), disparity, gate
        inner = np.zeros((n_groups, n_classes), dtype=np.int64)
        if counts is not None:
            inner = as_counts(counts, (self.n_groups, self.n_classes), owner="FairnessGate")
        # Lists, not arrays: single entries are read and written far more often than the whole.
        self._counts, self._sizes, self._sums = inner.ravel().tolist(), inner.sum(1).tolist(), inner.sum(0).tolist()
        # E of the counts, and an upper bound on every Γ; None where a look is due.
        self._excess: float | None = None
        self._peak: float | None = None

    @property
    def counts(self) -> NDArray[np.int64]:
        """Answers given so far, shape (n_groups, n_classes); a copy."""
        return np.array(self._counts, dtype=np.int64).reshape(self.n_groups, self.n_classes)

    def admissible(self, z: int) -> NDArray[np.bool_]:
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
        size = self._sizes[z]
        if self.gamma is None or size < self.min_count:
            return np.ones(self.n_classes, dtype=bool)
        gap, local, gamma = self._rule
        if not local and self._far_from_gamma(size):
            return np.ones(self.n_classes, dtype=bool)
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
        self._counts[z * self.n_classes + k] += 1
        self._sizes[z] += 1
        self._sums[k] += 1
        self._excess = None
        if self._peak is not None:
            self._peak += 1.0 / self._sizes[z]

    def excess(self) -> float:
        """Return E = Σ max(0, Γ(z, k) - γ), the amount by which the answers so far exceed γ in total.

        Returns
        -------
        excess : float
            At least 0.
        """
        if self.gamma is None:
            return 0.0
        if self._excess is None:
            self._look()
        assert self._excess is not None
        return self._excess

    def is_stuck(self) -> bool:
        """Return whether no group may have any class: nothing is answered any more unless counts come from outside.

        Returns
        -------
        is_stuck : bool
            Whether every answer would be refused.
        """
        return not any(self.admissible(z).any() for z in range(self.n_groups))

    def run(self, groups: ArrayLike, labels: ArrayLike, *, engine: str = "auto") -> NDArray[np.bool_]:
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
            inner = self.counts + tally(z, k, (self.n_groups, self.n_classes))
            self._counts, self._sizes, self._sums = inner.ravel().tolist(), inner.sum(1).tolist(), inner.sum(0).tolist()
            return np.ones(len(z), dtype=bool)
        compiled = None
        if engine == "numba" or (engine == "auto" and len(z) >= _WORTH_COMPILING):
            compiled = _stream.compiled_run()
        if engine == "numba" and compiled is None:
            raise ImportError("engine='numba' of FairnessGate.run needs numba: pip install 'skfairdp[fast]'.")
        if compiled is None and len(z) < _WORTH_BLOCKS and len(self._counts) < _MANY_CELLS:
            mask = bytearray(len(z))
            _stream.run(*self._rule, self.min_count, *self._state, z.tolist(), k.tolist(), mask)
            decisions = np.frombuffer(mask, dtype=bool).copy()
        elif compiled is None:
            _, local, gamma = self._rule
            inner = self.counts
            decisions = run_in_blocks(self.disparity, local, gamma, self.min_count, inner, z, k)
            self._counts, self._sizes, self._sums = inner.ravel().tolist(), inner.sum(1).tolist(), inner.sum(0).tolist()
        else:
            decisions = np.zeros(len(z), dtype=bool)
            state = [np.array(part, dtype=np.int64) for part in self._state]
            compiled(*self._rule, self.min_count, *state, z, k, decisions)
            self._counts, self._sizes, self._sums = (part.tolist() for part in state)
        self._excess = self._peak = None
        return decisions

    def copy(self) -> "FairnessGate":
        """Return an independent gate with the same rule and counts.

        Returns
        -------
        gate : FairnessGate
            Counting on by itself.
        """
        return FairnessGate(
            self.n_groups,
            self.n_classes,
            gamma=self.gamma,
            min_count=self.min_count,
            disparity=self.disparity,
            gate=self.gate,
            counts=self.counts,
        )

    @property
    def _rule(self) -> tuple[int, bool, float]:
        assert self.gamma is not None
        # Where the two gates agree (see the class docstring) the local one is run: it looks at one cell.
        local = self.gate == "local" or (
            self.n_groups == self.n_classes == 2
            and self.disparity == "others"
            and 2 * self.gamma * (self.min_count + 1) >= 1
        )
        return _GAP_CODES[self.disparity], local, self.gamma

    @property
    def _state(self) -> tuple[list[int], list[int], list[int]]:
        return self._counts, self._sizes, self._sums

    def _look(self) -> None:
        assert self.gamma is not None
        self._excess, self._peak = _stream.excess_and_peak(_GAP_CODES[self.disparity], self.gamma, *self._state)

    def _far_from_gamma(self, size: int) -> bool:
        """Whether an answer to a group of ``size``, moving Γ by at most 1/(size + 1), keeps all below γ."""
        assert self.gamma is not None
        reach = self.gamma - _stream.TOLERANCE - 1.0 / (size + 1)
        if self._peak is None or (self._peak >= reach and self._excess is None):
            self._look()
        assert self._peak is not None
        return self._peak < reach

    def _code(self, code: int, n: int, what: str) -> int:
        if not (isinstance(code, numbers.Integral) and 0 <= code < n):
            raise ValueError(f"FairnessGate needs a {what} code in 0..{n - 1}.")
        return int(code)

    def _codes(self, codes: ArrayLike, n: int, name: str) -> NDArray[np.int64]:
        array = np.asarray(codes)
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            raise ValueError(f"The '{name}' of FairnessGate.run must be one column of integer codes.")
        if array.size and (array.min() < 0 or array.max() >= n):
            raise ValueError(f"The '{name}' of FairnessGate.run must lie in 0..{n - 1}.")
        return array.astype(np.int64, copy=False)


def _check_integer(value: Any, low: int, name: str) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < low:
        raise ValueError(
            f"The '{name}' parameter of FairnessGate must be an int in the range [{low}, inf). Got {value!r} instead."
        )
