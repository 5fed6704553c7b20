"""The words of the command line: its commands, their arguments, and what may be given for each."""

import argparse
import math
from functools import partial
from typing import Any, NoReturn

from skfairdp import __version__
from skfairdp._cli._files import UsageError

DATA = ("auto", "adult", "bank", "credit", "synthetic")
METHODS = ("synthetic", "fair_pate", "dpsgd", "barycenter")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see: {self.prog} --help)")


def command_line() -> argparse.ArgumentParser:
    """What reads the words after ``skfairdp``."""
    parser = _Parser(prog="skfairdp", description="Differentially private and fair classification.")
    said = "show the version and exit"
    parser.add_argument("--version", action="version", version=f"skfairdp {__version__}", help=said)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _own_table_parser(commands)
    _schema_parser(commands)
    _demo_parser(commands)
    verify = commands.add_parser(
        "verify",
        help="recompute every figure of a privacy statement or a ledger",
        description="Recomputes every figure of a privacy statement (privacy_statement().to_json()) or of a "
        "ledger's file from the releases it lists, with dp-accounting and a second implementation, and without the "
        "data. Exit code 1 and a line for each claim that is too low.",
    )
    verify.add_argument("file", metavar="FILE", help="statement (JSON) or ledger")
    verify.add_argument("--ledger", metavar="LEDGER", help="the ledger's file that the statement has to be of")
    return parser


def _demo_parser(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="sweep privacy budgets and fairness constraints on a data set, and draw the frontier",
        description="Fits FairPATE at several privacy budgets, sweeps the fairness constraint with and "
        "without IDP3, prints the models that no other one beats, and writes frontier.csv, frontier.png and "
        "frontier.html.",
    )
    said = "auto: Adult where SKFAIRDP_DATA has it, else synthetic (default: auto)"
    demo.add_argument("--data", choices=DATA, default="auto", help=said)
    said = "folder for the three files; its own earlier ones are replaced (default: skfairdp-demo)"
    demo.add_argument("--out", metavar="DIR", default="skfairdp-demo", help=said)
    demo.add_argument("--quick", action="store_true", help="fewer rows and two privacy budgets, under 45 seconds")
    said = "for public randomness only: split and partition. The noise stays secret (default: 0)"
    demo.add_argument("--seed", metavar="S", type=_seed, default=0, help=said)


def _own_table_parser(commands: Any) -> None:
    frontier = commands.add_parser(
        "frontier",
        help="what accuracy and fairness your own table allows at several privacy budgets",
        description="Trains each method once per ε on three quarters of the rows, then makes models with and without a "
        "bound on the gap; the other quarter measures them, with noise. No public rows are needed. The ε in "
        "privacy.json covers every figure that is shown, and 'skfairdp verify' recomputes it; the whole cost is "
        "printed before it is spent and charged to a ledger. Without --schema a fifth of the smallest ε (more for few "
        "rows) finds bounds and values.",
    )
    frontier.add_argument("table", metavar="TABLE", help="CSV, TSV or Parquet file, also compressed")
    frontier.add_argument("--label", metavar="COLUMN", help="what to predict (default: that of the schema)")
    said = "the sensitive attribute; of several their intersections"
    frontier.add_argument("--group", metavar="COLUMN", nargs="+", help=said)
    said = "whether the label is a class or an amount (default: class, or amount if the schema's label is a number)"
    frontier.add_argument("--task", choices=("class", "amount"), help=said)
    said = "smallest and largest amount of the label by public knowledge, if no schema gives them"
    frontier.add_argument("--bounds", metavar=("LOW", "HIGH"), nargs=2, type=float, help=said)
    frontier.add_argument("--exposure", metavar="COLUMN", help="of counts: how long or how much each was taken of")
    said = "whose each row is, such as patient_id: all rows of one are protected together (default: as the schema)"
    frontier.add_argument("--subject", metavar="COLUMN", help=said)
    said = "privacy budgets, the schema's included (default: 0.5 1 2)"
    frontier.add_argument("--epsilon", metavar="E", nargs="+", type=_positive, default=[0.5, 1.0, 2.0], help=said)
    said = "(default: 1e-5)"
    frontier.add_argument("--delta", metavar="D", type=partial(_positive, most=1.0), default=1e-5, help=said)
    said = "what is public about the table (see: skfairdp schema); a fifth of the smallest ε finds what is null"
    frontier.add_argument("--schema", metavar="FILE", help=said)
    said = "what to compare; each is one more release for each ε (default: all that predict such a label)"
    frontier.add_argument("--methods", nargs="+", choices=METHODS, help=said)
    said = "folder for the results; its own earlier ones are replaced (default: skfairdp-frontier)"
    frontier.add_argument("--out", metavar="DIR", default="skfairdp-frontier", help=said)
    said = "account of all that is spent on this table; an existing one goes on (default: ledger.jsonl in DIR)"
    frontier.add_argument("--ledger", metavar="FILE", help=said)
    said = "ceiling of a new account: what would go beyond it is refused before anything is spent (default: none)"
    frontier.add_argument("--budget", metavar="E", type=_positive, help=said)
    said = "for public randomness only; the noise is secret (default: 0)"
    frontier.add_argument("--seed", metavar="S", type=_seed, default=0, help=said)


def _schema_parser(commands: Any) -> None:
    schema = commands.add_parser(
        "schema",
        help="write the skeleton of a schema for your table, to be filled in; or check one",
        description="Writes names and kinds of the columns of a table. Fill in bounds and values from what is public: "
        "a code book, a form, never from the private rows. 'skfairdp schema check TABLE' compares a schema with the "
        "table, for your own eyes.",
    )
    schema.add_argument("table", metavar="[check] TABLE", nargs="+", help="CSV, TSV or Parquet file, also compressed")
    said = "what 'check' compares (default: schema.yaml)"
    schema.add_argument("--schema", metavar="FILE", default="schema.yaml", help=said)
    schema.add_argument("--label", metavar="COLUMN", help="what to predict")
    schema.add_argument("--group", metavar="COLUMN", nargs="+", default=[], help="the sensitive attribute")
    schema.add_argument("--subject", metavar="COLUMN", help="whose each row is, which is no feature")
    schema.add_argument("--out", metavar="FILE", help=".yaml, .yml or .json (default: print it)")


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to {2**32 - 1}, got {text!r}")
    return int(text)


def _positive(text: str, most: float = math.inf) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < most:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and below {most:g}, got {text!r}")
    return value
