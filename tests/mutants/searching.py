"""Mistakes in model selection: folds that look, costs left out, losers and numbers of trials that are not secret."""

import contextlib
import os

import numpy as np
from sklearn.model_selection import StratifiedKFold

from skfairdp import _utils
from skfairdp.model_selection import _candidate, _pareto_search, _private_search, _search_data
from skfairdp.privacy import GaussianMechanism, NoiseSource, PrivateSelection, Spending, compose, gdp_mu, repeat
from tests._tools.inside import AmountTable, ScoreTable, SearchRun, allowance, split_event
from tests.mutants.harness import mutant


@mutant
def stratified_folds(patch):
    """An integer cv of a classifier is StratifiedKFold: one changed label moves other people's rows."""

    def stratified(cv, y, **_):
        return list(StratifiedKFold(int(cv), shuffle=True, random_state=0).split(np.zeros(len(y)), y))

    patch.setattr(_search_data, "make_splits", stratified)


@mutant
def test_folds_for_free(patch):
    """Scores of private folds taken for post-processing of the models: they read rows no model has seen."""

    def unscored(splits, fits, score, n_scores, n_rows):
        return split_event(splits, fits, score, 0, n_rows=n_rows)

    patch.setattr(_search_data, "split_event", unscored)


@mutant
def one_fit_for_all_folds(patch):
    """Folds taken for a parallel composition: a record is in all train parts but one."""

    def parallel(splits, fits, score, n_scores, n_rows):
        return compose(fits[0], repeat(score, n_scores))

    patch.setattr(_search_data, "split_event", parallel)


@mutant
def holdout_scores_for_free(patch):
    """A holdout's score left out where it costs more than the fit: its rows pay for the score."""

    def unscored(splits, fits, score, n_scores, n_rows):
        return fits[0]

    patch.setattr(_search_data, "split_event", unscored)


@mutant
def table_of_sensitivity_one(patch):
    """The sensitivity of a histogram under removal, 1, taken for replacement, where two cells change."""

    def narrow(self):
        return GaussianMechanism(1 / gdp_mu(self.epsilon, self.delta), sensitivity=1.0)

    patch.setattr(ScoreTable, "mechanism", property(narrow))


@mutant
def sums_of_amounts_of_sensitivity_one(patch):
    """An error, a square and two cells change where a record is replaced: together more than 1."""

    def narrow(self):
        return GaussianMechanism(1 / gdp_mu(self.epsilon, self.delta), sensitivity=1.0)

    patch.setattr(AmountTable, "mechanism", property(narrow))


@mutant
def errors_of_any_size_in_a_score(patch):
    """A mean squared error as everybody computes it: one row far away moves it by as much as it likes."""
    honest = AmountTable.sums

    def unclipped(self, amounts, predicted, codes, spread, *exposure):
        sums = honest(self, amounts, predicted, codes, spread, *exposure)
        sums[0] = np.nansum((amounts - predicted) ** 2) / spread[1] ** 2
        return sums

    patch.setattr(AmountTable, "sums", unclipped)


@mutant
def winner_at_the_price_of_one_trial(patch):
    """The best of many trials reported with the ε of one, as every tuned model is that says what its fit cost."""
    patch.setattr(PrivateSelection, "event", property(lambda self: self.base))


@mutant
def number_of_trials_from_a_known_seed(patch):
    """K drawn from random_state: whoever knows it knows how many trials were lost, and the theorem is void."""
    real = PrivateSelection.draw
    patch.setattr(PrivateSelection, "draw", lambda self, source, size=1: real(self, NoiseSource(seed=0), size))


@mutant
def search_charged_when_it_is_over(patch):
    """The budget of a search checked after its trials."""
    leave = Spending.__exit__

    def at_the_end(self, *error):
        self._charged = False
        return leave(self, *error)

    def enter(self):
        self._open, self._charged, self._process, self._left = True, True, os.getpid(), allowance(self.event)
        self._without_words.__enter__()
        return NoiseSource().guarded_by(self._guard, self._selecting)

    patch.setattr(Spending, "__enter__", enter)
    patch.setattr(Spending, "__exit__", at_the_end)


@mutant
def trials_that_warn(patch):
    """Warnings of trials let through: their number is the number of trials, losers included."""
    patch.setattr(_private_search, "silence", contextlib.nullcontext)
    patch.setattr(_utils, "recorded", lambda fit: (fit(), {}))


@mutant
def ceiling_noticed_after_the_fit(patch):
    """A search that fits first and charges what it fitted: the ceiling is passed before it is seen."""
    real = SearchRun._pay

    def fit_first(self, group):
        self._fit([group])
        real(self, group)

    patch.setattr(SearchRun, "_pay", fit_first)


@mutant
def fits_of_a_search_count_on_the_block_as_well(patch):
    """No ledger taken for one that has paid: each fit of a search inside a block would be counted twice."""
    patch.setattr(_candidate, "UNCHARGED", None)


@mutant
def a_total_that_is_added_up_without_the_refit(patch):
    """The winner is fitted once more, on all rows. Right: its cost is part of the total, whoever wins."""
    honest = _pareto_search.plan_groups

    def without_refit(data, error_score, *, refits):
        return honest(data, error_score, refits=False)

    patch.setattr(_pareto_search, "plan_groups", without_refit)
