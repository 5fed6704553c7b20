"""The same comparison where rows come in by another way: groups inside X, intersections, a cache, workers, a sweep."""

import atexit
import shutil
import tempfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from skfairdp.model_selection import frontier
from tests._tools.catalogue import ATTRIBUTE, RECORD, Fit, fair_pate, pate, pfguard, pfld, randomised, samples, sf_pate
from tests._tools.neighbours import everyday, lonely
from tests.replay.looking import compared, neighbours

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings are compared, not forbidden

CACHE = tempfile.mkdtemp()
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)


def with_group_inside(X, groups):
    return pd.DataFrame(X, columns=list("abcd")).assign(group=np.asarray(groups))


def fit_inside(estimator, rows):
    return estimator.fit(with_group_inside(rows.X, rows.groups), rows.y)


def answers_inside(fitted, rows):
    return {"predict": fitted.predict(with_group_inside(rows.X_test, rows.groups_test))}


def crossed(rows):
    """Two columns whose intersections are the groups; the second is public in shape only."""
    one = np.asarray(rows.groups)
    return pd.DataFrame({"one": one, "two": one * np.arange(len(one)) % 2})


FOUR = {"groups": [(0, 0), (0, 1), (1, 0), (1, 1)]}


def fit_crossed(estimator, rows):
    return estimator.fit(rows.X, rows.y, sensitive_features=crossed(rows))


def swept(estimator, rows):
    frame = frontier(
        estimator, rows.X, rows.y, X_public=rows.public, X_test=rows.X_test, y_test=rows.y_test,
        sensitive_features_test=rows.groups_test, epsilons=(4.0, 8.0), gammas=(0.05, None), verbose=1, random_state=0,
    )  # fmt: skip
    return SimpleNamespace(frame_=frame, attrs_=frame.attrs)  # a frame's own ``sample`` is no question to a generator


def with_public(estimator, rows):
    return estimator.fit(rows.X, rows.y, X_public=rows.public)


def predicted(fitted, rows):
    return {"predict": fitted.predict(rows.X_test)}


def table_of(sweep, rows):
    return {str(name): sweep.frame_[name].to_numpy() for name in sweep.frame_}


INSIDE = {"sensitive_columns": ["group"]}
ROWS, GROUPS = ("X", "y"), ("groups",)
WAYS = [
    Fit("PFLD, group inside X", pfld(**INSIDE), fit_inside, answers_inside, ATTRIBUTE, GROUPS),
    Fit("SF-PATE, group inside X", sf_pate(**INSIDE), fit_inside, answers_inside, ATTRIBUTE, GROUPS),
    Fit("randomised response, group inside X", randomised(**INSIDE), fit_inside, answers_inside, ATTRIBUTE, GROUPS),
    Fit("PFGuard, group inside X", pfguard(**INSIDE), fit_inside, samples, RECORD, (*ROWS, *GROUPS)),
    Fit("PFLD, intersections", pfld(**FOUR), fit_crossed, predicted, ATTRIBUTE, GROUPS),
    Fit("PFGuard, intersections", pfguard(**FOUR), fit_crossed, samples, RECORD, (*ROWS, *GROUPS)),
    Fit("PATE, cached teachers", pate(memory=CACHE), with_public, predicted, RECORD, ROWS),
    Fit("FairPATE, two workers", fair_pate(n_jobs=2), with_public, predicted, RECORD, ROWS),
    Fit("a sweep of FairPATE", fair_pate(), swept, table_of, RECORD, ROWS),
]


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("entry", WAYS, ids=lambda entry: entry.name)
def test_a_neighbour_looks_the_same_by_this_way(entry):
    """An extreme row and a whole other row take turns."""
    looks_the_same(entry, [neighbours(entry, everyday)[-(WAYS.index(entry) % 2)]])


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("entry", WAYS, ids=lambda entry: entry.name)
def test_neighbours_look_the_same_by_this_way(entry):
    looks_the_same(entry, [neighbours(entry, everyday)[i] for i in (0, -1)] + neighbours(entry, lonely)[-1:])


def looks_the_same(entry, pairs):
    found = []
    for pair in pairs:
        seen = compared(entry, pair)
        assert seen.original.error is None, f"{pair.name}: the fit on D failed: {seen.original.error}"
        assert seen.record.releases
        found += [f"{pair.name}: {text}" for text in seen.differences(times=pair.times)]
    assert not found
