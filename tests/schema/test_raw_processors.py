"""Post-processors and filters take the groups of a raw table by a schema, and hand the table on as it is."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp import IDP3, DemographicParityFilter, FairnessCalibrator, FairPATEClassifier, PublicData, SchemaEncoder
from skfairdp.pate import VoteGate
from skfairdp.postprocessing import PrivateThresholds
from tests._tools.raw import RAW_SCHEMA, raw_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

TABLE, PUBLIC, TEST = raw_rows(400, seed=0), raw_rows(120, seed=1), raw_rows(200, seed=2)
SCHEMA = {"schema": RAW_SCHEMA}
every_library = pytest.mark.parametrize(
    "library", [lambda rows: rows, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "pyarrow"]
)


def private():
    return FairPATEClassifier(
        n_teachers=8, epsilon=20.0, gamma=0.5, gate=VoteGate(min_count=5), public_data=PublicData(PUBLIC), noise_seed=0,
        random_state=0, **SCHEMA,
    )  # fmt: skip


def plain():
    return make_pipeline(SchemaEncoder(RAW_SCHEMA), LogisticRegression())


@every_library
def test_idp3_takes_the_groups_of_a_raw_table(library):
    idp = IDP3(private(), gamma=0.1, min_count=5, **SCHEMA).fit(library(TABLE))
    apart = IDP3(private(), gamma=0.1, min_count=5, groups=["Female", "Male"]).fit(TABLE, TABLE["income"])
    assert idp.groups_.tolist() == ["Female", "Male"]
    assert idp.feature_names_in_.tolist() == [*RAW_SCHEMA.features]
    answered = idp.predict(library(TEST))
    np.testing.assert_array_equal(answered, apart.predict(TEST, sensitive_features=TEST["sex"]))
    np.testing.assert_array_equal(answered, idp.predict(library(TEST), sensitive_features=TEST["sex"].tolist()))


@pytest.mark.few(1)
@every_library
def test_a_calibrator_takes_the_groups_of_a_raw_table(library):
    model = plain().fit(TABLE, TABLE["income"])
    calibrated = FairnessCalibrator(model, gamma=0.1, **SCHEMA).fit(library(PUBLIC))
    apart = FairnessCalibrator(model, gamma=0.1, **SCHEMA).fit(PUBLIC, sensitive_features=PUBLIC["sex"])
    assert calibrated.groups_.tolist() == ["Female", "Male"]
    np.testing.assert_array_equal(calibrated.predict(library(TEST)), apart.predict(TEST))
    assert calibrated.gap_after_ == apart.gap_after_ <= 0.1


@pytest.mark.parametrize("fitted", [False, True])
def test_a_post_processor_reads_by_the_schema_of_its_estimator(fitted):
    model = private().fit(TABLE) if fitted else private()
    for processor, public in ((IDP3(model, gamma=0.1, min_count=5), {}),
                              (FairnessCalibrator(model, gamma=0.1), {"X_public": PublicData(PUBLIC)})):  # fmt: skip
        model.set_params(public_data=None if public and not fitted else PublicData(PUBLIC))
        given = {} if fitted else public
        rows = PUBLIC if fitted and public else TABLE
        found = clone(processor) if not fitted else processor
        alike = type(processor)(**{**processor.get_params(deep=False), **SCHEMA})
        found, alike = (one.fit(rows, **given) for one in (found, alike))
        assert found.groups_.tolist() == ["Female", "Male"]
        np.testing.assert_array_equal(found.predict(TEST), alike.predict(TEST))


def test_private_thresholds_ask_for_the_schema_that_their_classifier_has():
    model = private().fit(TABLE)
    with pytest.raises(ValueError, match=r"PrivateThresholds\(model, schema=schema\)"):
        PrivateThresholds(model).fit(TABLE)
    found = PrivateThresholds(model, epsilon=20.0, **SCHEMA, noise_seed=0, random_state=0).fit(TABLE)
    assert set(found.predict(TEST)) <= {"<=50K", ">50K"}


@pytest.mark.parametrize("given", [{}, SCHEMA], ids=["schema of the model", "schema given twice"])
def test_a_private_group_that_no_schema_lists_is_refused_where_the_model_is_fitted_here(given):
    table = TABLE.assign(sex=np.where(np.arange(len(TABLE)) == 3, "spy", TABLE["sex"]))
    plainly = private().set_params(public_data=None)
    for processor, public in ((IDP3(private(), **given), {}),
                              (FairnessCalibrator(plainly, **given), {"X_public": PublicData(PUBLIC)})):  # fmt: skip
        with pytest.raises(ValueError, match="holds a label or a group that is missing or not among those"):
            processor.fit(table, **public)


def test_groups_of_ones_own_come_before_those_of_the_estimators_schema():
    other = np.where(TABLE["citizen"], "citizen", "foreign")
    idp = IDP3(private(), groups=["citizen", "foreign"]).fit(TABLE, TABLE["income"], sensitive_features=other)
    assert idp.groups_.tolist() == ["citizen", "foreign"]


@every_library
def test_a_filter_keeps_whole_rows_of_a_raw_table(library):
    kept, labels = DemographicParityFilter(gamma=0.05, min_count=5, **SCHEMA).fit_resample(library(TABLE))
    apart = DemographicParityFilter(gamma=0.05, min_count=5)
    rows, _ = apart.fit_resample(TABLE, TABLE["income"], sensitive_features=TABLE["sex"])
    as_pandas = kept if library(TABLE) is TABLE else kept.to_pandas()
    assert as_pandas["age"].tolist() == rows["age"].tolist()
    assert labels.tolist() == rows["income"].tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: IDP3(plain(), **SCHEMA).fit(TABLE, TABLE["income"]).predict(rows),
        lambda rows: FairnessCalibrator(plain().fit(TABLE, TABLE["income"]), **SCHEMA).fit(rows),
        lambda rows: DemographicParityFilter(**SCHEMA).fit_resample(rows),
    ],
    ids=["IDP3", "FairnessCalibrator", "DemographicParityFilter"],
)
def test_a_group_that_the_schema_does_not_list_is_an_error_where_rows_are_public(call):
    with pytest.raises(ValueError, match=r"its schema does not list for \['sex'\]"):
        call(TEST.assign(sex="?"))


@pytest.mark.parametrize(
    "make", [lambda **more: IDP3(plain(), **more), lambda **more: FairnessCalibrator(plain(), **more),
             lambda **more: DemographicParityFilter(**more)],
    ids=["IDP3", "FairnessCalibrator", "DemographicParityFilter"],
)  # fmt: skip
def test_what_the_schema_says_may_not_be_given_once_more(make):
    model = make(groups=["Female", "Male"], **SCHEMA)
    if isinstance(model, FairnessCalibrator):
        model.set_params(estimator=plain().fit(TABLE, TABLE["income"]))
    with pytest.raises(ValueError, match="got 'schema' together with 'groups'"):
        model.fit_resample(TABLE) if hasattr(model, "fit_resample") else model.fit(TABLE, TABLE["income"])
