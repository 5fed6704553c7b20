"""PFLDClassifier: unusual rows and modules work, bad settings are refused before anything is spent."""

import numpy as np
import pandas as pd
import pytest
import torch
from skorch import NeuralNetClassifier

from skfairdp.lagrangian import GroupModel, NoisyGradients, PFLDClassifier, mlp
from skfairdp.privacy import PrivacyLedger
from tests._tools.lagrangian import NOTIONS, QUICK, biased


@pytest.mark.slow
def test_more_than_twenty_groups_some_of_them_empty():
    X, y, _ = biased()
    names = [f"group {i}" for i in range(25)]
    groups = np.array(names)[np.random.default_rng(0).integers(21, size=len(X))]
    for primal in ("group_model", "gradient"):
        model = PFLDClassifier(primal=primal, **{**QUICK, "groups": names, "constraints": NOTIONS})
        model.fit(X, y, sensitive_features=groups)
        assert model.noisy_counts_.shape == (25, 2) and np.all(model.noisy_counts_ > 0)
        assert np.all(np.isfinite(model.predict_proba(X))) and np.all(np.isfinite(model.multipliers_))


@pytest.mark.few(1)
@pytest.mark.parametrize("primal", ["group_model", "gradient"])
def test_a_label_that_is_constant_within_a_group(primal):
    X, y, groups = biased()
    y = np.where(groups == "f", 0, y)
    model = PFLDClassifier(primal=primal, constraints="equalized_odds", **QUICK).fit(X, y, sensitive_features=groups)
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_three_classes():
    X, y, groups = biased()
    y = y + (X[:, 2] > 1)
    model = PFLDClassifier(constraints=NOTIONS, **QUICK).fit(X, y, sensitive_features=groups)
    assert model.multipliers_.shape == (2, 3, 7) and set(model.predict(X)) <= {0, 1, 2}


def test_one_given_group_is_no_error():
    X, y, _ = biased()
    model = PFLDClassifier(**{**QUICK, "groups": ["f"]}).fit(X, y, sensitive_features=np.full(len(X), "f"))
    assert len(model.multipliers_) == len(model.groups_) == 1


def test_sensitive_columns_are_dropped_from_the_features():
    X, y, groups = biased()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=groups)
    enough = {**QUICK, "lam_max": 0.1, "net": mlp((4,), max_epochs=20, batch_size=64)}  # to beat one class
    model = PFLDClassifier(sensitive_columns="sex", **enough).fit(frame, y)
    assert model.n_features_in_ == 5 and next(model.net_.module_.parameters()).shape[1] == 4
    other = frame.assign(sex=groups[::-1])
    np.testing.assert_array_equal(model.predict(frame), model.predict(other))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0.0}, "'epsilon' parameter of PFLDClassifier"),
        ({"constraints": []}, "'constraints' parameter of PFLDClassifier"),
        ({"constraints": ["equalized_odds", "equalized_odds"]}, "'constraints' parameter of PFLDClassifier"),
        ({"constraints": ["calibration"]}, "'constraints' parameter of PFLDClassifier"),
        ({"budget_split": (0.02, 0.49, 0.49)}, "'budget_split' parameter of PFLDClassifier must map 'sizes'"),
        ({"budget_split": {"sizes": 0.5, "dual": 0.5}}, "'budget_split' parameter of PFLDClassifier"),
        ({"budget_split": {"sizes": 0.0, "primal": 0.5, "dual": 0.5}}, "'budget_split' parameter of PFLDClassifier"),
        ({"primal": "moments"}, "'primal' parameter of PFLDClassifier must be 'group_model', 'gradient'"),
        ({"primal": NoisyGradients(sampling_probability=0.0)}, "'sampling_probability' parameter of NoisyGradients"),
        ({"primal": NoisyGradients(0)}, "'n_steps' parameter of NoisyGradients"),
        ({"primal": GroupModel(0)}, "'n_features' parameter of GroupModel"),
        ({"net": mlp((0,))}, "'net' parameter of PFLDClassifier.*'hidden'"),
        ({"net": mlp(device="nowhere")}, "PFLDClassifier"),
        ({"classes": [0]}, "y of PFLDClassifier"),
        ({"groups": ["f", "x"]}, "sensitive_features of PFLDClassifier"),
        ({"net": torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))}, "BatchNorm1d"),
    ],
)
def test_bad_settings_are_errors_before_anything_is_spent(settings, said):
    X, y, groups = biased()
    ledger = PrivacyLedger(epsilon=10)
    with pytest.raises(ValueError, match=said) as caught:
        PFLDClassifier(**{**QUICK, "ledger": ledger, **settings}).fit(X, y, sensitive_features=groups)
    assert ledger.entries == ()
    assert "'m'" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X, y, g: (X, y, None), "needs the groups"),
        (lambda X, y, g: (X, y, g[:-1]), "inconsistent length"),
        (lambda X, y, g: (X, np.zeros_like(y), g), "only one class"),
        (lambda X, y, g: (X * 1e200, y, g), "Scale the features"),
    ],
)
def test_bad_rows_are_errors_before_anything_is_spent(change, said):
    X, y, groups = change(*biased())
    ledger = PrivacyLedger(epsilon=10)
    with pytest.raises(ValueError, match=said):
        PFLDClassifier(ledger=ledger, **QUICK).fit(X, y, sensitive_features=groups)
    assert ledger.entries == ()


@pytest.mark.slow
def test_dropout_and_modules_without_rules_can_be_trained():
    X, y, groups = biased()
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.PReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(6, 2))
    net = NeuralNetClassifier(
        module, lr=1e-3, batch_size=64, max_epochs=2, optimizer=torch.optim.Adam, train_split=None
    )
    for primal in ("group_model", "gradient", NoisyGradients(sampling_probability=0.05)):
        model = PFLDClassifier(**{**QUICK, "net": net}, primal=primal).fit(X, y, sensitive_features=groups)
        assert np.all(np.isfinite(model.predict_proba(X)))
        assert next(model.net_.module_.parameters()) is not next(module.parameters())
