"""The suite starts beside plugins of pytest that it knows nothing of, and holds its own code to no warnings."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: What plugins are found to do: warn when imported, hook in the old way, and bring options, markers and fixtures.
PLUGIN = """
import warnings
import pytest

warnings.warn("this plugin is deprecated", DeprecationWarning)
warnings.warn("and uses what is", PendingDeprecationWarning)


@pytest.mark.tryfirst
def pytest_addhooks(pluginmanager):
    warnings.warn("a hook of long ago", FutureWarning)


def pytest_addoption(parser):
    parser.getgroup("noisy").addoption("--noisy", action="store_true")
    parser.addini("noisy_setting", "help")


def pytest_configure(config):
    config.addinivalue_line("markers", "noisy: of a plugin")
    warnings.warn("while it is configured")


@pytest.fixture
def noisy():
    return 1
"""

try:
    warnings.warn("imported", stacklevel=1)
    WARNED_AT_IMPORT = True
except UserWarning:
    WARNED_AT_IMPORT = False


def test_a_plugin_that_warns_does_not_keep_the_suite_from_running(tmp_path):
    (tmp_path / "noisy_plugin.py").write_text(PLUGIN)
    info = tmp_path / "noisy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest11]\nnoisy = noisy_plugin\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/utils/test_csv.py", "--noisy"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def test_our_own_warnings_are_errors_when_they_are_imported_and_when_they_run():
    assert not WARNED_AT_IMPORT
    for category in (UserWarning, DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning):
        with pytest.raises(category):
            warnings.warn("run", category, stacklevel=1)
