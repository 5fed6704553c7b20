"""Write the benchmark pages from benchmarks/results/*.json: no figure in them is typed by hand.

python benchmarks/render_docs.py          # write docs/benchmarks.md, docs/benchmarks/*.md and docs/guide/how_long.md
python benchmarks/render_docs.py --check  # say whether the pages are up to date, and exit with 1 if not

The words are in benchmarks/pages/, the tables in benchmarks/_tables.py, the figures in benchmarks/figures.py.
"""

import argparse
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import _tables
import jinja2

HERE = Path(__file__).parent
RESULTS, PAGES, DOCS = HERE / "results", HERE / "pages", HERE.parent / "docs"
#: The page of summaries stands beside the folder of full tables; a template in a folder goes to the one of its name.
SUMMARY = "benchmarks"
#: Numbers below one have a zero before the dot on every page, as ``.05`` in a template has none.
LEADING_ZERO = re.compile(r"(?<![\w.])\.(?=\d)")


class Results(dict[str, dict[str, Any]]):
    """Results by the name of their benchmark; a missing one is an error that names the file."""

    def __missing__(self, name: str) -> dict[str, Any]:
        raise KeyError(f"benchmarks/results/{name}.json is missing; run its benchmark, or take it off the page.")

    def of(self, prefix: str) -> list[dict[str, Any]]:
        """The results of one benchmark on every data set, in the order of the titles."""
        return [self[name] for data in _tables.TITLES if (name := f"{prefix}_{data}") in self]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is out of date")
    arguments = parser.parse_args()
    stale = [path for path, text in pages(load(RESULTS)).items() if not up_to_date(path, text)]
    if arguments.check:
        print(
            "\n".join(f"{path} is out of date: run python benchmarks/render_docs.py" for path in stale) or "up to date"
        )
        sys.exit(1 if stale else 0)
    for path, text in pages(load(RESULTS)).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"wrote {len(stale)} changed pages of {len(list(PAGES.rglob('*.jinja')))}")


def load(folder: Path) -> Results:
    """Read every result, by benchmark."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return Results({record["benchmark"]: record for record in records})


def pages(results: Results) -> dict[Path, str]:
    """Render every template."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(R=results, T=_tables, machines=lambda: machines(results))
    environment.filters.update(value=_tables.value, short=_tables.short, many=_tables.many)
    found = {}
    for template in sorted(PAGES.rglob("*.md.jinja")):
        name = template.relative_to(PAGES).as_posix()
        page = name.removesuffix(".jinja")
        path = DOCS / page if page == f"{SUMMARY}.md" or "/" in page else DOCS / SUMMARY / page
        root = "/".join([".."] * (len(path.relative_to(DOCS).parts)))
        text = environment.get_template(name).render(source=partial(source, root=root))
        found[path] = LEADING_ZERO.sub("0.", text)
    return found


def up_to_date(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def source(*records: dict[str, Any], root: str = "..") -> str:
    """The line under each table: the files with all figures, and the seeds. ``root`` leads from the page to the top."""
    files, seeds = [], set()
    for record in records:
        name = f"{record['benchmark']}.json"
        files.append(f"[{name}]({root}/benchmarks/results/{name})")
        if record.get("seeds"):
            first, last = min(record["seeds"]), max(record["seeds"])
            seeds.add(f"seeds {first} to {last}" if last > first else f"seed {first}")
    return f"*Full results: {'; '.join([', '.join(files), *sorted(seeds)])}.*"


def machines(results: Results) -> str:
    """Machines and versions: the usual one with the number of its results, any other with their names."""
    seen: dict[str, list[str]] = {}
    for name, record in results.items():
        place = "{processor}, {cores} cores, {memory_gib:g} GiB, {system}".format(**record["machine"])
        versions = ", ".join(f"{package} {version}" for package, version in record["versions"].items())
        seen.setdefault(f"{place}; {versions}", []).append(name)
    usual = max(seen, key=lambda what: len(seen[what]))
    return "\n".join(
        f"* {what} ({f'{len(names)} results' if what == usual else ', '.join(names)})" for what, names in seen.items()
    )


if __name__ == "__main__":
    main()
