"""How much noise an event lets a fit draw, to compare with what a statement says was released."""

import math
from dataclasses import dataclass, replace

from skfairdp.privacy import _dp_accounting as dpa
from skfairdp.privacy import _events as ours
from skfairdp.privacy._dp_accounting import DpEvent

__all__ = ["Allowance", "allowance"]

_SLACK = 1e-9  # of the roundings of many squares


@dataclass(frozen=True)
class Allowance:
    """What is left. It is no accountant: an event that allows all of it may still be another one than was released.

    Parameters
    ----------
    squares : float
        Sum of squared sensitivities over standard deviations, of noise that is Gaussian or nearly.
    ratios : float
        Sum of sensitivities over scales, of Laplace noise.
    answers : bool
        Whether anything is answered by chance.
    """

    squares: float
    ratios: float
    answers: bool

    def after(self, made: tuple[float, float] | None, times: int, *, laplace: bool) -> "Allowance | None":
        """What is left after some releases, None where less than nothing is.

        ``made`` is their sensitivity and standard deviation; None for what is answered by chance.
        """
        if made is None:
            return self if self.answers else None
        ratio = made[0] / made[1] if made[1] else math.inf
        if laplace:
            left = replace(self, ratios=_minus(self.ratios, times * math.sqrt(2.0) * ratio))
        else:
            left = replace(self, squares=_minus(self.squares, times * ratio**2))
        return left if left.squares >= 0 and left.ratios >= 0 else None

    def __str__(self) -> str:
        chance = " and answers by chance" if self.answers else ""
        return f"Σ (Δ/σ)² ≤ {self.squares:.6g}, Σ Δ/b ≤ {self.ratios:.6g}{chance}"


def _minus(left: float, cost: float) -> float:
    return left if math.isinf(left) else left - cost


def allowance(event: DpEvent) -> Allowance:
    """What an event allows: of a worst case all options, as other records meet other ones.

    Of a selection nothing: how many trials it makes is secret, so that its releases are not told.
    """
    squares = ratios = 0.0
    answers = False
    for leaf, times in ours.flatten(event).items():
        if isinstance(leaf, dpa.NonPrivateDpEvent):
            return Allowance(math.inf, math.inf, True)
        if isinstance(leaf, dpa.RepeatAndSelectDpEvent):
            continue
        if isinstance(leaf, ours.WorstOf):
            inside = [allowance(option) for option in leaf.events]
            squares += times * sum(one.squares for one in inside)
            ratios += times * sum(one.ratios for one in inside)
            answers |= any(one.answers for one in inside)
        elif isinstance(leaf, dpa.RandomizedResponseDpEvent):
            answers = True
        elif isinstance(leaf, dpa.LaplaceDpEvent):
            ratios += times / leaf.noise_multiplier if leaf.noise_multiplier else math.inf
        else:
            squares += times * _square(leaf)
    return Allowance(squares * (1 + _SLACK), ratios * (1 + _SLACK), answers)


def _square(leaf: DpEvent) -> float:
    """Squared distance over noise of one release."""
    if isinstance(leaf, ours.RareDisclosure):
        return 0.0
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
