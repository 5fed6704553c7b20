"""A budget: what a fit plans and takes as public; refused before the work, charged by the first noise, reported."""

import contextlib
import math
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy.optimize import brentq

from skfairdp.exceptions import UnplannedReleaseError
from skfairdp.privacy import _dp_accounting as dpa, _events as ours, _noise
from skfairdp.privacy._account import composed, held_by
from skfairdp.privacy._dp_accounting import DpEvent, NoOpDpEvent
from skfairdp.privacy._ledger import PrivacyLedger
from skfairdp.privacy._ledger_block import Uncharged, ledger_in_use, note_release
from skfairdp.privacy._ledger_file import LedgerEntry
from skfairdp.privacy._report import NeighboringRelation, PerformedRelease, PrivacySpent, Protects, rounded_up

_SLACK = 1e-9  # of the roundings of many squares


@dataclass(frozen=True)
class Allowance:
    """What is left. It is no accountant: an event that allows all of it may still be another one than was released."""

    squares: float
    ratios: float
    rare: float = 0.0
    others: tuple[tuple[DpEvent, int], ...] = ()

    @property
    def answers(self) -> int:
        """How often something is answered by chance."""
        return sum(times for leaf, times in self.others if isinstance(leaf, dpa.RandomizedResponseDpEvent))

    def __str__(self) -> str:
        chance = f" and {self.answers} answers by chance" if self.answers else ""
        return f"Σ (Δ/σ)² ≤ {rounded_up(self.squares, 6)}, Σ Δ/b ≤ {rounded_up(self.ratios, 6)}{chance}"


def allowance(event: DpEvent) -> Allowance:
    """What an event allows: of a worst case all options, as other records meet other ones; of a selection only itself:
    how many trials it makes is secret, so that its releases are not told."""
    squares = ratios = rare = 0.0
    others: dict[DpEvent, int] = {}
    for leaf, times in ours.flatten(event).items():
        if isinstance(leaf, dpa.NonPrivateDpEvent):
            return Allowance(math.inf, math.inf, math.inf)
        if isinstance(leaf, ours.WorstOf):
            for inside in map(allowance, leaf.events):
                squares += times * inside.squares
                ratios += times * inside.ratios
                rare += times * inside.rare
                for one, n in inside.others:
                    others[one] = others.get(one, 0) + n * times
        elif isinstance(leaf, dpa.RandomizedResponseDpEvent | dpa.RepeatAndSelectDpEvent):
            others[leaf] = others.get(leaf, 0) + times
        elif isinstance(leaf, ours.RareDisclosure):
            rare -= times * math.log1p(-leaf.probability) if leaf.probability < 1 else -math.inf
        elif isinstance(leaf, dpa.LaplaceDpEvent):
            ratios += times / leaf.noise_multiplier if leaf.noise_multiplier else math.inf
        else:
            distance = getattr(leaf, "difference", math.sqrt(2.0) if isinstance(leaf, ours.ArgmaxBit) else 1.0)
            noise = leaf.sigma if hasattr(leaf, "sigma") else getattr(leaf, "event", leaf).noise_multiplier
            squares += times * (getattr(leaf, "sensitivity", distance) / noise) ** 2 if noise else math.inf
    return Allowance(squares * (1 + _SLACK), ratios * (1 + _SLACK), rare * (1 + _SLACK), tuple(others.items()))


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


#: given: written by the user. read: taken from the private rows, where the relation makes it public or outside of the
#: guarantee (the consequence says which). held out: rows that the estimator set apart, which nothing protects.
#: computed: follows from other facts. released: found by noisy releases, which the statement pays for.
Obtained = Literal["given", "read", "held out", "computed", "released"]

_NUMBER_OF_ROWS, _NUMBER_OF_SUBJECTS = "number of private rows", "number of subjects"
#: Facts that say how many units there are.
SIZES = (_NUMBER_OF_ROWS, _NUMBER_OF_SUBJECTS, "declared number of rows")


class PublicFact(str):
    """One public value that the outcome of a fit may follow. Its text is a sentence, its parts are attributes."""

    name: str
    how: Obtained
    value: Any
    consequence: str
    releases: tuple[str, ...]

    def __new__(
        cls, name: str, how: Obtained, value: Any = None, consequence: str = "", releases: tuple[str, ...] = ()
    ) -> "PublicFact":
        value = _plain(value)
        shown = "" if value is None else f": {', '.join(map(str, value)) if isinstance(value, list) else value}"
        fact = super().__new__(cls, f"{name}{shown} ({how}{'; ' + consequence if consequence else ''})")
        fact.name, fact.how, fact.value, fact.consequence = name, how, value, consequence
        fact.releases = releases
        return fact

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, self.how, self.value, self.consequence, getattr(self, "releases", ())


class PublicReads:
    """Notes of one fit, in the order of reading. A later note on the same thing takes the place of the earlier one."""

    def __init__(self) -> None:
        self._facts: dict[str, PublicFact] = {}
        self.held: list[PrivacySpent] = []  # paid for before, and read

    def note(self, name: str, how: Obtained, value: Any = None, consequence: str = "", *, by: Any = None) -> None:
        """Put a fact on the list. ``by`` is what says it, such as a schema: what was paid for is told as released."""
        paid = held_by(by)
        self.held += paid
        if paid and how == "given":
            how, costs = "released", ", ".join(f"{one.label} at {one.at}" for one in paid)
            consequence = "; ".join(filter(None, (consequence, f"by {costs}, which is added up")))
        self._facts[name] = PublicFact(name, how, value, consequence, tuple(one.release for one in paid))

    def note_number_of_rows(self, number: int) -> None:
        """Where the relation makes it public; :func:`public_facts` takes it off the list elsewhere."""
        self.note(_NUMBER_OF_ROWS, "read", number, "public, as neighbours have equally many")

    def note_subjects(self, number: int, name: str) -> None:
        """Which subjects there are: public under the relation of subjects, and told nowhere."""
        whose = "a keyed hash of each says where its rows are learned from"
        self.note("ids of the subjects", "read", name or None, f"public, and kept nowhere: {whose}")
        self.note(_NUMBER_OF_SUBJECTS, "read", number, "public, as neighbours have equally many")

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
    """All that a fit has noted, completed by what its relation makes public."""
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
        return list(map(_plain, value))
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


_MOST_KINDS = 64
_OF_THE_ROWS = ("n_features_in_", "feature_names_in_")  # what a fit has read when its budget opens


def refuse_ledger_of_seed(owner: str, noise_seed: int | None, ledger: PrivacyLedger | Uncharged | None) -> None:
    """Refuse a ledger, that of the block around as well, beside a seed of the noise."""
    if noise_seed is not None and ledger_in_use(ledger) is not None:
        raise ValueError(
            f"{owner} got both 'noise_seed' and 'ledger', its own or that of the block around: seeded noise gives no "
            "protection, so a ledger cannot count it. Leave one of them out."
        )


def check_room(label: str, *planned: tuple[Any, LedgerEntry]) -> None:
    """Ask ledgers for all that several fits are going to charge, before the first."""
    found: dict[Any, list[DpEvent]] = {}
    for given, entry in planned:
        of = ledger_in_use(given), entry.protects, entry.neighboring_relation, entry.rows_of
        found.setdefault(of, []).append(entry.event)
    for (ledger, protects, relation, rows_of), events in found.items():
        if ledger is not None:
            charge(ledger, LedgerEntry(label, ours.compose(*events), protects, relation, (), rows_of), dry_run=True)


_CLOSE = 1e-6  # of a total may be left over
_FARTHEST = math.log(1e6)  # times less, or more, than the given ε of a fit


def scale_for(total: float, spent: Callable[[float], PrivacySpent], *, owner: str) -> float:
    """By what to multiply every ε that was given, so that all costs ``total``, by the accountant, and no more."""
    tried: dict[float, float] = {}

    def excess(exponent: float) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the plan that is taken gives them
            tried[exponent] = cost = spent(math.exp(exponent)).mechanism_epsilon
        return math.log(cost / total) + _CLOSE / 2 if cost > 0 else -math.inf

    first = excess(0.0)
    end = max(-_FARTHEST, min(-first, _FARTHEST)) or _CLOSE
    while excess(end) * first > 0:
        if abs(end) >= _FARTHEST:
            raise ValueError(
                f"No budget of its fits brings {owner} to total_epsilon={total:g}: they cost {tried[end]:.3g} at "
                f"{math.exp(end):.1g} times the 'epsilon' given. Leave out what fixes their noise "
                "('noise_multiplier', 'sigma'), and make sure that released schemas cost less than the total."
            )
        end = math.copysign(min(abs(2 * end), _FARTHEST), end)
    brentq(excess, min(0.0, end), max(0.0, end), xtol=_CLOSE / 10, rtol=1e-12)
    affordable = [exponent for exponent, cost in tried.items() if cost <= total]
    return math.exp(max(affordable, key=lambda exponent: tried[exponent]))


def charge(ledger: Any, entry: LedgerEntry, *, dry_run: bool = False) -> None:
    """Put an entry on a ledger, or only ask whether it may be."""
    told = {name: getattr(entry, name) for name in ("label", "protects", "neighboring_relation", "releases")}
    ledger.charge(entry.event, dry_run=dry_run, **told, **({"rows_of": entry.rows_of} if entry.rows_of else {}))


class Spending:
    """The only thing that hands out noise, and the thing that charges for it.

    Entering asks the ledger whether the whole fit is affordable, before any work is done. The noise that comes out of
    it charges the ledger when it is first drawn, so no value can leave unpaid. Leaving without an error settles: a fit
    that drew nothing is on record all the same, and the report is handed over. An interrupted fit has charged if it
    drew.

    ``event`` caps everything that will be released, and ``relation`` says which neighbours it is for. ``holds`` was
    paid for before and is part of what comes out, such as a schema: the report adds it up, and the ledger is not
    charged for it again. ``forgets`` are ``vars`` of what is fitted. Fitted attributes of an earlier fit go once the
    budget is open, and those of this one where the block fails or is interrupted: no report of one fit stands beside
    the model of another. Where nothing was charged until then, those of the earlier fit come back.

    Inside the block numpy does not warn of overflow and the like: one record may be what it speaks of. The noise
    refuses to be used outside of it, in another process, for a mechanism that was made for other neighbours
    (RuntimeError), and for a release that the event does not pay for (UnplannedReleaseError).

    Examples
    --------
    >>> from skfairdp.privacy import GaussianMechanism, NeighboringRelation, PrivacyLedger, Spending
    >>> ledger = PrivacyLedger(epsilon=1.0)
    >>> mean = GaussianMechanism(sigma=5.0, relation=NeighboringRelation.REPLACE_ONE)
    >>> spending = Spending(mean.event, 1e-5, NeighboringRelation.REPLACE_ONE, label="a mean", ledger=ledger)
    >>> with spending as noise:
    ...     before = len(ledger.entries)
    ...     _ = mean.release([3.0], noise)
    >>> before, len(ledger.entries), round(spending.report.epsilon, 3)
    (0, 1, 0.726)
    """

    def __init__(
        self,
        event: DpEvent,
        delta: float,
        relation: NeighboringRelation,
        *,
        label: str,
        ledger: PrivacyLedger | Uncharged | None = None,
        noise_seed: int | None = None,
        releases: Iterable[str] = (),
        public: Iterable[str] = (),
        report_to: Callable[[PrivacySpent], None] | None = None,
        holds: Iterable[PrivacySpent] = (),
        forgets: Iterable[dict[str, Any]] = (),
        rows_of: str = "",
    ) -> None:
        self.event, self.delta, self.relation = event, delta, NeighboringRelation(relation)
        refuse_ledger_of_seed(label, noise_seed, ledger)
        self.label, self.ledger, self.noise_seed = label, ledger_in_use(ledger), noise_seed
        self.releases, self.public, self.report_to = tuple(releases), tuple(public), report_to
        self.holds, self.forgets, self.rows_of = tuple(holds), tuple(forgets), rows_of
        self._name, self._on_record = secrets.token_hex(16), ""  # public: no value of a row has a part in it
        self._performed: dict[Any, int] = {}
        self._left: Allowance | None = None
        self._left_of_trial: Allowance | None = None  # while a selection is made
        self._lock = threading.Lock()
        self._open = self._charged = False
        self._before: list[dict[str, Any]] = []
        self._process = 0
        self._without_words = np.errstate(all="ignore")

    # ------------------------------------------------------------------ as a block

    def __enter__(self) -> _noise.NoiseSource:
        if self._process:
            raise RuntimeError("A Spending can be entered once, because each release has a cost. Make another one.")
        if self.holds:
            _ = self.report  # what does not add up is refused before anything is spent
        self._charge(dry_run=True)
        self._before = [dict(fitted) for fitted in self.forgets]
        self._forget()
        self._open, self._process, self._left = True, os.getpid(), allowance(self.event)
        source = _noise.open_source(self.noise_seed).guarded_by(self._guard, self._selecting)
        self._without_words.__enter__()
        return source

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self.settle()
                if self.report_to is not None:
                    self.report_to(self.report)
            else:
                self._forget()
                for fitted, before in zip(self.forgets, [] if self._charged else self._before, strict=False):
                    fitted.update(before)
        finally:
            self._without_words.__exit__(None, None, None)
            self._open, self._before = False, []

    def _forget(self) -> None:
        fitted_names = ((fitted, name) for fitted in self.forgets for name in fitted if name.endswith("_"))
        gone = [one for one in fitted_names if not one[1].startswith("_") and one[1] not in _OF_THE_ROWS]
        try:
            for fitted, name in gone:
                fitted.pop(name, None)
        except BaseException:  # an interrupt came between: half a model is none
            for fitted, name in gone:
                fitted.pop(name, None)
            raise

    def settle(self) -> None:
        """Charge, unless that has happened. A search calls it first: the noise of its fits is drawn elsewhere."""
        with self._lock:
            if not self._charged:
                self._charge(dry_run=False)
                self._charged = True

    @property
    def report(self) -> PrivacySpent:
        """What the whole costs: a cap, known before anything is released."""
        own = PrivacySpent.of(
            self.event, self.delta, protects=self.relation.protects, neighboring_relation=self.relation,
            secret_noise=self.noise_seed is None, public=self.public, performed=_lines(self._performed),
            label=self.label, release=self._name, on_record=self._on_record, rows_of=self.rows_of,
        )  # fmt: skip
        return composed(own, *self.holds)

    # ------------------------------------------------------------------ at every draw

    def _guard(self, mechanism: Any, times: int) -> None:
        """Called by the source before releases (with their mechanism and number) and before a draw (with None)."""
        if not self._open:
            raise RuntimeError("This noise belongs to a fit that is over. Each release happens inside its Spending.")
        if os.getpid() != self._process:
            raise RuntimeError("Noise must be drawn in the process that has charged, not in a worker. Release there.")
        if mechanism is not None:
            if isinstance(self.event, NoOpDpEvent):
                raise RuntimeError(f"{type(mechanism).__name__} releases, but this fit certifies that nothing does.")
            relation = getattr(mechanism, "relation", None)
            if relation is not None and not NeighboringRelation(relation).implies(self.relation):
                raise RuntimeError(
                    f"{type(mechanism).__name__} was made for '{relation}', but this fit certifies '{self.relation}'."
                )
            if times:
                self._weigh(mechanism, times)
        self.settle()

    def _weigh(self, mechanism: Any, times: int) -> None:
        """What is drawn never costs more than what is charged. In a trial of a selection, than one trial may."""
        with self._lock:
            if self._left_of_trial is not None:  # nobody is told: it would tell how many trials there were
                self._left_of_trial = _after(self._left_of_trial, mechanism, times)
            else:
                self._left = _after(self._left, mechanism, times)
                self._performed[mechanism] = self._performed.get(mechanism, 0) + times

    @contextlib.contextmanager
    def _selecting(self, selection: Any) -> Iterator[Callable[[], None]]:
        """While a selection is made: what is returned is called before each of its trials."""
        self._guard(selection, 0)
        with self._lock:
            self._left = _after(self._left, selection, 1)

        def begin() -> None:
            self._left_of_trial = allowance(selection.base)

        try:
            yield begin
        finally:
            self._left_of_trial = None

    def _charge(self, *, dry_run: bool) -> None:
        if self.ledger is not None and not isinstance(self.event, NoOpDpEvent):
            of_subjects = {"rows_of": self.rows_of} if self.rows_of else {}
            self.ledger.charge(
                self.event, label=self.label, protects=self.relation.protects, neighboring_relation=self.relation,
                releases=self.releases, dry_run=dry_run, **of_subjects,
            )  # fmt: skip
            if not dry_run:
                self._on_record = getattr(self.ledger, "head", "")
                note_release(self._name, self.ledger)


def _after(left: Allowance | None, mechanism: Any, times: int) -> Allowance:
    """What is left after some releases; what is more than that is refused before it is drawn."""
    if left is not None:
        cost, others, own = allowance(mechanism.event), dict(left.others), times / (1 + _SLACK)
        for leaf, n in cost.others:
            others[leaf] = others.get(leaf, 0) - n * times
        pairs = ((getattr(left, name), own * getattr(cost, name)) for name in ("squares", "ratios", "rare"))
        squares, ratios, rare = (had if math.isinf(had) else had - less for had, less in pairs)
        enough = math.isinf(left.squares) or min(others.values(), default=0) >= 0
        if enough and min(squares, ratios, rare) >= 0:
            return Allowance(squares, ratios, rare, tuple(others.items()))
    raise UnplannedReleaseError(
        f"{type(mechanism).__name__} would release more than this fit has charged for. Include every release in the "
        "event of its plan."
    )


def _lines(performed: dict[Any, int]) -> list[PerformedRelease]:
    """One line for each scale of each mechanism; of many scales one line, with the noise of as many equal ones."""
    lines = [
        PerformedRelease(type(one).__name__, getattr(one, "sensitivity", None), getattr(one, "sigma", None), times)
        for one, times in performed.items()
    ]
    if len(lines) <= _MOST_KINDS:
        return lines
    together: dict[tuple[str, float | None], tuple[int, float]] = {}
    for line in lines:
        cost = line.times * (line.sensitivity / line.sigma) ** 2 if line.sensitivity and line.sigma else 0.0
        first = next((key for key in together if key[0] == line.mechanism), (line.mechanism, line.sensitivity))
        times, costs = together.get(first, (0, 0.0))
        together[first] = times + line.times, costs + cost
    return [
        PerformedRelease(name, unit, unit * math.sqrt(times / costs) if unit else None, times)
        for (name, unit), (times, costs) in together.items()
    ]
