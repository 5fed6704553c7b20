"""The frontier of a private table alone: its releases are all that shows, and they cost what is stated."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from skfairdp import SyntheticDataClassifier
from skfairdp.exceptions import BudgetExceededError, UtilityWarning
from skfairdp.model_selection import _own_figures, _own_table, frontier_of_table
from skfairdp.model_selection._own_table import _MODELS, _Budget, _planned, _Release, _split, _Sweep, _to_find, _within
from skfairdp.privacy import (
    CommonValues,
    GaussianDpEvent,
    GaussianMechanism,
    NeighboringRelation,
    PrivacyLedger,
    RareDisclosure,
    compose,
    epsilon_of,
    gdp_mu,
    verify_file,
)
from skfairdp.schema import Category, IncompleteSchemaError, Number, Schema
from tests._tools.inside import LabelFigures, frontier_page
from tests._tools.raw import with_record
from tests._tools.replay import Recording
from tests._tools.sources import recording_noise
from tests.schema.test_schema import Hostile

pytestmark = pytest.mark.filterwarnings("ignore")


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    age = rng.integers(18, 66, n) + 15 * (sex == "m")
    return pd.DataFrame({"age": age, "job": rng.choice(["clerk", "nurse"], n), "sex": sex,
                         "rich": np.where(age > 50, "yes", "no")})  # fmt: skip


TABLE = people()
SCHEMA = Schema(
    {"age": Number(18, 80, step=1), "job": Category(["clerk", "nurse"]), "sex": Category(["f", "m"]),
     "rich": Category(["no", "yes"])}, label="rich", groups="sex",
)  # fmt: skip


#: The same for rows whose label or group is not listed: a schema without ``others`` refuses such tables.
OPEN = Schema(
    {**SCHEMA.columns, "sex": Category(["f", "m"], others="f"), "rich": Category(["no", "yes"], others="no")},
    label="rich", groups="sex",
)  # fmt: skip


#: A record to learn from and one to measure on.
LEARNED, HELD = (int(part.index[0]) for part in _split(TABLE, 0.25, 0))


def swept(table, **given):
    options = {"label": "rich", "groups": "sex", "epsilons": [3.0, 9.0], "gaps": [0.1, None], "methods": ["synthetic"]}
    options |= given
    return frontier_of_table(table, **options)


class Made:
    def __init__(self, ledger=None):
        self.ledger = ledger

    def __repr__(self):
        return "Made()"


def fit(schema):
    def fitted(made, rows):
        found = swept(rows, schema=schema, epsilons=[9.0])
        made.schema_, made.privacy_, made.frame_ = found.schema, found.privacy, found.frame
        return made

    return fitted


def probe(made):
    return {str(name): made.frame_[name].to_numpy() for name in made.frame_}


NASTY = {
    "extreme": {"age": 1e308, "job": "astronaut", "sex": "x", "rich": "maybe"},
    "hostile": {name: Hostile() for name in TABLE},
    "missing": dict.fromkeys(TABLE),
    "another": {"age": 79, "job": "nurse", "sex": "m", "rich": "no"},
}


@pytest.fixture(scope="module", params=[None, OPEN], ids=["released schema", "given schema"])
def recording(request):
    return Recording(Made, fit(request.param), TABLE, probe)


#: Every record at one of the two places, each schema with the other one first; at both in ``make test-all``.
@pytest.mark.few(2)
@pytest.mark.parametrize("places", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", NASTY)
def test_neighbours_look_the_same_wherever_the_record_lies(recording, what, places, request):
    given, record = "given schema" in request.node.name, NASTY[what]
    if not given and not isinstance(record["sex"], str):  # refused as a label or a group, as by every fit
        record = record | {"sex": "x", "rich": "maybe"}
    turn = list(NASTY).index(what) + given
    for at in ((LEARNED, HELD) * 2)[turn % 2 : turn % 2 + places]:
        assert not recording.on(with_record(TABLE, record, at)).differences()


def test_what_is_stated_covers_what_was_released_to_each_part():
    """Schema and generators on one part, tables of predictions on the other: the worse of the two is stated."""
    with recording_noise() as record:
        found = swept(TABLE)
    figures = [r for r in record.releases if isinstance(r.mechanism, GaussianMechanism) and np.ndim(r.private[0]) == 3
               and np.shape(r.private[0]) == (3, 3, 2) and r.private[0].sum() == 300]  # fmt: skip
    assert len(figures) == len(found.frame) == 4
    learned = [r for r in record.releases if not any(r is one for one in figures)]
    for part in (learned, figures):
        squared = sum((r.sensitivity / r.sigma) ** 2 for r in part)
        rare = [RareDisclosure(r.mechanism.failure) for r in part if isinstance(r.mechanism, CommonValues)]
        made = compose(GaussianDpEvent(squared**-0.5), *rare)
        assert epsilon_of(made, 1e-5) <= found.privacy.epsilon * (1 + 1e-9)
    assert found.frame.attrs["epsilon_total"] == found.privacy.epsilon
    assert (found.frame["epsilon"] <= [3.0, 3.0, 9.0, 9.0]).all()


@pytest.mark.parametrize("role", ["rich", "sex"])
def test_a_missing_label_or_group_is_refused_as_by_a_fit_before_anything_is_spent(role):
    """A few of them counted as the first value that was found."""
    table, ledger, private = TABLE.copy(), PrivacyLedger(), SyntheticDataClassifier(epsilon=9.0)
    table.loc[[LEARNED, HELD], role] = None
    with pytest.raises(ValueError, match="missing values") as by_a_fit:
        private.fit(table[["age"]], table["rich"], sensitive_features=table["sex"])
    words = str(by_a_fit.value).partition("contains")[2]
    for known in (None, {"age": Number(18, 80)}, {role: "category"}):
        with pytest.raises(ValueError, match=f"{role!r} of frontier_of_table contains") as error:
            swept(table, schema=known, ledger=ledger)
        assert str(error.value).endswith(words) and words
    assert not ledger.entries
    counted = {role: OPEN.columns[role]}  # somebody has said what it counts as
    assert len(swept(table, schema=counted, epsilons=[9.0]).frame)


EVERY = ["synthetic", "fair_pate", "dpsgd"]


@pytest.mark.slow
def test_all_methods_are_on_one_page_with_one_sum_for_what_they_cost(tmp_path):
    table = people(400)
    alone = swept(table, schema=SCHEMA, epsilons=[9.0]).privacy
    with recording_noise() as record:
        found = swept(table, schema=SCHEMA, epsilons=[9.0], methods=EVERY)
    frame, privacy = found.frame, found.privacy
    assert frame["estimator"].value_counts().to_dict() == {
        "SyntheticDataClassifier": 2, "FairPATEClassifier": 2, "FairDPSGDClassifier": 1,
    }  # fmt: skip
    assert (frame["epsilon"] <= 9.0).all() and alone.epsilon < privacy.epsilon < 3 * 9.0
    # The weaker relation for all of them: what holds for any other record holds for a null record.
    relations = {str(privacy.neighboring_relation), *frame["neighboring_relation"]}
    assert relations == {"replace one record by a null record"} and len(frame.attrs["guarantees"]) == 1
    assert frame.attrs["epsilon_total"] == privacy.epsilon and frame.attrs["n_fits"] == 3
    (tmp_path / "privacy.json").write_text(privacy.statement(subject="a frontier").to_json())
    assert all(check.holds for check in verify_file(tmp_path / "privacy.json"))
    figures = [r for r in record.releases if np.shape(r.private[0]) == (3, 3, 2) and np.sum(r.private[0]) == 100]
    assert len(figures) == len(frame) == 5 and {int(np.sum(r.private[0])) for r in figures} == {100}


def test_no_method_and_an_unknown_one_are_errors_before_anything_is_read():
    for methods in ("dpsgd", [], ["gan"]):
        with pytest.raises(ValueError, match="'methods' of frontier_of_table must be a list of some of"):
            swept(None, methods=methods)


def test_roles_that_contradict_the_schema_are_refused_before_anything_is_paid():
    ledger = PrivacyLedger()
    for roles in ({"label": "sex", "groups": "rich"}, {"groups": ["job"]}):
        with pytest.raises(ValueError, match="and its 'schema' has 'rich' and \\['sex'\\]"):
            swept(TABLE, schema=SCHEMA, ledger=ledger, **roles)
    assert not ledger.entries


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["fair_pate", "dpsgd"])
def test_an_unforeseen_record_does_not_show_in_any_method(method):
    def fitted(made, rows):
        found = swept(rows, schema=OPEN, epsilons=[9.0], methods=[method])
        made.privacy_, made.frame_ = found.privacy, found.frame
        return made

    table = TABLE.iloc[:300]
    learned, held = (int(part.index[0]) for part in _split(table, 0.25, 0))
    recording = Recording(Made, fitted, table, probe)
    for at, what in ((learned, "hostile"), (held, "extreme")):
        neighbour = with_record(TABLE, NASTY[what], at).iloc[:300]
        # A record that is replaced is, to DP-SGD, one that goes and one that comes.
        assert not recording.on(neighbour).differences(times=2.0 if method == "dpsgd" else 1.0)


def test_no_row_teaches_and_measures():
    seen = []
    with recording_noise(answer=lambda release: seen.append(release) or release.output):
        swept(TABLE, schema=SCHEMA, gaps=[None])
    sizes = {int(np.sum(r.private[0])) for r in seen if np.ndim(r.private[0]) == 3}
    assert 300 in sizes and len(TABLE) not in sizes


@pytest.mark.slow
def test_the_seed_fixes_the_split_and_not_the_noise():
    one, other = swept(TABLE, schema=SCHEMA), swept(TABLE, schema=SCHEMA)
    assert one.privacy.event == other.privacy.event
    assert not one.frame["accuracy"].equals(other.frame["accuracy"])


@pytest.mark.slow
def test_the_code_on_the_page_makes_the_model_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = swept(TABLE, schema=SCHEMA, epsilons=[9.0], methods=EVERY)
    found.schema.save("schema.yaml")
    page = json.loads(re.search(r'id="data">(.*?)</script>', frontier_page(found.frame), re.S)[1])
    for point in page["panels"][0]["points"]:
        names = {"table": TABLE, "new_table": TABLE.drop(columns=["rich", "sex"])}
        exec(point["code"], names)
        assert names["model"].predict(names["new_table"]).shape == (len(TABLE),)


RARE = TABLE.assign(
    rich=np.where(TABLE["age"] > 75, "very", TABLE["rich"]), sex=np.where(TABLE["age"] > 77, "x", TABLE["sex"])
)


def test_a_table_with_labels_or_groups_that_its_schema_does_not_list_is_refused():
    """They counted as errors and in no rate: a model would be judged by what the schema hides."""
    with recording_noise(0) as record, pytest.raises(ValueError, match="not among those that its schema lists"):
        swept(RARE, schema=SCHEMA, epsilons=[9.0])
    assert not record.releases


class Rule(BaseEstimator):
    """Says yes to people older than 60, which is wrong for the many who are 51 to 60."""

    predicts_rows_alone = True

    def predict(self, rows):
        return np.where(rows["age"] > 60, "yes", "no")


class Picky(Rule):
    def predict(self, rows):
        if (rows["age"] > 1000).any():
            raise ValueError("nobody is as old as that")
        return super().predict(rows)


def spending_on(figures):
    return _Budget([], [], figures, (), NeighboringRelation.REPLACE_ONE).spending(None, 300)


def test_a_row_at_which_a_model_fails_moves_two_cells_of_its_figures():
    figures, here = LabelFigures(SCHEMA, gdp_mu(1.0, 1e-5), 1e-5, 1), people(300)
    there, tables = here.copy(), []
    there.loc[int(np.flatnonzero(here["age"] > 60)[0]), "age"] = 10**6
    for rows in (here, there):
        with recording_noise(0) as record, spending_on(figures) as noise:
            figures.release(Picky(), rows, figures.codes(rows), noise)
        tables.append(record.releases[0].private[0])
    assert 0 < np.linalg.norm(tables[0] - tables[1]) <= figures.mechanism.sensitivity


@pytest.mark.slow
def test_accuracies_lie_within_the_error_that_is_stated():
    """In 95 of 100 tables of new people, with noise of their own."""
    figures = LabelFigures(SCHEMA, gdp_mu(1.0, 1e-5), 1e-5, 1)
    true, inside, errors = (Rule().predict(everybody := people(200_000, 1)) == everybody["rich"]).mean(), [], []
    for seed in range(200):
        held = people(300, seed + 2)
        with recording_noise(entropy=seed), spending_on(figures) as noise:
            found = figures.release(Rule(), held, figures.codes(held), noise)
        inside.append(abs(found["accuracy"] - true) <= found["accuracy_error"])
        errors.append(found["accuracy_error"])
    assert abs(np.mean(inside) - 0.95) <= 2.6 * 0.0154  # standard errors of a share of 200
    assert np.mean(errors) < 0.1


@pytest.mark.slow
def test_figures_take_what_the_models_cost_together_and_add_nothing_to_the_total():
    """A record is learned from or measured on: as many models as there are pay for exacter figures."""
    one, many = (
        frontier_of_table(TABLE, label="rich", groups="sex", schema=SCHEMA, epsilons=epsilons, gaps=[None],
                          methods=["synthetic"])
        for epsilons in ([2.0], [2.0, 2.0, 2.0, 2.0])
    )  # fmt: skip
    assert one.privacy.epsilon <= 2.0 + 1e-6
    learned = epsilon_of(GaussianDpEvent(1 / (2 * gdp_mu(2.0, 1e-5))), 1e-5)  # four models of equal cost
    assert many.privacy.epsilon <= learned
    # four tables share twice the μ of one: each is as exact as the one table beside one model
    assert many.frame["accuracy_error"].to_numpy() == pytest.approx(one.frame["accuracy_error"][0], abs=0.01)


def test_one_class_found_ends_the_sweep_before_models_are_paid_for():
    with recording_noise(entropy=0) as record, pytest.raises(ValueError, match="nothing to learn or to compare"):
        swept(TABLE.assign(rich="yes"), epsilons=[3.0])
    assert {type(release.mechanism) for release in record.releases} == {GaussianMechanism, CommonValues}
    assert all(np.ndim(release.private[0]) < 2 for release in record.releases)


def test_one_group_that_the_noise_leaves_has_no_gap(capsys, monkeypatch):
    from tests._tools.inside import print_frontier

    monkeypatch.setattr(_own_figures, "_has_one_answer", lambda model: False)  # which has none whatever is hidden
    found = swept(TABLE.iloc[:120], schema=SCHEMA, epsilons=[0.3], gaps=[None])
    assert found.frame["disparity"].isna().all() and found.frame["groups_seen"].max() < 2
    print_frontier(found.frame)
    said = capsys.readouterr().out
    assert "A gap of '?' is not known" in said and "Each accuracy is right to within" in said
    assert "null" in frontier_page(found.frame)


def test_a_gap_comes_with_a_bound_that_knows_the_noise():
    frame = swept(TABLE, schema=SCHEMA, epsilons=[1.0, 9.0], gaps=[None]).frame
    assert (frame["gap_bound"] > frame["disparity"]).all() and (frame["gap_bound"] <= 1.0).all()


@pytest.mark.slow
def test_models_with_one_answer_have_the_figures_of_that_class_by_all_tables_and_no_gap():
    """What is not told apart by its answers is not told apart by the noise of its own table."""
    drawn = np.random.default_rng(0).normal(size=(900, 3))
    table = people(900)
    table["age"], table["job"] = 18 + 60 * np.abs(np.tanh(drawn[:, 0])), np.where(drawn[:, 1] > 0, "clerk", "nurse")
    table["rich"] = np.where(drawn[:, 2] > 0.5, "yes", "no")
    with recording_noise(0):
        found = swept(table, schema=SCHEMA, epsilons=[0.05, 0.1], gaps=[0.1, None], methods=EVERY)
    only = found.frame[found.frame["disparity"] == 0]
    assert set(only["estimator"]) == {"SyntheticDataClassifier", "FairPATEClassifier", "FairDPSGDClassifier"}
    assert only["accuracy"].nunique() <= 2 and (only["gap_bound"] == 0).all()  # one figure a class
    assert found.frame.attrs["references"][0]["accuracy"] == only["accuracy"].max()


def test_one_price_asked_for_is_one_price_stated_whatever_the_schema_discloses():
    """Who was measured has no schema found, and pays no δ for it."""
    found = swept(TABLE, epsilons=[2.0], gaps=[None])
    assert found.schema.privacy_ is not None and found.privacy.epsilon <= 2.0


# ---------------------------------------------------------------------- what a schema leaves of ε
@pytest.fixture(scope="module")
def found():
    """A schema that was paid for; two columns are known, so that their kind is not asked for."""
    return Schema.release(TABLE, label="rich", groups="sex", epsilon=0.6, delta=2e-6, known={"job": "category"})


@pytest.mark.covering
@pytest.mark.parametrize("method", [*_MODELS[False]])
@pytest.mark.parametrize("epsilon", [0.7, 1.0, 3.0, 12.0])
def test_schema_and_release_together_cost_what_was_asked_and_never_more(found, method, epsilon):
    """By the events of both. What is left over is what a search for the noise of gradients leaves."""
    asked = _Release(found, TABLE, epsilon, 1e-5, [None], 0)
    release = _within(method, asked, [found.privacy_])
    total = epsilon_of(compose(found.privacy_.event, _planned(method, release)), 1e-5)
    assert 0.99 * epsilon <= total <= epsilon
    assert epsilon - 0.6 < release.epsilon < epsilon  # more than a difference of ε leaves


AMOUNT = {"age": Number(18, 90)}


@pytest.mark.covering
@pytest.mark.parametrize("method", ["synthetic", "dpsgd", "barycenter"])
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_a_release_of_amounts_and_its_schema_cost_what_was_asked_and_never_more(method, epsilon):
    found = Schema.release(TABLE, label="age", groups="sex", epsilon=0.4, delta=2e-6, known=AMOUNT)
    release = _within(method, _Release(found, TABLE, epsilon, 1e-5, [None], 0), [found.privacy_])
    total = epsilon_of(compose(found.privacy_.event, _planned(method, release)), 1e-5)
    assert 0.97 * epsilon <= total <= epsilon


def test_without_a_price_of_the_schema_a_release_has_all_of_it():
    asked = _Release(SCHEMA, TABLE, 1.0, 1e-5, [None], 0)
    assert _within("synthetic", asked, []) is asked


@pytest.mark.parametrize("costs", [lambda e: 3.0 * e, lambda e: 5.0, lambda e: e**2, lambda e: 0.0])
def test_only_what_the_accountant_finds_to_be_within_epsilon_is_released(found, costs):
    """Whatever a method plans to spend for an ε: less than it, more than it, by steps."""

    def planned(method, guess):
        return GaussianDpEvent(1 / gdp_mu(costs(guess.epsilon) + 1e-6, 1e-5))

    asked = _Release(found, TABLE, 1.0, 1e-5, [None], 0)
    release = _within("any", asked, [found.privacy_], planned)
    total = epsilon_of(compose(found.privacy_.event, planned("any", release)), 1e-5)
    linear = (release.epsilon, release.delta) == pytest.approx((0.4, 8e-6))
    assert total <= 1.0 or linear  # which its own certificate and that of the schema add up to


@pytest.mark.few(1)
@pytest.mark.parametrize("methods", [["synthetic"], ["fair_pate"], ["dpsgd"]])
def test_a_table_alone_at_an_epsilon_of_one_costs_one(methods):
    swept_once = swept(people(4000), epsilons=[1.0], gaps=[None], methods=methods)
    assert swept_once.schema.privacy_ is not None
    assert (swept_once.frame["epsilon"] > 0.98).all() and swept_once.privacy.epsilon <= 1.0


def test_a_schema_that_was_found_says_nothing_of_values_that_nobody_found():
    """Found: what rare groups counted as in one run was kept, and a later table's third group counted as the first."""
    kept = []
    found = swept(TABLE, epsilons=[2.0], gaps=[None], keep=kept.append)
    for schema in (found.schema, *kept):
        assert schema.columns["sex"].others is None and schema.columns["rich"].others is None
        other = TABLE.assign(sex=np.where(np.arange(len(TABLE)) % 5, TABLE["sex"], "d"))
        assert schema.misfits(other)["sex"] > 0
        with pytest.raises(ValueError, match="list"):
            swept(other, schema=schema, epsilons=[2.0], gaps=[None])


# ---------------------------------------------------------------------- the account
def test_what_is_announced_is_what_is_spent_and_is_on_the_ledger_before_any_noise():
    ledger, told, kept, entries = PrivacyLedger(), [], [], []

    def announce(most):
        assert not entries and not ledger.entries
        told.append(most)

    def keep(schema):
        kept.append(schema)
        assert set(entries) == {1}
        entries.clear()

    with recording_noise(entropy=0, before_draws=lambda: entries.append(len(ledger.entries))):
        found = swept(TABLE, epsilons=[2.0], gaps=[None], ledger=ledger, announce=announce, keep=keep)
    assert set(entries) == {2}  # models and figures are charged before the first model
    assert found.privacy.epsilon <= told[0] <= 1.02 * found.privacy.epsilon
    assert ledger.epsilon_spent == pytest.approx(found.privacy.epsilon, rel=1e-9) and len(ledger.entries) == 2
    assert kept == [found.schema] and kept[0].privacy_ is not None
    swept(TABLE, schema=found.schema, epsilons=[2.0], gaps=[None], ledger=ledger)
    assert len(ledger.entries) == 3  # the schema was on it
    other = PrivacyLedger()
    again = swept(TABLE, schema=found.schema, epsilons=[2.0], gaps=[None], ledger=other)
    assert other.epsilon_spent == pytest.approx(again.privacy.epsilon, rel=1e-9) and len(other.entries) == 2
    swept(TABLE, schema=found.schema, epsilons=[2.0], gaps=[None], ledger=other)
    assert len(other.entries) == 3  # and was put on this one by the first sweep


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_the_ledger_of_a_block_is_charged_once_for_each_model(schema):
    """Found: it was asked for nothing beforehand, and charged again by each model, that it could not pay then."""
    with PrivacyLedger(epsilon=2.1) as ledger:
        found = swept(TABLE, schema=schema, epsilons=[2.0], gaps=[None])
        with pytest.raises(BudgetExceededError):
            swept(TABLE, schema=schema, epsilons=[2.0], gaps=[None])
    assert ledger.epsilon_spent == pytest.approx(found.privacy.epsilon, rel=1e-9)
    assert all(part.on_record == ledger.head for part in found.privacy.parts or [found.privacy])


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["released", "given"])
def test_a_ceiling_that_is_too_low_refuses_before_anything_is_spent(schema):
    ledger = PrivacyLedger(epsilon=2.5)
    with recording_noise() as record, pytest.raises(BudgetExceededError):
        swept(TABLE, schema=schema, epsilons=[2.0, 2.0], ledger=ledger)
    assert not record.releases and not ledger.entries


@pytest.mark.slow
def test_a_method_that_fails_is_left_out_and_the_others_are_kept(monkeypatch):
    def fails(release):
        raise RuntimeError("no memory")

    monkeypatch.setitem(_own_table._METHODS[False], "fair_pate", fails)
    with pytest.warns(UtilityWarning, match="fair_pate failed .* no memory"):
        found = swept(TABLE, schema=SCHEMA, epsilons=[3.0], methods=["synthetic", "fair_pate"])
    both = swept(TABLE, schema=SCHEMA, epsilons=[3.0], methods=["synthetic"])
    assert len(found.frame) == 2 and found.privacy.epsilon > both.privacy.epsilon  # what was planned is stated
    with pytest.raises(RuntimeError, match="no memory"):
        swept(TABLE, schema=SCHEMA, epsilons=[3.0], methods=["fair_pate"])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rare", [0.25, 0.4])
def test_a_clean_table_of_1200_rows_has_its_schema_found_at_an_epsilon_of_a_half(seed, rare):
    """A fifth of ε found it in two runs of sixteen."""
    rng = np.random.default_rng(seed)
    table = people(1200, seed).assign(
        sex=rng.choice(["f", "m"], 1200, p=[rare, 1 - rare]), rich=rng.choice(["yes", "no"], 1200, p=[rare, 1 - rare])
    )
    sweep = _Sweep(_split(table, 0.25, 0)[0], None, [None], [], [0.5], 1e-5, 0)
    to_find = _to_find(sweep.learned, None, sweep, label="rich", groups=("sex",))
    found = to_find.release(None, None)
    assert {"yes", "no"} <= set(found.classes) and {"f", "m"} <= set(found.group_values) and found.features


def test_few_rows_are_refused_with_what_would_do_before_a_schema_is_paid_for():
    with recording_noise() as record, pytest.raises(ValueError, match="Start with epsilon") as refused:
        swept(people(200), epsilons=[0.5])
    epsilon = float(re.search(r"Start with epsilon=([\d.]+),", str(refused.value))[1])
    assert not record.releases
    sweep = _Sweep(_split(people(200), 0.25, 0)[0], None, [None], [], [epsilon], 1e-5, 0)
    _to_find(sweep.learned, None, sweep, label="rich", groups=("sex",))


def test_a_schema_that_is_found_in_part_keeps_that_part():
    table = people(1200).assign(rich=np.arange(1200) % 400)
    ledger = PrivacyLedger()
    with pytest.raises(IncompleteSchemaError, match="'found' of this error") as failed:
        swept(table, epsilons=[3.0], ledger=ledger)
    assert failed.value.absent == ("rich",) and {"age", "job", "sex"} <= set(failed.value.found)
    known = {**failed.value.found, "rich": Category([*range(2)], others=0)}
    schema = Schema(known, label="rich", groups="sex")
    assert [schema.privacy_.event] == [entry.event for entry in ledger.entries]


def test_a_schema_that_has_cost_all_of_it_leaves_nothing_and_says_so(found):
    with recording_noise() as record, pytest.raises(ValueError, match=r"has cost .*which leaves nothing of"):
        swept(TABLE, schema=found, epsilons=[0.5])
    assert not record.releases


@pytest.mark.parametrize("of", ["learned", "held"])
def test_who_is_measured_on_follows_the_list_of_subjects_and_not_who_has_rows(of):
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(200), rng.integers(1, 5, 200)))
    visits = people(len(ids)).assign(patient_id=pd.Categorical(ids, categories=range(200)))
    learned, held = parts = _split(visits, 0.25, 0, "patient_id")
    gone = (learned if of == "learned" else held)["patient_id"].iloc[0]
    others = _split(visits[visits["patient_id"] != gone], 0.25, 0, "patient_id")
    for before, after in zip(parts, others, strict=True):
        kept = after[after["patient_id"].notna()].astype({"patient_id": int})
        expected = before[before["patient_id"] != gone].astype({"patient_id": int})
        pd.testing.assert_frame_equal(kept.reset_index(drop=True), expected.reset_index(drop=True), check_dtype=False)
    assert len(others[1]) == len(held) == 50
    assert list(others[0]["patient_id"].cat.categories) == list(learned["patient_id"].cat.categories)
    assert len(learned["patient_id"].cat.categories) == 150


def test_a_frontier_goes_through_where_a_subject_has_no_rows():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 900, 2000)
    visits = people(len(ids)).assign(patient_id=pd.Categorical(ids, categories=range(950)))
    found = frontier_of_table(visits, label="rich", groups="sex", subject="patient_id", epsilons=[4.0], gaps=[None],
                              schema=SCHEMA, methods=["synthetic"])  # fmt: skip
    numbers = [fact.value for fact in found.privacy.public if fact.name == "number of subjects"]
    assert numbers and {*numbers} <= {950, 950 - 238}


def test_a_frontier_of_visits_protects_all_rows_of_a_subject(tmp_path):
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(900), rng.integers(1, 5, 900)))
    visits = people(len(ids)).assign(patient_id=ids)
    learned, held = _split(visits, 0.25, 0, "patient_id")
    assert not set(learned["patient_id"]) & set(held["patient_id"]) and held["patient_id"].is_unique
    assert len(held) + learned["patient_id"].nunique() == 900 and len(learned) > 1500  # models learn from all rows
    ledger = PrivacyLedger(epsilon=20)
    found = frontier_of_table(visits, label="rich", groups="sex", subject="patient_id", epsilons=[4.0], gaps=[None],
                              schema=SCHEMA, ledger=ledger)  # fmt: skip
    assert found.privacy.protects == "subject" and found.privacy.rows_of == "patient_id"
    assert found.privacy.epsilon == pytest.approx(ledger.epsilon_spent) and {*found.frame["protects"]} == {"subject"}
    assert {entry.rows_of for entry in ledger.entries} == {"patient_id"}
    (tmp_path / "statement.json").write_text(found.privacy.statement(subject="a frontier", ledger=ledger).to_json())
    assert all(check.holds for check in verify_file(tmp_path / "statement.json"))
    again = frontier_of_table(visits, label="rich", groups="sex", subject="patient_id", epsilons=[6.0], gaps=[None],
                              methods=["synthetic"])  # fmt: skip
    assert again.schema.subject == "patient_id" and {part.rows_of for part in again.privacy.parts} == {"patient_id"}
