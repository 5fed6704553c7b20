"""Images of people with groups, as published, read with Pillow: UTKFace, CelebA, FairFace and CheXpert."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skfairdp._docs import shared_docs
from skfairdp._typing import Array, Folder, Ints
from skfairdp._utils import RandomStateLike, invalid_parameter, public_generator
from skfairdp.datasets._fetch import DATA_VARIABLE, data_folder, places_in
from skfairdp.datasets._images import _checked_count

_LARGEST = 1024
_UTK_HOMEPAGE = "https://susanqq.github.io/UTKFace/"
_UTK_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+.*")  # one published name lacks a dot, one has a space
_UTK_GENDERS = ("male", "female")
_UTK_RACES = ("White", "Black", "Asian", "Indian", "Others")
_CELEBA_HOMEPAGE = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
_CELEBA_PARTS = ("train", "validation", "test")
_FAIRFACE_HOMEPAGE = "https://github.com/joojs/fairface"
_FAIRFACE_FILES = {"train": "fairface_label_train.csv", "validation": "fairface_label_val.csv"}
_FAIRFACE_COLUMNS = ("file", "age", "gender", "race")
_CHEXPERT_HOMEPAGE = "https://stanfordmlgroup.github.io/competitions/chexpert"
_CHEXPERT_PEOPLE = "CHEXPERT DEMO.csv"
_CHEXPERT_COLUMNS = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA")
_RACES = ("White", "Black", "Asian")


@shared_docs
def fetch_utkface(
    *,
    data_home: Folder = None,
    target: str = "gender",
    sensitive: str = "race",
    size: int = 32,
    n_samples: int | None = None,
    random_state: RandomStateLike = None,
) -> Any:
    """Load UTKFace: 23,708 faces whose file names say age, gender and race.

    Nothing is downloaded. Pictures whose name lacks one of the three (three of those published) are left out and
    listed. Needs Pillow: ``pip install 'skfairdp[images]'``.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder whose subfolder ``UTKFace`` holds the pictures, such as ``25_0_1_20170116174525125.jpg.chip.jpg`` (age,
        gender, race, date), or that folder itself. None: the folder in the environment variable ``SKFAIRDP_DATA``.
    target : {"gender", "race"}, default="gender"
        What is to be predicted.
    sensitive : {"gender", "race"}, default="race"
        The group of a person.
    {face_size}

    {face_bunch}
        age : ndarray of shape (n_samples,), int64, in years;
        skipped : list of str, the files that were left out;
        target_names, name, source, DESCR.

    {face_raises}

    References
    ----------
    Z. Zhang, Y. Song, H. Qi, "Age progression/regression by conditional adversarial autoencoder", CVPR 2017. For
    research that is not commercial.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_utkface
    >>> faces = fetch_utkface(size=32, n_samples=1000, random_state=0)      # doctest: +SKIP
    >>> faces.data.shape, faces.image_shape                       # doctest: +SKIP
    ((1000, 3072), (3, 32, 32))
    """
    owner = "fetch_utkface"
    _check_choices(("gender", "race"), owner, target=target, sensitive=sensitive)
    folder = _folder("UTKFace", "*.jpg", data_home, _UTK_HOMEPAGE, "its pictures, named age_gender_race_date.jpg,")
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".jpg")
    said = {name: match for name in names if (match := _UTK_NAME.fullmatch(name))}
    if not said:
        raise ValueError(
            f"None of the {len(names)} pictures in {folder} is named age_gender_race_date.jpg, as "
            f"25_0_1_20170116174525125.jpg.chip.jpg. Get them from {_UTK_HOMEPAGE}."
        )
    codes = np.array([[int(code) for code in match.groups()] for match in said.values()])
    read = {"gender": (codes[:, 1], _UTK_GENDERS), "race": (codes[:, 2], _UTK_RACES)}
    (labels, target_names), (groups, group_names) = read[target], read[sensitive]
    chosen = _chosen(len(codes), n_samples, random_state, owner)
    kept, of_each = list(said), np.array(group_names)[groups[chosen]]
    files = [folder / kept[i] for i in chosen]
    more = {"age": codes[chosen, 0], "skipped": [name for name in names if name not in said]}
    return _faces("utkface", folder, files, labels[chosen], of_each, size, list(target_names), _UTK_HOMEPAGE, **more)


@shared_docs
def fetch_celeba(
    *,
    data_home: Folder = None,
    target: str = "Smiling",
    sensitive: str = "Male",
    size: int = 32,
    n_samples: int | None = None,
    random_state: RandomStateLike = None,
) -> Any:
    """Load CelebA: 202,599 faces of celebrities with 40 attributes that are there or not.

    Nothing is downloaded. Needs Pillow: ``pip install 'skfairdp[images]'``. One person is on about twenty pictures: a
    guarantee for a record protects one picture.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``list_attr_celeba.txt`` and the pictures in ``img_align_celeba``, in it or in its subfolder
        ``celeba``. None: the folder in the environment variable ``SKFAIRDP_DATA``.
    target : str, default="Smiling"
        The attribute to be predicted, by its name in the file.
    sensitive : str, default="Male"
        The attribute that makes the groups, ``"Male"`` and ``"not Male"``.
    {face_size}

    {face_bunch}
        split : ndarray of ``"train"``, ``"validation"`` and ``"test"`` from ``list_eval_partition.txt``, or None where
        that file is not there;
        target_names, name, source, DESCR.

    {face_raises}

    References
    ----------
    Z. Liu, P. Luo, X. Wang, X. Tang, "Deep learning face attributes in the wild", ICCV 2015, arXiv:1411.7766. For
    research that is not commercial.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_celeba
    >>> fetch_celeba(n_samples=1000, random_state=0).target_names   # doctest: +SKIP
    ['not Smiling', 'Smiling']
    """
    owner = "fetch_celeba"
    listed = "list_attr_celeba.txt"
    folder = _folder("celeba", listed, data_home, _CELEBA_HOMEPAGE, f"{listed} and img_align_celeba")
    table = _attributes(folder / listed)
    _check_choices(list(table.columns), owner, target=target, sensitive=sensitive)
    table = table.iloc[_chosen(len(table), n_samples, random_state, owner)]
    files = [folder / "img_align_celeba" / name for name in table.index]
    labels = (table[target] == 1).to_numpy(np.int64)
    groups = np.where(table[sensitive] == 1, sensitive, f"not {sensitive}")
    split = _celeba_split(folder / "list_eval_partition.txt", table.index)
    names = [f"not {target}", target]
    return _faces("celeba", folder, files, labels, groups, size, names, _CELEBA_HOMEPAGE, split=split)


@shared_docs
def fetch_fairface(
    *,
    data_home: Folder = None,
    target: str = "gender",
    sensitive: str = "race",
    size: int = 32,
    n_samples: int | None = None,
    random_state: RandomStateLike = None,
) -> Any:
    """Load FairFace: 97,698 faces with gender, race (seven) and age (nine ranges) in balance.

    Nothing is downloaded. Needs Pillow: ``pip install 'skfairdp[images]'``.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``fairface_label_train.csv``, ``fairface_label_val.csv`` and the pictures in ``train`` and ``val``,
        in it or in its subfolder ``fairface``. None: the folder in the environment variable ``SKFAIRDP_DATA``.
    target : {"gender", "race", "age"}, default="gender"
        What is to be predicted. ``target_names`` are in alphabetical order.
    sensitive : {"gender", "race", "age"}, default="race"
        The group of a person.
    {face_size}

    {face_bunch}
        split : ndarray of ``"train"`` and ``"validation"``;
        target_names, name, source, DESCR.

    {face_raises}

    References
    ----------
    K. Kärkkäinen, J. Joo, "FairFace: face attribute dataset for balanced race, gender, and age", WACV 2021,
    arXiv:1908.04913. CC BY 4.0 as stated in its repository.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_fairface
    >>> fetch_fairface(n_samples=1000, random_state=0).target_names     # doctest: +SKIP
    ['Female', 'Male']
    """
    owner = "fetch_fairface"
    _check_choices(("gender", "race", "age"), owner, target=target, sensitive=sensitive)
    files = list(_FAIRFACE_FILES.values())
    folder = _folder("fairface", files[0], data_home, _FAIRFACE_HOMEPAGE, f"{files[0]}, {files[1]}, train and val")
    parts = {part: _labels_of(folder / name) for part, name in _FAIRFACE_FILES.items()}
    table = pd.concat(parts.values(), ignore_index=True)
    split = np.repeat(list(parts), [len(part) for part in parts.values()])
    classes, codes = np.unique(table[target].to_numpy(str), return_inverse=True)
    chosen = _chosen(len(table), n_samples, random_state, owner)
    pictures, labels = [folder / name for name in table["file"].iloc[chosen]], codes[chosen].astype(np.int64)
    groups, names = table[sensitive].to_numpy(str)[chosen], classes.tolist()
    return _faces("fairface", folder, pictures, labels, groups, size, names, _FAIRFACE_HOMEPAGE, split=split[chosen])


@shared_docs
def fetch_chexpert(
    *,
    data_home: Folder = None,
    target: str = "No Finding",
    sensitive: str = "sex",
    size: int = 32,
    n_samples: int | None = None,
    random_state: RandomStateLike = None,
) -> Any:
    """Load the frontal views of CheXpert: 191,027 radiographs of the chest.

    Nothing is downloaded. Needs Pillow: ``pip install 'skfairdp[images]'``. Most people have several pictures: give
    ``subject`` to ``fit`` and its guarantee protects a person.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``train.csv`` and the pictures in ``train``, and for races the published sheet of people, saved as
        ``CHEXPERT DEMO.csv``; in it or in its subfolder ``CheXpert-v1.0-small``. None: the folder in the environment
        variable ``SKFAIRDP_DATA``.
    target : str, default="No Finding"
        The finding to be predicted, by its column in the file. Blank and uncertain entries are taken for its absence.
    sensitive : {"sex", "race"}, default="sex"
        The group of a person. Races are ``"White"``, ``"Black"``, ``"Asian"`` and ``"Other"``, which
        is also that of people whom the sheet does not list.
    {face_size}

    {face_bunch}
        subject : ndarray of str, the person on each picture;
        target_names, name, source, DESCR.

    {face_raises}

    References
    ----------
    J. Irvin et al., "CheXpert: a large chest radiograph dataset with uncertainty labels and expert comparison", AAAI
    2019, arXiv:1901.07031. For research, after registration.

    Examples
    --------
    >>> from skfairdp.datasets import fetch_chexpert
    >>> rows = fetch_chexpert(target="Pleural Effusion", sensitive="race")      # doctest: +SKIP
    >>> len(rows.data) == len(rows.subject)                                     # doctest: +SKIP
    True
    """
    owner = "fetch_chexpert"
    _check_choices(("sex", "race"), owner, sensitive=sensitive)
    what = "train.csv and the folder train"
    folder = _folder("CheXpert-v1.0-small", "train.csv", data_home, _CHEXPERT_HOMEPAGE, what)
    table = _labels_of(folder / "train.csv", _CHEXPERT_COLUMNS, _CHEXPERT_HOMEPAGE)
    _check_choices([column for column in table.columns if column not in _CHEXPERT_COLUMNS], owner, target=target)
    table = table[table["Frontal/Lateral"] == "Frontal"]
    table = table.iloc[_chosen(len(table), n_samples, random_state, owner)]
    places = table["Path"].str.split("/").str[1:]  # the first is the name of the folder
    people = places.str[1].to_numpy(str)
    files, names = [folder.joinpath(*place) for place in places], [f"not {target}", target]
    labels = (pd.to_numeric(table[target], errors="coerce") == 1).to_numpy(np.int64)
    groups = table["Sex"].to_numpy(str) if sensitive == "sex" else _races(folder / _CHEXPERT_PEOPLE, people)
    return _faces("chexpert", folder, files, labels, groups, size, names, _CHEXPERT_HOMEPAGE, subject=people)


# ---- where the pictures are, and which are taken ------------------------------------------------------------------
def _folder(name: str, pattern: str, data_home: Folder, homepage: str, what: str) -> Path:
    """Return the subfolder ``name`` of the data folder, or that itself, whichever holds a file like ``pattern``."""
    for folder in places_in((name, ""), data_home):
        if next(folder.glob(pattern), None) is not None:
            return folder
    home = data_folder(data_home)
    looked = f"neither {home} nor its subfolder {name} has {pattern}" if home else "no folder was given"
    raise FileNotFoundError(
        f"No {name} pictures: {looked}. Get them from {homepage}, put {what} into a folder {name}, then give the "
        f"folder that holds it with the environment variable {DATA_VARIABLE} or with data_home=."
    )


def _chosen(n: int, n_samples: int | None, random_state: RandomStateLike, owner: str) -> Ints:
    """Positions of the pictures to read, in their order."""
    if n_samples is None:
        return np.arange(n)
    taken = _checked_count("n_samples", n_samples, n, "the number of pictures", owner)
    return np.sort(public_generator(random_state).permutation(n)[:taken])


def _check_choices(allowed: Sequence[str], owner: str, **given: str) -> None:
    for name, value in given.items():
        if value not in allowed:
            raise invalid_parameter(name, owner, f"one of {list(allowed)}", value)


# ---- labels --------------------------------------------------------------------------------------------------------
def _attributes(path: Path) -> pd.DataFrame:
    """The first line has the number of pictures, the second the attributes, each other one a file and 1 or -1 each."""
    lines = path.read_text(encoding="utf-8").splitlines()
    names = lines[1].split() if len(lines) > 1 else []
    rows = [line.split() for line in lines[2:] if line.strip()]
    if not names or not lines[0].strip().isdigit() or any(len(row) != len(names) + 1 for row in rows):
        raise ValueError(
            f"{path} is not the published list: the number of pictures, a line with the names of the attributes, then "
            f"a file and 1 or -1 for each. Get it from {_CELEBA_HOMEPAGE}."
        )
    if len(rows) != int(lines[0]) or not {value for row in rows for value in row[1:]} <= {"1", "-1"}:
        raise ValueError(
            f"{path} is damaged: it says {lines[0].strip()} pictures and lists {len(rows)}, or a value is neither 1 "
            f"nor -1. Get it again from {_CELEBA_HOMEPAGE}."
        )
    values = np.array([row[1:] for row in rows]).astype(np.int8)
    return pd.DataFrame(values, index=[row[0] for row in rows], columns=names)


def _celeba_split(path: Path, names: "pd.Index[str]") -> Array | None:
    if not path.is_file():
        return None
    parts = dict(line.split() for line in path.read_text(encoding="utf-8").splitlines() if len(line.split()) == 2)
    if not set(names) <= set(parts) or not set(parts.values()) <= {"0", "1", "2"}:
        raise ValueError(
            f"{path} does not say 0, 1 or 2 (train, validation, test) for each picture. Get it from {_CELEBA_HOMEPAGE}."
        )
    return np.array(_CELEBA_PARTS)[[int(parts[name]) for name in names]]


def _labels_of(
    path: Path, columns: Sequence[str] = _FAIRFACE_COLUMNS, homepage: str = _FAIRFACE_HOMEPAGE
) -> pd.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no {path.name}. Get it from {homepage}.")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"{path} lacks the column(s) {missing}. Get it from {homepage}.")
    return table


def _races(path: Path, people: Array) -> Array:
    """The race of each person, by the first word of what the sheet says."""
    table = _labels_of(path, ("PATIENT", "PRIMARY_RACE"), _CHEXPERT_HOMEPAGE)
    said = dict(zip(table["PATIENT"], table["PRIMARY_RACE"].str.split("[ ,]").str[0], strict=True))
    if not said.keys() & set(people):
        raise ValueError(f"{path} lists none of the people on the pictures. Get it again from {_CHEXPERT_HOMEPAGE}.")
    return np.array([said[person] if said.get(person) in _RACES else "Other" for person in people])


# ---- pictures ------------------------------------------------------------------------------------------------------
def _faces(
    name: str, folder: Path, files: Sequence[Path], target: Ints, groups: Array, size: int,
    target_names: list[str], homepage: str, **more: Any,
) -> Any:  # fmt: skip
    return Bunch(
        data=_read(files, size, f"fetch_{name}", homepage),
        target=target,
        sensitive_features=groups,
        image_shape=(3, size, size),
        target_names=target_names,
        name=name,
        source=str(folder),
        DESCR=f"{name}: {len(files)} images of {size} x {size} pixels; see {homepage}.",
        **more,
    )


def _read(files: Sequence[Path], size: int, owner: str, homepage: str) -> NDArray[np.float32]:
    """Pictures in [0, 1], cut to the square in their middle and shrunk; red, green and blue one after the other."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ImportError(f"{owner} needs Pillow to read pictures: pip install 'skfairdp[images]'.") from None
    side = _checked_count("size", size, _LARGEST, "the side of the images", owner)
    out = np.empty((len(files), 3, side, side), dtype=np.float32)
    for row, path in enumerate(files):
        try:
            with Image.open(path) as picture:
                small = ImageOps.fit(picture.convert("RGB"), (side, side), Image.Resampling.BOX)
        except FileNotFoundError:
            raise FileNotFoundError(f"The picture {path} is not there. Get it from {homepage}.") from None
        except (OSError, SyntaxError) as error:  # what Pillow raises for a damaged file
            raise ValueError(
                f"The picture {path} cannot be read ({type(error).__name__}). Get it again from {homepage}."
            ) from None
        out[row] = np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255
    return out.reshape(len(files), -1)
