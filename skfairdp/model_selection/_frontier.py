"""The whole trade-off from one call: one private release per ε, every γ (or λ) from it, the ε of the whole table."""

import inspect
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone, is_regressor

from skfairdp._rows import Subjects, gathered
from skfairdp._utils import PublicData, RandomStateLike, invalid_parameter, progress_bar, public_generator, silence
from skfairdp.model_selection import _frame
from skfairdp.model_selection._frame import mark_non_dominated
from skfairdp.model_selection._transfer import EvaluationSet
from skfairdp.privacy import LedgerEntry, PrivacySpent, check_room, ledger_in_use


def frontier(
    estimators: Any,
    X: Any,
    y: Any,
    *,
    X_public: Any = None,
    X_test: Any,
    y_test: Any,
    sensitive_features_test: Any,
    sensitive_features: Any = None,
    sensitive_features_public: Any = None,
    subject: Any = None,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 5.0),
    gammas: Sequence[float | None] = (0.01, 0.02, 0.05, 0.1, None),
    lams: Sequence[float] = (0.0, 0.3, 1.0, 3.0),
    idp3: Sequence[bool | str] = (False, True, "only"),
    reference: Any = None,
    dataset: str = "",
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: RandomStateLike = None,
) -> pd.DataFrame:
    """Measure accuracy, fairness gap and coverage over privacy budgets and fairness constraints.

    The guarantee: every row carries the certified ε of the one release behind it, and publishing the *whole table of
    models* costs ``frame.attrs["epsilon_total"]``, the composition of all releases. For each estimator and each ε there
    is one private fit; all γ, with and without IDP3, are post-processing of its released votes and cost nothing more.
    An estimator that is held to parity by a weight λ is swept over ``lams`` instead: from the released votes where a
    :class:`~skfairdp.pate.ParityPenaltyStudent` learns behind no gate, at no further cost, and by one private fit for
    each λ with :class:`~skfairdp.gradient.FairDPSGDClassifier`.

    Accuracy, gap and coverage are measured on the test rows, without noise. No ε covers the test rows: they
    have to be public, or the figures are for your eyes only.

    Parameters
    ----------
    estimators : estimator, list of estimators or dict of name → estimator
        With parameters ``epsilon`` and ``gamma``, the method ``refit(gamma=)`` and the attribute
        ``privacy_``, as :class:`~skfairdp.pate.FairPATEClassifier`; or with ``epsilon`` and ``lam``, as
        :class:`~skfairdp.gradient.FairDPSGDClassifier`; or :class:`~skfairdp.SyntheticDataClassifier`, whose learner
        holds its own constraint, so that only ``epsilons`` and IDP3 are swept. They are cloned. All must have the same
        ``delta``.
    X, y : array-like or DataFrame
        Private rows and labels, as the estimator takes them.
    X_public : PublicData, DataFrame or array-like of shape (n_public, n_features), default=None
        Public rows; as ``PublicData`` with their groups. None leaves it to the estimators: each makes do without, on
        rows of its own or on the private groups, or says that it cannot.
    X_test, y_test, sensitive_features_test : array-like or DataFrame
        Rows to measure on, their labels and groups.
    sensitive_features : array-like of shape (n_rows,), default=None
        Groups of the private rows, passed to ``fit`` where given. Without public rows they are what parity is held on.
    sensitive_features_public : array-like of shape (n_public,), default=None
        Groups of the public rows, where ``X_public`` does not carry them.
    subject : array-like of shape (n_rows,) or str, default=None
        Passed to ``fit``: one id per row, or the name of a column of X. All rows of one id are then protected together
        in every release and in the total. Each test row is measured, whoever has several.
    epsilons : sequence of floats, default=(0.5, 1.0, 2.0, 5.0)
        One release each.
    gammas : sequence of floats and None, default=(0.01, 0.02, 0.05, 0.1, None)
        Largest disparity let through; None is no constraint. Estimators swept over ``lams`` take it for IDP3 only.
    lams : sequence of floats, default=(0, 0.3, 1, 3)
        Weights of the fairness term, for estimators that have one in place of γ.
    idp3 : sequence of {False, True, "only"}, default=(False, True, "only")
        What happens at prediction. False: every row is answered. True: predictions that would break γ are refused
        (:class:`~skfairdp.postprocessing.IDP3`, which needs the group at prediction). "only": the same over the
        student that no γ constrained (its ``student_gamma`` is NaN); it refuses more, and is more accurate where it
        answers. γ = None has no row with IDP3: there is nothing to hold.
    reference : classifier, default=None
        Fitted to the private rows without any privacy, as a mark to compare with in ``attrs["references"]``. No ε
        covers what it shows: for rows that are public anyway, or for your eyes only.
    dataset : str, default=""
        Name for the column ``dataset``.
    n_jobs : int, default=None
        Releases in parallel, through joblib.
    verbose : int, default=0
        Above 0: a progress bar on standard error.
    random_state : int, RandomState, Generator or None, default=None
        For public randomness only (partition, initialisation); the noise stays secret, so tables differ run by run.

    Returns
    -------
    DataFrame
        One row per point, with columns ``dataset``, ``estimator``, ``epsilon`` (certified), ``delta``, ``protects``,
        ``neighboring_relation``, ``gamma`` (what the answers are held to; NaN: nothing), ``student_gamma`` (what the
        student was held to), ``lam`` (NaN where γ was swept), ``idp3``, ``disparity`` (demographic, each group against
        all others, over the answered rows), ``accuracy`` (of the answered rows), ``coverage`` (share of answered rows),
        ``non_dominated`` (in ε, gap, accuracy and coverage, among rows with the same guarantee and the majority class,
        which costs no ε), ``params`` and ``gap_bound``, which the difference between any two groups exceeds in the
        population with a chance of 5 % only, if the test rows are independent draws that no model has seen (NaN where
        answers are refused). ``attrs["guarantees"]`` has one record for each kind of guarantee: ``protects``,
        ``neighboring_relation``, ``delta``, ``epsilon_total``, ``n_fits``, and ``rows_of`` where a column names the
        subjects that are protected; the total for attributes is of all fits, as those for records have seen the
        attribute. Where there is one kind only, ``attrs`` has these five as well. ``attrs["references"]`` has accuracy
        and gap of marks to compare with: the majority class of the test rows, and ``reference``.

    Raises
    ------
    ValueError
        A parameter out of range, lengths that do not match, or an estimator that cannot be swept; before any fit.
    BudgetExceededError
        A ledger given with estimators has no room for all of their releases; it is asked before the first. Without
        one, a private ledger with no ceiling counts.

    Examples
    --------
    >>> from skfairdp import FairPATEClassifier, frontier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> rows = make_biased_classification(4000, disparity=0.2, random_state=0)
    >>> split = train_private_public_test_split(*rows, random_state=0)
    >>> table = frontier(
    ...     FairPATEClassifier(classes=[0, 1]), split.X, split.y, X_public=split.public, X_test=split.X_test,
    ...     y_test=split.y_test, sensitive_features_test=split.sensitive_features_test,
    ...     epsilons=(1.0, 2.0), gammas=(0.5, None), idp3=(False,), random_state=0)
    >>> table.shape, str(table.attrs["protects"]), table.attrs["n_fits"]
    ((4, 16), 'record', 2)
    >>> round(table.attrs["epsilon_total"], 2)  # less than 1 + 2: releases compose better than their ε add up
    2.3
    """
    named = _named(estimators)
    subject = _subject_of_all(named, subject)
    public = _public_rows(X_public, sensitive_features_public)
    sweep = _Sweep(epsilons, gammas, lams, idp3)
    deltas = {float(estimator.get_params(deep=False)["delta"]) for estimator in named.values()}
    if len(deltas) > 1:
        raise ValueError(
            f"All estimators of one frontier must have the same 'delta', so that their ε add up. Got {sorted(deltas)}."
        )
    delta = deltas.pop()
    features = X
    if subject is not None and gathered(X) is None:
        subjects = Subjects.read(X, subject, X.shape[0] if hasattr(X, "shape") else len(X), owner="frontier")
        features, X_test = subjects.outside(X), subjects.outside(X_test)
        public = None if public is None else PublicData(subjects.outside(public.X), public.sensitive_features)
    test = EvaluationSet(X_test, y_test, sensitive_features_test, owner="frontier", end="_test")
    test.refuse_others(y, *named.values())
    totals = _frame.Totals()
    seed = int(public_generator(random_state).integers(2**31 - 1))
    fits = [fit for name, e in named.items() for fit in sweep.fits_of(name, totals.prepare(e, seed))]
    data = X, y, subject, sensitive_features, public
    _check_room_of_all(fits, data)
    rows: list[dict[str, Any]] = []
    n_models = sum(len(fit.points) for fit in fits)
    with progress_bar(total=n_models, desc="frontier", verbose=verbose, leave=True) as bar:
        for row, spent in _measured(fits, data, test, n_jobs):
            if spent is not None:
                totals.add(*spent)
            rows.append({"dataset": dataset, **row})
            bar.set_postfix_str(f"{row['estimator']}, ε={row['epsilon']:.3g}")
            bar.update()
    compared = {} if reference is None else {"without_privacy": clone(reference).fit(features, y)}
    references, guarantees = test.references(dataset, **compared), totals.guarantees(delta)
    frame = pd.DataFrame(rows).reindex(columns=[*_frame.COLUMNS, "gap_bound"])
    frame["non_dominated"] = mark_non_dominated(frame, references)
    frame.attrs.update({"guarantees": guarantees, **(guarantees[0] if len(guarantees) == 1 else {})})
    frame.attrs.update(n_test=len(test.groups), references=references)
    return frame


def _subject_of_all(named: Mapping[str, Any], subject: Any) -> Any:
    """Whose each row is, as given or as schemas say: the same for all fits, which are added up."""
    told = {getattr(getattr(estimator, "schema", None), "subject", None) for estimator in named.values()}
    said = getattr(subject, "name", None) if subject is not None and not isinstance(subject, str) else subject
    if len({*(told - {None} if subject is not None else told), *([] if said is None else [said])}) > 1:
        raise ValueError(
            "frontier adds up what its estimators spend, and their schemas name different subjects, or only some of "
            "them do. Name the same 'subject' in all, or give it to frontier and leave it out of them."
        )
    subject = next(iter(told)) if subject is None else subject
    without = [name for name, one in named.items() if "subject" not in inspect.signature(one.fit).parameters]
    if subject is not None and without:
        raise ValueError(
            f"frontier got 'subject', and {without[0]!r} protects each row by itself: its fit has none. Leave one of "
            "the two out."
        )
    return subject


def _public_rows(X_public: Any, groups: Any) -> PublicData | None:
    if X_public is None:
        if groups is not None:
            raise ValueError("frontier got sensitive_features_public without X_public. Give both, or leave both out.")
        return None
    public = X_public if isinstance(X_public, PublicData) else PublicData(X_public, groups)
    return PublicData(public.X, groups) if public.sensitive_features is None and groups is not None else public


@dataclass(frozen=True)
class _Point:
    """One model of the table: what its answers are held to, and what its student is refitted with."""

    gamma: float | None
    refuse: bool
    student: dict[str, Any]
    lam: float = math.nan

    @property
    def student_gamma(self) -> float:
        """What the student was held to. A weight holds it to no figure; behind IDP3 it still is a fair student."""
        if math.isnan(self.lam):
            return _frame.as_gamma(self.student.get("gamma"))
        return _frame.as_gamma(self.gamma) if self.lam > 0 else math.nan


@dataclass(frozen=True)
class _Fit:
    """One private fit, and the points that follow from it."""

    name: str
    estimator: Any
    points: list[_Point] = field(default_factory=list)


@dataclass(frozen=True)
class _Sweep:
    """The values of the sweep, checked."""

    epsilons: Sequence[float]
    gammas: Sequence[float | None]
    lams: Sequence[float]
    idp3: Sequence[bool | str]

    def __post_init__(self) -> None:
        checks: list[tuple[str, Callable[[Any], bool], str]] = [
            ("lams", lambda lam: lam >= 0 and math.isfinite(lam), "finite numbers from 0 on"),
            ("epsilons", lambda epsilon: epsilon > 0 and math.isfinite(epsilon), "positive finite numbers"),
            ("gammas", lambda gamma: gamma is None or 0 <= gamma <= 1, "numbers in [0, 1], or None"),
            (
                "idp3",
                lambda how: isinstance(how, bool | np.bool_) or how == "only",
                "a sequence of False, True and 'only'",
            ),
        ]
        for name, fits, must in checks:
            values = getattr(self, name)
            if len(values) == 0 or not all(map(fits, values)):
                raise invalid_parameter(name, "frontier", must, values)
        if all(gamma is None for gamma in self.gammas) and all(self.idp3):
            raise ValueError(
                "frontier has nothing to do: IDP3 needs a number among 'gammas', and all are None. Add one, or add "
                "False to 'idp3'."
            )

    def fits_of(self, name: str, estimator: Any) -> Iterator[_Fit]:
        """The private fits of an estimator: one for each ε, and for each λ where released votes cannot be refitted."""
        weight = _frame.parity_weight(estimator)
        options: list[tuple[dict[str, Any], list[_Point]]]
        if weight is not None:
            options = [({weight: lam}, self._points({weight: lam}, lam)) for lam in self.lams]
            if hasattr(estimator, "refit"):
                options = [({weight: self.lams[0]}, [point for _, points in options for point in points])]
        elif _frame.sweeps_gamma(estimator):
            pairs = [(gamma, how) for gamma in self.gammas for how in self.idp3 if gamma is not None or not how]
            points = [_Point(gamma, bool(how), {"gamma": None if how == "only" else gamma}) for gamma, how in pairs]
            options = [({"gamma": self.gammas[0]}, points)]
        else:
            options = [({}, self._points({}, refusing={True, "only"}))]
        for epsilon in self.epsilons:
            for changes, points in options:
                yield _Fit(name, clone(estimator).set_params(epsilon=epsilon, **changes), points)

    def _points(
        self, student: dict[str, Any], lam: float = math.nan, refusing: Collection[bool | str] = (True,)
    ) -> list[_Point]:
        """Who answers everyone, and IDP3 at each γ."""
        refused = [gamma for gamma in self.gammas if gamma is not None and {*refusing} & {*self.idp3}]
        answered = [_Point(None, False, student, lam)] * (False in self.idp3)
        return [*answered, *(_Point(gamma, True, student, lam) for gamma in refused)]


_Spent = tuple[PrivacySpent, tuple[LedgerEntry, ...] | None]  # what a fit says, and what it charged
_Row = tuple[dict[str, Any], _Spent | None]  # what was spent stands beside the first row of its release


def _measured(fits: list[_Fit], data: tuple[Any, ...], test: EvaluationSet, n_jobs: int | None) -> Iterator[_Row]:
    """Every point of every fit, in order; where fits run in parallel, a fit at a time."""
    if n_jobs in (None, 1):
        return (row for fit in fits for row in _points_of(fit, data, test))
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    return (row for rows in parallel(delayed(_list_of_points)(fit, data, test) for fit in fits) for row in rows)


def _list_of_points(*args: Any) -> list[_Row]:
    return list(_points_of(*args))


def _points_of(fit: _Fit, data: tuple[Any, ...], test: EvaluationSet) -> Iterator[_Row]:
    """One release, then every point from it."""
    released, spent = _release(fit.estimator, data)
    students: list[tuple[dict[str, Any], Any]] = []
    for point in fit.points:
        student = next((fitted for changes, fitted in students if changes == point.student), None)
        if student is None:
            fitted_as = released.get_params()
            unchanged = all(fitted_as[key] == value for key, value in point.student.items())
            student = released if unchanged else released.refit(**point.student)
            students.append((point.student, student))
        measured = test.measure(student, data[-1], point.gamma if point.refuse else None)
        yield {**_row(fit.name, released, point), **measured}, spent if point is fit.points[0] else None


def _check_room_of_all(fits: Sequence[_Fit], data: tuple[Any, ...]) -> None:
    """Ask ledgers for the room of all fits before the first."""
    own = [fit.estimator for fit in fits if hasattr(fit.estimator, "_planned_entry")]
    with silence():  # the fits say it
        counted = [one for one in own if ledger_in_use(one.ledger) is not None]
        check_room("frontier", *((one.ledger, one._planned_entry(*data[:2], **_given(one, data))) for one in counted))


def _given(estimator: Any, data: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments of a fit by name."""
    _, _, subject, sensitive_features, public = data
    given = {"sensitive_features": sensitive_features, "X_public": public, "subject": subject}
    if "X_public" not in inspect.signature(estimator.fit).parameters:  # a method that needs none, beside others that do
        del given["X_public"]
    return {name: value for name, value in given.items() if value is not None}


def _release(estimator: Any, data: tuple[Any, ...]) -> tuple[Any, _Spent]:
    """The private fit, and what it spent."""
    ledger = _frame.counting_ledger(estimator)
    params = estimator.get_params(deep=False)
    watched = ledger is not None or "ledger" not in params or ledger_in_use(params["ledger"]) is None
    released = estimator.fit(*data[:2], **_given(estimator, data))
    charged = () if ledger is None else tuple(ledger.entries)
    return released, (released.privacy_, charged if watched else None)


def _row(name: str, released: Any, point: _Point) -> dict[str, Any]:
    """What is known of a point before it is measured."""
    held = {"gamma": _frame.as_gamma(point.gamma), "student_gamma": point.student_gamma, "lam": float(point.lam)}
    params = _frame.expression(clone(released).set_params(**point.student))
    return {"estimator": name, **_frame.stated(released.privacy_), **held, "idp3": point.refuse, "params": params}


def _named(estimators: Any) -> dict[str, Any]:
    if isinstance(estimators, Mapping):
        named = dict(estimators)
    else:
        listed = list(estimators) if isinstance(estimators, list | tuple) else [estimators]
        names = [type(estimator).__name__ for estimator in listed]
        numbered = enumerate(zip(names, listed, strict=True), 1)
        named = {name if names.count(name) == 1 else f"{name} {j}": one for j, (name, one) in numbered}
    if not named:
        raise ValueError("The 'estimators' parameter of frontier is empty.")
    for name, estimator in named.items():
        if is_regressor(estimator):
            raise ValueError(
                f"frontier sweeps classifiers, and {name!r} predicts amounts. Use frontier_of_table, which takes both."
            )
        has = set[str](getattr(estimator, "get_params", dict)())
        swept = {"epsilon", "delta"} <= has and (_frame.sweeps_gamma(estimator) or _frame.parity_weight(estimator))
        if not swept and not {"epsilon", "delta", "backend", "estimator"} <= has:
            raise ValueError(
                f"frontier cannot sweep {name!r}: an estimator needs the parameters 'epsilon' and 'delta', and either "
                "'gamma' and the method refit(gamma=), as FairPATEClassifier has, or 'lam', or it must be a "
                "SyntheticDataClassifier."
            )
    return named
