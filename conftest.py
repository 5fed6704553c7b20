"""What holds for every test, doctest and imported test module: warnings are errors, and nothing is left to chance."""

import pytest

from tests._tools.entropy import named_entropy, open_streams


def pytest_configure(config):
    """Warnings are errors from here on: when test modules are imported, and while they run.

    Not in pyproject.toml, where the filters hold while pytest loads other people's plugins too: then one installed
    plugin that warns about itself keeps the suite from starting. The filters of pyproject.toml come on top.
    """
    config.getini("filterwarnings").insert(0, "error")
    open_streams()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    with named_entropy(collector.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    with named_entropy(f"{request.node.nodeid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with named_entropy(item.nodeid):
        return (yield)
