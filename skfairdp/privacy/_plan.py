"""What a fit is going to release, decided from public values before any private row is looked at."""

from dataclasses import dataclass
from typing import Protocol

from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._relations import NeighboringRelation

__all__ = ["Plan", "ReleasePlan"]


class Plan(Protocol):
    """What every plan says; those of the estimators hold their mechanisms as well."""

    @property
    def event(self) -> DpEvent:
        """The cap of everything that will be released: the same for every data set of this shape."""

    @property
    def relation(self) -> NeighboringRelation:
        """Of the guarantee."""

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""


@dataclass(frozen=True)
class ReleasePlan:
    """A plan that is nothing but its three parts.

    Parameters
    ----------
    event : DpEvent
    relation : NeighboringRelation
    releases : tuple of str
    """

    event: DpEvent
    relation: NeighboringRelation
    releases: tuple[str, ...]
