"""What needs all rows in memory says so of anything that is read in chunks, and what to pass instead."""

import numpy as np
import pandas as pd
import pytest

from skfairdp import PrivacyLedger
from skfairdp.baselines import GroupRandomizer, RandomizedResponseClassifier
from skfairdp.papers import FairClippingClassifier
from skfairdp.schema import KeyedRows
from tests._tools.sources import recording_noise

FRAME = pd.DataFrame({"a": np.linspace(-1, 1, 40), "sex": ["f", "m"] * 20})
ESTIMATORS = [RandomizedResponseClassifier, FairClippingClassifier]


def lazily(kind, folder):
    if kind == "path":
        return str(folder / "rows.parquet"), r"Pass pandas\.read_parquet\(X\)"
    if kind == "dataset":
        FRAME.to_parquet(folder / "rows.parquet")
        return pytest.importorskip("pyarrow.dataset").dataset(folder / "rows.parquet"), r"to_table\(\)\.to_pandas"
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(FRAME).lazy(), r"Pass X\.collect\(\)"
    if kind == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=2), r"Pass X\.compute\(\)"
    if kind == "keys":
        return KeyedRows(FRAME, key="sex"), "Pass the rows without their keys"
    return (lambda: [FRAME]), r"Pass pandas\.concat\(X\(\)\)"


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["path", "dataset", "polars", "dask", "keys", "function"])
def test_rows_in_chunks_are_refused_before_anything_is_spent(estimator, kind, tmp_path):
    rows, way = lazily(kind, tmp_path)
    ledger = PrivacyLedger(epsilon=3)
    model = estimator(classes=[0, 1], groups=["f", "m"], sensitive_columns="sex", ledger=ledger)
    with pytest.raises(ValueError, match=f"{estimator.__name__} needs its rows in memory.*{way}"):
        model.fit(rows, np.arange(40) % 2)
    assert not ledger.entries


def test_groups_in_chunks_are_refused_by_the_randomizer():
    with pytest.raises(ValueError, match=r"Pass pandas\.concat\(sensitive_features\(\)\)"):
        GroupRandomizer(groups=["f", "m"]).release(lambda: [FRAME["sex"]])


def test_frames_in_memory_are_none_of_these():
    polars = pytest.importorskip("polars")
    with recording_noise(entropy=0):
        released = GroupRandomizer(groups=["f", "m"]).release(polars.from_pandas(FRAME)["sex"])
    assert len(released) == 40
