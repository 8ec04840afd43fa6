"""Start and stop the demo's cluster.

This module does not import grpc: a process that has used it must not fork.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nominee.demo.narration import StoryError
from nominee.supervisor.client import NotRunningError, call
from nominee.supervisor.clock import wait_until
from nominee.supervisor.directory import StateDirectory, lock_holder

_DOWN_SECONDS_MAX = 30.0


def bring_up(directory: Path, arguments: Sequence[str]) -> None:
    """Run `nominee up --detach` in a directory.

    Raises:
        StoryError: the cluster does not start; the message is the command's output.
    """
    command = [sys.executable, "-P", "-m", "nominee.cli", "up", "--dir", str(directory), "--detach"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise StoryError(f"the cluster did not start: {done.stderr.strip() or done.stdout.strip()}")


def bring_down(directory: Path) -> None:
    """Run `nominee down`; also stop a cluster that is still starting."""
    state = StateDirectory(directory)

    def is_down() -> bool:
        with suppress(NotRunningError):
            call(state, "down", timeout_seconds=_DOWN_SECONDS_MAX)
        return lock_holder(state) is None

    wait_until(is_down, _DOWN_SECONDS_MAX)
