"""What a mutant counts on, looked up and not run: names of the package, arguments, and tests with their parameters."""

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.mutants.harness import Killer, Mutant, Named

_WRAPPED = (property, classmethod, staticmethod)
_GIVEN = ("monkeypatch", "tmp_path")


class Noting:
    """A ``MonkeyPatch`` that notes what was replaced by what."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        self.replaced: list[tuple[str, Any, Any]] = []

    def setattr(self, target: Any, name: str, value: Any, **more: Any) -> None:
        self.replaced.append((name, inspect.getattr_static(target, name, None), value))
        self.patch.setattr(target, name, value, **more)

    def setitem(self, mapping: Any, name: Any, value: Any) -> None:
        assert name in mapping, f"{name!r} is no key of what is replaced"
        self.replaced.append((name, mapping[name], value))
        self.patch.setitem(mapping, name, value)


def not_planted(mutant: Mutant) -> Iterator[str]:
    """Why a mutant is not in the package once it is planted: a name is gone, or has other arguments by now."""
    with pytest.MonkeyPatch.context() as patch:
        noting = Noting(patch)
        try:
            mutant.plant(noting)  # type: ignore[arg-type]
        except Exception as error:
            yield f"{type(error).__name__}: {error}"
            return
    if not noting.replaced:
        yield "replaces nothing"
    yield from {f"{name}: {why}" for name, honest, planted in noting.replaced for why in _other_call(honest, planted)}


def _other_call(honest: Any, planted: Any) -> Iterator[str]:
    """Whether callers of the one would fail on the other, where both are functions, or wrapped ones."""
    if not inspect.isfunction(_inside(honest)) or not inspect.isfunction(_inside(planted)):
        return
    if isinstance(honest, _WRAPPED) and not isinstance(planted, type(honest)):
        yield f"a {type(honest).__name__} is replaced by a {type(planted).__name__}"
        return
    theirs, ours = inspect.signature(_inside(honest)), inspect.signature(_inside(planted))
    kinds = {kind: [one for one in theirs.parameters.values() if one.kind is kind] for kind in inspect._ParameterKind}
    if kinds[inspect.Parameter.VAR_POSITIONAL]:
        return
    by_place = kinds[inspect.Parameter.POSITIONAL_ONLY] + kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]
    named = [one.name for one in ours.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    for wanted, name in zip((one.name for one in by_place), named, strict=False):
        if wanted != name:
            yield f"{wanted!r} is called {name!r}, so it may be something else by now"
            return
    try:
        ours.bind(*by_place, **{one.name: one for one in kinds[inspect.Parameter.KEYWORD_ONLY]})
    except TypeError as error:
        yield f"called as {theirs}, planted as {ours}: {error}"


def _inside(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    return value.__func__ if isinstance(value, classmethod | staticmethod) else value


def not_asked(killer: Killer) -> Iterator[str]:
    """Why a named test cannot be called as the registry says: it, or a parameter, is gone, or another one is asked."""
    try:
        test = killer.find()
        given = {name: value.find() if isinstance(value, Named) else value for name, value in killer.parameters}
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
        return
    wanted = inspect.signature(test).parameters
    needed = {name for name, one in wanted.items() if one.default is one.empty and one.kind is not one.VAR_KEYWORD}
    drawn = hasattr(test, "hypothesis")
    yield from (f"needs {name!r}" for name in sorted(needed - given.keys() - {*_GIVEN}) if not drawn)
    yield from (f"has no {name!r}" for name in sorted(given.keys() - wanted.keys()) if not drawn)
    asked = _asked_for(test)
    for name, value in given.items():
        if isinstance(value, str) and name in asked and value not in asked[name]:
            yield f"has no case {name}={value!r}"


def _asked_for(test: Any) -> dict[str, list[Any]]:
    """The values of each parameter over which a test is repeated by one list of texts."""
    found = {}
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize" and isinstance(mark.args[0], str) and "," not in mark.args[0]:
            values = [one.values[0] if isinstance(one, type(pytest.param())) else one for one in mark.args[1]]
            if all(isinstance(one, str) for one in values):
                found[mark.args[0]] = values
    return found


def gone(source: str, names: Mapping[str, Any]) -> Iterator[str]:
    """Names of modules and classes that functions of a module of mutants use when they run, and that are not there."""
    for top in ast.parse(source).body:
        if isinstance(top, ast.FunctionDef | ast.ClassDef):
            known = {**names, **_own_names(top)}
            used = [node for node in ast.walk(top) if isinstance(node, ast.Attribute)]
            yield from dict.fromkeys(f"line {node.lineno}: {name}" for node in used if (name := _missing(node, known)))


def _own_names(top: ast.AST) -> dict[str, Any]:
    """The names that a function binds: modules and classes where it imports them, else nothing that is known."""
    own: dict[str, Any] = {}
    for node in ast.walk(top):
        if isinstance(node, ast.arg):
            own[node.arg] = None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own[node.id] = None
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                own[one.asname or one.name] = getattr(importlib.import_module(node.module), one.name)
    return own


def _missing(node: ast.Attribute, known: Mapping[str, Any]) -> str | None:
    """The dotted name as far as a part that is missing, where what stands before it is a module or class."""
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.insert(0, inner.attr)
        inner = inner.value
    found = known.get(inner.id) if isinstance(inner, ast.Name) else None
    for n, part in enumerate(parts, 1):
        if not inspect.ismodule(found) and not inspect.isclass(found):
            return None
        if not hasattr(found, part) and part not in getattr(found, "__annotations__", ()):
            return ".".join([inner.id, *parts[:n]])  # type: ignore[attr-defined]
        found = getattr(found, part, None)
    return None
