"""Objects of the tests with real processes, and what is waited for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.pb import core, storage
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.process.serving_port.serving_client import ServingPort, request
from nominee.machinery.wire import codec
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS
from tests.support.rest_client import ObjectClient

T = TypeVar("T")
WAIT_SECONDS_MAX = PATIENCE_SECONDS


def node(name: str, *, cpu: str = "4", labels: Mapping[str, str] | None = None) -> core.Node:
    """A ready node without taints."""
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return codec.from_json(
        core.Node,
        {
            "metadata": {"name": name, "labels": dict(labels or {})},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
    )


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> core.Pod:
    """A pod of one container in `default`."""
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return codec.from_json(
        core.Pod,
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container], **spec}},
    )


async def pod_when(
    client: ObjectClient,
    name: str,
    good: Callable[[core.Pod], bool],
    *,
    limit_seconds: float = WAIT_SECONDS_MAX,
) -> core.Pod:
    """The pod as soon as it is as wanted."""
    return await eventually(
        lambda: retry_unavailable(lambda: client.get(kinds.POD, name, "default")),
        good,
        limit_seconds=limit_seconds,
    )


async def bound(client: ObjectClient, name: str, *, limit_seconds: float = WAIT_SECONDS_MAX) -> str:
    """The node that the pod is bound to, as soon as it is."""
    found = await pod_when(client, name, lambda p: bool(p.spec.nodeName), limit_seconds=limit_seconds)
    return found.spec.nodeName


def scheduled_condition(found: core.Pod) -> core.PodCondition | None:
    return next((c for c in found.status.conditions if c.type == "PodScheduled"), None)


async def message_when(client: ObjectClient, name: str, begin: str) -> str:
    """The message of the pod's condition PodScheduled, as soon as it begins so."""

    async def message() -> str:
        condition = scheduled_condition(
            await retry_unavailable(lambda: client.get(kinds.POD, name, "default"))
        )
        return "" if condition is None else condition.message

    return await eventually(message, lambda found: found.startswith(begin))


async def gone(client: Client, name: str) -> None:
    """Returns when there is no such pod."""

    async def is_gone() -> bool:
        try:
            await client.get(kinds.POD, name, "default")
        except StatusError as error:
            return is_not_found(error)
        return False

    await eventually(is_gone, bool)


def debug_queue(port: ServingPort) -> dict[str, Any]:
    """The scheduler's /debug/queue."""
    answer = request(port, "/debug/queue")
    assert answer.status == 200, answer.text
    document: dict[str, Any] = json.loads(answer.text)
    return document


def arm(port: ServingPort, point: str, action: str) -> None:
    """Arm a failpoint of a running process."""
    answer = request(port, f"/failpoints/{point}", method="PUT", body=action)
    assert answer.status < 300, answer.text


def storage_class(name: str = "wffc") -> storage.StorageClass:
    """Claims of it wait for their first consumer; they are not provisioned."""
    return codec.from_json(
        storage.StorageClass,
        {
            "metadata": {"name": name},
            "provisioner": "example.com/none",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


def claim(name: str = "data") -> core.PersistentVolumeClaim:
    """A claim of 1Gi in `default`."""
    return codec.from_json(
        core.PersistentVolumeClaim,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "wffc",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )


CLAIM_VOLUMES = [{"name": "v0", "persistentVolumeClaim": {"claimName": "data"}}]
SELECTED_NODE = "volume.kubernetes.io/selected-node"


async def provision(client: Client, name: str = "data") -> None:
    """Does what a provisioner and the volume controller do: a volume, bound to the claim."""
    found = await client.get(kinds.PERSISTENT_VOLUME_CLAIM, name, "default")
    volume = codec.from_json(
        core.PersistentVolume,
        {
            "metadata": {
                "name": f"pv-{name}",
                "annotations": {"pv.kubernetes.io/provisioned-by": "example.com"},
            },
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "wffc",
                "hostPath": {"path": "/nowhere"},
                "claimRef": {
                    "kind": "PersistentVolumeClaim",
                    "namespace": "default",
                    "name": name,
                    "uid": found.metadata.uid,
                },
            },
        },
    )
    await client.create(volume)
    patch = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": f"pv-{name}"},
    }
    await client.patch(kinds.PERSISTENT_VOLUME_CLAIM, name, "default", patch)
    await client.patch(
        kinds.PERSISTENT_VOLUME_CLAIM, name, "default", {"status": {"phase": "Bound"}}, subresource="status"
    )
