"""The smallest release there is: quick to import, for workers."""

from skfairdp.privacy import GaussianMechanism, NeighboringRelation, Spending

__all__ = ["spend"]


def spend(noise=5.0, **given):
    """Release one noisy mean."""
    mechanism = GaussianMechanism(noise, relation=NeighboringRelation.REPLACE_ONE)
    with Spending(mechanism.event, 1e-5, mechanism.relation, label="a mean", **given) as source:
        mechanism.release([0.0], source)
