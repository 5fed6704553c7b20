"""Ordinary mistakes and what people are told: the class, the argument, what is allowed, what was got, what to do.

Every row is refused before any budget is spent, and no message holds a private value.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skfairdp import (
    IDP3,
    DemographicParityFilter,
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    ParetoSearchCV,
    PATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivacyLedger,
    PublicData,
    RandomizedResponseClassifier,
    Schema,
    SFPATEClassifier,
)
from skfairdp.baselines import LagrangianClassifier, ParityLogisticRegression
from skfairdp.datasets import train_private_public_test_split
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.gradient import mlp
from skfairdp.metrics import demographic_disparity
from skfairdp.pate import VoteGate
from skfairdp.schema import Category, Number
from tests._tools.catalogue import make_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
]

#: A number that only private rows hold. Fits of 240 rows, of which no message may speak either.
CANARY = 31415.9265
SECRET = "canary-of-a-row"
R = make_rows()
R.X[7, 1] = CANARY
NAMES = ["age", "hours", "score", "gain"]
SEED = pd.Index(np.random.default_rng(0).permutation(len(R.X)))


def frame(X, names=NAMES):
    return pd.DataFrame(np.asarray(X), columns=names)


def with_cell(table, value, dtype=object):
    table = np.array(table, dtype=dtype)
    table[3, 1] = value
    return table


def every_third(values, value):
    values = np.array(values, dtype=object)
    values[::3] = value
    return values


def pate(ledger, **given):
    return PATEClassifier(**{"n_teachers": 5, "classes": [0, 1], "random_state": 0, "ledger": ledger, **given})


def fair(ledger, **given):
    return FairPATEClassifier(
        **{"n_teachers": 5, "classes": [0, 1], "gate": VoteGate(min_count=5), "ledger": ledger, **given}
    )


def sgd(ledger, **given):
    net = mlp((4,), max_epochs=1, batch_size=60)
    return FairDPSGDClassifier(**{"net": net, "classes": [0, 1], "ledger": ledger, **given})


def pfld(ledger, **given):
    net = mlp((4,), max_epochs=1, batch_size=60)
    return PFLDClassifier(**{"net": net, "groups": [0, 1], "dual_steps": 2, "ledger": ledger, **given})


def answers(ledger, **given):
    return RandomizedResponseClassifier(**{"epsilon": 2.0, "groups": [0, 1], "ledger": ledger, **given})


def sf_pate(ledger, **given):
    return SFPATEClassifier(**{"groups": [0, 1], "n_teachers": 5, "ledger": ledger, **given})


def searched(**options):
    """A search that came to an end, and was paid for."""
    search = ParetoSearchCV(pate(PrivacyLedger()), {"epsilon": [1.0]}, scoring="accuracy", **options)
    return search.fit(R.X, R.y, X_public=R.X_public, validation=R.validation)


def generator(ledger, **given):
    return PFGuardGenerator(**{"groups": [0, 1], "bounds": (-6.0, 6.0), "classes": [0, 1], "ledger": ledger, **given})


def fit_pate(ledger, X=R.X, y=R.y, public=R.X_public, **given):
    return pate(ledger, **given).fit(X, y, X_public=public)


def fit_fair(ledger, X=R.X, y=R.y, public=R.X_public, groups=R.groups_public, **given):
    return fair(ledger, **given).fit(X, y, X_public=public, sensitive_features_public=groups)


def fit_answers(ledger, X=R.X, y=R.y, groups=R.groups, **given):
    return answers(ledger, **given).fit(X, y, sensitive_features=groups)


def fit_pfld(ledger, X=R.X, y=R.y, groups=R.groups, **given):
    return pfld(ledger, **given).fit(X, y, sensitive_features=groups)


def fit_generator(ledger, X=R.X, y=R.y, groups=R.groups, **given):
    return generator(ledger, **given).fit(X, y, sensitive_features=groups)


@dataclass(frozen=True)
class Mistake:
    """What somebody did, and what the message must say: every pattern, each in whatever place."""

    name: str
    call: Callable[[Any], Any]
    says: tuple[str, ...]
    kind: type[Exception] | tuple[type[Exception], ...] = (ValueError, TypeError)


def mistake(name: str, call: Callable[[Any], Any], *says: str, **more: Any) -> Mistake:
    return Mistake(name, call, says, **more)


PUBLIC_ROWS = [
    mistake(
        "the private rows as public rows",
        lambda ledger: fit_pate(ledger, public=R.X),
        "X_public of PATEClassifier", "has rows of X", "Remove them",
    ),
    mistake(
        "some of the private rows as public rows",
        lambda ledger: fit_fair(ledger, public=PublicData(R.X[100:180], R.groups_public), groups=None),
        "X_public of FairPATEClassifier", "has rows of X", "Remove them",
    ),
    mistake(
        "a frame of private rows as public rows",
        lambda ledger: (lambda table: fit_pate(ledger, table, public=table))(frame(R.X)),
        "X_public of PATEClassifier", "has rows of X", "Remove them",
    ),
    mistake(
        "public rows with other names of columns",
        lambda ledger: fit_fair(ledger, frame(R.X), public=frame(R.X_public, list("wxyz"))),
        "X_public of FairPATEClassifier", "columns of X", "'age', 'hours'", "Got.*'w'", r"Pass X_public\[X.columns\]",
    ),
    mistake(
        "public rows with the columns in another order",
        lambda ledger: fit_fair(ledger, frame(R.X), public=frame(R.X_public)[NAMES[::-1]]),
        "X_public of FairPATEClassifier", "in the same order", "Got.*'gain', 'score'", r"Pass X_public\[X.columns\]",
    ),
    mistake(
        "public rows with the columns in another order, for the generator",
        lambda ledger: generator(ledger).fit(frame(R.X), R.y, X_public=frame(R.X_public)[NAMES[::-1]]),
        "X_public of PFGuardGenerator", "in the same order", "Got.*'gain', 'score'",
    ),
    mistake(
        "public rows with a column less",
        lambda ledger: fit_pate(ledger, public=R.X_public[:, :3]),
        "X_public of PATEClassifier", "the 4 columns of X", "Got 3 columns",
    ),
    mistake(
        "NaN in public rows",
        lambda ledger: fit_pate(ledger, public=with_cell(R.X_public, np.nan, float)),
        "X_public of PATEClassifier", "NaN", "Impute",
    ),
    mistake(
        "infinity in public rows of a private network",
        lambda ledger: sgd(ledger).fit(
            R.X, R.y, X_public=with_cell(R.X_public, np.inf, float), sensitive_features_public=R.groups_public
        ),
        "X_public of FairDPSGDClassifier", "infinity", "Impute",
    ),
    mistake(
        "no row in X_public",
        lambda ledger: fit_pate(ledger, public=R.X_public[:0]),
        "X_public of PATEClassifier", "no rows", "Give some",
    ),
    mistake(
        "strings in public rows",
        lambda ledger: fit_pate(ledger, public=with_cell(R.X_public, "tall")),
        "X_public of PATEClassifier", "not numbers", "encode",
    ),
    mistake(
        "public rows and groups as a tuple",
        lambda ledger: pate(ledger).fit(R.X, R.y, X_public=(R.X_public, R.groups_public)),
        "X_public of PATEClassifier", "got a tuple", r"Pass X_public=PublicData\(X, sensitive_features\)",
    ),
    mistake(
        "one column as X_public",
        lambda ledger: fit_pate(ledger, public=R.X_public[:, 0]),
        "X_public of PATEClassifier", "rows and columns", "Reshape",
    ),
    mistake(
        "no public rows",
        lambda ledger: fair(ledger).fit(R.X, R.y),
        "FairPATEClassifier needs the groups of the private rows", "sensitive_features",
    ),
    mistake(
        "the groups of the private rows for the public ones",
        lambda ledger: fair(ledger).fit(R.X, R.y, sensitive_features=R.groups, X_public=R.X_public),
        "FairPATEClassifier needs the groups of the public rows", "pass sensitive_features_public",
    ),
    mistake(
        "public groups of another length",
        lambda ledger: fit_fair(ledger, groups=R.groups_public[:-1]),
        "sensitive_features_public of FairPATEClassifier", "one entry per row",
    ),
]  # fmt: skip

WITH_GROUP = np.column_stack([R.X, R.groups])

ROWS = [
    mistake(
        "the protected group left among the features, by name",
        lambda ledger: fit_answers(
            ledger, frame(R.X).assign(sex=R.groups), groups=pd.Series(R.groups, name="sex")
        ),
        "X of RandomizedResponseClassifier", "'sex'", "drop it from X", "'sensitive_columns'",
    ),
    mistake(
        "the protected group left among the features, in place",
        lambda ledger: fit_pfld(ledger, WITH_GROUP, groups=WITH_GROUP[:, -1]),
        "X of PFLDClassifier holds sensitive_features", "drop it from X", "'sensitive_columns'",
    ),
    mistake(
        "a model that is not fitted, and no labels to fit it on",
        lambda ledger: IDP3(LogisticRegression()).fit(R.X, sensitive_features=R.groups),
        "IDP3 requires y", r"FrozenEstimator\(estimator\)",
    ),
    mistake(
        "public rows for a model that takes none",
        lambda ledger: IDP3(LogisticRegression()).fit(R.X, R.y, sensitive_features=R.groups, X_public=R.X_public),
        "IDP3 hands X_public on", "LogisticRegression takes none", "Leave X_public out",
    ),
    mistake(
        "a search of what asks for groups, on rows without any",
        lambda ledger: ParetoSearchCV(IDP3(pate(ledger), groups=[0, 1]), {"gamma": [0.1]}, scoring="accuracy").fit(
            R.X, R.y, X_public=R.X_public, validation=PublicData(R.X_public, y=R.y_public)
        ),
        "ParetoSearchCV cannot score IDP3 without the group", "'sensitive_columns'", "validation=",
    ),
    mistake(
        "groups for the fits of a search that scores without them",
        lambda ledger: GridSearchCV(IDP3(LogisticRegression()), {"gamma": [0.01, 0.5]}, cv=2).fit(
            R.X, R.y, sensitive_features=R.groups
        ),
        "IDP3 in a search needs the group", "'sensitive_columns'", "enable_metadata_routing=True",
    ),
    mistake(
        "a word where a model that is not ours reads numbers",
        lambda ledger: IDP3(LogisticRegression()).fit(with_cell(R.X, SECRET), R.y, sensitive_features=R.groups),
        "X of IDP3", "not numbers", "encode",
    ),
    mistake(
        "a word where a calibrated model reads numbers",
        lambda ledger: FairnessCalibrator(LogisticRegression().fit(R.X, R.y)).fit(
            with_cell(R.X, SECRET), sensitive_features=R.groups
        ),
        "X of FairnessCalibrator", "not numbers", "encode",
    ),
    mistake(
        "equalized odds from public rows without labels",
        lambda ledger: FairnessCalibrator(pate(ledger), constraints="equalized_odds").fit(
            R.X, R.y, sensitive_features=R.groups, X_public=PublicData(R.X_public, R.groups_public)
        ),
        "'constraints' parameter of FairnessCalibrator", "true label of every public row",
        r"X_public=PublicData\(X, groups, y\)", "PrivateThresholds",
    ),
    mistake(
        "equalized odds from a gate that is not told whose label comes back",
        lambda ledger: IDP3(constraints="equalized_odds", min_count=5000, groups=[0, 1]).fit(None, [0, 1]).update(
            R.y, sensitive_features=R.groups
        ),
        "'tickets' of IDP3.update", "one name per row", "index of the table",
    ),
    mistake(
        "a word where a baseline reads numbers",
        lambda ledger: ParityLogisticRegression().fit(with_cell(R.X, SECRET), R.y, sensitive_features=R.groups),
        "X of ParityLogisticRegression", "not numbers", "encode",
    ),
    mistake(
        "a word where a fair network reads numbers",
        lambda ledger: LagrangianClassifier().fit(with_cell(R.X, SECRET), R.y, sensitive_features=R.groups),
        "X of LagrangianClassifier", "not numbers", "encode",
    ),
    mistake(
        "y of another length",
        lambda ledger: fit_pate(ledger, y=R.y[:-1]),
        "y of PATEClassifier", "one label per row of X", r"Compare len\(y\) with len\(X\)",
    ),
    mistake(
        "y of another length in a search",
        lambda ledger: ParetoSearchCV(pate(ledger), {"voting__threshold": [0.6, 0.7]}, scoring="accuracy").fit(
            R.X, R.y[:-1], X_public=R.X_public
        ),
        "y.*of ParetoSearchCV", "one entry per row of X", "Compare len",
    ),
    mistake(
        "X and y swapped",
        lambda ledger: fit_pate(ledger, R.y, R.X),
        "X of PATEClassifier must have rows and columns", "Reshape",
    ),
    mistake("no y", lambda ledger: fit_pate(ledger, y=None), "PATEClassifier requires y"),
    mistake(
        "numbers and strings in one y",
        lambda ledger: fit_pate(ledger, y=[1, "a"] * 120, classes=None),
        "y of PATEClassifier", "labels of one kind", "strings or ints",
    ),
    mistake(
        "numbers and strings in one y, where y is public",
        lambda ledger: fit_answers(ledger, y=[1, "a"] * 120),
        "y of RandomizedResponseClassifier", "labels of one kind",
    ),
    mistake(
        "a label 1 that is declared as '1'",
        lambda ledger: fit_pate(ledger, y=[1, "a"] * 120, classes=["1", "a"]),
        "y of PATEClassifier", "not in 'classes'", "Add it",
    ),
    mistake(
        "measurements as labels",
        lambda ledger: fit_pate(ledger, y=R.X[:, 0], classes=None),
        "y of PATEClassifier", "class labels",
    ),
    mistake(
        "integers past all bounds as labels",
        lambda ledger: fit_pate(ledger, y=[10**400, 1] * 120, classes=None),
        "y of PATEClassifier", "class labels",
    ),
    mistake(
        "arrays as labels",
        lambda ledger: fit_pate(ledger, y=[np.array([1, 2])] * 240, classes=None),
        "y of PATEClassifier", "one column of labels",
    ),
    mistake(
        "integers past all bounds in X",
        lambda ledger: fit_answers(ledger, with_cell(R.X, 10**400)),
        "X of RandomizedResponseClassifier", "too large", "Impute",
    ),
    mistake(
        "classes that do not cover y",
        lambda ledger: fit_pate(ledger, classes=[0, 2]),
        "y of PATEClassifier", "not in 'classes'", "Add it",
    ),
    mistake(
        "arrays as classes",
        lambda ledger: fit_pate(ledger, classes=[np.array([1, 2]), np.array([2, 3])]),
        "'classes' parameter of PATEClassifier", "list of labels",
    ),
    mistake(
        "missing groups",
        lambda ledger: fit_answers(ledger, groups=every_third(R.groups, None)),
        "sensitive_features of RandomizedResponseClassifier", "missing", "fillna",
    ),
    mistake(
        "missing public groups",
        lambda ledger: fit_fair(ledger, groups=every_third(R.groups_public, np.nan)),
        "sensitive_features_public of FairPATEClassifier", "missing", "fillna",
    ),
    mistake(
        "one group only",
        lambda ledger: answers(ledger, groups=None).fit(R.X, R.y, sensitive_features=R.groups * 0),
        "RandomizedResponseClassifier found only one group", "'groups'",
    ),
    mistake(
        "groups that do not cover the rows",
        lambda ledger: answers(ledger, groups=["f", "m"]).fit(R.X, R.y, sensitive_features=R.groups),
        "sensitive_features of RandomizedResponseClassifier", "not in 'groups'", "Add it",
    ),
    mistake(
        "no groups",
        lambda ledger: answers(ledger).fit(R.X, R.y),
        "RandomizedResponseClassifier needs the groups", "pass sensitive_features", "'sensitive_columns'",
    ),
    mistake(
        "strings in X",
        lambda ledger: fit_pate(ledger, with_cell(R.X, "tall")),
        "X of PATEClassifier", "not numbers", "encode",
    ),
    mistake(
        "dates in X",
        lambda ledger: fit_pate(ledger, frame(R.X).assign(age=pd.Timestamp("2020-01-01")), public=frame(R.X_public)),
        "X of PATEClassifier", "not numbers", "encode",
    ),
    mistake(
        "nothing but dates in X",
        lambda ledger: fit_pate(ledger, np.full(R.X.shape, np.datetime64("2020-01-01T12:00:00.000000001"))),
        "X of PATEClassifier", "not numbers", "encode",
    ),
    mistake(
        "public data as X",
        lambda ledger: fit_pate(ledger, PublicData(R.X)),
        "X of PATEClassifier", "got PublicData", "X_public",
    ),
    mistake(
        "a sparse table too large for memory",
        lambda ledger: fit_pate(ledger, scipy.sparse.csr_matrix((len(R.X), 10**8))),
        "X of PATEClassifier", "more than 2 GiB", "sparse_output=False",
    ),
    mistake(
        "a column of groups that is not there",
        lambda ledger: answers(ledger, sensitive_columns="sex").fit(frame(R.X), R.y),
        "'sensitive_columns' of RandomizedResponseClassifier", "'sex'",
    ),
]  # fmt: skip

#: The mask of a masked array says that an entry is missing.
MASKED = [
    mistake(
        "masked entries of X",
        lambda ledger: fit_pate(ledger, np.ma.masked_greater(R.X, 2)),
        "X of PATEClassifier", "masked", "Impute",
    ),
    mistake(
        "masked labels",
        lambda ledger: fit_pate(ledger, y=np.ma.array(R.y, mask=R.y == 1)),
        "y of PATEClassifier", "masked",
    ),
    mistake(
        "masked groups",
        lambda ledger: fit_pfld(ledger, groups=np.ma.array(R.groups, mask=R.y == 1)),
        "sensitive_features of PFLDClassifier", "masked",
    ),
    mistake(
        "masked predictions in a metric",
        lambda ledger: demographic_disparity(None, np.ma.array(R.y, mask=R.y == 1), sensitive_features=R.groups),
        "y_pred of demographic_disparity", "masked",
    ),
]  # fmt: skip

SHUFFLED = pd.Series(R.y).iloc[SEED]
OTHER_GROUPS = pd.Series(R.groups).iloc[SEED]
DO = r"matched by position", r"\.loc\[", r"\.to_numpy\(\)"

#: Two pandas objects say which of their rows belong together.
INDEXES = [
    mistake("y", lambda ledger: fit_pate(ledger, frame(R.X), SHUFFLED, frame(R.X_public)), "y of PATEClassifier", *DO),
    mistake(
        "groups",
        lambda ledger: fit_answers(ledger, frame(R.X), groups=OTHER_GROUPS),
        "sensitive_features of RandomizedResponseClassifier", *DO,
    ),
    mistake(
        "public groups",
        lambda ledger: fit_fair(ledger, public=frame(R.X_public), groups=pd.Series(R.groups_public)[::-1]),
        "sensitive_features_public of FairPATEClassifier", *DO,
    ),
    mistake(
        "the groups inside of PublicData",
        lambda ledger: fit_fair(
            ledger, public=PublicData(frame(R.X_public), pd.Series(R.groups_public)[::-1]), groups=None
        ),
        "sensitive_features_public of FairPATEClassifier", *DO,
    ),
    mistake(
        "a generator's labels",
        lambda ledger: fit_generator(ledger, frame(R.X), SHUFFLED),
        "y of PFGuardGenerator", *DO,
    ),
    mistake(
        "a search's groups",
        lambda ledger: ParetoSearchCV(fair(ledger), {"gamma": [0.1, 0.2]}).fit(
            frame(R.X), pd.Series(R.y), sensitive_features=OTHER_GROUPS, X_public=R.public
        ),
        "sensitive_features of ParetoSearchCV", *DO,
    ),
    mistake(
        "a baseline's groups",
        lambda ledger: ParityLogisticRegression().fit(frame(R.X), R.y, sensitive_features=OTHER_GROUPS),
        "sensitive_features of ParityLogisticRegression", *DO,
    ),
    mistake(
        "a fair network's labels",
        lambda ledger: LagrangianClassifier().fit(frame(R.X), SHUFFLED, sensitive_features=R.groups),
        "y of LagrangianClassifier", *DO,
    ),
    mistake(
        "the groups of a stream of answers",
        lambda ledger: IDP3(LogisticRegression()).fit(frame(R.X), R.y, sensitive_features=OTHER_GROUPS),
        "sensitive_features of IDP3", *DO,
    ),
    mistake(
        "the groups of public rows to calibrate on",
        lambda ledger: FairnessCalibrator(LogisticRegression().fit(R.X, R.y)).fit(
            frame(R.X), sensitive_features=OTHER_GROUPS
        ),
        "sensitive_features of FairnessCalibrator", *DO,
    ),
    mistake(
        "the groups of a metric",
        lambda ledger: demographic_disparity(pd.Series(R.y), pd.Series(R.y), sensitive_features=OTHER_GROUPS),
        "sensitive_features of demographic_disparity", *DO,
    ),
    mistake(
        "the labels of a split",
        lambda ledger: train_private_public_test_split(frame(R.X), SHUFFLED, R.groups),
        "y of train_private_public_test_split", *DO,
    ),
]  # fmt: skip

SETTINGS = [
    mistake(
        "a budget without its name",
        lambda ledger: PATEClassifier(1.0),
        "PATEClassifier takes its parameters by name", r"PATEClassifier\(epsilon=\.\.\.\)", "Got 1 argument",
        kind=TypeError,
    ),
    mistake(
        "rows in the constructor",
        lambda ledger: FairPATEClassifier(R.X, R.y),
        "FairPATEClassifier takes its parameters by name", "Got 2 argument", "Rows belong in fit", kind=TypeError,
    ),
    mistake(
        "a bound beside the estimator",
        lambda ledger: IDP3(LogisticRegression(), 0.05),
        "IDP3 takes its parameters by name", r"IDP3\(gamma=\.\.\.\)", "Got 1 argument", kind=TypeError,
    ),
    mistake(
        "a bound on a difference of rates that is no bound",
        lambda ledger: fit_fair(ledger, gamma=5),
        "'gamma' parameter of FairPATEClassifier", r"in the range \[0, 1\]|\[0.0, 1.0\]", "Got 5",
    ),
    mistake(
        "the same for a stream of answers",
        lambda ledger: IDP3(LogisticRegression(), gamma=5).fit(R.X, R.y, sensitive_features=R.groups),
        "'gamma' parameter of IDP3", r"\[0, 1\]|\[0.0, 1.0\]", "Got 5",
    ),
    mistake(
        "the same for a calibrated model",
        lambda ledger: FairnessCalibrator(LogisticRegression().fit(R.X, R.y), gamma=5).fit(
            R.X, sensitive_features=R.groups
        ),
        "'gamma' parameter of FairnessCalibrator", r"\[0, 1\]|\[0.0, 1.0\]", "Got 5",
    ),
    mistake(
        "the same for the rows kept to train on",
        lambda ledger: DemographicParityFilter(gamma=5).fit_resample(R.X, R.y, sensitive_features=R.groups),
        "'gamma' parameter of DemographicParityFilter", r"\[0, 1\]|\[0.0, 1.0\]", "Got 5",
    ),
    mistake(
        "more teachers than rows",
        lambda ledger: fit_pate(ledger, n_teachers=1000),
        "'n_teachers' parameter of PATEClassifier", "more teachers than rows", "at most one teacher per row",
    ),
    mistake(
        "a seed and a ledger",
        lambda ledger: fit_pate(ledger, noise_seed=0),
        "PATEClassifier got both 'noise_seed' and 'ledger'", "Leave one of them out",
    ),
    mistake(
        "an unknown constraint",
        lambda ledger: fit_pfld(ledger, constraints="equal_odds"),
        "'constraints' parameter of PFLDClassifier", "'equalized_odds'", "Got 'equal_odds'",
    ),
    mistake(
        "an unknown constraint of SF-PATE",
        lambda ledger: sf_pate(ledger, constraints="parity").fit(R.X, R.y, sensitive_features=R.groups),
        "'constraints' parameter of SFPATEClassifier", "'demographic_parity'", "Got 'parity'",
    ),
    mistake(
        "a classifier as a net",
        lambda ledger: sgd(ledger, net=LogisticRegression(), lam=0.0).fit(R.X, R.y),
        "'net' parameter of FairDPSGDClassifier", "'mlp'", "Got .*LogisticRegression",
    ),
    mistake(
        "a net that does not exist",
        lambda ledger: sgd(ledger, net="vgg", lam=0.0).fit(R.X, R.y),
        "'net' parameter of FairDPSGDClassifier", "'cnn'", "Got 'vgg'",
    ),
    mistake(
        "an unknown way to vote",
        lambda ledger: fit_pate(ledger, voting="hard"),
        "'voting' parameter of PATEClassifier", "'soft'", "Got 'hard'",
    ),
    mistake(
        "a budget as a string",
        lambda ledger: fit_pate(ledger, epsilon="1"),
        "'epsilon' parameter of PATEClassifier", "float in the range", "Got '1'",
    ),
    mistake(
        "a path as a ledger",
        lambda ledger: fit_pate("ledger.jsonl"),
        "'ledger' parameter of PATEClassifier", "Got 'ledger.jsonl'",
    ),
    mistake(
        "a typing error in a grid",
        lambda ledger: ParetoSearchCV(pate(ledger), {"treshold": [0.6]}, scoring="accuracy").fit(
            R.X, R.y, X_public=R.X_public
        ),
        "'treshold'", "PATEClassifier", "Valid parameters are",
    ),
]  # fmt: skip

USE = [
    mistake("a prediction before the fit", lambda ledger: pate(ledger).predict(R.X), "PATEClassifier", "Call 'fit'",
            kind=NotFittedError),
    mistake("a sample before the fit", lambda ledger: generator(ledger).sample(3), "PFGuardGenerator", "Call 'fit'",
            kind=NotFittedError),
    mistake(
        "calibrating what is not fitted",
        lambda ledger: FairnessCalibrator(LogisticRegression()).fit(R.X, sensitive_features=R.groups),
        "FairnessCalibrator", "LogisticRegression is not", "Fit it first", kind=NotFittedError,
    ),
    mistake(
        "a search before the fit", lambda ledger: ParetoSearchCV(pate(ledger), {"epsilon": [1.0]}).predict(R.X),
        "ParetoSearchCV", "Call 'fit'", kind=NotFittedError,
    ),
    mistake(
        "a search whose bounds nobody meets",
        lambda ledger: searched(bounds={"accuracy": ">= 1.5"}).predict(R.X),
        "ParetoSearchCV has no best estimator", r"bounds \{'accuracy': '>= 1.5'\}", "Loosen them", "pareto_table_",
        kind=NotFittedError,
    ),
    mistake(
        "a search without a refit", lambda ledger: searched(refit=False).predict(R.X),
        "ParetoSearchCV has no best estimator", "'refit' is False", "refit=True", kind=NotFittedError,
    ),
    mistake(
        "a search over a generator",
        lambda ledger: ParetoSearchCV(generator(ledger), {"epsilon": [1.0]}).fit(R.X, R.y, sensitive_features=R.groups),
        "ParetoSearchCV scores predictions, and PFGuardGenerator makes none", r"SyntheticDataClassifier\(learner",
    ),
]  # fmt: skip

COLUMNS = dict.fromkeys(NAMES, Number(-4.0, 4.0))
SCHEMA = Schema(
    {**COLUMNS, "sex": Category([0, 1]), "label": Category(["no", "yes"])}, label="label", groups="sex"
)  # fmt: skip
TABLE = frame(R.X).assign(sex=R.groups, label=np.array(["no", "yes"])[R.y])


def by_schema():
    """A model of a raw table, which a dict or a Series of one row is handed to."""
    return PATEClassifier(schema=SCHEMA, n_teachers=5, random_state=0).fit(TABLE, X_public=frame(R.X_public))


RAW_TABLES = [
    mistake(
        "texts and dates without a schema",
        lambda ledger: fit_pate(ledger, frame(R.X).assign(job=SECRET), public=frame(R.X_public)),
        "X of PATEClassifier", "not numbers", r"set schema=Schema\(...\)",
    ),
    mistake(
        "an amount to predict",
        lambda ledger: fit_pate(ledger, y=R.X[:, 1], classes=None),
        "y of PATEClassifier", "Amounts are not classes", "cut them",
    ),
    mistake(
        "a file where a schema belongs",
        lambda ledger: pate(ledger, schema="schema.yaml", classes=None).fit(TABLE),
        "'schema' parameter of PATEClassifier", "must be a Schema", "Got 'schema.yaml'", "Schema.load",
    ),
    mistake(
        "the skeleton of a schema where a schema belongs",
        lambda ledger: IDP3(schema=Schema.template(TABLE)).fit(TABLE),
        "'schema' parameter of IDP3", "must be a Schema", "Schema.from_dict",
    ),
    mistake(
        "a missing label where labels are public",
        lambda ledger: PFLDClassifier(schema=SCHEMA, ledger=ledger).fit(
            TABLE.assign(label=[None, *TABLE["label"][1:]])
        ),
        "X of PFLDClassifier", r"'label'\]", "label or group that is missing", "drop its row, or fillna",
    ),
    mistake(
        "a missing group where groups are public",
        lambda ledger: IDP3(by_schema(), schema=SCHEMA).fit(TABLE.assign(sex=[None, *TABLE["sex"][1:]])),
        "sensitive_features of IDP3", "does not list", "label or group that is missing", "fillna",
    ),
    mistake(
        "one row in a dict",
        lambda ledger: by_schema().predict(TABLE.iloc[0].to_dict()),
        "X of PATEClassifier", "Got dict", r"pd.DataFrame\(\[row\]\)",
    ),
    mistake(
        "one row in a Series",
        lambda ledger: by_schema().predict(TABLE.iloc[0]),
        "X of PATEClassifier", "Got Series", r"pd.DataFrame\(\[row\]\)",
    ),
    mistake(
        "a dict where a schema reads a table",
        lambda ledger: SCHEMA.read(TABLE.iloc[0].to_dict()),
        "Schema reads a DataFrame", "Got dict", r"pd.DataFrame\(\[row\]\)",
    ),
    mistake(
        "a constraint where its student belongs",
        lambda ledger: fit_fair(ledger, student="equalized_odds"),
        "'student' parameter of FairPATEClassifier", r"such as ConstrainedStudent\('equalized_odds'\)",
    ),
    mistake(
        "a constraint where its loss belongs",
        lambda ledger: sgd(ledger, parity="equalized_odds").fit(R.X, R.y, sensitive_features=R.groups),
        "'parity' parameter of FairDPSGDClassifier", "constraints='equalized_odds'",
    ),
]  # fmt: skip

MISTAKES = [*PUBLIC_ROWS, *ROWS, *MASKED, *INDEXES, *SETTINGS, *USE, *RAW_TABLES]


@pytest.mark.parametrize("made", MISTAKES, ids=lambda made: made.name)
def test_a_mistake_is_named_refused_and_costs_nothing(made):
    ledger = PrivacyLedger(epsilon=10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(made.kind) as caught:
            made.call(ledger)
    said = str(caught.value)
    for pattern in made.says:
        assert re.search(pattern, said, re.DOTALL), (pattern, said)
    assert not re.search(r"31415|canary|\b239\b", said), said
    assert ledger.entries == ()


def test_labels_that_are_spelled_otherwise_are_told_where_they_are_scored():
    model = by_schema()
    with pytest.warns(UserWarning, match=rf"{len(TABLE)} of the {len(TABLE)} labels.*schema.misfits"):
        assert model.score(TABLE.assign(label="Yes")) == 0.0
    X, y = np.arange(40.0).reshape(-1, 1), np.repeat(["no", "yes"], 20)
    without = PATEClassifier(classes=["no", "yes"], epsilon=8.0, n_teachers=2, random_state=0)
    without.fit(X, y, X_public=X[::3] + 0.5)
    with pytest.warns(UserWarning, match=r"40 of the 40 labels.*spelling of others with \['no', 'yes'\]"):
        assert without.score(X, np.char.upper(y)) == 0.0
    with pytest.warns(UserWarning, match=rf"2 of the {len(TABLE)} labels .* Leave out rows without a label"):
        assert 0.0 < model.score(TABLE.assign(label=[*TABLE["label"][:-2], "Yes", None])) <= 1.0


@pytest.mark.parametrize("kind", [FairDPSGDClassifier, PFLDClassifier, RandomizedResponseClassifier])
def test_a_label_that_is_left_among_the_features_is_told(kind):
    X, y = frame(R.X).assign(label=R.y), pd.Series(R.y, name="label")
    for table in (X, X.drop(columns="label")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind(classes=[0, 1], groups=[0, 1], random_state=0).fit(table, y, sensitive_features=R.groups)
        told = any("holds the label y, 'label', as a feature" in str(one.message) for one in caught)
        assert told == ("label" in table)


def test_thirty_mistakes_are_listed_once_each():
    names = [made.name for made in MISTAKES]
    assert len(names) >= 30 and len(set(names)) == len(names)


def test_one_group_is_said_where_the_constraint_then_says_nothing():
    for cls, quick in ((ParityLogisticRegression, {}), (LagrangianClassifier, {"net": mlp((), max_epochs=1)})):
        with pytest.warns(FairnessWarning, match=f"{cls.__name__} was given one group only"):
            cls(**quick).fit(R.X, R.y, sensitive_features=R.groups * 0)


def test_subjects_that_are_missing_join_nobody():
    subject = np.where(np.arange(240) % 3 == 0, np.nan, np.arange(240) // 4)
    with pytest.raises(ValueError, match="subject of train_private_public_test_split contains missing values"):
        train_private_public_test_split(R.X, R.y, R.groups, subject=subject)


# ---- guarantees that are proven and worth next to nothing ---------------------------------------------------
def said_by(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught if issubclass(warning.category, PrivacyLeakWarning)]


@pytest.mark.parametrize(("epsilon", "warns"), [(1.0, False), (19.9, False), (20.0, True), (1e6, True)])
def test_an_epsilon_that_protects_nobody_is_said_once(epsilon, warns):
    """At 20 odds may grow by 4.9e8: from one in a hundred million to nearly five to one."""
    said = said_by(lambda: fit_pate(PrivacyLedger(), epsilon=epsilon))
    assert [("protects hardly anybody" in text, "PATEClassifier" in text) for text in said] == [(True, True)] * warns


@pytest.mark.parametrize(("delta", "warns"), [(1e-5, False), (1 / 240, False), (1 / 239, True), (0.5, True)])
def test_a_delta_above_one_over_the_rows_is_said_once(delta, warns):
    """Publishing one of n rows at random is (0, 1/n)-differentially private."""
    for fit, name in ((fit_pate, "PATEClassifier"), (fit_pfld, "PFLDClassifier"), (fit_generator, "PFGuardGenerator")):
        said = [text for text in said_by(lambda fit=fit: fit(PrivacyLedger(), delta=delta)) if "above 1 /" in text]
        assert len(said) == warns and all(name in text and "1 / 240" in text for text in said)


@pytest.mark.slow
def test_a_delta_is_compared_with_the_declared_number_of_rows_where_the_true_one_is_private():
    (said,) = said_by(lambda: sgd(PrivacyLedger(), lam=0.0, public_n_rows=1000, delta=0.002).fit(R.X, R.y))
    assert "1 / 1000" in said
    assert not said_by(lambda: sgd(PrivacyLedger(), lam=0.0, public_n_rows=100, delta=0.005).fit(R.X, R.y))


# ---- what is no mistake --------------------------------------------------------------------------------------
def test_an_index_beside_plain_arrays_is_no_mistake():
    """Positions match rows; only two indexes can contradict each other."""
    ledger = PrivacyLedger()
    X, public = frame(R.X).set_axis(SEED), frame(R.X_public)
    fit_pate(ledger, X, R.y, public)
    fit_pate(ledger, X, pd.Series(R.y, index=SEED), public)
    fit_pate(ledger, R.X, SHUFFLED)
    assert demographic_disparity(R.y, SHUFFLED.to_numpy(), sensitive_features=pd.Series(R.groups)) >= 0
    assert len(ledger.entries) == 3


def test_matching_by_position_would_have_hidden_a_gap():
    """What the refusal is for: predictions without a gap, whose groups come in another order, seem to have one."""
    groups = pd.Series([0, 1] * 50)
    predicted = groups.map({0: 1, 1: 0}).sort_values()
    assert demographic_disparity(None, predicted, sensitive_features=groups[predicted.index]) == 1.0
    assert demographic_disparity(None, predicted.to_numpy(), sensitive_features=groups) < 0.1
    with pytest.raises(ValueError, match="another index"):
        demographic_disparity(None, predicted, sensitive_features=groups)


def test_a_mask_without_a_masked_entry_is_no_mistake():
    ledger = PrivacyLedger()
    masked = fit_pate(ledger, np.ma.array(R.X, mask=False))
    assert len(ledger.entries) == 1 and masked.n_features_in_ == R.X.shape[1]
    seeded = [fit_pate(None, X, noise_seed=0).predict(R.X_test) for X in (R.X, np.ma.array(R.X, mask=False))]
    np.testing.assert_array_equal(*seeded)


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix])
def test_sparse_rows_are_written_out(make):
    seeded = {"noise_seed": 0, "random_state": 0}
    for cls, fit in (
        (PATEClassifier, lambda model, X, public: model.fit(X, R.y, X_public=public)),
        (RandomizedResponseClassifier, lambda model, X, public: model.fit(X, R.y, sensitive_features=R.groups)),
    ):
        domain = {"classes": [0, 1], "n_teachers": 5} if cls is PATEClassifier else {"groups": [0, 1]}
        dense = fit(cls(**domain, **seeded), R.X, R.X_public).predict(R.X_test)
        sparse = fit(cls(**domain, **seeded), make(R.X), make(R.X_public)).predict(make(R.X_test))
        np.testing.assert_array_equal(sparse, dense)


def test_a_generator_reads_sparse_rows():
    sample = PFGuardGenerator(groups=[0, 1], bounds=(-6.0, 6.0), classes=[0, 1], noise_seed=0, random_state=0)
    dense = sample.fit(R.X, R.y, sensitive_features=R.groups).sample(20, random_state=0)
    sparse = sample.fit(scipy.sparse.csr_matrix(R.X), R.y, sensitive_features=R.groups).sample(20, random_state=0)
    np.testing.assert_array_equal(np.asarray(sparse), np.asarray(dense))
