"""Rows that taught a model get right answers more often than others: bounds on error rates leave room for that."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fairlearn.reductions import AbsoluteLoss, BoundedGroupLoss, SquareLoss
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    FairDPSGDClassifier,
    FairDPSGDRegressor,
    FairnessCalibrator,
    FairPATEClassifier,
    PFLDClassifier,
    PublicData,
    SFPATEClassifier,
    SyntheticDataClassifier,
)
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import RateBound, RateConstraints, RateParity
from skfairdp.gradient import mlp
from skfairdp.lagrangian import LagrangianClassifier
from skfairdp.pate import ConstrainedStudent
from skfairdp.postprocessing import PrivateBarycenter, PrivateThresholds
from skfairdp.privacy import NeighboringRelation, NoiseSource
from tests._tools.inside import Judge, Judgement, owed_to_choosing, width_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
]
ODDS = RateParity("selection_rate_by_label", 0.0)


def table(n, seed, easy=4.0, hard=0.7, share=0.15, noise=11):
    """One feature says something, of a rare group little; the others nothing."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 1 + noise)), (rng.random(n) < share).astype(int)
    y = rng.random(n) < 1 / (1 + np.exp(-np.where(groups == 0, easy, hard) * X[:, 0]))
    return np.column_stack([X, groups]), y.astype(int), groups


def rates(answers, y, groups):
    return np.array([[answers[(groups == a) & (y == label)].mean() for label in (0, 1)] for a in (0, 1)])


FITS = {
    "PF-LD": lambda seed: PFLDClassifier(
        constraints="equalized_odds", epsilon=8.0, groups=[0, 1], random_state=seed, noise_seed=seed
    ),
    "F-LD": lambda seed: LagrangianClassifier(constraints="equalized_odds", random_state=seed),
}


@pytest.mark.parametrize("kind", FITS)
def test_odds_that_a_network_holds_by_heart_on_its_rows_are_not_taken_for_those_of_others(kind):
    """The bound was below the gap on others in most such fits."""
    within, hidden = 0, 0
    for seed in range(2):
        X, y, groups = table(1000, seed)
        model = FITS[kind](seed).fit(X, y, sensitive_features=groups)
        X, y, groups = table(40_000, 100 + seed)
        apart = np.abs(np.diff(rates(model.predict(X), y, groups), axis=0)).max()
        within += apart <= model.gap_bound_
        hidden += apart > model.gap_ + 0.1
        assert model.constraint_holds_ != "yes"
    assert within == 2
    assert hidden >= 1


def wide(n, n_features, seed):
    """Groups, and labels that follow them, of which two features of many say something."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(2, size=n), rng.standard_normal((n, n_features))
    X[:, 0] += 0.8 * (groups - 0.5)
    X[:, 1] += groups
    return X, (rng.random(n) < 1 / (1 + np.exp(0.3 - 1.5 * X[:, 0] - 0.6 * groups))).astype(int), groups


def unlike(n, n_features, seed):
    """Groups whose amounts are far apart, of which no feature says anything: what answers know of them is by heart."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(2, size=n), rng.standard_normal((n, n_features))
    return X, 10 + X.sum(axis=1) / np.sqrt(n_features) + 3 * groups + 0.5 * rng.standard_normal(n), groups


AMOUNTS = {"epsilon": 8.0, "bounds": (0, 20)}
MOVED = {
    "barycenter": lambda **s: PrivateBarycenter(FairDPSGDRegressor(**AMOUNTS, **s), epsilon=8.0, groups=[0, 1], **s),
    "pipeline": lambda **s: PrivateBarycenter(
        make_pipeline(SplineTransformer(n_knots=49), FairDPSGDRegressor(**AMOUNTS, **s)),
        epsilon=8.0,
        groups=[0, 1],
        **s,
    ),
    "ensemble": lambda **s: PrivateBarycenter(
        VotingRegressor([("a", make_pipeline(SplineTransformer(n_knots=49), FairDPSGDRegressor(**AMOUNTS, **s)))]),
        bounds=(0, 20),
        epsilon=8.0,
        groups=[0, 1],
        **s,
    ),
    "regressor": lambda **s: FairDPSGDRegressor(constraints="demographic_parity", groups=[0, 1], **AMOUNTS, **s),
    "thresholds": lambda **s: PrivateThresholds(
        FairDPSGDClassifier(epsilon=8.0, lam=0.0, classes=[0, 1], **s),
        epsilon=8.0,
        groups=[0, 1],
        group_at_prediction=True,
        **s,
    ),
}


@pytest.mark.parametrize("kind", MOVED)
def test_what_answers_know_of_groups_by_heart_is_not_taken_for_what_they_know_of_others(kind):
    """Moved by the group they were alike on the rows that taught them alone: the bound was below the gap in 23 of 24
    fits of thresholds, and in 11 of 13 of barycenters."""
    makes_many = kind in ("pipeline", "ensemble")
    within, hidden, n_features = 0, 0, 2 if makes_many else 100  # which makes 102 of them
    for seed in range(3):
        X, y, groups = unlike(2000, n_features, seed)
        others, _, of_others = unlike(20_000, n_features, 100 + seed)
        model = MOVED[kind](random_state=seed, noise_seed=seed)
        if kind == "ensemble":
            model.estimator.fit(X, y)
        model.fit(X, (y > 11.5).astype(int) if kind == "thresholds" else y, sensitive_features=groups)
        answers = model.predict(others, sensitive_features=of_others)
        apart = ks_2samp(answers[of_others == 0], answers[of_others == 1]).statistic
        within += apart <= model.gap_bound_
        hidden += apart > model.gap_ + 0.04
        assert model.constraint_holds_ != "yes"
    assert within == 3
    assert hidden >= 1 if makes_many else hidden >= 2  # splines say a little of other rows


def uneven(n, n_features, seed):
    """Labels of the first group follow features closely, those of the other hardly: what is right of these is known by
    heart."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(2, size=n), rng.standard_normal((n, n_features))
    signal = np.where(groups == 0, 6.0, 0.3) * X[:, 1:6].sum(axis=1) / np.sqrt(5)
    return X, (rng.random(n) < 1 / (1 + np.exp(-signal))).astype(int), groups


ALIKE = RateParity("accuracy", 0.1)
RIGHT = {
    "student": lambda **s: SFPATEClassifier(epsilon=8.0, constraints=ALIKE, groups=[0, 1], **s),
    "thresholds": lambda **s: PrivateThresholds(
        FairDPSGDClassifier(epsilon=15.0, lam=0.0, classes=[0, 1], **s),
        epsilon=8.0,
        constraints=ALIKE,
        groups=[0, 1],
        group_at_prediction=True,
        **s,
    ),
    "public labels": lambda **s: PrivateThresholds(
        PFLDClassifier(epsilon=4.0, lam_max=0.0, groups=[0, 1], **s),
        epsilon=6.0,
        constraints=ALIKE,
        groups=[0, 1],
        group_at_prediction=True,
        **s,
    ),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_labels_that_are_known_by_heart_are_not_taken_for_accuracy_on_others(kind):
    """Found: in all of 8 fits of students, and of thresholds around PF-LD, the bound was below the gap, and "yes"."""
    n, n_features = {"student": (1500, 30), "thresholds": (1000, 200), "public labels": (1500, 40)}[kind]
    for seed in range(2):
        X, y, groups = uneven(n, n_features, seed)
        model = RIGHT[kind](random_state=seed, noise_seed=seed).fit(X, y, sensitive_features=groups)
        X, y, groups = uneven(40_000, n_features, 100 + seed)
        given = {} if kind == "student" else {"sensitive_features": groups}
        right = model.predict(X, **given) == y
        apart = abs(right[groups == 0].mean() - right[groups == 1].mean())
        assert model.gap_ + 0.03 < apart <= model.gap_bound_ and model.constraint_holds_ != "yes"


def test_answers_that_rows_have_chosen_are_right_more_often_to_these():
    """Where either class is as frequent, the larger one of so many rows is so by chance: .4 of their root more."""
    counts = np.array([[[50.0, 50.0], [100.0, 0.0]], [[60.0, 40.0], [0.0, 0.0]]])
    owed = owed_to_choosing(counts)
    assert owed[0] == pytest.approx((10 * 0.3989 + 10 * 0.0540) / 200, rel=1e-3) and owed[1] < 1e-20


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_errors_that_a_regressor_does_not_make_on_its_rows_are_expected_of_others(loss):
    """Half of an amount is a coin that no feature knows: the bound was below the loss of a group in 35 of 36 fits."""
    limit = BoundedGroupLoss((AbsoluteLoss if loss == "absolute" else SquareLoss)(0, 1), upper_bound=0.25)
    within, hidden = 0, 0

    def coins(n, seed):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 100))
        return X, (0.5 + 0.015 * X.sum(axis=1) + rng.choice([-0.25, 0.25], n)).clip(0, 1), rng.integers(2, size=n)

    for seed in range(3):
        X, y, groups = coins(2000, seed)
        given = {"bounds": (0, 1), "groups": [0, 1], "constraints": limit, "random_state": seed, "noise_seed": seed}
        model = FairDPSGDRegressor(epsilon=8.0, net="mlp", **given).fit(X, y, sensitive_features=groups)
        X, y, groups = coins(20_000, 100 + seed)
        errors = np.abs(model.predict(X) - y) ** (1 if loss == "absolute" else 2)
        largest = max(errors[groups == a].mean() for a in (0, 1))
        within += largest <= model.gap_bound_
        hidden += largest > 1.08 * model.gap_
    assert within == 3
    assert hidden >= 2


@pytest.mark.parametrize("kind", ["DP-SGD", "PF-LD"])
def test_parity_that_a_network_holds_by_heart_on_its_rows_is_not_taken_for_that_of_others(kind):
    """The bound was below the gap on others in half of the fits of the one, and in a third of the other."""
    within, hidden, parity = 0, 0, RateParity("selection_rate", 0.02)
    for seed in range(4):
        given = {"constraints": parity, "groups": [0, 1], "random_state": seed, "noise_seed": seed}
        if kind == "DP-SGD":
            n, n_features, model = 2000, 300, FairDPSGDClassifier(epsilon=5.0, classes=[0, 1], **given)
        else:
            n, n_features, model = 2000, 60, PFLDClassifier(epsilon=10.0, **given)
        X, y, groups = wide(n, n_features, seed)
        model.fit(X, y, sensitive_features=groups)
        X, _, groups = wide(20_000, n_features, 100 + seed)
        answers = model.predict(X)
        apart = abs(answers[groups == 0].mean() - answers[groups == 1].mean())
        within += apart <= model.gap_bound_
        hidden += apart > model.gap_ + 0.02
    assert within == 4
    assert hidden >= 2


@pytest.mark.parametrize(
    ("n", "noise", "least", "passes"),
    [(500, 39, 0.02, None), (1000, 11, -0.02, None), pytest.param(1000, 11, 0.02, 200, marks=pytest.mark.long)],
)
def test_right_answers_that_are_owed_to_having_taught_are_at_most_two_for_each_feature(n, noise, least, passes):
    """Of plain DP-SGD, whatever ε is, and more of more passes: mean over fits, give or take three standard errors."""
    owed = []
    for seed in range(6):
        X, y, _ = table(n, seed, noise=noise)
        settings = {"random_state": seed, "noise_seed": seed} | (
            {} if passes is None else {"net": mlp(max_epochs=passes)}
        )
        model = FairDPSGDClassifier(lam=0, epsilon=(4.0, 30.0)[seed % 2], classes=[0, 1], **settings).fit(X, y)
        others, truth, _ = table(20_000, 100 + seed, noise=noise)
        owed.append(np.mean(model.predict(X) == y) - np.mean(model.predict(others) == truth))
    error = 3 * np.std(owed) / np.sqrt(len(owed))
    assert least < np.mean(owed) <= 2 * max(1, (passes or 20) / 60) * X.shape[1] / n + error


# ---------------------------------------------------------------- of a table


COUNTS = np.array([[[300.0, 100.0], [100.0, 300.0]], [[75.0, 25.0], [25.0, 75.0]]])  # the second group is a fifth


def bound(asked, optimism, counts=COUNTS, apart=0.0):
    plain = Judgement(RateConstraints([asked], [0, 1], [0, 1]), counts)
    return replace(plain, optimism=optimism, apart=apart).gap_bound - plain.gap_bound


WIDE = {
    "FairPATE": lambda bound: FairPATEClassifier(
        epsilon=50.0, student=ConstrainedStudent(bound), classes=[0, 1], groups=[0, 1], random_state=0, noise_seed=0
    ),
    "synthetic rows": lambda bound: SyntheticDataClassifier(
        FairErrors(bound),
        epsilon=50.0,
        classes=[0, 1],
        groups=[0, 1],
        bounds=(-4, 4),
        dtypes=float,
        random_state=0,
        noise_seed=0,
        n_samples=5000,
    ),
}


class FairErrors(LogisticRegression):
    """A logistic regression that says what it is to hold."""

    def __init__(self, constraints=None):
        super().__init__(C=0.01)
        self.constraints = constraints

    def fit(self, X, y, sensitive_features=None):
        return super().fit(X, y)


@pytest.mark.parametrize("kind", WIDE)
def test_errors_that_teachers_or_sums_know_by_heart_are_expected_of_others(kind):
    X, y, groups = table(500, 1, easy=1.0, noise=149)
    bound = RateBound("error_rate", upper=0.34)
    model = WIDE[kind](bound).fit(X, y, sensitive_features=groups)
    X, y, groups = table(40_000, 2, easy=1.0, noise=149)
    errors = model.predict(X) != y
    worst = max(float(errors[groups == group].mean()) for group in (0, 1))
    assert worst - 0.34 <= model.gap_bound_ and (worst <= 0.34 or model.constraint_holds_ != "yes")


def test_public_rows_that_a_penalty_may_know_by_heart_bound_no_gap_of_others():
    X, y, groups = table(600, 0)
    public = PublicData(*(part[:150] for part in (X, groups)))
    how = {"classes": [0, 1], "groups": [0, 1], "random_state": 0, "noise_seed": 0}
    model = FairDPSGDClassifier(lam=1.0, net=mlp((4,), max_epochs=2), parity="public_penalty", **how)
    fair = FairnessCalibrator(model, gamma=0.1, method="threshold")
    with pytest.warns(FairnessWarning, match="rows that may have taught it may differ"):
        fair.fit(X[150:], y[150:], sensitive_features=groups[150:], X_public=public)
    assert fair.gap_bound_ == 1 and fair.constraint_holds_ != "yes"
    others = fair.set_params(estimator=model.set_params(lam=0.0)).fit(
        X[150:], y[150:], sensitive_features=groups[150:], X_public=public
    )
    assert others.gap_bound_ < 1
    tree = FairPATEClassifier(student=DecisionTreeClassifier(random_state=0), **how)
    with pytest.warns(FairnessWarning, match="rows that may have taught it may differ"):
        fair.set_params(estimator=tree).fit(X[150:], y[150:], sensitive_features=groups[150:], X_public=public)
    assert fair.gap_bound_ == 1 and fair.constraint_holds_ != "yes"


@pytest.mark.parametrize("kind", ["PF-LD", "F-LD"])
def test_a_rate_of_a_rare_class_that_is_bounded_by_heart_is_not_expected_of_others(kind):
    """The bound was below the truth in most fits: no network was tried, or those that were were held to nothing."""
    bound, within, missed = RateBound("false_negative_rate", upper=0.3), 0, 0
    for seed in range(2):
        model = clone(FITS[kind](seed)).set_params(constraints=bound)

        def rare(n, seed):
            rng = np.random.default_rng(seed)
            groups, X = (rng.random(n) < 0.4).astype(int), rng.normal(size=(n, 60))
            return X, (0.5 * X[:, 1] + rng.normal(size=n) > 1.45).astype(int), groups

        X, y, groups = rare(8000, seed)
        model.fit(X, y, sensitive_features=groups)
        X, y, groups = rare(40_000, 100 + seed)
        wrong = model.predict(X) != y
        broken = max(wrong[(groups == a) & (y == 1)].mean() for a in (0, 1)) - 0.3
        within += broken <= model.gap_bound_ and not (broken > 0 and model.constraint_holds_ == "yes")
        missed += broken > model.gap_ + 0.05
    assert within == missed == 2


class ManyOfTwo(torch.nn.Module):
    """A thousand fixed waves of two columns, and one layer that learns."""

    def __init__(self, n_features=2, n_classes=2):
        super().__init__()
        made = torch.Generator().manual_seed(0)
        self.register_buffer("turns", 20.0 * torch.randn(n_features, 1000, generator=made))
        self.register_buffer("starts", 6.283 * torch.rand(1000, generator=made))
        self.last = torch.nn.Linear(1000, n_classes)

    def forward(self, X):
        return self.last(0.22 * torch.cos(X @ self.turns + self.starts))


def test_what_a_module_makes_of_few_columns_counts_and_not_these():
    rng = np.random.default_rng(0)
    groups, X = (rng.random(1000) < 0.3).astype(int), rng.normal(size=(1000, 2))
    y = np.where(groups == 1, rng.random(1000) < 0.5, X[:, 0] > 0).astype(int)
    error, given = RateBound("error_rate", upper=0.4), {"classes": [0, 1], "groups": [0, 1], "random_state": 0}
    bounds = [
        FairDPSGDClassifier(epsilon=8.0, constraints=error, net=net, **given).fit(X, y, sensitive_features=groups)
        for net in (ManyOfTwo, mlp())
    ]
    assert bounds[0].gap_bound_ > 0.5 > bounds[1].gap_bound_
    assert width_of(ManyOfTwo()) == width_of(bounds[0].net_.module_) == 1000 and width_of(bounds[1].net_.module_) == 0
    fixed = torch.nn.Linear(2, 300).requires_grad_(False)
    assert width_of(torch.nn.Sequential(fixed, torch.nn.Tanh(), torch.nn.Linear(300, 2))) == 300


def test_the_bound_leaves_room_for_what_one_rate_may_owe_to_having_taught():
    everywhere = np.full((2, 2), 0.03)
    assert bound(ODDS, everywhere) == pytest.approx(0.03)
    assert bound(ODDS, np.array([[0.0, 0.0], [0.0, 0.07]])) == pytest.approx(0.07)
    assert bound(RateParity("error_rate", 0.0), everywhere) == pytest.approx(0.03)
    assert bound(RateBound("false_negative_rate", upper=0.2), everywhere) == pytest.approx(0.03)
    # there it only helps: others have more of these errors
    assert bound(RateBound("false_negative_rate", lower=0.5), everywhere) == 0.0


def test_right_answers_cancel_in_selection_rates_and_groups_learned_by_heart_leave_room_where_labels_are_told_apart():
    parity = RateParity("selection_rate", 0.0)
    optimism = np.full((2, 2), 0.4)
    assert bound(parity, optimism) == pytest.approx(0.0)
    for counts in (COUNTS, COUNTS.sum(axis=1, keepdims=True)):  # beside error rates the same rows are counted by label
        assert bound(parity, optimism, counts, apart=0.1) == pytest.approx(0.1)
    assert bound(RateParity("accuracy", 0.0), optimism, apart=0.1) == pytest.approx(0.4)


def test_all_of_it_may_be_in_the_smallest_group_and_true_classes_share_it():
    judged = Judgement(RateConstraints([ODDS], [0, 1], [0, 1]), COUNTS).after_learning(0.02)
    assert judged.optimism is not None
    np.testing.assert_allclose(judged.optimism, [[0.025, 0.025], [0.1, 0.1]])
    assert (judged.after_learning(5.0).optimism == 1.0).all()


def by_labels(n, seed):
    """Groups whose labels differ, of which one feature says something the other way round; more say nothing."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(2, size=n), rng.standard_normal((n, 40))
    X[:, 0] += 2 * (groups - 0.5)
    return X, (rng.random(n) < 1 / (1 + np.exp(-X[:, 1] + X[:, 0] - 3 * (groups - 0.5)))).astype(int), groups


BY_LABELS = {
    "PF-LD": lambda **s: PFLDClassifier(epsilon=2.0, gamma=0.05, groups=[0, 1], **s),
    "PF-LD, many rows": lambda **s: PFLDClassifier(epsilon=2.0, gamma=0.05, groups=[0, 1], **s),
    "F-LD": lambda random_state, **_: LagrangianClassifier(
        constraints=RateParity("selection_rate", 0.05), random_state=random_state
    ),
    "SF-PATE": lambda **s: SFPATEClassifier(epsilon=2.0, gamma=0.05, groups=[0, 1], **s),
}


@pytest.mark.parametrize("kind", BY_LABELS)
def test_parity_that_labels_known_by_heart_make_up_for_is_not_expected_of_others(kind):
    """The bound was below the gap on others in most such fits, and some said "yes"."""
    within, hidden = 0, 0
    for seed in range(2):
        X, y, groups = by_labels({"PF-LD, many rows": 10_500, "F-LD": 2000}.get(kind, 4000), seed)
        model = BY_LABELS[kind](random_state=seed, noise_seed=seed).fit(X, y, sensitive_features=groups)
        others, _, of_others = by_labels(50_000, 100 + seed)
        answers = model.predict(others)
        apart = abs(answers[of_others == 1].mean() - answers[of_others == 0].mean())
        within += apart <= model.gap_bound_
        hidden += apart > model.gap_ + 0.03
        assert model.constraint_holds_ != "yes"
    assert within == 2
    assert hidden >= 1


def learned(judged, right, wrong, labels=None):
    """After so many rows that are right for having been seen, of a model that is wrong about so many others."""
    wrong = np.atleast_1d(wrong)
    return judged.after_learning(right, right / wrong, wrong, labels)


def test_on_other_rows_answers_follow_labels_by_as_much_less_as_errors_were_spared_on_rows_seen():
    held = RateConstraints([RateParity("selection_rate", 0.0)], [0, 1], [0, 1])
    alike, labels = Judgement(held, np.array([[[500, 500]], [[500, 500]]])), np.array([[0.2, 0.8], [0.6, 0.4]])
    usual = learned(alike, 0.0, 0.5).gap_bound
    # A tenth of all errors is spared: answers are nine tenths of those on others, and a tenth of the labels.
    found = learned(alike, 0.05, 0.5, labels)
    np.testing.assert_allclose(found.on_others.counts[:, 0, 1], [(500 - 80) / 0.9, (500 - 40) / 0.9])
    assert found.gap_bound > usual + 0.04
    assert found.gap == 0
    by_label = np.array([[[100, 100], [400, 400]], [[300, 300], [200, 200]]])
    told_apart = learned(Judgement(held, by_label), 0.05, 0.5)
    np.testing.assert_allclose(told_apart.on_others.counts.sum(axis=1), found.on_others.counts[:, 0])
    # No more answers can be others than errors were spared.
    few_errors = learned(alike, 0.05, 0.06, labels).on_others.counts[:, 0, 1]
    np.testing.assert_allclose(few_errors, [450, 550])
    # Of a group that is harder to predict more may be.
    by_group = alike.after_learning(0.05, np.array([0.0, 0.5]), np.array([0.1, 0.4]), labels).on_others
    np.testing.assert_allclose(by_group.counts[:, 0, 1], [500, 600])


def test_where_nobody_knows_the_labels_of_groups_they_may_differ_by_a_half_either_way():
    held = RateConstraints([RateParity("selection_rate", 0.0)], [0, 1], [0, 1])
    alike, apart = (Judgement(held, np.array([[[n, 1000 - n]], [[1000 - n, n]]])) for n in (500, 400))
    usual = learned(alike, 0.0, 0.5).gap_bound
    assert learned(alike, 0.05, 0.5).gap_bound == pytest.approx(usual + 0.5 / 9)
    assert learned(alike, 0.01, 0.011).gap_bound == pytest.approx(usual + 0.02)
    assert learned(apart, 0.05, 0.5).holds == "no"
    assert learned(apart, 0.3, 0.5).holds == "within the noise"


def test_a_judge_expects_it_where_errors_are_and_no_more_than_epsilon_allows():
    held = RateConstraints([ODDS], [0, 1], [0, 1])
    counts = np.array([[[390, 10], [10, 390]], [[50, 50], [50, 50]]])

    def expected(epsilon, n_features, passes=20):
        relation = NeighboringRelation.REPLACE_ONE
        judge = Judge(held, 1000, epsilon, 1e-5, relation, n_features=n_features, passes=passes)
        return judge.release(counts, NoiseSource(0)).optimism

    few = expected(8.0, 10)
    assert few[1].min() > 5 * few[0].max()
    assert np.average(few, weights=counts.sum(axis=2)) == pytest.approx(2 * 10 / 1000, rel=0.05)
    np.testing.assert_allclose(expected(8.0, 10, passes=180), 3 * few)  # more passes learn more by heart
    assert expected(0.1, 10_000).max() == pytest.approx(np.tanh(0.05), abs=1e-4)
    assert expected(8.0, 0) is None
