"""The PATE fairness analysis and SF-PATE's bounds: theorems as tests, on data where the truth is known."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

from skfairdp import FairPATEClassifier, PATEClassifier, SFPATEClassifier, datasets
from skfairdp.papers import ExcessiveRiskDisplay, FlippingProbabilityDisplay, PATEFairnessAnalysis, sfpate_bounds
from skfairdp.papers._pate_analysis import _Students
from skfairdp.pate import GNMaxVoting
from skfairdp.preprocessing import make_tabular_encoder
from skfairdp.privacy import RandomizedResponse
from tests._tools.inside import fit_fair_teachers, position_partition, vote_histogram


@pytest.fixture(scope="module")
def data():
    X, y, groups = datasets.make_biased_classification(
        2400, group_proportions=(0.3, 0.7), disparity=0.3, random_state=0
    )
    return np.asarray(X), np.asarray(y), np.asarray(groups)


def analyse(data, *, alpha=0.1, n_teachers=20, sigma=10.0, repeats=20, n_public=400, **more):
    X, y, groups = data
    model = PATEClassifier(n_teachers=n_teachers, voting=GNMaxVoting(sigma=sigma), random_state=0)
    return PATEFairnessAnalysis(model, repeats=repeats, alpha=alpha, noise_seed=0).analyse(
        X[n_public:], y[n_public:], X[:n_public], groups[:n_public], **more
    )


# ---- the analysis --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("alpha", "n_teachers", "sigma"), [(0.01, 20, 10.0), (0.1, 50, 5.0), (1.0, 10, 40.0)])
def test_the_bound_of_corollary_1_lies_above_the_measured_sensitivity(data, alpha, n_teachers, sigma):
    found = analyse(data, alpha=alpha, n_teachers=n_teachers, sigma=sigma)
    assert 0 < found.hard.sensitivity <= found.sensitivity_bound
    assert found.hard.sensitivity_squared <= found.sensitivity_squared_bound
    assert np.all(found.hard.excessive_risk <= found.risk_bound)
    assert found.private is False and "never publish" in repr(found)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "fetch", [datasets.fetch_adult, datasets.fetch_bank, datasets.fetch_credit, datasets.fetch_parkinsons]
)
def test_the_bound_holds_on_real_data(fetch):
    if datasets.data_file(fetch.__name__.removeprefix("fetch_")) is None:
        pytest.skip("SKFAIRDP_DATA names no folder with this data set")
    table = fetch()
    split = datasets.train_private_public_test_split(
        table.data, table.target, table.sensitive_features, sizes=(0.2, 0.02, 0.1), random_state=0
    ).encode(make_tabular_encoder())
    public = np.asarray(split.X_public, dtype=float)
    found = PATEFairnessAnalysis(
        PATEClassifier(n_teachers=20, voting=GNMaxVoting(sigma=20.0), random_state=0), repeats=6
    ).analyse(split.X, split.y, public, split.public.sensitive_features)
    assert 0 < found.hard.sensitivity <= found.sensitivity_bound
    assert np.all(found.hard.excessive_risk <= found.risk_bound)


def test_corollary_2_needs_the_probability_and_not_its_square():
    """A single row that flips with probability p: E‖θ* - θ̃‖² is p times a square, above what p² would allow."""
    rows, clean, flipped = np.array([[1.0]]), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    p, alpha = 0.02, 50.0
    students = _Students(rows, clean, alpha)
    moved = p * float(np.square(students.fit(flipped) - students.theta).sum())
    assert p**2 / alpha**2 < moved <= p / alpha**2


def test_the_student_is_the_minimum_of_its_loss(data):
    X, y, _ = (part[:300] for part in data)
    rows = np.column_stack([X, np.ones(300)])
    students = _Students(rows, np.eye(2)[y], 0.05)
    sklearns = LogisticRegression(C=1 / (2 * 0.05 * 300), fit_intercept=False, tol=1e-10, max_iter=5000).fit(rows, y)
    np.testing.assert_allclose(students.theta.ravel(), sklearns.coef_.ravel(), atol=1e-5)
    three = np.eye(3)[np.arange(300) % 3]
    many = _Students(rows, three, 0.05)
    sklearns = LogisticRegression(C=1 / (2 * 0.05 * 300), fit_intercept=False, tol=1e-10, max_iter=5000)
    expected = sklearns.fit(rows, np.arange(300) % 3).predict_proba(rows)
    np.testing.assert_allclose(many.probabilities, expected, atol=1e-4)


@pytest.mark.slow
def test_flips_of_unanimous_votes_follow_theorem_2(data):
    """Teachers that all answer the same: the Monte-Carlo share is 1 - Φ(k / (√2 σ))."""
    X, y, groups = data
    easy = np.where(X[:, 0] > 0, 1, 0)
    found = PATEFairnessAnalysis(
        PATEClassifier(n_teachers=10, voting=GNMaxVoting(sigma=6.0), random_state=0), repeats=200, noise_seed=1
    ).analyse(np.sign(X[400:]) * 10, easy[400:], np.sign(X[:60]) * 10, groups[:60])
    expected = 1 - ndtr(10 / (math.sqrt(2) * 6.0))
    assert found.unanimous_flipping_probability == pytest.approx(expected)
    agreed = found.closeness < np.median(found.closeness) + 1e-9
    share = found.flipping_probability[agreed].mean()
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / (200 * agreed.sum())))
    del y


def test_directions_of_the_paper(data):
    """Sensitivity and risk gap fall with λ and with k; rows near the boundary flip; soft labels are calmer."""
    by_alpha = [analyse(data, alpha=alpha) for alpha in (0.01, 0.1, 1.0)]
    assert by_alpha[0].hard.sensitivity > by_alpha[1].hard.sensitivity > by_alpha[2].hard.sensitivity
    assert by_alpha[0].hard.risk_gap > by_alpha[2].hard.risk_gap
    by_k = [analyse(data, n_teachers=k) for k in (10, 40, 160)]
    assert by_k[0].hard.sensitivity > by_k[1].hard.sensitivity > by_k[2].hard.sensitivity
    flips = [found.flipping_probability.mean() for found in by_k]
    assert flips[0] > flips[1] > flips[2]
    found = by_alpha[1]
    assert found.correlations["closeness", "flipping probability"] > 0.2
    assert found.soft.sensitivity < found.hard.sensitivity


def test_figures_by_group_are_means_over_rows_and_accuracies_need_labels(data):
    X, y, groups = data
    found = analyse(data, y_public=y[:400])
    for group in (0, 1):
        mean = found.hard.excessive_risk[groups[:400] == group].mean()
        assert found.hard.excessive_risk_by_group[group] == pytest.approx(mean)
    assert found.hard.risk_gap == pytest.approx(abs(np.diff(list(found.hard.excessive_risk_by_group.values())))[0])
    assert 0.5 < found.hard.accuracy <= 1 and 0.5 < found.soft.accuracy <= 1
    assert analyse(data).hard.accuracy is None
    again = analyse(data, y_public=y[:400])
    np.testing.assert_array_equal(again.flipping_probability, found.flipping_probability)
    del X


def test_the_noise_is_calibrated_where_none_is_given_and_three_classes_work(data):
    X, y, groups = data
    y = y + 2 * (X[:, 1] > 1)
    y = np.minimum(y, 2)
    model = FairPATEClassifier(n_teachers=15, epsilon=2.0, random_state=0)
    found = PATEFairnessAnalysis(model, repeats=4).analyse(X[300:], y[300:], X[:300], groups[:300])
    assert found.sigma == pytest.approx(math.sqrt(600) / 0.5, rel=0.1)  # GDP of about 1/2 at ε = 2
    assert 0 < found.hard.sensitivity <= found.sensitivity_bound


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": LogisticRegression()}, "'estimator'"),
        ({"repeats": 1}, "'repeats'"),
        ({"alpha": 0.0}, "'alpha'"),
        ({"alpha": "much"}, "'alpha'"),
    ],
)
def test_what_the_analysis_refuses(data, parameters, message):
    X, y, groups = data
    given = {"estimator": PATEClassifier(n_teachers=5), **parameters}
    with pytest.raises(ValueError, match=message):
        PATEFairnessAnalysis(**given).analyse(X[100:], y[100:], X[:100], groups[:100])


def test_rows_that_do_not_fit(data):
    X, y, groups = data
    analysis = PATEFairnessAnalysis(PATEClassifier(n_teachers=5))
    with pytest.raises(ValueError, match="two or more classes"):
        analysis.analyse(X[100:], np.zeros(len(X) - 100), X[:100], groups[:100])
    with pytest.raises(ValueError, match="one for each private row"):
        analysis.analyse(X[100:], np.column_stack([y, y])[100:], X[:100], groups[:100])
    with pytest.raises(ValueError, match="columns of the private ones"):
        analysis.analyse(X[100:], y[100:], X[:100, :2], groups[:100])
    with pytest.raises(ValueError, match="inconsistent length"):
        analysis.analyse(X[100:], y[100:], X[:100], groups[:99])


def test_displays_show_the_figures(data):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    found = analyse(data, repeats=3)
    risk = ExcessiveRiskDisplay.from_analysis(found)
    heights = sorted(bar.get_height() for bar in risk.ax_.patches)
    expected = [*found.hard.excessive_risk_by_group.values(), *found.soft.excessive_risk_by_group.values()]
    assert heights == pytest.approx(sorted(expected))
    assert "not private" in risk.ax_.get_title()
    _, ax = plt.subplots()
    flips = FlippingProbabilityDisplay.from_analysis(found, ax=ax)
    assert flips.ax_ is ax and flips.figure_ is ax.figure and "not private" in ax.get_title()
    assert sum(len(points.get_offsets()) for points in ax.collections) == 400
    plt.close("all")


# ---- SF-PATE's bounds ----------------------------------------------------------------------------------------
def joint(seed, m=3, n=4000, noise=0.08):
    """A joint law of (x, y), groups and released groups, as a table of weights with η known."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(m, 2.0), size=n)
    released = np.clip(truth + rng.uniform(-noise, noise, size=truth.shape), 1e-3, None)
    released /= released.sum(axis=1, keepdims=True)
    h = rng.random(n) * truth[:, 0] + 0.3 * rng.random(n)  # a fairness function that leans to the first group
    return truth, released, np.clip(h, 0, 1)


def unfairness(h, probabilities):
    means = (probabilities * h[:, None]).sum(axis=0) / probabilities.sum(axis=0)
    return np.abs(means - h.mean()).max()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
def test_theorem_1_holds_where_eta_is_known(seed, noise):
    truth, released, h = joint(seed, noise=noise)
    found = sfpate_bounds(truth, released, alpha=unfairness(h, released))
    assert found.eta == pytest.approx(np.abs(truth - released).max())
    assert unfairness(h, truth) <= found.theorem_1 + 1e-12
    assert found.theorem_1 <= found.theorem_1_shares + 1e-12
    assert found.private is False
    if noise == 0.0:
        assert found.theorem_1 == pytest.approx(unfairness(h, truth), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_corollary_1_is_theorem_1_of_the_channel(epsilon):
    truth, _, h = joint(0)
    mechanism = RandomizedResponse(epsilon, 3)
    channel = np.full((3, 3), mechanism.lie) + (mechanism.truth - mechanism.lie) * np.eye(3)
    released = truth @ channel
    found = sfpate_bounds(truth, released, alpha=unfairness(h, released), epsilon=epsilon)
    assert found.eta <= 2 / (math.exp(epsilon) + 2) + 1e-9
    assert unfairness(h, truth) <= found.theorem_1 <= found.corollary_1 + 1e-9


def test_theorem_2_bounds_the_unfairness_of_the_vote(data):
    """Votes of fair teachers on rows whose groups are known: the expected unfairness of the noisy winner."""
    X, y, groups = data
    learner = SFPATEClassifier(variant="teacher")._built_in()
    parts = position_partition(1200, 7, random_state=0)
    teachers = fit_fair_teachers(
        learner, X[:1200], y[:1200], groups[:1200], parts, n_teachers=7, n_classes=2, n_groups=2, random_state=0
    )
    votes, truth = vote_histogram(teachers.predict(X[1200:]), 2), np.eye(2)[groups[1200:]]
    sigma = 4.0
    winner = ndtr((votes[:, 1] - votes[:, 0]) / (math.sqrt(2) * sigma))
    errors = np.where(y[1200:] == 1, 1 - winner, winner)
    parity = sfpate_bounds(truth, truth, votes=votes)
    accuracy = sfpate_bounds(truth, truth, votes=votes, y=y[1200:])
    assert unfairness(winner, truth) <= parity.theorem_2 <= 1
    assert unfairness(errors, truth) <= accuracy.theorem_2 <= 1
    assert parity.theorem_2 <= accuracy.theorem_2
    same = sfpate_bounds(np.full((10, 2), 0.5), np.full((10, 2), 0.5), votes=np.arange(20).reshape(10, 2))
    assert same.theorem_2 == 0.0  # votes independent of the group: perfectly fair


@pytest.mark.slow
def test_released_groups_of_sfpate_satisfy_the_bound():
    """End to end on a law that is known: groups released by the ensemble, a model that is fair for them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    share = ndtr(1.5 * X[:, 0])
    groups = (rng.random(1500) < share).astype(int)
    y = (X[:, 1] + 0.5 * groups + 0.5 * rng.normal(size=1500) > 0).astype(int)
    truth = np.column_stack([1 - share, share])  # given x; y says a little more, which is part of eta's estimate
    model = SFPATEClassifier(
        voting=GNMaxVoting(max_queries=1500), epsilon=100.0, groups=[0, 1], n_teachers=30, random_state=0
    ).fit(X, y, sensitive_features=groups)
    released = np.eye(2)[model.released_votes_]
    predicted = model.predict(X).astype(float)
    found = sfpate_bounds(truth, released, alpha=unfairness(predicted, released))
    assert unfairness(predicted, truth) <= found.theorem_1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group_probabilities": [[0.5, 0.6]]}, "group_probabilities"),
        ({"group_probabilities": [[1.0]]}, "group_probabilities"),
        ({"released_probabilities": [[1.5, -0.5]]}, "released_probabilities"),
        ({"released_probabilities": [[0.5, 0.25, 0.25]]}, "one shape"),
        ({"alpha": -0.1}, "'alpha'"),
        ({"bound": -1.0}, "'bound'"),
        ({"epsilon": -1.0}, "'epsilon'"),
        ({"votes": [1, 2]}, "votes"),
        ({"votes": [[1, 2]], "y": [0, 1]}, "y of sfpate_bounds"),
    ],
)
def test_what_the_bounds_refuse(arguments, message):
    good = {"group_probabilities": [[0.5, 0.5]], "released_probabilities": [[0.4, 0.6]]}
    given = {**good, **arguments}
    with pytest.raises(ValueError, match=message):
        sfpate_bounds(given.pop("group_probabilities"), given.pop("released_probabilities"), **given)


def test_a_group_without_rows_gives_no_bound():
    assert sfpate_bounds([[1.0, 0.0]], [[1.0, 0.0]]).theorem_1 == math.inf
