"""
======================================
SF-PATE: fair student or fair teachers
======================================

``SFPATEClassifier`` protects one thing, the group of each training row. Features and labels count as public. It can put
fairness in two places:

* ``variant="student"``: the teachers learn the *group*, and the student is fair. One fair model sees all rows, so this
  works with small groups and many teachers.
* ``variant="teacher"``: every teacher is fair on its own rows, and a plain student learns from their votes. No group is
  released, not even a noisy one, but each part has to be large enough for a teacher to be fair on.
"""

# %%
# One privacy budget, both variants, few and many teachers
# ---------------------------------------------------------
import matplotlib.pyplot as plt
import numpy as np

from skfairdp import LagrangianClassifier, SFPATEClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.metrics import demographic_disparity

X, y, groups = make_biased_classification(
    12_000, disparity=0.3, group_proportions=(0.3, 0.7), random_state=0
)
train, test = slice(0, 9000), slice(9000, None)


def measure(model):
    """Accuracy and gap on the test rows."""
    predicted = model.predict(X[test])
    gap = demographic_disparity(None, predicted, sensitive_features=groups[test])
    return float(np.mean(predicted == y[test])), gap


network = LagrangianClassifier(random_state=0)
without = measure(
    LagrangianClassifier(constraints=None, random_state=0).fit(X[train], y[train])
)
best = measure(network.fit(X[train], y[train], sensitive_features=groups[train]))
print(f"no constraint: accuracy {without[0]:.3f}, gap {without[1]:.3f}")
print(f"fair, no privacy: accuracy {best[0]:.3f}, gap {best[1]:.3f}")

points = {}
for variant in ("student", "teacher"):
    for n_teachers in (50, 300):
        model = SFPATEClassifier(
            variant=variant,
            epsilon=2.0,
            n_teachers=n_teachers,
            groups=[0, 1],
            classes=[0, 1],
            random_state=0,
        ).fit(X[train], y[train], sensitive_features=groups[train])
        points[variant, n_teachers] = measure(model)
        accuracy, gap = points[variant, n_teachers]
        print(
            f"variant={variant!r}, {n_teachers:3} teachers: accuracy {accuracy:.3f}, "
            f"gap {gap:.3f}; {model.privacy_}"
        )

# %%
# With more teachers the noise matters less, and each of them sees fewer rows. Thirty rows are enough to learn a little
# about the group, but a classifier that is fair on thirty rows need not be fair on others. So take the fair student
# where parts are small. Take fair teachers for a learner that needs the true group of every row.
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
axes.plot(*without[::-1], "kx", label="no constraint")
axes.plot(*best[::-1], "k+", label="fair, no privacy")
for (variant, n_teachers), (accuracy, gap) in points.items():
    marker = "o" if variant == "student" else "s"
    axes.plot(gap, accuracy, marker, label=f"fair {variant}, {n_teachers} teachers")
axes.set(
    xlabel="demographic disparity (test rows)",
    ylabel="accuracy",
    title="ε = 2 for the group of each row",
)
axes.legend(fontsize="small")
plt.show()
