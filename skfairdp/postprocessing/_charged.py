"""What post-processors share that are charged for private rows: the fitted model inside, its columns and its price."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED

from skfairdp import privacy
from skfairdp._estimator import PrivateEstimator
from skfairdp._inputs import TrainingData, groups_to_come, read_any_training, read_private_groups, subject_given
from skfairdp._judge import by_heart
from skfairdp._typing import Array, Floats, Ints, Objects
from skfairdp._utils import silence, split_sensitive_columns, warn_caller, without_cells
from skfairdp._utils._sklearn import take_rows
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.postprocessing import _inputs as inputs
from skfairdp.privacy import Account, NeighboringRelation, Protects, PublicReads, refuse_ledger_of_seed
from skfairdp.schema import Schema, SchemaEncoder

#: Of its own tables.
LEAST_EPSILON = 1e-3
_MADE_UP = 20  # rows of each kind by which a model is tried before anything is spent


@dataclass(frozen=True)
class _Price:
    """What two fits cost that are both not made yet, by the factor of the ε of both."""

    first: Any
    read_by_first: TrainingData
    second: Any
    read_by_second: TrainingData
    relation: NeighboringRelation

    def entries(self, factor: float) -> tuple[privacy.LedgerEntry, privacy.LedgerEntry]:
        """What they put on record."""
        first, second = copy(self.first), copy(self.second)
        if factor != 1:
            for one in (first, second):
                one.set_params(epsilon=factor * one.epsilon)
        plan = second._plan(self.read_by_second, self.relation)
        return first._entry_of(first._plan(self.read_by_first)), second._entry_of(plan)

    def scale_for(self, total: float, owner: str) -> float:
        """The factor at which both cost the total, with what was paid for before."""
        held = *privacy.held_by(self.first, self.second), *self.read_by_first.reads.held

        def spent(factor: float) -> privacy.PrivacySpent:
            of: dict[str, Any] = {"protects": self.relation.protects, "neighboring_relation": self.relation}
            both = [
                privacy.PrivacySpent.of(entry.event, self.second.delta, rows_of=entry.rows_of, **of)
                for entry in self.entries(factor)
            ]
            return privacy.composed(*reversed(both), *held)

        return privacy.scale_for(total, spent, owner=owner)


class ChargedForRows(PrivateEstimator):
    """Has a fitted ``estimator``, whose price is composed with its own."""

    estimator: Any
    total_epsilon: float | None
    groups_: Objects
    _guesses: Any

    #: What the model inside is called.
    _kind = "classifier"

    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED, "subject": True}
    __metadata_request__predict = {"sensitive_features": True}

    def _fit_both(self, X: Any, y: Any, **rows: Any) -> bool:
        """Fit a private estimator that is not, for its own budget, and then this on the same rows; False where it is.
        It stays as ``estimator_``, whatever becomes of the second fit."""
        owner, groups, subject = type(self).__name__, rows["sensitive_features"], rows["subject"]
        if not (inputs.fits_its_estimator(self) and isinstance(inputs.last_part(self.estimator), PrivateEstimator)):
            if self.total_epsilon is not None:
                raise ValueError(
                    f"total_epsilon of {owner} is divided between this fit and that of an 'estimator' that is private "
                    f"and not fitted yet; this {type(self.estimator).__name__} is not. Leave total_epsilon None: "
                    "'epsilon' is the budget of this fit alone."
                )
            return False
        self._check_settings()
        # Before the first fit what would be refused after it.
        refuse_ledger_of_seed(owner, self.noise_seed, self.ledger)
        if get_tags(self.estimator).estimator_type != self._kind:
            raise ValueError(f"The 'estimator' of {owner} must be a {self._kind}. Got {self.estimator!r} instead.")
        inputs.check_takes(self.estimator, owner, subject=subject)
        if self.schema is None and self.sensitive_columns is None and (shape := inputs.shape_of(X)):
            with silence():  # the fit says it
                read_private_groups(self, None, groups, shape[0], PublicReads())
        model, second, parameters = clone(self.estimator), self._unfitted(), self.get_params(deep=False)
        last = inputs.last_part(model)
        last.set_params(ledger=self.ledger if last.ledger is None else last.ledger)
        read = X
        if self.sensitive_columns is not None and not inputs.reads_whole(model, X):
            read, groups = split_sensitive_columns(X, self.sensitive_columns, owner=owner)
        given = inputs.FitArguments(read, y, groups, None, None, subject=subject).metadata(second)
        if self.total_epsilon is not None and (model is not last or last.epsilon is None):
            raise ValueError(
                f"total_epsilon of {owner} needs an 'estimator' with an 'epsilon', and a plan before it is fitted: "
                "a Pipeline has none. Give it the columns as they are, such as by a schema, or leave total_epsilon "
                "None and set the 'epsilon' of both."
            )
        if model is last:  # of a pipeline nothing is planned before it is fitted
            first, own = last._unfitted(), second._unfitted()
            with silence():  # the fits say it
                data = first._read(read, y, **given)
                planned = first._entry_of(first._plan(data))
            relation = self._check_relation(planned.neighboring_relation, subject_given(self, subject) is not None)
            with silence():
                beside = own._rows_beside(relation, X, y, **rows)
            own._check_kinds(beside.domain, data.classes)
            if self.total_epsilon is not None or privacy.ledger_in_use(self.ledger) is not None:
                with silence():
                    price = _Price(first, data, own, beside, relation)
                    factor = 1.0 if self.total_epsilon is None else price.scale_for(self.total_epsilon, owner)
                if self.total_epsilon is not None:
                    last.set_params(epsilon=factor * last.epsilon)
                    second.set_params(epsilon=factor * second.epsilon, total_epsilon=None)
                    if second.epsilon < LEAST_EPSILON:
                        raise ValueError(
                            f"total_epsilon={self.total_epsilon:g} of {owner} leaves its tables an epsilon below "
                            f"{LEAST_EPSILON:g}. Raise it, or the share of its own 'epsilon' ({self.epsilon:g})."
                        )
                privacy.check_room(owner, *zip((last.ledger, self.ledger), price.entries(factor), strict=True))
        second.estimator = without_cells(model.fit, read, y, owner=owner, **given)
        # No report of an earlier fit stands beside this model; what scikit-learn's searches call back stays.
        kept = {name: value for name, value in vars(self).items() if name in vars(second) or "callback" in name}
        self.__dict__ = kept | {"estimator_": second.estimator}
        second.fit(X, y, **rows)
        self.__dict__.update({name: value for name, value in vars(second).items() if name not in parameters})
        return True

    def _rows_beside(self, relation: NeighboringRelation, X: Any, y: Any, **rows: Any) -> TrainingData:
        """What this reads of the rows, as far as a plan goes by it, beside a model that is not fitted yet."""
        how: dict[str, Any] = {"groups": "private", "by_key": False, "protects": relation.protects}
        how["target"] = lambda _, y, n_rows, *reads, **raw: (np.empty(0), np.zeros(n_rows, dtype=np.int64))
        return read_any_training(self, X, y, **rows, **how)

    def _check_settings(self) -> None:
        """Refuse parameters that no rows are needed to refuse."""
        self._validate_params()

    def _check_kinds(self, domain: Objects, classes: Any) -> None:
        """Refuse more groups or classes than can be compared."""

    def _fitted_estimator(self) -> Any:
        return inputs.fitted(self.estimator, type(self).__name__, self._kind)

    def _scores_of_rows(self, model: Any, table: Any, places: Ints) -> Floats:
        """Scores of rows, NaN where the model has none."""
        raise NotImplementedError

    def _read_by(
        self, read: Callable[..., TrainingData], X: Any, y: Any, sensitive_features: Any, subject: Any, **how: Any
    ) -> TrainingData:
        """Private rows by a reader, protected as the model inside protects its own."""
        protects = self._relation(self._fitted_estimator(), subject_given(self, subject) is not None).protects
        given = {"sensitive_features": sensitive_features, "subject": subject, "groups": "private"}
        return read(self, X, y, **given, protects=protects, **how)

    def _check_columns(self, model: Any, n_features: int) -> None:
        """Refuse a model of other columns, or one that has no score for any of some rows that are made up."""
        owner = type(self).__name__
        if self.schema is not None and has_a_schema(model):
            return
        named = None if self.schema is not None else getattr(self, "feature_names_in_", None)
        known, n_known = getattr(model, "feature_names_in_", None), getattr(model, "n_features_in_", None)
        if self.sensitive_columns is not None:
            n_features = self.n_features_in_
        rng, shape = np.random.default_rng(0), (_MADE_UP, n_features)
        rows: Any = np.vstack([np.zeros(shape[1]), np.ones(shape[1]), rng.standard_normal(shape), rng.random(shape)])
        rows = rows if named is None else pd.DataFrame(rows, columns=named)
        if self.sensitive_columns is not None and n_known != n_features:
            rows, _ = split_sensitive_columns(rows, self.sensitive_columns, owner=owner, read_groups=False)
        got: tuple[Any, Any] = n_known and f"{n_known} columns", rows.shape[1]
        if known is not None and named is not None:
            got = list(known), list(rows.columns)
        if n_known not in (None, rows.shape[1]) or (isinstance(got[0], list) and got[0] != got[1]):
            raise ValueError(
                f"The 'estimator' of {owner} was fitted on other columns than these rows have: on {got[0]}, and here "
                f"are {got[1]}. Nothing was spent. Give both the same columns, in the same order."
            )
        rows = np.asarray(rows) if known is None else pd.DataFrame(np.asarray(rows), columns=known)
        if not np.isfinite(self._scores_of_rows(model, rows, np.arange(len(rows)))).any():
            raise ValueError(
                f"The 'estimator' of {owner}, {type(model).__name__}, returns no finite score for any of {len(rows)} "
                "made-up rows, so it would have none for yours. Nothing was spent. Check what its predictions are."
            )
        self._check_scores(model, rows)

    def _check_scores(self, model: Any, rows: Any) -> None:
        """Refuse a model whose answers to some rows that are made up are not what they are said to be."""

    def _note_the_model(self, model: Any, reads: PublicReads) -> None:
        """Where it comes from, and what nobody accounts for."""
        account, owner = Account.of(model), type(self).__name__
        stated = bool(account.reports)
        said = "" if stated else "outside the guarantee"
        reads.note(f"the {self._kind}", "given", type(model).__name__, said, by=account.reports)
        if stated and account.unseen:
            warn_caller(account.warning(owner), PrivacyLeakWarning)
        if not stated:
            warn_caller(
                f"The {type(model).__name__} given to {owner} has no privacy_, so it counts as public. If it has seen "
                f"these rows, nothing protects them: fit a private {self._kind} instead, or one on public rows.",
                PrivacyLeakWarning,
            )

    def _by_heart(self, model: Any, data: TrainingData) -> float:
        """What the model owes to having seen these rows, if they have taught it: a private one they may have. A
        pipeline, or a schema, may make many features of a column; whoever protects groups alone may know all labels."""
        found = [0.0]
        for part in Account.of(model).private:
            schema, passes = getattr(part, "schema", None), getattr(getattr(part, "net", None), "max_epochs", None)
            encoded = len(SchemaEncoder(schema).get_feature_names_out()) if isinstance(schema, Schema) else 0
            module = inputs.network_of(part)
            if module is not None:
                from skfairdp._networks import width_of

                encoded = max(encoded, width_of(module))
            width = max(data.X.shape[1], getattr(part, "n_features_in_", 0), encoded)
            knows_labels = part.privacy_.protects == Protects.SENSITIVE_ATTRIBUTE
            found.append(1.0 if knows_labels else by_heart(width, data.n_units, passes or 0.0))
        return max(found)

    def _planned(self, X: Any, y: Any, **fit_params: Any) -> Any:
        if inputs.fits_its_estimator(self):
            cost = f"estimator.planned_privacy(X, y, ...) and its own epsilon={self.epsilon:g}, delta={self.delta:g}"
            if self.total_epsilon is not None:
                cost = f"total_epsilon={self.total_epsilon:g} at delta={self.delta:g}"
            raise NotFittedError(
                f"What {type(self).__name__} releases is planned for a fitted 'estimator' only. Both fits cost {cost}."
            )
        return super()._planned(X, y, **fit_params)

    def _unfitted(self) -> Any:
        other = clone(self)
        other.estimator = self.estimator  # a clone of it would not be fitted
        return other

    def _relation(self, model: Any, by_subject: bool) -> NeighboringRelation:
        """That of the model, so that both guarantees add up."""
        stated = Account.of(model).total()
        return self._check_relation(None if stated is None else stated.neighboring_relation, by_subject)

    def _check_relation(self, stated: str | None, by_subject: bool) -> NeighboringRelation:
        owner = type(self).__name__
        usual = NeighboringRelation.REPLACE_SUBJECT if by_subject else NeighboringRelation.REPLACE_ONE
        relation = usual if stated is None else NeighboringRelation(stated)
        if relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
            raise ValueError(
                f"{owner} uses the number of rows, which the guarantee of its 'estimator' keeps secret. Fit the "
                f"{self._kind} without 'public_n_rows'."
            )
        if by_subject != relation.of_subjects or (by_subject and relation.protects != Protects.SUBJECT):
            raise ValueError(
                f"{owner} is for '{usual}' here, and its 'estimator' for '{relation}': both guarantees do not add up. "
                "Give both the same 'subject', or none; around a model that protects groups alone give none to either."
            )
        return relation

    def _scores_of_units(self, model: Any, X: Any, data: TrainingData) -> tuple[Array, Array, Array, TrainingData]:
        """Private: score, group and place of each row, or of one row of each subject; and these rows."""
        table, places, units = self._rows_for(model, X, data.X), data.unit_places, data.one_row_each
        if data.subjects is not None:
            table = take_rows(table, data.subjects.one_row_each)
        return self._scores_of_rows(model, table, places), units.groups, places, units

    def _kinds_to_come(self, X: Any, features: Floats, sensitive_features: Any, *, reads_groups: bool) -> Ints:
        """The group of each row to predict, or the kind of its guess; 0 where neither counts."""
        if self._guesses is not None:
            return self._guesses.kinds_of(features, np.arange(len(features)))
        if reads_groups:
            return groups_to_come(self, X, sensitive_features, len(features))
        return np.zeros(len(features), dtype=np.int64)

    def _rows_for(self, model: Any, X: Any, features: Floats) -> Any:
        """What the classifier reads: the table as it comes, where it knows those columns or a schema; else features."""
        if self.schema is not None:
            return X if has_a_schema(model) else features
        if self.sensitive_columns is not None and getattr(model, "n_features_in_", None) == self.n_features_in_:
            return X
        names = getattr(model, "feature_names_in_", None)
        return features if names is None else pd.DataFrame(features, columns=names)


def has_a_schema(model: Any) -> bool:
    nested = model.get_params(deep=True)
    return any(name.split("__")[-1] == "schema" and nested[name] is not None for name in nested)
