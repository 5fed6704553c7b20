"""
==================================================
PF-LD: fairness with a private sensitive attribute
==================================================

``PFLDClassifier`` protects one thing: the group of each training row. Features and labels count as public, and in
return privacy costs little accuracy. The group is never a feature, and you do not need it to predict. ``lam_max``
bounds the Lagrange multipliers, and ``epsilon`` is the budget for the groups. The page reads ``SKFAIRDP_DATA`` as
the quick start does.
"""

# %%
# Rows
# ----
# The page asks the same kind of network for parity of two groups, and for equal errors within each class. The
# guarantee is void if any feature reveals the group, so check this first. The check reads the groups themselves: keep
# its result to yourself.
import matplotlib.pyplot as plt
import numpy as np

from skfairdp import PFLDClassifier, PrivacyLedger
from skfairdp.datasets import (
    data_file,
    fetch_adult,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.inspection import columns_telling_the_group
from skfairdp.lagrangian import mlp
from skfairdp.metrics import demographic_disparity, equalized_odds_disparity
from skfairdp.preprocessing import make_tabular_encoder

if data_file("adult") is not None:
    adult = fetch_adult()
    rows = adult.data, adult.target, adult.sensitive_features
else:
    rows = make_biased_classification(
        20_000, disparity=0.25, as_frame=True, random_state=0
    )
split = train_private_public_test_split(*rows, random_state=0).encode(
    make_tabular_encoder()
)
groups = sorted(set(split.sensitive_features))
print(columns_telling_the_group(split.X, split.sensitive_features))


def measure(model):
    """Accuracy and gap on the test rows."""
    predicted = model.predict(split.X_test)
    gap = demographic_disparity(
        None, predicted, sensitive_features=split.sensitive_features_test
    )
    return float(np.mean(predicted == np.asarray(split.y_test))), gap


# %%
# What hiding the groups costs
# ----------------------------
# ``epsilon=None`` runs the same code without noise. The shared ledger says what all points together reveal about the
# groups.
ledger = PrivacyLedger(delta=1e-5)
settings = {"groups": groups, "net": mlp(max_epochs=6), "random_state": 0}
fig, ax = plt.subplots(figsize=(6, 4))
for epsilon in (None, 0.5, 3.0):
    points = []
    for lam_max in (0.5, 1.0, 5.0):
        paid = {} if epsilon is None else {"ledger": ledger}
        model = PFLDClassifier(epsilon=epsilon, lam_max=lam_max, **settings, **paid)
        points.append(
            measure(
                model.fit(split.X, split.y, sensitive_features=split.sensitive_features)
            )
        )
        print(
            f"ε = {epsilon}, multipliers up to {lam_max}: accuracy "
            f"{points[-1][0]:.3f}, gap {points[-1][1]:.3f}"
        )
    label = "groups not hidden" if epsilon is None else f"ε = {epsilon} for one group"
    ax.plot(*np.transpose(points)[::-1], marker="o", label=label)
ax.set_xlabel("demographic disparity, test rows")
ax.set_ylabel("accuracy, test rows")
ax.legend()
print(model.privacy_)
print(f"all private points together: {ledger.spent('sensitive attribute')}")

# %%
# Another notion
# --------------
# You may ask for several constraints at once. They share the budget, because one changed group moves all of their
# violations together. Where base rates differ, parity and equalized odds contradict each other, and the model lies
# between.
model = PFLDClassifier(
    epsilon=1.0, constraints=["demographic_parity", "equalized_odds"], **settings
)
model.fit(split.X, split.y, sensitive_features=split.sensitive_features)
odds = equalized_odds_disparity(
    split.y_test,
    model.predict(split.X_test),
    sensitive_features=split.sensitive_features_test,
)
print(f"gap {measure(model)[1]:.3f}, gap within classes {odds:.3f}")
plt.show()
