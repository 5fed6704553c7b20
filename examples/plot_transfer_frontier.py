"""
==============================
Specification without the data
==============================

A regulator may not see the private rows, and wants to know which ε, gap and accuracy are within reach. Other data of
the same kind have a frontier as well. :func:`~skfairdp.model_selection.transfer_frontier` says how far its points move.
(RQ3 of "Learning to walk impartially on the Pareto frontier of fairness, privacy, and utility".)
"""

# %%
# Three data sets
# ---------------
# The first is the source. The second comes from the same distribution. In the third, of the same task, the groups
# differ more.
from skfairdp import FairPATEClassifier, frontier, transfer_frontier
from skfairdp.datasets import (
    make_biased_classification,
    train_private_public_test_split,
)


def measure(disparity, seed):
    """The frontier of FairPATE on data with this gap."""
    rows = make_biased_classification(20_000, disparity=disparity, random_state=seed)
    split = train_private_public_test_split(*rows, random_state=seed)
    return frontier(
        FairPATEClassifier(classes=[0, 1]),
        split.X,
        split.y,
        X_public=split.public,
        X_test=split.X_test,
        y_test=split.y_test,
        sensitive_features_test=split.sensitive_features_test,
        epsilons=(0.5, 1.0, 2.0),
        gammas=(0.02, 0.05, 0.1, 0.2, None),
        idp3=(False,),
        random_state=0,
    )


source, alike, other = measure(0.2, seed=0), measure(0.2, seed=1), measure(0.45, seed=2)

# %%
# How far points move
# -------------------
for name, target in (("same law", alike), ("groups that differ more", other)):
    moved = transfer_frontier(source, target, tolerance=0.02)
    summary = moved.attrs["summary"][0]
    reached = (moved["attainable_accuracy"] - moved["accuracy_source"]).median()
    print(
        f"{name}: accuracy moves by {summary['accuracy_shift_median']:.3f} in the "
        "median, at most "
        f"{summary['accuracy_shift_max']:.3f}, the gap by "
        f"{summary['disparity_shift_median']:.3f}. Within the ε and "
        "gap that the source suggests (up to .02), the target's accuracy is "
        f"{reached:+.3f} of the source's."
    )
columns = [
    "epsilon",
    "gamma",
    "accuracy_source",
    "accuracy_target",
    "disparity_source",
    "disparity_target",
    "feasible",
]
print(transfer_frontier(source, other)[columns].round(3).to_string(index=False))

# %%
# Arrows lead from the source to the place where the same settings end up.
import matplotlib.pyplot as plt

figure, panels = plt.subplots(
    1, 2, figsize=(11, 4.5), sharex=True, sharey=True, layout="constrained"
)
for axes, name, target in zip(
    panels, ("same law", "groups that differ more"), (alike, other), strict=True
):
    moved = transfer_frontier(source, target)
    for row in moved.itertuples():
        axes.annotate(
            "",
            (row.disparity_target, row.accuracy_target),
            (row.disparity_source, row.accuracy_source),
            arrowprops={"arrowstyle": "->", "color": "0.5"},
        )
    for epsilon, part in moved.groupby("epsilon"):
        axes.scatter(
            part["disparity_source"],
            part["accuracy_source"],
            label=f"ε = {epsilon:.2g}, source",
        )
    axes.set(xlabel="fairness gap", title=name)
panels[0].set_ylabel("accuracy")
panels[0].legend()
plt.show()
