"""Where the numbers of a table lie: three noisy tables within ε, and no bounds so wide that a network sees nothing."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from skfairdp import FairDPSGDClassifier, PFLDClassifier
from skfairdp.gradient import mlp
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, NoiseSource, compose, epsilon_of, repeat
from skfairdp.schema import Boolean, Category, Number, NumberPlace, Schema, SchemaEncoder, number_places
from tests._tools.inside import (
    CELLS,
    KNOTS,
    ROUNDS,
    ColumnScales,
    ColumnTables,
    as_net,
    clipped_gradient_sum,
    module_of,
    prepare_network,
)
from tests._tools.sources import recording_noise

pytestmark = pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")

ZERO_OUT, ADD_REMOVE = NeighboringRelation.ZERO_OUT, NeighboringRelation.ADD_OR_REMOVE_ONE
PLACES = (NumberPlace(0), NumberPlace(1, 2), NumberPlace(3))


def tables(places=PLACES, n_rows=5000, epsilon=1.0, relation=ZERO_OUT):
    return ColumnTables(places, n_rows, epsilon, 1e-5, relation)


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    X[:, 2] = rng.random(n) < 0.3
    X[X[:, 2] == 1, 1] = 0.0
    X[:5, 0] = -1.0
    X[5:9, 0] = 1.0
    return X


def schema(wide=1.0):
    bounds = (-0.3 * wide * 100.0, 100.0 * wide)
    columns = {"amount": Number(*bounds), "years": Number(*bounds, missing=True), "kind": Category(["a", "b"])}
    return Schema({**columns, "label": Category([0, 1])}, label="label")


def frame(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    amount, years = rng.lognormal(1, 1, n).clip(0, 100), rng.uniform(0, 40, n)
    score = np.log(amount) - 1 + (np.abs(years - 20) < 10) + 0.5 * rng.normal(size=n)
    years[rng.random(n) < 0.1] = np.nan
    kind = rng.choice(["a", "b"], n)
    return pd.DataFrame({"amount": amount, "years": years, "kind": kind, "label": (score > 0.5).astype(int)})


# ---- privacy -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("relation", [ZERO_OUT, ADD_REMOVE])
def test_removing_any_record_moves_a_table_by_at_most_the_sensitivity(relation):
    X, one = rows(), tables(relation=relation)
    X[7] = np.nan  # a null record
    equal = np.tile(np.linspace(-1, 1, CELLS + 1), (3, 1))
    edges = np.sort(np.random.default_rng(1).uniform(-1, 1, equal.shape))
    edges[:, 0], edges[:, -1] = -1, 1
    for ends in (equal, edges):
        whole = one.table(X, ends)
        moves = [np.linalg.norm(whole - one.table(np.delete(X, i, axis=0), ends)) for i in range(40)]
        seen = [0 if i == 7 else math.sqrt(2 if X[i, 2] else 3) for i in range(40)]
        np.testing.assert_allclose(moves, seen)
        assert max(moves) == pytest.approx(one.counts.sensitivity)


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_tables_and_all_else_together_cost_at_most_epsilon(epsilon):
    model = FairDPSGDClassifier(
        epsilon=epsilon, lam=0.0, net=mlp((4,), max_epochs=1, batch_size=300), schema=schema(), random_state=0
    )
    plan = model._plan(model._read(frame(), None))
    parts = [one.event for one in (plan.tables, plan.temperature, plan.look) if one is not None]
    assert plan.tables is not None and plan.event == compose(plan.step.event, compose(*parts))
    assert plan.tables.event == repeat(plan.tables.counts.event, 3)
    assert 0.99 * epsilon <= epsilon_of(plan.event, 1e-5) <= epsilon
    with recording_noise(entropy=0) as record:
        model.fit(frame())
    found = record.of(GaussianMechanism)
    assert [release.mechanism for release in found[:ROUNDS]] == ROUNDS * [plan.tables.counts]
    assert [release.value.shape for release in found[:ROUNDS]] == ROUNDS * [(2, CELLS)]
    assert found[ROUNDS].mechanism == plan.step.sums and plan.tables.counts not in [
        release.mechanism for release in found[ROUNDS:]
    ]
    assert any("where the numbers of 2 columns lie" in words for words in plan.releases)


def test_noise_of_the_tables_grows_with_the_columns_that_a_record_moves():
    one, four = (tables(tuple(NumberPlace(j) for j in range(k)), n_rows=2000) for k in (1, 4))
    assert four.counts.sigma == pytest.approx(2 * one.counts.sigma) and four.event == one.event
    many = tables(n_rows=10**6)
    assert many.counts.sigma == pytest.approx(1e4) and many.event.event.noise_multiplier > 100


def test_given_its_releases_no_knot_hangs_on_a_row():
    chosen = [np.abs(np.random.default_rng(k).normal(400, 300, (3, CELLS))) for k in range(ROUNDS)]

    def knots(X):
        from skfairdp.privacy import _noise

        answers = iter(chosen)
        with recording_noise(answer=lambda release: next(answers)):
            return tables().release(X, _noise.open_source(0))

    np.testing.assert_array_equal(knots(rows(5000)), knots(0.3 * rows(5000, seed=1)))


def test_the_first_cells_are_equal_parts_of_the_bounds():
    with recording_noise(0) as record:
        from skfairdp.privacy import _noise

        tables().release(rows(), _noise.open_source(0))
    expected = [np.histogram(rows()[:, 0], np.linspace(-1, 1, CELLS + 1))[0]]
    np.testing.assert_array_equal(record.releases[0].value[:1], expected)


# ---- what follows from the tables -------------------------------------------------------------------------------
@pytest.mark.parametrize("zoom", [1.0, 0.1, 4e-3])
@pytest.mark.parametrize("centre", [0.0, -0.73])
def test_knots_are_quantiles_whatever_the_bounds_are(zoom, centre):
    numbers = np.random.default_rng(0).exponential(size=20_000).clip(0, 4)[:, None] * 0.1 * zoom + centre
    one = tables((NumberPlace(0),), 20_000)
    with recording_noise(np.random.default_rng(1)):
        from skfairdp.privacy import _noise

        knots = one.release(numbers, _noise.open_source(0))[0]
    shares = np.searchsorted(np.sort(numbers[:, 0]), knots) / 20_000
    np.testing.assert_allclose(shares, (np.arange(KNOTS) + 0.5) / KNOTS, atol=0.07)


@given(st.integers(0, 10_000), st.floats(0, 1e6))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_float32_tells_knots_apart_whatever_the_noise_was(seed, scale):
    from skfairdp.privacy import _noise

    rng = np.random.default_rng(seed)
    with recording_noise(answer=lambda release: scale * rng.normal(size=(3, CELLS)) ** 3) as record:
        knots = tables().release(rows(), _noise.open_source(0))
    assert len(record.releases) == ROUNDS and knots.shape == (3, KNOTS)
    assert np.all(np.diff(knots.astype(np.float32)) > 0) and knots.min() >= -1 and knots.max() <= 1


def test_where_nothing_is_clear_of_the_noise_knots_are_equally_spaced():
    from skfairdp.privacy import _noise

    with recording_noise(answer=lambda release: np.zeros((3, CELLS))):
        knots = tables().release(rows(), _noise.open_source(0))
    np.testing.assert_allclose(knots, np.tile(np.linspace(-1 + 1 / KNOTS, 1 - 1 / KNOTS, KNOTS), (3, 1)))


# ---- the layer ---------------------------------------------------------------------------------------------------
def test_numbers_are_scaled_by_their_knots_and_hats_stand_where_they_are():
    scales = ColumnScales([1], [2], 3)
    scales.knots.copy_(torch.tensor([[0.0, 0.1, 0.4]]))
    X = torch.tensor([[9.0, 0.2, 0.0], [9.0, 0.1, 0.0], [9.0, -1.0, 0.0], [9.0, 0.2, 1.0]])
    expected = [[9, 0, 0, 0, 1 / 3, 1 / 6], [9, -0.5, 0, 0, 0.5, 0], [9, -2, 0, 0.5, 0, 0], [9, 0, 1, 0, 0, 0]]
    torch.testing.assert_close(scales(X), torch.tensor(expected), atol=1e-6, rtol=1e-5)


def test_the_first_layer_treats_rows_alone_and_a_null_record_stays_one():
    scales, X = ColumnScales([0, 1, 3], [None, 2, None], KNOTS), torch.tensor(rows(), dtype=torch.float32)
    X[3] = torch.nan
    together, alone = scales(X), torch.cat([scales(row[None]) for row in X])
    assert torch.equal(together.isnan(), alone.isnan()) and together[3].isnan().any()
    assert torch.equal(together.nan_to_num(), alone.nan_to_num())


@pytest.mark.parametrize("seed", range(3))
def test_an_amount_that_few_rows_have_gets_the_knots_that_zeros_do_not_need(seed):
    rng = np.random.default_rng(seed)
    amounts = np.where(rng.random(30_000) < 0.08, rng.lognormal(8.5, 1, 30_000), 0.0).clip(0, 1e5)
    one = ColumnTables((NumberPlace(0),), 30_000, 1.0, 1e-5, ZERO_OUT, for_curves=True)
    with recording_noise(rng):
        from skfairdp.privacy import _noise

        knots = one.release((amounts / 5e4 - 1)[:, None], _noise.open_source(0))[0]
    below = np.array([(amounts[amounts > 0] < knot).mean() for knot in (knots + 1) * 5e4])
    assert below[0] == 0 and np.sum((below > 0.1) & (below < 0.99)) >= 4 and np.diff(below).max() < 0.4


@pytest.mark.parametrize("share", [0.0, 0.004])
def test_what_may_be_noise_alone_gets_no_knot_of_a_number_that_all_have(share):
    amounts = np.where(np.random.default_rng(0).random(30_000) < share, 0.5, -1.0)[:, None]
    one = ColumnTables((NumberPlace(0),), 30_000, 1.0, 1e-5, ZERO_OUT, for_curves=True)
    with recording_noise(np.random.default_rng(1)):
        from skfairdp.privacy import _noise

        assert one.release(amounts, _noise.open_source(0))[0, -2] < -0.99


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_no_row_moves_a_sum_of_scaled_rows_past_the_bound(hidden):
    """Clipped by what the network multiplies: scaled numbers and hats, wherever the knots lie."""
    net = as_net(mlp(hidden), owner="FairDPSGDClassifier")
    scales = ColumnScales([0, 1, 3], [None, 2, None], KNOTS)
    module = prepare_network(net, 4, 2, seed=0, owner="FairDPSGDClassifier", scales=scales).module
    module[0].set_knots(np.linspace([-1e-3, -0.9, 0.2], [1e-3, 0.9, 0.3], KNOTS).T)  # numbers up to twice their range
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    X = torch.tensor(rows(), dtype=torch.float32)
    y = torch.arange(len(X)) % 2

    def total(present):
        loss = nn.CrossEntropyLoss(reduction="none")
        found = clipped_gradient_sum(module, loss, X, y, 0.7, present=present)
        return torch.cat([value.flatten() for value in found.values()])

    whole = total(torch.ones(len(X), dtype=torch.bool))
    moved = [float((whole - total(torch.arange(len(X)) != i)).norm()) for i in range(len(X))]
    assert 0.999 * 0.7 <= max(moved) <= 0.7


# ---- where it is used --------------------------------------------------------------------------------------------
def test_places_are_those_of_the_encoder():
    described = Schema(
        {
            "kind": Category(["a", "b"], missing=True),
            "age": Number(0, 10, missing=True),
            "vip": Boolean(),
            "income": Number(0, 5),
            "label": Category([0, 1]),
        },
        label="label",
    )
    names = SchemaEncoder(described).get_feature_names_out()
    places = number_places(described)
    assert [names[place.column] for place in places] == ["age", "income"]
    assert [None if place.missing is None else names[place.missing] for place in places] == ["age_missing", None]


def test_with_images_or_noise_of_your_own_and_with_few_rows_nothing_is_asked():
    def planned(X=None, y=None, **options):
        model = FairDPSGDClassifier(**{"lam": 0.0, "schema": schema(), **options})
        return model._plan(model._read(frame() if X is None else X, y)).tables

    assert planned() is not None
    assert planned(np.ones((500, 3)), np.arange(500) % 2, schema=None, classes=[0, 1]) is not None
    assert planned(np.ones((100, 3)), np.arange(100) % 2, schema=None, classes=[0, 1]) is None
    assert planned(net=nn.Linear(4 + 1, 2)) is not None
    image = nn.Sequential(nn.Unflatten(1, (1, 1, 5)), nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(10, 2))
    assert planned(net=image) is None
    assert planned(noise_multiplier=50.0, epsilon=50.0) is None
    assert planned(frame(100)) is None
    only = Schema({"kind": Category(["a", "b"]), "label": Category([0, 1])}, label="label")
    assert planned(frame()[["kind", "label"]], schema=only) is None


@pytest.mark.slow
def test_bounds_a_thousand_times_too_wide_cost_next_to_nothing():
    def accuracy(wide):
        model = FairDPSGDClassifier(lam=0.0, schema=schema(wide), random_state=0, noise_seed=0)
        return model.fit(frame(4000)).score(frame(4000, seed=1))

    near, far = accuracy(1.0), accuracy(1000.0)
    assert near > 0.8 and far > near - 0.03, (near, far)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize(("size", "is_scaled"), [(1e-5, False), (100.0, True)])
def test_a_column_of_numbers_below_two_thousandths_is_left_alone(size, is_scaled):
    """As the class says: noise does not tell such a column from one of zeros."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2)) * [size, 1.0]
    model = FairDPSGDClassifier(epsilon=8.0, lam=0.0, classes=[0, 1], random_state=0).fit(X, (X[:, 1] > 0).astype(int))
    scales = model.net_.module_[0]
    assert (scales.far[0] == 2.0) == is_scaled and (is_scaled or scales.knots[0].abs().max() == 1.0)


def test_columns_are_not_put_far_away_by_noise_where_rows_are_few_for_epsilon():
    """In 23 fits of 30 one of eight columns near 0 lay at up to 10^10, and the network saw nothing of it."""
    few = ColumnTables(tuple(map(NumberPlace, range(8))), 4000, 0.15, 1e-5, ZERO_OUT, has_bounds=False)
    assert few.should_release and few.rounds < ROUNDS
    X = np.random.default_rng(0).normal(size=(4000, 8))
    far = 0
    for seed in range(30):
        knots = few.release(X, NoiseSource(seed))
        far += (np.abs(knots[:, 1:-1]) > 5).any()
    assert far <= 6  # these seeds: 5
    thousands = few.release(1000 + X, NoiseSource(0))
    assert (np.abs(thousands[:, 3:5]) > 100).mean() > 0.8  # and what is far stays there


@pytest.mark.parametrize(
    ("offset", "spread", "is_told"), [(1.7e9, 1e4, True), (1980.0, 15.0, False), (0.0, 1.0, False)]
)
def test_numbers_that_a_network_does_not_tell_apart_are_named(offset, spread, is_told):
    """Seconds of one day: the network saw one number, and the fit did not say so."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (X.sum(axis=1) > 0).astype(int)
    X[:, 1] = offset + spread * X[:, 1]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0).fit(X, y)
    told = [str(one.message) for one in said if "so close together" in str(one.message)]
    assert len(told) == is_told and all(one.startswith("Nearly all numbers of column 1 (1.") for one in told)


# ---- where only groups are protected ----------------------------------------------------------------------------
def hump(n, seed=0):
    """Neither the group nor a line says who is in the middle."""
    rng = np.random.default_rng(seed)
    years = np.where(rng.random(n) < 0.05, np.nan, rng.exponential(10, n).clip(0, 100))
    label = np.where(np.isnan(years), rng.random(n) < 0.5, (years > 6) & (years < 14)).astype(int)
    return pd.DataFrame({"years": years, "group": rng.integers(0, 2, n), "label": label})


def line(n):
    """A line says it: whatever the processor, a network of it stays."""
    return hump(n).assign(label=lambda rows: (rows["years"].fillna(0) > 10).astype(int))


def held_to_groups(**columns):
    numbers = {"years": Number(0, 100, missing=True), **columns}
    return Schema({**numbers, "group": Category([0, 1]), "label": Category([0, 1])}, label="label", groups="group")


def groups_protected(**how):
    return PFLDClassifier(net=mlp((8,), max_epochs=4, lr=0.01), random_state=0, noise_seed=0, **how)


@pytest.mark.few(1)
def test_curves_of_numbers_follow_the_rows_and_no_group():
    table, other = hump(4000), hump(4000, 1)
    table, other = (
        rows.assign(pay=np.random.default_rng(2).exponential(8, 4000).clip(0, 100)) for rows in (table, other)
    )
    models = [
        groups_protected(schema=held_to_groups(pay=Number(0, 100))).fit(rows)
        for rows in (table, table.assign(group=1 - table["group"]))
    ]
    knots = [module_of(model.net_)[0].knots.numpy() for model in models]
    np.testing.assert_array_equal(*knots)
    exact = [np.quantile(table[name].dropna() / 50 - 1, (np.arange(KNOTS) + 0.5) / KNOTS) for name in ("years", "pay")]
    np.testing.assert_allclose(knots[0], exact, atol=0.01)
    assert models[0].score(other, other["label"]) > 0.9


def test_few_rows_for_so_many_numbers_get_no_curves():
    table = line(900).assign(**{f"more{j}": np.arange(900.0) % 60 for j in range(4)})
    model = groups_protected(schema=held_to_groups(**{f"more{j}": Number(0, 60) for j in range(4)})).fit(table)
    assert isinstance(module_of(model.net_)[0], nn.Linear)


@pytest.mark.parametrize("known", [{"epsilon": None}, {"primal": "gradient", "epsilon": 50.0}])
def test_a_network_that_is_told_each_rows_group_gets_no_curves(known):
    """Found: with them it learned groups by heart, and gaps in the population were above their bounds."""
    model = groups_protected(schema=held_to_groups(), **known).fit(line(900))
    assert isinstance(module_of(model.net_)[0], nn.Linear)


def test_hats_are_higher_where_more_rows_say_how_high():
    heights = []
    for n in (900, 4000):
        model = groups_protected(schema=held_to_groups()).fit(hump(n))
        heights.append(module_of(model.net_)[0].height)
    assert heights == [1.125, 5.0]
