"""What `help` shows: shared texts in their places, signatures that can be read."""

import importlib
import inspect
import pydoc
import re

import pytest

import skfairdp
from skfairdp._docs import shared_docs


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
    assert lines[5].startswith("    Privacy budget") and lines[6].startswith("noise_seed : int")
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


# ---- signatures ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["RandomizedResponseClassifier"])
def test_help_on_fit_fits_on_a_screen(name):
    cls = getattr(skfairdp, name, None) or getattr(skfairdp.baselines, name)
    lines = pydoc.render_doc(cls.fit, renderer=pydoc.plaintext).splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 360  # the signature is one line, and wraps three times at most
