"""``total_epsilon`` of a search is what all of it costs, by the accountant: fits, scores, refit, schemas paid for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from skfairdp import FairDPSGDClassifier, FairPATEClassifier, ParetoSearchCV, PrivateSearchCV, PublicData
from skfairdp.gradient import mlp
from skfairdp.privacy import GaussianDpEvent, PrivacyLedger, compose, epsilon_of, gdp_mu, repeat
from skfairdp.schema import Schema
from tests._tools.catalogue import make_rows
from tests._tools.searches import Toy
from tests._tools.sources import recording_noise

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = make_rows()
VALIDATION = PublicData(ROWS.X_test, ROWS.groups_test, y=ROWS.y_test)
CUTS = {"cut": [-1.0, 0.0, 0.5, 1.0, 2.0]}


class Calibrated(Toy):
    """One Gaussian of the noise that its ε asks for."""

    def __init__(self, cut=0.0, epsilon=1.0, delta=1e-5, classes=(0, 1), groups=(0, 1), noise_seed=None,
                 random_state=None, ledger=None, fails=False, verbose=0):  # fmt: skip
        super().__init__(cut, None, delta, classes, groups, noise_seed, random_state, ledger, fails, verbose)
        self.epsilon = epsilon

    def get_params(self, deep=True):
        return {name: value for name, value in super().get_params(deep).items() if name != "noise"}

    @property
    def noise(self):
        return 1 / gdp_mu(self.epsilon, self.delta)

    @noise.setter
    def noise(self, value):
        pass


def dpsgd(**given):
    return FairDPSGDClassifier(
        classes=[0, 1], groups=[0, 1], net=mlp((4,), max_epochs=1, batch_size=64), random_state=0, **given
    )


def fair_pate(**given):
    return FairPATEClassifier(classes=[0, 1], groups=[0, 1], n_teachers=8, random_state=0, **given)


GAMMAS = {"gamma": [0.1, 0.3, None]}
SEARCHES = {
    "folds": ParetoSearchCV(Calibrated(), CUTS, cv=3, score_epsilon=0.25),
    "without refit": ParetoSearchCV(Calibrated(), CUTS, cv=2, refit=False),
    "overlapping parts": ParetoSearchCV(Calibrated(), CUTS, cv=ShuffleSplit(3, random_state=0)),
    "shared votes": ParetoSearchCV(fair_pate(), GAMMAS, cv=2),
    "weights": ParetoSearchCV(dpsgd(parity="signed_loss"), {"lam": [0.5, 2.0]}, cv=2),
    "hold-out": PrivateSearchCV(Calibrated(), {"cut": [0.0, 1.0]}),
    "composition": PrivateSearchCV(Calibrated(), CUTS, method="composition", cv=2),
    "selection": PrivateSearchCV(Calibrated(), CUTS, method="selection"),
    "the cheaper one": PrivateSearchCV(Calibrated(), CUTS),
}


def fit(search, **given):
    given = {"sensitive_features": ROWS.groups, **given}
    if isinstance(search.estimator, FairPATEClassifier):
        given["X_public"] = ROWS.public
    return search.fit(ROWS.X, ROWS.y, **given)


@pytest.mark.covering
@pytest.mark.parametrize("total", [0.5, 3.0])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "weights")) for name in SEARCHES]
)
def test_the_whole_search_costs_the_total_and_no_more(name, total):
    search = clone(SEARCHES[name]).set_params(total_epsilon=total)
    search = fit(search)
    assert total * (1 - 1e-5) <= search.privacy_.epsilon <= total
    assert epsilon_of(search.privacy_.event, 1e-5) == pytest.approx(search.privacy_.epsilon)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["folds", "shared votes", "selection"])
def test_the_ledger_holds_what_the_search_says_and_a_ceiling_of_the_total_is_enough(name):
    ledger = PrivacyLedger(epsilon=2.0)
    search = fit(clone(SEARCHES[name]).set_params(total_epsilon=2.0, estimator__ledger=ledger))
    assert ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon, rel=1e-9)
    assert search.best_estimator_ is not None


@pytest.mark.few(1)
@pytest.mark.parametrize("validation", [None, VALIDATION])
def test_the_plan_says_how_it_is_divided_and_the_fits_keep_to_it(validation):
    search = ParetoSearchCV(Calibrated(epsilon=2.0), CUTS, cv=3, score_epsilon=0.5, total_epsilon=1.0)
    with recording_noise() as record:
        planned = search.planned_privacy(ROWS.X, ROWS.y, sensitive_features=ROWS.groups, validation=validation)
    assert not record.releases
    share = {fact.name: fact.value for fact in planned.public if "epsilon" in fact.name}
    assert share["total epsilon"] == 1.0
    of_fit = GaussianDpEvent(1 / gdp_mu(share["epsilon of each fit"], 1e-5))
    if validation is None:
        assert share["epsilon of each table of scores"] == pytest.approx(share["epsilon of each fit"] / 4)
        table = GaussianDpEvent(1 / gdp_mu(share["epsilon of each table of scores"], 1e-5))
        by_hand = compose(repeat(of_fit, 5 * 2 + 1), repeat(table, 5))
    else:
        by_hand = repeat(of_fit, 5)
    assert epsilon_of(by_hand, 1e-5) == pytest.approx(planned.epsilon, rel=1e-6)
    Toy.made.clear()
    fitted = fit(search, validation=validation)
    assert fitted.privacy_.epsilon == pytest.approx(planned.epsilon, rel=1e-9)
    assert {made["epsilon"] for made in Toy.made} == {share["epsilon of each fit"]}
    assert {fact for fact in planned.public if "epsilon" in fact.name} <= set(fitted.privacy_.public)


def test_without_a_total_the_plan_is_what_the_search_costs():
    search = clone(SEARCHES["folds"])
    planned = search.planned_privacy(ROWS.X, ROWS.y, sensitive_features=ROWS.groups)
    assert planned.event == fit(search).privacy_.event


def test_the_composed_total_buys_more_than_shares_of_the_sum():
    search = clone(SEARCHES["folds"]).set_params(total_epsilon=1.0)
    planned = search.planned_privacy(ROWS.X, ROWS.y, sensitive_features=ROWS.groups)
    (of_fit,) = [fact.value for fact in planned.public if fact.name == "epsilon of each fit"]
    assert of_fit > 2 / 11


def schema_that_cost(epsilon):
    table = pd.DataFrame(ROWS.X, columns=list("abcd")[: ROWS.X.shape[1]]).assign(label=ROWS.y, group=ROWS.groups)
    return table, Schema.release(table, epsilon=epsilon, label="label", groups="group")


@pytest.mark.slow
def test_a_schema_that_was_paid_for_comes_off_the_total():
    table, schema = schema_that_cost(8.0)
    model = FairDPSGDClassifier(schema=schema, net=mlp((4,), max_epochs=1, batch_size=64), lam=0.0, random_state=0)
    search = ParetoSearchCV(model, {"max_grad_norm": [0.5, 1.0]}, scoring=["accuracy"], cv=2)
    enough = clone(search).set_params(total_epsilon=10.0).planned_privacy(table)
    assert 9.999 <= enough.epsilon <= 10.0
    with pytest.raises(ValueError, match="released schemas cost less"):
        clone(search).set_params(total_epsilon=6.0).fit(table)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (ParetoSearchCV(Calibrated(), {"epsilon": [0.5, 1.0]}, cv=2), "grid over 'epsilon'"),
        (PrivateSearchCV(Calibrated(), {"epsilon": [0.5, 1.0]}), "grid over 'epsilon'"),
        (ParetoSearchCV(Toy(), CUTS, cv=2), "parameter 'epsilon'"),
        (
            ParetoSearchCV(dpsgd(lam=0.0, noise_multiplier=50.0), {"max_grad_norm": [0.5, 1.0]}, cv=2),
            "noise_multiplier",
        ),
    ],
)
def test_what_cannot_be_divided_is_refused_before_anything_is_spent(search, message):
    ledger = PrivacyLedger()
    search = clone(search).set_params(total_epsilon=1e-4, estimator__ledger=ledger)
    with pytest.raises(ValueError, match=message):
        fit(search)
    assert not ledger.entries


def test_the_parameter_is_a_number_above_zero():
    for bad in (0.0, -1.0, np.inf, "1"):
        with pytest.raises(ValueError, match="total_epsilon"):
            fit(clone(SEARCHES["folds"]).set_params(total_epsilon=bad))
