"""The commands of the command line: each reads files, does one thing with the package, and prints what came of it."""

from skfairdp._cli._arguments import command_line
from skfairdp._cli._commands import Sweep, print_frontier, run_demo, run_frontier, run_schema, run_verify
from skfairdp._cli._files import UsageError, read_table
