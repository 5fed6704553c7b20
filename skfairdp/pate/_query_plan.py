"""What votes are asked about, noisy sums of the features of each class beside them, and one plan for both releases."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

from skfairdp import _teachers, privacy
from skfairdp._class_sums import ClassSums, PublicScale, Terms
from skfairdp._inputs import PublicRows, TrainingData
from skfairdp._judge import Judge, tightened
from skfairdp._rows import check_free_disk
from skfairdp._tables import SyntheticRows, SyntheticRowsPlan, schema_columns
from skfairdp._teachers import fit_teachers, position_partition, vote_histogram
from skfairdp._typing import Bools, Floats as Array, Ints as Codes
from skfairdp._usefulness import CLEAR, VoteForecast, default_n_teachers, variance_of_shares
from skfairdp._utils import child_seeds, progress_bar, warn_caller
from skfairdp.exceptions import UtilityWarning
from skfairdp.pate._constrained_student import ConstrainedStudent, NoisyParityEstimate, share_of_look, with_groups
from skfairdp.pate._fair_votes import dry_run_teacher
from skfairdp.pate._parity_penalty_student import ParityPenaltyStudent
from skfairdp.pate._soft_label_student import HingeFeatures, SoftLabelStudent
from skfairdp.pate._votes import ConfidentVoting, GNMaxVoting, ReleasedVotes, SoftVoting, VotePlan
from skfairdp.privacy import NoiseSource

#: Of the squared cost of the fit, as tables get where there are no public rows.
SHARE = 0.5
#: Where votes are not clear sums get this much; what is left is enough for a look.
ALONE = 0.9
#: And the tables of rows to sample this: for 700 and 1,000 rows .15 to .35 are level, and half is worse by .01.
FOR_ROWS = 0.25
FOR_RANGES = 0.3  # of that the first counts, by which numbers are known to be there at all: flags, above all


@dataclass(frozen=True)
class SumsForecast(VoteForecast):
    """What sums over all rows are going to tell, as if each of those voted: a row moves sums by 2."""

    @property
    def n_parts(self) -> int:
        return int(self.n_rows * self.moved / 2)

    @property
    def snr_too_low(self) -> bool:
        return False


TEACHERS = 60
MOST_ROWS = 2000  # of a teacher; one of more rows learns what its rows say, and is as sure as they are
STEEPEST = 8.0
#: Below it votes on rows of the tables hardly follow the tables: then nothing can be told by them.
FLATTEST = 0.05
LEAST = 0.1
#: Variances of the power by which it is drawn to 1, as James and Stein do: tables that are right stay as they are.
CAUTION = 1.0
SMALLEST_SHARE = 1e-5


def temperature_scaled(told: Array, queries: Codes, shares: Array, rehearsed: Array) -> Array:
    """Labels that tables tell of rows, as sure as the votes on those rows confirm; post-processing. Tables of single
    columns sum up what each says: two that say the same make a row look twice as certain. How steeply released shares
    follow them, beside teachers that learn from rows of the tables themselves, is how much of it is right."""
    logs = np.log(np.maximum(told, SMALLEST_SHARE))
    if_right, its_error = _steepness(logs[queries], rehearsed)
    if if_right < FLATTEST:
        return told
    found, error = _steepness(logs[queries], shares)
    excess = 1 - max(found / if_right, LEAST)
    variance = (error**2 + (1 - excess) ** 2 * its_error**2) / if_right**2
    if excess <= 0 or excess**2 <= CAUTION * variance:
        return told
    return _with_rates((1 - excess * (1 - CAUTION * variance / excess**2)) * logs, told.mean(axis=0))


def rehearsed_votes(
    teacher: Any, X: Array, told: Array, queries: Codes, *, n_rows: int, n_teachers: int, rng: Any
) -> Array:
    """Shares of the votes of teachers on rows that the tables have made, labels included."""
    n_classes, n_here = told.shape[1], min(n_teachers, TEACHERS)
    rows = rng.integers(len(X), size=n_here * min(max(n_rows // n_teachers, 1), MOST_ROWS))
    labels = (rng.random(len(rows))[:, None] > told[rows].cumsum(axis=1)[:, :-1]).sum(axis=1)
    parts = position_partition(len(rows), n_here, random_state=rng)
    teachers = fit_teachers(teacher, X[rows], labels, parts, n_teachers=n_here, n_classes=n_classes, random_state=rng)
    return vote_histogram(teachers.predict(X[queries]), n_classes) / n_here


def _steepness(logs: Array, shares: Array) -> tuple[float, float]:
    """The power to which the tables' shares, at the rates of these, expect the scores that these have; its error."""
    rates = np.maximum(shares.mean(axis=0), 1e-3)
    rates /= rates.sum()
    low, high = 0.0, STEEPEST
    for _ in range(20):
        power = (low + high) / 2
        expected = _with_rates(power * logs, rates)
        apart = (logs * (shares - expected)).sum(axis=1)
        low, high = (power, high) if float(apart.sum()) > 0 else (low, power)
    spread = (expected * np.square(logs - (expected * logs).sum(axis=1, keepdims=True))).sum(axis=1)
    return power, float(apart.std() / max(float(spread.mean()), 1e-12)) / np.sqrt(len(logs))


def _with_rates(scores: Array, rates: Array) -> Array:
    """Shares that follow from scores, each column moved so that it has that mean."""
    # A class is a contiguous row here: sums over the few classes of each of many rows take longer.
    shares = np.ascontiguousarray(np.exp(scores - scores.max(axis=1, keepdims=True)).T)
    for _ in range(60):
        before = shares.copy()
        shares /= shares.sum(axis=0)
        means = shares.cumsum(axis=1)[:, -1] / shares.shape[1]  # added in the order of the rows, as a table's columns
        shares *= (rates / np.maximum(means, 1e-300))[:, None]
        if np.array_equal(shares, before):  # and so it would stay
            break
    return np.ascontiguousarray((shares / shares.sum(axis=0)).T)


#: Parts that vote, by their shorthands.
VOTINGS: dict[str, Any] = {part.name: part for part in (SoftVoting, GNMaxVoting, ConfidentVoting)}

#: The share of a class among the rows is released with noise of this size, for no more than nearly all of the squared
#: cost.
COUNT_NOISE, ALL_BUT = 0.03, 0.95
#: Those that learn from released shares; None is the first of them.
OWN_STUDENTS = (type(None), SoftLabelStudent, ConstrainedStudent, ParityPenaltyStudent)
TEACHER_C = 3.0  # few rows, many votes: averaging does the regularising that a lone model would need


@dataclass(frozen=True)
class PATEPlan:
    """Everything that a fit releases: votes, and before them the tables that rows are sampled from, if any."""

    votes: VotePlan
    rows: SyntheticRowsPlan | None
    counts: privacy.NoisyVotes | privacy.LaplaceCounts | None
    look: NoisyParityEstimate | Judge | None
    sums: ClassSums | None
    forecast: VoteForecast
    rows_of: str = ""

    @property
    def event(self) -> privacy.DpEvent:
        """Tables, counts, look, sums and votes."""
        parts = (self.rows, self.counts, self.look, self.sums, self.votes)
        return privacy.compose(*(part.event for part in parts if part is not None))

    @property
    def relation(self) -> privacy.NeighboringRelation:
        """One replaced record, or all rows of a subject."""
        return self.votes.relation

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""
        tables, sums, look = (() if part is None else part.releases for part in (self.rows, self.sums, self.look))
        counts = () if self.counts is None else ("noisy counts of the classes",)
        return (*tables, *counts, *sums, *self.votes.releases, *look)

    @property
    def trust(self) -> float:
        """Weight of what the tables say of a row's label beside the released share of the votes, in [0, 1], by public
        numbers. Both look at the same share, and each counts by the inverse of its variance: noise in the cells; noise
        in the votes, and what teachers of few rows do not learn."""
        if self.rows is None:
            return 0.0
        return self.trust_in(self.rows.variance, self.rows.layout.n_columns, self.rows.layout.n_rows)

    def trust_in(self, variance: float, n_columns: int, n_rows: int) -> float:
        """Weight of shares of so much variance, that so many columns tell, beside those of the votes."""
        votes, k = self.votes, self.votes.n_teachers
        noise = votes.sigma / k
        of_votes = variance_of_shares(n_columns, votes.n_queries, n_rows=n_rows, n_teachers=k, noise_std=noise)
        return of_votes / (of_votes + variance)


@dataclass(frozen=True)
class QuerySet:
    """Rows that anyone may see, and which of them are asked about."""

    public: PublicRows
    queries: Codes
    _: KW_ONLY
    limits: Array | None = None
    n_small_groups: int = 0
    is_within_noise: Bools | None = None
    told: Any = None
    trust: float = 0.0
    by_group: bool = False
    class_counts: Array | None = None

    def limited(self, X: Array) -> Array:
        """Private rows within the limits of the sampled ones. Where the noise hides the ends of a column, private rows
        lie outside of all that is asked about. What a student says there follows from nothing that teachers said."""
        return X if self.limits is None else np.clip(X, *self.limits)

    @property
    def rows(self) -> Array:
        """All public rows as teachers see them: with their groups, where votes are on both."""
        public = self.public
        return with_groups(public.X, public.groups, public.n_groups) if self.by_group else public.X

    @property
    def groups(self) -> Codes | Any:
        """Of the rows asked about, where there are any."""
        return None if self.public.groups is None else self.public.groups[self.queries]


# ---------------------------------------------------------------------- the plan: public numbers only


def plan_votes(owner: Any, data: TrainingData) -> PATEPlan:
    """Decide from public numbers what is released beside the votes, and the votes: together at most ``epsilon``."""
    voting, n_classes, counts = owner._parts()["voting"], len(data.classes), None
    sums, share, own = plan_sums(owner, data, voting)
    alone = sums is not None and sums.alone
    n_teachers = count_teachers(owner, data.n_units, n_classes, data.share_for_votes if alone else share, data.units)
    known = data.n_units, n_classes, owner.epsilon, owner.delta
    forecast: VoteForecast = VoteForecast(*known, n_teachers, share, data.relation)
    if alone:
        forecast = SumsForecast(*known, None, share * ALONE / (1 - ALONE), data.relation)
    elif owner.n_teachers == "auto":
        usual = replace(forecast, n_teachers=None)
        counts, forecast, own = plan_counts(usual, voting, own, unasked=owner.public_data is None)
    budget, rows = {"epsilon": owner.epsilon, "delta": owner.delta}, None
    if own is not None:  # tables of the private rows, from which rows to ask about are sampled
        schema = getattr(owner, "schema", None)
        columns, n_groups = schema and schema_columns(schema), 1 if data.domain is None else len(data.domain)
        width = {"n_features": data.X.shape[1], "n_groups": n_groups, "n_classes": n_classes}
        rows = own.plan(n_rows=data.n_units, **width, **budget, columns=columns, relation=data.relation)
        if alone and owner.public_data is None:  # what the tables say of labels sums say as well
            rows = replace(rows, bins_share=FOR_RANGES)
        data.reads.note("rows asked about", "computed", rows.n_sampled, "sampled from released tables")
    look = None if data.groups is None or counts is not None else _look_of(owner, data, voting, forecast)
    n_public = len(data.public.X) if data.public is not None else 0 if rows is None else rows.n_sampled
    most = voting.max_queries or voting.usual_queries
    sizes = {"n_queries": min(n_public, most or n_public), "n_teachers": n_teachers, "n_classes": n_classes}
    beside = privacy.compose(*(part.event for part in (rows, counts, look, sums) if part is not None))
    votes: VotePlan = voting.plan(**budget, **sizes, relation=data.relation, beside=beside)
    return PATEPlan(votes, rows, counts, look, sums, forecast, data.rows_of)


def _look_of(owner: Any, data: TrainingData, voting: Any, forecast: VoteForecast) -> NoisyParityEstimate | Judge | None:
    """A look at how fair the built-in student is on private rows: at all levels of parity, or twice at constraints."""
    n_classes, student = len(data.classes), owner._given_student
    if data.domain is None or n_classes < 2:
        return None
    look: NoisyParityEstimate | Judge
    if isinstance(student, ConstrainedStudent):
        looks, held = 1 if tightened(student, 0.5) is None else 2, student.rates_of(data.domain, data.classes)
        cost = owner.epsilon, owner.delta, data.relation
        look = Judge(held, data.n_units, *cost, looks=looks, n_features=data.X.shape[1])
    elif not isinstance(voting, SoftVoting) or isinstance(forecast, SumsForecast):
        return None
    else:
        mu = math.sqrt(forecast.share * share_of_look(forecast)) * privacy.gdp_mu(owner.epsilon, owner.delta)
        look = NoisyParityEstimate(mu, len(data.domain), n_classes, data.relation)
    if data.public is None or owner._votes_by_group:
        return look
    # Its public rows say of the smallest group's rate as much as a count of its private rows with this error would.
    smallest = np.bincount(data.public.groups, minlength=len(data.domain)).min()
    by_public = math.sqrt(smallest) / 2 * data.n_units / len(data.public.X)
    return look if getattr(voting, "sigma", None) is None and look.left_in_counts < by_public else None


# ---------------------------------------------------------------------- inside the budget: questions, votes, release


def ask_teachers(
    owner: Any, data: TrainingData, plan: PATEPlan, noise: NoiseSource, rng: Generator, gate: Any = None
) -> tuple[QuerySet, ReleasedVotes]:
    """Choose rows to ask about, let teachers vote on them, release the votes: all that touches the private rows."""
    asked = _release_questions(owner, data, plan, noise, rng)
    votes = _count_votes(owner, data, asked, plan.votes.n_teachers, rng)
    of_classes, counts = [], asked.class_counts
    if plan.counts is not None and data.source is not None:
        n_subjects = None if data.subjects is None else data.subjects.n
        of_classes = [_teachers.streamed_class_counts(data.source, owner.schema, type(owner).__name__, n_subjects)]
    elif plan.counts is not None:
        of_classes = [np.bincount(data.one_row_each.y, minlength=len(data.classes))]
    voting, n_teachers = owner._parts()["voting"], plan.votes.n_teachers
    released = voting.release(votes, plan.votes, noise, gate=gate, groups=asked.groups, verbose=owner.verbose)
    if plan.counts is not None:
        counts = plan.counts.release(of_classes, noise)[0]
    if plan.rows is not None and plan.sums is None and released.shares is not None and plan.forecast.noise <= CLEAR:
        # What the tables say of the rows, as sure as the votes confirm: post-processing.
        rows, told = asked.rows, asked.told
        teacher = default_teacher(owner.teacher, asked.public.X, rows.shape[1] - asked.public.X.shape[1])
        how: dict[str, Any] = {"n_rows": data.n_units, "n_teachers": n_teachers, "rng": rng}
        rehearsed = rehearsed_votes(teacher, rows, told, asked.queries, **how)
        asked = replace(asked, told=temperature_scaled(told, asked.queries, released.shares, rehearsed))
    return asked, replace(released, class_counts=counts, forecast=plan.forecast)


def _release_questions(owner: Any, data: TrainingData, plan: PATEPlan, noise: NoiseSource, rng: Generator) -> QuerySet:
    """Public rows, or sampled ones, and which are asked about; what released tables or sums say of their labels."""
    how: dict[str, Any] = {"by_group": owner._votes_by_group}
    public, told, trust = data.public, None, plan.trust
    limited: Callable[[Array], Array] = np.asarray
    if plan.rows is not None:
        counted = data.one_row_each
        sampled = plan.rows.release(counted.X, counted.y, counted.groups, noise, rng)
        public = PublicRows(sampled.X, None if data.groups is None else sampled.groups, data.domain)
        told = sampled.shares_of_group if owner._votes_by_group else sampled.shares
        how |= {"limits": sampled.limits, "is_within_noise": sampled.is_within_noise}
        how["n_small_groups"] = np.count_nonzero(sampled.is_within_noise)
        limited = partial(np.clip, a_min=sampled.limits[0], a_max=sampled.limits[1])
    if plan.sums is not None:
        terms: Terms = np.asarray if plan.sums.alone else HingeFeatures.of(public.X)
        rule, variance, counts = plan.sums.release(
            limited(data.X), data.y, public.X, noise, terms=terms,
            of=None if data.subjects is None else data.subjects.of,
            once=limited(data.one_row_each.X) if plan.sums.of_squares else None,
        )  # fmt: skip
        told = rule(terms(public.X))
        trust = plan.trust_in(variance, data.X.shape[1], data.n_units)
        how |= {"class_counts": counts} if plan.sums.alone else {}
    return QuerySet(public, rng.permutation(len(public.X))[: plan.votes.n_queries], told=told, trust=trust, **how)


def _count_votes(owner: Any, data: TrainingData, asked: QuerySet, n_teachers: int, rng: Generator) -> Codes:
    """The votes of teachers on disjoint parts of the private rows. **Private**: nothing is released here."""
    n_classes, rows, verbose = len(data.classes), asked.rows[asked.queries], owner.verbose
    teacher = default_teacher(owner.teacher, asked.public.X, rows.shape[1] - asked.public.X.shape[1])
    if data.source is not None:
        return _teachers.streamed_votes(
            teacher, data.source, rows, schema=owner.schema, owner=type(owner).__name__,
            n_teachers=n_teachers, n_classes=n_classes, rng=rng, n_jobs=owner.n_jobs, verbose=verbose,
            n_units=data.n_units,
        )  # fmt: skip
    if data.subjects is None:
        parts = _teachers.position_partition(len(data.X), n_teachers, random_state=rng)
    else:  # by hashes: parts are uneven, and no subject moves another
        parts = data.subjects.parts(n_teachers, rng)
    how: dict[str, Any] = {"n_classes": n_classes, "n_jobs": owner.n_jobs, "memory": owner.memory}
    if asked.limits is None and not asked.by_group:  # nothing is made of the table: it can be read as it is
        how |= {"random_state": rng, "verbose": verbose}
        teachers = _teachers.fit_teachers(teacher, data.X, data.y, parts, n_teachers=n_teachers, **how)
        return _teachers.vote_histogram(teachers.predict(rows), n_classes)
    seeds, votes = child_seeds(rng, n_teachers), np.zeros((len(rows), n_classes), dtype=np.int64)
    with progress_bar(desc="teachers", total=n_teachers, verbose=verbose) as bar:
        for mine, turn in _teachers.in_turns(parts, n_teachers, data.n_units):
            taught = turn.stop - turn.start
            X = data.X[mine]  # a copy, by the mask
            if asked.limits is not None:
                np.clip(X, *asked.limits, out=X)
            if asked.by_group:
                X = with_groups(X, data.groups[mine], asked.public.n_groups)
            own = data.y[mine], parts[mine] - turn.start
            teachers = _teachers.fit_teachers(teacher, X, *own, n_teachers=taught, seeds=seeds[turn], **how)
            del X  # with those of the next turn it would be a copy of the table
            votes += _teachers.vote_histogram(teachers.predict(rows), n_classes)
            bar.update(taught)
    return votes


# ---------------------------------------------------------------------- public numbers, and who teaches


def plan_sums(owner: Any, data: TrainingData, voting: Any) -> tuple[ClassSums | None, float, SyntheticRows | None]:
    """Sums of the features of each class, where all else is as usual; what votes get, and what samples rows. What a
    logistic teacher of few rows can learn is in the sums, with far less noise. Where votes are not clear, sums get
    nearly all while their counts name the most frequent class; where they are, tables say as much as sums."""
    n_classes, n_rows, own, rest = len(data.classes), data.n_units, data.own_rows, data.share_for_votes
    as_usual = owner.teacher is None and owner.n_teachers == "auto" and voting.noise == "gaussian" and n_classes > 1
    soft = isinstance(voting, SoftVoting) and voting.sigma is None and not owner._votes_by_group
    has_rows = own is not None or (data.public is not None and len(data.public.X))
    of_votes = rest if own is not None else 1 - SHARE
    alone = VoteForecast(n_rows, n_classes, owner.epsilon, owner.delta, share=of_votes).noise > CLEAR
    if not has_rows or data.source is not None or not (as_usual and soft) or (own is not None and not alone):
        return None, rest, own
    sampled = own
    if own is not None and owner.public_data is None:
        sampled, rest = SyntheticRows(budget_share=FOR_ROWS), 1 - FOR_ROWS
    share = rest * (ALONE if alone else SHARE)
    mu = math.sqrt(share) * privacy.gdp_mu(owner.epsilon, owner.delta)
    sums = ClassSums(mu, n_rows, n_classes, data.relation, alone, own is not None)
    if alone and sums.mechanism.sigma > COUNT_NOISE * n_rows:
        return None, data.share_for_votes, own
    return sums, rest - share, sampled


def plan_counts(
    forecast: VoteForecast, voting: Any, own: SyntheticRows | None = None, *, unasked: bool = False
) -> tuple[privacy.NoisyVotes | privacy.LaplaceCounts | None, VoteForecast, SyntheticRows | None]:
    """Counts of the classes, where a student may have to give way to the most frequent, which votes on public or
    sampled rows cannot name; and what that leaves the votes. A wrong answer costs at most about a third of the noise in
    accuracy, and counts of rows need far less of the budget than votes. Where no vote is going to be heard they get
    nearly everything, mostly as a pure ε, by which a single release says most."""
    given = any(getattr(voting, name, None) is not None for name in ("sigma", "sigma_threshold"))
    # Discrete noise is no Gaussian to the last digit: counts beside votes would cost more than the two are worth.
    if forecast.n_values < 2 or given or voting.noise != "gaussian" or forecast.noise <= CLEAR:
        return None, forecast, own
    wanted = (forecast.moved / (forecast.n_rows * COUNT_NOISE * forecast.mu)) ** 2
    counted = replace(forecast, share=forecast.share * (1 - min(wanted, ALL_BUT)))
    if not counted.snr_too_low:
        return _gaussian_counts(forecast, wanted * forecast.share), counted, own
    if own is not None and unasked:  # votes decide nothing, and neither do these rows
        left = (1 - ALL_BUT) / 2
        own, forecast = SyntheticRows(budget_share=left), replace(forecast, share=1 - left)
    left = (1 - ALL_BUT) * forecast.share
    share = forecast.share - left
    # Of ε what the rest leaves: a pure ε is added to theirs.
    mu = math.sqrt(1 - share) * privacy.gdp_mu(forecast.epsilon, forecast.delta)
    theirs = privacy.gdp_epsilon(mu, forecast.delta)
    n, k, of = forecast.n_rows, forecast.n_values, forecast.relation
    pure = privacy.LaplaceCounts.at(forecast.epsilon - theirs, n_rows=n, n_kinds=k, relation=of)
    gaussian = _gaussian_counts(forecast, share)
    return pure if pure.sigma < gaussian.sigma else gaussian, replace(forecast, share=left), own


def _gaussian_counts(forecast: VoteForecast, share: float) -> privacy.NoisyVotes:
    """Counts for that share of the squared cost of the fit."""
    sigma = forecast.moved / (math.sqrt(share) * privacy.gdp_mu(forecast.epsilon, forecast.delta))
    n, k = forecast.n_rows, forecast.n_values
    return privacy.NoisyVotes(sigma, n_teachers=n, n_classes=k, relation=forecast.relation)


def count_teachers(estimator: Any, n_rows: int, n_values: int, budget_share: float = 1.0, units: str = "rows") -> int:
    """How many teachers there are, who vote on so many classes or groups: a function of public numbers.
    ``budget_share`` is what votes get of the squared cost of the fit, ``units`` what is dealt to them."""
    delta, mu = estimator.delta, privacy.gdp_mu(estimator.epsilon, estimator.delta)
    if not mu:
        raise ValueError(
            f"epsilon={estimator.epsilon:g} and delta={delta:g} of {type(estimator).__name__} are so small that no "
            "noise is enough. Raise one of them."
        )
    if estimator.n_teachers == "auto":
        epsilon = estimator.epsilon if budget_share == 1 else privacy.gdp_epsilon(math.sqrt(budget_share) * mu, delta)
        return default_n_teachers(n_rows, n_values=n_values, epsilon=epsilon, delta=delta)
    if estimator.n_teachers > n_rows:
        samples = f"n_samples = {n_rows} private rows" if units == "rows" else f"rows of {n_rows} {units}"
        raise ValueError(
            f"The 'n_teachers' parameter of {type(estimator).__name__} is {estimator.n_teachers}, more teachers than "
            f"{units}: X has {samples}. Use at most one teacher per {units[:-1]}."
        )
    return int(estimator.n_teachers)


def warn_of_many_teachers(estimator: Any, n_rows: int, n_values: int, units: str = "rows") -> None:
    """Say where, by public numbers, most teachers cannot have seen one row of each of so many classes or groups."""
    asked = estimator.n_teachers
    if n_values > 1 and n_rows < asked * n_values:
        warn_caller(
            f"'n_teachers'={asked} of {type(estimator).__name__} leaves each of them about {n_rows / asked:.2g} of "
            f"the {n_rows} {units}, fewer than the {n_values} values that it has to predict, so most would vote for a "
            f"constant. Set at most {max(1, n_rows // (10 * n_values))}, or n_teachers='auto'.",
            UtilityWarning,
        )


def default_teacher(teacher: Any, public: Array, n_more: int = 0) -> Any:
    """The teacher given, or the one that PATE trains where none is: its penalty is in units of the public rows' spread.
    In units of their bounds, columns with wide ones would hardly enter. Powers of two, so that a search that samples
    rows anew for each candidate finds its teachers trained."""
    if teacher is not None:
        return teacher
    spread = PublicScale.of(public).scale if len(public) else np.ones(public.shape[1])
    scale = np.exp2(np.round(np.log2(np.where(np.isfinite(spread), spread, 1.0))))
    return _teachers.LogisticTeachers(C=TEACHER_C, scale=np.append(scale, np.ones(n_more)))


def check_student(student: Any) -> None:
    """Refuse a student that cannot be cloned, or whose own parameters are outside their range."""
    if student is not None:
        clone(student)
    if hasattr(student, "check_parameters"):
        student.check_parameters()


def check_learners(estimator: Any, data: TrainingData) -> None:
    """Try teacher and student on public rows, so that what their parameters break shows before anything is spent.
    Where there are none, on made-up ones of the same width. So does it show when the disk has no room for rows."""
    owner = type(estimator).__name__
    if estimator.n_teachers != "auto":
        warn_of_many_teachers(estimator, data.n_units, len(data.classes), data.units)
    if data.source is not None and data.source.spills:
        check_free_disk(_teachers.bytes_on_disk(estimator.schema, data.n_units), owner, verbose=estimator.verbose)
    rows = np.random.default_rng(0).normal(size=(100, data.X.shape[1])) if data.public is None else data.public.X
    if not isinstance(estimator.student, OWN_STUDENTS):
        groups = None if data.domain is None else np.arange(len(data.domain))
        _teachers.rehearse_student(estimator.student, rows, len(data.classes), groups, parameter="student", owner=owner)
    if estimator.teacher is None:
        return
    n_teachers = count_teachers(estimator, data.n_units, len(data.classes), data.share_for_votes, data.units)
    n_rows = -(-data.n_units // n_teachers)
    if estimator._votes_by_group:
        n_groups = len(data.domain if data.domain is not None else ())
        rows = with_groups(rows, np.arange(len(rows)) % n_groups, n_groups)
    dry_run_teacher(estimator.teacher, rows, n_rows=n_rows, n_classes=len(data.classes), owner=owner)
