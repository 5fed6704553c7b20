"""Mistakes in the ledger and in what it accepts: copies that forget, locks that miss, events that are free."""

import contextlib
import dataclasses
import json
import math
import os
import re
from pathlib import Path

from filelock import FileLock

from skfairdp.exceptions import LedgerError
from skfairdp.generative import _generator
from skfairdp.privacy import (
    DiscreteGaussian,
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    PrivacyLedger,
    RandomizedResponseDpEvent,
    ReplaceSampledGaussian,
    Spending,
    _account,
    _accountants,
    _attribute_cost,
    _events,
    _gdp,
    _ledger_block,
    _ledger_file,
    _ledger_file as _ledger_chain,
    _recompute,
    _spending,
    _statement,
    _verify,
    compose,
    epsilon_of,
    repeat,
)
from tests._tools.inside import Allowance
from tests._tools.processes import in_child
from tests.mutants.harness import mutant, replace_everywhere


@mutant
def a_ledger_in_memory_is_copied_by_fork(patch):
    """Found: every forked child counts on a copy of its own. Right: one ledger, or a refusal."""
    patch.setattr(PrivacyLedger, "_before_fork", lambda self: None)
    patch.setattr(PrivacyLedger, "_owner", property(lambda self: os.getpid(), lambda self, value: None), raising=False)


@mutant
def a_child_trusts_the_memory_of_its_parent(patch):
    """The same where the disk is full at the fork: a child that could not share must not count alone."""
    patch.setattr(PrivacyLedger, "_owner", property(lambda self: os.getpid(), lambda self, value: None), raising=False)


@mutant
def a_lock_for_every_name_of_a_file(patch):
    """Found: the lock is ``<name>.lock``, and a link to the ledger has another. Right: one lock per inode."""
    patch.setattr(_ledger_file, "fcntl", None)
    patch.setattr(_ledger_file.LedgerFile, "named", classmethod(lambda cls, path: cls(Path(path))))
    patch.setattr(_ledger_file, "_NO_FOLLOW", 0)
    real = os.fstat

    def one_link(descriptor):
        return os.stat_result([1 if place == 3 else value for place, value in enumerate(real(descriptor))])

    patch.setattr(_ledger_file.os, "fstat", one_link)
    assert _ledger_file.FileLock is FileLock


@mutant
def promotion_that_forgets_on_a_full_disk(patch):
    """Found: memory is emptied before the file is written. Right: the file is whole before it takes its place."""
    promote = PrivacyLedger._promote

    def forgetful(self):
        self._chain, kept = _ledger_chain.Chain.empty(self.epsilon, self.delta), self._chain
        promote(self)
        self._file.path.write_bytes(kept.header + kept.lines)
        self._chain = kept

    patch.setattr(PrivacyLedger, "_promote", forgetful)


@mutant
def promotion_through_a_planted_link(patch):
    """Found: the temporary name is opened without O_EXCL. Right: a name that is there already is refused."""

    def create(self, chain):
        self.path.write_bytes(chain.header + chain.lines)
        return True

    patch.setattr(_ledger_file.LedgerFile, "create", create)


@mutant
def locks_of_a_thread_are_inherited_by_a_fork(patch):
    """Found: a child waits for a lock whose thread it does not have. Right: a child starts with locks of its own."""
    patch.setattr(PrivacyLedger, "_after_fork_in_child", lambda self: None)
    replace_everywhere(patch, in_child, lambda function, patience=3: in_child(function, patience))


@mutant
def a_last_line_without_newline_is_dropped(patch):
    """Found: it is taken for an interrupted write and truncated. Right: it counts where it is whole."""
    parsed = _ledger_file.LedgerFile.parsed

    def drop_the_tail(self, data, known):
        data = data[: data.rfind(b"\n") + 1]
        count = data.count(b"\n") - 1
        return parsed(self, re.sub(rb'("count": ) *\d+(, "head": ")\w+', _header_of(data, count), data, count=1), known)

    patch.setattr(_ledger_file.LedgerFile, "parsed", drop_the_tail)


def _header_of(data, count):
    head = re.findall(rb'"hash": "(\w+)"', data)[count - 1] if count else re.findall(rb'"head": "(\w+)"', data)[0]
    return lambda match: match[1] + b"%10d" % count + match[2] + head


@mutant
def lines_without_a_chain(patch):
    """Found: any line that parses is an entry. Right: a line that was cut, edited, moved or doubled is refused."""

    def trusting(self, lines):
        lines = list(lines)
        fields = [_ledger_chain.json.loads(line) for line in lines]
        longer = self.appended(*map(_ledger_chain.LedgerEntry.of_plain, fields))
        hashes = (*self.hashes, *(field["hash"] for field in fields))
        return dataclasses.replace(longer, hashes=hashes, lines=self.lines + b"".join(line + b"\n" for line in lines))

    patch.setattr(_ledger_chain.Chain, "continued", trusting)


@mutant
def a_chain_without_a_count(patch):
    """A chain alone does not see that its last lines are gone. Right: the header carries their number."""
    check = _ledger_chain.Chain.check_header
    patch.setattr(_ledger_chain.Chain, "check_header", lambda self, line: check(self, line) * 0)
    parsed = _ledger_file.LedgerFile.parsed

    def headless(self, data, known):
        try:
            return parsed(self, data, known)
        except ValueError as error:
            if "its header" not in str(error):
                raise
            *lines, _ = data.split(b"\n")
            identity = json.loads(lines[0])["id"]
            return _ledger_chain.Chain.empty(known.epsilon, known.delta, identity).continued(lines[1:])

    patch.setattr(_ledger_file.LedgerFile, "parsed", headless)


@mutant
def an_older_copy_is_taken_for_the_ledger(patch):
    """Found: whatever valid file is there is believed. Right: who has seen a longer one refuses."""
    read = _ledger_file.LedgerFile.read

    def gullible(self, known):
        return read(self, _ledger_chain.Chain.empty(known.epsilon, known.delta, known.identity))

    patch.setattr(_ledger_file.LedgerFile, "read", gullible)
    patch.setattr(PrivacyLedger, "_verified", lambda self, chain: chain)


@mutant
def memory_trusted_over_disk(patch):
    """Found: an interrupt between disk and memory leaves memory one entry behind. Right: the disk is read again."""
    read = _ledger_file.LedgerFile.read

    def lazy(self, known):
        return known if known.entries and not self._writing else read(self, known)

    patch.setattr(_ledger_file.LedgerFile, "read", lazy)


@mutant
def a_torn_line_is_left_as_if_charged(patch):
    """A full disk swallowed: the fit would release although its line is not on disk."""
    append = _ledger_file.LedgerFile.append

    def careless(self, line, before):
        with contextlib.suppress(LedgerError):
            append(self, line, before)

    patch.setattr(_ledger_file.LedgerFile, "append", careless)


@mutant
def a_ceiling_with_a_tolerance(patch):
    """A ceiling compared as ``total > 1.001 * ceiling``, as if ε had rounding errors of its own."""
    totals = _ledger_chain.Chain.totals.fget
    less = property(lambda self: {kind: total / 1.001 for kind, total in totals(self).items()})
    patch.setattr(_ledger_chain.Chain, "totals", less)


@mutant
def epsilon_as_the_floats_have_it(patch):
    """Found: 24 of 234 Gaussian settings below the truth by 2e-12 of it. Right: rounded up by what floats can err."""
    delta_above = _gdp._delta_above
    patch.setattr(_gdp, "_delta_above", lambda epsilon, mu, margins=1: delta_above(epsilon, mu, 0))


# ------------------------------------------------------------------ events


@mutant
def malformed_events_are_accepted(patch):
    """Found: a NaN costs nothing, a negative count refunds, a fraction of a release costs a fraction.

    Right: refused at every door.
    """
    replace_everywhere(patch, _events.check_event, lambda *event: None)
    for kind in (_events.ThresholdBit, _events.ArgmaxBit):
        patch.setattr(kind, "__init__", _unchecked(kind))


def _unchecked(kind):
    names = [field.name for field in _events.attr.fields(kind)]
    defaults = {field.name: field.default for field in _events.attr.fields(kind)}

    def init(self, *args, **kwargs):
        for name, value in {**defaults, **dict(zip(names, args, strict=False)), **kwargs}.items():
            object.__setattr__(self, name, value)

    return init


@mutant
def nan_counts_as_nothing(patch):
    """Found: ``max(0, nan)`` is 0 in Python, and a NaN passes every comparison with a ceiling. Right: NaN is inf."""
    patch.setattr(_accountants, "_certain", lambda value: max(0.0, value))


@mutant
def unknown_units_are_counted_as_nothing(patch):
    """Found: an entry that protects something unknown enters no total. Right: refused."""
    patch.setattr(_ledger_chain.LedgerEntry, "__post_init__", lambda self: None)


@mutant
def a_null_record_counts_as_any_record(patch):
    """A fit that protects against a null record is added up as if it protected against every replacement."""
    patch.setattr(NeighboringRelation, "implies", lambda self, other: self.protects == other.protects)


@mutant
def fits_for_records_tell_nothing_of_the_attribute(patch):
    """Found: the total for attributes is of the fits for attributes. Right: fits for records have seen it too."""

    def of_its_kind(entries, protects):
        return compose(*(entry.event for entry in entries if entry.protects == protects))

    replace_everywhere(patch, _ledger_chain.total_event, of_its_kind)


@mutant
def another_attribute_is_as_near_as_none(patch):
    """What holds for a null record is taken for what holds for another attribute. Right: it is twice as far."""
    for kind in _attribute_cost._TWO_STEPS:
        patch.setitem(_attribute_cost._TWO_STEPS, kind, lambda event: event)


@mutant
def another_attribute_is_a_root_of_two_away(patch):
    """Two steps are counted as two releases, √2 away. Right: the second step starts where the first one ended."""
    steps = _attribute_cost._TWO_STEPS
    for kind in (GaussianDpEvent, LaplaceDpEvent):
        patch.setitem(steps, kind, lambda event: type(event)(event.noise_multiplier / 2**0.5))
    patch.setitem(steps, DiscreteGaussian, lambda event: DiscreteGaussian(event.sigma, event.sensitivity * 2**0.5))
    patch.setitem(steps, RandomizedResponseDpEvent, lambda event: repeat(event, 1))

    def sampled(event):
        q, noise = event.sampling_probability, getattr(event, "noise_multiplier", None) or event.event.noise_multiplier
        return GaussianDpEvent(noise / 2**0.5) if q == 1 else ReplaceSampledGaussian(q, noise, 2**0.5)

    patch.setitem(steps, PoissonSampledDpEvent, sampled)
    patch.setitem(steps, ReplaceSampledGaussian, sampled)


@mutant
def a_charge_is_held_against_its_own_total_only(patch):
    """A fit for records under a ceiling that fits for attributes have used up. Right: it counts in both totals."""

    def of_the_last(self):
        kinds = {self.entries[-1].protects} if self.entries else ()
        return {kind: epsilon_of(_ledger_chain.total_event(self.entries, kind), self.delta) for kind in kinds}

    patch.setattr(_ledger_chain.Chain, "totals", property(of_the_last))


@mutant
def verify_forgets_the_way_back_from_no_record(patch):
    """``verify`` takes events for a null record as they are, and accepts a total that is too small."""
    replace_everywhere(patch, _recompute.to_replace_one, lambda event: event)


@mutant
def any_release_under_any_neighbours(patch):
    """Found: a hand-stated Poisson-sampled event was charged for a replaced record, which costs more."""
    patch.setattr(_events, "_PROVEN_UNDER", {})


@mutant
def a_private_model_vouches_for_what_is_around_it(patch):
    """Found: trees of boosting that starts from a private model cost nothing, and no warning named them."""
    patch.setattr(_account, "_hands_on", lambda part: True)


@mutant
def sampled_rows_for_nothing(patch):
    """Found: rows of a generator were public rows of the next fit, which stated its own cost alone."""
    patch.setattr(_generator, "note_paid", lambda rows, spent: None)


@mutant
def an_edited_statement_is_as_it_was_written(patch):
    """Found: what was carried out, and public facts, could be taken out of a statement."""
    honest = _statement.digest_of
    patch.setattr(_statement, "digest_of", lambda content: content.get("digest") or honest(content))


@mutant
def one_part_on_the_ledger_is_enough(patch):
    """Found: the entry of a model inside could be taken off the ledger, and the total lowered."""

    def of_one(ledger, parts):
        return on_ledger(ledger, [({**part, "on_ledger": False}, event) for part, event in parts])

    on_ledger = _verify._on_ledger
    patch.setattr(_verify, "_on_ledger", of_one)


@mutant
def verify_looks_at_the_relation_of_statements_only(patch):
    """Found: a ledger's file with such an entry passed ``verify``."""
    patch.setattr(_verify, "_add_up", lambda entries: [])


@mutant
def a_second_fit_keeps_what_the_first_one_learned(patch):
    """Found: interrupted, it leaves its report beside the model of the first, which may have cost a hundred times."""
    patch.setattr(Spending, "_forget", lambda self: None)


@mutant
def a_charge_in_the_middle_of_another_one_is_lost(patch):
    """Found: a signal handler passes the lock of its own thread, and the charge that goes on forgets what it charged.
    Right: it is refused."""
    patch.setattr(PrivacyLedger, "_inside_another_call", False)


@mutant
def threads_start_outside_of_the_block(patch):
    """A context variable alone: what a thread or a pool inside of the block releases would count nowhere."""
    patch.setattr(_ledger_block, "_OPEN", _Forgetful())


class _Forgetful(dict):
    def __setitem__(self, name, block):
        """Nothing."""


@mutant
def workers_start_outside_of_the_block(patch):
    """A block that stays in its process: the fits of a grid search with workers would count nowhere."""
    patch.setattr(_ledger_block._Inside, "__call__", lambda self, *given, **named: self.tasks(*given, **named))


@mutant
def what_is_drawn_is_not_weighed(patch):
    """Found: a fit draws once more, or with less noise, than its event says. Right: every draw is weighed."""
    patch.setattr(_spending, "_after", lambda left, mechanism, times: left)


@mutant
def trials_weighed_together(patch):
    """A selection whose first trial may draw what all of them cost. Right: each trial what one trial costs."""
    patch.setattr(_spending, "allowance", lambda event: Allowance(math.inf, math.inf, math.inf))


@mutant
def last_hash_is_not_compared(patch):
    """Found: the count of a ledger's header is read and its hash is not. Right: the chain ends in it."""
    reads = _verify._read_ledger

    def without_the_head(path, data):
        budget, entries, wrong = reads(path, data)
        return budget, entries, "" if "header does not belong" in wrong else wrong

    patch.setattr(_verify, "_read_ledger", without_the_head)


@mutant
def a_ledger_that_continues_by_its_count(patch):
    """Found: a ledger with as many entries is taken for the one that was remembered. Right: by the hash of the last."""
    patch.setattr(_ledger_chain.Chain, "continues", lambda self, count, head: count < len(self.hashes))


@mutant
def events_of_any_size(patch):
    """Found: a statement of ten million teachers holds ``verify`` for minutes. Right: it is refused at once."""
    patch.setattr(_verify, "check_effort", lambda events: None)
    patch.setattr(_verify, "SecondOpinion", _never)


def _never(event):
    raise AssertionError("this would take minutes")


@mutant
def what_is_held_is_added_up_after_the_charge(patch):
    """Found: guarantees that do not add up fail when the fit is over, and paid. Right: before anything is charged."""
    entered = Spending.__enter__

    def late(self):
        held, self.holds = self.holds, ()
        noise = entered(self)
        self.holds = held
        return noise

    patch.setattr(Spending, "__enter__", late)


@mutant
def verify_knows_no_parts(patch):
    """Found: a fit says that what it was given is public, and its ε leaves the release of it out."""
    patch.setattr(_verify, "_added_up", lambda document, parts, whole: [])


@mutant
def any_entry_is_the_fit(patch):
    """Found: an entry of no release at all, or of one of many, passes for the fit on the ledger."""
    on_ledger = _verify._on_ledger
    patch.setattr(
        _verify, "_on_ledger", lambda ledger, parts: dataclasses.replace(on_ledger(ledger, parts), holds=True)
    )
