"""What is private and given as public by mistake is refused, by names and memory, before anything is spent."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import skfairdp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
GROUPS = RNG.integers(2, size=200)
Y = (X[:, 0] > 0).astype(int)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])
WITH_GROUP = TABLE.assign(sex=GROUPS.astype(float))
WHOLE = WITH_GROUP.to_numpy()

ATTRIBUTE = [skfairdp.PFLDClassifier, skfairdp.SFPATEClassifier, skfairdp.RandomizedResponseClassifier]
WITH_PUBLIC_ROWS = [
    skfairdp.PATEClassifier,
    skfairdp.FairPATEClassifier,
    skfairdp.FairDPSGDClassifier,
    skfairdp.PFGuardGenerator,
]


def refused(model, match, *args, **given):
    ledger = skfairdp.PrivacyLedger()
    with pytest.raises(ValueError, match=match):
        model.set_params(ledger=ledger).fit(*args, **given)
    assert len(ledger.entries) == 0


def accepted(model, *args, **given):
    """Fitted without a warning (here they are errors), and paid for once."""
    ledger = skfairdp.PrivacyLedger()
    model.set_params(ledger=ledger).fit(*args, **given)
    (entry,) = ledger.entries
    assert entry.event == model.privacy_.event and entry.label == type(model).__name__
    return model


def read_as_public(model):
    """What the statement says of each thing that was read: its value."""
    return {fact["name"]: fact["value"] for fact in model.privacy_statement().to_dict()["public"]}


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
    refused(
        cls(groups=[0, 1]), "holds sensitive_features, and X is public here", WHOLE, Y, sensitive_features=WHOLE[:, 3]
    )
    refused(cls(groups=[0, 1]), "holds sensitive_features, and X is public here", WHOLE, Y,
            sensitive_features=WHOLE[:, 3:])  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        pytest.param(TABLE, WITH_GROUP["sex"], id="another table"),
        pytest.param(TABLE, GROUPS, id="an array beside a table"),
        pytest.param(WHOLE[:, :3], WHOLE[:, 3], id="two views of one array"),
    ],
)
def test_a_group_beside_the_features_is_fine(rows, groups):
    model = accepted(skfairdp.RandomizedResponseClassifier(groups=[0, 1]), rows, Y, sensitive_features=groups)
    assert read_as_public(model)["columns of X"] in (3, ["a", "b", "c"])
    assert model.predict(rows).shape == (200,)


def test_a_group_that_is_named_among_the_features_is_taken_out_of_what_is_public():
    model = skfairdp.RandomizedResponseClassifier(groups=[0, 1], sensitive_columns="sex")
    accepted(model, WITH_GROUP, Y)
    assert list(model.fair_estimator_.coef_.shape) == [1, 3]
    turned = WITH_GROUP.assign(sex=1.0 - WITH_GROUP["sex"])
    np.testing.assert_array_equal(model.predict(turned), model.predict(WITH_GROUP))


def test_a_group_among_private_features_is_fine():
    model = skfairdp.PFGuardGenerator(bounds=(-6.0, 6.0), classes=[0, 1], groups=[0, 1], epsilon=50.0)
    accepted(model, WITH_GROUP, Y, sensitive_features=WITH_GROUP["sex"])
    assert "features and labels" not in read_as_public(model)
    assert list(model.sample(5, random_state=0).columns) == ["a", "b", "c", "sex"]


@pytest.mark.parametrize("cls", WITH_PUBLIC_ROWS)
@pytest.mark.parametrize("rows", [X, TABLE, pl.from_pandas(TABLE)], ids=["array", "pandas", "polars"])
def test_private_rows_are_refused_as_public_ones(cls, rows):
    if isinstance(rows, pl.DataFrame) and cls is skfairdp.PFGuardGenerator:
        pytest.skip("reads other libraries by a schema only")
    for public in (rows, skfairdp.PublicData(rows, GROUPS)):
        refused(cls(classes=[0, 1]), rf"X_public of {cls.__name__} has rows of X", rows, Y, X_public=public)
    if not isinstance(rows, pl.DataFrame):
        refused(
            cls(classes=[0, 1]),
            "has rows of X",
            rows[:150],
            Y[:150],
            X_public=skfairdp.PublicData(rows[100:], GROUPS[100:]),
        )


@pytest.mark.parametrize(
    ("private", "public"),
    [
        pytest.param(X[:150], X[150:], id="another part of one array"),
        pytest.param(TABLE[:150], TABLE[150:], id="another part of one table"),
        pytest.param(X[::2], X[1::2], id="every second row"),
    ],
)
def test_public_rows_from_the_same_array_are_fine(private, public):
    labels = (np.asarray(private)[:, 0] > 0).astype(int)
    model = accepted(skfairdp.PATEClassifier(n_teachers=5, classes=[0, 1]), private, labels, X_public=public)
    assert read_as_public(model)["number of private rows"] == len(private)
    assert set(model.query_indices_) <= set(range(len(public)))
