"""
=====================
Voting modes compared
=====================

Teachers vote on public rows. ``voting`` says what leaves the private side:

* ``"soft"`` releases the noisy vote share of every public row, once. Gate, labels and students are post-processing, so
  every ``gamma`` and ``threshold`` comes from the same release.
* ``"gnmax"`` releases the noisy winner of each query, and applies the fairness gate afterwards.
* ``"confident"`` asks the fairness gate *before* each vote, then whether enough teachers agree, then who won. A query
  that the gate refuses costs nothing.

All three have the same certified ε here. The page reads ``SKFAIRDP_DATA`` as the quick start does.
"""

# %%
# One split, one encoder
# ----------------------
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np

from skfairdp import FairPATEClassifier
from skfairdp.datasets import (
    data_file,
    fetch_adult,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.metrics import demographic_disparity
from skfairdp.preprocessing import make_tabular_encoder

if data_file("adult") is not None:
    adult = fetch_adult()
    rows = adult.data, adult.target, adult.sensitive_features
else:
    rows = make_biased_classification(
        30_000, disparity=0.25, as_frame=True, random_state=0
    )
split = train_private_public_test_split(*rows, random_state=0).encode(
    make_tabular_encoder()
)


def measure(model):
    """Accuracy and gap on the test rows."""
    predicted = model.predict(split.X_test)
    gap = demographic_disparity(
        None, predicted, sensitive_features=split.sensitive_features_test
    )
    return float(np.mean(predicted == np.asarray(split.y_test))), gap


# %%
# Same ε, three kinds of release
# ------------------------------
# Hard votes ask about at most 1000 public rows by default, because each answer costs. Soft votes ask about all rows.
# Their noise grows with the root of the number of rows, and the student averages it out.
EPSILONS = (0.5, 1.0, 4.0)
points = defaultdict(list)
for voting in ("soft", "confident", "gnmax"):
    for epsilon in EPSILONS:
        model = FairPATEClassifier(
            epsilon=epsilon, gamma=0.05, voting=voting, classes=[0, 1], random_state=0
        )
        model.fit(split.X, split.y, X_public=split.public)
        accuracy, gap = measure(model)
        points[voting].append((accuracy, gap))
        print(
            f"{voting:9} ε = {model.epsilon_spent_:.3f}: {model.n_answered_} of "
            f"{model.n_queries_} queries labelled, "
            f"with a gap of {model.released_gap_:.3f}; student: accuracy "
            f"{accuracy:.3f}, gap {gap:.3f}"
        )

# %%
# The gap of the *labels* is at most ``gamma`` by construction. The gap of the *student* is held on the public rows. On
# other rows it scatters around that.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for voting, values in points.items():
    accuracies, gaps = zip(*values, strict=True)
    left.plot(EPSILONS, accuracies, marker="o", label=voting)
    right.plot(EPSILONS, gaps, marker="o", label=voting)
for axes, quantity in ((left, "accuracy"), (right, "demographic disparity")):
    axes.set(xscale="log", xlabel="certified ε", ylabel=quantity)
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
right.axhline(0.05, color="0.6", linewidth=1)
left.legend(title="voting")

# %%
# What may be swept for free
# --------------------------
# From soft votes you get every gate, threshold and student for free, and from noisy winners every gate. From confident
# votes you get other students only, because the gate decided which votes were taken.
for voting in ("soft", "gnmax", "confident"):
    model = FairPATEClassifier(
        epsilon=1.0, gamma=0.05, voting=voting, classes=[0, 1], random_state=0
    )
    model.fit(split.X, split.y, X_public=split.public)
    try:
        accuracy, gap = measure(model.refit(gamma=None))
        print(
            f"{voting}: without the constraint accuracy {accuracy:.3f}, gap "
            f"{gap:.3f}, at no further cost"
        )
    except ValueError as refusal:
        print(f"{voting}: {refusal}")

# %%
# Who is refused a label
# ----------------------
# The gate keeps the rates together by withholding labels, and it does so unevenly. The rates below are those of public
# rows.
groups = list(model.rejection_rate_by_group_)
figure, axes = plt.subplots(figsize=(4.5, 3), layout="constrained")
axes.bar(
    [str(group) for group in groups],
    [model.rejection_rate_by_group_[group] for group in groups],
)
axes.set(
    ylabel="share of queries without a label", title="confident voting, ε = 1, γ = 0.05"
)
plt.show()
