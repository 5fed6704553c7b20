"""Errors about tables that may hold private rows: scikit-learn's, without the entries they quote."""

__all__ = ["without_values"]


def without_values(error: Exception, *, owner: str, name: str = "X") -> Exception:
    """Return an error that says what was wrong with a table and repeats none of its entries.

    Parameters
    ----------
    error : Exception
        Raised by scikit-learn or numpy while they read the table.
    owner : str
        Class name for the message.
    name : str, default="X"
        Argument name for the message.

    Returns
    -------
    Exception
        ``error`` itself where its message quotes nothing, else a ValueError. Raise it *outside* the ``except``
        block: an error raised inside carries the first one as its context, for loggers to find.

    Examples
    --------
    >>> from skfairdp.utils import without_values
    >>> without_values(ValueError("could not convert string to float: 'Ms Smith'"), owner="IDP3", name="y")
    ValueError('y of IDP3 has entries that are not numbers.')
    """
    said = str(error)
    if said.startswith("Expected 2D array"):
        return ValueError(
            f"Expected 2D array: {name} of {owner} must have rows and columns. Reshape your data with "
            "array.reshape(-1, 1) if it has a single feature, or array.reshape(1, -1) if it is a single row."
        )
    if said.startswith("Complex data not supported"):
        return ValueError(f"Complex data not supported: {name} of {owner} must hold real numbers.")
    if said.startswith("Mix of label input types"):
        return ValueError(f"{name} of {owner} has labels of another type than the predictions.")
    if said.startswith("Found unknown categories") and "in column" in said:
        return ValueError(f"{name} of {owner} has categories unknown to the encoder. Set its handle_unknown='ignore'.")
    if isinstance(error, OverflowError):
        return ValueError(f"{name} of {owner} has numbers that are too large for a float.")
    # numpy says which dtypes cannot be one table ("The DType ..."), or quotes the entry it stumbled over.
    if said.startswith("The DType") or "could not convert" in said or "invalid literal" in said:
        hint = (
            " Encode those columns with a transformer fitted on public rows, for example "
            "PublicPreprocessor(make_tabular_encoder(), X_public)."
        )
        return ValueError(f"{name} of {owner} has entries that are not numbers.{hint if name == 'X' else ''}")
    return error
