"""Checks a statement or a ledger's file by recomputing every figure in it, without data and without our accountants."""

import contextlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import stats

from skfairdp.exceptions import LedgerError
from skfairdp.privacy import _statement as statement
from skfairdp.privacy._events import compose, event_from_dict, flatten
from skfairdp.privacy._ledger_file import FORMAT, Chain, LedgerFile, OtherBudgetError, is_identity
from skfairdp.privacy._recompute import SecondOpinion, check_effort, to_replace_one
from skfairdp.privacy._report import NeighboringRelation
from skfairdp.privacy._spending import allowance

_SLACK = 1e-9  # of rounding between two programs; a claim that is too low by more than that is refuted
_PROTECTS = {str(relation): str(relation.protects) for relation in NeighboringRelation}
_SUBJECTS = tuple(relation for relation, unit in _PROTECTS.items() if unit == "subject")
_ATTRIBUTES = tuple(relation for relation, unit in _PROTECTS.items() if unit == "sensitive attribute")
#: Of which a column says who a subject is.
_OF_SUBJECTS = (*_SUBJECTS, _ATTRIBUTES[1])
#: Whose rows give way to others in two steps, as a record of such a subject does.
_BY_NONE = _SUBJECTS[1]
#: Under which relations else the figures of one hold, from the strongest to the weakest.
_WEAKER = ("replace all rows of one subject", "replace one record", "replace one record by a null record")
#: What a release is a release *of*, for those whose cost holds under some relations only.
_ONLY_UNDER = {
    "PoissonSampledDpEvent": ("add or remove one record", "replace one record by a null record", _BY_NONE),
    "ReplaceSampledGaussian": (*_WEAKER, _BY_NONE, *_ATTRIBUTES),
    # one answer more or less shows the record
    "RandomizedResponseDpEvent": ("replace one record", "replace one record by a null record", *_ATTRIBUTES),
}
#: Answered by chance, without noise on a number.
_WITHOUT_FIGURES = ("RandomizedResponse",)
#: What releases, and its sensitivities where they follow from what it is.
_SENSITIVITIES: dict[str, tuple[float | None, ...]] = {
    "GaussianMechanism": (), "NoisyVotes": (1.0, math.sqrt(2.0)), "NoisyThreshold": (1.0,), "GNMax": (math.sqrt(2.0),),
    "LaplaceCounts": (1.0, 2.0), "CommonValues": (math.sqrt(2.0),), "RandomizedResponse": (None,),
    "ExponentialMechanism": (),
}  # fmt: skip
#: Shows values that many records share, each time with a rare disclosure beside it.
_SHOWN = "CommonValues"
_MOST = 1e300  # of a sensitivity and of noise: more is no number
#: What a released fact says of its cost.
_PAID_FOR = re.compile(r"(?:by |, )([^,;]*?) at epsilon=([0-9.e+-]+) and delta=([0-9.e+-]+)")
_ROUNDED = 2e-3  # figures in words have four digits, and bounds of two programs differ
_RELEASE = "Schema.release"
#: What may be read where, as neighbours do not differ in it.
_READ = {
    "number of private rows": tuple({*_PROTECTS} - {"add or remove one record", *_SUBJECTS}),
    "number of subjects": _OF_SUBJECTS,
    "ids of the subjects": _OF_SUBJECTS,
    "features and labels": _ATTRIBUTES,
}
#: What each part of a statement says, and nothing else.
_OF = {
    "performed": {"mechanism", "sensitivity", "sigma", "times"},
    "public": {"name", "how", "value", "consequence"},
    "releases": {"mechanism", "count", "noise", "event"},
    "curve": {"delta", "epsilon"},
    "attack": {"false_positive_rate", "true_positive_rate"},
    "ledger": {"epsilon", "delta", "totals", "entries"},
    "parts": {"label", "protects", "unit", "neighboring_relation", "delta", "epsilon", "on_ledger", "event"},
    "totals": {"protects", "neighboring_relation", "epsilon"},
    "entries": {"label", "protects", "neighboring_relation", "releases", "event"},
}
_LARGEST = 2**25  # bytes of a file
_MOST_POINTS = 100  # of the curve, and of attacks


class UnreadableStatementError(ValueError):
    """The file is neither a statement nor a ledger, or says what no program of ours writes."""


@dataclass(frozen=True)
class Check:
    """One claim."""

    figure: str
    claimed: str
    recomputed: str
    holds: bool


def verify_file(path: str | os.PathLike[str], *, ledger: str | os.PathLike[str] | None = None) -> list[Check]:
    """Recompute every claim in a file, a statement as JSON or a ledger; it is good if all of them hold. With
    ``ledger``, a file, the statement has to be of it. What is neither is an UnreadableStatementError of one line."""
    with _unreadable(path):
        data = _bytes_of(path)
        text = data.decode("utf-8-sig")
        if text.lstrip().startswith('{"format": "skfairdp-ledger-'):
            document, (budget, entries, wrong) = {"ledger": None}, _read_ledger(Path(path), data)
            delta, ceiling = _delta(budget["delta"]), _figure(budget["epsilon"], "epsilon")
            claimed, found = f"{budget['count']} entries{_named(budget)}", wrong or f"{len(entries)} entries"
            checks = [Check("chain of entries", claimed, found, not wrong)]
            checks += _totals(entries, delta, ceiling, None)
        else:
            document = _object(text)
            if document.get("format") != "skfairdp-statement-1":
                raise ValueError("it is neither a privacy statement (format skfairdp-statement-1) nor a privacy ledger")
            checks = _statement(document)
    if ledger is not None:
        with _unreadable(ledger):
            checks.append(_of_this_file(document, Path(ledger)))
    return checks


@contextlib.contextmanager
def _unreadable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong with a file is one line that names it."""
    try:
        yield
    except UnreadableStatementError:
        raise
    except RecursionError:
        raise UnreadableStatementError(f"{path} cannot be verified: its event is nested without end") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UnreadableStatementError(
            f"{path} cannot be verified: its JSON is broken at {where}: {error.msg}"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, ArithmeticError) as error:
        what = f"the entry {error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise UnreadableStatementError(f"{path} cannot be verified: {what}") from None


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise UnreadableStatementError(f"{path} is longer than {_LARGEST // 2**20} MiB: no statement, nor a ledger")
    except OSError as error:
        raise UnreadableStatementError(f"cannot read {path}: {error.strerror or error}") from None
    if other := _kind_of_file(data):
        raise UnreadableStatementError(
            f"{path} is {other}, and neither a privacy statement nor a ledger. Give the JSON that "
            "PrivacyStatement.to_json or skfairdp frontier (privacy.json) wrote, or the file of a PrivacyLedger"
        )
    return data


_FIRST_BYTES = {
    b"PAR1": "a Parquet file", b"\x1f\x8b": "a gzip archive", b"PK\x03\x04": "a zip archive", b"%PDF": "a PDF",
    b"\x89PNG": "a picture", b"\x80": "a pickle", b"\xff\xfe": "UTF-16 text", b"\xfe\xff": "UTF-16 text",
}  # fmt: skip


def _kind_of_file(data: bytes) -> str | None:
    """What a file is that cannot be JSON; None where it may be."""
    kind = next((kind for first, kind in _FIRST_BYTES.items() if data.startswith(first)), None)
    if kind is not None:
        return kind
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return "a binary file"
    if not text or "\0" in text:
        return "a binary file" if text else "empty"
    if text[0] in "{[":
        return None
    line = text.partition("\n")[0]
    return "a page of HTML" if text[0] == "<" else "a table" if set(",;\t") & set(line) else "plain text"


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no figure")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("an entry is given twice")
    return dict(pairs)


# ---- statements ------------------------------------------------------------------------------------------------------
#: Of every statement.
_ENTRIES = frozenset({
    "format", "subject", "protects", "unit", "neighboring_relation", "relation_text", "noise_is_secret", "epsilon",
    "delta", "mechanism_epsilon", "accountant", "mu", "curve", "attack", "event", "parts", "releases", "performed",
    "public", "post_processing", "ledger", "versions", "digest",
})  # fmt: skip


def _check_entries(document: Mapping[str, Any]) -> None:
    """All that a statement says, and nothing that nobody has checked beside it."""
    _only(document, _ENTRIES)
    ledger = document["ledger"] or {}
    for name in ("public", "curve", "attack", "parts", "releases"):
        for row in document[name]:
            _only(row, _OF[name])
        if name in ("curve", "attack") and len(document[name]) > _MOST_POINTS:
            raise ValueError(f"its {name} has more than {_MOST_POINTS} points")
    if document["ledger"] is not None:
        _only(ledger, _OF["ledger"] | ({"id"} & {*ledger}))
        _check_id(ledger)
    for name in ("totals", "entries"):
        for row in ledger.get(name, []):
            _only(row, _OF[name])


def _only(row: Mapping[str, Any], names: set[str] | frozenset[str]) -> None:
    relation = row.get("neighboring_relation")
    agrees = relation in _OF_SUBJECTS and row.get("protects") == _PROTECTS[relation]
    if {"releases", "unit"} & names and agrees:  # a statement, a part of it, or an entry of a ledger
        names = names | ({"rows_of"} & {*row})
    if absent := sorted(names - {*row}):
        raise KeyError(absent[0])
    if others := sorted({*row} - names):
        raise ValueError(f"no statement has the entry {', '.join(map(repr, others))}, and it was not checked")


def _check_words(document: Mapping[str, Any]) -> None:
    """What nobody can recompute is a text where it is one, and speaks of no more than it is there for."""
    entries, parts = (document["ledger"] or {"entries": []})["entries"], document["parts"]
    words = [document["subject"], *document["versions"].values()]
    words += [row.get("rows_of", "") for row in (document, *parts, *entries)]
    words += [row["label"] for row in (*parts, *entries)] + [row["mechanism"] for row in document["performed"]]
    words += [fact[part] for fact in document["public"] for part in ("name", "how", "consequence")]
    words += [word for entry in entries for word in entry["releases"]]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("a name or a sentence of it is no text")
    obtained = {fact["how"] for fact in document["public"]}
    if others := sorted(obtained - {"given", "read", "held out", "computed", "released"}):
        raise ValueError(f"a public fact cannot be obtained as {others[0]!r}")
    if others := sorted({*document["versions"]} ^ {"python", "skfairdp", "numpy", "scipy", "dp-accounting"}):
        raise ValueError(f"'versions' of a statement are those of five packages, and {others[0]!r} is not as there")


def _statement(document: Mapping[str, Any]) -> list[Check]:
    _check_entries(document)
    event = _event(document["event"])
    opinion = SecondOpinion(event)
    secret = document["noise_is_secret"]
    if not isinstance(secret, bool):
        raise ValueError("'noise_is_secret' must be true or false")
    delta = _delta(document["delta"])
    # what no figure tells, such as a public fact that was taken out, is seen by the digest
    said, digest = str(document["digest"]), statement.digest_of(document)
    written = Check("text as it was written", said[:12], digest[:12], said == digest)
    checks = [written, *_guarantee(document), *_described(document, event)]
    _check_words(document)
    parts = _parts(document)
    checks.append(_whole(document, parts, event))
    mechanism, epsilon = (_figure(document[name], name) for name in ("mechanism_epsilon", "epsilon"))
    same = epsilon == (mechanism if secret else math.inf)
    checks.append(Check("ε is that of the mechanism", f"{epsilon:.9g}", f"{mechanism:.9g}" if secret else "inf", same))
    able = {"none"} if math.isinf(mechanism) else opinion.accountants
    named = document["accountant"]
    checks.append(Check("accountant", str(named), " or ".join(sorted(able)), named in able))
    checks.append(_at_least("ε with secret noise", mechanism, opinion.epsilon(delta, mechanism), f" at δ = {delta:g}"))
    true = max(mechanism if math.isinf(mechanism) else opinion.epsilon(delta, epsilon), 0.0) if secret else math.inf
    checks.append(_at_least("ε", epsilon, true, f" at δ = {delta:g}"))
    checks += _curve_and_attacks(document, opinion, delta)
    checks += _added_up(document, parts, opinion) if secret else []
    _check_facts(document)
    if document["ledger"] is not None:
        checks += [_on_ledger(document["ledger"], parts), *_ledger_story(document["ledger"])]
    return checks


def _curve_and_attacks(document: Mapping[str, Any], opinion: SecondOpinion, delta: float) -> list[Check]:
    """ε at other δ, μ, and what these leave to an attack."""
    checks: list[Check] = []
    secret, private = document["noise_is_secret"], document["mechanism_epsilon"] != "inf"
    curve = []
    for point in document["curve"]:
        at, claimed = _delta(point["delta"]), _figure(point["epsilon"], "epsilon")
        true = opinion.epsilon(at, claimed) if secret else math.inf
        curve.append((at, true))
        checks.append(_at_least("ε", claimed, true, f" at δ = {at:g}"))
    mu = opinion.mu if secret and private else None
    if (document["mu"], mu) != (None, None):
        stated = math.inf if document["mu"] is None else _figure(document["mu"], "mu")
        same = mu is not None and math.isclose(stated, mu, rel_tol=_SLACK)
        checks.append(Check("μ", f"{stated:.9g}", "none" if mu is None else f"{mu:.9g}", same))
    checks += _points(document, delta) if secret and private else []
    for point in document["attack"]:
        rate = _figure(point["false_positive_rate"], "false_positive_rate", most=1.0)
        claimed = _figure(point["true_positive_rate"], "true_positive_rate", most=1.0)
        true = _most_found(rate, curve, mu)  # 1 of seeded noise: the whole curve is infinite
        checks.append(_at_least("found by an attack", claimed, true, f" at {rate:.1%} false alarms"))
    return checks


def _guarantee(document: Mapping[str, Any]) -> list[Check]:
    """The unit, and what people read: in the words that every statement has."""
    relation, protects = document["neighboring_relation"], document["protects"]
    if relation not in _PROTECTS:
        raise ValueError(f"the neighbouring relation {relation!r} is unknown")
    unit = _PROTECTS[relation]
    checks = [Check("unit of protection", str(protects), unit, protects == unit)]
    words = {"relation_text": statement.RELATIONS[relation], "post_processing": statement.POST_PROCESSING}
    other = sorted(name for name, text in words.items() if document[name] != text)
    other += [] if all(map(_unit, (document, *document["parts"]))) else ["unit"]
    checks.append(Check("sentences", "as written", ", ".join(other) or "as written", not other))
    if relation in _OF_SUBJECTS:
        checks.append(_one_kind_of_subjects(document))
    return [*checks, _fits("relation fits the releases", document["event"], relation)]


def _one_kind_of_subjects(document: Mapping[str, Any]) -> Check:
    """Facts, parts and the ledger's entry name the column that the statement is of."""
    facts = [one.get("value") or "" for one in document["public"] if one.get("name") == "ids of the subjects"]
    entries, own = (document.get("ledger") or {}).get("entries", []), document["protects"]
    charged = [e for e in entries if e.get("neighboring_relation") in _OF_SUBJECTS and e.get("protects") == own]
    said, rows_of = str(document.get("rows_of", "")), [e.get("rows_of", "") for e in (*charged, *document["parts"])]
    others = sorted({str(one) for one in (*facts, *rows_of)} - {said})
    return Check("one kind of subjects", said or "no name", ", ".join(map(repr, others)) or "the same", not others)


def _fits(figure: str, event: Any, relation: str) -> Check:
    """Every release in the tree has a proof for these neighbours."""
    kinds = {str(node["type"]) for node in _nodes(event)}
    wrong = sorted(name for name in kinds if name in _ONLY_UNDER and relation not in _ONLY_UNDER[name])
    return Check(figure, relation, ", ".join(wrong) or "yes", not wrong)


def _unit(row: Mapping[str, Any]) -> bool:
    """Whether a statement, or a part of it, says what its neighbours are."""
    relation, said = row["neighboring_relation"], str(row["unit"])
    return relation in _PROTECTS and said == statement.unit_of(relation, str(row.get("rows_of", "")))


def _nodes(described: Any) -> Iterator[dict[str, Any]]:
    """Every event in the description of one, itself first."""
    if isinstance(described, dict):
        yield described
        described = [*described.values()]
    for value in described if isinstance(described, list) else ():
        yield from _nodes(value)


def _described(document: Mapping[str, Any], event: Any) -> list[Check]:
    """The table of releases is that of the event, and what was carried out costs no more than the event."""
    listed, true = document["releases"], statement.described_releases(event)
    same = json.dumps(listed, sort_keys=True) == json.dumps(true, sort_keys=True)  # true is no 1
    checks = [Check("table of releases", f"{len(listed)} rows", f"{len(true)} rows", same)]
    made = Check("releases made", "not stated", "not compared", True)
    return [*checks, _made(document["performed"], event) if document["performed"] else made]


def _made(performed: Any, event: Any) -> Check:
    """What was carried out draws no less noise than the event pays for; what no figure tells is refused."""
    paid, short = allowance(event), ""
    answers = math.inf if math.isinf(paid.squares) else paid.answers  # which of them it was is not told
    left = {"squares": paid.squares, "ratios": paid.ratios, "answers": answers}
    for row in performed:
        _only(row, _OF["performed"])
        times, figures = row["times"], (row["sensitivity"], row["sigma"])
        if not isinstance(times, int) or isinstance(times, bool) or times < 1:
            raise ValueError("'times' of a release must be a whole number above 0")
        if row["mechanism"] not in _SENSITIVITIES:
            raise ValueError(f"{str(row['mechanism'])[:40]!r} is no mechanism that releases")
        fixed = _SENSITIVITIES[row["mechanism"]]
        if fixed and figures[0] not in fixed:
            raise ValueError(f"{row['mechanism']} never has a sensitivity of {str(figures[0])[:40]}")
        known = figures != (None, None)
        if known == (row["mechanism"] in _WITHOUT_FIGURES):
            raise ValueError("a release must state its sensitivity and the standard deviation of its noise")
        kind, cost = "answers", 1.0
        if known:
            unit, noise = _figure(figures[0], "sensitivity", most=_MOST), _figure(figures[1], "sigma", most=_MOST)
            if unit == 0:
                raise ValueError("the sensitivity of a release must be above 0")
            ratio = unit / noise if noise else math.inf
            laplace = row["mechanism"] == "LaplaceCounts"
            kind, cost = ("ratios", math.sqrt(2.0) * ratio) if laplace else ("squares", ratio**2)
        left[kind] -= times * cost  # no number where all is allowed and all was spent: that is not below 0
        short = short or (row["mechanism"] if left[kind] < 0 else "")
    if sum(row["times"] for row in performed if row["mechanism"] == _SHOWN) > _rare(event):
        short = short or _SHOWN
    return Check("releases made", str(paid), f"more by {short}" if short else "no more", not short)


def _rare(event: Any) -> float:
    """How often a value that few records share may be shown."""
    found = 0.0
    for leaf, times in flatten(event).items():
        worst = times * sum(map(_rare, leaf.events)) if type(leaf).__name__ == "WorstOf" else 0
        found += {"RareDisclosure": times, "NonPrivateDpEvent": math.inf}.get(type(leaf).__name__, worst)
    return found


def _points(document: Mapping[str, Any], delta: float) -> list[Check]:
    """The curve and the attacks are asked at the points that every statement has: none is left out."""
    curve = sorted(_delta(point["delta"]) for point in document["curve"])
    rates = [point["false_positive_rate"] for point in document["attack"]]
    wanted, known = sorted({*statement.DELTAS, delta}), [*statement.FALSE_POSITIVE_RATES]
    return [
        Check("points of the curve", str(len(curve)), str(len(wanted)), curve == wanted),
        Check("rates of attacks", str(len(rates)), str(len(known)), rates == known),
    ]


def _parts(document: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Any]]:
    """What was added up, with its events."""
    parts = [(part, _event(part["event"])) for part in document["parts"]]
    check_effort([event for _, event in parts])
    for part, _ in parts:
        own, protects = part["neighboring_relation"], part["protects"]
        if _PROTECTS.get(own) != protects:
            raise ValueError(f"a part protects {protects!r} under {own!r}")
    return parts


def _twice(document: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether a part is counted for an attribute, or for a row of a subject, which it may tell of in two steps."""
    for_attribute = document["protects"] == "sensitive attribute" != part["protects"]
    own = part["neighboring_relation"]
    return bool((for_attribute and own not in _WEAKER[:2]) or (document["protects"] == "record" and own == _BY_NONE))


def _whole(document: Mapping[str, Any], parts: Any, event: Any) -> Check:
    """The parts are the releases of the whole, each under a relation that implies its."""
    whole, wrong = NeighboringRelation(document["neighboring_relation"]), ""
    for part, _ in parts:
        own = NeighboringRelation(part["neighboring_relation"])
        for_attribute = whole == _ATTRIBUTES[0] and own.protects != "sensitive attribute"
        counted = NeighboringRelation(_SUBJECTS[0]) if own == _BY_NONE and whole.protects == "record" else own
        if not (for_attribute or counted.implies(whole)) or not _fits("", part["event"], own).holds:
            wrong = f"one for {own}"
    twice = any(_twice(document, part) for part, _ in parts)  # of that it is the figure that is compared, below
    if not twice and flatten(compose(*(one for _, one in parts))) != flatten(event):
        wrong = "other releases"
    return Check("parts", f"{len(parts)} added up", wrong or "the whole", not wrong)


def _added_up(document: Mapping[str, Any], parts: Any, whole: SecondOpinion) -> list[Check]:
    """The figures of what was added up, and that each public fact which was released is paid for by one of them."""
    checks, opinions, events = [], [], []
    for part, event in parts:
        opinion = whole if len(parts) == 1 else SecondOpinion(event)
        opinions.append(opinion)
        delta, claimed = _delta(part["delta"]), _figure(part["epsilon"], "epsilon")
        true = opinion.epsilon(delta, claimed) if math.isfinite(claimed) else claimed
        if len(parts) > 1:
            checks.append(_at_least(f"{part['label']} alone", claimed, true, f" at δ = {delta:g}"))
        else:
            same = claimed == _figure(document["epsilon"], "epsilon") and delta == _delta(document["delta"])
            checks.append(Check("the only part", f"{claimed:.9g} at δ = {delta:g}", "the whole", same))
        events.append(to_replace_one(event) if _twice(document, part) else event)
    if any(_twice(document, part) for part, _ in parts):
        claimed, delta = _figure(document["epsilon"], "epsilon"), _delta(document["delta"])
        checks.append(_at_least("parts", claimed, SecondOpinion(compose(*events)).epsilon(delta, claimed), ""))
    named: set[str] = set()
    for fact in document["public"]:
        for label, figure, at in _PAID_FOR.findall(fact["consequence"]):
            claimed, delta = float(figure), float(at)
            paid = [o.epsilon(delta, claimed) for (part, _), o in zip(parts, opinions, strict=True)
                    if part["label"] == label]  # fmt: skip
            most = max(paid, default=0.0)
            holds = most >= claimed * (1 - _ROUNDED)
            named.add(label)
            checks += [] if holds else [Check(f"paid for {fact['name']}", f"{claimed:.9g}", f"{most:.9g}", holds)]
    if document["public"] and any(part["label"] == _RELEASE and _RELEASE not in named for part, _ in parts[1:]):
        raise ValueError("a schema was charged, and no public fact says that it was released")
    return checks


def _check_facts(document: Mapping[str, Any]) -> None:
    """What was released says what it cost, and nothing was read that these neighbours keep secret."""
    # of what is added up each part has read what its own neighbours do not differ in
    stated = {document["neighboring_relation"], *(part["neighboring_relation"] for part in document["parts"])}
    for fact in document["public"]:
        if (fact["how"] == "released") != bool(_PAID_FOR.search(fact["consequence"])):
            raise ValueError("a public fact is released where it says what it cost, and only there")
        relations = _READ.get(fact["name"]) if fact["how"] == "read" else None
        if relations and not stated & {*relations}:
            raise ValueError(f"{fact['name']!r} cannot be read where neighbours differ in it")
    told = {fact["name"] for fact in document["public"]}
    absent = sorted({"number of subjects", "ids of the subjects"} - told)
    if stated & {*_OF_SUBJECTS} and (told or document["performed"]) and absent:
        raise ValueError(f"a fit for subjects reads their number and ids, and {absent[0]!r} is no public fact of it")


def _most_found(rate: float, curve: list[tuple[float, float]], mu: float | None) -> float:
    bounds = [1.0]
    if mu is not None:
        bounds.append(float(stats.norm.sf(stats.norm.isf(rate) - mu)))
    for delta, epsilon in curve:
        if epsilon < 700:
            bounds += [math.exp(epsilon) * rate + delta, 1 - math.exp(-epsilon) * (1 - delta - rate)]
    return min(bounds)


def _at_least(figure: str, claimed: float, true: float, at: str) -> Check:
    holds = claimed >= true * (1 - _SLACK) if math.isfinite(true) else math.isinf(claimed)
    return Check(figure + at, f"{claimed:.9g}", f"{true:.9g}", holds)


def _figure(value: Any, name: str, *, most: float = math.inf) -> float:
    number = math.inf if value == "inf" else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= most:
        raise ValueError(f"{name} must be a number that is not negative, got {str(value)[:40]!r}")
    return float(number)


def _delta(value: Any) -> float:
    delta = _figure(value, "delta", most=1.0)
    if delta == 1:
        raise ValueError("delta must be below 1: at 1 everything may be shown")
    return delta


def _event(described: Any) -> Any:
    """The event, every number in it looked at."""
    if not isinstance(described, dict):
        raise ValueError("the event must be an object with a type")
    event = event_from_dict(described)
    check_effort([event])
    for key, entry in (field for node in _nodes(described) for field in node.items()):
        number, whole = (isinstance(entry, kind) and not isinstance(entry, bool) for kind in (float | int, int))
        if number and not entry >= 0 and key != "threshold":
            raise ValueError(f"{key} of an event must not be negative, got {entry!r}")
        if key in ("count", "n_teachers", "num_buckets") and not whole:
            raise ValueError(f"{key} of an event must be a whole number, got {entry!r}")
    return event


# ---- ledgers ---------------------------------------------------------------------------------------------------------
def _on_ledger(ledger: Mapping[str, Any], parts: Any) -> Check:
    """The ledger knows of this fit: what was added up and charged to it, or at least one of them, are its entries. A
    search charges several times in a row under its own name. What is not on it is named: nobody can tell whether it is
    a fit of that name that is on it, and said to be another."""
    entries = [(_of_whom(entry), entry["label"], _event(entry["event"])) for entry in ledger["entries"]]
    found, absent, apart = 0, 0, []
    for part, event in parts:
        if not isinstance(part["on_ledger"], bool):
            raise ValueError("'on_ledger' of a part must be true or false")
        charged = _entries_of(part, flatten(event), entries)
        found += bool(charged)
        absent += part["on_ledger"] and not charged
        apart += [(_of_whom(part), part["label"])] * (not charged and not part["on_ledger"])
        entries = [entry for place, entry in enumerate(entries) if place not in charged]
    other = {entry[:2] for entry in entries} & {*apart}
    said = f"{found} of its entries" + (f", {absent} not" if absent else "")
    said += f"; not on it: {', '.join(repr(label[:40]) for _, label in apart)}" if apart else ""
    said += ", of which it has other fits that this statement does not count" if other else ""
    claim = "in part" if apart else "yes"
    return Check("ledger: this fit is on it", f"{claim}{_named(ledger)}", said, found > 0 and not absent)


def _check_id(ledger: Mapping[str, Any]) -> None:
    """Of earlier versions a ledger has none."""
    if "id" in ledger and not is_identity(ledger["id"]):
        raise ValueError("the id of a ledger is 32 hexadecimal digits")


def _named(ledger: Mapping[str, Any]) -> str:
    """Which ledger a statement or a file is of; without an id nobody can tell."""
    return f", on {str(ledger['id'])[:12]}" if ledger.get("id") else ", on a ledger that it does not name"


def _of_whom(row: Mapping[str, Any]) -> tuple[str, str]:
    """Among which neighbours a part or an entry holds, and whose rows are those of a subject."""
    return row["neighboring_relation"], row.get("rows_of", "")


def _entries_of(part: Mapping[str, Any], event: Any, entries: list[tuple[Any, str, Any]]) -> range:
    """The places of entries that add up to a part: one, or of a search several in a row; none where there are none."""
    for start, (relation, label, _) in enumerate(entries):
        charged: list[Any] = []
        for place in range(start, len(entries)):
            own, name, more = entries[place]
            if own != _of_whom(part) or own != relation or name != label:
                break
            charged.append(more)
            together_so_far = flatten(compose(*charged))
            if together_so_far == event:
                return range(start, place + 1)
            if any(times > event.get(leaf, 0) for leaf, times in together_so_far.items()):
                break
    return range(0)


def _ledger_story(ledger: Mapping[str, Any]) -> list[Check]:
    delta = _delta(ledger["delta"])
    claimed = {(total["protects"], total["neighboring_relation"]): total["epsilon"] for total in ledger["totals"]}
    if len(claimed) < len(ledger["totals"]):
        raise ValueError("the ledger has two totals of one kind")
    ceiling = _figure(ledger["epsilon"], "epsilon")
    most = max((_figure(total, "epsilon") for total in claimed.values()), default=0.0)
    kept = Check("ledger: ceiling", f"{ceiling:.9g}", f"{most:.9g} spent", most <= ceiling)
    return [*_totals(ledger["entries"], delta, ceiling, claimed), kept]


def _totals(entries: Any, delta: float, ceiling: float, claimed: Mapping[Any, Any] | None) -> list[Check]:
    """The composed ε of each kind of guarantee: under the ceiling, and no more than was claimed. Fits for records count
    for attributes too, if there are any; fits for subjects, for records."""
    for entry in entries:
        if _PROTECTS.get(entry["neighboring_relation"]) != entry["protects"]:
            raise ValueError(f"an entry protects {entry['protects']!r} under {entry['neighboring_relation']!r}")
    events: dict[tuple[str, str], list[Any]] = {}
    every: list[Any] = []
    of_a_subject = all(entry["neighboring_relation"] == _ATTRIBUTES[1] for entry in entries)
    attribute = "sensitive attribute", _ATTRIBUTES[of_a_subject]
    promised = {entry["protects"] for entry in entries}
    # A record replaced by any other one includes one that is the same for everybody: the weakest promise of all.
    of_records = [r for r in _WEAKER if r in {entry["neighboring_relation"] for entry in entries}]
    of_subjects = [r for r in _SUBJECTS if r in {entry["neighboring_relation"] for entry in entries}]
    for entry in entries:
        relation, event = entry["neighboring_relation"], _event(entry["event"])
        every.append(event)
        if entry["protects"] == attribute[0]:
            events.setdefault(attribute, []).append(event)
        elif relation not in (*_WEAKER, _BY_NONE):
            events.setdefault((entry["protects"], relation), []).append(event)
        elif "record" in promised:
            one = to_replace_one(event) if relation == _BY_NONE else event
            events.setdefault(("record", (of_records or [relation])[-1]), []).append(one)
        if entry["protects"] == "subject":
            events.setdefault(("subject", of_subjects[-1]), []).append(event)
        if entry["protects"] != attribute[0] and attribute[0] in promised:
            twice = relation not in _WEAKER[:2]
            events.setdefault(attribute, []).append(to_replace_one(event) if twice else event)
    check_effort(every)
    checks = _add_up(entries)
    if claimed is not None:
        same = claimed.keys() == events.keys()
        checks.append(Check("kinds of guarantee on the ledger", str(len(claimed)), str(len(events)), same))
    for kind, parts in events.items():
        opinion = SecondOpinion(compose(*parts))
        name = f"ledger: {len(parts)} fits ({kind[1]})"
        if claimed is None:  # as small as it is proven to be: its reader wants to know what is left
            total, what, found = ceiling, "ceiling", opinion.epsilon(delta)
        else:
            total, what = _figure(claimed.get(kind, 0.0), "epsilon"), "total"
            found = opinion.epsilon(delta, total)
        checks.append(_at_least(f"{name}, {what}", total, found, f" at δ = {delta:g}"))
    return checks


def _add_up(entries: Any) -> list[Check]:
    """Each entry's releases have a proof for its neighbours, and the fits of a kind have one relation in common."""
    said = "ledger: relation of fit {} fits its releases"
    every = (_fits(said.format(n), e["event"], e["neighboring_relation"]) for n, e in enumerate(entries, 1))
    checks = [check for check in every if not check.holds]  # of many fits only those that are refuted are listed
    relations = sorted({e["neighboring_relation"] for e in entries if e["protects"] != "sensitive attribute"})
    if len(relations) > 1 and any(entry["protects"] == "record" for entry in entries):
        common = "add or remove one record" not in relations  # a record replaced by any other implies by a null one
        checks.append(Check("ledger: relations add up", ", ".join(relations), "yes" if common else "no", common))
    for unit in ("subject", "sensitive attribute"):
        of_unit = [e for e in entries if e["protects"] == unit and e["neighboring_relation"] in _OF_SUBJECTS]
        whose = sorted({str(entry.get("rows_of", "")) for entry in of_unit})
        if len(whose) > 1:
            checks.append(Check("ledger: one kind of subjects", ", ".join(map(repr, whose)), "no", holds=False))
    return checks


def _read_ledger(path: Path, data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """Budget and entries of a ledger's file, read as PrivacyLedger reads it, and why that refuses it, if it does."""
    header, *lines = data.removesuffix(b"\n").split(b"\n")
    if b'"skfairdp-ledger-' not in header:
        raise ValueError("it is not a file that PrivacyLedger has written")
    budget = _object(header.decode("utf-8-sig"))
    if budget["format"] != FORMAT:
        raise ValueError(f"the format {str(budget['format'])[:40]!r} is of another version of skfairdp")
    _only(budget, {"format", "epsilon", "delta", "count", "head"} | ({"id"} & {*budget}))
    _check_id(budget)
    wrong = ""
    try:
        known = Chain.empty(_figure(budget["epsilon"], "epsilon"), _delta(budget["delta"]), None)
        lines = LedgerFile(path).parsed(data, known).lines.splitlines()
    except OtherBudgetError:
        wrong = "the header is not as it was written"
    except (LedgerError, ValueError, KeyError, TypeError) as error:
        wrong = " ".join(str(error).split())
    entries = [_object(line.decode()) for line in lines]
    for entry in entries:
        _only(entry, _OF["entries"] | {"index", "hash"})
    return budget, entries, wrong


def _of_this_file(document: Mapping[str, Any], path: Path) -> Check:
    """The ledger that a statement is of is the one in this file, which may have gone on since."""
    story = document["ledger"] or {"entries": []}
    budget, entries, wrong = _read_ledger(path, _bytes_of(path))
    begun = [{name: entry[name] for name in entry.keys() - {"index", "hash"}} for entry in entries]
    if document["ledger"] is None or story.get("id") != budget.get("id"):
        wrong = wrong or f"the file{_named(budget)}"
    same = all(story.get(name) == budget[name] for name in ("epsilon", "delta"))
    if not same or begun[: len(story["entries"])] != story["entries"]:
        wrong = wrong or "other entries in the file"
    more = len(entries) - len(story["entries"])
    since = f"the same, and {more} later {'fit' if more == 1 else 'fits'}" if more else "the same"
    return Check("ledger: that of the file", f"the ledger{_named(story)}", wrong or since, not wrong)


def _object(text: str) -> dict[str, Any]:
    document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_doubles)
    if not isinstance(document, dict):
        raise ValueError("what should be an object is none")
    return document
