"""
===========================
Several rows of one person
===========================

Patients with one to six visits each. A guarantee for one *visit* protects a patient of six visits less than one of a
single visit. With ``subject=`` all visits of a patient are protected together. The other way to such a guarantee is
:func:`~skfairdp.privacy.group_privacy`: a fit for single visits that spends so little on each that six of them together
cost ε.

The figure shows what each of the three costs in accuracy on visits of other patients.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skfairdp import FairDPSGDClassifier, PATEClassifier
from skfairdp.privacy import group_privacy

# %%
# Visits
# ------
# Half of what a feature says is the patient's own, and half the visit's.

rng = np.random.default_rng(0)
weights = np.array([2.0, 1.5, 1.0, 0.5])


def visits(n_patients):
    """Rows of visits, whether each went well, and whose they are."""
    patients = np.repeat(np.arange(n_patients), rng.integers(1, 7, n_patients))
    own, of_visit = (
        rng.normal(size=(n_patients, 4)),
        rng.normal(size=(len(patients), 4)),
    )
    X = pd.DataFrame(
        (own[patients] + of_visit) / np.sqrt(2), columns=["a", "b", "c", "d"]
    )
    y = (X @ weights + rng.logistic(size=len(X)) > 0).astype(int)
    return X, y, pd.Series(patients, name="patient_id")


X, y, patients = visits(4000)
X_public, X_test, y_test = visits(500)[0], *visits(4000)[:2]

# %%
# Three guarantees
# ----------------
# ``subject`` is one id per row, or the name of the column that holds it.

EPSILON, DELTA, MOST = 0.5, 1e-5, 6
_, grown = group_privacy(EPSILON / MOST, DELTA, MOST)
for_one_visit = {"epsilon": EPSILON / MOST, "delta": DELTA * DELTA / grown}


def accuracy(make, given, **fit):
    """Of one fit, on visits of other patients."""
    model = make(**given).fit(X, y, **fit)
    print(model.privacy_)
    return model.score(X_test, y_test)


def pate(**given):
    return PATEClassifier(classes=[0, 1], random_state=0, **given)


def dpsgd(**given):
    return FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0, **given)


budget = {"epsilon": EPSILON, "delta": DELTA}
found = {
    name: [
        accuracy(make, budget, **public),
        accuracy(make, budget, subject=patients, **public),
        accuracy(make, for_one_visit, **public),
    ]
    for name, make, public in (
        ("PATE", pate, {"X_public": X_public}),
        ("DP-SGD", dpsgd, {}),
    )
}

# %%
# What they cost
# --------------

labels = [
    "one visit",
    "all visits of a patient,\nby subject=",
    "all visits of a patient,\nby group privacy",
]
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
for place, (name, values) in enumerate(found.items()):
    bars = axes.bar(np.arange(3) + 0.35 * place, values, width=0.33, label=name)
    axes.bar_label(bars, fmt="%.3f")
axes.set(
    xticks=np.arange(3) + 0.175, xticklabels=labels, ylim=(0.5, 0.9), ylabel="accuracy"
)
axes.set_title(f"What is protected, at epsilon = {EPSILON:g}")
axes.legend(loc="upper right")
plt.show()
