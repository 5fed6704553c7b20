"""
===============
Why soft labels
===============

PATE can release the noisy *winner* of a vote or the noisy *shares*. Both cost the same. If the noise flips the winner
of a close vote, the student gets a wrong label. A noisy share is only a little off. Close votes are not spread evenly
over people, so flipped labels hurt some groups more than others (Tran, Dinh & Fioretto 2021).

``PATEFairnessAnalysis`` measures this. It reads raw votes, and no ε covers its result: use it on data that you may look
at.
"""

# %%
# The same votes, the same noise, two kinds of labels
# ----------------------------------------------------
import matplotlib.pyplot as plt

from skfairdp import PATEClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.papers import (
    ExcessiveRiskDisplay,
    FlippingProbabilityDisplay,
    PATEFairnessAnalysis,
)

X, y, groups = make_biased_classification(
    4500, disparity=0.3, group_proportions=(0.25, 0.75), random_state=0
)
private, public = slice(500, None), slice(0, 500)
model = PATEClassifier(epsilon=3.0, n_teachers=40, random_state=0)
analysis = PATEFairnessAnalysis(model, repeats=30, alpha=0.1)
found = analysis.analyse(
    X[private], y[private], X[public], groups[public], y_public=y[public]
)
print(found)
for name, effect in (("hard", found.hard), ("soft", found.soft)):
    print(
        f"{name} labels: the student moves by {effect.sensitivity:.2f}, accuracy "
        f"{effect.accuracy:.3f}, "
        f"excessive-risk gap {effect.risk_gap:.4f}"
    )
print(
    f"Corollary 1 bounds the distance by {found.sensitivity_bound:.2f}, for noise "
    "calibrated to epsilon = 3"
)

# %%
# Rows near the boundary have the largest risk, because votes on them are close.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
ExcessiveRiskDisplay.from_analysis(found, ax=axes[0])
FlippingProbabilityDisplay.from_analysis(found, ax=axes[1])
axes[0].set_title("risk by group")
axes[1].set_title("who is flipped")

# %%
# Soft labels need a penalty
# --------------------------
# A share is never far off, but each one has noise, and a student with hardly any penalty fits that noise. The paper
# compares students with a strong penalty (α of 20 to 100). ``SoftLabelStudent`` chooses its penalty by the noise, and
# then soft labels are the better ones.
for alpha in (0.001, 0.01, 0.1, 1.0):
    other = PATEFairnessAnalysis(model, repeats=8, alpha=alpha)
    other = other.analyse(
        X[private], y[private], X[public], groups[public], y_public=y[public]
    )
    print(
        f"α = {alpha:5}: the student moves by {other.hard.sensitivity:6.2f} hard, "
        f"{other.soft.sensitivity:6.2f} soft"
    )

# %%
# This is why ``voting="soft"`` is the default of ``PATEClassifier``, ``FairPATEClassifier`` and ``SFPATEClassifier``.
plt.show()
