"""Which functions of the package one call enters, in the order in which a reader would meet them.

A function is a ``def`` that stands in a module or in a class. What is written inside it (comprehensions, lambdas,
closures) is read with it, a property is a name for a value, and a constructor is a line of whoever makes the object:
these do not count. They are listed all the same, so that nothing hides there.

``python -m tests._tools.trace`` prints the trip of the fit that the tests hold.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import skfairdp

PACKAGE = Path(skfairdp.__file__).parent
CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})


@dataclass(frozen=True)
class Entered:
    """A function, by its file and its dotted name in there; and whether it counts as one."""

    file: str
    name: str
    counts: bool


@dataclass(frozen=True)
class Trip:
    """What was entered, each function once, and how much of it before the ledger was first asked.

    Parameters
    ----------
    entered : tuple of Entered
        In the order of first calls.
    asked : int or None
        How many of them came before the ledger's first charge, dry runs among them; None where it was never asked.
    """

    entered: tuple[Entered, ...]
    asked: int | None

    @property
    def functions(self) -> list[Entered]:
        return [one for one in self.entered if one.counts]

    @property
    def files(self) -> list[str]:
        return sorted({one.file for one in self.functions})

    @property
    def files_before_ledger(self) -> list[str]:
        return sorted({one.file for one in self.entered[: self.asked] if one.counts})


def trip(call: Callable[[], Any]) -> Trip:
    """Watch one call. Threads and other processes are not followed."""
    seen: dict[tuple[str, str], None] = {}
    asked: list[int] = []

    def watch(frame: Any, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            return
        if frame.f_code.co_qualname == "PrivacyLedger.charge":
            asked.append(len(seen))
        seen[str(Path(frame.f_code.co_filename).relative_to(PACKAGE)), frame.f_code.co_qualname] = None

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Trip(tuple(Entered(*key, counts=_counts(*key)) for key in seen), asked[0] if asked else None)


def _counts(file: str, name: str) -> bool:
    parts = name.split(".")
    if "<" in name or parts[-1] in CONSTRUCTORS:
        return False
    found: Any = importlib.import_module(".".join(("skfairdp", *Path(file).with_suffix("").parts)))
    for part in parts:
        found = vars(found).get(part)
        if found is None:  # a class that a function makes, or a function under another name: to be read all the same
            return True
    return not isinstance(found, property | cached_property)


def fair_pate_fit() -> Callable[[], Any]:
    """The fit of FairPATE's own example, with a ledger, ready to be called."""
    from skfairdp import FairPATEClassifier, PrivacyLedger
    from skfairdp.datasets import make_biased_classification, train_private_public_test_split

    split = train_private_public_test_split(
        *make_biased_classification(8000, disparity=0.3, random_state=0), random_state=0
    )
    model = FairPATEClassifier(epsilon=2.0, gamma=0.05, classes=[0, 1], random_state=0, ledger=PrivacyLedger())
    public = split.public
    return lambda: model.fit(split.X, split.y, X_public=public)


if __name__ == "__main__":
    fair_pate_fit()()  # what is loaded on first use is no part of the trip
    found = trip(fair_pate_fit())
    for position, one in enumerate(found.entered):
        if position == found.asked:
            print("---- the ledger is asked")
        print(f"{one.file:34} {'' if one.counts else '(':1}{one.name}{'' if one.counts else ')'}")
    print(
        f"{len(found.files)} files, {len(found.functions)} functions; {len(found.files_before_ledger)} files before "
        f"the ledger is asked; {len(found.entered)} with comprehensions, closures, properties and constructors"
    )
