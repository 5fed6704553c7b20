"""Classes and groups by which a search scores private rows: those of a schema, declared ones, or those of the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._utils import (
    PublicData,
    as_groups,
    encode_labels,
    given_domain,
    group_domain,
    split_sensitive_columns,
    warn_caller,
)
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.model_selection._candidate import Candidate, Rows
from skfairdp.schema import RawTable, Schema


@dataclass(frozen=True)
class ScoredRows:
    """What a noisy table counts beside the predictions."""

    classes: NDArray[Any]
    label_codes: NDArray[np.int64]
    domain: NDArray[np.object_] | None
    group_codes: NDArray[np.int64] | None


def read_scored(owner: str, candidate: Candidate, rows: Rows, *, private: bool) -> ScoredRows:
    """Read the private rows that are scored. With a schema every cell can be read, so nothing about them is an
    error.
    """
    schema = candidate.domain("schema")
    if schema is not None:
        return _by_schema(owner, schema, rows, private=private)
    classes = _classes(owner, candidate, rows, private=private)
    codes = encode_labels(rows.y, classes, owner=owner, name="y", parameter="classes")
    groups = _groups_of(owner, candidate, rows)
    if groups is None:
        return ScoredRows(classes, codes, None, None)
    domain = _group_domain(owner, candidate, rows, groups)
    of_groups = encode_labels(groups, domain, owner=owner, name="sensitive_features", parameter="groups")
    return ScoredRows(classes, codes, domain, of_groups)


def _by_schema(owner: str, schema: Schema, rows: Rows, *, private: bool) -> ScoredRows:
    raw = RawTable.roles(schema, rows.X, owner=owner)
    codes = raw.labels(rows.y, public=not private)
    if rows.sensitive_features is None and not raw.has_groups:
        return ScoredRows(raw.classes, codes, None, None)
    return ScoredRows(raw.classes, codes, raw.domain, raw.groups(rows.sensitive_features))


def _classes(owner: str, candidate: Candidate, rows: Rows, *, private: bool) -> NDArray[Any]:
    given = candidate.domain("classes")
    if given is not None:
        return np.asarray(sorted(given_domain(given, owner=owner, parameter="classes").tolist()))
    if private:
        _leaks(owner, "classes")
    return np.unique(rows.y)


def _groups_of(owner: str, candidate: Candidate, rows: Rows) -> NDArray[Any] | None:
    if rows.sensitive_features is not None:
        return as_groups(rows.sensitive_features, len(rows.y), owner=owner)
    columns = candidate.domain("sensitive_columns")
    return None if columns is None else split_sensitive_columns(rows.X, columns, owner=owner)[1]


def _group_domain(owner: str, candidate: Candidate, rows: Rows, groups: NDArray[Any]) -> NDArray[Any]:
    given = candidate.domain("groups")
    if given is not None:
        return given_domain(given, owner=owner, parameter="groups")
    public = rows.public["X_public"]
    known = rows.public["sensitive_features_public"]
    if isinstance(public, PublicData) and known is None:
        known, public = public.sensitive_features, public.X
    if known is not None and public is not None:
        return group_domain(as_groups(known, len(np.asarray(public)), owner=owner, name="the public groups"))
    _leaks(owner, "groups")
    return group_domain(groups)


def _leaks(owner: str, domain: str) -> None:
    warn_caller(
        f"{owner} read its {domain} from the private rows, which reveals them outside the guarantee. Give them with "
        f"the '{domain}' parameter of the estimator.",
        PrivacyLeakWarning,
    )
