"""Mistakes in model selection: folds that look, costs left out, losers and numbers of trials that are not secret."""

import contextlib
import os

import numpy as np
from sklearn.model_selection import StratifiedKFold

from skfairdp.model_selection import _pareto_search, _private_search, _splits
from skfairdp.model_selection import _random_trials as _trials
from skfairdp.model_selection import _search_run as _run
from skfairdp.model_selection._score_table import ScoreTable
from skfairdp.privacy import GaussianMechanism, NoiseSource, PrivateSelection, Spending, compose, gdp_mu, repeat
from tests.model_selection.test_pareto_search import (
    test_a_ceiling_that_affords_nothing_refuses_before_the_first_fit as nothing_is_afforded,
)
from tests.model_selection.test_pareto_search import (
    test_one_changed_record_moves_a_table_by_no_more_than_its_sensitivity as tables_keep_their_sensitivity,
)
from tests.model_selection.test_pareto_search import (
    test_one_changed_record_moves_no_other_between_folds as folds_do_not_look,
)
from tests.model_selection.test_pareto_search import test_vector_of_plain_cross_validation as cross_validation_vector
from tests.model_selection.test_private_search import (
    test_private_scores_of_a_holdout_cost_no_more_than_the_fit as holdout_costs_the_larger,
)
from tests.model_selection.test_private_search import test_ten_candidates_cost_what_the_vectors_say as ten_candidates
from tests.model_selection.test_private_search import (
    test_the_ledger_has_one_entry_written_before_any_trial as charged_before_any_trial,
)
from tests.model_selection.test_private_search import (
    test_the_number_of_trials_varies_and_no_seed_repeats_it as trials_are_secret,
)
from tests.model_selection.test_private_search import test_warnings_of_trials_are_kept_back as trials_are_silent

from .harness import killed_by, mutant


@mutant(None, killed_by(folds_do_not_look))
def stratified_folds(patch):
    """An integer cv of a classifier is StratifiedKFold: one changed label moves other people's rows."""

    def stratified(cv, X, y, **_):
        return list(StratifiedKFold(int(cv), shuffle=True, random_state=0).split(np.zeros(len(y)), y))

    patch.setattr(_pareto_search, "make_splits", stratified)


@mutant(None, killed_by(cross_validation_vector))
def test_folds_for_free(patch):
    """Scores of private folds taken for post-processing of the models: they read rows no model has seen."""
    real = _splits.split_event

    def unscored(splits, fits, score, n_scores, *, n_rows):
        return real(splits, fits, score, 0, n_rows=n_rows)

    patch.setattr(_run, "split_event", unscored)


@mutant(None, killed_by(cross_validation_vector))
def one_fit_for_all_folds(patch):
    """Folds taken for a parallel composition: a record is in all train parts but one."""

    def parallel(splits, fits, score, n_scores, *, n_rows):
        return compose(fits[0], repeat(score, n_scores))

    patch.setattr(_run, "split_event", parallel)


@mutant(None, killed_by(holdout_costs_the_larger))
def holdout_scores_for_free(patch):
    """A holdout's score left out where it costs more than the fit: its rows pay for the score."""

    def unscored(splits, fits, score, n_scores, *, n_rows):
        return fits[0]

    patch.setattr(_trials, "split_event", unscored)


@mutant(None, killed_by(tables_keep_their_sensitivity))
def table_of_sensitivity_one(patch):
    """The sensitivity of a histogram under removal, 1, taken for replacement, where two cells change."""

    def narrow(self):
        return GaussianMechanism(1 / gdp_mu(self.epsilon, self.delta), sensitivity=1.0)

    patch.setattr(ScoreTable, "mechanism", property(narrow))


@mutant(5, killed_by(ten_candidates, law="logarithmic", epsilon=0.693839))
def winner_at_the_price_of_one_trial(patch):
    """The best of many trials reported with the ε of one, as every tuned model is that says what its fit cost."""
    patch.setattr(PrivateSelection, "event", property(lambda self: self.base))


@mutant(33, killed_by(trials_are_secret))
def number_of_trials_from_a_known_seed(patch):
    """K drawn from random_state: whoever knows it knows how many trials were lost, and the theorem is void."""
    real = PrivateSelection.draw
    patch.setattr(PrivateSelection, "draw", lambda self, source, size=1: real(self, NoiseSource(seed=0), size))


@mutant(18, killed_by(charged_before_any_trial))
def search_charged_when_it_is_over(patch):
    """The budget of a search checked after its trials."""
    leave = Spending.__exit__

    def at_the_end(self, *error):
        self._charged = False
        return leave(self, *error)

    def enter(self):
        self._open, self._charged, self._process = True, True, os.getpid()
        return NoiseSource().guarded_by(self._guard)

    patch.setattr(Spending, "__enter__", enter)
    patch.setattr(Spending, "__exit__", at_the_end)


@mutant(None, killed_by(trials_are_silent))
def trials_that_warn(patch):
    """Warnings of trials let through: their number is the number of trials, losers included."""
    patch.setattr(_private_search, "silence", contextlib.nullcontext)


@mutant(18, killed_by(nothing_is_afforded))
def ceiling_noticed_after_the_fit(patch):
    """A search that fits first and charges what it fitted: the ceiling is passed before it is seen."""
    real = _run.SearchRun._pay

    def fit_first(self, planned):
        self._fit([planned], {})
        real(self, planned)

    patch.setattr(_run.SearchRun, "_pay", fit_first)
