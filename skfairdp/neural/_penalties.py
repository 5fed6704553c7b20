"""Differentiable demographic disparity (DPFR), computed on public rows."""

import torch
from torch import Tensor

__all__ = ["demographic_disparity_penalty", "disparity_of_contrasts", "group_contrasts"]


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
    contrasts = group_contrasts(groups, n_groups, logits.dtype)
    return disparity_of_contrasts(logits, contrasts, temperature=temperature, maximum=maximum)


def group_contrasts(groups: Tensor, n_groups: int, dtype: torch.dtype) -> Tensor:
    """Weights of shape (n_compared, n_rows) that take the mean of a group minus the mean of all others.

    One line for each group that has rows and does not have them all.
    """
    member = torch.nn.functional.one_hot(groups, n_groups).to(dtype).T
    size = member.sum(1, keepdim=True)
    compared = ((size > 0) & (size < len(groups)))[:, 0]
    member, size = member[compared], size[compared]
    return member / size - (1 - member) / (len(groups) - size)


def disparity_of_contrasts(logits: Tensor, contrasts: Tensor, *, temperature: float, maximum: str) -> Tensor:
    """:func:`demographic_disparity_penalty` for contrasts made once."""
    # the largest logit goes first, so that no temperature overflows
    predictions = torch.softmax((logits - logits.detach().amax(1, keepdim=True)) / temperature, dim=1)
    disparity = (contrasts @ predictions).flatten()
    if len(disparity) == 0:
        return predictions.sum() * 0.0
    if maximum == "hard":
        return disparity.max()
    return torch.softmax(disparity / temperature, dim=0) @ disparity
