"""What an attacker who sees many fits can prove, beside the certified ε: lower bound, certified figure, ratio.

    python benchmarks/bench_audit.py --help

Two worlds differ in one record; one teacher per record, so that one vote moves. The whole estimator is fitted again and
again, with secret noise, and only what it publishes is looked at. A ratio above 1 would refute the certificate; the
further below 1, the more the attack (or, for hard labels, the published bit) gives away less than what is accounted.
All lower bounds of a run hold together with 95 % confidence. With ``--attribute`` it is SF-PATE, whose two worlds
differ in the group of one row.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import _common as common
import numpy as np

DELTA = 1e-5
N_TEACHERS = 101
CONFIDENCE = 0.95  # of all lower bounds together


@dataclass(frozen=True)
class Case:
    """One estimator, the vote counts of its two worlds, and what the attacker counts."""

    name: str
    parameters: dict[str, Any]
    statistic: str
    n_classes: int = 2
    gated: bool = False

    @property
    def votes(self) -> int:
        """Votes for class 1 in the first world; the second has one more, taken from class 0."""
        return 60 if self.statistic == "count of answers" else 50  # beside the threshold, or beside the tie


MATCHED, LABELS, ANSWERS = "matched filter", "count of one label", "count of answers"
CASES = (
    Case("PATE soft", {"voting": "soft"}, MATCHED),
    Case("PATE soft, discrete noise", {"voting": "soft", "voting__noise": "discrete_gaussian"}, MATCHED),
    Case("PATE soft, three classes", {"voting": "soft"}, MATCHED, n_classes=3),
    Case("PATE gnmax", {"voting": "gnmax"}, LABELS),
    Case("PATE gnmax, discrete noise", {"voting": "gnmax", "voting__noise": "discrete_gaussian"}, LABELS),
    Case("PATE gnmax, three classes", {"voting": "gnmax"}, LABELS, n_classes=3),
    Case("PATE confident", {"voting": "confident"}, ANSWERS),
    Case("PATE confident, Gaussian filter", {"voting": "confident", "voting__accounting": "gdp"}, ANSWERS),
    Case("FairPATE soft", {"voting": "soft"}, MATCHED, gated=True),
    Case("FairPATE gnmax", {"voting": "gnmax"}, LABELS, gated=True),
    Case("FairPATE confident", {"voting": "confident"}, ANSWERS, gated=True),
    Case(
        "FairPATE confident, Gaussian filter", {"voting": "confident", "voting__accounting": "gdp"}, ANSWERS, gated=True
    ),
)
ATTRIBUTE_CASES = (
    Case("SF-PATE student, soft", {"voting": "soft"}, MATCHED),
    Case("SF-PATE student, soft, discrete noise", {"voting": "soft", "voting__noise": "discrete_gaussian"}, MATCHED),
    Case("SF-PATE student, gnmax", {"voting": "gnmax"}, LABELS),
    Case("SF-PATE teacher, soft", {"voting": "soft", "variant": "teacher"}, MATCHED),
)


class GroupsAnswer:
    """A fair learner in name: it answers whether an odd number of its rows is of group 1, so that any flip shows."""

    def fit(self, X: Any, y: Any, sensitive_features: Any) -> "GroupsAnswer":
        self.answer = int(np.sum(sensitive_features)) % 2
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.answer)


def attribute_worlds(case: Case, epsilon: float, n_queries: int, seed: int) -> tuple[Any, list[tuple[Any, Any, Any]]]:
    """SF-PATE, and two worlds that differ in the group of one row, which moves one vote of every query."""
    from sklearn.dummy import DummyClassifier

    from skfairdp import SFPATEClassifier
    from skfairdp.pate import FairTeachers, SoftVoting

    parameters = dict(case.parameters)
    teacher = parameters.get("variant") == "teacher"
    if teacher:
        parameters["variant"] = FairTeachers(DummyClassifier(strategy="uniform", random_state=0))
    model = SFPATEClassifier(
        epsilon=epsilon,
        delta=DELTA,
        classes=[0, 1],
        groups=[0, 1],
        n_teachers=N_TEACHERS,
        fair_estimator=GroupsAnswer(),
        random_state=seed,
    ).set_params(**parameters, voting__max_queries=n_queries)
    n = (3 if teacher else 1) * N_TEACHERS
    X = np.zeros((n, 1))
    groups = np.random.default_rng(seed).integers(2, size=n) if teacher else (np.arange(n) < case.votes).astype(int)
    y = groups if teacher else np.arange(n) % 2

    def flipped(row: int) -> Any:
        return np.where(np.arange(n) == row, 1 - groups, groups)

    def votes(given: Any) -> Any:  # all but without noise
        loud = SFPATEClassifier(**{**model.get_params(deep=False), "epsilon": 1e9, "voting": SoftVoting(sigma=0.01)})
        return np.rint(N_TEACHERS * loud.fit(X, y, sensitive_features=given).released_votes_)

    if not teacher:
        return model, [(X, y, groups), (X, y, flipped(case.votes))]
    # teachers of one class, or of one group, are constants: their rows move nothing
    row = next(row for row in range(n) if np.any(votes(flipped(row)) != votes(groups)))
    up = (votes(flipped(row)) - votes(groups))[0, 1] > 0
    pair = [(X, y, groups), (X, y, flipped(row))]
    return model, pair if up else pair[::-1]


def record_worlds(case: Case, epsilon: float, n_queries: int, seed: int) -> tuple[Any, list[tuple[Any, Any]]]:
    """An estimator of the records, and two worlds that differ in one of them."""
    model, X = estimator(case, epsilon, seed), np.zeros((N_TEACHERS, 1))
    return model, [(X, (np.arange(N_TEACHERS) < votes).astype(int)) for votes in (case.votes, case.votes + 1)]


def estimator(case: Case, epsilon: float, seed: int) -> Any:
    """Return the unfitted estimator of a case."""
    from sklearn.dummy import DummyClassifier

    from skfairdp import FairPATEClassifier, PATEClassifier
    from skfairdp.pate import VoteGate

    common_parameters = {
        "epsilon": epsilon,
        "delta": DELTA,
        "classes": list(range(case.n_classes)),
        "n_teachers": N_TEACHERS,
        "student": DummyClassifier(strategy="uniform", random_state=0),  # what it learns is post-processing
        "random_state": seed,
    }
    if case.gated:
        model = FairPATEClassifier(gamma=0.05, gate=VoteGate(min_count=2), **common_parameters)
    else:
        model = PATEClassifier(**common_parameters)
    return model.set_params(**case.parameters)


def audit(case: Case, *, epsilon: float, n_queries: int, n_runs: int, confidence: float, seed: int) -> dict[str, Any]:
    """Fit ``n_runs`` times in each world and bound μ and ε from what came out."""
    from skfairdp import PublicData
    from skfairdp.inspection import audit_count_statistic, audit_matched_filter

    attribute = case in ATTRIBUTE_CASES
    model, rows = (attribute_worlds if attribute else record_worlds)(case, epsilon, n_queries, seed)
    worlds = []
    for X, y, *groups in rows:
        given: dict[str, Any] = {"X_public": PublicData(np.zeros((n_queries, 1)), np.arange(n_queries) % 2)}
        if attribute:
            given = {"sensitive_features": groups[0]}
        worlds.append(np.array([model.fit(X, y, **given).released_votes_ for _ in range(n_runs)]))
        if attribute and model.get_params().get("voting__sigma") is None:  # calibrated once
            model.set_params(voting__sigma=model.sigma_)
    results = {}
    for method in ("gdp", "clopper_pearson"):
        if case.statistic == MATCHED:
            scores = [(world[..., 1] - world[..., 0]).sum(axis=1) for world in worlds]
            results[method] = audit_matched_filter(*scores, confidence=confidence, method=method)
        elif case.statistic == LABELS:
            results[method] = audit_count_statistic(*worlds, label=1, confidence=confidence, method=method)
        else:
            answered = ((world >= 0).astype(int) for world in worlds)
            results[method] = audit_count_statistic(*answered, confidence=confidence, method=method)
    certified = model.privacy_.epsilon
    lower = results["gdp"].epsilon_lower(DELTA)
    return {
        "estimator": case.name,
        "epsilon_certified": certified,
        "epsilon_lower": lower,
        "ratio": lower / certified,
        "mu_hat": results["gdp"].mu_hat,
        "mu_lower": results["gdp"].mu_lower,
        "epsilon_lower_distribution_free": results["clopper_pearson"].epsilon_lower(DELTA),
        "statistic": case.statistic,
    }


def main() -> None:
    parser = common.parser(__doc__, "audit")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=2000, help="fits in each of the two worlds (default: 2000)")
    parser.add_argument("--attribute", action="store_true", help="audit SF-PATE, which protects the group of a row")
    parser.add_argument("--queries", type=int, default=10, help="public rows asked about (default: 10)")
    arguments = parser.parse_args()
    common.quiet_fairness()
    warnings.filterwarnings("ignore", "Input.*constant|The number of unique classes", UserWarning)
    n_runs = 40 if arguments.quick else arguments.runs
    every = ATTRIBUTE_CASES if arguments.attribute else CASES
    cases = every[::4] if arguments.quick else every
    setting = {"epsilon": arguments.epsilon, "n_queries": arguments.queries, "n_runs": n_runs, "seed": 0}
    each = 1 - (1 - CONFIDENCE) / len(cases)  # so that all hold at once
    rows = []
    for case in cases:
        rows.append(audit(case, confidence=each, **setting))
        print(f"{case.name}: done", flush=True)
    print()
    common.print_table(
        ["estimator", "ε certified", "ε at least", "ratio", "distribution-free", "statistic"],
        [
            [
                row["estimator"],
                f"{row['epsilon_certified']:.3f}",
                f"{row['epsilon_lower']:.3f}",
                f"{row['ratio']:.2f}",
                f"{row['epsilon_lower_distribution_free']:.3f}",
                row["statistic"],
            ]
            for row in rows
        ],
    )
    worst = max(row["ratio"] for row in rows)
    matched = min((row["ratio"] for row in rows if row["statistic"] == MATCHED), default=float("nan"))
    print(f"largest ratio {worst:.2f} (never above 1); smallest with the matched filter {matched:.2f} (at least 0.6)")
    common.save(
        arguments,
        name="audit_attribute" if arguments.attribute else None,
        noise="secret: not reproducible bit for bit",
        runs_per_world=n_runs,
        queries=arguments.queries,
        n_teachers=N_TEACHERS,
        delta=DELTA,
        confidence=CONFIDENCE,
        rows=rows,
        to_reach={"ratio_at_most": 1.0, "matched_filter_at_least": 0.6},
    )


if __name__ == "__main__":
    main()
