"""What a search plans for a candidate is what its fit puts on record, whatever the private estimator is wrapped in."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skfairdp import IDP3, PrivacyLedger, RandomizedResponseClassifier
from skfairdp.privacy import flatten
from tests._tools.inside import planned_entry
from tests._tools.searches import Toy, make_rows

X, Y, Z = make_rows(300)
GROUPS = {"sensitive_features": Z}


class Failing(ClassifierMixin, BaseEstimator):
    """Swallows every Exception of the fit inside it."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        try:
            self.estimator_ = clone(self.estimator).fit(X, y)
        except Exception:
            raise AssertionError("a plan was taken for a failure") from None
        return self


def ours(**params):
    return RandomizedResponseClassifier(groups=[0, 1], classes=[0, 1], random_state=0, **params)


CASES = {
    "asked": (ours(), "ledger", GROUPS),
    "in a pipeline": (
        make_pipeline(StandardScaler(), ours()),
        "randomizedresponseclassifier__ledger",
        {"randomizedresponseclassifier__sensitive_features": Z},
    ),
    "pipeline of one": (
        make_pipeline(ours()),
        "randomizedresponseclassifier__ledger",
        {"randomizedresponseclassifier__sensitive_features": Z},
    ),
    "found out": (Toy(), "ledger", {}),
    "found out in a pipeline": (make_pipeline("passthrough", FunctionTransformer(), Toy()), "toy__ledger", {}),
    "handed on": (IDP3(Toy(), groups=[0, 1]), "estimator__ledger", GROUPS),
    "in a wrapper of scikit-learn": (OneVsRestClassifier(Toy()), "estimator__ledger", {}),
    "in a wrapper that catches errors": (Failing(Toy()), "estimator__ledger", {}),
    "wrappers in a pipeline": (
        make_pipeline(StandardScaler(), OneVsRestClassifier(Toy())),
        "onevsrestclassifier__estimator__ledger",
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:The Pipeline around")
def test_the_entry_is_that_of_the_fit(case):
    model, name, arguments = CASES[case]
    planned = planned_entry(clone(model), name, X, Y, arguments)
    ledger = PrivacyLedger()
    clone(model).set_params(**{name: ledger}).fit(X, Y, **arguments)
    recorded = ledger.entries[0]
    assert flatten(planned.event) == flatten(recorded.event)
    assert (planned.label, planned.protects, planned.neighboring_relation, planned.releases) == (
        recorded.label, recorded.protects, recorded.neighboring_relation, recorded.releases)  # fmt: skip


@pytest.mark.parametrize("case", ["asked", "handed on", "in a wrapper that catches errors", "wrappers in a pipeline"])
def test_planning_fits_no_private_estimator(case):
    model, name, arguments = CASES[case]
    Toy.made.clear()
    planned_entry(clone(model), name, X, Y, arguments)
    assert Toy.made == []


def test_a_pipeline_routes_its_arguments():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), ours())
        name = "randomizedresponseclassifier__ledger"
        routed = planned_entry(clone(model), name, X, Y, GROUPS)
        alone = planned_entry(clone(make_pipeline(ours())), name, X, Y, GROUPS)
    assert flatten(routed.event) == flatten(alone.event)


def test_what_is_wrong_with_the_arguments_of_a_post_processor_shows_in_the_plan():
    with pytest.raises(ValueError, match="'gamma' parameter of IDP3"):
        planned_entry(IDP3(Toy(), groups=[0, 1], gamma=-1.0), "estimator__ledger", X, Y, GROUPS)
    with pytest.raises(ValueError, match="groups"):
        planned_entry(IDP3(Toy(), groups=[0, 7]), "estimator__ledger", X, Y, GROUPS)


def test_who_charges_nothing_has_no_plan():
    class Silent(Toy):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

    assert planned_entry(Silent(), "ledger", X, Y, {}) is None
