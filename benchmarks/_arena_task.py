"""One task of the arena: a table split by position, read by its schema, and how an answer to it is measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
import pandas as pd

DELTA = 1e-5
SIZES = (0.70, 0.05, 0.25)
#: The bounds on the gap that every method is swept over, where its knob is a bound.
GAPS = (0.01, 0.02, 0.05, 0.1)
#: Gaps of the hypervolume's corner.
WORST_GAP = 0.2
CONSTRAINTS = ("demographic_parity", "equalized_odds")
RATES = {"demographic_parity": "selection_rate", "equalized_odds": "selection_rate_by_label"}
#: A bound counts as broken that test rows show to be broken by more than this, their own error aside.
BEYOND = 0.02


@dataclass(frozen=True)
class Task:
    """What a method is given: private rows with labels and groups, unlabelled public rows, a schema, ε and δ.

    Parameters
    ----------
    split : PrivatePublicTestSplit
        Raw rows of the whole table, label and groups among them.
    schema : Schema
    epsilon : float or None
        None: nothing is private.
    constraint : str
    seed : int
    peers : str or None
        An interpreter that has DP-EBM and error-parity.
    quick : bool
    """

    split: Any
    schema: Any
    epsilon: float | None
    constraint: str
    seed: int
    peers: str | None
    quick: bool

    @property
    def gaps(self) -> tuple[float, ...]:
        """Bounds to sweep."""
        return GAPS[1:2] if self.quick else GAPS

    @cached_property
    def unlabelled(self) -> pd.DataFrame:
        """Public rows with their groups, without labels."""
        table: pd.DataFrame = self.split.X_public.drop(columns=self.schema.label)
        return table

    @cached_property
    def groups_of_test(self) -> Any:
        """The group column of the test rows, as a method that reads it at prediction gets it."""
        found = self.split.X_test[list(self.schema.groups)]
        return found.iloc[:, 0] if len(self.schema.groups) == 1 else found

    def features(self, table: pd.DataFrame) -> Any:
        """Rows as numbers, by the schema alone."""
        from skfairdp import SchemaEncoder

        return SchemaEncoder(self.schema).fit_transform(table)

    def labels(self, table: pd.DataFrame) -> Any:
        """Labels as 0 and 1."""
        return np.nan_to_num(self.schema.numbers(table)[str(self.schema.label)]).astype(int)

    def groups(self, table: pd.DataFrame) -> Any:
        """Groups as codes; intersections of several columns are groups of their own."""
        numbers = self.schema.numbers(table)
        sizes = [len(getattr(self.schema.columns[name], "values", (False, True))) for name in self.schema.groups]
        read = [np.nan_to_num(numbers[name]).astype(int) for name in self.schema.groups]
        return np.ravel_multi_index(read, sizes)

    def coded(self, predicted: Any) -> Any:
        """Predicted classes as 0 and 1."""
        place = {value: j for j, value in enumerate(self.schema.classes)}
        return np.array([place[value] for value in np.asarray(predicted).tolist()])

    @cached_property
    def test(self) -> tuple[Any, Any, Any]:
        """Features, labels and groups of the test rows."""
        rows = self.split.X_test
        return self.features(rows), self.labels(rows), self.groups(rows)

    def measured(self, predicted: Any, scores: Any = None) -> dict[str, float | None]:
        """Accuracy and both gaps of predictions of the test rows, as 0 and 1, and AUROC where there are scores."""
        from sklearn.metrics import roc_auc_score

        from skfairdp import metrics

        _, truth, groups = self.test
        return {
            "accuracy": float(np.mean(predicted == truth)),
            "demographic_parity": metrics.demographic_disparity(
                None, predicted, sensitive_features=groups, classes=[0, 1]
            ),
            "equalized_odds": metrics.equalized_odds_disparity(truth, predicted, sensitive_features=groups),
            "auroc": None if scores is None else float(roc_auc_score(truth, scores)),
        }

    def parity(self, bound: float) -> Any:
        """The task's constraint with a bound."""
        from skfairdp.fairness import RateParity

        return RateParity(RATES[self.constraint], difference_bound=bound)

    def breaks(self, predicted: Any, bound: float) -> bool:
        """Whether answers to the test rows show, with 95 % confidence, that a bound is broken by more than .02."""
        from skfairdp._judge import Judgement
        from skfairdp.fairness import RateConstraints

        _, truth, groups = self.test
        present = range(int(groups.max()) + 1)
        limit = RateConstraints([self.parity(bound + BEYOND)], list(present), [0, 1], "arena")
        return Judgement.by_rows(limit, groups, truth, predicted).holds == "no"


#: What a unit of work yields: who answers, at which knob, at which ε, and the answers to the test rows.
Answer = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """One piece of work: a release, and every point that follows from it.

    Parameters
    ----------
    name : str
    kind : {"ours", "glue", "no privacy"}
    rows : {"none", "public"}
        Whether it needs public rows.
    answers : callable
        From a task to answers.
    """

    name: str
    kind: str
    rows: str
    answers: Callable[[Task], Iterator[Answer]]


def answer(
    task: Task, method: str, knob: float | None, epsilon: float | None, predicted: Any, *, scores: Any = None,
    sees: str = "blind", setting: str = "defaults",
) -> Answer:  # fmt: skip
    """What is kept of one fitted model."""
    words = {"method": method, "sees": sees, "setting": setting, "knob": knob, "epsilon_certified": epsilon}
    return words | task.measured(predicted, scores)


def tasks(data: str, seed: int, arguments: Any) -> Iterator[Task]:
    """Yield the tasks of one split, for each ε and constraint."""
    table, schema = own_table(arguments) if arguments.table else named_table(data, seed)
    from skfairdp.datasets import train_private_public_test_split

    share = min(1.0, 3000 / len(table)) if arguments.quick else 1.0
    sizes = tuple(share * size for size in SIZES)
    label, groups = table[schema.label], table[schema.groups[0]]
    split = train_private_public_test_split(table, label, groups, sizes=sizes, random_state=seed)
    for constraint in arguments.constraints:
        for epsilon in (None, *arguments.epsilons):
            yield Task(split, schema, epsilon, constraint, seed, arguments.peers_python, arguments.quick)


def named_table(data: str, seed: int) -> tuple[pd.DataFrame, Any]:
    """A public data set, with the ranges and values that its code book has."""
    from skfairdp import Schema

    X, y, groups = common.load_rows(data, seed)
    table = X.assign(label_=np.asarray(y).astype(int), group_=np.asarray(groups).astype(str))
    return table, Schema.from_public(table, label="label_", groups="group_")


def own_table(arguments: Any) -> tuple[pd.DataFrame, Any]:
    """Any CSV with its schema; rows without a label are left out."""
    from skfairdp import Schema

    given = Schema.load(arguments.schema)
    label, groups = arguments.label or given.label, tuple(arguments.group or given.groups)
    schema = Schema(dict(given.columns), label=label, groups=groups, n_rows=given.n_rows)
    if schema.classes is None or len(schema.classes) != 2 or not groups:
        raise SystemExit("The arena is for two classes and at least one column of groups: see --label and --group.")
    table = pd.read_csv(Path(arguments.table).expanduser(), skipinitialspace=True)
    return table.dropna(subset=[label]).reset_index(drop=True), schema
