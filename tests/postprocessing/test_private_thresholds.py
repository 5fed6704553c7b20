"""PrivateThresholds: constraints hold on the released counts at the least loss, and every release is paid for."""

import contextlib
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skfairdp import FairDPSGDClassifier, FairDPSGDRegressor, PFLDClassifier, PrivacyLedger, SchemaEncoder
from skfairdp._utils import coins_of
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, PrivacyLeakWarning, UtilityWarning
from skfairdp.fairness import RateBound, RateConstraints, RateParity, read_rate_constraints
from skfairdp.gradient import mlp
from skfairdp.lagrangian import mlp as fld_mlp
from skfairdp.postprocessing import PrivateBarycenter, PrivateThresholds
from skfairdp.postprocessing._bins import GRID, BinsPlan, bins_of, edges_from
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, compose, epsilon_of, verify_file
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import answer_counts, fair_answers, for_own_answers, predicted_counts
from tests._tools.raw import RAW_SCHEMA, raw_rows
from tests._tools.sources import RecordingNoise, recording_noise

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*given to PrivateThresholds has no privacy_"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

X, Y, GROUPS = make_biased_classification(6000, disparity=0.3, random_state=0)
PUBLIC = LogisticRegression().fit(X[:1000], Y[:1000])
TRAIN, TEST = slice(1000, 4000), slice(4000, 6000)
NULL, REPLACED = NeighboringRelation.ZERO_OUT, NeighboringRelation.REPLACE_ONE
NOTIONS = ["demographic_parity", "equalized_odds", "equal_opportunity", "false_positive_rate_parity"]


def asked(constraints, n_groups=2):
    return RateConstraints(read_rate_constraints(constraints, "a test"), list(range(n_groups)), [0, 1])


def made(model=PUBLIC, **options):
    return PrivateThresholds(model, **{"epsilon": 2.0, "groups": [0, 1], "random_state": 0, **options})


def fitted(model=PUBLIC, rows=TRAIN, **options):
    return made(model, **options).fit(X[rows], Y[rows], sensitive_features=GROUPS[rows])


def toy_counts(seed, n_bins=3, n_groups=2):
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.1, 0.9, n_bins)[:, None] * np.linspace(0.7, 1.0, n_groups)
    rows = rng.integers(5, 60, (n_bins, n_groups))
    second = np.round(rows * chance)
    return np.stack([rows - second, second], axis=-1)


# ---- the answers -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("by_group", [True, False])
@pytest.mark.parametrize("notion", [*NOTIONS, RateParity("selection_rate", ratio_bound=0.8)])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_without_noise_the_constraints_hold_on_the_counts(notion, by_group, n_groups):
    for seed in range(5):
        counts = toy_counts(seed, n_bins=6, n_groups=n_groups)
        constraints = asked(notion, n_groups)
        answers = fair_answers(constraints, counts, by_group=by_group)
        assert answers.shape == (n_groups if by_group else 1, 6)
        assert constraints.largest_violation(predicted_counts(counts, answers)) < 1e-7
        assert not by_group or (np.diff(answers, axis=1) > -1e-9).all()


@pytest.mark.covering
@pytest.mark.parametrize("by_group", [True, False])
@pytest.mark.parametrize("notion", NOTIONS)
def test_no_answers_that_meet_the_constraints_are_more_accurate(notion, by_group):
    """Against every table of answers in steps of a quarter."""
    counts = toy_counts(1)
    constraints = asked([RateParity(one.rate, 0.1) for one in read_rate_constraints(notion, "a test")])
    steps = list(itertools.product(np.linspace(0, 1, 5), repeat=3))
    if by_group:
        steps = [rule for rule in steps if list(rule) == sorted(rule)]

    def accuracy(answers):
        return np.einsum("gyy->", predicted_counts(counts, np.asarray(answers))) / counts.sum()

    tables = [np.array(rules) for rules in itertools.product(steps, repeat=2 if by_group else 1)]
    fair = [t for t in tables if constraints.largest_violation(predicted_counts(counts, t)) <= 1e-12]
    best = max(map(accuracy, fair))
    found = accuracy(fair_answers(constraints, counts, by_group=by_group))
    assert len(fair) > 2 and best - 1e-9 <= found <= best + 0.1


def test_where_constraints_contradict_each_other_they_are_broken_as_little_as_possible():
    counts = toy_counts(0, n_bins=6)
    both = [RateBound("selection_rate", upper=0.2), RateBound("selection_rate", lower=0.5)]
    answers = fair_answers(asked(both), counts, by_group=True)
    assert asked(both).largest_violation(predicted_counts(counts, answers)) == pytest.approx(0.15)
    with pytest.warns(FairnessWarning, match="No predictions of PrivateThresholds satisfy its constraints"):
        assert fitted(constraints=both).violation_ == pytest.approx(0.15, abs=1e-6)


def test_without_a_need_the_models_own_answers_are_kept():
    with recording_noise(0):
        model = fitted(constraints=RateParity("selection_rate", 1.0))
    assert 0.5 in model.edges_
    before, after = PUBLIC.score(X[TEST], Y[TEST]), model.score(X[TEST], Y[TEST])
    assert abs(before - after) < 0.01


@pytest.mark.parametrize("notion", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("aware", [True, False])
def test_on_rows_to_come_the_gap_is_near_what_was_asked(notion, aware):
    with recording_noise(entropy=3):
        model = fitted(constraints=notion, group_at_prediction=aware)
    predicted = model.predict(X[TEST], sensitive_features=GROUPS[TEST])
    constraints = asked(notion)
    before = constraints.largest_violation(constraints.tally(GROUPS[TEST], Y[TEST], PUBLIC.predict(X[TEST])))
    after = constraints.largest_violation(constraints.tally(GROUPS[TEST], Y[TEST], predicted))
    assert after < 0.08 and (notion == "equalized_odds" or before > 0.2)


# ---- predictions -----------------------------------------------------------------------------------------------
def test_a_prediction_follows_from_its_row_and_is_the_same_in_any_order_and_container():
    model = fitted()
    whole = model.predict(X[TEST])
    order = np.random.default_rng(0).permutation(2000)
    np.testing.assert_array_equal(model.predict(X[TEST][order]), whole[order])
    np.testing.assert_array_equal([model.predict(X[i : i + 1])[0] for i in range(4000, 4040)], whole[:40])
    np.testing.assert_array_equal(model.predict(X[TEST].tolist()), whole)


def test_answers_come_as_often_as_their_chance_says():
    model = fitted(group_at_prediction=True)
    bins = bins_of(PUBLIC.predict_proba(X[TEST])[:, 1], model.edges_)
    model.answers_[:, ::2] = 0.3  # some answers are drawn
    expected = model.answers_[GROUPS[TEST], bins]
    predicted = model.predict(X[TEST], sensitive_features=GROUPS[TEST])
    assert abs(predicted.mean() - expected.mean()) < 4 * np.sqrt(expected @ (1 - expected)) / len(bins) + 1e-3
    assert set(predicted[expected < 1e-9]) <= {0} and set(predicted[expected > 1 - 1e-9]) <= {1}


def test_coins_are_uniform_and_another_key_tosses_them_anew():
    rows = np.random.default_rng(0).normal(size=(4000, 3))
    first, second = coins_of(rows, b"one"), coins_of(rows, b"two")
    assert np.abs(np.sort(first) - np.linspace(0, 1, 4000)).max() < 0.03
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05 and first.max() < 1
    assert coins_of(-0.0 * rows, b"one").max() == coins_of(0.0 * rows, b"one").min()


# ---- the guarantee ---------------------------------------------------------------------------------------------
def values_of(plan, scores, groups, y, histogram):
    """What noise is added to, where the first release says this histogram."""
    source = RecordingNoise(0, exact=True, answer=lambda r: histogram if np.size(r.output) == GRID else r.output)
    plan.release(scores, groups, y, source)
    return [np.asarray(release.value, dtype=float).ravel() for release in source.record.releases]


@pytest.mark.parametrize(("relation", "bound"), [(REPLACED, np.sqrt(2)), (NULL, 1.0)])
def test_one_record_moves_each_table_by_no_more_than_its_sensitivity(relation, bound):
    rng = np.random.default_rng(0)
    plan = BinsPlan(40, 2, 500.0, 1e-5, relation)
    scores, groups, y = rng.random(40), rng.integers(2, size=40), rng.integers(2, size=40)
    released = np.full(GRID, 1.0)  # the second table follows it, and is compared where it is given
    histogram, table = values_of(plan, scores, groups, y, released)
    assert len(histogram) == GRID and len(table) == 4 * plan.n_bins > 40
    moved = []
    for i in range(40):
        others = [(s, g, k) for s in (0.0, 0.3, 0.999, 1.0) for g in (0, 1) for k in (0, 1)]
        neighbours = [(np.delete(scores, i), np.delete(groups, i), np.delete(y, i))]
        if relation is REPLACED:
            neighbours = [
                tuple(np.concatenate([values[:i], [new], values[i + 1 :]]) for values, new in zip(
                    (scores, groups, y), other, strict=True))
                for other in others
            ]  # fmt: skip
        for s, g, k in neighbours:
            fine, coarse = values_of(plan, s, g.astype(int), k.astype(int), released)
            moved.append((np.linalg.norm(fine - histogram), np.linalg.norm(coarse - table)))
    np.testing.assert_allclose(np.max(moved, axis=0), bound)
    assert plan.histogram.sensitivity == plan.table.sensitivity == pytest.approx(bound)


@pytest.mark.parametrize("relation", [REPLACED, NULL])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_all_tables_together_cost_at_most_epsilon(relation, epsilon):
    plan = BinsPlan(3000, 2, epsilon, 1e-5, relation)
    together = compose(plan.histogram.event, plan.table.event, plan.look.event)
    assert 0.999 * epsilon <= epsilon_of(together, 1e-5) <= epsilon
    assert epsilon_of(plan.event, 1e-5) == epsilon_of(together, 1e-5)


def test_the_ledger_has_one_entry_of_three_releases():
    ledger = PrivacyLedger(epsilon=2.0)
    with recording_noise(entropy=0) as record:
        model = fitted(ledger=ledger, group_at_prediction=True)
    (entry,) = ledger.entries
    assert entry.label == "PrivateThresholds" and entry.event == model.privacy_.event
    plan = model._plan(model._read(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN]))
    assert [release.mechanism for release in record.of(GaussianMechanism)] == [plan.histogram, plan.table, plan.look]
    assert len(record.releases) == 3 and 0.99 * 2 <= model.privacy_.epsilon <= 2
    with pytest.raises(BudgetExceededError):
        fitted(ledger=ledger)


def test_the_noise_of_each_table_is_that_of_its_mechanism():
    source = RecordingNoise(1.0, exact=True)
    plan = BinsPlan(3000, 2, 1.0, 1e-5, REPLACED)
    rng = np.random.default_rng(0)
    plan.release(rng.random(3000), rng.integers(2, size=3000), rng.integers(2, size=3000), source)
    for release, sigma in zip(source.record.releases, (plan.histogram.sigma, plan.table.sigma), strict=True):
        np.testing.assert_allclose(release.noise, sigma)


def test_the_bound_allows_for_thresholds_of_many_groups_that_the_same_rows_have_chosen():
    """Every group's rate is at its bound on these rows: the gap of others is the spread of all groups' chance, which in
    a third of the fits was more than the largest difference of two alone would be."""
    n_groups, X = 12, np.random.default_rng(0).normal(size=(424_000, 2))
    groups, coins = np.arange(len(X)) % n_groups, np.random.default_rng(1).random(len(X))
    X[:, 0] += groups % 2
    y = (coins < 1 / (1 + np.exp(0.6 - X.sum(axis=1)))).astype(int)
    model, others = LogisticRegression().fit(X[:5000], y[:5000]), slice(224_000, None)
    for start in range(0, 192_000, 24_000):
        rows = slice(start, start + 24_000)
        fair = made(model, epsilon=30.0, groups=range(n_groups), group_at_prediction=True, random_state=start)
        with warnings.catch_warnings(action="ignore"):
            fair.fit(X[rows], y[rows], sensitive_features=groups[rows])
        answers = fair.predict(X[others], sensitive_features=groups[others])
        rates = np.bincount(groups[others], answers) / np.bincount(groups[others])
        assert np.ptp(rates) <= fair.gap_bound_


def test_the_answers_to_a_group_stay_where_noise_hides_whether_they_break_anything():
    """Rates of few rows that were mere noise were made equal: 2 to 8 points of accuracy for gaps twice as large."""
    X, shares = np.random.default_rng(0).normal(size=(60_000, 2)), [0.46, 0.28, 0.16, 0.1]
    groups, coins = np.random.default_rng(1).choice(4, len(X), p=shares), np.random.default_rng(2).random(len(X))
    X[:, 0] += 0.7 * (groups % 3)
    y = (coins < 1 / (1 + np.exp(0.6 - 2 * X.sum(axis=1)))).astype(int)
    model, others = LogisticRegression().fit(X[:5000], y[:5000]), slice(20_000, None)
    own = (model.predict(X[others]) == y[others]).mean()
    for start in (5000, 10_000, 15_000):
        rows = slice(start, start + 5000)
        fair = made(model, epsilon=0.1, constraints="equalized_odds", groups=range(4), group_at_prediction=True)
        fair.fit(X[rows], y[rows], sensitive_features=groups[rows])
        answers = fair.predict(X[others], sensitive_features=groups[others])
        assert (answers == y[others]).mean() > own - 0.01


def test_where_no_network_guesses_groups_the_bound_is_of_the_answers_to_all_rows():
    """They chose thresholds by noisy counts alone, which learn no row by heart (the coverage is a test of its own)."""
    with recording_noise(entropy=0) as record, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the classifier is public
        model = fitted(group_at_prediction=True)
    histogram, table, look = (release.private[0] for release in record.releases)
    assert histogram.sum() == table.sum() == look.sum() == 3000 and look.shape == (2, 1, 2)
    groups = GROUPS[TRAIN]
    given = model.predict(X[TRAIN], sensitive_features=groups)
    np.testing.assert_array_equal(look[:, 0], [[np.sum((groups == g) & (given == k)) for k in (0, 1)] for g in (0, 1)])


def test_the_rows_of_the_bound_stand_for_all_where_rows_are_alike():
    """Ten different rows only: of each of them one in five, so that no gap hides in those that are not looked at."""
    alike = np.random.default_rng(0).integers(10, size=3000)
    with recording_noise(entropy=0), looked_at() as drawn, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the classifier is public; answers may not meet the constraint
        for _ in range(2):
            made(epsilon=3.0).fit(X[TRAIN][alike], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    for _, held in drawn:
        assert all(0.1 < held[alike == value].mean() < 0.3 for value in range(10))
    assert not np.array_equal(drawn[0][1], drawn[1][1])  # random_state has no say


@contextlib.contextmanager
def looked_at():
    """A list of the rows that each fit keeps aside."""
    drawn, honest = [], BinsPlan.kept_aside
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BinsPlan, "kept_aside", lambda *given: drawn.append(honest(*given)) or drawn[-1])
        yield drawn


@pytest.mark.parametrize(("notion", "shape"), [("demographic_parity", (2, 1, 2)), ("equalized_odds", (2, 2, 2))])
def test_one_record_moves_the_look_by_no_more_than_its_sensitivity(notion, shape):
    rng = np.random.default_rng(0)
    groups, labels, given = (rng.integers(2, size=30) for _ in range(3))
    whole, plan = answer_counts(asked(notion), groups, labels, given), BinsPlan(40, 2, 1.0, 1e-5, REPLACED)
    assert whole.shape == shape and plan.look.sensitivity == pytest.approx(np.sqrt(2))
    moved = []
    for other in itertools.product((0, 1), repeat=3):
        values = [np.concatenate([[new], old[1:]]) for new, old in zip(other, (groups, labels, given), strict=True)]
        moved.append(np.linalg.norm(answer_counts(asked(notion), *values) - whole))
    assert max(moved) == pytest.approx(np.sqrt(2))


def test_the_bound_lies_above_the_gap_and_falls_with_the_noise():
    bounds = {}
    for epsilon in (0.5, 2.0, 50.0):
        with recording_noise(entropy=1):
            model = fitted(epsilon=epsilon)
        predicted = model.predict(X[TEST])
        gap = abs(predicted[GROUPS[TEST] == 0].mean() - predicted[GROUPS[TEST] == 1].mean())
        bounds[epsilon] = model.gap_bound_
        assert gap < model.gap_bound_ + 0.02 <= 1  # two standard errors of a gap on the test rows
    assert bounds[2.0] < bounds[0.5]  # beyond that a bound is of fewer rows


def test_the_statement_says_the_bound_and_is_verified_with_it(tmp_path):
    model = fitted()
    statement = model.privacy_statement()
    for text in (statement.to_markdown(), statement.to_html()):
        assert f"at most {math.ceil(1000 * model.gap_bound_) / 1000:.3f}, with a confidence of 95%" in text
    assert "gap_bound" not in statement.content  # nobody can compute it again without the data
    (tmp_path / "statement.json").write_text(statement.to_json(), encoding="utf-8")
    assert all(check.holds for check in verify_file(tmp_path / "statement.json"))
    assert "Fairness" not in private_model().fit(X[TRAIN], Y[TRAIN]).privacy_statement().to_markdown()


def private_model(ledger=None, **options):
    net = mlp((), max_epochs=2, batch_size=100)
    return FairDPSGDClassifier(epsilon=1.0, lam=0.0, net=net, classes=[0, 1], random_state=0, ledger=ledger, **options)


def test_the_guarantee_of_a_private_classifier_is_composed_and_charged_once():
    ledger = PrivacyLedger()
    model = private_model(ledger).fit(X[TRAIN], Y[TRAIN])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        fair = fitted(model, epsilon=0.5, ledger=ledger)
    spent = fair.privacy_
    assert spent.neighboring_relation == NULL == model.privacy_.neighboring_relation
    assert 1.0 < spent.epsilon <= 1.5 and spent.event == compose(ledger.entries[1].event, model.privacy_.event)
    assert len(ledger.entries) == 2 and epsilon_of(ledger.entries[1].event, 1e-5) <= 0.5
    assert fair.planned_privacy(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN]).event == spent.event
    assert ledger.epsilon_spent == pytest.approx(spent.epsilon, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
def test_a_classifier_of_seeded_noise_protects_nobody():
    model = private_model(noise_seed=0).fit(X[TRAIN], Y[TRAIN])
    assert fitted(model).privacy_.epsilon == np.inf


@pytest.mark.filterwarnings("default:.*given to PrivateThresholds has no privacy_")
def test_a_classifier_without_a_guarantee_is_told():
    with pytest.warns(PrivacyLeakWarning, match=r"LogisticRegression given to PrivateThresholds has no privacy_"):
        model = fitted()
    assert any("the classifier" in fact and "outside the guarantee" in fact for fact in model.privacy_.public)


def test_with_a_classifier_that_protects_the_attribute_so_do_the_thresholds():
    inner = PFLDClassifier(net=fld_mlp(max_epochs=1), groups=[0, 1], dual_steps=2, random_state=0)
    inner.fit(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    assert fitted(inner).privacy_.protects == "sensitive attribute"


# ---- what is refused, before anything is spent -----------------------------------------------------------------
class Leaning(LogisticRegression):
    predicts_rows_alone = False


class Scaled(LogisticRegression):
    def __init__(self, scale=None):
        super().__init__()
        self.scale = scale

    def predict_proba(self, X):
        return self.scale(super().predict_proba(X))


def unsorted_classes():
    model = LogisticRegression().fit(X, Y)
    model.classes_ = model.classes_[::-1]
    return model


@pytest.mark.parametrize(
    ("model", "kind", "match"),
    [
        (None, ValueError, "needs a fitted classifier: give one with the 'estimator' parameter"),
        (LogisticRegression(), NotFittedError, "Fit it first"),
        (LinearRegression().fit(X, Y), ValueError, "must be a classifier with classes_"),
        (LogisticRegression().fit(X, Y + (X[:, 0] > 1)), ValueError, "must know two classes. Use FairDPSGDClassifier"),
        (Leaning().fit(X, Y), ValueError, "depends on the others"),
        (unsorted_classes(), ValueError, "must have sorted 'classes_'"),
        (Scaled(np.log).fit(X, Y), ValueError, "must return probabilities"),
        (Scaled(lambda chances: 7 * chances).fit(X, Y), ValueError, "must return probabilities"),
    ],
)
def test_a_classifier_that_cannot_be_served_is_refused(model, kind, match):
    ledger = PrivacyLedger()
    with pytest.raises(kind, match=match):
        fitted(model, ledger=ledger)
    assert len(ledger.entries) == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"constraints": "fair"}, "'constraints' parameter of PrivateThresholds must be one or several of"),
        ({"constraints": RateBound("error_rate", upper=0.2, groups=["x"])}, "name 'x' in 'groups'"),
        ({"epsilon": 0.0}, "'epsilon' parameter of PrivateThresholds"),
        ({"group_at_prediction": "yes"}, "'group_at_prediction' parameter of PrivateThresholds"),
    ],
)
def test_a_wrong_parameter_is_refused(options, match):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=match):
        fitted(ledger=ledger, **options)
    assert len(ledger.entries) == 0


@pytest.mark.slow
def test_a_secret_number_of_rows_is_refused():
    with pytest.raises(ValueError, match="Fit the classifier without 'public_n_rows'"):
        fitted(private_model(public_n_rows=3100).fit(X[TRAIN], Y[TRAIN]))


def test_groups_are_needed_where_a_rule_reads_them():
    model = fitted(group_at_prediction=True)
    with pytest.raises(ValueError, match="needs sensitive_features to predict"):
        model.predict(X[TEST])
    assert model.score(X[TEST], Y[TEST], sensitive_features=GROUPS[TEST]) > 0.6
    with pytest.raises(NotFittedError):
        made().predict(X[TEST])


def test_one_row_that_the_classifier_fails_on_does_not_stop_the_fit():
    def refuse(rows):
        if np.abs(rows).max() > 1e6:
            raise RuntimeError("a row")
        return rows

    model = make_pipeline(FunctionTransformer(refuse), PUBLIC).fit(X[:300], Y[:300])
    rows = slice(1000, 1200)
    bad = X[rows].copy()
    bad[3] = 1e9
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the classifier has no privacy_, and the rows are few
            fair = made(FrozenEstimator(model)).fit(bad, Y[rows], sensitive_features=GROUPS[rows])
    except RuntimeError:
        pytest.fail("one row ended the fit")
    assert fair.predict(bad[:5]).shape == (5,)


# ---- tables of several kinds -----------------------------------------------------------------------------------
def test_groups_may_be_a_column_of_x_and_names_reach_the_classifier():
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    named = make_pipeline(StandardScaler(), LogisticRegression()).fit(table[:1000], Y[:1000])
    whole = table.assign(sex=GROUPS)
    with recording_noise(0, entropy=0):
        apart = made(named, group_at_prediction=True).fit(table[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    with recording_noise(0, entropy=0):
        inside = made(named, group_at_prediction=True, sensitive_columns="sex").fit(whole[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(apart.counts_, inside.counts_)
    np.testing.assert_array_equal(
        apart.predict(table[TEST], sensitive_features=GROUPS[TEST]), inside.predict(whole[TEST])
    )


def test_a_schema_reads_raw_tables_for_both():
    public, table, rows = raw_rows(400, seed=1), raw_rows(800, seed=0), raw_rows(60, seed=2)
    pipeline = make_pipeline(SchemaEncoder(RAW_SCHEMA), LogisticRegression(max_iter=500))
    pipeline.fit(public, public["income"])
    numbers = LogisticRegression(max_iter=500).fit(SchemaEncoder(RAW_SCHEMA).transform(public), public["income"])
    options = {"epsilon": 4.0, "schema": RAW_SCHEMA, "group_at_prediction": True, "random_state": 0}
    models = []
    for model in (pipeline, numbers):
        with recording_noise(0, entropy=0):
            models.append(PrivateThresholds(model, **options).fit(table))
    first, second = (model.predict(rows) for model in models)
    np.testing.assert_array_equal(first, second)
    assert models[0].groups_.tolist() == ["Female", "Male"] and set(first) <= {"<=50K", ">50K"}
    assert models[0].score(rows) == np.mean(first == rows["income"])


def test_decision_values_serve_as_scores_and_a_clone_keeps_a_frozen_classifier():
    model = RidgeClassifier().fit(X[:1000], Y[:1000])
    again = clone(made(FrozenEstimator(model))).fit(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    assert 0.5 in again.edges_ and again.score(X[TEST], Y[TEST]) > 0.5


# ---- bins ------------------------------------------------------------------------------------------------------
def test_bins_hold_about_equally_many_rows_and_end_at_the_models_threshold():
    histogram = np.random.default_rng(0).multinomial(100_000, np.full(GRID, 1 / GRID))
    edges = edges_from(histogram.astype(float), 8)
    assert len(edges) == 7 and 0.5 in edges and np.diff(edges).max() <= 0.2
    assert edges_from(np.full(GRID, -3.0), 8).tolist() == [0.5]  # nothing but noise
    spike = np.zeros(GRID)
    spike[0] = 1000.0
    assert edges_from(spike, 8).tolist() == [1 / GRID, 0.5]


def test_more_noise_leaves_fewer_bins():
    numbers = [BinsPlan(5000, 2, epsilon, 1e-5, REPLACED).n_bins for epsilon in (0.01, 0.3, 1.0, 10.0)]
    assert numbers == sorted(numbers) and numbers[0] == 2 and numbers[-1] > 20


# ---- few rows --------------------------------------------------------------------------------------------------
def constant_around(n, epsilon, entropy):
    """Thresholds around a classifier that answers the larger class, which has three rows of four."""
    rng = np.random.default_rng(entropy)
    X, y, groups = rng.normal(size=(n, 3)), (np.arange(n) % 4 == 0).astype(int), np.arange(n) // 2 % 2
    model = FrozenEstimator(DummyClassifier().fit(X, y))
    with recording_noise(entropy=entropy), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = PrivateThresholds(model, epsilon=epsilon, groups=[0, 1], random_state=0)
        made.fit(X, y, sensitive_features=groups)
    return made, made.predict(X), {w.category for w in caught}


@pytest.mark.parametrize(("n", "epsilon"), [(150, 0.25), (150, 0.5)])
def test_noise_does_not_turn_the_answers_of_a_classifier_around(n, epsilon):
    """At ε = .25 one fit of nine answered the rarer class for every row, half a point of accuracy behind."""
    found = [constant_around(n, epsilon, entropy) for entropy in range(12)]
    assert sum(predicted.mean() > 0.5 for _, predicted, _ in found) == 0
    assert all(UtilityWarning in told for _, _, told in found)


def test_what_is_hopeless_follows_from_public_numbers_and_leaves_the_classifier_alone():
    few, enough = (BinsPlan(n, 2, 0.25, 1e-5, NeighboringRelation.REPLACE_ONE) for n in (150, 600))
    assert few.snr_too_low and not enough.snr_too_low
    model, predicted, told = constant_around(150, 0.25, entropy=0)
    assert set(predicted) == {0} and FairnessWarning in told
    np.testing.assert_array_equal(model.answers_, (np.append(0.0, model.edges_) >= 0.5)[None].astype(float))


def test_own_answers_are_believed_by_as_much_as_the_noise_and_no_more():
    counts, edges = toy_counts(0, n_bins=2), np.array([0.5])
    for_own = for_own_answers(counts, edges, 3.0, 0.0)
    assert (for_own[0] <= 0).all() and (for_own[1] >= 0).all()
    assert np.abs(for_own).sum() == pytest.approx(2 * 3.0 * np.sqrt(counts.size))
    assert not for_own_answers(counts, edges, 0.0, 0.0).any()  # without noise counts decide alone


def test_more_groups_than_can_be_compared_are_refused_before_anything_is_spent():
    """Of 240 groups every two are compared: 24 GiB were asked for after the charge."""
    ledger, many = PrivacyLedger(), np.arange(3000) % 240
    model = made(groups=list(range(240)), ledger=ledger)
    for attempt in (model.fit, model.planned_privacy):
        with pytest.raises(ValueError, match="compares every two groups, and got 240 groups: at most 100"):
            attempt(X[TRAIN], Y[TRAIN], sensitive_features=many)
    assert ledger.entries == ()


# ---- a classifier of other columns -----------------------------------------------------------------------------------
class NoScores(LogisticRegression):
    """Has a score for no row at all."""

    predicts_rows_alone = True

    def predict_proba(self, X):
        raise RuntimeError("out of order")


class PositiveOnly(LogisticRegression):
    """Has no score for rows with a number below 0."""

    predicts_rows_alone = True

    def predict_proba(self, X):
        if (np.asarray(X) < 0).any():
            raise ValueError("negative")
        return super().predict_proba(X)


NAMED = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
OTHERS = {
    "fewer columns": (LogisticRegression().fit(X[:1000, :2], Y[:1000]), X, "on 2 columns, and here are"),
    "another order": (LogisticRegression().fit(NAMED[:1000], Y[:1000]), NAMED[NAMED.columns[::-1]], "fitted on other"),
    "other names": (LogisticRegression().fit(NAMED[:1000], Y[:1000]), NAMED.add_prefix("x"), "fitted on other"),
    "no scores": (NoScores().fit(X[:1000], Y[:1000]), X, "NoScores, returns no finite score for any of 42"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_classifier_of_other_columns_or_without_scores_is_refused_before_anything_is_paid(kind):
    model, table, said = OTHERS[kind]
    ledger = PrivacyLedger(epsilon=10.0)
    with pytest.raises(ValueError, match=said):
        made(model, ledger=ledger).fit(table[:3000], Y[:3000], sensitive_features=GROUPS[:3000])
    assert not ledger.entries


def test_a_classifier_that_scores_some_rows_is_taken():
    positive = PositiveOnly().fit(abs(X[:1000]), Y[:1000])
    model = made(positive).fit(abs(X[TRAIN]), Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    assert model.score(abs(X[TEST]), Y[TEST]) > 0.5


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
def test_labels_that_the_classifier_was_not_taught_are_blamed_on_its_classes():
    rng, ledger = np.random.default_rng(0), PrivacyLedger()
    X = rng.normal(size=(60, 2))
    thresholds = PrivateThresholds(LogisticRegression().fit(X, X[:, 0] > 0), groups=[False, True], ledger=ledger)
    with pytest.raises(ValueError, match="none of the classes of its 'estimator'"):
        thresholds.fit(X, np.full(60, 7), sensitive_features=X[:, 1] > 0)
    assert ledger.entries == ()


# ---- around an estimator that is not fitted -------------------------------------------------------------------------
PRIVATE = {
    "thresholds": (PrivateThresholds, FairDPSGDClassifier(epsilon=0.8, lam=0.0, classes=[0, 1], random_state=0), {}),
    "barycenter": (PrivateBarycenter, FairDPSGDRegressor(epsilon=0.8, bounds=(-1.0, 2.0), random_state=0), {}),
}


@pytest.mark.parametrize("kind", PRIVATE)
def test_one_fit_of_both_is_a_fit_of_each(kind):
    make, inside, more = PRIVATE[kind]
    given = {"epsilon": 0.4, "group_at_prediction": True, "groups": [0, 1], "random_state": 0, **more}
    rows, ledger = {"sensitive_features": GROUPS[TRAIN]}, PrivacyLedger(epsilon=1.5)
    with recording_noise(entropy=0):
        both = make(inside, ledger=ledger, **given).fit(X[TRAIN], Y[TRAIN], **rows)
    with recording_noise(entropy=0):
        first = clone(inside).fit(X[TRAIN], Y[TRAIN], **rows)
        second = make(first, **given).fit(X[TRAIN], Y[TRAIN], **rows)
    asked = {"sensitive_features": GROUPS[TEST]}
    np.testing.assert_array_equal(both.predict(X[TEST], **asked), second.predict(X[TEST], **asked))
    assert both.privacy_.epsilon == second.privacy_.epsilon > 0.8
    assert [entry.label for entry in ledger.entries] == [type(inside).__name__, make.__name__]
    assert both.estimator is inside and not hasattr(inside, "privacy_") and hasattr(both.estimator_, "privacy_")


def test_what_is_wrong_with_the_second_fit_is_said_before_the_first_spends():
    ledger, inside = PrivacyLedger(), PRIVATE["thresholds"][1]
    with pytest.raises(ValueError, match="demographic"):
        PrivateThresholds(inside, constraints="fairness", ledger=ledger).fit(X, Y, sensitive_features=GROUPS)
    assert not ledger.entries


def test_three_declared_classes_are_refused_before_the_first_fit_spends():
    ledger, inside = PrivacyLedger(), FairDPSGDClassifier(classes=[0, 1, 2], lam=0.0)
    with pytest.raises(ValueError, match="Only binary classification"):
        PrivateThresholds(inside, groups=[0, 1], ledger=ledger).fit(X, Y, sensitive_features=GROUPS)
    schema = Schema({"x": Number(-9, 9), "g": Category([0, 1]), "y": Category([0, 1, 2])}, label="y", groups="g")
    table = pd.DataFrame({"x": X[:, 0], "g": GROUPS, "y": Y})
    with pytest.raises(ValueError, match="Only binary classification"):
        PrivateThresholds(FairDPSGDClassifier(schema=schema), schema=schema, ledger=ledger).fit(table)
    assert not ledger.entries


@pytest.mark.parametrize(
    ("inside", "outside", "says"),
    [
        ({"public_n_rows": len(X)}, {}, "without 'public_n_rows'"),
        ({}, {"groups": list(range(101))}, "got 101 groups: at most 100"),
    ],
)
def test_guarantees_that_do_not_add_up_and_too_many_groups_are_refused_before_the_first_fit_spends(
    inside, outside, says
):
    ledger, model = PrivacyLedger(), FairDPSGDClassifier(classes=[0, 1], lam=0.0, **inside)
    with pytest.raises(ValueError, match=says):
        PrivateThresholds(model, **{"groups": [0, 1], "ledger": ledger, **outside}).fit(X, Y, sensitive_features=GROUPS)
    assert not ledger.entries


@pytest.mark.parametrize(
    ("options", "classes", "groups", "says"),
    [
        ({}, Y + (np.arange(len(Y)) < 9), GROUPS, "Only binary classification"),
        ({}, Y, np.arange(len(Y)) % 101, "got 101 groups: at most 100"),
        ({"constraints": RateBound("false_negative_rate", upper=0.2, groups=["zz"])}, Y, GROUPS, "name 'zz'"),
    ],
)
def test_classes_and_groups_that_rows_show_are_refused_before_the_first_fit_spends(options, classes, groups, says):
    inside = FairDPSGDClassifier(lam=0.0)
    for own in ({"ledger": PrivacyLedger()}, {"total_epsilon": 1.0}, {}):
        both = PrivateThresholds(inside, **options, **own)
        with pytest.raises(ValueError, match=says):
            both.fit(X, classes, sensitive_features=groups)
        assert not hasattr(both, "estimator_")


def test_a_model_that_protects_the_group_alone_is_refused_beside_subjects_before_it_spends():
    ledger, model = PrivacyLedger(), PFLDClassifier(classes=[0, 1], groups=[0, 1])
    with pytest.raises(ValueError, match="both guarantees do not add up"):
        PrivateThresholds(model, groups=[0, 1], ledger=ledger).fit(
            X, Y, sensitive_features=GROUPS, subject=pd.Series(np.arange(len(X)), name="id")
        )
    assert not ledger.entries


def test_a_plan_around_an_estimator_that_is_not_fitted_says_what_both_cost():
    model = PrivateThresholds(FairDPSGDClassifier(classes=[0, 1], lam=0.0), epsilon=0.25, groups=[0, 1])
    with pytest.raises(NotFittedError, match=r"estimator\.planned_privacy.*and its own epsilon=0.25"):
        model.planned_privacy(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize(("kind", "by_group"), [("thresholds", False), ("barycenter", True)])
def test_a_ledger_without_room_for_both_fits_is_charged_for_neither(kind, by_group):
    make, inside, _ = PRIVATE[kind]
    rows = {"sensitive_features": GROUPS[TRAIN], "subject": pd.Series(np.arange(len(X)), name="id")[TRAIN]}
    given = {"epsilon": 0.4, "groups": [0, 1], "group_at_prediction": by_group, "random_state": 0}
    ledger = PrivacyLedger()
    make(inside, ledger=ledger, **given).fit(X[TRAIN], Y[TRAIN], **rows)
    for short in (False, True):
        budget = PrivacyLedger(ledger.epsilon_spent * (0.999 if short else 1.001))
        model = make(clone(inside).set_params(ledger=budget), ledger=budget, **given)
        with (
            pytest.raises(BudgetExceededError, match=f"^{make.__name__} would bring")
            if short
            else contextlib.nullcontext()
        ):
            model.fit(X[TRAIN], Y[TRAIN], **rows)
        assert len(budget.entries) == (0 if short else 2)


def test_a_ledger_of_both_fits_has_room_for_one_without_a_guarantee():
    inside, ledger = PFLDClassifier(epsilon=None, classes=[0, 1], groups=[0, 1], random_state=0), PrivacyLedger()
    model = PrivateThresholds(inside, groups=[0, 1], ledger=ledger)
    model.fit(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    assert model.privacy_.epsilon == ledger.epsilon_spent == math.inf


def test_nothing_is_spent_on_one_ledger_where_the_other_has_no_room():
    first, second = PrivacyLedger(), PrivacyLedger(epsilon=0.3)
    inside = clone(PRIVATE["thresholds"][1]).set_params(ledger=first)
    model, rows = PrivateThresholds(inside, epsilon=0.4, groups=[0, 1], ledger=second), {"sensitive_features": GROUPS}
    with pytest.raises(BudgetExceededError, match=r"^PrivateThresholds would bring"):
        model.fit(X, Y, **rows)
    assert not first.entries and not second.entries
    model.set_params(ledger=PrivacyLedger(epsilon=0.401)).fit(X, Y, **rows)
    assert len(first.entries) == len(model.ledger.entries) == 1


@pytest.mark.filterwarnings("ignore:.*cannot see what these read")
def test_the_first_model_stays_where_the_ledger_refuses_the_second():
    """Of a pipeline nothing is planned before it is fitted."""
    inside = make_pipeline(FunctionTransformer(), PRIVATE["thresholds"][1])
    model = PrivateThresholds(inside, epsilon=0.8, groups=[0, 1], ledger=PrivacyLedger(epsilon=1.0))
    with pytest.raises(BudgetExceededError):
        model.fit(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    assert model.estimator_.predict(X[TEST]).shape == (len(X[TEST]),)


@pytest.mark.parametrize(
    ("settings", "rows", "said"),
    [
        ({}, {}, "needs the groups"),
        ({"groups": [0, 2]}, {"sensitive_features": GROUPS}, "not in 'groups'"),
        ({"noise_seed": 0}, {"sensitive_features": GROUPS}, "noise_seed"),
        ({"estimator": PRIVATE["barycenter"][1]}, {"sensitive_features": GROUPS}, "must be a classifier"),
    ],
)
def test_nothing_is_spent_on_a_model_whose_second_fit_cannot_be(settings, rows, said):
    ledger, given = PrivacyLedger(), {"estimator": PRIVATE["thresholds"][1], "groups": [0, 1], **settings}
    with ledger, pytest.raises(ValueError, match=said):
        PrivateThresholds(**given).fit(X, Y, **rows)
    assert not ledger.entries


@pytest.mark.filterwarnings("ignore:.*cannot see what these read")
@pytest.mark.parametrize("kind", PRIVATE)
def test_no_report_of_an_earlier_fit_stands_beside_a_new_model(kind):
    make, inside, _ = PRIVATE[kind]
    inside = make_pipeline(FunctionTransformer(), clone(inside))  # of which nothing is planned before it is fitted
    model = make(inside, epsilon=0.4, group_at_prediction=True, groups=[0, 1])
    model.fit(pd.DataFrame(X[TRAIN]).add_prefix("x"), Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    inside[-1].set_params(epsilon=2.0)
    model.set_params(ledger=PrivacyLedger(epsilon=2.005))
    with pytest.raises(BudgetExceededError):
        model.fit(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    assert model.estimator_[-1].privacy_.epsilon > 1.9 and not hasattr(model, "privacy_")
    with pytest.raises(NotFittedError):
        model.predict(X[TEST], sensitive_features=GROUPS[TEST])
    model.set_params(ledger=None).fit(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN])
    assert not hasattr(model, "feature_names_in_") and model.privacy_.epsilon > 2.0


@pytest.mark.filterwarnings("ignore:.*cannot see what these read")
def test_the_model_inside_does_not_read_the_columns_of_the_group():
    table = pd.DataFrame(X[TRAIN]).add_prefix("x").assign(group=GROUPS[TRAIN])
    own = clone(PRIVATE["thresholds"][1]).set_params(lam=0.5, groups=[0, 1])
    for inside in (own, make_pipeline(FunctionTransformer(), own)):
        model = PrivateThresholds(inside, sensitive_columns="group", groups=[0, 1], group_at_prediction=True)
        model.fit(table, Y[TRAIN])
        assert model.estimator_.n_features_in_ == table.shape[1] - 1 and len(model.predict(table)) == len(table)


@pytest.mark.filterwarnings("ignore:.*cannot see what these read")
@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_inside_gets_the_groups_and_the_subjects(routing):
    inside = make_pipeline(FunctionTransformer(), PRIVATE["thresholds"][1])
    ids = pd.Series(np.arange(len(X[TRAIN])) // 2, name="person")
    with sklearn.config_context(enable_metadata_routing=routing):
        model = PrivateThresholds(inside, groups=[0, 1], group_at_prediction=True)
        model.fit(X[TRAIN], Y[TRAIN], sensitive_features=GROUPS[TRAIN], subject=ids)
    assert [part.rows_of for part in model.privacy_.parts] == ["person", "person"]


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("by_subject", [False, True])
def test_one_total_is_divided_by_one_factor_and_all_of_it_is_spent(kind, by_subject):
    make, inside, _ = PRIVATE[kind]
    rows = {"sensitive_features": GROUPS[TRAIN]}
    if by_subject:
        rows["subject"] = pd.Series(np.arange(len(X)), name="id")[TRAIN]
    inside, ledger = clone(inside).set_params(delta=1e-6), PrivacyLedger(epsilon=1.0)
    given = {"epsilon": 0.4, "total_epsilon": 1.0, "groups": [0, 1], "group_at_prediction": True}
    both = make(inside, ledger=ledger, **given).fit(X[TRAIN], Y[TRAIN], **rows)
    assert 0.9999 < both.privacy_.epsilon <= 1.0 and both.privacy_.epsilon == ledger.epsilon_spent
    assert both.get_params(deep=False)["epsilon"] == 0.4 and both.estimator is inside and inside.epsilon == 0.8
    assert both.privacy_.parts[0].epsilon == pytest.approx(both.estimator_.epsilon / 2, rel=1e-4)


@pytest.mark.parametrize("total", [None, 1.0])
def test_a_search_of_scikit_learn_fits_both_on_each_fold(total):
    """Fits of such a search charged the ledger, and then failed for what scikit-learn had put on them."""
    table, ledger = np.column_stack([X[TRAIN], GROUPS[TRAIN]]), PrivacyLedger()
    model = PrivateThresholds(
        PRIVATE["thresholds"][1], total_epsilon=total, groups=[0, 1], sensitive_columns=[X.shape[1]], ledger=ledger
    )
    search = GridSearchCV(model, {"group_at_prediction": [True]}, cv=KFold(2)).fit(table, Y[TRAIN])
    assert search.best_score_ > 0.6 and len(ledger.entries) == 6


def test_what_both_cost_by_a_total_is_said_instead_of_a_plan():
    model = PrivateThresholds(PRIVATE["thresholds"][1], total_epsilon=1.5, groups=[0, 1])
    with pytest.raises(NotFittedError, match=r"Both fits cost total_epsilon=1\.5 at delta=1e-05"):
        model.planned_privacy(X, Y, sensitive_features=GROUPS)


def test_a_total_covers_the_release_of_a_schema():
    table = pd.DataFrame({"a": X[:, 0].round(1), "c": np.where(X[:, 1] > 0, "p", "n"), "g": GROUPS, "y": Y})
    schema = Schema.release(
        table, epsilon=0.3, known={"a": Number(-5, 5), "g": Category([0, 1]), "y": Category([0, 1])}, label="y",
        groups="g",
    )  # fmt: skip
    inside = FairDPSGDClassifier(schema=schema, lam=0.0, random_state=0)
    model = PrivateThresholds(inside, schema=schema, total_epsilon=1.0).fit(table)
    assert 0.9999 < model.privacy_.epsilon <= 1.0 and len(model.privacy_.parts) == 3
    with pytest.raises(ValueError, match="No budget of its fits brings PrivateThresholds to total_epsilon="):
        PrivateThresholds(inside, schema=schema, total_epsilon=0.2).fit(table)


@pytest.mark.filterwarnings("ignore:.*cannot see what these read")
@pytest.mark.parametrize(
    ("inside", "total", "says"),
    [
        (PUBLIC, 1.0, "and not fitted yet; this LogisticRegression is not"),
        (LogisticRegression(), 1.0, "and not fitted yet; this LogisticRegression is not"),
        (make_pipeline(FunctionTransformer(), PRIVATE["thresholds"][1]), 1.0, "a Pipeline has none"),
        (PFLDClassifier(epsilon=None, classes=[0, 1], groups=[0, 1]), 1.0, "with an 'epsilon', and a plan"),
        (PRIVATE["thresholds"][1], 1.1e-3, "leaves its tables an epsilon below 0.001"),
        (PRIVATE["thresholds"][1], 0.0, "'total_epsilon' parameter"),
        (clone(PRIVATE["thresholds"][1]).set_params(noise_multiplier=5.0, epsilon=9.0), 0.1, "noise_multiplier"),
    ],
)
def test_a_total_that_cannot_be_divided_is_refused_before_anything_is_spent(inside, total, says):
    ledger = PrivacyLedger()
    model = PrivateThresholds(inside, total_epsilon=total, groups=[0, 1], ledger=ledger)
    with pytest.raises(ValueError, match=says):
        model.fit(X, Y, sensitive_features=GROUPS)
    assert not ledger.entries
