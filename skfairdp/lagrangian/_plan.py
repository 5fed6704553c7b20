"""What PF-LD releases of the private groups: counts, primal terms and violations, each with its sensitivity and noise.

What is protected is the *group of one row*, or of all rows of a subject, of which one is asked for it; features, labels
and the number of rows are public, and so is everything computed from them and from earlier releases, sensitivities
included. Hence every noise scale here is the same on two neighbours, who differ in the group of one row that is asked.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator

from skfairdp import privacy
from skfairdp._judge import Judge, Judgement
from skfairdp._typing import Floats, Ints
from skfairdp._utils import BLAS, fit_softmax
from skfairdp._utils._sklearn import Interval
from skfairdp.fairness import FairnessConstraints

_ROWS = 8_192  # looked at together
_UP = 1 + 1e-9  # rounding in the sums of a plan or a release must not end above what is declared


@dataclass(frozen=True)
class PFLDPlan:
    """The releases of a fit, planned before a group is read."""

    n_groups: int
    primal_steps: int
    dual_steps: int
    sigma_count: float
    sigma_primal: float
    sigma_dual: float
    sampling_probability: float = 1.0
    moments: bool = False
    judge: Judge | Any = None
    relation: privacy.NeighboringRelation = privacy.NeighboringRelation.REPLACE_ATTRIBUTE
    rows_of: str = ""

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, budget_split: tuple[float, float, float] = (0.02, 0.78, 0.2), **shape: Any
    ) -> "PFLDPlan":
        """The plan of this shape whose certified ε is at most ``epsilon``. ``budget_split`` shares what the judge
        leaves of μ² between counts, primal and dual; with Poisson sampling primal releases get what others leave."""
        plan, mu = cls.without_privacy(**shape), privacy.gdp_mu(epsilon, delta)
        mu = mu if plan.judge is None else math.sqrt(mu**2 - plan.judge.squared_cost)
        counts, primal, dual = (share / sum(budget_split) for share in budget_split)
        plan = replace(
            plan,
            sigma_count=_UP / (mu * math.sqrt(counts)),
            sigma_primal=_UP * math.sqrt(plan.primal_steps / primal) / mu,
            sigma_dual=_UP * math.sqrt(plan.dual_steps / dual) / mu,
        )
        if plan.sampling_probability == 1:
            return plan
        guess = max(0.4, 2 * plan.sampling_probability * plan.sigma_primal)
        sigma = privacy.calibrate_noise(
            lambda sigma: replace(plan, sigma_primal=sigma).event, epsilon, delta, guess=guess
        )
        return replace(plan, sigma_primal=sigma)

    @classmethod
    def without_privacy(cls, **shape: Any) -> "PFLDPlan":
        """The same releases without noise (F-LD)."""
        return cls(sigma_count=0.0, sigma_primal=0.0, sigma_dual=0.0, **shape)

    @property
    def is_private(self) -> bool:
        """Whether any noise is added."""
        return self.sigma_count > 0

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""
        primal = "noisy moments by group" if self.moments else f"{self.primal_steps} noisy gradients"
        of_answers = () if self.judge is None else self.judge.releases
        return "noisy sizes of the groups", primal, f"{self.dual_steps} noisy tables of violations", *of_answers

    @property
    def event(self) -> privacy.DpEvent:
        """All releases together; neighbours change the group of one row."""
        if not self.is_private:
            return privacy.NonPrivateDpEvent()
        primal: privacy.DpEvent = privacy.GaussianDpEvent(self.sigma_primal)
        if self.sampling_probability < 1:
            primal = privacy.ReplaceSampledGaussian(self.sampling_probability, self.sigma_primal)
        return privacy.compose(
            privacy.GaussianDpEvent(self.sigma_count),
            privacy.repeat(primal, self.primal_steps),
            privacy.repeat(privacy.GaussianDpEvent(self.sigma_dual), self.dual_steps),
            *(() if self.judge is None else [self.judge.event]),
        )

    # ------------------------------------------------------------------ noise

    @property
    def _moved(self) -> float:
        """How far the released indicators of a row move, in L2, when it changes its group."""
        return 1.0 if self.n_groups == 2 else math.sqrt(2.0)

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on each count, in rows."""
        return self.sigma_count * self._moved

    def primal_noise(self, radius: float) -> float:
        """Standard deviation of the noise on a gradient to which each row contributes at most ``radius``, centred."""
        if self.sampling_probability < 1:
            return self.sigma_primal * radius / self.sampling_probability
        return self.sigma_primal * 2 * radius

    def moment_noise(self, features: Floats) -> float:
        """Standard deviation of the noise on each moment of these features."""
        return self.sigma_primal * self._moved * _longest_row(features)

    def largest_dual_noise(self, n_constraints: int) -> float:
        """The most on each sum of violations between -1 and 1 of so many constraints at once."""
        return self.sigma_dual * self._moved * math.sqrt(n_constraints)

    # ------------------------------------------------------------------ releases

    def release_counts(self, groups: Ints, cells: Ints, n_cells: int, source: privacy.NoiseSource) -> Floats:
        """Noisy sizes of the groups in every cell, shape (n_groups, n_cells), kept so far away from 0 that
        what divides by them stays bounded however small the group. The sizes of the cells are public."""
        member = np.zeros((len(cells), n_cells))
        member[np.arange(len(cells)), cells] = 1.0
        sizes = member.sum(0)
        counts = self._release(member, groups, sizes, self.sigma_count, 1.0, source)
        least = np.minimum(max(1.0, 2 * self.count_noise), np.maximum(sizes, 1.0) / (2 * self.n_groups))
        return np.clip(counts, least, np.maximum(sizes - (self.n_groups - 1) * least, least))

    def release_gradient(self, gradient: Floats, radius: float, source: privacy.NoiseSource) -> Floats:
        """A noisy copy of a sum to which each row contributes at most ``radius``, centred; no noise where that is 0."""
        noise = self.primal_noise(radius)
        if noise == 0:
            return gradient
        sampled = self.sampling_probability  # 1 for all rows; the sum has been divided by it
        return privacy.GaussianMechanism(noise, sensitivity=2 * radius / sampled, relation=self.relation).release(
            gradient, source
        )

    def release_moments(self, features: Floats, groups: Ints, source: privacy.NoiseSource) -> Floats:
        """Noisy sums of public features, which are rounded in their place, over each group: (n_groups, n_features)."""
        features = _exactly_summable(features)
        return self._release(features, groups, features.sum(0), self.sigma_primal, _longest_row(features), source)

    def release_violations(
        self, values: Floats, cells: Ints, n_cells: int, groups: Ints, source: privacy.NoiseSource
    ) -> Floats:
        """Noisy sums of what each row says beyond the mean of its cell."""
        n, k = values.shape
        violations, bounds, rows = np.zeros((n, n_cells, k)), np.zeros(k), np.arange(n)
        for c in range(k):
            sizes = np.bincount(cells[:, c], minlength=n_cells)
            means = np.bincount(cells[:, c], weights=values[:, c], minlength=n_cells) / np.maximum(sizes, 1)
            centred = values[:, c] - means[cells[:, c]]
            bounds[c] = np.abs(centred).max(initial=0.0)
            if bounds[c] > 0:  # constraints of small range must not drown in the noise of others
                violations[rows, cells[:, c], c] = centred / bounds[c]
        flat = _exactly_summable(violations.reshape(n, -1))
        released = self._release(flat, groups, np.zeros(flat.shape[1]), self.sigma_dual, _longest_row(flat), source)
        used = np.zeros((n_cells, k), dtype=bool)
        used[cells, np.arange(k)] = True
        return released.reshape(-1, n_cells, k) * bounds * used

    def release_answers(self, groups: Ints, y: Ints, answers: Ints, source: privacy.NoiseSource) -> Judgement:
        """What the network that is returned does to the groups, by a noisy table of its answers."""
        counts = self.judge.counts(groups, y, answers)
        if not self.is_private:
            return Judgement(self.judge.constraints, counts.astype(np.float64))
        return self.judge.release(counts, source)

    def _release(
        self, values: Floats, groups: Ints, total: Floats, sigma: float, longest: float, source: privacy.NoiseSource
    ) -> Floats:
        """Noisy sums of rows, of this length at most, over each group, made to add up to their public total."""
        noise, moved = sigma * self._moved * longest, self._moved * longest
        released = range(1, 2) if self.n_groups == 2 else range(self.n_groups)
        blocks = [slice(start, start + _ROWS) for start in range(0, len(values), _ROWS)]
        sums = np.stack([np.sum([values[r][groups[r] == a].sum(0) for r in blocks], axis=0) for a in released])
        if noise > 0:
            sums = privacy.GaussianMechanism(noise, sensitivity=moved, relation=self.relation).release(sums, source)
        if self.n_groups == 2:
            return np.concatenate([total - sums, sums])
        return sums + (total - sums.sum(0)) / self.n_groups


def release_asked(
    plan: PFLDPlan, constraints: FairnessConstraints, groups: Ints, source: privacy.NoiseSource, scores: Floats
) -> Floats:
    """The violations as multipliers ask for them: those of each score once, whatever is asked of it."""
    first, place = constraints.unique_columns
    if not len(first):  # all is asked of all rows together
        return np.zeros((plan.n_groups, constraints.n_cells, len(place)))
    cells = constraints.cells
    if len(first) < len(place):
        scores, cells = scores[:, first], cells[:, first]
    return plan.release_violations(scores, cells, constraints.n_cells, groups, source)[..., place]


def _exactly_summable(values: Floats) -> Floats:
    """Public values, in their place, as multiples of a public power of two, below 2^53 times it with all sums of them,
    which are exact in any order. What a row moves follows from the rounded."""
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest == 0 or not math.isfinite(largest):
        return values
    step = math.ldexp(1.0, max(math.frexp(largest)[1] + math.ceil(math.log2(len(values) + 1)) - 52, -1074))
    values /= step
    np.rint(values, out=values)
    values *= step
    return values


def _longest_row(values: Floats) -> float:
    parts = (values[start : start + _ROWS] for start in range(0, len(values), _ROWS))
    return _UP * math.sqrt(float(np.array([np.square(part).sum(1).max() for part in parts]).max(initial=0.0)))


_ESTIMATED_AT_ONCE, _AT_ONCE = 8192, 2**14  # estimated together, and described together
_N_BLOCKS = 4
_MOST_STEPS = 100


class PublicFeatures:
    """Orthonormal public features of some rows, and of others in the same way: indicators of the classes, X and X by
    class, random tanh features, each block orthogonal to those before. Rows of more than four times the average
    leverage are scaled down to that, in the moments too: an estimating equation as valid as before."""

    @BLAS.wrap(limits=1)
    def __init__(
        self, X: Floats, y: Ints, n_classes: int, n_features: int, seed: int, which: Ints | None = None
    ) -> None:
        n, rng = len(y), np.random.default_rng(seed)
        room = max(n_classes, min(n_features, n // 20))
        self._n_classes, hidden, width = n_classes, max(0, room - n_classes), X.shape[1] + n_classes
        of_rows = X if which is None else X[which]
        low, self._middle, high = np.quantile(of_rows, [0.25, 0.5, 0.75], axis=0)
        self._spread = (high - low) / 1.35
        if not (high > low).all():
            self._spread = np.where(high > low, self._spread, of_rows.std(0))
        self._spread = np.where(self._spread > 0, self._spread, 1.0)
        self._slope = rng.normal(size=(width, hidden)) / math.sqrt(max(1, min(X.shape[1], 20)))
        self._offset = rng.normal(size=hidden) * 0.5
        self._steps: list[tuple[Floats, Floats, Floats]] = []  # of blocks: taken off, twice, and kept
        basis, used = np.empty((n, room)), 0
        some = [slice(start, start + _AT_ONCE) for start in range(0, n, _AT_ONCE)]  # only the basis is kept of all
        for block in range(_N_BLOCKS):
            before, width = basis[:, :used], self._block(block, X[:1], y[:1]).shape[1]
            rest: Any = np.empty((n, width))
            for rows in some:
                rest[rows] = self._block(block, X[rows if which is None else which[rows]], y[rows])
            first = sum(before[rows].T @ rest[rows] for rows in some)
            for rows in some:
                rest[rows] -= before[rows] @ first
            second = sum(before[rows].T @ rest[rows] for rows in some)
            for rows in some:
                rest[rows] -= before[rows] @ second  # once more, for what rounding left
            values, vectors = np.linalg.eigh(rest.T @ rest)  # of a small matrix; the largest come last
            order = np.flatnonzero(values > 1e-8 * n)[::-1][: room - used]
            kept = vectors[:, order] / np.sqrt(values[order])
            np.matmul(rest, kept, out=basis[:, used : used + len(order)])
            used += len(order)
            self._steps.append((first, second, kept))
            if used == room:
                break
        self.features = basis[:, :used]
        length = np.sqrt(np.einsum("ij,ij->i", self.features, self.features))
        self.weights = np.minimum(1.0, 2 * math.sqrt(used / n) / np.maximum(length, 1e-12))

    def _block(self, block: int, X: Floats, y: Ints) -> Floats:
        """What they are made of, from the plainest to the most involved; nobody makes what is not asked for."""
        labels = np.eye(self._n_classes)[y]
        if block == 0:
            return labels
        scaled = X - self._middle
        scaled /= self._spread
        np.clip(scaled, -5.0, 5.0, out=scaled)  # no row may hide what the others say
        if block == 1:
            return scaled
        if block == 2:
            return np.concatenate([scaled * labels[:, [k]] for k in range(1, self._n_classes)], axis=1)
        return np.tanh(np.concatenate([scaled, labels], axis=1) @ self._slope + self._offset)

    @BLAS.wrap(limits=1)
    def estimates(self, coefficients: Floats, X: Any, y: Ints) -> Floats:
        """Probabilities of the groups of any rows, some rows at a time, shape (n_rows, n_groups)."""
        found = np.empty((len(y), len(coefficients)))
        for start in range(0, len(y), _ESTIMATED_AT_ONCE):
            here = slice(start, start + _ESTIMATED_AT_ONCE)
            found[here] = _probabilities(self._of(np.asarray(X[here], dtype=np.float64), y[here]), coefficients)
        return found

    def _of(self, X: Floats, y: Ints) -> Floats:
        basis, used = np.empty((len(X), self.features.shape[1])), 0
        for block, (first, second, kept) in enumerate(self._steps):
            before = basis[:, :used]
            rest = self._block(block, X, y) - before @ first
            rest -= before @ second
            basis[:, used : used + kept.shape[1]] = rest @ kept
            used += kept.shape[1]
        return basis


@BLAS.wrap(limits=1)
def group_coefficients(
    features: Floats, weights: Floats, n_free: int, groups: Ints, plan: PFLDPlan, source: privacy.NoiseSource
) -> Floats:
    """Release the moments and return what a linear model of the groups makes of them, (n_groups, n_features): the
    solution of the logistic regression's equations, with a ridge penalty on all but the first ``n_free``, the ratio of
    noise to signal, of which the released moments themselves show how large it is."""
    m, p = plan.n_groups, features.shape[1]
    n_free = min(n_free, p)  # of one row there is one feature
    sent = features * weights[:, None]
    moments = plan.release_moments(sent, groups, source)
    noise = plan.moment_noise(sent)
    few = features[:, :n_free], moments[:, :n_free]
    free = _fit(weights, *few, np.full(n_free, 1e-6), np.zeros((m, n_free)), noise)
    start = np.concatenate([free, np.zeros((m, p - n_free))], axis=1)
    residual = (moments - _probabilities(features, start).T @ sent)[:, n_free:]
    # of the residual's mean square, the part that the noise does not explain is signal
    signal = max(float(np.mean(residual**2)) - noise**2, 1e-3 * noise**2) if residual.size else 1.0
    shares = _probabilities(features, start).mean(0)
    ridge = np.full(p, float(np.mean(shares * (1 - shares))) * noise**2 / signal + 1e-6)
    ridge[:n_free] = 1e-6
    return _fit(weights, features, moments, ridge, start, noise)


def estimate_groups(features: Floats, *args: Any, **kwargs: Any) -> Floats:
    """Probabilities of the groups of the same rows, shape (n_rows, n_groups); see :func:`group_coefficients`."""
    return _probabilities(features, group_coefficients(features, *args, **kwargs))


def _probabilities(features: Floats, coefficients: Floats) -> Floats:
    if len(coefficients) == 2:  # several times as fast as the same by two columns
        second = expit(features @ (coefficients[1] - coefficients[0]))
        return np.stack([1 - second, second], axis=1)
    return softmax(features @ coefficients.T, axis=1)


def _fit(weights: Floats, features: Floats, moments: Floats, ridge: Floats, start: Floats, noise: float) -> Floats:
    """Solve ``Σ weight · φ · probability + ridge · β = moments``, the zero slope of a convex function, of much the same
    curvature in all directions. L-BFGS stops within a hundredth of the noise: what is left says nothing."""
    options: dict[str, Any] = {"weights": weights, "maxiter": _MOST_STEPS, "gtol": noise / 100}
    if len(moments) > 2:
        return fit_softmax(features, moments.T, ridge[:, None], start=start.T, **options).T
    # The moments of both add up to those of all rows, hence β of the first is minus β of the second: one column does.
    column = fit_softmax(features, moments[1:].T, ridge[:, None] / 2, start=2 * start[1:].T, **options).T
    return np.concatenate([-column, column]) / 2


#: A kind of primal release for certain rows, all of which is public; it alone is given the groups, and gives what
#: :func:`train_lagrangian` follows, ``membership`` or ``gradient``.
PrimalRelease = Callable[[Ints, privacy.NoiseSource], dict[str, Any]]


@dataclass(eq=False, repr=False)
class GroupModel(BaseEstimator):
    """Primal steps by estimates of the groups, from one noisy table.

    Noisy moments of public features in each group are released once. From them the group of every row is estimated, and
    all steps follow those estimates at no further cost.

    Parameters
    ----------
    n_features : int, default=64
        Features of the model: of X, of X by class, and random nonlinear ones.

    See Also
    --------
    NoisyGradients : Release gradients instead.

    Examples
    --------
    >>> from skfairdp.lagrangian import GroupModel, PFLDClassifier
    >>> PFLDClassifier(primal=GroupModel(n_features=32)).get_params()["primal__n_features"]
    32
    """

    n_features: int = 64

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_features": [Interval(Integral, 1, None, closed="left")]}
    usual_split: ClassVar[Mapping[str, float]] = {"sizes": 0.02, "primal": 0.49, "dual": 0.49}
    #: From so many rows of a larger table the model learns, and these are whom multipliers follow; all rows are
    #: estimated by it and have a loss. At ε = 1 its noise then moves the log-odds of a row by .02 between equal groups,
    #: and by .6 for a group of one row in a hundred, whose rate chance moves by .014.
    MOST_ROWS: ClassVar[int] = 2**17

    def _planned(self) -> dict[str, Any]:
        """What a :class:`PFLDPlan` has to know."""
        return {"primal_steps": 1, "moments": True}

    def _chosen(self, n_rows: int, seed: int) -> Ints | None:
        """Positions of the rows that the model learns from, in their order; None for all."""
        if n_rows <= self.MOST_ROWS:
            return None
        rng = np.random.default_rng([seed, 1])
        return np.sort(rng.choice(n_rows, self.MOST_ROWS, replace=False, shuffle=False))

    def _on_rows(self, constraints: FairnessConstraints, plan: PFLDPlan, of: Mapping[str, Any]) -> PrimalRelease:
        if not plan.is_private:
            return lambda groups, noise: {"membership": np.eye(plan.n_groups)[groups]}
        X, read, seed, chosen = (of[name] for name in ("X", "read", "seed", "chosen"))
        y, n_classes = constraints.y, constraints.n_classes
        which = chosen if len(X) == len(read) else None  # of rows that are not in memory X has these alone
        described = PublicFeatures(X, y if chosen is None else y[chosen], n_classes, self.n_features, seed, which)
        of_rows = described.features, described.weights, n_classes

        def release(groups: Ints, noise: privacy.NoiseSource) -> dict[str, Any]:
            if chosen is None:
                return {"membership": estimate_groups(*of_rows, groups, plan, noise)}
            coefficients = group_coefficients(*of_rows, groups[chosen], plan, noise)
            return {"membership": described.estimates(coefficients, read.cpu(), y)}

        return release


@dataclass(eq=False, repr=False)
class NoisyGradients(BaseEstimator):
    """Primal steps by noisy gradients of the constraints.

    Of each subject one row is asked for its group: which one says a hash of its id and how many rows it has, both
    public. So another group of all rows of a subject moves a gradient no further than that of one row does.

    Parameters
    ----------
    n_steps : int, default=200
        Number of noisy gradients, spread over the training; each is followed until the next.
    sampling_probability : float, default=None
        Share of the rows that a gradient reads, a secret Poisson sample, which is faster. None reads all rows.
    max_grad_norm : float, default=None
        Clipping bound of centred gradients. None takes the largest norm there is, which is public: no bias.
    n_components : int, default=None
        Project the gradients on so many principal directions of the public centred gradients. None does not.

    See Also
    --------
    GroupModel : Release moments once instead.

    Examples
    --------
    >>> from skfairdp.lagrangian import NoisyGradients, PFLDClassifier
    >>> PFLDClassifier(primal=NoisyGradients(n_steps=50, sampling_probability=0.05)).get_params()["primal__n_steps"]
    50
    """

    n_steps: int = 200
    sampling_probability: float | None = None
    max_grad_norm: float | None = None
    n_components: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "sampling_probability": [Interval(Real, 0, 1, closed="neither"), None],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }
    usual_split: ClassVar[Mapping[str, float]] = {"sizes": 0.02, "primal": 0.78, "dual": 0.20}

    def _planned(self) -> dict[str, Any]:
        """What a :class:`PFLDPlan` has to know."""
        share = 1.0 if self.sampling_probability is None else self.sampling_probability
        return {"primal_steps": self.n_steps, "sampling_probability": share}

    def _chosen(self, n_rows: int, seed: int) -> Ints | None:
        return None

    def _on_rows(self, constraints: FairnessConstraints, plan: PFLDPlan, of: Mapping[str, Any]) -> PrimalRelease:
        def release(groups: Ints, noise: privacy.NoiseSource) -> dict[str, Any]:
            from skfairdp.lagrangian._constraint_gradient import ConstraintGradient

            gradient = ConstraintGradient.of(
                of["network"], of["rows"], groups, constraints, plan, noise,
                clip=self.max_grad_norm, n_components=self.n_components, asked=of["chosen"],
            )  # fmt: skip
            return {"gradient": gradient}

        return release


#: By their shorthands.
PRIMALS: dict[str, Any] = {"group_model": GroupModel, "gradient": NoisyGradients}
