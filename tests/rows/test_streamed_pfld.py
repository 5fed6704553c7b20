"""PF-LD on rows that are read in chunks: the network of a fit in memory, from one pass and a file without a name."""

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp import KeyedRows, PFLDClassifier, PrivacyLedger
from skfairdp.lagrangian import GroupModel, NoisyGradients, mlp
from skfairdp.privacy import NoiseSource
from skfairdp.schema import RawTable, numeric_memmap
from tests._tools.engines import Doubled, Lost
from tests._tools.inside import PFLDPlan, PublicFeatures, estimate_groups, group_coefficients, opened
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_dpsgd import Counted
from tests.rows.test_streamed_generator import SCHEMA, chunked, of_engine, table
from tests.rows.test_streamed_sfpate import N, regrouped, rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]


class OfSomeRows(GroupModel):
    """Learns from some of the rows, as of a table of more than a million."""

    MOST_ROWS = 300


class Deep(nn.Module):
    """Trained by automatic differentiation, in double precision."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_features, 4), nn.Dropout(0.1), nn.Tanh(), nn.Linear(4, n_classes))
        self.double()

    def forward(self, X):
        return self.layers(X)


def autograd():
    from skorch import NeuralNetClassifier

    return NeuralNetClassifier(Deep, optimizer=torch.optim.Adam, max_epochs=1, batch_size=64)


WAYS = {
    "parity": {},
    "some rows": {"primal": OfSomeRows(32)},
    "odds and errors": {"constraints": ["equalized_odds", "accuracy_parity"], "violations": "probabilities"},
    "another module": {"net": autograd()},
    "no privacy": {"epsilon": None},
}


def model(**options):
    net = mlp((6,), max_epochs=2, batch_size=50)
    usual = {"epsilon": 4.0, "schema": SCHEMA, "net": net, "dual_steps": 5, "random_state": 0}
    return PFLDClassifier(**(usual | options))


def trained(X, **options):
    with recording_noise(entropy=1):
        fitted = model(**options).fit(X)
    network = [value.numpy() for value in fitted.net_.module_.state_dict().values()]
    return [*network, fitted.multipliers_, fitted.noisy_counts_]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.few(2)
@pytest.mark.parametrize("way", WAYS)
def test_the_network_is_that_of_a_fit_in_memory_bit_for_bit(way):
    """Rows come in their order, and every sum is made of all rows at once: no addition of floats follows chunks."""
    expected = trained(rows(), **WAYS[way])
    assert_same(trained(chunked(rows()), **WAYS[way]), expected)
    assert_same(trained(chunked(rows(), sizes=(333,)), **WAYS[way]), expected)


def test_other_rows_give_another_network():
    """So that the equalities of this page say something."""
    mixed = rows().sample(frac=1, random_state=1).reset_index(drop=True)
    assert not np.array_equal(trained(chunked(rows()))[0], trained(chunked(mixed))[0])


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ["polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_the_network_is_the_same_bit_for_bit_from_every_engine(engine, tmp_path):
    assert_same(trained(of_engine(engine, rows(), tmp_path)), trained(rows()))


def test_a_stand_in_for_spark_gives_the_same_network_and_rows_need_no_key():
    expected = trained(rows())
    assert_same(trained(spark_frame(rows())), expected)
    assert_same(trained(KeyedRows(rows(), key="id")), expected)


# ---- what is kept ---------------------------------------------------------------------------------------------


def kept(held, chosen=None):
    raw = RawTable.read(SCHEMA, rows(), owner="test")
    found = numeric_memmap(
        opened(chunked(rows())), SCHEMA, owner="test", n_features=raw.features.shape[1], dtype=np.dtype(np.float32),
        chosen=chosen, held=held,
    )  # fmt: skip
    return raw, *found


@pytest.mark.parametrize("held", [1, 2**26])
def test_rows_are_kept_as_the_network_reads_them_in_memory_or_on_the_disk_without_a_name(held, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    chosen = np.array([0, 6, 7, 8, N - 1])
    raw, X, some, y, groups = kept(held, chosen)
    assert isinstance(X, np.memmap) == (held == 1) and not list(tmp_path.iterdir())
    np.testing.assert_array_equal(X, raw.features.astype(np.float32))
    np.testing.assert_array_equal(some, raw.features[chosen])
    np.testing.assert_array_equal(y, raw.labels())
    np.testing.assert_array_equal(groups, raw.groups())
    np.testing.assert_array_equal(kept(held)[2], raw.features)


def test_all_rows_are_read_in_one_pass():
    source = Counted(rows(), 70)
    model().fit(source)
    assert source.reads == 1


# ---- what is protected ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["parity", "some rows"])
def test_what_a_fit_shows_of_a_replayed_neighbour_is_the_same(way):
    """One group differs: with the outputs of the first fit, the second shows the same to the last bit."""
    with recording_noise(entropy=0) as first:
        one = model(**WAYS[way]).fit(chunked(rows()))
    with recording_noise(entropy=0, replay=first) as second:
        other = model(**WAYS[way]).fit(chunked(regrouped(17, "no such group")))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    np.testing.assert_array_equal(one.predict_proba(rows(100)), other.predict_proba(rows(100)))
    np.testing.assert_array_equal(one.multipliers_, other.multipliers_)
    assert repr(one) == repr(other) and one.privacy_ == other.privacy_


@pytest.mark.parametrize("way", ["parity", "some rows"])
def test_groups_move_what_is_released_and_no_more_than_is_declared(way):
    """Whichever row it is: those that the model of the groups learns from, and others."""
    with recording_noise(entropy=0) as first:
        model(**WAYS[way]).fit(chunked(rows()))
    moments, others = [], []
    for row in (0, 17, 18, N - 1):
        with recording_noise(entropy=0, replay=first) as second:
            model(**WAYS[way]).fit(chunked(regrouped(row, "a" if rows()["group"][row] == "c" else "c")))
        moved = []
        for one, other in zip(first.releases, second.releases, strict=True):
            moved.append(np.linalg.norm(np.ravel(one.value) - np.ravel(other.value)) / one.sensitivity)
        moments.append(moved.pop(1))
        assert len(moved) == 7 and max(moved) <= 1 + 1e-9
        others.append(moved)
    assert np.max(others, axis=0).min() > 0  # a row that is answered no moves no count of those that are answered yes
    assert max(moments) <= 1 + 1e-9 and (min(moments) > 0) == (way == "parity")


def test_a_fit_in_chunks_is_planned_and_charged_as_one_in_memory():
    in_memory = model().planned_privacy(rows())
    assert model().planned_privacy(chunked(rows())).event == in_memory.event
    assert model().fit(chunked(rows())).privacy_.event == in_memory.event


@pytest.mark.parametrize(("source", "error"), [(Doubled, RuntimeError), (Lost, KeyboardInterrupt)])
def test_rows_that_are_lost_or_counted_twice_end_the_fit_before_anything_is_spent(source, error):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    fitted = model(ledger=ledger)
    with recording_noise() as record, pytest.raises(error):
        fitted.fit(source(rows(), 100))
    assert not record.releases and not ledger.entries and not hasattr(fitted, "net_")


@pytest.mark.parametrize(
    ("options", "X", "fit", "text"),
    [
        ({"schema": None, "classes": ["no", "yes"], "groups": list("abc")}, chunked(rows()), {}, "schema"),
        ({}, chunked(rows()), {"y": ["no"] * N}, "label"),
        ({}, chunked(table(N)), {}, "values that its schema does not allow"),
        ({"primal": NoisyGradients(2)}, chunked(rows()), {}, "only with primal='group_model'"),
        ({"constraints": "nothing"}, chunked(rows()), {}, "constraints"),
    ],
)
def test_what_cannot_be_read_in_chunks_is_refused_before_anything_is_spent(options, X, fit, text):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match=text):
        model(ledger=ledger, **options).fit(X, **fit)
    assert not ledger.entries


# ---- a model of the groups from some of the rows ------------------------------------------------------------------


def test_rows_are_estimated_alike_whether_the_model_learnt_from_them_or_not():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(9000, 3)), rng.integers(2, size=9000), rng.integers(3, size=9000)
    X[:, 0] += groups
    plan = PFLDPlan.calibrated(epsilon=1.0, delta=1e-5, n_groups=3, primal_steps=1, dual_steps=5)
    described = PublicFeatures(X, y, 2, 20, 0)
    of_rows = described.features, described.weights, 2, groups, plan
    own = estimate_groups(*of_rows, NoiseSource(0))
    coefficients = group_coefficients(*of_rows, NoiseSource(0))
    np.testing.assert_allclose(described.estimates(coefficients, torch.from_numpy(X), y), own, rtol=1e-9)
    some = PublicFeatures(X[:4000], y[:4000], 2, 20, 0)
    coefficients = group_coefficients(some.features, some.weights, 2, groups[:4000], plan, NoiseSource(0))
    others = some.estimates(coefficients, torch.from_numpy(X[4000:]), y[4000:])
    assert np.mean((others - np.eye(3)[groups[4000:]]) ** 2) < 0.9 * 2 / 9


def test_which_rows_the_model_learns_from_is_public():
    """Their number and the seed decide: every row is as likely as any other."""
    few = OfSomeRows()
    chosen = few._chosen(1000, 3)
    assert few._chosen(300, 3) is None and len(np.unique(chosen)) == 300 and (np.diff(chosen) > 0).all()
    assert not np.array_equal(chosen, few._chosen(1000, 4)) and 400 < chosen.mean() < 600
