"""A fair network, alone or as a stack of teachers: the F-LD learner that model M, SF-PATE and anybody may use."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import Tags

from skfairdp import _utils
from skfairdp._docs import shared_docs
from skfairdp._inputs import read_unprotected
from skfairdp._judge import Judgement, held_by_network, set_judgement
from skfairdp._network_classifier import NetworkPredictions
from skfairdp._typing import ArrayLike, Floats, Ints, MaybeArray, Values
from skfairdp._usefulness import LEAST_ROWS, ByHeart, rows_to_try, tried_on_parts
from skfairdp._utils._sklearn import Interval
from skfairdp.fairness import FairnessConstraints, RateBound, RateParity, by_position, read_constraints
from skfairdp.lagrangian._perceptron import DUAL, LEFT_OPEN, FairPerceptron, dual_settings, settled, standard_scale

if TYPE_CHECKING:
    from skfairdp._networks import Net

Notion = str | RateParity | RateBound


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class LagrangianClassifier(NetworkPredictions, ClassifierMixin, _utils.NamedEstimator):
    """Neural network under fairness constraints, by Lagrange multipliers (F-LD); not private.

    **No guarantee of privacy of its own.** It reads the groups it is given. Fitted on released ones
    (:class:`RandomizedResponseClassifier`, :class:`SFPATEClassifier`) it is post-processing of them; as the
    ``fair_estimator`` of an ``SFPATEClassifier(variant="teacher")`` it is private as every teacher is, and all
    teachers, each with multipliers of its own, are trained in one tensor program.

    Minimises ``loss + Σ_a λ_a (mean of h in group a - mean of h)`` by Adam while the multipliers λ follow the
    violations (Tran, Fioretto & Van Hentenryck 2021, Algorithm 1, with equalities; ReLU units). Groups may enter as a
    table of weights, as in :class:`ParityLogisticRegression`.

    Parameters
    ----------
    constraints : str, fairlearn moment, RateParity, RateBound, list of them or None, default="demographic_parity"
        "demographic_parity" (same predictions), "equalized_odds" (same predictions within each true class),
        "true_positive_rate_parity" or "equal_opportunity", "false_positive_rate_parity" (the same within one true
        class), "accuracy_parity" (same errors), "generalized_demographic_parity" (same distribution of scores, by its
        first ``moments`` moments, so that parity holds at any threshold), or several of them at once. None: no
        constraint. Moments of fairlearn and :class:`~skfairdp.fairness.RateParity` mean the same:
        ``EqualizedOdds()``, ``ErrorRateParity()``, ``RateParity("false_negative_rate")``. With a bound of their own
        rates may differ by so much: ``RateParity("selection_rate", ratio_bound=0.8)``. A
        :class:`~skfairdp.fairness.RateBound` bounds a rate of each group, of some (``groups=["f"]``; columns of
        ``group_weights`` go by their positions) or of all rows together (``groups="overall"``). Same errors are not
        bought with more of them than the most frequent class makes.
    moments : int, default=2
        Moments that generalized demographic parity compares.
    net : {"mlp", "additive", "cnn", "resnet"}, torch.nn.Module, its class or skorch.NeuralNetClassifier, default="mlp"
        The network and how it is trained. "mlp" has 64 ReLU units, gets standardised features (flags have width 1, and
        a column that is constant has no part in answers to others), and is trained by Adam;
        ``mlp((32, 16), lr=0.01)`` of this module sets its sizes (() or "additive" is logistic regression), ``lr`` (2
        over the number of steps, between .001 and .01), ``batch_size`` (256, or as few as a given ``max_epochs`` needs
        for 1000 steps, but 16 at least), ``max_epochs`` (20, and as many more as 2000 steps take), ``device`` and
        ``optimizer__weight_decay`` (3 over the number of rows). Of more than 50,000 rows batches are larger by their
        power .72, and passes as much fewer, where both are open. Other modules map the rows as they are to one logit
        per class, and take any optimizer. Callbacks and ``train_split`` of a skorch net are not run.
    lam_max : float, default=5.0
        Multipliers stay in [-lam_max, lam_max]. Small values trade fairness for accuracy; 0 is no constraint.
    dual_step : float, default=None
        How far a multiplier moves for a violation of 1 in the first of the dual steps. Later ones are shorter, the last
        1/``dual_steps`` of it. None is 10 (1 for several notions at once, which may contradict each other), and less
        for a group with less than a tenth of the rows, by the root of the part that it has of a tenth.
    dual_steps : int, default=40
        Moves of the multipliers, evenly over the training.
    violations : {"predictions", "probabilities"}, default="predictions"
        Whether multipliers follow the predicted classes or their probabilities; generalized demographic parity always
        follows probabilities.
    average_last : float, default=0.25
        Share of the last iterates whose average is kept.
    random_state : int, RandomState, Generator or None, default=None
        Initial weights and batches.
    {verbose}

    Attributes
    ----------
    net_ : skorch.NeuralNetClassifier
        The trained network, for features as they are given, on the CPU: ``predict_proba``, ``save_params`` and
        ``module_`` work.
    multipliers_ : ndarray of shape (n_groups, n_cells, n_constraints)
        The last multipliers; a cell is a true class where a constraint compares within classes. Empty without
        constraints.
    violation_ : float or None
        By how much the worst constraint is broken on the rows and groups that it was given, by hard answers; None
        without constraints.
    {judged}
    {classes_, n_features_in_, feature_names_in_}

    Raises
    ------
    ValueError
        From ``fit``: one class only, or a constraint without groups or weights.

    Warns
    -----
    FairnessWarning
        Only one group was given, so that the constraint says nothing; or ``constraint_holds_`` is "no", and for a
        constraint without a bound of its own ``violation_`` above .02.

    Examples
    --------
    >>> from skfairdp.lagrangian import LagrangianClassifier, mlp
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import demographic_disparity
    >>> X, y, groups = make_biased_classification(2000, disparity=0.3, random_state=0)
    >>> model = LagrangianClassifier(net=mlp((), lr=0.01), random_state=0).fit(X, y, sensitive_features=groups)
    >>> round(demographic_disparity(y, model.predict(X), sensitive_features=groups), 1)
    0.0
    """

    constraints: Any = "demographic_parity"
    moments: int = 2
    net: Any = "mlp"
    lam_max: float = 5.0
    dual_step: float | None = None
    dual_steps: int = 40
    violations: str = "predictions"
    average_last: float = 0.25
    random_state: _utils.RandomStateLike = None
    verbose: int = 0

    __metadata_request__fit = {"sensitive_features": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "constraints": [object],
        "moments": [Interval(Integral, 1, 10, closed="both")],
        "net": [object],
        **DUAL,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sensitive_features: MaybeArray = None, group_weights: MaybeArray = None
    ) -> "LagrangianClassifier":
        """Fit under the constraint.

        {rows_of_a_fair_learner}

        {returns_self}
        """
        from skfairdp._networks import fitted_net

        net = self.read_net()
        features, classes, codes = read_unprotected(self, X, y, sensitive_features)
        membership = None
        if self.constraints is not None:
            membership = _utils.group_membership(
                sensitive_features, group_weights, len(features), owner=type(self).__name__,
                otherwise=", or set constraints=None",
            )  # fmt: skip
        owner, groups = type(self).__name__, [] if membership is None else list(range(membership.shape[1]))
        if membership is not None and group_weights is None and sensitive_features is not None:
            groups = _utils.group_domain(_utils.as_groups(sensitive_features, len(membership), owner=owner)).tolist()
        notions = by_position(read_constraints(self.constraints, owner, optional=True), groups, classes.tolist(), owner)
        seed = int(_utils.child_seeds(_utils.public_generator(self.random_state), 1)[0])
        trained = partial(self._trained, net, notions, len(classes), seed)
        module, multipliers = trained(features, codes, membership)
        self.net_ = fitted_net(settled(net, len(features)), module, classes, None)
        self.classes_ = classes
        self.multipliers_ = np.zeros((0, 1, 0)) if multipliers is None else multipliers
        self.violation_: float | None = None
        if membership is not None:
            self._tell_judgement(features, codes, membership, groups, trained)
        return self

    def _trained(
        self, net: Any, notions: Any, n_classes: int, seed: int, X: Floats, y: Ints, membership: Floats | None
    ) -> tuple[Any, Floats | None]:
        """A network taught by these rows, and its multipliers."""
        if net.hidden is None:
            from skfairdp.lagrangian._trainer import train_with_groups

            constraints, how = FairnessConstraints(notions, y, n_classes, self.moments), dual_settings(self)
            net = settled(net, len(X))
            return train_with_groups(net, X, constraints, membership, how, seed=seed, verbose=self.verbose)
        center, scale = standard_scale(X)
        rows = (X - center) / scale
        perceptron, multipliers = self._perceptron(net, notions).train(rows, y, n_classes, membership, seed)
        return perceptron.unscaled(center, scale).as_module(), multipliers

    def _tell_judgement(
        self, features: Floats, codes: Ints, membership: Floats, groups: list[Any], trained: Callable[..., Any]
    ) -> None:
        """What the answers of the network do to the groups it was given, and a warning where that is not held."""
        from skfairdp._networks import predict_logits

        owner, answers = type(self).__name__, predict_logits(self.net_.module_, features).argmax(axis=1)
        constraints = held_by_network(self.constraints, groups, self.classes_.tolist(), owner)
        judgement = Judgement.by_weights(constraints, membership, codes, answers)
        judgement = judgement.after_learning(*_by_heart(features, codes, membership, trained))
        set_judgement(self, judgement)
        self.violation_ = judgement.violation
        if self.lam_max > 0:
            judgement.warn(
                owner,
                "the rows and groups that it was given",
                f"Raise 'lam_max' ({self.lam_max:g}) or 'max_epochs' of 'net', or take another constraint: features, "
                "or the price of errors, may not allow this one.",
            )

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # written out
        return tags

    # ------------------------------------------------------------------ for those who train it

    def read_net(self) -> "Net":
        """Read the network, and refuse parameters that cannot be used, before any row is read.

        Returns
        -------
        net : Net
            How the network is built and trained.
        """
        import torch

        from skfairdp._networks import as_net

        self._validate_params()
        owner = type(self).__name__
        read_constraints(self.constraints, owner, optional=True)
        net = as_net(self.net, owner=owner, optimizer=torch.optim.Adam, **LEFT_OPEN)
        try:
            stackable = net.hidden is not None
        except ValueError as error:
            raise ValueError(f"The module of the 'net' parameter of {owner} cannot be built: {error}") from error
        if stackable and net.optimizer is not torch.optim.Adam:
            raise ValueError(
                f"The optimizer of the 'net' parameter of {owner} must be torch.optim.Adam for 'mlp'. Got "
                f"{net.optimizer.__name__} instead. Leave 'optimizer' out, or give a module of your own."
            )
        return net

    def _perceptron(self, net: "Net", notions: tuple[Notion, ...] | None = None) -> FairPerceptron:
        assert net.hidden is not None
        if notions is None:  # groups and classes go by their codes already
            notions = read_constraints(self.constraints, type(self).__name__, optional=True)
        settings = {"lr": net.lr, "optimizer_options": dict(net.optimizer_options), **dual_settings(self)}
        return FairPerceptron(
            net.hidden, notions, self.moments, net.max_epochs, net.batch_size, net.device, settings, self.verbose
        )


def _by_heart(X: Floats, y: Ints, membership: Floats, trained: Callable[..., Any]) -> ByHeart:
    """What a network that is held to the same knows by heart."""
    from skfairdp._networks import predict_logits

    some, n_rows = rows_to_try(len(y), 0), len(y)
    X, y, membership = X[some], y[some], membership[some]

    def answers(learned: Ints) -> Ints:
        if len(np.unique(y[learned])) < 2:
            return np.full_like(y, y[learned][0])
        module, _ = trained(X[learned], y[learned], membership[learned])
        return predict_logits(module, X).argmax(axis=1)

    return ByHeart() if len(y) < LEAST_ROWS else tried_on_parts(y, answers, 0, n_rows, membership, folds=1)[2]


def as_perceptron(learner: Any) -> FairPerceptron | None:
    """How a learner trains its perceptron, for those who train it on rows of their own; None for whatever
    is no LagrangianClassifier with an "mlp". Groups and classes go by their codes in its constraints."""
    if not isinstance(learner, LagrangianClassifier):
        return None
    net = learner.read_net()
    return None if net.hidden is None else learner._perceptron(net)


def in_codes(learner: Any, groups: Values, classes: Values, owner: str) -> Any:
    """The same learner for rows whose groups and classes are codes."""
    if not isinstance(learner, LagrangianClassifier):
        return learner
    asked = read_constraints(learner.constraints, owner, optional=True)
    found = by_position(asked, groups, classes, owner)
    return learner if found == asked else clone(learner).set_params(constraints=list(found))
