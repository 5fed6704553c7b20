"""FairPATE: private aggregation that releases no label that would break demographic parity."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import joblib
from numpy.typing import ArrayLike

from skfairdp.pate._constraint import ConstrainedPATE
from skfairdp.privacy import PrivacyLedger
from skfairdp.utils import PublicData, RandomStateLike
from skfairdp.utils._sklearn import Interval, StrOptions

__all__ = ["FairPATEClassifier"]


class FairPATEClassifier(ConstrainedPATE):
    """Private **and** fair classifier: noisy votes label public rows, as far as demographic parity allows.

    **Guarantee.** (ε, δ)-differential privacy for the private *records*, neighbours differing in one replaced row.
    Private groups are never read (except with ``public_size``, whose held-out rows are not protected). The number of
    rows, the classes, all constructor parameters, the public rows *and their groups* count as public.
    ``privacy_.epsilon`` is computed from the declared releases alone and is the same for every data set.

    **Fairness.** ``gamma`` bounds the demographic disparity of the released labels (``gap_``) and, with the built-in
    student, of its predictions on the public rows (``student_.gap_``). On other rows the gap is an estimate: measure it
    with ``skfairdp.metrics.demographic_disparity``, and enforce it at prediction with :class:`IDP3`.

    FairPATE (Yaghini et al. 2023, Algorithm 1). Its published accounting does not hold: a label that is rejected after
    the noisy argmax has still been paid for. Here the gate is consulted *before* the vote, on public counters
    (CF-GNMax+), or applied to votes already released.

    *Baselines.* ``constraint_at`` can move the constraint behind plain PATE: the same queries, votes and ε, no gate in
    the aggregation. **"student_data"** (the paper's PATE-S_pre) withdraws released labels that would break parity, as
    :class:`DemographicParityFilter` does, and the student sees the kept rows only. **"student_loss"** (PATE-S_in)
    trains the student on all released labels with ``lam`` times the demographic disparity of its softened predictions
    in the loss. Neither holds the student to ``gamma``. In the paper's words these designs are not impartial: privacy
    comes first, and is spent on labels that fairness then throws away or works against.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, in (0, 1e9]. The certified figure never exceeds it.
    delta : float, default=1e-5
        In (0, 1).
    gamma : float or None, default=0.05
        Largest demographic disparity. None is no constraint. With ``constraint_at="student_loss"`` nothing is held to
        it; a FairnessWarning says where the student's gap on the public rows is larger.
    min_count : int, default=50
        Answers a group needs before the gate judges it (cold start).
    gap : {"others", "overall", "between"}, default="others"
        Disparity of a group against all others, against everyone, or against the least favoured (paper, App. H.1).
    gate : {"excess", "local"}, default="excess"
        "excess" never raises the total violation; "local" is the paper's check (equal for two groups and two classes).
    constraint_at : {"aggregation", "student_data", "student_loss", None}, default="aggregation"
        Where parity is enforced: FairPATE, or a baseline (above). None is plain PATE.
    lam : float, default=1.0
        Weight λ >= 0 of the penalty, for ``constraint_at="student_loss"``; 0 is none.
    n_teachers : int or "auto", default="auto"
        Number of disjoint parts. "auto" takes one teacher per 130 private rows, 1 to 1000 of them.
    teacher : None, "logistic", "mlp", estimator or module, default=None
        What each part trains. None is ``LogisticTeachers(C=3.0)``, "logistic" the same with C=1 (all teachers in one
        batched Newton iteration), "mlp" a batched network (``MLPTeachers()``); any scikit-learn classifier is cloned
        per part, a torch module is batched.
    student : classifier or None, default=None
        None: :class:`SoftLabelStudent`, which learns from noisy shares without bias and is held to parity on the public
        rows (``constraint_at="aggregation"``). Any classifier is trained on the released labels (and held to nothing).
        With "student_loss" it must be a :class:`ParityPenaltyStudent`, and None is one without hidden layers.
    voting : {"soft", "confident", "gnmax"}, default="soft"
        "soft" releases the noisy vote share of every query; gate, labels and students are post-processing, so
        :meth:`refit_student` sweeps ``gamma`` for free. "gnmax" releases the noisy winner of every query and gates it.
        "confident" is CF-GNMax+: gate first, then a noisy threshold among the admissible classes, then an argmax only
        where more than one is admissible.
    threshold : float, default=0.6
        Share of the votes a label needs, in (0.5, 1]. "soft" applies it to the denoised share; "gnmax" has none.
    sigma_threshold : float, default=None
        Noise on the largest count, in votes ("confident" only). None: calibrated.
    sigma_gnmax : float, default=None
        Noise on each released count, in votes. None: calibrated to ``epsilon``.
    max_queries : int, default=None
        Most public rows asked about. None: all for "soft", at most 1000 otherwise.
    max_answers : int, default=None
        Most noisy maxima paid for ("confident" only). None: 60 % of the queries.
    accounting : {"auto", "binary", "gdp"}, default="auto"
        For "confident": "binary" declares counts and sums the exact cost of each published bit; "gdp" runs the
        adaptive Gaussian filter, which takes Gaussian noise only. "auto": binary for two classes or discrete noise,
        else the filter.
    noise : {"gaussian", "discrete_gaussian"}, default="gaussian"
        The discrete Gaussian is sampled exactly, in integer arithmetic.
    public_size : float, default=None
        Share of the rows given to ``fit`` to hold out as public, by position. **Those rows are not protected.**
    classes : array-like, default=None
        All class labels. None reads them from y, which is a release; a PrivacyLeakWarning says so.
    groups : list, default=None
        All groups (tuples for intersections). None takes those of the public rows.
    sensitive_columns : str, int or list of them, default=None
        Columns of X that hold the group. They are dropped from the features and still counted in ``n_features_in_``.
    memory : str or joblib.Memory, default=None
        Cache of trained teachers, so that a sweep trains them once. **The cache holds private models**: protect it
        like the data.
    n_jobs : int, default=None
        Processes that train scikit-learn teachers (through joblib, and so dask or ray).
    random_state : int, RandomState, Generator or None, default=None
        Public randomness: partition, initialisation, order of the queries. Never noise.
    noise_seed : int, default=None
        Makes the noise reproducible for research and tests; ``privacy_.epsilon`` is then inf.
    ledger : PrivacyLedger, default=None
        Counts this fit with all others on the same data, and may refuse it.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    student_ : estimator
        Predicts class codes. Public: trained on released votes and public rows only.
    classes_ : ndarray of shape (n_classes,)
    groups_ : ndarray of shape (n_groups,), dtype object
        Groups of the public rows (only where groups were used).
    privacy_ : PrivacySpent
        The certified guarantee.
    epsilon_spent_ : float
        Shorthand for ``privacy_.epsilon``.
    gap_ : float
        Largest demographic disparity of the *released labels* that were not withdrawn, not of the student.
    rejection_rate_by_group_ : dict
        Share of unanswered queries in each group of public rows.
    n_teachers_, n_queries_, n_answered_ : int
        ``n_answered_`` counts released labels (public).
    released_votes_ : ndarray
        Noisy shares (n_queries, n_classes) for "soft", class codes (−1: none) otherwise. Differentially private.
    query_indices_ : ndarray of shape (n_queries,)
        Public rows asked about, in order.
    released_labels_ : ndarray of shape (n_queries,), dtype object
        Label of each query, None where there is none or the gate withdrew it.
    answered_mask_ : ndarray of bool of shape (n_queries,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X had string column names.

    Raises
    ------
    BudgetExceededError
        From ``fit``, before anything is released, when the ledger cannot afford it.
    ValueError
        From ``fit``, on unusable input, before anything is spent. Labels outside ``classes`` are reported without their
        names; that such an error occurs is itself visible.

    Warns
    -----
    PrivacyLeakWarning
        Classes were read from private labels, or the noise is seeded.
    FairnessWarning
        A group has fewer public rows than ``min_count``, the gate came to a state in which no label is admissible, or
        the student does not reach ``gamma`` on the public rows ("aggregation" and "student_loss").

    Examples
    --------
    >>> from skfairdp import FairPATEClassifier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> data = make_biased_classification(8000, disparity=0.3, random_state=0)
    >>> split = train_private_public_test_split(*data, random_state=0)
    >>> model = FairPATEClassifier(epsilon=2.0, gamma=0.05, classes=[0, 1], random_state=0)
    >>> model = model.fit(split.X, split.y, X_public=split.public)
    >>> model.privacy_.epsilon <= 2.0, model.gap_ <= 0.05
    (True, True)
    >>> looser = model.refit_student(gamma=0.2)  # from the same votes: costs nothing
    >>> looser.privacy_ is model.privacy_
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **ConstrainedPATE._parameter_constraints,
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "min_count": [Interval(Integral, 0, None, closed="left")],
        "gap": [StrOptions({"others", "overall", "between"})],
        "gate": [StrOptions({"excess", "local"})],
        "constraint_at": [StrOptions({"aggregation", "student_data", "student_loss"}), None],
        "lam": [Interval(Real, 0, 1e9, closed="both")],
        "groups": ["array-like", None],
        "sensitive_columns": [str, Integral, list, tuple, None],
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        gamma: float | None = 0.05,
        min_count: int = 50,
        gap: str = "others",
        gate: str = "excess",
        constraint_at: str | None = "aggregation",
        lam: float = 1.0,
        n_teachers: int | str = "auto",
        teacher: Any = None,
        student: Any = None,
        voting: str = "soft",
        threshold: float = 0.6,
        sigma_threshold: float | None = None,
        sigma_gnmax: float | None = None,
        max_queries: int | None = None,
        max_answers: int | None = None,
        accounting: str = "auto",
        noise: str = "gaussian",
        public_size: float | None = None,
        classes: ArrayLike | None = None,
        groups: Sequence[Any] | None = None,
        sensitive_columns: str | int | Sequence[str | int] | None = None,
        memory: str | joblib.Memory | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.gamma = gamma
        self.min_count = min_count
        self.gap = gap
        self.gate = gate
        self.constraint_at = constraint_at
        self.lam = lam
        self.n_teachers = n_teachers
        self.teacher = teacher
        self.student = student
        self.voting = voting
        self.threshold = threshold
        self.sigma_threshold = sigma_threshold
        self.sigma_gnmax = sigma_gnmax
        self.max_queries = max_queries
        self.max_answers = max_answers
        self.accounting = accounting
        self.noise = noise
        self.public_size = public_size
        self.classes = classes
        self.groups = groups
        self.sensitive_columns = sensitive_columns
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.ledger = ledger
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        X_public: ArrayLike | PublicData | None = None,
        sensitive_features_public: ArrayLike | None = None,
    ) -> "FairPATEClassifier":
        """Train teachers, release their noisy votes on public rows, train the student.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows (of which ``public_size`` may be declared public).
        y : array-like of shape (n_rows,)
            Private labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Groups of the rows of X; read only for the rows that ``public_size`` holds out. Columns of a DataFrame form
            intersections.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Unlabelled public rows. Use :class:`PublicData` inside a search.
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Public groups of the public rows; may be part of ``PublicData``.

        Returns
        -------
        self
        """
        self._fit(X, y, sensitive_features, X_public, sensitive_features_public)
        public = self._public
        if public.domain is not None:
            self.groups_ = public.domain
        return self
