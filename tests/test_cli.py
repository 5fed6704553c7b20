"""The demo command: what it writes, what it says, and how it refuses."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import skfairdp.__main__ as cli
from tests._tools.inside import ADULT, Sweep

FEW = Sweep(epsilons=(1.0, 2.0), gammas=(0.05, None), n_synthetic=6_000)


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)


def run(capsys, *arguments):
    """One or two releases on few synthetic rows, so that a run takes a second."""
    code = cli.main(["demo", *map(str, arguments)], sweep=FEW)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("no_data")
def test_demo_writes_three_files_and_prints_the_certified_table(capsys, tmp_path):
    folder = tmp_path / "a" / "new" / "folder"
    code, out, err = run(capsys, "--data", "synthetic", "--out", folder)
    assert code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["frontier.csv", "frontier.html", "frontier.png"]
    table = pd.read_csv(folder / "frontier.csv")
    assert len(table) == 2 * 4 and set(table["protects"]) == {"record"}
    assert (table["epsilon"] <= 2).all() and table["accuracy"].between(0.5, 1).all()
    assert (folder / "frontier.png").read_bytes()[:4] == b"\x89PNG"
    assert "frontier: " in err and "8/8" in err  # the progress bar
    assert "protects one record (replace one record), δ = 1e-5" in out
    total = float(re.search(r"Publishing the whole table \(2 releases, .*\) costs ε = ([\d.]+) at δ", out)[1])
    assert 2 < total < 3
    assert f"ε = {total:g}" in (folder / "frontier.html").read_text("utf-8")
    shown = [line.split() for line in out.splitlines() if re.match(r"\s+[\d.]+\s+(none|0\.05)\s", line)]
    assert shown and all(0 < float(cells[0]) <= 2 for cells in shown)


@pytest.mark.slow
@pytest.mark.usefixtures("no_data")
def test_a_second_run_replaces_its_own_files_and_leaves_others_alone(capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "frontier.csv").write_text("old")
    assert run(capsys, "--data", "synthetic", "--quick", "--out", tmp_path)[0] == 0
    assert (tmp_path / "notes.txt").read_text() == "mine" and len(pd.read_csv(tmp_path / "frontier.csv")) == 4


@pytest.mark.usefixtures("no_data")
def test_auto_takes_synthetic_data_without_adult_and_says_so(capsys, tmp_path):
    _, out, _ = run(capsys, "--quick", "--out", tmp_path)
    assert "Data: synthetic" in out and "Adult was not found: set SKFAIRDP_DATA" in out
    assert set(pd.read_csv(tmp_path / "frontier.csv")["dataset"]) == {"synthetic"}


@pytest.mark.slow
def test_auto_takes_adult_where_the_file_is_and_says_so(capsys, tmp_path, monkeypatch):
    table = np.random.default_rng(0).integers(0, 5, (ADULT.rows, len(ADULT.columns)))
    adult = pd.DataFrame(table, columns=list(ADULT.columns))
    adult["sex"] = np.where(adult["sex"] > 1, "Male", "Female")
    adult["class"] = np.where(np.arange(ADULT.rows) < ADULT.positives, ADULT.positive, "<=50K")
    adult.to_csv(tmp_path / "adult.csv", index=False)
    monkeypatch.setenv("SKFAIRDP_DATA", str(tmp_path))
    _, out, _ = run(capsys, "--quick", "--out", tmp_path)
    assert f"Data: adult (48,842 rows, groups by sex) from {tmp_path / 'adult.csv'}\n" in out


@pytest.mark.usefixtures("no_data")
def test_seed_fixes_the_public_randomness_and_never_the_noise(capsys, tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        _, out, _ = run(capsys, "--data", "synthetic", "--quick", "--seed", 7, "--out", folder)
        assert "Seed 7 fixes the split and the partition" in out and "stays secret" in out
    one, two = (pd.read_csv(folder / "frontier.csv") for folder in (first, second))
    pd.testing.assert_series_equal(one["epsilon"], two["epsilon"])
    assert not one[["accuracy", "disparity"]].equals(two[["accuracy", "disparity"]])


@pytest.mark.usefixtures("no_data")
def test_without_matplotlib_the_other_files_are_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, _ = run(capsys, "--data", "synthetic", "--quick", "--out", tmp_path)
    assert code == 0 and "No frontier.png: it needs matplotlib" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frontier.csv", "frontier.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--data", "mnist"], "argument --data: invalid choice: 'mnist'"),
        (["demo", "--seed", "-1"], "argument --seed: must be an integer from 0"),
        (["demo", "--seed", "x"], "argument --seed: must be an integer from 0"),
        (["demo", "--epsilon", "1"], "unrecognized arguments: --epsilon"),
        (["show"], "invalid choice: 'show'"),
        (["frontier"], "arguments are required: TABLE"),
        (["frontier", "t.csv", "--epsilon", "0"], "argument --epsilon: must be a number above 0"),
        (["frontier", "t.csv", "--delta", "1"], "argument --delta: must be a number above 0 and below 1"),
    ],
)
def test_bad_arguments_give_exit_code_2_and_one_line(capsys, arguments, message):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


@pytest.fixture
def no_bank(tmp_path, monkeypatch):
    """A folder, with a line break in its name, that has something else as bank.csv."""
    folder = tmp_path / "not\nbank"
    folder.mkdir()
    (folder / "bank.csv").write_text("age,job\n30,none\n")
    monkeypatch.setenv("SKFAIRDP_DATA", str(folder))


@pytest.mark.usefixtures("no_bank")
def test_unwritable_folder_gives_exit_code_2_and_one_line_before_any_work(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "frontier.csv").mkdir(parents=True)
    for folder, message in (
        ("file", "cannot write to --out"),
        ("file/below", "cannot write to --out"),
        ("taken", "it is not a writable file"),
    ):
        code, out, err = run(capsys, "--data", "bank", "--out", tmp_path / folder)  # reading the data would fail
        assert code == 2 and out == "" and message in err and err.count("\n") == 1


@pytest.mark.usefixtures("no_bank")
def test_data_out_of_reach_gives_exit_code_2_and_one_line(capsys, tmp_path):
    code, _, err = run(capsys, "--data", "bank", "--out", tmp_path)
    assert code == 2 and "lacks the column(s)" in err and err.count("\n") == 1


def test_help_and_bad_arguments_need_no_heavy_import():
    code = (
        "import sys; from skfairdp.__main__ import main; code = main(['demo', '--data', 'x']);"
        "assert code == 2 and not {'torch', 'sklearn', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    shown = subprocess.run(
        [sys.executable, "-m", "skfairdp", "demo", "--help"], check=True, capture_output=True, text=True
    )
    for option in ("--data", "--out", "--quick", "--seed"):
        assert option in shown.stdout


@pytest.mark.slow
def test_quick_demo_on_the_built_in_data_end_to_end(tmp_path):
    shown = subprocess.run(
        [sys.executable, "-m", "skfairdp", "demo", "--data", "synthetic", "--quick", "--out", str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    table = pd.read_csv(tmp_path / "frontier.csv")
    fair = table[(table["disparity"] <= 0.05) & (table["coverage"] == 1)]
    assert fair["accuracy"].max() > 0.8 and "Publishing the whole table (2 releases" in shown.stdout


def test_without_a_command_the_help_says_which_there_are(capsys):
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("demo", "verify", "frontier", "schema"))
