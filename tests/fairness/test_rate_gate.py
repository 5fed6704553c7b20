"""The gate of rates whose labels come later: its promise, by brute force over all that can come back."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from skfairdp.fairness import RateBound, RateConstraints, RateGate, RateParity

SEVERAL = [RateParity("true_positive_rate", 0.25), RateBound("error_rate", upper=0.4, groups="overall")]
ASKED = {
    "equal opportunity": [RateParity("true_positive_rate", 0.25)],
    "accuracy, by ratio": [RateParity("accuracy", ratio_bound=0.8)],
    "equalized odds": [RateParity("selection_rate_by_label", 0.3)],
    "to overall": [RateParity("selection_rate_by_label", 0.2, method="to_overall")],
    "accuracy": [RateParity("accuracy", 0.2)],
    "bound": [RateBound("false_negative_rate", upper=0.4)],
    "several": [*SEVERAL, RateParity("selection_rate", 0.3)],
}


def constraints_of(asked, n_groups=2, n_classes=2):
    return RateConstraints(asked, list(range(n_groups)), list(range(n_classes)), "a test")


def exact_violations(constraints, labelled):
    """Left less right side of every inequality, in rationals; None where a rate counts nobody."""
    labelled = [*labelled.tolist(), labelled.sum(axis=0).tolist()]  # the last is everybody
    k = range(len(constraints.classes))

    def rate(a, r):
        hits = sum(labelled[a][y][p] for y, p in product(k, k) if constraints.events[r, y, p])
        rows = sum(labelled[a][y][p] for y, p in product(k, k) if constraints.cells[r, y])
        return Fraction(hits, rows) if rows else None

    found = []
    for line, bound in zip(constraints.coefficients, constraints.bounds, strict=True):
        terms = [(Fraction(float(line[at])).limit_denominator(1000), rate(*at)) for at in np.argwhere(line).tolist()
                 for at in [tuple(at)]]  # fmt: skip
        known = all(value is not None for _, value in terms)
        found.append(sum(c * v for c, v in terms) - Fraction(float(bound)).limit_denominator(1000) if known else None)
    return found


def arrivals(labelled, outstanding):
    """All tables that outstanding labels can lead to: each row comes back as any class, or never."""
    k = labelled.shape[1]
    cells = [(z, p) for z, p in np.ndindex(outstanding.shape) for _ in range(outstanding[z, p])]
    for fate in product(range(k + 1), repeat=len(cells)):
        table = labelled.copy()
        for (z, p), label in zip(cells, fate, strict=True):
            if label < k:
                table[z, label, p] += 1
        yield table


def started(rng, n_groups, n_classes):
    """Labels that are back before the stream begins: every rate counts somebody."""
    return rng.integers(4, 7, size=(n_groups, n_classes, n_classes))


@pytest.mark.covering
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_no_answer_lets_any_labels_break_more_than_they_could_before_it(asked, seed):
    """Of a small stream, every subset and value of outstanding labels after each answer: exact, and all of them."""
    rng = np.random.default_rng(seed)
    constraints, labelled = constraints_of(asked), np.array([[[7, 1], [2, 6]], [[6, 2], [1, 7]]])
    gate = RateGate(constraints, min_count=1, labelled=labelled)
    allowed = [max(before, 0) for before in exact_violations(constraints, labelled)]
    decided = []
    while sum(decided) < 5 and len(decided) < 25:
        z = rng.integers(2, size=1)
        decided.append(gate.run(z, np.where(rng.random(1) < 0.8, z, 1 - z))[0])
        for table in arrivals(labelled, gate.outstanding) if decided[-1] else ():
            for found, limit in zip(exact_violations(constraints, table), allowed, strict=True):
                assert found is None or found <= limit + Fraction(1, 10**9)
    assert gate.outstanding.sum() == sum(decided) > 0
    assert not gate.run([1, 0] * 9, [1, 0] * 9).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("asked", [ASKED["equal opportunity"], ASKED["equalized odds"], ASKED["accuracy"],
                                   ASKED["bound"], ASKED["accuracy, by ratio"]])  # fmt: skip
def test_the_worst_case_is_reached_by_some_labels(asked):
    """Nothing is refused that could not do harm, where groups are compared with each other or with a bound."""
    rng = np.random.default_rng(5)
    for n_classes in (2, 3):
        constraints = constraints_of(asked, 2, n_classes)
        labelled = started(rng, 2, n_classes)
        outstanding = np.bincount(rng.integers(2 * n_classes, size=4), minlength=2 * n_classes).reshape(2, n_classes)
        gate = RateGate(constraints, min_count=1, labelled=labelled, outstanding=outstanding)
        every = np.array([[float(v) for v in exact_violations(constraints, table)]
                          for table in arrivals(labelled, outstanding)])  # fmt: skip
        np.testing.assert_allclose(gate.worst_case(), every.max(axis=0), atol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize(("n_groups", "n_classes"), [(2, 2), (3, 2), (2, 3)])
def test_a_stream_at_once_is_decided_as_row_by_row(n_groups, n_classes):
    rng = np.random.default_rng(2)
    constraints = constraints_of([RateParity("selection_rate_by_label", 0.15)], n_groups, n_classes)
    labelled = np.full((n_groups, n_classes, n_classes), 40)
    groups, answers = rng.integers(n_groups, size=400), rng.integers(n_classes, size=400)
    one = RateGate(constraints, labelled=labelled, min_count=10)
    apart = RateGate(constraints, labelled=labelled, min_count=10)
    at_once = one.run(groups, answers)
    singly = [apart.run(groups[[i]], answers[[i]])[0] for i in range(400)]
    np.testing.assert_array_equal(at_once, singly)
    assert 0.02 < at_once.mean() < 0.9
    np.testing.assert_array_equal(one.outstanding, apart.outstanding)


def test_once_nothing_can_break_it_it_is_never_broken_whatever_comes_back_when():
    """A long stream with delays, losses and a model of very unlike error rates."""
    rng = np.random.default_rng(3)
    constraints = constraints_of([RateParity("true_positive_rate", 0.1)])
    labelled, waiting, held = np.full((2, 2, 2), 30), [], []
    outstanding = np.zeros((2, 2), dtype=int)
    for _ in range(900):
        z, y = rng.integers(2), rng.integers(2)
        p = int(rng.random() < ((0.2, 0.9) if z else (0.1, 0.5))[y])
        gate = RateGate(constraints, labelled=labelled, outstanding=outstanding)
        if gate.run([z], [p])[0]:
            waiting.append((z, y, p))
        outstanding = gate.outstanding
        while waiting and rng.random() < 0.6:
            z, y, p = waiting.pop(rng.integers(len(waiting)))
            outstanding[z, p] -= 1
            labelled[z, y, p] += rng.random() < 0.8
        held.append(constraints.violations(labelled).max() <= 1e-9)
    assert held[0] and all(held) and labelled.sum() > 400


def test_an_inequality_that_is_broken_at_first_is_never_broken_by_more_and_can_be_mended():
    constraints = constraints_of([RateParity("true_positive_rate", 0.1)])
    labelled = np.array([[[50, 10], [45, 15]], [[50, 10], [15, 45]]])  # .25 and .75
    gate = RateGate(constraints, labelled=labelled)
    assert gate.worst_case().max() == pytest.approx(0.4)
    assert gate.run([0, 0, 1, 1], [0, 1, 0, 1]).tolist() == [False, True, True, False]
    assert gate.worst_case().max() == pytest.approx(0.4)


def test_a_rate_counts_when_enough_labels_are_back_and_never_stops():
    constraints = constraints_of([RateParity("selection_rate_by_label", 0.1)])
    labelled = np.zeros((2, 2, 2), dtype=int)
    labelled[:, 0] = 10
    gate = RateGate(constraints, labelled=labelled, min_count=20)
    assert gate.in_force.tolist() == [True, True, False, False]
    assert np.isnan(gate.worst_case()).tolist() == [False, False, True, True]
    nobody = RateGate(constraints, min_count=0)
    assert not nobody.in_force.any() and nobody.run([0] * 9, [1] * 9).all()


def test_a_gate_that_no_answer_leads_out_of_is_stuck_until_labels_come():
    constraints = constraints_of([RateParity("selection_rate_by_label", 0.1)])
    labelled = np.full((2, 2, 2), 100)
    full = [[30, 30], [30, 30]]
    gate = RateGate(constraints, labelled=labelled, outstanding=full)
    assert gate.is_stuck() and not gate.run([0, 0, 1, 1], [0, 1, 0, 1]).any()
    assert not RateGate(constraints, labelled=labelled).is_stuck()


def test_worst_cases_only_grow_with_answers_and_only_shrink_with_labels():
    rng = np.random.default_rng(4)
    constraints = constraints_of(ASKED["several"], 3, 3)
    labelled, outstanding = started(rng, 3, 3), np.zeros((3, 3), dtype=int)
    worst = []
    for _ in range(60):
        outstanding[rng.integers(3), rng.integers(3)] += 1
        worst.append(RateGate(constraints, min_count=1, labelled=labelled, outstanding=outstanding).worst_case())
    assert all((after >= before - 1e-12).all() for before, after in pairwise(worst))
    while outstanding.any():
        z, p = np.argwhere(outstanding)[0]
        outstanding[z, p] -= 1
        labelled[z, rng.integers(3), p] += 1
        worst.append(RateGate(constraints, min_count=1, labelled=labelled, outstanding=outstanding).worst_case())
    assert all((after <= before + 1e-12).all() for before, after in pairwise(worst[59:]))


# ---- many groups -----------------------------------------------------------------------------------------------
class PairByPair:
    """The gate as its sentence has it: every inequality by itself, row by row, in rationals."""

    def __init__(self, constraints, labelled, outstanding, min_count):
        def exact(number):
            return Fraction(float(number)).limit_denominator(1000)

        self.constraints, self.min_count = constraints, min_count
        self.labelled, self.outstanding = labelled, outstanding.copy()
        self.inequalities = [
            ([(a, r, exact(line[a, r])) for a, r in np.argwhere(line).tolist()], exact(bound))
            for line, bound in zip(constraints.coefficients, constraints.bounds, strict=True)
        ]

    def rates(self, outstanding):
        """The highest and lowest that the rates of each group and of all rows can become; None where not in force."""
        asked, k = self.constraints, len(self.constraints.classes)
        known = np.concatenate([self.labelled, self.labelled.sum(axis=0, keepdims=True)])
        waiting = np.vstack([outstanding, outstanding.sum(axis=0)])
        found = {}
        for a, r in np.ndindex(len(known), len(asked.events)):
            hits, rows = (known[a] * asked.events[r]).sum(), known[a].sum(axis=1) @ asked.cells[r]
            up = sum(int(waiting[a, p]) for p in range(k) if asked.events[r][:, p].any())
            down = sum(int(waiting[a, p]) for p in range(k) if (asked.cells[r] > asked.events[r][:, p]).any())
            ends = Fraction(int(hits) + up, int(rows) + up or 1), Fraction(int(hits), int(rows) + down or 1)
            found[a, r] = ends if rows >= self.min_count else None
        return found

    def worst(self, outstanding):
        """Left less right side of every inequality, where what is outstanding comes back as badly as it can."""
        rates = self.rates(outstanding)
        return [
            None
            if any(rates[a, r] is None for a, r, _ in terms)
            else sum(slope * rates[a, r][slope < 0] for a, r, slope in terms) - bound
            for terms, bound in self.inequalities
        ]

    def run(self, groups, labels):
        decided, before = [], self.worst(self.outstanding)
        for z, p in zip(groups, labels, strict=True):
            more = self.outstanding.copy()
            more[z, p] += 1
            after = self.worst(more)
            decided.append(all(b is None or b <= max(a, 0) for a, b in zip(before, after, strict=True)))
            if decided[-1]:
                self.outstanding, before = more, after
        return decided


@pytest.mark.covering
@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (2, 1), (2, 2), (3, 0)])
@pytest.mark.parametrize("asked", [*ASKED.values(), [RateBound("accuracy", lower=0.65, groups="overall")]],
                         ids=[*ASKED, "lower"])  # fmt: skip
def test_extremes_decide_as_all_pairs_do_one_by_one(asked, n_classes, seed):
    """Ties included: several groups have the same rates. Some groups are not in force, some pairs are broken."""
    rng, n_rows = np.random.default_rng(seed), 40 if n_classes == 3 else 120
    constraints = constraints_of(asked, 5, n_classes)
    labelled = 10 * np.eye(n_classes, dtype=int) + rng.integers(2, 4, size=(5, n_classes, n_classes))
    labelled[3], labelled[4] = labelled[0], [[2] * n_classes] * n_classes if seed == 1 else labelled[1]
    outstanding = rng.integers(2, size=(5, n_classes))
    gate = RateGate(constraints, labelled=labelled, outstanding=outstanding, min_count=7)
    judge = PairByPair(constraints, labelled, outstanding, 7)
    groups, answers = rng.integers(5, size=n_rows), rng.integers(n_classes, size=n_rows)
    expected = judge.run(groups, answers)
    assert gate.run(groups, answers).tolist() == expected and not all(expected)
    assert gate.all_in_force() == gate.in_force.all()
    alone = [RateGate(constraints, labelled=labelled, outstanding=outstanding, min_count=7).run([z], [k])[0]
             for z, k in np.ndindex(5, n_classes)]  # fmt: skip
    one = RateGate(constraints, labelled=labelled, outstanding=outstanding, min_count=7)
    assert one.is_stuck() == (not any(alone))
    single = PairByPair(constraints, labelled, outstanding, 7)
    for (z, k), found in zip(np.ndindex(5, n_classes), alone, strict=True):
        single.outstanding = outstanding.copy()
        assert single.run([z], [k]) == [found]


def test_a_group_is_not_compared_with_what_it_could_be_itself():
    gate = RateGate(constraints_of([RateParity("true_positive_rate", 0.25)]), labelled=np.full((2, 2, 2), 50))
    assert gate.run([0] * 120, [0, 1] * 60).all()  # between .31 and .69, beside a group at .5
    assert not gate.is_stuck() and gate.worst_case().max() < 0


@pytest.mark.slow
def test_decisions_between_many_groups_never_list_their_pairs(monkeypatch):
    """240 groups of ten classes make 573,600 inequalities of selection rates: a gate over them asks for none."""
    constraints = constraints_of([RateParity("selection_rate", 0.03), RateParity("accuracy", 0.2)], 240, 10)
    for pairs in ("_pairs", "terms", "coefficients"):
        monkeypatch.setattr(RateConstraints, pairs, property(lambda self: pytest.fail("pairs were listed")))
    rng = np.random.default_rng(0)
    labelled = np.full((240, 10, 10), 2) + 30 * np.eye(10, dtype=int)
    gate = RateGate(constraints, labelled=labelled)
    admitted = gate.run(rng.integers(240, size=20_000), rng.integers(10, size=20_000))
    assert gate.all_in_force() and not gate.is_stuck() and 0.05 < admitted.mean() < 0.999
    assert constraints.largest_violation(labelled) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("asked", ["to overall", "several", "equalized odds"])
def test_whom_one_answer_more_would_harm_is_told_as_by_counting_it(asked):
    """An answer moves the rate of its group and that of everybody: both are held against all that they face."""
    rng, found = np.random.default_rng(0), []
    for _ in range(150):
        labelled, outstanding = rng.integers(2, 20, size=(3, 2, 2)), rng.integers(0, 5, size=(3, 2))
        gate = RateGate(constraints_of(ASKED[asked], 3), min_count=1, labelled=labelled, outstanding=outstanding)
        start = gate._ends(gate._outstanding)
        one_more = [gate._fits(np.array([cell]), start) for cell in range(6)]
        np.testing.assert_array_equal(gate._alone().ravel(), one_more)
        found += one_more
        assert gate.is_stuck() == (not any(one_more))
    assert 0 < sum(found) < len(found)
