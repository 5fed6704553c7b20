"""Many discriminators as one tensor program: each sees rows of its own, and none sees another's.

No operation mixes two discriminators, their batches have one width, and all of them step at every call. So what a
discriminator knows depends on its own rows and on the fakes that all are shown, and on nothing that is drawn in secret.
"""

from collections.abc import Sequence

import torch

from skfairdp._networks._mlp import StackedMLP

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
        ``"wasserstein"`` holds the slope of a score between real and fake rows close to one (Gulrajani et al. 2017).
    lr : float
        Step size of Adam.
    penalty : float, default=10.0
        On slopes other than one.
    device : torch.device or str, default="cpu"

    Examples
    --------
    >>> import torch
    >>> from skfairdp._networks import StackedDiscriminators
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
        penalty: float = 10.0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.net = StackedMLP(n_features, tuple(hidden), 1)
        self.loss, self.penalty, self.device = loss, penalty, device
        initial = [p.to(device) for p in self.net.initial(list(seeds))]
        # The optimizer sees one long vector, the networks see views of it.
        self._vector = torch.cat([p.ravel() for p in initial])
        self._vector.grad = torch.zeros_like(self._vector)
        lengths = [p.numel() for p in initial]
        self.params, self._gradients = (
            [part.view_as(p) for part, p in zip(vector.split(lengths), initial, strict=True)]
            for vector in (self._vector, self._vector.grad)
        )
        betas = (0.5, 0.9) if loss == "wasserstein" else (0.5, 0.999)
        self._optimizer = torch.optim.Adam([self._vector], lr=lr, betas=betas, fused=True)
        # Where between a real and a fake row slopes are looked at: public, and shared by all.
        self._between = torch.Generator().manual_seed(int(seeds[0]))

    @torch.no_grad()
    def step(
        self, real: torch.Tensor, fake: torch.Tensor, *, gold: bool = False, weights: torch.Tensor | None = None
    ) -> None:
        """Train every discriminator on its own real rows and on fakes.

        Parameters
        ----------
        real : Tensor of shape (n_discriminators, n_rows, n_features)
        fake : Tensor of shape (n_discriminators, n_rows, n_features) or (n_rows, n_features)
        gold : bool, default=False
            Weigh real rows by the ratio of densities that the discriminator itself estimates, ``exp(score)`` within
            [1/5, 5], so that rows which the generator misses count more (GOLD, Mo et al. 2019).
        weights : Tensor of shape (n_discriminators, n_rows), default=None
            Of real rows in the loss; each line counts by its shares of the sum.
        """
        n_rows = real.shape[1]
        both = torch.cat([real, fake.expand(real.shape[0], *fake.shape[-2:])], dim=1)
        activations, scores = self.net.forward(self.params, both)
        weight = torch.full_like(scores, 1.0 / n_rows)
        if gold or weights is not None:
            ratio = scores[:, :, :n_rows].clamp(-1.6094379, 1.6094379).exp() if gold else torch.ones(())
            ratio = ratio if weights is None else ratio * weights[:, None, :]
            weight[:, :, :n_rows] = ratio / ratio.sum(dim=2, keepdim=True)
        if self.loss == "wasserstein":
            signal = torch.ones_like(scores)
            signal[:, :, :n_rows] = -1.0
        else:
            signal = scores.sigmoid()
            signal[:, :, :n_rows] -= 1.0
        self.net.backpropagate(self.params, self._gradients, activations, signal.mul_(weight))
        if self.loss == "wasserstein":
            at = torch.rand((n_rows, 1), generator=self._between).to(self.device)
            self.net.penalise_slopes(self.params, self._gradients, torch.lerp(real, fake, at), self.penalty)
        self._optimizer.step()

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
        with torch.no_grad():
            activations, scores = self.net.forward(params, rows.expand(params[-1].shape[0], *rows.shape))
            slope = torch.ones_like(scores) if self.loss == "wasserstein" else torch.sigmoid(-scores)
            signal = self.net.signals(params, activations, slope)[-1]
        return signal if which is None else signal[0]
