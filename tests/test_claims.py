"""Every sentence that compares says what the stored results say."""

import ast
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
#: What compares where a sentence names one of these: elsewhere the same words tell how something works.
OF_THESE = re.compile(
    r"\b(FairPATE|PATE|PATE-S_\w+|FairDP-SGD|FairDPSGD\w*|DP-SGD\S*|F-LD|PF-?LD\w*|SF-?PATE\w*|SFS|SFT|IDP3|PFGuard\w*|"
    r"GS-WGAN|PATE-GAN|G-PATE|DataLens|OpenDP|Opacus|Adult|Bank|Credit|Parkinsons|\w*MNIST|COMPAS|randomised response|"
    r"signed loss)\b",
    re.IGNORECASE,
)
COMPARES_THEM = re.compile(
    r"\b(beats?|beaten by|outperforms?|wins?|los(?:es?|t) to|twice|doubles?|halves|half (?:the|of|as|its)|"
    r"(?:two|three|four|five|ten|[\d.]+) times|a third of|a quarter of|better than|worse than|"
    r"(?:larger|smaller|higher|lower|wider|narrower|quicker|slower|longer|shorter|cheaper|dearer) (?:than|for|with|on)|"
    r"best of|worst of|the (?:best|worst|fairest|fastest|slowest)|fairest|no other|above the|below the|"
    r"(?:two|three|four|five|six) (?:out )?of (?:the )?(?:two|three|four|five|six|seven|eight)|"
    r"(?:one|two|three) to (?:two|three|four)|falls? from|rises? from)\b",
    re.IGNORECASE,
)


def compares(line):
    return bool(COMPARES.search(line) or (OF_THESE.search(line) and COMPARES_THEM.search(line)))


#: Templates hold what their pages say in words; a figure in braces is rendered from a result.
PAGES = sorted(
    [
        ROOT / "README.md",
        *ROOT.glob("docs/start/*.md"),
        *ROOT.glob("docs/guide/*.md"),
        *ROOT.glob("benchmarks/pages/**/*.jinja"),
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
    found = [line for line in TEXTS[path] if compares(line)]
    assert [line for line in found if line not in known and not line.startswith(NOT_MEASURED)] == []


DRAWN = [ROOT / "benchmarks/figures.py", ROOT / "docs/decision_figure.py", *sorted(ROOT.glob("examples/plot_*.py"))]


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_no_word_inside_a_picture_compares(path):
    """Titles, labels and notes name what is drawn: nothing would check an order or a factor in them."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    words = [text.value for call in calls for text in ast.walk(call) if isinstance(text, ast.Constant)]
    assert [text for text in words if isinstance(text, str) and compares(text)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "PF-LD takes about twice as long as SFS.",
        "On Adult FairPATE beats PATE-S_in.",
        "PATE-S_in has half the gap of FairPATE.",
        "PF-LD costs nearly twice the accuracy of SFS.",
        "FairPATE is the fairest on Credit.",
        "With IDP3 the gap falls from .077 to .059.",
        "SFS is right more often on three of four tables, as on Bank.",
        "The gap of PF-LD is lower than that of SFS.",
        "Parity costs PF-LD one to two points.",
        "DP-SGD loses to the constant on Bank.",
        "![FairPATE lies above the curve of FairDP-SGD](../images/frontier.png)",
        "They are more accurate on all four.",
    ],
)
def test_a_sentence_that_compares_and_that_nobody_checked_is_seen(wrong, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Some text that says what this is.\n\n* **In short.** Words. {wrong} More words.\n", "utf-8")
    found = [line for line in sentences(page) if compares(line)]
    assert len(found) == 1 and found[0].startswith(wrong)


def test_no_entry_speaks_of_a_sentence_that_is_gone():
    lines = [line for found in TEXTS.values() for line in found]
    assert [start for start in NOT_MEASURED if not any(line.startswith(start) for line in lines)] == []
