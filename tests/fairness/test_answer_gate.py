"""The gate for ratios and bounds of rates of answers: its rule by definition, and rows that are counted at once."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skfairdp.fairness import AnswerGate, FairnessGate, RateBound, RateConstraints, RateParity, _rate_gate as engine

ASKED = {
    "four fifths": [RateParity("selection_rate", ratio_bound=0.8)],
    "both, to all": [RateParity("selection_rate", 0.05, 0.7, method="to_overall")],
    "bounds": [
        RateBound("selection_rate", upper=0.5, groups=[1]), RateBound("selection_rate", lower=0.2, groups="overall")
    ],
}  # fmt: skip


def gate_of(asked, n_groups=2, n_classes=2, **more):
    return AnswerGate(RateConstraints(asked, range(n_groups), range(n_classes)), **more)


def by_definition(asked, groups, labels, n_groups, n_classes, min_count):
    """Every inequality written out for every row."""
    judge = RateConstraints(asked, range(n_groups), range(n_classes))
    speaks = [(slopes[:-1] != 0).any(axis=1) | (slopes[-1] != 0).any() for slopes in judge.coefficients]
    counts, mask = np.zeros((n_groups, 1, n_classes)), []
    for z, k in zip(groups, labels, strict=True):
        before = np.maximum(judge.violations(counts), 0.0).sum()
        cold = counts[z].sum() < min_count
        counts[z, 0, k] += 1
        over = judge.violations(counts)
        after = np.maximum(over, 0.0).sum()
        mine = any(line > 1e-12 and of_groups[z] for line, of_groups in zip(over, speaks, strict=True))
        mask.append(cold or after < before - 1e-12 or (after <= before + 1e-12 and not mine))
        counts[z, 0, k] -= not mask[-1]
    return mask


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(list(ASKED)),
    st.integers(2, 3),
    st.integers(2, 3),
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=60),
)
def test_every_answer_is_decided_by_the_rule(asked, n_groups, n_classes, min_count, rows):
    groups, labels = ([row[i] % n for row in rows] for i, n in enumerate((n_groups, n_classes)))
    expected = by_definition(ASKED[asked], groups, labels, n_groups, n_classes, min_count)
    gate = gate_of(ASKED[asked], n_groups, n_classes, min_count=min_count)
    for z, k, admitted in zip(groups, labels, expected, strict=True):
        assert gate.admissible()[z, k] == admitted
        assert gate.run([z], [k]).tolist() == [admitted]
    again = gate_of(ASKED[asked], n_groups, n_classes, min_count=min_count)
    assert again.run(groups, labels).tolist() == expected
    np.testing.assert_array_equal(again.counts, gate.counts)


@pytest.mark.few(1)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_rows_that_are_counted_at_once_are_those_that_the_rule_admits(asked, monkeypatch):
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=16_000)
    rates = np.where(np.arange(16_000)[:, None] < 2000, [0.3, 0.56, 0.5], [0.42, 0.43, 0.44])
    labels = (rng.random(16_000) < rates[np.arange(16_000), groups]).astype(int)
    gate, fits = gate_of(asked, 3), []
    at_once = AnswerGate._rows_that_fit
    monkeypatch.setattr(AnswerGate, "_rows_that_fit", lambda self, rows: fits.append(at_once(self, rows)) or fits[-1])
    found = gate.run(groups, labels)
    assert sum(fits) > 1000 and not found.all()
    monkeypatch.setattr(AnswerGate, "_rows_that_fit", lambda self, rows: 0)
    one_by_one = gate_of(asked, 3)
    np.testing.assert_array_equal(found, one_by_one.run(groups, labels))
    np.testing.assert_array_equal(gate.counts, one_by_one.counts)
    assert engine._LEAST <= 1000


def test_of_two_groups_and_classes_a_difference_is_decided_as_by_the_other_gate():
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=4000)
    labels = (rng.random(4000) < np.array([0.3, 0.5])[groups]).astype(int)
    mine = gate_of([RateParity("selection_rate", 0.0505)]).run(groups, labels)
    np.testing.assert_array_equal(mine, FairnessGate(2, 2, gamma=0.0505, disparity="between").run(groups, labels))


def test_rates_that_need_labels_are_refused():
    with pytest.raises(ValueError, match="RateGate holds those that need labels"):
        gate_of([RateParity("error_rate", 0.1)])


@pytest.mark.parametrize("n_rows", [20_000, 100_000])
def test_rows_that_are_counted_at_once_can_break_nothing_whatever_they_answer(n_rows):
    """As many as are counted at once, all of them answered so that the gap widens: it stays within its bound."""
    gate = gate_of([RateParity("selection_rate", 0.1)])
    gate._counts[:] = np.array([[0.53, 0.47], [0.47, 0.53]]) * n_rows
    groups = np.arange(4 * n_rows) % 2
    n = gate._rows_that_fit(groups)
    assert n >= engine._LEAST
    np.add.at(gate._counts, (groups[:n], groups[:n]), 1)
    assert (gate._over(gate._counts) <= 0).all()
