"""The demo's cluster comes up and goes down; apart, so that nothing here has used grpc when it starts it."""

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
    """`nominee up --detach` in a directory; StoryError with its words where it fails."""
    command = [sys.executable, "-P", "-m", "nominee.cli", "up", "--dir", str(directory), "--detach"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise StoryError(f"the cluster did not come up: {done.stderr.strip() or done.stdout.strip()}")


def bring_down(directory: Path) -> None:
    """`nominee down`; nothing is left afterwards, nor of a cluster that was still coming up."""
    state = StateDirectory(directory)

    def is_down() -> bool:
        with suppress(NotRunningError):
            call(state, "down", timeout_seconds=_DOWN_SECONDS_MAX)
        return lock_holder(state) is None

    wait_until(is_down, _DOWN_SECONDS_MAX)
