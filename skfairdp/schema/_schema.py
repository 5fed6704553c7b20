"""The public description of a table: which columns it has, and what values they may hold."""

import contextlib
import inspect
import json
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, dataclass_transform

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp._utils import private_error, warn_caller, write_text
from skfairdp.privacy import PrivacyLedger, PrivacySpent, composed, held_by, record_of, releases_of
from skfairdp.schema import _columns, _metadata
from skfairdp.schema._frames import as_dataframe, column_names
from skfairdp.schema._release import planned_schema, released_columns, say_identifiers


@dataclass(frozen=True)
class SchemaRows:
    """A table as its schema reads it.

    Parameters
    ----------
    X : DataFrame of shape (n_rows, n_features)
        Neither label nor groups.
    y : ndarray of shape (n_rows,) or None
    sensitive_features : DataFrame of shape (n_rows, n_group_columns) or None
    """

    X: pd.DataFrame
    y: NDArray[Any] | None
    sensitive_features: pd.DataFrame | None


@shared_docs
class Schema:
    """Public description of a table: kinds, bounds and values of its columns, its label and its groups.

    A schema is written without looking at the private rows: from a code book, a form, public rows. Tables are then read
    *by the schema*: the columns, their order, their types and all values that come out follow from it alone. A private
    value of a feature that it does not foresee counts as a bound or as missing; no error, warning, type or width tells
    that it was there. A label or a group that is not listed is refused, in the same words for every such table, unless
    the column says what it counts as: ``Category([...], others=...)``. A column of groups with ``missing=True`` has a
    group of its own for such rows, "missing".

    Parameters
    ----------
    columns : mapping of str to Column
        :class:`Number`, :class:`Category`, :class:`Boolean` or :class:`Date`. Free text is refused: nothing bounds it.
    label : str, default=None
        The column to predict: a Category or a Boolean, or of amounts, for regressors, a Number without missing values.
    groups : str or sequence of str, default=()
        The columns that are the sensitive attribute: Categories or Booleans. Several form intersections.
    n_rows : int, default=None
        The number of rows, where one is declared: DP-SGD takes it where it has no ``public_n_rows`` of its own. Nothing
        then follows the true number, and neighbours add or remove a record. None: rows are counted where they are read.
    subject : str, default=None
        Says who a row is about, such as "patient_id"; none of ``columns``. Fits then protect all rows of
        one subject together, as with ``fit(..., subject="patient_id")``, and those that cannot refuse the schema.

    Attributes
    ----------
    features : tuple of str
        Neither the label nor the groups.
    classes : tuple or None
        Values of the label; None where it is a Number, or there is none.
    group_values : tuple or None
        Values of the groups: of one column, or tuples of several.
    privacy_ : PrivacySpent or None
        What was paid for it, or for columns that it was made from; None for a schema that was written. It stays with
        the schema, its columns, and the ``values`` of these: in files, pickles and copies, and in other schemas that
        columns are put into. Whatever is fitted with them adds it up in its own ``privacy_``. Single numbers, such as
        a bound, cannot carry it: hand on the schema or its columns.

    Raises
    ------
    ValueError
        What it says contradicts itself. The message names the column.
    AttributeError
        A parameter is set anew: models that were fitted with a schema read their tables by it.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.schema import Category, Number, Schema
    >>> schema = Schema(
    ...     {"age": Number(17, 90, step=1), "sex": Category(["Female", "Male"]), "income": Category(["<=50K", ">50K"])},
    ...     label="income", groups="sex")
    >>> rows = schema.read(pd.DataFrame({"age": [39, 200], "sex": ["Male", "Female"], "income": [">50K", "<=50K"]}))
    >>> rows.X["age"].tolist(), rows.y.tolist(), rows.sensitive_features["sex"].tolist()
    ([39, 90], ['>50K', '<=50K'], ['Male', 'Female'])
    """

    def __init__(
        self,
        columns: Mapping[str, _columns.Column],
        *,
        label: str | None = None,
        groups: str | Sequence[str] = (),
        n_rows: int | None = None,
        subject: str | None = None,
    ) -> None:
        self.label = None if label is None else str(label)
        self.groups = _names(groups)
        if not isinstance(columns, Mapping):
            raise ValueError(f"The 'columns' of a Schema must be a dict of columns by their names. Got {columns!r}.")
        named = {str(name) if isinstance(name, int) else name: column for name, column in columns.items()}
        alone = {name: _with_own_group(column) if name in self.groups else column for name, column in named.items()}
        self.columns: Mapping[str, _columns.Column] = MappingProxyType(alone)
        self.n_rows, self.subject = n_rows, subject
        self._check()
        paid = held_by(list(self.columns.values()))
        self.privacy_: PrivacySpent | None = composed(*paid) if paid else None
        #: Whether somebody has compared it with a table, whatever that held.
        self.was_compared = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("columns", "label", "groups", "n_rows", "subject") and name in vars(self):
            raise AttributeError(
                f"The {name!r} of a Schema cannot be changed, because fitted models read their tables by it. Make "
                f"another one from its columns, Schema(schema.columns, {'label' if name == 'columns' else name}=...), "
                "and fit with that."
            )
        super().__setattr__(name, value)

    def _check(self) -> None:
        for name, column in self.columns.items():
            if isinstance(column, dict) and name == "columns":
                raise ValueError(
                    "The 'columns' of a Schema were given as a template or another description of a whole schema. "
                    "Read it with Schema.from_dict, which lists the columns that are not filled in yet."
                )
            if not isinstance(name, str) or not isinstance(column, _columns.Column):
                raise ValueError(
                    "The 'columns' of a Schema must map names to Number, Category, Boolean or Date. "
                    f"Got {name!r}: {column!r} instead."
                )
        if self.label in self.groups:
            raise ValueError(f"Column {self.label!r} of a Schema is both its label and one of its groups.")
        if len(set(self.groups)) < len(self.groups):
            raise ValueError(f"The 'groups' of a Schema name a column twice: {self.groups}.")
        for name in _roles(self.label, self.groups):
            found, is_label = self.columns.get(name), name == self.label
            allowed = (_columns.Category, _columns.Boolean, *([_columns.Number] if is_label else []))
            if not isinstance(found, allowed):
                role, also = ("label", " or Number") if is_label else ("groups", "")
                raise ValueError(
                    f"The {role!r} of a Schema must be a Category or Boolean{also} among its columns "
                    f"{list(self.columns)}. Got {name!r} instead."
                )
            if isinstance(found, _columns.Number) and found.missing:
                raise ValueError(
                    f"The label of a Schema has a value in each row, and {name!r} is a Number(missing=True). Set that "
                    "to False: an amount that cannot be read then counts as the middle of the bounds."
                )
        if not self.features:
            raise ValueError("A Schema needs at least one column that is neither its label nor one of its groups.")
        if self.subject is not None and (not isinstance(self.subject, str) or self.subject in self.columns):
            raise ValueError(
                "The 'subject' of a Schema must name the column that says who a row is about, none of its 'columns'. "
                f"Got {self.subject!r} instead."
            )
        if self.n_rows is not None and not (isinstance(self.n_rows, int) and self.n_rows > 0):
            raise ValueError(f"The 'n_rows' of a Schema must be an integer >= 1 or None. Got {self.n_rows!r} instead.")

    # ------------------------------------------------------------------ what it says

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns that are neither the label nor the groups."""
        return tuple(name for name in self.columns if name != self.label and name not in self.groups)

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Values of the label, None without one."""
        return None if self.label is None or self.amounts is not None else values_of(self.columns[self.label])

    @property
    def amounts(self) -> _columns.Number | None:
        """The label, where it is a Number: regressors predict it within its bounds."""
        column = None if self.label is None else self.columns[self.label]
        return column if isinstance(column, _columns.Number) else None

    @property
    def group_values(self) -> tuple[Any, ...] | None:
        """Values of the groups: of one column, or tuples of several; None without any."""
        values = [values_of(self.columns[name]) for name in self.groups]
        if len(values) < 2:
            return values[0] if values else None
        paid = held_by(values)
        crossed = tuple(product(*values))
        return _columns.PaidValues(crossed, composed(*paid)) if paid else crossed

    @property
    def groups_of_the_rest(self) -> tuple[Any, ...]:
        """Those of the groups that hold rows without a listed value in some column; they may have no row at all."""
        rest = [getattr(self.columns[name], "others", None) for name in self.groups]
        several = [(group,) if len(rest) == 1 else group for group in self.group_values or ()]
        found = [any(own is not None and one == own for one, own in zip(group, rest, strict=True)) for group in several]
        return tuple(group for group, is_rest in zip(self.group_values or (), found, strict=True) if is_rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._description == other._description

    def __hash__(self) -> int:
        return hash(json.dumps(self._description, sort_keys=True))

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.to_dict(), "privacy_": self.privacy_, "was_compared": self.was_compared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(vars(Schema.from_dict(state["content"])))
        self.privacy_, self.was_compared = state["privacy_"], state["was_compared"]

    def __sklearn_clone__(self) -> "Schema":
        return self

    def __repr__(self) -> str:
        roles = (f", label={self.label!r}" if self.label else "") + (f", groups={self.groups!r}" if self.groups else "")
        return f"Schema({len(self.columns)} columns{roles})"

    # ------------------------------------------------------------------ reading tables

    def read(self, table: Any) -> SchemaRows:
        """Read a table. What comes out has the columns, types and values of the schema, whatever the rows hold.

        Parameters
        ----------
        table : DataFrame of pandas, polars, pyarrow or another library that narwhals knows
            With all columns of the schema, but for the label and the groups, which may be missing as a whole. Others
            are left out.

        Returns
        -------
        SchemaRows
            Features, label and groups apart.

        Raises
        ------
        ValueError
            It is no table, lacks columns, or has a label or a group that is not listed. Only names are told.
        """
        numbers = self.numbers(table)
        X = self.restore({name: numbers[name] for name in self.features})
        label = self.label
        y = None if label is None or label not in numbers else self._listed(label, numbers[label])
        groups, index = None, table.index if isinstance(table, pd.DataFrame) else X.index
        if self.groups and all(name in numbers for name in self.groups):
            groups = pd.DataFrame({name: self._listed(name, numbers[name]) for name in self.groups}, index=index)
        return SchemaRows(X.set_axis(index), y, groups)

    def numbers(self, table: Any) -> dict[str, NDArray[np.float64]]:
        """Read a table as numbers: each column as :meth:`Column.read` has it.

        {table_as_read}

        Returns
        -------
        dict of str to ndarray of shape (n_rows,)
            In the order of the schema. NaN stands for a value that is missing or not listed.
        """
        return {name: self.columns[name].read(cells) for name, cells in self._cells(table).items()}

    def restore(self, numbers: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
        """Make a table again, with the types that the schema gives.

        Parameters
        ----------
        numbers : dict of str to ndarray of shape (n_rows,)
            As :meth:`numbers` returns them; of all columns or some.

        Returns
        -------
        DataFrame
            With pandas' usual index.
        """
        return pd.DataFrame({name: self.columns[name].restore(column) for name, column in numbers.items()})

    def misfits(self, table: Any) -> "pd.Series[Any]":
        """Count the cells that the schema did not foresee: exact figures, not to be published.

        **No guarantee.** The counts are exact. Use them to find a mistake in a schema, and do not publish them.

        {table_as_read}

        Returns
        -------
        Series of int
            By column, in the order of the schema: cells that cannot be read, values that are out of bounds or not
            listed, and missing ones where none may be missing.

        Examples
        --------
        >>> import pandas as pd
        >>> from skfairdp.schema import Category, Number, Schema
        >>> schema = Schema({"age": Number(17, 90), "job": Category(["clerk"])})
        >>> schema.misfits(pd.DataFrame({"age": [39, 16, 200], "job": ["clerk", "clerk", " clerk"]})).to_dict()
        {'age': 2, 'job': 1}
        """
        counts = self.count_misfits(table)
        self._note_comparison(self._cells(table))
        return counts

    def count_misfits(self, table: Any) -> "pd.Series[Any]":
        """Count cells as :meth:`misfits` does, of rows that are public.

        {table_as_read}

        Returns
        -------
        Series of int
            By column, in the order of the schema.
        """
        cells = self._cells(table)
        return pd.Series({name: int((~self.columns[name].fits(cells[name])).sum()) for name in cells}, dtype=np.int64)

    def misfits_by_kind(self, table: Any) -> pd.DataFrame:
        """Count what is missing, unreadable, and beyond bounds or lists: exact figures, not to be published.

        **No guarantee.** The counts are exact, as those of :meth:`misfits`. Cells that are missing are counted whether
        or not they may be.

        {table_as_read}

        Returns
        -------
        DataFrame of int
            One row for each column of the schema; "missing", "unreadable" and "beyond", as :meth:`Column.misfits` tells
            them apart.

        Examples
        --------
        >>> import pandas as pd
        >>> from skfairdp.schema import Number, Schema
        >>> schema = Schema({"pay": Number(0, 100, missing=True)})
        >>> schema.misfits_by_kind(pd.DataFrame({"pay": ["$5", None, "7", "700"]})).loc["pay"].to_dict()
        {'missing': 1, 'unreadable': 1, 'beyond': 1}
        """
        compared = self._cells(table)
        found = {name: self.columns[name].misfits(cells) for name, cells in compared.items()}
        self._note_comparison(compared)
        counts = {name: {what: int(own.sum()) for what, own in kinds.items()} for name, kinds in found.items()}
        return pd.DataFrame.from_dict(counts, orient="index", dtype=np.int64)

    def _note_comparison(self, table: "Mapping[str, pd.Series[Any]]") -> None:
        self.was_compared = True
        floats = [name for name, cells in table.items() if cells.dtype.kind == "f"]
        if marked := [name for name in floats if getattr(self.columns[name], "thousands", "")]:
            warn_caller(
                f"Columns {marked} declare thousands and are floats already: whoever read the file may have made 1.2 "
                "of 1.200. Read it as texts: pd.read_csv(path, dtype=str)."
            )

    def _cells(self, table: Any) -> "dict[str, pd.Series[Any]]":
        """The columns of a table that the schema knows."""
        given = column_names(table)
        known = set(given)
        absent = [name for name in self.features if name not in known]
        if absent:
            raise ValueError(
                f"The table lacks {len(absent)} column(s) of the Schema: {absent[:5]}. It has {given[:20]}. Rename its "
                "columns as they were at fit, or leave those out of the Schema if one was given."
            )
        frame = as_dataframe(table, [name for name in self.columns if name in known])
        return {name: frame.iloc[:, j] for j, name in enumerate(frame.columns)}

    def _listed(self, name: str, positions: NDArray[np.float64]) -> NDArray[Any]:
        if np.isnan(positions).any():
            raise private_error("unlisted", owner="Schema.read", name=repr(name))
        if isinstance(self.columns[name], _columns.Number):
            return np.asarray(self.columns[name].restore(positions))
        values = values_of(self.columns[name])
        column = np.asarray(values, dtype=None if len({type(value) for value in values}) == 1 else object)
        return column[positions.astype(np.int64)]

    # ------------------------------------------------------------------ from and to elsewhere

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as values that JSON and YAML hold.

        Returns
        -------
        dict
            As :meth:`from_dict` takes it. What was paid for it is under "releases", and each column that was found
            names the one that found it.
        """
        content = self._description
        releases = [] if self.privacy_ is None else [*(self.privacy_.parts or (self.privacy_,))]
        for name, column in self.columns.items():
            if (paid := column.privacy_) is not None:
                found_by = [spent.release for spent in paid.parts or (paid,)]
                content["columns"][name]["released"] = found_by if len(found_by) > 1 else found_by[0]
        return {**content, "releases": [record_of(spent) for spent in releases]} if releases else content

    @property
    def _description(self) -> dict[str, Any]:
        """What it says of a table, wherever that is from."""
        rows = {name: said for name in ("n_rows", "subject") if (said := getattr(self, name)) is not None}
        columns = {name: column.to_dict() for name, column in self.columns.items()}
        return {"columns": columns, "label": self.label, "groups": list(self.groups), **rows}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Schema":
        """The inverse of :meth:`to_dict`.

        Parameters
        ----------
        content : dict
            With the key "columns", and "label", "groups", "n_rows", "subject" and "releases" where they apply.

        Returns
        -------
        Schema
            The description.
        """
        declared, releases = _declared(content)
        columns = {name: _columns.column_from_dict(said, name) for name, said in declared.items()}
        schema = cls(
            _with_origins(columns, content, releases), label=content.get("label"), groups=content.get("groups") or (),
            n_rows=content.get("n_rows"), subject=content.get("subject"),
        )  # fmt: skip
        if releases:
            schema.privacy_ = composed(*releases.values())
        return schema

    def save(self, path: str | Path) -> None:
        """Write the schema to a file.

        {path_of_schema}
        """
        write_text(path, _metadata.text_of(self.to_dict(), Path(path)))

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a schema from a file.

        {path_of_schema}

        Returns
        -------
        Schema
            The description.
        """
        return cls.from_dict(_metadata.content_of(Path(path)))

    @classmethod
    def load_known(cls, path: str | Path) -> dict[str, Any]:
        """Read a template of which something is still null, as arguments of :meth:`release`, which finds that.

        {path_of_schema}

        Returns
        -------
        dict
            With ``known``, ``label``, ``groups`` and ``subject``: ``Schema.release(table, epsilon=0.2,
            **Schema.load_known(path))``. Of a column with a null the kind is known, and nothing else.
        """
        content = _metadata.content_of(Path(path))
        declared, releases = _declared(content)
        known = {name: _columns.known_from_dict(said, name) for name, said in declared.items()}
        known = _with_origins(known, content, releases)
        whose = {name: content[name] for name in ("subject",) if name in content}
        return {"known": known, "label": content.get("label"), "groups": content.get("groups") or (), **whose}

    @classmethod
    def from_public(
        cls, table: Any, *, label: str | None = None, groups: str | Sequence[str] = (), max_categories: int = 100
    ) -> "Schema":
        """Describe public rows: their ranges and values become the schema. Never use private rows here.

        Parameters
        ----------
        table : DataFrame
            Public rows.
        {roles_of_columns}
        max_categories : int, default=100
            A column of texts with more values is refused.

        Returns
        -------
        Schema
            The description.
        """
        frame, roles = as_dataframe(table, column_names(table)), _roles(label, groups)
        columns = {n: _metadata.described(frame[n], n, n in roles, max_categories) for n in frame.columns}
        numbered = [name for name in columns if _metadata.is_numbering(frame[name])]
        say_identifiers(columns, "Schema.from_public", numbered)
        if paid := held_by(table):  # rows that a generator made
            columns = {name: replace(column, privacy_=composed(*paid)) for name, column in columns.items()}
        schema = cls(columns, label=label, groups=groups)
        schema.was_compared = True
        return schema

    @classmethod
    def from_pandera(
        cls,
        schema: Any,
        *,
        label: str | None = None,
        groups: str | Sequence[str] = (),
        columns: Mapping[str, _columns.Column | None] | None = None,
    ) -> "Schema":
        """Take what a pandera schema says: dtypes, ``isin``, ``in_range`` and the other bounds, ``nullable``.

        Parameters
        ----------
        schema : DataFrameSchema or subclass of DataFrameModel
            Written without looking at the private rows. A schema that pandera inferred from them is no public
            description.
        {roles_of_columns}
        columns : mapping of str to Column or None, default=None
            What it does not say, such as the values of a text; None leaves a column out.

        {describes_or_raises}
        """
        said, roles = _metadata.pandera_columns(schema), _roles(label, groups)
        return cls(_metadata.completed(said, columns or {}, roles, "Schema.from_pandera"), label=label, groups=groups)

    @classmethod
    def from_sdv(
        cls,
        metadata: Any,
        *,
        columns: Mapping[str, _columns.Column | None],
        label: str | None = None,
        groups: str | Sequence[str] = (),
        table: str | None = None,
    ) -> "Schema":
        """Take the kinds of columns from SDV's metadata. They know neither bounds nor values: ``columns`` adds these.

        Parameters
        ----------
        metadata : Metadata, dict, path or str
            Of SDV: an object with ``to_dict``, that dict, or its JSON. Identifiers, personal data and free text are
            left out.
        columns : mapping of str to Column or None
            Every number, date and category; None leaves a column out.
        {roles_of_columns}
        table : str, default=None
            Which one, where the metadata describe several.

        {describes_or_raises}

        Examples
        --------
        >>> from skfairdp.schema import Number, Schema
        >>> metadata = {"columns": {"id": {"sdtype": "id"}, "age": {"sdtype": "numerical"}}}
        >>> Schema.from_sdv(metadata, columns={"age": Number(17, 90)}).features
        ('age',)
        """
        said, roles = _metadata.sdv_columns(metadata, table), _roles(label, groups)
        return cls(_metadata.completed(said, columns, roles, "Schema.from_sdv"), label=label, groups=groups)

    @classmethod
    def release(
        cls,
        table: Any,
        *,
        epsilon: float,
        delta: float = 1e-5,
        label: str | None = None,
        groups: str | Sequence[str] = (),
        known: Mapping[str, _columns.Column | str | None] | None = None,
        subject: str | None = None,
        ledger: PrivacyLedger | None = None,
        noise_seed: int | None = None,
    ) -> "Schema":
        """Describe private rows at a price: kinds, bounds and values from noisy counts.

        **Guarantee.** (ε, δ)-differential privacy for one record, of which the values may be replaced by any others.
        The names of the columns, the number of rows and what ``known`` says are public; neither dtypes nor the order of
        the rows have any influence: "1" is released, and predicted, as 1, "True" as 1 or a truth. Read a file with
        ``dtype=str``, as pandas makes 7 of 007, and 1.2 of 1.200, only if no cell of the column is a text. A value that
        one record alone holds is in the schema with probability at most a tenth of δ, over all columns. With
        ``subject`` all this is for all rows of one subject: one row of each is counted, and their number and ids are
        public in place of the number of rows.

        Parameters
        ----------
        table : DataFrame of pandas, polars, pyarrow or another library that narwhals knows
            Private rows.
        epsilon : float
            The price. Half of what you would spend on a model finds more than most models need; a tenth will do from
            some ten thousand rows on.
        delta : float, default=1e-5
            A tenth of it is for values of one record, the rest for the noise.
        label : str, default=None
            The column to predict; a category unless ``known`` says otherwise.
        groups : str or sequence of str, default=()
            The columns that are the sensitive attribute; likewise.
        known : mapping of str to Column, str or None, default=None
            What is public about a column and costs nothing: a :class:`Number`, :class:`Category`, :class:`Boolean` or
            :class:`Date`; or its kind ("number", "whole", "category", "boolean", "date"), so that only bounds or values
            are paid for; or None for a column to leave out. Of other columns, and of "any", the kind is found as well.
        subject : str, default=None
            The column that says who a row is about. It is none of the columns of the schema, which names it as its
            ``subject``.
        ledger : PrivacyLedger, default=None
            Is charged before anything is released.
        noise_seed : int, default=None
            For research and tests only: voids the guarantee.

        Returns
        -------
        Schema
            With ``privacy_``. Columns in which nothing is common enough, such as names and identifiers, are left out
            with a warning. So are named columns that tell rows hardly apart: one value, numbers too close together,
            far values such as a 99999 for nothing that stretch the bounds, a list that most rows have no value of.
            Rows whose label or group is missing or too rare to be found are a value of their own, "other", where the
            counts show them; where they do not, a fit refuses a table that has any.
            Numbers count up to 6.7e299 and from 1e-301 on, days from 1790 to 2149; farther ones as the nearest of them.
            Years of two digits are 1969 to 2068, which a warning says; so does one where counts do not show which
            number is the day, and which the month, where they show texts or cells in another writing than the one that
            is read (50.5 beside 50,5, g beside kg), and where they show numbers beside days. Of numbers like 1.200 they
            know what the point is only if others have a unit or a comma.

        Raises
        ------
        BudgetExceededError
            The ledger cannot afford it. Nothing was released.
        ValueError
            A parameter is wrong, and nothing was spent.
        IncompleteSchemaError
            No value of the label, of a group or of any feature is common enough, which follows from the release, and
            the budget is spent. What was found is in the error.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from skfairdp.schema import Schema
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"age": rng.integers(18, 91, 20000), "sex": rng.choice(["Female", "Male"], 20000)})
        >>> schema = Schema.release(table, epsilon=1.0, groups="sex")
        >>> schema.group_values, schema.columns["age"]
        (('Female', 'Male'), Number(low=18, high=90, step=1, missing=False))
        >>> round(schema.privacy_.epsilon, 3)
        1.0
        """
        plan = planned_schema(
            table, epsilon=epsilon, delta=delta, label=None if label is None else str(label),
            groups=_roles(None, groups), known=known or {}, subject=subject,
        )  # fmt: skip
        columns, spent = released_columns(table, plan, ledger=ledger, noise_seed=noise_seed)
        schema = cls(columns, label=label, groups=groups, subject=subject)
        schema.privacy_ = spent
        return schema

    @staticmethod
    def template(
        table: Any, *, label: str | None = None, groups: str | Sequence[str] = (), subject: str | None = None
    ) -> dict[str, Any]:
        """The skeleton of a schema, for you to fill in: names and kinds of columns, no value.

        Names, and kinds by the dtypes, are public. What looks like something else gets a "guess" besides: a date in
        texts like 25/04/2001, a number in texts like "$1,200", a truth in texts like yes and no, an identifier. Of days
        like 03/04/2001 "or" is the other format that reads them, and of numbers that all look like 1.200, if they have
        a point, the other marks.

        **No guarantee.** A guess is made from the rows: it is for your own eyes, and the rest of the package does not
        read it. Write it into the column if you know it from elsewhere, and publish no template that still holds it.

        Parameters
        ----------
        table : DataFrame
            May be private.
        {roles_of_columns}
        subject : str, default=None
            The column that says who a row is about, which is then none of the columns.

        Returns
        -------
        dict
            As :meth:`from_dict` takes it, with None and empty lists where you have to say something.

        Examples
        --------
        >>> import pandas as pd
        >>> from skfairdp.schema import Schema
        >>> template = Schema.template(pd.DataFrame({"age": [39], "hired": ["25/04/2001"]}))["columns"]
        >>> template["age"]
        {'kind': 'number', 'low': None, 'high': None, 'step': None, 'missing': True}
        >>> template["hired"]["guess"]
        {'kind': 'date', 'format': '%d/%m/%Y'}
        """
        given, roles = column_names(table), _roles(label, groups)
        wrong = [name for name in (*roles, *([subject] if subject is not None else [])) if name not in given]
        if wrong or len({*roles, subject}) <= len(roles):
            raise ValueError(
                "'label', 'groups' and 'subject' of Schema.template must be different columns of the table. Got "
                f"{label!r}, {groups!r} and {subject!r}; the table has {given[:20]}."
            )
        names = [name for name in given if name != subject]
        cells = {n: _columns.cells_of(own) for n, own in as_dataframe(table, names).items()}
        columns = {n: _skeleton(own.dtype, n in roles) | _metadata.guessed(own, n) for n, own in cells.items()}
        named = roles[: 0 if label is None else 1]
        whose = {} if subject is None else {"subject": subject}
        return {"columns": columns, "label": named[0] if named else None, "groups": list(roles[len(named) :]), **whose}


def _declared(content: Any) -> tuple[dict[str, Any], dict[str, PrivacySpent]]:
    """The columns of a schema that was written down, and what was paid for it, by the names of the releases."""
    known = {"columns", "label", "groups", "n_rows", "subject", "releases"}
    if not isinstance(content, Mapping) or not isinstance(content.get("columns"), Mapping) or set(content) - known:
        raise ValueError(f"A Schema is a mapping with 'columns' and, of these, what applies: {sorted(known)}.")
    columns = {
        name: {key: value for key, value in said.items() if key != "released"} if isinstance(said, Mapping) else said
        for name, said in content["columns"].items()
    }
    return columns, releases_of(content.get("releases", []), owner="A Schema")


def _with_origins(
    columns: Mapping[str, Any], content: Mapping[str, Any], releases: Mapping[str, PrivacySpent]
) -> dict[str, Any]:
    """Columns that know what was paid for them; of what is only a kind there is nothing to know. A release that no
    column names any more is paid by all that name none: who edits a file takes no price off it."""
    said = {name: one.get("released") if isinstance(one, Mapping) else None for name, one in content["columns"].items()}
    named = {name: [one] if isinstance(one, str) else one or [] for name, one in said.items()}
    known = list(releases)  # whatever a file names, it is compared and not hashed
    wrong = [name for name, one in named.items() if not isinstance(one, list) or any(by not in known for by in one)]
    if wrong:
        raise ValueError(
            f"Columns {wrong} of a Schema are marked as released, but the Schema lacks their cost: its 'releases' are "
            "incomplete or were edited. Take the file as Schema.save wrote it."
        )
    nobodys = [release for release in releases if not any(release in one for one in named.values())]
    found = dict(columns)
    for name, column in columns.items():
        by = [releases[release] for release in named[name] or nobodys]
        if isinstance(column, _columns.Column) and by:
            found[name] = replace(column, privacy_=composed(*by))
    return found


def _names(said: Any) -> tuple[str, ...]:
    """One name or several, as texts: a file without a first line has numbers for names."""
    several = isinstance(said, Sequence | np.ndarray | pd.Index | set) and not isinstance(said, str)
    return tuple(map(str, said)) if several else () if said is None else (str(said),)


def _roles(label: Any, groups: Any) -> tuple[str, ...]:
    return (*(() if label is None else (str(label),)), *_names(groups))


def _with_own_group(column: _columns.Column) -> _columns.Column:
    """A group that may be missing has one value more, for rows without any that is listed."""
    if not isinstance(column, _columns.Category | _columns.Boolean) or not column.missing:
        return column
    values = values_of(column)
    name = "missing" if isinstance(column, _columns.Boolean) or "missing" not in values else "no value"
    return _columns.Category((*values, name), others=name, privacy_=column.privacy_)


class SchemaParameter:
    """The parameter ``schema`` of an estimator: what ``Schema.to_dict`` or a filled in template says is a Schema too.
    What contradicts itself, or is not filled in yet, stays as it is, and a fit refuses it."""

    def __set__(self, owner: Any, value: Schema | Mapping[str, Any] | None) -> None:
        if isinstance(value, Mapping):
            with contextlib.suppress(Exception):
                value = Schema.from_dict(value)
        vars(owner)["schema"] = value


#: Parameters that come last in every constructor, in this order, own ones and inherited ones.
_LAST = (
    "lam", "net", "public_n_rows", "max_rows_per_subject", "max_grad_norm", "noise_multiplier", "classes", "groups",
    "sensitive_columns", "schema", "public_data", "memory", "n_jobs", "random_state", "noise_seed", "ledger", "verbose",
)  # fmt: skip


@dataclass_transform(kw_only_default=True, eq_default=False)
def with_schema(cls: Any = None, *, kw_only: bool = True) -> Any:
    """Make a constructor of the fields of an estimator, one of which is ``schema``; it inherits constraints."""
    if cls is None:
        return partial(with_schema, kw_only=kw_only)
    made = dataclass(kw_only=kw_only, eq=False, repr=False)(cls)
    made.schema = SchemaParameter()
    signature = inspect.signature(made.__init__)
    given = sorted(signature.parameters.values(), key=lambda one: _LAST.index(one.name) if one.name in _LAST else -1)
    made.__init__.__signature__ = signature.replace(parameters=given)
    said = ChainMap(*(vars(one).get("_parameter_constraints", {}) for one in made.__mro__))
    made._parameter_constraints = {name: said[name] for name in signature.parameters if name in said}
    return made


def values_of(column: _columns.Column) -> tuple[Any, ...]:
    """Return the values of a label or a group, in their order."""
    return column.values if isinstance(column, _columns.Category) else (False, True)


def _skeleton(dtype: Any, role: bool) -> dict[str, Any]:
    if pd.api.types.is_bool_dtype(dtype):
        return {"kind": "boolean"}
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return {"kind": "date", "first": None, "last": None, "missing": True}
    if pd.api.types.is_numeric_dtype(dtype) and not role:
        return {"kind": "number", "low": None, "high": None, "step": None, "missing": True}
    return {"kind": "category", "values": None, **({} if role else {"missing": True})}
