"""docs/architecture.md tells what is there: its names import, its arguments are taken, its tree is today's."""

import ast
import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import skfairdp

PACKAGE = Path(skfairdp.__file__).parent
DOCS = PACKAGE.parent / "docs"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")

#: Names at the top, and those that each room gives to its neighbours.
NAMES = {name: getattr(skfairdp, name) for name in skfairdp.__all__}
for _room in skfairdp._ROOMS:
    _module = importlib.import_module(f"skfairdp.{_room}")
    NAMES |= {_room: _module, **{name: getattr(_module, name) for name in dir(_module) if name[0] != "_"}}

#: What "the networks' backends" are.
OF_NETWORKS = ("GSWGANBackend", "PATEGANBackend", "GPATEBackend", "DataLensBackend")


def table(title):
    """The cells of each row of the table below a title."""
    rows = re.findall(r"^\|(.*)\|$", PAGE.split(f"## {title}\n")[1].split("\n## ")[0], flags=re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows[2:]]


SYSTEMS = table("Where each paper's systems and variants live now")
PARTS = table("Parts instead of options")


def code(text):
    return re.findall(r"`([^`]+)`", text)


def found(node):
    """The object of a public name such as ``IDP3`` or ``fairness.FairnessGate``."""
    if isinstance(node, ast.Attribute):
        return getattr(found(node.value), node.attr)
    assert isinstance(node, ast.Name) and node.id in NAMES, f"{ast.unparse(node)} is no public name"
    return NAMES[node.id]


def parameters(kind):
    return inspect.signature(kind).parameters


def made(kind, **given):
    """An object of a class with these parameters, which it accepts; an ellipsis stands for whatever one likes."""
    assert given.keys() <= parameters(kind).keys(), f"{kind.__name__} has no {sorted(given)}"
    thing = kind(**{name: value for name, value in given.items() if value is not ...})
    for check in ("_validate_params", "_parts", "_read_parts"):
        if hasattr(thing, check):
            getattr(thing, check)()
    return thing


def value_of(node):
    """The object that an expression of the page stands for; checked on the way."""
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.Call):
        return found(node)
    given = {one.arg: value_of(one.value) for one in node.keywords}
    if isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
        assert {one.id for one in node.args} | given.keys() <= parameters(found(node.func)).keys()
        return None
    return made(found(node.func), **given)


def classes_of(row, name):
    """The classes of a row that have a parameter; where none has, all estimators and parts that have it."""
    names = OF_NETWORKS if "networks' backends" in row[-1] else re.findall(r"\w+", " ".join(code(row[-1])))
    named = [NAMES[one] for one in names if inspect.isclass(NAMES.get(one))]
    known = [kind for kind in NAMES.values() if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]
    return next((having for kinds in (named, known) if (having := [k for k in kinds if name in parameters(k)])), [])


def taken(kinds, name, value):
    """Whether one of these classes takes this value for a parameter."""
    for kind in kinds:
        try:
            made(kind, **{name: value})
        except (ValueError, TypeError):
            continue
        return True
    return False


def check_row(row):
    """Raise where an expression in the last cell names or asks for something that is not there."""
    last = None
    for text in code(row[-1]):
        if text.endswith(".py"):
            assert list(PACKAGE.rglob(text)), f"no file {text}"
            continue
        if argument := re.fullmatch(r"(\w+)=(.*)", text):
            last = argument[1]
            value = value_of(ast.parse(argument[2] or "...", mode="eval").body)
            assert taken(classes_of(row, last), last, value), f"nothing takes {text}"
            continue
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Constant):  # another value of the argument before it
            assert last is not None and taken(classes_of(row, last), last, tree.value), f"nothing takes {last}={text}"
            continue
        value_of(tree)
        last = next((one.arg for one in ast.walk(tree) if isinstance(one, ast.keyword)), last)


@pytest.mark.parametrize("row", SYSTEMS, ids=lambda row: row[1])
def test_each_system_and_variant_of_a_paper_is_where_the_page_says(row):
    assert code(row[-1]), "no name"
    check_row(row)


@pytest.mark.parametrize("row", PARTS, ids=lambda row: f"{row[0]} of {row[2]}")
def test_each_part_is_public_and_each_estimator_named_has_its_parameter(row):
    name, owners = code(row[0])[0].removesuffix("="), code(row[2])
    assert owners
    for owner in owners:
        assert name in parameters(NAMES[owner]), owner
    for part in code(row[1]):
        assert inspect.isclass(found(ast.parse(part, mode="eval").body))


def test_the_three_answers_name_definitions_where_they_are():
    answers = PAGE.split("## How a fit reads")[0]
    places = re.findall(r"`([\w.]+)(?:\([^`]*\))?` \(`([\w/]+\.py)`\)", answers)
    assert len(places) >= 5
    for name, file in places:
        module = importlib.import_module(".".join(("skfairdp", *Path(file).with_suffix("").parts)))
        thing = module
        for part in name.split("."):
            thing = getattr(thing, part)
        assert thing.__module__ == module.__name__, f"{name} is only imported by {file}"


def test_the_tree_is_todays():
    assert runpy.run_path(str(DOCS / "tree.py"))["tree"]() in PAGE


@pytest.mark.parametrize(
    "row",
    [
        ["", "`VotingThatIsNot()`"],
        ["", "`VoteGate(rule='global')`"],
        ["", "`FairPATEClassifier(gate='sometimes')`"],
        ["", "`sampling='never'` of the networks' backends"],
        ["", "`PFGuardGenerator.fit(X, y, X_secret=...)`"],
        ["", "`VoteGate(rule='local')`; `'global'`"],
        ["", "`_missing.py`"],
    ],
    ids=lambda row: row[1],
)
def test_a_name_or_a_value_that_is_not_there_is_noticed(row):
    with pytest.raises((AssertionError, ValueError)):
        check_row(row)
