"""What users import, how fast, and what no module of the package may do."""

import ast
import importlib
import pkgutil
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import skfairdp

PACKAGE = Path(skfairdp.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

IMPORT_ALONE = """
import sys, time
start = time.perf_counter()
import skfairdp
seconds = time.perf_counter() - start
heavy = {"torch", "sklearn", "numpy", "scipy", "pandas", "joblib", "dp_accounting", "matplotlib", "plotly"}
print(seconds, *sorted(heavy & set(sys.modules)))
"""


def fresh(code):
    """Run code in an interpreter of its own and return the words it prints."""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return out.stdout.split()


def test_import_takes_less_than_half_a_second_and_loads_nothing_heavy():
    runs = [fresh(IMPORT_ALONE) for _ in range(3)]
    assert [run[1:] for run in runs] == [[], [], []]
    assert statistics.median(float(run[0]) for run in runs) < 0.5


#: What is done one after the other in one new interpreter, and what must not have been loaded by then.
LIGHT = {
    "import skfairdp": "skfairdp.privacy._statement skfairdp.privacy._recompute skfairdp.privacy._verify "
    "skfairdp._cli._commands",
    "import skfairdp.privacy": "pandas torch",
    "import skfairdp.baselines": "fairlearn torch",
    "from skfairdp import PrivacyLedger, IDP3, PublicPreprocessor, FairPATEClassifier, metrics, datasets, fairness, "
    "frontier": "torch",
    "import numpy as np; from skfairdp._teachers import fit_teachers; X = np.arange(8.0)[:, None]; "
    "y = (X[:, 0] > 3).astype(int); "
    "fit_teachers('logistic', X, y, np.arange(8) % 2, n_teachers=2, n_classes=2).predict(X)": "torch",
}


@pytest.fixture(scope="module")
def loaded_by():
    """The modules that are loaded after each step, from one interpreter for all of them."""
    steps = "".join(f"{step}\nprint(*sys.modules, sep=',')\n" for step in LIGHT)
    return dict(zip(LIGHT, fresh(f"import sys\n{steps}"), strict=True))


@pytest.mark.parametrize("step", LIGHT)
def test_what_needs_no_other_library_loads_none(loaded_by, step):
    loaded = set(loaded_by[step].split(","))
    assert "skfairdp" in loaded and not loaded & set(LIGHT[step].split())


def test_every_public_name_resolves_and_is_listed():
    for name in skfairdp.__all__:
        assert getattr(skfairdp, name).__name__ == name
        module = importlib.import_module(f"skfairdp.{skfairdp._WHERE[name]}")
        assert name in module.__all__ and getattr(module, name) is getattr(skfairdp, name)
    assert set(skfairdp.__all__) <= set(dir(skfairdp))
    assert set(skfairdp._ROOMS) <= set(dir(skfairdp))
    assert not hasattr(skfairdp, "no_such_name")


def test_the_rooms_are_the_public_modules_of_the_package():
    found = {module.name for module in pkgutil.iter_modules([str(PACKAGE)]) if not module.name.startswith("_")}
    assert found == set(skfairdp._ROOMS)
    for room in skfairdp._ROOMS:
        module = importlib.import_module(f"skfairdp.{room}")
        assert getattr(skfairdp, room) is module
        assert len(module.__all__) == len(set(module.__all__)) > 0 and module.__doc__
        for name in module.__all__:
            assert hasattr(module, name), f"{room}.{name}"


def test_the_stub_re_exports_exactly_what_is_loaded_lazily():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    found, declared = {}, set()
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name  # "as itself" is what makes it a re-export
                found[alias.name] = node.module.removeprefix("skfairdp").removeprefix(".")
        elif isinstance(node, ast.AnnAssign):
            declared.add(node.target.id)
    assert found == {**skfairdp._WHERE, **dict.fromkeys(skfairdp._ROOMS, "")}
    assert declared == {"__all__", "__version__"}


def test_the_package_is_typed_and_its_version_is_stated_once():
    assert (PACKAGE / "py.typed").exists()
    project = PACKAGE.parent / "pyproject.toml"
    if not project.exists():
        pytest.skip("not run from a source tree: pyproject.toml is not beside the package")
    stated = tomllib.loads(project.read_text())["project"]
    assert stated.get("version", skfairdp.__version__) == skfairdp.__version__


def test_the_versions_that_are_tested_together_are_within_the_bounds_of_the_metadata():
    root = PACKAGE.parent
    if not (root / "constraints.txt").exists():
        pytest.skip("not run from a source tree: constraints.txt is not beside the package")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = [entry for extra in project["optional-dependencies"].values() for entry in extra]
    entries = [*project["dependencies"], *extras]
    tested = (root / "constraints.txt").read_text().lower().replace("_", "-")
    pins = dict(re.findall(r"(?m)^([\w-]+)==(\S+)$", tested))
    bounds = [
        re.fullmatch(r"([\w-]+)>=([\d.]+)(; .*)?", entry) for entry in entries if not entry.startswith("skfairdp")
    ]
    assert all(bounds), "`make minimum` can pin nothing else"
    below = [
        name
        for name, bound, _ in (found.groups() for found in bounds)
        if [int(part) for part in pins.get(name.replace("_", "-"), "0").split(".")[:2]]
        < [int(part) for part in bound.split(".")[:2]]
    ]
    assert below == []


# ---- what no module may do -----------------------------------------------------------------------------------
def imported(tree):
    """(module, name) of every import; name is None for a plain one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def private_sklearn_names(tree):
    return [
        (module, name)
        for module, name in imported(tree)
        if module.split(".")[0] == "sklearn"
        and any(part.startswith("_") and not part.startswith("__") for part in [*module.split("."), name or ""])
    ]


def dotted(node):
    """The dotted name of an expression such as np.random.seed, or ''."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


#: Of numpy.random: what makes or names a generator of one's own. All else draws from the hidden global one.
OWN = {"default_rng", "Generator", "RandomState", "SeedSequence", "BitGenerator", "PCG64"}


def global_randomness(tree):
    """Uses of a generator that the whole process shares; torch's may be seeded where it is put back afterwards."""
    found, restored = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and any("fork_rng" in ast.dump(item) for item in node.items):
            restored.update(ast.walk(node))
    for node in ast.walk(tree):
        if node in restored:
            continue
        name = dotted(node) if isinstance(node, ast.Attribute) else ""
        for prefix in ("np.random.", "numpy.random."):
            if name.startswith(prefix) and name.removeprefix(prefix).split(".")[0] not in OWN:
                found.append(name)
        if name in {"torch.manual_seed", "torch.seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"}:
            found.append(name)
    for module, name in imported(tree):
        if module == "random" or (module == "numpy.random" and name not in OWN):
            found.append(f"import {module}.{name}")
    return found


def generators_made_at_import(tree):
    """Generators that live in a module instead of in a call."""
    top = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    calls = [node for statement in top for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return [dotted(call.func) for call in calls if dotted(call.func).split(".")[-1] in OWN]


#: A stranger's predictor may draw from the global generators: each private row is asked with the same state, so that no
#: row can tell another how much it drew. So may a learner. The state is put back afterwards, as how much was drawn may
#: follow from private rows or from a secret (tests/model_selection/test_search_rows.py, test_search_learners.py).
PUT_BACK = {
    "_row_wise.py": {"import random.None", "np.random.get_state", "np.random.set_state", "np.random.RandomState"},
    "_utils/_sklearn.py": {"import random.None", "np.random.get_state", "np.random.set_state"},
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_private_sklearn_names_and_no_global_randomness(path):
    tree = ast.parse(path.read_text())
    if path != PACKAGE / "_utils" / "_sklearn.py":
        assert private_sklearn_names(tree) == []
    assert set(global_randomness(tree)) <= PUT_BACK.get(str(path.relative_to(PACKAGE)), set())
    assert generators_made_at_import(tree) == []


def test_the_scans_find_what_they_look_for():
    bad = ast.parse(
        "import numpy as np\nimport random\nfrom numpy.random import shuffle\n"
        "from sklearn.utils._param_validation import Interval\nfrom sklearn.base import _fit_context\n"
        "np.random.seed(0)\nx = np.random.rand(3)\ntorch.manual_seed(0)\nrng = np.random.default_rng(0)\n"
    )
    assert len(private_sklearn_names(bad)) == 2
    assert set(global_randomness(bad)) == {
        "np.random.seed",
        "np.random.rand",
        "torch.manual_seed",
        "import random.None",
        "import numpy.random.shuffle",
    }
    assert generators_made_at_import(bad) == ["np.random.default_rng"]
    put_back = "with torch.random.fork_rng():\n    torch.manual_seed(0)\n"
    assert global_randomness(ast.parse(put_back)) == []
    assert global_randomness(ast.parse(put_back + "torch.manual_seed(0)\n")) == ["torch.manual_seed"]
    assert private_sklearn_names(ast.parse((PACKAGE / "_utils" / "_sklearn.py").read_text()))


def test_importing_every_module_draws_nothing():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator is what is watched
    for module in pkgutil.walk_packages([str(PACKAGE)], "skfairdp."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
