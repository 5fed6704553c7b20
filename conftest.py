"""Warnings are errors: of this package and of its tests, not of other people's plugins.

Not in pyproject.toml, where the filters hold while pytest loads its plugins too: then one installed plugin that warns
about itself keeps the suite from starting.
"""


def pytest_configure(config):
    """From here on: when test modules are imported, and while they run. The filters of pyproject.toml come on top."""
    config.getini("filterwarnings").insert(0, "error")
