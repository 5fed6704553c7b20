"""The frontier of a private table that nobody has public rows for: schema, models and figures, each paid for."""

import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from skfairdp._row_wise import public_row, row_wise_predictions
from skfairdp.fairness import largest_disparity, parity_bound
from skfairdp.generative import SyntheticDataClassifier
from skfairdp.gradient import FairDPSGDClassifier
from skfairdp.model_selection._frame import COLUMNS, as_gamma, guarantee_record, mark_non_dominated
from skfairdp.pate import ConstantStudent, FairPATEClassifier
from skfairdp.privacy import (
    DpEvent,
    GaussianMechanism,
    NeighboringRelation,
    NoiseSource,
    PrivacySpent,
    PublicReads,
    Spending,
    WorstOf,
    compose,
    epsilon_of,
    gdp_epsilon,
    gdp_mu,
    held_by,
    public_facts,
    repeat,
)
from skfairdp.schema import Schema
from skfairdp.utils import progress_bar, public_generator

__all__ = ["OwnFrontier", "frontier_of_table"]

_RELATION = NeighboringRelation.REPLACE_ONE
_SCHEMA_SHARE = 0.2  # of the smallest ε and of δ, where the schema has to be released
_SPARE, _TRIES = 0.005, 9  # of ε may be left over; guesses at what a release may cost beside the schema


@dataclass(frozen=True)
class OwnFrontier:
    """A frontier, and what it cost.

    Parameters
    ----------
    frame : DataFrame
        As of ``frontier``; all figures are noisy. ``accuracy`` is right to within ``accuracy_error``, noise and
        sampling together, in 95 of 100 tables. ``gap_bound`` takes the noise into account, and is of the groups that
        the noise does not hide, as many as ``groups_seen``; with fewer than two, ``disparity`` is not known: NaN.
    schema : Schema
    privacy : PrivacySpent
        Of everything: rows that models learned from, and rows that they were measured on.
    """

    frame: pd.DataFrame
    schema: Schema
    privacy: PrivacySpent


def frontier_of_table(
    table: pd.DataFrame,
    *,
    label: str,
    groups: str | Sequence[str],
    epsilons: Sequence[float],
    delta: float = 1e-5,
    schema: Schema | Mapping[str, Any] | None = None,
    gaps: Sequence[float | None] = (0.02, 0.05, None),
    methods: Sequence[str] = ("synthetic", "fair_pate", "dpsgd"),
    test_size: float = 0.25,
    dataset: str = "",
    verbose: int = 0,
    random_state: int = 0,
) -> OwnFrontier:
    """Sweep privacy budgets and fairness constraints on a private table alone.

    **Guarantee.** The table is split by position, which is public. A record of the larger part is protected by the
    composition of the schema's release, where one is needed, and of one release for each ε and method; what a method
    learns for several bounds on the gap follows from its one release. A record of the smaller part is protected by
    noisy tables of predictions, which cost about what the models cost together. Nothing else of either part is let out:
    the figures in the frame are noisy as well. All of it is one guarantee, ``privacy``: with "dpsgd" for a record
    replaced by a null record, which is what that method protects and what the others protect too; else for a replaced
    record.

    Parameters
    ----------
    table : DataFrame
        Private rows, with label and groups.
    label : str
        The column to predict.
    groups : str or sequence of str
        The columns that are the sensitive attribute.
    epsilons : sequence of float
        One release each, the schema's included.
    delta : float, default=1e-5
        Of every ε.
    schema : Schema or mapping, default=None
        Public, or released at a price, which then counts here as well. A mapping is what is known of some columns, as
        of ``Schema.release``: a fifth of the smallest ε, and of δ, pays for what is not, and so with None for
        everything. The accountant says what that leaves to the models, which is nearly all of ε: of noise, squares add
        up.
    gaps : sequence of float or None, default=(0.02, 0.05, None)
        Bounds on the gap between any two groups; None, which is always tried, is no bound.
    methods : sequence of {"synthetic", "fair_pate", "dpsgd"}, default=all three
        ``SyntheticDataClassifier``, with bounds for two classes; ``FairPATEClassifier``; ``FairDPSGDClassifier`` with a
        signed loss for parity, once, as each bound would be another release.
    test_size : float, default=0.25
        Share of the rows to measure on.
    dataset : str, default=""
        Name for the column ``dataset``.
    verbose : int, default=0
        Above 0: a progress bar on standard error.
    random_state : int, default=0
        For public randomness; the noise stays secret.

    Returns
    -------
    OwnFrontier
        The frame, the schema, and what all of it cost.

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
    _check_methods(methods)
    learned, held = _split(table, test_size, random_state)
    before = [one.event for one in held_by(schema)]
    schema = _schema_of(learned, schema, min(epsilons), delta, label=label, groups=groups)
    paid, bounds = held_by(schema), [None, *(gap for gap in gaps if gap is not None)]
    n_models = len(epsilons) * sum(_n_points(method, bounds, schema) for method in methods)
    asked = _Release(schema, learned, math.nan, delta, bounds, random_state)
    releases = [(m, _within(m, replace(asked, epsilon=e), paid)) for e, m in itertools.product(epsilons, methods)]
    figures = _Figures(schema, _mu_of_figures(max(epsilons), delta, releases), delta, n_models)
    truth, spent, rows = figures.codes(held), [one.event for one in paid], list[dict[str, Any]]()
    with (
        figures.spending(len(held)) as noise,
        progress_bar(total=n_models, desc="frontier", verbose=verbose, leave=True) as bar,
    ):
        for method, release in releases:
            points = _METHODS[method](release)
            spent.append(points[0].model.privacy_.own.event)
            certified = epsilon_of(compose(*(one.event for one in paid), spent[-1]), delta)
            for point in points:
                known = {"dataset": dataset, "epsilon": certified, "delta": delta, **point.row}
                rows.append({**known, **figures.release(point.model, held, truth, noise)})
                bar.update()
    common, n_fits = float(figures.of_classes(rows, len(held)).max()), len(epsilons) * len(methods)
    # A schema that was released before may have seen the rows to measure on as well.
    event, relation = WorstOf((compose(*spent), compose(*before, figures.event))), _relation(methods)
    return _result(rows, schema, event, delta, relation=relation, n_fits=n_fits, n_rows=len(table), common=common)


def _check_methods(methods: Sequence[str]) -> None:
    if isinstance(methods, str) or not methods or not set(methods) <= set(_METHODS):
        raise ValueError(
            f"The 'methods' of frontier_of_table must be a list of some of {[*_METHODS]}. Got {methods!r} instead."
        )


def _relation(methods: Sequence[str]) -> NeighboringRelation:
    """What all methods protect."""
    return NeighboringRelation.ZERO_OUT if "dpsgd" in methods else _RELATION


def _within(
    method: str,
    asked: "_Release",
    paid: Sequence[PrivacySpent],
    planned: Callable[[str, "_Release"], DpEvent] | None = None,
) -> "_Release":
    """The release that costs, together with what the schema has cost, what was asked for, and not more.

    Events add up to less than their ε do: of Gaussians, squares of μ add up. So what is left after a schema of a fifth
    of ε is nearly all of ε. That is a first guess; for every guess the accountant is asked what schema and release cost
    together, and only what it finds to be within ε is ever released. A release of few rows has a pure ε in it, of which
    squares do not add up: where they lead nowhere, the next guess is half way.
    """
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
        epsilon = min(gdp_epsilon(math.sqrt(max(squared, 0.0)), asked.delta), asked.epsilon)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        event: DpEvent = _MODELS[method](release).planned_privacy(release.rows).own.event
    return event


def _mu_of_figures(largest: float, delta: float, releases: Sequence[tuple[str, "_Release"]]) -> float:
    """What the figures of all models may cost: as much as the models do together.

    A record is in one part only. So what models learn and what they are measured on do not add up, and exacter figures
    are had for nothing until they cost what the models cost: at least the largest ε, and the sum of squares of those
    methods whose noise is Gaussian through and through. (FairDPSGDClassifier costs something on top, by another curve.)
    """
    each = [release for method, release in releases if method != "dpsgd"]
    together = math.sqrt(sum(gdp_mu(release.epsilon, release.delta) ** 2 for release in each))
    return max(gdp_mu(largest, delta) * (1 - 1e-9), together * (1 - 1e-3))


def _schema_of(
    learned: pd.DataFrame, schema: Schema | Mapping[str, Any] | None, epsilon: float, delta: float, **roles: Any
) -> Schema:
    """A schema that the rows pay for; or the given one, without a number of rows, which would be that of all rows."""
    if not isinstance(schema, Schema):
        share = _SCHEMA_SHARE
        found = Schema.release(learned, epsilon=share * epsilon, delta=share * delta, known=schema, **roles)
        if min(len(found.classes or ()), len(found.group_values or ())) < 2:
            raise ValueError(
                "One value only of label or groups was found: there is nothing to learn or to compare, so no more is "
                "spent. Raise epsilons, or say what you know: known={'name': Category([...])}."
            )
        return found
    if schema.n_rows is None:
        return schema
    part = Schema(schema.columns, label=schema.label, groups=schema.groups)
    part.privacy_ = schema.privacy_
    return part


def _split(table: pd.DataFrame, test_size: float, random_state: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from and rows to measure on, by position."""
    order = public_generator(random_state).permutation(len(table))
    n_test = math.ceil(test_size * len(table))
    held, learned = (table.iloc[np.sort(part)] for part in (order[:n_test], order[n_test:]))
    return learned, held


@dataclass(frozen=True)
class _Release:
    """What a method learns from, and what it may spend."""

    schema: Schema
    rows: pd.DataFrame
    epsilon: float
    delta: float
    bounds: Sequence[float | None]
    random_state: int

    @property
    def given(self) -> dict[str, Any]:
        """Parameters of every method."""
        return {name: getattr(self, name) for name in ("epsilon", "delta", "schema", "random_state")}

    @property
    def narrowest(self) -> float | None:
        """The narrowest of the bounds on the gap."""
        return min((gap for gap in self.bounds if gap is not None), default=None)

    def call(self, name: str, options: str) -> str:
        """The expression that makes a model again."""
        return f"{name}({options}, epsilon={_written(self.epsilon)}, delta={_written(self.delta)}, schema=schema)"


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

    @property
    def row(self) -> dict[str, Any]:
        """Its columns of the frame."""
        gamma = as_gamma(self.gap)
        own = {"gamma": gamma, "student_gamma": gamma, "lam": self.lam, "idp3": False, "params": self.call}
        return {"estimator": type(self.model).__name__, "protects": str(_RELATION.protects), **own}


#: The model of each method, before it is fitted.
_MODELS: dict[str, Callable[[_Release], Any]] = {
    "synthetic": lambda release: SyntheticDataClassifier(_plain(), **release.given),
    "fair_pate": lambda release: FairPATEClassifier(gamma=release.narrowest, **release.given),
    "dpsgd": lambda release: FairDPSGDClassifier(parity="signed_loss", **release.given),
}


def _synthetic(release: _Release) -> list[_Point]:
    """One generator; a learner on its rows for each bound."""
    name = SyntheticDataClassifier.__name__
    learners = _learners(release.bounds, len(release.schema.classes or ()))
    first = _MODELS["synthetic"](release).fit(release.rows)
    calls = {gap: release.call(name, _expression(gap)) for gap in learners}
    return [
        _Point(first if gap is None else first.refit(learner), calls[gap], gap) for gap, learner in learners.items()
    ]


def _fair_pate(release: _Release) -> list[_Point]:
    """Rows of its own, teachers' votes on them; a student for each bound."""
    name, bounded = FairPATEClassifier.__name__, release.narrowest
    first = _MODELS["fair_pate"](release).fit(release.rows)
    return [
        _Point(first if gap == bounded else first.refit(gamma=gap), release.call(name, f"gamma={gap!r}"), gap)
        for gap in sorted(release.bounds, key=lambda gap: gap != bounded)
    ]


def _dpsgd(release: _Release) -> list[_Point]:
    """One network."""
    model = _MODELS["dpsgd"](release).fit(release.rows)
    return [
        _Point(
            model,
            release.call(FairDPSGDClassifier.__name__, "parity='signed_loss'"),
            lam=math.nan if model.lam is None else model.lam,
        )
    ]


#: What each method releases for an ε, and learns from it.
_METHODS: dict[str, Callable[[_Release], list[_Point]]] = {
    "synthetic": _synthetic, "fair_pate": _fair_pate, "dpsgd": _dpsgd,
}  # fmt: skip


def _n_points(method: str, bounds: Sequence[float | None], schema: Schema) -> int:
    if method == "dpsgd":
        return 1
    return len(bounds) if method == "fair_pate" else len(_learners(bounds, len(schema.classes or ())))


def _plain() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def _learners(gaps: Sequence[float | None], n_classes: int) -> dict[float | None, Any]:
    """One learner for each bound on the gap. Fairlearn's reductions know two classes, and bound each group's rate
    against the rate of all: half of the gap between two groups."""
    plain = _plain()
    bounds = [gap for gap in gaps if gap is not None] if n_classes == 2 else []
    return {
        None: plain,
        **{
            gap: ExponentiatedGradient(plain, DemographicParity(difference_bound=gap / 2), max_iter=25)
            for gap in bounds
        },
    }


@dataclass(frozen=True)
class _Figures:
    """Noisy tables of group, class and prediction, one for each model, on rows that no model has seen.

    A replaced record leaves one cell of each table and enters another: a table moves by √2.

    Parameters
    ----------
    schema : Schema
    mu : float
        Of all tables together, in Gaussian differential privacy.
    delta : float
    n_tables : int
    """

    schema: Schema
    mu: float
    delta: float
    n_tables: int

    @property
    def mechanism(self) -> GaussianMechanism:
        """Of one table."""
        mu = self.mu / math.sqrt(self.n_tables)
        return GaussianMechanism(math.sqrt(2.0) / mu, sensitivity=math.sqrt(2.0), relation=_RELATION)

    @property
    def event(self) -> DpEvent:
        """All tables."""
        return repeat(self.mechanism.event, self.n_tables)

    def spending(self, n_rows: int) -> Spending:
        """The noise of all tables."""
        reads = PublicReads()
        reads.note_number_of_rows(n_rows)
        return Spending(
            self.event, self.delta, _RELATION, label="figures", ledger=None, noise_seed=None,
            releases=(f"{self.n_tables} noisy tables of predictions",), public=public_facts(reads, _RELATION),
        )  # fmt: skip

    def codes(self, rows: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Group and class of each row, as positions in the schema; what it does not list comes after all of them."""
        numbers = self.schema.numbers(rows)
        sizes = [_n_values(self.schema, name) for name in self.schema.groups]
        read = np.stack([numbers[name] for name in self.schema.groups])
        known = ~np.isnan(read).any(axis=0)
        groups = np.full(len(rows), math.prod(sizes), dtype=np.int64)
        groups[known] = np.ravel_multi_index(tuple(read[:, known].astype(np.int64)), sizes)
        labels = numbers[str(self.schema.label)]
        n_classes = len(self.schema.classes or ())
        return groups, np.where(np.isnan(labels), n_classes, np.nan_to_num(labels)).astype(np.int64)

    def release(
        self, model: Any, rows: pd.DataFrame, truth: tuple[NDArray[np.int64], NDArray[np.int64]], noise: NoiseSource
    ) -> dict[str, float]:
        """Accuracy and gap, from one noisy table. Groups that the noise hides are left out of the gap.

        A label that the schema does not list is one that no model gets right, and a share is one of all rows, whose
        number is public: so neither is flattered by what the schema, or the noise, hides.
        """
        assert self.schema.classes is not None and self.schema.group_values is not None
        groups, labels = truth
        place = {value: j for j, value in enumerate(self.schema.classes)}
        answers = row_wise_predictions(model, rows, None, places=np.arange(len(rows)))
        predicted = np.array([place.get(value, 0) for value in answers.tolist()], dtype=np.int64)
        n_groups, n_classes = len(self.schema.group_values), len(place)
        counts = np.zeros((n_groups + 1, n_classes + 1, n_classes))
        np.add.at(counts, (groups, labels, predicted), 1.0)
        released = self.mechanism.release(counts, noise)
        of_groups = released[:-1].sum(axis=1)
        seen = of_groups.sum(axis=1) > 20 * self.mechanism.sigma * n_classes
        shown = np.rint(np.maximum(of_groups[seen], 0.0)).astype(np.int64)
        by_class = released.sum(axis=(0, 2))[:-1]
        right = self._share(float(np.trace(released.sum(axis=0)[:-1])), len(rows))
        return {
            "accuracy": right,
            "accuracy_error": self._error(right, (n_groups + 1) * n_classes, len(rows)),
            "disparity": largest_disparity(shown) if seen.sum() > 1 else math.nan,
            "gap_bound": parity_bound(of_groups[seen], noise=self.mechanism.sigma * math.sqrt(n_classes + 1)),
            "coverage": 1.0,
            "of_classes": by_class / len(rows),
            "only_class": place[model.predict(self._public_row()).tolist()[0]] if _has_one_answer(model) else None,
            "groups_seen": int(seen.sum()),
        }

    def _public_row(self) -> pd.DataFrame:
        return pd.DataFrame({name: [cell] for name, cell in public_row(self.schema.columns).items()})

    def of_classes(self, rows: list[dict[str, Any]], n_rows: int) -> NDArray[np.float64]:
        """Shares of the classes by all tables together, which are what models with one answer are right on.

        Every table counts the same classes. Such a model has no better figure in its own table, and no gap, whatever
        that table says.
        """
        assert self.schema.classes is not None and self.schema.group_values is not None
        shares: NDArray[np.float64] = np.clip(np.mean([row["of_classes"] for row in rows], axis=0), 0.0, 1.0)
        n_cells = (len(self.schema.group_values) + 1) * len(shares) / len(rows)
        for row in rows:
            if row["only_class"] is not None:
                right = float(shares[row["only_class"]])
                row.update(accuracy=right, accuracy_error=self._error(right, n_cells, n_rows))
                row.update(disparity=0.0, gap_bound=0.0)
        return shares

    @staticmethod
    def _share(count: float, n_rows: int) -> float:
        return min(max(count / n_rows, 0.0), 1.0)

    def _error(self, share: float, n_cells: float, n_rows: int) -> float:
        """Half of the width of a 95 % interval around a share: the noise of its cells, and the sampling of its rows."""
        sampled = max(share * (1 - share), 1 / n_rows) / n_rows
        return 1.96 * math.sqrt(n_cells * (self.mechanism.sigma / n_rows) ** 2 + sampled)


def _has_one_answer(model: Any) -> bool:
    """Whether what was released is no more than one class, by what the model is made of."""
    if isinstance(model, SyntheticDataClassifier):
        return isinstance(model.estimator_, DummyClassifier)
    if isinstance(model, FairPATEClassifier):
        return isinstance(model.student_, ConstantStudent)
    from skfairdp._networks import is_constant, module_of

    return is_constant(module_of(model.net_)) if hasattr(model, "net_") else False


def _n_values(schema: Schema, name: str) -> int:
    column = schema.columns[name]
    return len(getattr(column, "values", (False, True)))


def _expression(gap: float | None) -> str:
    """A learner. A constraint of fairlearn does not show its bound by itself."""
    learner = "LogisticRegression(max_iter=1000)"
    if gap is not None:
        learner = f"ExponentiatedGradient({learner}, DemographicParity(difference_bound={gap / 2:g}), max_iter=25)"
    return learner


def _result(
    rows: list[dict[str, Any]], schema: Schema, event: DpEvent, delta: float, *, relation: NeighboringRelation,
    n_fits: int, n_rows: int, common: float,
) -> OwnFrontier:  # fmt: skip
    reads = PublicReads()
    reads.note_number_of_rows(n_rows)
    reads.note("names of columns", "read", [*schema.columns], "public")
    reads.note("split by position", "computed", None, "public; a record is in one part only")
    reads.note("schema", "given", None, "public", by=schema)
    privacy = PrivacySpent.of(
        event, delta, protects=relation.protects, neighboring_relation=relation,
        public=public_facts(reads, relation),
    )  # fmt: skip
    # One relation for all points, so that they are compared: who protects a replaced record protects the weaker one.
    columns = [*COLUMNS, "gap_bound", "groups_seen", "accuracy_error"]
    frame = pd.DataFrame(rows).assign(neighboring_relation=str(relation)).reindex(columns=columns)
    record = guarantee_record(relation.protects, relation, delta, privacy.epsilon, n_fits)
    reference = {
        "dataset": rows[0]["dataset"],
        "name": "the commonest class for everybody",
        "private": True,
        "accuracy": common,
        "disparity": 0.0,
        "coverage": 1.0,
    }
    frame["non_dominated"] = mark_non_dominated(frame, [reference])
    frame.attrs.update({"guarantees": [record], **record, "scored_on": "held out", "references": [reference]})
    return OwnFrontier(frame, schema, privacy)
