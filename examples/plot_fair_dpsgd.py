"""
==========================================
Private SGD with a demographic-parity term
==========================================

``FairDPSGDClassifier`` trains one network by DP-SGD. The rows that hold its groups together come from one of two
places:

* ``parity="public_penalty"`` reads public rows with their groups, and needs no labels. The fairness gradient reads
  nothing private, so it costs nothing. It is added to the private gradient, which is clipped and noisy.
* ``parity="signed_loss"`` reads the private rows themselves. Parity is then a part of the loss that is clipped. Noisy
  counts of the predictions of each group steer it, and ε covers those counts as well.

Neither needs the group when it predicts. The page reads ``SKFAIRDP_DATA`` as the quick start does.
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
    rows = make_biased_classification(
        30_000, disparity=0.25, as_frame=True, random_state=0
    )
split = train_private_public_test_split(*rows, random_state=0).encode(
    make_tabular_encoder()
)
groups = sorted(set(split.sensitive_features))


def measure(model):
    """Accuracy and gap on the test rows."""
    predicted = model.predict(split.X_test)
    gap = demographic_disparity(
        None, predicted, sensitive_features=split.sensitive_features_test
    )
    return float(np.mean(predicted == np.asarray(split.y_test))), gap


# %%
# One knob: λ
# -----------
# Each point is a fit of its own at ε = 1. If you publish all of them, all of them count: the shared ledger says what
# they cost together.
ledger = PrivacyLedger(delta=1e-5)
settings = {
    "epsilon": 1.0,
    "classes": [0, 1],
    "net": mlp(max_epochs=6),
    "random_state": 0,
    "ledger": ledger,
}
points = {"public rows": [], "private rows": []}
for lam in (0.0, 0.1, 0.5):
    with_public = FairDPSGDClassifier(lam=lam, **settings).fit(
        split.X, split.y, X_public=split.public
    )
    without = FairDPSGDClassifier(
        lam=lam, parity="signed_loss", groups=groups, **settings
    )
    without.fit(split.X, split.y, sensitive_features=split.sensitive_features)
    for name, model in (("public rows", with_public), ("private rows", without)):
        points[name].append(measure(model))
        accuracy, gap = points[name][-1]
        print(
            f"λ = {lam:3}, parity on {name:12}: accuracy {accuracy:.3f}, gap {gap:.3f}"
        )
print(
    f"publishing all {len(ledger.entries)} models costs ε = {ledger.epsilon_spent:.2f}"
)

# %%
# With public rows, λ weighs the gap against the loss. Without them, it bounds the multipliers, which stop growing by
# themselves once the noisy rates of the groups agree.
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
for name, values in points.items():
    accuracies, gaps = zip(*values, strict=True)
    axes.plot(gaps, accuracies, marker="o", label=f"parity on {name}")
axes.set(
    xlabel="demographic disparity (test rows)",
    ylabel="accuracy",
    title="ε = 1 for each point",
)
axes.legend()

# %%
# A search over λ
# ---------------
# Take ``KFold`` and not the default, because stratified folds depend on private labels. The ledger counts the four fits
# of the search and the last one on all rows. It does not cover the exact scores in ``cv_results_``: do not publish
# them.
ledger = PrivacyLedger(epsilon=4.0, delta=1e-5)
search = GridSearchCV(
    FairDPSGDClassifier(**{**settings, "net": mlp(max_epochs=2), "ledger": ledger}),
    {"lam": [0.1, 0.5]},
    cv=KFold(2),
)
search.fit(split.X, split.y, X_public=split.public)
print(
    f"best λ {search.best_params_['lam']}; {len(ledger.entries)} fits cost ε = "
    f"{ledger.epsilon_spent:.2f}"
)
plt.show()
