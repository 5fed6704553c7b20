"""
====================================
Synthetic rows, private and balanced
====================================

``PFGuardGenerator`` turns a biased private table into rows that anyone may use. Only a few noisy tables of counts leave
the private side. You then choose how often each group and label occurs among the synthetic rows, which costs nothing.

The page reads ``SKFAIRDP_DATA`` as the quick start does, and makes rows up without it.
"""

# %%
# Rows
# ----
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp import PFGuardGenerator, PrivacyLedger
from skfairdp.datasets import (
    data_file,
    fetch_adult,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.inspection import SyntheticDataReport
from skfairdp.metrics import downstream_scores, kl_to_uniform
from skfairdp.preprocessing import make_tabular_encoder

if data_file("adult") is not None:
    adult = fetch_adult()
    rows = adult.data, adult.target, adult.sensitive_features
else:
    rows = make_biased_classification(
        30_000,
        disparity=0.3,
        group_proportions=(0.25, 0.75),
        as_frame=True,
        random_state=0,
    )
split = train_private_public_test_split(*rows, random_state=0)
groups = sorted(set(rows[2]))

# %%
# One release, several balances
# -----------------------------
# The public 5 % of the rows give each column its cells. The fit counts the private rows in these cells by group and
# label, and adds noise. ``balance`` chooses what is sampled. Each generator below is a fit of its own, and the ledger
# says what all of them cost together.
ledger = PrivacyLedger(delta=1e-5)
balances = {
    "as it is": {"balance": None},
    "groups": {"balance": "group"},
    "groups and labels": {"balance": "group_and_label"},
    "labels (default)": {},
}
generators = {}
for name, settings in balances.items():
    generator = PFGuardGenerator(
        epsilon=1.0,
        classes=[0, 1],
        groups=groups,
        ledger=ledger,
        random_state=0,
        **settings,
    )
    generators[name] = generator.fit(
        split.X,
        split.y,
        sensitive_features=split.sensitive_features,
        X_public=split.X_public,
    )
print(generators["labels (default)"].privacy_)
print(f"publishing all four: epsilon={ledger.epsilon_spent:.2f}")

# %%
# How well a classifier learns from the rows
# ------------------------------------------
# A classifier learns from synthetic rows, without the group, and is tested on real ones.
model = make_pipeline(make_tabular_encoder(), LogisticRegression(max_iter=500))
test = {
    "X_test": split.X_test,
    "y_test": split.y_test,
    "sensitive_features": split.sensitive_features_test,
}
scores = {"real rows": downstream_scores(model, split.X, split.y, **test)}
for name, generator in generators.items():
    X, y, s = generator.sample_labels(20_000, return_sensitive=True, random_state=0)
    scores[name] = downstream_scores(model, X, y, **test)
    print(
        f"{name}: groups {kl_to_uniform(s):.4f} nats from equal, AUROC "
        f"{scores[name]['auroc']:.3f}"
    )

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
measures = {
    "auroc": "AUROC",
    "equalized_odds_disparity": "EO gap",
    "demographic_disparity": "Demographic gap",
}
for k, (measure, label) in enumerate(measures.items()):
    ax.bar(
        np.arange(len(scores)) + 0.27 * (k - 1),
        [score[measure] for score in scores.values()],
        0.25,
        label=label,
    )
ax.set_xticks(range(len(scores)), scores)
ax.set_title("Trained on synthetic rows (ε = 1), tested on real ones")
ax.legend(loc="center right")
plt.show()

# %%
# Rows of one kind
# ----------------
# Conditions only choose which rates are sampled, so they are free as well.
X, y = generators["labels (default)"].sample_labels(
    5, conditions={"sensitive_features": groups[0], "y": 1}
)
print(X.iloc[:, :5].to_string())

# %%
# Side by side
# ------------
# The report compares columns, groups and classifiers. Its figures of real rows are exact, so this page gives it public
# rows. Do not publish a report on private rows.
X, y, s = generators["labels (default)"].sample_labels(
    5000, return_sensitive=True, random_state=0
)
report = SyntheticDataReport.from_data(
    split.X_public,
    X,
    sensitive_features_real=split.sensitive_features_public,
    sensitive_features_synthetic=s,
    privacy=generators["labels (default)"].privacy_,
)
print(report.total_variation.round(3).to_string())
