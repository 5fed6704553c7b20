"""List the stored results that are older than the code they measure.

python benchmarks/check.py

A result is *stale* where the package, or the script that made it, has changed since the commit that it names; results
made before commits were kept name none. Stale figures are not wrong, but nobody has measured them on the code of today.
"""

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    stale = 0
    for path in sorted((HERE / "results").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        said = state(record)
        stale += said is not None
        print(f"{path.name:36} {said or 'current'}")
    print(f"{stale} stale")


def state(record: dict[str, object]) -> str | None:
    """Why a result is stale; None where it is current."""
    revision = str(record.get("revision") or "")
    if not revision:
        return "stale: names no commit"
    if revision.endswith("+changes"):
        return f"stale: measured with uncommitted changes on {revision.removesuffix('+changes')}"
    script = next((word for word in str(record["command"]).split() if word.endswith(".py")), "benchmarks")
    words = ["git", "rev-list", "--count", f"{revision}..HEAD", "--", "skfairdp", script]
    done = subprocess.run(words, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"stale: commit {revision} is not in this repository"
    count = int(done.stdout)
    return f"stale: {count} commits on skfairdp and {script} since {revision}" if count else None


if __name__ == "__main__":
    main()
