"""
==============================
Pareto search with the total ε
==============================

:class:`~skfairdp.model_selection.ParetoSearchCV` has the interface of ``GridSearchCV``, takes several objectives, and
states the ε of everything it shows, scores of private folds included. At the end scikit-learn's own searches run over
the same candidates, and the ledger shows what each of them costs.
"""

# %%
# Twelve candidates, three folds
# ------------------------------
# Candidates that differ in ``gamma`` are post-processing of the same votes: they share one release per fold. Their
# scores come from one noisy table (group, label, prediction) per fold and candidate, which is charged.
from skfairdp import FairPATEClassifier, ParetoSearchCV, PrivacyLedger
from skfairdp.datasets import (
    make_biased_classification,
    train_private_public_test_split,
)

rows = make_biased_classification(30_000, disparity=0.25, random_state=0)
split = train_private_public_test_split(*rows, random_state=0)
arguments = {"sensitive_features": split.sensitive_features, "X_public": split.public}

ledger = PrivacyLedger(epsilon=8.0, delta=1e-5)
model = FairPATEClassifier(classes=[0, 1], random_state=0, ledger=ledger)
grid = {"epsilon": [0.5, 1.0, 2.0], "gamma": [0.02, 0.05, 0.1, None]}
search = ParetoSearchCV(
    model, grid, cv=3, bounds={"disparity": "<= 0.08", "epsilon": "<= 1.01"}
)
search.fit(split.X, split.y, **arguments)

print(
    f"candidates {len(search.cv_results_['params'])}, entries in the ledger "
    f"{len(ledger.entries)}"
)
print(
    f"the winner: {search.best_params_}, its own fit: ε = "
    f"{search.best_estimator_.epsilon_spent_:.3f}"
)
print(f"the search: {search.privacy_}")
print(f"hypervolume of (accuracy, gap, ε): {search.hypervolume_:.4f}")

# %%
# What was found
# --------------
# Dominated candidates are faded. The line above the plot says what it costs to show all of them.
import matplotlib.pyplot as plt

from skfairdp import ParetoFrontierDisplay

display = ParetoFrontierDisplay.from_search(search)
plt.show()

# %%
# The surface shows the best accuracy under a bound on the gap and a bound on ε.
display.plot_surface()
plt.show()

# %%
# A ceiling stops a search, and keeps what is finished
# ----------------------------------------------------
# The next candidate starts only if the refit of a winner can still be afforded after it. A warning names those that are
# left out; here it is printed.
import warnings

small = PrivacyLedger(epsilon=2.5)
halted = ParetoSearchCV(
    model.set_params(ledger=small),
    {"n_teachers": [20, 40, 80, 160]},
    scoring=["accuracy"],
)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    halted.fit(split.X, split.y, X_public=split.public)
print(*(one.message for one in said), sep="\n")
for params, status in zip(
    halted.cv_results_["params"], halted.cv_results_["status"], strict=True
):
    print(params, status)
print(f"ε = {small.epsilon_spent:.3f} of {small.epsilon}, winner {halted.best_params_}")

# %%
# scikit-learn's own tools
# ------------------------
# They work, with metadata routing on or off, and the ledger counts their fits. **It does not cover their scores**:
# ``cv_results_`` holds exact figures of private folds, a further release that no entry counts. Its total is right only
# for folds that go by position. An integer ``cv`` would be stratified, and then one changed label moves other people's
# rows.
import sklearn
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_validate,
)

teachers = {"n_teachers": [20, 40]}


def fits_and_epsilon(run):
    """Run something on a fresh ledger and print what it reads."""
    counted = PrivacyLedger()
    with sklearn.config_context(enable_metadata_routing=True):
        run(model.set_params(epsilon=0.5, ledger=counted))
    print(
        f"{run.__name__:>24}: {len(counted.entries)} fits, ε = "
        f"{counted.epsilon_spent:.3f}, scores not covered"
    )


def grid_search(estimator):
    GridSearchCV(estimator, teachers, cv=KFold(3)).fit(split.X, split.y, **arguments)


def randomized_search(estimator):
    wide = {"n_teachers": range(10, 100)}
    RandomizedSearchCV(estimator, wide, n_iter=2, cv=KFold(3), random_state=0).fit(
        split.X, split.y, **arguments
    )


def halving_search(estimator):
    HalvingGridSearchCV(
        estimator, teachers, cv=KFold(3), min_resources=4000, random_state=0
    ).fit(split.X, split.y, **arguments)


def cross_validation(estimator):
    cross_validate(estimator, split.X, split.y, cv=KFold(3), params=arguments)


for tool in (grid_search, randomized_search, halving_search, cross_validation):
    fits_and_epsilon(tool)
