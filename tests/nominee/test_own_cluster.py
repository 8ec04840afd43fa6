"""The cluster of a command: how it is ended, and what is shown if it does not start."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nominee.own_cluster import ClusterStartError, cluster, end
from nominee.supervisor.children import before_exec
from tests.support.patience import PATIENCE_SECONDS

_IN_TIME = PATIENCE_SECONDS
_PROGRAM = """\
import os, signal, sys
seen = 0
def on_signal(number, frame):
    global seen
    seen += 1
    os.write(1, b"%d\\n" % seen)  # the signal may interrupt a print
    if seen == {ends_at}:
        sys.exit(0)
signal.signal(signal.SIGINT, on_signal)
print("ready", flush=True)
while True:
    signal.pause()
"""


@contextmanager
def program(ends_at: int) -> Iterator[subprocess.Popen[str]]:
    """Run a program that ends at the SIGINT with this number; yield it when it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", _PROGRAM.format(ends_at=ends_at)],
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=before_exec(),
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("ends_at", "seconds", "seen", "status"),
    [
        (1, _IN_TIME, "1\n", 0),
        (2, 0.3, "1\n2\n", 0),
        (3, 0.3, "1\n2\n", -signal.SIGKILL),
    ],
)
def test_a_cluster_has_time_to_stop_before_the_next_signal(
    ends_at: int, seconds: float, seen: str, status: int
) -> None:
    with program(ends_at) as process:
        end(process, seconds)
        assert process.returncode == status
        assert process.stdout is not None
        assert process.stdout.read() == seen


def test_a_cluster_that_has_ended_is_left_alone() -> None:
    with program(1) as process:
        process.kill()
        process.wait()
        end(process)
        assert process.returncode == -signal.SIGKILL


def test_the_error_has_the_end_of_what_was_reported(tmp_path: Path) -> None:
    def start() -> None:
        with cluster(tmp_path / "d", ["--replicas", "controllers=2"]):
            raise AssertionError("it must not start")

    with pytest.raises(ClusterStartError, match="controllers=2: at most 1") as first:
        start()
    with pytest.raises(ClusterStartError) as second:
        start()
    assert str(second.value) == str(first.value)  # the log of the first start is not repeated
    assert "controllers=2" in (tmp_path / "d" / "logs" / "up.log").read_text(encoding="utf-8")
