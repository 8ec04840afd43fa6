"""What `nominee demo` leaves behind: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import StateDirectory
from tests.localcluster.supervised import LIMIT_SECONDS, all_gone
from tests.nominee.test_cli import nominee


@pytest.mark.slow
def test_a_signal_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "nominee.cli", "demo"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert wait_until(lambda: any(tmp_path.glob("nominee-demo-*/run/etcd.json")), LIMIT_SECONDS)
    (directory,) = tmp_path.glob("nominee-demo-*")
    pids = {name: document["pid"] for name, document in StateDirectory(directory).run_files()}
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 130
    assert output.endswith("\ninterrupted\n")
    assert all_gone(pids)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("story", ["resize", pytest.param("resize-preemption", marks=pytest.mark.slow)])
def test_a_story_holds(story: str) -> None:
    """The shortest ones; they create instances, as all do. `make demo` plays the others."""
    answer = nominee("demo", "--story", story)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    scenarios, checks = {"resize": (1, 5), "resize-preemption": (2, 7)}[story]
    assert f"{scenarios} of {scenarios} scenarios passed: {checks} checks held" in answer.stdout
    assert answer.stdout.count("✓") == checks
