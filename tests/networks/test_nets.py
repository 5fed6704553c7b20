"""``net=``: a shorthand, a torch module or a skorch net becomes one set of settings, and nothing of a net is run."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring
from skorch.dataset import ValidSplit
from torch import nn

from tests._tools.inside import CNN, MLP, as_net, fitted_net, prepare_network


class TwoLayers(nn.Module):
    """A user's module: sizes of its own."""

    def __init__(self, hidden=8, n_features=4, n_classes=2):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, n_classes))

    def forward(self, X):
        return self.layers(X)


class Fixed(nn.Module):
    """Names no sizes in its signature."""

    def __init__(self, hidden=3):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), nn.Linear(hidden, 2))

    def forward(self, X):
        return self.layers(X)


class Holder(BaseEstimator):
    """An estimator that merely holds a net."""

    def __init__(self, net="mlp"):
        self.net = net

    def fit(self, X, y):
        self.read_ = as_net(self.net, owner="Holder")
        return self

    def score(self, X, y):
        return -float(np.log(self.read_.lr)) if self.read_.lr < 1 else 0.0


def read(net, **good):
    return as_net(net, owner="FairDPSGDClassifier", **good)


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("net", ["mlp", Fixed, TwoLayers()])
def test_what_says_nothing_of_its_own_gets_the_good_values_of_the_estimator(net):
    found = read(net, lr=0.3, batch_size=50, max_epochs=7, optimizer=torch.optim.Adam)
    assert (found.lr, found.batch_size, found.max_epochs) == (0.3, 50, 7)
    assert found.optimizer is torch.optim.Adam
    assert str(found.device) == "cpu"


def test_a_skorch_net_keeps_what_it_is_configured_with():
    net = NeuralNetClassifier(
        TwoLayers, module__hidden=5, lr=0.3, batch_size=9, max_epochs=2, optimizer=torch.optim.Adam, optimizer__eps=0.5
    )
    found = read(net, lr=7.0, batch_size=99)
    assert (found.lr, found.batch_size, found.max_epochs) == (0.3, 9, 2)
    assert found.optimizer is torch.optim.Adam
    assert found.optimizer_options == {"eps": 0.5}
    assert found.module_options == {"hidden": 5}
    assert tuple(found.build(4, 3, seed=0)(torch.zeros(6, 4)).shape) == (6, 3)


def test_what_a_net_leaves_none_is_the_choice_of_the_estimator():
    net = NeuralNetClassifier(
        MLP, lr=None, batch_size=None, max_epochs=None, optimizer=None, optimizer__weight_decay=0.1
    )
    found = read(net, lr=0.7, batch_size=33, max_epochs=None)
    assert (found.lr, found.batch_size, found.max_epochs, found.optimizer) == (0.7, 33, None, torch.optim.SGD)
    assert found.optimizer_options == {"weight_decay": 0.1}


def test_how_many_iterates_are_averaged_is_a_setting_of_the_optimizer_where_an_estimator_averages_them():
    net = NeuralNetClassifier(TwoLayers, optimizer__momentum=0.5, optimizer__average_last=0.5)
    found = read(net, average_last=0.25)
    assert found.average_last == 0.5 and found.optimizer_options == {"momentum": 0.5}
    assert read("mlp", average_last=0.25).average_last == 0.25 and read("mlp").average_last == 0.0
    for wrong in (-0.1, 1.5, "all", True):
        with pytest.raises(ValueError, match="average_last' parameter of"):
            read(net.set_params(optimizer__average_last=wrong), average_last=0.25)
    built = read(net.set_params(optimizer__average_last=0.5))
    module = built.build(4, 2, seed=0)
    with pytest.raises(ValueError, match="cannot be built"):
        built.make_optimizer(module)


def test_the_settings_are_frozen():
    with pytest.raises(AttributeError):
        read("mlp").lr = 2.0


@pytest.mark.parametrize("net", ["mlp", TwoLayers, NeuralNetClassifier(TwoLayers, module__hidden=5)])
def test_the_seed_sets_the_initial_weights_and_torch_is_left_alone(net):
    before = torch.random.get_rng_state()
    first, same, other = (weights(read(net).build(4, 2, seed=seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_a_module_that_names_no_sizes_gets_none():
    module = read(NeuralNetClassifier(Fixed, module__hidden=6)).build(4, 2, seed=0)
    assert module.layers[0].out_features == 6


def test_an_instance_is_copied_with_its_weights():
    given = TwoLayers()
    given(torch.ones(1, 4)).sum().backward()
    built = read(given).build(4, 2, seed=0)
    assert built is not given
    assert torch.equal(weights(built), weights(given))
    assert all(p.grad is None for p in built.parameters())
    assert all(p.grad is not None for p in given.parameters())


def test_an_instance_with_options_is_built_anew_as_skorch_does():
    assert read(NeuralNetClassifier(TwoLayers(), module__hidden=3)).build(4, 2, seed=0).layers[0].out_features == 3


def drawn(shapes, seed):
    """Weights of layers, uniform by fan-in, from a generator of their own; zeros in the last and in all biases."""
    generator, parts = torch.Generator().manual_seed(seed), []
    for position, shape in enumerate(shapes):
        bound = np.prod(shape[1:]) ** -0.5
        values = (torch.rand(shape, generator=generator) * 2 - 1) * bound * (position < len(shapes) - 1)
        parts += [values.flatten(), torch.zeros(shape[0])]
    return torch.cat(parts)


@pytest.mark.parametrize("hidden", [(), (7,), (5, 3)])
def test_the_weights_of_the_mlp_are_uniform_by_fan_in_and_follow_the_seed_alone(hidden):
    built = read(NeuralNetClassifier(MLP, module__hidden=hidden)).build(4, 3, seed=5)
    sizes = (4, *hidden, 3)
    torch.testing.assert_close(weights(built), drawn([*zip(sizes[1:], sizes, strict=False)], seed=5))
    assert read(NeuralNetClassifier(MLP, module__hidden=hidden)).hidden == hidden


def test_the_weights_of_the_cnn_are_uniform_by_fan_in_and_follow_the_seed_alone():
    built = read(NeuralNetClassifier(CNN, module__image_shape=(2, 6, 5))).build(60, 3, seed=5)
    shapes = [(16, 2, 3, 3), (32, 16, 3, 3), (3, 32 * 2 * 2)]
    torch.testing.assert_close(weights(built), drawn(shapes, seed=5))
    assert read("cnn").hidden is None


@pytest.mark.parametrize(("n_features", "shape"), [(49, (1, 7, 7)), (147, (3, 7, 7))])
def test_the_cnn_takes_square_images_without_a_shape(n_features, shape):
    assert read("cnn").build(n_features, 2, seed=0)[0].unflattened_size == shape


@pytest.mark.parametrize(
    ("net", "n_features", "message"),
    [
        ("cnn", 50, "rows of 50 features are no square images"),
        (NeuralNetClassifier(CNN, module__image_shape=(3, 4)), 12, "must be three positive integers"),
        (NeuralNetClassifier(CNN, module__image_shape=(3, 4, 4)), 12, "rows of 48 features, but X has 12"),
        (NeuralNetClassifier(CNN, module__channels=()), 49, "'channels' must list positive integers"),
        (NeuralNetClassifier(MLP, module__hidden=(0,)), 4, "'hidden' must list positive integers"),
        (NeuralNetClassifier(MLP, module__hidden=8), 4, "'hidden' must list positive integers"),
        (NeuralNetClassifier(TwoLayers, module__hiden=8), 4, "cannot be built"),
        (lambda: 3, 4, "must be a torch.nn.Module"),
    ],
)
def test_a_network_that_cannot_be_built_says_why(net, n_features, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(net).build(n_features, 2, seed=0)
    assert "FairDPSGDClassifier" in str(caught.value)


@pytest.mark.parametrize("net", ["forest", 3, None, [1]])
def test_what_is_no_network_is_refused(net):
    with pytest.raises(ValueError, match=r"'net' parameter of FairDPSGDClassifier must be 'mlp', 'additive', 'cnn'"):
        read(net)


@pytest.mark.parametrize("kind", [NeuralNetRegressor, NeuralNetBinaryClassifier])
def test_other_nets_than_classifiers_are_refused(kind):
    with pytest.raises(ValueError, match=r"skorch.NeuralNetClassifier. Got an object of type NeuralNet"):
        read(kind(TwoLayers))


@pytest.mark.parametrize(
    ("name", "value"), [("lr", 0.0), ("lr", np.inf), ("batch_size", -1), ("batch_size", 2.5), ("max_epochs", 0)]
)
def test_settings_that_are_no_positive_numbers_are_refused(name, value):
    with pytest.raises(ValueError, match=f"'net__{name}' parameter of FairDPSGDClassifier"):
        read(NeuralNetClassifier(TwoLayers, **{name: value}))


def test_a_misspelt_setting_is_refused():
    with pytest.raises(ValueError, match=r"unknown settings \['module_hidden'\]"):
        read(NeuralNetClassifier(TwoLayers, module_hidden=3))


@pytest.mark.parametrize(
    "settings",
    [
        {"criterion": nn.MSELoss},
        {"criterion": nn.CrossEntropyLoss(weight=torch.ones(2))},
        {"criterion": nn.CrossEntropyLoss(label_smoothing=0.1)},
        {"criterion": nn.CrossEntropyLoss, "criterion__weight": torch.ones(2)},
    ],
)
def test_another_loss_than_cross_entropy_is_refused(settings):
    with pytest.raises(ValueError, match=r"criterion of the 'net' parameter of FairDPSGDClassifier must be plain"):
        read(NeuralNetClassifier(TwoLayers, **settings))


@pytest.mark.parametrize("criterion", [nn.NLLLoss, nn.CrossEntropyLoss, nn.CrossEntropyLoss()])
def test_cross_entropy_is_taken_by_class_and_by_instance(criterion):
    assert read(NeuralNetClassifier(TwoLayers, criterion=criterion)).lr == 0.01


@pytest.mark.parametrize(
    "net",
    [
        NeuralNetClassifier(TwoLayers),
        clone(NeuralNetClassifier(TwoLayers)),
        copy.deepcopy(NeuralNetClassifier(TwoLayers)),
        NeuralNetClassifier(TwoLayers, train_split=None, callbacks="disable"),
        NeuralNetClassifier(TwoLayers, callbacks=[], callbacks__print_log=None, verbose=0),
    ],
)
def test_skorchs_defaults_are_passed_over_in_silence(net):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read(net)
    assert not caught and found.module is TwoLayers


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"callbacks": [EpochScoring("accuracy")]}, "callbacks"),
        ({"train_split": ValidSplit(3)}, "train_split"),
        ({"warm_start": True, "iterator_train__shuffle": True}, "warm_start, iterator_train__shuffle"),
        ({"callbacks": [EpochScoring("accuracy")], "train_split": ValidSplit(3)}, "callbacks, train_split"),
    ],
)
def test_what_the_user_set_and_is_never_run_is_named_in_one_warning(settings, names):
    with pytest.warns(UserWarning, match=f"FairDPSGDClassifier never runs {names} of its 'net'") as caught:
        read(NeuralNetClassifier(TwoLayers, **settings))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_the_optimizer_takes_the_options_and_groups_of_the_net():
    net = NeuralNetClassifier(
        TwoLayers, lr=0.5, optimizer__momentum=0.9, optimizer__param_groups=[("layers.2.*", {"lr": 0.1})]
    )
    optimizer = read(net).make_optimizer(read(net).build(4, 2, seed=0))
    assert sorted(group["lr"] for group in optimizer.param_groups) == [0.1, 0.5]
    assert all(group["momentum"] == 0.9 for group in optimizer.param_groups)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer__momentum": -1.0}, "cannot be built"),
        ({"optimizer__speed": 3}, "cannot be built"),
        ({"optimizer": torch.optim.LBFGS}, "must take its step from gradients"),
    ],
)
def test_an_unusable_optimizer_is_refused_before_the_training(settings, message):
    with pytest.raises(ValueError, match=message):
        prepare_network(read(NeuralNetClassifier(TwoLayers, **settings)), 4, 2, seed=0, owner="FairDPSGDClassifier")


@pytest.mark.parametrize("net", ["mlp", NeuralNetClassifier(TwoLayers), Fixed])
def test_a_fitted_net_predicts_saves_and_has_no_history(net, tmp_path):
    settings = read(net)
    module = settings.build(4, 2, seed=0)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3)
    fitted = fitted_net(settings, module, np.array(["no", "yes"]), None)
    X = np.random.default_rng(0).normal(size=(5, 4))
    expected = torch.softmax(module(torch.from_numpy(X).float()), dim=1).detach().numpy()
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-6)
    assert list(fitted.history_) == []
    assert fitted.initialized_
    assert not fitted.module_.training
    assert list(fitted.classes_) == ["no", "yes"]
    fitted.save_params(f_params=tmp_path / "net.pt")
    other = fitted_net(settings, settings.build(4, 2, seed=1), np.array(["no", "yes"]), None)
    other.load_params(f_params=tmp_path / "net.pt")
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


def test_a_fitted_net_can_be_the_net_of_another_estimator():
    settings = read("mlp", lr=0.3)
    assert read(fitted_net(settings, settings.build(4, 2, seed=0), np.array([0, 1]), None)).lr == 0.3


def test_its_parameters_are_those_of_the_estimator_that_holds_it():
    holder = Holder(NeuralNetClassifier(TwoLayers, module__hidden=8, callbacks="disable"))
    assert holder.get_params()["net__module__hidden"] == 8
    other = clone(holder).set_params(net__module__hidden=32, net__lr=0.25)
    assert (other.net.module__hidden, other.net.lr) == (32, 0.25)
    assert (holder.net.module__hidden, holder.net.lr) == (8, 0.01)
    assert pickle.loads(pickle.dumps(other)).net.module__hidden == 32


def test_a_grid_search_reaches_into_the_net():
    grid = {"net__module__hidden": [4, 8], "net__lr": [0.5, 0.1]}
    search = GridSearchCV(Holder(NeuralNetClassifier(TwoLayers)), grid, cv=2).fit(np.zeros((8, 4)), [0, 1] * 4)
    assert len(search.cv_results_["params"]) == len(ParameterGrid(grid))
    assert search.best_estimator_.read_.lr == 0.1
