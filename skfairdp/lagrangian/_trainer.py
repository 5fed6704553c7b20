"""Networks held to fairness constraints by Lagrange multipliers: one loop, for any module or for a stack of many.

``J(θ) + Σ λ_a (mean of h in group a - mean of h)``, minimised over θ, maximised over λ in turns (F-LD, Tran, Fioretto
& Van Hentenryck 2021, Algorithm 1, with equalities: a multiplier has a sign of its own, so that no absolute value of
anything private is taken). The trainer has no groups and draws no noise. It asks for violations, and for what the
primal steps follow, and gets numbers that are released already (or, for F-LD, need not be).
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.types import Device

from skfairdp._networks import Net, Network, StackedMLP, own_generator, seconds_of_steps, threads_of_steps
from skfairdp._typing import Floats, Ints, Reals
from skfairdp._utils import progress_bar
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._dual_ascent import DualAscent, LagrangianTraining, OneNetwork, dual_schedule
from skfairdp.lagrangian._numpy_mlp import NumpyMLPTraining
from skfairdp.lagrangian._stack import Stack, StackedParity

if TYPE_CHECKING:
    from skfairdp.lagrangian._constraint_gradient import ConstraintGradient


def _train(learner: OneNetwork | Stack, ascent: DualAscent | None, steps: int, dual_steps: int, verbose: int) -> None:
    """Descend in θ and ascend in λ, in turns."""
    dual_at = {} if ascent is None else dual_schedule(steps, dual_steps)
    seconds = seconds_of_steps(steps, learner.of_step)
    for t in progress_bar(range(steps), desc="Lagrangian dual", verbose=verbose, seconds=seconds):
        if ascent is not None and t in dual_at:
            ascent.follow(learner.scores(), dual_at[t])
            learner.pull(ascent.multipliers)
        learner.step(t)


def train_lagrangian(
    network: Network,
    X: Floats | Tensor,
    y: Ints,
    constraints: FairnessConstraints,
    sizes: Floats,
    training: LagrangianTraining,
    *,
    violations: Callable[[Floats], Floats],
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
    membership: Floats | None = None,
    gradient: "ConstraintGradient | None" = None,
    dual_noise: float = 0.0,
    watched: tuple[Ints, FairnessConstraints] | None = None,
    seed: int = 0,
    verbose: int = 0,
) -> tuple[nn.Module, Floats]:
    """Train a copy of a network, and return it with its multipliers."""
    module = deepcopy(network.module).to(network.device)
    codes = network.codes(y)
    rows, of_rows = X if isinstance(X, Tensor) else network.tensor(X), constraints.of_labels(codes)
    seen = constraints if watched is None else watched[1]
    of_seen = None if watched is None else (rows[watched[0]], seen.of_labels(codes[watched[0]]))
    ascent = DualAscent(
        training, seen, lambda h: seen.where_compared(violations(h)), sizes, dual_noise,
        lambda found, h: seen.project_to_bounds(found, seen.means(h)), sizes / len(seen.y),
    )  # fmt: skip
    with own_generator(seed, network.device):
        optimizer = make_optimizer(module)
        learner = (NumpyMLPTraining if NumpyMLPTraining.fits(module, rows, of_rows, optimizer) else OneNetwork)(
            module, rows, of_rows, training, ascent.sizes, membership=membership, gradient=gradient,
            optimizer=optimizer, watched=of_seen,
        )  # fmt: skip
        with learner.at_work():
            _train(learner, ascent, learner.steps, training.dual_steps, verbose)
        learner.finish()
    # what a module may have put on itself while it saw the rows stays behind
    result = deepcopy(network.module)
    result.load_state_dict({name: value.cpu() for name, value in module.state_dict().items()})
    return result.eval(), ascent.multipliers


def train_with_groups(
    net: Net,
    X: Floats | Tensor,
    constraints: FairnessConstraints,
    membership: Floats | None,
    settings: Mapping[str, Any],
    *,
    seed: int,
    verbose: int = 0,
) -> tuple[nn.Module, Floats | None]:
    """F-LD for any module: :func:`train_lagrangian` with the violations of groups that are known, or estimated."""
    network = Network(net.build(X.shape[1], constraints.n_classes, seed), net.device)
    training = LagrangianTraining(epochs=net.max_epochs, batch_size=net.batch_size, **settings)
    if membership is None:
        constraints = FairnessConstraints(["demographic_parity"], constraints.y, constraints.n_classes)
        training = replace(training, dual_steps=0)
    known = np.ones((len(X), 1)) if membership is None else membership
    parity = StackedParity(constraints, known, np.array([len(X)]))

    def violations(h: Floats) -> Floats:
        return parity.by_network(parity.violations(torch.from_numpy(h)) * parity.group_sizes)[0]

    sizes = parity.by_network(parity.group_sizes)[0]
    how: dict[str, Any] = {"make_optimizer": net.make_optimizer, "seed": seed, "verbose": verbose}
    module, multipliers = train_lagrangian(
        network, X, constraints.y, constraints, sizes, training, violations=violations, membership=known, **how
    )
    return module, None if membership is None else multipliers


def train_stacked_lagrangian(
    net: StackedMLP,
    X: Reals,
    targets: Ints | Floats,
    sizes: Ints,
    seeds: Sequence[int],
    training: LagrangianTraining,
    *,
    parity: StackedParity | None = None,
    start: list[Tensor] | None = None,
    anchor: float = 0.0,
    device: Device = "cpu",
    verbose: int = 0,
) -> tuple[list[Tensor], Floats | None]:
    """Train one network per entry of ``sizes`` under its own constraints, all in one tensor program, no operation of
    which mixes two: a network is the same, bit for bit, whatever rows the others hold. No noise is added here."""
    result = [p.clone().to(device) for p in (net.initial(seeds) if start is None else start)]
    ascent = None
    if parity is not None:
        ones, bounds = torch.ones_like(parity.group_sizes), parity.project_to_bounds
        ascent = DualAscent(training, parity.constraints, parity.violations, ones, 0.0, bounds, parity.shares)
    if sizes.any():
        learner = Stack(net, result, X, targets, sizes, seeds, training, parity, anchor, device)
        with threads_of_steps(learner.of_step):
            _train(learner, ascent, learner.n_steps, training.dual_steps, verbose)
    multipliers = None if ascent is None or parity is None else parity.by_network(ascent.multipliers)
    return [p.cpu() for p in result], multipliers
