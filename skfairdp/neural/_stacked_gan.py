"""Many discriminators as one tensor program: each sees rows of its own, and none sees another's.

No operation mixes two discriminators, their batches have one width, and all of them step at every call. So what a
discriminator knows depends on its own rows and on the fakes that all are shown, and on nothing that is drawn in secret.
"""

from collections.abc import Sequence

import torch

from skfairdp.neural._mlp import StackedMLP

__all__ = ["StackedDiscriminators"]


class StackedDiscriminators:
    """Perceptrons with one score each, trained to score real rows high and fakes low.

    Parameters
    ----------
    n_features : int
    hidden : sequence of int
    seeds : sequence of int
        One per discriminator; public.
    loss : {"logistic", "wasserstein"}
        ``"wasserstein"`` keeps every weight within ``clip``, as in the first Wasserstein GAN.
    lr : float
        Step size of Adam (logistic) or RMSprop (Wasserstein).
    clip : float, default=0.05
    device : torch.device or str, default="cpu"

    Examples
    --------
    >>> import torch
    >>> from skfairdp.neural import StackedDiscriminators
    >>> teachers = StackedDiscriminators(3, (8,), seeds=range(5), loss="logistic", lr=0.01)
    >>> teachers.step(torch.randn(5, 16, 3) + 2, torch.randn(5, 16, 3))
    >>> teachers.scores(torch.zeros(4, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int],
        seeds: Sequence[int],
        *,
        loss: str,
        lr: float,
        clip: float = 0.05,
        device: torch.device | str = "cpu",
    ) -> None:
        self.net = StackedMLP(n_features, tuple(hidden), 1)
        self.loss, self.clip, self.device = loss, clip, device
        initial = [p.to(device) for p in self.net.initial(list(seeds))]
        # The optimizer sees one long vector, the networks see views of it.
        self._vector = torch.cat([p.ravel() for p in initial])
        self._vector.grad = torch.zeros_like(self._vector)
        lengths = [p.numel() for p in initial]
        self.params, self._gradients = (
            [part.view_as(p) for part, p in zip(vector.split(lengths), initial, strict=True)]
            for vector in (self._vector, self._vector.grad)
        )
        self._optimizer: torch.optim.Optimizer
        if loss == "wasserstein":
            self._vector.clamp_(-clip, clip)
            self._optimizer = torch.optim.RMSprop([self._vector], lr=lr)
        else:
            self._optimizer = torch.optim.Adam([self._vector], lr=lr, betas=(0.5, 0.999), fused=True)

    @torch.no_grad()
    def step(self, real: torch.Tensor, fake: torch.Tensor, *, gold: bool = False) -> None:
        """Train every discriminator on its own real rows and on fakes.

        Parameters
        ----------
        real : Tensor of shape (n_discriminators, n_rows, n_features)
        fake : Tensor of shape (n_discriminators, n_rows, n_features) or (n_rows, n_features)
        gold : bool, default=False
            Weigh real rows by the ratio of densities that the discriminator itself estimates, ``exp(score)`` within
            [1/5, 5], so that rows which the generator misses count more (GOLD, Mo et al. 2019).
        """
        n_rows = real.shape[1]
        both = torch.cat([real, fake.expand(real.shape[0], *fake.shape[-2:])], dim=1)
        activations, scores = self.net.forward(self.params, both)
        weight = torch.full_like(scores, 1.0 / n_rows)
        if gold:
            ratio = scores[:, :, :n_rows].clamp(-1.6094379, 1.6094379).exp()
            weight[:, :, :n_rows] = ratio / ratio.sum(dim=2, keepdim=True)
        if self.loss == "wasserstein":
            signal = torch.ones_like(scores)
            signal[:, :, :n_rows] = -1.0
        else:
            signal = scores.sigmoid()
            signal[:, :, :n_rows] -= 1.0
        self.net.backpropagate(self.params, self._gradients, activations, signal.mul_(weight))
        self._optimizer.step()
        if self.loss == "wasserstein":
            self._vector.clamp_(-self.clip, self.clip)

    @torch.no_grad()
    def scores(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores (n_discriminators, n_rows) of rows (n_rows, n_features) that all are shown."""
        return self.net.logits(self.params, rows)[:, :, 0]

    def input_gradients(self, rows: torch.Tensor, which: int | None = None) -> torch.Tensor:
        """How each row would have to change to look more real: (n_discriminators, n_rows, n_features).

        Derivatives of ``log D`` for the logistic loss, of the score for Wasserstein. Each row's derivative is that of
        its own score. ``which`` asks one discriminator only, for (n_rows, n_features).
        """
        params = [p if which is None else p[which : which + 1] for p in self.params]
        *hidden, last, _ = params
        with torch.no_grad():
            activations, scores = self.net.forward(params, rows.expand(last.shape[0], *rows.shape))
            slope = torch.ones_like(scores) if self.loss == "wasserstein" else torch.sigmoid(-scores)
            signal = torch.bmm(slope.transpose(1, 2), last)
            for layer in range(len(hidden) - 2, -1, -2):
                signal = torch.bmm(signal * activations.pop().sign(), hidden[layer].transpose(1, 2))
        return signal if which is None else signal[0]
