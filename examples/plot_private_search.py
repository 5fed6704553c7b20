"""
===============================================
Private search: release only the best candidate
===============================================

A search that shows every candidate costs the composition of all of them.
:class:`~skfairdp.model_selection.PrivateSearchCV` shows the winner only. It makes a random, secret number of trials and
keeps the best, so that its ε hardly grows with the number of candidates.
"""

# %%
# Twenty candidates
# -----------------
# Candidates are scored on public rows, whose labels are public as well. There is no ``cv_results_``: a figure of any
# loser would void the guarantee.
from skfairdp import FairPATEClassifier, PrivacyLedger, PrivateSearchCV, PublicData
from skfairdp.datasets import (
    make_biased_classification,
    train_private_public_test_split,
)

rows = make_biased_classification(20_000, disparity=0.25, random_state=0)
split = train_private_public_test_split(*rows, random_state=0)
checked = PublicData(split.public.X, split.public.sensitive_features, y=split.y_public)

ledger = PrivacyLedger(epsilon=2.0)
model = FairPATEClassifier(epsilon=0.5, classes=[0, 1], random_state=0, ledger=ledger)
grid = {
    "n_teachers": [20, 40, 80, 120, 160],
    "gamma": [0.03, 0.05],
    "voting": ["soft", "gnmax"],
}
search = PrivateSearchCV(model, grid, bounds={"disparity": "<= 0.1"})
search.fit(split.X, split.y, X_public=split.public, validation=checked)
print(f"{search.n_candidates_} candidates by {search.method_}: {search.best_params_}")
print(search.privacy_)
print(f"entries in the ledger: {len(ledger.entries)}")

# %%
# What it costs, by the number of trials
# --------------------------------------
# Each trial is a Gaussian release with σ = 10. Composition charges every candidate once, and the search does this
# where there are up to three. The smaller η is, the less a selection costs, and the more the number of trials varies.
import matplotlib.pyplot as plt
import numpy as np

from skfairdp.privacy import GaussianDpEvent, PrivateSelection, epsilon_of, repeat

trial, trials = (
    GaussianDpEvent(10.0),
    np.unique(np.geomspace(1, 300, 16).round().astype(int)),
)
figure, axes = plt.subplots(layout="constrained")
composed = [epsilon_of(repeat(trial, int(n)), 1e-5) for n in trials]
axes.plot(trials, composed, color="0.6", marker="o", label="all shown (composition)")
laws = {"logarithmic": "η = 0", "half": "η = ½", "geometric": "η = 1"}
for law, label in {**laws, "poisson": "Poisson"}.items():
    costs = [
        epsilon_of(PrivateSelection(trial, float(n), law).event, 1e-5)
        for n in trials
        if n > 1
    ]
    axes.plot(
        trials[trials > 1],
        costs,
        marker="o",
        markersize=4,
        label=f"best shown, {label}",
    )
axes.set(
    xscale="log", xlabel="candidates, or mean number of trials", ylabel="ε at δ = 1e-5"
)
axes.legend()
plt.show()

# %%
# How many trials there are
# -------------------------
# The number is secret: no progress bar and no warning shows it. The time that a search takes would reveal it, and is not
# part of the guarantee. Do not publish the time.
law = PrivateSelection(trial, mean=20.0).probabilities()
print(
    f"with a mean of 20: P[1 trial] = {law[1]:.2f}, P[more than 60] = "
    f"{law[61:].sum():.2f}"
)
