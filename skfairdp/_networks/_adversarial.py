"""A generator and stacked discriminators in one training: what each of them sees, and how the generator moves."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from skfairdp._networks._generator_net import GeneratorNet, StudentDiscriminator, one_hot_rows, one_hot_strata
from skfairdp._networks._stacked import resolve_device
from skfairdp._networks._stacked_gan import StackedDiscriminators
from skfairdp.utils import child_seeds

__all__ = ["AdversarialTraining"]


class AdversarialTraining:
    """Discriminators hold private rows; the generator moves by what its caller lets out of them.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Private: cells, or units in [−1, 1].
    strata : ndarray of int of shape (n_rows,)
        Private: the group and label of each row as one number.
    law : ndarray of shape (n_strata,)
        Strata that generated rows are drawn from.
    n_cells : sequence of int
        Of each column; empty for units.
    allowed : ndarray of bool of shape (sum(n_cells),)
    batches : callable
        Number of rows → positions (n_discriminators, n_rows), a line for each discriminator's own rows.
    n_discriminators : int
    weights : ndarray of shape (n_rows,) or None
        Private: of rows in the loss of the discriminator that has them.
    hidden, latent, lr, teacher_lr
        Of the networks.
    batch_size, teacher_steps : int
        Of the discriminators.
    loss : {"logistic", "wasserstein"}
    gold : bool
    device : str
    owner : str
    rng : Generator
        Public randomness: initial weights, noise that rows start from, strata.
    """

    def __init__(
        self,
        values: NDArray[Any],
        strata: NDArray[np.int64],
        law: NDArray[np.float64],
        n_cells: Sequence[int],
        allowed: NDArray[np.bool_],
        batches: Callable[[int], NDArray[np.int64]],
        n_discriminators: int,
        *,
        weights: NDArray[np.float64] | None = None,
        hidden: Sequence[int],
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
        self._law, self._rng, self._batches = law / law.sum(), rng, batches
        self._batch_size, self._teacher_steps, self._gold = batch_size, teacher_steps, gold
        rows = one_hot_rows(values, n_cells) if n_cells else torch.as_tensor(values, dtype=torch.float32)
        self.width, self._hidden, self._lr = int(rows.shape[1]), hidden, lr
        self._real = torch.cat([rows, one_hot_strata(torch.as_tensor(strata), len(law))], dim=1).to(self.device)
        self._weights = None if weights is None else torch.as_tensor(weights, dtype=torch.float32).to(self.device)
        seeds = child_seeds(rng, n_discriminators + 2)
        self.net = GeneratorNet(len(law), n_cells, self.width, allowed, hidden, latent, int(seeds[-1])).to(self.device)
        self._optimizer = torch.optim.Adam(self.net.parameters(), lr=lr, betas=(0.5, 0.9))
        self.teachers = StackedDiscriminators(
            self._real.shape[1], hidden, seeds[:-2].tolist(), loss=loss, lr=teacher_lr, device=self.device
        )
        self._student: StudentDiscriminator | None = None
        self._student_seed = int(seeds[-2])

    def fakes(self, n_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Generated rows of strata drawn from the law, and the same with their strata, as discriminators see them."""
        strata = self._rng.choice(len(self._law), size=n_rows, p=self._law)
        values = self.net.fakes(strata, self._rng)
        condition = one_hot_strata(torch.as_tensor(strata, device=self.device), len(self._law))
        return values, torch.cat([values, condition], dim=1)

    def strata(self, shown: torch.Tensor) -> NDArray[np.int64]:
        """Public: the stratum of each shown row."""
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
