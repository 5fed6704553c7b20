"""The list of stale results says of which frozen fits it speaks."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FITS = json.loads((ROOT / "tests" / "vectors" / "golden.json").read_text())["fits"]


@pytest.fixture
def check():
    spec = importlib.util.spec_from_file_location("check", ROOT / "benchmarks" / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_method_of_a_result_has_frozen_fits_and_every_name_a_result(check):
    names = [path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")]
    for first, methods in check.METHODS.items():
        assert any(name.startswith(first) for name in names), first
        assert all(any(fit.startswith(method) for fit in FITS) for method in methods), first


def test_frozen_fits_that_were_written_anew_are_named_and_others_are_not(check, monkeypatch):
    then = {name: dict(fit) for name, fit in FITS.items()}
    then["PFLD-raw"]["sha256"] = "another"
    del then["PFLD-several"]
    monkeypatch.setattr(check, "git", lambda *words: json.dumps({"fits": then}))
    said = check.changed("pfld_bank", {"revision": "0123456789"})
    assert said.endswith("frozen fits changed: PFLD-several, PFLD-raw") and said.startswith("; 2 of ")
    assert check.changed("fair_dpsgd_bank", {"revision": "0123456789"}).endswith("frozen fits are as they were")
    assert check.changed("audit", {"revision": "0123456789"}) == ""
