"""GS-WGAN: a generator that follows clipped gradients of discriminators, of all of them or of one drawn in secret."""

from collections.abc import Sequence
from typing import Any

from skfairdp.generative._adversarial import AdversarialBackend
from skfairdp.generative._backend import Layout
from skfairdp.generative._fairly_clipped_gan import FairlyClippedPlan
from skfairdp.generative._gs_wgan_plans import DrawnGSWGANPlan, GSWGANPlan, MeanGSWGANPlan
from skfairdp.utils._sklearn import StrOptions

__all__ = ["GSWGANBackend"]


class GSWGANBackend(AdversarialBackend):
    """In each step discriminators show the generator clipped gradients by its rows, with noise.

    **Guarantee.** Differential privacy for one replaced record. A step is one release of a whole batch of B rows, whose
    gradients have norm C = 1.

    * ``answers="all"``: the mean over all discriminators. One record changes one of them: the mean moves by at most
      2C√B / n_teachers, a Gaussian release composed over ``n_steps``.
    * ``answers="one"``, as published: one discriminator, drawn in secret, with D = 2C√B; the draw is shared by all B
      rows. It is accounted as a replaced contribution to a sample with probability 1/n_teachers and c = D, composed
      over ``n_steps``. The published accounting counts B independent draws a step; at its setting ε is above 300
      where 10 is claimed. All discriminators train in every step, so that earlier secret draws do not show in what a
      later one answers.

    ``clipping="dpsgd_f"`` and ``"global_adapt"`` are baselines of the paper (its Table 3), with the sensitivity they
    have: the noisy counts by which bounds move are releases too, and one record moves them by every row of one
    discriminator.

    Discriminators that have to train anyway may as well answer: with 100 of them and 400 steps the mean has 5.0 times
    less noise at ε = 10 and 1.6 times less at ε = 1; with 1,000 and the published 20,000 steps, 6.6 and 1.8 times.

    Chen, Orekondy & Fritz (2020), with fair batches of PFGuard.

    Parameters
    ----------
    answers : {"all", "one"}, default="all"
        Who answers in a step.
    clipping : {"unit", "dpsgd_f", "global_adapt"}, default="unit"
        ``"unit"``: every gradient has norm C. ``"dpsgd_f"``: a bound for each group of the generated rows, larger where
        more of its gradients exceed C (Xu, Du & Wu 2020). ``"global_adapt"``: gradients are scaled by C/Z and clipped
        above Z (Esipova et al. 2022). Both with ``answers="all"``.
    n_steps, batch_size : int, default=400, 32
        Steps of the generator, and rows in each.
    teacher_steps : int, default=3
        Steps of all discriminators before each release, with a gradient penalty.
    hidden : tuple of int, default=(64, 64)
    latent : int, default=8
    lr, teacher_lr : float, default=1e-3, 1e-3

    Examples
    --------
    >>> from skfairdp.generative import GSWGANBackend
    >>> GSWGANBackend(n_steps=100)
    GSWGANBackend(n_steps=100)
    """

    _parameter_constraints: dict[str, Any] = {
        **AdversarialBackend._parameter_constraints,
        "answers": [StrOptions({"all", "one"})],
        "clipping": [StrOptions({"unit", "dpsgd_f", "global_adapt"})],
    }

    def __init__(
        self,
        *,
        answers: str = "all",
        clipping: str = "unit",
        n_steps: int = 400,
        batch_size: int = 32,
        teacher_steps: int = 3,
        hidden: Sequence[int] = (64, 64),
        latent: int = 8,
        lr: float = 1e-3,
        teacher_lr: float = 1e-3,
    ) -> None:
        self.answers = answers
        self.clipping = clipping
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.teacher_steps = teacher_steps
        self.hidden = hidden
        self.latent = latent
        self.lr = lr
        self.teacher_lr = teacher_lr

    def plan(self, layout: Layout) -> "GSWGANPlan":
        """Declare the number of steps."""
        self._validate_params()
        if self.clipping != "unit":
            if self.answers != "all":
                raise ValueError(
                    f"GSWGANBackend(clipping={self.clipping!r}) counts the gradients of all discriminators and needs "
                    "answers='all'."
                )
            return FairlyClippedPlan(self, layout)
        return (MeanGSWGANPlan if self.answers == "all" else DrawnGSWGANPlan)(self, layout)
