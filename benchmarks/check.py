"""List the stored results that are older than the code they measure.

python benchmarks/check.py

A result is *stale* where the package, or the script that made it, has changed since the commit that it names; results
made before commits were kept name none. Stale figures are not wrong, but nobody has measured them on the code of today.

Most commits change no model. So of methods that ``tests/vectors/golden.json`` freezes, a stale result also says which
frozen fits were written anew since. Where it says none, its accuracies and gaps are likely those of today: frozen fits
have a few hundred rows, so a rule for large tables may have changed unseen. Of seconds they say nothing.
"""

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
FROZEN = "tests/vectors/golden.json"
#: First words of results, and of the frozen fits of the methods that they are about.
METHODS = {
    "arena": ("FairPATE", "FairDPSGD", "PrivateThresholds", "Calibrator", "PFGuard-marginals"),
    "fair_dpsgd": ("FairDPSGD",),
    "frontiers": ("FairPATE",),
    "glass_box": ("FairDPSGD",),
    "no_public_rows": ("FairPATE", "FairDPSGD", "SyntheticData"),
    "notions": ("PFLD", "Lagrangian"),
    "pate_papers": ("PATE", "FairPATE"),
    "pfguard": ("PFGuard",),
    "pfld": ("PFLD", "RandomizedResponse", "Lagrangian"),
    "sfpate": ("SFPATE",),
    "utility": ("PATE", "FairPATE", "IDP3"),
}


def main() -> None:
    stale = 0
    for path in sorted((HERE / "results").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        said = state(record)
        stale += said is not None
        print(f"{path.name:36} {said or 'current'}{changed(path.stem, record) if said else ''}")
    print(f"{stale} stale")


def state(record: dict[str, object]) -> str | None:
    """Why a result is stale; None where it is current."""
    revision = str(record.get("revision") or "")
    if not revision:
        return "stale: names no commit"
    if revision.endswith("+changes"):
        return f"stale: measured with uncommitted changes on {revision.removesuffix('+changes')}"
    script = next((word for word in str(record["command"]).split() if word.endswith(".py")), "benchmarks")
    count = git("rev-list", "--count", f"{revision}..HEAD", "--", "skfairdp", script)
    if count is None:
        return f"stale: commit {revision} is not in this repository"
    return f"stale: {int(count)} commits on skfairdp and {script} since {revision}" if int(count) else None


def changed(name: str, record: dict[str, object]) -> str:
    """Which frozen fits of its methods were written anew since a result was measured, in words; "" where unknown."""
    methods = next((found for first, found in METHODS.items() if name.startswith(first)), None)
    then = git("show", f"{str(record.get('revision')).removesuffix('+changes')}:{FROZEN}")
    if methods is None or then is None:
        return ""
    old, new = (json.loads(text)["fits"] for text in (then, (HERE.parent / FROZEN).read_text(encoding="utf-8")))
    mine = [fit for fit in new if fit.startswith(methods)]
    anew = [fit for fit in mine if old.get(fit, {}).get("sha256") != new[fit]["sha256"]]
    if not anew:
        return f"; its {len(mine)} frozen fits are as they were"
    return f"; {len(anew)} of {len(mine)} frozen fits changed: {', '.join(anew[:3])}{' ...' if len(anew) > 3 else ''}"


def git(*words: str) -> str | None:
    """What git prints; None where it fails."""
    done = subprocess.run(["git", *words], cwd=HERE.parent, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout


if __name__ == "__main__":
    main()
