"""Who is ahead in the arena: hypervolumes, paired differences over seeds, and by how much goals are missed."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from _arena_task import WORST_GAP

Point = dict[str, Any]
#: A competition: one data set, ε and constraint, with or without public rows, with or without the group at prediction.
COMPETITION = ("data", "epsilon", "constraint", "rows", "sees")
LARGE = 10_000  # private rows
FAIR_ENOUGH = (0.02, 0.05)


def competitions(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Rank all methods in every competition by hypervolumes times 10⁴; the best of ours against the best glue."""
    found = []
    for data, epsilon, constraint in unique(points, "data", "epsilon", "constraint"):
        if epsilon is None:
            continue
        for rows in ("none", "public"):
            for sees in ("blind", "aware"):
                where = dict(zip(COMPETITION, (data, epsilon, constraint, rows, sees), strict=True))
                ranked = ranking(points, where)
                best = {kind: next((r for r in ranked if r["kind"] == kind), None) for kind in ("ours", "glue")}
                if best["ours"] and best["glue"]:
                    found.append({**where, "ranking": ranked, **difference(best["ours"], best["glue"])})
    return found


def ranking(points: Sequence[Point], where: dict[str, Any]) -> list[dict[str, Any]]:
    """Every method by the volume of its best setting; ours have one setting, the defaults."""
    allowed = [point for point in points if enters(point, where)]
    corner = {
        p["seed"]: p["accuracy"] for p in points if p["data"] == where["data"] and p["method"] == "most frequent class"
    }
    found: list[dict[str, Any]] = []
    for method, kind in unique(allowed, "method", "kind"):
        mine = [p for p in allowed if p["method"] == method]
        variants = unique(mine, "setting", "rows")
        if kind == "ours":  # an estimator that is given public rows reads them, where it knows how to
            variants = [v for v in variants if v[1] == where["rows"]] or variants
        volumes = [
            (volumes_of(allowed, method, setting, rows, corner, where["constraint"]), setting, rows)
            for setting, rows in variants
        ]
        best = max(volumes, key=lambda it: statistics.fmean(it[0].values()))
        found.append({"method": method, "kind": kind, "setting": best[1], "reads": best[2], "by_seed": best[0]})
    for row in found:
        row["hypervolume"] = mean_and_error(row["by_seed"].values())
    return sorted(found, key=lambda row: -row["hypervolume"]["mean"])


def enters(point: Point, where: dict[str, Any]) -> bool:
    """Whether a point may take part: who needs less may enter where more is given."""
    same = all(point[name] == where[name] for name in ("data", "epsilon", "constraint"))
    rows = point["rows"] == "none" or where["rows"] == "public"
    return same and rows and (point["sees"] == "blind" or where["sees"] == "aware") and point["kind"] != "no privacy"


def volumes_of(
    points: Sequence[Point], method: str, setting: str, rows: str, corner: dict[int, float], constraint: str
) -> dict[int, float]:
    """Volume beyond (accuracy of the most frequent class, gap of .2), by seed; a model may be left as it is."""
    from skfairdp.model_selection import hypervolume

    names = {method, method.split(" + ")[0]}
    mine = [p for p in points if p["method"] in names and (p["setting"], p["rows"]) == (setting, rows)]
    return {
        seed: 1e4
        * hypervolume(
            [(p["accuracy"], 1 - p[constraint]) for p in mine if p["seed"] == seed and not silently_broken(p)],
            (corner[seed], 1 - WORST_GAP),
            minimize=False,
        )
        for seed in sorted({p["seed"] for p in mine})
        if seed in corner
    }


def silently_broken(point: Point) -> bool:
    """Whether the fit broke the bound that it was asked for without a word: then it is no answer."""
    return bool(point.get("bound_broken")) and not point["told"]


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Ours less theirs, seed by seed."""
    seeds = ours["by_seed"].keys() & theirs["by_seed"].keys()
    paired = [ours["by_seed"][seed] - theirs["by_seed"][seed] for seed in sorted(seeds)]
    return {"ours": ours["method"], "theirs": theirs["method"], "ahead_by": mean_and_error(paired)}


def single_estimators(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each estimator of ours: in how many competitions it is level or ahead, and where it is furthest behind."""
    rows = []
    methods = dict.fromkeys(r["method"] for one in found for r in one["ranking"] if r["kind"] == "ours")
    for method in methods:
        margins = []
        for one in found:
            rival = next(r for r in one["ranking"] if r["kind"] == "glue")
            mine = next((r for r in one["ranking"] if r["method"] == method), None)
            if mine is not None:
                margins.append((difference(mine, rival)["ahead_by"], one))
        worst = min(margins, key=lambda it: it[0]["mean"])
        rows.append(
            {
                "method": method,
                "competitions": len(margins),
                "not_below": sum(margin["mean"] >= -(margin["standard_error"] or 0.0) for margin, _ in margins),
                "clearly_ahead": sum(
                    margin["standard_error"] is not None and margin["mean"] > 2 * margin["standard_error"]
                    for margin, _ in margins
                ),
                "worst": worst[0],
                "worst_where": {name: worst[1][name] for name in COMPETITION},
            }
        )
    return sorted(rows, key=lambda row: -row["worst"]["mean"])


def bounds(points: Sequence[Point]) -> dict[str, dict[str, int]]:
    """For each estimator of ours: fits that were asked for a bound, broken ones, and those of them that said so."""
    asked = [p for p in points if p.get("bound_broken") is not None]
    found = {}
    for (method,) in unique(asked, "method"):
        mine = [p for p in asked if p["method"] == method]
        broken = [p for p in mine if p["bound_broken"]]
        found[method] = {"fits": len(mine), "broken": len(broken), "told": sum(bool(p["told"]) for p in broken)}
    return found


# ---------------------------------------------------------------- goals of accuracy


def goals(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Goals that are about accuracy and AUROC: what was reached, what was asked, and what is missing."""
    return [*pate_goals(points), *learner_goals(points)]


def pate_goals(points: Sequence[Point]) -> Iterable[dict[str, Any]]:
    """FairPATE beside FairDP-SGD at equal gaps, and never below the most frequent class."""
    mine = [p for p in points if p["constraint"] == "demographic_parity" and p["epsilon"] is not None]
    for data, epsilon, rows in unique([p for p in mine if p["method"] == "FairPATE"], "data", "epsilon", "rows"):
        here = [p for p in mine if (p["data"], p["epsilon"], p["rows"]) == (data, epsilon, rows)]
        where = {"data": data, "epsilon": epsilon, "rows": rows}
        for gap in FAIR_ENOUGH if here[0]["n_private"] >= LARGE else ():
            ours, theirs = (most_accurate(here, method, gap) for method in ("FairPATE", "FairDP-SGD"))
            if theirs is not None:
                goal = f"FairPATE within .010 of FairDP-SGD in accuracy, gap at most {gap:g}"
                yield entry(goal, where, ours, theirs - 0.010)
        worst = min(p["accuracy"] for p in here if p["method"] == "FairPATE")
        common = max(p["accuracy"] for p in points if p["data"] == data and p["method"] == "most frequent class")
        yield entry("FairPATE never below the most frequent class", where, worst, common)


def learner_goals(points: Sequence[Point]) -> Iterable[dict[str, Any]]:
    """DP-SGD without fairness beside tuned DP-EBM, and beside a logistic regression without privacy."""
    plain = [p for p in points if p["auroc"] is not None and p["constraint"] == "demographic_parity"]
    for data, epsilon in unique([p for p in plain if p["epsilon"] is not None], "data", "epsilon"):
        here = [p for p in plain if p["data"] == data]
        where = {"data": data, "epsilon": epsilon, "rows": "none"}
        ours = [p for p in here if p["method"] == "FairDP-SGD" and not p["knob"] and p["epsilon"] == epsilon]
        ebm = [p for p in here if p["method"] == "DP-EBM" and p["epsilon"] == epsilon and p["rows"] == "public"]
        for name in ("accuracy", "auroc"):
            if ours and ebm:
                asked = max(mean(p, name) for p in by_setting(ebm))
                yield entry(f"DP-SGD at least tuned DP-EBM in {name}", where, mean(ours, name), asked)
        free = [p for p in here if p["method"] == "no privacy"]
        if ours and free and epsilon == 0.5:
            asked = mean(free, "auroc") - 0.010
            yield entry("DP-SGD within .010 AUROC of no privacy", where, mean(ours, "auroc"), asked)


def entry(goal: str, where: dict[str, Any], reached: float | None, asked: float) -> dict[str, Any]:
    """One goal at one place."""
    missing = None if reached is None else max(asked - reached, 0.0)
    return {"goal": goal, **where, "reached": reached, "asked": asked, "missing": missing, "met": missing == 0.0}


def most_accurate(points: Sequence[Point], method: str, gap: float) -> float | None:
    """Accuracy of a method's best knob whose mean gap is within a bound."""
    knobs = [[p for p in points if p["method"] == method and p["knob"] == knob] for knob in knobs_of(points, method)]
    return max((mean(k, "accuracy") for k in knobs if mean(k, "demographic_parity") <= gap), default=None)


def knobs_of(points: Sequence[Point], method: str) -> list[float | None]:
    return list(dict.fromkeys(p["knob"] for p in points if p["method"] == method))


def by_setting(points: Sequence[Point]) -> list[list[Point]]:
    return [[p for p in points if p["setting"] == setting] for (setting,) in unique(points, "setting")]


def mean(points: Sequence[Point], name: str) -> float:
    return statistics.fmean(p[name] for p in points)


def mean_and_error(numbers: Iterable[float]) -> dict[str, float | None]:
    """Mean, and standard error where there are two or more."""
    known = list(numbers)
    error = statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None
    return {"mean": statistics.fmean(known), "standard_error": error}


def unique(points: Sequence[Point], *names: str) -> list[tuple[Any, ...]]:
    """The values that occur, in the order of their first points."""
    return list(dict.fromkeys(tuple(point[name] for name in names) for point in points))
