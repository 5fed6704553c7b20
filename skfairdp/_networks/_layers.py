"""Per-sample gradients of one layer, from its input and the gradient of its output: norms, products, weighted sums.

A rule never forms the per-sample gradients it can avoid: for a linear layer ‖∇W‖² = ‖a‖²·‖b‖², with a the input and
b the gradient of the output, and the weighted sum over samples is one matrix product.
"""

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from skfairdp._networks._process import check_module_precision, own_generator

Parts = tuple[Tensor, ...]


def rule_for(module: nn.Module) -> "LayerRule | None":
    """Return the rule of a layer, or None where there is none (subclasses may compute something else)."""
    return _RULES.get(type(module))


def _trains(module: nn.Module, name: str) -> bool:
    parameter = getattr(module, name, None)
    return parameter is not None and parameter.requires_grad


class LayerRule:
    """How one kind of layer gives its per-sample gradients: here, of a matrix product at every position.
    Inputs a have shape (n, positions, in), gradients b of the outputs (n, positions, out)."""

    def prepare(self, module: nn.Module, a: Tensor, b: Tensor) -> Parts:
        """What all else is computed from, given the input of the layer and the gradient of its output."""
        return a.reshape(len(a), -1, a.shape[-1]), b.reshape(len(b), -1, b.shape[-1])

    def squared_norms(self, module: nn.Module, prepared: Parts) -> Tensor:
        """Of the gradient of each sample, shape (n,)."""
        a, b = prepared
        total = torch.zeros(len(a), dtype=a.dtype, device=a.device)
        if _trains(module, "weight"):
            if a.shape[1] == 1:
                total += a.square().sum((1, 2)) * b.square().sum((1, 2))
            elif a.shape[1] ** 2 <= a.shape[2] * b.shape[2]:
                # Σ_{s,t} (a_s·a_t)(b_s·b_t): two small Gram matrices instead of an (in × out) gradient per sample
                total += (torch.bmm(a, a.transpose(1, 2)) * torch.bmm(b, b.transpose(1, 2))).sum((1, 2)).clamp_min(0)
                total += _cancellation(_matrix_sizes(a, b), a.shape[2] + b.shape[2] + a.shape[1] ** 2)
            else:
                total += torch.bmm(b.transpose(1, 2), a).square().sum((1, 2))
        if _trains(module, "bias"):
            total += b.sum(1).square().sum(1)
        return total

    def squared_sizes(self, module: nn.Module, prepared: Parts) -> Tensor:
        """Squares of the norms of what each position gives, summed: shape (n,)."""
        a, b = prepared
        total = torch.zeros(len(a), dtype=a.dtype, device=a.device)
        if _trains(module, "weight"):
            total += _matrix_sizes(a, b).square()
        if _trains(module, "bias"):
            total += _lengths(b).square()
        return total

    def positions(self, prepared: Parts) -> int:
        """How many positions are summed over within a sample."""
        return prepared[0].shape[1]

    def weighted_sum(self, module: nn.Module, prepared: Parts, weights: Tensor) -> dict[str, Tensor]:
        """Σ weight times gradient, by the name of the parameter in the layer."""
        a, b = prepared
        b = b * weights[:, None, None]
        out = {}
        if _trains(module, "weight"):
            out["weight"] = b.flatten(0, 1).T @ a.flatten(0, 1)
        if _trains(module, "bias"):
            out["bias"] = b.sum((0, 1))
        return out

    def inner(self, module: nn.Module, prepared: Parts, given: dict[str, Tensor]) -> Tensor:
        """Inner products of the gradients with one that is given, shape (n,)."""
        a, b = prepared
        total = torch.zeros(len(a), dtype=a.dtype, device=a.device)
        if "weight" in given:
            # the product with the smaller of the two sides is the smaller intermediate
            if a.shape[2] < b.shape[2]:
                total = total + ((b @ given["weight"]) * a).sum((1, 2))
            else:
                total = total + ((a @ given["weight"].T) * b).sum((1, 2))
        if "bias" in given:
            total = total + b.sum(1) @ given["bias"]
        return total

    def joined(self, part: Tensor, times: int) -> Tensor:
        """One sample of each so many that follow each other: what was a sample becomes positions of one."""
        return part.reshape(-1, times * part.shape[1], *part.shape[2:])


def _matrix_sizes(a: Tensor, b: Tensor) -> Tensor:
    """Norms of what each position gives, summed: shape (n,)."""
    return (a.square().sum(2) * b.square().sum(2)).sqrt().sum(1)


def _lengths(b: Tensor) -> Tensor:
    return b.square().sum(2).sqrt().sum(1)


def _cancellation(sizes: Tensor, terms: int) -> Tensor:
    """What rounding may have taken from a squared norm summed from products of both signs: where positions cancel, one
    that has to be clipped may come out as 0. ``sizes`` (n,) are sums of the norms of positions."""
    return (terms + 8) * torch.finfo(sizes.dtype).eps * sizes.square()


class _Convolution(LayerRule):
    """A matrix product at every position of the unfolded input; channel groups get an axis, each a layer of its own."""

    def prepare(self, module: nn.Module, a: Tensor, b: Tensor) -> Parts:
        assert isinstance(module, nn.Conv1d | nn.Conv2d)
        if isinstance(module, nn.Conv1d):
            a, b = a.unsqueeze(2), b.unsqueeze(2)
            kernel, dilation, stride = (1, *module.kernel_size), (1, *module.dilation), (1, *module.stride)
        else:
            kernel, dilation, stride = module.kernel_size, module.dilation, module.stride
        # nn.Conv keeps its padding per side in this order: last axis first, both sides
        mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
        sides = module._reversed_padding_repeated_twice
        a = F.pad(a, [*sides, *([0, 0] if isinstance(module, nn.Conv1d) else [])], mode=mode) if any(sides) else a
        patches = F.unfold(a, kernel, dilation=dilation, stride=stride)  # (n, in/groups·kernel·groups, positions)
        n, g = len(a), module.groups
        rows = patches.reshape(n, g, -1, patches.shape[-1]).transpose(2, 3)
        return rows, b.reshape(n, g, b.shape[1] // g, -1).transpose(2, 3)

    def squared_norms(self, module: nn.Module, prepared: Parts) -> Tensor:
        a, b = prepared
        return super().squared_norms(module, (a.flatten(0, 1), b.flatten(0, 1))).reshape(a.shape[:2]).sum(1)

    def squared_sizes(self, module: nn.Module, prepared: Parts) -> Tensor:
        a, b = prepared
        return super().squared_sizes(module, (a.flatten(0, 1), b.flatten(0, 1))).reshape(a.shape[:2]).sum(1)

    def positions(self, prepared: Parts) -> int:
        return prepared[0].shape[2]

    def weighted_sum(self, module: nn.Module, prepared: Parts, weights: Tensor) -> dict[str, Tensor]:
        a, b = prepared
        b = b * weights[:, None, None, None]
        out = {}
        if _trains(module, "weight"):
            assert isinstance(module.weight, Tensor)
            out["weight"] = torch.einsum("ngpo,ngpi->goi", b, a).reshape(module.weight.shape)
        if _trains(module, "bias"):
            out["bias"] = b.sum((0, 2)).flatten()
        return out

    def inner(self, module: nn.Module, prepared: Parts, given: dict[str, Tensor]) -> Tensor:
        a, b = prepared
        total = torch.zeros(len(a), dtype=a.dtype, device=a.device)
        if "weight" in given:
            kernel = given["weight"].reshape(a.shape[1], b.shape[3], a.shape[3])  # by channel group
            total = total + (torch.einsum("ngpi,goi->ngpo", a, kernel) * b).sum((1, 2, 3))
        if "bias" in given:
            total = total + b.sum(2).flatten(1) @ given["bias"]
        return total

    def joined(self, part: Tensor, times: int) -> Tensor:
        return part.unflatten(0, (-1, times)).transpose(1, 2).flatten(2, 3)


class _Embedding(LayerRule):
    """Rows of a table that are looked up."""

    def prepare(self, module: nn.Module, a: Tensor, b: Tensor) -> Parts:
        assert isinstance(module, nn.Embedding)
        rows, gradient = a.reshape(len(a), -1), b.reshape(len(b), -1, b.shape[-1])
        if module.padding_idx is not None:
            gradient = gradient * (rows != module.padding_idx).unsqueeze(-1)
        return rows, gradient

    def squared_norms(self, module: nn.Module, prepared: Parts) -> Tensor:
        rows, b = prepared
        same = rows.unsqueeze(2) == rows.unsqueeze(1)  # positions of one sample that share a row of the table
        total = (torch.bmm(b, b.transpose(1, 2)) * same).sum((1, 2)).clamp_min(0)
        return total + _cancellation(_lengths(b), b.shape[2] + b.shape[1] ** 2)

    def squared_sizes(self, module: nn.Module, prepared: Parts) -> Tensor:
        return _lengths(prepared[1]).square()

    def weighted_sum(self, module: nn.Module, prepared: Parts, weights: Tensor) -> dict[str, Tensor]:
        rows, b = prepared
        assert isinstance(module.weight, Tensor)
        table = torch.zeros(module.weight.shape, dtype=b.dtype, device=b.device)
        return {"weight": table.index_add_(0, rows.flatten(), (b * weights[:, None, None]).flatten(0, 1))}

    def inner(self, module: nn.Module, prepared: Parts, given: dict[str, Tensor]) -> Tensor:
        rows, b = prepared
        return (given["weight"][rows] * b).sum((1, 2))


class _Scales(LayerRule):
    """Layers that normalise, then scale each feature: summed over the positions that share the scale."""

    def prepare(self, module: nn.Module, a: Tensor, b: Tensor) -> Parts:
        if isinstance(module, nn.LayerNorm):
            normal = F.layer_norm(a, module.normalized_shape, None, None, module.eps)
            features = a.shape[-len(module.normalized_shape) :]
            return tuple(part.reshape(len(a), -1, *features).sum(1) for part in (normal * b, b))
        assert isinstance(module, nn.GroupNorm)
        normal = F.group_norm(a, module.num_groups, None, None, module.eps)
        return tuple(part.flatten(2).sum(2) if a.ndim > 2 else part for part in (normal * b, b))

    def squared_norms(self, module: nn.Module, prepared: Parts) -> Tensor:
        scale, shift = (part.flatten(1).square().sum(1) for part in prepared)
        return _trains(module, "weight") * scale + _trains(module, "bias") * shift

    squared_sizes = squared_norms

    def positions(self, prepared: Parts) -> int:
        return 1

    def weighted_sum(self, module: nn.Module, prepared: Parts, weights: Tensor) -> dict[str, Tensor]:
        named = zip(("weight", "bias"), prepared, strict=True)
        return {name: torch.tensordot(weights, part, dims=1) for name, part in named if _trains(module, name)}

    def inner(self, module: nn.Module, prepared: Parts, given: dict[str, Tensor]) -> Tensor:
        total = torch.zeros(len(prepared[0]), dtype=prepared[0].dtype, device=prepared[0].device)
        for name, part in zip(("weight", "bias"), prepared, strict=True):
            if name in given:
                total = total + (part * given[name]).flatten(1).sum(1)
        return total

    def joined(self, part: Tensor, times: int) -> Tensor:
        return part.unflatten(0, (-1, times)).sum(1)


_RULES: dict[type[nn.Module], LayerRule] = {
    nn.Linear: LayerRule(),
    nn.Conv1d: _Convolution(),
    nn.Conv2d: _Convolution(),
    nn.Embedding: _Embedding(),
    nn.LayerNorm: _Scales(),
    nn.GroupNorm: _Scales(),
}


_REDRAWN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


class StackedModule:
    """The architecture of many copies of one torch module: each re-draws its Linear and Conv layers from torch's
    default law with its own seed, without torch's global generator. Frozen parameters stay as they are."""

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
        if not any(p.numel() for p in module.parameters() if p.requires_grad):
            raise ValueError(f"The module of {owner} has no parameters to train.")
        for part in module.modules():
            if isinstance(part, _BATCH_NORMS) or (isinstance(part, _INSTANCE_NORMS) and part.track_running_stats):
                raise ValueError(
                    f"The module of {owner} contains {type(part).__name__}, which makes each row depend on its batch "
                    "and keeps running statistics that a stack of teachers cannot share; use GroupNorm or LayerNorm."
                )
            if isinstance(part, _DROPOUTS) and part.p > 0:
                raise ValueError(
                    f"The module of {owner} contains {type(part).__name__}, which draws from torch's global generator, "
                    "so that no random_state could reproduce it; remove it or set p=0 and use weight_decay instead."
                )
        self.module = copy.deepcopy(module)
        self.n_classes, self.owner = n_classes, owner
        trained = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        self.names = list(trained)
        self.n_parameters = sum(p.numel() for p in trained.values())
        self.widest = max(max(p.shape, default=1) for p in self.module.parameters())
        # Frozen parameters are shared by all copies, like buffers.
        shared = {**dict(self.module.named_buffers()), **dict(self.module.named_parameters())}
        self.shared = {name: t.detach() for name, t in shared.items() if name not in trained}

    @torch.no_grad()
    def initial(self, seeds: Sequence[int]) -> list[Tensor]:
        """Draw one set of parameters per seed, in the order of ``module.named_parameters()``."""
        copies = [copy.deepcopy(self.module) for _ in seeds]
        for seed, module in zip(seeds, copies, strict=True):
            rng = np.random.default_rng([seed, 1])
            for part in module.modules():
                if isinstance(part, _REDRAWN):
                    bound = 1 / math.sqrt(part.weight[0].numel())
                    for p in (part.weight, part.bias):
                        if p is not None and p.requires_grad:
                            p.copy_(torch.as_tensor(rng.uniform(-bound, bound, tuple(p.shape))))
        stacked, _ = stack_module_state(copies)
        return [stacked[name].detach() for name in self.names]

    def backward(self, params: list[Tensor], gradients: list[Tensor], x: Tensor, y: Tensor, weight: Tensor) -> None:
        """Write the gradients of each network's weighted cross-entropy into ``gradients``."""
        self.module.train()
        own, shared = dict(zip(self.names, params, strict=True)), self._shared_on(x.device)
        computed = vmap(grad(self._loss), in_dims=(0, None, 0, 0, 0))(own, shared, x, y, weight)
        for name, gradient in zip(self.names, gradients, strict=True):
            gradient.copy_(computed[name])

    def logits(self, params: list[Tensor], x: Tensor) -> Tensor:
        """Scores (networks, rows, classes) of rows ``x`` (rows, ...)."""
        self.module.eval()
        own, shared = dict(zip(self.names, params, strict=True)), self._shared_on(x.device)
        return vmap(self._forward, in_dims=(0, None, None))(own, shared, x)

    def _forward(self, params: dict[str, Tensor], shared: dict[str, Tensor], x: Tensor) -> Tensor:
        out = functional_call(self.module, (params, shared), (x,))
        if out.ndim != 2 or out.shape[1] != self.n_classes:
            raise ValueError(
                f"The module of {self.owner} must return one logit per row and class, shape (rows, {self.n_classes}). "
                f"It returned rows of shape {tuple(out.shape[1:])}; change its last layer."
            )
        return out

    def _loss(
        self, params: dict[str, Tensor], shared: dict[str, Tensor], x: Tensor, y: Tensor, weight: Tensor
    ) -> Tensor:
        return (F.cross_entropy(self._forward(params, shared, x), y, reduction="none") * weight).sum()

    def _shared_on(self, device: torch.device) -> dict[str, Tensor]:
        return {name: t.to(device) for name, t in self.shared.items()}
