"""What is private and given as public by mistake is refused, by names and memory, before anything is spent."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivacyLedger,
    PublicData,
    RandomizedResponseClassifier,
    SFPATEClassifier,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
GROUPS = RNG.integers(2, size=200)
Y = (X[:, 0] > 0).astype(int)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])
WITH_GROUP = TABLE.assign(sex=GROUPS.astype(float))

ATTRIBUTE = [PFLDClassifier, SFPATEClassifier, RandomizedResponseClassifier]
WITH_PUBLIC_ROWS = [PATEClassifier, FairPATEClassifier, FairDPSGDClassifier, PFGuardGenerator]


def refused(model, match, *args, **given):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=match):
        model.set_params(ledger=ledger).fit(*args, **given)
    assert len(ledger.entries) == 0


@pytest.mark.parametrize("cls", ATTRIBUTE)
@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        pytest.param(WITH_GROUP, WITH_GROUP["sex"], id="the column itself"),
        pytest.param(WITH_GROUP, WITH_GROUP[["sex"]], id="a table of it"),
        pytest.param(WITH_GROUP, pd.Series(GROUPS, name="sex"), id="a copy under its name"),
        pytest.param(WITH_GROUP, pl.Series("sex", GROUPS), id="of another library"),
        pytest.param(WITH_GROUP, WITH_GROUP["sex"].to_numpy(), id="its memory"),
    ],
)
def test_a_private_group_among_public_features_is_refused(cls, rows, groups):
    refused(cls(groups=[0, 1]), rf"X of {cls.__name__} holds sensitive_features.*'sensitive_columns', or drop it",
            rows, Y, sensitive_features=groups)  # fmt: skip


@pytest.mark.parametrize("cls", ATTRIBUTE)
def test_a_private_group_that_is_a_view_of_an_array_is_refused(cls):
    whole = WITH_GROUP.to_numpy()
    refused(
        cls(groups=[0, 1]), "holds sensitive_features, and X is public here", whole, Y, sensitive_features=whole[:, 3]
    )
    refused(cls(groups=[0, 1]), "holds sensitive_features, and X is public here", whole, Y,
            sensitive_features=whole[:, 3:])  # fmt: skip


def test_a_group_beside_the_features_is_fine():
    whole = WITH_GROUP.to_numpy()
    for rows, groups in [(TABLE, WITH_GROUP["sex"]), (whole[:, :3], whole[:, 3]), (TABLE, GROUPS)]:
        RandomizedResponseClassifier(groups=[0, 1]).fit(rows, Y, sensitive_features=groups)
    RandomizedResponseClassifier(groups=[0, 1], sensitive_columns="sex").fit(WITH_GROUP, Y)


def test_a_group_among_private_features_is_fine():
    model = PFGuardGenerator(bounds=(-6.0, 6.0), classes=[0, 1], groups=[0, 1], epsilon=50.0)
    model.fit(WITH_GROUP, Y, sensitive_features=WITH_GROUP["sex"])


@pytest.mark.parametrize("cls", WITH_PUBLIC_ROWS)
@pytest.mark.parametrize("rows", [X, TABLE, pl.from_pandas(TABLE)], ids=["array", "pandas", "polars"])
def test_private_rows_are_refused_as_public_ones(cls, rows):
    if isinstance(rows, pl.DataFrame) and cls is PFGuardGenerator:
        pytest.skip("reads other libraries by a schema only")
    for public in (rows, PublicData(rows, GROUPS)):
        refused(cls(classes=[0, 1]), rf"X_public of {cls.__name__} has rows of X", rows, Y, X_public=public)
    if not isinstance(rows, pl.DataFrame):
        refused(
            cls(classes=[0, 1]), "has rows of X", rows[:150], Y[:150], X_public=PublicData(rows[100:], GROUPS[100:])
        )


def test_public_rows_from_the_same_array_are_fine():
    PATEClassifier(n_teachers=5, classes=[0, 1]).fit(X[:150], Y[:150], X_public=X[150:])
    PATEClassifier(n_teachers=5, classes=[0, 1]).fit(TABLE[:150], Y[:150], X_public=TABLE[150:])
    PATEClassifier(n_teachers=5, classes=[0, 1]).fit(X[::2], Y[::2], X_public=X[1::2])
