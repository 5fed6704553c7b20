"""What work on large tables was to reach: at how many rows, in which time, memory or ratio, on two cores."""

from dataclasses import dataclass
from typing import Any

MILLION = 1_000_000
UNITS = {"seconds": "≤ {:g} s", "gib": "≤ {:g} GiB", "ratio": "≤ {:g}×"}
FIGURES = {"seconds": "seconds", "gib": "gib_peak", "ratio": "ratio"}  # where a measured row has them


@dataclass(frozen=True)
class Goal:
    """What one row of the table was to reach.

    Parameters
    ----------
    work : str
        Its name in results and on the page.
    rows : int
        Private rows at which it counts; 0 where rows say nothing.
    seconds, gib, ratio : float or None
        Upper bounds.
    reads_files : bool
        Whether the work reads 20 columns from Parquet files.
    """

    work: str
    rows: int
    seconds: float | None = None
    gib: float | None = None
    ratio: float | None = None
    reads_files: bool = False

    @property
    def bounds(self) -> dict[str, float]:
        every = {"seconds": self.seconds, "gib": self.gib, "ratio": self.ratio}
        return {name: value for name, value in every.items() if value is not None}

    def __str__(self) -> str:
        at = f" at {self.rows:,} rows" if self.rows else ""
        return ", ".join(UNITS[name].format(value) for name, value in self.bounds.items()) + at

    def met(self, row: dict[str, Any]) -> bool | None:
        """Whether a measured row reached it; None where it was measured at another number of rows."""
        if row["n_rows"] != self.rows:
            return None
        return all(row[FIGURES[name]] <= value for name, value in self.bounds.items())


GOALS = {
    "generator": Goal("PFGuard marginals", 100 * MILLION, 600, 4, reads_files=True),
    "fair-pate": Goal("FairPATE, 1000 teachers", 100 * MILLION, 600, 4, reads_files=True),
    "fair-dpsgd": Goal("FairDPSGD, 5000 batches of 2048", 10 * MILLION, gib=2, reads_files=True),
    "idp3": Goal("IDP3, 5 groups × 10 classes", 100 * MILLION, 45, 1),
    "generator-in-memory": Goal("PFGuard marginals, in memory, 50 columns", MILLION, 8),
    "pf-ld": Goal("PF-LD, in memory, 50 columns", MILLION, 60),
    "many-groups-generator": Goal("PFGuard marginals, 240 groups × 10 classes", 50_000, 10),
    "many-groups-fair-pate": Goal("FairPATE, 240 groups × 10 classes", 50_000, 10),
    "calibration": Goal("DP-SGD: slowest of all ε to noise", 0, 0.5),
    "generator-on-a-cluster": Goal("PFGuard marginals, LocalCluster over threads", MILLION, ratio=1.3),
    "fair-pate-on-a-cluster": Goal("FairPATE, LocalCluster over threads", MILLION, ratio=1.3),
}
