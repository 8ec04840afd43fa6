"""Child processes: started by exec, in their own process group, and never outliving the supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from nominee.localcluster.supervisor.model.states import Effect
from nominee.machinery.process.parent_death import die_with_parent

SIGNALS: Mapping[Effect, signal.Signals] = {
    Effect.TERM: signal.SIGTERM,
    Effect.KILL: signal.SIGKILL,
    Effect.STOP: signal.SIGSTOP,
    Effect.CONT: signal.SIGCONT,
}


def before_exec() -> Callable[[], None]:
    """Return a `preexec_fn`: the kernel kills the child (SIGKILL) when this process ends.

    Call it in the parent, which must have one thread and must not have loaded gRPC. Others start a child
    through `nominee.machinery.process.child`.
    """
    return partial(die_with_parent, os.getpid())


class Child:
    """One running process."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], log: int) -> None:
        """Start the process; call it from the main thread only (the parent-death signal follows the thread).

        The supervisor has one thread and loads no gRPC, so the fork before the exec is safe. The
        process group of its own keeps a terminal's Ctrl-C from reaching the process before the
        ordered stop.

        Raises:
            OSError: the program cannot be started.
        """
        self.popen = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            process_group=0,
            preexec_fn=before_exec(),
        )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def signal(self, effect: Effect) -> None:
        """Send a signal; a process that is gone is left to `poll`."""
        self.popen.send_signal(SIGNALS[effect])

    def poll(self) -> int | None:
        """Return the exit code (negative for a signal), or None while the process runs."""
        return self.popen.poll()


def describe_exit(code: int) -> str:
    """Return `exit code 1` or `SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
