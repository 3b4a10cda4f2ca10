"""What the first use costs: imports, the first call with nothing compiled yet, and the first call after that.

Every figure is the time of a fresh process; the cache of compiled code is a folder of its own, empty at first. What a
study compiles does not hang on how long it is: a short one tells what a long one loses.

    python benchmarks/cold_start.py
"""

import os
import subprocess
import sys
import tempfile
import time

SETUP = "import braided as bd; graph = bd.TaskGraph.pooled(['a', 'b'])"
FIRST_CALLS = {
    "MTWRLS": "bd.MTWRLS(graph, 2).progressive([[1.0, 2.0]], [1.0], ['a'])",
    "MTWRLS that forgets": "bd.MTWRLS(graph, 2, 1.0, 0.5).progressive([[1.0, 2.0]], [1.0], ['a'])",
    "MTWRLS, local": "bd.MTWRLS(graph, 2, solver='local').progressive([[1.0, 2.0]], [1.0], ['a'])",
    "MTOSLSSVR": "bd.MTOSLSSVR(graph, 2, 'rbf').progressive([[1.0, 2.0]], [1.0], ['a'])",
    "MOGD": "bd.MOGD(graph, 2).progressive([[1.0, 2.0]], [1.0], ['a'])",
    "MADMM": "bd.MADMM(graph, 2).progressive([[1.0, 2.0]], [1.0], ['a'])",
}


def seconds(code, cache):
    return seconds_of(["-c", code], cache)[0]


def seconds_of(arguments, cache):
    """How long a process takes, and what it printed, if that is a number."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    start = time.perf_counter()
    printed = subprocess.run([sys.executable, *arguments], check=True, env=environment, capture_output=True, text=True)
    took = time.perf_counter() - start
    try:
        return took, f"{float(printed.stdout):.2f}"
    except ValueError:
        return took, ""


def main():
    with tempfile.TemporaryDirectory() as cache:
        seconds("import braided, numba", cache)  # let the disk warm up
        bare = seconds("pass", cache)
        print("| what, in a fresh process | seconds | of which the call |")
        print("|---|---|---|")
        print(f"| python itself | {bare:.2f} | |")
        print(f"| import braided | {seconds('import braided', cache):.2f} | |")
        print(f"| a TaskGraph (SciPy, no Numba) | {seconds(SETUP, cache):.2f} | |")
        print(f"| import numba | {seconds('import numba', cache):.2f} | |")
        for name, call in FIRST_CALLS.items():
            code = f"{SETUP}; import time; start = time.perf_counter(); {call}; print(time.perf_counter() - start)"
            with tempfile.TemporaryDirectory() as empty:
                for state in ("nothing compiled", "compiled before"):
                    whole, call_alone = seconds_of(["-c", code], empty)
                    print(f"| first call of {name}, {state} | {whole:.2f} | {call_alone} |", flush=True)
        with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as folder:
            study = ["-m", "braided", "study", "--quick", "--out"]
            first, second = (seconds_of([*study, f"{folder}/{run}"], empty)[0] for run in "ab")
        print(f"| braided study --quick, nothing compiled | {first:.1f} | |")
        print(f"| braided study --quick, compiled before | {second:.1f} | |")
        print(f"| lost to compilation by a study | {first - second:.1f} | |")


if __name__ == "__main__":
    main()
