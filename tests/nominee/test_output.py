"""Output that goes away: the exit status stays the command's own, and nothing shows a traceback."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.localcluster import output
from nominee.localcluster.supervisor.clock import wait_until
from tests.lab.invariants.histories import History, pod
from tests.support.etcd import up_warning
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS
NOMINEE = f"{sys.executable} -m nominee.cli"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in an environment that leaves Python's buffers on."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
        env=environment,
    )


@pytest.mark.parametrize(
    ("line", "status", "errors"),
    [
        ("version >/dev/full", 1, "Error: No space left on device\n"),
        ("version >/dev/full 2>&1", 1, ""),
        ("version >&-", 0, ""),
        ("version >&- 2>&-", 0, ""),
        ("version --nonsense >&- 2>&-", 2, ""),
    ],
)
def test_output_that_cannot_be_written(line: str, status: int, errors: str) -> None:
    answer = shell(f"{NOMINEE} {line}")
    assert (answer.returncode, answer.stdout, answer.stderr) == (status, "", errors)


def test_a_reader_that_ends(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "scheduler.log").write_text("line\n" * 100_000)
    answer = shell(f"{NOMINEE} logs scheduler --dir {tmp_path} | head -n 1; exit ${{PIPESTATUS[0]}}")
    assert (answer.returncode, answer.stdout, answer.stderr) == (141, "line\n", "")


def test_a_reader_of_a_history_ends(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / NAME, Coverage())
    writer.append(History().put(*(pod(f"pod-{number}") for number in range(1000))).revisions)
    writer.close()
    answer = shell(f"{NOMINEE} history {tmp_path} | head -n 1; exit ${{PIPESTATUS[0]}}")
    assert (answer.returncode, answer.stdout.count("\n"), answer.stderr) == (141, 1, "")


@pytest.mark.parametrize("where", [">&-", ">/dev/full", "2>/dev/full", ">&- 2>&-"])
def test_up_without_output(tmp_path: Path, where: str) -> None:
    line = f"exec {NOMINEE} up --components etcd --dir {tmp_path} {where}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        ["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert wait_until((tmp_path / "cluster.json").exists, LIMIT_SECONDS)
        holder = (tmp_path / "run" / "supervisor.lock").read_text()
        assert holder == f"{process.pid}\n"  # and nothing that was printed
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
        assert (process.returncode, errors) == (0, "" if "2>" in where else up_warning())
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (OSError(errno.EIO, "closed terminal"), True),
        (OSError(errno.ENOSPC, "full disk"), True),
        (BrokenPipeError(errno.EPIPE, "reader ended"), True),
        (BaseExceptionGroup("tasks", [OSError(errno.EIO, ""), OSError(errno.EPIPE, "")]), True),
        (BaseExceptionGroup("tasks", [OSError(errno.EIO, ""), RuntimeError()]), False),
        (OSError(errno.ENOSPC, "full disk", "/some/file"), False),
        (ConnectionRefusedError(errno.ECONNREFUSED, ""), False),
        (ValueError(), False),
    ],
)
def test_which_errors_are_lost_output(error: BaseException, lost: bool) -> None:
    assert output.is_lost(error) is lost
