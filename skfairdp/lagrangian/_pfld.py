"""PF-LD: a network held to fairness constraints while the groups of its training rows stay private."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED

from skfairdp._base import LARGEST_PUBLIC, FairPrivateMixin
from skfairdp._network_classifier import NetworkPredictions
from skfairdp.fairness import FairnessConstraints, read_constraints
from skfairdp.lagrangian._plan import PFLDPlan
from skfairdp.privacy import NeighboringRelation, PrivacyLedger
from skfairdp.utils import RandomStateLike, child_seeds, public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["PFLDClassifier"]

_NOTIONS = ("accuracy_parity", "demographic_parity", "equalized_odds")


class PFLDClassifier(NetworkPredictions, FairPrivateMixin, ClassifierMixin, BaseEstimator):
    """Network held to fairness constraints by private Lagrange multipliers; the groups are protected, nothing else.

    **Guarantee.** (ε, δ)-differential privacy for the *sensitive attribute* of one row: neighbours differ in the group
    of one row. **Features, labels and the number of rows count as public**, and so do the names of the groups, the
    classes and all constructor parameters. ``privacy_.epsilon`` is computed from the declared releases alone. It is no
    guarantee for the rows themselves, and none at all where a feature says which group a row belongs to: drop such
    columns (``sensitive_columns``). The group is needed by ``fit`` only.

    The network minimises ``loss + Σ_a λ_a (mean of h in group a - mean of h)``, where the multipliers λ follow the
    violations. Three things are released of the groups: their sizes, once; the violations, ``dual_steps`` times, one
    number each, which is accurate even at ε = 0.5; and what the primal steps need. (Tran, Fioretto & Van Hentenryck
    2021. Their Theorem 1 does not hold: the sign of a violation depends on private groups, and the noise on their
    sizes. Here multipliers have a sign of their own and all noise scales are public; signs come from noisy releases.)

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Privacy budget; greater than 0. None trains without noise and without privacy (F-LD), by the same code;
        ``privacy_.epsilon`` is then inf.
    delta : float, default=1e-5
        In (0, 1).
    constraints : str, fairlearn moment or list of them, default="demographic_parity"
        "demographic_parity" (same predictions), "equalized_odds" (same predictions within each true class),
        "accuracy_parity" (same errors), or several of them at once. Moments of fairlearn mean the same:
        ``fairlearn.reductions.DemographicParity()``, ``EqualizedOdds()``, ``ErrorRateParity()``, without bounds.
    lam_max : float, default=5.0
        Multipliers stay in [-lam_max, lam_max]. Small values trade fairness for accuracy; 0 is no constraint.
    dual_step : float, default=None
        How far a multiplier moves for a violation of 1 in the first of the dual steps; later ones shrink, to a share
        1/``dual_steps`` of it. None is 10 (1 for several notions at once, which may contradict each other), or as much
        less as keeps the noise in a multiplier at 0.5.
    dual_steps : int, default=40
        Releases of the violations, evenly over the training.
    violations : {"predictions", "probabilities"}, default="predictions"
        Whether multipliers follow the predicted classes or their probabilities.
    primal : {"group_model", "gradient"}, default="group_model"
        What the primal steps release. "group_model": noisy moments of public features in each group, once, from which
        the group of every row is estimated; all steps then follow those estimates at no cost. "gradient": a noisy
        gradient of the constraints, ``primal_steps`` times.
    group_features : int, default=64
        Features of the group model: of X, of X by class, and random nonlinear ones.
    primal_steps : int, default=200
        Number of noisy gradients, spread over the training; each is followed until the next.
    sampling : {"full", "poisson"}, default="full"
        Whether a noisy gradient reads all rows or a secret Poisson sample, which is faster. Only with
        ``primal="gradient"``.
    sampling_probability : float, default=0.05
        Of the Poisson sample.
    clip : float, default=None
        Clipping bound of centred gradients. None takes the largest norm there is, which is public: no bias.
    n_components : int, default=None
        Project noisy gradients on so many principal directions of the public centred gradients. None does not.
    budget_split : tuple of three float, default=None
        Shares of sizes, primal and dual releases in the squared Gaussian budget μ². None is (0.02, 0.49, 0.49) for a
        group model and (0.02, 0.78, 0.20) for noisy gradients.
    module : {"mlp", "cnn"} or torch.nn.Module, default="mlp"
        As in :class:`FairDPSGDClassifier`. Dropout acts on the loss; releases are formed without it.
    hidden : tuple of int, default=(64,)
        Hidden layers of "mlp".
    image_shape : tuple of three int, default=None
        Channels, height and width of the rows of X, for "cnn".
    epochs : float, default=None
        Passes over the rows. None is 20, and as many more as 2000 steps take.
    batch_size : int, default=256
        Of the public batches.
    lr : float, default=1e-3
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty.
    average_last : float, default=0.25
        Share of the last iterates whose average is kept.
    classes : array-like, default=None
        All class labels. None reads them from y, which is public here.
    groups : list, default=None
        All groups (tuples for intersections). None reads them from the private groups, which is a release; a
        PrivacyLeakWarning says so.
    sensitive_columns : str, int or list of them, default=None
        Columns of X that hold the group. They are dropped from the features and still counted in ``n_features_in_``.
    device : str, default="cpu"
        Where to train, for example "cuda".
    random_state : int, RandomState, Generator or None, default=None
        Public randomness: initial weights, batches, random features. Never Poisson samples or noise.
    noise_seed : int, default=None
        Makes samples and noise reproducible for research and tests; ``privacy_.epsilon`` is then inf.
    ledger : PrivacyLedger, default=None
        Counts this fit with all others on the same data, and may refuse it.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    net_ : torch.nn.Module
        The trained network, on the CPU. Differentially private in the groups.
    classes_ : ndarray of shape (n_classes,)
    groups_ : ndarray of shape (n_groups,), dtype object
    multipliers_ : ndarray of shape (n_groups, n_cells, n_constraints)
        The last multipliers. Constraints come in the order given, each class of more than two one after the other; a
        constraint that compares all rows uses the first cell only. Differentially private.
    noisy_counts_ : ndarray of shape (n_groups, n_cells)
        Sizes of the groups, within each class if a constraint needs that, as released.
    privacy_ : PrivacySpent
        The certified guarantee.
    epsilon_spent_ : float
        Shorthand for ``privacy_.epsilon``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X had string column names.

    Raises
    ------
    BudgetExceededError
        From ``fit``, before any release, when the ledger cannot afford it.
    ValueError
        From ``fit``, on unusable input, before anything is spent.

    Examples
    --------
    >>> from skfairdp.gradient import PFLDClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, random_state=0)
    >>> model = PFLDClassifier(epsilon=1.0, epochs=3, groups=sorted(set(groups)), random_state=0)
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> print(model.privacy_.protects, round(model.privacy_.epsilon, 6))
    sensitive attribute 1.0
    """

    _parameter_constraints: dict[str, Any] = {
        "epsilon": [Interval(Real, 0, 1e9, closed="right"), None],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "constraints": [object],
        "lam_max": [Interval(Real, 0, None, closed="left")],
        "dual_step": [Interval(Real, 0, None, closed="neither"), None],
        "dual_steps": [Interval(Integral, 1, None, closed="left")],
        "violations": [StrOptions({"predictions", "probabilities"})],
        "primal": [StrOptions({"group_model", "gradient"})],
        "group_features": [Interval(Integral, 1, None, closed="left")],
        "primal_steps": [Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions({"full", "poisson"})],
        "sampling_probability": [Interval(Real, 0, 1, closed="neither")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "budget_split": [tuple, list, None],
        "module": [StrOptions({"mlp", "cnn"}), HasMethods(["parameters", "forward"])],
        "hidden": [tuple, list],
        "image_shape": [tuple, list, None],
        "epochs": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "average_last": [Interval(Real, 0, 1, closed="both")],
        "classes": ["array-like", None],
        "groups": ["array-like", None],
        "sensitive_columns": [str, Integral, list, tuple, None],
        "device": [str],
        "random_state": ["random_state"],
        "noise_seed": [Interval(Integral, 0, None, closed="left"), None],
        "ledger": [HasMethods(["charge"]), None],
        "verbose": ["verbose"],
    }
    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED}  # there are no public rows

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        constraints: Any = "demographic_parity",
        lam_max: float = 5.0,
        dual_step: float | None = None,
        dual_steps: int = 40,
        violations: str = "predictions",
        primal: str = "group_model",
        group_features: int = 64,
        primal_steps: int = 200,
        sampling: str = "full",
        sampling_probability: float = 0.05,
        clip: float | None = None,
        n_components: int | None = None,
        budget_split: Sequence[float] | None = None,
        module: Any = "mlp",
        hidden: Sequence[int] = (64,),
        image_shape: Sequence[int] | None = None,
        epochs: float | None = None,
        batch_size: int = 256,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        average_last: float = 0.25,
        classes: ArrayLike | None = None,
        groups: Sequence[Any] | None = None,
        sensitive_columns: str | int | Sequence[str | int] | None = None,
        device: str = "cpu",
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.constraints = constraints
        self.lam_max = lam_max
        self.dual_step = dual_step
        self.dual_steps = dual_steps
        self.violations = violations
        self.primal = primal
        self.group_features = group_features
        self.primal_steps = primal_steps
        self.sampling = sampling
        self.sampling_probability = sampling_probability
        self.clip = clip
        self.n_components = n_components
        self.budget_split = budget_split
        self.module = module
        self.hidden = hidden
        self.image_shape = image_shape
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.average_last = average_last
        self.classes = classes
        self.groups = groups
        self.sensitive_columns = sensitive_columns
        self.device = device
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> "PFLDClassifier":
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Public features.
        y : array-like of shape (n_rows,)
            Public labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups of the rows, unless ``sensitive_columns`` names the columns that hold them.

        Returns
        -------
        self
        """
        from skfairdp._networks import prepare_network
        from skfairdp.lagrangian import ConstraintGradient, LagrangianTraining, train_lagrangian
        from skfairdp.lagrangian._group_model import estimate_groups, public_features

        self._validate_params()
        notions = read_constraints(self.constraints, type(self).__name__, supported=_NOTIONS)
        features, classes, codes, groups, domain = self._rows(X, y, sensitive_features)
        seeds = child_seeds(public_generator(self.random_state), 3)
        network = prepare_network(
            self.module,
            features.shape[1],
            len(classes),
            hidden=tuple(self.hidden),
            image_shape=self.image_shape,
            seed=int(seeds[0]),
            device=self.device,
            owner=type(self).__name__,
        )
        training = LagrangianTraining(
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
            lam_max=self.lam_max,
            dual_step=self.dual_step,
            dual_steps=self.dual_steps,
            average_last=self.average_last,
            violations=self.violations,
        )
        constraints = FairnessConstraints(notions, codes, len(classes))
        plan = self._plan(len(domain))
        described = None
        if self.primal == "group_model" and plan.is_private:
            described = public_features(features, codes, len(classes), self.group_features, int(seeds[2]))
        primal = f"{plan.primal_steps} noisy gradients" if self.primal == "gradient" else "noisy moments by group"
        spending = self._spend(
            plan.event,
            relation=NeighboringRelation.REPLACE_ATTRIBUTE,
            releases=("noisy sizes of the groups", primal, f"{plan.dual_steps} noisy tables of violations"),
        )
        with spending as noise:
            counts = plan.release_counts(groups, constraints.row_cells, constraints.n_cells, noise)
            rows, membership, gradient = network.tensor(features), None, None
            if described is not None:
                membership = estimate_groups(*described, len(classes), groups, plan, noise)
            elif self.primal == "group_model":
                membership = np.eye(plan.n_groups)[groups]
            else:
                gradient = ConstraintGradient.of(
                    network, rows, groups, constraints, plan, noise, clip=self.clip, n_components=self.n_components
                )
            cells, n_cells = constraints.cells, constraints.n_cells
            self.net_, multipliers = train_lagrangian(
                network,
                rows,
                codes,
                constraints,
                counts,
                training,
                violations=lambda h: plan.release_violations(h, cells, n_cells, groups, noise),
                membership=membership,
                gradient=gradient,
                dual_noise=plan.largest_dual_noise(constraints.n_constraints),
                seed=int(seeds[1]),
                verbose=self.verbose,
            )
        self.multipliers_ = multipliers[: len(domain)]
        self.noisy_counts_ = counts[: len(domain)]
        self.classes_ = classes
        self.groups_ = domain
        return self

    def _rows(self, X: ArrayLike, y: ArrayLike, sensitive_features: ArrayLike | None) -> tuple[NDArray[Any], ...]:
        """Features, classes, class codes, group codes and groups."""
        features, groups_in_X = self._split_features(X, reset=True, read_groups=True)
        if np.abs(features).max() > LARGEST_PUBLIC:
            raise ValueError(
                f"X of {type(self).__name__} holds numbers beyond {LARGEST_PUBLIC:g}, whose squares are no floats. "
                "Scale the features."
            )
        classes, codes = self._public_classes(self._check_target(y, len(features)))
        groups, domain = self._private_groups(groups_in_X, sensitive_features, len(features))
        return features, classes, codes.astype(np.int64), groups, domain

    def _plan(self, n_groups: int) -> Any:
        owner = type(self).__name__
        usual = (0.02, 0.49, 0.49) if self.primal == "group_model" else (0.02, 0.78, 0.20)
        split = usual if self.budget_split is None else tuple(self.budget_split)
        if len(split) != 3 or not all(isinstance(part, Real) and 0 < part < 1 for part in split):
            raise ValueError(
                f"The 'budget_split' parameter of {owner} must be three shares in (0.0, 1.0), of sizes, primal and "
                f"dual releases. Got {self.budget_split!r} instead."
            )
        if self.sampling == "poisson" and self.primal != "gradient":
            raise ValueError(
                f"sampling='poisson' of {owner} samples rows for noisy gradients, of which primal={self.primal!r} "
                "releases none. Set primal='gradient' or sampling='full'."
            )
        poisson = self.sampling == "poisson"
        sizes: dict[str, Any] = {
            "n_groups": max(2, n_groups),  # a single group, if given, is compared with an empty one
            "primal_steps": self.primal_steps if self.primal == "gradient" else 1,
            "dual_steps": self.dual_steps,
            "sampling_probability": self.sampling_probability if poisson else 1.0,
        }
        if self.epsilon is None:
            return PFLDPlan.without_privacy(**sizes)
        return PFLDPlan.calibrated(epsilon=self.epsilon, delta=self.delta, budget_split=split, **sizes)
