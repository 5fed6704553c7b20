"""Teachers of the networks' backends: disjoint rows, and releases that one replaced record moves no further than said.

As in test_generator_differential.py, what is let out is replaced by one fixed answer, so that two fits on neighbours
follow the same path and only what they would have let out differs.
"""

import contextlib
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skfairdp import PFGuardGenerator
from skfairdp.generative import TableCodec
from skfairdp.papers import DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend
from skfairdp.privacy import GaussianMechanism, NoisyThreshold, flatten
from tests._tools.inside import (
    AdversarialTraining,
    BinnedGradients,
    CountsOfRows,
    MeanGradient,
    SanitisedGradient,
    TeacherParts,
    TopSigns,
)

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")

N, TEACHERS = 48, 6
SMALL = {"n_teachers": TEACHERS, "n_steps": 3, "batch_size": 6, "hidden": (8,), "latent": 4}
BACKENDS = {
    "pate_gan": PATEGANBackend(student_steps=2, generator_steps=2, **SMALL),
    "gs_wgan": GSWGANBackend(discriminators="one", teacher_steps=10, **SMALL),
    "gs_wgan, all": GSWGANBackend(teacher_steps=10, **SMALL),
    "gs_wgan, dpsgd_f": GSWGANBackend(clipping="dpsgd_f", teacher_steps=10, **SMALL),
    "gs_wgan, global_adapt": GSWGANBackend(clipping="global_adapt", teacher_steps=10, **SMALL),
    "datalens": DataLensBackend(k=4, **SMALL),
    "g_pate": GPATEBackend(n_coordinates=3, **SMALL),
}
VARIANTS = {
    "": {},
    "stratified": {"sampling": "stratified"},
    "weights": {"sampling": "weights"},
    "N2": {"normalization": "N2"},
    "gold": {"teacher_loss": "gold"},
    "unknown groups": {"unknown": True},
}


def world():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"size": rng.normal(size=N), "kind": pd.Series(rng.choice(["a", "b", "c"], N, p=[0.6, 0.3, 0.1]), dtype=object)}
    )
    return X, (rng.random(N) < 0.3).astype(int), np.where(rng.random(N) < 0.8, "a", "b").astype(object)


def replaced(position):
    X, y, s = world()
    X.loc[position, "size"] = -X.loc[position, "size"] + 2
    X.loc[position, "kind"] = "c" if X.loc[position, "kind"] != "c" else None
    y[position], s[position] = 1 - y[position], "b" if s[position] == "a" else "a"
    return X, y, s


def fit(table, backend, *, unknown=False, **settings):
    X, y, s = table
    public = pd.DataFrame({"size": np.linspace(-2, 2, 30), "kind": pd.Series(list("abc") * 10, dtype=object)})
    generator = PFGuardGenerator(
        epsilon=5.0,
        backend=clone(BACKENDS[backend]).set_params(**settings),
        codec=TableCodec(n_bins=4),
        classes=[0, 1],
        random_state=0,
        groups=None if unknown else ["a", "b"],
    )
    return generator.fit(X, y, sensitive_features=None if unknown else s, X_public=public)


@contextlib.contextmanager
def watched(drawn=0):
    """Record the private side of every release; ``drawn`` is the discriminator that GS-WGAN asks."""
    log = []

    def answer(mechanism, kind, private, fixed):
        log.append((mechanism, kind, np.array(private, dtype=float)))
        return fixed(np.random.default_rng(len(log)))

    def groups(mechanism, values, source):
        return answer(mechanism, "groups", values, lambda rng: N * (1 + rng.random(np.shape(values))) / 6)

    def bits(mechanism, votes, source):
        return answer(mechanism, "bits", votes, lambda rng: rng.random(np.shape(votes)) < 0.5)

    def gradient(mechanism, gradients, source):
        private = mechanism.clipped(gradients)
        return answer(mechanism, "gradient", private, lambda rng: rng.normal(size=private.shape))

    def mean(mechanism, gradients, source):
        private = mechanism.mean(gradients)
        return answer(mechanism, "gradient", private, lambda rng: rng.normal(size=private.shape))

    def counts(mechanism, exact, source):
        return answer(mechanism, "counts", exact, lambda rng: TEACHERS * 6 * rng.random(np.shape(exact)))

    def signs(mechanism, votes, source, *, least):
        return answer(mechanism, "signs", votes, lambda rng: np.sign(rng.normal(size=np.shape(votes))))

    def bins(mechanism, counts, source, *, threshold):
        shape = counts.shape[:2]
        return answer(
            mechanism, "bins", counts, lambda rng: (rng.integers(counts.shape[2], size=shape), rng.random(shape) < 0.5)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianMechanism, "release", groups)
        patch.setattr(NoisyThreshold, "release_each", bits)
        patch.setattr(SanitisedGradient, "release", gradient)
        patch.setattr(MeanGradient, "release", mean)
        patch.setattr(CountsOfRows, "release", counts)
        patch.setattr(SanitisedGradient, "draw", lambda mechanism, source: drawn)
        patch.setattr(TopSigns, "release", signs)
        patch.setattr(BinnedGradients, "release", bins)
        yield log


def moves(kind, mechanism, first, second):
    """Distances that have declared bounds, each with its bound."""
    change = first - second
    if kind == "groups":
        return [(np.linalg.norm(change), np.sqrt(2))]
    if kind == "bits":
        return [(np.abs(change).max(), 1.0)]
    if kind == "gradient":
        sharing = mechanism.n_discriminators if isinstance(mechanism, MeanGradient) else 1
        return [(np.linalg.norm(change), 2 * mechanism.clip * np.sqrt(mechanism.batch_size) / sharing)]
    if kind == "counts":
        both = 2 if mechanism.two_sided else 1
        return [(np.linalg.norm(change), np.sqrt(both * np.square(mechanism.sizes).sum()))]
    if kind == "signs":
        return [(np.linalg.norm(change), 2 * np.sqrt(mechanism.k))]
    per_coordinate = np.sqrt((change**2).sum(axis=2)).max()
    return [(per_coordinate, np.sqrt(2)), (np.abs(first.max(axis=2) - second.max(axis=2)).max(), 1.0)]


def releases_of(table, backend, drawn=0, **settings):
    with watched(drawn) as log:
        model = fit(table, backend, **settings)
    return log, model


def teacher_of(position, backend):
    """Public: the partition follows from the number of rows and random_state."""
    seen = []
    original = TeacherParts.__init__

    def noting(self, *args, **kwargs):
        original(self, *args, **kwargs)
        seen.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TeacherParts, "__init__", noting)
        releases_of(world(), backend)
    assert len(seen) == 1, "rows are dealt to teachers once in a fit"
    return int(seen[0].assignment[position])


@pytest.mark.covering
@pytest.mark.parametrize(
    ("backend", "variant"),
    [
        (backend, variant)
        for backend in BACKENDS
        for variant in VARIANTS
        if (backend, variant) != ("gs_wgan, dpsgd_f", "unknown groups")  # refused: it has a bound for each group
    ],
)
def test_no_release_of_the_ensembles_moves_further_than_declared(backend, variant):
    settings, position = VARIANTS[variant], 17
    drawn = teacher_of(position, backend)
    here, model = releases_of(world(), backend, drawn, **settings)
    there, other = releases_of(replaced(position), backend, drawn, **settings)
    assert model.privacy_ == other.privacy_
    assert [kind for _, kind, _ in here] == [kind for _, kind, _ in there]
    moved = 0.0
    for (one, kind, first), (two, _, second) in zip(here, there, strict=True):
        assert one == two, "noise or sensitivity depends on the rows"
        for distance, bound in moves(kind, one, first, second):
            assert distance <= bound * (1 + 1e-6)
            moved = max(moved, distance)
    assert moved > 0, "the replaced record reaches its teacher"


@pytest.mark.few(3)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_discriminator_without_the_replaced_record_answers_the_same(variant):
    """What GS-WGAN's amplification rests on: only one discriminator can tell the neighbours apart."""
    position = 17
    bystander = (teacher_of(position, "gs_wgan") + 1) % TEACHERS
    here, _ = releases_of(world(), "gs_wgan", bystander, **VARIANTS[variant])
    there, _ = releases_of(replaced(position), "gs_wgan", bystander, **VARIANTS[variant])
    for (_, kind, first), (_, _, second) in zip(here, there, strict=True):
        if kind == "gradient":
            np.testing.assert_array_equal(first, second)


def test_what_a_discriminator_would_answer_does_not_depend_on_who_was_drawn_before():
    """Secret draws that showed in the discriminators' state would tie one step's draw to the next."""
    answers = {}
    original = AdversarialTraining.directions

    def directions(self, shown, which=None):
        answers[self.asked].append(original(self, shown))
        return original(self, shown, which)

    for drawn in (0, TEACHERS - 1):
        answers[drawn] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AdversarialTraining, "asked", drawn, raising=False)
            patch.setattr(AdversarialTraining, "directions", directions)
            releases_of(world(), "gs_wgan", drawn)
    for one, two in zip(*answers.values(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_row_is_seen_by_one_teacher_in_the_whole_fit_and_every_teacher_sees_its_own(backend):
    seen = [set() for _ in range(TEACHERS)]
    parts = []
    original = TeacherParts.batch

    def batch(self, batch_size):
        index = original(self, batch_size)
        parts.append(self)
        for teacher, positions in enumerate(index):
            seen[teacher].update(positions.tolist())
        return index

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TeacherParts, "batch", batch)
        releases_of(world(), backend)
    assert sum(map(len, seen)) == len(set.union(*seen)), "a row reached two teachers"
    assert all(seen)
    assert len({id(part) for part in parts}) == 1
    for teacher, positions in enumerate(seen):
        assert positions <= set(np.flatnonzero(parts[0].assignment == teacher).tolist())


@pytest.mark.few(3)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_generator_is_a_function_of_what_was_let_out(backend):
    """Other rows, the same answers: the same generator. So neither it nor the student has seen a private row."""
    X, y, s = world()
    _, first = releases_of((X, y, s), backend)
    _, second = releases_of((X.sample(frac=1, random_state=1).reset_index(drop=True), 1 - y, s[::-1].copy()), backend)
    for one, two in zip(first.model_.net.state_dict().values(), second.model_.net.state_dict().values(), strict=True):
        assert (one == two).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_number_of_releases_is_the_declared_one(backend):
    log, model = releases_of(world(), backend)
    steps = SMALL["n_steps"]
    counted = {"bits": steps, "gradient": steps, "counts": steps, "signs": steps * SMALL["batch_size"], "bins": steps}
    times = {"bits": steps * 6, "gradient": steps, "counts": steps, "signs": steps * 6, "bins": steps * 6}
    expected = Counter()
    for kind in {kind for _, kind, _ in log} - {"groups"}:
        assert sum(name == kind for _, name, _ in log) == counted[kind]
        mechanism = next(mechanism for mechanism, name, _ in log if name == kind)
        for leaf, count in flatten(mechanism.event).items():
            expected[leaf] += count * times[kind]
    leaves = flatten(model.privacy_.event)
    assert expected and all(leaves[leaf] == count for leaf, count in expected.items())
