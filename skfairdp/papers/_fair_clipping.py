"""Three earlier ways to fairer DP-SGD, each with the sensitivity it has: weights, bounds by group, global scaling."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from skfairdp import privacy
from skfairdp._column_tables import Scaling
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier, as_part
from skfairdp._inputs import TrainingData, read_training, subject_given
from skfairdp._network_classifier import NetworkPredictions
from skfairdp._typing import ArrayLike, MaybeArray, SubjectLike
from skfairdp._utils import child_seeds, public_generator
from skfairdp._utils._sklearn import Interval
from skfairdp.gradient import DPSGDPlan, MajorityBaselineTest, beside as _beside
from skfairdp.schema import with_schema

if TYPE_CHECKING:
    from skfairdp._networks import ClippingRule


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class Reweighting(BaseEstimator):
    """Clipped gradients times a weight of their group, so that all groups count alike (Choi et al. 2020, on DP-SGD).

    One row moves the sum by the *largest weight* times C, and the noise is scaled to that. The weights come from one
    noisy count of the groups, which is charged.

    Parameters
    ----------
    max_ratio : float, default=4.0
        Largest weight; at least 1. Noise grows with it where it is reached.

    Examples
    --------
    >>> from skfairdp.papers import FairClippingClassifier, Reweighting
    >>> FairClippingClassifier(method=Reweighting(max_ratio=2.0)).get_params()["method__max_ratio"]
    2.0
    """

    max_ratio: float = 4.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {"max_ratio": [Interval(Real, 1, None, closed="left")]}

    reads_groups = True
    counts_once = True

    def rule(self, plan: "ClippingPlan", data: TrainingData, noise: privacy.NoiseSource) -> "ClippingRule":
        """Release the sizes of the groups, and weigh by them.

        {released_rule}
        """
        from skfairdp._networks import WeightsByGroup

        released = plan.sizes.release(np.bincount(data.groups, minlength=len(data.domain)), noise)
        return WeightsByGroup(WeightsByGroup.balancing(released, self.max_ratio), max_norm=plan.step.max_grad_norm)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class DPSGDF(BaseEstimator):
    """DP-SGD-F (Xu, Du & Wu 2020): each group has a clipping bound, larger where more of its gradients exceed C.

    The noise is scaled to the largest bound. The counts of every batch have noise and are charged.

    Parameters
    ----------
    max_ratio : float, default=4.0
        Largest bound over C; at least 1. Noise grows with it where it is reached.

    Examples
    --------
    >>> from skfairdp.papers import DPSGDF, FairClippingClassifier
    >>> FairClippingClassifier(method=DPSGDF(max_ratio=2.0)).get_params()["method__max_ratio"]
    2.0
    """

    max_ratio: float = 4.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {"max_ratio": [Interval(Real, 1, None, closed="left")]}

    reads_groups = True
    counts_once = False

    def rule(self, plan: "ClippingPlan", data: TrainingData, noise: privacy.NoiseSource) -> "ClippingRule":
        """Let bounds follow the noisy counts of each batch.

        {released_rule}
        """
        from skfairdp._networks import BoundsByGroup

        norm, share = plan.step.max_grad_norm, plan.count_share
        return BoundsByGroup(len(data.domain), max_norm=norm, max_ratio=self.max_ratio, count_share=share)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class GlobalAdapt(BaseEstimator):
    """DPSGD-Global-Adapt (Esipova et al. 2022): gradients are scaled by C/Z and clipped only above Z.

    Z follows a noisy count of the batch, paid for. Reads no groups.

    Parameters
    ----------
    quantile : float, default=0.1
        Share of the gradients above Z that is steered towards; in (0, 1).
    start : float, default=4.0
        The first Z over C.

    Examples
    --------
    >>> from skfairdp.papers import FairClippingClassifier, GlobalAdapt
    >>> FairClippingClassifier(method=GlobalAdapt(start=1.0)).get_params()["method__start"]
    1.0
    """

    quantile: float = 0.1
    start: float = 4.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "start": [Interval(Real, 0, None, closed="neither")],
    }

    reads_groups = False
    counts_once = False

    def rule(self, plan: "ClippingPlan", data: TrainingData, noise: privacy.NoiseSource) -> "ClippingRule":
        """Let one scale for all follow the noisy count of each batch.

        {released_rule}
        """
        from skfairdp._networks import GlobalScaling

        norm, size = plan.step.max_grad_norm, plan.step.expected_batch_size
        start, share = self.start * norm, plan.count_share
        return GlobalScaling(max_norm=norm, start=start, quantile=self.quantile, batch_size=size, count_share=share)


@dataclass(frozen=True)
class ClippingPlan(DPSGDPlan):
    """What a fair clipping releases."""

    sizes: privacy.GaussianMechanism | Any = None
    count_share: float = 0.0

    @property
    def event(self) -> privacy.DpEvent:
        """Gradients, sizes, scales of columns and the second look together."""
        return self.step.event_with(_beside(self.sizes, self.tables, self.look))

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        counts = f"{self.step.steps} noisy counts of a batch" if self.sizes is None else "noisy sizes of the groups"
        tables, looks = (() if part is None else part.releases for part in (self.tables, self.look))
        return (counts, f"{self.step.steps} noisy clipped gradient sums", *tables, *looks)


@shared_docs
@with_schema
class FairClippingClassifier(NetworkPredictions, PrivateClassifier):
    """Neural network trained by DP-SGD with weights or clipping bounds by group: baselines of earlier papers.

    **Guarantee.** (ε, δ)-differential privacy for the private *records*. Neighbours differ in one record, which in one
    of them is a null record that contributes nothing, and the number of rows is public; with a declared
    ``public_n_rows`` they differ by adding or removing one record. The sampling probability, the number of steps,
    classes, groups and all constructor parameters count as public. ``privacy_.epsilon`` is computed from the declared
    steps, and covers the counts that weights and bounds come from.

    Columns of numbers are scaled by noisy tables of where they lie, as for :class:`~skfairdp.FairDPSGDClassifier`.

    The network has to show that it is ahead of the most frequent class, as that of
    :class:`~skfairdp.FairDPSGDClassifier` has; else that class is predicted, or a UtilityWarning says that it is not.

    None of the methods aims at parity of predictions; they are here to be compared with. (In the PFGuard paper, Table
    3, they replace the clipping inside GS-WGAN: ``GSWGANBackend(clipping=)``.)

    Parameters
    ----------
    {epsilon, delta}
    method : {"reweight", "dpsgd_f", "global_adapt"}, Reweighting, DPSGDF or GlobalAdapt, default="reweight"
        Weights by group, clipping bounds by group, or one scale for all.
    count_share : float, default=0.05
        Share of the budget (of μ²) for counts; in (0, 1).
    net : {"mlp", "additive", "cnn", "resnet"}, torch.nn.Module, its class or skorch.NeuralNetClassifier, default="mlp"
        The network and how it is trained, as for :class:`~skfairdp.FairDPSGDClassifier`.
    public_n_rows : int, default=None
        Public number of private rows; it need not be exact, and the true one stays private. None takes ``n_rows`` of
        the schema; without one they are counted, and the count is public.
    max_grad_norm : float, default=1.0
        The base C of all bounds.
    {classes, groups, sensitive_columns, schema, random_state, noise_seed, ledger, verbose}

    Attributes
    ----------
    net_ : skorch.NeuralNetClassifier
        The trained network, on the CPU, initialised; its history is empty. Where columns are scaled, a module of yours
        is ``net_.module_.module``. Differentially private.
    {classes_}
    groups_ : ndarray of shape (n_groups,), dtype object
        Only where groups were used.
    group_weights_ : ndarray of shape (n_groups,)
        With ``"reweight"``: from released counts.
    {privacy_, epsilon_spent_}
    noise_multiplier_ : float
        Of a step, counts and sum together.
    n_steps_ : int
        Number of noisy steps.
    {n_features_in_, feature_names_in_}

    {fit_raises}

    See Also
    --------
    skfairdp.FairDPSGDClassifier : DP-SGD that aims at parity.

    Examples
    --------
    >>> from skfairdp.papers import FairClippingClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.gradient import mlp
    >>> X, y, groups = make_biased_classification(2000, random_state=0)
    >>> model = FairClippingClassifier(method="dpsgd_f", epsilon=2.0, net=mlp(max_epochs=3, batch_size=200),
    ...                                classes=[0, 1], groups=sorted(set(groups)), random_state=0)
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> model.privacy_.epsilon <= 2.0, str(model.privacy_.neighboring_relation)
    (True, 'replace one record by a null record')
    """

    method: str | Reweighting | DPSGDF | GlobalAdapt = "reweight"
    count_share: float = 0.05
    net: Any = "mlp"
    public_n_rows: int | None = None
    max_grad_norm: float = 1.0
    classes: MaybeArray = None
    verbose: int = 0

    __metadata_request__fit = {"subject": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": "no_validation",  # _as_method says what is wrong
        "count_share": [Interval(Real, 0, 1, closed="neither")],
        "public_n_rows": [Interval(Integral, 1, 2**31 - 1, closed="both"), None],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither")],
    }

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "FairClippingClassifier":
        """Train the network.

        Parameters
        ----------
        {X_private, y_private}
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups of the rows; not read with ``method="global_adapt"``.
        {subject}
            One row of each is learned from.

        {returns_self}
        """
        from skfairdp._networks import FairClippingStep, fitted_net, prepare_network

        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        plan = self._plan(data)
        counted, of_each = data.one_row_each, None if data.subjects is None else data.subjects.row_of_each[:, None]
        method, owner = as_method(self.method, type(self).__name__), type(self).__name__
        seed = int(child_seeds(public_generator(self.random_state), 1)[0])
        scales = None if plan.scaling is None else plan.scaling.layer()
        network = prepare_network(plan.net, data.X.shape[1], len(data.classes), seed=seed, owner=owner, scales=scales)
        groups = np.zeros(len(data.X), dtype=np.int64) if data.groups is None else data.groups

        with self._spend(plan, data.reads) as noise:
            if plan.scaling is not None:
                plan.scaling.settle(network.scales, counted.X, noise)
            rule: Any = method.rule(plan, counted, noise)
            step = FairClippingStep(**vars(plan.step), rule=rule)
            how: dict[str, Any] = {"groups": groups, "of_each": of_each, "verbose": self.verbose}
            module = network.trained(data.X, data.y, step, noise, **how)
            if plan.look is not None:
                module, found = plan.look.release(module, counted.X, counted.y, len(data.classes), noise)

        self.net_ = fitted_net(plan.net, module, data.classes, self.privacy_)
        self.classes_ = data.classes
        self.noise_multiplier_, self.n_steps_ = plan.step.noise_multiplier, plan.step.steps
        if data.domain is not None:
            self.groups_ = data.domain
        if isinstance(method, Reweighting):
            self.group_weights_ = rule.weights.numpy()
        if plan.look is not None and not found.is_better:
            plan.look.warn(found, module, data.classes, owner)
        return self

    def _read(self, X: Any, y: Any, *, sensitive_features: Any = None, subject: Any = None) -> TrainingData:
        self._validate_params()
        if self._declared_rows is not None and subject_given(self, subject) is not None:
            raise ValueError(
                f"{type(self).__name__} got 'subject' and a declared number of rows, of which nothing follows where "
                "subjects are protected: leave 'public_n_rows' and n_rows of the schema None."
            )
        groups: Any = "private" if as_method(self.method, type(self).__name__).reads_groups else "none"
        return read_training(self, X, y, sensitive_features=sensitive_features, subject=subject, groups=groups)

    def _plan(self, data: TrainingData) -> ClippingPlan:
        from skfairdp._networks import DPStep, as_net

        owner = type(self).__name__
        relation = privacy.relation_for(self._declared_rows, by_subject=data.subjects is not None)
        usual: dict[str, Any] = {"lr": 2.0 / self.max_grad_norm, "batch_size": 512, "max_epochs": 20}
        net = as_net(self.net, owner=owner, average_last=0.25, **usual)
        sizes = None
        if as_method(self.method, owner).counts_once:
            sigma = self.count_share**-0.5 / privacy.gdp_mu(self.epsilon, self.delta)
            # a row more moves one of the sizes by one
            sizes = privacy.GaussianMechanism(sigma, sensitivity=1.0, relation=relation)
        n_rows = data.n_units if self._declared_rows is None else self._declared_rows
        cost = (self.epsilon, self.delta, relation, 1.0 if sizes is None else 1.0 - self.count_share)
        scaling = Scaling.planned(net, data, self.schema, n_rows, cost, by_public_rows=False)
        look = MajorityBaselineTest(n_rows, data.X.shape[1], *cost) if len(data.classes) > 1 else None
        step = DPStep.calibrated(
            epsilon=self.epsilon, delta=self.delta, n_rows=n_rows, batch_size=net.batch_size, epochs=net.max_epochs,
            max_grad_norm=self.max_grad_norm, beside=_beside(sizes, scaling and scaling.tables, look),
            relation=relation,
        )  # fmt: skip
        data.reads.note("sampling probability", "computed", step.sampling_probability)
        data.reads.note("number of steps", "computed", step.steps)
        of: dict[str, Any] = {"count_share": self.count_share, "scaling": scaling, "rows_of": data.rows_of}
        return ClippingPlan(net, step, sizes=sizes, look=look, **of)


def as_method(method: Any, owner: str) -> Reweighting | DPSGDF | GlobalAdapt:
    """Return the part that ``method`` is or names, with its parameters checked."""
    parts: dict[str, Any] = {"reweight": Reweighting, "dpsgd_f": DPSGDF, "global_adapt": GlobalAdapt}
    return as_part(method, parts, parameter="method", owner=owner)
