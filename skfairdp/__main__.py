"""The command line: a frontier of your own table, its schema, a demo, and the check of a privacy statement."""

import argparse
import contextlib
import math
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    import pandas as pd

    from skfairdp.datasets import PrivatePublicTestSplit

__all__ = ["main"]

DATA = ("auto", "adult", "bank", "credit", "synthetic")
METHODS = ("synthetic", "fair_pate", "dpsgd")


class Sweep(NamedTuple):
    """What ``demo`` measures."""

    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0)
    gammas: tuple[float | None, ...] = (0.01, 0.02, 0.05, 0.1, None)
    n_synthetic: int = 40_000


class _UsageError(Exception):
    """Something the caller has to change; its text is the one line that is shown."""


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C. An interrupt of Python's own class that ends an import is remembered: the exit code would not be ours."""


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C raises the class above, where signals may be handled at all."""

    def interrupted(*_: Any) -> NoReturn:
        raise _Interrupted

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


class _Version(argparse.Action):
    """The version, looked up only where it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from skfairdp import __version__

        print(f"skfairdp {__version__}")
        parser.exit()


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
        Exit code: 0; 1 where ``verify`` refutes a claim; 2 with one line on standard error where the arguments, the
        data, the file or the output folder are unusable; 130 where it was interrupted.

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
        with _interruptible():
            return _run(argv, sweep)
    except _UsageError as error:
        print(f"skfairdp: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("skfairdp: interrupted; what had been released until then is spent.", file=sys.stderr)
        return 130


def _run(argv: Sequence[str] | None, sweep: Sweep | None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    if arguments.command == "demo":
        _demo(arguments, sweep or Sweep())
        return 0
    return {"verify": _verify, "frontier": _frontier, "schema": _schema}[arguments.command](arguments)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="skfairdp", description="Differentially private and fair classification.")
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _own_table_parsers(commands)
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
    _verify_parser(commands)
    return parser


def _verify_parser(commands: Any) -> None:
    verify = commands.add_parser(
        "verify",
        help="recompute every figure of a privacy statement or a ledger",
        description="Recomputes every figure of a privacy statement (privacy_statement().to_json()) or of a "
        "ledger's file from the releases it lists, with dp-accounting and a second implementation, and without the "
        "data. Exit code 1 and a line for each claim that is too low.",
    )
    verify.add_argument("file", metavar="FILE", help="statement (JSON) or ledger")


def _own_table_parsers(commands: Any) -> None:
    frontier = commands.add_parser(
        "frontier",
        help="what accuracy and fairness your own table allows at several privacy budgets",
        description="Learns from your table alone: no public rows are needed. Three quarters of the rows teach each "
        "method once for each ε, and models with and without a bound on the gap follow from that; the other quarter "
        "measures them, with noise. Every figure that is shown is covered by the ε in privacy.json, "
        "which 'skfairdp verify' recomputes. Without --schema a fifth of the smallest ε finds bounds and values.",
    )
    frontier.add_argument("table", metavar="TABLE", help="CSV, TSV or Parquet file, also compressed")
    frontier.add_argument("--label", metavar="COLUMN", help="what to predict (default: that of the schema)")
    frontier.add_argument(
        "--group", metavar="COLUMN", nargs="+", help="the sensitive attribute; of several their intersections"
    )
    frontier.add_argument(
        "--epsilon", metavar="E", nargs="+", type=_positive, default=[0.5, 1.0, 2.0],
        help="privacy budgets, the schema's included (default: 0.5 1 2)",
    )  # fmt: skip
    frontier.add_argument("--delta", metavar="D", type=_probability, default=1e-5, help="(default: 1e-5)")
    frontier.add_argument(
        "--schema", metavar="FILE",
        help="what is public about the table (see: skfairdp schema); a fifth of the smallest ε finds what is null",
    )  # fmt: skip
    frontier.add_argument(
        "--methods", nargs="+", choices=METHODS, default=METHODS,
        help="what to compare; each is one more release for each ε (default: all)",
    )  # fmt: skip
    frontier.add_argument(
        "--out", metavar="DIR", default="skfairdp-frontier",
        help="folder for the results; its own earlier ones are replaced (default: skfairdp-frontier)",
    )  # fmt: skip
    frontier.add_argument(
        "--seed",
        metavar="S",
        type=_seed,
        default=0,
        help="for public randomness only; the noise is secret (default: 0)",
    )
    _schema_parser(commands)


def _schema_parser(commands: Any) -> None:
    schema = commands.add_parser(
        "schema",
        help="write the skeleton of a schema for your table, to be filled in",
        description="Writes names and kinds of the columns of a table. Fill in bounds and values from what is public: "
        "a code book, a form, never from the private rows.",
    )
    schema.add_argument("table", metavar="TABLE", help="CSV, TSV or Parquet file, also compressed")
    schema.add_argument("--label", metavar="COLUMN", help="what to predict")
    schema.add_argument("--group", metavar="COLUMN", nargs="+", default=[], help="the sensitive attribute")
    schema.add_argument("--out", metavar="FILE", help=".yaml, .yml or .json (default: print it)")


def _positive(text: str) -> float:
    return _between(text, math.inf)


def _probability(text: str) -> float:
    return _between(text, 1.0)


def _between(text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < most:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and below {most:g}, got {text!r}")
    return value


def _frontier(arguments: argparse.Namespace) -> int:
    """Sweep the user's own table."""
    started = time.perf_counter()
    folder = _writable(arguments.out, ("frontier.csv", "frontier.png", "frontier.html", "schema.yaml", "privacy.json"))
    table = _read_table(arguments.table, types=False)
    schema, said = (None, None) if arguments.schema is None else _read_schema(arguments.schema)
    label = arguments.label or (said["label"] if said else None)
    groups = tuple(arguments.group or (said["groups"] if said else ()))
    if label is None or not groups:
        raise _UsageError("--label and --group say which columns to predict and to compare (or the schema says it)")
    if schema is not None:
        schema = _with_roles(schema, label, groups, arguments.schema)
    absent = [name for name in (*(said["known"] if said else ()), label, *groups) if name not in table.columns]
    if absent:
        raise _UsageError(f"{arguments.table} has no column {', '.join(absent)}; it has {', '.join(table.columns)}")
    if said and schema is None:  # columns that the file does not name are left out, as with a whole schema
        schema = {**dict.fromkeys(name for name in table.columns if name not in (label, *groups)), **said["known"]}
    print(f"{arguments.table}: {len(table):,} rows. Three quarters to learn from, one quarter to measure on.")
    found = _swept(table, label, groups, schema, arguments)
    _report(found.frame)
    written = [*_written(found.frame, folder), *_statement(found, folder, found.schema.privacy_ is not None)]
    print(f"Wrote {', '.join(str(folder / file) for file in written)} ({time.perf_counter() - started:.0f} s).")
    return 0


def _swept(
    table: "pd.DataFrame", label: str, groups: tuple[str, ...], schema: Any, arguments: argparse.Namespace
) -> Any:
    from skfairdp.model_selection import frontier_of_table

    with warnings.catch_warnings(record=True) as caught:  # said once, not across the progress bar
        warnings.simplefilter("always")
        try:
            found = frontier_of_table(
                table, label=label, groups=groups, epsilons=sorted(set(arguments.epsilon)), delta=arguments.delta,
                schema=schema, methods=list(dict.fromkeys(arguments.methods)), dataset=Path(arguments.table).name,
                verbose=1, random_state=arguments.seed,
            )  # fmt: skip
        except ValueError as error:
            said = " ".join(str(error).split()).replace(_IN_PYTHON, _IN_A_FILE)
            raise _UsageError(f"{arguments.table}: {said}") from None
    _note(found.frame, caught)
    return found


def _note(table: "pd.DataFrame", caught: Sequence[warnings.WarningMessage]) -> None:
    """Print each warning once, and hand it to the page."""
    ours = [warning for warning in caught if warning.category.__module__ in ("builtins", "skfairdp.exceptions")]
    spoken = (str(warning.message) for warning in ours if not issubclass(warning.category, _TECHNICAL))
    table.attrs["notes"] = list(dict.fromkeys(spoken))
    for message in table.attrs["notes"]:
        print(f"Note: {message}")


_IN_PYTHON = "say what you know: known={'name': Category([...])}."
_IN_A_FILE = (
    "write the values that you know into a file (skfairdp schema TABLE --out FILE) and give it as --schema FILE."
)
_TECHNICAL = (DeprecationWarning, FutureWarning, RuntimeWarning)  # of other libraries, for their programmers


def _statement(found: Any, folder: Path, released: bool) -> list[str]:
    """Write the privacy statement, and the schema where it was paid for."""
    statement = found.privacy.statement(subject="a frontier of models and its figures")
    (folder / "privacy.json").write_text(statement.to_json(), encoding="utf-8")
    if not released:
        return ["privacy.json"]
    found.schema.save(folder / "schema.yaml")
    return ["schema.yaml", "privacy.json"]


def _schema(arguments: argparse.Namespace) -> int:
    """Write the template of a schema."""
    import json

    from skfairdp.schema import Schema

    out = None if arguments.out is None else Path(arguments.out).expanduser()
    if out is not None and out.suffix not in (".yaml", ".yml", ".json"):
        raise _UsageError(f"--out {arguments.out} must end with .yaml, .yml or .json")
    table = _read_table(arguments.table, types=True)
    roles = [*([arguments.label] if arguments.label else []), *arguments.group]
    absent = [name for name in roles if name not in table.columns]
    if absent:
        raise _UsageError(f"{arguments.table} has no column {', '.join(absent)}; it has {', '.join(table.columns)}")
    template = Schema.template(table, label=arguments.label, groups=arguments.group)
    if out is not None and out.suffix == ".json":
        text = json.dumps(template, indent=2, ensure_ascii=False) + "\n"
    else:
        import yaml

        text = _TEMPLATE_HEAD + yaml.safe_dump(template, sort_keys=False, allow_unicode=True)
    if out is None:
        print(text, end="")
        return 0
    if out.exists():
        raise _UsageError(f"{out} exists, and may be filled in already: name another file")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _UsageError(f"cannot write {out}: {error.strerror or error}") from None
    print(
        f"Wrote {out}. Fill in what you know from public sources, the label and the group above all; what stays null "
        f"is found with a fifth of ε. Then: skfairdp frontier TABLE --schema {out}"
    )
    return 0


_TEMPLATE_HEAD = """\
# What is public about this table. Fill in nulls from a code book or a form, never from the private rows; delete the
# columns that models should not use. Kinds were guessed from the file: number, category, boolean, date.
"""


def _read_table(name: str, *, types: bool) -> "pd.DataFrame":
    """A table as pandas reads it; without types, every cell as the text that the file holds."""
    import pandas as pd

    path = Path(name).expanduser()
    parts = [suffix for suffix in path.suffixes if suffix in (".csv", ".tsv", ".txt", ".parquet", ".pq")]
    if not parts:
        raise _UsageError(f"{name} must be a .csv, .tsv or .parquet file (compressed: .csv.gz)")
    try:
        if parts[-1] in (".parquet", ".pq"):
            return pd.read_parquet(path)
        separator = "\t" if parts[-1] == ".tsv" else ","
        given: dict[str, Any] = {} if types else {"dtype": str}
        table = pd.read_csv(path, sep=separator, skipinitialspace=True, **given)
    except OSError as error:
        raise _UsageError(f"cannot read {name}: {error.strerror or ' '.join(str(error).split())}") from None
    except ImportError:
        raise _UsageError(f"reading {name} needs pyarrow (pip install 'skfairdp[tables]')") from None
    except Exception as error:  # a parser's, a codec's: pandas has many
        raise _UsageError(f"cannot read {name}: {' '.join(str(error).split())}") from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas makes the first cells an index: all names would move
        raise _UsageError(
            f"cannot read {name}: its rows have more cells than its first line has names. Name every column, or take "
            "the separator at the end of the lines away"
        )
    table.columns = table.columns.astype(str)
    return table


def _read_schema(name: str) -> tuple[Any, dict[str, Any]]:
    """A schema, or None where something in the file is null; and what the file says."""
    from skfairdp.schema import Schema

    path = Path(name).expanduser()
    try:
        said = Schema.load_known(path)
        whole = not any(isinstance(known, str) for known in said["known"].values())
        return Schema.load(path) if whole else None, said
    except OSError as error:
        raise _UsageError(f"cannot read --schema {name}: {error.strerror or error}") from None
    except ValueError as error:
        raise _UsageError(f"--schema {name}: {' '.join(str(error).split())}") from None


def _with_roles(schema: Any, label: str, groups: tuple[str, ...], name: str) -> Any:
    """The schema with label and groups of the command line."""
    from skfairdp.schema import Schema

    try:
        return Schema(dict(schema.columns), label=label, groups=groups, n_rows=schema.n_rows)
    except ValueError as error:
        raise _UsageError(f"--schema {name}: {error}") from None


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
    _note(table, caught)
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


def _writable(out: str, files: Sequence[str] = ("frontier.csv", "frontier.png", "frontier.html")) -> Path:
    """Make the folder and prove that files can be written there, before minutes of work."""
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _UsageError(f"cannot write to --out {out}: {error.strerror or error}") from None
    for file in files:
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
        except (OSError, ValueError, EOFError) as error:
            path, said = " ".join(str(datasets.data_file(wanted)).split()), " ".join(str(error).split())
            raise _UsageError(said if path in said or path == "None" else f"{path}: {said}") from None
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
    several = table["estimator"].nunique() > 1
    print(f"{'ε':>7} {'γ':>6} {'IDP3':>6} {'gap':>7} {'accuracy':>9} {'coverage':>9}{'  method' if several else ''}")
    for row in shown.to_dict("records"):
        gamma = "none" if math.isnan(row["gamma"]) else f"{row['gamma']:g}"
        refuses = "no" if not row["idp3"] else "alone" if math.isnan(row["student_gamma"]) else "top"
        print(
            f"{epsilon_text(row['epsilon']):>7} {gamma:>6} {refuses:>6} "
            f"{_gap_text(row['disparity']):>7} {row['accuracy']:>9.2%} {row['coverage']:>9.1%}"
            + (f"  {row['estimator']}" if several else "")
        )
    for one in attrs.get("references", []):
        print(f"{'':>22} {one['disparity']:>7.3f} {one['accuracy']:>9.2%}  to compare with: {one['name']}")
    if shown["idp3"].any():
        print("\nIDP3 top: on top of a student held to γ. IDP3 alone: over a free student, so it refuses more.")
    print(
        f"\nPublishing the whole table ({attrs['n_fits']} releases, every γ from them) costs "
        f"ε = {epsilon_text(attrs['epsilon_total'])} at δ = {delta}.\n"
        f"{epsilon_meaning(attrs['epsilon_total'], attrs['delta'], attrs['protects'])}\n"
        + (
            f"Gap, accuracy and coverage: {attrs['n_test']:,} test rows, which no ε covers."
            if "n_test" in attrs
            else "Gap, accuracy and coverage: noisy tables of rows that no model has seen, covered by the same ε."
        )
    )
    _report_of_noise(table)


def _report_of_noise(table: "pd.DataFrame") -> None:
    """Print how far the figures of a table are to be trusted, where they are noisy."""
    if "accuracy_error" in table:
        print(
            f"Each accuracy is right to within {table['accuracy_error'].max():.1%} (95 %), noise and sampling "
            "together: models that lie closer are not told apart."
        )
    if table["disparity"].isna().any():
        print("A gap of '?' is not known: the noise hides all groups but one. More rows or a larger ε show it.")


def _gap_text(gap: float) -> str:
    return "?" if math.isnan(gap) else f"{gap:.3f}"


if __name__ == "__main__":
    sys.exit(main())
