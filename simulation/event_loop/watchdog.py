"""A limit for callbacks: a process that never gives way to others would hold up a simulation for ever."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

CALLBACK_SECONDS_MAX: Final = 20.0
"""Processor time of one callback, which takes milliseconds. It ends after at most twice that."""


class CallbackEndedError(BaseException):
    """A callback was ended. No Exception: components go on after most of these."""


@contextmanager
def limit_callbacks(callbacks: Callable[[], int], on_endless: Callable[[], None]) -> Iterator[None]:
    """End a callback that takes longer than CALLBACK_SECONDS_MAX.

    `callbacks` returns how many have begun. `on_endless` is called within the one that does not end, before
    CallbackEndedError is raised in it. Does nothing outside the main thread, which alone has signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = -1

    def tick(_number: int, _frame: FrameType | None) -> None:
        nonlocal seen
        before, seen = seen, callbacks()
        if before == seen:
            on_endless()
            raise CallbackEndedError

    handler = signal.signal(signal.SIGPROF, tick)
    _set_timer(CALLBACK_SECONDS_MAX)
    try:
        yield
    finally:
        _set_timer(0.0)
        signal.signal(signal.SIGPROF, handler)


def limit_in_fork() -> None:
    """Set the timer in a forked process, which has none, if a limit holds."""
    if callable(signal.getsignal(signal.SIGPROF)):
        _set_timer(CALLBACK_SECONDS_MAX)


def _set_timer(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
