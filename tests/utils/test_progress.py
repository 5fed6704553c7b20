"""A long fit without a bar says how to see one: by a forecast from public numbers alone."""

import numpy as np
import pytest

from skfairdp import FairDPSGDClassifier, PATEClassifier, PFLDClassifier, SFPATEClassifier
from skfairdp._utils import _messages, progress_bar
from skfairdp.lagrangian import LagrangianClassifier, mlp

SHORT = mlp((2,), max_epochs=1)


@pytest.mark.parametrize(("seconds", "verbose"), [(10.0, 0), (11.0, 0), (99.0, 1)])
def test_more_than_ten_seconds_without_a_bar_say_how_to_see_one(seconds, verbose, capsys):
    assert list(progress_bar(range(3), desc="teachers", verbose=verbose, seconds=seconds)) == [0, 1, 2]
    hint = "teachers: about 11 seconds. Set verbose=1 to see progress.\n"
    out, err = capsys.readouterr()
    assert not out and (err == hint * (seconds == 11.0) if not verbose else "teachers: " in err and hint not in err)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning", "ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize(
    "model",
    [
        FairDPSGDClassifier(net=SHORT, classes=[0, 1], groups=[0, 1]),
        PFLDClassifier(net=SHORT, classes=[0, 1], groups=[0, 1]),
        LagrangianClassifier(net=SHORT),
        SFPATEClassifier(fair_estimator=LagrangianClassifier(net=SHORT), classes=[0, 1], groups=[0, 1]),
        PATEClassifier(teacher="mlp", n_teachers=2, classes=[0, 1]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_loop_of_steps_has_a_forecast(model, capsys, monkeypatch):
    monkeypatch.setattr(_messages, "_LONG", 0.0)
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 2)), np.arange(300) % 2
    y = (X[:, 0] > 0).astype(int)
    public = {"X_public": rng.normal(size=(50, 2))}
    given = public if isinstance(model, PATEClassifier) else {"sensitive_features": groups}
    model.fit(X, y, **given)
    assert "Set verbose=1 to see progress." in capsys.readouterr().err
