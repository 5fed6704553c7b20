"""``python -m skfairdp verify``: honest statements and ledgers hold, and every claim below the truth is refuted."""

import contextlib
import copy
import functools
import json
import math
import re
import time
import warnings

import pytest

import skfairdp.__main__ as cli
from skfairdp import PATEClassifier, privacy as dp
from skfairdp.exceptions import LedgerError
from skfairdp.privacy import PrivacyLedger, PrivacySpent, compose, composed, epsilon_of, repeat
from tests._tools.catalogue import OF_EACH_KIND, SPENDING, what_spent
from tests._tools.inside import SecondOpinion, UnreadableStatementError, verify_file
from tests._tools.statements import digested

RECORD = {"protects": "record", "neighboring_relation": "replace one record"}
GUEST = {"protects": "record", "neighboring_relation": "add or remove one record"}
ATTRIBUTE = {"protects": "sensitive attribute", "neighboring_relation": "replace one sensitive attribute"}
SAMPLED = dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(1.1))
GAUSSIAN = dp.GaussianDpEvent(2.5)
EVENTS = {
    "Gaussian": (repeat(GAUSSIAN, 7), RECORD),
    "bits": (compose(repeat(dp.ThresholdBit(50, 30.5, 20.0), 30), repeat(dp.ArgmaxBit(50, 15.0), 20)), RECORD),
    "bits of integers": (repeat(dp.ThresholdBit(20, 12.0, 9.0, "discrete_gaussian"), 10), RECORD),
    "winners of integers": (repeat(dp.ArgmaxBit(20, 9.0, "discrete_gaussian"), 10), RECORD),
    "restricted winners": (repeat(dp.ArgmaxBit(20, 9.0, restricted=True), 10), RECORD),
    "discrete Gaussian": (repeat(dp.DiscreteGaussian(6.0, 2**0.5), 9), RECORD),
    "sampled": (compose(repeat(SAMPLED, 60), GAUSSIAN), GUEST),
    "replaced": (compose(repeat(dp.ReplaceSampledGaussian(0.1, 1.2), 20), GAUSSIAN), ATTRIBUTE),
    "replaced nearby": (repeat(dp.ReplaceSampledGaussian(0.1, 1.2, 1.0), 20), RECORD),
    "Laplace": (repeat(dp.LaplaceDpEvent(4.0), 5), RECORD),
    "randomised response": (compose(dp.RandomizedResponseDpEvent(0.4, 3), repeat(GAUSSIAN, 3)), ATTRIBUTE),
    "the worst of unlike": (compose(dp.WorstOf((repeat(SAMPLED, 60), GAUSSIAN)), dp.GaussianDpEvent(4.0)), GUEST),
    "selection": (dp.RepeatAndSelectDpEvent(repeat(dp.GaussianDpEvent(6.0), 2), 10.0, 0.0), RECORD),
    "Poisson selection": (dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(6.0), 5.0, math.inf), RECORD),
    "rare disclosures": (compose(repeat(GAUSSIAN, 3), repeat(dp.RareDisclosure(2e-12), 12)), RECORD),
    "the worst of rare": (dp.WorstOf((compose(GAUSSIAN, dp.RareDisclosure(1e-11)), dp.LaplaceDpEvent(2.0))), RECORD),
    "selection of composed": (dp.RepeatAndSelectDpEvent(compose(GAUSSIAN, dp.GaussianDpEvent(6.0)), 5.0, 0.5), RECORD),
    "selection of the worst": (
        dp.RepeatAndSelectDpEvent(dp.WorstOf((GAUSSIAN, dp.ArgmaxBit(9, 3.0))), 5.0, 0.5),
        RECORD,
    ),
}


@functools.cache
def statement_of(name):
    event, guarantee = EVENTS[name]
    return PrivacySpent.of(event, 1e-5, **guarantee).statement(subject=name).to_dict()


def refuted(tmp_path, document, *, forged=True):
    """The claims that do not hold, of a file whose digest is that of what it says now."""
    path = tmp_path / "statement.json"
    if forged and isinstance(document, dict) and "digest" in document:
        document = digested(document)
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return [check.figure for check in verify_file(path) if not check.holds]


@pytest.fixture
def verified(tmp_path):
    return functools.partial(refuted, tmp_path)


@pytest.mark.parametrize("name", EVENTS)
def test_an_honest_statement_holds(verified, name):
    assert verified(statement_of(name)) == []


@pytest.mark.parametrize(
    "event",
    [
        dp.RandomizedResponseDpEvent(2.0**-63, 2),
        repeat(dp.RandomizedResponseDpEvent(2e-7, 5), 2),
        compose(repeat(dp.ThresholdBit(20, 51.15, 23.5), 60), dp.RandomizedResponseDpEvent(1.7e-7, 5)),
        repeat(dp.LaplaceDpEvent(0.15), 10),
    ],
    ids=["a lie in 2^64 answers", "two answers", "bits and an answer", "Laplace"],
)
def test_an_honest_statement_of_next_to_no_noise_holds(verified, event):
    """Found: what most answers lose fell between points of the grid, and the ε stated was below the next one."""
    assert verified(PrivacySpent.of(event, 1e-5, **RECORD).statement().to_dict()) == []


def lowered(document, path):
    document = copy.deepcopy(document)
    *way, last = path
    place = document
    for step in way:
        place = place[step]
    place[last] *= 0.99
    return document


#: Every third figure of each event, another third of the next one; all of them in ``make test-all``, where randomised
#: response is, whose figures take a second each.
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "randomised response")) for name in EVENTS]
)
def test_each_figure_lowered_by_one_percent_is_refuted(verified, name, step):
    document = statement_of(name)
    figures = [("epsilon",), ("mechanism_epsilon",), ("curve", 0, "epsilon"), ("curve", 4, "epsilon")]
    figures += [("curve", 7, "epsilon"), *(("attack", j, "true_positive_rate") for j in range(3))]
    figures += [("mu",)] if document["mu"] is not None else []
    for figure in figures[list(EVENTS).index(name) % step :: step]:
        assert verified(lowered(document, figure)), f"{figure} lowered by 1 % passed"


def test_a_smaller_delta_than_was_accounted_is_refuted(verified):
    document = statement_of("Gaussian") | {"delta": 1e-6}
    assert any(figure.startswith("ε at δ = 1e-06") for figure in verified(document))


def test_edited_noise_counts_tables_and_relations_are_refuted(verified):
    honest = statement_of("Gaussian")
    more_noise = copy.deepcopy(honest)
    more_noise["event"]["event"]["noise_multiplier"] *= 2
    # the claims hold for it, but it is not what was described and added up
    assert verified(more_noise) == ["table of releases", "parts", "μ"]
    less_noise = copy.deepcopy(honest)
    less_noise["event"]["event"]["noise_multiplier"] /= 1.05
    less_noise["releases"][0]["event"]["noise_multiplier"] /= 1.05
    assert "μ" in verified(less_noise)
    fewer = copy.deepcopy(honest)
    fewer["releases"][0]["count"] = 6
    assert verified(fewer) == ["table of releases"]
    assert "relation fits the releases" in verified(statement_of("sampled") | RECORD)
    assert "unit of protection" in verified(honest | {"protects": "sensitive attribute"})
    made = [{"mechanism": "GaussianMechanism", "sensitivity": 1.0, "sigma": 2.5, "times": 8}]
    assert verified(honest | {"performed": made}) == ["releases made"]
    assert verified(honest | {"performed": [made[0] | {"times": 7}]}) == []


def test_a_statement_that_does_not_say_what_was_drawn_is_read_as_such(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(statement_of("Gaussian")))
    (made,) = [check for check in verify_file(path) if check.figure == "releases made"]
    assert (made.claimed, made.recomputed) == ("not stated", "not compared")


WRONG = [("Gaussian", "pure"), ("sampled", "gdp"), ("Laplace", "auditor"), ("bits", None)]
GUESSED = {"name": "n", "how": "guessed", "value": 1, "consequence": ""}


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_an_accountant_that_cannot_have_certified_it_is_refuted(verified, name, wrong):
    assert verified(statement_of(name) | {"accountant": wrong}) == ["accountant"]


@pytest.mark.parametrize("edit", [{"subject": 1}, {"versions": {"certified": "yes"}}, {"public": [GUESSED]}])
def test_what_no_program_of_ours_writes_is_no_statement(verified, edit):
    with pytest.raises(UnreadableStatementError):
        verified(statement_of("Gaussian") | edit)


def paid_for():
    """Of a fit that was given what another release had found, with a fact that says so, and one of its ledger."""
    event = compose(repeat(GAUSSIAN, 2), dp.RareDisclosure(1e-9))
    schema = PrivacySpent.of(event, 1e-6, **RECORD, label="Schema.release", release="a")
    fact = dp.PublicFact("columns", "released", ["age"], f"by Schema.release at {schema.at}, which is added up")
    row = dp.PerformedRelease("GaussianMechanism", 1.0, 2.5, 7)
    rare = dp.PerformedRelease("CommonValues", 2**0.5, 2.5 * 2**0.5, 1)
    fit = PrivacySpent.of(repeat(GAUSSIAN, 7), 1e-5, **RECORD, public=[fact, dp.PublicFact("classes", "given", [0, 1])],
                          performed=[row, rare], label="a fit", release="b")  # fmt: skip
    ledger = PrivacyLedger(epsilon=10.0)
    ledger.charge(fit.event, label="a fit", **RECORD)
    return composed(fit, schema).statement(subject="a fit", ledger=ledger).to_dict()


def _row(part, **changes):
    return lambda said: said[part][0].update(changes)


def _entry(**changes):
    return lambda said: said["ledger"]["entries"][0].update(changes)


def _of_the_fit_alone(said):
    alone = PrivacySpent.of(repeat(GAUSSIAN, 7), 1e-5, **RECORD, label="a fit").statement(subject="a fit").to_dict()
    said.update(alone, public=said["public"], performed=[said["performed"][0]], ledger=said["ledger"])


def _one_release_of_it(said):
    event = dp.event_to_dict(GAUSSIAN)
    said["ledger"]["entries"][0]["event"] = event
    said["ledger"]["totals"][0]["epsilon"] = epsilon_of(GAUSSIAN, 1e-5)


def of_two_on_a_ledger():
    """Of a fit and of a model inside of it, both on the ledger."""
    ledger, parts = PrivacyLedger(epsilon=10.0), []
    for label, event in (("a model", GAUSSIAN), ("a fit", repeat(GAUSSIAN, 2))):
        ledger.charge(event, label=label, **RECORD)
        parts.append(PrivacySpent.of(event, 1e-5, **RECORD, label=label, release=label, on_record=ledger.head))
    return composed(parts[1], parts[0]).statement(subject="a fit", ledger=ledger).to_dict()


@pytest.mark.parametrize("entry", [0, 1])
def test_each_part_that_was_charged_is_on_the_ledger(entry, tmp_path):
    said = of_two_on_a_ledger()
    assert refuted(tmp_path, said) == [] and [part["on_ledger"] for part in said["parts"]] == [True, True]
    noisier = copy.deepcopy(said)
    noisier["ledger"]["entries"][entry]["event"] = dp.event_to_dict(dp.GaussianDpEvent(5.0))
    assert "ledger: this fit is on it" in refuted(tmp_path, noisier)
    left = dp.event_from_dict(said["ledger"]["entries"][1 - entry]["event"])
    del said["ledger"]["entries"][entry]
    said["ledger"]["totals"][0]["epsilon"] = epsilon_of(left, 1e-5)
    assert refuted(tmp_path, said) == ["ledger: this fit is on it"]


def test_a_part_that_is_not_on_the_ledger_is_named_beside_those_that_are(tmp_path):
    """Found: a fit said to be on no ledger, at less than it cost, beside a schema that was: "yes"."""
    ledger, parts = PrivacyLedger(epsilon=10.0), []
    for label, event in (("a schema", GAUSSIAN), ("a fit", repeat(GAUSSIAN, 2))):
        ledger.charge(event, label=label, **RECORD)
        parts.append(PrivacySpent.of(event, 1e-5, **RECORD, label=label, on_record=ledger.head))
    cheaper = PrivacySpent.of(dp.GaussianDpEvent(150.0), 1e-5, **RECORD, label="a fit")
    file = tmp_path / "s.json"
    for other, known in ((cheaper, ", of which it has other fits that this statement does not count"), (parts[1], "")):
        file.write_text(json.dumps(composed(other, parts[0]).statement(subject="a fit", ledger=ledger).to_dict()))
        (check,) = (one for one in verify_file(file) if one.figure == "ledger: this fit is on it")
        said = f"1 of its entries; not on it: 'a fit'{known}" if known else "2 of its entries"
        assert check.recomputed == said and check.claimed.startswith("in part, on" if known else "yes, on")


def _for_an_attribute(said):
    said["ledger"]["entries"][0].update(ATTRIBUTE)
    said["ledger"]["totals"][0].update(ATTRIBUTE)


LIES = {
    "noise as a text": _row("performed", sigma="2.5"),
    "noise without end": _row("performed", sigma="inf"),
    "noise beyond numbers": _row("performed", sigma=1e999),
    "no sensitivity": _row("performed", sensitivity=0),
    "rare values that nobody pays for": _row("performed", mechanism="CommonValues"),
    "a mechanism that nobody knows": _row("performed", mechanism="Voodoo"),
    "votes that a record moves by half": _row("performed", mechanism="NoisyVotes", sensitivity=0.5),
    "given": _row("public", how="given"),
    "read": _row("public", how="read"),
    "given, without its cost": _row("public", how="given", consequence=""),
    "given, and bought": lambda said: said["public"][1].update(how="released"),
    "what was given was paid for by nobody": _of_the_fit_alone,
    "a part left out": lambda said: said["parts"].pop(),
    "a part twice": lambda said: said["parts"].append(said["parts"][0]),
    "a part of more noise": lambda said: said["parts"][1].update(event=dp.event_to_dict(dp.GaussianDpEvent(9.0))),
    "a part that costs less": lambda said: said["parts"][1].update(epsilon=0.1),
    "a part for other neighbours": lambda said: said["parts"][1].update(GUEST),
    "a part that says nothing of its unit": lambda said: said["parts"][1].pop("unit"),
    "a part that protects more": lambda said: said["parts"][1].update(
        unit="one subject: all rows of one patient_id, however many"
    ),
    "a part of records with ids": lambda said: said["parts"][1].update(rows_of="patient_id"),
    "an ε above its mechanism's": lambda said: said.update(epsilon=said["epsilon"] + 1),
    "an infinite ε": lambda said: said.update(epsilon="inf"),
    "nothing is left at δ = 1": lambda said: said.update(delta=1.0, epsilon=0.0, mechanism_epsilon=0.0),
    "a point of the curve left out": lambda said: said["curve"].pop(3),
    "no attack": lambda said: said.update(attack=[]),
    "true for one": lambda said: said["releases"][-1].update(count=True),
    "an entry of nothing": _entry(event={"type": "NoOpDpEvent"}),
    "an entry of one release": _one_release_of_it,
    "an entry for something else": _for_an_attribute,
    "rows counted where they come and go": lambda said: said["public"].append(
        {"name": "features and labels", "how": "read", "value": None, "consequence": ""}
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_statement_that_contradicts_itself_is_refused(lie, tmp_path):
    said = paid_for()
    assert refuted(tmp_path, said) == []
    LIES[lie](said)
    with contextlib.suppress(UnreadableStatementError):
        assert refuted(tmp_path, said)


EDITS = {
    "nothing was carried out": lambda said: said.update(performed=[]),
    "a row of it left out": lambda said: said["performed"].pop(),
    "more noise": lambda said: said["performed"][0].update(sigma=5.0),
    "fewer releases": lambda said: said["performed"][0].update(times=1),
    "no public facts": lambda said: said.update(public=[]),
    "one less": lambda said: said["public"].pop(),
    "another value": lambda said: said["public"][1].update(value=[0, 1, 2]),
    "another subject": lambda said: said.update(subject="another fit"),
    "another version": lambda said: said["versions"].update(skfairdp="9.0"),
    "a larger budget": lambda said: said["ledger"].update(epsilon=20.0),
    "another name on the ledger": lambda said: said["ledger"]["entries"][0].update(label="another fit"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_no_figure_tells_is_seen_by_the_digest(edit, tmp_path):
    said = paid_for()
    EDITS[edit](said)
    with contextlib.suppress(UnreadableStatementError):
        assert "text as it was written" in refuted(tmp_path, said, forged=False)


def test_a_mu_that_is_left_out_or_made_up_is_refuted(verified):
    honest = statement_of("Gaussian")
    assert verified(honest | {"mu": None}) == verified(honest | {"mu": honest["mu"] + 1}) == ["μ"]


def test_an_attribute_may_be_told_of_by_a_fit_for_records(verified):
    """Its releases count twice there: what is added up is held against the figure, not against the list."""
    of_records = PrivacySpent.of(dp.GaussianDpEvent(6.0), 1e-5, protects="record", release="a",
                                 neighboring_relation="replace one record by a null record")  # fmt: skip
    whole = composed(PrivacySpent.of(GAUSSIAN, 1e-5, **ATTRIBUTE, release="b"), of_records)
    said = whole.statement().to_dict()
    assert verified(said) == [] and whole.epsilon > epsilon_of(compose(GAUSSIAN, of_records.event), 1e-5)
    event = compose(GAUSSIAN, of_records.event)
    counted_once = PrivacySpent.of(event, 1e-5, **ATTRIBUTE).statement().to_dict()
    assert "parts" in verified(counted_once | {"parts": said["parts"]})


def test_seeded_noise_can_claim_nothing(verified):
    spent = PrivacySpent.of(GAUSSIAN, 1e-5, **RECORD, secret_noise=False)
    honest = spent.statement().to_dict()
    secret = PrivacySpent.of(GAUSSIAN, 1e-5, **RECORD).statement().to_dict()
    for part in ("curve", "attack"):  # what holds for secret noise, each figure by itself
        assert len(verified(honest | {part: secret[part]})) == len(secret[part])
    assert verified(honest) == [] and honest["epsilon"] == "inf" and honest["attack"][0]["true_positive_rate"] == 1
    assert verified(honest | {"epsilon": 50.0})
    assert verified(honest | {"mu": 5.0})


def test_no_noise_can_claim_nothing(verified):

    honest = PrivacySpent.of(compose(GAUSSIAN, dp.NonPrivateDpEvent()), 1e-5, **RECORD).statement().to_dict()
    assert verified(honest) == []
    assert verified(honest | {"epsilon": 1e6, "mechanism_epsilon": 1e6})


# ---- every estimator -------------------------------------------------------------------------------------------------
#: Randomised response with noisy scores takes ten seconds to compute twice; its event is among those above.
NOW = [fit.name for fit in OF_EACH_KIND if fit.name != "Pareto-attribute"]


@pytest.mark.parametrize(
    "fit", [pytest.param(fit, id=fit.name, marks=[pytest.mark.slow] * (fit.name not in NOW)) for fit in SPENDING]
)
def test_the_statement_of_every_estimator_holds(fit, verified):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit.make()
        fitted = fit.fit(model, fit.rows())
    stated = what_spent(model, fitted)
    statement = stated.privacy_statement()
    assert statement.epsilon == stated.privacy_.epsilon < math.inf
    document = json.loads(statement.to_json())
    assert verified(document) == []
    assert verified(lowered(document, ("epsilon",)))


# ---- ledgers ---------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:.*Keep to one kind")
def test_a_ledger_is_recomputed_against_its_ceiling(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = PrivacyLedger(epsilon=3.0, delta=1e-5, path=path)
    ledger.charge(dp.GaussianDpEvent(4.0), label="a mean", **RECORD)
    ledger.charge(dp.GaussianDpEvent(9.0), label="a mean of groups", **ATTRIBUTE)
    assert all(check.holds for check in verify_file(path))
    text = path.read_text("utf-8")
    path.write_text(text.replace('"noise_multiplier": 4.0', '"noise_multiplier": 0.4'), "utf-8")
    broken = [check.figure for check in verify_file(path) if not check.holds]
    assert any("chain" in figure for figure in broken) and any("ceiling" in figure for figure in broken)
    path.write_text("\n".join(text.splitlines()[:-1]) + "\n", "utf-8")
    assert [check.figure for check in verify_file(path) if not check.holds] == ["chain of entries"]


def test_the_story_of_the_ledger_is_in_the_statement_and_recomputed(rows, verified):
    ledger = PrivacyLedger(epsilon=10.0)
    for n_teachers in (2, 3):
        model = PATEClassifier(epsilon=1.0, classes=[0, 1], n_teachers=n_teachers, ledger=ledger, random_state=0)
        model.fit(rows.X, rows.y, X_public=rows.X_public)
    document = model.privacy_statement().to_dict()
    assert len(document["ledger"]["entries"]) == 2
    assert document["ledger"]["totals"][0]["epsilon"] == pytest.approx(ledger.epsilon_spent)
    assert verified(document) == []
    assert verified(lowered(document, ("ledger", "totals", 0, "epsilon")))
    without = copy.deepcopy(document)
    without["ledger"]["totals"] = []
    assert "kinds of guarantee on the ledger" in verified(without)


EDITED = {
    "a larger unit": {"unit": "all records of a household"},
    "other neighbours": {"relation_text": "Any two data sets are neighbours."},
    "more post-processing": {"post_processing": "The guarantee covers another use of the private rows."},
    "an attribute for a record": {
        "protects": "sensitive attribute", "neighboring_relation": "replace one sensitive attribute"
    },
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITED)
def test_what_people_read_cannot_be_edited(edit, verified):
    assert verified(statement_of("Gaussian") | EDITED[edit]) == ["sentences"]


def test_a_ledger_cannot_show_a_second_total_nor_a_ceiling_below_one(verified):
    ledger = PrivacyLedger(epsilon=10.0)
    ledger.charge(GAUSSIAN, label="a mean", **RECORD)
    honest = PrivacySpent.of(GAUSSIAN, 1e-5, **RECORD).statement(ledger=ledger).to_dict()
    assert verified(honest) == []
    story = honest["ledger"]
    assert verified(honest | {"ledger": story | {"epsilon": ledger.epsilon_spent * 0.99}}) == ["ledger: ceiling"]
    twice = story | {"totals": [story["totals"][0] | {"epsilon": 0.01}, *story["totals"]]}
    with pytest.raises(UnreadableStatementError, match="two totals of one kind"):
        verified(honest | {"ledger": twice})


def without_its_last_newline(data):
    return data.removesuffix(b"\n")


def a_charge_that_was_never_completed(data):
    return data + b'{"index": 3, "label": "half'


#: What may become of a ledger's file.
FILES = {
    "as it was written": lambda data: data,
    "without its last newline": without_its_last_newline,
    "with a torn line": a_charge_that_was_never_completed,
    "with a whole line that the header does not count": lambda data: re.sub(
        rb'"count": *2, "head": "\w+"', rb'"count":          1, "head": "' + re.findall(rb'"hash": "(\w+)', data)[0]
        + b'"', data),
    "with a byte-order mark": lambda data: b"\xef\xbb\xbf" + data,
    "with the newlines of another system": lambda data: data.replace(b"\n", b"\r\n"),
    "with an empty line": lambda data: data + b"\n",
    "cut in its last line": lambda data: data[:-20],
    "cut after its header": lambda data: data.partition(b"\n")[0] + b"\n",
    "of one header alone": lambda data: data.partition(b"\n")[0],
    "with a space": lambda data: data.replace(b'"label": ', b'"label":  ', 1),
    "with a whole number for its budget": lambda data: data.replace(b'"epsilon": 3.0', b'"epsilon": 3', 1),
    "with another id": lambda data: re.sub(rb'"id": "\w{4}', b'"id": "0000', data, count=1),
    "with no id": lambda data: re.sub(rb'"id": "\w+", ', b"", data, count=1),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The ledger file")
@pytest.mark.parametrize("change", FILES)
def test_verify_takes_the_files_that_a_ledger_takes_and_no_other(change, tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = PrivacyLedger(epsilon=3.0, delta=1e-5, path=path)
    for sigma in (4.0, 9.0):
        ledger.charge(dp.GaussianDpEvent(sigma), label="a mean", **RECORD)
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(FILES[change](path.read_bytes()))
    try:
        entries = len(PrivacyLedger(epsilon=3.0, delta=1e-5, path=changed).entries)
    except LedgerError:
        entries = None
    try:
        checks = verify_file(changed)
        found = int(checks[0].recomputed.split()[0]) if all(check.holds for check in checks) else None
    except UnreadableStatementError:
        found = None
    assert found == entries
    assert (entries is None) == (change not in [*FILES][:4])


def test_a_statement_is_of_the_ledger_that_its_id_names(tmp_path, capsys):
    path, other = tmp_path / "ledger.jsonl", tmp_path / "other.jsonl"
    for one in (path, other):  # the same fits, of other rows
        ledger = PrivacyLedger(epsilon=10.0, path=one)
        ledger.charge(GAUSSIAN, label="a mean", **RECORD)
    ledger = PrivacyLedger(epsilon=10.0, path=path)
    said = PrivacySpent.of(GAUSSIAN, ledger.delta, **RECORD, label="a mean").statement(ledger=ledger).to_dict()
    ledger.charge(GAUSSIAN, label="a later fit", **RECORD)
    unnamed = copy.deepcopy(said)
    del unnamed["ledger"]["id"]
    alone = digested(said | {"ledger": None})
    file = tmp_path / "statement.json"
    for document, of, holds in (
        (said, path, True), (said, other, False), (digested(unnamed), path, False), (alone, path, False),
    ):  # fmt: skip
        file.write_text(json.dumps(document), "utf-8")
        assert all(check.holds for check in verify_file(file))
        assert [check.figure for check in verify_file(file, ledger=of) if not check.holds] == (
            [] if holds else ["ledger: that of the file"]
        )
        assert not holds or verify_file(file, ledger=of)[-1].recomputed == "the same, and 1 later fit"
        assert cli.main(["verify", str(file), "--ledger", str(of)]) == (0 if holds else 1)
    capsys.readouterr()
    file.write_text(json.dumps(digested(unnamed)), "utf-8")
    assert cli.main(["verify", str(file)]) == 0
    assert "a ledger that it does not name" in capsys.readouterr().out
    path.write_bytes(path.read_bytes()[:-20])
    file.write_text(json.dumps(said), "utf-8")
    with pytest.raises(UnreadableStatementError, match=r"ledger\.jsonl cannot be verified"):
        verify_file(file, ledger=path)
    with pytest.raises(UnreadableStatementError, match="no_ledger"):
        verify_file(file, ledger=tmp_path / "no_ledger.jsonl")
    with pytest.raises(UnreadableStatementError, match="is not a file that PrivacyLedger has written"):
        verify_file(file, ledger=file)


def test_a_header_of_another_ledger_is_refuted(tmp_path):
    """The chain is whole, and so is the count: the last hash is that of another file."""
    heads = []
    for sigma in (4.0, 5.0):
        ledger = PrivacyLedger(epsilon=3.0, delta=1e-5, path=tmp_path / f"{sigma}.jsonl")
        ledger.charge(dp.GaussianDpEvent(sigma), label="a mean", **RECORD)
        heads.append(json.loads((tmp_path / f"{sigma}.jsonl").read_text("utf-8").splitlines()[0])["head"])
    path = tmp_path / "4.0.jsonl"
    header, line, _ = path.read_text("utf-8").split("\n")
    path.write_text(f"{header.replace(*heads)}\n{line}\n", "utf-8")
    assert [check.figure for check in verify_file(path) if not check.holds] == ["chain of entries"]
    path.write_text(f"{header}\n{line.replace('a mean', 'a mode')}\n", "utf-8")
    assert [check.figure for check in verify_file(path) if not check.holds] == ["chain of entries"]


# ---- every field -----------------------------------------------------------------------------------------------------
def whole_statement(kind):
    """Of a fit with two kinds of releases, on a ledger with another one."""
    ledger = PrivacyLedger(epsilon=10.0)
    other, last = {
        "by μ": (dp.GaussianDpEvent(4.0), dp.PerformedRelease("GaussianMechanism", 1.0, 4.0, 1)),
        "by losses": (dp.LaplaceDpEvent(4.0), dp.PerformedRelease("LaplaceCounts", 1.0, 4 * 2**0.5, 1)),
    }[kind]
    event = compose(repeat(dp.GaussianDpEvent(25.0), 7), other)
    ledger.charge(event, label="this fit", releases=("means",), **RECORD)
    ledger.charge(dp.GaussianDpEvent(9.0), label="another fit", **RECORD)
    performed = [dp.PerformedRelease("GaussianMechanism", 1.0, 25.0, 7), last]
    spent = PrivacySpent.of(event, 1e-5, public=["names"], performed=performed, **RECORD)
    return spent.statement(subject="a mean", ledger=ledger).to_dict()


def leaves(value, way=()):
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*way, key))
    else:
        yield way


def changed(document, way, value):
    document = copy.deepcopy(document)
    place = document
    for step in way[:-1]:
        place = place[step]
    place[way[-1]] = value
    return document


#: What a program writes about a fit and nobody can compute: names, and a ceiling above what was spent.
WORDS = {"subject", "label", "name", "value", "consequence", "python", "skfairdp", "numpy", "scipy", "dp-accounting"}
#: What was carried out may have been less than what is paid for, a rate that is lower is found as often at most, and a
#: ceiling that is lower is one as long as nothing is above it.
LESS = {("performed", "sensitivity"), ("performed", "times"), ("attack", "false_positive_rate"), ("ledger", "epsilon")}


#: What is added up by μ is computed again in a twentieth of the time that distributions of losses take.
every_kind = pytest.mark.parametrize("kind", ["by μ", pytest.param("by losses", marks=pytest.mark.slow)])
CHANGES = ["lowered", "nothing", "negative", "a text", "a list", "true"]


#: Every field in two of the six ways; in all of them in ``make test-all``.
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("change", CHANGES)
@every_kind
def test_every_field_that_is_changed_is_refused(kind, change, step, verified):
    document = whole_statement(kind)
    assert verified(document) == []
    passed = []
    for way in [way for way in leaves(document) if way != ("digest",)][CHANGES.index(change) % step :: step]:
        name = way[-1] if isinstance(way[-1], str) else way[-2]
        place = functools.reduce(lambda inside, step: inside[step], way, document)
        if change == "lowered":
            if not isinstance(place, int | float) or isinstance(place, bool) or (way[0], name) in LESS:
                continue
            value = place * 0.99 if isinstance(place, float) else place - 1
        else:
            value = {"nothing": None, "negative": -1.0, "a text": "x", "a list": [], "true": True}[change]
            if value == place or name in WORDS:
                continue
            if (name == "releases" or name == "mechanism") and change == "a text":
                continue
            if (name, change) == ("on_ledger", "true"):  # and so it is: nothing says of it when it was charged
                continue
        try:
            if not verified(changed(document, way, value)):
                passed.append(way)
        except UnreadableStatementError:
            pass
    assert not passed


@every_kind
def test_every_field_that_is_left_out_is_refused(kind, verified):
    document = whole_statement(kind)
    ways = {way[:end] for way in leaves(document) for end in range(1, len(way) + 1) if isinstance(way[end - 1], str)}
    for way in sorted(ways - {("ledger", "id")}, key=str):  # ledgers of earlier versions have none
        edited = copy.deepcopy(document)
        place = functools.reduce(lambda inside, step: inside[step], way[:-1], edited)
        del place[way[-1]]
        with contextlib.suppress(UnreadableStatementError):
            assert verified(edited), f"{way} is missing"


# ---- large files -----------------------------------------------------------------------------------------------------
def within(event, depth, **fields):
    for level in range(depth):
        other = L | {"noise_multiplier": 5.0 + level}
        event = fields | ({"event": event} if fields["type"].startswith("Repeat") else {"events": [event, other]})
    return event


G, L = {"type": "GaussianDpEvent", "noise_multiplier": 4.0}, {"type": "LaplaceDpEvent", "noise_multiplier": 4.0}
BIT = {"type": "ThresholdBit", "n_teachers": 10, "threshold": 6.0, "sigma": 9.0, "noise": "gaussian"}
WINNER = {"type": "ArgmaxBit", "n_teachers": 10, "sigma": 9.0, "noise": "discrete_gaussian", "restricted": False}
ALL = {"type": "ComposedDpEvent"}
HUGE = {
    "teachers": BIT | {"n_teachers": 10**7},
    "teachers and Laplace noise": ALL | {"events": [BIT | {"n_teachers": 10**6}, L]},
    "winners of integers": WINNER | {"n_teachers": 10**6},
    "noise of integers": WINNER | {"sigma": 1e12},
    "kinds": ALL | {"events": [L | {"noise_multiplier": 1 + k / 1e4} for k in range(1000)]},
    "worst cases": {"type": "WorstOf", "events": [L | {"noise_multiplier": 1 + k / 1e4} for k in range(1000)]},
    "worst cases in worst cases": within(L, 12, type="WorstOf"),
    "selections of selections": within(L, 6, type="RepeatAndSelectDpEvent", mean=5.0, shape="inf"),
}


def trial(k):
    """Of one candidate of a search on three folds of two sizes, refitted."""
    folds = [compose(repeat(dp.PoissonSampledDpEvent(q + k / 1e4, dp.GaussianDpEvent(2.0)), 40), GAUSSIAN)
             for q in (0.1, 0.2, 0.1)]  # fmt: skip
    return compose(*(dp.WorstOf((fold, GAUSSIAN)) for fold in folds), folds[0])


def test_searches_of_many_candidates_are_computed_again_in_seconds(verified):
    """They were refused: what is chosen from was counted as often as it can be looked at."""
    event = dp.RepeatAndSelectDpEvent(dp.WorstOf([trial(k % 20) for k in range(40)]), 40.0, 0.0)
    said = PrivacySpent.of(event, 1e-5, **GUEST).statement(subject="a search").to_dict()
    began = time.process_time()
    assert verified(said) == []
    assert time.process_time() - began < 20
    assert verified(lowered(said, ("epsilon",)))


@pytest.mark.parametrize("name", HUGE)
def test_an_event_that_would_take_minutes_is_one_clear_line(name, tmp_path):
    """The event of the statement, or one on its ledger."""
    honest, path = statement_of("Gaussian"), tmp_path / "statement.json"
    entry = {"label": "", **RECORD, "releases": [], "event": HUGE[name]}
    story = {"epsilon": "inf", "delta": 1e-5, "totals": [{**RECORD, "epsilon": 9.0}], "entries": [entry]}
    for edit in ({"event": HUGE[name]}, {"ledger": story}):
        path.write_text(json.dumps(honest | edit), encoding="utf-8")
        began = time.process_time()
        with pytest.raises(UnreadableStatementError, match="too large to be computed again"):
            verify_file(path)
        assert time.process_time() - began < 2


#: Values that no memory holds one by one, and figures that are computed all the same.
FAR = {
    "no noise to speak of": L | {"noise_multiplier": 1e-7},
    "tiny and huge losses": ALL | {"events": [L | {"noise_multiplier": 1e-7}, L | {"noise_multiplier": 1e4}]},
    "very many": {"type": "SelfComposedDpEvent", "event": L, "count": 2**50},
    "values of answers": {"type": "RandomizedResponseDpEvent", "noise_parameter": 0.3, "num_buckets": 10**12},
    "many teachers": BIT | {"n_teachers": 10**5},
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", FAR)
def test_figures_far_out_are_refuted_in_seconds(name, verified):
    began = time.process_time()
    assert verified(statement_of("Gaussian") | {"event": FAR[name], "mechanism_epsilon": 1e-3})
    assert time.process_time() - began < 10


# ---- malformed files -------------------------------------------------------------------------------------------------
def edited(**changes):
    return json.dumps(statement_of("Gaussian") | changes)


def with_event(**changes):
    document = statement_of("Gaussian")
    return json.dumps(document | {"event": document["event"] | changes})


MALFORMED = {
    "a gap that nobody computes again": edited(gap_bound={"at_most": 0.1, "confidence": 0.95}),
    "a promise that nobody checks": edited(promise="no record can be recovered"),
    "without what was taken as public": json.dumps(
        {k: v for k, v in statement_of("Gaussian").items() if k != "public"}
    ),
    "empty": "",
    "no JSON": "epsilon = 1",
    "a list": "[1, 2]",
    "another format": '{"format": "other"}',
    "nothing in it": '{"format": "skfairdp-statement-1"}',
    "NaN": edited().replace(str(statement_of("Gaussian")["epsilon"]), "NaN"),
    "negative": edited(epsilon=-1.0),
    "text for a figure": edited(delta="small"),
    "delta above 1": edited(delta=2.0),
    "unknown relation": edited(neighboring_relation="replace a word"),
    "unknown event": with_event(type="FreeDpEvent"),
    "refund": with_event(count=-7),
    "half a release": with_event(count=0.5),
    "event is a list": edited(event=[1]),
    "secrecy is a word": edited(noise_is_secret="yes"),
    "a key twice": edited().replace('"mu":', '"epsilon": 0.1, "mu":', 1),
    "an event with a key twice": edited().replace('"count": 7', '"count": 7, "count": 7'),
    "too long": edited(subject="long " * 2**23),
    "a curve of very many points": edited(curve=statement_of("Gaussian")["curve"] * 20),
    "attacks without end": edited(attack=statement_of("Gaussian")["attack"] * 40),
    "a ledger without a chain": '{"format": "skfairdp-ledger-1", "epsilon": 1.0, "delta": 1e-05}\n',
    "a ledger with a promise": '{"format": "skfairdp-ledger-2", "epsilon": 1.0, "delta": 1e-05, "safe": true, '
    '"count": 0, "head": ""}\n',
    "deep": '{"format": "skfairdp-statement-1", "a": ' + "[" * 100_000,
    "cut ledger": '{"format": "skfairdp-ledger-1", "epsilon": 1.0, "delta": 1e-05}',
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_file_is_one_clear_line(tmp_path, capsys, text):
    path = tmp_path / "statement.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableStatementError) as caught:
        verify_file(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert cli.main(["verify", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1


def test_a_missing_or_binary_file_is_one_clear_line(tmp_path, capsys):
    (tmp_path / "model.pkl").write_bytes(b"\x80\x05\xff")
    for name in ("nothing.json", "model.pkl", "."):
        assert cli.main(["verify", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


# ---- command line ----------------------------------------------------------------------------------------------------
def test_the_command_prints_claims_beside_what_was_recomputed(tmp_path, capsys):
    path = tmp_path / "statement.json"
    path.write_text(json.dumps(statement_of("bits")), encoding="utf-8")
    assert cli.main(["verify", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "recomputed" in out and out.splitlines()[-2].endswith("claims hold.")
    assert "Only a ledger" in out.splitlines()[-1]
    lower = digested(lowered(statement_of("bits"), ("curve", 2, "epsilon")))
    path.write_text(json.dumps(lower), encoding="utf-8")
    assert cli.main(["verify", str(path)]) == 1
    out, err = capsys.readouterr()
    assert err.count("\n") == 1 and "refuted: ε at δ = 1e-05" in err and "claims hold" not in out
    shouting = digested(statement_of("bits") | {"accountant": "pld\nAll 20 claims hold.\x1b[2K"})
    path.write_text(json.dumps(shouting), "utf-8")
    assert cli.main(["verify", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "pld?All 20 claims hold.?[2K" in err and "\x1b" not in out + err and err.count("\n") == 1


def test_the_total_of_a_ledger_is_shown_whatever_its_ceiling(tmp_path):
    """It was the first bound below the ceiling: 3.6 where 2.0 was spent, and inf without a ceiling."""
    for ceiling in (5.0, math.inf):
        ledger = PrivacyLedger(ceiling, path=tmp_path / f"{ceiling}.jsonl")
        ledger.charge(repeat(SAMPLED, 60), label="a fit", **GUEST)
        total = verify_file(ledger.path)[-1]
        assert total.holds and float(total.recomputed) == pytest.approx(ledger.epsilon_spent, rel=1e-3)


# ---- the second opinion ----------------------------------------------------------------------------------------------
@pytest.mark.covering
@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("delta", [1e-3, 1e-7])
def test_both_implementations_agree_to_a_tenth_of_a_percent(name, delta):
    event, _ = EVENTS[name]
    ours = epsilon_of(event, delta)
    theirs = SecondOpinion(event).epsilon(delta, ours * 0.9)
    assert theirs == pytest.approx(ours, rel=2e-3)


def test_many_bits_beside_releases_that_cost_much_refute_no_honest_total():
    """Rounding of each point without mass added to the mass there: 1e-7 of ε after a thousand bits."""
    bits = repeat(dp.ArgmaxBit(80, 237.9, "gaussian", False), 1000)
    event = compose(bits, repeat(dp.ReplaceSampledGaussian(0.79, 20.0, 2.0), 26), dp.GaussianDpEvent(0.5))
    claim = epsilon_of(event, 1e-3)
    assert SecondOpinion(event).epsilon(1e-3, claim) <= claim


def test_the_second_opinion_on_bits_is_exact_by_high_precision():
    """One bit of 3 teachers, order 4, by mpmath."""
    import mpmath

    from skfairdp.privacy._recompute import _renyi_of

    mpmath.mp.dps = 40
    bit, order = dp.ThresholdBit(3, 1.7, 2.0), 4
    chance = [mpmath.ncdf((v - mpmath.mpf("1.7")) / 2) for v in range(4)]
    worst = max(
        mpmath.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
        for p, q in [(chance[v], chance[w]) for v in range(4) for w in (v - 1, v + 1) if 0 <= w < 4]
    )
    assert _renyi_of(bit, order) == pytest.approx(float(worst), rel=1e-12)
