"""No fit of PATE copies the private table: what it holds beside it is less than half of it."""

import tracemalloc

import numpy as np
import pytest

from skfairdp import FairPATEClassifier, PATEClassifier, PublicData

N_ROWS, N_FEATURES = 100_000, 40


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize("make", [PATEClassifier, FairPATEClassifier])
def test_a_fit_holds_no_copy_of_the_table(make):
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((N_ROWS, N_FEATURES)), np.arange(600) % 2
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X_public = PublicData(rng.standard_normal((600, N_FEATURES)), groups if make is FairPATEClassifier else None)
    model = make(classes=[0, 1], random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y, X_public=X_public)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X.nbytes
