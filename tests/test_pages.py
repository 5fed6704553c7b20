"""The pages of the documentation: their examples run, their links lead somewhere, and their words are plain."""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import skfairdp

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("start/*.md"), *DOCS.glob("guide/*.md")])
#: These pages are run by tests of their own room.
ELSEWHERE = {"audits.md", "generators.md", "replay.md", "statement.md"}
#: Other texts that people read: the front page, how to take part, the gallery, the templates of the benchmark pages.
OTHERS = ("*.md", "paper/*.md", ".github/ISSUE_TEMPLATE/*.md", "examples/plot_*.py", "benchmarks/pages/**/*.jinja")
TEXTS = sorted([*PAGES, *(path for pattern in OTHERS for path in DOCS.parent.glob(pattern))])
#: Private slang that a reader cannot look up, and verdicts on targets, which belong to a test.
NOT_SAID = r"nobody's|aloud|(?:is not|be) heard|to reach at|\*\*met\*\*|(?:is|are|was|were) met\b|dearer|no float"


def _name(page: Path) -> str:
    return str(page.relative_to(DOCS.parent))


@pytest.mark.few(4)
@pytest.mark.filterwarnings("ignore:Setting an? :DeprecationWarning")  # fairlearn's own, about pandas
@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>>" in page.read_text("utf-8") and page.name not in ELSEWHERE], ids=_name
)
def test_the_examples_of_a_page_show_what_happens(page):
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=options)
    assert tried
    assert not failed


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_link_to_another_page_leads_to_it(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = [*re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text)]
    linked = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    for target in targets:
        if "auto_examples" in target or "reference/" in target:  # written by the build
            continue
        assert (page.parent / f"{target}.md").exists(), target
    for target in linked:
        assert not target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_a_text_has_no_private_slang(page):
    assert re.findall(NOT_SAID, page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", [*PAGES, DOCS.parent / "README.md"], ids=_name)
def test_a_block_of_code_fits_a_narrow_column(page):
    blocks = re.findall(r"```(?:python|bash)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    typed = [line for block in blocks for line in block.split("\n") if ">>>" not in block or line[:3] in (">>>", "...")]
    assert [line for line in typed if len(line) > 88] == []


@pytest.mark.parametrize("path", sorted(DOCS.parent.glob("examples/plot_*.py")), ids=_name)
def test_the_code_of_an_example_fits_a_narrow_column_and_prints_figures(path):
    text = path.read_text("utf-8")
    code = [line for line in text.split('"""', 2)[2].split("\n") if not line.lstrip().startswith("#")]
    assert [line for line in code if len(line) > 88] == []
    assert "print(" in text and not re.search(r"(?m)^(>>>|\$) ", text)


def test_an_example_shows_more_than_that_it_is_true():
    """Figures, or at least words: a page on which all is True says nothing of how much."""
    said = {_name(page): re.findall(r"(?m)^(?!>>>|\.\.\.)(\(?(?:True|False)(?:, (?:True|False))*\)?)$", text)
            for page in PAGES if ">>>" in (text := page.read_text("utf-8"))}  # fmt: skip
    assert {name: found for name, found in said.items() if len(found) > 1} == {}


#: Words of the guide and of getting started together, and of all other pages: what nobody reads helps nobody.
MOST_WORDS = 30_000, 35_000


def test_the_pages_together_are_short_enough_to_read():
    to_learn = [
        len(page.read_text("utf-8").split()) for folder in ("start", "guide") for page in DOCS.glob(f"{folder}/*.md")
    ]
    others = [len(page.read_text("utf-8").split()) for page in (*DOCS.glob("*.md"), *DOCS.glob("benchmarks/*.md"))]
    assert (sum(to_learn) <= MOST_WORDS[0], sum(others) <= MOST_WORDS[1]) == (True, True), (sum(to_learn), sum(others))


# ---- the changelog -------------------------------------------------------------------------------------------
SECTIONS = ["Renamed", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def _version(name):
    """What the changelog says of a version."""
    text = (DOCS.parent / "CHANGELOG.md").read_text("utf-8")
    return re.search(rf"(?ms)^## {re.escape(name)}[^\n]*\n(.*?)^## ", text)[1]


@pytest.mark.parametrize("name", ["Unreleased", "0.2.0"])
def test_the_changelog_has_the_usual_sections_each_once_and_in_their_order(name):
    found = re.findall(r"(?m)^### (.+)$", _version(name))
    assert found == [section for section in SECTIONS if section in found]


@pytest.mark.parametrize("name", ["Unreleased", "0.2.0"])
def test_no_line_of_the_changelog_stands_twice_or_speaks_of_our_tests(name):
    entries = [" ".join(entry.split()) for entry in re.split(r"(?m)^\* ", _version(name))[1:]]
    assert entries or name == "Unreleased"
    assert len(entries) == len(set(entries))
    assert [entry for entry in entries if re.search(r"golden|frozen fit|tests/", entry, re.IGNORECASE)] == []


#: What each page about a method has, whatever its order. "Covers" has no one heading: the words have to be there.
TEMPLATE = {
    "an example that runs": r"```python\n>>> ",
    "a figure": r"!\[[^\]]+\]\(\.\./images/\w+\.png\)",
    "when to use it, and when not": r"(?m)^## When to use",
    "what ε covers": r"What (the )?ε covers",
    "how it differs from the paper": r"(?m)^## (Differences from|What differs from|How it differs from)",
    "a link to read on": r"https://(arxiv|doi)\.org|\{doc\}",
}
METHODS = [
    *("pate", "dpsgd", "pfld", "sfpate", "randomized_response", "generators", "post_processing"),
    *("raw_tables", "large_tables", "frontier", "tuning", "accounting", "audits"),
]


@pytest.mark.parametrize("name", METHODS)
def test_a_page_about_a_method_has_every_part_of_the_template(name):
    text = (DOCS / "guide" / f"{name}.md").read_text("utf-8")
    assert [part for part, pattern in TEMPLATE.items() if not re.search(pattern, text, flags=re.IGNORECASE)] == []
    pictures = re.findall(r"!\[[^\]]+\]\(\.\./(images/\w+\.png)\)", text)
    assert all((DOCS / picture).exists() for picture in pictures)


#: Where users import from.
ROOMS = (
    *("skfairdp", "skfairdp.baselines", "skfairdp.fairness", "skfairdp.generative", "skfairdp.gradient"),
    *("skfairdp.inspection", "skfairdp.lagrangian", "skfairdp.metrics", "skfairdp.model_selection", "skfairdp.pate"),
    *("skfairdp.postprocessing", "skfairdp.preprocessing", "skfairdp.privacy", "skfairdp.schema"),
)


def _public():
    """Every public class and function, by the name under which a page calls it."""
    return {
        name: value
        for room in map(importlib.import_module, ROOMS)
        for name in room.__all__
        if callable(value := getattr(room, name))
    }


def _calls(text):
    """Calls of names in code between backticks, and in blocks of Python. What is no Python is passed over."""
    blocks = [re.sub(r"(?m)^(>>>|\.\.\.) ?", "", code) for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for code in [*blocks, *inline]:
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node.func.id, [word.arg for word in node.keywords if word.arg is not None]


def _unknown_words(text):
    """Keywords in the calls of a page that the function does not take."""
    public, found = _public(), []
    for name, words in _calls(text):
        parameters = inspect.signature(public[name]).parameters if name in public else {}
        if parameters and not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            found += [f"{name}({word}=)" for word in words if word not in parameters]
    return found


@pytest.mark.parametrize("page", [*PAGES, DOCS.parent / "README.md"], ids=lambda page: page.name)
def test_a_call_on_a_page_names_parameters_that_there_are(page):
    assert _unknown_words(page.read_text("utf-8")) == []


def test_a_call_with_a_parameter_that_there_is_not_would_be_found():
    text = "Take `FairDPSGDClassifier(constraint=1, epsilon=2)`.\n```python\n>>> IDP3(model, gama=0.1)\n```\n"
    assert _unknown_words(text) == ["IDP3(gama=)", "FairDPSGDClassifier(constraint=)"]
    assert skfairdp.FairDPSGDClassifier is _public()["FairDPSGDClassifier"]
