"""The compiled functions: arrays and scalars in, what they change in their names. The only place that imports numba."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function, **more: Any) -> Function:
    """Compile `function` for this machine, and keep the result on disk.

    Sums may be reordered and multiply-adds fused, which lets them use the vector units; NaN and infinity keep
    their meaning, and the same call gives the same bits on the same machine. Division by zero gives infinity. Test for
    finite values by comparing: `np.isfinite(a + b)` may be reordered until it is always true.

    Whatever it calls is inlined. Otherwise there would be several copies of a function, each optimised for its callers,
    and which of them runs would depend on which is loaded first: compiling and loading would give different bits.
    """
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc"}, "forceinline": True}
    options |= more
    try:
        return cast(Function, njit(cache=True, **options)(function))
    except RuntimeError:  # pragma: no cover (a test runs it in a process of its own)
        # No folder for the cache: compile in every process. NUMBA_CACHE_DIR can name one.
        return cast(Function, njit(**options)(function))


def unlocked(function: Function) -> Function:
    """Compile `function` to run without the interpreter's lock, so that threads run it in parallel."""
    return compiled(function, nogil=True)


def uncounted(function: Function) -> Function:
    """Compile `function` without counting references to arrays: for loops over samples, which must allocate none.

    Python must pass it arrays, not tuples of them, which would never be released.
    """
    return compiled(function, _nrt=False)


def inlined(function: Function) -> Function:
    """Put the source of `function` into its callers, before types are known: passing many arrays then costs nothing.

    Other `compiled` functions are inlined, too, but later, by LLVM.
    """
    return compiled(function, inline="always")
