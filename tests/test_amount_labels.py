"""An amount as the label of a schema: raw tables in, amounts in its unit out, and who takes which kind of label."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

from skfairdp import (
    FairDPSGDClassifier,
    FairDPSGDRegressor,
    FairPATEClassifier,
    PATEClassifier,
    PFGuardGenerator,
    PrivacyLedger,
    Schema,
    SyntheticDataClassifier,
    SyntheticDataRegressor,
)
from skfairdp.gradient import mlp
from skfairdp.schema import Category, Number

pytestmark = pytest.mark.filterwarnings("ignore:.*not compared with a table")
COLUMNS = {
    "area": Number(20, 200),
    "kind": Category(["flat", "house"]),
    "rent": Number(0, 4000, thousands=".", decimal=",", unit="€"),
    "owner": Category(["f", "m"]),
}
SCHEMA = Schema(COLUMNS, label="rent", groups="owner")
OF_CLASSES = Schema(COLUMNS, label="kind", groups="owner")
REGRESSORS = {
    "network": lambda **given: FairDPSGDRegressor(**{"epsilon": 4.0, "random_state": 0, **given}),
    "synthetic": lambda **given: SyntheticDataRegressor(
        **{"estimator": LinearRegression(), "epsilon": 4.0, "random_state": 0, **given}
    ),
}


def rents(n=4000):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"area": rng.uniform(20, 200, n), "kind": rng.choice(["flat", "house"], n)})
    amounts = np.round(300 + 8 * table["area"] + 400 * (table["kind"] == "house") + 150 * rng.normal(size=n), 2)
    written = [f"{amount:_.2f} €".replace(".", ",").replace("_", ".") for amount in amounts]
    return table.assign(rent=written, owner=rng.choice(["f", "m"], n)), amounts.to_numpy()


TABLE, AMOUNTS = rents()
TRAIN, TEST = slice(0, 3000), slice(3000, None)


@pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS)
def test_a_raw_table_is_fitted_and_scored_by_its_own_label(make):
    model = make(schema=SCHEMA).fit(TABLE[TRAIN])
    assert model.score(TABLE[TEST]) > 0.6
    assert model.score(TABLE[TEST]) == pytest.approx(model.score(TABLE[TEST].drop(columns="rent"), AMOUNTS[TEST]))
    said = model.predict(TABLE[TEST].drop(columns=["rent", "owner"]))
    assert said.min() >= 0 and said.max() <= 4000 and abs(said.mean() - AMOUNTS[TEST].mean()) < 100
    assert {fact.name: fact.value for fact in model.privacy_.public}["bounds of y"] == [0.0, 4000.0]


def test_amounts_may_be_passed_beside_the_table_and_bounds_that_are_given_count():
    model = FairDPSGDRegressor(epsilon=4.0, schema=SCHEMA, bounds=(0, 1000), random_state=0)
    beside = model.fit(TABLE[TRAIN].drop(columns="rent"), TABLE["rent"][TRAIN])
    assert beside.predict(TABLE[TEST]).max() <= 1000


def test_rows_of_the_generator_are_whole_tables_with_their_amounts():
    model = REGRESSORS["synthetic"](schema=SCHEMA).fit(TABLE[TRAIN])
    rows = model.generator_.sample(500, random_state=0)
    assert list(rows.columns) == list(COLUMNS) and rows["rent"].between(0, 4000).all()
    assert abs(rows["rent"].mean() - AMOUNTS.mean()) < 150
    _, y = model.generator_.sample_labels(10, random_state=0)
    assert y.name == "rent"


@pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS)
def test_regressors_say_who_predicts_a_category_and_ask_for_a_label_that_is_not_there(make):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"predicts amounts, and the label of its schema, 'kind', is a Category.*Fair"):
        make(schema=OF_CLASSES, ledger=ledger).fit(TABLE[TRAIN])
    with pytest.raises(ValueError, match=r"no column 'rent'"):
        make(schema=SCHEMA, ledger=ledger).fit(TABLE[TRAIN].drop(columns="rent"))
    assert ledger.entries == ()


@pytest.mark.parametrize(
    "model",
    [
        FairDPSGDClassifier(net=mlp((4,), max_epochs=1), lam=0.0),
        PATEClassifier(),
        FairPATEClassifier(),
        SyntheticDataClassifier(LogisticRegression()),
        PFGuardGenerator(balance=None),
    ],
    ids=lambda model: type(model).__name__,
)
def test_whoever_works_with_classes_says_who_predicts_an_amount(model):
    ledger = PrivacyLedger()
    model.set_params(schema=SCHEMA, ledger=ledger)
    with pytest.raises(ValueError, match=r"'rent', is a Number. FairDPSGDRegressor and SyntheticDataRegressor"):
        model.fit(TABLE[TRAIN])
    assert ledger.entries == ()


def test_bounds_of_columns_are_the_schemas():
    with pytest.raises(ValueError, match="got 'schema' together with 'bounds'"):
        REGRESSORS["synthetic"](schema=SCHEMA, bounds=(0, 1)).fit(TABLE[TRAIN])


def test_a_schema_with_an_amount_as_label_is_read_written_and_read_again():
    assert SCHEMA.classes is None and Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    np.testing.assert_allclose(SCHEMA.read(TABLE).y, AMOUNTS)


def test_a_search_among_learners_of_synthetic_rows_costs_nothing_more():
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e6]})
    model = REGRESSORS["synthetic"](estimator=search, schema=SCHEMA).fit(TABLE[TRAIN])
    assert model.estimator_.best_params_ == {"alpha": 1e-3} and model.privacy_.epsilon <= 4.0


def command_line(*words):
    return subprocess.run(
        [sys.executable, "-m", "skfairdp", "frontier", *map(str, words)], capture_output=True, text=True, check=False
    )


def test_the_command_line_compares_regressors_where_the_schema_says_that_the_label_is_an_amount(tmp_path):
    TABLE.to_csv(tmp_path / "rents.csv", index=False)
    SCHEMA.save(tmp_path / "schema.json")
    given = tmp_path / "rents.csv", "--schema", tmp_path / "schema.json", "--out", tmp_path / "out"
    done = command_line(*given, "--task", "amount", "--epsilon", 4, "--methods", "synthetic")
    assert done.returncode == 0, done.stderr
    assert "R²" in done.stdout and "accuracy" not in done.stdout and "SyntheticDataRegressor" in done.stdout
    assert PrivacyLedger(path=tmp_path / "out" / "ledger.jsonl").epsilon_spent > 0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--task", "amount"], "needs bounds of 'kind' that are public"),
        (["--bounds", "4", "2"], "the first must be the smaller one"),
        (["--bounds", "0", "2", "--task", "class"], "'kind' is an amount"),
        (["--bounds", "0", "2", "--methods", "fair_pate"], "where the label is an amount"),
        (["--methods", "barycenter"], "where the label is a class"),
    ],
)
def test_the_command_line_says_what_does_not_go_with_the_label_and_spends_nothing(tmp_path, more, says):
    TABLE.to_csv(tmp_path / "rents.csv", index=False)
    table = tmp_path / "rents.csv", "--label", "kind", "--group", "owner", "--out", tmp_path / "out"
    done = command_line(*table, *more)
    assert done.returncode == 2 and says in done.stderr
    path = tmp_path / "out" / "ledger.jsonl"
    assert not path.exists() or not PrivacyLedger(path=path).entries
