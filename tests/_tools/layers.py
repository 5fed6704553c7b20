"""Which cases of a table ``make test`` runs, and which only ``make test-all`` does.

A test with ``@pytest.mark.covering`` is asked every case by ``make test-all``. ``make test`` asks as many as it takes
for each value of each of its arguments to come up at least once: of 3 rates by 4 classes, 4 cases instead of 12. With
names, ``covering("rate", "kind")``, only the values of these must come up: the others repeat one proof, such as seeds
and sizes. Where a case takes long and another one says much the same, ``@pytest.mark.few(2)`` leaves two
cases in ``make test``, as different from each other as may be. The first case of a table is always among those kept.

Of what is left, a test whose cases take more than ``SECONDS`` together is ``long``: ``make test`` asks as many of its
cases as fit into these seconds, none where one takes longer, and ``make test-long``, which CI runs as well, the others.
Which tests these are follows no machine, but a list, made of a run: ``python -m tests._tools.layers FILE``, of the
FILE that ``pytest --junitxml=FILE`` writes.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

__all__ = ["LONG_EXAMPLES", "PROFILE", "SECONDS", "cover", "examples", "leave_for_later", "write_list"]

#: Of hypothesis: the same examples in every run, so that a red test tells of the change that made it red. ``make
#: test-all`` looks elsewhere each time, with ``--hypothesis-profile=fresh``.
PROFILE = "same"


def cover(cases):
    """Indices of few of the cases, which are sets, that hold between them all that is in any, as evenly as may be."""
    missing, kept, held = set().union(*cases), [], Counter()
    while missing:
        best = max(range(len(cases)), key=lambda i: (len(cases[i] & missing), -sum(held[value] for value in cases[i])))
        best = best if kept else 0
        kept.append(best)
        missing -= cases[best]
        held.update(cases[best])
    return kept


# Registered wherever this is imported: worker processes that import a test module know no conftest.
settings.register_profile(PROFILE, derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)


def examples(n):
    """How many examples of a property are tried: n where they are fresh ones, as in ``make test-all``, or a quarter."""
    return n if settings.default is settings.get_profile("fresh") else n // 4


def _values(item, names):
    """What the case gives for each argument that counts; values without a hash are told apart by their place."""
    given = item.callspec.params.items()
    return {(name, _key(value)) for name, value in given if not names or name in names}


def _key(value):
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


SECONDS = 1.25
_LIST = Path(__file__).parents[1] / "vectors" / "long_tests.json"


def write_list(report):
    """Write down which tests take longer than ``SECONDS``, and how long a case of each does."""
    seconds = defaultdict(list)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        seconds[f"{case.get('classname')}::{case.get('name').partition('[')[0]}"].append(float(case.get("time")))
    taken = {name: round(sum(all_) / len(all_), 2) for name, all_ in seconds.items() if sum(all_) > SECONDS}
    _LIST.write_text(json.dumps(taken, indent=0, sort_keys=True) + "\n", encoding="utf-8")


#: Examples in docstrings that take seconds.
LONG_EXAMPLES = {
    "skfairdp.pate._sf_pate.SFPATEClassifier",
    "skfairdp.inspection._audit_estimator.audit",
    "skfairdp.model_selection._pareto_search.ParetoSearchCV",
    "skfairdp.postprocessing._private_thresholds.PrivateThresholds",
    "skfairdp.lagrangian._fld.LagrangianClassifier",
}


def leave_for_later(items):
    """Mark as slow what the tests with ``covering`` do not need to cover their values, and those with ``few`` leave."""
    tables = defaultdict(list)
    for item in items:
        if item.name in LONG_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        mark = item.get_closest_marker("few") or item.get_closest_marker("covering")
        if mark is not None and hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            tables[item.nodeid.partition("[")[0], mark.name, mark.args].append(item)
    for (_, name, given), cases in tables.items():
        kept = cover([_values(item, given if name == "covering" else ()) for item in cases])
        kept = set(kept if name == "covering" else kept[: given[0]])
        for i, item in enumerate(cases):
            if i not in kept:
                item.add_marker(pytest.mark.slow)
    _leave_long_ones(items)


def _leave_long_ones(items):
    taken = json.loads(_LIST.read_text(encoding="utf-8"))
    tests = defaultdict(list)
    for item in items:
        file, _, name = item.nodeid.partition("[")[0].partition(".py::")
        name = f"{file.replace('/', '.')}::{name}"
        if name in taken and item.get_closest_marker("slow") is None:
            tests[name].append(item)
    for name, cases in tests.items():
        kept = cover([_values(item, ()) for item in cases]) if hasattr(cases[0], "callspec") else []
        kept = [*kept, *(i for i in range(len(cases)) if i not in kept)]
        for i in kept[int(SECONDS / taken[name]) :]:
            cases[i].add_marker(pytest.mark.long)


if __name__ == "__main__":
    write_list(sys.argv[1])
