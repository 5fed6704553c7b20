"""All rows of one subject as what is protected: in reports, on a ledger beside other kinds, in statements, verified."""

import json
import warnings

import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier

from skfairdp import PrivacyLedger
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.privacy import (
    GaussianDpEvent,
    GaussianMechanism,
    NeighboringRelation,
    PrivacySpent,
    PublicFact,
    Spending,
    carrying,
    gdp_epsilon,
    privacy_of,
    verify_file,
)
from tests._tools.statements import digested

SUBJECT, GONE, RECORD, NULL, GUEST, ATTRIBUTE, ATTRIBUTE_OF_ALL = (
    NeighboringRelation.REPLACE_SUBJECT,
    NeighboringRelation.ZERO_OUT_SUBJECT,
    NeighboringRelation.REPLACE_ONE,
    NeighboringRelation.ZERO_OUT,
    NeighboringRelation.ADD_OR_REMOVE_ONE,
    NeighboringRelation.REPLACE_ATTRIBUTE,
    NeighboringRelation.REPLACE_SUBJECT_ATTRIBUTE,
)
PATIENT = "patient_id"


def charge(ledger, relation, rows_of="", sigma=5.0):
    given = {"rows_of": rows_of} if rows_of else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two kinds on a ledger: told below
        ledger.charge(
            GaussianDpEvent(sigma), label="a fit", protects=relation.protects, neighboring_relation=relation, **given
        )


def spent(relation, rows_of="", sigma=5.0, **more):
    return PrivacySpent.of(
        GaussianDpEvent(sigma), 1e-5, protects=relation.protects, neighboring_relation=relation, rows_of=rows_of, **more
    )


def of(n_fits, sigma=5.0):
    return pytest.approx(gdp_epsilon(n_fits**0.5 / sigma, 1e-5))


@pytest.mark.parametrize("order", [(SUBJECT, RECORD, SUBJECT), (RECORD, SUBJECT, SUBJECT), (SUBJECT, SUBJECT, NULL)])
def test_a_fit_for_subjects_counts_for_each_of_their_rows_and_no_fit_for_rows_counts_for_subjects(order, tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger")
    for relation in order:
        charge(ledger, relation, PATIENT if relation is SUBJECT else "")
    records, subjects = ledger.spent("record"), ledger.spent("subject")
    assert (records.epsilon, subjects.epsilon) == (of(3), of(2))
    assert ledger.epsilon_spent == records.epsilon
    assert records.neighboring_relation == next(one for one in order if one is not SUBJECT)
    assert (subjects.neighboring_relation, subjects.rows_of) == (SUBJECT, PATIENT)
    again = PrivacyLedger(path=ledger.path)
    assert again.entries == ledger.entries and again.spent("subject") == subjects
    checks = verify_file(ledger.path)
    assert all(check.holds for check in checks)
    assert sum("total" in check.figure or "ceiling" in check.figure for check in checks) == 2


ORDERS = [(GONE, RECORD), (NULL, GONE), (RECORD, SUBJECT, GONE)]


@pytest.mark.parametrize("order", ORDERS)
def test_a_subject_that_gives_way_to_none_counts_twice_as_far_for_its_rows_and_as_it_is_for_subjects(order, tmp_path):
    """One of several rows that is another is two steps away: from all rows to none, and from none to the others."""
    ledger = PrivacyLedger(path=tmp_path / "ledger")
    for relation in order:
        charge(ledger, relation, PATIENT if relation.protects == "subject" else "")
    records, subjects = ledger.spent("record"), ledger.spent("subject")
    assert records.epsilon == of(len(order) - 1 + 4)  # half the noise: four times the squared cost
    assert records.neighboring_relation == (NULL if NULL in order else RECORD)
    assert (subjects.epsilon, subjects.neighboring_relation) == (of(order.count(SUBJECT) + 1), GONE)
    assert all(check.holds for check in verify_file(ledger.path))
    both = spent(RECORD) + spent(GONE, PATIENT)
    assert (both.epsilon, both.protects) == (of(5), "record")
    (tmp_path / "statement.json").write_text(both.statement(subject="a vote").to_json())
    assert all(check.holds for check in verify_file(tmp_path / "statement.json"))
    content = json.loads(both.statement(subject="a vote").to_json())
    content["event"] = json.loads((spent(RECORD) + spent(RECORD)).statement().text)["event"]
    (tmp_path / "statement.json").write_text(json.dumps(digested(content)))
    assert not all(check.holds for check in verify_file(tmp_path / "statement.json"))
    assert not GONE.implies(NULL) and not GONE.implies(RECORD) and SUBJECT.implies(GONE)


def test_what_all_fits_tell_of_an_attribute_counts_those_for_subjects_once():
    ledger = PrivacyLedger()
    for relation in (SUBJECT, RECORD, ATTRIBUTE):
        charge(ledger, relation)
    assert [ledger.spent(kind).epsilon for kind in ("sensitive attribute", "record", "subject")] == [
        of(3),
        of(2),
        of(1),
    ]


@pytest.mark.parametrize(("relation", "cost"), [(SUBJECT, 1), (GONE, 4)])
def test_where_all_fits_are_for_subjects_their_report_is_the_one_for_records(relation, cost):
    ledger = PrivacyLedger()
    charge(ledger, relation, PATIENT)
    records = ledger.spent()
    assert (records.epsilon, records.protects, records.rows_of) == (of(cost), "subject", PATIENT)
    assert ledger.spent("sensitive attribute") is None


def test_the_ceiling_holds_for_each_total():
    ledger = PrivacyLedger(epsilon=gdp_epsilon(1.2 / 5, 1e-5))
    charge(ledger, SUBJECT)
    with pytest.raises(BudgetExceededError, match="for records from"):
        charge(ledger, RECORD)
    with pytest.raises(BudgetExceededError, match="would bring the epsilon of this ledger from"):
        charge(ledger, SUBJECT)


def test_fits_of_two_kinds_on_one_ledger_are_told_once():
    ledger = PrivacyLedger()
    given = {"label": "a fit", "protects": "subject", "neighboring_relation": SUBJECT, "rows_of": PATIENT}
    charge(ledger, RECORD)
    with pytest.warns(PrivacyLeakWarning, match="The total for subjects covers the fits for subjects alone"):
        ledger.charge(GaussianDpEvent(5.0), **given)
    ledger.charge(GaussianDpEvent(5.0), **given)


def test_ids_without_a_name_add_up_with_a_warning_that_they_have_to_be_the_same():
    """Nobody can see whether two arrays hold patients twice, or patients and then households."""
    ledger = PrivacyLedger()
    given = {"label": "a fit", "protects": "subject", "neighboring_relation": SUBJECT}
    ledger.charge(GaussianDpEvent(5.0), **given)
    with pytest.warns(PrivacyLeakWarning, match="subjects whose ids had no name.*household"):
        ledger.charge(GaussianDpEvent(5.0), **given)
    with pytest.warns(PrivacyLeakWarning, match="subjects whose ids had no name"):
        total = spent(SUBJECT) + spent(SUBJECT)
    assert total.epsilon == of(2) and "that ids without a name say the same subjects" in total.public
    assert not (spent(SUBJECT, PATIENT) + spent(SUBJECT, PATIENT)).public


@pytest.mark.parametrize("order", [(SUBJECT, RECORD), (RECORD, SUBJECT)])
def test_a_fit_for_subjects_and_one_for_records_add_up_as_records_wherever_they_meet(order):
    first, second = (spent(one, PATIENT if one is SUBJECT else "") for one in order)
    vote = VotingClassifier([("a", DummyClassifier()), ("b", DummyClassifier())])
    vote.estimators_ = [carrying(DummyClassifier(), report) for report in (first, second)]
    for total in (first + second, privacy_of(vote)):
        assert (total.epsilon, total.protects, total.rows_of) == (of(2), "record", "")


@pytest.mark.parametrize("order", [(SUBJECT, RECORD), (RECORD, SUBJECT), (SUBJECT, NULL), (GONE, RECORD)])
def test_their_sum_is_stated_with_what_each_has_read_and_verified(order, tmp_path):
    rows = [PublicFact("number of private rows", "read", 700)]
    first, second = (
        spent(one, PATIENT if one.of_subjects else "", public=FACTS if one.of_subjects else rows, label=name)
        for one, name in zip(order, ("first", "second"), strict=True)
    )
    content = (first + second).statement(subject="both").to_dict()
    assert refuted(tmp_path, content) == []
    for fact in FACTS:
        left = [one for one in content["public"] if one["name"] != fact.name]
        with pytest.raises(ValueError, match=f"'{fact.name}' is no public fact of it"):
            refuted(tmp_path, {**content, "public": left})


@pytest.mark.parametrize("whose", [PATIENT, ""])
@pytest.mark.parametrize("of_subjects", [ATTRIBUTE_OF_ALL, SUBJECT, GONE])
def test_a_sum_that_is_for_rows_does_not_ask_whose_they_are(of_subjects, whose):
    other = ATTRIBUTE if of_subjects is ATTRIBUTE_OF_ALL else RECORD
    total = spent(of_subjects, whose) + spent(other)
    assert total.neighboring_relation in (other, NULL) and total.rows_of == ""


@pytest.mark.parametrize("order", [(SUBJECT, GUEST), (GUEST, SUBJECT)])
def test_a_record_added_is_no_subject_replaced(order):
    ledger = PrivacyLedger()
    charge(ledger, order[0])
    with pytest.raises(ValueError, match="does not add up"):
        charge(ledger, order[1])


@pytest.mark.parametrize("other", ["household", ""])
def test_all_rows_of_a_household_are_not_all_rows_of_a_patient(other):
    ledger = PrivacyLedger()
    charge(ledger, SUBJECT, PATIENT)
    with pytest.raises(
        ValueError, match=r"all rows of one 'patient_id'; one for all rows of one '(household|subject)'"
    ):
        charge(ledger, SUBJECT, other)
    with pytest.raises(ValueError, match="do not add up"):
        spent(SUBJECT, PATIENT) + spent(SUBJECT, other)
    with pytest.raises(ValueError, match="rows_of must be ''"):
        charge(ledger, RECORD, PATIENT)


def test_a_fit_for_subjects_holds_nothing_that_protects_rows_alone():
    """A schema that a release for rows has paid for is refused before anything is spent."""
    spending = Spending(GaussianDpEvent(5.0), 1e-5, SUBJECT, label="a fit", holds=[spent(RECORD, label="a schema")])
    with pytest.raises(ValueError, match="a fit for 'replace all rows of one subject'; a schema for 'replace one"):
        spending.__enter__()
    both = Spending(GaussianDpEvent(5.0), 1e-5, RECORD, label="a fit", holds=[spent(SUBJECT, PATIENT)]).report
    assert (both.epsilon, both.neighboring_relation, both.rows_of) == (of(2), RECORD, "")


def test_a_mechanism_for_replaced_rows_is_refused_where_subjects_are_protected():
    mean = GaussianMechanism(5.0, relation=RECORD)
    with (
        pytest.raises(RuntimeError, match="made for 'replace one record'"),
        Spending(mean.event, 1e-5, SUBJECT, label="a mean") as noise,
    ):
        mean.release([1.0], noise)


# ---- the statement ---------------------------------------------------------------------------------------------------
def facts(rows_of):
    return [PublicFact("ids of the subjects", "read", rows_of or None), PublicFact("number of subjects", "read", 400)]


FACTS = facts(PATIENT)


def written(tmp_path, change=lambda content: None, ledger=None, rows_of=PATIENT):
    """The checks that do not hold, of a statement that was changed."""
    report = spent(SUBJECT, rows_of, public=facts(rows_of), label="a fit")
    content = json.loads(report.statement(subject="a fit", ledger=ledger).to_json())
    change(content)
    (tmp_path / "statement.json").write_text(json.dumps(digested(content)))
    return [check.figure for check in verify_file(tmp_path / "statement.json") if not check.holds]


def unit_on_record(statement):
    entry = statement.to_registry(
        name="n", data_curators=["c"], description="d", intended_use="i", data_product_region="r",
        publication_date="2026-01-31", registry_authors=["a"],
    )  # fmt: skip
    return entry["deployment"]["privacy_loss"]["privacy_unit"]


@pytest.mark.parametrize(("rows_of", "said"), [(PATIENT, "all rows of one patient_id"), ("", "all rows of one id")])
def test_a_statement_says_whose_rows_are_protected_together(rows_of, said, tmp_path):
    statement = spent(SUBJECT, rows_of, public=facts(rows_of)).statement(subject="a fit")
    page = statement.to_html()
    assert said in statement.summary and said in page and said in statement.to_json()
    assert "The number of subjects and their ids are public, the number of rows is not." in page
    assert said in unit_on_record(statement)
    assert written(tmp_path, rows_of=rows_of) == []


def test_the_ledger_in_a_statement_is_verified_kind_by_kind(tmp_path):
    ledger = PrivacyLedger()
    charge(ledger, SUBJECT, PATIENT)
    charge(ledger, RECORD)
    assert written(tmp_path, ledger=ledger) == []

    def without_the_subject(content):  # the total for records is understated
        total = next(one for one in content["ledger"]["totals"] if one["protects"] == "record")
        total["epsilon"] = gdp_epsilon(1 / 5, 1e-5)

    assert written(tmp_path, without_the_subject, ledger) == ["ledger: 2 fits (replace one record), total at δ = 1e-05"]

    def two_kinds(content):
        content["ledger"]["entries"].append({**content["ledger"]["entries"][0], "rows_of": "household"})

    assert "ledger: one kind of subjects" in written(tmp_path, two_kinds, ledger)


@pytest.mark.parametrize(
    ("change", "figure"),
    [
        ({"rows_of": "household"}, "sentences"),
        ({"unit": "one record: all features, the label and the group of one row"}, "sentences"),
    ],
)
def test_a_statement_of_another_unit_is_refuted(change, figure, tmp_path):
    assert figure in written(tmp_path, lambda content: content.update(change))
    with pytest.raises(ValueError, match="no statement has the entry 'rows_of'"):
        written(tmp_path, lambda content: content.update(protects="record"))


@pytest.mark.parametrize(("name", "relation"), [("number of private rows", SUBJECT), ("number of subjects", RECORD)])
def test_only_the_number_of_what_is_replaced_may_be_read(name, relation, tmp_path):
    report = spent(relation, public=[PublicFact(name, "read", 400)])
    (tmp_path / "statement.json").write_text(report.statement(subject="a fit").to_json())
    with pytest.raises(ValueError, match="cannot be read where neighbours differ in it"):
        verify_file(tmp_path / "statement.json")


def test_verify_refuses_a_statement_that_names_other_subjects_than_its_facts_and_its_ledger(tmp_path):
    def household(content):
        content["rows_of"] = "household"
        content["unit"] = content["unit"].replace(PATIENT, "household")

    def dropped(content):
        content["unit"] = content["unit"].replace(PATIENT, "id")
        del content["rows_of"]

    for change in (household, dropped):
        assert written(tmp_path, change) == ["one kind of subjects"]


@pytest.mark.parametrize("name", ["number of subjects", "ids of the subjects"])
def test_what_a_fit_for_subjects_reads_is_not_left_out(name, tmp_path):
    def without(content):
        content["public"] = [fact for fact in content["public"] if fact["name"] != name]

    with pytest.raises(ValueError, match=f"'{name}' is no public fact of it"):
        written(tmp_path, without)


# ---- the attribute of a subject --------------------------------------------------------------------------------------
OF_A_SUBJECT = NeighboringRelation.REPLACE_SUBJECT_ATTRIBUTE


@pytest.mark.parametrize(
    ("relations", "total"),
    [
        ((OF_A_SUBJECT, OF_A_SUBJECT), OF_A_SUBJECT),
        ((OF_A_SUBJECT, ATTRIBUTE), ATTRIBUTE),  # a row of a subject is protected with it, and not the other way round
        ((RECORD, OF_A_SUBJECT), ATTRIBUTE),  # what fits for records tell of one record's attribute counts
        ((SUBJECT, OF_A_SUBJECT), ATTRIBUTE),
    ],
)
def test_attributes_of_subjects_add_up_under_what_all_fits_promise(relations, total, tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger")
    for relation in relations:
        charge(ledger, relation, PATIENT if relation.of_subjects else "")
    found = ledger.spent("sensitive attribute")
    assert found.neighboring_relation is total and found.epsilon == of(2)
    assert found.rows_of == (PATIENT if total.of_subjects else "")
    assert all(check.holds for check in verify_file(ledger.path))


def test_attributes_of_two_kinds_of_subjects_do_not_add_up():
    ledger = PrivacyLedger()
    charge(ledger, OF_A_SUBJECT, PATIENT)
    with pytest.raises(ValueError, match="'household'"):
        charge(ledger, OF_A_SUBJECT, "household")


def is_refused(path):
    try:
        return not all(check.holds for check in verify_file(path))
    except ValueError:
        return True


def test_a_statement_says_that_the_attribute_of_all_rows_of_a_subject_is_protected(tmp_path):
    facts = [PublicFact("ids of the subjects", "read", PATIENT), PublicFact("number of subjects", "read", 400)]
    ledger = PrivacyLedger()
    charge(ledger, OF_A_SUBJECT, PATIENT)
    statement = spent(OF_A_SUBJECT, PATIENT, public=facts, on_record=ledger.head).statement(subject="x", ledger=ledger)
    assert "in all rows of one patient_id" in statement.content["unit"]
    assert unit_on_record(statement) == "Sensitive attribute of a subject (all rows of one patient_id)"
    path = tmp_path / "statement.json"
    path.write_text(statement.to_json())
    assert all(check.holds for check in verify_file(path))
    for change in ({"neighboring_relation": str(ATTRIBUTE)}, {"rows_of": "household"}, {"unit": "one record"}):
        content = {**json.loads(statement.to_json()), **change}
        path.write_text(json.dumps(digested(content)))
        assert is_refused(path), change


# ---- parts of a statement --------------------------------------------------------------------------------------------
def of_two_parts(relation=SUBJECT):
    """A fit and a model inside of it, and the ledger on which both are."""
    ledger, parts = PrivacyLedger(epsilon=10.0), []
    for sigma in (5.0, 6.0):
        charge(ledger, relation, PATIENT, sigma)
        parts.append(spent(relation, PATIENT, sigma, label="a fit", on_record=ledger.head, release=str(sigma),
                           public=facts(PATIENT)))  # fmt: skip
    return (parts[0] + parts[1]).statement(subject="a fit", ledger=ledger)


def refuted(tmp_path, content):
    path = tmp_path / "statement.json"
    path.write_text(json.dumps(digested(content)), encoding="utf-8")
    return [check.figure for check in verify_file(path) if not check.holds]


@pytest.mark.parametrize(
    ("relation", "said"),
    [(SUBJECT, "one subject: all rows of one patient_id"), (ATTRIBUTE_OF_ALL, "in all rows of one patient_id")],
)
def test_each_part_of_a_statement_says_whose_rows_it_protects(relation, said, tmp_path):
    statement = of_two_parts(relation)
    content = statement.to_dict()
    assert [part["rows_of"] for part in content["parts"]] == [PATIENT] * 2
    assert all(said in part["unit"] for part in content["parts"]) and statement.to_markdown().count(said) == 3
    assert refuted(tmp_path, content) == []


OTHER_UNITS = {
    "one record": {"unit": "one record: all features, the label and the group of one row"},
    "other subjects": {"rows_of": "household", "unit": "one subject: all rows of one household, however many"},
    "other subjects, by the column alone": {"rows_of": "household"},
    "no column": {"rows_of": "", "unit": "one subject: all rows of one id, however many"},
}


@pytest.mark.parametrize("lie", OTHER_UNITS)
@pytest.mark.parametrize("part", [0, 1])
def test_a_part_that_says_it_protects_others_is_refuted(part, lie, tmp_path):
    content = of_two_parts().to_dict()
    content["parts"][part].update(OTHER_UNITS[lie])
    assert {"sentences", "one kind of subjects"} & {*refuted(tmp_path, content)}
    content["parts"][part].pop("unit")
    with pytest.raises(ValueError, match="unit"):
        refuted(tmp_path, content)


def test_a_part_of_a_sum_for_records_keeps_its_own_unit(tmp_path):
    one = spent(RECORD, label="a fit", release="a")
    content = (one + spent(SUBJECT, PATIENT, label="a model", release="b")).statement(subject="a fit").to_dict()
    assert [part["unit"].partition(":")[0] for part in content["parts"]] == ["one record", "one subject"]
    assert "rows_of" not in content and content["parts"][1]["rows_of"] == PATIENT
    assert refuted(tmp_path, content) == []
    content["parts"][0]["rows_of"] = PATIENT
    with pytest.raises(ValueError, match="no statement has the entry 'rows_of'"):
        refuted(tmp_path, content)


def test_an_entry_for_other_subjects_is_not_that_of_a_part(tmp_path):
    content = of_two_parts().to_dict()
    for entry in content["ledger"]["entries"]:
        entry["rows_of"] = "household"
    assert {"ledger: this fit is on it", "one kind of subjects"} <= {*refuted(tmp_path, content)}
