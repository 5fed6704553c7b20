"""Mistakes in generators of synthetic data: what their encoders read, who teaches them, how it is accounted."""

import copy
import operator
from dataclasses import replace

import numpy as np
import torch
from sklearn.base import clone

from skfairdp._inputs import _table
from skfairdp._tables import _columns
from skfairdp.generative import PFGuardGenerator, SyntheticDataClassifier, _table_codec as _codec
from skfairdp.metrics import _synthetic
from skfairdp.papers import _adversarial as gan, _adversarial as samplers
from skfairdp.privacy import GaussianMechanism, NoisyThreshold, ReplaceSampledGaussian, calibrate_noise, repeat
from tests._tools.inside import (
    AdversarialPlan,
    AdversarialTraining,
    AmountLook,
    AmountMean,
    AmountTables,
    ColumnTables,
    Comparison,
    CountsOfRows,
    Form,
    GeneratorPlan,
    MarginalsPlan,
    MeanGradient,
    PATEGANPlan,
    SanitisedGradient,
    StreamedTable,
    Surprise,
    TableCodec,
    TableEncoder,
    TableForecast,
    as_numbers,
)
from tests.mutants.harness import mutant, replace_everywhere


class Parts(samplers.TeacherParts):
    """The package's parts, changed after they are dealt: ``change(parts, cells, rates)``."""

    def __init__(self, cells, rates, n_teachers, rng, **options):
        super().__init__(cells, rates, n_teachers, rng, **options)
        self.change(cells, rates)

    def even(self, rows):
        return rows, np.arange(1, len(rows) + 1) / len(rows)


def deal(patch, change):
    patch.setattr(gan, "TeacherParts", type("Planted", (Parts,), {"change": change}))


@mutant
def one_part_for_all_discriminators(patch):
    """Found: one discriminator that sees all rows, called an ensemble. Right: disjoint parts for the whole fit."""

    def change(self, cells, rates):
        self._reached = [self.even(np.arange(len(cells))) for _ in self.rows]

    deal(patch, change)


@mutant
def exclusive_or_in_the_noise_of_the_tables(patch):
    """Found: ``10 ^ delta``, an exclusive or, where a power was meant. Right: the user's δ, in one place."""

    def calibrated(self):
        exclusive_or = 10 ^ round(self.delta)  # 10 for every δ below one half
        return calibrate_noise(self.event_at, self.epsilon, 1 / exclusive_or, guess=4.0)

    patch.setattr(GeneratorPlan, "scale", property(calibrated))


@mutant
def noise_on_labels_in_place_of_votes(patch):
    """Found: exact majorities, and noise on the labels they are compared with. Right: noise on the count of votes."""
    patch.setattr(
        NoisyThreshold,
        "release_each",
        lambda self, largest_counts, source: np.asarray(largest_counts) >= self.threshold,
    )


@mutant
def bits_charged_once_a_round(patch):
    """Found: a round of queries charged as one. Right: every bit is charged."""
    patch.setattr(
        PATEGANPlan, "answers_at", lambda self, scale: repeat(self.mechanism_at(scale).event, self.backend.n_steps)
    )


@mutant
def bounds_of_columns_read_from_private_rows(patch):
    """Found: smallest and largest private value as the range of what is generated. Right: public, or paid for."""
    honest = TableCodec.plan

    def planted(self, table, declarations, **options):
        numbers = {n: as_numbers(c) for n, c in zip(table.names, table.columns, strict=True) if n != "kind"}
        found = {name: (np.nanmin(values), np.nanmax(values)) for name, values in numbers.items()}
        return honest(self, table, replace(declarations, bounds=found), **options)

    patch.setattr(TableCodec, "plan", planted)


@mutant
def categories_read_from_private_rows(patch):
    """Found: one-hot columns for the categories that occur. Right: public ones; others have a cell of their own."""
    honest = TableCodec.plan

    def planted(self, table, declarations, **options):
        found = sorted({cell for cell in table.columns[table.names.index("kind")] if isinstance(cell, str)})
        return honest(self, table, replace(declarations, categories={"kind": found}), **options)

    patch.setattr(TableCodec, "plan", planted)


@mutant
def every_discriminator_on_the_last_part(patch):
    """Found: a stale loop index, so that every teacher trains on the last part. Right: each on its own."""

    def change(self, cells, rates):
        self._reached = [self.even(self.rows[-1]) for _ in self.rows]

    deal(patch, change)


@mutant
def inverse_noise_scale_of_a_gradient(patch):
    """Found: the inverse of the scale where the scale belongs. Right: noise and event from one number."""

    def vector(self):
        sensitivity = 2 * self.clip * self.batch_size**0.5
        return GaussianMechanism(sensitivity / self.noise_multiplier, sensitivity=sensitivity)

    patch.setattr(SanitisedGradient, "_vector", property(vector))


@mutant
def half_the_distance_of_a_mean_gradient(patch):
    """Found (sensitivity of one added record, C, where one is replaced). Right: an answer turns round, 2C."""

    def vector(self):
        sensitivity = self.clip * self.batch_size**0.5 / self.n_discriminators
        return GaussianMechanism(self.noise_multiplier * sensitivity, sensitivity=sensitivity)

    patch.setattr(MeanGradient, "_vector", property(vector))


@mutant
def one_record_counted_once_among_the_gradients_of_gs_wgan(patch):
    """Found (DP-SGD-F inside GS-WGAN): counts that a record moves by 1, as in training on records.

    Right: gradients are those of generated rows; one record moves all that its discriminator answers.
    """

    def vector(self):
        return GaussianMechanism(self.noise_multiplier, sensitivity=1.0)

    patch.setattr(CountsOfRows, "_vector", property(vector))


@mutant
def rows_dealt_anew_every_round(patch):
    """Found: a new partition every round for discriminators that keep what they learnt. Right: one for the fit."""
    honest = samplers.TeacherParts.batch

    def batch(self, batch_size):
        self._reached = self._reached[1:] + self._reached[:1]
        return honest(self, batch_size)

    patch.setattr(samplers.TeacherParts, "batch", batch)


@mutant
def delta_overwritten(patch):
    """Found: δ set to 1/n whatever the user asked. Right: what was asked is what is calibrated and reported."""
    patch.setattr(
        GeneratorPlan, "scale", property(lambda self: calibrate_noise(self.event_at, self.epsilon, 1 / 60, guess=4.0))
    )


@mutant
def student_discriminator_trained_on_real_rows(patch):
    """Found: the student is shown raw private rows as examples of "real". Right: generated rows and released bits."""
    honest = AdversarialTraining.follow_student

    def follow_student(self, asked, real, **steps):
        shown = [*asked, self._real[: len(real)]]
        return honest(self, shown, np.concatenate([real, np.ones(len(shown[-1]), dtype=bool)]), **steps)

    patch.setattr(AdversarialTraining, "follow_student", follow_student)


@mutant
def real_labels_with_synthetic_rows(patch):
    """Found: the private labels handed out beside synthetic rows. Right: labels are drawn at the rates."""
    honest_fit, honest_draw = PFGuardGenerator.fit, PFGuardGenerator._draw
    kept = {}

    def fit(self, X, y=None, **given):
        kept[id(self)] = np.asarray(y)
        return honest_fit(self, X, y, **given)

    def draw(self, n_samples, *rest):
        X, _, groups = honest_draw(self, n_samples, *rest)
        return X, np.resize(kept[id(self)], n_samples), groups

    patch.setattr(PFGuardGenerator, "fit", fit)
    patch.setattr(PFGuardGenerator, "_draw", draw)


@mutant
def weights_from_the_groups_of_the_whole_table(patch):
    """Found (PFGuard's step 3): counts over the whole private table weigh the batches of every teacher.

    Right: a teacher weighs with the counts of its own part.
    """

    def change(self, cells, rates):
        counts = np.bincount(cells, minlength=len(rates))
        weights = rates[cells] / np.maximum(counts, 1)[cells]
        self._reached = [(own, weights[own].cumsum() / weights[own].sum()) for own in self.rows]

    deal(patch, change)


@mutant
def one_noise_for_all_counts_of_a_table(patch):
    """Found: one draw, broadcast. Right: noise of its own for every number."""
    honest = GaussianMechanism.release

    def release(self, values, source):
        values = np.asarray(values, dtype=float)
        return values + honest(self, np.zeros(1), source)

    patch.setattr(GaussianMechanism, "release", release)


@mutant
def rows_of_a_batch_accounted_as_independent_draws(patch):
    """Found (GS-WGAN): B rows share one drawn discriminator and are accounted as B independently sampled releases.

    Right: one sampled release of the whole batch, 2C√B wide.
    """

    def event(self):
        alone = self.noise_multiplier * self.batch_size**0.5
        return repeat(ReplaceSampledGaussian(1 / self.n_discriminators, alone, difference=1.0), self.batch_size)

    patch.setattr(SanitisedGradient, "event", property(event))


@mutant
def rare_rows_dealt_again(patch):
    """Found (DataLens' code): every teacher gets equally many rows of a class; the rare class starts over.

    Right: disjoint parts, whatever their classes.
    """

    def change(self, cells, rates):
        rare = np.flatnonzero(cells == np.bincount(cells).argmin())
        self._reached = [self.even(np.concatenate([own, rare])) for own in self.rows]

    deal(patch, change)


@mutant
def parts_stratified_by_group(patch):
    """Found (PFGuard's step 2): parts matched to the groups' shares. Right: dealt by position."""
    honest = samplers.TeacherParts.__init__

    def init(self, cells, rates, n_teachers, rng, **options):
        honest(self, cells, rates, n_teachers, rng, **options)
        self.assignment = np.empty(len(cells), dtype=np.int64)
        self.assignment[np.argsort(cells, kind="stable")] = np.arange(len(cells)) % n_teachers

    patch.setattr(samplers.TeacherParts, "__init__", init)


@mutant
def only_the_drawn_discriminator_trains(patch):
    """Found (GS-WGAN's code): the drawn discriminator alone takes a step, so that its state tells earlier draws.

    Right: all train, and a draw is independent of everything before it.
    """
    honest = AdversarialTraining.teach

    def teach(self):
        before = [p.clone() for p in self.teachers.params]
        honest(self)
        others = torch.arange(len(before[0])) != self.asked
        for p, old in zip(self.teachers.params, before, strict=True):
            p[others] = old[others]

    patch.setattr(AdversarialTraining, "teach", teach)


# ---- found in our own 0.1.0: what the program around the releases said ---------------------------------------------
@mutant
def labels_typed_as_the_private_ones(patch):
    """Found: groups as wide as the longest private string. Right: the type of the declared list."""
    honest = Form.of.__func__

    def of(cls, container, public, width=1):
        return replace(honest(cls, container, public, width), dtype=np.asarray(container).dtype)

    patch.setattr(Form, "of", classmethod(of))
    patch.setattr(
        Form,
        "restore",
        lambda self, labels, codes: np.asarray(labels).astype(self.dtype)[codes],  # 'Amer-'
    )


@mutant
def numbers_typed_as_the_private_ones(patch):
    """Found: floats where one private integer is missing. Right: declared types, float64 without one."""
    honest = TableCodec.plan

    def planted(self, table, declarations, **options):
        columns = zip(table.names, table.columns, strict=True)
        found = {name: column.dtype for name, column in columns if getattr(column.dtype, "kind", "O") in "iuf"}
        return honest(self, table, replace(declarations, dtypes=found), **options)

    patch.setattr(TableCodec, "plan", planted)


@mutant
def categories_kept_with_the_column(patch):
    """Found: the categorical dtype of the private column, with all its values, in the fitted model. Right: declared."""
    honest = TableCodec.plan

    def planted(self, table, declarations, **options):
        encoder, read = honest(self, table, declarations, **options)
        pairs = zip(encoder.columns, table.columns, strict=True)
        kept = [replace(column, dtype=rows.dtype) if column.name == "kind" else column for column, rows in pairs]
        return replace(encoder, columns=tuple(kept)), read

    patch.setattr(TableCodec, "plan", planted)


@mutant
def rows_converted_as_a_whole(patch):
    """Found: ``infer_objects`` and ``np.asarray`` over all rows, so that one cell retypes the others. Right: cells."""
    patch.setattr(_codec._tables, "as_numbers", lambda column: np.asarray(column, dtype=np.float64))
    patch.setattr(_columns, "as_numbers", lambda column: np.asarray(column, dtype=np.float64))


@mutant
def rows_counted_in_an_error(patch):
    """Found: "133 row(s) whose value is not among the 3 known ones", uncharged. Right: one constant text."""
    honest = _table._utils.encode_labels

    def planted(values, domain, **names):
        unknown = sum(value not in domain.tolist() for value in values.tolist())
        if unknown:
            raise ValueError(f"{unknown} row(s) whose value is not among the known ones.")
        return honest(values, domain, **names)

    patch.setattr(_table._utils, "encode_labels", planted)


@mutant
def trouble_of_a_part_let_through(patch):
    """Found: warnings and failures of what is fitted on one part reach the user. Right: silence, even weights."""

    def planted(rows, public, classifier=None):
        truth = np.repeat([0, 1], [len(rows), len(public)])
        (classifier or samplers.LogisticRegression()).fit(np.vstack([rows, public]), truth)
        return np.full(len(rows), 2.0)

    replace_everywhere(patch, samplers.density_ratios, planted)


class Exact:
    """A mechanism whose release happens, is charged and recorded, and is not used."""

    def __init__(self, mechanism, kept=None):
        self.mechanism, self.kept = mechanism, kept

    def __getattr__(self, name):
        return getattr(self.mechanism, name)

    def release(self, values, source):
        noisy = self.mechanism.release(values, source)
        if self.kept is None:
            return np.asarray(values, dtype=float)
        self.kept.append(np.asarray(values, dtype=float))
        return noisy


@mutant
def bins_where_no_number_shows(patch):
    """Found: where the noise hides a column, numbers came from bins from -2^60 to 2^60. Right: 0, and a word."""
    honest = _columns._occupied
    patch.setattr(_columns, "_occupied", lambda noisy, *how, **more: honest(noisy, *how, **more) or (0, len(noisy) - 1))


@mutant
def missing_values_by_exact_counts(patch):
    """Found (planted): whether a network makes missing values follows exact counts. Right: released ones."""
    honest = AdversarialPlan.missing_at
    patch.setattr(AdversarialPlan, "missing_at", lambda self, scale: Exact(honest(self, scale)))


@mutant
def missing_values_not_charged(patch):
    """Found (planted): counts of missing values that no event stands for. Right: they are in that of the fit."""
    patch.setattr(AdversarialPlan, "event_at", lambda self, scale: self.answers_at(scale))


@mutant
def bins_from_exact_histograms(patch):
    """Found (survived in 0.1.0): fine histograms are released, bins are merged by the exact ones. Right: by noisy."""
    honest = TableEncoder.release_bins

    def release_bins(self, count, mechanism, noise, n_rows):
        return honest(self, count, None if mechanism is None else Exact(mechanism), noise, n_rows)

    patch.setattr(TableEncoder, "release_bins", release_bins)


@mutant
def rates_from_exact_counts(patch):
    """Found (planted): shares of groups and labels from the counts before the noise. Right: after it."""
    honest = GeneratorPlan.counts.fget
    patch.setattr(GeneratorPlan, "counts", property(lambda self: Exact(honest(self))))


@mutant
def exact_counts_kept_for_a_refit(patch):
    """Planted: a refit warns of small groups by the private counts, which the fit kept. Right: by released ones."""
    honest = PFGuardGenerator._learn

    def learn(self, data, released, rng):
        honest(self, data, released, rng)
        if self._noisy_counts is not None:
            self._noisy_counts = data.cell_counts.reshape(self.observed_rates_.shape), self._noisy_counts[1]
        return self

    patch.setattr(PFGuardGenerator, "_learn", learn)


@mutant
def a_refit_that_fits_again(patch):
    """Planted: rows by another balance are those of a new release. Right: of the one that is paid for."""

    def refit(self, **changes):
        other = clone(self).set_params(**changes)
        X, y, groups = self.sample_labels(50, return_sensitive=True, random_state=0)
        return other.fit(X, y, sensitive_features=groups)

    patch.setattr(PFGuardGenerator, "refit", refit)


@mutant
def admissible_labels_by_exact_counts(patch):
    """Planted: labels given admissible columns by the private shares of groups and labels. Right: released ones."""
    honest = PFGuardGenerator._learn

    def learn(self, data, released, rng):
        honest(self, data, released, rng)
        if self._admissible is not None:
            exact = data.cell_counts.reshape(self.observed_rates_.shape) / data.cell_counts.sum()
            self._admissible = replace(self._admissible, observed=exact)
        return self

    patch.setattr(PFGuardGenerator, "_learn", learn)


@mutant
def admissible_labels_of_the_own_group(patch):
    """Planted: labels that follow a group's own shares as well. Right: the admissible columns alone."""
    honest = PFGuardGenerator._draw

    def draw(self, n_samples, conditions, random_state):
        values, labels, groups = honest(self, n_samples, conditions, random_state)
        if self._admissible is None:
            return values, labels, groups
        rng = np.random.default_rng(0)
        of_group = self.observed_rates_[:, 1] / self.observed_rates_.sum(axis=1)
        mixed = rng.random(len(labels)) < 0.5
        return values, np.where(mixed, rng.random(len(labels)) < of_group[groups], labels).astype(labels.dtype), groups

    patch.setattr(PFGuardGenerator, "_draw", draw)


@mutant
def small_groups_told_by_exact_counts(patch):
    """Found (survived in 0.1.0): the warning of small groups counts private rows. Right: it reads released counts."""
    honest_counts, honest_warning, kept = GeneratorPlan.counts.fget, PFGuardGenerator._warn_of_small_groups, []
    patch.setattr(GeneratorPlan, "counts", property(lambda self: Exact(honest_counts(self), kept)))

    def warn(self, noisy, sigma):
        return honest_warning(self, kept[-1].reshape(noisy.shape), sigma)

    patch.setattr(PFGuardGenerator, "_warn_of_small_groups", warn)


@mutant
def pairs_chosen_by_exact_scores(patch):
    """Found (planted): the tree is that of the exact scores. Right: of the released ones."""
    honest = MarginalsPlan.scores_at
    patch.setattr(MarginalsPlan, "scores_at", lambda self, scale: Exact(honest(self, scale)))


@mutant
def interactions_chosen_for_nothing(patch):
    """Planted: the event has the counts of the interaction, not the choice. Right: both."""
    honest = MarginalsPlan.event_at

    def event_at(self, scale):
        return replace(self, choice_share=0.0).tables_at(scale).event if self.choice_share else honest(self, scale)

    patch.setattr(MarginalsPlan, "event_at", event_at)


@mutant
def interactions_scored_by_all_of_the_distance(patch):
    """Planted: a score is the L1 distance of counts, which a replaced row moves by 4. Right: half of it."""
    honest = Surprise.scores
    patch.setattr(Surprise, "scores", lambda self, *rows: 2 * honest(self, *rows))


@mutant
def rows_counted_more_often_than_charged(patch):
    """Found (planted): rows are counted five times by label and four times by group and label. Right: 3² + 4² = 5²."""
    patch.setattr(MarginalsPlan, "times", property(lambda self: (5, 4)))


@mutant
def gap_downstream_against_all_other_groups(patch):
    """Found (survived in 0.1.0): a group against the rest, which is smaller with three groups. Right: the two furthest
    apart."""
    honest = _synthetic._fairness.demographic_disparity
    patch.setattr(
        _synthetic._fairness, "demographic_disparity", lambda *rows, gap, **given: honest(*rows, gap="others", **given)
    )


@mutant
def gaps_downstream_of_two_groups_alone(patch):
    """Found (planted): the third group is left out of the comparison. Right: all that the test rows have."""
    for name in ("equalized_odds_disparity", "accuracy_disparity"):
        honest = getattr(_synthetic._fairness, name)

        def planted(y_true, y_pred, *, sensitive_features, honest=honest, **more):
            kept = np.isin(sensitive_features, sorted(set(sensitive_features))[:2])
            parts = (np.asarray(part)[kept] for part in (y_true, y_pred, sensitive_features))
            truth, predicted, groups = parts
            return honest(truth, predicted, sensitive_features=groups, **more)

        patch.setattr(_synthetic._fairness, name, planted)


@mutant
def chunks_that_count_twice_unnoticed(patch):
    """A chunk whose task was tried again adds its rows twice, and the sum is not held to the public number of rows."""
    counts = StreamedTable._counts

    def planted(self, function, sizes):
        class Blind(type(self.source)):
            @property
            def n_rows(self):
                return int(self.map_reduce(lambda chunk: len(chunk.table), operator.add))

        blind = copy.copy(self.source)
        blind.__class__ = Blind
        return counts(replace(self, source=blind), function, sizes)

    patch.setattr(StreamedTable, "_counts", planted)


@mutant
def the_gain_of_the_learner_is_not_charged(patch):
    """Planted: a fit states tables and counts. Right: the look at how far the learner got costs as well."""
    honest = GeneratorPlan.event_at
    patch.setattr(GeneratorPlan, "event_at", lambda self, scale: honest(replace(self, gain=None), scale))


@mutant
def the_gain_of_the_learner_moves_by_one(patch):
    """Planted: sensitivity one, as of a count. Right: two, where a row that was right becomes one that is wrong."""
    honest = TableForecast.gain.fget

    def gain(self):
        found = honest(self)
        return found and replace(found, sigma=found.sigma / 2, sensitivity=1.0)

    patch.setattr(TableForecast, "gain", property(gain))


@mutant
def the_learner_gives_way_by_its_exact_gain(patch):
    """Planted: the true number of rows it is ahead decides. Right: the released one."""
    honest = SyntheticDataClassifier._rows_ahead

    def rows_ahead(self, answers, codes):
        found = honest(self, answers, codes)
        patch.setattr(Comparison, "may_stay", property(lambda self: found > 0))
        return found

    patch.setattr(SyntheticDataClassifier, "_rows_ahead", rows_ahead)


@mutant
def amounts_cut_at_their_own_quantiles(patch):
    """Noisy quantiles are paid for, and classes begin at the exact ones. Right: at the released ones."""
    honest = AmountTables.release

    def release(self, data, noise, owner):
        found, where = honest(self, data, noise, owner)
        knots = np.quantile(data.amounts, (np.arange(8) + 0.5) / 8)
        return replace(found, form=replace(found.form, amounts=replace(found.form.amounts, knots=knots))), where

    patch.setattr(AmountTables, "release", release)


@mutant
def where_amounts_lie_is_not_on_the_event(patch):
    """Only the look is charged. Right: the tables of amounts too."""
    patch.setattr(AmountTables, "event", property(lambda self: self.look.event))


@mutant
def a_replaced_amount_moves_one_cell(patch):
    """The tables of amounts as if one cell lost a row. Right: another cell wins it, so that they move by √2."""
    patch.setattr(ColumnTables, "_moved", property(lambda self: len(self.places) ** 0.5))


@mutant
def the_mean_of_amounts_counts_a_replaced_row_once(patch):
    """Another amount in the place of one moves the sum by 2, from one end to the other. As if it moved by 1."""
    honest = AmountMean.total.fget

    def total(self):
        found = honest(self)
        return replace(found, sigma=found.sigma / found.sensitivity, sensitivity=1.0)

    patch.setattr(AmountMean, "total", property(total))


@mutant
def the_look_at_amounts_counts_a_replaced_row_once(patch):
    """What a row says lies between -1 and 1, so another in its place moves the sum by 2, not by 1."""
    honest = AmountLook.gain.fget

    def gain(self):
        found = honest(self)
        return replace(found, sigma=found.sigma / found.sensitivity, sensitivity=1.0)

    patch.setattr(AmountLook, "gain", property(gain))
