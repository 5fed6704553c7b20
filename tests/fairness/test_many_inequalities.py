"""Of very many inequalities only those are drawn that may be the largest: nothing that is told of them changes."""

import numpy as np
import pytest

from skfairdp.fairness import RateConstraints, RateParity, violation_bounds


@pytest.mark.parametrize("together", [None, 0.95])
@pytest.mark.parametrize("level", [0.95, 0.05])
def test_the_largest_of_many_inequalities_is_that_of_all_of_them(level, together, monkeypatch):
    constraints = RateConstraints((RateParity("selection_rate", 0.05),), range(12), range(3))
    counts = np.random.default_rng(0).multinomial(100, [0.2, 0.3, 0.5], size=12)[:, None, :].astype(float)
    given = {"level": level, "noise": 3.0, "together": together}
    every = violation_bounds(constraints, counts, **given)
    monkeypatch.setattr("skfairdp.fairness._rate_gate._MANY", 10)
    some = violation_bounds(constraints, counts, **given)
    assert some.max() == every.max() and some.argmax() == every.argmax()
    assert (some >= every).all()
    assert together is None or np.array_equal(some, every)
