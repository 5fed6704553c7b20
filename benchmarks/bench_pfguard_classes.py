"""GS-WGAN of PFGuardGenerator on all ten MNIST digits, of one of which fewer and fewer are left: the paper's Figure 4.

Digits at 14 x 14, a fixed number of discriminators, an ε that holds. A discriminator has a row of the rare digit only
while there are more of those than discriminators, which is the paper's upper bound on their number.
"""

import warnings
from typing import Any

import _common as common
import bench_pfguard_images as images

LEVELS = (1, 5, 10, 20)
N_TEACHERS = 300


def main() -> None:
    parser = common.parser(__doc__, "pfguard_classes", seeds=1, first_seed=100)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    from skfairdp.papers import GSWGANBackend

    quick = arguments.quick
    n_teachers = 20 if quick else N_TEACHERS
    backend = {"backend": GSWGANBackend(n_teachers=n_teachers, n_steps=10 if quick else 400, teacher_steps=2)}
    measured: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        for point in images.class_points(seed, quick, backend, LEVELS[:1] if quick else LEVELS):
            measured.append(point)
            print(f"seed {seed}, one in {point['level']}, {point['method']}: done", flush=True)
    rows = images.summaries(measured, ("method", "level"), ("n_rare", "recall_of_rare", "accuracy"))
    images.print_classes(rows)
    common.save(arguments, **images.SETTING, n_teachers=N_TEACHERS, rows=rows, rare=images.RARE)


if __name__ == "__main__":
    main()
