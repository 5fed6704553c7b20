"""How networks under constraints read columns: flags, columns that say nothing, and how weights decay."""

import numpy as np
import pytest

from skfairdp import SFPATEClassifier
from skfairdp.exceptions import UtilityWarning
from skfairdp.lagrangian import LagrangianClassifier, as_perceptron, mlp, standard_scale


def test_a_column_that_says_nothing_is_not_scaled_by_what_rounding_leaves_of_it():
    X = np.column_stack([np.arange(7.0), np.full(7, 0.1)])
    assert X[:, 1].std() > 0
    np.testing.assert_allclose(standard_scale(X)[1], [2.0, 1.0])


@pytest.mark.parametrize("net", ["mlp", "additive"])
def test_a_column_that_says_nothing_has_no_part_in_answers_to_other_rows(net):
    """Its deviation was what rounding left of it, so that other rows were 1e15 of these away: answers were chance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[:, 2] = 0.1
    model = LagrangianClassifier(constraints=None, net=net, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    others = rng.normal(size=(500, 3))
    alike = np.column_stack([others[:, :2], np.full(500, 0.1)])
    np.testing.assert_allclose(model.predict_proba(others), model.predict_proba(alike))
    assert np.mean(model.predict(others) == (others[:, 0] > 0)) > 0.95


def test_weights_decay_by_the_number_of_rows_unless_told_otherwise():
    def decay(n, **given):
        learner = LagrangianClassifier(net=mlp(**given))
        return as_perceptron(learner).training(n).optimizer_options["weight_decay"]

    assert (decay(300), decay(3000)) == (pytest.approx(0.01), pytest.approx(0.001))
    assert decay(300, optimizer__weight_decay=0.5) == 0.5


def flags(n, seed):
    """Many flags that few rows have, and labels that no column says anything of."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, 60)) < 0.04).astype(float), (rng.random(n) < 0.35).astype(int), rng.integers(2, size=n)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_what_a_student_of_many_rows_knows_by_heart_is_no_reason_to_keep_it():
    """On others it was wrong more often than one class: only up to 10,000 rows anybody looked."""
    X, y, groups = flags(11_000, 0)
    model = SFPATEClassifier(epsilon=2.0, groups=[0, 1], random_state=0)
    with pytest.warns(UtilityWarning, match="predicts the class 0 for every row"):
        model.fit(X, y, sensitive_features=groups)
