"""Results of some of the catalogue's fits, frozen: what a change of structure must not change.

Exact is what is exact by construction: what is guaranteed, what a ledger hears, and labels whose margin is above the
tolerance. Numbers are compared by tolerance, whatever the machine.

``python -m tests._tools.golden --write NAME... --reason TEXT`` fits those entries again, overwrites those that differ
in ``tests/vectors/golden.json`` and notes the reason there; no other entry is touched. Without it, it says which
entries differ.
"""

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from skfairdp import PrivacyLedger
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning, UtilityWarning
from skfairdp.privacy import event_to_dict

from .catalogue import Fit, by_name

__all__ = ["PATH", "differences", "frozen", "written"]

PATH = Path(__file__).parents[1] / "vectors" / "golden.json"
#: Numbers are kept to this many significant digits: enough to compare by tolerance.
DIGITS = 10
#: Single precision is a few units in its seventh digit off from processor to processor, more after training.
TOLERANCE = 1e-4
#: Noise multipliers of events are found by root finding in double precision.
EVENT_TOLERANCE = 1e-8
#: Of what a fit says of its gap: a row at the edge of a rule may be counted on the other side.
GAP_TOLERANCE = 0.02
#: Of arrays that follow no margin (rows drawn, answers one after the other), this share may be others.
OTHERS = 0.05


def frozen(entry: Fit) -> dict[str, Any]:
    """What one entry of the catalogue answers and reports under seeded noise, and what a ledger hears of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        fitted, rows = _fitted(entry, **({"noise_seed": 0} if entry.spends else {}))
        arrays = {name: _plain(values) for name, values in entry.probe(fitted, rows).items()}
        found: dict[str, Any] = {"arrays": arrays}
        judged = fitted[0] if isinstance(fitted, tuple) else fitted
        if hasattr(judged, "gap_bound_"):
            said = (judged.gap_, judged.gap_bound_, judged.constraint_holds_)
            found["judged"] = dict(zip(("gap", "gap_bound", "holds"), map(_digits, said), strict=True))
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


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """What of a fit is not as frozen, in words; empty where all of it is."""
    told = [
        f"{name} of {part}: {_short(mine.get(name))} instead of {_short(theirs.get(name))}"
        for part in ("privacy", "ledger")
        for mine, theirs in zip(_parts(found, part), _parts(expected, part), strict=False)
        for name in sorted({*mine, *theirs})
        if not _same(mine.get(name), theirs.get(name))
    ]
    mine, theirs = found.get("judged", {}), expected.get("judged", {})
    if mine.keys() != theirs.keys() or not all(_close(mine[name], theirs[name]) for name in mine):
        told.append(f"it says {mine} of its gap instead of {theirs}")
    if len(found.get("ledger", [])) != len(expected.get("ledger", [])):
        told.append(f"{len(found['ledger'])} charges instead of {len(expected['ledger'])}")
    mine, theirs = found["arrays"], expected["arrays"]
    if list(mine) != list(theirs):
        return [*told, f"it answers {list(mine)} instead of {list(theirs)}"]
    sure = _sure(theirs)
    return told + [
        f"{name}: {_short(mine[name])} instead of {_short(theirs[name])}"
        for name in mine
        if not _alike(mine[name], theirs[name], sure if name == "predict" else None)
    ]


def written(names: list[str], reason: str, path: Path = PATH) -> dict[str, Any]:
    """Fit the named entries and write those that differ from what is frozen; the rest stays to the letter."""
    golden = json.loads(path.read_text())
    for name in names:
        new, known = frozen(by_name(name)), golden["fits"].get(name)
        if known is None or differences(new, known):
            if known is not None:
                golden["announced"].append({"entry": name, "reason": reason})
            golden["fits"][name] = new
    lines = [f"  {json.dumps(name)}: {json.dumps(fit)}" for name, fit in golden["fits"].items()]
    announced = ",\n".join(f"  {json.dumps(change)}" for change in golden["announced"])
    path.write_text(f'{{\n"announced": [\n{announced}\n],\n"fits": {{\n' + ",\n".join(lines) + "\n}\n}\n")
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


def _close(mine: Any, theirs: Any) -> bool:
    return mine == theirs or (not {str} & {type(mine), type(theirs)} and abs(mine - theirs) <= GAP_TOLERANCE)


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


def _same(mine: Any, theirs: Any) -> bool:
    """Equal, but for the last digits of numbers that are not whole."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(_same(mine[key], theirs[key]) for key in mine)
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(mine, float) and isinstance(theirs, float):
        return bool(np.isclose(mine, theirs, rtol=EVENT_TOLERANCE, atol=0.0))
    return bool(mine == theirs)


def _sure(arrays: dict[str, Any]) -> Any:
    """Rows whose label no difference within the tolerance can change; None where no probabilities say."""
    if "predict_proba" not in arrays:
        return None
    ordered = np.sort(np.asarray(arrays["predict_proba"]["values"], dtype=float), axis=1)
    return ordered[:, -1] - ordered[:, -2] > 2 * TOLERANCE


def _alike(mine: Any, theirs: Any, sure: Any) -> bool:
    a, b = np.asarray(mine["values"]), np.asarray(theirs["values"])
    if mine["dtype"] != theirs["dtype"] or a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    if a.dtype.kind == "f":
        return bool(np.isclose(a, b, rtol=TOLERANCE, atol=TOLERANCE).mean() >= 1 - OTHERS)
    return bool((a == b)[sure].all() if sure is not None else (a == b).mean() >= 1 - OTHERS)


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
    for name, expected in json.loads(PATH.read_text())["fits"].items():
        told = differences(frozen(by_name(name)), expected)
        print(name, *(told or ["as frozen"]), sep="\n    ")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
