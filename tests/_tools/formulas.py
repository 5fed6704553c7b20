"""Formulas of the papers, written as plainly as they are printed there."""

import torch


def plain_formula(logits, groups, n_groups, temperature, maximum):
    """DPFR as written in the paper (equation 1), one group and one class at a time."""
    soft = torch.softmax(logits / temperature, dim=1)
    gaps = []
    for z in range(n_groups):
        mine, others = soft[groups == z], soft[groups != z]
        if len(mine) and len(others):
            gaps += [mine[:, k].mean() - others[:, k].mean() for k in range(logits.shape[1])]
    if not gaps:
        return soft.sum() * 0
    gaps = torch.stack(gaps)
    if maximum == "hard":
        return gaps.max()
    weight = torch.exp((gaps - gaps.max().detach()) / temperature)
    return (weight / weight.sum() * gaps).sum()
