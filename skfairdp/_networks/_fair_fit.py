"""A small classifier of public rows with the demographic-parity penalty in its loss. Nothing here is private."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._parity import disparity_of_contrasts, group_contrasts
from skfairdp._networks._training import build_mlp

__all__ = ["fit_with_parity"]

Array = NDArray[np.float64]


def fit_with_parity(
    X: Array,
    targets: Array,
    X_parity: Array,
    groups: NDArray[np.int64] | None,
    n_groups: int,
    *,
    lam: float,
    alpha: float,
    hidden: tuple[int, ...] = (),
    temperature: float = 0.1,
    max_iter: int = 300,
    seed: int = 0,
) -> list[tuple[Array, Array]]:
    """Minimise cross-entropy + λ · DPFR + L2 by L-BFGS on all rows at once.

    The loss is linear in its targets, which may be noisy shares outside [0, 1].

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Features on a common scale.
    targets : ndarray of shape (n_rows, n_classes)
        Shares, or one-hot labels; each row sums to 1.
    X_parity : ndarray of shape (n_public, n_features)
        Rows on which the penalty is measured.
    groups : ndarray of int of shape (n_public,) or None
        Their group codes; None leaves the penalty out.
    n_groups : int
    lam : float
        Weight λ of the penalty, beside the *mean* cross-entropy.
    alpha : float
        L2 penalty on the weights, beside the *sum* of the cross-entropy, as scikit-learn's 1 / C.
    hidden : tuple of int, default=()
        Widths of hidden layers with tanh units; none is softmax regression, started at zero weights.
    temperature : float, default=0.1
        Of predictions and maximum in the penalty.
    max_iter : int, default=300
        Iterations of L-BFGS.
    seed : int, default=0
        Of the initial weights of hidden layers.

    Returns
    -------
    list of (weights, biases)
        One pair per layer, shapes (n_in, n_out) and (n_out,).

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp._networks import fit_with_parity
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> targets = np.column_stack([X[:, 0] < 0, X[:, 0] >= 0]).astype(float)
    >>> ((weights, biases),) = fit_with_parity(X, targets, X, None, 0, lam=0.0, alpha=1.0)
    >>> weights.shape, bool(np.all(((X @ weights + biases).argmax(axis=1) == targets[:, 1])))
    ((1, 2), True)
    """
    # doubles: the line search compares losses that differ in few digits
    module = build_mlp(X.shape[1], hidden, targets.shape[1], torch.Generator().manual_seed(seed)).double()
    rows, wanted = torch.from_numpy(np.array(X)), torch.from_numpy(np.array(targets))
    public, contrasts = rows[:0], None
    if groups is not None and lam > 0:
        public = torch.from_numpy(np.array(X_parity))
        contrasts = group_contrasts(torch.from_numpy(np.array(groups)), n_groups, torch.float64)
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    optimizer = torch.optim.LBFGS(
        module.parameters(),
        max_iter=max_iter,
        tolerance_grad=1e-6,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        scores = module(rows)
        value = (scores.logsumexp(1) - (wanted * scores).sum(1)).mean()
        for layer in layers:
            # a little on the biases keeps them finite when noise drives all shares past 0 or 1
            value = value + alpha / (2 * len(rows)) * (layer.weight**2).sum() + 5e-7 * (layer.bias**2).sum()
        if contrasts is not None:
            value = value + lam * disparity_of_contrasts(
                module(public), contrasts, temperature=temperature, maximum="soft"
            )
        return value

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    return [(layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy()) for layer in layers]
