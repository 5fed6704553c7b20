"""The counts behind the generator's noisy tables, against DuckDB and Polars: the same tables from the same files.

    python benchmarks/bench_group_by.py --help

All columns by group and label, and all pairs of 20 columns (8 numbers in 24 bins of equal width, 12 categories), in one
process, each engine in turn on two threads, several rounds. The tables of all engines are compared entry by entry.
"""

import itertools
import operator
import os
import tempfile
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import _common as common
import numpy as np
from bench_scale import LETTERS, N_CATEGORIES, N_NUMBERS, schema, written

N_BINS = 24
NUMBERS, CATEGORIES = [f"number{j}" for j in range(N_NUMBERS)], [f"category{j}" for j in range(N_CATEGORIES)]
COLUMNS = [*NUMBERS, *CATEGORIES, "cell"]
SIZES = [N_BINS] * N_NUMBERS + [2 + j % 7 for j in range(N_CATEGORIES)] + [4]
PAIRS = list(itertools.combinations(range(len(COLUMNS)), 2))


def ours(path: Path) -> list[np.ndarray]:
    """Count as a pass of the generator does: threads over row groups, a schema that reads cells, packed codes."""
    from skfairdp._rows import opened

    total = opened(path).map_reduce(partial(_of_chunk, schema()), operator.add)
    shapes = [(SIZES[i], SIZES[j]) for i, j in PAIRS]
    parts = np.split(total, np.cumsum([a * b for a, b in shapes])[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _of_chunk(declared, chunk) -> np.ndarray:
    from skfairdp._tables import counted_pairs
    from skfairdp.schema import RawTable

    raw = RawTable.read(declared, chunk.table, owner="benchmark")
    bins = [np.clip(np.floor((raw.numbers[name] + 4) * (N_BINS / 8)), 0, N_BINS - 1) for name in NUMBERS]
    codes = [*bins, *(raw.numbers[name] for name in CATEGORIES), 2 * raw.groups() + raw.labels()]
    columns = np.stack([code.astype(np.uint8) for code in codes])
    return np.concatenate([table.ravel() for table in counted_pairs(columns.T, SIZES, PAIRS)])


def duckdb_tables(path: Path) -> list[np.ndarray]:
    """Codes into a table of small integers once, then a GROUP BY for each pair."""
    import duckdb

    numbers = [f"least(floor(({name} + 4) * {N_BINS / 8}), {N_BINS - 1})::UTINYINT AS {name}" for name in NUMBERS]
    letters = [f"(ascii({name}::VARCHAR) - 97)::UTINYINT AS {name}" for name in CATEGORIES]
    cell = "(2 * (sex::VARCHAR = 'm')::INT + rich)::UTINYINT AS cell"
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        connection.execute(
            f"CREATE TEMP TABLE codes AS SELECT {', '.join([*numbers, *letters, cell])} FROM '{path}/*.parquet'"
        )
        found = []
        for i, j in PAIRS:
            a, b, n = (
                connection.execute(f"SELECT {COLUMNS[i]}, {COLUMNS[j]}, count(*) FROM codes GROUP BY ALL")
                .fetchnumpy()
                .values()
            )
            found.append(_filled(i, j, a, b, n))
    return found


def polars_tables(path: Path) -> list[np.ndarray]:
    """Codes into a frame of small integers once, then a group_by for each pair."""
    import polars as pl

    numbers = [((pl.col(name) + 4) * (N_BINS / 8)).floor().clip(0, N_BINS - 1).cast(pl.UInt8) for name in NUMBERS]
    letters = [pl.col(name).cast(pl.Enum(LETTERS)).to_physical().cast(pl.UInt8) for name in CATEGORIES]
    cell = (2 * (pl.col("sex").cast(pl.String) == "m").cast(pl.UInt8) + pl.col("rich")).cast(pl.UInt8).alias("cell")
    codes = pl.scan_parquet(path / "*.parquet").select(*numbers, *letters, cell).collect()
    found = []
    for i, j in PAIRS:
        counted = codes.lazy().group_by(COLUMNS[i], COLUMNS[j]).len().collect()
        found.append(_filled(i, j, *(counted[name].to_numpy() for name in (COLUMNS[i], COLUMNS[j], "len"))))
    return found


def _filled(i: int, j: int, a, b, n) -> np.ndarray:
    table = np.zeros((SIZES[i], SIZES[j]), dtype=np.int64)
    table[np.asarray(a), np.asarray(b)] = n
    return table


ENGINES = {"skfairdp": ours, "DuckDB": duckdb_tables, "Polars": polars_tables}


def rounds(path: Path, n_rounds: int) -> dict[str, list[dict[str, float]]]:
    """Time all engines in turn; the first round warms up and checks that they agree."""
    tables = {name: engine(path) for name, engine in ENGINES.items()}
    for name in tables:
        for one, other in zip(tables[name], tables["skfairdp"], strict=True):
            if not np.array_equal(one, other):
                raise RuntimeError(f"{name} counts other rows.")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ENGINES}
    for _ in range(n_rounds):
        for name, engine in ENGINES.items():
            started, processor = time.perf_counter(), time.process_time()
            engine(path)
            found[name].append(
                {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - processor}
            )
    return found


def main() -> None:
    parser = common.parser(__doc__, "group_by")
    parser.add_argument("--n-rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "bench_scale", help="of Parquet files"
    )
    arguments = parser.parse_args()
    n_rows = 4000 if arguments.quick else arguments.n_rows
    found = rounds(written(n_rows, arguments.folder), 1 if arguments.quick else arguments.rounds)
    rows = [_row(name, found) for name in ENGINES]
    peers = {engine: version(engine) for engine in ("duckdb", "polars")}
    common.save(arguments, n_rows=n_rows, n_tables=len(PAIRS), peers=peers, rows=rows)
    figures = ("seconds", "cpu_seconds", "ratio", "cpu_ratio")
    common.print_table(
        ["engine", "seconds", "CPU seconds", "seconds over ours", "CPU over ours"],
        [[row["engine"], *(f"{row[key]:.2f}" for key in figures)] for row in rows],
    )


def _row(name: str, found: dict[str, list[dict[str, float]]]) -> dict:
    """Medians, and the median of the ratios of each round."""

    def median(values) -> float:
        return float(np.median(list(values)))

    pairs = list(zip(found[name], found["skfairdp"], strict=True))
    return {
        "engine": name,
        "seconds": median(one["seconds"] for one in found[name]),
        "cpu_seconds": median(one["cpu_seconds"] for one in found[name]),
        "ratio": median(one["seconds"] / our["seconds"] for one, our in pairs),
        "cpu_ratio": median(one["cpu_seconds"] / our["cpu_seconds"] for one, our in pairs),
        "by_round": [one["seconds"] for one in found[name]],
    }


if __name__ == "__main__":
    main()
