"""Ten million rows from a Parquet file: memory, and what reading, lagging and writing take beside learning.

The table is synthetic: ten series of a common random walk and their own noise. It is written in pieces, run in a
process of its own (`python benchmarks/throughput.py`), and the peak of that process's memory is what the system says.

    python benchmarks/throughput.py [--rows 10000000] [--format parquet|csv] [--folder FOLDER]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

TASKS = 10
PIECE = 50_000  # rounds
PARAMETERS = {"forgetting": 1.0, "penalty": 10.0, "ridge": 0.1}


def make(path: Path, rows: int) -> None:
    """Write a long table, sorted by time."""
    rng = np.random.default_rng(0)
    names = pa.array([f"site {k}" for k in range(TASKS)])
    level, writer = np.zeros(TASKS), None
    for first in range(0, rows // TASKS, PIECE):
        n = min(PIECE, rows // TASKS - first)
        changes = 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, TASKS))
        changes[1:] += 0.4 * changes[:-1]
        values = level + changes.cumsum(axis=0)
        level = values[-1]
        minutes = np.datetime64("2000-01-01T00:00", "s") + (first + np.arange(n)) * np.timedelta64(60, "s")
        table = pa.table(
            {
                "timestamp": np.repeat(minutes, TASKS),
                "site": pa.DictionaryArray.from_arrays(np.tile(np.arange(TASKS, dtype=np.int32), n), names).cast(
                    "string"
                ),
                "value": values.ravel(),
            }
        )
        if writer is None:
            kind = arrow_csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
            writer = kind(path, table.schema)
        writer.write_table(table)
    writer.close()


def measure(path: Path) -> None:
    """Run the table, and print what took how long, as JSON."""
    from braided.forecasting import LearnerEngine
    from braided.learners import MTWRLS, WRLS
    from braided.runs import Settings, run
    from braided.runs.output import ForecastFile
    from braided.tables import Rounds, open_rounds

    took = {"reading": 0.0, "learning": 0.0, "single filters": 0.0, "writing": 0.0, "advancing": 0.0}

    def timed(owner, name, label):
        inner = getattr(owner, name)

        def outer(*args, **kwargs):
            began = perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                took[label] += perf_counter() - began

        setattr(owner, name, outer)

    timed(MTWRLS, "_progressive", "learning")
    timed(WRLS, "_progressive", "single filters")
    timed(LearnerEngine, "advance", "advancing")
    for name in ("add", "commit", "finish"):
        timed(ForecastFile, name, "writing")
    chunks = Rounds.chunks

    def timed_chunks(self):
        stream = chunks(self)
        while True:
            began = perf_counter()
            chunk = next(stream, None)
            took["reading"] += perf_counter() - began
            if chunk is None:
                return
            yield chunk

    Rounds.chunks = timed_chunks
    settings = Settings(("mt-wrls",), parameters=PARAMETERS, single={"forgetting": 1.0, "penalty": 10.0}, lags=9)
    warm = Settings(("mt-wrls",), parameters=PARAMETERS, single={"forgetting": 1.0, "penalty": 10.0}, lags=9, tune=0.5)
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.parquet")
        make(small, 2000)
        run(open_rounds(small), warm, Path(folder, "a.parquet"), Path(folder, "a"))  # compiles
        for label in took:
            took[label] = 0.0
        began = perf_counter()
        done = run(open_rounds(path), settings, Path(folder, "forecasts.parquet"), Path(folder, "model"))
        total = perf_counter() - began
    lagging = took["advancing"] - took["learning"] - took["single filters"]
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "total": total,
                "learning": took["learning"],
                "single": took["single filters"],
                "reading": took["reading"],
                "lagging": lagging,
                "writing": took["writing"],
                "megabytes": kilobytes / 1024,
                "samples": done.forecaster.samples,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.measure)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder, f"table.{given.format}")
        make(path, given.rows)
        size = path.stat().st_size / 1e9
        command = [sys.executable, __file__, "--measure", str(path)]
        took = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    samples = took["samples"]
    rest = took["reading"] + took["lagging"] + took["writing"]
    print(f"{given.rows:,} rows of {given.format} ({size:.2f} GB, synthetic), T = {TASKS}, 9 lags and a bias, MT-WRLS")
    print(f"{'':34}{'s':>8}{'µs per sample':>16}")
    for name, seconds in (
        ("learning, compiled", took["learning"]),
        ("reading", took["reading"]),
        ("lags, intervals, records", took["lagging"]),
        ("writing forecasts", took["writing"]),
        ("reading, lags and writing together", rest),
        ("one filter per stream, to compare", took["single"]),
        ("all", took["total"]),
    ):
        print(f"{name:34}{seconds:8.2f}{1e6 * seconds / samples:16.3f}")
    print(
        f"reading, lags and writing: {rest / took['learning']:.2f} of learning; peak memory {took['megabytes']:.0f} MB"
    )


if __name__ == "__main__":
    main()
