"""Every error whose cause lies in private rows: its text, which no value of a row can change, and why it is needed.

An error leaves a fit uncharged, so its text must say no more than that something is wrong. Each text below is constant
but for names that the user wrote (class, parameter, argument). It holds no count, no value, no label and no type of a
cell. That such an error is raised at all is one bit about the rows, and the price of refusing rows that have no
meaning; this list is where that bit is accepted, and the only place that words it.
"""

from dataclasses import dataclass

__all__ = ["PRIVATE_ERRORS", "PrivateRowsError", "private_error"]


class PrivateRowsError(ValueError, TypeError):
    """Rows that cannot be used as they are. One type for every cause, so that the type says nothing either."""


@dataclass(frozen=True)
class PrivateError:
    """A text with places for public names, and the reason why it may depend on private rows.

    Parameters
    ----------
    text : str
        Template for ``str.format`` with the names ``owner``, ``name`` and ``parameter``.
    why : str
    """

    text: str
    why: str


PRIVATE_ERRORS: dict[str, PrivateError] = {
    "unknown value": PrivateError(
        "{name} of {owner} holds a value that is not in '{parameter}'. Add it to '{parameter}', or drop those rows.",
        "A value outside the public domain has no code. Any other value in its place would be made up.",
    ),
    "missing value": PrivateError(
        "{name} of {owner} contains missing values (None, NaN, infinity or masked). Give them a value of their own, "
        "for example fillna('unknown'), or drop those rows.",
        "A missing label or group stands for none of the public domain.",
    ),
    "not finite": PrivateError(
        "{name} of {owner} contains NaN, infinity, a masked entry or a number too large for a float. Impute those "
        "entries with values fitted on public rows, or drop those rows.",
        "scikit-learn's contract for estimators that do not accept missing values.",
    ),
    "not numbers": PrivateError(
        "{name} of {owner} has entries that are not numbers. The argument must be a table of numbers, or of strings "
        "that each read as a number. Encode other columns with a transformer fitted on public rows, for example "
        "PublicPreprocessor(make_tabular_encoder(), X_public).",
        "A cell that is no number has no place in a table of floats.",
    ),
    "complex": PrivateError(
        "Complex data not supported: {name} of {owner} must hold real numbers.",
        "scikit-learn's contract: complex numbers are refused, not cut.",
    ),
    "ragged": PrivateError(
        "{name} of {owner} is inhomogeneous: it must have one entry per row, all of the same shape.",
        "Rows of several lengths are no table.",
    ),
    "no labels": PrivateError(
        "Unknown label type: {name} of {owner} must be one column of class labels of one kind, such as strings or "
        "ints.",
        "Labels that have no common order, or that are measurements, name no classes.",
    ),
    "no groups": PrivateError(
        "{name} of {owner} contains values that cannot be groups, such as lists. Give one label per row.",
        "A group has to be comparable with the names of the groups.",
    ),
    "one class": PrivateError(
        "{owner} can't train when only one class is present in y. If that is no mistake, give the classes with the "
        "'classes' parameter.",
        "Only without 'classes', where the classes are read from y outside of the guarantee.",
    ),
    "one group": PrivateError(
        "{owner} found only one group, so every fairness statement would be vacuous. If that is no mistake, give the "
        "groups with the 'groups' parameter.",
        "Only without 'groups', where their names are read from the rows outside of the guarantee.",
    ),
    "other index": PrivateError(
        "{name} of {owner} has another index than {parameter}. Rows are matched by position: pass "
        "{name}.loc[{parameter}.index], or {name}.to_numpy() where the rows are in the same order.",
        "Two pandas objects that match their rows otherwise than by position: one of them is wrong. An index names "
        "rows and is public like their positions; should it hold private values, all that shows is that it differs.",
    ),
    "search failed": PrivateError(
        "A fit of {owner} failed after the search was charged. What was planned is spent, and nothing comes out: that "
        "a fit fails, and why, may depend on private rows. Fit the candidates on public rows to see the error.",
        "A failed fit must not lose to the others, or a record that makes it fail would choose the winner.",
    ),
}


def private_error(kind: str, **names: str) -> PrivateRowsError:
    """Build the error of this kind.

    Raise it outside of any ``except`` block: an error raised inside carries the first one along as its context, and
    loggers find private values there.

    Parameters
    ----------
    kind : str
        A key of ``PRIVATE_ERRORS``.
    **names : str
        ``owner``, ``name`` and ``parameter``, as far as the text has them. Names, never values.

    Examples
    --------
    >>> from skfairdp.utils import private_error
    >>> str(private_error("unknown value", owner="IDP3", name="y", parameter="classes"))
    "y of IDP3 holds a value that is not in 'classes'. Add it to 'classes', or drop those rows."
    """
    return PrivateRowsError(PRIVATE_ERRORS[kind].text.format(**names))
