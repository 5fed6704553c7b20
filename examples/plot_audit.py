"""
======================================
Does the program keep what it claims?
======================================

Two classes claim ε = 1 for the same release. In one of them the author forgot that a changed label moves two counts,
and the noise is a quarter of what it should be. Their code looks alike, and so do their answers. ``audit`` fits both a
few hundred times on tables that differ in one record, and says which claim cannot hold.

The audit reads exact rows, so its result is not private. Audit with rows that you may show, as this page does.
"""

# %%
# Two private classifiers
# -----------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skfairdp.inspection import Canary, audit


class NoisyRates(ClassifierMixin, BaseEstimator):
    """Predict by noisy counts of both labels on either side of 0; a replaced
    record moves two of them by one."""

    def __init__(self, epsilon=1.0, moved=2.0, random_state=None):
        self.epsilon = epsilon
        self.moved = moved
        self.random_state = random_state

    def fit(self, X, y):
        side = (np.asarray(X)[:, 0] > 0).astype(int)
        counts = np.bincount(2 * side + y, minlength=4).reshape(2, 2)
        rng = np.random.default_rng(self.random_state)
        self.counts_ = counts + rng.laplace(
            scale=self.moved / self.epsilon, size=(2, 2)
        )
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        counts = np.maximum(self.counts_, 0.5)[(np.asarray(X)[:, 0] > 0).astype(int)]
        return counts / counts.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
canary = Canary((X[0], 0), (X[0], 1), name="another label")
sound, broken = (NoisyRates(moved=moved) for moved in (2.0, 0.5))
for model in (sound, broken):
    print(audit(model, X, y, canaries=[canary], n_runs=300, random_state=0), end="\n\n")

# %%
# What more runs prove
# --------------------
# With more runs the bound grows towards what the program gives away: ε = 1 for the sound class, ε = 4 for the other. A
# bound that assumes nothing about the noise cannot pass the *reach* of so many runs.
runs = (30, 100, 300, 1000)
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for model, name in ((sound, "sound"), (broken, "noise a quarter of what it should be")):
    found = [
        audit(model, X, y, canaries=[canary], n_runs=n, random_state=1) for n in runs
    ]
    axes.plot(runs, [one.epsilon_lower for one in found], "o-", label=name)
axes.plot(runs, [one.reach for one in found], ":", color="gray", label="reach")
axes.axhline(1.0, color="black", linewidth=0.8, label="claim")
axes.set(
    xscale="log", xlabel="runs in each world", ylabel="ε at least, with 95 % confidence"
)
axes.legend()
plt.show()
