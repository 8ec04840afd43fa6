"""Commands on a terminal: Ctrl-C ends them in order; a closed terminal leaves nothing and no traceback."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import StateDirectory, is_alive, lock_holder
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.etcd, pytest.mark.slow]
LIMIT_SECONDS = PATIENCE_SECONDS
INTERRUPTED = 130


def on_a_terminal(
    *words: str, temporary: Path, errors: Path | None = None
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a command as a terminal's foreground job; return it and the terminal's other end.

    `errors` is the file that gets its standard error, which is the terminal otherwise.
    """
    ours, theirs = pty.openpty()
    # With PYTHONUNBUFFERED, which many containers set, nothing would be left to flush at exit.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    said = os.dup(theirs) if errors is None else os.open(errors, os.O_WRONLY | os.O_CREAT)
    # setsid --ctty makes the terminal the controlling one of a new session, as a login does.
    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "nominee.cli", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=said,
        env={**environment, "TMPDIR": str(temporary)},
    )
    os.close(theirs)
    os.close(said)
    return process, ours


def drain(descriptor: int) -> bytes:
    """What the terminal shows, to its end."""
    shown = b""
    while select.select([descriptor], [], [], LIMIT_SECONDS)[0]:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # Linux says EIO when no process has the terminal open any more
            break
        if not chunk:
            break
        shown += chunk
    return shown


@pytest.mark.parametrize("how", ["ctrl-c", "closed"])
def test_the_terminal_ends_it(tmp_path: Path, how: str) -> None:
    process, terminal = on_a_terminal("up", "--components", "etcd", f"--dir={tmp_path}", temporary=tmp_path)
    assert wait_until((tmp_path / "cluster.json").exists, LIMIT_SECONDS)
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


@pytest.mark.parametrize(
    ("words", "begun", "errors"),
    [
        (("demo",), "nominee-demo-*/run/etcd.json", "to the terminal"),
        (("demo",), "nominee-demo-*/run/etcd.json", "to a file"),
        (
            ("bench", "scheduling", "--nodes", "50", "--pods", "1000"),
            "nominee-bench-*/run/apiserver.json",
            "to the terminal",
        ),
        (("bench", "watch", "--pods", "100"), "nominee-bench-*/run/apiserver.json", "to a file"),
    ],
)
def test_a_closed_terminal_ends_what_a_command_started(
    tmp_path: Path, words: tuple[str, ...], begun: str, errors: str
) -> None:
    temporary, said = tmp_path / "temporary", tmp_path / "said"
    temporary.mkdir()
    process, terminal = on_a_terminal(
        *words, temporary=temporary, errors=said if errors == "to a file" else None
    )
    has_begun = wait_until(lambda: any(temporary.glob(begun)) or process.poll() is not None, LIMIT_SECONDS)
    failure = said.read_text() if said.exists() else ""
    assert has_begun, f"nothing begins: {list(temporary.iterdir())} {failure}"
    assert process.poll() is None, f"ended with {process.poll()}: {failure}"
    (directory,) = temporary.glob(begun.partition("/")[0])
    pids = [document["pid"] for _, document in StateDirectory(directory).run_files()]
    os.close(terminal)
    assert process.wait(timeout=LIMIT_SECONDS) == INTERRUPTED
    assert wait_until(lambda: not any(map(is_alive, pids)), LIMIT_SECONDS)
    assert not list(temporary.iterdir())
    if errors == "to a file":
        assert said.read_text().strip() == "interrupted"
