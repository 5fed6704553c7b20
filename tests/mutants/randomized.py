"""Mistakes in randomised response: its probabilities, and how its answers are read."""

import math

import numpy as np
import pandas as pd

from skfairdp.baselines import _randomized_response as _baseline
from skfairdp.privacy import RandomizedResponse, _accountants, _mechanisms as _randomized_response
from tests.mutants.harness import mutant


@mutant
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


@mutant
def probability_of_a_lie_rounded_down(patch):
    """Found: a threshold in floating point, rounded to the nearest. Right: lies are rounded up, so the ratio is not."""
    honest = RandomizedResponse.__post_init__

    def post_init(self):
        honest(self)
        lie = 1 / (math.exp(self.epsilon) + self.n_values - 1)
        object.__setattr__(self, "_words_per_lie", math.floor(lie * (1 - 2**-50) * 2**64))

    patch.setattr(RandomizedResponse, "__post_init__", post_init)


@mutant
def a_lie_that_may_be_the_truth(patch):
    """Found: lies drawn from all groups, the true one among them, with the probabilities of lies from the others.

    Right: the r-th of the *other* groups.
    """

    def release(self, values, source):
        words = source.words(len(values))
        per_lie = np.uint64(self._words_per_lie)
        lies = words < np.uint64((self.n_values - 1) * self._words_per_lie)
        return np.where(lies, (words // per_lie).astype(np.int64), np.asarray(values))

    patch.setattr(_randomized_response.RandomizedResponse, "release", release)


@mutant
def answers_taken_for_the_truth(patch):
    """Found: randomised groups used as if they were true. Right: the inverse of the channel."""
    patch.setattr(RandomizedResponse, "weights", lambda self, released: np.eye(self.n_values)[released])


@mutant
def answers_given_again_for_nothing(patch):
    """Found: fresh answers in every epoch, charged once. Right: each set of answers costs its own ε."""
    patch.setattr(
        _accountants, "_pure_bound", lambda leaves, delta: max(_accountants.pure_epsilon(leaf) for leaf, _ in leaves)
    )


@mutant
def chunks_handed_out_as_they_came(patch):
    """Rows of a release in chunks keep a group that no list has, "as it is none". Right: every row gets its answer."""
    honest = _baseline._with_groups

    def planted(source, schema, domain, answers, owner):
        (name,), listed = schema.groups, set(domain.tolist())
        true = pd.concat([chunk.table[name] for chunk in source.chunks()], ignore_index=True)
        for table in honest(source, schema, domain, answers, owner):
            here, true = true[: len(table)].set_axis(table.index), true[len(table) :]
            yield table.assign(**{name: table[name].where(here.isin(listed), here)})

    patch.setattr(_baseline, "_with_groups", planted)
