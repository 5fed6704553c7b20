"""Every example runs from start to end without data files, and warns of nothing."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


def test_the_examples_are_found():
    assert {path.stem for path in EXAMPLES} >= {"plot_quickstart", "plot_voting_modes", "plot_ledger_and_search"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_title_is_as_the_gallery_needs_it(path):
    quotes, over, title, under, *_ = path.read_text(encoding="utf-8").split("\n")
    assert quotes == '"""' and over == under and set(over) == {"="}
    assert len(over) >= len(title)  # Sphinx warns of a shorter one, and warnings are errors of "make docs"


@pytest.mark.slow
# Secret noise decides whether γ is within reach of the student; the message is part of what the example shows then.
@pytest.mark.filterwarnings("ignore:The smallest demographic disparity:skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_on_data_made_on_the_spot(path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)  # a canvas without a window would warn that it has none
    try:
        runpy.run_path(str(path), run_name="__main__")
        assert plt.get_fignums(), "an example of the gallery draws something"
    finally:
        plt.close("all")
    printed = capsys.readouterr().out
    assert "ε" in printed or "epsilon" in printed
