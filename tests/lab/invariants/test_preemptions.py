"""Victims have a lower priority than their preemptor, and redundant ones are counted."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.preemption.redundant_victims import RedundantVictims
from nominee.lab.history.invariants.preemption.victim_priority import VictimPriority
from nominee.machinery.api.objects import copy_of
from tests.lab.invariants.histories import History, event, lease, node, pod, result_of, violations_of

MARKED = {"DisruptionTarget": "PreemptionByScheduler"}


def _history(victim: int, preemptor: int, *, related: bool = True, with_event: bool = True) -> History:
    """Return a preemption by pods with these priorities."""
    low, high = pod("low", node="n1", priority=victim), pod("high", priority=preemptor)
    history = History().put(low, high, pod("low", node="n1", priority=victim, conditions=MARKED)).delete(low)
    if with_event:
        note = "Preempted by pod uid-high on node n1"
        history.put(event("low.1", "Preempted", low, note=note, related=high if related else None))
    return history


@pytest.mark.parametrize("related", [True, False], ids=["by reference", "by note"])
def test_the_priorities_are_compared(related: bool) -> None:
    assert violations_of(VictimPriority, _history(1, 2, related=related)) == []
    for equal_or_higher in (2, 3):
        (violation,) = violations_of(VictimPriority, _history(equal_or_higher, 2, related=related))
        assert violation.message == (
            f"the pod of priority {equal_or_higher} was preempted by Pod default/high of priority 2"
        )
        assert violation.revisions == (2, 3, 5)


def test_the_event_alone_is_enough() -> None:
    low, high = pod("low", node="n1", priority=2), pod("high", priority=2)
    unmarked = History().put(low, high, event("low.1", "Preempted", low, related=high))
    assert len(violations_of(VictimPriority, unmarked)) == 1


def test_the_preemptor_may_be_gone_when_the_event_comes() -> None:
    low, high = pod("low", node="n1", priority=2), pod("high", priority=2)
    gone = History().put(low, high).delete(high).put(event("low.1", "Preempted", low, related=high))
    assert len(violations_of(VictimPriority, gone)) == 1


def test_a_victim_without_an_event() -> None:
    result = result_of(VictimPriority, _history(1, 2, with_event=False))
    assert result.violations == ()
    assert result.exceptions == {"preemptor-unknown": 1}
    (violation,) = violations_of(VictimPriority, _history(2, 2, with_event=False))
    assert violation.message == (
        "the pod of priority 2 was preempted, and no pod of more than priority 2 waited for room"
    )
    low = pod("low", node="n1")
    alone = History().put(low, pod("bound", node="n1", priority=5), pod("low", node="n1", conditions=MARKED))
    assert len(violations_of(VictimPriority, alone)) == 1


def test_a_deferred_resize_waits_for_room() -> None:
    deferred = pod("high", node="n1", priority=5, conditions={"PodResizePending": "Deferred"})
    low = pod("low", node="n1")
    history = History().put(low, deferred, pod("low", node="n1", conditions=MARKED))
    assert result_of(VictimPriority, history).exceptions == {"preemptor-unknown": 1}


@pytest.mark.parametrize("reason", ["EvictionByEvictionAPI", "TerminationByKubelet"])
def test_other_disruptions_are_not_checked(reason: str) -> None:
    low = pod("low", node="n1", priority=9)
    other = pod("low", node="n1", priority=9, conditions={"DisruptionTarget": reason})
    result = result_of(VictimPriority, History().put(low, other))
    assert (result.checked, result.violations) == (0, ())


def _preemption(*, cpu: str, binds_to: str = "n1", node_cpu: str = "3") -> History:
    """Return a preemption of three pods with 1 cpu each by one that requests `cpu`."""
    victims = [pod(f"low{number}", node="n1", cpu="1", priority=number) for number in range(3)]
    high = pod("high", cpu=cpu, priority=9)
    history = History().put(node("n1", cpu=node_cpu), node("n2", cpu="9"), *victims, high)
    for victim in victims:
        marked = pod(
            victim.metadata.name, node="n1", cpu="1", priority=victim.spec.priority, conditions=MARKED
        )
        history.put(marked).delete(marked)
    history.put(event("low0.1", "Preempted", victims[0], related=high))
    history.put(pod("high", cpu=cpu, priority=9, node=binds_to))
    for victim in victims[1:]:
        history.put(event(f"{victim.metadata.name}.1", "Preempted", victim, related=high))
    return history


@pytest.mark.parametrize(
    ("history", "counts"),
    [
        (_preemption(cpu="3"), {}),
        (_preemption(cpu="2500m"), {}),
        (_preemption(cpu="2"), {"redundant": 1}),
        (_preemption(cpu="1"), {"redundant": 2}),
        (_preemption(cpu="1", node_cpu="4"), {"redundant": 3}),
        (_preemption(cpu="3", binds_to="n2"), {"on-other-nodes": 3}),
    ],
)
def test_redundant_victims_are_counted(history: History, counts: dict[str, int]) -> None:
    result = result_of(RedundantVictims, history)
    assert result.counts == counts
    assert result.checked == 3
    assert result.violations == ()


def test_the_victims_of_a_binding_and_of_a_resize() -> None:
    """The preemptor is bound with one redundant victim; then its resize has another one."""
    low, lower = pod("low", node="n1", cpu="1"), pod("lower", node="n1", cpu="1")
    history = History().put(node("n1", cpu="4"), low, lower, pod("high", cpu="1", priority=9))
    bound = pod("high", cpu="1", priority=9, node="n1", allocated="1")
    deferred = pod(
        "high", cpu="2", priority=9, node="n1", allocated="1", conditions={"PodResizePending": "Deferred"}
    )
    resized = pod("high", cpu="2", priority=9, node="n1", allocated="2")
    for victim, done in ((low, bound), (lower, resized)):
        marked = pod(victim.metadata.name, node="n1", cpu="1", conditions=MARKED)
        history.put(marked, event(f"{victim.metadata.name}.1", "Preempted", victim, related=bound))
        history.delete(marked).put(done)
        if done is bound:
            history.put(deferred)
    result = result_of(RedundantVictims, history)
    assert (result.checked, result.counts) == (2, {"redundant": 2})


def test_victims_of_a_pod_that_still_waits_are_not_counted() -> None:
    history = _preemption(cpu="1")
    history.revisions = [each for each in history.revisions if each.name != "high" or each.previous is None]
    assert result_of(RedundantVictims, history).checked == 0


@pytest.mark.parametrize(("writes", "count"), [(1, 0), (16, 1)], ids=["at once", "later"])
def test_a_mark_may_reach_a_pod_that_was_created_again(writes: int, count: int) -> None:
    low, again = pod("low", node="n1", priority=1), pod("low", uid="other", node="n1", priority=2)
    marked = pod("low", uid="other", node="n1", priority=2, conditions=MARKED)
    history = History().put(low, pod("high", priority=2)).delete(low).put(*[again] * writes, marked)
    result = result_of(VictimPriority, history)
    assert len(result.violations) == count
    assert result.exceptions == ({} if count else {"former-object": 1})


@pytest.mark.parametrize(("absent", "others", "count"), [(65, 0, 0), (0, 65, 1)])
def test_a_preemptor_that_is_gone_while_no_api_server_ran(absent: int, others: int, count: int) -> None:
    high, victim = pod("h", priority=10), pod("v", node="n1", priority=1)
    marked = copy_of(victim)
    marked.status.conditions.add(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    history = History().put(lease("n1"), victim, high).delete(high)
    history.put(*[node("other")] * others).wait(absent).put(lease("n1"), marked)
    assert len(violations_of(VictimPriority, history)) == count
