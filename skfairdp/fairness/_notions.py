"""The notions that a constraint may ask for, by all the names and objects that people have for them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from skfairdp.fairness._rates import RateBound, RateParity, read_rate_constraints

#: By name, or with a bound of its own.
Notion = str | RateParity | RateBound

#: All notions, see :class:`FairnessConstraints`.
NOTIONS = (
    "accuracy_parity",
    "demographic_parity",
    "equalized_odds",
    "false_positive_rate_parity",
    "generalized_demographic_parity",
    "true_positive_rate_parity",
)
# What people call a notion besides: who is missed equally often is found equally often.
_ALSO = {
    "equal_opportunity": "true_positive_rate_parity",
    "false_negative_rate_parity": "true_positive_rate_parity",
    "true_negative_rate_parity": "false_positive_rate_parity",
}
_RATES = {
    "accuracy": "accuracy_parity",
    "error_rate": "accuracy_parity",
    "false_negative_rate": "true_positive_rate_parity",
    "false_positive_rate": "false_positive_rate_parity",
    "selection_rate": "demographic_parity",
    "selection_rate_by_label": "equalized_odds",
    "true_negative_rate": "false_positive_rate_parity",
    "true_positive_rate": "true_positive_rate_parity",
}
_UNBOUNDED = (0.01, 1.0)  # difference and ratio of a parity that was given no bound


def read_constraints(
    given: Any,
    owner: str,
    *,
    supported: Sequence[str] = NOTIONS,
    parameter: str = "constraints",
    several: bool = True,
    optional: bool = False,
    bounds: bool = True,
) -> tuple[Notion, ...]:
    """The notions that a parameter asks for: names, or constraints with a bound of their own."""
    if given is None and optional:
        return ()
    alone = isinstance(given, str | RateParity | RateBound) or _is_moment(given) or not isinstance(given, Iterable)
    found = tuple(
        _read(one, owner, parameter, None if bounds else supported) for one in ([given] if alone else list(given))
    )
    names = [name_of(one) for one in found]
    if not names or _asks_twice(found) or not set(names) <= set(supported) or (len(names) > 1 and not several):
        number = "one or several different ones" if several else "one"
        raise ValueError(
            f"The '{parameter}' parameter of {owner} must be {number} of {_names(supported)}"
            f"{', or None' if optional else ''}, or fairlearn's moments or RateParity of the same meaning. "
            f"Got {given!r} instead."
        )
    return found


def _names(supported: Sequence[str]) -> list[str]:
    """All that may be written for these notions."""
    return sorted({*supported, *(name for name, meaning in _ALSO.items() if meaning in supported)})


def name_of(notion: Notion) -> str:
    """The name of a notion, of ``NOTIONS``, that has a bound of its own or none."""
    return notion if isinstance(notion, str) else _RATES[notion.rate]


def by_position(
    notions: Sequence[Notion], groups: Sequence[Any], classes: Sequence[Any], owner: str
) -> tuple[Notion, ...]:
    """The same notions with positions in place of the names of groups and classes."""
    found = []
    for notion in notions:
        if not isinstance(notion, str) and notion.of_class is not None:
            notion = replace(notion, of_class=_position(notion.of_class, classes, "of_class", "classes", owner))
        if isinstance(notion, RateBound) and isinstance(notion.groups, Iterable) and notion.groups != "overall":
            named = tuple(_position(group, groups, "groups", "groups", owner) for group in notion.groups)
            notion = replace(notion, groups=named)
        found.append(notion)
    return tuple(found)


def _position(name: Any, known: Sequence[Any], parameter: str, kind: str, owner: str) -> int:
    for i, one in enumerate(known):
        if one == name:
            return i
    raise ValueError(f"The constraints of {owner} name {name!r} in '{parameter}', which is none of its {kind}.")


def _asks_twice(notions: Sequence[Notion]) -> bool:
    """Whether one parity comes twice."""
    parities = [
        (name_of(one), None if isinstance(one, str) else one.of_class)
        for one in notions
        if not isinstance(one, RateBound)
    ]
    return len(set(parities)) < len(parities)


def _read(one: Any, owner: str, parameter: str, without_bounds: Sequence[str] | None) -> Notion:
    if isinstance(one, str):
        return _ALSO.get(one, one)
    try:
        (found,) = read_rate_constraints([one], owner, parameter=parameter)
    except ValueError:  # of no rate
        return f"fairlearn's {type(one).__name__}" if _is_moment(one) else repr(one)
    if isinstance(found, RateParity) and found.of_class is None and found.factor_and_slack[::-1] == _UNBOUNDED:
        return _RATES[found.rate]
    if without_bounds is not None:
        same = _RATES[found.rate]
        raise ValueError(
            f"The '{parameter}' parameter of {owner} holds rates equal, without a bound of their own. Got {one!r}; "
            f"give {repr(same) if same in without_bounds else f'one of {_names(without_bounds)}'}."
        )
    return found


def _is_moment(one: Any) -> bool:
    """Whether this is an object of fairlearn itself; a subclass may mean something else."""
    return type(one).__module__.partition(".")[0] == "fairlearn"
