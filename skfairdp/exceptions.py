"""Errors and warnings of skfairdp. None of their messages ever contains a private value."""

__all__ = ["BudgetExceededError", "FairnessWarning", "LedgerError", "PrivacyLeakWarning"]
__all__ += ["UnplannedReleaseError", "UtilityWarning"]


class BudgetExceededError(RuntimeError):
    """A release was refused because it would exceed the privacy budget of its ledger or filter.

    It is raised *before* anything is released, so the budget stays as it was.

    Examples
    --------
    >>> from skfairdp import BudgetExceededError, PrivacyLedger
    >>> from skfairdp.privacy import GaussianDpEvent
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    >>> noise, told = GaussianDpEvent(0.1), {"protects": "record", "neighboring_relation": "replace one record"}
    >>> try:
    ...     ledger.charge(noise, label="a fit", **told)
    ... except BudgetExceededError as error:
    ...     print(error, len(ledger.entries))  # doctest: +ELLIPSIS
    a fit would bring the epsilon of this ledger from 0 to 91.8..., over its ceiling of 1 ... Nothing was released. 0
    """


class LedgerError(RuntimeError):
    """A ledger file is missing, damaged or belongs to another budget; the ledger counts as exhausted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skfairdp import LedgerError, PrivacyLedger
    >>> from skfairdp.privacy import GaussianDpEvent
    >>> path = Path(tempfile.mkdtemp()) / "table.ledger"
    >>> told = {"protects": "record", "neighboring_relation": "replace one record"}
    >>> entry = PrivacyLedger(epsilon=1, delta=1e-5, path=path).charge(GaussianDpEvent(10.0), label="a fit", **told)
    >>> try:
    ...     PrivacyLedger(epsilon=2, delta=1e-5, path=path).spent()
    ... except LedgerError as error:
    ...     print(str(error).partition(". ")[2])
    Open it with its own budget.
    """


class UnplannedReleaseError(RuntimeError):
    """A release was refused because the plan of its fit does not cover it: a mistake in a program.

    Examples
    --------
    >>> from skfairdp.exceptions import UnplannedReleaseError
    >>> from skfairdp.privacy import GaussianMechanism, NeighboringRelation, Spending
    >>> mean = GaussianMechanism(5.0)
    >>> with Spending(mean.event, 1e-5, NeighboringRelation.REPLACE_ONE, label="a mean") as noise:
    ...     _ = mean.release([3.0], noise)
    ...     try:
    ...         mean.release([3.0], noise)
    ...     except UnplannedReleaseError as error:
    ...         print(str(error).partition(". ")[0])
    GaussianMechanism would release more than this fit has charged for
    """


class PrivacyLeakWarning(UserWarning):
    """Something was read from private data, or made reproducible, outside the reported guarantee.

    The message names the quantity and the parameter that avoids the leak. Turn the warning into an error where nothing
    may leak.

    Examples
    --------
    >>> import warnings
    >>> from skfairdp import PrivacyLeakWarning
    >>> from skfairdp.inspection import columns_telling_the_group
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyLeakWarning)
    ...     try:
    ...         columns_telling_the_group([[0], [1]] * 20, [0, 1] * 20)
    ...     except PrivacyLeakWarning as leak:
    ...         print(str(leak).partition(",")[0])
    1 column of X reveals the group of at least 99% of the rows
    """


class FairnessWarning(UserWarning):
    """A fairness constraint was not reached, or a fairness figure rests on too few rows or groups.

    Examples
    --------
    >>> import warnings
    >>> from skfairdp import FairnessWarning
    >>> from skfairdp.metrics import demographic_disparity
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", FairnessWarning)
    ...     gap = demographic_disparity(None, [0, 1], sensitive_features=["a", "a"])
    >>> gap, caught[0].category.__name__
    (0.0, 'FairnessWarning')
    """


class UtilityWarning(UserWarning):
    """A model is hardly better than the majority class, or may not read its columns, by public and released figures.

    The message says how many rows, or which ε, would do.

    Examples
    --------
    Fifty rows of noise say nothing of their labels:

    >>> import warnings
    >>> import numpy as np
    >>> from skfairdp import FairDPSGDClassifier
    >>> from skfairdp.exceptions import UtilityWarning
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 2)), rng.integers(2, size=50)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("ignore")  # the seed of the noise, which is for examples only
    ...     warnings.simplefilter("always", UtilityWarning)
    ...     model = FairDPSGDClassifier(epsilon=0.1, lam=0, classes=[0, 1], random_state=0, noise_seed=0).fit(X, y)
    >>> caught[0].category.__name__, len(set(model.predict(X)))
    ('UtilityWarning', 1)
    """
