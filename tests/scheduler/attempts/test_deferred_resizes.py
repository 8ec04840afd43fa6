"""Deferred resizes in the scheduling queue: each test names the section of KEP-5836 that it checks.

The table of what wakes a resize is that of kube-scheduler 1.37's integration tests, for both flavours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.api.deferred_resize import Fit, ResizePreemption
from tests.scheduler.resizing import (
    FLAVOURS,
    HIGH,
    KEP,
    LOW,
    SHIPPED,
    Bench,
    full,
    growing,
    node,
    pod,
    settled,
)

# ---- "How Deferred Resizes Integrate into the Scheduling Queue" ----


@FLAVOURS
def test_a_deferred_pod_enters_when_the_condition_comes_and_leaves_with_it(options: ResizePreemption) -> None:
    """ "Detecting Deferred Resizes in UpdatePod"."""
    bench = Bench(options)
    bench.put(node("node1", "300m"), growing(deferred=False))
    assert bench.place("growing") == ""
    bench.put(growing())
    assert bench.place("growing") == "active"
    bench.put(settled())
    assert bench.place("growing") == ""


@pytest.mark.parametrize("place", ["active", "unschedulable", "backoff"])
def test_a_resolved_resize_leaves_whatever_queue_it_is_in(place: str) -> None:
    """ "Detecting Deferred Resizes in UpdatePod"."""
    bench = full()
    if place != "active":
        bench.attempt()
    if place == "backoff":
        bench.remove("victim")
    assert bench.place("growing") == place
    bench.put(settled())
    assert bench.place("growing") == ""


@pytest.mark.parametrize("change", ["resolved", "disabled by the kubelet", "disabled by the node", "deleted"])
def test_a_pod_that_leaves_in_flight_is_not_requeued(change: str) -> None:
    """ "Detecting Deferred Resizes in UpdatePod", "Scheduler Action", with a cycle under way."""
    bench = full()

    def leave() -> None:
        if change == "resolved":
            bench.put(settled())
        elif change == "disabled by the kubelet":
            bench.put(growing(disabled=True))
        elif change == "disabled by the node":
            bench.put(node("node1", "300m", owners=("a.io/b",)))
        else:
            bench.remove("growing")

    bench.attempt(leave)
    assert bench.place("growing") == ""
    assert not len(bench.queue.in_flight)
    bench.put(node("node1", "300m"), growing())
    assert bench.place("growing") == "active"


def test_an_event_in_flight_wakes_the_pod() -> None:
    """ "Failures and Reconsideration of Deferred pods": only events of the pod's node."""
    for name, place in (("victim", "backoff"), ("far", "unschedulable")):
        bench = full(KEP, pod("far", "100m", on="node2"))
        bench.attempt(functools.partial(bench.remove, name))
        assert bench.place("growing") == place


@FLAVOURS
def test_a_starting_scheduler_queues_the_deferred_pods(options: ResizePreemption) -> None:
    """ "Scheduler Restart and State Recovery": pods may be listed before their nodes."""
    bench = Bench(options)
    bench.put(growing(), pod("victim", "200m"), node("node1", "300m"))
    assert bench.place("growing") == "active"
    assert bench.attempt().victims == ("victim",)


def test_the_cache_is_changed_before_the_queue() -> None:
    """ "Conflicting Sources of Truth for the Pod"."""
    bench = full()
    seen: list[int] = []
    update = bench.queue.update

    def noting(old: core.Pod, new: object, now: float) -> None:
        cached = bench.cache.get_pod("uid-growing")
        assert cached is not None
        seen.append(dict(cached.requests)[0])
        update(old, new, now)  # type: ignore[arg-type]

    bench.queue.update = noting  # type: ignore[method-assign]
    bench.put(growing("250m"))
    assert seen == [250]
    queued = bench.queue.pop()
    assert queued is not None
    assert dict(queued.pod_info.fit_requests)[0] == 250


@pytest.mark.parametrize("place", ["active", "unschedulable"])
def test_a_change_reaches_cache_and_queue(place: str) -> None:
    """ "Conflicting Sources of Truth for the Pod": "resize requests, priority updates, or label changes"."""
    bench = full()
    if place == "unschedulable":
        bench.attempt()
    assert bench.place("growing") == place
    bench.put(growing("310m", priority=HIGH + 1, labels={"a": "b"}))
    cached = bench.cache.get_pod("uid-growing")
    queued = bench.queue.get(ObjectKey("default", "growing"))
    assert cached is not None
    assert queued is not None
    for info in (cached, queued.pod_info):
        assert (info.priority, dict(info.labels), dict(info.fit_requests)[0]) == (HIGH + 1, {"a": "b"}, 310)


def test_a_queue_sorts_deferred_and_new_pods_by_priority() -> None:
    """ "How Deferred Resizes Integrate into the Scheduling Queue"."""
    bench = full()
    bench.put(pod("low", "100m", on="", priority=LOW), pod("top", "100m", on="", priority=HIGH + 1))
    assert [info.pod_info.name for info in bench.queue.active()] == ["top", "growing", "low"]


@pytest.mark.parametrize(
    "changes", [{"schedulerName": "other"}, {"terminating": True}, {"deferred": False}, {"disabled": True}]
)
def test_other_pods_are_not_queued(changes: dict[str, Any]) -> None:
    bench = Bench(KEP)
    bench.put(node("node1", "300m"), growing(**changes))
    assert bench.place("growing") == ""


def test_without_the_gate_no_bound_pod_is_queued() -> None:
    """ "Feature Enablement and Rollback"."""
    bench = full(None)
    assert bench.place("growing") == ""


@FLAVOURS
def test_a_deleted_pod_leaves_cache_and_queue(options: ResizePreemption) -> None:
    """ "Race between a Deferred resize and a new higher-priority pod": the resizing pod is a victim."""
    bench = Bench(options)
    bench.put(node("node1", "300m"), growing(), pod("top", "300m", on="", priority=HIGH + 1))
    assert bench.attempt().victims == ("growing",)
    bench.put(growing(terminating=True))
    assert bench.place("growing") == ""
    bench.remove("growing")
    assert bench.cache.get_pod("uid-growing") is None
    assert bench.wakes("top")
    assert bench.attempt().node == "node1"


# ---- "Node-level Preemption Policy for In-Place Pod Resize" ----


def test_the_condition_of_the_kubelet_removes_and_restores() -> None:
    """ "PodResizePreemptionDisabled Pod Condition", "Scheduler Action"."""
    bench = full()
    bench.attempt()
    assert bench.place("growing") == "unschedulable"
    bench.put(growing(disabled=True))
    assert bench.place("growing") == ""
    bench.put(growing())
    assert bench.place("growing") == "active"


def test_the_scheduler_reads_the_node_of_an_old_kubelet() -> None:
    """ "Version Skew Strategy": setting the policy stops the pod, clearing it wakes the pod at once."""
    bench = full()
    bench.attempt()
    bench.put(node("node1", "300m", owners=("a.io/b", "c.io/d")))
    assert bench.place("growing") == ""
    bench.put(node("node1", "300m", owners=("c.io/d",)))
    assert bench.place("growing") == ""
    bench.put(node("node1", "300m"))
    assert bench.place("growing") == "active"


def test_both_the_condition_and_the_node_must_allow() -> None:
    bench = full()
    bench.put(node("node1", "300m", owners=("a.io/b",)), growing(disabled=True))
    bench.put(node("node1", "300m"))
    assert bench.place("growing") == ""
    bench.put(growing())
    assert bench.place("growing") == "active"


def test_the_policy_of_1_37_keeps_the_pod_queued_and_wakes_it() -> None:
    """Kubernetes 1.37: the condition does not exist, and only the pod's own node matters."""
    bench = Bench(SHIPPED)
    bench.put(node("node1", "300m", owners=("a.io/b",)), node("node2", "9", owners=("a.io/b",)))
    bench.put(pod("victim", "200m"), growing(disabled=True))
    assert bench.attempt().victims == ()
    bench.put(node("node2", "9"))
    assert not bench.wakes("growing")
    bench.put(node("node1", "300m", owners=("c.io/d",)))
    assert not bench.wakes("growing")
    bench.put(node("node1", "300m"))
    assert bench.wakes("growing")
    assert bench.attempt().victims == ("victim",)


@FLAVOURS
def test_the_policy_does_not_concern_new_pods(options: ResizePreemption) -> None:
    """ "Policy Scope: Exclusivity to Pod Resize"."""
    bench = Bench(options)
    bench.put(node("node1", "300m", owners=("a.io/b",)), pod("victim", "200m"))
    bench.put(pod("new", "300m", on="", priority=HIGH))
    assert bench.attempt().victims == ("victim",)


# ---- "Failures and Reconsideration of Deferred pods" ----


def hint_bench(options: ResizePreemption, capacity: str, other: str, cpu: str) -> Bench:
    bench = Bench(options)
    bench.put(node("node1", capacity), node("node2", "500m"))
    bench.put(pod("other", other, priority=HIGH), pod("elsewhere", "200m", on="node2", priority=HIGH))
    bench.put(growing(cpu, allocated="50m", priority=LOW))
    return bench


HINTS: dict[str, tuple[str, str, str, Callable[[Bench], None], bool]] = {
    "pod elsewhere scaled down": (
        "200m", "200m", "100m", lambda b: b.put(pod("elsewhere", "100m", on="node2", priority=HIGH)), False),
    "pod on the node scaled down": (
        "200m", "200m", "100m", lambda b: b.put(pod("other", "100m", priority=HIGH)), True),
    "pod elsewhere deleted": ("200m", "200m", "100m", lambda b: b.remove("elsewhere"), False),
    "pod on the node deleted": ("200m", "200m", "100m", lambda b: b.remove("other"), True),
    "pod elsewhere scaled up": (
        "300m", "200m", "200m", lambda b: b.put(pod("elsewhere", "300m", on="node2", priority=HIGH)), False),
    "pod on the node scaled up": (
        "300m", "200m", "200m", lambda b: b.put(pod("other", "250m", priority=HIGH)), True),
    "label of a pod on the node": (
        "200m", "200m", "100m",
        lambda b: b.put(pod("other", "200m", priority=HIGH, labels={"a": "b"})), False),
    "other resource of a pod on the node": (
        "200m", "200m", "100m", lambda b: b.put(pod("other", "200m", priority=HIGH, memory="1Gi")), False),
    "other node grew": ("200m", "200m", "100m", lambda b: b.put(node("node2", "1")), False),
    "own node grew": ("200m", "200m", "100m", lambda b: b.put(node("node1", "1")), True),
    "own node shrank": ("200m", "200m", "100m", lambda b: b.put(node("node1", "100m")), False),
    "own node still too small": ("200m", "200m", "900m", lambda b: b.put(node("node1", "300m")), False),
    "taint of the own node": (
        "200m", "200m", "100m",
        lambda b: b.put(node("node1", "200m", taints=[{"key": "k", "effect": "NoSchedule"}])), False),
    "new node": ("200m", "200m", "100m", lambda b: b.put(node("node3", "9")), False),
    "own spec scaled down": (
        "200m", "200m", "100m", lambda b: b.put(growing("80m", allocated="50m", priority=LOW)), True),
    "own spec scaled up": (
        "500m", "200m", "400m", lambda b: b.put(growing("450m", allocated="50m", priority=LOW)), True),
    "own label": (
        "200m", "200m", "100m",
        lambda b: b.put(growing("100m", allocated="50m", priority=LOW, labels={"a": "b"})), False),
}  # fmt: skip


@FLAVOURS
@pytest.mark.parametrize("case", HINTS)
def test_what_wakes_a_resize_that_does_not_fit(options: ResizePreemption, case: str) -> None:
    """ "Failures and Reconsideration of Deferred pods", "Queueing Hints in NodeResourcesFit"."""
    capacity, other, cpu, change, woken = HINTS[case]
    bench = hint_bench(options, capacity, other, cpu)
    assert "Insufficient cpu" in bench.attempt().message
    assert bench.place("growing") == "unschedulable"
    change(bench)
    assert bench.wakes("growing") == woken


def test_a_failed_resize_backs_off() -> None:
    """ "Failures and Reconsideration of Deferred pods": standard exponential backoff."""
    bench = hint_bench(KEP, "200m", "200m", "100m")
    bench.attempt()
    for size in ("190m", "180m"):
        bench.put(pod("other", size, priority=HIGH))
        assert bench.place("growing") == "backoff"
        assert bench.wakes("growing")
        bench.attempt()


@pytest.mark.parametrize(
    ("fit", "desired", "allocated"), [(Fit.SCHEDULER, True, False), (Fit.KUBELET, False, True)]
)
def test_the_fit_decides_which_part_of_a_resize_wakes(fit: Fit, desired: bool, allocated: bool) -> None:
    """ "Risk of Additional Preemption": under the kubelet's fit a desire of another pod takes no room."""
    for cpu, held, woken in (("250m", "100m", desired), ("200m", "150m", allocated)):
        bench = hint_bench(ResizePreemption(fit=fit), "300m", "100m", "300m")
        bench.put(pod("other", "200m", allocated="100m", priority=HIGH))
        bench.attempt()
        bench.put(pod("other", cpu, allocated=held, priority=HIGH))
        assert bench.wakes("growing") == woken
