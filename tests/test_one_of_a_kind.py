"""One listed group, one listed class: every estimator fits and answers, or refuses them before anything is spent."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from skfairdp import FairPATEClassifier, PFLDClassifier, PrivacyLedger, SyntheticDataClassifier
from skfairdp.fairness import RateBound
from skfairdp.lagrangian import LagrangianClassifier
from skfairdp.postprocessing import PrivateThresholds
from tests._tools.catalogue import CATALOGUE, make_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
]
ROWS = make_rows()
OF = {"groups": ("groups", "groups_public", "groups_test"), "classes": ("y", "y_public", "y_test")}


def lists(model, name):
    """The parameters that list groups or classes: of the estimator, or of the one inside a search."""
    found = model.get_params()
    given = [key for key, value in found.items() if key.split("__")[-1] == name and isinstance(value, list)]
    return given or [key for key in (name,) if key in found]


LISTED = [
    pytest.param(fit, name, id=f"{fit.name}, {name}", marks=[pytest.mark.slow] * fit.slow)
    for fit in CATALOGUE
    if not fit.name.startswith("Calibrator")  # it reads public rows, and what it moves has been fitted before
    for name in OF
    for model in [fit.make()]
    if isinstance(model, BaseEstimator) and lists(model, name)
    if getattr(model, "schema", None) is None and isinstance(fit.rows().y, np.ndarray)
]


@pytest.mark.parametrize(("fit", "name"), LISTED)
def test_one_of_a_kind_is_learned_from_or_refused_before_the_charge(fit, name):
    model, rows = fit.make(), fit.rows()
    model.set_params(**{key: [0] for key in lists(model, name)})
    rows = replace(rows, **{values: getattr(rows, values) * 0 for values in OF[name]})
    refused = ""
    with PrivacyLedger() as ledger:
        try:
            fitted = fit.fit(model, rows)
        except ValueError as error:
            refused = str(error)
    if refused:
        assert ledger.entries == (), f"failed after the charge: {refused}"
        assert type(model).__name__ in refused or f"'{name}'" in refused, f"names neither: {refused}"
    else:
        fit.probe(fitted, rows)


ONE = np.zeros_like(ROWS.groups)
LISTS_ONE = {"groups": [0], "random_state": 0}
TABLE = {**LISTS_ONE, "classes": [0, 1], "bounds": (-6.0, 6.0), "dtypes": float}
PUBLIC = LogisticRegression().fit(ROWS.X_public, ROWS.y_public)


@pytest.mark.parametrize(
    "model",
    [
        PrivateThresholds(PUBLIC, **LISTS_ONE),
        PrivateThresholds(PUBLIC, group_at_prediction=True, **LISTS_ONE),
        SyntheticDataClassifier(gamma=0.1, epsilon=8.0, **TABLE),
        SyntheticDataClassifier(LogisticRegression(), gamma=0.1, epsilon=8.0, **TABLE),
        SyntheticDataClassifier(LagrangianClassifier(random_state=0), epsilon=8.0, **TABLE),
        FairPATEClassifier(constraints="equalized_odds", classes=[0, 1], **LISTS_ONE),
    ],
)
def test_one_listed_group_leaves_nothing_to_compare(model):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"compare groups, and got one group only: 0\. List two or more in 'groups'"):
        model.set_params(ledger=ledger).fit(ROWS.X, ROWS.y, sensitive_features=ONE)
    assert ledger.entries == ()


def test_a_bound_speaks_of_one_group_as_well():
    bound = RateBound("selection_rate", upper=0.9, of_class=1)
    model = PrivateThresholds(PUBLIC, epsilon=8.0, constraints=bound, **LISTS_ONE)
    assert len(model.fit(ROWS.X, ROWS.y, sensitive_features=ONE).predict(ROWS.X_test)) == len(ROWS.X_test)


def test_one_listed_class_is_predicted_from_synthetic_rows_and_refused_where_classes_are_compared():
    model = SyntheticDataClassifier(epsilon=8.0, **{**TABLE, "classes": [0], "groups": None})
    assert set(model.fit(ROWS.X, ROWS.y * 0).predict(ROWS.X_test)) == {0}
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"PFLDClassifier compares .* 'classes' lists one only: 0"):
        PFLDClassifier(classes=[0], groups=[0, 1], ledger=ledger).fit(
            ROWS.X, ROWS.y * 0, sensitive_features=ROWS.groups
        )
    assert ledger.entries == ()


def test_one_listed_group_has_no_gap(recwarn):
    model = FairPATEClassifier(gamma=0.1, epsilon=40.0, classes=[0, 1], **LISTS_ONE)
    model.fit(ROWS.X, ROWS.y, sensitive_features=ONE)
    assert model.student_gap_ == 0
    assert not [warning for warning in recwarn if "disparity" in str(warning.message)]
