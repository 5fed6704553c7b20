"""What a fit will certify is known before it: the plan is the event of the fit, and nothing is released for it."""

import numpy as np
import pytest
from sklearn.base import clone

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    PFLDClassifier,
    PrivacyLedger,
    PublicData,
    RandomizedResponseClassifier,
    SFPATEClassifier,
)
from skfairdp.gradient import mlp
from skfairdp.lagrangian import NoisyGradients
from skfairdp.pate import GNMaxVoting, VoteGate
from skfairdp.privacy import epsilon_of
from tests._tools.sources import recording_noise

rng = np.random.default_rng(0)
X, Y, Z = rng.normal(size=(300, 3)), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
PUBLIC = PublicData(rng.normal(size=(120, 3)), rng.integers(0, 2, 120))
GIVEN = {"classes": [0, 1], "random_state": 0}
OF_GROUPS, WITH_PUBLIC_ROWS = {"sensitive_features": Z}, {"X_public": PUBLIC}
DPSGD = {**GIVEN, "net": mlp((4,), max_epochs=1, batch_size=100)}
PFLD = {**GIVEN, "groups": [0, 1], "net": mlp((4,), max_epochs=1), "dual_steps": 3}
MODELS = [
    (PATEClassifier(n_teachers=10, **GIVEN), WITH_PUBLIC_ROWS),
    (PATEClassifier(voting="confident", **GIVEN), WITH_PUBLIC_ROWS),
    (FairPATEClassifier(n_teachers=10, gate=VoteGate(min_count=5), gamma=0.5, **GIVEN), WITH_PUBLIC_ROWS),
    (
        FairPATEClassifier(
            voting=GNMaxVoting(noise="discrete_gaussian"), gate=VoteGate(min_count=5), gamma=0.5, **GIVEN
        ),
        WITH_PUBLIC_ROWS,
    ),
    (PATEClassifier(n_teachers=10, **GIVEN), {}),
    (FairPATEClassifier(groups=[0, 1], voting="gnmax", gamma=0.5, **GIVEN), OF_GROUPS),
    (FairDPSGDClassifier(**DPSGD), WITH_PUBLIC_ROWS),
    (FairDPSGDClassifier(groups=[0, 1], **DPSGD), OF_GROUPS),
    (FairDPSGDClassifier(parity="signed_loss", groups=[0, 1], **DPSGD), OF_GROUPS),
    (PFLDClassifier(**PFLD), OF_GROUPS),
    (PFLDClassifier(primal=NoisyGradients(4, sampling_probability=0.05), **PFLD), OF_GROUPS),
    (PFLDClassifier(**{**PFLD, "epsilon": None}), OF_GROUPS),
    (RandomizedResponseClassifier(groups=[0, 1], **GIVEN), OF_GROUPS),
    (SFPATEClassifier(groups=[0, 1], **GIVEN), OF_GROUPS),
    (SFPATEClassifier(groups=[0, 1], variant="teacher", voting="gnmax", proximal_weight=0.0, **GIVEN), OF_GROUPS),
]
ids = [f"{type(model).__name__}-{j}" for j, (model, _) in enumerate(MODELS)]


@pytest.mark.few(9)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize(("model", "arguments"), MODELS, ids=ids)
def test_the_plan_is_the_event_of_the_fit(model, arguments):
    planned = model.planned_privacy(X, Y, **arguments)
    certified = model.fit(X, Y, **arguments).privacy_
    assert planned.event == certified.event
    assert (planned.epsilon, planned.delta) == (certified.epsilon, certified.delta)
    assert planned.protects == certified.protects
    assert planned.neighboring_relation == certified.neighboring_relation
    assert planned.epsilon == epsilon_of(planned.event, planned.delta)


@pytest.mark.parametrize(("model", "arguments"), MODELS, ids=ids)
def test_planning_draws_no_noise_charges_nothing_and_changes_nothing(model, arguments):
    def forbidden():
        raise AssertionError("noise was drawn for a plan")

    ledger = PrivacyLedger()
    watched = clone(model).set_params(ledger=ledger)
    with recording_noise(before_draws=forbidden) as record:
        watched.planned_privacy(X, Y, **arguments)
    assert not record.releases
    assert ledger.entries == () and watched.ledger is ledger
    assert not hasattr(watched, "classes_") and not hasattr(watched, "privacy_")


def test_a_plan_for_seeded_noise_promises_nothing():
    planned = PATEClassifier(noise_seed=0, **GIVEN).planned_privacy(X, Y, X_public=PUBLIC)
    assert planned.epsilon == np.inf and planned.mechanism_epsilon <= 1.0


def test_bad_input_is_an_error_of_the_plan_as_of_the_fit():
    with pytest.raises(ValueError, match="needs the groups of the private rows"):
        FairPATEClassifier(**GIVEN).planned_privacy(X, Y)
