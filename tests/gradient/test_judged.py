"""What a FairDP-SGD says of the network that it returns: by its hard answers, behind noise that epsilon pays for."""

import numpy as np
import pytest

from skfairdp import FairDPSGDClassifier, PublicData
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import RateParity
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.privacy import compose, epsilon_of
from tests._tools.sources import recording_noise

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

X, Y, GROUPS = make_biased_classification(3000, n_features=8, disparity=0.3, random_state=0)
BOUND = SignedLoss(constraints=RateParity("selection_rate", 0.05), dual_steps=12)


def model(**options):
    given = {"epsilon": 20.0, "parity": BOUND, "groups": [0, 1], "net": mlp((), max_epochs=5), "noise_seed": 0}
    return FairDPSGDClassifier(**{**given, "classes": [0, 1], "random_state": 0, **options})


def gap(fitted):
    predicted = fitted.predict(X)
    return abs(predicted[GROUPS == 0].mean() - predicted[GROUPS == 1].mean())


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:epsilon=1e:skfairdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("constraints", ["demographic_parity", RateParity("selection_rate_by_label", 0.2)])
def test_the_gap_that_is_told_is_that_of_the_hard_answers_of_the_network_that_is_returned(constraints):
    asked = SignedLoss(constraints=constraints, dual_steps=2)
    fitted = model(parity=asked, epsilon=1e4).fit(X, Y, sensitive_features=GROUPS)  # hardly any noise on the table
    found = gap(fitted)
    if not isinstance(constraints, str):
        predicted = fitted.predict(X)
        found = max(
            abs(np.subtract(*(predicted[(g == GROUPS) & (label == Y)].mean() for g in (0, 1)))) for label in (0, 1)
        )
    assert fitted.gap_ == pytest.approx(found, abs=0.03) and fitted.gap_ < fitted.gap_bound_ < fitted.gap_ + 0.15


@pytest.mark.slow
def test_the_averaged_network_is_led_to_its_bound_and_one_beyond_it_is_told_of():
    asked = SignedLoss(constraints=BOUND.constraints)
    fitted = model(net=mlp((16,)), parity=asked, epsilon=3.0).fit(X, Y, sensitive_features=GROUPS)
    assert gap(fitted) < 0.065 and fitted.constraint_holds_ != "no"
    free = model(parity=SignedLoss(constraints=BOUND.constraints, dual_steps=1), net=mlp((), max_epochs=5))
    with pytest.warns(FairnessWarning, match=r"did not reach its constraint 'selection_rate of 1, .* <= 0.05'"):
        free.fit(X, Y, sensitive_features=GROUPS)
    assert free.constraint_holds_ == "no" and gap(free) > 0.1


def test_the_look_is_the_last_release_and_within_epsilon():
    made = model(epsilon=0.7)
    plan = made._plan(made._read(X, Y, sensitive_features=GROUPS))
    parts = (plan.step, plan.duals, plan.tables, plan.temperature, plan.look, plan.judge)
    together = epsilon_of(compose(*(part.event for part in parts if part is not None)), 1e-5)
    assert 0.69 < together <= 0.7 and epsilon_of(plan.event, 1e-5) == pytest.approx(together, rel=1e-3)
    with recording_noise(entropy=0) as record:  # and none of it is known to anybody
        made.set_params(noise_seed=None).fit(X, Y, sensitive_features=GROUPS)
    last = record.releases[-1]
    assert np.size(last.value) == 4 and np.sum(last.value) == len(X)
    assert last.mechanism.sigma == plan.judge.table.sigma
    assert made.privacy_.event == plan.event


def test_a_penalty_on_public_rows_is_judged_there_and_costs_nothing():
    public = PublicData(X[:500], GROUPS[:500])
    fitted = model(parity=None, groups=None, lam=0.5).fit(X[500:], Y[500:], X_public=public)
    predicted = fitted.predict(X[:500])
    apart = abs(predicted[GROUPS[:500] == 0].mean() - predicted[GROUPS[:500] == 1].mean())
    assert fitted.gap_ == pytest.approx(apart) and fitted.gap_bound_ > apart + 0.04
    assert not hasattr(model(lam=0.0, parity=None).fit(X, Y), "gap_")
