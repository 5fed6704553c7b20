"""The five tabular benchmarks as scikit-learn ``Bunch`` objects, their traps handled."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from skfairdp._docs import shared_docs
from skfairdp._typing import Folder, Names

DATA_VARIABLE = "SKFAIRDP_DATA"
#: The column that a group is in, and how it is read.
Grouping = tuple[str, Callable[[pd.DataFrame], pd.Series]]


@dataclass(frozen=True)
class Source:
    """What a faithful copy of one published table looks like, and where one is."""

    name: str
    columns: tuple[str, ...]
    target: str
    rows: int
    positives: int
    positive: object
    homepage: str
    groupings: Mapping[str, Grouping]
    target_names: tuple[str, str]
    no_features: tuple[str, ...] = ()
    openml_id: int | None = None
    openml_columns: tuple[str, ...] | None = None  # names in OpenML's order, where OpenML has placeholders
    openml_target_values: tuple[tuple[str, object], ...] = ()  # OpenML's code -> the value of the original
    label: Callable[[pd.DataFrame], pd.Series] | None = None  # computes the target where it is not a column
    stem: str = ""  # of the published file, where it is not the name

    def labels(self, frame: pd.DataFrame) -> pd.Series:
        """Return 1 for the positive class and 0 for the other one."""
        values = frame[self.target] if self.label is None else self.label(frame)
        return (values == self.positive).astype("int64").rename(self.target)


def data_folder(data_home: Folder) -> Folder:
    """The folder of data sets: the one that is given, or that of the environment variable."""
    return data_home if data_home is not None else os.environ.get(DATA_VARIABLE)


def places_in(names: Sequence[str], data_home: Folder) -> list[Path]:
    """Paths of these names below the folder of data sets; none where there is no folder."""
    home = data_folder(data_home)
    return [Path(home).expanduser() / name for name in names] if home else []


def data_file(name: str, data_home: Folder = None) -> Path | None:
    """Return the local file of a benchmark data set, or None where there is none.

    Looks for ``NAME.csv.gz``, ``NAME.csv`` and ``NAME.npz`` in ``data_home`` and, where that is None, in the folder
    named by the environment variable ``SKFAIRDP_DATA``.

    Parameters
    ----------
    name : {"adult", "bank", "compas-scores-two-years", "credit", "parkinsons", "mnist"}
        The data set.
    data_home : path-like, default=None
        The folder. None: the one named by the environment variable.

    Returns
    -------
    path : pathlib.Path or None
        The first of the three files that is there.

    Examples
    --------
    >>> from skfairdp.datasets import data_file
    >>> data_file("adult", data_home="a/folder/that/is/not/there") is None
    True
    """
    paths = places_in((f"{name}.csv.gz", f"{name}.csv", f"{name}.npz"), data_home)
    return next((path for path in paths if path.is_file()), None)


def read_table(source: Source, data_home: Folder) -> tuple[pd.DataFrame, str]:
    """Return the table in its original columns and where it was read."""
    path = data_file(source.name, data_home) or data_file(source.stem or source.name, data_home)
    if path is not None:
        # Bank has a category "unknown" and Adult empty cells; nothing else may be read as missing.
        frame = pd.read_csv(path, keep_default_na=False, na_values={c: [""] for c in source.columns})
        where = str(path)
    else:
        frame, where = _from_openml(source, data_home), f"OpenML, data_id={source.openml_id}"
    missing = [column for column in source.columns if column not in frame.columns]
    if missing:
        raise ValueError(
            f"The {source.name} table from {where} lacks the column(s) {missing}; get it from {source.homepage}."
        )
    found = (len(frame), int(source.labels(frame).sum()))
    if found != (source.rows, source.positives):
        raise ValueError(
            f"The {source.name} table from {where} is not the published one: it has {found[0]} rows, {found[1]} of "
            f"them positive, where {source.rows} and {source.positives} are expected. Get it from {source.homepage}."
        )
    return frame, where


def from_openml(data_id: int, data_home: Folder, *, as_frame: bool) -> Bunch:
    """What OpenML has of a data set."""
    home = None if data_home is None else str(data_home)
    with warnings.catch_warnings():
        # "Retrying…" would be said before the error of the caller says more.
        warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
        how: dict[str, Any] = {"as_frame": as_frame, "parser": "auto", "n_retries": 1}
        return sklearn_datasets.fetch_openml(data_id=data_id, data_home=home, **how)


def _from_openml(source: Source, data_home: Folder) -> pd.DataFrame:
    where = "OpenML has no copy that is known to be faithful"
    cause: Exception | None = None
    if source.openml_id is not None:
        try:
            bunch = from_openml(source.openml_id, data_home, as_frame=True)
        except (OSError, ValueError, ImportError) as error:
            where, cause = (f"OpenML (data_id={source.openml_id}) could not be read ({type(error).__name__})", error)
        else:
            frame = bunch.data.copy()
            if source.openml_columns is not None and len(source.openml_columns) == frame.shape[1]:
                frame.columns = pd.Index(source.openml_columns)
            for column in frame.select_dtypes("category").columns:
                values = frame[column].astype(object)
                numbers = pd.to_numeric(values, errors="coerce")
                # OpenML declares some numeric codes as categories; the original files have numbers there.
                frame[column] = numbers if bool((numbers.notna() == values.notna()).all()) else values
            values = bunch.target.astype(object)
            if source.openml_target_values:
                values = values.astype(str).map(dict(source.openml_target_values))
            frame[source.target] = values
            return frame
    folder, stem = data_folder(data_home), source.stem or source.name
    looked = "no folder was given" if not folder else f"{folder} has neither {stem}.csv.gz nor {stem}.csv"
    raise FileNotFoundError(
        f"No {source.name} data: {looked}, and {where}. Download it from {source.homepage} as a comma-separated "
        f"{stem}.csv.gz or {stem}.csv with a header row, then give its folder with the environment "
        f"variable {DATA_VARIABLE} or with data_home=."
    ) from cause


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_BANK_FEATURES = _names(
    "age job marital education default balance housing loan contact day month duration campaign pdays previous poutcome"
)
_CREDIT_FEATURES = _names(
    "LIMIT_BAL SEX EDUCATION MARRIAGE AGE PAY_0 PAY_2 PAY_3 PAY_4 PAY_5 PAY_6 BILL_AMT1 BILL_AMT2 BILL_AMT3 BILL_AMT4 "
    "BILL_AMT5 BILL_AMT6 PAY_AMT1 PAY_AMT2 PAY_AMT3 PAY_AMT4 PAY_AMT5 PAY_AMT6"
)
# The median of the published table: a constant of the benchmark, so that the label of a row never depends on
# the other rows that happen to be in the user's sample.
PARKINSONS_MEDIAN = 27.576

ADULT = Source(
    name="adult",
    columns=_names(
        "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
        "capital-gain capital-loss hours-per-week native-country class"
    ),
    target="class",
    rows=48_842,
    positives=11_687,
    positive=">50K",
    homepage="https://doi.org/10.24432/C5XW20",
    groupings={
        "sex": ("sex", lambda f: f["sex"]),
        "race": ("race", lambda f: _either(f["race"] == "White", "White", "Non-White")),
    },
    target_names=("<=50K", ">50K"),
    no_features=("fnlwgt",),
    openml_id=1590,
)
BANK = Source(
    name="bank",
    columns=(*_BANK_FEATURES, "y"),
    target="y",
    rows=45_211,
    positives=5_289,
    positive="yes",
    homepage="https://doi.org/10.24432/C5K306",
    groupings={
        "age": ("age", lambda f: _either(f["age"] >= 60, ">=60", "<60")),
        "marital": ("marital", lambda f: f["marital"]),
    },
    target_names=("no", "yes"),
    openml_id=1461,
    openml_columns=_BANK_FEATURES,
    openml_target_values=(("1", "no"), ("2", "yes")),
)
COMPAS = Source(
    name="compas",
    stem="compas-scores-two-years",
    columns=_names(
        "sex age race juv_fel_count juv_misd_count juv_other_count priors_count days_b_screening_arrest "
        "c_charge_degree is_recid score_text two_year_recid"
    ),
    target="two_year_recid",
    rows=7_214,
    positives=3_251,
    positive=1,
    homepage="https://github.com/propublica/compas-analysis",
    groupings={
        "race": ("race", lambda f: _either(f["race"] == "Caucasian", "White", "Non-White")),
        "sex": ("sex", lambda f: f["sex"]),
    },
    target_names=("not charged again", "charged again"),
    no_features=("days_b_screening_arrest", "is_recid", "score_text"),
)
CREDIT = Source(
    name="credit",
    columns=(*_CREDIT_FEATURES, "default"),
    target="default",
    rows=30_000,
    positives=6_636,
    positive=1,
    homepage="https://doi.org/10.24432/C55S3H",
    groupings={
        "sex": ("SEX", lambda f: f["SEX"]),
        "education": ("EDUCATION", lambda f: f["EDUCATION"]),
        "marriage": ("MARRIAGE", lambda f: f["MARRIAGE"]),
    },
    target_names=("no default", "default"),
    openml_id=42477,
    openml_columns=_CREDIT_FEATURES,
    openml_target_values=(("0", 0), ("1", 1)),
)
PARKINSONS = Source(
    name="parkinsons",
    columns=_names(
        "subject# age sex test_time motor_UPDRS total_UPDRS Jitter(%) Jitter(Abs) Jitter:RAP Jitter:PPQ5 Jitter:DDP "
        "Shimmer Shimmer(dB) Shimmer:APQ3 Shimmer:APQ5 Shimmer:APQ11 Shimmer:DDA NHR HNR RPDE DFA PPE"
    ),
    target="high_UPDRS",
    rows=5_875,
    positives=2_934,
    positive=True,
    homepage="https://doi.org/10.24432/C5ZS3N",
    groupings={"sex": ("sex", lambda f: f["sex"])},
    target_names=("low", "high"),
    no_features=("subject#", "motor_UPDRS", "total_UPDRS"),
    label=lambda frame: frame["total_UPDRS"] > PARKINSONS_MEDIAN,
)


@shared_docs
def fetch_adult(
    *, data_home: Folder = None, sensitive: Names = "sex", include_sensitive: bool = False, return_X_y: bool = False
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
    return _bunch(ADULT, frame, where, sensitive, include_sensitive, return_X_y, split=split)


@shared_docs
def fetch_bank(
    *,
    data_home: Folder = None,
    sensitive: Names = "age",
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
    source = replace(BANK, no_features=("duration",)) if drop_duration else BANK
    return _bunch(source, frame, where, sensitive, include_sensitive, return_X_y)


@shared_docs
def fetch_compas(
    *,
    data_home: Folder = None,
    sensitive: Names = "race",
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

    {fetch_file_raises}

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
    return _bunch(COMPAS, frame, where, sensitive, include_sensitive, return_X_y)


@shared_docs
def fetch_credit(
    *, data_home: Folder = None, sensitive: Names = "sex", include_sensitive: bool = False, return_X_y: bool = False
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
    degrees = {1: "graduate school", 2: "university", 3: "high school"}
    frame["EDUCATION"] = frame["EDUCATION"].map(degrees).fillna("others")
    frame["MARRIAGE"] = frame["MARRIAGE"].map({1: "married", 2: "single"}).fillna("others")
    return _bunch(CREDIT, frame, where, sensitive, include_sensitive, return_X_y)


@shared_docs
def fetch_parkinsons(
    *, data_home: Folder = None, sensitive: Names = "sex", include_sensitive: bool = False, return_X_y: bool = False
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

    {fetch_file_raises}

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
    return _bunch(PARKINSONS, frame, where, sensitive, include_sensitive, return_X_y, subject=subject)


def _either(condition: pd.Series, yes: str, no: str) -> pd.Series:
    return pd.Series(np.where(condition, yes, no), index=condition.index)


def _bunch(
    source: Source, frame: pd.DataFrame, where: str, sensitive: str | Sequence[str], include_sensitive: bool,
    return_X_y: bool, **extra: Any,
) -> Any:  # fmt: skip
    """Take target and groups out."""
    groupings = source.groupings
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not names or any(name not in groupings for name in names):
        raise ValueError(
            f"The 'sensitive' parameter of fetch_{source.name} must be one of {sorted(groupings)}, or a list of them. "
            f"Got {sensitive!r} instead."
        )
    groups = pd.DataFrame({name: groupings[name][1](frame).astype(object) for name in names}, index=frame.index)
    of_groups = () if include_sensitive else (groupings[name][0] for name in names)
    dropped = {*source.no_features, source.target, *of_groups}
    data = frame[[column for column in source.columns if column not in dropped]].copy()
    target = source.labels(frame)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        sensitive_features=groups[sensitive] if isinstance(sensitive, str) else groups,
        feature_names=list(data.columns),
        target_names=list(source.target_names),
        name=source.name,
        source=where,
        DESCR=f"{source.name}: {len(target)} rows, {target.sum()} positive; see {source.homepage}.",
        **extra,
    )
