"""What a fit guarantees: whom it protects, among which neighbours, at which ε."""

import html
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from skfairdp.privacy._accountants import accountant_of, epsilon_of
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import check_event, event_from_dict, event_to_dict
from skfairdp.privacy._ledger_block import ledgers_of

if TYPE_CHECKING:
    from skfairdp.privacy._statement import PrivacyStatement


class Protects(StrEnum):
    """The unit that a guarantee protects. Its text is its value, so it compares equal to a plain string.

    Examples
    --------
    >>> from skfairdp.privacy import Protects
    >>> print(Protects.RECORD)
    record
    """

    RECORD = "record"
    SENSITIVE_ATTRIBUTE = "sensitive attribute"
    SUBJECT = "subject"

    @property
    def kept_by(self) -> "tuple[Protects, ...]":
        """The promises that are ones for this unit too: of a subject, each row is protected (``counted_for``)."""
        return (self, Protects.SUBJECT) if self is Protects.RECORD else (self,)


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
    ``REPLACE_SUBJECT``
        All rows of one subject, such as a person, are others: any values, more rows, fewer or none. Which subjects
        there are, by their ids, and how many, is public. Nothing may follow the number of rows.
    ``ZERO_OUT_SUBJECT``
        All rows of one subject are gone, so that it contributes nothing. What is public is as above. Between two kinds
        of rows of a subject there are two such steps, and so there are to the same rows without one of them.
    ``REPLACE_SUBJECT_ATTRIBUTE``
        The sensitive attribute of one subject, which all of its rows share, has another value; everything else is
        public, and so is whose each row is.

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
    REPLACE_SUBJECT = "replace all rows of one subject"
    ZERO_OUT_SUBJECT = "replace all rows of one subject by none"
    REPLACE_SUBJECT_ATTRIBUTE = "replace the sensitive attribute of one subject"

    @property
    def protects(self) -> Protects:
        """The unit that this relation protects."""
        of = NeighboringRelation
        if self in (of.REPLACE_ATTRIBUTE, of.REPLACE_SUBJECT_ATTRIBUTE):
            return Protects.SENSITIVE_ATTRIBUTE
        return Protects.SUBJECT if self in (of.REPLACE_SUBJECT, of.ZERO_OUT_SUBJECT) else Protects.RECORD

    @property
    def of_subjects(self) -> bool:
        """Whether it speaks of all rows of a subject, so that a column says whose they are."""
        return "one subject" in self.value

    @property
    def number_is_public(self) -> bool:
        """Whether neighbours have equally many records, so that their number may be used and printed."""
        return self is not NeighboringRelation.ADD_OR_REMOVE_ONE and self.protects is not Protects.SUBJECT

    @property
    def by_null(self) -> bool:
        """Whether one neighbour has nothing in the place of the other's unit: a count moves by 1, not by √2."""
        return self.value.endswith(("by a null record", "by none")) or self is NeighboringRelation.ADD_OR_REMOVE_ONE

    def implies(self, other: "NeighboringRelation") -> bool:
        """Whether a guarantee under this relation is one under the other as well, with the same figures.

        What holds where a record is replaced by *any* other one holds where it is replaced by one that is the same for
        everybody. A mechanism that knows no null record may read it as that one, so ``REPLACE_ONE`` implies
        ``ZERO_OUT``. The reverse would cost twice. A record that is replaced is a row of a subject that is, so
        ``REPLACE_SUBJECT`` implies both, and ``ZERO_OUT_SUBJECT``. That one implies none of them: one row of several
        that is another, or none, is two steps away. Of attributes, that of a subject implies that of a record.

        Parameters
        ----------
        other : NeighboringRelation

        Returns
        -------
        bool
        """
        of = NeighboringRelation
        weaker = {of.REPLACE_ONE: {of.ZERO_OUT}, of.REPLACE_SUBJECT_ATTRIBUTE: {of.REPLACE_ATTRIBUTE}}
        weaker[of.REPLACE_SUBJECT] = {of.REPLACE_ONE, of.ZERO_OUT, of.ZERO_OUT_SUBJECT}
        return self is other or other in weaker.get(self, set())


def common_relation(relations: Iterable[NeighboringRelation]) -> NeighboringRelation | None:
    """The relation under which guarantees of all of these add up; None where there is none."""
    found = set(relations)
    return next((weakest for weakest in found if all(one.implies(weakest) for one in found)), None)


def check_guarantee(stated: Any) -> tuple[Protects, NeighboringRelation]:
    """Refuse an event, a unit and a relation that do not fit; the last two become members of their enums."""
    for name, kind in (("protects", Protects), ("neighboring_relation", NeighboringRelation)):
        value = getattr(stated, name)
        try:
            object.__setattr__(stated, name, kind(value))
        except ValueError:
            raise ValueError(f"{name} must be one of {list(map(str, kind))}. Got {value!r} instead.") from None
    protects, relation = stated.protects, stated.neighboring_relation
    if relation.protects is not protects:
        raise ValueError(
            f"neighboring_relation='{relation}' protects one {relation.protects}, not one {protects}. Pass "
            f"protects='{relation.protects}', or another relation."
        )
    check_event(stated.event, relation)
    return protects, relation


def relation_for(n_rows: int | None, *, by_subject: bool = False) -> NeighboringRelation:
    """The neighbours of a run whose rate, steps and divisor follow from the declared number of rows; where none is
    declared, from the true one, which is public then; or from the number of subjects."""
    if by_subject:
        return NeighboringRelation.ZERO_OUT_SUBJECT
    return NeighboringRelation.ZERO_OUT if n_rows is None else NeighboringRelation.ADD_OR_REMOVE_ONE


def rounded_up(value: float, digits: int = 4) -> str:
    """An upper bound with so many significant digits, never below it."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 4) -> str:
    """A lower bound with so many significant digits, never above it."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    """By the digits that a float is printed with: 0.1 is written as 0.1 either way."""
    if not math.isfinite(value):
        return f"{value:g}"
    found = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(found):.{max(digits, 6)}g}"


PROTECTS = tuple(Protects)
#: Where fits for ids without a name add up: nobody can see from a figure whose they were.
UNNAMED = (
    "Two fits here protect subjects whose ids had no name. They add up only if both mean the same subjects: fits for "
    "all rows of one patient and for all rows of one household do not. Pass 'subject' as a column's name or a named "
    "pandas Series, and fits for other subjects are refused."
)


@dataclass(frozen=True)
class PerformedRelease:
    """Releases of one kind that a fit made. A selective fit may make fewer than it pays for."""

    mechanism: str
    sensitivity: float | None
    sigma: float | None
    times: int


#: By how much a figure may differ that another machine has computed.
_OTHER_MACHINES = 1e-6


@dataclass(frozen=True)
class PrivacySpent:
    """The certified privacy cost of a fit: a proven upper bound that does not depend on the data.

    Parameters
    ----------
    epsilon : float
        Proven upper bound at ``delta``; inf when the noise was seeded or there is no privacy.
    delta : float
        The δ at which ε is stated, in [0, 1).
    protects : Protects
        What a neighbour may change: equal to ``"record"``, ``"sensitive attribute"`` or ``"subject"``.
    neighboring_relation : NeighboringRelation
        Its text is the sentence, such as ``"replace one record"``.
    event : DpEvent
        The tree of releases; ``epsilon_of(event, delta)`` gives ``mechanism_epsilon`` again.
    mechanism_epsilon : float
        What the mechanism costs when its noise is secret. Differs from ``epsilon`` only with a ``noise_seed``.
    public : tuple of str
        What the guarantee takes as public knowledge (sizes, domains, public rows).
    performed : tuple of PerformedRelease
        What the fit released, in order of first use. It follows from released values alone.
    label : str
        Who spent it, where one fit did.
    release : str
        Tells this spending from all others, so that it is counted once wherever it turns up. Random: no value of a row
        has any part in it.
    on_record : str
        The ``head`` of the ledger that was charged for it, as of that time.
    parts : tuple of PrivacySpent
        What it was composed of, its own releases first: a model that was given a schema which was paid for costs both.
        Empty where nothing was added up.
    rows_of : str
        Where subjects are protected and a column named them: its name.

    Attributes
    ----------
    accountant : str
        Which accountant certified the figure: ``"gdp"`` (exact), ``"pld"``, ``"rdp"``, ``"pure"`` (δ = 0).
    data_dependent : bool
        Always False: a figure that depends on the data is no guarantee.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, PrivacySpent
    >>> event = GaussianDpEvent(4.0)
    >>> spent = PrivacySpent.of(event, 1e-5, protects="record", neighboring_relation="replace one record")
    >>> print(spent)
    epsilon=0.9264 at delta=1e-05, protecting one record (replace one record); certified by exact Gaussian accounting
    """

    epsilon: float
    delta: float
    protects: Protects
    neighboring_relation: NeighboringRelation
    event: DpEvent = field(repr=False)
    mechanism_epsilon: float
    public: tuple[str, ...] = field(default=(), repr=False)
    performed: tuple[PerformedRelease, ...] = field(default=(), repr=False, compare=False)
    label: str = field(default="", repr=False, compare=False)
    release: str = field(default="", repr=False, compare=False)
    on_record: str = field(default="", repr=False, compare=False)
    parts: "tuple[PrivacySpent, ...]" = field(default=(), repr=False, compare=False)
    rows_of: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        check_guarantee(self)

    def __getstate__(self) -> dict[str, Any]:
        public = [fact.__getnewargs__() for fact in self.public]
        return {**vars(self), "event": event_to_dict(self.event), "public": public}

    def __reduce__(self) -> Any:
        return _unpickled, (type(self), self.__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From a file of skops, which may be anybody's: what it states has to be what its releases cost."""
        self._restore(state)
        cost = epsilon_of(self.event, self.delta) * (1 - _OTHER_MACHINES)
        if not (self.epsilon >= cost and self.mechanism_epsilon >= cost):
            raise ValueError(
                f"A stored privacy report states epsilon={rounded_up(self.epsilon)}, which is less than its releases "
                "cost. Do not trust this file."
            )

    def _restore(self, state: dict[str, Any]) -> None:
        from skfairdp.privacy._spending import PublicFact

        public = tuple(PublicFact(*given) if len(given) > 1 else given[0] for given in state["public"])
        vars(self).update(state, event=event_from_dict(state["event"]), public=public)
        self.__post_init__()  # members of enums may have been stored as texts

    @classmethod
    def of(
        cls,
        event: DpEvent,
        delta: float,
        *,
        protects: str,
        neighboring_relation: str,
        secret_noise: bool = True,
        public: Iterable[str] = (),
        performed: Iterable[PerformedRelease] = (),
        label: str = "",
        release: str = "",
        on_record: str = "",
        rows_of: str = "",
    ) -> "PrivacySpent":
        """Compute the figure from the event; there is no other way to state one.

        Parameters
        ----------
        event : DpEvent
            The tree of releases.
        delta : float
            The δ at which to state ε, in [0, 1).
        protects : Protects or str
            What a neighbour may change.
        neighboring_relation : NeighboringRelation or str
            Which data sets are neighbours.
        secret_noise : bool, default=True
            False, where the noise was seeded: ε is then inf.
        public : iterable of PublicFact or str, default=()
            What the guarantee takes as public knowledge.
        performed : iterable of PerformedRelease, default=()
            What was released.
        label, release, on_record, rows_of : str, default=""
            Who spent it, which spending it is, where it is on record, and which column says who a subject is.

        Returns
        -------
        spent : PrivacySpent
            The report.

        Raises
        ------
        ValueError
            The event is not well-formed, or holds a release whose cost is not proven for these neighbours.
        """
        mechanism_epsilon = epsilon_of(event, delta)
        stated = mechanism_epsilon if secret_noise else math.inf
        released = event, mechanism_epsilon, tuple(public), tuple(performed), label, release, on_record
        return cls(stated, delta, cast(Any, protects), cast(Any, neighboring_relation), *released, rows_of=rows_of)

    @property
    def own(self) -> "PrivacySpent":
        """What the fit itself has spent, without what it was given."""
        return self.parts[0] if self.parts else self

    @property
    def at(self) -> str:
        """Text with ε and δ."""
        return f"epsilon={rounded_up(self.epsilon)} and delta={self.delta:g}"

    @property
    def accountant(self) -> str:
        """Which accountant certified the figure."""
        return accountant_of(self.event, self.delta)

    @property
    def data_dependent(self) -> bool:
        """Always False: a figure that depends on the data is no guarantee."""
        return False

    def statement(
        self,
        *,
        subject: str = "a private fit",
        ledger: Any = None,
        gap_bound: float | None = None,
        gap: float | None = None,
        holds: str | None = None,
    ) -> "PrivacyStatement":
        """Make the statement that travels with a model: see ``estimator.privacy_statement()``.

        Parameters
        ----------
        subject : str
            Whose statement it is.
        ledger : PrivacyLedger, default=None
            What else was spent on the same rows.
        gap_bound : float, default=None
            What the gap between groups is at most, with 95 % confidence; released, like everything else.
        gap : float, default=None
            What it is about.
        holds : str, default=None
            Whether the constraints hold: "yes", "no" or "within the noise".

        Returns
        -------
        statement : PrivacyStatement
            With ``to_json``, ``to_markdown``, ``to_html`` and more.

        Examples
        --------
        >>> from skfairdp.privacy import GaussianDpEvent, PrivacySpent
        >>> relation = "replace one record"
        >>> spent = PrivacySpent.of(GaussianDpEvent(4.0), 1e-5, protects="record", neighboring_relation=relation)
        >>> spent.statement(subject="a noisy mean").mu
        0.25
        """
        from skfairdp.privacy._statement import state

        return replace(state(self, subject=subject, ledger=ledger), gap_bound=gap_bound, gap=gap, holds=holds)

    def __add__(self, other: object) -> "PrivacySpent":
        """Both fits on the same data, composed from their events, under the relation that both imply, if any. A fit for
        subjects protects each of their rows as well, so with one for records it adds up as that."""
        if not isinstance(other, PrivacySpent):
            return NotImplemented
        from skfairdp.privacy._account import composed

        first, second = sorted((self, other), key=lambda one: one.protects is Protects.SUBJECT)
        as_records = (first.protects, second.protects) == (Protects.RECORD, Protects.SUBJECT)
        both = self.neighboring_relation.of_subjects and other.neighboring_relation.of_subjects
        for name in ("delta",) if as_records else ("protects", "delta", *(("rows_of",) if both else ())):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    f"Guarantees with different {name} do not add up: {getattr(self, name)!r} and "
                    f"{getattr(other, name)!r}. Report them separately."
                )
        return composed(first, second)

    def __str__(self) -> str:
        how = {
            "gdp": "exact Gaussian accounting",
            "pld": "privacy loss distributions",
            "pure": "the exact ratio of probabilities",
            "rdp": "Rényi accounting",
            "none": "nothing: a release without noise",
        }[self.accountant]
        seeded = ""
        if self.epsilon != self.mechanism_epsilon:
            figure = rounded_up(self.mechanism_epsilon)
            seeded = f" [noise was seeded: epsilon is inf; with secret noise it would be {figure}]"
        parts = [f"{part.label or 'a fit'} {rounded_up(part.epsilon)} at delta={part.delta:g}" for part in self.parts]
        adds_up = f"; it adds up {', '.join(parts)}" if parts else ""
        whose = f", all rows of one {self.rows_of!r}" if self.rows_of else ""
        return (
            f"epsilon={rounded_up(self.epsilon)} at delta={self.delta:g}, protecting one {self.protects}{whose} "
            f"({self.neighboring_relation}); certified by {how}{seeded}{adds_up}"
        )


def _unpickled(kind: type[PrivacySpent], state: dict[str, Any]) -> PrivacySpent:
    """Of a pickle or a copy, which costs no accounting: a pickle can do anything as it is."""
    spent = kind.__new__(kind)
    spent._restore(state)
    return spent


class StatesPrivacy:
    """For whatever sets ``privacy_`` when it is fitted."""

    privacy_: PrivacySpent
    get_params: Callable[..., dict[str, Any]]

    def privacy_statement(self) -> "PrivacyStatement":
        """State what the fit guarantees, in a form that travels with the model and can be recomputed by anybody.

        It is made from ``privacy_`` and, where there are any, from the ledger and from ``gap_bound_``, ``gap_`` and
        ``constraint_holds_``; nothing in it follows private values.

        Returns
        -------
        PrivacyStatement
            With ``to_json``, ``to_markdown``, ``to_html``, ``to_registry_yaml`` and ``add_to_card``. Write its JSON to
            a file, and ``python -m skfairdp verify FILE`` recomputes every figure.

        Raises
        ------
        AttributeError
            There is no ``privacy_`` yet: fit (or release) first.
        """
        spent: PrivacySpent | None = getattr(self, "privacy_", None)
        if spent is None:
            name = type(self).__name__
            raise AttributeError(f"This {name} has no privacy_ to make a statement of. Fit it first.")
        figures = {"gap_bound": "gap_bound_", "gap": "gap_", "holds": "constraint_holds_"}
        return spent.statement(
            subject=type(self).__name__,
            ledger=next(iter(ledgers_of(self)), None),
            **{name: getattr(self, attribute, None) for name, attribute in figures.items()},
        )

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """What scikit-learn 1.9 shows of a fitted estimator: the guarantee, above its table of attributes."""
        table = cast(Any, super())._get_fitted_attr_html(doc_link)
        spent = getattr(self, "privacy_", None)
        if spent is not None:
            released = "; ".join(fact for fact in spent.public if "(released" in fact)
            said = f"{spent}. {f'Released: {released}. ' * bool(released)}A score on the private rows is not covered."
            drawn = table._repr_html_inner
            table._repr_html_inner = lambda: f"<p>{html.escape(said)}</p>{drawn()}"
        return table
