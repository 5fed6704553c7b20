"""Every planted mistake turns each test it names red; without it those tests are green."""

import pytest

from . import (  # noqa: F401  (importing registers the mutants)
    accounting,
    boundary,
    generators,
    gradient,
    lagrangian,
    ledgers,
    noise,
    partition,
    randomized,
    replay,
    searched_rows,
    searching,
)
from .harness import MUTANTS, Mutant
from .traps import ELSEWHERE, TRAPS

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore:.*groups of PFGuardGenerator have a released count below"),
]

MUTANTS.sort(key=lambda mutant: mutant.id.replace("also", "z"))
PAIRS = [(mutant, killer) for mutant in MUTANTS for killer in mutant.killers]
KILLERS = {killer.id: killer for _, killer in PAIRS}


@pytest.mark.parametrize("name", KILLERS)
def test_the_named_test_passes_on_the_package(name, tmp_path):
    KILLERS[name].run(tmp_path)


@pytest.mark.parametrize(("mutant", "killer"), PAIRS, ids=[f"{mutant.id} > {killer.id}" for mutant, killer in PAIRS])
def test_the_suite_fails_on(mutant, killer, tmp_path):
    with mutant.planted():
        noticed = killer.notices(tmp_path)
    assert noticed, f"{killer.id} passes with this mistake planted: {mutant.plant.__doc__}"


def test_the_bound_without_its_slips_is_no_mistake(tmp_path):
    """What the mutants of the data-dependent bound plant differs from the package in the mistake alone."""
    control = Mutant(None, accounting.plant_theorem_6, ())
    with control.planted():
        for mutant, killer in PAIRS:
            if mutant.trap in (12, 13, 17):
                killer.run(tmp_path)


def test_every_trap_has_a_mutant_or_a_reason():
    planted = {mutant.trap for mutant in MUTANTS} - {None}
    assert planted | ELSEWHERE.keys() == TRAPS.keys()
    assert not planted & ELSEWHERE.keys()
