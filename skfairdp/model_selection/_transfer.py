"""Specification without the data: what a frontier measured on one data set says about another."""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.frozen import FrozenEstimator

from skfairdp import _utils
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.fairness import largest_disparity, parity_bound, tally
from skfairdp.model_selection import _frame
from skfairdp.postprocessing import IDP3
from skfairdp.privacy import Account, PrivacySpent, Protects

_GUARANTEE = ["protects", "neighboring_relation"]
_SETTING = ["gamma", "student_gamma", "lam", "idp3"]
_MEASURED = ["accuracy", "disparity", "coverage"]
_SAME_EPSILON = 0.01  # calibrations stop within a thousandth of what was asked for


def transfer_frontier(
    source: Any, target: Any, *, tolerance: float = 0.0, reference: Sequence[float] | None = None
) -> pd.DataFrame:
    """Compare the frontiers of two data sets of the same task: how far does each operating point move?

    A regulator who may not see the private data can measure a frontier on data of the same kind, and specify from it
    the least that has to be guaranteed (RQ3 of "Learning to walk impartially on the Pareto frontier of fairness,
    privacy, and utility"). This measures how well that transfers: for every setting that both frontiers have,
    what was measured on either, and what the target reaches within the bounds that the source suggests.

    No private row is read and nothing is spent: the tables are what their own ε cover.

    Parameters
    ----------
    source, target : DataFrame, or fitted ParetoSearchCV
        As :func:`frontier` returns them, or searches. They share kinds of guarantee and settings (ε within 1 %, γ, λ,
        IDP3; the constructor call as well where that does not tell rows apart).
    tolerance : float, default=0.0
        How far above the source's gap, and below its coverage, a point of the target may lie and still meet the
        specification.
    reference : (accuracy, disparity), default=None
        Worst acceptable values for the hypervolumes in (accuracy, gap). None is the worst in either table.

    Returns
    -------
    DataFrame
        One row for each setting in both tables, in the order of the source: its guarantee and setting; accuracy,
        disparity and coverage on both (``_source``, ``_target``) and their ``_shift``, target minus source;
        ``non_dominated_source`` and ``_target`` among these settings; ``feasible``: some setting of the target costs no
        more ε, has no larger gap and no smaller coverage than this one has on the source; ``attainable_accuracy``: the
        best accuracy of those. ``attrs["summary"]`` says for each kind of guarantee how far points move in the median
        and at most, how alike settings rank (Spearman's correlation of accuracies), which share of the source's
        frontier lies on the target's (``frontier_kept``), the share of ``feasible`` points of the source's frontier,
        and both hypervolumes.

    Raises
    ------
    ValueError
        Not two tables, no setting in common, or rows that nothing tells apart.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.model_selection import transfer_frontier
    >>> here = pd.DataFrame({"epsilon": [1.0, 1.0], "protects": "record", "neighboring_relation": "replace one record",
    ...                      "gamma": [0.05, None], "student_gamma": [0.05, None], "lam": None, "idp3": False,
    ...                      "accuracy": [0.80, 0.82], "disparity": [0.04, 0.10], "coverage": 1.0})
    >>> there = here.assign(accuracy=[0.78, 0.81], disparity=[0.03, 0.12])
    >>> moved = transfer_frontier(here, there)
    >>> moved[["gamma", "accuracy_shift", "disparity_shift", "feasible"]].round(2).values.tolist()
    [[0.05, -0.02, -0.01, True], [nan, -0.01, 0.02, True]]
    >>> moved.attrs["summary"][0]["accuracy_shift_max"].round(2)
    np.float64(0.02)
    """
    tables = [_table(given, name) for given, name in ((source, "source"), (target, "target"))]
    # An ε of the target that lies this close to one of the source, of the same guarantee, was asked for as the same.
    tables[0]["_level"] = tables[0]["epsilon"]
    tables[1]["_level"] = _levels(*tables)
    keys = [*_GUARANTEE, "_level", *(c for c in ("delta", *_SETTING) if all(c in table for table in tables))]
    if all("estimator" in table for table in tables):
        keys.append("estimator")
    if any(table.duplicated(keys).any() for table in tables) and all("params" in table for table in tables):
        keys.append("params")
    if any(table.duplicated(keys).any() for table in tables):
        raise ValueError(
            f"Rows of transfer_frontier with the same {keys} are ambiguous. Leave one of each, or give them "
            "different names in the column 'estimator'."
        )
    both = tables[0].merge(tables[1], on=keys, suffixes=("_source", "_target"), how="inner")
    if both.empty:
        raise ValueError(
            "The two tables of transfer_frontier have no setting in common: same guarantee, δ included, ε within 1 %, "
            "and the same gamma, lam and idp3. Measure both over the same grid."
        )
    moved = both[keys].rename(columns={"_level": "epsilon"})
    for name in _MEASURED:
        for side in ("source", "target"):
            moved[f"{name}_{side}"] = both[f"{name}_{side}"]
        moved[f"{name}_shift"] = moved[f"{name}_target"] - moved[f"{name}_source"]
    for side in ("source", "target"):
        measured = {name: moved[f"{name}_{side}"] for name in _MEASURED}
        side_frame = moved[_GUARANTEE].assign(dataset="", epsilon=moved["epsilon"], **measured)
        moved[f"non_dominated_{side}"] = _frame.mark_non_dominated(side_frame)
    attainable = [_attainable(row, moved, tolerance) for _, row in moved.iterrows()]
    moved["feasible"] = [not math.isnan(value) for value in attainable]
    moved["attainable_accuracy"] = attainable
    moved.attrs = {"summary": [_summary(part, key, reference) for key, part in moved.groupby(_GUARANTEE, sort=False)]}
    return moved


def _table(given: Any, name: str) -> pd.DataFrame:
    frame = getattr(given, "pareto_table_", given)
    needed = [*_GUARANTEE, "epsilon", *_MEASURED]
    if not isinstance(frame, pd.DataFrame) or not set(needed) <= set(frame.columns):
        raise ValueError(
            f"The {name!r} of transfer_frontier must be a frame of frontier() or a fitted ParetoSearchCV, with the "
            f"columns {needed}. Got {type(given).__name__}."
        )
    if frame.empty:
        raise ValueError(f"The {name!r} of transfer_frontier has no rows.")
    plain = pd.DataFrame({column: frame[column].to_numpy() for column in frame.columns})
    for column in ("gamma", "student_gamma", "lam"):
        if column in plain:
            plain[column] = plain[column].astype(float)
    return plain


def _levels(source: pd.DataFrame, target: pd.DataFrame) -> list[float]:
    """For each ε of the target the one of the source that it stands for. An ε of another guarantee is no likeness."""
    known = {kind: np.unique(part["epsilon"]) for kind, part in source.groupby(_GUARANTEE)}
    kinds, found = target[_GUARANTEE].itertuples(index=False, name=None), []
    for kind, value in zip(kinds, target["epsilon"].astype(float).tolist(), strict=True):
        levels = known.get(kind, np.array([value]))
        nearest = float(levels[np.argmin(np.abs(levels - value))])
        found.append(nearest if nearest == value or abs(nearest - value) <= _SAME_EPSILON * abs(value) else value)
    return found


def _attainable(row: Any, moved: pd.DataFrame, tolerance: float) -> float:
    """Best accuracy on the target within what this point has on the source; NaN where nothing is."""
    affordable = (moved[_GUARANTEE] == row[_GUARANTEE]).all(axis=1) & (moved["epsilon"] <= row["epsilon"])
    as_fair = moved["disparity_target"] <= row["disparity_source"] + tolerance
    meets = affordable & as_fair & (moved["coverage_target"] >= row["coverage_source"] - tolerance)
    return float(moved.loc[meets, "accuracy_target"].max()) if meets.any() else math.nan


def _summary(part: pd.DataFrame, key: Any, reference: Sequence[float] | None) -> dict[str, Any]:
    chosen = part[part["non_dominated_source"]]
    found: dict[str, Any] = {**dict(zip(_GUARANTEE, key, strict=True)), "n_points": len(part)}
    for name in _MEASURED:
        moves = part[f"{name}_shift"].abs()
        found[f"{name}_shift_median"], found[f"{name}_shift_max"] = moves.median(), moves.max()
    varies = all(part[f"accuracy_{side}"].nunique() > 1 for side in ("source", "target"))
    accuracies = part["accuracy_source"], part["accuracy_target"]
    found["rank_correlation"] = float(spearmanr(*accuracies).statistic) if varies else math.nan
    found["frontier_kept"] = float(chosen["non_dominated_target"].mean())
    found["feasible"] = float(chosen["feasible"].mean())
    pairs = {side: part[[f"accuracy_{side}", f"disparity_{side}"]].to_numpy(float) for side in ("source", "target")}
    if reference is None:  # the smallest accuracy and the largest gap of both: one corner, or volumes would not compare
        together = np.concatenate(list(pairs.values()))
        reference = float(np.nanmin(together[:, 0])), float(np.nanmax(together[:, 1]))
    for side, points in pairs.items():
        found[f"hypervolume_{side}"] = _frame.hypervolume(points, reference, [False, True])
    return found


class EvaluationSet:
    """Rows to measure on, as arguments of a function whose names end like this."""

    def __init__(self, X: Any, y: Any, sensitive_features: Any, *, owner: str, end: str = "") -> None:
        name, rows = f"sensitive_features{end}", X.shape[0] if hasattr(X, "shape") else len(X)
        _utils.check_same_index(owner, **{f"X{end}": X, f"y{end}": y, name: sensitive_features})
        self.X, self.y, self.owner = X, _utils.as_labels(y, rows, owner=owner, name=f"y{end}", check_kind=False), owner
        self.groups = _utils.as_groups(sensitive_features, len(self.y), owner=owner, name=name)
        self.codes, _ = _utils.encode_within(self.groups, None, owner=owner, name=name, parameter=name)

    def refuse_others(self, y: Any, *estimators: Any) -> None:
        """Before anything is spent: texts that are to be measured by numbers, or the opposite."""
        schemas = (getattr(estimator, "schema", None) for estimator in estimators)
        for labels in (y, *(getattr(one, "classes", None) for one in (*estimators, *schemas))):
            if labels is not None:
                _utils.hits(self.y[:1], np.ravel(np.asarray(labels, dtype=object))[:1], self.owner)

    def measure(self, student: Any, public: _utils.PublicData | None, gamma: float | None) -> dict[str, float]:
        """Accuracy and disparity of the answered rows, and their share; with IDP3 where gamma is given."""
        if gamma is None:
            predicted = student.predict(self.X)
        else:
            refusing = IDP3(FrozenEstimator(student), gamma=gamma)
            if public is None or public.sensitive_features is None:
                refusing.set_params(groups=_utils.group_domain(self.groups).tolist())
                refusing.fit(self.X, sensitive_features=self.groups)
            else:
                refusing.fit(public.X, sensitive_features=public.sensitive_features)
            predicted = refusing.predict(self.X, sensitive_features=self.groups)
        return self.measure_predictions(predicted, student.classes_)

    def references(self, dataset: str = "", **fitted: Any) -> list[dict[str, Any]]:
        """What to compare with: the majority class, and fitted models by name, which have no ε."""
        values, counts = np.unique(self.y, return_counts=True)
        common = self.measure_predictions(np.full(len(self.y), values[counts.argmax()]), values)
        marks = [{"name": "majority class", "private": True, **common}]
        for name, model in fitted.items():
            measured = self.measure_predictions(np.asarray(model.predict(self.X)), model.classes_)
            marks.append({"name": name.replace("_", " "), "private": False, **measured})
        return [{"dataset": dataset, **mark} for mark in marks]

    def measure_predictions(self, predicted: Any, known_classes: Any) -> dict[str, float]:
        """The same of predictions; what is no class is a refusal."""
        classes = list(known_classes)
        answered = np.isin(predicted, classes)
        if not answered.any():
            return {"accuracy": math.nan, "disparity": math.nan, "gap_bound": math.nan, "coverage": 0.0}
        columns = np.array([classes.index(label) for label in predicted[answered].tolist()])
        counts = tally(self.codes[answered], columns, (int(self.codes.max()) + 1, len(classes)))
        hits, gap = _utils.hits(self.y[answered], predicted[answered], self.owner), largest_disparity(counts)
        # what is refused follows from the rows before it: these answers are no independent draws
        bound = parity_bound(counts) if answered.all() else math.nan
        shares = {"accuracy": float(hits.mean()), "coverage": float(answered.mean())}
        return {**shares, "disparity": gap, "gap_bound": bound}


def measure_estimators(estimators: Any, X: Any, y: Any, *, sensitive_features: Any, dataset: str = "") -> pd.DataFrame:
    """Measure accuracy, fairness gap and coverage of fitted estimators on the same rows.

    Estimators that were fitted on the same private rows are composed: ``attrs["guarantees"]`` holds the ε of publishing
    all of them. Nothing is spent here, and no ε covers the rows to measure on: they have to be public, or the figures
    are for your eyes only.

    Parameters
    ----------
    estimators : dict of name → estimator, list of estimators, or an estimator
        Fitted, on the same private rows. Each has ``privacy_``, or post-processes one that has it
        (:class:`~skfairdp.postprocessing.IDP3`).
    X, y, sensitive_features
        Rows to measure on, their labels and groups.
    dataset : str, default=""
        Name for the column ``dataset``.

    Returns
    -------
    DataFrame
        One row for each estimator, with columns as of :func:`frontier`.

    Raises
    ------
    ValueError
        An estimator without ``privacy_``, or lengths that do not match.

    Warns
    -----
    PrivacyLeakWarning
        Something inside read rows and states no guarantee.

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> from skfairdp.model_selection import measure_estimators
    >>> rows = make_biased_classification(2000, disparity=0.2, random_state=0)
    >>> split = train_private_public_test_split(*rows, random_state=0)
    >>> model = PATEClassifier(classes=[0, 1]).fit(split.X, split.y, X_public=split.public)
    >>> table = measure_estimators(
    ...     {"PATE": model}, split.X_test, split.y_test, sensitive_features=split.sensitive_features_test)
    >>> table["estimator"].tolist(), table["coverage"].tolist(), round(table.attrs["guarantees"][0]["epsilon_total"], 2)
    (['PATE'], [1.0], 1.0)
    """
    test = EvaluationSet(X, y, sensitive_features, owner="measure_estimators")
    rows: list[dict[str, Any]] = []
    spent: dict[tuple[str, str], PrivacySpent] = {}
    n_fits: dict[tuple[str, str], set[Any]] = {}
    if not isinstance(estimators, Mapping):
        several = [estimators] if hasattr(estimators, "predict") else estimators
        listed = [(type(estimator).__name__, estimator) for estimator in several]
        estimators = dict(listed)
        if len(estimators) < len(listed):
            estimators = {f"{name} {j}": estimator for j, (name, estimator) in enumerate(listed, 1)}
    for name, estimator in estimators.items():
        account = Account.of(estimator)
        if account.found and account.unseen:
            _utils.warn_caller(account.warning("measure_estimators"), PrivacyLeakWarning)
        if (privacy := account.total()) is None:
            raise ValueError(
                f"measure_estimators cannot include {name!r}: it has no privacy_, so what it protects is unknown. "
                "Leave it out."
            )
        kind = privacy.protects, privacy.neighboring_relation
        spent[kind] = spent[kind] + privacy if kind in spent else privacy
        # students of one release, and what post-processes a model, share it
        n_fits.setdefault(kind, set()).add(privacy.own.release or id(privacy))
        rows.append({"dataset": dataset, "estimator": name, **_point(estimator, privacy, test)})
    frame = pd.DataFrame(rows)
    references = test.references(dataset)
    frame["non_dominated"] = _frame.mark_non_dominated(frame, references)
    frame.attrs["references"] = references
    frame.attrs["n_test"] = len(frame) and len(test.y)
    frame.attrs["guarantees"] = guarantees = []
    for of, total in spent.items():
        epsilon = total.epsilon
        if of[0] == Protects.SENSITIVE_ATTRIBUTE:  # of all fits, for those for records have seen it
            epsilon = _frame.composed_epsilon([_frame.of_the_attribute(one) for one in spent.values()])
        guarantees.append(_frame.guarantee_record(*of, total.delta, epsilon, len(n_fits[of])))
    return frame


def _point(estimator: Any, privacy: PrivacySpent, test: EvaluationSet) -> dict[str, Any]:
    gamma = _frame.as_gamma(estimator.get_params(deep=False).get("gamma"))
    refuses = "sensitive_features" in inspect.signature(estimator.predict).parameters
    held = {"gamma": gamma, "student_gamma": gamma, "idp3": refuses}
    predicted = estimator.predict(test.X, **({"sensitive_features": test.groups} if refuses else {}))
    return {**_frame.stated(privacy), **held, **test.measure_predictions(predicted, estimator.classes_)}
