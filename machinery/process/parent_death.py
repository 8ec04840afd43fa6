"""End a process with its parent: the kernel sends SIGKILL when the parent ends (Linux).

It loads nothing but `ctypes`, so that it can be called between fork and exec.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_EXIT_FAILED: Final = 1
PARENT_AT_IMPORT: Final = os.getppid()
# Loaded before any fork: a child between fork and exec must not import. Other systems have no prctl.
_prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def die_with_parent(parent: int = PARENT_AT_IMPORT) -> None:
    """Let the kernel kill this process (SIGKILL) when its parent ends; end it if the parent has ended.

    The signal stays set across exec. Without effect on a parent's later end where the system has no prctl.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # If the parent ended before the call the signal never comes, so look again.
    if os.getppid() != parent:
        os._exit(_EXIT_FAILED)
