"""A student for noisy vote shares: unbiased, bent where they are for it, and held to parity on public rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, cho_factor, cho_solve
from scipy.special import expit, log_expit, ndtr
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp._class_sums import shares_by
from skfairdp._docs import shared_docs
from skfairdp._typing import Floats as Array, Ints as Codes
from skfairdp._utils import BLAS, NamedEstimator, fit_softmax, row_blocks
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.fairness import largest_disparity, tally

#: Shares of the groups' differences that are taken out, tried in this order until the gap is small enough: of mean
#: scores, and of smooth rates, which are nearer to what is asked for and need not be turned round as far.
LEVELS = np.round(np.arange(0.0, 2.01, 0.1), 2)
LEVELS_OF_RATES = np.round(0.8 * LEVELS, 2)
DOUBT = 3.0  # log odds against bends, so that they need evidence
#: A rule with bends gives way to a straight one, where only that comes as near to parity.
NEAR = 0.02
#: What sets two groups of a table apart, in rates: of ordinary ones .02 to .2.
USUAL_GAP = 0.1
_STEPS = 8  # of Newton's method, at each level
#: One bend for each side: rules have three pieces.
QUARTILES = 0.25, 0.75
FARTHEST = 3.0  # standard deviations of the public rows, beyond which a number is no further beyond a quartile
#: Share of the steepest slopes there may be, those of rows at the threshold. Below it no row is near: each group has
#: one answer, and only weights far away would change a rate.
_OUT_OF_REACH = 1e-6
#: Rows, at least and for each weight, by which the curvature of a loss is known well enough to step by.
_ENOUGH, _ENOUGH_EACH = 2**14, 100


@dataclass(frozen=True)
class HingeFeatures:
    """Adds columns to a matrix: how far a number is below the lower and above the upper quartile of public rows, in
    their standard deviations, within three of their mean. No bend for a column with two public values, or for a
    quartile that no public row is beyond. Each row by itself, and a function of public rows alone."""

    numbers: Codes
    center: Array
    scale: Array
    below: Codes
    above: Codes
    low: Array
    high: Array
    farthest: ClassVar[float] = FARTHEST

    @classmethod
    def of(cls, X_public: Array) -> "HingeFeatures":
        """The bends that follow from public rows."""
        least, most = X_public.min(axis=0), X_public.max(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            center, scale = X_public.mean(axis=0), X_public.std(axis=0)
        is_flag = ((X_public == least) | (X_public == most)).all(axis=0)
        numbers = np.flatnonzero(~is_flag & np.isfinite(center) & np.isfinite(scale) & (scale > 0))
        center, scale = center[numbers], scale[numbers]
        low, high = np.quantile((X_public[:, numbers] - center) / scale, QUARTILES, axis=0)
        below = np.maximum((least[numbers] - center) / scale, -FARTHEST) < low
        above = np.minimum((most[numbers] - center) / scale, FARTHEST) > high
        bent = below | above
        places = np.flatnonzero(below[bent]), np.flatnonzero(above[bent])
        return cls(numbers[bent], center[bent], scale[bent], *places, low[below], high[above])

    def __call__(self, X: Array) -> Array:
        """The columns of X and, after them, the bends."""
        if not len(self.numbers):
            return X
        start, middle = X.shape[1], X.shape[1] + len(self.below)
        terms = np.empty((len(X), middle + len(self.above)))
        n_bent = len(self.numbers)
        numbers = slice(start) if n_bent == start else self.numbers  # all of them without a copy
        below, above = (slice(None) if len(some) == n_bent else some for some in (self.below, self.above))
        for some in row_blocks(len(X)):
            here = terms[some]
            here[:, :start] = X[some]
            with np.errstate(over="ignore"):  # of a number far away, which counts as no more than the farthest
                units = (here[:, numbers] - self.center) / self.scale
            np.clip(units, -FARTHEST, FARTHEST, out=units)
            np.subtract(self.low, units[:, below], out=here[:, start:middle])
            np.subtract(units[:, above], self.high, out=here[:, middle:])
            np.maximum(here[:, start:], 0.0, out=here[:, start:])
        return terms


#: No bends.
NO_HINGES = HingeFeatures.of(np.zeros((1, 0)))


@dataclass(frozen=True)
class ShareProblem:
    """What a student of shares is fitted to: rows and targets, and the public rows on which parity is measured.
    ``terms`` are those of the ``rows`` asked about and of the ``public`` ones. ``penalty`` is that of each weight; a
    little on the intercept keeps it finite when noise drives all shares past 0 or 1."""

    terms: Array
    rows: Array
    public: Array
    targets: Array
    scored: Array
    bends: HingeFeatures
    center: Array
    scale: Array
    alpha: float
    penalty: Array

    @classmethod
    def of(
        cls, X: Array, shares: Array, public: Array | None, noise: float, alpha: float | None, *, bends: bool = False
    ) -> "ShareProblem":
        """Choose bends or none, scale and penalty. A common scale keeps rare one-hot columns small; a scale per feature
        undoes the user's units. The released shares decide between the two and the half-way: post-processing."""
        X = np.asarray(X, dtype=float)
        public = X if public is None else np.asarray(public, dtype=float)
        targets = shares + (1 - shares.sum(axis=1, keepdims=True)) / shares.shape[1]
        scored = targets[:, 1:] if shares.shape[1] == 2 else targets
        candidates = []
        for bent, doubt in ((NO_HINGES, 0.0), *([(HingeFeatures.of(public), DOUBT)] if bends else ())):
            terms = bent(public)
            center = terms.mean(axis=0)
            terms = terms - center
            std = np.sqrt(np.einsum("ij,ij->j", terms, terms) / len(public))
            std = np.where(std > 0, std, 1.0)
            common, terms = float(np.exp(np.log(std).mean())), terms if public is X else bent(X) - center
            squares, products = terms.T @ terms, terms.T @ (scored - scored.mean(axis=0))
            del terms
            for power in (0.0, 0.5, 1.0):
                scale = common * (std / common) ** power
                sums = squares / np.outer(scale, scale), products / scale[:, None]
                evidence, likeliest = _evidence(*sums, scored, noise)
                candidates.append((evidence - doubt, likeliest, bent, center, scale))
        _, likeliest, bent, center, scale = max(candidates, key=lambda candidate: candidate[0])
        every = [X] if public is X else [X, public]
        terms, start = np.ones((sum(map(len, every)), len(scale) + 1)), 0
        for rows in every:
            here = terms[start : start + len(rows), :-1]
            for some in row_blocks(len(rows)):
                np.divide(bent(rows[some]) - center, scale, out=here[some])
            start += len(rows)
        of_each = likeliest if alpha is None else float(alpha)
        penalty = np.append(np.full(len(scale), of_each), 1e-6 * len(targets))
        seen = terms[: len(targets)], terms[len(terms) - len(public) :]
        return cls(terms, *seen, targets, scored, bent, center, scale, of_each, penalty)


@dataclass(frozen=True)
class LevelRates:
    """How often each group gets each class at each level of a student, how far off that may be, and which of these
    rates are compared, by weights of the groups."""

    rates: Array
    errors: Array
    weights: Array

    @property
    def chance(self) -> Array:
        """Standard errors of the comparisons, (n_levels, n_comparisons, n_classes)."""
        return np.sqrt(np.square(self.weights) @ np.square(self.errors))

    @property
    def gaps(self) -> Array:
        """The largest root mean square of a disparity at each level, whose rates are known up to errors. Without these
        the level of several whose noise happens to hide its gap would be taken."""
        apart = np.sqrt(np.square(np.maximum(self.weights @ self.rates, 0.0)) + np.square(self.chance))
        return np.minimum(apart.max(axis=(1, 2), initial=0.0), 1.0)

    def worth_closing(self, gamma: float) -> "LevelRates":
        """Without comparisons that are not known to within ``gamma``, and whose likeliest difference keeps to it: what
        is seen, as far as it is no error, if groups are about as far apart as usual. What else is seen is chance, and
        to make up for that at any price helps nobody."""
        chance = self.chance[0]
        likeliest = self.weights @ self.rates[0] / (1 + np.square(chance / USUAL_GAP))
        return replace(self, weights=self.weights[((chance <= gamma) | (likeliest > gamma)).any(axis=1)])


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class SoftLabelStudent(ClassifierMixin, NamedEstimator):
    """Logistic regression on released vote shares, with a bounded demographic disparity on public rows.

    It may bend: each number then has two more columns, how far it is below the lower and above the upper quartile of
    the public rows, for one that matters only where it is small, or only where it is large. The evidence of the shares
    decides whether there are any. Where only a straight rule comes near to parity, there are none.

    The logistic loss is linear in its target, so noisy shares (outside [0, 1] too) leave its gradient unbiased: nothing
    is clipped or rounded to a label first. Everything it reads is public or differentially private, so whatever it does
    is post-processing and costs nothing.

    Parity: the weights are fitted again with the differences of the groups' rates held to ``(1 - level)`` times what
    they are without a constraint. The smallest level in 0, 0.08, … 1.6 whose hard predictions have a gap of at most
    ``gamma`` on the public rows is taken. What is held are smooth rates, with a threshold as wide as the scores are
    spread: mean scores of groups can agree where the rates of a group with more extreme rows do not. Of three or more
    classes the mean scores are held, at levels from 0 to 2.

    Parameters
    ----------
    gamma : float or None, default=None
        Largest demographic disparity of the predictions on the public rows. None asks for none.
    disparity : {"others", "overall", "between"}, default="others"
        Which disparity.
    alpha : float or None, default=None
        L2 penalty. None: the value with the largest evidence under the known noise (a ridge approximation).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features + n_bends, n_outputs)
        One output for two classes, else one per class. Post-processing of released values: public.
    intercept_ : ndarray of shape (n_outputs,)
    bends_ : object
        The columns that rows get before they are weighed. A function of the public rows.
    alpha_ : float
        The penalty used.
    n_followed_ : float
        How many directions of the features the shares are followed in, each as far as the penalty lets their noise
        through; at most one for each feature.
    level_ : float
        The parity level used.
    gap_ : float or None
        Disparity of its predictions on the public rows; None without groups.
    satisfied_ : bool
        Whether ``gap_`` is at most ``gamma``.
    classes_ : ndarray of shape (n_classes,)
        Class codes, 0 to n_classes - 1.
    {n_features_in_}

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.pate import SoftLabelStudent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> shares = (X[:, 0] > 0) + rng.normal(size=500)
    >>> student = SoftLabelStudent().fit(X, np.column_stack([1 - shares, shares]), noise_std=1.0)
    >>> print(f"{np.mean(student.predict(X) == (X[:, 0] > 0)):.1f}")
    0.9
    """

    gamma: float | None = None
    disparity: str = "others"
    alpha: float | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [Interval(Real, 0, 1, closed="both"), None],
        "disparity": [StrOptions({"others", "overall", "between"})],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
    }

    # Threads do not pay for products this small; on a busy machine their waiting made the fit 20 times slower.
    @BLAS.wrap(limits=1)
    def fit(
        self,
        X: Array,
        shares: Array,
        *,
        noise_std: float = 0.0,
        X_public: Array | None = None,
        groups: Codes | None = None,
        n_groups: int | None = None,
        bends: bool = False,
    ) -> "SoftLabelStudent":
        """Fit on released shares.

        Parameters
        ----------
        {released_shares, rows_of_parity}
        bends : bool, default=False
            Whether the rule may bend, where the evidence of the shares is for it.

        {returns_student}
        """
        self._validate_params()
        if self.gamma is not None and groups is None:
            raise ValueError("SoftLabelStudent needs 'groups' to hold its predictions to 'gamma'.")
        n_groups = 0 if groups is None else int(n_groups or groups.max() + 1)
        given = X, shares, X_public, noise_std, self.alpha
        self.n_features_in_, self.classes_ = X.shape[1], np.arange(shares.shape[1])
        problem = ShareProblem.of(*given, bends=bends)
        self._path = self._solutions(problem, groups, n_groups)
        if len(problem.bends.numbers) and all(gap is not None and gap > NEAR for _, _, gap in self._path):
            straight = ShareProblem.of(*given)
            path = self._solutions(straight, groups, n_groups)
            if any(gap is not None and gap <= NEAR for _, _, gap in path):
                problem, self._path = straight, path
        self.bends_, self._center, self._scale = problem.bends, problem.center, problem.scale
        self.alpha_ = problem.alpha
        terms, mean = problem.rows[:, :-1], np.clip(problem.targets.mean(axis=0), 0.05, 0.95)
        sizes = float((mean * (1 - mean)).mean()) * np.maximum(np.linalg.eigvalsh(terms.T @ terms), 0.0)
        self.n_followed_ = float(min(np.square(sizes / np.maximum(sizes + self.alpha_, 1e-300)).sum(), X.shape[1]))
        self._seen: LevelRates | None = None
        self._counted: tuple[Array, Array] | None = None
        return self._select()

    def _solutions(
        self, problem: "ShareProblem", groups: Codes | None, n_groups: int
    ) -> list[tuple[float, Array, float | None]]:
        """Level, weights and gap of each step of the path. It serves every gamma: a sweep re-uses them all."""
        path: list[tuple[float, Array, float | None]] = []
        for level, weights in _path_of(problem, groups, n_groups):
            gap = None
            if groups is not None:
                predicted = _decide(problem.public @ weights)
                gap = largest_disparity(tally(groups, predicted, (n_groups, len(self.classes_))), self.disparity)
            path.append((level, weights, gap))
        return path

    def with_gamma(self, gamma: float | None, seen: LevelRates | None = None) -> "SoftLabelStudent":
        """Return a student for another ``gamma`` from the same path, without fitting again.

        Parameters
        ----------
        gamma : float or None
            Largest demographic disparity; None asks for none.
        seen : LevelRates or None, default=None
            For each level, what its gap may be on other rows. The first that is within ``gamma`` is taken; where there
            is none, the smallest.

        Returns
        -------
        student : SoftLabelStudent
            Fitted, and held to this ``gamma``.
        """
        check_is_fitted(self, "coef_")
        if gamma is not None and self._path[0][2] is None:
            raise ValueError(
                "This student was fitted without groups, so it cannot be held to 'gamma'. Fit it with 'groups', or "
                "leave 'gamma' None."
            )
        other = SoftLabelStudent(gamma=gamma, disparity=self.disparity, alpha=self.alpha)
        other.__dict__ = {**vars(self), **other.get_params()}
        other._seen = other._seen if seen is None else seen
        return other._select()

    def answers_at_levels(self, X: Array) -> NDArray[np.unsignedinteger]:
        """Class codes of the rows at every parity level that was fitted, whichever is taken.

        Parameters
        ----------
        {X_predict}

        Returns
        -------
        ndarray of int of shape (n_levels, n_rows)
            Positions in ``classes_``.
        """
        check_is_fitted(self, "coef_")
        X = np.asarray(X)
        coefs = np.stack([weights[:-1] for _, weights, _ in self._path], axis=1) / self._scale[:, None, None]
        intercepts = np.stack([weights[-1] for _, weights, _ in self._path]) - np.tensordot(self._center, coefs, axes=1)
        answers = np.empty((len(self._path), len(X)), dtype=np.min_scalar_type(len(self.classes_)))
        with np.errstate(all="ignore"):  # of private rows no warning may say that their numbers are too large
            for some in row_blocks(len(X)):
                rows = self.bends_(np.asarray(X[some], dtype=float))
                scores = rows @ coefs.reshape(rows.shape[1], -1) + intercepts.ravel()
                answers[:, some] = _decide(scores.reshape(len(rows), *intercepts.shape)).T
        return answers

    def with_gaps(self, gaps: Array, seen: LevelRates, counts: Array, noise: Array) -> "SoftLabelStudent":
        """Return the same student with other gaps of its levels, from rows that say more than those it was fitted on.

        Parameters
        ----------
        gaps : ndarray of shape (n_levels,)
            What is told of each level.
        seen : LevelRates
            What a level is chosen by.
        counts : ndarray of shape (n_levels, n_groups, n_classes)
            Released counts of the answers to those rows, from which both follow.
        noise : ndarray of the same shape
            Standard deviation of the noise on each of them.

        Returns
        -------
        student : SoftLabelStudent
            Held to its ``gamma`` by them.
        """
        other = self.with_gamma(None)
        other._path = [(*level[:2], gap) for level, gap in zip(self._path, gaps.tolist(), strict=True)]
        other._counted = counts, noise
        return other.with_gamma(self.gamma, seen)

    @property
    def counted(self) -> tuple[Array, Array] | None:
        """Released counts of the answers to private rows, (n_groups, n_classes), and their noise; None without any."""
        return None if self._counted is None else (self._counted[0][self._chosen], self._counted[1][self._chosen])

    @property
    def is_nearest(self) -> bool:
        """Whether no other level has a smaller gap."""
        return bool(self.gap_ is not None and all(gap >= self.gap_ for _, _, gap in self._path if gap is not None))

    def _select(self) -> "SoftLabelStudent":
        gaps, chosen = np.array([np.inf if gap is None else gap for _, _, gap in self._path]), 0
        if self.gamma is not None:
            gaps = gaps if self._seen is None else self._seen.worth_closing(self.gamma).gaps
            enough = np.flatnonzero(gaps <= self.gamma)
            chosen = int(enough[0] if len(enough) else gaps.argmin())
        self._chosen = chosen
        self.level_, weights, self.gap_ = self._path[chosen]
        self.satisfied_ = self.gamma is None or (self.gap_ is not None and self.gap_ <= self.gamma)
        self.coef_ = weights[:-1] / self._scale[:, None]
        self.intercept_ = weights[-1] - self._center @ self.coef_
        return self

    def _scores(self, X: Array) -> Array:
        check_is_fitted(self, "coef_")
        X = np.asarray(X)
        scores = [
            self.bends_(np.asarray(X[some], dtype=float)) @ self.coef_ + self.intercept_ for some in row_blocks(len(X))
        ]
        return np.concatenate([np.empty((0, len(self.intercept_))), *scores])

    def predict(self, X: Array) -> Codes:
        """Class codes of shape (n_rows,).

        {predicts_labels}
        """
        answers = _decide(self._scores(X))
        return self.classes_[answers]

    def predict_proba(self, X: Array) -> Array:
        """Estimated vote shares of shape (n_rows, n_classes).

        {predicts_proba}
        """
        return shares_by(self._scores(X))


def _decide(scores: Array) -> Codes:
    """Class codes by scores, whose last axis is over the classes; of two the second has one."""
    return (scores[..., 0] > 0).astype(np.int64) if scores.shape[-1] == 1 else scores.argmax(axis=-1)


# ---- parity ----------------------------------------------------------------------------------------------------


def _path_of(
    problem: ShareProblem, groups: Codes | None, n_groups: int
) -> Iterator[tuple[float, Array]]:  # fmt: skip
    """Levels, and weights of shape (n_features + 1, n_outputs), the intercept last."""
    free = _newton(problem)[:, None] if problem.scored.shape[1] == 1 else _softmax(problem, problem.rows)
    yield 0.0, free
    if groups is None or len(np.unique(groups)) < 2 or len(problem.scale) < 2:  # without all features no student
        return
    if free.shape[1] > 1:
        basis, rank = _parity_basis(problem.public[:, :-1], groups, n_groups)
        turned = problem.rows @ basis
        solution = basis.T @ free
        of_means = solution[:rank]
        for level in LEVELS[1:].tolist() if rank else ():  # a few steps from the level before
            solution = _softmax(problem, turned, (1 - level) * of_means, solution)
            yield level, basis @ solution
        return
    is_member = np.equal.outer(np.unique(groups), groups).astype(float)
    members, weights = is_member / is_member.sum(axis=1, keepdims=True) - 1 / len(groups), free[:, 0]
    scores, length = problem.public @ weights, float(np.linalg.norm(problem.public, axis=1).mean())
    rates = SmoothRates(members, max(float(scores.std()), 1e-6), length)
    of_rates, _ = rates.apart(scores)
    before = weights
    for level in LEVELS_OF_RATES[1:].tolist():  # from where the two levels before point to
        start, before = 2 * weights - before, weights
        weights = _held(problem, rates, (1 - level) * of_rates, start)
        yield level, weights[:, None]


@dataclass(frozen=True)
class SmoothRates:
    """How often each group is given the second class, over a threshold without a sharp edge."""

    members: Array
    width: float
    length: float = 1.0

    def apart(self, scores: Array) -> tuple[Array, Array]:
        """How far the rate of each group is from that of all rows, and its slopes by the score of each row."""
        scaled = scores / self.width
        density = np.exp(-0.5 * np.square(scaled)) / (np.sqrt(2 * np.pi) * self.width)
        return self.members @ ndtr(scaled), self.members * density


def _held(problem: ShareProblem, rates: SmoothRates, wanted: Array, w: Array) -> Array:
    """Newton steps to the least loss among weights with which smooth rates are as far apart as wanted. They start near
    by, at the weights of the level before, so that one matrix of second derivatives serves them all. They end where no
    row is near the threshold: a nearly constant student, which no step mends."""
    terms, target, penalty = problem.terms, problem.scored[:, 0], problem.penalty
    scores, asked, seen = terms @ w, slice(len(target)), slice(len(terms) - len(problem.public), None)
    factor = cho_factor(_curvature(terms[asked], scores[asked], penalty))
    pulls = np.zeros((1 + len(rates.members), len(terms)))  # on the score of each row: of the loss, of each rate
    for _ in range(_STEPS):
        pulls[0, asked] = expit(scores[asked]) - target
        apart, pulls[1:, seen] = rates.apart(scores[seen])
        slope, *slopes = pulls @ terms
        free = -cho_solve(factor, slope + penalty * w)
        left, singular, right = np.linalg.svd(slopes, full_matrices=False)
        kept = singular > 1e-3 * max(float(singular[0]), 1e-300)  # that of the last group follows from the others
        kept[len(w) - 2 :] = False
        if singular[0] < _OUT_OF_REACH * rates.length / (np.sqrt(2 * np.pi) * rates.width):
            break
        lines, missing = right[kept], (left[:, kept].T @ (wanted - apart)) / singular[kept]
        across = cho_solve(factor, lines.T)
        step = free + across @ np.linalg.solve(lines @ across, missing - lines @ free)
        moves = terms @ step
        moved = float(moves[seen].std())
        share = min(1.0, 0.5 * rates.width / max(moved, 1e-300))  # slopes hold near by
        w, scores = w + share * step, scores + share * moves
        if moved < 1e-3 * rates.width:
            break
    return w


def _parity_basis(X: Array, groups: Codes, n_groups: int) -> tuple[Array, int]:
    """Orthonormal basis of terms whose first ``rank`` directions span the differences of group means; the last is 1."""
    present = [z for z in range(n_groups) if np.any(groups == z)]
    differences = np.column_stack([X[groups == z].mean(axis=0) - X.mean(axis=0) for z in present])
    left, singular, _ = np.linalg.svd(differences, full_matrices=True)
    rank = int(np.sum(singular > 1e-10 * max(float(singular[0]), 1e-300))) if singular.size else 0
    # All of feature space taken out would leave a constant prediction: parity, but no student.
    return block_diag(left, 1.0), min(rank, X.shape[1] - 1)


# ---- fitting ---------------------------------------------------------------------------------------------------


def _evidence(squares: Array, products: Array, targets: Array, noise_std: float) -> tuple[float, float]:
    """Largest log marginal likelihood of the shares in a linear model with known noise and a scatter of their own,
    chosen on the same grid, and its penalty, carried to the logistic loss through the slope v = t(1 - t) at the mean
    share. All it needs are products of terms with each other and with the centred targets."""
    n, d = len(targets), len(squares)
    if n < 2 or d == 0:
        return 0.0, 1.0
    values, vectors = np.linalg.eigh(squares)
    squared = np.maximum(values, 0.0)
    keep = squared > 1e-9 * max(float(squared[-1]), 1e-300)
    squared = squared[keep]
    centred = targets - targets.mean(axis=0)
    moments = ((vectors[:, keep].T @ products) ** 2).sum(axis=1) / squared
    rest = max(float((centred**2).sum() - moments.sum()), 1e-12)
    outputs, spare = targets.shape[1], max((n - 1 - len(squared)) * targets.shape[1], 0)
    mean = np.clip(targets.mean(axis=0), 0.05, 0.95)
    slope = float((mean * (1 - mean)).mean())
    variance = noise_std**2 + slope * np.array([0.05, 0.1, 0.2, 0.4, 0.8])[:, None]
    prior = np.geomspace(1e-7, 1.0, 36)
    v = prior[:, None] * squared + variance[..., None]  # scatter, prior, direction
    fitted = outputs * np.log(v).sum(axis=2) + (moments / v).sum(axis=2)
    logs = -0.5 * (fitted + spare * np.log(variance) + rest / variance)
    logs[np.isnan(logs)] = -np.inf
    best = np.unravel_index(logs.argmax(), logs.shape)
    return float(logs[best]), float((variance / prior * slope)[best] if logs[best] > -np.inf else 1.0)


def _softmax(problem: ShareProblem, rows: Array, fixed: Array | None = None, start: Array | None = None) -> Array:
    """Weights of least loss for three or more classes, the intercept last; the first ones held where they are fixed.
    ``rows`` are those of the problem, maybe in other directions."""
    held = 0 if fixed is None else len(fixed)
    weights = np.zeros((rows.shape[1], problem.scored.shape[1])) if start is None else start.copy()
    if fixed is not None:
        weights[:held] = fixed
    offset, rest = rows[:, :held] @ weights[:held], rows[:, held:]
    targets, penalty, constant = rest.T @ problem.scored, problem.penalty[held:, None], (problem.scored * offset).sum()
    fixed_part: dict[str, Any] = {"offset": offset, "constant": -float(constant), "maxiter": 500}
    weights[held:] = fit_softmax(rest, targets, penalty, start=weights[held:], **fixed_part)
    return weights


def _curvature(rows: Array, scores: Array, penalty: Array) -> Array:
    """Second derivatives of the loss of two classes; of many rows every second, third, ... stands for all of them.
    They say which way a step goes, and not where the last one ends."""
    every = max(1, len(rows) // max(_ENOUGH, _ENOUGH_EACH * rows.shape[1]))
    rows, p = rows[::every], expit(scores[::every])
    hessian, roots = np.diag(penalty), np.sqrt(every * p * (1 - p))[:, None]
    for some in row_blocks(len(rows)):
        weighted = rows[some] * roots[some]
        hessian += weighted.T @ weighted
    return hessian


def _newton(problem: ShareProblem) -> Array:
    """Weights of least loss for two classes; the stacks of teachers need another, batched over parts of rows."""
    M, target, penalty = problem.rows, problem.scored[:, 0], problem.penalty

    def loss(scores: Array, w: Array) -> float:
        return float(-log_expit(-scores).sum() - target @ scores + 0.5 * penalty @ w**2)

    w, mean = np.zeros(M.shape[1]), float(np.clip(target.mean(), 0.01, 0.99))
    w[-1] = np.log(mean / (1 - mean))
    scores = M @ w
    current = loss(scores, w)
    for _ in range(50):
        gradient = M.T @ (expit(scores) - target) + penalty * w
        step = cho_solve(cho_factor(_curvature(M, scores, penalty)), gradient)
        decrease, size = float(gradient @ step), 1.0
        if decrease < 1e-9 * max(1.0, abs(current)):
            break
        moved = M @ step
        while size > 1e-10:  # backtracking: far from the optimum a full Newton step can overshoot
            candidate = loss(scores - size * moved, w - size * step)
            if candidate <= current - 1e-4 * size * decrease:
                break
            size /= 2
        w, scores, current = w - size * step, scores - size * moved, candidate
    return w
