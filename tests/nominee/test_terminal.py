"""`nominee up` on a terminal: Ctrl-C stops in order, a closed terminal leaves nothing."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.supervisor.clock import wait_until
from nominee.supervisor.directory import StateDirectory, is_alive, lock_holder
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS


def on_a_terminal(directory: Path) -> tuple[subprocess.Popen[bytes], int]:
    """The command as a terminal's foreground job, ready; and the terminal's other end."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nominee.cli", "up", "--components", "etcd", f"--dir={directory}"]
    # setsid --ctty makes the terminal the controlling one of a new session, as a login does.
    process = subprocess.Popen(["setsid", "--ctty", *command], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert wait_until((directory / "cluster.json").exists, LIMIT_SECONDS)
    return process, ours


def drain(descriptor: int) -> bytes:
    """What the terminal shows, to its end."""
    shown = b""
    while select.select([descriptor], [], [], LIMIT_SECONDS)[0]:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # Linux says EIO when nobody has the terminal open any more
            break
        if not chunk:
            break
        shown += chunk
    return shown


@pytest.mark.parametrize("how", ["ctrl-c", "closed"])
def test_the_terminal_ends_it(tmp_path: Path, how: str) -> None:
    process, terminal = on_a_terminal(tmp_path)
    cluster = json.loads((tmp_path / "cluster.json").read_text())
    pids = [cluster["supervisor"]["pid"], cluster["components"][0]["pid"]]
    if how == "ctrl-c":
        os.write(terminal, b"\x03")
        shown = drain(terminal)
        assert b"ready after" in shown
        assert b"going down" in shown
    os.close(terminal)
    assert process.wait(timeout=LIMIT_SECONDS) == 0
    assert wait_until(lambda: not any(map(is_alive, pids)), LIMIT_SECONDS)
    assert lock_holder(StateDirectory(tmp_path)) is None
    assert not (tmp_path / "cluster.json").exists()
