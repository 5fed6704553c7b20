"""The arguments of the generator's ``fit``, read and checked. Nothing here releases anything.

A table is read entry by entry (``_dataframes.py``); what is known of its columns comes from declarations and public
rows (``_declared.py``, ``_table_codec.py``).
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, validate_data

from skfairdp import _inputs, _tables, _utils
from skfairdp._estimator import PrivateEstimator
from skfairdp._rows import RowSource, Subjects, check_free_disk, keyed_by_subject, opened
from skfairdp._tables import Declarations, Form, Layout, Rows, SampleForm, Table
from skfairdp._teachers import bytes_on_disk, counted_rows
from skfairdp._typing import Floats, Ints, Objects, Pair
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.generative._group_rates import Balance, given_label_rates, read_admissible
from skfairdp.generative._table_codec import TableCodec, TableEncoder, UnitCodec, UnitEncoder, default_bins
from skfairdp.privacy import NeighboringRelation, PublicReads
from skfairdp.schema import Date, Number, RawTable, Schema, check_roles, made_up, note_columns, schema_of


def declarations_of(schema: Schema, owner: str) -> Declarations:
    """What a schema says of its features, once :func:`numbers_of` has made numbers of them."""
    bounds: dict[str, tuple[float, float]] = {}
    categories: dict[str, list[int]] = {}
    dtypes: dict[str, str] = {}
    for name in schema.features:
        column = schema.columns[name]
        if isinstance(column, Number | Date):
            low, _ = bounds[name] = column.ends
            whole = pd.api.types.is_integer_dtype(column.restore(np.array([low])).dtype) or isinstance(column, Date)
            dtypes[name] = ("Int64" if column.missing else "int64") if whole else "float64"
        else:
            categories[name] = list(range(int(column.ends[1]) + 1))
            dtypes[name] = "float64" if column.missing else "int64"
    return Declarations.read(schema.features, bounds, categories, dtypes, owner)


def numbers_of(raw: RawTable) -> pd.DataFrame:
    """The features of a raw table as columns of floats: values, days, positions; NaN where there is none."""
    return pd.DataFrame({name: raw.numbers[name] for name in raw.schema.features})


def raw_features(schema: Schema, sampled: pd.DataFrame) -> pd.DataFrame:
    """Sampled numbers as the values that the schema gives these columns."""
    return schema.restore(_numbers(schema, sampled))


def raw_table(schema: Schema, sampled: pd.DataFrame, labels: Any, groups: Any) -> pd.DataFrame:
    """Sampled numbers, labels and groups as a table with all columns of the schema, in its order."""
    numbers = _numbers(schema, sampled)
    if labels is not None and schema.label is not None:
        numbers[schema.label] = schema.columns[schema.label].read(labels)
    if groups is not None:
        columns = groups if isinstance(groups, pd.DataFrame) else pd.DataFrame({schema.groups[0]: groups})
        numbers |= {name: schema.columns[name].read(columns[name]) for name in schema.groups}
    return schema.restore({name: numbers[name] for name in schema.columns if name in numbers})


def _numbers(schema: Schema, sampled: pd.DataFrame) -> dict[str, Floats]:
    numbers: dict[str, Floats] = {}
    for name in schema.features:
        column, cells = schema.columns[name], sampled[name].to_numpy(dtype=np.float64, na_value=np.nan)
        # A bin may reach between two steps of a number, and its noise may count a missing value where none may be.
        numbers[name] = column.read(cells) if isinstance(column, Number | Date) else cells
    return numbers


_MOST_CELLS = 2**24  # of pairs that are counted in the pass over the columns, and kept until they are asked for


@dataclass(frozen=True)
class StreamedTable:
    """A source whose chunks a schema reads. Label and groups are columns of it, and whose each row is may be one."""

    source: RowSource
    schema: Schema
    n_classes: int
    n_groups: int
    owner: str
    n_subjects: int | None = None

    def __len__(self) -> int:
        return self.source.n_rows

    @property
    def n_cells(self) -> int:
        """Groups times labels."""
        return self.n_groups * self.n_classes

    def first_counts(self, encoder: TableEncoder) -> tuple[list[Ints], Ints]:
        """One pass: the fine histogram of each unsettled column, and the rows of each group and label."""
        sizes = [encoder.columns[j].n_values for j in encoder.unsettled]
        cells, *fine = self._counts(partial(_cells_and_fine, encoder), [self.n_cells, *sizes])
        return fine, cells

    def table_counts(
        self, encoder: TableEncoder, columns: bool, pairs: Sequence[Pair]
    ) -> tuple[list[Ints], list[Ints]]:
        """One pass: counts of all columns by group and label, if wanted, and of pairs of columns."""
        n_codes = encoder.n_codes
        single = [self.n_cells * size for size in n_codes] if columns else []
        together = [n_codes[i] * n_codes[j] for i, j in pairs]
        found = self._counts(partial(_columns_and_pairs, encoder, columns, list(pairs)), [*single, *together])
        further = zip(found[len(single) :], pairs, strict=True)
        return found[: len(single)], [table.reshape(n_codes[i], n_codes[j]) for table, (i, j) in further]

    def _counts(self, function: Callable[..., list[Ints]], sizes: Sequence[int]) -> list[Ints]:
        """Tables of counts, summed over all chunks. Each counts every row once, or one row of each subject."""
        count = partial(_of_rows, function, self.n_classes, self.n_groups)
        total = counted_rows(count, self.source, self.schema, self.owner, self.n_subjects)
        return np.split(total, np.cumsum(sizes)[:-1])


def _of_rows(function: Callable[..., Any], n_classes: int, n_groups: int, raw: RawTable, *teachers: Any) -> Ints:
    labels = raw.labels() if n_classes > 1 else np.zeros(raw.n_rows, dtype=np.int64)
    groups = raw.groups() if n_groups > 1 else np.zeros(raw.n_rows, dtype=np.int64)
    tables = function(_tables.read_table(numbers_of(raw)), groups * n_classes + labels, n_groups * n_classes)
    return np.concatenate([table.ravel() for table in tables])


def _cells_and_fine(encoder: TableEncoder, table: Table, cells: Ints, n_cells: int) -> list[Ints]:
    return [np.bincount(cells, minlength=n_cells), *encoder.fine_counts(table)]


def _columns_and_pairs(
    encoder: TableEncoder, columns: bool, pairs: list[Pair], table: Table, cells: Ints, n_cells: int
) -> list[Ints]:
    codes = encoder.encode(table)
    single = [
        np.bincount(cells * n_codes + codes[:, j], minlength=n_cells * n_codes)
        for j, n_codes in enumerate(encoder.n_codes if columns else ())
    ]
    return [*single, *_tables.counted_pairs(codes, encoder.n_codes, pairs)]


@dataclass(frozen=True)
class StreamedRows(Rows):
    """What the backend of noisy tables learns from: sums over the chunks of a source."""

    table: Any = None
    encoder: Any = None
    _kept: dict[Pair, Ints] = field(default_factory=dict, repr=False)

    def column_counts(self, further: Sequence[Pair] = ()) -> list[Ints]:
        """One pass, which counts further pairs as well where all of them fit into memory."""
        pairs = list(further) if sum(self.n_codes[i] * self.n_codes[j] for i, j in further) <= _MOST_CELLS else []
        single, together = self.table.table_counts(self.encoder, True, pairs)
        self._kept.update(zip(pairs, together, strict=True))
        return list(single)

    def pair_counts(self, pairs: Sequence[Pair]) -> Iterator[Ints]:
        """Of what is not known yet, as many pairs a pass as fit into memory."""
        start = 0
        while start < len(pairs):
            stop, cells = start, 0
            while stop < len(pairs) and (stop == start or cells <= _MOST_CELLS):
                cells += self.n_codes[pairs[stop][0]] * self.n_codes[pairs[stop][1]]
                stop += 1
            known = {pair: counts for pair in pairs[start:stop] if (counts := self._known(pair)) is not None}
            new = [pair for pair in pairs[start:stop] if pair not in known]
            if new:
                known.update(zip(new, self.table.table_counts(self.encoder, False, new)[1], strict=True))
            yield from (known[pair] for pair in pairs[start:stop])
            start = stop

    def _known(self, pair: Pair) -> Ints | None:
        turned = self._kept.get((pair[1], pair[0]))
        return self._kept.get(pair) if turned is None else turned.T


@dataclass(frozen=True)
class GeneratorData:
    """All that a fit learns from, and the public shape of it."""

    rows: Any
    cells: Ints
    layout: Layout
    encoder: TableEncoder | UnitEncoder
    public: Any
    balance: Balance
    admissible: tuple[int, ...]
    form: SampleForm
    reads: PublicReads
    subjects: Subjects | None = None
    amounts: Floats | Any = None

    @property
    def classes(self) -> Any:
        """Those of the labels; None where there are none."""
        return self.form.classes

    def looked_at(self, most: int) -> tuple[Ints | None, Ints, Ints]:
        """Private: rows of X that a learner is asked about, their cells and their public places; None are all rows. Of
        more than so many it is public which are drawn: how many there are depends on nobody's rows."""
        if self.subjects is None and most >= len(self.cells):
            return None, self.cells, np.arange(len(self.cells))
        rows = np.arange(len(self.cells)) if self.subjects is None else self.subjects.row_of_each
        of = np.cumsum(rows >= 0) - 1  # the cell of each
        drawn = np.arange(len(rows))
        if most < len(rows):
            drawn = np.random.default_rng(0).choice(len(rows), most, replace=False)
        drawn = drawn[rows[drawn] >= 0]
        return rows[drawn], self.cells[of[drawn]], drawn

    @cached_property
    def _first(self) -> tuple[list[Ints], Ints]:
        if isinstance(self.rows, StreamedTable):
            assert isinstance(self.encoder, TableEncoder)
            return self.rows.first_counts(self.encoder)
        return self.encoder.fine_counts(self.rows), np.bincount(self.cells, minlength=self.layout.n_cells)

    def on_wide_bins(self, n_bins: int | None) -> "GeneratorData":
        """Of few rows."""
        assert isinstance(self.encoder, TableEncoder)
        return replace(self, encoder=self.encoder.on_wide_bins(n_bins))

    def fine_counts(self, encoder: TableEncoder) -> list[Ints]:
        """Private: the histograms of columns whose bins have to be paid for."""
        return (self if encoder is self.encoder else replace(self, encoder=encoder))._first[0]

    @property
    def cell_counts(self) -> Ints:
        """Private: rows of each group and label."""
        return self._first[1]

    def encoded(self, encoder: TableEncoder | UnitEncoder, observed: Floats, rates: Floats) -> Rows:
        """What a backend learns from, by an encoder that is settled."""
        streamed = isinstance(self.rows, StreamedTable)
        rows = partial(StreamedRows, table=self.rows, encoder=encoder) if streamed else Rows
        values = np.zeros((0, 0)) if streamed else encoder.encode(self.rows)
        nullable, sampled = (tuple(getattr(one, name) for one in encoder.columns) for name in ("nullable", "sampled"))
        public = None if self.public is None else encoder.encode(self.public)
        places = None if streamed or self.subjects is None else np.flatnonzero(self.subjects.row_of_each >= 0)
        return rows(values, self.cells, encoder.n_codes, nullable, sampled, observed, rates, public, places)


@dataclass(frozen=True)
class _Features:
    """X: the rows that are learnt, what encodes them, public rows in the same columns, and the columns of groups."""

    rows: Any
    encoder: TableEncoder | UnitEncoder
    public: Any = None
    groups: Any = None
    group_columns: tuple[tuple[int, Any, Any], ...] = ()
    raw: RawTable | Any = None
    source: RowSource | Any = None


class ReadsCells(PrivateEstimator):
    """Learns from tables whose cells may be numbers, categories, booleans, or missing."""

    def _read(self, X: Any, y: Any = None, **given: Any) -> GeneratorData:
        self._validate_params()
        return read_generator_data(self, X, y, **given)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def read_generator_data(
    estimator: Any, X: Any, y: Any, *, sensitive_features: Any = None, X_public: Any = None, subject: Any = None
) -> GeneratorData:
    """Read everything a fit needs, or say what is wrong with it."""
    owner, reads, subject = type(estimator).__name__, PublicReads(), _inputs.subject_given(estimator, subject)
    vars(estimator).pop("_subject_column", None)
    _inputs.note_subject_column(estimator, X, y, subject)
    X = _opened(estimator, X, y, sensitive_features, subject)
    _utils.check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features, subject=subject)
    for name, given in (("y", y), ("sensitive_features", sensitive_features)):
        _utils.refuse_masked(given, owner=owner, name=name)
    public, _ = _inputs.public_arguments(estimator, X_public, None)
    _utils.refuse_private_as_public(X, public, owner=owner)
    subjects = None
    if subject is not None:
        if isinstance(X, RowSource):
            subjects = Subjects.read_source(X, owner=owner)
        else:
            subjects = Subjects.read(X, subject, X.shape[0] if hasattr(X, "shape") else len(X), owner=owner)
            if (schema := schema_of(estimator)) is not None:
                raw = RawTable.read(schema, _inputs.without_subject(estimator, X), owner=owner)
                subjects = _inputs.in_order(subjects, raw)
        reads.note_subjects(subjects.n, subjects.name)
    public = None if public is None else _inputs.without_subject(estimator, public)
    if not isinstance(X, RowSource):
        X = _inputs.without_subject(estimator, X)
    if subjects is not None and not isinstance(X, RowSource):
        X, y, sensitive_features = subjects.one_row_of(owner, X=X, y=y, sensitive_features=sensitive_features)
    features = _read_features(estimator, X, public, reads, subjects)
    amounts = None
    if estimator._reads_amounts:
        amounts = _inputs.read_amounts(estimator, y, len(features.rows), reads, raw=features.raw)[1]
    labels, classes, labels_form = _read_labels(estimator, features, y, reads)
    groups, domain, groups_form = _read_groups(estimator, features, sensitive_features, reads)
    n_classes = 1 if classes is None else len(classes)
    kind: Any = "units" if isinstance(features.encoder, UnitEncoder) else "codes"
    columns = features.encoder.columns
    n_columns = math.prod(features.rows.shape[1:]) if kind == "units" else len(columns)
    n_rows = len(features.rows) if features.source is None else features.source.n_rows
    n_rows = n_rows if subjects is None else subjects.n
    sizes = n_rows, n_columns, 1 if domain is None else len(domain), n_classes
    balance = "given" if isinstance(estimator.balance, Mapping) else estimator.balance
    groups_known, n_nullable = domain is not None or balance is None, sum(column.nullable for column in columns)
    relation = NeighboringRelation.REPLACE_ONE if subjects is None else NeighboringRelation.REPLACE_SUBJECT
    tells_interactions = features.source is None and not estimator._reads_amounts
    layout = Layout(kind, *sizes, balance, groups_known, n_nullable, relation, tells_interactions)
    rows, cells = features.rows, groups * n_classes + labels
    if features.source is not None:  # what was read so far is a made-up row
        rows, cells = _streamed(features, layout, owner, subjects), np.zeros(0, dtype=np.int64)
    asked = read_balance(estimator, classes, domain)
    admissible = read_admissible(estimator, [column.name for column in columns], classes, domain)
    form = SampleForm(classes, domain, labels_form, groups_form, features.group_columns, owner)
    known = layout, features.encoder, features.public, asked, admissible, form
    return GeneratorData(rows, cells, *known, reads, subjects, amounts)


def _streamed(features: "_Features", layout: Layout, owner: str, subjects: Subjects | None) -> StreamedTable:
    source, schema = features.source, features.raw.schema
    check_roles(source, schema, owner=owner, groups=layout.n_groups > 1)
    if subjects is not None and source.spills:
        check_free_disk(bytes_on_disk(schema, subjects.n, groups=True), owner, verbose=source.verbose)
    n_subjects = None if subjects is None else subjects.n
    return StreamedTable(source, schema, layout.n_classes, layout.n_groups, owner, n_subjects)


def _opened(estimator: Any, X: Any, y: Any, sensitive_features: Any, subject: Any) -> Any:
    """X, or the source that reads it where it does not lie in memory."""
    source, owner = opened(X), type(estimator).__name__
    if source is None:
        return X
    counts_tables = estimator.backend == "marginals" or isinstance(estimator.backend, _tables.MarginalsBackend)
    if estimator.schema is None or not counts_tables:
        raise ValueError(
            f"{owner} counts rows chunk by chunk only with a 'schema', which says what their values are, and with "
            "backend='marginals'. Set both, or pass the rows as an array or a DataFrame."
        )
    _inputs.refuse_columns_beside(owner, y, sensitive_features)
    if subject is not None:
        source = keyed_by_subject(source, subject, owner)
    source.verbose = getattr(estimator.backend, "verbose", 0)
    return source


# ---- X -----------------------------------------------------------------------------------------------------------
def _read_features(estimator: Any, X: Any, public: Any, reads: PublicReads, subjects: Any = None) -> _Features:
    """X and public rows, from their shape, their names and declarations."""
    schema = schema_of(estimator)
    if schema is not None:
        owner, codec = type(estimator).__name__, _codec_of(estimator.codec, None)
        if isinstance(codec, UnitCodec):
            raise ValueError(f"{owner} got codec='units' together with 'schema', which is for tables. Leave one out.")
        source = X if isinstance(X, RowSource) else None
        raw = RawTable.read(schema, X if source is None else made_up(schema, source), owner=owner)
        estimator.n_features_in_ = len(schema.features)
        estimator.feature_names_in_ = np.asarray(schema.features, dtype=object)
        note_columns(reads, schema, owner)
        n_rows = raw.n_rows if source is None else source.n_rows
        reads.note_number_of_rows(n_rows)
        known = None
        if public is not None:
            shown = RawTable.read(schema, public, owner=owner, name="X_public")
            shown.check("X_public")
            known = _tables.read_table(numbers_of(shown))
            reads.note("public rows X_public", "given", shown.n_rows, by=_utils.PublicData(public))
        table = _tables.read_table(numbers_of(raw))
        n_units = n_rows if subjects is None else subjects.n
        bins = default_bins(n_units, len(table.names), epsilon=estimator.epsilon, delta=estimator.delta)
        encoder, _ = codec.plan(table, declarations_of(schema, owner), public=known, default_bins=bins, owner=owner)
        return _Features(table, encoder, known, raw=raw, source=source)
    codec = _codec_of(estimator.codec, X)
    units = isinstance(codec, UnitCodec)
    X = read_container(estimator, X, units, reset=True)
    names = getattr(estimator, "feature_names_in_", None)
    shape = estimator.n_features_in_ if names is None else names
    reads.note("columns of X", "read", shape, "their number and names are public")
    reads.note_number_of_rows(len(X))
    reads.note("container of X", "read", type(X).__name__, "samples come back in it")
    if public is not None:
        _inputs.check_public_columns(type(estimator).__name__, names, estimator.n_features_in_, public)
        reads.note("public rows X_public", "given", len(public), by=_utils.PublicData(public))
        public = read_container(estimator, public, units, reset=False, name="X_public")
    if isinstance(codec, UnitCodec):
        return _units(estimator, codec, X, public, reads)
    return _columns(estimator, codec, X, public, reads, subjects)


def _codec_of(codec: Any, X: Any) -> TableCodec | UnitCodec:
    if codec == "units" or (codec == "auto" and getattr(X, "ndim", 2) > 2):
        return UnitCodec()
    return TableCodec() if isinstance(codec, str) else clone(codec)


def _units(estimator: Any, codec: UnitCodec, X: Any, public: Any, reads: PublicReads) -> _Features:
    owner = type(estimator).__name__
    for parameter in ("sensitive_columns", "categories"):
        if getattr(estimator, parameter) is not None:
            raise ValueError(f"'{parameter}' of {owner} names columns of a table; units have none.")
    encoder = codec.plan(X.shape[1:], X.dtype, estimator.bounds, estimator.dtypes, owner)
    reads.note("shape of a unit", "read", [*X.shape[1:]], "of the array, no value")
    if estimator.bounds is None:
        reads.note("that X is an array of bytes", "read", None, "its dtype, no value")
    return _Features(X, encoder, public)


def _columns(estimator: Any, codec: TableCodec, X: Any, public: Any, reads: PublicReads, subjects: Any) -> _Features:
    owner, whole = type(estimator).__name__, _tables.read_table(X)
    taken, groups = [], None
    if estimator.sensitive_columns is not None:
        taken = _utils.sensitive_positions(X, estimator.sensitive_columns, owner=owner)
        groups = X.iloc[:, taken] if whole.is_frame else X[:, taken]
    table, names = whole.without(taken), [whole.names[j] for j in taken]
    declarations = Declarations.read(
        table.names, estimator.bounds, estimator.categories, estimator.dtypes, owner, further=names
    )
    public = None if public is None else _tables.read_table(public).without(taken)
    n_units = len(table) if subjects is None else subjects.n
    bins = default_bins(n_units, len(table.names), epsilon=estimator.epsilon, delta=estimator.delta)
    encoder, read = codec.plan(table, declarations, public=public, default_bins=bins, owner=owner)
    if read:
        shown = ", ".join(repr(name) for name in read[:5]) + (", ..." if len(read) > 5 else "")
        _utils.warn_caller(
            f"{owner} read the types or categories of {len(read)} column(s) from the private rows, which reveals "
            f"them outside the guarantee: {shown}. Declare them with the 'categories', 'bounds' or 'dtypes' "
            f"parameter{'' if estimator._for_learner else ', or pass public rows as X_public'}.",
            PrivacyLeakWarning,
        )
    for name in read:
        reads.note(f"type or categories of column {name!r}", "read", None, "outside the guarantee")
    group_columns = tuple((j, whole.names[j], declarations.dtype(whole.names[j])) for j in taken)
    return _Features(table, encoder, public, groups, group_columns)


def read_container(estimator: Any, X: Any, units: bool, *, reset: bool, name: str = "X") -> Any:
    """X as a DataFrame or an array, of whose shape and names, which are public, scikit-learn approves."""
    owner = type(estimator).__name__
    if isinstance(X, np.ma.MaskedArray):  # whatever is masked is missing
        numbers = X.dtype.kind in "biufc"
        X = np.ma.filled(X.astype(np.result_type(X, np.float64) if numbers else object), np.nan if numbers else None)
    X = _tables.as_container(X if units else _utils.as_dense(X, owner=owner, name=name), owner, table=not units)
    shape = (len(X), math.prod(X.shape[1:])) if units and X.ndim > 2 else X.shape
    blank = np.broadcast_to(np.zeros(()), shape)
    if isinstance(X, pd.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        check_array(blank, estimator=estimator, ensure_all_finite=False)
        return X.to_numpy() if units else X
    if X.dtype.kind == "c":
        raise _utils.private_error("complex", owner=owner, name=name)
    try:
        validate_data(estimator, blank, reset=reset, ensure_all_finite=False)
    except ValueError as error:
        raise _utils.without_values(error, owner=owner, name=name) from None
    return X


# ---- labels ------------------------------------------------------------------------------------------------------
def _read_labels(estimator: Any, features: _Features, y: Any, reads: PublicReads) -> tuple[Ints, Any, Any]:
    """Codes of the private labels, the classes, and how labels are handed out."""
    n_rows, raw = len(features.rows), features.raw
    if estimator._reads_amounts:  # of which classes are made later, at released places
        return np.zeros(n_rows, dtype=np.int64), None, None
    if raw is not None and (y is not None or raw.schema.label in raw.numbers or estimator._for_learner):
        classes, codes = _inputs.read_classes(estimator, y, n_rows, reads, raw=raw)
        return codes, classes, Form("series", (raw.schema.label,))
    if y is None:
        return np.zeros(n_rows, dtype=np.int64), None, None
    keeps_types = isinstance(y, list | tuple) and estimator.classes is not None  # of entries, which numpy would join
    read = partial(_inputs.read_classes, estimator, _tables.as_entries(y) if keeps_types else y, n_rows, reads)
    classes, codes = read() if issparse(y) else _among(estimator, "classes", "y", read)
    return codes, classes, Form.of(y, estimator.classes)


def _among(estimator: Any, parameter: str, name: str, read: Callable[[], Any]) -> Any:
    """What is read; whatever an entry is that is not among the declared ones, one error says it."""
    if getattr(estimator, parameter) is None:
        return read()
    with contextlib.suppress(_utils.PrivateRowsError):
        return read()
    raise _utils.private_error("unknown value", owner=type(estimator).__name__, name=name, parameter=parameter)


def read_balance(estimator: Any, classes: Any, domain: Any) -> Balance:
    """What groups and labels are balanced by, shares that are given as an array; None where no group is known."""
    given, owner = estimator.balance, type(estimator).__name__
    if not isinstance(given, Mapping):
        return None if domain is None else given
    if classes is None or domain is None:
        raise ValueError(f"A 'balance' of {owner} that is a dict needs both y and groups.")
    return given_label_rates(given, domain.tolist(), len(classes), owner)


# ---- groups ------------------------------------------------------------------------------------------------------
def _read_groups(
    estimator: Any, features: _Features, sensitive_features: Any, reads: PublicReads
) -> tuple[Ints, Objects | None, Form | None]:
    """Codes of the private groups, their domain, and how groups are handed out."""
    owner, n_rows, raw = type(estimator).__name__, len(features.rows), features.raw
    if raw is not None and (sensitive_features is not None or raw.has_groups):
        codes, names = _inputs.read_private_groups(estimator, None, sensitive_features, n_rows, reads, raw=raw)
        return codes, names, Form("series" if len(raw.schema.groups) == 1 else "frame", raw.schema.groups)
    if features.groups is None and sensitive_features is None:
        if estimator.balance is not None and features.public is None:
            raise ValueError(
                f"{owner} needs the groups of the private rows to balance them: pass "
                "sensitive_features to fit, name their columns with 'sensitive_columns', "
                f"{'' if estimator._for_learner else 'pass unbiased public rows as X_public, '}or set balance=None."
            )
        return np.zeros(n_rows, dtype=np.int64), None, None
    if features.groups is not None and sensitive_features is not None:
        raise _inputs.groups_twice(owner)
    given = sensitive_features if features.groups is None else features.groups
    read = partial(_inputs.read_private_groups, estimator, None, given, n_rows, reads)
    codes, domain = _among(estimator, "groups", "sensitive_features", read)
    several = isinstance(sensitive_features, list | tuple) or getattr(sensitive_features, "ndim", 1) == 2
    width = len(domain[0]) if several and isinstance(domain[0], tuple) else 1
    return codes, domain, Form.of(sensitive_features, estimator.groups, width)
