"""``constraints=`` and ``gamma=``: short for parts that there are, and the same fits."""

import numpy as np
import pytest
from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient, TruePositiveRateParity
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVC
from sklearn.utils import estimator_html_repr

from skfairdp import (
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    ParetoSearchCV,
    PFLDClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
)
from skfairdp.fairness import RateBound, RateParity
from skfairdp.gradient import PublicPenalty, SignedLoss
from skfairdp.lagrangian import LagrangianClassifier
from skfairdp.pate import ConstrainedStudent, ParityPenaltyStudent, SoftLabelStudent, VoteGate
from skfairdp.privacy import PrivacyLedger
from tests._tools.catalogue import make_rows
from tests._tools.inside import held_by_learner

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = make_rows()
HALF = RateParity("selection_rate", difference_bound=0.5)
SEVERAL = ["equal_opportunity", RateBound("false_negative_rate", upper=0.4)]


def fair_pate(**given):
    return FairPATEClassifier(
        epsilon=100.0, n_teachers=8, classes=[0, 1], groups=[0, 1], random_state=0, noise_seed=0, **given
    )


def mlp(**given):
    from skfairdp.gradient import mlp as of

    return FairDPSGDClassifier(
        classes=[0, 1], groups=[0, 1], net=of((4,), max_epochs=2, batch_size=64), random_state=0, noise_seed=0, **given
    )


def reduced(moment):
    return ExponentiatedGradient(LogisticRegression(), moment, max_iter=25)


def pf_ld(**given):
    return PFLDClassifier(classes=[0, 1], groups=[0, 1], dual_steps=4, random_state=0, noise_seed=0, **given)


def sf_pate(**given):
    return SFPATEClassifier(epsilon=20.0, classes=[0, 1], groups=[0, 1], random_state=0, noise_seed=0, **given)


def synthetic(estimator=None, **given):
    return SyntheticDataClassifier(
        estimator, epsilon=50.0, bounds=(-9, 9), classes=[0, 1], groups=[0, 1], random_state=0, noise_seed=0, **given
    )


def fitted(model):
    public = {"X_public": ROWS.public} if isinstance(model, FairPATEClassifier) else {}
    return model.fit(ROWS.X, ROWS.y, sensitive_features=ROWS.groups, **public)


def same(one, other):
    assert one.privacy_.event == other.privacy_.event
    np.testing.assert_array_equal(one.predict_proba(ROWS.X_test), other.predict_proba(ROWS.X_test))
    np.testing.assert_array_equal(one.predict(ROWS.X_test), other.predict(ROWS.X_test))


# ---- the same fits ---------------------------------------------------------------------------------------------
@pytest.mark.covering
@pytest.mark.parametrize("asked", ["equalized_odds", SEVERAL, RateParity("selection_rate", ratio_bound=0.8)], ids=str)
@pytest.mark.parametrize("voting", ["soft", "confident"])
def test_fair_pate_teaches_a_student_of_the_constraints_and_its_gate_holds_no_rates(asked, voting):
    spelled_out = fair_pate(
        gamma=None, gate=VoteGate(disparity="between"), student=ConstrainedStudent(asked), voting=voting
    )
    door = fitted(fair_pate(constraints=asked, voting=voting))
    assert isinstance(door.student_, ConstrainedStudent)
    same(door, fitted(spelled_out))


@pytest.mark.parametrize("voting", ["soft", "confident"])
def test_fair_pate_holds_labels_and_student_to_one_difference_of_rates(voting):
    student = None if voting == "soft" else ConstrainedStudent(HALF)  # the built-in one learns from released shares
    spelled_out = fair_pate(gamma=0.5, gate=VoteGate(disparity="between"), student=student, voting=voting)
    door, parts = fitted(fair_pate(constraints=HALF, voting=voting)), fitted(spelled_out)
    same(door, parts)
    np.testing.assert_array_equal(door.answered_mask_, parts.answered_mask_)
    assert (door.released_gap_, door.student_gap_) == (parts.released_gap_, parts.student_gap_)


def test_fairlearn_moments_mean_what_they_mean_elsewhere():
    from fairlearn.reductions import DemographicParity

    same(fitted(fair_pate(constraints=DemographicParity(difference_bound=0.5))), fitted(fair_pate(constraints=HALF)))


def test_the_student_of_fair_pate_holds_what_was_asked():
    model = fitted(fair_pate(constraints=RateParity("selection_rate", 0.05), gate=None))
    rates = [model.predict(ROWS.X_public)[np.asarray(ROWS.groups_public) == group].mean() for group in (0, 1)]
    assert abs(rates[0] - rates[1]) <= 0.05 + 1e-9 or model.student_.violation_ > 0


@pytest.mark.parametrize("asked", ["equalized_odds", SEVERAL], ids=str)
def test_dpsgd_takes_the_signed_loss_of_the_constraints(asked):
    same(fitted(mlp(constraints=asked)), fitted(mlp(parity=SignedLoss(constraints=asked))))


def test_gamma_of_dpsgd_is_the_difference_of_two_groups_and_a_signed_loss_keeps_what_else_it_says():
    door = fitted(mlp(gamma=0.1, parity=SignedLoss(dual_steps=7)))
    same(door, fitted(mlp(parity=SignedLoss(constraints=RateParity("selection_rate", 0.1), dual_steps=7))))
    assert door.parity_taken_ == "signed_loss"


@pytest.mark.parametrize("make", [pf_ld, sf_pate])
def test_gamma_is_short_for_a_difference_of_selection_rates_where_only_groups_are_private(make):
    door, spelled_out = fitted(make(gamma=0.1)), fitted(make(constraints=RateParity("selection_rate", 0.1)))
    same(door, spelled_out)
    assert (door.gap_, door.gap_bound_) == (spelled_out.gap_, spelled_out.gap_bound_)
    if make is sf_pate:
        assert door.refit(gamma=0.4).privacy_ is door.privacy_


def test_a_fair_learner_inside_is_judged_by_its_gamma():
    held = held_by_learner(pf_ld(gamma=0.1), [0, 1], [0, 1], "a test")
    assert held.constraints == (RateParity("selection_rate", 0.1),)


class FairKernel(SVC):
    """A fair learner of the user's: its gamma is the width of a kernel, and its slack whatever it is."""

    def __init__(self, constraints=None, gamma="scale", slack=5.0):
        super().__init__(gamma=gamma)
        self.constraints, self.slack = constraints, slack

    def fit(self, X, y, sensitive_features=None):
        return super().fit(X, y)


@pytest.mark.parametrize("gamma", ["scale", 0.5, 5.0])
def test_the_gamma_of_a_kernel_is_no_bound(gamma):
    """It took the place of the learner's own constraints, and "scale" was no number."""
    held = held_by_learner(FairKernel("equalized_odds", gamma), [0, 1], [0, 1], "a test")
    assert held.constraints == (RateParity("selection_rate_by_label"),)
    assert held_by_learner(FairKernel(None, gamma), [0, 1], [0, 1], "a test") is None
    sf_pate(fair_estimator=FairKernel("equalized_odds", gamma)).fit(ROWS.X, ROWS.y, sensitive_features=ROWS.groups)


@pytest.mark.parametrize(
    ("door", "spelled_out"),
    [
        (synthetic(gamma=0.1), LagrangianClassifier(constraints=RateParity("selection_rate", 0.1))),
        (synthetic(constraints=SEVERAL), LagrangianClassifier(constraints=SEVERAL)),
        (synthetic(LogisticRegression(), gamma=0.1), reduced(DemographicParity(difference_bound=0.05))),
        (synthetic(LogisticRegression(), constraints="equalized_odds"), reduced(EqualizedOdds(difference_bound=0.005))),
        (
            synthetic(LogisticRegression(), constraints=TruePositiveRateParity(difference_bound=0.1)),
            reduced(TruePositiveRateParity(difference_bound=0.1)),
        ),
    ],
)
def test_synthetic_rows_teach_a_learner_that_is_held_to_what_was_asked(door, spelled_out):
    """Fairlearn's bound is one of each group to all rows: half of that between two groups."""
    learner, takes_groups = door._learner(2)
    assert takes_groups and type(learner) is type(spelled_out)
    asked, other = learner.constraints, spelled_out.constraints
    assert asked == other or (type(asked), asked.eps, asked.ratio) == (type(other), other.eps, other.ratio)
    fitted(door)
    assert door.gap_ <= door.gap_bound_ <= 1 and door.constraint_holds_ in ("yes", "no", "within the noise")


def test_another_gamma_costs_nothing_where_the_learner_sees_synthetic_rows_alone():
    model = fitted(synthetic(gamma=0.1))
    assert model.refit(gamma=0.5).privacy_ == model.privacy_


# ---- refused, before anything is spent -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (fair_pate, {"gamma": 0.1}, "both 'constraints' and 'gamma'"),
        (fair_pate, {"gate": VoteGate(disparity="overall")}, "both 'constraints' and 'gate__disparity'"),
        (fair_pate, {"student": ParityPenaltyStudent()}, "both 'constraints' and 'student'"),
        (fair_pate, {"student": ConstrainedStudent("equal_opportunity")}, "both 'constraints' and 'student'"),
        (fair_pate, {"gate": "labels"}, "gate='labels'"),
        (fair_pate, {"constraints": "parity"}, "constraints"),
        (fair_pate, {"constraints": []}, "empty"),
        (mlp, {"gamma": 0.1}, "both 'constraints' and 'gamma'"),
        (mlp, {"parity": "public_penalty"}, "enforces no bound"),
        (mlp, {"parity": PublicPenalty()}, "enforces no bound"),
        (mlp, {"parity": SignedLoss(constraints="equal_opportunity")}, "has others"),
        (mlp, {"lam": 0.0}, "lam=0"),
        (mlp, {"public_data": ROWS.public}, "public rows together with 'constraints'"),
        (mlp, {"constraints": "parity"}, "constraints"),
        (mlp, {"gamma": 1.5}, "gamma"),
        (pf_ld, {"gamma": 0.1}, "both 'constraints' and 'gamma'"),
        (pf_ld, {"constraints": "demographic_parity", "gamma": 1.5}, "gamma"),
        (sf_pate, {"gamma": 0.1}, "both 'constraints' and 'gamma'"),
        (synthetic, {"gamma": 0.1}, "both 'constraints' and 'gamma'"),
        (
            synthetic,
            {"estimator": LogisticRegression(), "constraints": SEVERAL},
            "one constraint, a difference of one of these rates",
        ),
        (synthetic, {"estimator": LagrangianClassifier()}, "'constraints' and an 'estimator' that takes groups"),
        (synthetic, {"constraints": "parity"}, "constraints"),
        (
            sf_pate,
            {"constraints": None, "gamma": 0.1, "fair_estimator": LagrangianClassifier()},
            "'gamma' and a 'fair_",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_before_anything_is_spent(make, given, message):
    model = make(**{"constraints": "equalized_odds", **given})
    model.set_params(noise_seed=None, ledger=PrivacyLedger())
    with pytest.raises(ValueError, match=message):
        fitted(model)
    assert not model.ledger.entries


def test_a_signed_loss_of_the_same_constraints_is_no_contradiction():
    asked = RateParity("selection_rate", 0.1)
    same(fitted(mlp(constraints=asked, parity=SignedLoss(constraints=asked))), fitted(mlp(constraints=asked)))


# ---- parameters ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [fair_pate, mlp])
@pytest.mark.parametrize("asked", ["equalized_odds", HALF, SEVERAL], ids=str)
def test_parameters_clones_and_pages(make, asked):
    model = make(constraints=asked)
    assert clone(model).get_params()["constraints"] == asked
    assert "constraints" in repr(model)
    assert "constraints" in estimator_html_repr(model)


def test_grids_go_over_constraints():
    model = fair_pate(public_data=ROWS.public).set_params(noise_seed=None)
    search = GridSearchCV(model, {"constraints": [None, "demographic_parity", HALF]}, cv=KFold(2), error_score="raise")
    assert len(search.fit(ROWS.X, ROWS.y).cv_results_["params"]) == 3


def test_a_search_of_ours_pays_for_votes_without_groups_apart_from_those_with_them_and_shows_no_gamma():
    from tests._tools.catalogue import with_all_groups

    search = ParetoSearchCV(
        fair_pate().set_params(noise_seed=None), {"constraints": ["demographic_parity", "equalized_odds", SEVERAL]},
        cv=2, score_epsilon=4.0, error_score="raise",
    )  # fmt: skip
    table = with_all_groups(search, ROWS).pareto_table_
    assert table["gamma"].isna().all()
    assert len(search.cv_results_["params"]) == 3


def test_refit_asks_for_other_constraints_where_votes_know_the_groups():
    by_group = fitted(fair_pate(constraints="equalized_odds"))
    other = by_group.refit(constraints="equal_opportunity")
    assert other.privacy_ is by_group.privacy_
    assert other.student_.constraints == "equal_opportunity"
    with pytest.raises(ValueError, match="constraints"):
        fitted(fair_pate(student=SoftLabelStudent())).refit(constraints="equalized_odds")


def test_a_calibrator_does_not_hand_public_rows_to_a_signed_loss():
    model = FairnessCalibrator(mlp(gamma=0.2).set_params(noise_seed=None), gamma=0.3)
    model.fit(ROWS.X, ROWS.y, sensitive_features=ROWS.groups, X_public=ROWS.public)
    assert model.estimator_.parity_taken_ == "signed_loss"


def test_a_gate_of_votes_counts_the_labels_it_admits():
    model = fitted(
        fair_pate(constraints=RateParity("selection_rate", 0.02), gate=VoteGate(min_count=1), voting="gnmax")
    )
    assert model.answered_mask_.mean() < 1
