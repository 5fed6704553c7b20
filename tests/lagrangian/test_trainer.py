"""Many constrained networks in one tensor program: derivatives, independence, and constraints that are met."""

import itertools
import pickle

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from skorch import NeuralNetClassifier

from skfairdp.baselines import LagrangianClassifier, RandomizedResponseClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.ensemble import LogisticTeachers, MLPTeachers, ModuleTeachers
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.fairness import FairnessConstraints, RateParity, read_constraints
from skfairdp.lagrangian import mlp
from skfairdp.metrics import accuracy_disparity, demographic_disparity, equalized_odds_disparity, wasserstein_disparity
from tests._tools.inside import (
    DualAscent,
    LagrangianTraining,
    Network,
    Stack,
    StackedMLP,
    StackedParity,
    fit_fair_teachers,
    fit_teachers,
    position_partition,
    train_lagrangian,
    train_stacked_lagrangian,
)
from tests._tools.lagrangian import BOUNDED, NAMED, OF_TWO_AND_OF_THREE, adam

SIZES = np.array([40, 39, 0, 41])


def problem(n, n_classes=2, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 3)) + 0.5 * groups[:, None]
    y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=n), np.linspace(-0.5, 1.0, n_classes + 1)[1:-1])
    return X, y, groups


def parity_of(notions, y, groups, sizes, n_classes, n_groups=2):
    return StackedParity(FairnessConstraints(notions, y, n_classes), np.eye(n_groups)[groups], sizes)


def settings_of(**given):
    return LagrangianTraining(**{"epochs": 30, "batch_size": 32, **given})


# ---- the engine ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("notions", "n_classes"), OF_TWO_AND_OF_THREE)
def test_one_step_follows_the_derivative_of_the_lagrangian(notions, n_classes):
    """The hand-written gradient of loss + pulls · h + anchor against automatic differentiation, network by network."""
    sizes, anchor = np.array([12, 9]), 0.3
    X, y, groups = problem(21, n_classes, 3)
    net = StackedMLP(3, (5,), n_classes)
    parity = parity_of(notions, y, groups, sizes, n_classes, 3)
    rng = np.random.default_rng(1)
    multipliers = torch.as_tensor(rng.normal(size=parity.group_sizes.shape))
    of_all = [column.is_overall for column in parity.constraints.columns]
    multipliers[:, of_all] = multipliers[:, of_all, :1]  # one for all groups
    params = [p.double() for p in net.initial([3, 4])]
    stack = Stack(net, params, X, y, sizes, [0, 0], settings_of(batch_size=12), parity, anchor, "cpu")
    stack.pull(multipliers)
    with torch.no_grad():
        stack.vector.add_(torch.as_tensor(rng.normal(size=len(stack.vector)) * 0.3))
    index = np.array([np.arange(12), [*range(12, 21), 12, 12, 12]])
    weight = np.array([np.full(12, 1 / 12), [1 / 9] * 9 + [0] * 3])
    stack._gradient(index, weight)
    found = [g.clone() for g in stack.gradients]
    values = [p.detach().clone().requires_grad_() for p in stack.params]
    start = params  # which the stack has copied
    lagrangian = 0.0
    for k, rows in enumerate([np.arange(12), np.arange(12, 21)]):
        w1, b1, w2, b2 = (p[k] for p in values)
        scores = torch.relu(torch.as_tensor(X[rows]) @ w1 + b1) @ w2.T + b2.T
        proba, codes = scores.softmax(1), torch.as_tensor(y[rows])
        lagrangian = lagrangian + torch.nn.functional.cross_entropy(scores, codes)
        h = FairnessConstraints(notions, codes, n_classes).values(proba, codes)
        cells = parity.constraints.cells[rows]
        for c, a in itertools.product(range(h.shape[1]), range(3)):
            for cell in np.unique(cells[:, c]):
                here = (cells[:, c] == cell).numpy()
                mine = here & (groups[rows] == a)
                if of_all[c] and a == 0:
                    lagrangian += multipliers[k * parity.constraints.n_cells + int(cell), c, 0] * h[here, c].mean()
                if mine.any() and not of_all[c]:
                    weight_of = multipliers[k * parity.constraints.n_cells + int(cell), c, a]
                    beyond = 0.0 if parity.constraints.columns[c].is_bound else h[here, c].mean()
                    lagrangian = lagrangian + weight_of * (h[mine, c].mean() - beyond)
        lagrangian = lagrangian + anchor * sum((p[k] - s[k]).square().sum() for p, s in zip(values, start, strict=True))
    for a, b in zip(found, torch.autograd.grad(lagrangian, values), strict=True):
        torch.testing.assert_close(a, b)


def test_violations_are_differences_of_group_means():
    X, y, groups = problem(120)
    del X
    parity = parity_of(["demographic_parity", "equalized_odds"], y, groups, SIZES, 2)
    values = torch.rand(120, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = parity.violations(values).view(4, 2, 2, 2).numpy()
    edges = np.cumsum([0, *SIZES])
    for k, (a, b) in enumerate(itertools.pairwise(edges)):
        for group in range(2):
            mine = groups[a:b] == group
            if not mine.any():
                assert not found[k].any()
                continue
            h = values[a:b].numpy()
            assert found[k, 0, 0, group] == pytest.approx(h[mine, 0].mean() - h[:, 0].mean())
            for label in range(2):
                cell = y[a:b] == label
                assert found[k, label, 1, group] == pytest.approx(h[mine & cell, 1].mean() - h[cell, 1].mean())


@pytest.mark.parametrize(
    ("notions", "given", "first"),
    [
        (["demographic_parity"], 0.5, 0.5),
        (["demographic_parity"], None, 10.0),
        (["demographic_parity", "equalized_odds"], None, 1.0),
    ],
)
def test_multipliers_move_in_steps_that_shrink_to_one_nth_of_the_first(notions, given, first):
    """Networks that stand still have the same violation at every step: (1 + 3/4 + 1/2 + 1/4) of a step in all."""
    X, y, groups = problem(120)
    net, sizes = StackedMLP(3, (4,), 2), np.array([60, 60])
    training = settings_of(
        epochs=20, batch_size=20, lr=1e-30, dual_step=given, dual_steps=4, lam_max=1e9, violations="probabilities"
    )
    parity = parity_of(notions, y, groups, sizes, 2)
    _, multipliers = train_stacked_lagrangian(net, X, y, sizes, [1, 2], training, parity=parity)
    rows = torch.as_tensor(X, dtype=torch.float32).view(2, 60, 3)
    proba = net.forward(net.initial([1, 2]), rows)[1].softmax(1).transpose(1, 2).reshape(120, 2)
    expected = 2.5 * first * parity.violations(parity.constraints.values(proba, parity.constraints.y))
    np.testing.assert_allclose(multipliers, parity.by_network(expected), rtol=1e-4, atol=1e-6)


def test_the_ascent_is_the_same_for_arrays_and_tensors_and_stays_within_its_bound():
    rng = np.random.default_rng(0)
    parity = FairnessConstraints(["demographic_parity"], np.array([0, 1]), 2)
    sizes, sums = rng.uniform(1, 9, size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
    training = LagrangianTraining(lam_max=0.7, dual_step=2.0)
    array = DualAscent(training, parity, lambda h: sums, sizes)
    tensor = DualAscent(training, parity, lambda h: torch.tensor(sums), torch.tensor(sizes))
    for share in (1.0, 0.5, 0.25):
        array.follow(None, share)
        tensor.follow(None, share)
        np.testing.assert_array_equal(array.multipliers, tensor.multipliers.numpy())
    assert np.abs(array.multipliers).max() == 0.7
    small = np.abs(1.75 * 2.0 * sums / sizes) < 0.7
    np.testing.assert_allclose(array.multipliers[small], (1.75 * 2.0 * sums / sizes)[small])


@pytest.mark.parametrize("noise", [0.0, 1e6])
def test_a_small_group_takes_shorter_steps_by_the_root_of_its_share_and_has_less_noise_by_the_share(noise):
    parity = FairnessConstraints(["demographic_parity"], np.array([0, 1]), 2)
    shares = np.array([0.7, 0.25, 0.1, 0.04, 0.01])[:, None, None]
    sizes, training = 1e4 * shares, LagrangianTraining(lam_max=1e9)
    whole = DualAscent(training, parity, None, sizes, noise).first_step
    steps = DualAscent(training, parity, None, sizes, noise, shares=shares).first_step
    parts = np.array([1.0, 1.0, 1.0, 0.4, 0.1])[:, None, None]
    np.testing.assert_allclose(steps, (parts if noise else np.sqrt(parts)) * whole)


def test_groups_that_a_bound_compares_go_in_step_in_arrays_and_in_tensors():
    notions = read_constraints([RateParity("selection_rate", 0.1)], "a")
    bounded = FairnessConstraints(notions, np.array([0, 1]), 2)
    shares, training = np.array([0.9, 0.08, 0.02])[:, None, None], LagrangianTraining()

    def allowed(found, h):
        return found

    array = DualAscent(training, bounded, None, 100 * shares, project_to_bounds=allowed, shares=shares)
    tensor = DualAscent(
        training, bounded, None, torch.ones(1, 1, 3), project_to_bounds=allowed, shares=torch.tensor(shares.T.copy())
    )
    assert array.first_step.ravel() == pytest.approx([10 * 0.2**0.5]) == tensor.first_step.ravel().tolist()


@pytest.mark.parametrize(
    "notions", [["equalized_odds", "accuracy_parity"], BOUNDED, NAMED, ["false_positive_rate_parity"]]
)
def test_one_network_and_a_stack_of_one_follow_the_same_violations_to_the_same_multipliers(notions):
    """Networks that stand still: the two ways to violations, sums over sizes and means, come to the same."""
    X, y, groups = problem(200, 3)
    net = StackedMLP(3, (), 3)
    parity = parity_of(notions, y, groups, np.array([200]), 3)
    training = settings_of(epochs=2, lr=1e-30, dual_steps=4, violations="probabilities")
    params, stacked = train_stacked_lagrangian(net, X, y, np.array([200]), [7], training, parity=parity)
    linear = torch.nn.Linear(3, 3)
    with torch.no_grad():
        linear.weight.copy_(params[0][0])
        linear.bias.copy_(params[1][0, :, 0])
    constraints, member = FairnessConstraints(notions, y, 3), np.eye(2)[groups]
    counts = np.stack([np.bincount(y[groups == a], minlength=3) for a in range(2)]).astype(float)

    def violations(h):
        sums = np.zeros((2, 3, h.shape[1]))
        for c, cell in itertools.product(range(h.shape[1]), range(3)):
            here = constraints.cells[:, c] == cell
            if here.any():
                sums[:, cell, c] = member[here].T @ (h[here, c] - h[here, c].mean())
        return sums

    _, one = train_lagrangian(
        Network(linear, torch.device("cpu")),
        X,
        y,
        constraints,
        constraints.sizes(counts),
        training,
        violations=violations,
        make_optimizer=adam(training.lr),
        membership=member,
    )
    assert one.shape == stacked[0].shape == (2, 3, constraints.n_constraints) and np.abs(one).max() > 0
    np.testing.assert_allclose(one, stacked[0], atol=1e-6)
    assert np.abs(one).max() > 0.01


def test_a_network_is_the_same_whatever_rows_the_others_hold():
    X, y, groups = problem(120)
    settings = settings_of(epochs=12, batch_size=16, lr=0.01)

    def train(X, y, groups):
        parity = parity_of(["equalized_odds"], y, groups, SIZES, 2)
        return train_stacked_lagrangian(StackedMLP(3, (4,), 2), X, y, SIZES, [1, 2, 3, 4], settings, parity=parity)

    params, multipliers = train(X, y, groups)
    changed = [X.copy(), y.copy(), groups.copy()]
    changed[0][:40] += 5.0
    changed[1][:40], changed[2][:40] = 1 - y[:40], 0  # a group of the first network is gone as well
    others, other_multipliers = train(*changed)
    for p, q in zip(params, others, strict=True):
        torch.testing.assert_close(p[1:], q[1:], rtol=0, atol=0)
        assert not torch.equal(p[0], q[0])
    np.testing.assert_array_equal(multipliers[1:], other_multipliers[1:])


def test_a_network_without_rows_stays_and_the_others_keep_the_mean_of_their_last_iterates():
    X, y, groups = problem(120)
    net, settings = StackedMLP(3, (4,), 2), settings_of(epochs=2, batch_size=20, average_last=0.0)
    parity = parity_of(["demographic_parity"], y, groups, SIZES, 2)
    params, _ = train_stacked_lagrangian(net, X, y, SIZES, [1, 2, 3, 4], settings, parity=parity)
    torch.testing.assert_close(params[0][2], net.initial([1, 2, 3, 4])[0][2])
    all_of_it, _ = train_stacked_lagrangian(
        net, X, y, SIZES, [1, 2, 3, 4], settings_of(epochs=2, batch_size=20, average_last=1.0), parity=None
    )
    assert not torch.equal(all_of_it[0][0], params[0][0])
    assert all(p.isfinite().all() for p in all_of_it)


def test_an_anchor_keeps_the_network_where_it_started():
    X, y, _ = problem(100)
    net = StackedMLP(3, (4,), 2)
    start = net.initial([5])
    distances = []
    for anchor in (0.0, 0.1, 10.0):
        params, _ = train_stacked_lagrangian(
            net, X, y, np.array([100]), [0], settings_of(epochs=60, lr=0.01), start=start, anchor=anchor
        )
        distances.append(float(sum((p - q).square().sum() for p, q in zip(params, start, strict=True))))
    assert distances[0] > 2 * distances[1] > 20 * distances[2]


# ---- the classifier ------------------------------------------------------------------------------------------
MEASURES = {
    "demographic_parity": demographic_disparity,
    "equalized_odds": equalized_odds_disparity,
    "accuracy_parity": accuracy_disparity,
}


@pytest.fixture(scope="module")
def biased():
    X, y, groups = make_biased_classification(4000, disparity=0.35, random_state=0)
    return np.asarray(X), np.asarray(y), np.asarray(groups)


@pytest.mark.few(1)
@pytest.mark.parametrize("notion", MEASURES)
def test_each_constraint_lowers_its_own_disparity(biased, notion):
    X, y, groups = biased
    rng = np.random.default_rng(1)  # labels of one group are noisy, so that errors differ as well
    y = np.where((groups == 1) & (rng.random(len(y)) < 0.25), 1 - y, y)
    settings = {"net": mlp((16,), lr=0.01, max_epochs=60), "random_state": 0}
    gaps = {}
    for constraint in (None, notion):
        model = LagrangianClassifier(constraints=constraint, **settings).fit(X, y, sensitive_features=groups)
        gaps[constraint] = MEASURES[notion](y, model.predict(X), sensitive_features=groups)
    assert gaps[notion] < 0.03 < 2.5 * gaps[notion] + 0.03 < gaps[None] + 0.05
    assert gaps[None] > 0.08


@pytest.mark.slow
def test_generalized_demographic_parity_brings_whole_distributions_together():
    """Groups with the same rate at one threshold, and scores of different spread."""
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=4000)
    score = rng.normal(size=4000) * (0.5 + 1.5 * groups)
    X = np.column_stack([score, groups + 0.3 * rng.normal(size=4000)])
    y = (rng.random(4000) < 1 / (1 + np.exp(-2 * score))).astype(int)
    distance, gap = {}, {}
    for constraint in ("demographic_parity", "generalized_demographic_parity"):
        model = LagrangianClassifier(
            constraints=constraint, net=mlp((16,), lr=0.01, max_epochs=60), dual_step=3.0, random_state=0
        ).fit(X, y, sensitive_features=groups)
        scores = model.predict_proba(X)[:, 1]
        distance[constraint] = wasserstein_disparity(y, scores, sensitive_features=groups)
        gap[constraint] = [demographic_disparity(y, scores > t, sensitive_features=groups) for t in (0.3, 0.5, 0.7)]
    assert gap["demographic_parity"][1] < 0.05 < 0.15 < min(gap["demographic_parity"][::2])
    assert distance["generalized_demographic_parity"] < 0.3 * distance["demographic_parity"]
    assert max(gap["generalized_demographic_parity"]) < 0.1


@pytest.mark.slow
def test_weights_of_groups_are_read_without_bias(biased):
    """Groups hidden by randomised response: used as they are they leave a gap that signed weights close."""
    X, y, groups = biased
    rng = np.random.default_rng(0)
    lie = 0.3
    released = np.where(rng.random(len(groups)) < lie, 1 - groups, groups)
    weights = (np.eye(2)[released] - lie) / (1 - 2 * lie)
    model = LagrangianClassifier(net=mlp((), lr=0.01, max_epochs=60), random_state=0)
    gaps = [
        demographic_disparity(y, model.fit(X, y, **given).predict(X), sensitive_features=groups)
        for given in ({"group_weights": weights}, {"sensitive_features": groups})
    ]
    assert max(gaps) < 0.05
    by_label = model.fit(X, y, sensitive_features=groups).predict_proba(X)
    by_weight = model.fit(X, y, group_weights=np.eye(2)[groups]).predict_proba(X)
    np.testing.assert_array_equal(by_label, by_weight)


@pytest.mark.slow
def test_inside_randomised_response_signed_weights_beat_the_answers_as_they_are(biased):
    """Model M, plain and debiased, with the network of SF-PATE."""
    X, y, groups = biased
    rare = (groups == 1) & (np.arange(len(y)) % 4 > 0)  # a small group, whose answers are mostly lies
    X, y, groups = X[~rare], y[~rare], groups[~rare]
    network = LagrangianClassifier(net=mlp((), lr=0.02, max_epochs=30, batch_size=64), dual_step=2.0, random_state=0)
    gaps = {}
    for debias in (True, False):
        model = RandomizedResponseClassifier(
            fair_estimator=network, debias=debias, epsilon=1.0, groups=[0, 1], random_state=0, noise_seed=0
        )
        with pytest.warns(PrivacyLeakWarning, match="noise_seed"):
            model.fit(X, y, sensitive_features=groups)
        gaps[debias] = demographic_disparity(y, model.predict(X), sensitive_features=groups)
    assert gaps[True] < 0.5 * gaps[False]


def test_the_same_seed_gives_the_same_network_and_no_lam_gives_no_constraint(biased):
    X, y, groups = biased
    fits = [
        LagrangianClassifier(net=mlp(max_epochs=2), random_state=0, lam_max=0.0).fit(X, y, sensitive_features=groups),
        LagrangianClassifier(net=mlp(max_epochs=2), random_state=0, constraints=None).fit(X, y),
    ]
    np.testing.assert_allclose(fits[0].predict_proba(X), fits[1].predict_proba(X), atol=1e-6)
    assert fits[1].multipliers_.shape == (0, 1, 0) and not fits[0].multipliers_.any()
    again = pickle.loads(pickle.dumps(fits[0]))
    np.testing.assert_array_equal(again.predict(X), fits[0].predict(X))


def test_what_the_classifier_refuses(biased):
    X, y, groups = biased
    for parameters, message in [
        ({"constraints": "parity"}, "'constraints'"),
        ({"constraints": []}, "'constraints' parameter of LagrangianClassifier must be one or several"),
        ({"constraints": ["accuracy_parity"] * 2}, "'constraints'"),
        ({"net": mlp((0,))}, "'net' parameter of LagrangianClassifier cannot be built: 'hidden'"),
        ({"moments": 0}, "'moments'"),
        ({"net": mlp(device="nowhere")}, "LagrangianClassifier.*nowhere"),
        ({"net": mlp(optimizer=torch.optim.SGD)}, "must be torch.optim.Adam"),
    ]:
        with pytest.raises(ValueError, match=message):
            LagrangianClassifier(**parameters).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="needs groups"):
        LagrangianClassifier().fit(X, y)
    with pytest.raises(ValueError, match="group_weights"):
        LagrangianClassifier().fit(X, y, group_weights=np.full((len(X), 2), np.nan))
    with pytest.warns(FairnessWarning, match="one group only"):
        LagrangianClassifier(net=mlp(max_epochs=1)).fit(X, y, sensitive_features=np.zeros(len(X)))


class OneLayer(torch.nn.Module):
    """A module of somebody's own."""

    def __init__(self, n_features, n_classes, bias=True):
        super().__init__()
        self.linear = torch.nn.Linear(n_features, n_classes, bias=bias)

    def forward(self, X):
        return self.linear(X)


@pytest.mark.slow
@pytest.mark.parametrize("constraints", ["demographic_parity", ["generalized_demographic_parity"]])
def test_a_module_of_ones_own_is_held_to_the_constraint(biased, constraints):
    X, y, groups = biased
    net = NeuralNetClassifier(OneLayer, lr=0.01, max_epochs=60, batch_size=256, optimizer=torch.optim.Adam)
    gaps = {}
    for asked in (None, constraints):
        model = LagrangianClassifier(constraints=asked, net=net, random_state=0).fit(X, y, sensitive_features=groups)
        gaps[str(asked)] = demographic_disparity(y, model.predict(X), sensitive_features=groups)
        assert isinstance(model.net_.module_, OneLayer)
    assert gaps[str(constraints)] < 0.06 < 0.2 < gaps["None"]
    assert model.multipliers_.shape == (2, 1, 1 if isinstance(constraints, str) else 2)


@pytest.mark.slow
def test_a_grid_says_net_module_hidden_and_the_trained_net_works(biased, tmp_path):
    X, y, groups = biased
    grid = {"net__module__hidden": [(), (3,)], "net__lr": [0.01], "net__max_epochs": [2]}
    search = GridSearchCV(LagrangianClassifier(net=mlp(), random_state=0), grid, cv=2)
    model = search.fit(X, y, sensitive_features=groups).best_estimator_
    assert len(model.net_.module_) == (1 if search.best_params_["net__module__hidden"] == () else 3)
    np.testing.assert_allclose(model.net_.predict_proba(X), model.predict_proba(X), atol=1e-12)
    model.net_.save_params(f_params=tmp_path / "net.pt")


# ---- fair teachers, and votes that may be split --------------------------------------------------------------
class MeanOfGroups:
    """A learner of somebody's own: no get_params, no random_state, no predict_proba."""

    def fit(self, X, y, sensitive_features):
        assert len(np.unique(sensitive_features)) == 2 and len(np.unique(y)) == 2
        self.cut = np.mean([X[sensitive_features == a, 0].mean() for a in np.unique(sensitive_features)])
        return self

    def predict(self, X):
        return (X[:, 0] > self.cut).astype(int)


@pytest.mark.parametrize("learner", [LagrangianClassifier(net=mlp((4,), max_epochs=3, batch_size=16)), MeanOfGroups()])
def test_one_changed_group_changes_one_fair_teacher(learner):
    X, y, groups = problem(120)
    parts = position_partition(120, 6, random_state=0)

    def votes(groups):
        teachers = fit_fair_teachers(
            learner, X, y, groups, parts, n_teachers=6, n_classes=2, n_groups=2, random_state=0
        )
        return teachers.summed_probabilities(X, 2), teachers.predict(X)

    split, whole = votes(groups)
    for row in (0, 50, 119):
        other = groups.copy()
        other[row] = 1 - other[row]
        new_split, new_whole = votes(other)
        changed = np.flatnonzero((new_whole != whole).any(axis=1))
        assert set(changed) <= {parts[row]}
        assert np.linalg.norm(new_split - split, axis=1).max() <= np.sqrt(2) + 1e-12


@pytest.mark.parametrize("learner", [LagrangianClassifier(net=mlp((), max_epochs=3, batch_size=8)), MeanOfGroups()])
def test_teachers_without_a_group_a_class_or_any_row_stay_defined(learner):
    X, y, groups = problem(60)
    parts = np.repeat([0, 1, 2, 4], 15)  # nobody has teacher 3
    groups[:15] = 1
    y[15:30], y[:3] = 1, 0
    y[30:33], groups[30:32], groups[32:34] = [0, 1, 0], 0, 1
    y[45:48], groups[45:47], groups[47:49] = [0, 1, 1], 0, 1
    teachers = fit_fair_teachers(learner, X, y, groups, parts, n_teachers=5, n_classes=2, n_groups=2, random_state=0)
    votes = teachers.predict(X)
    assert votes.shape == (5, 60) and set(np.unique(votes)) <= {0, 1}
    assert (votes[1] == 1).all() and (votes[3] == 0).all()
    np.testing.assert_allclose(teachers.summed_probabilities(X, 2).sum(axis=1), 5)


@pytest.mark.parametrize(
    "teacher",
    [
        LogisticTeachers(),
        MLPTeachers(hidden=(4,), epochs=2),
        ModuleTeachers(torch.nn.Linear(3, 3), epochs=2),
        GaussianNB(),
    ],
    ids=lambda teacher: type(teacher).__name__,
)
def test_split_votes_are_probabilities_of_the_classes_a_part_has_seen(teacher):
    X, y, _ = problem(90, 3)
    parts = np.arange(90) % 5
    y[parts == 0] = 1
    y[(parts == 1) & (y == 2)] = 0
    teachers = fit_teachers(teacher, X, y, parts, n_teachers=5, n_classes=3, random_state=0)
    alone = []
    for k in range(5):
        one = fit_teachers(
            teacher, X[parts == k], y[parts == k], np.full(18, k), n_teachers=5, n_classes=3, random_state=0
        )
        # teachers without rows answer class 0 with certainty
        proba = one.summed_probabilities(X, 3) - np.array([4.0, 0, 0])
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert proba.min() > -1e-9
        alone.append(proba)
    np.testing.assert_allclose(alone[0], np.tile([0.0, 1.0, 0.0], (90, 1)), atol=1e-12)
    assert np.abs(alone[1][:, 2]).max() < 1e-12
    np.testing.assert_allclose(teachers.summed_probabilities(X, 3), np.sum(alone, axis=0), atol=1e-5)
    agree = np.argmax(alone[4], axis=1) == teachers.predict(X)[4]
    assert agree.mean() > 0.95


def test_split_votes_of_two_classes_are_the_logistic_function():
    X, y, _ = problem(80)
    teachers = fit_teachers(LogisticTeachers(), X, y, np.zeros(80, dtype=int), n_teachers=1, n_classes=2)
    from sklearn.linear_model import LogisticRegression

    expected = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(teachers.summed_probabilities(X, 2), expected, atol=1e-4)


class Boastful(GaussianNB):
    """Claims more than a vote, or nothing that is a number."""

    def predict_proba(self, X):
        return np.where(np.arange(len(X))[:, None] % 2, 100.0 * super().predict_proba(X), np.nan)


def test_no_classifier_has_more_than_one_vote():
    X, y, _ = problem(60)
    teachers = fit_teachers(Boastful(), X, y, np.arange(60) % 3, n_teachers=3, n_classes=2)
    np.testing.assert_allclose(teachers.summed_probabilities(X, 2).sum(axis=1), 3)


# ---- the metric ----------------------------------------------------------------------------------------------
def test_wasserstein_disparity_is_the_mean_gap_over_all_thresholds():
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=500)
    scores = rng.beta(2 + groups, 3)
    thresholds = np.linspace(0, 1, 20001)
    above = [(scores[groups == a][:, None] > thresholds).mean(axis=0) for a in range(2)]
    found = wasserstein_disparity(None, scores, sensitive_features=groups)
    assert found == pytest.approx(np.abs(above[0] - above[1]).mean(), abs=1e-4)
    three = wasserstein_disparity(None, [0.0, 0.5, 1.0], sensitive_features=list("abc"))
    assert three == 1.0
    with pytest.warns(FairnessWarning, match="fewer than two groups"):
        assert wasserstein_disparity(None, [0.0, 0.5], sensitive_features=["a", "a"]) == 0.0
    for bad in ([[0.1]], ["x", "y"], [np.nan, 0.1], []):
        with pytest.raises(ValueError, match="y_score of wasserstein_disparity"):
            wasserstein_disparity(None, bad, sensitive_features=["a", "b"])
    with pytest.raises(ValueError, match="'groups'"):
        wasserstein_disparity(None, [0.1, 0.2], sensitive_features=["a", "b"], groups=["a"])
