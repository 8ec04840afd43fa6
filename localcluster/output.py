"""Keep a command's exit status when its output is lost: a closed terminal, a reader that ended, a full disk.

Python flushes both streams at exit and exits with status 120 where that fails, whatever the command's own
status was. What cannot be written is therefore discarded before the exit.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TextIO

INTERRUPTED = 130
"""The exit status of a command that Ctrl-C, SIGTERM or SIGHUP has interrupted: as shells report SIGINT."""
READER_ENDED = 141
"""The exit status of a command whose reader has ended (`| head`): as shells report SIGPIPE."""
_STANDARD_DESCRIPTORS = (0, 1, 2)
# A reader that ended, a terminal that was closed, a full disk.
_LOST = frozenset({errno.EPIPE, errno.EIO, errno.ENOSPC})


def open_standard_descriptors() -> None:
    """Open /dev/null on each standard descriptor that the caller closed (`>&-`).

    Otherwise the next file that is opened would get the number, and what a child process prints would go
    there.
    """
    for descriptor in _STANDARD_DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is this one: those below it are open.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def discard(stream: TextIO) -> None:
    """Connect a stream with /dev/null, so that flushing its buffer succeeds."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)


def settle() -> None:
    """Flush standard output and error, and discard one that cannot be written."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            discard(stream)
        except ValueError:
            pass  # closed: there is nothing to flush


def is_lost(error: BaseException) -> bool:
    """Return whether an error says that output could not be written, and nothing else.

    An error that names a file is about that file.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(is_lost(each) for each in error.exceptions)
    return isinstance(error, OSError) and error.errno in _LOST and error.filename is None


def report_lost(error: BaseException) -> int:
    """Print why output could not be written, except for a reader that ended; return the exit status."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, BrokenPipeError):
        return READER_ENDED
    if isinstance(error, OSError) and sys.stderr is not None:
        with suppress(OSError):
            print(f"Error: {error.strerror}", file=sys.stderr, flush=True)
    return 1
