"""What counts as a pod's request: in Filter, in the scores, and in the sums of its node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from nominee.scheduler.framework.api.events import EventResource, QueueingHint
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.node_resources import NodeResourcesFit
from tests.scheduler.builders import Desk, desk, node

MI = 1024 * 1024
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def pod(spec: dict[str, Any], status: dict[str, Any] | None = None) -> PodInfo:
    metadata = {"name": "p", "namespace": "default", "uid": "uid-p"}
    return PodInfo(codec.from_json(core.Pod, {"metadata": metadata, "spec": spec, "status": status or {}}))


def container(name: str = "c", **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


def resized(*conditions: dict[str, str], cpu: str, allocated: str = "") -> dict[str, Any]:
    """The status of a pod whose container `c` has these cpu requests."""
    status: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "4Gi"}}}
    if allocated:
        status["allocatedResources"] = {"cpu": allocated, "memory": "4Gi"}
    return {"containerStatuses": [status], "conditions": list(conditions)}


def one_node(cpu: str = "8") -> Desk:
    at = desk()
    at.add_nodes(node("n1", cpu=cpu))
    at.cache.update_snapshot(at.framework.snapshot)
    return at


def score(plugin: str, who: PodInfo) -> int:
    """The plugin's score of an empty node with 8 cpus and 32Gi."""
    framework = one_node().framework
    rows, state, snapshot = np.array([0]), CycleState(), framework.snapshot
    scorer: Any = framework.plugins[plugin]
    scorer.pre_score(state, who, snapshot, rows)
    return int(scorer.score_all(state, who, snapshot, rows)[0])


REQUESTED = container(cpu="1", memory="4Gi")  # both an eighth of the node: perfectly balanced


@pytest.mark.parametrize(
    ("status", "same_as_cpu"),
    [
        ({}, "1"),
        (resized(cpu="4"), "4"),
        (resized(cpu="500m"), "1"),
        (resized(cpu="2", allocated="4"), "4"),
        (resized(DEFERRED, cpu="4"), "4"),
        (resized(INFEASIBLE, cpu="500m"), "500m"),
        (resized(INFEASIBLE, cpu="500m", allocated="2"), "2"),
    ],
)
def test_the_balance_counts_the_status_of_a_resize(status: dict[str, Any], same_as_cpu: str) -> None:
    """The pending pod's own too: the scorer asks for its requests with UseStatusResources."""
    spec = {"containers": [REQUESTED]}
    plain = pod({"containers": [container(cpu=same_as_cpu, memory="4Gi")]})
    plugin = "NodeResourcesBalancedAllocation"
    assert score(plugin, pod(spec, status)) == score(plugin, plain)
    # NodeResourcesFit goes by the spec alone.
    assert score("NodeResourcesFit", pod(spec, status)) == score("NodeResourcesFit", pod(spec))


def test_filter_goes_by_the_spec_of_a_pending_pod() -> None:
    framework = one_node(cpu="2").framework
    who = pod({"containers": [REQUESTED]}, resized(cpu="4"))
    state, snapshot = CycleState(), framework.snapshot
    framework.run_pre_filter_plugins(state, who, snapshot)
    assert framework.run_filter_plugins(state, who, snapshot.nodes[0]) is None


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        ({"containers": [container()]}, 100, 200 * MI),
        ({"containers": [container(cpu="2"), container("d")]}, 2100, 400 * MI),
        # Pod-level limits alone are no pod-level requests.
        ({"containers": [container()], "resources": {"limits": {"cpu": "1"}}}, 100, 200 * MI),
        # With pod-level requests there is a default only for what no level requests.
        ({"containers": [container()], "resources": {"requests": {"cpu": "1"}}}, 1000, 200 * MI),
        (
            {
                "containers": [container(cpu="2"), container("d")],
                "resources": {"requests": {"memory": "64Mi"}},
            },
            2000,
            64 * MI,
        ),
        (
            {
                "containers": [container(cpu="0"), container("d")],
                "resources": {"requests": {"memory": "64Mi"}},
            },
            0,
            64 * MI,
        ),
    ],
)
def test_defaults_for_missing_requests(spec: dict[str, Any], cpu: int, memory: int) -> None:
    on = NodeInfo("n1")
    on.add_pod(pod(spec))
    assert (on.nonzero_cpu, on.nonzero_memory) == (cpu, memory)


def test_a_running_resize_counts_in_the_defaulted_sums_of_its_node() -> None:
    on = NodeInfo("n1")
    on.add_pod(pod({"containers": [container(cpu="1"), container("d")]}, resized(DEFERRED, cpu="3")))
    assert (on.nonzero_cpu, on.nonzero_memory) == (3100, 4096 * MI + 200 * MI)


def test_more_resources_than_bits_of_a_number_have_their_reasons() -> None:
    names = [f"example.com/r{index:02}" for index in range(40)]
    on = desk()
    for name, count in (("none", 0), ("some", 39)):
        made = node(name)
        for resource in names[:count]:
            made.status.allocatable[resource].string = "2"
        on.add_nodes(made)
    pending = pod({"containers": [container(**dict.fromkeys(names, "1"))]})
    framework, state = on.framework, CycleState()
    on.cache.update_snapshot(framework.snapshot)
    with pytest.raises(FitError) as error:
        find_feasible(framework, state, pending, framework.snapshot)
    statuses = error.value.diagnosis.statuses
    for info in framework.snapshot.nodes:
        assert statuses.get(info.name) == framework.run_filter_plugins(state, pending, info)
    assert statuses.get("some").reasons == ("Insufficient example.com/r39",)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({"cpu": "5"}, QueueingHint.Queue, id="it fits now"),
        pytest.param({"cpu": "9"}, QueueingHint.Skip, id="it does not fit yet"),
        pytest.param({"cpu": "5", "example.com/port": "1"}, QueueingHint.Skip, id="ignored ones count"),
    ],
)
def test_a_node_that_grew_must_have_all_requests(requests: dict[str, str], expected: QueueingHint) -> None:
    plugin = NodeResourcesFit({"ignoredResources": ["example.com/port"]}, desk().framework)
    wanted = pod({"containers": [container(**requests)]})
    [grown] = [e for e in plugin.events_to_register() if e.event.resource is EventResource.Node]
    assert grown.hint is not None
    assert grown.hint(wanted, node("n1", cpu="4"), node("n1", cpu="8")) is expected
    assert grown.hint(wanted, None, node("n1", cpu="8")) is expected
