"""Mistakes in who sees what: parts, teachers, student."""

import zlib
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from skfairdp._rows._keyed import _Kept
from skfairdp._teachers import _logistic, fit_teachers, position_partition
from skfairdp._teachers._teachers import _Teaching
from skfairdp.pate import _fair_votes as _sfpate_votes
from skfairdp.schema import _raw_table as _kept_rows
from tests._tools.inside import UNANSWERED, FoldRule, StudentTrainingSet, fit_student, row_hashes, seeded
from tests.mutants.harness import mutant, replace_everywhere


def teach(patch: Any, change: Any) -> None:
    """Hand other rows to the teachers: ``change(X, y, assignment, n_teachers)`` returns the rows and their teachers."""

    def planted(teacher: Any, X: Any, y: Any, assignment: Any, *, n_teachers: int, **kwargs: Any) -> Any:
        X, y, assignment = change(X, y, assignment, n_teachers)
        return fit_teachers(teacher, X, y, assignment, n_teachers=n_teachers, **kwargs)

    replace_everywhere(patch, fit_teachers, planted)


@mutant
def no_partition(patch):
    """Found: one discriminator for all "teachers", trained on all rows. Right: disjoint parts, fixed for the fit."""

    def change(X, y, assignment, n_teachers):
        return np.tile(X, (n_teachers, 1)), np.tile(y, n_teachers), np.repeat(np.arange(n_teachers), len(X))

    teach(patch, change)


@mutant
def folds_by_content(patch):
    """Planted: rows of chunks are dealt into folds by a hash of their label as well, so that a record can change its
    fold with its label, and be scored and learned from. Right: by the public key alone."""

    def by_content(self, chunk):
        cells = chunk.table["label"].to_numpy(dtype=object)
        seen = np.array([zlib.crc32(repr(cell).encode()) for cell in cells], dtype=np.uint64)
        hashes = row_hashes(chunk, self.key, self.seed) ^ seen
        return (hashes % np.uint64(self.n_folds)).astype(np.int64)

    patch.setattr(FoldRule, "__call__", by_content)


@mutant
def places_by_partition(patch):
    """Found in this package: a row of dask had its partition and the row number in it for a place. Blocks of a text
    file end after so many bytes, so that one longer record moved rows to other places. Right: the number over all."""
    from tests._tools.inside import DaskRows

    honest = DaskRows._partitions

    def by_partition(self):
        return [(length, j * 2**32, part) for j, (length, _, part) in enumerate(honest(self))]

    patch.setattr(DaskRows, "_partitions", by_partition)


@mutant
def files_named_after_values(patch):
    """Found in this package: files in folders such as ``sex=f`` or ``f`` dealt to teachers by file and row number, so
    that a record with another value moves the rows behind it in both files. Right: such rows need a key."""
    from tests._tools.inside import ParquetRows

    patch.setattr(ParquetRows, "knows_places", True)


@mutant
def order_of_named_files(patch):
    """Found in this package: rows of ``sex=f/`` handed out before those of ``sex=m/``, with noisy groups in an order
    that tells the true ones. Right: such files are refused where rows are used in their order."""
    from skfairdp import _rows
    from skfairdp.baselines import _randomized_response

    for module in (_rows, _randomized_response):
        patch.setattr(module, "check_order", lambda source, owner: None)


@mutant
def places_by_file(patch):
    """Found in this package: a row of Parquet had its file and the row number in it for a place. Files end after so
    many bytes, so that one longer record moved rows to other places. Right: the number over all files."""
    from tests._tools.inside import ParquetRows

    honest = ParquetRows._tasks

    def by_file(self):
        first = {}
        for group, start in honest(self):
            before = first.setdefault(group.path, start)
            yield group, len(first) * 2**32 + start - before

    patch.setattr(ParquetRows, "_tasks", by_file)


@mutant
def files_in_the_order_of_texts(patch):
    """Planted: rows are numbered over files in the order of their paths as texts, where part.10 comes before part.2, so
    that a row which moves to the next file gets another number. Right: in the order of the numbers in their names."""
    from tests._tools.inside import ParquetRows

    patch.setattr(ParquetRows, "_files", lambda self: sorted(self._dataset.get_fragments(), key=lambda one: one.path))


@mutant
def ids_by_their_chunk(patch):
    """Found in this package: whole numbers hashed as texts where their chunk had a text or a gap among its ids, so that
    rows changed teachers with the ends of chunks. Right: each id by itself."""
    from skfairdp._rows import _keyed

    honest = _keyed._of_ids

    def by_chunk(ids, seed):
        if pd.api.types.is_integer_dtype(ids.dtype):
            return honest(ids, seed)
        return _keyed._of_texts(ids.astype(str).to_numpy(dtype=object), seed)

    patch.setattr(_keyed, "_of_ids", by_chunk)


@mutant
def ids_as_their_reader_has_them(patch):
    """Found in this package: 12.10 hashed as a number where its chunk had no text, and as a text elsewhere, so that the
    rows of one subject had several teachers. Right: what may be read as one number has one text."""
    from skfairdp._utils import _labels

    def as_read(cell):
        return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)

    patch.setattr(_labels, "_text_of", as_read)


@mutant
def bars_that_end_with_partitions(patch):
    """Found in this package: a bar over rows moved on by a partition of dask at a time, whose end follows the length of
    a private text. Right: it shows every tenth of the rows, one after the other."""
    from skfairdp._rows import _dask

    class AsTheyCome:
        def __init__(self, bar, n_rows):
            self.bar = bar

        def add(self, n_rows):
            self.bar.n += n_rows
            self.bar.refresh()

    patch.setattr(_dask, "Tenths", AsTheyCome)


@mutant
def folds_that_are_scored_and_learned_from(patch):
    """Planted: the train part of a fold keeps all rows, those that score it among them. Right: the others alone."""
    honest = _Kept.__call__
    patch.setattr(_Kept, "__call__", lambda self, chunk: honest(self, chunk) if self.inside else [chunk])


@mutant
def stale_loop_index(patch):
    """Found: a loop variable left over from the partition loop, so that every teacher trains on the last part.

    Right: every part is used, and one row changes at most one teacher.
    """

    def change(X, y, assignment, n_teachers):
        last = np.flatnonzero(assignment == n_teachers - 1)
        index = np.tile(last, n_teachers)
        return X[index], y[index], np.repeat(np.arange(n_teachers), len(last))

    teach(patch, change)


@mutant
def new_partition_with_warm_teachers(patch):
    """Found: rows dealt anew every round to teachers that keep what they learnt, so that a row reaches several.

    Here the second half of the queries is answered by teachers that went on from the first deal with a second one.
    Right: one deal for the whole fit (or a new deal and new teachers).
    """

    def planted(teacher, X, y, assignment, *, n_teachers, **kwargs):
        again = position_partition(len(X), n_teachers, random_state=1)
        first = fit_teachers(teacher, X, y, assignment, n_teachers=n_teachers, **kwargs)
        warm = fit_teachers(
            teacher,
            np.vstack([X, X]),
            np.concatenate([y, y]),
            np.concatenate([assignment, again]),
            n_teachers=n_teachers,
            **kwargs,
        )

        class Rounds:
            def predict(self, rows):
                half = len(rows) // 2
                return np.column_stack([first.predict(rows[:half]), warm.predict(rows[half:])])

        return Rounds()

    replace_everywhere(patch, fit_teachers, planted)


@mutant
def wrap_around_partition(patch):
    """Found: every teacher gets equally many rows of each class, and the rare class starts over when it runs out.

    A rare row then sits in several parts. Right: disjoint parts, whatever their classes.
    """

    def change(X, y, assignment, n_teachers):
        counts = np.bincount(y)
        each = -(-counts.max() // n_teachers)
        rows = [
            np.flatnonzero(y == label)[np.arange(n_teachers * each) % count]
            for label, count in enumerate(counts)
            if count
        ]
        index = np.concatenate(rows)
        return X[index], y[index], np.tile(np.repeat(np.arange(n_teachers), each), len(rows))

    teach(patch, change)


@mutant
def stratified_partition(patch):
    """Found: rows sorted by a private attribute and dealt round-robin, "so that every teacher sees every group".

    One changed attribute moves all later rows by one teacher. Right: the deal is a function of the position alone.
    """

    def change(X, y, assignment, n_teachers):
        dealt = np.empty(len(y), dtype=np.int64)
        dealt[np.argsort(y, kind="stable")] = np.arange(len(y)) % n_teachers
        return X, y, dealt

    teach(patch, change)


@mutant
def partition_stratified_by_the_group(patch):
    """The same in SF-PATE, so that "every teacher sees every group": one flipped group moves rows of all teachers."""
    seen = {}
    check = _sfpate_votes.AttributeRows.__init__

    def noting(self, *args, **kwargs):
        check(self, *args, **kwargs)
        seen["groups"] = self.groups

    def dealt(n_rows, n_teachers, **_):
        parts = np.empty(n_rows, dtype=np.int64)
        parts[np.argsort(seen["groups"], kind="stable")] = np.arange(n_rows) % n_teachers
        return parts

    patch.setattr(_sfpate_votes.AttributeRows, "__init__", noting)
    patch.setattr(_sfpate_votes._teachers, "position_partition", dealt)


@mutant
def partition_by_content_hash(patch):
    """Found: the teacher of a row is a hash of its content, which is stable under removal, not under replacement.

    A replaced row leaves one part and enters another: two votes move. Right: position, under the replace relation.
    """

    def change(X, y, assignment, n_teachers):
        return X, y, np.array([zlib.crc32(row.tobytes()) % n_teachers for row in np.column_stack([X, y])])

    teach(patch, change)


@mutant
def scaled_by_private_range(patch):
    """Found: features scaled to the smallest and largest value of the private table, unpaid.

    One extreme row squeezes the rows of every teacher. Right: bounds are public or paid for.
    """

    def change(X, y, assignment, n_teachers):
        low, high = X.min(axis=0), X.max(axis=0)
        return (X - low) / (high - low), y, assignment

    teach(patch, change)


@mutant
def class_ratio_of_the_whole_table(patch):
    """Found: sampling weights from group counts over the whole private table feed every teacher.

    With the teachers' draws held fixed, one changed label changes the batches of several. Right: a teacher weighs with
    the counts of its own part.
    """

    def change(X, y, assignment, n_teachers):
        weights = (1 / np.maximum(np.bincount(y), 1))[y]
        draws, index = np.random.default_rng(0).random((n_teachers, 12)), []
        for teacher, uniform in enumerate(draws):
            part = np.flatnonzero(assignment == teacher)
            shares = weights[part].cumsum() / weights[part].sum()
            index.append(part[np.searchsorted(shares, uniform).clip(max=len(part) - 1)])
        return X[np.concatenate(index)], y[np.concatenate(index)], np.repeat(np.arange(n_teachers), 12)

    teach(patch, change)


@mutant
def student_sees_private_rows(patch):
    """Found: the student discriminator is trained on raw private rows beside the labelled ones.

    Right: student (and generator) never see a private array.
    """
    leaked, teach = leak_private_rows(patch), StudentTrainingSet.teach

    def with_private_rows(self, student, labels, **kwargs):
        class Leaking:
            def fit(_, X, shares, **given):
                rows, true = leaked[-1]
                given["X_public"] = X if given["X_public"] is None else given["X_public"]
                shares = np.vstack([shares, np.eye(shares.shape[1])[true]])
                return student.fit(np.vstack([X, rows]), shares, **given)

        return teach(self, Leaking(), labels, **kwargs)

    patch.setattr(StudentTrainingSet, "teach", with_private_rows)


def leak_private_rows(patch):
    """The private rows and labels of every fit to come, for whoever must not have them."""
    leaked: list[Any] = []

    def keeping(teacher, X, y, *args, **kwargs):
        leaked.append((X, y))
        return fit_teachers(teacher, X, y, *args, **kwargs)

    replace_everywhere(patch, fit_teachers, keeping)
    return leaked


@mutant
def given_student_gets_private_rows(patch):
    """The same with a student of the user's own: private rows and their true labels are appended."""
    leaked = leak_private_rows(patch)

    def with_private_rows(student, lessons, labels, random_state):
        (rows, true), told = leaked[-1], labels != UNANSWERED
        X, y = np.vstack([lessons.X[told], rows]), np.concatenate([labels[told], true])
        return seeded(clone(student), random_state).fit(X, y)

    replace_everywhere(patch, fit_student, with_private_rows)


@mutant
def parts_of_chunks_by_content(patch):
    """The teacher of a row that is read in chunks follows its cells, so that a changed row leaves one for another.

    Right: a hash of its public key, or of its place.
    """

    def planted(chunk, key, seed):
        return pd.util.hash_pandas_object(chunk.table.astype(str), index=False).to_numpy()

    replace_everywhere(patch, row_hashes, planted)


@mutant
def retried_task_counted_twice(patch):
    """Rows behind the votes are counted without repetition: a task that counted twice trains twice, unnoticed."""
    vote = _Teaching.vote

    def planted(self, part, rows):
        return vote(self, part, rows)[0], len(np.unique(rows["hash"]))

    patch.setattr(_Teaching, "vote", planted)


@mutant
def shares_rounded_up(patch):
    """Shares of a vote are rounded up to steps, so that a teacher has more than one vote. Right: down."""
    patch.setattr(_logistic, "rounded_down", lambda values, step: np.ceil(values / (step or 1.0)) * (step or 1.0))


@mutant
def kept_rows_by_content(patch):
    """Which public rows are kept follows all their cells, the private group among them. Right: their keys."""

    def planted(chunk, key, seed):
        return pd.util.hash_pandas_object(chunk.table.astype(str), index=False).to_numpy()

    patch.setattr(_kept_rows, "row_hashes", planted)


@mutant
def groups_dealt_by_group(patch):
    """Rows of SF-PATE that are read in chunks go to a teacher of their own group, "so that parts are fair".

    A changed group leaves one teacher for another. Right: a hash of the public key.
    """
    split = _Teaching.split

    def planted(self, chunk):
        rows, _ = split(self, chunk)
        group = rows[rows.dtype.names[-1]].astype(np.uint64)
        rows["hash"] = rows["hash"] // np.uint64(4) * np.uint64(4) + group
        parts = np.searchsorted(self.edges, self._teachers(rows["hash"]), side="right") - 1
        return rows, parts.astype(np.int64)

    patch.setattr(_Teaching, "split", planted)


@mutant
def products_over_those_with_two_classes(patch):
    """Found in this package: one product over the teachers that have seen two classes, another over all others. How
    many those are follows private labels, and the last bits of all follow the shape. Right: all in one product."""
    of = _logistic.LogisticEnsemble
    honest = of.__init__

    class OfSome(np.ndarray):
        def __matmul__(self, rows):
            out = np.zeros((len(self), rows.shape[1]))
            out[self.some] = np.asarray(self)[self.some] @ rows
            return out

    def init(self, coef, intercept, scored):
        honest(self, coef, intercept, scored)
        self._regressed = self._regressed.view(OfSome)
        self._regressed.some = self._single

    def scores(self, rows):
        weights = self.coef[self._others]
        return (weights.reshape(-1, weights.shape[2]) @ rows.T).reshape(*weights.shape[:2], -1)

    patch.setattr(of, "__init__", init)
    patch.setattr(of, "_scores", scores)
