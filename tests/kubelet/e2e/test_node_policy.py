"""The node's preemption policy for resizes over real processes. Source: KEP-5836."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from tests.kubelet.e2e.support import Lab, condition, in_force, is_ready, lab, pod
from tests.support.cluster import Cluster

GATE = ("--emulated-version", "1.37", "--feature-gates", "SchedulerPreemptionForPodResize=true")
DISABLED = "PodResizePreemptionDisabled"


async def set_policy(here: Lab, *owners: str) -> None:
    body = {"spec": {"podPreemptionPolicy": {"disableResizePreemption": list(owners)}}}
    await here.client.patch(kinds.NODE, "node-0", "", body)


@pytest.mark.parametrize("gates", [GATE, GATE[:2]], ids=["gate on", "gate off"])
async def test_a_deferred_pod_follows_the_policy_of_its_node(
    cluster: Cluster, gates: tuple[str, ...]
) -> None:
    """ "Kubelet-Scheduler Policy Coordination and Status Propagation"; the gate off knows no policy."""
    async with lab(cluster, "--node-cpu", "3", *gates, apiserver=GATE) as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.create(pod("b", {"cpu": "2"}))
        await here.pod("a", is_ready)
        await here.pod("b", is_ready)
        await here.resize("a", cpu="2")
        seen = await here.pod("a", lambda one: condition(one, "PodResizePending") is not None)
        assert condition(seen, DISABLED) is None
        await set_policy(here, "example.com/one", "example.com/two")
        if gates is not GATE:
            await here.resize("a", cpu="2500m")
            seen = await here.pod("a", lambda one: one.status.observedGeneration == 3)
            assert condition(seen, DISABLED) is None
            return
        seen = await here.pod("a", lambda one: condition(one, DISABLED) is not None)
        row = condition(seen, DISABLED)
        assert row is not None
        assert (row.status, row.reason, row.message) == (
            "True",
            "PreemptionDisabledByNodePolicy",
            "Preemption for in-place pod resize is disabled on node 'node-0' by preemption policy.",
        )
        await set_policy(here)
        await here.pod("a", lambda one: condition(one, DISABLED) is None)
        await set_policy(here, "example.com/one")
        await here.pod("a", lambda one: condition(one, DISABLED) is not None)
        await here.client.delete(kinds.POD, "b", "default")
        seen = await here.pod("a", lambda one: condition(one, "PodResizePending") is None)
        assert condition(seen, DISABLED) is None


@pytest.mark.parametrize(
    ("owners", "flavour", "preempts"),
    [((), "kep", True), (("example.com/one",), "kep", False), ((), "1.37", False)],
    ids=["no policy", "policy", "1.37"],
)
async def test_the_resize_of_a_critical_pod(
    cluster: Cluster, owners: tuple[str, ...], flavour: str, preempts: bool
) -> None:
    """ "Kubelet Preemption"; with the gate on, the kubelet of 1.37 never preempts for a resize."""
    more = ("--resize-preemption-flavour", flavour)
    async with lab(cluster, "--node-cpu", "3", *GATE, *more, apiserver=GATE) as here:
        await here.create(pod("k", {"cpu": "1"}, priorityClassName="system-node-critical"))
        await here.create(pod("a", {"cpu": "2"}))
        await here.pod("k", is_ready)
        await here.pod("a", is_ready)
        if owners:
            await set_policy(here, *owners)
            await here.resize("a", cpu="2500m")  # it shows that the kubelet knows the policy
            await here.pod("a", lambda one: condition(one, DISABLED) is not None)
        await here.resize("k", cpu="2")
        if preempts:
            seen = await here.pod("a", lambda one: one.status.phase == "Failed")
            assert seen.status.reason == "Preempting"
            await here.pod("k", lambda one: in_force(one) == {"cpu": "2"})
            return
        seen = await here.pod("k", lambda one: condition(one, "PodResizePending") is not None)
        assert (condition(seen, DISABLED) is not None) is bool(owners)
        assert {one.status.phase for one in here.history.events if one.metadata.name == "a"} == {
            "Pending",
            "Running",
        }
