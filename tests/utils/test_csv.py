"""Files for spreadsheets: no cell is run where they are opened, and no number changes."""

import csv

import numpy as np
import pandas as pd
import pytest

from skfairdp._utils import write_csv


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x";"y")'])
def test_a_text_that_begins_a_formula_is_written_as_text(tmp_path, text):
    frame = pd.DataFrame({text: ["a"], "group": [text], "rate": [0.5]}, index=[7])
    write_csv(frame, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as lines:
        head, row = csv.reader(lines)
    assert head == ["'" + text, "group", "rate"] and row == ["a", "'" + text, "0.5"]
    assert frame["group"].tolist() == [text], "the table itself stays as it was"


def test_numbers_and_other_texts_stay_as_they_are(tmp_path):
    frame = pd.DataFrame({"x": [-0.5, np.nan, 2.0], "t": ["-0.5", "+3", "a = b"], "n": [-1, 0, 1], "b": [True] * 3})
    write_csv(frame, tmp_path / "table.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv", dtype={"t": str}), frame)
