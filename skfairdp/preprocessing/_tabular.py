"""The default encoder for tables of numbers and categories."""

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler


def make_tabular_encoder(*, clip: float = 5.0) -> ColumnTransformer:
    """Return an unfitted encoder: numbers standardised and clipped, categories one-hot.

    Fitted on private rows its means, scales and categories would be releases that no ε covers: wrap it in
    :class:`PublicPreprocessor`, or fit it on public rows.

    Parameters
    ----------
    clip : float, default=5.0
        Standardised numbers are clipped to [−clip, clip]: a bound known in advance, so that one outlying
        private row cannot reach further than any other.

    Returns
    -------
    sklearn.compose.ColumnTransformer
        For DataFrames. Categories unseen at fitting become all zeros. Output is a dense float array.

    Raises
    ------
    ValueError
        ``clip`` is not a positive number.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.preprocessing import make_tabular_encoder
    >>> public = pd.DataFrame({"hours": [20.0, 40.0, 60.0], "job": ["a", "b", "a"]})
    >>> encoder = make_tabular_encoder().fit(public)
    >>> encoder.transform(pd.DataFrame({"hours": [4000.0], "job": ["c"]}))
    array([[5., 0., 0.]])
    """
    if not clip > 0:
        raise ValueError(
            "The 'clip' parameter of make_tabular_encoder must be a float in the range (0.0, inf). Got "
            f"{clip!r} instead."
        )
    clipper = FunctionTransformer(
        np.clip, kw_args={"a_min": -clip, "a_max": clip}, feature_names_out="one-to-one", check_inverse=False
    )
    return ColumnTransformer(
        [
            (
                "numbers",
                Pipeline([("scale", StandardScaler()), ("clip", clipper)]),
                make_column_selector(dtype_include="number"),
            ),
            (
                "categories",
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                make_column_selector(dtype_exclude="number"),
            ),
        ],
        verbose_feature_names_out=False,
        sparse_threshold=0.0,
    )
