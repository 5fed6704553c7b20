"""What fits that protect whole records tell of one record's sensitive attribute: their releases, a record replaced."""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from numbers import Integral, Real
from typing import Any

import attr

from skfairdp.privacy import _dp_accounting as dpa, _events as ours
from skfairdp.privacy._divergences import pure_epsilon
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import check_event
from skfairdp.privacy._report import NeighboringRelation, Protects

_DOWN = 1 - 2.0**-48  # below the roundings of a few factors
_LARGEST = 700.0  # of a pure ε whose exponential is a float


def attribute_event(event: DpEvent, neighboring_relation: str) -> DpEvent:
    """The event of the same releases for neighbours that differ in the sensitive attribute of one record.

    Another attribute makes another record of it, so what holds for a record replaced by any other one holds for its
    attribute, and the event stays as it is. A guarantee for a record that is replaced by a null record, or added or
    removed, is used twice: from one record to none, and from none to the other. Twice the distance is half the noise
    for Gaussian and Laplace noise; a Poisson-sampled Gaussian becomes a :class:`ReplaceSampledGaussian`.

    Parameters
    ----------
    event : DpEvent
        The tree of releases.
    neighboring_relation : NeighboringRelation or str
        Of the guarantee that the event was stated for.

    Returns
    -------
    event : DpEvent
        No smaller at any δ.

    Raises
    ------
    ValueError
        The event is not well-formed, or holds a release whose cost is not proven under its relation.

    Notes
    -----
    Each part gets the event that dominates two steps of it, whatever was released before; compositions, worst cases
    (the row keeps its place, so it meets the same one) and selections are then those of these parts.

    * Gaussian and Laplace: a trade-off curve f holds for each step, so for both 1 - (1 - f)∘(1 - f) does (Dong, Roth &
      Su 2022, Theorem 2.14), which is the curve of twice the shift.
    * Discrete Gaussian: ρ-zCDP is 4ρ-zCDP for two steps (Bun & Steinke 2016, Proposition 1.9).
    * Bits of votes: post-processing of the noisy counts behind them, which move twice as far.
    * Poisson-sampled Gaussian: both records are sampled by the same coin, and contribute vectors of norm at most 1.
    * Randomised response: twice its pure ε, and binary answers dominate whatever has it (Kairouz, Oh & Viswanath 2015).
    * Rare disclosure: distances in total variation add up.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, attribute_event
    >>> attribute_event(GaussianDpEvent(6.0), "replace one record by a null record")
    GaussianDpEvent(noise_multiplier=3.0)
    >>> attribute_event(GaussianDpEvent(6.0), "replace one record")
    GaussianDpEvent(noise_multiplier=6.0)
    """
    relation = NeighboringRelation(neighboring_relation)
    check_event(event, relation)
    if relation.implies(NeighboringRelation.REPLACE_ONE) or relation.implies(NeighboringRelation.REPLACE_ATTRIBUTE):
        return event
    return _twice(event)


def counted_for(protects: str, event: DpEvent, neighboring_relation: str) -> tuple[DpEvent, NeighboringRelation]:
    """The event and the relation by which a fit counts in the total of what protects this unit: for an attribute a
    record replaced; for records a subject whose rows give way to none, in two steps: each row is a part of those."""
    if protects == Protects.SENSITIVE_ATTRIBUTE != NeighboringRelation(neighboring_relation).protects:
        return attribute_event(event, neighboring_relation), NeighboringRelation.REPLACE_ATTRIBUTE
    if protects == Protects.RECORD and neighboring_relation == NeighboringRelation.ZERO_OUT_SUBJECT:
        return _twice(event), NeighboringRelation.REPLACE_SUBJECT
    return event, NeighboringRelation(neighboring_relation)


def _twice(event: Any) -> DpEvent:
    """The event of two steps, from one record to none and on to another one."""
    if hasattr(event, "events"):
        return attr.evolve(event, events=[_twice(part) for part in event.events])
    if isinstance(event, dpa.SelfComposedDpEvent | dpa.RepeatAndSelectDpEvent):
        return attr.evolve(event, event=_twice(event.event))
    return _TWO_STEPS[type(event)](event)


def _less_noise(event: Any) -> DpEvent:
    return type(event)(float(event.noise_multiplier) / 2)


def _discrete(sigma: float, sensitivity: float) -> DpEvent:
    return ours.DiscreteGaussian(sigma, sensitivity) if math.isfinite(sensitivity) else dpa.NonPrivateDpEvent()


def _counts_behind(event: Any) -> DpEvent:
    """The noisy counts of a bit: one vote moves a maximum by one, and two counts by one each."""
    distance = 1.0 if isinstance(event, ours.ThresholdBit) else math.sqrt(2) / _DOWN
    if event.noise == "gaussian":
        return dpa.GaussianDpEvent(float(event.sigma) / (2 * distance) * _DOWN)
    return _discrete(float(event.sigma), 2 * distance)


def _sampled(event: dpa.PoissonSampledDpEvent) -> DpEvent:
    noise = float(event.event.noise_multiplier)
    if event.sampling_probability == 1 or noise == 0:
        return _less_noise(event.event)
    return ours.ReplaceSampledGaussian(event.sampling_probability, noise)


def _answers(event: dpa.RandomizedResponseDpEvent) -> DpEvent:
    epsilon = 2 * (pure_epsilon(event) or 0.0)
    if epsilon == 0:
        return event
    if epsilon > _LARGEST:
        return dpa.NonPrivateDpEvent()
    return dpa.RandomizedResponseDpEvent(2 / (math.exp(epsilon) + 1) * _DOWN, 2)


_TWO_STEPS: dict[type[DpEvent], Callable[[Any], DpEvent]] = {
    ours.ArgmaxBit: _counts_behind,
    ours.DiscreteGaussian: lambda event: _discrete(float(event.sigma), 2 * float(event.sensitivity)),
    dpa.GaussianDpEvent: _less_noise,
    dpa.LaplaceDpEvent: _less_noise,
    dpa.NoOpDpEvent: lambda event: event,
    dpa.NonPrivateDpEvent: lambda event: event,
    dpa.PoissonSampledDpEvent: _sampled,
    dpa.RandomizedResponseDpEvent: _answers,
    ours.RareDisclosure: lambda event: ours.RareDisclosure(min(1.0, 2 * float(event.probability))),
    ours.ReplaceSampledGaussian: lambda event: attr.evolve(event, difference=min(2.0, 2 * float(event.difference))),
    ours.ThresholdBit: _counts_behind,
}


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Guarantee of an (ε, δ)-private mechanism for data sets that differ in ``size`` records.

    ``(Kε, δ (e^{Kε} - 1) / (e^ε - 1))``, for ε = 0 ``(0, Kδ)``; δ' never above 1. Walking from one data set to the
    other, record by record, ``P_i(S) <= e^ε P_{i+1}(S) + δ``, so ``P_0(S) <= e^{Kε} P_K(S) + δ (1 + e^ε + ... +
    e^{(K-1)ε})``. It cannot be improved where that δ' is below 1/2: some chain of data sets attains it with equality in
    every step. The bounds usually quoted replace the sum by its largest term K times, ``K e^{(K-1)ε} δ``, or by ``K
    e^{Kε} δ`` (the FairPATE paper, Theorem 1): for K = 3, ε = 1, δ = 1e-5 they are 2.0 and 5.4 times as large.

    It is the whole group that gets (ε', δ'), for each of its subsets too. A mechanism whose event is known has a better
    figure: give :func:`epsilon_of` the event with the larger sensitivity.

    Parameters
    ----------
    epsilon : float
        ε >= 0 for one record; may be inf.
    delta : float
        δ in [0, 1] for one record.
    size : int
        K >= 1, the number of records.

    Returns
    -------
    epsilon : float
        Kε, rounded up.
    delta : float
        In [0, 1], rounded up.

    Raises
    ------
    ValueError
        A parameter is outside its range.

    Examples
    --------
    >>> from skfairdp.privacy import group_privacy
    >>> epsilon, delta = group_privacy(1.0, 1e-5, 3)
    >>> epsilon, round(delta, 10)
    (3.0, 0.0001110734)
    """
    for name, value, most in (("epsilon", epsilon, math.inf), ("delta", delta, 1.0)):
        if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= value <= most:
            raise ValueError(
                f"The '{name}' parameter of group_privacy must be a float in the range [0.0, {most}]. Got {value!r} "
                "instead."
            )
    if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
        raise ValueError(
            f"The 'size' parameter of group_privacy must be an int in the range [1, inf). Got {size!r} instead."
        )
    epsilon, delta, size = float(epsilon), float(delta), int(size)
    if size == 1:
        return epsilon, delta
    with localcontext(Context(prec=1200, rounding=ROUND_CEILING)):  # all digits of a float and of an integer beside it
        total, plain = (_rounded_up(Decimal(value) * size) for value in (epsilon, delta))
    if delta == 0:
        return total, 0.0
    if epsilon == 0:
        return total, min(1.0, plain)
    if total > 1600:  # the largest term of the sum is at least e^800, above one over the smallest float
        return total, 1.0
    with localcontext(Context(prec=60 - min(Decimal(epsilon).adjusted(), 0))):  # of e^ε - 1 sixty digits are left
        one, several = Decimal(epsilon).exp() - 1, (Decimal(epsilon) * size).exp() - 1
        return total, min(1.0, _rounded_up(Decimal(delta) * several / one * (1 + Decimal("1e-50"))))


def _rounded_up(value: Decimal) -> float:
    """The next float that is no smaller."""
    nearest = float(value)
    return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)
