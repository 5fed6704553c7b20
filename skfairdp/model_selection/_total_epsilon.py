"""One ε for a whole search: what every fit and every table of scores gets."""

import math
import warnings
from collections.abc import Callable
from typing import Protocol, TypeVar

from scipy.optimize import brentq

from skfairdp.model_selection._search_data import SearchData
from skfairdp.privacy import DpEvent

_CLOSE = 1e-6  # of the total may be left over
_FARTHEST = math.log(1e6)  # times less, or more, than the given ε of a fit


class _Planned(Protocol):
    @property
    def event(self) -> DpEvent: ...


Plan = TypeVar("Plan", bound=_Planned)


def divided(data: SearchData, total: float | None, plan: Callable[[SearchData], Plan]) -> tuple[SearchData, Plan]:
    """The search whose fits and scores cost ``total`` altogether, and its plan; as given, where there is no total.

    One factor scales the ε of the fits and that of the scores: a winner is refitted at the ε at which it was scored,
    and the user says in which proportion fits and scores share. What the whole costs at a factor is asked of the
    accountant, with all that was paid for before (a schema), so that nothing is left over.
    """
    if total is None:
        return data, plan(data)
    _check(data)
    data = data.with_total(total)
    tried: dict[float, float] = {}

    def excess(exponent: float) -> float:
        scaled = data.scaled(math.exp(exponent))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the plan that is taken gives them
            cost = scaled.spent(plan(scaled).event).mechanism_epsilon
        tried[exponent] = cost
        return math.log(cost / total) + _CLOSE / 2 if cost > 0 else -math.inf

    first = excess(0.0)
    end = max(-_FARTHEST, min(-first, _FARTHEST)) or _CLOSE
    while excess(end) * first > 0:
        if abs(end) >= _FARTHEST:
            raise ValueError(
                f"No budget of its fits brings {data.owner} to total_epsilon={total:g}: they cost {tried[end]:.3g} at "
                f"{math.exp(end):.1g} times the 'epsilon' given. Leave out what fixes their noise ('noise_multiplier', "
                "'sigma'), and see that schemas that were paid for cost less than the total."
            )
        end = math.copysign(min(abs(2 * end), _FARTHEST), end)
    brentq(excess, min(0.0, end), max(0.0, end), xtol=_CLOSE / 10, rtol=1e-12)
    affordable = [exponent for exponent, cost in tried.items() if cost <= total]
    taken = data.scaled(math.exp(max(affordable, key=lambda exponent: tried[exponent])))
    return taken, plan(taken)


def _check(data: SearchData) -> None:
    """Whether one factor can scale it."""
    name = f"{data.candidate.prefix}epsilon"
    if not data.candidate.has("epsilon"):
        raise ValueError(f"total_epsilon of {data.owner} needs an estimator with a parameter 'epsilon' to divide it.")
    if any(name in params for params in data.grid):
        raise ValueError(
            f"{data.owner} got total_epsilon and a grid over {name!r}. All fits share the total equally: leave one of "
            "the two out."
        )
