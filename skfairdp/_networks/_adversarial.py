"""A generator and stacked discriminators in one training: what each of them sees, and how the generator moves.

No operation mixes two discriminators, their batches have one width, and all of them step at every call. So what a
discriminator knows depends on its own rows and on the fakes that all are shown, and on nothing that is drawn in secret.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from skfairdp._networks._generator import own_generator
from skfairdp._networks._image_adversaries import ImageLayers, ImageScore, StackedImageScores
from skfairdp._networks._mlp import StackedMLP
from skfairdp._networks._stacked import resolve_device
from skfairdp._utils import child_seeds

_CHUNK = 65_536
_CONDITION = 4.0  # of a cell's entry: a 1 would be lost among many features and under noise


# ---- networks ----------------------------------------------------------------------------------------------------
def _one_hot_rows(codes: NDArray[np.integer], n_codes: Sequence[int]) -> torch.Tensor:
    """Codes (n_rows, n_columns) as the blocks of a one-hot row (n_rows, sum(n_codes))."""
    starts = np.cumsum([0, *n_codes[:-1]])
    out = torch.zeros(len(codes), int(np.sum(n_codes)))
    out.scatter_(1, torch.as_tensor(codes.astype(np.int64) + starts), 1.0)
    return out


def _one_hot_cells(cells: torch.Tensor, n_cells: int) -> torch.Tensor:
    """Cells as networks see them, generators and discriminators alike."""
    return _CONDITION * nn.functional.one_hot(cells, n_cells).float()


def _perceptron(fan_in: int, hidden: Sequence[int], width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(fan_in, size), nn.LayerNorm(size), nn.LeakyReLU(0.2)]
        fan_in = size
    return nn.Sequential(*layers, nn.Linear(fan_in, width))


class GeneratorNet(nn.Module):
    """Noise and cell (group and label) in, a row out: one block per column of codes, or units in [−1, 1]."""

    def __init__(
        self,
        n_cells: int,
        n_codes: Sequence[int],
        n_units: int,
        allowed: NDArray[np.bool_],
        hidden: Sequence[int] | ImageLayers,
        latent: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.n_cells, self.n_codes, self.latent = n_cells, tuple(n_codes), latent
        width = int(np.sum(n_codes)) if self.n_codes else n_units
        if isinstance(hidden, ImageLayers):
            self.layers = hidden.generator(latent + n_cells)
        else:
            self.layers = _perceptron(latent + n_cells, hidden, width)
        self.register_buffer("forbidden", torch.as_tensor(~allowed))
        with torch.no_grad(), own_generator(seed):
            for layer in self.layers:
                if isinstance(layer, nn.Linear | nn.Conv2d):
                    layer.reset_parameters()

    def forward(self, noise: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
        out = self.layers(torch.cat([noise, _one_hot_cells(cells, self.n_cells)], dim=1))
        return out.masked_fill(self.forbidden, -1e9) if self.n_codes else torch.tanh(out)

    def fakes(self, cells: NDArray[np.int64], rng: np.random.Generator) -> torch.Tensor:
        """Rows that gradients flow through: units as they are, codes one-hot by the straight-through Gumbel trick."""
        device = next(self.parameters()).device
        noise = torch.as_tensor(rng.normal(size=(len(cells), self.latent)).astype(np.float32), device=device)
        out = self(noise, torch.as_tensor(cells, device=device))
        if not self.n_codes:
            return out
        uniform = torch.as_tensor(rng.random(tuple(out.shape)).astype(np.float32), device=device).clamp_(1e-9, 1 - 1e-7)
        blocks = []
        for block in (out - torch.log(-torch.log(uniform))).split(self.n_codes, dim=1):
            soft = torch.softmax(block / 0.5, dim=1)
            hard = nn.functional.one_hot(block.argmax(dim=1), block.shape[1]).to(soft.dtype)
            blocks.append(hard - soft.detach() + soft)
        return torch.cat(blocks, dim=1)

    @torch.no_grad()
    def rows(self, cells: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.floating | np.integer]:
        """Codes (n_rows, n_columns) or units (n_rows, n_units)."""
        parts = []
        for start in range(0, len(cells), _CHUNK):
            out = self.fakes(cells[start : start + _CHUNK], rng)
            if self.n_codes:
                out = torch.stack([block.argmax(dim=1) for block in out.split(self.n_codes, dim=1)], dim=1)
            parts.append(out.cpu().numpy())
        return np.concatenate(parts)


class StudentDiscriminator(nn.Module):
    """A network with one score, which only ever sees generated rows and released labels."""

    def __init__(self, n_features: int, hidden: Sequence[int] | ImageLayers, seed: int) -> None:
        super().__init__()
        with own_generator(seed):
            if isinstance(hidden, ImageLayers):
                self.layers: nn.Module = ImageScore(hidden, n_features)
                return
            layers: list[nn.Module] = []
            for size in hidden:
                layers += [nn.Linear(n_features, size), nn.LeakyReLU(0.2)]
                n_features = size
            self.layers = nn.Sequential(*layers, nn.Linear(n_features, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(rows)[:, 0]


class StackedDiscriminators:
    """Networks with one score each, trained to score real rows high and fakes low."""

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] | ImageLayers,
        seeds: Sequence[int],
        *,
        loss: str,
        lr: float,
        penalty: float = 10.0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.net: StackedMLP | StackedImageScores
        if isinstance(hidden, ImageLayers):
            self.net = StackedImageScores(hidden, n_features)
        else:
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
        """Train every discriminator on its own real rows and on fakes."""
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


# ---- their training ----------------------------------------------------------------------------------------------
class AdversarialTraining:
    """Discriminators hold private rows; the generator moves by what its caller lets out of them."""

    def __init__(
        self,
        values: NDArray[Any],
        cells: NDArray[np.int64],
        rates: NDArray[np.float64],
        n_codes: Sequence[int],
        allowed: NDArray[np.bool_],
        batches: Callable[[int], NDArray[np.int64]],
        n_discriminators: int,
        *,
        weights: NDArray[np.float64] | None = None,
        hidden: Sequence[int] | ImageLayers,
        latent: int,
        lr: float,
        teacher_lr: float,
        batch_size: int,
        teacher_steps: int,
        loss: str,
        gold: bool,
        device: str,
        owner: str,
        rng: np.random.Generator,
    ) -> None:
        self.device = resolve_device(device, owner=owner)
        self._rates, self._rng, self._batches = rates / rates.sum(), rng, batches
        self._batch_size, self._teacher_steps, self._gold = batch_size, teacher_steps, gold
        rows = _one_hot_rows(values, n_codes) if n_codes else torch.as_tensor(values, dtype=torch.float32)
        self.width, self._hidden, self._lr = int(rows.shape[1]), hidden, lr
        self._real = torch.cat([rows, _one_hot_cells(torch.as_tensor(cells), len(rates))], dim=1).to(self.device)
        self._weights = None if weights is None else torch.as_tensor(weights, dtype=torch.float32).to(self.device)
        seeds = child_seeds(rng, n_discriminators + 2)
        self.net = GeneratorNet(len(rates), n_codes, self.width, allowed, hidden, latent, int(seeds[-1])).to(
            self.device
        )
        self._optimizer = torch.optim.Adam(self.net.parameters(), lr=lr, betas=(0.5, 0.9))
        self.teachers = StackedDiscriminators(
            self._real.shape[1], hidden, seeds[:-2].tolist(), loss=loss, lr=teacher_lr, device=self.device
        )
        self._student: StudentDiscriminator | None = None
        self._student_seed = int(seeds[-2])

    def fakes(self, n_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Generated rows of cells drawn from the rates, and the same with their cells, as discriminators see them."""
        cells = self._rng.choice(len(self._rates), size=n_rows, p=self._rates)
        values = self.net.fakes(cells, self._rng)
        condition = _one_hot_cells(torch.as_tensor(cells, device=self.device), len(self._rates))
        return values, torch.cat([values, condition], dim=1)

    def cells(self, shown: torch.Tensor) -> NDArray[np.int64]:
        """Public: the cell of each shown row."""
        return np.asarray(shown[:, self.width :].argmax(dim=1).cpu().numpy())

    def teach(self) -> None:
        """Let every discriminator step on its own rows. All of them, always, so that no secret draw shows in them."""
        for _ in range(self._teacher_steps):
            index = torch.as_tensor(self._batches(self._batch_size), device=self.device)
            with torch.no_grad():
                _, shown = self.fakes(self._batch_size)
            weights = None if self._weights is None else self._weights[index]
            self.teachers.step(self._real[index], shown, gold=self._gold, weights=weights)

    def votes(self, shown: torch.Tensor) -> NDArray[np.int64]:
        """Private: how many discriminators take each shown row for real."""
        return np.asarray((self.teachers.scores(shown.detach()) > 0).sum(dim=0).cpu().numpy())

    def directions(self, shown: torch.Tensor, which: int | None = None) -> NDArray[np.float32]:
        """Private: how each shown row would look more real, by every discriminator or by one."""
        gradients = self.teachers.input_gradients(shown.detach(), which)
        return np.asarray(gradients[..., : self.width].cpu().numpy())

    def follow(self, values: torch.Tensor, directions: NDArray[np.floating]) -> None:
        """One step of the generator along *released* directions, one for each row of ``values``."""
        self._optimizer.zero_grad()
        values.backward(-torch.as_tensor(directions, dtype=values.dtype, device=self.device) / len(values))
        self._optimizer.step()

    def follow_student(
        self, asked: Sequence[torch.Tensor], real: NDArray[np.bool_], *, student_steps: int, generator_steps: int
    ) -> None:
        """Teach a student which generated rows were *released* as real, then move the generator by the student."""
        shown = torch.cat(list(asked))
        if self._student is None:
            self._student = StudentDiscriminator(shown.shape[1], self._hidden, self._student_seed).to(self.device)
            self._student_optimizer = torch.optim.Adam(self._student.parameters(), lr=self._lr, betas=(0.5, 0.999))
        target = torch.as_tensor(real, dtype=torch.float32, device=self.device)
        for _ in range(student_steps):
            chosen = torch.as_tensor(self._rng.integers(len(target), size=self._batch_size), device=self.device)
            self._student_optimizer.zero_grad()
            binary_cross_entropy_with_logits(self._student(shown[chosen]), target[chosen]).backward()
            self._student_optimizer.step()
        for _ in range(generator_steps):
            _, fresh = self.fakes(self._batch_size)
            self._optimizer.zero_grad()
            softplus(-self._student(fresh)).mean().backward()
            self._optimizer.step()

    def finished(self) -> GeneratorNet:
        """The generator alone."""
        return self.net.requires_grad_(False).cpu()
