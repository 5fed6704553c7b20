"""Differentiable demographic disparity (DPFR), computed on public rows."""

import torch
from torch import Tensor

__all__ = ["demographic_disparity_penalty"]


def demographic_disparity_penalty(
    logits: Tensor, groups: Tensor, n_groups: int, *, temperature: float = 0.01, maximum: str = "soft"
) -> Tensor:
    """Largest disparity of softened predictions: DPFR of FairDP-SGD (paper, equation 1).

    ``max_k max_z { P(k | z) - P(k | others) }`` with predictions softened to ``softmax(logits / temperature)``. It
    tends to the hard gap as the temperature goes to 0.

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_classes)
    groups : Tensor of int of shape (n_rows,)
        Codes 0..n_groups-1. A group without rows, or one that has them all, contributes no disparity.
    n_groups : int
    temperature : float, default=0.01
        Of the predictions and, with ``maximum="soft"``, of the maximum.
    maximum : {"soft", "hard"}, default="soft"
        "soft" averages the disparities with weights ``softmax(disparity / temperature)``.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> import torch
    >>> from skfairdp.neural import demographic_disparity_penalty
    >>> logits = torch.tensor([[5.0, 0.0], [5.0, 0.0], [0.0, 5.0], [5.0, 0.0]])
    >>> float(demographic_disparity_penalty(logits, torch.tensor([0, 0, 1, 1]), 2, maximum="hard"))
    0.5
    """
    # the largest logit goes first, so that no temperature overflows
    predictions = torch.softmax((logits - logits.detach().amax(1, keepdim=True)) / temperature, dim=1)
    member = torch.nn.functional.one_hot(groups, n_groups).to(predictions.dtype)
    size = member.sum(0)
    inside = member.T @ predictions
    everyone = predictions.sum(0, keepdim=True)
    both = (size > 0) & (size < len(groups))
    if not bool(both.any()):
        return predictions.sum() * 0.0
    inside, size = inside[both], size[both, None]
    disparity = (inside / size - (everyone - inside) / (len(groups) - size)).flatten()
    if maximum == "hard":
        return disparity.max()
    return (torch.softmax(disparity / temperature, dim=0) * disparity).sum()
