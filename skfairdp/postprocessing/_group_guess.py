"""The group of a row, guessed by a network that is trained on private rows within the cost of a fit, and its uses."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from scipy.special import expit, logit, softmax

from skfairdp._column_tables import Scaling, without_far_ends
from skfairdp._inputs import TrainingData
from skfairdp._row_wise import NO_CLASS, row_wise_predictions
from skfairdp._transport import FOR_TABLE, Transport, TransportPlan, ends_of
from skfairdp._typing import Bools, Floats, Ints
from skfairdp._usefulness import DOUBTFUL, default_net, gradient_noise
from skfairdp._utils import PlainState, RandomStateLike, child_seeds, public_generator
from skfairdp.postprocessing._bins import FOR_SIZES, GRID, HOPELESS, ROWS_BY_KIND, BinsPlan, RowsAside, even_places
from skfairdp.privacy import DpEvent, GaussianMechanism, NoiseSource, compose
from skfairdp.schema import Schema

if TYPE_CHECKING:
    from skfairdp._networks import DPStep, Net, Network

#: How far scores may move beyond what the guess says: it takes that for groups to agree where guesses are often wrong.
STRENGTHS = np.linspace(0.1, 4.0, 40)
#: Of the distance of groups, that it has to fall by for a squared move as large as the variance of scores.
PRICE = 0.5
#: Standard deviations of the noise in a distance that moving has to make up for.
CLEAR = 1.0
#: A cell is so many points where distances are computed.
FINER = 4
#: Of the squared cost of a fit.
FOR_GUESS = 0.5
#: Of the odds beside sizes: then a guess is sure.
SURE = 0.9
_NORM = 1.0  # clipping bound, as of a network that nothing holds to a constraint
#: Where every step has to read all rows there are fewer of them, and each is as much longer.
_STEPS, _LR = 100, 4.0
_NOTHING, _CLEAREST = 1e-300, 1 - 1e-4  # of odds; above the latter nothing is told apart
_DIGITS = 5  # of a probability: the last bits of single precision do not decide between two groups


@dataclass(frozen=True)
class GuessedTransportPlan(TransportPlan, RowsAside):
    """The tables of a barycenter with rows by the kind of their guess as well: a record is in one cell of each.
    *Proof.* Rows of the look are drawn without a look at any, so that it is enough to show the guarantee for each such
    set. What guesses is released before, with the sizes of groups beside which it does so (see ``GuessPlan``). So the
    kind of a row follows from the row and from what is released, a record is in one cell of the table by kind, group
    and score and in one of the look, or in none, and adaptive composition holds for all together."""

    #: A distance takes more rows to know than a rate does.
    one_in: ClassVar[int] = 3
    ranges: ClassVar[tuple[int, ...]] = (2,)
    enough_bins: ClassVar[int] = 8

    @property
    def table(self) -> GaussianMechanism:
        """For scores by cell, group and kind, of what sizes leave."""
        return super().table if self.n_kinds == 1 else self._of(FOR_TABLE - FOR_SIZES)

    @property
    def n_seen(self) -> float:
        """Rows of the look, on average."""
        return self.n_rows / self.one_in if self.keeps_aside else float(self.n_rows)

    @property
    def n_bins(self) -> int:
        """Cells of each group and kind that noise would let one tell apart: a function of public numbers."""
        return int(self.n_counted / (ROWS_BY_KIND * self.table.sigma) / (self.n_groups * self.n_kinds))

    @property
    def snr_too_low(self) -> bool:
        """Whether noise is going to say more than the rows: a function of public numbers."""
        return self.table.sigma * math.sqrt(self.n_groups * self.n_kinds * self.n_looked_at) > HOPELESS * self.n_counted

    @property
    def event(self) -> DpEvent:
        """All releases, as if every row were in each of them."""
        if self.n_kinds == 1:
            return super().event
        tables = compose(super().event, self.sizes.event)
        return tables if self.guess is None else self.guess.event_with(tables)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        if self.guess is None:
            return super().releases
        where, _, look = super().releases
        return "noisy counts of groups", *self.guess.releases, where, "noisy scores by guessed group and group", look

    def release_by_kind(self, scores: Floats, groups: Ints, kinds: Ints, noise: NoiseSource) -> "GuessedTransport":
        """Release how scores in [0, 1] of each kind and group are spread."""
        edges = self.release_edges(scores, noise)
        cells = replace(self, n_groups=self.n_kinds * self.n_groups)
        counts = cells.counts(scores, kinds * self.n_groups + groups, edges).reshape(self.n_kinds, self.n_groups, -1)
        noisy = self.table.release(counts, noise)
        edges = without_far_ends(edges, noisy.reshape(-1, noisy.shape[2]), self.table.sigma)
        return GuessedTransport(edges, noisy, self.table.sigma)


@dataclass(frozen=True)
class GuessedTransport:
    """Moves scores by the kind of their guess to the mean of where every group's would go, weighted by the shares of
    groups among rows of its kind; post-processing. As guesses are often wrong, weights are stretched away from those of
    all rows, by the strength at which the true groups agree best by the counts, less what so large moves cost. Where
    the counts do not show that groups come closer, beyond noise, scores stay as they are."""

    edges: Floats
    counts: Floats
    noise: float

    @cached_property
    def of_groups(self) -> Transport:
        """Where scores would go if groups were known."""
        return Transport(self.edges, self.counts.sum(axis=0), self.noise * math.sqrt(len(self.counts)))

    @cached_property
    def shares(self) -> Floats:
        """Of groups among rows of each kind; those of all rows where noise hides these."""
        doubt = self.noise * math.sqrt(self.counts.shape[2])
        rows = np.maximum(self.counts.sum(axis=2), 0.0) + doubt * self.of_groups.weights
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    @cached_property
    def _points(self) -> tuple[Floats, Floats, Ints]:
        """Scores within the cells of each kind, how many rows of each group are there, and the kinds."""
        between = (np.arange(FINER) + 0.5) / FINER
        points = (self.edges[:-1, None] + np.diff(self.edges)[:, None] * between).ravel()
        rows = np.moveaxis(np.repeat(self.counts / FINER, FINER, axis=2), 1, 0)
        kinds = np.repeat(np.arange(len(self.counts)), len(points))
        return np.tile(points, len(self.counts)), rows.reshape(len(rows), -1), kinds

    def _where(self, scores: Floats) -> Floats:
        """Where each group's scores would go, (n_groups, n_scores)."""
        codes = range(self.counts.shape[1])
        return np.stack([self.of_groups.move(scores, np.full(len(scores), code)) for code in codes])

    def _mean(self, strength: float, where: Floats, kinds: Ints) -> Floats:
        of_all = self.of_groups.weights
        weights = of_all + strength * (self.shares - of_all)
        return np.clip(np.einsum("rg,gr->r", weights[kinds], where), 0.0, 1.0)

    @cached_property
    def strength(self) -> float:
        """How far weights are stretched; 0 where scores stay as they are."""
        points, rows, kinds = self._points
        of_all, where = np.maximum(rows.sum(axis=0), 0.0) + 1e-9, self._where(points)
        variance = float(np.average((points - np.average(points, weights=of_all)) ** 2, weights=of_all))

        def cost(moved: Floats) -> float:
            squared = float(np.average((moved - points) ** 2, weights=of_all))
            # the largest distance of Kolmogorov and Smirnov between rows of two groups at these scores
            levels = rows[:, np.argsort(moved)].cumsum(axis=1)
            levels = levels / np.maximum(levels[:, -1:], 1.0)
            return float(np.ptp(levels, axis=0).max()) + PRICE * squared / max(variance, 1e-12)

        costs = [cost(self._mean(strength, where, kinds)) for strength in STRENGTHS]
        n_kinds, _, n_cells = self.counts.shape
        doubt = CLEAR * self.noise * math.sqrt(2 * n_kinds * n_cells) / max(float(rows.sum(axis=1).min()), 1.0)
        return float(STRENGTHS[int(np.argmin(costs))]) if min(costs) + doubt < cost(points) else 0.0

    def move(self, scores: Floats, kinds: Ints) -> Floats:
        """The moved scores."""
        return self._mean(self.strength, self._where(scores), kinds) if self.strength else scores

    @property
    def quantiles(self) -> tuple[Floats, Floats]:
        """Levels, and moved scores there."""
        points, rows, kinds = self._points
        moved, of_all = self.move(points, kinds), np.maximum(rows.sum(axis=0), 0.0)
        order = np.argsort(moved)
        levels = of_all[order].cumsum()
        return (levels - of_all[order] / 2) / max(levels[-1], 1.0), moved[order]

    def ends(self, n_cells: int) -> Floats:
        """Ends of so many cells of moved scores, about equally many in each."""
        return ends_of(self.quantiles, n_cells)

    def points(self, ends: Floats) -> bool:
        """Nowhere is known that moved scores are at one point: rows of several kinds may be there."""
        return False


Plan = TypeVar("Plan", BinsPlan, GuessedTransportPlan)


class GroupGuess(PlainState):
    """The kind of a row: the group that its features speak for most, beside how large groups are, and how clearly.
    Released, as the network and the sizes are."""

    def __init__(self, module: Any, sizes: Floats, ends: Floats) -> None:
        self.module, self.sizes = module, np.maximum(sizes, max(float(sizes.sum()), 1.0) / (100 * len(sizes)))
        self.ends = ends  # of each group's ranges of odds

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """None: a prediction calls nothing but the network."""
        return {}

    def predict(self, X: Any) -> Ints:
        """Codes of kinds."""
        from skfairdp._networks import predict_logits

        odds = np.nan_to_num(softmax(predict_logits(self.module, np.asarray(X)), axis=1)).round(_DIGITS) / self.sizes
        groups, clearness = odds.argmax(axis=1), odds.max(axis=1) / np.maximum(odds.sum(axis=1), _NOTHING)
        n_ranges = self.ends.shape[1] + 1
        return np.asarray(n_ranges * groups + (clearness[:, None] > self.ends[groups]).sum(axis=1))

    def kinds_of(self, features: Floats, places: Ints) -> Ints:
        """The kind of every row, each a function of its own row and place; 0 where the network fails."""
        said = row_wise_predictions(self, features, None, places=places)
        return np.array([0 if one is NO_CLASS else one for one in said], dtype=np.int64)


@dataclass(frozen=True)
class GuessPlan:
    """Noisy gradients of the network, and tables by which it scales its columns.
    *Proof.* Which rows are kept aside is drawn without a look at any, so that it is enough to show the guarantee for
    each such set. A row of it, and a subject without rows, is nobody to the network: it adds nothing to a sum and
    counts in no table of columns. Any other record that comes or goes moves a sum by the clipping bound at most, and
    one in another one's place by twice that, with every row in every step. So sums and tables of columns have the
    events that are composed here. They are released before rows are counted by kind: kinds follow from a row and what
    is released, so that each of those counts moves as without kinds, and adaptive composition holds for all together.
    Guesses of rows to come read nothing but what was released."""

    net: "Net"
    step: "DPStep"
    scaling: Scaling | None

    def event_with(self, beside: DpEvent) -> DpEvent:
        """All of it, and what is released beside it."""
        return self.step.event_with(_with_tables(beside, self.scaling))

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        tables = None if self.scaling is None else self.scaling.tables
        gradients = f"{self.step.steps} noisy clipped gradient sums of a network that guesses the group"
        return (*(() if tables is None else tables.releases), gradients)

    def prepared(self, n_features: int, n_groups: int, seed: int, owner: str) -> "Network":
        """The untrained network, after all checks that can be made before anything is spent."""
        from skfairdp._networks import check_precision, prepare_network

        check_precision(owner)
        scales = None if self.scaling is None else self.scaling.layer()
        return prepare_network(self.net, n_features, n_groups, seed=seed, owner=owner, scales=scales)

    def trained(self, network: "Network", units: TrainingData, places: Ints, n_places: int, noise: NoiseSource) -> Any:
        """Train on one row of each unit, at its public place; at the other places there is nobody."""
        if self.scaling is not None:
            self.scaling.settle(network.scales, units.X, noise)
        of_each = np.full((n_places, 1), -1)
        of_each[places, 0] = np.arange(len(places))
        return network.trained(units.X, units.groups, self.step, noise, of_each=of_each)


def with_guess(plan: Plan, data: TrainingData, schema: Schema | None, owner: str) -> Plan:
    """The plan with a network that guesses the group, where public numbers say that noise drowns neither gradients,
    even without hidden units, nor counts by group that is guessed; else the plan as it was."""
    from skfairdp._networks import DPStep, as_net

    n_rows, n_groups = plan.n_rows, len(data.domain)
    several = (replace(plan, share=1 - FOR_GUESS, n_kinds=n * n_groups) for n in (*plan.ranges, 1))
    of_bins = next(one for one in several if one.n_bins >= plan.enough_bins or one.n_kinds == n_groups)
    if n_groups < 2 or of_bins.snr_too_low:
        return plan
    cost: tuple[float, float] = (plan.epsilon, plan.delta)
    read = partial(as_net, owner=owner, lr=None, batch_size=None, max_epochs=None, average_last=0.25)
    net = read("mlp")
    scaling = Scaling.planned(net, data, schema, n_rows, (*cost, plan.relation, FOR_GUESS), by_public_rows=False)
    n_features = data.X.shape[1] + (0 if scaling is None else scaling.n_added)
    most = DOUBTFUL * FOR_GUESS**0.5 / (1 if plan.relation.by_null else 2)
    if gradient_noise(n_rows, n_features * (n_groups - 1), epsilon=cost[0], delta=cost[1]) > most:
        return plan
    if default_net(n_rows, n_features, n_groups, epsilon=cost[0], delta=cost[1], most=most) == "additive":
        net = read("additive")
    net = net.settled(n_rows, _NORM)
    if not plan.relation.by_null:
        net = replace(net, lr=_LR / _NORM, batch_size=n_rows, max_epochs=_STEPS)
    of_net: dict[str, Any] = {"batch_size": net.batch_size, "epochs": net.max_epochs, "max_grad_norm": _NORM}
    asked: dict[str, Any] = {"epsilon": plan.epsilon, "delta": plan.delta, "relation": plan.relation}
    step = DPStep.calibrated(n_rows=n_rows, beside=_with_tables(of_bins.event, scaling), **asked, **of_net)
    return replace(of_bins, guess=GuessPlan(net, step, scaling), n_features=data.X.shape[1])


def guessing_network(plan: Any, data: TrainingData, random_state: RandomStateLike, owner: str) -> Any:
    """The untrained network that is to guess the group; None where none is planned."""
    if plan.guess is None:
        return None
    (seed,) = child_seeds(public_generator(random_state), 1)
    return plan.guess.prepared(data.X.shape[1], plan.n_groups, int(seed), owner)


def guessed_kinds(
    plan: Any, network: Any, units: TrainingData, places: Ints, taught: Bools, noise: NoiseSource
) -> tuple[GroupGuess | None, Ints]:
    """What guesses the group, taught by some of the rows; and the kind of every row by it."""
    if network is None:
        return None, np.zeros(len(places), dtype=np.int64)
    teachers = replace(units, X=units.X[taught], y=units.y[taught], groups=units.groups[taught])
    sizes = plan.sizes.release(np.bincount(teachers.groups, minlength=plan.n_groups), noise)
    module = plan.guess.trained(network, teachers, places[taught], plan.n_rows, noise)
    n_groups, n_ranges = plan.n_groups, plan.n_ranges
    if plan.clearness is None:
        guess = GroupGuess(module, sizes, np.full((n_groups, n_ranges - 1), SURE))
        return guess, guess.kinds_of(units.X, places)
    levels = expit(np.linspace(logit(1 / n_groups), logit(_CLEAREST), GRID)[1:])
    fine = GroupGuess(module, sizes, np.tile(levels, (n_groups, 1))).kinds_of(units.X, places)
    found = plan.clearness.release(np.bincount(fine[taught], minlength=n_groups * GRID), noise).reshape(n_groups, GRID)
    ends = np.stack([even_places(np.maximum(line, 0.0), n_ranges) for line in found]).clip(max=GRID - 2)
    groups, cells = np.divmod(fine, GRID)
    kinds = n_ranges * groups + (cells[:, None] > ends[groups]).sum(axis=1)
    return GroupGuess(module, sizes, levels[ends]), kinds


def _with_tables(event: DpEvent, scaling: Scaling | None) -> DpEvent:
    tables = None if scaling is None else scaling.tables
    return event if tables is None else compose(event, tables.event)
