"""An object's own ε composes what it holds or was chosen by, and travels with it."""

import copy
import json
import pickle
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from skorch import NeuralNetClassifier

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    PFLDClassifier,
    PrivacyLedger,
    PublicData,
    PublicPreprocessor,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
    privacy as dp,
)
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.gradient import mlp
from skfairdp.model_selection import ParetoSearchCV
from skfairdp.pate import FairTeachers
from skfairdp.postprocessing import PrivateThresholds
from skfairdp.privacy import PrivacySpent, compose, composed, epsilon_of, privacy_of
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import PerformedRelease, UnreadableStatementError, carrying, held_by, record_of, verify_file

RECORD = {"protects": "record", "neighboring_relation": "replace one record"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age, sex = rng.integers(18, 91, 3000), rng.choice(["f", "m"], 3000)
    rich = np.where(age + 20 * (sex == "m") + rng.normal(0, 10, 3000) > 70, "yes", "no")
    return pd.DataFrame({"age": age, "hours": rng.normal(40, 10, 3000), "sex": sex, "rich": rich})


@pytest.fixture(scope="module")
def schema(table):
    return Schema.release(table, epsilon=1.0, delta=1e-6, label="rich", groups="sex")


@pytest.fixture(scope="module")
def model(table, schema):
    return FairPATEClassifier(epsilon=1.0, schema=schema, random_state=0).fit(table)


def verified(document, tmp_path):
    path = tmp_path / "statement.json"
    path.write_text(json.dumps(document), "utf-8")
    return [check.figure for check in verify_file(path) if not check.holds]


# ---- schemas that were paid for --------------------------------------------------------------------------------------
def test_a_model_costs_its_own_releases_and_those_of_its_schema(model, schema, table, tmp_path):
    own = model.privacy_.own
    both = epsilon_of(compose(own.event, schema.privacy_.event), 1e-5)
    assert own.epsilon == pytest.approx(1.0, rel=1e-3)
    assert model.privacy_.epsilon == pytest.approx(both, rel=1e-12) and both == pytest.approx(1.371, abs=2e-3)
    assert model.planned_privacy(table).epsilon == pytest.approx(both, rel=1e-12)
    fact = next(fact for fact in model.privacy_.public if fact.name == "columns of X")
    assert fact.how == "released" and fact.releases == (schema.privacy_.release,)
    document = model.privacy_statement().to_dict()
    assert document["epsilon"] == model.privacy_.epsilon and verified(document, tmp_path) == []


WAYS = {
    "pickle": lambda schema, path: pickle.loads(pickle.dumps(schema)),
    "copy": lambda schema, path: copy.deepcopy(schema),
    "to_dict": lambda schema, path: Schema.from_dict(json.loads(json.dumps(schema.to_dict()))),
    "yaml": lambda schema, path: (schema.save(path / "s.yaml"), Schema.load(path / "s.yaml"))[1],
    "json": lambda schema, path: (schema.save(path / "s.json"), Schema.load(path / "s.json"))[1],
    "its columns": lambda schema, path: Schema(schema.columns, label="rich", groups="sex"),
    "a file whose columns say no more who found them": lambda schema, path: without_origins(schema),
    "the columns of such a file": lambda schema, path: Schema(
        without_origins(schema).columns, label="rich", groups="sex"
    ),
}


def without_origins(schema):
    content = schema.to_dict()
    for column in content["columns"].values():
        column.pop("released", None)
    return Schema.from_dict(Schema.from_dict(content).to_dict())


@pytest.mark.parametrize("way", WAYS)
def test_a_schema_keeps_what_was_paid_for_it(way, schema, model, table, tmp_path):
    travelled = WAYS[way](schema, tmp_path)
    assert travelled == schema and travelled.privacy_.release == schema.privacy_.release
    planned = FairPATEClassifier(epsilon=1.0, schema=travelled, random_state=0).planned_privacy(table)
    assert planned.epsilon == pytest.approx(model.privacy_.epsilon, rel=1e-9)


def test_clones_and_pickles_of_a_model_keep_it(model, table):
    assert pickle.loads(pickle.dumps(model)).privacy_.parts == model.privacy_.parts != ()
    assert clone(model).planned_privacy(table).epsilon == pytest.approx(model.privacy_.epsilon, rel=1e-12)


def test_a_file_that_hides_the_price_is_refused(schema):
    content = schema.to_dict()
    without = {key: value for key, value in content.items() if key != "releases"}
    cheaper = copy.deepcopy(content)
    cheaper["releases"][0]["epsilon"] = 0.1
    for edited in (without, cheaper):
        with pytest.raises(ValueError, match="edited"):
            Schema.from_dict(edited)


PARTS = {
    "a column with other bounds": lambda schema: replace(schema.columns["age"], high=120),
    "a group that may be missing": lambda schema: replace(schema.columns["sex"], missing=True, others=None),
    "some classes": lambda schema: schema.classes[:1],
    "classes and more": lambda schema: ("none",) + schema.classes + ("other",),  # noqa: RUF005
    "a column of such values": lambda schema: Category(schema.group_values),
    "a copy": lambda schema: copy.deepcopy(schema.columns["hours"]),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_schema_keeps_what_was_paid_for_it(part, schema):
    kept = PARTS[part](schema)
    assert kept.privacy_.release == schema.privacy_.release
    if not isinstance(kept, tuple):
        alone = Schema({"age": Number(0, 1), "sex": Category(["f", "m"]), "a": kept}, groups="sex")
        assert alone.privacy_.release == schema.privacy_.release
        assert pickle.loads(pickle.dumps(kept)).privacy_.release == schema.privacy_.release


def test_a_group_that_gets_a_value_for_the_missing_keeps_its_price(schema):
    sex = replace(schema.columns["sex"], missing=True, others=None)
    alone = Schema({"age": Number(0, 1), "sex": sex}, groups="sex")
    assert alone.privacy_.release == schema.privacy_.release and len(alone.group_values) == 3


def test_a_release_that_no_column_names_is_paid_by_all_that_name_none():
    said = {"label": "Schema.release", "on_record": "", **RECORD}
    first, second = (PrivacySpent.of(dp.GaussianDpEvent(z), 1e-6, release=f"by {z}", **said) for z in (3.0, 4.0))
    columns = {"age": {"kind": "number", "low": 0, "high": 9, "released": "by 3.0"}, "sex": {"kind": "boolean"}}
    content = {"columns": columns, "groups": ["sex"], "releases": [record_of(one) for one in (first, second)]}
    found = Schema.from_dict(content).columns
    assert [getattr(found[name].privacy_, "release", None) for name in ("age", "sex")] == ["by 3.0", "by 4.0"]
    del columns["age"]["released"]
    found = Schema.from_dict(Schema.from_dict(content).to_dict())
    alone = Schema({"age": found.columns["age"]})
    assert {part.release for part in alone.privacy_.parts} == {"by 3.0", "by 4.0"}


def test_a_column_of_a_file_says_its_price_under_releases_only(schema):
    content = schema.to_dict()
    content["columns"]["age"]["privacy_"] = None
    with pytest.raises(ValueError, match="give its cost under 'releases'"):
        Schema.from_dict(content)
    for wrong in ("another", ["another"], 3, [["another"]]):
        content = schema.to_dict()
        content["columns"]["age"]["released"] = wrong
        with pytest.raises(ValueError, match=r"\['age'\] of a Schema are marked .* incomplete or were edited"):
            Schema.from_dict(content)


# ---- what a fit hands out --------------------------------------------------------------------------------------------
class Shown(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


HANDED_ON = {
    "a net": lambda model: {"net": model.net_},
    "its module": lambda model: {"net": model.net_.module_},
    "a net around its module": lambda model: {"net": NeuralNetClassifier(model.net_.module_, lr=1e-7)},
    "a copy of it": lambda model: {"net": pickle.loads(pickle.dumps(copy.deepcopy(model.net_)))},
}


X, Y, GROUPS = make_biased_classification(600, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def trained():
    return FairDPSGDClassifier(epsilon=4.0, lam=0.0, net=Shown, classes=[0, 1], random_state=0).fit(X, Y)


@pytest.mark.parametrize("way", HANDED_ON)
def test_a_net_that_was_trained_on_private_rows_costs_what_it_cost_wherever_it_goes_on(way, trained):
    """With a small rate and few steps the second fit answers as the first does: its ε alone would be 0.1."""
    again = FairDPSGDClassifier(epsilon=0.1, lam=0.0, classes=[0, 1], random_state=0, **HANDED_ON[way](trained))
    planned = again.planned_privacy(X, Y)
    assert planned.epsilon >= trained.privacy_.epsilon and planned.epsilon == again.fit(X, Y).privacy_.epsilon
    once_more = FairDPSGDClassifier(epsilon=0.1, lam=0.0, classes=[0, 1], net=again.net_)
    assert len(once_more.planned_privacy(X, Y).parts) == 3


def test_a_net_of_the_lagrangian_carries_what_was_paid_for_it():
    model = PFLDClassifier(epsilon=2.0, net=Shown, classes=[0, 1], groups=[0, 1], random_state=0)
    model.fit(X, Y, sensitive_features=GROUPS)
    other = PFLDClassifier(epsilon=1.0, net=model.net_.module_, classes=[0, 1], groups=[0, 1])
    assert other.planned_privacy(X, Y, sensitive_features=GROUPS).epsilon > 2.0


LEARNERS = {
    "student of PATE": lambda: (PATEClassifier(epsilon=2.0, classes=[0, 1], random_state=0), "student_"),
    "own student of PATE": lambda: (
        PATEClassifier(epsilon=2.0, classes=[0, 1], student=LogisticRegression(), random_state=0),
        "student_",
    ),
    "student of FairPATE": lambda: (
        FairPATEClassifier(epsilon=2.0, classes=[0, 1], groups=[0, 1], random_state=0),
        "student_",
    ),
    "learner of synthetic rows": lambda: (
        SyntheticDataClassifier(epsilon=2.0, classes=[0, 1], groups=[0, 1], bounds=(-9, 9), random_state=0),
        "estimator_",
    ),
    "learner of randomised groups": lambda: (
        RandomizedResponseClassifier(epsilon=2.0, classes=[0, 1], groups=[0, 1], random_state=0),
        "fair_estimator_",
    ),
    "student of SF-PATE": lambda: (
        SFPATEClassifier(epsilon=2.0, classes=[0, 1], groups=[0, 1], random_state=0),
        "student_",
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("which", LEARNERS)
def test_a_learner_taken_out_of_a_model_says_what_was_paid_for_it(which):
    model, name = LEARNERS[which]()
    given = {} if "of PATE" in which else {"sensitive_features": GROUPS}
    learner = getattr(model.fit(X, Y, **given), name)
    assert learner.privacy_ == model.privacy_
    assert getattr(clone(learner, safe=False), "privacy_", None) is None or not hasattr(learner, "get_params")
    kept = {part.release for part in held_by(SyntheticDataClassifier(FrozenEstimator(learner)))}
    assert model.privacy_.own.release in kept


def net_of(module):
    return {"net": module}


AROUND = {
    "a module around it": lambda net: net_of(torch.nn.Sequential(net.module_)),
    "a new head on an old body": lambda net: net_of(
        torch.nn.Sequential(*net.module_.children(), torch.nn.Linear(2, 2))
    ),
    "one layer of it": lambda net: net_of(torch.nn.Sequential(next(net.module_.children()), torch.nn.Linear(4, 2))),
    "a function that makes it": lambda net: net_of(partial(copy.deepcopy, net.module_)),
}


@pytest.mark.parametrize("way", AROUND)
def test_a_network_with_trained_parts_inside_costs_what_these_have_cost(way, trained):
    paid = held_by(FairDPSGDClassifier(**AROUND[way](trained.net_)))
    assert {spent.release for spent in paid} == {trained.privacy_.release}


HIDDEN = {
    "a closure": lambda module: lambda: copy.deepcopy(module),
    "a default of a function": lambda module: lambda given=module: torch.nn.Sequential(copy.deepcopy(given)),
    "a skorch net of a closure": lambda module: NeuralNetClassifier(lambda: copy.deepcopy(module)),
}


@pytest.mark.parametrize("way", HIDDEN)
def test_a_network_whose_price_a_function_hides_is_refused_before_anything_is_spent(way, trained):
    ledger = PrivacyLedger(epsilon=10.0)
    model = FairDPSGDClassifier(lam=0.0, net=HIDDEN[way](trained.net_.module_), classes=[0, 1], ledger=ledger)
    with pytest.raises(ValueError, match="parts that were trained on private rows"):
        model.fit(X, Y)
    assert not ledger.entries


def test_options_of_a_net_that_were_trained_are_composed_and_allowed(trained):
    class Head(torch.nn.Module):
        def __init__(self, body=None):
            super().__init__()
            self.body, self.last = body, torch.nn.Linear(2, 2)

        def forward(self, X):
            return self.last(self.body(X))

    net = NeuralNetClassifier(Head, module__body=trained.net_.module_)
    model = FairDPSGDClassifier(epsilon=0.1, lam=0.0, net=net, classes=[0, 1], random_state=0).fit(X, Y)
    assert model.privacy_.epsilon >= trained.privacy_.epsilon


def test_the_winner_of_a_search_costs_the_search_in_all_its_parts():
    model = FairDPSGDClassifier(lam=0.0, net=Shown, classes=[0, 1], random_state=0)
    asked = {"epsilon": [0.5, 1.0]}
    search = ParetoSearchCV(model, asked, scoring=("accuracy", "epsilon"), cv=KFold(2), random_state=0)
    winner = search.fit(X, Y).best_estimator_
    parts = [winner.net_, winner.net_.module_, *winner.net_.module_.modules()]
    assert all(part.privacy_ == winner.privacy_ for part in parts)
    assert winner.privacy_.epsilon > winner.epsilon


CONTAINERS = {
    "vote": lambda model: VotingClassifier([("a", FrozenEstimator(model)), ("b", LogisticRegression())]),
    "stack": lambda model: StackingClassifier([("a", FrozenEstimator(model))], LogisticRegression()),
    "first guess of boosting": lambda model: GradientBoostingClassifier(init=FrozenEstimator(model)),
    "function of a step": lambda model: make_pipeline(FunctionTransformer(model.predict_proba), LogisticRegression()),
    "partial function of a step": lambda model: make_pipeline(
        FunctionTransformer(partial(model.predict_proba)), LogisticRegression()
    ),
    "step beside others": lambda model: make_pipeline(
        FeatureUnion([("a", FunctionTransformer(model.predict_proba))]), LogisticRegression()
    ),
    "step for columns": lambda model: make_pipeline(
        ColumnTransformer([("a", FunctionTransformer(model.predict_proba), [0, 1, 2, 3])]), LogisticRegression()
    ),
    "step that was fitted on public rows": lambda model: make_pipeline(
        PublicPreprocessor(FunctionTransformer(model.predict_proba), X[:50]), LogisticRegression()
    ),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_private_model_inside_of_any_container_is_composed(kind, trained):
    learner = CONTAINERS[kind](trained)
    release = trained.privacy_.release
    for holder in (
        PATEClassifier(teacher=learner),
        SyntheticDataClassifier(learner),
        SFPATEClassifier(variant=FairTeachers(student=learner)),
    ):
        assert release in {spent.release for spent in held_by(holder)}
    assert release in {spent.release for spent in held_by({"teacher": [None, learner]})}  # the grid of a search


def test_what_synthetic_rows_say_of_columns_carries_the_price_of_their_generator():
    model = SyntheticDataClassifier(epsilon=2.0, classes=[0, 1], groups=[0, 1], bounds=(-9, 9), random_state=0)
    model.fit(X, Y, sensitive_features=GROUPS)
    assert model.encoder_.schema.privacy_.release == model.privacy_.release


def test_a_learner_that_came_fitted_keeps_what_it_says(trained):
    frozen = FrozenEstimator(trained)
    assert carrying(frozen, "another") is frozen and frozen.estimator.privacy_ is trained.privacy_


def test_a_private_learner_of_released_rows_says_what_these_cost_as_well():
    learner = FairDPSGDClassifier(epsilon=0.1, lam=0.0, net=mlp(max_epochs=1), classes=[0, 1], random_state=0)
    model = SyntheticDataClassifier(learner, classes=[0, 1], groups=[0, 1], bounds=(-9, 9), random_state=0)
    model.fit(X, Y, sensitive_features=GROUPS)
    said = model.estimator_.privacy_
    assert [part.label for part in said.parts] == ["SyntheticDataClassifier", "FairDPSGDClassifier"]
    assert said.epsilon == privacy_of(model.estimator_).epsilon > model.privacy_.epsilon


@pytest.mark.parametrize("inside", ["a pipeline", "a search in a pipeline"])
def test_a_private_learner_inside_of_another_one_says_what_its_rows_cost(inside):
    learner = PATEClassifier(epsilon=0.1, classes=[0, 1], random_state=0)
    found = GridSearchCV(learner, {"delta": [1e-5]}, cv=2) if inside == "a search in a pipeline" else learner
    outer = make_pipeline(StandardScaler(), found)
    model = SyntheticDataClassifier(outer, classes=[0, 1], groups=[0, 1], bounds=(-9, 9), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a learner beside a scaler, and of few rows
        model.fit(X, Y, sensitive_features=GROUPS)
    found = model.estimator_[-1]
    for one in (getattr(found, "best_estimator_", found), getattr(found, "best_estimator_", found).student_):
        assert [part.label for part in one.privacy_.parts] == ["SyntheticDataClassifier", "PATEClassifier"]
        assert one.privacy_.epsilon > model.privacy_.epsilon


def test_a_learner_that_protects_groups_alone_says_what_its_rows_cost():
    groups = {"protects": "sensitive attribute", "neighboring_relation": "replace one sensitive attribute"}
    records, own = (PrivacySpent.of(dp.LaplaceDpEvent(4.0), 0.0, **of) for of in (RECORD, groups))
    learner = LogisticRegression()
    learner.privacy_ = own
    assert carrying(learner, records).privacy_ is records


def test_each_release_counts_once(schema, model):
    assert composed(model.privacy_, schema.privacy_).epsilon == model.privacy_.epsilon
    assert (schema.privacy_ + schema.privacy_).epsilon == schema.privacy_.epsilon
    twin = PrivacySpent.of(schema.privacy_.event, 1e-6, **RECORD)  # of another release, alike
    assert (schema.privacy_ + twin).epsilon > 1.4


def test_beside_a_pure_guarantee_the_total_is_stated_at_the_delta_of_the_others(schema):
    pure = PrivacySpent.of(dp.LaplaceDpEvent(4.0), 0.0, **RECORD)
    total = composed(pure, schema.privacy_)
    assert total.delta == schema.privacy_.delta and 1.0 < total.epsilon <= 1.25


# ---- winners ---------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning", "ignore::skfairdp.exceptions.FairnessWarning")
def test_a_winner_states_what_the_search_has_cost(tmp_path):
    split = train_private_public_test_split(*make_biased_classification(1500, random_state=0), random_state=0)
    groups, (rows, more) = split.sensitive_features, make_biased_classification(100, random_state=1)[:2]
    validation = PublicData(rows, make_biased_classification(100, random_state=1)[2], y=more)
    model = PATEClassifier(epsilon=1.0, n_teachers=8, classes=[0, 1], public_data=split.public)
    search = ParetoSearchCV(model, {"epsilon": [0.5, 1.0]}, scoring=("accuracy", "epsilon"), random_state=0)
    winner = search.fit(split.X, split.y, validation=validation).best_estimator_
    assert winner.privacy_ == search.privacy_ and winner.privacy_.epsilon > 1.05
    costs = [
        PrivateThresholds(inside, epsilon=0.5, groups=[0, 1], random_state=0)
        .fit(split.X, split.y, sensitive_features=groups)
        .privacy_.epsilon
        for inside in (winner, search, pickle.loads(pickle.dumps(winner)))
    ]
    assert costs[0] == costs[1] == costs[2] > search.privacy_.epsilon
    assert verified(winner.privacy_statement().to_dict(), tmp_path) == []


# ---- what verify refuses ---------------------------------------------------------------------------------------------
def statement(event, *performed, **options):
    made, public = [PerformedRelease(*row) for row in performed], ["names"] * bool(performed)
    spent = PrivacySpent.of(event, 1e-5, performed=made, public=public, **RECORD)
    return spent.statement(subject="a mean", **options).to_dict()


GAUSSIAN, ROW = dp.GaussianDpEvent(4.0), ("GaussianMechanism", 1.0, 4.0, 1)
UNPAID = {
    "less noise": (GAUSSIAN, ("GaussianMechanism", 1.0, 0.004, 1)),
    "once more": (GAUSSIAN, ("GaussianMechanism", 1.0, 4.0, 2)),
    "beside rare disclosures": (compose(GAUSSIAN, dp.RareDisclosure(1e-6)), ("GaussianMechanism", 1.0, 0.004, 500)),
    "beside Laplace noise": (compose(GAUSSIAN, dp.LaplaceDpEvent(4.0)), ("GaussianMechanism", 1.0, 0.004, 1)),
    "less Laplace noise": (dp.LaplaceDpEvent(4.0), ("LaplaceCounts", 1.0, 0.4, 1)),
    "inside of a selection": (dp.RepeatAndSelectDpEvent(GAUSSIAN, 5.0, 0.0), ROW),
    "answers by chance": (GAUSSIAN, ("RandomizedResponse", None, None, 1)),
}


@pytest.mark.parametrize("name", UNPAID)
def test_verify_refuses_what_was_not_paid_for(name, tmp_path):
    event, row = UNPAID[name]
    assert "releases made" in verified(statement(event, row), tmp_path)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", UNPAID)
def test_verify_admits_what_was_paid_for(name, tmp_path):
    event, _ = UNPAID[name]
    paid = statement(compose(event, GAUSSIAN, dp.LaplaceDpEvent(4.0)), ROW, ("LaplaceCounts", 1.0, 2**0.5 * 4.0, 1))
    assert verified(paid, tmp_path) == []


@pytest.mark.parametrize(
    "row",
    [
        ("PoissonSample", None, None, 0),
        ("PoissonSample", None, None, 1),
        ("GaussianMechanism", 1.0, None, 1),
        ("GaussianMechanism", None, 4.0, 1),
        ("RandomizedResponse", 1.0, 4.0, 1),
    ],
)
def test_verify_refuses_releases_without_figures(row, tmp_path):
    for rows in ((row,), (row, ROW), (("GaussianMechanism", 1.0, 0.004, 1), row)):
        with pytest.raises(UnreadableStatementError):
            verified(statement(GAUSSIAN, *rows), tmp_path)


def test_verify_refuses_bounds_of_gaps(tmp_path):
    honest = statement(GAUSSIAN, gap_bound=0.1)
    assert verified(honest, tmp_path) == [] and "gap_bound" not in honest
    for most in (-3.0, 0.1):
        with pytest.raises(UnreadableStatementError, match="'gap_bound', and it was not checked"):
            verified(honest | {"gap_bound": {"at_most": most, "confidence": 0.95}}, tmp_path)


def test_verify_refuses_a_ledger_without_the_fit(tmp_path):
    ledger = PrivacyLedger(epsilon=5.0)
    assert verified(statement(GAUSSIAN, ledger=ledger), tmp_path) == ["ledger: this fit is on it"]
    ledger.charge(dp.GaussianDpEvent(4.1), label="another one", **RECORD)
    assert verified(statement(GAUSSIAN, ledger=ledger), tmp_path) == ["ledger: this fit is on it"]
    ledger.charge(GAUSSIAN, label="this one", **RECORD)
    assert verified(statement(GAUSSIAN, ledger=ledger), tmp_path) == []


PLACES = [(), ("performed", 0), ("public", 0), ("curve", 0), ("attack", 0), ("ledger",),
          ("ledger", "entries", 0), ("ledger", "totals", 0), ("versions",), ("event",)]  # fmt: skip


@pytest.mark.parametrize("way", PLACES)
def test_verify_refuses_entries_that_it_does_not_know(way, tmp_path):
    ledger = PrivacyLedger(epsilon=5.0)
    ledger.charge(GAUSSIAN, label="this one", **RECORD)
    spent = PrivacySpent.of(GAUSSIAN, 1e-5, public=["names"], performed=[PerformedRelease(*ROW)], **RECORD)
    document = spent.statement(subject="a mean", ledger=ledger, gap_bound=0.1).to_dict()
    assert verified(document, tmp_path) == []
    place = document
    for step in way:
        place = place[step]
    place["audited by"] = "everybody"
    with pytest.raises(UnreadableStatementError):
        verified(document, tmp_path)


def test_models_inside_of_calibrated_classifiers_are_composed_and_the_calibration_is_told_of():
    X, y, _ = make_biased_classification(400, n_features=4, random_state=0)
    private = FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1], net=mlp((4,), max_epochs=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CalibratedClassifierCV(private, cv=KFold(2)).fit(X, y)
    events = [one.estimator.privacy_.event for one in model.calibrated_classifiers_]
    with pytest.warns(PrivacyLeakWarning, match="_SigmoidCalibration"):  # which learns from private labels
        assert privacy_of(model).epsilon == epsilon_of(compose(*events), 1e-5) > 1.3
