"""``skfairdp demo`` and ``skfairdp verify``: what runs without a table of the user's own."""

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skfairdp._cli._files import UsageError, writable_folder, write_frontier
from skfairdp._cli._own_table import print_frontier, print_notes

if TYPE_CHECKING:
    import pandas as pd

    from skfairdp.datasets import PrivatePublicTestSplit


class Sweep(NamedTuple):
    """What ``demo`` measures."""

    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0)
    gammas: tuple[float | None, ...] = (0.01, 0.02, 0.05, 0.1, None)
    n_synthetic: int = 40_000


def run_demo(arguments: argparse.Namespace, sweep: Sweep) -> None:
    """Sweep a benchmark, print and write what came of it."""
    started = time.perf_counter()
    folder = writable_folder(arguments.out)
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
    print_frontier(table)
    print_notes(table, caught)
    written = write_frontier(table, folder)
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
        except (OSError, ValueError, EOFError) as error:
            path, said = " ".join(str(datasets.data_file(wanted)).split()), " ".join(str(error).split())
            raise UsageError(said if path in said or path == "None" else f"{path}: {said}") from None
        rows = bunch.data, bunch.target, bunch.sensitive_features
        groups = bunch.sensitive_features.name
        where = f"{wanted} ({len(bunch.target):,} rows, groups by {groups}) from {bunch.source}{note}"
    sizes = (0.25, 0.05, 0.25) if quick else (0.70, 0.05, 0.25)
    split = datasets.train_private_public_test_split(*rows, sizes=sizes, random_state=seed)
    return wanted, split.encode(make_tabular_encoder()), where


_NO_PROOF = "They are of what the file names. That nothing else was released, only a ledger of the rows' owner can say."


def run_verify(arguments: argparse.Namespace) -> int:
    """Print what the file claims beside what was recomputed."""
    from skfairdp.privacy import UnreadableStatementError, verify_file

    try:
        checks = verify_file(arguments.file)
    except UnreadableStatementError as error:
        raise UsageError(str(error)) from None
    header = ("claim", "claimed", "recomputed")
    shown = [tuple(map(_plain, (check.figure, check.claimed, check.recomputed))) for check in checks]
    widths = [max(map(len, column)) for column in zip(header, *shown, strict=True)]
    print("  ".join(title.ljust(width) for title, width in zip(header, widths, strict=True)))
    for check, cells in zip(checks, shown, strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(f"{line}  {'holds' if check.holds else 'TOO LOW or not as described'}")
    wrong = [check for check in checks if not check.holds]
    for check in wrong:
        print(
            _plain(f"skfairdp: refuted: {check.figure} is claimed as {check.claimed}; recomputed: {check.recomputed}"),
            file=sys.stderr,
        )
    if not wrong:
        print(f"All {len(checks)} claims hold.\n{_NO_PROOF}")
    return 1 if wrong else 0


def _plain(text: str) -> str:
    """Without what a terminal would obey: a file is somebody's, and one line of it is one line here."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
