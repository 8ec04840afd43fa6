"""Tables and ages as kubectl prints them."""

from __future__ import annotations

import pytest

from machinery.api.kinds import NODE, POD
from machinery.api.pb import core
from nominee.printing import columns
from nominee.printing.tables import age, aligned, table

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (600, "10m"), (10799, "179m"), (10800, "3h"),
        (18120, "5h2m"), (28800, "8h"), (172799, "47h"), (172800, "2d"), (180000, "2d2h"), (691200, "8d"),
        (63072000, "2y"), (64022400, "2y11d"), (-5, "<invalid>"),
    ],
)  # fmt: skip
def test_age(seconds: int, wanted: str) -> None:
    assert age(seconds) == wanted


def test_columns_are_aligned_without_trailing_spaces() -> None:
    assert table(["NAME", "AGE"], [["a-long-name", "5s"], ["b", "10m"]]) == [
        "NAME          AGE",
        "a-long-name   5s",
        "b             10m",
    ]
    _, widths = aligned([["abc", "d"]])
    assert aligned([["a", "longer"]], widths) == (["a     longer"], [3, 6])
    assert aligned([]) == ([], [])


def pod(**status: object) -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace = "web", "default"
    made.metadata.creationTimestamp.seconds = int(NOW) - 65
    made.spec.containers.add(name="a")
    made.spec.containers.add(name="b")
    made.status.phase = "Running"
    for key, value in status.items():
        setattr(made.status, key, value)
    return made


def test_pod_row() -> None:
    running = pod(podIP="10.0.0.1", nominatedNodeName="")
    running.spec.nodeName = "node-1"
    first = running.status.containerStatuses.add(name="a", ready=True, restartCount=2)
    first.state.running.SetInParent()
    running.status.containerStatuses.add(name="b", ready=False, restartCount=1)
    cells = columns.row(POD, running, NOW, wide=True, namespaces=True)
    assert cells == ["default", "web", "1/2", "Running", "3", "65s", "10.0.0.1", "node-1", "<none>"]
    assert columns.header(POD, wide=True, namespaces=True) == [
        "NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE"
    ]  # fmt: skip


def test_pod_status_says_what_is_most_telling() -> None:
    assert columns.pod_status(pod()) == "Running"
    assert columns.pod_status(pod(phase="Failed", reason="OutOfcpu")) == "OutOfcpu"
    waiting = pod(phase="Pending")
    waiting.status.containerStatuses.add(name="a").state.waiting.reason = "ContainerCreating"
    assert columns.pod_status(waiting) == "ContainerCreating"
    exited = pod()
    exited.status.containerStatuses.add(name="a").state.terminated.exitCode = 3
    assert columns.pod_status(exited) == "ExitCode:3"
    gated = pod(phase="Pending")
    gated.status.conditions.add(type="PodScheduled", status="False", reason="SchedulingGated")
    assert columns.pod_status(gated) == "SchedulingGated"
    gated.metadata.deletionTimestamp.seconds = 1
    assert columns.pod_status(gated) == "Terminating"


def test_node_row() -> None:
    node = core.Node()
    node.metadata.name = "node-1"
    node.metadata.labels["node-role.kubernetes.io/control-plane"] = ""
    node.metadata.creationTimestamp.seconds = int(NOW) - 5
    node.status.conditions.add(type="Ready", status="True")
    node.status.nodeInfo.kubeletVersion = "v1.37.0"
    node.spec.unschedulable = True
    node.spec.taints.add(key="a", value="b", effect="NoSchedule")
    cells = columns.row(NODE, node, NOW, wide=True, namespaces=False)
    assert cells[:5] == ["node-1", "Ready,SchedulingDisabled", "control-plane", "v1.37.0", "5s"]
    assert cells[-1] == "a=b:NoSchedule"
