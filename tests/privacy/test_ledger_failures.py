"""A ledger fails closed: forks, kills, interrupts, full disks, links, damage and old copies lose no charge."""

import contextlib
import errno
import json
import math
import multiprocessing
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from joblib import Parallel, delayed

from skfairdp.exceptions import BudgetExceededError, LedgerError, PrivacyLeakWarning
from skfairdp.privacy import (
    GaussianDpEvent,
    PrivacyLedger,
    PrivacySpent,
    _ledger,
    _ledger_file,
    gdp_epsilon,
    verify_file,
)
from tests._tools.layers import examples
from tests._tools.processes import in_child

RECORD = {"label": "test", "protects": "record", "neighboring_relation": "replace one record"}
ONE = gdp_epsilon(1 / 5, 1e-5)  # of one charge
FOR_ONE = 1.3 * ONE  # a ceiling under which a second does not fit

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")


def charge(ledger, noise=5.0):
    return ledger.charge(GaussianDpEvent(noise), **RECORD)


def attempt(ledger):
    """The outcome of a charge, as a word that a pipe can carry."""
    try:
        charge(ledger)
    except Exception as error:
        return type(error).__name__
    return "charged"


def fresh(ledger):
    """The file as another process would find it."""
    return PrivacyLedger(ledger.epsilon, ledger.delta, path=ledger.path)


def forget(monkeypatch):
    """Unpickle as another process would: without the objects of this one."""
    monkeypatch.setattr(_ledger, "_OPEN", weakref.WeakValueDictionary())


@contextlib.contextmanager
def file_size_limit(limit):
    """A full disk: writing beyond the limit fails, in the middle of a line if need be."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


# ------------------------------------------------------------------ forks


@pytest.mark.parametrize("on_disk", [False, True])
def test_five_forked_fits_under_a_ceiling_for_one_are_one_charge(on_disk, tmp_path):
    ledger = PrivacyLedger(FOR_ONE, path=tmp_path / "ledger.jsonl" if on_disk else None)
    outcomes = [in_child(lambda: attempt(ledger)) for _ in range(4)] + [attempt(ledger)]
    assert sorted(outcomes) == ["BudgetExceededError"] * 4 + ["charged"]
    assert len(ledger.entries) == 1
    assert ledger.epsilon_spent == pytest.approx(ONE)


_GLOBAL = None


def spend_global(_):
    return attempt(_GLOBAL)


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("how", ["pool", "multiprocessing", "loky"])
def test_pools_of_every_kind_share_one_ledger_in_memory(how):
    global _GLOBAL
    _GLOBAL = ledger = PrivacyLedger(FOR_ONE)
    try:
        if how == "pool":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                outcomes = pool.map(spend_global, range(5))
        elif how == "multiprocessing":
            outcomes = Parallel(2, backend="multiprocessing")(delayed(spend_global)(i) for i in range(5))
        else:
            outcomes = Parallel(2, backend="loky")(delayed(attempt)(ledger) for _ in range(5))
        assert sorted(outcomes) == ["BudgetExceededError"] * 4 + ["charged"]
        assert len(ledger.entries) == 1
    finally:
        _GLOBAL = None


def test_a_child_whose_parent_had_no_room_for_a_file_is_refused_and_the_parent_still_counts():
    ledger = PrivacyLedger(FOR_ONE)
    charge(ledger)
    with file_size_limit(20):
        assert in_child(lambda: attempt(ledger)) == "BudgetExceededError"
        assert in_child(lambda: ledger.epsilon_spent) == "inf"
    assert ledger.path is None
    assert len(ledger.entries) == 1
    assert attempt(ledger) == "BudgetExceededError"


def test_a_process_that_does_not_own_the_memory_is_refused_whatever_made_it(monkeypatch):
    ledger = PrivacyLedger()
    monkeypatch.setattr(os, "getpid", lambda: ledger._owner + 1)
    with pytest.raises(BudgetExceededError, match="memory of the process that was forked"):
        charge(ledger)
    with pytest.raises(LedgerError, match="memory of the process that was forked"):
        pickle.dumps(ledger)
    monkeypatch.undo()
    charge(ledger)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_fork_while_a_thread_charges_neither_hangs_nor_loses_a_charge(on_disk, tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl" if on_disk else None)
    stop, made = threading.Event(), []

    def keep_charging():
        while not stop.is_set():
            charge(ledger, 50.0)
            made.append(1)

    thread = threading.Thread(target=keep_charging)
    thread.start()
    try:
        outcomes = [in_child(lambda: attempt(ledger)) for _ in range(8)]
    finally:
        stop.set()
        thread.join()
    assert outcomes == ["charged"] * 8
    assert len(ledger.entries) == len(made) + 8


def test_a_lock_that_a_thread_holds_at_the_fork_is_not_inherited(tmp_path):
    """The child waits for the parent's thread as everybody does: it neither enters beside it nor waits forever."""
    ledger = PrivacyLedger(FOR_ONE, path=tmp_path / "ledger.jsonl")
    inside, release = threading.Event(), threading.Event()
    append = ledger._append

    def slow(line):
        inside.set()
        release.wait(20)
        append(line)

    ledger._append = slow
    thread = threading.Thread(target=charge, args=(ledger,))
    thread.start()
    inside.wait(20)
    del ledger._append
    threading.Timer(0.3, release.set).start()
    assert in_child(lambda: attempt(ledger)) == "BudgetExceededError"
    thread.join()
    assert len(ledger.entries) == len(fresh(ledger).entries) == 1


def test_the_parent_can_die_with_the_lock_although_a_child_was_forked_meanwhile(tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl")

    def parent():
        inside = threading.Event()
        ledger._append = lambda line: (inside.set(), time.sleep(20))
        threading.Thread(target=charge, args=(ledger,), daemon=True).start()
        inside.wait(20)
        if os.fork() == 0:
            time.sleep(2)  # outlives its parent, which dies with the lock
            os._exit(0)
        return "dies"

    assert in_child(parent) == "dies"
    start = time.perf_counter()
    charge(ledger)
    assert time.perf_counter() - start < 1.5


# ------------------------------------------------------------------ processes, kills, interrupts


def test_eight_processes_never_pass_the_ceiling_together(tmp_path):
    fits = 13
    ceiling = gdp_epsilon(math.sqrt(fits) / 5, 1e-5)
    ledger = PrivacyLedger(ceiling * (1 + 1e-9), path=tmp_path / "ledger.jsonl")
    results = tmp_path / "results"
    pids = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            with open(results, "a") as file:
                for _ in range(4):
                    print(attempt(ledger), file=file, flush=True)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    assert results.read_text().split().count("charged") == fits == len(ledger.entries)
    assert ledger.epsilon_spent <= ledger.epsilon


def kill_while_charging(path, kills, seed):
    """Kill -9 a process that charges in a loop, again and again. Returns (acknowledged charges, entries on file)."""
    rng = random.Random(seed)
    acknowledged = 0
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    for _ in range(kills):
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            ledger = PrivacyLedger(path=path)  # every process opens, or creates, it anew
            while True:
                charge(ledger, 500.0)
                os.write(writing, b".")
        time.sleep(rng.uniform(0, 0.06))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with contextlib.suppress(BlockingIOError):
            acknowledged += len(os.read(reading, 1 << 16))
    os.close(reading)
    os.close(writing)
    return acknowledged, len(PrivacyLedger(path=path).entries)


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments_of_charging_loses_and_refunds_nothing(kills, tmp_path):
    path = tmp_path / "ledger.jsonl"
    acknowledged, on_record = kill_while_charging(path, kills, seed=kills)
    assert acknowledged > 0
    # One charge per kill may be on record although nobody lived to hear of it.
    assert acknowledged <= on_record <= acknowledged + kills
    assert not [name for name in os.listdir(tmp_path) if name not in ("ledger.jsonl",) and ".ledger" not in name]


@pytest.mark.parametrize("step", range(14))
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_at_any_step_of_a_charge_leaves_memory_and_disk_alike(step, after, tmp_path, monkeypatch):
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl")
    charge(ledger)
    calls = []

    def interrupting(name):
        real = getattr(os, name)

        def call(*args):
            calls.append(name)
            if len(calls) - 1 == step and not after:
                raise KeyboardInterrupt
            result = real(*args)
            if len(calls) - 1 == step and after:
                raise KeyboardInterrupt
            return result

        return call

    with monkeypatch.context() as patch:
        for name in ("open", "fstat", "lseek", "read", "write", "fsync", "close"):
            patch.setattr(os, name, interrupting(name))
        try:
            charge(ledger)
        except KeyboardInterrupt:
            pass
        else:
            assert len(calls) <= step, "the interrupt was swallowed"
    there = len(fresh(ledger).entries)
    assert there == len(ledger.entries) in (1, 2)
    charge(ledger)
    assert len(ledger.entries) == len(fresh(ledger).entries) == there + 1


class _Alarm(BaseException):
    pass


@pytest.mark.skipif(sys.gettrace() is not None, reason="an interrupt within coverage's own lock never lets go of it")
# What rings while garbage is collected is swallowed by whoever is called there, such as hypothesis, and told as this.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("times", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_interrupts_at_random_moments_never_cost_a_charge_that_returned(times, tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl")
    rng = random.Random(times)
    returned = 0

    def ring(*_):
        raise _Alarm

    handler = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(times):
            with contextlib.suppress(_Alarm):
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 4e-3))
                charge(ledger, 500.0)
                returned += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert returned <= len(ledger.entries) == len(fresh(ledger).entries)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert returned <= len(ledger.entries) <= times


class _InTheMiddle:
    """A signal handler that charges the ledger before the N-th line of another charge."""

    def __init__(self, ledger, at):
        self.ledger, self.left, self.charged = ledger, at, 0

    def __call__(self, frame, event, arg):
        if "skfairdp" not in frame.f_code.co_filename:
            return None
        self.left -= event == "line"
        if self.left == 0:
            sys.settrace(None)
            self.charged += attempt(self.ledger) == "charged"
        return self


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_charge_in_the_middle_of_another_one_loses_neither(on_disk, tmp_path):
    """Found: of two fits that had both released, one was on record."""
    outside, inside = 0, 0
    for at in range(1, 1200, 61):
        ledger = PrivacyLedger(path=tmp_path / f"{at}.jsonl" if on_disk else None)
        handler, before = _InTheMiddle(ledger, at), sys.gettrace()
        sys.settrace(handler)
        try:
            returned = attempt(ledger) == "charged"
        finally:
            sys.settrace(before)
        outside += returned
        inside += handler.charged
        there = fresh(ledger) if on_disk else ledger
        assert len(there.entries) == len(ledger.entries) == returned + handler.charged, at
    assert outside == 20 and inside < 5  # before the first line of the ledger, and after the last, it is free


# ------------------------------------------------------------------ names of one file


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symlink", "hard link"])
def test_all_names_of_a_file_share_one_lock(link, tmp_path):
    first = PrivacyLedger(path=tmp_path / "a.jsonl")
    link(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    second = PrivacyLedger(path=tmp_path / "b.jsonl")
    threads = [threading.Thread(target=lambda of=of: [charge(of, 50.0) for _ in range(25)]) for of in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(first.entries) == len(second.entries) == len(fresh(first).entries) == 50


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symlink", "hard link"])
def test_nothing_is_charged_under_another_name_between_a_decision_and_its_line(link, tmp_path):
    first = PrivacyLedger(FOR_ONE, path=tmp_path / "a.jsonl")
    link(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    second = PrivacyLedger(FOR_ONE, path=tmp_path / "b.jsonl")
    append, outcomes = first._append, []
    thread = threading.Thread(target=lambda: outcomes.append(attempt(second)))

    def slow(line):
        thread.start()
        thread.join(0.3)
        outcomes.append("first")
        append(line)

    first._append = slow
    charge(first)
    thread.join()
    assert outcomes == ["first", "BudgetExceededError"]
    assert len(fresh(first).entries) == 1


def test_where_files_cannot_be_locked_a_named_lock_serves_and_hard_links_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_ledger_file, "fcntl", None)
    ledger = PrivacyLedger(FOR_ONE, path=tmp_path / "a.jsonl")
    charge(ledger)
    os.symlink(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert attempt(PrivacyLedger(FOR_ONE, path=tmp_path / "b.jsonl")) == "BudgetExceededError"
    assert os.path.exists(tmp_path / "a.jsonl.lock") and not os.path.exists(tmp_path / "b.jsonl.lock")
    os.link(tmp_path / "a.jsonl", tmp_path / "c.jsonl")
    for name in ("a.jsonl", "c.jsonl"):
        with pytest.raises(LedgerError, match="hard links"):
            PrivacyLedger(FOR_ONE, path=tmp_path / name)


# ------------------------------------------------------------------ promotion


@pytest.mark.parametrize("limit", [0, 20, 100, 250, 400])
def test_a_promotion_that_finds_no_room_keeps_every_entry_in_memory(limit):
    ledger = PrivacyLedger(FOR_ONE)
    charge(ledger)
    before = set(os.listdir(tempfile.gettempdir()))
    with file_size_limit(limit), pytest.raises(LedgerError, match="could not be created"):
        pickle.dumps(ledger)
    assert ledger.path is None
    assert len(ledger.entries) == 1
    assert attempt(ledger) == "BudgetExceededError"
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("skfairdp-ledger")]
    assert pickle.loads(pickle.dumps(ledger)) is ledger  # with room again, nothing was lost
    assert len(fresh(ledger).entries) == 1


@pytest.mark.parametrize("target", ["existing", "dangling"])
def test_a_promotion_follows_no_planted_link(target, tmp_path, monkeypatch):
    folder, victim = tmp_path / "folder", tmp_path / "victim"
    folder.mkdir()
    if target == "existing":
        victim.write_text("precious")
    os.symlink(victim, folder / "ledger.jsonl")
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(folder))
    ledger = PrivacyLedger()
    charge(ledger)
    with pytest.raises(LedgerError, match="was there before"):
        pickle.dumps(ledger)
    assert victim.read_text() == "precious" if target == "existing" else not victim.exists()
    assert len(ledger.entries) == 1 and ledger.path is None


def test_a_promoted_ledger_is_private_to_its_user_and_goes_with_its_process():
    def promoted():
        ledger = PrivacyLedger()
        pickle.dumps(ledger)
        modes = oct(ledger.path.stat().st_mode)[-3:], oct(ledger.path.parent.stat().st_mode)[-3:]
        _ledger.atexit._run_exitfuncs()
        return [*modes, ledger.path.parent.exists()]

    assert in_child(promoted) == "['600', '700', False]"


# ------------------------------------------------------------------ damage


def three_entries(tmp_path):
    """A file with three entries that are told apart by their noise."""
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl")
    for noise in (5.0, 6.0, 7.0):
        charge(ledger, noise)
    return ledger


def lines_of(ledger):
    return ledger.path.read_bytes().splitlines(keepends=True)


DAMAGES = {
    "last line cut": lambda lines: lines[:-1],
    "middle line cut": lambda lines: [lines[0], lines[1], lines[3]],
    "all entries cut": lambda lines: lines[:1],
    "header cut": lambda lines: lines[1:],
    "swapped": lambda lines: [lines[0], lines[2], lines[1], lines[3]],
    "doubled": lambda lines: [*lines, lines[-1]],
    "first doubled": lambda lines: [lines[0], lines[1], *lines[1:]],
    "noise edited": lambda lines: [*lines[:2], lines[2].replace(b"6.0", b"600.0"), lines[3]],
    "label edited": lambda lines: [*lines[:3], lines[3].replace(b'"test"', b'"best"')],
    "index edited": lambda lines: [*lines[:3], lines[3].replace(b'"index": 3', b'"index": 4')],
    "space added": lambda lines: [*lines[:3], lines[3].replace(b'"index": 3', b'"index":  3')],
    "half a line": lambda lines: [*lines[:3], lines[3][:40]],
    "no json": lambda lines: [*lines[:2], b"not json\n", lines[3]],
    "nested without end": lambda lines: [*lines[:3], b"[" * 100_000 + b"\n"],
    "count lowered": lambda lines: [lines[0].replace(b" 3,", b" 2,"), *lines[1:]],
    "count raised": lambda lines: [lines[0].replace(b" 3,", b" 4,"), *lines[1:]],
    "count lowered and cut": lambda lines: [lines[0].replace(b" 3,", b" 2,"), *lines[1:3]],
    "budget edited": lambda lines: [lines[0].replace(b"1e-05", b"1e-06"), *lines[1:]],
    "emptied": lambda lines: [],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_those_who_know_it_and_by_those_who_do_not(damage, tmp_path, monkeypatch):
    three = three_entries(tmp_path)
    copy = pickle.dumps(three)
    lines = DAMAGES[damage](lines_of(three))
    three.path.write_bytes(b"".join(lines))
    with pytest.raises(LedgerError):
        fresh(three)
    forget(monkeypatch)
    for ledger in (three, pickle.loads(copy)):
        with pytest.raises(LedgerError):
            charge(ledger, 1e6)
        with pytest.raises(LedgerError):
            ledger.charge(GaussianDpEvent(1e6), **RECORD, dry_run=True)
        with pytest.raises(LedgerError):
            _ = ledger.epsilon_spent
        assert "unreadable" in repr(ledger) and "unreadable" in ledger._repr_html_()


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_byte_is_changed_or_cut_no_entry_is_refunded(data, tmp_path):
    path = tmp_path / "ledger.jsonl"
    three = PrivacyLedger(path=path) if path.exists() else three_entries(tmp_path)
    whole = three.path.read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        damaged = whole[:position]
    else:
        damaged = whole[:position] + bytes([data.draw(st.integers(0, 255))]) + whole[position + 1 :]
    path = three.path.with_name("damaged.jsonl")
    path.write_bytes(damaged)
    try:
        entries = PrivacyLedger(path=path).entries
    except LedgerError:
        return
    assert entries == three.entries


def test_a_file_rolled_back_is_noticed_by_objects_pickles_and_notes(tmp_path, monkeypatch):
    three = three_entries(tmp_path)
    old = three.path.read_bytes()
    charge(three, 8.0)
    note, copy = three.head, pickle.dumps(three)
    assert three.continues(note)
    three.path.write_bytes(old)  # valid in itself, and one entry short
    with pytest.raises(LedgerError, match="another copy"):
        charge(three, 1e6)
    forget(monkeypatch)
    reopened = pickle.loads(copy)
    with pytest.raises(LedgerError, match="rolled back"):
        charge(reopened, 1e6)
    with pytest.raises(LedgerError, match="rolled back"):
        _ = reopened.epsilon_spent
    newcomer = fresh(three)  # nothing in the file is wrong: only a note can tell
    assert not newcomer.continues(note)
    assert newcomer.continues(newcomer.head) and newcomer.continues(f"0:{newcomer._chain.hashes[0]}")


def test_a_file_replaced_by_a_fresh_one_is_noticed(tmp_path, monkeypatch):
    three = three_entries(tmp_path)
    copy = pickle.dumps(three)
    three.path.unlink()
    PrivacyLedger(path=three.path)
    with pytest.raises(LedgerError):
        charge(three, 1e6)
    forget(monkeypatch)
    with pytest.raises(LedgerError, match="rolled back or replaced"):
        charge(pickle.loads(copy), 1e6)


def test_a_file_that_is_restored_is_the_ledger_again(tmp_path):
    three = three_entries(tmp_path)
    three.path.rename(tmp_path / "elsewhere")
    assert three.epsilon_spent == math.inf
    with pytest.raises(BudgetExceededError, match="no longer exists"):
        charge(three, 1e6)
    with pytest.raises(LedgerError, match="no longer exists"):
        three.spent()
    (tmp_path / "elsewhere").rename(three.path)
    charge(three, 8.0)
    assert len(three.entries) == 4


def test_a_lost_newline_refunds_nothing(tmp_path):
    three = three_entries(tmp_path)
    three.path.write_bytes(three.path.read_bytes()[:-1])
    other = fresh(three)
    assert len(other.entries) == len(three.entries) == 3
    charge(other, 8.0)
    assert len(three.entries) == len(fresh(three).entries) == 4
    assert [entry.event.noise_multiplier for entry in three.entries] == [5.0, 6.0, 7.0, 8.0]


def test_a_whole_line_beyond_the_count_counts_and_a_torn_one_was_never_charged(tmp_path):
    """What a killed process leaves: the header's count is raised only when the line is on disk."""
    three = three_entries(tmp_path)
    three_on_file = three.path.read_bytes()
    charge(three, 8.0)
    header, line = three_on_file.split(b"\n")[0], lines_of(three)[-1]
    body = three_on_file.split(b"\n", 1)[1]
    path = three.path.with_name("killed.jsonl")
    for end, entries in ((b"", 3), (line[:1], 3), (line[:60], 3), (line[:-2], 3), (line[:-1], 4), (line, 4)):
        path.write_bytes(header + b"\n" + body + end)
        assert len(PrivacyLedger(path=path).entries) == entries
        charge(PrivacyLedger(path=path), 9.0)
        assert len(PrivacyLedger(path=path).entries) == entries + 1


def test_a_file_of_another_format_is_refused_and_says_what_to_do(tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_text('{"format": "skfairdp-ledger-1", "epsilon": "inf", "delta": 1e-05}\n')
    with pytest.raises(LedgerError, match=r"new ledger at another path, and charge each line"):
        PrivacyLedger(path=path)
    path.write_text('{"format": "skfairdp-ledger-9", "epsilon": "inf", "delta": 1e-05}\n')
    with pytest.raises(LedgerError, match="not a ledger of this version"):
        PrivacyLedger(path=path)
    path.write_text("")
    with pytest.raises(LedgerError, match="delete the file first"):
        PrivacyLedger(path=path)
    with pytest.raises(LedgerError, match="not a regular file"):
        PrivacyLedger(path=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"protects": "person"},
        {"neighboring_relation": "swap two records"},
        {"neighboring_relation": "replace one sensitive attribute"},
        {"event": {"type": "GaussianDpEvent", "noise_multiplier": -5.0}},
        {"event": {"type": "SelfComposedDpEvent", "event": {"type": "NoOpDpEvent"}, "count": -1}},
        {"event": {"type": "GaussianDpEvent", "noise_multiplier": 5.0, "more": 1}},
        {"event": None},
        {"releases": [3]},
    ],
    ids=str,
)
def test_a_line_that_was_written_for_its_hash_still_has_to_make_sense(change, tmp_path):
    """The chain is no signature: somebody can compute it. What is in the line is checked as in ``charge``."""
    three = three_entries(tmp_path)
    import hashlib

    header, first, second, third = lines_of(three)
    fields = {**json.loads(third), **change}
    del fields["hash"]
    content = json.dumps(fields)
    digest = hashlib.sha256(f"{json.loads(second)['hash']}\n{content}".encode()).hexdigest()
    line = f'{content[:-1]}, "hash": "{digest}"}}\n'.encode()
    header = header.replace(json.loads(third)["hash"].encode(), digest.encode())
    three.path.write_bytes(b"".join([header, first, second, line]))
    with pytest.raises(LedgerError, match="damaged"):
        fresh(three)


# ------------------------------------------------------------------ disks


@pytest.mark.parametrize("room", [0, 1, 30, 200])
def test_a_disk_that_is_full_in_the_middle_of_a_line_charges_nothing(room, tmp_path):
    three = three_entries(tmp_path)
    before = three.path.read_bytes()
    with file_size_limit(len(before) + room), pytest.raises(LedgerError, match="nothing was released"):
        charge(three, 8.0)
    assert three.path.read_bytes() == before
    assert len(three.entries) == len(fresh(three).entries) == 3
    charge(three, 8.0)
    assert len(fresh(three).entries) == 4


@pytest.mark.parametrize("name", ["write", "fsync", "ftruncate"])
@pytest.mark.parametrize("call", range(4))
def test_a_failing_disk_refunds_nothing(name, call, tmp_path, monkeypatch):
    three = three_entries(tmp_path)
    real, calls = getattr(os, name), []

    def failing(*args):
        calls.append(args)
        if len(calls) > call:
            raise OSError(errno.EIO, "I/O error")
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing)
        refused = attempt(three)
    on_record = len(fresh(three).entries)
    assert on_record == len(three.entries)
    assert refused in ("charged", "LedgerError")
    # A charge that was refused may stay on record, where the disk could not take it back; never the other way.
    assert on_record == 4 if refused == "charged" else on_record in (3, 4)
    charge(three, 9.0)
    assert len(fresh(three).entries) == on_record + 1


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:7]))
    ledger = PrivacyLedger(path=tmp_path / "ledger.jsonl")
    charge(ledger)
    monkeypatch.undo()
    assert len(fresh(ledger).entries) == 1


@contextlib.contextmanager
def as_somebody_who_may_not_write(folder):
    if os.geteuid() == 0:
        os.chmod(folder, 0o755)
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        os.chmod(folder, 0o555)
        try:
            yield
        finally:
            os.chmod(folder, 0o755)


def test_a_read_only_disk_can_be_read_and_takes_no_charge():
    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(FOR_ONE, path=Path(folder, "ledger.jsonl"))
        charge(ledger)
        os.chmod(ledger.path, 0o444)
        with as_somebody_who_may_not_write(folder):
            again = fresh(ledger)
            assert again.epsilon_spent == pytest.approx(ONE)
            for dry_run in (False, True):
                with pytest.raises(LedgerError, match="could not be written"):
                    again.charge(GaussianDpEvent(1e6), **RECORD, dry_run=dry_run)
            with pytest.raises(LedgerError, match="could not be created"):
                PrivacyLedger(path=Path(folder, "new.jsonl"))
        assert sorted(os.listdir(folder)) == ["ledger.jsonl"]
    with pytest.raises(LedgerError, match="could not be created"):
        PrivacyLedger(path=Path(folder, "nowhere", "ledger.jsonl"))


def test_a_ledger_of_as_many_entries_is_not_the_one_that_was_noted(tmp_path, monkeypatch):
    """An older copy with another entry on it: as long, and each of its lines is whole."""
    three = three_entries(tmp_path)
    old = three.path.read_bytes()
    charge(three, 8.0)
    note, copy = three.head, pickle.dumps(three)
    three.path.write_bytes(old)
    other = fresh(three)
    charge(other, 9.0)
    assert len(other.entries) == 4 and not other.continues(note)
    forget(monkeypatch)
    with pytest.raises(LedgerError, match="rolled back or replaced"):
        charge(pickle.loads(copy), 1e6)


# ------------------------------------------------------------------ which ledger it is


def spending(ledger):
    """A report of one charge, as a fit has it."""
    event = charge(ledger).event
    guarantee = {name: RECORD[name] for name in ("protects", "neighboring_relation")}
    return PrivacySpent.of(event, 1e-5, **guarantee, label="test", release="one", on_record=ledger.head)


def test_a_ledger_with_the_same_entries_is_not_taken_for_another(tmp_path):
    one, other = (PrivacyLedger(path=tmp_path / name) for name in ("one", "other"))
    assert not other.continues(one.head)  # before there is any entry
    spent, _ = spending(one), spending(other)
    assert one.continues(spent.on_record) and not other.continues(spent.on_record)
    stated = spent.statement(ledger=one).to_dict(), spent.statement(ledger=other).to_dict()
    assert [said["parts"][0]["on_ledger"] for said in stated] == [True, False]
    assert [said["ledger"]["id"] for said in stated] == [one.id, other.id] and one.id != other.id
    for ledger in (one, other):  # each file says whose it is, and verify repeats it
        assert any(ledger.id[:12] in check.claimed for check in verify_file(ledger.path))


def test_the_identity_stays_through_sessions_copies_pickles_forks_and_workers(tmp_path, monkeypatch):
    ledger = PrivacyLedger(path=tmp_path / "ledger")
    spent = spending(ledger)
    (tmp_path / "copy").write_bytes(ledger.path.read_bytes())
    memory = PrivacyLedger()
    identity = memory.id
    for again in (fresh(ledger), PrivacyLedger(path=tmp_path / "copy")):
        assert again.id == ledger.id and again.continues(spent.on_record)
    assert Parallel(n_jobs=2)(delayed(lambda one: one.id)(ledger) for _ in range(2)) == [ledger.id] * 2
    assert in_child(lambda: memory.id) == memory.id == identity  # it has moved to a file
    kept = pickle.dumps(ledger)
    forget(monkeypatch)
    reopened = pickle.loads(kept)
    assert reopened is not ledger and reopened.id == ledger.id and reopened.continues(spent.on_record)


def test_a_file_of_another_ledger_with_equal_entries_is_refused(tmp_path, monkeypatch):
    one, other = (PrivacyLedger(path=tmp_path / name) for name in ("one", "other"))
    charge(one), charge(other)
    kept = pickle.dumps(one)
    one.path.write_bytes(other.path.read_bytes())
    with pytest.raises(LedgerError, match="replaced by another ledger"):
        charge(one)
    forget(monkeypatch)
    with pytest.raises(LedgerError, match="rolled back or replaced"):
        charge(pickle.loads(kept))


def test_a_pickle_of_a_pickle_made_while_the_file_was_gone_is_the_ledger_again(tmp_path, monkeypatch):
    ledger = three_entries(tmp_path)
    kept = pickle.dumps(ledger)
    ledger.path.rename(tmp_path / "elsewhere")
    forget(monkeypatch)
    again = pickle.dumps(pickle.loads(kept))
    (tmp_path / "elsewhere").rename(ledger.path)
    forget(monkeypatch)
    assert pickle.loads(again).entries == ledger.entries


def test_a_file_of_an_earlier_version_goes_on_counting_and_says_what_it_lacks(tmp_path):
    chain = _ledger_file.Chain.empty(math.inf, 1e-5)
    chain = chain.appended(_ledger_file.LedgerEntry(event=GaussianDpEvent(5.0), **RECORD))
    path = tmp_path / "old"
    path.write_bytes(chain.header + chain.lines)
    assert b'"id"' not in path.read_bytes()
    with pytest.warns(PrivacyLeakWarning, match="has no id"):
        old = PrivacyLedger(path=path)
    spent = spending(old)
    assert old.id == "" and len(old.entries) == 2 and old.continues(spent.on_record)
    said = spent.statement(ledger=old).to_dict()
    assert "id" not in said["ledger"] and said["parts"][0]["on_ledger"]
    assert all(check.holds for check in verify_file(path))
