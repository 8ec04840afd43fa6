"""Findings about entries of processes at rest: of objects that are gone, or more than after a restart."""

from __future__ import annotations

from collections import Counter

import pytest

from nominee.lab.chaos.rest.leftovers import freed_by_restart, held_twice, of_gone
from nominee.simulation.leftovers import Holdings

DUE = "nominee.controllers.nodes.shell.eviction.TaintEviction._due."
TIMES = "nominee.controllers.endpoints.trigger_time.TriggerTimes._pods."
TAINTED = "nominee.controllers.devices.shell.eviction.DeviceTaintEviction._tainted."
QUEUED = "nominee.scheduler.queue.keyed_heap.KeyedHeap._entries."
NOMINATED = "nominee.scheduler.framework.nominations.nominator.Nominator._node_of."
GATED = "nominee.scheduler.queue.unschedulable.UnschedulablePods._pods."


def _holdings(
    entries: dict[str, int] | None = None,
    gone: dict[str, int] | None = None,
    component: str = "controllers",
) -> Holdings:
    return Holdings(component=component, entries=Counter(entries or {}), of_gone=Counter(gone or {}))


def test_entries_of_objects_that_are_gone() -> None:
    processes = {"kubelet-0": _holdings(gone={"NodeState.allocations": 2}), "scheduler": _holdings()}
    assert [str(each) for each in of_gone(processes)] == [
        "kubelet-0 has NodeState.allocations of 2 objects that are gone"
    ]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({DUE: 2}, {DUE: 1}, ["controllers had 2 entries of TaintEviction._due, and 1 after a restart"]),
        ({DUE: 2}, {}, ["controllers had 2 entries of TaintEviction._due, and 0 after a restart"]),
        ({DUE: 1}, {DUE: 1}, []),
        ({}, {DUE: 1}, []),
        ({"nominee.apiserver.cache.kind_cache.KindCache._history.": 9}, {}, []),
        ({TIMES: 2}, {}, []),
        ({TAINTED: 1}, {}, []),
    ],
    ids=[
        "fewer",
        "none",
        "as many",
        "more",
        "a history",
        "times of a Service that selects no pods any more",
        "tainted devices that no pod uses any more",
    ],
)
def test_entries_that_a_restart_frees(
    before: dict[str, int], after: dict[str, int], found: list[str]
) -> None:
    findings = freed_by_restart({"controllers": _holdings(before)}, {"controllers": _holdings(after)})
    assert [str(each) for each in findings] == found


def test_what_a_call_holds_is_not_held_twice() -> None:
    first = {"controllers": _holdings({DUE: 2, TIMES: 1}), "controllers-1": _holdings({DUE: 1})}
    second = {"controllers": _holdings({DUE: 1})}
    assert held_twice(first, second) == {"controllers": _holdings({DUE: 1})}


def test_processes_of_a_component_are_counted_together() -> None:
    before = {"controllers": _holdings({DUE: 1}), "controllers-1": _holdings()}
    after = {"controllers": _holdings(), "controllers-1": _holdings({DUE: 1})}
    assert list(freed_by_restart(before, after)) == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({QUEUED: 2, GATED: 2}, {QUEUED: 1, GATED: 3}, []),
        ({QUEUED: 2, GATED: 2}, {QUEUED: 1, GATED: 2}, ["2 entries of KeyedHeap._entries, and 1"]),
        ({QUEUED: 3}, {QUEUED: 1, GATED: 1}, ["3 entries of KeyedHeap._entries, and 2"]),
        ({NOMINATED: 1, GATED: 1}, {GATED: 1}, []),
        ({NOMINATED: 2, GATED: 1}, {GATED: 1}, ["2 entries of Nominator._node_of, and 1"]),
        ({QUEUED: 1, GATED: 2}, {QUEUED: 2, GATED: 1}, ["2 entries of UnschedulablePods._pods, and 1"]),
    ],
    ids=["gated", "gone", "one gated, one gone", "gated with a nomination", "kept", "no longer gated"],
)
def test_a_queued_pod_may_be_gated_after_a_restart(
    before: dict[str, int], after: dict[str, int], found: list[str]
) -> None:
    former, present = (_holdings(entries, component="scheduler") for entries in (before, after))
    findings = freed_by_restart({"scheduler-0": former}, {"scheduler-0": present})
    assert [str(each) for each in findings] == [f"scheduler had {each} after a restart" for each in found]
