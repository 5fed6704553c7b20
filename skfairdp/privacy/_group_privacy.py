"""Group privacy: what a guarantee for one record says about several."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from numbers import Integral, Real


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
    _check_real(epsilon, "epsilon", "[0.0, inf]", 0.0, math.inf)
    _check_real(delta, "delta", "[0.0, 1.0]", 0.0, 1.0)
    if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
        raise ValueError(
            f"The 'size' parameter of group_privacy must be an int in the range [1, inf). Got {size!r} instead."
        )
    epsilon, delta, size = float(epsilon), float(delta), int(size)
    if size == 1:
        return epsilon, delta
    total = _times(epsilon, size)
    if delta == 0:
        return total, 0.0
    if epsilon == 0:
        return total, min(1.0, _times(delta, size))
    if total > 1600:  # the largest term of the sum is at least e^800, above one over the smallest float
        return total, 1.0
    with localcontext(Context(prec=60 - min(Decimal(epsilon).adjusted(), 0))):  # of e^ε - 1 sixty digits are left
        one, several = Decimal(epsilon).exp() - 1, (Decimal(epsilon) * size).exp() - 1
        return total, _rounded_up(Decimal(delta) * several / one * (1 + Decimal("1e-50")))


def _rounded_up(value: Decimal) -> float:
    """The next float that is no smaller, up to 1."""
    nearest = float(value)
    return min(1.0, nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf))


def _times(value: float, size: int) -> float:
    """The product, rounded up."""
    if math.isinf(value):
        return value
    try:
        product = value * size
    except OverflowError:
        return math.inf
    if math.isinf(product):
        return product
    return product if Fraction(product) >= Fraction(value) * size else math.nextafter(product, math.inf)


def _check_real(value: float, name: str, allowed: str, low: float, high: float) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(
            f"The '{name}' parameter of group_privacy must be a float in the range {allowed}. Got {value!r} instead."
        )
