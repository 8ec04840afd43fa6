"""The gate of KEP-5836 on and off on API server, kubelet and scheduler, over real processes.

A deferred resize on a node whose policy disables preemption; then the policy is cleared. The table is that of
docs/resize-preemption.md. Source: KEP-5836, "Version Skew Strategy", "Feature Enablement and Rollback".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest

from nominee.machinery.api import kinds
from tests.kubelet.e2e.support import Lab, condition, in_force, is_ready, lab, pod
from tests.scheduler.e2e.resizing import create_priorities, entry, is_evicted, set_policy, settle
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NODE: Final = "node-0"
DISABLED: Final = "PodResizePreemptionDisabled"
HEADER: Final = """\
| API server | kubelet | scheduler | stored | reported | victim evicted | reason |
|---|---|---|---|---|---|---|"""


class Evicted(StrEnum):
    """When the pod of lower priority is evicted for the resize."""

    NEVER = "never"
    AT_ONCE = "at once"
    CLEARED = "once cleared"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the API server stores the policy, the kubelet reports it, and a victim is evicted."""

    stored: bool
    reported: bool
    evicted: Evicted


@dataclass(frozen=True, slots=True)
class Row:
    """The gate on each component, and what follows."""

    apiserver: bool
    kubelet: bool
    scheduler: bool
    outcome: Outcome
    reason: str

    def __str__(self) -> str:
        gates = [_on(self.apiserver), _on(self.kubelet), _on(self.scheduler)]
        facts = [_yes(self.outcome.stored), _yes(self.outcome.reported), self.outcome.evicted]
        return f"| {' | '.join([*gates, *facts, self.reason])} |"


def _on(value: bool) -> str:
    return "on" if value else "off"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


ROWS: Final = (
    Row(True, True, True, Outcome(True, True, Evicted.CLEARED),
        "The kubelet reports the policy, and the scheduler obeys it."),
    Row(True, True, False, Outcome(True, True, Evicted.NEVER),
        "The kubelet reports the policy; the scheduler does not preempt for resizes."),
    Row(True, False, True, Outcome(True, False, Evicted.CLEARED),
        "The kubelet does not know the policy, so the scheduler reads it from the node."),
    Row(True, False, False, Outcome(True, False, Evicted.NEVER),
        "The policy is stored, and no component reads it."),
    Row(False, True, True, Outcome(False, False, Evicted.AT_ONCE),
        "The API server drops the policy, so nothing stops the scheduler."),
    Row(False, True, False, Outcome(False, False, Evicted.NEVER),
        "The API server drops the policy; the scheduler does not preempt for resizes."),
    Row(False, False, True, Outcome(False, False, Evicted.AT_ONCE),
        "The scheduler needs its own gate only; the API server drops the policy."),
    Row(False, False, False, Outcome(False, False, Evicted.NEVER),
        "The resize waits until other pods free the room, as in Kubernetes 1.36."),
)  # fmt: skip


def _gate(value: bool) -> tuple[str, ...]:
    return "--emulated-version=1.37", f"--feature-gates=SchedulerPreemptionForPodResize={str(value).lower()}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: "-".join(map(_on, (row.apiserver, row.kubelet, row.scheduler)))
)
async def test_the_gate_on_each_component(cluster: Cluster, row: Row) -> None:
    """ "Version Skew Strategy"; "Feature Enablement and Rollback"."""
    cluster.arguments("scheduler", *_gate(row.scheduler))
    kubelet = ("--node-cpu", "3", *_gate(row.kubelet))
    async with lab(cluster, *kubelet, apiserver=_gate(row.apiserver)) as here:
        await cluster.start("scheduler")
        await _run_pods(here)
        stored = await _set_policy(here)
        reported = await _defer(here, expected=row.outcome.reported)
        evicted = await _when_evicted(here, row.outcome.evicted)
        assert Outcome(stored, reported, evicted) == row.outcome
        if evicted is not Evicted.NEVER:
            await here.pod("growing", lambda one: in_force(one) == {"cpu": "2"})
            await eventually(lambda: entry(cluster, "growing"), lambda found: not found)


@pytest.mark.slow
async def test_a_kubelet_that_loses_the_gate_leaves_its_condition(cluster: Cluster) -> None:
    """ "Feature Enablement and Rollback": the scheduler goes by a condition that no kubelet removes."""
    cluster.arguments("scheduler", *_gate(True))
    kubelet = ("--nodes", "1", "--node-cpu", "3")
    async with lab(cluster, *kubelet, *_gate(True), apiserver=_gate(True)) as here:
        await cluster.start("scheduler")
        await _run_pods(here)
        await _set_policy(here)
        assert await _defer(here, expected=True)
        cluster.arguments("kubelet-0", *kubelet, *_gate(False))
        await here.restart_kubelet()
        await set_policy(here.client, NODE)
        await here.resize("growing", cpu="2500m")
        seen = await here.pod("growing", lambda one: one.status.observedGeneration == 3)
        assert condition(seen, DISABLED) is not None
        await settle(here.client, 0)
        assert entry(cluster, "growing") == {}
        assert not await is_evicted(here.client, "victim")
        # As docs/resize-preemption.md recommends.
        patch = {"status": {"conditions": [{"type": DISABLED, "$patch": "delete"}]}}
        await here.client.patch(kinds.POD, "growing", "default", patch, subresource="status")
        await here.pod("growing", lambda one: in_force(one) == {"cpu": "2500m"})


async def _run_pods(here: Lab) -> None:
    """node-0 of 3 CPUs is full: a victim of 2, and a pod of high priority that will grow from 1 to 2."""
    await create_priorities(here.client)
    for name, cpu, priority in (("victim", "2", "low"), ("growing", "1", "high")):
        await here.client.create(pod(name, {"cpu": cpu}, priorityClassName=priority, nodeName=NODE))
    for name in ("victim", "growing"):
        await here.pod(name, is_ready)


async def _set_policy(here: Lab) -> bool:
    """Return whether the API server has stored the policy."""
    await set_policy(here.client, NODE, "example.com/autoscaler")
    live = await here.client.get(kinds.NODE, NODE, "")
    return list(live.spec.podPreemptionPolicy.disableResizePreemption) == ["example.com/autoscaler"]


async def _defer(here: Lab, *, expected: bool) -> bool:
    """Return whether the kubelet reports the policy on the pod whose resize it has deferred."""
    await here.resize("growing", cpu="2")
    await here.pod("growing", lambda one: condition(one, "PodResizePending") is not None)
    if expected:
        await here.pod("growing", lambda one: condition(one, DISABLED) is not None)
    return any(condition(one, DISABLED) is not None for one in here.history.states["growing"])


async def _when_evicted(here: Lab, expected: Evicted) -> Evicted:
    """Return when the victim is evicted: with the policy set, when it is cleared, or never."""

    async def gone() -> bool:
        live = await here.get("victim")
        return live is None or live.metadata.HasField("deletionTimestamp")

    if expected is Evicted.AT_ONCE:
        await eventually(gone, bool)
        return Evicted.AT_ONCE
    await settle(here.client, 0)
    if entry(here.cluster, "growing") or await is_evicted(here.client, "victim"):
        return Evicted.AT_ONCE
    await set_policy(here.client, NODE)
    if expected is Evicted.CLEARED:
        await eventually(gone, bool)
        return Evicted.CLEARED
    await here.pod("growing", lambda one: condition(one, DISABLED) is None)
    await settle(here.client, 1)
    queued = bool(entry(here.cluster, "growing"))
    return Evicted.CLEARED if queued or await is_evicted(here.client, "victim") else Evicted.NEVER


def test_the_table_of_the_documentation() -> None:
    page = Path(__file__).parents[3] / "docs" / "resize-preemption.md"
    table = "\n".join([HEADER, *map(str, ROWS)])
    assert table in page.read_text(), f"put this table into docs/resize-preemption.md:\n{table}"


def test_the_table_has_all_combinations() -> None:
    assert len({(row.apiserver, row.kubelet, row.scheduler) for row in ROWS}) == 8
