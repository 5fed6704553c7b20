"""What classifiers and regressors on synthetic rows share: one generator that is paid for, and learners for nothing."""

import inspect
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from skfairdp._inputs import without_subject
from skfairdp._row_wise import known_row_wise
from skfairdp._tables import MarginalsBackend
from skfairdp._teachers import check_fair_learner, made_up_cells, takes_groups
from skfairdp._typing import Array, Floats
from skfairdp._utils import PublicData, copy_label_encoding, public_generator, split_sensitive_columns, warn_caller
from skfairdp._utils._sklearn import A_LEARNER, Interval, answers_as_fitted, take_rows
from skfairdp.exceptions import UtilityWarning
from skfairdp.generative._generator import UNCHANGED, PFGuardGenerator
from skfairdp.generative._inputs import GeneratorData, ReadsCells, raw_features, read_container
from skfairdp.generative._usefulness import TableForecast
from skfairdp.privacy import carrying, composed, held_by
from skfairdp.schema import Number, RawTable, Schema, SchemaEncoder

#: Fewer synthetic rows than the first add noise of their own; more than the second only take time and memory.
LEAST_SAMPLES, MOST_SAMPLES = 20_000, 100_000

#: Synthetic rows on which a learner is asked how it does.
SHOWN = 2000

#: Rows for those who need some that are released: others learn from them, or correct what was learned.
_RELEASED = 10_000

#: Of a number, the width of its bounds over that of sampled rows from which on learners read it in bounds of these: a
#: linear one takes what lies in a hundredth of the bounds for a constant.
_WIDE = 10.0


class LearnsSyntheticRows(ReadsCells):
    """Has a learner, and the parameters of the generator whose rows it is trained on. A subclass says which learner, by
    ``_another_learner``, trains it, by ``_learn``, and tells by ``_fall_back`` how it did."""

    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED, "subject": True}

    #: For the generator, which reads rows by this estimator.
    _for_learner = True
    _reads_amounts = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PFGuardGenerator._parameter_constraints,
        "estimator": [A_LEARNER, None],
        "n_samples": [Interval(Integral, 1, None, closed="left"), None],
    }

    #: Of the generator, where its rows are drawn as the private ones are.
    balance: Any = None
    admissible: Any = None
    classes: Any = None

    #: What a refit keeps.
    _kept: ClassVar[tuple[str, ...]] = (
        "privacy_", "generator_", "n_features_in_", "feature_names_in_", "_n_default", "_forecast", "_is_behind",
        "_subject_column",
    )  # fmt: skip

    #: Parameters that only say which rows are drawn, and who learns from them.
    _free: ClassVar[tuple[str, ...]] = ("estimator", "n_samples")

    estimator: Any
    backend: Any
    n_samples: int | None
    _forecast: TableForecast
    _is_behind: bool
    _has_mean: bool
    generator_: PFGuardGenerator
    encoder_: SchemaEncoder

    @np.errstate(all="warn", under="ignore")
    def refit(self, estimator: Any = UNCHANGED, **changes: Any) -> Self:
        """Train another learner on rows of the same generator. It releases nothing, so it costs nothing.

        A private learner that is fitted already has a cost of its own, which ``privacy_`` then holds as well.

        Parameters
        ----------
        estimator : object
            As of the constructor. Left out: the one there is.
        **changes
            Other values of ``n_samples``, of ``balance`` and ``admissible`` where there are such parameters and the
            generator's backend is noisy tables, and of the learner's parameters, as ``estimator__C=0.1``.

        Returns
        -------
        object
            A fitted estimator of this class, with the same generator.

        Raises
        ------
        ValueError
            Another parameter: the generator was made with it, so that a new one would have to be paid for.
        """
        check_is_fitted(self, "generator_")
        paid = [name for name in changes if name.partition("__")[0] not in self._free_parameters]
        if paid:
            raise ValueError(
                f"refit of {type(self).__name__} changes {', '.join(map(repr, sorted(self._free_parameters)))} and "
                f"the learner's parameters, at no cost. Got {paid[0]!r}, which needs another generator: set it and "
                "call fit."
            )
        other = clone(self)
        if estimator is not UNCHANGED:
            other.set_params(estimator=estimator)
        other.set_params(**changes)._validate_params()
        vars(other).update({name: vars(self)[name] for name in self._kept if name in vars(self)})
        other.privacy_ = composed(self.privacy_, *held_by(other))
        if estimator is not UNCHANGED or any(name.startswith("estimator__") for name in changes):
            other._is_behind = self._forecast.snr_too_low  # the look was at another learner
            if self._is_behind and not other._is_behind and self._reads_amounts:
                warn_caller(
                    f"The learner of {type(self).__name__} before this one was not better than a constant. This "
                    "one was not compared, because that would cost privacy budget. Measure it on public rows.",
                    UtilityWarning,
                )
        drawn_by = {name: changes[name] for name in ("balance", "admissible") if name in changes}
        other.generator_ = self.generator_.refit(**drawn_by) if drawn_by else self.generator_
        return other._learn(*other._another_learner())._fall_back()

    @property
    def _free_parameters(self) -> frozenset[str]:
        """A search pays once for all values of these."""
        of_rows = {"balance", "admissible"} & self.get_params(deep=False).keys()
        tables = self.backend == "marginals" or isinstance(self.backend, MarginalsBackend)
        return frozenset({*self._free, *(of_rows if tables else ())})

    def _another_learner(self) -> tuple[Any, bool]:
        raise NotImplementedError

    def _with_groups(self, learner: Any) -> tuple[Any, bool]:
        """A learner, and whether its fit takes groups."""
        if with_groups := takes_groups(learner):
            check_fair_learner(learner, type(self).__name__, parameter="estimator")
        return learner, with_groups

    def _learn(self, learner: Any, with_groups: bool) -> Self:
        raise NotImplementedError

    def _fall_back(self) -> Self:
        raise NotImplementedError

    # ------------------------------------------------------------------ the generator

    def _generator(self) -> PFGuardGenerator:
        """An unfitted generator of the rows, which pays in the name of this estimator and knows what it has read."""
        shared = inspect.signature(PFGuardGenerator).parameters.keys() & self.get_params(deep=False).keys()
        generator = PFGuardGenerator(**{"balance": None, **{name: getattr(self, name) for name in shared}})
        generator._spends_as, generator._for_learner = type(self).__name__, True
        generator._asked_in_blocks = self.estimator is None or known_row_wise(self.estimator)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(generator, name, getattr(self, name))
        copy_label_encoding(generator, self)
        return generator

    def _taught(self, generator: PFGuardGenerator, data: GeneratorData, *learner: Any) -> Exception | None:
        """Train the learner on synthetic rows only; what it raises is told once everything is released."""
        self._adopt(generator, data)
        try:
            self._learn(*learner)
        except Exception as error:
            return error
        return None

    def _adopt(self, generator: PFGuardGenerator, data: GeneratorData) -> None:
        """Keep a generator that is released, and what it knows of the columns."""
        self.generator_ = generator
        self._n_default = min(max(data.layout.n_rows, LEAST_SAMPLES), MOST_SAMPLES)

    def _releases_rows(self, has_groups: bool) -> bool:
        """Whether a fit is going to make rows with groups, which others may use: told before it spends."""
        named = self.sensitive_columns is not None or (self.schema is not None and bool(self.schema.groups))
        return has_groups or named

    def _released_rows(self) -> PublicData:
        """Rows of the generator, drawn as those of the learner are, and no more than are looked at."""
        drawn = public_generator(self.random_state)
        if self.schema is not None:  # the label is a column of the table
            rows, groups = self.generator_.sample(_RELEASED, return_sensitive=True, random_state=drawn)
            return PublicData(rows, groups)
        rows, y, groups = self.generator_.sample_labels(_RELEASED, return_sensitive=True, random_state=drawn)
        return PublicData(rows, groups, y)

    def _settled(self, generator: PFGuardGenerator, problem: Exception | None) -> None:
        """What was released is paid for and kept; what went wrong with the learner is said."""
        self.privacy_ = generator.privacy_
        if problem is not None:
            problem.add_note(
                "The generator is released: refit(estimator=...) trains another learner at no further cost."
            )
            raise problem

    # ------------------------------------------------------------------ rows for the learner

    def _drawn(self, with_groups: bool) -> tuple[Floats, Array, list[Any]]:
        """Features, labels and, if wanted, groups of rows for a learner; settles how features become numbers."""
        generator, n_samples = self.generator_, self._n_default if self.n_samples is None else self.n_samples
        rng = public_generator(self.random_state)
        rows, labels, *groups = generator.sample_labels(n_samples, return_sensitive=with_groups, random_state=rng)
        table = self._features(rows)
        if self.schema is None:  # from a column without a value no description follows: it counts as one number
            lost = dict.fromkeys(table.columns[table.isna().all()], 0.0)
            self.encoder_ = SchemaEncoder(Schema.from_public(table.assign(**lost), max_categories=n_samples))
        else:
            self.encoder_ = SchemaEncoder(_narrowed(self.schema, table))
        features = self._as_numbers(table)
        self._shown = features[:SHOWN]
        return features, np.asarray(labels).reshape(-1), groups  # also of a table of one column

    def _made_up(self, data: Any, with_groups: bool, n_further: int, each: int) -> tuple[Any, Any, dict[str, Any]]:
        """Made-up rows that come by the way of the sampled ones, so many of each class and group."""
        encoder: Any = data.encoder
        rng, n_classes = np.random.default_rng(0), data.layout.n_classes
        n_groups = data.layout.n_groups if with_groups else 1
        most = each if self.n_samples is None else max(2, self.n_samples // (n_classes * n_groups))
        labels, groups = made_up_cells(n_classes, n_groups, min(each, most))
        rows = encoder.decode(encoder.made_up(len(labels), rng), rng, data.form.columns_of_groups(groups))
        table = self._features(rows if self.schema is None else raw_features(self.schema, rows))
        encoding = SchemaEncoder(self.schema or Schema.from_public(table, max_categories=len(table)))
        given = {"sensitive_features": data.form.groups_of(groups)} if with_groups else {}
        return np.column_stack([encoding.transform(table), rng.random((len(labels), n_further))]), labels, given

    def _note_paid(self, learner: Any) -> None:
        """What is made of released rows says what was paid for them."""
        carrying(learner, self.privacy_)
        read, given = self.encoder_.schema, {} if self.schema is None else self.schema.columns
        if read is not self.schema:  # bounds and values of sampled rows
            paid = {name: replace(one, privacy_=self.privacy_) for name, one in read.columns.items()}
            known = {name: one for name, one in given.items() if one == read.columns[name]}
            self.encoder_.set_params(schema=_with_columns(read, paid | known))

    def _features(self, rows: Any) -> pd.DataFrame:
        """Rows as a table with names, without the columns of the group."""
        if self.schema is not None:
            return rows
        names = getattr(self, "feature_names_in_", None)
        table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows), columns=names)
        if names is None and all(isinstance(name, str) for name in table.columns):  # a table after a fit of an array
            table = table.set_axis(range(table.shape[1]), axis=1)
        taken, owner = self.sensitive_columns, type(self).__name__
        if taken is not None:
            table, _ = split_sensitive_columns(table, taken, owner=owner, read_groups=False)
        return table.set_axis([str(name) for name in table.columns], axis=1)

    @answers_as_fitted
    def _encoded(self, X: Any, rows: Any = None) -> Floats:
        if self.schema is None:
            X = read_container(self, without_subject(self, X), units=False, reset=False)
        features = self._features(X if rows is None else take_rows(X, rows))
        if rows is None:
            schema = self.schema or self.encoder_.schema
            read = RawTable.read(schema, features, owner=type(self).__name__, may_be_empty=True)
            read.warn_of_unread(by_user=self.schema is not None)
        return self._as_numbers(features)

    def _as_numbers(self, features: Any) -> Floats:
        """What a learner reads of rows: numbers of their columns, and what an interaction says of their labels, which
        learners do not find among many columns."""
        numbers = self.encoder_.transform(features)
        shares = self.generator_._label_shares(features)
        return numbers if shares is None else np.column_stack([numbers, shares[:, 1:]])


def _narrowed(schema: Schema, rows: pd.DataFrame) -> Schema:
    """With far too wide bounds of numbers brought to where sampled rows are, and as much again on either side."""
    columns = dict(schema.columns)
    for name in schema.features:
        column = columns[name]
        if isinstance(column, Number) and not (numbers := pd.Series(column.read(rows[name])).dropna()).empty:
            first, last = numbers.quantile([0.01, 0.99])
            low, high = max(column.low, 2 * first - last), min(column.high, 2 * last - first)
            if column.step:
                low, high = (column.low + column.step * round((end - column.low) / column.step) for end in (low, high))
            if low < high and (high - low) * _WIDE < column.high - column.low:
                columns[name] = replace(column, low=float(low), high=float(high))
    return schema if columns == dict(schema.columns) else _with_columns(schema, columns)


def _with_columns(schema: Schema, columns: dict[str, Any]) -> Schema:
    return Schema(columns, label=schema.label, groups=schema.groups, n_rows=schema.n_rows, subject=schema.subject)
