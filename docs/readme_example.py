"""Run the first example of the README as it stands: ``python docs/readme_example.py FOLDER``.

The statement of the model is kept in the folder.
"""

import re
import sys
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    print("The README's first example:\n")
    statement = run()["model"].privacy_statement()
    (folder / "statement.json").write_text(statement.to_json(), encoding="utf-8")
    (folder / "statement.html").write_text(statement.to_html(), encoding="utf-8")
    print(f"Wrote {folder}/statement.json and statement.html.")


def run() -> dict[str, Any]:
    """Execute the first block of code."""
    names: dict[str, Any] = {}
    exec(code(0), names)
    return names


def code(index: int) -> str:
    """A block of code of the README."""
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)[index]


if __name__ == "__main__":
    main()
