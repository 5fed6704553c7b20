"""PATE: private aggregation of teacher ensembles."""

from typing import Any

import joblib
from numpy.typing import ArrayLike
from sklearn.utils import metadata_routing

from skfairdp.pate._base_pate import BasePATE
from skfairdp.privacy import PrivacyLedger
from skfairdp.utils import PublicData, RandomStateLike

__all__ = ["PATEClassifier"]


class PATEClassifier(BasePATE):
    """Private classifier: teachers on disjoint private parts vote, with noise, on public rows; a student learns.

    **Guarantee.** (ε, δ)-differential privacy for the private *records*, neighbours differing in one replaced row. The
    number of rows, the classes, all constructor parameters and the public rows count as public; public rows are not
    protected. ``privacy_.epsilon`` is computed from the declared releases alone and is the same for every data set.

    Private aggregation (Papernot et al. 2017, 2018): each private row belongs to one teacher, chosen by its position,
    so changing one row changes one vote. Only noisy votes leave the private side.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, in (0, 1e9]. The certified figure never exceeds it.
    delta : float, default=1e-5
        In (0, 1).
    n_teachers : int or "auto", default="auto"
        Number of disjoint parts. "auto" takes one teacher per 130 private rows, 1 to 1000 of them.
    teacher : None, "logistic", "mlp", estimator or module, default=None
        What each part trains. None is ``LogisticTeachers(C=3.0)``, "logistic" the same with C=1 (all teachers in one
        batched Newton iteration), "mlp" a batched network (``MLPTeachers()``); any scikit-learn classifier is cloned
        per part, a torch module is batched.
    student : classifier or None, default=None
        None: :class:`SoftLabelStudent`, which learns from noisy shares without bias. Any classifier is trained on the
        released labels.
    voting : {"soft", "confident", "gnmax"}, default="soft"
        "soft" releases the noisy vote share of every query; labels, thresholds and students are post-processing.
        "gnmax" releases the noisy winner of every query. "confident" first asks, with noise, whether the winner has
        enough votes (Confident-GNMax).
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
    privacy_ : PrivacySpent
        The certified guarantee.
    epsilon_spent_ : float
        Shorthand for ``privacy_.epsilon``.
    n_teachers_, n_queries_, n_answered_ : int
        ``n_answered_`` counts released labels (public).
    released_votes_ : ndarray
        Noisy shares (n_queries, n_classes) for "soft", class codes (−1: none) otherwise. Differentially private.
    query_indices_ : ndarray of shape (n_queries,)
        Public rows asked about, in order.
    released_labels_ : ndarray of shape (n_queries,), dtype object
        Label of each query, None where there is none.
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

    See Also
    --------
    FairPATEClassifier : the same with demographic parity.

    Examples
    --------
    >>> from skfairdp import PATEClassifier, PublicData
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> split = train_private_public_test_split(*make_biased_classification(4000, random_state=0), random_state=0)
    >>> model = PATEClassifier(epsilon=2.0, classes=[0, 1], random_state=0)
    >>> model = model.fit(split.X, split.y, X_public=split.X_public)
    >>> model.privacy_.epsilon <= 2.0
    True
    """

    # No groups: its fit takes none, so nothing may be routed there.
    __metadata_request__fit = {
        "sensitive_features": metadata_routing.UNUSED,
        "sensitive_features_public": metadata_routing.UNUSED,
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
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
        memory: str | joblib.Memory | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
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
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, X_public: ArrayLike | PublicData | None = None) -> "PATEClassifier":
        """Train teachers, release their noisy votes on public rows, train the student.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows (of which ``public_size`` may be declared public).
        y : array-like of shape (n_rows,)
            Private labels.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Unlabelled public rows. Use :class:`PublicData` inside a search.

        Returns
        -------
        self
        """
        self._fit(X, y, None, X_public, None)
        return self
