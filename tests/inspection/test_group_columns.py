"""columns_telling_the_group: finds what gives the group away, and nothing else."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.inspection import columns_telling_the_group


def table(n=1000):
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(n) < 0.3, "f", "m")
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "row": np.arange(n),  # different in every row, and tells nothing
            "relationship": np.where(sex == "f", "wife", "husband"),
            "height": rng.normal(size=n) + 20.0 * (sex == "m"),
            "job": rng.choice(["a", "b", None], size=n),
        }
    )
    return frame, sex


def test_columns_that_determine_the_group_are_found_and_warned_of():
    frame, sex = table()
    with pytest.warns(PrivacyLeakWarning, match="2 columns of X reveal the group") as caught:
        found = columns_telling_the_group(frame, sex)
    assert caught[0].filename == __file__
    assert found.telling == ("relationship", "height")
    assert found.private is False
    for column in ("age", "row", "job"):
        assert found.accuracy[column] < found.baseline + 0.05


def test_nothing_is_said_where_no_column_tells():
    frame, sex = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = columns_telling_the_group(frame[["age", "row", "job"]], sex)
    assert found.telling == ()


def test_the_warning_names_no_group():
    frame, sex = table()
    with pytest.warns(PrivacyLeakWarning) as caught:
        columns_telling_the_group(frame, sex)
    assert "wife" not in str(caught[0].message) and "'f'" not in str(caught[0].message)


@pytest.mark.parametrize(
    ("rows", "threshold", "said"), [(10, 0.0, "'threshold'"), (10, 1.5, "'threshold'"), (1, 0.9, "two rows")]
)
def test_bad_input(rows, threshold, said):
    with pytest.raises(ValueError, match=said):
        columns_telling_the_group(np.zeros((rows, 1)), np.arange(rows), threshold=threshold)
