"""The five tabular benchmarks as scikit-learn ``Bunch`` objects, their traps handled."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skfairdp._docs import shared_docs
from skfairdp.datasets._files import Source, read_table
from skfairdp.datasets._sources import ADULT, BANK, COMPAS, CREDIT, PARKINSONS

Grouping = Callable[[pd.DataFrame], pd.Series]


@shared_docs
def fetch_adult(
    *,
    data_home: str | os.PathLike[str] | None = None,
    sensitive: str | Sequence[str] = "sex",
    include_sensitive: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load UCI Adult (Census Income): does a person earn more than 50 000 dollars a year?

    48,842 rows, 23.9 % positive. The survey weight ``fnlwgt`` is left out, missing cells become the category
    ``"unknown"``, and the group is not among the features.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``adult.csv.gz`` (or ``adult.csv``). None: the folder in the environment variable
        ``SKFAIRDP_DATA``. Where the file is not found, OpenML (data_id 1590), cached in ``data_home``.
    sensitive : {"sex", "race"} or a list of both, default="sex"
        ``"race"`` is White against Non-White, as the papers have it. A list gives a DataFrame of groups.
    {include_sensitive, return_X_y}
        data : DataFrame of shape (48842, 12) with one group column dropped;
        target : Series of 0 and 1 (1: ``>50K``);
        sensitive_features : Series, or DataFrame where ``sensitive`` is a list;
        split : Series of ``"train"`` and ``"test"`` (UCI's files), or None from OpenML;
        feature_names, target_names, DESCR, source.

    {fetch_raises}

    References
    ----------
    B. Becker, R. Kohavi (1996), doi:10.24432/C5XW20. CC BY 4.0 as listed by UCI.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_adult
    >>> adult = fetch_adult()                                     # doctest: +SKIP
    >>> adult.data.shape, adult.sensitive_features.name           # doctest: +SKIP
    ((48842, 12), 'sex')
    """
    frame, where = read_table(ADULT, data_home)
    split = frame["split"].copy() if "split" in frame.columns else None
    for column in ("workclass", "occupation", "native-country"):
        frame[column] = frame[column].astype(object).where(frame[column].notna(), "unknown")
    groupings: dict[str, tuple[str, Grouping]] = {
        "sex": ("sex", lambda f: f["sex"]),
        "race": ("race", lambda f: _either(f["race"] == "White", "White", "Non-White")),
    }
    return _bunch(
        ADULT,
        (frame, where),
        groupings,
        (sensitive, include_sensitive, return_X_y),
        drop=["fnlwgt"],
        target_names=["<=50K", ">50K"],
        split=split,
    )


@shared_docs
def fetch_bank(
    *,
    data_home: str | os.PathLike[str] | None = None,
    sensitive: str | Sequence[str] = "age",
    include_sensitive: bool = False,
    drop_duration: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load UCI Bank Marketing (``bank-full``): does a client subscribe a term deposit?

    45,211 rows, 11.7 % positive. ``unknown`` is a category of its own.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``bank.csv.gz`` (or ``bank.csv``). None: the folder in the environment variable
        ``SKFAIRDP_DATA``. Where the file is not found, OpenML (data_id 1461), cached in ``data_home``.
    sensitive : {"age", "marital"} or a list of both, default="age"
        ``"age"`` is ``"<60"`` against ``">=60"``; the column ``age`` is then not a feature.
    {include_sensitive}
    drop_duration : bool, default=False
        Leave out ``duration``. It is known only after the call, so a predictor to be used before it must not
        have it; the papers keep it.
    {return_X_y}
        data : DataFrame of shape (45211, 15) with one group column dropped;
        target : Series of 0 and 1 (1: subscribed);
        sensitive_features : Series, or DataFrame where ``sensitive`` is a list;
        feature_names, target_names, DESCR, source.

    {fetch_raises}

    References
    ----------
    S. Moro, P. Rita, P. Cortez (2014), doi:10.24432/C5K306. CC BY 4.0 as listed by UCI.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_bank
    >>> bank = fetch_bank(drop_duration=True)                     # doctest: +SKIP
    >>> "age" in bank.data.columns                                # doctest: +SKIP
    False
    """
    frame, where = read_table(BANK, data_home)
    groupings: dict[str, tuple[str, Grouping]] = {
        "age": ("age", lambda f: _either(f["age"] >= 60, ">=60", "<60")),
        "marital": ("marital", lambda f: f["marital"]),
    }
    return _bunch(
        BANK,
        (frame, where),
        groupings,
        (sensitive, include_sensitive, return_X_y),
        drop=["duration"] if drop_duration else [],
        target_names=["no", "yes"],
    )


@shared_docs
def fetch_compas(
    *,
    data_home: str | os.PathLike[str] | None = None,
    sensitive: str | Sequence[str] = "race",
    include_sensitive: bool = False,
    all_rows: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load ProPublica's COMPAS table: was a defendant charged again within two years?

    6,172 of 7,214 rows, 45.5 % positive: those that ProPublica keeps, whose score belongs to the charge (screened
    within 30 days of the arrest), is known, and is about no mere traffic offence. What COMPAS itself answers (deciles,
    risk levels) is no feature, and neither are names, dates and case numbers.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``compas-scores-two-years.csv``, or ``.csv.gz``, as ProPublica published it. None: the folder in
        the environment variable ``SKFAIRDP_DATA``. There is no fall-back: no copy on OpenML is known to be faithful.
    sensitive : {"race", "sex"} or a list of both, default="race"
        ``"race"`` is White (``Caucasian`` in the file) against Non-White. With ``include_sensitive`` the column
        ``race`` has the six names of the file.
    {include_sensitive}
    all_rows : bool, default=False
        Keep the rows that ProPublica leaves out.
    {return_X_y}
        data : DataFrame of shape (6172, 7) with one group column dropped;
        target : Series of 0 and 1 (1: charged again);
        sensitive_features : Series, or DataFrame where ``sensitive`` is a list;
        feature_names, target_names, DESCR, source.

    Raises
    ------
    FileNotFoundError
        The file cannot be found. The message says how to give the folder.
    ValueError
        The file is not the published table, or ``sensitive`` is not one of the allowed names.

    References
    ----------
    J. Angwin, J. Larson, S. Mattu, L. Kirchner, "Machine bias", ProPublica, 2016.
    https://github.com/propublica/compas-analysis

    Examples
    --------
    >>> from skfairdp.datasets import fetch_compas
    >>> fetch_compas().data.shape                                 # doctest: +SKIP
    (6172, 7)
    """
    frame, where = read_table(COMPAS, data_home)
    if not all_rows:
        near = frame["days_b_screening_arrest"].between(-30, 30)
        known = (frame["is_recid"] != -1) & (frame["score_text"] != "N/A") & (frame["c_charge_degree"] != "O")
        frame = frame[near & known].reset_index(drop=True)
    groupings: dict[str, tuple[str, Grouping]] = {
        "race": ("race", lambda f: _either(f["race"] == "Caucasian", "White", "Non-White")),
        "sex": ("sex", lambda f: f["sex"]),
    }
    return _bunch(
        COMPAS,
        (frame, where),
        groupings,
        (sensitive, include_sensitive, return_X_y),
        drop=["days_b_screening_arrest", "is_recid", "score_text"],
        target_names=["not charged again", "charged again"],
    )


@shared_docs
def fetch_credit(
    *,
    data_home: str | os.PathLike[str] | None = None,
    sensitive: str | Sequence[str] = "sex",
    include_sensitive: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load UCI Default of Credit Card Clients: does a client default on next month's payment?

    30,000 rows, 22.1 % positive. The codes of ``SEX``, ``EDUCATION`` and ``MARRIAGE`` become names; the
    undocumented codes (``EDUCATION`` 0, 5, 6 and ``MARRIAGE`` 0) join ``"others"``.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``credit.csv.gz`` (or ``credit.csv``). None: the folder in the environment variable
        ``SKFAIRDP_DATA``. Where the file is not found, OpenML (data_id 42477), cached in ``data_home``.
    sensitive : {"sex", "education", "marriage"} or a list of them, default="sex"
    {include_sensitive, return_X_y}
        data : DataFrame of shape (30000, 22) with one group column dropped;
        target : Series of 0 and 1 (1: default);
        sensitive_features : Series, or DataFrame where ``sensitive`` is a list;
        feature_names, target_names, DESCR, source.

    {fetch_raises}

    References
    ----------
    I-C. Yeh, C-h. Lien (2009), doi:10.24432/C55S3H. CC BY 4.0 as listed by UCI.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_credit
    >>> sorted(set(fetch_credit().sensitive_features))            # doctest: +SKIP
    ['female', 'male']
    """
    frame, where = read_table(CREDIT, data_home)
    frame["SEX"] = frame["SEX"].map({1: "male", 2: "female"})
    frame["EDUCATION"] = (
        frame["EDUCATION"].map({1: "graduate school", 2: "university", 3: "high school"}).fillna("others")
    )
    frame["MARRIAGE"] = frame["MARRIAGE"].map({1: "married", 2: "single"}).fillna("others")
    groupings: dict[str, tuple[str, Grouping]] = {
        "sex": ("SEX", lambda f: f["SEX"]),
        "education": ("EDUCATION", lambda f: f["EDUCATION"]),
        "marriage": ("MARRIAGE", lambda f: f["MARRIAGE"]),
    }
    return _bunch(
        CREDIT,
        (frame, where),
        groupings,
        (sensitive, include_sensitive, return_X_y),
        target_names=["no default", "default"],
    )


@shared_docs
def fetch_parkinsons(
    *,
    data_home: str | os.PathLike[str] | None = None,
    sensitive: str | Sequence[str] = "sex",
    include_sensitive: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load UCI Parkinsons Telemonitoring: is the total UPDRS score above the median of the table?

    5,875 recordings of 42 people, 49.9 % positive (above 27.576; the six rows at the median are negative).
    Both scores and the person's number are left out of the features.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``parkinsons.csv.gz`` (or ``parkinsons.csv``). None: the folder in the environment
        variable ``SKFAIRDP_DATA``. There is no fall-back: no copy on OpenML is known to be faithful.
    sensitive : {"sex"}, default="sex"
    include_sensitive : bool, default=False
        Keep ``sex`` among the features.
    {return_X_y}
        data : DataFrame of shape (5875, 18);
        target : Series of 0 and 1 (1: above the median);
        sensitive_features : Series of ``"male"`` and ``"female"``;
        subject : Series of 42 person numbers. Split by it (``train_private_public_test_split(...,
        subject=)``) to measure generalisation to new people, and know that a record-level guarantee then
        protects one recording, not one person;
        feature_names, target_names, DESCR, source.

    Raises
    ------
    FileNotFoundError
        The file cannot be found. The message says how to give the folder.
    ValueError
        The file is not the published table, or ``sensitive`` is not one of the allowed names.

    References
    ----------
    A. Tsanas, M. Little, P. McSharry, L. Ramig (2009), doi:10.24432/C5ZS3N. CC BY 4.0 as listed by UCI.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_parkinsons
    >>> fetch_parkinsons().subject.nunique()                      # doctest: +SKIP
    42
    """
    frame, where = read_table(PARKINSONS, data_home)
    frame["sex"] = frame["sex"].map({0: "male", 1: "female"})
    subject = frame["subject#"].rename("subject")
    return _bunch(
        PARKINSONS,
        (frame, where),
        {"sex": ("sex", lambda f: f["sex"])},
        (sensitive, include_sensitive, return_X_y),
        drop=["subject#", "motor_UPDRS", "total_UPDRS"],
        target_names=["low", "high"],
        subject=subject,
    )


def _either(condition: pd.Series, yes: str, no: str) -> pd.Series:
    return pd.Series(np.where(condition, yes, no), index=condition.index)


def _bunch(
    source: Source,
    table: tuple[pd.DataFrame, str],
    groupings: dict[str, tuple[str, Grouping]],
    asked: tuple[str | Sequence[str], bool, bool],
    *,
    drop: Sequence[str] = (),
    target_names: Sequence[str],
    **extra: Any,
) -> Any:
    """Take target and groups out; ``groupings`` maps a name to its column and to how it is read.

    ``asked`` holds the arguments ``sensitive``, ``include_sensitive`` and ``return_X_y``.
    """
    (frame, where), (sensitive, include_sensitive, return_X_y) = table, asked
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not names or any(name not in groupings for name in names):
        raise ValueError(
            f"The 'sensitive' parameter of fetch_{source.name} must be one of {sorted(groupings)}, or a list of them. "
            f"Got {sensitive!r} instead."
        )
    groups = pd.DataFrame({name: groupings[name][1](frame).astype(object) for name in names}, index=frame.index)
    dropped = {*drop, source.target, *(() if include_sensitive else (groupings[name][0] for name in names))}
    data = frame[[column for column in source.columns if column not in dropped]].copy()
    target = source.labels(frame)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        sensitive_features=groups[sensitive] if isinstance(sensitive, str) else groups,
        feature_names=list(data.columns),
        target_names=list(target_names),
        name=source.name,
        source=where,
        DESCR=f"{source.name}: {len(target)} rows, {target.sum()} positive; see {source.homepage}.",
        **extra,
    )
