"""PF-LD: a network held to fairness constraints while the groups of its training rows stay private."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.metadata_routing import UNUSED

from skfairdp import fairness
from skfairdp._column_tables import scaled_by_public_rows
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier
from skfairdp._inputs import TrainingData, read_any_training, read_numbers_of, read_source
from skfairdp._judge import Judge, Judgement, asked_constraints, held_by_network, labels_of_groups, set_judgement
from skfairdp._network_classifier import NetworkPredictions
from skfairdp._rows import gathered
from skfairdp._typing import ArrayLike, Floats, Ints, MaybeArray, SubjectLike
from skfairdp._usefulness import (
    FOLDS,
    LEAST_ROWS,
    MOST_ROWS,
    ByHeart,
    Comparison,
    may_fall_back,
    rows_to_try,
    seen,
    tried_on_parts,
)
from skfairdp._utils import child_seeds, public_generator
from skfairdp._utils._sklearn import Interval
from skfairdp.lagrangian._perceptron import DUAL, LEFT_OPEN, dual_settings, settled
from skfairdp.lagrangian._plan import PRIMALS, GroupModel, NoisyGradients, PFLDPlan, release_asked
from skfairdp.privacy import Protects
from skfairdp.schema import with_schema

if TYPE_CHECKING:
    from torch import Tensor

    from skfairdp._networks import Net, Network

_NOTIONS = tuple(notion for notion in fairness.NOTIONS if notion != "generalized_demographic_parity")


@shared_docs
@with_schema
class PFLDClassifier(NetworkPredictions, PrivateClassifier):
    """Neural network under fairness constraints, by private Lagrange multipliers; only the groups are protected.

    **Guarantee.** (ε, δ)-differential privacy for the *sensitive attribute* of one row: neighbours differ in the group
    of one row. **Features, labels and the number of rows count as public**, and so do the names of the groups, the
    classes and all constructor parameters. ``privacy_.epsilon`` is computed from the declared releases alone. It is no
    guarantee for the rows themselves, and none at all where a feature says which group a row belongs to: drop such
    columns (``sensitive_columns``). The group is needed by ``fit`` only.

    The network minimises ``loss + Σ_a λ_a (mean of h in group a - mean of h)``, where the multipliers λ follow the
    violations. The fit releases four things about the groups: their sizes, once; their violations, ``dual_steps``
    times; what the primal steps need; and at the end a table of the network's answers, which says whether it holds.
    Each violation is one number, so it is accurate even at ε = 0.5.

    The method is that of Tran, Fioretto & Van Hentenryck (2021), whose Theorem 1 does not hold: the sign of a violation
    depends on private groups, and so does the scale of the noise. Here multipliers have a sign of their own, signs come
    from noisy releases, and all noise scales are public.

    Parameters
    ----------
    epsilon : float or None, default=1.0
        Privacy budget; greater than 0. None trains without noise and without privacy (F-LD), by the same code;
        ``privacy_.epsilon`` is then inf.
    {delta}
    constraints : str, fairlearn moment, RateParity, RateBound or list of them, default="demographic_parity"
        "demographic_parity" (same predictions), "equalized_odds" (same predictions within each true class),
        "true_positive_rate_parity" or "equal_opportunity", "false_positive_rate_parity" (the same within one true
        class), "accuracy_parity" (same errors), or several of them at once. Moments of fairlearn and
        :class:`~skfairdp.fairness.RateParity` mean the same: ``fairlearn.reductions.EqualizedOdds()``,
        ``RateParity("false_negative_rate")``. With a bound of their own rates may differ by so much:
        ``RateParity("selection_rate", ratio_bound=0.8)`` is the four-fifths rule. A
        :class:`~skfairdp.fairness.RateBound` bounds a rate of each group, ``RateBound("false_negative_rate",
        upper=0.1)``, of some of them (``groups=["f"]``) or of all rows together (``groups="overall"``). All that is
        asked of one rate follows the same releases. Same errors are not bought with more of them than the most frequent
        class makes.
    {gamma_of_rates}
    lam_max : float, default=5.0
        Multipliers stay in [-lam_max, lam_max]. Small values trade fairness for accuracy; 0 is no constraint.
    dual_step : float, default=None
        How far a multiplier moves for a violation of 1 in the first of the dual steps; later ones shrink, to a share
        1/``dual_steps`` of it. None is 10 (1 for several notions at once, which may contradict each other), or as much
        less as keeps the noise in a multiplier at 0.5. For a group with less than a tenth of the rows the noise is less
        by the part that it has of a tenth, and the step by the root of that part.
    dual_steps : int, default=40
        Releases of the violations, evenly over the training.
    violations : {"predictions", "probabilities"}, default="predictions"
        Whether multipliers follow the predicted classes or their probabilities.
    primal : {"group_model", "gradient"}, GroupModel or NoisyGradients, default="group_model"
        What the primal steps release. "group_model" is :class:`GroupModel` as it is by default: noisy moments of public
        features in each group, once, from which the group of every row is estimated; all steps then follow those
        estimates at no cost. "gradient" is :class:`NoisyGradients`: noisy gradients of the constraints.
    budget_split : mapping, default=None
        Shares of the releases "sizes", "primal" and "dual" in the squared Gaussian budget μ², of which the table of
        answers takes .04 before, or as much less as many rows make it need. None is
        ``{"sizes": 0.02, "primal": 0.49, "dual": 0.49}`` for a group model and
        ``{"sizes": 0.02, "primal": 0.78, "dual": 0.2}`` for noisy gradients.
    average_last : float, default=0.25
        Share of the last iterates whose average is kept.
    net : {"mlp", "additive", "cnn", "resnet"}, torch.nn.Module, its class or skorch.NeuralNetClassifier, default="mlp"
        The network and how it is trained. "mlp" has 64 tanh units, "additive" none, "cnn" two convolutions, "resnet"
        two residual blocks; ``mlp(...)``, ``cnn(...)`` and ``resnet(...)`` of this module set their sizes. A module
        maps float rows to one logit per class; one that mixes rows or keeps something of them (BatchNorm) is refused.
        Of a skorch net ``module``, ``optimizer`` (usually Adam) and their options, ``lr`` (2 over the number of steps,
        between .001 and .01), ``batch_size`` of the public batches (256, or as few as a given ``max_epochs`` needs for
        1000 steps, but 16 at least), ``max_epochs`` (20, and as many more as 2000 steps take) and ``device`` are read.
        Of more than 50,000 rows, where both are open, batches are larger by their power .72, passes as much fewer.
        Of more than 131,072 rows all have a loss, and so many are asked for their groups beyond their sizes.
        "mlp" has a weight decay of 1 over the number of rows. Columns that lie far from -1 to 1 are scaled by their
        quantiles, which are public, for every network that weighs all columns first; numbers of a schema get curves in
        "mlp" with a group model, where there are 24 rows for each of their eight knots. Callbacks and ``train_split``
        are never run. Dropout acts on the loss; releases are formed without it. "mlp", and any other sequence of linear
        layers with tanh or ReLU between them, is trained several times as fast as other modules (on the CPU, by Adam,
        with a group model).
    {public_classes, groups, sensitive_columns, schema, random_state, noise_seed, ledger, verbose}

    Attributes
    ----------
    net_ : skorch.NeuralNetClassifier
        The trained network, on the CPU: ``predict_proba``, ``save_params`` and ``module_`` work. Differentially private
        in the groups.
    {classes_, groups_}
    multipliers_ : ndarray of shape (n_groups, n_cells, n_constraints)
        The last multipliers. Constraints come in the order given, each class of more than two one after the other; a
        constraint that compares all rows uses the first cell only, and so does the false positive rate of one of more
        than two classes. Differentially private.
    noisy_counts_ : ndarray of shape (n_groups, n_cells)
        Sizes of the groups, within each class if a constraint needs that, as released.
    {judged}
    violation_, violation_noise_ : float
        By how much the worst constraint is broken, by the same noisy table of answers (0 where all hold by it), and the
        standard deviation of the noise in that (infinite where groups are too small beside the noise).
    {privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    FairnessWarning
        ``constraint_holds_`` is "no", and for a constraint without a bound of its own ``violation_`` above .02. Of fits
        that hold their constraint one in twenty says so, at most.
    UtilityWarning
        By its labels, which are public, it is no better than the most frequent class: on its rows or, of at most 10,000
        rows, on thirds of them that are kept from networks like it. Of so few rows that class is then predicted for
        every row, unless the constraint is "accuracy_parity", which that need not meet.

    See Also
    --------
    LagrangianClassifier : The same without privacy, to be used on released groups or inside of teachers.

    Examples
    --------
    >>> from skfairdp.lagrangian import PFLDClassifier, mlp
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(2000, random_state=0)
    >>> model = PFLDClassifier(epsilon=1.0, net=mlp(max_epochs=3), groups=sorted(set(groups)), random_state=0)
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> print(model.privacy_.protects, round(model.privacy_.epsilon, 6))
    sensitive attribute 1.0
    """

    epsilon: float | None = 1.0  # type: ignore[assignment]  # None where no noise is asked for
    constraints: Any = "demographic_parity"
    gamma: float | None = None
    lam_max: float = 5.0
    dual_step: float | None = None
    dual_steps: int = 40
    violations: str = "predictions"
    primal: str | GroupModel | NoisyGradients = "group_model"
    budget_split: Mapping[str, float] | None = None
    average_last: float = 0.25
    net: Any = "mlp"
    classes: MaybeArray = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 0, 1e9, closed="right"), None],
        **DUAL,
        "primal": [object],
        "budget_split": [object],
    }
    _shorthands: ClassVar[dict[str, Any]] = {"primal": PRIMALS}
    # There are no public rows.
    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED, "subject": True}

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "PFLDClassifier":
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a table that does not fit into memory
            Public features. With a schema and a group model also a path of Parquet files, a Polars LazyFrame, a dask or
            Spark DataFrame, or a function without arguments that returns an iterable of DataFrames; label and groups
            are columns of it.
        y : array-like of shape (n_rows,)
            Public labels.
        {sensitive_features_private}
        {subject_of_a_group}

        {returns_self}
        """
        from skfairdp._networks import behind, fitted_net, predict_logits, prepare_network
        from skfairdp.lagrangian._dual_ascent import LagrangianTraining
        from skfairdp.lagrangian._trainer import train_lagrangian

        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        plan, net = self._plan(data), self._net(len(data.X))
        training = LagrangianTraining(epochs=net.max_epochs, batch_size=net.batch_size, **dual_settings(self))
        seeds = [int(seed) for seed in child_seeds(public_generator(self.random_state), 3)]
        network = prepare_network(net, data.X.shape[1], len(data.classes), seed=seeds[0], owner=type(self).__name__)
        read, data, chosen = self._rows(data, network, seeds[2])
        # with curves a network that is told each row's group, and not a guess, learns groups by heart
        schema = self.schema if self.epsilon is not None and isinstance(self._primal(), GroupModel) else None
        rows, scales = scaled_by_public_rows(net, read, len(data.classes), schema)
        if rows.shape[1] > read.shape[1]:
            network = prepare_network(net, rows.shape[1], len(data.classes), seed=seeds[0], owner=type(self).__name__)
        groups, domain = data.of_each_row(data.groups_of_units), data.domain
        constraints = self._constraints(data, data.y)
        watched = None if chosen is None else (chosen, self._constraints(data, data.y[chosen]))
        counted, of_counted = (slice(None), constraints) if data.subjects is None or watched is None else watched
        of_rows = {"X": data.X, "read": read, "rows": rows, "network": network, "seed": seeds[2], "chosen": chosen}
        primal = self._primal()._on_rows(constraints, plan, of_rows)

        with self._spend(plan, data.reads) as noise:
            counts = plan.release_counts(groups[counted], of_counted.row_cells, constraints.n_cells, noise)
            of_asked = counts if chosen is None else counts * (len(chosen) / len(groups[counted]))
            followed = (constraints, groups) if watched is None else (watched[1], groups[watched[0]])
            asked = partial(release_asked, plan, *followed, noise)
            released = primal(groups, noise)
            del primal, read, of_rows  # and all that these hold of the rows
            module, multipliers = train_lagrangian(
                network, rows, data.y, constraints, constraints.sizes(of_asked), training,
                violations=asked, watched=watched, **released,
                dual_noise=plan.largest_dual_noise(len(constraints.unique_columns[0])),
                make_optimizer=net.make_optimizer, seed=seeds[1], verbose=self.verbose,
            )  # fmt: skip
            # all of this is released or public, up to the table of the answers of what is returned
            answers = predict_logits(module, rows).argmax(axis=1)
            membership = released.get("membership")
            trial, by_heart = self._tried(answers, rows, data, net, membership, seeds[1])
            falls_back = not trial.is_passed and may_fall_back(data.y) and fairness.constant_meets(constraints.notions)
            given = np.full_like(answers, trial.usual) if falls_back else answers
            judgement = plan.release_answers(groups[counted], data.y[counted], given[counted], noise)
            of_groups = None if membership is None else membership[:, : len(domain)]  # one that is empty may be beside
            labels = None if of_groups is None else labels_of_groups(of_groups, data.y, len(data.classes))
            judgement = judgement.of_one_class() if falls_back else judgement.after_learning(*by_heart, labels)

        module = _constant(data) if falls_back else behind(scales, module)
        self.net_ = fitted_net(net, module, data.classes, self.privacy_)
        self.multipliers_, self.noisy_counts_ = multipliers[: len(domain)], counts[: len(domain)]
        self.classes_, self.groups_ = data.classes, domain
        self._tell(trial, falls_back, judgement)
        return self

    def _tried(
        self, predicted: Ints, rows: "Tensor", data: TrainingData, net: "Net", groups: Floats | None, seed: int
    ) -> tuple[Comparison, ByHeart]:
        """Whether the network beats one class alone on its rows, less what networks like it lose on others, and what
        these know by heart: held to the same where labels count, as a bound makes them learn rows by heart, or rows are
        many. Those of the first question are held to nothing: estimates of groups from few rows may make a network
        useless that is not."""
        from skfairdp._networks import predict_logits
        from skfairdp.lagrangian._trainer import train_with_groups

        n_rows, is_small, n_classes = len(data.y), len(data.y) <= MOST_ROWS, len(data.classes)
        of = None if data.subjects is None else data.subjects.of
        some = np.arange(n_rows) if is_small else rows_to_try(n_rows, seed, of)
        y, part = data.y[some], rows[some]

        def on_parts(known: Floats | None, folds: int = FOLDS) -> tuple[Comparison, float, ByHeart]:
            def answers(learned: Ints) -> Ints:
                held, of_size = self._constraints(data, y[learned]), net if is_small else self._net(len(learned))
                held = held if known is not None else fairness.FairnessConstraints((), held.y, n_classes)
                of_groups = None if known is None else known[learned]
                module, _ = train_with_groups(of_size, part[learned], held, of_groups, dual_settings(self), seed=seed)
                return predict_logits(module, part).argmax(axis=1)

            of_groups = None if groups is None else groups[some, : len(data.domain)]  # one that is empty may be beside
            return tried_on_parts(y, answers, seed, n_rows, of_groups, folds, None if of is None else of[some])

        found, by_heart = seen(predicted, data.y, rows.shape[1], of), ByHeart()
        if found.is_passed and may_fall_back(data.y):
            trial, lost, by_heart = on_parts(None)
            found = replace(trial, ahead=found.ahead - lost)
        if n_rows >= LEAST_ROWS and (self._held(data).needs_labels or not may_fall_back(data.y)):
            _, lost, by_heart = on_parts(None if groups is None else groups[some], 1)
            found = found if is_small else replace(found, ahead=found.ahead - lost)
        return found, by_heart

    def _tell(self, trial: Comparison, falls_back: bool, judgement: Judgement) -> None:
        """Say so where one class is as good, or where the answers of what is returned do not hold a constraint."""
        if not trial.is_better and len(self.classes_) > 1:
            trial.warn(self.classes_[trial.usual], type(self).__name__, falls_back=falls_back)
        set_judgement(self, judgement)
        self.violation_, self.violation_noise_ = judgement.violation, 0.0 if falls_back else judgement.violation_noise
        if falls_back or self.lam_max == 0:  # one class for everybody is told already, and 0 asks for nothing
            return
        at_bound = bool((np.abs(self.multipliers_) >= self.lam_max).any())
        ways = [f"raise 'lam_max' ({self.lam_max:g}), which a multiplier has reached, or "] if at_bound else []
        if self.epsilon is not None and not at_bound:
            ways = [f"raise 'epsilon' ({self.epsilon:g}) or 'max_epochs' of 'net', or "]
        ways.append("take another constraint: features, or the price of errors, may not allow this one.")
        advice = "".join(ways)
        judgement.warn(type(self).__name__, "its rows", advice[:1].upper() + advice[1:])

    def _read(self, X: Any, y: Any, *, sensitive_features: Any = None, subject: Any = None) -> TrainingData:
        self._validate_params()
        owner = type(self).__name__
        fairness.read_constraints(self._asked, owner, supported=_NOTIONS)
        if not isinstance(self._primal(), GroupModel) and gathered(X) is not None:
            raise ValueError(
                f"{owner} reads X in chunks only with primal='group_model': noisy gradients go through all rows at "
                "each of their steps. Leave 'primal' as it is, or pass the rows as a DataFrame."
            )
        given = {"sensitive_features": sensitive_features, "subject": subject, "protects": Protects.SENSITIVE_ATTRIBUTE}
        return read_any_training(self, X, y, **given, groups="private", by_key=False, checks_public=True)

    def _rows(self, data: TrainingData, network: "Network", seed: int) -> "tuple[Tensor, TrainingData, Ints | None]":
        """The rows as the network reads them, the data with X that releases are made of, and which rows those are."""
        import torch

        if data.source is not None and data.subjects is not None:
            if not data.source.knows_order:
                raise ValueError(
                    f"{type(self).__name__} takes 'subject' only where rows come in the same order each time, which "
                    "those of Spark do not. Write them to numbered files of one folder, or pass them as a DataFrame."
                )
            data = replace(data, subjects=read_source(self, data, private=False).subjects)
        units = None if data.subjects is None else np.sort(data.subjects.one_row_each)
        chosen = self._primal()._chosen(len(data.X) if units is None else len(units), seed)
        if units is not None:  # the group of a subject is asked for once
            chosen = units if chosen is None else units[chosen]
        if chosen is not None:
            data.reads.note("rows whose groups are asked for", "computed", len(chosen), "positions drawn in public")
        if data.source is None:
            return network.tensor(data.X), data, chosen
        rows, data = read_numbers_of(self, data, network.dtype, chosen)
        return torch.from_numpy(rows).to(network.device), data, chosen

    def _plan(self, data: TrainingData) -> PFLDPlan:
        primal, owner, epsilon = self._primal(), type(self).__name__, math.inf if self.epsilon is None else self.epsilon
        given = primal.usual_split if self.budget_split is None else self.budget_split
        named = isinstance(given, Mapping) and set(given) == set(primal.usual_split)
        if not named or not all(isinstance(part, Real) and 0 < part < 1 for part in given.values()):
            raise ValueError(
                f"The 'budget_split' parameter of {owner} must map 'sizes', 'primal' and 'dual' to shares in "
                f"(0.0, 1.0), for example {dict(primal.usual_split)}. Got {self.budget_split!r} instead."
            )
        shape: dict[str, Any] = {
            "n_groups": max(2, len(data.domain)),  # a single group, if given, is compared with an empty one
            "dual_steps": self.dual_steps,
            **primal._planned(),
            "judge": Judge(self._held(data), data.n_units, epsilon, self.delta, data.attribute_relation),
            "relation": data.attribute_relation,
            "rows_of": data.rows_of,
        }
        if self.epsilon is None:
            return PFLDPlan.without_privacy(**shape)
        split = given["sizes"], given["primal"], given["dual"]
        return PFLDPlan.calibrated(epsilon=self.epsilon, delta=self.delta, budget_split=split, **shape)

    # ------------------------------------------------------------------ parameters

    @property
    def _asked(self) -> Any:
        """The constraints that were asked for, in the one form or the other."""
        return asked_constraints(self, usual="demographic_parity")

    def _primal(self) -> GroupModel | NoisyGradients:
        return self._parts()["primal"]

    def _constraints(self, data: TrainingData, y: Ints) -> fairness.FairnessConstraints:
        """Those of rows with these codes of classes."""
        owner = type(self).__name__
        if len(data.classes) < 2:
            raise ValueError(
                f"{owner} compares how often classes are predicted, and 'classes' lists one only: "
                f"{data.classes.tolist()[0]!r}. List two or more."
            )
        notions = fairness.read_constraints(self._asked, owner, supported=_NOTIONS)
        notions = fairness.by_position(notions, data.domain.tolist(), data.classes.tolist(), owner)
        return fairness.FairnessConstraints(notions, y, len(data.classes))

    def _held(self, data: TrainingData) -> fairness.RateConstraints:
        """What the hard answers are judged by."""
        return held_by_network(self._asked, data.domain.tolist(), data.classes.tolist(), type(self).__name__)

    def _net(self, n_rows: int) -> "Net":
        import torch

        from skfairdp._networks import MLP, as_net

        net = as_net(self.net, owner=type(self).__name__, optimizer=torch.optim.Adam, **LEFT_OPEN)
        # Weights with a standard normal prior, as in a logistic regression.
        if net.module is MLP and net.optimizer is torch.optim.Adam:
            net = replace(net, optimizer_options={"weight_decay": 1 / n_rows, **net.optimizer_options})
        return settled(net, n_rows)


def _constant(data: TrainingData) -> Any:
    """A network that answers how frequent each class is."""
    from skfairdp._networks import constant_module

    of_classes = np.maximum(np.bincount(data.y, minlength=len(data.classes)), 1)
    return constant_module(of_classes / of_classes.sum())
