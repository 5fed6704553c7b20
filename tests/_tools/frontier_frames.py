"""Small frontier frames with made-up figures, for the tests of what is drawn from them."""

import numpy as np
import pandas as pd

from skfairdp.model_selection import pareto_frontier


def make_frame(protects="record", relation="replace one record", epsilons=(0.5, 1.0, 5.0), dataset="toy"):
    rows = []
    for level, epsilon in enumerate(epsilons):
        for gamma in (0.01, 0.05, None):
            for idp3 in (False, True):
                if gamma is None and idp3:
                    continue
                gap = 0.1 if gamma is None else gamma * (0.5 if idp3 else 0.9)
                rows.append(
                    {
                        "dataset": dataset,
                        "estimator": "FairPATEClassifier",
                        "epsilon": epsilon,
                        "delta": 1e-5,
                        "protects": protects,
                        "neighboring_relation": relation,
                        "gamma": np.nan if gamma is None else gamma,
                        "idp3": idp3,
                        "disparity": gap,
                        "accuracy": 0.78 + 0.01 * level + 0.2 * gap,
                        "coverage": 0.9 if idp3 else 1.0,
                        "params": f"FairPATEClassifier(epsilon={epsilon}, gamma={gamma})",
                    }
                )
    frame = pd.DataFrame(rows)
    frame["non_dominated"] = pareto_frontier(
        frame[["epsilon", "disparity", "accuracy", "coverage"]].to_numpy(), [True, True, False, False]
    )
    record = {
        "protects": protects,
        "neighboring_relation": relation,
        "delta": 1e-5,
        "epsilon_total": 5.3,
        "n_fits": 3,
    }
    frame.attrs.update({"guarantees": [record], "n_test": 1000, **record})
    return frame


def two_guarantees():
    first, second = (
        make_frame(),
        make_frame("sensitive attribute", "replace one sensitive attribute", (1.0, 3.0)),
    )
    guarantees = [*first.attrs["guarantees"], *second.attrs["guarantees"]]
    first.attrs, second.attrs = {}, {}
    both = pd.concat([first, second], ignore_index=True)
    both.attrs["guarantees"] = guarantees
    return both
