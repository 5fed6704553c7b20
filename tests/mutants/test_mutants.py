"""Every planted mistake turns each test it names red; without it those tests are green."""

import inspect
import sys

import pytest

from tests._tools.inside import PATEPlan
from tests.mutants import (  # noqa: F401  (importing enlists the mutants)
    accounting,
    boundary,
    generators,
    gradient,
    lagrangian,
    ledgers,
    noise,
    own_rows,
    partition,
    randomized,
    replay,
    schemas,
    searched_rows,
    searching,
    subjects,
    summing,
    thresholding,
)
from tests.mutants.conftest import runs
from tests.mutants.harness import PLANTS, Killer, Mutant, Named
from tests.mutants.registry import NOTICED
from tests.mutants.still_meant import gone, not_asked, not_planted
from tests.mutants.traps import ELSEWHERE, TRAPS

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore:.*groups of PFGuardGenerator have a released count below"),
    pytest.mark.filterwarnings("ignore:FairnessCalibrator follows noise"),
    pytest.mark.filterwarnings("ignore:.*given to PrivateBarycenter has no privacy_"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

MUTANTS = [Mutant(name, said.trap, PLANTS[name], said.killers) for name, said in NOTICED.items() if name in PLANTS]
MUTANTS.sort(key=lambda mutant: mutant.id.replace("also", "z"))
PAIRS = [(mutant, killer) for mutant in MUTANTS for killer in mutant.killers]
KILLERS = {killer.id: killer for _, killer in PAIRS}
#: One pair for each trap runs in ``make test``; all others are a layer of ``make test-all``.
FAST = list({mutant.trap: (mutant, killer) for mutant, killer in reversed(PAIRS) if mutant.trap is not None}.values())
FAST_KILLERS = {killer.id for _, killer in FAST}


def fast_or_slow(values, fast):
    return [value if fast(value) else pytest.param(value, marks=pytest.mark.slow) for value in values]


@pytest.mark.parametrize("name", fast_or_slow(KILLERS, FAST_KILLERS.__contains__))
def test_the_named_test_passes_on_the_package(name, tmp_path):
    KILLERS[name].run(tmp_path)


@pytest.mark.parametrize("n", [1])
def test_the_honest_run_is_left_out_only_where_pytest_makes_the_same_call(request, n):
    name = request.node.originalname
    assert runs(request.node, Killer(__name__, name, (("n", 1),)))
    for other in ((), (("n", 2),), (("n", True),), (("m", 1),), (("n", 1), ("m", 1))):
        assert not runs(request.node, Killer(__name__, name, other))
    assert not runs(request.node, Killer(__name__, "test_another", (("n", 1),)))
    assert not runs(request.node, Killer("tests.another", name, (("n", 1),)))


@pytest.mark.parametrize("mark", ["skip", "skipif"])
def test_what_may_be_skipped_is_no_honest_run(request, mark):
    asked = Killer(__name__, request.node.originalname, (("mark", mark),))
    assert runs(request.node, asked)
    request.node.add_marker(
        pytest.mark.xfail(strict=False) if mark == "xfail" else mark
    )  # after the set-up, which alone asks for it
    assert not runs(request.node, asked)


def test_what_a_fixture_surrounds_is_no_honest_run(request, routing):
    assert not runs(request.node, Killer(__name__, request.node.originalname, ()))


@pytest.mark.parametrize(
    "pair", fast_or_slow(PAIRS, FAST.__contains__), ids=[f"{mutant.id} > {killer.id}" for mutant, killer in PAIRS]
)
def test_the_suite_fails_on(pair, tmp_path):
    mutant, killer = pair
    with mutant.planted():
        noticed = killer.notices(tmp_path)
    assert noticed, f"{killer.id} passes with this mistake planted: {mutant.plant.__doc__}"


@pytest.mark.slow
def test_the_bound_without_its_slips_is_no_mistake(tmp_path):
    """What the mutants of the data-dependent bound plant differs from the package in the mistake alone."""
    control = Mutant("accounting.plant_theorem_6", None, accounting.plant_theorem_6, ())
    with control.planted():
        for mutant, killer in PAIRS:
            if mutant.trap in (12, 13, 17):
                killer.run(tmp_path)


def test_every_mutant_has_tests_that_notice_it_and_the_registry_names_no_other():
    assert PLANTS.keys() == NOTICED.keys()
    assert all(said.killers for said in NOTICED.values())


def test_a_named_test_is_one_of_the_suite():
    """A killer by its bare name must mean one test, and one that pytest would run."""
    places: dict[str, set[str]] = {}
    for killer in KILLERS.values():
        assert callable(killer.find())
        assert killer.name.startswith("test_") or killer.module == "tests.mutants.replay"
        places.setdefault(killer.name, set()).add(killer.module)
    by_module = {name: modules for name, modules in places.items() if len(modules) > 1}
    ids = [(killer.module, killer.id) for _, killer in PAIRS]
    assert len({name for _, name in ids}) == len(set(ids)), by_module


def test_what_a_mutant_replaces_is_there_and_is_called_in_the_same_way():
    """Nothing is fitted: who renames a function hears of its mutants at once, and not when they all run."""
    assert not [f"{mutant.name}: {fault}" for mutant in MUTANTS for fault in not_planted(mutant)]


def test_what_a_planted_mistake_uses_is_there():
    modules = [sys.modules[name] for name in sorted({mutant.plant.__module__ for mutant in MUTANTS})]
    assert not [
        f"{module.__name__}, {fault}" for module in modules for fault in gone(inspect.getsource(module), vars(module))
    ]


def test_a_name_that_is_gone_is_told_where_a_function_uses_it():
    source = "def plant(patch):\n    {}\n    patch.setattr(summing, 'of', lambda sums: summing.{}.release(sums))"
    assert not list(gone(source.format("pass", "ClassSums"), globals()))
    assert list(gone(source.format("pass", "ClassTotals"), globals())) == ["line 3: summing.ClassTotals"]
    assert not list(gone(source.format("summing = patch", "ClassTotals"), globals()))


def test_a_named_test_has_the_parameters_of_the_registry():
    assert not [f"{killer.id}: {fault}" for killer in KILLERS.values() for fault in not_asked(killer)]


def _of_class_sums(patch):
    patch.setattr(summing.ClassSums, "release", lambda self, X: None)


def _of_another_order(patch):
    patch.setattr(summing.ClassSums, "release", lambda self, y, X, *more: None)


def _of_what_was_renamed(patch):
    patch.setattr(summing.ClassSums, "released", lambda self: None)


def _of_nothing(patch):
    pass


def _of_a_property(patch):
    patch.setattr(PATEPlan, "releases", lambda self: ())


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (_of_class_sums, "release: called as"),
        (_of_another_order, "'X' is called 'y'"),
        (_of_what_was_renamed, "AttributeError"),
        (_of_nothing, "replaces nothing"),
        (_of_a_property, "a property is replaced by a function"),
    ],
)
def test_a_mutant_of_another_package_is_told(plant, says):
    (fault,) = not_planted(Mutant("mutant", None, plant, ()))
    assert says in fault


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("test_that_was_renamed", (), "AttributeError"),
        ("test_what_may_be_skipped_is_no_honest_run", (("mark", "skip"), ("n", 1)), "has no 'n'"),
        ("test_what_may_be_skipped_is_no_honest_run", (("mark", "xfail"),), "has no case mark='xfail'"),
        ("test_what_is_asked", (), "needs 'n'"),
        ("test_what_is_asked", (("n", Named("tests.replay.test_subjects.WAYS", "no way")),), "LookupError"),
    ],
)
def test_a_registry_of_another_suite_is_told(name, parameters, says, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "test_what_is_asked", lambda n, tmp_path: None, raising=False)
    told = list(not_asked(Killer(__name__, name, parameters)))
    assert any(says in fault for fault in told)


def test_every_trap_has_a_mutant_or_a_reason():
    planted = {mutant.trap for mutant in MUTANTS} - {None}
    assert planted | ELSEWHERE.keys() == TRAPS.keys()
    assert not planted & ELSEWHERE.keys()
