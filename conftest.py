"""What holds for every test, doctest and imported test module: warnings are errors, and nothing is left to chance."""

import functools
import gc

import pytest
from hypothesis import settings

from tests._tools.entropy import named_entropy, open_streams
from tests._tools.layers import PROFILE

settings.load_profile(PROFILE)


def pytest_configure(config):
    """Warnings are errors from here on: when test modules are imported, and while they run.

    Not in pyproject.toml, where the filters hold while pytest loads other people's plugins too: then one installed
    plugin that warns about itself keeps the suite from starting. The filters of pyproject.toml come on top.
    """
    config.getini("filterwarnings").insert(0, "error")
    open_streams()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile``, all files that need worker processes go to one runner, which starts these once."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    @functools.cache
    def unit(path):
        return "two workers" if "two_workers" in (config.rootpath / path).read_text(encoding="utf-8") else path

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid.split("::", 1)[0])

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Whatever collection makes is kept to the end: looking through it for garbage takes as long as all the imports."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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
