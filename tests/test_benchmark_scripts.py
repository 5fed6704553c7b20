"""The benchmark scripts run as their help says, and the page of tables is what they wrote."""

import hashlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skfairdp import Schema

ROOT = Path(__file__).parents[1]
SCRIPTS = [ROOT / "benchmarks" / "arena.py", *sorted((ROOT / "benchmarks").glob("bench_*.py"))]
IDS = [path.stem for path in SCRIPTS]
FIGURES = sorted(path for kind in ("bench", "guide") for path in (ROOT / "docs" / "images").glob(f"{kind}_*.png"))
NEEDS = {
    "arena": ["opacus"],
    "bench_dpsgd": ["opacus"],
    "bench_group_by": ["duckdb", "polars"],
    "bench_pfguard_peers": ["dpmm"],
    "bench_utility": ["fairlearn"],
}
# A cluster and worker processes that import torch take minutes on a busy machine, and have tests of their own.
ONLY = {
    "bench_teachers": ["--parts", "logistic"],
    "bench_scale": [
        "--rows", "generator", "fair-pate", "fair-dpsgd", "idp3", "generator-in-memory", "pf-ld",
        "many-groups-generator", "many-groups-fair-pate",
    ],
}  # fmt: skip


def run(script, *arguments):
    environment = {key: value for key, value in os.environ.items() if key != "SKFAIRDP_DATA"}  # data made on the spot
    return subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=ROOT,
        env=environment,
    )


def results():
    return sorted((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_script_says_how_it_is_used(script):
    done = run(script, "--help")
    assert done.returncode == 0, done.stderr
    assert "--quick" in done.stdout
    assert "--out" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=IDS)
def test_quick_run_prints_a_table_and_writes_json_with_command_versions_and_machine(script, tmp_path):
    for module in NEEDS.get(script.stem, []):
        if find_spec(module) is None:
            pytest.skip(f"needs {module}")
    out = tmp_path / "result.json"
    arguments = ["--quick", *ONLY.get(script.stem, [])]
    done = run(script, *arguments, "--out", out)
    assert done.returncode == 0, done.stderr
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["command"] == " ".join(["python", f"benchmarks/{script.name}", *arguments])
    assert record["versions"]["skfairdp"]
    assert record["machine"]["cores"] >= 1
    assert str(tmp_path) not in json.dumps(record)
    assert len(done.stdout.splitlines()) >= 3


def test_results_name_their_command_seeds_versions_and_machine():
    for path in results():
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["benchmark"] == path.stem
        assert record["command"].startswith(("python benchmarks/bench_", "python benchmarks/arena.py")), path.name
        assert "--quick" not in record["command"], f"{path.name} holds the figures of a quick run"
        assert record["versions"]["python"]
        assert record["machine"]["processor"]


def test_page_of_tables_is_what_the_results_say():
    done = run(ROOT / "benchmarks" / "render_docs.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FIGURES, ids=[path.stem for path in FIGURES])
def test_a_figure_is_drawn_from_the_results_that_are_stored(path):
    """Found: pages followed new results, and figures showed old ones beside them."""
    text = pytest.importorskip("PIL.Image").open(path).text
    digest, *names = text["Source"].split()
    stored = [json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8")) for name in names]
    assert digest == hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.slow
def test_a_second_run_of_sfpate_measures_what_the_file_lacks(tmp_path):
    out, script = tmp_path / "result.json", ROOT / "benchmarks" / "bench_sfpate.py"
    found = []
    for seed in (100, 101, 100):
        done = run(script, "--quick", "--first-seed", seed, "--out", out)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(out.read_text(encoding="utf-8")))
    assert [record["seeds"] for record in found] == [[100], [100, 101], [100, 101]]
    first, second, third = ({row["method"]: row["by_seed"]["accuracy"] for row in record["rows"]} for record in found)
    assert second == third and all(len(values) == 2 and values[:1] == first[name] for name, values in second.items())
    record = found[-1] | {"settings": "others"}
    out.write_text(json.dumps(record), encoding="utf-8")
    assert "written anew" in run(script, "--quick", "--out", out).stdout
    assert json.loads(out.read_text(encoding="utf-8"))["seeds"] == [100]


def test_paper_tables_are_what_the_results_say():
    done = run(ROOT / "benchmarks" / "paper_tables.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_arena_runs_on_any_csv_with_a_schema_and_measures_nothing_twice(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(0, 9, 2000).round(2), "who": rng.choice(["f", "m"], 2000)})
    table["y"] = np.where(table["x"] + 2 * (table["who"] == "m") + rng.normal(size=2000) > 6, "yes", "no")
    table.to_csv(tmp_path / "mine.csv", index=False)
    Schema.from_public(table, label="y", groups="who").save(tmp_path / "mine.yaml")
    given = ["--quick", "--table", tmp_path / "mine.csv", "--schema", tmp_path / "mine.yaml", "--keep", "--units"]
    out = ["--out", tmp_path / "found.json"]
    first = run(ROOT / "benchmarks" / "arena.py", *given, "our generator, glued", *out)
    assert first.returncode == 0, first.stderr
    again = run(ROOT / "benchmarks" / "arena.py", *given, "our generator, glued", "FairPATE", *out)
    assert again.returncode == 0, again.stderr
    done = [line for line in again.stdout.splitlines() if " points in " in line]
    assert len(done) == 1 and "FairPATE" in done[0]
    record = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert {one["ours"] for one in record["competitions"]} == {"FairPATE"} and not record["failed"]
