"""Stacks of an arbitrary torch module through torch.func."""

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from skfairdp._networks._generator import own_generator
from skfairdp._networks._precision import check_module_precision

_REDRAWN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


class StackedModule:
    """The architecture of many copies of one torch module.

    Every copy re-draws the weights of its Linear and Conv layers from torch's default law with its own seed
    (torch's global generator is not touched); all other parameters start as they are in ``module``. Frozen parameters
    (``requires_grad=False``) stay as they are, so that a public, pre-trained part can be used.
    """

    def __init__(
        self, module: nn.Module | Callable[[], nn.Module], n_classes: int, *, owner: str = "StackedModule"
    ) -> None:
        if not isinstance(module, nn.Module):
            # A factory draws its own initial weights from the global generator; leave that as it was.
            with own_generator():
                module = module()
        if not isinstance(module, nn.Module):
            raise ValueError(
                f"The 'module' parameter of {owner} must be a torch.nn.Module or a callable without arguments that "
                f"returns one. The callable returned {type(module).__name__}."
            )
        check_module_precision(module, owner)
        _refuse(module, owner)
        self.module = copy.deepcopy(module)
        self.n_classes = n_classes
        self.owner = owner
        trained = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        self.names = list(trained)
        self.n_parameters = sum(p.numel() for p in trained.values())
        self.widest = max(max(p.shape, default=1) for p in self.module.parameters())
        # Frozen parameters are shared by all copies, like buffers.
        shared = {**dict(self.module.named_buffers()), **dict(self.module.named_parameters())}
        self.shared = {name: t.detach() for name, t in shared.items() if name not in trained}

    def initial(self, seeds: Sequence[int]) -> list[Tensor]:
        """Draw one set of parameters per seed, in the order of ``module.named_parameters()``."""
        copies = [copy.deepcopy(self.module) for _ in seeds]
        for seed, module in zip(seeds, copies, strict=True):
            _redraw(module, np.random.default_rng([seed, 1]))
        stacked, _ = stack_module_state(copies)
        return [stacked[name].detach() for name in self.names]

    def backward(self, params: list[Tensor], gradients: list[Tensor], x: Tensor, y: Tensor, weight: Tensor) -> None:
        """Write the gradients of each network's weighted cross-entropy into ``gradients``."""
        self.module.train()
        computed = vmap(grad(self._loss), in_dims=(0, None, 0, 0, 0))(
            dict(zip(self.names, params, strict=True)), self._shared_on(x.device), x, y, weight
        )
        for name, gradient in zip(self.names, gradients, strict=True):
            gradient.copy_(computed[name])

    def logits(self, params: list[Tensor], x: Tensor) -> Tensor:
        """Scores (networks, rows, classes) of rows ``x`` (rows, ...)."""
        self.module.eval()
        return vmap(self._forward, in_dims=(0, None, None))(
            dict(zip(self.names, params, strict=True)), self._shared_on(x.device), x
        )

    def _forward(self, params: dict[str, Tensor], shared: dict[str, Tensor], x: Tensor) -> Tensor:
        out = functional_call(self.module, (params, shared), (x,))
        if out.ndim != 2 or out.shape[1] != self.n_classes:
            raise ValueError(
                f"The module of {self.owner} must return one logit per row and class, shape (rows, {self.n_classes}). "
                f"It returned rows of shape {tuple(out.shape[1:])}; change its last layer."
            )
        return out

    def _loss(
        self,
        params: dict[str, Tensor],
        shared: dict[str, Tensor],
        x: Tensor,
        y: Tensor,
        weight: Tensor,
    ) -> Tensor:
        loss = nn.functional.cross_entropy(self._forward(params, shared, x), y, reduction="none")
        return (loss * weight).sum()

    def _shared_on(self, device: torch.device) -> dict[str, Tensor]:
        return {name: t.to(device) for name, t in self.shared.items()}


def _refuse(module: nn.Module, owner: str) -> None:
    if not any(p.numel() for p in module.parameters() if p.requires_grad):
        raise ValueError(f"The module of {owner} has no parameters to train.")
    for part in module.modules():
        if isinstance(part, _BATCH_NORMS) or (isinstance(part, _INSTANCE_NORMS) and part.track_running_stats):
            raise ValueError(
                f"The module of {owner} contains {type(part).__name__}, which makes each row depend on its batch and "
                "keeps running statistics that a stack of teachers cannot share; use GroupNorm or LayerNorm."
            )
        if isinstance(part, _DROPOUTS) and part.p > 0:
            raise ValueError(
                f"The module of {owner} contains {type(part).__name__}, which draws from torch's global generator, so "
                "that no random_state could reproduce it; remove it or set p=0 and use weight_decay instead."
            )


@torch.no_grad()
def _redraw(module: nn.Module, rng: np.random.Generator) -> None:
    for part in module.modules():
        if isinstance(part, _REDRAWN):
            bound = 1 / math.sqrt(part.weight[0].numel())
            for p in (part.weight, part.bias):
                if p is not None and p.requires_grad:
                    p.copy_(torch.as_tensor(rng.uniform(-bound, bound, tuple(p.shape))))
