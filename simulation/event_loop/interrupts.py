"""Ctrl-C during a simulation: it interrupts the program that simulates, and no simulated process."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def defer_signals(pending: deque[Callable[[], object]]) -> Iterator[None]:
    """Append calls of the signal handlers to `pending` while the block runs, and restore them after it.

    A handler that raised KeyboardInterrupt within a callback would end the simulated process that runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def defer(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if callable(handler):
            pending.append(partial(handler, number, frame))

    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, defer)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is defer:
                signal.signal(number, handler)
        while pending:
            pending.popleft()()
