"""Every sentence that compares says what the stored results say."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from claims import CLAIMS, NOT_MEASURED  # noqa: E402
from render_docs import RESULTS, load  # noqa: E402

#: What compares: an order, a factor, a share.
COMPARES = re.compile(
    r"\b(ahead(?! by)|(?:is|are|a little) behind|"
    r"(?:more|less|most|least) (?:accurate|accuracy|fair|even) (?:than|one|on|without)|"
    r"as (?:good|accurate|fair|fast) as (?!possible)|far more|fairer than|faster than|slower than|evener|twice as|"
    r"times (?:as|its)|hardly (?:differ|matters?|any|changes)|level (?:with|at)|is level|close to (?:PF|the curve)|"
    r"most of the gap|narrower|wider by|survives?(?! at)|reversed|points? (?:less|more)|"
    r"nearer to|smaller gaps|on all)\b",
    re.IGNORECASE,
)
#: Templates hold what their pages say in words; a sentence with braces is rendered from a result.
PAGES = sorted(
    [
        ROOT / "README.md",
        *ROOT.glob("docs/start/*.md"),
        *ROOT.glob("docs/guide/*.md"),
        *ROOT.glob("benchmarks/pages/*.jinja"),
    ]
)


def sentences(path):
    text = re.sub(r"(?s)```.*?```|\{%.*?%\}|<!--.*?-->|\$[^$]*\$", " ", path.read_text("utf-8"))
    for block in re.split(r"\n\s*\n|\n(?=[*#|] ?)|\|", text):
        folded = " ".join(block.split())
        yield from re.split(r"(?<=[.!?:])(?:\*+)? +(?=[A-Z*`\[(γελ{!])", folded)


TEXTS = {path: [line.strip("* #") for line in sentences(path)] for path in PAGES}
SAID = "\n".join(" ".join(path.read_text("utf-8").split()) for path in PAGES)


@pytest.fixture(scope="module")
def results():
    return load(RESULTS)


@pytest.mark.parametrize(("sentence", "holds"), CLAIMS, ids=[sentence[:60] for sentence, _ in CLAIMS])
def test_a_sentence_stands_on_a_page_and_the_results_say_it(sentence, holds, results):
    assert sentence in SAID
    assert holds(results)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_compares_in_no_sentence_that_nothing_checks(path):
    known = {sentence.strip("* #") for sentence, _ in CLAIMS}
    found = [line for line in TEXTS[path] if COMPARES.search(line) and "{{" not in line and "}}" not in line]
    assert [line for line in found if line not in known and not line.startswith(NOT_MEASURED)] == []


def test_no_entry_speaks_of_a_sentence_that_is_gone():
    lines = [line for found in TEXTS.values() for line in found]
    assert [start for start in NOT_MEASURED if not any(line.startswith(start) for line in lines)] == []
