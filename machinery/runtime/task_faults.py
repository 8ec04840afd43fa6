"""The call faults of the running task's process."""

from __future__ import annotations

from nominee.machinery.runtime.faults.call_faults import FAULTS, Faults
from nominee.machinery.runtime.runtime import RUNTIME


def current() -> Faults:
    """Return the faults of the running task's process: the interpreter's, or those of a simulated one."""
    runtime = RUNTIME.get()
    return FAULTS if runtime is None else runtime.faults
