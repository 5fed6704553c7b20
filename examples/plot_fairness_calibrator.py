"""
====================================
Calibrating a private model's parity
====================================

A private model was trained without a parity constraint, and its budget is spent.
:class:`~skfairdp.FairnessCalibrator` lowers its demographic disparity. It needs the model and some unlabelled *public*
rows with their groups. This is post-processing: ε stays what it was, and every row is still answered.

With the environment variable ``SKFAIRDP_DATA`` naming a folder that has ``adult.csv.gz`` this runs on UCI Adult (does a
person earn more than 50 000 dollars, groups by sex), else on data made on the spot.
"""

# %%
# A private model with a gap
# --------------------------
# The calibrator takes its rows as public and does not protect them. Do not give it the private rows of the model.
import numpy as np

from skfairdp import FairnessCalibrator, PATEClassifier
from skfairdp.datasets import (
    data_file,
    fetch_adult,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.metrics import demographic_disparity
from skfairdp.postprocessing import Thresholds
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
truth, groups = np.asarray(split.y_test), split.sensitive_features_test


def measure(predicted):
    gap = demographic_disparity(None, predicted, sensitive_features=groups)
    return gap, float(np.mean(predicted == truth))


model = PATEClassifier(epsilon=1.0, classes=[0, 1], random_state=0)
model.fit(split.X, split.y, X_public=split.X_public)
before = measure(model.predict(split.X_test))
print(model.privacy_)
print("before: gap {:.3f}, accuracy {:.3f}".format(*before))

# %%
# Calibrate on public rows
# ------------------------
# There are no labels, so the model's own probabilities say what a change costs. ``gap_weight`` says how much expected
# accuracy one unit of gap is worth. With ``gamma`` you ask for the least change that brings the gap below a bound.
calibrator = FairnessCalibrator(model, gamma=0.05)
calibrator.fit(split.X_public, sensitive_features=split.sensitive_features_public)
print(
    f"public rows: gap {calibrator.gap_before_:.3f} -> {calibrator.gap_after_:.3f}",
    end=", ",
)
print(f"{calibrator.agreement_:.1%} of the answers unchanged")
print(
    "after: gap {:.3f}, accuracy {:.3f}".format(
        *measure(calibrator.predict(split.X_test))
    )
)
print(
    "epsilon after:",
    calibrator.privacy_.epsilon,
    "as before:",
    calibrator.privacy_ == model.privacy_,
)

# %%
# The bound holds on the public rows. On other rows the gap differs, and the more public rows you give, the less.
#
# With or without the group at prediction
# ---------------------------------------
# Above, no group was needed to predict: the calibrator estimates it from the features. Where it may be read at
# prediction time, the calibrator can use it instead. The curves show every trade of accuracy for parity.
trades = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
curves = {}
for aware in (False, True):
    points = []
    for gap_weight in trades:
        fitted = FairnessCalibrator(
            model, method=Thresholds(group_at_prediction=aware), gap_weight=gap_weight
        )
        fitted.fit(split.X_public, sensitive_features=split.sensitive_features_public)
        points.append(measure(fitted.predict(split.X_test, sensitive_features=groups)))
    curves["group read at prediction" if aware else "without the group"] = points

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(layout="constrained")
axes.scatter(*before, color="0.3", zorder=3, label="before")
for name, points in curves.items():
    axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
axes.set(xlabel="demographic disparity on test rows", ylabel="accuracy on test rows")
axes.set_title(
    f"One private model, ε = {model.epsilon_spent_:.3g}, calibrated on public rows"
)
axes.legend()
plt.show()
