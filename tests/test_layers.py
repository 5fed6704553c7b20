"""The cases of a table that ``make test`` asks: few, and each value of each argument among them."""

import itertools
from types import SimpleNamespace

import pytest

from tests._tools import layers
from tests._tools.layers import LONG_EXAMPLES, SECONDS, cover, leave_for_later, write_list


@pytest.mark.parametrize("sizes", [(3, 4), (2, 2, 5), (1, 6), (4,)])
def test_as_many_cases_as_the_longest_argument_has_values_cover_a_product(sizes):
    cases = [set(enumerate(case)) for case in itertools.product(*map(range, sizes))]
    kept = cover(cases)
    assert set().union(*(cases[i] for i in kept)) == set().union(*cases)
    assert len(kept) == len(set(kept)) == max(sizes) and kept[0] == 0


def test_values_come_up_as_evenly_as_may_be():
    kept = cover([{("a", a), ("b", b)} for a in range(8) for b in range(2)])
    assert [index % 2 for index in kept] == [0, 1] * 4


def test_what_no_other_case_holds_is_kept():
    assert cover([{1}, {1, 2}, {2, 4}, {3}]) == [0, 2, 3]
    assert cover([]) == []


class Item:
    """As pytest makes one of each case."""

    def __init__(self, name, params, *marks):
        self.name, self.marks = name, list(marks)
        self.nodeid = f"test_file.py::{name}[{'-'.join(map(str, params.values()))}]"
        self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return next((mark.mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark):
        self.marks.append(mark)


def later(items):
    leave_for_later(items)
    return [item.get_closest_marker("slow") is not None for item in items]


def test_a_product_is_covered_by_the_cases_that_are_not_slow_already():
    marks = {"x": [], "y": [pytest.mark.slow], "z": []}
    first, second = [1], [1]  # equal, and not the same: told apart, as what cannot be looked up
    table = [
        Item("test_all", {"a": a, "b": b}, pytest.mark.covering, *marks[b])
        for b in marks
        for a in (first, second, True, 1)
    ]
    kept = [item.nodeid for item, slow in zip(table, later(table), strict=True) if not slow]
    assert [name.partition("[")[2] for name in kept] == ["[1]-x]", "True-x]", "[1]-z]", "1-z]"]


def test_only_the_named_arguments_must_be_covered_and_each_test_by_itself():
    cases = [("p", 0), ("p", 1), ("q", 2), ("q", 3)]
    table = [Item(name, {"a": a, "seed": seed}, pytest.mark.covering("a")) for name in "fg" for a, seed in cases]
    assert later(table) == [False, True, False, True] * 2


def test_of_a_table_that_leaves_few_these_are_as_different_as_may_be():
    product = [Item("f", {"a": a, "b": b}, pytest.mark.few(2)) for a in "pq" for b in "xyz"]
    assert later(product) == [False, True, True, True, False, True]
    assert later([Item("g", {"a": a}, pytest.mark.few(1)) for a in range(3)]) == [False, True, True]


def test_without_the_mark_or_a_table_nothing_is_left_for_later():
    table = [Item("test_all", {"a": a}, *marks) for a, marks in [(1, []), (1, []), (1, [pytest.mark.slow])]]
    alone = Item("test_alone", {}, pytest.mark.covering)
    del alone.callspec
    assert later([*table, alone]) == [False, False, True, False]


def test_examples_of_docstrings_that_take_seconds_are_slow_and_the_others_are_not():
    examples = [Item(name, {}) for name in [*sorted(LONG_EXAMPLES), "skfairdp.pate._pate.PATEClassifier"]]
    assert later(examples) == [True] * len(LONG_EXAMPLES) + [False]


def test_what_takes_long_is_left_but_for_the_cases_that_fit(tmp_path, monkeypatch):
    case = '<testcase classname="test_file" name="{}[{}]" time="{}"/>'
    cases = [case.format("f", i, SECONDS / 2.5) for i in range(4)] + [case.format("g", 0, 2 * SECONDS)]
    report = tmp_path / "report.xml"
    report.write_text(f"<suite>{''.join([*cases, case.format('h', 0, SECONDS / 2)])}</suite>")
    monkeypatch.setattr(layers, "_LIST", tmp_path / "list.json")
    write_list(report)
    table = [Item("f", {"a": a}) for a in range(4)] + [Item("g", {"a": 0}), Item("h", {"a": 0})]
    assert later(table) == [False] * 6
    assert [item.get_closest_marker("long") is not None for item in table] == [False, False, True, True, True, False]
