"""What a user would glue together instead: other libraries' private models behind other libraries' post-processing.

A rival gets the same rows, ε and δ, and its best of several settings, chosen on the test rows: that flatters
it. Its post-processing sees no private label: it is fitted on the public rows or, without any, on rows of our
generator at a part of the budget, with labels drawn from the rival's own scores. Budgets of two Gaussian releases
are split by their squared cost, for DP-SGD as well, whose sum is not proven in that way: that flatters it too.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _arena_task import DELTA, Answer, Task, Unit, answer

#: Learning rate, clipping bound and epochs of Opacus; batches of 512 and 64 tanh units throughout.
OPACUS = ((2.0, 1.0, 10), (0.5, 1.0, 10))
#: Learning rate and rounds of DP-EBM; the first is its default.
EBM = ((0.01, 300), (1.0, 30))
#: The same for amounts, of which more rounds do worse: every round pays for the whole range of the amount.
EBM_OF_AMOUNTS = ((0.01, 300), (0.1, 10), (0.1, 5), (0.3, 1))
#: Part of the squared cost that pays for rows to fit the post-processing on, where no rows are public.
FOR_ROWS = 0.2
N_ROWS = 10_000

#: Scores of two kinds of rows: those to fit post-processing on, and the test rows.
Scores = tuple[Any, Any]

#: Runs in the peers' interpreter: one task a line, one answer a line.
PEER = """
import json, sys, traceback, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
from importlib.metadata import version

def versions(task):
    return {name: version(name) for name in ("interpret-core", "error-parity")}

def dp_ebm(task):
    from interpret.privacy import DPExplainableBoostingClassifier
    types = {name: float if kind == "continuous" else str for name, kind in task["types"].items()}
    tables = [pd.read_csv(path, dtype=types, keep_default_na=False) for path in task["tables"]]
    model = DPExplainableBoostingClassifier(
        feature_types=[*task["types"].values()], privacy_bounds={int(k): v for k, v in task["bounds"].items()},
        epsilon=task["epsilon"], delta=task["delta"], learning_rate=task["rate"], max_rounds=task["rounds"],
        random_state=None, n_jobs=1,
    ).fit(tables[0].to_numpy(dtype=object), np.load(task["labels"]))
    np.savez(task["out"], *[model.predict_proba(t.to_numpy(dtype=object))[:, 1] for t in tables[1:]])

def dp_ebm_amounts(task):
    from interpret.privacy import DPExplainableBoostingRegressor
    rows = np.load(task["rows"])
    low, high = rows["X"].min(0), rows["X"].max(0)
    model = DPExplainableBoostingRegressor(
        feature_types=["continuous"] * len(low), privacy_bounds=dict(enumerate(zip(low, high))),
        privacy_target_min=task["bounds"][0], privacy_target_max=task["bounds"][1],
        epsilon=task["epsilon"], delta=task["delta"], learning_rate=task["rate"], max_rounds=task["rounds"],
        random_state=None, n_jobs=1,
    ).fit(rows["X"], rows["y"])
    np.savez(task["out"], model.predict(rows["X_test"]))

def error_parity(task):
    from error_parity import RelaxedThresholdOptimizer
    rows = np.load(task["rows"])
    found = []
    for tolerance in task["tolerances"]:
        fair = RelaxedThresholdOptimizer(
            predictor=lambda X: X[:, 0], constraint=task["constraint"], tolerance=tolerance, seed=task["seed"]
        ).fit(X=rows["X"], y=rows["y"], group=rows["s"])
        found.append(np.asarray(fair(rows["X_test"], group=rows["s_test"])).astype(int))
    np.savez(task["out"], *found)

for line in sys.stdin:
    task = json.loads(line)
    try:
        answer = {"done": globals()[task["work"]](task)}
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"[:200]}
    print("answer " + json.dumps(answer), flush=True)
"""


@cache
def peers(python: str) -> Any:
    """The peers' interpreter, started once."""
    return subprocess.Popen(
        [python, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def in_peers(python: str, work: str, **details: Any) -> Any:
    """Do some work in the peers' interpreter."""
    process = peers(python)
    process.stdin.write(json.dumps({"work": work, **details}) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("answer "):
            answer = json.loads(line.removeprefix("answer "))
            if "failed" in answer:
                raise RuntimeError(answer["failed"])
            return answer["done"]
    raise RuntimeError(f"{python} ended before it answered")


def arrays_of(python: str, work: str, folder: Path, **details: Any) -> list[Any]:
    """The arrays that some work in the peers' interpreter comes to."""
    out = folder / "out.npz"
    in_peers(python, work, out=str(out), **details)
    with np.load(out) as found:
        return [found[name] for name in found.files]


def peer_versions(python: str | None) -> dict[str, str]:
    """Versions of what the peers' interpreter has."""
    from importlib.metadata import version

    found = {name: version(name) for name in ("opacus", "fairlearn")}
    return found if python is None else found | in_peers(python, "versions")


# ---------------------------------------------------------------- post-processing


def glued(task: Task, name: str, setting: str, epsilon: float | None, rows: Any, scores: Scores) -> Iterator[Answer]:
    """A model alone, and behind every post-processing there is; ``rows`` are features, groups and maybe labels."""
    X, s, y = rows
    before, test = scores
    if y is None:
        y = (np.random.default_rng(task.seed).random(len(before)) < before).astype(int)
    shared = {"epsilon": epsilon, "setting": setting}
    yield answer(task, name, None, predicted=(test >= 0.5).astype(int), scores=test, **shared)
    if min(len(np.unique(y[s == group])) for group in np.unique(s)) < 2:
        return  # nothing can be fitted to labels of one kind
    for gap, predicted in thresholds(task, before, y, s, test):
        yield answer(task, f"{name} + ThresholdOptimizer", gap, predicted=predicted, sees="aware", **shared)
    if task.peers is not None:
        for gap, predicted in relaxed(task, before, y, s, test):
            yield answer(task, f"{name} + error-parity", gap, predicted=predicted, sees="aware", **shared)
    for gap, predicted in reduced(task, X, y, s):
        yield answer(task, f"{name} + ExponentiatedGradient", gap, predicted=predicted, **shared)


def thresholds(task: Task, before: Any, y: Any, s: Any, test: Any) -> Iterator[tuple[float, Any]]:
    """fairlearn's ThresholdOptimizer; it reads the group of each row."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def predict_proba(self, X: Any) -> Any:
            return np.column_stack([1 - np.asarray(X)[:, 0], np.asarray(X)[:, 0]])

        def predict(self, X: Any) -> Any:
            return (self.predict_proba(X)[:, 1] >= 0.5).astype(int)

    exact = task.constraint == "equalized_odds"  # fairlearn relaxes all constraints but this one
    for gap in (0.0,) if exact else task.gaps:
        made = ThresholdOptimizer(
            estimator=Given(), constraints=task.constraint, prefit=True, predict_method="predict_proba",
            tol=None if exact else gap,
        )  # fmt: skip
        made.fit(before[:, None], y, sensitive_features=s)
        yield gap, made.predict(test[:, None], sensitive_features=task.test[2], random_state=task.seed)


def relaxed(task: Task, before: Any, y: Any, s: Any, test: Any) -> Iterator[tuple[float, Any]]:
    """Relaxed thresholds of error-parity; they read the group of each row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = {"X": before[:, None], "y": y, "s": s, "X_test": test[:, None], "s_test": task.test[2]}
        np.savez(folder / "rows.npz", **rows)
        given = {"constraint": task.constraint, "tolerances": task.gaps, "seed": task.seed}
        found = arrays_of(task.peers, "error_parity", folder, rows=str(folder / "rows.npz"), **given)
    yield from zip(task.gaps, found, strict=True)


def reduced(task: Task, X: Any, y: Any, s: Any) -> Iterator[tuple[float, Any]]:
    """fairlearn's reduction around a logistic regression; its rule does not see the group."""
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    moment = {"demographic_parity": DemographicParity, "equalized_odds": EqualizedOdds}[task.constraint]
    for gap in task.gaps[1::2] or task.gaps:  # each group's rate against that of all rows: about half of the gap
        made = ExponentiatedGradient(
            LogisticRegression(solver="newton-cholesky"), moment(difference_bound=gap / 2), max_iter=15
        )
        made.fit(X, y, sensitive_features=s)
        yield gap, np.asarray(made.predict(task.test[0], random_state=task.seed)).astype(int)


# ---------------------------------------------------------------- rows to fit it on


def shared_budget(task: Task, rows: str) -> tuple[float, float]:
    """ε of the model, and of the rows for post-processing where no rows are public."""
    from dp_accounting import GaussianDpEvent

    from skfairdp.privacy import epsilon_of, gdp_mu

    if rows == "public":
        return task.epsilon, 0.0
    mu = gdp_mu(task.epsilon, DELTA)
    first, second = (epsilon_of(GaussianDpEvent(1 / (mu * share**0.5)), DELTA) for share in (1 - FOR_ROWS, FOR_ROWS))
    return first, second


def rows_for(task: Task, rows: str, epsilon: float) -> Any:
    """Public rows, or rows of our generator."""
    if rows == "public":
        return task.unlabelled
    return generated(task, epsilon)


def generated(task: Task, epsilon: float) -> Any:
    """Rows of our generator, their labels and groups among them."""
    from skfairdp import PFGuardGenerator

    made = PFGuardGenerator(epsilon=epsilon, delta=DELTA, schema=task.schema, balance=None, random_state=task.seed)
    return made.fit(task.split.X).sample(2000 if task.quick else N_ROWS, random_state=task.seed)


# ---------------------------------------------------------------- private models


def opacus(task: Task, rows: str) -> Iterator[Answer]:
    """Opacus' DP-SGD on the network that ours has."""
    epsilon, for_rows = shared_budget(task, rows)
    table = rows_for(task, rows, for_rows)
    X, s = task.features(table), task.groups(table)
    for rate, bound, epochs in OPACUS[:1] if task.quick else OPACUS:
        network = opacus_network(task, epsilon, rate, bound, 2 if task.quick else epochs)
        setting = f"learning rate {rate:g}, clipping {bound:g}, {epochs} epochs"
        yield from glued(task, "Opacus", setting, task.epsilon, (X, s, None), (network(X), network(task.test[0])))


def opacus_network(task: Task, epsilon: float, rate: float, bound: float, epochs: int) -> Callable[[Any], Any]:
    """Train through Opacus' public interface, and return what scores rows."""
    import torch
    from opacus import PrivacyEngine

    X = torch.tensor(np.asarray(task.features(task.split.X))).float()
    y = torch.tensor(task.labels(task.split.X))
    with torch.random.fork_rng():
        torch.manual_seed(task.seed)
        net = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=rate)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=min(512, len(X)))
        private, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
            module=net, optimizer=optimizer, data_loader=loader, target_epsilon=epsilon, target_delta=DELTA,
            epochs=epochs, max_grad_norm=bound,
        )  # fmt: skip
        for _ in range(epochs):
            for rows, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(private(rows), labels).backward()
                optimizer.step()

    def scores(rows: Any) -> Any:
        with torch.no_grad():
            return torch.softmax(net(torch.tensor(np.asarray(rows)).float()).double(), dim=1)[:, 1].numpy()

    return scores


def dp_ebm(task: Task, rows: str) -> Iterator[Answer]:
    """interpret's private boosting of single features, which gets raw columns and their public ranges."""
    from skfairdp.schema import Number

    if task.peers is None:
        return
    epsilon, for_rows = shared_budget(task, rows)
    table = rows_for(task, rows, for_rows)
    X, s = task.features(table), task.groups(table)
    columns = {name: task.schema.columns[name] for name in task.schema.features}
    numbers = [isinstance(column, Number) for column in columns.values()]
    details = {
        "types": {name: "continuous" if n else "nominal" for name, n in zip(columns, numbers, strict=True)},
        "bounds": {j: (c.low, c.high) for j, c in enumerate(columns.values()) if numbers[j]},
    }
    for rate, rounds in EBM[:1] if task.quick else EBM:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            paths = [str(folder / f"{j}.csv") for j in range(3)]
            for path, one in zip(paths, (task.split.X, table, task.split.X_test), strict=True):
                as_read(one, columns, numbers).to_csv(path, index=False)
            np.save(folder / "y.npy", task.labels(task.split.X))
            scores = arrays_of(
                task.peers, "dp_ebm", folder, tables=paths, labels=str(folder / "y.npy"), epsilon=epsilon, delta=DELTA,
                rate=rate, rounds=min(rounds, 5) if task.quick else rounds, **details,
            )  # fmt: skip
        setting = f"learning rate {rate:g}, {rounds} rounds"
        yield from glued(task, "DP-EBM", setting, task.epsilon, (X, s, None), (scores[0], scores[1]))


def as_read(table: Any, columns: Any, numbers: list[bool]) -> Any:
    """Numbers within their bounds, and everything else as text."""
    import pandas as pd

    found = {}
    for (name, column), number in zip(columns.items(), numbers, strict=True):
        if number:
            known = pd.to_numeric(table[name], errors="coerce").astype(float).clip(column.low, column.high)
            found[name] = known.fillna((column.low + column.high) / 2)
        else:
            found[name] = table[name].astype(str)
    return pd.DataFrame(found)


def our_dpsgd(task: Task, rows: str) -> Iterator[Answer]:
    """Our DP-SGD behind other libraries' post-processing."""
    from skfairdp import FairDPSGDClassifier

    epsilon, for_rows = shared_budget(task, rows)
    table = rows_for(task, rows, for_rows)
    model = FairDPSGDClassifier(epsilon=epsilon, delta=DELTA, lam=0.0, schema=task.schema, random_state=task.seed).fit(
        task.split.X
    )
    scores = tuple(model.predict_proba(one)[:, 1] for one in (table, task.split.X_test))
    yield from glued(
        task, "our DP-SGD", "defaults", task.epsilon, (task.features(table), task.groups(table), None), scores
    )


def our_generator(task: Task, _: str) -> Iterator[Answer]:
    """A logistic regression on rows of our generator, behind post-processing on the same rows and their labels."""
    table = generated(task, task.epsilon)
    rows = task.features(table), task.groups(table), task.labels(table)
    yield from on_rows(task, "our generator", task.epsilon, rows)


def without_privacy(task: Task, _: str) -> Iterator[Answer]:
    """The same on the private rows themselves."""
    table = task.split.X
    rows = task.features(table), task.groups(table), task.labels(table)
    yield from on_rows(task, "no privacy", None, rows)
    yield answer(task, "most frequent class", None, None, np.full(len(task.test[1]), int(rows[2].mean() >= 0.5)))


def on_rows(task: Task, name: str, epsilon: float | None, rows: Any) -> Iterator[Answer]:
    """A logistic regression, and all that can be put behind it."""
    from sklearn.linear_model import LogisticRegression

    X, _, y = rows
    if len(np.unique(y)) < 2:  # few private rows of the other class, and much noise
        proba = [np.full(len(one), float(y[0])) for one in (X, task.test[0])]
    else:
        learner = LogisticRegression(solver="newton-cholesky").fit(X, y)
        proba = [learner.predict_proba(one)[:, 1] for one in (X, task.test[0])]
    yield from glued(task, name, "logistic regression", epsilon, rows, (proba[0], proba[1]))


UNITS = (
    Unit("Opacus", "glue", "none", lambda task: opacus(task, "none")),
    Unit("Opacus, public rows", "glue", "public", lambda task: opacus(task, "public")),
    Unit("DP-EBM", "glue", "none", lambda task: dp_ebm(task, "none")),
    Unit("DP-EBM, public rows", "glue", "public", lambda task: dp_ebm(task, "public")),
    Unit("our DP-SGD, glued", "glue", "none", lambda task: our_dpsgd(task, "none")),
    Unit("our DP-SGD, glued, public rows", "glue", "public", lambda task: our_dpsgd(task, "public")),
    Unit("our generator, glued", "glue", "none", lambda task: our_generator(task, "none")),
)
REFERENCE = Unit("no privacy", "no privacy", "none", lambda task: without_privacy(task, "none"))
