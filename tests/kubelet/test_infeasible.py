"""Resizes that a node refuses for good: reasons, messages and the labels of their metric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nominee.kubelet.instructions import Evaluated
from nominee.kubelet.node.state import NodeSettings
from nominee.kubelet.node.swap import LIMITED_SWAP, swap_predicate
from nominee.machinery.api.pb import core
from tests.kubelet.executor import Executor, container, new_pod, node_object, resized

CRITICAL = 2_000_000_000
SWAP = "In-place resize of containers with swap is not supported."
STATIC_CPU = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
STATIC_MEMORY = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'


def refusal(pod: core.Pod, new: core.Pod, **settings: Any) -> tuple[str, str] | None:
    """Return the message and the metric's label with which the resize of a running pod is refused."""
    here = Executor(node_object(cpu="8", memory="16Gi", pods="10"), NodeSettings(**settings))
    here.list_pods()
    here.store(pod)
    here.observe("a")
    here.work()
    here.store(new)
    here.observe("a")
    evaluated = [one for one in here.noted if isinstance(one, Evaluated)][-1]
    if evaluated.admitted:
        return None
    assert evaluated.reason == "Infeasible"
    record = here.node.pods["uid-a"]
    assert record.pending is not None
    assert (record.pending.reason, record.pending.message) == ("Infeasible", evaluated.message)
    return evaluated.message, evaluated.detail


def guaranteed(*containers: core.Container) -> core.Pod:
    pod = new_pod("a", *containers)
    pod.status.qosClass = "Guaranteed"
    return pod


def both(named: str, **quantities: str) -> core.Container:
    return container(named, limits=quantities, restarts_for=(), **quantities)


@pytest.mark.parametrize(
    ("settings", "change", "want"),
    [
        (
            {"cpu_manager_policy": "static"},
            {"cpu": "2"},
            (STATIC_CPU, "guaranteed_pod_cpu_manager_static_policy"),
        ),
        ({"cpu_manager_policy": "static"}, {"memory": "2Gi"}, None),
        ({"cpu_manager_policy": "static", "resizes_exclusive_cpus": True}, {"cpu": "2"}, None),
        (
            {"memory_manager_policy": "Static"},
            {"memory": "2Gi"},
            (STATIC_MEMORY, "guaranteed_pod_memory_manager_static_policy"),
        ),
        ({"memory_manager_policy": "Static"}, {"cpu": "2"}, None),
        ({"memory_manager_policy": "Static", "resizes_exclusive_memory": True}, {"memory": "2Gi"}, None),
    ],
)
def test_exclusive_cpus_and_memory_of_guaranteed_pods_stay(
    settings: dict[str, Any], change: dict[str, str], want: tuple[str, str] | None
) -> None:
    """KEP-1287, "Affected Components": the static policies of the CPU and memory managers."""
    pod = guaranteed(both("main", cpu="1", memory="1Gi"))
    assert refusal(pod, resized(pod, "main", **change), **settings) == want
    pod.status.qosClass = "Burstable"
    assert refusal(pod, resized(pod, "main", **change), **settings) is None


@pytest.mark.parametrize(
    ("behavior", "restarts_for", "change", "refused"),
    [
        (LIMITED_SWAP, (), {"memory": "2Gi"}, True),
        (LIMITED_SWAP, ("memory",), {"memory": "2Gi"}, False),
        (LIMITED_SWAP, (), {"cpu": "2"}, False),
        ("NoSwap", (), {"memory": "2Gi"}, False),
    ],
)
def test_memory_that_may_swap_is_resized_by_a_restart_alone(
    behavior: str, restarts_for: tuple[str, ...], change: dict[str, str], refused: bool
) -> None:
    """KEP-1287, "Swap"."""
    pod = new_pod("a", container("main", restarts_for=restarts_for, cpu="1", memory="1Gi"))
    found = refusal(pod, resized(pod, "main", **change), uses_swap=swap_predicate(behavior))
    assert found == ((SWAP, "swap_limitation") if refused else None)


def test_memory_that_will_be_able_to_swap_is_refused_too() -> None:
    """A request that equals the limit never swaps; the one that is asked for would."""
    pod = new_pod("a", container("main", limits={"memory": "1Gi"}, memory="1Gi"))
    new = resized(pod, "main", memory="512Mi")
    new.spec.containers[0].resources.limits["memory"].string = "1Gi"
    assert refusal(pod, new, uses_swap=swap_predicate(LIMITED_SWAP)) == (SWAP, "swap_limitation")


@pytest.mark.parametrize(
    ("pod", "swaps"),
    [
        (new_pod("a", container("main", memory="1Gi")), True),
        (new_pod("a", container("main", limits={"memory": "2Gi"}, memory="1Gi")), True),
        (new_pod("a", container("main", limits={"memory": "1Gi"}, memory="1Gi")), False),
        (new_pod("a", container("main", cpu="1")), False),
        (new_pod("a", container("main", memory="1Gi"), priority=CRITICAL), False),
        (guaranteed(both("main", cpu="1", memory="1Gi")), False),
    ],
    ids=["request", "request below limit", "request as limit", "no request", "critical", "Guaranteed"],
)
def test_limited_swap_is_for_burstable_pods(pod: core.Pod, swaps: bool) -> None:
    assert swap_predicate(LIMITED_SWAP)(pod, "main") is swaps
    assert not swap_predicate("NoSwap")(pod, "main")


def test_a_static_pod_is_refused_with_its_own_label() -> None:
    pod = new_pod("a", container("main", cpu="1"))
    pod.metadata.annotations["kubernetes.io/config.source"] = "file"
    found = refusal(pod, resized(pod, "main", cpu="2"))
    assert found == ("In-place resize of static-pods is not supported", "static_pod")


def test_before_1_36_the_node_s_size_has_a_label() -> None:
    here = Executor(node_object(cpu="1", pods="10"))
    here.node.features = replace(here.node.features, infeasible_above_allocatable=True)
    here.list_pods()
    here.store(new_pod("a", container("main", cpu="1")))
    here.observe("a")
    here.store(resized(here.api["a"], "main", cpu="2"))
    here.observe("a")
    evaluated = [one for one in here.noted if isinstance(one, Evaluated)][-1]
    assert evaluated.detail == "insufficient_node_allocatable"
