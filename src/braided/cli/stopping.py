"""Ctrl-C and a polite kill: they stop at once, or as soon as what is being done lets them.

An exception that is raised in Python that a library called is lost there, or breaks what the library was doing: the
compiler would be left without its result. So the signal is sent again a little later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

LATER = 0.05  # seconds


def listen() -> None:
    """Take up Ctrl-C, unless whoever started this wants it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    sys.unraisablehook = _lost


def heard() -> None:
    """Take no further Ctrl-C: this one is dealt with."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exec("")  # one that went through exec leaves a mark, for which `python -m` would kill itself at the end: no more


@contextmanager
def stoppable() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Let Ctrl-C and a polite kill wait for what is done in the context that is given; else they stop at once."""
    is_busy, is_told = False, False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_told
        is_told = True
        if not is_busy:
            _stop(number, frame)

    @contextmanager
    def busy() -> Iterator[None]:
        nonlocal is_busy
        is_busy = True
        try:
            yield
        finally:
            is_busy = False
        if is_told:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield busy
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    """Stop, or later if the compiler is at work in `frame`."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite."):
            return _send_later(number)
        frame = frame.f_back
    raise KeyboardInterrupt


def _lost(told: UnraisableHookArgs) -> None:
    """Take up an exception that Python can raise nowhere, as in a finaliser."""
    if issubclass(told.exc_type, KeyboardInterrupt):
        _send_later(signal.SIGINT)
    else:
        sys.__unraisablehook__(told)


def _send_later(number: int) -> None:
    main = threading.main_thread().ident or 0
    timer = threading.Timer(LATER, signal.pthread_kill, (main, number))
    timer.daemon = True
    timer.start()
