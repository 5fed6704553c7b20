"""How often the gap of a population stays below its bound, and how far the bound lies above it: 1,000 samples each.

    python benchmarks/bench_gap_bound.py

Samples are counts of predictions by group, drawn from fixed rates; "private" ones carry the noise of a table that is
released at ε = 1 and δ = 1e-5 for one record replaced. A bound of level .95 should hold in 95 ± 1 % of them where
one difference is clearly the largest, and more often near parity, where a gap may come out on either side.
"""

import math
from typing import Any

import _common as common
import numpy as np

from skfairdp.fairness import parity_bound
from skfairdp.privacy import gdp_mu

#: Rates of being predicted the second class, by group, and the groups' shares of the rows.
POPULATIONS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "two groups, gap .2": ((0.25, 0.45), (0.3, 0.7)),
    "two groups, gap .05": ((0.20, 0.25), (0.3, 0.7)),
    "two groups, parity": ((0.25, 0.25), (0.3, 0.7)),
    "four groups, gap .3": ((0.2, 0.3, 0.35, 0.5), (0.1, 0.2, 0.3, 0.4)),
}
SIZES = (1000, 10_000)


def samples(name: str, n_rows: int, noise: float, repeats: int) -> dict[str, Any]:
    """Return the share of samples whose bound holds, and the mean distance from the gap to it."""
    rates, shares = (np.array(values) for values in POPULATIONS[name])
    rng, gap = np.random.default_rng([n_rows, len(rates)]), float(rates.max() - rates.min())
    bounds = []
    for _ in range(repeats):
        sizes = rng.multinomial(n_rows, shares)
        hits = rng.binomial(sizes, rates)
        counts = np.stack([sizes - hits, hits], axis=1) + noise * rng.normal(size=(len(rates), 2))
        bounds.append(parity_bound(counts, noise=noise))
    return {
        "population": name,
        "n_rows": n_rows,
        "noise": noise,
        "gap": gap,
        "coverage": float(np.mean([bound >= gap for bound in bounds])),
        "above_by": float(np.mean(bounds) - gap),
    }


def main() -> None:
    parser = common.parser(__doc__ or "", "gap_bound")
    arguments = parser.parse_args()
    repeats = 20 if arguments.quick else 1000
    noisy = math.sqrt(2.0) / gdp_mu(1.0, 1e-5)
    rows = [samples(name, n, noise, repeats) for name in POPULATIONS for n in SIZES for noise in (0.0, noisy)]
    common.print_table(
        ["population", "rows", "noise", "coverage", "bound above gap by"],
        [
            [r["population"], r["n_rows"], f"{r['noise']:.1f}", f"{r['coverage']:.1%}", f"{r['above_by']:.3f}"]
            for r in rows
        ],
    )
    common.save(arguments, repeats=repeats, rows=rows)


if __name__ == "__main__":
    main()
