"""Logistic-regression teachers, fitted together by batched Newton steps."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator

from skfairdp._teachers._partition import Parts, check_number, numeric_rows, rounded_down, run_tasks
from skfairdp._typing import Bools, Floats, Ints, Reals
from skfairdp._utils import BLAS

# Parts are padded to a multiple of this many rows, so that sizes that differ by one share a batch.
_PADDING = 8
_SCORES = 2**21  # of teachers on rows asked about, worked out together
_LARGEST = 1e300  # that an entry may be in its own units
_FARTHEST = 8.0  # times as far as a Newton step


@dataclass(eq=False, repr=False)
class LogisticTeachers(BaseEstimator):
    r"""L2-penalised logistic regressions as teachers; what ``teacher="logistic"`` stands for.

    Each teacher minimises :math:`C \sum_i \log(1 + e^{-s_i (w^\top x_i + b)}) + \|w\|^2 / 2` with
    :math:`s_i = \pm 1`, the objective of ``sklearn.linear_model.LogisticRegression`` (the intercept is not
    penalised). Parts with three or more classes are fitted one class against the rest, and the largest score wins.

    All teachers take damped Newton steps together: one batched product builds their Hessians, one batched solve
    their steps. Where a part has fewer rows than features the problem is rotated into the span of its rows first
    (QR of the transposed part), which leaves the objective unchanged and the Hessian of the size of the part.

    Parameters
    ----------
    C : float, default=1.0
        Inverse penalty, per row of the teacher's own part; larger fits closer.
    max_iter : int, default=50
        Largest number of Newton steps; 5 to 10 are usual.
    tol : float, default=1e-6
        A teacher stops when no entry of its mean gradient exceeds this.
    scale : array-like of shape (n_features,), default=None
        Public numbers above 0 that columns are divided by, so that the penalty does not hang on their units. None: 1.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from skfairdp.ensemble import LogisticTeachers
    >>> clone(LogisticTeachers(C=0.5)).get_params()
    {'C': 0.5, 'max_iter': 50, 'scale': None, 'tol': 1e-06}
    """

    C: float = 1.0
    _: KW_ONLY
    max_iter: int = 50
    tol: float = 1e-6
    scale: ArrayLike | None = None

    # Entries of the design matrices in one batch (2 MiB): read several times per step, they should stay in cache.
    _batch_entries: ClassVar[int] = 2**18
    _teachers_per_task: ClassVar[int] = 32

    def _validate(self, X: Any) -> Reals:
        """Check the parameters and return X as a finite float array."""
        check_number(self, "C", above=0)
        check_number(self, "max_iter", least=1, integer=True)
        check_number(self, "tol", least=0)
        rows = numeric_rows(X, owner="LogisticTeachers")
        scale = np.ones(rows.shape[1]) if self.scale is None else np.asarray(self.scale, dtype=np.float64)
        if scale.shape != rows.shape[1:] or not (np.isfinite(scale) & (scale > 0)).all():
            raise ValueError(
                "The 'scale' parameter of LogisticTeachers must have a finite number above 0 for each of the "
                f"{rows.shape[1]} columns. Got {self.scale!r} instead."
            )
        return rows

    def _rehearse(self, X: Any, n_classes: int) -> None:
        """Try the parameters on public rows; raise the error that training would meet."""
        self._validate(X)

    def _fit_parts(self, X: Reals, y: Ints, parts: Parts, *, n_jobs: int | None, verbose: int) -> "LogisticEnsemble":
        """Fit every part; see :func:`fit_teachers`."""
        n_teachers, n_classes = parts.seen.shape
        coef = np.zeros((n_teachers, n_classes, X.shape[1]))
        scored, intercept = np.zeros((n_teachers, n_classes), dtype=bool), np.zeros((n_teachers, n_classes))
        blocks = parts.blocks(self._teachers_per_task)
        units = np.ones(X.shape[1]) if self.scale is None else np.asarray(self.scale, dtype=np.float64)
        most, settings = self._batch_entries, (float(self.C), int(self.max_iter), float(self.tol))

        def task(block: Parts) -> tuple[Any, ...]:
            rows, sizes = np.concatenate(block.rows), np.array(list(map(len, block.rows)))
            return X[rows], y[rows], sizes, block.seen, units, most, settings

        results = run_tasks(_fit_block, map(task, blocks), len(blocks), n_jobs=n_jobs, verbose=verbose)
        start = 0
        for block, (owner, target, w, b) in zip(blocks, results, strict=True):
            scored[start + owner, target] = True
            coef[start + owner, target], intercept[start + owner, target] = w / units, b
            start += len(block.seeds)
        # Two classes need one regression; the other class has score 0. Unseen classes are never answered.
        return LogisticEnsemble(coef, np.where(scored, intercept, np.where(parts.seen & ~scored, 0.0, -np.inf)), scored)


class LogisticEnsemble:
    """One linear score per teacher and class."""

    def __init__(self, coef: Floats, intercept: Floats, scored: Bools) -> None:
        self.coef, self.intercept, self.scored = coef, intercept, scored
        # All in one product, whatever they have seen: its shape, which the last bits follow, is public.
        self._regressed = coef[np.arange(len(coef)), scored.argmax(axis=1)]
        # Where a part has two classes there is one regression, on the larger code; the other class has the rest.
        self._seen = np.isfinite(intercept)
        of_two = (self._seen.sum(axis=1) == 2) & (scored.sum(axis=1) == 1)
        self._single, self._others = np.flatnonzero(of_two), np.flatnonzero(~of_two)
        self._first, self._second = (known[self._single].argmax(axis=1) for known in (self._seen, scored))

    def predict(self, X: Any) -> NDArray[np.signedinteger]:
        """Votes (n_teachers, n_rows); the largest score, ties to the smaller code."""
        n_teachers, n_classes, n_features = self.coef.shape
        X = numeric_rows(X, owner="LogisticTeachers", n_features=n_features)
        out = np.empty((n_teachers, X.shape[0]), dtype=np.int8 if n_classes < 128 else np.int32)
        single, others = self._single, self._others
        threshold = np.zeros((n_teachers, 1))
        threshold[single, 0] = -self.intercept[single, self._second]
        first, apart = np.zeros((2, n_teachers, 1), dtype=out.dtype)
        first[single, 0], apart[single, 0] = self._first, self._second - self._first
        offsets = self.intercept[others][:, :, None]
        chunk = max(1, _SCORES // (n_teachers * n_classes))
        for some in (slice(start, start + chunk) for start in range(0, X.shape[0], chunk)):
            # Entries near the largest float may overflow to a score without a sign; any vote will do there.
            with np.errstate(over="ignore", invalid="ignore"):
                out[:, some] = first + apart * (self._regressed @ X[some].T > threshold).view(np.int8)
                if len(others):
                    out[others, some] = (self._scores(X[some]) + offsets).argmax(axis=1)
        return out

    def summed_probabilities(self, X: Any, n_classes: int, step: float | None = None) -> Floats:
        """Sum over teachers of their class probabilities; of one class against the rest, scaled to sum to 1."""
        X = numeric_rows(X, owner="LogisticTeachers", n_features=self.coef.shape[2])
        out = np.empty((X.shape[0], n_classes))
        first, second = self._first, self._second
        intercept = self.intercept[self._single, second]
        chunk = max(1, _SCORES // (len(self.coef) * n_classes))
        for start in range(0, X.shape[0], chunk):
            rows = X[start : start + chunk]
            total = np.zeros((n_classes, len(rows)))
            # Entries near the largest float may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                proba = rounded_down(_finite_expit((self._regressed @ rows.T)[self._single] + intercept[:, None]), step)
                if len(others := self._others):  # of one class against the rest
                    allowed = self._seen[others][:, :, None]
                    scores = self._scores(rows) + np.where(allowed, self.intercept[others][:, :, None], 0.0)
                    apart = np.where(allowed, _finite_expit(scores), 0.0)
                    sums = apart[:, :1].copy()
                    for k in range(1, n_classes):  # one after the other, however many teachers there are
                        sums += apart[:, k : k + 1]
                    even = allowed / allowed.sum(axis=1, keepdims=True)
                    shares = np.where(sums > 0, apart / np.where(sums > 0, sums, 1.0), even)
                    total += rounded_down(shares, step).sum(axis=0)
            for k in range(n_classes):
                mine = first == k
                total[k] += proba[second == k].sum(axis=0) + mine.sum() - proba[mine].sum(axis=0)
            out[start : start + chunk] = total.T
        return out

    def _scores(self, rows: Reals) -> Floats:
        """Products (n_others, n_classes, n_rows) of parts with one class, or with three or more, without intercepts.
        Of all parts, whatever they have seen: last bits follow the shape of a product, which is public."""
        n_teachers, n_classes, n_features = self.coef.shape
        products: Floats = self.coef.reshape(-1, n_features) @ rows.T
        return products.reshape(n_teachers, n_classes, -1)[self._others]


def _finite_expit(scores: Floats) -> Floats:
    """Logistic function; a score without a sign, from entries near the largest float, says nothing."""
    return expit(np.nan_to_num(scores, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf))


def _fit_block(
    X: Reals, y: Ints, sizes: Ints, seen: Bools, units: Floats, batch_entries: int, settings: tuple[Any, ...]
) -> tuple[NDArray[Any], ...]:
    """Fit the regressions of some teachers, whose rows follow each other in X.
    Returns the teacher, the class, the weights and the intercept of each regression."""
    n_classes_seen = seen.sum(axis=1)
    # Of two classes, the larger code is regressed on; of more, each.
    wanted = np.where((n_classes_seen == 2)[:, None], seen & (seen.cumsum(axis=1) == 2), seen)
    owner, target = np.nonzero(wanted & (n_classes_seen > 1)[:, None])
    coef, intercept = np.empty((len(owner), X.shape[1])), np.empty(len(owner))
    first = np.cumsum(sizes) - sizes
    # A regression's padded size depends on its own part only, and so does everything computed from it.
    padded = -(-sizes // _PADDING) * _PADDING
    # Used again by every batch: an allocator that hands memory back at once, as dask sets up its workers to do, makes
    # the system clear as many pages as are asked for.
    largest = int(padded[owner].max(initial=0)) * (X.shape[1] + 1)
    X, in_units = np.ascontiguousarray(X), bool((units != 1).any())
    room = np.empty((2, max(batch_entries, largest)))
    # Threads would not pay for matrices this small, and their number would change the last bits.
    with BLAS.limit(limits=1):
        for size in np.unique(padded[owner]):
            same = np.flatnonzero(padded[owner] == size)
            batch = max(1, batch_entries // (size * (X.shape[1] + 1)))
            for at in (same[i : i + batch] for i in range(0, len(same), batch)):
                teacher = owner[at]
                real = np.arange(size) < sizes[teacher][:, None]
                index = np.where(real, first[teacher][:, None] + np.arange(size), first[teacher][:, None])
                rows = room[0, : real.size * X.shape[1]].reshape(*real.shape, X.shape[1])
                np.take(X, index, axis=0, out=rows, mode="clip")  # any other mode copies once more
                if in_units:
                    with np.errstate(over="ignore"):  # of private rows no warning may say that they are too large
                        np.divide(rows, units, out=rows)
                    np.clip(rows, -_LARGEST, _LARGEST, out=rows)
                rows[~real] = 0.0
                labels = (y[index] == target[at][:, None]) & real
                coef[at], intercept[at] = _newton(rows, labels.astype(float), real, room[::-1], *settings)
    return owner, target, coef, intercept


def _newton(
    X: Floats, y: Floats, real: Bools, room: Floats, C: float,
    max_iter: int, tol: float,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Fit m regressions X (m, n, d), y (m, n) in {0, 1}; rows that are not ``real`` must be zero in both.
    ``fit_softmax`` solves one regression at a time; here all of them take each step as one array. ``room`` is two lines
    of at least m n (d + 1) numbers to write to; X may be in the second."""
    m, n, d = X.shape
    basis, columns = None, X.transpose(0, 2, 1)
    if n < d:
        basis, columns = np.linalg.qr(columns)
    width = columns.shape[1] + 1  # a column after the other: products of matrices that lie so are faster
    A, spare = room[0, : m * n * width].reshape(m, width, n), room[1]
    A[:, :-1], A[:, -1] = columns, real
    penalty, diagonal = np.append(np.full(width - 1, 1 / C), 0.0), np.arange(width)
    beta, n_real = np.zeros((m, width)), real.sum(axis=1)
    active, eta = np.arange(m), np.zeros((m, n))
    value = _objective(eta, y, beta, penalty)
    # Separable parts with a huge C send scores far out: what overflows there is only a step, which is then refused.
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        for _ in range(max_iter):
            p = expit(eta)
            gradient = np.matmul(A, (p - y[active])[:, :, None])[:, :, 0] + penalty * beta[active]
            going = np.abs(gradient).max(axis=1) > tol * n_real[active]
            if not going.all():
                active, eta, value = active[going], eta[going], value[going]
                p, gradient = p[going], gradient[going]
                left = spare[: p.size * width].reshape(-1, width, n)
                A, spare = np.compress(going, A, axis=0, out=left), A.reshape(-1)
            if not active.size:
                break
            weighted = np.multiply(A, np.sqrt(p * (1 - p))[:, None, :], out=spare[: A.size].reshape(A.shape))
            hessian = np.matmul(weighted, weighted.transpose(0, 2, 1))
            hessian[:, diagonal, diagonal] += penalty
            step = _solve(hessian, gradient)
            moved = np.matmul(step[:, None, :], A)[:, 0]
            share, value = _damping(eta, moved, y[active], beta[active], step, penalty, value)
            # Not share * step: a refused step may be infinite.
            taken = share > 0
            beta[active[taken]] -= share[taken, None] * step[taken]
            eta[taken] -= share[taken, None] * moved[taken]
    coef = beta[:, :-1]
    return (coef if basis is None else np.matmul(basis, coef[:, :, None])[:, :, 0]), beta[:, -1]


def _solve(hessian: Floats, gradient: Floats) -> Floats:
    """Solve m positive semidefinite systems; a singular one gets some descent direction, never an error. Columns of
    very different scale, or repeated ones, can be singular to machine precision; an error would stop all teachers.
    Scaled to a unit diagonal, a ridge of 1e-10 is harmless: it bends the step, not the solution."""
    diagonal = np.arange(hessian.shape[1])
    scale = 1 / np.sqrt(np.maximum(hessian[:, diagonal, diagonal], np.finfo(float).tiny))
    hessian *= scale[:, :, None] * scale[:, None, :]
    hessian[:, diagonal, diagonal] += 1e-10
    hessian[~np.isfinite(hessian).all(axis=(1, 2))] = np.eye(len(diagonal))
    right = (scale * gradient)[:, :, None]
    try:
        step = np.linalg.solve(hessian, right)[:, :, 0]
    except np.linalg.LinAlgError:  # of one of them, which must not end the others
        step = np.concatenate([_solve_one(h, r) for h, r in zip(hessian, right, strict=True)])
    return np.multiply(scale, step, dtype=np.float64)


def _solve_one(hessian: Floats, right: Floats) -> Reals:
    try:
        return np.linalg.solve(hessian[None], right[None])[:, :, 0]
    except np.linalg.LinAlgError:
        return right[None, :, 0]  # the gradient is a descent direction too


def _damping(
    eta: Floats, moved: Floats, y: Floats, beta: Floats, step: Floats, penalty: Floats, value: Floats
) -> tuple[Floats, Floats]:
    """How far to go along each step, and the objective there, which is not raised; 0 where no share does. Far from the
    optimum a Newton step is too short: it is first made about as long as its own line asks for, which saves every third
    step, and halved then until it is good enough."""
    p = expit(eta - moved)
    slope = ((p - y) * moved).sum(axis=1) + (penalty * (beta - step) * step).sum(axis=1)
    curvature = (p * (1 - p) * moved**2).sum(axis=1) + (penalty * step**2).sum(axis=1)
    share = np.fmax(np.minimum(1 + slope / curvature, _FARTHEST), 1 / _FARTHEST)
    for _ in range(30):
        new = _objective(eta - share[:, None] * moved, y, beta - share[:, None] * step, penalty)
        worse = ~(new <= value + 1e-12 * np.abs(value))
        if not worse.any():
            return share, new
        share[worse] /= 2
    share[worse], new[worse] = 0.0, value[worse]
    return share, new


def _objective(eta: Floats, y: Floats, beta: Floats, penalty: Floats) -> Floats:
    """Negative log-likelihood plus penalty of each regression (rows of zeros add a constant)."""
    return (np.logaddexp(0, eta) - y * eta).sum(axis=1) + 0.5 * (penalty * beta**2).sum(axis=1)
