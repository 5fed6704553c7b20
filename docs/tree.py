"""Write the tree of the package into architecture.md, from the first sentences of modules: ``python docs/tree.py``."""

import ast
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "skfairdp"
BEGIN, END = "<!-- tree: written by docs/tree.py -->\n", "<!-- end of the tree -->\n"


def sentence(path: Path) -> str:
    """Return the first paragraph of a module's docstring, as one line."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.split("\n\n")[0].split())


def tree() -> str:
    """Return a list of rooms."""
    lines = []
    for path in sorted(PACKAGE.iterdir(), key=lambda path: (path.is_dir(), path.name.lstrip("_"))):
        if path.suffix == ".py" and path.name != "__init__.py":
            lines.append(f"* **`{path.name}`**: {sentence(path)}")
        elif (path / "__init__.py").exists():
            lines.append(f"* **`{path.name}/`**: {sentence(path / '__init__.py')}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Replace what stands between the two marks."""
    page = HERE / "architecture.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    page.write_text(before + BEGIN + tree() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
