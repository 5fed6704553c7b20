"""Fair thresholds from private rows: a fitted classifier's answers, changed by what one noisy table says of them."""

import math
from dataclasses import KW_ONLY, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier
from skfairdp._inputs import TrainingData, read_any_training, read_features
from skfairdp._judge import LEVEL, Judgement, set_judgement
from skfairdp._row_wise import NO_CLASS, check_rows_alone, row_wise_predictions
from skfairdp._rows import Chunk, check_free_disk, other_rows
from skfairdp._teachers import bytes_on_disk, counted_once
from skfairdp._typing import Array, ArrayLike, Floats, Ints, MaybeArray, Objects, SubjectLike
from skfairdp._usefulness import units_of
from skfairdp._utils import coins_of, decode_labels, public_generator, warn_caller
from skfairdp._utils._sklearn import A_LEARNER, Interval, answers_as_fitted
from skfairdp.exceptions import FairnessWarning, UtilityWarning
from skfairdp.fairness import RateConstraints, noise_of_violations, read_rate_constraints
from skfairdp.postprocessing import _inputs as inputs
from skfairdp.postprocessing._bins import BinsPlan, bins_of, owed_to_choosing, owed_to_learning, smoothed_counts
from skfairdp.postprocessing._charged import LEAST_EPSILON, ChargedForRows
from skfairdp.postprocessing._constrained import answer_counts, fair_answers, for_own_answers, predicted_counts
from skfairdp.postprocessing._group_guess import guessed_kinds, guessing_network, with_guess
from skfairdp.privacy import NeighboringRelation, rounded_up
from skfairdp.schema import RawTable, Schema, with_schema

_OWNER = "PrivateThresholds"
_ROUNDING = 1e-3  # of probabilities of half precision
_MOST_GROUPS = 100  # ten thousand comparisons of two, each a line of the program that is solved
_FREE = 100.0  # no rate, nor a ratio of two that are told, is beyond
_UNSURE = 0.05  # standard deviation of a group's rate, by the noise alone


@shared_docs
@with_schema(kw_only=False)
class PrivateThresholds(PrivateClassifier, ChargedForRows):
    """Make a fitted classifier of two classes fair by private rows with labels and groups: no public rows are needed.

    **Guarantee.** (ε, δ)-differential privacy for one *record* of the rows given to ``fit``: its features, label and
    group. Three noisy tables of counts are released: the scores, by which bins are chosen, the rows by bin of the
    score, group and label, and the answers by group and label. Where the group is guessed, noisy gradients of the
    network that guesses it, the sizes of the groups and a histogram of how clear guesses are come before, within the
    same ε; beyond ε = 2, or with more features than the root of the number of rows, the answers that are counted are
    then those to rows kept aside.
    Everything after that is post-processing. The fitted object holds the classifier as well, so ``privacy_``
    **composes the classifier's own guarantee with that of this fit**, wherever it has a ``privacy_``: that covers
    people who are in the rows of both fits; people in one of them only have less at stake. The ledger is charged for
    this fit alone. A classifier without a ``privacy_`` is taken to be public, with a PrivacyLeakWarning: had it seen
    these rows, nothing would protect them.

    *Fairness.* Each bin is answered with a chance of its own, the most accurate ones by a linear program under which
    the constraints hold on the released counts. Counts that noise may explain are drawn towards a smooth curve of the
    score first, and where they say little for or against the classifier's own answers, or are too noisy (by more than
    0.05 of a rate) to show that these break an inequality, these are kept. On new rows the constraints hold up to noise
    and sampling. Which answer a row gets follows from a keyed
    hash of its features: predictions are the same however often and in whatever order you ask.

    Parameters
    ----------
    estimator : classifier
        Of two classes, with ``predict_proba`` or ``decision_function``. One that is fitted is not changed; wrap it in
        ``sklearn.frozen.FrozenEstimator`` where this object is cloned, as searches do. A private one that is not fitted
        is cloned and fitted first, on the same rows, for its own ε and with this ``ledger`` where it has none.
    epsilon : float, default=1.0
        Privacy budget of this fit, in [1e-3, 1e6].
    {delta}
    constraints : str, RateParity, RateBound, fairlearn moment, or list of them, default="demographic_parity"
        What is to hold: "equalized_odds", "equal_opportunity", "accuracy_parity" and others, see
        :class:`skfairdp.fairness.RateParity`. Names stand for a difference of at most 0.01.
    group_at_prediction : bool, default=False
        Let ``predict`` and ``score`` read the group of each row. Without it **the group is guessed from the
        features**, by a network that the fit trains on the same rows for half of its squared cost, and each guess has
        a rule of its own, or up to four by how clear it is, as noise allows. Rules by a guess may favour lower scores
        over higher ones. By public numbers there is no guess, but one rule by the score alone, which pays for parity
        with much accuracy: of few rows, with a small ε, of many groups, and of rows in chunks.
    total_epsilon : float, default=None
        What the fit of the estimator, which is not fitted yet, and this one cost together at ``delta``, with schemas
        released for them, in [1e-3, 1e4]. One factor divides it, by which the ``epsilon`` of both are multiplied. None
        takes these as they are.
    {groups, sensitive_columns, schema}
    random_state : int, RandomState, Generator or None, default=None
        Public: makes the key of the hash that settles randomised answers.
    {noise_seed, ledger}

    Attributes
    ----------
    estimator_ : classifier
        The classifier whose scores are read.
    edges_ : ndarray of shape (n_bins - 1,)
        Where bins of scores end. Released.
    counts_ : ndarray of shape (n_bins, n_groups, 2) or (n_rules * n_bins, n_groups, 2)
        Noisy counts of rows by bin, group and label. Released, may be negative. Where the group is guessed, the bins of
        each rule follow those of another.
    smoothed_counts_ : ndarray of the same shape
        What the answers are chosen by: the counts, drawn towards a smooth table as far as their noise explains the
        difference. The counts themselves where noise is small.
    answers_ : ndarray of shape (n_rules, n_bins)
        The chance that a bin is answered by the second class. One rule for each group, known or guessed; up to four
        where guesses are told apart by how clear they are, from the least clear on; or one for all rows.
    violation_ : float
        By how much the answers break the worst constraint on the smoothed counts; 0 where all of them hold.
    {judged}
        All from noisy counts of the answers; where a network guesses the group with ε above 2, or of more features
        than the root of the number of rows, of those to one row in five, drawn in secret, which taught nothing here.
        Bounds leave room for what a private classifier may have learned of these rows by heart: of one that protects
        groups alone, all labels.
    {classes_, groups_, privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    See Also
    --------
    FairnessCalibrator : Calibrates on public rows without labels, which costs no budget.

    Examples
    --------
    >>> from skfairdp import FairDPSGDClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import demographic_disparity
    >>> from skfairdp.postprocessing import PrivateThresholds
    >>> X, y, groups = make_biased_classification(12_000, disparity=0.3, random_state=0)
    >>> train, test = slice(0, 8000), slice(8000, None)
    >>> model = FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0)
    >>> fair = PrivateThresholds(model, epsilon=0.5, total_epsilon=1.0, group_at_prediction=True, groups=[0, 1])
    >>> fair = fair.fit(X[train], y[train], sensitive_features=groups[train])
    >>> predicted = fair.predict(X[test], sensitive_features=groups[test])
    >>> before, after = (
    ...     demographic_disparity(None, labels, sensitive_features=groups[test])
    ...     for labels in (fair.estimator_.predict(X[test]), predicted)
    ... )
    >>> print(f"gap {before:.1f} before, {after:.2f} after; ε = {fair.epsilon_spent_:.2f} of both fits")
    gap 0... before, 0.0... after; ε = 1.00 of both fits
    """

    estimator: Any = None
    _: KW_ONLY
    constraints: Any = "demographic_parity"
    group_at_prediction: bool = False
    total_epsilon: float | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [A_LEARNER, None],
        "epsilon": [Interval(Real, LEAST_EPSILON, 1e6, closed="both")],
        "group_at_prediction": ["boolean"],
        "total_epsilon": [Interval(Real, LEAST_EPSILON, 1e4, closed="both"), None],
    }

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "PrivateThresholds":
        """Release the tables and find the answers.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a table that does not fit into memory
            Private rows, as the classifier predicts them. With a schema also a path of Parquet files, a Polars
            LazyFrame, a dask or Spark DataFrame, or a function without arguments that returns an iterable of
            DataFrames; label and groups are columns of it.
        y : array-like of shape (n_rows,), default=None
            Private labels. None takes those of X, where a schema says which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups. Needed unless ``sensitive_columns`` or a schema names them.
        {subject}

        {returns_self}

        Warns
        -----
        PrivacyLeakWarning
            The classifier states no guarantee of its own.
        FairnessWarning
            ``constraint_holds_`` is "no"; no answers meet the constraints; noise leaves the rates of a group uncertain
            by more than 0.05, or says so much more than the rows, by public numbers, that the classifier's own answers
            are left as they are.
        UtilityWarning
            By the released counts the answers are right no more often than the larger class, beyond noise.
        """
        if self._fit_both(X, y, sensitive_features=sensitive_features, subject=subject):
            return self
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        plan = self._plan(data)
        model, classes = self._fitted_estimator(), data.classes
        constraints = self._constraints(data.domain, classes)
        key = public_generator(self.random_state).bytes(16)
        network = guessing_network(plan, data, self.random_state, _OWNER)
        taught_by_heart = self._by_heart(model, data)

        with self._spend(plan, data.reads) as noise:
            scores, groups, y, coins, places = self._scored(model, X, data, key)
            taught, held = (rows[places] for rows in plan.kept_aside(plan.n_rows, noise))
            guess, kinds = guessed_kinds(plan, network, data.one_row_each, places, taught, noise)
            edges, counts = plan.release(scores[taught], groups[taught], y[taught], noise, kinds[taught])
            smoothed, weight = smoothed_counts(counts, edges, plan.table.sigma)
            answers, right_sides = self._answers(plan, constraints, smoothed, edges, weight)
            rules = groups[held] if self.group_at_prediction else kinds[held]
            given = coins[held] < answers[rules, bins_of(scores[held], edges)]
            seen = plan.look.release(answer_counts(constraints, groups[held], y[held], given), noise)

        owed = owed_to_learning(smoothed, answers, taught_by_heart)
        judgement = replace(Judgement(constraints, seen, plan.look.sigma).after_by_heart(taught_by_heart), apart=owed)
        if judgement.optimism is not None:
            chosen = np.minimum(judgement.optimism + owed_to_choosing(counts)[:, None], 1.0)
            judgement = replace(judgement, optimism=chosen)
        judgement = judgement if plan.keeps_aside else judgement.held_on_its_rows
        judgement = judgement.of_one_class() if np.unique(answers).tolist() in ([0], [1]) else judgement
        set_judgement(self, judgement)
        self.estimator_, self.classes_, self.groups_ = model, classes, data.domain
        self.edges_, self.counts_, self.smoothed_counts_, self.answers_ = edges, counts, smoothed, answers
        self._key, self._guesses = key, guess
        self.violation_ = constraints.largest_violation(predicted_counts(smoothed, self._chances))
        beyond = constraints.violations(predicted_counts(smoothed, self._chances)) + constraints.bounds - right_sides
        self._warn(plan, weight, float(beyond.max()), leaves_some=bool((right_sides > constraints.bounds).any()))
        if beyond.max() <= 1e-6 and not plan.snr_too_low:  # else it is told already
            judgement.warn(_OWNER, "private rows", "Ask for a smaller bound, or give more rows or a larger 'epsilon'.")
        return self

    @answers_as_fitted
    def predict(self, X: ArrayLike, *, sensitive_features: MaybeArray = None) -> Array:
        """Predict the class of each row.

        Parameters
        ----------
        {X_predict}
        {group_of_a_prediction}

        Returns
        -------
        {returns_labels}
        """
        check_is_fitted(self, "answers_")
        features = read_features(self, X)
        table = self._rows_for(self.estimator_, X, features)
        bins = bins_of(scores_of(self.estimator_, table, np.arange(len(features))), self.edges_)
        rules = self._kinds_to_come(X, features, sensitive_features, reads_groups=len(self.answers_) > 1)
        return decode_labels(self, (coins_of(features, self._key) < self.answers_[rules, bins]).astype(np.int64))

    @property
    def classes(self) -> Array | None:
        """The classes of the classifier, which are public like itself; a schema says its own."""
        return None if self.schema is not None else getattr(self.estimator, "classes_", None)

    def _check_settings(self) -> None:
        self._validate_params()
        if inputs.schema_for(self) is not self.schema:
            raise ValueError(
                f"The 'estimator' of {_OWNER} reads raw tables by a schema, and {_OWNER} has none to read them by. "
                "Give it the same: PrivateThresholds(model, schema=schema)."
            )
        read_rate_constraints(self.constraints, _OWNER)
        declares = self.schema or inputs.last_part(self.estimator)
        if inputs.fits_its_estimator(self) and isinstance(declares, (Schema, PrivateClassifier)):
            self._check_binary(declares.classes)

        self._check_groups(self.groups if self.schema is None else self.schema.group_values)

    def _check_groups(self, groups: Any) -> None:
        if groups is not None and len(groups) > _MOST_GROUPS:
            raise ValueError(
                f"{_OWNER} compares every two groups, and got {len(groups)} groups: at most {_MOST_GROUPS}. Merge them "
                "into fewer, such as bands of age or regions: each needs rows enough to show through the noise."
            )

    def _check_kinds(self, domain: Objects, classes: Any) -> None:
        self._check_binary(classes)
        self._constraints(domain, classes)

    def _check_binary(self, classes: Any) -> None:
        if classes is not None and len(classes) != 2:
            raise ValueError(
                f"Only binary classification is supported by {_OWNER}: its 'estimator' must know two classes. Use "
                "FairDPSGDClassifier, which takes the same constraints, for more."
            )

    def _read(self, X: Any, y: Any = None, *, sensitive_features: Any = None, subject: Any = None) -> TrainingData:
        self._check_settings()
        model = self._fitted_estimator()
        self._check_binary(model.classes_)
        if not (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
            raise ValueError(
                f"The 'estimator' of {_OWNER} needs predict_proba or decision_function; {type(model).__name__} has "
                "neither. Give one with scores."
            )
        check_rows_alone([_Scores(inputs.thawed(model))], _OWNER)
        if inputs.network_of(model) is not None:
            from skfairdp._networks import check_precision

            check_precision(_OWNER)
        data = self._read_by(read_any_training, X, y, sensitive_features, subject, by_key=False)
        if not np.array_equal(np.asarray(model.classes_), data.classes):
            known = model.classes_.tolist() if isinstance(model.classes_, np.ndarray) else list(model.classes_)
            if self.schema is not None:
                raise ValueError(
                    f"The schema of {_OWNER} must name the classes of its 'estimator', in the same spelling. Got "
                    f"{list(data.classes)!r} and {known!r}."
                )
            raise ValueError(
                f"The 'estimator' of {_OWNER}, {type(model).__name__}, must have sorted 'classes_', as scikit-learn's "
                f"classifiers have, and the columns of predict_proba in that order. Got {known!r}."
            )
        if data.source is not None and data.subjects is not None and self.schema is not None:
            check_free_disk(bytes_on_disk(self.schema, data.subjects.n, groups=True), _OWNER)
        self._check_columns(model, data.X.shape[1])
        self._note_the_model(model, data.reads)
        self._constraints(data.domain, data.classes)
        return data

    def _plan(self, data: TrainingData, relation: NeighboringRelation | None = None) -> BinsPlan:
        relation = relation or self._relation(self._fitted_estimator(), data.subjects is not None)
        plan = BinsPlan(data.n_units, len(data.domain), float(self.epsilon), float(self.delta), relation, data.rows_of)
        # of chunks features are not kept, from which a group could be guessed
        guesses = not self.group_at_prediction and data.source is None
        return with_guess(plan, data, self.schema, _OWNER) if guesses else plan

    @property
    def _chances(self) -> Floats:
        """The answers by group that is known (one line where none is) and cell."""
        return self.answers_ if self._guesses is None else self.answers_.reshape(1, -1)

    def _constraints(self, domain: Objects, classes: Array) -> RateConstraints:
        self._check_groups(domain)
        asked = read_rate_constraints(self.constraints, _OWNER)
        return RateConstraints(asked, domain.tolist(), classes.tolist(), _OWNER).with_groups_to_compare()

    def _check_scores(self, model: Any, rows: Any) -> None:
        if not hasattr(model, "predict_proba"):
            return
        try:
            found = inputs.probabilities(model, rows, 2, owner=_OWNER, finite=False)
        except Exception:  # of a row that it fails for: others have a score
            return
        known = np.isfinite(found).all(axis=1)
        if (found[known] < -_ROUNDING).any() or (np.abs(found[known].sum(axis=1) - 1) > _ROUNDING).any():
            raise ValueError(
                f"predict_proba of the 'estimator' of {_OWNER}, {type(model).__name__}, must return probabilities, "
                "none below 0, which add up to 1 in a row. For made-up rows it returns other numbers, such as "
                "logits. Nothing was spent."
            )

    def _scores_of_rows(self, model: Any, table: Any, places: Ints) -> Floats:
        return scores_of(model, table, places, unknown=np.nan)

    def _scored(self, model: Any, X: Any, data: TrainingData, key: bytes) -> tuple[Array, ...]:
        """Score, group, class, coin and place of every row, or of one of each subject; of chunks in one pass."""
        if data.source is None:
            found, groups, places, units = self._scores_of_units(model, X, data)
            return np.nan_to_num(found), groups, units.y, coins_of(units.X, key), places

        schema, numbered = self.schema, data.source.knows_numbers
        assert schema is not None
        if data.subjects is not None:
            listed = data.subjects.hashes

            def scored_once(raw: RawTable, hashes: NDArray[np.uint64], seeds: Any) -> tuple[Array, ...]:
                table = self._rows_for(model, schema.restore(raw.numbers), raw.features)
                places = np.searchsorted(listed, hashes)
                return scores_of(model, table, places), raw.groups(), raw.labels(), coins_of(raw.features, key), places

            return counted_once(scored_once, data.source, schema, _OWNER, len(listed), add=_joined)

        def read(chunk: Chunk) -> tuple[Any, ...]:
            raw = RawTable.read(schema, chunk.table, owner=_OWNER, may_be_empty=True)
            table = self._rows_for(model, chunk.table, raw.features)
            codes = raw.groups().astype(np.int32), raw.labels().astype(np.int8), coins_of(raw.features, key)
            return table, chunk.numbers if numbered else None, *codes

        chunks = data.source.each(read)
        scored = [(scores_of(model, table, places), *rest) for table, places, *rest in chunks if len(rest[0])]
        columns = tuple(np.concatenate(column) for column in zip(*scored, strict=True))
        if len(columns[0]) != data.source.n_rows:
            raise other_rows(_OWNER)
        return *columns, np.arange(len(columns[0]))

    def _answers(
        self, plan: BinsPlan, constraints: RateConstraints, counts: Floats, edges: Floats, weight: float
    ) -> tuple[Floats, Floats]:
        """The chance of the second class by rule and bin, and what inequalities are held to: anything where noise hides
        whether the classifier's own answers break them. These stay where counts are mere noise, or all of a group's."""
        by_group = self.group_at_prediction
        own = np.tile(np.append(0.0, edges) >= 0.5, (1, plan.n_kinds)).astype(float)
        kept = np.resize(own, (plan.n_groups if by_group else plan.n_kinds, len(edges) + 1))
        if plan.snr_too_low:
            return kept, constraints.bounds
        noise = plan.table.sigma * math.sqrt(_summed(plan, counts, weight)) / 2  # of four cells in a group
        broken, off = noise_of_violations(constraints, [predicted_counts(counts, own)], noise)
        told = (off <= _UNSURE) | (broken > norm.isf((1 - LEVEL) / constraints.n_inequalities) * off)
        right_sides = np.where(told, constraints.bounds, _FREE)
        in_favour = for_own_answers(counts, edges, plan.table.sigma, plan.n_counted)
        how: Any = {"by_group": by_group, "in_favour": in_favour, "right_sides": right_sides}
        found = fair_answers(constraints, counts, **how).reshape(kept.shape)
        if by_group:
            lost = ~(told[:, None] & (constraints.coefficients[:, :-1] != 0).any(axis=2)).any(axis=0)
            found[lost] = kept[lost]
        return found, right_sides

    def _warn(self, plan: BinsPlan, weight: float, beyond: float, *, leaves_some: bool) -> None:
        """Everything told here is released, or follows from it."""
        self._warn_if_no_better(plan.table.sigma)
        if plan.snr_too_low:
            warn_caller(
                f"With {plan.n_rows:,} {units_of(plan.relation)} at epsilon={self.epsilon:g} the counts of {_OWNER} "
                "are too noisy to estimate a rate: it predicts what its classifier predicts, and enforces no "
                "constraint. More of them or a larger epsilon would help.",
                FairnessWarning,
            )
            return
        if beyond > 1e-6:
            warn_caller(
                f"No predictions of {_OWNER} satisfy its constraints: the best violate one by {self.violation_:.3g}. "
                "Loosen the bounds, or use the group (group_at_prediction=True).",
                FairnessWarning,
            )
        elif leaves_some and self.violation_ > 1e-6:
            warn_caller(
                f"The counts of {_OWNER} are too noisy to show that its classifier's own answers break some of its "
                f"constraints, and there these stay: by the counts one may be violated by {self.violation_:.2g}. More "
                "rows or a larger epsilon would help.",
                FairnessWarning,
            )
        rows = np.maximum(self.counts_.sum((0, 2)), 1.0)
        unsure = plan.table.sigma * math.sqrt(_summed(plan, self.counts_, weight)) / rows
        if unsure.max() > _UNSURE:
            warn_caller(
                f"Because of its noise, {_OWNER} estimates the rates of the group "
                f"{self.groups_.tolist()[unsure.argmax()]!r} only to ±{rounded_up(min(unsure.max(), 1.0), 2)}, and its "
                "constraints hold only that closely. More rows or a larger epsilon would help.",
                FairnessWarning,
            )

    def _warn_if_no_better(self, sigma: float) -> None:
        """Compare with the larger class, by the released counts of the bins that are answered otherwise."""
        usual = int(self.smoothed_counts_.sum((0, 1)).argmax())
        apart = np.broadcast_to(np.abs(self._chances - usual), self.smoothed_counts_.shape[1::-1])
        for_second = (self.smoothed_counts_[..., 1] - self.smoothed_counts_[..., 0]).T
        ahead, noise = float((apart * for_second).sum()) * (1 - 2 * usual), sigma * float(np.sqrt(2 * (apart**2).sum()))
        if ahead <= noise:
            answer = f"the answer {self.classes_.tolist()[usual]!r}"
            what = (
                f"may be no better than {answer} for every row: by its released counts it is right on {round(ahead)} "
                f"more of the rows that were counted, and the noise has a standard deviation of {noise:.0f}"
                if apart.any()
                else f"gives {answer} for every row: by its released counts no other rule is better under its "
                "constraints"
            )
            warn_caller(
                f"{_OWNER} {what}. More rows, a larger epsilon or looser constraints would help.", UtilityWarning
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
        return tags


def _summed(plan: BinsPlan, counts: Floats, weight: float) -> float:
    """Of how many noisy numbers the rate of a group is."""
    return weight * 2 * len(counts) + (1 - weight) * 4 * plan.n_kinds


def _joined(one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(np.concatenate(pair) for pair in zip(one, other, strict=True))


class _Scores(BaseEstimator):
    """A classifier's chance of the second class, as what it "predicts" for a row; NaN where it is not finite."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict(self, X: Any) -> Floats:
        return inputs.probabilities(self.estimator, X, 2, owner=_OWNER, finite=False)[:, 1]


def scores_of(model: Any, table: Any, places: Ints | None, *, unknown: float = 0.0) -> Floats:
    """Scores in [0, 1], each a function of its own row and place; 0 for a row that the classifier has no score for."""
    found = row_wise_predictions(_Scores(inputs.thawed(model)), table, None, places=places)
    scores = np.array([np.nan if score is NO_CLASS else score for score in found], dtype=np.float64)
    # A row has the same answer wherever it stands: the last bits of single precision do not decide between two bins.
    return np.clip(np.where(np.isnan(scores), unknown, scores), 0.0, 1.0).round(5)
