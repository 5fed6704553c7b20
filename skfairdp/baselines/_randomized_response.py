"""Randomised response: released groups for anything that needs groups, and model M, a fair learner from them."""

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp import _inputs, privacy
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier, SpendsPrivacy
from skfairdp._row_wise import all_probabilities, predict_codes
from skfairdp._rows import Chunk, RowSource, check_order, even_tables, opened, other_rows
from skfairdp._teachers import as_classifiers, check_fair_learner, rehearse_student
from skfairdp._typing import Array, ArrayLike, Floats, Ints, MaybeArray, Objects, SubjectLike, Values
from skfairdp._usefulness import Comparison, may_fall_back, seen, tried
from skfairdp._utils import as_groups, decode_labels, encode_labels, silence, warn_caller
from skfairdp._utils._sklearn import A_LEARNER, Interval, answers_as_fitted
from skfairdp.baselines._parity_logistic import ParityLogisticRegression
from skfairdp.exceptions import FairnessWarning
from skfairdp.lagrangian import in_codes
from skfairdp.privacy import RandomizedResponse
from skfairdp.schema import RawTable, Schema, schema_of, with_schema


@dataclass(frozen=True)
class RandomizedGroups:
    """The plan of a release of every row's group, or every subject's; its δ is 0."""

    mechanism: RandomizedResponse
    domain: Objects
    n_rows: int
    relation: privacy.NeighboringRelation
    rows_of: str = ""

    @classmethod
    def of(
        cls, spender: Any, domain: Objects, n_rows: int, relation: privacy.NeighboringRelation, rows_of: str = ""
    ) -> "RandomizedGroups":
        """For these groups, of which there must be two, with the whole epsilon of who spends it."""
        if len(domain) < 2:
            raise ValueError(
                f"The 'groups' parameter of {type(spender).__name__} must list at least two groups: a single one "
                "cannot be randomised."
            )
        mechanism = RandomizedResponse(spender.epsilon, len(domain), relation=relation)
        return cls(mechanism, domain, n_rows, relation, rows_of)

    @property
    def event(self) -> privacy.DpEvent:
        return self.mechanism.event

    @property
    def releases(self) -> tuple[str, ...]:
        return (f"{self.n_rows} randomised groups",)


@shared_docs
@with_schema
class GroupRandomizer(SpendsPrivacy):
    """Release groups by randomised response; what is computed from them costs nothing more.

    **Guarantee.** (ε, 0)-differential privacy for the *sensitive attribute* of one row, everything else about the rows
    being public. (k-ary randomised response: each row's answer is its group with probability e^ε / (e^ε + k - 1), and
    each other group with probability 1 / (e^ε + k - 1).) Each call of ``release`` is a release of its own and is
    charged as one.

    Parameters
    ----------
    epsilon : float, default=1.0
        In [1e-9, 1e9].
    {groups, schema, noise_seed}
    ledger : PrivacyLedger, default=None
        Charged before each release.

    Attributes
    ----------
    {groups_}
    mechanism_ : RandomizedResponse
        The channel: its probabilities and its event.
    privacy_ : PrivacySpent
        The guarantee of the last release, at δ = 0.

    Raises
    ------
    BudgetExceededError
        From ``release``, before anything is released, when the ledger cannot afford it.

    Examples
    --------
    >>> from skfairdp.baselines import GroupRandomizer
    >>> randomizer = GroupRandomizer(epsilon=1.0, groups=["a", "b"])
    >>> released = randomizer.release(["a", "b", "b"])
    >>> released.shape, randomizer.weights(released).shape, str(randomizer.privacy_.protects)
    ((3,), (3, 2), 'sensitive attribute')
    """

    epsilon: float = 1.0
    groups: Values | None = None
    schema: Schema | None = None
    noise_seed: int | None = None
    ledger: privacy.PrivacyLedger | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {"epsilon": [Interval(Real, 1e-9, 1e9, closed="both")]}

    delta = 0.0

    def release(self, sensitive_features: ArrayLike | pd.Series | pd.DataFrame) -> Objects | pd.Series:
        """Return a randomised group per row.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame
            Private groups; several columns form intersections.

        Returns
        -------
        ndarray of shape (n_rows,), dtype object, or Series
            A Series, with the index of the input, where that was a Series or DataFrame.
        """
        self._validate_params()
        _inputs.refuse_chunks(type(self).__name__, sensitive_features=sensitive_features)
        _inputs.subject_given(self, None)
        index = sensitive_features.index if isinstance(sensitive_features, pd.Series | pd.DataFrame) else None
        n_rows = len(sensitive_features) if isinstance(sensitive_features, Sized) else 0
        reads = privacy.PublicReads()
        codes, domain = _inputs.read_private_groups(self, None, sensitive_features, n_rows, reads)
        reads.note_number_of_rows(n_rows)
        plan = RandomizedGroups.of(self, domain, n_rows, privacy.NeighboringRelation.REPLACE_ATTRIBUTE)

        with self._spend(plan, reads) as noise:
            answers = plan.mechanism.release(codes, noise)

        released = domain[answers]
        self.groups_, self.mechanism_ = domain, plan.mechanism
        if index is None:
            return released
        return pd.Series(list(released), index=index, name=getattr(sensitive_features, "name", None), dtype=object)

    def release_chunks(self, X: Any) -> Iterator[pd.DataFrame]:
        """Hand out the rows of a table that does not fit into memory, with randomised groups in place of their own.

        All groups are read, one or two bytes each, before anything is spent, and released at once, as by
        :meth:`release`. A second pass hands out the rows.

        Parameters
        ----------
        X : object
            A path of Parquet files, a ``pyarrow.dataset.Dataset``, a Polars LazyFrame, a dask DataFrame, or a function
            without arguments that returns an iterable of DataFrames, which have the columns that the ``schema`` names
            as groups. It must give the same rows in the same order each time.

        Returns
        -------
        iterator of DataFrame
            Of 131,072 rows, wherever chunks of X end: that may follow the length of a group's name. They have released
            groups. **All other columns are handed out as they are**, for they are public.

        Raises
        ------
        ValueError
            There is no schema; X lies in memory, or its rows have no order.

        Examples
        --------
        >>> import pandas as pd
        >>> from skfairdp.baselines import GroupRandomizer
        >>> from skfairdp.schema import Category, Number, Schema
        >>> schema = Schema({"age": Number(0, 99), "sex": Category(["f", "m"])}, groups="sex")
        >>> table = pd.DataFrame({"age": [20, 30, 40], "sex": ["f", "m", "m"]})
        >>> randomizer = GroupRandomizer(epsilon=1.0, schema=schema)
        >>> [chunk.shape for chunk in randomizer.release_chunks(lambda: [table[:2], table[2:]])]
        [(3, 2)]
        """
        self._validate_params()
        owner = type(self).__name__
        _inputs.subject_given(self, None)
        schema, source = schema_of(self), opened(X)
        if schema is None or source is None or not source.knows_order:
            raise ValueError(
                f"release_chunks of {owner} needs a 'schema' and an X that is read in chunks, in the same order each "
                "time: Spark's rows have none. Of a table in memory pass the groups to 'release'."
            )
        check_order(source, owner)
        if not source.n_rows:
            raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required: X of {owner}.")
        n_rows, reads = source.n_rows, privacy.PublicReads()
        domain = RawTable(schema, owner, None, {}, n_rows).domain
        reads.note("names of the groups", "given", domain, by=schema)
        reads.note_number_of_rows(n_rows)
        codes = np.concatenate(list(source.each(partial(_codes, schema, owner, len(domain)))))
        if len(codes) != n_rows:
            raise other_rows(owner)
        plan = RandomizedGroups.of(self, domain, n_rows, privacy.NeighboringRelation.REPLACE_ATTRIBUTE)

        with self._spend(plan, reads) as noise:
            answers = plan.mechanism.release(codes, noise).astype(codes.dtype)

        self.groups_, self.mechanism_ = domain, plan.mechanism
        return _with_groups(source, schema, domain, answers, owner)

    def weights(self, released: ArrayLike | pd.Series) -> Floats:
        """Return the unbiased reading of released groups: a signed weight for each row and group.

        Parameters
        ----------
        released : array-like of shape (n_rows,) or Series
            As returned by :meth:`release`.

        Returns
        -------
        ndarray of shape (n_rows, n_groups)
            Columns in the order of ``groups_``; each row sums to 1.
        """
        if not hasattr(self, "mechanism_"):
            raise NotFittedError("This GroupRandomizer has released nothing yet. Call 'release' first.")
        labels = as_groups(released, len(np.asarray(released, dtype=object)), owner="GroupRandomizer", name="released")
        codes = encode_labels(labels, self.groups_, owner="GroupRandomizer", name="released", parameter="groups")
        return self.mechanism_.weights(codes)


def _codes(schema: Schema, owner: str, n_groups: int, chunk: Chunk) -> Array:
    """The groups of a chunk, in the smallest type."""
    return RawTable.roles(schema, chunk.table, owner=owner).groups().astype(np.min_scalar_type(n_groups - 1))


def _with_groups(source: RowSource, schema: Schema, domain: Objects, answers: Array, owner: str) -> Iterator[Any]:
    """The chunks of a source, with released groups in place of their own."""
    start = 0
    for table in even_tables(source):
        names = domain[answers[start : start + len(table)]].tolist()
        start += len(table)
        if len(names) < len(table):
            raise other_rows(owner)
        cells = zip(*names, strict=True) if len(schema.groups) > 1 else [names]
        columns = [pd.Series(list(own), index=table.index, dtype=object) for own in cells]
        yield table.assign(**dict(zip(schema.groups, columns, strict=True)))
    if start < len(answers):
        raise other_rows(owner)


def _has_probabilities(classifier: "RandomizedResponseClassifier") -> bool:
    learner = getattr(classifier, "fair_estimator_", classifier.fair_estimator)
    return learner is None or hasattr(learner, "predict_proba")


@shared_docs
@with_schema
class RandomizedResponseClassifier(PrivateClassifier):
    """Fair classifier trained on groups released by randomised response.

    **Guarantee.** (ε, 0)-differential privacy for the *sensitive attribute* of one row: features and labels, the number
    of rows, the list of groups and all constructor parameters count as public. The randomised groups are released once,
    and ``privacy_`` speaks of that release; everything after it is post-processing, whatever the learner does. The
    guarantee is void if any feature reveals the group: remove such columns, with ``sensitive_columns`` or otherwise.

    The baseline "M" that SF-PATE is compared with (Tran et al. 2022, Section 7; Mozannar, Ohannessian & Srebro 2020).
    Used as if they were true, randomised groups dilute every difference between groups. ``debias=True`` gives the
    learner signed weights instead, the inverse of the channel, with which sums over groups are right on average.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget at δ = 0; in [1e-9, 1e9].
    fair_estimator : estimator, default=None
        Any classifier with ``fit(X, y, sensitive_features=...)`` whose ``predict`` needs no groups, such as fairlearn's
        ``ExponentiatedGradient``; it is cloned. It gets X as floats (float32 for a skorch net), y as codes 0..K-1 of
        the classes, and the released groups. None is :class:`ParityLogisticRegression`.
    debias : bool, default=True
        Give signed weights as ``group_weights=`` (n_rows, n_groups) to a learner whose ``fit`` has that parameter. A
        learner without it gets the released groups alone, and a FairnessWarning says so. False is the paper's baseline.
    {public_classes, groups, sensitive_columns, schema}
    random_state : int, RandomState, Generator or None, default=None
        Public randomness: the predictions of a learner that randomises them. Never the released groups.
    {noise_seed, ledger}

    Attributes
    ----------
    fair_estimator_ : estimator
        The fitted learner (a constant one where y has a single class).
    released_groups_ : ndarray of shape (n_rows,), dtype object
        The randomised groups. They are the release, hence differentially private, and may be published.
    mechanism_ : RandomizedResponse
        The channel; ``mechanism_.weights(codes)`` gives the signed weights.
    {classes_, groups_, privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    UtilityWarning
        By its labels, which are public, it is no better than the most frequent class: on its rows or, of the built-in
        learner and at most 10,000 rows, on thirds of them that are kept from learners like it. The built-in learner
        then gives way to that class.

    Examples
    --------
    >>> from skfairdp.baselines import RandomizedResponseClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(5000, disparity=0.3, random_state=0)
    >>> model = RandomizedResponseClassifier(epsilon=1.0, groups=[0, 1]).fit(X, y, sensitive_features=groups)
    >>> print(model.privacy_)
    epsilon=1 at delta=0, protecting one sensitive attribute (replace one sensitive attribute); certified by the exact
    ratio of probabilities
    """

    fair_estimator: Any = None
    debias: bool = True
    classes: MaybeArray = None

    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED, "subject": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "fair_estimator": [A_LEARNER, None],
        "epsilon": [Interval(Real, 1e-9, 1e9, closed="both")],
        "debias": ["boolean"],
    }

    delta: ClassVar[float] = 0.0  # type: ignore[misc]  # no parameter here: answers have a pure ε

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "RandomizedResponseClassifier":
        """Release the groups and fit the learner on them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Public features.
        y : array-like of shape (n_rows,)
            Public labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups. Needed unless ``sensitive_columns`` names them.
        {subject_of_a_group}

        {returns_self}
        """
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        learner, takes_weights = self._learner(data)
        plan = self._plan(data)
        if self.fair_estimator is not None:
            rehearse_student(
                learner, data.X, len(data.classes), plan.domain, parameter="fair_estimator", owner=type(self).__name__,
                with_weights=takes_weights,
            )  # fmt: skip

        with self._spend(plan, data.reads) as noise:
            answers = data.of_each_row(plan.mechanism.release(data.groups_of_units, noise))

        self.classes_, self.groups_, self.released_groups_ = data.classes, plan.domain, plan.domain[answers]
        self.mechanism_ = plan.mechanism
        released: dict[str, Any] = {"sensitive_features": plan.domain[answers]}
        if takes_weights:
            unbiased = plan.mechanism.weights(answers)
            released["group_weights"] = unbiased if self.debias else np.eye(len(plan.domain))[answers]
        trial = self._tried(data, released)
        falls_back = trial is not None and not trial.is_passed
        if falls_back or len(np.unique(data.y)) < 2:
            learner, released = DummyClassifier(), {}
        try:
            self.fair_estimator_ = privacy.carrying(learner.fit(data.X, data.y, **released), self.privacy_)
        except Exception as error:
            error.add_note(
                "The randomised groups are released: fitting another learner on X, y and 'released_groups_' of this "
                f"{type(self).__name__} costs no more epsilon."
            )
            raise
        on_its_rows = seen(predict_codes(self.fair_estimator_, data.X), data.y, data.X.shape[1])
        if trial is not None and not falls_back and not on_its_rows.is_passed:
            trial, falls_back = on_its_rows, True
            self.fair_estimator_ = privacy.carrying(DummyClassifier().fit(data.X, data.y), self.privacy_)
        trial = trial if trial is not None and on_its_rows.is_better else on_its_rows
        if not trial.is_better and len(data.classes) > 1:
            trial.warn(data.classes[trial.usual], type(self).__name__, falls_back=falls_back)
        return self

    def _tried(self, data: _inputs.TrainingData, released: dict[str, Any]) -> Comparison | None:
        """Whether the usual learner, taught by part of the rows, beats one class alone on the others."""
        if self.fair_estimator is not None or not may_fall_back(data.y):
            return None

        def answers(learned: Ints, asked: Ints) -> Ints:
            if len(np.unique(data.y[learned])) < 2:
                return np.full(len(asked), data.y[learned[0]])
            given = {name: values[learned] for name, values in released.items()}
            with silence():  # of groups that are small in a part
                learner = ParityLogisticRegression().fit(data.X[learned], data.y[learned], **given)
            return np.asarray(learner.predict(data.X[asked]), dtype=np.int64)

        return tried(data.y, answers, 0)

    def _read(self, X: Any, y: Any, *, sensitive_features: Any = None, subject: Any = None) -> _inputs.TrainingData:
        self._validate_params()
        return _inputs.read_training(
            self, X, y, sensitive_features=sensitive_features, subject=subject, groups="private",
            protects=privacy.Protects.SENSITIVE_ATTRIBUTE,
        )  # fmt: skip

    def _plan(self, data: _inputs.TrainingData) -> RandomizedGroups:
        return RandomizedGroups.of(self, data.domain, data.n_units, data.attribute_relation, data.rows_of)

    @answers_as_fitted
    def predict(self, X: ArrayLike) -> Array:
        """Predict the class of each row; the group is not needed.

        {predicts_labels}
        """
        check_is_fitted(self, "fair_estimator_")
        return decode_labels(self, predict_codes(self.fair_estimator_, _inputs.read_features(self, X)))

    _settles_coins = True

    @available_if(_has_probabilities)
    @answers_as_fitted
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities of the learner; only where it has them.

        {predicts_proba}
        """
        check_is_fitted(self, "fair_estimator_")
        return all_probabilities(self.fair_estimator_, _inputs.read_features(self, X), len(self.classes_))

    def _learner(self, data: _inputs.TrainingData) -> tuple[Any, bool]:
        """A clone of the learner, and whether it takes weights. What it cannot do is said before anything is spent."""
        owner = type(self).__name__
        learner = ParityLogisticRegression() if self.fair_estimator is None else clone(self.fair_estimator)
        learner = in_codes(learner, data.domain.tolist(), data.classes.tolist(), owner)
        takes_weights = check_fair_learner(learner, owner)
        if self.debias and not takes_weights:
            warn_caller(
                f"{type(learner).__name__}.fit has no 'group_weights', so {owner} gives it the randomised groups as "
                "they are, which dilutes the differences between groups. Set debias=False if this is intended.",
                FairnessWarning,
            )
        return as_classifiers(learner, self.random_state), takes_weights
