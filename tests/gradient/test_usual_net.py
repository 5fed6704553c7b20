"""Which network ``net="auto"`` takes: told from public numbers, on record before anything is spent, and no worse."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from skfairdp import FairDPSGDClassifier, PrivacyLedger
from skfairdp._usefulness import DOUBTFUL, default_net
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.inspection import AdditiveTerms
from skfairdp.privacy import gdp_mu
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import KNOTS, additive_parts, as_net
from tests._tools.sources import recording_noise

pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")

SCHEMA = Schema(
    {"age": Number(0, 100), "income": Number(0, 1000, missing=True), "kind": Category(["a", "b", "c"]),
     "label": Category([0, 1]), "sex": Category(["f", "m"])},
    label="label",
    groups="sex",
)  # fmt: skip
N_FEATURES = 6  # a number has one feature, one that may be missing two, a category its values


def frame(n=600, seed=0):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({"age": rng.uniform(0, 100, n), "income": rng.exponential(100, n).clip(0, 1000)})
    made["kind"], made["sex"] = rng.choice(["a", "b", "c"], n), rng.choice(["f", "m"], n)
    return made.assign(label=(made["age"] + 20 * rng.normal(size=n) > 50).astype(int))


def planned(table=None, y=None, **options):
    model = FairDPSGDClassifier(**{"lam": 0.0, "schema": SCHEMA, **options})
    return model._plan(model._read(frame() if table is None else table, y))


def n_parameters(net, n_features, n_classes):
    return sum(p.numel() for p in as_net(net, owner="x").build(n_features, n_classes, seed=0).parameters())


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_bound_is_where_the_noise_of_all_parameters_together_is_doubtful(n_classes):
    edge = math.sqrt(n_parameters("mlp", 30, n_classes)) / (gdp_mu(1.0, 1e-5) * DOUBTFUL)
    taken = [default_net(round(edge * part), 30, n_classes, epsilon=1.0, delta=1e-5) for part in (0.99, 1.01)]
    assert taken == ["additive", "mlp"]


def test_more_rows_more_epsilon_fewer_columns_never_lead_back_to_fewer_units():
    def clear(n_rows=3000, n_features=40, epsilon=1.0, delta=1e-5):
        return default_net(n_rows, n_features, 2, epsilon=epsilon, delta=delta) == "mlp"

    for values in (
        [clear(n_rows=n) for n in range(500, 20_000, 250)],
        [clear(epsilon=e) for e in np.geomspace(0.1, 10, 30)],
        [clear(n_features=d) for d in range(400, 1, -5)],
    ):
        assert values == sorted(values) and len(set(values)) == 2


def test_what_the_scaling_of_columns_adds_counts():
    plan = planned()
    assert plan.tables is not None and plan.taken == "additive" and plan.net.hidden == ()
    bare, with_hats = (n_parameters("mlp", d, 2) for d in (N_FEATURES, N_FEATURES + 2 * KNOTS))
    edges = [math.sqrt(count) / (gdp_mu(1.0, 1e-5) * DOUBTFUL) for count in (bare, with_hats)]
    between = frame(round(math.prod(edges) ** 0.5))
    assert planned(between).taken == "additive"
    clear = frame(round(1.02 * edges[1]))
    assert planned(clear).taken == "mlp" and planned(clear).net.hidden == (64,)


def test_rows_that_are_declared_decide_and_not_those_that_there_are():
    assert planned(frame(50), public_n_rows=50_000).taken == "mlp"
    assert planned(frame(5000), public_n_rows=50).taken == planned(frame(20), public_n_rows=50).taken == "additive"


def test_arrays_parity_and_a_noise_multiplier_get_hidden_units_and_what_you_name_you_get():
    X, y = np.random.default_rng(0).normal(size=(100, 4)), np.arange(100) % 2
    assert planned(X, y, schema=None, classes=[0, 1]).taken == "mlp"
    assert planned(noise_multiplier=50.0, epsilon=50.0).taken == "mlp"
    assert planned(lam=None).taken == planned(lam=0.1, parity=SignedLoss()).taken == "mlp"
    for net, hidden in (("mlp", (64,)), ("additive", ()), (mlp((3,)), (3,))):
        plan = planned(net=net)
        assert plan.taken is None and plan.net.hidden == hidden
        assert not any("of the network" in words for words in plan.releases)


def test_the_plan_the_record_and_the_fit_say_which_and_it_is_that_network_bit_for_bit():
    options, table = {"lam": 0.0, "schema": SCHEMA, "random_state": 0}, frame()
    model, named = (FairDPSGDClassifier(**options, net=net, ledger=PrivacyLedger()) for net in ("auto", "additive"))
    for one in (model, named):
        with recording_noise(entropy=1):
            one.fit(table)
    assert model.net_taken_ == "additive" and named.net_taken_ is None
    assert any("of the network 'additive'" in words for words in model.ledger.entries[-1].releases)
    assert model.planned_privacy(table).event == model.privacy_.event == named.privacy_.event
    assert any("network" in fact and "additive" in fact for fact in model.privacy_.public)
    np.testing.assert_array_equal(model.predict_proba(table), named.predict_proba(table))
    assert additive_parts(model.net_, N_FEATURES) is not None
    terms = AdditiveTerms(model).explain(table.head(3))
    np.testing.assert_allclose(terms.sum(axis=1), model.decision_function(table.head(3)))


def test_chunks_get_the_network_of_the_whole_table():
    table = frame()
    models = [
        FairDPSGDClassifier(lam=0.0, schema=SCHEMA, random_state=0).fit(rows)
        for rows in (table, lambda: [table.iloc[k : k + 150] for k in range(0, len(table), 150)])
    ]
    assert [model.net_taken_ for model in models] == ["additive", "additive"]


@pytest.mark.slow
def test_a_grid_goes_over_networks_and_folds_decide_for_themselves():
    edge = math.sqrt(n_parameters("mlp", N_FEATURES + 2 * KNOTS, 2)) / (gdp_mu(1.0, 1e-5) * DOUBTFUL)
    table = frame(round(1.3 * edge))
    model = FairDPSGDClassifier(lam=0.0, schema=SCHEMA, random_state=0)
    grid = GridSearchCV(model, {"net": ["auto", mlp((2,), max_epochs=1)]}, cv=KFold(2), refit=False)
    grid.fit(table)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert [planned(rows).taken for rows in (table, table.head(len(table) // 2))] == ["mlp", "additive"]


def test_what_is_refused_is_told_with_auto_among_what_is_allowed():
    with pytest.raises(ValueError, match=r"must be 'auto', 'mlp', 'additive', .* Got 'cart' instead"):
        planned(net="cart")


OPEN = {"owner": "x", "lr": None, "batch_size": None, "max_epochs": None}


@pytest.mark.parametrize(("n_rows", "as_many"), [(40_000, 40_000), (300_000, 300_000), (10**7, 10**6)])
def test_batches_and_steps_grow_with_many_rows_and_passes_get_fewer(n_rows, as_many):
    """20 passes of batches of 512 over a million rows took 90 s, and taught no more than 2.3 of 4,426 do."""
    times = max(1.0, as_many / 50_000) ** 0.72
    net = as_net("mlp", **OPEN).settled(n_rows, 4.0)
    assert (net.batch_size, net.max_epochs, net.lr) == pytest.approx((round(512 * times), 20 / times, 0.5 * times))


@pytest.mark.parametrize("own", [{"lr": 0.1}, {"batch_size": 64}, {"max_epochs": 3}])
def test_whoever_sets_one_of_them_gets_the_others_as_of_any_table(own):
    net = as_net(mlp(**own), **OPEN).settled(10**6, 4.0)
    wanted = {"lr": 0.5, "batch_size": 512, "max_epochs": 20} | own
    assert {name: getattr(net, name) for name in wanted} == wanted


def test_batches_follow_the_declared_number_of_rows_and_nothing_that_is_private():
    table, found = frame(300), []
    for rows in (table, table[:-1]):
        plan = planned(rows, public_n_rows=200_000)
        found.append((plan.step, plan.net.batch_size, plan.net.lr))
    assert found[0] == found[1] and found[0][1] == round(512 * 4**0.72)
