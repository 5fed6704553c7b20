"""The command line: a frontier of your own table, its schema, a demo, and the check of a privacy statement."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from skfairdp._cli import Sweep, UsageError, command_line, run_demo, run_frontier, run_schema, run_verify


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C. An interrupt of Python's own class that ends an import is remembered: the exit code would not be ours."""


@contextlib.contextmanager
def _interruptible(interrupted: list[int]) -> Iterator[None]:
    """Ctrl-C, and being told to end, are listed and raise the class above, where signals may be handled at all."""

    def interrupt(number: int, _: Any) -> NoReturn:
        interrupted.append(number)
        raise _Interrupted

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def main(argv: Sequence[str] | None = None, *, sweep: Sweep | None = None) -> int:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that has no ε shows something else rather than failing
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    interrupted: list[int] = []
    try:
        with _interruptible(interrupted):
            return _run(argv, sweep)
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, KeyboardInterrupt) or interrupted:  # an interrupted import may end in any error
            print("skfairdp: interrupted; what had been released until then is spent.", file=sys.stderr)
            return 128 + next(iter(interrupted), signal.SIGINT)
        if not isinstance(error, UsageError | OSError):
            raise
        spent = "; what had been released until then is spent." if isinstance(error, OSError) else ""
        print(f"skfairdp: {error}{spent}", file=sys.stderr)
        return 2


def _run(argv: Sequence[str] | None, sweep: Sweep | None) -> int:
    parser = command_line()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    if arguments.command == "demo":
        run_demo(arguments, sweep or Sweep())
        return 0
    return {"verify": run_verify, "frontier": run_frontier, "schema": run_schema}[arguments.command](arguments)


if __name__ == "__main__":
    sys.exit(main())
