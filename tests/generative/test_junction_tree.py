"""Marginals beyond a tree: which pairs, what they cost, and what the mbi package (an extra) makes of them."""

import importlib.util
import itertools
import math

import numpy as np
import pandas as pd
import pytest

from skfairdp import PFGuardGenerator
from skfairdp.generative import MarginalsBackend
from skfairdp.generative._backend import Layout
from skfairdp.generative._junction_tree import further_pairs, sampling_order
from skfairdp.generative._marginals import MarginalsPlan
from skfairdp.generative._tree import TreeModel, best_tree
from skfairdp.privacy import PrivacyLedger, epsilon_of

needs_mbi = pytest.mark.skipif(importlib.util.find_spec("mbi") is None, reason="the optional package mbi is not there")
TRIANGLE = [(0, 1), (1, 2), (0, 2)]
CELLS = {"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": [0, 1, 2]}


def layout(n_columns, n_rows=1000):
    return Layout("cells", n_rows, n_columns, 2, 2, 1, np.random.default_rng(0), {})


# ---- which pairs, in which order -----------------------------------------------------------------------------
def test_every_pair_of_the_graph_is_a_column_and_one_it_is_drawn_given():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 9))
        pairs = [p for p in itertools.combinations(range(n), 2) if rng.random() < 0.4]
        sizes = rng.integers(2, 30, size=n).tolist()
        order = sampling_order(n, pairs, sizes)
        assert sorted(column for column, _ in order) == list(range(n))
        drawn = set()
        given = {frozenset((column, parent)) for column, parents in order for parent in parents}
        for column, parents in order:
            assert set(parents) <= drawn  # only what is drawn already
            drawn.add(column)
        assert {frozenset(pair) for pair in pairs} <= given
        for column, parents in order:  # a clique: what a column is drawn given has been drawn together
            assert all(frozenset(pair) in given for pair in itertools.combinations(parents, 2)), column


def test_a_tree_stays_a_tree():
    order = sampling_order(5, [(0, 1), (1, 2), (1, 3), (3, 4)], [2] * 5)
    assert sorted(len(parents) for _, parents in order) == [0, 1, 1, 1, 1]


def test_further_pairs_are_the_best_that_no_tree_has_and_none_without_a_gain():
    scores = np.array([[0, 90, 80, 1], [90, 0, 70, 1], [80, 70, 0, 60], [1, 1, 60, 0]], dtype=float)
    tree = best_tree(scores, [2] * 4, 1.0)
    assert {frozenset(p) for p in tree} == {frozenset(p) for p in [(0, 1), (0, 2), (2, 3)]}
    assert further_pairs(scores, tree, [2] * 4, 1.0, 4, 8) == [(1, 2)]
    assert further_pairs(scores, tree, [2] * 4, 1.0, 4, 0) == []
    assert further_pairs(scores, tree, [200] * 4, 1e-6, 4, 8) == []  # a table of 4 * 200^3 shares is too much


# ---- what it costs -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("extra", [0, 3, 8])
def test_every_declared_pair_is_paid_for(extra):
    plan = MarginalsPlan(layout(6), True, 0.06, 0.34, extra)
    assert plan.n_pairs == 5 + extra
    mechanism = plan.pairs_at(1.0)
    assert mechanism.sensitivity == pytest.approx(math.sqrt(2 * (5 + extra)))  # one row moves two counts in each
    assert epsilon_of(plan.event_at(1.0), 1e-5) == pytest.approx(
        epsilon_of(MarginalsPlan(layout(6), True, 0.06, 0.34).event_at(1.0), 1e-5)
    )  # the share of the budget is what stays
    assert f"{5 + extra} tables of pairs" in plan.releases


def test_no_more_pairs_are_released_than_declared():
    plan = MarginalsPlan(layout(3), True, 0.06, 0.34, 0)
    rows = type("Rows", (), {"values": np.zeros((10, 3), dtype=int), "n_cells": (2, 2, 2)})
    with pytest.raises(ValueError, match="2 tables of pairs were declared"):
        plan._noisy_pairs(rows, TRIANGLE, 1.0, None)


def test_without_the_package_the_error_says_what_to_install_and_nothing_is_spent(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    ledger = PrivacyLedger(epsilon=10)
    generator = PFGuardGenerator(backend=MarginalsBackend(structure="junction_tree"), bounds=(0, 1), balance=None,
                                 ledger=ledger)  # fmt: skip
    with pytest.raises(ImportError, match=r"pip install 'skfairdp\[mbi\]'"):
        generator.fit(pd.DataFrame({"a": [0.0, 1.0] * 20, "b": [0, 1] * 20}))
    assert ledger.entries == ()


# ---- what comes out ------------------------------------------------------------------------------------------
def test_columns_are_drawn_given_all_their_parents():
    rng = np.random.default_rng(0)
    table = np.zeros((1, 2, 2, 2))  # the exclusive or of two columns
    for i, j in itertools.product(range(2), repeat=2):
        table[0, i, j, i ^ j] = 1.0
    even = np.full((1, 2), 0.5)
    cells = TreeModel([(0, ()), (1, ()), (2, (0, 1))], [even, even, table]).sample(np.zeros(1000, dtype=int), rng)
    np.testing.assert_array_equal(cells[:, 2], cells[:, 0] ^ cells[:, 1])
    model = TreeModel([(0, ()), (1, ()), (2, (0, 1))], [even, even, table])
    np.testing.assert_allclose(model.log_likelihood(cells)[:, 0], math.log(0.25))


def loop_of_columns(n=6000):
    """Three columns in which the first two agree often, and the third follows the first where they do; and a fourth."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.8, a, 1 - a)
    c = np.where(rng.random(n) < np.where(a == b, 0.95, 0.5), a, 1 - a)
    X = pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.integers(0, 3, n)})
    return X, rng.integers(0, 2, n), rng.integers(0, 2, n)


@needs_mbi
def test_a_loop_of_pairs_is_learnt_where_a_tree_must_leave_one_out():
    X, y, groups = loop_of_columns()
    off = {}
    for structure in ("tree", "junction_tree"):
        generator = PFGuardGenerator(
            epsilon=1000.0, backend=MarginalsBackend(structure=structure, extra_pairs=3), balance=None,
            label_rates=None, categories=CELLS,
            classes=[0, 1], groups=[0, 1],
        ).fit(X, y, sensitive_features=groups)  # fmt: skip
        new = generator.sample(40_000, random_state=0)
        assert list(new.columns) == list(X.columns) and (new.dtypes == X.dtypes).all()
        off[structure] = max(
            abs(np.mean(new[i] == new[j]) - np.mean(X[i] == X[j])) for i, j in itertools.combinations("abc", 2)
        )
    assert off["junction_tree"] < 0.01 < 0.02 < off["tree"]


@needs_mbi
def test_a_junction_tree_has_a_density_to_choose_fair_rates_by_and_leaves_numpys_generator_alone():
    X, y, groups = loop_of_columns()
    np.random.seed(3)  # noqa: NPY002 - the global generator is what is watched
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    generator = PFGuardGenerator(
        epsilon=5.0, backend=MarginalsBackend(structure="junction_tree"), categories=CELLS,
        classes=[0, 1], groups=[0, 1],
    ).fit(X, y, sensitive_features=groups)  # fmt: skip
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    cells = generator.model_.sample(np.arange(400) % 4, np.random.default_rng(0))
    assert np.isfinite(generator.model_.log_likelihood(cells)).all()
    assert generator.privacy_.epsilon <= 5.0
