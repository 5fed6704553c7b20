"""Time of an epoch of PF-LD against the same network without privacy and without fairness.

    python benchmarks/bench_pfld_speed.py

Violations are released twice an epoch, as by default (40 in 20 epochs). ``sampling="poisson"`` has a sample as large,
on average, as the public batch, and two kinds of epoch: ten noisy gradients, as by default (200 in 20 epochs), each
followed until the next, and with a noisy gradient at every step. Beside the latter stands what its secret samples and
its noise take alone, without any network. Trainings are timed in turns, so that whatever else the machine does hits all
alike; ratios are medians over repetitions.
"""

import time
from dataclasses import replace
from typing import Any

import _common as common
import numpy as np

N_ROWS, N_FEATURES, WIDTH = 30_000, 50, 64
# Seconds an epoch in Table 1 of the PF-LD paper (Bank, its machine), by layers and batch: plain, F-LD, PF-LD.
PAPER = {
    (2, 64): (0.19, 0.25, 3.3),
    (2, 256): (0.11, 0.16, 5.7),
    (10, 64): (0.41, 0.47, 7.0),
    (10, 256): (0.17, 0.20, 11.8),
}


def trainers(n_groups: int, batch_size: int, n_layers: int, n_rows: int, epochs: float) -> dict[str, Any]:
    """Return the trainings to time, by name; each is a function without arguments."""
    import torch

    from skfairdp._networks import as_net, prepare_network
    from skfairdp.fairness import FairnessConstraints
    from skfairdp.gradient import mlp
    from skfairdp.lagrangian._constraint_gradient import ConstraintGradient
    from skfairdp.lagrangian._dual_ascent import LagrangianTraining, dual_schedule
    from skfairdp.lagrangian._plan import PFLDPlan
    from skfairdp.lagrangian._trainer import train_lagrangian
    from skfairdp.privacy import NoiseSource, PoissonSample

    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=n_rows)
    X = rng.normal(size=(n_rows, N_FEATURES)) + 0.3 * groups[:, None]
    y = (X[:, 0] + rng.normal(size=n_rows) > 1).astype(np.int64)
    network = prepare_network(as_net(mlp((WIDTH,) * n_layers), owner="PF-LD"), N_FEATURES, 2, seed=0, owner="PF-LD")
    constraints = FairnessConstraints(["demographic_parity"], y, 2)
    duals, gradients = max(1, round(2 * epochs)), max(1, round(10 * epochs))
    training = LagrangianTraining(epochs=epochs, batch_size=batch_size)
    steps = training.steps(n_rows)
    source = NoiseSource()

    def run(plan: PFLDPlan, membership: Any) -> Any:
        sizes = plan.release_counts(groups, constraints.row_cells, constraints.n_cells, source)

        def train() -> Any:
            rows, gradient = network.tensor(X), None
            if membership is None:
                gradient = ConstraintGradient.of(network, rows, groups, constraints, plan, source)
            return train_lagrangian(
                network,
                rows,
                y,
                constraints,
                constraints.sizes(sizes),
                replace(training, dual_steps=plan.dual_steps),
                violations=lambda h: plan.release_violations(h, constraints.cells, constraints.n_cells, groups, source),
                make_optimizer=lambda module: torch.optim.Adam(module.parameters(), lr=training.lr),
                membership=membership,
                gradient=gradient,
                dual_noise=plan.largest_dual_noise(constraints.n_constraints),
            )

        return train

    def noise_alone() -> None:
        plan, zeros = private(steps), np.zeros(sum(p.numel() for p in network.module.parameters()))
        first = min(dual_schedule(steps, duals))  # until multipliers move, nothing private is read and no noise added
        for t in range(steps):
            PoissonSample(plan.sampling_probability).draw(n_rows, source)
            plan.release_gradient(zeros, 1.0 if t >= first else 0.0, source)

    def private(primal_steps: int) -> PFLDPlan:
        return PFLDPlan(n_groups, primal_steps, duals, 10.0, 10.0, 10.0, batch_size / n_rows)

    nothing = PFLDPlan.without_privacy(n_groups=n_groups, primal_steps=1, dual_steps=0)
    return {
        "plain": run(nothing, np.eye(n_groups)[groups]),
        "F-LD, group model": run(
            PFLDPlan.without_privacy(n_groups=n_groups, primal_steps=1, dual_steps=duals), np.eye(n_groups)[groups]
        ),
        "Poisson, ten gradients": run(private(gradients), None),
        "Poisson, a gradient every step": run(private(steps), None),
        "its samples and noise alone": noise_alone,
    }


def main() -> None:
    parser = common.parser(__doc__, "pfld_speed")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    n_rows, repeats, epochs = (2000, 1, 0.2) if arguments.quick else (N_ROWS, arguments.repeats, 1.0)
    rows = []
    for n_layers in (2, 10):
        for batch_size in (64, 256):
            for n_groups in (2, 8):
                runs = trainers(n_groups, batch_size, n_layers, n_rows, epochs)
                for run in runs.values():
                    run()
                seconds: dict[str, list[float]] = {name: [] for name in runs}
                for _ in range(repeats):
                    for name, run in runs.items():
                        begun = time.perf_counter()
                        run()
                        seconds[name].append(time.perf_counter() - begun)
                medians = {name: float(np.median(values)) for name, values in seconds.items()}
                ratios = {
                    name: float(np.median(np.array(values) / np.array(seconds["plain"])))
                    for name, values in seconds.items()
                }
                plain, fair, private = PAPER[n_layers, batch_size]
                rows.append(
                    {
                        "layers": n_layers,
                        "batch_size": batch_size,
                        "groups": n_groups,
                        "seconds": medians,
                        "ratios": ratios,
                        "paper": {"F-LD": fair / plain, "PF-LD": private / plain},
                    }
                )
                print(rows[-1], flush=True)
    common.save(arguments, rows=rows, n_rows=n_rows, n_features=N_FEATURES, width=WIDTH)


if __name__ == "__main__":
    main()
