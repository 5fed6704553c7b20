"""A generator and stacked discriminators in one training: what each of them sees, and how the generator moves.

No operation mixes two discriminators, their batches have one width, and all of them step at every call. So what a
discriminator knows depends on its own rows and on the fakes that all are shown, and on nothing that is drawn in secret.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import binary_cross_entropy_with_logits, softplus
from torch.types import Device

from skfairdp._networks._mlp import StackedMLP
from skfairdp._networks._process import own_generator, resolve_device
from skfairdp._networks._shorthands import group_norm, image_sizes, listed_channels
from skfairdp._networks._stacked import one_vector
from skfairdp._tables import Rows
from skfairdp._typing import Bools, Floats, Ints, Pair, Reals
from skfairdp._utils import child_seeds


@dataclass(frozen=True)
class ImageLayers:
    """Sizes of the convolutions of a generator and of discriminators. Public."""

    image_shape: tuple[int, int, int]
    channels: tuple[int, ...]

    @classmethod
    def of(cls, image_shape: Sequence[int] | None, channels: Sequence[int], n_features: int) -> "ImageLayers":
        """Read the sizes that a user gave for rows of ``n_features``."""
        return cls(image_sizes(image_shape, n_features), listed_channels(channels))

    @property
    def sides(self) -> list[Pair]:
        """Height and width before the first block and after each."""
        found = [self.image_shape[1:]]
        for _ in self.channels:
            found.append(((found[-1][0] + 1) // 2, (found[-1][1] + 1) // 2))
        return found

    def generator(self, n_inputs: int) -> nn.Sequential:
        """A linear layer to the smallest maps; each block then doubles height and width. Ends in flat rows."""
        *larger, (height, width) = self.sides
        widths = (*reversed(self.channels), self.image_shape[0])
        layers: list[nn.Module] = [nn.Linear(n_inputs, widths[0] * height * width)]
        layers.append(nn.Unflatten(1, (widths[0], height, width)))
        for (before, after), side in zip(pairwise(widths), reversed(larger), strict=True):
            layers += [group_norm(before), nn.LeakyReLU(0.2), nn.Upsample(size=side)]
            layers.append(nn.Conv2d(before, after, 3, padding=1))
        return nn.Sequential(*layers, nn.Flatten())


#: Widths of hidden layers, or convolutions.
Hidden = Sequence[int] | ImageLayers


class ImageScore(nn.Module):
    """One score of a row that has the pixels of an image first, then a condition, which every position is shown."""

    def __init__(self, sizes: ImageLayers, n_features: int) -> None:
        super().__init__()
        depth, height, width = sizes.image_shape
        self.image_shape, self.n_pixels = sizes.image_shape, depth * height * width
        layers: list[nn.Module] = []
        for before, after in pairwise((depth + n_features - self.n_pixels, *sizes.channels)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
        height, width = sizes.sides[-1]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(sizes.channels[-1] * height * width, 1))

    def forward(self, rows: Tensor) -> Tensor:
        images = rows[:, : self.n_pixels].reshape(-1, *self.image_shape)
        condition = rows[:, self.n_pixels :, None, None].expand(-1, -1, *self.image_shape[1:])
        return self.layers(torch.cat([images, condition], dim=1))


class StackedImageScores:
    """Many convolutional discriminators as one program, with what :class:`StackedMLP` offers for discriminators.
    Each network has its own parameters, rows and gradients; none is computed from another's."""

    def __init__(self, sizes: ImageLayers, n_features: int) -> None:
        with own_generator():
            self._module = ImageScore(sizes, n_features)
        self._names = [name for name, _ in self._module.named_parameters()]

    def initial(self, seeds: Sequence[int]) -> list[Tensor]:
        """Draw one set of parameters per seed, from torch's default law."""
        copies = [deepcopy(self._module) for _ in seeds]
        for seed, module in zip(seeds, copies, strict=True):
            with own_generator(int(seed)):
                for layer in module.layers:
                    if isinstance(layer, nn.Conv2d | nn.Linear):
                        layer.reset_parameters()
        stacked, _ = stack_module_state(copies)
        return [stacked[name].detach() for name in self._names]

    def forward(self, params: list[Tensor], x: Tensor) -> tuple[list[Tensor], Tensor]:
        """The rows (networks, rows, n_features), and their scores (networks, 1, rows)."""
        return [x], self._scores(params, x)[:, None, :]

    def backpropagate(
        self, params: list[Tensor], gradients: list[Tensor], activations: list[Tensor], signal: Tensor
    ) -> None:
        """Write into ``gradients`` what the derivatives ``signal`` (networks, 1, rows) by the scores come to."""
        with torch.enable_grad():
            own = [p.detach().requires_grad_() for p in params]
            scores = self._scores(own, activations[0])
        for gradient, found in zip(gradients, torch.autograd.grad(scores, own, signal[:, 0, :]), strict=True):
            gradient.copy_(found)

    def signals(self, params: list[Tensor], activations: list[Tensor], signal: Tensor) -> list[Tensor]:
        """What derivatives ``signal`` by the scores are by the rows: one tensor (networks, rows, n_features)."""
        with torch.enable_grad():
            rows = activations[0].detach().requires_grad_()
            scores = self._scores(params, rows)
        return list(torch.autograd.grad(scores, rows, signal[:, 0, :]))

    def penalise_slopes(self, params: list[Tensor], gradients: list[Tensor], x: Tensor, strength: float) -> None:
        """Add to ``gradients`` those of ``strength`` times the mean of (‖∂ score/∂ row‖ − 1)² over the rows ``x``."""
        with torch.enable_grad():
            own = [p.detach().requires_grad_() for p in params]
            rows = x.detach().requires_grad_()
            (slopes,) = torch.autograd.grad(self._scores(own, rows).sum(), rows, create_graph=True)
            norms = (slopes.square().sum(dim=2) + 1e-24).sqrt()
            penalty = strength * (norms - 1).square().mean(dim=1).sum()
        found = torch.autograd.grad(penalty, own, allow_unused=True)
        for gradient, more in zip(gradients, found, strict=True):
            if more is not None:  # biases change no slope
                gradient.add_(more)

    def logits(self, params: list[Tensor], x: Tensor) -> Tensor:
        """Scores (networks, rows, 1) of rows (rows, n_features) that all are shown."""
        return self._scores(params, x.expand(params[0].shape[0], *x.shape))[:, :, None]

    def _scores(self, params: list[Tensor], x: Tensor) -> Tensor:
        def one(own: dict[str, Tensor], rows: Tensor) -> Tensor:
            return functional_call(self._module, own, (rows,))[:, 0]

        return vmap(one)(dict(zip(self._names, params, strict=True)), x)


_CHUNK = 65_536
_PENALTY = 10.0  # weight of the norms of slopes in the loss of Wasserstein
_CONDITION = 4.0  # of a cell's entry: a 1 would be lost among many features and under noise


def _one_hot_cells(cells: Tensor, n_cells: int) -> Tensor:
    """Cells as networks see them, generators and discriminators alike."""
    return _CONDITION * nn.functional.one_hot(cells, n_cells).float()


def _perceptron(fan_in: int, hidden: Sequence[int], width: int, *, normalised: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(fan_in, size), *([nn.LayerNorm(size)] if normalised else []), nn.LeakyReLU(0.2)]
        fan_in = size
    return nn.Sequential(*layers, nn.Linear(fan_in, width))


class GeneratorNet(nn.Module):
    """Noise and cell (group and label) in, a row out: one block per column of codes, or units in [−1, 1]."""

    def __init__(
        self, n_cells: int, n_codes: Sequence[int], n_units: int, allowed: Bools, hidden: Hidden, latent: int, seed: int
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

    def forward(self, noise: Tensor, cells: Tensor) -> Tensor:
        out = self.layers(torch.cat([noise, _one_hot_cells(cells, self.n_cells)], dim=1))
        return out.masked_fill(self.forbidden, -1e9) if self.n_codes else torch.tanh(out)

    def fakes(self, cells: Ints, rng: Generator) -> Tensor:
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
    def rows(self, cells: Ints, rng: Generator) -> NDArray[np.floating | np.integer]:
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

    def __init__(self, n_features: int, hidden: Hidden, seed: int) -> None:
        super().__init__()
        with own_generator(seed):
            if isinstance(hidden, ImageLayers):
                self.layers: nn.Module = ImageScore(hidden, n_features)
                return
            self.layers = _perceptron(n_features, hidden, 1, normalised=False)

    def forward(self, rows: Tensor) -> Tensor:
        return self.layers(rows)[:, 0]


class StackedDiscriminators:
    """Networks with one score each, trained to score real rows high and fakes low."""

    def __init__(
        self, n_features: int, hidden: Hidden, seeds: Sequence[int], *, loss: str, lr: float, device: Device = "cpu"
    ) -> None:
        self.net: StackedMLP | StackedImageScores
        if isinstance(hidden, ImageLayers):
            self.net = StackedImageScores(hidden, n_features)
        else:
            self.net = StackedMLP(n_features, tuple(hidden), 1)
        self.loss, self.device = loss, device
        vector, self.params, self._gradients = one_vector([p.to(device) for p in self.net.initial(list(seeds))])
        betas = (0.5, 0.9) if loss == "wasserstein" else (0.5, 0.999)
        self._optimizer = torch.optim.Adam([vector], lr=lr, betas=betas, fused=True)
        # Where between a real and a fake row slopes are looked at: public, and shared by all.
        self._between = torch.Generator().manual_seed(int(seeds[0]))

    @torch.no_grad()
    def step(self, real: Tensor, fake: Tensor, *, gold: bool = False, weights: Tensor | None = None) -> None:
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
            self.net.penalise_slopes(self.params, self._gradients, torch.lerp(real, fake, at), _PENALTY)
        self._optimizer.step()

    @torch.no_grad()
    def scores(self, rows: Tensor) -> Tensor:
        """Scores (n_discriminators, n_rows) of rows (n_rows, n_features) that all are shown."""
        return self.net.logits(self.params, rows)[:, :, 0]

    def input_gradients(self, rows: Tensor, which: int | None = None) -> Tensor:
        """Derivatives of ``log D``, or of Wasserstein's score, by each row, of all discriminators or of ``which``."""
        params = [p if which is None else p[which : which + 1] for p in self.params]
        with torch.no_grad():
            activations, scores = self.net.forward(params, rows.expand(params[-1].shape[0], *rows.shape))
            slope = torch.ones_like(scores) if self.loss == "wasserstein" else torch.sigmoid(-scores)
            signal = self.net.signals(params, activations, slope)[-1]
        return signal if which is None else signal[0]


def as_features(values: Any, n_codes: tuple[int, ...]) -> Floats:
    """Rows for a network or a linear classifier: codes one-hot, units as they are."""
    if not n_codes:
        return np.asarray(values, dtype=np.float64)
    out = np.zeros((len(values), sum(n_codes)))
    np.put_along_axis(out, values + np.cumsum([0, *n_codes[:-1]]), 1.0, axis=1)
    return out


# ---- their training ----------------------------------------------------------------------------------------------
class AdversarialTraining:
    """Discriminators hold private rows; the generator moves by what its caller lets out of them."""

    def __init__(self, rows: Rows, parts: Any, hidden: Hidden, settings: Any, *, loss: str, rng: Generator) -> None:
        self.device = resolve_device(settings.device, owner=type(settings).__name__)
        rates, n_codes = rows.rates.ravel(), rows.n_codes
        self._rates, self._rng, self._batches = rates / rates.sum(), rng, parts.batch
        self._settings, weights = settings, parts.loss_weights
        features = torch.as_tensor(as_features(rows.values, n_codes), dtype=torch.float32)
        self.width, self._hidden = int(features.shape[1]), hidden
        cells = _one_hot_cells(torch.as_tensor(rows.cells), len(rates))
        self._real = torch.cat([features, cells], dim=1).to(self.device)
        self._weights = None if weights is None else torch.as_tensor(weights, dtype=torch.float32).to(self.device)
        seeds = child_seeds(rng, settings.n_teachers + 2)
        sampled = np.concatenate(rows.sampled) if n_codes else np.zeros(0, dtype=bool)
        net = GeneratorNet(len(rates), n_codes, self.width, sampled, hidden, settings.latent, int(seeds[-1]))
        self.net = net.to(self.device)
        self._optimizer = torch.optim.Adam(self.net.parameters(), lr=settings.lr, betas=(0.5, 0.9))
        how: dict[str, Any] = {"loss": loss, "lr": settings.teacher_lr, "device": self.device}
        self.teachers = StackedDiscriminators(self._real.shape[1], hidden, seeds[:-2].tolist(), **how)
        self._student: StudentDiscriminator | None = None
        self._student_seed = int(seeds[-2])

    def fakes(self, n_rows: int) -> tuple[Tensor, Tensor]:
        """Generated rows of cells drawn from the rates, and the same with their cells, as discriminators see them."""
        cells = self._rng.choice(len(self._rates), size=n_rows, p=self._rates)
        values = self.net.fakes(cells, self._rng)
        condition = _one_hot_cells(torch.as_tensor(cells, device=self.device), len(self._rates))
        return values, torch.cat([values, condition], dim=1)

    def cells(self, shown: Tensor) -> Ints:
        """Public: the cell of each shown row."""
        return np.asarray(shown[:, self.width :].argmax(dim=1).cpu().numpy())

    def teach(self) -> None:
        """Let every discriminator step on its own rows. All of them, always, so that no secret draw shows in them."""
        size, gold = self._settings.batch_size, self._settings.teacher_loss == "gold"
        for _ in range(self._settings.teacher_steps):
            index = torch.as_tensor(self._batches(size), device=self.device)
            with torch.no_grad():
                _, shown = self.fakes(size)
            weights = None if self._weights is None else self._weights[index]
            self.teachers.step(self._real[index], shown, gold=gold, weights=weights)

    def votes(self, shown: Tensor) -> Ints:
        """Private: how many discriminators take each shown row for real."""
        return np.asarray((self.teachers.scores(shown.detach()) > 0).sum(dim=0).cpu().numpy())

    def directions(self, shown: Tensor, which: int | None = None) -> NDArray[np.float32]:
        """Private: how each shown row would look more real, by every discriminator or by one."""
        return np.asarray(self.teachers.input_gradients(shown.detach(), which)[..., : self.width].cpu().numpy())

    def follow(self, values: Tensor, directions: Reals) -> None:
        """One step of the generator along *released* directions, one for each row of ``values``."""
        self._optimizer.zero_grad()
        values.backward(-torch.as_tensor(directions, dtype=values.dtype, device=self.device) / len(values))
        self._optimizer.step()

    def follow_student(self, asked: Sequence[Tensor], real: Bools, *, student_steps: int, generator_steps: int) -> None:
        """Teach a student which generated rows were *released* as real, then move the generator by the student."""
        shown, settings = torch.cat(list(asked)), self._settings
        if self._student is None:
            self._student = StudentDiscriminator(shown.shape[1], self._hidden, self._student_seed).to(self.device)
            self._student_optimizer = torch.optim.Adam(self._student.parameters(), lr=settings.lr, betas=(0.5, 0.999))
        target = torch.as_tensor(real, dtype=torch.float32, device=self.device)
        for _ in range(student_steps):
            chosen = torch.as_tensor(self._rng.integers(len(target), size=settings.batch_size), device=self.device)
            self._student_optimizer.zero_grad()
            binary_cross_entropy_with_logits(self._student(shown[chosen]), target[chosen]).backward()
            self._student_optimizer.step()
        for _ in range(generator_steps):
            _, fresh = self.fakes(settings.batch_size)
            self._optimizer.zero_grad()
            softplus(-self._student(fresh)).mean().backward()
            self._optimizer.step()
