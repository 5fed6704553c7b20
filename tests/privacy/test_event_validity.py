"""A malformed event is refused at every door, and a well-formed one is accepted at every door."""

import json
import math

import attr
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings, strategies as st

from skfairdp import privacy as dp
from skfairdp.exceptions import LedgerError
from skfairdp.privacy import (
    PrivacyLedger,
    PrivacySpent,
    _accountants,
    accountant_of,
    check_event,
    compose,
    epsilon_of,
    event_from_dict,
    event_to_dict,
    flatten,
    rdp_of,
    repeat,
)
from tests._tools.layers import examples

GUARANTEE = {"protects": "record", "neighboring_relation": "replace one record by a null record"}  # takes all events
ORDERS = np.array([1.5, 8.0])


def forged(kind, *args, **fields):
    """An event past its validators, as an attacker or a careless copy could make it."""
    event = object.__new__(kind)
    names = [field.name for field in attr.fields(kind)]
    defaults = {field.name: field.default for field in attr.fields(kind) if field.default is not attr.NOTHING}
    for name, value in {**defaults, **dict(zip(names, args, strict=False)), **fields}.items():
        object.__setattr__(event, name, value)
    return event


DOORS = {
    "check_event": check_event,
    "epsilon_of": lambda event: epsilon_of(event, 1e-5),
    "accountant_of": lambda event: accountant_of(event, 1e-5),
    "rdp_of": lambda event: rdp_of(event, ORDERS),
    "compose": lambda event: compose(event),
    "compose with another": lambda event: compose(dp.GaussianDpEvent(9.0), event),
    "repeat": lambda event: repeat(event, 2),
    "flatten": flatten,
    "event_to_dict": event_to_dict,
    "a report": lambda event: PrivacySpent.of(event, 1e-5, **GUARANTEE),
    "charge": lambda event: PrivacyLedger().charge(event, label="x", **GUARANTEE),
    "dry run": lambda event: PrivacyLedger().charge(event, label="x", dry_run=True, **GUARANTEE),
}

GOOD = dp.GaussianDpEvent(5.0)
DEEP = GOOD
for _ in range(5000):
    DEEP = dp.ComposedDpEvent([DEEP])


class Subclass(dp.GaussianDpEvent):
    pass


class Foreign:
    noise_multiplier = 5.0


MALFORMED = {
    "nan noise": dp.GaussianDpEvent(math.nan),
    "negative noise": dp.GaussianDpEvent(-5.0),
    "infinite noise": dp.GaussianDpEvent(math.inf),
    "noise as text": dp.GaussianDpEvent("5"),
    "noise as array": dp.GaussianDpEvent(np.array([5.0])),
    "bool noise": dp.GaussianDpEvent(True),
    "no noise given": dp.GaussianDpEvent(None),
    "complex noise": dp.GaussianDpEvent(5j),
    "nan of numpy": dp.GaussianDpEvent(np.float32("nan")),
    "long double": dp.GaussianDpEvent(np.longdouble(5)),
    "laplace nan": dp.LaplaceDpEvent(math.nan),
    "laplace negative": dp.LaplaceDpEvent(-1.0),
    "laplace infinite": dp.LaplaceDpEvent(math.inf),
    "negative count": dp.SelfComposedDpEvent(GOOD, -3),
    "count of zero": dp.SelfComposedDpEvent(GOOD, 0),
    "fractional count": dp.SelfComposedDpEvent(GOOD, 0.1),
    "bool count": dp.SelfComposedDpEvent(GOOD, True),
    "bool of numpy": dp.SelfComposedDpEvent(GOOD, np.True_),
    "infinite count": dp.SelfComposedDpEvent(GOOD, math.inf),
    "nan count": dp.SelfComposedDpEvent(GOOD, math.nan),
    "count beyond floats": dp.SelfComposedDpEvent(GOOD, 10**400),
    "counts that multiply beyond": dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(GOOD, 2**40), 2**40),
    "count of nothing": dp.SelfComposedDpEvent(None, 2),
    "nothing composed": dp.ComposedDpEvent([]),
    "composed of numbers": dp.ComposedDpEvent([GOOD, 5.0]),
    "composed of one": dp.ComposedDpEvent(GOOD),
    "composed of text": dp.ComposedDpEvent("ab"),
    "nan inside": dp.ComposedDpEvent([GOOD, dp.SelfComposedDpEvent(dp.GaussianDpEvent(math.nan), 2)]),
    "probability above 1": dp.PoissonSampledDpEvent(1.5, GOOD),
    "probability below 0": dp.PoissonSampledDpEvent(-0.5, GOOD),
    "probability of 0": dp.PoissonSampledDpEvent(0.0, GOOD),
    "nan probability": dp.PoissonSampledDpEvent(math.nan, GOOD),
    "sampled nan": dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(math.nan)),
    "sampled negative": dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(-1.0)),
    "sampled laplace": dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0)),
    "response above 1": dp.RandomizedResponseDpEvent(1.5, 2),
    "response below 0": dp.RandomizedResponseDpEvent(-0.1, 2),
    "nan response": dp.RandomizedResponseDpEvent(math.nan, 2),
    "no buckets": dp.RandomizedResponseDpEvent(0.5, 0),
    "half a bucket": dp.RandomizedResponseDpEvent(0.5, 2.5),
    "mean below 1": dp.RepeatAndSelectDpEvent(GOOD, 0.5, 0.0),
    "nan mean": dp.RepeatAndSelectDpEvent(GOOD, math.nan, 0.0),
    "infinite mean": dp.RepeatAndSelectDpEvent(GOOD, math.inf, 0.0),
    "shape of -1": dp.RepeatAndSelectDpEvent(GOOD, 3.0, -1.0),
    "shape of -2": dp.RepeatAndSelectDpEvent(GOOD, 3.0, -2.0),
    "nan shape": dp.RepeatAndSelectDpEvent(GOOD, 3.0, math.nan),
    "selection of nan": dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(math.nan), 3.0, 0.0),
    "selection of nothing": dp.RepeatAndSelectDpEvent(None, 3.0, 0.0),
    "nan threshold": forged(dp.ThresholdBit, 10, math.nan, 1.0),
    "infinite threshold": forged(dp.ThresholdBit, 10, math.inf, 1.0),
    "half a teacher": forged(dp.ThresholdBit, 10.5, 6.0, 1.0),
    "negative teachers": forged(dp.ArgmaxBit, -10, 1.0),
    "nan teachers": forged(dp.ArgmaxBit, math.nan, 1.0),
    "bool teachers": forged(dp.ArgmaxBit, True, 1.0),
    "nan sigma": forged(dp.ArgmaxBit, 10, math.nan),
    "no sigma": forged(dp.ArgmaxBit, 10, 0.0),
    "unknown noise": forged(dp.ArgmaxBit, 10, 1.0, "uniform"),
    "restricted by text": forged(dp.ArgmaxBit, 10, 1.0, "gaussian", "no"),
    "nan sensitivity": forged(dp.DiscreteGaussian, 1.0, math.nan),
    "negative sensitivity": forged(dp.DiscreteGaussian, 1.0, -1.0),
    "difference above 2": forged(dp.ReplaceSampledGaussian, 0.1, 1.0, 2.5),
    "replaced probability of 0": forged(dp.ReplaceSampledGaussian, 0.0, 1.0),
    "replaced nan": forged(dp.ReplaceSampledGaussian, 0.1, math.nan),
    "worst of nothing": forged(dp.WorstOf, ()),
    "worst of nan": dp.WorstOf((GOOD, dp.GaussianDpEvent(math.nan))),
    "worst of numbers": forged(dp.WorstOf, (GOOD, 3)),
    "subclass": Subclass(5.0),
    "no event": Foreign(),
    "None": None,
    "absurd nesting": DEEP,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_every_door_refuses(name):
    for enter in DOORS.values():
        with pytest.raises(ValueError):
            enter(MALFORMED[name])


OURS = [
    name
    for name, event in MALFORMED.items()
    if type(event) in (dp.ThresholdBit, dp.ArgmaxBit, dp.DiscreteGaussian, dp.ReplaceSampledGaussian)
]


@pytest.mark.parametrize("name", OURS)
def test_our_own_events_cannot_even_be_made(name):
    event = MALFORMED[name]
    fields = {field.name: getattr(event, field.name) for field in attr.fields(type(event))}
    with pytest.raises(ValueError, match=type(event).__name__):
        type(event)(**fields)


@pytest.mark.parametrize("count", [True, -1, 0.5, math.nan, math.inf, "2", None])
def test_repeat_refuses_a_count_that_is_none(count):
    with pytest.raises(ValueError, match="times must be"):
        repeat(GOOD, count)


@pytest.mark.parametrize(
    "description",
    [
        None,
        [],
        {},
        {"type": "Unheard"},
        {"type": ["GaussianDpEvent"]},
        {"type": "GaussianDpEvent"},
        {"type": "GaussianDpEvent", "noise_multiplier": "inf"},
        {"type": "GaussianDpEvent", "noise_multiplier": -1.0},
        {"type": "GaussianDpEvent", "noise_multiplier": 1.0, "sensitivity": 2.0},
        {"type": "ComposedDpEvent", "events": [{"noise_multiplier": 1.0}]},
        {"type": "SelfComposedDpEvent", "event": {"type": "NoOpDpEvent"}, "count": 1.5},
    ],
    ids=str,
)
def test_descriptions_of_no_event_are_refused(description):
    with pytest.raises(ValueError):
        event_from_dict(description)


def test_descriptions_nested_without_end_are_refused():
    description = {"type": "NoOpDpEvent"}
    for _ in range(100_000):
        description = {"type": "ComposedDpEvent", "events": [description]}
    with pytest.raises(ValueError, match="levels"):
        event_from_dict(description)


# ------------------------------------------------------------------ properties

noises = st.sampled_from([0.7, 1.0, 2.5, 40.0, np.float64(3.0), np.float32(2.1), 4, np.int64(6)])
counts = st.sampled_from([1, 2, 7, np.int32(3), 5.0])
shares = st.sampled_from([0.01, 0.3, 1.0])

leaves = st.one_of(
    st.builds(dp.GaussianDpEvent, noises | st.just(0.0)),
    st.builds(dp.LaplaceDpEvent, noises | st.just(0)),
    st.builds(dp.RandomizedResponseDpEvent, st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 4)),
    st.builds(dp.PoissonSampledDpEvent, shares, st.builds(dp.GaussianDpEvent, noises)),
    st.builds(dp.ReplaceSampledGaussian, shares, noises, st.sampled_from([0.5, 2.0])),
    st.builds(
        dp.ThresholdBit,
        st.sampled_from([1, 9, np.int64(12)]),
        st.sampled_from([-1.0, 4.5, 6, 30.0]),
        noises,
        st.sampled_from(["gaussian", "discrete_gaussian"]),
    ),
    st.builds(
        dp.ArgmaxBit, st.sampled_from([1, 9]), noises, st.sampled_from(["gaussian", "discrete_gaussian"]), st.booleans()
    ),
    st.builds(dp.DiscreteGaussian, noises, st.sampled_from([0.5, 1.0, 2])),
    st.sampled_from([dp.NoOpDpEvent(), dp.NonPrivateDpEvent()]),
)


def trees(children):
    several = st.lists(children, min_size=1, max_size=3)
    return st.one_of(
        st.builds(dp.ComposedDpEvent, several),
        st.builds(dp.SelfComposedDpEvent, children, counts),
        st.builds(dp.WorstOf, several),
        st.builds(
            dp.RepeatAndSelectDpEvent,
            children,
            st.sampled_from([1, 3.0, 20.0]),
            st.sampled_from([-0.5, 0.0, 1.0, math.inf]),
        ),
    )


events = st.recursive(leaves, trees, max_leaves=4)
slowly = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def coarse_grids(monkeypatch):
    """Privacy losses on a coarse grid are still a bound, and quick."""
    monkeypatch.setattr(_accountants, "_SAMPLED_GRIDS", (2e-3, 5e-2))
    monkeypatch.setattr(_accountants, "_GRID", 1e-2)


@slowly
@given(event=events)
@example(event=dp.SelfComposedDpEvent(dp.ReplaceSampledGaussian(0.3, 40.0, 0.5), 2))  # subnormal masses
def test_well_formed_events_pass_every_door(event):
    for enter in DOORS.values():
        enter(event)
    epsilon = epsilon_of(event, 1e-5)
    assert isinstance(epsilon, float) and epsilon >= 0  # and so no NaN
    assert np.all(rdp_of(event, ORDERS) >= 0)
    assert accountant_of(event, 1e-5) in ("gdp", "pld", "pure", "rdp", "none")


@settings(slowly, max_examples=examples(300))
@given(event=events)
def test_json_gives_an_equal_event_back(event):
    text = json.dumps(event_to_dict(event), allow_nan=False)
    again = event_from_dict(json.loads(text))
    assert again == event
    assert json.dumps(event_to_dict(again)) == text


def spoiled(data, event):
    """The tree with one field of one node made malformed."""
    inner = [name for name in ("event", "events") if hasattr(event, name)]
    if inner and data.draw(st.booleans()):
        (name,) = inner
        value = getattr(event, name)
        if name == "event":
            return forged(type(event), **{**attr.asdict(event, recurse=False), "event": spoiled(data, value)})
        place = data.draw(st.integers(0, len(value) - 1))
        children = [spoiled(data, child) if i == place else child for i, child in enumerate(value)]
        return forged(type(event), type(value)(children))
    fields = [field.name for field in attr.fields(type(event))]
    if not fields:
        return Foreign()
    name = data.draw(st.sampled_from(fields))
    wrong = [math.nan, -1.0, -math.inf, None, "x", [], 1j, np.array(1.0)]
    wrong += [0.5, True] if name in ("count", "n_teachers", "num_buckets") else [math.inf] * (name != "shape")
    if name == "threshold" or name == "shape":
        wrong.remove(-1.0) if name == "threshold" else None
    return forged(type(event), **{**attr.asdict(event, recurse=False), name: data.draw(st.sampled_from(wrong))})


@settings(slowly, max_examples=examples(200))
@given(data=st.data(), event=events)
def test_one_malformed_field_anywhere_shuts_every_door(data, event):
    event = spoiled(data, event)
    assume(event is not None)
    for enter in DOORS.values():
        with pytest.raises(ValueError):
            enter(event)


# ------------------------------------------------------------------ numbers


def test_noise_in_single_precision_costs_what_its_value_costs():
    for noise in (np.float32(2.1), np.float16(0.3), np.int8(3)):
        for event_at in (dp.GaussianDpEvent, dp.LaplaceDpEvent, dp.DiscreteGaussian, lambda s: dp.ArgmaxBit(9, s)):
            assert epsilon_of(event_at(noise), 1e-5) == epsilon_of(event_at(noise.item()), 1e-5)
            assert np.array_equal(rdp_of(event_at(noise), ORDERS), rdp_of(event_at(noise.item()), ORDERS))


@pytest.mark.covering
@pytest.mark.parametrize(
    "event",
    [
        *(
            kind(scale)
            for kind in (dp.GaussianDpEvent, dp.LaplaceDpEvent)
            for scale in (1e-300, 1e-160, 1e-9, 1e160, 1e300)
        ),
        *(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(s)) for q in (1e-300, 0.5) for s in (1e-300, 1e-3, 1e300)),
        *(dp.ReplaceSampledGaussian(q, s) for q in (1e-300, 0.5) for s in (1e-300, 1e-6, 1e300)),
        *(dp.ThresholdBit(3, t, s) for t in (-1e308, 1e308) for s in (1e-300, 1e300)),
        *(dp.ArgmaxBit(5, s, noise) for s in (1e-3, 1e3) for noise in ("gaussian", "discrete_gaussian")),
        dp.DiscreteGaussian(1e-300, 1e300),
        dp.DiscreteGaussian(1e300, 1e-300),
        dp.RandomizedResponseDpEvent(5e-324, 2),
        dp.RandomizedResponseDpEvent(1 - 2**-53, 10**6),
        dp.RepeatAndSelectDpEvent(GOOD, 2.0**53, 1.0),
        dp.RepeatAndSelectDpEvent(GOOD, 1 + 2**-52, 1e300),
        dp.SelfComposedDpEvent(dp.GaussianDpEvent(1e-160), 2**53),
        compose(dp.ThresholdBit(10, 6.0, 3.0), dp.LaplaceDpEvent(1e-9), dp.DiscreteGaussian(3.0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.9])
def test_extreme_numbers_give_a_bound_and_no_traceback(event, delta):
    epsilon = epsilon_of(event, delta)
    assert epsilon >= 0
    larger = epsilon_of(compose(event, dp.GaussianDpEvent(2.0)), delta)
    assert larger >= epsilon_of(dp.GaussianDpEvent(2.0), delta)


def test_nothing_that_an_accountant_computes_is_taken_for_zero_because_it_is_nan(monkeypatch):
    """``max(0, nan)`` is 0 in Python. An accountant that fails in this way must not make a release free."""
    monkeypatch.setitem(_accountants._ACCOUNTANTS, "gdp", lambda leaves, delta: math.nan)
    monkeypatch.setitem(_accountants._ACCOUNTANTS, "rdp", lambda leaves, delta: math.nan)
    assert epsilon_of(GOOD, 1e-5) == math.inf
    from skfairdp.privacy import rdp_to_epsilon

    assert rdp_to_epsilon(np.array([2.0, 4.0]), np.array([math.nan, math.nan]), 1e-5) == math.inf
    assert rdp_to_epsilon(np.array([2.0, 4.0]), np.array([math.nan, 1.0]), 1e-5) < math.inf
    with pytest.raises(ValueError, match="at least 0"):
        rdp_to_epsilon(np.array([2.0]), np.array([-1.0]), 1e-5)


def test_a_file_cannot_bring_in_what_charge_refuses(tmp_path):
    path = tmp_path / "ledger.jsonl"
    PrivacyLedger(path=path).charge(GOOD, label="x", **GUARANTEE)
    path.write_text(path.read_text().replace("5.0", "NaN"))
    with pytest.raises(LedgerError):
        PrivacyLedger(path=path)
