"""
===============================
A raw table, and no public rows
===============================

You have one table, with texts, gaps and the group as a column, and no public rows. In a schema you say what is public
about the table. Then there are two ways. A private generator learns from the rows, and any learner of scikit-learn or
fairlearn is trained on synthetic ones. Or FairPATE asks its teachers about rows that it samples from noisy tables. One
ε covers each. The noise comes from the operating system, so every run gives slightly different figures.
"""

# %%
# The table
# ---------
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skfairdp.datasets import make_biased_classification

X, y, groups = make_biased_classification(
    12_000, disparity=0.3, as_frame=True, random_state=0
)
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
# You write a schema from the code book, without a look at the rows. It says which columns there are, and what values
# they may hold. ``Schema.template(table)`` writes a template for you to fill in.
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
print(schema, schema.classes, schema.group_values)
print(
    schema.misfits_by_kind(train).to_string()
)  # for your own eyes: a fit may not tell

# %%
# One private model, any learner
# ------------------------------
# The ε and the call are the same below, and only the learner differs. A learner with a constraint is fairer, and a
# little less accurate. You may try another learner on ``generator_`` at no further cost.
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

from skfairdp import SyntheticDataClassifier
from skfairdp.metrics import demographic_disparity

points = {}
for name, learner in (
    ("logistic regression", LogisticRegression()),
    (
        "the same, held to parity",
        ExponentiatedGradient(LogisticRegression(), DemographicParity()),
    ),
):
    model = SyntheticDataClassifier(learner, epsilon=1.0, schema=schema, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own, about pandas
        model.fit(train)
    predicted = model.predict(test)
    accuracy = np.mean(predicted == test["hired"].to_numpy())
    gap = demographic_disparity(
        test["hired"], predicted, sensitive_features=test["sex"]
    )
    points[name] = gap, accuracy
    print(f"{name}: accuracy {accuracy:.3f}, gap {gap:.3f}, {model.privacy_}")

# %%
# All fairness levels at the privacy cost of one fit
# --------------------------------------------------
# FairPATE samples rows from noisy tables of the private ones, and asks its teachers about them. Tables and votes share
# one ε. For another γ it trains another student on the same votes, which is free.
from skfairdp import FairPATEClassifier

fair = FairPATEClassifier(epsilon=1.0, gamma=0.1, schema=schema, random_state=0).fit(
    train
)
path = []
for gamma in (0.3, 0.2, 0.1, 0.05, 0.02):
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a gap that is not reached on the sampled rows shows in the figure
        student = fair.refit(gamma=gamma)
    predicted = student.predict(test)
    gap = demographic_disparity(
        test["hired"], predicted, sensitive_features=test["sex"]
    )
    path.append((gap, np.mean(predicted == test["hired"].to_numpy())))
print(
    f"FairPATE: {fair.privacy_}, {fair.n_queries_} rows from its own tables, "
    f"{fair.n_teachers_} teachers"
)

fig, ax = plt.subplots(layout="constrained")
for name, (gap, accuracy) in points.items():
    ax.plot(gap, accuracy, "o", label=name)
ax.plot(*np.transpose(path), ".-", label="FairPATE, one fit, five values of γ")
ax.set(
    xlabel="gap (demographic disparity)",
    ylabel="accuracy",
    title="ε = 1 for each fit, no public rows",
)
ax.legend()
plt.show()

# %%
# What you may publish
# --------------------
# You may publish the model, the generator and as many synthetic rows as you like: all of them follow from one release.
print(model.generator_.sample(3, random_state=0).to_string())
print("taken as public:", *model.privacy_.public, sep="\n  ")
