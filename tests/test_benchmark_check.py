"""Of every stored result it is said whether it is current, its fits are the same, or it is stale."""

import ast
import importlib.util
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import skfairdp

ROOT = Path(__file__).parents[1]
FITS = json.loads((ROOT / "tests" / "vectors" / "golden.json").read_text())["fits"]
SCRIPT = "import _common\n\nfrom skfairdp import fit\n\nfit(_common.X)\n"
NAMES = '_NAMES = {"room": ("fit",), "other": ("show",)}\n'
ROOM = "from skfairdp.{} import fit\nfrom skfairdp.room import _shown\n"
CODE = '"""A module."""\n\nSTEPS = 20\n\n\ndef fit(rows, *, passes=3):\n    return rows * passes + STEPS  # a comment\n'


@pytest.fixture
def check():
    spec = importlib.util.spec_from_file_location("check", ROOT / "benchmarks" / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class House:
    """A repository with a package, a script, a helper of it and frozen fits, whose first commit made a result."""

    def __init__(self, root, check):
        self.root, self.check = root, check
        self.write("skfairdp/_model.py", CODE)
        self.write("skfairdp/__init__.py", NAMES)
        self.write("skfairdp/room/__init__.py", ROOM.format("_model"))
        self.write("skfairdp/room/_shown.py", "x = 1\n")
        self.write("benchmarks/_common.py", "X = 1\n")
        self.write("benchmarks/bench_pfld.py", SCRIPT)
        self.freeze()
        self.git("init", "--quiet")
        self.git("add", ".")
        words = ("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "First")
        self.git(*words)
        self.revision = self.git("rev-parse", "--short=10", "HEAD").strip()
        check.HERE = root / "benchmarks"

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True).stdout

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def freeze(self, **changed):
        fits = {
            "PFLD-a": {"arrays": "1", "judged": {"gap": 0.1, "gap_bound": 0.5}},
            "PFLD-b": {"arrays": "2"},
            "IDP3": {"arrays": "3"},
        } | changed
        self.write("tests/vectors/golden.json", json.dumps({"fits": fits}))

    def says(self, name="pfld_bank", **record):
        self.check.files_here.cache_clear()
        record = {"revision": self.revision, "command": "python benchmarks/bench_pfld.py --data bank"} | record
        return self.check.verdict(name, record)


@pytest.fixture
def house(tmp_path, check):
    return House(tmp_path, check)


def test_a_result_is_current_whatever_happens_to_comments_docstrings_layout_and_other_scripts(house):
    assert house.says() == ("current", "")
    house.write(
        "skfairdp/_model.py", CODE.replace("A module", "Another").replace("a comment", "none").replace("3", "(3)")
    )
    house.write("benchmarks/bench_other.py", "print(1)\n")
    house.freeze(**{"PFLD-a": {"arrays": "other"}})
    assert house.says() == ("current", "")


def test_a_result_is_current_whatever_happens_to_files_that_its_names_do_not_come_from(house):
    house.write("skfairdp/room/_shown.py", "x = 2\n")
    house.write("skfairdp/_more.py", "x = 1\n")
    assert house.says() == house.says("pfld_speed") == ("current", "")


def test_what_a_script_reaches_is_what_its_names_come_from(check):
    files = {
        "benchmarks/bench_a.py": "import _common\nfrom skfairdp import A, c\n\nA(_common.save, c.more)\n",
        "benchmarks/_common.py": "def save(): pass\n\ndef show(): pass\n",
        "benchmarks/bench_b.py": "import skfairdp.other\n\nprint(skfairdp.other)\n",
        "skfairdp/__init__.py": '_NAMES = {"room": ("A", "B"), "other": ("C",)}\n',
        "skfairdp/room/__init__.py": "from skfairdp.room._a import A as A\nfrom skfairdp.other import B\n",
        "skfairdp/room/_a.py": "class A(Base):\n    def f(self):\n        from skfairdp import _d\n        _d.g(X)\n\n"
        "class Base: pass\n\nclass Aside: pass\n\nX = {'x': 'papers:Xs'}\n\n@f.register\ndef _(x): pass\n",
        "skfairdp/_d.py": "def g(): pass\n",
        "skfairdp/c/__init__.py": "def more(): pass\n\ndef less(): pass\n",
        "skfairdp/papers/__init__.py": "from skfairdp.papers._x import Xs\n",
        "skfairdp/papers/_x.py": "Xs = 1\n",
        "skfairdp/other/__init__.py": "from skfairdp.other._b import B, C\n",
        "skfairdp/other/_b.py": "B = C = 1\nD = 2\n",
    }
    found = check.reached("benchmarks/bench_a.py", files)
    assert {(path.split("/", 1)[1], name) for path, name in found if name != check.BETWEEN} == {
        ("_common.py", "save"), ("room/_a.py", "A"), ("room/_a.py", "Base"), ("room/_a.py", "X"), ("_d.py", "g"),
        ("papers/_x.py", "Xs"), ("c/__init__.py", "more"),
    }  # fmt: skip
    assert ("skfairdp/room/_a.py", check.BETWEEN) in found and check.code(files["skfairdp/room/_a.py"], check.BETWEEN)
    found = check.reached("benchmarks/bench_b.py", files)
    assert {name for path, name in found if path == "skfairdp/other/_b.py"} == {"B", "C", check.BETWEEN}


def test_a_result_is_current_whatever_happens_to_what_its_script_does_not_name(house):
    more = "\n\ndef show(rows):\n    return rows\n"
    house.write("skfairdp/_model.py", CODE + more)
    assert house.says("pfld_speed") == ("current", "")
    house.write("skfairdp/_model.py", CODE.replace("rows * passes", "show(rows)") + more)
    assert house.says("pfld_speed")[0] == "stale"


def test_fits_are_the_same_where_code_changed_and_frozen_fits_and_settings_did_not(house):
    house.write("skfairdp/_model.py", CODE.replace("rows * passes", "passes * rows"))
    house.freeze(IDP3={"arrays": "other"})
    assert house.says() == ("same fits", f"its 2 frozen fits are as they were at {house.revision}")


def test_a_move_keeps_the_settings_and_new_ones_change_no_old_fit(house):
    (house.root / "skfairdp" / "_model.py").unlink()
    house.write("skfairdp/room/__init__.py", ROOM.format("_moved"))
    house.write("skfairdp/_moved.py", CODE.replace("passes=3", "passes=3, more=5") + "\nMORE = 4\n")
    assert house.says()[0] == "same fits"


def test_how_a_fit_is_warned_of_is_no_setting(check):
    code = "def {}(few=3):\n    pass\n"
    assert not list(check.settings(ast.parse(code.format("_warn_of_small_groups"))))
    assert list(check.settings(ast.parse(code.format("fit"))))


def test_a_protocol_has_no_settings(check):
    code = "class Rows({}):\n    def taken(self, start: int = 0) -> int: ...\n"
    assert not list(check.settings(ast.parse(code.format("Protocol"))))
    assert list(check.settings(ast.parse(code.format("Source"))))


def test_a_default_that_moved_to_a_base_class_is_the_same_setting(check):
    then = ast.parse("class Plan:\n    share: float = 1.0\n")
    now = ast.parse("class Aside:\n    share: float = 1.0\n\nclass Plan(Aside):\n    n_rows: int\n")
    assert set(check.settings(then)) <= set(check.settings(now, classes={"Aside": now.body[0]}))
    assert not set(check.settings(then)) & set(check.settings(now))  # without it the class has none of its own
    further = ast.parse(
        "class Aside:\n    share: float = 1.0\n\nclass Part(Aside):\n    pass\n\nclass Plan(Part):\n    pass\n"
    )
    classes = {node.name: node for node in further.body}
    assert set(check.settings(then)) <= set(check.settings(further, classes=classes))


@pytest.mark.parametrize(
    ("of", "instead", "named"),
    [("passes=3", "passes=4", "fit.passes"), ("STEPS = 20", "STEPS = 10", "STEPS"), ("STEPS", "LEAST", "STEPS")],
)
def test_a_result_is_stale_where_a_setting_changed_that_frozen_fits_may_not_see(house, of, instead, named):
    house.write("skfairdp/_model.py", CODE.replace(of, instead))
    word, why = house.says()
    assert word == "stale" and why.endswith(f"its 2 frozen fits did not, but settings did: {named}")


@pytest.mark.parametrize(("given", "word"), [("of=None", "same fits"), ("of='all'", "same fits"), ("few=2", "stale")])
def test_a_parameter_that_is_gone_is_a_setting_if_it_was_a_number(house, given, word):
    helper, uses = "def _part(rows, {}):\n    return rows\n", CODE.replace("rows * passes", "_part(rows)")
    house.write("skfairdp/_model.py", uses + helper.format(given))
    house.git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--all", "--message", "Second")
    house.revision = house.git("rev-parse", "--short=10", "HEAD").strip()
    house.write("skfairdp/_model.py", uses + "def _part(rows):\n    return rows + 0\n")
    assert house.says()[0] == word


def test_a_frozen_fit_differs_in_its_gap_where_that_was_frozen(check):
    then, now = {"arrays": "1", "judged": {"gap": 0.1}}, {"arrays": "1", "judged": {"gap": 0.2}}
    assert check.differs(then, now) and check.differs(then, {"arrays": "1"})
    assert not check.differs({"arrays": "1"}, now) and not check.differs(now, now)
    wider = {"arrays": "1", "judged": {"gap": 0.2, "gap_bound": 0.5}}
    assert check.differs(now, wider) and not check.differs(now, wider, told=False)


@pytest.mark.parametrize(("says", "word"), [({"accuracy": 0.8}, "same fits"), ({"bound_held": 9}, "stale")])
def test_a_bound_that_is_told_otherwise_makes_results_stale_that_say_of_bounds(house, says, word):
    house.write("skfairdp/_model.py", CODE.replace("rows * passes", "rows"))
    house.freeze(**{"PFLD-a": {"arrays": "1", "judged": {"gap": 0.1, "gap_bound": 0.9}}})
    assert house.says(**says)[0] == word


@pytest.mark.parametrize("changed", [{"arrays": "other"}, {"arrays": "1", "privacy": {"epsilon": "2"}}])
def test_a_result_is_stale_where_its_frozen_fits_changed_and_these_are_named(house, changed):
    house.write("skfairdp/_model.py", CODE.replace("rows * passes", "rows"))
    house.freeze(**{"PFLD-a": changed, "PFLD-new": {"arrays": "4"}})
    word, why = house.says()
    assert word == "stale" and why.endswith(
        "; 1 of 2 frozen fits: PFLD-a"
    )  # what was frozen since says nothing of then


@pytest.mark.parametrize("path", ["benchmarks/_common.py", "benchmarks/bench_pfld.py"])
def test_a_result_is_stale_where_its_script_changed_or_what_that_imports(house, path):
    house.write(path, (house.root / path).read_text() + "print(2)\n")
    assert house.says() == ("stale", f"{path} changed since {house.revision}")


@pytest.mark.parametrize("name", ["audit", "pfld_speed"])
def test_a_result_is_stale_after_any_code_where_it_is_about_seconds_or_no_frozen_method(house, name):
    house.write("skfairdp/_model.py", CODE.replace("rows * passes", "passes * rows"))
    assert house.says(name) == ("stale", f"1 file of skfairdp changed since {house.revision}")


@pytest.mark.parametrize(
    ("revision", "why"),
    [
        (None, "names no commit"),
        ("0123456789+changes", "measured with uncommitted changes on 0123456789"),
        ("0123456789", "commit 0123456789 is not in this repository"),
    ],
)
def test_a_result_is_stale_where_nobody_can_tell_which_code_it_measured(house, revision, why):
    assert house.says(revision=revision) == ("stale", why)
    assert house.says(revision=f"{house.revision}, {revision or ''}") == ("stale", why)


def test_every_result_is_counted_under_its_word(house, capsys):
    for name, revision in (("pfld_bank", house.revision), ("pfld_credit", None)):
        record = {"revision": revision, "command": "python benchmarks/bench_pfld.py"}
        house.write(f"benchmarks/results/{name}.json", json.dumps(record))
    house.check.main()
    *_, bank, credit, counts = capsys.readouterr().out.splitlines()
    assert bank.split() == ["pfld_bank.json", "current"] and credit.endswith(" stale: names no commit")
    assert counts == "1 stale, 0 same fits, 1 current"


def test_every_method_of_a_result_has_frozen_fits_and_every_name_a_result(check):
    names = [path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")]
    for first, methods in check.METHODS.items():
        assert any(name.startswith(first) for name in names), first
        assert all(any(fit.startswith(method) for fit in FITS) for method in methods), first


def test_every_estimator_that_a_script_names_is_among_the_methods_of_its_results(check):
    for first, methods in check.METHODS.items():
        scripts = [ROOT / "benchmarks" / ("_arena_ours.py" if first == "arena" else f"bench_{first}.py")]
        text = "\n".join(path.read_text() for path in scripts if path.exists())
        roots = tuple(method.split("-")[0] for method in methods)
        for name in re.findall(r"\b[A-Z]\w+(?:Classifier|Generator|Calibrator|Thresholds|Randomizer)\b|\bIDP3\b", text):
            assert not hasattr(skfairdp, name) or name.removeprefix("Fairness").startswith(roots), (first, name)


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        ("bench_pfld.py --data bank", "bench_pfld.py --data bank"),
        ("bench_a.py --seeds 10 --keep --methods A 'B, c' --quick", "bench_a.py --seeds 10 --quick"),
        ("arena.py --report --keep --seeds 3 --units A 'B, c' D", "arena.py --seeds 3"),
        ("bench_scale.py --again --sizes 100", "bench_scale.py --again --sizes 100"),
    ],
)
def test_a_command_that_measured_a_part_is_run_whole(command, whole, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    measure = importlib.import_module("measure")
    assert measure.whole(shlex.split(command)) == shlex.split(whole)
