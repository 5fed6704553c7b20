"""Print the lowest version of each dependency, as pyproject.toml states it; torch apart, which is installed before.

python .ci/bounds.py
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest() -> list[str]:
    """``name==version`` for each ``name>=version``."""
    pins = []
    for entry in tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]:
        name, bound, marker = re.fullmatch(r"([\w-]+)>=([\d.]+)(; .*)?", entry).groups()
        pins.append(f"{name}=={bound}{marker or ''}")
    return [pin for pin in pins if not pin.startswith("torch==")]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest()) + "\n")
