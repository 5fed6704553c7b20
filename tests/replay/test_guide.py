"""The example of the guide's page on replay runs, and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

from tests._tools.replay import replay

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "replay.md"


def test_the_example_of_the_page_prints_what_the_page_shows():
    blocks = dict.fromkeys(("python", "text"), "")
    for kind, block in re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        blocks[kind] += block
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(blocks["python"], {"__name__": "page"})
    assert printed.getvalue() == blocks["text"]


def test_without_clipping_the_page_is_right_about_the_distance():
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
    names = {"__name__": "page"}
    exec(block.replace("np.clip(x, 0, 1)", "np.asarray(x)"), names)
    told = replay(names["HelpfulMean"], names["HelpfulMean"].fit, [0.25, 0.5, 0.75], [7.5, 0.5, 0.75]).differences()
    assert any("true values are 7.25 apart, where 1 is declared" in text for text in told)
