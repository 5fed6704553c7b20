"""
=================================
A private model that you can read
=================================

With ``net="additive"`` every column of a table adds a term of its own to the log odds. ``AdditiveTerms`` shows the
terms, explains single decisions, and makes curves go in one direction. All of that is post-processing of released
weights: it costs nothing beyond the ε of the fit.
"""

# %%
# Who pays back a loan
# --------------------
# The table is made up. Older people pay back more often, up to a point, and so do people with a higher income. One in
# ten does not state an income.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skfairdp import FairDPSGDClassifier
from skfairdp.inspection import AdditiveTerms
from skfairdp.schema import Category, Number, Schema

rng = np.random.default_rng(0)
n = 10_000
table = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n),
        "income": rng.lognormal(10.3, 0.6, n).round(),
        "purpose": rng.choice(["car", "house", "holiday"], n),
    }
)
odds = (
    1.2 * np.tanh((table["age"] - 30) / 10)
    + 1.5 * (np.log(table["income"]) - 10.3)
    - (table["purpose"] == "holiday")
)
table["paid"] = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
table.loc[rng.random(n) < 0.1, "income"] = np.nan

schema = Schema(
    {
        "age": Number(18, 80),
        "income": Number(0, 1_000_000, missing=True),
        "purpose": Category(["car", "house", "holiday"]),
        "paid": Category([0, 1]),
    },
    label="paid",
)
train, test = table[:8000], table[8000:]
print(
    schema.misfits_by_kind(train).to_string()
)  # for your own eyes: a fit may not tell
model = FairDPSGDClassifier(
    epsilon=1.0, lam=0, net="additive", schema=schema, random_state=0
).fit(train)
print(f"ε = {model.privacy_.epsilon:.2f}, accuracy {model.score(test):.3f}")

# %%
# What each column adds
# ---------------------
# The bounds of the income are far too wide. The curves still bend where the rows are, because their knots are quantiles
# that the fit released.
terms = AdditiveTerms(model)
terms.plot()
terms.axes_[list(terms.importances.index).index("income")].set_xlim(0, 150_000)
plt.show()

# %%
# The terms of a row explain one decision: they add up to its log odds.
print(terms.explain(test.head(3)).round(2))

# %%
# A higher income never counts against you
# ----------------------------------------
# Noise makes curves wiggle. The monotone model takes the closest curve that never falls, at the same ε.
fair_to_income = terms.monotone({"income": 1})
print(
    f"accuracy {fair_to_income.score(test):.3f}, ε = "
    f"{fair_to_income.privacy_.epsilon:.2f}"
)
figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
for fitted, words in ((model, "as trained"), (fair_to_income, "never falls")):
    frame = AdditiveTerms(fitted).to_frame()
    curve = frame[(frame["column"] == "income") & (frame["value"] != "(missing)")]
    axes.plot(curve["value"].astype(float), curve["log_odds"], marker=".", label=words)
axes.set(xlim=(0, 150_000), xlabel="income", ylabel="log odds")
axes.legend()
plt.show()
