"""Every fit of the catalogue on neighbouring data: given the releases, there is nothing left to see.

The guide's page on the replay test says what is compared and what is not. A failure prints by what an observer could
tell the two data sets apart.
"""

import re

import numpy as np
import pytest
import sklearn

from skfairdp._utils import PRIVATE_ERRORS
from tests._tools.catalogue import OF_EACH_KIND, by_name
from tests._tools.neighbours import containers, everyday, lonely, pairs, refused
from tests._tools.observing import observed
from tests._tools.sources import recording_noise
from tests.replay.looking import REPLAYED, compared, made_by, neighbours, planned, recording

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings are compared, not forbidden


def each_fit_of(now):
    """The entries as parameters: those in ``make test``, and all others in ``make test-all`` only."""
    return pytest.mark.parametrize(
        "entry",
        [pytest.param(entry, id=entry.name, marks=[pytest.mark.slow] * (entry not in now)) for entry in REPLAYED],
    )


each_fit = each_fit_of([entry for entry in REPLAYED if not entry.slow])
each_kind = each_fit_of(OF_EACH_KIND)


def told(entry, chosen):
    """By what an observer could tell the neighbours apart, pair by pair."""
    found = []
    for pair in chosen:
        seen = compared(entry, pair)
        assert seen.original.error is None, f"{pair.name}: the fit on D failed: {seen.original.error}"
        assert seen.record.releases, "a fit without a release has nothing to hide behind"
        found += [f"{pair.name}: {text}" for text in seen.differences(times=pair.times)]
    return "\n".join(found)


def split(entry):
    """One pair of a fit, and all others: an extreme row, a whole other row and a label or group that is gone take turns
    from entry to entry."""
    extreme, *_, whole = neighbours(entry, everyday)
    chances = [extreme, whole, extreme, whole, *neighbours(entry, lonely)[-1:]]
    first = chances[REPLAYED.index(entry) % len(chances)]
    return [first], [pair for pair in [*neighbours(entry, everyday), *neighbours(entry, lonely)] if pair is not first]


@each_fit
def test_the_common_neighbours_look_the_same(entry):
    quick, _ = split(entry)
    assert not told(entry, quick)


@pytest.mark.slow
@each_fit
def test_all_neighbours_look_the_same(entry):
    _, others = split(entry)
    assert not told(entry, [*others, *containers(entry)])


@each_kind
def test_what_numpy_raises_by_request_does_not_show(entry):
    """Tiny numbers underflow: an error of single precision would end the fits of their neighbours alone."""
    tiny = [pair for pair in everyday(entry) if "tiny" in pair.name]
    with np.errstate(all="raise"):
        assert not told(entry, tiny)


@each_fit
def test_secret_samples_do_not_show(entry):
    """The same comparison where Poisson samples, folds and secret choices are other ones as well."""
    if entry.name in ("Private-selection", "Private-public"):
        pytest.skip("which trials are run is secret and decides who wins, so a replay needs the same ones")
    chosen = neighbours(entry, everyday)[-1]
    if not recording(entry, chosen).record.n_secrets:
        pytest.skip("it draws nothing but its noise")
    seen = compared(entry, chosen, same_secrets=False)
    assert not seen.differences(times=None)


def test_fits_with_secret_batches_are_among_those_that_draw():
    """Were secret draws no longer counted, every test above would be left out."""
    for name in ("PFLD-poisson", "FairDPSGD-none"):
        entry = by_name(name)
        assert recording(entry, neighbours(entry, everyday)[-1]).record.n_secrets


@each_kind
def test_the_plan_is_that_of_the_neighbour(entry):
    """``planned_privacy`` reads private rows, releases nothing, and says the same of both."""
    if not hasattr(entry.make(), "planned_privacy") or entry.name.startswith("Calibrator"):
        pytest.skip("it has no plan of its own")
    seen = planned(entry, (neighbours(entry, lonely) or neighbours(entry, everyday))[-1])
    assert seen.original.error is None
    assert not seen.record.releases and not seen.other.releases
    assert not seen.differences()


@each_kind
def test_what_must_be_refused_is_refused_in_constant_words(entry):
    """Whichever value is unusable, and however many rows hold one: the text is one of those listed with a reason.
    Whoever promises scikit-learn that numbers are finite promises it for no private row."""
    for name, one, more in refused(entry):
        with recording_noise(entropy=0) as record, sklearn.config_context(assume_finite=True):
            first, second = (_fit_alone(entry, rows) for rows in (one, more))
        assert first.error is not None, f"{name}: accepted"
        assert not record.releases, f"{name}: refused after a release"
        assert not first.differences(second), f"{name}: {first.differences(second)}"
        assert any(_says(private.text, first.error[1]) for private in PRIVATE_ERRORS.values()), (name, first.error)


def _fit_alone(entry, rows):
    return observed(made_by(entry), lambda made: entry.fit(made, rows))


def _says(template, text):
    """Whether the text is the template with names in its places."""
    return re.fullmatch(r"[\w ]+".join(map(re.escape, re.split(r"\{\w+\}", template))), text) is not None


@each_fit
def test_the_relation_of_the_catalogue_is_the_one_that_is_reported(entry):
    """Otherwise the neighbours above would be the wrong ones."""
    charges = [text for text in recording(entry, neighbours(entry, everyday)[0]).record.order if "charge" in text]
    assert charges and all(f"'neighboring_relation': '{entry.relation}'" in text for text in charges), charges[:1]


def test_a_fit_of_every_class_is_among_those_that_are_not_left_for_later():
    def kind(entry):
        return type(entry.make()).__name__

    assert {kind(entry) for entry in REPLAYED if not entry.slow} == set(map(kind, REPLAYED))


def test_no_two_pairs_of_a_fit_have_the_same_name():
    for entry in REPLAYED:
        names = [pair.name for pair in pairs(entry)]
        assert len(names) == len(set(names))
