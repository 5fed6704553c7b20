"""Tests do not replace names in the modules of the package: a function that moves to another file breaks no test.

Noise is chosen and watched in tests/_tools/sources.py, teachers in tests/_tools/teachers.py. What else a test has to
see or to change comes in through a parameter or a subclass. Mutants plant faults, which is what they are for.
"""

import ast
import functools
import importlib.util
from pathlib import Path

TESTS = Path(__file__).parent

#: "file: what is replaced" and why there is no other way. Nothing is added here without a reason.
EXCEPTIONS = {
    "_tools/sources.py: skfairdp.privacy._noise.open_source": "the seam itself: the one function that makes sources",
    "baselines/test_fair_clipping.py: skfairdp.papers._fair_clipping.MajorityBaselineTest": "it has tests of its own",
    "baselines/test_randomized_response.py: skfairdp.privacy._mechanisms._AT_ONCE": "blocks of a few rows",
    "datasets/test_datasets.py: skfairdp.datasets._fetch.ADULT": "the published table, declared to have two rows",
    "datasets/test_datasets.py: skfairdp.datasets._fetch.BANK": "the published table, declared to have two rows",
    "fairness/test_gate.py: skfairdp.fairness._gate._WORTH_COMPILING": "the compiled loop, on few rows",
    "fairness/test_gate.py: skfairdp.fairness._gate._by_tables": "which rows were decided together",
    "fairness/test_gate.py: skfairdp.fairness._gate_stream.compiled_run": "a machine without numba",
    "fairness/test_many_inequalities.py: skfairdp.fairness._rate_gate._MANY": "very many inequalities, of some hundred",
    "gradient/test_signed_loss.py: skfairdp._networks._training.MOST_COUNTED": "very many rows, of few",
    "gradient/test_temperature.py: skfairdp._networks.private_logits": "the shapes in which rows are asked",
    "inspection/test_audit_estimator.py: skfairdp.inspection._audit_estimator.bounds.audit_one_run_f_dp": "its coins",
    "model_selection/test_own_table.py: skfairdp.model_selection._own_figures._has_one_answer": "noise of its own",
    "model_selection/test_search_rows.py: skfairdp._row_wise._copies": "models that know who asks them",
    "networks/test_stacked.py: skfairdp._networks._stacked._ACTIVATION_FLOATS": "chunks of a few rows",
    "networks/test_stacked.py: skfairdp._networks._stacked._LEAST_ROWS": "chunks of a few rows",
    "pate/test_subjects.py: skfairdp._utils._containers.ROWS_AT_ONCE": "blocks of a few rows",
    "networks/test_wide_sums.py: skfairdp._networks._wide_sums._NUMBERS": "pieces of a few rows",
    "networks/test_wide_sums.py: skfairdp._networks._wide_sums._ROWS": "pieces of a few rows",
    "pate/test_sf_pate.py: skfairdp._teachers._partition.READY": "many rows, of few",
    "pate/test_sf_pate.py: skfairdp.pate._fair_votes.TOGETHER": "some teachers at a time, of few",
    "privacy/test_accounting.py: skfairdp.privacy._accountants._SAMPLED_GRIDS": "coarse grids are bounds too",
    "privacy/test_event_validity.py: skfairdp.privacy._accountants._GRID": "coarse grids are bounds too",
    "privacy/test_event_validity.py: skfairdp.privacy._accountants._SAMPLED_GRIDS": "coarse grids are bounds too",
    "privacy/test_ledger_failures.py: skfairdp.privacy._ledger._OPEN": "another process, which knows of no ledger",
    "privacy/test_ledger_failures.py: skfairdp.privacy._ledger_file.fcntl": "a platform whose files cannot be locked",
    "rows/test_streamed_groups.py: skfairdp.privacy._mechanisms._AT_ONCE": "blocks of a few rows",
    "statistical/test_post_processing.py: skfairdp.pate._fair_pate._MOST_LEFT_OUT": "students that judge",
    "utils/test_progress.py: skfairdp._utils._messages._LONG": "long work that takes no time",
}


def _modules(tree):
    """Names that a file binds to modules of the package, and the modules' full names."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "skfairdp":
                    found[name.asname or "skfairdp"] = name.name if name.asname else "skfairdp"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "skfairdp":
            for name in node.names:
                path = f"{node.module}.{name.name}"
                if _is_module(path):
                    found[name.asname or name.name] = path
    return found


@functools.cache
def _is_module(path):
    try:
        return importlib.util.find_spec(path) is not None
    except (ModuleNotFoundError, AttributeError):
        return False


def patched_locations(source):
    """Names of the package's modules that a file replaces."""
    if not any(word in source for word in ("setattr", "delattr", "patch")):
        return
    tree = ast.parse(source)
    modules = _modules(tree)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args):
            continue
        called = ast.unparse(node.func)
        first = node.args[0]
        if called.split(".")[-1] in ("setattr", "delattr"):
            if isinstance(first, ast.Constant) and str(first.value).startswith("skfairdp."):
                yield str(first.value)
            elif len(node.args) > 1:
                owner, _, rest = ast.unparse(first).partition(".")
                if owner in modules:
                    name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ast.unparse(node.args[1])
                    yield ".".join(filter(None, [modules[owner], rest, name]))
        elif called.split(".")[-1] == "patch" and isinstance(first, ast.Constant):
            yield str(first.value)
        elif called.endswith("patch.object") and ast.unparse(first).partition(".")[0] in modules:
            yield f"{ast.unparse(first)}.{ast.unparse(node.args[1])}"


def test_no_test_replaces_a_name_in_a_module_of_the_package():
    found = {
        f"{path.relative_to(TESTS)}: {place}"
        for path in TESTS.rglob("*.py")
        if "mutants" not in path.relative_to(TESTS).parts
        for place in patched_locations(path.read_text(encoding="utf-8"))
    }
    assert sorted(found - EXCEPTIONS.keys()) == []


def test_the_search_finds_each_way_of_replacing_a_name():
    source = """
import skfairdp.privacy._noise as noise
from skfairdp.privacy import _ledger, PrivacyLedger
from unittest import mock
monkeypatch.setattr(noise, "open_source", f)
monkeypatch.setattr(noise.os, "urandom", f)
patch.setattr(_ledger, name, f)
patch.setattr("skfairdp.pate._votes.release", f)
patch.delattr(_ledger.PrivacyLedger, "charge")
mock.patch("skfairdp.pate.x")
mock.patch.object(_ledger, "y")
setattr(noise, "z", 1)
monkeypatch.setattr(os, "urandom", f)
monkeypatch.setattr(PrivacyLedger, "charge", f)
monkeypatch.setattr(self, "charge", f)
"""
    assert sorted(patched_locations(source)) == [
        "_ledger.'y'",
        "skfairdp.pate._votes.release",
        "skfairdp.pate.x",
        "skfairdp.privacy._ledger.PrivacyLedger.charge",
        "skfairdp.privacy._ledger.name",
        "skfairdp.privacy._noise.open_source",
        "skfairdp.privacy._noise.os.urandom",
        "skfairdp.privacy._noise.z",
    ]
