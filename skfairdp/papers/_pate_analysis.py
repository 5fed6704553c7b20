"""Figures for the curator's eyes: why votes cost some rows and groups more, and how unfair SF-PATE may become."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax, ndtr, softmax
from scipy.stats import spearmanr
from sklearn.utils import check_array

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike, Floats, Ints, MaybeArray, Objects
from skfairdp._utils import as_groups, fit_softmax, group_domain, invalid_parameter, public_generator
from skfairdp.privacy import rounded_up


@dataclass(frozen=True)
class LabelEffect:
    """What noise in one kind of labels does to the student. **Not private.**"""

    sensitivity: float
    sensitivity_squared: float
    excessive_risk: Floats
    excessive_risk_by_group: dict[Any, float]
    risk_gap: float
    accuracy: float | None


@dataclass(frozen=True, repr=False)
class PATEAnalysis:
    """Figures computed from raw votes and true groups: not private, never publish.

    :meth:`PATEFairnessAnalysis.analyse` returns it.

    Attributes
    ----------
    n_teachers : int
    sigma : float
        Noise on each count, in votes.
    alpha : float
        L2 penalty of the students, λ in the bounds below.
    flipping_probability : ndarray of shape (n_public,)
        Share of the repetitions in which the noisy winner is not the winner.
    unanimous_flipping_probability : float
        1 - Φ(k / (√2 σ)): of rows on which k teachers agree (Theorem 2; for two classes).
    hard, soft : LabelEffect
        Students of noisy winners, and of noisy vote shares.
    sensitivity_bound : float
        Theorem 1 and, as the student is a logistic regression, Corollary 1: ``1 / (m λ) Σ p_x ‖x‖`` (√2 ‖x‖ for more
        than two classes).
    sensitivity_squared_bound : float
        ``1 / (m λ²) Σ p_x ‖x‖²``. (Corollary 2 prints p_x², with which it does not hold: a single row that flips with
        probability p moves θ by ‖x‖ / λ with probability p.)
    risk_bound : ndarray of shape (n_public,)
        Theorem 3: ``‖∇ℓ(θ*; x)‖ U1 + β_x U2 / 2`` with the two bounds above for U1 and U2.
    input_norms, gradient_norms : ndarray of shape (n_public,)
        ‖x‖ (with a 1 for the intercept) and ‖∇ℓ(θ*; x)‖.
    closeness : ndarray of shape (n_public,)
        Closeness to the decision boundary, 1 - Σ_c f_c(x)² of the clean student.
    correlations : dict
        Spearman's rank correlations of pairs of these, over rows.
    groups : ndarray of shape (n_public,), dtype object
    private : bool
        False.
    """

    n_teachers: int
    sigma: float
    alpha: float
    flipping_probability: Floats
    unanimous_flipping_probability: float
    hard: LabelEffect
    soft: LabelEffect
    sensitivity_bound: float
    sensitivity_squared_bound: float
    risk_bound: Floats
    input_norms: Floats
    gradient_norms: Floats
    closeness: Floats
    correlations: dict[tuple[str, str], float]
    groups: Objects
    private: ClassVar[bool] = False

    def __repr__(self) -> str:
        return (
            f"PATEAnalysis(sensitivity={self.hard.sensitivity:.4g} hard, {self.soft.sensitivity:.4g} soft, "
            f"bound={rounded_up(self.sensitivity_bound)}; computed from raw votes: not private, never publish)"
        )


class PATEFairnessAnalysis:
    """Measure how the noise of PATE's votes reaches the student, row by row and group by group.

    **No guarantee.** It reads private rows and raw votes many times over; its result is marked ``private = False``. It
    is for curators who choose settings on data they may look at, and for teaching. (Tran, Dinh & Fioretto 2021, "A
    fairness analysis on private aggregation of teacher ensembles".)

    The student is logistic regression with ``mean loss + alpha · ‖θ‖²`` on standardised features, as in the theorems.

    Parameters
    ----------
    estimator : PATEClassifier or FairPATEClassifier
        Its ``teacher``, ``n_teachers``, the ``sigma`` of its ``voting`` (None: calibrated for one noisy winner per
        public row at its ``epsilon`` and ``delta``) and ``random_state`` are used; it is not fitted.
    repeats : int, default=100
        Repetitions of the noise, each with a student of hard and one of soft labels.
    alpha : float, default=0.1
        L2 penalty of the student, the λ of the theorems.
    noise_seed : int or None, default=None
        Makes the repetitions reproducible.

    Raises
    ------
    ValueError
        From ``analyse``, on rows that do not fit or labels of one class.

    See Also
    --------
    ExcessiveRiskDisplay, FlippingProbabilityDisplay : Plots of the result.

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.papers import PATEFairnessAnalysis
    >>> from skfairdp.pate import GNMaxVoting
    >>> X, y, groups = make_biased_classification(1200, random_state=0)
    >>> model = PATEClassifier(n_teachers=20, voting=GNMaxVoting(sigma=10.0), random_state=0)
    >>> analysis = PATEFairnessAnalysis(model, repeats=5, noise_seed=0)
    >>> found = analysis.analyse(X[:1000], y[:1000], X[1000:], groups[1000:])
    >>> print(f"{found.hard.sensitivity:.2f}, at most {found.sensitivity_bound:.2f}; private: {found.private}")
    0..., at most 4...; private: False
    """

    def __init__(
        self, estimator: Any, *, repeats: int = 100, alpha: float = 0.1, noise_seed: int | None = None
    ) -> None:
        self.estimator, self.repeats, self.alpha, self.noise_seed = estimator, repeats, alpha, noise_seed

    def analyse(
        self,
        X_private: ArrayLike,
        y: ArrayLike,
        X_public: ArrayLike,
        sensitive_features: ArrayLike,
        *,
        y_public: MaybeArray = None,
    ) -> PATEAnalysis:
        """Train the teachers once, repeat the noisy vote, and compare the students.

        Parameters
        ----------
        X_private : array-like of shape (n_rows, n_features)
            Private rows.
        y : array-like of shape (n_rows,)
            Private labels.
        X_public : array-like of shape (n_public, n_features)
            Public rows.
        sensitive_features : array-like of shape (n_public,) or DataFrame
            Groups of the public rows.
        y_public : array-like of shape (n_public,), default=None
            True labels of the public rows, for the accuracies.

        Returns
        -------
        PATEAnalysis
            Marked ``private = False``.
        """
        self._check()
        private = check_array(X_private, dtype=np.float64, input_name="X_private")
        public = check_array(X_public, dtype=np.float64, input_name="X_public")
        groups = as_groups(sensitive_features, len(public), owner=type(self).__name__)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) < 2 or codes.shape != (len(private),) or private.shape[1] != public.shape[1]:
            raise ValueError(
                f"{type(self).__name__} needs labels of two or more classes, one for each private row, and public rows "
                "with the columns of the private ones."
            )
        votes, n_teachers = self._votes(private, codes, public, len(classes))
        truth = None
        if y_public is not None:
            truth = np.searchsorted(classes, np.asarray(y_public)).clip(max=len(classes) - 1)
            truth = np.where(classes[truth] == np.asarray(y_public), truth, -1)
        center, scale = public.mean(axis=0), public.std(axis=0)
        rows = np.column_stack([(public - center) / np.where(scale > 0, scale, 1.0), np.ones(len(public))])
        return self._compare(rows, votes, groups, n_teachers, self._sigma(len(public), n_teachers, len(classes)), truth)

    # ------------------------------------------------------------------ private

    def _check(self) -> None:
        from skfairdp.pate import FairPATEClassifier, PATEClassifier  # drawing a display needs no estimator

        owner = type(self).__name__
        if not isinstance(self.estimator, PATEClassifier | FairPATEClassifier):
            raise ValueError(
                f"The 'estimator' parameter of {owner} must be a PATEClassifier or FairPATEClassifier. Got "
                f"{type(self.estimator).__name__} instead."
            )
        if not (isinstance(self.repeats, Integral) and self.repeats >= 2):
            raise ValueError(f"The 'repeats' parameter of {owner} must be an int of at least 2. Got {self.repeats!r}.")
        if not (isinstance(self.alpha, Real) and 0 < self.alpha < math.inf):
            raise invalid_parameter("alpha", owner, "a float in the range (0.0, inf)", self.alpha)

    def _votes(self, X: Floats, y: Ints, X_public: Floats, n_classes: int) -> tuple[Ints, int]:
        from skfairdp._teachers import fit_teachers, position_partition, vote_histogram
        from skfairdp.pate import count_teachers, default_teacher

        model = self.estimator
        n_teachers = count_teachers(model, len(X), n_classes)
        rng = public_generator(model.random_state)
        teacher = default_teacher(model.teacher, X_public)
        parts = position_partition(len(X), n_teachers, random_state=rng)
        how: dict[str, Any] = {"n_teachers": n_teachers, "n_classes": n_classes, "n_jobs": model.n_jobs}
        teachers = fit_teachers(teacher, X, y, parts, random_state=rng, **how)
        return vote_histogram(teachers.predict(X_public), n_classes), n_teachers

    def _sigma(self, n_queries: int, n_teachers: int, n_classes: int) -> float:
        from skfairdp.pate import GNMaxVoting

        model = self.estimator
        sigma = model._parts()["voting"].sigma
        if sigma is not None:
            return float(sigma)
        votes: dict[str, Any] = {"n_queries": n_queries, "n_teachers": n_teachers, "n_classes": n_classes}
        return GNMaxVoting().plan(epsilon=model.epsilon, delta=model.delta, **votes).sigma

    def _compare(
        self, rows: Floats, votes: Ints, groups: Objects, n_teachers: int, sigma: float,
        truth: Ints | None,
    ) -> PATEAnalysis:  # fmt: skip
        simulated = np.random.default_rng(self.noise_seed)  # nothing is released: the votes themselves are shown
        eye, winner = np.eye(votes.shape[1]), votes.argmax(axis=1)
        noisy = votes + sigma * simulated.standard_normal((self.repeats, *votes.shape))
        noisy_winner = noisy.argmax(axis=2)
        flips = (noisy_winner != winner).mean(axis=0)
        students = _Students(rows, eye[winner], self.alpha)
        soft = _Students(rows, votes / n_teachers, self.alpha).effect(noisy / n_teachers, groups, truth)
        hard = students.effect(eye[noisy_winner], groups, truth)
        of_votes = n_teachers, sigma, float(self.alpha), flips, float(1 - ndtr(n_teachers / (math.sqrt(2) * sigma)))
        of_rows = students.norms, students.gradient_norms(), students.closeness()
        found = students.correlations(flips, hard.excessive_risk)
        return PATEAnalysis(*of_votes, hard, soft, *students.bounds(flips), *of_rows, found, groups)


class _Students:
    """Logistic regressions of the same rows on many targets; losses are measured with the clean ones."""

    def __init__(self, rows: Floats, clean: Floats, alpha: float) -> None:
        self.rows, self.clean, self.alpha = rows, clean, alpha
        self.binary = clean.shape[1] == 2
        self.start = np.zeros((rows.shape[1], 1 if self.binary else clean.shape[1]))
        self.theta = self.start = self.fit(clean)
        self.probabilities = softmax(self.scores(self.theta), axis=1)

    def scores(self, theta: Floats) -> Floats:
        scores = self.rows @ theta
        return np.column_stack([np.zeros(len(scores)), scores]) if self.binary else scores

    def fit(self, targets: Floats) -> Floats:
        """Minimise the mean loss + alpha · ‖θ‖²; the loss is linear in targets, which may lie outside [0, 1]."""
        n = len(self.rows)
        moments = self.rows.T @ (targets[:, 1:] if self.binary else targets) / n
        options: Any = {"maxiter": 500, "ftol": 1e-14, "gtol": 1e-9}
        total = targets.sum(axis=1) / n
        return fit_softmax(self.rows, moments, 2 * self.alpha, start=self.start, weights=total, **options)

    def losses(self, theta: Floats) -> Floats:
        return -(self.clean * log_softmax(self.scores(theta), axis=1)).sum(axis=1)

    @property
    def norms(self) -> Floats:
        return np.linalg.norm(self.rows, axis=1)

    def gradient_norms(self) -> Floats:
        slope = self.probabilities - self.clean
        return (np.abs(slope[:, 1]) if self.binary else np.linalg.norm(slope, axis=1)) * self.norms

    def closeness(self) -> Floats:
        """To the decision boundary."""
        return 1 - np.square(self.probabilities).sum(axis=1)

    def bounds(self, flips: Floats) -> tuple[float, float, Floats]:
        """Of the sensitivity, its square, and the risk of each row, where labels flip with these probabilities."""
        # a changed one-hot label moves the slope of two scores; with two classes they are one, of opposite signs
        moved = self.norms * (1.0 if self.binary else math.sqrt(2.0))
        u1 = float(flips @ moved) / (len(self.rows) * self.alpha)
        u2 = float(flips @ moved**2) / (len(self.rows) * self.alpha**2)
        smoothness = (0.25 if self.binary else 0.5) * self.norms**2
        return u1, u2, self.gradient_norms() * u1 + smoothness * u2 / 2

    def correlations(self, flips: Floats, risk: Floats) -> dict[tuple[str, str], float]:
        """Rank correlations over rows."""
        pairs = {
            ("input norm", "excessive risk"): (self.norms, risk),
            ("input norm", "gradient norm"): (self.norms, self.gradient_norms()),
            ("closeness", "flipping probability"): (self.closeness(), flips),
            ("flipping probability", "excessive risk"): (flips, risk),
        }
        known = {names: all(np.ptp(one) for one in values) for names, values in pairs.items()}
        return {n: float(spearmanr(*values).statistic) if known[n] else math.nan for n, values in pairs.items()}

    def effect(self, targets: Floats, groups: Objects, truth: Ints | None) -> LabelEffect:
        losses, distances, accuracies = np.zeros(len(self.rows)), [], []
        for one in targets:
            theta = self.fit(one)
            distances.append(float(np.linalg.norm(theta - self.theta)))
            losses += self.losses(theta) / len(targets)
            if truth is not None:
                accuracies.append(float(np.mean(self.scores(theta).argmax(axis=1) == truth)))
        risk = losses - self.losses(self.theta)
        by_group = {group: float(risk[groups == group].mean()) for group in group_domain(groups)}
        moved, squared = float(np.mean(distances)), float(np.mean(np.square(distances)))
        gap = max(by_group.values()) - min(by_group.values())
        return LabelEffect(moved, squared, risk, by_group, gap, float(np.mean(accuracies)) if accuracies else None)


_WARNING = "from raw votes: not private"


class _AnalysisDisplay(ABC):
    """What the displays of an analysis share."""

    ax_: Any
    figure_: Any

    def __init__(self, analysis: PATEAnalysis) -> None:
        self.analysis = analysis

    @classmethod
    def from_analysis(cls, analysis: PATEAnalysis, *, ax: Any = None) -> Self:
        """Make the display of an analysis and plot it.

        Parameters
        ----------
        analysis : PATEAnalysis
            What to show.
        ax : matplotlib Axes, default=None
            None makes a figure.

        Returns
        -------
        display : display
            Drawn.
        """
        return cls(analysis).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.

        Returns
        -------
        self : display
            With ``ax_`` and ``figure_``.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
        self.figure_, self.ax_ = ax.figure, ax
        self._draw()
        return self

    @abstractmethod
    def _draw(self) -> None:
        """Draw on ``ax_``."""


@shared_docs
class ExcessiveRiskDisplay(_AnalysisDisplay):
    """Excessive risk of each group, with hard and with soft labels. **Not private**, like the analysis it shows.

    {of_analysis}

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.papers import ExcessiveRiskDisplay, PATEFairnessAnalysis
    >>> from skfairdp.pate import GNMaxVoting
    >>> X, y, groups = make_biased_classification(600, random_state=0)
    >>> analysis = PATEFairnessAnalysis(PATEClassifier(n_teachers=10, voting=GNMaxVoting(sigma=5.0)), repeats=3)
    >>> display = ExcessiveRiskDisplay.from_analysis(analysis.analyse(X[:500], y[:500], X[500:], groups[500:]))
    >>> display.ax_.get_ylabel()
    'excessive risk'
    """

    def _draw(self) -> None:
        names = list(self.analysis.hard.excessive_risk_by_group)
        places = np.arange(len(names))
        for shift, label, effect in ((-0.2, "hard", self.analysis.hard), (0.2, "soft", self.analysis.soft)):
            heights = [effect.excessive_risk_by_group[name] for name in names]
            self.ax_.bar(places + shift, heights, width=0.38, label=f"{label} labels")
        self.ax_.set_xticks(places, [str(name) for name in names])
        self.ax_.set(xlabel="group", ylabel="excessive risk", title=f"Excessive risk by group ({_WARNING})")
        self.ax_.axhline(0.0, color="0.4", linewidth=0.8)
        self.ax_.legend()


@shared_docs
class FlippingProbabilityDisplay(_AnalysisDisplay):
    """Flipping probability of each public row against how close it is to the boundary. **Not private.**

    {of_analysis}

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.papers import FlippingProbabilityDisplay, PATEFairnessAnalysis
    >>> from skfairdp.pate import GNMaxVoting
    >>> X, y, groups = make_biased_classification(600, random_state=0)
    >>> analysis = PATEFairnessAnalysis(PATEClassifier(n_teachers=10, voting=GNMaxVoting(sigma=5.0)), repeats=3)
    >>> display = FlippingProbabilityDisplay.from_analysis(analysis.analyse(X[:500], y[:500], X[500:], groups[500:]))
    >>> display.ax_.get_ylabel()
    'flipping probability'
    """

    def _draw(self) -> None:
        found = self.analysis
        for group in found.hard.excessive_risk_by_group:
            mine = found.groups == group
            self.ax_.scatter(found.closeness[mine], found.flipping_probability[mine], s=9, alpha=0.6, label=str(group))
        rank = found.correlations["closeness", "flipping probability"]
        unanimous = found.unanimous_flipping_probability
        self.ax_.axhline(unanimous, color="0.4", linewidth=0.8, linestyle="--", label="if all teachers agree")
        title = f"Spearman correlation {rank:.2f} ({_WARNING})"
        self.ax_.set(xlabel="closeness to the decision boundary", ylabel="flipping probability", title=title)
        self.ax_.legend(title="group")


@dataclass(frozen=True)
class SFPATEBounds:
    """Bounds on the unfairness of an outcome, computed from true groups: not private, never publish.

    :func:`sfpate_bounds` returns it. A fairness function h takes values in [0, bound]; unfairness is the largest
    distance of the mean of h in a group from its mean over all rows.

    Attributes
    ----------
    eta : float
        Largest distance between the probabilities of true and of released groups, given features and label.
    theorem_1 : float
        ``eta · bound / min_a min(P(Ã = a), P(A = a)) + alpha``: the unfairness for the true groups of a model whose
        unfairness for the released ones is ``alpha``.
    theorem_1_shares : float
        The same with ``min_a P(A = a) - eta`` below the line, which asks for no share of released groups; inf unless
        every share exceeds ``eta``.
    corollary_1 : float or None
        Theorem 1 for randomised response at the ``epsilon`` given, whose eta is ``(m - 1) / (e^ε + m - 1)``.
    theorem_2 : float or None
        ``bound`` times the largest total variation distance between the votes (with the label) of a group and of all
        rows, where votes were given: the unfairness of the vote itself.
    private : bool
        False.
    """

    eta: float
    theorem_1: float
    theorem_1_shares: float
    corollary_1: float | None = None
    theorem_2: float | None = None
    private: ClassVar[bool] = False


def sfpate_bounds(
    group_probabilities: ArrayLike,
    released_probabilities: ArrayLike,
    *,
    alpha: float = 0.0,
    bound: float = 1.0,
    epsilon: float | None = None,
    votes: MaybeArray = None,
    y: MaybeArray = None,
) -> SFPATEBounds:
    """Compute Theorems 1 and 2 and Corollary 1 of Tran et al. (2022) on a set of rows.

    **No guarantee**: they read true groups and raw votes. ``SFPATEClassifier`` has no attribute that holds them.

    Parameters
    ----------
    group_probabilities : array-like of shape (n_rows, n_groups)
        P(A = a | x, y) of each row. A table of 0 and 1, the true groups, speaks of these rows as the whole population;
        as every row then counts alone, the bounds say little.
    released_probabilities : array-like of shape (n_rows, n_groups)
        P(Ã = a | x, y): how likely each group is to be released for a row.
    alpha : float, default=0.0
        Unfairness of the model for the released groups.
    bound : float, default=1.0
        Largest value B of h; h is at least 0.
    epsilon : float or None, default=None
        Of randomised response, for Corollary 1.
    votes : array-like of int of shape (n_rows, n_classes), default=None
        Raw vote counts of fair teachers ("teacher" variant), for Theorem 2. The noisy winner depends on the teachers
        through these counts only, so their distance serves and is the smaller one.
    y : array-like of shape (n_rows,), default=None
        Labels, with ``votes``. None: h does not read them.

    Returns
    -------
    SFPATEBounds
        The figures; not to be published.

    Raises
    ------
    ValueError
        Tables that are no probabilities or do not fit together, negative ``alpha``, ``bound`` or ``epsilon``.

    Examples
    --------
    >>> from skfairdp.papers import sfpate_bounds
    >>> truth, released = [[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]]
    >>> found = sfpate_bounds(truth, released, alpha=0.01, epsilon=1.0)
    >>> round(found.eta, 3), round(found.theorem_1, 3), found.private
    (0.1, 0.232, False)
    """
    truth, released = _probabilities(group_probabilities, "group"), _probabilities(released_probabilities, "released")
    if truth.shape != released.shape:
        raise ValueError(
            f"group_probabilities and released_probabilities of sfpate_bounds must have one shape. Got {truth.shape} "
            f"and {released.shape}."
        )
    for name, value in (("alpha", alpha), ("bound", bound), ("epsilon", 0.0 if epsilon is None else epsilon)):
        if not value >= 0:
            raise invalid_parameter(name, "sfpate_bounds", "at least 0", value)
    eta = float(np.abs(truth - released).max())
    shares = truth.mean(axis=0)
    corollary_1 = None
    if epsilon is not None:
        m = truth.shape[1]
        lie = 1 / (math.exp(epsilon) + m - 1)
        corollary_1 = _theorem_1((m - 1) * lie, bound, shares, shares * (1 - m * lie) + lie, alpha)
    least = float(shares.min()) - eta
    theorem_1 = _theorem_1(eta, bound, shares, released.mean(axis=0), alpha)
    by_shares = eta * bound / least + alpha if least > 0 else math.inf
    theorem_2 = None if votes is None else bound * _variation(votes, y, truth)
    return SFPATEBounds(eta, theorem_1, by_shares, corollary_1, theorem_2)


def _theorem_1(eta: float, bound: float, shares: Floats, released: Floats, alpha: float) -> float:
    least = float(np.minimum(shares, released).min())
    return math.inf if least <= 0 else eta * bound / least + alpha


def _variation(votes: ArrayLike, y: MaybeArray, truth: Floats) -> float:
    """Largest total variation distance between (votes, label) in a group and in all rows."""
    counts = np.asarray(votes)
    if counts.ndim != 2 or len(counts) != len(truth):
        raise ValueError("votes of sfpate_bounds must have one row of counts for each row of group_probabilities.")
    labels = np.zeros(len(truth)) if y is None else np.unique(np.asarray(y), return_inverse=True)[1].ravel()
    if len(labels) != len(truth):
        raise ValueError("y of sfpate_bounds must have one label for each row of group_probabilities.")
    value = np.unique(np.column_stack([counts, labels]), axis=0, return_inverse=True)[1].ravel()
    overall = np.bincount(value) / len(value)
    present = [column for column in truth.T if column.sum() > 0]
    return float(max(0.5 * np.abs(np.bincount(value, own) / own.sum() - overall).sum() for own in present))


def _probabilities(table: ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((0, 0), np.nan)
    good = array.ndim == 2 and array.size > 0 and array.shape[1] >= 2 and bool((array >= -1e-9).all())
    if not good or not np.allclose(array.sum(axis=1), 1.0):
        raise ValueError(
            f"{name}_probabilities of sfpate_bounds must be a table (n_rows, n_groups) of probabilities that sum to 1 "
            "in every row, with at least two groups."
        )
    return array
