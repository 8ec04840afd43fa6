"""Admissions that need a newer node object than the cached one."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.kubelet import events
from nominee.kubelet.allocation.stale_node import wants_fresh_node
from nominee.machinery.api.pb import core
from tests.kubelet.executor import Executor, container, new_pod, node_object, resized

SSD = {"disk": "ssd"}


def kubelet(**labels: str) -> Executor:
    node = node_object(cpu="4", memory="8Gi", pods="10")
    node.metadata.labels.update(labels)
    here = Executor(node)
    here.list_pods()
    return here


def pod(name: str = "a", *, cpu: str = "1", selector: dict[str, str] = SSD) -> core.Pod:
    made = new_pod(name, container("main", cpu=cpu))
    made.spec.nodeSelector.update(selector)
    return made


def required(key: str, *values: str) -> core.Pod:
    made = pod(selector={})
    required = made.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    required.nodeSelectorTerms.add().matchExpressions.add(key=key, operator="In", values=values)
    return made


@pytest.mark.parametrize(
    ("arriving", "want"),
    [
        (pod(selector={}), False),
        (pod(), True),
        (required("disk", "ssd"), True),
        (required("disk", "hdd"), False),
        (pod(cpu="8"), False),
    ],
    ids=["no selector", "selector", "affinity", "affinity that matches", "no room either"],
)
def test_a_new_pod(arriving: core.Pod, want: bool) -> None:
    assert wants_fresh_node(kubelet(disk="hdd").node, [arriving]) is want


def test_a_pod_with_another_failure_is_refused_without_a_look_at_the_api_server() -> None:
    here = kubelet()
    here.node.node.spec.taints.add(key="k", effect="NoExecute")
    assert not wants_fresh_node(here.node, [pod()])
    terminal = pod()
    terminal.status.phase = "Failed"
    other_os = pod()
    other_os.spec.os.name = "windows"
    assert not wants_fresh_node(kubelet().node, [terminal, other_os])


def test_a_pod_that_arrives_with_the_removal_of_another_has_its_room() -> None:
    here = kubelet()
    here.store(pod("old", cpu="4", selector={}))
    here.observe("old")
    assert not wants_fresh_node(here.node, [pod()])
    assert wants_fresh_node(here.node, [pod()], {"uid-old"})


def test_a_pod_that_was_admitted_before_a_restart_counts_again() -> None:
    """Every pod is admitted again when the kubelet starts, with what it is allocated."""
    here, larger = relabelled(cpu="8")
    restarted = Executor(here.node.node)
    assert not wants_fresh_node(restarted.node, [larger])
    restarted.handle(events.AllocationsRestored(allocations=here.node.allocations))
    assert wants_fresh_node(restarted.node, [larger])


def relabelled(*, cpu: str, **settings: Any) -> tuple[Executor, core.Pod]:
    """Return a node that lost the labels its pod requires, and the pod with a resize to `cpu`."""
    here = kubelet(**SSD)
    running = pod()
    here.store(running)
    here.observe("a")
    here.work()
    here.node.node.metadata.labels.clear()
    return here, resized(running, "main", cpu=cpu, **settings)


def test_a_running_pod_counts_only_with_a_resize() -> None:
    here, larger = relabelled(cpu="2")
    assert not wants_fresh_node(here.node, [here.api["a"]])
    assert wants_fresh_node(here.node, [larger])
    _, too_large = relabelled(cpu="8")
    assert not wants_fresh_node(here.node, [too_large])


def test_a_pending_resize_counts_at_every_retry() -> None:
    here, larger = relabelled(cpu="2")
    assert not wants_fresh_node(here.node, [])
    here.store(larger)
    here.observe("a")
    assert here.node.queue == ["uid-a"]
    assert wants_fresh_node(here.node, [])
    here.node.node.metadata.labels.update(SSD)
    assert not wants_fresh_node(here.node, [])
