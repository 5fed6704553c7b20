"""Neural teachers, trained as stacks; the tensor programs are in ``skfairdp._networks``, loaded on first use."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._docs import shared_docs
from skfairdp._teachers._partition import Parts, check_number, numeric_rows, run_tasks
from skfairdp._utils import invalid_parameter

if TYPE_CHECKING:
    import torch

    from skfairdp._networks import StackedMLP, StackedModule

# Bounds of a stack: its parameters, gradients and Adam moments (16 bytes each) should stay in cache, and there
# should be more stacks than threads.
_STACK_PARAMETERS = 2**19
_STACK_NETWORKS = 32


@dataclass(kw_only=True, eq=False, repr=False)
class _StackedTeachers(BaseEstimator):
    """What all neural teachers share: Adam settings, and the loop over stacks of fixed size."""

    epochs: int = 30
    batch_size: int = 32
    lr: float = 1e-3
    weight_decay: float = 1e-4
    device: str = "cpu"
    _networks_per_stack: ClassVar[int] = _STACK_NETWORKS

    def _net(self, X: NDArray[np.floating], n_classes: int) -> "StackedMLP | StackedModule":
        raise NotImplementedError

    def _validate(self, X: Any) -> NDArray[np.floating]:
        """Check the parameters and return X as a finite float array."""
        from skfairdp._networks import resolve_device

        check_number(self, "epochs", least=1, integer=True)
        check_number(self, "batch_size", least=1, integer=True)
        check_number(self, "lr", above=0)
        check_number(self, "weight_decay", least=0)
        resolve_device(self.device, owner=type(self).__name__)
        return numeric_rows(X, owner=type(self).__name__, allow_nd=True)

    def _fit_parts(
        self, X: NDArray[np.floating], y: NDArray[np.int64], parts: Parts, *, n_jobs: int | None, verbose: int
    ) -> "StackedEnsemble":
        """Train every part; see :func:`fit_teachers`."""
        from skfairdp._networks import train_stacked

        # No bar over the steps: their number is that of the largest part with two classes, which is private.
        settings = {name: getattr(self, name) for name in ("epochs", "batch_size", "lr", "weight_decay", "device")}

        def task(block: Parts) -> tuple[Any, ...]:
            rows, sizes = block.rows_to_train()
            return X[rows], y[rows], sizes, block.seeds.tolist()

        net, train = self._net(X, parts.seen.shape[1]), partial(train_stacked, **settings)
        public: dict[str, Any] = {"device": self.device, "row_shape": X.shape[1:], "owner": type(self).__name__}
        how: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose, "at_most": self._networks_per_stack}
        return fit_stacks(net, train, task, parts, **public, **how)

    def _rehearse(self, X: Any, n_classes: int) -> None:
        """Try the parameters on public rows; raise the error that training would meet."""
        self._net(self._validate(X), n_classes)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class MLPTeachers(_StackedTeachers):
    """Multilayer perceptrons as teachers; what ``teacher="mlp"`` stands for.

    ReLU networks with softmax outputs, trained with Adam on the cross-entropy, all of them in batched matrix products.
    Every teacher has its own initialisation (weights as torch's layers draw them, biases 0) and batch order and takes
    the same steps as if it were trained alone. Parts should have about the same size; the time is that of the largest.

    Parameters
    ----------
    {trained_as_stacks}
    hidden : tuple of int, default=(64, 64)
        Widths of the hidden layers.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from skfairdp.ensemble import MLPTeachers
    >>> clone(MLPTeachers(hidden=(16,), epochs=5)).get_params()["hidden"]
    (16,)
    """

    hidden: Sequence[int] = (64, 64)

    def _validate(self, X: Any) -> NDArray[np.floating]:
        """Check the parameters and return X as a finite float table."""
        X = super()._validate(X)
        hidden = self.hidden
        if not isinstance(hidden, tuple | list) or not all(isinstance(h, int | np.integer) and h > 0 for h in hidden):
            raise invalid_parameter("hidden", "MLPTeachers", "a tuple of positive integers", hidden)
        if X.ndim != 2:
            raise ValueError(
                f"X of MLPTeachers must have 2 dimensions, got {X.ndim}. Flatten the rows, or use ModuleTeachers."
            )
        return X

    def _net(self, X: NDArray[np.floating], n_classes: int) -> "StackedMLP":
        from skfairdp._networks import StackedMLP

        return StackedMLP(X.shape[1], tuple(self.hidden), n_classes, narrow=True)


@shared_docs
@dataclass(eq=False, repr=False)
class ModuleTeachers(_StackedTeachers):
    """Copies of a torch module as teachers, trained as stacks through ``torch.func``.

    Each copy draws the weights of its Linear and Conv layers anew from torch's default law with its own seed; all
    other parameters start as they are in the module, and frozen ones stay so: what they hold must be public.
    BatchNorm and Dropout are refused (the errors say why).

    Parameters
    ----------
    module : torch.nn.Module or callable without arguments that returns one
        Maps rows (n, ...) to logits (n, n_classes).
    {trained_as_stacks}

    Examples
    --------
    >>> import torch
    >>> from skfairdp.ensemble import ModuleTeachers
    >>> ModuleTeachers(torch.nn.Linear(3, 2), epochs=5).epochs
    5
    """

    module: "torch.nn.Module | Callable[[], torch.nn.Module]"

    def _net(self, X: NDArray[np.floating], n_classes: int) -> "StackedModule":
        import torch

        from skfairdp._networks import PrecisionWatch, StackedModule

        net = StackedModule(self.module, n_classes, owner="ModuleTeachers")
        try:  # before any teacher is trained, on a row of zeros: the module is public
            with PrecisionWatch("The module of ModuleTeachers"):
                net.logits(net.initial([0]), torch.zeros(1, *X.shape[1:]))
        except RuntimeError as error:
            raise ValueError(
                f"The module of ModuleTeachers cannot read rows of shape {X.shape[1:]} ({error}); change its layers."
            ) from None
        return net

    def _rehearse(self, X: Any, n_classes: int) -> None:
        """As of every network teacher; a module may be a function that draws its weights from torch's generator."""
        from skfairdp._networks import own_generator

        with own_generator():
            super()._rehearse(X, n_classes)


@dataclass(frozen=True)
class StackedEnsemble:
    """Trained stacks, and the classes each teacher may answer."""

    net: "StackedMLP | StackedModule"
    stacks: "list[list[torch.Tensor]]"
    seen: list[NDArray[np.bool_]]
    device: str
    row_shape: tuple[int, ...]
    owner: str

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Votes (n_teachers, n_rows)."""
        from skfairdp._networks import predict_stacked

        return np.concatenate(self._of_stacks(predict_stacked, X))

    def summed_probabilities(self, X: Any, n_classes: int, step: float | None = None) -> NDArray[np.float64]:
        """Sum over teachers of their class probabilities."""
        from skfairdp._networks import predict_stacked_proba

        return np.sum(self._of_stacks(partial(predict_stacked_proba, step=step), X), axis=0)

    def _of_stacks(self, function: Callable[..., Any], X: Any) -> list[Any]:
        X = numeric_rows(X, owner=self.owner, n_features=self.row_shape[0], allow_nd=True)
        if X.shape[1:] != self.row_shape:
            raise ValueError(f"Rows of X have shape {X.shape[1:]}, but {self.owner} was trained on {self.row_shape}.")
        function = partial(function, device=self.device)
        tasks = ((function, self.net, params, X, seen) for params, seen in zip(self.stacks, self.seen, strict=True))
        return _run_stacks(tasks, len(self.stacks), self.device)


def fit_stacks(
    net: "StackedMLP | StackedModule",
    train: "Callable[..., list[torch.Tensor]]",
    task: Callable[[Parts], tuple[Any, ...]],
    parts: Parts,
    *,
    device: str,
    row_shape: tuple[int, ...],
    owner: str,
    n_jobs: int | None = None,
    verbose: int = 0,
    at_most: int = _STACK_NETWORKS,
) -> StackedEnsemble:
    """Train one network per part, in stacks whose sizes depend on public numbers only."""
    import torch

    size = max(1, _STACK_PARAMETERS // net.n_parameters)
    if torch.device(device).type == "cpu":
        size = min(size, at_most)
    blocks = parts.blocks(size)
    tasks = ((train, net, *task(block)) for block in blocks)
    stacks = _run_stacks(tasks, len(blocks), device, n_jobs=n_jobs, verbose=verbose)
    return StackedEnsemble(net, stacks, [block.seen for block in blocks], device, row_shape, owner)


def _run_stacks(
    tasks: Iterable[tuple[Any, ...]], n_tasks: int, device: str, *, n_jobs: int | None = None, verbose: int = 0
) -> list[Any]:
    """Call a function on every stack: on a CPU in threads, on another device one after the other."""
    import torch

    threads, most = torch.get_num_threads(), n_tasks
    if torch.device(device).type != "cpu":
        n_jobs = most = 1
    default = min(threads, most)
    try:
        return run_tasks(_on_one_thread, tasks, n_tasks, n_jobs=n_jobs, verbose=verbose, default_threads=default)
    finally:
        torch.set_num_threads(threads)


def _on_one_thread(function: Callable[..., Any], net: "StackedMLP | StackedModule", *task: Any, **options: Any) -> Any:
    """Call a function on one stack, in a thread that has an architecture of its own, as a module's parameters are
    swapped in place. One torch thread per stack: those inside small products wait for each other, and their number can
    change the last bits; ``_run_stacks`` restores the setting."""
    import torch

    torch.set_num_threads(1)
    return function(copy.deepcopy(net), *task, **options)
