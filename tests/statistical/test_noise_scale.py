"""The noise that a fit adds has the scale that is accounted, is fresh for every query, and cannot be replayed."""

import copy
import math
import os
import pickle
import random
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from skfairdp import PublicData
from skfairdp.privacy import (
    ArgmaxBit,
    DiscreteGaussian,
    GaussianDpEvent,
    GaussianMechanism,
    GNMax,
    NoiseSource,
    NoisyThreshold,
    ThresholdBit,
    flatten,
    gdp_mu,
)
from skfairdp.privacy._mechanisms import _Noise
from tests._tools.formulas import noise_scale_interval
from tests._tools.sources import fixed_entropy, recording_noise
from tests._tools.worlds import SETTINGS, in_turn, make_estimator, make_world

# One false alarm in a million for the right scale; the wrong ones are 50 standard errors away.
CONFIDENCE = 1 - 1e-6
WRONG = (2 / 3, 3 / 2)
DECLARED = [name for name in SETTINGS if name.startswith("FairPATE") and "gdp" not in name]
FILTERED = [name for name in SETTINGS if name.startswith("FairPATE") and "gdp" in name]


def noise_of_a_fit(
    name: str, *, entropy: int = 0, n_draws: int = 10_000, **changes: Any
) -> tuple[Any, dict[type, tuple[Any, np.ndarray, int]]]:
    """The fitted model, and per kind the mechanism, its draws (one row per query) and its number of uses."""
    setting = SETTINGS[name]
    world = make_world(setting["n_classes"])
    numbers_per_query = {
        "soft": setting["n_classes"] - (setting["n_classes"] == 2),
        "gnmax": setting["n_classes"],
        "confident": 1.2,
    }[setting["voting"]]
    n_public = math.ceil(n_draws / numbers_per_query) + 50
    rng = np.random.default_rng(1)
    public = PublicData(rng.normal(size=(n_public, 2)), np.arange(n_public) % 2)
    # A threshold that nearly every unanimous vote passes, so that the maxima are exercised too.
    changes = {"max_queries": n_public, "gamma": 0.3, "threshold": 0.51, **changes}
    with fixed_entropy(entropy), recording_noise() as record:
        model = make_estimator(setting, learns=False, **changes).fit(world.X, world.y, X_public=public)
    kinds: dict[type, tuple[Any, list[np.ndarray]]] = {}
    for release in record.releases:
        draws = release.noise if isinstance(release.adds, GaussianMechanism) else release.noise.ravel()
        kinds.setdefault(type(release.adds), (release.adds, []))[1].append(draws)
    stacked = {}
    for kind, (mechanism, draws) in kinds.items():
        if kind is GaussianMechanism:
            rows = draws[0].reshape(len(draws[0]), -1)
        else:  # a gate may leave fewer admissible classes in some queries: keep the full ones
            width = max(len(one) for one in draws)
            rows = np.array([one for one in draws if len(one) == width])
        stacked[kind] = mechanism, rows, len(draws)
    return model, stacked


def accounted_scale(event: Any, kind: type, n_classes: int) -> float:
    """Standard deviation of the noise that the certified event speaks of, from the event alone."""
    wanted = {
        NoisyThreshold: ThresholdBit,
        GNMax: ArgmaxBit if n_classes == 2 else (GaussianDpEvent, DiscreteGaussian),
        GaussianMechanism: (GaussianDpEvent, DiscreteGaussian),
    }[kind]
    (leaf,) = (leaf for leaf in flatten(event) if isinstance(leaf, wanted))
    if isinstance(leaf, GaussianDpEvent):  # a ratio of noise to sensitivity, of a number or of a histogram
        return leaf.noise_multiplier * (1.0 if kind is GaussianMechanism and n_classes == 2 else math.sqrt(2))
    return leaf.sigma


@pytest.mark.parametrize("name", in_turn(DECLARED))
def test_noise_added_in_a_fit_has_the_accounted_scale(name):
    model, kinds = noise_of_a_fit(name)
    assert sum(draws.size for _, draws, _ in kinds.values()) >= 10_000
    for kind, (_, draws, _) in kinds.items():
        low, high = noise_scale_interval(draws, confidence=CONFIDENCE)
        sigma = accounted_scale(model.privacy_.event, kind, SETTINGS[name]["n_classes"])
        assert low <= sigma <= high, f"{kind.__name__} adds {low:.3f}..{high:.3f}; accounted is {sigma:.3f}"
        for factor in WRONG:
            assert not low <= factor * sigma <= high


@pytest.mark.parametrize("name", FILTERED)
def test_noise_added_under_the_filter_adds_up_to_its_cap(name):
    """Squared costs of all releases, from the noise they really got: at most the cap, and not far below it."""
    scale = math.sqrt(2000) / gdp_mu(4.0, 1e-5)  # 1000 answered queries use up epsilon=4
    model, kinds = noise_of_a_fit(name, n_draws=4000, sigma_threshold=scale, sigma=math.sqrt(2) * scale)
    spent = {1: 0.0, -1: 0.0}
    for kind, (_, draws, n_uses) in kinds.items():
        low, high = noise_scale_interval(draws, confidence=CONFIDENCE)
        sensitivity = 1.0 if kind is NoisyThreshold else math.sqrt(2)
        spent[1] += n_uses * (sensitivity / low) ** 2
        spent[-1] += n_uses * (sensitivity / high) ** 2
    cap = model.privacy_.event.noise_multiplier**-2
    n_queries = kinds[NoisyThreshold][2]
    assert n_queries < model.n_queries_, "the filter should have stopped this fit"
    assert spent[-1] <= cap <= spent[1] * (1 + 3 / n_queries)
    for factor in WRONG:
        assert not spent[-1] / factor**2 <= cap <= spent[1] * (1 + 3 / n_queries) / factor**2


@pytest.mark.parametrize("name", in_turn([*DECLARED, *FILTERED]))
def test_every_query_gets_noise_of_its_own(name):
    _, kinds = noise_of_a_fit(name, n_draws=3000)
    for kind, (mechanism, draws, _) in kinds.items():
        n = len(draws)
        assert n > 200
        standard = draws / mechanism.sigma
        # With independent noise each of these is N(0, 1/n); 6 standard errors, one false alarm in 5e8.
        for lag in (1, 2, 7):
            assert abs(np.mean(standard[lag:] * standard[:-lag], axis=0)).max() < 6 / math.sqrt(n - lag), kind.__name__
        if draws.shape[1] > 1:
            off_diagonal = (standard.T @ standard / n)[~np.eye(draws.shape[1], dtype=bool)]
            assert abs(off_diagonal).max() < 6 / math.sqrt(n), kind.__name__
        if mechanism.noise == "gaussian":
            # Sums of vectors are on a grid of about 1024 steps a standard deviation: chance repeats some, a copy all.
            assert np.unique(draws).size > (0.4 if isinstance(mechanism, GaussianMechanism) else 0.999) * draws.size
    if "confident" in name:  # the argmax must not re-use the noise of the threshold that led to it
        scaled = [np.unique((draws / mechanism.sigma).round(12)) for mechanism, draws, _ in kinds.values()]
        if "discrete" not in name:
            assert np.intersect1d(*scaled).size == 0


def test_two_fits_never_share_noise_whatever_is_seeded():
    """People publish random_state=0 and seed the global generators; the noise must not follow."""
    world, draws = make_world(2), []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        with recording_noise() as record:
            model = make_estimator(SETTINGS["FairPATE-soft-2classes"], learns=False)
            model.fit(world.X, world.y, X_public=world.public)
        draws.append(record.releases[0].noise)
    assert np.mean(draws[0] == draws[1]) < 0.01  # on the same grid; equal by chance one time in 3,600


@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
def test_noise_is_a_function_of_operating_system_entropy_alone(noise):
    def draw(entropy: int) -> np.ndarray:
        with fixed_entropy(entropy):
            return _Noise(50.0, noise)._draw((100,), NoiseSource())

    first, same, other = draw(1), draw(1), draw(2)
    np.testing.assert_array_equal(first, same)
    assert (first == other).mean() < 0.1


def test_sources_alive_at_the_same_time_do_not_share_a_stream():
    draws = [source.normal(200) for source in [NoiseSource() for _ in range(20)]]
    assert np.unique(draws).size == 20 * 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forked_processes_draw_different_noise():
    """A generator kept in memory would be copied by fork, and parent and child would add the same noise."""
    source = NoiseSource()
    source.normal(10)
    draws = []
    for _ in range(2):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, source.normal(100).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        draws.append(np.frombuffer(os.read(reader, 800)))
        os.close(reader), os.close(writer)
    draws.append(source.normal(100))
    assert np.unique(draws).size == 300


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_source_cannot_be_duplicated(duplicate, seed):
    with pytest.raises(TypeError, match="not pickled"):
        duplicate(NoiseSource(seed))


@pytest.mark.parametrize("seed", [None, 3])
def test_normal_draws_follow_the_normal_law(seed):
    with fixed_entropy(5):
        draws = NoiseSource(seed).normal((200, 500)).ravel()
    assert kstest(draws, "norm").pvalue > 1e-3
    for factor in WRONG:
        assert kstest(factor * draws, "norm").pvalue < 1e-12
    low, high = noise_scale_interval(draws, confidence=CONFIDENCE)
    assert low <= 1.0 <= high


def test_the_extremes_of_the_entropy_give_finite_noise(monkeypatch):
    for byte, magnitude in ((b"\x00", 9.1), (b"\xff", 0.0)):
        monkeypatch.setattr(os, "urandom", lambda n, byte=byte: n * byte)
        draw = NoiseSource().normal(1)[0]
        assert math.isfinite(draw) and abs(abs(draw) - magnitude) < 0.1


@pytest.mark.parametrize("sigma", [0.3, 0.75, 1.0, 2.5, 12.25])
def test_discrete_gaussian_draws_follow_their_law(sigma):
    n = 8000
    with fixed_entropy(11):
        draws = NoiseSource().discrete_gaussian(sigma, n)

    def p_value(scale: float) -> float:
        support = np.arange(-math.ceil(40 * scale) - 2, math.ceil(40 * scale) + 3)
        mass = np.exp(-((support / scale) ** 2) / 2)
        reach = max(1, math.floor(2 * scale))  # beyond it each side is one cell
        cells = np.arange(-reach, reach + 1)
        expected = np.bincount(np.clip(support, -reach, reach) + reach, weights=n * mass / mass.sum())
        observed = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(cells))
        return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(cells) - 1))

    assert p_value(sigma) > 1e-3
    for factor in WRONG:
        assert p_value(factor * sigma) < 1e-12
