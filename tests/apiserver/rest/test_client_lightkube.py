"""A session of `lightkube` with a running cluster, by its kubeconfig alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.rest.live import LITTERING, binding, deployment, eviction, kubeconfig, more_cpu, pod
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

NAMESPACE = "lightkube-client"
pytestmark = LITTERING


@pytest.fixture(scope="module")
def client(live: Path) -> Iterator[Any]:
    from lightkube import Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import Namespace, ServiceAccount

    made = Client(KubeConfig.from_file(kubeconfig(live)), namespace=NAMESPACE, field_manager="lightkube")
    made.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    eventually_sync(lambda: list(made.list(ServiceAccount)))  # pods need the namespace's default account
    yield made
    made.delete(Namespace, NAMESPACE)
    made._client._client.close()


def test_create_patch_and_apply(client: Any) -> None:
    from lightkube import ApiError
    from lightkube.resources.core_v1 import Node, Pod
    from lightkube.types import PatchType

    assert [node.metadata.name for node in client.list(Node)] == ["node-0", "node-1"]
    for name in ("a", "b"):
        client.create(Pod.from_dict(pod(name)))
    assert [found.metadata.name for found in client.list(Pod, chunk_size=1)] == ["a", "b"]
    with pytest.raises(ApiError) as twice:
        client.create(Pod.from_dict(pod("a")))
    assert (twice.value.status.code, twice.value.status.reason) == (409, "AlreadyExists")

    client.patch(Pod, "a", {"metadata": {"labels": {"strategic": "1"}}})
    merge = {"metadata": {"labels": {"strategic": None}}}
    client.patch(Pod, "a", merge, patch_type=PatchType.MERGE)
    add = [{"op": "add", "path": "/metadata/labels/json", "value": "1"}]
    patched = client.patch(Pod, "a", add, patch_type=PatchType.JSON)
    assert patched.metadata.labels == {"app": "x", "json": "1"}
    client.patch(Pod.Status, "a", {"status": {"nominatedNodeName": "node-1"}})
    mine = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"applied": "1"}}}
    applied = client.apply(Pod.from_dict(mine), force=True)
    assert applied.metadata.labels["applied"] == "1"
    assert applied.status.nominatedNodeName == "node-1"
    applied.metadata.labels["put"] = "1"
    assert client.replace(applied).metadata.labels["put"] == "1"
    client.deletecollection(Pod)
    assert list(client.list(Pod)) == []
    with pytest.raises(ApiError) as missing:
        client.get(Pod, "nope")
    assert missing.value.status.code == 404


def test_bind_resize_and_evict(client: Any) -> None:
    from lightkube.resources.core_v1 import Event, Pod
    from lightkube.types import PatchType

    client.create(Pod.from_dict(pod("bound")))
    answer = client._client._client.post(
        f"/api/v1/namespaces/{NAMESPACE}/pods/bound/binding", json=binding("bound")
    )
    assert answer.status_code == 201
    running = client.wait(Pod, "bound", for_conditions=["Ready"])
    assert running.spec.nodeName == "node-0"
    answer = client._client._client.patch(
        f"/api/v1/namespaces/{NAMESPACE}/pods/bound/resize", json=more_cpu(),
        headers={"Content-Type": PatchType.STRATEGIC.value},
    )  # fmt: skip
    assert answer.status_code == 200
    eventually_sync(
        lambda: client.get(Pod, "bound").status.containerStatuses[0].resources.requests["cpu"],
        lambda cpu: cpu == "70m",
    )
    eventually_sync(
        lambda: {event.reason for event in client.list(Event, fields={"involvedObject.name": "bound"})},
        lambda reasons: {"Started", "ResizeCompleted"} <= reasons,
    )
    client.create(Pod.Eviction.from_dict(eviction("bound")), "bound")
    eventually_sync(
        lambda: list(client.list(Pod, fields={"metadata.name": "bound"})), lambda found: not found
    )


def test_watch_resume_and_a_revision_that_is_gone(client: Any) -> None:
    from lightkube.core.exceptions import ApiError
    from lightkube.resources.core_v1 import Pod

    client.create(Pod.from_dict(pod("watched", app="watch")))
    seen = []
    for event, found in client.watch(Pod, labels={"app": "watch"}, server_timeout=int(PATIENCE_SECONDS)):
        seen.append((event, found.metadata.name))
        if event == "ADDED":
            version = found.metadata.resourceVersion
            client.delete(Pod, "watched", grace_period=0)
        if event == "DELETED":
            break
    assert seen == [("ADDED", "watched"), ("MODIFIED", "watched"), ("DELETED", "watched")]
    resumed = client.watch(Pod, labels={"app": "watch"}, resource_version=version)
    assert [next(resumed)[0] for _ in range(2)] == ["MODIFIED", "DELETED"]
    with pytest.raises(ApiError) as gone:
        next(client.watch(Pod, resource_version="1"))
    assert gone.value.status.code == 410


def test_scale_and_status(client: Any) -> None:
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.types import PatchType

    client.create(Deployment.from_dict(deployment("web")))
    assert client.get(Deployment.Scale, "web").spec.replicas == 1
    client.patch(Deployment.Scale, "web", {"spec": {"replicas": 2}}, patch_type=PatchType.MERGE)
    eventually_sync(
        lambda: client.get(Deployment.Status, "web").status.readyReplicas, lambda ready: ready == 2
    )
    client.delete(Deployment, "web")
