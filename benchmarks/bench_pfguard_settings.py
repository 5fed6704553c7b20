"""PFGuard's normalisation of sampling weights, and the size of its reference set: the paper's Figures 5 and 10.

    python benchmarks/bench_pfguard_settings.py

GS-WGAN on two digits at 14 x 14, a fifth of them turned, at an ε that holds. *Normalisation*: weights N1 (w ∝ h) and N2
(w ∝ h / (Σh − h)) for each of the ``--batches``. *Reference*: groups are unknown, and public images of which half are
turned tell what is rare; they are some share of the private ones. 100 discriminators and 100 steps, a small part of the
paper's, so that a fit takes seconds.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import _common as common
import bench_pfguard_images as images

N_TEACHERS, N_STEPS = 100, 100
BATCHES = (32, 64, 128)
SHARES = (0.005, 0.01, 0.02, 0.06)
KEYS = ("part", "batch_size", "normalization", "share", "public")
FIGURES = ("kl", "distribution_disparity", "frechet")


def settings(batches: Sequence[int], quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the settings of each part."""
    known = {"part": "normalization", "share": None}
    for batch_size in batches[:1] if quick else batches:
        yield from (known | {"batch_size": batch_size, "normalization": name} for name in ("N1", "N2"))
    unknown = {"part": "reference", "batch_size": 32, "normalization": "N1"}
    yield from (unknown | {"share": share} for share in (SHARES[-1:] if quick else SHARES))


def points(seed: int, batches: Sequence[int], quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one measured point for each setting on one split."""
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression

    from skfairdp import PFGuardGenerator, metrics
    from skfairdp.papers import GSWGANBackend

    private, test, public = images.turned_digits(seed, quick)
    judge = LogisticRegression(max_iter=300).fit(images.flat(private.data), private.sensitive_features)
    extractor = PCA(32).fit(images.flat(test.data))
    rng = np.random.default_rng(seed)
    rare = np.flatnonzero(test.sensitive_features == "turned")
    frequent = rng.choice(np.flatnonzero(test.sensitive_features == "upright"), len(rare), replace=False)
    even = images.flat(test.data[np.concatenate([rare, frequent])])
    for setting in settings(batches, quick):
        reference = None if setting["share"] is None else public[: max(round(setting["share"] * len(private.data)), 2)]
        backend = GSWGANBackend(
            n_teachers=10 if quick else N_TEACHERS, n_steps=10 if quick else N_STEPS, teacher_steps=2,
            batch_size=setting["batch_size"], normalization=setting["normalization"],
        )  # fmt: skip
        generator = PFGuardGenerator(
            backend=backend, epsilon=images.EPSILON, delta=images.DELTA, bounds=(0, 1), classes=[0, 1],
            groups=images.GROUPS if reference is None else None, random_state=seed,
            balance="group_and_label" if reference is None else "group",
        )  # fmt: skip
        groups = private.sensitive_features if reference is None else None
        generator.fit(private.data, private.target, sensitive_features=groups, X_public=reference)
        made = images.flat(generator.sample(400 if quick else 4000, random_state=seed))
        seen = judge.predict(made)
        yield setting | {
            "public": None if reference is None else len(reference),
            "epsilon_certified": generator.privacy_.epsilon,
            "kl": metrics.kl_to_uniform(seen, groups=images.GROUPS),
            "distribution_disparity": metrics.distribution_disparity(seen, groups=images.GROUPS),
            "frechet": metrics.frechet_distance(even, made, extractor=extractor.transform),
        }


def main() -> None:
    parser = common.parser(__doc__, "pfguard_settings", seeds=2, first_seed=100)
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES), help="batch sizes of N1 and N2")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    measured: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        for point in points(seed, arguments.batches, arguments.quick):
            measured.append(point | {"seed": seed})
            print(f"seed {seed}:", *(point[key] for key in (*KEYS, *FIGURES)), flush=True)
        rows = common.averaged(measured, KEYS, FIGURES, by_seed=FIGURES)
        common.save(
            arguments,
            **images.SETTING,
            n_teachers=N_TEACHERS,
            n_steps=N_STEPS,
            n_seeds=len({point["seed"] for point in measured}),
            rows=rows,
        )
    common.print_table(
        [*KEYS, *FIGURES],
        [[*(row[key] for key in KEYS), *(common.plus_minus(row[name]) for name in FIGURES)] for row in rows],
    )


if __name__ == "__main__":
    main()
