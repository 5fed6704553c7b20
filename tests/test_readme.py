"""The code of the README runs as it stands, on a raw table that is made on the spot."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

README = Path(__file__).parents[1] / "README.md"


def raw_table(n_rows=6000):
    """Texts, a gap marked by a question mark, the group as a column."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["Female", "Male"], n_rows)
    age = rng.integers(17, 91, n_rows)
    work = rng.choice(["Private", "State-gov", "?"], n_rows, p=[0.7, 0.2, 0.1])
    hours = rng.integers(10, 80, n_rows)
    score = 0.05 * (age - 40) + 0.06 * (hours - 40) + 0.8 * (sex == "Male") + rng.logistic(size=n_rows)
    return pd.DataFrame(
        {"age": age, "workclass": work, "hours": hours, "sex": sex, "income": np.where(score > 1, ">50K", "<=50K")}
    )


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_the_first_example_goes_from_a_raw_table_to_a_statement(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    raw_table().to_csv("adult.csv", index=False)
    first = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)[0]
    assert len(first.strip().splitlines()) <= 12
    names = {}
    exec(first, names)
    assert names["model"].privacy_.epsilon <= 1
    assert names["ledger"].spent().epsilon < 1.2  # the schema and one fit; the looser model costs nothing
    assert set(names["model"].predict(names["table"])) == {"<=50K", ">50K"}
    assert "one record" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_the_example_of_tuning_states_the_epsilon_of_all_of_it(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)
    names = {}
    exec("from skfairdp import FairPATEClassifier\n" + blocks[1], names)
    assert names["search"].privacy_.epsilon > 1
    assert "epsilon=" in capsys.readouterr().out
