"""The method that gives every private estimator its statement."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skfairdp.privacy._report import PrivacySpent
    from skfairdp.privacy._statement import PrivacyStatement

__all__ = ["StatesPrivacy"]


class StatesPrivacy:
    """For whatever sets ``privacy_`` when it is fitted."""

    privacy_: "PrivacySpent"
    get_params: Callable[..., dict[str, Any]]

    def privacy_statement(self) -> "PrivacyStatement":
        """State what the fit guarantees, in a form that travels with the model and can be recomputed by anybody.

        It is made from ``privacy_`` and, where there is one, from the ledger; nothing in it follows private values.

        Returns
        -------
        PrivacyStatement
            With ``to_json``, ``to_markdown``, ``to_html``, ``to_registry_yaml`` and ``add_to_card``. Write its JSON to
            a file, and ``python -m skfairdp verify FILE`` recomputes every figure.

        Raises
        ------
        AttributeError
            There is no ``privacy_`` yet: fit (or release) first.
        """
        spent = getattr(self, "privacy_", None)
        if spent is None:
            name = type(self).__name__
            raise AttributeError(f"This {name} has no privacy_ to make a statement of. Fit it first.")
        parameters = self.get_params(deep=True)
        ledgers = [value for key, value in parameters.items() if key.rsplit("__", 1)[-1] == "ledger"]
        ledger = next((value for value in ledgers if hasattr(value, "entries")), None)
        statement: PrivacyStatement = spent.statement(subject=type(self).__name__, ledger=ledger)
        return statement
