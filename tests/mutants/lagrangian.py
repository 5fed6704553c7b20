"""Mistakes in Lagrangian-dual training with private groups: what their sums, signs and sizes are let to say."""

from dataclasses import replace

import numpy as np
import pytest

from skfairdp import _networks
from skfairdp.fairness import FairnessConstraints, RateBound, _constraints
from skfairdp.lagrangian import GroupModel, PFLDClassifier, _stack
from skfairdp.pate import SoftLabelStudent
from tests._tools.inside import ConstraintColumn, ConstraintGradient, OneNetwork, PFLDPlan
from tests._tools.sources import ChosenNoise
from tests.mutants.harness import mutant


@mutant
def errors_of_accuracy_parity_have_no_price(patch):
    """Found: equal accuracy is bought with errors for everybody. Right: with no more than a constant makes."""
    patch.setattr(OneNetwork, "_priced", lambda self, h: h)


@mutant
def errors_in_a_stack_have_no_price(patch):
    """Found: teachers and students of SF-PATE buy equal accuracy with errors. Right: priced, as in one network."""
    patch.setattr(_stack, "ERROR_STEP", 0.0)


@mutant
def a_rate_of_one_true_class_is_held_in_all(patch):
    """Found: equal opportunity pays for equal false positives too. Right: multipliers of its own true class alone."""
    patch.setattr(FairnessConstraints, "where_compared", lambda self, violations: violations)


@mutant
def a_bound_is_held_as_equality(patch):
    """Found: who asks for four fifths gets equal rates, and pays for them. Right: what is allowed pulls nothing."""
    patch.setattr(FairnessConstraints, "project_to_bounds", lambda self, violations, means: 0.0 * violations)


@mutant
def a_bound_on_a_rate_is_pulled_apart_only(patch):
    """Found: the pull of a bound is centred, and groups are moved apart, not below it. Right: only parities are."""
    patch.setattr(ConstraintColumn, "is_bound", False)


@mutant
def a_bound_of_one_group_is_held_in_all(patch):
    """Found: who bounds a rate of women bounds that of men. Right: groups that no bound names have no multiplier."""
    nearest = _constraints.project_to_bounds

    def of_all(constraint, differences, means):
        constraint = replace(constraint, groups=None) if isinstance(constraint, RateBound) else constraint
        return nearest(constraint, differences, means)

    patch.setattr(_constraints, "project_to_bounds", of_all)


@mutant
def a_judge_of_drawn_answers(patch):
    """Found: probabilities are counted, which agree between groups while answers stay apart. Right: hard answers."""
    fit, logits, rng = PFLDClassifier.fit, _networks.predict_logits, np.random.default_rng(0)

    def drawn(module, X):
        scores = logits(module, X)
        return scores + rng.gumbel(size=scores.shape)

    def judged(self, *args, **given):
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(_networks, "predict_logits", drawn)
            return fit(self, *args, **given)

    patch.setattr(PFLDClassifier, "fit", judged)


@mutant
def a_judge_of_the_network_that_gave_way(patch):
    """Found: a network that is not returned is judged. Right: the answers of what is, which may be a constant."""
    release, trained = PFLDPlan.release_answers, []
    logits = _networks.predict_logits

    def seen(*given):
        trained.append(logits(*given))
        return trained[-1]

    def judged(self, groups, y, answers, source):
        return release(self, groups, y, trained[0].argmax(axis=1), source)

    patch.setattr(_networks, "predict_logits", seen)
    patch.setattr(PFLDPlan, "release_answers", judged)


@mutant
def a_judge_of_all_levels(patch):
    """Found: the counts of all levels of a student are averaged. Right: those of the one that is returned."""
    counted = property(lambda self: self._counted and tuple(values.mean(axis=0) for values in self._counted))
    patch.setattr(SoftLabelStudent, "counted", counted)


@mutant
def loss_and_constraint_share_a_batch(patch):
    """Found: the constraint is measured on the batch that the loss, exact and without noise, gives away.

    Right: a secret Poisson sample, drawn apart from the public batch; only then does sampling amplify.
    """
    sampled = ConstraintGradient.sampled

    class TheBatchItself(ChosenNoise):
        def __init__(self, source, public):
            super().__init__()
            self._source, self._public = source, public

        def normal(self, size=1):
            return self._source.normal(size)

        def bernoulli(self, probability, size):
            return np.isin(np.arange(size), self._public.numpy())

    def shared(self, module, weights, public, **options):
        batch = TheBatchItself(self.source, public)
        return sampled(replace(self, source=batch), module, weights, public, **options)

    patch.setattr(ConstraintGradient, "sampled", shared)


@mutant
def sign_of_the_exact_violation(patch):
    """Found: the sign of the violation, an exact function of private groups, decides the direction of a step.

    Right: signs come from the noisy release, like everything else.
    """
    release = PFLDPlan.release_violations

    def signed(self, values, cells, n_cells, groups, source):
        exact = release(
            replace(self, sigma_count=0.0, sigma_primal=0.0, sigma_dual=0.0), values, cells, n_cells, groups, source
        )
        return np.sign(exact) * np.abs(release(self, values, cells, n_cells, groups, source))

    patch.setattr(PFLDPlan, "release_violations", signed)


@mutant
def noise_scaled_to_private_group_sizes(patch):
    """Found: noise in proportion to 1 / (size of the smallest group), which is itself private.

    Right: sums with a public sensitivity, divided afterwards by sizes released with noise.
    """
    release = PFLDPlan._release

    def scaled(self, values, groups, total, sigma, longest, source):
        smallest = np.bincount(groups, minlength=self.n_groups).min()
        return release(self, values, groups, total, sigma * len(groups) / (2 * max(smallest - 1, 1)), longest, source)

    patch.setattr(PFLDPlan, "_release", scaled)


@mutant
def only_one_group_is_thought_to_move(patch):
    """Found: a bound that takes the weight of one group, where a change takes from one and gives to another."""
    radius = ConstraintGradient._radius
    patch.setattr(ConstraintGradient, "_radius", lambda self, weights, bounds: radius(self, weights, bounds) / 2)


@mutant
def one_of_several_groups_is_thought_to_move(patch):
    """With more than two groups all sums are released, and a change moves two of them. Right: a factor √2."""
    patch.setattr(PFLDPlan, "_moved", property(lambda self: 1.0))


@mutant
def rows_of_rare_groups_first(patch):
    """Found: a model of the groups of a large table learns from rows that their groups choose, "so that all count".

    A changed group puts another row into its moments. Right: positions that are drawn in public.
    """
    right = GroupModel._on_rows

    def on_rows(self, constraints, plan, of):
        def planted(groups, noise):
            order = np.argsort(groups, kind="stable")[: len(of["chosen"])]
            return right(self, constraints, plan, {**of, "chosen": np.sort(order)})(groups, noise)

        return planted

    patch.setattr(GroupModel, "_on_rows", on_rows)
