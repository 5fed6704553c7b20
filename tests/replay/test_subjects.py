"""The same comparison where all rows of one subject are others, more, fewer or none, or stand in other places."""

import functools
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    KeyedRows,
    ParetoSearchCV,
    PrivateSearchCV,
    SFPATEClassifier,
    SyntheticDataClassifier,
    SyntheticRows,
)
from skfairdp.ensemble import MLPTeachers
from skfairdp.generative import MarginalsBackend
from skfairdp.lagrangian import GroupModel, NoisyGradients
from skfairdp.papers import DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend
from skfairdp.schema import Category, Number, Schema
from tests._tools.catalogue import (
    CLEARLY,
    SMALL,
    Fit,
    Flipped,
    Rows,
    SchemaRelease,
    amounts,
    answers,
    answers_with_groups,
    barycenter,
    clipping,
    dpsgd,
    fair_pate,
    fragile,
    guessing_barycenter,
    make_rows,
    pate,
    pfguard,
    pfld,
    randomised,
    samples,
    sf_pate,
    thresholds,
    without_answers,
)
from tests._tools.neighbours import HUGE, Pair
from tests.replay.looking import compared

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings are compared, not forbidden

SUBJECT, NULL_SUBJECT = "replace all rows of one subject", "replace all rows of one subject by none"
OF_A_SUBJECT = "replace the sensitive attribute of one subject"
N, CHANGED = 90, 17


@dataclass(frozen=True)
class Visits(Rows):
    """Rows of subjects, who are a list that anyone may see; some of them have no rows."""

    ids: Any = None


def listed(ids):
    return pd.Series(pd.Categorical(ids, categories=np.arange(N)))


@functools.cache
def visits():
    rows = make_rows()
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.concatenate([np.arange(N), rng.integers(0, N, len(rows.y) - N)]))
    return Visits(**vars(rows), ids=listed(ids))


def with_other_rows(n):
    """The table whose changed subject has so many rows, anywhere among those of others, which keep their order."""
    rows, rng = visits(), np.random.default_rng(n)
    kept = np.flatnonzero(rows.ids != CHANGED)
    at = np.argsort(np.r_[np.linspace(0, 1, len(kept)), rng.random(n)], kind="stable")
    new = {
        "X": rng.permuted(np.tile([*HUGE, 40.0, -7.0, 0.0, 3.0], (n, 1)), axis=1)[:, :4],
        "y": rng.integers(0, 2, n),
        "groups": rng.integers(0, 2, n),
        "ids": np.full(n, CHANGED),
    }
    mixed = {name: np.concatenate([np.asarray(getattr(rows, name))[kept], more])[at] for name, more in new.items()}
    return rows.but(**{**mixed, "ids": listed(mixed["ids"])})


PAIRS = [Pair(name, visits(), with_other_rows(n)) for name, n in {"others": 3, "more": 60, "one": 1, "none": 0}.items()]


def by_ids(estimator, rows):
    return estimator.fit(rows.X, rows.y, X_public=rows.X_public, subject=rows.ids)


def by_ids_and_groups(estimator, rows):
    return estimator.fit(rows.X, rows.y, sensitive_features=rows.groups, X_public=rows.X_public, subject=rows.ids)


def by_ids_alone(estimator, rows):
    return estimator.fit(rows.X, rows.y, subject=rows.ids)


def by_name(estimator, rows):
    table = pd.DataFrame(rows.X, columns=list("abcd")).assign(patient_id=rows.ids)
    public = pd.DataFrame(rows.X_public, columns=list("abcd"))
    given = {"X_public": public, "sensitive_features_public": rows.groups_public}
    return estimator.fit(table, rows.y, subject="patient_id", **given)


def without_public_rows(estimator, rows):
    return estimator.fit(rows.X, rows.y, sensitive_features=rows.groups, subject=rows.ids)


def chunks_of(rows, size=50):
    """The rows in chunks, whose column of ids lists all subjects."""
    table = pd.DataFrame(rows.X, columns=list("abcd")).assign(y=rows.y, g=rows.groups, patient_id=rows.ids)
    return [table[start : start + size] for start in range(0, len(table), size)]


def by_chunks(estimator, rows):
    public = pd.DataFrame(rows.X_public, columns=list("abcd"))
    return estimator.fit(lambda: chunks_of(rows), X_public=public, subject="patient_id")


def by_key(estimator, rows):
    public = pd.DataFrame(rows.X_public, columns=list("abcd"))
    given = {"X_public": public, "sensitive_features_public": rows.groups_public}
    return estimator.fit(KeyedRows(lambda: chunks_of(rows, 33), key="patient_id"), subject="patient_id", **given)


def by_files(estimator, rows):
    """Files of texts, as Parquet keeps no list of numbers."""
    public = pd.DataFrame(rows.X_public, columns=list("abcd"))
    return by_files_alone(estimator, rows, X_public=public, sensitive_features_public=rows.groups_public)


def by_files_alone(estimator, rows, **given):
    with tempfile.TemporaryDirectory() as folder:
        for j, chunk in enumerate(chunks_of(rows, 80)):
            ids = chunk["patient_id"].cat.rename_categories([f"p{one}" for one in range(N)])
            chunk.assign(patient_id=ids).to_parquet(f"{folder}/{j}.parquet")
        return estimator.fit(folder, subject="patient_id", **given)


def by_chunks_alone(estimator, rows):
    return estimator.fit(lambda: chunks_of(rows), subject="patient_id")


def named_answers(fitted, rows):
    return {"predict": fitted.predict(pd.DataFrame(rows.X_test, columns=list("abcd")))}


def with_another_group(places):
    """All is public but the group of the changed subject, in some of its rows by their order."""
    rows = visits()
    own, groups = np.flatnonzero(rows.ids == CHANGED), rows.groups.copy()
    groups[own[places]] = 1 - groups[own[0]]
    return rows.but(groups=groups)


def of_one_group(places):
    """The same with all rows of the subject in the group of the first of them."""
    rows = with_another_group(places)
    own = np.flatnonzero(rows.ids == CHANGED)
    return rows.but(groups=np.where(np.isin(np.arange(len(rows.y)), own), visits().groups[own[0]], rows.groups))


GROUP_PAIRS = [
    Pair("group", visits(), with_another_group(slice(None))),
    Pair("first row", visits(), with_another_group(slice(1))),
]

AUTO: dict[str, Any] = {"n_teachers": "auto"}
IN_CHUNKS: dict[str, Any] = {
    "classes": None,
    "schema": Schema({**dict.fromkeys("abcd", Number(-6, 6)), "y": Category([0, 1]), "g": Category([0, 1])}, label="y",
                     groups="g"),
}  # fmt: skip
ONLY_IN_CHUNKS: dict[str, Any] = {
    "classes": None,
    "groups": None,
    "schema": Schema(
        {**dict.fromkeys("abcd", Number(-60, 60)), "y": Category([0, 1]), "g": Category([0, 1])}, label="y", groups="g"
    ),
}
OWN = {"groups": [0, 1], "public_data": SyntheticRows(n_rows=80)}


def synthetic(**more):
    return functools.partial(
        SyntheticDataClassifier, None if {*more} - {"epsilon"} else LogisticRegression(), bounds=(-6.0, 6.0),
        dtypes=float, classes=[0, 1], groups=[0, 1], random_state=0, **{"epsilon": 8.0, **more},
    )  # fmt: skip


def pareto(make, grid):
    return lambda **given: ParetoSearchCV(make(**given), grid, cv=2, score_epsilon=4.0, random_state=0)


def private(make, grid):
    return lambda **given: PrivateSearchCV(make(**given), grid, score_epsilon=4.0, random_state=0)


class SchemaOfVisits(SchemaRelease):
    """Of a table in which a column says whose a row is."""

    def beside(self, rows):
        return {"patient_id": rows.ids}


def described(fitted, rows):
    return {"schema": np.frombuffer(str(fitted.schema_.to_dict()["columns"]).encode(), dtype=np.uint8)}


def way(name, make, fit, probe=answers):
    return Fit(name, make, fit, probe, SUBJECT, ("X", "y", "groups"), visits)


def gone(name, make, fit, probe=answers):
    return Fit(name, make, fit, probe, NULL_SUBJECT, ("X", "y", "groups"), visits)


WAYS = [
    way("PATE, sums", pate(**AUTO, epsilon=100.0), by_ids),  # of so few subjects sums are asked for with little noise
    way("PATE, counts", pate(**AUTO, epsilon=0.5), by_ids),
    way("PATE, trees", pate(teacher=DecisionTreeClassifier(max_depth=2), voting="gnmax"), by_ids),
    way("FairPATE, named", fair_pate(**CLEARLY), by_name, named_answers),
    way("FairPATE, confident networks", fair_pate(
        teacher=MLPTeachers(hidden=(4,), epochs=2), voting="confident", **CLEARLY), by_name, named_answers),
    way("FairPATE, own rows", fair_pate(**AUTO, **CLEARLY, **OWN), without_public_rows),
    gone("DP-SGD", dpsgd(lam=0.0, max_rows_per_subject=3), by_ids_alone),
    gone("DP-SGD, signed loss", dpsgd(gamma=0.1, groups=[0, 1], lam=None), without_public_rows),
    gone("clipping, reweighted", clipping(groups=[0, 1]), without_public_rows),
    gone("clipping, adapted", clipping(method="global_adapt"), by_ids_alone),
    gone("clipping, DPSGD-F", clipping(groups=[0, 1], method="dpsgd_f"), without_public_rows),
    gone("amounts", amounts(max_rows_per_subject=3), by_ids_alone),
    gone("amounts, moved", amounts(constraints="demographic_parity", groups=[0, 1]), without_public_rows,
         answers_with_groups),
    gone("amounts, means alike", amounts(gamma=0.1, groups=[0, 1]), without_public_rows),
    way("FairPATE, own rows and counts", fair_pate(**AUTO, **OWN, epsilon=1.0), without_public_rows),
    way("PFGuard", pfguard(bounds=None, dtypes=float), without_public_rows, samples),
    way("synthetic rows", synthetic(), without_public_rows),
    way("synthetic rows by tables", synthetic(epsilon=40.0), without_public_rows),
    way("synthetic rows, held", synthetic(gamma=0.1), without_public_rows),
    way("PFGuard, interactions", pfguard(backend=MarginalsBackend(structure="interactions")), without_public_rows,
        samples),
    way("thresholds", thresholds(), without_public_rows),
    way("thresholds by group", thresholds(group_at_prediction=True), without_public_rows, answers_with_groups),
    way("thresholds by coins", fragile(Flipped()), without_public_rows, without_answers),
    way("barycenter", barycenter, without_public_rows, answers_with_groups),
    way("barycenter by guesses", guessing_barycenter, without_public_rows),
    way("folds", pareto(pate(), {"voting__threshold": [0.6, 0.8]}), by_ids_and_groups),
    gone("folds of DP-SGD", pareto(dpsgd({"max_epochs": 1}, lam=0.0), {"net__lr": [0.5, 2.0]}), without_public_rows),
    way("a part held out", private(synthetic(), {"n_samples": [300, 400]}), without_public_rows),
    way("schema", functools.partial(SchemaOfVisits, subject="patient_id"), lambda one, rows: one.fit(rows), described),
    way("PATE in chunks", pate(**IN_CHUNKS), by_chunks, named_answers),
    way("PATE in chunks, counts", pate(**AUTO, **{**IN_CHUNKS, "epsilon": 0.5}), by_chunks, named_answers),
    way("FairPATE in chunks, trees", fair_pate(
        teacher=DecisionTreeClassifier(max_depth=2), voting="gnmax", **CLEARLY, **IN_CHUNKS), by_key, named_answers),
    way("FairPATE in files, confident networks", fair_pate(
        teacher=MLPTeachers(hidden=(4,), epochs=2), voting="confident", **CLEARLY, **IN_CHUNKS), by_files,
        named_answers),
    way("PFGuard in chunks", pfguard(bounds=None, **ONLY_IN_CHUNKS), by_chunks_alone, samples),
    # Of many teachers with few rows votes show where a subject that has none would move others to other teachers.
    way("PATE-GAN", pfguard(backend=PATEGANBackend(
        **{**SMALL, "n_teachers": 30, "batch_size": 16, "teacher_steps": 5, "teacher_lr": 0.05})), without_public_rows,
        samples),
    way("GS-WGAN", pfguard(backend=GSWGANBackend(**SMALL)), without_public_rows, samples),
    way("GS-WGAN, one answers", pfguard(backend=GSWGANBackend(discriminators="one", **SMALL)), without_public_rows,
        samples),
    way("GS-WGAN, bounds that move", pfguard(backend=GSWGANBackend(clipping="dpsgd_f", **SMALL)), without_public_rows,
        samples),
    way("G-PATE", pfguard(backend=GPATEBackend(**SMALL)), without_public_rows, samples),
    way("DataLens", pfguard(backend=DataLensBackend(**SMALL)), without_public_rows, samples),
    way("folds in chunks", pareto(pate(**IN_CHUNKS), {"voting__threshold": [0.6, 0.8]}), by_chunks, named_answers),
    way("a part held out in chunks", private(fair_pate(**CLEARLY, **IN_CHUNKS), {"gamma": [0.1, 0.3]}), by_key,
        named_answers),
    way("thresholds in chunks", thresholds(groups=None, schema=ONLY_IN_CHUNKS["schema"]), by_chunks_alone,
        named_answers),
    gone("DP-SGD in chunks", dpsgd(lam=0.0, max_rows_per_subject=3, **ONLY_IN_CHUNKS), by_chunks_alone, named_answers),
    gone("DP-SGD in files, signed loss", dpsgd(gamma=0.1, lam=None, **ONLY_IN_CHUNKS), by_files_alone, named_answers),
]  # fmt: skip


class FewRows(GroupModel):
    """Asks some of the subjects, as of more than 131,072."""

    MOST_ROWS = 32


class FewKept(SFPATEClassifier):
    """Asks about some of the rows, as of more than 100,000."""

    _most_kept = 50


def group(name, make, fit=without_public_rows, probe=answers):
    return Fit(name, make, fit, probe, OF_A_SUBJECT, ("groups",), visits)


WAYS_OF_GROUPS = [
    group("randomised response", randomised()),
    group("SF-PATE", sf_pate()),
    group("SF-PATE, fair teachers", sf_pate(variant="teacher")),
    group("PF-LD", pfld()),
    group("PF-LD, some asked", pfld(primal=FewRows())),
    group("SF-PATE, some kept", functools.partial(FewKept, groups=[0, 1], n_teachers=6, epsilon=8.0, random_state=0)),
    group("SF-PATE in chunks", sf_pate(**ONLY_IN_CHUNKS), by_chunks_alone, named_answers),
    group("PF-LD, gradients", pfld(primal=NoisyGradients(6, max_grad_norm=0.01))),
    group("PF-LD, sampled gradients", pfld(primal=NoisyGradients(6, sampling_probability=0.3))),
    group("PF-LD in chunks", pfld(**ONLY_IN_CHUNKS), by_chunks_alone, named_answers),
    group("PF-LD in files, some asked", pfld(primal=FewRows(), **ONLY_IN_CHUNKS), by_files_alone, named_answers),
]


def seen_by(entry, pairs):
    found = []
    for pair in pairs:
        seen = compared(entry, pair)
        assert seen.original.error is None, f"{pair.name}: the fit on D failed: {seen.original.error}"
        assert seen.record.releases
        assert ("sums" in entry.name) <= any("GaussianMechanism" in str(one) for one in seen.record.releases)
        assert all(f"'neighboring_relation': '{entry.relation}'" in one for one in seen.record.order if "charge" in one)
        by_way_of_none = entry.relation == NULL_SUBJECT and pair.name != "none"
        found += [f"{pair.name}: {text}" for text in seen.differences(times=2.0 if by_way_of_none else pair.times)]
    return found


@pytest.mark.parametrize("entry", WAYS_OF_GROUPS, ids=lambda entry: entry.name)
def test_a_subject_of_another_group_looks_the_same(entry):
    assert not seen_by(entry, GROUP_PAIRS)


@pytest.mark.parametrize("entry", WAYS_OF_GROUPS, ids=lambda entry: entry.name)
def test_the_group_of_a_subject_is_that_of_its_first_row(entry):
    pair = Pair("the others", of_one_group(slice(1, None)), with_another_group(slice(1, None)))
    seen = compared(entry, pair)
    assert seen.original.error is None
    assert not seen.differences(times=0.0)


@pytest.mark.parametrize("entry", WAYS, ids=lambda entry: entry.name)
def test_a_subject_with_other_rows_looks_the_same(entry):
    assert not seen_by(entry, PAIRS)
