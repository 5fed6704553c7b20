"""Try a network on made-up rows, before any private row is read and anything is spent."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from skfairdp._networks._clipping import (
    check_rows_stay_apart,
    clipped_gradient_sum,
    fused_layers,
    has_hooks,
    looped_gradients,
)
from skfairdp._networks._process import PrecisionWatch, check_module_precision, own_generator

_SIZES = (5, 3)  # two batch sizes, so that no other axis can pass for the rows in both


def check_network(module: Any, n_features: int, n_classes: int, *, owner: str) -> bool:
    """Refuse a module that cannot be trained privately; say whether the fused path gives its clipped gradients.

    The rows are zeros and ones, which serve as numbers and as category codes; the last is of zeros alone. The module is
    copied, and torch's global generators are left as they were.
    """
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"The 'net' parameter of {owner} must be 'mlp', 'additive', 'cnn', 'resnet', a torch.nn.Module or a skorch "
            f"net. Got an object of type {type(module).__name__} instead."
        )
    check_module_precision(module, owner)
    check_rows_stay_apart(module)
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError(
            f"The module of 'net' of {owner} has no trainable parameter. Set requires_grad of those to train."
        )
    with own_generator(0):
        # Weights that start at zero would hide what the layers before them do.
        copy = deepcopy(module).cpu()
        with torch.no_grad():
            for p in copy.parameters():
                if p.is_floating_point():
                    p.add_(0.1 * torch.randn_like(p))
        batches = [torch.randint(0, 2, (n, n_features)).to(input_dtype(copy)) for n in _SIZES]
        for X in batches:
            X[-1] = 0  # such rows stand in the places of those that it fails on
        with PrecisionWatch(f"The module of 'net' of {owner}"):
            for X in batches:
                _check_outputs(copy, X, n_classes, owner)
            _check_state(copy, batches, owner)
            _check_rows(copy, batches[0], owner)
        return fused_layers(copy) is not None and _agrees(copy.eval(), batches, n_classes, fused=True)


def hooks_agree(module: nn.Module, n_features: int, n_classes: int) -> bool:
    """Whether opacus has a rule for all layers and its gradients, clipped and summed, are those of one row at a time.
    For a module that passed :func:`check_network`. Where it has no rule, torch.func forms the gradients."""
    with own_generator(0):
        copy = deepcopy(module).cpu().eval()
        for layer in copy.modules():  # opacus listens to layers in training mode; dropout would hide what they say
            layer.training = any(p.requires_grad for p in layer.parameters(recurse=False))
        batches = [torch.randint(0, 2, (n, n_features)).to(input_dtype(copy)) for n in _SIZES]
        return has_hooks(copy) and _agrees(copy, batches, n_classes, fused=False, hooked=True)


def vectorizes(module: nn.Module, n_features: int) -> bool:
    """Whether torch.func forms the per-sample gradients of a module that passed :func:`check_network`."""
    with own_generator():
        copy = deepcopy(module).cpu().train()
        X = torch.randint(0, 2, (_SIZES[0], n_features)).to(input_dtype(copy))
        try:
            clipped_gradient_sum(copy, _cross_entropy, X, torch.zeros(len(X), dtype=torch.long), 1.0, fused=False)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            return False
    return True


def input_dtype(module: nn.Module) -> torch.dtype:
    """Precision of a module's parameters, in which it expects its rows."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


def _check_outputs(module: nn.Module, X: Tensor, n_classes: int, owner: str) -> None:
    try:
        outputs = module.train()(X)
    except Exception as error:
        raise ValueError(
            f"The module of 'net' of {owner} fails on rows with {X.shape[1]} features "
            f"({type(error).__name__}: {error}). It must map float rows of shape "
            f"(n_rows, {X.shape[1]}) to logits of shape (n_rows, {n_classes})."
        ) from error
    shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if shape != (len(X), n_classes):
        raise ValueError(
            f"The module of 'net' of {owner} must give one logit for each of the {n_classes} classes: shape "
            f"({len(X)}, {n_classes}) for {len(X)} rows. Got {shape} instead."
        )
    if bool((outputs >= 0).all()) and torch.allclose(outputs.sum(1), torch.ones_like(outputs[:, 0])):
        raise ValueError(
            f"The module of 'net' of {owner} gives probabilities, but the loss here is cross-entropy of logits: leave "
            "out its softmax."
        )


def _check_rows(module: nn.Module, X: Tensor, owner: str) -> None:
    """No output may depend on another row: by derivative in training mode, by leaving rows out in evaluation mode."""
    probe = X.clone().requires_grad_()
    outputs = module.train()(probe)
    (reach,) = torch.autograd.grad(outputs[0].square().sum(), [probe], allow_unused=True)
    apart = reach is None or not bool(reach[1:].any())
    with torch.no_grad():
        module.eval()
        apart &= torch.allclose(module(X)[:2], module(X[:2]), rtol=1e-3, atol=1e-5)
    if not apart:
        raise ValueError(
            f"In the module of 'net' of {owner} the output of one row depends on the other rows of its batch, so no "
            "per-sample gradient exists. Use operations within a row, for example GroupNorm or LayerNorm."
        )


def _check_state(module: nn.Module, batches: list[Tensor], owner: str) -> None:
    """A forward pass may change buffers (power iteration does), but not in a way that depends on the rows."""
    after = []
    for X in batches:
        copy = deepcopy(module).train()
        with torch.no_grad():
            copy(X)
        parameters = dict(copy.named_parameters())
        if any(not torch.equal(p, parameters[name]) for name, p in module.named_parameters()):
            raise ValueError(
                f"The module of 'net' of {owner} changes its own parameters in the forward pass, by private rows and "
                "without noise. Take that update out of 'forward'."
            )
        after.append(dict(copy.named_buffers()))
    for name, value in after[0].items():
        if not torch.equal(value, after[1][name]):
            raise ValueError(
                f"The buffer '{name}' of the module of 'net' of {owner} keeps something of the rows it has seen, which "
                "no noise covers. Use a layer without running statistics."
            )


def _agrees(module: nn.Module, batches: list[Tensor], n_classes: int, **how: Any) -> bool:
    """Whether a way to clipped sums agrees with one row at a time, also where rows are clipped.
    Rules layer by layer cannot see a weight used outside its layer, nor know which axis of an input counts the rows."""
    for X in batches:
        y = torch.arange(len(X)) % n_classes
        rows = looped_gradients(module, _cross_entropy, X, y)
        flat = torch.cat([gradients.flatten(1) for gradients in rows.values()], dim=1)
        norms = flat.norm(dim=1, keepdim=True)
        bound = max(float(norms.median()), 1e-6)
        expected = (flat * (bound / norms.clamp_min(1e-30)).clamp_max(1.0)).sum(0)
        try:
            total = clipped_gradient_sum(module, _cross_entropy, X, y, bound, **how)
        except (ValueError, RuntimeError, IndexError, NotImplementedError, AttributeError, KeyError):
            return False
        if set(total) != set(rows):
            return False
        found = torch.cat([total[name].flatten() for name in rows])
        if not torch.allclose(found.to(expected), expected, rtol=1e-2, atol=1e-3 * bound):
            return False
    return True


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    if outputs.shape[1] == 1:  # of one output it is 0 everywhere, and would show nothing
        return (outputs[:, 0] - 1).square()
    return nn.functional.cross_entropy(outputs, targets, reduction="none")
