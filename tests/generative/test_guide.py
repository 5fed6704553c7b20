"""The example of the guide's page on synthetic rows runs, and prints what the page says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "generators.md"


def test_the_example_of_the_page_prints_what_the_page_shows():
    tested = doctest.testfile(str(PAGE), module_relative=False)
    assert tested.attempted >= 7 and tested.failed == 0
