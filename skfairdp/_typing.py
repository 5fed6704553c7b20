"""Types of arguments, under names that ``help`` prints as they are: numpy's own alias fills a screen."""

import sys
from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any

import numpy
import numpy.typing
from numpy.random import Generator, RandomState
from numpy.typing import NDArray

if sys.version_info >= (3, 12):
    from typing import TypeAliasType
else:
    from typing_extensions import TypeAliasType

#: Whatever numpy makes an array of: lists, arrays, DataFrames, Series.
ArrayLike = TypeAliasType("ArrayLike", numpy.typing.ArrayLike)

#: Whatever seeds public randomness.
RandomStateLike = TypeAliasType("RandomStateLike", int | RandomState | Generator | None)

#: Arrays by what they hold.
Array = TypeAliasType("Array", NDArray[Any])
Floats = TypeAliasType("Floats", NDArray[numpy.float64])
Ints = TypeAliasType("Ints", NDArray[numpy.int64])
Bools = TypeAliasType("Bools", NDArray[numpy.bool_])
Objects = TypeAliasType("Objects", NDArray[numpy.object_])
Reals = TypeAliasType("Reals", NDArray[numpy.floating[Any]])
Codes = TypeAliasType("Codes", NDArray[numpy.integer[Any]])

#: What may be left out, or be the name of a column.
MaybeArray = TypeAliasType("MaybeArray", numpy.typing.ArrayLike | None)
SubjectLike = TypeAliasType("SubjectLike", numpy.typing.ArrayLike | str | None)

#: Values of classes or groups, and one of them.
MaybeValues = TypeAliasType("MaybeValues", Sequence[Hashable] | None)
MaybeValue = TypeAliasType("MaybeValue", Hashable | None)

#: Where files lie, and one name or several.
Folder = TypeAliasType("Folder", str | PathLike[str] | None)
Names = TypeAliasType("Names", str | Sequence[str])

Values = TypeAliasType("Values", Sequence[Any])
Pair = TypeAliasType("Pair", tuple[int, int])
