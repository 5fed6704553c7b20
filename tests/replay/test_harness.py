"""The replay test finds what it looks for: a sound toy passes, and each way of leaking is told."""

import numpy as np
import pytest

from skfairdp.privacy import (
    GaussianMechanism,
    GNMax,
    LaplaceCounts,
    NoisyThreshold,
    NoisyVotes,
    PoissonSample,
    RandomizedResponse,
    SecretChoice,
)
from tests._tools.leaking_toys import LEAKS, PrivateMean
from tests._tools.observing import observed, plain, stored
from tests._tools.replay import Recording, distance, replay
from tests._tools.sources import RecordingNoise, Release

D = [0.25, 0.5, 0.75, 1.0]
NEIGHBOUR = [7.5, 0.5, 0.75, 1.0]

#: The beginning of what is told of each leak.
TOLD = {
    "an attribute": "attributes.n_extreme_",
    "a private attribute": "attributes._largest",
    "a type": "attributes.zero_",
    "a string's length": "attributes.name_",
    "a category": "attributes.levels_",
    "minus zero": "attributes.zero_",
    "a truth for a one": "attributes.one_",
    "the order of a set": "attributes.order_",
    "a prediction": "attributes._shift",
    "a warning": "warnings",
    "the text of a warning": "warnings",
    "printed text": "stdout",
    "text from C": "stderr",
    "a log record": "log",
    "a file": "files",
    "an exception": "exceptions",
    "the cause of an exception": "exceptions",
    "a draw from the global generator": "global generators",
    "unclipped": "release 0 of GaussianMechanism: true values are 7.25 apart",
    "one release more": "order of charges and releases",
    "charged again": "order of charges and releases",
    "noise follows the data": "order of charges and releases",
    "sensitivity too small": "release 0 of GaussianMechanism: true values are 0.75 apart",
}


def told(leak, neighbour=NEIGHBOUR):
    def make(ledger):
        return PrivateMean(leak=leak, ledger=ledger)

    def fit(toy, x):
        return toy.fit([1, 1, 1, 1] if leak == "a type" and x is D else x)

    return replay(make, fit, D, neighbour, lambda toy: toy.predict(range(3))).differences()


def test_a_sound_estimator_passes():
    assert told(None) == []


def test_every_leak_of_the_toy_has_its_text():
    assert set(TOLD) == set(LEAKS)


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_told_by_where_it_shows(leak):
    assert any(text.startswith(TOLD[leak]) for text in told(leak)), told(leak)


def test_what_only_a_stored_state_shows_is_told():
    class Stateful(PrivateMean):
        def fit(self, x):
            self.__class__.seen = max(x)
            return super().fit(x)

        def __getstate__(self):
            return {**super().__getstate__(), "hidden": self.seen}

    seen = Recording(lambda ledger: Stateful(ledger=ledger), Stateful.fit, D).on(NEIGHBOUR)
    assert "handed on" not in "".join(told(None))
    assert {text.partition(":")[0] for text in seen.differences()} == {"handed on.hidden[1]"}
    assert plain(Stateful()) == plain(Stateful())
    assert stored(PrivateMean()) == stored(PrivateMean()) != stored(PrivateMean(sigma=6.0))


def test_a_replay_hands_out_the_outputs_and_keeps_the_true_values():
    recording = Recording(lambda ledger: PrivateMean(ledger=ledger), PrivateMean.fit, D)
    seen = recording.on(NEIGHBOUR)
    (mine,), (theirs,) = seen.record.releases, seen.other.releases
    assert mine.private == ([2.5],) and theirs.private == ([3.25],)
    assert mine.output != theirs.output  # what the neighbour would have released itself
    assert seen.original.parts["attributes"]["mean_"] == seen.neighbour.parts["attributes"]["mean_"]
    assert [text.split(" ")[0] for text in seen.record.order] == ["would", "charges", "releases"]


def test_an_output_changed_in_place_does_not_change_the_record():
    source = RecordingNoise()
    out = GaussianMechanism(1.0).release(np.zeros(2), source)
    out += 100
    assert np.abs(source.releases[0].output).max() < 50


def test_a_value_that_cannot_be_released_fails_in_the_replay_as_well():
    first = RecordingNoise()
    GaussianMechanism(1.0).release([0.0], first)
    with pytest.raises(ValueError, match="finite"):
        GaussianMechanism(1.0).release([np.nan], RecordingNoise(replay=first.record))


@pytest.mark.parametrize("n", [240, 241])
def test_secret_draws_are_the_same_whatever_is_released_and_for_one_row_more(n):
    draws = []
    for before in (0, 3):
        source = RecordingNoise(entropy=0)
        for _ in range(before):
            GaussianMechanism(1.0).release([0.0], source)
        rows = n if before else 240
        draws.append((PoissonSample(0.3).draw(rows, source), SecretChoice(9).draw(source), source.words(rows)))
    (a, first, words), (b, second, more) = draws
    np.testing.assert_array_equal(a, b[b < 240])
    assert first == second and 20 < len(a) < 130
    np.testing.assert_array_equal(words, more[:240])


def test_other_secrets_are_other_draws_and_other_sources_too():
    first = RecordingNoise(entropy=0)
    second = RecordingNoise(entropy=0, record=first.record)
    again, other = RecordingNoise(entropy=0), RecordingNoise(entropy=1)
    words = first.words(4)
    np.testing.assert_array_equal(again.words(4), words)
    assert not np.array_equal(second.words(4), words)
    assert not np.array_equal(other.words(4), words)


@pytest.mark.parametrize(
    ("mechanism", "a", "b", "moved", "allowed"),
    [
        (GaussianMechanism(1.0, sensitivity=2.0), [[0, 3], [0, 0]], [[0, 0], [4, 0]], 5.0, 2.0),
        (NoisyVotes(1.0, n_teachers=9, n_classes=2), [[4, 5], [9, 0]], [[5, 4], [8, 1]], 1.0, 1.0),
        (NoisyVotes(1.0, n_teachers=9, n_classes=3), [[4, 5, 0]], [[5, 4, 0]], np.sqrt(2), np.sqrt(2)),
        (LaplaceCounts(1.0, n_rows=9, n_kinds=2), [4, 5], [5, 4], 1.0, 1.0),
        (LaplaceCounts(1.0, n_rows=9, n_kinds=3), [[4, 5, 0]], [[5, 4, 0]], 2.0, 2.0),
        (NoisyThreshold(1.0, n_teachers=9), [4, 5], [5, 4], 1.0, 1.0),
        (GNMax(1.0, n_teachers=9, n_classes=3), [4, 5, 0], [5, 4, 0], np.sqrt(2), np.sqrt(2)),
        (RandomizedResponse(1.0), [0, 1, 1], [1, 1, 0], 2.0, 1.0),
        (RandomizedResponse(1.0), [0, 1, 1], [0, 1], np.inf, 1.0),
    ],
)
def test_distances_are_those_of_the_declared_sensitivity(mechanism, a, b, moved, allowed):
    one, other = (Release(mechanism, (np.array(values),), {}, None) for values in (a, b))
    assert distance(one, other) == (pytest.approx(moved), pytest.approx(allowed))


def test_a_mechanism_without_a_rule_is_not_waved_through():
    class Strange:
        sensitivity = 1.0

    with pytest.raises(TypeError, match="Strange"):
        distance(*(Release(Strange(), (np.zeros(1),), {}, None) for _ in range(2)))


def test_looking_leaves_the_working_folder_and_the_streams_as_they_were(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    seen = observed(lambda: PrivateMean(leak="a file"), lambda toy: toy.fit(D), None)
    assert list(tmp_path.iterdir()) == [] and seen.parts["files"] == {"notes.txt": b"1.0"}
    print("out again")
    assert capfd.readouterr().out == "out again\n"
