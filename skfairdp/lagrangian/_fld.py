"""A fair network, alone or as a stack of teachers: the F-LD learner that model M, SF-PATE and anybody may use."""

import itertools
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessConstraints, read_constraints
from skfairdp.utils import RandomStateLike, as_groups, child_seeds, encode_labels, group_domain, public_generator
from skfairdp.utils._sklearn import Interval, StrOptions

if TYPE_CHECKING:
    from skfairdp.lagrangian import LagrangianTraining

__all__ = [
    "LagrangianClassifier",
    "Layers",
    "network_scores",
    "standard_scale",
    "train_network",
    "unscaled",
]

Array = NDArray[np.float64]
#: Weights (inputs, outputs) and biases (outputs,) of each layer.
Layers = tuple[list[Array], list[Array]]


class LagrangianClassifier(ClassifierMixin, BaseEstimator):
    """Network held to fairness constraints by Lagrange multipliers (F-LD).

    **No guarantee of privacy of its own.** It reads the groups it is given. Fitted on released ones
    (:class:`RandomizedResponseClassifier`, :class:`SFPATEClassifier`) it is post-processing of them; as the
    ``fair_estimator`` of an ``SFPATEClassifier(variant="teacher")`` it is private as every teacher is, and all
    teachers, each with multipliers of its own, are trained in one tensor program.

    Minimises ``loss + Σ_a λ_a (mean of h in group a - mean of h)`` by Adam while the multipliers λ follow the
    violations (Tran, Fioretto & Van Hentenryck 2021, Algorithm 1, with equalities; ReLU units). Groups may enter as a
    table of weights, as in :class:`ParityLogisticRegression`.

    Parameters
    ----------
    constraints : str, fairlearn moment, list of them or None, default="demographic_parity"
        "demographic_parity" (same predictions), "equalized_odds" (same predictions within each true class),
        "accuracy_parity" (same errors), "generalized_demographic_parity" (same distribution of scores, by its first
        ``moments`` moments, so that parity holds at any threshold), or several of them at once. None: no constraint.
        Moments of fairlearn without bounds mean the same: ``DemographicParity()``, ``EqualizedOdds()``,
        ``ErrorRateParity()``.
    moments : int, default=2
        Moments that generalized demographic parity compares.
    hidden : tuple of int, default=(64,)
        Widths of the hidden layers; () is logistic regression.
    lam_max : float, default=5.0
        Multipliers stay in [-lam_max, lam_max]. Small values trade fairness for accuracy; 0 is no constraint.
    dual_step : float, default=None
        How far a multiplier moves for a violation of 1 in the first of the dual steps. Later ones are shorter, the last
        1/``dual_steps`` of it. None is 10 (1 for several notions at once, which may contradict each other).
    dual_steps : int, default=40
        Moves of the multipliers, evenly over the training.
    violations : {"predictions", "probabilities"}, default="predictions"
        Whether multipliers follow the predicted classes or their probabilities; generalized demographic parity always
        follows probabilities.
    epochs : int, default=None
        Passes over the rows. None is 20, and as many more as 2000 steps take.
    batch_size : int, default=256
    lr : float, default=1e-3
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty.
    average_last : float, default=0.25
        Share of the last iterates whose average is kept.
    device : str, default="cpu"
        Where to train, for example "cuda".
    random_state : int, RandomState, Generator or None, default=None
        Initial weights and batches.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Weights of the layers, for features as they are given (they are standardised on the way).
    intercepts_ : list of ndarray of shape (n_outputs,)
    multipliers_ : ndarray of shape (n_groups, n_cells, n_constraints) or None
        The last multipliers; a cell is a true class where a constraint compares within classes.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X had string column names.

    Raises
    ------
    ValueError
        From ``fit``: one class only, or a constraint without groups or weights.

    Warns
    -----
    FairnessWarning
        Only one group was given, so that the constraint says nothing.

    Examples
    --------
    >>> from skfairdp.baselines import LagrangianClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import demographic_disparity
    >>> X, y, groups = make_biased_classification(2000, disparity=0.3, random_state=0)
    >>> model = LagrangianClassifier(hidden=(), lr=0.01, random_state=0).fit(X, y, sensitive_features=groups)
    >>> demographic_disparity(y, model.predict(X), sensitive_features=groups) < 0.03
    True
    """

    __metadata_request__fit = {"sensitive_features": True}

    _parameter_constraints: dict[str, Any] = {
        "constraints": [object],
        "moments": [Interval(Integral, 1, 10, closed="both")],
        "hidden": [tuple, list],
        "lam_max": [Interval(Real, 0, None, closed="left")],
        "dual_step": [Interval(Real, 0, None, closed="neither"), None],
        "dual_steps": [Interval(Integral, 1, None, closed="left")],
        "violations": [StrOptions({"predictions", "probabilities"})],
        "epochs": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "average_last": [Interval(Real, 0, 1, closed="both")],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        constraints: Any = "demographic_parity",
        moments: int = 2,
        hidden: Sequence[int] = (64,),
        lam_max: float = 5.0,
        dual_step: float | None = None,
        dual_steps: int = 40,
        violations: str = "predictions",
        epochs: int | None = None,
        batch_size: int = 256,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        average_last: float = 0.25,
        device: str = "cpu",
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self.constraints = constraints
        self.moments = moments
        self.hidden = hidden
        self.lam_max = lam_max
        self.dual_step = dual_step
        self.dual_steps = dual_steps
        self.violations = violations
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.average_last = average_last
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        group_weights: ArrayLike | None = None,
    ) -> "LagrangianClassifier":
        """Fit under the constraint.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Groups; not read where ``group_weights`` is given.
        group_weights : array-like of shape (n_rows, n_groups), default=None
            Membership of each row in each group; may be fractional or negative.

        Returns
        -------
        self
        """
        self.check_parameters()
        features, target = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(target)
        classes, codes = np.unique(target, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("LagrangianClassifier can't train when only one class is present in y.")
        membership = self._membership(sensitive_features, group_weights, len(features))
        center, scale = standard_scale(features)
        seed = int(child_seeds(public_generator(self.random_state), 1)[0])
        layers, self.multipliers_ = train_network(
            self, (features - center) / scale, codes, len(classes), membership, seed
        )
        self.coefs_, self.intercepts_ = unscaled(layers, center, scale)
        self.classes_ = classes
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Class probabilities, shape (n_rows, n_classes); the group is not needed."""
        check_is_fitted(self, "coefs_")
        features = validate_data(self, X, reset=False, dtype=np.float64)
        return softmax(network_scores((self.coefs_, self.intercepts_), features), axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predicted classes, shape (n_rows,); the group is not needed."""
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]

    # ------------------------------------------------------------------ for those who train it

    def check_parameters(self, owner: str | None = None) -> None:
        """Raise a ValueError for parameters that cannot be used, before any row is read."""
        from skfairdp._networks import resolve_device

        self._validate_params()
        owner = type(self).__name__ if owner is None else owner
        read_constraints(self.constraints, owner, optional=True)
        if not all(isinstance(h, Integral) and h > 0 for h in self.hidden):
            raise ValueError(
                f"The 'hidden' parameter of {owner} must be a tuple of positive integers. Got {self.hidden!r} instead."
            )
        resolve_device(self.device, owner=owner)

    def training(self, n_rows: int) -> "LagrangianTraining":
        """How networks of so many rows are trained."""
        from skfairdp.lagrangian import LagrangianTraining

        return LagrangianTraining(
            epochs=LagrangianTraining(epochs=self.epochs, batch_size=self.batch_size).passes(n_rows),
            batch_size=min(self.batch_size, max(1, n_rows)),
            lr=self.lr,
            weight_decay=self.weight_decay,
            lam_max=self.lam_max,
            dual_step=self.dual_step,
            dual_steps=self.dual_steps,
            average_last=self.average_last,
            violations=self.violations,
        )

    def _membership(self, sensitive_features: Any, group_weights: Any, n_rows: int) -> Array | None:
        owner = type(self).__name__
        if self.constraints is None:
            return None
        if group_weights is not None:
            weights = np.asarray(group_weights, dtype=np.float64)
            if weights.ndim != 2 or len(weights) != n_rows or not np.isfinite(weights).all():
                raise ValueError(f"group_weights of {owner} must be finite, of shape ({n_rows}, n_groups).")
        elif sensitive_features is None:
            raise ValueError(
                f"{owner} needs groups: pass sensitive_features or group_weights to fit, or set constraints=None."
            )
        else:
            groups = as_groups(sensitive_features, n_rows, owner=owner)
            domain = group_domain(groups)
            codes = encode_labels(
                groups, domain, owner=owner, name="sensitive_features", parameter="sensitive_features"
            )
            weights = np.eye(len(domain))[codes]
        if weights.shape[1] < 2:
            warnings.warn(
                f"{owner} was given one group only, so that its constraint says nothing. Give rows of several groups.",
                FairnessWarning,
                stacklevel=3,
            )
        return weights


def train_network(
    learner: LagrangianClassifier,
    X: Array,
    targets: NDArray[np.int64] | Array,
    n_classes: int,
    membership: Array | None,
    seed: int,
    *,
    start: Layers | None = None,
    anchor: float = 0.0,
) -> tuple[Layers, Array | None]:
    """One network of the learner's settings: layers, and multipliers where there are groups.

    ``targets`` are class codes or, without groups, shares; ``start`` are layers to begin with, to which ``anchor`` ties
    the parameters.
    """
    from skfairdp._networks import StackedMLP
    from skfairdp.lagrangian import StackedParity, train_stacked_lagrangian

    device = learner.device
    net = StackedMLP(X.shape[1], tuple(learner.hidden), n_classes)
    sizes = np.array([len(X)])
    parity = None
    notions = read_constraints(learner.constraints, type(learner).__name__, optional=True)
    if membership is not None and notions and len(X):
        constraints = FairnessConstraints(notions, np.asarray(targets), n_classes, learner.moments)
        parity = StackedParity(constraints, membership, sizes, device)
    params, multipliers = train_stacked_lagrangian(
        net,
        X,
        targets,
        sizes,
        [seed],
        learner.training(len(X)),
        parity=parity,
        start=None if start is None else _stacked(start),
        anchor=anchor,
        device=device,
        verbose=learner.verbose,
    )
    return _layers(params), None if multipliers is None else multipliers[0]


def _layers(params: list[Any]) -> Layers:
    *hidden, last, bias = [p[0].numpy().astype(np.float64) for p in params]
    weights = [*hidden[::2], last.T]
    return weights, [*(b.ravel() for b in hidden[1::2]), bias.ravel()]


def _stacked(layers: Layers) -> list[Any]:
    import torch

    weights, biases = layers
    out = []
    for w, b in zip(weights[:-1], biases[:-1], strict=True):
        out += [w[None], b[None, None]]
    out += [weights[-1].T[None], biases[-1][None, :, None]]
    return [torch.as_tensor(np.ascontiguousarray(p), dtype=torch.float32) for p in out]


def standard_scale(X: Array) -> tuple[Array, Array]:
    """Centre and scale of the columns; 1 where a column says nothing."""
    center, scale = X.mean(axis=0), X.std(axis=0)
    return center, np.where(scale > 0, scale, 1.0)


def unscaled(layers: Layers, center: Array, scale: Array) -> Layers:
    """The same network for features that are not standardised."""
    weights, biases = layers
    first = weights[0] / scale[:, None]
    return [first, *weights[1:]], [biases[0] - center @ first, *biases[1:]]


def network_scores(layers: Layers, X: Array) -> Array:
    """Scores of the classes, (n_rows, n_classes)."""
    weights, biases = layers
    for w, b in itertools.islice(zip(weights, biases, strict=True), len(weights) - 1):
        X = np.maximum(X @ w + b, 0.0)
    return X @ weights[-1] + biases[-1]
