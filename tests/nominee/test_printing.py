"""Tables as kubectl prints them."""

from __future__ import annotations

from nominee.machinery.api.kinds import NODE, POD
from nominee.machinery.api.pb import core
from nominee.machinery.printing.tables import align, table
from nominee.printing import columns

NOW = 1_700_000_000.0


def test_columns_are_aligned_without_trailing_spaces() -> None:
    assert table(["NAME", "AGE"], [["a-long-name", "5s"], ["b", "10m"]]) == [
        "NAME          AGE",
        "a-long-name   5s",
        "b             10m",
    ]
    _, widths = align([["abc", "d"]])
    assert align([["a", "longer"]], widths) == (["a     longer"], [3, 6])
    assert align([]) == ([], [])


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
