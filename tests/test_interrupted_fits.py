"""A second fit that is interrupted at any line leaves no model of one fit beside the report of another."""

import functools
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import skfairdp
from skfairdp import PATEClassifier, PFLDClassifier, RandomizedResponseClassifier, SyntheticDataClassifier
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.lagrangian import GroupModel, mlp
from skfairdp.privacy import NoiseSource, PrivacyLedger, Spending
from tests._tools.inside import PrivacyLedger as Ledger

HOME = str(Path(skfairdp.__file__).parent)
FIRST, SECOND = 0.5, 40.0


#: Twelve rows a teacher, or a tiny budget: the warnings are not what is tested.
pytestmark = pytest.mark.filterwarnings("ignore")


@functools.cache
def made_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y, groups = (X[:, 0] > 0).astype(int), rng.integers(0, 2, 200)
    return {"X": X, "y": y, "groups": groups, "public": rng.normal(size=(30, 2))}


def pate(**options):
    rows = made_rows()
    model = PATEClassifier(
        classes=[0, 1],
        n_teachers=4,
        student=LogisticRegression(),
        teacher=LogisticRegression(),
        random_state=0,
        **options,
    )
    return model, lambda: model.fit(rows["X"], rows["y"], X_public=rows["public"])


def synthetic(**options):
    rows = made_rows()
    model = SyntheticDataClassifier(LogisticRegression(), n_samples=60, random_state=0, **options)
    model.set_params(bounds=(-3.0, 3.0), classes=[0, 1], groups=[0, 1])
    return model, lambda: model.fit(rows["X"], rows["y"], sensitive_features=rows["groups"])


def randomised(**options):
    rows = made_rows()
    model = RandomizedResponseClassifier(groups=[0, 1], random_state=0, **options)
    return model, lambda: model.fit(rows["X"], rows["y"], sensitive_features=rows["groups"])


def pfld(**options):
    rows = made_rows()
    model = PFLDClassifier(groups=[0, 1], primal=GroupModel(), dual_steps=2, random_state=0, **options)
    model.set_params(net=mlp((), max_epochs=1))
    return model, lambda: model.fit(rows["X"], rows["y"], sensitive_features=rows["groups"])


MODELS = {"pate": pate, "synthetic": synthetic, "randomised": randomised, "pfld": pfld}


#: What predicts.
LEARNED = {"pate": "student_", "synthetic": "estimator_", "randomised": "fair_estimator_", "pfld": "net_"}
STOPS = 5


class Interrupt:
    """Ctrl-C before the N-th line of the package that runs, counted from where the ledger has been asked."""

    def __init__(self, at):
        self.left, self.count, self.started, self.settled = at, 0, False, False

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        if event == "line" and self.started:
            self.count += 1
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        if event == "return" and frame.f_code is Ledger.charge.__code__:
            self.started = True
        if event == "return" and frame.f_code is Spending.settle.__code__:
            self.settled = True
        return self


def lines_of(fit, tracer=None):
    """How many lines a fit runs once it may spend; a KeyboardInterrupt before one of them."""
    tracer, before = tracer or Interrupt(-1), sys.gettrace()
    sys.settrace(tracer)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit()
    finally:
        sys.settrace(before)
    return tracer.count


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MODELS)
def test_no_model_of_one_fit_stands_beside_the_report_of_another(name):
    ledger = PrivacyLedger()
    model, fit = MODELS[name](epsilon=SECOND, ledger=ledger)
    n_lines = lines_of(fit)
    for at, epsilon in zip(np.linspace(2, n_lines - 1, STOPS).astype(int), [FIRST, SECOND] * STOPS, strict=False):
        lines_of(model.set_params(epsilon=epsilon) and fit)
        whole, charged = dict(vars(model)), len(ledger.entries)
        stop = Interrupt(at)
        with pytest.raises(KeyboardInterrupt):
            lines_of(model.set_params(epsilon=FIRST if epsilon == SECOND else SECOND) and fit, stop)
        left = vars(model)
        if "privacy_" in left and LEARNED[name] in left:
            of_the_first = [left[part] is whole[part] for part in ("privacy_", LEARNED[name])]
            assert all(of_the_first) or not any(of_the_first), at
        if "privacy_" in left and left["privacy_"] is not whole["privacy_"]:
            assert len(ledger.entries) == charged + 1
        stays = {left.get(part) is whole[part] for part in ("privacy_", LEARNED[name])}
        assert len(stays) == 1, at
        if len(ledger.entries) == charged:
            assert stays == {True}, at
        # A few lines lie between the entry on the ledger and the note of the fit that there is one. Nothing has been
        # drawn there, so the model that there was may stay: what is on record too much is on the safe side.
        if stop.settled:
            assert stays == {False} and len(ledger.entries) == charged + 1, at


@pytest.mark.parametrize("part", range(5, 25, 6))
def test_an_earlier_model_goes_as_a_whole(part):
    """Found: Ctrl-C while it went left a student without classes, whose predict was an AttributeError."""
    model, fit = pate(epsilon=SECOND)
    fit()
    kept, answers, left = dict(vars(model)), model.predict(made_rows()["X"]), [part]

    def trace(frame, event, arg):
        if frame.f_code is not Spending._forget.__code__:
            return trace if frame.f_code.co_filename.startswith(HOME) else None
        left[0] -= event == "line"
        if left[0] == 0:
            left[0] = -1
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            fit()
    finally:
        sys.settrace(before)
    # From Python 3.12 on a comprehension's lines are those of its function: the first places lie before anything goes.
    if sys.version_info >= (3, 12) and hasattr(model, "classes_"):
        assert part < 17 and vars(model).keys() == kept.keys()
        np.testing.assert_array_equal(model.predict(made_rows()["X"]), answers)
    else:
        with pytest.raises(NotFittedError):
            model.predict(made_rows()["X"])


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_fails_inside_its_budget_leaves_no_model(name, monkeypatch):
    ledger = PrivacyLedger()
    model, fit = MODELS[name](epsilon=SECOND, ledger=ledger)
    fit()
    honest = NoiseSource.release

    def broken(self, *args, **kwargs):
        honest(self, *args, **kwargs)
        raise OSError("the disk is gone")

    monkeypatch.setattr(NoiseSource, "release", broken)
    with pytest.raises(OSError, match="disk"):
        fit()
    assert not {"privacy_", LEARNED[name]} & vars(model).keys()
    assert len(ledger.entries) == 2


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_fails_before_anything_is_charged_leaves_the_model_that_there_was(name, monkeypatch):
    ledger = PrivacyLedger()
    model, fit = MODELS[name](epsilon=SECOND, ledger=ledger)
    fit()
    before = dict(vars(model))

    def broken(self, *args, **kwargs):
        raise OSError("the disk is gone")

    monkeypatch.setattr(NoiseSource, "release", broken)
    with pytest.raises(OSError, match="disk"):
        fit()
    assert vars(model).keys() == before.keys() and all(vars(model)[part] is value for part, value in before.items())
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_the_ledger_refuses_leaves_the_model_that_there_was(name):
    ledger = PrivacyLedger(epsilon=1.5 * SECOND)
    model, fit = MODELS[name](epsilon=SECOND, ledger=ledger)
    fit()
    before = {part: getattr(model, part) for part in ("privacy_", LEARNED[name])}
    with pytest.raises(BudgetExceededError):
        model.set_params(epsilon=2 * SECOND) and fit()
    assert all(getattr(model, part) is value for part, value in before.items())
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("make", [PATEClassifier, SyntheticDataClassifier])
def test_a_warning_that_is_an_error_ends_no_fit_that_has_paid(make):
    """Told of a column in the middle of the releases; raised there, it cost all that was bought."""
    rng, ledger = np.random.default_rng(0), PrivacyLedger()
    X = np.column_stack([rng.normal(size=2000), 5e8 + rng.normal(size=2000) / 1e9])
    X[0, 1] = -5e8
    model = make(classes=[0, 1], ledger=ledger, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        with pytest.raises(UserWarning, match="Nearly all numbers"):
            model.fit(X, (X[:, 0] > 0).astype(int))
    assert model.privacy_.epsilon <= 1.0 and len(ledger.entries) == 1 and model.score(X, X[:, 0] > 0) > 0.6
