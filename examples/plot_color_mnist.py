"""
======================================
Coloured digits: a fair, private image
======================================

There are ten classes, and a group that the pictures show: each digit is red or green, and the lower digits are more
often red. A network that reads every digit correctly is then as unfair as the labels are. This page trains a small
convolutional network with differential privacy, with and without a parity term on public images. Then it answers with
and without IDP3.

The digits are the 8 x 8 ones that come with scikit-learn. With ``mnist.npz`` and
:func:`skfairdp.datasets.fetch_mnist` the same lines run on MNIST.
"""

# %%
# Images whose gap is known
# -------------------------
# ``disparity`` is the gap of the labels. It follows from the classes and the probabilities of red, before any colour is
# drawn.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skfairdp import IDP3, FairDPSGDClassifier
from skfairdp.datasets import make_color_mnist, train_private_public_test_split
from skfairdp.gradient import cnn
from skfairdp.metrics import coverage_score, demographic_disparity, selective_accuracy

digits = load_digits()
colored = make_color_mnist(digits.images / 16, digits.target, bias=0.75, random_state=0)
print(
    f"images of shape {colored.image_shape}; gap of the labels {colored.disparity:.3f}"
)
split = train_private_public_test_split(
    colored.data,
    colored.target,
    colored.sensitive_features,
    sizes=(0.5, 0.1, 0.4),
    random_state=0,
)

# %%
# Two networks, each at a certified ε of 4
# ----------------------------------------
# The public images have no labels here. The parity term reads their colours and nothing else.
answers = {}
for lam in (0.0, 10.0):
    model = FairDPSGDClassifier(
        epsilon=4.0,
        lam=lam,
        net=cnn(colored.image_shape, batch_size=128, lr=2.0),
        classes=list(range(10)),
        random_state=0,
    ).fit(split.X, split.y, X_public=split.public)
    answers[f"λ = {lam:g}"] = model.predict(split.X_test)
    print(f"λ = {lam:g}: certified ε = {model.privacy_.epsilon:.3f}")

# %%
# Answers that keep parity
# ------------------------
# IDP3 refuses answers that would widen the gap beyond γ. The labels of the two groups differ, so that equal shares of
# ten digits are possible only if some images stay unanswered. A network that is fairer by itself leaves fewer of them.
# With many classes the paper's check looks at the answered class alone (``gate="local"``), and answers more than the
# default.
for name in list(answers):
    idp = IDP3(gamma=0.05, gate="local").fit(
        None, answers[name], sensitive_features=split.sensitive_features_test
    )
    answers[f"{name}, IDP3"] = idp.transform(
        answers[name], sensitive_features=split.sensitive_features_test
    )
measured = {
    name: (
        selective_accuracy(split.y_test, predicted, reject_label=-1),
        demographic_disparity(
            None,
            predicted,
            sensitive_features=split.sensitive_features_test,
            classes=list(range(10)),
            reject_label=-1,
        ),
        coverage_score(None, predicted, reject_label=-1),
    )
    for name, predicted in answers.items()
}
for name, (accuracy, gap, coverage) in measured.items():
    print(
        f"{name:>14}: accuracy {accuracy:.3f}, gap {gap:.3f}, coverage {coverage:.2f}"
    )

# %%
figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(7, 5), height_ratios=(1, 3), layout="constrained"
)
images = split.X_test[:14].reshape(-1, *colored.image_shape).transpose(0, 2, 3, 1)
top.imshow(
    np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    .transpose(1, 0, 2, 3)
    .reshape(10, -1, 3)
)
top.axis("off")
where = np.arange(len(measured))
for j, name in enumerate(("accuracy", "gap", "coverage")):
    bottom.bar(
        where + 0.27 * (j - 1),
        [values[j] for values in measured.values()],
        width=0.25,
        label=name,
    )
bottom.set_xticks(where, list(measured))
bottom.legend(ncols=3, loc="upper center")
bottom.set_ylim(0, 1.25)
bottom.set_title("certified ε = 4")
plt.show()
