"""
==================================
Synthetic images with a rare class
==================================

Among some 1,300 small digits only one 8 in three is left. ``PFGuardGenerator`` makes digits that anyone may use, all
ten equally often, at ε = 10 for one image replaced. A classifier that learns from them recognises the 8 more often.

You can give images as they are, to a backend of networks, or flat, with a column for each pixel, to the default one.
"""

# %%
# Digits
# ------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skfairdp import PFGuardGenerator
from skfairdp.datasets import make_class_bias
from skfairdp.generative import TableCodec
from skfairdp.papers import GSWGANBackend

digits = load_digits()
images, labels = digits.images / 16, digits.target
order = np.random.default_rng(0).permutation(len(labels))
test, private = np.split(order, [450])
biased = make_class_bias(
    images[private], labels[private], minority=8, level=3, random_state=0
)
print(
    f"private images: {len(biased.target)}, of them an 8: {(biased.target == 8).sum()}"
)

# %%
# Three generators
# ----------------
# The digit is the group here, and there is no other label. ``balance="group"`` draws all groups equally often, ``None``
# as often as a noisy count says they are. Pixels lie between 0 and 1, which is public.


def generator(**settings):
    return PFGuardGenerator(
        epsilon=10.0, bounds=(0, 1), groups=list(range(10)), random_state=0, **settings
    )


pixels = {"codec": TableCodec(n_bins=4)}
network = {"backend": GSWGANBackend(n_teachers=100, n_steps=200)}
made = {}
for name, settings, flat in (
    ("a column for each pixel, balanced", {**pixels, "balance": "group"}, True),
    ("a column for each pixel, as it is", {**pixels, "balance": None}, True),
    ("GS-WGAN, balanced", {**network, "balance": "group"}, False),
):
    rows = biased.data.reshape(len(biased.data), -1) if flat else biased.data
    fitted = generator(**settings).fit(rows, sensitive_features=biased.target)
    X, digit = fitted.sample(5000, return_sensitive=True, random_state=0)
    made[name] = X.reshape(-1, 8, 8), np.asarray(digit).astype(int)
    print(f"{name}: certified epsilon {fitted.privacy_.epsilon:.2f}")

# %%
# How well a classifier learns from the images
# --------------------------------------------
# The figure shows one of each digit, and how often a classifier that never saw a private image reads the real ones.

figure, axes = plt.subplots(len(made), 10, figsize=(8, 3), layout="constrained")
for line, (name, (rows, digit)) in zip(axes, made.items(), strict=True):
    model = LogisticRegression(max_iter=300).fit(rows.reshape(len(rows), -1), digit)
    right = model.predict(images[test].reshape(len(test), -1)) == labels[test]
    recall = right[labels[test] == 8].mean()
    print(f"{name}: accuracy {right.mean():.2f}, recall of the 8 {recall:.2f}")
    for shown, axis in enumerate(line):
        axis.imshow(
            rows[np.flatnonzero(digit == shown)[0]], cmap="gray_r", vmin=0, vmax=1
        )
        axis.set_axis_off()
    line[0].set_title(name, fontsize=8, loc="left")
plt.show()
