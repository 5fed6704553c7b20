"""Mistakes in the release of a schema, and in fits by one: thresholds, orders and readings that give a record away."""

from dataclasses import replace

import numpy as np
import pandas as pd

from skfairdp.privacy import Account, CommonValues, _accountants, _mechanisms
from skfairdp.schema import RawTable, _columns, _raw_table, _release, _schema
from tests.mutants.harness import mutant
from tests.schema import test_release


@mutant
def threshold_for_an_absent_value(patch):
    """Often the threshold is set for a count of 0, and the record that is there once has a count of 1."""
    honest = CommonValues.threshold.fget
    patch.setattr(CommonValues, "threshold", property(lambda self: honest(self) - 1))


@mutant
def threshold_at_a_tenth_of_the_quantile(patch):
    """A fixed threshold, such as "at least ten records": the noise carries single records over it."""
    patch.setattr(CommonValues, "threshold", property(lambda self: 10.0))


@mutant
def a_release_that_no_column_names_is_free(patch):
    """Found: a file whose columns say no more who found them takes the price off what is made of these columns."""

    def named_only(columns, content, releases):
        named = {name: said.get("released") for name, said in content["columns"].items()}
        return {
            name: replace(column, privacy_=releases[named[name]]) if named[name] else column
            for name, column in columns.items()
        }

    patch.setattr(_schema, "_with_origins", named_only)


@mutant
def a_trained_module_for_nothing(patch):
    """Found: a network that private rows have trained is given as another one, and its price is not composed."""
    look = Account.look_at_value
    patch.setattr(
        Account, "look_at_value", lambda self, value: None if hasattr(value, "state_dict") else look(self, value)
    )


@mutant
def texts_of_pandas_own_type(patch):
    """Found: a column is given the type for texts, which is an error for a cell with half of a surrogate pair."""
    patch.setattr(_columns, "as_series", pd.Series)
    patch.setattr(_release, "_day_of", lambda cell, format=None: _release._as_days(np.array([cell], dtype=object))[0])


@mutant
def a_text_as_its_class_has_it(patch):
    """Found: a text of a class of its own is sorted, and equal to others, as that class likes."""
    patch.setattr(
        _release, "_plain", lambda cell, plain=_release._plain: cell if isinstance(cell, str) else plain(cell)
    )


@mutant
def released_as_the_type_of_its_column(patch):
    """Found: one text makes texts of all cells of a file's column, and the values that are released are texts."""
    patch.setattr(_release, "_is_name", lambda text: True)


@mutant
def read_as_the_type_of_its_column(patch):
    """Found: where one text makes texts of all truths of a file's column, none of them is a number."""
    patch.setattr(_columns, "READ_AS_TRUTHS", {})


@mutant
def sensitivity_of_one_count(patch):
    """A replaced record moves two counts by one each, which is √2 and not 1."""
    patch.setattr(_release, "_APART", 1.0)
    patch.setattr(CommonValues, "sensitivity", 1.0)


@mutant
def values_in_order_of_appearance(patch):
    """Values come out in the order in which the rows bring them."""
    patch.setattr(_mechanisms, "_place", lambda value: 0)


@mutant
def missing_is_counted_only_where_it_occurs(patch):
    """Whether a value may be missing is what the column says, not its noisy count: the only missing one is told."""
    honest = _release.ColumnRelease._values

    def values(self, column, share, noise):
        found = honest(self, column, share, noise)
        return replace(found, column=found.column and replace(found.column, missing=bool(column.isna().any())))

    patch.setattr(_release.ColumnRelease, "_values", values)


@mutant
def kinds_from_dtypes(patch):
    """One text among numbers makes a column of objects: a dtype belongs to the private rows."""
    honest = _release.ColumnRelease.release

    def found(self, column, noise):
        if self.kind is None and pd.api.types.is_float_dtype(column.dtype):
            return _release.ColumnRelease("number", self.mu, self.failure).release(column, noise)
        return honest(self, column, noise)

    patch.setattr(_release.ColumnRelease, "release", found)


@mutant
def truths_that_occur(patch):
    """Whether both truths are in a column is told by the rows, so that the only False of it shows."""

    def truths(self, column, share, noise):
        places = _release.Boolean(missing=True).read(column)
        one = len(np.unique(places[~np.isnan(places)])) < 2
        return _release.Found(_release.Boolean(missing=True), _release._ONE_VALUE if one else "")

    patch.setattr(_release.ColumnRelease, "_truths", truths)


@mutant
def one_complex_number_is_that_of_a_column(patch):
    """One complex number makes all others of its column complex: each would be no number any more, with a warning."""
    patch.setattr(_columns, "plain_cell", lambda cell: cell)


@mutant
def range_of_the_known_cells(patch):
    """The finer table between the smallest and the largest value that occur."""
    honest = _release.ColumnRelease._bounds

    def bounds(self, column, kind, way, share, noise):
        numbers = _columns._as_numbers(column)
        patch.setattr(_release._Magnitudes, "range_of",
                      lambda scale, held: (float(np.nanmin(numbers)), float(np.nanmax(numbers))))  # fmt: skip
        return honest(self, column, kind, way, share, noise)

    patch.setattr(_release.ColumnRelease, "_bounds", bounds)


@mutant
def a_parser_of_whole_columns(patch):
    """pandas reads a column of mixed types another way where one cell has a type of its own."""

    def numbers(values, *way):
        try:
            return np.asarray(pd.to_numeric(_columns.cells_of(values), errors="coerce").to_numpy(dtype=float))
        except Exception:
            return np.array([_columns._number_of(cell) for cell in values], dtype=float)

    patch.setattr(_columns, "_as_numbers", numbers)
    patch.setattr(_release, "_as_numbers", numbers)
    patch.setattr(test_release, "_as_numbers", numbers)


@mutant
def all_of_mu_in_every_step(patch):
    """Each step of a column takes the whole budget of the column."""
    honest = _release.ColumnRelease._gaussian
    patch.setattr(_release.ColumnRelease, "_gaussian", lambda self, share: honest(self, 1.0))


@mutant
def failures_are_not_charged(patch):
    """Noisy counts are charged, and that a value of one record may slip through is not."""
    patch.setattr(_release, "RareDisclosure", lambda probability: _release.GaussianDpEvent(1e9))


@mutant
def disclosures_do_not_add_up(patch):
    """δ pays for one disclosure, however many there are."""
    honest = _accountants._apart

    def apart(leaves):
        return honest(tuple((leaf, 1 if isinstance(leaf, _accountants.RareDisclosure) else n) for leaf, n in leaves))

    patch.setattr(_accountants, "_apart", apart)


# ---- fits by a schema ----------------------------------------------------------------------------------------------
@mutant
def classes_of_the_rows(patch):
    """The classes are those that occur: a label that one record alone has is there or not."""
    declared = RawTable.classes.fget

    def classes(self):
        known = declared(self)
        return known[np.isin(known, np.asarray(self.table[self.schema.label]))]

    patch.setattr(RawTable, "classes", property(classes))


@mutant
def unforeseen_cells_raise(patch):
    """A schema as a validator: private rows are refused where they do not fit, and the refusal tells so."""
    honest = RawTable.read.__func__

    def read(cls, schema, table, **given):
        found = honest(cls, schema, table, **given)
        if schema.misfits(table).sum():
            raise ValueError("X does not fit its schema.")
        return found

    patch.setattr(RawTable, "read", classmethod(read))


@mutant
def unforeseen_records_are_dropped(patch):
    """Records with a label that is not listed are left out: the number of rows follows them."""
    honest = RawTable.read.__func__

    def read(cls, schema, table, **given):
        known = table[schema.label].isin(schema.columns[schema.label].values)
        return honest(cls, schema, table[known], **given)

    patch.setattr(RawTable, "read", classmethod(read))


@mutant
def numbers_scaled_by_the_rows(patch):
    """Numbers are scaled by the largest one that occurs, as a scaler that is fitted on private rows does."""
    honest = _raw_table.encoded_features

    def encoded(schema, numbers):
        features = honest(schema, numbers)
        return features / np.abs(features).max(axis=0).clip(1e-9)

    patch.setattr(_raw_table, "encoded_features", encoded)


@mutant
def bounds_of_the_rows(patch):
    """Cells beyond the bounds are kept as they are: one of them is as large as it likes."""

    def read(self, values):
        return np.nan_to_num(_columns._as_numbers(values), nan=self.low)

    patch.setattr(_columns.Number, "read", read)
