"""A private cell of a raw table may hold anything: nothing that can be seen of a fit follows it past the noise."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skfairdp import (
    FairClippingClassifier,
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PublicData,
    RandomizedResponseClassifier,
    SyntheticDataClassifier,
)
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.pate import VoteGate
from skfairdp.postprocessing import PrivateThresholds
from skfairdp.schema import Category, Schema
from tests._tools.raw import RAW_SCHEMA, raw_rows
from tests._tools.replay import Recording
from tests.schema.test_schema import Hostile

TABLE = raw_rows(120, seed=0)
TEST = raw_rows(20, seed=2)
#: By which no label and no group is refused: a group of its own, and a label that stands for others.
OPEN = Schema(
    {
        **RAW_SCHEMA.columns,
        "sex": Category(["Female", "Male"], missing=True),
        "income": Category(["<=50K", ">50K"], others="<=50K"),
    },
    label="income",
    groups="sex",
)
PUBLIC = raw_rows(60, seed=1)
PUBLIC = PublicData(PUBLIC.assign(sex=PUBLIC["sex"].astype(object).where(np.arange(60) % 3 > 0, None)))
GIVEN = {"schema": OPEN, "random_state": 0}
QUICK = mlp((), max_epochs=2, batch_size=40)

#: Cells that no schema foresees, and some that change the type of whole columns.
CELLS = [
    "spy", None, 10**400, np.nan, [1], -1e308, pd.NA, True, "2020-02-30", b"7", pd.NaT, complex(1, 2), Hostile(),
    " 40 ", "", np.float32(3), {"a": 1}, 5e-324, np.datetime64("NaT"), "Male ",
    pd.Timestamp("2200-01-01"), -0.0, "<NA>", np.inf, -np.inf, 1e308, "$5", "1,200", "25/04/2001", "female",
]  # fmt: skip
ROWS = range(6)


def thresholds(schema, random_state, ledger):
    """A second fit on the same rows, which asks the first for its answers to them."""
    inside = FairDPSGDClassifier(net=QUICK, lam=0.0, schema=schema, random_state=random_state)
    return PrivateThresholds(inside, schema=schema, random_state=random_state, ledger=ledger)


#: What is fitted, and how many sensitivities a replaced record may move its true values: two through a null record.
RECORD = {
    "fair_pate": (
        functools.partial(FairPATEClassifier, n_teachers=6, gamma=0.3, gate=VoteGate(min_count=5), public_data=PUBLIC),
        1.0,
    ),
    "dpsgd": (functools.partial(FairDPSGDClassifier, net=QUICK, public_data=PUBLIC), 2.0),
    "signed": (functools.partial(FairDPSGDClassifier, net=QUICK, parity=SignedLoss(dual_steps=2)), 2.0),
    "fair_clipping": (functools.partial(FairClippingClassifier, net=QUICK), 2.0),
    "calibrated": (lambda **given: FairnessCalibrator(FairPATEClassifier(gamma=None, n_teachers=6, **given)), 1.0),
    "generator": (PFGuardGenerator, 1.0),
    "synthetic": (functools.partial(SyntheticDataClassifier, LogisticRegression(), n_samples=200), 1.0),
}
ATTRIBUTE = {
    "pfld": (functools.partial(PFLDClassifier, net=mlp((), max_epochs=1), dual_steps=2), 1.0),
    "randomized_response": (RandomizedResponseClassifier, 1.0),
}


def nasty(row, columns=tuple(RAW_SCHEMA.columns)):
    """The table whose fourth record holds other cells of the list in each row of this test."""
    changed = {}
    for j, column in enumerate(columns):
        cells = TABLE[column].astype(object).copy()
        cells.iloc[3] = CELLS[(row * len(RAW_SCHEMA.columns) + j) % len(CELLS)]
        changed[column] = cells
    return TABLE.assign(**changed)


def probe(fitted):
    if isinstance(fitted, PFGuardGenerator):
        sampled = fitted.sample(20, random_state=0)
        return {
            "sampled": sampled.to_csv(),
            "types": str(sampled.dtypes),
            "categories": str(sampled["job"].cat.categories),
        }
    return {"predicted": fitted.predict(TEST), "score": fitted.score(TEST, TEST["income"])}


@functools.cache
def recorded(name):
    make, _ = (RECORD | ATTRIBUTE)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Recording(functools.partial(make, **GIVEN), lambda estimator, table: estimator.fit(table), TABLE, probe)
    assert found.seen.error is None, found.seen.error
    return found


def assert_same_sight(name, neighbour):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = recorded(name).on(neighbour)
    assert not seen.differences(times=(RECORD | ATTRIBUTE)[name][1])


@pytest.mark.few(4)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", RECORD)
def test_an_unforeseen_private_record_does_not_show(name, row):
    assert_same_sight(name, nasty(row))


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [*RECORD, "thresholds"])
def test_whether_any_private_row_can_be_read_in_a_column_does_not_show(name):
    """Rows to predict are told of: they are public."""
    only = TABLE.assign(age=TABLE["age"].astype(object).where(np.arange(len(TABLE)) == 3, "old"), job="sailor")
    make = functools.partial((RECORD | {"thresholds": (thresholds, 2.0)})[name][0], **GIVEN)
    found = Recording(make, lambda estimator, table: estimator.fit(table), only)
    assert found.seen.error is None, found.seen.error
    assert not found.on(only.assign(age="old")).differences(times=None)


@pytest.mark.few(2)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", ATTRIBUTE)
def test_an_unforeseen_private_group_does_not_show(name, row):
    assert_same_sight(name, nasty(row, columns=["sex"]))
