"""Devices that come free: while the watch does not show claims, and beside evictions (KEP-4381)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

import anyio
import pytest
from google.protobuf.message import Message

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import key_of
from nominee.machinery.client.api_client import WatchEvent
from nominee.scheduler.shell.process.wiring import Parts
from tests.scheduler.builders import node, pod
from tests.scheduler.shell.conftest import running
from tests.support.devices import allocation, claim, device, device_class, resource_slice
from tests.support.fake_api import FakeApi

M = TypeVar("M", bound=Message)


class LateApi(FakeApi):
    """Withholds the events of claims until `shows`, and delivers the last one of each claim then."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shows = anyio.Event()

    async def watch_batches(
        self, kind: Kind[M], namespace: str = "", *, resource_version: str, **options: object
    ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
        batches = super().watch_batches(kind, namespace, resource_version=resource_version, **options)
        async for batch in batches:
            yield [*{key_of(event.object): event for event in batch}.values()]
            if kind is kinds.RESOURCE_CLAIM:
                await self.shows.wait()


def unschedulable(parts: Parts) -> list[str]:
    return [info.pod_info.name for info in parts.queue.unschedulable()]


async def test_a_device_that_was_used_and_freed_unseen_wakes_the_pod_that_waits_for_it() -> None:
    api = LateApi()
    api.put(node("n1"))
    api.put(device_class())
    api.put(resource_slice("s1", device("gpu-0"), node="n1"))
    for name in ("a", "b"):
        api.put(claim(name, uid=f"uid-{name}"))
    async with running(api) as parts:
        api.put(pod("a", resourceClaims=[{"name": "d", "resourceClaimName": "a"}]).pod)
        await api.until(lambda: bool(api.pod("a").spec.nodeName))
        api.put(pod("b", resourceClaims=[{"name": "d", "resourceClaimName": "b"}]).pod)
        await api.until(lambda: unschedulable(parts) == ["b"])
        api.remove(kinds.POD, "a")
        api.put(claim("a", uid="uid-a"))
        api.shows.set()
        await api.until(lambda: bool(api.pod("b").spec.nodeName))


@pytest.mark.parametrize(
    "rejection", [errors.conflict(kinds.RESOURCE_CLAIM, "c", "no"), errors.service_unavailable("no")]
)
async def test_nothing_is_evicted_for_a_pod_whose_claim_could_not_be_deallocated(
    rejection: errors.StatusError,
) -> None:
    """Both would help: victims on n1, where the claim's device is, or another device, on n2."""
    api = FakeApi.of(node("n1"), node("n2"), device_class(), pod("low", cpu="4", on="n1").pod)
    for name in ("n1", "n2"):
        api.put(resource_slice(f"s-{name}", device("gpu-0"), node=name))
    unused = {"allocation": allocation(("s-n1", "gpu-0"), node="n1")}
    api.put(claim("c", uid="uid-c", status=unused))
    api.rejections["update/status"] = [rejection]
    async with running(api) as parts:
        claims = [{"name": "d", "resourceClaimName": "c"}]
        api.put(pod("vip", cpu="2", priority=10, resourceClaims=claims).pod)
        await api.until(lambda: bool(api.pod("vip").status.conditions))
        [condition] = api.pod("vip").status.conditions
        assert condition.message.endswith(f". {rejection}")
        assert not api.pod("vip").status.nominatedNodeName
        assert not parts.queue.gated()
        assert not [request for request in api.requests if request.key == "default/low"]
        api.put(claim("c", uid="uid-c"))
        await api.until(lambda: bool(api.pod("vip").spec.nodeName))
