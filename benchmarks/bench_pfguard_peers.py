"""The marginal-based peers MST, AIM and PrivBayes of the dpmm package, beside PFGuardGenerator, at one ε.

Same split, same public rows, same downstream classifiers and tests as bench_pfguard.py. dpmm pins older versions of
numpy and pandas than skfairdp works with: give an interpreter of its own with --python (for example of a virtual
environment made by ``python -m venv peers; peers/bin/pip install dpmm``).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _common as common
import bench_pfguard as ours

#: Iterations of inference by peer: dpmm's defaults, but for AIM, which does its 1,000 in every one of its rounds.
MODELS = {"MST": 10_000, "AIM": 100, "PrivBayes": 5000}
N_CELLS = 32  # of a column of numbers, cut at quantiles of the public rows

#: Runs in the peers' interpreter: reads a table of cells, fits, and writes synthetic cells.
PEER = """
import json, logging, sys, time, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
try:
    import dpmm
    from dpmm import pipelines
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit()
import pandas as pd
from importlib.metadata import version
task = json.loads(sys.argv[1])
rows = pd.read_csv(task["rows"]).astype("category")
domain = {name: {"categories": list(range(size))} for name, size in task["sizes"].items()}
model = getattr(pipelines, task["model"] + "Pipeline")(
    epsilon=task["epsilon"], delta=task["delta"], proc_epsilon=None, binner_type="uniform", n_jobs=1,
    max_model_size=task["max_model_size"], gen_kwargs={"n_iters": task["iterations"]},
)
started = time.perf_counter()
model.fit(rows, domain=domain, random_state=task["seed"])
fitted = time.perf_counter()
found = {"fit_seconds": fitted - started, "version": version("dpmm")}
for name, given in task["draws"].items():
    if given is None:
        drawn = model.generate(n_records=task["n"], random_state=task["seed"])
    else:
        drawn = model.generate(condition_records=pd.read_csv(given).astype("category"), random_state=task["seed"])
    drawn.to_csv(task["out"] + name, index=False)
print(json.dumps({**found, "sample_seconds": time.perf_counter() - fitted}))
"""


class Cells:
    """A table as cells and back, from the public rows alone: what an unknown value is, is the last cell.

    Numbers are cut at quantiles and come back as a uniform value of their cell. What dpmm leaves open (it merges rare
    cells) is drawn from the column's other synthetic cells, as is what no public value is.
    """

    def __init__(self, public: Any) -> None:
        import numpy as np
        import pandas as pd

        self.public, self.values, self.edges = public, {}, {}
        for name, column in public.items():
            known = column.dropna()
            if pd.api.types.is_numeric_dtype(column) and known.nunique() > N_CELLS:
                self.edges[name] = np.unique(np.quantile(known, np.linspace(0, 1, N_CELLS + 1)))
            else:
                self.values[name] = sorted(known.unique(), key=str)

    def sizes(self) -> dict[str, int]:
        return {
            name: (len(self.edges[name]) - 1 if name in self.edges else len(self.values[name])) + 1
            for name in self.public
        }

    def encode(self, X: Any) -> Any:
        import numpy as np
        import pandas as pd

        out = {}
        for name, column in X.items():
            if name in self.edges:
                inner = self.edges[name][1:-1]
                codes = np.searchsorted(inner, column.fillna(0).to_numpy(), side="right")
                out[name] = np.where(column.isna(), len(inner) + 1, codes)
            else:
                known = self.values[name]
                codes = pd.Categorical(column, categories=known).codes.astype(int)
                out[name] = np.where(codes < 0, len(known), codes)
        return pd.DataFrame(out)

    def decode(self, cells: Any, rng: Any) -> Any:
        import numpy as np
        import pandas as pd

        out = {}
        for name, column in self.public.items():
            drawn = cells[name].to_numpy(float, copy=True)
            if not column.isna().any():  # what no public value is comes never out
                drawn[drawn == self.sizes()[name] - 1] = np.nan
            known = drawn[~np.isnan(drawn)]
            if not len(known):
                known = np.zeros(1)
            drawn[np.isnan(drawn)] = rng.choice(known, int(np.isnan(drawn).sum()))
            codes = drawn.astype(int)
            if name in self.edges:
                edges = self.edges[name]
                inside = np.minimum(codes, len(edges) - 2)
                numbers = rng.uniform(edges[inside], edges[inside + 1])
                if pd.api.types.is_integer_dtype(column):
                    numbers = np.floor(numbers)
                out[name] = np.where(codes > len(edges) - 2, np.nan, numbers)
            else:
                values = np.array([*self.values[name], None], dtype=object)
                out[name] = pd.Series(values[codes])
                if pd.api.types.is_numeric_dtype(column):
                    out[name] = pd.to_numeric(out[name])
                out[name] = out[name].to_numpy()
        return pd.DataFrame(out)


def balanced(y: Any, s: Any, n: int, rng: Any) -> Any:
    """Codes of labels and groups at the rates that PFGuardGenerator samples with balance="group_and_label":
    groups evenly, labels alike in each. The overall label rate is taken as it is, which flatters the peers: they do not
    pay for it.
    """
    import numpy as np
    import pandas as pd

    groups = np.arange(n) % len(set(s))
    return pd.DataFrame({"y": (rng.random(n) < np.mean(y)).astype(int), "s": groups})


def points(arguments: argparse.Namespace, data: str, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield one point for each peer, way of drawing and downstream classifier."""
    import numpy as np
    import pandas as pd

    from skfairdp import metrics

    split, groups = ours.load(data, seed, 0.1 if arguments.quick else 1.0)
    n = 2000 if arguments.quick else ours.N_SYNTHETIC
    cells = Cells(split.X_public)
    table = cells.encode(split.X)
    table["y"] = np.asarray(split.y).astype(int)
    table["s"] = pd.Categorical(split.sensitive_features, categories=groups).codes.astype(int)
    rng = np.random.default_rng(seed)
    table.to_csv(folder / "rows.csv", index=False)
    balanced(split.y, split.sensitive_features, n, rng).to_csv(folder / "balanced.csv", index=False)
    test = {"X_test": split.X_test, "y_test": split.y_test, "sensitive_features": split.sensitive_features_test}
    for model in arguments.models:
        task = {
            "model": model,
            "rows": str(folder / "rows.csv"),
            "sizes": {**cells.sizes(), "y": 2, "s": len(groups)},
            "epsilon": ours.EPSILON,
            "delta": ours.DELTA,
            "seed": seed,
            "n": n,
            "draws": {"as it is": None, "balanced": str(folder / "balanced.csv")},
            "out": str(folder / "drawn "),
            "max_model_size": arguments.max_model_size,
            "iterations": MODELS[model],
        }
        found = run_peer(arguments.python, task, arguments.timeout)
        for way in task["draws"] if "failed" not in found else ():
            drawn = pd.read_csv(folder / f"drawn {way}")
            X, y = cells.decode(drawn, rng), drawn["y"].astype(int).to_numpy()
            s = np.array(groups, dtype=object)[drawn["s"].astype(int)]
            for learner, classifier in ours.learners().items():
                yield {
                    "method": f"{model}, {way}",
                    "learner": learner,
                    "epsilon_certified": ours.EPSILON,
                    "fit_seconds": found["fit_seconds"],
                    "kl": metrics.kl_to_uniform(s, groups=groups),
                    "version": found["version"],
                    **ours.scores_of(classifier, X, y, test),
                }
        if "failed" in found:
            yield {"method": model, "failed": found["failed"]}


def run_peer(python: str, task: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Fit and draw in the peers' interpreter."""
    try:
        done = subprocess.run(
            [python, "-c", PEER, json.dumps(task)], capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not finished after {timeout:.0f} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:200]}
    found = dict(json.loads(done.stdout.strip().splitlines()[-1]))
    if "missing" in found:
        print(
            f"{python} has no dpmm ({found['missing']}). Its pins conflict with those of skfairdp: install it into an "
            "environment of its own (python -m venv peers; peers/bin/pip install dpmm) and pass --python "
            "peers/bin/python. Nothing was measured."
        )
        sys.exit(0)  # the other benchmarks go on
    return found


def main() -> None:
    parser = common.parser(__doc__, "pfguard_peers", seeds=3, first_seed=100)
    parser.add_argument("--data", choices=("adult", "bank", "credit", "synthetic"), default=None)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--python", default=sys.executable, help="interpreter that has dpmm (default: this one)")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds after which a fit is given up")
    parser.add_argument("--max-model-size", type=int, default=80, help="MiB of AIM's model (dpmm's max_model_size)")
    parser.add_argument("--points", type=Path, help="folder for the points of each seed; those found there are kept")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = arguments.data or common.default_data()
    measured: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        measured += [{"seed": seed, **point} for point in points_of(arguments, data, seed)]
    whole = [point for point in measured if "failed" not in point]
    rows = ours.summarise(whole)
    common.print_table(
        ["method", "learner", "AUROC", "EO gap", "Dem gap", "accuracy", "KL", "fit s"],
        [
            [row["method"], row["learner"]]
            + [
                common.plus_minus(row[name])
                for name in (
                    "auroc",
                    "equalized_odds_disparity",
                    "demographic_disparity",
                    "accuracy",
                    "kl",
                    "fit_seconds",
                )
            ]
            for row in rows
        ],
    )
    common.save(
        arguments,
        data=data,
        epsilon=ours.EPSILON,
        delta=ours.DELTA,
        n_cells=N_CELLS,
        max_model_size=arguments.max_model_size,
        iterations=MODELS,
        peer_version=whole[0]["version"] if whole else None,
        rows=rows,
        failed=[point for point in measured if "failed" in point],
    )


def points_of(arguments: argparse.Namespace, data: str, seed: int) -> list[dict[str, Any]]:
    """Return the points of one seed, measured now or found in ``--points``."""
    known: list[dict[str, Any]] = []
    file = arguments.points / f"{data}-{seed}.json" if arguments.points else None
    if file is not None and file.exists():
        known = json.loads(file.read_text())
    missing = [model for model in arguments.models if not any(p["method"].startswith(model) for p in known)]
    for model in missing:
        one = argparse.Namespace(**{**vars(arguments), "models": [model]})
        with tempfile.TemporaryDirectory() as folder:
            known += list(points(one, data, seed, Path(folder)))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(known))
        print(f"{data}, seed {seed}, {model}: done", flush=True)
    return [point for point in known if any(point["method"].startswith(model) for model in arguments.models)]


if __name__ == "__main__":
    main()
