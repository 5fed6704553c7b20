"""FairDP-SGD: private gradients from the private rows, a fairness gradient from public ones."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import FairPrivateMixin
from skfairdp.privacy import PrivacyLedger
from skfairdp.utils import PublicData, RandomStateLike, child_seeds, public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["FairDPSGDClassifier"]


class FairDPSGDClassifier(FairPrivateMixin, ClassifierMixin, BaseEstimator):
    """Network trained by differentially private SGD, with a demographic-parity term computed on public rows.

    **Guarantee.** (ε, δ)-differential privacy for the private *records*, neighbours differing by adding or removing
    one row. The sampling probability, the number of steps, the classes, all constructor parameters and the public rows
    with their groups count as public. ``privacy_.epsilon`` is computed from the declared steps alone (privacy loss
    distributions of the Poisson-sampled Gaussian). It is no guarantee for *replacing* a row, which costs more.

    Each step is ``θ ← θ - η [ (Σ clip(g_i) + noise) / (qN) + λ ∇DPFR(θ; public) ]``. The fairness term reads public
    rows and the present θ only, so it is post-processing: free, unbiased, unclipped, and computed apart from the
    private gradients. (FairDP-SGD, Yaghini et al. 2023. Its Algorithm 6 clips the term together with each gradient and
    divides by the realised batch size, which is private; ``regularizer_at="per_sample"`` clips it so, and divides by
    qN.)

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget; greater than 0 and finite. The certified figure never exceeds it.
    delta : float, default=1e-5
        In (0, 1).
    lam : float, default=1.0
        Weight λ ≥ 0 of the fairness term. 0 is plain DP-SGD, and reads no public rows.
    temperature : float, default=1.0
        Softness of predictions and maximum in the term; it tends to the hard gap as this goes to 0. (The paper takes
        0.01, where most rows have no gradient left.)
    maximum : {"soft", "hard"}, default="soft"
        How the largest disparity is taken.
    regularizer_at : {"aggregate", "per_sample"}, default="aggregate"
        Beside the private gradient, or inside the clipping of every per-sample gradient.
    module : None or torch.nn.Module, default=None
        Maps float rows to one logit per class; it is copied. None is a network with tanh units and ``hidden`` layers.
        Modules that mix rows or keep something of them (BatchNorm) are refused. Dropout is allowed: its masks follow a
        row's position in its batch and so must be secret; they come with the noise, not from ``random_state``.
    hidden : tuple of int, default=(64,)
        Hidden layers of the built-in network.
    epochs : float, default=20
        Expected passes over the private rows.
    batch_size : int, default=512
        Expected size of a Poisson batch; the sampling probability is ``batch_size / n_rows``, at most 1.
    n_rows : int, default=None
        Public number of private rows, from which sampling probability, steps and the divisor of the gradients follow.
        It need not be exact. None counts them, and the count is then public: a row more would change all three.
    lr : float, default=1.0
        Step size.
    momentum : float, default=0.0
        In [0, 1).
    average_last : float, default=0.25
        Share of the last iterates whose average is kept.
    max_grad_norm : float, default=1.0
        Clipping bound of per-sample gradients.
    noise_multiplier : float, default=None
        Noise over clipping bound. None: calibrated to ``epsilon``.
    public_batch_size : int, default=None
        Evaluate the fairness term on so many public rows, drawn afresh for every step. None takes all: exact, and
        slower than the private step where the public rows outnumber the batch.
    public_size : float, default=None
        Share of the rows given to ``fit`` to hold out as public, by position. **Those rows are not protected**, and
        which rows they are, a function of ``random_state`` and the number of rows, is public too.
    classes : array-like, default=None
        All class labels. None reads them from y, which is a release; a PrivacyLeakWarning says so.
    groups : list, default=None
        All groups (tuples for intersections). None takes those of the public rows.
    sensitive_columns : str, int or list of them, default=None
        Columns of X that hold the group. They are dropped from the features and still counted in ``n_features_in_``.
    device : str, default="cpu"
        Where to train, for example "cuda".
    random_state : int, RandomState, Generator or None, default=None
        Public randomness: the initial weights of the built-in network, the public batches. Never private batches,
        dropout or noise.
    noise_seed : int, default=None
        Makes batches and noise reproducible for research and tests; ``privacy_.epsilon`` is then inf.
    ledger : PrivacyLedger, default=None
        Counts this fit with all others on the same data, and may refuse it.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    net_ : torch.nn.Module
        The trained network, on the CPU. Differentially private.
    classes_ : ndarray of shape (n_classes,)
    groups_ : ndarray of shape (n_groups,), dtype object
        Groups of the public rows (only where groups were used).
    privacy_ : PrivacySpent
        The certified guarantee.
    epsilon_spent_ : float
        Shorthand for ``privacy_.epsilon``.
    noise_multiplier_ : float
        The noise multiplier used.
    n_steps_ : int
        Number of noisy steps.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X had string column names.

    Raises
    ------
    BudgetExceededError
        From ``fit``, before any step, when the ledger cannot afford it.
    ValueError
        From ``fit``, on unusable input, before anything is spent.

    Examples
    --------
    >>> from skfairdp.gradient import FairDPSGDClassifier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> split = train_private_public_test_split(*make_biased_classification(3000, random_state=0), random_state=0)
    >>> model = FairDPSGDClassifier(epsilon=2.0, lam=1.0, epochs=3, batch_size=200, classes=[0, 1], random_state=0)
    >>> model = model.fit(split.X, split.y, X_public=split.public)
    >>> model.privacy_.epsilon <= 2.0, model.privacy_.neighboring_relation
    (True, 'add or remove one record')
    """

    _parameter_constraints: dict[str, Any] = {
        "epsilon": [Interval(Real, 0, 1e9, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "lam": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "maximum": [StrOptions({"soft", "hard"})],
        "regularizer_at": [StrOptions({"aggregate", "per_sample"})],
        "module": [HasMethods(["parameters", "forward"]), None],
        "hidden": [tuple, list],
        "epochs": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_rows": [Interval(Integral, 1, None, closed="left"), None],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "average_last": [Interval(Real, 0, 1, closed="both")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither")],
        "noise_multiplier": [Interval(Real, 0, None, closed="neither"), None],
        "public_batch_size": [Interval(Integral, 2, None, closed="left"), None],
        "public_size": [Interval(Real, 0, 1, closed="neither"), None],
        "classes": ["array-like", None],
        "groups": ["array-like", None],
        "sensitive_columns": [str, Integral, list, tuple, None],
        "device": [str],
        "random_state": ["random_state"],
        "noise_seed": [Interval(Integral, 0, None, closed="left"), None],
        "ledger": [HasMethods(["charge"]), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        lam: float = 1.0,
        temperature: float = 1.0,
        maximum: str = "soft",
        regularizer_at: str = "aggregate",
        module: Any = None,
        hidden: Sequence[int] = (64,),
        epochs: float = 20,
        batch_size: int = 512,
        n_rows: int | None = None,
        lr: float = 1.0,
        momentum: float = 0.0,
        average_last: float = 0.25,
        max_grad_norm: float = 1.0,
        noise_multiplier: float | None = None,
        public_batch_size: int | None = None,
        public_size: float | None = None,
        classes: ArrayLike | None = None,
        groups: Sequence[Any] | None = None,
        sensitive_columns: str | int | Sequence[str | int] | None = None,
        device: str = "cpu",
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.lam = lam
        self.temperature = temperature
        self.maximum = maximum
        self.regularizer_at = regularizer_at
        self.module = module
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.n_rows = n_rows
        self.lr = lr
        self.momentum = momentum
        self.average_last = average_last
        self.max_grad_norm = max_grad_norm
        self.noise_multiplier = noise_multiplier
        self.public_batch_size = public_batch_size
        self.public_size = public_size
        self.classes = classes
        self.groups = groups
        self.sensitive_columns = sensitive_columns
        self.device = device
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
    ) -> "FairDPSGDClassifier":
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows (of which ``public_size`` may be declared public).
        y : array-like of shape (n_rows,)
            Private labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Groups of the rows of X; read only for the rows that ``public_size`` holds out.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Unlabelled public rows, for the fairness term. Not needed with ``lam=0``.
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Public groups of the public rows; may be part of ``PublicData``.

        Returns
        -------
        self
        """
        from skfairdp.neural import DPStep, prepare_network

        self._validate_params()
        features, groups_in_X = self._split_features(X, reset=True, read_groups=self.public_size is not None)
        target = self._check_target(y, len(features))
        classes, codes = self._encode_classes(target)
        public = None
        if self.lam > 0 or X_public is not None or self.public_size is not None:
            features, codes, public = self._public_rows(
                features,
                codes,
                groups_in_X,
                sensitive_features,
                X_public,
                sensitive_features_public,
                use_groups="required" if self.lam > 0 else "optional",
            )
        seeds = child_seeds(public_generator(self.random_state), 2)
        network = prepare_network(
            self.module,
            features.shape[1],
            len(classes),
            hidden=tuple(self.hidden),
            seed=int(seeds[0]),
            device=self.device,
            owner=type(self).__name__,
        )
        penalty = None
        if self.lam > 0:
            assert public is not None and public.groups is not None
            penalty = network.penalty(
                public.X,
                public.groups,
                public.n_groups,
                lam=self.lam,
                temperature=self.temperature,
                maximum=self.maximum,
                batch_size=self.public_batch_size,
                seed=int(seeds[1]),
            )
        step = DPStep.calibrated(
            epsilon=self.epsilon,
            delta=self.delta,
            n_rows=len(features) if self.n_rows is None else self.n_rows,
            batch_size=self.batch_size,
            epochs=self.epochs,
            max_grad_norm=self.max_grad_norm,
            noise_multiplier=self.noise_multiplier,
        )
        source = self._noise_source()
        guarantee = {"protects": "record", "neighboring_relation": "add or remove one record"}
        privacy = self._report(
            step.event,
            source,
            **guarantee,
            public=(
                "sampling probability",
                "number of steps",
                *(() if self.n_rows is not None else ("number of private rows",)),
                "classes",
                "public rows and their groups",
                "all constructor parameters",
            ),
        )
        if privacy.mechanism_epsilon > self.epsilon:
            raise ValueError(
                f"noise_multiplier={self.noise_multiplier} of {type(self).__name__} costs epsilon="
                f"{privacy.mechanism_epsilon:.4g} for {step.steps} steps, more than the epsilon={self.epsilon:g} asked "
                "for. Raise it, lower 'epochs' or 'batch_size', or leave it None."
            )
        self._charge(step.event, **guarantee, releases=(f"{step.steps} noisy clipped gradient sums",), dry_run=False)
        # From here on the ledger says it all, also if the training is interrupted.
        self.net_ = network.trained(
            features,
            codes,
            step,
            source,
            lr=self.lr,
            momentum=self.momentum,
            average_last=self.average_last,
            penalty=penalty,
            penalty_inside=self.regularizer_at == "per_sample",
            verbose=self.verbose,
        )
        self.classes_ = classes
        self.privacy_ = privacy
        self.noise_multiplier_ = step.noise_multiplier
        self.n_steps_ = step.steps
        if public is not None and public.domain is not None:
            self.groups_ = public.domain
        return self

    def _logits(self, X: ArrayLike) -> NDArray[np.float64]:
        from skfairdp.neural import predict_logits

        check_is_fitted(self, "net_")
        features, _ = self._split_features(X)
        return predict_logits(self.net_, features)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row; the group is not needed.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        codes = self._logits(X).argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities, the softmax of the network's logits.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return softmax(self._logits(X), axis=1)
