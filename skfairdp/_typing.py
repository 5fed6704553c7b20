"""Types of arguments, under names that ``help`` prints as they are: numpy's own alias fills a screen."""

import sys
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
