"""What `help` shows: shared texts in their places, signatures that can be read."""

import dataclasses
import importlib
import inspect
import pydoc
import re
import tomllib
from enum import Enum
from pathlib import Path

import pytest

import skfairdp
from tests._tools.inside import shared_docs


def public_objects():
    """(name, class or function) of every public name that is defined here."""
    found = {}
    for room in skfairdp._ROOMS:
        module = importlib.import_module(f"skfairdp.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("skfairdp"):
                found[f"{value.__module__}.{name}"] = value
    return sorted(found.items())


def documented(value):
    """A class and what it defines for users, or a function."""
    yield value
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_") and (inspect.isfunction(member) or hasattr(member, "fn")):
                yield getattr(value, name)


PUBLIC = public_objects()


# ---- shared texts --------------------------------------------------------------------------------------------
def test_no_place_of_a_shared_text_is_left_open():
    left = [
        (name, place)
        for name, value in PUBLIC
        for part in documented(value)
        for place in re.findall(r"(?m)^ *\{\w+\}$", inspect.getdoc(part) or "")
    ]
    assert left == []


def test_a_shared_text_stands_at_the_indent_of_its_place_with_the_default_of_the_signature():
    @shared_docs
    class Model:
        """Model.

        Parameters
        ----------
        {epsilon}
        {noise_seed}
        """

        def __init__(self, epsilon=7.5, noise_seed=None):
            """Store.

            Parameters
            ----------
            {verbose}
            """

    lines = inspect.getdoc(Model).splitlines()
    assert lines[4] == "epsilon : float, default=7.5"
    assert lines[5].startswith("    Privacy budget") and any(line.startswith("noise_seed : int") for line in lines[6:])
    assert "verbose : int, default=0" in inspect.getdoc(Model.__init__).splitlines()


def test_an_unknown_shared_text_is_an_error_that_names_the_class_and_the_text():
    with pytest.raises(KeyError, match=r"Model: no shared text 'epsilom'"):

        @shared_docs
        class Model:
            """Model.

            {epsilom}
            """


def test_a_set_in_braces_within_a_sentence_is_left_alone():
    @shared_docs
    class Model:
        """One of {0, 1}, or {epsilon} in words."""

    assert Model.__doc__ == "One of {0, 1}, or {epsilon} in words."


# ---- the reference -------------------------------------------------------------------------------------------
REFERENCE = Path(__file__).parents[1] / "docs" / "reference.toml"

#: Checks of numpydoc for everything the reference lists: each parameter and result has a type and a description.
#: Left out: examples and "see also" for every method, returns without a name, summaries that are questions.
STRICT = {
    "GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10", "SS01", "SS02", "SS04", "SS06",
    "PR01", "PR02", "PR03", "PR04", "PR05", "PR07", "PR09", "PR10", "RT01", "RT03", "YD01",
}  # fmt: skip

#: Checks for all other public names: there is a docstring, and what it says of parameters is true.
LENIENT = {"GL08", "SS01", "SS02", "PR02", "PR03", "PR05", "PR10", "YD01"}


def in_reference():
    if not REFERENCE.exists():
        return []
    tasks = tomllib.loads(REFERENCE.read_text(encoding="utf-8"))["task"]
    return [name for task in tasks for name in task["names"]]


def resolved(name):
    room, _, rest = name.rpartition(".")
    return getattr(importlib.import_module(f"skfairdp.{room}") if room else skfairdp, rest)


def paths(value):
    """Where numpydoc finds a class or function and its public methods, inherited ones of ours included."""
    yield f"{value.__module__}.{value.__qualname__}"
    for name in dir(value) if inspect.isclass(value) else ():
        owner = next((cls for cls in value.__mro__ if name in vars(cls)), None)
        if owner is None or name.startswith("_") or not owner.__module__.startswith("skfairdp"):
            continue
        member = vars(owner)[name]
        if (
            inspect.isfunction(member)
            or isinstance(member, property | classmethod | staticmethod)
            or hasattr(member, "fn")
        ):
            yield f"{owner.__module__}.{owner.__qualname__}.{name}"


def made_by_the_package(value):
    """Enums, and results that describe their fields as attributes: users read them and never build one."""
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    described = fields and "Attributes\n----------" in inspect.getdoc(value)
    return bool(described) or (inspect.isclass(value) and issubclass(value, Enum))


def complaints(value, codes):
    validate = pytest.importorskip("numpydoc.validate").validate
    for path in paths(value):
        for code, text in validate(path)["errors"]:
            if code in codes and not (code == "PR01" and made_by_the_package(value)):
                yield f"{path}: {code} {text}"


@pytest.mark.parametrize("name", in_reference())
def test_what_the_reference_lists_is_documented_in_full(name):
    value = resolved(name)
    assert list(complaints(value, STRICT)) == []


@pytest.mark.parametrize("name", in_reference())
def test_what_the_reference_lists_has_an_example_or_says_what_returns_it(name):
    """The examples run as doctests of their modules."""
    value = resolved(name)
    said = inspect.getdoc(value)
    if made_by_the_package(value):
        assert ">>> " in said or re.search(r":(func|meth):`\.?[\w.~]+`", said), name
    else:
        assert "Examples\n--------" in said and ">>> " in said, name


@pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_every_public_name_is_documented_and_true_to_its_signature(name, value):
    assert list(complaints(value, LENIENT)) == []


def test_the_reference_lists_every_name_of_the_top_level_once():
    listed = in_reference()
    assert len(listed) == len(set(listed))
    assert set(skfairdp.__all__) <= set(listed)


# ---- signatures ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(name for name in skfairdp.__all__ if hasattr(getattr(skfairdp, name), "fit")))
def test_help_on_fit_fits_on_a_screen(name):
    said = pydoc.render_doc(getattr(skfairdp, name).fit, renderer=pydoc.plaintext)
    # A long signature is one line, and from Python 3.13 on one for each parameter.
    signature, _, rest = said.partition("\n    ") if "fit(self" in said else said.partition("\n)")
    assert len(rest.splitlines()) <= 48
    assert len(" ".join(signature.split())) <= 500  # it wraps four times where subjects and exposures are taken
