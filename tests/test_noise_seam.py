"""The source of noise that tests listen to tells what was released, and changes nothing (tests/_tools/sources.py)."""

import math
import multiprocessing
import os

import numpy as np
import pytest

from skfairdp import PATEClassifier, RandomizedResponseClassifier
from skfairdp.privacy import GaussianMechanism, GNMax, NoiseSource, NoisyThreshold, NoisyVotes, RandomizedResponse
from tests._tools.entropy import named_entropy
from tests._tools.sources import ChosenNoise, RecordingNoise, UnitNoise, ZeroNoise, fixed_entropy, recording_noise

VOTES_2 = NoisyVotes(3.0, n_teachers=9, n_classes=2)
VOTES_3 = NoisyVotes(3.0, n_teachers=9, n_classes=3)
GNMAX = GNMax(3.0, n_teachers=9, n_classes=3)


def released(mechanism, values, source, **public):
    source.release(mechanism, np.asarray(values), **public)
    return source.releases[-1]


def test_a_release_is_written_down_with_its_mechanism_its_value_and_what_was_added():
    source = RecordingNoise()
    mechanism = GaussianMechanism(2.0, sensitivity=1.5)
    out = mechanism.release([1.0, 5.0], source)
    (release,) = source.releases
    assert release.mechanism is mechanism and release.event == mechanism.event
    assert (release.sigma, release.sensitivity) == (2.0, 1.5)
    np.testing.assert_array_equal(release.value.ravel() + release.noise.ravel(), out)
    np.testing.assert_array_equal(release.output, out)
    assert source.record.order == [f"releases {release.declared}"]


@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
@pytest.mark.parametrize(
    ("kind", "private", "public", "value"),
    [
        (NoisyVotes(3.0, n_teachers=9, n_classes=2), [[4, 5], [2, 7]], {}, [[5], [7]]),
        (NoisyVotes(3.0, n_teachers=9, n_classes=3), [[4, 5, 0]], {}, [[4, 5, 0]]),
        (GNMAX, [4, 5, 0], {}, [[4, 5, 0]]),
        (GNMAX, [4, 5, 0], {"admissible": np.array([True, False, True])}, [[4, 0]]),
        (NoisyThreshold(3.0, n_teachers=9, threshold=5.0), [4, 6, 9], {}, [[4], [6], [9]]),
    ],
)
def test_the_value_is_what_the_noise_is_added_to(kind, private, public, value, noise):
    release = released(type(kind)(**{**vars(kind), "noise": noise}), private, RecordingNoise(entropy=0), **public)
    np.testing.assert_array_equal(release.value, value)
    noisy = release.value + release.noise
    assert release.noise.any()
    if isinstance(kind, GNMax):
        classes = [0, 1, 2] if not public else [0, 2]
        assert release.output == classes[noisy.argmax()]
    elif isinstance(kind, NoisyThreshold):
        np.testing.assert_array_equal(release.output, (noisy >= 5.0).ravel())
    else:
        np.testing.assert_array_equal(release.output[:, -1:], noisy[:, -1:])


@pytest.mark.parametrize("mechanism", [GaussianMechanism(50.0), GNMAX, NoisyThreshold(3.0, n_teachers=9)])
def test_listening_does_not_change_what_is_released(mechanism):
    value = np.array([3.0, 4.0, 5.0])
    with fixed_entropy(1):
        plain = mechanism.noisy(NoiseSource(), value)
    with fixed_entropy(1):
        heard = RecordingNoise().release(mechanism, value)
    np.testing.assert_array_equal(plain, heard)
    assert NoiseSource(seed=3).release(mechanism, value) == pytest.approx(
        RecordingNoise(seed=3).release(mechanism, value)
    )


def test_no_noise_and_unit_noise_show_value_and_scale():
    mechanism = GaussianMechanism(1.7, sensitivity=0.3)
    value = np.array([0.1, math.pi])
    np.testing.assert_array_equal(mechanism.release(value, ZeroNoise()), value)
    np.testing.assert_array_equal(mechanism.release(value, UnitNoise()), value + 1.7)
    rounded = mechanism.release(value, RecordingNoise(0))
    np.testing.assert_array_equal(rounded, np.rint(value / mechanism.grid) * mechanism.grid)
    assert GNMAX.release([4, 5, 0], RecordingNoise(0)) == 1


def test_chosen_draws_and_their_scale():
    rng = np.random.default_rng(3)
    expected = 2.5 * rng.standard_normal(3)
    one = released(GNMAX, [4, 5, 0], RecordingNoise(np.random.default_rng(3), scale=2.5))
    np.testing.assert_allclose(one.noise.ravel(), 3.0 * expected)
    np.testing.assert_allclose(one.scaled_draws.ravel(), 3.0 * expected)
    other = released(GaussianMechanism(3.0), [4, 5, 0], RecordingNoise(np.random.default_rng(3), scale=2.5))
    np.testing.assert_allclose(other.noise.ravel(), 3.0 * expected, atol=3.0 / 512)

    class Counting(ChosenNoise):
        def normal(self, size=1):
            return np.arange(math.prod(size), dtype=float).reshape(size)

    np.testing.assert_array_equal(GaussianMechanism(2.0).release(np.zeros(3), Counting()), [0.0, 2.0, 4.0])


def test_a_smaller_scale_is_smaller_noise_of_the_same_law():
    n = 4000
    for mechanism in (GaussianMechanism(50.0), GaussianMechanism(50.0, "discrete_gaussian"), NoisyThreshold(50.0)):
        release = released(mechanism, np.zeros(n if mechanism.noise == "gaussian" else 400), RecordingNoise(scale=0.5))
        assert release.noise.std() == pytest.approx(25.0, rel=0.2)


def test_replaying_hands_out_the_outputs_of_a_record_and_then_real_ones():
    first = RecordingNoise()
    outputs = [GaussianMechanism(1.0).release([float(i)], first) for i in range(2)]
    second = RecordingNoise(replay=first.record)
    again = [GaussianMechanism(1.0).release([100.0], second) for _ in range(3)]
    assert again[:2] == outputs and again[2] > 50
    assert [release.private for release in second.releases] == [([100.0],)] * 3


def test_every_fit_inside_is_heard_and_its_own_seed_still_counts(rows):
    model = RandomizedResponseClassifier(epsilon=2.0, groups=[0, 1], random_state=0)
    seeded = PATEClassifier(epsilon=2.0, n_teachers=4, classes=[0, 1], random_state=0, noise_seed=1)
    drawn = []
    with recording_noise(before_draws=lambda: drawn.append(1)) as record:
        model.fit(rows.X, rows.y, sensitive_features=rows.groups)
        with pytest.warns(match="noise_seed"):
            heard = seeded.fit(rows.X, rows.y, X_public=rows.public).released_votes_
    (groups,) = record.of(RandomizedResponse)
    np.testing.assert_array_equal(groups.private[0], rows.groups)
    assert record.of(NoisyVotes) and record.n_sources == 2 and drawn
    with pytest.warns(match="noise_seed"):
        plain = seeded.fit(rows.X, rows.y, X_public=rows.public).released_votes_
    np.testing.assert_array_equal(heard, plain)


# ---- noise that nobody chose -----------------------------------------------------------------------------------
def secrets():
    source = NoiseSource()
    return [*source.words(2).tolist(), source.below(10**9), np.random.rand()]  # noqa: NPY002


@pytest.fixture(scope="module")
def drawn_before():
    return secrets()


def test_a_tests_secret_noise_follows_from_its_name_alone(request, drawn_before):
    first, second = secrets(), secrets()
    with named_entropy(request.node.nodeid):
        assert [secrets(), secrets()] == [first, second] and first[0] != second[0]
    with named_entropy("another test"):
        assert secrets()[0] not in (first[0], drawn_before[0])
    module = request.node.nodeid.partition("::")[0]
    with named_entropy(f"{module} drawn_before 0"):
        assert secrets() == drawn_before


def test_the_stream_of_a_test_goes_on_behind_another():
    with named_entropy("outer"):
        expected = [NoiseSource().below(10**9) for _ in range(2)]
    with named_entropy("outer"):
        first = NoiseSource().below(10**9)
        with named_entropy("inner"):
            NoiseSource().below(10**9)
        assert [first, NoiseSource().below(10**9)] == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_forked_children_do_not_share_a_stream():
    def tell(pipe):
        pipe.send(NoiseSource().below(10**9))

    context, told = multiprocessing.get_context("fork"), []
    for _ in range(2):
        ours, theirs = context.Pipe()
        child = context.Process(target=tell, args=(theirs,))
        child.start()
        told.append(ours.recv())
        child.join()
    assert told[0] != told[1]
