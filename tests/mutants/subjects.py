"""Mistakes where several rows are those of one subject: dealt one by one, counted more than once, or left unsaid."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd

from skfairdp import _class_sums
from skfairdp._inputs import _training
from skfairdp._networks import Network, _clipping as _dp_step
from skfairdp._tables import _backend
from skfairdp._teachers import _teachers
from skfairdp.model_selection import _frontier
from skfairdp.privacy import NeighboringRelation, Protects, _attribute_cost, _statement, _verify
from tests._tools.inside import (
    ConstraintGradient,
    FoldRows,
    RowSource,
    SubjectFolds,
    Subjects,
    TrainingData,
    id_hashes,
    row_hashes,
)
from tests.mutants.harness import mutant


@mutant
def parts_by_row(patch):
    """Rows are dealt to teachers one by one, as they always were: a subject of six rows moves six votes."""
    patch.setattr(Subjects, "parts", lambda self, n_teachers, rng: rng.permutation(len(self.of)) % n_teachers)


@mutant
def parts_by_content(patch):
    """The teacher of a subject follows the order in which subjects turn up, so that one moves all later ones."""

    def parts(self, n_teachers, rng):
        return rng.permutation(self.n)[pd.factorize(self.of)[0]] % n_teachers

    patch.setattr(Subjects, "parts", parts)


@mutant
def rows_that_count_in_full(patch):
    """Every row of a subject adds one to the sums."""

    def of_subjects(units, y, of, n_classes):
        return np.equal.outer(np.arange(n_classes), y).astype(float) @ np.column_stack([np.ones(len(y)), units])

    patch.setattr(_class_sums, "_of_subjects", of_subjects)


@mutant
def lengths_of_features_alone(patch):
    """The sum of a subject is shortened by its features, whatever its number of rows is."""
    honest = _class_sums._of_subjects

    def of_subjects(units, y, of, n_classes):
        added = honest(units, y, of, n_classes)
        return added / max(np.linalg.norm(added[:, 1:]), 1e-9)

    patch.setattr(_class_sums, "_of_subjects", of_subjects)


@mutant
def weights_to_the_nearest(patch):
    """Products of weights are rounded to the nearest step of the grid, so that a sum may be longer than a row."""
    patch.setattr(_class_sums, "math", SimpleNamespace(sqrt=lambda number: math.sqrt(number) * (1 + 1e-5)))


@mutant
def all_rows_are_counted(patch):
    """Tables and counts take all rows of a subject where one was planned."""
    patch.setattr(TrainingData, "one_row_each", property(lambda self: self))


@mutant
def the_row_of_a_subject_by_the_table(patch):
    """Which row of a subject is counted follows how many rows the table has, and with it those of other subjects."""

    def one_row_each(self):
        order, sizes = np.argsort(self.of, kind="stable"), np.bincount(self.of, minlength=self.n)
        starts = np.cumsum(sizes) - sizes
        return order[(starts + len(self.of) % np.maximum(sizes, 1))[sizes > 0]]

    patch.setattr(Subjects, "one_row_each", property(one_row_each))


@mutant
def rows_of_a_subject_are_clipped_one_by_one(patch):
    """Each row of a subject has a clipped gradient of its own in the sum, and a subject of k rows moves it k times."""
    clipped = _dp_step.clipped_gradient_sum

    def by_row(module, loss, X, y, max_norm, *, weights=None, present=None, **more):
        if weights is None:
            return clipped(module, loss, X, y, max_norm, present=present, **more)
        there = weights.flatten() > 0
        return clipped(module, loss, X.flatten(0, 1), y.flatten(0, 1), max_norm, present=there, **more)

    patch.setattr(_dp_step, "clipped_gradient_sum", by_row)


@mutant
def rows_are_drawn_instead_of_subjects(patch):
    """Batches are of rows, at the rate that was planned for subjects."""
    train = Network.trained
    patch.setattr(Network, "trained", lambda *given, **more: train(*given, **{**more, "of_each": None}))


@mutant
def rows_are_kept_by_the_table(patch):
    """Which rows of a subject are learned from follows their place in the table, and with it the rows of others."""

    def rows_of_each(self, most, rng):
        rows = np.random.default_rng(0).permutation(len(self.of))
        kept = np.full((self.n, most), -1)
        for one in range(self.n):
            mine = rows[self.of[rows] == one][:most]
            kept[one, : len(mine)] = mine
        return kept

    patch.setattr(Subjects, "rows_of_each", rows_of_each)


@mutant
def a_subject_that_is_gone_covers_each_of_its_rows(patch):
    """A fit for a subject that gives way to none counts as it is for records, of which one is two steps away."""
    patch.setattr(_attribute_cost, "_twice", lambda event: event)


@mutant
def sizes_by_rows(patch):
    """Teachers, noise and warnings follow the number of rows, which is private where subjects are protected."""
    patch.setattr(TrainingData, "n_units", property(lambda self: len(self.X)))


@mutant
def a_subject_is_said_to_be_a_record(patch):
    """The statement says that one row is protected, whatever the fit has paid for."""
    patch.setattr(_statement, "unit_of", lambda relation, rows_of="": _statement.UNITS["record"])


@mutant
def parts_without_their_subjects(patch):
    """A part of a statement is not asked whose rows it protects together."""
    patch.setattr(_verify, "_unit", lambda row: True)
    patch.setattr(_verify, "_one_kind_of_subjects", lambda document: _verify.Check("one kind", "", "", holds=True))


@mutant
def frontiers_by_row(patch):
    """A frontier keeps the ids to itself, and each of its fits protects a row."""
    honest = _frontier._release
    patch.setattr(_frontier, "_release", lambda estimator, data: honest(estimator, (*data[:2], None, *data[3:])))


@mutant
def records_that_subjects_do_not_count_for(patch):
    """The total for records leaves out the fits for subjects, which have read the same rows."""
    patch.setattr(Protects, "kept_by", property(lambda self: (self,)))


@mutant
def rows_that_cover_their_subject(patch):
    """A guarantee for each row passes for one of all rows of a subject, at the same figure."""
    implies = NeighboringRelation.implies
    patch.setattr(
        NeighboringRelation,
        "implies",
        lambda self, other: (
            implies(self, other) or (self, other) == ("replace one record", "replace all rows of one subject")
        ),
    )


@mutant
def generators_count_all_rows(patch):
    """Noisy tables of a generator count every row of a subject."""
    patch.setattr(Subjects, "one_row_of", lambda self, owner, **given: list(given.values()))


@mutant
def scores_count_all_rows(patch):
    """The table of scores of a fold counts every row of a subject."""
    part = Subjects.part

    def all_rows(self, places):
        found = part(self, places)
        return dataclasses.replace(found, one_each=found.rows, places=found.rows)

    patch.setattr(Subjects, "part", all_rows)


@mutant
def folds_of_those_who_have_rows(patch):
    """A fold lists the subjects with rows in it, so that the number of subjects follows who has any."""
    part = Subjects.part

    def with_rows(self, places):
        found = part(self, places)
        return dataclasses.replace(found, subject=found.subject.cat.remove_unused_categories())

    patch.setattr(Subjects, "part", with_rows)


@mutant
def schemas_count_all_rows(patch):
    """The counts of a schema that is released are of rows."""
    patch.setattr(Subjects, "one_row_or_none_of", lambda self, table: table)


@mutant
def groups_are_randomised_row_by_row(patch):
    """Every row of a subject has an answer of its own about a group that all of them share."""
    patch.setattr(TrainingData, "groups_of_units", property(lambda self: self.groups))
    patch.setattr(TrainingData, "of_each_row", lambda self, of_units: of_units)


@mutant
def rows_in_chunks_by_their_number(patch):
    """Rows that are read in chunks are dealt one by one, by their place: a subject is in several teachers."""
    honest = _teachers.row_hashes
    patch.setattr(_teachers, "row_hashes", lambda chunk, key, seed: honest(chunk, None, seed))


@mutant
def rows_in_chunks_counted_as_subjects(patch):
    """The plan of rows in chunks follows how many rows there are, which is private where subjects are protected."""
    read = Subjects.read_source.__func__

    def by_rows(cls, source, *, owner):
        found = read(cls, source, owner=owner)
        return dataclasses.replace(found, hashes=np.arange(source.n_rows, dtype=np.uint64))

    patch.setattr(Subjects, "read_source", classmethod(by_rows))


@mutant
def rows_in_chunks_are_all_counted(patch):
    """The classes of rows in chunks are counted by row."""
    patch.setattr(_teachers, "one_of_each", lambda hashes: np.arange(len(hashes)))


@mutant
def groups_in_chunks_row_by_row(patch):
    """Every row of a subject in chunks keeps a group of its own, where the subject has that of its first row."""
    patch.setattr(_teachers, "_first_of_each", lambda rows: np.arange(len(rows)))


@mutant
def rows_in_chunks_are_chosen_by_the_table(patch):
    """Which row of a subject is counted follows how many rows its part has, and with it those of others."""

    def one_of_each(hashes):
        _, first, sizes = np.unique(hashes, return_index=True, return_counts=True)
        return first + len(hashes) % sizes

    patch.setattr(_teachers, "one_of_each", one_of_each)


@mutant
def rows_in_chunks_as_they_come(patch):
    """A teacher learns from the rows of a subject in the order in which an engine hands them on."""
    patch.setattr(_teachers, "_by_key", lambda rows: np.argsort(rows["hash"], kind="stable"))


@mutant
def folds_in_chunks_by_row(patch):
    """Rows in chunks are dealt into folds one by one: a subject is learned from in one and scored in another."""
    honest = row_hashes
    patch.setattr(
        SubjectFolds, "__call__", lambda self, chunk: (honest(chunk, None, 1) % np.uint64(self.n_folds)).astype(int)
    )


@mutant
def folds_in_chunks_of_those_who_have_rows(patch):
    """A fold of rows in chunks lists the subjects that have rows in it."""
    make = FoldRows.__init__

    def with_rows(self, source, rule, fold, inside, n_rows, listed=None):
        there = [id_hashes(chunk.table[source.key], 0) for chunk in source.chunks()]
        make(self, source, rule, fold, inside, n_rows, listed[np.isin(listed, np.concatenate(there))])

    patch.setattr(FoldRows, "__init__", with_rows)


@mutant
def subjects_in_chunks_as_they_turn_up(patch):
    """Subjects are numbered as they turn up in files, so that one without rows moves all that come after it."""
    honest = _training.schemas.kept_rows

    def kept_rows(*given, **more):
        *rows, of = honest(*given, **more)
        return *rows, pd.factorize(of)[0]

    patch.setattr(_training.schemas, "kept_rows", kept_rows)


@mutant
def the_group_chooses_the_row_that_is_asked_for(patch):
    """Rows of one subject are sorted by all that is in them, also where their groups are all that is protected."""
    patch.setattr(
        _training, "in_them", lambda schema, known, private: tuple(name for name in schema.columns if name in known)
    )


@mutant
def rows_in_chunks_without_ids(patch):
    """Rows whose id is missing are those of one more subject, and move from one to another with what they say."""
    from skfairdp._rows import _subjects

    honest = _subjects._subjects_of
    patch.setattr(_subjects, "_subjects_of", lambda key, chunk: (honest(key, chunk)[0], ""))


@mutant
def bars_over_the_rows_of_subjects(patch):
    """Bars say how many rows there are, which is private where subjects are protected."""
    patch.setattr(RowSource, "bar", property(lambda self: ("rows of X", self.n_rows)))


@mutant
def subjects_without_rows_move_others(patch):
    """Of a subject without rows a network has no row, so that all who come after it may be in other teachers."""
    patch.setattr(_backend.Rows, "at_their_places", lambda self, n: self)


@mutant
def gradients_of_all_rows(patch):
    """A noisy gradient of PF-LD asks all rows of a subject for its group, which the noise is for one row of."""
    patch.setattr(ConstraintGradient, "_asked", property(lambda self: np.arange(len(self.X))))
