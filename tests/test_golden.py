"""Every fit of the catalogue answers, reports and charges what was frozen, to the digit."""

import json

import pytest

from tests._tools.catalogue import CATALOGUE, by_name
from tests._tools.golden import PATH, differences, frozen, same_machine, tolerance_of, written

GOLDEN = json.loads(PATH.read_text())

each_fit = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)


@each_fit
def test_a_fit_under_seeded_noise_is_what_was_frozen(entry):
    expected, tolerance = GOLDEN["fits"][entry.name], tolerance_of(entry.name)
    told = differences(frozen(entry), expected, exact=same_machine(GOLDEN), tolerance=tolerance)
    assert not told, "\n".join(told)


def test_nothing_is_frozen_that_the_catalogue_does_not_have():
    assert list(GOLDEN["fits"]) == [entry.name for entry in CATALOGUE]
    assert len(GOLDEN["fits"]) == len(set(GOLDEN["fits"])) >= 80


def test_every_announced_change_names_an_entry_and_its_reason():
    for change in GOLDEN["announced"]:
        assert change["entry"] in GOLDEN["fits"] and len(change["reason"]) > 10


def test_the_comparison_sees_every_part():
    entry = "PATE-soft-2"
    expected = GOLDEN["fits"][entry]
    assert differences(expected, expected, exact=True) == []
    for path, value in [
        (("arrays", "predict", "values", 0), 7),
        (("arrays", "predict", "dtype"), "int32"),
        (("arrays", "predict_proba", "values", 3, 0), 0.123456789),
        (("privacy", "mechanism_epsilon"), 1.0),
        (("privacy", "event"), {}),
        (("ledger", 0, "releases"), []),
        (("ledger",), []),
    ]:
        changed = json.loads(json.dumps(expected))
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        changed["sha256"] = "another"
        assert len(differences(changed, expected, exact=True)) == 1, path


def test_writing_touches_only_what_is_named_and_notes_why(tmp_path):
    path = tmp_path / "golden.json"
    stale = json.loads(PATH.read_text())
    for name in ("ParityFilter", "IDP3"):
        stale["fits"][name]["sha256"] = "stale"
    path.write_text(json.dumps(stale))
    golden = written(["ParityFilter"], "a filter that shuffles", path)
    assert golden == json.loads(path.read_text())
    assert golden["announced"][-1] == {"entry": "ParityFilter", "reason": "a filter that shuffles"}
    assert golden["fits"]["ParityFilter"] == frozen(by_name("ParityFilter"))
    assert [name for name in stale["fits"] if golden["fits"][name] != stale["fits"][name]] == ["ParityFilter"]
    with pytest.raises(SystemExit, match="no Nonsense"):
        written(["Nonsense"], "", path)
