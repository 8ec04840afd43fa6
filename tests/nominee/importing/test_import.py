"""`nominee up --from` and `nominee import` on real processes: a cluster continues where another one is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nominee.command_group import nominee
from nominee.localcluster.cluster import RunningCluster
from nominee.localcluster.own_cluster import cluster
from nominee.machinery.runtime.clock import SystemClock
from tests.nominee.importing.dump_parts import CREATED, STARTED, VERSION
from tests.nominee.importing.dumps import dump
from tests.support.eventually import eventually_sync

pytestmark = pytest.mark.processes

COMPONENTS = "etcd,apiserver,scheduler,controllers,kubelet"
NODES, PODS = 20, 200
Objects = Mapping[str, Any]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "dump.json"
    path.write_text(json.dumps(dump(NODES, PODS)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[RunningCluster]:
    options = ["--from", str(file), "--kubelets", "2"]
    with cluster(tmp_path_factory.mktemp("up"), options, COMPONENTS) as found:
        yield found


def command(running: RunningCluster, *words: str) -> str:
    result = CliRunner().invoke(nominee, [*words, "--dir", str(running.directory)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def objects(running: RunningCluster, kind: str) -> list[Any]:
    found: list[Any] = json.loads(command(running, "get", kind, "-A", "-o", "json"))["items"]
    return found


def key(obj: Objects) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def of_kind(document: Objects, kind: str) -> dict[tuple[str, str], Any]:
    return {key(each): each for each in document["items"] if each["kind"] == kind}


def condition(obj: Objects, type_: str) -> str:
    return next((row["status"] for row in obj["status"]["conditions"] if row["type"] == type_), "")


def restarts(pod: Objects) -> list[tuple[int, str]]:
    return [
        (row["restartCount"], row["state"]["running"]["startedAt"])
        for row in pod["status"]["containerStatuses"]
    ]


def check_pods(running: RunningCluster, document: Objects) -> dict[tuple[str, str], Any]:
    """Check that all pods run on as they did, and that there are no others."""
    before, after = of_kind(document, "Pod"), {key(each): each for each in objects(running, "pods")}
    assert after.keys() == before.keys()
    for name, pod in after.items():
        was = before[name]
        assert pod["status"]["phase"] == "Running"
        assert pod["status"]["startTime"] == STARTED
        assert pod["metadata"]["creationTimestamp"] == CREATED
        assert restarts(pod) == restarts(was)
        assert pod["spec"]["nodeName"] == was["spec"]["nodeName"]
        assert pod["status"]["podIP"] == was["status"]["podIP"]
        assert pod["metadata"]["uid"] != was["metadata"]["uid"]
    return after


def test_nodes_are_ready_under_their_names_with_what_they_were(running: RunningCluster, file: Path) -> None:
    before = of_kind(json.loads(file.read_text()), "Node")

    def settled() -> list[Any]:
        return objects(running, "nodes")

    after = eventually_sync(settled, lambda nodes: all(condition(node, "Ready") == "True" for node in nodes))
    assert {key(node) for node in after} == before.keys()
    for node in after:
        was = before[key(node)]
        assert node["status"]["nodeInfo"]["kubeletVersion"] == VERSION
        for name in ("capacity", "allocatable", "addresses"):
            assert node["status"][name] == was["status"][name]
        assert node["metadata"]["labels"].items() >= was["metadata"]["labels"].items()
        assert node["spec"].get("taints") == was["spec"].get("taints")
        assert node["metadata"]["annotations"]["nominee.dev/adopted"] == "1.36"


@pytest.mark.slow
def test_pods_run_on_and_so_they_do_when_all_has_restarted(running: RunningCluster, file: Path) -> None:
    document = json.loads(file.read_text())
    pods = check_pods(running, document)
    owners = {
        each["metadata"]["uid"]
        for kind in ("replicasets", "daemonsets", "statefulsets", "jobs")
        for each in objects(running, kind)
    }
    assert {row["uid"] for pod in pods.values() for row in pod["metadata"]["ownerReferences"]} == owners
    for component in ("kubelet", "controllers", "scheduler"):
        running.restart(component)
    check_pods(running, document)


def test_a_deferred_resize_stays_deferred(running: RunningCluster) -> None:
    waiting = [pod for pod in objects(running, "pods") if condition(pod, "PodResizePending") == "True"]
    assert len(waiting) == 1
    pod = waiting[0]
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "7500m"
    assert pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "100m"
    row = next(row for row in pod["status"]["conditions"] if row["type"] == "PodResizePending")
    assert row["reason"] == "Deferred"


def test_the_values_of_secrets_stay_behind_and_volumes_bound(running: RunningCluster) -> None:
    secret = next(each for each in objects(running, "secrets") if each["metadata"]["name"] == "db")
    assert secret["data"] == {"password": "e30="}
    claims = {each["metadata"]["uid"]: each for each in objects(running, "persistentvolumeclaims")}
    volumes = objects(running, "persistentvolumes")
    assert {each["spec"]["claimRef"]["uid"] for each in volumes} == claims.keys()
    assert {each["status"]["phase"] for each in (*volumes, *claims.values())} == {"Bound"}


@pytest.mark.slow
def test_a_second_import_adds_what_is_missing(running: RunningCluster, tmp_path: Path, file: Path) -> None:
    document = json.loads(file.read_text())
    certificate = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "other"}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "more"}}
    pod = next(each for each in document["items"] if each["kind"] == "Pod")
    more = tmp_path / "more.json"
    more.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod, certificate, config_map]}))
    report = json.loads(command(running, "import", str(more), "-o", "json"))
    assert report["imported"] == {"ConfigMap": 1, "Namespace": 1}
    assert report["made"] == ["Namespace more"]
    assert report["present"] == {"Pod": 1}
    assert report["refused"] == [
        {"kind": "Certificate", "reason": "cert-manager.io/v1 is not served", "objects": ["other"]}
    ]
    check_pods(running, document)


def test_a_dry_run_reports_and_changes_nothing(running: RunningCluster, tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "dry"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "priorityClassName": "none"},
    }
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod))
    words = ["import", str(file), "--dry-run", "--strict", "--dir", str(running.directory)]
    result = CliRunner().invoke(nominee, words)
    assert result.exit_code == 1
    assert "1 Pod: forbidden: no PriorityClass with name none was found" in result.stdout
    assert result.stdout.startswith("2 objects would be imported: 1 Namespace, 1 ServiceAccount\n")
    assert "dry" not in {each["metadata"]["name"] for each in objects(running, "namespaces")}


@pytest.mark.slow
def test_a_running_cluster_is_read_through_its_kubeconfig(running: RunningCluster) -> None:
    """The second cluster is that of the dry run."""
    words = ["import", "--kubeconfig", str(running.kubeconfig), "--dry-run", "-o", "json"]
    report = json.loads(command(running, *words))
    assert [(row["kind"], row["reason"], len(row["objects"])) for row in report["refused"]] == []
    assert report["changed"] == []
    expected = {"Node": NODES, "Pod": NODES + PODS, "ReplicaSet": 10, "DaemonSet": 1, "Secret": 1}
    assert {kind: report["imported"][kind] for kind in expected} == expected
    assert report["present"]["ClusterRole"] > 20
    assert "Lease" not in report["imported"]


def test_explain_reads_a_running_cluster_too(running: RunningCluster, file: Path) -> None:
    """The pods are those of the cluster, and the version is the API server's, 1.36."""
    waiting = next(pod for pod in objects(running, "pods") if condition(pod, "PodResizePending") == "True")
    web = next(pod for pod in objects(running, "pods") if pod["metadata"]["name"].startswith("web-0-"))
    node = web["spec"]["nodeName"]

    def explain(*words: str) -> Result:
        return CliRunner().invoke(nominee, ["explain", "--kubeconfig", str(running.kubeconfig), *words])

    deferred = explain("pod", f"shop/{waiting['metadata']['name']}")
    gate = "InPlacePodVerticalScalingSchedulerPreemption"  # of 1.37
    assert f"no preemption: the scheduler's feature gate {gate} is off" in deferred.stdout
    assert "PreAlpha at emulated version 1.36" in explain("--feature-gates", f"{gate}=true").stderr

    key = f"shop/{web['metadata']['name']}"
    assert f"is already on node {node}" in explain("pod", key).stderr
    moved = json.loads(explain("pod", key, "--what-if", f"drain node {node}", "-o", "json").stdout)
    assert moved["pod"] == key
    assert node not in moved["feasibleNodes"]
    assert len(moved["feasibleNodes"]) + len(moved["rejectedNodes"]) == NODES

    compared = explain("--compare", "1.35,1.36", "-o", "json")
    assert json.loads(compared.stdout)["pods"] == NODES + PODS
    assert "there is no pod shop/none; pending pods: shop/web-" in explain("pod", "shop/none").stderr
    contexts = explain("--context", "prod", "pod", key).stderr
    assert "kubeconfig: has no context 'prod'; its contexts: nominee" in contexts


@pytest.mark.slow
def test_an_upgraded_kubelet_changes_the_version_and_a_drain_moves_pods(running: RunningCluster) -> None:
    command(running, "restart", "kubelet", "--emulated-version", "1.37")
    nodes = objects(running, "nodes")
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {"v1.37.0"}
    name = nodes[0]["metadata"]["name"]
    command(running, "patch", "node", name, "-p", '{"spec": {"unschedulable": true}}')
    moved = [
        pod
        for pod in objects(running, "pods")
        if pod["spec"]["nodeName"] == name and re.match("web-", pod["metadata"]["name"])
    ]
    assert moved
    for pod in moved:
        command(running, "delete", "pod", pod["metadata"]["name"], "-n", "shop")

    def elsewhere() -> int:
        web = [pod for pod in objects(running, "pods") if pod["metadata"]["name"].startswith("web-")]
        return sum(pod["status"]["phase"] == "Running" and pod["spec"].get("nodeName") != name for pod in web)

    eventually_sync(elsewhere, lambda count: count == PODS - 3)


@pytest.mark.slow
def test_a_dump_written_by_hand_comes_into_a_running_cluster(running: RunningCluster) -> None:
    report = json.loads(command(running, "import", str(Path(__file__).with_name("small.yaml")), "-o", "json"))
    assert report["imported"] == {"Node": 2, "Namespace": 1, "Pod": 4, "ServiceAccount": 1}
    assert report["made"] == ["Namespace rollouts", "ServiceAccount rollouts canary"]
    assert report["changed"] == [
        {"kind": "Pod", "reason": "its owner does not come: Rollout", "objects": ["rollouts/canary-1"]}
    ]
    assert [(row["kind"], row["reason"]) for row in report["refused"]] == [
        ("Pod", "is being deleted"),
        ("Rollout", "argoproj.io/v1alpha1 is not served"),
    ]

    def ready() -> list[str]:
        return [condition(node, "Ready") for node in objects(running, "nodes")]

    eventually_sync(ready, lambda found: set(found) == {"True"})
    pods = {key(each)[1]: each for each in objects(running, "pods")}
    mirror, canary = pods["etcd-cp"], pods["canary-1"]
    assert restarts(mirror) == [(2, "2024-05-02T10:00:00Z")]
    assert mirror["status"]["podIP"] == "192.168.7.1"
    assert restarts(canary) == [(0, "2024-05-01T10:01:05Z")]
    assert "ownerReferences" not in canary["metadata"]
    assert {name: pods[name]["status"]["phase"] for name in ("etcd-cp", "canary-1", "finished", "big")} == {
        "etcd-cp": "Running",
        "canary-1": "Running",
        "finished": "Succeeded",
        "big": "Pending",
    }
    nodes = {key(each)[1]: each for each in objects(running, "nodes")}
    assert nodes["worker"]["spec"]["unschedulable"] is True
    roles = [taint["key"] for taint in nodes["cp"]["spec"]["taints"]]
    assert "node-role.kubernetes.io/control-plane" in roles


@pytest.mark.slow  # a minute of waiting, and the import of 2,600 objects
def test_two_hundred_nodes_are_as_they_were_after_a_minute(tmp_path: Path) -> None:
    document = dump(200, 2000)
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    clock = SystemClock()
    with cluster(tmp_path / "cluster", ["--nodes", "0", "--emulated-version", "1.36"], COMPONENTS) as large:
        command(large, "import", str(file))
        # The nodes stay with the kubelets when these restart with other options.
        command(large, "restart", "kubelet", "--emulated-version", "1.36", "--timeout", "300")
        until = clock.monotonic() + 60.0
        while clock.monotonic() < until:
            nodes = objects(large, "nodes")
            assert len(nodes) == 200
            assert {condition(node, "Ready") for node in nodes} == {"True"}
            check_pods(large, document)
