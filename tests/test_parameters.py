"""No parameter is switched off by another one, and what has the same name has the same shape in every estimator."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import skfairdp
from skfairdp import FairnessCalibrator
from skfairdp.baselines import ParityLogisticRegression
from skfairdp.gradient import mlp
from skfairdp.postprocessing import Thresholds
from tests._tools.catalogue import make_rows
from tests._tools.parameters import unread_parameters

pytestmark = [  # of seeded noise, and of few rows
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

R = make_rows()
PUBLIC = {"X_public": skfairdp.PublicData(R.X_public, R.groups_public)}
PRIVATE = {"sensitive_features": R.groups}
OF_SUBJECTS = {"subject": np.arange(len(R.X)) // 2}  # for max_rows_per_subject
SEEDED = {"classes": [0, 1], "noise_seed": 0, "random_state": 0}
FEW = {"n_teachers": 5}
NET = {"net": mlp((4,), max_epochs=1, batch_size=64)}
OF_GROUPS = {"groups": [0, 1]}

VISITS = PRIVATE | OF_SUBJECTS
#: Every estimator with each of the values that could switch something off, and what its fit is given.
FITS = {
    "pate": (skfairdp.PATEClassifier, FEW, PUBLIC),
    "pate, gnmax": (skfairdp.PATEClassifier, FEW | {"voting": "gnmax"}, PUBLIC),
    "fair pate": (skfairdp.FairPATEClassifier, FEW, PUBLIC),
    "fair pate, gnmax": (skfairdp.FairPATEClassifier, FEW | {"voting": "gnmax"}, PUBLIC),
    "fair pate, confident": (skfairdp.FairPATEClassifier, FEW | {"voting": "confident"}, PUBLIC),
    "fair pate, gate of labels": (skfairdp.FairPATEClassifier, FEW | {"gate": "labels"}, PUBLIC),
    "fair pate, no gate": (skfairdp.FairPATEClassifier, FEW | {"gate": None}, PUBLIC),
    "fair pate, no gamma": (skfairdp.FairPATEClassifier, FEW | {"gamma": None}, PUBLIC),
    "fair pate, constraints": (skfairdp.FairPATEClassifier, FEW | {"constraints": "equalized_odds"}, PUBLIC | PRIVATE),
    "fair pate, a student": (skfairdp.FairPATEClassifier, FEW | {"student": LogisticRegression()}, PUBLIC),
    "fair pate, no public rows": (skfairdp.FairPATEClassifier, FEW | OF_GROUPS, PRIVATE),
    "sf-pate": (skfairdp.SFPATEClassifier, {"n_teachers": 2} | OF_GROUPS, PRIVATE),
    "sf-pate, teachers": (skfairdp.SFPATEClassifier, {"n_teachers": 2, "variant": "teacher"} | OF_GROUPS, PRIVATE),
    "sf-pate, gnmax": (skfairdp.SFPATEClassifier, {"n_teachers": 2, "voting": "gnmax"} | OF_GROUPS, PRIVATE),
    "pf-ld": (skfairdp.PFLDClassifier, NET | OF_GROUPS, PRIVATE),
    "pf-ld, gradients": (skfairdp.PFLDClassifier, NET | OF_GROUPS | {"primal": "gradient"}, PRIVATE),
    "dp-sgd": (skfairdp.FairDPSGDClassifier, NET, PUBLIC | OF_SUBJECTS),
    "dp-sgd, signed loss": (skfairdp.FairDPSGDClassifier, NET | OF_GROUPS | {"parity": "signed_loss"}, VISITS),
    "dp-sgd, constraints": (skfairdp.FairDPSGDClassifier, NET | OF_GROUPS | {"constraints": "equalized_odds"}, VISITS),
    "dp-sgd, gamma": (skfairdp.FairDPSGDClassifier, NET | OF_GROUPS | {"gamma": 0.1}, VISITS),
    "fair clipping": (skfairdp.FairClippingClassifier, NET | OF_GROUPS, PRIVATE),
    "randomised response": (skfairdp.RandomizedResponseClassifier, OF_GROUPS, PRIVATE),
    "generator": (skfairdp.PFGuardGenerator, OF_GROUPS | {"bounds": (-6.0, 6.0)}, PRIVATE),
    "generator, no balance": (skfairdp.PFGuardGenerator, OF_GROUPS | {"bounds": (-6.0, 6.0), "balance": None}, PRIVATE),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", FITS)
def test_no_value_of_a_parameter_keeps_a_fit_from_looking_at_another(case):
    cls, options, given = FITS[case]
    assert unread_parameters(cls(**options, **SEEDED), R.X, R.y, **given) == set()


def test_a_parameter_that_another_one_switches_off_is_found():
    class Switched(BaseEstimator):
        def __init__(self, how="a", a=1, b=2):
            self.how, self.a, self.b = how, a, b

        def fit(self, X):
            self.get_params()
            self.found_ = self.a if self.how == "a" else self.b
            return self

    assert unread_parameters(Switched(), None) == {"b"} and unread_parameters(Switched(how="b"), None) == {"a"}


def multipliers_of(name):
    net = mlp((), max_epochs=2, batch_size=64)
    if name == "ParityLogisticRegression":
        model = ParityLogisticRegression().fit(R.X, R.y, **PRIVATE)
    elif name == "FairnessCalibrator":
        scored = LogisticRegression().fit(R.X, R.y)
        model = FairnessCalibrator(scored, method=Thresholds()).fit(R.X, **PRIVATE)
    elif name == "LagrangianClassifier":
        model = skfairdp.LagrangianClassifier(net=net, random_state=0).fit(R.X, R.y, **PRIVATE)
    else:
        model = skfairdp.PFLDClassifier(net=net, **OF_GROUPS, **SEEDED).fit(R.X, R.y, **PRIVATE)
    return model.multipliers_


@pytest.mark.parametrize(
    "name", ["PFLDClassifier", "LagrangianClassifier", "ParityLogisticRegression", "FairnessCalibrator"]
)
def test_multipliers_have_one_shape_groups_cells_constraints(name):
    found = multipliers_of(name)
    assert found.ndim == 3 and found.shape[:2] == (2, 1) and np.isfinite(found).all()
