"""Defaults of DaemonSets, StatefulSets, Jobs and ReplicationControllers (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.machinery.api.pb import apps, batch, core, intstr
from nominee.machinery.defaults import fields, pod, quantities
from nominee.machinery.features.gates import Gates

_HISTORY = 10
_BACKOFFS = 6
_INT32_MAX = 2**31 - 1


def _number(target: intstr.IntOrString, value: int) -> None:
    target.type, target.intVal, target.strVal = 0, value, ""


def daemon_set(obj: apps.DaemonSet, gates: Gates) -> None:
    """Fill in a DaemonSet."""
    spec = obj.spec
    fields.set_empty(spec.updateStrategy, type="RollingUpdate")
    if spec.updateStrategy.type == "RollingUpdate":
        rolling = spec.updateStrategy.rollingUpdate
        rolling.SetInParent()
        if not rolling.HasField("maxUnavailable"):
            _number(rolling.maxUnavailable, 1)
        if not rolling.HasField("maxSurge"):
            _number(rolling.maxSurge, 0)
    fields.set_absent(spec, revisionHistoryLimit=_HISTORY)
    pod.pod_template(spec.template)


def stateful_set(obj: apps.StatefulSet, gates: Gates) -> None:
    """Fill in a StatefulSet."""
    spec = obj.spec
    fields.set_empty(spec, podManagementPolicy="OrderedReady")
    fields.set_empty(spec.updateStrategy, type="RollingUpdate")
    if spec.updateStrategy.type == "RollingUpdate":
        rolling = spec.updateStrategy.rollingUpdate
        rolling.SetInParent()
        fields.set_absent(rolling, partition=0)
        if gates.enabled("MaxUnavailableStatefulSet") and not rolling.HasField("maxUnavailable"):
            _number(rolling.maxUnavailable, 1)
    fields.set_absent(spec, replicas=1, revisionHistoryLimit=_HISTORY)
    fields.set_empty(spec.persistentVolumeClaimRetentionPolicy, whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.volumeClaimTemplates:
        fields.set_empty(claim.status, phase="Pending")
        fields.set_absent(claim.spec, volumeMode="Filesystem")
        quantities.requirements(claim.spec.resources)
    pod.pod_template(spec.template)


def job(obj: batch.Job, gates: Gates) -> None:
    """Fill in a Job."""
    spec = obj.spec
    if not spec.HasField("completions") and not spec.HasField("parallelism"):
        spec.completions = 1
    backoffs = _INT32_MAX if spec.HasField("backoffLimitPerIndex") else _BACKOFFS
    fields.set_absent(spec, parallelism=1, backoffLimit=backoffs)
    if not obj.metadata.labels:
        obj.metadata.labels.update(spec.template.metadata.labels)
    fields.set_absent(spec, completionMode="NonIndexed", suspend=False, manualSelector=False)
    replacement = "Failed" if spec.HasField("podFailurePolicy") else "TerminatingOrFailed"
    fields.set_absent(spec, podReplacementPolicy=replacement)
    for rule in spec.podFailurePolicy.rules:
        for condition in rule.onPodConditions:
            fields.set_empty(condition, status="True")
    pod.pod_template(spec.template)


def replication_controller(obj: core.ReplicationController, gates: Gates) -> None:
    """Fill in a ReplicationController: selector and labels are those of its template."""
    spec = obj.spec
    labels = spec.template.metadata.labels if spec.HasField("template") else {}
    if not spec.selector:
        spec.selector.update(labels)
    if not obj.metadata.labels:
        obj.metadata.labels.update(labels)
    fields.set_absent(spec, replicas=1)
    if spec.HasField("template"):
        pod.pod_template(spec.template)
