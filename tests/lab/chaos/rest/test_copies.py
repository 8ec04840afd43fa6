"""The rules that compare the state of processes with the objects at rest."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nominee.lab.chaos.rest.copies import STATE, scopes_of
from nominee.lab.chaos.rest.nodes import AUTOSCALER, CLOUD, DOUBTFUL, EVENTS, GROUPS, LOOP
from nominee.lab.chaos.rest.rules import findings
from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER
from nominee.lab.chaos.rest.state import Scope
from nominee.machinery.api import kinds
from tests.lab.chaos.rest.clusters import correct, put, state

PODS = Scope(kinds.POD, "", "", "spec.nodeName!=")
COPIES = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "",
        "labelSelector": "",
        "fieldSelector": "spec.nodeName!=",
        "objects": {"default/a": "7", "default/b": "7"},
    }
]
STATES = {
    "scheduler": {"copies": COPIES, "nodes": {"n1": ["Pod-a", "Pod-b"]}, "assumed": [], "problems": []},
    "kubelet-0": {"copies": COPIES, "nodes": {"n1": ["Pod-a", "Pod-b"]}},
    "controllers": {"copies": [], "outstanding": {}},
}
EMPTY = ("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding")


def queues(**entries: list[dict[str, str]]) -> dict[str, Any]:
    """Return a scheduler's queues with these entries alone."""
    return {**{place: [] for place in EMPTY}, "nominated": {}, **entries}


def found(change: Callable[[Any], object]) -> list[str]:
    """Return the findings on the correct cluster after a change of the processes' states."""
    states = {name: copy.deepcopy(each) for name, each in STATES.items()}
    change(states)
    debug: dict[tuple[str, str], Any] = {(name, STATE): each for name, each in states.items()}
    debug[SCHEDULER, QUEUE] = queues()
    at_rest = replace(state(correct(), debug=debug), revisions={PODS: {"default/a": "7", "default/b": "7"}})
    return [str(each) for each in findings(at_rest)]


def unchanged(_states: Any) -> None:
    """Change nothing."""


def test_states_that_agree_with_the_objects_are_no_finding() -> None:
    assert found(unchanged) == []
    assert scopes_of(STATES["scheduler"]) == [PODS]
    assert scopes_of(None) == []


def objects(process: str, **revisions: str) -> Callable[[Any], object]:
    """Return a change of the pods that a process copies."""
    return put(f"{process}/copies/0/objects", {f"default/{name}": each for name, each in revisions.items()})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (objects("kubelet-0", a="7", b="8"), None),
        (
            objects("kubelet-0", a="7", b="6"),
            "pod default/b is copied by kubelet-0 at revision 6, and has changed since",
        ),
        (objects("kubelet-0", a="7"), "pod default/b is not copied by kubelet-0"),
        (
            objects("kubelet-0", a="7", b="7", c="7"),
            "pod default/c is copied by kubelet-0, and is gone",
        ),
        (
            put("scheduler/nodes/n1", ["Pod-a"]),
            "pod default/b is on n1, and for the cache of scheduler on no node",
        ),
        (
            put("scheduler/nodes/n1", ["Pod-a", "Pod-b", "gone"]),
            "pod gone is on n1 for the cache of scheduler, and is gone",
        ),
        (
            put("scheduler/problems", ["node n1 sums up to 2, and its pods to 1"]),
            "the cache of scheduler node n1 sums up to 2, and its pods to 1",
        ),
        (put("kubelet-0/nodes/n1", ["Pod-a"]), "pod default/b is not known to kubelet-0, the kubelet of n1"),
        (put("kubelet-0/nodes/n1", ["Pod-a", "Pod-b", "gone"]), "pod gone is still kept by kubelet-0 on n1"),
        (put("kubelet-0/nodes", {"n1": ["Pod-a", "Pod-b"], "gone": ["Pod-c"]}), None),
        (
            put("controllers/outstanding", {"replicaset-controller": ["default/web-1"]}),
            "replicaset-controller of controllers still waits for its writes for default/web-1",
        ),
    ],
)
def test_a_state_that_disagrees_is_found(change: Callable[[Any], object], expected: str | None) -> None:
    assert found(change) == ([expected] if expected else [])


def test_a_scheduler_that_lacks_a_node_is_found() -> None:
    assert "the cache of scheduler lacks the nodes n1" in found(put("scheduler/nodes", {}))


def test_a_pod_that_is_on_the_way_to_a_node_is_assumed_there() -> None:
    manifests = correct()
    manifests["b"]["spec"].pop("nodeName")
    debug: dict[tuple[str, str], Any] = {("scheduler", STATE): STATES["scheduler"]}
    text = "pod default/b is on no node, and for the cache of scheduler on n1"
    assert text in [str(each) for each in findings(state(manifests, debug=debug))]
    debug[SCHEDULER, QUEUE] = queues(binding=[{"pod": "default/b"}])
    assert text not in [str(each) for each in findings(state(manifests, debug=debug))]


_NOTHING: dict[str, Any] = {"deleting": [], "unneeded": [], "doubtfulTaints": []}


@pytest.mark.parametrize(
    ("taint", "loop", "expected"),
    [
        ("ToBeDeletedByClusterAutoscaler", {"deleting": ["n1"]}, ""),
        ("ToBeDeletedByClusterAutoscaler", {"unneeded": ["n1"]}, "and is not being deleted"),
        ("ToBeDeletedByClusterAutoscaler", {"doubtfulTaints": ["n2"]}, "and is not being deleted"),
        (
            "ToBeDeletedByClusterAutoscaler",
            {"doubtfulTaints": ["n1"]},
            f"and is not being deleted, {DOUBTFUL}",
        ),
        ("ToBeDeletedByClusterAutoscaler", {"doubtfulTaints": ["n1"], "deleting": ["n1"]}, ""),
        ("ToBeDeletedByClusterAutoscaler", {"at": ""}, ""),
        ("DeletionCandidateOfClusterAutoscaler", {"unneeded": ["n1"]}, ""),
        ("DeletionCandidateOfClusterAutoscaler", {}, "and is not unneeded"),
        ("DeletionCandidateOfClusterAutoscaler", {"error": "the cloud does not answer"}, ""),
    ],
)
def test_a_taint_of_the_autoscaler_has_a_reason(taint: str, loop: dict[str, Any], expected: str) -> None:
    manifests = correct()
    put("node/spec/taints", [{"key": taint, "effect": "PreferNoSchedule"}])(manifests)
    document = {"at": "2026-01-01T00:00:00Z", "error": "", **_NOTHING, **loop}
    text = [str(each) for each in findings(state(manifests, debug={(AUTOSCALER, LOOP): document}))]
    assert text == ([f"node n1 has the taint {taint}, {expected}"] if expected else [])


def test_an_autoscaler_whose_loops_fail_while_its_cloud_runs_is_found() -> None:
    debug = {(AUTOSCALER, LOOP): {"at": "2026-01-01T00:00:00Z", "error": "connection refused"}}
    running = frozenset({"autoscaler", "cloud"})
    text = [str(each) for each in findings(state(correct(), debug=debug, running=running))]
    assert text == ["the autoscaler fails in its loops: connection refused"]
    assert findings(state(correct(), debug=debug)) == []


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({}, ""),
        ({"target": 2}, "has the size 2 and 1 instances"),
        ({"min": 2, "largest": 2}, "has the size 1, and its limits are 2 to 3"),
        ({"min": 2, "largest": 1}, ""),
        ({"min": 2, "largest": 2, "failed": 1}, ""),
        ({"min": 3, "largest": 3, "failed": 1}, "has the size 1, and its limits are 3 to 3"),
        ({"max": 0}, "has the size 1, and its limits are 1 to 0"),
    ],
)
def test_a_node_group_has_its_size(group: dict[str, Any], expected: str) -> None:
    document = {"pool": {"min": 1, "max": 3, "largest": 1, "target": 1, "instances": ["pool-1"], **group}}
    text = [str(each) for each in findings(state(correct(), debug={(CLOUD, GROUPS): document}))]
    assert text == ([f"node group pool {expected}"] if expected else [])


REMOVED = "Removed unregistered node pool-1"
FAILED = "Failed adding 2 nodes to group pool due to OtherErrors"


@pytest.mark.parametrize(
    ("messages", "is_found"),
    [
        ([REMOVED, REMOVED], False),
        ([REMOVED], True),
        (["Nodes added to group pool failed to register within 5s"], False),
        ([FAILED], False),
        ([FAILED.replace("2", "1")], True),
        ([FAILED.replace("2", "1"), REMOVED], False),
        (["Removed unregistered node pool-2-1"] * 2, True),
        (["Removed unregistered node other-1"] * 2, True),
    ],
)
def test_a_group_is_below_its_minimum_by_the_instances_that_never_came(
    messages: list[str], *, is_found: bool
) -> None:
    group = {"min": 3, "max": 3, "largest": 3, "target": 1, "instances": ["pool-3"]}
    debug: dict[tuple[str, str], Any] = {(CLOUD, GROUPS): {"pool": group}, (AUTOSCALER, EVENTS): messages}
    assert bool(list(findings(state(correct(), debug=debug)))) is is_found


def test_a_group_is_below_its_minimum_if_a_step_deletes_its_instances() -> None:
    document = {"pool": {"min": 2, "max": 3, "largest": 2, "target": 0, "instances": []}}
    cluster = state(correct(), debug={(CLOUD, GROUPS): document})
    assert findings(cluster)
    expected = replace(cluster.expectations, emptied_groups=frozenset({"pool"}))
    assert findings(replace(cluster, expectations=expected)) == []
