"""What every estimator that spends privacy shares: its plan, its budget, its report, its score."""

import contextlib
import inspect
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from skfairdp import privacy
from skfairdp._inputs import amounts_of, read_labels
from skfairdp._row_wise import mixes_rows
from skfairdp._typing import Array, MaybeArray, RandomStateLike, Values
from skfairdp._utils import (
    PAID,
    NamedEstimator,
    Plain,
    check_same_index,
    plain,
    warn_caller,
    warn_of_seed,
    without_values,
)
from skfairdp._utils._sklearn import N_JOBS, HasMethods, Interval, answers_as_fitted
from skfairdp.exceptions import PrivacyLeakWarning, UnplannedReleaseError
from skfairdp.schema import SCHEMA_CONSTRAINT, RawTable, Schema, SchemaParameter, with_schema

#: e ** 20 is 4.9e8, by which the odds of a guess may grow: from one in a hundred million to nearly five to one.
WEAK_EPSILON = 20

#: These learn from public rows, or are not fitted again.
_PUBLIC = ("PublicPreprocessor", "FrozenEstimator")


_LARGEST_INT = 2**31 - 1

#: Of constructor parameters that mean the same in every private estimator.
SHARED_CONSTRAINTS: dict[str, Any] = {
    "classes": ["array-like", None],
    "groups": ["array-like", None],
    "sensitive_columns": [str, Integral, list, tuple, None],
    "schema": [SCHEMA_CONSTRAINT, None],
    "random_state": ["random_state"],
    "noise_seed": [Interval(Integral, 0, None, closed="left"), None],
    "ledger": [HasMethods(["charge"]), None],
}
#: And of those that most of them have besides. An epsilon of 1e9 is far beyond any guarantee, and exact in a float.
FIT_CONSTRAINTS: dict[str, Any] = {
    **SHARED_CONSTRAINTS,
    "epsilon": [Interval(Real, 0, 1e9, closed="right")],
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "verbose": ["verbose"],
}


@dataclass(frozen=True)
class PlainLedger(Plain):
    """Stands for a ledger in a file of skops, which must not make a ledger at a path of its choice."""

    at: tuple[str, float, float, int, str]

    def restored(self) -> privacy.PrivacyLedger:
        return privacy.reopen(*self.at)


@plain.register
def _(ledger: privacy.PrivacyLedger) -> PlainLedger:
    return PlainLedger(ledger.__reduce__()[1])


class SpendsPrivacy(privacy.StatesPrivacy, NamedEstimator):
    """Has the constructor parameters ``noise_seed`` and ``ledger``, and a ``delta``; its releases set ``privacy_``."""

    privacy_: privacy.PrivacySpent
    delta: float
    noise_seed: int | None
    ledger: privacy.PrivacyLedger | None

    #: Of each class ``with_schema`` keeps those that are parameters of it.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FIT_CONSTRAINTS,
        "constraints": "no_validation",  # who reads them says what is wrong
        "gamma": [Interval(Real, 0, 1, closed="both"), None],
        "net": "no_validation",  # and as_net
        "n_jobs": N_JOBS,
    }

    #: Who is on record, where another estimator holds this one and pays by it.
    _spends_as: str | None = None

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "schema" in inspect.signature(cls.__init__).parameters:
            cls.schema = SchemaParameter()

    def _validate_params(self) -> None:
        if isinstance(given := getattr(self, "schema", None), Mapping) and "columns" in given:
            try:
                Schema.from_dict(given)
            except ValueError as error:  # such as that of a column of a template that is not filled in
                raise ValueError(
                    f"The 'schema' parameter of {type(self).__name__} must be a Schema, or what Schema.from_dict reads "
                    f"as one. {error}"
                ) from None
        super()._validate_params()
        check_numbers(self)

    @property
    def _declared_rows(self) -> int | None:
        """The public number of rows, where a parameter or else the schema declares it; None where rows are counted."""
        if not hasattr(self, "public_n_rows"):
            return None
        schema = getattr(self, "schema", None)
        return getattr(schema, "n_rows", None) if self.public_n_rows is None else int(self.public_n_rows)

    @property
    def epsilon_spent_(self) -> float:
        """Shorthand for ``privacy_.epsilon``: the certified cap of this fit."""
        check_is_fitted(self, "privacy_")
        return self.privacy_.epsilon

    def _spend(self, plan: privacy.Plan, reads: privacy.PublicReads, *, holder: Any = None) -> privacy.Spending:
        """The budget of this fit: ``with self._spend(plan, reads) as noise`` hands out the only noise there is.
        ``holder`` is an estimator that is fitted inside the block as well."""
        owner = self._spends_as or type(self).__name__
        public = privacy.public_facts(reads, plan.relation, declared_rows=self._declared_rows)
        if "one subject" in plan.relation and not any(fact.name == "number of subjects" for fact in public):
            raise UnplannedReleaseError(
                f"{owner} states its guarantee for subjects, but its fit has not read 'subject'. Nothing was spent: "
                "read the ids before the first release."
            )
        report_to, rows_of = partial(setattr, self, "privacy_"), getattr(plan, "rows_of", "")
        told: Any = {"label": owner, "releases": plan.releases, "public": public, "rows_of": rows_of}
        holds = (*privacy.held_by(self if holder is None else holder), *reads.held)
        forgets = (self.__dict__, {} if holder is None else holder.__dict__)
        by: Any = {"ledger": self.ledger, "noise_seed": self.noise_seed, "report_to": report_to, "holds": holds}
        spending = privacy.Spending(plan.event, self.delta, plan.relation, forgets=forgets, **told, **by)
        if self.noise_seed is not None:
            warn_of_seed(owner)
        else:
            _warn_of_weak_guarantee(owner, getattr(self, "epsilon", None), self.delta, public)
        PAID.has_paid = PAID.is_fit
        return spending


#: What of scikit-learn fits on parts of the rows.
_CUTTING = ("sklearn.model_selection", "sklearn.calibration", "sklearn.ensemble._bagging")


def _warn_of_weak_guarantee(owner: str, epsilon: float | None, delta: float, public: Iterable[Any]) -> None:
    """Where a guarantee is proven and worth next to nothing, or leaves out what callers of the fit do with the rows.
    Everything it is told from is public."""
    frame: Any = sys._getframe(2)
    by_subject, told, logged = any(fact.name == "number of subjects" for fact in public), False, False
    while frame is not None:
        if frame.f_globals.get("__name__") == "mlflow.sklearn" and not logged:
            logged = True
            warn_caller(
                f"MLflow's autolog logs scores of what {owner} is fitted in on private rows, and the epsilon of "
                f"{owner} does not cover them. Switch it off: mlflow.sklearn.autolog(disable=True). The page "
                "'Pitfalls' of the guide says what to log.",
                PrivacyLeakWarning,
            )
        if str(frame.f_globals.get("__name__", "")).startswith("sklearn."):
            _warn_of_caller(owner, frame)
            if by_subject and not told and str(frame.f_globals["__name__"]).startswith(_CUTTING):
                told = True
                warn_caller(
                    f"{owner} is fitted on some of the rows. The number of subjects among them counts as public, but "
                    "depends on how many rows each subject has. The guarantee for subjects holds only for one fit on "
                    "the whole table.",
                    PrivacyLeakWarning,
                )
        frame = frame.f_back
    if epsilon is not None and epsilon >= WEAK_EPSILON:
        warn_caller(
            f"epsilon={epsilon:g} of {owner} protects hardly anybody: from {WEAK_EPSILON} on, the model may raise an "
            "attacker's probability that a person is among the rows from one in a hundred million to 80 %. Choose "
            "at most about 3; 1 is usual.",
            PrivacyLeakWarning,
        )
    for fact in public:
        if fact.name in privacy.SIZES and delta * (fact.value or 0) > 1:
            one = "subject" if fact.name.endswith("subjects") else "row"
            warn_caller(
                f"delta={delta:g} of {owner} is above 1 / {fact.value}, one over the number of {one}s: even "
                f"publishing one {one} drawn at random would satisfy such a guarantee. Choose delta well below that, "
                f"as {min(1e-5, 0.01 / 10 ** (len(str(fact.value)) - 1)):.0e}.",
                PrivacyLeakWarning,
            )


def steps_fitted_on_private_rows(pipeline: Pipeline) -> list[str]:
    """Names of the steps before the last that learn from the rows that the last is fitted on, or may."""
    return [
        name
        for name, step in pipeline.steps[:-1]
        if step not in (None, "passthrough")
        and ((type(step).__name__ not in _PUBLIC and get_tags(step).requires_fit) or mixes_rows(step))
    ]


#: What meta-estimators of scikit-learn learn from labels beside what they are around.
_LEARNED_BESIDE = {
    "TransformedTargetRegressor": "its transformer",
    "CalibratedClassifierCV": "its calibration",
    "TunedThresholdClassifierCV": "its threshold",
    "_BaseStacking": "its final estimator",
}


def _learned_beside(caller: Any) -> list[str]:
    """What a meta-estimator of scikit-learn fits to private rows beside a private estimator."""
    kinds = [kind.__name__ for kind in type(caller).__mro__]
    found = [what for kind, what in _LEARNED_BESIDE.items() if kind in kinds]
    if found == ["its transformer"] and (caller.transformer is None or not get_tags(caller.transformer).requires_fit):
        found = []
    members = caller.estimators if "_BaseHeterogeneousEnsemble" in kinds else []
    lasts = ((name, one.steps[-1][1] if isinstance(one, Pipeline) else one) for name, one in members)
    return [*found, *(repr(name) for name, last in lasts if not isinstance(last, SpendsPrivacy | str))]


def _warn_of_caller(owner: str, frame: Any) -> None:
    """Name what calls a fit and reads private rows besides, as far as a frame of the stack of calls shows it. What is
    told is public: the kind of the caller, and how it was set up. Other processes do not see who asked for a fit."""
    caller = frame.f_locals.get("self")
    around = hasattr(caller, "estimator") or hasattr(caller, "estimators") or hasattr(caller, "regressor")
    if around and (beside := _learned_beside(caller)):
        warn_caller(
            f"The {type(caller).__name__} around {owner} fits {', '.join(beside)} to private rows as well, and the "
            f"epsilon of {owner} does not cover what this reveals. Leave it out, or fit it to public rows: around "
            f"FrozenEstimator of the fitted {owner}.",
            PrivacyLeakWarning,
        )
    steps = steps_fitted_on_private_rows(caller) if isinstance(caller, Pipeline) else []
    if steps:
        warn_caller(
            f"The Pipeline around {owner} fits {', '.join(map(repr, steps))} on private rows as well, or lets it mix "
            f"them, and the epsilon of {owner} does not cover what this reveals. Fit it on public rows: "
            "PublicPreprocessor(transformer, X_public). A function that treats each row by itself may say so: "
            "function.predicts_rows_alone = True.",
            PrivacyLeakWarning,
        )
    called = [type(one).__name__ for one in getattr(caller, "_skl_callbacks", ())]
    if set(called) - {"ProgressBar"}:
        warn_caller(
            f"The {type(caller).__name__} around {owner} hands private rows and the fitted model to its callbacks "
            f"{called}. The epsilon of {owner} does not cover what they keep, log or score. Remove them, or run them "
            "on public rows.",
            PrivacyLeakWarning,
        )
    # A search keeps its splitter to itself; functions and stacks have it at hand.
    folds = type(getattr(caller, "_checked_cv_orig", frame.f_locals.get("cv"))).__name__
    if folds.startswith("Stratified") or "Group" in folds:
        by = "labels" if folds.startswith("Stratified") else "groups"
        warn_caller(
            f"{owner} is fitted on folds of {folds}, which assigns rows to folds by their {by}: one changed "
            f"{by[:-1]} moves other records, so the epsilon of {owner} does not hold if they are private. Assign rows "
            "by position: cv=KFold(n_splits).",
            PrivacyLeakWarning,
        )
    by_weights = hasattr(caller, "bootstrap") and frame.f_locals.get("sample_weight") is not None
    if by_weights or getattr(caller, "bootstrap", False):
        warn_caller(
            f"{type(caller).__name__} draws rows with replacement or by their weights, so that {owner} sees some "
            f"records several times. The epsilon of {owner} is for records that it sees once. Set bootstrap=False, and "
            "give no sample_weight.",
            PrivacyLeakWarning,
        )


@with_schema
class PrivateEstimator(SpendsPrivacy):
    """Reads, plans, spends, learns. A subclass has ``_read``, which takes the arguments of ``fit`` and returns what it
    learns from, with the list ``reads`` of what is public, and ``_plan``, which says what will be released. ``fit``
    spends by ``with self._spend(plan, data.reads) as noise``; below the block everything is post-processing."""

    epsilon: float = 1.0
    delta: float = 1e-5
    groups: Values | None = None
    sensitive_columns: str | int | Sequence[str | int] | None = None
    schema: Schema | None = None
    random_state: RandomStateLike = None
    noise_seed: int | None = None
    ledger: privacy.PrivacyLedger | None = None

    # Asked for by default, so that a search with metadata routing never fits without the groups by accident.
    __metadata_request__fit = {"sensitive_features": True, "X_public": True, "sensitive_features_public": True}

    #: The parts that parameters may be, by their shorthands.
    _shorthands: ClassVar[dict[str, dict[str, type[Any]]]] = {}

    #: Those of them that may be None.
    _optional_parts: ClassVar[frozenset[str]] = frozenset()

    def _parts(self) -> dict[str, Any]:
        """The parts that parameters are, or stand for, with their own parameters checked."""
        owner = type(self).__name__
        return {
            name: as_part(getattr(self, name), kind, parameter=name, owner=owner, optional=name in self._optional_parts)
            for name, kind in self._shorthands.items()
        }

    def _check(self) -> None:
        """Refuse parameters outside their range: all that is public and known before the rows are."""
        self._validate_params()
        self._parts()

    def _read(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _plan(self, data: Any) -> privacy.Plan:
        raise NotImplementedError

    def planned_privacy(self, X: Any, y: Any = None, **fit_params: Any) -> privacy.PrivacySpent:
        """What ``fit`` with the same arguments is going to certify, before anything is released or trained.

        It is the plan of the fit itself, which depends on public values only: sizes, domains, constructor parameters.

        Parameters
        ----------
        X, y, **fit_params : object
            As for ``fit``.

        Returns
        -------
        PrivacySpent
            Equal to the ``privacy_`` of the fit but for its list of public values.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit gives them
            entry, held = self._planned(X, y, **fit_params)
        told = {name: getattr(entry, name) for name in ("protects", "neighboring_relation", "label", "rows_of")}
        own = privacy.PrivacySpent.of(entry.event, self.delta, secret_noise=self.noise_seed is None, **told)
        return privacy.composed(own, *privacy.held_by(self), *held)

    def _planned_entry(self, X: Any, y: Any = None, **fit_params: Any) -> privacy.LedgerEntry:
        """What ``fit`` with these arguments would put on record."""
        return self._planned(X, y, **fit_params)[0]

    def _planned(self, X: Any, y: Any, **fit_params: Any) -> tuple[privacy.LedgerEntry, list[privacy.PrivacySpent]]:
        model = self._unfitted()
        data = model._read(X, y, **fit_params)
        return self._entry_of(model._plan(data)), data.reads.held

    def _entry_of(self, plan: privacy.Plan) -> privacy.LedgerEntry:
        of, told = plan.relation, (plan.releases, getattr(plan, "rows_of", ""))
        return privacy.LedgerEntry(type(self).__name__, plan.event, of.protects, of, *told)

    def _unfitted(self) -> Any:
        return clone(self)

    def _predicted(self, X: Any, sensitive_features: Any) -> Array:
        """Predictions of rows, with their groups where these are read."""
        takes_groups = "sensitive_features" in inspect.signature(self.predict).parameters
        return np.asarray(self.predict(X, **({"sensitive_features": sensitive_features} if takes_groups else {})))

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise_seed is None
        tags.input_tags.sparse = True  # written out
        if getattr(self, "schema", None) is not None:
            tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """A private estimator that predicts classes."""

    __metadata_request__score = {"sensitive_features": True}

    @answers_as_fitted
    def score(
        self, X: Any, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, sample_weight: MaybeArray = None
    ) -> float:
        """Accuracy on the given rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows with the columns seen in ``fit``.
        y : array-like of shape (n_rows,), default=None
            Their labels. None takes those of X, where a schema says which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Their groups, where predictions use them; ignored elsewhere, so that they can be routed.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Share of the rows that are predicted rightly.
        """
        owner = type(self).__name__
        check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        predicted = self._predicted(X, sensitive_features)
        labels = read_labels(self, y, len(predicted), X)
        has_schema = getattr(self, "schema", None) is not None  # labels that it does not list are None
        known = labels != np.array(None) if has_schema else np.isin(labels, self.classes_)
        if has_schema:
            labels, predicted = labels == predicted.astype(object), np.ones(len(predicted), dtype=bool)
        try:
            accuracy = float(accuracy_score(labels, predicted, sample_weight=sample_weight))
        except (ValueError, TypeError) as error:
            problem = without_values(error, owner=owner, name="y")
            if sample_weight is not None:
                with contextlib.suppress(ValueError, TypeError):
                    accuracy_score(labels, predicted)  # so it is the weights
                    wanted = f"one finite number for each of {len(labels):,} rows, not all of them 0"
                    problem = ValueError(f"sample_weight of the score of {owner} must hold {wanted}.")
        else:
            if not np.all(known):
                more = "; schema.misfits(table) counts such cells" if has_schema else f" with {self.classes_.tolist()}"
                warn_caller(
                    f"{np.sum(~known):,} of the {len(labels):,} labels that score was given are no class of {owner}, "
                    f"and count as errors. Leave out rows without a label, and compare the spelling of others{more}."
                )
            return accuracy
        raise problem


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """A private estimator that predicts amounts."""

    __metadata_request__score = {"sensitive_features": True}

    @answers_as_fitted
    def score(
        self, X: Any, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, sample_weight: MaybeArray = None
    ) -> float:
        """R² on the given rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows with the columns seen in ``fit``.
        y : array-like of shape (n_rows,), default=None
            Their amounts. None takes those of X, where a schema says which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Their groups, where predictions use them; ignored elsewhere, so that they can be routed.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        r2 : float
            1 for perfect predictions, 0 for the mean of y.
        """
        owner = type(self).__name__
        check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return self._r2(self._predicted(X, sensitive_features), X, y, sample_weight)

    def _r2(self, predicted: Any, X: Any, y: Any, sample_weight: Any) -> float:
        schema = getattr(self, "schema", None)
        raw = None if schema is None else RawTable.roles(schema, X, owner=type(self).__name__)
        return float(r2_score(amounts_of(self, y, len(predicted), raw), predicted, sample_weight=sample_weight))


def as_part(
    value: Any, kinds: Mapping[str, type[Any]], *, parameter: str, owner: str, optional: bool = False, hint: str = ""
) -> Any:
    """Return the part that a parameter is or names, with the part's own parameters checked."""
    part: Any = kinds[value]() if isinstance(value, str) and value in kinds else value
    if part is None and optional:
        return None
    if not isinstance(part, tuple(kinds.values())):
        known = [repr(name) for name in kinds] + [f"{kind.__name__}()" for kind in kinds.values()]
        *others, last = [*known, "None"] if optional else known
        raise ValueError(
            f"The '{parameter}' parameter of {owner} must be {', '.join(others)} or {last}. Got {value!r} instead."
            + hint
        )
    checked: Any = part
    checked._validate_params()
    check_numbers(checked)
    return checked


def check_numbers(estimator: Any) -> None:
    """Refuse what scikit-learn's constraints let through: booleans as numbers, and integers beyond any machine's."""
    constraints = estimator._parameter_constraints
    numbers = {name for name, kinds in constraints.items() if any(map(_is_number, kinds))}
    for name in sorted(numbers - {"random_state", "noise_seed", "verbose"}):
        value = getattr(estimator, name)
        if isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and int(value) > _LARGEST_INT):
            raise ValueError(
                f"The '{name}' parameter of {type(estimator).__name__} must be a number, no bool, of at most "
                f"{_LARGEST_INT}. Got {value!r} instead."
            )


def _is_number(kind: Any) -> bool:
    return isinstance(kind, Interval) or kind is Integral
