"""A statement as an entry of the registry of differential privacy deployments (registry.opendp.org), tier 3."""

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

_MECHANISMS = (
    "The releases were made by skfairdp {version}: {releases}. Noise comes from the operating system's cryptographic "
    "generator. Released numbers lie on a public grid or are discrete, so that no floating-point digit depends on a "
    "single data set. Running time and memory are not protected."
)


_UNITS = {
    "record": "Record",
    "sensitive attribute": "Sensitive attribute of a record",
    "subject": "Subject (all rows of one {of})",
}


class Stated(Protocol):
    """What an entry takes from a privacy statement."""

    @property
    def content(self) -> Mapping[str, Any]: ...

    @property
    def epsilon(self) -> float: ...

    @property
    def delta(self) -> float: ...

    @property
    def mu(self) -> float | None: ...

    @property
    def curve(self) -> tuple[tuple[float, float], ...]: ...

    @property
    def attack(self) -> tuple[tuple[float, float], ...]: ...


def registry_entry(
    statement: Stated,
    *,
    name: str,
    data_curators: Sequence[str],
    description: str,
    intended_use: str,
    data_product_region: str,
    publication_date: str,
    registry_authors: Sequence[str],
    data_product_type: str = "Machine learning model",
    data_product_sector: str | None = None,
    data_domain: str | None = None,
    model_name: str = "Central",
    actors: str | None = None,
    justification: str | None = None,
    sources: str | None = None,
) -> dict[str, Any]:
    """Fill in what the statement knows, and take the rest from the arguments."""
    if not statement.epsilon < float("inf"):
        raise ValueError("There is no guarantee to register: the noise was seeded, or there was none.")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", publication_date):
        raise ValueError(f"publication_date must have the form YYYY-MM-DD. Got {publication_date!r} instead.")
    basic = {
        "name": name,
        "data_curators": list(data_curators),
        "intended_use": intended_use,
        "data_product_type": data_product_type,
        "data_product_region": data_product_region,
        "description": description,
        "publication_date": publication_date,
        "data_product_sector": data_product_sector,
    }
    deployment: dict[str, dict[str, Any]] = {
        "basic": basic,
        "dp_variant": _variant(statement, data_domain),
        "privacy_loss": _privacy_loss(statement),
        "deployment_model": {
            "model_name": model_name,
            "actors": actors,
            "release_type": "One release",
            "release_type_details": _story(statement.content),
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": _accounting(statement.content),
        "implementation": _implementation(statement.content, justification),
        "administrative": {"sources": sources, "registry_authors": list(registry_authors)},
    }
    slug = "-".join((name, "-".join(data_curators), publication_date[:4]))
    return {
        "url_slug": re.sub(r"[\W_]+", "-", slug.lower()).strip("-"),
        "status": "Draft",
        "tier": 3,
        "deployment": {part: _given(fields) for part, fields in deployment.items()},
    }


def _variant(statement: Stated, data_domain: str | None) -> dict[str, Any]:
    return {
        "variant_name": "Pure DP" if statement.delta == 0 else "Approximate DP",
        "data_domain": data_domain,
        "unprotected_quantities": _listed(
            f"{fact['name']} ({fact['how']}){': ' + fact['consequence'] if fact['consequence'] else ''}"
            for fact in statement.content["public"]
        ),
    }


def _privacy_loss(statement: Stated) -> dict[str, Any]:
    content = statement.content
    curve = [f"epsilon = {epsilon:.6g} at delta = {delta:.3g}" for delta, epsilon in statement.curve]
    mu = [] if statement.mu is None else [f"mu = {statement.mu:.6g} (Gaussian differential privacy)"]
    attack = [
        f"true-positive rate of any attack at most {found:.4g} at a false-positive rate of {rate:g}"
        for rate, found in statement.attack
    ]
    return {
        "privacy_unit": _UNITS[content["protects"]].format(of=content.get("rows_of") or "id"),
        "privacy_unit_details": f"{content['relation_text']} At a distance of one.",
        "privacy_parameters": {"epsilon": statement.epsilon, "delta": statement.delta},
        "privacy_parameters_details": _listed(curve + mu + attack),
    }


def _accounting(content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "post_processing": content["post_processing"],
        "composition": f"All releases composed, certified by the accountant '{content['accountant']}' of skfairdp; "
        "the figures can be recomputed from the list of releases with dp-accounting (python -m skfairdp verify).",
    }


def _implementation(content: Mapping[str, Any], justification: str | None) -> dict[str, Any]:
    releases = "; ".join(f"{r['count']} x {r['mechanism']} ({r['noise']})" for r in content["releases"])
    return {
        "preprocessing_and_hyperparameter_tuning": _story(content),
        "mechanisms": _MECHANISMS.format(version=content["versions"]["skfairdp"], releases=releases),
        "justification": justification,
    }


def registry_yaml(entry: dict[str, Any]) -> str:
    """YAML of an entry. Without PyYAML it is JSON, which YAML includes."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        return json.dumps(entry, indent=2, ensure_ascii=False) + "\n"
    return str(yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100))


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _listed(lines: Any) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _story(content: Any) -> str:
    if content["ledger"] is None:
        return "No ledger was kept: the figures cover this fit alone, and other fits on the same rows come on top."
    n = len(content["ledger"]["entries"])
    totals = ", ".join(
        f"epsilon = {total['epsilon']} at delta = {content['ledger']['delta']:g} for {total['neighboring_relation']}"
        for total in content["ledger"]["totals"]
    )
    return f"All {n} fits on these rows, those that chose the parameters included, are on one ledger: {totals}."
