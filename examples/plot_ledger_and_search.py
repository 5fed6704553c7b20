"""
========================
What a grid search costs
========================

Every fit on the same private rows costs ε. All clones of an estimator share the :class:`~skfairdp.PrivacyLedger` that
you give it. So a ``GridSearchCV`` of seven fits leaves seven entries, in one process or in two, and the ε of all of
them is on record *before* any noise is drawn.
"""

# %%
# Seven fits
# ----------
# There are three candidates, two folds and one refit. The folds are cut by position (``KFold`` without shuffling): a
# stratified fold would move other people's rows when one label changes.
from sklearn.model_selection import GridSearchCV, KFold

from skfairdp import BudgetExceededError, FairPATEClassifier, PrivacyLedger
from skfairdp.datasets import (
    make_biased_classification,
    train_private_public_test_split,
)

data = make_biased_classification(12_000, disparity=0.25, random_state=0)
split = train_private_public_test_split(*data, random_state=0)


def search(ledger, n_jobs):
    """Run the same search, charging the ledger given."""
    estimator = FairPATEClassifier(
        epsilon=0.5, gamma=0.05, classes=[0, 1], random_state=0, ledger=ledger
    )
    grid = GridSearchCV(
        estimator, {"n_teachers": [20, 40, 80]}, cv=KFold(2), n_jobs=n_jobs
    )
    return grid.fit(split.X, split.y, X_public=split.public)


ledger = PrivacyLedger(epsilon=2.0, delta=1e-5)
chosen = search(ledger, n_jobs=1)
print(
    f"{len(ledger.entries)} fits on record: {ledger.entries[0].label}, "
    f"{ledger.entries[0].releases[0]}, and so on"
)
print(
    f"one fit: ε = {chosen.best_estimator_.epsilon_spent_:.3f}; all of them: ε = "
    f"{ledger.epsilon_spent:.3f}"
)

# %%
# In two processes
# ----------------
# When the ledger is pickled for the first time, it moves to a locked file that the workers share. Give it a ``path`` if
# it has to survive a crash of *this* process, or if you want to go on tomorrow.
shared = PrivacyLedger(epsilon=2.0, delta=1e-5)
search(shared, n_jobs=2)
print(f"n_jobs=2: {len(shared.entries)} entries, ε = {shared.epsilon_spent:.3f}")

# %%
# Costs compose; they do not add up
# ---------------------------------
# The ledger composes the releases themselves, and their cost grows like the root of the number of fits. If you added up
# the ε of each fit, the sum would be larger, no safer, and would hold only at seven times δ.
import matplotlib.pyplot as plt

from skfairdp.privacy import compose, epsilon_of

events = [entry.event for entry in ledger.entries]
fits = range(1, len(events) + 1)
composed = [epsilon_of(compose(*events[:n]), ledger.delta) for n in fits]
figure, axes = plt.subplots(layout="constrained")
axes.plot(
    fits,
    [n * composed[0] for n in fits],
    marker="o",
    color="0.6",
    label="sum of the fits' ε",
)
axes.plot(fits, composed, marker="o", label="composed (what the ledger says)")
axes.axhline(ledger.epsilon, color="C3", linewidth=1, label="ceiling")
axes.set(xlabel="fits", ylabel="ε at δ = 1e-5")
axes.legend()
plt.show()

# %%
# The ceiling holds
# -----------------
# A fit that would pass the ceiling is refused before it releases anything, and what was spent stays as it was.
try:
    FairPATEClassifier(epsilon=1.9, gamma=0.05, classes=[0, 1], ledger=ledger).fit(
        split.X, split.y, X_public=split.public
    )
except BudgetExceededError as refusal:
    print(refusal)
print(f"still {len(ledger.entries)} entries, ε = {ledger.epsilon_spent:.3f}")

# %%
# Sweep what is free instead
# --------------------------
# ``gamma`` needs no search: one release with soft votes gives every point of the frontier, and one entry.
once = PrivacyLedger(epsilon=2.0, delta=1e-5)
model = FairPATEClassifier(
    epsilon=0.5, gamma=0.05, classes=[0, 1], random_state=0, ledger=once
)
model.fit(split.X, split.y, X_public=split.public)
for gamma in (0.02, 0.05, 0.1, None):
    print(
        f"gamma={gamma}: accuracy "
        f"{model.refit(gamma=gamma).score(split.X_test, split.y_test):.3f}"
    )
print(f"{len(once.entries)} entry, ε = {once.epsilon_spent:.3f}")

# %%
# What the ledger does not cover
# ------------------------------
# * **The scores.** ``cv_results_`` holds exact accuracies on private folds. They are a further release that no entry
#   counts. Do not publish them, and remember that they chose the best candidate.
# * **Your own looks.** You may have picked parameters after you saw figures of the same private rows, or take defaults
#   of a library that were tuned on them.
# * **Other steps.** A scaler or encoder that is fitted on private rows is a release (use ``PublicPreprocessor``), and
#   so is a feature that you drop because of a private correlation.
# * **Estimators without it.** A fit with ``ledger=None`` is not counted.
# * **Records, in fits for attributes.** The total for attributes counts every fit. The total for records counts the
#   fits for records alone, because fits for attributes take features and labels as public.
print(
    "split0 of cv_results_ is exact, hence private:",
    chosen.cv_results_["split0_test_score"].round(3),
)
