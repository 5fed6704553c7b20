"""Fits of the catalogue, one for each estimator and main option, answer, report and charge what was frozen."""

import json

import numpy as np
import pytest

from tests._tools.catalogue import CATALOGUE, by_name
from tests._tools.golden import PATH, TOLERANCE, differences, frozen, written

GOLDEN = json.loads(PATH.read_text())
FITS = GOLDEN["fits"]


@pytest.mark.parametrize("name", FITS)
def test_a_fit_under_seeded_noise_is_what_was_frozen(name):
    told = differences(frozen(by_name(name)), FITS[name])
    assert not told, "\n".join(told)


def test_every_estimator_of_the_catalogue_has_a_frozen_fit():
    def kind(entry):
        return type(entry.make()).__name__

    assert {kind(entry) for entry in CATALOGUE} == {kind(by_name(name)) for name in FITS}


def test_every_announced_change_names_an_entry_and_its_reason():
    for change in GOLDEN["announced"]:
        assert change["entry"] in FITS and len(change["reason"]) > 10


def changed(fit, path, value):
    copy = json.loads(json.dumps(fit))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value(at[path[-1]]) if callable(value) else value
    return copy


def test_the_comparison_sees_every_part():
    expected = FITS["PATE-soft-2"]
    assert differences(expected, expected) == []
    probabilities = np.asarray(expected["arrays"]["predict_proba"]["values"])
    surest = int(np.ptp(probabilities, axis=1).argmax())
    for path, value in [
        (("arrays", "predict", "values", surest), 7),
        (("arrays", "predict", "dtype"), "int32"),
        (("arrays", "predict_proba", "values"), (probabilities + 2 * TOLERANCE).tolist()),
        (("privacy", "mechanism_epsilon"), lambda epsilon: epsilon * (1 + 1e-7)),
        (("privacy", "event"), {}),
        (("ledger", 0, "releases"), []),
        (("ledger",), []),
    ]:
        assert len(differences(changed(expected, path, value), expected)) == 1, path
    judged = FITS["FairPATE-own-rows"]
    for name, value in (("gap", lambda gap: gap + 0.03), ("gap_bound", 0.0), ("holds", "no"), ("gap_bound", "nan")):
        assert len(differences(changed(judged, ("judged", name), value), judged)) == 1, name
    assert differences(changed(judged, ("judged", "gap"), lambda gap: gap + 0.01), judged) == []


def test_last_digits_and_labels_on_the_edge_belong_to_the_machine():
    expected = FITS["PATE-soft-2"]
    close = changed(expected, ("arrays", "predict_proba", "values", 0), [0.5 - TOLERANCE / 3, 0.5 + TOLERANCE / 3])
    expected = changed(close, ("arrays", "predict_proba", "values", 0), [0.5 + TOLERANCE / 3, 0.5 - TOLERANCE / 3])
    for found in (
        close,
        changed(close, ("arrays", "predict", "values", 0), lambda label: 1 - label),
        changed(close, ("privacy", "mechanism_epsilon"), lambda epsilon: epsilon * (1 + 1e-10)),
    ):
        assert differences(found, expected) == []


def test_writing_touches_only_what_is_named_and_differs_and_notes_why(tmp_path):
    path = tmp_path / "golden.json"
    stale = json.loads(PATH.read_text())
    for name in ("ParityFilter", "IDP3"):
        stale["fits"][name]["arrays"] = {}
    path.write_text(json.dumps(stale))
    golden = written(["ParityFilter", "GroupRandomizer"], "a filter that shuffles", path)
    assert golden == json.loads(path.read_text())
    assert golden["announced"][-1] == {"entry": "ParityFilter", "reason": "a filter that shuffles"}
    assert golden["fits"]["ParityFilter"] == frozen(by_name("ParityFilter"))
    assert [name for name in stale["fits"] if golden["fits"][name] != stale["fits"][name]] == ["ParityFilter"]
    with pytest.raises(ValueError, match="not enough values"):
        written(["Nonsense"], "", path)
