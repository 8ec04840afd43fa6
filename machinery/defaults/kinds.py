"""Defaults of all kinds but the pod, and the table of them (kube-apiserver 1.36). In place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import apps, core, rbac, scheduling, storage
from nominee.machinery.defaults import (
    devices,
    fields,
    flow_control,
    limits,
    pod,
    quantities,
    services,
    watched,
    workloads,
)
from nominee.machinery.features.gates import Gates

Default = Callable[[Any, Gates], None]

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


def _namespace(obj: core.Namespace, gates: Gates) -> None:
    # A namespace always carries its own name as a label; a generated name gets it when it is known.
    if obj.metadata.name:
        obj.metadata.labels[NAMESPACE_NAME_LABEL] = obj.metadata.name
    fields.set_empty(obj.status, phase="Active")


def _node(obj: core.Node, gates: Gates) -> None:
    spec, status = obj.spec, obj.status
    if spec.podCIDR and spec.podCIDR not in spec.podCIDRs[:1]:
        # The field's first form, which counts where they differ.
        del spec.podCIDRs[:]
        spec.podCIDRs.append(spec.podCIDR)
    elif spec.podCIDRs:
        spec.podCIDR = spec.podCIDRs[0]
    quantities.resource_list(status.capacity)
    quantities.resource_list(status.allocatable)
    if not status.allocatable:
        for name in status.capacity:
            status.allocatable[name].string = status.capacity[name].string


def _claim(obj: core.PersistentVolumeClaim, gates: Gates) -> None:
    fields.set_empty(obj.status, phase="Pending")
    spec = obj.spec
    fields.set_absent(spec, volumeMode="Filesystem")
    quantities.requirements(spec.resources)
    quantities.resource_list(obj.status.capacity)
    quantities.resource_list(obj.status.allocatedResources)


def _volume(obj: core.PersistentVolume, gates: Gates) -> None:
    fields.set_empty(obj.status, phase="Pending")
    spec = obj.spec
    fields.set_empty(spec, persistentVolumeReclaimPolicy="Retain")
    fields.set_absent(spec, volumeMode="Filesystem")
    pod.source_defaults(spec.persistentVolumeSource)
    quantities.resource_list(spec.capacity)


def _replica_set(obj: apps.ReplicaSet, gates: Gates) -> None:
    spec = obj.spec
    fields.set_absent(spec, replicas=1)
    pod.pod_template(spec.template)


def _deployment(obj: apps.Deployment, gates: Gates) -> None:
    spec = obj.spec
    fields.set_absent(spec, replicas=1)
    strategy = spec.strategy
    fields.set_empty(strategy, type="RollingUpdate")
    if strategy.type == "RollingUpdate":
        strategy.rollingUpdate.SetInParent()
        for name in ("maxUnavailable", "maxSurge"):
            if not strategy.rollingUpdate.HasField(name):
                amount = getattr(strategy.rollingUpdate, name)
                amount.type, amount.intVal, amount.strVal = 1, 0, "25%"
    fields.set_absent(spec, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    pod.pod_template(spec.template)


def _secret(obj: core.Secret, gates: Gates) -> None:
    fields.set_empty(obj, type="Opaque")
    # stringData is only ever written: what is stored is data.
    for name, text in obj.stringData.items():
        obj.data[name] = text.encode()
    obj.ClearField("stringData")


def _storage_class(obj: storage.StorageClass, gates: Gates) -> None:
    fields.set_absent(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _priority_class(obj: scheduling.PriorityClass, gates: Gates) -> None:
    fields.set_absent(obj, preemptionPolicy="PreemptLowerPriority")


def _binding(obj: rbac.RoleBinding | rbac.ClusterRoleBinding, gates: Gates) -> None:
    group = kinds.CLUSTER_ROLE.group
    fields.set_empty(obj.roleRef, apiGroup=group)
    for subject in obj.subjects:
        if not subject.apiGroup and subject.kind in ("User", "Group"):
            subject.apiGroup = group


_TABLE: dict[AnyKind, Default] = {
    kinds.NAMESPACE: _namespace,
    kinds.NODE: _node,
    kinds.POD: pod.pod,
    kinds.PERSISTENT_VOLUME_CLAIM: _claim,
    kinds.PERSISTENT_VOLUME: _volume,
    kinds.REPLICA_SET: _replica_set,
    kinds.DEPLOYMENT: _deployment,
    kinds.SECRET: _secret,
    kinds.DAEMON_SET: workloads.daemon_set,
    kinds.STATEFUL_SET: workloads.stateful_set,
    kinds.JOB: workloads.job,
    kinds.REPLICATION_CONTROLLER: workloads.replication_controller,
    kinds.LIMIT_RANGE: limits.limit_range,
    kinds.RESOURCE_QUOTA: limits.resource_quota,
    kinds.ENDPOINT_SLICE: limits.endpoint_slice,
    kinds.CSI_DRIVER: limits.csi_driver,
    kinds.RESOURCE_CLAIM: devices.claim,
    kinds.RESOURCE_CLAIM_TEMPLATE: devices.template,
    kinds.SERVICE: services.service,
    kinds.STORAGE_CLASS: _storage_class,
    kinds.PRIORITY_CLASS: _priority_class,
    kinds.ROLE_BINDING: _binding,
    kinds.CLUSTER_ROLE_BINDING: _binding,
    kinds.FLOW_SCHEMA: flow_control.flow_schema,
    kinds.PRIORITY_LEVEL_CONFIGURATION: flow_control.priority_level,
    kinds.HORIZONTAL_POD_AUTOSCALER: watched.autoscaler,
    kinds.CRON_JOB: watched.cron_job,
    kinds.INGRESS_CLASS: watched.ingress_class,
    kinds.NETWORK_POLICY: watched.network_policy,
    kinds.ENDPOINTS: watched.endpoints,
    kinds.POD_TEMPLATE: watched.pod_template,
    kinds.POD_GROUP: watched.pod_group,
}


def apply(kind: AnyKind, obj: Any, gates: Gates) -> None:
    """Set the defaults of the fields that the client omitted.

    Raises:
        StatusError: 400 for a text that is not a quantity.
    """
    default = _TABLE.get(kind)
    if default is not None:
        default(obj, gates)
