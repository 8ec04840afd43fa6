"""`nominee scenario record` on real processes: what a user does is recorded, and can be played."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from nominee.localcluster.supervisor.clock import wait_until
from tests.localcluster.test_cluster import LIMIT_SECONDS, Cluster, directory
from tests.nominee.test_cli import nominee

__all__ = ["directory"]  # the fixture
_PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {of: person}}
spec:
  containers:
  - {name: c, image: i, env: [{name: E, value: "${HOME} 1e3"}], resources: {requests: {cpu: 100m}}}
---
apiVersion: v1
kind: Pod
metadata: {name: q}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: i}]}
"""


class Recording:
    """A running `nominee scenario record`."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self._process, self._output = process, output

    def wait_for(self, *lines: str) -> None:
        """Wait until these steps are printed."""

        def shown() -> bool:
            found = self._output.read_text(encoding="utf-8").splitlines()
            return all(line in map(str.strip, found) for line in lines)

        assert wait_until(shown, LIMIT_SECONDS, poll_seconds=0.1), self._output.read_text(encoding="utf-8")

    def end(self, *signals: int) -> tuple[int, str]:
        """Send signals; return the exit status and the output."""
        for number in signals:
            self._process.send_signal(number)
        status = self._process.wait(LIMIT_SECONDS)
        return status, self._output.read_text(encoding="utf-8")


@contextmanager
def recording(directory: Path, *words: str | Path) -> Iterator[Recording]:
    """Record a cluster; yield when it has begun."""
    path = directory.parent / "recording.txt"
    with path.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "nominee.cli", "scenario", "record", "--dir", str(directory)),
                *map(str, words),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
        )
    found = Recording(process, path)
    try:
        found.wait_for("recording; Ctrl-C ends it")
        yield found
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_recording_is_a_scenario_that_holds(directory: Path) -> None:
    cluster = Cluster(
        directory, "--nodes", "1", "--components", "etcd,apiserver,scheduler,controllers,kubelet"
    )
    cluster.apply("before")
    cluster.wait_running("before")
    file = directory.parent / "mine.yaml"
    (directory / "pods.yaml").write_text(_PODS, encoding="utf-8")
    with recording(directory, "-f", file, "--name", "mine") as recorded:
        cluster("apply", "-f", directory / "pods.yaml")
        cluster.wait_running("p")
        recorded.wait_for("apply pod p", "apply pod q")
        cluster("patch", "pod", "p", "-p", '{"metadata": {"labels": {"of": "another"}}}')
        resources = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}
        cluster("patch", "pod", "p", "--subresource", "resize", "-p", json.dumps({"spec": resources}))
        cluster("delete", "pod", "q")
        cluster("restart", "--kill", "scheduler")
        recorded.wait_for("patch Pod p", "delete Pod q", "restart scheduler")
        cluster("stop", "controllers")
        recorded.wait_for("stop controllers")
        cluster("start", "controllers")
        recorded.wait_for("start controllers")
        cluster("failpoint", "kubelet-0", "kubelet.lease.before", "1*sleep(10)")
        recorded.wait_for("failpoint kubelet-0 kubelet.lease.before")
        status, output = recorded.end(signal.SIGINT, signal.SIGINT)
    assert status == 0, output
    assert f"9 steps are in {file}" in output
    steps = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]["steps"]
    assert [next(verb for verb in step if verb != "name") for step in steps] == [
        *("apply", "apply", "apply", "patch", "patch", "delete", "restart", "stop", "start", "failpoint"),
        *("expect", "expect"),
    ]
    cluster("down")
    assert nominee("scenario", "validate", file).stdout == "valid scenarios: 1\n"
    played = nominee("scenario", "run", file)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "2 checks held" in played.stdout


@pytest.mark.slow
def test_links_between_etcd_members_are_recorded(directory: Path) -> None:
    relays = ("--replicas", "etcd=3", "--arg", "etcd=--peer-relay")
    cluster = Cluster(directory, "--nodes", "0", "--components", "etcd,apiserver", *relays)
    file = directory.parent / "mine.yaml"
    with recording(directory, "-f", file) as recorded:
        cluster("fault", "etcd-1", "cut")
        recorded.wait_for("fault etcd-1")
        cluster("fault", "etcd-0", "cut", "--to", "etcd-2")
        recorded.wait_for("fault etcd-0")
        cluster("fault", "etcd-0", "off", "--to", "etcd-2")
        status, output = recorded.end(signal.SIGINT)
    assert status == 0, output
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
    assert spec["cluster"]["components"] == {"etcd": {"replicas": 3, "args": ["--peer-relay"]}}
    assert spec["steps"] == [
        {"fault": {"component": "etcd-1", "action": "cut"}},
        {"fault": {"component": "etcd-0", "to": "etcd-2", "action": "cut"}},
        {"fault": {"component": "etcd-0", "to": "etcd-2", "action": "off"}},
    ]
    cluster("down")
    played = nominee("scenario", "run", file)
    assert played.returncode == 0, played.stdout + played.stderr


@pytest.mark.slow
def test_a_recording_ends_with_its_cluster(directory: Path) -> None:
    cluster = Cluster(directory, "--nodes", "0", "--components", "etcd,apiserver", "--insecure")
    file = directory.parent / "mine.yaml"
    with recording(directory, "-f", file) as recorded:
        cluster("down")
        status, output = recorded.end()
    assert status == 0, output
    assert "the cluster has ended\n0 steps are in" in output
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
    without = ["scheduler", "controllers", "cloud", "kubelet", "autoscaler"]
    assert spec == {"cluster": {"nodes": 0, "without": without, "insecure": True}, "steps": []}


@pytest.mark.slow
def test_a_recording_that_cannot_be_written_is_printed(directory: Path) -> None:
    Cluster(directory, "--nodes", "0", "--components", "etcd,apiserver")
    folder = directory.parent / "folder"
    folder.mkdir()
    with recording(directory, "-f", folder / "mine.yaml") as recorded:
        folder.rmdir()
        folder.write_text("a file", encoding="utf-8")
        status, output = recorded.end(signal.SIGTERM)
    assert status == 1, output
    assert f"{folder / 'mine.yaml'} cannot be written: " in output
    assert "kind: Scenario\nmetadata:\n  name: recorded\n" in output


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((), 1, "no cluster runs in "),
        (("--name", "My Scenario"), 2, "--name: 'My Scenario' is not lower-case letters, digits, - and ."),
        (("-f", "no-such-folder/mine.yaml"), 2, "-f: there is no directory"),
        (("-f", os.sep), 2, "is a directory"),
    ],
)
def test_what_cannot_be_recorded_is_an_error_at_once(
    tmp_path: Path, words: tuple[str, ...], status: int, message: str
) -> None:
    answer = nominee("scenario", "record", *words, directory=tmp_path)
    assert answer.returncode == status
    assert message in answer.stderr.replace("\n", " ")
