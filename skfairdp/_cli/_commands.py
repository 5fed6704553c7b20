"""The commands: a frontier of your own table, its schema, a demo on a benchmark, and the check of a statement."""

import argparse
import math
import re
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skfairdp._cli import _files
from skfairdp._cli._files import UsageError, writable_folder, write_frontier

if TYPE_CHECKING:
    import pandas as pd

    from skfairdp.datasets import PrivatePublicTestSplit

#: What helps in Python, and is nothing that the command line takes.
_IN_PYTHON_ALONE = {
    ", or give public rows": "",
    ", give public rows of that group": "",
    r", or of the release: known=\{.*?\}\.": ", or of a --schema.",
    r": known=\{.*?\}([;.])": r": write a file (skfairdp schema TABLE --out FILE) and give it as --schema FILE\1",
    r"\b([Rr]aise) '?epsilons?'?": r"\1 --epsilon",
    r"Schema\.misfits\(table\) counts them": "skfairdp schema check TABLE --schema FILE counts them",
    r"set what they count as: Category\(.*?\), or missing=True": "say in that file 'others: VALUE', or 'missing: true'",
    r"for example fillna\('unknown'\)": "such as unknown, in the file (None, NA, null are missing unless a --schema "
    "lists them)",
    r"Call schema\.misfits_by_kind\(X\)": "Call skfairdp schema check TABLE --schema FILE",
}
_TECHNICAL = (DeprecationWarning, FutureWarning, RuntimeWarning)  # of other libraries, for their programmers


def print_frontier(table: "pd.DataFrame") -> None:
    """Print the models that no other one beats, and what the whole table costs."""
    from skfairdp.inspection import epsilon_meaning, epsilon_text
    from skfairdp.model_selection import utility_in
    from skfairdp.privacy import rounded_up

    utility = utility_in(table)
    name, shape = ("accuracy", "9.2%") if utility == "accuracy" else ("R²", "9.3f")
    same = ["epsilon", "disparity", utility, "coverage"]
    distinct = table.sort_values(["epsilon", "disparity", "idp3", "gamma"]).drop_duplicates(same)
    shown = distinct[distinct["non_dominated"]]
    attrs = table.attrs
    delta = _delta(attrs["delta"])
    print(
        f"\n{len(table)} models with {len(distinct)} different outcomes; the {len(shown)} below are not beaten by "
        f"another one in ε, gap, {name} and coverage.\nε is certified and protects one {attrs['protects']} "
        f"({attrs['neighboring_relation']}), δ = {delta}.\n"
    )
    several = table["estimator"].nunique() > 1
    print(f"{'ε':>7} {'γ':>6} {'IDP3':>6} {'gap':>7} {name:>9} {'coverage':>9}{'  method' if several else ''}")
    for row in shown.to_dict("records"):
        gap = row["disparity"]
        gamma = "none" if math.isnan(row["gamma"]) else f"{row['gamma']:g}"
        refuses = "no" if not row["idp3"] else "alone" if math.isnan(row["student_gamma"]) else "top"
        print(
            f"{epsilon_text(row['epsilon']):>7} {gamma:>6} {refuses:>6} {'?' if math.isnan(gap) else f'{gap:.3f}':>7} "
            f"{'?'.rjust(9) if math.isnan(row[utility]) else format(row[utility], '>' + shape)} {row['coverage']:>9.1%}"
            + (f"  {row['estimator']}" if several else "")
        )
    for one in attrs.get("references", []):
        print(f"{'':>22} {one['disparity']:>7.3f} {one[utility]:>{shape}}  to compare with: {one['name']}")
    if shown["idp3"].any():
        print("\nIDP3 top: after a student trained under γ. IDP3 alone: after a free student, so it refuses more.")
    n_fits = attrs["n_fits"]
    releases = "1 release, every γ from it" if n_fits == 1 else f"{n_fits} releases, every γ from them"
    print(
        f"\nPublishing the whole table ({releases}) costs "
        f"ε = {epsilon_text(attrs['epsilon_total'])} at δ = {delta}.\n"
        f"{epsilon_meaning(attrs['epsilon_total'], attrs['delta'], attrs['protects'], attrs['neighboring_relation'])}\n"
        + (
            f"Gap, {name} and coverage: {attrs['n_test']:,} test rows, which no ε covers."
            if "n_test" in attrs
            else f"Gap, {name} and coverage: noisy tables of rows that no model has seen, covered by the same ε."
        )
    )
    if f"{utility}_error" in table and table[f"{utility}_error"].notna().any():
        most = table[f"{utility}_error"].max()
        within = rounded_up(most, 2) if utility == "r2" else f"{rounded_up(100 * most, 2)}%"
        print(
            f"Each {name} is right to within {within} (95 %), noise and sampling together: closer models "
            "cannot be distinguished."
        )
    if table[utility].isna().any():
        print(f"{name} of '?' is not known: the noise hides it. More rows or a larger ε show it.")
    if table["disparity"].isna().any():
        print("A gap of '?' is not known: the noise hides all groups but one. More rows or a larger ε show it.")


def print_notes(table: "pd.DataFrame", caught: Sequence[warnings.WarningMessage]) -> None:
    """Print each warning once, and hand it to the page."""
    ours = [warning for warning in caught if warning.category.__module__ in ("builtins", "skfairdp.exceptions")]
    spoken = [str(warning.message) for warning in ours if not issubclass(warning.category, _TECHNICAL)]
    table.attrs["notes"] = list(dict.fromkeys(map(_for_the_shell, spoken)))
    for message in table.attrs["notes"]:
        print(f"Note: {message}")


_IN_PYTHON = "give the values if they are public: known={'name': Category([...])}."
_IN_A_FILE = (
    "write the values that you know into a file (skfairdp schema TABLE --out FILE) and give it as --schema FILE."
)
_TEMPLATE_HEAD = """\
# What is public about this table. Fill in nulls from a code book or a form, never from the private rows; delete the
# columns that models should not use. Kinds were guessed from the file: number, category, boolean, date. A "guess" says
# what texts look like in the rows: write it into the column if you know it from elsewhere, and delete it.
"""


def run_frontier(arguments: argparse.Namespace) -> int:
    """Sweep the user's own table."""
    from skfairdp.inspection import epsilon_text

    started = time.perf_counter()
    schema, said = (None, None) if arguments.schema is None else _files.read_schema(arguments.schema)
    known = said["known"].items() if said else ()
    paid = any(getattr(column, "privacy_", None) for _, column in known)  # a file of an earlier run
    read = [arguments.table, *([arguments.schema] if said and schema is None and not paid else [])]
    made = (*_files.FRONTIER_FILES, "schema.yaml", "privacy.json")
    folder = _files.writable_folder(arguments.out, (*made, _files.LEDGER_FILE), read)
    _files.writable_folder(arguments.out, made, [arguments.ledger] if arguments.ledger else [])
    if schema is None and not paid:
        _files.refuse_handwritten(folder / "schema.yaml")
    table = _files.read_table(arguments.table, types=False, listed=_listed(known))
    label = arguments.label or (said["label"] if said else None)
    groups = tuple(arguments.group or (said["groups"] if said else ()))
    if label is None or not groups:
        raise _files.UsageError(
            "give --label, the column to predict, and --group, the column whose groups are compared (or name both in "
            "the schema)"
        )
    amount = _bounds_of_label(said["known"].get(label) if said else None, label, arguments)
    subject = arguments.subject or (said.get("subject") if said else None)
    roles = (label, *groups, *(role for role in (subject, arguments.exposure) if role is not None))
    if schema is not None:
        schema = _files.with_roles(schema, label, groups, subject, arguments.schema)
    _files.check_columns(table, (*(said["known"] if said else ()), *roles), arguments.table, roles=roles)
    if said and schema is None:  # columns that the file does not name are left out, as with a whole schema
        schema = {**dict.fromkeys(name for name in table.columns if name not in roles), **said["known"]}
    if amount is not None:
        schema = {**(schema or {}), label: amount}
    size = f"{len(table):,} rows" if subject is None else f"{table[subject].nunique():,} different {subject}"
    print(f"{arguments.table}: {size}. Three quarters to learn from, one quarter to measure on.")
    ledger = _files.open_ledger(arguments.ledger or str(folder / _files.LEDGER_FILE), arguments.budget, arguments.delta)
    found = _swept(table, label, groups, subject, schema, arguments, folder=folder, ledger=ledger)
    print_frontier(found.frame)
    written = _files.write_frontier(found.frame, folder)
    with _files.replaced(folder) as new:
        statement = found.privacy.statement(subject="a frontier of models and its figures", ledger=ledger)
        (new / "privacy.json").write_text(statement.to_json(), encoding="utf-8")
    if found.schema.privacy_ is not None:
        _files.save_schema(found.schema, folder)
        written.append("schema.yaml")
    print(f"In the ledger {ledger.path}: ε = {epsilon_text(ledger.epsilon_spent)} at δ = {_delta(ledger.delta)}.")
    files = ", ".join(str(folder / file) for file in (*written, "privacy.json"))
    print(f"Wrote {files} ({time.perf_counter() - started:.0f} s).")
    return 0


def _bounds_of_label(known: Any, label: str, arguments: argparse.Namespace) -> Any:
    """The label as an amount where the command line says its bounds; refuses what is said twice, or not at all."""
    from skfairdp.schema import Column, Number

    is_amount, source = isinstance(known, Number), f"--schema {arguments.schema}"
    if arguments.task == "class" and (is_amount or arguments.bounds):
        raise _files.UsageError(f"--task class: by {'--bounds' if arguments.bounds else source} {label!r} is an amount")
    if not arguments.bounds:
        if arguments.task == "amount" and not is_amount:
            raise _files.UsageError(
                f"--task amount needs bounds of {label!r} that are public: --bounds LOW HIGH, or a number in a --schema"
            )
        return None
    if isinstance(known, Column):
        raise _files.UsageError(f"--bounds: {source} describes {label!r} already. Write its bounds there")
    low, high = arguments.bounds
    if not low < high:
        raise _files.UsageError(f"--bounds {low:g} {high:g}: the first must be the smaller one")
    return Number(low, high)


def _swept(
    table: "pd.DataFrame", label: str, groups: tuple[str, ...], subject: str | None, schema: Any,
    arguments: argparse.Namespace, *, folder: Path, ledger: Any,
) -> Any:  # fmt: skip
    """The frontier of the table, and its warnings as notes."""
    from skfairdp.exceptions import BudgetExceededError, LedgerError
    from skfairdp.inspection import epsilon_text
    from skfairdp.model_selection import frontier_of_table
    from skfairdp.schema import IncompleteSchemaError

    def announce(most: float) -> None:
        ceiling = "no ceiling" if math.isinf(ledger.epsilon) else f"a ceiling of {ledger.epsilon:g}"
        price = f"ε = {epsilon_text(most)} at δ = {_delta(arguments.delta)}"
        print(
            f"This will spend {price} in all, for the schema, models and figures. In the ledger {ledger.path}: "
            f"ε = {epsilon_text(ledger.epsilon_spent)}, {ceiling}.",
            flush=True,
        )

    bought: list[str] = []
    hidden: list[str] = []

    def keep(schema: Any) -> None:
        _files.save_schema(schema, folder)
        path, reuse = folder / "schema.yaml", "at no further cost."
        roles = {name: schema.columns[name] for name in (schema.label, *schema.groups)}
        released = {name: one for name, one in roles.items() if one.privacy_ is not None}
        first = {name: one.values[0] for name, one in released.items() if getattr(one, "others", "") is None}
        if first:
            hidden.append(
                f"Rows of labels or groups that noise hides, if there are any, counted here as {first}; a fit by "
                f"{path} refuses them."
            )
        bought.append(f" The schema is released and saved: edit {path}, or reuse it with --schema {path} {reuse}")

    with warnings.catch_warnings(record=True) as caught:  # said once, not across the progress bar
        warnings.simplefilter("always")
        try:
            found = frontier_of_table(
                table, label=label, groups=groups, subject=subject, exposure=arguments.exposure,
                epsilons=sorted(set(arguments.epsilon)), delta=arguments.delta, schema=schema,
                methods=arguments.methods and list(dict.fromkeys(arguments.methods)),
                dataset=Path(arguments.table).name, verbose=1, random_state=arguments.seed, ledger=ledger,
                announce=announce, keep=keep,
            )  # fmt: skip
        except IncompleteSchemaError as error:
            raise _files.UsageError(f"{arguments.table}: {_go_on(error, folder, label, groups, subject)}") from None
        except (BudgetExceededError, LedgerError) as error:
            said = f"{_in_words(error)} Ask for fewer or smaller --epsilon.{''.join(bought)}"
            raise _files.UsageError(f"{arguments.table}: {said}") from None
        except ValueError as error:
            raise _files.UsageError(f"{arguments.table}: {_in_words(error)}{''.join(bought)}") from None
    print_notes(found.frame, caught)
    for line in hidden:
        print(line)
    return found


def _delta(delta: float) -> str:
    return f"{delta:g}".replace("e-0", "e-")


def _in_words(error: Exception) -> str:
    return _for_the_shell(" ".join(str(error).split()).replace(_IN_PYTHON, _IN_A_FILE))


def _for_the_shell(said: str) -> str:
    for words, instead in _IN_PYTHON_ALONE.items():
        said = re.sub(words, instead, said)
    return said


def _go_on(error: Any, folder: Path, label: str, groups: tuple[str, ...], subject: str | None) -> str:
    """What to do after a schema that was paid for in part; what was found of it is kept."""
    said = f"no value that enough rows share was found in {list(error.absent)}. What was spent is not refunded."
    if not error.found:
        return f"{said} Raise --epsilon, or {_IN_A_FILE}"
    path = _files.save_unfinished(error, folder, label, groups, subject)
    return (
        f"{said} {path} holds the columns that were found, {list(error.found)}. Add what is public about the others, "
        f"or raise --epsilon, and run again with --schema {path}: what was found is reused at no cost."
    )


def _with_kinds_of_texts(table: "pd.DataFrame", name: str) -> "pd.DataFrame":
    """Cells like 007 are names, whose zeros pandas drops; those like 1.200 may be twelve hundred; and cells like
    2026-11-23 are days, which it leaves texts."""
    import pandas as pd

    from skfairdp.schema import Schema

    texts = _files.read_table(name, types=False)
    for column in table.select_dtypes(["object", "string"]).columns:
        cells = texts[column].astype(object).dropna().map(str).str.strip()
        if len(cells) and cells.str.match(r"\d{4}-\d\d-\d\d(\D|$)").all():
            days = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
            table[column] = days.dt.tz_localize(None) if days.notna().all() else table[column]
    numbers = texts[[*table.select_dtypes("number").columns]].astype(object)
    for column, looks in Schema.template(numbers)["columns"].items():
        cells = numbers[column].dropna().astype(str)
        if "or" in looks.get("guess", ()) or cells.str.match(r"\s*[-+]?0\d").any():
            table[column] = numbers[column]
    return table


def _listed(known: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The values of columns that say them: a word like NA is one where it is listed."""
    from skfairdp.schema import Category

    return {name: column.values for name, column in known if isinstance(column, Category)}


def run_schema(arguments: argparse.Namespace) -> int:
    """Write the template of a schema, or compare one with a table."""
    *command, arguments.table = arguments.table
    if command == ["check"]:
        return _check_schema(arguments)
    if command:
        raise _files.UsageError(f"schema takes one TABLE, and got {len(command) + 1}")
    return _write_template(arguments)


def _check_schema(arguments: argparse.Namespace) -> int:
    """Count what a schema does not foresee; 1 where there is some."""
    schema, said = _files.read_schema(arguments.schema)
    if schema is None:
        unfilled = [name for name, known in said["known"].items() if isinstance(known, str)]
        raise _files.UsageError(f"--schema {arguments.schema} is not filled in yet: something is null in {unfilled}")
    table = _files.read_table(arguments.table, types=False, listed=_listed(schema.columns.items()))
    _files.check_columns(table, list(schema.columns), arguments.table, roles=())
    try:
        counts, wrong = schema.misfits_by_kind(table), schema.misfits(table)
    except ValueError as error:
        raise _files.UsageError(f"{arguments.table}: {error}") from None
    print(f"{arguments.table}: {len(table):,} rows. These counts are exact: do not publish them.")
    print(counts.assign(declared=[str(schema.columns[name]) for name in counts.index]).to_string())
    if not wrong.any():
        others = [name for name in counts.index if getattr(schema.columns[name], "others", None) is not None]
        moved = {name: n for name in others if (n := int(counts.loc[name].sum()))}
        print("Every cell fits the schema." + (f" Of these, as 'others': {moved}." if moved else ""))
        return 0
    print(
        f"{int(wrong.sum()):,} cells of {[*counts.index[wrong > 0]]} are not. Numbers beyond bounds count as the bound,"
        " other cells as missing, as the middle, or as 'others'. Write how texts look ('decimal', 'unit', 'format'), "
        "wider bounds or more values, if you know them from elsewhere."
    )
    return 1


def _write_template(arguments: argparse.Namespace) -> int:
    import json

    from skfairdp.schema import Schema

    out = None if arguments.out is None else Path(arguments.out).expanduser()
    if out is not None and out.suffix not in (".yaml", ".yml", ".json"):
        raise _files.UsageError(f"--out {arguments.out} must end with .yaml, .yml or .json")
    table = _with_kinds_of_texts(_files.read_table(arguments.table, types=True), arguments.table)
    roles = [role for role in [arguments.label, *arguments.group, arguments.subject] if role]
    _files.check_columns(table, roles, arguments.table, roles=roles)
    if twice := next((role for role in roles if roles.count(role) > 1), ""):
        raise _files.UsageError(f"--label, --group and --subject name {twice!r} twice. Name another column")
    template = Schema.template(table, label=arguments.label, groups=arguments.group, subject=arguments.subject)
    if out is not None and out.suffix == ".json":
        text = json.dumps(template, indent=2, ensure_ascii=False) + "\n"
    else:
        import yaml

        text = _TEMPLATE_HEAD + yaml.safe_dump(template, sort_keys=False, allow_unicode=True)
    if out is None:
        print(text, end="")
        return 0
    try:
        with out.open("x", encoding="utf-8") as file:  # nor through a link
            file.write(text)
    except FileExistsError:
        raise _files.UsageError(f"{out} exists, and may be filled in already: name another file") from None
    except OSError as error:
        raise _files.UsageError(f"cannot write {out}: {error.strerror or error}") from None
    print(
        f"Wrote {out}. Fill in what you know from public sources, the label and the group above all; what stays null "
        f"is found with a fifth of ε. Then: skfairdp frontier TABLE --schema {out}"
    )
    return 0


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
    name: str, split: "PrivatePublicTestSplit", epsilons: Sequence[float], gammas: Sequence[float | None], seed: int
) -> "pd.DataFrame":
    from sklearn.linear_model import LogisticRegression

    from skfairdp.model_selection import frontier
    from skfairdp.pate import FairPATEClassifier

    test = {"X_test": split.X_test, "y_test": split.y_test, "sensitive_features_test": split.sensitive_features_test}
    how: dict[str, Any] = {"epsilons": epsilons, "gammas": gammas, "dataset": name, "random_state": seed, "verbose": 1}
    reference = LogisticRegression(max_iter=1000)  # these rows are public benchmarks
    model = FairPATEClassifier(classes=[0, 1])
    return frontier(model, split.X, split.y, X_public=split.public, reference=reference, **test, **how)


def _load(data: str, seed: int, quick: bool, n_synthetic: int) -> tuple[str, "PrivatePublicTestSplit", str]:
    """Name, encoded split, and a sentence on where the data came from."""
    from skfairdp import datasets
    from skfairdp.preprocessing import make_tabular_encoder

    wanted, note = data, ""
    if data == "auto":
        wanted = "adult" if datasets.data_file("adult") is not None else "synthetic"
        found_none = "; Adult was not found: set SKFAIRDP_DATA to the folder with adult.csv.gz to use it"
        note = "" if wanted == "adult" else found_none
    if wanted == "synthetic":
        rows: tuple[Any, Any, Any] = datasets.make_biased_classification(
            n_synthetic, disparity=0.2, group_proportions=(0.33, 0.67), base_rate=0.25, as_frame=True, random_state=seed
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


_NO_PROOF = (
    "They are about the releases that the file names. Only a ledger of the owner of the rows can show that there were "
    "no others."
)


def run_verify(arguments: argparse.Namespace) -> int:
    """Print what the file claims beside what was recomputed."""
    from skfairdp.privacy import UnreadableStatementError, verify_file

    try:
        checks = verify_file(arguments.file, ledger=arguments.ledger)
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
        said = f"skfairdp: refuted: {check.figure} is claimed as {check.claimed}; recomputed: {check.recomputed}"
        print(_plain(said), file=sys.stderr)
    if not wrong:
        print(f"All {len(checks)} claims hold.\n{_NO_PROOF}")
    return 1 if wrong else 0


def _plain(text: str) -> str:
    """Without what a terminal would obey: a file is somebody's, and one line of it is one line here."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
