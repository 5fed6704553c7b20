"""
=============================================
The same table, counted by a cluster of dask
=============================================

Each worker reads its own files, counts them or trains its own teachers, and hands on sums and votes. Noise is added
once, in your process. This page starts a local cluster of two workers; for yours you change the ``Client`` and nothing
else. The noise comes from the operating system, so every run gives slightly different figures.
"""

# %%
# Files, a schema, and public rows
# --------------------------------
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skfairdp import Schema
from skfairdp.schema import Category, Number

N_ROWS, N_FILES = 24_000, 4
schema = Schema(
    {
        "age": Number(18, 79, step=1),
        "sex": Category(["f", "m"]),
        "rich": Category(["no", "yes"]),
    },
    label="rich",
    groups="sex",
)


def people(n_rows, rng, first=0):
    sex, age = rng.integers(2, size=n_rows), rng.integers(18, 80, size=n_rows)
    score = 0.05 * (age - 45) + 0.7 * sex + rng.logistic(size=n_rows)
    rows = {
        "id": np.arange(first, first + n_rows),
        "age": age,
        "sex": np.array(["f", "m"])[sex],
    }
    return pd.DataFrame(rows | {"rich": np.where(score > 0.8, "yes", "no")})


# %%
# One fit here, the same fit there
# --------------------------------
# A worker is a process of its own, which reads this script again. So the lines that start the cluster stand behind the
# guard ``if __name__ == "__main__"``. Without noise both fits would release the same numbers, bit for bit: the
# differences that you see below are noise. A fit may not report rows that it cannot read: check the files before.
from skfairdp import FairPATEClassifier, KeyedRows, PFGuardGenerator

print(schema.misfits_by_kind(people(1000, np.random.default_rng(1))).to_string())


def shares(frame):
    """Fit a generator and return the share of the rich by age among its rows."""
    sampled = PFGuardGenerator(epsilon=1.0, schema=schema).fit(frame).sample(20_000)
    return (
        (sampled["rich"] == "yes")
        .groupby(pd.cut(sampled["age"], ages, right=False), observed=False)
        .mean()
    )


ages = np.arange(18, 81, 6)
if __name__ == "__main__":
    import dask.dataframe
    from distributed import Client, LocalCluster

    folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    for k in range(N_FILES):
        size = N_ROWS // N_FILES
        people(size, rng, k * size).to_parquet(folder / f"{k}.parquet", index=False)
    public, test = people(2000, rng).drop(columns="rich"), people(5000, rng)
    frame = dask.dataframe.read_parquet(folder)
    found = {"threads of this machine": shares(folder)}
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        found["two workers of a cluster"] = shares(frame)
        model = FairPATEClassifier(
            epsilon=1.0, gamma=0.05, schema=schema, n_teachers=100, verbose=0
        )
        model.fit(
            KeyedRows(frame, key="id"), X_public=public
        )  # the workers train, and hand on votes
    print(
        f"ε = {model.privacy_.epsilon:.3f}, accuracy "
        f"{model.score(test, test['rich']):.3f}"
    )

    fig, ax = plt.subplots(figsize=(6, 3.5))
    for name, share in found.items():
        ax.plot(ages[:-1] + 3, share.to_numpy(), "o-", label=name)
    ax.set(xlabel="age", ylabel="share that is rich, synthetic rows", ylim=(0, 1))
    ax.legend()
    fig.tight_layout()
