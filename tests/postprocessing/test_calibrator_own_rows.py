"""A calibrator without public rows takes those that its estimator's fit releases: one ε, one entry, no private row."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from skfairdp import (
    FairnessCalibrator,
    FairPATEClassifier,
    ParetoSearchCV,
    PATEClassifier,
    PrivacyLedger,
    SyntheticDataClassifier,
    SyntheticRows,
)
from skfairdp.datasets import make_biased_classification
from skfairdp.metrics import demographic_disparity
from skfairdp.schema import Boolean, RawTable, Schema
from tests._tools.inside import table_of
from tests._tools.raw import RAW_SCHEMA, raw_rows
from tests._tools.replay import Recording
from tests._tools.sources import recording_noise

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

X, Y, Z = make_biased_classification(4000, disparity=0.4, random_state=0)
X_TEST, Y_TEST, Z_TEST = X[3000:], Y[3000:], Z[3000:]
X, Y, Z = X[:3000], Y[:3000], Z[:3000]
FRAME = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
SECRET = {"classes": [0, 1], "groups": [0, 1], "epsilon": 8.0, "random_state": 0}


def pate(**given):
    return FairPATEClassifier(gamma=None, n_teachers=40, public_data=SyntheticRows(n_rows=1000), **SECRET, **given)


def synthetic(**given):
    learner = LogisticRegression()
    return SyntheticDataClassifier(learner, n_samples=2000, bounds=(-6.0, 6.0), **SECRET, **given)


both = pytest.mark.parametrize("make", [pate, synthetic])


@both
def test_one_entry_pays_for_the_model_and_for_the_rows_it_is_calibrated_on(make):
    ledger = PrivacyLedger()
    with recording_noise(entropy=0):
        alone = make().fit(X, Y, sensitive_features=Z)
        found = FairnessCalibrator(make(ledger=ledger), gamma=0.05).fit(X, Y, sensitive_features=Z)
    (entry,) = ledger.entries
    assert entry.event == found.privacy_.event == alone.privacy_.event and found.privacy_.epsilon <= 8.0
    assert found.gap_after_ <= min(0.05, found.gap_before_)
    assert found.gap_bound_ == 1 and found.constraint_holds_ != "yes"  # samples need not have the gap of private rows
    before, after = (demographic_disparity(Y_TEST, model.predict(X_TEST), sensitive_features=Z_TEST)
                     for model in (found.estimator_, found))  # fmt: skip
    assert before > 0.2 and after < 0.8 * before  # without the group at prediction


@both
def test_a_dataframe_keeps_its_names(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", pd.errors.PerformanceWarning)
        warnings.filterwarnings("ignore", "FairnessCalibrator could not check its constraint")
        model = FairnessCalibrator(make(), gamma=0.1).fit(FRAME, Y, sensitive_features=Z)
        model.predict(FRAME[:5])
    assert model.feature_names_in_.tolist() == list(FRAME)


def test_a_raw_table_is_calibrated_by_its_schema():
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=8.0, schema=RAW_SCHEMA, random_state=0)
    found = FairnessCalibrator(model, gamma=0.05, schema=RAW_SCHEMA).fit(raw_rows(2000, seed=0))
    assert found.gap_after_ <= found.gap_before_ and found.groups_.tolist() == ["Female", "Male"]
    assert set(found.predict(raw_rows(20, seed=1))) <= {"<=50K", ">50K"}


SAMPLED = SyntheticRows(n_rows=1000)


@pytest.mark.parametrize("given", [{}, {"schema": RAW_SCHEMA}], ids=["schema of the model", "schema given twice"])
def test_sampled_rows_are_a_raw_table_again(given):
    ledger = PrivacyLedger()
    model = FairPATEClassifier(gamma=None, n_teachers=40, public_data=SAMPLED, epsilon=8.0, schema=RAW_SCHEMA,
                               random_state=0, ledger=ledger)  # fmt: skip
    found = FairnessCalibrator(model, gamma=0.05, **given).fit(raw_rows(2000, seed=0))
    assert found.gap_after_ <= min(0.05, found.gap_before_) and len(ledger.entries) == 1
    assert found.groups_.tolist() == ["Female", "Male"]
    assert set(found.predict(raw_rows(20, seed=1))) <= {"<=50K", ">50K"}


def test_rows_that_were_sampled_by_a_schema_read_as_they_were_sampled():
    columns = {**RAW_SCHEMA.columns, "member": Boolean()}
    schema = Schema(columns, label="income", groups=["sex", "member"])
    table = raw_rows(500, seed=0).assign(member=lambda rows: rows["age"] % 2 == 0)
    raw = RawTable.read(schema, table, owner="test")
    again = table_of(schema, raw.features, raw.groups())
    assert list(again) == [name for name in schema.columns if name != "income"]
    read = RawTable.read(schema, again, owner="test")
    np.testing.assert_allclose(read.features, raw.features, atol=1e-12)
    np.testing.assert_array_equal(read.groups(), raw.groups())
    assert not schema.misfits(again).any()


@pytest.mark.few(1)
@both
def test_neighbours_look_the_same(make):
    rows = X[:300], Y[:300], Z[:300]

    def fit(model, data):
        return FairnessCalibrator(model, gamma=0.05).fit(data[0], data[1], sensitive_features=data[2])

    recording = Recording(make, fit, rows, lambda found: {"predicted": found.predict(X_TEST)})
    assert recording.seen.error is None
    for row in (0, 299):
        other = tuple(values.copy() for values in rows)
        other[0][row], other[1][row], other[2][row] = 5.5, 1 - other[1][row], 1 - other[2][row]
        assert not recording.on(other).differences()


@pytest.mark.slow
def test_a_search_over_it_needs_no_public_rows_either():
    ledger = PrivacyLedger()
    search = ParetoSearchCV(FairnessCalibrator(synthetic(ledger=ledger)), {"gap_weight": [0.0, 3.0]}, cv=2,
                            score_epsilon=2.0, error_score="raise")  # fmt: skip
    search.fit(X, Y, sensitive_features=Z)
    assert np.isfinite(search.cv_results_["mean_test_disparity"]).all() and ledger.entries


@pytest.mark.parametrize(
    ("model", "groups"),
    [(PATEClassifier(**{k: v for k, v in SECRET.items() if k != "groups"}), Z), (synthetic(), None),
     (pate(schema=None), None)],
)  # fmt: skip
def test_rows_without_groups_are_refused_before_anything_is_spent(model, groups):
    ledger = PrivacyLedger()
    with pytest.raises(NotFittedError, match="FairPATEClassifier or SyntheticDataClassifier, fitted with groups"):
        FairnessCalibrator(model.set_params(ledger=ledger)).fit(X, Y, sensitive_features=groups)
    assert not ledger.entries
