"""PFLDClassifier as a scikit-learn estimator: parts and nets in grids, clones and pickles."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.lagrangian import GroupModel, NoisyGradients, PFLDClassifier, mlp
from skfairdp.privacy import PrivacyLedger
from tests._tools.lagrangian import QUICK, biased


def test_a_pickle_holds_no_private_group():
    X, y, groups = biased()
    stored = pickle.dumps(PFLDClassifier(**{**QUICK, "groups": ["f", "m"]}).fit(X, y, sensitive_features=groups))
    again = pickle.loads(stored)
    arrays = [v for v in vars(again).values() if isinstance(v, np.ndarray)]
    assert all(len(X) not in array.shape for array in arrays)
    assert len(stored) < 12_000  # 600 groups in any coding would not fit beside net and report
    assert np.array_equal(again.predict(X), again.predict(X))


class TwoLayers(torch.nn.Module):
    """A module of somebody's own."""

    def __init__(self, n_features, n_classes, width=3):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(n_features, width), torch.nn.ReLU(), torch.nn.Linear(width, n_classes)
        )

    def forward(self, X):
        return self.layers(X)


@pytest.mark.filterwarnings("ignore:.*is fitted on folds of Stratified")
def test_parts_and_nets_are_parameters_of_a_grid():
    X, y, groups = biased()
    net = NeuralNetClassifier(TwoLayers, max_epochs=4, batch_size=64, optimizer=torch.optim.Adam, train_split=None)
    model = PFLDClassifier(epsilon=None, primal=GroupModel(), **{**QUICK, "net": net})
    grid = {"primal__n_features": [8, 16], "net__module__width": [2, 5], "net__lr": [0.1]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y, sensitive_features=groups)
    width = search.best_params_["net__module__width"]
    assert search.best_estimator_.net_.module_.layers[0].out_features == width
    again = clone(search.best_estimator_)
    assert again.get_params()["net__module__width"] == width and again.primal is not model.primal
    assert clone(PFLDClassifier(primal=NoisyGradients(5, n_components=2))).get_params()["primal__n_components"] == 2


@pytest.mark.slow
def test_a_shorthand_is_the_part_with_its_defaults():
    X, y, groups = biased()
    for name, part in (("group_model", GroupModel()), ("gradient", NoisyGradients())):
        with pytest.warns(PrivacyLeakWarning, match="noise_seed"):
            fits = [
                PFLDClassifier(primal=primal, noise_seed=0, **QUICK).fit(X, y, sensitive_features=groups)
                for primal in (name, part)
            ]
        np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


def test_the_trained_net_is_a_skorch_net_that_predicts_and_can_be_saved(tmp_path):
    X, y, groups = biased()
    model = PFLDClassifier(**QUICK).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(model.net_.predict_proba(X), model.predict_proba(X), atol=1e-6)
    model.net_.save_params(f_params=tmp_path / "net.pt")
    assert len(model.net_.history_) == 0 and (tmp_path / "net.pt").stat().st_size > 0


def test_callbacks_of_a_net_are_never_run_and_said_not_to_be():
    from skorch.callbacks import EpochScoring

    X, y, groups = biased()
    net = NeuralNetClassifier(TwoLayers, max_epochs=1, optimizer=torch.optim.Adam, callbacks=[EpochScoring("accuracy")])
    with pytest.warns(UserWarning, match="never runs callbacks") as caught:
        PFLDClassifier(**{**QUICK, "net": net}).fit(X, y, sensitive_features=groups)
    assert caught[0].filename == __file__


def test_a_net_keeps_its_own_optimizer():
    X, y, groups = biased()
    free = {**QUICK, "lam_max": 0.1}  # a network that is held in three moves may give way to one class
    fits = [
        PFLDClassifier(epsilon=None, **{**free, "net": mlp((4,), max_epochs=5, lr=0.1, **optimizer)}).fit(
            X, y, sensitive_features=groups
        )
        for optimizer in ({}, {"optimizer": torch.optim.SGD}, {"optimizer__weight_decay": 0.5})
    ]
    proba = [model.predict_proba(X) for model in fits]
    assert np.abs(proba[0] - proba[1]).max() > 1e-3 and np.abs(proba[0] - proba[2]).max() > 1e-3


def test_the_plan_is_known_before_the_fit():
    X, y, groups = biased()
    for primal in ("group_model", NoisyGradients(9, sampling_probability=0.1)):
        model = PFLDClassifier(primal=primal, ledger=PrivacyLedger(), **QUICK)
        planned = model.planned_privacy(X, y, sensitive_features=groups)
        assert model.ledger.entries == ()
        spent = model.fit(X, y, sensitive_features=groups).privacy_
        assert (planned.epsilon, planned.event, planned.protects) == (spent.epsilon, spent.event, spent.protects)
