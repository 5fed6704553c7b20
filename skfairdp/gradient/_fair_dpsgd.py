"""FairDP-SGD: private gradients from the private rows, a fairness gradient from public ones."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from skfairdp._network_classifier import NetworkPredictions
from skfairdp.gradient._training_rows import ReadsTrainingRows, TrainingRows
from skfairdp.privacy import PrivacyLedger, relation_for
from skfairdp.utils import PublicData, RandomStateLike, child_seeds, public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["FairDPSGDClassifier"]


class FairDPSGDClassifier(NetworkPredictions, ReadsTrainingRows, ClassifierMixin, BaseEstimator):
    """Network trained by differentially private SGD, with a demographic-parity term.

    **Guarantee.** (ε, δ)-differential privacy for the private *records*. Neighbours differ in one record, which in one
    of them is a null record that contributes nothing; the number of rows is public, since sampling probability, steps
    and divisor follow from it. With a declared ``n_rows`` they follow from that, and neighbours differ by adding or
    removing one record, at the same ε. Those figures, the classes, all constructor parameters and the public rows with
    their groups count as public. ``privacy_.epsilon`` is computed from the declared steps alone (privacy loss
    distributions of the Poisson-sampled Gaussian). It is no guarantee for *replacing* a row by another, which costs
    more.

    Each step is ``θ ← θ - η [ (Σ clip(g_i) + noise) / (qN) + λ ∇DPFR(θ; public) ]``. The fairness term reads public
    rows and the present θ only, so it is post-processing: free, unbiased, unclipped, and computed apart from the
    private gradients. (FairDP-SGD, Yaghini et al. 2023. Its Algorithm 6 clips the term together with each gradient and
    divides by the realised batch size, which is private; ``regularizer_at="per_sample"`` clips it so, and divides by
    qN.)

    Without public rows (``public="none"``) the parity term is a signed loss of the private rows and their groups,
    inside the clipping, steered by noisy rates of the groups, which are charged: ε covers steps and rates together.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget; greater than 0 and finite. The certified figure never exceeds it.
    delta : float, default=1e-5
        In (0, 1).
    lam : float, default=0.5
        Weight λ ≥ 0 of the fairness term; with ``public="none"``, the largest multiplier. 0 is plain DP-SGD, bit for
        bit, and reads neither public rows nor groups.
    public : {"rows", "none"}, default="rows"
        Where the fairness term comes from: public rows with their groups, at no cost, or the private ones.
    temperature : float, default=1.0
        Softness of predictions and maximum in the term; it tends to the hard gap as this goes to 0. (The paper takes
        0.01, where most rows have no gradient left.)
    maximum : {"hard", "soft"}, default="hard"
        How the largest disparity is taken. "soft" (the paper's) averages with weights ``softmax(disparity /
        temperature)``, which flattens the term near parity unless the temperature is small.
    regularizer_at : {"aggregate", "per_sample"}, default="aggregate"
        Beside the private gradient, or inside the clipping of every per-sample gradient.
    module : {"mlp", "cnn"} or torch.nn.Module, default="mlp"
        "mlp" has tanh units and ``hidden`` layers, "cnn" two convolutions. A module maps float rows to one logit per
        class, and is copied; one that mixes rows or keeps something of them (BatchNorm) is refused. Dropout is allowed:
        its masks follow a row's position in its batch and so must be secret; they come with the noise, not from
        ``random_state``.
    hidden : tuple of int, default=(64,)
        Hidden layers of "mlp".
    image_shape : tuple of three int, default=None
        Channels, height and width of the rows of X, which hold them flat in this order; for "cnn".
    epochs : float, default=20
        Expected passes over the private rows.
    batch_size : int, default=512
        Expected size of a Poisson batch; the sampling probability is ``batch_size / n_rows``, at most 1.
    n_rows : int, default=None
        Public number of private rows, from which sampling probability, steps and the divisor of the gradients follow.
        It need not be exact, and nothing else follows from the true number, which stays private. A fit takes as long as
        for so many rows. Not together with ``public_size``. None counts the rows, and the count is then public.
    lr : float, default=None
        Step size. None is ``2 / max_grad_norm``.
    momentum : float, default=0.0
        In [0, 1).
    average_last : float, default=0.25
        Share of the last iterates whose average is kept.
    max_grad_norm : float, default=None
        Clipping bound of per-sample gradients. None is 1, and 4 for the signed loss of ``public="none"``, whose weights
        make gradients larger.
    noise_multiplier : float, default=None
        Noise over clipping bound. None: calibrated to ``epsilon``.
    public_batch_size : int, default=256
        Evaluate the fairness term on about so many public rows a step, in batches that hold every group in its share
        and take turns. None takes all: exact, and slower than the private step where they outnumber its batch.
    dual_steps : int, default=40
        With ``public="none"``: how often the rates of the groups are released, evenly over the training.
    dual_rate : float, default=0.5
        With ``public="none"``: how far a multiplier moves for a difference of rates of 1.
    dual_share : float, default=0.1
        With ``public="none"``: share of the budget (of μ²) for those releases; in (0, 1).
    public_size : float, default=None
        Share of the rows given to ``fit`` to hold out as public, by position. **Those rows are not protected**, and
        which rows they are, a function of ``random_state`` and the number of rows, is public too.
    classes : array-like, default=None
        All class labels. None reads them from y, which is a release; a PrivacyLeakWarning says so.
    groups : list, default=None
        All groups (tuples for intersections). None takes those of the public rows; with ``public="none"``, those of the
        private ones, which is a release.
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
        Only where groups were used.
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
    >>> model = FairDPSGDClassifier(epsilon=2.0, lam=0.5, epochs=3, batch_size=200, classes=[0, 1], random_state=0)
    >>> model = model.fit(split.X, split.y, X_public=split.public)
    >>> model.privacy_.epsilon <= 2.0, str(model.privacy_.neighboring_relation)
    (True, 'replace one record by a null record')
    """

    _parameter_constraints: dict[str, Any] = {
        "epsilon": [Interval(Real, 0, 1e9, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "lam": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "maximum": [StrOptions({"soft", "hard"})],
        "regularizer_at": [StrOptions({"aggregate", "per_sample"})],
        "public": [StrOptions({"rows", "none"})],
        "module": [StrOptions({"mlp", "cnn"}), HasMethods(["parameters", "forward"])],
        "hidden": [tuple, list],
        "image_shape": [tuple, list, None],
        "epochs": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_rows": [Interval(Integral, 1, None, closed="left"), None],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "average_last": [Interval(Real, 0, 1, closed="both")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "noise_multiplier": [Interval(Real, 0, None, closed="neither"), None],
        "public_batch_size": [Interval(Integral, 2, None, closed="left"), None],
        "dual_steps": [Interval(Integral, 1, None, closed="left")],
        "dual_rate": [Interval(Real, 0, None, closed="neither")],
        "dual_share": [Interval(Real, 0, 1, closed="neither")],
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
        lam: float = 0.5,
        temperature: float = 1.0,
        maximum: str = "hard",
        regularizer_at: str = "aggregate",
        public: str = "rows",
        module: Any = "mlp",
        hidden: Sequence[int] = (64,),
        image_shape: Sequence[int] | None = None,
        epochs: float = 20,
        batch_size: int = 512,
        n_rows: int | None = None,
        lr: float | None = None,
        momentum: float = 0.0,
        average_last: float = 0.25,
        max_grad_norm: float | None = None,
        noise_multiplier: float | None = None,
        public_batch_size: int | None = 256,
        dual_steps: int = 40,
        dual_rate: float = 0.5,
        dual_share: float = 0.1,
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
        self.public = public
        self.module = module
        self.hidden = hidden
        self.image_shape = image_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.n_rows = n_rows
        self.lr = lr
        self.momentum = momentum
        self.average_last = average_last
        self.max_grad_norm = max_grad_norm
        self.noise_multiplier = noise_multiplier
        self.public_batch_size = public_batch_size
        self.dual_steps = dual_steps
        self.dual_rate = dual_rate
        self.dual_share = dual_share
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
            Groups of the rows of X; read only with ``public="none"``, and for the rows that ``public_size`` holds out.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Unlabelled public rows, for the fairness term. Not needed with ``lam=0`` or ``public="none"``.
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Public groups of the public rows; may be part of ``PublicData``.

        Returns
        -------
        self
        """
        from skfairdp._networks import DPStep, DualPlan

        self._validate_params()
        rows = self._read_rows(X, y, sensitive_features, X_public, sensitive_features_public)
        relation = relation_for(self.n_rows)
        duals = None
        if self._signed:
            duals = DualPlan.calibrated(
                epsilon=self.epsilon,
                delta=self.delta,
                share=self.dual_share,
                releases=self.dual_steps,
                relation=relation,
            )
        beside = None if duals is None else duals.event
        network, fairness = self._network(rows, duals)
        max_grad_norm = self.max_grad_norm or (4.0 if self._signed else 1.0)
        step = DPStep.calibrated(
            epsilon=self.epsilon,
            delta=self.delta,
            n_rows=len(rows.X) if self.n_rows is None else self.n_rows,
            batch_size=self.batch_size,
            epochs=self.epochs,
            max_grad_norm=max_grad_norm,
            noise_multiplier=self.noise_multiplier,
            beside=beside,
            relation=relation,
        )
        releases = [f"{step.steps} noisy clipped gradient sums"]
        if duals is not None:
            releases.append(f"{duals.releases} noisy tables of predictions by group")
        self._note("sampling probability", "computed", step.sampling_probability)
        self._note("number of steps", "computed", step.steps)
        spending = self._spend(
            step.event_with(beside),
            relation=step.relation,
            releases=releases,
        )
        cost = spending.report.mechanism_epsilon
        if cost > self.epsilon:
            raise ValueError(
                f"noise_multiplier={self.noise_multiplier} of {type(self).__name__} costs epsilon={cost:.4g} for "
                f"{step.steps} steps, more than the epsilon={self.epsilon:g} asked for. Raise it, lower 'epochs' or "
                "'batch_size', or leave it None."
            )
        with spending as noise:
            self.net_ = network.trained(
                rows.X,
                rows.codes,
                step,
                noise,
                lr=2.0 / max_grad_norm if self.lr is None else self.lr,
                momentum=self.momentum,
                average_last=self.average_last,
                verbose=self.verbose,
                **fairness,
            )
        self.classes_ = rows.classes
        self.noise_multiplier_ = step.noise_multiplier
        self.n_steps_ = step.steps
        if rows.domain is not None:
            self.groups_ = rows.domain
        return self

    def _network(self, rows: TrainingRows, duals: Any) -> tuple[Any, dict[str, Any]]:
        """The untrained network, and the fairness term it is to be trained with."""
        from skfairdp._networks import prepare_network

        seeds = child_seeds(public_generator(self.random_state), 2)
        network = prepare_network(
            self.module,
            rows.X.shape[1],
            len(rows.classes),
            hidden=tuple(self.hidden),
            image_shape=self.image_shape,
            seed=int(seeds[0]),
            device=self.device,
            owner=type(self).__name__,
        )
        if rows.groups is not None and rows.domain is not None:
            n_groups, n_classes = len(rows.domain), len(rows.classes)
            parity = network.parity(rows.groups, n_groups, n_classes, plan=duals, lam=self.lam, rate=self.dual_rate)
            return network, {"parity": parity}
        if rows.public is None or self.lam == 0:
            return network, {}
        assert rows.public.groups is not None
        penalty = network.penalty(
            rows.public.X,
            rows.public.groups,
            rows.public.n_groups,
            lam=self.lam,
            temperature=self.temperature,
            maximum=self.maximum,
            batch_size=self.public_batch_size,
            seed=int(seeds[1]),
        )
        return network, {"penalty": penalty, "penalty_inside": self.regularizer_at == "per_sample"}
