"""``privacy_.public`` is noted by the code that reads: what a fit follows of public values is listed, as it was."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    PFLDClassifier,
    PublicData,
    RandomizedResponseClassifier,
    SFPATEClassifier,
)
from skfairdp.baselines import GroupRandomizer, LagrangianClassifier, ParityLogisticRegression
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.papers import FairClippingClassifier
from skfairdp.privacy import PublicFact, PublicReads
from tests._tools.catalogue import OF_EACH_KIND, SPENDING, what_spent

N = 80
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.arange(N) % 2
G = np.arange(N) // 2 % 2
PUBLIC = PublicData(RNG.normal(size=(30, 3)), np.arange(30) % 2)


def facts_of(model, *rows, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.fit(*rows, **more)
    return {fact.name: fact for fact in fitted.privacy_.public}


def fair(**changes):
    return FairPATEClassifier(**{"classes": [0, 1], "groups": [0, 1], "n_teachers": 4, "random_state": 0, **changes})


# ---- each reading function -------------------------------------------------------------------------------------------
def test_given_public_rows_classes_and_groups_are_listed_as_given():
    facts = facts_of(fair(), X, Y, X_public=PUBLIC)
    assert (facts["number of private rows"].how, facts["number of private rows"].value) == ("read", N)
    assert (facts["public rows"].how, facts["public rows"].value) == ("given", 30)
    assert "with their groups" in facts["public rows"].consequence
    assert (facts["classes"].how, facts["classes"].value) == ("given", [0, 1])
    assert (facts["names of the groups"].how, facts["names of the groups"].value) == ("given", [0, 1])
    assert facts["columns of X"].value == 3
    assert facts["constructor parameters"].how == "given"


def test_names_of_columns_are_listed_where_there_are_some():
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    public = PublicData(pd.DataFrame(PUBLIC.X, columns=frame.columns), PUBLIC.sensitive_features)
    assert facts_of(fair(), frame, Y, X_public=public)["columns of X"].value == ["age", "height", "weight"]


def test_domains_read_from_rows_are_listed_with_what_follows():
    facts = facts_of(fair(classes=None, groups=None), X, Y, X_public=PUBLIC)
    assert facts["classes"].how == "read" and "outside the guarantee" in facts["classes"].consequence
    assert facts["names of the groups"].consequence == "from the public rows"
    fair_estimator = ParityLogisticRegression()
    model = SFPATEClassifier(classes=None, groups=None, epsilon=50, n_teachers=4, fair_estimator=fair_estimator)
    facts = facts_of(model, X, Y, sensitive_features=G)
    assert "outside the guarantee" in facts["names of the groups"].consequence
    assert facts["classes"].consequence == "from y, which is public here"
    assert facts["features and labels"].how == "read"


def test_rows_of_own_tables_are_listed_as_computed():
    facts = facts_of(fair(), X, Y, sensitive_features=G)
    asked = facts["rows asked about"]
    assert (asked.how, asked.value) == ("computed", 1000) and "public rows" not in facts
    assert facts["number of private rows"].value == N


def test_a_declared_number_of_rows_takes_the_place_of_the_true_one():
    model = FairDPSGDClassifier(lam=0, classes=[0, 1], net=mlp(max_epochs=1, batch_size=20), public_n_rows=100)
    facts = facts_of(model, X, Y)
    assert facts["declared number of rows"].value == 100 and "number of private rows" not in facts
    assert (facts["sampling probability"].value, facts["number of steps"].value) == (0.2, 5)
    counted = facts_of(model.set_params(public_n_rows=None), X, Y)
    assert counted["number of private rows"].value == N and "declared number of rows" not in counted


def test_the_randomizer_lists_rows_and_groups():
    randomizer = GroupRandomizer(groups=[0, 1])
    randomizer.release(G)
    names = {fact.name: fact.value for fact in randomizer.privacy_.public}
    assert names["number of private rows"] == N and names["names of the groups"] == [0, 1]
    assert "features and labels" not in names


# ---- nothing is left out ---------------------------------------------------------------------------------------------
def plain(cls, **more):
    return lambda **changes: cls(**{"classes": [0, 1], "groups": [0, 1], "random_state": 0, **more, **changes})


GROUPED, SMALL_NET = {"sensitive_features": G}, mlp(max_epochs=1, batch_size=20)
SMALL_FAIR = LagrangianClassifier(net=SMALL_NET, dual_steps=2)
ESTIMATORS = {
    "pate": (lambda **c: PATEClassifier(**{"classes": [0, 1], "random_state": 0, **c}), {"X_public": PUBLIC.X}),
    "fair_pate": (fair, {"X_public": PUBLIC}),
    "sf_pate": (plain(SFPATEClassifier, epsilon=50, fair_estimator=SMALL_FAIR), GROUPED),
    "pfld": (plain(PFLDClassifier, net=mlp(max_epochs=2), dual_steps=2), GROUPED),
    "dp_sgd": (plain(FairDPSGDClassifier, net=SMALL_NET, parity=SignedLoss(dual_steps=2)), GROUPED),
    "clipping": (plain(FairClippingClassifier, net=SMALL_NET), GROUPED),
    "answers": (plain(RandomizedResponseClassifier), GROUPED),
}


def shortened(more):
    return {name: value[:-7] if name == "sensitive_features" else value for name, value in more.items()}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_public_value_that_is_changed_changes_its_fact_and_no_other_of_its_kind(name):
    """Change one public value at a time: the list tells the two fits apart, and names what was changed."""
    make, more = ESTIMATORS[name]
    before = facts_of(make(), X, Y, **more)

    def changed(after):
        return {fact for fact in before.keys() | after.keys() if before.get(fact) != after.get(fact)}

    fewer = changed(facts_of(make(), X[:-7], Y[:-7], **shortened(more)))
    assert "number of private rows" in fewer
    assert fewer <= {"number of private rows", "sampling probability", "number of steps"}
    wide = np.column_stack([X, X[:, 0]])
    public = {"X_public": np.column_stack([PUBLIC.X, PUBLIC.X[:, 0]])} if name == "pate" else {}
    if name == "fair_pate":
        public = {"X_public": PublicData(np.column_stack([PUBLIC.X, PUBLIC.X[:, 0]]), PUBLIC.sensitive_features)}
    assert changed(facts_of(make(), wide, Y, **{**more, **public})) == {"columns of X"}
    assert changed(facts_of(make(classes=None), X, Y, **more)) == {"classes"}
    if name != "pate":
        assert changed(facts_of(make(groups=None), X, Y, **more)) == {"names of the groups"}
    if "X_public" in more:
        fewer_public = PUBLIC.X[:20] if name == "pate" else PublicData(PUBLIC.X[:20], PUBLIC.sensitive_features[:20])
        assert changed(facts_of(make(), X, Y, X_public=fewer_public)) == {"public rows"}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_two_fits_with_one_list_of_facts_release_under_one_event(name):
    """What the event follows is on the list: other private values change neither, another number of rows the list."""
    make, more = ESTIMATORS[name]

    def fit(rows, labels, **arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spent = make().fit(rows, labels, **arguments).privacy_
        return spent.event, spent.public

    event, public = fit(X, Y, **more)
    if name in ("pate", "fair_pate", "dp_sgd", "clipping"):
        assert fit(-5 * X[::-1], 1 - Y, **more) == (event, public)
    for cut in (N - 7, N // 2):
        arguments = {key: value[:cut] if key == "sensitive_features" else value for key, value in more.items()}
        other_event, other_public = fit(X[:cut], Y[:cut], **arguments)
        assert other_public != public
        assert other_event == event or other_public != public


@pytest.mark.parametrize(
    "fit", [pytest.param(fit, id=fit.name, marks=[pytest.mark.slow] * (fit not in OF_EACH_KIND)) for fit in SPENDING]
)
def test_every_estimator_lists_facts_not_words(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, rows = fit.make(), fit.rows()
        fitted = fit.fit(model, rows)
        fitted = what_spent(model, fitted)
    spent = fitted.privacy_
    facts = {fact.name: fact for fact in spent.public}
    assert all(isinstance(fact, PublicFact) for fact in spent.public), spent.public
    assert "constructor parameters" in facts
    if spent.neighboring_relation.number_is_public:
        read = {fact.name: fact.value for fact in spent.own.public}  # a model inside may have read others
        assert read["number of private rows"] == len(rows.X)
    assert "_reads" not in vars(fitted)


# ---- the facts themselves --------------------------------------------------------------------------------------------
def test_a_fact_is_its_sentence_and_survives_a_pickle():
    fact = PublicFact("classes", "read", np.array(["no", "yes"]), "outside the guarantee")
    assert fact == "classes: no, yes (read; outside the guarantee)"
    again = pickle.loads(pickle.dumps(fact))
    assert (again, again.name, again.how, again.value) == (fact, "classes", "read", ["no", "yes"])


def test_a_later_note_takes_the_place_of_an_earlier_one():
    reads = PublicReads()
    reads.note("number of private rows", "read", 10)
    reads.note("classes", "given", [0, 1])
    reads.note("number of private rows", "read", 7)
    assert [(fact.name, fact.value) for fact in reads] == [("number of private rows", 7), ("classes", [0, 1])]
    reads.drop("classes")
    assert "classes" not in reads


def test_a_failed_fit_leaves_no_facts_for_the_next():
    model = fair(classes=[0, 7])
    with pytest.raises(ValueError, match="not in 'classes'"):
        model.fit(X, Y, X_public=PUBLIC)
    facts = facts_of(model.set_params(classes=[0, 1]), X[:60], Y[:60], X_public=PUBLIC)
    assert facts["number of private rows"].value == 60 and facts["classes"].value == [0, 1]
