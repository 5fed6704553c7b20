"""Data-dependent PATE bounds: votes to Rényi costs for 10 000 queries × 100 orders, against plain loops.

    python benchmarks/bench_data_dependent.py --help

The loops are written from the theorem (Papernot et al. 2018, Proposition 7 and Theorem 6), in the two ways one finds:
query by query with NumPy over the orders (as the public pate_2018 analysis iterates, ``scipy.stats`` for the tails),
and number by number with ``math``. All sides run in turn in one process, on one core each; what is compared is CPU
seconds, which a busy machine distorts least. To reach: 50 times the speed of the public way.
"""

import math
import time
from collections.abc import Callable

import _common as common
import numpy as np
from scipy.stats import norm

from skfairdp.papers._data_dependent import data_dependent_rdp, log_q

TO_REACH = 50.0
# A loop's ten thousand rounds average out disturbances; of the milliseconds of one vectorised call, take the median.
CALLS = 5
# Concentration of the votes on the first class, and on all others together.
CONSENSUS, DISSENT = 8.0, 2.4


def log1mexp(x: float) -> float:
    """log(1 - exp(x)) for x < 0."""
    return math.log(-math.expm1(x)) if x > -0.7 else math.log1p(-math.exp(x))


def log_q_numpy(histogram: np.ndarray, sigma: float) -> float:
    """Proposition 7 for one query, with scipy.stats over the classes."""
    plurality = histogram.argmax()
    gaps = np.delete(histogram[plurality] - histogram, plurality)
    tails = norm.logsf(gaps, scale=math.sqrt(2) * sigma)
    largest = tails.max()
    return min(largest + math.log(np.exp(tails - largest).sum()), math.log(1 - 1 / len(histogram)))


def bound_numpy(log_q_: float, sigma: float, orders: np.ndarray) -> np.ndarray:
    """Theorem 6 for one query, with NumPy over the orders."""
    variance = sigma**2
    cost = orders / variance
    mu2 = sigma * math.sqrt(-log_q_)
    mu1 = mu2 + 1
    if mu2 <= 1:
        return cost
    eps1, eps2 = mu1 / variance, mu2 / variance
    if log_q_ > (mu2 - 1) * eps2 - mu2 * (math.log(mu1 / (mu1 - 1)) + math.log(mu2 / (mu2 - 1))):
        return cost
    rest = log1mexp(log_q_)
    log_a = rest - log1mexp((log_q_ + eps2) * (1 - 1 / mu2))
    log_b = eps1 - log_q_ / (mu1 - 1)
    improved = np.logaddexp(rest + (orders - 1) * log_a, log_q_ + (orders - 1) * log_b) / (orders - 1)
    return np.where(orders <= mu1, np.minimum(cost, improved), cost)


def log_q_scalar(histogram: list[int], sigma: float) -> float:
    """Proposition 7 for one query, with math."""
    largest = max(histogram)
    plurality = histogram.index(largest)
    union = sum(math.erfc((largest - votes) / (2 * sigma)) / 2 for k, votes in enumerate(histogram) if k != plurality)
    return math.log(min(union, 1 - 1 / len(histogram)))


def bound_scalar(log_q_: float, sigma: float, order: float) -> float:
    """Theorem 6 for one query and one order, with math."""
    variance = sigma**2
    cost = order / variance
    mu2 = sigma * math.sqrt(-log_q_)
    mu1 = mu2 + 1
    if mu2 <= 1 or order > mu1:
        return cost
    eps1, eps2 = mu1 / variance, mu2 / variance
    if log_q_ > (mu2 - 1) * eps2 - mu2 * (math.log(mu1 / (mu1 - 1)) + math.log(mu2 / (mu2 - 1))):
        return cost
    rest = log1mexp(log_q_)
    first = rest + (order - 1) * (rest - log1mexp((log_q_ + eps2) * (1 - 1 / mu2)))
    second = log_q_ + (order - 1) * (eps1 - log_q_ / (mu1 - 1))
    low, high = min(first, second), max(first, second)
    return min(cost, (high + math.log1p(math.exp(low - high))) / (order - 1))


def vectorised(votes: np.ndarray, sigma: float, orders: np.ndarray) -> tuple[Callable, Callable]:
    return lambda: log_q(votes, sigma), lambda logs: data_dependent_rdp(logs, sigma, orders)


def numpy_over_orders(votes: np.ndarray, sigma: float, orders: np.ndarray) -> tuple[Callable, Callable]:
    return (
        lambda: np.array([log_q_numpy(histogram, sigma) for histogram in votes]),
        lambda logs: np.array([bound_numpy(value, sigma, orders) for value in logs.tolist()]),
    )


def double_loop(votes: np.ndarray, sigma: float, orders: np.ndarray) -> tuple[Callable, Callable]:
    histograms, grid = votes.tolist(), orders.tolist()
    return (
        lambda: np.array([log_q_scalar(histogram, sigma) for histogram in histograms]),
        lambda logs: np.array([[bound_scalar(value, sigma, order) for order in grid] for value in logs.tolist()]),
    )


SIDES = {
    "skfairdp": vectorised,
    "loop over queries, NumPy over orders": numpy_over_orders,
    "loop over queries and orders": double_loop,
}


def draw_votes(n_queries: int, n_classes: int, n_teachers: int, rng: np.random.Generator) -> np.ndarray:
    """Histograms from near-unanimous to undecided."""
    weights = np.full(n_classes, DISSENT / (n_classes - 1))
    weights[0] = CONSENSUS
    return rng.multinomial(n_teachers, rng.dirichlet(weights, size=n_queries))


def run(n_queries: int, n_classes: int, n_teachers: int, sigma: float, orders: np.ndarray, seed: int) -> dict:
    """Time every side in turn on the same votes, and compare what they return."""
    votes = draw_votes(n_queries, n_classes, n_teachers, np.random.default_rng(seed))
    seconds, tables = {}, {}
    for name, side in SIDES.items():
        logs_of, bounds_of = side(votes, sigma, orders)
        timed = []
        for _ in range(CALLS if name == "skfairdp" else 1):
            started = time.process_time()
            logs = logs_of()
            between = time.process_time()
            tables[name] = bounds_of(logs)
            timed.append((between - started, time.process_time() - between))
        seconds[name] = dict(zip(("log_q", "bound"), np.median(timed, axis=0).tolist(), strict=True))
    ours = tables["skfairdp"]
    return {
        "seed": seed,
        "cpu_seconds": seconds,
        "distinct_log_q": int(np.unique(log_q(votes, sigma)).size),
        "share_below_data_independent": float((ours < orders / sigma**2).mean()),
        "largest_relative_difference": max(
            float(np.abs(table / ours - 1).max()) for name, table in tables.items() if name != "skfairdp"
        ),
    }


def ratio(repetitions: list[dict], side: str, stages: tuple[str, ...]) -> float:
    """Median over repetitions of (CPU seconds of the side) / (CPU seconds of skfairdp)."""
    own = [sum(one["cpu_seconds"]["skfairdp"][stage] for stage in stages) for one in repetitions]
    other = [sum(one["cpu_seconds"][side][stage] for stage in stages) for one in repetitions]
    return float(np.median(np.divide(other, own)))


def main() -> None:
    parser = common.parser(__doc__, "data_dependent", seeds=5)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--orders", type=int, default=100, help="Rényi orders 2, 3, ...")
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--sigma", type=float, default=40.0)
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 2], help="one table row block each")
    arguments = parser.parse_args()
    n_queries = 200 if arguments.quick else arguments.queries
    orders = np.arange(2.0, 2.0 + arguments.orders)
    run(100, 3, arguments.teachers, arguments.sigma, orders, seed=0)  # imports and first calls

    cases, table = [], []
    for n_classes in arguments.classes:
        repetitions = [
            run(n_queries, n_classes, arguments.teachers, arguments.sigma, orders, seed)
            for seed in common.seeds_of(arguments)
        ]
        case: dict = {"n_classes": n_classes, "repetitions": repetitions, "times_as_fast": {}}
        for side in SIDES:
            medians = {
                stage: float(np.median([one["cpu_seconds"][side][stage] for one in repetitions]))
                for stage in ("log_q", "bound")
            }
            faster = {
                "votes_to_bound": ratio(repetitions, side, ("log_q", "bound")),
                "bound_alone": ratio(repetitions, side, ("bound",)),
            }
            case["times_as_fast"][side] = faster
            table.append(
                [
                    n_classes,
                    side,
                    f"{medians['log_q']:.4f}",
                    f"{medians['bound']:.4f}",
                    f"{faster['votes_to_bound']:.0f}×",
                    f"{faster['bound_alone']:.0f}×",
                ]
            )
        cases.append(case)
    print(f"{n_queries:,} queries × {orders.size} orders, {arguments.teachers} teachers, sigma {arguments.sigma:g}")
    common.print_table(
        ["classes", "side", "log q (CPU s)", "bound (CPU s)", "skfairdp faster, both", "bound alone"], table
    )
    for case in cases:
        worst = max(one["largest_relative_difference"] for one in case["repetitions"])
        reached = case["times_as_fast"]["loop over queries, NumPy over orders"]["votes_to_bound"]
        distinct = int(np.median([one["distinct_log_q"] for one in case["repetitions"]]))
        print(
            f"{case['n_classes']} classes: {distinct} distinct q; {reached:.0f}× the public way "
            f"(to reach: {TO_REACH:.0f}×); results differ by at most {worst:.1e} relative"
        )
    common.save(
        arguments,
        n_queries=n_queries,
        n_orders=int(orders.size),
        n_teachers=arguments.teachers,
        sigma=arguments.sigma,
        cases=cases,
        to_reach={"votes_to_bound_against_the_public_way": TO_REACH},
    )


if __name__ == "__main__":
    main()
