"""Three earlier ways to fairer DP-SGD, each with the sensitivity it has: weights, bounds by group, global scaling."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from skfairdp._base import FairPrivateMixin
from skfairdp._network_classifier import NetworkPredictions
from skfairdp.privacy import DpEvent, GaussianMechanism, NoiseSource, PrivacyLedger, gdp_mu, relation_for
from skfairdp.utils import RandomStateLike, child_seeds, public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["FairClippingClassifier"]


class FairClippingClassifier(NetworkPredictions, FairPrivateMixin, ClassifierMixin, BaseEstimator):
    """Network trained by a DP-SGD that treats groups differently: baselines, with the sensitivity they have.

    **Guarantee.** (ε, δ)-differential privacy for the private *records*. Neighbours differ in one record, which in one
    of them is a null record that contributes nothing, and the number of rows is public; with a declared ``n_rows`` they
    differ by adding or removing one record. The sampling probability, the number of steps, classes, groups and all
    constructor parameters count as public. ``privacy_.epsilon`` is computed from the declared steps, and covers the
    counts that weights and bounds come from.

    ``method`` is one of

    * ``"reweight"``: clipped gradients times a weight of their group, so that all groups count alike (Choi et al. 2020,
      on top of DP-SGD). One row moves the sum by the *largest weight* times C, and the noise is scaled to that. The
      weights come from one noisy count of the groups, which is paid for.
    * ``"dpsgd_f"``: DP-SGD-F (Xu, Du & Wu 2020). Each group has a clipping bound, larger where more of its gradients
      exceed C. The noise is scaled to the largest bound. The counts of every batch have noise and are paid for.
    * ``"global_adapt"``: DPSGD-Global-Adapt (Esipova et al. 2022). Gradients are scaled by C/Z and clipped only above
      Z, which follows a noisy count of the batch, paid for. Reads no groups.

    None of them aims at parity of predictions; they are here to be compared with. (In the PFGuard paper, Table 3,
    they replace the clipping inside GS-WGAN: ``GSWGANBackend(clipping=)``.)

    Parameters
    ----------
    method : {"reweight", "dpsgd_f", "global_adapt"}, default="reweight"
    epsilon : float, default=1.0
        Privacy budget; greater than 0 and finite. The certified figure never exceeds it.
    delta : float, default=1e-5
        In (0, 1).
    max_ratio : float, default=4.0
        Largest weight, or largest bound over C; at least 1. Noise grows with it where it is reached.
    count_share : float, default=0.05
        Share of the budget (of μ²) for counts; in (0, 1).
    quantile : float, default=0.1
        With ``"global_adapt"``: share of the gradients above Z that is steered towards.
    start : float, default=4.0
        With ``"global_adapt"``: the first Z over C.
    hidden : tuple of int, default=(64,)
        Hidden layers, of tanh units.
    epochs : float, default=20
        Expected passes over the private rows.
    batch_size : int, default=512
        Expected size of a Poisson batch.
    n_rows : int, default=None
        Public number of private rows; it need not be exact, and the true one stays private. None counts them, and the
        count is then public.
    lr : float, default=None
        Step size. None is ``2 / max_grad_norm``.
    average_last : float, default=0.25
        Share of the last iterates whose average is kept.
    max_grad_norm : float, default=1.0
        The base C of all bounds.
    classes : array-like, default=None
        All class labels. None reads them from y, which is a release; a PrivacyLeakWarning says so.
    groups : list, default=None
        All groups (tuples for intersections). None reads them from the private rows, which is a release.
    sensitive_columns : str, int or list of them, default=None
        Columns of X that hold the group. They are dropped from the features and still counted in ``n_features_in_``.
    device : str, default="cpu"
        Where to train, for example "cuda".
    random_state : int, RandomState, Generator or None, default=None
        Public randomness: the initial weights.
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
    group_weights_ : ndarray of shape (n_groups,)
        With ``"reweight"``: from released counts.
    privacy_ : PrivacySpent
        The certified guarantee.
    epsilon_spent_ : float
        Shorthand for ``privacy_.epsilon``.
    noise_multiplier_ : float
        Of a step, counts and sum together.
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
    >>> from skfairdp.baselines import FairClippingClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, random_state=0)
    >>> model = FairClippingClassifier(method="dpsgd_f", epsilon=2.0, epochs=3, batch_size=200, classes=[0, 1],
    ...                                groups=sorted(set(groups)), random_state=0)
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> model.privacy_.epsilon <= 2.0, str(model.privacy_.neighboring_relation)
    (True, 'replace one record by a null record')
    """

    _parameter_constraints: dict[str, Any] = {
        "method": [StrOptions({"reweight", "dpsgd_f", "global_adapt"})],
        "epsilon": [Interval(Real, 0, 1e9, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "max_ratio": [Interval(Real, 1, None, closed="left")],
        "count_share": [Interval(Real, 0, 1, closed="neither")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "start": [Interval(Real, 0, None, closed="neither")],
        "hidden": [tuple, list],
        "epochs": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_rows": [Interval(Integral, 1, None, closed="left"), None],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "average_last": [Interval(Real, 0, 1, closed="both")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither")],
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
        method: str = "reweight",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        max_ratio: float = 4.0,
        count_share: float = 0.05,
        quantile: float = 0.1,
        start: float = 4.0,
        hidden: Sequence[int] = (64,),
        epochs: float = 20,
        batch_size: int = 512,
        n_rows: int | None = None,
        lr: float | None = None,
        average_last: float = 0.25,
        max_grad_norm: float = 1.0,
        classes: ArrayLike | None = None,
        groups: Sequence[Any] | None = None,
        sensitive_columns: str | int | Sequence[str | int] | None = None,
        device: str = "cpu",
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.max_ratio = max_ratio
        self.count_share = count_share
        self.quantile = quantile
        self.start = start
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.n_rows = n_rows
        self.lr = lr
        self.average_last = average_last
        self.max_grad_norm = max_grad_norm
        self.classes = classes
        self.groups = groups
        self.sensitive_columns = sensitive_columns
        self.device = device
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.ledger = ledger
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sensitive_features: ArrayLike | None = None
    ) -> "FairClippingClassifier":
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows.
        y : array-like of shape (n_rows,)
            Private labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups of the rows; not read with ``method="global_adapt"``.

        Returns
        -------
        self
        """
        from skfairdp._networks import DPStep, FairClippingStep, prepare_network

        self._validate_params()
        grouped = self.method != "global_adapt"
        features, groups_in_X = self._split_features(X, reset=True, read_groups=grouped)
        classes, codes = self._encode_classes(self._check_target(y, len(features)))
        groups, domain = np.zeros(len(features), dtype=np.int64), None
        if grouped:
            groups, domain = self._private_groups(groups_in_X, sensitive_features, len(features))
        network = prepare_network(
            "mlp",
            features.shape[1],
            len(classes),
            hidden=tuple(self.hidden),
            seed=int(child_seeds(public_generator(self.random_state), 1)[0]),
            device=self.device,
            owner=type(self).__name__,
        )
        sizes = self._sizes
        beside: DpEvent | None = None if sizes is None else sizes.event
        step = DPStep.calibrated(
            epsilon=self.epsilon,
            delta=self.delta,
            n_rows=len(features) if self.n_rows is None else self.n_rows,
            batch_size=self.batch_size,
            epochs=self.epochs,
            max_grad_norm=self.max_grad_norm,
            beside=beside,
            relation=relation_for(self.n_rows),
        )
        releases = ("noisy sizes of the groups",) if sizes is not None else (f"{step.steps} noisy counts of a batch",)
        self._note("sampling probability", "computed", step.sampling_probability)
        self._note("number of steps", "computed", step.steps)
        spending = self._spend(
            step.event_with(beside),
            relation=step.relation,
            releases=(*releases, f"{step.steps} noisy clipped gradient sums"),
        )
        with spending as noise:
            rule, weights = self._rule(groups, domain, step, sizes, noise)
            self.net_ = network.trained(
                features,
                codes,
                FairClippingStep.of(step, rule),
                noise,
                groups=groups,
                lr=2.0 / self.max_grad_norm if self.lr is None else self.lr,
                average_last=self.average_last,
                verbose=self.verbose,
            )
        self.classes_ = classes
        self.noise_multiplier_ = step.noise_multiplier
        self.n_steps_ = step.steps
        if domain is not None:
            self.groups_ = domain
        if weights is not None:
            self.group_weights_ = weights
        return self

    @property
    def _sizes(self) -> GaussianMechanism | None:
        """For the sizes of the groups, where weights come from them: a row more moves one of them by one."""
        if self.method != "reweight":
            return None
        sigma = self.count_share**-0.5 / gdp_mu(self.epsilon, self.delta)
        return GaussianMechanism(sigma, sensitivity=1.0, relation=relation_for(self.n_rows))

    def _rule(
        self,
        groups: NDArray[np.int64],
        domain: NDArray[np.object_] | None,
        step: Any,
        sizes: GaussianMechanism | None,
        source: NoiseSource,
    ) -> tuple[Any, NDArray[np.float64] | None]:
        """What the gradients are scaled by, and the weights of the groups where it is that."""
        from skfairdp._networks import BoundsByGroup, GlobalScaling, WeightsByGroup

        if sizes is not None and domain is not None:
            released = sizes.release(np.bincount(groups, minlength=len(domain)), source)
            weights = WeightsByGroup.balancing(released, self.max_ratio)
            return WeightsByGroup(weights, max_norm=self.max_grad_norm), weights
        if domain is not None:
            return BoundsByGroup(
                len(domain), max_norm=self.max_grad_norm, max_ratio=self.max_ratio, count_share=self.count_share
            ), None
        return GlobalScaling(
            max_norm=self.max_grad_norm,
            start=self.start * self.max_grad_norm,
            quantile=self.quantile,
            batch_size=step.expected_batch_size,
            count_share=self.count_share,
        ), None
