"""Amounts by DP-SGD: the network of FairDP-SGD with one output within public bounds, and groups held alike."""

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skfairdp import _inputs
from skfairdp._column_tables import ColumnTables, Cost, where_amounts_lie
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateRegressor
from skfairdp._transport import as_amounts_within, as_scores
from skfairdp._typing import ArrayLike, Floats, MaybeArray, SubjectLike
from skfairdp._usefulness import HOPELESS, REACH, AmountLook, AmountMean, gradient_noise
from skfairdp._utils import PublicData, as_exposures, check_same_index
from skfairdp._utils._sklearn import Interval, StrOptions, answers_as_fitted
from skfairdp.gradient import _amounts
from skfairdp.gradient._dpsgd import TrainsNetwork
from skfairdp.gradient._parity import DPSGDPlan, SignedLoss
from skfairdp.privacy import NeighboringRelation
from skfairdp.schema import NumberPlace, with_schema

if TYPE_CHECKING:
    from skfairdp._networks import Net, Network

#: Noise of a linear model up to which steps may be as long as the clipping allows.
STEADY = 0.006
#: And noise of a network above which hidden units cost more than they find.
MOST_FOR_LINES = 0.03
#: Of the squared cost, for the mean of so few rows that nobody can see where amounts lie; of even fewer, where it is
#: all that is learned; and how far off the middle of the bounds may be, in units of :class:`AmountMean`.
FOR_MEAN, FOR_CONSTANT, ANYWHERE = 0.25, 0.95, 0.5 * REACH
#: And at most for the mean of counts beside tables of them; to how much of a spread it is to be known: rates are small.
FOR_COUNTS, KNOWN_COUNTS = 0.08, 0.02


@shared_docs
@with_schema
class FairDPSGDRegressor(PrivateRegressor, TrainsNetwork):
    """Neural network for amounts, trained by differentially private SGD, with means or distributions of groups alike.

    **Guarantee.** That of :class:`FairDPSGDClassifier`: (ε, δ)-differential privacy for the private *records*, of which
    one may be replaced by a null record that contributes nothing; with a declared ``public_n_rows``, one may be added
    or removed. The bounds of y, all constructor parameters, the number of rows and the public rows with their groups
    count as public. Amounts beyond the bounds count as the bound. ``privacy_`` covers the gradients and whatever is
    released beside them. It is no guarantee for *replacing* a row by another, which costs more. With ``fit(...,
    subject=ids)`` all rows of one subject are protected together, as there.

    **What else ε covers.** *Where amounts lie*: noisy counts of y by cells between the bounds, three times ever more
    closely, so that bounds may be generous; predictions keep within three spreads of the centre. *Scales* of the
    columns of X, as the classifier has them. *A check*: one noisy number says whether the network is ahead of a
    constant. Where it may not be, that constant is predicted, with a UtilityWarning. With so few rows that nobody can
    see where amounts lie, the constant is their noisy mean, and the check counts in how many rows the network is
    closer; each costs a quarter of the squared cost. With even fewer, whose gradients are mere noise, no step is taken:
    the noisy mean, for nearly all of ε, is predicted for every row, and told as well. Of counts the constant is a rate:
    their noisy mean by that of exposures. (None of these with ``noise_multiplier``.)

    **Fairness.** With ``constraints`` or ``gamma``, noisy sums of the predictions by group steer pulls at their means
    inside the clipping, and the groups are protected as well. With public rows instead, a penalty on the difference of
    group means there costs nothing. With neither no group is read. With ``constraints="demographic_parity"`` whole
    distributions agree: the network trains as without a constraint, on 65 % of the squared budget, and the rest pays
    for tables by which its predictions move, as those of :class:`~skfairdp.postprocessing.PrivateBarycenter` do. One ε
    covers both. ``predict`` then needs the group of each row; without it put a
    ``PrivateBarycenter(group_at_prediction=False)`` around a fit. On three made tables of 8,000 rows at ε = 1 a
    Kolmogorov-Smirnov distance of .14 to .20 fell to .02 to .04, at 1.03 to 1.07 times the squared error.

    Parameters
    ----------
    {epsilon, delta}
    loss : {"squared", "absolute", "poisson"}, default="squared"
        "squared" aims at means, "absolute" at medians, "poisson" at rates of counts. Clipping makes the first a little
        more robust than it is elsewhere.
    bounds : tuple of two floats, default=None
        Smallest and largest y by public knowledge; needed, unless a schema has them of its label. For "poisson" they
        are those of the counts, at least 0, and of the rate for an exposure of 1.
    constraints : "mean_parity", BoundedGroupLoss of fairlearn, list of both, "demographic_parity" or None, default=None
        "mean_parity": means of the predictions differ by at most 1 % of the range of ``bounds`` between any two groups.
        ``BoundedGroupLoss(SquareLoss(low, high), upper_bound=b)``: the mean loss of each group is at most b, in squared
        units of y; with ``AbsoluteLoss`` in units of y. Amounts count within ``low`` and ``high``, as there: the
        narrower these are, the less noise is in ``gap_bound_``. Training follows errors of up to three spreads of y.
        "demographic_parity": the Kolmogorov-Smirnov distance of any two groups' predictions is at most ``gamma``.
    gamma : float or None, default=None
        The largest difference of two groups' mean predictions, in units of y, in place of "mean_parity". With
        "demographic_parity" the largest distance, and None is 0.05.
    lam : float, default=None
        The largest price of a difference: on public rows 1 where this is None, for a constraint by the noise. In loss
        per spread of y. 0 holds nothing.
    net : {"auto", "mlp", "additive", "cnn", "resnet"}, torch.nn.Module, its class or skorch net, default="auto"
        As for :class:`FairDPSGDClassifier`, with one output. Its criterion is not read: ``loss`` says what is trained.
        ``optimizer__average_last`` is usually 0.5.
        "auto" is "mlp", but "additive" for counts and where noise drowns hidden units.
    public_n_rows : int, default=None
        Public number of private rows, as for :class:`FairDPSGDClassifier`.
    max_rows_per_subject : int, default=6
        As of :class:`FairDPSGDClassifier`; it counts only with ``subject``.
    max_grad_norm : float, default=None
        Clipping bound of per-sample gradients. None is 1, and 4 for "poisson", whose rare rows would lose their weight.
    noise_multiplier : float, default=None
        Noise over clipping bound. None: calibrated to ``epsilon``.
    groups : list, default=None
        All groups (tuples for intersections). None takes those of the public rows; for a constraint, those of the
        private ones, which is a release.
    {sensitive_columns}
    {schema_of_amounts}
    {public_data, random_state, noise_seed, ledger, verbose}

    Attributes
    ----------
    net_ : skorch.NeuralNetRegressor
        The trained network, on the CPU; its module predicts amounts. Differentially private.
    net_taken_ : {"mlp", "additive"} or None
        Which network ``net="auto"`` took.
    y_center_, y_spread_ : float
        Where amounts lie, by released counts: the constant that a network has to beat, and half of the distance
        between their quantiles 1/16 and 15/16, about. Of few rows the noisy mean and half of the bounds; of counts
        their noisy mean and at least its root.
    groups_ : ndarray of shape (n_groups,), dtype object
        Only where groups were used.
    {privacy_, epsilon_spent_}
    noise_multiplier_ : float
        The noise multiplier used.
    n_steps_ : int
        Number of noisy steps; 0 where the noisy mean is predicted instead.
    gap_ : float
        The largest difference of two groups' mean predictions, in units of y, by noisy sums; of a bound on losses
        alone, the largest mean loss of a group; with "demographic_parity" the largest distance of two groups. Only
        where something was asked for.
    gap_bound_ : float
        What it is at most in the population, with a confidence of 95 %: noise and the sampling of these rows are in it.
    constraint_holds_ : {"yes", "no", "within the noise"}
        Whether all constraints hold in the population: surely, surely not, or neither.
    {n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    FairnessWarning
        ``constraint_holds_`` is "no".
    UtilityWarning
        By a released number the network is hardly better than a constant.

    See Also
    --------
    FairDPSGDClassifier : The same for classes.
    skfairdp.postprocessing.PrivateBarycenter : Makes distributions of predictions agree between groups.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.gradient import FairDPSGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 4))
    >>> y = 20 + X @ [4.0, 2.0, 0.0, 0.0] + rng.normal(size=3000)
    >>> model = FairDPSGDRegressor(epsilon=2.0, bounds=(0, 50), random_state=0).fit(X[:2000], y[:2000])
    >>> print(f"R² {model.score(X[2000:], y[2000:]):.2f} at ε = {model.privacy_.epsilon:.2f}")
    R² 0... at ε = 2.00
    """

    loss: str = "squared"
    bounds: tuple[float, float] | None = None
    constraints: Any = None
    gamma: float | None = None

    __metadata_request__fit = {"exposure": True, "subject": True}
    __metadata_request__predict = {"exposure": True, "sensitive_features": True}
    __metadata_request__score = {"exposure": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions({"squared", "absolute", "poisson"})],
        "bounds": "no_validation",  # amount_bounds says what is wrong
        "gamma": [Interval(Real, 0, None, closed="left"), None],
    }

    def fit(
        self,
        X: ArrayLike,
        y: MaybeArray = None,
        *,
        sensitive_features: MaybeArray = None,
        exposure: MaybeArray = None,
        X_public: ArrayLike | PublicData | None = None,
        sensitive_features_public: MaybeArray = None,
        subject: SubjectLike = None,
    ) -> "FairDPSGDRegressor":
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows.
        y : array-like of shape (n_rows,), default=None
            Private amounts. Those beyond ``bounds`` count as the bound. None takes those of X, where a schema says
            which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups; read only for a constraint.
        exposure : array-like of shape (n_rows,), default=None
            Private, above 0: how long or how much a count was taken of. Only with ``loss="poisson"``; None is 1.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Unlabelled public rows, for the penalty on means of their groups.
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Public groups of the public rows; may be part of ``PublicData``.
        {subject}

        {returns_self}
        """
        from skfairdp._networks import constant_amount, fitted_net, predicting

        public = {"X_public": X_public, "sensitive_features_public": sensitive_features_public}
        data = self._read(X, y, sensitive_features=sensitive_features, exposure=exposure, subject=subject, **public)
        plan = self._plan(data)
        counted, hopeless = data.one_row_each, self._hopeless(plan, data)
        network, terms = self._network(data, plan)

        with self._spend(plan, data.reads) as noise:
            if plan.scaling is not None:
                plan.scaling.settle(network.scales, counted.X, noise)
            usual, center, spread = self._settle(terms["loss"].scale, plan, counted, noise)
            if hopeless:
                module: Any = constant_amount(terms["loss"].scale, usual)
            else:
                groups = np.zeros(len(data.y)) if data.groups is None else data.groups
                targets = np.column_stack([data.y[:, 0], groups, data.y[:, 1]])
                module = network.trained(data.X, targets, plan.step, noise, verbose=self.verbose, **terms)
                module = predicting(module, terms["loss"].scale)
            if plan.look is not None:
                (amounts, exposures), look = counted.y.T, plan.look
                rates = _amounts.predicted_amounts(module, counted.X, look.relation)
                ahead = look.release(amounts, rates * exposures, usual * exposures, spread, noise)
                module = module if look.may_stay(ahead) else constant_amount(module[-1], usual)
            judgement = plan.judge and plan.judge.release(module, counted, noise)

        self.y_center_, self.y_spread_ = center, spread
        self.net_, self.net_taken_ = fitted_net(plan.net, module, data.classes, self.privacy_), plan.taken
        self.noise_multiplier_, self.n_steps_ = plan.step.noise_multiplier, 0 if hopeless else plan.step.steps
        if data.domain is not None:
            self.groups_ = data.domain
        self._transport = getattr(judgement, "transport", None)
        if judgement is not None:
            self.gap_, self.gap_bound_, self.constraint_holds_ = judgement.said
        if hopeless:  # all is kept by now, also where warnings are errors
            hopeless.warn(usual, type(self).__name__)
        if plan.look is not None and not plan.look.is_clear(ahead):
            plan.look.warn(ahead, usual, type(self).__name__, "network")
        if judgement is not None:
            judgement.warn(type(self).__name__, f"Allow more, or raise 'epsilon' ({self.epsilon:g}).")
        return self

    @answers_as_fitted
    def predict(self, X: ArrayLike, *, sensitive_features: MaybeArray = None, exposure: MaybeArray = None) -> Floats:
        """Predict the amount of each row; the group is needed with ``constraints="demographic_parity"`` alone.

        Parameters
        ----------
        {X_predict}
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Group of each row; read with that constraint only, and then needed unless ``sensitive_columns`` or a schema
            names it.
        exposure : array-like of shape (n_rows,), default=None
            With ``loss="poisson"``: rates are multiplied by it. None is 1.

        Returns
        -------
        amounts : ndarray of shape (n_rows,)
            Within ``bounds``, times the exposure.
        """
        from skfairdp._networks import module_of, predict_logits

        check_is_fitted(self, "net_")
        bounds = _inputs.amount_bounds(self)
        rates = np.clip(predict_logits(module_of(self.net_), _inputs.read_features(self, X))[:, 0], *bounds)
        if self._transport is not None:
            codes = _inputs.groups_to_come(self, X, sensitive_features, len(rates))
            rates = as_amounts_within(self._transport.move(as_scores(rates, bounds), codes), bounds)
        return rates if exposure is None else rates * self._exposure(exposure, X, len(rates))

    @answers_as_fitted
    def score(
        self,
        X: Any,
        y: MaybeArray = None,
        *,
        sensitive_features: MaybeArray = None,
        exposure: MaybeArray = None,
        sample_weight: MaybeArray = None,
    ) -> float:
        """R² on the given rows.

        Parameters
        ----------
        {X_predict}
        y : array-like of shape (n_rows,), default=None
            Their amounts. None takes those of X, where a schema says which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            As for :meth:`predict`.
        exposure : array-like of shape (n_rows,), default=None
            As for :meth:`predict`.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        r2 : float
            1 for perfect predictions, 0 for the mean of y.
        """
        return self._r2(self.predict(X, sensitive_features=sensitive_features, exposure=exposure), X, y, sample_weight)

    # ------------------------------------------------------------------ pieces

    _average_last = 0.5

    @property
    def _most_for_lines(self) -> float:  # type: ignore[override]
        """Amounts often are sums of what columns say; of a count it is the logarithm of its rate."""
        return 1e-9 if self.loss == "poisson" else MOST_FOR_LINES

    def _usual_norm(self, parity: Any) -> float:
        """Rates follow rare rows that are far off: clipping those would make rates too small."""
        return 4.0 if self.loss == "poisson" else 1.0

    def _usual_lr(self, n_rows: int, n_features: int) -> float:
        """Steps that swing around an amount no further than noise does: smaller than those of logits, which grow."""
        return min(1.0, STEADY / gradient_noise(n_rows, n_features + 1, epsilon=float(self.epsilon), delta=self.delta))

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is held: nothing was asked for, or with a weight of 0."""
        return self.lam == 0 or not self._holds

    @property
    def _asked(self) -> _amounts.AmountConstraints:
        return _amounts.AmountConstraints.asked(self, _inputs.amount_bounds(self))

    def _exposure(self, exposure: Any, X: Any, n_rows: int) -> Floats:
        owner = type(self).__name__
        if exposure is None:
            return np.ones(n_rows)
        if self.loss != "poisson":
            raise ValueError(f"{owner} takes an exposure with loss='poisson' only. Got loss={self.loss!r}.")
        check_same_index(owner, X=X, exposure=exposure)
        return as_exposures(exposure, n_rows, owner=owner)

    def _read(self, X: Any, y: Any, *, exposure: Any = None, **rows: Any) -> _inputs.TrainingData:
        self._validate_params()
        owner, asked = type(self).__name__, self._asked
        if self.loss == "poisson" and _inputs.amount_bounds(self)[0] < 0:
            raise ValueError(f"'bounds' of {owner} with loss='poisson' are those of counts, from 0 on: bounds=(0, 10).")
        given = self._got_public_rows(rows)
        if given and asked.asks:
            raise ValueError(
                f"{owner} got public rows together with {'constraints' if self.gamma is None else 'gamma'!r}, which "
                "is enforced with private rows. Leave one of the two out: public rows serve the penalty of weight "
                "'lam' alone."
            )
        self._holds = asked.asks or given
        whose = "none" if self._is_plain else "public" if given else "private"
        rows |= {"groups": whose, "public_rows": "given" if whose == "public" else "none"}
        data = _inputs.read_training(self, X, y, **rows, target=_inputs.read_amounts)
        self._has_exposure = exposure is not None
        # beside each amount the exposure of its row
        return replace(data, y=np.column_stack([data.y, self._exposure(exposure, X, len(data.y))]))

    def _parity_for(
        self, data: _inputs.TrainingData, n_rows: int, relation: NeighboringRelation
    ) -> SignedLoss | _amounts.AmountPenalty | _amounts.AmountsMoved:
        bounds, groups = _inputs.amount_bounds(self), () if data.domain is None else data.domain.tolist()
        asked = _amounts.AmountConstraints.asked(self, bounds, groups)
        part = _amounts.AmountParity if asked.distance is None else _amounts.AmountsMoved
        part = part if data.public is None else _amounts.AmountPenalty
        return part(asked, self.loss, bounds)

    def _looks(self, data: _inputs.TrainingData, net: "Net", n_rows: int, cost: Cost) -> dict[str, Any]:
        """What says where amounts lie, and whether the network beats a constant."""
        counts, (epsilon, delta, relation, left) = self.loss == "poisson", cost
        places = (NumberPlace(0), NumberPlace(1)) if self._has_exposure else (NumberPlace(0),)
        tables, n_features = ColumnTables(places, n_rows, *cost, has_bounds=not counts), data.X.shape[1]
        mean = partial(AmountMean, n_rows, epsilon, delta, relation)
        if tables.should_release:
            power = 1 if self.loss == "absolute" else 2
            target = _amounts.CountTables(tables, mean(FOR_COUNTS * left, known=KNOWN_COUNTS)) if counts else tables
            return {"target": target, "look": AmountLook(n_rows, n_features, *cost, power=power)}
        hopeless = gradient_noise(n_rows, n_features + 1, epsilon=self.epsilon, delta=self.delta) > HOPELESS
        found = {"target": mean((FOR_CONSTANT if hopeless else FOR_MEAN) * left, off=ANYWHERE)}
        return found if hopeless else found | {"look": AmountLook(n_rows, n_features, *cost, power=2 * counts)}

    def _hopeless(self, plan: DPSGDPlan, data: _inputs.TrainingData) -> _amounts.HopelessGradients | None:
        """Rows so few that nobody can compare a network with a constant, and that gradients are mere noise."""
        if plan.look is not None or self.noise_multiplier is not None:
            return None
        n_rows = data.n_units if self._declared_rows is None else self._declared_rows
        found = _amounts.HopelessGradients(n_rows, data.X.shape[1], float(self.epsilon), self.delta, plan.step.relation)
        return found if found.noise > HOPELESS else None

    def _network(self, data: _inputs.TrainingData, plan: DPSGDPlan) -> tuple["Network", dict[str, Any]]:
        from skfairdp._networks import AmountLoss, AmountScale

        network, terms = super()._network(data, plan)
        usual = {} if "loss" in terms else {"loss": AmountLoss(AmountScale(self.loss, *_inputs.amount_bounds(self)))}
        return network, terms | usual

    def _settle(self, scale: Any, plan: DPSGDPlan, data: Any, noise: Any) -> tuple[float, float, float]:
        """Release where amounts lie: the constant that a network has to beat, and centre and spread of amounts."""
        low, high = _inputs.amount_bounds(self)
        if plan.target is None:
            return (low + high) / 2, (low + high) / 2, (high - low) / 2
        if isinstance(plan.target, _amounts.CountTables):
            rate, mean, spread = plan.target.release(data.y, noise)
            return float(np.clip(rate, low, high)), float(np.clip(mean, low, high)), spread
        if isinstance(plan.target, AmountMean):  # of few rows: nothing says how wide amounts lie
            amounts = np.clip(data.y[:, 0] / data.y[:, 1], low, high)
            found = plan.target.release(amounts, (low + high) / 2, (high - low) / 2 / REACH, noise)
            mean = float(np.clip(found, low, high))
            scale.settle(mean, (high - low) / 2)
            return mean, mean, _amounts.spread_of_counts(mean) if self.loss == "poisson" else (high - low) / 2
        knots = plan.target.release(2 * (data.y[:, :1] - low) / (high - low) - 1, noise, near=True)[0]
        _inputs.warn_of_other_units(type(self).__name__, "amounts", (knots[1:-1] + 1) / 2, (low, high))
        mean, middle, half = where_amounts_lie(knots, (low, high))
        usual = mean if self.loss == "squared" else middle
        scale.settle(usual, half)
        return usual, usual, float(scale.spread)
