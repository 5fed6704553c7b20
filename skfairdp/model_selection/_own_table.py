"""The frontier of a private table that nobody has public rows for: schema, models and figures, each paid for."""

import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

from skfairdp import privacy
from skfairdp._rows import Subjects
from skfairdp._utils import as_exposures, as_groups, as_labels, progress_bar, public_generator, warn_caller
from skfairdp.exceptions import BudgetExceededError, UtilityWarning
from skfairdp.generative import SyntheticDataClassifier, SyntheticDataRegressor
from skfairdp.gradient import FairDPSGDClassifier, FairDPSGDRegressor
from skfairdp.model_selection._frame import as_gamma, columns_with, guarantee_record, mark_non_dominated, one_answer
from skfairdp.model_selection._own_figures import AmountFigures, LabelFigures
from skfairdp.pate import FairPATEClassifier
from skfairdp.postprocessing import PrivateBarycenter, TransportPlan
from skfairdp.privacy import DpEvent, NeighboringRelation, PrivacyLedger, PrivacySpent, compose, epsilon_of, gdp_mu
from skfairdp.schema import Category, Column, Number, Schema, SchemaPlan, planned_schema

#: Of the smallest ε and of δ, where the schema has to be released: the least that shows a value of one row in five. As
#: squares add up, the largest share leaves √(1 - 0.7²), 71 %, of the noise's precision to the models.
_SCHEMA_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_SHOWN, _HOPED_FOR = 1 / 5, 1 / 4  # share of the rows that a value has; nothing is paid where even the second is lost
_FROM_ESTIMATE = 1.01  # a schema decides a little of what its models cost: what is announced leaves room for that
_FOR_MOVING = 0.25  # of the squared cost of a network whose predictions are moved: for the tables that say how
_ANY_NUMBER = 1e300
_SPARE, _TRIES = 0.005, 9  # of ε may be left over; guesses at what a release may cost beside the schema


Releases = Sequence[tuple[str, "_Release"]]


@dataclass(frozen=True)
class OwnFrontier:
    """A frontier, and what it cost."""

    frame: pd.DataFrame
    schema: Schema
    privacy: PrivacySpent


def frontier_of_table(
    table: pd.DataFrame,
    *,
    label: str,
    groups: str | Sequence[str],
    subject: str | None = None,
    exposure: str | None = None,
    epsilons: Sequence[float],
    delta: float = 1e-5,
    schema: Schema | Mapping[str, Any] | None = None,
    gaps: Sequence[float | None] = (0.02, 0.05, None),
    methods: Sequence[str] | None = None,
    test_size: float = 0.25,
    dataset: str = "",
    verbose: int = 0,
    random_state: int = 0,
    ledger: PrivacyLedger | None = None,
    announce: Callable[[float], None] | None = None,
    keep: Callable[[Schema], None] | None = None,
) -> OwnFrontier:
    """Sweep privacy budgets and fairness constraints on a private table alone.

    **Guarantee.** The table is split by position, which is public. A record of the larger part is protected by the
    composition of the schema's release, where one is needed, and of one release for each ε and method; what a method
    learns for several bounds on the gap follows from its one release. A record of the smaller part is protected by
    noisy tables of predictions, which cost about what the models cost together. Nothing else of either part is let out:
    the figures in the frame are noisy as well. All of it is one guarantee, ``privacy``: with "dpsgd" for a record
    replaced by a null record, which is what that method protects and what the others protect too; else for a replaced
    record. With ``subject`` it is for all rows of one subject: the list of subjects is split, models learn from all
    rows of the larger part, and one row of each subject of the smaller one is measured.

    Parameters
    ----------
    table : DataFrame
        Private rows, with label and groups.
    label : str
        The column to predict: a class, or an amount, whose bounds ``schema`` then says by a Number.
    groups : str or sequence of str
        The columns that are the sensitive attribute.
    subject : str, default=None
        The column that says who a row is about; None is that of a schema that names one.
    exposure : str, default=None
        Of counts, the column that says how long or how much each was taken of: private numbers above 0, and no
        feature. Models learn the rate, R² compares counts with the rate times the exposure, and gaps compare rates.
    epsilons : sequence of float
        One release each, the schema's included.
    delta : float, default=1e-5
        Of every ε.
    schema : Schema or mapping, default=None
        Public, or released at a price, which then counts here as well. A mapping is what is known of some columns, as
        of ``Schema.release``: a fifth of the smallest ε, and of δ, pays for what is not, and so with None for
        everything; of few rows up to seven tenths, so that labels and groups of one row in five are found. Those
        that are too rare count as "other" where the counts show them, and else as the first that was found; missing
        ones are refused, as by every fit, unless ``schema`` says by a column what they count as. The
        accountant says what that leaves to the models, which is nearly all of ε: of noise, squares add up.
    gaps : sequence of float or None, default=(0.02, 0.05, None)
        Bounds on the gap between any two groups; None, which is always tried, is no bound.
    methods : sequence of {"synthetic", "fair_pate", "dpsgd", "barycenter"}, default=None
        ``SyntheticDataClassifier``, with bounds for two classes; ``FairPATEClassifier``; ``FairDPSGDClassifier`` with a
        signed loss for parity, once, as each bound would be another release. Of amounts "synthetic" and "dpsgd" are the
        regressors, which hold no bound, and "barycenter" is a ``PrivateBarycenter`` around the second, for a quarter of
        the squared cost. None is all of these for classes, or for amounts; beside an exposure the last two.
    test_size : float, default=0.25
        Share of the rows to measure on.
    dataset : str, default=""
        Name for the column ``dataset``.
    verbose : int, default=0
        Above 0: a progress bar on standard error.
    random_state : int, default=0
        For public randomness; the noise stays secret.
    ledger : PrivacyLedger, default=None
        Is charged before anything is released: for the schema, and once for all models and figures. A schema that was
        paid for and is not on it is charged as well.
    announce : callable, default=None
        Called with the largest ε that everything may cost together, at ``delta``, before anything is spent. Nothing is,
        where it raises an error.
    keep : callable, default=None
        Called with a schema that was found as soon as it is, so that it is there whatever happens later.

    Returns
    -------
    OwnFrontier
        The frame, the schema, and what all of it cost.

    Raises
    ------
    BudgetExceededError
        The ledger cannot afford what was announced. Nothing was spent.
    IncompleteSchemaError
        The label, a group or every feature is too rare to be found. What was found is in it, and paid for.
    ValueError
        Something is wrong, or too few rows are there for any hope. Nothing was spent.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skfairdp.model_selection import frontier_of_table
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(18, 91, 6000), "sex": rng.choice(["f", "m"], 6000)})
    >>> table["rich"] = np.where(table["age"] + 20 * (table["sex"] == "m") > 70, "yes", "no")
    >>> found = frontier_of_table(
    ...     table, label="rich", groups="sex", epsilons=[2.0], gaps=[None], methods=["synthetic"])
    >>> bool(found.frame["epsilon"][0] <= 2.0), found.privacy.epsilon < 2.1, found.schema.group_values
    (True, True, ('f', 'm'))
    """
    names, ledger = (groups,) if isinstance(groups, str) else tuple(groups), privacy.ledger_in_use(ledger)
    if isinstance(schema, Schema) and (schema.label, sorted(schema.groups)) != (label, sorted(names)):
        raise ValueError(
            f"frontier_of_table got label={label!r} and groups={list(names)}, and its 'schema' has {schema.label!r} "
            f"and {list(schema.groups)}. Give the same, or Schema(schema.columns, label=..., groups=...)."
        )
    methods = _methods(methods, isinstance(_known_of(schema, label), Number), exposure is not None)
    subject = getattr(schema, "subject", None) if subject is None else subject
    if exposure is not None:
        table, schema = _with_exposure(table, schema, exposure, (label, *names, subject))
    learned, held = _split(table, test_size, random_state, subject)
    if not len(learned) or not len(held):
        raise ValueError(f"frontier_of_table needs rows to learn from and rows to measure on. Got {len(table)} row(s).")
    asked = _Sweep(learned, held, [None, *(gap for gap in gaps if gap is not None)], methods, list(epsilons),
                   delta, random_state, subject, exposure)  # fmt: skip
    if isinstance(schema, Schema):
        schema = _of_a_part(schema, subject)
        _refuse_one_value(schema, "Nothing was spent.")
        used, budget = schema, asked.budget(schema, privacy.held_by(schema))
        _announce(budget, ledger, announce)
    else:
        _refuse_missing(table, schema, label, names)
        schema, budget = _found(asked, _to_find(learned, schema, asked, label=label, groups=names), ledger, announce,
                                keep)  # fmt: skip
        used = _of_every_row(schema)
    for part in (learned, held if subject is None else held[held[subject].notna()]):
        used.read(part)  # a label or a group that is not listed ends it here
    rows, baseline = _measured(asked, budget, used, ledger, dataset=dataset, verbose=verbose)
    head = "" if ledger is None else ledger.head  # by now all of it is charged there
    n_units = asked.n_learned + len(held)
    return _result(rows, schema, budget, delta, n_units=n_units, baseline=baseline, on_record=head)


def _refuse_missing(table: pd.DataFrame, known: Any, label: str, groups: Sequence[str]) -> None:
    """Labels and groups of which nobody has said what a missing one counts as: read as a fit reads them."""
    owner, n_rows = "frontier_of_table", len(table)
    if label in table and not isinstance(_known_of(known, label), Column):
        as_labels(table[label], n_rows, owner=owner, name=f"The label {label!r}", check_kind=False)
    for name in groups:
        if name in table and not isinstance(_known_of(known, name), Column):
            as_groups(table[name], n_rows, owner=owner, name=f"The group {name!r}")


def _with_exposure(
    table: pd.DataFrame, known: Any, name: str, roles: Sequence[str | None]
) -> tuple[pd.DataFrame, Schema | Mapping[str, Any]]:
    """The table with its exposures as numbers, and what is known of the other columns: it is no feature."""
    owner, label = "frontier_of_table", _known_of(known, str(roles[0]))
    if not isinstance(label, Number) or label.low < 0:
        raise ValueError(
            f"{owner} takes an 'exposure' of counts only: say in 'schema' between which bounds from 0 on they lie, "
            f"{roles[0]!r}: Number(0, high)."
        )
    if name in roles or name not in table:
        raise ValueError(
            f"The 'exposure' of {owner} must name a column of the table that is neither label, group nor subject. "
            f"Got {name!r} instead."
        )
    column = _known_of(known, name)
    read = column if isinstance(column, Number) else Number(0, _ANY_NUMBER, missing=True)
    cells = as_exposures(read.read(table[name]), len(table), owner=owner)
    if not isinstance(known, Schema):
        return table.assign(**{name: cells}), {**known, name: None}
    return table.assign(**{name: cells}), _of_a_part(known, known.subject, without=name)


def _known_of(schema: Any, name: str) -> Any:
    """What is known of a column before anything is released."""
    return (schema.columns if isinstance(schema, Schema) else schema or {}).get(name)


def _announce(
    budget: "_Budget", ledger: PrivacyLedger | None, announce: Callable[[float], None] | None, *, room: float = 1.0
) -> float:
    """The most that everything may cost, told, and refused where the ledger cannot pay."""
    most = room * epsilon_of(budget.total, budget.figures.delta)
    if announce is not None:
        announce(most)
    if ledger is not None:
        budget.charge_schema(ledger, dry_run=True, besides=budget.models_and_figures)
    return most


def _found(
    asked: "_Sweep", to_find: "_ToFind", ledger: PrivacyLedger | None, announce: Callable[[float], None] | None,
    keep: Callable[[Schema], None] | None,
) -> tuple[Schema, "_Budget"]:  # fmt: skip
    """A schema that the rows pay for. It decides a little of what models cost; what was announced is kept."""
    likely = asked.budget(to_find.stand_in, [*privacy.held_by(to_find.asked["known"]), to_find.price])
    most = _announce(likely, ledger, announce, room=_FROM_ESTIMATE)
    schema = to_find.release(ledger, keep)
    budget = asked.budget(_of_every_row(schema), privacy.held_by(schema))
    total = epsilon_of(budget.total, asked.delta)
    if total > most:
        raise BudgetExceededError(
            f"With the released schema the fits would cost epsilon={privacy.rounded_up(total)} in all, more than the "
            f"{most:.4g} announced. Only the schema was charged: start again with 'schema' set to it."
        )
    return schema, budget


def _measured(
    asked: "_Sweep", budget: "_Budget", schema: Schema, ledger: PrivacyLedger | None, *, dataset: str, verbose: int
) -> tuple[list[dict[str, Any]], float]:
    """Rows of the frame, and how good one answer for everybody is."""
    figures, held, rows, failed = budget.figures, asked.held, list[dict[str, Any]](), None
    truth, costs = figures.codes(held), [one.event for one in budget.paid]
    if ledger is not None:
        budget.charge_schema(ledger, dry_run=False)
    spending = budget.spending(ledger, len(held))
    with spending as noise, progress_bar(total=figures.n_tables, desc="frontier", verbose=verbose, leave=True) as bar:
        spending.settle()  # models draw their noise elsewhere
        for (method, release), planned in zip(budget.releases, budget.events, strict=True):
            try:
                points = _fitted(method, release, planned)
            except Exception as error:  # the others are paid for as well
                failed = error
                warn_caller(f"{method} failed at epsilon={release.epsilon:g} and is left out: {error}", UtilityWarning)
                continue
            certified = epsilon_of(compose(*costs, planned), asked.delta)
            for point in points:
                known = {"dataset": dataset, "epsilon": certified, "delta": asked.delta, **point.row}
                known["protects"] = str(budget.relation.protects)
                rows.append({**known, **figures.release(point.model, held, truth, noise)})
                bar.update()
        if not rows and failed is not None:
            raise failed
    return rows, figures.baseline(rows, len(held))


def _fitted(method: str, release: "_Release", planned: DpEvent) -> "list[_Point]":
    """The models of one release, which costs what was planned."""
    points = _METHODS[release.of_amounts][method](release)
    made = points[0].event
    if made != planned and epsilon_of(made, release.delta) > epsilon_of(planned, release.delta) * (1 + 1e-12):
        raise RuntimeError(f"{method} released something else than planned_privacy states. This is a bug; report it.")
    return points


def _methods(methods: Sequence[str] | None, of_amounts: bool, of_rates: bool) -> list[str]:
    """Those that are asked for, or all for this kind of label."""
    known = [name for name in _METHODS[of_amounts] if not (of_amounts and of_rates and name == "synthetic")]
    if methods is None:
        return known
    if isinstance(methods, str) or not methods or not set(methods) <= set(known):
        raise ValueError(
            f"The 'methods' of frontier_of_table must be a list of some of {known} where the label is "
            f"{'a count with exposure' if of_rates else 'an amount' if of_amounts else 'a class'}. Got {methods!r} "
            "instead."
        )
    return list(methods)


def _within(
    method: str, asked: "_Release", paid: Sequence[PrivacySpent],
    planned: Callable[[str, "_Release"], DpEvent] | None = None,
) -> "_Release":  # fmt: skip
    """The release that costs, together with the schema, what was asked for and not more. Of Gaussians squares of μ add
    up: that is a first guess, and only what the accountant finds to be within ε is released. Few rows have a pure ε, of
    which squares do not add up: there the next guess is half way."""
    if not paid:
        return asked
    planned = planned or _planned
    most, costs = gdp_mu(asked.epsilon * (1 - _SPARE / 5), asked.delta), [one.event for one in paid]
    squared = most**2 - sum(gdp_mu(one.epsilon, one.delta) ** 2 for one in paid)
    best = replace(asked, epsilon=asked.epsilon - sum(one.epsilon for one in paid))
    best = replace(best, delta=asked.delta - sum(one.delta for one in paid))
    too_much = asked.epsilon
    for _ in range(_TRIES):
        if squared <= 0 and best.epsilon <= 0:
            break
        epsilon = min(privacy.gdp_epsilon(math.sqrt(max(squared, 0.0)), asked.delta), asked.epsilon)
        if not best.epsilon < epsilon <= too_much:
            epsilon = (best.epsilon + too_much) / 2
        guess = replace(asked, epsilon=epsilon)
        total = epsilon_of(compose(*costs, planned(method, guess)), asked.delta)
        if total <= asked.epsilon:
            best = max(best, guess, key=lambda release: release.epsilon)
            if total >= asked.epsilon * (1 - _SPARE):
                break
        else:
            too_much = epsilon
        squared += most**2 - gdp_mu(total, asked.delta) ** 2
    if best.epsilon <= 0 or best.delta <= 0:
        raise ValueError(
            f"The schema has cost (ε, δ) = ({paid[0].epsilon:g}, {paid[0].delta:g}) already, which leaves nothing of "
            f"({asked.epsilon:g}, {asked.delta:g}). Raise epsilons or delta, or give a schema that is made by hand."
        )
    return best


def _planned(method: str, release: "_Release") -> DpEvent:
    """What a release is going to cost, by public facts alone. What there is to warn of, the fit says."""
    if method == "barycenter":
        network, tables = _two_parts(release)
        return compose(_planned("dpsgd", network), _of_tables(release, tables))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _MODELS[release.of_amounts][method](release)
        event: DpEvent = model.planned_privacy(release.rows, **release.beside).own.event
    return event


def _two_parts(release: "_Release") -> tuple["_Release", float]:
    """The release of a network whose predictions are moved then, and the ε of the tables that say how. Of Gaussians
    squares of μ add up; where they cost more beside the network, the tables get less."""
    mu = gdp_mu(release.epsilon, release.delta)
    network = replace(release, epsilon=privacy.gdp_epsilon(mu * math.sqrt(1 - _FOR_MOVING), release.delta))
    learned, tables = _planned("dpsgd", network), privacy.gdp_epsilon(mu * math.sqrt(_FOR_MOVING), release.delta)
    while epsilon_of(compose(learned, _of_tables(release, tables)), release.delta) > release.epsilon:
        tables *= 0.97
    return network, tables


def _of_tables(release: "_Release", epsilon: float) -> DpEvent:
    """What tables cost that say how to move predictions."""
    sizes = len(release.rows), len(release.schema.group_values or ())
    relation = NeighboringRelation.ZERO_OUT if release.schema.subject is None else NeighboringRelation.ZERO_OUT_SUBJECT
    return TransportPlan(*sizes, epsilon, release.delta, relation).event


def _mu_of_figures(releases: Releases, models: DpEvent, paid: Sequence[DpEvent], delta: float) -> float:
    """What the figures of all models may cost: as a record is in one part only, exacter figures are free until they
    cost, beside the schema, what the models do. Of Gaussians the sum of squares; else the accountant says it."""
    mu = math.sqrt(sum(gdp_mu(release.epsilon, release.delta) ** 2 for _, release in releases))
    most = epsilon_of(compose(*paid, models), delta)
    while epsilon_of(compose(*paid, privacy.GaussianDpEvent(1 / mu)), delta) > most:
        mu *= 0.99
    return mu


@dataclass(frozen=True)
class _ToFind:
    """A schema that the rows have to pay for."""

    rows: pd.DataFrame
    asked: Mapping[str, Any]

    @property
    def plan(self) -> SchemaPlan:
        """What its release will let out."""
        return planned_schema(self.rows, **self.asked)

    @property
    def stand_in(self) -> Schema:
        """A schema such as may be found, to plan by: what models cost hardly follows what is in it."""
        roles, known = self.plan.roles, self.plan.columns.items()
        likely = {name: Category(("a", "b"), others="a") if name in roles else Number(0.0, 1.0) for name, _ in known}
        columns = {name: said if isinstance(said, Column) else likely[name] for name, said in known}
        return Schema(columns, **{name: self.asked[name] for name in ("label", "groups", "subject")})

    @property
    def price(self) -> PrivacySpent:
        """Of its release."""
        plan = self.plan
        of, rows_of = plan.relation, plan.subject or ""
        return PrivacySpent.of(plan.event, plan.delta, protects=of.protects, neighboring_relation=of, rows_of=rows_of)

    def release(self, ledger: PrivacyLedger | None, keep: Callable[[Schema], None] | None) -> Schema:
        """Find it."""
        found = Schema.release(self.rows, **self.asked, ledger=ledger)
        if keep is not None:
            keep(found)
        _refuse_one_value(
            found,
            "No more is spent. Raise epsilons, or give the values if they are public: known={'name': Category([...])}.",
        )
        return found


def _of_every_row(schema: Schema) -> Schema:
    """The schema by which no row is refused, as this would say of it what nobody paid for: labels and groups so rare
    that noise hides them count as the first that was found. Missing ones are refused."""
    roles = {name: schema.columns[name] for name in (schema.label, *schema.groups) if name is not None}
    lists = {name: one for name, one in roles.items() if isinstance(one, Category) and one.privacy_ is not None}
    total = {name: replace(one, others=one.values[0]) for name, one in lists.items() if one.others is None}
    columns = {**schema.columns, **total}
    return Schema(columns, label=schema.label, groups=schema.groups, n_rows=schema.n_rows, subject=schema.subject)


def _refuse_one_value(schema: Schema, more: str) -> None:
    if min(2 if schema.amounts is not None else len(schema.classes or ()), len(schema.group_values or ())) < 2:
        raise ValueError(f"The schema has one value only of label or groups: nothing to learn or to compare. {more}")


def _of_a_part(schema: Schema, subject: str | None, *, without: str | None = None) -> Schema:
    """For part of the rows, of which a declared number would be that of all; it names the subject that is protected."""
    if schema.n_rows is None and schema.subject == subject and without not in schema.columns:
        return schema
    columns = {name: column for name, column in schema.columns.items() if name != without}
    part = Schema(columns, label=schema.label, groups=schema.groups, subject=subject)
    part.privacy_ = schema.privacy_
    return part


def _to_find(learned: pd.DataFrame, known: Mapping[str, Any] | None, asked: "_Sweep", **roles: Any) -> _ToFind:
    """The smallest share of ε that shows labels and groups; few rows without any hope are refused."""
    smallest, hoped = min(asked.epsilons), _HOPED_FOR * asked.n_learned

    def of(share: float, epsilon: float = smallest) -> tuple[_ToFind, float]:
        budget = {"epsilon": share * epsilon, "delta": share * asked.delta}
        to_find = _ToFind(learned, {**budget, **roles, "known": known or {}, "subject": asked.subject})
        return to_find, to_find.plan.surely_shown()

    tried = (of(share) for share in _SCHEMA_SHARES)
    to_find, lost = next((one for one in tried if one[1] <= _SHOWN * asked.n_learned), of(_SCHEMA_SHARES[-1]))
    if lost <= hoped:
        return to_find
    larger = (smallest * 1.1**k for k in range(1, 150))
    enough = next((epsilon for epsilon in larger if of(_SCHEMA_SHARES[-1], epsilon)[1] <= hoped), math.inf)
    names = [one for said in roles.values() for one in ([said] if isinstance(said, str) else said or ())]
    start = f"Start with epsilon={enough:.3g}, give" if enough < math.inf else "Give"
    raise ValueError(
        f"At epsilon={smallest:g} the values of {names} cannot be found: noise hides one that fewer than "
        f"{math.ceil(lost):,} of the {asked.n_learned:,} {asked.units} share. Nothing was spent. "
        f"{start} {lost / hoped:.1f} times as many {asked.units}, or give the values if they are "
        "public: known={'name': Category([...])}."
    )


def _split(
    table: pd.DataFrame, test_size: float, random_state: int, subject: str | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from, by position or by subject, and rows to measure on, one of each subject. Both list their
    subjects, whoever has no rows: of such a one the row that is measured holds nothing."""
    subjects = None
    if subject is not None:
        subjects = Subjects.read(table, subject, len(table), owner="frontier_of_table")
    n_units = len(table) if subjects is None else subjects.n
    order = public_generator(random_state).permutation(n_units)
    n_test = math.ceil(test_size * n_units)
    held, learned = np.sort(order[:n_test]), np.sort(order[n_test:])
    if subjects is None:
        return table.iloc[learned], table.iloc[held]
    part = subjects.part(learned)
    rows = table.iloc[part.rows]
    measured = subjects.one_row_or_none_of(table).iloc[held]
    return rows.assign(**{str(subject): part.subject.set_axis(rows.index)}), measured


@dataclass(frozen=True)
class _Sweep:
    """What is asked for."""

    learned: pd.DataFrame
    held: pd.DataFrame
    bounds: Sequence[float | None]
    methods: Sequence[str]
    epsilons: Sequence[float]
    delta: float
    random_state: int
    subject: str | None = None
    exposure: str | None = None

    @property
    def n_learned(self) -> int:
        """How many units are learned from."""
        return len(self.learned) if self.subject is None else len(self.learned[self.subject].cat.categories)

    @property
    def units(self) -> str:
        """What is protected, and so counted."""
        return "rows" if self.subject is None else "subjects"

    @property
    def replaced(self) -> NeighboringRelation:
        """What a table of counts protects."""
        return NeighboringRelation.REPLACE_ONE if self.subject is None else NeighboringRelation.REPLACE_SUBJECT

    @property
    def relation(self) -> NeighboringRelation:
        """What all methods protect."""
        if not {"dpsgd", "barycenter"} & {*self.methods}:
            return self.replaced
        return NeighboringRelation.ZERO_OUT if self.subject is None else NeighboringRelation.ZERO_OUT_SUBJECT

    def budget(self, schema: Schema, paid: Sequence[PrivacySpent]) -> "_Budget":
        """What models and figures will cost beside a schema."""
        asked = _Release(schema, self.learned, math.nan, self.delta, self.bounds, self.random_state, self.exposure)
        pairs = itertools.product(self.epsilons, self.methods)
        releases = [(method, _within(method, replace(asked, epsilon=e), paid)) for e, method in pairs]
        events = [_planned(method, release) for method, release in releases]
        mu = _mu_of_figures(releases, compose(*events), [one.event for one in paid], self.delta)
        n_models = len(self.epsilons) * sum(_n_points(method, self.bounds, schema) for method in self.methods)
        of = schema, mu, self.delta, n_models, self.replaced
        figures = LabelFigures(*of) if schema.amounts is None else AmountFigures(*of, exposure=self.exposure)
        return _Budget(releases, events, figures, tuple(paid), self.relation, self.subject or "")


@dataclass(frozen=True)
class _Budget:
    """What everything costs: known before any of it is released."""

    releases: Releases
    events: Sequence[DpEvent]
    figures: LabelFigures | AmountFigures
    paid: Sequence[PrivacySpent]
    relation: NeighboringRelation
    rows_of: str = ""

    @property
    def models_and_figures(self) -> DpEvent:
        """A record is in one part only: of the learned or of the measured rows."""
        return privacy.WorstOf((compose(*self.events), self.figures.event))

    @property
    def total(self) -> DpEvent:
        """With the schema."""
        return compose(*(one.event for one in self.paid), self.models_and_figures)

    def facts(self, n_units: int) -> privacy.PublicReads:
        """How many units there are."""
        reads = privacy.PublicReads()
        if self.relation.of_subjects:
            reads.note_subjects(n_units, self.rows_of)
        else:
            reads.note_number_of_rows(n_units)
        return reads

    def spending(self, ledger: PrivacyLedger | None, n_units: int) -> privacy.Spending:
        """Of all models and figures: one entry on the ledger, and the noise of the figures."""
        reads = self.facts(n_units)
        releases = [f"{method} at epsilon={privacy.rounded_up(release.epsilon)}" for method, release in self.releases]
        return privacy.Spending(
            self.models_and_figures, self.figures.delta, self.relation, label="frontier of a table", ledger=ledger,
            noise_seed=None, releases=(*releases, f"{self.figures.n_tables} noisy tables of predictions"),
            public=privacy.public_facts(reads, self.relation), rows_of=self.rows_of,
        )  # fmt: skip

    def charge_schema(self, ledger: PrivacyLedger, *, dry_run: bool, besides: DpEvent | None = None) -> None:
        """Put on a ledger what was paid for the schema elsewhere; or only see whether it, and more, is affordable."""
        entries = [entry.label for entry in ledger.entries]
        elsewhere = [one for one in self.paid if not (one.on_record and ledger.continues(one.on_record))]
        new = [one for one in elsewhere if _label_of(one) not in entries]
        charges = [(one.event, _label_of(one), one.neighboring_relation, one.rows_of) for one in new]
        if dry_run:
            event = compose(*(one.event for one in new), *([] if besides is None else [besides]))
            charges = [(event, "this frontier", self.relation, self.rows_of)]
        for event, label, relation, rows_of in charges:
            of = NeighboringRelation(relation)
            privacy.charge(ledger, privacy.LedgerEntry(label, event, of.protects, of, (), rows_of), dry_run=dry_run)


def _label_of(spent: PrivacySpent) -> str:
    return f"{spent.label} {spent.release}"


@dataclass(frozen=True)
class _Release:
    """What a method learns from, and what it may spend."""

    schema: Schema
    rows: pd.DataFrame
    epsilon: float
    delta: float
    bounds: Sequence[float | None]
    random_state: int
    exposure: str | None = None

    @property
    def beside(self) -> dict[str, Any]:
        """What a fit reads beside the rows."""
        return {} if self.exposure is None else {"exposure": self.rows[self.exposure]}

    @property
    def given(self) -> dict[str, Any]:
        """Parameters of every method; the frontier has paid."""
        own = {name: getattr(self, name) for name in ("epsilon", "delta", "schema", "random_state")}
        return {**own, "ledger": privacy.UNCHARGED}

    @property
    def narrowest(self) -> float | None:
        """The narrowest of the bounds on the gap."""
        return min((gap for gap in self.bounds if gap is not None), default=None)

    @property
    def of_amounts(self) -> bool:
        """Whether the label is an amount."""
        return self.schema.amounts is not None

    def call(self, name: str, options: str) -> str:
        """The expression that makes a model again."""
        options = f"{options}, " if options else ""
        return f"{name}({options}epsilon={_written(self.epsilon)}, delta={_written(self.delta)}, schema=schema)"


def _written(budget: float) -> str:
    """A budget with six digits, rounded down: a schema leaves 0.4000000001 of 0.5."""
    unit = 10.0 ** (math.floor(math.log10(budget)) - 5)
    return repr(float(f"{math.floor(budget / unit * (1 + 1e-12)) * unit:.6g}"))


@dataclass(frozen=True)
class _Point:
    """A fitted model, and what is known of it before it is measured."""

    model: Any
    call: str
    gap: float | None = None
    lam: float = math.nan
    beneath: tuple[Any, ...] = ()

    @property
    def event(self) -> DpEvent:
        """What it has released, with what it was made of."""
        return compose(*(one.privacy_.own.event for one in (*self.beneath, self.model)))

    @property
    def row(self) -> dict[str, Any]:
        """Its columns of the frame."""
        gamma = as_gamma(self.gap)
        own = {"gamma": gamma, "student_gamma": gamma, "lam": self.lam, "idp3": False, "params": self.call}
        return {"estimator": type(self.model).__name__, **own}


#: The model of each method, before it is fitted, by whether the label is an amount.
_MODELS: dict[bool, dict[str, Callable[[_Release], Any]]] = {
    False: {
        "synthetic": lambda release: SyntheticDataClassifier(LogisticRegression(max_iter=1000), **release.given),
        "fair_pate": lambda release: FairPATEClassifier(gamma=release.narrowest, **release.given),
        "dpsgd": lambda release: FairDPSGDClassifier(parity="signed_loss", **release.given),
    },
    True: {
        "synthetic": lambda release: SyntheticDataRegressor(**release.given),
        "dpsgd": lambda release: FairDPSGDRegressor(loss="poisson" if release.beside else "squared", **release.given),
    },
}


def _synthetic(release: _Release) -> list[_Point]:
    """One generator; a learner on its rows for each bound."""
    name = SyntheticDataClassifier.__name__
    learners = _learners(release.bounds, len(release.schema.classes or ()))
    first = _MODELS[False]["synthetic"](release).fit(release.rows)
    models = ((gap, first if gap is None else first.refit(one), said) for gap, (one, said) in learners.items())
    return [_Point(model, release.call(name, said), gap) for gap, model, said in models]


def _fair_pate(release: _Release) -> list[_Point]:
    """Rows of its own, teachers' votes on them; a student for each bound."""
    name, bounded = FairPATEClassifier.__name__, release.narrowest
    first = _MODELS[False]["fair_pate"](release).fit(release.rows)
    return [
        _Point(first if gap == bounded else first.refit(gamma=gap), release.call(name, f"gamma={gap!r}"), gap)
        for gap in sorted(release.bounds, key=lambda gap: gap != bounded)
    ]


def _alone(method: str, release: _Release) -> list[_Point]:
    """One network, or a regressor, which holds nothing."""
    model = _MODELS[release.of_amounts][method](release).fit(release.rows, **release.beside)
    options = "parity='signed_loss'" if not release.of_amounts else "loss='poisson'" if release.beside else ""
    lam = getattr(model, "lam", None)
    return [_Point(model, release.call(type(model).__name__, options), lam=math.nan if lam is None else lam)]


def _barycenter(release: _Release) -> list[_Point]:
    """A network, whose predictions are moved so that they are spread alike in all groups."""
    beneath, tables = _two_parts(release)
    network, moved = _alone("dpsgd", beneath)[0], replace(release, epsilon=tables)
    given = {name: moved.given[name] for name in ("epsilon", "delta", "schema", "ledger")}
    model = PrivateBarycenter(network.model, **given)
    beside = "" if release.exposure is None else f", exposure=table[{release.exposure!r}]"
    call = moved.call(PrivateBarycenter.__name__, f"{network.call}.fit(table{beside})")
    return [_Point(model.fit(release.rows), call, beneath=(network.model,))]


#: What each method releases for an ε, and learns from it, by whether the label is an amount.
_METHODS: dict[bool, dict[str, Callable[[_Release], list[_Point]]]] = {
    False: {"synthetic": _synthetic, "fair_pate": _fair_pate, "dpsgd": partial(_alone, "dpsgd")},
    True: {"synthetic": partial(_alone, "synthetic"), "dpsgd": partial(_alone, "dpsgd"), "barycenter": _barycenter},
}


def _n_points(method: str, bounds: Sequence[float | None], schema: Schema) -> int:
    if method == "dpsgd" or schema.amounts is not None:
        return 1
    return len(bounds) if method == "fair_pate" else len(_learners(bounds, len(schema.classes or ())))


def _learners(gaps: Sequence[float | None], n_classes: int) -> dict[float | None, tuple[Any, str]]:
    """One learner for each bound on the gap, and how it is written, as a constraint of fairlearn does not show its
    bound. Those reductions know two classes, and bound a group's rate against that of all: half of the gap of two."""
    plain, said = LogisticRegression(max_iter=1000), "LogisticRegression(max_iter=1000)"
    found: dict[float | None, tuple[Any, str]] = {None: (plain, said)}
    for gap in [gap for gap in gaps if gap is not None] if n_classes == 2 else []:
        held = f"ExponentiatedGradient({said}, DemographicParity(difference_bound={gap / 2:g}), max_iter=25)"
        found[gap] = ExponentiatedGradient(plain, DemographicParity(difference_bound=gap / 2), max_iter=25), held
    return found


def _result(
    rows: list[dict[str, Any]], schema: Schema, budget: _Budget, delta: float, *, n_units: int, baseline: float,
    on_record: str,
) -> OwnFrontier:  # fmt: skip
    reads, relation = budget.facts(n_units), budget.relation
    reads.note("names of columns", "read", [*schema.columns], "public")
    by = "by subject" if relation.of_subjects else "by position"
    reads.note(f"split {by}", "computed", None, "public; what is protected is in one part only")
    reads.note("schema", "given", None, "public", by=schema)
    own = PrivacySpent.of(
        budget.models_and_figures, delta, protects=relation.protects, neighboring_relation=relation,
        public=privacy.public_facts(reads, relation), label="frontier of a table", rows_of=budget.rows_of,
        on_record=on_record,
    )  # fmt: skip
    paid = [replace(one, on_record=on_record or one.on_record) for one in privacy.held_by(schema)]
    total = privacy.composed(own, *paid)
    # One relation for all points, so that they are compared: who protects a replaced record protects the weaker one.
    utility = budget.figures.utility
    columns = [*columns_with(utility), "gap_bound", "groups_seen", f"{utility}_error"]
    columns += [name for name in ("exposure",) if name in rows[0]]
    frame = pd.DataFrame(rows).assign(neighboring_relation=str(relation)).reindex(columns=columns)
    record = guarantee_record(relation.protects, relation, delta, total.epsilon, len(budget.releases))
    reference = one_answer(rows[0]["dataset"], utility, baseline)
    frame["non_dominated"] = mark_non_dominated(frame, [reference])
    frame.attrs.update({"guarantees": [record], **record, "scored_on": "held out", "references": [reference]})
    return OwnFrontier(frame, schema, total)
