"""What is returned or said in situations that used to pass in silence, and what the ledger holds before and after."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity

from skfairdp import IDP3


# ---- one meaning of a constraint --------------------------------------------------------------------------------
@pytest.mark.parametrize("bound", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.9), (0.2, 0.3, 0.5)])
def test_the_bound_of_a_fairlearn_moment_holds_between_every_two_groups(bound, shares):
    rng = np.random.default_rng(0)
    groups = rng.choice(len(shares), size=6000, p=shares)
    predicted = (rng.random(6000) < np.linspace(0.3, 0.7, len(shares))[groups]).astype(int)
    idp = IDP3(constraints=DemographicParity(difference_bound=bound), groups=range(len(shares)))
    answered = idp.fit(None, predicted).transform(predicted, sensitive_features=groups)
    kept = answered != idp.reject_label_
    rates = pd.Series(answered[kept]).groupby(groups[kept]).mean()
    assert rates.max() - rates.min() <= bound + 0.002 and kept.mean() > 0.3
