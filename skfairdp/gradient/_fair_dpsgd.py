"""FairDP-SGD: private gradients from the private rows, and parity from public ones or from a signed loss."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skfairdp._column_tables import Cost
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier
from skfairdp._inputs import TrainingData, read_any_training, read_source
from skfairdp._judge import Judgement, asked_constraints, set_judgement
from skfairdp._network_classifier import NetworkPredictions
from skfairdp._rows import check_free_disk
from skfairdp._teachers import bytes_on_disk
from skfairdp._typing import ArrayLike, MaybeArray, SubjectLike
from skfairdp._usefulness import Comparison
from skfairdp._utils import PublicData, warn_caller
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient._dpsgd import MajorityBaselineTest, TrainsNetwork
from skfairdp.gradient._parity import DPSGDPlan, PublicPenalty, SignedLoss, Temperature, as_parity, default_parity
from skfairdp.privacy import NeighboringRelation
from skfairdp.schema import storage_bytes, with_schema

if TYPE_CHECKING:
    from skfairdp._networks import Net
    from skfairdp.gradient._signed_loss import RateLagrangian


@shared_docs
@with_schema
class FairDPSGDClassifier(NetworkPredictions, PrivateClassifier, TrainsNetwork):
    """Neural network trained by differentially private SGD, under demographic parity or any constraint on rates.

    **Guarantee.** (ε, δ)-differential privacy for the private *records*. Neighbours differ in one record, which in one
    of them is a null record that contributes nothing; the number of rows is public, since sampling probability, steps
    and divisor follow from it. With a declared ``public_n_rows`` they follow from that, and neighbours differ by adding
    or removing one record, at the same ε. These numbers, the classes, all constructor parameters and the public rows
    with their groups count as public. ``privacy_.epsilon`` is computed from the declared releases alone (privacy loss
    distributions; the steps are Poisson-sampled Gaussians). It is no guarantee for *replacing* a row by another, which
    costs more. With ``fit(..., subject=ids)`` all rows of one subject, such as a person, are protected together:
    neighbours differ in one subject, which in one of them has no rows. Batches are of subjects, whose number is public
    in place of that of rows, and a subject's gradient is that of the mean loss of at most ``max_rows_per_subject`` of
    its rows, clipped once. Counts take one row of each.

    **Fairness.** With public rows, the fairness term reads those rows and the present network only. So it is
    post-processing: it costs nothing, it is neither clipped nor noisy, and it is added to the private gradients
    (FairDP-SGD, Yaghini et al. 2023): ``θ ← θ - η [ (Σ clip(g_i) + noise) / (qN) + λ ∇DPFR(θ; public) ]``. Without
    public rows, a signed loss is a part of the private rows' own loss, inside the clipping. Noisy rates of their groups
    steer it. ε covers steps and rates together, and the groups are protected as well.

    **What else ε covers.** Three small releases lie within the same ε:

    * *Scales.* Two or three noisy tables say where the numbers of each column lie, and the network scales them by that:
      ages, incomes and days come as they are, and bounds of a ``schema`` may be far too wide. Columns that lie near
      -1 … 1 already are left alone. With public rows and no schema those rows say it, for nothing. (Not for images,
      codes and what else does not begin with an ``nn.Linear`` of all columns, nor with ``noise_multiplier``. Nor with
      too few rows to see columns behind the noise: scale them then by bounds that you know. A column of numbers
      below 0.002 without bounds is left alone as well, since it may be all zeros: scale it by a public number.)
    * *Probabilities.* One noisy table, of how sure the network is and how often it is right, scales the logits at the
      end. No answer changes. (Not for a network of your own, nor with ``noise_multiplier``.)
    * *A check.* A noisy count says by how many rows the network is ahead of the most frequent class. Where it may be
      behind, that class is predicted for every row, and probabilities near the rates of the classes only rank rows, as
      the network does. Wherever it is not clearly ahead a UtilityWarning says so. (Not with ``noise_multiplier``.)

    Parameters
    ----------
    {epsilon, delta}
    constraints : str, RateParity, RateBound, fairlearn moment, list of them or None, default=None
        What to hold: "demographic_parity", "equalized_odds", ``RateBound("false_negative_rate", upper=0.1)`` and
        others, between every two groups; see :class:`~skfairdp.fairness.RateParity`. It is short for
        ``parity=SignedLoss(constraints=...)``, and so the private rows need groups, and no public ones are taken.
    {gamma_of_rates}
    parity : {"public_penalty", "signed_loss"}, PublicPenalty, SignedLoss or None, default=None
        Where parity comes from: a penalty on public rows with their groups, at no cost, or a signed loss of the private
        ones. None: the signed loss where there are no public rows, or where it halves the error with which the rates of
        the smallest group are known: that needs the groups of the private rows, many more private rows than public
        ones, and little noise, all by public numbers. Otherwise, and with a ``lam`` or a ``noise_multiplier`` of your
        own, it is the penalty.
    lam : float, default=None
        Weight λ ≥ 0 of the parity term: of the penalty, or the largest multiplier of the signed loss, in nats of loss
        per violation of 1. 0 is plain DP-SGD, bit for bit, and reads neither public rows nor groups. None is 1 for
        the penalty, and for the signed loss ``log(n_classes) / 0.01``, which no gap above 0.01 is worth, or less where
        rates have more noise than that: those of small groups. Where chance may break the bound of a small group, it is
        also what clipping lets through: a ``lam`` that is given closes more, and may cost much accuracy.
    net : {"auto", "mlp", "additive", "cnn", "resnet"}, torch.nn.Module, its class or skorch net, default="auto"
        The network and how it is trained. "mlp" has 64 tanh units, "additive" none: each column then adds a term of its
        own, which :class:`~skfairdp.inspection.AdditiveTerms` reads. "auto" is "mlp", but with ``lam=0`` and a
        ``schema`` "additive" where noise drowns hidden units, by public numbers: the more parameters, the more noise.
        (Not with a ``noise_multiplier``.) "cnn" has two convolutions, "resnet" two residual
        blocks; ``mlp(...)``, ``cnn(...)`` and ``resnet(...)`` of this module set their sizes. A module maps float rows
        to one logit per class; one that mixes rows or keeps something of them (BatchNorm) is refused. Of a skorch net
        ``module``, ``optimizer`` and their options, ``lr`` (usually ``2 / max_grad_norm``), ``batch_size`` (the
        *expected* size of a Poisson batch, usually 512), ``max_epochs`` (expected passes over the private rows, usually
        20) and ``device`` are read, and ``optimizer__average_last``: the share of the last iterates whose average is
        kept, usually 0.25. Of more than 50,000 rows, unless you set one of the three, batches are larger by
        their power .72, steps as much longer, and passes as much fewer: 4,426 rows and 2.3 passes of a million. Its
        callbacks and ``train_split`` are never run: what they measure on private rows would be published.
    public_n_rows : int, default=None
        Public number of private rows, from which sampling probability, steps and the divisor of the gradients follow.
        It need not be exact, and nothing else follows from the true number, which stays private. A fit takes as long as
        for so many rows. None takes ``n_rows`` of the schema; without one rows are counted, and the count is public.
    max_rows_per_subject : int, default=6
        Of a subject with more rows so many are learned from, whichever. It counts only with ``subject``, and a fit
        takes as long as if each had so many.
    max_grad_norm : float, default=None
        Clipping bound of per-sample gradients. None is 1 with ``lam=0``, else 4: the parity term would otherwise
        dominate the clipped gradients of misclassified rows, and the model would predict one class.
    noise_multiplier : float, default=None
        Noise over clipping bound. None: calibrated to ``epsilon``.
    {classes}
    groups : list, default=None
        All groups (tuples for intersections). None takes those of the public rows; for a signed loss, those of the
        private ones, which is a release.
    {sensitive_columns, schema, public_data, random_state, noise_seed, ledger, verbose}

    Attributes
    ----------
    net_ : skorch.NeuralNetClassifier
        The trained network, on the CPU, initialised: ``net_.predict_proba``, ``net_.save_params`` and ``net_.module_``
        work; its history is empty. Where columns are scaled, a module of yours is ``net_.module_.module``.
        Differentially private.
    net_taken_ : {"mlp", "additive"} or None
        Which network ``net="auto"`` took; None where you named one. Public, as it follows from the plan.
    parity_taken_ : {"public_penalty", "signed_loss"} or None
        Where parity came from; None with ``lam=0``. Public, as it follows from the plan.
    {classes_}
    groups_ : ndarray of shape (n_groups,), dtype object
        Only where groups were used.
    {privacy_, epsilon_spent_}
    noise_multiplier_ : float
        The noise multiplier used.
    n_steps_ : int
        Number of noisy steps.
    {judged}
        Of public rows with a penalty, which teach the network, only ``gap_`` is known: ``gap_bound_`` is 1.
    {n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    FairnessWarning
        With a signed loss, ``constraint_holds_`` is "no". Of fits that hold their constraint one in twenty says so, at
        most.
    UtilityWarning
        One class is all that is predicted, or by a released count the network is hardly better than that.

    See Also
    --------
    PublicPenalty, SignedLoss : Where parity comes from.
    mlp, cnn : The built-in networks, with sizes and settings.
    skfairdp.inspection.AdditiveTerms : Reads a model with ``net="additive"``, and makes its curves monotone.

    Examples
    --------
    >>> from skfairdp.gradient import FairDPSGDClassifier, mlp
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> split = train_private_public_test_split(*make_biased_classification(3000, random_state=0), random_state=0)
    >>> net = mlp((32,), max_epochs=3, batch_size=200)
    >>> model = FairDPSGDClassifier(epsilon=2.0, lam=0.5, net=net, classes=[0, 1], random_state=0)
    >>> model = model.fit(split.X, split.y, X_public=split.public)
    >>> model.privacy_.epsilon <= 2.0, str(model.privacy_.neighboring_relation)
    (True, 'replace one record by a null record')
    """

    constraints: Any = None
    gamma: float | None = None
    parity: str | PublicPenalty | SignedLoss | None = None
    classes: MaybeArray = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {"parity": "no_validation"}  # as_parity says what is wrong

    __metadata_request__fit = {"subject": True}

    def fit(
        self,
        X: ArrayLike,
        y: MaybeArray = None,
        *,
        sensitive_features: MaybeArray = None,
        X_public: ArrayLike | PublicData | None = None,
        sensitive_features_public: MaybeArray = None,
        subject: SubjectLike = None,
    ) -> "FairDPSGDClassifier":
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a table that does not fit into memory
            Private rows. With a schema also a path of Parquet files, a Polars LazyFrame, a dask or Spark DataFrame, or
            a function without arguments that returns an iterable of DataFrames; label and groups are columns of it.
        {y_private}
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Groups of the rows of X; read only where a signed loss may be taken.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Unlabelled public rows, for the penalty. Without them, or where the private rows know the gap better, parity
            comes from a signed loss.
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Public groups of the public rows; may be part of ``PublicData``.
        {subject}

        {returns_self}
        """
        from skfairdp._networks import fitted_net

        public = {"X_public": X_public, "sensitive_features_public": sensitive_features_public}
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject, **public)
        plan = self._plan(data)
        data = read_source(self, data)
        network, terms = self._network(data, plan)
        counted = data.one_row_each

        with self._spend(plan, data.reads) as noise:
            if plan.scaling is not None:
                plan.scaling.settle(network.scales, counted.X, noise)
            module = network.trained(data.X, data.y, plan.step, noise, verbose=self.verbose, **terms)
            if plan.temperature is not None:
                module = plan.temperature.release(module, counted.X, counted.y, noise)
            found = None
            if plan.look is not None:
                module, found = plan.look.release(module, counted.X, counted.y, len(data.classes), noise)
            judgement = plan.judge and terms["loss"].judgement(plan.judge, network, module, counted, noise)

        self.net_, self.classes_ = fitted_net(plan.net, module, data.classes, self.privacy_), data.classes
        self.net_taken_, self.parity_taken_ = plan.taken, plan.parity and plan.parity.shorthand
        self.noise_multiplier_, self.n_steps_ = plan.step.noise_multiplier, plan.step.steps
        if data.domain is not None:
            self.groups_ = data.domain
        self._tell_judgement(terms.get("loss"), judgement or self._by_public_rows(plan, data))
        self._warn_of_one_class(plan, data, found)
        return self

    def _read(self, X: Any, y: Any, **rows: Any) -> TrainingData:
        self._validate_params()
        given = self._got_public_rows(rows)
        parity = self._parity_part(given)
        if given and isinstance(parity, SignedLoss):
            raise ValueError(
                f"{type(self).__name__} got public rows together with {self._signed_by}. Leave out X_public, "
                "sensitive_features_public and 'public_data', or take parity='public_penalty' instead, which costs "
                "no epsilon and enforces no bound."
            )
        rows |= parity.rows_read(self.lam)
        if given and self._leaves_parity_open(rows.get("sensitive_features")):
            rows["groups"] = "both"
        data = read_any_training(self, X, y, by_key=False, **rows)
        if data.source is not None:
            self._check_room(data)
        return data

    def _check_room(self, data: TrainingData) -> None:
        """Refuse rows in chunks where their number, which files and bars show, is to stay private; or without disk."""
        owner = type(self).__name__
        if self._declared_rows is not None:
            raise ValueError(
                f"{owner} reads X in chunks only where the number of its rows is public: files, progress and memory "
                "show it. Leave 'public_n_rows' and the schema's n_rows None, or pass the rows as a DataFrame."
            )
        assert self.schema is not None
        room = storage_bytes(self.schema, len(data.X))
        if data.subjects is not None:
            room = bytes_on_disk(self.schema, data.n_units, groups=True)
        check_free_disk(room, owner, verbose=self.verbose)

    def _parity_part(self, has_public_rows: bool) -> PublicPenalty | SignedLoss:
        """Where parity comes from."""
        owner = type(self).__name__
        part = as_parity(self.parity, owner, has_public_rows=has_public_rows, constraints=self._asked)
        if self._asked is not None and self.lam == 0:
            raise ValueError(
                f"{owner} got {self._signed_by} and lam=0, which enforces no constraint. Leave one of the two out."
            )
        return part

    @property
    def _asked(self) -> Any:
        """The constraints that were asked for, in the one form or the other."""
        return asked_constraints(self)

    @property
    def _without_groups(self) -> str:
        """What to do where there are none."""
        return f" For a model that reads no group set lam=0{'' if self._asked is None else f', not {self._signed_by}'}."

    @property
    def _signed_by(self) -> str:
        """Which parameter asks for the signed loss."""
        if self.gamma is None and self.constraints is None:
            return "parity='signed_loss'"
        return "'constraints'" if self.gamma is None else "'gamma'"

    def _leaves_parity_open(self, sensitive_features: Any) -> bool:
        """Whether public and private rows may both be asked for the gap, so that public numbers say which are."""
        if not (self.parity is self.constraints is self.gamma is self.lam is self.noise_multiplier is None):
            return False
        by_schema = self.schema is not None and bool(self.schema.groups)
        return by_schema or sensitive_features is not None or self.sensitive_columns is not None

    def _parity_for(self, data: TrainingData, n_rows: int, relation: NeighboringRelation) -> PublicPenalty | SignedLoss:
        """Where parity comes from, now that the rows are known."""
        if data.public is None or data.groups is None:
            return self._parity_part(data.public is not None)
        return default_parity(data.public, n_rows, SignedLoss().plan(self.epsilon, self.delta, relation))

    def _looks(self, data: TrainingData, net: "Net", n_rows: int, cost: Cost) -> dict[str, Any]:
        """What looks at the trained network again."""
        if len(data.classes) < 2:
            return {}
        temperature = Temperature(*cost)
        look = MajorityBaselineTest(n_rows, data.X.shape[1], *cost)
        return {"look": look, "temperature": temperature if temperature.fits(net) else None}

    @property
    def _takes_public_rows(self) -> bool:
        """Whether public rows that a post-processor has are of use here."""
        signed = self.parity == "signed_loss" or isinstance(self.parity, SignedLoss)
        return not signed and self.constraints is None and self.gamma is None

    def _by_public_rows(self, plan: DPSGDPlan, data: TrainingData) -> Judgement | None:
        """What the rows of a penalty say of the network that is returned: hard answers, where the penalty is soft."""
        from skfairdp._networks import module_of, predict_logits

        if plan.parity is None or data.public is None or data.public.groups is None or not len(data.public.X):
            return None
        constraints = SignedLoss().constraints_for(data)
        answers = predict_logits(module_of(self.net_), data.public.X).argmax(axis=1)
        return Judgement.by_rows(constraints, data.public.groups, None, answers)

    def _tell_judgement(self, loss: "RateLagrangian | None", judgement: Judgement | None) -> None:
        """What was found of the network that is returned, and a warning where a constraint is not held."""
        from skfairdp._networks import is_constant, module_of

        if judgement is None:
            return
        judgement = judgement.of_one_class() if is_constant(module_of(self.net_)) else judgement
        # A penalty has a weight, and was given no bound; and few public rows are learned by heart.
        set_judgement(self, judgement, in_doubt=loss is None)
        if loss is None:
            return
        weigh = "set 'lam' (such as 1), which may cost much accuracy"
        weigh = weigh if self.lam is None else f"raise 'lam' ({self.lam:.2g})"
        ways = [weigh] if loss.is_at_its_bound else []
        ways.append("allow more (difference_bound of RateParity)")
        ways.append("move thresholds by group afterwards (PrivateThresholds)")
        first = f"Where features allow it, a larger 'epsilon' ({self.epsilon:g}) comes closer"
        judgement.warn(type(self).__name__, "its private rows", f"{first}; else {', or '.join(ways)}.")

    def _warn_of_one_class(self, plan: DPSGDPlan, data: TrainingData, found: Comparison | None) -> None:
        """Say so where one class is as good: by the second look, or on the public rows."""
        from skfairdp._networks import module_of, predict_logits

        owner, module, rows = type(self).__name__, module_of(self.net_), None if data.public is None else data.public.X
        if plan.look is not None and found is not None and not found.is_better:
            plan.look.warn(found, module, self.classes_, owner, constrained=plan.parity is not None)
        elif rows is not None and len(rows) and len(self.classes_) > 1:
            codes = np.unique(predict_logits(module, rows).argmax(axis=1))
            if len(codes) == 1:
                weight = PublicPenalty.usual_lam if self.lam is None else self.lam
                warn_caller(
                    f"{owner} predicts the class {self.classes_[codes[0]]} for every public row, and so is no "
                    f"better than that class alone. Lower 'lam' ({weight:g}), or raise 'epsilon' ({self.epsilon:g}).",
                    UtilityWarning,
                )
