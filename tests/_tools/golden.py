"""Results of the catalogue's fits, frozen: what a change of structure must not change.

``python -m tests._tools.golden --write NAME... --reason TEXT`` fits those entries again, overwrites them in
``tests/vectors/golden.json`` and notes the reason there; no other entry is touched. Without ``--write`` it says which
entries differ.
"""

import argparse
import hashlib
import json
import os
import platform
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from skfairdp import PrivacyLedger
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning, UtilityWarning
from skfairdp.privacy import event_to_dict

from .catalogue import CATALOGUE, Fit

__all__ = ["PATH", "differences", "frozen", "same_machine", "tolerance_of", "written"]

PATH = Path(__file__).parents[1] / "vectors" / "golden.json"
#: Numbers are kept to this many significant digits: what is left out is how a build of BLAS adds.
DIGITS = 10
#: On other builds and processors single precision is a few units in its seventh digit off, more after training.
TOLERANCE = 1e-4
#: Its student takes the best of twelve rules, each from a linear program over rows. Where two are about as good, the
#: last digit decides which one it takes: on another processor its probabilities moved by .019. Its answers did not.
TOLERANCES = {"FairPATE-constrained-3": 0.05}


def made_with() -> dict[str, str]:
    """What the last digits of a fit depend on beside this package."""
    import torch

    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")}
    return {**found, "machine": platform.machine(), "vectors": torch.backends.cpu.get_cpu_capability()}


def frozen(entry: Fit) -> dict[str, Any]:
    """What one entry of the catalogue answers and reports under seeded noise, and what a ledger hears of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        fitted, rows = _fitted(entry, **({"noise_seed": 0} if entry.spends else {}))
        arrays = {name: _plain(values) for name, values in entry.probe(fitted, rows).items()}
        found: dict[str, Any] = {"arrays": arrays, "sha256": digest(arrays)}
        if entry.spends:
            ledger = PrivacyLedger()
            _fitted(entry, ledger=ledger)
            found["ledger"] = [_entry(charge) for charge in ledger.entries]
            reports = fitted[0] if isinstance(fitted, tuple) else fitted
            spent = (reports if hasattr(reports, "privacy_") else reports.estimator_).privacy_
            found["privacy"] = {
                "epsilon": str(spent.epsilon),
                "mechanism_epsilon": _digits(spent.mechanism_epsilon),
                "delta": spent.delta,
                "protects": str(spent.protects),
                "relation": str(spent.neighboring_relation),
                "event": _rounded(event_to_dict(spent.event)),
            }
    return json.loads(json.dumps(found))


def differences(
    found: dict[str, Any], expected: dict[str, Any], *, exact: bool, tolerance: float = TOLERANCE
) -> list[str]:
    """What of a fit is not as frozen, in words; empty where all of it is.

    ``exact`` compares all digits kept. Else numbers may differ by the tolerance, labels in one row of twenty.
    """
    told = [
        f"{name} of {part}: {_short(mine.get(name))} instead of {_short(theirs.get(name))}"
        for part in ("privacy", "ledger")
        for mine, theirs in zip(_parts(found, part), _parts(expected, part), strict=False)
        for name in sorted({*mine, *theirs})
        if mine.get(name) != theirs.get(name)
    ]
    if len(found.get("ledger", [])) != len(expected.get("ledger", [])):
        told.append(f"{len(found['ledger'])} charges instead of {len(expected['ledger'])}")
    if exact and found["sha256"] == expected["sha256"]:
        return told
    mine, theirs = found["arrays"], expected["arrays"]
    if list(mine) != list(theirs):
        return [*told, f"it answers {list(mine)} instead of {list(theirs)}"]
    return told + [
        f"{name}: {_short(mine[name])} instead of {_short(theirs[name])}"
        for name in mine
        if not _alike(mine[name], theirs[name], exact, tolerance)
    ]


def tolerance_of(name: str) -> float:
    """By how much numbers of this entry may differ on other builds and processors."""
    return TOLERANCES.get(name, TOLERANCE)


def same_machine(golden: dict[str, Any]) -> bool:
    """Whether the frozen digits were made with the libraries and the kind of processor at hand."""
    return bool(golden["made_with"] == made_with())


def digest(arrays: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(arrays, sort_keys=True).encode()).hexdigest()


def written(names: list[str], reason: str, path: Path = PATH) -> dict[str, Any]:
    """Fit the named entries (all that are missing, too) and write them; the rest stays to the letter."""
    golden = json.loads(path.read_text()) if path.exists() else {"made_with": made_with(), "announced": [], "fits": {}}
    unknown = set(names) - {entry.name for entry in CATALOGUE}
    if unknown:
        raise SystemExit(f"The catalogue has no {', '.join(sorted(unknown))}.")
    if names and not same_machine(golden):
        print("Frozen elsewhere: the last digits of what you write are this machine's.", file=sys.stderr)
    for entry in CATALOGUE:
        known = golden["fits"].get(entry.name)
        if entry.name in names or known is None:
            new = frozen(entry)
            if known is not None and new != known:
                golden["announced"].append({"entry": entry.name, "reason": reason})
            golden["fits"][entry.name] = new
    golden["fits"] = {entry.name: golden["fits"][entry.name] for entry in CATALOGUE}
    lines = [f"  {json.dumps(name)}: {json.dumps(fit)}" for name, fit in golden["fits"].items()]
    announced = ",\n".join(f"  {json.dumps(change)}" for change in golden["announced"])
    path.write_text(
        f'{{\n"made_with": {json.dumps(golden["made_with"])},\n"announced": [\n{announced}\n],\n"fits": {{\n'
        + ",\n".join(lines)
        + "\n}\n}\n"
    )
    return golden


# ---- how values are written ------------------------------------------------------------------------------------
def _fitted(entry: Fit, **given: Any) -> tuple[Any, Any]:
    rows = entry.rows()
    return entry.fit(entry.make(**given), rows), rows


def _plain(values: Any) -> dict[str, Any]:
    values = np.asarray(values)
    listed = [[_digits(cell) for cell in row] if isinstance(row, list) else _digits(row) for row in values.tolist()]
    return {"dtype": str(values.dtype), "values": listed}


def _digits(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else str(value)
    return value if isinstance(value, int | str | bool | None.__class__) else repr(value)


def _rounded(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {str(key): _rounded(value) for key, value in tree.items()}
    return [_rounded(value) for value in tree] if isinstance(tree, list | tuple) else _digits(tree)


def _entry(charge: Any) -> dict[str, Any]:
    return {
        "label": charge.label,
        "protects": str(charge.protects),
        "relation": str(charge.neighboring_relation),
        "releases": list(charge.releases),
        "event": _rounded(event_to_dict(charge.event)),
    }


def _parts(fit: dict[str, Any], part: str) -> list[dict[str, Any]]:
    value = fit.get(part, {})
    return value if isinstance(value, list) else [value]


def _alike(mine: Any, theirs: Any, exact: bool, tolerance: float) -> bool:
    if exact or mine["dtype"] != theirs["dtype"]:
        return bool(mine == theirs)
    a, b = np.asarray(mine["values"]), np.asarray(theirs["values"])
    if a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        return bool(np.isclose(a, b, rtol=tolerance, atol=tolerance).mean() > 0.95)
    return bool((a == b).mean() > 0.95)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:160]} ..."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests._tools.golden", description=__doc__)
    parser.add_argument("--write", nargs="*", metavar="NAME", help="fit these again and overwrite them")
    parser.add_argument("--reason", help="what was announced, and by what")
    given = parser.parse_args()
    if given.write is not None:
        if given.write and not given.reason:
            parser.error("a change of frozen results needs its --reason")
        written(given.write, given.reason or "")
        return
    golden = json.loads(PATH.read_text())
    for entry in CATALOGUE:
        told = differences(
            frozen(entry), golden["fits"][entry.name], exact=same_machine(golden), tolerance=tolerance_of(entry.name)
        )
        print(entry.name, *(told or ["as frozen"]), sep="\n    ")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
