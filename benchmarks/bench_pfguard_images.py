"""PFGuardGenerator on MNIST with biased groups or classes, at an ε that holds: with balancing and without.

Digits at 14 x 14. "marginals" takes each pixel for a column of four cells; "gs_wgan", "g_pate" and "datalens" are the
backends of the paper's tables, and reweighting, DP-SGD-F and DPSGD-Global-Adapt its baselines inside GS-WGAN. Groups of
generated images are those that a classifier of real ones sees. The paper's Tables 1, 2, 3, 7, 8 and Figure 4, at a size
one core does.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import bench_pfguard as ours
from sklearn.base import BaseEstimator

EPSILON, DELTA = 10.0, 1e-5
#: What the pages say of results on digits.
SETTING = {"data": "mnist", "epsilon": EPSILON, "delta": DELTA, "protects": "record (replace one record)"}
NO_PRIVACY = 1e6  # its noise is next to none; the ε is printed as it is
GROUPS = ["turned", "upright"]
LEVELS = (1, 2, 5, 10)
RARE = 8
SIZES = ("kl", "distribution_disparity", "frechet", "frechet_worst")
DOWNSTREAM = ("accuracy", "equalized_odds_disparity", "demographic_disparity")


def flat(images: Any) -> Any:
    import numpy as np

    return np.asarray(images).reshape(len(images), -1)


def digits(quick: bool) -> tuple[Any, Any, int]:
    """Return images in [0, 1], labels, and the side to shrink to."""
    if quick:
        from sklearn.datasets import load_digits

        rows = load_digits()
        return rows.images / 16, rows.target, 8
    from skfairdp.datasets import fetch_mnist

    mnist = fetch_mnist()
    return mnist.images, mnist.target, 14


def turned_digits(seed: int, quick: bool) -> tuple[Any, Any, Any]:
    """Return private and test images of two digits, a fifth of them turned, and a few with half of them turned."""
    import numpy as np
    from sklearn.utils import Bunch

    from skfairdp.datasets import make_rotated_subgroups

    images, labels, size = digits(quick)
    chosen = np.flatnonzero(np.isin(labels, (1, 3)))
    order = np.random.default_rng(seed).permutation(chosen)
    cuts = np.split(order, [int(0.80 * len(order)), int(0.85 * len(order))])

    def turned(part: Any, share: float) -> Bunch:
        return make_rotated_subgroups(
            images[part], (labels[part] == 3).astype(int), minority_share=share, size=size, random_state=seed
        )

    return turned(cuts[0], 0.2), turned(cuts[2], 0.2), turned(cuts[1], 0.5).data


class ConvolutionalNetwork(BaseEstimator):
    """The package's small convolutional network on flat square images, as a classifier of two labels."""

    classes_ = (0, 1)

    def fit(self, X: Any, y: Any) -> "ConvolutionalNetwork":
        import torch

        from skfairdp._networks import CNN, own_generator

        side = round(X.shape[1] ** 0.5)
        rows, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
        with own_generator(0):
            self.net = CNN(X.shape[1], 2, (1, side, side))
        optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        for _ in range(8):
            for some, wanted in zip(rows.split(64), labels.split(64), strict=True):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.net(some), wanted).backward()
                optimizer.step()
        return self

    def predict_proba(self, X: Any) -> Any:
        import torch

        with torch.no_grad():
            return self.net(torch.as_tensor(X, dtype=torch.float32)).softmax(dim=1).numpy()

    def predict(self, X: Any) -> Any:
        return self.predict_proba(X).argmax(axis=1)


def learners() -> dict[str, Any]:
    """Downstream classifiers of flat images."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    return {
        "logistic regression": LogisticRegression(max_iter=200),
        "perceptron": MLPClassifier((64,), max_iter=30, random_state=0),
        "convolutional network": ConvolutionalNetwork(),
    }


def methods(quick: bool) -> dict[str, dict[str, Any]]:
    """Settings of the generator by name."""
    from skfairdp.generative import TableCodec
    from skfairdp.papers import DataLensBackend, GPATEBackend, GSWGANBackend

    def gs_wgan(**more: Any) -> dict[str, Any]:
        given = {"n_teachers": 200, "n_steps": 20 if quick else 400, "teacher_steps": 2}
        return {"backend": GSWGANBackend(**{**given, **more})}

    def voting(backend: Any) -> dict[str, Any]:
        return {"backend": backend(n_teachers=200)}

    pixels = {"backend": "marginals", "codec": TableCodec(n_bins=4)}
    unknown = {"groups": None, "balance": "group"}
    as_it_is = {"balance": None}
    return {
        "marginals, balanced": pixels,
        "marginals, as it is": {**pixels, **as_it_is},
        "gs_wgan, fair batches": gs_wgan(),
        "gs_wgan, stratified batches": gs_wgan(sampling="stratified"),
        "gs_wgan, teachers of one group": gs_wgan(sampling="by_group"),
        "gs_wgan, one drawn": gs_wgan(discriminators="one"),
        "gs_wgan, groups unknown": {**gs_wgan(), **unknown},
        "gs_wgan, groups unknown, GOLD": {**gs_wgan(teacher_loss="gold"), **unknown},
        "gs_wgan, as it is": {**gs_wgan(), **as_it_is},
        "gs_wgan, reweighting": gs_wgan(sampling="weights"),
        "gs_wgan, groups unknown, reweighting": {**gs_wgan(sampling="weights"), **unknown},
        "gs_wgan, DP-SGD-F": {**gs_wgan(clipping="dpsgd_f"), **as_it_is},
        "gs_wgan, Global-Adapt": {**gs_wgan(clipping="global_adapt"), **as_it_is},
        "gs_wgan, fair only": {**gs_wgan(n_teachers=10), "epsilon": NO_PRIVACY},
        "gs_wgan, neither fair nor private": {**gs_wgan(n_teachers=10), **as_it_is, "epsilon": NO_PRIVACY},
        "g_pate, fair batches": voting(GPATEBackend),
        "g_pate, as it is": {**voting(GPATEBackend), **as_it_is},
        "datalens, fair batches": voting(DataLensBackend),
        "datalens, as it is": {**voting(DataLensBackend), **as_it_is},
    }


#: Ways in which discriminators see groups: the paper's comparison in E.5.
TEACHERS = ("fair batches", "stratified batches", "teachers of one group", "as it is")


def subgroup_points(seed: int, quick: bool, chosen: tuple[str, ...] | None = None) -> Iterator[dict[str, Any]]:
    """Yield one point for each method: sizes and quality by group, and what is learnt from the images."""
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression

    from skfairdp import PFGuardGenerator, metrics

    private, test, public = turned_digits(seed, quick)
    judge = LogisticRegression(max_iter=300).fit(flat(private.data), private.sensitive_features)
    extractor = PCA(32).fit(flat(test.data))
    # as many of each group: what is far from it is not what is rare in the test rows
    rng = np.random.default_rng(seed)
    rare = np.flatnonzero(test.sensitive_features == "turned")
    frequent = rng.choice(np.flatnonzero(test.sensitive_features == "upright"), len(rare), replace=False)
    even = np.concatenate([rare, frequent])
    given = {"X_test": flat(test.data), "y_test": test.target, "sensitive_features": test.sensitive_features}

    def distance(real: Any, made: Any) -> float:
        if len(made) < 40:  # no covariance to speak of
            return float("nan")
        return metrics.frechet_distance(real, made, extractor=lambda rows: extractor.transform(flat(rows)))

    for name, settings in methods(quick).items():
        if chosen is not None and name not in chosen:
            continue
        settings = {"epsilon": EPSILON, "groups": GROUPS, "balance": "group_and_label", **settings}
        known = settings["groups"] is not None
        pixels = settings["backend"] == "marginals"
        started = time.perf_counter()
        generator = PFGuardGenerator(delta=DELTA, bounds=(0, 1), classes=[0, 1], random_state=seed, **settings)
        generator.fit(
            flat(private.data) if pixels else private.data,
            private.target,
            sensitive_features=private.sensitive_features if known else None,
            X_public=None if known else public,
        )
        fitted = time.perf_counter() - started
        images, labels = generator.sample_labels(400 if quick else 4000, random_state=seed)
        images, labels = flat(images), np.asarray(labels)
        seen = judge.predict(images)
        by_cell = {
            f"{label}, {group}": distance(
                test.data[(test.target == label) & (test.sensitive_features == group)],
                images[(labels == label) & (seen == group)],
            )
            for label in (0, 1)
            for group in GROUPS
        }
        yield {
            "method": name,
            "epsilon_certified": generator.privacy_.epsilon,
            "kl": metrics.kl_to_uniform(seen, groups=GROUPS),
            "distribution_disparity": metrics.distribution_disparity(seen, groups=GROUPS),
            "frechet": distance(test.data[even], images),
            "frechet_as_drawn": distance(test.data, images),
            "frechet_worst": max(by_cell.values()),  # nan where a cell has next to no image
            "cells_without_images": int(np.isnan(list(by_cell.values())).sum()),
            "judge_accuracy": float(judge.score(flat(test.data), test.sensitive_features)),
            "fit_seconds": fitted,
            "downstream": {
                learner: {key: ours.scores_of(model, images, labels, given)[key] for key in DOWNSTREAM}
                for learner, model in learners().items()
            },
        }


def class_points(
    seed: int, quick: bool, backend: dict[str, Any] | None = None, levels: tuple[int, ...] = LEVELS
) -> Iterator[dict[str, Any]]:
    """Yield recalls of a rare digit among all ten, one point for each level of bias and way of drawing.

    ``backend`` are settings of the generator; None takes each pixel for a column.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from skfairdp import PFGuardGenerator
    from skfairdp.datasets import make_class_bias, make_rotated_subgroups
    from skfairdp.generative import TableCodec

    images, labels, size = digits(quick)
    small = make_rotated_subgroups(images, labels, minority_share=1e-12, size=size, random_state=0).data
    order = np.random.default_rng(seed).permutation(len(labels))
    test, private = np.split(order, [len(order) // 7])
    settings = {"codec": TableCodec(n_bins=4)} if backend is None else backend
    for level in levels:
        rows = make_class_bias(small[private], labels[private], minority=RARE, level=level, random_state=seed)
        for name, balance in (("balanced", "group"), ("as it is", None)):
            generator = PFGuardGenerator(
                epsilon=EPSILON,
                delta=DELTA,
                bounds=(0, 1),
                groups=list(range(10)),
                balance=balance,
                random_state=seed,
                **settings,
            )
            generator.fit(flat(rows.data) if backend is None else rows.data, sensitive_features=rows.target)
            made, digit = generator.sample(1000 if quick else 10_000, return_sensitive=True, random_state=seed)
            digit = np.asarray(digit).astype(int)
            predicted = LogisticRegression(max_iter=100).fit(flat(made), digit).predict(flat(small[test]))
            right = predicted == labels[test]
            yield {
                "method": name,
                "level": level,
                "n_rare": int((rows.target == RARE).sum()),
                "epsilon_certified": generator.privacy_.epsilon,
                "recall_of_rare": float(right[labels[test] == RARE].mean()),
                "accuracy": float(right.mean()),
            }


def summaries(measured: list[dict[str, Any]], keys: tuple[str, ...], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Average over seeds."""
    rows = common.averaged(measured, keys, names)
    for row in rows:
        mine = [point for point in measured if all(point[k] == row[k] for k in keys)]
        if "downstream" in mine[0]:
            row["downstream"] = {
                learner: {m: common.summary([point["downstream"][learner][m] for point in mine]) for m in DOWNSTREAM}
                for learner in mine[0]["downstream"]
            }
    return rows


def print_classes(rows: list[dict[str, Any]]) -> None:
    """Print the table of a rare digit."""
    common.print_table(
        ["classes", "level", "ε", f"recall of {RARE}", "accuracy"],
        [
            [row["method"], row["level"], f"{row['epsilon_certified']:.2f}"]
            + [common.plus_minus(row[name]) for name in ("recall_of_rare", "accuracy")]
            for row in rows
        ],
    )


def main() -> None:
    parser = common.parser(__doc__, "pfguard_images", seeds=2, first_seed=100)
    parser.add_argument("--parts", choices=("all", "teachers"), default="all", help="teachers: the comparison of E.5")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = tuple(f"gs_wgan, {way}" for way in TEACHERS) if arguments.parts == "teachers" else None
    groups: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        groups += subgroup_points(seed, arguments.quick, chosen)
        print(f"groups, seed {seed}: done", flush=True)
        classes += [] if chosen else class_points(seed, arguments.quick)
        print(f"classes, seed {seed}: done", flush=True)
    names = (*SIZES, "frechet_as_drawn", "cells_without_images", "judge_accuracy", "fit_seconds")
    rows = summaries(groups, ("method",), names)
    levels = summaries(classes, ("method", "level"), ("n_rare", "recall_of_rare", "accuracy"))
    common.print_table(
        ["method", "ε", "KL", "dist. disp.", "Fréchet", "worst group", "accuracy", "EO gap", "Dem gap", "fit s"],
        [
            [row["method"], f"{row['epsilon_certified']:.2f}"]
            + [common.plus_minus(row[name]) for name in SIZES]
            + [common.plus_minus(row["downstream"]["perceptron"][name]) for name in DOWNSTREAM]
            + [common.plus_minus(row["fit_seconds"], 1)]
            for row in rows
        ],
    )
    print_classes(levels)
    if chosen:
        common.save(arguments, name="pfguard_teachers", **SETTING, rows=rows)
    else:
        common.save(arguments, **SETTING, rows=rows, classes=levels, rare=RARE)


if __name__ == "__main__":
    main()
