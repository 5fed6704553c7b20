"""What private training of a network plans, whatever it predicts: network, scaling, noise, and parity beside."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skfairdp import _usefulness, privacy
from skfairdp._column_tables import Cost, Scaling
from skfairdp._estimator import PrivateEstimator
from skfairdp._inputs import TrainingData, subject_given
from skfairdp._typing import Array, Floats, Ints
from skfairdp._usefulness import DOUBTFUL, default_net
from skfairdp._utils import PublicData, child_seeds, public_generator, warn_caller
from skfairdp._utils._sklearn import Interval
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient._parity import DPSGDPlan, PublicPenalty, beside, private_answers
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource
from skfairdp.schema import with_schema

if TYPE_CHECKING:
    from skfairdp._networks import Net, Network


NETWORK_CONSTRAINTS: dict[str, Any] = {
    "lam": [Interval(Real, 0, None, closed="left"), None],
    "net": "no_validation",  # as_net says what is wrong, and knows all but "auto"
    "public_n_rows": [Interval(Integral, 1, 2**31 - 1, closed="both"), None],
    "max_rows_per_subject": [Interval(Integral, 1, 1024, closed="both")],
    "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
    "noise_multiplier": [Interval(Real, 0, None, closed="neither"), None],
    "public_data": [PublicData, None],
}


@with_schema
class TrainsNetwork(PrivateEstimator):
    """Plans a private training of a network, by public numbers alone. A subclass says where parity comes from
    (``_parity_for``), and what is released beside gradients (``_looks``)."""

    lam: float | None = None
    net: Any = "auto"
    public_n_rows: int | None = None
    max_rows_per_subject: int = 6
    max_grad_norm: float | None = None
    noise_multiplier: float | None = None
    public_data: PublicData | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = NETWORK_CONSTRAINTS

    #: Share of the last iterates whose average is kept, where a net does not say so.
    _average_last: ClassVar[float] = 0.25
    #: Noise above which "auto" takes no hidden units, also where terms are then straight lines; None: only with curves.
    _most_for_lines: ClassVar[float | None] = None

    def _usual_lr(self, n_rows: int, n_features: int) -> float:
        """Step size times clipping bound, where the user gives none."""
        return 2.0

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is held: no group is read."""
        return self.lam == 0

    def _usual_norm(self, parity: Any) -> float:
        """Clipping bound, where the user gives none."""
        return 1.0 if self._is_plain else float(parity.usual_max_grad_norm)

    def _parity_for(self, data: TrainingData, n_rows: int, relation: NeighboringRelation) -> Any:
        raise NotImplementedError

    def _looks(self, data: TrainingData, net: "Net", n_rows: int, cost: Cost) -> dict[str, Any]:
        raise NotImplementedError

    def _got_public_rows(self, given: Mapping[str, Any]) -> bool:
        """Whether there are public rows. A declared number of rows says nothing where that of subjects is public."""
        if subject_given(self, given.get("subject")) is not None and self._declared_rows is not None:
            raise ValueError(
                f"{type(self).__name__} got 'subject' and a declared number of rows. Where subjects are protected, "
                "their number is public and nothing follows that of rows: leave 'public_n_rows' and n_rows of the "
                "schema None."
            )
        named = given.get("X_public"), given.get("sensitive_features_public"), self.public_data
        return any(rows is not None for rows in named)

    def _plan(self, data: TrainingData) -> DPSGDPlan:
        from skfairdp._networks import DPStep

        relation = privacy.relation_for(self._declared_rows, by_subject=data.subjects is not None)
        n_rows = data.n_units if self._declared_rows is None else self._declared_rows
        parity = PublicPenalty() if self._is_plain else self._parity_for(data, n_rows, relation)
        max_grad_norm = self.max_grad_norm or self._usual_norm(parity)
        duals = parity.plan(self.epsilon, self.delta, relation)
        cost = (self.epsilon, self.delta, relation, parity.share_left)
        net, scaling, taken = self._net(data, max_grad_norm, n_rows, cost)
        judge = parity.judge(data, n_rows, net, cost)
        tables = None if scaling is None else scaling.tables
        # beside gradients whose noise is given nothing else is released
        looks = {} if self.noise_multiplier is not None else self._looks(data, net, n_rows, cost)
        share = 1 - parity.share_left
        told = [looks.get(name) for name in ("temperature", "target", "look")]
        of_net: Any = {"batch_size": net.batch_size, "epochs": net.max_epochs, "max_grad_norm": max_grad_norm}
        asked: Any = {name: getattr(self, name) for name in ("epsilon", "delta", "noise_multiplier")}
        event = beside(duals, tables, *told, judge)
        asked["nothing_left"] = (
            f"{type(self).__name__} has nothing left for its gradients: with epsilon={self.epsilon:g} and "
            f"delta={self.delta:g} they would need more than a billion times their bound in noise. "
            f"{f'Lower budget_share of SignedLoss ({share:g}), or raise' if share else 'Raise'} 'epsilon' or 'delta'."
        )
        step = DPStep.calibrated(n_rows=n_rows, beside=event, relation=relation, **asked, **of_net)
        looks["parity"] = None if self._is_plain else parity
        of = "" if data.subjects is None else data.subjects.name
        plan = DPSGDPlan(net, step, duals, scaling=scaling, taken=taken, judge=judge, rows_of=of, **looks)
        if self.noise_multiplier is not None and (spent := privacy.epsilon_of(plan.event, self.delta)) > self.epsilon:
            raise ValueError(
                f"noise_multiplier={self.noise_multiplier} of {type(self).__name__} costs "
                f"epsilon={privacy.rounded_up(spent)} for {plan.step.steps} steps, more than the epsilon="
                f"{self.epsilon:g} asked for. Raise it, lower 'net__max_epochs' or 'net__batch_size', or leave it None."
            )
        data.reads.note("sampling probability", "computed", step.sampling_probability)
        data.reads.note("number of steps", "computed", step.steps)
        if taken is not None:
            data.reads.note("network", "computed", taken)
        if data.public is not None and data.groups is not None:
            data.reads.note("where parity comes from", "computed", parity.shorthand, "by sizes of public groups")
        return plan

    def _net(self, data: TrainingData, max_grad_norm: float, n_rows: int, cost: Cost) -> tuple[Any, ...]:
        """The network, what scales the columns of a table for it, and which one "auto" took."""
        from skfairdp._networks import as_net

        how: dict[str, Any] = {"lr": None, "batch_size": None, "max_epochs": None, "average_last": self._average_last}

        def read(net: Any) -> "Net":
            given = as_net(net, owner=type(self).__name__, auto=True, **how)
            return given.settled(n_rows, max_grad_norm, lr=self._usual_lr(n_rows, data.X.shape[1]))

        if not (isinstance(self.net, str) and self.net == "auto"):
            net = read(self.net)
            return net, self._scaling(net, data, n_rows, cost), None
        net = read("mlp")
        scaling, taken = self._scaling(net, data, n_rows, cost), "mlp"
        # without a schema the terms of an additive network would be straight lines
        by_curves = self.schema is not None and self._is_plain
        if (by_curves or self._most_for_lines) and self.noise_multiplier is None:
            n_features = data.X.shape[1] + (0 if scaling is None else scaling.n_added)
            most = self._most_for_lines or DOUBTFUL
            taken = default_net(n_rows, n_features, data.n_outputs, epsilon=self.epsilon, delta=self.delta, most=most)
        return net if taken == "mlp" else read(taken), scaling, taken

    def _scaling(self, net: "Net", data: TrainingData, n_rows: int, cost: Cost) -> Scaling | None:
        """How the columns of a table are scaled: by public rows where they are read, else by what is released."""
        scaling = Scaling.planned(net, data, self.schema, n_rows, cost, by_public_rows=not self._is_plain)
        if scaling is not None and scaling.tables is not None and self.noise_multiplier is not None:
            return None
        return scaling

    def _network(self, data: TrainingData, plan: DPSGDPlan) -> tuple["Network", dict[str, Any]]:
        """The untrained network, and what is added to its private gradients."""
        from skfairdp._networks import prepare_network

        owner = type(self).__name__
        seeds = [int(seed) for seed in child_seeds(public_generator(self.random_state), 2)]
        scales = None if plan.scaling is None else plan.scaling.layer()
        network = prepare_network(plan.net, data.X.shape[1], data.n_outputs, seed=seeds[0], owner=owner, scales=scales)
        terms = {} if plan.parity is None else plan.parity.terms(plan, data, network, self.lam, seeds[1])
        if data.subjects is not None:
            terms["of_each"] = data.subjects.rows_of_each(self.max_rows_per_subject, np.random.default_rng(seeds[1]))
        return network, terms


# ---- whether the network beats the most frequent class ---------------------------------------------------------------
COUNT_NOISE = 0.03  # in the share of a class: what a wrong answer costs is about a third of it
#: In the share of rows by which the network is ahead: as much as is paid for at any price, and as little as is of use.
GAIN_NOISE, ENOUGH = 0.01, 0.001
MOST_FOR_COUNTS, MOST_FOR_GAIN = 0.5, 0.25  # of the squared cost of the fit that rates of groups leave
#: Of the squared cost, at most, to tell the gain better than by ``GAIN_NOISE``. A network that is ahead by the noise is
#: given up every other time: .01 lost half of what 6,000 rows with weak features had taught. Gradients have 2 % more
#: noise by it.
FOR_GAIN, FOR_COUNTS = 0.04, 0.005


@dataclass(frozen=True)
class MajorityBaselineTest:
    """Two releases beside the gradients: counts of the classes, and by how many rows the network is ahead. A record
    that comes, goes or gives way to a null record moves one count by one, and the difference by at most one: either is
    right or wrong about it. Of a subject one row is looked at."""

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0
    releases: ClassVar[tuple[str, ...]] = (
        "noisy counts of the classes",
        "by how many rows the network is ahead of the largest class",
    )

    @property
    def noise(self) -> float:
        """What gradients are going to carry, by public numbers."""
        return _usefulness.gradient_noise(self.n_rows, self.n_features, epsilon=self.epsilon, delta=self.delta)

    @property
    def counts(self) -> GaussianMechanism:
        """For the counts of the classes."""
        return self._at(max(self._within(COUNT_NOISE, MOST_FOR_COUNTS), self._within(GAIN_NOISE, FOR_COUNTS)))

    @property
    def gain(self) -> GaussianMechanism:
        """For the number of rows by which the network is ahead."""
        return self._at(max(self._within(GAIN_NOISE, MOST_FOR_GAIN), self._within(ENOUGH, FOR_GAIN)))

    def _within(self, noise: float, most: float) -> float:
        """The μ of as little noise in a share of the rows as is wanted, for at most ``most`` of the cost."""
        mu = math.sqrt(self.share) * privacy.gdp_mu(self.epsilon, self.delta)
        return min(1 / (self.n_rows * noise), math.sqrt(most) * mu)

    def _at(self, mu: float) -> GaussianMechanism:
        return GaussianMechanism(1 / mu, sensitivity=1.0, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """Both releases."""
        return privacy.compose(self.counts.event, self.gain.event)

    @property
    def target(self) -> float:
        """Noise that would do: half of it where the noise alone does not explain that nothing was learned."""
        return DOUBTFUL if self.noise > DOUBTFUL else self.noise / 2

    @property
    def enough(self) -> tuple[int | None, float | None]:
        """The rows by which the noise is down to the target, and the ε, to two digits."""
        return _usefulness.what_is_enough(self, lambda other: other.noise <= self.target)

    def release(self, module: Any, X: Floats, y: Ints, n_classes: int, noise: NoiseSource) -> tuple[Any, Any]:
        """Release how far ahead the module is; return it with that, or else one that always answers the most frequent
        class, and ranks rows as the module does."""
        from skfairdp._networks import one_answer

        counts = self.counts.release(np.bincount(y, minlength=n_classes), noise)
        usual = int(counts.argmax())
        right = 0
        for some, logits in private_answers(module, X, self.relation):
            known = ~np.isnan(logits).any(axis=1)  # a row without an answer has none that is right
            right += int(np.count_nonzero(known & (logits.argmax(axis=1) == y[some])))
        ahead = right - int(np.count_nonzero(y == usual))
        rates = np.maximum(counts, 1.0) / np.maximum(counts, 1.0).sum()
        found = self._compared(rates, usual, float(self.gain.release([float(ahead)], noise)[0]))
        return module if found.may_stay else one_answer(rates, module), found

    def _compared(self, rates: Floats, usual: int, ahead: float) -> _usefulness.Comparison:
        """The module beside that class, by what was released."""
        by_heart = _usefulness.learned_by_heart(rates, _usefulness.spread_by_rows(rates, self.n_features, self.n_rows))
        ahead, error = ahead / self.n_rows - by_heart, self.gain.sigma / self.n_rows
        where = f"of the {_usefulness.units_of(self.relation)}, by noisy counts that were released,"
        return _usefulness.Comparison(usual, ahead, float(rates[usual]), error, where)

    def warn(
        self, found: _usefulness.Comparison, module: Any, classes: Array, owner: str, *, constrained: bool = False
    ) -> None:
        """Say that the module is not clearly better than that class; both are what :meth:`release` returned."""
        from skfairdp._networks import is_constant

        if is_constant(module):
            warn_caller(self.words(classes[found.usual], owner, constrained=constrained), UtilityWarning)
        else:
            advice = f"With {self._figures}. {self._ways(constrained)} Its probabilities may still rank rows."
            found.warn(classes[found.usual], owner, falls_back=False, advice=advice)

    def _ways(self, constrained: bool) -> str:
        first = "a looser constraint, groups of more rows or other features" if constrained else "other features"
        does = "suffice" if self.noise > DOUBTFUL else f"halve it: try {first} first"
        return f"{_usefulness.ways_of(self.enough, self.relation) or 'A larger delta'} would {does}."

    @property
    def _figures(self) -> str:
        rows = f"{self.n_rows:,} {_usefulness.units_of(self.relation)}"
        return (
            f"{self.n_features} features, {rows} and epsilon={self.epsilon:g} "
            f"the relative noise of the gradients is {self.noise:.2g}"
        )

    def words(self, predicted: Any, owner: str, *, constrained: bool = False) -> str:
        """Return the warning, for the class that is predicted for every row."""
        why = f"informative features would exceed that{' without a constraint' if constrained else ''}"
        if self.noise > DOUBTFUL:
            why = f"above {DOUBTFUL:g} a network often learns nothing"
        return (
            f"{owner} predicts the class {predicted} for every row: by a released count its network is not "
            f"clearly better than that. With {self._figures}, and {why}. {self._ways(constrained)} "
            "Its probabilities only rank rows, as the network does."
        )
