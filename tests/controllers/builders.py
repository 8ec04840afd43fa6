"""Objects for the controllers' tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nominee.machinery.api.pb import apps, coordination, core, policy, storage
from nominee.machinery.runtime.clock import rfc3339, rfc3339_micro
from nominee.machinery.wire import codec

EPOCH = 1_700_000_000


def stamp(seconds: int) -> str:
    """Return the RFC 3339 time of EPOCH plus seconds."""
    return rfc3339(float(EPOCH + seconds))


def condition(type_: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": type_, "status": status, **more}


def node(
    name: str = "n1",
    *,
    conditions: Sequence[Mapping[str, str]] = (condition("Ready"),),
    taints: Sequence[Mapping[str, str]] = (),
    labels: Mapping[str, str] | None = None,
    unschedulable: bool = False,
) -> core.Node:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return codec.from_json(
        core.Node,
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": {"taints": list(taints), **({"unschedulable": True} if unschedulable else {})},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": list(conditions)},
        },
    )


def pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str = "",
    node: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owners: Sequence[Mapping[str, Any]] = (),
    phase: str = "",
    reason: str = "",
    ready: bool = False,
    ready_since: int = 0,
    created: int = 0,
    deleted: bool = False,
    restarts: int = 0,
    conditions: Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> core.Pod:
    """Return a pod of one container; `ready_since` and `created` in seconds after EPOCH."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
        "ownerReferences": list(owners),
    }
    if uid:
        metadata |= {"uid": uid, "creationTimestamp": stamp(created)}
    if deleted:
        metadata["deletionTimestamp"] = stamp(0)
    rows = [*conditions]
    if ready:
        rows.append({"type": "Ready", "status": "True", "lastTransitionTime": stamp(ready_since)})
    status: dict[str, Any] = {"conditions": rows}
    if phase:
        status["phase"] = phase
    if reason:
        status["reason"] = reason
    if restarts:
        status["containerStatuses"] = [{"name": "c", "restartCount": restarts}]
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    body = {"containers": [container], **({"nodeName": node} if node else {}), **spec}
    return codec.from_json(core.Pod, {"metadata": metadata, "spec": body, "status": status})


def owned_by(uid: str, *, kind: str = "ReplicaSet", name: str = "web", block: bool = True) -> dict[str, Any]:
    """Return a controller's owner reference."""
    return {
        "apiVersion": "apps/v1" if kind == "ReplicaSet" else "v1",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": block,
    }


def replica_set(
    name: str = "web", *, replicas: int = 3, uid: str = "", min_ready_seconds: int = 0, deleted: bool = False
) -> apps.ReplicaSet:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if uid:
        metadata["uid"] = uid
    if deleted:
        metadata["deletionTimestamp"] = stamp(0)
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    return codec.from_json(
        apps.ReplicaSet,
        {
            "metadata": metadata,
            "spec": {
                "replicas": replicas,
                "minReadySeconds": min_ready_seconds,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
            },
        },
    )


def budget(
    *, labels: Mapping[str, str] | None = None, status: Mapping[str, Any] | None = None, **spec: Any
) -> policy.PodDisruptionBudget:
    return codec.from_json(
        policy.PodDisruptionBudget,
        {
            "metadata": {"name": "budget", "namespace": "default", "generation": 1},
            "spec": {"selector": {"matchLabels": dict(labels or {"app": "web"})}, **spec},
            "status": dict(status or {}),
        },
    )


def storage_class(
    name: str = "slow", *, wait: bool = True, provisioner: str = "delayed.nominee.dev", **parameters: str
) -> storage.StorageClass:
    return codec.from_json(
        storage.StorageClass,
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "parameters": parameters,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer" if wait else "Immediate",
        },
    )


def claim(
    name: str = "data",
    *,
    uid: str = "",
    class_name: str | None = "slow",
    size: str = "1Gi",
    volume: str = "",
    annotations: Mapping[str, str] | None = None,
    phase: str = "",
) -> core.PersistentVolumeClaim:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "annotations": dict(annotations or {}),
    }
    if uid:
        metadata["uid"] = uid
    return codec.from_json(
        core.PersistentVolumeClaim,
        {
            "metadata": metadata,
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                **({} if class_name is None else {"storageClassName": class_name}),
                "volumeName": volume,
                "resources": {"requests": {"storage": size}},
            },
            "status": {"phase": phase} if phase else {},
        },
    )


def volume(
    name: str = "pv",
    *,
    class_name: str = "slow",
    size: str = "1Gi",
    phase: str = "Available",
    claim_ref: Mapping[str, str] | None = None,
    provisioned_by: str = "",
    policy: str = "Delete",
    node: str = "",
    source: Mapping[str, Any] | None = None,
) -> core.PersistentVolume:
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "persistentVolumeReclaimPolicy": policy,
        **(source or {"csi": {"driver": "test", "volumeHandle": name}}),
    }
    if claim_ref is not None:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", **claim_ref}
    if node:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    annotations = {"pv.kubernetes.io/provisioned-by": provisioned_by} if provisioned_by else {}
    return codec.from_json(
        core.PersistentVolume,
        {
            "metadata": {"name": name, "annotations": annotations},
            "spec": spec,
            "status": {"phase": phase} if phase else {},
        },
    )


def lease(name: str, renewed: int) -> coordination.Lease:
    """Return a node's lease, renewed so many seconds after EPOCH."""
    return codec.from_json(
        coordination.Lease,
        {
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"renewTime": rfc3339_micro(float(EPOCH + renewed))},
        },
    )
