"""``skfairdp verify``: every claim of a privacy statement or a ledger beside what was recomputed."""

import argparse
import sys

from skfairdp._cli._files import UsageError

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
