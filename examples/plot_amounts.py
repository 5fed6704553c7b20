"""
=========================================================
Private regression with equal distributions in two groups
=========================================================

``FairDPSGDRegressor`` predicts an amount under differential privacy. ``PrivateBarycenter`` moves its predictions until
both groups have the same distribution, at a price that is counted with it.
"""

# %%
# A table, and a private model
# ----------------------------
# The bounds of the amount are public and generous. One ledger counts both fits.
import matplotlib.pyplot as plt
import numpy as np

from skfairdp import FairDPSGDRegressor, PrivacyLedger
from skfairdp.metrics import ks_disparity
from skfairdp.postprocessing import PrivateBarycenter

rng = np.random.default_rng(0)
groups = rng.integers(2, size=12_000)
X = rng.normal(size=(12_000, 4)) + groups[:, None] * [1.0, 0.0, 0.0, 0.0]
y = 20 + X @ [3.0, 2.0, 1.0, 0.0] + rng.normal(size=12_000)
train, test = slice(0, 8000), slice(8000, None)

ledger = PrivacyLedger(epsilon=1.0)
model = FairDPSGDRegressor(
    epsilon=0.5, bounds=(0, 100), random_state=0, ledger=ledger
).fit(X[train], y[train])
print(f"R² {model.score(X[test], y[test]):.2f}, {model.privacy_}")

# %%
# The same distribution for both groups
# -------------------------------------
fair = PrivateBarycenter(model, epsilon=0.7, groups=[0, 1], ledger=ledger)
fair.fit(X[train], sensitive_features=groups[train])
before, after = (
    model.predict(X[test]),
    fair.predict(X[test], sensitive_features=groups[test]),
)
for name, said in (("before", before), ("after", after)):
    apart = ks_disparity(None, said, sensitive_features=groups[test])
    print(
        f"{name}: distance of the groups {apart:.3f}, mean squared error "
        f"{np.mean((said - y[test]) ** 2):.2f}"
    )
print(
    f"the distance is at most {fair.gap_bound_:.3f} in the population; both fits "
    f"cost {fair.epsilon_spent_:.2f}"
)

# %%
# Both distributions
# ------------------
figure, axes = plt.subplots(
    1, 2, figsize=(8, 3), sharex=True, sharey=True, layout="constrained"
)
for axis, (name, said) in zip(
    axes, (("before", before), ("after", after)), strict=True
):
    for group in (0, 1):
        axis.hist(
            said[groups[test] == group],
            bins=40,
            histtype="step",
            label=f"group {group}",
        )
    axis.set(title=name, xlabel="predicted amount", ylabel="rows")
axes[0].legend()
plt.show()
