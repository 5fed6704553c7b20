"""Images and labels in the idx format that MNIST and its successors are published in."""

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.datasets._files import DATA_VARIABLE

#: Images and labels of the training rows, then of the test rows; each as it is or with ``.gz``.
IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def idx_folder(places: tuple[str, ...], data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return the first of ``places`` below the data folder that holds the training images; None where none does."""
    home = data_home if data_home is not None else os.environ.get(DATA_VARIABLE)
    if not home:
        return None
    folders = [Path(home).expanduser() / place for place in places]
    return next((folder for folder in folders if _file(folder, IDX_FILES[0]) is not None), None)


def read_idx(folder: Path, homepage: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images and labels of a folder, the training rows first."""
    parts = [_array(_found(folder, name, homepage), homepage) for name in IDX_FILES]
    return np.concatenate(parts[0::2]), np.concatenate(parts[1::2])


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _found(folder: Path, name: str, homepage: str) -> Path:
    path = _file(folder, name)
    if path is None:
        raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz. Get the four files from {homepage}.")
    return path


def _array(path: Path, homepage: str) -> NDArray[Any]:
    """Two zeros, the type (8: bytes), the number of axes, their lengths as big-endian integers, then the bytes."""
    axes = 3 if "idx3" in path.name else 1
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({type(error).__name__}). Get it again from {homepage}.") from None
    start = 4 + 4 * axes
    shape = np.frombuffer(content[4:start].ljust(4 * axes, b"\0"), dtype=">u4").astype(np.int64)
    if content[:4] != bytes((0, 0, 8, axes)) or len(content) - start != math.prod(
        shape.tolist()
    ):  # of numpy's it may wrap
        raise ValueError(
            f"{path} is not an idx file of bytes with {axes} axes, or parts of it are missing. Get it again from "
            f"{homepage}."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
