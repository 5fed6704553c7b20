"""``audit``: is the ε that an estimator claims contradicted by what its fits show? For any scikit-learn estimator."""

import html
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from skfairdp import privacy
from skfairdp._typing import ArrayLike, Floats
from skfairdp._utils import column_names, html_table, page, section, write_text
from skfairdp.inspection import _audit as bounds, _audit_worlds as worlds
from skfairdp.inspection._audit_worlds import ABSENT, OF_GROUPS, RELATIONS, Canary, Claim, Seen, World, make_world
from skfairdp.privacy import NeighboringRelation as Relation, rounded_down, rounded_up
from skfairdp.schema import Schema

_ASSUMES = {"counts": "nothing of the noise", "gaussian": "scores that are Gaussian with one variance in both worlds"}
_LEAST_RUNS = 20
#: Of a record, of its attribute and of a subject: something else is in the place of what was there.
_REPLACED = tuple(map(str, (Relation.REPLACE_ONE, Relation.REPLACE_ATTRIBUTE, Relation.REPLACE_SUBJECT)))
#: A claim for the first is one for the second, with the same figures.
_SAME = (
    (Relation.REPLACE_ONE, Relation.REPLACE_ATTRIBUTE), (Relation.ADD_OR_REMOVE_ONE, Relation.ZERO_OUT),
    (Relation.REPLACE_SUBJECT, Relation.ZERO_OUT_SUBJECT),
)  # fmt: skip


@dataclass(frozen=True)
class EstimatorAudit:
    """What an audit found about an estimator's claim. **Not private**: it was computed from the exact rows.

    :func:`audit` returns it. A bound above the claim refutes it. A bound below proves nothing: another canary, or more
    runs, may prove more.

    Attributes
    ----------
    estimator : str
        Name of its class.
    epsilon_lower : float
        Lower bound on the ε of every (ε, ``delta``) guarantee that the estimator can have.
    claim : float
        The ε that it claims.
    delta : float
    confidence : float
        Of ``epsilon_lower``.
    relation : str
        Which tables were compared; ``claim`` is what is claimed for these.
    method : {"counts", "gaussian"}
    assumes : str
        What the bound assumes, in words.
    canary : str
        Name of the canary that gave the bound.
    n_runs : int
        Runs in each world that gave the bound; 1 for an audit of one run.
    n_canaries : int
        Canaries in each of these runs.
    n_fits : int
        Fits in all.
    reach : float
        The largest ε that this many runs could have proved, had the attack never failed. Below the claim, no fault can
        be seen, however large, and a warning says so. Just above it, only an estimator without noise is seen.
    """

    estimator: str
    epsilon_lower: float
    claim: float
    delta: float
    confidence: float
    relation: str
    method: str
    assumes: str
    canary: str
    n_runs: int
    n_canaries: int
    n_fits: int
    reach: float
    private: ClassVar[bool] = False

    @property
    def violates(self) -> bool:
        """Whether the claim is refuted at the audit's confidence."""
        return self.epsilon_lower > self.claim

    @property
    def ratio(self) -> float:
        """``epsilon_lower / claim``; above 1 refutes the claim."""
        if self.claim == 0:
            return math.inf if self.epsilon_lower > 0 else 0.0
        return self.epsilon_lower / self.claim

    def __str__(self) -> str:
        verdict = "refutes" if self.violates else "does not refute"
        runs = f"{self.n_runs} runs with each of two tables" if self.n_runs > 1 else "one run"
        canaries = f"{self.n_canaries} canaries" if self.n_runs == 1 else f"canary: {self.canary}"
        return (
            f"An audit of {self.estimator} {verdict} its claim of epsilon={rounded_up(self.claim)} at "
            f"delta={self.delta:g} ({self.relation}). With {self.confidence:.0%} confidence the true epsilon is at "
            f"least {rounded_down(self.epsilon_lower)}, by {runs} ({canaries}), assuming {self.assumes}. {self._seen()}"
        )

    def _seen(self) -> str:
        if self.reach < self.claim:
            return f"No fault can be seen: so many runs prove at most {rounded_up(self.reach)}, less than the claim."
        if math.isinf(self.reach):
            return "Smaller faults need more runs."
        return f"A fault that leaves the true epsilon below {rounded_down(self.reach)} is not seen by so many runs."

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One page that needs no other file: what was found in a sentence, then the figures.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write the page; None only returns it.

        Returns
        -------
        page : str
            The page.
        """
        whole = page(f"Audit of {self.estimator}", f"<h2>Audit of {html.escape(self.estimator)}</h2>{self._html}")
        if path is not None:
            write_text(path, whole)
        return whole

    def _repr_html_(self) -> str:
        return section(self._html)

    @property
    def _html(self) -> str:
        rows = [
            ("claimed ε", f"{rounded_up(self.claim)} at δ = {self.delta:g}"),
            ("true ε, at least", f"{rounded_down(self.epsilon_lower)} at {self.confidence:.0%} confidence"),
            ("claim", "refuted" if self.violates else "not refuted"),
            ("neighbouring tables", self.relation),
            ("canary", self.canary),
            ("runs with each table", str(self.n_runs)),
            ("most that so many runs can prove", rounded_down(self.reach)),
            ("assumption", self.assumes),
        ]
        return f"<p>{html.escape(str(self))}</p>{html_table(('', 'value'), rows)}"


def audit(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    canaries: Sequence[Canary] | None = None,
    relation: str | None = None,
    sensitive_features: ArrayLike | None = None,
    subject: ArrayLike | str | None = None,
    fit_params: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    n_runs: int = 200,
    method: str = "counts",
    score: Callable[[Any], Any] | None = None,
    attributes: bool = True,
    confidence: float = 0.95,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> EstimatorAudit:
    """Fit an estimator many times on neighbouring tables and bound its ε from below by what the fits show.

    **Guarantee.** Where the estimator is (ε, δ)-private for the relation, ``epsilon_lower`` exceeds that ε with
    probability at most ``1 - confidence``, whatever the canaries and the score; under the assumption that ``method``
    names. A bound above the claim refutes the claim. A bound below certifies nothing. The result was computed from the
    exact rows, and every run is a release of its own: **it is not private**, so audit with rows that may be shown.

    Any estimator with ``fit`` and ``get_params`` will do, of this package or of another. The claim is read from
    ``privacy_``, else from ``epsilon_spent_``, else from its parameters ``epsilon`` and ``delta``.

    With ``n_runs > 1`` there are two worlds that differ in one record. Of each canary, runs of both worlds teach a
    score to tell them apart, by everything that a fit shows: predictions at the canary and at a few rows, all numeric
    fitted attributes, their shapes and dtypes, errors, and kinds of warnings. The canary that is told apart best is
    then judged on ``n_runs`` new runs in each world. With ``n_runs=1`` all canaries are in one table, each in one of
    its two forms by a fair coin, and one fit is asked which.

    Parameters
    ----------
    estimator : estimator
        Not fitted; clones are fitted. Its noise must differ from fit to fit: where it, or a part of it, has a
        ``random_state`` and no ``noise_seed``, each fit gets another one.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows that all runs have in common.
    y : array-like of shape (n_rows,)
        Their labels.
    canaries : sequence of Canary, default=None
        None, many runs: the first row with another label, and records ten times as far out as any value of X. None, one
        run: other labels for half of the rows, at most 1000. None where the attribute is protected: another group.
    relation : str, default=None
        ``"replace one record"``, ``"add or remove one record"``, ``"replace one sensitive attribute"`` or ``"replace
        one record by a null record"``, or one of subjects; it chooses canaries where none are given. None takes what
        ``privacy_`` says, else the first. For a null record the row is absent, with ``public_n_rows`` set to the number
        of rows of ``X``. Where that cannot be set, or canaries have two forms, a record is replaced, and the claim is
        carried over to that: by :func:`~skfairdp.privacy.attribute_event`, or for two records by
        :func:`~skfairdp.privacy.group_privacy`. A claim that says nothing about the relation is an error.
    sensitive_features : array-like of shape (n_rows,), default=None
        Groups, passed to ``fit``.
    subject : array-like of shape (n_rows,) or str, default=None
        One id per row, or the column of X that holds it; None is that of a schema of the estimator, where it names one.
        Passed to ``fit``: a canary then takes the place of all rows of the subject of its row, and
        relations are those of subjects.
    fit_params : mapping, default=None
        Further arguments of ``fit``, the same in every run; arrays with a value for each row are not changed.
    epsilon, delta : float, default=None
        The claim, for ``relation``, where the estimator does not state it or another is to be judged. δ alone asks for
        the ε at it that ``privacy_`` states; it is 0 where nobody names it.
    n_runs : int, default=200
        Runs in each world that are judged. A third as many, at least 20, are made before for each canary.
    method : {"counts", "gaussian"}, default="counts"
        ``"counts"`` assumes nothing, and cannot prove more than ``reach``, which grows with the logarithm of
        ``n_runs``; a warning says where that is below the claim. ``"gaussian"`` assumes that the score is Gaussian with
        one variance in both worlds, as a linear function of values with Gaussian noise is, and proves far more: for a
        ``score`` that is such a function.
    score : callable, default=None
        ``score(model)`` returns a number that is larger where the second form was in, or a vector of what an attacker
        sees, from which the score is learned. For one run, a number for each canary.
    attributes : bool, default=True
        Whether the attacker sees fitted attributes beside predictions. They are part of what ε covers.
    confidence : float, default=0.95
        Of the limits, in (0, 1).
    random_state : int, RandomState or None, default=None
        Seeds of the runs, coins, and the learned score.
    n_jobs : int or None, default=None
        Fits at a time, by joblib.

    Returns
    -------
    EstimatorAudit
        The claim, and what the runs prove.

    Raises
    ------
    ValueError
        No claim is found, the noise is seeded, a ledger would be charged, canaries do not fit the relation, or a
        parameter is out of range.

    Examples
    --------
    Noise of the right scale on two counts of which a changed label moves both, and noise that is too small:

    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from skfairdp.inspection import audit
    >>> class Counter(BaseEstimator):
    ...     def __init__(self, epsilon=1.0, moves=2, random_state=None):
    ...         self.epsilon, self.moves, self.random_state = epsilon, moves, random_state
    ...     def fit(self, X, y):
    ...         noise = np.random.default_rng(self.random_state).laplace(scale=self.moves / self.epsilon, size=2)
    ...         self.counts_ = np.bincount(y, minlength=2) + noise
    ...         return self
    >>> X, y = np.zeros((20, 1)), np.arange(20) % 2
    >>> audit(Counter(), X, y, random_state=0).violates
    False
    >>> audit(Counter(moves=0.5), X, y, random_state=0).violates
    True
    """
    _check(estimator, n_runs, method, confidence, relation)
    rng = check_random_state(random_state)
    groups = None if sensitive_features is None else np.asarray(sensitive_features)
    world = World(X if hasattr(X, "iloc") else np.asarray(X), np.asarray(y), groups, _ids(estimator, X, subject))
    runner = _Runner(estimator, world, dict(fit_params or {}), rng, n_jobs, attributes, score)
    claim, at_delta, relation = _claimed(runner, epsilon, delta, relation, canaries)
    judge, usual = (_many_runs, worlds.default_canaries) if n_runs > 1 else (_one_run, _half_of_the_rows)
    given = _checked(usual(world, relation) if canaries is None else list(canaries), relation, len(world.y))
    found = judge(runner, given, n_runs, method, at_delta, confidence)
    if found["reach"] < claim:
        said = _NO_REACH.format(reach=rounded_up(found["reach"]), claim=rounded_up(claim))
        warnings.warn(said, UserWarning, stacklevel=2)
    return EstimatorAudit(
        type(estimator).__name__, claim=claim, delta=at_delta, confidence=confidence, relation=relation, method=method,
        assumes=_ASSUMES[method], n_runs=n_runs, n_fits=runner.n_fits, **found,
    )  # fmt: skip


def _ids(estimator: Any, X: Any, subject: ArrayLike | str | None) -> "pd.Series[Any] | None":
    """Whose row each is: as given, else by the schema of the estimator that names a subject."""
    if subject is None:
        named = [getattr(part, "subject", None) for part in estimator.get_params().values() if isinstance(part, Schema)]
        subject = next(filter(None, named), None)
    if subject is None:
        return None
    if isinstance(subject, str):
        if subject not in (column_names(X) or ()):
            raise ValueError(
                f"subject={subject!r} of audit names no column of X. Give a column of X, or one id per row."
            )
        subject = X[subject]
    return pd.Series(subject, name=getattr(subject, "name", None)).astype("category").reset_index(drop=True)


def _claimed(
    run: "_Runner", epsilon: float | None, delta: float | None, relation: str | None, canaries: Sequence[Canary] | None
) -> tuple[float, float, str]:
    """ε, δ and relation to judge: as given, else as a fit on the rows of the audit states them. A claim for a null
    record is judged with a record that is absent, where the estimator can be told how many rows there are; else with a
    replaced one, and what is claimed of that."""
    name = type(run.estimator).__name__
    stated, error = run.stated()
    if error is not None and stated.epsilon is None and epsilon is None:
        raise ValueError(f"{name} does not fit the rows of the audit: {error}")
    own = stated.relation if stated.relation in RELATIONS else None
    if epsilon is not None:  # is claimed for the relation that is given with it
        stated, own = Claim(epsilon, stated.delta), relation or own
    at_delta = delta if delta is not None else (stated.delta or 0.0)
    if stated.epsilon is None:
        raise ValueError(f"{name} states no epsilon. Give its claim with the 'epsilon' argument.")
    if not stated.epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0. Got {stated.epsilon!r} instead.")
    at_stated = at_delta == stated.delta or stated.event is None
    said = float(stated.epsilon) if at_stated else privacy.epsilon_of(stated.event, at_delta)
    claim = Claim(said, at_delta, own or relation or _REPLACED[0], stated.event)
    judged = relation or str(claim.relation)
    if judged == Relation.ZERO_OUT and not _declares_rows(run, claim, canaries):
        judged = _REPLACED[0]
    return *_carried_over(name, claim, judged), judged


def _declares_rows(runner: "_Runner", claim: Claim, canaries: Sequence[Canary] | None) -> bool:
    """Whether a null record can be a record that is absent, at a declared number of rows and the same cost."""
    n_rows = len(runner.world.y)
    if (
        claim.relation not in ABSENT
        or any(canary.first is not None and canary.second is not None for canary in canaries or ())
        or any(np.ndim(value) and len(value) == n_rows for value in runner.fit_params.values())  # one for each row
    ):
        return False
    # The same, told how many rows there are, whichever are absent; where a part states it already, that stays.
    names = runner.estimator.get_params(deep=True)
    told = {name: value or n_rows for name, value in names.items() if name.split("__")[-1] == "public_n_rows"}
    declared = replace(runner, estimator=clone(runner.estimator).set_params(**told))
    stated, _ = declared.stated()
    runner.n_fits += 1
    if stated.relation != Relation.ADD_OR_REMOVE_ONE or (claim.event is not None and stated.event != claim.event):
        return False
    runner.estimator = declared.estimator
    return True


def _carried_over(name: str, claim: Claim, judged: str) -> tuple[float, float]:
    """ε and δ for the pairs of tables that are judged. From one record to another one it is two steps by none."""
    epsilon, delta, own = float(claim.epsilon or 0.0), float(claim.delta or 0.0), str(claim.relation)
    if own == judged or (own, judged) in _SAME:
        return epsilon, delta
    if own not in ABSENT or judged not in _REPLACED:
        raise ValueError(
            f"{name} claims nothing for relation={judged!r}, but for {own!r}. Leave 'relation' out, or give the claim "
            "to judge with 'epsilon'."
        )
    if claim.event is None:
        return privacy.group_privacy(epsilon, delta, 2)
    return privacy.epsilon_of(privacy.attribute_event(claim.event, own), delta), delta


_NO_REACH = (
    "These runs prove an epsilon of {reach} at most, which is below the claim of {claim}: no fault can be seen, "
    "however large. Raise 'n_runs' (in one run: give more canaries), or assume more by method='gaussian' with a score."
)


# ---------------------------------------------------------------- runs


@dataclass
class _Runner:
    """Fits clones on tables that it is given, and shows what is seen of them."""

    estimator: Any
    world: World
    fit_params: dict[str, Any]
    rng: Any
    n_jobs: int | None
    attributes: bool
    score: Callable[[Any], Any] | None
    n_fits: int = field(default=0, init=False)

    def stated(self) -> tuple[Claim, str | None]:
        """What a fit on the common rows states, and its error where there is one."""
        probe = self.see([(self.world, None)], worlds.Observer(self.world, [], attributes=False))[0]
        return probe.claim, None if len(probe.numbers) else probe.signature

    def see(self, tables: Sequence[tuple[World, Any]], look: Callable[[Any], Any]) -> list[Seen]:
        """One fit for each table."""
        self.n_fits += len(tables)
        reseed = bool(worlds.seeds_of_noise(self.estimator))
        seeds = [self.seed() if reseed else None for _ in tables]
        see, pairs = delayed(worlds.fit_and_see), zip(tables, seeds, strict=True)
        calls = (see(self.estimator, table, look, seed, self.fit_params) for (table, _), seed in pairs)
        return list(Parallel(n_jobs=self.n_jobs)(calls))

    def both(self, canary: Canary, n_runs: int, look: Callable[[Any], Any]) -> list[list[Seen]]:
        """As many runs of either world."""
        return [
            self.see([(make_world(self.world, [(canary.row, record)]), record)] * n_runs, look)
            for record in (canary.first, canary.second)
        ]

    def seed(self) -> int:
        return int(self.rng.randint(2**31 - 1))


def _many_runs(
    runner: _Runner, given: list[Canary], n_runs: int, method: str, delta: float, confidence: float
) -> dict[str, Any]:
    """Learn a score for each canary, keep the one that tells the worlds apart best, judge it on new runs."""
    look = runner.score or worlds.Observer(runner.world, given, attributes=runner.attributes)
    tried: list[tuple[float, Canary, Callable[[Sequence[Seen]], Floats]]] = []
    for canary in given:
        pilot = runner.both(canary, max(_LEAST_RUNS, n_runs // 3), look)
        if runner.score is not None and all(len(seen.numbers) <= 1 for runs in pilot for seen in runs):
            learned: Any = _GivenScore(pilot)
        else:
            learned = worlds.LearnedScore(pilot, linear=method == "gaussian", seed=runner.seed())
        tried.append((learned.strength, canary, learned))
    _, canary, score = max(tried, key=lambda one: one[0])
    without, with_canary = (score(runs) for runs in runner.both(canary, n_runs, look))
    reach = worlds.rates_epsilon(worlds.rates_of_band(np.zeros(n_runs), np.ones(n_runs), confidence), delta)
    if method == "gaussian":
        found = bounds.audit_matched_filter(without, with_canary, confidence=confidence)
        lower, reach = found.epsilon_lower(delta), math.inf
    else:
        lower = worlds.rates_epsilon(worlds.rates_of_band(without, with_canary, confidence), delta)
    return {"epsilon_lower": lower, "canary": canary.name, "n_canaries": 1, "reach": reach}


class _GivenScore:
    """The number that the caller's score returns; runs that failed are put at 0."""

    def __init__(self, pilot: Sequence[Sequence[Seen]]) -> None:
        self.strength = worlds.chance_of_order(*(self(runs) for runs in pilot))

    def __call__(self, runs: Sequence[Seen]) -> Floats:
        return np.array([np.nan_to_num(float(seen.numbers[0])) if len(seen.numbers) else 0.0 for seen in runs])


def _one_run(
    runner: _Runner, given: list[Canary], n_runs: int, method: str, delta: float, confidence: float
) -> dict[str, Any]:
    """One fit, each canary in one of its forms by a coin; guess the forms."""
    ids = runner.world.ids
    if len({canary.row if ids is None else ids.iloc[canary.row] for canary in given}) < len(given):
        own = "row" if ids is None else "subject"
        raise ValueError(f"In an audit of one run each canary needs a {own} of its own.")
    coins = runner.rng.rand(len(given)) < 0.5
    placed = [(canary.row, canary.second if coin else canary.first) for canary, coin in zip(given, coins, strict=True)]
    table, look = make_world(runner.world, placed), runner.score or partial(_leanings, given, runner.world)
    seen = runner.see([(table, None)], look)[0]
    if len(seen.numbers) != len(given):
        raise ValueError(
            f"score must return a number for each of the {len(given)} canaries of one run. "
            f"Got {len(seen.numbers)} numbers instead."
        )
    scores = np.nan_to_num(seen.numbers, posinf=1e300, neginf=-1e300)
    if method == "gaussian":
        found = bounds.audit_one_run_gaussian(scores, coins, confidence=confidence)
        lower, reach = found.epsilon_lower(delta), math.inf
    else:
        options: dict[str, Any] = {"delta": delta, "curve": "epsilon_delta", "confidence": confidence}
        lower = bounds.audit_one_run_f_dp(scores, coins, **options).epsilon_lower
        reach = bounds.audit_one_run_f_dp(coins.astype(float), coins, **options).epsilon_lower
    return {"epsilon_lower": lower, "canary": "all of one run", "n_canaries": len(given), "reach": reach}


def _half_of_the_rows(world: World, relation: str) -> list[Canary]:
    out = []
    labels = np.unique(world.y if relation not in OF_GROUPS or world.groups is None else world.groups)
    rows = range(len(world.y)) if world.ids is None else world.ids.drop_duplicates().index.tolist()
    for row in rows[: min(len(rows) // 2, 1000)]:
        x = world.X.iloc[row] if hasattr(world.X, "iloc") else world.X[row]
        record = (x, world.y[row], None if world.groups is None else world.groups[row])
        which = 2 if relation in OF_GROUPS else 1
        second = tuple(labels[labels != record[k]][0] if k == which else value for k, value in enumerate(record))
        out.append(Canary(record, None if relation in ABSENT else second, row))
    return out


def _leanings(canaries: Sequence[Canary], world: World, model: Any) -> Floats:
    """How far the model leans to the second form of each canary: log-odds of its label, against the first form's."""
    out = np.zeros(len(canaries))
    for sign, form in ((-1.0, "first"), (1.0, "second")):
        records = [getattr(canary, form) for canary in canaries]
        present = [k for k, record in enumerate(records) if record is not None]
        if present:
            rows = [canaries[k].row for k in present]
            table = make_world(world, [(canaries[k].row, records[k]) for k in present])
            X = table.X.iloc[rows] if hasattr(table.X, "iloc") else table.X[rows]
            proba = np.asarray(model.predict_proba(X), dtype=float)
            at = np.minimum(np.searchsorted(model.classes_, table.y[rows]), proba.shape[1] - 1)
            p = np.clip(proba[np.arange(len(rows)), at], 1e-12, 1 - 1e-12)
            out[present] += sign * (np.log(p) - np.log1p(-p))
    return out


# ---------------------------------------------------------------- checks


def _check(estimator: Any, n_runs: int, method: str, confidence: float, relation: str | None) -> None:
    name = type(estimator).__name__
    if isinstance(n_runs, bool) or not isinstance(n_runs, int | np.integer) or (n_runs != 1 and n_runs < _LEAST_RUNS):
        raise ValueError(f"n_runs must be 1, or an integer of at least {_LEAST_RUNS}. Got {n_runs!r} instead.")
    if method not in _ASSUMES:
        raise ValueError(f"method must be 'counts' or 'gaussian'. Got {method!r} instead.")
    if relation is not None and relation not in RELATIONS:
        raise ValueError(f"relation must be one of {RELATIONS}. Got {relation!r} instead.")
    bounds._check_confidence(confidence)
    parameters = estimator.get_params(deep=True)
    given = {parameter.split("__")[-1] for parameter, value in parameters.items() if value is not None}
    if "noise_seed" in given:
        raise ValueError(f"An audit of {name} needs noise that differs from fit to fit. Leave out its 'noise_seed'.")
    if "ledger" in given or privacy.ledger_in_use() is not None:
        raise ValueError(
            f"An audit of {name} would charge its ledger for every run. Audit it without a 'ledger', and outside of "
            "the block of one."
        )


def _checked(canaries: list[Canary], relation: str, n_rows: int) -> list[Canary]:
    if not canaries:
        raise ValueError("canaries must hold at least one Canary.")
    for canary in canaries:
        absent = (canary.first is None) + (canary.second is None)
        if absent != (relation in ABSENT) or not 0 <= canary.row < n_rows:
            raise ValueError(
                f"A canary for {relation!r} needs "
                + ("one form that is None" if relation in ABSENT else "two forms")
                + f" and a row from 0 to {n_rows - 1}. Got the canary {canary.name!r} at row {canary.row}."
            )
    return canaries
