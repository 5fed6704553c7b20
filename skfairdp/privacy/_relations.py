"""Whom a guarantee protects, and which data sets count as neighbours."""

from enum import StrEnum

__all__ = ["NeighboringRelation", "Protects", "relation_for"]


class Protects(StrEnum):
    """The unit that a guarantee protects. Its text is its value, so it compares equal to a plain string.

    Examples
    --------
    >>> from skfairdp.privacy import Protects
    >>> Protects.RECORD == "record"
    True
    """

    RECORD = "record"
    SENSITIVE_ATTRIBUTE = "sensitive attribute"


class NeighboringRelation(StrEnum):
    """What may differ between two neighbouring data sets. The ε of a mechanism speaks of such a pair.

    ``REPLACE_ONE``
        One record has other values. The number of records is public.
    ``ADD_OR_REMOVE_ONE``
        One data set has a record more. Nothing may follow the number of records.
    ``ZERO_OUT``
        One record is replaced by a null record, which contributes nothing. The number of records is public; the
        figures are those of adding or removing a record. (dp-accounting calls it ``REPLACE_SPECIAL``.)
    ``REPLACE_ATTRIBUTE``
        The sensitive attribute of one record has another value; everything else is public.

    Examples
    --------
    >>> from skfairdp.privacy import NeighboringRelation
    >>> print(NeighboringRelation.ZERO_OUT)
    replace one record by a null record
    >>> NeighboringRelation.REPLACE_ATTRIBUTE.protects
    <Protects.SENSITIVE_ATTRIBUTE: 'sensitive attribute'>
    """

    REPLACE_ONE = "replace one record"
    ADD_OR_REMOVE_ONE = "add or remove one record"
    ZERO_OUT = "replace one record by a null record"
    REPLACE_ATTRIBUTE = "replace one sensitive attribute"

    @property
    def protects(self) -> Protects:
        """The unit that this relation protects."""
        if self is NeighboringRelation.REPLACE_ATTRIBUTE:
            return Protects.SENSITIVE_ATTRIBUTE
        return Protects.RECORD

    @property
    def number_is_public(self) -> bool:
        """Whether neighbours have equally many records, so that their number may be used and printed."""
        return self is not NeighboringRelation.ADD_OR_REMOVE_ONE


def relation_for(n_rows: int | None) -> NeighboringRelation:
    """The neighbours of a run whose rate, steps and divisor follow from the declared number of rows.

    Where none is declared they follow from the true one, which is public then: neighbours have equally many rows, and
    one record is replaced by a null record.
    """
    return NeighboringRelation.ZERO_OUT if n_rows is None else NeighboringRelation.ADD_OR_REMOVE_ONE
