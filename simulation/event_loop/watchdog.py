"""A limit for callbacks: a process that never gives way to others would hold up a simulation for ever."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

CALLBACK_SECONDS_MAX: Final = 20.0
"""Processor time of one callback, which takes milliseconds. It ends after at most twice that."""
_FRAMES_SHOWN: Final = 3


class CallbackEndedError(BaseException):
    """A callback was ended. No Exception: components go on after most of these."""


@contextmanager
def limit_callbacks(callbacks: Callable[[], int], on_endless: Callable[[str], None]) -> Iterator[None]:
    """End a callback that takes longer than CALLBACK_SECONDS_MAX.

    `callbacks` returns how many have begun. `on_endless` is called with the innermost calls of the one that
    does not end, before CallbackEndedError is raised in it. Does nothing outside the main thread, which alone
    has signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = -1

    def tick(_number: int, frame: FrameType | None) -> None:
        nonlocal seen
        before, seen = seen, callbacks()
        if before == seen:
            on_endless(_calls(frame))
            raise CallbackEndedError

    before = signal.signal(signal.SIGVTALRM, tick)
    signal.setitimer(signal.ITIMER_VIRTUAL, CALLBACK_SECONDS_MAX, CALLBACK_SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _calls(frame: FrameType | None) -> str:
    """Return the innermost calls, the last one first: `function (file.py:12) < ...`."""
    innermost = traceback.extract_stack(frame)[-_FRAMES_SHOWN:]
    return " < ".join(
        f"{each.name} ({Path(each.filename).name}:{each.lineno})" for each in reversed(innermost)
    )
