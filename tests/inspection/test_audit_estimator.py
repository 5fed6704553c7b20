"""``audit``: sound estimators are not accused, in repeated audits; each planted fault is found."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp import FairDPSGDClassifier, PATEClassifier, PrivacyLedger, PublicData
from skfairdp.inspection import Canary, EstimatorAudit, _audit_estimator, audit
from skfairdp.privacy import GaussianDpEvent, epsilon_of
from skfairdp.schema import Category, Number, Schema
from tests._tools.audit_toys import ToyDeclaredSum, ToyNB, ToySum, ToyVotes, rows
from tests._tools.inside import rates_epsilon, rates_of_band, rounded_down
from tests._tools.sources import fixed_entropy

X, Y = rows()
RECORD, ADD_REMOVE, ATTRIBUTE, NULL = (
    "replace one record",
    "add or remove one record",
    "replace one sensitive attribute",
    "replace one record by a null record",
)
CORNER = Canary((np.ones(2), 0), (np.ones(2), 1), name="the corner, another label")  # moves every number of ToyNB


class Counter(BaseEstimator):
    """A count of the labels, with Gaussian or Laplace noise. ``factor``: noise too small by that."""

    def __init__(self, epsilon=1.0, factor=1.0, random_state=None):
        self.epsilon, self.factor, self.random_state = epsilon, factor, random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        self.count_ = y.sum() + rng.laplace(scale=1 / self.epsilon / self.factor)
        return self


class Gauss(Counter):
    """The same with noise 1 / factor."""

    def fit(self, X, y):
        self.count_ = y.sum() + np.random.default_rng(self.random_state).normal() / self.factor
        return self


class Grouped(BaseEstimator):
    """Randomised response of each group, by the right probability or by a larger one."""

    def __init__(self, epsilon=1.0, fault=False, random_state=None):
        self.epsilon, self.fault, self.random_state = epsilon, fault, random_state

    def fit(self, X, y, sensitive_features=None):
        rng = np.random.default_rng(self.random_state)
        epsilon = 3 * self.epsilon if self.fault else self.epsilon
        kept = rng.random(len(X)) < 1 / (1 + np.exp(-epsilon))
        self.groups_ = np.where(kept, sensitive_features, 1 - sensitive_features)
        return self


# ---------------------------------------------------------------- faults


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", ["inverse scale", "no noise", "shared noise"])
def test_faults_of_the_noise_of_a_naive_bayes_are_found(fault):
    found = audit(ToyNB(fault=fault), X, Y, n_runs=60, canaries=[CORNER], random_state=0)
    assert found.violates and found.claim == 1.0 and found.ratio > 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["no clipping", "bounds from data"])
def test_default_canaries_find_what_only_extreme_records_show(fault):
    found = audit(ToyNB(fault=fault), X, Y, n_runs=40, random_state=0)
    assert found.violates and found.canary.startswith("far out")


@pytest.mark.slow
def test_a_fit_that_pays_once_for_many_counts_is_found():
    found = audit(ToyNB(fault="no composition"), X, Y, n_runs=3000, canaries=[CORNER], random_state=0)
    assert found.violates


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["xor", "scale by ten to the delta"])
def test_a_slip_in_the_gaussian_scale_is_found_where_gaussian_scores_are_assumed(fault):
    options = {"canaries": [CORNER], "method": "gaussian", "random_state": 0, "score": corner_sum, "n_runs": 800}
    assert audit(ToyNB(delta=1e-5, fault=fault), X, Y, **options).violates
    assert not audit(ToyNB(delta=1e-5), X, Y, **options).violates


def corner_sum(model):
    return float((model.sums_[1] - model.sums_[0]).sum())


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", ["same draw", "dtype", "stale"])
def test_faults_of_a_table_of_votes_are_found(fault):
    canaries = [Canary((X[0], Y[0]), None, name="a record")]
    found = audit(ToyVotes(fault=fault), X, Y, n_runs=40, relation=ADD_REMOVE, canaries=canaries, random_state=0)
    assert found.violates


def test_an_error_that_depends_on_a_private_row_is_found():
    alone = X.copy()
    alone[1:, 0] = 0.1 + 0.6 * alone[1:, 0]
    alone[:4, 0] = [0.99, 0.05, 0.3, 0.6]  # the first row is the only one of its cell
    canaries = [Canary((alone[0], Y[0]), None)]
    given = {"n_runs": 40, "relation": ADD_REMOVE, "canaries": canaries, "random_state": 0}
    assert audit(ToyVotes(fault="refuses"), alone, Y, **given).violates
    assert not audit(ToyVotes(), alone, Y, **given).violates


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.2, 2**0.5, 2.0])
def test_gaussian_noise_too_small_is_found_in_proportion_to_the_runs(factor):
    """μ = 1, at δ = 1e-5 an ε of 4.377; the fault raises it."""
    runs = {1.2: 900, 2**0.5: 300, 2.0: 100}[factor]
    given = {"epsilon": 4.377179, "delta": 1e-5, "n_runs": runs, "method": "gaussian", "score": lambda m: m.count_}
    canary = [Canary((X[0], 0), (X[0], 1))]
    assert audit(Gauss(factor=factor), X, Y, canaries=canary, random_state=0, **given).violates
    assert not audit(Gauss(), X, Y, canaries=canary, random_state=0, **given).violates


def test_one_run_finds_a_randomised_response_that_answers_too_well():
    n = 4000
    table, labels, groups = np.zeros((n, 1)), np.zeros(n, dtype=int), np.arange(n) % 2
    canaries = [Canary((table[i], 0, 0), (table[i], 0, 1), row=i) for i in range(n)]
    given = {
        "canaries": canaries,
        "relation": ATTRIBUTE,
        "sensitive_features": groups,
        "n_runs": 1,
        "score": lambda model: model.groups_,
        "random_state": 0,
    }
    sound = audit(Grouped(), table, labels, **given)
    assert 0.7 < sound.ratio <= 1 and not sound.violates and sound.n_fits == 2
    assert audit(Grouped(fault=True), table, labels, **given).violates


def test_one_run_with_the_default_score_finds_a_table_without_noise():
    grid = (np.arange(400) + 0.5)[:, None] / 400
    labels = np.arange(400) % 2
    given = {"n_runs": 1, "random_state": 0}
    assert audit(ToyVotes(n_cells=400, epsilon=0.5), grid, labels, **given, epsilon=1.0).ratio <= 1
    assert audit(ToyVotes(n_cells=400, epsilon=50.0), grid, labels, **given, epsilon=1.0).violates


# ---------------------------------------------------------------- the sound are not accused


@pytest.mark.slow
def test_a_sound_claim_is_refuted_in_at_most_five_percent_of_audits():
    """Randomised response of one bit: the attacker's odds reach e^ε exactly, so nothing protects but the confidence."""

    class Bit(BaseEstimator):
        def __init__(self, epsilon=1.5, random_state=None):
            self.epsilon, self.random_state = epsilon, random_state

        def fit(self, X, y):
            truth = np.random.default_rng(self.random_state).random() < 1 / (1 + np.exp(-self.epsilon))
            self.bit_ = float(y[0] if truth else 1 - y[0])
            return self

    table, labels = np.zeros((2, 1)), np.zeros(2, dtype=int)
    canaries = [Canary((table[0], 0), (table[0], 1))]
    found = [
        audit(Bit(), table, labels, canaries=canaries, score=lambda m: m.bit_, n_runs=100, random_state=seed)
        for seed in range(200)
    ]
    assert np.mean([result.violates for result in found]) <= 0.05
    assert np.median([result.epsilon_lower for result in found]) > 0  # able to accuse


@pytest.mark.slow
@pytest.mark.parametrize("make", [ToyNB, ToyVotes])
def test_sound_toys_are_not_accused_in_repeated_audits_by_a_learned_score(make):
    relation = RECORD if make is ToyNB else ADD_REMOVE
    found = [audit(make(), X, Y, n_runs=40, relation=relation, random_state=seed).violates for seed in range(20)]
    assert np.mean(found) <= 0.05


@pytest.mark.slow
def test_a_learned_score_is_judged_on_runs_it_has_not_seen():
    """Ninety columns of noise, 20 pilot runs a world: judged on the runs that taught it, it would tell worlds apart."""

    class Wide(BaseEstimator):
        def __init__(self, epsilon=0.0, random_state=None):
            self.epsilon, self.random_state = epsilon, random_state

        def fit(self, X, y):
            self.noise_ = np.random.default_rng(self.random_state).normal(size=90)
            return self

    canaries = [Canary((X[0], 0), (X[0], 1))]
    found = [audit(Wide(), X, Y, canaries=canaries, n_runs=20, random_state=s) for s in range(5)]
    assert not any(result.violates for result in found)


# ---------------------------------------------------------------- our own estimators


@pytest.mark.slow
def test_an_estimator_of_this_package_states_claim_and_neighbours_and_is_not_accused():
    model = PATEClassifier(
        epsilon=2.0,
        classes=[0, 1],
        n_teachers=3,
        voting="soft",
        student=DummyClassifier(strategy="prior"),
        random_state=0,
    )
    table = np.zeros((3, 1))
    canaries = [Canary((table[0], 0), (table[0], 1))]
    public = PublicData(np.zeros((2, 1)), [0, 1])
    with fixed_entropy(0):
        found = audit(
            model,
            table,
            np.array([0, 1, 0]),
            canaries=canaries,
            fit_params={"X_public": public},
            score=lambda fitted: fitted.released_votes_[:, 1].sum(),
            method="gaussian",
            n_runs=100,
            random_state=0,
        )
    assert found.claim == pytest.approx(2.0, abs=1e-3) and found.delta == 1e-5 and found.relation == RECORD
    assert 0.4 < found.ratio <= 1


@pytest.mark.slow
def test_audits_of_data_frames_change_one_record():
    seen = []

    class Watcher(BaseEstimator):
        def __init__(self, epsilon=1.0):
            self.epsilon = epsilon

        def fit(self, X, y):
            seen.append((X, y))
            self.sum_ = float(X["a"].sum())
            return self

    frame = pd.DataFrame({"a": np.arange(6), "b": list("xyxyxy")})
    found = audit(Watcher(), frame, np.arange(6) % 2, n_runs=30, random_state=0)
    assert found.violates  # nothing is noisy
    for table, labels in seen[1:]:
        assert list(table["b"]) == list("xyxyxy") and len(labels) == 6
        assert list(table["a"][1:]) == [1, 2, 3, 4, 5] and table["a"][0] in (0, 50, -50)


def test_a_record_is_absent_from_one_world():
    sizes = []

    class Sizes(Counter):
        def fit(self, X, y):
            sizes.append(len(X))
            return super().fit(X, y)

    audit(Sizes(), X, Y, relation=ADD_REMOVE, n_runs=30, random_state=0, canaries=[Canary(None, (X[3], 1), row=3)])
    assert set(sizes) == {40, 39}


# ---------------------------------------------------------------- claims for a null record

FAR_OUT = [Canary((-np.ones(2), 0), (np.ones(2), 0), name="two sides")]
ABSENT = [Canary(None, (np.ones(2), 0), name="a record")]
SUMS = {"method": "gaussian", "score": lambda model: model.sum_, "n_runs": 300}


@pytest.mark.few(1)
@pytest.mark.parametrize(("toy", "canaries"), [(ToySum, FAR_OUT), (ToyDeclaredSum, FAR_OUT), (ToyDeclaredSum, ABSENT)])
def test_a_claim_for_a_null_record_is_judged_as_what_it_is(toy, canaries):
    """μ = 1/2 for a null record, which is 1 for a replaced one."""
    absent = canaries is ABSENT
    found = audit(toy(), X, Y, canaries=canaries, random_state=1, **SUMS)
    assert found.relation == (NULL if absent else RECORD)
    assert found.claim == pytest.approx(epsilon_of(GaussianDpEvent(2.0 if absent else 1.0), 1e-5), rel=1e-6)
    assert not found.violates and found.ratio > 0.4
    assert audit(toy(factor=2.5), X, Y, canaries=canaries, random_state=1, **SUMS).violates


@pytest.mark.slow
def test_sound_claims_for_a_null_record_are_refuted_in_at_most_five_percent_of_audits():
    given = {**SUMS, "n_runs": 100, "canaries": FAR_OUT}
    found = [audit(ToySum(), X, Y, random_state=seed, **given).violates for seed in range(40)]
    assert np.mean(found) <= 0.125  # 5 % and two standard deviations


def test_at_another_delta_the_epsilon_is_judged_that_is_stated_for_it():
    event = ToyDeclaredSum().fit(X, Y).privacy_.event
    for delta in (1e-9, 1e-3):
        found = audit(ToyDeclaredSum(), X, Y, delta=delta, random_state=0, **{**SUMS, "n_runs": 20})
        assert found.delta == delta and found.claim == pytest.approx(epsilon_of(event, delta))


def test_a_claim_that_is_given_is_that_of_the_relation_given_with_it():
    given = {**SUMS, "canaries": FAR_OUT, "n_runs": 20, "random_state": 0}
    assert audit(ToySum(), X, Y, relation=RECORD, epsilon=1.5, **given).claim == 1.5
    assert audit(ToySum(), X, Y, relation=RECORD, **given).claim > 4.3
    carried = audit(ToySum(), X, Y, epsilon=0.5, delta=1e-5, **given)  # for a null record, so for two steps of it
    assert carried.claim == 1.0 and carried.delta == pytest.approx(1e-5 * (1 + np.exp(0.5)))
    with pytest.raises(ValueError, match="ToySum claims nothing for relation='add or remove one record'"):
        audit(ToySum(), X, Y, relation=ADD_REMOVE)
    with pytest.raises(ValueError, match="needs two forms"):
        audit(ToySum(), X, Y, canaries=[Canary((X[0], 0), None)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_private_sgd_is_not_accused_by_default_canaries_and_score(seed):
    groups = np.arange(40) % 2
    model = FairDPSGDClassifier(classes=[0, 1], groups=[0, 1])
    found = audit(model, X, Y, sensitive_features=groups, n_runs=40, random_state=seed)
    assert found.relation == NULL and found.claim == pytest.approx(1, abs=1e-3) and not found.violates


@pytest.mark.slow
@pytest.mark.parametrize("relation", [NULL, RECORD])
def test_a_tenth_of_the_noise_is_found_with_default_arguments_where_the_reach_allows(relation):
    toy = ToySum if relation == RECORD else ToyDeclaredSum
    found = audit(toy(noise=4.0, factor=10.0), X, Y, random_state=0)
    assert found.relation == relation and found.reach > found.claim and found.violates
    assert not audit(toy(noise=4.0), X, Y, random_state=0).violates


# ---------------------------------------------------------------- what runs can see


@pytest.mark.slow
def test_runs_that_cannot_refute_the_claim_say_so():
    with pytest.warns(UserWarning, match="no fault can be seen, however large"):
        blind = audit(Counter(epsilon=3.0, factor=1e6), X, Y, n_runs=20, random_state=0)
    assert blind.reach < blind.claim and not blind.violates and "No fault can be seen" in str(blind)
    seeing = audit(Counter(factor=1e6), X, Y, n_runs=40, random_state=0)
    assert f"below {rounded_down(seeing.reach)} is not seen" in str(seeing) and seeing.violates
    assert "is not seen by so many runs" in seeing._repr_html_()


# ---------------------------------------------------------------- the result


def test_result_says_what_it_found_and_that_it_is_not_private():
    found = audit(Counter(factor=1e6), X, Y, n_runs=40, random_state=0, canaries=[Canary((X[0], 0), (X[0], 1))])
    assert isinstance(found, EstimatorAudit) and found.private is False
    assert found.reach == rates_epsilon(rates_of_band(np.zeros(40), np.ones(40), 0.95), 0.0) == found.epsilon_lower
    assert found.n_fits == 1 + 2 * 20 + 2 * 40
    text = str(found)
    assert "refutes its claim" in text and "Counter" in text and "40 runs" in text and "95%" in text
    assert "refuted" in found._repr_html_() and "<script" not in found._repr_html_()
    with pytest.raises(AttributeError):
        found.epsilon_lower = 0.0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_audit():
    given = {"n_runs": 30, "random_state": 5}
    assert audit(ToyNB(), X, Y, **given) == audit(ToyNB(), X, Y, **given)


@pytest.mark.slow
def test_two_processes_give_the_same_audit_as_one():
    given = {"n_runs": 30, "random_state": 5, "canaries": [CORNER]}
    assert audit(ToyNB(), X, Y, n_jobs=2, **given) == audit(ToyNB(), X, Y, **given)


@pytest.mark.slow
def test_a_pipeline_claims_what_its_last_step_claims():
    broken = make_pipeline(FunctionTransformer(), ToyNB(epsilon=0.7, fault="no noise", random_state=0))
    found = audit(broken, X, Y, n_runs=40, canaries=[CORNER], random_state=0)
    assert found.claim == 0.7 and found.violates and found.estimator == "Pipeline"
    sound = make_pipeline(FunctionTransformer(), ToyNB(epsilon=0.7, random_state=0))  # reseeded in each fit
    assert not audit(sound, X, Y, n_runs=40, canaries=[CORNER], random_state=0).violates
    with pytest.raises(ValueError, match="Leave out its 'noise_seed'"):
        audit(make_pipeline(FunctionTransformer(), PATEClassifier(noise_seed=0)), X, Y)


@pytest.mark.slow
def test_a_claim_of_zero_is_refuted_by_any_bound():
    found = audit(Counter(epsilon=1.0, factor=1e3), X, Y, epsilon=0.0, n_runs=40, random_state=0)
    assert found.violates and found.ratio == np.inf


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_runs": 5}, "n_runs must be 1, or an integer of at least 20. Got 5"),
        ({"n_runs": True}, "n_runs must be 1"),
        ({"method": "hope"}, "method must be 'counts' or 'gaussian'. Got 'hope'"),
        ({"relation": "neighbours"}, "relation must be one of"),
        ({"confidence": 1.0}, "confidence must be a float"),
        ({"epsilon": -1.0}, "epsilon must be at least 0"),
        ({"canaries": []}, "canaries must hold at least one"),
        ({"canaries": [Canary((X[0], 0), None)]}, "needs two forms"),
        ({"canaries": [Canary((X[0], 0), (X[0], 1), row=40)]}, "a row from 0 to 39"),
        ({"relation": ADD_REMOVE, "canaries": [CORNER]}, "needs one form that is None"),
        ({"relation": ATTRIBUTE}, "needs sensitive_features"),
        ({"n_runs": 1, "canaries": [CORNER, CORNER], "score": corner_sum}, "a row of its own"),
        ({"n_runs": 1, "canaries": [CORNER], "score": lambda m: [1.0, 2.0]}, "a number for each of the 1 canaries"),
    ],
)
def test_bad_input_is_an_error_that_names_the_parameter(changed, message):
    with pytest.raises(ValueError, match=message):
        audit(Counter(), X, Y, **{"random_state": 0, **changed})


def test_seeded_noise_ledgers_and_missing_claims_are_refused():
    with pytest.raises(ValueError, match="Leave out its 'noise_seed'"):
        audit(PATEClassifier(noise_seed=0), X, Y)
    with pytest.raises(ValueError, match="would charge its ledger"):
        audit(PATEClassifier(ledger=PrivacyLedger(1.0)), X, Y)
    with pytest.raises(ValueError, match="DummyClassifier states no epsilon"):
        audit(DummyClassifier(), X, Y)


@pytest.mark.filterwarnings("ignore:These runs prove")
def test_in_one_run_each_canary_is_placed_by_a_coin_of_its_own(monkeypatch):
    """Where forms follow places, whoever knows the places guesses all of them: a sound fit would be accused."""
    tossed = []
    real = _audit_estimator.bounds.audit_one_run_f_dp
    monkeypatch.setattr(_audit_estimator.bounds, "audit_one_run_f_dp", lambda scores, coins, **options:
                        tossed.append(np.array(coins, dtype=bool)) or real(scores, coins, **options))  # fmt: skip
    for seed in range(2):
        audit(ToyNB(), X, Y, n_runs=1, random_state=seed)
    first, second = tossed[0], tossed[2]
    n = len(first)
    assert n == len(second) >= 15
    for one, other in ((first, second), (first, np.arange(n) % 2 == 0), (first[1:], first[:-1])):
        assert 0 < np.sum(one == other) < len(one)
    assert 0 < first.sum() < n and 0 < second.sum() < n


class CountOfVisits(BaseEstimator):
    """Noisy counts of labels: of all rows, or of one row of each subject."""

    def __init__(self, by_subject=True, random_state=None):
        self.by_subject, self.random_state = by_subject, random_state

    def fit(self, X, y, subject):
        labels = pd.Series(y).groupby(np.asarray(subject)).first().to_numpy() if self.by_subject else y
        noise = np.random.default_rng(self.random_state).laplace(scale=2.0, size=2)
        self.counts_ = np.bincount(labels, minlength=2) + noise
        return self


@pytest.mark.parametrize("by_subject", [True, False])
@pytest.mark.parametrize("relation", ["replace all rows of one subject", "replace all rows of one subject by none"])
def test_all_rows_of_a_subject_are_another_canary(by_subject, relation):
    ids, y = np.repeat(np.arange(8), 6), np.tile(np.arange(2), 24)
    audited = audit(
        CountOfVisits(by_subject), np.zeros((48, 1)), y, subject=ids, relation=relation, epsilon=1.0, delta=0.0,
        n_runs=300, random_state=0,
    )  # fmt: skip
    assert audited.violates is not by_subject and audited.relation == relation


class CountOfAPerson(CountOfVisits):
    """The same by a schema, or by the name of a column."""

    def __init__(self, by_subject=True, schema=None, random_state=None):
        super().__init__(by_subject, random_state)
        self.schema = schema

    def fit(self, X, y, subject=None):
        return super().fit(X, y, X["pid"] if subject is None else subject)


@pytest.mark.parametrize("by_subject", [True, False])
@pytest.mark.parametrize("said", ["by name", "by schema"])
def test_the_subject_of_an_audit_is_a_column_or_that_of_the_schema(by_subject, said):
    X, y = pd.DataFrame({"a": 0.0, "pid": np.repeat(np.arange(8), 6)}), np.tile(np.arange(2), 24)
    schema = Schema({"a": Number(0, 1), "y": Category([0, 1])}, label="y", subject="pid")
    model = CountOfAPerson(by_subject, schema if said == "by schema" else None)
    audited = audit(
        model, X, y, subject="pid" if said == "by name" else None, relation="replace all rows of one subject",
        epsilon=1.0, delta=0.0, n_runs=300, random_state=0,
    )  # fmt: skip
    assert audited.violates is not by_subject
    with pytest.raises(ValueError, match="subject='nobody' of audit names no column of X"):
        audit(model, X, y, subject="nobody", random_state=0)


def test_a_fit_for_subjects_states_its_relation_to_an_audit():
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(30), 3), rng.normal(size=(90, 2))
    model = PATEClassifier(epsilon=2.0, classes=[0, 1], n_teachers=5, random_state=0)
    y, public = (X[:, 0] > 0).astype(int), {"X_public": rng.normal(size=(20, 2))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = audit(model, X, y, subject=ids, fit_params=public, n_runs=20, random_state=0)
    assert found.relation == "replace all rows of one subject" and not found.violates
