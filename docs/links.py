"""Find links of the built pages that lead nowhere: ``python docs/links.py docs/_build/html``; exit with 1 if any does.

Files, pages and anchors are looked for; other sites are not asked, and the way back from a page of source, which Sphinx
writes to an anchor that another name of the object has, is left alone.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors.add(named.get("id") or "")
        self.targets.add(named.get({"a": "href", "img": "src"}.get(tag, "")) or "")


def broken(root: Path) -> list[str]:
    """Page and link, where there is nothing at its end."""
    pages = {path: Page(path) for path in sorted(root.resolve().rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.relative_to(root.resolve()).parts[0] == "_modules":
            continue
        for link in sorted(page.targets):
            if not link or re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in pages[target].anchors):
                found.append(f"{path.relative_to(root.resolve())}: {link}")
    return found


if __name__ == "__main__":
    links = broken(Path(sys.argv[1]))
    print("\n".join(links) or "every link leads somewhere")
    sys.exit(1 if links else 0)
