"""Per-sample gradients by the hooks of opacus, for layers without a fused rule: its GRU, LSTM and attention."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn


def has_hooks(module: nn.Module) -> bool:
    """Whether every parameter to train belongs to a layer that opacus has a rule for."""
    from opacus import GradSampleModule

    ruled = (layer for layer in module.modules() if type(layer) in GradSampleModule.GRAD_SAMPLERS)
    covered = {id(p) for layer in ruled for p in layer.parameters(recurse=False)}
    return all(id(p) in covered for p in module.parameters() if p.requires_grad)


def hooked_gradients(module: nn.Module, loss: Any, X: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Gradients of shape (n_rows, ...) of the loss of each row, by parameter name; one forward and one backward.

    Clipping, sum and noise stay ours. The hooks are gone afterwards, and so is whatever they left on the parameters.
    """
    from opacus import GradSampleModule

    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    gradients: dict[str, Tensor] = {}
    hooked = GradSampleModule(module, batch_first=True, loss_reduction="sum", strict=False)
    try:
        losses = loss(hooked(X), y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that rows need no gradient of their own
            torch.autograd.backward(losses.sum(), inputs=list(trained.values()))
        for name, p in trained.items():
            found = getattr(p, "grad_sample", None)
            gradients[name] = p.new_zeros((len(X), *p.shape)) if found is None else found
    finally:
        hooked.to_standard_module()
        module.zero_grad(set_to_none=True)
    return gradients
