"""The ledger counts every fit, whoever makes it, and refuses the one that is too much."""

import contextlib
import copy
import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import FairPATEClassifier, RandomizedResponseClassifier
from skfairdp.exceptions import BudgetExceededError, LedgerError, PrivacyLeakWarning
from skfairdp.pate import SoftVoting
from skfairdp.privacy import (
    ArgmaxBit,
    DiscreteGaussian,
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    PrivacyLedger,
    SelfComposedDpEvent,
    ThresholdBit,
    compose,
    epsilon_of,
    gdp_epsilon,
    gdp_mu,
    repeat,
    verify_file,
)
from tests._tools.inside import rounded_up
from tests._tools.processes import ended

RECORD = {"protects": "record", "neighboring_relation": "replace one record"}
ATTRIBUTE = {"protects": "sensitive attribute", "neighboring_relation": "replace one sensitive attribute"}


def charge(ledger, noise=5.0, **guarantee):
    return ledger.charge(GaussianDpEvent(noise), label="test", **(guarantee or RECORD))


class Spender(ClassifierMixin, BaseEstimator):
    """The smallest estimator that spends: it charges one Gaussian and predicts a constant."""

    def __init__(self, ledger=None, noise=5.0):
        self.ledger = ledger
        self.noise = noise

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        charge(self.ledger, self.noise)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


X, Y = np.zeros((30, 2)), np.tile([0, 1], 15)


@pytest.mark.covering
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("on_disk", [False, True])
def test_grid_search_of_seven_fits_leaves_seven_entries(n_jobs, on_disk, tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl" if on_disk else None)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Spender(ledger)), {"spender__noise": [5.0, 6.0]}, cv=KFold(3), n_jobs=n_jobs
    )
    search.fit(X, Y)
    assert len(ledger.entries) == 7
    spent = sorted(entry.event.noise_multiplier for entry in ledger.entries)
    best = search.best_params_["spender__noise"]
    assert spent == sorted([5.0] * 3 + [6.0] * 3 + [best])
    assert ledger.epsilon_spent == pytest.approx(gdp_epsilon(math.sqrt(sum(s**-2 for s in spent)), 1e-5))
    assert search.best_estimator_[-1].ledger is ledger or n_jobs == 2
    assert len(search.best_estimator_[-1].ledger.entries) == 7


def test_ceiling_stops_a_search_before_the_fit_that_would_exceed_it():
    three = gdp_epsilon(math.sqrt(3) / 5, 1e-5)
    ledger = PrivacyLedger(epsilon=three * 1.0001)
    search = GridSearchCV(Spender(ledger), {"noise": [5.0, 5.0]}, cv=KFold(3), error_score="raise")
    with pytest.raises(BudgetExceededError, match="over its ceiling"):
        search.fit(X, Y)
    assert len(ledger.entries) == 3
    assert ledger.epsilon_spent <= ledger.epsilon


def test_clone_copy_and_pickle_keep_the_identity():
    ledger = PrivacyLedger(epsilon=1.0)
    assert clone(ledger) is ledger
    assert clone(Spender(ledger)).ledger is ledger
    assert copy.copy(ledger) is ledger and copy.deepcopy([ledger])[0] is ledger
    assert pickle.loads(pickle.dumps(ledger)) is ledger
    assert ledger.path is not None  # the first pickling moved it to a file that other processes can share


def test_entries_made_before_the_promotion_are_kept():
    ledger = PrivacyLedger()
    charge(ledger)
    pickle.dumps(ledger)
    charge(ledger)
    assert len(ledger.entries) == 2
    assert len(ledger.path.read_text().splitlines()) == 3  # header and two entries


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_workers_of_every_backend_count_into_one_ledger(backend):
    ledger = PrivacyLedger()
    Parallel(n_jobs=2, backend=backend)(delayed(charge)(ledger, 9.0) for _ in range(12))
    assert len(ledger.entries) == 12


def test_concurrent_threads_never_pass_the_ceiling_together():
    ledger = PrivacyLedger(epsilon=gdp_epsilon(math.sqrt(5) / 5, 1e-5) * 1.0001)
    refused = []

    def spend():
        for _ in range(5):
            try:
                charge(ledger)
            except BudgetExceededError:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries) == 5
    assert len(refused) == 15


def test_refused_charge_changes_nothing(tmp_path):
    ledger = PrivacyLedger(epsilon=1.2, path=tmp_path / "ledger.jsonl")
    charge(ledger)
    before = ledger.path.read_bytes()
    with pytest.raises(BudgetExceededError, match="Nothing was released"):
        charge(ledger, 0.5)
    assert ledger.path.read_bytes() == before
    assert len(ledger.entries) == 1
    charge(ledger)  # a smaller one still fits
    assert len(ledger.entries) == 2


def test_dry_run_refuses_without_writing():
    ledger = PrivacyLedger(epsilon=1.0)
    ledger.charge(GaussianDpEvent(5.0), label="t", dry_run=True, **RECORD)
    assert ledger.entries == ()
    with pytest.raises(BudgetExceededError):
        ledger.charge(GaussianDpEvent(0.1), label="t", dry_run=True, **RECORD)


def test_the_total_for_records_is_of_records_and_that_for_attributes_of_all():
    ledger = PrivacyLedger(epsilon=2.0)
    charge(ledger, 5.0)
    with pytest.warns(PrivacyLeakWarning, match="covers the fits for records alone"):
        charge(ledger, 4.0, **ATTRIBUTE)
    assert ledger.spent("record").epsilon == pytest.approx(gdp_epsilon(1 / 5, 1e-5))
    assert ledger.spent("sensitive attribute").epsilon == pytest.approx(gdp_epsilon(math.hypot(1 / 5, 1 / 4), 1e-5))
    assert ledger.epsilon_spent == ledger.spent("sensitive attribute").epsilon
    assert PrivacyLedger().spent("record") is None


@pytest.mark.parametrize("first", [{}, ATTRIBUTE])
def test_a_ledger_tells_once_that_it_holds_both_kinds_of_guarantee(first):
    ledger = PrivacyLedger()
    charge(ledger, 5.0, **first)
    second = ATTRIBUTE if first == {} else {}
    with pytest.warns(PrivacyLeakWarning, match="Keep to one kind"):
        charge(ledger, 5.0, **second)
    charge(ledger, 5.0, **second)  # warnings are errors here
    charge(ledger, 5.0, **first)
    assert len(ledger.entries) == 4


def test_a_fit_of_the_second_kind_tells_so_before_it_spends():
    ledger = PrivacyLedger()
    charge(ledger, 5.0)
    rng = np.random.default_rng(0)
    model = RandomizedResponseClassifier(epsilon=1.0, ledger=ledger, classes=[0, 1], groups=[0, 1])
    rows, groups = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    with pytest.raises(PrivacyLeakWarning, match="Keep to one kind"):
        model.fit(rows, rng.integers(0, 2, 60), sensitive_features=groups)
    assert len(ledger.entries) == 1


def test_entries_under_another_neighbouring_relation_are_refused():
    ledger = PrivacyLedger()
    charge(ledger)
    with pytest.raises(ValueError, match="does not add up"):
        charge(ledger, protects="record", neighboring_relation="add or remove one record")
    assert len(ledger.entries) == 1


def test_no_relation_implies_one_that_costs_more():
    of_records = [NeighboringRelation.REPLACE_ONE, NeighboringRelation.ZERO_OUT]
    of_subjects = [*of_records, NeighboringRelation.ZERO_OUT_SUBJECT]  # which implies none: one row less is two steps
    weaker = {
        NeighboringRelation.REPLACE_ONE: of_records[1:],
        NeighboringRelation.REPLACE_SUBJECT: of_subjects,
        NeighboringRelation.REPLACE_SUBJECT_ATTRIBUTE: [NeighboringRelation.REPLACE_ATTRIBUTE],
    }
    for one in NeighboringRelation:
        implied = [other for other in NeighboringRelation if other is not one and one.implies(other)]
        assert implied == weaker.get(one, [])


@pytest.mark.parametrize("first", ["replace one record", "replace one record by a null record"])
def test_replacing_by_any_record_adds_up_with_replacing_by_a_null_record_under_the_weaker_promise(first, tmp_path):
    both = ("replace one record", "replace one record by a null record")
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl")
    for relation in (first, *(other for other in both if other != first)):
        charge(ledger, protects="record", neighboring_relation=relation)
    spent = ledger.spent()
    assert spent.neighboring_relation == "replace one record by a null record"
    assert spent.epsilon == pytest.approx(gdp_epsilon(math.sqrt(2) / 5, 1e-5))
    assert PrivacyLedger(path=ledger.path).spent() == spent
    assert all(check.holds for check in verify_file(ledger.path))
    with pytest.raises(ValueError, match="does not add up"):
        charge(ledger, protects="record", neighboring_relation="add or remove one record")


def test_a_file_is_continued_by_the_next_session(tmp_path):
    path = tmp_path / "ledger.jsonl"
    first = PrivacyLedger(2.0, 1e-6, path=path)
    charge(first)
    again = PrivacyLedger(2.0, 1e-6, path=path)
    charge(again)
    assert len(first.entries) == len(again.entries) == 2
    assert again.epsilon_spent == pytest.approx(epsilon_of(repeat(GaussianDpEvent(5.0), 2), 1e-6))


def test_a_file_opened_with_another_budget_is_an_error(tmp_path):
    path = tmp_path / "ledger.jsonl"
    PrivacyLedger(2.0, 1e-6, path=path)
    with pytest.raises(LedgerError, match="its own budget"):
        PrivacyLedger(3.0, 1e-6, path=path)


def test_unpickled_without_its_file_is_exhausted_never_fresh():
    script = (
        "import pickle, sys, os\n"
        "from skfairdp.privacy import PrivacyLedger\n"
        "sys.stdout.buffer.write(pickle.dumps(PrivacyLedger(1.0)))\n"
    )
    payload = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    ledger = pickle.loads(payload)  # its temporary file went with the process that made it
    assert ledger.epsilon_spent == math.inf
    with pytest.raises(BudgetExceededError, match="no longer exists"):
        charge(ledger, 1e6)


def test_a_deleted_file_exhausts_the_ledger(tmp_path):
    ledger = PrivacyLedger(1.0, path=tmp_path / "ledger.jsonl")
    charge(ledger)
    ledger.path.unlink()
    with pytest.raises(BudgetExceededError, match="no longer exists"):
        charge(ledger, 1e6)
    assert ledger.epsilon_spent == math.inf


def test_a_torn_last_line_was_never_charged_and_a_damaged_one_is_not_forgiven(tmp_path):
    path = tmp_path / "ledger.jsonl"
    charge(PrivacyLedger(2.0, path=path))
    with open(path, "ab") as file:
        file.write(b'{"label": "interrupted wri')
    ledger = PrivacyLedger(2.0, path=path)
    charge(ledger)
    assert len(PrivacyLedger(2.0, path=path).entries) == 2
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"not json\n" + lines[2])
    with pytest.raises(LedgerError, match="damaged"):
        PrivacyLedger(2.0, path=path)


def test_an_entry_is_on_disk_before_charge_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd))[1])
    ledger = PrivacyLedger(1.0, path=tmp_path / "ledger.jsonl")
    size = ledger.path.stat().st_size
    charge(ledger)
    assert synced[-1] == ledger.path.stat().st_size > size


class Dies(SoftVoting):
    def release(self, *args, **kwargs):
        super().release(*args, **kwargs)  # noise has been drawn ...
        os.kill(os.getpid(), signal.SIGKILL)  # ... and nobody gets to clean up


def test_kill_9_in_the_middle_of_a_fit_leaves_what_was_spent_on_record(rows, tmp_path):
    path = tmp_path / "ledger.jsonl"

    def fit():
        ledger = PrivacyLedger(5.0, path=path)
        model = FairPATEClassifier(epsilon=0.7, n_teachers=5, classes=[0, 1], voting=Dies(), ledger=ledger)
        model.fit(rows.X, rows.y, X_public=rows.public)

    assert ended(fit) == -signal.SIGKILL
    ledger = PrivacyLedger(5.0, path=path)
    assert [entry.label for entry in ledger.entries] == ["FairPATEClassifier"]
    assert 0.69 < ledger.epsilon_spent <= 0.7


def test_a_killed_holder_of_the_lock_does_not_block_the_others(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = PrivacyLedger(5.0, path=path)
    script = f"""
import fcntl, time
file = open({str(path)!r}, "r+")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline().strip() == "held"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    start = time.perf_counter()
    charge(ledger)
    assert time.perf_counter() - start < 10
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("arguments", [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": "1"}, {"delta": 0}, {"delta": 1}])
def test_impossible_budgets_are_errors(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        PrivacyLedger(**arguments)


def test_file_holds_plain_json_and_nothing_but_events(tmp_path):
    ledger = PrivacyLedger(math.inf, path=tmp_path / "ledger.jsonl")
    ledger.charge(repeat(ThresholdBit(10, 6.0, 3.0), 4), label="L", releases=("4 thresholds",), **RECORD)
    header, entry = [json.loads(line) for line in Path(ledger.path).read_text().splitlines()]
    named = {"format": "skfairdp-ledger-2", "epsilon": "inf", "delta": 1e-5, "id": ledger.id}
    assert header == {**named, "count": 1, "head": entry["hash"]}
    assert set(entry) == {"index", "label", "protects", "neighboring_relation", "releases", "event", "hash"}
    assert oct(ledger.path.stat().st_mode)[-3:] == "600"


# ------------------------------------------------------------------ the ceiling

CEILINGS = {
    "gaussian": (lambda scale: GaussianDpEvent(scale), 1.0),
    "bits": (lambda scale: repeat(ArgmaxBit(50, 20 * scale), 20), 1.0),
    "discrete": (lambda scale: repeat(DiscreteGaussian(scale), 3), 2.0),
    "pure": (lambda scale: LaplaceDpEvent(scale), 0.7),
}


@pytest.mark.parametrize("kind", CEILINGS)
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_charge_is_accepted_up_to_the_ceiling_and_by_no_part_of_it_beyond(kind, on_disk, tmp_path):
    """The ceiling is meant to the last digit: what composes to it is accepted, a billionth more is refused."""
    event_at, scale = CEILINGS[kind]
    event = event_at(scale)
    for number, (share, accepted) in enumerate([(1.0, True), (1 / (1 + 1e-9), False), (1 / 1.001, False), (1.5, True)]):
        ceiling = epsilon_of(repeat(event, 2), 1e-5) * share
        ledger = PrivacyLedger(ceiling, path=tmp_path / f"{number}.jsonl" if on_disk else None)
        ledger.charge(event, label="first", **RECORD)
        for dry_run in (True, False):
            with contextlib.nullcontext() if accepted else pytest.raises(BudgetExceededError, match="over its ceiling"):
                ledger.charge(event, label="second", dry_run=dry_run, **RECORD)
        assert len(ledger.entries) == 1 + accepted
        assert ledger.epsilon_spent <= ceiling


@settings(max_examples=25, deadline=None)
@given(ceiling=st.floats(0.05, 20.0), fits=st.integers(1, 5), delta=st.sampled_from([1e-9, 1e-5, 1e-2]))
def test_fits_calibrated_to_share_a_ceiling_fill_it_and_nothing_passes_it(ceiling, fits, delta):
    noise = math.sqrt(fits) / gdp_mu(ceiling, delta)
    ledger = PrivacyLedger(ceiling, delta)
    for _ in range(fits):
        charge(ledger, noise)
    assert ceiling * (1 - 1e-6) <= ledger.epsilon_spent <= ceiling
    tiny = noise * 1e3
    assert epsilon_of(compose(repeat(GaussianDpEvent(noise), fits), GaussianDpEvent(tiny)), delta) > ceiling
    with pytest.raises(BudgetExceededError):
        charge(ledger, tiny)


# ------------------------------------------------------------------ what may be charged


WRONG = {
    "unknown unit": {"protects": "person"},
    "unit of another relation": {"protects": "sensitive attribute"},
    "no unit": {"protects": None},
    "unknown relation": {"neighboring_relation": "swap two records"},
    "relation of another unit": {"neighboring_relation": "replace one sensitive attribute"},
    "label": {"label": 3},
    "releases in one string": {"releases": "one string"},
    "releases in numbers": {"releases": (1, 2)},
    "negative noise": {"event": GaussianDpEvent(-5.0)},
    "no number": {"event": GaussianDpEvent(math.nan)},
    "negative count": {"event": SelfComposedDpEvent(GaussianDpEvent(5.0), -1)},
    "no event": {"event": None},
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_not_well_formed_is_refused_and_leaves_no_entry(wrong, dry_run):
    ledger = PrivacyLedger()
    charge(ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # where a mistake is planted, an entry gets that far
        with pytest.raises(ValueError):
            ledger.charge(**{"event": GaussianDpEvent(5.0), "label": "test", **RECORD, **WRONG[wrong]}, dry_run=dry_run)
    assert len(ledger.entries) == 1
    assert ledger.epsilon_spent == epsilon_of(GaussianDpEvent(5.0), 1e-5)


@pytest.mark.filterwarnings("ignore:Two fits here protect subjects")
@pytest.mark.parametrize("relation", NeighboringRelation)
def test_strings_and_enums_mean_the_same(relation):
    ledger = PrivacyLedger()
    first = charge(ledger, protects=relation.protects, neighboring_relation=relation)
    second = charge(ledger, protects=str(relation.protects), neighboring_relation=str(relation))
    assert first == second and first.protects is relation.protects and first.neighboring_relation is relation
    assert ledger.spent(str(relation.protects)).epsilon == ledger.spent(relation.protects).epsilon > 0
    with pytest.raises(ValueError, match="must be one of"):
        ledger.spent("person")


# ------------------------------------------------------------------ to look at


def two_kinds():
    ledger = PrivacyLedger(3.0)
    charge(ledger, 5.0)
    charge(ledger, 4.0, **ATTRIBUTE)
    ledger.charge(GaussianDpEvent(6.0), label="<b>&x</b>", releases=("1 mean", "2 sums"), **RECORD)
    return ledger


@pytest.mark.filterwarnings("ignore:.*Keep to one kind")
def test_frame_has_a_row_per_entry_with_its_epsilon_alone_and_what_is_spent_after_it():
    frame = two_kinds().to_frame()
    assert list(frame.index) == [1, 2, 3]
    assert list(frame["protects"]) == ["record", "sensitive attribute", "record"]
    assert list(frame["epsilon"]) == [epsilon_of(GaussianDpEvent(noise), 1e-5) for noise in (5.0, 4.0, 6.0)]
    assert frame["epsilon_total"][1] == frame["epsilon"][1] < frame["epsilon"][2] < frame["epsilon_total"][2]
    assert frame["epsilon_total"][3] == two_kinds().epsilon_spent > two_kinds().spent("record").epsilon
    assert frame["releases"][3] == "1 mean; 2 sums"
    assert frame["hash"][3] != two_kinds().head.partition(":")[2]  # the same charges, and another ledger
    empty = PrivacyLedger().to_frame()
    assert len(empty) == 0 and list(empty.columns) == list(frame.columns)


@pytest.mark.filterwarnings("ignore:.*Keep to one kind")
def test_page_is_self_contained_escaped_and_says_what_the_frame_says(tmp_path):
    ledger = two_kinds()
    page = ledger.to_html(tmp_path / "ledger.html")
    assert (tmp_path / "ledger.html").read_text(encoding="utf-8") == page
    assert "&lt;b&gt;&amp;x&lt;/b&gt;" in page and "<b>" not in page
    assert not re.search(r"(src|href)=|<script|@import|url\(", page)
    for _, row in ledger.to_frame().iterrows():
        assert rounded_up(row.epsilon) in page and rounded_up(row.epsilon_total) in page and row["hash"][:12] in page
    part = ledger._repr_html_()
    assert part[part.index("<h2>") : part.index("</section>")].strip() in page and "<html" not in part


def test_the_name_of_a_folder_is_no_markup(tmp_path):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    folder.mkdir()
    ledger = PrivacyLedger(epsilon=1.0, path=folder / "ledger.jsonl")
    for page in (ledger.to_html(), ledger._repr_html_()):
        assert "<img" not in page and "&lt;img" in page
