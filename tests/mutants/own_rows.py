"""Mistakes in rows that a private table pays for: what is charged, what is sampled, what is weighed by what."""

import math
from dataclasses import replace

import numpy as np

from skfairdp import FairnessCalibrator, FairPATEClassifier, PublicData, SyntheticDataClassifier
from skfairdp._tables import SyntheticRowsPlan, _synthetic_rows, on_simplex
from skfairdp.pate import ConstrainedStudent, _query_plan as _asking
from skfairdp.privacy import GaussianMechanism, compose
from tests._tools.inside import MatrixColumn, NoisyParityEstimate, PATEPlan
from tests.mutants.harness import mutant


@mutant
def tables_are_not_charged(patch):
    """Planted: the event of a fit is that of its votes. Right: tables and votes together."""
    patch.setattr(PATEPlan, "event", property(lambda self: self.votes.event))


@mutant
def the_look_at_parity_is_not_charged(patch):
    """Planted: a fit states tables and votes. Right: the look at how fair its student is costs as well."""
    patch.setattr(PATEPlan, "event", property(lambda self: compose(self.rows.event, self.votes.event)))


@mutant
def the_look_at_parity_counts_one_level(patch):
    """Planted: a row moves two counts. Right: two at every level."""
    honest = NoisyParityEstimate.mechanism.fget

    def mechanism(self):
        one = honest(self)
        return GaussianMechanism(math.sqrt(2.0) / self.mu, sensitivity=math.sqrt(2.0), relation=one.relation)

    patch.setattr(NoisyParityEstimate, "mechanism", property(mechanism))


@mutant
def rows_of_the_private_table_among_the_queries(patch):
    """Planted: a few real rows, "so that the sample looks right". Right: rows that follow from releases alone."""
    honest = SyntheticRowsPlan.release

    def release(self, X, y, groups, noise, rng):
        sampled = honest(self, X, y, groups, noise, rng)
        return replace(sampled, X=np.vstack([X[:3], sampled.X[3:]]))

    patch.setattr(SyntheticRowsPlan, "release", release)


@mutant
def groups_dealt_by_their_true_shares(patch):
    """Planted: exact counts of groups and labels decide how many rows each gets. Right: the noisy ones."""

    def observed(self, cells, noise):
        shape = self.layout.n_groups, self.layout.n_classes
        counts = np.bincount(cells, minlength=self.layout.n_cells).astype(float)
        if self.counts is not None:
            self.counts.release(counts, noise)
        return on_simplex(counts).reshape(shape), np.zeros(shape[0], dtype=bool)

    patch.setattr(SyntheticRowsPlan, "_observed", observed)


@mutant
def ranges_read_from_the_private_rows(patch):
    """Planted: bins between the smallest and the largest private value. Right: by noisy counts on a public grid."""
    kept = []
    honest_counts, honest_settled = _synthetic_rows.grid_counts, MatrixColumn.settled

    def counts(columns, X):
        kept.extend(column.entries(X) for column in columns)
        return honest_counts(columns, X)

    def settled(self, noisy, evidence, n_bins, n_rows):
        values = kept.pop(0)
        return honest_settled(self, noisy, evidence, n_bins, n_rows)._with_starts(
            np.linspace(values.min(), values.max(), n_bins + 1)[:-1], float(values.max())
        )

    patch.setattr(_synthetic_rows, "grid_counts", counts)
    patch.setattr(MatrixColumn, "settled", settled)


@mutant
def tables_weighed_by_how_well_they_fit_the_private_labels(patch):
    """Planted: the weight of the tables is their accuracy on private rows. Right: noise, which is public."""
    honest = _asking._release_questions

    def questions(owner, data, plan, noise, rng):
        return replace(honest(owner, data, plan, noise, rng), trust=float(np.mean(data.y == 0)))

    patch.setattr(_asking, "_release_questions", questions)


@mutant
def private_groups_teach_a_constrained_student(patch):
    """Planted: how likely a group is follows from private rows, "as there are more". Right: from those asked about."""
    seen = []
    honest_questions, honest_fit = _asking._release_questions, ConstrainedStudent._fit_groups

    def questions(owner, data, plan, noise, rng):
        seen.append((data.X, data.groups))
        return honest_questions(owner, data, plan, noise, rng)

    patch.setattr(_asking, "_release_questions", questions)
    patch.setattr(
        ConstrainedStudent, "_fit_groups", lambda self, public, groups, n_groups: honest_fit(self, *seen[-1], n_groups)
    )


@mutant
def labels_are_estimated_without_the_group(patch):
    """Planted: error rates held equal by votes that know no group. Right: by votes on a row and its group."""
    patch.setattr(FairPATEClassifier, "_votes_by_group", property(lambda self: False))


@mutant
def a_calibrator_takes_the_private_rows(patch):
    """Planted: without public rows a calibrator looks at those of the fit. Right: at rows that the fit released."""
    honest = FairnessCalibrator._arguments

    def arguments(self, X, y, sensitive_features, public, subject):
        patch.setattr(FairPATEClassifier, "_released_rows", lambda model: PublicData(X, sensitive_features))
        return honest(self, X, y, sensitive_features, public, subject)

    patch.setattr(FairnessCalibrator, "_arguments", arguments)


@mutant
def a_calibrator_takes_the_private_labels(patch):
    """Planted: equalized odds of sampled rows by the labels of the private ones. Right: by those sampled with them."""
    honest, released = FairnessCalibrator._arguments, SyntheticDataClassifier._released_rows

    def arguments(self, X, y, sensitive_features, public, subject):
        def rows(model):
            found = released(model)
            return PublicData(found.X, found.sensitive_features, np.resize(y, len(found.X)))

        patch.setattr(SyntheticDataClassifier, "_released_rows", rows)
        return honest(self, X, y, sensitive_features, public, subject)

    patch.setattr(FairnessCalibrator, "_arguments", arguments)
