"""PFLDClassifier: what is released and charged is what is certified."""

import numpy as np
import pytest

from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.fairness import RateBound, RateParity
from skfairdp.lagrangian import NoisyGradients, PFLDClassifier
from skfairdp.privacy import GaussianMechanism, PrivacyLedger, epsilon_of
from tests._tools.lagrangian import BOUNDED, NOTIONS, QUICK, biased
from tests._tools.sources import ChosenNoise, installed

OF_SOME = [
    RateParity("selection_rate", 0.05),
    RateBound("selection_rate", upper=0.3, groups=["m"]),
    RateBound("error_rate", upper=0.2, groups="overall"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "settings",
    [{}, {"primal": "gradient"}, {"primal": NoisyGradients(sampling_probability=0.3)}],
    ids=["group model", "gradient", "Poisson"],
)
@pytest.mark.parametrize("constraint", ["demographic_parity", NOTIONS, "true_positive_rate_parity", BOUNDED, OF_SOME])
def test_epsilon_follows_from_the_event_and_is_what_was_asked(settings, constraint):
    X, y, groups = biased()
    model = PFLDClassifier(epsilon=2.0, constraints=constraint, **QUICK, **settings).fit(
        X, y, sensitive_features=groups
    )
    assert 1.98 < model.privacy_.epsilon <= 2.0
    assert model.privacy_.epsilon == epsilon_of(model.privacy_.event, 1e-5)
    assert model.privacy_.protects == "sensitive attribute"
    assert np.all(np.isfinite(model.predict_proba(X))) and np.all(np.abs(model.multipliers_) <= 5.0)


class Watched(ChosenNoise):
    """Remembers how often noise was drawn, and how much of it."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def normal(self, size=1):
        self.sizes.append(int(np.prod(size)))
        return super().normal(size)


@pytest.mark.parametrize("constraints", ["demographic_parity", OF_SOME], ids=["a name", "of some"])
@pytest.mark.parametrize("primal", ["group_model", NoisyGradients(7)])
def test_no_more_is_released_than_accounted(primal, constraints):
    X, y, groups = biased()
    source = Watched()
    with installed(source):
        model = PFLDClassifier(primal=primal, constraints=constraints, **QUICK).fit(X, y, sensitive_features=groups)
    primal_releases = 7 if isinstance(primal, NoisyGradients) else 1
    parameters = sum(p.numel() for p in model.net_.module_.parameters())
    long = 30 if primal == "group_model" else parameters  # no more than 600 / 20 features
    assert source.sizes.count(1) == 1 + 3  # sizes, then one number per dual step
    assert 1 <= source.sizes.count(long) <= primal_releases
    judged = 4 if isinstance(constraints, str) else 8  # groups × answers, and × labels where errors are asked for
    assert source.sizes[-1] == judged and set(source.sizes[:-1]) == {1, long}


def test_groups_that_are_read_off_private_rows_are_a_release_and_classes_are_none():
    X, y, groups = biased()
    with pytest.warns(PrivacyLeakWarning, match="'groups' parameter") as caught:
        PFLDClassifier(**{**QUICK, "groups": None}).fit(X, y, sensitive_features=groups)
    leaks = [warning for warning in caught if warning.category is PrivacyLeakWarning]
    assert len(leaks) == 1 and leaks[0].filename == __file__


def test_the_ledger_refuses_before_any_release():
    X, y, groups = biased()
    ledger = PrivacyLedger(epsilon=1.2)
    PFLDClassifier(ledger=ledger, **QUICK).fit(X, y, sensitive_features=groups)
    (entry,) = ledger.entries
    assert entry.protects == "sensitive attribute" and len(entry.releases) == 4
    model = PFLDClassifier(ledger=ledger, **QUICK)
    with pytest.raises(BudgetExceededError):
        model.fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "net_") and len(ledger.entries) == 1


def test_published_sizes_lie_on_the_public_grid():
    """Sizes that are not clamped are multiples of the grid that their noise gives: no float betrays a count."""
    X, y, groups = biased()
    model = PFLDClassifier(**QUICK).fit(X, y, sensitive_features=groups)
    plan = model._plan(model._read(X, y, sensitive_features=groups))
    grid = GaussianMechanism(plan.count_noise).grid
    assert plan.count_noise / 2048 < grid <= plan.count_noise / 1024
    assert np.all(np.fmod(model.noisy_counts_, grid) == 0)
