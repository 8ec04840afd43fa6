"""The pods that a daemon set creates and deletes, and its status."""

from __future__ import annotations

import pytest

from nominee.controllers.daemon_sets.placement import FailedPods, Placement, Work, recheck_seconds, status_of
from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.daemons import Verdict
from nominee.machinery.scheduling.node_affinity import NAME_FIELD
from nominee.machinery.wire.codec import to_json
from tests.controllers.daemon_sets.builders import (
    KEEPS,
    NEITHER,
    OLD,
    RUNS,
    daemon,
    daemon_set,
    placement,
)


def _pending(name: str, node: str) -> core.Pod:
    """Return a pod that the scheduler has not bound yet."""
    made = daemon(name, "", ready=False, phase="Pending")
    term = (
        made.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.add()
    )
    term.matchFields.add(key=NAME_FIELD, operator="In", values=[node])
    return made


def _plan(at: Placement) -> tuple[list[str], list[str]]:
    work = at.plan(FailedPods(1))
    return work.create, [each.metadata.name for each in work.delete]


ON_N1 = [daemon("a")]
TWO = [daemon("b", created=2), daemon("a", created=1)]
GOING = [daemon("a", deleted=True)]
GONE = [daemon("a", deleted=True, phase="Failed")]


@pytest.mark.parametrize(
    ("verdict", "pods", "create", "delete"),
    [
        (RUNS, [], ["n1"], []),
        (RUNS, ON_N1, [], []),
        (RUNS, [_pending("a", "n1")], [], []),
        (RUNS, [_pending("a", "n1"), daemon("b")], [], ["a"]),  # the bound one stays
        (RUNS, TWO, [], ["b"]),  # the oldest stays
        (RUNS, GOING, [], []),
        (RUNS, GONE, ["n1"], []),
        (RUNS, [daemon("a", phase="Succeeded", ready=False)], [], ["a"]),
        (KEEPS, [], [], []),
        (KEEPS, ON_N1, [], []),
        (KEEPS, TWO, [], ["b"]),
        (NEITHER, [], [], []),
        (NEITHER, ON_N1, [], ["a"]),
        (NEITHER, TWO, [], ["a", "b"]),
        (NEITHER, GOING, [], []),
    ],
)
def test_one_pod_for_each_node(
    verdict: Verdict, pods: list[core.Pod], create: list[str], delete: list[str]
) -> None:
    assert _plan(placement(daemon_set(), *pods, nodes={"n1": verdict})) == (create, delete)


NEW_WAITS = daemon("new", ready=False)
NEW_READY = daemon("new")
OLD_READY, OLD_WAITS = daemon("old", of=OLD), daemon("old", of=OLD, ready=False)


@pytest.mark.parametrize(
    ("pods", "create", "delete"),
    [
        ([], ["n1"], []),
        (GOING, ["n1"], []),  # it does not wait for the end of a pod, as it may have two
        ([OLD_READY], [], []),
        ([OLD_READY, NEW_WAITS], [], []),
        ([OLD_READY, NEW_READY], [], ["old"]),
        ([OLD_WAITS, NEW_WAITS], [], ["old"]),
        ([OLD_READY, NEW_WAITS, daemon("newer", created=9), daemon("older", of=OLD, created=9)], [],
         ["newer", "older"]),
        ([daemon("new", created=5), daemon("newer", created=9)], [], ["newer"]),
    ],
)  # fmt: skip
def test_two_pods_on_a_node_that_surges(pods: list[core.Pod], create: list[str], delete: list[str]) -> None:
    owner = daemon_set(surge="10%", unavailable=0)
    assert _plan(placement(owner, *pods, nodes=["n1"])) == (create, delete)


def test_a_new_pod_that_is_ready_too_shortly_does_not_replace_the_old_one() -> None:
    owner = daemon_set(surge=1, unavailable=0, min_ready_seconds=30)
    pods = [OLD_READY, daemon("new", ready_since=980)]
    assert _plan(placement(owner, *pods, nodes=["n1"])) == ([], [])
    assert _plan(placement(owner, *pods, nodes=["n1"], now=1010)) == ([], ["old"])


def test_a_pod_that_no_node_can_get_is_deleted() -> None:
    pods = [_pending("a", "gone"), daemon("b", "gone"), daemon("c")]
    assert _plan(placement(daemon_set(), *pods, nodes=["n1"])) == ([], ["a"])


def _fails(failed: FailedPods, now: int, node: str = "n1") -> Work:
    found = daemon("a", node, phase="Failed", ready=False)
    return placement(daemon_set(), found, nodes=[node], now=now).plan(failed)


def test_failed_pods_are_replaced_after_a_back_off() -> None:
    failed = FailedPods(1)
    work = _fails(failed, 100)
    (event,) = work.events
    assert (event.type, event.reason) == ("Warning", "FailedDaemonPod")
    assert event.note == "Found failed daemon pod default/a on node n1, will try to kill it"
    assert (len(work.delete), work.again_seconds) == (1, None)
    assert not _fails(failed, 100)
    assert _fails(failed, 100).again_seconds == 1
    assert _fails(failed, 100, "n2")  # each node has its own
    assert _fails(failed, 101)
    assert _fails(failed, 102).again_seconds == 2
    assert _fails(failed, 103)
    for _ in range(20):
        now = 104
        while not _fails(failed, now):
            now += 60
    assert _fails(failed, now).again_seconds == 900
    assert _fails(failed, now + 1801)  # forgotten
    assert _fails(failed, now + 1802)
    assert _fails(failed, now + 1802).again_seconds == 2
    assert len(failed) == 1


def test_a_pod_that_succeeded_is_replaced_at_once() -> None:
    work = placement(daemon_set(), daemon("a", phase="Succeeded"), nodes=["n1"]).plan(FailedPods(1))
    (event,) = work.events
    assert (event.type, event.reason) == ("Normal", "SucceededDaemonPod")
    assert event.note == "Found succeeded daemon pod default/a on node n1, will try to delete it"


def test_status() -> None:
    owner = daemon_set(min_ready_seconds=30)
    owner.metadata.generation, owner.status.collisionCount = 4, 2
    pods = [
        daemon("a", "n1", ready_since=900),
        daemon("b", "n2", ready_since=990, of=OLD),
        daemon("c", "n3", ready=False),
        daemon("d", "n5"),
        daemon("e", "n6"),
    ]
    verdicts = {**dict.fromkeys(["n1", "n2", "n3", "n4"], RUNS), "n5": KEEPS, "n6": NEITHER, "n7": NEITHER}
    at = placement(owner, *pods, nodes=verdicts)
    status = status_of(at, observed=True)
    assert to_json(status) == {
        "observedGeneration": 4, "collisionCount": 2,
        "desiredNumberScheduled": 4, "currentNumberScheduled": 3, "numberMisscheduled": 2,
        "numberReady": 2, "numberAvailable": 1, "numberUnavailable": 3,
        "updatedNumberScheduled": 2,
    }  # fmt: skip
    assert recheck_seconds(at) == 30
    assert status_of(at, observed=False).observedGeneration == 0


def test_the_oldest_pod_of_a_node_counts() -> None:
    owner = daemon_set(surge=1, unavailable=0)
    at = placement(owner, daemon("new", ready=False, created=9), OLD_READY, nodes=["n1"])
    status = status_of(at, observed=True)
    assert (status.currentNumberScheduled, status.numberReady, status.updatedNumberScheduled) == (1, 1, 0)
    assert recheck_seconds(at) is None


def test_a_ready_pod_of_a_surge_is_looked_at_again() -> None:
    owner = daemon_set(surge=1, unavailable=0, min_ready_seconds=30)
    old = daemon("old", of=OLD, ready_since=100, created=1)
    at = placement(owner, old, daemon("new", ready_since=990, created=9), nodes=["n1"])
    assert recheck_seconds(at) == 30
    later = placement(owner, old, daemon("new", ready_since=960, created=9), nodes=["n1"])
    assert recheck_seconds(later) is None
