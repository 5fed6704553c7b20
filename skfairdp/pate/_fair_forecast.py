"""Whether the votes of SF-PATE can hold a constraint: told from public numbers, before anything is spent."""

import math
from dataclasses import dataclass, replace
from typing import Any

from skfairdp._usefulness import VoteForecast, default_n_teachers, smallest

#: Noise in the mean share of a group from which on gaps stay as they were (1,000 and 4,000 rows with a gap of .3).
FAIR_NOISE = 0.025
#: The rates of two groups of a part of m rows differ by chance with a standard deviation of 1/√m: by a twentieth here.
FAIR_PART = 400


@dataclass(frozen=True)
class FairForecast:
    """What the votes of SF-PATE are going to hold, by public numbers alone."""

    votes: VoteForecast
    n_queries: int
    sigma: float | None
    fair_parts: bool
    hard: bool = False

    @classmethod
    def of(cls, model: Any, n_rows: int, n_values: int, n_queries: int, *, fair_parts: bool) -> "FairForecast":
        """The forecast of a fit of an :class:`SFPATEClassifier` on so many rows."""
        given = None if model.n_teachers == "auto" else int(model.n_teachers)
        votes = VoteForecast(n_rows, n_values, model.epsilon, model.delta, given)
        return cls(votes, n_queries, model.sigma, fair_parts, model.voting == "gnmax")

    @property
    def n_teachers(self) -> int:
        """Disjoint parts of the rows."""
        votes = self.votes
        return votes.n_teachers or default_n_teachers(
            votes.n_rows, n_values=votes.n_values, epsilon=votes.epsilon, delta=votes.delta
        )

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in the mean share of a value."""
        if self.sigma is None:
            return self.votes.noise
        return self.sigma / (self.n_teachers * math.sqrt(self.n_queries))

    @property
    def rows_of_a_part(self) -> int:
        """Rows that a teacher learns from."""
        return self.votes.n_rows // self.n_teachers

    @property
    def is_fair(self) -> bool:
        """Whether nothing that is public speaks against it; one value leaves nothing to hold."""
        if self.votes.n_values < 2:
            return True
        small_parts = self.fair_parts and self.rows_of_a_part < FAIR_PART
        return self.noise <= FAIR_NOISE and not small_parts and not self.asks_little

    @property
    def asks_little(self) -> bool:
        """Whether a fair student sees too few rows for its rates to be those of others."""
        return self.hard and not self.fair_parts and self.n_queries < FAIR_PART

    @property
    def enough_rows(self) -> int | None:
        """Rows that would do, to two digits; None where none do."""
        found = smallest(
            lambda rows: replace(self, votes=replace(self.votes, n_rows=int(rows))).is_fair,
            float(self.votes.n_rows),
            1e8,
        )
        return None if found is None else int(found)

    @property
    def enough_epsilon(self) -> float | None:
        """The ε that would do, to two digits; None where none does."""
        if self.sigma is not None:
            return None
        return smallest(
            lambda epsilon: replace(self, votes=replace(self.votes, epsilon=epsilon)).is_fair, self.votes.epsilon, 1e3
        )

    def words(self, owner: str) -> str:
        """What is said of a fit that cannot be fair."""
        reasons = []
        if self.noise > FAIR_NOISE:
            reasons.append(
                f"noise in the mean share of a value has a standard deviation of {self.noise:.2g}, and above "
                f"{FAIR_NOISE:g} gaps are hardly narrowed"
            )
        if self.fair_parts and self.rows_of_a_part < FAIR_PART:
            reasons.append(
                f"each of {self.n_teachers} teachers is fair on {self.rows_of_a_part} rows of its own, and on fewer "
                f"than {FAIR_PART} that is chance"
            )
        ways = []
        if self.asks_little:
            reasons.append(
                f"the student is fair on the {self.n_queries} rows asked about, and on fewer than {FAIR_PART} that is "
                "chance"
            )
            ways.append("voting='soft'")
        rows, epsilon = self.enough_rows, self.enough_epsilon
        ways += [f"{rows:,} rows"] if rows is not None else []
        ways += [f"epsilon={epsilon:g}"] if epsilon is not None else []
        ways += [f"max_queries={FAIR_PART} or more"] if self.asks_little else []
        ways += ["another number of teachers"] if self.votes.n_teachers is not None else []
        ways += ["a smaller sigma"] if self.sigma is not None and self.noise > FAIR_NOISE else []
        enough = " or ".join(ways or ["more rows at a larger epsilon"])
        return (
            f"The votes cannot hold {owner} to its constraint: {'; '.join(reasons)}. "
            f"{enough[:1].upper() + enough[1:]} would do. PFLDClassifier has the same guarantee and "
            "needs fewer rows: it measures its constraint on all of them at once."
        )
