"""The interactive page: one file that loads nothing.

Written by hand over SVG rather than with plotly: plotly.js inline weighs 4.5 MB and draws to a canvas of its own that
the keyboard cannot walk through, while this page is about 40 kB, opens from disk or mail at once, and every point is an
element that can be focused and read aloud. A content security policy in the page forbids every request.
"""

import html
import inspect
import json
import math
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import pandas as pd

import skfairdp
from skfairdp import __version__
from skfairdp.inspection._frontier_frame import Part, check_frame, epsilon_text, level_colors, parts_of, refusal_kind
from skfairdp.model_selection import utility_in


def frontier_page(frame: pd.DataFrame, *, title: str | None = None) -> str:
    """Return the page of a frontier frame as one string of HTML."""
    parts = parts_of(check_frame(frame))
    names = list(dict.fromkeys(part.dataset for part in parts if part.dataset))
    usual = ": ".join(["What private and fair learning costs", *([", ".join(names)] if names else [])])
    measured = frame.attrs.get("n_test"), frame.attrs.get("scored_on")
    notes = [str(note) for note in frame.attrs.get("notes", [])]
    panels = [_panel(part, len(parts) > 1, notes, *measured) for part in parts]
    data = {"amounts": utility_in(frame) == "r2", "panels": panels}
    folder = resources.files("skfairdp.inspection") / "templates"
    # "<" inside the data could end the script element; everywhere else JSON does not need it.
    text = json.dumps(data, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    fill = {
        "TITLE": html.escape(usual if title is None else title),
        "EYEBROW": "Privacy · fairness · R²" if data["amounts"] else "Privacy · fairness · accuracy · coverage",
        "GAP": _GAP_OF_AMOUNTS if data["amounts"] else _GAP,
        "VERSION": html.escape(__version__),
        "STYLE": (folder / "frontier.css").read_text(encoding="utf-8"),
        "SCRIPT": (folder / "frontier.js").read_text(encoding="utf-8"),
        "DATA": text,
    }
    # One pass, so that nothing in the data is taken for a place to fill.
    return re.sub("@@([A-Z]+)@@", lambda match: fill[match[1]], (folder / "frontier.html").read_text(encoding="utf-8"))


_SCORED = {
    "private": "noisy tables of held-out private rows, covered by this ε",
    "public": "public rows with labels, not covered by ε",
    "held out": "noisy tables of rows that no model has seen, covered by this ε",
}


_GAP = (
    "<b>Gap</b> is demographic disparity: the most by which any group receives a decision more often than all other "
    "groups together. <b>Coverage</b> is the share of people who got an answer; accuracy and gap are those of the "
    "answered."
)
_GAP_OF_AMOUNTS = (
    "<b>Gap</b> is the distance of Kolmogorov and Smirnov: the most by which the shares of two groups differ that are "
    "predicted an amount at or below any limit. <b>R²</b> is 1 for perfect predictions and 0 for one amount for "
    "everybody."
)
_UNKNOWN = "The noise hides all groups but one; more rows or a larger ε show it."


def _panel(part: Part, several: bool, notes: list[str], n_test: int | None, scored_on: str | None) -> dict[str, Any]:
    total, question = part.epsilon_total, ""
    sentence = "The noise was seeded, or a total is not known: publishing these models is not certified."
    if math.isfinite(total):
        cost, question = f"ε = {epsilon_text(total)}", f"What does ε = {epsilon_text(total)} mean?"
        whom = f"one {part.protects} ({part.neighboring_relation})"
        sentence = f"Publishing every model on this page costs {cost} at δ = {part.delta_text}, protecting {whom}."
    levels = part.level_of(part.rows["epsilon"]).tolist()
    heading = ": ".join(filter(None, [part.dataset, part.protection])) if several else None
    named = {"heading": heading, "subject": part.subject or "Models"}
    of = {"protects": part.protects, "protection": part.protection, "delta": part.delta_text, "total": _finite(total)}
    unknown = _UNKNOWN if scored_on == "held out" else ""
    told = {"sentence": sentence, "notes": notes, "makers": part.estimators, "unknown": unknown, "question": question}
    shown = {**named, **of, **told, "meaning": part.meaning}
    return {
        **shown,
        "references": [_reference(one, part) for one in part.references],
        "detail": _detail(part, n_test, scored_on),
        "levels": [_finite(level) for level in part.levels],
        "colors": {theme: level_colors(len(part.levels), theme) for theme in ("light", "dark")},
        "points": [_point(j, row, levels[j], part) for j, row in enumerate(part.rows.to_dict("records"))],
    }


def _detail(part: Part, n_test: int | None, scored_on: str | None) -> str:
    """What was released, what follows from it, and what the figures were measured on."""
    fits = f"{part.n_fits} private release{'s' if part.n_fits != 1 else ''}"
    derived = "every γ and refusal rule is computed from them at no further cost."
    figures = "R² and gap" if part.of_amounts else "Accuracy, gap and coverage"
    measured = f" {figures}: {n_test:,} test rows, not covered by ε." if n_test else ""
    if scored_on is not None:  # a search
        derived = "models that differ only in post-processing share one."
        measured = f" {figures}: {_SCORED[scored_on]}."
    return f"{fits}; {derived}{measured}{part.error_text}"


def _reference(one: Mapping[str, Any], part: Part) -> dict[str, Any]:
    """A mark to compare with, that is no model of the table and costs nothing."""
    at = {"gap": _finite(one["disparity"]), "accuracy": _finite(one[part.utility]), "coverage": 1.0, "epsilon": None}
    return {"name": str(one["name"]), **at, "private": bool(one.get("private", True))}


def _point(j: int, row: Mapping[Any, Any], level: int, part: Part) -> dict[str, Any]:
    gamma, idp3, params = _finite(row["gamma"]), bool(row["idp3"]), str(row.get("params") or "")
    asked = {"epsilon": _finite(row["epsilon"]), "level": int(level), "gamma": gamma, "idp3": idp3}
    gap, bound = _finite(row["disparity"]), _finite(row.get("gap_bound", math.nan))
    found = {"gap": gap, "bound": bound, "accuracy": _finite(row[part.utility]), "coverage": float(row["coverage"])}
    said = {"id": j, "estimator": str(row.get("estimator") or "model"), **asked, "kind": refusal_kind(row), **found}
    return {**said, "best": bool(row["non_dominated"]), "params": params, "code": _code(params, gamma, idp3, row)}


def _code(params: str, gamma: float | None, idp3: bool, row: Mapping[Any, Any]) -> str:
    """Python that makes the model again, as far as the package knows its names."""
    name = params.partition("(")[0]
    # The estimator may be IDP3 itself; else refusing is a step of its own behind it.
    wrapped = idp3 and name != "IDP3"
    used = [word for word in dict.fromkeys(re.findall(r"\b([A-Z]\w*)\(", params)) if word in skfairdp.__all__]
    taken = _fit_arguments(name)
    arguments = [f"{argument}={given}" for argument, given in _GIVEN.items() if argument in taken]
    raw = "schema=schema" in params  # label and groups are columns of the table
    if raw:
        of_rates = isinstance(row.get("exposure"), str) and name == "FairDPSGDRegressor"
        arguments = [f"exposure=table[{row['exposure']!r}]"] if of_rates else []
    rows, new = ("table", "new_table") if raw else ("X, y", "X_new")
    public = ["Schema"] if raw else ["PublicData"] if "X_public" in taken else []
    imports = sorted({*used, *public, *(["IDP3"] if wrapped else []), *([] if used else [name])})
    lines = [f"from skfairdp import {', '.join(imports)}"]
    lines += [f"from {home} import {word}" for word, home in _ELSEWHERE.items() if f"{word}(" in params]
    if wrapped:
        lines.append("from sklearn.frozen import FrozenEstimator")
    lines += [
        "",
        f"# A new fit is a new release: it costs its own ε = {epsilon_text(row['epsilon'])}.",
        *(['schema = Schema.load("schema.yaml")'] if raw else []),
        f"model = {params}",
        f"model.fit({', '.join([rows, *arguments])})",
    ]
    if wrapped:
        lines.append(f"model = IDP3(FrozenEstimator(model), gamma={gamma})")
        lines.append("model.fit(X_public, sensitive_features=groups_public)")
    lines.append("model.predict(X_new, sensitive_features=groups_new)" if idp3 else f"model.predict({new})")
    return "\n".join(lines)


#: Where learners come from that tables name often.
_ELSEWHERE = {
    "DemographicParity": "fairlearn.reductions",
    "ExponentiatedGradient": "fairlearn.reductions",
    "LogisticRegression": "sklearn.linear_model",
    "PrivateBarycenter": "skfairdp.postprocessing",
}
_GIVEN = {"sensitive_features": "groups", "X_public": "PublicData(X_public, groups_public)"}


def _fit_arguments(name: str) -> set[str]:
    """Which of the arguments above the estimator's fit has; public rows take the place of private groups."""
    if name not in skfairdp.__all__:
        return {"X_public"}
    taken = set(_GIVEN) & set(inspect.signature(getattr(skfairdp, name).fit).parameters)
    return taken - {"sensitive_features"} if "X_public" in taken else taken


def _finite(value: Any) -> float | None:
    """JSON has neither NaN nor inf."""
    return float(value) if value is not None and math.isfinite(value) else None
