"""How much an event lets a fit release: to weigh what it draws, and what a statement tells of it."""

import math
from dataclasses import dataclass, replace

from skfairdp.privacy import _dp_accounting as dpa, _events as ours
from skfairdp.privacy._dp_accounting import DpEvent

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

    def without(self, event: DpEvent, times: int) -> "Allowance | None":
        """What is left after an event, several times; None where less than nothing is."""
        cost = allowance(event)
        others = dict(self.others)
        for leaf, n in cost.others:
            others[leaf] = others.get(leaf, 0) - n * times
        left = Allowance(
            _minus(self.squares, times * cost.squares / (1 + _SLACK)),
            _minus(self.ratios, times * cost.ratios / (1 + _SLACK)),
            _minus(self.rare, times * cost.rare / (1 + _SLACK)),
            tuple(others.items()),
        )
        enough = math.isinf(self.squares) or all(n >= 0 for n in others.values())
        return left if enough and min(left.squares, left.ratios, left.rare) >= 0 else None

    def after(self, made: tuple[float, float] | None, times: int, *, laplace: bool) -> "Allowance | None":
        """What is left after some releases, None where less than nothing is.

        ``made`` is their sensitivity and standard deviation; None for what is answered by chance.
        """
        if made is None:
            left = self.answers - times
            fewer = ((dpa.RandomizedResponseDpEvent(1.0, 2), left),)  # which of them it was is not told
            return replace(self, others=fewer) if left >= 0 or math.isinf(self.squares) else None
        ratio = made[0] / made[1] if made[1] else math.inf
        if laplace:
            left_of = replace(self, ratios=_minus(self.ratios, times * math.sqrt(2.0) * ratio))
        else:
            left_of = replace(self, squares=_minus(self.squares, times * ratio**2))
        return left_of if left_of.squares >= 0 and left_of.ratios >= 0 else None

    def __str__(self) -> str:
        chance = f" and {self.answers} answers by chance" if self.answers else ""
        return f"Σ (Δ/σ)² ≤ {self.squares:.6g}, Σ Δ/b ≤ {self.ratios:.6g}{chance}"


def _minus(left: float, cost: float) -> float:
    return left if math.isinf(left) else left - cost


def allowance(event: DpEvent) -> Allowance:
    """What an event allows: of a worst case all options, as other records meet other ones.

    Of a selection no release but itself: how many trials it makes is secret, so that its releases are not told.
    """
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
            squares += times * _square(leaf)
    return Allowance(squares * (1 + _SLACK), ratios * (1 + _SLACK), rare * (1 + _SLACK), tuple(others.items()))


def _square(leaf: DpEvent) -> float:
    """Squared distance over noise of one release."""
    if isinstance(leaf, ours.ThresholdBit):
        distance, noise = 1.0, leaf.sigma
    elif isinstance(leaf, ours.ArgmaxBit):
        distance, noise = math.sqrt(2.0), leaf.sigma
    elif isinstance(leaf, ours.DiscreteGaussian):
        distance, noise = leaf.sensitivity, leaf.sigma
    elif isinstance(leaf, ours.ReplaceSampledGaussian):
        distance, noise = leaf.difference, leaf.noise_multiplier
    else:
        distance, noise = 1.0, getattr(leaf, "event", leaf).noise_multiplier
    return (distance / noise) ** 2 if noise else math.inf
