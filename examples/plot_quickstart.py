"""
===========
Quick start
===========

You train a classifier that is differentially private *and* fair in ten lines. Then you put it into a Pipeline that
starts from a DataFrame. At last IDP3 refuses some answers, so that a bound on the gap is enforced at prediction time.

If the environment variable ``SKFAIRDP_DATA`` names a folder with ``adult.csv.gz``, the page runs on UCI Adult: does a
person earn more than 50 000 dollars? Groups are by sex. Else it makes rows up. The noise comes from the operating
system, so every run gives slightly different figures.
"""

# %%
# Ten lines
# ---------
from skfairdp import FairPATEClassifier
from skfairdp.datasets import (
    data_file,
    fetch_adult,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.metrics import demographic_disparity
from skfairdp.preprocessing import make_tabular_encoder

if data_file("adult") is not None:
    adult = fetch_adult()
    rows = adult.data, adult.target, adult.sensitive_features
else:
    rows = make_biased_classification(
        30_000, disparity=0.25, as_frame=True, random_state=0
    )

split = train_private_public_test_split(
    *rows, random_state=0
)  # 70 % private, 5 % public, 25 % test
encoded = split.encode(make_tabular_encoder())  # fitted on public rows only
model = FairPATEClassifier(epsilon=1.0, gamma=0.05, classes=[0, 1], random_state=0)
model.fit(encoded.X, encoded.y, X_public=encoded.public)
predicted = model.predict(encoded.X_test)
gap = demographic_disparity(
    split.y_test, predicted, sensitive_features=split.sensitive_features_test
)
print(model.privacy_)
print(f"accuracy {model.score(encoded.X_test, split.y_test):.3f}, gap {gap:.3f}")

# %%
# What happened
# -------------
# The fit cut the private rows into ``n_teachers_`` parts by position, and trained a small model on each. These teachers
# voted on the public rows, and only noisy vote shares came out. ``privacy_`` says what they cost, and whom they
# protect. This ε is the same for every data set: ``epsilon_of`` computes it again from the declared releases alone.
from skfairdp.privacy import epsilon_of

print(f"{model.n_teachers_} teachers voted on {model.n_queries_} public rows")
print("recomputed:", epsilon_of(model.privacy_.event, model.privacy_.delta))
print("taken as public:", ", ".join(model.privacy_.public))

# %%
# The student learned from those shares, and its gap on the public rows is at most ``gamma``. On other rows the gap may
# be larger, so the page measures it. A looser or tighter bound uses the same votes and costs nothing more:
for gamma in (0.02, 0.1, None):
    other = model.refit(gamma=gamma)
    predicted = other.predict(encoded.X_test)
    gap = demographic_disparity(
        split.y_test, predicted, sensitive_features=split.sensitive_features_test
    )
    print(
        f"gamma={gamma}: accuracy {other.score(encoded.X_test, split.y_test):.3f}, "
        f"gap {gap:.3f}, same epsilon"
    )

# %%
# In a Pipeline, from a DataFrame
# -------------------------------
# If you fit a scaler or encoder on private rows, that is a release that no ε covers. ``PublicPreprocessor`` always fits
# on the public rows, whatever rows the pipeline gets. With metadata routing, ``transform_input`` sends the public rows
# through the same encoder on their way to the classifier.
import sklearn
from sklearn.pipeline import make_pipeline

from skfairdp import PublicPreprocessor

with sklearn.config_context(enable_metadata_routing=True):
    pipeline = make_pipeline(
        PublicPreprocessor(make_tabular_encoder(), split.X_public),
        FairPATEClassifier(epsilon=1.0, gamma=0.05, classes=[0, 1], random_state=0),
        transform_input=["X_public"],
    )
    pipeline.fit(
        split.X,
        split.y,
        X_public=split.X_public,
        sensitive_features_public=split.sensitive_features_public,
    )
    print(
        f"accuracy {pipeline.score(split.X_test, split.y_test):.3f}; "
        f"{pipeline[-1].privacy_}"
    )

# %%
# Refusing instead of hoping
# --------------------------
# :class:`~skfairdp.IDP3` watches the answers it gives and refuses those that would widen the gap beyond ``gamma``. It
# reads the group at prediction time. It costs no privacy, because it post-processes a private model. It does not
# protect the people whose rows are predicted.
import numpy as np
from sklearn.frozen import FrozenEstimator

from skfairdp import IDP3

loose = model.refit(gamma=None)
guarded = IDP3(FrozenEstimator(loose), gamma=0.05)
guarded.fit(encoded.X_public, sensitive_features=encoded.sensitive_features_public)
answers = guarded.predict(
    encoded.X_test, sensitive_features=split.sensitive_features_test
)
answered = answers != guarded.reject_label_
truth = np.asarray(split.y_test)

points = {}
for name, labels, kept in [
    ("no constraint", loose.predict(encoded.X_test), np.ones(len(truth), dtype=bool)),
    ("gamma = 0.05", model.predict(encoded.X_test), np.ones(len(truth), dtype=bool)),
    ("IDP3 on top of no constraint", answers, answered),
]:
    gap = demographic_disparity(
        None,
        labels,
        sensitive_features=split.sensitive_features_test,
        reject_label=guarded.reject_label_,
    )
    points[name] = float(np.mean(labels[kept] == truth[kept])), gap, float(kept.mean())
    print(
        "{}: accuracy {:.3f}, gap {:.3f}, coverage {:.3f}".format(name, *points[name])
    )

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(layout="constrained")
for name, (accuracy, gap, coverage) in points.items():
    axes.scatter(gap, accuracy, s=60, label=f"{name} (answers {coverage:.0%})")
axes.axvline(0.05, color="0.6", linewidth=1)
axes.set(
    xlabel="demographic disparity on test rows", ylabel="accuracy on answered test rows"
)
axes.set_title(f"One private release, ε = {model.epsilon_spent_:.3g}")
axes.legend()
plt.show()
