"""Ctrl-C and SIGTERM: stop immediately, or as soon as the current step allows.

An exception raised in Python code that a library called back is lost, or breaks the library: the compiler would be left
without its result. There, the signal is sent again a little later.
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

RESEND_AFTER = 0.05  # seconds


def listen() -> None:
    """Handle Ctrl-C, unless the parent process had it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    sys.unraisablehook = _lost


def heard() -> None:
    """Ignore further Ctrl-Cs: this one is being handled."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exec("")  # clears the mark that an interrupt in exec leaves, for which `python -m` would kill itself at the end


@contextmanager
def stoppable() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yield a context that Ctrl-C and SIGTERM wait for; outside it they stop immediately."""
    is_busy, is_asked = False, False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        is_asked = True
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
        if is_asked:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield busy
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    """Stop now, or a little later if the compiler is running in `frame`."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite."):
            return _send_later(number)
        frame = frame.f_back
    raise KeyboardInterrupt


def _lost(lost: UnraisableHookArgs) -> None:
    """Handle an exception that Python can't raise, as in a finaliser."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _send_later(signal.SIGINT)
    else:
        sys.__unraisablehook__(lost)


def _send_later(number: int) -> None:
    main = threading.main_thread().ident or 0
    timer = threading.Timer(RESEND_AFTER, signal.pthread_kill, (main, number))
    timer.daemon = True
    timer.start()
