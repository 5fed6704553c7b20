"""What computes private rows in less than single precision is refused before anything is spent."""

import contextlib
import os
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp import FairClippingClassifier, FairDPSGDClassifier, FairPATEClassifier, PFLDClassifier, PrivacyLedger
from skfairdp.ensemble import ModuleTeachers
from skfairdp.exceptions import FairnessWarning
from skfairdp.postprocessing import PrivateThresholds
from tests._tools.catalogue import by_name, make_rows
from tests._tools.inside import reduced_precision

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore:quantized.*an autograd kernel was not registered"),
]

R = make_rows()
#: Each takes private rows through a network in another place.
TRAINED = [
    "FairDPSGD-public", "FairDPSGD-plain", "FairDPSGD-additive", "FairClipping-reweight", "PFLD-group-model",
    "PFLD-gradient", "FairPATE-mlp-teachers", "SFPATE-student", "SFPATE-teacher", "PFGuard-pate-gan", "PFGuard-gs-wgan",
    "PFGuard-g-pate", "PFGuard-datalens",
]  # fmt: skip


@contextlib.contextmanager
def unfair():
    """What a fit on few rows warns of is no matter here, and a mutant runs without this module's filters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        yield


@contextlib.contextmanager
def medium():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def attribute(path, value):
    *to, name = path.split(".")
    holder = torch.backends
    for part in to:
        holder = getattr(holder, part)
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


@contextlib.contextmanager
def narrow_default():
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def fpmath():
    os.environ["ONEDNN_DEFAULT_FPMATH_MODE"] = "BF16"
    try:
        yield
    finally:
        del os.environ["ONEDNN_DEFAULT_FPMATH_MODE"]


SETTINGS = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "medium": medium,
    "default": narrow_default,
    "environment": fpmath,
    "allow_tf32": lambda: attribute("cuda.matmul.allow_tf32", True),
}
if hasattr(torch.backends, "fp32_precision"):
    SETTINGS |= {
        "all": lambda: attribute("fp32_precision", "tf32"),
        "linear": lambda: attribute("mkldnn.matmul.fp32_precision", "bf16"),
        "convolution": lambda: attribute("mkldnn.conv.fp32_precision", "bf16"),
    }


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_torch_is_named_and_gone_afterwards(setting):
    assert reduced_precision() is None
    with SETTINGS[setting]():
        assert reduced_precision() is not None
    assert reduced_precision() is None


@pytest.mark.parametrize("setting", ["autocast", "medium"])
@pytest.mark.parametrize("name", TRAINED)
def test_no_fit_spends_under_a_setting_that_reduces_precision(name, setting):
    entry, ledger = by_name(name), PrivacyLedger()
    rows = entry.rows()
    with SETTINGS[setting](), pytest.raises(ValueError, match="single precision"):
        entry.fit(entry.make(ledger=ledger), rows)
    assert not ledger.entries


def test_private_thresholds_do_not_ask_a_network_under_it():
    model = FairDPSGDClassifier(epsilon=3.0, lam=0.0, classes=[0, 1], random_state=0, noise_seed=0).fit(R.X, R.y)
    ledger = PrivacyLedger()
    thresholds = PrivateThresholds(model, epsilon=1.0, groups=[0, 1], ledger=ledger)
    with unfair(), SETTINGS["autocast"](), pytest.raises(ValueError, match="PrivateThresholds needs single precision"):
        thresholds.fit(R.X, R.y, sensitive_features=R.groups)
    assert not ledger.entries


class Perceptron(nn.Module):
    """A module as users write it, with a place for what they may do to its numbers."""

    def __init__(self, inside=lambda net, X: net(X)):
        super().__init__()
        self.net, self.inside = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), inside

    def forward(self, X):
        return self.inside(self.net, X)


def in_autocast(net, X):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return net(X).float()


def halved(net, X):
    return net(X.half().float())


def while_training(net, X):
    return in_autocast(net, X) if torch.is_grad_enabled() else net(X)


def lowers_precision(net, X):
    torch.set_float32_matmul_precision("medium")
    return net(X)


def complex_weights():
    module = Perceptron()
    module.phase = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    return module


def narrow_buffer():
    module = Perceptron()
    module.register_buffer("scale", torch.ones(2, dtype=torch.bfloat16))
    return module


def quantized():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = Perceptron()
        module.frozen = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(2, 2)), {nn.Linear})
    module.inside = lambda net, X: module.frozen(net(X))
    return module


NARROW = {
    "bfloat16": lambda: Perceptron().bfloat16(),
    "float16": lambda: Perceptron().half(),
    "one layer": lambda: nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2).bfloat16()),
    "buffer": narrow_buffer,
    "complex": complex_weights,
    "quantized": quantized,
    "autocast": lambda: Perceptron(in_autocast),
    "conversion": lambda: Perceptron(halved),
    "setting": lambda: Perceptron(lowers_precision),
}


@pytest.fixture
def highest():
    yield
    torch.set_float32_matmul_precision("highest")


def spends(model, **groups):
    with pytest.raises(ValueError, match=r"precision|float32"):
        model.fit(R.X, R.y, **groups)
    return model.ledger.entries


@pytest.mark.covering
@pytest.mark.usefixtures("highest")
@pytest.mark.parametrize("module", [*NARROW, "training"])
@pytest.mark.parametrize("kind", ["dpsgd", "clipping", "pfld", "skorch"])
def test_a_module_of_less_than_single_precision_is_refused_before_anything_is_spent(kind, module):
    net = Perceptron(while_training) if module == "training" else NARROW[module]()
    if kind == "skorch":
        from skorch import NeuralNetClassifier

        net = NeuralNetClassifier(net, max_epochs=1, batch_size=32)
    common = {"net": net, "epsilon": 1.0, "ledger": PrivacyLedger(), "noise_seed": 0}
    if kind == "pfld":
        assert not spends(PFLDClassifier(groups=[0, 1], **common), sensitive_features=R.groups)
    elif kind == "clipping":
        model = FairClippingClassifier(classes=[0, 1], groups=[0, 1], **common)
        assert not spends(model, sensitive_features=R.groups)
    else:
        assert not spends(FairDPSGDClassifier(lam=0.0, classes=[0, 1], **common))


def teacher_of(kind, module):
    from skorch import NeuralNetClassifier

    if kind == "module":
        return ModuleTeachers(module)
    return NeuralNetClassifier(module, criterion=nn.CrossEntropyLoss, max_epochs=1, verbose=0, train_split=None)


@pytest.mark.covering
@pytest.mark.usefixtures("highest")
@pytest.mark.parametrize(
    ("kind", "module"),
    [("module", name) for name in NARROW] + [("skorch", name) for name in NARROW if name != "complex"],
)
def test_a_teacher_of_less_than_single_precision_is_refused_before_anything_is_spent(kind, module):
    ledger = PrivacyLedger()
    model = FairPATEClassifier(
        teacher=teacher_of(kind, NARROW[module]()), n_teachers=6, classes=[0, 1], groups=[0, 1], epsilon=5.0,
        ledger=ledger, random_state=0, noise_seed=0,
    )  # fmt: skip
    with unfair(), pytest.raises(ValueError, match=r"precision|float32|of ModuleTeachers|'teacher' of"):
        model.fit(R.X, R.y, sensitive_features=R.groups, X_public=R.public)
    assert not ledger.entries


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_single_and_double_precision_are_taken_with_counters_beside_them(dtype):
    module = Perceptron().to(dtype)
    module.register_buffer("seen", torch.zeros(1, dtype=torch.int64))
    model = FairDPSGDClassifier(net=module, epsilon=3.0, lam=0.0, classes=[0, 1], random_state=0, noise_seed=0)
    assert np.isfinite(model.fit(R.X, R.y).predict_proba(R.X_test)).all()
