"""Private rows in, any learner out: a classifier trained on synthetic rows."""

import contextlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from fairlearn import reductions
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp import _judge, _utils
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier
from skfairdp._judge import Judge, Judgement
from skfairdp._row_wise import predict_codes, row_wise_predictions
from skfairdp._tables import GeneratorBackend, GeneratorPlan
from skfairdp._teachers import as_classifiers, rehearse_learner, takes_groups
from skfairdp._typing import Array, ArrayLike, Bools, Floats, Ints, MaybeArray, SubjectLike, Values
from skfairdp._usefulness import Comparison, learned_by_heart, seen
from skfairdp._utils import silence
from skfairdp._utils._sklearn import take_rows
from skfairdp.exceptions import UtilityWarning
from skfairdp.fairness import RateConstraints, RateParity, read_rate_constraints
from skfairdp.generative._generator import PFGuardGenerator
from skfairdp.generative._inputs import GeneratorData
from skfairdp.generative._synthetic_learner import LEAST_SAMPLES, SHOWN, LearnsSyntheticRows
from skfairdp.generative._table_codec import TableCodec
from skfairdp.generative._usefulness import TableForecast
from skfairdp.lagrangian import LagrangianClassifier
from skfairdp.privacy import NoiseSource
from skfairdp.schema import schema_of, with_schema

#: Moments of fairlearn, by what they compare; and the smallest bound that it finds learners for.
_MOMENTS: dict[str, Any] = {
    "selection_rate": reductions.DemographicParity,
    "selection_rate_by_label": reductions.EqualizedOdds,
    "true_positive_rate": reductions.TruePositiveRateParity,
    "false_positive_rate": reductions.FalsePositiveRateParity,
    "error_rate": reductions.ErrorRateParity,
}
_LEAST_BOUND = 0.005
_FURTHER = ", beside what columns say together (not with backend=MarginalsBackend(structure='tree')),"


def _has_probabilities(classifier: "SyntheticDataClassifier") -> bool:
    learner = getattr(classifier, "estimator_", classifier.estimator)
    return learner is None or hasattr(learner, "predict_proba")


@shared_docs
@with_schema(kw_only=False)
class SyntheticDataClassifier(PrivateClassifier, LearnsSyntheticRows):
    """Any scikit-learn or fairlearn classifier, trained on synthetic rows that a private generator makes.

    **Guarantee.** (ε, δ)-differential privacy for one *record*: its features, label and group. All of ε goes to the
    generator (:class:`PFGuardGenerator`). The learner sees synthetic rows only, so its fit, its constraint and its
    parameters cost nothing more, and you may search over them freely. You need no public rows.

    Tables of few rows tell little of labels. There they are tables of features and groups alone, and noisy sums of the
    features of each class get .6 of the squared cost: a row is as likely to have a label as the logistic regression
    says that expects these sums. Not so with a ``balance``, ``admissible`` columns, rows in chunks or another backend.

    With few rows at a small ε the synthetic rows may say nothing. So one noisy number is part of the fit: by how many
    private rows the learner is ahead of the most frequent class. It gets 2 % of the squared cost at most; where public
    numbers leave much in doubt a quarter, or 5 % beside sums. If the learner may be behind, that class is predicted,
    and a UtilityWarning says how many rows, or which ε, would do; one that is hardly ahead is kept and told.

    Parameters
    ----------
    estimator : classifier, default=None
        Trained on numbers: see :class:`SchemaEncoder`. Its ``fit`` gets the synthetic groups where it takes
        ``sensitive_features``, as fairlearn's reductions do; its ``predict`` has to do without. None is
        ``HistGradientBoostingClassifier(max_leaf_nodes=3)``, or with constraints ``LagrangianClassifier()``.
    epsilon : float, default=1.0
        In [1e-3, 1e6].
    {delta}
    constraints : str, fairlearn moment, RateParity, RateBound, list of them or None, default=None
        What the learner is held to; see :class:`~skfairdp.lagrangian.LagrangianClassifier`. An ``estimator`` of your
        own is put into fairlearn's ``ExponentiatedGradient``: for two classes and one difference of selection rates, of
        true or of false positive rates, or both of these. One that takes groups brings its own constraints.
        A group that noise in released counts and the chance of its few rows may set apart, by two standard errors, is
        held to nothing, unless a look at private rows says that it has to be.
    gamma : float or None, default=None
        Short for ``constraints=RateParity("selection_rate", gamma)``: the largest difference between the rates of two
        groups. Give this or ``constraints``. Free to search over, as all that is the learner's.
    backend : str or GeneratorBackend, default="marginals"
        Of the generator.
    balance, admissible : default=None
        Of the generator: what it balances between groups, or which columns the label may follow. None is as in the
        private rows, for fairness is the learner's part here.
    {rows_to_learn_from}
    classes, groups : array-like, default=None
        Public domains of the label and of the group.
    {columns_not_learnt}
    {schema, random_state, noise_seed, ledger}

    Attributes
    ----------
    estimator_ : classifier
        The fitted learner. It has seen synthetic rows only.
    generator_ : PFGuardGenerator
        Draw more rows from it at no cost.
    encoder_ : SchemaEncoder
        What turns rows into the numbers that the learner gets.
    bound_factor_ : float
        How many times its own bound the learner was given. Synthetic rows may have a smaller gap than private ones;
        where a noisy table of private rows shows that, a second learner gets a smaller bound and is looked at as well,
        and ``refit`` keeps the factor. 1 where the first look found nothing, or the learner has no bound that counts
        differences.
    {judged}
        A learner is given something by its ``constraints``, as ours and the reductions of fairlearn are. After
        ``refit``, which costs nothing, and of rows in chunks, ``gap_`` is that of synthetic rows, ``gap_bound_`` is 1,
        and whether a constraint holds is in doubt at least.
    {classes_, privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    UtilityWarning
        One class is predicted for every row, or the learner is hardly better than that.
    FairnessWarning
        ``constraint_holds_`` is "no". A bound of fairlearn counts between every two groups.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import SyntheticDataClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(5000, disparity=0.3, as_frame=True, random_state=0)
    >>> learner = LogisticRegression()  # or a reduction of fairlearn around it
    >>> model = SyntheticDataClassifier(learner, epsilon=1.0, bounds=(-6.0, 6.0), classes=[0, 1], groups=[0, 1])
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> model.privacy_.epsilon <= 1.0, model.predict(X).shape
    (True, (5000,))
    """

    estimator: Any = None
    _: KW_ONLY
    constraints: Any = None
    gamma: float | None = None
    backend: str | GeneratorBackend = "marginals"
    balance: str | Mapping[Any, Any] | None = None
    admissible: Any = None
    codec: str | TableCodec = "auto"
    n_samples: int | None = None
    bounds: Mapping[Any, tuple[float, float]] | tuple[float, float] | None = None
    categories: Mapping[Any, Values] | None = None
    dtypes: Any = None
    classes: MaybeArray = None

    _kept: ClassVar[tuple[str, ...]] = (*LearnsSyntheticRows._kept, "classes_", "bound_factor_")
    _free: ClassVar[tuple[str, ...]] = (*LearnsSyntheticRows._free, "constraints", "gamma")

    classes_: Array = field(init=False)

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "SyntheticDataClassifier":
        """Learn a generator, draw rows from it, and train the learner on them.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns)
            Private. Numbers, categories, booleans, missing values.
        y : array-like of shape (n_rows,), default=None
            Private labels. None takes those of X, where a schema says which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups, for a learner that takes them.
        {subject}

        {returns_self}
        """
        self._validate_params()
        schema_of(self)
        if y is None and self.schema is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        generator = self._generator()
        learner = self._learner(data.layout.n_classes)
        plan, rng = self._plan(data), _utils.public_generator(generator.random_state)
        self._rehearse(*learner, data, looks_further=getattr(plan.backend, "joint_share", 0) > 0)
        self._forecast = generator._forecast_of(data, plan.backend)
        self._is_behind = self._forecast.snr_too_low
        with generator._spend(plan, data.reads, holder=self) as noise:
            generator._learn(data, generator._release(data, plan, noise, rng), rng)
            problem = self._taught(generator, data, *learner)
            self.bound_factor_ = 1.0
            judgement = self._looked_at(plan, X, data, noise, has_learned=problem is None)
            if judgement is not None and plan.judge is not None and not self._is_behind and problem is None:
                judgement = self._second_try(judgement, plan.judge, X, data, noise)
        # Released values only from here on.
        self._settled(generator, problem)
        generator._tell(data.balance)
        return self._fall_back(judgement)

    def _looked_at(
        self, plan: GeneratorPlan, X: Any, data: GeneratorData, noise: NoiseSource, *, has_learned: bool
    ) -> Judgement | None:
        """Release by how much the learner is ahead, and what the answers of the one that stays do to the groups."""
        if plan.gain is None and plan.judge is None:
            return None
        rows, cells, places = data.looked_at(self._forecast.n_looked_at)
        answers = self._asked(X, rows, places) if has_learned else np.full(len(cells), -1)
        groups, labels = np.divmod(cells, data.layout.n_classes)
        if plan.gain is not None:
            ahead = self._rows_ahead(answers, labels) if has_learned else 0
            gain = float(plan.gain.release([float(ahead)], noise)[0])
            beside = self._beside = self._forecast.compared(self.generator_.observed_rates_.sum(axis=0), gain)
            # Where labels follow sums noise alone says nothing of them: a learner is as likely ahead as it seems.
            self._is_behind = not beside.may_stay if self._forecast.sums is None else beside.ahead <= 0
        if plan.judge is None:
            return None
        given = np.full_like(answers, self._usual) if self._is_behind else answers
        return plan.judge.release(plan.judge.counts(groups, labels, given), noise)

    def _second_try(self, first: Judgement, judge: Judge, X: Any, data: GeneratorData, noise: NoiseSource) -> Judgement:
        """Where private rows have a larger gap than synthetic ones, train with a smaller bound, and look once more. The
        learner that is kept breaks its constraints by less."""
        if judge.looks == 1 or first.tightening == 1:
            return first
        kept = dict(self.__dict__)
        try:
            self._learn(*self._learner(data.layout.n_classes, first.tightening), asks_all=first.holds == "no")
        except Exception:  # what was bought is kept: the first learner, of which the first look speaks
            self.__dict__.update(kept)
            return first
        self.bound_factor_ = first.tightening
        rows, cells, places = data.looked_at(self._forecast.n_looked_at)
        counts = judge.counts(*np.divmod(cells, data.layout.n_classes), self._asked(X, rows, places))
        if (second := judge.release(counts, noise)).violation >= first.violation:
            self.__dict__.update(kept)
            return first
        return second

    def _learn(self, learner: Any, with_groups: bool, *, asks_all: bool = False) -> "SyntheticDataClassifier":
        """Train a learner on rows drawn from the generator."""
        features, labels, groups = self._drawn(with_groups)
        codes = np.searchsorted(self.classes_, labels)  # fairlearn's reductions read 0 and 1 only
        # A class of one row teaches nothing, and a learner that sets rows aside for itself may ask for two of each.
        taught = np.bincount(codes)[codes] > 1
        features, codes, groups = features[taught], codes[taught], [values[taught] for values in groups]
        released, every = self.generator_.observed_rates_.sum(axis=0), np.arange(len(self.classes_))
        constant = DummyClassifier(strategy="prior").fit(every[:, None], every, sample_weight=released)
        self.estimator_, self._constant, self._beside, self._left = constant, constant, None, None
        held, own = self._held_groups(groups[0], len(codes)) if with_groups else (None, codes)
        if not self._is_behind and len(np.unique(codes)) > 1:  # else few private rows of the other classes, much noise
            if held is not None and not asks_all:
                groups = [take_rows(groups[0], self._places_of_groups(held, features, codes, own))]
            given = {"sensitive_features": groups[0]} if with_groups else {}
            with silence() if self.estimator is None else contextlib.nullcontext():  # of its own there is no advice
                self.estimator_ = as_classifiers(learner, self.random_state).fit(features, codes, **given)
        if held is not None:  # what the answers of a learner that was given a bound do to the rows that it was told of
            self._left = Judgement.by_rows(held, own, codes, predict_codes(self.estimator_, features))
        return self

    def _held_groups(self, groups: Any, n_rows: int) -> tuple[RateConstraints | None, Ints]:
        """What a learner of these groups is held to, if anything, and the codes of groups there."""
        values = _utils.as_groups(groups, n_rows, owner=type(self).__name__)
        codes, names = _utils.encode_within(values, None, owner=type(self).__name__, parameter="sensitive_columns")
        return self._held(self.estimator, names.tolist(), self.classes_), codes

    def _places_of_groups(self, held: RateConstraints, features: Floats, codes: Ints, own: Ints) -> Ints:
        """For each sampled row the place of one in whose group the learner is to see it.

        As many private rows as a group has, and the noise in counts, may set it apart by chance: a learner that is held
        to a bound would make up for that at any price. So rows of groups that nothing else sets apart go to the others,
        and where that is true of all groups, every row to any."""
        places, known = np.arange(len(own)), np.asarray(self.generator_.groups_).tolist()
        sizes = self._forecast.n_rows * self.generator_.observed_rates_[[known.index(one) for one in held.groups]]

        def asked(said: Any) -> Bools:
            shares = said + said.sum(axis=0) / len(own) + 1e-9  # also of a label that noise leaves a group without
            found = np.maximum(sizes, 1.0)[..., None] * shares / shares.sum(axis=2, keepdims=True)
            return held.beyond_chance(found, (self.generator_._noisy_counts or (0.0, 0.0))[1])

        if asked(np.ones((*sizes.shape, sizes.shape[1]))).all():  # whatever a learner says
            return places
        free = LagrangianClassifier(constraints=None, random_state=0).fit(features, codes)
        stays, rng = asked(held.tally(own, codes, predict_codes(free, features)))[own], np.random.default_rng(0)
        others = places[stays] if stays.any() else np.unique(own, return_index=True)[1]
        return np.where(stays, places, rng.choice(others, len(own)))

    def _asked(self, X: Any, rows: Ints | None, places: Ints) -> Ints:
        """Private: the learner's answers to rows, each judged by itself, -1 where there is none."""
        with silence():
            features = self._encoded(X, rows)  # cell by cell
        predicted = row_wise_predictions(self.estimator_, features, None, places=places)
        codes = np.full(len(predicted), -1)
        for code in range(len(self.classes_)):
            codes[np.array([answer == code for answer in predicted], dtype=bool)] = code
        return codes

    def _rows_ahead(self, answers: Ints, codes: Ints) -> int:
        """Private: by how many rows the learner is ahead of the most frequent class."""
        return int(np.count_nonzero(answers == codes)) - int(np.count_nonzero(codes == self._usual))

    @property
    def _usual(self) -> int:
        """The most frequent class, by released counts."""
        return int(self.generator_.observed_rates_.sum(axis=0).argmax())

    def _fall_back(self, judgement: Judgement | None = None) -> "SyntheticDataClassifier":
        """Answer the most frequent class where the learner is not ahead of it, and say so wherever one class is all."""
        if self._is_behind:
            self.estimator_ = self._constant
        self._note_paid(self.estimator_)
        answered = np.unique(predict_codes(self.estimator_, self._shown))
        owner, beside, has_choice = type(self).__name__, self._beside, len(self.classes_) > 1
        if len(answered) == 1 and has_choice:
            said = self._forecast.words(self.classes_[answered[0]], owner)
            if self.n_samples is not None and self.n_samples < LEAST_SAMPLES:
                said += f" Its learner was trained on 'n_samples'={self.n_samples} rows: more of them cost nothing."
            _utils.warn_caller(said, UtilityWarning)
        elif has_choice and not (beside := beside or self._on_samples()).is_better:
            beside.warn(self.classes_[beside.usual], owner, falls_back=False, advice=self._forecast.advice)
        self._tell_judgement(judgement, is_told=self._is_behind or len(answered) == 1)
        del self._constant, self._shown, self._left, self._beside
        return self

    def _tell_judgement(self, judgement: Judgement | None, *, is_told: bool) -> None:
        """What the answers do to the groups; of private rows that nobody looked at synthetic ones say something."""
        found, rows = judgement or self._left, "private" if judgement else "synthetic"
        found = found.of_one_class() if found and self._is_behind else found
        _judge.set_judgement(self, self._left and found, in_doubt=judgement is None)
        if self._left is not None and found is not None and not is_told:
            found.warn(
                type(self).__name__,
                f"{rows} rows",
                "Gaps on synthetic rows can differ from those on private rows, and fairlearn's bound compares each "
                "group with all rows. Set a smaller bound with refit, which costs no epsilon, or use "
                "FairDPSGDClassifier, whose bound is checked on private rows.",
                in_doubt=judgement is None,
            )

    def _on_samples(self) -> Comparison:
        """The learner beside the most frequent class on other rows of the generator, which noise may have shaped."""
        drawn = _utils.child_seeds(_utils.public_generator(self.random_state), 1)[0]
        rows, labels = self.generator_.sample_labels(SHOWN, random_state=drawn)
        predicted = predict_codes(self.estimator_, self._as_numbers(self._features(rows)))
        found = seen(predicted, np.searchsorted(self.classes_, np.asarray(labels).reshape(-1)))
        rates = self.generator_.observed_rates_.sum(axis=0)
        by_noise = learned_by_heart(rates / rates.sum(), self._forecast.noise)
        return replace(found, ahead=found.ahead - by_noise, where="of synthetic rows")

    def predict(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Predict the class of each row, without its group.

        {predicts_labels}
        """
        check_is_fitted(self, "estimator_")
        return _utils.decode_labels(self, predict_codes(self.estimator_, self._encoded(X)))

    _settles_coins = True

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike | pd.DataFrame) -> Floats:
        """Class probabilities of the learner; only where it has them.

        {predicts_proba}
        """
        check_is_fitted(self, "estimator_")
        encoded = self._encoded(X)
        proba = np.zeros((len(encoded), len(self.classes_)))
        proba[:, np.asarray(self.estimator_.classes_, dtype=np.int64)] = self.estimator_.predict_proba(encoded)
        return proba

    _releases_labels = True  # of those rows

    # ------------------------------------------------------------------ pieces

    _beside = None  # type: Comparison | None

    def _rehearse(self, learner: Any, with_groups: bool, data: GeneratorData, *, looks_further: bool) -> None:
        """Try the learner on made-up rows that come by the way of the sampled ones, before anything is spent: with and
        without what an interaction says, as noise has a part in whether there is one."""
        if self.estimator is not None and data.layout.n_classes > 1:
            for n_further in sorted({0, (data.layout.n_classes - 1) * looks_further}):
                made_up, owner = partial(self._made_up, data, with_groups, n_further), type(self).__name__
                rehearse_learner(learner, made_up, parameter="estimator", owner=owner + _FURTHER * (n_further > 0))

    def _plan(self, data: Any) -> GeneratorPlan:
        plan, (learner, with_groups) = self._generator()._plan(data), self._learner(data.layout.n_classes)
        names = np.asarray(data.form.groups).tolist() if with_groups and len(data.cells) else None
        held = None if names is None else self._held(learner, names, data.form.classes)
        if held is None:
            return plan
        held.with_groups_to_compare()
        if plan.pure_counts:
            return plan
        n_rows = TableForecast.of(data.layout, self.epsilon, self.delta).n_looked_at
        looks = 1 if _judge.tightened(learner, 1.0) is None else 2
        how = {"looks": looks, "n_features": data.layout.n_columns}
        return replace(plan, judge=Judge(held, n_rows, self.epsilon, self.delta, plan.relation, **how))

    def _another_learner(self) -> tuple[Any, bool]:
        return self._learner(len(self.classes_), self.bound_factor_)

    def _adopt(self, generator: PFGuardGenerator, data: GeneratorData) -> None:
        assert generator.classes_ is not None
        self.classes_ = generator.classes_
        super()._adopt(generator, data)

    def _learner(self, n_classes: int, bound_factor: float = 1.0) -> tuple[Any, bool]:
        """An unfitted learner, and whether its fit takes groups. What it cannot do is said before anything is spent."""
        seed = int(_utils.public_generator(self.random_state).integers(2**31 - 1))
        asked = _judge.asked_constraints(self)
        if self.estimator is not None:
            learner = clone(self.estimator)
        elif asked is None:
            # Noisy tables say how one or two columns go with the label: what deeper trees see in their rows is noise.
            learner = HistGradientBoostingClassifier(max_leaf_nodes=3, random_state=seed)
        else:
            learner = LagrangianClassifier(constraints=asked, random_state=seed)
        if asked is not None and self.estimator is not None:
            learner = _reduction(learner, asked, "constraints" if self.gamma is None else "gamma")
        if bound_factor < 1:
            learner = _judge.tightened(learner, bound_factor) or learner
        constraints = getattr(learner, "constraints", None)
        if n_classes > 2 and isinstance(constraints, reductions.ClassificationMoment):
            what, way = "The 'estimator'", "take a learner of many classes, as LagrangianClassifier is"
            if asked is not None:
                what = f"An 'estimator' beside {'constraints' if self.gamma is None else 'gamma'!r}"
                way = "leave 'estimator' None, or take a learner of many classes that has its own constraints"
            raise ValueError(
                f"{what} of {type(self).__name__} is a reduction of fairlearn, which learns two classes. There are "
                f"{n_classes}: {way}."
            )
        return self._with_groups(learner)

    def _held(self, learner: Any, groups: Values, classes: Array) -> RateConstraints | None:
        """What answers are judged by: constraints that were asked for, or those that a learner says."""
        owner, asked = type(self).__name__, _judge.asked_constraints(self)
        if asked is None:
            return _judge.held_by_learner(learner, groups, classes.tolist(), owner)
        return _judge.held_by_network(asked, groups, classes.tolist(), owner)


def _reduction(learner: Any, asked: Any, name: str) -> Any:
    """Fairlearn's reduction of a learner. A bound between two groups is twice as wide as one of each to all rows."""
    owner = "SyntheticDataClassifier"
    if takes_groups(learner):
        raise ValueError(
            f"{owner} got both {name!r} and an 'estimator' that takes groups, which has its own constraints. Leave one "
            "of the two out."
        )
    if isinstance(asked, reductions.ClassificationMoment):
        return reductions.ExponentiatedGradient(learner, asked, max_iter=25)
    one, *others = read_rate_constraints(asked, owner)
    if others or not isinstance(one, RateParity) or one.ratio_bound is not None or one.rate not in _MOMENTS:
        raise ValueError(
            f"{owner} with an 'estimator' takes one constraint, a difference of one of these rates: {[*_MOMENTS]}. "
            "Leave 'estimator' None, which takes any constraint, or give a learner whose fit takes groups."
        )
    bound = _LEAST_BOUND if one.difference_bound is None else one.difference_bound
    bound /= 2 if one.method == "between_groups" else 1
    constraint = _MOMENTS[one.rate](difference_bound=max(bound, _LEAST_BOUND))
    return reductions.ExponentiatedGradient(learner, constraint, max_iter=25)
