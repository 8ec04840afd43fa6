"""End the processes that a command has started, each in a process group of its own.

A process that stops a cluster of its own at SIGINT needs a while; one that does not stop is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import AnyStr

from nominee.localcluster.supervisor.clock import wait_until


def end(processes: Sequence[subprocess.Popen[AnyStr]], seconds: float, *, signals: int = 1) -> None:
    """Interrupt processes (SIGINT), wait, and kill those that still run.

    All are interrupted before the first is waited for, and have `seconds` together; with `signals` = 2 they
    are then interrupted once more, and have as long again. A kill (SIGKILL) is for the process group, and
    comes at once if Ctrl-C interrupts the wait.
    """

    def have_ended() -> bool:
        return all(process.poll() is not None for process in processes)

    try:
        for _ in range(signals):
            for process in processes:
                process.send_signal(signal.SIGINT)
            if wait_until(have_ended, seconds):
                return
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and close its pipes.

    `Popen.communicate` is not used: it fails after an earlier call that Ctrl-C interrupted.
    """
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
