"""A conditional generator network, and the student that it learns from in PATE-GAN."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

__all__ = ["GeneratorNet", "StudentDiscriminator", "one_hot_rows", "one_hot_strata"]

_CHUNK = 65_536
_CONDITION = 4.0  # of a stratum's entry: next to many features, and under noise, networks do not hear a one


def one_hot_rows(cells: NDArray[np.integer], n_cells: Sequence[int]) -> torch.Tensor:
    """Cells (n_rows, n_columns) as the blocks of a one-hot row (n_rows, sum(n_cells))."""
    starts = np.cumsum([0, *n_cells[:-1]])
    out = torch.zeros(len(cells), int(np.sum(n_cells)))
    out.scatter_(1, torch.as_tensor(cells.astype(np.int64) + starts), 1.0)
    return out


def one_hot_strata(strata: torch.Tensor, n_strata: int) -> torch.Tensor:
    """Strata as networks see them, generators and discriminators alike."""
    return _CONDITION * nn.functional.one_hot(strata, n_strata).float()


class GeneratorNet(nn.Module):
    """Noise and stratum in, a row out: one block per column of cells, or units in [−1, 1].

    Parameters
    ----------
    n_strata : int
    n_cells : sequence of int
        Cells of each column; empty for units.
    n_units : int
        Numbers of a row of units.
    allowed : ndarray of bool of shape (sum(n_cells),)
        Cells that may be sampled.
    hidden : sequence of int
    latent : int
    seed : int
        Public; of the initial weights.
    """

    def __init__(
        self,
        n_strata: int,
        n_cells: Sequence[int],
        n_units: int,
        allowed: NDArray[np.bool_],
        hidden: Sequence[int],
        latent: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.n_strata, self.n_cells, self.latent = n_strata, tuple(n_cells), latent
        width = int(np.sum(n_cells)) if self.n_cells else n_units
        layers: list[nn.Module] = []
        fan_in = latent + n_strata
        for size in hidden:
            layers += [nn.Linear(fan_in, size), nn.LayerNorm(size), nn.LeakyReLU(0.2)]
            fan_in = size
        layers.append(nn.Linear(fan_in, width))
        self.layers = nn.Sequential(*layers)
        self.register_buffer("forbidden", torch.as_tensor(~allowed))
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for layer in self.layers:
                if isinstance(layer, nn.Linear):
                    layer.reset_parameters()

    def forward(self, noise: torch.Tensor, strata: torch.Tensor) -> torch.Tensor:
        out = self.layers(torch.cat([noise, one_hot_strata(strata, self.n_strata)], dim=1))
        return out.masked_fill(self.forbidden, -1e9) if self.n_cells else torch.tanh(out)

    def fakes(self, strata: NDArray[np.int64], rng: np.random.Generator) -> torch.Tensor:
        """Rows that gradients flow through: units as they are, cells one-hot by the straight-through Gumbel trick."""
        device = next(self.parameters()).device
        noise = torch.as_tensor(rng.normal(size=(len(strata), self.latent)).astype(np.float32), device=device)
        out = self(noise, torch.as_tensor(strata, device=device))
        if not self.n_cells:
            return out
        uniform = torch.as_tensor(rng.random(tuple(out.shape)).astype(np.float32), device=device).clamp_(1e-9, 1 - 1e-7)
        blocks = []
        for block in (out - torch.log(-torch.log(uniform))).split(self.n_cells, dim=1):
            soft = torch.softmax(block / 0.5, dim=1)
            hard = nn.functional.one_hot(block.argmax(dim=1), block.shape[1]).to(soft.dtype)
            blocks.append(hard - soft.detach() + soft)
        return torch.cat(blocks, dim=1)

    @torch.no_grad()
    def rows(self, strata: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.floating | np.integer]:
        """Cells (n_rows, n_columns) or units (n_rows, n_units)."""
        parts = []
        for start in range(0, len(strata), _CHUNK):
            out = self.fakes(strata[start : start + _CHUNK], rng)
            if self.n_cells:
                out = torch.stack([block.argmax(dim=1) for block in out.split(self.n_cells, dim=1)], dim=1)
            parts.append(out.cpu().numpy())
        return np.concatenate(parts)


class StudentDiscriminator(nn.Module):
    """A perceptron with one score, which only ever sees generated rows and released labels."""

    def __init__(self, n_features: int, hidden: Sequence[int], seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers: list[nn.Module] = []
            for size in hidden:
                layers += [nn.Linear(n_features, size), nn.LeakyReLU(0.2)]
                n_features = size
            self.layers = nn.Sequential(*layers, nn.Linear(n_features, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(rows)[:, 0]
