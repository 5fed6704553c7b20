"""Texts that many docstrings share: written once in ``_docs.txt``, put into the docstrings when a class is made.

A line that holds nothing but names in braces stands for whole entries::

    Parameters
    ----------
    {epsilon, delta}
    threshold : float, default=None
        A parameter of this class alone is described in its place.
    {noise_seed}

What differs between classes is no shared text: write it out in the class.
"""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from textwrap import indent
from typing import Any, TypeVar

_Documented = TypeVar("_Documented", bound=Callable[..., Any])

_PLACE = re.compile(r"^(?P<indent>[ ]*)\{(?P<names>\w+(, \w+)*)\}$", re.MULTILINE)

_DEFAULT = re.compile(r"\{default ?(\w*)\}")


@cache
def shared_texts() -> dict[str, str]:
    """Every text by its name."""
    text = (pkgutil.get_data("skfairdp", "_docs.txt") or b"").decode()
    _, *parts = re.split(r"^\[(\w+)\]\n", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    found = {name: part.strip("\n") for name, part in zip(parts[::2], parts[1::2], strict=True)}
    # whole sections, for methods that have no other argument and result
    of_predictions = f"Parameters\n----------\n{found['X_predict']}\n\nReturns\n-------\n"
    return found | {
        f"predicts_{kind}": of_predictions + found[f"returns_{kind}"] for kind in ("labels", "proba", "scores")
    }


def shared_docs(documented: _Documented) -> _Documented:
    """Put the shared texts into the docstrings of a function, or of a class and the methods it defines."""
    documented.__doc__ = _filled(documented.__doc__, documented)
    members = vars(documented).values() if inspect.isclass(documented) else ()
    for member in members:
        for layer in _layers(member):
            layer.__doc__ = _filled(layer.__doc__, layer)
    return documented


def _layers(member: Any) -> Iterator[Callable[..., Any]]:
    """The functions that a method is made of: classmethods and scikit-learn wrap some of them."""
    layer = getattr(member, "fn", getattr(member, "__func__", member))
    while inspect.isfunction(layer):
        yield layer
        layer = getattr(layer, "__wrapped__", None)


def _filled(doc: str | None, owner: Callable[..., Any]) -> str | None:
    if doc is None or not _PLACE.search(doc):  # python -OO has no docstrings
        return doc
    parameters = inspect.signature(owner).parameters

    def text(name: str) -> str:
        if name not in shared_texts():
            raise KeyError(f"{owner.__qualname__}: no shared text {name!r}. Write it out, or add it to _docs.txt.")
        return _DEFAULT.sub(lambda of: repr(parameters[of[1] or name].default), shared_texts()[name])

    return _PLACE.sub(lambda at: indent("\n".join(map(text, at["names"].split(", "))), at["indent"]), doc)
