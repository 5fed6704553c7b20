"""Spending, the only thing that hands out noise: refuses beforehand, charges by the first draw, reports at the end."""

import dataclasses
import math
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import skfairdp
from skfairdp.exceptions import BudgetExceededError, UnplannedReleaseError
from skfairdp.privacy import (
    CommonValues,
    GaussianDpEvent,
    GaussianMechanism,
    LaplaceCounts,
    LaplaceDpEvent,
    NeighboringRelation,
    NoiseSource,
    NoisyThreshold,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSample,
    PoissonSampledDpEvent,
    PrivacyLedger,
    PrivacySpent,
    PrivateSelection,
    Protects,
    RandomizedResponse,
    Spending,
    WorstOf,
    compose,
    epsilon_of,
    repeat,
)
from tests._tools.sources import ChosenNoise, installed

REPLACE, ATTRIBUTE = NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_ATTRIBUTE
MEAN = GaussianMechanism(5.0, relation=REPLACE)  # epsilon = .726 at 1e-5


def spending(ledger=None, event=MEAN.event, **more):
    return Spending(event, 1e-5, REPLACE, label="a mean", ledger=ledger, **more)


def test_nothing_is_charged_before_the_first_draw_and_once_by_many():
    ledger = PrivacyLedger(epsilon=2.0)
    with spending(ledger, repeat(MEAN.event, 2)) as noise:
        assert ledger.entries == ()
        PoissonSample(0.5).draw(10, noise)  # a secret sample is a draw as well
        assert len(ledger.entries) == 1
        MEAN.release([1.0], noise)
        MEAN.release([1.0], noise)
    (entry,) = ledger.entries
    assert (entry.label, entry.event, entry.neighboring_relation) == ("a mean", repeat(MEAN.event, 2), REPLACE)


def test_a_release_that_the_ledger_cannot_afford_is_refused_before_the_work():
    ledger = PrivacyLedger(epsilon=1.0)
    with spending(ledger) as noise:
        MEAN.release([1.0], noise)
    with pytest.raises(BudgetExceededError), spending(ledger):
        pytest.fail("the work was begun")
    assert len(ledger.entries) == 1


def test_what_another_fit_took_in_the_meantime_is_noticed_at_the_first_draw():
    ledger = PrivacyLedger(epsilon=1.0)

    def overtaken():
        with spending(ledger) as noise:
            with spending(ledger) as other:
                MEAN.release([1.0], other)
            MEAN.release([1.0], noise)

    with pytest.raises(BudgetExceededError):
        overtaken()
    assert len(ledger.entries) == 1


def test_a_fit_that_draws_nothing_is_on_record_and_one_that_fails_before_it_draws_is_not():
    ledger = PrivacyLedger()
    with spending(ledger):
        pass
    assert len(ledger.entries) == 1
    with pytest.raises(ValueError, match="went wrong"), spending(ledger):
        raise ValueError("went wrong")
    assert len(ledger.entries) == 1

    def interrupted():
        with spending(ledger) as noise:
            MEAN.release([1.0], noise)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(ledger.entries) == 2


def test_nothing_released_costs_nothing_and_then_nothing_may_be_released():
    ledger = PrivacyLedger()
    with spending(ledger, event=NoOpDpEvent()):
        pass
    assert ledger.entries == ()
    with pytest.raises(RuntimeError, match="certifies that nothing does"), spending(event=NoOpDpEvent()) as noise:
        MEAN.release([1.0], noise)


def test_the_report_is_the_event_and_what_was_performed():
    reports = []
    three = repeat(MEAN.event, 3)
    with spending(event=three, public=("the number of rows",), report_to=reports.append) as noise:
        for _ in range(3):
            MEAN.release([1.0, 2.0], noise)
    (report,) = reports
    assert isinstance(report, PrivacySpent)
    assert report.epsilon == epsilon_of(three, 1e-5) and report.public == ("the number of rows",)
    assert (report.protects, report.neighboring_relation) == (Protects.RECORD, REPLACE)
    (performed,) = report.performed
    assert (performed.mechanism, performed.sensitivity, performed.sigma, performed.times) == (
        "GaussianMechanism", 1.0, 5.0, 3,
    )  # fmt: skip
    seeded = spending(event=three, noise_seed=0).report
    assert seeded.epsilon == np.inf and seeded.mechanism_epsilon == report.epsilon


def test_scales_that_change_from_step_to_step_are_counted_together():
    few, many = (spending(event=repeat(GaussianDpEvent(1.0), n)) for n in (64, 65))
    for made, n in ((few, 64), (many, 65)):
        with made as noise:
            for k in range(n):
                GaussianMechanism(1.0 + k, sensitivity=1.0 + k).release([0.0], noise)
    assert len(few.report.performed) == 64
    (line,) = many.report.performed
    assert (line.mechanism, line.sensitivity, line.sigma, line.times) == ("GaussianMechanism", 1.0, 1.0, 65)


@pytest.mark.parametrize(
    "mechanism", [GaussianMechanism(5.0, relation=ATTRIBUTE), RandomizedResponse(1.0, relation=ATTRIBUTE)]
)
def test_a_mechanism_made_for_other_neighbours_is_refused_before_it_is_charged(mechanism):
    ledger = PrivacyLedger()
    with pytest.raises(RuntimeError, match="was made for 'replace one sensitive attribute'"), spending(ledger) as noise:
        mechanism.release(np.zeros(2, dtype=int), noise)
    assert ledger.entries == ()


ANSWERS = RandomizedResponse(1.0, relation=ATTRIBUTE)
COUNTS = LaplaceCounts(2.0, n_rows=10)
COMMON = CommonValues(4.0, failure=1e-6)
BIT = NoisyThreshold(5.0, n_teachers=10, threshold=6.0)
#: What is charged, the releases that it pays for, and one that it does not pay for any more.
UNPAID = {
    "once more": (repeat(MEAN.event, 2), [(MEAN, [1.0])] * 2, (MEAN, [1.0])),
    "less noise": (MEAN.event, [], (GaussianMechanism(4.99), [1.0])),
    "a larger sensitivity": (MEAN.event, [], (GaussianMechanism(5.0, sensitivity=1.001), [1.0])),
    "more queries": (repeat(BIT.event, 3), [(BIT, [7, 7, 7])], (BIT, [7])),
    "many queries at once": (repeat(BIT.event, 3), [], (BIT, [7] * 4)),
    "counts once more": (compose(MEAN.event, COUNTS.event), [(COUNTS, [4, 6])], (COUNTS, [4, 6])),
    "counts with less noise": (LaplaceDpEvent(2.1), [], (COUNTS, [4, 6])),
    "counts that nobody paid for": (repeat(MEAN.event, 100), [(MEAN, [1.0])], (COUNTS, [4, 6])),
    "answers once more": (ANSWERS.event, [(ANSWERS, [0, 1])], (ANSWERS, [0, 1])),
    "answers nearer to the truth": (ANSWERS.event, [], (RandomizedResponse(1.1, relation=ATTRIBUTE), [0, 1])),
    "rare values once more": (compose(COMMON.event, MEAN.event), [(COMMON, {"a": 9})], (COMMON, {"a": 9})),
    "rare values shown more often": (
        repeat(COMMON.event, 2), [(COMMON, {"a": 9})], (CommonValues(4.0, failure=1.1e-6), {"a": 9}),
    ),
    "a step of sampled rows too many": (
        repeat(PoissonSampledDpEvent(0.1, GaussianDpEvent(5.0)), 2), [(MEAN, [1.0])] * 2, (MEAN, [1.0]),
    ),
    "a worst case": (WorstOf((MEAN.event, GaussianDpEvent(10.0))), [(MEAN, [1.0])], (MEAN, [1.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", UNPAID)
def test_what_is_drawn_never_costs_more_than_what_is_charged(name):
    event, paid, (unpaid, value) = UNPAID[name]
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE if "sampled" in name else REPLACE
    relation = ATTRIBUTE if isinstance(unpaid, RandomizedResponse) else relation
    drawn = []

    class Watched(NoiseSource):
        def _words(self, n):
            drawn.append(n)
            return super()._words(n)

    with installed(Watched()), Spending(event, 1e-5, relation, label="a fit") as noise:
        for mechanism, private in paid:
            noise.release(_for(mechanism, relation), private)
        before = len(drawn)
        with pytest.raises(UnplannedReleaseError, match="would release more than this fit has charged for"):
            noise.release(_for(unpaid, relation), value)
        assert len(drawn) == before


def _for(mechanism, relation):
    return dataclasses.replace(mechanism, relation=relation) if mechanism is MEAN else mechanism


def test_a_fit_without_noise_pays_for_everything():
    paying = spending(event=NonPrivateDpEvent())
    with paying as noise:
        for _ in range(3):
            MEAN.release([1.0], noise)
            COUNTS.release([4, 6], noise)
    assert [line.times for line in paying.report.performed] == [3, 3] and math.isinf(paying.report.epsilon)


@pytest.mark.parametrize("mean", [1.0, 6.0])
def test_each_trial_of_a_selection_may_draw_what_one_trial_costs_and_none_is_told(mean):
    selection = PrivateSelection(repeat(MEAN.event, 2), mean)

    def trial(n, noise):
        for _ in range(n):
            MEAN.release([1.0], noise)
        return 0.0, "made"

    reports = []
    with spending(event=compose(selection.event, MEAN.event), report_to=reports.append) as noise:
        assert selection.select(lambda: trial(2, noise), noise) == "made"
        MEAN.release([1.0], noise)  # beside it, as it is paid for
        with pytest.raises(UnplannedReleaseError, match="would release more"):
            MEAN.release([1.0], noise)
        with pytest.raises(UnplannedReleaseError, match="PrivateSelection would release more"):
            selection.select(lambda: trial(2, noise), noise)
    (report,) = reports
    assert [(line.mechanism, line.times) for line in report.performed] == [("GaussianMechanism", 1)]
    with (
        spending(event=selection.event) as noise,
        pytest.raises(UnplannedReleaseError, match="GaussianMechanism would release more"),
    ):
        selection.select(lambda: trial(3, noise), noise)


def test_numpy_warns_of_no_number_inside_of_the_block_and_of_each_one_behind_it():
    far = np.array([1e308])
    with np.errstate(all="raise"):
        with spending() as noise:
            MEAN.release(np.clip(far * 10 - far * 10, -1, 1)[np.isfinite(far * 10)], noise)
        with pytest.raises(FloatingPointError, match="overflow"):
            far * 10
        with pytest.raises(KeyError), spending():
            raise KeyError
        with pytest.raises(FloatingPointError, match="overflow"):
            far * 10


def test_noise_is_not_drawn_outside_the_block():
    with spending() as noise:
        pass
    with pytest.raises(RuntimeError, match="a fit that is over"):
        MEAN.release([1.0], noise)
    again = spending()
    with again:
        pass
    with pytest.raises(RuntimeError, match="entered once"), again:
        pass


def test_threads_charge_once():
    ledger = PrivacyLedger()
    with spending(ledger, repeat(MEAN.event, 16)) as noise:
        threads = [threading.Thread(target=MEAN.release, args=([1.0], noise)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(ledger.entries) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_worker_gets_no_noise():
    with spending() as noise:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                MEAN.release([1.0], noise)
            except RuntimeError as error:
                os.write(writer, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        assert b"not in a worker" in os.read(reader, 1000)
        os.close(reader)


def test_every_release_goes_through_the_source():
    """A source that overrides ``release`` sees, and may answer, every noisy value of a fit."""

    class Counting(ChosenNoise):
        seen = 0

        def release(self, mechanism, *private, **public):
            self.seen += 1
            return super().release(mechanism, *private, **public)

    source = Counting()
    with installed(source), spending(event=compose(MEAN.event, GaussianDpEvent(1.0))) as noise:
        MEAN.release([1.0], noise)
        GaussianMechanism(1.0).release([1.0], noise)
    assert source.seen == 2


def test_a_relation_says_what_it_protects_and_reads_as_its_sentence():
    assert [relation.protects for relation in NeighboringRelation].count(Protects.SENSITIVE_ATTRIBUTE) == 2
    assert str(NeighboringRelation.ZERO_OUT) == "replace one record by a null record"
    of_subjects = [NeighboringRelation.REPLACE_SUBJECT, NeighboringRelation.ZERO_OUT_SUBJECT]
    counts_others = [NeighboringRelation.ADD_OR_REMOVE_ONE, *of_subjects]
    assert [r for r in NeighboringRelation if not r.number_is_public] == counts_others
    with pytest.raises(ValueError, match="protects one sensitive attribute, not one record"):
        PrivacySpent.of(GaussianDpEvent(1.0), 1e-5, protects="record", neighboring_relation=ATTRIBUTE)
    with pytest.raises(ValueError, match="neighboring_relation must be one of"):
        PrivacySpent.of(GaussianDpEvent(1.0), 1e-5, protects="record", neighboring_relation="swap two records")


def test_nothing_outside_privacy_draws_noise():
    """As a linter would: no call of a drawing method, and no source, outside the package that charges for them."""
    root = Path(skfairdp.__file__).parent
    drawing = re.compile(
        r"NoiseSource\(|open_source\(|(?:source|noise)\.(?:normal|bernoulli|words|below|discrete_gaussian|rounded_normal|_words)\("
    )
    found = [
        f"{path.relative_to(root)}:{number}"
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] != "privacy"
        for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), 1)
        if drawing.search(line) and ">>>" not in line
    ]
    assert not found


def test_what_does_not_add_up_with_what_is_held_is_refused_before_the_charge():
    held = PrivacySpent.of(
        GaussianDpEvent(4.0), 1e-5, protects="record", neighboring_relation="add or remove one record"
    )
    ledger = PrivacyLedger(epsilon=10.0)
    spending = Spending(GaussianDpEvent(2.0), 1e-5, REPLACE, label="a mean", ledger=ledger, holds=[held])
    with pytest.raises(ValueError, match="do not add up"), spending:
        pytest.fail("noise is handed out")
    assert ledger.entries == ()
