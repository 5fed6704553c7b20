"""What a private search or a private part may not say: rows that lean on others, failures that choose, talk."""

import contextlib
import warnings
from dataclasses import replace

import numpy as np

from skfairdp import _row_wise
from skfairdp._teachers import _classifiers, run_tasks
from skfairdp._utils import PlainRows, silence
from skfairdp.model_selection import (
    _frame,
    _frame as _totals,
    _own_figures,
    _pareto_search as _run,
    _private_search,
    _scores,
    _search_data,
    _search_data as _scored_rows,
    _transfer,
)
from skfairdp.pate import _fair_votes as _fair_teachers
from skfairdp.privacy import _spending
from skfairdp.schema import RawTable
from tests._tools.inside import PrivateScores, Trials, dry_run_teacher
from tests.mutants.harness import mutant, replace_everywhere


@mutant
def private_rows_predicted_in_one_call(patch):
    """One record sold as one cell of a table, while the predictor's answers to others depend on it."""

    def together(fitted, X, groups, *, places):
        return np.asarray(_row_wise.predict_with_groups(fitted, X, groups))

    patch.setattr(_scores, "row_wise_predictions", together)


@mutant
def figures_of_a_table_in_one_call(patch):
    """Found in this package: figures came from one call, which one row makes fail. Right: each row has its seat."""

    def together(fitted, X, groups, *, places):
        try:
            return fitted.predict(X)
        except ValueError:
            return np.full(len(X), _row_wise.NO_CLASS)

    patch.setattr(_own_figures, "row_wise_predictions", together)


@mutant
def rows_in_the_types_of_their_table(patch):
    """Found in this package: a row kept the types of its table, which one cell of another type changes for all. Right:
    its own cells decide."""
    honest = PlainRows.__init__
    patch.setattr(PlainRows, "__init__", lambda self, X, *, native=False, listed=None: honest(self, X, native=True))


@mutant
def private_rows_in_free_seats(patch):
    """Found in this package: another private row sat in free seats and in those of rows that fail. Right: a public
    one."""
    honest = _row_wise._of_block

    def of_block(ask, rows, seats):
        return honest(lambda call, like: ask(np.where(call < 0, rows[0], call), like), rows, seats)

    patch.setattr(_row_wise, "_of_block", of_block)


@mutant
def idp3_scored_on_private_rows(patch):
    """Refusals that depend on the groups and predictions of earlier rows, scored on private folds."""
    patch.setattr(_search_data, "check_rows_alone", lambda models, owner: None)


@mutant
def teachers_that_raise(patch):
    """A fit that private rows make fail: an error that names them, or a candidate that cannot win."""

    def fit(constant, fallback, estimator=None, *arguments, **keywords):
        return constant if constant is not None else estimator.fit(*arguments, **keywords)

    patch.setattr(_classifiers, "total_fit", fit)


@mutant
def votes_outside_the_classes(patch):
    """What a teacher predicts taken as it comes: a code of its own, or probabilities that are none."""

    def as_it_comes(predicted, n_rows, n_classes):
        with np.errstate(invalid="ignore"):
            return np.asarray(predicted).astype(np.int64).astype(np.int32) % 7

    patch.setattr(_classifiers, "_as_codes", as_it_comes)
    patch.setattr(_classifiers, "_on_the_simplex", lambda proba: np.asarray(proba, dtype=float))


@mutant
def trials_whose_failure_loses(patch):
    """A failed fit swallowed by the selection: whoever can make fits fail decides who wins."""
    real = Trials.make

    def losing(self, index, noise):
        rank, result = real(self, index, noise)
        return ((-np.inf, -np.inf) if result[1] is None else rank), result

    patch.setattr(Trials, "make", losing)
    patch.setattr(_private_search.PrivateSearchCV, "fit", _without_failures(_private_search.PrivateSearchCV.fit))


@mutant
def failed_fits_scored_as_nan(patch):
    """A fit that fails after it was paid for becomes a row of nan, as error_score does in GridSearchCV."""
    real = _run.score_fold

    def swallowing(data, work, *rest):
        measured, kept, _ = real(data, work, *rest)
        for group, _ in work:
            for j, _ in group.members:
                measured.setdefault(j, {o.name: np.nan for o in data.scores.objectives})
        return measured, kept, False

    patch.setattr(_run, "score_fold", swallowing)


def _without_failures(fit):
    def ends_without_a_winner(self, *arguments, **keywords):
        try:
            return fit(self, *arguments, **keywords)
        except RuntimeError:
            return self

    return ends_without_a_winner


@mutant
def silent_typos(patch):
    """Totality without a rehearsal: a wrong parameter becomes a hundred constant votes, sold at full price."""
    replace_everywhere(patch, dry_run_teacher, lambda *_, **__: None)


@mutant
def bar_over_parts_with_two_classes(patch):
    """A bar that leaves constant teachers out counts the parts with two classes, exactly."""
    real = run_tasks

    def trained_only(function, tasks, n_tasks, **keywords):
        tasks = list(tasks)
        return real(function, tasks, sum(task[0] is None for task in tasks), **keywords)

    patch.setattr(_classifiers, "run_tasks", trained_only)
    patch.setattr(_fair_teachers._teachers, "run_tasks", trained_only)


@mutant
def teachers_that_talk(patch):
    """Warnings, prints and log records of private learners let through: how many did not converge, on what."""
    replace_everywhere(patch, silence, contextlib.nullcontext)


@mutant
def train_part_scored(patch):
    """Scores of the rows that the model was fitted on, charged as those of the others."""
    real = PrivateScores.release

    def of_the_train_part(self, fitted, test, noise):
        return real(self, fitted, np.setdiff1d(np.arange(len(self.truth)), test), noise)

    patch.setattr(PrivateScores, "release", of_the_train_part)


@mutant
def domains_of_the_rows_in_spite_of_a_schema(patch):
    """Classes and groups of a search read from private rows although a schema says them: a cell can add one."""
    real = _scored_rows.read_scored

    def from_rows(owner, candidate, rows, *, private):
        raw = RawTable.roles(candidate.domain("schema"), rows.X, owner=owner)
        groups = rows.X[raw.schema.groups[0]].map(str) if raw.has_groups else None
        declared, rows = candidate.domain, replace(rows, y=np.array([*map(str, rows.y)]), sensitive_features=groups)
        patch.setattr(candidate, "domain", lambda name: None if name == "schema" else declared(name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return real(owner, candidate, rows, private=private)

    patch.setattr(_search_data, "read_scored", from_rows)


@mutant
def report_that_counts_trials(patch):
    """The releases that trials made listed in the report: some for each, so the number of trials is shown."""
    after = _spending._after

    def weigh(self, mechanism, times):
        self._left_of_trial = self._left_of_trial and after(self._left_of_trial, mechanism, times)
        self._performed[mechanism] = self._performed.get(mechanism, 0) + times

    patch.setattr(_spending.Spending, "_weigh", weigh)


@mutant
def total_of_finished_fits(patch):
    """A total composed from what finished fits say of themselves: what failed was free."""

    def finished(self, kind, delta, events):
        said = [spent for spent, _ in self._fits if _totals._kind(spent) == kind]
        spent = _totals.PrivacySpent.of(_totals.privacy.compose(*(s.event for s in said)), delta, protects=kind[0],
                                        neighboring_relation=kind[1])  # fmt: skip
        return {"protects": kind[0], "neighboring_relation": kind[1], "delta": delta,
                "epsilon_total": spent.epsilon, "n_fits": len(said)}  # fmt: skip

    patch.setattr(_totals.Totals, "_guarantee", finished)


@mutant
def relations_not_told_apart(patch):
    """Rows compared by what they protect alone: an ε for replaced records beaten by one for guests."""
    honest = _frame.mark_non_dominated

    def by_protection(frame, references=()):
        return honest(frame.assign(neighboring_relation="any"), references)

    replace_everywhere(patch, honest, by_protection)


@mutant
def corner_of_the_source(patch):
    """The worst point of the source as the corner of both volumes: worse points of the target count nothing."""
    honest = _transfer._summary

    def of_the_source(part, key, reference):
        worst = float(part["accuracy_source"].min()), float(part["disparity_source"].max())
        return honest(part, key, worst if reference is None else reference)

    patch.setattr(_transfer, "_summary", of_the_source)


@mutant
def all_of_scikit_learn_is_row_wise(patch):
    """NMF factorises the rows of a call together: one row moves what is said of all others, without bound."""
    patch.setattr(_row_wise, "_TOGETHER", ())
