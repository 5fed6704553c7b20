"""The privacy statement: made from ``privacy_`` alone, in forms that people, programs and registries read."""

import doctest
import html.parser
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import norm

from skfairdp import FairPATEClassifier, PATEClassifier, PFLDClassifier, PrivacyLedger
from skfairdp.privacy import (
    GaussianDpEvent,
    PerformedRelease,
    PoissonSampledDpEvent,
    PrivacySpent,
    PublicFact,
    RandomizedResponseDpEvent,
    compose,
    epsilon_of,
    repeat,
)
from tests._tools.inside import PrivacyStatement, attack_bound

RECORD = {"protects": "record", "neighboring_relation": "replace one record"}
GAUSSIAN = PrivacySpent.of(repeat(GaussianDpEvent(4.0), 4), 1e-5, **RECORD)
SAMPLED = PrivacySpent.of(
    compose(repeat(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)), 10), GaussianDpEvent(5.0)),
    1e-5,
    protects="record",
    neighboring_relation="add or remove one record",
)
ENTRY = {
    "name": "A model of incomes",
    "data_curators": ["The office"],
    "description": "A classifier.",
    "intended_use": "Teaching.",
    "data_product_region": "World",
    "publication_date": "2026-01-31",
    "registry_authors": ["The office"],
}


@pytest.fixture(scope="module")
def fitted(rows):
    model = FairPATEClassifier(classes=[0, 1], n_teachers=5, random_state=0, gamma=None)
    return model.fit(rows.X, rows.y, X_public=rows.public)


# ---- figures ---------------------------------------------------------------------------------------------------------
def test_the_curve_has_eight_deltas_and_each_epsilon_is_that_of_the_event():
    curve = dict(SAMPLED.statement().curve)
    assert sorted(curve) == pytest.approx([10.0**-k for k in range(10, 2, -1)])
    for delta, epsilon in curve.items():
        assert epsilon == epsilon_of(SAMPLED.event, delta)


def test_mu_is_exact_for_gaussian_releases_and_absent_elsewhere():
    assert GAUSSIAN.statement().mu == pytest.approx(0.5, rel=1e-15)
    assert SAMPLED.statement().mu is None


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1])
def test_the_attack_bound_is_the_gaussian_trade_off_curve(rate):
    stated = dict(GAUSSIAN.statement().attack)[rate]
    assert stated == pytest.approx(norm.sf(norm.isf(rate) - 0.5), rel=1e-9)
    assert stated >= norm.sf(norm.isf(rate) - 0.5) * (1 - 1e-14)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1])
def test_no_test_of_a_sampled_gaussian_finds_more_than_the_statement_says(rate):
    """The most powerful test of ten sampled releases, simulated, stays under the bound, which is no triviality."""
    bound = dict(SAMPLED.statement().attack)[rate]
    rng = np.random.default_rng(0)
    present = rng.random((100_000, 10)) < 0.1
    noise = rng.normal(size=(2, 100_000, 10))
    other = rng.normal(size=(2, 100_000)) * 5 + np.array([[0.0], [1.0]])

    def statistic(x, extra):
        return np.log(0.9 + 0.1 * np.exp(x - 0.5)).sum(axis=1) + extra / 25

    without, within = statistic(noise[0], other[0]), statistic(noise[1] + present, other[1])
    found = np.mean(within > np.quantile(without, 1 - rate))
    assert found < bound * 1.02 and bound < 50 * rate


@pytest.mark.parametrize("sigma", [2.5, 3.7, 4.1, 9.3])
def test_every_bound_in_a_text_is_rounded_up(sigma):
    statement = PrivacySpent.of(GaussianDpEvent(sigma), 3e-6, **RECORD).statement(gap_bound=1 / sigma / 7)
    losses = statement.to_registry(**ENTRY)["deployment"]["privacy_loss"]["privacy_parameters_details"]
    told = [float(one) for one in re.findall(r"epsilon = (\S+) at", losses)]
    assert len(told) == len(statement.curve)
    assert all(one >= epsilon for one, (_, epsilon) in zip(told, statement.curve, strict=True))
    assert float(re.search(r"mu = (\S+)", losses)[1]) >= statement.mu
    found = [float(one) for one in re.findall(r"at most (\S+) at a false", losses)]
    percent = [float(one) for one in re.findall(r"\| [0-9.]+% \| ([0-9.]+)% \|", statement.to_markdown())]
    assert len(found) == len(percent) == len(statement.attack)
    for said, shown, (_, rate) in zip(found, percent, statement.attack, strict=True):
        assert rate <= said <= rate * 1.01 and rate <= shown / 100 <= rate + 1.001e-4
    assert float(re.search(r"is at most ([0-9.]+), with", statement.to_markdown())[1]) >= statement.gap_bound


def test_attack_bounds_follow_from_each_point_of_the_curve():
    assert attack_bound(0.01, [(1e-5, 1.0)], None) == pytest.approx(math.e * 0.01 + 1e-5)
    assert attack_bound(0.9, [(0.0, 1.0)], None) == pytest.approx(1 - math.exp(-1) * 0.1)
    assert attack_bound(0.01, [(1e-5, math.inf)], None) == 1


def test_seeded_noise_states_no_guarantee():
    seeded = PrivacySpent.of(GAUSSIAN.event, 1e-5, **RECORD, secret_noise=False).statement()
    assert math.isinf(seeded.epsilon) and seeded.mu is None and seeded.curve == ()
    assert {found for _, found in seeded.attack} == {1.0}
    assert "no guarantee" in seeded.to_markdown() and "no guarantee" in seeded.to_html()
    with pytest.raises(ValueError, match="no guarantee to register"):
        seeded.to_registry(**ENTRY)


def test_a_pure_guarantee_holds_at_every_delta():
    event = RandomizedResponseDpEvent(0.4, 2)
    attribute = {"protects": "sensitive attribute", "neighboring_relation": "replace one sensitive attribute"}
    statement = PrivacySpent.of(event, 0.0, **attribute).statement()
    assert statement.curve[-1] == (0.0, statement.epsilon)
    assert statement.to_registry(**ENTRY)["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert max(epsilon for _, epsilon in statement.curve) == statement.epsilon


def test_printed_figures_are_rounded_up():
    for spent in (GAUSSIAN, SAMPLED):
        shown = float(re.search(r"ε = ([\d.]+) at", spent.statement().summary)[1])
        assert spent.epsilon <= shown < spent.epsilon * 1.0005
        assert spent.epsilon <= float(re.match(r"epsilon=([\d.]+) at", str(spent))[1]) < spent.epsilon * 1.0015
        rows = dict(re.findall(r"^\| ([\de.-]+) \| ([\d.]+) \|$", spent.statement().to_markdown(), re.MULTILINE))
        for delta, epsilon in spent.statement().curve:
            assert epsilon <= float(rows[f"{delta:.5g}"]) <= epsilon * 1.001


# ---- forms -----------------------------------------------------------------------------------------------------------
def test_json_holds_every_figure_to_the_last_digit_and_no_constant_beyond_json():
    statement = SAMPLED.statement(subject="x")
    document = json.loads(statement.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert document == statement.to_dict()
    assert document["epsilon"] == SAMPLED.epsilon
    seeded = PrivacySpent.of(GAUSSIAN.event, 1e-5, **RECORD, secret_noise=False).statement()
    assert json.loads(seeded.to_json(), parse_constant=lambda name: pytest.fail(name))["epsilon"] == "inf"


def test_markdown_names_unit_relation_releases_and_versions(fitted):
    text = fitted.privacy_statement().to_markdown()
    assert text.startswith("## Privacy statement: FairPATEClassifier\n")
    for part in ("one record", "values of one record", "Gaussian noise", "dp-accounting", "number of private rows"):
        assert part in text, part
    assert re.search(r"\| 0\.1% \| \d", text)


class _Balanced(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.open += [tag] * (tag != "meta")  # which has no end
        self.seen.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_balanced_escaped_and_links_nowhere():
    page = GAUSSIAN.statement(subject="<script>alert(1)</script>").to_html()
    parser = _Balanced()
    parser.feed(page)
    assert not parser.open and parser.seen >= {"html", "style", "main", "h2", "h3", "p", "table", "tr", "th", "td"}
    assert not parser.seen & {"script", "link", "img", "iframe"}
    assert "&lt;script&gt;" in page and "<script" not in page
    part = GAUSSIAN.statement(subject="a")._repr_html_()
    assert "<html" not in part and part.count("<table") == GAUSSIAN.statement(subject="a").to_html().count("<table")


def test_a_statement_cannot_be_changed():
    statement = GAUSSIAN.statement()
    with pytest.raises(AttributeError):
        statement.text = "{}"
    statement.to_dict()["curve"][0]["epsilon"] = 0
    assert dict(statement.curve)[1e-3] > 0


# ---- what it follows -------------------------------------------------------------------------------------------------
def test_a_statement_is_the_same_for_other_private_rows(rows):
    def stated(X, y):
        model = PATEClassifier(classes=[0, 1], n_teachers=5, random_state=0)
        return model.fit(X, y, X_public=rows.X_public).privacy_statement().to_json()

    assert stated(rows.X, rows.y) == stated(1e3 * rows.X[::-1], 1 - rows.y)


def test_an_unfitted_estimator_has_no_statement():
    with pytest.raises(AttributeError, match="Fit it first"):
        PFLDClassifier().privacy_statement()


def test_hyper_parameters_are_told_as_in_the_ledger(rows):
    ledger = PrivacyLedger(epsilon=10.0)
    for n_teachers in (2, 3):
        model = PATEClassifier(epsilon=1.0, classes=[0, 1], n_teachers=n_teachers, ledger=ledger, random_state=0)
        model.fit(rows.X, rows.y, X_public=rows.X_public)
    told = model.privacy_statement().to_markdown()
    assert told.count("| PATEClassifier |") == 2 and "all that protect one record" in told
    entry = model.privacy_statement().to_registry(**ENTRY)
    assert "2 fits on these rows" in entry["deployment"]["implementation"]["preprocessing_and_hyperparameter_tuning"]
    alone = PATEClassifier(epsilon=1.0, classes=[0, 1], n_teachers=2, random_state=0)
    assert "Without a ledger" in alone.fit(rows.X, rows.y, X_public=rows.X_public).privacy_statement().to_markdown()


# ---- registry and model card -----------------------------------------------------------------------------------------
SCHEMA = json.loads((Path(__file__).parents[1] / "vectors" / "registry_fields.json").read_text("utf-8"))


def leaves(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def fits(value, kind):
    if isinstance(kind, list):
        return value in kind
    if kind == "date":
        return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None
    if kind == "strings":
        return isinstance(value, list) and len(value) > 0 and all(isinstance(item, str) for item in value)
    return isinstance(value, str) if kind == "string" else isinstance(value, int | float) and math.isfinite(value)


@pytest.mark.parametrize("spent", [GAUSSIAN, SAMPLED], ids=["Gaussian", "sampled"])
def test_a_registry_entry_has_fields_of_the_schema_only_and_all_required_ones(spent):
    entry = spent.statement(subject="x").to_registry(
        **ENTRY, data_product_sector="Education", data_domain="Adults.", actors="Us.", justification="-", sources="-"
    )
    for path, value in leaves(entry):
        assert path in SCHEMA["fields"], f"{path} is no field of the registry"
        assert fits(value, SCHEMA["fields"][path]), (path, value)
    for path, names in SCHEMA["required"].items():
        place = entry
        for step in filter(None, path.split(".")):
            place = place[step]
        assert set(names) <= place.keys(), path
    assert entry["tier"] == 3 and entry["url_slug"] == "a-model-of-incomes-the-office-2026"
    tiers = ("dp_variant", "privacy_loss", "deployment_model", "accounting", "implementation", "administrative")
    assert all(entry["deployment"][part] for part in tiers)


def test_a_wrong_date_is_refused():
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        GAUSSIAN.statement().to_registry(**ENTRY | {"publication_date": "31.1.2026"})


def test_registry_yaml_reads_back_as_the_entry():
    statement = GAUSSIAN.statement(subject="x")
    assert yaml.safe_load(statement.to_registry_yaml(**ENTRY)) == statement.to_registry(**ENTRY)


def test_a_model_card_gets_one_section():
    class Card:
        def __init__(self):
            self.sections = {}

        def add(self, **sections):
            self.sections |= sections
            return self

    card = GAUSSIAN.statement(subject="x").add_to_card(Card(), section="Model description/Privacy")
    (text,) = card.sections.values()
    assert "ε = " in text and not text.startswith("#") and "#### How ε depends on δ" in text


def test_a_card_of_skops_takes_the_section(fitted):
    skops_card = pytest.importorskip("skops.card", reason="skops is not installed")
    card = fitted.privacy_statement().add_to_card(skops_card.Card(fitted))
    assert "What was taken as public" in card.render()


def test_the_page_of_the_guide_shows_what_happens():
    page = Path(__file__).parents[2] / "docs" / "guide" / "statement.md"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert tried > 8 and failed == 0


def test_no_text_of_a_statement_is_markup():
    """Names of columns, of fits on the ledger and of releases are words of somebody: they stay words in a page."""
    bad = "<img src=x onerror=alert(1)>"
    ledger = PrivacyLedger()
    ledger.charge(GAUSSIAN.event, label=bad, releases=(bad,), **RECORD)
    public, performed = [PublicFact(bad, "read", bad, bad)], [PerformedRelease(bad, 1.0, 4.0, 1)]
    spent = PrivacySpent.of(GAUSSIAN.event, 1e-5, **RECORD, public=public, performed=performed)
    statement = spent.statement(subject=bad, ledger=ledger)
    page = statement.to_html()
    assert "<img" not in page and page.count("&lt;img") >= 6

    def hostile(value):
        """A file that somebody else wrote: every text in it is markup."""
        if isinstance(value, dict):
            return {key: hostile(inner) for key, inner in value.items()}
        return (
            [hostile(inner) for inner in value] if isinstance(value, list) else bad if isinstance(value, str) else value
        )

    read = PrivacyStatement(json.dumps(hostile(statement.to_dict())))
    for text in (read.to_html(), read.to_markdown()):
        assert "<img" not in text and text.count("&lt;img") >= 18
