"""Which cases of a table ``make test`` runs, and which only ``make test-all`` does.

A test with ``@pytest.mark.covering`` is asked every case by ``make test-all``. ``make test`` asks as many as it takes
for each value of each of its arguments to come up at least once: of 3 rates by 4 classes, 4 cases instead of 12. With
names, ``covering("rate", "kind")``, only the values of these must come up: the others repeat one proof, such as seeds
and sizes. Where a case takes long and another one says much the same, ``@pytest.mark.few(2)`` leaves two
cases in ``make test``, as different from each other as may be. The first case of a table is always among those kept.
"""

from collections import Counter, defaultdict

import pytest
from hypothesis import settings

__all__ = ["LONG_EXAMPLES", "PROFILE", "cover", "examples", "leave_for_later"]

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
