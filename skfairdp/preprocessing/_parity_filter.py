"""P_pre: leave out the training rows whose labels would break demographic parity."""

from collections.abc import Hashable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from skfairdp import _utils
from skfairdp._docs import shared_docs
from skfairdp._rows import RowSource, opened
from skfairdp._typing import Array, Ints
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessGate, largest_disparity, rejection_rates
from skfairdp.schema import SCHEMA_CONSTRAINT, RawTable, Schema, schema_of, with_schema

OWNER = "DemographicParityFilter"


@shared_docs
@with_schema
class DemographicParityFilter(_utils.NamedEstimator):
    """Filter training rows so that their labels stay within γ-demographic parity (P_pre); no privacy claim.

    **It makes no privacy claim, and it destroys those of what follows.** Whether a row is kept depends on all rows
    before it, so one record more or less changes many: the (ε, δ) of a mechanism that is then run on the kept rows says
    nothing useful about a record of X. The FairPATE paper's Theorem 1 claims that at most K = 2 + ⌈2γ/(1 - γ)⌉ kept
    rows change, 3 at γ = 0.05. For this filter that is false (its proof is about another one). Inserting one record in
    front of n = 100, 400, 1600 random rows, of which 30 % of one group and 70 % of the other have class 1, changed up
    to 54, 274, 1094 kept rows with ``min_count=5`` and 2, 18, 68 with ``min_count=50`` (the worst of 20 draws), linear
    in n. Rows can be made with which it changes 301 of 400 and 1501 of 1600 with the default parameters.
    :func:`skfairdp.privacy.group_privacy` turns (1, 1e-5) into (1094, 1) there. Both gates do this. Where fairness has
    to come first, filter *public* rows; or filter inside each teacher of a PATE ensemble, where a record has one vote
    whatever its teacher does with it. For private rows use :class:`FairPATEClassifier`, or
    :class:`FairDPSGDClassifier`.

    *Fairness.* Rows are taken in order, and kept as :class:`skfairdp.fairness.FairnessGate` says: a group's first
    ``min_count`` rows always (cold start), then those after which the demographic disparity Γ(z, k) of the kept labels
    is in order. ``kept_gap_`` is the disparity of the kept rows, not of a model trained on them.

    Parameters
    ----------
    gamma : float or None, default=0.05
        γ, from 0 to 1: the largest demographic disparity of the kept labels. None keeps everything.
    min_count : int, default=50
        M, the rows that each group keeps unconditionally.
    disparity : {"others", "overall", "between"}, default="others"
        What a group's rate is compared with, see :func:`skfairdp.fairness.disparities`.
    gate : {"excess", "local"}, default="excess"
        "local" is the paper's Algorithm 3: a row is kept if its own Γ(z, k), with the row counted, is below γ. It lets
        other pairs drift beyond γ where there are three or more groups or classes; "excess" does not, see
        :class:`skfairdp.fairness.FairnessGate`.
    shuffle : bool, default=False
        Take the rows in random order. False takes them as they come, which for rows sorted by group *and* label starves
        the later groups and labels. The kept rows are returned in their own order either way.
    classes : list of labels or None, default=None
        All class labels. None takes those in y.
    groups : list of labels or None, default=None
        All groups; intersections are tuples. None takes those that occur.
    sensitive_columns : name, index or list of them, default=None
        Columns of X that hold the groups, in place of ``sensitive_features``. They stay in the kept rows: at prediction
        nothing filters, so a model trained behind this filter meets them again (give it the same parameter).
    schema : Schema, default=None
        All that is public about a raw table: X is then a DataFrame, whose label and groups are taken where ``y`` and
        ``sensitive_features`` are left out. Values that it does not list are an error. No ``classes``, ``groups`` or
        ``sensitive_columns`` beside it.
    random_state : int, RandomState, Generator or None, default=None
        Of the shuffle, which looks at positions only.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,), int64
        Positions of the kept rows, ascending. ``sensitive_features[sample_indices_]`` are their groups.
    counts_ : ndarray of shape (n_groups, n_classes), int64
        Kept rows of each group and class.
    kept_gap_ : float
        Largest demographic disparity of the kept labels. A cold start can leave it above γ; a FairnessWarning says so.
    rejection_rate_by_group_ : dict
        Group to the share of its rows that were left out (NaN without rows).
    {classes_}
    groups_ : ndarray of shape (n_groups,), dtype object
        Groups in the order of the rows of ``counts_``.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    skfairdp.FairPATEClassifier : ``gate="labels"`` filters released labels this way, at no privacy cost.
    skfairdp.IDP3 : the same rule for predictions.

    References
    ----------
    Yaghini et al. (2023), "Learning to walk impartially on the Pareto frontier", Algorithm 3 (with line 5
    read at the row's own label), Theorem 1 and Appendix F.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import DemographicParityFilter
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["f", "m"], size=2000)
    >>> X, y = rng.normal(size=(2000, 3)), (rng.random(2000) < np.where(group == "f", 0.2, 0.4)).astype(int)
    >>> parity = DemographicParityFilter(gamma=0.05)
    >>> X_kept, y_kept = parity.fit_resample(X, y, sensitive_features=group)
    >>> X_kept.shape, round(parity.kept_gap_, 2)
    ((1736, 3), 0.05)
    >>> group_kept = group[parity.sample_indices_]
    """

    gamma: float | None = 0.05
    min_count: int = 50
    disparity: str = "others"
    gate: str = "excess"
    shuffle: bool = False
    classes: Sequence[Hashable] | None = None
    groups: Sequence[Hashable] | None = None
    sensitive_columns: Sequence[str | int] | str | int | None = None
    schema: Schema | None = None
    random_state: _utils.RandomStateLike = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [Interval(Real, 0, 1, closed="both"), None],
        "min_count": [Interval(Integral, 0, None, closed="left")],
        "disparity": [StrOptions({"others", "overall", "between"})],
        "gate": [StrOptions({"excess", "local"})],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "classes": ["array-like", None],
        "groups": "no_validation",
        "sensitive_columns": [str, Integral, "array-like", None],
        "schema": [SCHEMA_CONSTRAINT, None],
    }

    def fit_resample(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> tuple[Any, Any]:
        """Return the rows that are kept, in their order.

        imbalanced-learn's verb; inside its Pipeline, which passes no groups on, use ``sensitive_columns``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Features; never looked at (missing values are fine), but for ``sensitive_columns``.
        y : array-like of shape (n_rows,)
            Labels.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row; the columns of a DataFrame form intersections. Required without ``sensitive_columns``.

        Returns
        -------
        X_kept, y_kept
            Rows ``sample_indices_`` of X and y in their own containers: a DataFrame or Series keeps index and names.

        Raises
        ------
        ValueError
            A parameter is outside its range; lengths differ; groups missing or given twice; missing labels or groups,
            or such outside ``classes`` or ``groups``; one class or one group, where they are inferred.

        Warns
        -----
        FairnessWarning
            The kept rows have a gap above γ, or the counts have reached a state in which every further row would widen
            it.
        """
        labels, groups = self._read(X, y, sensitive_features)
        n_rows = len(labels)
        order = _utils.public_generator(self.random_state).permutation(n_rows) if self.shuffle else np.arange(n_rows)
        gate = self._gate()
        kept = np.zeros(n_rows, dtype=bool)
        kept[order] = gate.run(groups[order], labels[order])

        self.sample_indices_ = np.flatnonzero(kept)
        self.rejection_rate_by_group_ = rejection_rates(kept, groups, self.groups_)
        self._close(gate)
        y = self.classes_[labels] if y is None else y
        return _rows_of(X, self.sample_indices_), _rows_of(y, self.sample_indices_)

    def resample_chunks(self, X: Any) -> Iterator[tuple[pd.DataFrame, Array]]:
        """Hand out the rows that are kept chunk by chunk, where they do not all fit into memory.

        The decisions are those of :meth:`fit_resample`: counts are carried from chunk to chunk. ``sample_indices_`` is
        left out; the other attributes are there once the last chunk was handed out.

        Parameters
        ----------
        X : str, Path, LazyFrame, dask or Spark DataFrame, or function
            A path of Parquet files, or what else reads in chunks: a function without arguments returns an iterable of
            DataFrames. Label and groups are columns of it, which ``schema`` names.

        Yields
        ------
        X_kept : DataFrame
            The rows of a chunk that are kept, with all their columns.
        y_kept : ndarray of shape (n_kept,)
            Their labels.

        Raises
        ------
        ValueError
            There is no schema; X lies in memory; ``shuffle=True``; otherwise as for :meth:`fit_resample`.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from skfairdp import DemographicParityFilter
        >>> from skfairdp.schema import Category, Number, Schema
        >>> schema = Schema({"age": Number(0, 99), "sex": Category(["f", "m"]), "rich": Category([0, 1])},
        ...                 label="rich", groups="sex")
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"age": rng.integers(18, 80, 2000), "sex": rng.choice(["f", "m"], 2000)})
        >>> table["rich"] = (rng.random(2000) < np.where(table["sex"] == "f", 0.2, 0.4)).astype(int)
        >>> parity = DemographicParityFilter(schema=schema)
        >>> [len(kept) for kept, _ in parity.resample_chunks(lambda: [table[:900], table[900:]])]
        [767, 917]
        """
        source = self._source(X)
        gate, seen = None, np.zeros(0, dtype=np.int64)
        for chunk in source.chunks():
            if not len(chunk.table):  # a partition without rows
                continue
            labels, groups = self._read(chunk.table, None, None)
            if gate is None:
                gate, seen = self._gate(), np.zeros(len(self.groups_), dtype=np.int64)
            kept = np.flatnonzero(gate.run(groups, labels))
            seen += np.bincount(groups, minlength=len(self.groups_))
            yield chunk.table.iloc[kept], self.classes_[labels[kept]]
        if gate is None:
            raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required by {OWNER}.")
        with np.errstate(invalid="ignore"):
            refused = 1 - gate.counts.sum(axis=1) / seen
        self.rejection_rate_by_group_ = dict(zip(self.groups_.tolist(), refused.tolist(), strict=True))
        self._close(gate)

    def _source(self, X: Any) -> RowSource:
        source = opened(X)
        if self.schema is None or self.shuffle or source is None:
            raise ValueError(
                f"resample_chunks of {OWNER} needs a 'schema', shuffle=False (rows are taken as they come) and an X "
                "that is read in chunks. For a table in memory call fit_resample."
            )
        return source

    def _gate(self) -> FairnessGate:
        return FairnessGate(
            len(self.groups_), len(self.classes_),
            gamma=self.gamma, min_count=self.min_count, disparity=self.disparity, gate=self.gate,
        )  # fmt: skip

    def _read(self, X: Any, y: Any, sensitive_features: Any) -> tuple[Ints, Ints]:
        """Class and group of every row as codes, of the domains in ``classes_`` and ``groups_``."""
        self._validate_params()
        for name in ("gamma", "min_count"):
            if isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"The '{name}' parameter of {OWNER} must not be a bool.")
        _utils.check_same_index(OWNER, X=X, y=y, sensitive_features=sensitive_features)
        schema = schema_of(self)
        if schema is not None:
            raw = RawTable.read(schema, X, owner=OWNER)
            self.n_features_in_ = len(schema.features)
            self.feature_names_in_ = np.asarray(schema.features, dtype=object)
            self.classes_, self.groups_ = raw.classes, raw.domain
            return raw.labels(y, public=True), raw.groups(sensitive_features, public=True)
        shape: tuple[int, ...] = np.shape(X) if isinstance(X, list | tuple) else getattr(X, "shape", ())
        if len(shape) != 2:
            raise ValueError(f"Expected 2D array: X of {OWNER} must have rows and columns.")
        if shape[0] == 0:
            raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required by {OWNER}.")
        n_rows = int(shape[0])
        validate_data(self, X, reset=True, skip_check_array=True)
        given = _read_labels(y, n_rows)
        if self.classes is None:
            classes, codes = np.unique(given, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(
                    f"{OWNER} found only one class in y. If this is intended, list the classes with the 'classes' "
                    "parameter."
                )
            labels = codes.astype(np.int64)
        else:
            classes = _utils.declared_classes(self.classes, OWNER)
            labels = _utils.encode_labels(given, classes, owner=OWNER, name="y", parameter="classes")
        if self.sensitive_columns is not None:
            if sensitive_features is not None:
                raise ValueError(
                    f"{OWNER} got groups twice: by 'sensitive_columns' and as an argument of fit_resample. Leave one "
                    "of them out."
                )
            values: Any = _utils.split_sensitive_columns(X, self.sensitive_columns, owner=OWNER)[1]
        elif sensitive_features is None:
            raise ValueError(
                f"{OWNER} needs the group of every row: pass sensitive_features to fit_resample, or name the columns "
                "of X that hold them with 'sensitive_columns'."
            )
        else:
            values = _utils.as_groups(sensitive_features, n_rows, owner=OWNER)
        codes, domain = _utils.encode_within(values, self.groups, owner=OWNER, name="The groups")
        if self.groups is None and len(domain) < 2:
            raise ValueError(
                f"{OWNER} found only one group, so every fairness statement would be vacuous. If this is intended, "
                "list the groups with the 'groups' parameter."
            )
        self.groups_, self.classes_ = domain, classes
        return labels, codes

    def _close(self, gate: FairnessGate) -> None:
        self.counts_ = gate.counts
        self.kept_gap_ = largest_disparity(self.counts_, self.disparity)
        if gate.excess() > 0:
            _utils.warn_caller(
                f"The rows kept by {OWNER} have a demographic disparity above gamma={self.gamma} (see kept_gap_): a "
                f"group's first min_count={self.min_count} rows are kept unconditionally, and too few came after them "
                "to make up for it. Add rows, lower 'min_count', or set shuffle=True where they are sorted.",
                FairnessWarning,
            )
        if gate.is_stuck():
            _utils.warn_caller(
                f"{OWNER} reached a state in which every further row would widen the disparity, so all that followed "
                f"were left out (gamma={self.gamma}, min_count={self.min_count}). Raise 'gamma' or 'min_count'; "
                "gamma * (min_count + 1) above 2 avoids this.",
                FairnessWarning,
            )


def _read_labels(y: Any, n_rows: int) -> Array:
    """Return y as one column of labels, or raise an error that says what is wrong and quotes none of them."""
    if y is None:
        raise ValueError(f"{OWNER} requires y to be passed, but the target y is None.")
    _utils.refuse_masked(y, owner=OWNER, name="y")
    kind = object if isinstance(y, list) else None
    with _utils.without_context():
        try:
            given = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y, dtype=kind)
            if given.ndim == 2 and given.shape[1] == 1:
                given = given[:, 0]
            labels = column_or_1d(given)
            missing = bool(pd.isna(labels).any())
            if labels.dtype == object and not missing:
                np.unique(labels)  # raises where labels of several kinds would be read as strings below
                labels = np.asarray(labels.tolist())
        except TypeError:
            raise ValueError(f"Unknown label type: y of {OWNER} mixes labels that have no common order.") from None
        except ValueError as error:
            raise _utils.without_values(error, owner=OWNER, name="y") from None
    if len(labels) != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, len(labels)]}")
    if missing:
        raise ValueError(f"y of {OWNER} contains missing values (None or NaN).")
    if labels.dtype.kind not in "iufbUO":
        raise ValueError(f"Unknown label type: y of {OWNER} must hold class labels.")
    check_classification_targets(labels)
    return labels


def _rows_of(table: Any, positions: Ints) -> Any:
    """Return some rows in the container they came in."""
    if hasattr(table, "iloc"):
        return table.iloc[positions]
    if isinstance(table, list | tuple):
        return type(table)(table[i] for i in positions)
    if hasattr(table, "asformat"):  # sparse
        return table.tocsr()[positions].asformat(table.format)
    return table.take(positions) if hasattr(table, "to_pylist") else table[positions]  # pyarrow, or an array
