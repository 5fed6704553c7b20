"""A named test that the session runs anyway, in the same way, need not be run a second time on the honest package."""

from typing import Any

import pytest

from tests.mutants.harness import Killer, Named

#: Fixtures that a named test is given here too, what pytest adds to itself, and a pool that would start anyway.
GIVEN = {"monkeypatch", "tmp_path", "request", "tmp_path_factory", "two_workers"}


def same(one: Any, other: Any) -> bool:
    """Whether two parameters are the same value for sure: what cannot be compared is not."""
    return one is other or (type(one) is type(other) and isinstance(one, bool | int | float | str) and one == other)


def runs(item: pytest.Item, killer: Killer) -> bool:
    """Whether an item calls the test as the killer does: with its parameters, no fixture around it, and no way out."""
    if not isinstance(item, pytest.Function):
        return False
    if (item.module.__name__, item.originalname) != (killer.module, killer.name):
        return False
    if any(item.get_closest_marker(mark) for mark in ("skip", "skipif", "xfail")):
        return False
    given = item.callspec.params if hasattr(item, "callspec") else {}
    wanted = {name: value.find() if isinstance(value, Named) else value for name, value in killer.parameters}
    if set(item.fixturenames) - GIVEN - set(given):
        return False
    return given.keys() == wanted.keys() and all(same(given[name], wanted[name]) for name in wanted)


@pytest.hookimpl(trylast=True)  # what -m and -k leave out is not run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    by_name: dict[tuple[str, str | None], list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function):
            by_name.setdefault((item.module.__name__, item.originalname), []).append(item)
    again = []
    for item in by_name.get(("tests.mutants.test_mutants", "test_the_named_test_passes_on_the_package"), []):
        killer = item.module.KILLERS[item.callspec.params["name"]]
        if any(runs(other, killer) for other in by_name.get((killer.module, killer.name), [])):
            again.append(item)
    if again:
        config.hook.pytest_deselected(items=again)
        left_out = set(again)
        items[:] = [item for item in items if item not in left_out]
