"""The pages of the documentation: their examples run, their links lead somewhere, and their words are plain."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("start/*.md"), *DOCS.glob("guide/*.md")])
#: These pages are run by tests of their own room.
ELSEWHERE = {"audits.md", "generators.md", "replay.md", "statement.md"}
#: Private slang that a reader cannot look up.
NOT_SAID = ("nobody's", "aloud", "is not heard", "to reach at", "**met**", "dearer", "no float")


def _name(page: Path) -> str:
    return str(page.relative_to(DOCS))


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


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_page_has_no_private_slang(page):
    text = page.read_text("utf-8")
    assert [word for word in NOT_SAID if word in text] == []


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
