"""Where a benchmark table comes from: a local file first, OpenML second, a clear error last."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from sklearn import datasets as sklearn_datasets

DATA_VARIABLE = "SKFAIRDP_DATA"


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
    openml_id: int | None = None
    openml_columns: tuple[str, ...] | None = None  # names in OpenML's order, where OpenML has placeholders
    openml_target_values: tuple[tuple[str, object], ...] = ()  # OpenML's code -> the value of the original
    label: Callable[[pd.DataFrame], pd.Series] | None = None  # computes the target where it is not a column
    stem: str = ""  # of the published file, where it is not the name

    def labels(self, frame: pd.DataFrame) -> pd.Series:
        """Return 1 for the positive class and 0 for the other one."""
        values = frame[self.target] if self.label is None else self.label(frame)
        return (values == self.positive).astype("int64").rename(self.target)


def data_file(name: str, data_home: str | os.PathLike[str] | None = None) -> Path | None:
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
    folder = data_home if data_home is not None else os.environ.get(DATA_VARIABLE)
    if not folder:
        return None
    for suffix in (".csv.gz", ".csv", ".npz"):
        path = Path(folder).expanduser() / f"{name}{suffix}"
        if path.is_file():
            return path
    return None


def read_table(source: Source, data_home: str | os.PathLike[str] | None) -> tuple[pd.DataFrame, str]:
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
            f"The {source.name} table from {where} is not the published one: it has {found[0]} rows, "
            f"{found[1]} of them "
            f"positive, where {source.rows} and {source.positives} are expected. Get it from "
            f"{source.homepage}."
        )
    return frame, where


def _from_openml(source: Source, data_home: str | os.PathLike[str] | None) -> pd.DataFrame:
    where = "OpenML has no copy that is known to be faithful"
    cause: Exception | None = None
    if source.openml_id is not None:
        home = None if data_home is None else str(data_home)
        try:
            with warnings.catch_warnings():
                # "Retrying…" would be said before the error below says more.
                warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
                bunch = sklearn_datasets.fetch_openml(
                    data_id=source.openml_id, data_home=home, as_frame=True, parser="auto", n_retries=1
                )
        except (OSError, ValueError, ImportError) as error:
            where, cause = (
                f"OpenML (data_id={source.openml_id}) could not be read ({type(error).__name__})",
                error,
            )
        else:
            return _with_original_names(bunch.data, bunch.target, source)
    folder = data_home if data_home is not None else os.environ.get(DATA_VARIABLE)
    stem = source.stem or source.name
    looked = "no folder was given" if not folder else f"{folder} has neither {stem}.csv.gz nor {stem}.csv"
    raise FileNotFoundError(
        f"No {source.name} data: {looked}, and {where}. Download it from {source.homepage} as a comma-separated "
        f"{stem}.csv.gz or {stem}.csv with a header row, then give its folder with the environment "
        f"variable {DATA_VARIABLE} or with data_home=."
    ) from cause


def _with_original_names(data: pd.DataFrame, target: pd.Series, source: Source) -> pd.DataFrame:
    frame = data.copy()
    if source.openml_columns is not None and len(source.openml_columns) == frame.shape[1]:
        frame.columns = pd.Index(source.openml_columns)
    for column in frame.columns:
        if isinstance(frame[column].dtype, pd.CategoricalDtype):
            values = frame[column].astype(object)
            numbers = pd.to_numeric(values, errors="coerce")
            # OpenML declares some numeric codes as categories; the original files have numbers there.
            frame[column] = numbers if bool((numbers.notna() == values.notna()).all()) else values
    values = target.astype(object)
    if source.openml_target_values:
        values = values.astype(str).map(dict(source.openml_target_values))
    frame[source.target] = values
    return frame
