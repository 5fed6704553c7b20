"""
========================================
A fair learner of your own, made private
========================================

``SFPATEClassifier`` asks little of the learner inside: ``fit(X, y, sensitive_features=...)``, and a ``predict`` that
needs no groups. fairlearn's reductions have both, and so has the class below, which knows nothing of privacy. Whatever
it does, the groups stay protected: it sees released groups only, or it is a teacher with one vote of many.
"""

# %%
# Two means, and a projection
# ---------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skfairdp import PrivacyLedger, SFPATEClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.metrics import demographic_disparity


class WithoutTheDirection:
    """Logistic regression that does not look along the difference of the groups'
    means."""

    def fit(self, X, y, sensitive_features):
        groups = np.asarray(sensitive_features)
        means = [X[groups == group].mean(axis=0) for group in np.unique(groups)]
        direction = means[-1] - means[0]
        self.direction = direction / max(np.linalg.norm(direction), 1e-12)
        self.model = LogisticRegression().fit(self._project(X), y)
        return self

    def _project(self, X):
        return X - np.outer(X @ self.direction, self.direction)

    def predict(self, X):
        return self.model.predict(self._project(X))


X, y, groups = make_biased_classification(12_000, disparity=0.3, random_state=0)
train, test = slice(0, 9000), slice(9000, None)


def measure(model):
    """Accuracy and gap on the test rows."""
    predicted = model.predict(X[test])
    gap = demographic_disparity(None, predicted, sensitive_features=groups[test])
    return float(np.mean(predicted == y[test])), gap


points = {"no constraint": measure(LogisticRegression().fit(X[train], y[train]))}
points["own learner, true groups"] = measure(
    WithoutTheDirection().fit(X[train], y[train], groups[train])
)

# %%
# The same class works inside both variants. One ledger counts both fits.
ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
for variant in ("student", "teacher"):
    model = SFPATEClassifier(
        variant=variant,
        fair_estimator=WithoutTheDirection(),
        epsilon=2.0,
        n_teachers=60,
        groups=[0, 1],
        classes=[0, 1],
        ledger=ledger,
        random_state=0,
    ).fit(X[train], y[train], sensitive_features=groups[train])
    points[f"inside, as {variant}"] = measure(model)
for name, (accuracy, gap) in points.items():
    print(f"{name:26} accuracy {accuracy:.3f}, gap {gap:.3f}")
print(
    f"both private models together cost ε = {ledger.epsilon_spent:.2f}, for the "
    "group of each row"
)

figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
for name, (accuracy, gap) in points.items():
    axes.plot(gap, accuracy, "o", label=name)
axes.set(
    xlabel="demographic disparity (test rows)",
    ylabel="accuracy",
    title="ε = 2 for each private model",
)
axes.legend(fontsize="small")
plt.show()
