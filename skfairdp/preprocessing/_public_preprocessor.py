"""A transformer that learns from public rows only."""

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp._docs import shared_docs
from skfairdp._utils import NamedEstimator, PublicData, invalid_parameter, silence, without_values


@shared_docs
class PublicPreprocessor(TransformerMixin, NamedEstimator):
    """Transformer that is fitted on public rows, whatever rows ``fit`` gets.

    Guarantee: no value of the rows given to ``fit`` reaches the fitted transformer; only their number of columns and
    the columns' names do, which are public. A scaler, an encoder or a PCA fitted on the private rows of a pipeline is a
    release that the ε of the pipeline's last step does not cover; this one releases nothing.

    Parameters
    ----------
    transformer : transformer
        Cloned, and fitted on ``X_public`` alone. Transformers that need a target are not supported: public
        rows have none here.
    X_public : PublicData, DataFrame or array-like of shape (n_public, n_features)
        Public rows in the columns of X. As ``PublicData`` they are shared, not copied, by ``clone``.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone. Public.
    {n_features_in_, feature_names_in_}

    Raises
    ------
    ValueError
        ``X_public`` is missing, or its columns are not those of X.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skfairdp.preprocessing import PublicPreprocessor
    >>> scaler = PublicPreprocessor(StandardScaler(), X_public=[[0.0], [2.0]])
    >>> scaler.fit(np.array([[1000.0], [3000.0]])).transform([[3.0]])  # the private rows change nothing
    array([[2.]])
    """

    def __init__(self, transformer: Any = None, X_public: Any = None) -> None:
        self.transformer, self.X_public = transformer, X_public

    def fit(self, X: Any, y: Any = None) -> "PublicPreprocessor":
        """Fit the transformer on ``X_public``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Read for the number and the names of its columns only.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        if not hasattr(self.transformer, "fit") or not hasattr(self.transformer, "transform"):
            must = "a transformer (fit and transform)"
            raise invalid_parameter("transformer", "PublicPreprocessor", must, self.transformer)
        _require_table(X)
        validate_data(self, X, skip_check_array=True)
        public = self._public_rows(X)
        if len(public.shape) != 2 or public.shape[1] != self.n_features_in_:
            raise ValueError(
                f"The 'X_public' parameter of PublicPreprocessor must be a table with the {self.n_features_in_} "
                f"columns of X. Got shape {public.shape} instead."
            )
        columns = list(getattr(public, "columns", []))
        named = columns if all(isinstance(name, str) for name in columns) else []
        if list(getattr(self, "feature_names_in_", [])) != named:
            raise ValueError(
                "'X_public' of PublicPreprocessor must have the column names of X in the same order, "
                "and none where X has none."
            )
        self.transformer_ = clone(self.transformer).fit(public)
        return self

    def _public_rows(self, X: Any) -> Any:
        public = self.X_public.X if isinstance(self.X_public, PublicData) else self.X_public
        if public is None:
            raise ValueError(
                "PublicPreprocessor needs public rows: give them with the 'X_public' parameter, for example "
                "PublicPreprocessor(StandardScaler(), X_public=PublicData(X_public))."
            )
        return public if hasattr(public, "shape") else np.asarray(public)

    def transform(self, X: Any) -> Any:
        """Transform rows with the transformer fitted on public rows, silently: a warning would tell of single ones.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or PublicData
            Rows with the columns seen in ``fit``. Of PublicData the rows are transformed, as a Pipeline with
            ``transform_input=["X_public"]`` asks for.

        Returns
        -------
        X_transformed : array-like of shape (n_rows, n_columns) or PublicData
            What the transformer returns.
        """
        check_is_fitted(self)
        if isinstance(X, PublicData):
            return PublicData(self.transform(X.X), X.sensitive_features, X.y)
        _require_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        try:
            with silence():
                return self.transformer_.transform(X)
        except (ValueError, TypeError, OverflowError) as error:
            problem = without_values(error, owner="PublicPreprocessor")
        raise problem

    @available_if(lambda self: hasattr(self.transformer, "inverse_transform"))
    def inverse_transform(self, X: Any) -> Any:
        """Undo the transformation, where the transformer can.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Transformed rows.

        Returns
        -------
        X_original : array-like of shape (n_rows, n_features)
            What the transformer returns.
        """
        check_is_fitted(self)
        return self.transformer_.inverse_transform(X)

    @available_if(lambda self: hasattr(self.transformer, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the output columns, as the transformer gives them.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of X. None takes those seen in ``fit``.

        Returns
        -------
        names : ndarray of str of shape (n_columns,)
            Names of what ``transform`` returns.
        """
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", None)
        return self.transformer_.get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.transformer is not None:
            inner = get_tags(self.transformer)
            tags.input_tags = inner.input_tags
            tags.transformer_tags = inner.transformer_tags
            tags.no_validation = inner.no_validation
        return tags


def _require_table(X: Any) -> None:
    dimensions = len(X.shape if hasattr(X, "shape") else np.asarray(X).shape)
    if dimensions != 2:
        raise ValueError(
            f"PublicPreprocessor expected a 2-d X, got {dimensions} dimension(s). Reshape your data, for "
            "example with X.reshape(-1, 1) for one feature."
        )


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
        raise invalid_parameter("clip", "make_tabular_encoder", "a float in the range (0.0, inf)", clip)
    ends = {"a_min": -clip, "a_max": clip}
    clipper = FunctionTransformer(np.clip, kw_args=ends, feature_names_out="one-to-one", check_inverse=False)
    scaled = Pipeline([("scale", StandardScaler()), ("clip", clipper)])
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    numbers, others = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    parts = [("numbers", scaled, numbers), ("categories", one_hot, others)]
    return ColumnTransformer(parts, verbose_feature_names_out=False, sparse_threshold=0.0)
