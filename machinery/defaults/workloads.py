"""Defaults of DaemonSets, StatefulSets, Jobs and ReplicationControllers (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.machinery.api.pb import apps, batch, core, intstr
from nominee.machinery.defaults import pod, quantities
from nominee.machinery.features.gates import Gates, Version

_HISTORY = 10
_BACKOFFS = 6
_INT32_MAX = 2**31 - 1
STATEFUL_UNAVAILABLE_SINCE = Version(1, 37)
"""MaxUnavailableStatefulSet: off before; 1.35.0 had it on until it was found to break Parallel sets."""


def _number(target: intstr.IntOrString, value: int) -> None:
    target.type, target.intVal, target.strVal = 0, value, ""


def daemon_set(obj: apps.DaemonSet, gates: Gates) -> None:
    """Fill in a DaemonSet."""
    spec = obj.spec
    if not spec.updateStrategy.type:
        spec.updateStrategy.type = "RollingUpdate"
    if spec.updateStrategy.type == "RollingUpdate":
        rolling = spec.updateStrategy.rollingUpdate
        rolling.SetInParent()
        if not rolling.HasField("maxUnavailable"):
            _number(rolling.maxUnavailable, 1)
        if not rolling.HasField("maxSurge"):
            _number(rolling.maxSurge, 0)
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = _HISTORY
    pod.pod_template(spec.template)


def stateful_set(obj: apps.StatefulSet, gates: Gates) -> None:
    """Fill in a StatefulSet."""
    spec = obj.spec
    if not spec.podManagementPolicy:
        spec.podManagementPolicy = "OrderedReady"
    if not spec.updateStrategy.type:
        spec.updateStrategy.type = "RollingUpdate"
    if spec.updateStrategy.type == "RollingUpdate":
        rolling = spec.updateStrategy.rollingUpdate
        rolling.SetInParent()
        if not rolling.HasField("partition"):
            rolling.partition = 0
        if gates.version >= STATEFUL_UNAVAILABLE_SINCE and not rolling.HasField("maxUnavailable"):
            _number(rolling.maxUnavailable, 1)
    if not spec.HasField("replicas"):
        spec.replicas = 1
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = _HISTORY
    retention = spec.persistentVolumeClaimRetentionPolicy
    retention.whenDeleted = retention.whenDeleted or "Retain"
    retention.whenScaled = retention.whenScaled or "Retain"
    for claim in spec.volumeClaimTemplates:
        if not claim.status.phase:
            claim.status.phase = "Pending"
        if not claim.spec.HasField("volumeMode"):
            claim.spec.volumeMode = "Filesystem"
        quantities.requirements(claim.spec.resources)
    pod.pod_template(spec.template)


def job(obj: batch.Job, gates: Gates) -> None:
    """Fill in a Job."""
    spec = obj.spec
    if not spec.HasField("completions") and not spec.HasField("parallelism"):
        spec.completions = 1
    if not spec.HasField("parallelism"):
        spec.parallelism = 1
    if not spec.HasField("backoffLimit"):
        spec.backoffLimit = _INT32_MAX if spec.HasField("backoffLimitPerIndex") else _BACKOFFS
    if not obj.metadata.labels:
        obj.metadata.labels.update(spec.template.metadata.labels)
    if not spec.HasField("completionMode"):
        spec.completionMode = "NonIndexed"
    if not spec.HasField("suspend"):
        spec.suspend = False
    if not spec.HasField("manualSelector"):
        spec.manualSelector = False
    if not spec.HasField("podReplacementPolicy"):
        failing = spec.HasField("podFailurePolicy")
        spec.podReplacementPolicy = "Failed" if failing else "TerminatingOrFailed"
    for rule in spec.podFailurePolicy.rules:
        for condition in rule.onPodConditions:
            if not condition.status:
                condition.status = "True"
    pod.pod_template(spec.template)


def replication_controller(obj: core.ReplicationController, gates: Gates) -> None:
    """Fill in a ReplicationController: selector and labels are those of its template."""
    spec = obj.spec
    labels = spec.template.metadata.labels if spec.HasField("template") else {}
    if not spec.selector:
        spec.selector.update(labels)
    if not obj.metadata.labels:
        obj.metadata.labels.update(labels)
    if not spec.HasField("replicas"):
        spec.replicas = 1
    if spec.HasField("template"):
        pod.pod_template(spec.template)
