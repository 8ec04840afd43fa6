"""The kubelet's own preemption for critical pods against kubelet_preemption.jsonl."""

from __future__ import annotations

import pytest

from nominee.kubelet.allocation.admission import recover
from nominee.kubelet.allocation.predicates import Failure
from nominee.kubelet.allocation.preemption import NoVictimsError, Shortage
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pods.record import PodRecord
from nominee.machinery.api.pb import core
from tests.kubelet.executor import name, uid
from tests.support.recordings import Case, read

CASES = read("kubelet_preemption.jsonl")


def record(node: NodeState, row: Case) -> PodRecord:
    """An active pod with a row's requests."""
    pod = core.Pod()
    pod.metadata.name, pod.metadata.uid = row["name"], uid(row["name"])
    pod.status.qosClass = row["qos"]
    if "priority" in row:
        pod.spec.priority = row["priority"]
    requests = pod.spec.containers.add(name="c").resources.requests
    if row["cpuMillis"]:
        requests["cpu"].string = f"{row['cpuMillis']}m"
    if row["memoryBytes"]:
        requests["memory"].string = str(row["memoryBytes"])
    return PodRecord(pod, node.desired_of(pod))


def failures(case: Case) -> list[Failure]:
    found = [
        Failure(
            reason=f"OutOf{row['resource']}",
            description=f"Insufficient {row['resource']}",
            message="",
            shortage=Shortage(row["resource"], row["insufficient"]),
        )
        for row in case["failures"]
    ]
    if other := case.get("otherFailure"):
        found.append(Failure(reason="Other", description=other, message=""))
    return found


def play(case: Case) -> Case:
    node = NodeState(core.Node())
    pods = [record(node, row) for row in case["pods"]]
    try:
        recovery = recover(node, record(node, case["admitPod"]), failures(case), pods)
    except NoVictimsError as error:
        return {"victims": [], "error": str(error)}
    result: Case = {"victims": [name(victim) for victim in recovery.victims]}
    if recovery.failures:
        result["remainingReasons"] = [failure.description for failure in recovery.failures]
    return result


def test_there_are_cases() -> None:
    assert len(CASES) > 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_victims(case: Case) -> None:
    assert play(case) == case["expect"]
