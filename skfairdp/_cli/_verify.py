"""``skfairdp verify``: every claim of a privacy statement or a ledger beside what was recomputed."""

import argparse
import sys

from skfairdp._cli._files import UsageError

__all__ = ["run_verify"]


def run_verify(arguments: argparse.Namespace) -> int:
    """Print what the file claims beside what was recomputed."""
    from skfairdp.privacy import UnreadableStatementError, verify_file

    try:
        checks = verify_file(arguments.file)
    except UnreadableStatementError as error:
        raise UsageError(str(error)) from None
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
