"""Ctrl-C during a command that takes long: it cleans up, and its exit status is 130."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from nominee.localcluster.output import INTERRUPTED
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.commands.client import call
from nominee.localcluster.supervisor.directory import StateDirectory, lock_holder
from tests.localcluster.supervised import LIMIT_SECONDS, all_gone

pytestmark = pytest.mark.etcd
_ROOT = Path(__file__).resolve().parents[2]
_ENDLESS = """\
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: endless, title: a pod that is never created, section: none}
spec:
  timeoutSeconds: 600
  cluster: {nodes: 1, insecure: true, without: [autoscaler, cloud, controllers]}
  steps:
  - wait: {object: {kind: Pod, name: a}, seconds: 600}
"""
_PODS = str(_ROOT / "scenarios" / "chaos-pods.yaml")


@contextmanager
def started(*words: str, temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command whose temporary files are below a directory."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "nominee.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=temporary.parent,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupt(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> str:
    """Send a signal, SIGINT as Ctrl-C does; return what the command then prints on standard error."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == INTERRUPTED == 130, errors
    assert "Traceback" not in errors
    return errors


@pytest.mark.parametrize(
    ("words", "begun"),
    [
        (("scenario", "run", "endless.yaml"), "nominee-scenario-*/endless/run/apiserver.json"),
        pytest.param(
            ("bench", "scheduling", "--nodes", "50", "--pods", "1000"),
            "nominee-bench-*/run/apiserver.json",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("study", "resize-preemption", "--quick", "--option", "none", "--scenario", "throughput"),
            "nominee-job-*/c/run/apiserver.json",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("chaos", "run", "--seed", "1", "--duration", "10m"),
            "nominee-chaos-*/run/apiserver.json",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("chaos", "run", "--seed", "1", "--duration", "10m", "--rounds", "2"),
            "nominee-chaos-*/run/apiserver.json",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("chaos", "explore", "endless.yaml"),
            "nominee-chaos-*/001/run/scheduler.json",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_it_stops_its_cluster(tmp_path: Path, words: Sequence[str], begun: str) -> None:
    (tmp_path / "endless.yaml").write_text(_ENDLESS, encoding="utf-8")
    temporary = tmp_path / "t"
    temporary.mkdir()
    with started(*words, temporary=temporary) as process:
        assert wait_until(lambda: any(temporary.glob(begun)), LIMIT_SECONDS)
        (file,) = temporary.glob(begun)
        pids = {name: found["pid"] for name, found in StateDirectory(file.parents[1]).run_files()}
        errors = interrupt(process)
    assert errors.endswith("\ninterrupted\n")
    assert errors.count("interrupted") == 1
    assert pids
    assert all_gone(pids)
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_ctrl_c_kills_a_cluster_that_does_not_stop(tmp_path: Path, first: signal.Signals) -> None:
    """The scheduler is stopped (SIGSTOP), so the ordered stop would wait for it."""
    (tmp_path / "endless.yaml").write_text(_ENDLESS, encoding="utf-8")
    temporary = tmp_path / "t"
    temporary.mkdir()
    with started("scenario", "run", "endless.yaml", temporary=temporary) as process:
        begun = "nominee-scenario-*/endless/run/scheduler.json"
        assert wait_until(lambda: any(temporary.glob(begun)), LIMIT_SECONDS)
        (file,) = temporary.glob(begun)
        state = StateDirectory(file.parents[1])
        assert call(state, "wait", timeout_seconds=LIMIT_SECONDS)["ok"]
        pids = {name: found["pid"] for name, found in state.run_files()}
        pids["supervisor"] = lock_holder(state) or 0
        os.kill(pids["scheduler"], signal.SIGSTOP)
        process.send_signal(first)
        assert wait_until(lambda: call(state, "status", timeout_seconds=LIMIT_SECONDS)["cluster"]["closing"],
                          LIMIT_SECONDS)  # fmt: skip
        assert interrupt(process).endswith("\ninterrupted\n")
    assert len(pids) == 5
    assert all_gone(pids)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("chaos", "explore", _PODS, "--simulate"),
        ("chaos", "generate", "--seed", "1", "--cases", "1"),
    ],
)
def test_it_ends_a_simulation(tmp_path: Path, words: Sequence[str]) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    with started(*words, temporary=temporary) as process:
        assert process.stdout is not None
        assert process.stdout.readline()  # the first case, or seed
        assert interrupt(process).endswith("\ninterrupted\n")
    assert list(temporary.iterdir()) == []


def test_it_ends_a_check_of_the_history(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        state = StateDirectory(tmp_path / "cluster")
        state.run.mkdir(parents=True)
        etcd = {"component": "etcd", "pid": os.getpid(), "grpc": f"{host}:{port}"}
        (state.run / "etcd.json").write_text(json.dumps(etcd), encoding="utf-8")
        silent.settimeout(LIMIT_SECONDS)
        with started("verify", "--dir", str(tmp_path / "cluster"), temporary=tmp_path) as process:
            connection, _ = silent.accept()
            with connection:
                assert interrupt(process).endswith("\ninterrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_a_cluster_that_is_not_ready(tmp_path: Path, number: signal.Signals) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    state = StateDirectory(tmp_path / "cluster")
    words = ("up", "--detach", "--nodes", "1", "--dir", str(state.path))
    with started(*words, temporary=temporary) as process:
        if number == signal.SIGINT:  # the supervisor has begun, and does not listen
            assert wait_until(lambda: lock_holder(state) not in (None, process.pid), LIMIT_SECONDS)
        else:
            assert wait_until((state.run / "etcd.json").exists, LIMIT_SECONDS)
        pids = {name: found["pid"] for name, found in state.run_files()}
        assert interrupt(process, number).endswith("\ninterrupted; the cluster is stopped\n")
        assert lock_holder(state) is None
    assert all_gone(pids)


def test_there_is_nothing_to_clean_up_after_a_log(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "scheduler.log").write_text("line\n")
    with started("logs", "-f", "scheduler", "--dir", str(tmp_path), temporary=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "line\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert (process.returncode, errors) == (-signal.SIGINT, "")  # 130 in a shell


_IN_A_FINALIZER = """\
import signal, time
from nominee.commands.common import end_as_by_ctrl_c
class Held:
    def __del__(self):
        signal.raise_signal(signal.{name})
end_as_by_ctrl_c()
held = Held()
try:
    del held
    time.sleep(60)
except KeyboardInterrupt:
    print("cleaned up")
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_an_interrupt_that_python_forgets_is_repeated(name: str) -> None:
    """Python prints an exception of a finalizer, and goes on."""
    program = [sys.executable, "-P", "-c", _IN_A_FINALIZER.format(name=name)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert (done.stdout, done.stderr) == ("cleaned up\n", "")


_UNDER_NOHUP = """\
import signal
from nominee.commands.common import end_as_by_ctrl_c
signal.signal(signal.SIGHUP, signal.SIG_IGN)
end_as_by_ctrl_c()
signal.raise_signal(signal.SIGHUP)
print("goes on")
"""


def test_nohup_keeps_a_closed_terminal_away() -> None:
    program = [sys.executable, "-P", "-c", _UNDER_NOHUP]
    done = subprocess.run(program, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert (done.stdout, done.stderr) == ("goes on\n", "")
