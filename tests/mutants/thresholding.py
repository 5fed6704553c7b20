"""Thresholds: tables that are not paid for, noise that is too small, and constraints that do not hold."""

import math
import sys

import numpy as np

from skfairdp import PFLDClassifier, _estimator, _judge, _transport, fairness, privacy
from skfairdp._networks import _nets
from skfairdp.fairness import RateConstraints, RateGate, _rate_gate, _rate_gate as _rate_bounds, rate_bounds
from skfairdp.gradient import _amounts
from skfairdp.lagrangian import _pfld
from skfairdp.metrics import _fairness
from skfairdp.pate import _fair_pate
from skfairdp.postprocessing import (
    IDP3,
    FairnessCalibrator,
    PrivateBarycenter,
    PrivateThresholds,
    _calibrator,
    _constrained,
    _private_barycenter,
    _private_thresholds,
)
from skfairdp.privacy import GaussianMechanism, _spending, compose, gdp_mu
from tests._tools.inside import (
    HELD,
    TOLERANCE,
    BinsPlan,
    DPStep,
    GuessedTransportPlan,
    GuessPlan,
    Judge,
    Judgement,
    KSJudgement,
    LaterLabels,
    TransportPlan,
)
from tests.mutants.harness import mutant


@mutant
def bins_for_nothing(patch):
    """Where bins end follows from private scores, and costs as much as any other release of them."""
    patch.setattr(BinsPlan, "event", property(lambda self: compose(self.table.event, self.look.event)))


@mutant
def a_calibrated_model_judged_by_what_taught_it(patch):
    """A network learns a bound on few public rows by heart; others have the gap. Right: rows left out."""

    def judged(self, method, model, rows, labels, found):
        return Judgement.by_rows(self._held(), rows.groups, labels, found.answers)

    patch.setattr(FairnessCalibrator, "_judged", judged)


@mutant
def a_network_judged_as_if_nothing_taught_it(patch):
    """Error rates of few rows that a network knows by heart. Right: their bound leaves room for that."""
    patch.setattr(Judgement, "after_learning", lambda self, right, spared=None, wrong=None, labels=None: self)


@mutant
def labels_known_by_heart_that_parity_has_nothing_to_do_with(patch):
    """Answers to rows seen follow labels, for which parity makes up. Right: on others it is off by as much."""

    def after(self, right, spared=None, wrong=None, labels=None, own=Judgement.after_learning):
        return own(self, right, None, wrong, labels)

    patch.setattr(Judgement, "after_learning", after)


@mutant
def a_bound_judged_by_networks_that_are_held_to_nothing(patch):
    """A bound on a rare class is what makes a network learn rows by heart. Right: those tried are held to it."""

    def tried(self, *given, own=PFLDClassifier._tried):
        *before, _, seed = given
        return own(self, *before, None, seed)

    patch.setattr(PFLDClassifier, "_tried", tried)


@mutant
def rows_of_one_subject_on_both_sides_of_a_trial(patch):
    """Rows of a subject that taught a network say how right it is on others. Right: all are kept from it together."""

    def on_parts(*given, own=_pfld.tried_on_parts):
        return own(*given[:6])

    patch.setattr(_pfld, "tried_on_parts", on_parts)


@mutant
def a_module_that_makes_many_of_two_counted_as_two(patch):
    """Columns counted where a module makes a thousand features of them. Right: what its weights are given."""
    patch.setattr(_nets, "width_of", lambda module: 0)


@mutant
def a_total_spent_by_each_of_two_fits(patch):
    """Both fits take the ε that they were given. Right: one factor brings both to the total."""
    patch.setattr(privacy, "scale_for", lambda *given, **of: 1.0)


@mutant
def moved_answers_judged_as_if_others_had_taught_them(patch):
    """What answers know of groups by heart is moved away on the rows that taught them alone. Right: room for that."""
    for kind in (PrivateBarycenter, PrivateThresholds):
        patch.setattr(kind, "_by_heart", lambda self, model, data: 0.0)


@mutant
def errors_judged_as_if_others_had_taught_them(patch):
    """A regressor's errors on its own rows, taken for those on others. Right: these are larger."""
    patch.setattr(_amounts, "by_heart", lambda *numbers: 0.0)


@mutant
def teachers_and_sums_judged_as_if_others_had_taught_them(patch):
    """Errors on rows that taught, taken for those on others. Right: room for what features may know by heart."""
    patch.setattr(_judge, "by_heart", lambda *numbers: 0.0)


@mutant
def rows_of_a_penalty_bound_the_gap_of_others(patch):
    """Public rows whose groups a penalty has learned, which calibrate and judge as well. Right: these are in doubt."""
    told = _calibrator.set_judgement
    patch.setattr(
        _calibrator, "set_judgement", lambda estimator, judgement, *, in_doubt=False: told(estimator, judgement)
    )


@mutant
def a_student_judged_by_what_taught_it(patch):
    """Of few public rows a student holds its bound by heart. Right: each fifth is answered by what the others teach."""
    patch.setattr(_fair_pate, "_MOST_LEFT_OUT", 0)


@mutant
def a_second_look_for_nothing(patch):
    """Two tables are looked at, and one is paid for."""
    patch.setattr(Judge, "event", property(lambda self: self.table.event))


@mutant
def a_look_at_moved_scores_for_nothing(patch):
    """Moved scores are counted by group, and what is released of them is paid for."""
    patch.setattr(TransportPlan, "event", property(lambda self: compose(self.cells.event, self.table.event)))


@mutant
def a_barycenter_with_half_the_noise(patch):
    """A record in another one's place leaves one cell and enters another: √2, not 1."""
    patch.setattr(
        _transport,
        "table_for",
        lambda share, epsilon, delta, relation: GaussianMechanism(
            1 / math.sqrt(share) / gdp_mu(epsilon, delta), sensitivity=1.0, relation=relation
        ),
    )


@mutant
def a_bound_that_forgets_who_was_sampled(patch):
    """The distance of moved rows is next to nothing, for they said how to move; that of the population is not."""
    patch.setattr(_judge, "_deviations", lambda n_rows, at, noise, seed: np.zeros((_judge._DRAWS, len(at))))


@mutant
def a_bound_that_takes_points_for_lines(patch):
    """Half of a group at one point is before or behind all others of its cell, not half of it."""
    patch.setattr(KSJudgement, "_lumps", property(lambda self: np.zeros(self.counts.shape, dtype=bool)))


@mutant
def a_guess_for_nothing(patch):
    """A network learns the group from private rows, and what is released of them is paid for."""
    patch.setattr(GuessPlan, "event_with", lambda self, beside: beside)


@mutant
def a_gradient_that_enters_without_one_that_leaves(patch):
    """In another one's place a record takes one gradient from the sum and brings another: twice the bound, not once."""

    def sums(self):
        sigma = self.noise_multiplier * self.max_grad_norm
        return GaussianMechanism(sigma, sensitivity=self.max_grad_norm, relation=self.relation)

    patch.setattr(DPStep, "sums", property(sums))


@mutant
def a_guess_by_the_rows_of_the_bound(patch):
    """Rows that say how far groups are apart have taught who is in which. Right: they are nobody to the network."""
    honest = _private_thresholds.guessed_kinds

    def guess(plan, network, units, places, taught, noise):
        return honest(plan, network, units, places, np.ones_like(taught), noise)

    patch.setattr(_private_thresholds, "guessed_kinds", guess)


@mutant
def a_barycenter_that_guesses_for_nothing(patch):
    """What guesses the group is released with tables of scores, and paid for with them."""
    patch.setattr(GuessedTransportPlan, "event", TransportPlan.event)


@mutant
def a_distance_of_rows_that_said_how_to_move(patch):
    """Guesses are right more often for rows that taught them, and their groups come closer than those of others."""
    honest = _private_barycenter.guessing.guessed_kinds

    def guess(plan, network, units, places, taught, noise):
        return honest(plan, network, units, places, np.ones_like(taught), noise)

    patch.setattr(_private_barycenter.guessing, "guessed_kinds", guess)


@mutant
def a_look_for_nothing(patch):
    """Answers to private rows are counted, and what is released of them is paid for."""
    patch.setattr(BinsPlan, "event", property(lambda self: compose(self.histogram.event, self.table.event)))


@mutant
def rows_that_count_twice(patch):
    """Some rows are in two cells of each table: one that is replaced moves it further than its noise allows."""
    honest = BinsPlan.release

    def release(self, scores, groups, y, noise, kinds):
        more = [np.concatenate([values, values[: len(values) // 4]]) for values in (scores, groups, y, kinds)]
        return honest(self, *more[:3], noise, more[3])

    patch.setattr(BinsPlan, "release", release)


@mutant
def a_bound_from_rows_that_are_alike(patch):
    """Rows kept aside by what they hold: of a few different rows some are looked at, and a gap hides in the others."""

    def kept_aside(self, n_rows, noise):
        frame = sys._getframe(1)
        while "coins" not in frame.f_locals:  # of the fit: equal rows have equal ones
            frame = frame.f_back
        held = frame.f_locals["coins"] < 1 / HELD
        return ~held, held

    patch.setattr(BinsPlan, "kept_aside", kept_aside)


@mutant
def a_bound_by_the_middle_of_two_laws(patch):
    """Found: one law of each rate, which misses rates of 0 and 1. Right: one from below and one from above."""
    honest = _rate_bounds._laws

    def middle(constraints, counts, noise):
        lower, upper = honest(constraints, counts, noise)
        return (lower + upper) / 2, (lower + upper) / 2

    patch.setattr(_rate_bounds, "_laws", middle)


@mutant
def a_bound_that_does_not_know_of_the_noise(patch):
    """Counts behind noise say less of the rates than they look like."""
    honest = _rate_bounds._laws
    patch.setattr(_rate_bounds, "_laws", lambda constraints, counts, noise: honest(constraints, counts, 0.0))


@mutant
def half_the_sensitivity(patch):
    """A record that is replaced leaves one cell and enters another: √2, not the half of it."""

    def of(self, share):
        mu = math.sqrt(share) * gdp_mu(self.epsilon, self.delta)
        return GaussianMechanism(math.sqrt(0.5) / mu, sensitivity=math.sqrt(0.5), relation=self.relation)

    patch.setattr(BinsPlan, "_of", of)


@mutant
def the_classifier_for_nothing(patch):
    """What a private classifier has cost is part of what its thresholds show."""
    patch.setattr(_estimator.privacy, "held_by", lambda estimator: ())
    patch.setattr(_spending, "held_by", lambda *things: ())


@mutant
def a_row_without_a_score_ends_the_fit(patch):
    """An error of the classifier on one private row tells that the row is there."""

    def scores_of(model, table, places, unknown=0.0):
        return model.predict_proba(table)[:, 1]

    patch.setattr(_private_thresholds, "scores_of", scores_of)


@mutant
def labels_that_the_model_guesses(patch):
    """Planted: equalized odds by the model's own probabilities. Right: by the labels that the public rows have."""
    honest = _constrained.meet_constraints

    def by_guesses(model, rows, constraints, labels, method, owner):
        return honest(model, rows, constraints, None, method, owner)

    patch.setattr(_constrained, "meet_constraints", by_guesses)


@mutant
def only_the_first_constraint_holds(patch):
    """Of several constraints each has to hold."""
    honest = _constrained.fair_answers

    def fair_answers(constraints, counts, **options):
        first = RateConstraints(constraints.constraints[:1], constraints.groups, constraints.classes)
        return honest(first, counts, **options)

    patch.setattr(_constrained, "fair_answers", fair_answers)


@mutant
def coins_of_the_moment(patch):
    """An answer that is drawn anew whenever somebody asks: asking often enough gets the answer one wants."""
    patch.setattr(_constrained, "coins_of", lambda rows, key: np.random.default_rng().random(len(rows)))


@mutant
def a_gate_without_the_constraints_bound(patch):
    """Planted: the gate keeps to its usual γ. Right: to the bound of the constraint that it was given."""
    honest, usual = fairness.rule_of_gate, IDP3()
    patch.setattr(fairness, "rule_of_gate", lambda *asked: honest(*asked) and (usual.gamma, usual.disparity))


@mutant
def a_gate_that_looks_at_one_side(patch):
    """Planted: no group above all rows by more than γ. Right: nor below, which is another thing with three classes."""
    honest = fairness.rule_of_gate
    patch.setattr(fairness, "rule_of_gate", lambda *asked: honest(*asked) and (honest(*asked)[0], "overall"))


@mutant
def a_gate_that_forgets_what_is_outstanding(patch):
    """Planted: labels that are back alone are looked at. Right: all that may still come back, too."""
    honest = RateGate._extremes
    patch.setattr(RateGate, "_extremes", lambda self, outstanding: honest(self, np.zeros_like(outstanding)))


@mutant
def a_gate_that_expects_every_label(patch):
    """Planted: no row is taken for a miss, as its label may turn it into a hit. Right: both may happen."""
    honest = RateGate._possible.func

    def possible(self):
        hit, _ = honest(self)
        return hit, np.zeros_like(hit)

    patch.setattr(RateGate, "_possible", property(possible))


@mutant
def a_gate_that_compares_a_group_with_itself(patch):
    """Planted: the furthest of all groups, and so for the furthest its own other end. Right: of the other groups."""

    def highest_of_all(values):
        return np.broadcast_to(values.max(axis=0), values.shape).copy()

    patch.setattr(_rate_gate, "highest_of_others", highest_of_all)


@mutant
def a_gate_that_lets_a_broken_constraint_drift(patch):
    """Planted: what is broken when it comes into force may break further. Right: never by more than it could then."""
    honest = RateGate._breaks
    before = RateGate.worst_case
    patch.setattr(RateGate, "_breaks", lambda self, *ends: honest(self, *ends) & ~(before(self) > TOLERANCE).any())


@mutant
def a_label_that_leaves_its_answer_outstanding(patch):
    """Planted: a label that is back still counts as one to come, for the next row of that name as well."""
    honest = LaterLabels.labelled

    def labelled(self, tickets, labels):
        before = self.counts[1]
        honest(self, tickets, labels)
        self.counts = self.counts[0], before

    patch.setattr(LaterLabels, "labelled", labelled)


@mutant
def requests_that_share_their_room(patch):
    """Found in this package: requests at the same time decided from the same counts, and then counted their answers one
    after the other. Right: each decides from the counts that the one before has left."""
    import contextlib

    from skfairdp import IDP3

    @contextlib.contextmanager
    def no_lock(self, *, commits=False):
        yield

    patch.setattr(IDP3, "_moment", no_lock)


@mutant
def noise_of_one_cell(patch):
    """Found: a count over several cells has the noise of one, so that certified gaps are too small. Right: of all."""
    laws = _rate_bounds._laws
    patch.setattr(
        _rate_bounds,
        "_laws",
        lambda constraints, counts, noise: laws(constraints, counts, noise / counts.shape[1] ** 0.5),
    )


@mutant
def bounds_of_another_rate(patch):
    """Found: a table of bounds is read by columns where it lies by rows. Right: each rate has its own."""

    def turned(*given, **more):
        return tuple(bounds.ravel().reshape(bounds.T.shape).T for bounds in rate_bounds(*given, **more))

    patch.setattr(_fairness.fairness, "rate_bounds", turned)


@mutant
def thresholds_of_many_groups_judged_as_if_other_rows_had_chosen_them(patch):
    """Found: all groups are at their bound on these rows, and one difference of two is expected of others."""
    patch.setattr(Judgement, "held_on_its_rows", property(lambda self: self))
