"""PrivateBarycenter without the group at prediction: it is guessed from the features, within the epsilon of the fit."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skfairdp import FairDPSGDRegressor, PrivacyLedger
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.metrics import ks_disparity
from skfairdp.postprocessing import PrivateBarycenter
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, epsilon_of
from tests._tools.inside import GuessedTransport, GuessedTransportPlan, Network, Transport
from tests._tools.sources import RecordingNoise, recording_noise

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*given to PrivateBarycenter has no privacy_"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

REPLACED, NULL = NeighboringRelation.REPLACE_ONE, NeighboringRelation.ZERO_OUT
BOUNDS = (0.0, 50.0)


def made_rows(n, seed, apart=1.6):
    """Two columns tell the group, and are what amounts of groups differ by."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 2:] += apart * (2 * groups[:, None] - 1)
    return X, 20 + X @ [3.0, 2.0, 0.6, 0.6] + 3 * rng.normal(size=n), groups


X, Y, GROUPS = made_rows(6000, 0)
X_NEW, Y_NEW, GROUPS_NEW = made_rows(20_000, 1)
PUBLIC = LinearRegression().fit(*made_rows(1000, 2)[:2])


def made(model=PUBLIC, **options):
    given = {"epsilon": 1.0, "bounds": BOUNDS, "groups": [0, 1], "random_state": 0, **options}
    return PrivateBarycenter(model, group_at_prediction=False, **given)


def fitted(model=PUBLIC, rows=slice(None), **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", FairnessWarning)
        return made(model, **options).fit(X[rows], sensitive_features=GROUPS[rows])


def ks(amounts, groups=GROUPS_NEW):
    return ks_disparity(None, amounts, sensitive_features=groups)


# ---- what it is for --------------------------------------------------------------------------------------------
def test_distributions_of_the_true_groups_agree_where_features_tell_who_is_in_which():
    with recording_noise(entropy=0):
        fair = fitted()
    moved = fair.predict(X_NEW)
    assert ks(PUBLIC.predict(X_NEW)) > 0.35 and ks(moved) < 0.09 and ks(moved) <= fair.gap_bound_ < 0.25
    known = PUBLIC.predict(X_NEW) - 1.92 * (2 * GROUPS_NEW - 1)  # what the best move by true groups makes of it
    assert np.mean((moved - Y_NEW) ** 2) < 1.1 * np.mean((known - Y_NEW) ** 2) and fair.strength_ > 0
    assert len(fair.counts_) in (2, 4) and fair.privacy_.epsilon <= 1.0


def test_where_guesses_are_next_to_chance_predictions_stay_and_the_bound_says_so():
    rows, _, groups = made_rows(6000, 3, apart=0.0)
    rows[:, 0] += 0.5 * groups  # of which amounts are made
    with recording_noise(entropy=0), pytest.warns(FairnessWarning, match="features do not show the group enough"):
        fair = made(gamma=0.01).fit(rows, sensitive_features=groups)
    assert fair.strength_ == 0
    np.testing.assert_allclose(fair.predict(rows), np.clip(PUBLIC.predict(rows), *BOUNDS), atol=1e-4)
    assert fair.gap_bound_ > ks(PUBLIC.predict(rows), groups) > 0.1


@pytest.mark.parametrize(("rows", "options"), [(slice(0, 300), {"epsilon": 0.5}), (slice(None), {"epsilon": 0.02})])
def test_where_public_numbers_speak_against_it_nobody_is_guessed(rows, options):
    model = fitted(rows=rows, **options)
    plan = model._plan(model._read(X[rows], sensitive_features=GROUPS[rows]))
    assert plan.guess is None and plan.n_kinds == 1 and model.strength_ == 0 and len(plan.releases) == 3


def test_without_noise_a_sure_guess_makes_it_the_barycenter_of_known_groups():
    edges, rng = np.linspace(0, 1, 65), np.random.default_rng(0)
    of_groups = np.stack([np.histogram(rng.normal(c, 0.05, 10**6), edges)[0] for c in (0.4, 0.5)]).astype(float)
    counts = np.zeros((2, 2, 64))
    counts[[0, 1], [0, 1]] = of_groups
    guessed, known, scores = GuessedTransport(edges, counts, 0.0), Transport(edges, of_groups, 0.0), rng.random(500)
    assert guessed.strength == pytest.approx(1.0)
    kinds = rng.integers(2, size=500)
    np.testing.assert_allclose(guessed.move(scores, kinds), known.move(scores, kinds), atol=1e-9)
    wrong = counts + counts[::-1] / 4  # one row in five is guessed wrongly, so that shares say a part only
    assert GuessedTransport(edges, wrong, 0.0).strength > 1.2


def test_a_prediction_is_the_same_whatever_rows_stand_beside_it_and_after_a_pickle():
    model = fitted()
    whole, order = model.predict(X_NEW), np.random.default_rng(0).permutation(len(X_NEW))
    np.testing.assert_array_equal(model.predict(X_NEW[order]), whole[order])
    np.testing.assert_array_equal([model.predict(X_NEW[i : i + 1])[0] for i in range(20)], whole[:20])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X_NEW), whole)
    assert model.score(X_NEW, Y_NEW) > 0.4


# ---- the guarantee -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [1.0, 30.0])
@pytest.mark.parametrize("relation", [REPLACED, NULL])
def test_all_releases_together_cost_epsilon_and_are_those_that_are_planned(relation, epsilon):
    model, ledger = PUBLIC, PrivacyLedger()
    if relation is NULL:
        model = FairDPSGDRegressor(epsilon=1.0, bounds=BOUNDS, random_state=0).fit(X, Y)
    with recording_noise(entropy=0) as record:
        fair = fitted(model, epsilon=epsilon, ledger=ledger)
    plan = fair._plan(fair._read(X, sensitive_features=GROUPS))
    step, tables = plan.guess.step, plan.guess.scaling.tables
    assert plan.relation is step.relation is relation and 0.98 * epsilon < epsilon_of(plan.event, 1e-5) <= epsilon
    (entry,) = ledger.entries
    assert entry.event == plan.event and entry.releases == plan.releases
    columns = [tables.counts] * tables.rounds
    wanted = [plan.sizes, *columns, *[step.sums] * step.steps, *[plan.cells.counts] * 3, plan.table, plan.look]
    assert [release.mechanism for release in record.of(GaussianMechanism)] == wanted


@pytest.mark.parametrize(("relation", "bound"), [(REPLACED, np.sqrt(2)), (NULL, 1.0)])
def test_one_record_moves_the_table_by_kind_by_no_more_than_its_sensitivity(relation, bound):
    rng = np.random.default_rng(0)
    plan = GuessedTransportPlan(30, 2, 500.0, 1e-5, relation, share=0.5, n_kinds=4)
    columns = [rng.random(30), rng.integers(2, size=30), rng.integers(4, size=30)]
    ends = np.full(32, 1.0)

    def table(scores, groups, kinds):
        source = RecordingNoise(0, exact=True, answer=lambda r: ends if np.size(r.output) == 32 else r.output)
        plan.release_by_kind(scores, groups.astype(int), kinds.astype(int), source)
        return np.asarray(source.record.releases[-1].value, dtype=float)

    whole, moved = table(*columns), []
    assert whole.size == 4 * 2 * 32 and whole.sum() == 30
    for i in range(30):
        others = [[np.delete(column, i) for column in columns]]
        if relation is REPLACED:
            records = [(score, group, kind) for score in (0.0, 0.99) for group in (0, 1) for kind in range(4)]
            others = [
                [np.r_[column[:i], new, column[i + 1 :]] for column, new in zip(columns, record, strict=True)]
                for record in records
            ]
        moved += [np.linalg.norm(table(*other) - whole) for other in others]
    assert max(moved) == pytest.approx(bound) == plan.table.sensitivity == plan.sizes.sensitivity


def test_the_rows_of_the_bound_have_taught_nothing(monkeypatch):
    """A row that is kept aside is nobody to the network and in no table, and the look is at those rows alone."""
    honest, kept, taught, train = GuessedTransportPlan.kept_aside, [], [], Network.trained
    monkeypatch.setattr(GuessedTransportPlan, "kept_aside", lambda *given: kept.append(honest(*given)) or kept[-1])

    def trained(self, rows, y, step, source, **given):
        taught.append((rows, given["of_each"][:, 0]))
        return train(self, rows, y, step, source, **given)

    monkeypatch.setattr(Network, "trained", trained)
    with recording_noise(entropy=0) as record:
        model = fitted()
    ((_, held),), ((rows, places),) = kept, taught
    np.testing.assert_array_equal(places < 0, held)
    np.testing.assert_array_equal(rows[places[~held]], X[~held])
    sizes, cells, table, look = (record.of(GaussianMechanism)[i].private[0] for i in (0, -3, -2, -1))
    assert sizes.sum() == cells.sum() == table.sum() == len(X) - look.sum() and look.sum() == held.sum()
    assert 0.3 < held.mean() < 0.37
    np.testing.assert_array_equal(look.sum(axis=1), np.bincount(GROUPS[held]))
    assert np.isfinite(model.predict(X[held])).all()


def test_all_rows_of_a_subject_are_protected_by_what_one_of_them_teaches():
    ids = np.arange(len(X)) // 2
    model = made(epsilon=2.0).fit(X, sensitive_features=GROUPS[ids * 2], subject=ids)
    assert str(model.privacy_.neighboring_relation) == "replace all rows of one subject"
    assert model._guesses is not None and 1.95 < model.privacy_.epsilon <= 2
