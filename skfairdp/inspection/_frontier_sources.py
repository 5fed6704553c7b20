"""Frames for the frontier display: of searches, of several frames, of fitted estimators."""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from sklearn.frozen import FrozenEstimator

from skfairdp.model_selection._frame import mark_non_dominated
from skfairdp.model_selection._test_set import TestSet
from skfairdp.privacy import PrivacySpent

__all__ = ["frame_of_estimators", "frame_of_searches", "joined_frames"]


def joined_frames(
    frames: Sequence[pd.DataFrame], totals: Mapping[tuple[str, str], float] | None = None
) -> pd.DataFrame:
    """Several frames as one.

    What publishing all of them costs is known where ``totals`` says so, and where one frame alone gives a kind of
    guarantee; ε of different frames are never added. Which rows are not dominated is judged anew.
    """
    records: dict[tuple[str, str], dict[str, Any]] = {}
    for frame in frames:
        for record in frame.attrs.get("guarantees", []):
            key = record["protects"], record["neighboring_relation"]
            if key not in records:
                records[key] = dict(record)
                continue
            earlier = records[key]
            earlier["delta"] = max(earlier["delta"], record["delta"])
            earlier["n_fits"] += record["n_fits"]
            earlier["epsilon_total"] = (totals or {}).get(key, math.nan)
    # Columns without a value say nothing about the type of the others.
    plain = [pd.DataFrame(frame).dropna(axis=1, how="all") for frame in frames]
    columns = list(dict.fromkeys(column for frame in frames for column in frame.columns))
    for part in plain:
        part.attrs = {}
    joined = pd.concat(plain, ignore_index=True).reindex(columns=columns)
    joined["non_dominated"] = mark_non_dominated(joined)
    joined.attrs["guarantees"] = list(records.values())
    scored = {frame.attrs.get("scored_on") for frame in frames}
    if len(scored) == 1:
        joined.attrs["scored_on"] = scored.pop()
    return joined


def frame_of_searches(searches: Any) -> pd.DataFrame:
    """The tables of one search, a list of them, or a dict of name → search, on the same private rows."""
    named = dict(searches) if isinstance(searches, Mapping) else None
    listed = list(named.values()) if named else list(searches) if isinstance(searches, list | tuple) else [searches]
    if not listed or not all(hasattr(search, "pareto_table_") for search in listed):
        raise ValueError(
            "ParetoFrontierDisplay.from_search needs fitted searches with a pareto_table_, as ParetoSearchCV has; of a "
            "PrivateSearchCV only the winner may be seen."
        )
    frames: list[pd.DataFrame] = []
    spent: dict[tuple[str, str], PrivacySpent | None] = {}
    for name, search in zip(named or [None] * len(listed), listed, strict=True):
        frame = search.pareto_table_
        if name is not None:
            frame = frame.assign(estimator=name)
            frame.attrs = search.pareto_table_.attrs
        frames.append(frame)
        key = search.privacy_.protects, search.privacy_.neighboring_relation
        try:
            earlier = spent.get(key)
            spent[key] = search.privacy_ if key not in spent else None if earlier is None else earlier + search.privacy_
        except ValueError:  # unlike δ: no total is certified
            spent[key] = None
    if len(frames) == 1:
        return frames[0]
    return joined_frames(frames, {key: math.nan if total is None else total.epsilon for key, total in spent.items()})


def frame_of_estimators(estimators: Any, X: Any, y: Any, sensitive_features: Any, *, dataset: str = "") -> pd.DataFrame:
    """Measure fitted estimators on rows; those that were fitted on the same private rows are composed."""
    named = dict(estimators) if isinstance(estimators, Mapping) else {type(e).__name__: e for e in estimators}
    if not isinstance(estimators, Mapping) and len(named) < len(list(estimators)):
        named = {f"{type(e).__name__} {j + 1}": e for j, e in enumerate(estimators)}
    test = TestSet(X, y, sensitive_features)
    rows: list[dict[str, Any]] = []
    spent: dict[tuple[str, str], PrivacySpent] = {}
    n_fits: dict[tuple[str, str], int] = {}
    counted: set[int] = set()
    for name, estimator in named.items():
        privacy = _privacy_of(estimator)
        if privacy is None:
            raise ValueError(
                f"ParetoFrontierDisplay.from_estimators cannot place {name!r}: it has no privacy_, so nothing says what"
                " it protects. Leave it out."
            )
        key = privacy.protects, privacy.neighboring_relation
        if id(privacy) not in counted:  # students of one release, and what post-processes a model, share its report
            counted.add(id(privacy))
            spent[key] = spent[key] + privacy if key in spent else privacy
            n_fits[key] = n_fits.get(key, 0) + 1
        gamma = estimator.get_params(deep=False).get("gamma")
        gamma = math.nan if gamma is None else float(gamma)
        refuses = "sensitive_features" in inspect.signature(estimator.predict).parameters
        asked = {"sensitive_features": test.groups} if refuses else {}
        predicted = estimator.predict(test.X, **asked)
        rows.append(
            {
                "dataset": dataset,
                "estimator": name,
                "epsilon": privacy.epsilon,
                "delta": privacy.delta,
                "protects": privacy.protects,
                "neighboring_relation": privacy.neighboring_relation,
                "gamma": gamma,
                "student_gamma": gamma,
                "idp3": refuses,
                **test.measure_predictions(predicted, estimator.classes_),
            }
        )
    frame = pd.DataFrame(rows)
    frame["non_dominated"] = mark_non_dominated(frame)
    frame.attrs["n_test"] = len(frame) and len(y)
    frame.attrs["guarantees"] = [
        {
            "protects": protects,
            "neighboring_relation": relation,
            "delta": total.delta,
            "epsilon_total": total.epsilon,
            "n_fits": n_fits[protects, relation],
        }
        for (protects, relation), total in spent.items()
    ]
    return frame


def _privacy_of(estimator: Any) -> PrivacySpent | None:
    """Of an estimator, or of the one it post-processes."""
    while estimator is not None:
        if hasattr(estimator, "privacy_"):
            return estimator.privacy_
        estimator = getattr(estimator, "estimator_", getattr(estimator, "estimator", None))
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
    return None
