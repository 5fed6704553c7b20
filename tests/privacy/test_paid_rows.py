"""Rows that a generator made say what was paid for them: whatever reads them as public rows adds it up."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import FairPATEClassifier, ParetoSearchCV, PATEClassifier, PFGuardGenerator, PublicData
from skfairdp.gradient import FairDPSGDClassifier
from skfairdp.postprocessing import FairnessCalibrator
from skfairdp.preprocessing import PublicPreprocessor
from skfairdp.privacy import PrivacyLedger, privacy_of, verify_file
from skfairdp.schema import Schema

CLASSES, GROUPS = [0, 1], ["a", "b"]
rng = np.random.default_rng(0)
TABLE = pd.DataFrame(rng.normal(size=(1500, 3)), columns=["u", "v", "w"])
LABELS = pd.Series((TABLE["u"] + rng.normal(size=1500) > 0).astype(int), name="y")
OTHERS = pd.DataFrame(rng.normal(size=(300, 3)), columns=["u", "v", "w"])
OF = pd.Series(np.where(rng.random(1500) < 0.5, "a", "b"), name="sex")


def generator(**parameters):
    model = PFGuardGenerator(
        epsilon=1.0, classes=CLASSES, groups=GROUPS, bounds=(-4.0, 4.0), random_state=0, **parameters
    )
    return model.fit(TABLE, LABELS, sensitive_features=OF)


@pytest.fixture(scope="module")
def made():
    return generator()


@pytest.fixture(scope="module")
def rows(made):
    return made.sample(400, return_sensitive=True, random_state=0)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def pate(**parameters):
    return PATEClassifier(**{"epsilon": 1.0, "classes": CLASSES, "n_teachers": 30, "random_state": 0, **parameters})


def fair_pate(**parameters):
    return FairPATEClassifier(epsilon=1.0, classes=CLASSES, groups=GROUPS, n_teachers=30, random_state=0, **parameters)


def of(X, groups):
    return PublicData(X, groups)


def searching(**parameters):
    return ParetoSearchCV(pate(**parameters), {"voting__max_queries": [50, 100]}, scoring=("accuracy", "epsilon"), cv=2)


def fitted_search(X, groups):
    del groups
    return searching().fit(TABLE, LABELS, X_public=PublicData(X))


def validated(X, groups):
    search = searching(public_data=PublicData(OTHERS))
    return search.fit(TABLE, LABELS, validation=PublicData(X, groups, LABELS[:400].to_numpy()))


READERS = {
    "PATE": lambda X, g: pate().fit(TABLE, LABELS, X_public=X),
    "PATE, as a parameter": lambda X, g: pate(public_data=PublicData(X)).fit(TABLE, LABELS),
    "FairPATE": lambda X, g: fair_pate().fit(TABLE, LABELS, X_public=of(X, g)),
    "FairPATE, groups alone": lambda X, g: fair_pate().fit(
        TABLE, LABELS, X_public=X.to_numpy(), sensitive_features_public=g
    ),
    "DP-SGD": lambda X, g: FairDPSGDClassifier(
        epsilon=1.0, classes=CLASSES, groups=GROUPS, parity="public_penalty", random_state=0
    ).fit(TABLE, LABELS, sensitive_features=OF, X_public=of(X, g)),
    "a generator": lambda X, g: PFGuardGenerator(epsilon=1.0, classes=CLASSES, groups=GROUPS, random_state=0).fit(
        TABLE, LABELS, sensitive_features=OF, X_public=X
    ),
    "a search": fitted_search,
    "a search that scores on them": validated,
    "a calibrator": lambda X, g: FairnessCalibrator(
        pate(public_data=PublicData(OTHERS)).fit(TABLE, LABELS), gamma=0.3
    ).fit(TABLE, LABELS, X_public=of(X, g)),
    "a schema": lambda X, g: pate(schema=Schema.from_public(X.assign(y=LABELS[:400]), label="y"), classes=None).fit(
        TABLE.assign(y=LABELS), X_public=OTHERS
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_reads_such_rows_costs_both(reader, rows, made, tmp_path):
    del made
    fit = READERS[reader]
    paid, free = fit(*rows), fit(*(type(one)(one.to_numpy(), columns=one.columns) if isinstance(one, pd.DataFrame)
                                   else pd.Series(one.to_numpy()) for one in rows))  # fmt: skip
    assert {part.label for part in paid.privacy_.parts} >= {"PFGuardGenerator"}
    assert paid.privacy_.epsilon > free.privacy_.epsilon + 0.2
    (tmp_path / "statement.json").write_text(paid.privacy_.statement(subject="a fit").to_json(), "utf-8")
    assert all(check.holds for check in verify_file(tmp_path / "statement.json"))


def test_rows_that_were_sampled_cost_what_they_cost():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = generator().sample(400, random_state=0)
        assert pate().fit(TABLE, LABELS, X_public=X).privacy_.epsilon > 1.3


def test_the_plan_of_a_fit_knows_it(rows):
    model = pate()
    planned = model.planned_privacy(TABLE, LABELS, X_public=rows[0]).epsilon
    assert planned == model.fit(TABLE, LABELS, X_public=rows[0]).privacy_.epsilon > 1.3


def kept_in_parquet(X, tmp_path):
    pytest.importorskip("pyarrow")
    X.to_parquet(tmp_path / "rows.parquet")
    return pd.read_parquet(tmp_path / "rows.parquet")


KEPT = {
    "copied": lambda X, _: X.copy(),
    "chosen": lambda X, _: X[X["u"] > 0].iloc[:100],
    "columns in another order": lambda X, _: X[["w", "v", "u"]][["u", "v", "w"]],
    "pickled": lambda X, _: pickle.loads(pickle.dumps(X)),
    "copied deeply": lambda X, _: copy.deepcopy(X),
    "in two parts": lambda X, _: pd.concat([X[:100], X[100:]]),
    "in a file": kept_in_parquet,
}


@pytest.mark.parametrize("way", KEPT)
def test_it_stays_with_the_rows(way, rows, tmp_path):
    fit = pate().fit(TABLE, LABELS, X_public=KEPT[way](rows[0], tmp_path))
    assert fit.privacy_.epsilon > 1.3
    assert any(fact.name == "public rows" and fact.how == "released" for fact in fit.privacy_.public)


def test_labels_and_rows_of_a_training_set_say_it(made):
    X, y, groups = made.sample_labels(50, return_sensitive=True, random_state=0)
    assert all(len(one.attrs) == 1 for one in (X, y, groups))


def test_a_pipeline_that_scales_by_such_rows_costs_both(rows):
    steps = make_pipeline(PublicPreprocessor(StandardScaler(), X_public=PublicData(rows[0])), pate())
    steps.set_params(pateclassifier__public_data=PublicData(np.zeros((100, 3)) + rng.normal(size=(100, 3))))
    assert privacy_of(steps.fit(TABLE, LABELS)).epsilon > 1.3


def test_on_one_ledger_nothing_is_counted_twice():
    ledger = PrivacyLedger(epsilon=5.0)
    model = pate(ledger=ledger)
    X = generator(ledger=ledger).sample(300, random_state=0)
    model.fit(TABLE, LABELS, X_public=X)
    assert len(ledger.entries) == 2
    assert privacy_of(model).epsilon == pytest.approx(ledger.epsilon_spent, rel=1e-6)


def test_a_record_of_what_was_paid_cannot_be_edited(rows):
    X = rows[0].copy()
    (entry,) = X.attrs["skfairdp releases"]
    entry["epsilon"] = 0.01
    with pytest.raises(ValueError, match="edited or cut"):
        pate().fit(TABLE, LABELS, X_public=X)
