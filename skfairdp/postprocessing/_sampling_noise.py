"""How much of a gap on public rows is chance, and how many rows would tell it from none."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.fairness import RateConstraints, RateParity, gaps_of

Array = NDArray[np.float64]


def words_of_noise(constraints: RateConstraints, counts: Any, *, changed: bool, rows: str, owner: str) -> str | None:
    """Return what to say where rows are too few for what is asked of them, or for the gap to begin with; else None."""
    smallest = int(_sizes(constraints, counts)[(constraints.coefficients != 0).any(0)].min())
    parities = [one for one in constraints.constraints if isinstance(one, RateParity) and one.ratio_bound is None]
    asked = min((one.factor_and_slack[1] for one in parities), default=1.0)
    gap, chance = chance_of_gap(constraints, counts)
    found = []
    if 0 < asked < 1 / (2 * math.sqrt(smallest)):
        found.append(
            f"You ask for a difference of {asked:g}, and {smallest} {rows} of the smallest group tell a rate only to "
            f"about {1 / (2 * math.sqrt(smallest)):.2g}: expect a difference of that size on other rows. Ask for a "
            f"larger one, or give {math.ceil(round(1 / (4 * max(asked, 1e-6) ** 2), 6))} of each group."
        )
    if changed and 0 < gap < 2 * chance:
        found.append(
            f"The gap before was {gap:.2g}, and on so few {rows} chance alone makes gaps of up to {2 * chance:.2g}: "
            "answers were changed to suit these rows, and the gap on others may grow. Leave the model as it is, or "
            f"give {math.ceil(4 * chance**2 / gap**2)} times as many."
        )
    return f"{owner} follows noise. {' '.join(found)}" if found else None


def chance_of_gap(constraints: RateConstraints, counts: Any) -> tuple[float, float]:
    """Return the largest gap, or violation of a bound, and its standard error if rows were drawn anew.

    A rate of few rows that is 0 or 1 is taken for one of two rows more, one of which counts (Agresti and Coull 1998).
    """
    gaps = gaps_of(constraints)
    violations, sizes = gaps.violations(counts), _sizes(gaps, counts)
    rates = (np.nan_to_num(gaps.rates(counts)) * sizes + 1) / (sizes + 2)
    variances = rates * (1 - rates) / np.maximum(sizes, 1)
    worst = int(violations.argmax())
    return float(violations[worst]), math.sqrt(float((gaps.coefficients[worst] ** 2 * variances).sum()))


def _sizes(constraints: RateConstraints, counts: Any) -> Array:
    """Rows that each rate of each group is a share of, and of all groups in the last line."""
    by_label = np.asarray(counts, dtype=np.float64).sum(2)
    sizes = by_label @ constraints.cells[:, : by_label.shape[1]].T
    return np.vstack([sizes, sizes.sum(0)])
