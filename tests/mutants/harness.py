"""A mutant plants one mistake into the package; the registry names the tests of the suite that must fail on it."""

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from skfairdp.exceptions import UnplannedReleaseError
from skfairdp.privacy import GaussianMechanism
from skfairdp.privacy._mechanisms import _Noise

#: Functions that plant a mistake, by "file.name".
PLANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {}

#: Failures that count as noticing. Anything else means that the mutant itself is broken.
NOTICED = (AssertionError, pytest.fail.Exception, UnplannedReleaseError)


@dataclass(frozen=True)
class Named:
    """A parameter of a test that has no literal: ``package.module.name``, and keys into what is found there.

    An entry of a list that says what it is called is found by its name: others are appended, and places move.
    """

    path: str
    keys: tuple[Any, ...]

    def __init__(self, path: str, *keys: Any) -> None:
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "keys", keys)

    def __str__(self) -> str:
        return "-".join([self.path.rsplit(".", 1)[-1], *map(str, self.keys)])

    def find(self) -> Any:
        module, name = self.path.rsplit(".", 1)
        found = getattr(importlib.import_module(module), name)
        for key in self.keys:
            found = _called(key, found) if isinstance(key, str) and isinstance(found, list) else found[key]
        return found


def _called(name: str, entries: list[Any]) -> Any:
    """The one entry of that name."""
    named = [entry for entry in entries if entry.name == name]
    if len(named) != 1:
        raise LookupError(f"{len(named)} entries are called {name!r}, of {[entry.name for entry in entries]}")
    return named[0]


@dataclass(frozen=True)
class Killer:
    """A test of the suite, by the module and name it has, with its parameters."""

    module: str
    name: str
    parameters: tuple[tuple[str, Any], ...]

    @property
    def id(self) -> str:
        values = "-".join(str(value) for _, value in self.parameters)
        return f"{self.name}[{values}]" if values else self.name

    def find(self) -> Callable[..., None]:
        """The test itself."""
        return getattr(importlib.import_module(self.module), self.name)  # type: ignore[no-any-return]

    def run(self, tmp_path: Path) -> None:
        """Call the test as pytest would, with the two fixtures the named tests use."""
        test = self.find()
        arguments = {name: value.find() if isinstance(value, Named) else value for name, value in self.parameters}
        wanted = inspect.signature(test).parameters
        with pytest.MonkeyPatch.context() as patch:
            available = {"monkeypatch": patch, "tmp_path": tmp_path}
            arguments.update({name: available[name] for name in wanted if name in available})
            test(**arguments)

    def notices(self, tmp_path: Path) -> bool:
        try:
            with _any_failure_will_do(self.find()):
                self.run(tmp_path)
        except NOTICED:
            return True
        except BaseExceptionGroup as group:  # hypothesis found several distinct failures
            if group.split(NOTICED)[1] is None:
                return True
            raise
        return False


@contextlib.contextmanager
def _any_failure_will_do(test: Any) -> Iterator[None]:
    """Hypothesis need not look for the smallest example that fails, nor explain it: that takes most of the time."""
    given = getattr(test, "_hypothesis_internal_use_settings", None)
    if given is None:
        yield
        return
    test._hypothesis_internal_use_settings = settings(given, phases=[Phase.explicit, Phase.generate])
    try:
        yield
    finally:
        test._hypothesis_internal_use_settings = given


@dataclass(frozen=True)
class Noticed:
    """What the registry says of a mutant: the number of its trap, if it has one, and the tests that must fail."""

    trap: int | None
    killers: tuple[Killer, ...]


@dataclass(frozen=True)
class Mutant:
    """One mistake, its trap and the tests that must fail on it."""

    name: str
    trap: int | None
    plant: Callable[[pytest.MonkeyPatch], None]
    killers: tuple[Killer, ...]

    @property
    def id(self) -> str:
        return f"{'also' if self.trap is None else f'trap-{self.trap:02d}'}-{self.plant.__name__}"

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """The package with the mistake in it. Cached figures of the honest package must not hide it, nor outlive it."""
        for killer in self.killers:
            killer.find()  # what is imported later would hold on to the mistake
        tests = {killer.module for killer in self.killers}
        _forget(tests)
        try:
            with pytest.MonkeyPatch.context() as patch:
                self.plant(patch)
                yield
        finally:
            _forget(tests)


def tests_in(module: str) -> Callable[..., Killer]:
    """Name tests of one module of the suite: ``tests_in("pate.test_pate")("test_name", parameter=value)``."""

    def named(name: str, /, **parameters: Any) -> Killer:
        return Killer(f"tests.{module}", name, tuple(parameters.items()))

    return named


def mutant(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """Enlist a function that plants a mistake through the ``MonkeyPatch`` it is given; registry.py says who notices."""
    assert plant.__doc__, "say what was found in public code and what is right"
    name = f"{plant.__module__.rsplit('.', 1)[-1]}.{plant.__name__}"
    assert name not in PLANTS
    PLANTS[name] = plant
    return plant


def replace_everywhere(patch: pytest.MonkeyPatch, original: Any, replacement: Any) -> None:
    """Replace a public function under every name by which a module, or a module of tests, has imported it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("skfairdp") or "test_" in name:
            for attribute, value in list(vars(module).items()):
                if value is original:
                    patch.setattr(module, attribute, replacement)


def replace_draws(patch: pytest.MonkeyPatch, draw: Callable[[Any, tuple[int, ...], Any], Any]) -> None:
    """Every mechanism on votes and vectors draws its noise by ``draw(mechanism, shape, source)``."""
    patch.setattr(_Noise, "_draw", draw)
    patch.setattr(GaussianMechanism, "_rounded", lambda self, values, source: values + draw(self, values.shape, source))


def draws_of(mechanism: Any, shape: tuple[int, ...], source: Any) -> Any:
    """The noise that the package draws, unrounded."""
    if mechanism.noise == "discrete_gaussian":
        return source.discrete_gaussian(mechanism.sigma, shape).astype(float)
    return mechanism.sigma * source.normal(shape)


def _forget(tests: Container[str]) -> None:
    """Empty the caches of the accountants, and those of the tests: a recording of the one must not meet the other."""
    for name, module in list(sys.modules.items()):
        if name.startswith("skfairdp.privacy") or name in tests:
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()
