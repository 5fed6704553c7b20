"""Where parity is held: a gate before each vote, or on labels that are released already."""

from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator

from skfairdp.fairness import FairnessGate
from skfairdp.pate._vote_plan import check_numbers
from skfairdp.utils._sklearn import Interval, StrOptions

__all__ = ["LabelGate", "VoteGate", "as_gate"]


class VoteGate(BaseEstimator):
    """FairPATE: no label that would break parity counts as an answer, and the student is held to it as well.

    :class:`ConfidentVoting` asks the gate before each vote, so that a refused label costs nothing. Elsewhere it goes
    through the released labels in their order, which costs nothing either. The built-in student is then held to
    ``gamma`` on the public rows; a student of yours is trained on the labels that the gate let through.

    Parameters
    ----------
    min_count : int, default=50
        Answers a group gets before the gate judges it (cold start).
    rule : {"excess", "local"}, default="excess"
        "excess" never raises the total violation; "local" is the paper's check (equal for two groups and two classes).

    See Also
    --------
    LabelGate
    skfairdp.fairness.FairnessGate : the gate itself.

    Examples
    --------
    >>> from skfairdp.pate import FairPATEClassifier, VoteGate
    >>> FairPATEClassifier(gate=VoteGate(min_count=20)).gate.rule
    'excess'
    """

    _parameter_constraints: dict[str, Any] = {
        "min_count": [Interval(Integral, 0, None, closed="left")],
        "rule": [StrOptions({"excess", "local"})],
    }

    def __init__(self, *, min_count: int = 50, rule: str = "excess") -> None:
        self.min_count = min_count
        self.rule = rule

    def open(
        self, n_groups: int, n_classes: int, *, gamma: float | None, disparity: str, counts: Any = None
    ) -> FairnessGate:
        """A fresh gate, or one that has given the answers that ``counts`` holds.

        Parameters
        ----------
        n_groups, n_classes : int
            Shape of the gate's counters.
        gamma : float or None
            Largest disparity allowed. None: the gate lets everything through.
        disparity : {"others", "overall", "between"}
            What a group's rate is compared with.
        counts : array-like of shape (n_groups, n_classes) or None, default=None
            Answers given so far. None: none.

        Returns
        -------
        gate : FairnessGate
            With counters of its own.
        """
        return FairnessGate(
            n_groups,
            n_classes,
            gamma=gamma,
            min_count=self.min_count,
            disparity=disparity,
            gate=self.rule,
            counts=counts,
        )


class LabelGate(VoteGate):
    """PATE-S_pre, a baseline of the paper: plain PATE, whose student sees only what passes the gate.

    Released labels that would break parity are withdrawn, as :class:`~skfairdp.DemographicParityFilter` does, and the
    student learns from the rows that are left. It is held to nothing. The gate never reaches the votes: in the paper's
    words the design is not impartial, as budget is spent on labels that fairness then throws away.

    Parameters
    ----------
    min_count : int, default=50
        Answers a group gets before the gate judges it (cold start).
    rule : {"excess", "local"}, default="excess"
        As in :class:`VoteGate`.

    See Also
    --------
    VoteGate

    Examples
    --------
    >>> from skfairdp.pate import LabelGate
    >>> LabelGate(min_count=20)
    LabelGate(min_count=20)
    """

    def __init__(self, *, min_count: int = 50, rule: str = "excess") -> None:
        super().__init__(min_count=min_count, rule=rule)


def as_gate(gate: Any, owner: str) -> VoteGate | None:
    """The part that ``gate`` is or names, with its parameters checked; None for none.

    Parameters
    ----------
    gate : {"votes", "labels"}, VoteGate, LabelGate or None
    owner : str
        Class name for the error message.

    Returns
    -------
    VoteGate or None

    Raises
    ------
    ValueError
        It is nothing of the kind, or one of its parameters is outside its range.
    """
    if gate is None:
        return None
    names = {"votes": VoteGate, "labels": LabelGate}
    part = names[gate]() if isinstance(gate, str) and gate in names else gate
    if not isinstance(part, VoteGate):
        raise ValueError(
            f"The 'gate' parameter of {owner} must be 'votes', 'labels', VoteGate(), LabelGate() or None. "
            f"Got {gate!r} instead."
        )
    part._validate_params()
    check_numbers(part)
    return part
