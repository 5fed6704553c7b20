"""``net=`` of FairDPSGDClassifier: searched, saved, pickled; what would publish private rows is never run."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from torch import nn

from skfairdp import FairDPSGDClassifier, PrivacyLedger
from skfairdp.gradient import PublicPenalty, mlp
from tests._tools.problems import make_rows
from tests._tools.sources import recording_noise

pytestmark = pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
X, Y, _ = make_rows(120, seed=1)


class MyNet(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, X):
        return self.layers(X)


class Told(Callback):
    """Notes every time that it is called."""

    calls: list = []

    def on_train_begin(self, *_, **__):
        Told.calls.append("train")

    def on_batch_end(self, *_, **__):
        Told.calls.append("batch")


class Splits(ValidSplit):
    def __call__(self, *_, **__):
        raise AssertionError("private rows were held out")


def model(net, **more):
    return FairDPSGDClassifier(epsilon=8.0, lam=0.0, net=net, classes=[0, 1], random_state=0, **more)


def quick(**settings):
    return NeuralNetClassifier(MyNet, **{"module__hidden": 8, "batch_size": 30, "max_epochs": 1, **settings})


@pytest.mark.slow
def test_a_grid_search_reaches_into_the_net():
    grid = {"net__module__hidden": [3, 5], "net__lr": [0.5, 1.0]}
    ledger = PrivacyLedger()
    search = GridSearchCV(model(quick(), ledger=ledger), grid, cv=KFold(2), error_score="raise").fit(X, Y)
    best = search.best_estimator_
    assert len(search.cv_results_["params"]) == 4 and len(ledger.entries) == 9
    assert best.net_.module_.module.layers[0].out_features == search.best_params_["net__module__hidden"]
    assert best.net_.lr == search.best_params_["net__lr"]


def test_parts_are_reached_by_a_grid_too():
    estimator = FairDPSGDClassifier(parity=PublicPenalty(), net=mlp((3,)))
    changed = clone(estimator).set_params(parity__temperature=0.3, net__module__hidden=(7,))
    assert (changed.parity.temperature, changed.net.module__hidden) == (0.3, (7,))
    assert (estimator.parity.temperature, estimator.net.module__hidden) == (1.0, (3,))


def test_the_trained_net_is_saved_loaded_and_pickled(tmp_path):
    with recording_noise(entropy=0):  # of other noise one fit in hundreds predicts a constant, which is another module
        fitted, other = model(quick()).fit(X, Y), model(quick()).fit(X, 1 - Y)
    fitted.net_.save_params(f_params=tmp_path / "net.pt")
    other.net_.load_params(f_params=tmp_path / "net.pt")
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_allclose(fitted.net_.predict_proba(X), fitted.predict_proba(X), rtol=1e-5)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert (
        again.net_.initialized_ and list(again.net_.history_) == [] and again.get_params()["net__module__hidden"] == 8
    )


def test_callbacks_and_held_out_rows_are_never_run_and_the_fit_says_so():
    Told.calls.clear()
    net = quick(callbacks=[("told", Told())], train_split=Splits(2))
    with pytest.warns(UserWarning, match="never runs callbacks, train_split of its 'net'") as caught:
        fitted = model(net).fit(X, Y)
    assert [warning.filename for warning in caught if "never runs" in str(warning.message)] == [__file__]
    assert Told.calls == [] and list(fitted.net_.history_) == []
    fitted.predict_proba(X)
    assert Told.calls == []


def test_a_default_net_is_trained_without_a_word(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = model(quick(lr=2.0, max_epochs=10)).fit(X, Y)
    out = capsys.readouterr()
    assert out.out == out.err == "" and list(fitted.net_.history_) == []


def test_the_given_net_is_neither_changed_nor_trained():
    net = quick()
    before = copy.deepcopy(net.get_params(deep=False))
    model(net).fit(X, Y)
    assert not net.initialized_ and not hasattr(net, "module_")
    assert {name: net.get_params(deep=False)[name] for name in ("lr", "batch_size", "module__hidden")} == {
        name: before[name] for name in ("lr", "batch_size", "module__hidden")
    }


def test_a_module_class_an_instance_and_a_net_around_them_are_the_same_network():
    torch.manual_seed(0)
    given = MyNet()
    nets = (given, NeuralNetClassifier(given, lr=None, batch_size=None, max_epochs=None, optimizer=None))
    found = [model(net, noise_seed=3).fit(X, Y).predict_proba(X) for net in nets]
    np.testing.assert_array_equal(*found)
    assert model(MyNet).fit(X, Y).n_steps_ == model(given).fit(X, Y).n_steps_ == 20


def test_what_an_optimizer_makes_of_released_gradients_costs_nothing():
    plain = model(quick()).fit(X, Y).privacy_
    adam = model(quick(optimizer=torch.optim.Adam, lr=0.01, optimizer__weight_decay=0.1)).fit(X, Y)
    assert adam.privacy_.event == plain.event and isinstance(adam.net_.optimizer_, torch.optim.Adam)


def test_another_loss_is_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="criterion of the 'net' parameter"):
        model(quick(criterion=nn.MSELoss), ledger=ledger).fit(X, Y)
    assert ledger.entries == ()


def test_a_module_that_gives_probabilities_is_refused_with_the_cure():
    with pytest.raises(ValueError, match=r"gives probabilities.*leave out its softmax"):
        model(nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=1))).fit(X, Y)
