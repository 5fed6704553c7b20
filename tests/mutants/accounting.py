"""Mistakes in the accounting: what is charged, when, and what is printed in the end."""

import math

import numpy as np

from skfairdp.model_selection import _own_table
from skfairdp.pate import ConfidentVoting, SoftVoting, _votes, _votes as _confident_voting
from skfairdp.privacy import (
    ArgmaxBit,
    GaussianDpEvent,
    GDPFilter,
    GNMax,
    PrivacyLedger,
    Spending,
    ThresholdBit,
    _accountants,
    calibrate_noise,
    repeat,
)
from skfairdp.privacy._mechanisms import _Noise
from tests._tools.inside import data_dependent_rdp, log_q
from tests.mutants.harness import mutant, replace_everywhere


def repeat_as(patch, planted):
    """Composition in the plans of all votings."""
    patch.setattr(_votes.privacy, "repeat", planted)


@mutant
def composition_left_out(patch):
    """Found: the ε of one query is reported for all of them. Right: every query is counted."""
    repeat_as(patch, lambda event, times: event)


@mutant
def counts_of_classes_for_nothing(patch):
    """Planned votes that do not know of the counts beside them have the whole budget to themselves."""
    patch.setattr(SoftVoting, "plan", lambda self, beside=None, plan=SoftVoting.plan, **votes: plan(self, **votes))


@mutant
def failed_thresholds_are_free(patch):
    """Found: a query whose outcome is "no answer" returns early and is not charged. Right: it is charged."""
    spend_argmax = _confident_voting.Budget.spend_argmax

    def spend_threshold(self):
        self._thresholds -= 1

    def spend_both(self):
        if self._filter is not None:
            self._filter.spend(self._plan.bit.mu_squared)
        spend_argmax(self)

    patch.setattr(_confident_voting.Budget, "spend_threshold", spend_threshold)
    patch.setattr(_confident_voting.Budget, "spend_argmax", spend_both)


@mutant
def only_answered_queries_are_declared(patch):
    """The same with declared counts: the event has as many thresholds as answers are planned."""

    def fewer(event, times):
        return repeat(event, math.ceil(0.6 * times) if isinstance(event, ThresholdBit) else times)

    repeat_as(patch, fewer)


@mutant
def delta_is_ignored(patch):
    """Found: the user's δ is accepted and 1e-5 is used. Right: what was asked for is what is reported."""
    bounds = _accountants._bounds
    patch.setattr(_accountants, "_bounds", lambda event, delta, *args, **kwargs: bounds(event, 1e-5, *args, **kwargs))


def theorem_6(logs, sigma, orders, *, checked=True, first_exponent=None, logarithm=np.log):
    """The data-dependent bound as printed, one query a row, without care for rounding."""
    independent = np.asarray(orders) / sigma**2
    with np.errstate(all="ignore"):
        q = np.exp(logs)[:, None]
        mu2 = (sigma * np.sqrt(-logs))[:, None]
        first = (mu2 + 1) / sigma**2 if first_exponent is None else first_exponent(mu2, sigma)
        a = (1 - q) / (1 - (q * np.exp(mu2 / sigma**2)) ** ((mu2 - 1) / mu2))
        b = np.exp(first) / q ** (1 / mu2)
        bound = logarithm((1 - q) * a ** (orders - 1) + q * b ** (orders - 1)) / (orders - 1)
        if not checked:
            return bound
        largest_q = np.exp((mu2 - 1) * mu2 / sigma**2) / ((mu2 + 1) / mu2 * mu2 / (mu2 - 1)) ** mu2
        holds = (mu2 > 1) & (orders <= mu2 + 1) & (q <= largest_q)
        return np.where(holds, np.fmin(bound, independent), independent)


def plant_theorem_6(patch, **slip):
    def planted(log_q, sigma, orders):
        logs, orders = np.atleast_1d(np.asarray(log_q, dtype=float)), np.atleast_1d(np.asarray(orders, dtype=float))
        return theorem_6(logs, float(sigma), orders, **slip)

    replace_everywhere(patch, data_dependent_rdp, planted)


@mutant
def bracket_slip_in_the_data_dependent_bound(patch):
    """Found: ``2 λ l + 1`` where ``2 λ (l + 1)`` belongs. Here ``mu2/σ² + 1`` for ``(mu2 + 1)/σ²``.

    Right: reference vectors at all orders, and the smaller of this and the data-independent bound.
    """
    plant_theorem_6(patch, first_exponent=lambda mu2, sigma: mu2 / sigma**2 + 1)


@mutant
def missing_logarithm_in_the_data_dependent_bound(patch):
    """Found: the moment itself where its logarithm belongs. Right: as for the bracket."""
    plant_theorem_6(patch, logarithm=lambda moment: moment)


@mutant
def preconditions_of_the_data_dependent_bound(patch):
    """Found: the data-dependent moment bound applied without its conditions, giving negative or undefined costs.

    Right: where a condition fails, the data-independent bound.
    """
    plant_theorem_6(patch, checked=False)


@mutant
def budget_checked_after_spending(patch):
    """Found: ``while spent < budget: release; spent += cost``. Right: checked before, and never over by any amount."""

    def spend(self, mu_squared):
        self._spent += type(self._cap)(mu_squared)

    patch.setattr(GDPFilter, "fits", lambda self, mu_squared: self._spent < self._cap)
    patch.setattr(GDPFilter, "spend", spend)


@mutant
def a_schema_of_another_account_is_free(patch):
    """Found: a frontier with a schema that was paid for elsewhere charges models and figures alone. Right: both."""
    charge = _own_table._Budget.charge_schema

    def only_looked_at(self, ledger, *, dry_run, besides=None):
        if dry_run:
            charge(self, ledger, dry_run=True, besides=besides)

    patch.setattr(_own_table._Budget, "charge_schema", only_looked_at)


@mutant
def models_of_a_frontier_are_charged_after_their_noise(patch):
    """Found: the account hears of models when the first figure is drawn. Right: before the first of them is fitted."""
    spending = _own_table._Budget.spending

    def late(self, ledger, n_units):
        late = spending(self, ledger, n_units)
        late.settle = lambda: None if late.ledger is None or not late._performed else type(late).settle(late)
        return late

    patch.setattr(_own_table._Budget, "spending", late)


@mutant
def data_dependent_stopping(patch):
    """Found: the data-dependent cost of the votes at hand drives the stopping rule, and the stop is an unpaid release.

    Right: stopping is a function of public values and earlier outputs.
    """
    running = []
    release = GNMax.release

    class Budget(_confident_voting.Budget):
        def spend_argmax(self):
            running[:] = [self]

    def release_and_charge(self, counts, source, admissible=None):
        cost = float(data_dependent_rdp(log_q(counts, self.sigma), self.sigma, [2.0])[0, 0])
        for budget in running:
            budget._filter.spend(cost)  # at order 2 the data-independent cost is the squared Gaussian one
        return release(self, counts, source, admissible)

    patch.setattr(_confident_voting, "Budget", Budget)
    patch.setattr(GNMax, "release", release_and_charge)


@mutant
def a_worst_case_without_what_every_record_pays(patch):
    """Branch by branch, a worst case has in each of its branches whatever was released beside it."""

    def branches(leaves):
        worst = [leaf for leaf, _ in leaves if isinstance(leaf, _accountants.WorstOf)]
        return list(worst[0].events) if len(worst) == 1 else []

    patch.setattr(_accountants, "_branches", branches)


@mutant
def expected_cost_instead_of_worst_case(patch):
    """Found: cost of the threshold plus *probability of answering* times the cost of the argmax.

    An expected Rényi divergence is none. Right: the argmax is paid in full whenever it is drawn.
    """

    def admits(self, *, may_need_argmax):
        return self._filter.fits(self._plan.bit.mu_squared + 0.5 * self._plan.maximum.mu_squared)

    patch.setattr(_confident_voting.Budget, "admits", admits)
    patch.setattr(
        _confident_voting.Budget, "spend_argmax", lambda self: self._filter.spend(0.5 * self._plan.maximum.mu_squared)
    )


@mutant
def expected_number_of_maxima_declared(patch):
    """The same with declared counts: half of the permitted maxima are in the event, because half are expected."""

    def expected(event, times):
        return repeat(event, times // 2 if isinstance(event, ArgmaxBit) else times)

    repeat_as(patch, expected)


@mutant
def calibration_rounds_the_wrong_way(patch):
    """Found: a search for the noise multiplier returns the end of its bracket whose ε is above the target.

    Right: the point returned has been evaluated and costs at most the target.
    """
    replace_everywhere(patch, calibrate_noise, lambda *args, **kwargs: 0.995 * calibrate_noise(*args, **kwargs))


@mutant
def realised_spend_is_certified(patch):
    """Found: an adaptive filter stops early, and the ε of what was really spent is printed.

    Stopping when it pays makes that figure false. Right: the cap is certified, the same for every transcript.
    """
    budgets = []
    report = Spending.report.fget

    class Budget(_confident_voting.Budget):
        def __init__(self, plan):
            super().__init__(plan)
            budgets[:] = [self]

    def realised(self):
        self.event = GaussianDpEvent(float(budgets[0]._filter._spent) ** -0.5)
        return report(self)

    patch.setattr(_confident_voting, "Budget", Budget)
    patch.setattr(Spending, "report", property(realised))


@mutant
def gate_peeks_at_the_true_plurality(patch):
    """Found: the fairness check is made on the noiseless plurality; a query it rejects is neither asked nor charged.

    Right: the gate decides on public counters; what the plurality is must be bought first.
    """
    release = ConfidentVoting.release

    class Peeking:
        def __init__(self, gate, votes):
            self.gate, self.plurality = gate, iter(votes.argmax(axis=1))

        def admissible(self, z):
            mask = self.gate.admissible(z)
            return mask if mask[next(self.plurality)] else np.zeros_like(mask)

        def record(self, z, k):
            self.gate.record(z, k)

    def peeking(self, votes, plan, noise, *, gate=None, **kwargs):
        return release(self, votes, plan, noise, gate=None if gate is None else Peeking(gate, votes), **kwargs)

    patch.setattr(ConfidentVoting, "release", peeking)


@mutant
def discrete_noise_in_the_gaussian_filter(patch):
    """Found in an earlier state of this package: discrete Gaussian noise certified as exactly Gaussian-DP."""
    patch.setattr(_Noise, "mu_squared", property(lambda self: (self.sensitivity / self.sigma) ** 2))


@mutant
def ledger_lost_on_clone(patch):
    """Found: ``clone`` deep-copies the accountant, so that a search over seven fits reads zero spent.

    Right: the ledger is shared by identity.
    """
    patch.setattr(PrivacyLedger, "__sklearn_clone__", lambda self: PrivacyLedger(self.epsilon, self.delta))


@mutant
def ledger_written_after_the_release(patch):
    """Found: the budget is debited when the results are in; a killed process has then released for nothing.

    Right: the entry is on record before noise is drawn.
    """
    guard, leave = Spending._guard, Spending.__exit__

    def postponed(self, mechanism, times):
        self._charged = True
        guard(self, mechanism, times)

    def charged_at_the_end(self, *error):
        self._charged = False
        return leave(self, *error)

    patch.setattr(Spending, "_guard", postponed)
    patch.setattr(Spending, "__exit__", charged_at_the_end)


@mutant
def group_delta_to_the_nearest_float(patch):
    """Found in this package: δ of a group by logarithms of floats, short by up to 5e-14 of it. Right: rounded up."""
    from skfairdp.privacy import _attribute_cost as _group_privacy

    patch.setattr(_group_privacy, "_rounded_up", float)
