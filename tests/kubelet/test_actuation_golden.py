"""The order of actuation against kubelet_actuation.jsonl (real computePodActions and doPodResizeAction)."""

from __future__ import annotations

import pytest

from kubelet.resize.actuation import Call, ContainerResize, after, in_progress, plan
from kubelet.resources.requirements import Requirements
from tests.kubelet.golden import Case, cases

CASES = cases("kubelet_actuation.jsonl")
REFUSED = "runtime refused"


def container_resize(row: Case) -> ContainerResize:
    policy = row.get("resizePolicy", {})
    return ContainerResize(
        name=row["name"],
        actuated=Requirements.from_json(row["actuated"]),
        allocated=Requirements.from_json(row["allocated"]),
        restart_for=frozenset(name for name, value in policy.items() if value == "RestartContainer"),
        running=not row.get("exited", False),
        memory_usage=row["memoryUsageBytes"],
    )


def shown(call: Call) -> Case:
    row: Case = {"call": call.call}
    if call.container:
        row["container"] = call.container
    for key, value in (
        ("cpuQuota", call.cpu_quota),
        ("cpuShares", call.cpu_shares),
        ("memoryLimit", call.memory_limit),
    ):
        if value is not None:
            row[key] = value
    return row


def play(case: Case) -> Case:
    """Carries the plan out on a runtime that refuses the nth container update."""
    containers = [container_resize(row) for row in case["containers"]]
    result: Case = {"inProgressBefore": in_progress(containers)}
    found = plan(containers, pod_memory_usage=case["podMemoryUsageBytes"])
    if found.restart:
        result |= {"restart": list(found.restart), "updatePodCgroups": True}
    if found.update:
        result["update"] = {resource: list(names) for resource, names in found.update.items()}
    result["resizeActionRun"] = found.needed
    done: list[Call] = []
    rows: list[Case] = []
    error = found.error
    for call in found.calls:
        rows.append(shown(call))
        updates = sum(1 for one in done if one.call == "container")
        if call.call == "container" and updates + 1 == case.get("failContainerCall"):
            rows[-1]["failed"] = True
            error = REFUSED
            break
        done.append(call)
    if rows:
        result["calls"] = rows
    if error:
        result["error"] = error
    result["actuatedAfter"] = {one.name: after(one, done).to_json() for one in containers}
    result["inProgressAfter"] = in_progress(
        [
            ContainerResize(
                name=one.name, actuated=after(one, done), allocated=one.allocated, running=one.running
            )
            for one in containers
        ]
    )
    return result


def test_there_are_cases() -> None:
    assert len(CASES) > 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_order(case: Case) -> None:
    assert play(case) == case["expect"]
