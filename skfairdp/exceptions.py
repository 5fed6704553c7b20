"""Errors and warnings of skfairdp. None of their messages ever contains a private value."""

__all__ = ["BudgetExceededError", "FairnessWarning", "LedgerError", "PrivacyLeakWarning", "UtilityWarning"]


class BudgetExceededError(RuntimeError):
    """A release was refused because it would exceed the privacy budget of its ledger or filter.

    It is raised *before* anything is released, so the budget stands where it stood.
    """


class LedgerError(RuntimeError):
    """A ledger file is missing, damaged or belongs to another budget; the ledger counts as exhausted."""


class PrivacyLeakWarning(UserWarning):
    """Something was read from private data, or made reproducible, outside the reported guarantee.

    The message names the quantity and the parameter that avoids the leak.
    """


class FairnessWarning(UserWarning):
    """A fairness statement holds only vacuously or for too few rows to mean what it says."""


class UtilityWarning(UserWarning):
    """By public and released figures the model predicts no better than the most frequent class.

    The message says how many rows, or which ε, would do.
    """
