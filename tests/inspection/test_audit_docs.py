"""The guide's page on audits runs as it is printed."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "audits.md"


@pytest.mark.slow
def test_page_on_audits_runs_as_printed():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    done = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert done.attempted >= 8
    assert done.failed == 0
