"""Measure again what is stale, each result by the command that it names, the quickest first.

    python benchmarks/measure.py                        # every stale result
    python benchmarks/measure.py pfld_bank idp3         # these, stale or not
    python benchmarks/measure.py --most-hours 1         # and none that took longer than an hour

A command that measured a part of a result, and kept the rest, is run without the words that say so (``PARTS``). Where
a command fails its result stays as it was, and is named at the end. Interrupted, it goes on with what is left.
"""

import argparse
import json
import shlex
import subprocess
import sys

import check

#: Words of commands that measure a part alone, and how many values follow them; -1: all up to the next option.
PARTS = {"--keep": 0, "--report": 0, "--methods": -1, "--units": -1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="results without .json (default: all that are stale)")
    parser.add_argument("--most-hours", type=float, default=float("inf"), help="leave out what took longer")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run none of them")
    arguments = parser.parse_args()
    paths = {path.stem: path for path in (check.HERE / "results").glob("*.json")}
    unknown = sorted(set(arguments.names) - set(paths))
    if unknown:
        parser.error(f"no result is called {', '.join(unknown)}")
    records = {name: json.loads(paths[name].read_text(encoding="utf-8")) for name in arguments.names or paths}
    stale = {
        name: record
        for name, record in records.items()
        if record["seconds_in_all"] <= 3600 * arguments.most_hours
        and (arguments.names or check.verdict(name, record)[0] == "stale")
    }
    failed = []
    for name in sorted(stale, key=lambda one: stale[one]["seconds_in_all"]):
        words = whole(shlex.split(stale[name]["command"]))
        print(f"{name}, {stale[name]['seconds_in_all']:.0f} s the last time: {shlex.join(words)}", flush=True)
        if not arguments.dry_run and subprocess.run([sys.executable, *words[1:]], cwd=check.HERE.parent).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


def whole(words: list[str]) -> list[str]:
    """A command without what makes it measure a part of its result."""
    kept, skipped = [], 0
    for word in words:
        if word in PARTS:
            skipped = PARTS[word]
        elif word.startswith("--"):
            skipped = 0
            kept.append(word)
        elif skipped:
            skipped -= 1
        else:
            kept.append(word)
    return kept


if __name__ == "__main__":
    sys.exit(main())
