"""The code of the README runs as it stands."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "docs" / "readme_example.py"
spec = importlib.util.spec_from_file_location("readme_example", EXAMPLE)
readme = importlib.util.module_from_spec(spec)
spec.loader.exec_module(readme)

pytestmark = [pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")]


def test_the_first_example_goes_from_a_raw_table_to_a_statement(capsys):
    assert len(readme.code(0).strip().splitlines()) <= 12
    names = readme.run()
    model, ledger = names["model"], names["ledger"]
    assert 1 < model.privacy_.epsilon < 1.2  # the fit and the schema that it holds
    assert 0.8 < ledger.spent().epsilon < model.privacy_.epsilon  # the same releases, at a δ ten times as large
    assert set(names["model"].predict(names["table"])) == {"<=50K", ">50K"}
    assert "one record" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_of_tuning_states_the_epsilon_of_all_of_it(capsys):
    names = {}
    exec(readme.code(1), names)
    assert names["search"].privacy_.epsilon > 1
    assert "epsilon=" in capsys.readouterr().out
