"""Mistakes at the boundary of a fit: what errors and warnings say of private rows."""

from types import SimpleNamespace

import numpy as np

from skfairdp._utils import encode_labels
from skfairdp.generative import PFGuardGenerator
from skfairdp.pate import _usefulness
from skfairdp.privacy import GaussianMechanism, NoisyVotes, PublicReads, _statement
from tests.mutants.harness import mutant, replace_everywhere


@mutant
def rows_outside_the_domain_are_counted_aloud(patch):
    """Found: "y has 133 row(s) whose value is not among the known ones", uncharged and as often as one likes.

    Right: a constant text.
    """

    def counting(values, domain, *, owner, name, parameter):
        unseen = sum(not any(value is known or value == known for known in domain) for value in values.tolist())
        if unseen:
            raise ValueError(f"{name} of {owner} has {unseen} row(s) that are not in '{parameter}'.")
        return encode_labels(values, domain, owner=owner, name=name, parameter=parameter)

    replace_everywhere(patch, encode_labels, counting)


@mutant
def the_most_frequent_class_of_private_rows(patch):
    """What stands in for a useless student, and is named in the warning, has to be the class of the released counts."""
    true_counts, honest = [], NoisyVotes.release

    def release(self, values, source):
        true_counts.append(np.asarray(values, dtype=float))
        return honest(self, values, source)

    patch.setattr(NoisyVotes, "release", release)
    patch.setattr(_usefulness, "majority_class", lambda lessons: int(true_counts[-1][0].argmax()))


@mutant
def small_groups_are_told_by_their_true_sizes(patch):
    """Found in our own tests: nothing noticed a warning that looked at exact counts. Right: at the released ones."""
    honest_release, honest_warning = GaussianMechanism.release, PFGuardGenerator._warn_of_small_groups
    true_counts = []

    def release(self, values, source, *args, **kwargs):
        true_counts.append(np.asarray(values, dtype=float))
        return honest_release(self, values, source, *args, **kwargs)

    def warn(self, noisy, sigma):
        sizes = next(counts for counts in reversed(true_counts) if counts.size == noisy.size)
        honest_warning(self, sizes.reshape(noisy.shape), sigma)

    patch.setattr(GaussianMechanism, "release", release)
    patch.setattr(PFGuardGenerator, "_warn_of_small_groups", warn)


@mutant
def the_number_of_rows_is_used_and_not_listed(patch):
    """Found: lists of public values written by hand, eight times. Right: whoever reads a value notes it."""
    _forget_facts(patch, "number of private rows", "sampling probability", "number of steps")


def _forget_facts(patch, *names):
    honest = PublicReads.note

    def note(self, name, *rest, **more):
        if name not in names:
            honest(self, name, *rest, **more)

    patch.setattr(PublicReads, "note", note)


@mutant
def words_that_are_markup(patch):
    """Found: a name on the ledger is a script in the page that auditors open. Right: words stay words."""
    patch.setattr(_statement, "html", SimpleNamespace(escape=str))
