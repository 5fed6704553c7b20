"""Types of arguments, under names that ``help`` prints as they are: numpy's own alias fills a screen."""

import sys

import numpy.typing
from numpy.random import Generator, RandomState

if sys.version_info >= (3, 12):
    from typing import TypeAliasType
else:
    from typing_extensions import TypeAliasType

#: Whatever numpy makes an array of: lists, arrays, DataFrames, Series.
ArrayLike = TypeAliasType("ArrayLike", numpy.typing.ArrayLike)

#: Whatever seeds public randomness.
RandomStateLike = TypeAliasType("RandomStateLike", int | RandomState | Generator | None)
