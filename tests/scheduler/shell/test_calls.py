"""What a pod costs in calls of the API server (KEP-5278: one more PATCH only for a pod that is delayed)."""

from __future__ import annotations

from collections import Counter

import pytest

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, PermitPlugin, PreBindPlugin, Status
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.builders import node, pod
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi

PODS_EACH = 5
CALLS = {
    "plain": ["bind"],
    "permit": ["patch/status", "bind"],
    "prebind": ["patch/status", "bind"],
    "both": ["patch/status", "bind"],
}


class Delays(PermitPlugin, PreBindPlugin):
    """Delays a pod where its label `delay` says."""

    name = "Delays"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        return (Status(Code.Wait), 60.0) if pod.labels["delay"] in ("permit", "both") else (None, 0.0)

    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        return (None if pod.labels["delay"] in ("prebind", "both") else Status(Code.Skip)), True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None


@pytest.mark.parametrize("gate", [True, False])
async def test_a_delayed_pod_costs_one_more_patch_and_no_other_pod_does(gate: bool) -> None:
    api = FakeApi()
    for index in range(4):
        api.put(node(f"n{index}", cpu="100"))
    names = [f"{delay}-{index}" for delay in CALLS for index in range(PODS_EACH)]
    for name in names:
        made = pod(name).pod
        made.metadata.labels["delay"] = name.partition("-")[0]
        api.put(made)
    async with running(api, Delays(), gates={"NominatedNodeNameForExpectation": gate}) as parts:
        await api.until(lambda: len(parts.waiting) == 2 * PODS_EACH)
        for waiting in list(parts.waiting):
            waiting.allow("Delays")
        await api.until(lambda: all(api.pod(name).spec.nodeName for name in names))
    counted = Counter(request.verb for request in api.requests)
    delayed = 3 * PODS_EACH if gate else 0
    assert counted == Counter({"bind": len(names), "patch/status": delayed})
    for name in names:
        wanted = CALLS[name.partition("-")[0]] if gate else ["bind"]
        assert [verb for verb, _ in api.writes(name)] == wanted, name
