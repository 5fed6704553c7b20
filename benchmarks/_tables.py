"""The tables of the benchmark pages: rows of a result as Markdown. The words around them are in pages/*.jinja."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from _scale_goals import GOALS

Record = dict[str, Any]
TITLES = {
    "adult": "Adult, groups by sex",
    "adult-race": "Adult, groups by race (White, Non-White)",
    "bank": "Bank Marketing, groups by age (< 60, ≥ 60)",
    "credit": "Credit default, groups by sex",
    "parkinsons": "Parkinsons telemonitoring, groups by sex",
    "synthetic": "Synthetic, with a known gap of .2",
}
#: The same in the cells of tables.
NAMES = {
    "adult": "Adult by sex",
    "adult-race": "Adult by race",
    "bank": "Bank by age",
    "credit": "Credit by sex",
    "parkinsons": "Parkinsons by sex",
    "synthetic": "Synthetic",
}
DPSGD_METHODS = {
    "plain DP-SGD": "DP-SGD, no parity",
    "public rows": "DP-SGD, parity on public rows",
    "private rows": "DP-SGD, parity on private rows",
}
GAPS = ("auroc", "equalized_odds_disparity", "demographic_disparity", "accuracy")
GAP_NAMES = ("AUROC", "EO gap", "demographic gap", "accuracy")


# ---------------------------------------------------------------- cells


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, words: int = 1) -> str:
    """A table whose first ``words`` columns are aligned to the left and the others to the right."""
    lines = [headers, [*["---"] * words, *["---:"] * (len(headers) - words)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def value(entry: Record, digits: int = 3, times: float = 1) -> str:
    """Mean ± standard error."""
    if entry["mean"] is None:
        return "–"
    mean, error = short(times * entry["mean"], digits), entry["standard_error"]
    return mean if error is None or round(times * error, digits) == 0 else f"{mean} ± {short(times * error, digits)}"


def short(number: float, digits: int = 3) -> str:
    """A number with a fixed number of digits."""
    return f"{number:.{digits}f}"


def many(numbers: Sequence[float]) -> str:
    """A set of numbers in braces."""
    return "{" + ", ".join(f"{number:g}" for number in numbers) + "}"


def mean_and_error(numbers: Sequence[float]) -> Record:
    """Mean and standard error of figures, one a seed."""
    error = statistics.stdev(numbers) / len(numbers) ** 0.5 if len(numbers) > 1 else None
    return {"mean": statistics.fmean(numbers), "standard_error": error}


def cell(row: Record, *figures: str, digits: int = 3) -> str:
    """Figures of a row, each as mean ± standard error, with strokes between."""
    return " / ".join(value(row[figure], digits) for figure in figures)


def across(found: Sequence[Record], heads: Sequence[str], rows: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    """A table with a column for each data set; ``rows`` has the cells by the words that name them."""
    names = [NAMES[record["data"]] for record in found]
    return table([*heads, *names], [[*words, *cells] for words, cells in rows.items()], words=len(heads))


def grid(
    record: Record, words: dict[str, str], column: str, *figures: str, bare: bool = False, head: str = "", **where: Any
) -> str:
    """Rows with these entries, put into a grid: a column for each entry of ``column``; ``bare`` is without errors."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in record["rows"]:
        if all(row[name] == entry for name, entry in where.items()):
            key = tuple(_word(row[name]) for name in words.values())
            text = " / ".join(short(row[name]["mean"]) if bare else value(row[name]) for name in figures)
            rows.setdefault(key, {})[_word(row[column])] = text
    columns = list(dict.fromkeys(name for found in rows.values() for name in found))
    lines = [[*key, *(found.get(name, "–") for name in columns)] for key, found in rows.items()]
    return table([*words, *(f"{head}{name}" for name in columns)], lines, words=len(words))


def _word(entry: Any) -> str:
    return NAMES.get(entry, entry) if isinstance(entry, str) else _optional(entry)


def _optional(number: float | None) -> str:
    return "–" if number is None else f"{number:g}"


def part_of(record: Record, part: str, words: dict[str, str], figures: dict[str, str]) -> str:
    """The rows of one part of a result: columns of words, then of figures; ``worst x`` is the largest x of a seed."""
    rows = []
    for row in record["rows"]:
        if row["part"] != part:
            continue
        named = [row[key] for key in words.values()]
        cells = [_word(entry) for entry in named]
        for key in figures.values():
            name = key.removeprefix("worst ")
            cells.append(value(row[name]) if name == key else short(max(row["by_seed"][name])))
        rows.append(cells)
    return table([*words, *figures], rows, words=len(words))


def kept_without_privacy(record: Record, part: str) -> str:
    """A sentence: in how many cells PF-LD does what its method does without privacy, and closes half of the gap."""
    cells: dict[tuple[str, str], dict[str, Record]] = {}
    for row in record["rows"]:
        if row["part"] == part:
            cells.setdefault((row["data"], row["notion"]), {})[row["method"]] = row

    def mean(cell: dict[str, Record], method: str, name: str) -> float:
        return float(cell[method][name]["mean"])

    near = [
        abs(mean(cell, "PF-LD", name) - mean(cell, "F-LD, no privacy", name)) <= bound
        for cell in cells.values()
        for name, bound in (("accuracy", 0.01), ("gap", 0.02))
    ]
    both = sum(accuracy and gap for accuracy, gap in zip(near[::2], near[1::2], strict=True))
    wide = [cell for cell in cells.values() if mean(cell, "no constraint, no privacy", "gap") > 0.05]
    half = sum(mean(cell, "PF-LD", "gap") <= mean(cell, "no constraint, no privacy", "gap") / 2 for cell in wide)
    return (
        f"In {both} of {len(cells)} cells PF-LD is within 0.01 in accuracy and 0.02 in gap of the same method "
        f"without privacy. Where the gap without a constraint is above 0.05, it closes half of it or more in {half} of "
        f"{len(wide)}."
    )


def crossed_verdict(record: Record) -> str:
    """In words: which methods close half of the gap between four crossed groups and between ten, and at what price."""
    words = []
    for part, number in (("crossed", "four"), ("crossed, ten", "ten")):
        free, exact, *private = (row for row in record["rows"] if row["part"] == part)
        half = free["gap"]["mean"] / 2
        names = [row["method"].split(",")[0] for row in private if row["gap"]["mean"] <= half]
        closed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        points = sorted(100 * (free["accuracy"]["mean"] - row["accuracy"]["mean"]) for row in private)
        left = 100 * (free["accuracy"]["mean"] - exact["accuracy"]["mean"])
        words.append(
            f"Between {number} groups, {closed or 'no method with a private group'} halved the gap at least. Methods "
            f"with a private group cost {points[0]:.1f} to {points[-1]:.1f} % of accuracy (absolute). Without privacy "
            f"the gap goes from {short(free['gap']['mean'])} to {short(exact['gap']['mean'])} for {left:.1f} %."
        )
    return " ".join(words)


def crossed(record: Record) -> str:
    """Accuracy and gap between four crossed groups and between ten."""
    found = {part: [r for r in record["rows"] if r["part"] == part] for part in ("crossed", "crossed, ten")}
    lines = [
        [four["method"], cell(four, "accuracy", "gap"), cell(ten, "accuracy", "gap")]
        for four, ten in zip(*found.values(), strict=True)
    ]
    return table(["method", "four groups", "ten groups"], lines)


def clipping_verdict(record: Record) -> str:
    """In words: what the smallest and the largest clipping bound do, and what the default does, which has none."""
    rows = [row for row in record["rows"] if row["data"] == "adult"]
    bounds = [row for row in rows if row["method"] != "not clipped"]
    free = next(row for row in rows if row["method"] == "not clipped")
    best = max(bounds, key=lambda row: row["accuracy"]["mean"] - row["gap"]["mean"])
    smallest, largest = bounds[0], bounds[-1]

    def told(row: Record) -> str:
        return f"accuracy {value(row['accuracy'])}, gap {value(row['gap'])}"

    def score(row: Record) -> float:
        return float(row["accuracy"]["mean"] - row["gap"]["mean"])

    holds = smallest["gap"]["mean"] > best["gap"]["mean"] and score(largest) < score(best) - 0.02
    near = abs(score(free) - score(best)) <= 0.01
    return (
        f"**{'Survives' if holds else 'Not seen here'}** on Adult by sex: {smallest['method']} {told(smallest)}, "
        f"{best['method']} {told(best)}, {largest['method']} {told(largest)}. The default has no bound to choose: it "
        f"takes the largest norm there is, and is {'as good as' if near else 'not as good as'} the best of these "
        f"({told(free)})."
    )


def generator_price(record: Record, figure: str) -> str:
    """By how many percent fair label rates lower a figure of learners on generated rows, over all ε."""
    found = {(row["method"], row["epsilon"]): row for row in record["rows"] if row["part"] == "generator"}
    free = {epsilon: row for (method, epsilon), row in found.items() if method == "as it is"}
    lost = [100 * (row[figure]["mean"] - found["fair rates", e][figure]["mean"]) for e, row in free.items()]
    return between(lost, " %")


def notion_price(record: Record, method: str, data: Sequence[str], notion: str = "equalized_odds") -> str:
    """How many percent of accuracy a method gives up for a notion, on each of these data sets."""
    found = {(r["data"], r["method"]): r["accuracy"]["mean"] for r in record["rows"] if r.get("notion") == notion}
    return between([100 * (found[name, "no constraint, no privacy"] - found[name, method]) for name in data])


def soft_gain(record: Record, epsilon: float) -> str:
    """By how many percent a student of soft labels is more accurate than one of hard labels, on each data set."""
    rows = [row for row in record["rows"] if row["part"] == "analysis" and row["epsilon"] == epsilon]
    return between([100 * (row["accuracy_soft"]["mean"] - row["accuracy"]["mean"]) for row in rows], " %")


def plain_student_verdict(record: Record) -> str:
    """How often FairPATE's released labels leave the smaller gap, where both have one plain student."""
    rows = [row for row in record["rows"] if row["part"] == "plain"]
    gaps = {(row["method"], row["data"], row["gamma"]): row["disparity"]["mean"] for row in rows}
    settings = [key[1:] for key in gaps if key[0] == "FairPATE"]
    smaller = sum(gaps["FairPATE", *one] < gaps["PATE-S_pre", *one] for one in settings)
    return f"FairPATE has the smaller gap in {smaller} of {len(settings)} settings"


def plain_student_gaps(record: Record) -> str:
    """How wide the gaps are that a plain student of either method leaves on Adult by sex."""
    rows = [row for row in record["rows"] if row["part"] == "plain" and row["data"] == "adult"]
    gaps = {
        name: [row["disparity"]["mean"] for row in rows if row["method"] == name] for name in ("FairPATE", "PATE-S_pre")
    }
    said = [f"{short(min(of))} to {short(max(of))} after {name}" for name, of in gaps.items()]
    return f"On Adult by sex the gap is {' and '.join(said)}."


def network_verdict(record: Record) -> str:
    """In how many cells soft labels have the smaller risk gap and the larger accuracy, where all are networks."""
    rows = [row for row in record["rows"] if row["part"] == "networks"]
    fairer = sum(row["risk_gap_soft"]["mean"] < row["risk_gap"]["mean"] for row in rows)
    better = sum(row["accuracy_soft"]["mean"] > row["accuracy"]["mean"] for row in rows)
    return (
        f"soft labels have the smaller risk gap in {fairer} of {len(rows)} cells, and the higher accuracy in {better}"
    )


def theorem_verdict(record: Record) -> str:
    """Whether measured errors stay below PF-LD's bounds, and where the error of a gradient is smallest."""
    held = sum(
        row[f"{what}_error"]["mean"] <= 1.001 * row[f"{what}_bound"]["mean"]
        for row in record["rows"]
        for what in ("gradient", "violation")
    )
    word = "**Holds**" if held == 2 * len(record["rows"]) else "**In part**"
    return f"{word}: the measured error is within the bound in {held} of {2 * len(record['rows'])} cells."


def exceeding(record: Record) -> str:
    """What share of gradients exceeds the smallest and the largest clipping bound, in either group."""
    clips = sorted({row["clip"] for row in record["rows"]})
    parts = []
    for clip in (clips[0], clips[-1]):
        rows = [row for row in record["rows"] if row["clip"] == clip]
        shares = [100 * row[name]["mean"] for row in rows for name in ("exceed_small", "exceed_large")]
        parts.append(f"{min(shares):.0f} to {max(shares):.0f} % at {clip:g}")
    return " and ".join(parts)


def exceeding_verdict(record: Record) -> str:
    """Whether clipping bounds nearly all gradients where it is small, and few where it is large."""
    rows, clips = record["rows"], sorted({row["clip"] for row in record["rows"]})
    shares = {
        clip: [row[f"exceed_{size}"]["mean"] for row in rows if row["clip"] == clip for size in ("small", "large")]
        for clip in clips
    }
    survives = min(shares[clips[0]]) > 0.5 > max(shares[clips[-1]])
    return f"**{'Survives' if survives else 'Not seen here'}**: {exceeding(record)}"


def teachers_verdict(record: Record) -> str:
    """Importance sampling beside discriminators of one group each: worst cell, and what is learnt from the images."""
    found = {row["method"].removeprefix("gs_wgan, "): row for row in record["rows"]}
    fair, alone = found["fair batches"], found["teachers of one group"]
    learners = list(fair["downstream"])
    better = sum(
        fair["downstream"][name]["accuracy"]["mean"] > alone["downstream"][name]["accuracy"]["mean"]
        for name in learners
    )
    kl, alone_kl = (one["kl"]["mean"] for one in (fair, alone))
    word = "Survives" if kl < alone_kl and 2 * better > len(learners) else "In part"
    return (
        f"**{word}** ({len(record['seeds'])} seeds): with importance sampling the drawn groups are "
        f"{'evener' if kl < alone_kl else 'less even'} (KL {short(kl)} beside {short(alone_kl)}), and {better} of "
        f"{len(learners)} classifiers are more accurate"
    )


#: Kim et al. 2024, Table 5 (Adult, at an ε = 1 that its accounting does not prove): EO gap, demographic gap, AUROC.
PUBLISHED_ADULT = {
    "neither fair nor private": (0.56, 0.58, 0.80),
    "fair only": (0.07, 0.07, 0.75),
    "DP-WGAN": (0.31, 0.30, 0.69),
    "PATE-GAN": (0.19, 0.22, 0.74),
    "RON-Gauss": (0.18, 0.14, 0.70),
    "FFPDG": (0.12, 0.20, 0.75),
    "PFGuard": (0.08, 0.12, 0.76),
}


def published_adult() -> str:
    """The paper's own figures on Adult, every peer by name."""
    lines = [[name, *(f"*{short(figure, 2)}*" for figure in figures)] for name, figures in PUBLISHED_ADULT.items()]
    return table(["published: method", "EO gap", "demographic gap", "AUROC"], lines)


def calibrated(record: Record) -> str:
    """What share of the gap calibration closes, and for how many percent of accuracy, over all settings."""
    free = {row["model"]: row for row in record["rows"] if row["calibration"] is None}
    rows = [(row, free[row["model"]]) for row in record["rows"] if row["calibration"] is not None]
    shares = [100 * (1 - row["disparity"]["mean"] / plain["disparity"]["mean"]) for row, plain in rows]
    prices = [100 * (plain["accuracy"]["mean"] - row["accuracy"]["mean"]) for row, plain in rows]
    models = " and ".join(free)
    return f"{min(shares):.0f} to {max(shares):.0f} % for {between(prices)} % of accuracy (absolute), behind {models}"


def time_ratio(record: Record, side: str, *, published: bool = False) -> str:
    """Time of one fit over that of the plain one, here or as the paper has it."""
    (line,) = (line for line in record["times"]["ratios"] if line["side"] == side)
    return f"{line['published' if published else 'ratio']:.2f}"


def over_parameter(record: Record, over: str, parameter: str, what: str) -> str:
    """A curve of the analysis of PATE on each data set, hard / soft labels."""
    rows = []
    for row in record["rows"]:
        curve = row[f"over_{over}"]
        pairs = zip(curve[what], curve[f"{what}_soft"], strict=True)
        rows.append([NAMES[row["data"]], *(f"{short(hard)} / {short(soft)}" for hard, soft in pairs)])
    numbers = record["rows"][0]["lams" if over == "lam" else "teachers"]
    return table(["data", *(f"{parameter} = {number:g}" for number in numbers)], rows)


# ---------------------------------------------------------------- private and fair models


VOTES = ("soft", "confident", "gnmax")


def utility(found: Sequence[Record], epsilon: float = 1.0, gamma: float = 0.05) -> str:
    """Accuracy and gap of every way to vote at one ε, with a bound on the gap and without, beside no privacy."""
    free = (("exponentiated gradient", gamma), ("logistic regression", None), ("majority class", None))
    at: list[tuple[str, float | None, float | None]]
    at = [(method, epsilon, bound) for bound in (gamma, None) for method in VOTES]
    at += [(method, None, bound) for method, bound in free]
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in found:
        by_key = {(r["method"], r["epsilon"], r["gamma"]): r for r in record["rows"] if r["idp3"] is None}
        for method, budget, bound in at:
            name = method if budget else f"*{method}*"
            words = (name, "none" if bound is None else f"{bound:g}")
            rows.setdefault(words, []).append(cell(by_key[method, budget, bound], "accuracy", "disparity"))
    return across(found, ["voting", "γ"], rows)


def utility_detail(found: Sequence[Record], epsilon: float = 1.0, gamma: float = 0.05) -> str:
    """Soft votes: largest gap of a seed, the EO gap, and what IDP3 changes without a bound on the model."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in found:
        soft = {(r["gamma"], r["idp3"]): r for r in record["rows"] if r["method"] == "soft" and r["epsilon"] == epsilon}
        refused = soft[None, gamma]
        for words, text in (
            (f"gap of the worst seed, γ = {gamma:g}", short(soft[gamma, None]["largest_disparity"])),
            (f"EO gap, γ = {gamma:g}", value(soft[gamma, None]["eo_disparity"])),
            ("EO gap, no bound", value(soft[None, None]["eo_disparity"])),
            (f"IDP3 at {gamma:g}: accuracy / gap", cell(refused, "accuracy", "disparity")),
            (f"IDP3 at {gamma:g}: share of rows answered", value(refused["coverage"])),
        ):
            rows.setdefault((words,), []).append(text)
    return across(found, ["soft votes"], rows)


def volumes(found: Sequence[Record]) -> str:
    """Hypervolumes, times 1000: a row a method and ε, a column a data set."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in found:
        for row in record["hypervolumes"]:
            words = (row["method"], f"{row['epsilon']:g}")
            rows.setdefault(words, []).append(value(row["hypervolume"], 2, 1000))
    return across(found, ["voting", "ε"], dict(sorted(rows.items(), key=lambda row: float(row[0][1]))))


def no_public_rows(record: Record, epsilon: float = 1.0) -> str:
    """At one ε a row for each method and γ, with public rows and without: accuracy and gap on each data set."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in record["rows"]:
        if row["epsilon"] == epsilon:
            words = (row["method"], _optional(row["gamma"]), "5 %" if row["rows"] == "public" else "none")
            rows.setdefault(words, {})[row["data"]] = cell(row, "accuracy", "disparity")
    data = [name for name in NAMES if any(name in found for found in rows.values())]
    order = list(dict.fromkeys(words[:2] for words in rows))
    found = sorted(rows.items(), key=lambda row: order.index(row[0][:2]))
    lines = [[*words, *(cells[name] for name in data)] for words, cells in found]
    return table(["method", "γ", "public rows", *(NAMES[name] for name in data)], lines, words=3)


def fair_dpsgd(
    found: Sequence[Record], *figures: str, idp3: float | None = None, lams: Sequence[float | None] = ()
) -> str:
    """FairDP-SGD and its peers at every λ, or at these: figures with a column for each data set."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in found:
        for row in record["rows"]:
            if row["idp3"] == idp3 and (not lams or row["gamma"] in lams):
                words = (DPSGD_METHODS.get(row["method"], row["method"]), _optional(row["gamma"]))
                rows.setdefault(words, []).append(cell(row, *figures))
    return across(found, ["method", "λ"], rows)


def best_under(record: Record, gap: float, epsilon: float = 1.0) -> Record:
    """For each method the most accurate row whose mean gap is at most ``gap``, every row answered."""
    found: Record = {}
    for row in record["rows"]:
        if row["epsilon"] != epsilon or row["idp3"] is not None or row["disparity"]["mean"] > gap:
            continue
        best = found.get(row["method"])
        if best is None or row["accuracy"]["mean"] > best["accuracy"]["mean"]:
            found[row["method"]] = row
    return found


def best_table(found: Sequence[Record], gap: float) -> str:
    """Accuracy and gap of the most accurate setting of each method within a gap; a column for each data set."""
    best = [best_under(record, gap) for record in found]
    methods = dict.fromkeys(row["method"] for record in found for row in record["rows"])
    rows = {
        (DPSGD_METHODS.get(method, method),): [
            cell(one[method], "accuracy", "disparity") if method in one else "–" for one in best
        ]
        for method in methods
    }
    return across(found, ["method"], rows)


def between(numbers: Sequence[float], unit: str = "") -> str:
    """The range of numbers in words, with signs where they differ in sign."""
    low, high = (round(number, 1) + 0.0 for number in (min(numbers), max(numbers)))
    form = "+.1f" if low < 0 < high else ".1f"
    said = format(low, form) if low == high else f"{low:{form}} to {high:{form}}"
    return said.replace("-", "−") + unit


def points_apart(
    ours: Sequence[Record], method: str, theirs: Sequence[Record], other: str, gap: float = 0.05
) -> list[float]:
    """Points of accuracy between two methods, each at its best within a gap at ε = 1, for each data set of both."""
    found = []
    records = {record["data"]: record for record in theirs}
    for record in ours:
        rows = records.get(record["data"], {"rows": []})["rows"]
        free = [
            row for row in rows if row["epsilon"] is None and row["idp3"] is None and row["disparity"]["mean"] <= gap
        ]
        best = {**best_under({"rows": rows}, gap), **{row["method"]: row for row in free}}
        mine = best_under(record, gap)
        if method in mine and other in best:
            found.append(100 * (mine[method]["accuracy"]["mean"] - best[other]["accuracy"]["mean"]))
    return found


def ahead_of_votes(dpsgd: Sequence[Record], votes: Sequence[Record]) -> str:
    """The verdict on FairPATE beside FairDP-SGD, from the figures."""
    apart = points_apart(dpsgd, "private rows", votes, "soft")
    said = f"within a gap of .05 {{doc}}`dpsgd` has an accuracy higher by {between(apart)} % (absolute) at ε = 1"
    verdict = "does not" if min(apart) > 0 else "survives in part" if max(apart) > 0 else "survives"
    return f"Its claim to be ahead of FairDP-SGD {verdict}: {said}."


def soft_ahead(found: Sequence[Record]) -> str:
    """How often soft votes have the largest hypervolume."""
    best = []
    for record in found:
        for epsilon in {row["epsilon"] for row in record["hypervolumes"]}:
            volumes = {
                row["method"]: row["hypervolume"]["mean"] for row in record["hypervolumes"] if row["epsilon"] == epsilon
            }
            best.append(max(volumes, key=lambda name: volumes[name]) == "soft")
    return f"{sum(best)} of {len(best)}"


def gap_closed(found: Sequence[Record], method: str, lam: float = 0.5) -> str:
    """What share of plain DP-SGD's gap a method closes at ε = 1, and for how many percent of accuracy."""
    shares, prices = [], []
    for record in found:
        rows = {
            (row["method"], row["gamma"]): row
            for row in record["rows"]
            if row["epsilon"] == 1.0 and row["idp3"] is None
        }
        plain, fair = rows["plain DP-SGD", 0.0], rows[method, lam]
        shares.append(100 * (1 - fair["disparity"]["mean"] / plain["disparity"]["mean"]))
        prices.append(100 * (plain["accuracy"]["mean"] - fair["accuracy"]["mean"]))
    return (
        f"{min(shares):.0f} to {max(shares):.0f} % of the gap of DP-SGD, for {between(prices)} % of accuracy (absolute)"
    )


def calibrator(record: Record) -> str:
    """Models before and after the calibrator."""
    rows = [
        [
            row["model"],
            f"`{row['calibration']}`" if row["calibration"] else "none",
            _optional(row["gap_weight"]),
            _optional(row["gamma"]),
            *(value(row[name]) for name in ("public_disparity", "disparity", "accuracy")),
        ]
        for row in record["rows"]
    ]
    return table(["model", "calibration", "gap weight", "γ", "public gap", "gap", "accuracy"], rows, words=2)


def color_mnist(record: Record) -> str:
    """The paper's Table 1 beside ours."""
    rows = []
    for row in record["table"]:
        paper = row["published"]
        published = (("disparity", 2), ("accuracy", 3), ("coverage", 2))
        rows.append(
            [
                f"{row['setting']}: {row['method']}",
                f"{row['epsilon_certified']:.2f}",
                f"{paper['epsilon']:g}" if paper["epsilon_holds"] else f"*{paper['epsilon']:g}*",
                row["choice"] or "–",
                _optional(row["idp3"]),
                *(value(row[name]) for name in ("disparity", "accuracy", "coverage")),
                " / ".join(short(paper[name], digits) for name, digits in published),
            ]
        )
    last = "published gap / accuracy / coverage"
    headers = ["setting: method", "ε", "published ε", "chosen", "IDP3 γ", "gap", "accuracy", "coverage", last]
    return table(headers, rows)


def color_mnist_times(record: Record) -> str:
    """Time of one fit over that of the plain one."""
    return table(
        ["fit", "ratio", "published"],
        [
            [f"{line['side']} over {line['plain']}", short(line["ratio"], 2), _optional(line["published"])]
            for line in record["times"]["ratios"]
        ],
    )


# ---------------------------------------------------------------- the group alone


def pfld(found: Sequence[Record], epsilon: float = 0.5, gap: float = 0.05) -> str:
    """For each method and data set the most accurate setting within a gap or, where none is, the one of least gap."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in found:
        for method, budget in (*((name, epsilon) for name in PRIVATE_GROUP), ("F-LD", None), ("Zafar", None)):
            here = [row for row in record["rows"] if (row["method"], row["epsilon"]) == (method, budget)]
            within = [row for row in here if row["disparity"]["mean"] <= gap]
            best = (
                max(within, key=lambda row: row["accuracy"]["mean"])
                if within
                else min(here, key=lambda row: row["disparity"]["mean"])
            )
            name = method if budget else f"*{method}*"
            rows.setdefault((name,), []).append(cell(best, "accuracy", "disparity"))
    return across(found, ["method"], rows)


PRIVATE_GROUP = ("PF-LD", "debiased randomised response", "model M")


def pfld_leads(found: Sequence[Record]) -> str:
    """Hypervolumes times 1000, and how far PF-LD is ahead of each peer on the same split."""
    rows = []
    for record in found:
        by_method = {(row["method"], row["epsilon"]): row for row in record["hypervolumes"]}
        free = [short(1000 * by_method[name, None]["hypervolume"]["mean"], 2) for name in ("F-LD", "Zafar")]
        for epsilon in sorted({epsilon for _, epsilon in by_method if epsilon is not None}):
            ours = by_method["PF-LD", epsilon]
            line = [NAMES[record["data"]], f"{epsilon:g}", value(ours["hypervolume"], 2, 1000)]
            for peer in PRIVATE_GROUP[1:]:
                theirs = by_method[peer, epsilon]
                ahead = mean_and_error([a - b for a, b in zip(ours["by_seed"], theirs["by_seed"], strict=True)])
                line += [short(1000 * theirs["hypervolume"]["mean"], 2), value(ahead, 2, 1000)]
            rows.append([*line, *free])
    heads = ["data", "ε", "PF-LD", *(name for peer in PRIVATE_GROUP[1:] for name in (peer, "ahead"))]
    return table([*heads, "F-LD (no privacy)", "Zafar (no privacy)"], rows)


def pfld_ablation(record: Record) -> str:
    """One choice of PF-LD changed at a time."""
    rows = [
        [
            row["method"],
            *(value(row[name]) for name in ("accuracy", "disparity")),
            value(row["hypervolume"], 2, 1000),
            f"{row['seconds']['mean']:.1f}",
        ]
        for row in record["rows"]
    ]
    return table(["variant", "accuracy", "gap", "hypervolume", "seconds"], rows)


# ---------------------------------------------------------------- synthetic rows


#: Ways to draw that the page shows: the default, what it changes, equal rates, and no generator at all.
DRAWN = ("marginals (default)", "marginals, as it is", "marginals, fair rates", "real rows")


def pfguard(record: Record) -> str:
    """What two classifiers learn from synthetic rows, by the way they are drawn, beside real rows."""
    rows = [
        [method, row["learner"], *(value(row[name]) for name in GAPS)]
        for method in DRAWN
        for row in record["rows"]
        if row["method"] == method and "reduction" not in row["learner"]
    ]
    return table(["trained on", "classifier", *GAP_NAMES], rows, words=2)


def ensembles(record: Record) -> str:
    """AUROC and EO gap of what is learnt from the paper's ensembles of networks."""
    names = ("gs_wgan", "pate_gan", "g_pate", "datalens")
    found = {(row["method"], row["learner"]): row for row in record["rows"]}
    learners = ("logistic regression", "boosted trees")
    lines = [
        [method, *(cell(found[method, learner], "auroc", "equalized_odds_disparity") for learner in learners)]
        for name in names
        for method in (name, f"{name}, as it is")
    ]
    return table(["generator", *learners], lines)


def default_rows(record: Record) -> list[Record]:
    """The rows of the default generator, under its name; of a result older than the default those with fair rates."""
    new = any(row["method"] == "marginals (default)" for row in record["rows"])
    method, name = ("marginals (default)", "default") if new else ("marginals, fair rates", "fair rates")
    found = [row for row in record["rows"] if row["method"] == method and "reduction" not in row["learner"]]
    return [{**row, "method": f"PFGuardGenerator, {name}"} for row in found]


def reductions(found: Sequence[Record]) -> str:
    """Gaps on real rows of reductions that are trained on rows as they are drawn, and on real rows."""
    heads = {"demographic parity": "demographic_disparity", "equalized odds": "equalized_odds_disparity"}
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in found:
        by_key = {(row["method"], row["learner"]): row for row in record["rows"]}
        for method in ("marginals, as it is", "real rows"):
            for notion, figure in heads.items():
                row = by_key[method, f"reduction, {notion}"]
                rows.setdefault((method, notion), []).append(value(row[figure]))
    return across(found, ["trained on", "reduction for"], rows)


def auroc_below_real(record: Record) -> str:
    """By how many percent of AUROC logistic regression on rows of the default generator is below real rows."""
    found = [row for row in [*record["rows"], *default_rows(record)] if row["learner"] == "logistic regression"]
    auroc = {row["method"].split(",")[0]: row["auroc"]["mean"] for row in found}
    return between([100 * (auroc["real rows"] - auroc["PFGuardGenerator"])])


def pfguard_defaults(found: Sequence[Record]) -> str:
    """The default generator on every data set."""
    rows = [
        [NAMES[record["data"]], row["learner"], *(value(row[name]) for name in GAPS)]
        for record in found
        for row in default_rows(record)
    ]
    return table(["data", "classifier", *GAP_NAMES], rows, words=2)


def pfguard_baselines(pairs: Sequence[tuple[Record, Record]]) -> str:
    """The default generator beside private classifiers; pairs of its result and theirs."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for ours, theirs in pairs:
        for row in [*default_rows(ours), *theirs["rows"]]:
            name = f"{row['method']}, {row['learner']}" if "default" in row["method"] else row["method"]
            rows.setdefault((name,), []).append(cell(row, "auroc", "equalized_odds_disparity"))
    return across([ours for ours, _ in pairs], ["trained on, or by"], rows)


def pfguard_peers(ours: Record, theirs: Record, learner: str = "logistic regression") -> str:
    """The default generator beside the generators of dpmm."""
    rows = [
        [row["method"], *(value(row[m]) for m in GAPS), f"{row['fit_seconds']['mean']:.1f}"]
        for row in [*default_rows(ours), *theirs["rows"]]
        if row["learner"] == learner
    ]
    return table(["method", *GAP_NAMES, "fit, s"], rows)


def dominated(ours: Record, theirs: Record) -> str:
    """Which peers are, by their means, at least as good as the default generator in AUROC and in both gaps."""

    def better(one: Record, other: Record) -> bool:
        return one["auroc"]["mean"] >= other["auroc"]["mean"] and all(
            one[gap]["mean"] <= other[gap]["mean"] for gap in ("equalized_odds_disparity", "demographic_disparity")
        )

    pairs = [(a, b) for a in default_rows(ours) for b in theirs["rows"] if a["learner"] == b["learner"]]
    above = [f"{peer['method']} ({peer['learner']})" for own, peer in pairs if better(peer, own)]
    below = [f"{peer['method']} ({peer['learner']})" for own, peer in pairs if better(own, peer)]
    said = f"The default is dominated by {'; '.join(above)}." if above else "No peer here dominates the default."
    return f"{said} It dominates {'; '.join(below)}." if below else said


def rare_class(rows: Sequence[Record], rare: int) -> str:
    """A digit of which fewer and fewer are left: its recall and the accuracy, drawn evenly and as it is."""
    found: dict[str, dict[str, Record]] = {}
    for row in rows:
        found.setdefault(f"{row['level']}", {})[row["method"]] = row
    ways = list(found[next(iter(found))])
    lines = [
        [
            level,
            f"{here[ways[0]]['n_rare']['mean']:,.0f}",
            *(cell(here[way], "recall_of_rare", "accuracy") for way in ways),
        ]
        for level, here in found.items()
    ]
    return table(["one in", f"private {rare}s", *(f"{way}: recall of {rare} / accuracy" for way in ways)], lines)


#: Kim et al. (2024), at 28 x 28 with 1000 discriminators, by their accounting (Tables 1, 3, 7 and 8): ε, KL,
#: FID, FID of the worst cell.
PUBLISHED_IMAGES = {
    "gs_wgan, as it is": ("> 300", "0.177", "77.97", "155.20"),
    "gs_wgan, fair batches": ("> 300", "0.067", "83.67", "149.47"),
    "gs_wgan, stratified batches": ("> 300", "0.090", "135.35", "–"),
    "gs_wgan, groups unknown": ("> 300", "0.004", "89.43", "157.80"),
    "gs_wgan, groups unknown, GOLD": ("> 300", "0.090", "100.39", "–"),
    "gs_wgan, reweighting": ("> 300", "0.009", "106.94", "178.18"),
    "gs_wgan, groups unknown, reweighting": ("> 300", "0.013", "106.94", "178.18"),
    "gs_wgan, DP-SGD-F": ("> 300", "0.659", "90.20", "–"),
    "gs_wgan, Global-Adapt": ("> 300", "0.693", "127.02", "–"),
    "gs_wgan, fair only": ("none", "0.021", "38.62", "75.46"),
    "gs_wgan, neither fair nor private": ("none", "0.229", "31.95", "63.50"),
    "g_pate, as it is": ("10, claimed", "0.305", "176.03", "187.37"),
    "g_pate, fair batches": ("10, claimed", "0.206", "166.89", "185.92"),
    "datalens, as it is": ("10, claimed", "0.220", "192.29", "207.12"),
    "datalens, fair batches": ("10, claimed", "0.161", "200.23", "209.74"),
}
#: Table 2: accuracy and EO gap of a perceptron, then of a convolutional network.
PUBLISHED_DOWNSTREAM = {
    "gs_wgan, as it is": ("0.910", "0.153", "0.927", "0.172"),
    "gs_wgan, fair batches": ("0.900", "0.067", "0.927", "0.063"),
    "g_pate, as it is": ("0.896", "0.166", "0.888", "0.256"),
    "g_pate, fair batches": ("0.906", "0.085", "0.898", "0.084"),
    "datalens, as it is": ("0.867", "0.226", "0.893", "0.238"),
    "datalens, fair batches": ("0.859", "0.169", "0.898", "0.141"),
}


def images(record: Record) -> str:
    """Sizes and quality of generated images, with the paper's figures in italics."""
    rows = []
    for row in record["rows"]:
        published = PUBLISHED_IMAGES.get(row["method"])
        means = [row[name]["mean"] for name in ("frechet", "frechet_as_drawn", "frechet_worst")]
        distances = " / ".join("–" if mean is None else short(mean, 2) for mean in means)
        cells = (
            [f"*{published[0]}*", f"*{published[1]}*", f"*{published[2]} / {published[3]}*"] if published else ["–"] * 3
        )
        epsilon = row["epsilon_certified"]
        rows.append([row["method"], f"{epsilon:.0f}" if epsilon < 1e5 else "none", value(row["kl"]), distances, *cells])
    heads = ["method", "ε", "KL", "Fréchet: even / as drawn / worst cell"]
    return table([*heads, "*published ε*", "*KL*", "*FID: all / worst cell*"], rows)


def downstream(record: Record) -> str:
    """What is learnt from generated images, with the paper's figures in italics."""
    learners, rows = ("perceptron", "convolutional network"), []
    for row in record["rows"]:
        found = [row["downstream"][learner] for learner in learners]
        published = PUBLISHED_DOWNSTREAM.get(row["method"])
        theirs = [f"*{' / '.join(part)}*" for part in (published[:2], published[2:])] if published else ["–"] * 2
        cells = [cell(one, "accuracy", "equalized_odds_disparity") for one in found]
        rows.append([row["method"], *cells, *theirs])
    return table(["method", *learners, *(f"*published, {learner}*" for learner in learners)], rows)


def balancing(record: Record, backend: str, fair: str) -> str:
    """What balancing does to sizes and to distances."""
    by_name = {row["method"]: row for row in record["rows"]}

    def ratio(name: str) -> str:
        return f"{by_name[f'{backend}, {fair}'][name]['mean'] / by_name[f'{backend}, as it is'][name]['mean']:.2f}"

    return (
        f"`{backend}`: disparity {ratio('distribution_disparity')} times, Fréchet distance {ratio('frechet')} times "
        f"from even test images and {ratio('frechet_as_drawn')} times from the test images as they are"
    )


# ---------------------------------------------------------------- speed


def teachers(record: Record) -> str:
    """Batched teachers against the loops that a user would write."""
    rows = [
        [
            row["work"],
            row["against"],
            row["teachers"],
            f"{row['seconds']:.2f}",
            f"{'~' if row['against_scaled_linearly'] else ''}{row['against_seconds']:.2f}",
            f"{row['ratio']:.2f}",
        ]
        for row in record["rows"]
    ]
    return table(["work", "against", "teachers", "seconds", "their seconds", "ratio"], rows, words=2)


def figures(rows: Sequence[Record], **columns: tuple[str, str]) -> str:
    """Any rows as they are; ``columns`` maps a key to its heading and its format."""
    return table(
        [heading for heading, _ in columns.values()],
        [[format(row[key], form) for key, (_, form) in columns.items()] for row in rows],
    )


def times_by_rows(rows: Sequence[Record], name: str, seconds: str) -> str:
    """A line for each kind of fit and a column for each number of rows that is a power of ten: seconds / GiB."""
    sizes = sorted({row["n_rows"] for row in rows if str(row["n_rows"]).strip("0") == "1"})
    cells = {(row[name], row["n_rows"]): f"{row[seconds]:.1f}\u00a0/\u00a0{row['gib_peak']:.1f}" for row in rows}
    lines = [
        [fit, *(cells.get((fit, size), "–") for size in sizes)] for fit in dict.fromkeys(row[name] for row in rows)
    ]
    return table([name, *(f"{size:,} rows" for size in sizes)], lines)


def counted(words: Sequence[str]) -> str:
    """How often each word came, the most frequent first."""
    return ", ".join(f'"{word}" in {n} of {len(words)}' for word, n in Counter(words).most_common())


def from_files(record: Record) -> list[Record]:
    """The fits that read files, on one machine."""
    works = [goal.work for goal in GOALS.values() if goal.reads_files and goal.ratio is None]
    return [row for row in record["rows"] if row["work"] in works]


def scale(record: Record) -> str:
    """Work on large tables, and what it took."""
    lines = []
    for goal in GOALS.values():
        for row in [row for row in record["rows"] if row["work"] == goal.work]:
            time = f"{row['ratio']:.2f}×" if "ratio" in row else f"{row['seconds']:.1f}"
            lines.append([goal.work, f"{row['n_rows']:,}" if goal.rows else "–", time, f"{row['gib_peak']:.2f}"])
    return table(["work", "private rows", "seconds, or ratio", "GiB peak"], lines)


def group_by_verdict(record: Record) -> str:
    """How long our counts take beside the quicker engine's."""
    engine, ours = min(((row["engine"], 1 / row["ratio"]) for row in record["rows"][1:]), key=lambda pair: -pair[1])
    return f"Ours takes {short(ours, 2)} of the time of {engine}, the quicker engine, at this number of rows."


def dpsgd_steps(record: Record) -> str:
    """Milliseconds of each kind of step, and how many times as long it takes as a plain step and as Opacus' steps."""
    rows = []
    for name, seconds in record["seconds_per_step"].items():
        over = [record["ratios"].get(f"{name} over {other}") for other in ("plain", "opacus hooks", "opacus ghost")]
        rows.append([name, f"{1000 * seconds:.1f}", *("–" if ratio is None else f"{ratio:.2f}" for ratio in over)])
    return table(["step", "milliseconds", "over plain", "over opacus hooks", "over opacus ghost"], rows)


def pfld_speed(record: Record, groups: int = 2) -> str:
    """Epochs of PF-LD over plain epochs, for so many groups."""
    names = [name for name in record["rows"][0]["ratios"] if name != "plain"]
    rows = [
        [
            row["layers"],
            row["batch_size"],
            f"{row['seconds']['plain']:.2f}",
            *(f"{row['ratios'][name]:.2f}" for name in names),
            *(f"{ratio:.1f}" for ratio in row["paper"].values()),
        ]
        for row in record["rows"]
        if row["groups"] == groups
    ]
    return table(["layers", "batch", "plain, s", *names, "paper: F-LD", "paper: PF-LD"], rows)


def pfld_reduction(record: Record) -> str:
    """PF-LD over a reduction along one multiplier: seconds, and what comes of it."""
    ours, other = (name for name in record["rows"][0] if name in ("PF-LD", "reduction on debiased groups"))
    rows = [
        [
            row["data"],
            f"{row['n_rows']:,}",
            f"{row['ratio']:.1f}",
            *(value(row[method][name]) for method in (ours, other) for name in ("accuracy", "gap")),
        ]
        for row in record["rows"]
    ]
    headers = ["data", "rows", "ratio", "PF-LD: accuracy", "gap", "reduction: accuracy", "gap"]
    return table(headers, rows)


def pfguard_speed(record: Record) -> str:
    """The generator's large sample, one step of its networks, and what fair batches cost."""
    one = record["large_sample"]
    return table(
        ["work", "figure"],
        [
            [f"`marginals`: fit {one['n_rows']:,} rows", f"{one['fit_seconds']:.2f} s"],
            [f"`marginals`: sample {one['n_sampled']:,} rows", f"{one['sample_seconds']:.1f} s"],
            ["peak memory of both", f"{one['bytes_peak'] / 2**30:.2f} GiB"],
            ["step of ten discriminators: Python loop over stack", f"{record['step']['ratio']:.1f}×"],
            ["`pate_gan` fit, fair batches over plain ones", f"{record['overhead']['ratio']:.3f}×"],
        ],
    )


def idp3(record: Record) -> str:
    """Decisions a second of the gate and of IDP3."""
    rates = record["decisions_per_second"]
    engines = [engine for engine in ("python", "numba") if f"gate_{engine}" in rates[0]]
    rows = [
        [
            f"{row['groups']} × {row['classes']}",
            row["stream"],
            value(row["coverage"]),
            *(f"{row[f'gate_{engine}']['mean']:,.0f}" for engine in engines),
            f"{row['idp3']['mean']:,.0f}",
        ]
        for row in rates
    ]
    headers = ["groups × classes", "stream", "coverage", *(f"gate, {engine}" for engine in engines), "IDP3"]
    return table(headers, rows, words=2)


def data_dependent(record: Record) -> str:
    """How many times as fast the vectorised bound is as loops."""
    rows = [
        [case["n_classes"], side, f"{faster['votes_to_bound']:.0f}×", f"{faster['bound_alone']:.0f}×"]
        for case in record["cases"]
        for side, faster in case["times_as_fast"].items()
        if side != "skfairdp"
    ]
    return table(["classes", "against", "votes to bound", "bound alone"], rows, words=2)


def calibration(record: Record) -> str:
    """Seconds from ε to a certified plan."""
    rows = [
        [
            row["voting"],
            row["noise"].replace("_", " "),
            row["accounting"],
            f"{row['median_seconds']:.3f}",
            f"{row['slowest']['seconds']:.3f}",
            short(row["least_share_of_epsilon_used"], 4),
        ]
        for row in record["rows"]
    ]
    return table(["voting", "noise", "accounting", "median", "slowest", "ε used"], rows, words=3)


# ---------------------------------------------------------------- audits


def audit_ratio(record: Record) -> str:
    """Proven over certified ε, and at the largest ε what the attack could prove at most and without assumptions."""
    epsilons, cells = _cells(record)
    last = epsilons[-1]
    lines = []
    for method in dict.fromkeys(row["method"] for row in record["rows"]):
        ratios = [short(cells[method, e]["ratio"], 2) for e in epsilons]
        limits = [_share(cells[method, last], name) for name in ("epsilon_pair", "epsilon_lower_free")]
        lines.append([method, *ratios, *limits, cells[method, epsilons[0]]["assumes"]])
    heads = [*(f"ε = {epsilon:g}" for epsilon in epsilons), *(f"{word}, ε = {last:g}" for word in ("pair", "free"))]
    return table(["method", *heads, "assumes"], lines)


def _cells(record: Record) -> tuple[list[float], Record]:
    epsilons = list(dict.fromkeys(row["epsilon"] for row in record["rows"]))
    return epsilons, {(row["method"], row["epsilon"]): row for row in record["rows"]}


def _share(row: Record, name: str) -> str:
    return "–" if row[name] is None else short(row[name] / row["epsilon_certified"], 2)


def audit_one_fit(record: Record) -> str:
    """Lower bounds from one fit with many canaries."""
    rows = [
        [
            f"{row['epsilon_certified']:.3f}",
            *(f"{row['epsilon_lower'][name]:.3f}" for name in ("steinke", "f_dp", "gaussian")),
            short(row["epsilon_lower"]["gaussian"] / row["epsilon_certified"], 2),
        ]
        for row in record["one_fit"]
    ]
    return table(["ε certified", "one run", "f-DP", "Gaussian", "ratio of the last"], rows)


def audited(record: Record) -> str:
    """Whole fits, again and again."""
    rows = [
        [
            row["estimator"],
            f"{row['epsilon_lower']:.3f}",
            short(row["ratio"], 2),
            f"{row['epsilon_lower_distribution_free']:.3f}",
            row["statistic"],
        ]
        for row in record["rows"]
    ]
    return table(["estimator", "at least", "ratio", "distribution-free", "statistic"], rows)


def audited_dpsgd(record: Record) -> str:
    """Whole fits of private SGD."""
    rows = [
        [
            row["estimator"],
            row["steps"],
            row["batch"],
            f"{row['epsilon_certified']:.3f}",
            f"{row['epsilon_lower']:.3f}",
            short(row["ratio"], 2),
            f"{row['epsilon_lower_distribution_free']:.3f}",
        ]
        for row in record["rows"]
    ]
    headers = ["training", "steps", "rows in a batch", "ε certified", "at least", "ratio", "distribution-free"]
    return table(headers, rows)


def audited_one_run(record: Record) -> str:
    """One fit of private SGD with many canaries: proven over certified ε."""
    sizes = sorted({row["n_canaries"] for row in record["one_run"]})
    found = {(round(row["epsilon_certified"], 2), row["n_canaries"]): row for row in record["one_run"]}
    lines = [
        [f"{epsilon:g}", *(short(found[epsilon, n]["ratio"], 2) for n in sizes)]
        for epsilon in sorted({epsilon for epsilon, _ in found})
    ]
    return table(["ε certified", *(f"ratio, {n:,} canaries" for n in sizes)], lines)


# ---------------------------------------------------------------- the arena

ROWS = {"none": "no public rows", "public": "unlabelled public rows"}
SEES = {"blind": "group not read", "aware": "group read"}
SEES_GROUP = {"blind": "no", "aware": "yes"}


def arena(record: Record, epsilon: float = 1.0) -> str:
    """One row a competition: the best of ours and the best rival at one ε, and at each ε by how much ours is ahead."""
    found = {(one["data"], one["rows"], one["sees"], one["epsilon"]): one for one in record["competitions"]}
    epsilons = sorted({one["epsilon"] for one in record["competitions"]})
    lines = []
    for data, rows, sees in dict.fromkeys(key[:3] for key in found):
        one = found[data, rows, sees, epsilon]
        best = [next(r["method"] for r in one["ranking"] if r["kind"] == kind) for kind in ("ours", "glue")]
        apart = [signed(found[data, rows, sees, at]["ahead_by"]) for at in epsilons]
        lines.append([NAMES.get(data, data), rows, SEES_GROUP[sees], *best, *apart])
    heads = ["data", "public rows", "group read", f"best of ours, ε = {epsilon:g}", f"best rival, ε = {epsilon:g}"]
    return table([*heads, *(f"ahead by, ε = {at:g}" for at in epsilons)], lines, words=5)


def arena_single(record: Record) -> str:
    """One row an estimator of ours: how often it is level or ahead, and where it is furthest behind."""
    lines = []
    for row in record["single"]:
        level = f"{row['not_below']} of {row['competitions']}"
        asked = record["bounds"][row["method"]]
        held = f"{asked['fits'] - asked['broken']} of {asked['fits']}"
        told = f"{asked['told']} of {asked['broken']}" if asked["broken"] else "–"
        lines.append([row["method"], level, signed(row["worst"]), _competition(row["worst_where"]), held, told])
    header = ["estimator", "level or ahead", "furthest behind", "where", "bound held", "broken bounds told"]
    return table(header, lines)


def _competition(where: Record) -> str:
    data = NAMES.get(where["data"], where["data"])
    return f"{data}, ε = {where['epsilon']:g}, {ROWS[where['rows']]}, {SEES[where['sees']]}"


def arena_goals(record: Record) -> str:
    """One row an expectation: in how many places it holds, and every place where it does not."""
    places: dict[str, list[Record]] = {}
    for row in record["goals"]:
        places.setdefault(row["goal"], []).append(row)
    lines = []
    for goal, rows in places.items():
        missed = [row for row in rows if not row["met"]]
        far = [row["missing"] for row in missed if row["missing"] is not None]
        unfair = sum(row["missing"] is None for row in missed)
        lines.append(
            [
                goal.replace("auroc", "AUROC"),
                f"{len(rows) - len(missed)} of {len(rows)}",
                f"at most {short(max(far))}" if far else "–",
                str(unfair or "–"),
                _missed(missed) or "–",
            ]
        )
    lines.sort(key=lambda line: line[-1] == "–")
    return table(["expectation", "holds in", "falls short by", "no setting within the gap", "fails at"], lines)


def _missed(rows: Sequence[Record]) -> str:
    """Places of expectations that fail: data, public rows, and each ε."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["data"], row["rows"]), []).append(row["epsilon"])
    return "; ".join(
        f"{NAMES.get(data, data)}{', public rows' if kind == 'public' else ''} (ε = {_listed(_sorted(epsilons))})"
        for (data, kind), epsilons in found.items()
    )


def _sorted(epsilons: Iterable[float]) -> list[str]:
    return [f"{epsilon:g}" for epsilon in sorted(epsilons)]


def arena_verdict(record: Record) -> str:
    """Who is ahead, in words."""
    found = record["competitions"]
    seeds = len(record["seeds"])
    ahead = [one for one in found if one["ahead_by"]["mean"] > 0]
    words = [f"In {len(ahead)} of {len(found)} competitions the best of ours has the larger hypervolume."]
    if seeds > 1:
        clearly = sum(one["ahead_by"]["mean"] < -(one["ahead_by"]["standard_error"] or 0) for one in found)
        words.append(f"It is behind by more than one standard error in {clearly or 'none'}.")
    behind = sorted((one for one in found if one not in ahead), key=lambda one: one["ahead_by"]["mean"])
    if behind:
        worst = behind[0]
        words.append(
            f"The furthest behind is {worst['ours']} on {NAMES.get(worst['data'], worst['data'])} "
            f"({ROWS[worst['rows']]}, {SEES[worst['sees']]}, ε = {worst['epsilon']:g}): "
            f"{abs(worst['ahead_by']['mean']):.1f} behind {worst['theirs']}."
        )
    single = max(record["single"], key=lambda row: row["not_below"])
    level = f"{single['not_below']} of {single['competitions']}"
    words.append(
        f"No single estimator is level everywhere: the nearest to it is {single['method']}, level or ahead in {level}."
        if single["not_below"] < single["competitions"]
        else f"{single['method']} alone is level or ahead in all of them."
    )
    if seeds == 1:
        words.append("With one seed there are no standard errors: differences of a few units may be chance.")
    return " ".join(words)


def arena_measured(record: Record) -> str:
    """Which data sets were not run, in words; nothing where all were."""
    missing = [name for data, name in NAMES.items() if data != "synthetic" and data not in record["sets"]]
    return f"Not run: {'; '.join(missing)}." if missing else ""


def arena_where(record: Record, method: str) -> str:
    """At which ε a method took part, in words."""
    found = (one for one in record["competitions"] if any(row["method"] == method for row in one["ranking"]))
    return " and ".join(f"{epsilon:g}" for epsilon in sorted({one["epsilon"] for one in found}))


def arena_left_out(record: Record) -> str:
    """Fits that failed, in words; nothing where none did."""
    fits = [f"{row['unit']} on {row['data']}, ε = {row['epsilon']:g}: {row['failed']}" for row in record["failed"]]
    return f"* **Failed fits**: {'; '.join(fits)}." if fits else ""


def signed(entry: Record) -> str:
    """A difference with its sign, in units of 10⁻⁴."""
    error = entry["standard_error"]
    return f"{entry['mean']:+.1f}" + ("" if error is None else f" ± {error:.1f}")


def gap_bound(record: Record) -> str:
    """How often a bound on the gap holds, and how far above the gap it lies, with the noise of ε = 1."""
    noisy = [row for row in record["rows"] if row["noise"]]
    sizes = sorted({row["n_rows"] for row in noisy})
    lines = []
    for population in dict.fromkeys(row["population"] for row in noisy):
        found = {row["n_rows"]: row for row in noisy if row["population"] == population}
        cells = [f"{found[n]['coverage']:.1%}, {short(found[n]['above_by'])}" for n in sizes]
        lines.append([population, *cells])
    return table(["population", *(f"{n:,} rows: holds in, above the gap by" for n in sizes)], lines)


def bounds(record: Record, constraint: str) -> str:
    """Accuracy and gap on new rows of every estimator that was asked for a bound, and of how many fits it held."""
    rows = [row for row in record["rows"] if row["constraint"] == constraint]
    tables = list(dict.fromkeys(row["table"] for row in rows))
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = {row["table"]: row for row in rows if row["method"] == method}
        cells = [f"{mine[t]['accuracy']['mean']:.3f}, {mine[t]['gap']['mean']:.3f}" for t in tables]
        fits, broken, unsaid, above = (
            sum(row[name] for row in mine.values()) for name in ("fits", "broken", "broken_unsaid", "above_its_bound")
        )
        said = "–" if "without privacy" in method else f"{unsaid}"
        lines.append([method, *cells, f"{broken} of {fits}", said, "–" if said == "–" else f"{above}"])
    return table(["estimator", *tables, "broken", "broken, no warning", "gap above `gap_bound_`"], lines)


def bounds_coverage(record: Record) -> str:
    """Of whole fits how often the bound holds, and what is said of those that break theirs and that do not."""
    lines = [
        [
            row["method"],
            f"{row['fits']:,}",
            f"{row['bound_held'] / row['fits']:.1%}",
            f"{row['broken']}/{row['broken_warned']}",
            f"{row['held']}/{row['held_said_broken']}/{row['held_warned']}",
        ]
        for row in record["rows"]
    ]
    return table(["estimator", "fits", "bound holds", "broken/told", "kept/called broken/told"], lines)


def interactions(record: Record) -> str:
    """AUROC of boosted trees by the rows that they learn from."""
    found: dict[str, dict[str, str]] = {}
    for row in record["rows"]:
        found.setdefault(NAMES.get(row["table"], row["table"]), {})[row["structure"]] = f"{row['auroc']['mean']:.3f}"
    kinds = ("tree", "interactions", "private rows")
    return table(
        ["table", *kinds], [[name, *(cells.get(kind, "–") for kind in kinds)] for name, cells in found.items()]
    )


# ---------------------------------------------------------------- few rows


def _mean_gain(record: Record, **where: Any) -> float:
    """Accuracy beyond the most frequent class, on average over tables, numbers of classes and seeds."""
    kept = [row for row in record["rows"] if all(row[name] == value for name, value in where.items())]
    return statistics.fmean(row["gain"]["mean"] for row in kept)


def small_tables(record: Record, epsilon: float) -> str:
    """One row a method: percent of accuracy beyond the most frequent class, by the number of rows."""
    sizes = sorted({row["n_rows"] for row in record["rows"]})
    lines = [
        [method, *(f"{100 * _mean_gain(record, method=method, n_rows=size, epsilon=epsilon):+.1f}" for size in sizes)]
        for method in dict.fromkeys(row["method"] for row in record["rows"])
    ]
    return table(["method", *(f"{size:,} rows" for size in sizes)], lines)


def small_tables_below(record: Record) -> str:
    """One row a number of rows: how many means and cells are below the most frequent class, or no better unsaid."""
    lines = []
    for size in sorted({row["n_rows"] for row in record["rows"]}):
        here = [row for row in record["rows"] if row["n_rows"] == size]
        means = _means_over_kinds(here)
        below = sum(row["gain"]["mean"] < -0.01 for row in here)
        unsaid = sum(row["gain"]["mean"] < 0.001 and row["warned"]["mean"] < 0.5 for row in here)
        seeds = sorted({row["n_seeds"] for row in here})
        lowest = [f"{100 * value:+.1f}" for value in (min(means), min(row["counted"]["mean"] for row in here))]
        words = " or ".join(map(str, seeds))
        below_on_average = f"{sum(mean < -0.01 for mean in means)} of {len(means)}"
        lines.append([f"{size:,}", words, below_on_average, *lowest, f"{below} of {len(here)}", unsaid])
    heads = ["rows", "fits a cell", "means below", "lowest mean", "counts without noise", "cells below"]
    return table([*heads, "no better, mostly without a warning"], lines)


def _means_over_kinds(rows: Sequence[Record]) -> list[float]:
    """Gains by method, number of classes and ε."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        found.setdefault((row["method"], row["n_classes"], row["epsilon"]), []).append(row["gain"]["mean"])
    return [sum(gains) / len(gains) for gains in found.values()]


def small_tables_verdict(record: Record) -> str:
    """What few rows are enough for, in words."""
    methods = list(dict.fromkeys(row["method"] for row in record["rows"]))
    sizes = sorted({row["n_rows"] for row in record["rows"]})
    lowest, method, size = min(
        (_mean_gain(record, method=method, n_rows=size), method, size) for method in methods for size in sizes
    )
    gains = [
        f"{100 * _mean_gain(record, method=name, n_rows=size, epsilon=1.0):.1f} ({name})"
        for name in ("DP-SGD", "PATE", "PF-LD")
        for size in (1000,)
    ]
    below = f"The lowest is {method} with {size:,} rows, by {-100 * lowest:.1f} %."
    return (
        "With 1,000 rows and ε = 1, mean accuracy is above that of the majority class by (in percent, absolute): "
        f"{', '.join(gains)}. "
        + ("No method is below it by 1 % or more on average at any number of rows. " if lowest > -0.01 else "")
        + below
    )


# ---------------------------------------------------------------- several rows of one person


def _by_unit(record: Record, method: str) -> dict[tuple[Any, ...], dict[str, Record]]:
    """Rows of a method by setting, and in each by unit."""
    found: dict[tuple[Any, ...], dict[str, Record]] = {}
    for row in (row for row in record["rows"] if row["method"] == method):
        found.setdefault((row["n_features"], row["kind"], row["epsilon"]), {})[row["unit"]] = row
    return found


def subjects(record: Record, method: str) -> str:
    """Accuracy by subject, whatever is protected."""
    kinds = {"rows by label": "alike 0.5, more rows where y = 1"}
    lines = [
        [n_features, kinds.get(kind, kind), short(epsilon, 1)]
        + [value(units[unit]["accuracy_by_subject"]) for unit in ("row", "subject", "group privacy")]
        for (n_features, kind, epsilon), units in _by_unit(record, method).items()
    ]
    return table(["features", "rows of a subject", "ε", "a row", "a subject", "a subject, by group privacy"], lines)


def subjects_verdict(record: Record) -> str:
    """What all rows of a person cost, in words."""

    def points(
        one: str, other: str, epsilon: float, *, by_label: bool = False, method: str = "PATE", wide: bool = False
    ) -> list[float]:
        return [
            100 * (units[one]["accuracy_by_subject"]["mean"] - units[other]["accuracy_by_subject"]["mean"])
            for (n_features, kind, at), units in _by_unit(record, method).items()
            if at == epsilon and (wide or (kind == "rows by label") == by_label) and (n_features == 100) == wide
        ]

    low, high = sorted({row["epsilon"] for row in record["rows"]})
    at_high = f"at ε = {short(high, 1)}"
    ahead = points("subject", "group privacy", low) + points("subject", "group privacy", low, by_label=True)
    costs = [max(points("row", "subject", at, by_label=linked)) for at in (high, low) for linked in (False, True)]
    of_wide = max(points("row", "subject", high, wide=True))
    ahead_of_wide = min(points("subject", "group privacy", high, wide=True))
    others = {
        (method, linked): (
            max(points("row", "subject", high, by_label=linked, method=method)),
            min(points("subject", "group privacy", high, by_label=linked, method=method)),
        )
        for method in ("DP-SGD", "synthetic rows")
        for linked in (False, True)
    }
    network, tables = ([others[method, linked] for linked in (False, True)] for method in ("DP-SGD", "synthetic rows"))
    by_label = "where the number of rows goes with the label"
    return (
        f"{at_high[0].upper()}{at_high[1:]} the guarantee for a person costs at most {costs[0]:.1f} % of accuracy "
        f"(absolute) beside that for a row with PATE, {network[0][0]:.1f} % with DP-SGD and {tables[0][0]:.1f} % on "
        f"synthetic rows, for which one row of each subject is counted; {by_label} at most {costs[1]:.1f}, "
        f"{network[1][0]:.1f} and {tables[1][0]:.1f} %. With PATE at ε = {short(low, 1)} it costs at most "
        f"{costs[2]:.1f} %, and {costs[3]:.1f} % {by_label}; with 100 features {at_high} at most {of_wide:.1f} %. By "
        f"group privacy the same guarantee costs beyond that {min(ahead):.0f} to {max(ahead):.0f} % with PATE at "
        f"ε = {short(low, 1)}, at least {ahead_of_wide:.1f} % with 100 features {at_high}, and with DP-SGD {at_high} "
        f"at least {network[0][1]:.1f} %, and {network[1][1]:.1f} % {by_label}."
    )


# ---------------------------------------------------------------- a model to read


def glass_box(record: Record, figure: str) -> str:
    """One row a table: a figure of the additive model and of the best setting of DP-EBM at each ε."""
    found = {(cell["data"], cell["epsilon"]): cell[figure] for cell in record["cells"]}
    lines = []
    for data in dict.fromkeys(data for data, _ in found):
        cells = [
            " / ".join(short(found[data, epsilon][name]["mean"]) for name in ("additive", "DP-EBM"))
            for epsilon in _budgets(record)
        ]
        lines.append([NAMES.get(data, data), f"{record['sizes'][data]:,}", *cells])
    return table(["data", "private rows", *(f"ε = {epsilon:g}" for epsilon in _budgets(record))], lines)


def glass_box_apart(record: Record, figure: str, method: str, rival: str, epsilon: float | None = None) -> Record:
    """Mean over tables of one method's figure less that of another, and on how many tables it is behind."""
    cells = [cell[figure] for cell in record["cells"] if epsilon in (None, cell["epsilon"])]
    apart = [cell[method]["mean"] - cell[rival]["mean"] for cell in cells]
    return mean_and_error(apart) | {"behind": sum(one < -5e-4 for one in apart), "tables": len(apart)}


def glass_box_difference(record: Record, method: str, rival: str) -> str:
    """One row an ε: by how much one method is ahead of another in accuracy and AUROC; below zero it is behind."""
    lines = []
    for epsilon in _budgets(record):
        found = [glass_box_apart(record, figure, method, rival, epsilon) for figure in ("accuracy", "auroc")]
        lines.append(
            [f"{epsilon:g}"] + [words for one in found for words in (ahead(one), f"{one['behind']} of {one['tables']}")]
        )
    return table(["ε", "accuracy", "behind on", "AUROC", "behind on"], lines)


def glass_box_order(record: Record, method: str, rival: str, name: str) -> str:
    """Where one method is ahead, level and behind, in two sentences; level is within a standard error over tables."""
    sentences = []
    for figure, words in (("accuracy", "accuracy"), ("auroc", "AUROC")):
        found: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
        for epsilon in _budgets(record):
            apart = glass_box_apart(record, figure, method, rival, epsilon)
            level = abs(apart["mean"]) <= max(apart["standard_error"] or 0.0, 5e-4)
            found["level" if level else "ahead" if apart["mean"] > 0 else "behind"].append(f"{epsilon:g}")
        places = [f"{place} at ε = {_listed(at)}" for place, at in found.items() if at]
        sentences.append(f"In {words} {'it' if sentences else name} is {_listed(places, ', and ')}.")
    return " ".join(sentences)


def glass_box_constant(record: Record, method: str) -> str:
    """How many fits of a method order no two rows: their AUROC is one half, as that of a constant."""
    found = [one for row in record["rows"] if row["method"] == method for one in row["by_seed"]["auroc"]]
    return f"{found.count(0.5)} of {len(found)}"


def _budgets(record: Record) -> list[float]:
    return sorted({cell["epsilon"] for cell in record["cells"]})


def _listed(words: Sequence[str], last: str = " and ") -> str:
    """One, two and three."""
    return last.join(filter(None, [", ".join(words[:-1]), words[-1]]))


def low_epsilon(record: Record) -> str:
    """One row a method and ε: the error on Adult, and the one that S-GBDT's paper reports."""
    lines = [
        [row["method"], f"{row['epsilon']:g}", value(row["error"]), short(row["reported"])]
        for row in sorted(record["rows"], key=lambda row: row["epsilon"])
    ]
    return table(["method", "ε", "error", "S-GBDT, as reported"], lines)


def parity_curve(record: Record) -> str:
    """One row a point that RaCO-DP's paper reports: gap / accuracy on Adult, beside those of our methods."""
    methods = list(dict.fromkeys(row["method"] for row in record["rows"]))
    lines: dict[str, list[str]] = {}
    for row in record["rows"]:
        reported = " / ".join(short(row["reported"][name]) for name in ("disparity", "accuracy"))
        ours = " / ".join(short(row[name]["mean"]) for name in ("disparity", "accuracy"))
        lines.setdefault(reported, [reported]).append(ours)
    return table(["RaCO-DP, as reported", *methods], list(lines.values()))


def ahead(entry: Record) -> str:
    """A small difference with its sign and standard error."""
    sign = "−" if round(entry["mean"], 4) < 0 else "+"
    return sign + value(entry | {"mean": abs(entry["mean"])}, 4)


# ---------------------------------------------------------------- amounts

AMOUNT_TABLES = {
    "parkinsons": "Parkinsons, total_UPDRS",
    "credit": "credit limits",
    "linear": "made up, linear",
    "curved": "made up, with curves",
    "skewed": "made up, skewed",
}


def amounts(record: Record) -> str:
    """R² by table and ε."""
    lines = [
        [AMOUNT_TABLES[row["table"]], short(row["epsilon"], 2)]
        + [value(row[figure]) for figure in ("r2", "r2_synthetic")]
        + [value(best_of_ebm(row)), value(row["r2_ridge"])]
        for row in record["rows"]
    ]
    return table(["table", "ε", "network", "synthetic rows", "DP-EBM", "ridge, no privacy"], lines)


def best_of_ebm(row: Record) -> Record:
    """The setting of DP-EBM that is best on the test rows."""
    return max((row[name] for name in row if name.startswith("r2_ebm")), key=lambda found: found["mean"])


def barycenters(record: Record, epsilon: float = 1.0) -> str:
    """What the barycenter does to groups, and to the error."""
    lines = [
        [AMOUNT_TABLES[row["table"]]]
        + [value(row[figure]) for figure in ("ks", "ks_moved", "ks_alike", "ks_bound", "error_ratio")]
        for row in record["rows"]
        if row["epsilon"] == epsilon
    ]
    return table(
        ["table", "KS before", "KS after", "KS of equal groups", "`gap_bound_`", "squared error, times"], lines
    )


def coverage_of_barycenters(record: Record) -> str:
    """How often certificates hold."""
    lines = [
        [f"{row['n_rows']:,}", f"{row.get('at_a_point', 0):.0%}", short(row["epsilon"], 1), f"{row['n_fits']:,}"]
        + [short(row[figure]) for figure in ("gap", "bound")]
        + [f"{row['holds']:.1%}"]
        for row in record["rows"]
    ]
    return table(["rows", "at one point", "ε", "fits", "KS, mean", "`gap_bound_`, mean", "holds in"], lines)


def amounts_verdict(record: Record, coverage: Record) -> str:
    """What private amounts cost, in words."""
    at_one = [row for row in record["rows"] if row["epsilon"] == 1.0]
    behind = [row["r2_ridge"]["mean"] - row["r2"]["mean"] for row in at_one]
    synthetic = [row["r2"]["mean"] - row["r2_synthetic"]["mean"] for row in at_one]
    alike = [row for row in at_one if row["ks_moved"]["mean"] <= 0.05]
    cheap = [row for row in alike if row["error_ratio"]["mean"] <= 1.1]
    tables = {row["table"] for row in record["rows"]}
    below = {row["table"] for row in record["rows"] if row["r2"]["mean"] < best_of_ebm(row)["mean"]}
    holds = min(row["holds"] for row in coverage["rows"])
    times = [row["bound"] / row["gap"] for row in coverage["rows"]]
    return (
        f"At ε = 1 the network's R² is below that of a ridge without privacy by {short(min(behind))} to "
        f"{short(max(behind))}, and that of the learner on synthetic rows below the network's by "
        f"{short(min(synthetic))} to {short(max(synthetic))}; below 0 is ahead. On {len(tables - below)} of "
        f"{len(tables)} tables the network is ahead of DP-EBM's regressor at every ε. After the barycenter the "
        f"distance between groups is at most .05 on {len(alike)} of {len(at_one)} tables, on {len(cheap)} of them at "
        f"no more than 1.10 times the squared error. Its bound of 95 % confidence held in at least "
        f"{100 * holds:.1f} % of the fits: it is cautious, {min(times):.1f} to {max(times):.1f} times what is left."
    )
