"""A session of the `kubernetes` client with a running cluster, by its kubeconfig alone."""

from __future__ import annotations

from collections.abc import Iterator
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
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

NAMESPACE = "kubernetes-client"
pytestmark = LITTERING


@pytest.fixture(scope="module")
def api(live: Path) -> Iterator[Any]:
    """An ApiClient, and a namespace for the session."""
    client, config = library("kubernetes.client"), library("kubernetes.config")

    settings = client.Configuration()
    config.load_kube_config(kubeconfig(live), client_configuration=settings)
    with client.ApiClient(settings) as made:
        core = client.CoreV1Api(made)
        core.create_namespace({"metadata": {"name": NAMESPACE}})
        # Pods need the namespace's default account.
        eventually_sync(lambda: core.list_namespaced_service_account(NAMESPACE).items)
        yield made
        core.delete_namespace(NAMESPACE)
        made.rest_client.pool_manager.clear()


@pytest.fixture
def core(api: Any) -> Any:
    client = library("kubernetes.client")

    return client.CoreV1Api(api)


def test_what_there_is(api: Any, core: Any) -> None:
    client = library("kubernetes.client")

    assert client.VersionApi(api).get_code().major == "1"
    assert [node.metadata.name for node in core.list_node().items] == ["node-0", "node-1"]
    groups = client.ApisApi(api).get_api_versions().groups
    assert {"apps", "policy", "events.k8s.io"} <= {group.name for group in groups}
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_pod("nope", NAMESPACE)
    assert missing.value.status == 404


def test_create_list_and_patch(api: Any, core: Any) -> None:
    client = library("kubernetes.client")

    container = client.V1Container(name="c", image="pause:3")
    typed = client.V1Pod(
        metadata=client.V1ObjectMeta(name="typed", labels={"app": "create"}),
        spec=client.V1PodSpec(containers=[container], scheduler_name="no-scheduler"),
    )
    assert core.create_namespaced_pod(NAMESPACE, typed).metadata.uid
    core.create_namespaced_pod(NAMESPACE, pod("plain", app="create"))
    with pytest.raises(client.ApiException) as twice:
        core.create_namespaced_pod(NAMESPACE, pod("plain"))
    assert twice.value.status == 409
    first = core.list_namespaced_pod(NAMESPACE, limit=1, label_selector="app=create")
    assert first.metadata.remaining_item_count is None  # not counted where there is a selector
    rest = core.list_namespaced_pod(
        NAMESPACE, limit=1, label_selector="app=create", _continue=first.metadata._continue
    )
    assert [first.items[0].metadata.name, rest.items[0].metadata.name] == ["plain", "typed"]

    core.patch_namespaced_pod("plain", NAMESPACE, {"metadata": {"labels": {"strategic": "1"}}})
    add = [{"op": "add", "path": "/metadata/labels/json", "value": "1"}]
    core.patch_namespaced_pod("plain", NAMESPACE, add)
    merged = core.patch_namespaced_pod(
        "plain", NAMESPACE, {"metadata": {"labels": {"strategic": None}}},
        _content_type="application/merge-patch+json",
    )  # fmt: skip
    assert merged.metadata.labels == {"app": "create", "json": "1"}
    applied = core.patch_namespaced_pod(
        "plain", NAMESPACE,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "labels": {"applied": "1"}}},
        field_manager="me", force=True, _content_type="application/apply-patch+yaml",
    )  # fmt: skip
    assert applied.metadata.labels["applied"] == "1"
    owners = {(row.manager, row.operation) for row in applied.metadata.managed_fields}
    assert ("me", "Apply") in owners

    core.patch_namespaced_pod_status("plain", NAMESPACE, {"status": {"nominatedNodeName": "node-1"}})
    found = core.read_namespaced_pod("plain", NAMESPACE)
    assert found.status.nominated_node_name == "node-1"
    found.status.message = "put"
    assert core.replace_namespaced_pod_status("plain", NAMESPACE, found).status.message == "put"
    core.delete_collection_namespaced_pod(NAMESPACE, label_selector="app=create")
    assert core.list_namespaced_pod(NAMESPACE, label_selector="app=create").items == []


def test_bind_resize_and_evict(core: Any) -> None:
    core.create_namespaced_pod(NAMESPACE, pod("bound"))
    core.create_namespaced_pod_binding("bound", NAMESPACE, binding("bound"), _preload_content=False)
    running = eventually_sync(
        lambda: core.read_namespaced_pod("bound", NAMESPACE), lambda found: found.status.phase == "Running"
    )
    assert running.spec.node_name == "node-0"
    core.patch_namespaced_pod_resize("bound", NAMESPACE, more_cpu())
    eventually_sync(
        lambda: core.read_namespaced_pod("bound", NAMESPACE),
        lambda found: found.status.container_statuses[0].resources.requests["cpu"] == "70m",
    )
    events = eventually_sync(
        lambda: core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.name=bound").items,
        lambda found: {"Started", "ResizeCompleted"} <= {event.reason for event in found},
    )
    assert {event.source.component or event.reporting_component for event in events} == {"kubelet"}
    core.create_namespaced_pod_eviction("bound", NAMESPACE, eviction("bound"))
    eventually_sync(lambda: core.list_namespaced_pod(NAMESPACE, field_selector="metadata.name=bound").items,
               lambda found: not found)  # fmt: skip


def test_watch_resume_bookmarks_and_a_revision_that_is_gone(core: Any) -> None:
    client, watch = library("kubernetes.client"), library("kubernetes.watch")

    begun = core.list_namespaced_pod(NAMESPACE).metadata.resource_version
    core.create_namespaced_pod(NAMESPACE, pod("watched", app="watch"))
    core.delete_namespaced_pod("watched", NAMESPACE, grace_period_seconds=0)
    watcher, seen = watch.Watch(), []
    for event in watcher.stream(
        core.list_namespaced_pod, NAMESPACE, resource_version=begun, label_selector="app=watch",
        allow_watch_bookmarks=True, timeout_seconds=int(PATIENCE_SECONDS),
    ):  # fmt: skip
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watcher.stop()
    assert seen == [("ADDED", "watched"), ("MODIFIED", "watched"), ("DELETED", "watched")]
    # The client retries once from the beginning; with retries disabled it raises the error of the server.
    with pytest.raises(client.ApiException) as gone:
        list(
            watch.Watch().stream(core.list_namespaced_pod, NAMESPACE, resource_version="1", timeout_seconds=5)
        )
    assert gone.value.status == 410
    again = core.list_namespaced_pod(NAMESPACE).metadata.resource_version
    assert int(again) > int(begun)


def test_scale_leases_events_and_nodes(api: Any, core: Any) -> None:
    client = library("kubernetes.client")

    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(NAMESPACE, deployment("web"))
    eventually_sync(
        lambda: apps.read_namespaced_deployment_status("web", NAMESPACE).status.available_replicas,
        lambda available: available == 1,
    )
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 2}})
    eventually_sync(
        lambda: apps.read_namespaced_deployment_scale("web", NAMESPACE).status.replicas,
        lambda replicas: replicas == 2,
    )
    leases = client.CoordinationV1Api(api)
    eventually_sync(
        lambda: [lease.metadata.name for lease in leases.list_namespaced_lease("kube-node-lease").items],
        lambda found: "node-0" in found,
    )
    lease = leases.read_namespaced_lease("node-0", "kube-node-lease")
    assert lease.spec.holder_identity == "node-0"
    patched = core.patch_node_status("node-0", {"status": {"capacity": {"example.com/x": "1"}}})
    assert patched.status.capacity["example.com/x"] == "1"
    with pytest.raises(client.ApiException) as unemulated:
        core.read_namespaced_pod_log("web", NAMESPACE)
    assert unemulated.value.status in (404, 501)
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Foreground")


def test_dynamic_client_and_manifests(api: Any) -> None:
    dynamic, utils = library("kubernetes.dynamic"), library("kubernetes.utils")

    utils.create_from_dict(api, {**pod("made"), "metadata": {"name": "made", "namespace": NAMESPACE}})
    pods = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="Pod")
    assert pods.get(name="made", namespace=NAMESPACE).metadata.name == "made"
    pods.delete(name="made", namespace=NAMESPACE)


def test_autoscalers_of_both_versions_and_the_default_account(api: Any, core: Any) -> None:
    client = library("kubernetes.client")

    target = client.V1CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="web")
    spec = client.V1HorizontalPodAutoscalerSpec(
        scale_target_ref=target, max_replicas=3, target_cpu_utilization_percentage=50
    )
    older = client.AutoscalingV1Api(api)
    older.create_namespaced_horizontal_pod_autoscaler(
        NAMESPACE, client.V1HorizontalPodAutoscaler(metadata={"name": "web"}, spec=spec)
    )
    newer = client.AutoscalingV2Api(api)
    (found,) = newer.list_namespaced_horizontal_pod_autoscaler(NAMESPACE).items
    assert found.spec.metrics[0].resource.target.average_utilization == 50
    newer.delete_namespaced_horizontal_pod_autoscaler("web", NAMESPACE)
    assert not older.list_namespaced_horizontal_pod_autoscaler(NAMESPACE).items
    accounts = eventually_sync(lambda: core.list_namespaced_service_account(NAMESPACE).items, bool)
    assert [account.metadata.name for account in accounts] == ["default"]
