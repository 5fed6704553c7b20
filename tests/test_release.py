"""What a release says about itself agrees, wherever it says so: versions, Pythons, files, and what CI runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import skfairdp
from skfairdp.privacy import PrivacyLedger, verify_file

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def jobs():
    return yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def pythons(job):
    """The Pythons that a job installs."""
    asked = next(step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    return job["strategy"]["matrix"]["python"] if "matrix" in asked else [asked]


def test_the_version_is_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    headings = re.findall(r"(?m)^## (\S+)(?: \((\S+)\))?$", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    (listed, released), supported = headings[1], (ROOT / "SECURITY.md").read_text("utf-8")
    assert headings[0] == ("Unreleased", "")
    assert {PROJECT["project"]["version"], cited["version"], listed} == {skfairdp.__version__}
    assert str(cited["date-released"]) == released
    assert f"| {skfairdp.__version__.rpartition('.')[0]} | {released} |" in supported


def test_the_pythons_that_are_claimed_are_those_that_ci_tries():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    tried = {python for job in jobs().values() for python in pythons(job)}
    assert tried == set(named)
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    assert pythons(jobs()["minimum"]) == [named[0]]  # the lowest versions on the lowest Python


def test_ci_on_github_runs_what_runs_here():
    ran = {command for job in jobs().values() for command in commands(job)}
    assert ran >= {".ci/run", "make minimum", "make test-all"}
    asked = {command.removeprefix("make ") for command in ran - {".ci/run"}}
    targets = set(re.findall(r"(?m)^([a-z-]+)(?: [a-z -]+)?:", (ROOT / "Makefile").read_text("utf-8")))
    here = re.findall(r"(?m)^make (\S+)$", (ROOT / ".ci/run").read_text("utf-8"))
    assert here == ["lint", "test", "test-long", "test-kernels", "package", "docs"]
    assert {*here, *asked} <= targets


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_hash_and_a_workflow_may_only_read(workflow):
    used = re.findall(r"(?m)uses: (.*)$", workflow.read_text("utf-8"))
    assert used and [one for one in used if not re.fullmatch(r"[\w/.-]+@[0-9a-f]{40} # v[\d.]+", one)] == []
    assert yaml.safe_load(workflow.read_text("utf-8"))["permissions"] == {"contents": "read"}


def test_a_release_is_tried_on_every_system_and_approved_before_it_is_published():
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
    assert release["try"]["needs"] == "build" and release["publish"]["needs"] == "try"
    tried = release["try"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in tried["os"]} == {"ubuntu", "macos", "windows"}
    assert any(name.endswith("-arm") for name in tried["os"])
    assert set(tried["python"]) >= {python for job in jobs().values() for python in pythons(job)}
    assert release["publish"]["environment"]["name"] == "pypi"
    assert [name for name, job in release.items() if "id-token" in job.get("permissions", {})] == ["publish"]


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for():
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == PROJECT["project"]["version"]

    def bounds(lines):
        pairs = (line.split(";")[0].replace(" ", "").split(">=") for line in lines)
        return {name.replace("_", "-").replace("pytorch", "torch"): low for name, low in pairs}

    assert bounds(recipe["requirements"]["run"]) == bounds(
        [*PROJECT["project"]["dependencies"], "python" + PROJECT["project"]["requires-python"]]
    )


@pytest.mark.parametrize("template", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.stem)
def test_an_issue_template_has_the_head_that_github_reads(template):
    _, head, body = template.read_text("utf-8").split("---\n", 2)
    assert set(yaml.safe_load(head)) == {"name", "about", "labels"}
    assert "### " in body


def test_files_that_the_readme_leads_to_are_in_the_sdist():
    linked = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text("utf-8"))
    packed = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert linked
    assert [name for name in linked if name.split("/")[0] not in packed] == []


def test_the_installation_page_lists_the_extras_that_users_have():
    project = PROJECT["project"]
    page = (ROOT / "docs" / "start" / "installation.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted(set(project["optional-dependencies"]) - {"docs", "dev"})
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in page


#: A program of version 0.1.0, as far as what it writes goes.
WRITES = """
import sys
from importlib import metadata
from pathlib import Path

known, folder = metadata.version, Path(sys.argv[1])
metadata.version = lambda name: "0.1.0" if name == "skfairdp" else known(name)
from skfairdp.privacy import GaussianDpEvent, NeighboringRelation, PrivacyLedger, PrivacySpent

event = GaussianDpEvent(4.0)
unit = {"protects": "record", "neighboring_relation": NeighboringRelation.REPLACE_ONE}
ledger = PrivacyLedger(epsilon=2.0, path=folder / "ledger.jsonl")
ledger.charge(event, label="a fit", **unit)
text = PrivacySpent.of(event, 1e-5, **unit).statement(subject="a fit", ledger=ledger).to_json()
(folder / "statement.json").write_text(text, "utf-8")
"""


def test_a_statement_and_a_ledger_of_an_earlier_version_are_read(tmp_path):
    """What decides is the format number that a file has, not the version of the package that wrote it."""
    subprocess.run([sys.executable, "-c", WRITES, str(tmp_path)], check=True, cwd=ROOT)
    assert '"0.1.0"' in (tmp_path / "statement.json").read_text("utf-8") and skfairdp.__version__ != "0.1.0"
    assert all(check.holds for name in ("statement.json", "ledger.jsonl") for check in verify_file(tmp_path / name))
    assert len(PrivacyLedger(epsilon=2.0, path=tmp_path / "ledger.jsonl").entries) == 1
