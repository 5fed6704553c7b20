"""Fits with each backend of networks: what is learnt, spent and kept; images, unknown groups, refusals."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import clone

from skfairdp import PFGuardGenerator, PrivacyLedger
from skfairdp.papers import DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")

SMALL = {"n_teachers": 10, "n_steps": 3, "batch_size": 6, "hidden": (8,), "latent": 4}
BACKENDS = {
    "pate_gan": PATEGANBackend(student_steps=2, generator_steps=2, **SMALL),
    "gs_wgan": GSWGANBackend(**SMALL),
    "gs_wgan, one": GSWGANBackend(discriminators="one", **SMALL),
    "gs_wgan, global_adapt": GSWGANBackend(clipping="global_adapt", **SMALL),
    "datalens": DataLensBackend(k=4, **SMALL),
    "g_pate": GPATEBackend(n_coordinates=3, **SMALL),
}
every_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)


def easy(n=600, seed=0):
    rng = np.random.default_rng(seed)
    s = (rng.random(n) < 0.2).astype(int)
    X = pd.DataFrame(
        {
            "colour": pd.Series(np.where(rng.random(n) < 0.9, "red", "blue"), dtype=object),
            "size": np.where(rng.random(n) < 0.85, 1, 4),
        }
    )
    return X, (rng.random(n) < 0.5).astype(int), s


def make(backend, **more):
    given = {
        "epsilon": 50.0,
        "bounds": {"size": (0, 5)},
        "categories": {"colour": ["red", "blue"]},
        "dtypes": {"size": int},
        "classes": [0, 1],
        "groups": [0, 1],
        "random_state": 0,
    }
    return PFGuardGenerator(backend=backend, **{**given, **more})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
@pytest.mark.parametrize(
    "backend",
    [
        PATEGANBackend(
            n_teachers=10, n_steps=150, teacher_steps=1, student_steps=5, generator_steps=5, hidden=(16,), latent=4
        ),
        GSWGANBackend(n_teachers=10, n_steps=200, hidden=(16,), latent=4),
        GSWGANBackend(discriminators="one", n_teachers=10, n_steps=400, hidden=(16,), latent=4),
        GSWGANBackend(clipping="global_adapt", n_teachers=10, n_steps=200, hidden=(16,), latent=4),
        DataLensBackend(n_teachers=10, n_steps=200, k=4, hidden=(16,), latent=4, min_norm=0.5, lr=2e-3),
        GPATEBackend(n_teachers=10, n_steps=300, hidden=(16,), latent=4, n_coordinates=12, lr=1e-3),
    ],
    ids=BACKENDS,
)
def test_with_a_large_budget_a_backend_learns_what_is_frequent(backend):
    X, y, s = easy()
    epsilon = 100.0 if isinstance(backend, GSWGANBackend) else 2000.0
    generator = make(backend, epsilon=epsilon, noise_seed=0)
    new = generator.fit(X, y, sensitive_features=s).sample(2000, random_state=0)
    assert (new["colour"] == "red").mean() > 0.6
    assert (new["size"] <= 2).mean() > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
def test_rows_of_gs_wgan_are_those_of_the_group_they_are_asked_for():
    rng = np.random.default_rng(0)
    s = (rng.random(2000) < 0.2).astype(int)
    X = rng.normal(np.where(s == 1, 0.4, -0.4)[:, None], 0.2, (2000, 30))
    backend = GSWGANBackend(n_teachers=50, n_steps=80, batch_size=16, teacher_steps=2, hidden=(32,))
    generator = PFGuardGenerator(
        epsilon=10.0, backend=backend, codec="units", bounds=(-1, 1), groups=[0, 1], random_state=0, noise_seed=0
    )
    new, group = generator.fit(X, sensitive_features=s).sample(1000, return_sensitive=True, random_state=0)
    assert np.mean((new.mean(axis=1) > 0) == (np.asarray(group) == 1)) > 0.9


@pytest.mark.few(3)
@every_backend
def test_a_fit_spends_what_was_asked_writes_it_down_and_pickles_without_rows(backend):
    X, y, s = easy(120)
    ledger = PrivacyLedger()
    generator = make(backend, epsilon=4.0, balance="group_and_label", ledger=ledger).fit(X, y, sensitive_features=s)
    assert 0.97 * 4.0 < generator.privacy_.epsilon <= 4.0
    assert len(ledger.entries) == 1 and ledger.entries[0].event == generator.privacy_.event
    stored = pickle.dumps(generator)
    assert len(stored) < 60_000
    copy = pickle.loads(stored)
    pd.testing.assert_frame_equal(copy.sample(30, random_state=0), generator.sample(30, random_state=0))
    _, labels, groups = generator.sample_labels(100, return_sensitive=True)
    assert pd.Series(groups).value_counts().to_dict() == {0: 50, 1: 50} and set(labels) <= {0, 1}


@pytest.mark.few(3)
@every_backend
def test_images_come_back_in_their_shape_dtype_and_range(backend):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 4, 5), dtype=np.uint8)
    generator = PFGuardGenerator(epsilon=5.0, backend=backend, classes=[0, 1], groups=["a", "b"])
    generator.fit(images, rng.integers(0, 2, 60), sensitive_features=rng.choice(["a", "b"], 60))
    new, y = generator.sample_labels(7)
    assert new.shape == (7, 4, 5) and new.dtype == np.uint8 and y.shape == (7,)
    assert generator.n_features_in_ == 20
    with pytest.raises(ValueError, match="needs public bounds"):
        generator.set_params(backend=backend).fit(images.astype(float), None, sensitive_features=["a", "b"] * 30)
    flat = PFGuardGenerator(epsilon=5.0, backend=backend, codec="units", bounds=(0, 1), groups=[0, 1])
    X = np.array([[5.0, -3.0, np.nan, 0.5]] * 20)
    new = flat.fit(X, sensitive_features=[0, 1] * 10).sample(50)
    assert new.min() >= 0 and new.max() <= 1 and new.shape == (50, 4)


@pytest.mark.few(2)
@every_backend
def test_unknown_groups_are_balanced_towards_public_rows(backend):
    X, y, _ = easy(120)
    generator = make(backend, groups=None).fit(X, y, X_public=X[:20].copy())
    assert generator.groups_ is None and generator.sample(3).shape == (3, 2)


def test_marginals_refuse_images_and_unknown_groups():
    X, y, _ = easy(120)
    with pytest.raises(ValueError, match="cannot balance groups that are unknown"):
        make("marginals", groups=None).fit(X, y, X_public=X[:20].copy())
    images = np.zeros((20, 3, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match="cannot learn images"):
        PFGuardGenerator(groups=[0, 1]).fit(images, sensitive_features=[0, 1] * 10)


def test_more_teachers_than_rows_and_a_device_that_is_not_there_are_noticed_before_anything_is_spent():
    X, y, s = easy(20)
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"more teachers than rows \(21 > 20\)"):
        make(PATEGANBackend(n_teachers=21), ledger=ledger).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="'device' parameter of PATEGANBackend"):
        make(PATEGANBackend(n_teachers=2, device="abacus"), ledger=ledger).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="'n_steps' parameter of GSWGANBackend"):
        make(GSWGANBackend(n_steps=0), ledger=ledger).fit(X, y, sensitive_features=s)
    assert ledger.entries == ()


def test_clipping_by_group_needs_groups_and_all_discriminators():
    X, y, s = easy(60)
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"GSWGANBackend\(clipping='dpsgd_f'\) has a bound for each group"):
        make(GSWGANBackend(clipping="dpsgd_f", **SMALL), groups=None, balance=None, ledger=ledger).fit(X, y)
    backend = GSWGANBackend(clipping="global_adapt", discriminators="one", **SMALL)
    with pytest.raises(ValueError, match="counts the gradients of all discriminators and needs discriminators='all'"):
        make(backend, ledger=ledger).fit(X, y, sensitive_features=s)
    assert ledger.entries == ()


@pytest.mark.parametrize("setting", [{"sampling": "weights"}, {"normalization": "N2"}])
def test_how_to_balance_is_refused_where_nothing_is_balanced(setting):
    X, y, s = easy(60)
    ledger = PrivacyLedger()
    backend = GSWGANBackend(**setting, **SMALL)
    with pytest.raises(ValueError, match=f"The '{next(iter(setting))}' parameter of GSWGANBackend sets how groups and"):
        make(backend, balance=None, ledger=ledger).fit(X, y, sensitive_features=s)
    assert ledger.entries == ()


def test_teachers_of_one_group_need_groups_and_learn_from_them_at_the_same_cost():
    X, y, s = easy(60)
    ledger = PrivacyLedger()
    one_each = GSWGANBackend(sampling="by_group", **SMALL)
    with pytest.raises(ValueError, match="is 'by_group', which gives each teacher the rows of one group"):
        make(one_each, groups=None, balance="group", ledger=ledger).fit(X, y, X_public=easy(9, seed=1)[0])
    assert ledger.entries == ()
    found, usual = (make(b).fit(X, y, sensitive_features=s) for b in (one_each, GSWGANBackend(**SMALL)))
    assert found.privacy_.epsilon == usual.privacy_.epsilon
    assert not np.array_equal(np.asarray(found.sample(40)), np.asarray(usual.sample(40)))


@every_backend
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
def test_networks_train_on_cuda_at_the_same_cost_and_leave_nothing_there(backend):
    X, y, s = easy()
    here, there = (
        make(clone(backend).set_params(device=device)).fit(X, y, sensitive_features=s) for device in ("cpu", "cuda")
    )
    assert there.privacy_.epsilon == here.privacy_.epsilon
    sampled = pickle.loads(pickle.dumps(there)).sample(40)
    assert len(sampled) == 40 and list(sampled) == list(X)
