"""Run one function on many arguments, on several cores."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from braided.errors import InputError

Result = TypeVar("Result")


def workers(jobs: int) -> int:
    """Return the number of processes; -1 means one per core."""
    from joblib import effective_n_jobs  # slow to import

    if jobs == 0:
        raise InputError("jobs is 0: give a number of processes, or -1 for one per core")
    return int(effective_n_jobs(jobs))


def each(
    function: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], jobs: int, in_order: bool = True
) -> Iterator[Result]:
    """Yield the results, in the order of the arguments or as they come."""
    from joblib import Parallel, delayed  # slow to import

    how = "generator" if in_order else "generator_unordered"
    calls = (delayed(_on_one_thread)(function, *one) for one in arguments)
    results: Iterator[Result] = Parallel(workers(jobs), return_as=how, initializer=_ignore_interrupts)(calls)
    return results


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _on_one_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    from threadpoolctl import threadpool_limits  # threads of BLAS gain nothing on small matrices, and lose much

    with threadpool_limits(1):
        return function(*arguments)
