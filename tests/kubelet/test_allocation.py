"""Allocation beside the recorded cases: pod level, predicates, static pods, old versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nominee.kubelet.allocation import predicates
from nominee.kubelet.allocation.manager import on_pods_removed
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pod_sync.resize_step import is_actuated
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements
from nominee.machinery.api.pb import core, meta
from tests.kubelet.golden_player import Player

CAPACITY = {"cpu": "4", "memory": "4Gi", "pods": "3"}


def player(**node: Any) -> Player:
    return Player({"node": {"allocatable": CAPACITY, **node}})


def row(name: str, created: int = 0, cpu: str = "1", **more: Any) -> dict[str, Any]:
    containers = [{"name": f"{name}-c", "requests": {"cpu": cpu, "memory": "512Mi"}}]
    return {"name": name, "created": created, "qos": "Burstable", "containers": containers, **more}


def resize(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "512Mi"}
    return {"op": "resize", "pod": name, "containers": {f"{name}-c": {"requests": requests}}, **more}


def test_one_pod_too_many_is_rejected_by_count_first() -> None:
    here = player()
    pods = [row(f"p{number}", number, "1500m") for number in range(4)]
    seen = here.step({"op": "add", "pods": pods})["expect"]
    assert seen["p2"]["reason"] == "OutOfcpu"
    assert seen["p3"]["reason"] == "OutOfcpu", "a rejected pod takes no room, also not in the count"
    here = player()
    seen = here.step({"op": "add", "pods": [row(f"p{number}", number, "100m") for number in range(4)]})
    assert seen["expect"]["p3"]["message"] == (
        "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
    )


def test_labels_that_are_gone_defer_even_a_decrease() -> None:
    here = player(labels={"disk": "ssd"})
    here.step({"op": "add", "pods": [row("a", cpu="2", nodeSelector={"disk": "ssd"})]})
    here.step({"op": "node", "node": {"allocatable": CAPACITY, "labels": {}}})
    seen = here.step(resize("a", "1"))["expect"]["a"]
    assert seen["pending"]["message"] == (
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    )
    assert seen["resize"] == "Deferred"


def test_a_static_pod_cannot_be_resized() -> None:
    here = player()
    here.step({"op": "add", "pods": [row("s", static=True)]})
    seen = here.step(resize("s", "2"))
    assert seen["expect"]["s"]["pending"]["message"] == "In-place resize of static-pods is not supported"
    assert seen["queue"] == []


def test_pod_level_requests_count() -> None:
    here = player()
    own = {"requests": {"cpu": "3", "memory": "1Gi"}}
    here.step({"op": "add", "pods": [row("a", podResources=own)]})
    seen = here.step({"op": "add", "pods": [row("b", 1, "1500m")]})
    assert "used: 3000" in seen["expect"]["b"]["message"]
    larger = {"requests": {"cpu": "5", "memory": "1Gi"}}
    seen = here.step({"op": "resize", "pod": "a", "podResources": larger})["expect"]["a"]
    assert seen["resize"] == "Deferred"
    assert seen["podAllocated"] == own
    smaller = {"requests": {"cpu": "2", "memory": "1Gi"}}
    seen = here.step({"op": "resize", "pod": "a", "podResources": smaller})["expect"]["a"]
    assert (seen["resize"], seen["podAllocated"]) == ("InProgress", smaller)


def test_pod_level_resources_that_are_added_count_once_they_are_allocated() -> None:
    """Until then others see the sum of the containers. Source: kubelet 1.36, updatePodFromAllocation."""
    here = player()
    here.step({"op": "add", "pods": [row("a"), row("b", 1, "1500m")]})
    added = {"requests": {"cpu": "3", "memory": "1Gi"}}
    seen = here.step({"op": "resize", "pod": "a", "podResources": added})["expect"]["a"]
    assert seen["pending"]["message"] == (
        "Node didn't have enough resource: cpu, requested: 3000, used: 1500, capacity: 4000"
    )
    assert "podAllocated" not in seen
    seen = here.step(resize("b", "3"))["expect"]["b"]
    assert seen["resize"] == "InProgress", "a has 1 cpu, whatever it asks for"


def test_of_pod_level_resources_only_cpu_and_memory_are_in_progress() -> None:
    """Source: kubelet 1.36, isPodLevelResourcesResizeInProgress."""
    here = player()
    here.step({"op": "add", "pods": [row("a", podResources={"requests": {"cpu": "2", "memory": "1Gi"}})]})
    record = here.node.pods["uid-a"]
    for own, done in (
        ({"requests": {"cpu": "2", "memory": "1Gi"}}, True),
        ({"requests": {"cpu": "2000m", "memory": "1024Mi", "hugepages-2Mi": "2Mi"}}, True),
        ({"requests": {"cpu": "3", "memory": "1Gi"}}, False),
        ({"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "3"}}, False),
    ):
        allocated = replace(here.node.allocated(record), pod=Requirements.from_json(own))
        here.node.allocations["uid-a"] = allocated
        record.sandbox = here.runtime.sandboxes["uid-a"]
        assert is_actuated(here.node, record) is done, own


def test_a_pod_that_is_gone_has_no_allocation() -> None:
    here = player()
    here.step({"op": "add", "pods": [row("a")]})
    on_pods_removed(here.node, ["uid-a"], 0.0, [])
    assert here.node.allocations == {}


def test_before_1_36_a_resize_beyond_the_node_is_infeasible() -> None:
    here = player()
    here.node.features = replace(here.node.features, infeasible_above_allocatable=True)
    here.step({"op": "add", "pods": [row("a")]})
    seen = here.step(resize("a", "5"))["expect"]["a"]
    assert seen["resize"] == "Infeasible"
    assert seen["pending"]["message"] == (
        "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
    )


def test_without_the_gate_nothing_is_checkpointed_and_nothing_resized() -> None:
    here = player()
    here.node.features = replace(here.node.features, resize=False)
    here.step({"op": "add", "pods": [row("a")]})
    assert here.node.allocations == {}
    assert here.step(resize("a", "2"))["expect"]["a"]["resize"] == "none"


def with_port(name: str, *, init: bool, restart: str = "") -> core.Pod:
    pod = core.Pod(metadata=meta.ObjectMeta(name=name, uid=name))
    container = (pod.spec.initContainers if init else pod.spec.containers).add(name="c")
    container.ports.add(hostPort=80, containerPort=80, protocol="TCP")
    if restart:
        container.restartPolicy = restart
    return pod


def test_only_what_runs_beside_the_containers_holds_a_host_port() -> None:
    here = player().node
    taken = PodRecord(with_port("a", init=False), PodResources(()))

    def reasons(pod: core.Pod) -> list[str]:
        return [failure.reason for failure in predicates.failures(here, pod, {}, [taken])]

    assert reasons(with_port("b", init=False)) == ["NodePorts"]
    assert reasons(with_port("b", init=True, restart="Always")) == ["NodePorts"]
    assert reasons(with_port("b", init=True)) == []


def test_extended_resources_that_the_node_has_none_of_are_provided_by_devices() -> None:
    allocatable = {**CAPACITY, "example.com/gone": "0", "example.com/gpu": "1"}
    here = player(allocatable=allocatable).node
    without = replace(here, features=replace(here.features, extended_resources_of_devices=False))

    def reasons(node: NodeState, resource: str) -> list[str]:
        return [failure.reason for failure in predicates.failures(node, core.Pod(), {resource: 2}, [])]

    of_class = "deviceclass.resource.kubernetes.io/gpu"
    assert reasons(here, "example.com/unknown") == []
    assert reasons(here, "example.com/gone") == []
    assert reasons(here, of_class) == []
    assert reasons(here, "example.com/gpu") == ["OutOfexample.com/gpu"]
    assert reasons(without, "example.com/unknown") == []
    assert reasons(without, "example.com/gone") == ["OutOfexample.com/gone"]
    assert reasons(without, of_class) == [f"OutOf{of_class}"]


def test_with_the_gate_tolerations_compare_the_values_of_no_execute_taints() -> None:
    """Source: kubelet 1.36, generalFilter with TaintTolerationComparisonOperators; KEP-5471."""
    here = player(taints=[{"key": "sla", "value": "950", "effect": "NoExecute"}]).node

    def reasons(node: NodeState, value: str) -> list[str]:
        pod = core.Pod()
        pod.spec.tolerations.add(key="sla", operator="Gt", value=value, effect="NoExecute")
        return [failure.reason for failure in predicates.failures(node, pod, {}, [])]

    compares = replace(here, features=replace(here.features, toleration_comparison=True))
    assert reasons(compares, "900") == []
    assert reasons(compares, "950") == ["TaintToleration"]
    assert reasons(here, "900") == ["TaintToleration"]
