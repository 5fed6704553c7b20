"""What a guarantee takes as public knowledge, noted by the code that reads it."""

from collections.abc import Iterator
from typing import Any, Literal

from skfairdp.privacy._relations import NeighboringRelation, Protects

__all__ = ["Obtained", "PublicFact", "PublicReads", "public_facts"]

#: given: written by the user. read: taken from the private rows, where the relation makes it public or outside of the
#: guarantee (the consequence says which). held out: rows that the estimator set apart, which nothing protects.
#: computed: follows from other facts.
Obtained = Literal["given", "read", "held out", "computed"]

_NUMBER_OF_ROWS = "number of private rows"


class PublicFact(str):
    """One public value that the outcome of a fit may follow. Its text is a sentence, its parts are attributes.

    Parameters
    ----------
    name : str
    how : {"given", "read", "held out", "computed"}
    value : None, bool, int, float, str or list of these, default=None
        None where it is long, such as the public rows themselves.
    consequence : str, default=""
        What that means for the guarantee.

    Examples
    --------
    >>> from skfairdp.privacy import PublicFact
    >>> PublicFact("number of private rows", "read", 400)
    'number of private rows: 400 (read)'
    >>> PublicFact("classes", "read", ["no", "yes"], "outside the guarantee").how
    'read'
    """

    name: str
    how: Obtained
    value: Any
    consequence: str

    def __new__(cls, name: str, how: Obtained, value: Any = None, consequence: str = "") -> "PublicFact":
        value = _plain(value)
        shown = "" if value is None else f": {', '.join(map(str, value)) if isinstance(value, list) else value}"
        fact = super().__new__(cls, f"{name}{shown} ({how}{'; ' + consequence if consequence else ''})")
        fact.name, fact.how, fact.value, fact.consequence = name, how, value, consequence
        return fact

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, self.how, self.value, self.consequence


class PublicReads:
    """Notes of one fit, in the order of reading. A later note on the same thing takes the place of the earlier one."""

    def __init__(self) -> None:
        self._facts: dict[str, PublicFact] = {}

    def note(self, name: str, how: Obtained, value: Any = None, consequence: str = "") -> None:
        """Put a fact on the list."""
        self._facts[name] = PublicFact(name, how, value, consequence)

    def note_number_of_rows(self, number: int) -> None:
        """Where the relation makes it public; :func:`public_facts` takes it off the list elsewhere."""
        self.note(_NUMBER_OF_ROWS, "read", number, "public, as neighbours have equally many")

    def drop(self, name: str) -> None:
        """Take a fact off: what was read is not used, or is not public under the relation."""
        self._facts.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._facts

    def __iter__(self) -> Iterator[PublicFact]:
        return iter(self._facts.values())


def public_facts(
    reads: PublicReads, relation: NeighboringRelation, *, declared_rows: int | None = None
) -> tuple[PublicFact, ...]:
    """All that a fit has noted, completed by what its relation makes public.

    Parameters
    ----------
    reads : PublicReads
    relation : NeighboringRelation
    declared_rows : int or None, default=None
        The public number of rows, where one was declared.

    Returns
    -------
    tuple of PublicFact
    """
    if not relation.number_is_public:
        reads.drop(_NUMBER_OF_ROWS)
    if declared_rows is not None:
        reads.note("declared number of rows", "given", declared_rows, "nothing follows the true number")
    if relation.protects == Protects.SENSITIVE_ATTRIBUTE and "columns of X" in reads:
        reads.note("features and labels", "read", None, "used without noise: the guarantee is for the group only")
    reads.note("constructor parameters", "given", None, "public, and the budget among them")
    return tuple(reads)


def _plain(value: Any) -> Any:
    """Values that JSON holds; anything else by its text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
