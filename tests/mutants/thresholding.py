"""Tables of private thresholds that are not paid for, or whose noise is too small."""

import math

from skfairdp.postprocessing import _private_thresholds
from skfairdp.postprocessing._bins import BinsPlan
from skfairdp.privacy import GaussianMechanism, gdp_mu
from tests.mutants.harness import mutant


@mutant
def bins_for_nothing(patch):
    """Where bins end follows from private scores, and costs as much as any other release of them."""
    patch.setattr(BinsPlan, "event", property(lambda self: self.table.event))


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
    patch.setattr(_private_thresholds.PrivateThresholds, "_with_model", lambda self, spent: spent)


@mutant
def a_row_without_a_score_ends_the_fit(patch):
    """An error of the classifier on one private row tells that the row is there."""

    def scores_of(model, table):
        return model.predict_proba(table)[:, 1]

    patch.setattr(_private_thresholds, "scores_of", scores_of)
