"""A session of the `kubernetes_asyncio` client with a running cluster, by its kubeconfig alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

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

NAMESPACE = "asyncio-client"
pytestmark = LITTERING


@asynccontextmanager
async def session(live: Path) -> AsyncIterator[tuple[Any, Any]]:
    """(ApiClient, CoreV1Api)."""
    client, config = library("kubernetes_asyncio.client"), library("kubernetes_asyncio.config")

    settings = client.Configuration()
    await config.load_kube_config(kubeconfig(live), client_configuration=settings)
    async with client.ApiClient(settings) as api:
        yield api, client.CoreV1Api(api)


async def test_a_session(live: Path) -> None:
    client = library("kubernetes_asyncio.client")

    async with session(live) as (api, core):
        await core.create_namespace({"metadata": {"name": NAMESPACE}})
        # Pods need the namespace's default account.
        await eventually(lambda: core.list_namespaced_service_account(NAMESPACE), lambda found: found.items)
        assert [node.metadata.name for node in (await core.list_node()).items] == ["node-0", "node-1"]
        await core.create_namespaced_pod(NAMESPACE, pod("a"))
        with pytest.raises(client.ApiException) as twice:
            await core.create_namespaced_pod(NAMESPACE, pod("a"))
        assert twice.value.status == 409
        await core.patch_namespaced_pod("a", NAMESPACE, {"metadata": {"labels": {"strategic": "1"}}})
        add = [{"op": "add", "path": "/metadata/labels/json", "value": "1"}]
        await core.patch_namespaced_pod("a", NAMESPACE, add)
        merged = await core.patch_namespaced_pod(
            "a", NAMESPACE, {"metadata": {"labels": {"strategic": None}}},
            _content_type="application/merge-patch+json",
        )  # fmt: skip
        assert merged.metadata.labels == {"app": "x", "json": "1"}
        await core.patch_namespaced_pod_status("a", NAMESPACE, {"status": {"nominatedNodeName": "node-1"}})

        await core.create_namespaced_pod_binding("a", NAMESPACE, binding("a"), _preload_content=False)
        running = await eventually(
            lambda: core.read_namespaced_pod("a", NAMESPACE), lambda found: found.status.phase == "Running"
        )
        assert (running.spec.node_name, running.status.nominated_node_name) == ("node-0", None)
        await core.patch_namespaced_pod_resize("a", NAMESPACE, more_cpu())
        await eventually(
            lambda: core.read_namespaced_pod("a", NAMESPACE),
            lambda found: found.status.container_statuses[0].resources.requests["cpu"] == "70m",
        )
        events = await eventually(
            lambda: core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.name=a"),
            lambda found: any(event.reason == "Started" for event in found.items),
        )
        assert events.kind == "EventList"
        await core.create_namespaced_pod_eviction("a", NAMESPACE, eviction("a"))
        await eventually(lambda: core.list_namespaced_pod(NAMESPACE), lambda found: not found.items)

        apps = client.AppsV1Api(api)
        await apps.create_namespaced_deployment(NAMESPACE, deployment("web"))
        await apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 2}})
        await eventually(
            lambda: apps.read_namespaced_deployment_status("web", NAMESPACE),
            lambda found: found.status.ready_replicas == 2,
        )
        await core.delete_namespace(NAMESPACE)


async def test_watches(live: Path) -> None:
    client, watch = library("kubernetes_asyncio.client"), library("kubernetes_asyncio.watch")

    async with session(live) as (_, core):
        begun = (await core.list_namespaced_pod("default")).metadata.resource_version
        await core.create_namespaced_pod("default", pod("watched-asyncio", app="watch-asyncio"))
        await core.delete_namespaced_pod("watched-asyncio", "default", grace_period_seconds=0)
        seen = []
        async with watch.Watch() as watcher:
            async for event in watcher.stream(
                core.list_namespaced_pod, "default", resource_version=begun, allow_watch_bookmarks=True,
                timeout_seconds=int(PATIENCE_SECONDS), label_selector="app=watch-asyncio",
            ):  # fmt: skip
                seen.append(event["type"])
                if event["type"] == "DELETED":
                    break
        assert seen == ["ADDED", "MODIFIED", "DELETED"]
        with pytest.raises(client.ApiException) as gone:
            await _watch_from_the_beginning(core)
        assert gone.value.status == 410
        listed = await core.list_namespaced_pod("default", limit=1)
        assert listed.metadata.resource_version


async def _watch_from_the_beginning(core: Any) -> None:
    watch = library("kubernetes_asyncio.watch")

    async with watch.Watch() as watcher:
        async for _ in watcher.stream(
            core.list_namespaced_pod, "default", resource_version="1", timeout_seconds=5
        ):
            pass
