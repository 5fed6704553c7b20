"""
=====================================
A raw table, and no public rows
=====================================

One table with texts, gaps and the group as a column, and nothing else: no public rows. You say what is public about
the table in a schema; a private generator learns from the rows; any learner of scikit-learn or fairlearn is trained on
what the generator makes. One ε covers all of it. The noise is drawn from the operating system, so every run gives
slightly different figures.
"""

# %%
# The table
# ---------
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skfairdp.datasets import make_biased_classification

X, y, groups = make_biased_classification(12_000, disparity=0.3, as_frame=True, random_state=0)
table = X.iloc[:, :6].assign(
    job=np.select([X["x6"] > 0.5, X["x6"] < -0.5], ["clerk", "nurse"], "pilot"),
    sex=np.where(groups == 1, "m", "f"),
    hired=np.where(y == 1, "yes", "no"),
)
table.loc[::9, "job"] = None  # gaps
table.loc[::11, "x0"] = np.nan
train, test = train_test_split(table, random_state=0)
print(train.head(3).to_string())

# %%
# What is public about it
# -----------------------
# A schema is written from a code book, without a look at the rows: which columns there are, and what values they may
# hold. ``Schema.template(table)`` writes the skeleton for you to fill in.
from skfairdp import Schema
from skfairdp.schema import Category, Number

schema = Schema(
    {
        "x0": Number(-6, 6, missing=True),
        **{f"x{j}": Number(-6, 6) for j in range(1, 6)},
        "job": Category(["clerk", "nurse", "pilot"], missing=True),
        "sex": Category(["f", "m"]),
        "hired": Category(["no", "yes"]),
    },
    label="hired",
    groups="sex",
)
rows = schema.read(train)
print(schema, schema.classes, schema.group_values)

# %%
# One private model, any learner
# ------------------------------
# The same ε and the same call; only the learner differs. A learner with a constraint is fairer, and a little less
# accurate. Trying another learner on ``generator_`` costs nothing more.
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

from skfairdp import SyntheticDataClassifier
from skfairdp.metrics import demographic_disparity

public = {
    "bounds": {name: (-6.0, 6.0) for name in schema.features if name != "job"},
    "categories": {"job": ["clerk", "nurse", "pilot"]},
    "classes": schema.classes,
    "groups": schema.group_values,
}
points = {}
for name, learner in (
    ("logistic regression", LogisticRegression()),
    ("the same, held to parity", ExponentiatedGradient(LogisticRegression(), DemographicParity())),
):
    model = SyntheticDataClassifier(learner, epsilon=1.0, random_state=0, **public)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own, about pandas
        model.fit(rows.X, rows.y, sensitive_features=rows.sensitive_features["sex"])
    predicted = model.predict(test[list(schema.features)])
    accuracy = np.mean(predicted == test["hired"].to_numpy())
    gap = demographic_disparity(test["hired"], predicted, sensitive_features=test["sex"])
    points[name] = gap, accuracy
    print(f"{name}: accuracy {accuracy:.3f}, gap {gap:.3f}, {model.privacy_}")

fig, ax = plt.subplots(layout="constrained")
for name, (gap, accuracy) in points.items():
    ax.plot(gap, accuracy, "o", label=name)
ax.set(xlabel="gap (demographic disparity)", ylabel="accuracy", title="Two learners, one ε each, no public rows")
ax.legend()
plt.show()

# %%
# What you may publish
# --------------------
# The model, the generator and as many synthetic rows as you like: all of it follows from one release.
print(model.generator_.sample(3, random_state=0).to_string())
print("taken as public:", *model.privacy_.public, sep="\n  ")
