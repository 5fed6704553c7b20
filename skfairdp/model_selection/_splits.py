"""Folds that are chosen without looking at the data, and the cost of a record that is in several of them."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    BaseCrossValidator,
    BaseShuffleSplit,
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from skfairdp._rows import FoldRows, FoldRule, RowSource, fold_sizes, key_wanted
from skfairdp._utils import public_generator
from skfairdp.privacy import DpEvent, LedgerEntry, NeighboringRelation, SecretDraws, WorstOf, compose, repeat

Positions = tuple[NDArray[np.int64], NDArray[np.int64]]
Split = Positions | tuple[RowSource, RowSource]  # a train and a test part

_BY_POSITION = (KFold, RepeatedKFold, ShuffleSplit, LeaveOneOut, LeavePOut, TimeSeriesSplit)
_BY_LABEL = (StratifiedKFold, StratifiedShuffleSplit)


def make_splits(cv: Any, y: Any, *, planned: LedgerEntry, secret: SecretDraws, owner: str) -> list[Split]:
    """Train and test positions of every fold, none of which depends on anything that the ``planned`` fit protects.

    Where records are replaced, or only their sensitive attribute is protected, folds follow the position. Where records
    come and go, removing one would move all that follow it to other folds, so each row draws its fold from secret
    randomness instead: two neighbours then share their folds but for the one record.
    """
    n_rows = len(y)
    comes_and_goes = planned.neighboring_relation == NeighboringRelation.ADD_OR_REMOVE_ONE
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if int(cv) < 2 or (not comes_and_goes and int(cv) > n_rows):  # where records come and go, n_rows is secret
            raise ValueError(f"The 'cv' parameter of {owner} must be at least 2 and at most n_samples. Got {cv!r}.")
        if not comes_and_goes:
            return _checked(KFold(int(cv)).split(np.zeros(n_rows)), n_rows, owner)
        fold = secret.folds(n_rows, int(cv))
        return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(int(cv))]
    if comes_and_goes:
        raise ValueError(
            f"The 'cv' parameter of {owner} must be a number of folds here: neighbours add or remove one record, which "
            "moves all rows behind it to other folds unless every row draws its fold by itself. Got "
            f"{type(cv).__name__}."
        )
    if isinstance(cv, _BY_LABEL):
        if planned.protects == "record":
            raise ValueError(
                f"The 'cv' parameter of {owner} is stratified: which fold a record is in would depend on the private "
                "labels of others, and one changed label could move many of them. Use KFold, which goes by position."
            )
        return _checked(cv.split(np.zeros(n_rows), np.asarray(y)), n_rows, owner)  # labels are public here
    if isinstance(cv, _BY_POSITION):
        return _checked(cv.split(np.zeros(n_rows)), n_rows, owner)
    if isinstance(cv, BaseCrossValidator | BaseShuffleSplit) or hasattr(cv, "split"):
        names = [cls.__name__ for cls in _BY_POSITION]
        raise ValueError(
            f"The 'cv' parameter of {owner} must go by position: a number of folds, one of {names}, or pairs of "
            f"(train, test) positions, which then count as public. Got {type(cv).__name__}."
        )
    return _checked(cv, n_rows, owner)


def make_holdout(
    test_size: float, n_rows: int, *, planned: LedgerEntry, seed: int, secret: SecretDraws, owner: str
) -> list[Split]:
    """One split: a public shuffle of positions, or independent secret draws where records come and go."""
    if planned.neighboring_relation == NeighboringRelation.ADD_OR_REMOVE_ONE:
        held_out = secret.sample(test_size, n_rows)
        order = np.arange(n_rows)
        return [(order[~held_out], order[held_out])]  # not checked: how many were drawn is secret
    order = public_generator(seed).permutation(n_rows)
    n_test = max(1, round(test_size * n_rows))
    return _checked([(np.sort(order[n_test:]), np.sort(order[:n_test]))], n_rows, owner)


def make_source_splits(
    source: RowSource, *, cv: Any, test_size: float | None, planned: LedgerEntry, seed: int, owner: str
) -> list[Split]:
    """The same for rows that are read in chunks: folds by a keyed hash of each row's public key, on every engine."""
    remedy = "score on public rows: fit(..., validation=PublicData(X, groups, y))"
    if planned.neighboring_relation == NeighboringRelation.ADD_OR_REMOVE_ONE:
        raise ValueError(
            f"{owner} folds rows that are read in chunks by their public keys, and here neighbours add or remove one. "
            f"Leave 'public_n_rows' out, or {remedy}."
        )
    if source.key is None and not source.knows_places:
        raise ValueError(f"{key_wanted(owner)}, or {remedy}.")
    if test_size is None and (not isinstance(cv, Integral) or isinstance(cv, bool) or not 2 <= int(cv) <= 1000):
        raise ValueError(
            f"The 'cv' parameter of {owner} must be a number of folds from 2 to 1000 where rows are read in chunks, as "
            f"they have no positions. Got {cv!r} instead."
        )
    rule = FoldRule(source.key, seed, 2 if test_size is not None else int(cv), test_size)
    sizes = fold_sizes(source, rule)
    if not sizes.all() or sizes.sum() != source.n_rows:
        raise ValueError(
            f"{owner} found a fold without rows, by the public keys of X. Take fewer folds, or check that keys are "
            "unique ids and that X gives the same rows each time."
        )
    folds = range(rule.n_folds if test_size is None else 1)
    parts = [
        (FoldRows(source, rule, j, False, sizes.sum() - sizes[j]), FoldRows(source, rule, j, True, sizes[j]))
        for j in folds
    ]
    return list(parts)


def _checked(pairs: Iterable[Any], n_rows: int, owner: str) -> list[Split]:
    try:
        splits: list[Positions] = [
            (np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)) for train, test in pairs
        ]
    except (TypeError, ValueError):
        splits = []
    usable = [
        part.ndim == 1 and len(part) and part.min() >= 0 and part.max() < n_rows and len(np.unique(part)) == len(part)
        for split in splits
        for part in split
    ]
    if not splits or not all(usable) or any(np.intersect1d(train, test).size for train, test in splits):
        raise ValueError(
            f"The 'cv' parameter of {owner} must be a number of folds, a splitter such as KFold, or pairs of disjoint, "
            f"non-empty (train, test) positions below n_samples = {n_rows}."
        )
    return list(splits)


def split_event(
    splits: Sequence[Split], fits: Sequence[DpEvent], score: DpEvent, n_scores: int, *, n_rows: int | None
) -> DpEvent:
    """What one record pays for a fit on every train part and ``n_scores`` releases on every test part.

    With k folds a record is in k-1 train parts and one test part; in a holdout, in one or the other. ``n_rows`` is None
    where splits were drawn in secret, or follow public keys: what a record may pay is the same then in every fold.
    """
    if n_rows is None:
        places = np.eye(max(2, len(splits)), dtype=bool)[:, : len(splits)]
        member = np.hstack([~places, places])
    else:
        member = np.zeros((n_rows, 2 * len(splits)), dtype=bool)
        for j, (train, test) in enumerate(splits):
            assert not isinstance(train, RowSource) and not isinstance(test, RowSource)
            member[train, j] = True
            member[test, len(splits) + j] = True
    options = []
    for pattern in np.unique(member, axis=0):
        trained, tested = pattern[: len(splits)], pattern[len(splits) :]
        paid = [fits[j] for j in np.flatnonzero(trained).tolist()]
        options.append(compose(*paid, repeat(score, n_scores * int(tested.sum()))))
    return WorstOf(tuple(options))
