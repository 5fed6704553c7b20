"""PFLDClassifier: constraints are met, alone and together, and multipliers go where they should."""

import functools
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from fairlearn.reductions import DemographicParity
from sklearn.base import clone

from skfairdp import SFPATEClassifier
from skfairdp._utils import child_seeds, public_generator
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.fairness import RateBound, RateParity
from skfairdp.lagrangian import GroupModel, LagrangianClassifier, NoisyGradients, PFLDClassifier, mlp
from skfairdp.privacy import NonPrivateDpEvent
from tests._tools.lagrangian import NOTIONS, biased, gap, quick
from tests._tools.sources import recording_noise


def test_without_epsilon_the_gap_of_the_training_rows_closes():
    X, y, groups = biased(3000)
    settings = {**quick((8,), max_epochs=30, lr=5e-3), "dual_steps": 60}
    free = PFLDClassifier(epsilon=None, lam_max=0.0, **settings).fit(X, y, sensitive_features=groups)
    fair = PFLDClassifier(epsilon=None, **settings).fit(X, y, sensitive_features=groups)
    assert gap(free.predict(X), groups) > 0.2
    assert gap(fair.predict(X), groups) < 0.01
    assert fair.score(X, y) > 0.7
    assert fair.privacy_.epsilon == math.inf and isinstance(fair.privacy_.event, NonPrivateDpEvent)


class OfSomeRows(GroupModel):
    """As of a table of more than 131,072 rows."""

    MOST_ROWS = 1000


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [None, 8.0])
def test_what_some_rows_say_of_their_groups_closes_the_gap_of_all(epsilon):
    X, y, groups = biased(3000)
    settings = {**quick((8,), max_epochs=30, lr=5e-3), "dual_steps": 60, "groups": sorted(set(groups))}
    fair = PFLDClassifier(epsilon=epsilon, primal=OfSomeRows(), **settings).fit(X, y, sensitive_features=groups)
    assert gap(fair.predict(X), groups) < 0.06  # chance between a third and all of the rows
    assert fair.score(X, y) > 0.7
    sizes = [np.mean(groups == name) * 3000 for name in fair.groups_]
    np.testing.assert_allclose(fair.noisy_counts_.ravel(), sizes, atol=0 if epsilon is None else 40)  # of all rows


def test_groups_of_rows_that_are_not_asked_reach_nothing_but_the_sizes():
    X, y, groups = biased(1500)
    settings = {**quick((4,), max_epochs=3), "primal": OfSomeRows(16), "groups": sorted(set(groups)), "random_state": 0}
    asked = np.zeros(1500, dtype=bool)
    seed = int(child_seeds(public_generator(0), 3)[2])
    asked[OfSomeRows()._chosen(1500, seed)] = True
    seen = []
    for others in (groups, np.where(asked, groups, groups[0])):
        with recording_noise(0) as record:
            PFLDClassifier(**settings).fit(X, y, sensitive_features=others)
        seen.append([np.asarray(release.output) for release in record.releases])
    sizes, moments = zip(*(outputs[:2] for outputs in seen), strict=True)
    assert asked.sum() == 1000 and np.abs(sizes[0] - sizes[1]).max() > 100
    np.testing.assert_array_equal(*moments)


def of_unequal_rates(n):
    """A label that is likelier in one group, and features that tell the group: its members are believed more often."""
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(n) < 0.4, "f", "m")
    X = rng.normal(size=(n, 2)) * [0.3, 1.0] + np.outer(groups == "m", [1.0, 0.0])
    return X, (X[:, 1] + 1.5 * (groups == "m") + rng.normal(size=n) > 0.8).astype(int), groups


@functools.cache
def unheld(primal):
    """Rows, settings, and the network that no multiplier holds: many tests compare theirs with it."""
    rows = X, y, groups = of_unequal_rates(3000)
    settings = {**quick((8,), max_epochs=30, lr=5e-3), "dual_steps": 60, "primal": primal, "epsilon": None}
    return rows, settings, PFLDClassifier(lam_max=0.0, **settings).fit(X, y, sensitive_features=groups)


both_primals = pytest.mark.parametrize("primal", ["group_model", NoisyGradients()])


@pytest.mark.few(1)
@both_primals
@pytest.mark.parametrize(("notion", "true_class"), [("equal_opportunity", 1), ("false_positive_rate_parity", 0)])
def test_a_rate_of_one_true_class_is_made_equal_by_multipliers_of_its_own_rows(notion, true_class, primal):
    (X, y, groups), settings, free = unheld(primal)
    fair = PFLDClassifier(constraints=notion, **settings).fit(X, y, sensitive_features=groups)
    here = y == true_class
    assert gap(free.predict(X)[here], groups[here]) > 0.1 > 0.03 > gap(fair.predict(X)[here], groups[here])
    assert np.abs(fair.multipliers_[:, true_class]).max() > 0 and not fair.multipliers_[:, 1 - true_class].any()


@pytest.mark.slow
@pytest.mark.parametrize("make", [LagrangianClassifier, partial(SFPATEClassifier, epsilon=8.0, groups=["f", "m"])])
def test_those_beside_it_hold_a_rate_of_one_true_class_as_well(make):
    X, y, groups = of_unequal_rates(6000)
    here = y == 1
    plain, fair = (
        make(constraints=notion, random_state=0).fit(X, y, sensitive_features=groups)
        for notion in ("demographic_parity", "true_positive_rate_parity")
    )
    assert gap(fair.predict(X)[here], groups[here]) < 0.05 and fair.score(X, y) > plain.score(X, y)


def of_groups(rate, predicted, y, groups):
    """The rate of each group, by definition."""
    of = {
        "selection_rate": lambda p, t: p.mean(),
        "false_negative_rate": lambda p, t: 1 - p[t == 1].mean(),
        "error_rate": lambda p, t: (p != t).mean(),
    }[rate]
    return np.array([of(predicted[groups == a], y[groups == a]) for a in np.unique(groups)])


BEYOND = {
    "a difference": (RateParity("selection_rate", 0.1), lambda rates: np.ptp(rates) - 0.1),
    "four fifths": (RateParity("selection_rate", ratio_bound=0.8), lambda rates: 0.8 * rates.max() - rates.min()),
    "a ratio of what is missed": (
        RateParity("false_negative_rate", ratio_bound=0.7), lambda rates: 0.7 * rates.max() - rates.min()
    ),
    "fairlearn's": (DemographicParity(difference_bound=0.05), lambda rates: np.ptp(rates) - 0.05),
    "few missed": (RateBound("false_negative_rate", upper=0.15), lambda rates: rates.max() - 0.15),
    "few selected": (RateBound("selection_rate", upper=0.4), lambda rates: rates.max() - 0.4),
    "few selected of one": (RateBound("selection_rate", upper=0.4, groups=["m"]), lambda rates: rates[1] - 0.4),
    "few missed of one": (RateBound("false_negative_rate", upper=0.15, groups=["f"]), lambda rates: rates[0] - 0.15),
}  # fmt: skip


@pytest.mark.few(4)
@both_primals
@pytest.mark.parametrize(("asked", "beyond"), BEYOND.values(), ids=BEYOND)
def test_a_bound_is_held_on_the_training_rows_and_no_more_than_that_is_given_up(asked, beyond, primal):
    (X, y, groups), settings, free = unheld(primal)
    rate = getattr(asked, "rate", "selection_rate")
    fair = PFLDClassifier(constraints=asked, **settings).fit(X, y, sensitive_features=groups)
    assert beyond(of_groups(rate, free.predict(X), y, groups)) > 0.07
    assert -0.03 < beyond(of_groups(rate, fair.predict(X), y, groups)) < 0.02
    assert np.abs(fair.multipliers_).max() > 0 and fair.violation_ < 0.02


@pytest.mark.slow
@both_primals
def test_a_bound_of_one_group_pulls_no_other_and_one_of_all_rows_pulls_all_alike(primal):
    (X, y, groups), settings, free = unheld(primal)
    before = of_groups("selection_rate", free.predict(X), y, groups)
    least = round(before.min() - 0.05, 2)
    of_one = PFLDClassifier(constraints=RateBound("selection_rate", upper=least, groups=["f"]), **settings)
    f, m = of_one.fit(X, y, sensitive_features=groups).multipliers_
    of_f, of_m = of_groups("selection_rate", of_one.predict(X), y, groups)
    assert f.max() > 0 and not m.any() and of_f < least + 0.02 and of_m > least + 0.2
    of_all = PFLDClassifier(constraints=RateBound("selection_rate", upper=0.3, groups="overall"), **settings)
    f, m = of_all.fit(X, y, sensitive_features=groups).multipliers_
    np.testing.assert_array_equal(f, m)
    assert m.max() > 0 and free.predict(X).mean() > 0.37
    assert 0.27 < of_all.predict(X).mean() < 0.32 and of_all.violation_ < 0.02 and of_all.violation_noise_ == 0


def test_a_bound_of_all_rows_follows_no_private_group():
    """No release says anything of it: whoever is in which group, the fit is the same."""
    X, y, groups = of_unequal_rates(600)
    asked = RateBound("selection_rate", upper=0.2, groups="overall")

    def fitted(private):
        model = PFLDClassifier(constraints=asked, noise_seed=0, **quick((4,), max_epochs=10))
        with pytest.warns(PrivacyLeakWarning, match="'noise_seed'"):
            model.fit(X, y, sensitive_features=private)
        return model.predict_proba(X)

    np.testing.assert_array_equal(fitted(groups), fitted(groups[::-1]))


@pytest.mark.slow
def test_few_errors_of_all_rows_and_equal_ones_are_held_together():
    X, y, groups = of_unequal_rates(3000)
    settings = {**quick((8,), max_epochs=30, lr=5e-3), "dual_steps": 60, "epsilon": None}
    both = [RateParity("error_rate", 0.02), RateBound("error_rate", upper=0.3, groups="overall")]
    fair = PFLDClassifier(constraints=both, **settings).fit(X, y, sensitive_features=groups)
    errors = fair.predict(X) != y
    assert errors.mean() < 0.31 and gap(errors, groups) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [LagrangianClassifier, partial(PFLDClassifier, epsilon=None), partial(SFPATEClassifier, epsilon=8.0)],
    ids=["F-LD", "PF-LD", "SF-PATE"],
)
def test_names_of_groups_and_classes_are_those_of_the_rows(make):
    X, y, groups = of_unequal_rates(3000)
    asked = RateBound("selection_rate", lower=0.75, groups=[("m", "x")], of_class="no")
    model = make(constraints=asked, random_state=0)
    if "groups" in model.get_params():
        model.set_params(groups=[("m", "x"), ("f", "x")])
    frame = pd.DataFrame({"of": groups, "from": "x"})
    predicted = model.fit(X, np.where(y == 1, "yes", "no"), sensitive_features=frame).predict(X)
    of_m = np.mean(predicted[groups == "m"] == "no")
    assert 0.7 < of_m < 0.85
    with pytest.raises(ValueError, match=r"name 'd' in 'groups', which is none of"):
        clone(model).set_params(constraints=RateBound("error_rate", upper=0.3, groups=["d"])).fit(
            X, y, sensitive_features=frame
        )


OUT = torch.nn.Linear(8, 2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "make",
    [
        LagrangianClassifier,
        partial(LagrangianClassifier, net=torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.GELU(), OUT)),
        partial(PFLDClassifier, epsilon=2.0, groups=["f", "m"]),
        partial(SFPATEClassifier, epsilon=8.0, groups=["f", "m"]),
    ],
    ids=["F-LD", "F-LD of a module", "PF-LD", "SF-PATE"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["four fifths", "few selected", "few selected of one"])
def test_all_who_follow_multipliers_hold_a_bound(make, kind):
    X, y, groups = of_unequal_rates(6000)
    asked, beyond = BEYOND[kind]
    fair = make(constraints=asked, random_state=0).fit(X, y, sensitive_features=groups)
    assert beyond(of_groups(asked.rate, fair.predict(X), y, groups)) < 0.04


def test_a_bound_that_holds_by_itself_changes_nothing():
    X, y, groups = of_unequal_rates(1500)
    settings = {**quick(), "epsilon": None}
    free = PFLDClassifier(lam_max=0.0, **settings).fit(X, y, sensitive_features=groups)
    wide = PFLDClassifier(constraints=RateParity("selection_rate", 0.9), **settings).fit(
        X, y, sensitive_features=groups
    )
    np.testing.assert_array_equal(wide.predict_proba(X), free.predict_proba(X))
    assert not wide.multipliers_.any() and wide.violation_ == 0


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["false_positive_rate_parity", RateParity("false_positive_rate", 0.05)])
def test_false_positives_of_every_class_are_made_alike_where_there_are_three(notion):
    X, y, groups = of_unequal_rates(3000)
    y = y + (X[:, 1] > 1.0)
    settings = {**quick((8,), max_epochs=30, lr=5e-3), "dual_steps": 60, "epsilon": None}

    def worst(model):
        p = model.fit(X, y, sensitive_features=groups).predict(X)
        return max(gap(p[y != k] == k, groups[y != k]) for k in range(3))

    free, fair = PFLDClassifier(lam_max=0.0, **settings), PFLDClassifier(constraints=notion, **settings)
    assert worst(free) > 0.15 > 0.08 > worst(fair)


@pytest.mark.slow
def test_notions_that_contradict_each_other_do_not_ruin_the_network():
    """Base rates differ by .3: no classifier worth having has both."""
    X, y, groups = make_biased_classification(4000, disparity=0.3, random_state=0)
    settings = {"epsilon": None, "groups": [0, 1], "net": mlp(max_epochs=15, batch_size=64), "random_state": 0}
    free = PFLDClassifier(lam_max=0.0, **settings).fit(X, y, sensitive_features=groups)
    both = PFLDClassifier(constraints=NOTIONS[:2], **settings).fit(X, y, sensitive_features=groups)
    assert gap(both.predict(X), groups) < gap(free.predict(X), groups)
    assert both.score(X, y) > free.score(X, y) - 0.08


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3])
def test_where_nothing_is_violated_the_noise_moves_multipliers_by_half_at_most(m):
    """Labels and features say nothing of the group; ε is small and the rows few, so that full steps would be noise."""
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(1500, 2)), np.arange(1500) % 2, np.arange(1500) // 2 % m
    settings = {**quick(max_epochs=1, lr=1e-3), "groups": list(range(m)), "dual_steps": 40, "lam_max": 50.0}

    def ends(step):
        found = []
        for seed in range(4):
            model = PFLDClassifier(epsilon=0.3, dual_step=step, noise_seed=seed, **settings)
            with pytest.warns(PrivacyLeakWarning, match="'noise_seed'"):
                model.fit(X, y, sensitive_features=groups)
            found.append(model.multipliers_.ravel())
        return np.sqrt(np.mean(np.square(found)))

    assert ends(None) < 0.5
    assert ends(10.0) > 1.0


@pytest.mark.few(1)
@pytest.mark.parametrize("primal", ["group_model", "gradient"])
def test_private_multipliers_close_most_of_the_gap(primal):
    X, y, groups = biased(3000)
    settings = {**quick((8,), max_epochs=30, lr=5e-3), "dual_steps": 40, "noise_seed": 0}
    with pytest.warns(PrivacyLeakWarning, match="'noise_seed'"):
        model = PFLDClassifier(epsilon=2.0, primal=primal, **settings).fit(X, y, sensitive_features=groups)
    assert gap(model.predict(X), groups) < 0.05
    assert model.score(X, y) > 0.65  # without privacy .74; a constant has .53


def test_multipliers_of_a_convex_problem_are_those_of_the_constrained_optimum():
    """Logistic regression on one binary feature: the optimum under parity of probabilities has a closed form.

    With p0, p1 the prediction at x = 0 and 1, the mean of h in group a is p0 + (p1 - p0) P(x = 1 | a): parity means
    p0 = p1 = the share p of y. There the slope is stationary where Σ λ_a d_a = Cov(x, y) / (p (1 - p)), with
    d_a = P(x = 1 | a) - P(x = 1).
    """
    cells = [
        (0, 0, 0, 60),
        (0, 1, 0, 20),
        (1, 0, 0, 40),
        (1, 1, 0, 80),  # x, y, group, rows
        (0, 0, 1, 30),
        (0, 1, 1, 30),
        (1, 0, 1, 60),
        (1, 1, 1, 180),
    ]
    x, y, groups = (np.repeat([cell[k] for cell in cells], [cell[3] for cell in cells]) for k in range(3))
    model = PFLDClassifier(
        epsilon=None,
        net=mlp((), max_epochs=1500, batch_size=len(x), lr=0.02),
        violations="probabilities",
        dual_step=2.0,
        dual_steps=750,
        groups=[0, 1],
        random_state=0,
    ).fit(x[:, None], y, sensitive_features=groups)
    share = y.mean()
    d = [x[groups == a].mean() - x.mean() for a in (0, 1)]
    # d/dw of the loss at p = share is -Cov(x, y); of the mean of h in group a beyond all, p (1 - p) d_a
    expected = np.cov(x, y, bias=True)[0, 1] / (share * (1 - share))
    found = sum(lam * part for lam, part in zip(model.multipliers_.ravel(), d, strict=True))
    np.testing.assert_allclose(model.predict_proba([[0], [1]])[:, 1], share, atol=2e-3)
    assert found == pytest.approx(expected, abs=1e-2)
