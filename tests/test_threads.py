"""What several threads of one process may do at the same time, and what each of them then gets."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp import IDP3, FairDPSGDClassifier, PFLDClassifier
from skfairdp.gradient import mlp
from tests._tools.catalogue import make_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

R = make_rows()
THREADS = 4


class Forgetful(nn.Module):
    """Draws from torch's global generator in every step."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_features, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, n_classes))

    def forward(self, rows):
        return self.layers(rows)


def net(module=None):
    from skorch import NeuralNetClassifier

    if module is None:
        return mlp((4,), max_epochs=3, batch_size=60)
    return NeuralNetClassifier(module, max_epochs=3, batch_size=60, lr=0.1)


def pfld(module=None):
    model = PFLDClassifier(net=net(module), groups=[0, 1], dual_steps=3, random_state=0, noise_seed=0)
    return model.fit(R.X, R.y, sensitive_features=R.groups).predict_proba(R.X_test)


def sgd(module=None):
    model = FairDPSGDClassifier(net=net(module), lam=0.0, classes=[0, 1], random_state=0, noise_seed=0)
    return model.fit(R.X, R.y).predict_proba(R.X_test)


def at_once(work, n=THREADS):
    """The results of the same work, begun by n threads at the same moment, which change places often."""
    ready, before = Barrier(n), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def one(_):
        ready.wait()
        return work()

    try:
        with ThreadPoolExecutor(n) as pool:
            return list(pool.map(one, range(n)))
    finally:
        sys.setswitchinterval(before)


@pytest.mark.covering
@pytest.mark.parametrize("module", [None, Forgetful], ids=["mlp", "dropout"])
@pytest.mark.parametrize("fit", [pfld, sgd])
def test_fits_in_threads_are_those_of_one_thread_and_leave_torchs_generator_alone(fit, module):
    alone = fit(module)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    for found in at_once(lambda: fit(module)):
        np.testing.assert_array_equal(found, alone)
    assert torch.equal(torch.get_rng_state(), before)


class Slow(np.ndarray):
    """Counts whose sum takes so long that other threads read them meanwhile."""

    def __add__(self, other):
        found = np.asarray(self) + other
        time.sleep(0.002)
        return found.view(Slow)


def test_no_answer_is_lost_where_threads_commit_at_the_same_time():
    idp = IDP3(gamma=None).fit(None, [0, 1], sensitive_features=["a", "b"])
    idp.counts_ = idp.counts_.view(Slow)

    def commit():
        for _ in range(10):
            idp.update([0, 1, -1], sensitive_features=["a", "b", "b"])

    at_once(commit, 8)
    assert idp.counts_.tolist() == [[80, 0], [0, 80]] and idp.rejected_counts_.tolist() == [0, 80]
    assert idp.coverage_ == 2 / 3 and idp.rejection_rate_by_group_ == {"a": 0.0, "b": 0.5}


class Counting(nn.Module):
    """Notes with how many threads torch works where it is called."""

    seen: set[int]

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layers = nn.Linear(n_features, n_classes)

    def forward(self, rows):
        Counting.seen.add(torch.get_num_threads())
        return self.layers(rows)


class Broken(Counting):
    """Fails in its second call with rows that count in a loss."""

    def forward(self, rows):
        if self.training and len(Counting.seen) and 1 in Counting.seen:
            raise RuntimeError("broken")
        return super().forward(rows)


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    Counting.seen = set()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("fit", [pfld, sgd])
def test_small_steps_take_one_thread_and_give_the_others_back(fit, three_threads):
    fit(Counting)
    assert 1 in Counting.seen
    assert torch.get_num_threads() == 3


def test_a_fit_that_fails_gives_the_threads_back(three_threads):
    with pytest.raises(RuntimeError, match="broken"):
        pfld(Broken)
    assert torch.get_num_threads() == 3


def test_large_steps_and_convolutions_keep_the_threads_of_torch(three_threads):
    from tests._tools.inside import products_of_step, threads_of_steps

    with threads_of_steps(products_of_step(512, nn.Linear(1000, 1000))):
        assert torch.get_num_threads() == 3
    with threads_of_steps(products_of_step(1, nn.Conv2d(1, 1, 3))):
        assert torch.get_num_threads() == 3
    with threads_of_steps(products_of_step(512, nn.Linear(64, 64))):
        assert torch.get_num_threads() == 1
