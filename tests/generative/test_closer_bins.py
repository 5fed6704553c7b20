"""Numbers that lie close together far from 0: years, heights, scores. They are looked at twice, at no further cost."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skfairdp import FairPATEClassifier, PATEClassifier, SyntheticDataClassifier
from skfairdp.exceptions import UtilityWarning
from skfairdp.privacy import GaussianMechanism, compose, epsilon_of
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import NumberColumn, fine_grid, finer_starts, grid_counts, look_twice, number_column
from tests._tools.sources import RecordingNoise, recording_noise

FITS = {"PATE": PATEClassifier, "FairPATE": FairPATEClassifier, "synthetic rows": SyntheticDataClassifier}
COLUMNS = list("abcd")


def far_away(at, spread, n=6000):
    """Four columns around ``at`` of which the label is a sum, and groups."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 4))
    y = (Z @ [1, 1, -1, 0.5] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return at + spread * Z, y, rng.integers(0, 2, n)


def accuracy(name, X, y, groups, **given):
    """On the last thousand rows of a fit on the others, and what it warned of."""
    grouped = {} if name == "PATE" or "schema" in given else {"groups": [0, 1]}
    model = FITS[name](epsilon=1.0, random_state=0, **grouped, **given)
    labels = {} if "schema" in given else {"y": y[:5000]}
    if grouped:
        labels["sensitive_features"] = groups[:5000]
    with recording_noise(entropy=0), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X[:5000], **labels)
    return np.mean(model.predict(X[5000:]) == y[5000:]), [
        str(one.message) for one in said if one.category is UtilityWarning
    ]


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize(("at", "spread"), [(1980.0, 15.0), (-170.0, 10.0), (37.0, 0.5)])
def test_columns_of_years_heights_and_temperatures_teach_without_bounds(name, at, spread):
    """Between two powers of two all years were in one bin, and all heights: one class for everybody."""
    found, said = accuracy(name, *far_away(at, spread), classes=[0, 1])
    assert found > 0.8 and not said  # the larger class: .51


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("step", [None, 1.0])
def test_numbers_in_a_small_part_of_their_bounds_teach(name, step):
    X, y, groups = far_away(430.0, 1.0)
    numbers = {column: Number(0.0, 1000.0, step=step) for column in COLUMNS}
    schema = Schema(columns={**numbers, "y": Category([0, 1]), "g": Category([0, 1])}, label="y", groups="g")
    table = pd.DataFrame(X, columns=COLUMNS).assign(y=y, g=groups)
    found, said = accuracy(name, table, y, groups, schema=schema)
    assert found > 0.75 and not any("so close together" in one for one in said)


@pytest.mark.parametrize("name", FITS)
def test_numbers_that_even_the_second_look_does_not_tell_apart_are_named(name):
    X, y, groups = far_away(0.0, 1.0)
    X[:, 1] = 1e6 + 0.01 * X[:, 1]
    _, said = accuracy(name, X, y, groups, classes=[0, 1])
    (told,) = [one for one in said if "so close together" in one]
    assert re.match(r"Nearly all numbers of (column )?1 \([\d.e+]+ to [\d.e+]+\) are, by released counts", told)


@pytest.mark.parametrize("name", FITS)
def test_flags_that_most_rows_have_are_no_numbers_that_lie_close_together(name):
    X, y, groups = far_away(0.0, 1.0)
    X[:, 3] = np.arange(6000) % 20 > 0
    _, said = accuracy(name, X, y, groups, classes=[0, 1])
    assert not said


def test_two_looks_cost_what_is_planned():
    X, y, groups = far_away(1980.0, 15.0, 4000)
    model = SyntheticDataClassifier(epsilon=1.0, classes=[0, 1], groups=[0, 1], dtypes=float, random_state=0)
    planned = model.planned_privacy(X, y, sensitive_features=groups).event
    with recording_noise(entropy=0) as record:
        model.fit(X, y, sensitive_features=groups)
    assert planned == model.privacy_.event and model.privacy_.epsilon <= 1.0
    looks = [one for one in record.of(GaussianMechanism) if one.sensitivity == math.sqrt(2 * 4)]
    assert len(looks) >= 2 and len(looks[0].output) < len(looks[1].output)  # the second is finer
    assert epsilon_of(compose(*(one.event for one in record.of(GaussianMechanism))), 1e-5) <= 1.0


@pytest.mark.parametrize("seed", range(10))
def test_another_record_moves_each_look_by_what_noise_is_for(seed):
    """Whatever grid the first look asks for: one count less and one more in every column."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(1980, 15, 300), rng.normal(size=300), np.exp(rng.normal(size=300))])
    others = X.copy()
    others[0] = rng.normal(size=3) * 10.0 ** rng.integers(-3, 4, size=3)
    columns = [number_column((j,)) for j in range(3)]
    first = [1.0 * counts for counts in grid_counts(columns, X)]
    finer = [one.closer(line, 10.0, 1.0, 300) for one, line in zip(columns, first, strict=True)]
    assert finer[0] is not columns[0]
    for some in (columns, finer):
        before, after = (np.concatenate(grid_counts(some, rows)) for rows in (X, others))
        assert np.abs(before - after).sum() <= 2 * 3 and np.abs(before - after).max() <= 1


def test_what_shows_at_once_is_known_as_well_by_two_looks_as_by_one():
    """Both looks at the same bins: their mean has the noise that one look for their cost would have had."""
    starts, high = fine_grid((0.0, 10.0), False)
    column = NumberColumn("a", np.dtype(float), False, starts, high)
    values = np.random.default_rng(0).uniform(0, 10, 4000)
    counts = np.bincount(np.searchsorted(starts, values, "right") - 1, minlength=len(starts))

    def same(column, line):
        return column.closer(line, 10.0, 4000, evenly=False)

    mechanism = GaussianMechanism(10.0, sensitivity=math.sqrt(2))
    source = RecordingNoise(np.random.default_rng(1))
    ((found, noisy, sigma, first),) = look_twice([column], lambda some: [counts], mechanism, source, same)
    assert found is column and sigma == pytest.approx(10 / math.sqrt(2))
    assert np.std(noisy - counts) == pytest.approx(sigma, rel=0.2) and np.std(first - counts) > 1.2 * sigma


def test_only_bins_that_hold_much_and_tell_sizes_apart_are_cut():
    starts, ends = np.array([0.0, 1.0, 2.0, 4.0, 8.0]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    noisy = np.array([400.0, 100.0, 400.0, 90.0, 10.0])
    finer = finer_starts(starts, ends, noisy, 10.0, 10.0, 1000, whole=False)
    np.testing.assert_allclose(np.setdiff1d(finer, starts), np.linspace(2, 4, 33)[1:-1])
    whole = finer_starts(starts, ends, noisy, 10.0, 10.0, 1000, whole=True)
    np.testing.assert_array_equal(np.setdiff1d(whole, starts), [3.0])
    assert len(finer_starts(starts, ends, noisy, 10.0, 10.0, 4000, whole=False)) == 5


def test_few_rows_at_two_points_are_both_within_the_bins():
    """The clearest bin alone said where all rows are, and the others counted as its neighbours."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.where(rng.random(800) < 0.5, 0.0, 9.0), rng.normal(size=(800, 3))])
    model = SyntheticDataClassifier(epsilon=1.0, bounds=(-10.0, 10.0), classes=[0, 1], random_state=0)
    with recording_noise(entropy=0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, (X[:, 0] + rng.normal(size=800) > 4).astype(int))
    column = model.generator_._codec.columns[0]
    assert column.starts[0] <= 0 and column.high >= 9.0


@pytest.mark.parametrize("name", ["PATE", "synthetic rows"])
def test_noise_of_few_rows_is_no_bin_in_which_all_of_them_are(name):
    X, y, _ = far_away(0.0, 1.0, 30)
    for seed in range(5):
        model = FITS[name](epsilon=0.5, classes=[0, 1], random_state=0)
        with recording_noise(entropy=seed), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(X, y)
        assert not any("so close together" in str(one.message) for one in said)
