"""MNIST and Fashion-MNIST from their files, and images coloured by group with a known gap."""

import gzip
import math
import os
import zlib
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skfairdp._typing import Array, ArrayLike, Bools, Floats, Folder
from skfairdp._utils import RandomStateLike, invalid_parameter, public_generator
from skfairdp.datasets._fetch import DATA_VARIABLE, data_file, data_folder, from_openml, places_in

#: Images and labels of the training rows, then of the test rows; each as it is or with ``.gz``.
IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx_folder(places: tuple[str, ...], data_home: Folder) -> Path | None:
    """Return the first of ``places`` below the data folder that holds the training images; None where none does."""
    folders = places_in(places, data_home)
    return next((folder for folder in folders if _file(folder, IDX_FILES[0]) is not None), None)


def read_idx(folder: Path, homepage: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images and labels of a folder, the training rows first."""
    paths = [(name, _file(folder, name)) for name in IDX_FILES]
    for name, path in paths:
        if path is None:
            raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz. Get the four files from {homepage}.")
    parts = [_array(path, homepage) for _, path in paths if path is not None]
    return np.concatenate(parts[0::2]), np.concatenate(parts[1::2])


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _array(path: Path, homepage: str) -> Array:
    """Two zeros, the type (8: bytes), the number of axes, their lengths as big-endian integers, then the bytes."""
    axes = 3 if "idx3" in path.name else 1
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({type(error).__name__}). Get it again from {homepage}.") from None
    start = 4 + 4 * axes
    shape = np.frombuffer(content[4:start].ljust(4 * axes, b"\0"), dtype=">u4").astype(np.int64)
    size = math.prod(shape.tolist())  # of numpy's it may wrap
    if content[:4] != bytes((0, 0, 8, axes)) or len(content) - start != size:
        raise ValueError(
            f"{path} is not an idx file of bytes with {axes} axes, or parts of it are missing. Get it again from "
            f"{homepage}."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


COLORS = ("red", "green")
_HOMEPAGE = "http://yann.lecun.com/exdb/mnist"
_OPENML_ID = 554
_ARRAYS = ("X_train", "y_train", "X_test", "y_test")
_TRAIN_ROWS = 60_000
# Rows of each digit among the training and the test rows: what tells the published arrays from others.
_DIGITS = (
    (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
)
_FASHION_HOMEPAGE = "https://github.com/zalandoresearch/fashion-mnist"
_FASHION_PLACES = ("fashion-mnist", "fashion_mnist", "FashionMNIST/raw", "")
_CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def fetch_mnist(*, kind: str = "digits", data_home: Folder = None) -> Any:
    """Load MNIST or Fashion-MNIST: 70,000 images, the 60,000 training rows first, in the original order.

    There is no group in them; :func:`make_color_mnist` and :func:`make_rotated_subgroups` add one.

    Parameters
    ----------
    kind : {"digits", "fashion"}, default="digits"
        Handwritten digits, or clothes in MNIST's format and sizes.
    data_home : path-like, default=None
        Folder with ``mnist.npz`` (arrays ``X_train``, ``y_train``, ``X_test``, ``y_test`` of uint8), or with the four
        published idx files, as they are or with ``.gz``, in its subfolder ``mnist`` or ``MNIST/raw``, for clothes
        ``fashion-mnist`` or ``FashionMNIST/raw``. None: the folder in the environment variable ``SKFAIRDP_DATA``.
        Digits that are not found come from OpenML (data_id 554), cached in ``data_home``; clothes are not downloaded.

    Returns
    -------
    Bunch
        images : ndarray of shape (70000, 28, 28), uint8, 0 to 255;
        target : ndarray of shape (70000,), int64, 0 to 9;
        split : ndarray of ``"train"`` and ``"test"``;
        target_names, name, source, DESCR.

    Raises
    ------
    FileNotFoundError
        Neither files nor OpenML can be reached. The message says how to give the folder.
    ValueError
        The files are damaged, or not the published ones.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE
    86(11), 1998. CC BY-SA 3.0 as commonly stated. H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a novel image dataset
    for benchmarking machine learning algorithms", arXiv:1708.07747, 2017. MIT licence.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_mnist
    >>> fetch_mnist().images.shape                                # doctest: +SKIP
    (70000, 28, 28)
    """
    if kind not in ("digits", "fashion"):
        raise invalid_parameter("kind", "fetch_mnist", "'digits' or 'fashion'", kind)
    if kind == "fashion":
        return _clothes(data_home)
    path, folder = data_file("mnist", data_home), idx_folder(("mnist", "MNIST/raw"), data_home)
    if path is not None:
        arrays, where = _arrays_of(path), str(path)
    elif folder is not None:
        arrays, where = read_idx(folder, _HOMEPAGE), str(folder)
    else:
        arrays, where = _from_openml(data_home), f"OpenML, data_id={_OPENML_ID}"
    return _published("mnist", *arrays, where, _DIGITS, [str(digit) for digit in range(10)], _HOMEPAGE)


def _clothes(data_home: Folder) -> Any:
    if (folder := idx_folder(_FASHION_PLACES, data_home)) is None:
        home = data_folder(data_home)
        looked = f"neither {home} nor its subfolder fashion-mnist has {IDX_FILES[0]}" if home else "no folder was given"
        raise FileNotFoundError(
            f"No Fashion-MNIST data: {looked}. Put the four files of {_FASHION_HOMEPAGE} ({', '.join(IDX_FILES)}, each "
            f"with or without .gz) into a folder fashion-mnist, then give the folder that holds it with the "
            f"environment variable {DATA_VARIABLE} or with data_home=."
        )
    arrays, rows = read_idx(folder, _FASHION_HOMEPAGE), ((6000,) * 10, (1000,) * 10)
    return _published("fashion_mnist", *arrays, str(folder), rows, _CLOTHES, _FASHION_HOMEPAGE)


def _published(
    name: str, images: Array, target: Array, where: str, rows: tuple[tuple[int, ...], ...],
    target_names: Sequence[str], homepage: str,
) -> Any:  # fmt: skip
    """Return a Bunch, or refuse arrays whose classes do not have the published ``rows`` of training and test."""
    parts = (target[:_TRAIN_ROWS], target[_TRAIN_ROWS:])
    found = tuple(tuple(int(np.sum(part == k)) for k in range(10)) for part in parts)
    if images.shape != (70_000, 28, 28) or images.dtype != np.uint8 or len(target) != 70_000 or found != rows:
        raise ValueError(
            f"The {name} arrays from {where} are not the published ones (shape {images.shape}, {images.dtype}, or the "
            f"labels differ). Get them from {homepage}."
        )
    return Bunch(
        images=images,
        target=target.astype(np.int64),
        split=np.repeat(["train", "test"], [_TRAIN_ROWS, len(target) - _TRAIN_ROWS]),
        target_names=list(target_names),
        name=name,
        source=where,
        DESCR=f"{name}: 70000 images of 28 x 28 pixels, the first 60000 for training; see {homepage}.",
    )


def make_color_mnist(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    bias: float | Sequence[float] = 0.75,
    color_error: float | ArrayLike = 0.0,
    n_samples: int | None = None,
    size: int | None = None,
    random_state: RandomStateLike = None,
) -> Any:
    r"""Colour images red or green, more often red in some classes than in others; the colour is the group.

    Each image is coloured by a coin of its own, which comes up red with probability ``bias[k]`` in class k, whatever
    the image shows otherwise. With :math:`n_k` images of class k the demographic disparity of the *labels* is then
    known before a coin falls: the largest of :math:`|P(k \mid red) - P(k \mid green)|` with
    :math:`P(k \mid red) = n_k b_k / \sum_j n_j b_j`. What is drawn scatters around it by about :math:`1 / \sqrt{n}`.

    The FairPATE paper says of its ColorMNIST that the digit is the class (10) and the colour the group (2). Its
    published code links them as the data set does that it cites (Arjovsky et al. 2019): the group says whether the
    digit is below 5, and is flipped for a quarter of the images. That is the default here, and gives labels a gap of
    .11 on MNIST; the paper's models without constraint have gaps of .10 to .11. In that code the *colour* is the group
    with errors: on all 70,000 images ``color_error=np.repeat([0.2, 0.1, 0.9], [20_000, 20_000, 30_000])``. By default
    there are none, so that the picture shows the group.

    Parameters
    ----------
    images : array-like of shape (n, s, s)
        Square images in grey: uint8 (0 to 255), or floats in [0, 1].
    labels : array-like of shape (n,)
        Their classes.
    bias : float or sequence of floats, default=0.75
        Probability of red, in [0, 1], of each class in sorted order. One number b stands for b in the first half of the
        classes and 1 − b in the others: 0.5 makes the colour independent of the class.
    color_error : float or array-like of shape (n,), default=0.0
        Probability, in [0, 1], that an image is painted in the colour of the other group; ``sensitive_features`` stay
        as they are. 0 paints the group. An array has one probability for each image.
    n_samples : int, default=None
        Take so many images, drawn without replacement. None takes all, in their order.
    size : int, default=None
        Side of the images returned, at most s: each pixel averages the area it covers. None keeps s.
    random_state : int, RandomState, Generator or None, default=None
        Draws images and colours. The colour of a row depends on its class and its position, not on other rows.

    Returns
    -------
    Bunch
        data : ndarray of shape (n_samples, 3 * size * size), float32 in [0, 1]; the channels red, green and (empty)
        blue, one after the other;
        target : ndarray of shape (n_samples,), the labels;
        sensitive_features : ndarray of ``"red"`` and ``"green"``;
        image_shape : (3, size, size);
        disparity : float, the gap of the labels as said above;
        red_rates : ndarray, the probability of red of each class.

    Raises
    ------
    ValueError
        Images that are not square or out of range, lengths that differ, a parameter out of range, or a ``bias`` under
        which one colour has no images.

    References
    ----------
    M. Yaghini et al., "Learning to walk impartially on the Pareto frontier of fairness, privacy, and utility", 2023,
    section 4 and Table 2. M. Arjovsky et al., "Invariant risk minimization", arXiv:1907.02893, section 5.2.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skfairdp.datasets import make_color_mnist
    >>> digits = load_digits()
    >>> colored = make_color_mnist(digits.images / 16, digits.target, random_state=0)
    >>> colored.data.shape, colored.image_shape, round(colored.disparity, 3)
    ((1797, 192), (3, 8, 8), 0.102)
    """
    owner = "make_color_mnist"
    pixels = _checked_images(images, owner)
    side, n = pixels.shape[1], len(pixels)
    target = _one_label_each(labels, n, owner)
    size = side if size is None else _checked_count("size", size, side, "the side of the images", owner)
    n_samples = n if n_samples is None else _checked_count("n_samples", n_samples, n, "the number of images", owner)
    rng = public_generator(random_state)
    errors = _checked_errors(color_error, n, owner)
    if n_samples < n:
        chosen = rng.permutation(n)[:n_samples]
        pixels, target, errors = pixels[chosen], target[chosen], errors[chosen]
    classes, codes = np.unique(target, return_inverse=True)
    n_classes = len(classes)  # and the probability of red of each
    if isinstance(bias, Real) and not isinstance(bias, bool):
        rates = np.repeat([float(bias), 1 - float(bias)], [-(-n_classes // 2), n_classes // 2])
    else:
        try:
            rates = np.asarray(bias, dtype=float)
        except (TypeError, ValueError):
            rates = np.empty(0)
    if rates.shape != (n_classes,) or not ((rates >= 0) & (rates <= 1)).all():
        must = f"a float in the range [0, 1], or {n_classes} of them, one for each class"
        raise invalid_parameter("bias", owner, must, bias)
    counts = np.bincount(codes, minlength=len(classes))
    red, green = counts * rates, counts * (1 - rates)
    if red.sum() == 0 or green.sum() == 0:
        raise ValueError(
            f"With bias={bias!r} of {owner} all images have the same colour, so that there is one group only. Choose "
            "probabilities between 0 and 1."
        )
    is_green = rng.random(n_samples) >= rates[codes]
    painted = is_green ^ (rng.random(n_samples) < errors) if errors.any() else is_green
    return Bunch(
        data=_in_color(_averaged(pixels, size), painted),
        target=target,
        sensitive_features=np.array(COLORS)[is_green.astype(np.int64)],
        image_shape=(3, size, size),
        disparity=float(np.abs(red / red.sum() - green / green.sum()).max()),
        red_rates=rates,
    )


def _in_color(pixels: NDArray[np.float32], is_green: Bools) -> NDArray[np.float32]:
    """Three channels one after the other, of which one holds the image."""
    n, size = pixels.shape[:2]
    data = np.zeros((n, 3, size, size), dtype=np.float32)
    data[np.arange(n), is_green.astype(np.int64)] = pixels
    return data.reshape(n, -1)


def _checked_errors(color_error: Any, n: int, owner: str) -> Floats:
    errors = np.asarray(color_error)
    fits = errors.shape in ((), (n,)) and errors.dtype.kind in "fiu"
    if not fits or not bool(((errors >= 0) & (errors <= 1)).all()):  # NaN is neither
        raise ValueError(
            f"The 'color_error' parameter of {owner} must be a float in the range [0, 1], or {n} of them, one for each "
            f"image. Got {repr(color_error) if errors.ndim == 0 else f'an array of shape {errors.shape}'} instead."
        )
    return np.broadcast_to(errors.astype(float), (n,))


def _arrays_of(path: os.PathLike[str]) -> tuple[Array, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = [file[name] for name in _ARRAYS]
        return np.concatenate(arrays[0::2]), np.concatenate(arrays[1::2])
    except (KeyError, ValueError, EOFError, BadZipFile) as error:
        raise ValueError(
            f"{path} is not an .npz file with the arrays {', '.join(_ARRAYS)} ({type(error).__name__}). Get the images "
            f"from {_HOMEPAGE} and save them with numpy.savez."
        ) from None


def _from_openml(data_home: Folder) -> tuple[Array, Array]:
    try:
        bunch = from_openml(_OPENML_ID, data_home, as_frame=False)
    except (OSError, ValueError, ImportError) as error:
        folder = data_folder(data_home)
        raise FileNotFoundError(
            f"No mnist data: {f'{folder} has no mnist.npz' if folder else 'no folder was given'}, and OpenML "
            f"(data_id={_OPENML_ID}) could not be read ({type(error).__name__}). Save the images of {_HOMEPAGE} as "
            f"mnist.npz with the arrays {', '.join(_ARRAYS)}, then give its folder with the environment variable "
            f"{DATA_VARIABLE} or with data_home=."
        ) from error
    return bunch.data.astype(np.uint8).reshape(-1, 28, 28), bunch.target.astype(np.uint8)


def _checked_images(images: ArrayLike, owner: str) -> Array:
    pixels = np.asarray(images)
    if pixels.ndim != 3 or pixels.shape[1] != pixels.shape[2] or pixels.size == 0:
        raise ValueError(
            f"The 'images' parameter of {owner} must be square images in grey, of shape (n_images, side, side). "
            f"Got shape {pixels.shape} instead."
        )
    unit = pixels.dtype.kind == "f" and bool(((pixels >= 0) & (pixels <= 1)).all())  # NaN is neither
    if pixels.dtype != np.uint8 and not unit:
        raise ValueError(
            f"The 'images' parameter of {owner} must be uint8 (0 to 255) or floats in the range [0, 1]. Got "
            f"{pixels.dtype}{'' if pixels.dtype.kind != 'f' else ' outside that range'} instead; divide by the largest "
            "value a pixel can have."
        )
    return pixels


def _one_label_each(labels: ArrayLike, n: int, owner: str) -> Array:
    target = np.asarray(labels)
    if target.shape != (n,):
        raise ValueError(
            f"The 'labels' parameter of {owner} must have shape ({n},), one per image. "
            f"Got shape {target.shape} instead."
        )
    return target


def _checked_count(name: str, value: int, largest: int, what: str, owner: str) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= value <= largest:
        raise invalid_parameter(name, owner, f"an int in the range [1, {largest}] ({what}), or None", value)
    return int(value)


def _averaged(pixels: Array, size: int) -> NDArray[np.float32]:
    """Values in [0, 1], each the mean over the area of one of ``size`` x ``size`` equal squares."""
    side = pixels.shape[1]
    edges = np.arange(size + 1) * (side / size)
    covered = np.minimum(edges[1:, None], np.arange(1, side + 1)) - np.maximum(edges[:-1, None], np.arange(side))
    weights = np.maximum(covered, 0).astype(np.float32) * np.float32(size / side)
    out = np.empty((len(pixels), size, size), dtype=np.float32)
    for start in range(0, len(pixels), 4096):  # floats of all images at full size would take many times the output
        block = pixels[start : start + 4096].astype(np.float32)
        out[start : start + 4096] = weights @ (block / 255 if pixels.dtype == np.uint8 else block) @ weights.T
    return np.clip(out, 0, 1, out=out)  # rounding may pass 1 by a hair
