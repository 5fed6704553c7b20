"""No door takes a release under neighbours for which its cost has no proof, and ``verify`` refutes a file that does."""

import hashlib
import itertools
import json

import pytest

from skfairdp import privacy as dp
from skfairdp.exceptions import LedgerError
from skfairdp.privacy import NeighboringRelation, PrivacyLedger, PrivacySpent, attribute_event, epsilon_of, verify_file
from skfairdp.privacy._events import _EVENTS
from tests._tools.inside import UnreadableStatementError

REPLACED = NeighboringRelation.REPLACE_ONE
NULL = NeighboringRelation.ZERO_OUT
GUEST = NeighboringRelation.ADD_OR_REMOVE_ONE
ATTRIBUTE = NeighboringRelation.REPLACE_ATTRIBUTE
GONE = NeighboringRelation.ZERO_OUT_SUBJECT
EVERY = frozenset(NeighboringRelation)
KEEPS_THE_RECORD = frozenset({REPLACED, NULL, ATTRIBUTE, NeighboringRelation.REPLACE_SUBJECT_ATTRIBUTE})

GAUSSIAN = dp.GaussianDpEvent(5.0)
SAMPLED = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(2.0))
#: A release of each kind, and the neighbours for which its cost is proven.
LEAVES = {
    "ArgmaxBit": (dp.ArgmaxBit(50, 20.0), EVERY),
    "DiscreteGaussian": (dp.DiscreteGaussian(5.0), EVERY),
    "GaussianDpEvent": (GAUSSIAN, EVERY),
    "LaplaceDpEvent": (dp.LaplaceDpEvent(9.0), EVERY),
    "NoOpDpEvent": (dp.NoOpDpEvent(), EVERY),
    "NonPrivateDpEvent": (dp.NonPrivateDpEvent(), EVERY),
    "PoissonSampledDpEvent": (SAMPLED, frozenset({GUEST, NULL, GONE})),
    "RandomizedResponseDpEvent": (dp.RandomizedResponseDpEvent(0.8, 2), KEEPS_THE_RECORD),
    "RareDisclosure": (dp.RareDisclosure(1e-9), EVERY),
    "ReplaceSampledGaussian": (dp.ReplaceSampledGaussian(0.1, 2.0), EVERY - {GUEST}),
    "ThresholdBit": (dp.ThresholdBit(50, 20.0, 15.0), EVERY),
}
AROUND = {
    "alone": lambda event: event,
    "ComposedDpEvent": lambda event: dp.ComposedDpEvent([GAUSSIAN, event]),
    "SelfComposedDpEvent": lambda event: dp.SelfComposedDpEvent(event, 3),
    "WorstOf": lambda event: dp.WorstOf((GAUSSIAN, event)),
    "RepeatAndSelectDpEvent": lambda event: dp.RepeatAndSelectDpEvent(event, 3.0, 1.0),
    "deep": lambda event: dp.ComposedDpEvent(
        [GAUSSIAN, dp.SelfComposedDpEvent(dp.WorstOf((GAUSSIAN, dp.ComposedDpEvent([GAUSSIAN, event]))), 2)]
    ),
}


PAIRS = list(itertools.product(LEAVES, NeighboringRelation))


def guarantee(relation):
    return {"protects": str(relation.protects), "neighboring_relation": str(relation)}


def test_every_event_is_here():
    assert LEAVES.keys() | AROUND.keys() >= _EVENTS.keys()


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("name", "relation"), PAIRS)
def test_every_door_refuses_what_is_not_proven_for_its_neighbours_and_takes_the_rest(name, relation, around):
    leaf, proven = LEAVES[name]
    event, ledger = AROUND[around](leaf), PrivacyLedger()
    doors = [
        lambda: ledger.charge(event, label="x", dry_run=True, **guarantee(relation)),
        lambda: attribute_event(event, relation),
    ]
    if around == "alone":  # the same door, whose figure takes a while for trees
        doors.append(lambda: PrivacySpent.of(event, 1e-5, **guarantee(relation)))
    if relation in proven:
        for door in doors if around == "alone" else doors[1:]:
            door()
        return
    for door in doors:
        with pytest.raises(ValueError, match=rf"cost of {name} is proven for .*, not for '{relation}'"):
            door()
    assert ledger.entries == ()


def test_the_refusal_names_the_event_to_state_instead_and_that_one_is_taken():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="'replace one record by a null record'\\) writes it"):
        ledger.charge(SAMPLED, label="x", **guarantee(REPLACED))
    entry = ledger.charge(attribute_event(SAMPLED, NULL), label="x", **guarantee(REPLACED))
    assert entry.event == dp.ReplaceSampledGaussian(0.1, 2.0)
    assert ledger.epsilon_spent > epsilon_of(SAMPLED, 1e-5) * 1.2  # what the refused charge would have hidden


# ---- files -----------------------------------------------------------------------------------------------------------
def written(path, *fits, epsilon=1e6, again=()):
    """A ledger's file with an unbroken chain, as a program that checks nothing would write it."""
    budget = json.dumps({"format": "skfairdp-ledger-2", "epsilon": epsilon, "delta": 1e-5, "id": "0" * 32})
    last, lines = hashlib.sha256(budget.encode()).hexdigest(), []
    with_events = PrivacyLedger(path=path)
    for event, _ in fits:
        with_events.charge(event, label="x", **guarantee(NULL))
    events = [json.loads(line)["event"] for line in path.read_text("utf-8").splitlines()[1:]]
    for number, ((_, relation), event) in enumerate(zip(fits, events, strict=True), 1):
        entry = {"index": number, "label": "x", **guarantee(relation), "releases": [], "event": event}
        content = json.dumps(entry)[:-1] + "".join(again) + "}"
        last = hashlib.sha256(f"{last}\n{content}".encode()).hexdigest()
        lines.append(f'{content[:-1]}, "hash": "{last}"}}\n')
    header = budget[:-1] + f', "count": {len(lines):10d}, "head": "{last}"}}\n'
    path.write_text(header + "".join(lines), "utf-8")
    return path


def refuted(path):
    return [check.figure for check in verify_file(path) if not check.holds]


@pytest.mark.parametrize(("name", "relation"), [pair for pair in PAIRS if pair[0] != "NonPrivateDpEvent"])
def test_verify_refutes_a_ledger_of_unproven_neighbours_and_no_ledger_opens_it(name, relation, tmp_path):
    leaf, proven = LEAVES[name]
    event = leaf if relation in proven else AROUND["deep"](leaf)
    path = written(tmp_path / "ledger", (GAUSSIAN, relation), (event, relation))
    if relation in proven:
        assert refuted(path) == []
        assert len(PrivacyLedger(1e6, path=path).entries) == 2
        return
    assert refuted(path) == ["chain of entries", "ledger: relation of fit 2 fits its releases"]
    with pytest.raises(LedgerError, match=r"damaged .*is proven for"):
        PrivacyLedger(1e6, path=path)


@pytest.mark.parametrize(("first", "second"), [(REPLACED, NULL), (REPLACED, GUEST), (NULL, GUEST)])
def test_verify_refutes_a_ledger_whose_entries_do_not_add_up(first, second, tmp_path):
    path = written(tmp_path / "ledger", (GAUSSIAN, first), (GAUSSIAN, second))
    assert refuted(path) == (["chain of entries", "ledger: relations add up"] if GUEST in (first, second) else [])


def test_verify_takes_no_ledger_with_a_key_twice_nor_one_of_another_version(tmp_path):
    twice = ', "event": {"type": "NoOpDpEvent"}'
    with pytest.raises(UnreadableStatementError, match="given twice"):
        verify_file(written(tmp_path / "twice", (GAUSSIAN, NULL), again=(twice,)))
    budget = written(tmp_path / "budget", (GAUSSIAN, NULL))
    text = budget.read_text("utf-8")
    budget.write_text(text.replace('"}\n', '", "epsilon": 9e9}\n', 1), "utf-8")
    with pytest.raises(UnreadableStatementError, match="given twice"):
        verify_file(budget)
    budget.write_text(text.replace("ledger-2", "ledger-3", 1), "utf-8")
    with pytest.raises(UnreadableStatementError, match="another version"):
        verify_file(budget)


def test_verify_asks_every_ledger_of_this_format_for_its_chain(tmp_path):
    path = written(tmp_path / "ledger", (GAUSSIAN, NULL))
    header, *lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text(json.dumps({key: json.loads(header)[key] for key in ("format", "epsilon", "delta")}) + "\n"
                    + "".join(lines), "utf-8")  # fmt: skip
    with pytest.raises(UnreadableStatementError, match="'count' is missing"):
        verify_file(path)
