"""A network without hidden layers, taken apart: its parts compute what it computes, and others have none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests._tools.inside import (
    ColumnScales,
    additive_parts,
    as_net,
    constant_module,
    fitted_net,
    one_answer,
    predict_logits,
    prepare_network,
    with_parts,
)

CLASSES = np.arange(3)


def network(net="additive", knots=True):
    """Six features: numbers at 0 and 3, of which the second is marked as missing at 4."""
    net = as_net(net, owner="FairDPSGDClassifier")
    scales = ColumnScales([0, 3], [None, 4], 4) if knots else None
    module = prepare_network(net, 6, 3, seed=0, owner="FairDPSGDClassifier", scales=scales).module
    if knots:
        module[0].set_knots(np.array([[-0.9, -0.2, 0.1, 0.3], [-0.5, -0.4, 0.0, 0.9]]))
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    return fitted_net(net, module, CLASSES, None)


def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 6))
    X[:, 4] = rng.random(n) < 0.3
    return X


def logits(parts, X):
    """What the parts add up to, written out."""
    found = parts.bias + X[:, [1, 2, 4, 5]] @ parts.weights[:, [1, 2, 4, 5]].T
    if not len(parts.columns):
        return found + X[:, [0, 3]] @ parts.weights[:, [0, 3]].T
    return found + parts.curve(0, X[:, 0]) + np.where(X[:, [4]] > 0.5, 0, parts.curve(1, X[:, 3]))


@pytest.mark.parametrize("knots", [True, False])
def test_parts_add_up_to_the_logits_in_double_precision(knots):
    net, X = network(knots=knots), rows()
    assert next(net.module_.parameters()).dtype == torch.float64
    np.testing.assert_allclose(logits(additive_parts(net, 6), X), predict_logits(net.module_, X), atol=1e-12)


def test_a_curve_bends_at_its_breakpoints_alone():
    parts = additive_parts(network(), 6)
    for place in range(2):
        ends = parts.breakpoints(place)
        assert ends[0] == -1 and ends[-1] == 1 and set(parts.knots[place]) <= set(ends)
        between = np.linspace(-1, 1, 997)
        straight = np.stack([np.interp(between, ends, line) for line in parts.curve(place, ends).T], axis=1)
        np.testing.assert_allclose(parts.curve(place, between), straight, atol=1e-12)


def test_parts_put_together_again_are_the_network_and_others_are_not():
    net, X = network(), rows()
    parts = additive_parts(net, 6)
    np.testing.assert_allclose(predict_logits(with_parts(net, parts).module_, X), predict_logits(net.module_, X))
    before = predict_logits(net.module_, X)
    moved = with_parts(net, replace(parts, bias=parts.bias + 1, hats=parts.hats + 0.5))
    shift = 1 + 0.5 + 0.5 * (X[:, [4]] <= 0.5)  # of a column that is missing nothing is added
    np.testing.assert_allclose(predict_logits(moved.module_, X), before + shift)
    np.testing.assert_array_equal(predict_logits(net.module_, X), before)  # the given one is left as it was


def test_hidden_layers_have_no_parts_and_a_constant_adds_nothing():
    assert additive_parts(network("mlp"), 6) is None
    assert additive_parts(torch.nn.Linear(6, 3), 6) is None
    constant = additive_parts(constant_module(np.array([0.2, 0.3, 0.5])), 6)
    np.testing.assert_allclose(np.exp(constant.bias), [0.2, 0.3, 0.5], rtol=1e-6)
    assert not constant.weights.any() and constant.weights.shape == (3, 6)


@pytest.mark.parametrize("knots", [True, False])
def test_a_network_that_only_ranks_rows_is_read_and_changed_as_the_sum_it_computes(knots):
    inner = network(knots=knots)
    module = one_answer(np.array([0.5, 0.3, 0.2]), inner.module_)
    net, X = fitted_net(as_net("additive", owner="FairDPSGDClassifier"), module, CLASSES, None), rows()
    parts, of_inner = additive_parts(net, 6), additive_parts(inner, 6)
    before = predict_logits(net.module_, X)
    np.testing.assert_allclose(before, np.log([0.5, 0.3, 0.2]) + module.share.item() * predict_logits(inner.module_, X))
    np.testing.assert_allclose(parts.weights, module.share.item() * of_inner.weights)
    assert (before.argmax(axis=1) == 0).all()
    moved = with_parts(net, replace(parts, bias=parts.bias + np.array([1e-3, 0, 0])))
    np.testing.assert_allclose(predict_logits(moved.module_, X), before + np.array([1e-3, 0, 0]))
    np.testing.assert_array_equal(predict_logits(net.module_, X), before)  # the given one is left as it was
