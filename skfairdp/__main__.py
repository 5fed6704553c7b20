"""``python -m skfairdp demo`` shows what private and fair learning costs; ``verify`` recomputes a privacy statement."""

import argparse
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    import pandas as pd

    from skfairdp.datasets import PrivatePublicTestSplit

__all__ = ["main"]

DATA = ("auto", "adult", "bank", "credit", "synthetic")


class Sweep(NamedTuple):
    """What ``demo`` measures."""

    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0)
    gammas: tuple[float | None, ...] = (0.01, 0.02, 0.05, 0.1, None)
    n_synthetic: int = 40_000


class _UsageError(Exception):
    """Something the caller has to change; its text is the one line that is shown."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see: {self.prog} --help)")


def main(argv: Sequence[str] | None = None, *, sweep: Sweep | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments without the program's name. None: those of the process.
    sweep : Sweep, default=None
        What ``demo`` measures. None: ``Sweep()``.

    Returns
    -------
    int
        Exit code: 0; 1 where ``verify`` refutes a claim; or 2 with one line on standard error where the arguments, the
        data, the file or the output folder are unusable.

    Examples
    --------
    >>> from skfairdp.__main__ import main
    >>> main(["demo", "--data", "nothing"])
    2
    """
    for stream in (sys.stdout, sys.stderr):  # a terminal that has no ε shows something else rather than failing
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        arguments = _parser().parse_args(argv)
        if arguments.command == "verify":
            return _verify(arguments)
        _demo(arguments, sweep or Sweep())
    except _UsageError as error:
        print(f"skfairdp: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m skfairdp", description="Differentially private and fair classification.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{demo,verify}", parser_class=_Parser)
    demo = commands.add_parser(
        "demo",
        help="sweep privacy budgets and fairness constraints on a data set, and draw the frontier",
        description="Fits FairPATE at several privacy budgets, sweeps the fairness constraint with and "
        "without IDP3, prints the models that no other one beats, and writes frontier.csv, frontier.png and "
        "frontier.html.",
    )
    demo.add_argument(
        "--data",
        choices=DATA,
        default="auto",
        help="auto: Adult where SKFAIRDP_DATA has it, else synthetic (default: auto)",
    )
    demo.add_argument(
        "--out",
        metavar="DIR",
        default="skfairdp-demo",
        help="folder for the three files; its own earlier ones are replaced (default: skfairdp-demo)",
    )
    demo.add_argument("--quick", action="store_true", help="fewer rows and two privacy budgets, under 45 seconds")
    demo.add_argument(
        "--seed",
        metavar="S",
        type=_seed,
        default=0,
        help="for public randomness only: split and partition. The noise stays secret (default: 0)",
    )
    verify = commands.add_parser(
        "verify",
        help="recompute every figure of a privacy statement or a ledger",
        description="Recomputes every figure of a privacy statement (privacy_statement().to_json()) or of a "
        "ledger's file from the releases it lists, with dp-accounting and a second implementation, and without the "
        "data. Exit code 1 and a line for each claim that is too low.",
    )
    verify.add_argument("file", metavar="FILE", help="statement (JSON) or ledger")
    return parser


def _verify(arguments: argparse.Namespace) -> int:
    """Print what the file claims beside what was recomputed."""
    from skfairdp.privacy import UnreadableStatementError, verify_file

    try:
        checks = verify_file(arguments.file)
    except UnreadableStatementError as error:
        raise _UsageError(str(error)) from None
    widths = [max(len(getattr(check, part)) for check in checks) for part in ("figure", "claimed", "recomputed")]
    header = ("claim", "claimed", "recomputed")
    widths = [max(width, len(title)) for width, title in zip(widths, header, strict=True)]
    print("  ".join(title.ljust(width) for title, width in zip(header, widths, strict=True)))
    for check in checks:
        cells = (check.figure, check.claimed, check.recomputed)
        line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(f"{line}  {'holds' if check.holds else 'TOO LOW or not as described'}")
    wrong = [check for check in checks if not check.holds]
    for check in wrong:
        print(
            f"skfairdp: refuted: {check.figure} is claimed as {check.claimed}; recomputed: {check.recomputed}",
            file=sys.stderr,
        )
    if not wrong:
        print(f"All {len(checks)} claims hold.")
    return 1 if wrong else 0


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to {2**32 - 1}, got {text!r}")
    return int(text)


def _demo(arguments: argparse.Namespace, sweep: Sweep) -> None:
    started = time.perf_counter()
    folder = _writable(arguments.out)
    name, split, where = _load(arguments.data, arguments.seed, arguments.quick, sweep.n_synthetic)
    print(f"Data: {where}")
    print(
        f"Rows: {len(split.y):,} private, {len(split.y_public):,} public, {len(split.y_test):,} to measure on.\n"
        f"Seed {arguments.seed} fixes the split and the partition. The noise is drawn from the operating system and "
        "stays secret,\nso the figures differ a little from run to run."
    )
    epsilons = sweep.epsilons[1::2] if arguments.quick else sweep.epsilons
    with warnings.catch_warnings(record=True) as caught:  # said once, after the table, not across the progress bar
        warnings.simplefilter("always")
        table = _measured(name, split, epsilons, sweep.gammas, arguments.seed)
    _report(table)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"Note: {message}")
    written = _written(table, folder)
    print(f"Wrote {', '.join(str(folder / file) for file in written)} ({time.perf_counter() - started:.0f} s).")


def _measured(
    name: str,
    split: "PrivatePublicTestSplit",
    epsilons: Sequence[float],
    gammas: Sequence[float | None],
    seed: int,
) -> "pd.DataFrame":
    from sklearn.linear_model import LogisticRegression

    from skfairdp.model_selection import frontier
    from skfairdp.pate import FairPATEClassifier

    return frontier(
        FairPATEClassifier(classes=[0, 1]),
        split.X,
        split.y,
        X_public=split.public,
        X_test=split.X_test,
        y_test=split.y_test,
        sensitive_features_test=split.sensitive_features_test,
        epsilons=epsilons,
        gammas=gammas,
        reference=LogisticRegression(max_iter=1000),  # these rows are public benchmarks
        dataset=name,
        verbose=1,
        random_state=seed,
    )


def _written(table: "pd.DataFrame", folder: Path) -> list[str]:
    """Write the table, its page and, with matplotlib, its picture; return their names."""
    from skfairdp.inspection import ParetoFrontierDisplay
    from skfairdp.utils import write_csv

    write_csv(table, folder / "frontier.csv")
    display = ParetoFrontierDisplay(table)
    display.to_html(folder / "frontier.html")
    try:
        from matplotlib import use
    except ImportError:
        print("No frontier.png: it needs matplotlib (pip install 'skfairdp[plots]').")
        return ["frontier.csv", "frontier.html"]
    use("Agg")  # the picture goes to a file; no window system is needed
    display.plot().figure_.savefig(folder / "frontier.png", dpi=160)
    return ["frontier.csv", "frontier.png", "frontier.html"]


def _writable(out: str) -> Path:
    """Make the folder and prove that files can be written there, before minutes of work."""
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _UsageError(f"cannot write to --out {out}: {error.strerror or error}") from None
    for file in ("frontier.csv", "frontier.png", "frontier.html"):
        path = folder / file
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            raise _UsageError(f"cannot replace {path}: it is not a writable file")
    return folder


def _load(data: str, seed: int, quick: bool, n_synthetic: int) -> tuple[str, "PrivatePublicTestSplit", str]:
    """Name, encoded split, and a sentence on where the data came from."""
    from skfairdp import datasets
    from skfairdp.preprocessing import make_tabular_encoder

    wanted, note = data, ""
    if data == "auto":
        wanted = "adult" if datasets.data_file("adult") is not None else "synthetic"
        note = (
            ""
            if wanted == "adult"
            else "; Adult was not found: set SKFAIRDP_DATA to the folder with adult.csv.gz to use it"
        )
    if wanted == "synthetic":
        rows: tuple[Any, Any, Any] = datasets.make_biased_classification(
            n_synthetic,
            disparity=0.2,
            group_proportions=(0.33, 0.67),
            base_rate=0.25,
            as_frame=True,
            random_state=seed,
        )
        where = f"synthetic, with a gap of 0.2 between two groups{note}"
    else:
        try:
            bunch = getattr(datasets, f"fetch_{wanted}")()
        except (OSError, ValueError) as error:
            raise _UsageError(" ".join(str(error).split())) from None
        rows = bunch.data, bunch.target, bunch.sensitive_features
        groups = bunch.sensitive_features.name
        where = f"{wanted} ({len(bunch.target):,} rows, groups by {groups}) from {bunch.source}{note}"
    sizes = (0.25, 0.05, 0.25) if quick else (0.70, 0.05, 0.25)
    split = datasets.train_private_public_test_split(*rows, sizes=sizes, random_state=seed)
    return wanted, split.encode(make_tabular_encoder()), where


def _report(table: "pd.DataFrame") -> None:
    """Print the models that no other one beats, and what the whole table costs."""
    from skfairdp.inspection import epsilon_meaning, epsilon_text

    same = ["epsilon", "disparity", "accuracy", "coverage"]
    distinct = table.sort_values(["epsilon", "disparity", "idp3", "gamma"]).drop_duplicates(same)
    shown = distinct[distinct["non_dominated"]]
    attrs = table.attrs
    delta = f"{attrs['delta']:g}".replace("e-0", "e-")
    print(
        f"\n{len(table)} models with {len(distinct)} different outcomes; the {len(shown)} below are not beaten by "
        f"another one in ε, gap, accuracy and coverage.\nε is certified and protects one {attrs['protects']} "
        f"({attrs['neighboring_relation']}), δ = {delta}.\n"
    )
    print(f"{'ε':>7} {'γ':>6} {'IDP3':>6} {'gap':>7} {'accuracy':>9} {'coverage':>9}")
    for row in shown.to_dict("records"):
        gamma = "none" if math.isnan(row["gamma"]) else f"{row['gamma']:g}"
        refuses = "no" if not row["idp3"] else "alone" if math.isnan(row["student_gamma"]) else "top"
        print(
            f"{epsilon_text(row['epsilon']):>7} {gamma:>6} {refuses:>6} "
            f"{row['disparity']:>7.3f} {row['accuracy']:>9.2%} {row['coverage']:>9.1%}"
        )
    for one in attrs.get("references", []):
        print(f"{'':>22} {one['disparity']:>7.3f} {one['accuracy']:>9.2%}  to compare with: {one['name']}")
    print("\nIDP3 top: on top of a student held to γ. IDP3 alone: over a free student, so it refuses more.")
    print(
        f"Publishing the whole table ({attrs['n_fits']} releases, every γ from them) costs "
        f"ε = {epsilon_text(attrs['epsilon_total'])} at δ = {delta}.\n"
        f"{epsilon_meaning(attrs['epsilon_total'], attrs['delta'], attrs['protects'])}\n"
        f"Gap, accuracy and coverage: {attrs['n_test']:,} test rows, which no ε covers."
    )


if __name__ == "__main__":
    sys.exit(main())
