"""The search for broken links of the built pages finds them, and the gallery's table names every example."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def broken(folder):
    spec = importlib.util.spec_from_file_location("links", ROOT / "docs" / "links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.broken(folder)


def test_a_link_to_no_page_or_to_no_anchor_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here"></a><a href="https://c.org/d"></a><img src="b.html">')
    (tmp_path / "b.html").write_text('<h1 id="here"></h1><a href="#here"></a><a href="a.html"></a>')
    assert broken(tmp_path) == []
    (tmp_path / "b.html").write_text('<a href="c.html"></a><a href="#there"></a><img src="d.png">')
    assert broken(tmp_path) == ["a.html: b.html#here", "b.html: #there", "b.html: c.html", "b.html: d.png"]


def test_the_head_of_the_gallery_names_every_example_once():
    named = re.findall(r":doc:`(plot_\w+)`", (ROOT / "examples" / "README.txt").read_text("utf-8"))
    assert sorted(named) == sorted(path.stem for path in (ROOT / "examples").glob("plot_*.py"))
