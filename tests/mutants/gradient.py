"""Mistakes in private SGD: what a step releases, how its batch is drawn, what its noise is scaled to."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skfairdp import FairDPSGDClassifier, _column_tables, privacy
from skfairdp._networks import (
    BoundsByGroup,
    DPStep,
    FairClippingStep,
    ParityPenalty,
    WeightsByGroup,
    _clipping,
    _clipping as _dp_step,
    _process,
    _wide_sums,
    own_generator,
    scale_last_layer,
)
from skfairdp.gradient import _fair_dpsgd
from skfairdp.lagrangian import _plan as _pfld_plan
from skfairdp.papers import Reweighting, _fair_clipping
from skfairdp.privacy import GaussianDpEvent, GaussianMechanism, NeighboringRelation
from skfairdp.schema import kept_rows
from tests._tools.inside import (
    AmountConstraints,
    AmountJudge,
    ColumnTables,
    DPSGDPlan,
    DualPlan,
    Judge,
    Judgement,
    LayerRows,
    MajorityBaselineTest,
    MovingPlan,
    RateLagrangian,
    Temperature,
    beside,
)
from tests.mutants.harness import mutant, replace_everywhere

NULL_RECORD = NeighboringRelation.ZERO_OUT
CLIP = 0.7  # the bound of the test that notices


@mutant
def public_batch_through_the_per_sample_path(patch):
    """Found: public rows pass the same hooks, so their gradients are added to private rows by index before clipping.

    Removing one private row pairs all later ones anew. Right: the public term is computed apart and added afterwards.
    """
    seen = {}

    def remember(self, module):
        seen["X"] = self.X
        return {}

    def release(self, module, loss, X, y, source, **options):
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        total = {name: torch.zeros_like(p) for name, p in named.items()}
        for j in range(len(X)):
            value = loss(module(X[j : j + 1]), y[j : j + 1]).sum()
            if j < len(seen.get("X", ())):
                value = value + 2.0 * torch.tanh(module(seen["X"][j : j + 1])[0, 1])
            gradients = torch.autograd.grad(value, list(named.values()))
            norm = torch.sqrt(sum(g.square().sum() for g in gradients))
            for name, g in zip(named, gradients, strict=True):
                total[name] += g * min(1.0, self.max_grad_norm * (1 - 1e-5) / float(norm))
        return {
            name: (value + torch.from_numpy(source.normal(tuple(value.shape))).float()) / self.expected_batch_size
            for name, value in total.items()
        }

    patch.setattr(ParityPenalty, "gradients", remember)
    patch.setattr(DPStep, "release", release)


@mutant
def division_by_the_realised_batch_size(patch):
    """Found: the noisy sum is divided by the size of the Poisson batch, which is itself private. Right: by qN."""
    release = DPStep.release

    def realised(self, module, loss, X, y, source, **options):
        out = release(self, module, loss, X, y, source, **options)
        return {name: value * self.expected_batch_size / max(len(X), 1) for name, value in out.items()}

    patch.setattr(DPStep, "release", realised)


@mutant
def add_or_remove_while_the_number_of_rows_comes_from_the_data(patch):
    """Found: rate, steps and divisor follow len(X), and the report says that a record more or less does not show."""
    patch.setattr(privacy, "relation_for", lambda n_rows, **_: NeighboringRelation.ADD_OR_REMOVE_ONE)


@mutant
def a_look_at_amounts_for_nothing(patch):
    """A judge of means of groups looks at private rows, and what it releases is paid for."""
    patch.setattr(AmountJudge, "event", property(lambda self: GaussianDpEvent(1e9)))


@mutant
def amounts_that_move_for_nothing(patch):
    """Predictions move by private tables, after training but not after the guarantee."""
    patch.setattr(MovingPlan, "event", property(lambda self: GaussianDpEvent(1e9)))


@mutant
def sums_of_amounts_that_no_one_cuts(patch):
    """An amount far away would move a mean by as much as it likes. Right: numbers in [-1, 1]."""
    honest = AmountConstraints.statistics
    patch.setattr(AmountConstraints, "statistics", lambda *given, **more: 9 * honest(*given, **more))


@mutant
def rows_that_move_up_when_one_before_them_goes(patch):
    """A batch of another shape, and rows at other places in it: every one of them may be rounded in another way."""
    patch.setattr(NeighboringRelation, "number_is_public", property(lambda self: True))


@mutant
def multipliers_follow_the_exact_rates(patch):
    """Found: the sign of a violation measured on private groups steers the training. Right: noisy rates, charged."""

    def exact(self, module, X, cells, n_cells, source, *batch, **where):
        return self.exact(module, X, cells, n_cells, *batch, **where)

    patch.setattr(DualPlan, "release", exact)


@mutant
def a_row_counted_for_two_constraints(patch):
    """A table for each constraint, with the noise of one: a row adds 1 to two counts. Right: one table serves all."""
    exact = DualPlan.exact

    def twice(self, module, X, cells, n_cells, *args, **where):
        one = exact(self, module, X, cells, n_cells, *args, **where)
        return one + exact(self, module, X, n_cells - 1 - cells, n_cells, *args, **where)

    patch.setattr(DualPlan, "exact", twice)


@mutant
def rates_of_the_groups_are_free(patch):
    """Rates of private groups steer the training, and the steps alone are accounted."""
    patch.setattr(DPStep, "event_with", lambda self, beside: self.event)
    patch.setattr(
        DPStep,
        "event",
        property(lambda self: _dp_step._event(self.sampling_probability, self.noise_multiplier, self.steps)),
    )


@mutant
def a_second_look_for_nothing(patch):
    """Whether the network is kept follows from private rows, and costs as much as any other release of them."""
    patch.setattr(MajorityBaselineTest, "event", property(lambda self: self.counts.event))


@mutant
def a_second_look_at_a_fair_clipping_for_nothing(patch):
    """The baselines look again as well, and leave out of their sum what that costs."""
    honest = _fair_clipping._beside
    patch.setattr(_fair_clipping, "_beside", lambda sizes, tables, look: honest(sizes, tables))


@mutant
def scales_of_a_fair_clipping_for_nothing(patch):
    """Where its columns lie follows from private rows as well."""
    honest = _fair_clipping._beside
    patch.setattr(_fair_clipping, "_beside", lambda sizes, tables, look: honest(sizes, look))


@mutant
def a_warning_by_the_exact_number_of_rows(patch):
    """Whether a network is called hardly better follows from how many rows it is ahead by, without noise."""
    honest = MajorityBaselineTest.gain.fget

    class Exact:
        def __init__(self, sigma):
            self.sigma = sigma

        def release(self, values, source):
            return np.asarray(values, dtype=float)

    patch.setattr(MajorityBaselineTest, "gain", property(lambda self: Exact(honest(self).sigma)))


@mutant
def the_most_frequent_class_from_exact_counts(patch):
    """The class that everybody is going to be told is named without noise."""

    class Exact:
        sigma = 1.0

        def release(self, values, source):
            return np.asarray(values, dtype=float)

    patch.setattr(MajorityBaselineTest, "counts", property(lambda self: Exact()))


@mutant
def a_table_of_answers_for_nothing(patch):
    """How sure a network may be follows from private labels, and costs as much as any other release of them."""
    some = property(lambda self: self.step.event_with(beside(self.duals, self.tables, self.look)))
    patch.setattr(DPSGDPlan, "event", some)


@mutant
def a_judge_for_nothing(patch):
    """What the network that is returned does to the groups follows from private rows, and costs like any release."""
    some = property(lambda self: self.step.event_with(beside(self.duals, self.tables, self.temperature, self.look)))
    patch.setattr(DPSGDPlan, "event", some)


@mutant
def a_judge_with_the_exact_table(patch):
    """The noisy table is paid for, and the exact one is judged by."""
    patch.setattr(Judge, "release", lambda self, counts, noise: Judgement(self.constraints, np.asarray(counts, float)))


@mutant
def a_record_in_another_s_place_moves_one_cell(patch):
    """Sensitivity 1 where a record gives way to another: it leaves one cell and enters another. Right: √2."""
    table = Judge.table
    patch.setattr(Judge, "table", property(lambda self: table.fget(replace(self, relation=NULL_RECORD))))


@mutant
def a_judge_by_the_share_itself(patch):
    """Noise for a share of μ, where a share of μ² is planned: four hundredths of the budget become a fifth."""
    table = Judge.table
    patch.setattr(Judge, "table", property(lambda self: table.fget(replace(self, share=self.share**0.5))))


@mutant
def a_judge_of_soft_answers(patch):
    """Probabilities are counted, which agree between groups while the answers stay apart. Right: hard answers."""

    @torch.no_grad()
    def soft(self, module, X, cells, n_cells, *args, **where):
        counts = torch.zeros(n_cells, 2, dtype=torch.float64)
        return counts.index_add_(0, cells, torch.softmax(module(X), 1).double())

    honest = RateLagrangian.judgement

    def judgement(self, *args):
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(DualPlan, "exact", soft)
            return honest(self, *args)

    patch.setattr(RateLagrangian, "judgement", judgement)


@mutant
def a_row_counted_as_sure_in_two_lines(patch):
    """A line for "at least so sure" instead of "about so sure": a row adds 1 to many counts, with the noise of one."""
    table = Temperature.table
    patch.setattr(Temperature, "table", lambda self, *args: np.cumsum(table(self, *args)[::-1], axis=0)[::-1])


@mutant
def the_factor_of_the_exact_table(patch):
    """The noisy table is paid for, and the factor is that of the exact one."""

    def release(self, module, X, y, noise):
        table = self.table(module, X, y)
        self.counts.release(table, noise)
        return scale_last_layer(module, self.factor(table))

    patch.setattr(Temperature, "release", release)


@mutant
def tables_of_numbers_for_nothing(patch):
    """Where the numbers of the private rows lie is no public fact, and costs as much as any other release of them."""
    some = property(lambda self: self.step.event_with(beside(self.duals, self.temperature, self.look)))
    patch.setattr(DPSGDPlan, "event", some)


@mutant
def tables_of_numbers_charged_once(patch):
    """Three tables are released, and one is accounted for."""
    patch.setattr(ColumnTables, "event", property(lambda self: self.counts.event))


@mutant
def a_record_in_the_table_of_one_column(patch):
    """A record is counted in every column: the norm of what it moves grows with the root of their number."""
    counts = ColumnTables.counts.fget

    def of_one(self):
        one = counts(self)
        return GaussianMechanism(one.sigma / one.sensitivity, sensitivity=1.0, relation=one.relation)

    patch.setattr(ColumnTables, "counts", property(of_one))


@mutant
def numbers_counted_up_to_each_edge(patch):
    """Counts of "at most so much" are smoother quantiles, and one row moves up to all of them."""
    table = ColumnTables.table
    patch.setattr(ColumnTables, "table", lambda self, *args: np.cumsum(table(self, *args), axis=1))


@mutant
def cells_that_follow_the_exact_counts(patch):
    """The noisy tables are paid for, and the shares are those of the exact ones."""
    shares = ColumnTables.shares

    def exact(self, X, noise, *, near=False):
        edges = np.tile(np.linspace(-1, 1, _column_tables.CELLS + 1), (len(self.places), 1))
        self.counts.release(self.table(X, edges), noise)
        found = shares(self, edges, self.table(X, edges))
        return np.stack([_column_tables._quantiles(*both) for both in zip(edges, found, strict=True)])

    patch.setattr(ColumnTables, "release", exact)


@mutant
def scales_by_the_range_of_the_rows(patch):
    """Released quantiles stretched to the smallest and the largest number: nobody paid for where those lie."""
    knots = ColumnTables.release

    def stretched(self, X, noise, *, near=False):
        found, numbers = knots(self, X, noise, near=near), np.asarray(X)[:, [place.column for place in self.places]]
        found[:, 0] = np.minimum(np.nanmin(numbers, axis=0), found[:, 0])
        found[:, -1] = np.maximum(np.nanmax(numbers, axis=0), found[:, -1])
        return found

    patch.setattr(ColumnTables, "release", stretched)


@mutant
def a_network_for_as_many_rows_as_there_are(patch):
    """Which network it is would tell a private number of rows. Right: it follows from the declared one."""
    honest = FairDPSGDClassifier._net
    patch.setattr(
        FairDPSGDClassifier,
        "_net",
        lambda self, data, max_grad_norm, n_rows, cost: honest(self, data, max_grad_norm, len(data.X), cost),
    )


@mutant
def norms_of_rows_before_their_basis(patch):
    """Gradients clipped by the features that the table has, before hats are put beside them and numbers are scaled."""
    trace, norms, seen = _clipping.trace_layers, LayerRows.norms, {}

    def remembering(module, layers, X):
        seen["X"] = X
        return trace(module, layers, X)

    def of_the_table(self):
        first = next(iter(self._prepared))
        rule, (a, b) = self._prepared[first]
        if a.shape[-1] <= seen["X"].shape[-1]:
            return norms(self)
        return norms(LayerRows(self._layers, self._prepared | {first: (rule, (seen["X"][:, None, :], b))}))

    patch.setattr(_clipping, "trace_layers", remembering)
    patch.setattr(LayerRows, "norms", of_the_table)


@mutant
def weighted_sampler_accounted_as_uniform(patch):
    """Found: rows of small groups are drawn more often, and the accountant is told of uniform Poisson sampling.

    Right: every row with the accounted probability.
    """

    def sample(self, n_rows, source):
        chances = self.sampling_probability * np.where(np.arange(n_rows) % 5 == 0, 1.8, 0.8)
        return np.array([i for i, p in enumerate(chances) if source.bernoulli(p, 1)[0]], dtype=np.int64)

    patch.setattr(DPStep, "sample", sample)


@mutant
def batches_of_a_fixed_size(patch):
    """Found: shuffled batches of one size, accounted as Poisson samples. Right: independent coin flips."""

    def sample(self, n_rows, source):
        return np.argsort(source.normal(n_rows))[: round(self.sampling_probability * n_rows)]

    patch.setattr(DPStep, "sample", sample)


@mutant
def noise_search_stops_above_the_target(patch):
    """Found: a search that returns the lower end of its last bracket. Right: a point whose ε was seen to be enough."""
    calibrate = _dp_step.privacy.calibrate_noise
    patch.setattr(_dp_step.privacy, "calibrate_noise", lambda *args, **kwargs: calibrate(*args, **kwargs) * 0.998)


@mutant
def clipping_layer_by_layer(patch):
    """Each parameter clipped to C by itself, where the bound C is declared for all of them together."""
    original = LayerRows.weighted_sum

    def per_layer(self, weights, left_out=None, *, start=0):
        out = {}
        for name, prepared in self._prepared.items():
            alone = LayerRows(self._layers, {name: prepared})
            factors = _clipping._clip_factors(alone.norms(), CLIP)[start : start + len(weights)]
            out |= original(alone, factors, left_out, start=start)
        return out

    patch.setattr(LayerRows, "weighted_sum", per_layer)


def _in_the_precision_of_the_module(patch, method):
    """A method of LayerRows whose arithmetic is that of the layers' own numbers."""
    original = getattr(LayerRows, method)

    def narrow(self, *args, **where):
        first = next(parts[-1] for _, parts in self._prepared.values())
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(_wide_sums, "wide", lambda part: part)
            inner.setattr(_wide_sums, "_ROWS", 10**9)
            inner.setattr(_wide_sums, "_TERMS", 10**9)
            alone = LayerRows(self._layers, self._prepared)
            narrowed = [a.to(first.dtype) if a is not None and a.is_floating_point() else a for a in args]
            found = original(alone, *narrowed, **where)
        if isinstance(found, dict):
            return {name: value.double() for name, value in found.items()}
        return found.double()

    patch.setattr(LayerRows, method, narrow)


@mutant
def sums_in_the_precision_of_the_module(patch):
    """Found: float32 sums in sequence moved by up to 513 C for one row; half precision by 1.13 to 2.63 C."""
    _in_the_precision_of_the_module(patch, "weighted_sum")


@mutant
def tables_of_rows_summed_in_sequence(patch):
    """Double precision, too, rounds small terms up or down by what came before them."""
    patch.setattr(_pfld_plan, "_exactly_summable", lambda values: values)


@mutant
def norms_in_the_precision_of_the_module(patch):
    """Found: the product of two squared norms underflows in float32, and a gradient of 14 C is not clipped."""
    _in_the_precision_of_the_module(patch, "norms")


@mutant
def norms_of_what_is_left_after_cancelling(patch):
    """The rounding of a sum over positions follows the size of its terms; a norm that cancelled does not show it."""
    patch.setattr(LayerRows, "norms", lambda self: self.squared_norms().sqrt())


@mutant
def empty_batches_skipped(patch):
    """Found: a step whose Poisson batch is empty adds no noise. Right: a step of pure noise, which counts."""
    release = DPStep.release

    def skipping(self, module, loss, X, y, source, **options):
        if len(X) == 0:
            return {name: torch.zeros_like(p) for name, p in module.named_parameters() if p.requires_grad}
        return release(self, module, loss, X, y, source, **options)

    patch.setattr(DPStep, "release", skipping)


@mutant
def noise_without_the_clipping_bound(patch):
    """Noise of standard deviation σ where σC is accounted."""
    patch.setattr(
        DPStep,
        "sums",
        property(lambda self: GaussianMechanism(self.noise_multiplier, sensitivity=self.max_grad_norm,
                                                relation=self.relation)),
    )  # fmt: skip


@mutant
def dropout_from_a_public_seed(patch):
    """Masks go by batch position: from a seed anyone knows, one row more gives all later rows other masks."""
    known = lambda seed=None, device="cpu": own_generator(0 if seed in (1, 2) else seed, device)  # noqa: E731
    replace_everywhere(patch, own_generator, known)


@mutant
def noise_scaled_to_the_mean_bound_of_the_groups(patch):
    """Each group has a clipping bound, and the noise is scaled to their mean. Right: to the largest."""
    patch.setattr(BoundsByGroup, "bound", property(lambda self: float(self.bounds.mean())))


@mutant
def weights_after_clipping_with_the_noise_of_plain_dpsgd(patch):
    """Clipped gradients are multiplied by a weight of their group, and the noise stays σC. Right: times the largest."""
    patch.setattr(WeightsByGroup, "bound", property(lambda self: self.max_norm))


@mutant
def counts_of_a_batch_are_free(patch):
    """The noisy counts that move a bound come on top of gradients with all of the accounted noise level."""
    patch.setattr(
        FairClippingStep,
        "sums",
        property(lambda self: GaussianMechanism(self.noise_multiplier * self.rule.bound, sensitivity=self.rule.bound)),
    )


@mutant
def sizes_of_the_groups_without_noise(patch):
    """Weights from the exact sizes of private groups. Right: from noisy ones, which are charged."""

    def exact(self, plan, data, noise):
        sizes = np.bincount(data.groups, minlength=len(data.domain)).astype(float)
        weights = WeightsByGroup.balancing(sizes, self.max_ratio)
        return WeightsByGroup(weights, max_norm=plan.step.max_grad_norm)

    patch.setattr(Reweighting, "rule", exact)


@mutant
def weights_without_a_cap(patch):
    """One over the size of a group, however small: a single row may then drown all others, and so may its noise."""
    patch.setattr(
        WeightsByGroup, "balancing", staticmethod(lambda sizes, max_weight: sizes.sum() / (len(sizes) * sizes))
    )


@mutant
def chunks_of_a_private_number_of_rows(patch):
    """Rows are read in chunks although only a declared number of them is public: files and bars show the true one.

    Right: refused before anything is read.
    """
    patch.setattr(_fair_dpsgd.FairDPSGDClassifier, "_check_room", lambda self, data: None)


@mutant
def rows_of_chunks_sorted_by_their_cells(patch):
    """Rows that are kept on the disk are sorted by what they hold: one that changes moves the places of others.

    Right: row i lies at place i, whatever the rows hold.
    """

    def planted(*args, **kwargs):
        X, *others = kept_rows(*args, **kwargs)
        order = np.lexsort([others[0], X.rows["column0"]])
        moved = (None if values is None else values[order] for values in others)
        return type(X)(X.compact, X.rows[order], X.n_features), *moved

    replace_everywhere(patch, kept_rows, planted)


@mutant
def settings_of_torch_unread(patch):
    """Found: autocast, and products in less than single precision, where a row changes how others are computed."""
    patch.setattr(_process, "reduced_precision", lambda device="cpu": None)


@mutant
def half_precision_taken(patch):
    """Found: networks of bfloat16, where a row has moved the gradients of the others by .05 C. Right: refused."""
    patch.setattr(_process, "_is_narrow", lambda value: False)


@mutant
def rows_tried_in_batches_of_one(patch):
    """Found in this package: which rows make a module fail was tried row by row, and a module that takes no batch of
    one lost all of them. Right: each at its place of a batch of the same shape."""

    def passes(attempt, rows, some):
        try:
            for i in some.tolist():
                attempt(tuple(r[i : i + 1] for r in rows))
        except Exception:
            return False
        return True

    patch.setattr(_clipping, "_passes", passes)


@mutant
def absent_rows_are_counted(patch):
    """Found: of a declared table the rows that are not there count too. Right: one record moves one count."""
    exact = DualPlan.exact
    patch.setattr(DualPlan, "exact", lambda self, *given, present=None, **more: exact(self, *given, **more))
