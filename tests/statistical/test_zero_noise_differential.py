"""With the noise gone, no release moves further between neighbours than the sensitivity it declares.

Neighbours differ in one replaced row, features and label. What is compared is the very number or vector that noise
is added to, release by release, together with everything the mechanism declares about it.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfairdp.ensemble import MLPTeachers
from skfairdp.privacy import GaussianMechanism, GNMax, NoisyThreshold, NoisyVotes
from tests._tools.sources import RecordingNoise, Release, recording_noise
from tests._tools.teachers import WatchedTeachers
from tests._tools.worlds import N_ROWS, N_TEACHERS, SETTINGS, World, in_turn, make_estimator, make_world

EXTREME = 1e4
KINDS = ("far out, relabelled", "relabelled", "other side, relabelled", "other side")


def replaced(world: World, position: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """One row replaced: its features, its label, or both."""
    X, y = world.X.copy(), world.y.copy()
    if kind != "other side":
        y[position] = (y[position] + 1) % world.n_classes
    X[position] *= {"far out, relabelled": EXTREME, "relabelled": 1.0}.get(kind, -EXTREME)
    return X, y


def releases_of(
    setting: dict[str, Any], world: World, X: np.ndarray, y: np.ndarray, *, noise: int | None = None
) -> tuple[list[Release], Any, list[np.ndarray]]:
    """All releases of a fit, the fitted estimator, and the rows of each part (public: a function of random_state)."""
    teachers = WatchedTeachers()
    with recording_noise(0 if noise is None else np.random.default_rng(noise)) as record:
        model = make_estimator(setting, learns=False, memory=teachers).fit(X, y, X_public=world.public)
    assert len(teachers.partitions) == 1, "rows are dealt to teachers once in a fit"
    rows, partition = teachers.rows[0], teachers.partitions[0]
    parts = [rows[partition == teacher] for teacher in range(setting.get("n_teachers", N_TEACHERS))]
    return record.releases, model, [np.flatnonzero((X[:, None] == part).all(axis=2).any(axis=1)) for part in parts]


def largest_moves(here: list[Release], there: list[Release]) -> dict[type, float]:
    """Largest distance between neighbours over the releases, per mechanism; fails where one exceeds its bound.

    Adaptive composition asks for the bound *given equal earlier outputs*: two transcripts that have parted are two
    different outcomes, each with its own probability, and what is asked after different outcomes is never compared.
    So the walk ends with the first output that differs, that release itself being compared still.
    """
    moves: dict[type, float] = {}
    for a, b in zip(here, there, strict=False):
        assert a.adds == b.adds, "scale, sensitivity or kind of a release depends on private rows"
        assert a.adds.event == b.adds.event
        assert a.value.shape == b.value.shape
        distance = float(np.linalg.norm(a.value - b.value, axis=1).max())
        assert distance <= a.adds.sensitivity + 1e-12, (
            f"{type(a.adds).__name__} declares sensitivity {a.adds.sensitivity:.4f} and moved {distance:.4f}"
        )
        moves[type(a.adds)] = max(moves.get(type(a.adds), 0.0), distance)
        if isinstance(a.adds, GaussianMechanism) or np.any(a.output != b.output):
            return moves
    assert len(here) == len(there), "whether another release is made depends on private rows, not on earlier outputs"
    return moves


def check_neighbours(
    setting: dict[str, Any], neighbours: list[tuple[int, str]], *, noise: int | None = None
) -> dict[type, float]:
    """Compare a world with its neighbours (position, kind of replacement); the largest moves over all of them."""
    world = make_world(setting["n_classes"])
    here, model, _ = releases_of(setting, world, world.X, world.y, noise=noise)
    overall: dict[type, float] = {}
    for position, kind in neighbours:
        there, other, _ = releases_of(setting, world, *replaced(world, position, kind), noise=noise)
        assert other.privacy_ == model.privacy_, "the certified guarantee depends on private rows"
        for mechanism, move in largest_moves(here, there).items():
            overall[mechanism] = max(overall.get(mechanism, 0.0), move)
    return overall


def one_row_of_each_part(setting: dict[str, Any]) -> list[tuple[int, str]]:
    world = make_world(setting["n_classes"])
    _, _, parts = releases_of(setting, world, world.X, world.y)
    rows = [int(part[teacher % len(part)]) if len(part) else teacher for teacher, part in enumerate(parts)]
    return list(zip(rows, itertools.cycle(KINDS), strict=False))


@pytest.mark.parametrize("name", in_turn(list(SETTINGS)))
def test_no_release_moves_further_than_its_declared_sensitivity(name):
    setting = SETTINGS[name]
    neighbours = one_row_of_each_part(setting)
    plain = name.startswith("FairPATE") and setting["noise"] == "gaussian"
    if setting["voting"] != "confident" and not plain:
        neighbours = neighbours[::2]  # the same code with another noise or no gate
    moves = check_neighbours(setting, neighbours)
    # The neighbours tried are bad enough to reach every bound, so a larger sensitivity would have shown.
    one_number = {NoisyThreshold} | ({GaussianMechanism} if setting["n_classes"] == 2 else set())
    assert moves == pytest.approx({kind: 1.0 if kind in one_number else math.sqrt(2) for kind in moves})
    assert (
        moves.keys()
        == {"soft": {GaussianMechanism}, "gnmax": {GNMax}, "confident": {NoisyThreshold, GNMax}}[setting["voting"]]
    )


@pytest.mark.parametrize("name", in_turn([name for name in SETTINGS if "-confident-" in name]))
def test_confident_votes_keep_their_sensitivity_along_noisy_transcripts(name):
    """Zero noise walks one transcript; a fixed draw, the same for both neighbours, walks others."""
    setting = SETTINGS[name]
    for seed, neighbour in enumerate(one_row_of_each_part(setting)[:: 2 if name.startswith("FairPATE") else 4]):
        assert check_neighbours(setting, [neighbour], noise=seed)


@pytest.mark.parametrize("name", [name for name in SETTINGS if "discrete" not in name and "FairPATE" in name])
def test_every_output_is_what_its_noisy_value_says(name):
    """Nothing leaves the private side beside the noisy numbers: each output is recomputed from them."""
    setting = SETTINGS[name]
    world = make_world(setting["n_classes"])
    log, model, _ = releases_of(setting, world, world.X, world.y, noise=3)
    labels, released = [], model._lessons.votes
    for release in log:
        noisy = release.value + release.scaled_draws
        if isinstance(release.adds, GaussianMechanism):
            column = released.shares[:, 1:] if setting["n_classes"] == 2 else released.shares
            # rounded to a grid of sigma / 1024 or finer after the noise
            assert column * N_TEACHERS == pytest.approx(noisy, abs=release.sigma / 1024)
        elif isinstance(release.mechanism, NoisyThreshold):
            assert release.output == (noisy.item() >= release.mechanism.threshold)
        else:
            assert noisy.size < setting["n_classes"] or release.output == noisy.argmax()
            labels.append(release.output)
    if setting["voting"] == "soft":
        assert len(log) == 1
        return
    answered = released.labels[released.labels >= 0].tolist()
    assert len(log) >= len(answered), "labels came out that no mechanism has released"
    if setting["voting"] == "gnmax":
        assert labels == answered and len(answered) == model.n_queries_
    else:
        passed = [release for release in log if isinstance(release.mechanism, NoisyThreshold) and release.output]
        assert len(passed) == len(answered) and set(labels) <= set(answered)


def test_every_part_has_its_one_vote_in_every_query():
    """A part whose rows all get one label answers it; another label then moves each query by exactly one vote."""
    setting = SETTINGS["FairPATE-soft-2classes"]
    world = make_world(2)
    _, _, parts = releases_of(setting, world, world.X, world.y)
    for part in parts:
        votes = []
        for label in (0, 1):
            y = world.y.copy()
            y[part] = label
            (release,), _, _ = releases_of(setting, world, world.X, y)
            votes.append(release.value[:, 0])
        np.testing.assert_array_equal(votes[1] - votes[0], 1.0)


def test_noise_is_added_to_counts_that_were_not_rounded_to_a_coarser_grid():
    """At a scale of thousands of votes the rounding grid is wider than one vote."""
    mechanism = NoisyVotes(sigma=5000.0, n_teachers=100, n_classes=2)
    counts = np.arange(101)
    source = RecordingNoise(0)
    mechanism.release(np.column_stack([100 - counts, counts]), source)
    (release,) = source.releases
    grid = release.adds.grid
    assert grid > 1
    np.testing.assert_array_equal(release.rest, counts / grid - np.rint(counts / grid))  # what the noise is added to


def test_the_scale_of_the_noise_does_not_depend_on_private_rows():
    """Neighbours of all rows at once: other labels, other consensus, one class only. Same mechanisms, same event."""
    for name in ("FairPATE-soft-2classes", "FairPATE-gnmax-2classes", "FairPATE-confident-2classes-binary"):
        setting = SETTINGS[name]
        world = make_world(2)
        labellings = [world.y, 1 - world.y, np.zeros_like(world.y), np.ones_like(world.y)]
        fits = [releases_of(setting, world, world.X, y) for y in labellings]
        mechanisms = [{type(entry.adds): entry.adds for entry in log} for log, _, _ in fits]
        for one in mechanisms:
            assert all(mechanisms[0].get(kind, mechanism) == mechanism for kind, mechanism in one.items())
        assert len({repr(model.privacy_) + repr(model.privacy_.event) for _, model, _ in fits}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("teacher", ["logistic", "mlp", "tree", "scaled pipeline"])
@pytest.mark.parametrize("name", ["FairPATE-soft-3classes", "FairPATE-confident-3classes-gdp"])
def test_every_row_and_kind_of_replacement_for_every_kind_of_teacher(name, teacher):
    teachers = {
        "tree": DecisionTreeClassifier(),
        "scaled pipeline": make_pipeline(StandardScaler(), GaussianNB()),  # the scaler sees one part only
    }
    setting = {**SETTINGS[name], "teacher": teachers.get(teacher, teacher)}
    if teacher == "mlp":
        setting["teacher"] = MLPTeachers(hidden=(8,), epochs=5)
    every = [(position, KINDS[position % len(KINDS)]) for position in range(N_ROWS)]
    assert check_neighbours(setting, every)
