"""Which group and label each synthetic row gets."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["drawn_strata", "restricted"]


def drawn_strata(law: NDArray[np.float64], n_samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Strata in random order, each as often as its share says, up to one row that is drawn at random."""
    expected = law * n_samples
    times = np.floor(expected).astype(np.int64)
    missing = n_samples - int(times.sum())
    if missing:
        # Systematic sampling of the remainders: each stratum gets its remainder on average, and at most one row.
        reached = np.cumsum(expected - times)
        marks = rng.random() + np.arange(missing)
        np.add.at(times, np.minimum(np.searchsorted(reached * missing / reached[-1], marks), len(law) - 1), 1)
    return rng.permutation(np.repeat(np.arange(len(law)), times))


def restricted(
    law: NDArray[np.float64], conditions: Mapping[str, Any] | None, groups: Any, classes: Any, owner: str
) -> NDArray[np.float64]:
    """The law given that the label or the group is known."""
    if conditions is None:
        return law / law.sum()
    if not isinstance(conditions, Mapping) or not set(conditions) <= {"y", "sensitive_features"}:
        raise ValueError(
            f"'conditions' of {owner}.sample must be a dict with the keys 'y' and 'sensitive_features' or one of them."
        )
    kept = np.ones(law.shape, dtype=bool)
    for key, domain, axis in (("sensitive_features", groups, 0), ("y", classes, 1)):
        if key not in conditions:
            continue
        wanted = conditions[key]
        known = [] if domain is None else domain.tolist()
        if wanted not in known:
            raise ValueError(
                f"'conditions' of {owner}.sample asks for {key}={wanted!r}, which is not among the "
                f"{len(known)} known ones: {known}."
            )
        chosen = np.arange(law.shape[axis]) == known.index(wanted)
        kept &= chosen[:, None] if axis == 0 else chosen
    inside = np.where(kept, law, 0.0)
    if not inside.sum() > 0:  # asked for all the same: the model has such rows, only the law has none
        inside = kept.astype(np.float64)
    return inside / inside.sum()
