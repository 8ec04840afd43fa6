"""SIGKILL between any two instructions of the kubelet: no allocation is lost, nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubelet.instructions import Actuate, StartContainers, StopContainers
from kubelet.resize.actuation import Call, RestartContainers
from machinery.wire.codec import to_json
from tests.kubelet.executor import (
    Executor,
    KilledError,
    container,
    deleted,
    new_pod,
    node_object,
    resized,
    uid,
)

CPU_MAX = 4000
_COMPARED = ("name", "containerID", "restartCount", "ready", "resources", "allocatedResources")


def steps(here: Executor) -> Iterator[None]:
    """What the clients do, one after the other; each waits until the kubelet has nothing more to do."""
    here.store(
        new_pod(
            "a",
            container("plain", cpu="1", memory="1Gi", limits={"cpu": "1", "memory": "1Gi"}),
            container("restarted", cpu="500m", memory="1Gi", restarts_for=("memory",)),
        )
    )
    here.store(new_pod("b", container("main", cpu="2")))
    here.observe("a", "b")
    yield
    here.store(resized(here.api["a"], "plain", cpu="500m", memory="2Gi"))
    here.observe("a")
    yield
    here.store(resized(here.api["a"], "restarted", memory="2Gi"))
    here.observe("a")
    yield
    here.store(resized(here.api["a"], "plain", cpu="2"))  # deferred: b has the room
    here.observe("a")
    yield
    here.store(resized(here.api["b"], "main", cpu="1"))
    here.observe("b")
    yield
    here.store(deleted(here.api["b"]))
    here.observe("b")
    yield
    here.observe("b")
    yield


def settle(here: Executor) -> None:
    """Let the kubelet work, killed or not, until it has nothing more to do."""
    for _ in range(3):
        try:
            here.work()
            if here.node.queue:
                here.pass_time(180.0)
                here.retry()
        except KilledError:
            here.start_process()
            here.list_pods()


class Checked(Executor):
    """Never gives the containers of a node more than the node has."""

    def save(self) -> None:
        super().save()
        total = sum(
            one.resources.requests.number("cpu")
            for sandbox in self.runtime.sandboxes.values()
            for one in sandbox.containers
            if one.state == "running"
        )
        assert total <= CPU_MAX


def play(kill_at: int | None) -> Executor:
    here = Checked(node_object(cpu="4", memory="16Gi", pods="10"), kill_at=kill_at)
    here.list_pods()
    for _ in steps(here):
        settle(here)
    return here


def done(here: Executor) -> dict[str, list[Any]]:
    """What must happen exactly once."""
    actuated = [one.call for one in here.performed if isinstance(one, Actuate)]
    return {
        "updates": [call for call in actuated if isinstance(call, Call) and call.call == "container"],
        "restarts": [call.names for call in actuated if isinstance(call, RestartContainers)],
        "starts": [one.uid for one in here.performed if isinstance(one, StartContainers)],
        "stops": [one.uid for one in here.performed if isinstance(one, StopContainers)],
    }


def left(here: Executor) -> dict[str, Any]:
    """What is to be seen at the end, without times: a restarted kubelet tries pending resizes later."""
    status = to_json(here.api["a"].status)
    return {
        "pods": sorted(here.api),
        "allocations": here.node.allocations,
        "containers": [{key: row[key] for key in _COMPARED} for row in status["containerStatuses"]],
        # As recorded: PodResizePending that was written before the kill stays until the next resize.
        "conditions": {
            row["type"]: row["status"] for row in status["conditions"] if row["type"] != "PodResizePending"
        },
    }


WHOLE = play(None)


def test_the_sequence_has_what_is_to_be_killed() -> None:
    assert list(WHOLE.api) == ["a"]
    assert len(done(WHOLE)["updates"]) == 4
    assert done(WHOLE)["restarts"] == [("restarted",)]
    assert WHOLE.node.allocations[uid("a")].of("plain").requests.get("cpu") == "2"
    assert "PodResizeInProgress" not in left(WHOLE)["conditions"]


@pytest.mark.parametrize("kill_at", range(len(WHOLE.performed)))
def test_a_kill_before_an_instruction_loses_and_repeats_nothing(kill_at: int) -> None:
    here = play(kill_at)
    assert here.kill_at is None, "it was killed"
    assert done(here) == done(WHOLE)
    assert left(here) == left(WHOLE)
