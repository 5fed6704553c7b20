"""The statement: what a fit guarantees, in a form that travels with the model and that anybody can recompute."""

import hashlib
import html
import json
import math
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import metadata
from typing import Any

from scipy.special import ndtr, ndtri

from skfairdp.exceptions import LedgerError
from skfairdp.privacy._accountants import _mu_squared, epsilon_of
from skfairdp.privacy._events import event_to_dict, flatten
from skfairdp.privacy._ledger_file import relation_of, total_event
from skfairdp.privacy._report import NeighboringRelation, rounded_up

FORMAT = "skfairdp-statement-1"
DELTAS = tuple(10.0**-k for k in range(3, 11))
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)

UNITS = {
    "record": "one record: all features, the label and the group of one row",
    "sensitive attribute": "the sensitive attribute of one record; features and labels are taken as public",
    "subject": "one subject: all rows of one {of}, however many",
    "replace the sensitive attribute of one subject": (
        "the sensitive attribute of one subject, in all rows of one {of}; features and labels are taken as public"
    ),
}
RELATIONS = {
    "replace one record": "Neighbouring data sets differ in the values of one record. The number of records is public.",
    "add or remove one record": (
        "One of two neighbouring data sets has a record more. The number of records is not public."
    ),
    "replace one record by a null record": (
        "In one of two neighbouring data sets a record is replaced by a null record, which contributes nothing. The "
        "number of records is public."
    ),
    "replace one sensitive attribute": (
        "Neighbouring data sets differ in the sensitive attribute of one record. Everything else is public."
    ),
    "replace all rows of one subject": (
        "Neighbouring data sets differ in all rows of one subject: they may be any others, more, fewer or none. The "
        "number of subjects and their ids are public, the number of rows is not."
    ),
    "replace all rows of one subject by none": (
        "In one of two neighbouring data sets a subject has no rows, and contributes nothing. The number of subjects "
        "and their ids are public, the number of rows is not. Rows that give way to others, or one of several that "
        "does, are two such steps."
    ),
    "replace the sensitive attribute of one subject": (
        "Neighbouring data sets differ in the sensitive attribute of one subject, in all of its rows together. "
        "Everything else is public."
    ),
}
POST_PROCESSING = (
    "The guarantee covers everything made from the releases and from public values alone: the model, its attributes, "
    "its predictions for any rows, samples, and whatever is computed from those later, any number of times. It does "
    "not cover running time, memory, what a memory= folder keeps on the disk (models of private rows, and rows where "
    "models hold them), or another use of the private rows."
)
FAIRNESS = (
    "On new rows what was constrained (the largest difference between two groups, or with a bound on losses the "
    "largest mean loss of a group) is at most {most:.3f}, with a confidence of 95%. {found}The figures come from "
    "public rows, or from noisy counts that ε pays for; they cannot be recomputed without the data, so the JSON of "
    "this statement leaves them out."
)
ABOUT = "The model's answers to its rows leave about {gap:.3f}. "
HOLDS = "Whether the constraints hold: {holds}. "
NO_LEDGER = (
    "Without a ledger this statement covers one fit with what it was given. What other fits on the same rows "
    "cost, those that chose its parameters among them, comes on top."
)


def unit_of(relation: str, rows_of: str = "") -> str:
    """What is protected, in words."""
    return UNITS.get(relation, UNITS[NeighboringRelation(relation).protects]).format(of=rows_of or "id")


def attack_bound(rate: float, curve: Iterable[tuple[float, float]], mu: float | None) -> float:
    """Largest true-positive rate of any test for one person's data at a false-positive rate: the smallest by the
    Gaussian trade-off curve, where there is a μ, and by each (δ, ε) of the curve."""
    bounds = [1.0]
    if mu is not None and math.isfinite(mu):
        bounds.append(float(ndtr(ndtri(rate) + mu)))
    for delta, epsilon in curve:
        if math.isfinite(epsilon):
            bounds.append(math.exp(min(epsilon, 700.0)) * rate + delta)
            bounds.append(1 - math.exp(-epsilon) * (1 - delta - rate))
    return min(bounds)


_OF_VOTES = "{law} scale {sigma:.6g} votes, {n_teachers} teachers"
#: What each release is, and its noise and sensitivity, in words.
_WORDS: dict[str, tuple[str, str]] = {
    "GaussianDpEvent": ("Gaussian noise", "standard deviation {noise_multiplier:.6g} times the sensitivity"),
    "DiscreteGaussian": ("discrete Gaussian noise", "scale {sigma:.6g} at sensitivity {sensitivity:.6g}"),
    "LaplaceDpEvent": ("Laplace noise", "scale {noise_multiplier:.6g} times the sensitivity"),
    "RandomizedResponseDpEvent": (
        "randomised response",
        "{num_buckets} values, resampled with probability {noise_parameter:.6g}",
    ),
    "RareDisclosure": (
        "values that many records share, shown where a noisy count is large",
        "shows a value of one record only with probability at most {probability:.6g}, part of δ",
    ),
    "PoissonSampledDpEvent": (
        "Gaussian noise on a Poisson sample",
        (
            "standard deviation {event[noise_multiplier]:.6g} times the clipping norm, each row sampled with "
            "probability {sampling_probability:.6g}"
        ),
    ),
    "ReplaceSampledGaussian": (
        "Gaussian noise on a Poisson sample, a record replaced",
        (
            "standard deviation {noise_multiplier:.6g} times the largest norm, sampled with probability "
            "{sampling_probability:.6g}, contributions at most {difference:.6g} norms apart"
        ),
    ),
    "ThresholdBit": ("one bit: noisy count of votes above a threshold", _OF_VOTES),
    "ArgmaxBit": ("one bit: which of two noisy counts of votes is larger", _OF_VOTES),
    "WorstOf": ("the worst of several", "{n_options} options, of which a record meets one"),
    "RepeatAndSelectDpEvent": (
        "the best of a secret number of trials",
        "{mean:.6g} trials on average, the number secret",
    ),
    "NonPrivateDpEvent": ("no noise at all", "none"),
}


def described_releases(event: Any) -> list[dict[str, Any]]:
    """The elementary releases of an event: what each is, how often, and the noise, as plain JSON values."""
    found = []
    for leaf, count in flatten(event).items():
        described = event_to_dict(leaf)
        name, noise = _WORDS[described["type"]]
        words = {"n_options": len(described.get("events", ())), "law": str(described.get("noise")).replace("_", " ")}
        noise = noise.format(**described, **words)
        found.append({"mechanism": name, "count": count, "noise": noise, "event": described})
    return found


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fit guarantees, made from its ``privacy_`` alone: nothing in it follows private values.
    Every figure can be recomputed from the releases in the statement, without the data and without this program's
    accountants: ``python -m skfairdp verify FILE`` does so for the text of :meth:`to_json`. Its digest tells an edited
    text from the one that was written; it is no signature, and only a ledger says that there was such a fit."""

    text: str = field(repr=False)
    gap_bound: float | None = None
    gap: float | None = None
    holds: str | None = None

    @property
    def content(self) -> dict[str, Any]:
        """A copy of the plain values."""
        return dict(json.loads(self.text))

    # ------------------------------------------------------------------ figures

    @property
    def epsilon(self) -> float:
        """The certified ε at :attr:`delta`; inf where the noise was seeded."""
        return _number(self.content["epsilon"])

    @property
    def delta(self) -> float:
        return _number(self.content["delta"])

    @property
    def mu(self) -> float | None:
        """μ of Gaussian differential privacy; None where a release is not made from Gaussian noise."""
        value = self.content["mu"]
        return None if value is None else _number(value)

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Pairs (δ, ε): each of them holds."""
        return tuple((_number(point["delta"]), _number(point["epsilon"])) for point in self.content["curve"])

    @property
    def attack(self) -> tuple[tuple[float, float], ...]:
        """Pairs (false-positive rate, largest true-positive rate) of any attack on one person's data."""
        rates = ("false_positive_rate", "true_positive_rate")
        return tuple((_number(p[rates[0]]), _number(p[rates[1]])) for p in self.content["attack"])

    # ------------------------------------------------------------------ forms

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; infinity is the text ``"inf"``."""
        return self.content

    def to_json(self) -> str:
        """Text for a file beside the model, which ``python -m skfairdp verify`` reads."""
        return self.text

    def to_markdown(self, *, level: int = 2) -> str:
        """Readable text with tables."""
        parts = [f"{'#' * level} Privacy statement: {_cell(self.content['subject'])}", _cell(self.summary)]
        for title, rows in self._sections:
            parts += [f"{'#' * (level + 1)} {title}", _cell(rows) if isinstance(rows, str) else _markdown_table(rows)]
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """One page that needs no other file, without scripts and without links to elsewhere."""
        from skfairdp._utils import page  # only here: accounting needs no tables

        return page(f"Privacy statement: {self.content['subject']}", self._html)

    @property
    def _html(self) -> str:
        from skfairdp._utils import html_table  # only here: accounting needs no tables

        parts = [f"<h2>Privacy statement: {html.escape(self.content['subject'])}</h2>", _paragraph(self.summary)]
        for title, rows in self._sections:
            parts.append(f"<h3>{html.escape(title)}</h3>")
            parts.append(_paragraph(rows) if isinstance(rows, str) else html_table(rows[0], rows[1:]))
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        from skfairdp._utils import section  # only here: accounting needs no tables

        return section(self._html)

    def __str__(self) -> str:
        return self.summary

    def to_registry(self, **entries: Any) -> dict[str, Any]:
        """The entry of a deployment in the registry of differential privacy deployments (tier 3)."""

        return registry_entry(self, **entries)

    def to_registry_yaml(self, **entries: Any) -> str:
        """As :meth:`to_registry`, as YAML."""
        import yaml

        return str(yaml.safe_dump(self.to_registry(**entries), sort_keys=False, allow_unicode=True, width=100))

    def add_to_card(self, card: Any, *, section: str = "Privacy") -> Any:
        """Add the statement to a model card."""
        text = self.to_markdown(level=3).split("\n\n", 1)[1]  # the card writes the heading
        return card.add(**{section: text})

    # ------------------------------------------------------------------ text

    @cached_property
    def summary(self) -> str:
        """Two or three sentences."""
        content = self.content
        if not content["noise_is_secret"]:
            return (
                "There is no guarantee: the noise was drawn from a seed, and whoever knows it can remove it. With "
                f"secret noise ε would be {_bound(content['mechanism_epsilon'])} at δ = {_figure(content['delta'])}."
            )
        gaussian = f", and is μ-Gaussian with μ = {_bound(content['mu'])}" if content["mu"] is not None else ""
        return (
            f"This protects {content['unit']}. It satisfies (ε, δ)-differential privacy with "
            f"ε = {_bound(content['epsilon'])} at δ = {_figure(content['delta'])}{gaussian}. {content['relation_text']}"
        )

    @cached_property
    def _sections(self) -> list[tuple[str, Any]]:
        content = self.content
        sections: list[tuple[str, Any]] = []

        def add(title: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
            sections.append((title, [header, *rows]))

        if content["curve"]:
            points = [(_figure(point["delta"]), _bound(point["epsilon"])) for point in content["curve"]]
            add("How ε depends on δ", ("δ", "ε"), points)
        tests = [
            (f"{point['false_positive_rate']:.1%}", f"{_ceiling(_number(point['true_positive_rate']), 4):.2%}")
            for point in content["attack"]
        ]
        add("What an attack can find", ("false alarms", "true cases found, at most"), tests)
        if len(content["parts"]) > 1:
            every = content["parts"]
            parts = [(p["label"] or "a fit", p["unit"], _bound(p["epsilon"]), _figure(p["delta"])) for p in every]
            add("What was added up", ("spent by", "what it protects", "ε alone", "at δ"), parts)
        releases = [(row["mechanism"], str(row["count"]), row["noise"]) for row in content["releases"]]
        add("What ε covers", ("release", "how many", "noise"), releases)
        if content["performed"]:
            rows = content["performed"]
            made = [(r["mechanism"], str(r["times"]), _figure(r["sensitivity"]), _figure(r["sigma"])) for r in rows]
            add("What was released", ("mechanism", "how often", "sensitivity", "noise (standard deviation)"), made)
        public = [(fact["name"], fact["how"], fact["consequence"]) for fact in content["public"]]
        add("What was taken as public", ("what", "how it was obtained", "consequence"), public)
        sections.append(("Afterwards", content["post_processing"]))
        if self.gap_bound is not None:
            about = "" if self.gap is None or math.isnan(self.gap) else ABOUT.format(gap=self.gap)
            found = about + ("" if self.holds is None else HOLDS.format(holds=self.holds))
            sections.append(("Fairness, beside ε", FAIRNESS.format(most=_ceiling(self.gap_bound, 3), found=found)))
        sections.append(("Other fits on the same rows", self._story()))
        sections.append(("Made with", ", ".join(f"{name} {version}" for name, version in content["versions"].items())))
        return sections

    def _story(self) -> Any:
        ledger = self.content["ledger"]
        if ledger is None:
            return NO_LEDGER
        rows = [(entry["label"], "; ".join(entry["releases"]) or "-") for entry in ledger["entries"]]
        at = _figure(ledger["delta"])
        totals = []
        for total in ledger["totals"]:
            which = f"all that protect one {total['protects']}"
            if total["protects"] == "sensitive attribute" and len(ledger["totals"]) > 1:
                which = "all of them, in what they reveal about one sensitive attribute"
            totals.append((which, f"ε = {_bound(total['epsilon'])} at δ = {at}"))
        more = [
            (f"not on this ledger, and on top: {label}", f"ε = {_bound(epsilon)} at δ = {_figure(delta)}")
            for label, epsilon, delta in _off_ledger(self.content)
        ]
        named = f"fit on the ledger {ledger.get('id', '')}".rstrip()
        return [(named, "releases"), *rows, *totals, *more]


def state(spent: Any, *, subject: str, ledger: Any = None) -> PrivacyStatement:
    """Make the statement of what was spent."""
    secret = spent.epsilon == spent.mechanism_epsilon
    mu: float | None = None
    curve: list[tuple[float, float]] = []
    if secret and math.isfinite(spent.mechanism_epsilon):
        squared = _mu_squared(tuple(flatten(spent.event).items()))
        mu = None if squared is None else math.sqrt(squared)
        cap = spent.epsilon if spent.delta == 0 else math.inf
        at = {delta: min(epsilon_of(spent.event, delta), cap) for delta in DELTAS} | {spent.delta: spent.epsilon}
        curve = sorted(at.items(), reverse=True)  # the largest δ first
    parts, facts = [], []
    for part in spent.parts or (spent,):
        charged = bool(ledger is not None and part.on_record and ledger.continues(part.on_record))
        figures = {"delta": _plain(part.delta), "epsilon": _plain(part.epsilon), "on_ledger": charged}
        parts.append({"label": part.label, **_guarded(part), **figures, "event": event_to_dict(part.event)})
    for fact in spent.public:
        said = {"name": str(getattr(fact, "name", fact)), "how": str(getattr(fact, "how", "given"))}
        so = str(getattr(fact, "consequence", "") or "")
        facts.append({**said, "value": getattr(fact, "value", None), "consequence": so})
    content = {
        "format": FORMAT,
        "subject": subject,
        **_guarded(spent),
        "relation_text": RELATIONS[str(spent.neighboring_relation)],
        "noise_is_secret": secret,
        **{name: _plain(getattr(spent, name)) for name in ("epsilon", "delta", "mechanism_epsilon")},
        "accountant": spent.accountant,
        "mu": None if mu is None else _plain(mu),
        "curve": [{"delta": delta, "epsilon": _plain(epsilon)} for delta, epsilon in curve],
        "attack": [
            {"false_positive_rate": rate, "true_positive_rate": min(1.0, attack_bound(rate, curve, mu) * (1 + 1e-12))}
            for rate in FALSE_POSITIVE_RATES
        ],
        "event": event_to_dict(spent.event),
        "parts": parts,
        "releases": described_releases(spent.event),
        "performed": [
            {**vars(release), "sensitivity": _plain(release.sensitivity), "sigma": _plain(release.sigma)}
            for release in getattr(spent, "performed", ())
        ],
        "public": facts,
        "post_processing": POST_PROCESSING,
        "ledger": None if ledger is None else _ledger_story(ledger),
        "versions": _versions(),
    }
    content["digest"] = digest_of(content)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return PrivacyStatement(text)


def digest_of(content: Mapping[str, Any]) -> str:
    """Of everything a statement says. It is no signature: whoever writes another statement can compute it, too."""
    said = {name: value for name, value in content.items() if name != "digest"}
    text = json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _guarded(spent: Any) -> dict[str, str]:
    """What is protected, in one word and in a sentence, and among which neighbours."""
    relation = str(spent.neighboring_relation)
    unit = unit_of(relation, spent.rows_of)
    whose = {"rows_of": spent.rows_of} if spent.rows_of else {}
    return {"protects": str(spent.protects), "unit": unit, **whose, "neighboring_relation": relation}


def _off_ledger(content: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Label, ε and δ of what was added up and is on no ledger, or on another one."""
    off = (part for part in content["parts"] if not part["on_ledger"])
    return [(part["label"] or "a fit", part["epsilon"], part["delta"]) for part in off]


def _ledger_story(ledger: Any) -> dict[str, Any]:
    if not ledger.continues(ledger.head):
        raise LedgerError(
            "The ledger cannot be read, so what else is on it is unknown, and no statement can include it. "
            "Restore its file, or state the fit without it: model.privacy_.statement()."
        )
    entries = ledger.entries
    totals = []
    for protects in dict.fromkeys(str(entry.protects) for entry in entries):
        relation = relation_of(entries, protects)
        total = _plain(epsilon_of(total_event(entries, protects), ledger.delta))
        totals.append({"protects": protects, "neighboring_relation": str(relation), "epsilon": total})
    named = {"id": ledger.id} if ledger.id else {}
    ceiling = {"epsilon": _plain(ledger.epsilon), "delta": ledger.delta}
    return {**named, **ceiling, "totals": totals, "entries": [entry.plain for entry in entries]}


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("skfairdp", "numpy", "scipy", "dp-accounting"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # run from a folder, not installed
            from skfairdp import __version__

            found[name] = __version__ if name == "skfairdp" else "unknown"
    return found


# ---- plain values and text -------------------------------------------------------------------------------------------
def _plain(value: Any) -> Any:
    if value is None:
        return None
    return float(value) if math.isfinite(value) else "inf"


def _number(value: Any) -> float:
    return math.inf if value == "inf" else float(value)


def _figure(value: Any) -> str:
    if value is None:
        return "-"
    number = _number(value)
    return "∞" if math.isinf(number) else f"{number:.5g}"


def _bound(value: Any) -> str:
    """A certified figure, rounded up."""
    return rounded_up(_number(value), 5).replace("inf", "∞")


def _ceiling(value: float, digits: int) -> float:
    """A bound with so many decimals, rounded up."""
    return math.ceil(value * 10**digits) / 10**digits if math.isfinite(value) else value


def _cell(text: Any) -> str:
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _markdown_table(rows: list[tuple[str, ...]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in [head, ("---",) * len(head), *body])


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


_MECHANISMS = (
    "The releases were made by skfairdp {version}: {releases}. Noise comes from the operating system's cryptographic "
    "generator. Released numbers lie on a public grid or are discrete, so that no floating-point digit depends on a "
    "single data set. Running time and memory are not protected."
)


_UNITS = {
    "record": "Record",
    "sensitive attribute": "Sensitive attribute of a record",
    "subject": "Subject (all rows of one {of})",
    "replace the sensitive attribute of one subject": "Sensitive attribute of a subject (all rows of one {of})",
}


def registry_entry(
    statement: PrivacyStatement,
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
    content = statement.content
    deployment: dict[str, dict[str, Any]] = {
        "basic": {
            "name": name,
            "data_curators": list(data_curators),
            "intended_use": intended_use,
            "data_product_type": data_product_type,
            "data_product_region": data_product_region,
            "description": description,
            "publication_date": publication_date,
            "data_product_sector": data_product_sector,
        },
        **_guarantee_of(statement, data_domain),
        "deployment_model": {
            "model_name": model_name,
            "actors": actors,
            "release_type": "One release",
            "release_type_details": _story(content),
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        **_means(content, justification),
        "administrative": {"sources": sources, "registry_authors": list(registry_authors)},
    }
    slug = re.sub(r"[\W_]+", "-", "-".join((name, *data_curators, publication_date[:4])).lower()).strip("-")
    filled = {part: {n: v for n, v in fields.items() if v is not None} for part, fields in deployment.items()}
    return {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": filled}


def _guarantee_of(statement: PrivacyStatement, data_domain: str | None) -> dict[str, dict[str, Any]]:
    content = statement.content
    facts = [(f"{fact['name']} ({fact['how']})", fact["consequence"]) for fact in content["public"]]
    unprotected = [": ".join(filter(None, said)) for said in facts]
    unit = _UNITS.get(content["neighboring_relation"], _UNITS[content["protects"]])
    curve = [f"epsilon = {rounded_up(epsilon, 6)} at delta = {delta:.6g}" for delta, epsilon in statement.curve]
    mu = [] if statement.mu is None else [f"mu = {rounded_up(statement.mu, 6)} (Gaussian differential privacy)"]
    attack = [
        "true-positive rate of any attack that distinguishes neighbours at most "
        f"{rounded_up(found)} at a false-positive rate of {rate:g}"
        for rate, found in statement.attack
    ]
    return {
        "dp_variant": {
            "variant_name": "Pure DP" if statement.delta == 0 else "Approximate DP",
            "data_domain": data_domain,
            "unprotected_quantities": _listed(unprotected),
        },
        "privacy_loss": {
            "privacy_unit": unit.format(of=content.get("rows_of") or "id"),
            "privacy_unit_details": f"{content['relation_text']} At a distance of one.",
            "privacy_parameters": {"epsilon": statement.epsilon, "delta": statement.delta},
            "privacy_parameters_details": _listed(curve + mu + attack),
        },
    }


def _means(content: Mapping[str, Any], justification: str | None) -> dict[str, dict[str, Any]]:
    releases = "; ".join(f"{r['count']} x {r['mechanism']} ({r['noise']})" for r in content["releases"])
    return {
        "accounting": {
            "post_processing": content["post_processing"],
            "composition": f"All releases composed, certified by the accountant '{content['accountant']}' of skfairdp; "
            "the figures can be recomputed from the list of releases with dp-accounting (python -m skfairdp verify).",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _story(content),
            "mechanisms": _MECHANISMS.format(version=content["versions"]["skfairdp"], releases=releases),
            "justification": justification,
        },
    }


def _listed(lines: Any) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _story(content: Any) -> str:
    if content["ledger"] is None:
        return "Without a ledger the figures cover this fit alone, and other fits on the same rows come on top."
    n = len(content["ledger"]["entries"])
    totals = ", ".join(
        f"epsilon = {total['epsilon']} at delta = {content['ledger']['delta']:g} for {total['neighboring_relation']}"
        for total in content["ledger"]["totals"]
    )
    off = _off_ledger(content)
    more = "; ".join(f"{label}, epsilon = {epsilon} at delta = {delta}" for label, epsilon, delta in off)
    return (
        f"{n} fits on these rows are on one ledger: {totals}. Those that chose the parameters are among them if they "
        f"were charged to it.{f' Not on it, and on top: {more}.' if more else ''}"
    )
