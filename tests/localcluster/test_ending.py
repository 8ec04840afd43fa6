"""Processes of a command: how they are interrupted, and when they are killed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from nominee.localcluster import ending
from nominee.localcluster.ending import end
from nominee.localcluster.supervisor.clock import wait_until
from tests.support.patience import PATIENCE_SECONDS

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
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_process_has_time_to_stop_before_the_next_signal() -> None:
    with program(1) as process:
        end([process], PATIENCE_SECONDS, signals=2)
        assert process.returncode == 0
        assert process.stdout is not None
        assert process.stdout.read() == "1\n"


@pytest.mark.parametrize(("ends_at", "status"), [(2, 0), (3, -signal.SIGKILL)])
def test_a_process_that_goes_on_is_interrupted_twice_and_killed(
    ends_at: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with program(ends_at) as process:
        seen: list[str] = []

        def time_is_over(has_ended: Callable[[], bool], _: float) -> bool:
            """Wait for what the process does at the signal, however long that takes it."""
            assert process.stdout is not None
            seen.append(process.stdout.readline())
            return len(seen) == ends_at and wait_until(has_ended, PATIENCE_SECONDS)

        monkeypatch.setattr(ending, "wait_until", time_is_over)
        end([process], 0.0, signals=2)
        assert seen == ["1\n", "2\n"]
        assert process.returncode == status


def test_a_process_that_has_ended_is_left_alone() -> None:
    with program(1) as process:
        process.kill()
        process.wait()
        end([process], PATIENCE_SECONDS)
        assert process.returncode == -signal.SIGKILL


@contextmanager
def script(text: str) -> Iterator[subprocess.Popen[str]]:
    """Run a shell script; yield its process when it has printed `ready`."""
    process = subprocess.Popen(["sh", "-c", text], stdout=subprocess.PIPE, text=True, process_group=0)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_what_ignores_the_signal_is_killed_with_its_group() -> None:
    with script("trap '' INT; echo ready; sleep 1000; :") as process:
        end([process], 0.3)
        assert process.returncode == -signal.SIGKILL
        process.communicate(timeout=PATIENCE_SECONDS)  # `sleep` has the pipe, too


def test_all_are_interrupted_before_the_first_is_waited_for(tmp_path: Path) -> None:
    file = shlex.quote(str(tmp_path / "second-was-interrupted"))
    loop = "echo ready; while :; do sleep 0.05; done"
    first_trap = f"trap 'until [ -e {file} ]; do sleep 0.05; done; exit 0' INT"
    with (
        script(f"{first_trap}; {loop}") as first,
        script(f"trap 'touch {file}; exit 0' INT; {loop}") as second,
    ):
        end([first, second], PATIENCE_SECONDS)
        assert (first.returncode, second.returncode) == (0, 0)
