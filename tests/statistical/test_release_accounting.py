"""What a fit certifies covers every release it makes, for every transcript, and is decided before the first one."""

import math
from fractions import Fraction
from typing import Any

import attr
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV, KFold

from skfairdp import PATEClassifier, PrivacyLedger
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.pate import ConfidentVoting, SoftVoting
from skfairdp.privacy import (
    ArgmaxBit,
    DiscreteGaussian,
    GaussianDpEvent,
    GaussianMechanism,
    GNMax,
    NoisyThreshold,
    ThresholdBit,
    calibrate_noise,
    epsilon_of,
    flatten,
    gdp_mu,
    repeat,
)
from tests._tools.inside import Budget
from tests._tools.sources import RecordingNoise, Release, fixed_entropy, recording_noise
from tests._tools.worlds import N_PUBLIC, SETTINGS, make_estimator, make_world, voting_part

FAIR = [name for name in SETTINGS if name.startswith("FairPATE")]


def fit(name: str, *, y: np.ndarray | None = None, **changes: Any) -> Any:
    setting = SETTINGS[name]
    world = make_world(setting["n_classes"])
    return make_estimator(setting, learns=False, **changes).fit(
        world.X, world.y if y is None else y, X_public=world.public
    )


def leaf_of(release: Release, n_classes: int) -> Any:
    """The elementary event that a use of a mechanism is, spelt out from its noise and its sensitivity alone."""
    one = release.adds
    if isinstance(one, NoisyThreshold):
        return ThresholdBit(one.n_teachers, one.threshold, one.sigma, one.noise)
    if isinstance(one, GNMax) and n_classes == 2:
        return ArgmaxBit(one.n_teachers, one.sigma, one.noise)
    sensitivity = 1.0 if n_classes == 2 else math.sqrt(2)
    if one.noise == "discrete_gaussian":
        return DiscreteGaussian(one.sigma, sensitivity)
    return GaussianDpEvent(one.sigma / sensitivity)


def uses(release: Release) -> int:
    return len(release.value) if isinstance(release.adds, GaussianMechanism) else 1


def squared_cost(release: Release) -> Fraction:
    sensitivity_squared = 1 if isinstance(release.mechanism, NoisyThreshold) else 2
    return Fraction(sensitivity_squared) / Fraction(release.mechanism.sigma) ** 2


@pytest.mark.covering
@pytest.mark.parametrize("threshold", [0.51, 1.0], ids=["most queries pass", "most queries fail"])
@pytest.mark.parametrize("name", FAIR)
def test_every_release_is_covered_by_the_certified_event(name, threshold):
    """Thresholds that fail and answers that are never used are paid for like the others."""
    n_classes = SETTINGS[name]["n_classes"]
    # No gate, and scales at which the filter pays for two thirds of the thresholds: maxima and filter run dry.
    sigma = math.sqrt(N_PUBLIC / 1.5) / gdp_mu(4.0, 1e-5)
    scales = {"sigma_threshold": sigma, "sigma": sigma} if "gdp" in name else {}
    with recording_noise(0) as record:
        model = fit(name, threshold=threshold, gamma=None, **scales)
    certified = flatten(model.privacy_.event)
    if "gdp" in name:
        ((cap, times),) = certified.items()
        assert isinstance(cap, GaussianDpEvent)
        spent = sum(squared_cost(release) for release in record.releases)
        assert spent <= times / Fraction(cap.noise_multiplier) ** 2
        assert spent > 0
        return
    made: dict[Any, int] = {}
    for release in record.releases:
        leaf = leaf_of(release, n_classes)
        made[leaf] = made.get(leaf, 0) + uses(release)
    assert made
    for leaf, n in made.items():
        assert n <= certified.get(leaf, 0), f"{n} releases of {leaf}; certified are {certified}"


@pytest.mark.covering
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
@pytest.mark.parametrize(
    "name", ["FairPATE-soft-2classes", "FairPATE-soft-3classes", "FairPATE-gnmax-3classes", "PATE-soft-3classes"]
)
def test_certified_epsilon_is_the_closed_form_for_the_noise_used_at_the_delta_asked_for(name, delta):
    with recording_noise(0) as record:
        model = fit(name, delta=delta)
    (release, *_) = record.releases
    n = sum(uses(one) for one in record.releases)
    mu = math.sqrt(n * (1 if SETTINGS[name]["n_classes"] == 2 else 2)) / release.mechanism.sigma

    def excess(epsilon: float) -> float:
        return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2) - delta

    assert model.privacy_.delta == delta
    assert model.privacy_.epsilon == pytest.approx(brentq(excess, 0, 100, xtol=1e-13), rel=1e-7)
    assert model.privacy_.epsilon == epsilon_of(model.privacy_.event, delta)


@pytest.mark.covering
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("name", FAIR)
def test_certified_epsilon_is_at_most_what_was_asked_for(name, epsilon):
    model = fit(name, epsilon=epsilon)
    assert 0.99 * epsilon < model.privacy_.epsilon <= epsilon
    assert model.privacy_.delta == 1e-5


@pytest.mark.few(6)
@pytest.mark.parametrize("name", FAIR)
def test_certified_guarantee_is_the_same_for_every_data_set_and_transcript(name):
    """The figure is a cap. One that followed the transcript, or the votes, would itself be a release."""
    labels = make_world(SETTINGS[name]["n_classes"]).y
    certificates = []
    for entropy, y in enumerate([labels, labels, np.zeros_like(labels), labels.max() - labels]):
        with fixed_entropy(entropy):
            certificates.append(fit(name, y=y).privacy_)
    assert all(one == certificates[0] for one in certificates)
    assert certificates[0].epsilon == epsilon_of(certificates[0].event, certificates[0].delta)
    assert not certificates[0].data_dependent


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("accounting", ["binary", "gdp"])
def test_when_the_queries_stop_depends_on_outputs_only(accounting, n_classes):
    """Noise that drowns the votes gives unanimous and divided teachers the same outputs; the rest must agree too."""
    n = 60
    sigma = math.sqrt(n) / gdp_mu(2.0, 1e-5) if accounting == "gdp" else None  # pays for half the queries or so
    voting = ConfidentVoting(accounting=accounting, sigma_threshold=sigma, sigma=sigma, max_answers=n // 4)
    plan = voting.plan(epsilon=2.0, delta=1e-5, n_queries=n, n_teachers=2000, n_classes=n_classes)
    unanimous = np.zeros((n, n_classes), dtype=np.int64)
    unanimous[:, 0] = 2000
    divided = np.zeros_like(unanimous)
    divided[:, :2] = [[1001, 999]]
    stops = []
    for votes in (unanimous, divided):
        source = RecordingNoise(np.random.default_rng(0), scale=1e7)
        released = voting.release(votes, plan, source)
        stops.append([(type(one.mechanism), np.ravel(one.output).tolist()) for one in source.releases])
        n_thresholds = len(source.record.of(NoisyThreshold))
        assert 0 < (released.labels >= 0).sum() < n_thresholds < n, "the budget should have run out"
    assert stops[0] == stops[1]


@pytest.mark.parametrize("accounting", ["binary", "gdp"])
@pytest.mark.parametrize("passes", ["always", "never", "alternately"])
def test_no_query_starts_that_the_budget_cannot_finish(accounting, passes):
    """Whatever the votes answer: at most the declared counts, or never a hair above the cap."""
    n = 200
    sigma = 40.0 if accounting == "gdp" else None
    voting = ConfidentVoting(accounting=accounting, sigma_threshold=sigma, sigma=sigma, max_answers=n // 5)
    plan = voting.plan(epsilon=1.0, delta=1e-5, n_queries=n, n_teachers=50, n_classes=3)
    budget = Budget(plan)
    thresholds = maxima = 0
    for query in range(n):
        if not budget.admits(may_need_argmax=True):
            break
        budget.spend_threshold()
        thresholds += 1
        if {"always": True, "never": False, "alternately": query % 2 == 0}[passes]:
            budget.spend_argmax()  # must not be refused: the query was admitted
            maxima += 1
    assert thresholds > 0
    if accounting == "binary":
        assert thresholds <= n and maxima <= plan.n_maxima
        certified = flatten(plan.event)
        assert (certified[plan.bit.event], certified[plan.maximum.event]) == (n, plan.n_maxima)
        return
    spent = thresholds / Fraction(plan.bit.sigma) ** 2 + 2 * maxima / Fraction(plan.maximum.sigma) ** 2
    cap = 1 / Fraction(plan.event.noise_multiplier) ** 2
    one_more = 1 / Fraction(plan.bit.sigma) ** 2 + 2 / Fraction(plan.maximum.sigma) ** 2
    assert spent <= cap
    assert thresholds == n or cap < spent + one_more * (1 + Fraction(1, 10**9)), "the filter stopped early"


@pytest.mark.parametrize("voting", ["soft", "gnmax", "confident"])
def test_votes_on_more_queries_than_planned_are_refused(voting):
    part = voting_part(voting)
    plan = part.plan(epsilon=1.0, delta=1e-5, n_queries=5, n_teachers=10, n_classes=2)
    source = RecordingNoise()
    with pytest.raises(ValueError, match="covers 5 queries, but there are votes on 6"):
        part.release(np.full((6, 2), 5), plan, source)
    assert not source.releases


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("n", [1, 300])
def test_calibrated_noise_costs_at_most_the_target(n, epsilon):
    for event in (ThresholdBit(100, 60.0, 1.0), ArgmaxBit(100, 1.0), GaussianDpEvent(1.0)):
        field = "noise_multiplier" if isinstance(event, GaussianDpEvent) else "sigma"

        def at(noise, event=event, field=field):
            return repeat(attr.evolve(event, **{field: noise}), n)

        noise = calibrate_noise(at, epsilon, 1e-5, guess=3.0)
        assert 0.98 * epsilon <= epsilon_of(at(noise), 1e-5) <= epsilon


def test_the_filter_is_refused_for_noise_that_is_not_gaussian():
    with pytest.raises(ValueError, match="accounting='gdp' of ConfidentVoting needs noise='gaussian'"):
        fit("FairPATE-confident-2classes-gdp", noise="discrete_gaussian")
    for mechanism in (NoisyThreshold(5.0, "discrete_gaussian", 10, 6.0), GNMax(5.0, "discrete_gaussian", 10, 2)):
        with pytest.raises(ValueError, match="not exactly Gaussian-DP"):
            _ = mechanism.mu_squared


@pytest.mark.parametrize("name", ["FairPATE-soft-2classes", "FairPATE-confident-2classes-binary"])
def test_the_ledger_is_written_before_the_first_draw(name, tmp_path):
    """What is on record when noise is first drawn is what stays there if the process dies now."""
    for path in (None, tmp_path / "ledger.jsonl"):
        ledger = PrivacyLedger(epsilon=10.0, path=path)
        on_record = []

        with recording_noise(before_draws=lambda ledger=ledger, seen=on_record: seen.append(len(ledger.entries))):
            model = fit(name, ledger=ledger)
        assert on_record and set(on_record) == {1}
        (entry,) = ledger.entries
        assert entry.event == model.privacy_.event
        assert ledger.epsilon_spent == model.privacy_.epsilon


def test_a_fit_the_ledger_cannot_afford_draws_nothing():
    ledger = PrivacyLedger(epsilon=5.0)
    fit("FairPATE-soft-2classes", ledger=ledger)
    before = ledger.epsilon_spent
    with recording_noise() as record, pytest.raises(BudgetExceededError):
        fit("FairPATE-soft-2classes", ledger=ledger)
    assert not record.releases and not record.n_sources
    assert ledger.epsilon_spent == before and len(ledger.entries) == 1


def test_seven_fits_of_a_search_are_seven_entries_and_their_composition():
    world = make_world(2)
    ledger = PrivacyLedger()
    estimator = PATEClassifier(
        n_teachers=4, classes=[0, 1], random_state=0, voting=SoftVoting(max_queries=10), ledger=ledger
    )
    search = GridSearchCV(estimator, {"epsilon": [0.5, 1.0]}, cv=KFold(3))
    search.fit(world.X, world.y, X_public=world.public)
    assert search.best_estimator_.ledger is ledger
    assert len(ledger.entries) == 7
    costs = [one.event for one in ledger.entries]
    mu_squared = sum(times / leaf.noise_multiplier**2 for event in costs for leaf, times in flatten(event).items())
    assert ledger.epsilon_spent == pytest.approx(epsilon_of(GaussianDpEvent(mu_squared**-0.5), 1e-5), rel=1e-9)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", FAIR)
def test_seeded_noise_certifies_nothing(name):
    with pytest.warns(PrivacyLeakWarning, match="noise_seed"):
        model = fit(name, noise_seed=0)
    assert model.privacy_.epsilon == math.inf
    assert model.privacy_.mechanism_epsilon <= 4.0
