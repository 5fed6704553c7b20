"""
=====================================
A table that does not fit into memory
=====================================

The rows lie in Parquet files. A private generator counts them chunk by chunk, and FairPATE gives each row to one
teacher by a hash of its id. Neither loads the table. The script writes a small table; ``python plot_large_table.py
10000000`` writes ten million rows, and shows that memory stays where it is. The noise comes from the operating system,
so every run gives slightly different figures.
"""

# %%
# Files, written chunk by chunk
# -----------------------------
import resource
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

N_ROWS = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 60_000
CHUNK = max(20_000, N_ROWS // 100)
DELTA = min(1e-5, 0.1 / N_ROWS)  # well below one over the number of rows
folder = Path(tempfile.mkdtemp())


def people(n_rows, rng, first=0):
    sex = rng.integers(2, size=n_rows)
    age = rng.integers(18, 80, size=n_rows)
    job = rng.choice(3, size=n_rows)
    score = 0.04 * (age - 45) + 0.8 * (job == 1) + 0.7 * sex + rng.logistic(size=n_rows)
    return pd.DataFrame(
        {
            "id": np.arange(first, first + n_rows),
            "age": age,
            "job": np.array(["clerk", "nurse", "pilot"])[job],
            "sex": np.array(["f", "m"])[sex],
            "rich": np.where(score > 0.8, "yes", "no"),
        }
    )


rng = np.random.default_rng(0)
for start in range(0, N_ROWS, CHUNK):
    people(CHUNK, rng, start).to_parquet(folder / f"{start:09d}.parquet", index=False)
print(f"{N_ROWS:,} rows in {len(list(folder.iterdir()))} files")

# %%
# What is public about them
# -------------------------
from skfairdp import Schema
from skfairdp.schema import Category, Number

schema = Schema(
    {
        "age": Number(18, 79, step=1),
        "job": Category(["clerk", "nurse", "pilot"]),
        "sex": Category(["f", "m"]),
        "rich": Category(["no", "yes"]),
    },
    label="rich",
    groups="sex",
)
first = pd.read_parquet(folder / "000000000.parquet")
print(
    schema.misfits_by_kind(first).to_string()
)  # for your own eyes: a fit may not tell

# %%
# A private generator: two passes over the files
# ----------------------------------------------
# Counts are sums: each row adds its own part, in whichever file it lies, and noise is added once.
from skfairdp import PFGuardGenerator

generator = PFGuardGenerator(epsilon=1.0, delta=DELTA, schema=schema).fit(folder)
print(generator.sample(4).to_string())

# %%
# Teachers: each row has one, by its id
# -------------------------------------
# Ids are public and say nothing about a person. Only noisy votes on the public rows leave the teachers.
from skfairdp import FairPATEClassifier, KeyedRows

public, test = people(3000, rng).drop(columns="rich"), people(5000, rng)
model = FairPATEClassifier(epsilon=1.0, delta=DELTA, gamma=0.05, schema=schema)
model.fit(KeyedRows(folder, key="id"), X_public=public)
print(
    f"ε = {model.privacy_.epsilon:.3f}, {model.n_teachers_} teachers, accuracy "
    f"{model.score(test, test['rich']):.3f}"
)
print(
    f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB at the "
    "peak of this process"
)

# %%
# What the generator kept
# -----------------------
# The figure shows the share of the rich by age, in the files and among synthetic rows.
sampled = generator.sample(20_000)
ages = np.arange(18, 81, 6)
fig, ax = plt.subplots(figsize=(6, 3.5))
for rows, name in (
    (
        pd.concat(
            pd.read_parquet(file, columns=["age", "rich"]) for file in folder.iterdir()
        ),
        "private",
    ),
    (sampled, "synthetic"),
):
    bins = pd.cut(rows["age"], ages, right=False)
    share = (rows["rich"] == "yes").groupby(bins, observed=False).mean()
    ax.plot(ages[:-1] + 3, share.to_numpy(), "o-", label=name)
ax.set(xlabel="age", ylabel="share that is rich", ylim=(0, 1))
ax.legend()
fig.tight_layout()
