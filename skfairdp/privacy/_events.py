"""Descriptions of releases. An event says what was released and with what noise; it knows no accountant.

dp-accounting's events are used wherever it has one; the vote releases below exist nowhere else. Their meaning
never changes: a stored event must give the same ε tomorrow.
"""

import math
from typing import Any

import attr

from skfairdp.privacy._dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
)

__all__ = [
    "ArgmaxBit",
    "DiscreteGaussian",
    "ReplaceSampledGaussian",
    "ThresholdBit",
    "WorstOf",
    "compose",
    "event_from_dict",
    "event_to_dict",
    "flatten",
    "repeat",
]

_NOISES = ("gaussian", "discrete_gaussian")


def _positive(instance: Any, attribute: Any, value: Any) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{attribute.name} of {type(instance).__name__} must be positive and finite. Got {value!r}.")


def _known_noise(instance: Any, attribute: Any, value: str) -> None:
    if value not in _NOISES:
        raise ValueError(f"noise of {type(instance).__name__} must be one of {_NOISES}. Got {value!r} instead.")


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
    noise : {"gaussian", "discrete_gaussian"}
    """

    n_teachers: int = attr.ib(validator=_positive)
    threshold: float
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
    noise : {"gaussian", "discrete_gaussian"}
    restricted : bool
        False: the two classes are all there are, and one changed vote moves the difference of counts by exactly 2.
        True: two admissible ones of several, where it may also move by 1.
    """

    n_teachers: int = attr.ib(validator=_positive)
    sigma: float = attr.ib(validator=_positive)
    noise: str = attr.ib(default="gaussian", validator=_known_noise)
    restricted: bool = False


@attr.s(frozen=True, auto_attribs=True)
class DiscreteGaussian(DpEvent):
    """An integer vector plus discrete Gaussian noise: ρ-zCDP with ρ = sensitivity² / (2 sigma²).

    (Canonne, Kamath & Steinke 2020, Theorem 4.) It is not exactly Gaussian-DP and never enters a GDP sum.
    """

    sigma: float = attr.ib(validator=_positive)
    sensitivity: float = attr.ib(default=1.0, validator=_positive)


def _probability(instance: Any, attribute: Any, value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{attribute.name} of {type(instance).__name__} must lie in (0, 1]. Got {value!r} instead.")


def _at_most_two(instance: Any, attribute: Any, value: float) -> None:
    if not 0 < value <= 2:
        raise ValueError(f"{attribute.name} of {type(instance).__name__} must lie in (0, 2]. Got {value!r} instead.")


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
    """

    sampling_probability: float = attr.ib(validator=_probability)
    noise_multiplier: float = attr.ib(validator=_positive)
    difference: float = attr.ib(default=2.0, validator=_at_most_two)


def _some(instance: Any, attribute: Any, value: tuple[Any, ...]) -> None:
    if not value or not all(isinstance(event, DpEvent) for event in value):
        raise ValueError(f"{attribute.name} of {type(instance).__name__} must be a sequence of events, not empty.")


@attr.s(frozen=True, auto_attribs=True)
class WorstOf(DpEvent):
    """One of several events, and the guarantee of each of them: parallel releases, or a choice that is not known.

    Where a record is touched by one of these events only, which one being fixed by public values (the train or the test
    part of a split), or where one is picked without looking at the data (a candidate of a random search), no more is
    spent than by the worst of them.

    Parameters
    ----------
    events : tuple of DpEvent
    """

    events: tuple[DpEvent, ...] = attr.ib(converter=tuple, validator=_some)


_EVENTS: dict[str, type[DpEvent]] = {
    cls.__name__: cls
    for cls in (
        ArgmaxBit,
        ComposedDpEvent,
        DiscreteGaussian,
        GaussianDpEvent,
        LaplaceDpEvent,
        NoOpDpEvent,
        NonPrivateDpEvent,
        PoissonSampledDpEvent,
        RandomizedResponseDpEvent,
        RepeatAndSelectDpEvent,
        ReplaceSampledGaussian,
        SelfComposedDpEvent,
        ThresholdBit,
        WorstOf,
    )
}


def repeat(event: DpEvent, times: int) -> DpEvent:
    """The same release, ``times`` times over."""
    if times < 0 or int(times) != times:
        raise ValueError(f"times must be a non-negative integer. Got {times!r} instead.")
    if times == 0:
        return NoOpDpEvent()
    return event if times == 1 else SelfComposedDpEvent(event, int(times))


def compose(*events: DpEvent) -> DpEvent:
    """All of these releases on the same data, in any adaptive order."""
    kept = [event for event in events if not isinstance(event, NoOpDpEvent)]
    if not kept:
        return NoOpDpEvent()
    return kept[0] if len(kept) == 1 else ComposedDpEvent(kept)


def flatten(event: DpEvent) -> dict[DpEvent, int]:
    """Walk an event tree and count its elementary releases; a selection or a worst case counts as one of them."""
    leaves: dict[DpEvent, int] = {}

    def walk(node: DpEvent, times: int) -> None:
        if isinstance(node, ComposedDpEvent):
            for child in node.events:
                walk(child, times)
        elif isinstance(node, SelfComposedDpEvent):
            walk(node.event, times * node.count)
        elif isinstance(node, WorstOf) and len(options := dict.fromkeys(map(_canonical, node.events))) == 1:
            walk(next(iter(options)), times)
        elif not isinstance(node, NoOpDpEvent) and times:
            if isinstance(node, WorstOf):
                node = WorstOf(tuple(sorted(options, key=repr)))
            elif isinstance(node, RepeatAndSelectDpEvent):
                node = RepeatAndSelectDpEvent(_canonical(node.event), node.mean, node.shape)
            leaves[node] = leaves.get(node, 0) + times

    walk(event, 1)
    return leaves


def _canonical(event: DpEvent) -> DpEvent:
    """The same event in a form that can be hashed, alike for trees that hold the same releases."""
    leaves = [repeat(leaf, times) for leaf, times in sorted(flatten(event).items(), key=repr)]
    if not leaves:
        return NoOpDpEvent()
    return leaves[0] if len(leaves) == 1 else ComposedDpEvent(tuple(leaves))


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Plain JSON-ready description of an event tree."""
    name = type(event).__name__
    if _EVENTS.get(name) is not type(event):
        raise ValueError(f"An event of type {name} cannot be stored; the known ones are {sorted(_EVENTS)}.")

    def plain(value: Any) -> Any:
        if isinstance(value, DpEvent):
            return event_to_dict(value)
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if hasattr(value, "item"):
            return value.item()
        return "inf" if isinstance(value, float) and math.isinf(value) else value

    fields = {field.name: plain(getattr(event, field.name)) for field in attr.fields(type(event))}
    return {"type": name, **fields}


def event_from_dict(description: dict[str, Any]) -> DpEvent:
    """Inverse of :func:`event_to_dict`."""
    fields = dict(description)
    name = fields.pop("type", None)
    if name not in _EVENTS:
        raise ValueError(f"Unknown event {name!r}; the known ones are {sorted(_EVENTS)}.")

    def built(value: Any) -> Any:
        if isinstance(value, dict) and "type" in value:
            return event_from_dict(value)
        if isinstance(value, list):
            return [built(item) for item in value]
        return math.inf if value == "inf" else value

    return _EVENTS[name](**{key: built(value) for key, value in fields.items()})
