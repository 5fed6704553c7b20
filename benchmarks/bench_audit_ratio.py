"""How much of the certified ε an auditor can prove: by method, at ε of 1, 2, 4 and 8.

    python benchmarks/bench_audit_ratio.py --help

Worlds differ in a record made for the method: the pair for which its releases lie as far apart as the accounting
allows, as far as a record can bring that about. One whole fit is recorded on D; a fit on D' is replayed along the
outputs of D (``_recorded.py``). So the values that go into each release are known in both worlds, and the mechanisms
then release both again and again. All lower bounds of a run hold together with 95 % confidence, and none may pass the
certified ε. Noise is seeded: a run can be repeated bit for bit.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import _common as common
import numpy as np
from _recorded import matched_scores, recorded, shift_of
from scipy.stats import norm

DELTA = 1e-5
CONFIDENCE = 0.95  # of all lower bounds together
EPSILONS = (1.0, 2.0, 4.0, 8.0)
BOUNDS_IN_A_CELL = 3
CLIP, SLOW = 0.5, 1e-6


@dataclass
class Found:
    """What one audit has to say about one method at one ε."""

    certified: float
    pair: float  # ε of the attacked pair, the most that this attack could prove
    lower: float
    assumes: str
    n_runs: int
    free: float | None = None  # distribution-free, from the same runs
    recorded: float | None = None  # from the noise of the one recorded fit
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    n_draws: int
    confidence: float
    seed: int


# ---------------------------------------------------------------- Gaussian releases of a whole fit


def gaussian(fits: Callable[[float], tuple[Callable[[], Any], Callable[[], Any]]]) -> Callable[..., Found]:
    """An audit of a fit all of whose releases are Gaussian."""

    def audit(epsilon: float, setting: Setting) -> Found:
        from skfairdp.inspection import audit_known_shift, audit_matched_filter
        from skfairdp.privacy import gdp_epsilon

        releases, model = recorded(*fits(epsilon), setting.seed)
        certified = model.privacy_.mechanism_epsilon
        shift = shift_of(releases)
        scores = matched_scores(releases, setting.n_draws, setting.seed + 1)
        sharp, free = (
            audit_matched_filter(*scores, confidence=setting.confidence, method=method) for method in ("gdp", "band")
        )
        residuals = np.concatenate([release.residuals for release in releases])
        known = audit_known_shift(shift, residuals, confidence=setting.confidence)
        return Found(
            certified,
            gdp_epsilon(shift, DELTA),
            sharp.epsilon_lower(DELTA),
            "Gaussian scores",
            setting.n_draws,
            free.epsilon_lower(DELTA),
            known.epsilon_lower(DELTA),
            {"releases": len(releases), "residuals": residuals.size, "mu_hat": sharp.mu_hat, "shift": shift},
        )

    return audit


def two(make: Callable[[Any], Callable[[], Any]], first: Any, second: Any) -> tuple[Any, Any]:
    return make(first), make(second)


def votes(n_classes: int, voting: str = "soft") -> Callable[[float], Any]:
    """PATE: the label of the only row of one teacher turns."""
    from sklearn.dummy import DummyClassifier

    from skfairdp import PATEClassifier, PublicData

    def fits(epsilon: float) -> Any:
        def make(label: int) -> Callable[[], Any]:
            model = PATEClassifier(
                epsilon=epsilon,
                delta=DELTA,
                classes=list(range(n_classes)),
                n_teachers=11,
                voting=voting,
                student=DummyClassifier(strategy="uniform", random_state=0),
                random_state=0,
            )
            labels = np.append(np.arange(10) % 2, label)
            public = PublicData(np.zeros((40, 1)), np.arange(40) % 2)
            return lambda: model.fit(np.zeros((11, 1)), labels, X_public=public)

        return two(make, 0, 1)

    return fits


def poisoned_votes(epsilon: float) -> Any:
    """PATE of nearest neighbours, all queries at the poisoned record (Chadha et al. 2024)."""
    from sklearn.dummy import DummyClassifier
    from sklearn.neighbors import KNeighborsClassifier

    from skfairdp import PATEClassifier, PublicData
    from skfairdp.inspection import poisoned_queries

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.arange(120) % 2
    canary, queries = poisoned_queries(X, n_queries=40, labels=(0, 1))

    def make(record: Any) -> Callable[[], Any]:
        table, labels = X.copy(), y.copy()
        table[canary.row], labels[canary.row] = record[:2]
        model = PATEClassifier(
            epsilon=epsilon,
            delta=DELTA,
            classes=[0, 1],
            n_teachers=12,
            teacher=KNeighborsClassifier(1),
            student=DummyClassifier(strategy="uniform", random_state=0),
            random_state=0,
        )
        return lambda: model.fit(table, labels, X_public=PublicData(queries, np.arange(40) % 2))

    return two(make, canary.first, canary.second)


def fair_votes(epsilon: float) -> Any:
    """SF-PATE: the group of the only row of one teacher turns, and the teacher answers its group."""
    from bench_audit import GroupsAnswer

    from skfairdp import SFPATEClassifier
    from skfairdp.pate import SoftVoting

    def make(group: int) -> Callable[[], Any]:
        model = SFPATEClassifier(
            epsilon=epsilon,
            delta=DELTA,
            classes=[0, 1],
            groups=[0, 1],
            n_teachers=11,
            fair_estimator=GroupsAnswer(),
            voting=SoftVoting(max_queries=11),
            random_state=0,
        )
        groups = np.append(np.arange(10) % 2, group)
        return lambda: model.fit(np.zeros((11, 1)), np.arange(11) % 2, sensitive_features=groups)

    return two(make, 0, 1)


def private_sgd(lam: float = 0.0, **options: Any) -> Callable[[float], Any]:
    """FairDPSGD, all rows in each batch: a row with a feature of its own and a clipped gradient is there or not."""
    from skfairdp import FairDPSGDClassifier, PublicData
    from skfairdp.gradient import mlp

    n = 20
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 4)), np.arange(n) // 2 % 2
    X[:, -1] = 0.0
    # This far on this side the network and the most frequent class disagree, so the second look is moved as well.
    X[-1] = [0.0, 0.0, 0.0, -1000.0]
    public = PublicData(np.column_stack([rng.normal(size=(30, 3)), np.zeros(30)]), np.arange(30) % 2)

    def fits(epsilon: float) -> Any:
        def make(rows: int) -> Callable[[], Any]:
            model = FairDPSGDClassifier(
                epsilon=epsilon,
                delta=DELTA,
                net=mlp((), batch_size=n, max_epochs=10, lr=SLOW, optimizer__average_last=0.0),
                classes=[0, 1],
                public_n_rows=n,
                max_grad_norm=CLIP,
                random_state=0,
                lam=lam,
                **options,
            )
            return lambda: model.fit(X[:rows], y[:rows], X_public=public)

        return two(make, n - 1, n)

    return fits


def lagrangian(primal: str) -> Callable[[float], Any]:
    """PF-LD: the group turns of the row with the longest public features and the largest violation."""
    from skfairdp.lagrangian import PFLDClassifier, mlp

    n = 400
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    X[:, 0] -= 1.0  # few others are in the class of the canary, enough for the network to learn it at every step
    y = (X[:, 0] > -0.5).astype(int)
    X[0], y[0] = 60.0, 1
    groups = rng.integers(0, 2, n)

    def fits(epsilon: float) -> Any:
        def make(group: int) -> Callable[[], Any]:
            model = PFLDClassifier(
                epsilon=epsilon,
                delta=DELTA,
                classes=[0, 1],
                groups=[0, 1],
                primal=primal,
                net=mlp(max_epochs=4),
                random_state=0,
                budget_split=None if primal == "group_model" else {"sizes": 0.02, "primal": 0.08, "dual": 0.9},
            )
            given = np.append(group, groups[1:])
            return lambda: model.fit(X, y, sensitive_features=given)

        return two(make, 0, 1)

    return fits


def marginals(structure: str) -> Callable[[float], Any]:
    """PFGuard's tables: a record that differs in every column, and turns from a rare combination to a common one."""
    from skfairdp import PFGuardGenerator
    from skfairdp.generative import MarginalsBackend

    n = 4000
    level = np.array([-1.5, -0.5, 0.5, 1.5])
    table = np.repeat(level[np.arange(n) % 4, None], 3, axis=1)  # columns agree
    labels, groups = np.arange(n) // 4 % 2, np.arange(n) // 8 % 2

    def fits(epsilon: float) -> Any:
        def make(record: Any) -> Callable[[], Any]:
            model = PFGuardGenerator(
                backend=MarginalsBackend(structure=structure),
                epsilon=epsilon,
                delta=DELTA,
                bounds=(-2.0, 2.0),
                classes=[0, 1],
                groups=[0, 1],
                random_state=0,
            )
            X, y, s = table.copy(), labels.copy(), groups.copy()
            X[0], y[0], s[0] = record
            return lambda: model.fit(X, y, sensitive_features=s)

        return two(make, (level[:3], 0, 0), (level[[3, 3, 3]], 1, 1))

    return fits


def mean_gradients(epsilon: float) -> Any:
    """GS-WGAN with all discriminators: what its plan releases, where one discriminator turns all its gradients.

    A record cannot turn the gradients of a network at will, so this is the pair of the accounting, not of a fit.
    """
    from types import SimpleNamespace

    from skfairdp.papers._adversarial import MeanGradient
    from skfairdp.privacy import PrivacySpent, Spending, calibrate_noise, epsilon_of

    teachers, batch, width = 20, 8, 4
    sigma = calibrate_noise(lambda noise: MeanGradient(teachers, batch, 1.0, noise).event, epsilon, DELTA)
    mechanism = MeanGradient(teachers, batch, 1.0, sigma)
    gradients = np.zeros((teachers, batch, width))
    gradients[..., 0] = -1.0

    def make(sign: float) -> Callable[[], Any]:
        def fit() -> Any:
            from skfairdp.privacy import NeighboringRelation

            given = gradients.copy()
            given[0, :, 0] = sign
            spending = Spending(mechanism.event, DELTA, NeighboringRelation.REPLACE_ONE, label="a step")
            with spending as noise:
                mechanism.release(given, noise)
            assert isinstance(spending.report, PrivacySpent)
            return SimpleNamespace(privacy_=SimpleNamespace(mechanism_epsilon=epsilon_of(mechanism.event, DELTA)))

        return fit

    return two(make, -1.0, 1.0)


# ---------------------------------------------------------------- bits


def bits(make: Callable[[float], Any]) -> Callable[..., Found]:
    """An audit of answers that are drawn independently, from the values of the pair of votes that tells most."""

    def audit(epsilon: float, setting: Setting) -> Found:
        from skfairdp.inspection import audit_count_statistic
        from skfairdp.inspection._audit_worlds import bits_epsilon

        certified, n_queries, draw, p_0, p_1 = make(epsilon)
        n_runs = setting.n_draws // n_queries
        worlds = [draw(world, n_runs * n_queries, setting.seed).reshape(n_runs, n_queries) for world in (0, 1)]
        sharp, free = (
            audit_count_statistic(*worlds, label=1, confidence=setting.confidence, method=method)
            for method in ("bits", "band")
        )
        return Found(
            certified,
            bits_epsilon(p_0, p_1, n_queries, DELTA),
            sharp.epsilon_lower(DELTA),
            "independent answers",
            n_runs,
            free.epsilon_lower(DELTA),
            more={"queries": n_queries, "probabilities": [p_0, p_1]},
        )

    return audit


def plan_of(voting: str, epsilon: float, n_teachers: int, n_queries: int) -> Any:
    from skfairdp.pate import ConfidentVoting, GNMaxVoting, SoftVoting

    parts: dict[str, Any] = {
        "soft": SoftVoting(),
        "gnmax": GNMaxVoting(),
        "confident": ConfidentVoting(max_answers=n_queries),
    }
    votes = {"n_queries": n_queries, "n_teachers": n_teachers, "n_classes": 2}
    return parts[voting].plan(epsilon=epsilon, delta=DELTA, **votes)


def winners(n_teachers: int, n_queries: int) -> Callable[[float], Any]:
    """GNMax of two classes: the pair of neighbouring votes whose answers, all alike, tell most."""

    def make(epsilon: float) -> Any:
        from skfairdp.inspection._audit_worlds import bits_epsilon
        from skfairdp.privacy import NoiseSource, epsilon_of

        plan = plan_of("gnmax", epsilon, n_teachers, n_queries)
        mechanism = plan.maximum
        ones = norm.cdf((2 * np.arange(n_teachers + 1) - n_teachers) / (np.sqrt(2) * mechanism.sigma))
        votes = int(np.argmax([bits_epsilon(ones[v], ones[v + 1], n_queries, DELTA) for v in range(n_teachers)]))

        def draw(world: int, n: int, seed: int) -> np.ndarray:
            source, ones_now = NoiseSource(seed + world), votes + world
            return np.array([mechanism.noisy(source, [n_teachers - ones_now, ones_now]) for _ in range(n)])

        return epsilon_of(plan.event, DELTA), n_queries, draw, ones[votes], ones[votes + 1]

    return make


def confident(n_teachers: int) -> Callable[[float], Any]:
    """A confident vote on one query: unanswered, 0 or 1; the event of these that tells most, of the worst pair."""

    def make(epsilon: float) -> Any:
        from skfairdp.inspection._audit_worlds import bits_epsilon
        from skfairdp.privacy import NoiseSource, epsilon_of

        plan = plan_of("confident", epsilon, n_teachers, 1)
        ones = np.arange(n_teachers + 1)
        most = np.maximum(ones, n_teachers - ones)
        asked = norm.cdf((most - plan.bit.threshold) / plan.bit.sigma)
        wins = norm.cdf((2 * ones - n_teachers) / (np.sqrt(2) * plan.maximum.sigma))
        law = np.column_stack([1 - asked, asked * (1 - wins), asked * wins])
        events = [np.array(event) for event in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))]
        pairs = [
            (v, v + step, event) for v in ones for step in (-1, 1) if 0 <= v + step <= n_teachers for event in events
        ]

        def strength(pair: Any) -> float:
            low, high = (float(law[v, pair[2]].sum()) for v in pair[:2])
            return bits_epsilon(low, high, 1, DELTA)

        first, second, event = max(pairs, key=strength)

        def draw(world: int, n: int, seed: int) -> np.ndarray:
            source, v = NoiseSource(seed + world), (first, second)[world]
            answered = plan.bit.noisy(source, np.full(n, most[v]))
            won = np.array([plan.maximum.noisy(source, [n_teachers - v, v]) for _ in range(n)])
            return np.isin(np.where(answered, 1 + won, 0), event).astype(int)

        low, high = (float(law[v, event].sum()) for v in (first, second))
        return epsilon_of(plan.event, DELTA), 1, draw, low, high

    return make


# ---------------------------------------------------------------- one fit, a canary in each row


def randomised_response(epsilon: float, setting: Setting) -> Found:
    """Each row is a canary: was its group 0 or 1? The answers of one fit are its guesses."""
    from skfairdp import RandomizedResponseClassifier
    from skfairdp.inspection import audit_one_run

    n = 400_000
    coins = np.random.default_rng([setting.seed, 1]).random(n) < 0.5  # not the stream of the noise
    model = RandomizedResponseClassifier(epsilon=epsilon, groups=[0, 1], classes=[0, 1], random_state=0)
    X, y = np.zeros((n, 1)), np.arange(n) % 2

    def fit() -> Any:
        return model.fit(X, y, sensitive_features=coins.astype(int))

    releases, fitted = recorded(fit, fit, setting.seed)
    answers = np.asarray(releases[0].output)
    found = audit_one_run(answers, coins, delta=0.0, confidence=setting.confidence, n_guesses=n)
    certified = fitted.privacy_.mechanism_epsilon
    return Found(certified, certified, found.epsilon_lower, "nothing", 1, found.epsilon_lower, more={"canaries": n})


# ---------------------------------------------------------------- Poisson batches


def poisson_sgd(epsilon: float, setting: Setting) -> Found:
    """DP-SGD with secret batches: the likelihood ratio of what its steps release along the canary's gradient.

    The batches come from the plan's own sampler, the noise from its own mechanism. Limits of the error rates refute
    claims of the family "Poisson-sampled Gaussian with this rate and so many steps"; the figure is the ε of the
    smallest noise that they refute.
    """
    from skfairdp._networks import DPStep
    from skfairdp.inspection._audit_worlds import rates_epsilon, rates_of_band
    from skfairdp.privacy import NoiseSource, PoissonSample

    step = DPStep.calibrated(epsilon=epsilon, delta=DELTA, n_rows=20, batch_size=4, epochs=2, max_grad_norm=CLIP)
    q, source = step.sampling_probability, NoiseSource(setting.seed)
    scores = np.zeros((2, setting.n_draws))
    for world in (0, 1):
        for _ in range(step.steps):
            present = np.zeros(setting.n_draws)
            if world:
                present[PoissonSample(q).draw(setting.n_draws, source)] = step.max_grad_norm
            seen = step.sums.noisy(source, present) / step.max_grad_norm
            ratio = (seen - 0.5) / step.noise_multiplier**2
            scores[world] += np.logaddexp(np.log1p(-q), np.log(q) + ratio)
    rates = rates_of_band(scores[0], scores[1], setting.confidence)
    certified, lower = _smallest_refuted_noise(step, rates)
    return Found(
        certified,
        certified,
        lower,
        "the curve of sampled Gaussians",
        setting.n_draws,
        rates_epsilon(rates, DELTA),
        more={"steps": step.steps, "sampling_probability": q},
    )


def _smallest_refuted_noise(step: Any, rates: Any) -> tuple[float, float]:
    """ε of the plan, and of the smallest noise whose trade-off curve these error rates contradict."""
    import dp_accounting
    from dp_accounting import pld

    from skfairdp.privacy import epsilon_of

    grid = np.linspace(0, 12, 241)

    def event(noise: float) -> Any:
        sampled = dp_accounting.PoissonSampledDpEvent(step.sampling_probability, dp_accounting.GaussianDpEvent(noise))
        return dp_accounting.SelfComposedDpEvent(sampled, step.steps)

    def refuted(noise: float) -> bool:
        accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
        accountant.compose(event(noise))
        deltas = np.array([accountant.get_delta(epsilon) for epsilon in grid])
        return any(
            np.any(1 - second > np.exp(grid) * first + deltas) for pair in rates for first, second in (pair, pair[::-1])
        )

    low, high = step.noise_multiplier, 1.02 * step.noise_multiplier
    if refuted(low):
        return epsilon_of(step.event, DELTA), float("inf")
    while not refuted(high):
        low, high = high, 1.1 * high
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return epsilon_of(step.event, DELTA), epsilon_of(event(high), DELTA)


# ---------------------------------------------------------------- one fit, many canaries


def one_fit(epsilon: float, confidence: float, seed: int, n_canaries: int) -> dict[str, Any]:
    """One full-batch step of FairDPSGD on canaries that each have a weight of their own, in by a coin each."""
    import torch
    from bench_audit_dpsgd import fit_on_canaries

    from skfairdp.inspection import audit_one_run, audit_one_run_f_dp, audit_one_run_gaussian

    torch.set_num_threads(1)
    included = np.random.default_rng([seed, 1]).random(n_canaries) < 0.5  # not the stream of the noise
    model, scores = fit_on_canaries(included, epsilon, clip=CLIP, noise_seed=seed)
    each = 1 - (1 - confidence) / 3
    lower = {
        "steinke": audit_one_run(scores, included, delta=DELTA, confidence=each).epsilon_lower,
        "f_dp": audit_one_run_f_dp(scores, included, delta=DELTA, confidence=each).epsilon_lower,
        "gaussian": audit_one_run_gaussian(scores, included, confidence=each).epsilon_lower(DELTA),
    }
    return {
        "epsilon": epsilon,
        "n_canaries": n_canaries,
        "epsilon_certified": model.privacy_.mechanism_epsilon,
        "epsilon_lower": lower,
    }


# ---------------------------------------------------------------- the table


def cases() -> dict[str, Callable[..., Found]]:
    """Methods in the order of the table. The last words name the attacked pair where it is not obvious."""
    return {
        "DP-SGD": gaussian(private_sgd()),
        "DP-SGD, fair": gaussian(private_sgd(1.0)),
        "DP-SGD, Poisson batches": poisson_sgd,
        "PATE, soft votes": gaussian(votes(2)),
        "PATE, soft votes, three classes": gaussian(votes(3)),
        "PATE, soft votes, poisoned record": gaussian(poisoned_votes),
        "SF-PATE, soft votes": gaussian(fair_votes),
        "PF-LD, group model and dual": gaussian(lagrangian("group_model")),
        "PF-LD, dual with 90 % of the budget": gaussian(lagrangian("gradient")),
        "PFGuard, marginals": gaussian(marginals("tree")),
        "PFGuard, marginals without a tree": gaussian(marginals("star")),
        "GS-WGAN, mean gradient": gaussian(mean_gradients),
        "Randomised response": randomised_response,
        "PATE, winners of 3 teachers, one query": bits(winners(3, 1)),
        "PATE, winners of 101 teachers, 10 queries": bits(winners(101, 10)),
        "PATE, confident votes of 3 teachers, one query": bits(confident(3)),
    }


def main() -> None:
    parser = common.parser(__doc__, "audit_ratio")
    parser.add_argument("--draws", type=int, default=200_000, help="releases in each world (default: 200000)")
    parser.add_argument("--canaries", type=int, default=20_000, help="in the fits with many (default: 20000)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    everything, epsilons = cases(), EPSILONS
    n_draws, n_canaries = arguments.draws, arguments.canaries
    if arguments.quick:
        everything = {name: everything[name] for name in list(everything)[3::6]}
        epsilons, n_draws, n_canaries = (4.0,), 2000, 500
    n_bounds = BOUNDS_IN_A_CELL * len(epsilons) * (len(everything) + 1)
    setting = Setting(n_draws, 1 - (1 - CONFIDENCE) / n_bounds, arguments.seed)
    rows = []
    for name, audit in everything.items():
        for epsilon in epsilons:
            clock = time.process_time()
            found = audit(epsilon, setting)
            best = max(found.lower, found.recorded or 0.0, found.free or 0.0)
            rows.append(
                {
                    "method": name,
                    "epsilon": epsilon,
                    "epsilon_certified": found.certified,
                    "epsilon_pair": found.pair,
                    "epsilon_lower": found.lower,
                    "ratio": found.lower / found.certified,
                    "assumes": found.assumes,
                    "n_runs": found.n_runs,
                    "epsilon_lower_free": found.free,
                    "epsilon_lower_recorded": found.recorded,
                    "largest_ratio": best / found.certified,
                    "cpu_seconds": time.process_time() - clock,
                    **found.more,
                }
            )
            print(f"{name}, ε = {epsilon:g}: {found.lower:.3f} of {found.certified:.3f}", flush=True)
    level = 1 - 3 * (1 - setting.confidence)  # its three bounds share what three bounds of a cell have
    single = [one_fit(epsilon, level, arguments.seed, n_canaries) for epsilon in epsilons]
    print()
    common.print_table(
        ["method", "ε certified", "of the pair", "at least", "ratio", "distribution-free", "one fit", "assumes"],
        [
            [
                row["method"],
                f"{row['epsilon_certified']:.3f}",
                f"{row['epsilon_pair']:.3f}",
                f"{row['epsilon_lower']:.3f}",
                f"{row['ratio']:.2f}",
                _figure(row["epsilon_lower_free"]),
                _figure(row["epsilon_lower_recorded"]),
                row["assumes"],
            ]
            for row in rows
        ],
    )
    for row in single:
        print(row)
    worst = max(row["largest_ratio"] for row in rows)
    print(f"largest ratio {worst:.3f} (never above 1)")
    common.save(
        arguments,
        noise="seeded",
        seeds=[arguments.seed],
        draws=n_draws,
        delta=DELTA,
        confidence=CONFIDENCE,
        rows=rows,
        one_fit=single,
        to_reach={"ratio_at_most": 1.0, "ratio_at_least": 0.8},
    )


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
