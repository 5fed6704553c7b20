"""Accuracy and fairness under attribute privacy: PF-LD beside randomised response, with and without its bias.

    python benchmarks/bench_pfld.py --data adult

70 / 5 / 25 % of the rows are private, public and test; the encoder sees public rows only, the group is not a feature,
δ = 1e-5. ε protects the group of one training row; features and labels are public. The peers: model M (randomised
response, then fairlearn's ExponentiatedGradient on the released groups) and *debiased* randomised response, whose
released groups train the very network and multipliers of PF-LD, read without bias. Zafar's classifier (Zafar et al.
2017), which the paper has beside its own, is fair and not private. All figures are of test rows.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np
from bench_utility import CLASSES, DELTA, FAIREST, summarise

EPSILONS = (0.5, 1.0, 3.0)
LAMS = (0.1, 0.25, 0.5, 5.0)
BOUNDS = (0.005, 0.02, 0.05, 0.1)
SHARES = (0.0, 0.25, 0.5, 1.0)
OURS, GRADIENT, PUBLIC, MODEL_M, DEBIASED, ZAFAR = (
    "PF-LD",
    "PF-LD, noisy gradients",
    "F-LD",
    "model M",
    "debiased randomised response",
    "Zafar",
)


def estimator(epsilon: float | None, lam: float, groups: list[Any], seed: int, **settings: Any) -> Any:
    """Return PF-LD with its defaults: only ε and the largest multiplier are given."""
    from skfairdp import PFLDClassifier

    return PFLDClassifier(epsilon=epsilon, delta=DELTA, lam_max=lam, groups=groups, random_state=seed, **settings)


class DebiasedNetwork:
    """The network and multipliers of PF-LD, on groups released by randomised response.

    Primal steps read the signed weights that undo the channel on average. Multipliers follow the released groups as
    they are: equal rates of those mean equal rates of the true ones.
    """

    def __init__(self, epsilon: float, lam: float, groups: list[Any], seed: int) -> None:
        self.epsilon, self.lam, self.groups, self.seed = epsilon, lam, groups, seed

    def fit(self, X: Any, y: Any, sensitive_features: Any) -> "DebiasedNetwork":
        from skfairdp._column_tables import scaled_by_public_rows
        from skfairdp._networks import behind, prepare_network
        from skfairdp.baselines import GroupRandomizer
        from skfairdp.fairness import FairnessConstraints
        from skfairdp.lagrangian._dual_ascent import LagrangianTraining
        from skfairdp.lagrangian._plan import PFLDPlan
        from skfairdp.lagrangian._trainer import train_lagrangian
        from skfairdp.privacy import NoiseSource

        like = estimator(self.epsilon, self.lam, self.groups, self.seed)  # for its defaults
        randomizer = GroupRandomizer(epsilon=self.epsilon, groups=self.groups)
        released = np.asarray(randomizer.release(sensitive_features))
        codes = np.array([self.groups.index(group) for group in released])
        weights = randomizer.weights(released)
        self.epsilon_certified = randomizer.privacy_.epsilon
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=np.int64)
        names = ("lam_max", "dual_step", "dual_steps", "average_last", "violations")
        net = like._net(len(X))
        given = {name: getattr(like, name) for name in names}
        training = LagrangianTraining(epochs=net.max_epochs, batch_size=net.batch_size, **given)
        network = prepare_network(net, X.shape[1], 2, seed=self.seed, owner=DEBIASED)
        rows, scales = scaled_by_public_rows(net, network.tensor(X), 2)
        plan = PFLDPlan.without_privacy(n_groups=len(self.groups), primal_steps=1, dual_steps=like.dual_steps)
        parity, source = FairnessConstraints(["demographic_parity"], y, 2), NoiseSource()
        module, _ = train_lagrangian(
            network,
            rows,
            y,
            parity,
            parity.sizes(np.maximum(weights.sum(0), 1.0)[:, None]),
            training,
            violations=lambda h: plan.release_violations(h, parity.cells, parity.n_cells, codes, source),
            membership=weights,
            make_optimizer=net.make_optimizer,
            seed=self.seed,
        )
        self.net = behind(scales, module)
        return self

    def predict(self, X: Any) -> Any:
        from skfairdp._networks import predict_logits

        return np.array(CLASSES)[predict_logits(self.net, np.asarray(X, dtype=float)).argmax(axis=1)]


class ZafarClassifier:
    """Logistic regression whose scores may covary with a group by no more than a share of what they do without this.

    Zafar et al. (2017), Fairness constraints: mechanisms for fair classification, Equation 4. It is not private.

    Parameters
    ----------
    share : float
        1 is logistic regression, 0 allows no covariance with any group.
    """

    def __init__(self, share: float) -> None:
        self.share = share

    def fit(self, X: Any, y: Any, sensitive_features: Any) -> "ZafarClassifier":
        from scipy.optimize import minimize
        from scipy.special import expit
        from sklearn.linear_model import LogisticRegression

        self.free = LogisticRegression(solver="newton-cholesky").fit(X, y)
        X, truth = np.asarray(X, dtype=float), np.asarray(y) == CLASSES[1]
        groups = np.asarray(sensitive_features)
        members = np.stack([groups == group for group in np.unique(groups)[1:]]).astype(float)
        covary = (members - members.mean(axis=1, keepdims=True)) @ X / len(X)
        start = np.append(self.free.coef_[0], self.free.intercept_)

        def loss(weights: Any) -> Any:
            scores = X @ weights[:-1] + weights[-1]
            apart = (expit(scores) - truth) / len(X)
            ridge = weights[:-1] / len(X)
            value = np.logaddexp(0, scores).mean() - scores[truth].sum() / len(X) + ridge @ weights[:-1] / 2
            return value, np.append(X.T @ apart + ridge, apart.sum())

        bounds = self.share * np.abs(covary @ start[:-1]) + 1e-9
        sides = [
            {"type": "ineq", "fun": lambda w, s=s: bounds - s * (covary @ w[:-1]),
             "jac": lambda w, s=s: np.column_stack([-s * covary, np.zeros(len(covary))])}
            for s in (1, -1)
        ]  # fmt: skip
        found = minimize(loss, start, jac=True, method="SLSQP", constraints=sides, options={"maxiter": 500})
        if not found.success:
            raise RuntimeError(f"Zafar's problem was not solved: {found.message}")
        self.weights = found.x
        return self

    def predict(self, X: Any) -> Any:
        scores = np.asarray(X, dtype=float) @ self.weights[:-1] + self.weights[-1]
        return np.array(CLASSES)[(scores > 0).astype(int)]


def points_of(
    split: Any, seed: int, epsilons: tuple[float, ...], lams: tuple, bounds: tuple, gradients: bool
) -> Iterator[dict]:
    """Yield the measured points of every method on one split."""
    groups = sorted(set(split.sensitive_features))
    given = {"sensitive_features": split.sensitive_features}

    def measured(method: str, epsilon: float | None, knob: float, make: Any) -> dict:
        started = time.perf_counter()
        model, certified = make()
        point = {
            "method": method,
            "epsilon": epsilon,
            "epsilon_certified": certified,
            "gamma": knob,
            "idp3": None,
            "seconds": time.perf_counter() - started,
        }
        return point | common.measure(model.predict(split.X_test), split)

    def ours(epsilon: float | None, lam: float, **settings: Any) -> Any:
        model = estimator(epsilon, lam, groups, seed, **settings).fit(split.X, split.y, **given)
        return model, None if epsilon is None else model.privacy_.epsilon

    def debiased(epsilon: float, lam: float) -> Any:
        model = DebiasedNetwork(epsilon, lam, groups, seed).fit(split.X, split.y, split.sensitive_features)
        return model, model.epsilon_certified

    def model_m(epsilon: float, bound: float) -> Any:
        from fairlearn.reductions import DemographicParity, ExponentiatedGradient
        from sklearn.linear_model import LogisticRegression

        from skfairdp import RandomizedResponseClassifier

        reduction = ExponentiatedGradient(
            LogisticRegression(solver="newton-cholesky"), DemographicParity(difference_bound=bound)
        )
        model = RandomizedResponseClassifier(
            fair_estimator=reduction, epsilon=epsilon, debias=False, groups=groups, random_state=seed
        ).fit(split.X, split.y, **given)
        return model, model.privacy_.epsilon

    for allowed in SHARES[1:2] if len(bounds) == 1 else SHARES:
        zafar = ZafarClassifier(allowed)
        yield measured(ZAFAR, None, allowed, lambda m=zafar: (m.fit(split.X, split.y, **given), None))
    for lam in lams:
        yield measured(PUBLIC, None, lam, lambda lam=lam: ours(None, lam))
    for epsilon in epsilons:
        for lam in lams:
            yield measured(OURS, epsilon, lam, lambda e=epsilon, lam=lam: ours(e, lam))
            if gradients:
                yield measured(GRADIENT, epsilon, lam, lambda e=epsilon, lam=lam: ours(e, lam, primal="gradient"))
            yield measured(DEBIASED, epsilon, lam, lambda e=epsilon, lam=lam: debiased(e, lam))
        for bound in bounds:
            yield measured(MODEL_M, epsilon, bound, lambda e=epsilon, b=bound: model_m(e, b))


def hypervolumes(points: list[dict], majority: dict[int, float]) -> list[dict]:
    """Volume of {(accuracy, 1 − disparity)} over the knob beyond (accuracy of the majority class, 0.8), by seed."""
    from skfairdp.model_selection import hypervolume

    rows = []
    for method, epsilon in dict.fromkeys((p["method"], p["epsilon"]) for p in points):
        volumes = []
        for seed, largest_class in majority.items():
            mine = [
                (p["accuracy"], 1 - p["disparity"])
                for p in points
                if (p["method"], p["epsilon"], p["seed"]) == (method, epsilon, seed)
            ]
            volumes.append(hypervolume(mine, (largest_class, FAIREST), minimize=False))
        rows.append({"method": method, "epsilon": epsilon, "hypervolume": common.summary(volumes), "by_seed": volumes})
    return rows


def main() -> None:
    parser = common.parser(__doc__, "pfld", seeds=5, first_seed=100, data=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--gradients", action="store_true", help="also release a gradient per primal step (slow)")
    arguments = parser.parse_args()
    common.quiet_fairness()
    warnings.filterwarnings("ignore", module="fairlearn")
    data = arguments.data or common.default_data()
    share = 0.05 if arguments.quick else 1.0
    epsilons = (1.0,) if arguments.quick else tuple(arguments.epsilons)
    lams, bounds = (LAMS[-1:], BOUNDS[1:2]) if arguments.quick else (LAMS, BOUNDS)
    gradients = arguments.gradients or arguments.quick
    points: list[dict] = []
    majority: dict[int, float] = {}
    for seed in common.seeds_of(arguments):
        split = common.load_split(data, seed, share=share)
        majority[seed] = float(max(np.mean(np.asarray(split.y_test) == label) for label in CLASSES))
        points += [{"seed": seed, **point} for point in points_of(split, seed, epsilons, lams, bounds, gradients)]
        common.tell_split(seed, split)
    table = summarise(points)
    volumes = hypervolumes(points, majority)
    print()
    common.print_table(
        ["method", "ε certified", "λ or bound", "accuracy", "gap", "EO gap", "seconds"],
        [
            [
                row["method"],
                "none" if row["epsilon"] is None else f"{row['epsilon_certified']:.3f}",
                f"{row['gamma']:g}",
                *(common.plus_minus(row[name]) for name in ("accuracy", "disparity", "eo_disparity")),
                common.plus_minus(row["seconds"], 1),
            ]
            for row in table
        ],
    )
    print()
    common.print_table(
        ["method", "ε", "hypervolume"],
        [[row["method"], row["epsilon"] or "none", common.plus_minus(row["hypervolume"], 4)] for row in volumes],
    )
    common.save(
        arguments,
        name=f"pfld_{data}",
        data=data,
        **common.sizes(split),
        delta=DELTA,
        protects="sensitive attribute (change the group of one record)",
        rows=table,
        hypervolumes=volumes,
        hypervolume_reference={"accuracy": common.summary(list(majority.values())), "fairness": FAIREST},
    )


if __name__ == "__main__":
    main()
