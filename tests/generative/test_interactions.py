"""Labels that follow from several columns only together: what a fit pays to see them, and what it makes of them."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skfairdp import PFGuardGenerator, PrivacyLedger, SyntheticDataClassifier
from skfairdp.generative import MarginalsBackend
from skfairdp.privacy import ExponentialMechanism, NeighboringRelation, NoiseSource, epsilon_of
from skfairdp.schema import Category, Schema
from tests._tools.inside import InteractionModel, Layout, Levels, Rows, Surprise, sets_of, verify_file
from tests._tools.sources import FixedAnswers, moves

FLAGS = {"classes": [0, 1], "bounds": (0, 1), "dtypes": "int64"}


def parity_of(n_rows, n_columns, k, *, seed, flip=0.0):
    """Flags, and a label that is the parity of k of them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_rows, n_columns))
    y = X[:, rng.choice(n_columns, k, replace=False)].sum(axis=1) % 2
    return X, np.where(rng.random(n_rows) < flip, 1 - y, y)


def fitted(X, y, structure, **given):
    backend = MarginalsBackend(structure=structure)
    model = SyntheticDataClassifier(HistGradientBoostingClassifier(random_state=0), backend=backend, random_state=0,
                                    **{**FLAGS, **given})  # fmt: skip
    return model.fit(X, y)


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize(("n_columns", "k"), [(10, 5), (24, 4)])
def test_a_parity_of_several_columns_is_learned_where_pairs_say_nothing(n_columns, k):
    X, y = parity_of(12_000, n_columns, k, seed=n_columns)
    models = {structure: fitted(X[:8000], y[:8000], structure, epsilon=1.0) for structure in ("auto", "tree")}
    auroc = {name: roc_auc_score(y[8000:], model.predict_proba(X[8000:])[:, 1]) for name, model in models.items()}
    assert auroc["auto"] > 0.9 and abs(auroc["tree"] - 0.5) < 0.1


@pytest.mark.few(1)
def test_a_table_without_interactions_keeps_the_tree():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (8000, 8))
    y = (rng.random(8000) < expit(X.sum(axis=1) - 4.0)).astype(int)
    for seed in range(3):
        generator = PFGuardGenerator(epsilon=1.0, balance=None, random_state=seed, **FLAGS).fit(X, y)
        assert not isinstance(generator.model_, InteractionModel)


def surprise_of(n_classes, rng, n_columns=4, n_sampled=400):
    levels = Levels(tuple(np.arange(3) for _ in range(n_columns)))
    sampled = rng.integers(0, 3, (n_columns, n_sampled))
    return Surprise(levels, sampled, rng.integers(0, n_classes, n_sampled), n_classes, n_rows=40)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_replaced_row_moves_a_score_by_two_at_most_and_somewhere_nearly_by_that(n_classes):
    rng, furthest = np.random.default_rng(0), 0.0
    surprise = surprise_of(n_classes, rng)
    sets = sets_of(surprise.levels, 10**6)
    for _ in range(60):
        rows, labels = rng.integers(0, 3, (4, 40)), rng.integers(0, n_classes, 40)
        others, other_labels = rows.copy(), labels.copy()
        place = int(rng.integers(40))
        others[:, place], other_labels[place] = rng.integers(0, 3, 4), rng.integers(n_classes)
        moved = np.abs(surprise.scores(rows, labels, sets) - surprise.scores(others, other_labels, sets)).max()
        furthest = max(furthest, float(moved))
    assert furthest <= 2.0  # exact, as all sums are of multiples of a grid
    assert furthest > 1.2


def test_scores_are_exact_sums_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(1)
    surprise = surprise_of(2, rng)
    rows, labels, order = rng.integers(0, 3, (4, 500)), rng.integers(0, 2, 500), rng.permutation(500)
    sets = sets_of(surprise.levels, 10**6)
    np.testing.assert_array_equal(
        surprise.scores(rows, labels, sets), surprise.scores(rows[:, order], labels[order], sets)
    )


@pytest.mark.parametrize("lost", [0, 20_000, 39_999])
def test_who_is_looked_at_does_not_follow_from_who_has_rows(lost):
    """Of 40,000 subjects 32,768 are: one without rows moves nobody else into their number."""
    rng, n = np.random.default_rng(0), 40_000
    layout = Layout("codes", n, 5, 1, 2, None, groups_known=True, relation=NeighboringRelation.REPLACE_SUBJECT)
    values, cells = rng.integers(0, 2, (n, 5)).astype(np.uint8), rng.integers(0, 2, n)

    def released(kept):
        both, half = np.ones(2, dtype=bool), np.full((1, 2), 0.5)
        rows = Rows(values[kept], cells[kept], (2,) * 5, (False,) * 5, (both,) * 5, half, half, None, kept)
        source = FixedAnswers()
        MarginalsBackend(structure="interactions").plan(layout).release(rows, 4.0, source, np.random.default_rng(1))
        return source

    here, there = released(np.arange(n)), released(np.delete(np.arange(n), lost))
    assert any(isinstance(mechanism, ExponentialMechanism) for mechanism, _ in here.log)
    moves(here, there)  # refuses any that is further than declared, and noise or a number that follows the rows


# ---- the choice --------------------------------------------------------------------------------------------------
def test_a_choice_is_made_with_chances_that_grow_by_the_score():
    mechanism, scores = ExponentialMechanism(1.5, sensitivity=2.0), np.array([0.0, 1.0, 3.0, 3.5])
    noise = NoiseSource(0)
    drawn = np.bincount([mechanism.release(scores, noise) for _ in range(4000)], minlength=4) / 4000
    expected = np.exp(float(mechanism.rate) * scores)
    np.testing.assert_allclose(drawn, expected / expected.sum(), atol=0.03)  # four standard deviations


@pytest.mark.parametrize("mu", [-1.0, 0.0, math.inf, math.nan])
def test_a_choice_without_noise_or_of_no_budget_is_refused(mu):
    with pytest.raises(ValueError, match="mu must be positive and finite"):
        ExponentialMechanism(mu)
    with pytest.raises(ValueError, match="sensitivity must be positive and finite"):
        ExponentialMechanism(1.0, sensitivity=mu)


@pytest.mark.parametrize("scores", [[], [0.0, math.nan], [math.inf, 1.0]])
def test_a_choice_by_scores_that_are_no_numbers_is_refused(scores):
    with pytest.raises(ValueError, match="must be finite numbers"):
        ExponentialMechanism(1.0).release(scores, NoiseSource(0))


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.7, 3.0, 6.0])
def test_a_choice_tells_no_more_than_gaussian_noise_of_its_event(mu):
    """Of every two-valued test whose log odds lie in a range of 2rΔ; these are the worst for a bounded range."""
    mechanism = ExponentialMechanism(mu, sensitivity=2.0)
    half = float(mechanism.rate) * mechanism.sensitivity
    for middle in np.linspace(-half, half, 201):
        apart = norm.isf(expit(-(middle + half))) - norm.isf(expit(-(middle - half)))
        assert apart <= mu * (1 + 1e-9)
    assert math.isclose(norm.isf(expit(-half)) * 2, mu, rel_tol=1e-6)  # and no budget is given away
    assert mechanism.event.noise_multiplier == 1 / mu and isinstance(mechanism.rate, Fraction)


@pytest.mark.parametrize(("n_columns", "choices"), [(10, 1), (30, 2)])
@pytest.mark.parametrize("relation", [NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SUBJECT])
def test_what_is_certified_covers_all_choices_and_the_counts(relation, n_columns, choices):
    layout = Layout("codes", 20_000, n_columns, 2, 2, None, groups_known=True, relation=relation)
    plan, tree = MarginalsBackend().plan(layout), MarginalsBackend(structure="tree").plan(layout)
    scale = 4.0
    assert epsilon_of(plan.event_at(scale), 1e-5) == pytest.approx(epsilon_of(tree.event_at(scale), 1e-5), rel=1e-9)
    choice, joint = plan.choice_at(scale), plan.joint_at(scale)
    assert choices * choice.mu**2 + (joint.sensitivity / joint.sigma) ** 2 == pytest.approx(0.1 / scale**2)
    assert choice.relation == joint.relation == relation


@pytest.mark.parametrize("subject", [None, "rows of two"])
def test_another_accountant_finds_the_cost_and_all_that_was_released(tmp_path, subject):
    X, y = parity_of(6000, 5, 3, seed=0)
    ids = None if subject is None else pd.Series(np.arange(6000) // 2, name="person")
    backend, ledger = MarginalsBackend(structure="interactions"), PrivacyLedger()
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=2.0, backend=backend, random_state=0, ledger=ledger,
                                    **FLAGS).fit(X, y, subject=ids)  # fmt: skip
    choices = [one.times for one in model.privacy_.performed if one.mechanism == "ExponentialMechanism"]
    assert choices == [1] and isinstance(model.generator_.model_, InteractionModel)
    assert ledger.entries[0].event == model.privacy_.event and model.privacy_.epsilon <= 2.0
    (tmp_path / "statement.json").write_text(model.privacy_statement().to_json())
    assert all(check.holds for check in verify_file(tmp_path / "statement.json"))


# ---- where there is one, and what the rows follow ----------------------------------------------------------------
def test_rows_follow_the_density_that_the_model_states():
    X, y = parity_of(8000, 4, 3, seed=0, flip=0.1)
    generator = PFGuardGenerator(epsilon=8.0, balance=None, random_state=0, **FLAGS).fit(X, y)
    model, rng = generator.model_, np.random.default_rng(0)
    assert isinstance(model, InteractionModel)
    n_codes = generator._codec.n_codes
    cells = np.repeat([0, 1], 20_000)
    codes = model.sample(cells, rng)
    every = np.stack(np.meshgrid(*[np.arange(n) for n in n_codes], indexing="ij"), axis=-1).reshape(-1, len(n_codes))
    stated = np.exp(model.log_likelihood(every))
    np.testing.assert_allclose(stated.sum(axis=0), 1.0, atol=0.03)  # what is kept is estimated by sampled rows
    places = np.ravel_multi_index(codes.T, n_codes)
    for cell in (0, 1):
        found = np.bincount(places[cells == cell], minlength=len(every)) / 20_000
        np.testing.assert_allclose(found, stated[:, cell], atol=0.015)


@pytest.mark.parametrize(
    ("layout", "taken"),
    [
        ({}, "interactions"),
        ({"n_rows": 4999}, "tree"),
        ({"tells_interactions": False}, "tree"),
        ({"n_classes": 1}, "tree"),
        ({"n_columns": 2}, "tree"),
        ({"n_columns": 200}, "interactions"),
        ({"n_columns": 201}, "tree"),  # of which no sets would be scored
    ],
)
def test_an_interaction_is_looked_for_by_public_numbers_alone(layout, taken):
    usual = {"n_rows": 5000, "n_columns": 10, "n_groups": 2, "n_classes": 2, "balance": None, "groups_known": True}
    plan = MarginalsBackend().plan(Layout("codes", **{**usual, **layout}))
    assert (plan.joint_share > 0) == (taken == "interactions")
    assert ("its counts by label" in plan.releases) == (taken == "interactions")


def test_rows_in_chunks_are_refused_by_name_and_before_anything_is_spent():
    schema = Schema({"a": Category([0, 1]), "b": Category([0, 1]), "c": Category([0, 1]), "y": Category([0, 1])},
                    label="y")  # fmt: skip
    ledger = PrivacyLedger()
    generator = PFGuardGenerator(backend=MarginalsBackend(structure="interactions"), schema=schema, balance=None,
                                 ledger=ledger)  # fmt: skip
    with pytest.raises(ValueError, match="table in memory only"):
        generator.fit(lambda: [pd.DataFrame({name: [0, 1] for name in "abcy"})])
    assert not ledger.entries


def test_of_many_columns_unions_of_pairs_are_scored():
    levels = Levels(tuple(np.arange(2) for _ in range(30)))
    sets = sets_of(levels, 20_000)
    assert len(sets) == math.comb(15, 5) and {len(some) for some in sets} == {10}
    assert all(len(some) <= 5 for some in sets_of(levels, 20_000, sets[0]))
    few = sets_of(levels, 300)  # 32 cells with eight rows each
    assert few and max(levels.n_cells(some) for some in few) * 8 <= 300


def test_numbers_count_as_below_and_above_their_median_and_rare_codes_by_no_level_of_their_own():
    levels = Levels.of([np.full(20, 0.05), np.array([0.5, 0.495, 0.005]), np.array([1.0, 0.0])])
    assert levels.sizes == [2, 2, 1] and levels.of_code[0].tolist() == [0] * 10 + [1] * 10


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
def test_new_rows_with_unlisted_and_missing_values_are_answered():
    X, y = parity_of(6000, 4, 3, seed=0)
    table = pd.DataFrame(X, columns=list("abcd")).replace({0: "no", 1: "yes"}).assign(y=y)
    schema = Schema({**{name: Category(["no", "yes"]) for name in "abcd"}, "y": Category([0, 1])}, label="y")
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=8.0, schema=schema, random_state=0).fit(table)
    assert isinstance(model.generator_.model_, InteractionModel)
    assert (model.predict(table) == y).mean() > 0.95  # a linear learner, by what the interaction says
    odd = table.head(3).assign(a=["maybe", None, "yes"])
    assert set(model.predict(odd)) <= {0, 1}


@pytest.mark.parametrize("n_columns", [4, 5])
def test_a_learner_of_so_many_columns_is_refused_before_anything_is_spent(n_columns):
    """Noise has a part in whether there is a further column, so a learner must do with both."""
    X, y = parity_of(6000, 4, 3, seed=0)
    learner, ledger = HistGradientBoostingClassifier(monotonic_cst=[0] * n_columns), PrivacyLedger()
    with pytest.raises(ValueError, match=("'tree'.*" if n_columns == 4 else "") + "so nothing is spent"):
        SyntheticDataClassifier(learner, epsilon=8.0, ledger=ledger, **FLAGS).fit(X, y)
    assert not ledger.entries
