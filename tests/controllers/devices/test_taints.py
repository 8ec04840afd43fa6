"""Eviction of pods whose devices get NoExecute taints, and its time (KEP-5055)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from nominee.controllers.devices.shell import eviction
from nominee.controllers.devices.shell.eviction import DeviceTaintEviction
from nominee.controllers.devices.taints import ends_at, executing
from nominee.controllers.shell.controller import Context, InformerSet, Recorders
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, get_condition, owner_reference
from nominee.machinery.api.pb import core, devices
from nominee.machinery.client.api_client import Client
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import FakeClock, rfc3339
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of
from tests.support.devices import allocation, claim, device, resource_slice, using
from tests.support.fake_api import FakeApi

ADDED = 1_700_000_000.0


def taint(key: str = "dying", effect: str = "NoExecute", *, added: float | None = ADDED) -> dict[str, Any]:
    return {"key": key, "effect": effect, **({"timeAdded": rfc3339(added)} if added is not None else {})}


def tainted(*taints: Mapping[str, Any], generation: int = 1, name: str = "pool") -> devices.ResourceSlice:
    found = device("gpu", taints=list(taints))
    return resource_slice(name, found, pool="pool", generation=generation)


def user(*tolerations: Mapping[str, Any], by: str = "uid-p") -> devices.ResourceClaim:
    """Return a claim that has the device and is reserved for pod p."""
    found = allocation(("pool", "gpu"))
    found["devices"]["results"][0]["tolerations"] = list(tolerations)
    consumers = [{"resource": "pods", "name": "p", "uid": by}]
    return claim("c", status={"allocation": found, "reservedFor": consumers})


def tolerates(seconds: int | None = None, **fields: Any) -> dict[str, Any]:
    more = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"operator": "Exists", "effect": "NoExecute", **fields, **more}


@pytest.mark.parametrize(
    ("taints", "tolerations", "after"),
    [
        ([], [], None),
        ([taint(effect="NoSchedule"), taint(effect="None")], [], None),
        ([taint()], [], 0),
        ([taint()], [tolerates(key="other")], 0),
        ([taint()], [tolerates(effect="NoSchedule")], 0),
        ([taint()], [tolerates(effect="")], 0),  # enough for the scheduler alone
        ([taint()], [tolerates(60, effect=""), tolerates(20)], 20),
        ([taint()], [tolerates(operator="Equal", key="dying", value="x")], 0),
        ([taint()], [tolerates()], None),
        ([taint()], [tolerates(key="dying")], None),
        ([taint()], [tolerates(30), tolerates(20, key="dying")], 20),
        ([taint()], [tolerates(30), tolerates(key="dying")], None),
        ([taint()], [tolerates(-5)], 0),
        ([taint(), taint("late", added=ADDED + 50)], [tolerates(60, key="dying")], 50),
    ],
)
def test_when_pods_that_use_a_tainted_device_must_end(
    taints: list[dict[str, Any]], tolerations: list[dict[str, Any]], after: float | None
) -> None:
    found = ends_at(user(*tolerations), executing([tainted(*taints)]), lambda device, taint: 0.0)
    assert found == (None if after is None else ADDED + after)


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = tainted(taint()), tainted(generation=2, name="newer")
    assert executing([old]) != {}
    assert executing([old, new]) == {}


@asynccontextmanager
async def evicting(api: FakeApi, clock: FakeClock, **gates: bool) -> AsyncIterator[None]:
    client = cast("Client", api)
    recorders, informers = Recorders(client, clock), InformerSet(client, clock)
    context = Context(
        client=client,
        informers=informers,
        clock=clock,
        recorders=recorders,
        gates=Gates("controllers", Version(1, 36), gates),
        log=logs.get(),
    )
    controller = DeviceTaintEviction(context)
    async with anyio.create_task_group() as group:
        for run in (informers.run, recorders.run, controller.run):
            group.start_soon(run)
        await informers.wait_synced()
        yield
        group.cancel_scope.cancel()


def running_pod(uid: str = "uid-p") -> core.Pod:
    return using(pod("p", uid=uid, node="n1"), claim="c")


def is_gone(api: FakeApi) -> bool:
    return ObjectKey("default", "p") not in api.objects[kinds.POD]


async def test_a_pod_is_deleted_with_a_condition_when_its_device_is_tainted() -> None:
    api, clock = FakeApi(), FakeClock(ADDED)
    for obj in (tainted(), user(), running_pod()):
        api.put(obj)
    async with evicting(api, clock):
        api.put(tainted(taint()))
        await api.until(lambda: is_gone(api))
        await api.until(lambda: bool(api.events))
    written = [obj for type_, obj in api.log_of(kinds.POD) if type_ == "MODIFIED"]
    reason = get_condition(written[-1].status.conditions, "DisruptionTarget")
    assert reason is not None
    assert (reason.status, reason.reason) == ("True", "DeletionByDeviceTaintManager")
    assert api.events == [("DeviceTaintManagerEviction", "p", "Marking for deletion")]


async def test_a_pod_stays_for_as_long_as_its_claim_tolerates_the_taint() -> None:
    api, clock = FakeApi(), FakeClock(ADDED)
    for obj in (tainted(taint()), user(tolerates(60)), running_pod()):
        api.put(obj)
    async with evicting(api, clock):
        await clock.wait_for_sleepers(1)
        await clock.advance(59)
        assert not is_gone(api)
        await clock.advance(2)
        await api.until(lambda: is_gone(api))


@pytest.mark.parametrize("seconds", [0, 60])
async def test_a_pod_that_terminates_is_forgotten(seconds: int) -> None:
    api = FakeApi()
    api.put(running_pod())
    context = context_of(api, FakeClock(ADDED))
    informers = context.informers
    pods = informers.of(kinds.POD)
    pods._put(running_pod())
    controller, key = DeviceTaintEviction(context), ObjectKey("default", "p")
    informers.of(kinds.RESOURCE_CLAIM)._put(user(tolerates(seconds)))
    informers.of(kinds.RESOURCE_SLICE)._put(tainted(taint()))
    await controller.reconcile(key)
    assert controller._waiting | controller._evicted == {"uid-p"}
    ending = running_pod()
    ending.metadata.deletionTimestamp.seconds = int(ADDED)
    pods._put(ending)
    await controller.reconcile(key)
    assert controller._waiting | controller._evicted == set()


async def test_the_claim_for_extended_resources_of_a_pod_is_not_looked_at() -> None:
    api, of = FakeApi(), pod("p", uid="uid-p", node="n1")
    of.status.extendedResourceClaimStatus.resourceClaimName = "c"
    owned = user()
    owned.metadata.ownerReferences.append(owner_reference(of))
    api.put(of)
    context = context_of(api, FakeClock(ADDED))
    context.informers.of(kinds.POD)._put(of)
    context.informers.of(kinds.RESOURCE_CLAIM)._put(owned)
    context.informers.of(kinds.RESOURCE_SLICE)._put(tainted(taint()))
    controller = DeviceTaintEviction(context)
    await controller.reconcile(ObjectKey("default", "p"))
    assert not is_gone(api)
    assert controller._waiting | controller._evicted == set()


async def test_a_pod_that_is_replaced_while_it_is_evicted_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = FakeApi()
    api.put(running_pod())
    context = context_of(api, FakeClock(ADDED))
    pods = context.informers.of(kinds.POD)
    pods._put(running_pod())
    controller = DeviceTaintEviction(context)
    context.informers.of(kinds.RESOURCE_CLAIM)._put(user())
    context.informers.of(kinds.RESOURCE_SLICE)._put(tainted(taint()))

    async def replaces(client: Client, evicted: core.Pod, *_: object, **__: object) -> None:
        pods._put(running_pod("uid-new"))

    monkeypatch.setattr(eviction, "disrupt", replaces)
    await controller.reconcile(ObjectKey("default", "p"))
    assert controller._waiting | controller._evicted == set()


async def test_the_first_sight_of_a_taint_without_a_time_is_kept_in_a_full_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(eviction, "FIRST_SEEN_MAX", 1)
    api, clock = FakeApi(), FakeClock(ADDED)
    for obj in (tainted(taint(added=None)), user(tolerates(60)), running_pod()):
        api.put(obj)
    async with evicting(api, clock):
        await clock.wait_for_sleepers(1)
        await clock.advance(61)
        await api.until(lambda: is_gone(api))


async def test_a_taint_that_is_removed_in_time_cancels_the_eviction() -> None:
    api, clock = FakeApi(), FakeClock(ADDED)
    for obj in (tainted(taint()), user(tolerates(60)), running_pod()):
        api.put(obj)
    async with evicting(api, clock):
        await clock.wait_for_sleepers(1)
        api.put(tainted())
        await api.until(lambda: bool(api.events))
        await clock.advance(120)
    assert not is_gone(api)
    assert api.events == [("DeviceTaintManagerEviction", "p", "Cancelling deletion")]


@pytest.mark.parametrize(
    ("claims", "who", "gates"),
    [
        (user(by="uid-other"), running_pod(), {}),
        (user(), using(pod("p", uid="uid-p"), claim="c"), {}),  # it has no node yet
        (user(), running_pod(), {"DRADeviceTaints": False}),
    ],
)
async def test_pods_that_are_not_evicted(
    claims: devices.ResourceClaim, who: core.Pod, gates: dict[str, bool]
) -> None:
    api, clock = FakeApi(), FakeClock(ADDED)
    for obj in (tainted(taint()), claims, who):
        api.put(obj)
    async with evicting(api, clock, **gates):
        await clock.advance(10)
    assert not is_gone(api)
    assert api.events == []
