"""``with PrivacyLedger(...)``: the ledger of everything inside that is given none."""

import asyncio
import pickle
import threading

import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from skfairdp import FairPATEClassifier, PATEClassifier, RandomizedResponseClassifier
from skfairdp.exceptions import BudgetExceededError, LedgerError
from skfairdp.inspection import audit
from skfairdp.model_selection import ParetoSearchCV, frontier
from skfairdp.privacy import GaussianDpEvent, PrivacyLedger, privacy_of
from skfairdp.privacy._ledger_block import _taking_the_block_along
from skfairdp.schema import Schema
from tests._tools.catalogue import by_name, make_rows
from tests._tools.spending import spend

FITS = [
    "PATE-soft-2", "SFPATE-student", "PFLD-opportunity", "RandomizedResponse", "FairDPSGD-plain", "PrivateThresholds",
    "PFGuard-marginals", "Pareto-private-folds", "Private-selection", "Schema-release",
    "FairPATE-soft-2", "GroupRandomizer", "FairDPSGD-second-look", "FairClipping-reweight", "SyntheticData", "PFLD-raw",
    "IDP3-over-dpsgd", "Calibrator-fine-tuned", "Pareto-public", "Private-composition", "Private-public",
]  # fmt: skip


def labels(ledger):
    return [entry.label for entry in ledger.entries]


# ---- what counts -----------------------------------------------------------------------------------------------
@pytest.mark.few(10)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_fit_inside_counts_exactly_as_one_that_is_given_the_ledger(name):
    fit, given, around = by_name(name), PrivacyLedger(), PrivacyLedger()
    rows = fit.rows()
    fit.fit(fit.make(ledger=given), rows)
    with around:
        fit.fit(fit.make(), rows)
    assert [(e.label, e.event, e.protects, e.neighboring_relation, e.releases) for e in around.entries] == [
        (e.label, e.event, e.protects, e.neighboring_relation, e.releases) for e in given.entries
    ]
    assert around.entries


def test_the_schema_that_was_released_and_the_own_spending_count():
    with PrivacyLedger() as ledger:
        Schema.release(pd.DataFrame({"age": [20.0, 30.0] * 100}), epsilon=4.0, known={"age": "number"})
        spend()
    assert labels(ledger) == ["Schema.release", "a mean"]


@pytest.mark.filterwarnings("ignore")
def test_a_frontier_counts_and_says_what_it_cost():
    rows = make_rows()
    model = FairPATEClassifier(classes=[0, 1], n_teachers=8, random_state=0)
    with PrivacyLedger() as ledger:
        found = frontier(
            model, rows.X, rows.y, X_public=rows.public, X_test=rows.X_test, y_test=rows.y_test,
            sensitive_features_test=rows.groups_test, epsilons=[0.5, 1.0], idp3=[False],
        )  # fmt: skip
    assert len(ledger.entries) == 2
    assert found.attrs["epsilon_total"] == pytest.approx(ledger.epsilon_spent)


# ---- which ledger ----------------------------------------------------------------------------------------------
def test_the_given_ledger_wins_then_the_inner_block_and_leaving_restores():
    given = PrivacyLedger()
    with PrivacyLedger() as outer:
        spend()
        with PrivacyLedger() as inner:
            spend()
            spend(ledger=given)
            with outer:  # once more
                spend()
            spend()
        spend()
    spend()
    assert [len(ledger.entries) for ledger in (outer, inner, given)] == [3, 2, 1]


def test_an_error_restores():
    with PrivacyLedger() as outer:
        with pytest.raises(ZeroDivisionError), PrivacyLedger() as inner:
            raise ZeroDivisionError
        spend()
    assert (len(outer.entries), len(inner.entries)) == (1, 0)


def test_what_would_exceed_the_ceiling_is_refused_inside():
    with PrivacyLedger(epsilon=1.0) as ledger:
        spend()
        with pytest.raises(BudgetExceededError):
            spend(noise=3.0)
    assert 0 < ledger.epsilon_spent <= 1


@pytest.mark.filterwarnings("ignore")
def test_seeded_noise_is_refused_and_audits_are_and_nothing_is_charged():
    model = RandomizedResponseClassifier(epsilon=1.0, classes=[0, 1], groups=[0, 1], random_state=0)
    rows = make_rows()
    with PrivacyLedger() as ledger:
        seeded = clone(model).set_params(noise_seed=0)
        with pytest.raises(ValueError, match="noise_seed"):
            seeded.fit(rows.X, rows.y, sensitive_features=rows.groups)
        with pytest.raises(ValueError, match="charge its ledger"):
            audit(model, rows.X, rows.y, sensitive_features=rows.groups, n_runs=1)
    assert not ledger.entries


@pytest.mark.filterwarnings("ignore")
def test_no_estimator_keeps_it_and_reports_find_it():
    rows, fit = make_rows(), by_name("PATE-soft-2")
    with PrivacyLedger() as ledger:
        model = fit.fit(fit.make(), rows)
        assert model.ledger is None
        assert clone(model).ledger is None
        assert b"PrivacyLedger" not in pickle.dumps(model)
        spend()
    assert privacy_of(model).epsilon == pytest.approx(ledger.epsilon_spent)
    assert len(model.privacy_statement().content["ledger"]["entries"]) == 2


# ---- threads and workers ---------------------------------------------------------------------------------------
def in_thread(function):
    found = []

    def call():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_started_inside_counts_and_after_the_block_it_does_not():
    with PrivacyLedger() as ledger:
        in_thread(spend)
    in_thread(spend)
    assert len(ledger.entries) == 1


def test_a_block_of_another_thread_is_not_ours_and_between_two_a_third_thread_is_refused():
    inside, leave, theirs = threading.Event(), threading.Event(), PrivacyLedger()

    def hold():
        with theirs:
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=hold)
    other.start()
    inside.wait(10)
    with PrivacyLedger() as ours:
        spend()
        refused = in_thread(spend)
    leave.set()
    other.join()
    assert (len(ours.entries), len(theirs.entries)) == (1, 0)
    assert isinstance(refused, LedgerError)


def test_a_task_of_asyncio_outside_of_the_block_does_not_count():
    async def outside(order):
        await order.wait()
        spend()

    async def main():
        order = asyncio.Event()
        task = asyncio.ensure_future(outside(order))
        await asyncio.sleep(0)
        with PrivacyLedger() as ledger:
            order.set()
            await task
            await asyncio.ensure_future(asyncio.to_thread(spend))
        return ledger

    assert len(asyncio.run(main()).entries) == 1


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_workers_of_joblib_count_and_stop_to_after_the_block(backend):
    with parallel_config(backend, n_jobs=2), PrivacyLedger() as ledger:
        Parallel()(delayed(spend)() for _ in range(6))
    Parallel(n_jobs=2, backend=backend)(delayed(spend)() for _ in range(2))
    assert len(ledger.entries) == 6


def test_tasks_that_are_sent_to_a_worker_count_there():
    ledger, sent = PrivacyLedger(), []

    class Backend:
        def start_call(self):
            pass

        def submit(self, func, callback=None):
            sent.append(func)

    backend = _taking_the_block_along(Backend)()
    with ledger:
        backend.start_call()
    backend.submit(spend)  # from a thread of joblib's, and run wherever it is sent
    sent[0]()
    backend.start_call()
    backend.submit(spend)
    sent[1]()
    assert len(ledger.entries) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_grid_search_with_workers_counts_every_fit_once():
    rows = make_rows()
    with PrivacyLedger() as ledger:
        GridSearchCV(
            PATEClassifier(epsilon=1.0, classes=[0, 1], public_data=rows.public, n_teachers=8, random_state=0),
            {"epsilon": [0.5, 1.0]}, cv=KFold(3), n_jobs=2,
        ).fit(rows.X, rows.y)  # fmt: skip
    assert len(ledger.entries) == 7


@pytest.mark.filterwarnings("ignore")
def test_a_search_of_ours_with_workers_charges_itself_alone():
    rows, fit = make_rows(), by_name("Pareto-private-folds")
    with PrivacyLedger() as ledger:
        search = fit.make().set_params(n_jobs=2)
        fit.fit(search, rows)
    assert isinstance(search, ParetoSearchCV)
    assert {entry.label for entry in ledger.entries} == {"ParetoSearchCV of FairPATEClassifier"}
    assert ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon)
    assert search.best_estimator_.ledger is None


@pytest.mark.slow
def test_a_fit_that_was_refused_by_the_workers_ledger_is_refused():
    with PrivacyLedger(epsilon=0.8) as ledger, pytest.raises(BudgetExceededError):
        Parallel(n_jobs=2)(delayed(spend)() for _ in range(3))
    assert len(ledger.entries) == 1
    assert ledger.epsilon_spent <= 0.8
    assert GaussianDpEvent(5.0) == ledger.entries[0].event
