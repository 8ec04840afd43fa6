"""DynamicResources: devices that must be prepared before the binding (KEP-5007)."""

from __future__ import annotations

import anyio
import pytest
from prometheus_client import CollectorRegistry

from nominee.machinery.runtime.clock import FakeClock, to_time
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.plugins.dynamic_resources import readiness
from nominee.scheduler.shell.metrics.tables import Metrics
from tests.scheduler.plugins.claim_stage import Stage, allocated, mine, user
from tests.support.devices import (
    device,
    resource_slice,
)
from tests.support.patience import PATIENCE_SECONDS

CONDITIONS = resource_slice(
    "s1", device("gpu-0", bindingConditions=["ready"], bindingFailureConditions=["failed"]), node="n1"
)


def set_condition(stage: Stage, type_: str) -> None:
    found = stage.claim()
    status = found.status.devices.add(driver="gpu.example.com", pool="s1", device="gpu-0")
    status.conditions.add(type=type_, status="True", reason="Broken", message="no power")
    stage.api.put(found)


@pytest.mark.parametrize(
    ("condition", "text", "outcome"),
    [
        ("ready", "", "success"),
        ("failed", 'claim claim binding failed: reason=Broken, message="no power"', "failure"),
        ("", "device binding timeout", "timeout"),
    ],
)
async def test_binding_conditions(condition: str, text: str, outcome: str) -> None:
    stage = Stage(mine(), CONDITIONS)
    metrics = Metrics(CollectorRegistry())
    stage.framework.environment.note = metrics.note
    who = user()
    assert stage.feasible(who) == ["n1"]
    assert stage.reserve(who, "n1") is None
    result: list[Status | None] = []

    async def pre_bind() -> None:
        result.append(await stage.run(stage.plugin.pre_bind(stage.state, who, "n1")))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(pre_bind)
            await stage.clock.wait_for_sleepers()
            if condition:
                set_condition(stage, condition)
            while not result:
                await stage.clock.advance(100.0)
    assert (result[0].message() if result[0] else "") == text
    labels = {"profile": "default-scheduler", "driver": "gpu.example.com", "status": outcome}
    for name in ("allocations_total", "wait_duration_seconds_count"):
        assert metrics.registry.get_sample_value(f"scheduler_dra_bindingconditions_{name}", labels) == 1


def test_shares_of_a_device_are_ready_by_its_first_status() -> None:
    shared = allocated("n1")
    [result] = shared.status.allocation.devices.results
    result.bindingConditions.append("ready")
    result.shareID = "share-2"
    for share, is_true in (("share-1", "True"), ("share-2", "False")):
        status = shared.status.devices.add(
            driver=result.driver, pool=result.pool, device=result.device, shareID=share
        )
        status.conditions.add(type="ready", status=is_true)
    assert readiness.is_ready(shared)
    del shared.status.devices[0]
    assert not readiness.is_ready(shared)


def test_a_claim_that_does_not_get_ready_is_freed() -> None:
    late = allocated("n1")
    late.status.allocation.devices.results[0].bindingConditions.append("ready")
    late.status.allocation.allocationTimestamp.CopyFrom(to_time(FakeClock().now() - 601))
    stage = Stage(late, CONDITIONS)
    assert stage.verdicts(user())["n1"] == "resourceclaim not available on the node"
    _, status = stage.post_filter(user())
    assert status is not None
    assert status.message() == "deallocation of ResourceClaim completed"
