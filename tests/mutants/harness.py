"""A mutant plants one mistake into the package and names the tests of the suite that must fail on it."""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skfairdp.privacy import GaussianMechanism
from skfairdp.privacy._mechanisms import _Noise

MUTANTS: list["Mutant"] = []

#: Failures that count as noticing. Anything else means that the mutant itself is broken.
NOTICED = (AssertionError, pytest.fail.Exception)


@dataclass(frozen=True)
class Killer:
    """A test of the suite with its parameters."""

    test: Callable[..., None]
    parameters: tuple[tuple[str, Any], ...]

    @property
    def id(self) -> str:
        shown = (value["votes"] if isinstance(value, dict) else value for _, value in self.parameters)
        values = "-".join(map(str, shown))
        return f"{self.test.__name__}[{values}]" if values else self.test.__name__

    def run(self, tmp_path: Path) -> None:
        """Call the test as pytest would, with the two fixtures the named tests use."""
        arguments = dict(self.parameters)
        wanted = inspect.signature(self.test).parameters
        with pytest.MonkeyPatch.context() as patch:
            available = {"monkeypatch": patch, "tmp_path": tmp_path}
            arguments.update({name: available[name] for name in wanted if name in available})
            self.test(**arguments)

    def notices(self, tmp_path: Path) -> bool:
        try:
            self.run(tmp_path)
        except NOTICED:
            return True
        except BaseExceptionGroup as group:  # hypothesis found several distinct failures
            if group.split(NOTICED)[1] is None:
                return True
            raise
        return False


@dataclass(frozen=True)
class Mutant:
    """One mistake. ``trap`` is its number among TRAPS (traps.py), None for one that is not in that list."""

    trap: int | None
    plant: Callable[[pytest.MonkeyPatch], None]
    killers: tuple[Killer, ...]

    @property
    def id(self) -> str:
        return f"{'also' if self.trap is None else f'trap-{self.trap:02d}'}-{self.plant.__name__}"

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """The package with the mistake in it. Cached figures of the honest package must not hide it, nor outlive it."""
        _forget()
        try:
            with pytest.MonkeyPatch.context() as patch:
                self.plant(patch)
                yield
        finally:
            _forget()


def killed_by(test: Callable[..., None], **parameters: Any) -> Killer:
    return Killer(test, tuple(parameters.items()))


def mutant(trap: int | None, *killers: Killer) -> Callable[[Callable[[pytest.MonkeyPatch], None]], Any]:
    """Register a function that plants a mistake through the ``MonkeyPatch`` it is given."""

    def register(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
        assert plant.__doc__, "say what was found in public code and what is right"
        assert killers
        MUTANTS.append(Mutant(trap, plant, killers))
        return plant

    return register


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


def _forget() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("skfairdp.privacy"):
            for value in list(vars(module).values()):
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()
