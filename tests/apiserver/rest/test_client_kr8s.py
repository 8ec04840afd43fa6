"""A session of `kr8s` with a running cluster, by its kubeconfig alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.apiserver.rest.live import (
    LITTERING,
    binding,
    deployment,
    eviction,
    kubeconfig,
    library,
    more_cpu,
    pod,
)
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

NAMESPACE = "kr8s-client"
# kr8s says which versions it was tested with.
pytestmark = [
    pytest.mark.slow,
    *LITTERING,
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]


@asynccontextmanager
async def session(live: Path) -> AsyncIterator[Any]:
    """kr8s's Api, whose connections are closed in the end: kr8s leaves them to the garbage collector."""
    api = await library("kr8s").asyncio.api(kubeconfig=kubeconfig(live))
    yield api
    await api._session.aclose()


async def _post(api: Any, path: str, document: Any) -> int:
    async with api.call_api("POST", version="v1", base="", namespace=NAMESPACE, url=path, json=document) as r:
        return int(r.status_code)


async def test_a_session(live: Path) -> None:
    async with session(live) as api:
        await _objects(api)


async def _objects(api: Any) -> None:
    objects = library("kr8s.asyncio.objects")
    Deployment, Event, Namespace = objects.Deployment, objects.Event, objects.Namespace
    Node, Pod = objects.Node, objects.Pod

    async def accounts() -> list[Any]:
        return [each async for each in api.async_get("serviceaccounts", namespace=NAMESPACE)]

    assert int((await api.version())["major"]) == 1
    namespace = await Namespace({"metadata": {"name": NAMESPACE}}, api=api)
    await namespace.create()
    await eventually(accounts)  # pods need the namespace's default account
    nodes = [node async for node in api.async_get("nodes")]
    assert [node.name for node in nodes] == ["node-0", "node-1"]

    made = await Pod({**pod("a"), "metadata": {"name": "a", "namespace": NAMESPACE}}, api=api)
    await made.create()
    assert await made.exists()
    await made.label({"z": "1"})
    await made.annotate({"z": "1"})
    await made.patch({"metadata": {"labels": {"x": "1"}}})
    await made.patch([{"op": "add", "path": "/metadata/labels/y", "value": "1"}], type="json")
    await made.patch({"status": {"nominatedNodeName": "node-1"}}, subresource="status")
    await made.refresh()
    assert made.labels == {"z": "1", "x": "1", "y": "1"}
    assert made.status.nominatedNodeName == "node-1"

    assert await _post(api, "pods/a/binding", binding("a")) == 201
    await made.wait("condition=Ready", timeout=PATIENCE_SECONDS)
    assert await made.ready()
    await made.patch(more_cpu(), subresource="resize")
    await eventually(made.refresh, lambda _: made.status.containerStatuses[0].resources.requests.cpu == "70m")

    async def reasons() -> set[str]:
        return {event.raw["reason"] async for event in Event.list(api=api, namespace=NAMESPACE)}

    await eventually(reasons, lambda found: {"Started", "ResizeCompleted"} <= found)
    assert await _post(api, "pods/a/eviction", eviction("a")) == 201
    await eventually(made.exists, lambda exists: not exists)
    with pytest.raises(library("kr8s").NotFoundError):
        await Pod.get("nope", namespace=NAMESPACE, api=api)

    document = deployment("web")
    document["metadata"]["namespace"] = NAMESPACE
    web = await Deployment(document, api=api)
    await web.create()
    await web.scale(2)
    await eventually(web.ready, lambda ready: ready)
    assert web.status.readyReplicas == 2
    assert len([one async for one in api.async_get("pods", namespace=NAMESPACE)]) == 2
    node = await Node.get("node-1", api=api)
    await node.cordon()
    await node.refresh()
    assert node.unschedulable
    await node.uncordon()
    await namespace.delete()


async def test_watches(live: Path) -> None:
    async with session(live) as api:
        await _watched(api)


async def _watched(api: Any) -> None:
    Pod = library("kr8s.asyncio.objects").Pod
    made = await Pod(pod("watched-kr8s", app="watch-kr8s"), api=api)
    await made.create()
    seen = []
    with anyio.fail_after(PATIENCE_SECONDS):
        async for event, obj in api.async_watch("pods", label_selector="app=watch-kr8s"):
            seen.append((event, obj.name))
            if event == "ADDED":
                await made.delete(grace_period=0)
            if event == "DELETED":
                break
    assert seen[0] == ("ADDED", "watched-kr8s")
    assert seen[-1] == ("DELETED", "watched-kr8s")
