"""What is recorded and written after a failed attempt."""

from __future__ import annotations

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime import failpoints
from tests.scheduler.builders import node, pod
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi

NO_NODES = "no nodes available to schedule pods"


async def test_without_nodes_event_and_condition_have_the_message() -> None:
    api = FakeApi()
    api.put(pod("p", nominated="n1").pod)
    async with running(api) as parts:
        await api.until(lambda: bool(api.events) and bool(api.pod("p").status.conditions))
        # No plugin rejected it: it waits for its backoff, not for an event.
        [queued] = parts.queue.error_backing_off()
    assert queued.pod_info.name == "p"
    assert api.events == [("FailedScheduling", "p", NO_NODES)]
    status = api.pod("p").status
    [condition] = status.conditions
    assert (condition.type, condition.status) == ("PodScheduled", "False")
    assert (condition.reason, condition.message) == ("Unschedulable", NO_NODES)
    assert not status.nominatedNodeName


async def test_the_failure_of_a_deleted_pod_does_not_reach_its_successor() -> None:
    """One event, one write, one attempt: those of the pod that has the name now."""
    api = FakeApi()
    api.put(pod("p").pod)
    failpoints.arm("scheduler.cycle.before", "pause")
    async with running(api) as parts:
        await api.until(lambda: "uid-p" in parts.queue.in_flight)
        api.remove(kinds.POD, "p")
        successor = pod("p").pod
        successor.metadata.uid = "uid-2"
        api.put(successor)
        await api.until(lambda: parts.queue.get(ObjectKey("default", "p")) is not None)
        failpoints.arm("scheduler.cycle.before", "off")
        await api.until(lambda: bool(api.events) and bool(api.pod("p").status.conditions))
        [queued] = parts.queue.error_backing_off()
        assert (queued.pod_info.uid, queued.attempts, queued.consecutive_errors_count) == ("uid-2", 1, 1)
        assert not len(parts.queue.in_flight)
    assert len(api.events) == 1
    assert len(api.writes("p")) == 1


async def test_an_event_that_comes_before_the_pod_is_queued_again_is_not_lost() -> None:
    api = FakeApi()
    api.put(node("small", cpu="1"))
    api.put(pod("p", cpu="2").pod)
    failpoints.arm("scheduler.cycle.after", "1*pause")
    async with running(api) as parts:
        await api.until(lambda: bool(failpoints.REGISTRY.point("scheduler.cycle.after").state().waiting))
        api.put(node("large", cpu="4"))
        await api.until(lambda: "large" in parts.cache.node_names())
        failpoints.arm("scheduler.cycle.after", "off")
        await api.until(lambda: api.pod("p").spec.nodeName == "large")
