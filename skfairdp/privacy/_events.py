"""Descriptions of releases. An event says what was released and with what noise; it knows no accountant.

dp-accounting's events are used wherever it has one; the vote releases below exist nowhere else. Their meaning
never changes: a stored event must give the same ε tomorrow.

Every number in an event is checked at every door that takes one (:func:`check_event`): a NaN, a negative count or a
fraction of a release would make an accountant print less than was spent.
"""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import attr
import numpy as np

from skfairdp.privacy import _dp_accounting as dpa
from skfairdp.privacy._dp_accounting import DpEvent

_NOISES = ("gaussian", "discrete_gaussian")


_MOST_RELEASES = 2**53  # counts stay exact as floats
_DEEPEST = 128  # levels of a tree: every reader of one is recursive


def _number(value: Any) -> bool:
    """A real number that a float holds, and that JSON gives back: no bool, no text, no array, no NaN."""
    if isinstance(value, float):
        return value == value
    if isinstance(value, np.floating):
        return not isinstance(value, np.longdouble) and bool(value == value)
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and abs(int(value)) < 2**1023


def _must(what: str, holds: Callable[[Any], bool], *, number: bool = True) -> Callable[[Any, Any, Any], None]:
    """A validator of attrs: the field is a number, unless it need not be, and holds what is said."""

    def validate(instance: Any, attribute: Any, value: Any) -> None:
        if not ((not number or _number(value)) and holds(value)):
            raise ValueError(f"{attribute.name} of {type(instance).__name__} must {what}. Got {value!r} instead.")

    return validate


_finite = _must("be finite", lambda value: abs(value) < math.inf)
_positive = _must("be positive and finite", lambda value: 0 < value < math.inf)
_not_negative = _must("be finite and at least 0 (0 is no noise)", lambda value: 0 <= value < math.inf)
_count = _must("be a positive integer", lambda value: 1 <= value <= _MOST_RELEASES and int(value) == value)
_probability = _must("lie in (0, 1]", lambda value: 0 < value <= 1)
_share = _must("lie in [0, 1] (0 is no noise)", lambda value: 0 <= value <= 1)
_at_most_two = _must("lie in (0, 2]", lambda value: 0 < value <= 2)
_mean = _must("lie in 1..2**53", lambda value: 1 <= value <= _MOST_RELEASES)
_shape = _must("be greater than -1 (inf is the Poisson law)", lambda value: value > -1)

_flag = _must("be a bool", lambda value: isinstance(value, bool | np.bool_), number=False)
_known_noise = _must(f"be one of {_NOISES}", lambda value: isinstance(value, str) and value in _NOISES, number=False)
_event = _must("be an event", lambda value: isinstance(value, DpEvent), number=False)


@attr.s(frozen=True, auto_attribs=True)
class ThresholdBit(DpEvent):
    """One bit: whether a maximum of vote counts plus noise reaches a threshold.

    One record changes one teacher, which moves any (restricted) maximum of the counts by at most 1.

    Parameters
    ----------
    n_teachers : int
        Number of votes; the maximum lies in 0..n_teachers.
    threshold : float
        In votes.
    sigma : float
        Noise scale, in votes.
    noise : {"gaussian", "discrete_gaussian"}, default="gaussian"

    Examples
    --------
    >>> from skfairdp.privacy import ThresholdBit, epsilon_of
    >>> round(epsilon_of(ThresholdBit(n_teachers=100, threshold=60.0, sigma=20.0), 1e-5), 3)
    0.157
    """

    n_teachers: int = attr.ib(validator=_count)
    threshold: float = attr.ib(validator=_finite)
    sigma: float = attr.ib(validator=_positive)
    noise: str = attr.ib(default="gaussian", validator=_known_noise)


@attr.s(frozen=True, auto_attribs=True)
class ArgmaxBit(DpEvent):
    """One bit: which of two classes has the larger noisy count (ties go to the first).

    Parameters
    ----------
    n_teachers : int
        Number of votes.
    sigma : float
        Scale of the noise added to each of the two counts, in votes.
    noise : {"gaussian", "discrete_gaussian"}, default="gaussian"
    restricted : bool, default=False
        False says that there are two classes only, so that one changed vote moves the difference of counts by exactly
        2. True says that the two are chosen from several, so that the difference may also move by 1.

    Examples
    --------
    >>> from skfairdp.privacy import ArgmaxBit, epsilon_of
    >>> round(epsilon_of(ArgmaxBit(n_teachers=100, sigma=20.0), 1e-5), 3)
    0.234
    """

    n_teachers: int = attr.ib(validator=_count)
    sigma: float = attr.ib(validator=_positive)
    noise: str = attr.ib(default="gaussian", validator=_known_noise)
    restricted: bool = attr.ib(default=False, validator=_flag)


@attr.s(frozen=True, auto_attribs=True)
class DiscreteGaussian(DpEvent):
    """An integer vector plus discrete Gaussian noise: ρ-zCDP with ρ = sensitivity² / (2 sigma²).

    (Canonne, Kamath & Steinke 2020, Theorem 4.) It is not exactly Gaussian-DP and never enters a GDP sum.

    Parameters
    ----------
    sigma : float
        Scale of the noise, greater than 0.
    sensitivity : float, default=1.0
        Largest Euclidean distance between the vectors of two neighbours.

    Examples
    --------
    >>> from skfairdp.privacy import DiscreteGaussian, epsilon_of
    >>> round(epsilon_of(DiscreteGaussian(sigma=20.0), 1e-5), 3)
    0.178
    """

    sigma: float = attr.ib(validator=_positive)
    sensitivity: float = attr.ib(default=1.0, validator=_positive)


@attr.s(frozen=True, auto_attribs=True)
class ReplaceSampledGaussian(DpEvent):
    """A Gaussian release of a Poisson sample whose neighbours keep the record and change what it contributes.

    ``PoissonSampledDpEvent`` is for neighbours that add or remove the record, which costs something else.

    Parameters
    ----------
    sampling_probability : float
        In (0, 1].
    noise_multiplier : float
        Noise standard deviation over the largest norm c of a record's contribution.
    difference : float, default=2.0
        Largest distance between two possible contributions of one record, over c. 2 is the worst there is, and what
        contributions centred around 0 have.

    Examples
    --------
    A record that is replaced costs more than one that comes or goes:

    >>> from skfairdp.privacy import GaussianDpEvent, PoissonSampledDpEvent, ReplaceSampledGaussian, epsilon_of, repeat
    >>> round(epsilon_of(repeat(ReplaceSampledGaussian(0.01, 1.0), 100), 1e-5), 3)
    0.895
    >>> round(epsilon_of(repeat(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 100), 1e-5), 3)
    0.718
    """

    sampling_probability: float = attr.ib(validator=_probability)
    noise_multiplier: float = attr.ib(validator=_positive)
    difference: float = attr.ib(default=2.0, validator=_at_most_two)


@attr.s(frozen=True, auto_attribs=True)
class RareDisclosure(DpEvent):
    """Event: with at most this probability a value that only one record has is shown, otherwise nothing.

    A release that is (0, δ)-private with δ = ``probability``: its distance in total variation between neighbours. It
    adds its probability to δ, however often anything else is released, and has no finite ε at a smaller δ.

    Parameters
    ----------
    probability : float
        In (0, 1].

    Examples
    --------
    >>> from skfairdp.privacy import RareDisclosure, epsilon_of
    >>> epsilon_of(RareDisclosure(1e-6), 1e-5), epsilon_of(RareDisclosure(1e-6), 1e-7)
    (0.0, inf)
    """

    probability: float = attr.ib(validator=_probability)


def _some(instance: Any, attribute: Any, value: Any) -> None:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(event, DpEvent) for event in value):
        raise ValueError(f"{attribute.name} of {type(instance).__name__} must be a sequence of events, not empty.")


def _gaussian(instance: Any, attribute: Any, value: Any) -> None:
    if type(value) is not dpa.GaussianDpEvent:
        raise ValueError(f"Only Gaussian releases can be Poisson-sampled here. Got {type(value).__name__}.")


@attr.s(frozen=True, auto_attribs=True)
class WorstOf(DpEvent):
    """One of several events, and the guarantee of each of them: parallel releases, or a choice that is not known.

    Where a record is touched by one of these events only, which one being fixed by public values (the train or the test
    part of a split), or where one is picked without looking at the data (a candidate of a random search), no more is
    spent than by the worst of them.

    Parameters
    ----------
    events : tuple of DpEvent
        The possible ones; at least one.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, WorstOf, epsilon_of
    >>> cheap, costly = GaussianDpEvent(5.0), GaussianDpEvent(2.0)
    >>> round(epsilon_of(WorstOf((cheap, costly)), 1e-5), 3), round(epsilon_of(costly, 1e-5), 3)
    (1.993, 1.993)
    """

    events: tuple[DpEvent, ...] = attr.ib(converter=tuple, validator=_some)


#: What the fields of dp-accounting's own events have to hold; ours carry their validators themselves.
_FOREIGN: dict[type[DpEvent], dict[str, Callable[[Any, Any, Any], None]]] = {
    dpa.ComposedDpEvent: {"events": _some},
    dpa.GaussianDpEvent: {"noise_multiplier": _not_negative},
    dpa.LaplaceDpEvent: {"noise_multiplier": _not_negative},
    dpa.NoOpDpEvent: {},
    dpa.NonPrivateDpEvent: {},
    dpa.PoissonSampledDpEvent: {"sampling_probability": _probability, "event": _gaussian},
    dpa.RandomizedResponseDpEvent: {"noise_parameter": _share, "num_buckets": _count},
    dpa.RepeatAndSelectDpEvent: {"event": _event, "mean": _mean, "shape": _shape},
    dpa.SelfComposedDpEvent: {"event": _event, "count": _count},
}

_OURS = (ArgmaxBit, DiscreteGaussian, RareDisclosure, ReplaceSampledGaussian, ThresholdBit, WorstOf)
_EVENTS: dict[str, type[DpEvent]] = {cls.__name__: cls for cls in (*_FOREIGN, *_OURS)}


_KEEPS_THE_RECORD = (
    "replace one record", "replace one record by a null record", "replace one sensitive attribute",
    "replace the sensitive attribute of one subject",
)  # fmt: skip
#: Releases whose cost is proven for some neighbours only, and what to state for others. Every other event bounds the
#: neighbours that it is stated for.
_PROVEN_UNDER: dict[type[DpEvent], tuple[tuple[str, ...], str]] = {
    dpa.PoissonSampledDpEvent: (
        ("add or remove one record", "replace one record by a null record", "replace all rows of one subject by none"),
        (
            "Where both neighbours sample the record state ReplaceSampledGaussian, which costs more: "
            "attribute_event(event, 'replace one record by a null record') writes it."
        ),
    ),
    ReplaceSampledGaussian: (  # of subjects as of records: both neighbours sample the unit, whatever it contributes
        (*_KEEPS_THE_RECORD, "replace all rows of one subject", "replace all rows of one subject by none"),
        "Where a record comes or goes state PoissonSampledDpEvent.",
    ),
    dpa.RandomizedResponseDpEvent: (
        _KEEPS_THE_RECORD,
        "The number of answers shows the number of records: state a relation that keeps it.",
    ),
}


def check_event(event: DpEvent, neighboring_relation: str | None = None) -> None:
    """Refuse an event whose ε would be meaningless; every door that takes an event calls this. The whole tree is
    walked: types that no accountant here knows (subclasses too), numbers that are none of their field, empty
    compositions, more than 2**53 releases of one kind, trees deeper than 128 levels. A noise of exactly 0 is a release
    without noise, whose ε is inf. With a ``neighboring_relation`` a release whose cost is not proven for those
    neighbours is refused too."""
    waiting: list[tuple[Any, int, int]] = [(event, 1, 1)]
    while waiting:
        node, times, depth = waiting.pop()
        kind = type(node)
        if not isinstance(node, DpEvent) or _EVENTS.get(kind.__name__) is not kind:
            raise ValueError(f"No accountant here has a proof for a release of type {kind.__name__}.")
        proven, instead = _PROVEN_UNDER.get(kind, ((neighboring_relation,), ""))
        if neighboring_relation is not None and neighboring_relation not in proven:
            raise ValueError(
                f"The cost of {kind.__name__} is proven for {', '.join(map(repr, proven))}, not for "
                f"'{neighboring_relation}'. {instead}"
            )
        if kind not in _FOREIGN:
            attr.validate(node)
        for name, validate in _FOREIGN.get(kind, {}).items():
            validate(node, attr.fields_dict(kind)[name], getattr(node, name))
        inner = node.events if hasattr(node, "events") else (node.event,) if hasattr(node, "event") else ()
        times *= int(node.count) if isinstance(node, dpa.SelfComposedDpEvent) else 1
        if times > _MOST_RELEASES or depth > _DEEPEST:
            raise ValueError(
                f"An event may hold at most {_DEEPEST} levels and 2**53 repetitions of a release. Write the tree with "
                "fewer, for example by repeat(event, times) instead of nested compositions."
            )
        waiting += product(inner, [times], [depth + 1])


def repeat(event: DpEvent, times: int) -> DpEvent:
    """Return the event of the same release, made ``times`` times.

    Parameters
    ----------
    event : DpEvent
        One release.
    times : int
        At least 0.

    Returns
    -------
    event : DpEvent
        ``NoOpDpEvent`` for 0 times.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, epsilon_of, repeat
    >>> one = GaussianDpEvent(10.0)
    >>> round(epsilon_of(one, 1e-5), 3), round(epsilon_of(repeat(one, 100), 1e-5), 3)  # far less than 100 times as much
    (0.341, 4.377)
    """
    if not (_number(times) and 0 <= times <= _MOST_RELEASES and int(times) == times):
        raise ValueError(f"times must be a non-negative integer. Got {times!r} instead.")
    check_event(event)
    if times == 0:
        return dpa.NoOpDpEvent()
    return event if times == 1 else dpa.SelfComposedDpEvent(event, int(times))


def compose(*events: DpEvent) -> DpEvent:
    """Return the event of all these releases on the same data, where each may depend on those before.

    Parameters
    ----------
    *events : DpEvent
        The releases.

    Returns
    -------
    event : DpEvent
        Their composition.

    Examples
    --------
    >>> from skfairdp.privacy import DiscreteGaussian, GaussianDpEvent, compose, epsilon_of
    >>> round(epsilon_of(compose(GaussianDpEvent(10.0), DiscreteGaussian(20.0)), 1e-5), 3)
    0.423
    """
    for event in events:
        check_event(event)
    kept = [event for event in events if not isinstance(event, dpa.NoOpDpEvent)]
    if not kept:
        return dpa.NoOpDpEvent()
    return kept[0] if len(kept) == 1 else dpa.ComposedDpEvent(kept)


def flatten(event: DpEvent) -> dict[DpEvent, int]:
    """Walk an event tree and count its elementary releases; a selection or a worst case counts as one of them."""
    check_event(event)
    leaves: dict[DpEvent, int] = {}

    def walk(node: DpEvent, times: int) -> None:
        if isinstance(node, dpa.ComposedDpEvent):
            for child in node.events:
                walk(child, times)
        elif isinstance(node, dpa.SelfComposedDpEvent):
            walk(node.event, times * int(node.count))
        elif isinstance(node, WorstOf) and len(options := dict.fromkeys(map(_canonical, node.events))) == 1:
            walk(next(iter(options)), times)
        elif not isinstance(node, dpa.NoOpDpEvent) and times:
            if isinstance(node, WorstOf):
                node = WorstOf(tuple(sorted(options, key=repr)))
            elif isinstance(node, dpa.RepeatAndSelectDpEvent):
                node = dpa.RepeatAndSelectDpEvent(_canonical(node.event), node.mean, node.shape)
            node = _with_python_numbers(node)
            leaves[node] = leaves.get(node, 0) + times

    walk(event, 1)
    return leaves


def _with_python_numbers(event: DpEvent) -> DpEvent:
    """NumPy's scalars as plain ones: ε of ``float32`` noise is computed in double precision, from the same value."""
    changed: dict[str, Any] = {}
    for field in attr.fields(type(event)):
        value = getattr(event, field.name)
        if isinstance(value, np.generic):
            changed[field.name] = value.item()
        elif isinstance(value, DpEvent) and (plain := _with_python_numbers(value)) is not value:
            changed[field.name] = plain
    return attr.evolve(event, **changed) if changed else event


def _canonical(event: DpEvent) -> DpEvent:
    """The same event in a form that can be hashed, alike for trees that hold the same releases."""
    leaves = [repeat(leaf, times) for leaf, times in sorted(flatten(event).items(), key=repr)]
    if not leaves:
        return dpa.NoOpDpEvent()
    return leaves[0] if len(leaves) == 1 else dpa.ComposedDpEvent(tuple(leaves))


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Plain JSON-ready description of an event tree; :func:`event_from_dict` gives an equal event back."""
    check_event(event)

    def plain(value: Any) -> Any:
        if isinstance(value, DpEvent):
            fields = {field.name: plain(getattr(value, field.name)) for field in attr.fields(type(value))}
            return {"type": type(value).__name__, **fields}
        if isinstance(value, list | tuple):
            return list(map(plain, value))
        if isinstance(value, np.generic):
            value = value.item()
        return "inf" if isinstance(value, float) and math.isinf(value) else value

    described: dict[str, Any] = plain(event)
    return described


def event_from_dict(description: dict[str, Any]) -> DpEvent:
    """Inverse of :func:`event_to_dict`."""
    if not isinstance(description, dict):
        raise ValueError(_NO_DESCRIPTION)
    try:
        event: DpEvent = _rebuilt(description)
    except RecursionError:
        raise ValueError(f"An event may hold at most {_DEEPEST} levels; this description holds more.") from None
    except TypeError as error:  # fields that are missing, or that the event does not have
        raise ValueError(f"This is no description of an event: {error}.") from None
    check_event(event)
    return event


_NO_DESCRIPTION = "The description of an event is a dict with its type and its fields."


def _rebuilt(value: Any) -> Any:
    """An event, or what one of its fields holds."""
    if isinstance(value, list):
        return [_rebuilt(item) for item in value]
    if not isinstance(value, dict):
        return math.inf if value == "inf" else value
    if "type" not in value:
        raise ValueError(_NO_DESCRIPTION)
    name = value["type"]
    if not isinstance(name, str) or name not in _EVENTS:
        raise ValueError(f"Unknown event {name!r}; the known ones are {sorted(_EVENTS)}.")
    return _EVENTS[name](**{key: _rebuilt(field) for key, field in value.items() if key != "type"})
