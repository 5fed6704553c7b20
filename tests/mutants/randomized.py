"""Mistakes in randomised response: its probabilities, and how its answers are read."""

import math

import numpy as np

from skfairdp.privacy import RandomizedResponse, _accountants, _randomized_response
from tests.baselines.test_randomized_response import (
    test_frequencies_are_those_of_the_epsilon_and_of_no_other as frequencies_are_right,
)
from tests.baselines.test_randomized_response import (
    test_it_is_pure_and_only_pure_releases_have_a_figure_at_delta_zero as costs_add_up,
)
from tests.baselines.test_randomized_response import (
    test_the_ratio_of_probabilities_is_exactly_at_most_e_to_the_epsilon as ratio_is_kept,
)
from tests.baselines.test_randomized_response import (
    test_weights_have_the_true_membership_as_their_exact_expectation as weights_are_unbiased,
)
from tests.baselines.test_randomized_response import (
    test_words_at_the_thresholds_are_answered_as_the_ratio_says as thresholds_are_kept,
)

from .harness import killed_by, mutant


@mutant(
    None,
    killed_by(ratio_is_kept, epsilon=1.0, k=3),
    killed_by(frequencies_are_right, epsilon=2.0, k=5),
)
def truth_as_often_for_many_groups_as_for_two(patch):
    """Found: the truth with probability e^ε / (1 + e^ε), a lie drawn from the others, whatever their number.

    Right: e^ε / (e^ε + k - 1). With k = 3 the ratio is twice what was promised.
    """
    honest = RandomizedResponse.__post_init__

    def post_init(self):
        honest(self)
        lie = 1 / ((1 + math.exp(self.epsilon)) * (self.n_values - 1))
        object.__setattr__(self, "_words_per_lie", math.ceil(lie * 2**64))

    patch.setattr(RandomizedResponse, "__post_init__", post_init)


@mutant(None, killed_by(ratio_is_kept, epsilon=1.0, k=7), killed_by(ratio_is_kept, epsilon=0.5, k=2))
def probability_of_a_lie_rounded_down(patch):
    """Found: a threshold in floating point, rounded to the nearest. Right: lies are rounded up, so the ratio is not."""
    honest = RandomizedResponse.__post_init__

    def post_init(self):
        honest(self)
        lie = 1 / (math.exp(self.epsilon) + self.n_values - 1)
        object.__setattr__(self, "_words_per_lie", math.floor(lie * (1 - 2**-50) * 2**64))

    patch.setattr(RandomizedResponse, "__post_init__", post_init)


@mutant(None, killed_by(thresholds_are_kept, epsilon=1.0, k=3), killed_by(frequencies_are_right, epsilon=1.0, k=3))
def a_lie_that_may_be_the_truth(patch):
    """Found: lies drawn from all groups, the true one among them, with the probabilities of lies from the others.

    Right: the r-th of the *other* groups.
    """

    def release(self, codes, source):
        words = source.words(len(codes))
        per_lie = np.uint64(self._words_per_lie)
        lies = words < np.uint64((self.n_values - 1) * self._words_per_lie)
        return np.where(lies, (words // per_lie).astype(np.int64), np.asarray(codes))

    patch.setattr(_randomized_response.RandomizedResponse, "release", release)


@mutant(None, killed_by(weights_are_unbiased, epsilon=1.0, k=2), killed_by(weights_are_unbiased, epsilon=3.0, k=7))
def answers_taken_for_the_truth(patch):
    """Found: randomised groups used as if they were true. Right: the inverse of the channel."""
    patch.setattr(RandomizedResponse, "weights", lambda self, released: np.eye(self.n_values)[released])


@mutant(5, killed_by(costs_add_up))
def answers_given_again_for_nothing(patch):
    """Found: fresh answers in every epoch, charged once. Right: each set of answers costs its own ε."""
    patch.setattr(
        _accountants, "_pure_bound", lambda leaves, delta: max(_accountants.pure_epsilon(leaf) for leaf, _ in leaves)
    )
