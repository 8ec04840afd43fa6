"""Owners whose pods the API server refuses, and the states for which it may. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from nominee.lab.chaos.rest.state import State
from nominee.lab.chaos.rest.workloads.ordinals import missing_claims
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind, Object
from nominee.machinery.api.objects import is_controlled_by
from nominee.machinery.api.pb import apps, core, node

Sample: TypeAlias = core.Pod | core.PersistentVolumeClaim
ADMITTING: Final[tuple[AnyKind, ...]] = (
    kinds.LIMIT_RANGE,
    kinds.PRIORITY_CLASS,
    kinds.RUNTIME_CLASS,
    kinds.SERVICE_ACCOUNT,
)
"""The kinds whose objects decide on the admission of a pod; they are read where an owner lacks pods."""
_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_REVISION: Final = "controller-revision-hash"
_NUMERIC: Final = ("Lt", "Gt")


def may_refuse(state: State, owner: Object) -> bool:
    """Return whether pods of an owner, or the claims that a set creates before, are refused."""
    return owner.metadata.uid in state.refusals


def samples(state: State, owners: Iterable[Object]) -> Iterator[tuple[str, Sample]]:
    """Yield the uids of the owners whose pods may be refused, each with a pod of its template.

    And with claims of that pod. The state has the objects of the kinds ADMITTING. An API server that refuses
    other pods is wrong.
    """
    for owner in owners:
        if _has_reason(state, owner):
            yield owner.metadata.uid, _pod_of(owner)
            if isinstance(owner, apps.StatefulSet):
                yield from ((owner.metadata.uid, claim) for claim in missing_claims(state, owner))


def _has_reason(state: State, owner: Object) -> bool:
    """Return whether the API server may refuse a pod of a template that it has accepted.

    Source: kube-apiserver 1.36, the admission plugins NamespaceLifecycle, LimitRanger, ServiceAccount,
    Priority, RuntimeClass and ResourceQuota, and what is validated in pods only.
    """
    namespace = owner.metadata.namespace
    spec: core.PodSpec = owner.spec.template.spec  # type: ignore[attr-defined]  # owners have one
    return (
        namespace in state.ending_namespaces
        or namespace in state.namespaces_with_quotas
        or any(each.metadata.namespace == namespace for each in state.of(kinds.LIMIT_RANGE))
        or _is_account_lacking(state, namespace, spec)
        or _is_priority_wrong(state, spec)
        or _is_runtime_class_wrong(state, spec)
        or _is_invalid_in_pods(spec)
        or (isinstance(owner, apps.StatefulSet) and not _has_accepted(state, owner))
    )


def _is_account_lacking(state: State, namespace: str, spec: core.PodSpec) -> bool:
    """Return whether the account of the pods does not exist, or allows certain secrets only."""
    place = namespace, spec.serviceAccountName or "default"
    found = (
        each
        for each in state.of(kinds.SERVICE_ACCOUNT)
        if (each.metadata.namespace, each.metadata.name) == place
    )
    return all(_SECRETS in each.metadata.annotations for each in found)


def _is_priority_wrong(state: State, spec: core.PodSpec) -> bool:
    """Return whether the PriorityClass of the pods does not exist, or may have another priority by now."""
    name = spec.priorityClassName
    is_known = not name or any(each.metadata.name == name for each in state.of(kinds.PRIORITY_CLASS))
    return not is_known or spec.HasField("priority") or spec.HasField("preemptionPolicy")


def _is_runtime_class_wrong(state: State, spec: core.PodSpec) -> bool:
    """Return whether the RuntimeClass of the pods does not exist, or may contradict their template."""
    if not spec.HasField("runtimeClassName"):
        return bool(spec.overhead)
    name = spec.runtimeClassName
    found = [each for each in state.of(kinds.RUNTIME_CLASS) if each.metadata.name == name]
    return not found or bool(spec.overhead) or any(_contradicts(spec, each.scheduling) for each in found)


def _contradicts(spec: core.PodSpec, scheduling: node.Scheduling) -> bool:
    own = spec.nodeSelector
    return any(own.get(key, value) != value for key, value in scheduling.nodeSelector.items())


def _is_invalid_in_pods(spec: core.PodSpec) -> bool:
    """Return whether a template may be accepted, or was by an API server with other gates, and no pod of it.

    The gate is TaintTolerationComparisonOperators (KEP-5471).
    """
    containers = (*spec.initContainers, *spec.containers)
    return (
        any(each.image != each.image.strip() for each in containers)
        or any(each.operator in _NUMERIC for each in spec.tolerations)
        or bool(spec.schedulingGates and spec.nodeName)
    )


def _has_accepted(state: State, of: apps.StatefulSet) -> bool:
    """Return whether there is a pod of a set's template: only in pods the template is validated."""
    return any(
        is_controlled_by(pod, of) and pod.metadata.labels.get(_REVISION) == of.status.updateRevision
        for pod in state.pods_by_namespace.get(of.metadata.namespace, ())
    )


def _pod_of(owner: Object) -> core.Pod:
    template: core.PodTemplateSpec = owner.spec.template  # type: ignore[attr-defined]  # owners have one
    pod = core.Pod(spec=template.spec)
    pod.metadata.namespace, pod.metadata.generateName = owner.metadata.namespace, f"{owner.metadata.name}-"
    pod.metadata.labels.update(template.metadata.labels)
    pod.metadata.annotations.update(template.metadata.annotations)
    claims = owner.spec.volumeClaimTemplates if isinstance(owner, apps.StatefulSet) else ()
    for name in {claim.metadata.name for claim in claims} - {volume.name for volume in pod.spec.volumes}:
        pod.spec.volumes.add(name=name).volumeSource.persistentVolumeClaim.claimName = name
    return pod
