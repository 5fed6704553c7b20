"""Speed of the batched teacher engines against the loops a user would write, and of dask against loky.

    python benchmarks/bench_teachers.py --help

Rows of the table:

- ``mlp``: MLP teachers (64, 64) trained as one tensor program, against a loop over skorch networks and against
  scikit-learn's MLPClassifier under joblib with two processes. Adam, batches of 32, step size 1e-3, no weight decay,
  the same number of epochs on all sides.
- ``logistic``: batched Newton steps against a loop over scikit-learn's LogisticRegression with its defaults.
- ``dask``: the same scikit-learn teachers on a two-worker LocalCluster and on joblib's loky with two workers.

The sides run in turn within one process; the ratio of their medians is what counts, not the seconds. With --scaled
the slow side trains fewer teachers and its seconds are scaled linearly; the table marks them with a "~".
"""

import statistics
import time
import warnings

import _common as common
import joblib
import numpy as np
import sklearn
import torch
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from skfairdp._teachers import fit_teachers, position_partition
from skfairdp.ensemble import MLPTeachers

SETTINGS = {"batch_size": 32, "lr": 1e-3, "weight_decay": 0.0}


def make_rows(n_rows: int, n_features: int, seed: int):
    """Two classes, linearly separable up to noise, and rows to ask about."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(n_features)
    X = rng.standard_normal((n_rows + 5000, n_features)).astype(np.float32)
    y = (X @ direction + np.sqrt(n_features) * rng.standard_normal(len(X)) > 0).astype(np.int64)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def parts_of(assignment, n_teachers):
    return [np.flatnonzero(assignment == k) for k in range(n_teachers)]


def fit_mlp_classifier(X, y, epochs, seed):
    # Neither early stopping nor a penalty: the same steps as the other sides.
    model = MLPClassifier(
        (64, 64),
        alpha=0.0,
        batch_size=SETTINGS["batch_size"],
        learning_rate_init=SETTINGS["lr"],
        max_iter=epochs,
        tol=0.0,
        n_iter_no_change=epochs + 1,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        return model.fit(X, y)


def fit_skorch(X, y, epochs, seed):
    import skorch

    generator = torch.Generator().manual_seed(seed)
    relu, linear = torch.nn.ReLU, torch.nn.Linear
    module = torch.nn.Sequential(linear(X.shape[1], 64), relu(), linear(64, 64), relu(), linear(64, 2))
    for p in module.parameters():
        bound = p.shape[-1] ** -0.5
        torch.nn.init.uniform_(p, -bound, bound, generator=generator)
    net = skorch.NeuralNetClassifier(
        module,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=SETTINGS["lr"],
        optimizer__weight_decay=SETTINGS["weight_decay"],
        batch_size=SETTINGS["batch_size"],
        max_epochs=epochs,
        iterator_train__shuffle=True,
        iterator_train__generator=generator,
        train_split=None,
        verbose=0,
    )
    return net.fit(X, y)


def timed(function):
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


def in_turn(sides, repeats):
    """Run every side once per repeat, in turn; return the seconds of each, and its last result."""
    seconds, results = {name: [] for name in sides}, {}
    for _ in range(repeats):
        for name, function in sides.items():
            spent, results[name] = timed(function)
            seconds[name].append(spent)
    return seconds, results


def accuracy(predictions, y):
    return float(np.mean(np.asarray(predictions) == y))


def bench_mlp(args):
    n = args.teachers
    X, y, queries, answers = make_rows(n * args.rows, args.features, args.seed)
    assignment = position_partition(len(X), n, random_state=args.seed)
    parts = parts_of(assignment, n)
    n_skorch = min(n, 10) if args.scaled else n
    n_sklearn = min(n, 50) if args.scaled else n
    threads = torch.get_num_threads()

    def batched():
        teacher = MLPTeachers(epochs=args.epochs, **SETTINGS)
        return fit_teachers(teacher, X, y, assignment, n_teachers=n, n_classes=2, random_state=args.seed)

    def skorch_loop():
        # One thread: faster for products this small than torch's default, and so the stronger opponent.
        torch.set_num_threads(1)
        try:
            return [fit_skorch(X[rows], y[rows], args.epochs, k) for k, rows in enumerate(parts[:n_skorch])]
        finally:
            torch.set_num_threads(threads)

    def sklearn_joblib():
        tasks = (
            joblib.delayed(fit_mlp_classifier)(X[rows], y[rows], args.epochs, k)
            for k, rows in enumerate(parts[:n_sklearn])
        )
        return joblib.Parallel(n_jobs=2)(tasks)

    # Imports and worker processes are started outside the clock.
    fit_skorch(X[parts[0]], y[parts[0]], 1, 0)
    joblib.Parallel(n_jobs=2)(joblib.delayed(fit_mlp_classifier)(X[rows], y[rows], 1, 0) for rows in parts[:4])
    fit_teachers(MLPTeachers(epochs=1), X[:64], y[:64], np.arange(64) % 2, n_teachers=2, n_classes=2)
    seconds, fitted = in_turn({"batched": batched, "skorch": skorch_loop, "sklearn": sklearn_joblib}, args.repeats)
    ours = accuracy(fitted["batched"].predict(queries), answers)
    return [
        row(
            args,
            "mlp",
            f"skorch loop, {args.epochs} epochs",
            seconds["batched"],
            seconds["skorch"],
            n_skorch,
            target=30,
            ours=ours,
            theirs=accuracy([m.predict(queries) for m in fitted["skorch"]], answers),
        ),
        row(
            args,
            "mlp",
            f"MLPClassifier, joblib n_jobs=2, {args.epochs} epochs",
            seconds["batched"],
            seconds["sklearn"],
            n_sklearn,
            target=6,
            ours=ours,
            theirs=accuracy([m.predict(queries) for m in fitted["sklearn"]], answers),
        ),
    ]


def bench_logistic(args):
    n = args.teachers
    X, y, queries, answers = make_rows(n * args.rows, args.features, args.seed)
    X, queries = X.astype(float), queries.astype(float)
    assignment = position_partition(len(X), n, random_state=args.seed)
    parts = parts_of(assignment, n)
    n_loop = min(n, 50) if args.scaled else n

    def batched():
        return fit_teachers("logistic", X, y, assignment, n_teachers=n, n_classes=2, random_state=args.seed)

    def loop():
        # One BLAS thread: faster for matrices this small, and so the stronger opponent.
        with threadpool_limits(limits=1):
            return [LogisticRegression().fit(X[rows], y[rows]) for rows in parts[:n_loop]]

    batched()
    seconds, fitted = in_turn({"batched": batched, "loop": loop}, args.repeats)
    votes = fitted["batched"].predict(queries)
    theirs = np.array([model.predict(queries) for model in fitted["loop"]])
    agree = float(np.mean(votes[:n_loop] == theirs))
    return [
        row(
            args,
            "logistic",
            f"LogisticRegression loop (same votes: {agree:.2%})",
            seconds["batched"],
            seconds["loop"],
            n_loop,
            ours=accuracy(votes, answers),
            theirs=accuracy(theirs, answers),
        )
    ]


def bench_dask(args):
    import distributed

    n = min(args.teachers, 40 if args.scaled else args.teachers)
    X, y, queries, answers = make_rows(n * args.rows, args.features, args.seed)
    assignment = position_partition(len(X), n, random_state=args.seed)

    teacher = GradientBoostingClassifier(n_estimators=20)

    def fit_on(backend):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            return fit_teachers(teacher, X, y, assignment, n_teachers=n, n_classes=2, random_state=args.seed)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        for backend in ("dask", "loky"):
            fit_on(backend)
        seconds, fitted = in_turn({"dask": lambda: fit_on("dask"), "loky": lambda: fit_on("loky")}, args.repeats)
    dask, loky = (fitted[name].predict(queries) for name in ("dask", "loky"))
    out = row(
        args,
        "dask",
        "loky, 2 workers each, GradientBoostingClassifier(20)",
        seconds["dask"],
        seconds["loky"],
        n,
        n_ours=n,
        ours=accuracy(dask, answers),
        theirs=accuracy(loky, answers),
    )
    # Here the bar is how much slower dask may be.
    out["ratio"], out["target"] = 1 / out["ratio"], "<= 1.5"
    out["same_votes"] = bool(np.array_equal(dask, loky))
    return [out]


def row(args, work, against, ours_seconds, theirs_seconds, n_theirs, *, ours, theirs, target=None, n_ours=None):
    n_ours = args.teachers if n_ours is None else n_ours
    mine = statistics.median(ours_seconds)
    other = statistics.median(theirs_seconds) * n_ours / n_theirs
    return {
        "work": work,
        "against": against,
        "teachers": n_ours,
        "seconds": mine,
        "against_seconds": other,
        "against_teachers_trained": n_theirs,
        "against_scaled_linearly": n_theirs < n_ours,
        "ratio": other / mine,
        "target": None if target is None else f">= {target}",
        "accuracy": ours,
        "against_accuracy": theirs,
        "all_seconds": ours_seconds,
        "against_all_seconds": theirs_seconds,
    }


def print_results(results):
    common.print_table(
        ["work", "against", "teachers", "seconds", "against", "ratio", "target", "accuracy", "against"],
        [
            [
                r["work"],
                r["against"],
                r["teachers"],
                f"{r['seconds']:.2f}",
                f"{'~' if r['against_scaled_linearly'] else ''}{r['against_seconds']:.2f}",
                f"{r['ratio']:.2f}",
                r["target"] or "-",
                f"{r['accuracy']:.3f}",
                f"{r['against_accuracy']:.3f}",
            ]
            for r in results
        ],
    )
    for r in results:
        if r["against_scaled_linearly"]:
            print(
                f"~ {r['against']}: {r['against_teachers_trained']} of {r['teachers']} teachers trained, seconds "
                "scaled linearly."
            )
        if "same_votes" in r:
            print(f"dask and loky gave {'the same' if r['same_votes'] else 'DIFFERENT'} votes.")


def main() -> None:
    parser = common.parser(__doc__, "teachers")
    parser.add_argument("--parts", nargs="+", choices=["mlp", "logistic", "dask"], default=["mlp", "logistic", "dask"])
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--rows", type=int, default=130, help="rows per teacher")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side, in turn; medians are reported")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scaled", action="store_true", help="the slow side trains fewer teachers, scaled linearly")
    args = parser.parse_args()
    if args.quick:
        args.teachers, args.rows, args.epochs, args.repeats, args.features = 8, 40, 2, 1, 10
    runs = {"mlp": bench_mlp, "logistic": bench_logistic, "dask": bench_dask}
    results = [r for part in args.parts for r in runs[part](args)]
    print_results(results)
    kept = ("teachers", "rows", "features", "epochs", "repeats", "scaled")
    settings = {name: getattr(args, name) for name in kept} | SETTINGS | {"hidden": [64, 64]}
    common.save(args, seeds=[args.seed], settings=settings, rows=results)


if __name__ == "__main__":
    main()
