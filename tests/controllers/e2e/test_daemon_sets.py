"""DaemonSets through kubectl against a cluster of real processes, observation by observation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from nominee.machinery.runtime.clock import SystemClock, parse_rfc3339
from tests.apiserver.rest.test_kubectl import KUBECTL, Session
from tests.controllers.e2e.clusters import observed
from tests.support.eventually import eventually_sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH: install one to run this session"),
]
NODES = ["node-0", "node-1", "node-2"]
HASH = "controller-revision-hash"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with observed(tmp_path_factory.mktemp("daemons") / "cluster", nodes=3) as session:
        yield session


class Agent:
    """A DaemonSet of a test of its own, and its pods."""

    def __init__(self, kubectl: Session, name: str) -> None:
        self.kubectl = kubectl
        self.name = name

    def create(
        self, *, annotations: dict[str, str] | None = None, spec: Any = None, **more: Any
    ) -> dict[str, str]:
        """Create it with these fields of its spec and of its pods' spec; return its pods by node."""
        self.apply(annotations=annotations, spec=spec, **more)
        return self.rolled_out()

    def apply(self, *, annotations: dict[str, str] | None = None, spec: Any = None, **more: Any) -> None:
        pods = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "agent:1"}]}
        metadata = {"labels": {"app": self.name}, "annotations": annotations or {}}
        template = {"metadata": metadata, "spec": pods | (spec or {})}
        selector = {"matchLabels": {"app": self.name}}
        body = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": self.name},
            "spec": {"selector": selector, "template": template, **more},
        }
        self.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def rolled_out(self) -> dict[str, str]:
        last = self.kubectl("rollout", "status", f"ds/{self.name}", "--timeout=100s").splitlines()[-1]
        assert last == f'daemon set "{self.name}" successfully rolled out'
        return self.on_nodes()

    def pods(self) -> list[Any]:
        """Return the pods that do not terminate."""
        found = self.kubectl.json("get", "pods", "-l", f"app={self.name}")["items"]
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def on_nodes(self) -> dict[str, str]:
        pods = self.pods()
        assert len({each["spec"]["nodeName"] for each in pods}) == len(pods)
        return {each["spec"]["nodeName"]: each["metadata"]["name"] for each in pods}

    def comes_to_nodes(self, *nodes: str) -> None:
        """Wait until these nodes have a running pod, and no other node has one."""

        def running() -> list[str]:
            pods = [each for each in self.pods() if each["status"].get("phase") == "Running"]
            return sorted(each["spec"]["nodeName"] for each in pods)

        eventually_sync(running, lambda found: found == sorted(nodes))

    def comes_to(self, **status: int) -> None:
        """Wait for these numbers in the status."""
        eventually_sync(
            lambda: self.kubectl.json("get", "ds", self.name)["status"],
            lambda found: all(found.get(name, 0) == number for name, number in status.items()),
        )

    def patch(self, **spec: Any) -> None:
        self.kubectl("patch", "ds", self.name, "-p", json.dumps({"spec": spec}))

    def images(self) -> set[str]:
        return {each["spec"]["containers"][0]["image"] for each in self.pods()}

    def set_image(self, image: str) -> None:
        self.kubectl("set", "image", f"ds/{self.name}", f"c={image}")

    def revisions(self) -> list[int]:
        found = self.kubectl.json("get", "controllerrevisions", "-l", f"app={self.name}")["items"]
        return sorted(each["revision"] for each in found)

    def events(self) -> list[tuple[str, str]]:
        selector = f"involvedObject.kind=DaemonSet,involvedObject.name={self.name}"
        found = self.kubectl.json("get", "events", "--field-selector", selector)["items"]
        return [(each["reason"], each["message"]) for each in found]


@pytest.fixture
def agent(kubectl: Session, request: pytest.FixtureRequest) -> Iterator[Agent]:
    name = request.node.name.replace("_", "-").removeprefix("test-")[:40].strip("-")
    yield Agent(kubectl, name)
    kubectl("delete", "ds", name, "--ignore-not-found", "--wait=false")


def test_each_node_gets_a_pod(agent: Agent) -> None:
    """The scheduler binds it: concepts/workloads/controllers/daemonset, "How Daemon Pods are scheduled"."""
    pods = agent.create()
    assert sorted(pods) == NODES
    for each in agent.pods():
        required = each["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        node = {"key": "metadata.name", "operator": "In", "values": [each["spec"]["nodeName"]]}
        assert required == {"nodeSelectorTerms": [{"matchFields": [node]}]}
        assert each["metadata"]["labels"]["pod-template-generation"] == "1"
    expected = {("SuccessfulCreate", f"Created pod: {name}") for name in pods.values()}
    eventually_sync(lambda: set(agent.events()), lambda found: found == expected)


def test_pods_tolerate_what_is_wrong_with_a_node(agent: Agent) -> None:
    """Source: concepts/workloads/controllers/daemonset, "Taints and tolerations"."""
    agent.create(spec={"hostNetwork": True})
    found = {(each["key"], each["effect"]) for each in agent.pods()[0]["spec"]["tolerations"]}
    assert found == {
        (f"node.kubernetes.io/{key}", effect)
        for key, effect in (
            ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"),
            ("unschedulable", "NoSchedule"), ("network-unavailable", "NoSchedule"),
        )
    }  # fmt: skip


def test_status_and_printing(agent: Agent) -> None:
    """Source: kube-apiserver's printer of DaemonSets; kubectl describe."""
    agent.create(spec={"nodeSelector": {"kubernetes.io/os": "linux"}})
    head, row = agent.kubectl("get", "ds", agent.name).splitlines()
    assert head.split() == [
        "NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE", "SELECTOR", "AGE",
    ]  # fmt: skip
    assert row.split()[:-1] == [agent.name, *["3"] * 5, "kubernetes.io/os=linux"]
    described = agent.kubectl("describe", "ds", agent.name)
    assert "Desired Number of Nodes Scheduled: 3" in described
    assert "Pods Status:  3 Running / 0 Waiting / 0 Succeeded / 0 Failed" in described
    row = agent.kubectl("get", "controllerrevisions", "-l", f"app={agent.name}", "--no-headers")
    assert row.split()[1:3] == [f"daemonset.apps/{agent.name}", "1"]


def test_it_runs_on_selected_nodes_only(agent: Agent) -> None:
    """Source: concepts/workloads/controllers/daemonset, "Running Pods on select Nodes"."""
    agent.kubectl("label", "node", "node-1", f"{agent.name}=yes")
    assert list(agent.create(spec={"nodeSelector": {agent.name: "yes"}})) == ["node-1"]
    agent.kubectl("label", "node", "node-2", f"{agent.name}=yes")
    agent.comes_to_nodes("node-1", "node-2")
    agent.kubectl("label", "node", "node-1", f"{agent.name}-")
    agent.comes_to_nodes("node-2")
    agent.comes_to(
        desiredNumberScheduled=1, currentNumberScheduled=1, numberAvailable=1, numberMisscheduled=0
    )


def test_a_no_schedule_taint_keeps_pods(agent: Agent) -> None:
    """Source: pkg/controller/daemon, NodeShouldRunDaemonPod (shouldContinueRunning)."""
    agent.create()
    agent.kubectl("taint", "node", "node-0", "dedicated=x:NoSchedule")
    try:
        agent.comes_to(desiredNumberScheduled=2, numberMisscheduled=1)
        assert sorted(agent.on_nodes()) == NODES
        agent.kubectl("delete", "pod", agent.on_nodes()["node-0"])
        agent.comes_to(desiredNumberScheduled=2, numberMisscheduled=0)
        agent.comes_to_nodes("node-1", "node-2")
    finally:
        agent.kubectl("taint", "node", "node-0", "dedicated-")
    agent.comes_to_nodes(*NODES)


def test_a_no_execute_taint_removes_pods(agent: Agent) -> None:
    """Source: concepts/scheduling-eviction/taint-and-toleration; NodeShouldRunDaemonPod."""
    agent.create()
    agent.kubectl("taint", "node", "node-0", "gone=x:NoExecute")
    try:
        agent.comes_to_nodes("node-1", "node-2")
        agent.comes_to(desiredNumberScheduled=2, numberMisscheduled=0)
        agent.patch(template={"spec": {"tolerations": [{"key": "gone", "operator": "Exists"}]}})
        agent.comes_to_nodes(*NODES)
    finally:
        agent.kubectl("taint", "node", "node-0", "gone-")


def test_a_cordoned_node_gets_a_pod(agent: Agent) -> None:
    """Source: "Taints and tolerations": node.kubernetes.io/unschedulable is tolerated."""
    agent.kubectl("cordon", "node-1")
    try:
        assert sorted(agent.create()) == NODES
    finally:
        agent.kubectl("uncordon", "node-1")


def test_a_drain_leaves_the_pods(agent: Agent) -> None:
    """Source: kubectl drain; tasks/administer-cluster/safely-drain-node."""
    before = agent.create()
    try:
        refused = agent.kubectl.fails("drain", "node-2", "--pod-selector", f"app={agent.name}")
        assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)" in refused
        done = agent.kubectl.run(
            "drain", "node-2", "--ignore-daemonsets", "--pod-selector", f"app={agent.name}"
        )
        assert done.returncode == 0
        assert f"ignoring DaemonSet-managed Pods: default/{before['node-2']}" in done.stderr
    finally:
        agent.kubectl("uncordon", "node-2")
    assert agent.on_nodes() == before


def test_a_deleted_pod_is_replaced_on_its_node(agent: Agent) -> None:
    """Source: pkg/controller/daemon, podsShouldBeOnNode."""
    before = agent.create()
    agent.kubectl("delete", "pod", before["node-1"])
    agent.comes_to_nodes(*NODES)
    after = agent.on_nodes()
    assert after["node-1"] != before["node-1"]
    assert [after[node] for node in ("node-0", "node-2")] == [before[node] for node in ("node-0", "node-2")]


def test_a_failed_pod_is_replaced(agent: Agent) -> None:
    """Source: pkg/controller/daemon, podsShouldBeOnNode (FailedDaemonPod)."""
    failed = agent.create()["node-0"]
    agent.kubectl("patch", "pod", failed, "--subresource=status", "-p", '{"status": {"phase": "Failed"}}')
    eventually_sync(agent.on_nodes, lambda found: len(found) == 3 and failed not in found.values())
    note = f"Found failed daemon pod default/{failed} on node node-0, will try to kill it"
    eventually_sync(agent.events, lambda found: ("FailedDaemonPod", note) in found)
    assert ("SuccessfulDelete", f"Deleted pod: {failed}") in agent.events()


def test_an_update_replaces_all_pods(agent: Agent) -> None:
    """Source: tasks/manage-daemon/update-daemon-set."""
    before = agent.create()
    agent.set_image("agent:2")
    after = agent.rolled_out()
    assert not set(before.values()) & set(after.values())
    assert agent.images() == {"agent:2"}
    agent.comes_to(updatedNumberScheduled=3, numberAvailable=3, observedGeneration=2)
    assert agent.revisions() == [1, 2]
    assert len({each["metadata"]["labels"][HASH] for each in agent.pods()}) == 1


def test_an_update_whose_pods_do_not_become_ready_stops(agent: Agent) -> None:
    """At most maxUnavailable are away, and a rollback ends it: tasks/manage-daemon/update-daemon-set."""
    before = agent.create()
    agent.patch(template={"metadata": {"annotations": {"nominee.dev/ready-delay": "1h"}}})
    agent.comes_to(updatedNumberScheduled=1, numberAvailable=2, numberUnavailable=1, observedGeneration=2)
    status = agent.kubectl("rollout", "status", f"ds/{agent.name}", "--watch=false")
    assert f'Waiting for daemon set "{agent.name}" rollout to finish: 1 out of 3 new pods' in status
    agent.kubectl("rollout", "undo", f"ds/{agent.name}")
    after = agent.rolled_out()
    assert len(set(before.values()) & set(after.values())) == 2  # those that were not updated stay


def test_max_unavailable_in_percent(agent: Agent) -> None:
    """It is rounded up: apps/v1 RollingUpdateDaemonSet."""
    agent.create(updateStrategy={"rollingUpdate": {"maxUnavailable": "40%"}})
    agent.patch(template={"metadata": {"annotations": {"nominee.dev/ready-delay": "1h"}}})
    agent.comes_to(updatedNumberScheduled=2, numberUnavailable=2)


def test_a_surge_creates_a_pod_before_it_deletes_one(agent: Agent) -> None:
    """Source: KEP-1591; apps/v1 RollingUpdateDaemonSet (maxSurge)."""
    agent.create(updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    # The older pod is the one with the earlier creation time, which has whole seconds.
    newest = max(parse_rfc3339(each["metadata"]["creationTimestamp"]) for each in agent.pods())
    eventually_sync(SystemClock().now, lambda now: now >= newest + 1)
    agent.patch(template={"metadata": {"annotations": {"nominee.dev/ready-delay": "1h"}}})
    eventually_sync(agent.pods, lambda found: len(found) == 4)
    agent.comes_to(numberAvailable=3, numberReady=3, updatedNumberScheduled=0)  # the oldest pod counts
    agent.patch(
        template={"metadata": {"annotations": {"nominee.dev/ready-delay": None}, "labels": {"v": "3"}}}
    )
    agent.rolled_out()
    eventually_sync(agent.pods, lambda found: len(found) == 3)


def test_on_delete_pods_are_updated_by_hand(agent: Agent) -> None:
    """Source: tasks/manage-daemon/update-daemon-set, "DaemonSet Update Strategy"."""
    agent.apply(updateStrategy={"type": "OnDelete"})
    agent.comes_to(numberAvailable=3)
    before = agent.on_nodes()
    refused = agent.kubectl.fails("rollout", "status", f"ds/{agent.name}")
    assert "rollout status is only available for RollingUpdate strategy type" in refused
    agent.set_image("agent:2")
    agent.comes_to(observedGeneration=2, updatedNumberScheduled=0, numberAvailable=3)
    assert agent.on_nodes() == before
    agent.kubectl("delete", "pod", before["node-1"])
    agent.comes_to(updatedNumberScheduled=1, numberAvailable=3)
    assert agent.images() == {"agent:1", "agent:2"}


def test_history_and_rollback(agent: Agent) -> None:
    """A rollback makes the old revision the latest: tasks/manage-daemon/rollback-daemon-set."""
    agent.create()
    agent.set_image("agent:2")
    agent.rolled_out()
    assert "agent:1" in agent.kubectl("rollout", "history", f"ds/{agent.name}", "--revision=1")
    agent.kubectl("rollout", "undo", f"ds/{agent.name}", "--to-revision=1")
    agent.rolled_out()
    assert agent.images() == {"agent:1"}
    eventually_sync(agent.revisions, lambda found: found == [2, 3])
    rows = agent.kubectl("rollout", "history", f"ds/{agent.name}").split("\n")
    assert [row.split()[0] for row in rows[2:] if row] == ["2", "3"]


def test_old_revisions_are_deleted(agent: Agent) -> None:
    """Source: apps/v1 DaemonSetSpec (revisionHistoryLimit)."""
    agent.create(revisionHistoryLimit=1)
    for image in ("agent:2", "agent:3"):
        agent.set_image(image)
        agent.rolled_out()
    eventually_sync(agent.revisions, lambda found: found == [2, 3])


def test_a_restart(agent: Agent) -> None:
    """Source: kubectl rollout restart."""
    before = agent.create()
    agent.kubectl("rollout", "restart", f"ds/{agent.name}")
    assert not set(before.values()) & set(agent.rolled_out().values())


def test_pods_are_available_after_min_ready_seconds(agent: Agent) -> None:
    """Source: apps/v1 DaemonSetSpec (minReadySeconds)."""
    agent.apply(minReadySeconds=2)
    agent.comes_to(numberReady=3, numberAvailable=0, numberUnavailable=3)
    agent.comes_to(numberReady=3, numberAvailable=3, numberUnavailable=0)


def test_a_pod_with_other_labels_is_released_and_replaced(agent: Agent) -> None:
    """Source: pkg/controller, BaseControllerRefManager (ReleasePod)."""
    released = agent.create()["node-1"]
    agent.kubectl("label", "pod", released, "--overwrite", "app=debugged")
    agent.comes_to_nodes(*NODES)
    assert released not in agent.on_nodes().values()
    assert "ownerReferences" not in agent.kubectl.json("get", "pod", released)["metadata"]
    agent.kubectl("delete", "pod", released, "--wait=false")


def test_deletion_removes_pods_and_revisions(agent: Agent) -> None:
    """Source: concepts/architecture/garbage-collection, "Background cascading deletion"."""
    agent.create()
    agent.kubectl("delete", "ds", agent.name)
    eventually_sync(agent.pods, lambda found: found == [])
    eventually_sync(agent.revisions, lambda found: found == [])


def test_deletion_in_the_foreground_waits_for_the_pods(agent: Agent) -> None:
    """Source: concepts/architecture/garbage-collection, "Foreground cascading deletion"."""
    stopping = {"nominee.dev/stop-delay": "2s"}
    agent.create(annotations=stopping, spec={"terminationGracePeriodSeconds": 5})
    agent.kubectl("delete", "ds", agent.name, "--cascade=foreground", "--wait=false")
    assert agent.kubectl.json("get", "ds", agent.name)["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert agent.kubectl("get", "pods", "-l", f"app={agent.name}", "-o", "name").count("pod/") == 3
    gone = ("wait", "--for=delete", f"ds/{agent.name}", "--timeout=100s")
    agent.kubectl(*gone)
    assert agent.pods() == []


def test_orphans_are_adopted_again(agent: Agent) -> None:
    """Source: concepts/workloads/controllers/daemonset, "Updating a DaemonSet" (--cascade=orphan)."""
    before = agent.create()
    agent.kubectl("delete", "ds", agent.name, "--cascade=orphan")
    assert agent.on_nodes() == before
    eventually_sync(
        agent.pods, lambda found: not any("ownerReferences" in each["metadata"] for each in found)
    )
    assert agent.create() == before
    assert all(each["metadata"]["ownerReferences"][0]["name"] == agent.name for each in agent.pods())
    assert agent.revisions() == [1]
