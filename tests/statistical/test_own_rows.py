"""Rows from the private table's own noisy tables: what goes into each release, what is certified, and nothing else.

Watched is the one door that every release passes through, on tables that differ in one replaced row: features, label
and group.
"""

import math
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest

from skfairdp import IDP3, FairDPSGDClassifier, FairPATEClassifier, PATEClassifier, PrivacyLedger, SyntheticRows
from skfairdp.ensemble import LogisticTeachers
from skfairdp.exceptions import FairnessWarning
from skfairdp.gradient import mlp
from skfairdp.pate import ConstrainedStudent
from skfairdp.privacy import GaussianDpEvent, NoiseSource, NoisyVotes, compose, epsilon_of, gdp_mu
from skfairdp.schema import Category, Number, Schema, SchemaEncoder
from tests._tools.inside import grid_counts, number_column
from tests._tools.sources import FixedAnswers, fixed_entropy, installed, moves, recording_noise

N = 60
SETTINGS = {
    "two classes": {},
    "three classes": {"classes": [0, 1, 2]},
    "no groups": {"gamma": None},
    "votes by group": {"student": ConstrainedStudent()},
    "few bins": {"public_data": SyntheticRows(budget_share=0.8, n_rows=40, n_bins=2)},
}
#: Rows that may take the place of any other.
STRANGERS = [([1e12, -1e12, 1.0], 1, 1), ([0.0, 0.0, 0.0], 0, 1), ([np.pi, 1e-9, -1.0], 1, 0)]


def counts_of(column, X):
    return grid_counts([column], X)[0]


def codes_of(column, X):
    return column.coding.encode(column.entries(X))


def world(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    X[:, 2] = X[:, 2] > 0
    return X, (X[:, 0] > 0.3).astype(int), (rng.random(N) < 0.4).astype(int)


def replaced(position, stranger):
    X, y, groups = world()
    X[position], y[position], groups[position] = stranger
    return X, y, groups


def fit(table, **settings):
    X, y, groups = table
    given = {"epsilon": 4.0, "n_teachers": 6, "classes": [0, 1], "groups": [0, 1], "random_state": 0}
    given["public_data"] = SyntheticRows(n_rows=50)
    model = FairPATEClassifier(**{**given, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # so few rows that there is hardly more than noise
        return model.fit(X, y, sensitive_features=None if settings.get("gamma", 0) is None else groups)


def releases_of(table, **settings):
    with installed(FixedAnswers()) as source:
        model = fit(table, **settings)
    return source, model


@pytest.mark.parametrize("name", SETTINGS)
def test_no_release_moves_further_than_its_declared_sensitivity(name):
    no_release_moves_further(name, range(0, N, 20))


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_no_release_moves_further_whichever_row_is_replaced(name):
    no_release_moves_further(name, range(0, N, 3))


def no_release_moves_further(name, positions):
    here, model = releases_of(world(), **SETTINGS[name])
    reached = np.zeros(len(here.log))
    for position in positions:
        for stranger in STRANGERS:
            there, other = releases_of(replaced(position, stranger), **SETTINGS[name])
            assert model.privacy_ == other.privacy_
            reached = np.maximum(reached, moves(here, there))
    # A pair's score counts distances, of which one row may move two against each other.
    assert np.count_nonzero(reached > 0.9) >= len(reached) - 1, "the neighbours are too tame to test anything"


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_certified_is_what_the_noise_of_tables_and_votes_costs_together(name):
    with recording_noise(0) as record:
        model = fit(world(), **SETTINGS[name])
    kinds = {type(release.mechanism) for release in record.releases}
    assert NoisyVotes in kinds and len(kinds) == 2
    squared = 0.0
    for release in record.releases:
        times = len(release.value) if isinstance(release.mechanism, NoisyVotes) else 1
        squared += times * (release.adds.sensitivity / release.adds.sigma) ** 2
    declared = model.privacy_.event
    spent = epsilon_of(GaussianDpEvent(1 / math.sqrt(squared)), 1e-5)
    assert spent <= model.privacy_.epsilon * (1 + 1e-9)  # fewer pairs than declared cost less
    assert model.privacy_.epsilon == epsilon_of(declared, 1e-5) <= 4.0
    assert squared > 0.7 * gdp_mu(4.0, 1e-5) ** 2


def test_the_tables_cost_their_share_and_the_votes_the_rest():
    for share in (0.1, 0.5, 0.9):
        data = world()
        model = FairPATEClassifier(
            classes=[0, 1], groups=[0, 1], n_teachers=6, public_data=SyntheticRows(budget_share=share)
        )
        plan = model._plan(model._read(data[0], data[1], sensitive_features=data[2]))
        allowed = gdp_mu(1.0, 1e-5) ** 2
        assert plan.rows.mu**2 == pytest.approx(share * allowed)
        assert epsilon_of(plan.rows.event, 1e-5) < epsilon_of(plan.event, 1e-5) <= 1.0
        assert plan.event == compose(plan.rows.event, plan.look.event, plan.votes.event)
        assert plan.look.mu**2 == pytest.approx(0.1 * (1 - share) * allowed)
        assert 0 < plan.trust < 1


@pytest.mark.parametrize("voting", ["soft", "gnmax", "confident"])
def test_replaying_the_releases_gives_the_rows_and_the_student_without_the_private_rows(voting):
    X, y, groups = world()
    with fixed_entropy(0), recording_noise(np.random.default_rng(0)) as record:
        here = fit((X, y, groups), voting=voting)
    with fixed_entropy(0), recording_noise(replay=record):
        there = fit((-50 * X[::-1], 1 - y, 1 - groups), voting=voting)
    assert joblib.hash(here._lessons.public.X) == joblib.hash(there._lessons.public.X)
    assert here._lessons.trust == there._lessons.trust
    np.testing.assert_array_equal(here._lessons.public.groups, there._lessons.public.groups)
    assert joblib.hash(vars(here)) == joblib.hash(vars(there))


def test_no_sampled_row_is_a_private_one():
    X, y, groups = world()
    model = fit((X, y, groups), epsilon=1e4)
    private = set(X[:, :2].ravel().tolist())
    assert not private & set(model._lessons.public.X.ravel().tolist())


def test_the_weight_of_the_tables_follows_public_numbers_only():
    def trust(table, **settings):
        return fit(table, **settings)._lessons.trust

    assert trust(world()) == trust(world(1)) == trust(replaced(3, STRANGERS[0]))
    loud = SyntheticRows(budget_share=0.1, n_rows=50)
    assert trust(world(), public_data=loud) < trust(world())


def test_a_schema_says_where_categories_and_bounds_stand_so_that_no_block_is_torn():
    rng = np.random.default_rng(0)
    columns = {
        "age": Number(18, 90, step=1, missing=True),
        "job": Category(["clerk", "nurse", "pilot"]),
        "pay": Number(0.0, 10.0),
        "hired": Category(["no", "yes"]),
    }
    schema = Schema(columns, label="hired")
    n = 4000
    table = {
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 91, n)),
        "job": rng.choice(["clerk", "nurse", "pilot"], n),
        "pay": rng.choice([0.0, 2.5], n),
        "hired": rng.choice(["no", "yes"], n),
    }
    frame = pd.DataFrame(table)
    model = PATEClassifier(epsilon=15.0, schema=schema, random_state=0).fit(frame)
    rows = model._lessons.public.X
    encoded = SchemaEncoder(schema).transform(frame)
    assert rows.shape[1] == encoded.shape[1] == 6
    jobs = rows[:, 2:5]
    assert set(np.unique(jobs)) == {0.0, 1.0} and (jobs.sum(axis=1) <= 1).all() and jobs.sum() > 0.99 * len(rows)
    np.testing.assert_array_equal(rows[rows[:, 1] == 1, 0], 0.0)  # missing ages
    ages = (rows[rows[:, 1] == 0, 0] * (90 - 18) + 18 + 90) / 2
    np.testing.assert_allclose(ages, np.round(ages))
    np.testing.assert_allclose(rows.mean(axis=0), encoded.mean(axis=0), atol=0.06)
    assert np.mean(rows[:, 5] == -1.0) == pytest.approx(0.5, abs=0.05)  # pay of exactly 0


@pytest.mark.slow
def test_noise_alone_hardly_ever_stretches_a_column():
    """Nor do empty bins far out: a thousand of them, in each of a hundred fits."""
    X, y, groups = np.zeros((N, 10)), np.arange(N) % 2, np.arange(N) // 2 % 2
    plan = SyntheticRows(n_rows=40).plan(n_rows=N, n_features=10, n_groups=2, n_classes=2, epsilon=1.0, delta=1e-5)
    noise = NoiseSource(seed=0)
    rng = np.random.default_rng(0)
    largest = [np.abs(plan.release(X, y, groups, noise, rng).X).max() for _ in range(100)]
    assert max(largest) <= 1.0


def test_a_post_processor_around_it_is_one_entry_and_one_epsilon():
    X, y, groups = world()
    ledger = PrivacyLedger()
    inner = FairPATEClassifier(classes=[0, 1], groups=[0, 1], n_teachers=6, ledger=ledger, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        idp = IDP3(inner, groups=[0, 1], min_count=5).fit(X, y, sensitive_features=groups)
    (entry,) = ledger.entries
    assert entry.event == idp.estimator_.privacy_.event and idp.estimator_.privacy_.epsilon <= 1.0
    assert entry.releases[-1] == "answers of the student by group"


def test_dp_sgd_takes_parity_from_the_private_rows_where_there_are_no_public_ones():
    X, y, groups = world()
    net = mlp((4,), max_epochs=1, batch_size=20)
    model = FairDPSGDClassifier(classes=[0, 1], groups=[0, 1], net=net, random_state=0)
    plans = [model.planned_privacy(X, y, sensitive_features=groups)]
    plans.append(model.set_params(parity="signed_loss").planned_privacy(X, y, sensitive_features=groups))
    assert plans[0].event == plans[1].event
    with pytest.raises(ValueError, match="needs public rows"):
        model.set_params(parity="public_penalty").planned_privacy(X, y, sensitive_features=groups)


def test_rows_are_sampled_on_both_sides_where_noise_hides_one():
    """Where only [1, 2) shows above the noise, a column of numbers around 0 is not taken to lie in [1, 2) alone."""
    from tests._tools.inside import number_column

    column, rng = number_column((0,), None, None), np.random.default_rng(0)
    X = rng.normal(size=(4000, 1))
    counts = counts_of(column, X)
    shown = np.where(np.arange(len(column.grid)) == np.searchsorted(column.grid, 1.5) - 1, 700.0, 0.0)
    hidden = column.settled(shown, evidence=600.0, n_bins=8, n_rows=4000)
    np.testing.assert_allclose(hidden.coding.starts, np.linspace(-2, 2, 9)[:-1])
    clear = column.settled(counts.astype(float), evidence=20.0, n_bins=8, n_rows=4000)
    few = column.settled(shown, evidence=600.0, n_bins=8, n_rows=1000)  # most rows are seen, and they are there
    assert clear.coding.starts.min() < -2 and few.coding.starts.min() >= 1.0


def test_a_column_within_wide_bounds_gets_bins_of_about_equal_rows():
    """Noise hides many small bins near 0 one by one: together they hold most of the rows."""
    rng, n, sigma, column = np.random.default_rng(0), 4000, 71.0, number_column((0,), (-6.0, 8.0))
    fullest = []
    for _ in range(20):
        X = rng.normal(size=(n, 1))
        noisy = counts_of(column, (X - 1) / 7) + sigma * rng.normal(
            size=len(column.grid)
        )  # the matrix has them in [-1, 1]
        starts = column.settled(noisy, 5 * sigma, 23, n).coding.starts
        fullest.append(np.bincount(np.searchsorted(starts, X[:, 0], side="right")).max() / n)
    assert np.mean(fullest) < 0.15 and max(fullest) < 0.3, fullest


def drawn(column, X, noisy, n_bins=6, sigma=1.0):
    """A column's numbers drawn anew as often as each bin holds them, and the bins."""
    settled = column.settled(noisy, 5 * sigma, n_bins, len(X))
    out = np.zeros((len(X), 2))
    settled.write(codes_of(settled, X), out, np.random.default_rng(1))
    return out, settled


@pytest.mark.parametrize("bounds", [(-6.0, 8.0), (-60.0, 80.0), None])
def test_numbers_are_drawn_within_few_wide_bins_as_the_released_counts_are_spread(bounds):
    """Six bins of equal rows within wide bounds: drawn evenly, the outer two would reach out to the bounds."""
    rng, sigma = np.random.default_rng(0), 30.0
    column, values = number_column((0,), bounds), rng.normal(size=(8000, 1))
    low, high = (-1.0, 1.0) if bounds is None else bounds
    X = np.column_stack([2 * (values - low) / (high - low) - 1, np.zeros(8000)])
    noisy = counts_of(column, X) + sigma * rng.normal(size=len(column.grid))
    out, _ = drawn(column, X, noisy, sigma=sigma)
    found = (out[:, 0] + 1) * (high - low) / 2 + low
    assert found.std() < 1.5 and np.abs(np.quantile(found, [0.1, 0.5, 0.9]) - [-1.28, 0.0, 1.28]).max() < 0.35


def test_a_number_is_drawn_from_its_own_bin_and_stays_missing_or_whole():
    rng = np.random.default_rng(0)
    column = number_column((0, 1), (0.0, 100.0), 1.0)
    X = np.column_stack([rng.integers(0, 60, size=5000) / 50 - 1, (rng.random(5000) < 0.1).astype(float)])
    out, settled = drawn(column, X, counts_of(column, X).astype(float), n_bins=4)
    np.testing.assert_array_equal(out[:, 1], X[:, 1])
    known = X[:, 1] == 0
    numbers = (out[known, 0] + 1) * 50
    np.testing.assert_allclose(numbers, np.round(numbers), atol=1e-9)
    np.testing.assert_array_equal(codes_of(settled, out), codes_of(settled, X))
    assert len(settled.coding.starts) < 12 and numbers.max() < 64  # no row is above 59, and bins of the count are wide


def test_what_few_rows_hold_is_told_apart_where_most_have_one_value():
    """Of capital gains nine in ten are 0: cut into equally many rows with the others, these would share a bin."""
    column, rng, sigma = number_column((0,), (0.0, 100.0)), np.random.default_rng(0), 30.0
    gains = np.where(rng.random(20_000) < 0.9, 0.0, rng.uniform(0.0, 64.0, size=20_000))
    X = np.column_stack([gains / 50 - 1, np.zeros(20_000)])
    _, settled = drawn(
        column, X, counts_of(column, X) + sigma * rng.normal(size=len(column.grid)), n_bins=6, sigma=sigma
    )
    held = np.bincount(codes_of(settled, X[gains > 0]))
    assert held.max() < 0.4 * held.sum() and np.count_nonzero(held > 0.05 * held.sum()) >= 5


def test_noise_far_out_in_wide_bounds_is_not_taken_for_rows():
    """Bins far out are wide: a share of a hundredth there would be most of the spread.

    On average over draws: one in twenty has more than that, whatever the number of halvings (12 to 24 were tried).
    """
    column, sigma, rng = number_column((0,), (0.0, 1000.0)), 40.0, np.random.default_rng(0)
    shares = []
    for _ in range(100):
        X = np.column_stack([np.exp(rng.normal(size=4000)) / 500 - 1, np.zeros(4000)])
        noisy = counts_of(column, X) + sigma * rng.normal(size=len(column.grid))
        out, _ = drawn(column, X, noisy, sigma=sigma)
        shares.append(np.mean((out[:, 0] + 1) * 500 > 100))
    assert np.mean(shares) < 0.004


@pytest.mark.few(1)
@pytest.mark.parametrize("has_schema", [True, False])
def test_pate_learns_from_its_own_rows_with_wide_bounds_and_with_none(has_schema):
    """4,000 rows at ε = 1, a line that says it all: from 24 bins, drawn evenly, it learned about two points."""
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8000, 8))
        score = X @ rng.normal(size=8)
        y = (score > np.quantile(score, 0.76)).astype(int)
        settings = {"epsilon": 1.0, "random_state": seed, "noise_seed": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # noise that can be repeated is no secret
            if has_schema:
                table = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y)
                schema = Schema({name: Number(-9, 9) for name in "abcdefgh"} | {"y": Category([0, 1])}, label="y")
                model = PATEClassifier(schema=schema, **settings).fit(table[:4000])
                predicted = np.asarray(model.predict(table[4000:])).astype(int)
            else:
                predicted = PATEClassifier(classes=[0, 1], **settings).fit(X[:4000], y[:4000]).predict(X[4000:])
        gains.append(np.mean(predicted == y[4000:]) - 0.76)
    assert np.mean(gains) > 0.06, gains


def hidden_ranges(seed, n=1000, **settings):
    """Numbers in the hundreds and thousands: too few rows at ε = 1 for the first counts to show where they lie."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(100.0, 2000.0, size=(n, 16))
    y = (X[:, 0] + 300 * rng.normal(size=n) > 1900).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise that can be repeated is no secret, and most rows have one class
        return PATEClassifier(classes=[0, 1], random_state=seed, noise_seed=seed, **settings).fit(X, y), X, y


def test_a_row_beyond_the_sampled_ones_counts_as_the_nearest_within():
    """A student that follows its slopes a thousand times further than any row it learned from says nothing there."""
    model, X, _ = hidden_ranges(4, teacher=LogisticTeachers(C=3.0))  # beside which there are no sums
    sampled, (low, high) = model._lessons.public.X, model._lessons.limits
    assert (low <= sampled.min(axis=0)).all() and (high >= sampled.max(axis=0)).all()
    assert (np.maximum(-low, high) <= 2 * np.abs(sampled).max(axis=0)).all()
    far = model.student_.predict_proba(X)  # what it would say, if it were asked out there
    assert np.abs(far - model.predict_proba(X)).max() > 0.5
    np.testing.assert_array_equal(model.predict(X), model.predict(np.clip(X, low, high)))
    np.testing.assert_array_equal(model.predict_proba(X), model.student_.predict_proba(np.clip(X, low, high)))


def test_a_table_that_nobody_has_scaled_is_not_answered_with_the_rare_class():
    behind = []
    for seed in range(6):
        model, X, y = hidden_ranges(seed)
        behind.append(max(y.mean(), 1 - y.mean()) - np.mean(model.predict(X) == y))
    assert max(behind) < 0.1 and np.mean(behind) < 0.03, behind


def test_a_missing_number_is_counted_in_no_bin():
    """It stands as 0 beside its mark: at 0 there would be as many rows more."""
    X = np.column_stack([np.r_[np.full(30, 0.5), np.zeros(70)], np.r_[np.zeros(30), np.ones(70)]])
    for bounds in (None, (-1.0, 1.0), (0.0, 8.0)):
        column = number_column((0, 1), bounds)
        counts = counts_of(column, X)
        assert counts.sum() == 30 == counts.max()
