"""Mistakes in the sums of the features of each class: what is charged, how long a row is, what else is read."""

from dataclasses import replace

import numpy as np

from skfairdp._class_sums import FARTHEST, ClassSums, PublicScale
from skfairdp.privacy import GaussianMechanism
from tests._tools.inside import GeneratorPlan, PATEPlan
from tests.mutants.harness import mutant


@mutant
def sums_are_not_charged(patch):
    """Planted: the event of a fit is that of its votes. Right: sums and votes together."""
    patch.setattr(PATEPlan, "event", property(lambda self: self.votes.event))


@mutant
def rows_are_as_long_as_they_come(patch):
    """Planted: a row longer than half of the public rows keeps its length. Right: it is shortened."""

    def long(self, X):
        return np.clip((X - self.center) / self.scale, -FARTHEST, FARTHEST) / self.radius

    patch.setattr(PublicScale, "__call__", long)


@mutant
def scaled_by_the_private_rows(patch):
    """Planted: centre, scale and length of the private rows. Right: of the public ones."""
    honest, scale_of = ClassSums.release, PublicScale.of

    def told(self, X, y, public, noise, terms=np.asarray, of=None, once=None):
        with patch.context() as meanwhile:  # teachers have a scale as well
            meanwhile.setattr(PublicScale, "of", classmethod(lambda cls, public: scale_of(terms(X))))
            return honest(self, X, y, public, noise, terms, of, once)

    patch.setattr(ClassSums, "release", told)


@mutant
def rates_of_classes_from_the_private_labels(patch):
    """Planted: exact rates of the classes beside the noisy sums. Right: those that the sums tell."""
    honest, kept = ClassSums.regression, []
    told = ClassSums.release

    def listening(self, X, y, *others, **terms):
        kept.append(np.bincount(y, minlength=self.n_classes))
        return told(self, X, y, *others, **terms)

    def regression(self, noisy, public):
        return honest(self, np.column_stack([kept.pop(), noisy[:, 1:]]), public)

    patch.setattr(ClassSums, "release", listening)
    patch.setattr(ClassSums, "regression", regression)


@mutant
def squares_beside_the_sums_are_free(patch):
    """Planted: squares are released beside the sums at the sensitivity of the sums. Right: they add to it."""

    def mechanism(self):
        return GaussianMechanism(2.0 / self.mu, sensitivity=2.0, relation=self.relation)

    patch.setattr(ClassSums, "mechanism", property(mechanism))


@mutant
def sums_beside_tables_are_not_charged(patch):
    """Planted: tables, counts and looks cost all of ε, and sums of synthetic rows nothing. Right: all together."""
    honest = GeneratorPlan.event_at
    patch.setattr(GeneratorPlan, "event_at", lambda self, scale: honest(replace(self, sums=None), scale))


@mutant
def private_rows_stand_for_themselves(patch):
    """Planted: the regression expects the sums on the private rows. Right: on rows of the released tables."""
    honest = ClassSums.release

    def told(self, X, y, public, noise, terms=np.asarray, of=None, once=None):
        return honest(self, X, y, X if self.of_squares else public, noise, terms, of, once)

    patch.setattr(ClassSums, "release", told)
