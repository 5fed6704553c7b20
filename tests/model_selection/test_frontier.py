"""frontier(): one release per ε, truthful totals, measured figures."""

import contextlib
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator

from skfairdp._utils import PublicData
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.exceptions import BudgetExceededError
from skfairdp.gradient import FairDPSGDRegressor
from skfairdp.model_selection import frontier, join_frontiers, measure_estimators, pareto_frontier
from skfairdp.pate import FairPATEClassifier, ParityPenaltyStudent, SFPATEClassifier
from skfairdp.postprocessing import IDP3
from skfairdp.privacy import GaussianDpEvent, PrivacyLedger, PrivacySpent, compose, epsilon_of, gdp_mu
from tests._tools.inside import mark_non_dominated

FITS = []


def event_of(epsilon, delta=1e-5):
    """One Gaussian release that costs just under epsilon."""
    return GaussianDpEvent((1 + 1e-9) / gdp_mu(epsilon, delta))


class FakePATE(ClassifierMixin, BaseEstimator):
    """Releases one number, moves its decision by γ, and keeps books as a private estimator does."""

    protects, neighboring_relation = "record", "replace one record"

    def __init__(
        self, epsilon=1.0, delta=1e-5, gamma=0.05, shrink=1.0, ledger=None, random_state=None, noise_seed=None
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.gamma = gamma
        self.shrink = shrink
        self.ledger = ledger
        self.random_state = random_state
        self.noise_seed = noise_seed

    def fit(self, X, y, *, sensitive_features=None, X_public=None):
        event = event_of(self.epsilon, self.delta)
        self.privacy_ = PrivacySpent.of(
            event,
            self.delta,
            protects=self.protects,
            neighboring_relation=self.neighboring_relation,
            secret_noise=self.noise_seed is None,
        )
        if self.ledger is not None:
            self.ledger.charge(
                event, label="FakePATE", protects=self.protects, neighboring_relation=self.neighboring_relation
            )
        FITS.append((self.epsilon, self.gamma, self.random_state, X_public, sensitive_features))
        self.classes_ = np.unique(y)
        X = np.asarray(X)
        self.direction_ = X[y == self.classes_[-1]].mean(axis=0) - X[y != self.classes_[-1]].mean(axis=0)
        self.center_ = X.mean(axis=0)
        return self

    def refit(self, *, gamma):
        other = clone(self).set_params(gamma=gamma)
        for name in ("privacy_", "classes_", "direction_", "center_"):
            setattr(other, name, getattr(self, name))
        return other

    def predict(self, X):
        bar = 0.0 if self.gamma is None else 4 * (0.2 - self.gamma)  # a smaller γ says yes less often
        return self.classes_[((np.asarray(X) - self.center_) @ self.direction_ > bar).astype(int)]


class AttributePATE(FakePATE):
    protects, neighboring_relation = "sensitive attribute", "replace one sensitive attribute"


@pytest.fixture(name="split")
def _split():
    FITS.clear()
    return make_split()


def make_split():
    rows = make_biased_classification(4000, disparity=0.3, group_sep=2.0, random_state=0)
    return train_private_public_test_split(*rows, sizes=(0.5, 0.1, 0.4), random_state=0)


def sweep(split, estimators=None, **kwargs):
    given = {
        "X_public": split.public,
        "X_test": split.X_test,
        "y_test": split.y_test,
        "sensitive_features_test": split.sensitive_features_test,
        "random_state": 0,
        **kwargs,
    }
    return frontier(FakePATE() if estimators is None else estimators, split.X, split.y, **given)


def test_one_fit_per_epsilon_whatever_the_number_of_gammas(split):
    table = sweep(split, epsilons=(0.5, 2.0), gammas=np.linspace(0, 0.2, 30).tolist(), idp3=(False,))
    assert [fit[0] for fit in FITS] == [0.5, 2.0] and len(table) == 60
    assert table.attrs["n_fits"] == 2 and len({fit[2] for fit in FITS}) == 1  # one partition for all


def test_every_row_carries_the_certified_figure_of_its_release(split):
    table = sweep(split)
    assert len(table) == 4 * 13  # no IDP3 without a γ
    for row in table.itertuples():
        assert 0 < row.epsilon <= 5 and row.delta == 1e-5 and row.protects == "record"
    asked = [0.5, 1.0, 2.0, 5.0]
    assert sorted(table["epsilon"].unique()) == pytest.approx(asked)
    assert (table["epsilon"] <= np.repeat(asked, 13)).all()
    assert not ((table["gamma"].isna()) & table["idp3"]).any()
    assert list(table.columns) == [
        "dataset",
        "estimator",
        "epsilon",
        "delta",
        "protects",
        "neighboring_relation",
        "gamma",
        "student_gamma",
        "lam",
        "idp3",
        "disparity",
        "accuracy",
        "coverage",
        "non_dominated",
        "params",
        "gap_bound",
    ]
    whole = table[table["coverage"] == 1.0]
    assert (whole["gap_bound"] > whole["disparity"]).all()


def test_total_is_the_composition_of_all_releases_and_not_of_all_rows(split):
    table = sweep(split)
    events = [event_of(epsilon) for epsilon in (0.5, 1.0, 2.0, 5.0)]
    assert table.attrs["epsilon_total"] == pytest.approx(epsilon_of(compose(*events), 1e-5))
    assert 5 < table.attrs["epsilon_total"] < 0.5 + 1 + 2 + 5
    assert (table.attrs["delta"], table.attrs["protects"]) == (1e-5, "record")


def test_total_counts_only_this_call_on_a_ledger_that_was_used_before(split):
    ledger = PrivacyLedger(delta=1e-5)
    alone = sweep(split, epsilons=(1.0,)).attrs["epsilon_total"]
    FakePATE(epsilon=3.0, ledger=ledger).fit(split.X, split.y)
    table = sweep(split, FakePATE(ledger=ledger), epsilons=(1.0,))
    assert table.attrs["epsilon_total"] == pytest.approx(alone) == pytest.approx(1.0)
    assert len(ledger.entries) == 2 and ledger.epsilon_spent > 3


def test_a_given_ledger_refuses_the_release_that_would_exceed_it(split):
    ledger = PrivacyLedger(epsilon=1.5, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        sweep(split, FakePATE(ledger=ledger))
    assert len(ledger.entries) == 2 and ledger.epsilon_spent <= 1.5


def test_the_estimators_given_stay_as_they_were(split):
    estimator = FakePATE()
    sweep(split, estimator, epsilons=(1.0,))
    assert estimator.ledger is None and estimator.random_state is None and not hasattr(estimator, "classes_")


@pytest.mark.slow  # starts two worker processes
def test_parallel_releases_give_the_same_table(split):
    first, second = sweep(split), sweep(split, n_jobs=2)
    pd.testing.assert_frame_equal(first, second)
    assert first.attrs["epsilon_total"] == second.attrs["epsilon_total"]


def test_unlike_guarantees_are_totalled_and_compared_apart(split):
    table = sweep(split, [FakePATE(), AttributePATE()], epsilons=(1.0, 2.0))
    assert "epsilon_total" not in table.attrs
    assert [(g["protects"], g["n_fits"]) for g in table.attrs["guarantees"]] == [
        ("record", 2),
        ("sensitive attribute", 2),
    ]
    alone = sweep(split, epsilons=(1.0, 2.0))
    of_records, of_attributes = (guarantee["epsilon_total"] for guarantee in table.attrs["guarantees"])
    assert of_records == pytest.approx(alone.attrs["epsilon_total"])
    events = [event_of(epsilon) for epsilon in (1.0, 1.0, 2.0, 2.0)]  # fits for records have seen the attribute
    assert of_attributes == pytest.approx(epsilon_of(compose(*events), 1e-5))
    record = table[table["protects"] == "record"].reset_index(drop=True)
    pd.testing.assert_series_equal(record["non_dominated"], alone["non_dominated"])


def test_two_estimators_with_like_guarantees_are_totalled_together(split):
    table = sweep(split, {"one": FakePATE(), "two": FakePATE(shrink=2.0)}, epsilons=(1.0,))
    assert set(table["estimator"]) == {"one", "two"} and table.attrs["n_fits"] == 2
    event = event_of(1.0)
    assert table.attrs["epsilon_total"] == pytest.approx(epsilon_of(compose(event, event), 1e-5))


@pytest.mark.parametrize("room", [0.999, 1.001])
def test_a_ledger_without_room_for_all_releases_is_charged_for_none(split, room):
    model = FairPATEClassifier(classes=[0, 1], n_teachers=20, gamma=None)
    events = [
        clone(model).set_params(epsilon=epsilon).planned_privacy(split.X, split.y, X_public=split.public).event
        for epsilon in (0.5, 1.0)
    ]
    ledger = PrivacyLedger(epsilon=room * epsilon_of(compose(*events), 1e-5))
    given = {"epsilons": (0.5, 1.0), "gammas": (None,), "idp3": (False,)}
    with contextlib.nullcontext() if room > 1 else pytest.raises(BudgetExceededError, match=r"^frontier would bring"):
        sweep(split, clone(model).set_params(ledger=ledger), **given)
    assert len(ledger.entries) == (2 if room > 1 else 0)


def test_estimator_that_ignores_its_ledger_is_still_counted(split):
    class Forgetful(FakePATE):
        def fit(self, X, y, *, sensitive_features=None, X_public=None):
            kept, self.ledger = self.ledger, None
            super().fit(X, y, X_public=X_public)
            self.ledger = kept
            return self

    assert sweep(split, Forgetful()).attrs["epsilon_total"] == pytest.approx(sweep(split).attrs["epsilon_total"])


class Retries(FakePATE):
    """Its first attempt is charged and fails; under another relation for one of them."""

    attempt = None

    def fit(self, X, y, **public):
        if self.ledger is not None:
            first = FakePATE if self.attempt is None else self.attempt
            first(epsilon=self.epsilon, ledger=self.ledger).fit(X, y)
        return super().fit(X, y, **public)


@pytest.mark.few(1)
@pytest.mark.parametrize("ledger", [None, "given"])
def test_what_a_failed_attempt_was_charged_stays_in_the_total(ledger):
    split = make_split()
    given = None if ledger is None else PrivacyLedger(delta=1e-5)
    table = sweep(split, Retries(ledger=given), epsilons=(1.0, 2.0))
    events = [event_of(epsilon) for epsilon in (1.0, 1.0, 2.0, 2.0)]
    assert table.attrs["epsilon_total"] == pytest.approx(epsilon_of(compose(*events), 1e-5))
    assert table.attrs["n_fits"] == 2
    both = sweep(split, [Retries(ledger=given), FakePATE()], epsilons=(1.0,))
    assert both.attrs["epsilon_total"] == pytest.approx(epsilon_of(compose(*[event_of(1.0)] * 3), 1e-5))


@pytest.mark.filterwarnings("ignore:.*Keep to one kind")
def test_an_attempt_under_another_relation_has_a_total_of_its_own(split):
    class Elsewhere(Retries):
        attempt = AttributePATE

    guarantees = sweep(split, Elsewhere(), epsilons=(1.0,)).attrs["guarantees"]
    assert [(g["protects"], g["n_fits"]) for g in guarantees] == [("record", 1), ("sensitive attribute", 0)]
    both = epsilon_of(compose(event_of(1.0), event_of(1.0)), 1e-5)
    assert [g["epsilon_total"] for g in guarantees] == pytest.approx([1.0, both])


class GuestPATE(FakePATE):
    """Protects records too, but its neighbours add or remove one: another ε is meant by the same figure."""

    neighboring_relation = "add or remove one record"


def test_rows_of_unlike_relations_are_never_compared():
    """Same data, same protection, the same gap and accuracy at a smaller ε: under another relation it beats nothing."""
    split = make_split()
    table = sweep(split, [FakePATE(), GuestPATE()], epsilons=(2.0,), gammas=(0.05,), idp3=(False,))
    assert table["accuracy"].nunique() == 1 and table["neighboring_relation"].nunique() == 2
    table.loc[1, "epsilon"] = 0.1
    assert mark_non_dominated(table).tolist() == [True, True]
    assert mark_non_dominated(table.assign(neighboring_relation="replace one record")).tolist() == [False, True]
    guarantees = sweep(split, [FakePATE(), GuestPATE()], epsilons=(1.0, 2.0)).attrs["guarantees"]
    assert [g["neighboring_relation"] for g in guarantees] == ["replace one record", "add or remove one record"]
    assert guarantees[0]["epsilon_total"] == guarantees[1]["epsilon_total"] < 3.0  # of two fits each, not of four


def test_seeded_noise_is_reported_as_no_guarantee(split):
    table = sweep(split, FakePATE(noise_seed=0), epsilons=(1.0,))
    assert math.isinf(table["epsilon"].iloc[0]) and math.isinf(table.attrs["epsilon_total"])


def test_measured_figures_are_those_of_the_definitions(split):
    table = sweep(split, epsilons=(1.0,), gammas=(0.1,), idp3=(False,))
    model = FakePATE(gamma=0.1).fit(split.X, split.y)
    predicted, groups = model.predict(split.X_test), split.sensitive_features_test
    row = table.iloc[0]
    assert row["accuracy"] == pytest.approx(np.mean(predicted == split.y_test)) and row["coverage"] == 1
    rates = [np.mean(predicted[groups == z]) for z in (0, 1)]
    assert row["disparity"] == pytest.approx(abs(rates[0] - rates[1]))


def test_idp3_rows_hold_gamma_and_count_only_what_was_answered(split):
    table = sweep(split, epsilons=(1.0,), gammas=(0.02, 0.1))
    refusing, plain = table[table["idp3"]], table[~table["idp3"]]
    assert (refusing["coverage"] < 1).all() and (plain["coverage"] == 1).all()
    assert (refusing["disparity"] <= refusing["gamma"] + 0.01).all() and (plain["disparity"] > 0.1).all()


def test_idp3_only_works_on_the_student_that_no_gamma_constrained(split):
    table = sweep(split, epsilons=(1.0,), gammas=(0.05,), idp3=(True, "only"))
    assert table["idp3"].all() and (table["gamma"] == 0.05).all()
    assert table["student_gamma"][0] == 0.05 and np.isnan(table["student_gamma"][1])
    assert "gamma=0.05" in table["params"][0] and "gamma=None" in table["params"][1]
    free = FakePATE(gamma=None).fit(split.X, split.y)
    refusing = IDP3(FrozenEstimator(free), gamma=0.05).fit(
        split.X_public, sensitive_features=split.sensitive_features_public
    )
    answers = refusing.predict(split.X_test, sensitive_features=split.sensitive_features_test)
    assert table["coverage"][1] == pytest.approx(np.mean(answers != -1))
    assert table["accuracy"][1] == pytest.approx(np.mean((answers == split.y_test)[answers != -1]))


def test_mark_of_non_dominated_rows_is_the_definition(split):
    table = sweep(split)
    columns = ["epsilon", "disparity", "accuracy", "coverage"]
    expected = pareto_frontier(table[columns].to_numpy(), [True, True, False, False])
    expected &= table["accuracy"] >= table.attrs["references"][0]["accuracy"]  # of one class for everybody
    assert table["non_dominated"].tolist() == expected.tolist() and 0 < expected.sum() < len(table)


def test_public_rows_reach_the_estimator_whole(split):
    sweep(
        split,
        X_public=split.X_public,
        sensitive_features_public=split.sensitive_features_public,
        epsilons=(1.0,),
        sensitive_features=split.sensitive_features,
    )
    public, groups = FITS[0][3], FITS[0][4]
    assert isinstance(public, PublicData) and len(public.X) == len(split.X_public)
    np.testing.assert_array_equal(public.sensitive_features, split.sensitive_features_public)
    assert groups is split.sensitive_features


def test_params_are_the_call_that_makes_the_model(split):
    table = sweep(split, FakePATE(shrink=0.5), epsilons=(2.0,), gammas=(0.05, None), idp3=(False,))
    assert table["params"].tolist() == [
        "FakePATE(epsilon=2.0, delta=1e-05, gamma=0.05, shrink=0.5)",
        "FakePATE(epsilon=2.0, delta=1e-05, gamma=None, shrink=0.5)",
    ]
    assert isinstance(eval(table["params"][0]), FakePATE)


def test_labels_and_groups_may_be_strings():
    X, y, groups = make_biased_classification(2000, disparity=0.2, random_state=1)
    rows = X, np.array(["no", "yes"])[y], np.array(["a", "b"])[groups]
    split = train_private_public_test_split(*rows, sizes=(0.5, 0.2, 0.3), random_state=0)
    table = sweep(split, epsilons=(1.0,))
    assert table["accuracy"].between(0.5, 1).all() and table["coverage"].between(0.1, 1).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"epsilons": (0.0,)}, "'epsilons' parameter of frontier must be positive finite numbers"),
        ({"epsilons": (np.inf,)}, "'epsilons' parameter"),
        ({"epsilons": ()}, "'epsilons' parameter"),
        ({"gammas": (-0.1,)}, "'gammas' parameter of frontier must be numbers in"),
        ({"gammas": ()}, "'gammas' parameter"),
        ({"idp3": (2,)}, "'idp3' parameter of frontier must be a sequence of False"),
        ({"gammas": (None,), "idp3": (True,)}, "nothing to do"),
        ({"y_test": [0, 1]}, "y_test of frontier has inconsistent length"),
        ({"X_test": np.zeros((3, 10))}, "y_test of frontier has inconsistent length"),
        ({"estimators": {}}, "'estimators' parameter of frontier is empty"),
        ({"estimators": BaseEstimator()}, "cannot sweep 'BaseEstimator'"),
        ({"estimators": FairDPSGDRegressor(bounds=(0, 1))}, "'FairDPSGDRegressor' predicts amounts"),
        ({"estimators": SFPATEClassifier()}, "cannot sweep 'SFPATEClassifier'"),  # it has no weight of parity
        ({"estimators": [FakePATE(), FakePATE(delta=1e-6)]}, "must have the same 'delta'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(split, kwargs, message):
    with pytest.raises(ValueError, match=message):
        sweep(split, **kwargs)
    assert FITS == []


def test_progress_is_shown_only_when_asked_for(split, capsys):
    sweep(split, epsilons=(1.0,))
    assert capsys.readouterr().err == ""
    sweep(split, epsilons=(1.0,), verbose=1)
    assert "13/13" in capsys.readouterr().err


# ---- a weight in place of γ ----------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_weights_of_a_student_loss_are_swept_from_one_release():
    from skfairdp import FairPATEClassifier

    split = train_private_public_test_split(
        *make_biased_classification(3000, disparity=0.3, random_state=0), random_state=0
    )
    ledger = PrivacyLedger()
    model = FairPATEClassifier(
        gate=None, student=ParityPenaltyStudent(), n_teachers=10, classes=[0, 1], ledger=ledger, epsilon=9.0
    )
    frame = frontier(
        model, split.X, split.y, X_public=split.public, X_test=split.X_test, y_test=split.y_test,
        sensitive_features_test=split.sensitive_features_test, epsilons=(5.0, 20.0), lams=(0.0, 3.0),
        gammas=(0.1, None),
        idp3=(False, True), random_state=0,
    )  # fmt: skip
    assert len(ledger.entries) == 2 == frame.attrs["n_fits"]
    assert frame["lam"].tolist() == [0.0, 0.0, 3.0, 3.0] * 2
    assert frame["idp3"].tolist() == [False, True] * 4
    assert frame["params"].str.contains("penalty_weight=3.0").tolist() == [False, False, True, True] * 2
    answered = frame[~frame["idp3"]].set_index(["lam", "epsilon"])["disparity"].groupby("lam").mean()
    assert answered[3.0] < answered[0.0]


@pytest.mark.slow
def test_weights_of_dpsgd_cost_a_fit_each():
    from skfairdp import FairDPSGDClassifier
    from skfairdp.gradient import mlp

    split = train_private_public_test_split(
        *make_biased_classification(2000, disparity=0.3, random_state=0), random_state=0
    )
    model = FairDPSGDClassifier(net=mlp((4,), max_epochs=1, batch_size=200), classes=[0, 1])
    frame = frontier(
        {"DP-SGD": model}, split.X, split.y, X_public=split.public, X_test=split.X_test, y_test=split.y_test,
        sensitive_features_test=split.sensitive_features_test, epsilons=(1.0,), lams=(0.0, 2.0), gammas=(0.1,),
    )  # fmt: skip
    assert frame.attrs["n_fits"] == 2 and frame.attrs["epsilon_total"] > 1.2
    assert frame["lam"].tolist() == [0.0, 0.0, 2.0, 2.0] and frame["idp3"].tolist() == [False, True] * 2
    assert set(frame["neighboring_relation"]) == {"replace one record by a null record"}


@pytest.mark.parametrize("lams", [(), (-1.0,), (np.inf,)])
def test_weights_out_of_range_are_errors(lams, split):
    with pytest.raises(ValueError, match="'lams' parameter of frontier"):
        sweep(split, lams=lams)


def test_joined_tables_and_measured_models_count_what_fits_for_records_tell_of_the_attribute(split):
    class Null(FakePATE):
        neighboring_relation = "replace one record by a null record"

    one, other = (model.fit(split.X, split.y) for model in (Null(), AttributePATE()))
    rows = split.X_test, split.y_test
    table = measure_estimators([one, other], *rows, sensitive_features=split.sensitive_features_test)
    alone = measure_estimators(one, *rows, sensitive_features=split.sensitive_features_test)
    pd.testing.assert_frame_equal(alone.iloc[:, 2:], table.iloc[:1, 2:])
    of_records, of_attributes = (record["epsilon_total"] for record in table.attrs["guarantees"])
    assert of_records == one.privacy_.epsilon
    twice = GaussianDpEvent(event_of(1.0).noise_multiplier / 2)
    assert of_attributes == pytest.approx(epsilon_of(compose(twice, event_of(1.0)), 1e-5))
    apart = [sweep(split, model, epsilons=(1.0,)) for model in (Null(), AttributePATE())]
    joined = {g["protects"]: g["epsilon_total"] for g in join_frontiers(apart).attrs["guarantees"]}
    assert joined["record"] == apart[0].attrs["epsilon_total"] and math.isnan(joined["sensitive attribute"])


@pytest.mark.parametrize("rows", [{"y": [0]}, {"sensitive_features": [0]}, {"sensitive_features": None}])
def test_what_is_wrong_with_rows_to_measure_on_names_what_was_called(split, rows):
    """Found: errors of measure_estimators named frontier, and arguments that it does not have."""
    given = {"X": split.X_test, "y": split.y_test, "sensitive_features": split.sensitive_features_test} | rows
    with pytest.raises(ValueError, match="measure_estimators") as wrong:
        measure_estimators([FakePATE().fit(split.X, split.y)], **given)
    assert not any(said in str(wrong.value) for said in ("frontier", "_test"))
    with pytest.raises(ValueError, match="frontier"):
        sweep(split, **{f"{name}_test": value for name, value in rows.items()})


def test_rows_to_measure_on_are_read_as_those_of_a_fit_are(split):
    """Found: a column of labels was compared with all predictions, half of them right by chance; rows in another order
    with those of others; and numbers with texts, none of which was ever right."""
    model, groups = FakePATE().fit(split.X, split.y), split.sensitive_features_test
    X, y = pd.DataFrame(split.X_test), pd.Series(split.y_test)
    right = measure_estimators([model], X, y, sensitive_features=groups)["accuracy"].item()
    with pytest.warns(DataConversionWarning):
        column = measure_estimators([model], X, y.to_frame(), sensitive_features=groups)
    assert column["accuracy"].item() == right == np.mean(model.predict(split.X_test) == split.y_test)
    with pytest.raises(ValueError, match="y of measure_estimators has another index than X"):
        measure_estimators([model], X, y[::-1], sensitive_features=groups)
    with pytest.raises(ValueError, match="measure_estimators got texts as labels and no texts as predictions"):
        measure_estimators([model], X, y.astype(str), sensitive_features=groups)
    FITS.clear()
    with pytest.raises(ValueError, match="frontier got texts as labels and no texts as predictions"):
        sweep(split, y_test=split.y_test.astype(str))
    assert FITS == []
