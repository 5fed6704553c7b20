"""
==========================================
Private SGD with a demographic-parity term
==========================================

``FairDPSGDClassifier`` trains one network by DP-SGD. What holds its groups together comes from one of two places:

* ``parity="public_penalty"``: public rows with their groups, no labels needed. The fairness gradient reads nothing
  private, so it is added whole, beside the clipped and noisy private one, and costs nothing.
* ``parity="signed_loss"``: the private rows themselves. Then parity is a signed loss inside the clipping, steered by
  noisy counts of the predictions of each group, and ε covers those counts as well.

Neither needs the group when it predicts. ``SKFAIRDP_DATA`` as in the quick start.
"""

# %%
# Rows
# ----
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

from skfairdp import FairDPSGDClassifier, PrivacyLedger
from skfairdp.datasets import (
    data_file,
    fetch_adult,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.gradient import mlp
from skfairdp.metrics import demographic_disparity
from skfairdp.preprocessing import make_tabular_encoder

if data_file("adult") is not None:
    adult = fetch_adult()
    rows = adult.data, adult.target, adult.sensitive_features
else:
    rows = make_biased_classification(30_000, disparity=0.25, as_frame=True, random_state=0)
split = train_private_public_test_split(*rows, random_state=0).encode(make_tabular_encoder())
groups = sorted(set(split.sensitive_features))


def measure(model):
    """Accuracy and gap on the test rows."""
    predicted = model.predict(split.X_test)
    gap = demographic_disparity(None, predicted, sensitive_features=split.sensitive_features_test)
    return float(np.mean(predicted == np.asarray(split.y_test))), gap


# %%
# One knob: λ
# -----------
# Each point is a fit of its own at ε = 1. Whoever publishes all of them has released them all: a shared ledger says
# what that comes to.
ledger = PrivacyLedger(delta=1e-5)
settings = {"epsilon": 1.0, "classes": [0, 1], "net": mlp(max_epochs=6), "random_state": 0, "ledger": ledger}
points = {"public rows": [], "private rows": []}
for lam in (0.0, 0.1, 0.5):
    with_public = FairDPSGDClassifier(lam=lam, **settings).fit(split.X, split.y, X_public=split.public)
    without = FairDPSGDClassifier(lam=lam, parity="signed_loss", groups=groups, **settings)
    without.fit(split.X, split.y, sensitive_features=split.sensitive_features)
    for name, model in (("public rows", with_public), ("private rows", without)):
        points[name].append(measure(model))
        accuracy, gap = points[name][-1]
        print(f"λ = {lam:3}, parity on {name:12}: accuracy {accuracy:.3f}, gap {gap:.3f}")
print(f"publishing all {len(ledger.entries)} models costs ε = {ledger.epsilon_spent:.2f}")

# %%
# With public rows, λ weighs the gap against the loss. Without them, it bounds the multipliers, which stop by themselves
# where the noisy rates of the groups meet.
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
for name, values in points.items():
    accuracies, gaps = zip(*values, strict=True)
    axes.plot(gaps, accuracies, marker="o", label=f"parity on {name}")
axes.set(xlabel="demographic disparity (test rows)", ylabel="accuracy", title="ε = 1 for each point")
axes.legend()

# %%
# A search over λ
# ---------------
# ``KFold`` and not the default: stratified folds depend on private labels. The ledger counts the four fits of the
# search and the last one on all rows; the exact scores in ``cv_results_`` are a further release that nothing here
# covers.
ledger = PrivacyLedger(epsilon=4.0, delta=1e-5)
search = GridSearchCV(
    FairDPSGDClassifier(**{**settings, "net": mlp(max_epochs=2), "ledger": ledger}), {"lam": [0.1, 0.5]}, cv=KFold(2)
)
search.fit(split.X, split.y, X_public=split.public)
print(f"best λ {search.best_params_['lam']}; {len(ledger.entries)} fits cost ε = {ledger.epsilon_spent:.2f}")
plt.show()
