"""Loaders, data with a known gap, and the split."""

import dataclasses
import gzip
import os
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from skfairdp.datasets import (
    _fetch,
    data_file,
    fetch_adult,
    fetch_bank,
    fetch_credit,
    fetch_parkinsons,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.preprocessing import make_tabular_encoder

FETCHERS = {"adult": fetch_adult, "bank": fetch_bank, "credit": fetch_credit, "parkinsons": fetch_parkinsons}


def _needs(name):
    if data_file(name) is None:
        pytest.skip(f"{name}.csv.gz is not in the folder named by SKFAIRDP_DATA")


# --- the published tables
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "positives", "groups"),
    [
        ("adult", (48_842, 12), 11_687, {"Male": 32_650, "Female": 16_192}),
        ("bank", (45_211, 15), 5_289, {"<60": 43_427, ">=60": 1_784}),
        ("credit", (30_000, 22), 6_636, {"male": 11_888, "female": 18_112}),
        ("parkinsons", (5_875, 18), 2_934, {"male": 4_008, "female": 1_867}),
    ],
)
def test_published_table_has_the_documented_size_labels_and_groups(name, shape, positives, groups):
    _needs(name)
    bunch = FETCHERS[name]()
    assert bunch.data.shape == shape == (len(bunch.target), len(bunch.feature_names))
    assert int(bunch.target.sum()) == positives and set(bunch.target) == {0, 1}
    assert bunch.sensitive_features.value_counts().to_dict() == groups
    assert not bunch.data.isna().any().any() and not bunch.sensitive_features.isna().any()
    assert len(bunch.target_names) == 2 and name in bunch.DESCR


def test_group_is_a_feature_only_when_asked_for():
    _needs("adult")
    assert not {"sex", "fnlwgt", "class", "split"} & set(fetch_adult().feature_names)
    assert "race" not in fetch_adult(sensitive="race").feature_names
    assert "sex" in fetch_adult(include_sensitive=True).feature_names
    both = fetch_adult(sensitive=["sex", "race"])
    assert list(both.sensitive_features.columns) == ["sex", "race"] and not {"sex", "race"} & set(both.feature_names)
    assert both.sensitive_features["race"].value_counts().to_dict() == {"White": 41_762, "Non-White": 7_080}


def test_missing_cells_of_adult_are_a_category_and_its_files_are_kept_apart():
    _needs("adult")
    adult = fetch_adult()
    assert [(adult.data[c] == "unknown").sum() for c in ("workclass", "occupation", "native-country")] == [
        2799,
        2809,
        857,
    ]
    assert adult.split.value_counts().to_dict() == {"train": 32_561, "test": 16_281}


def test_bank_keeps_unknown_and_leaves_duration_out_on_request():
    _needs("bank")
    bank = fetch_bank(drop_duration=True)
    assert "duration" not in bank.feature_names and "age" not in bank.feature_names
    assert (bank.data["job"] == "unknown").sum() == 288


def test_credit_codes_are_names_and_undocumented_ones_are_others():
    _needs("credit")
    credit = fetch_credit()
    assert credit.data["EDUCATION"].value_counts()["others"] == 123 + 345
    assert credit.data["MARRIAGE"].value_counts()["others"] == 323 + 54


def test_parkinsons_hides_person_and_scores_and_keeps_a_person_on_one_side():
    _needs("parkinsons")
    parkinsons = fetch_parkinsons()
    assert not {"subject#", "motor_UPDRS", "total_UPDRS", "sex"} & set(parkinsons.feature_names)
    split = train_private_public_test_split(
        parkinsons.data, parkinsons.target, parkinsons.sensitive_features, subject=parkinsons.subject, random_state=0
    )
    people = [set(parkinsons.subject.iloc[rows]) for rows in split.indices]
    assert sum(map(len, people)) == 42 == len(set.union(*people))


# --- finding the tables
# --------------------------------------------------------------------------------------------

ROWS = [
    "39,State-gov,1,Bachelors,13,Divorced,Sales,Husband,White,Male,0,0,40,Cuba,>50K,train",
    "50,,1,HS-grad,9,Divorced,,Wife,Black,Female,0,0,13,,<=50K,test",
]


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A two-row Adult in a folder of its own, and no network."""
    monkeypatch.setattr(_fetch, "ADULT", dataclasses.replace(_fetch.ADULT, rows=2, positives=1))
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)

    def refuse(**kwargs):
        raise URLError("no network in tests")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    text = "\n".join([",".join([*_fetch.ADULT.columns, "split"]), *ROWS])
    with gzip.open(tmp_path / "adult.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    return tmp_path


def test_file_is_found_through_argument_and_environment(tiny, monkeypatch):
    assert fetch_adult(data_home=tiny).data["occupation"].tolist() == ["Sales", "unknown"]
    monkeypatch.setenv("SKFAIRDP_DATA", str(tiny))
    bunch = fetch_adult(sensitive="race")
    assert bunch.sensitive_features.tolist() == ["White", "Non-White"] and bunch.source == str(tiny / "adult.csv.gz")
    X, y = fetch_adult(return_X_y=True)
    assert X.shape == (2, 12) and y.tolist() == [1, 0]


def test_uncompressed_file_is_accepted(tiny):
    plain = Path(tiny) / "plain"
    plain.mkdir()
    (plain / "adult.csv").write_bytes(gzip.decompress((tiny / "adult.csv.gz").read_bytes()))
    assert fetch_adult(data_home=plain).data.shape == (2, 12)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", list(FETCHERS))
def test_error_without_file_or_network_names_both_ways_out(name, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match=r"SKFAIRDP_DATA.*data_home") as caught:
        FETCHERS[name](data_home=empty)
    assert "doi.org" in str(caught.value) and f"{name}.csv.gz" in str(caught.value)


def test_openml_copy_is_brought_to_the_original_columns(tiny, monkeypatch):
    data = pd.DataFrame([row.split(",")[:14] for row in ROWS], columns=_fetch.ADULT.columns[:14])
    for column in ("workclass", "occupation", "native-country", "capital-gain"):  # OpenML: categories, NaN, binned
        data[column] = data[column].where(data[column] != "").astype("category")
    numbers = ["age", "fnlwgt", "education-num", "capital-loss", "hours-per-week"]
    data[numbers] = data[numbers].astype(int)
    target = pd.Series([">50K", "<=50K"], dtype="category", name="class")
    asked = {}

    def fake(**kwargs):
        asked.update(kwargs)
        return Bunch(data=data, target=target)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fake)
    bunch = fetch_adult(data_home=tiny / "cache")
    assert asked["data_id"] == 1590 and asked["data_home"] == str(tiny / "cache")
    assert bunch.target.tolist() == [1, 0] and bunch.split is None
    assert bunch.data["workclass"].tolist() == ["State-gov", "unknown"]
    assert bunch.data["capital-gain"].dtype.kind in "if"


def test_placeholder_names_of_openml_are_replaced(monkeypatch, tmp_path):
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    monkeypatch.setattr(_fetch, "BANK", dataclasses.replace(_fetch.BANK, rows=2, positives=1))
    values = {name: [61, 20] if name in ("age", "balance") else ["a", "b"] for name in _fetch.BANK.columns[:-1]}
    data = pd.DataFrame(values).set_axis([f"V{j}" for j in range(1, 17)], axis=1)
    bunch = Bunch(data=data, target=pd.Series(["2", "1"], dtype="category"))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: bunch)
    bank = fetch_bank(data_home=tmp_path)
    assert bank.target.tolist() == [1, 0] and bank.sensitive_features.tolist() == [">=60", "<60"]


def test_table_that_is_not_the_published_one_is_refused(tiny, monkeypatch):
    monkeypatch.setattr(_fetch, "ADULT", dataclasses.replace(_fetch.ADULT, rows=3))
    with pytest.raises(ValueError, match=r"not the published one: it has 2 rows, 1 of them positive"):
        fetch_adult(data_home=tiny)
    monkeypatch.setattr(_fetch, "ADULT", dataclasses.replace(_fetch.ADULT, columns=(*_fetch.ADULT.columns, "height")))
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['height'\]"):
        fetch_adult(data_home=tiny)


@pytest.mark.parametrize("sensitive", ["age", [], ["sex", "age"]])
def test_unknown_group_name_is_an_error_that_lists_the_allowed_ones(tiny, sensitive):
    with pytest.raises(ValueError, match=r"'sensitive' parameter of fetch_adult .* one of \['race', 'sex'\]"):
        fetch_adult(data_home=tiny, sensitive=sensitive)


def test_data_file_reads_no_folder_when_none_is_named(monkeypatch):
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    assert data_file("adult") is None
    monkeypatch.setenv("SKFAIRDP_DATA", os.devnull)
    assert data_file("adult") is None


# --- data with a known gap
# -----------------------------------------------------------------------------------------


def _gaps(y, groups):
    """The largest gap by the "between" and by the "others" definition, from their definitions."""
    between = others = 0.0
    for k in np.unique(y):
        rates = {z: np.mean(y[groups == z] == k) for z in np.unique(groups)}
        between = max(between, max(rates.values()) - min(rates.values()))
        others = max(others, max(rates[z] - np.mean(y[groups != z] == k) for z in rates))
    return between, others


@pytest.mark.parametrize(
    ("disparity", "proportions", "n_classes", "base_rate"),
    [
        (0.2, (0.5, 0.5), 2, None),
        (0.35, (0.8, 0.2), 2, 0.3),
        (0.25, (2, 1, 1), 3, 0.4),
        (0.0, (0.1, 0.2, 0.7), 4, None),
    ],
)
def test_gap_of_a_large_sample_is_the_declared_one(disparity, proportions, n_classes, base_rate):
    n = 400_000
    _, y, groups = make_biased_classification(
        n, disparity=disparity, group_proportions=proportions, n_classes=n_classes, base_rate=base_rate, random_state=1
    )
    shares = np.asarray(proportions) / np.sum(proportions)
    # Four standard errors of a difference of two rates, the smaller group dominating.
    slack = 4 * np.sqrt(0.25 / (n * shares.min()) + 0.25 / (n * 0.2))
    for gap in _gaps(y, groups):
        assert gap == pytest.approx(disparity, abs=slack)
    assert np.mean(y == n_classes - 1) == pytest.approx(base_rate or 1 / n_classes, abs=4 * np.sqrt(0.25 / n))
    np.testing.assert_allclose(np.bincount(groups) / n, shares, atol=4 * np.sqrt(0.25 / n))


def test_features_carry_class_and_group_at_the_declared_distances():
    X, y, groups = make_biased_classification(200_000, class_sep=3.0, group_sep=1.5, disparity=0.3, random_state=2)
    centre = {(k, z): X[(y == k) & (groups == z)].mean(axis=0) for k in (0, 1) for z in (0, 1)}
    assert np.linalg.norm(centre[0, 0] - centre[1, 0]) == pytest.approx(3.0 * np.sqrt(2), abs=0.03)
    assert np.linalg.norm(centre[0, 0] - centre[0, 1]) == pytest.approx(1.5 * np.sqrt(2), abs=0.03)
    np.testing.assert_allclose(X[(y == 0) & (groups == 0)].std(axis=0), 1.0, atol=0.02)


def test_synthetic_data_is_reproducible_and_comes_as_a_frame():
    first, second = (make_biased_classification(50, random_state=3, as_frame=True) for _ in range(2))
    pd.testing.assert_frame_equal(first[0], second[0])
    assert list(first[0].columns[:2]) == ["x0", "x1"] and first[1].equals(second[1]) and first[2].name == "group"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"disparity": 1.5}, "'disparity' parameter of make_biased_classification must be a float"),
        ({"disparity": float("nan")}, "'disparity' parameter"),
        ({"disparity": 0.5, "base_rate": 0.9}, "cannot exist at base_rate=0.9"),
        ({"group_proportions": (1.0,)}, "'group_proportions' parameter"),
        ({"group_proportions": (0.5, -0.5)}, "'group_proportions' parameter"),
        ({"n_classes": 1}, "'n_classes' parameter"),
        ({"n_features": 3}, "'n_features' parameter"),
        ({"n_samples": 0}, "'n_samples' parameter"),
    ],
)
def test_impossible_synthetic_data_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_biased_classification(**{"n_samples": 10, **kwargs})


# --- the split
# -----------------------------------------------------------------------------------------------------


def _table(n):
    return (pd.DataFrame({"row": np.arange(n)}), pd.Series(np.arange(n) % 2), np.array(["a", "b"])[np.arange(n) % 2])


def test_split_parts_are_disjoint_aligned_and_of_the_asked_sizes():
    X, y, groups = _table(1000)
    split = train_private_public_test_split(X, y, groups, random_state=4)
    assert [len(rows) for rows in split.indices] == [700, 50, 250]
    assert sorted(np.concatenate(split.indices)) == list(range(1000))
    for part, rows in zip(("", "_public", "_test"), split.indices, strict=True):
        np.testing.assert_array_equal(getattr(split, f"X{part}")["row"], rows)
        np.testing.assert_array_equal(getattr(split, f"y{part}"), rows % 2)
        np.testing.assert_array_equal(getattr(split, f"sensitive_features{part}"), np.array(["a", "b"])[rows % 2])
    assert split.public.X is split.X_public


@pytest.mark.parametrize("of_pandas", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_parts_are_of_the_kind_that_was_split(of_pandas):
    X, y, groups = _table(1000)
    table = of_pandas(X.assign(y=y, group=groups))
    split = train_private_public_test_split(table.select(["row"]), table["y"], table["group"], random_state=4)
    for part, rows in zip(("", "_public", "_test"), split.indices, strict=True):
        assert type(getattr(split, f"X{part}")) is type(table)
        np.testing.assert_array_equal(getattr(split, f"X{part}")["row"].to_numpy(), rows)
        np.testing.assert_array_equal(getattr(split, f"y{part}").to_numpy(), rows % 2)
        np.testing.assert_array_equal(getattr(split, f"sensitive_features{part}").to_numpy(), groups[rows])


def test_changing_a_value_moves_no_row():
    X, y, groups = _table(500)
    other = train_private_public_test_split(X * 0, 1 - y, groups[::-1], random_state=5)
    for a, b in zip(train_private_public_test_split(X, y, groups, random_state=5).indices, other.indices, strict=True):
        np.testing.assert_array_equal(a, b)
    changed = train_private_public_test_split(X, y, groups, random_state=6)
    assert set(changed.indices[0]) != set(other.indices[0])


def test_split_leaves_rows_out_where_sizes_say_so():
    split = train_private_public_test_split(*_table(100), sizes=(0.2, 0.1, 0.1), random_state=0)
    assert [len(rows) for rows in split.indices] == [20, 10, 10]


def test_encode_fits_on_public_rows_only():
    X, y, groups = _table(200)
    split = train_private_public_test_split(X.astype(float), y, groups, random_state=0)
    shifted = dataclasses.replace(split, X=split.X * 1e6, X_test=split.X_test * 1e6)
    encoded, same = split.encode(make_tabular_encoder()), shifted.encode(make_tabular_encoder())
    np.testing.assert_array_equal(encoded.X_public, same.X_public)
    assert np.abs(encoded.X_public.mean()) < 1e-12 and np.max(np.abs(same.X)) == 5.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (0.7, 0.3)}, "'sizes' parameter"),
        ({"sizes": (0.9, 0.2, 0.2)}, "'sizes' parameter"),
        ({"sizes": (0.7, 0.001, 0.25)}, "leaves a part without rows"),
        ({"y": [0, 1]}, "y of train_private_public_test_split has inconsistent length: 2 rows"),
        ({"sensitive_features": ["a"]}, "sensitive_features of .* has inconsistent length"),
        ({"subject": [1, 2]}, "subject of .* has inconsistent length"),
    ],
)
def test_bad_split_is_refused(change, message):
    X, y, groups = _table(10)
    arguments = {"X": X, "y": y, "sensitive_features": groups, "random_state": 0, "sizes": (0.5, 0.2, 0.3), **change}
    with pytest.raises(ValueError, match=message):
        train_private_public_test_split(**arguments)
