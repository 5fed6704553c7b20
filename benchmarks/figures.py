"""Draw the figures of the benchmark pages and of the guide from benchmarks/results/*.json into docs/images.

python benchmarks/figures.py
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import _tables
import matplotlib.pyplot as plt
import pandas as pd
from _scale_goals import GOALS
from matplotlib.ticker import MaxNLocator
from render_docs import RESULTS, Results, load

from skfairdp.privacy import GaussianDpEvent, PrivateSelection, calibrate_noise, epsilon_of, repeat

IMAGES = Path(__file__).parents[1] / "docs" / "images"
#: A page shows them 390 pixels wide on a phone: few words, and none smaller than ``SMALL``.
WIDE, SMALL = 6.2, 10
plt.rcParams.update({"font.size": 11, "axes.titlesize": 11, "legend.fontsize": SMALL})
#: Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def main() -> None:
    results = load(RESULTS)
    of_arena = {f"bench_arena_{data}": partial(arena, data=data) for data in results["arena"]["sets"]}
    for name, draw in {**FIGURES, **of_arena}.items():
        read = Noted(results)
        figure = draw(read)
        figure.savefig(
            IMAGES / f"{name}.png", dpi=110, metadata={"Software": None, "Source": drawn_from(results, read.names)}
        )
        plt.close(figure)
        print(f"drew docs/images/{name}.png")


class Noted(Results):
    """Results, and which of them a figure is drawn from."""

    def __init__(self, results: Results) -> None:
        super().__init__(results)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> dict[str, Any]:
        self.names.add(name)
        return super().__getitem__(name)


def drawn_from(results: Results, names: Iterable[str]) -> str:
    """What the file of a figure says of the results that it shows: their names, and a digest of all."""
    digest = hashlib.sha256(json.dumps([results[name] for name in sorted(names)], sort_keys=True).encode())
    return " ".join([digest.hexdigest()[:16], *sorted(names)])


def panels(found: list[dict[str, Any]], draw: Callable[[Any, dict[str, Any]], None]) -> Any:
    """One panel a data set, two in a row so that a page shows them at full size, and one legend for all."""
    rows = -(-len(found) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(WIDE, 2.9 * rows + 0.7), squeeze=False, layout="constrained")
    for ax in axes.flat[len(found) :]:
        ax.remove()
    for ax, record in zip(axes.flat, found, strict=False):
        draw(ax, record)
        ax.set_title(
            _tables.TITLES[record["data"]].replace(", groups", ",\ngroups").replace(" (", "\n("), fontsize=SMALL
        )
        few_ticks(ax)
    explain(figure, axes[0][0])
    return figure


def few_ticks(ax: Any, *, across: int = 4, up: int = 5) -> None:
    """So few numbers that they have room on a phone."""
    ax.xaxis.set_major_locator(MaxNLocator(across, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_locator(MaxNLocator(up, steps=[1, 2, 5, 10]))
    ax.grid(alpha=0.3)


def counted(ax: Any, numbers: list[int]) -> None:
    """Counts across, over powers of ten, each written out."""
    ax.set_xscale("log")
    ax.set_xticks(numbers, [f"{n / 1e6:g} million" if n >= 1e6 else f"{n:,}" for n in numbers])
    ax.minorticks_off()
    ax.grid(alpha=0.3)


def explain(figure: Any, ax: Any, *, ncols: int = 2, where: str = "lower") -> None:
    """What the marks are, below or above all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc=f"outside {where} center", ncols=ncols, frameon=False)


def curve(ax: Any, rows: list[dict[str, Any]], label: str, colour: str, **style: Any) -> None:
    """Accuracy over gap, with standard errors."""
    rows = sorted(rows, key=lambda row: row["disparity"]["mean"])
    x, y = ([row[name]["mean"] for row in rows] for name in ("disparity", "accuracy"))
    dx, dy = ([row[name]["standard_error"] for row in rows] for name in ("disparity", "accuracy"))
    ax.errorbar(x, y, xerr=dx, yerr=dy, label=label, color=colour, marker="o", markersize=4, linewidth=1, **style)


def private_models(results: Results) -> Any:
    """FairPATE and FairDP-SGD at ε = 1, against a reduction without privacy."""
    pate = {record["data"]: record for record in results.of("utility")}

    def draw(ax: Any, record: dict[str, Any]) -> None:
        for (method, label), colour in zip(PRIVATE.items(), COLOURS, strict=False):
            rows = [r for r in record["rows"] if (r["method"], r["epsilon"], r["idp3"]) == (method, 1.0, None)]
            curve(ax, rows, label, colour)
        rows = pate[record["data"]]["rows"]
        curve(
            ax,
            [r for r in rows if (r["method"], r["epsilon"], r["idp3"]) == ("soft", 1.0, None)],
            "FairPATE",
            COLOURS[3],
        )
        free = [r for r in rows if r["method"] == "exponentiated gradient"]
        curve(ax, free, "reduction, no privacy", "0.5", linestyle="--")
        majority = next(r for r in rows if r["method"] == "majority class")
        ax.axhline(majority["accuracy"]["mean"], color="0.7", linestyle=":", label="majority class")
        ax.set(xlabel="gap between groups", ylabel="accuracy")

    return panels(results.of("fair_dpsgd"), draw)


PRIVATE = {"public rows": "FairDP-SGD, public rows", "private rows": "FairDP-SGD, private rows"}


def private_group(results: Results) -> Any:
    """PF-LD and its peers at the smallest ε, against the same Lagrangian without privacy."""

    def draw(ax: Any, record: dict[str, Any]) -> None:
        epsilon = min(row["epsilon"] for row in record["rows"] if row["epsilon"] is not None)
        for method, colour in zip(("PF-LD", "debiased randomised response", "model M"), COLOURS, strict=False):
            rows = [r for r in record["rows"] if (r["method"], r["epsilon"]) == (method, epsilon)]
            curve(ax, rows, f"{method}, ε = {epsilon:g}", colour)
        curve(ax, [r for r in record["rows"] if r["method"] == "F-LD"], "F-LD, no privacy", "0.5", linestyle="--")
        ax.set(xlabel="gap between groups", ylabel="accuracy")

    return panels(results.of("pfld"), draw)


def synthetic(results: Results) -> Any:
    """AUROC and gap of a logistic regression trained on synthetic rows: a colour a generator, hollow without parity."""
    found = [record for record in results.of("pfguard") if record["data"] == "adult"]
    rows = {row["method"]: row for row in found[0]["rows"] if row["learner"] == "logistic regression"}
    figure, ax = plt.subplots(figsize=(WIDE, 5.2), layout="constrained")
    colours = dict(zip(GENERATORS, COLOURS, strict=False))
    for method, row in rows.items():
        name, _, way = method.partition(", ")
        face = "none" if way == "as it is" else colours[name]
        x, y = row["equalized_odds_disparity"]["mean"], row["auroc"]["mean"]
        ax.plot(x, y, WAYS.get(way, "o"), color=colours[name], markerfacecolor=face, markersize=8)
    for name, colour in colours.items():
        ax.plot([], [], "s", color=colour, label=GENERATORS[name])
    for way, marker in WAYS.items():
        hollow = {"markerfacecolor": "none"} if way == "as it is" else {}
        ax.plot([], [], marker, color="0.3", label=OF_WAYS[way], **hollow)
    ax.set(xlabel="equalized-odds gap", ylabel="AUROC", title=_tables.TITLES["adult"])
    few_ticks(ax)
    explain(figure, ax)
    return figure


#: What made the rows, and how they were drawn: the methods of the results, in words.
GENERATORS = {
    "marginals (default)": "marginals, default settings",
    "marginals": "marginals, other settings",
    "pate_gan": "PATE-GAN",
    "gs_wgan": "GS-WGAN",
    "g_pate": "G-PATE",
    "datalens": "DataLens",
    "real rows": "real rows",
}
OF_WAYS = {
    "": "default",
    "as it is": "drawn as the private rows are",
    "fair rates": "equal label rates",
    "star": "groups joined to each column",
    "groups balanced": "groups balanced",
    "groups and labels balanced": "groups and labels balanced",
}
WAYS = dict(zip(OF_WAYS, "oosD^v", strict=True))


def audits(results: Results) -> Any:
    """The share of the certified ε that an attack proves."""
    record = results["audit_ratio"]
    methods = list(dict.fromkeys(row["method"] for row in record["rows"]))
    figure, ax = plt.subplots(figsize=(WIDE, 0.3 * len(methods) + 1.6), layout="constrained")
    epsilons = list(dict.fromkeys(row["epsilon"] for row in record["rows"]))
    for epsilon, colour in zip(epsilons, COLOURS, strict=False):
        found = {row["method"]: row["ratio"] for row in record["rows"] if row["epsilon"] == epsilon}
        ax.plot([found[m] for m in methods], range(len(methods)), "o", color=colour, label=f"ε = {epsilon:g}")
    ax.axvline(1.0, color="k", linewidth=1, label="all of it")
    ax.set_yticks(range(len(methods)), [method.replace(" teachers, ", " teachers,\n") for method in methods],
                  fontsize=SMALL)  # fmt: skip
    ax.set_xlim(0, 1.05)
    ax.set_xticks([0, 0.5, 1])
    figure.supxlabel("share of the certified ε that the attack proves", fontsize=11)
    ax.invert_yaxis()
    ax.grid(alpha=0.3)
    explain(figure, ax, ncols=5, where="upper")
    return figure


def speed(results: Results) -> Any:
    """Seconds and memory of one FairPATE fit over the number of rows."""
    rows = [row for row in results["scaling"]["rows"] if row["fit"] == "FairPATE"]
    figure, axes = plt.subplots(2, figsize=(5, 5), sharex=True, layout="constrained")
    sizes = [row["n_rows"] for row in rows]
    units = {"cpu_seconds": "CPU seconds", "gib_peak": "GiB of memory, peak"}
    for ax, (name, unit), colour in zip(axes, units.items(), COLOURS, strict=False):
        ax.plot(sizes, [row[name] for row in rows], "o-", color=colour)
        ax.set(ylabel=unit, ylim=(0, None))
        counted(ax, [10_000, 100_000, 1_000_000])
    axes[0].set_title("One FairPATE fit")
    axes[1].set_xlabel("private rows (50 features)")
    return figure


def accounting(results: Results) -> Any:
    """ε of many fits: composed, and added up. Computed, not measured."""
    fits = [1, 2, 3, 5, 7, 10, 14, 20]
    votes = GaussianDpEvent(calibrate_noise(GaussianDpEvent, 1.0, 1e-5))
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    ax.plot(fits, fits, "o--", color="0.5", label="the ε of each fit, added")
    ax.plot(fits, [epsilon_of(repeat(votes, n), 1e-5) for n in fits], "o-", color=COLOURS[0], label="composed")
    ax.set(xlabel="fits of ε = 1, δ = 1e-5 (Gaussian noise)", ylabel="ε of all of them")
    ax.set_xticks([1, 5, 10, 15, 20])
    ax.set_yticks([1, 5, 10, 15, 20])
    ax.grid(alpha=0.3)
    ax.legend()
    return figure


def tuning(results: Results) -> Any:
    """ε of a search over the number of candidates: all shown, and the best of a secret number. Computed."""
    trial, numbers = GaussianDpEvent(10.0), [1, 2, 3, 5, 10, 20, 50, 100]
    best = [epsilon_of(PrivateSelection(trial, float(n)).event, 1e-5) for n in numbers]
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    ax.plot(
        numbers, [epsilon_of(repeat(trial, n), 1e-5) for n in numbers], "o-", color=COLOURS[1], label="all are shown"
    )
    ax.plot(numbers, best, "s-", color=COLOURS[0], label="only the best is shown\n(mean number of trials)")
    ax.axhline(epsilon_of(trial, 1e-5), color="0.5", linestyle="--", label="one fit and its score")
    ax.set(xlabel="candidates", ylabel="ε at δ = 1e-5")
    counted(ax, numbers)
    ax.legend()
    return figure


def large_tables(results: Results) -> Any:
    """Memory of fits from Parquet over the number of rows."""
    figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
    from_files = [goal.work for goal in GOALS.values() if goal.reads_files]
    rows = [row for row in results["scale"]["rows"] if row["work"] in from_files]
    for work, colour in zip(dict.fromkeys(row["work"] for row in rows), COLOURS, strict=False):
        mine = sorted((row["n_rows"], row["gib_peak"]) for row in rows if row["work"] == work)
        ax.plot(*zip(*mine, strict=True), "o-", color=colour, label=work)
    ax.set(xlabel="private rows (20 columns, Parquet)", ylabel="GiB, peak of the process", ylim=(0, None))
    counted(ax, [100_000, 1_000_000, 10_000_000, 100_000_000])
    explain(figure, ax, ncols=1)
    return figure


def no_public_rows(results: Results) -> Any:
    """FairPATE with and without public rows, at one ε."""
    rows = [row for row in results["no_public_rows"]["rows"] if (row["method"], row["epsilon"]) == ("FairPATE", 1.0)]
    found = [{"data": data} for data in dict.fromkeys(row["data"] for row in rows)]

    def draw(ax: Any, record: dict[str, Any]) -> None:
        for (kind, label), colour in zip(KINDS.items(), COLOURS, strict=False):
            mine = [row for row in rows if (row["data"], row["rows"]) == (record["data"], kind)]
            curve(ax, mine, label, colour)
        ax.set(xlabel="gap between groups", ylabel="accuracy")

    return panels(found, draw)


def several_rows(results: Results) -> Any:
    """Accuracy of three guarantees for the rows of one subject, by method and ε, rows half alike."""
    rows = [row for row in results["subjects"]["rows"] if row["kind"] == "alike .5"]
    settings = list(dict.fromkeys((row["method"], row["n_features"], row["epsilon"]) for row in rows))
    figure, ax = plt.subplots(figsize=(WIDE, 5.2), layout="constrained")
    units = {"row": "a row", "subject": "a subject, by subject=", "group privacy": "a subject, by group privacy"}
    for j, ((unit, label), colour) in enumerate(zip(units.items(), COLOURS, strict=False)):
        found = {
            (r["method"], r["n_features"], r["epsilon"]): r["accuracy_by_subject"] for r in rows if r["unit"] == unit
        }
        means, errors = ([found[one][name] for one in settings] for name in ("mean", "standard_error"))
        at = [place + (j - 1) * 0.2 for place in range(len(settings))]
        ax.errorbar(means, at, xerr=errors, fmt="o", color=colour, markersize=6, label=f"protects {label}")
    names = [f"{method},\n{n} features, ε = {epsilon:g}" for method, n, epsilon in settings]
    ax.set_yticks(range(len(settings)), names, fontsize=SMALL)
    ax.invert_yaxis()
    ax.set_xlabel("accuracy, by subject")
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.grid(alpha=0.3, axis="x")
    explain(figure, ax)
    return figure


KINDS = {"public": "FairPATE, 5 % public rows, ε = 1", "none": "FairPATE, no public rows, ε = 1"}


def sfpate(results: Results) -> Any:
    """SF-PATE beside its peers at ε = 1: one point each."""

    def draw(ax: Any, record: dict[str, Any]) -> None:
        for (method, label), colour in zip(PRIVATE_GROUP.items(), COLOURS, strict=False):
            wanted = (method, None if method == "F-LD" else 1.0, "demographic_parity")
            rows = [row for row in record["rows"] if (row["method"], row["epsilon"], row["constraint"]) == wanted]
            curve(ax, rows, label, colour)
        ax.set(xlabel="gap between groups", ylabel="accuracy")

    return panels(results.of("sfpate"), draw)


PRIVATE_GROUP = {
    "SFS": "SF-PATE, fair student",
    "SFT": "SF-PATE, fair teachers",
    "PF-LD": "PF-LD",
    "M, debiased": "randomised response, debiased",
    "F-LD": "no privacy",
}


def calibrator(results: Results) -> Any:
    """What the calibrator does to two finished models."""
    rows = results["calibrator"]["rows"]
    figure, ax = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
    for model, marker in zip(dict.fromkeys(row["model"] for row in rows), "os", strict=False):
        mine = [row for row in rows if row["model"] == model]
        for (kind, words), colour in zip(CALIBRATIONS.items(), ("0.4", *COLOURS), strict=False):
            some = [row for row in mine if row["calibration"] == kind]
            x, y = ([row[name]["mean"] for row in some] for name in ("disparity", "accuracy"))
            ax.plot(x, y, marker, color=colour, label=f"{model}, {words}" if some else None)
    ax.set(xlabel="gap between groups", ylabel="accuracy", title=_tables.TITLES[results["calibrator"]["data"]])
    few_ticks(ax)
    explain(figure, ax)
    return figure


CALIBRATIONS = {None: "not calibrated", "fine_tune": "trained further", "threshold": "thresholds moved"}


def arena(results: Results, data: str) -> Any:
    """Accuracy over gap of one data set at the smallest ε: ours, and the best three that are glued together."""
    points = pd.read_csv(RESULTS / "arena.csv")
    points = points[(points["data"] == data) & (points["constraint"] == "demographic_parity") & points["failed"].isna()]
    found = [one for one in results["arena"]["competitions"] if one["data"] == data and one["sees"] == "aware"]
    epsilon = min(one["epsilon"] for one in found)
    figure, axes = plt.subplots(2, figsize=(WIDE, 9.6), sharey=True, layout="constrained")
    for ax, rows in zip(axes, ("none", "public"), strict=True):
        (one,) = [one for one in found if one["rows"] == rows and one["epsilon"] == epsilon]
        shown = [r for r in one["ranking"] if r["kind"] == "ours"]
        shown += [r for r in one["ranking"] if r["kind"] == "glue"][:3]
        for k, row in enumerate(shown):
            mine = points[(points["method"] == row["method"]) & (points["epsilon"] == epsilon)]
            mine = mine[(mine["setting"] == row["setting"]) & (mine["rows"] == row["reads"])]
            mine = mine.fillna({"knob": -1.0}).groupby(["knob", "sees"])[["demographic_parity", "accuracy"]].mean()
            style = "o" if row["kind"] == "ours" else "x"
            mine = mine.sort_values("demographic_parity")
            ax.plot(mine["demographic_parity"], mine["accuracy"], style, color=COLOURS[k % len(COLOURS)],
                    label=row["method"], markersize=5)  # fmt: skip
        ax.axhline(results["arena"]["sets"][data]["most_frequent"], color="0.5", linestyle=":",
                   label="majority class")  # fmt: skip
        ax.set(xlabel="gap between groups", ylabel="accuracy", title=_tables.ROWS[rows], xlim=(0, 0.22))
        few_ticks(ax)
        # What is drawn on one pair of axes differs from the other: a legend for each, beside no mark.
        below = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.16), "columnspacing": 0.6, "handletextpad": 0.1}
        ax.legend(fontsize=SMALL, ncols=2, frameon=False, **below)
    figure.suptitle(f"{_tables.TITLES[data]}, ε = {epsilon:g}", fontsize=11)
    return figure


def surface(results: Results) -> Any:
    """Accuracy over ε and the gap that is allowed: a part for each data set, a panel for each method of ours."""
    points = pd.read_csv(RESULTS / "arena.csv")
    points = points[(points["constraint"] == "demographic_parity") & points["failed"].isna()]
    points = points[(points["rows"] == "none") & (points["sees"] == "blind") & points["method"].isin(SURFACES)]
    setting = ["data", "epsilon", "method", "setting", "knob"]
    points = points.groupby(setting, dropna=False)[["accuracy", "demographic_parity"]].mean().reset_index()  # of seeds
    sets = results["arena"]["sets"]
    figure = plt.figure(figsize=(WIDE, 3.1 * len(sets)), layout="constrained")
    for part, (data, about) in zip(figure.subfigures(len(sets)), sets.items(), strict=True):
        mine = points[points["data"] == data]
        shades = (about["most_frequent"], mine.loc[mine["demographic_parity"] <= GAPS[-1], "accuracy"].max())
        axes = part.subplots(2, 2, sharex=True, sharey=True)
        for ax, (method, label) in zip(axes.flat, SURFACES.items(), strict=True):
            _heights(ax, mine[mine["method"] == method], sorted(mine["epsilon"].unique()), shades)
            ax.set_title(label, fontsize=SMALL)
        part.suptitle(_tables.TITLES[data], fontsize=11, weight="bold")
        part.supxlabel("gap at most", fontsize=SMALL)
        for ax in axes[:, 0]:
            ax.set_ylabel("ε", rotation=0, va="center", labelpad=8)
    return figure


def _heights(ax: Any, points: pd.DataFrame, epsilons: list[float], shades: tuple[float, float]) -> None:
    """One method on one data set: the accuracy of its best setting within each gap, at each ε."""
    heights = [
        [points.loc[(points["epsilon"] == epsilon) & (points["demographic_parity"] <= gap), "accuracy"].max()
         for gap in GAPS]
        for epsilon in epsilons
    ]  # fmt: skip
    ax.imshow(heights, origin="lower", aspect="auto", cmap="viridis", vmin=shades[0], vmax=shades[1])
    for i, levels in enumerate(heights):
        for j, height in enumerate(levels):
            bright = pd.notna(height) and height > sum(shades) / 2
            text = "–" if pd.isna(height) else f"{height:.3f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=9.5, color="k" if bright or text == "–" else "w")
    ax.set_xticks(range(len(GAPS)), [f"{gap:g}" for gap in GAPS], fontsize=SMALL)
    ax.set_yticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons], fontsize=SMALL)


#: The levels of the gap in the surface.
GAPS = (0.01, 0.02, 0.05, 0.1, 0.2)
#: The methods in the surface; none of them reads public rows, or the group of a new row.
SURFACES = {
    "FairDP-SGD": "FairDP-SGD",
    "FairPATE": "FairPATE",
    "DP-SGD + PrivateThresholds": "DP-SGD, PrivateThresholds",
    "our generator + ExponentiatedGradient": "generator, reduction",
}

#: Of the benchmark pages, and (``guide_``) of the guide.
FIGURES: dict[str, Callable[[Results], Any]] = {
    "bench_private_models": private_models,
    "bench_private_group": private_group,
    "bench_synthetic": synthetic,
    "bench_audits": audits,
    "bench_speed": speed,
    "bench_surface": surface,
    "guide_accounting": accounting,
    "guide_tuning": tuning,
    "guide_large_tables": large_tables,
    "guide_no_public_rows": no_public_rows,
    "guide_sfpate": sfpate,
    "guide_several_rows": several_rows,
    "guide_calibrator": calibrator,
}

if __name__ == "__main__":
    main()
