"""Mistakes in Lagrangian-dual training with private groups: what their sums, signs and sizes are let to say."""

from dataclasses import replace

import numpy as np

from skfairdp.lagrangian import ConstraintGradient, PFLDPlan
from tests._tools.sources import ChosenNoise
from tests.lagrangian.test_pfld import (
    test_a_poisson_sample_of_everything_estimates_the_full_gradient as sample_is_its_own,
)
from tests.lagrangian.test_pfld import (
    test_more_than_two_groups_cost_a_root_of_two as two_sums_move,
)
from tests.lagrangian.test_pfld import (
    test_no_change_of_a_group_moves_the_gradient_further_than_declared as gradient_bound_holds,
)
from tests.lagrangian.test_pfld import (
    test_no_change_of_a_group_moves_the_moments_further_than_declared as moment_bound_holds,
)
from tests.lagrangian.test_pfld import (
    test_no_change_of_a_group_moves_the_violations_further_than_declared as violation_bound_holds,
)
from tests.lagrangian.test_pfld import (
    test_the_noise_has_the_accounted_scale as scale_is_accounted,
)

from .harness import killed_by, mutant

PARITY = ["demographic_parity"]


@mutant(28, killed_by(sample_is_its_own))
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


@mutant(29, killed_by(scale_is_accounted, scale=1.0))
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


@mutant(30, killed_by(violation_bound_holds, m=2, notions=PARITY, n_classes=2))
def noise_scaled_to_private_group_sizes(patch):
    """Found: noise in proportion to 1 / (size of the smallest group), which is itself private.

    Right: sums with a public sensitivity, divided afterwards by sizes released with noise.
    """
    release = PFLDPlan._release

    def scaled(self, values, groups, total, noise, moved, source):
        smallest = np.bincount(groups, minlength=self.n_groups).min()
        return release(self, values, groups, total, noise * len(groups) / (2 * max(smallest - 1, 1)), moved, source)

    patch.setattr(PFLDPlan, "_release", scaled)


@mutant(None, killed_by(gradient_bound_holds, m=2, notions=PARITY))
def only_one_group_is_thought_to_move(patch):
    """Found: a bound that takes the weight of one group, where a change takes from one and gives to another."""
    radius = ConstraintGradient._radius
    patch.setattr(ConstraintGradient, "_radius", lambda self, weights, bounds: radius(self, weights, bounds) / 2)


@mutant(None, killed_by(two_sums_move), killed_by(moment_bound_holds, m=3))
def one_of_several_groups_is_thought_to_move(patch):
    """With more than two groups all sums are released, and a change moves two of them. Right: a factor √2."""
    patch.setattr(PFLDPlan, "_moved", property(lambda self: 1.0))
