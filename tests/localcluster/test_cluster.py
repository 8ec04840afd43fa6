"""A whole cluster of real components, as a person uses it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nominee.localcluster.components import COMPONENTS
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import StateDirectory, is_alive
from tests.nominee.test_cli import nominee
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS
REPOSITORY = Path(__file__).parents[2]
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
  - {{name: c, image: pause, resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}}}}}
"""


class Cluster:
    """A detached cluster in a directory."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        started = nominee("up", "--detach", "-o", "json", *options, directory=directory)
        assert started.returncode == 0, started.stderr
        self.warnings = started.stderr
        self.document: dict[str, Any] = json.loads(started.stdout)

    def __call__(self, *words: str | Path, status: int = 0) -> str:
        """Runs a command and returns what it printed."""
        answer = nominee(*words, directory=self.directory)
        assert answer.returncode == status, answer.stderr
        return answer.stdout if status == 0 else answer.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))

    def component(self, name: str) -> dict[str, Any]:
        return next(c for c in self.json("status")["components"] if c["name"] == name)

    def apply(self, name: str, cpu: str = "1") -> str:
        path = self.directory / f"{name}.yaml"
        path.write_text(POD.format(name=name, cpu=cpu))
        return self("apply", "-f", path)

    def pod(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.json("get", "pod", name)
        return found

    def wait_running(self, name: str) -> None:
        assert wait_until(
            lambda: self.pod(name)["status"]["phase"] == "Running", LIMIT_SECONDS, poll_seconds=0.1
        ), self.pod(name)["status"]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    nominee("down", "--kill", directory=tmp_path / "cluster")


def test_a_cluster_from_up_to_down(directory: Path) -> None:
    cluster = Cluster(directory, "--nodes", "3", "--kubelets", "2")
    components = {c["name"]: c for c in cluster.document["components"]}
    assert {"etcd", "apiserver", "scheduler", "controllers", "kubelet-0", "kubelet-1"} <= set(components)
    for component in components.values():
        assert component["state"] == "ready"
        assert is_alive(component["pid"])
        if component["component"] not in ("etcd", "cloud"):
            assert component["emulatedVersion"] == "1.37"
            read = component["featureGates"]
            assert read.get("NominatedNodeNameForExpectation", False) is (component["name"] == "scheduler")
    assert components["apiserver"]["grpc"]

    assert wait_until(lambda: len(cluster.json("get", "nodes")["items"]) == 3, LIMIT_SECONDS)
    assert cluster.apply("web") == "pod/web created\n"
    assert cluster.apply("web") == "pod/web unchanged\n"
    cluster.wait_running("web")
    row = cluster("get", "pods", "-o", "wide").splitlines()
    assert row[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED", "NODE"]
    assert row[1].split()[:4] == ["web", "1/1", "Running", "0"]
    assert "pod/web patched" in cluster("patch", "pod", "web", "-p", '{"metadata": {"labels": {"a": "b"}}}')
    assert cluster("get", "pods", "-A", "-l", "a=b", "-o", "name") == "pod/web\n"
    assert cluster("get", "pods", "-l", "a=c", "-o", "name") == ""

    template = {
        "metadata": {"labels": {"app": "sized"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    sized = {"replicas": 0, "selector": {"matchLabels": {"app": "sized"}}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "sized"}, "spec": sized}
    (directory / "sized.yaml").write_text(json.dumps(manifest))
    cluster("apply", "-f", directory / "sized.yaml")
    scaled = cluster("patch", "rs", "sized", "--subresource", "scale", "-p", '{"spec": {"replicas": 0}}')
    assert scaled == "scale.autoscaling/sized patched\n"

    cluster.apply("big", cpu="100")
    document = cluster("get", "pod/big", "-o", "yaml")
    assert document.startswith("apiVersion: v1\nkind: Pod\nmetadata:\n")

    def is_unschedulable() -> bool:
        found = cluster.json("queue")
        return [p["pod"] for p in [*found["unschedulable"], *found["backoff"]]] == ["default/big"]

    assert wait_until(is_unschedulable, LIMIT_SECONDS)
    assert set(cluster.json("queue")) == {
        *("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding"),
        *("nominated", "unannounced"),
    }
    assert "default/big" in cluster("queue")

    assert cluster("delete", "pod", "web", "big", "--grace-period", "0").count("deleted") == 2
    assert 'pods "web" not found' in cluster("get", "pod", "web", status=1)
    left = [c["pid"] for c in cluster.json("status")["components"]]
    cluster("down")
    assert not any(is_alive(pid) for pid in left)
    assert not list((directory / "run").glob("kubelet*.json"))


@pytest.mark.slow
def test_the_first_pod_of_a_new_cluster_has_an_account_and_its_token(directory: Path) -> None:
    cluster = Cluster(directory, "--nodes", "1")
    cluster("get", "serviceaccount", "default")
    cluster.apply("web")
    spec = cluster.pod("web")["spec"]
    assert spec["serviceAccountName"] == "default"
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert spec["containers"][0]["volumeMounts"] == [
        {
            "name": volume["name"],
            "readOnly": True,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        }
    ]
    cluster.wait_running("web")


@pytest.mark.slow
def test_watching_shows_changes_until_ctrl_c(directory: Path) -> None:
    cluster = Cluster(directory, "--components", "etcd,apiserver")
    command = [sys.executable, "-m", "nominee.cli", "get", "pods", "-w", f"--dir={directory}"]
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    try:
        # The list may be read before or after the pod is there; the row comes either way.
        cluster.apply("web")
        rows = [watching.stdout.readline().split() for _ in range(2)]
        assert rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert rows[1][:3] == ["web", "0/1", "Pending"]
        cluster("delete", "pod", "web")
        assert watching.stdout.readline().split()[0] == "web"
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=LIMIT_SECONDS)
        assert (watching.returncode, errors) == (-signal.SIGINT, "")
    finally:
        watching.kill()
        watching.communicate()


@pytest.mark.slow
def test_what_is_refused_does_not_hold_up_the_rest(directory: Path) -> None:
    cluster = Cluster(directory, "--components", "etcd,apiserver")
    many = directory / "many.yaml"
    many.write_text("---".join(POD.format(name=name, cpu="1") for name in ("a", "B", "C", "d")))
    refused = cluster("apply", "-f", many, status=1)
    assert [line.split()[:6] for line in refused.splitlines()] == [
        ["Error", "from", "server", "(Invalid):", f"{many}:{line}:", "Pod"] for line in (11, 18)
    ]
    assert cluster("get", "pods", "-o", "name").split() == ["pod/a", "pod/d"]

    typo = directory / "typo.yaml"
    typo.write_text(POD.format(name="e", cpu="1").replace("requests", "request"))
    for verb in ("apply", "create"):
        output = cluster(verb, "-f", typo, status=1)
        assert re.search(
            r"typo.yaml:\d+: Pod e: spec.containers\[0\].resources.request: unknown field", output
        )
    assert cluster("apply", "-f", typo, "--validate", "ignore") == "pod/e created\n"
    (directory / "binary.yaml").write_bytes(b"\xff\xfe")
    assert "can't decode byte" in cluster("apply", "-f", directory / "binary.yaml", status=1)

    assert 'pods "nope" not found' in cluster("delete", "pod", "a", "nope", "d", status=1)
    assert cluster("get", "pods", "-o", "name") == "pod/e\n"
    cluster("delete", "pod", "x", "--all", status=2)
    cluster("delete", "pod/x", "-l", "a=b", status=2)
    cluster("delete", "pod", "--all", "-l", "a=b", status=2)
    assert cluster("get", "pods", "-o", "name") == "pod/e\n"
    assert cluster("patch", "pod", "e", "-p", " ", status=2)
    assert cluster("failpoint", "etcd", status=1) == "Error: etcd has no failpoints\n"
    assert "no failpoint nope" in cluster("failpoint", "apiserver", "nope", "crash", status=1)


@pytest.mark.slow
def test_whatever_is_killed_comes_back_and_goes_on(directory: Path) -> None:
    cluster = Cluster(directory, "--nodes", "2")
    names = ["etcd", "apiserver", "scheduler", "controllers", "kubelet-0"]
    for name in names:
        os.kill(cluster.component(name)["pid"], signal.SIGKILL)

        def is_back(name: str = name) -> bool:
            component = cluster.component(name)
            return bool(component["restarts"] == 1 and component["state"] == "ready")

        assert wait_until(is_back, LIMIT_SECONDS, poll_seconds=0.1), name
        # Writes are refused for a moment while etcd elects itself.
        assert wait_until(lambda: nominee("get", "ns", directory=directory).returncode == 0, LIMIT_SECONDS)
        cluster.apply(name)
        cluster.wait_running(name)
    assert len(cluster.json("get", "pods")["items"]) == len(names)


@pytest.mark.slow
def test_a_failpoint_crashes_the_scheduler_between_two_steps(directory: Path) -> None:
    cluster = Cluster(directory, "--nodes", "1")
    assert "scheduler.bind.before" in cluster("failpoint", "kube-scheduler")
    assert "no such" not in cluster("failpoint", "scheduler", "scheduler.bind.before", "1*crash")
    assert cluster.json("failpoint", "scheduler", "scheduler.bind.before")[0]["action"] == "1*crash"
    assert "scheduler has no failpoint 'scheduler.nothing'" in cluster(
        "failpoint", "scheduler", "scheduler.nothing", status=1
    )
    cluster("failpoint", "scheduler", "scheduler.bind.before", "1*explode", status=1)
    cluster.apply("web")
    cluster.wait_running("web")
    scheduler = cluster.component("scheduler")
    assert (scheduler["restarts"], scheduler["lastExit"]) == (1, "SIGKILL")


@pytest.mark.slow
def test_failpoints_of_the_command_line_and_a_scheduler_configuration(
    directory: Path, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text("""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: mine}]
""")
    cluster = Cluster(
        directory,
        *("--nodes", "1", "--scheduler-config", str(config)),
        *("--failpoints", "scheduler=scheduler.bind.before=crash"),
    )
    path = directory / "mine.yaml"
    path.write_text(POD.format(name="mine", cpu=1) + "  schedulerName: mine\n")
    cluster("create", "-f", path)
    cluster.wait_running("mine")  # not by the process that crashed, but by its successor
    assert cluster.component("scheduler")["restarts"] == 1


def test_a_wrong_scheduler_configuration_ends_the_start_with_the_field(
    directory: Path, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text("""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: -3
""")
    answer = nominee(
        *("up", "--detach", "--components", "etcd,apiserver,scheduler"),
        *("--scheduler-config", str(config)),
        directory=directory,
    )
    assert answer.returncode == 1
    assert "scheduler" in answer.stderr
    assert "podMaxBackoffSeconds" in answer.stderr
    assert not StateDirectory(directory).live_run_files()


@pytest.mark.slow
def test_versions_and_gates_reach_the_processes(directory: Path) -> None:
    cluster = Cluster(
        directory,
        *("--components", "etcd,apiserver,scheduler", "--emulated-version", "apiserver=1.37,scheduler=1.34"),
        *("--feature-gates", "scheduler=NominatedNodeNameForExpectation=true"),
    )
    assert "scheduler 1.34 is more than one minor version older than the API server 1.37" in cluster.warnings
    scheduler = cluster.component("scheduler")
    assert scheduler["emulatedVersion"] == "1.34"
    assert scheduler["featureGates"]["NominatedNodeNameForExpectation"] is True
    assert "NominatedNodeNameForExpectation=true" in cluster("status")


@pytest.mark.slow
def test_a_restart_with_options_that_are_refused_changes_nothing(directory: Path) -> None:
    cluster = Cluster(
        directory,
        *("--components", "etcd,apiserver,scheduler"),
        *("--feature-gates", "scheduler=NominatedNodeNameForExpectation=false"),
    )
    before = cluster.component("scheduler")
    for argument, message in (
        (
            "--feature-gates=SchedulerAsyncPremption=false",
            "unrecognized feature gate: SchedulerAsyncPremption",
        ),
        ("--emulated-version=1.12", "emulation version 1.12 is not between"),
        ("--config=/no/such/file", "/no/such/file: No such file or directory"),
    ):
        refusal = cluster("restart", "scheduler", f"--arg={argument}", status=1)
        assert message in refusal
        assert "Usage:" not in refusal
    assert cluster.component("scheduler")["pid"] == before["pid"]
    assert "unknown admission plugins: Nope" in cluster(
        "restart", "apiserver", "--arg=--enable-admission-plugins=Nope", status=1
    )
    assert "No such option" in cluster("restart", "etcd", "--arg=--nope", status=1)

    cluster(
        *("restart", "scheduler", "--emulated-version", "1.36"),
        *("--feature-gates", "SchedulerAsyncPreemption=false"),
    )
    scheduler = cluster.component("scheduler")
    assert scheduler["emulatedVersion"] == "1.36"
    gates = scheduler["featureGates"]
    assert "ClearingNominatedNodeNameAfterBinding" not in gates, "the scheduler does not read it"
    assert gates["NominatedNodeNameForExpectation"] is False  # given to `up`
    assert gates["SchedulerAsyncPreemption"] is False


def test_a_second_api_server_in_a_directory_is_refused(directory: Path) -> None:
    cluster = Cluster(directory, "--components", "etcd,apiserver")
    first = cluster.component("apiserver")
    second = subprocess.run(
        [sys.executable, "-P", "-m", "nominee.apiserver", "--dir", str(directory), "--name", "second"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert second.returncode == 1
    assert f"apiserver runs already in {directory} (pid {first['pid']}); end it first" in second.stderr
    after = cluster.component("apiserver")
    assert (after["pid"], after["rest"]) == (first["pid"], first["rest"])
    # The command waits a second for the answer.
    assert wait_until(lambda: bool(cluster.component("apiserver")["healthy"]), LIMIT_SECONDS)


@pytest.mark.slow
def test_fewer_nodes_than_before(directory: Path) -> None:
    def nodes() -> list[str]:
        return cluster("get", "nodes", "-o", "name").split()

    kubelets = ("--components", "etcd,apiserver,kubelet")
    cluster = Cluster(directory, *kubelets, "--nodes", "5", "--kubelets", "2")
    assert len(nodes()) == 5
    bare = directory / "bare.yaml"
    bare.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: mine}\n")
    cluster("apply", "-f", bare)
    cluster("down")
    # Without kubelets no node is surplus; what there was is not forgotten.
    cluster = Cluster(directory, "--components", "etcd,apiserver")
    assert len(nodes()) == 6
    cluster("down")
    cluster = Cluster(directory, *kubelets, "--nodes", "2")
    assert "of an earlier cluster in this directory are removed: node-2..4" in cluster.warnings
    assert nodes() == ["node/mine", "node/node-0", "node/node-1"]
    cluster("down")
    cluster = Cluster(directory, *kubelets, "--nodes", "0")
    assert "are removed: node-0..1" in cluster.warnings
    assert nodes() == ["node/mine"]
    cluster("down")
    cluster = Cluster(directory, *kubelets, "--nodes", "1")
    assert "removed" not in cluster.warnings
    assert nodes() == ["node/mine", "node/node-0"]


@pytest.mark.slow
def test_more_kubelets_than_nodes(directory: Path) -> None:
    cluster = Cluster(directory, "--components", "etcd,apiserver,kubelet", "--nodes", "1", "--kubelets", "2")
    assert cluster.component("kubelet-1")["state"] == "ready"
    cluster("restart", "kubelet-1", "--arg=--nodes=2")
    assert cluster("get", "nodes", "-o", "name").split() == ["node/node-0", "node/node-1", "node/node-2"]


def test_an_etcd_of_ones_own(directory: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    etcd = Cluster(own, "--components", "etcd")
    try:
        address = etcd.document["components"][0]["grpc"]
        words = Pki(own / "pki").etcd.client_arguments
        pairs = zip(words[::2], words[1::2], strict=True)
        shown = [word for option, path in pairs for word in ("--arg", f"apiserver={option}={path}")]
        cluster = Cluster(
            directory, "--components", "apiserver", "--etcd-servers", f"https://{address}", *shown
        )
        assert [c["name"] for c in cluster.document["components"]] == ["apiserver"]
        assert "default" in cluster("get", "namespaces", "-o", "name")
        cluster("down")
    finally:
        etcd("down")


def test_a_process_that_cannot_work_is_unhealthy(directory: Path) -> None:
    cluster = Cluster(directory, "--components", "etcd,apiserver")

    def health() -> tuple[bool | None, bool | None]:
        components = {c["name"]: c["healthy"] for c in cluster.json("status")["components"]}
        return components["etcd"], components["apiserver"]

    assert wait_until(lambda: health() == (True, True), LIMIT_SECONDS, poll_seconds=0.2), health()
    cluster("pause", "etcd")
    cluster("stop", "etcd", "--kill")
    assert wait_until(lambda: health() == (None, False), LIMIT_SECONDS, poll_seconds=0.2), health()
    assert "unhealthy" in cluster("status")
    cluster("start", "etcd")
    assert wait_until(lambda: health() == (True, True), LIMIT_SECONDS, poll_seconds=0.2), health()


def test_honcho_runs_the_same_processes(directory: Path) -> None:
    chosen = ("etcd", "apiserver", "scheduler", "controllers")
    names = [line.partition(":")[0] for line in (REPOSITORY / "Procfile").read_text().splitlines()]
    assert names == [component.name for component in COMPONENTS]
    honcho = subprocess.Popen(
        [sys.executable, "-m", "honcho", "start", *chosen],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "NOMINEE_DIR": str(directory),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    state = StateDirectory(directory)
    try:
        assert wait_until(lambda: set(state.live_run_files()) == set(chosen), LIMIT_SECONDS)
        pids = [document["pid"] for document in state.live_run_files().values()]
        status = json.loads(nominee("status", "-o", "json", directory=directory).stdout)
        assert {c["name"] for c in status["components"]} == set(chosen)
        refused = nominee("up", "--detach", directory=directory)
        assert refused.returncode == 1
        assert "processes not started by `nominee up` serve from" in refused.stderr
        assert nominee("down", directory=directory).returncode == 1
        honcho.send_signal(signal.SIGINT)
        honcho.wait(timeout=LIMIT_SECONDS)
        assert wait_until(lambda: not any(map(is_alive, pids)), LIMIT_SECONDS)
    finally:
        honcho.kill()
        honcho.wait()


def test_every_line_of_the_procfile_execs() -> None:
    for line in (REPOSITORY / "Procfile").read_text().splitlines():
        name, _, command = line.partition(": ")
        assert command.startswith("exec "), f"{name}: the shell would keep the signals"
