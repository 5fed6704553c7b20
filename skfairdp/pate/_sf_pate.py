"""SF-PATE: fairness carried through an ensemble while the groups of its training rows stay private."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metadata_routing import UNUSED

from skfairdp._base import LARGEST_PUBLIC, FairPrivateMixin
from skfairdp._docs import shared_docs
from skfairdp._teachers import check_fair_learner
from skfairdp._typing import ArrayLike
from skfairdp.fairness import read_constraints
from skfairdp.lagrangian import LagrangianClassifier, standard_scale
from skfairdp.pate._fair_votes import AttributeRows, fair_network, rehearse, teach_and_vote
from skfairdp.pate._sfpate_refit import AfterVotes
from skfairdp.pate._sfpate_student import Released
from skfairdp.pate._vote_plan import ReleasedVotes, VotePlan
from skfairdp.pate._votes import GNMaxVoting, SoftVoting
from skfairdp.privacy import NeighboringRelation, PrivacyLedger
from skfairdp.utils import RandomStateLike, public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["SFPATEClassifier"]

MAX_EPSILON = 1e9
ROWS_PER_TEACHER, MOST_TEACHERS = 20, 300
STUDENT_ROWS = 200


@shared_docs
class SFPATEClassifier(AfterVotes, FairPrivateMixin, ClassifierMixin, BaseEstimator):
    """Fair classifier from an ensemble whose votes protect the groups; any fair learner can be inside.

    **Guarantee.** (ε, δ)-differential privacy for the *sensitive attribute* of one row: neighbours differ in the group
    of one row. **Features, labels and the number of rows count as public**, and so do the names of the groups, the
    classes and all constructor parameters. ``privacy_.epsilon`` is computed from the declared votes alone. It is no
    guarantee for the rows themselves, and none at all where a feature says which group a row belongs to: drop such
    columns (``sensitive_columns``). The group is needed by ``fit`` only.

    Each row belongs to one teacher, chosen by its position, so that one group changes one teacher's votes and nothing
    else. (Tran, Zhu, Fioretto & Van Hentenryck 2022, Section 5.) Two variants:

    * ``variant="student"``: teachers learn the *group* from features and label and vote on it; a fair learner is
      trained on rows, labels and released groups.
    * ``variant="teacher"``: teachers are fair classifiers of the *label*, each fair on the groups of its own rows; they
      vote on it, and a plain student learns the released labels.

    Parameters
    ----------
    variant : {"student", "teacher"}, default="student"
    {epsilon}
    {delta}
    constraints : str, fairlearn moment or list of them, default="demographic_parity"
        Of the built-in fair learner: "demographic_parity" (same predictions), "equalized_odds" (same predictions within
        each true class), "accuracy_parity" (same errors), "generalized_demographic_parity" (same distribution of
        scores, for parity at any threshold), or several of them at once. A ``fair_estimator`` brings its own.
    moments : int, default=2
        Moments that generalized demographic parity compares.
    fair_estimator : estimator or None, default=None
        Anything with ``fit(X, y, sensitive_features=...)`` whose ``predict`` needs no groups: the student of the
        "student" variant, every teacher of the other. It gets classes and groups as codes and, where its fit has that
        parameter, released groups as ``group_weights=`` (n_rows, n_groups). None is :class:`LagrangianClassifier` with
        ``constraints``; of those all teachers are trained in one tensor program.
    teacher : None, "logistic", "mlp", estimator or module, default=None
        What learns the group ("student" variant only). As in :class:`PATEClassifier`; None is ``LogisticTeachers()``.
    student : classifier or None, default=None
        What learns the released labels ("teacher" variant only). None is the network of ``LagrangianClassifier``, which
        learns estimated shares; one with other settings may be given.
    voting : {"soft", "gnmax"}, default="soft"
        "soft" releases the noisy shares of the votes, denoises them by a regression on public features, and trains the
        student on *all* rows: groups enter as estimated shares (teachers give theirs as probabilities), which are right
        on average where likeliest groups are not. "gnmax" is the paper's: the noisy winner of every query, and a
        student that sees the rows asked about only.
    max_queries : int or None, default=None
        Rows asked about, drawn by position. None: all for "soft", at most 200 for "gnmax".
    sigma : float or None, default=None
        Noise on each released count, in votes. None: calibrated to ``epsilon``.
    noise : {"gaussian", "discrete_gaussian"}, default="gaussian"
        The discrete Gaussian is sampled exactly, in integer arithmetic; votes are then whole.
    proximal_weight : float or None, default=None
        The built-in student minimises its mean loss plus ``proximal_weight · ‖θ - θ*‖²``, where θ* is the same network
        trained without constraint on all rows (public), and starts from θ*. 0 starts anew. None: 0 for "soft", 1e-3
        for "gnmax".
    n_teachers : int or "auto", default="auto"
        Number of disjoint parts. "auto" takes one teacher per 20 rows, 1 to 300 of them.
    {public_classes}
    {groups}
    {sensitive_columns}
    n_jobs : int, default=None
        Processes that train teachers which are not batched (through joblib, and so dask or ray).
    {random_state}
    {noise_seed}
    {ledger}
    {verbose}

    Attributes
    ----------
    student_ : estimator
        Predicts class codes. Differentially private in the groups: trained on released votes and public rows.
    released_votes_ : ndarray
        Noisy shares (n_queries, n_groups) for "soft", codes (n_queries,) for "gnmax"; of classes instead of groups for
        ``variant="teacher"``. Differentially private.
    query_indices_ : ndarray of shape (n_queries,)
        Rows asked about (public).
    sigma_ : float
        Noise on each released count, in votes.
    n_teachers_, n_queries_ : int
    {classes_}
    {groups_}
    {privacy_}
    {epsilon_spent_}
    {n_features_in_}
    {feature_names_in_}

    Raises
    ------
    {fit_raises}

    Warns
    -----
    FairnessWarning
        By the released votes a group has too few rows to speak of.

    See Also
    --------
    PFLDClassifier : the same guarantee from noisy violations of one network.
    RandomizedResponseClassifier : the same from groups released row by row.
    skfairdp.inspection.sfpate_bounds : the paper's bounds on the fairness of the outcome, for the curator's eyes.

    Notes
    -----
    The partition is never stratified by the group: one changed group would then move rows between all teachers.

    Examples
    --------
    >>> from skfairdp import SFPATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(3000, disparity=0.3, random_state=0)
    >>> model = SFPATEClassifier(epsilon=1.0, groups=sorted(set(groups)), random_state=0)
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> print(model.privacy_.protects, model.privacy_.epsilon <= 1.0)
    sensitive attribute True
    >>> other = model.refit(constraints="equalized_odds")  # from the same votes: costs nothing
    >>> other.privacy_ is model.privacy_
    True
    """

    _parameter_constraints: dict[str, Any] = {
        "variant": [StrOptions({"student", "teacher"})],
        "epsilon": [Interval(Real, 0, MAX_EPSILON, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "constraints": "no_validation",
        "moments": [Interval(Integral, 1, 10, closed="both")],
        "fair_estimator": [HasMethods(["fit", "predict"]), None],
        "teacher": "no_validation",
        "student": [HasMethods(["fit", "predict"]), None],
        "voting": [StrOptions({"soft", "gnmax"})],
        "max_queries": [Interval(Integral, 1, None, closed="left"), None],
        "sigma": [Interval(Real, 1e-9, 1e9, closed="both"), None],
        "noise": [StrOptions({"gaussian", "discrete_gaussian"})],
        "proximal_weight": [Interval(Real, 0, None, closed="left"), None],
        "n_teachers": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "classes": ["array-like", None],
        "groups": ["array-like", None],
        "sensitive_columns": [str, Integral, list, tuple, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "noise_seed": [Interval(Integral, 0, None, closed="left"), None],
        "ledger": [HasMethods(["charge"]), None],
        "verbose": ["verbose"],
    }
    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED}  # all features are public

    def __init__(
        self,
        *,
        variant: str = "student",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        constraints: Any = "demographic_parity",
        moments: int = 2,
        fair_estimator: Any = None,
        teacher: Any = None,
        student: Any = None,
        voting: str = "soft",
        max_queries: int | None = None,
        sigma: float | None = None,
        noise: str = "gaussian",
        proximal_weight: float | None = None,
        n_teachers: int | str = "auto",
        classes: ArrayLike | None = None,
        groups: Sequence[Any] | None = None,
        sensitive_columns: str | int | Sequence[str | int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
    ) -> None:
        self.variant = variant
        self.epsilon = epsilon
        self.delta = delta
        self.constraints = constraints
        self.moments = moments
        self.fair_estimator = fair_estimator
        self.teacher = teacher
        self.student = student
        self.voting = voting
        self.max_queries = max_queries
        self.sigma = sigma
        self.noise = noise
        self.proximal_weight = proximal_weight
        self.n_teachers = n_teachers
        self.classes = classes
        self.groups = groups
        self.sensitive_columns = sensitive_columns
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> "SFPATEClassifier":
        """Train teachers, release their noisy votes, train the student.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Public features.
        y : array-like of shape (n_rows,)
            Public labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups of the rows, unless ``sensitive_columns`` names the columns that hold them.

        Returns
        -------
        {returns_self}
        """
        self._validate_params()
        network = self._check_learners()
        rows = self._rows(X, y, sensitive_features)
        rng = public_generator(self.random_state)
        n_teachers = self._count_teachers(len(rows.X))
        queries = self._choose_queries(len(rows.X), rng)
        rehearse(rows, self.variant, self._teaching_learner(network), queries, n_teachers)
        plan = self._plan(rows, n_teachers, len(queries))
        spending = self._spend(
            plan.event,
            relation=NeighboringRelation.REPLACE_ATTRIBUTE,
            releases=plan.releases,
        )
        with spending as noise:
            released = teach_and_vote(
                rows,
                self.variant,
                self._teaching_learner(network),
                queries,
                self._voting(),
                plan,
                noise,
                rng,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
        self.classes_, self.groups_ = rows.classes, rows.domain
        self.n_teachers_, self.n_queries_, self.query_indices_ = n_teachers, len(queries), queries
        self.released_votes_, self.sigma_ = released.values, plan.sigma
        self._released, self._student_seed = self._release(rows, queries, released), int(rng.integers(2**31 - 1))
        try:
            self.student_ = self._teach_student(network)
        except Exception as error:
            error.add_note("The votes are released and paid for.")
            raise
        return self

    # ------------------------------------------------------------------ before any group is read

    def _check_learners(self) -> LagrangianClassifier:
        """What can be said of the learners before any row is read; the network of the built-in one."""
        owner = type(self).__name__
        unused, belongs = ("student", "teacher") if self.variant == "student" else ("teacher", "student")
        if getattr(self, unused) is not None:
            raise ValueError(f"'{unused}' of {owner} only applies to variant='{belongs}'.")
        read_constraints(self.constraints, owner)
        if self.student is not None:
            clone(self.student, safe=False)
        if self.fair_estimator is not None:
            check_fair_learner(clone(self.fair_estimator, safe=False), owner)
        network = fair_network(self.variant, self.fair_estimator, self.constraints, self.moments)
        network.read_net()
        return network

    def _teaching_learner(self, network: LagrangianClassifier) -> Any:
        if self.variant == "student":
            return self.teacher
        return network if self.fair_estimator is None else self.fair_estimator

    def _rows(self, X: ArrayLike, y: ArrayLike, sensitive_features: ArrayLike | None) -> AttributeRows:
        features, groups_in_X = self._split_features(X, reset=True, read_groups=True)
        if np.abs(features).max() > LARGEST_PUBLIC:
            raise ValueError(
                f"X of {type(self).__name__} holds numbers beyond {LARGEST_PUBLIC:g}, whose squares are no floats. "
                "Scale the features."
            )
        classes, codes = self._public_classes(self._check_target(y, len(features)))
        groups, domain = self._private_groups(groups_in_X, sensitive_features, len(features))
        center, scale = standard_scale(features)  # of public features
        return AttributeRows(
            X=(features - center) / scale,
            codes=codes,
            classes=classes,
            groups=groups,
            domain=domain,
            center=center,
            scale=scale,
        )

    def _count_teachers(self, n_rows: int) -> int:
        if self.n_teachers == "auto":
            return int(np.clip(n_rows // ROWS_PER_TEACHER, 1, MOST_TEACHERS))
        wanted = int(self.n_teachers)
        if wanted > n_rows:
            raise ValueError(
                f"The 'n_teachers' parameter of {type(self).__name__} is {wanted}, more teachers than rows: "
                f"X has n_samples = {n_rows}. Use at most one teacher per row."
            )
        return wanted

    def _choose_queries(self, n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        most = self.max_queries or (n_rows if self.voting == "soft" else STUDENT_ROWS)
        return np.sort(rng.permutation(n_rows)[: min(most, n_rows)])

    def _plan(self, rows: AttributeRows, n_teachers: int, n_queries: int) -> VotePlan:
        return self._voting().plan(
            epsilon=self.epsilon,
            delta=self.delta,
            n_queries=n_queries,
            n_teachers=n_teachers,
            n_classes=len(rows.domain if self.variant == "student" else rows.classes),
            noise=self.noise,
            relation=NeighboringRelation.REPLACE_ATTRIBUTE,
        )

    def _voting(self) -> SoftVoting | GNMaxVoting:
        return SoftVoting(sigma=self.sigma) if self.voting == "soft" else GNMaxVoting(sigma=self.sigma)

    def _release(self, rows: AttributeRows, queries: NDArray[np.int64], votes: ReleasedVotes) -> Released:
        """All that a student may learn from."""
        return Released(
            X=rows.X,
            y=rows.codes,
            n_classes=len(rows.classes),
            queries=queries,
            labels=votes.labels,
            shares=votes.shares,
            noise_std=votes.noise_std,
            n_values=len(rows.domain if self.variant == "student" else rows.classes),
            center=rows.center,
            scale=rows.scale,
        )
