"""`braided run` on tables of many streams: time, memory, and whether sharing pays.

The tables are synthetic: waves that travel over streams at random places, and at each a process of its own whose memory
varies smoothly from place to place. Every table is run in a process of its own, as a user would.

    python benchmarks/many.py [--streams 150 1000 10000] [--rounds 500]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import braided as bd
from braided.report import Summary
from braided.report.run.versus import SMALLEST_GAIN
from braided.runs.trials import DEFAULT_METHODS
from braided.study import METHODS

WAVES = 40
METHOD = ",".join(method.name for method in DEFAULT_METHODS)


def make(path, streams, rounds, seed=0):
    """Write a long table, round by round."""
    rng = np.random.default_rng(seed)
    places = rng.random((streams, 2)) * np.sqrt(streams / 100)
    lengths = 2.5 * rng.normal(size=(WAVES, 2))
    phases = np.exp(1j * places @ lengths.T)
    turn = 0.97 * np.exp(1j * lengths @ [0.25, 0.1])
    memory = 0.5 + 0.3 * np.cos(places @ [1.0, 0.7])
    waves, own = np.zeros(WAVES, complex), np.zeros(streams)
    names = pa.array([f"s{k}" for k in range(streams)])
    schema = pa.schema({"time": pa.timestamp("us"), "stream": pa.string(), "value": pa.float64()})
    with parquet.ParquetWriter(path, schema) as writer:
        for hour in range(rounds):
            waves = turn * waves + 0.25 * (rng.normal(size=WAVES) + 1j * rng.normal(size=WAVES))
            own = memory * own + 0.5 * rng.normal(size=streams)
            time = np.datetime64("2024-01-01", "us") + np.timedelta64(hour, "h")
            values = 10.0 + ((phases @ waves).real + own) / np.sqrt(10.0)
            writer.write_table(pa.table([np.full(streams, time), names, values], schema=schema))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", nargs="+", type=int, default=[150, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=500)
    options = parser.parse_args()
    print(
        "| streams | values | seconds | largest process, MB | chosen | against one filter per stream "
        "| streams that gain | against “no change” |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for streams in sorted(options.streams):
            table, out = folder / f"{streams}.parquet", folder / f"run-{streams}"
            make(table, streams, options.rounds)
            command = [sys.executable, "-m", "braided", "run", table, "--method", METHOD, "--out", out]
            start = perf_counter()
            subprocess.run(command, check=True, capture_output=True, cwd=folder)
            seconds = perf_counter() - start
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # of the largest so far
            model = bd.load(out / "model.braided")
            summary = Summary.of(model)
            means = summary.means
            chosen = METHODS[model.origin.choice.best.method].title
            solver = f", {model.learner.uses}" if model.learner.shares else ""
            gain, skill = (100.0 * (1.0 - means[name]) for name in ("to_single", "to_no_change"))
            print(
                f"| {streams:,} | {streams * options.rounds:,} | {seconds:.0f} | {peak:,.0f} | {chosen}{solver} "
                f"| {gain:+.1f} % | {(summary.gains >= SMALLEST_GAIN).sum():,} | {skill:+.1f} % |",
                flush=True,
            )


if __name__ == "__main__":
    main()
