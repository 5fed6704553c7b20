"""IDP3 where several requests come at once, from threads and processes: the gap holds after every answer."""

import json
import multiprocessing
import os
import stat
import threading
import time

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator

from skfairdp import IDP3
from skfairdp.fairness import RateParity, largest_disparity
from skfairdp.postprocessing import _idp3

GAMMA, ROWS = 0.05, 100
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")


def begun(**options):
    """Counts without a gap, past the cold start: 60 rows of each group."""
    idp = IDP3(**({"gamma": GAMMA, "groups": ["f", "m"]} | options)).fit(None, [0, 1])
    idp.answer([0, 0, 0, 1, 1] * 24, sensitive_features=["f"] * 60 + ["m"] * 60)
    assert idp.counts_.sum() == 120
    return idp


def stream(seed):
    """Rows one by one; the model tells 1 to three in ten women and seven in ten men."""
    rng = np.random.default_rng(seed)
    for _ in range(ROWS):
        group = rng.choice(["f", "m"])
        yield [int(rng.random() < {"f": 0.3, "m": 0.7}[group])], [group]


def slowly(patch):
    """Threads change places between the decision and its count."""
    decide = IDP3._admitted

    def and_wait(self, groups, labels):
        mask = decide(self, groups, labels)
        time.sleep(0.0005)
        return mask

    patch.setattr(IDP3, "_admitted", and_wait)


def run_threads(idp, n_threads=8):
    gaps, failed = [], []

    def service(seed):
        try:
            for row, group in stream(seed):
                idp.answer(row, sensitive_features=group)
                gaps.append(largest_disparity(idp.counts_))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=service, args=(seed,)) for seed in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    return gaps


def test_the_gap_holds_after_every_answer_of_eight_threads(monkeypatch):
    slowly(monkeypatch)
    idp = begun()
    gaps = run_threads(idp)
    assert len(gaps) == 8 * ROWS and max(gaps) <= GAMMA
    assert idp.counts_.sum() + idp.rejected_counts_.sum() == 120 + 8 * ROWS
    assert 0.5 < idp.coverage_ < 1


def test_answers_are_those_of_one_call_and_of_transform_and_update():
    rows = [next(stream(seed)) for seed in range(300)]
    predicted, groups = [y for (y,), _ in rows], [z for _, (z,) in rows]
    one, whole, other = begun(), begun(), begun()
    singly = [one.answer([y], sensitive_features=[z])[0] for y, z in zip(predicted, groups, strict=True)]
    assert singly == whole.answer(predicted, sensitive_features=groups).tolist()
    answered = other.transform(predicted, sensitive_features=groups)
    other.update(answered, sensitive_features=groups)
    assert singly == answered.tolist() and -1 in singly
    for name in ("counts_", "rejected_counts_", "coverage_", "rejection_rate_by_group_"):
        np.testing.assert_equal(getattr(one, name), getattr(other, name))


def test_an_estimator_answers_features():
    model = FrozenEstimator(DummyClassifier(strategy="constant", constant=1).fit([[0.0], [0.0]], [0, 1]))
    idp = IDP3(model, groups=["f", "m"], min_count=1).fit([[0.0], [0.0]], [0, 1], sensitive_features=["f", "m"])
    assert idp.answer([[1.0], [0.0]], sensitive_features=["f", "m"]).tolist() == [1, 1]
    assert idp.counts_.tolist() == [[0, 1], [0, 1]]


def test_a_request_that_fails_commits_nothing(tmp_path, monkeypatch):
    idp = begun(store=tmp_path / "answers")
    before = idp.counts_.copy(), (tmp_path / "answers").read_bytes()
    with pytest.raises(ValueError, match="takes 'tickets' only with"):
        idp.answer([1], sensitive_features=["f"], tickets=[1])
    with pytest.raises(ValueError, match="y_pred"):
        idp.answer([7], sensitive_features=["f"])

    def full(*args, **kwargs):
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no room"):
        idp.answer([1], sensitive_features=["f"])
    assert idp.counts_.tolist() == before[0].tolist() and (tmp_path / "answers").read_bytes() == before[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers", "answers.lock"]


# ---- processes ------------------------------------------------------------------------------------------------
def worker(path, seed, gaps):
    idp = IDP3(gamma=GAMMA, groups=["f", "m"], store=path).fit(None, [0, 1])
    found = []
    for row, group in stream(seed):
        idp.answer(row, sensitive_features=group)
        found.append(largest_disparity(idp.counts_))
    gaps.put((max(found), len(found)))


def test_the_gap_holds_after_every_answer_of_four_processes(tmp_path):
    path = tmp_path / "answers.json"
    begun(store=path)
    context = multiprocessing.get_context("fork")
    gaps = context.Queue()
    workers = [context.Process(target=worker, args=(path, seed, gaps)) for seed in range(4)]
    for one in workers:
        one.start()
    found = [gaps.get(timeout=120) for _ in workers]
    for one in workers:
        one.join()
    assert max(gap for gap, _ in found) <= GAMMA and sum(n for _, n in found) == 4 * ROWS
    late = IDP3(gamma=GAMMA, groups=["f", "m"], store=path).fit(None, [0, 1])  # goes on from what the others told
    assert late.counts_.sum() + late.rejected_counts_.sum() == 120 + 4 * ROWS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert late.reset().counts_.sum() == 0 and json.loads(path.read_text())["answered"] == [[0, 0], [0, 0]]


def test_labels_come_back_to_any_process(tmp_path):
    options = {
        "constraints": RateParity("true_positive_rate", 0.2), "groups": ["f", "m"], "store": tmp_path / "answers",
        "min_count": 20,
    }  # fmt: skip
    one, other = (IDP3(**options).fit(None, [0, 1]) for _ in range(2))
    tickets = [(day, k) for day in (0, 1) for k in range(50)]
    told = one.answer([1, 0] * 50, sensitive_features=["f", "m"] * 50, tickets=tickets)
    assert other.update_labels([1] * 60, tickets=tickets[:60]) is other
    with pytest.raises(ValueError, match="waits for no label"):
        one.update_labels([1], tickets=[tickets[0]])
    assert one.worst_case() == other.worst_case() and (told != -1).all()
    assert one.label_counts_.sum() == 60 and one.outstanding_counts_.sum() == 40
    with pytest.raises(ValueError, match="must be strings, whole numbers, or tuples"):
        one.answer([0], sensitive_features=["f"], tickets=[1.5])
    assert one.outstanding_counts_.sum() == 40


def test_a_store_of_another_stream_and_one_that_is_gone_are_refused(tmp_path):
    path = tmp_path / "answers"
    idp = begun(store=path)
    for other in ({"groups": ["m", "f"]}, {"groups": ["f", "m", "x"]}, {"constraints": "equalized_odds"}):
        options = {"groups": ["f", "m"], "store": path} | other
        with pytest.raises(ValueError, match="a file of its own"):
            IDP3(**options).fit(None, [0, 1])
    with pytest.raises(ValueError, match="a file of its own"):
        IDP3(groups=["f", "m"], store=path).fit(None, ["no", "yes"])
    path.unlink()
    with pytest.raises(ValueError, match="is gone"):
        idp.answer([1], sensitive_features=["f"])
    assert idp.reset().answer([1], sensitive_features=["f"]).tolist() == [1]
    path.write_text("not json")
    with pytest.raises(ValueError, match="a file of its own"):
        idp.answer([1], sensitive_features=["f"])


def test_locks_are_let_go_of_when_a_request_fails(tmp_path):
    idp = begun(store=tmp_path / "answers")
    for _ in range(2):
        with pytest.raises(ValueError, match="y_pred"):
            idp.answer([7], sensitive_features=["f"])
    assert not _idp3._COMMITS.locked()
    assert idp.answer([1], sensitive_features=["f"]).shape == (1,)
