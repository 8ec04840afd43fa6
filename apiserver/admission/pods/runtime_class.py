"""RuntimeClass: sets a pod's overhead and scheduling from its RuntimeClass (kube-apiserver 1.36)."""

from __future__ import annotations

from typing import Any

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.kinds import POD, RUNTIME_CLASS
from nominee.machinery.api.pb import core, node
from nominee.machinery.resources.quantity import Quantity

_OTHER = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_ALONE = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClassAdmission(Plugin):
    """Sets overhead, node selector and tolerations of the pod's class, and refuses contradicting values."""

    name = "RuntimeClass"
    requests = ((POD, "CREATE", ""),)

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        pod: core.Pod = request.obj
        found = await _class_of(request, lookup)
        if found is None:
            return
        if found.HasField("overhead"):
            fixed = found.overhead.podFixed
            if pod.spec.overhead and not _same(pod.spec.overhead, fixed):
                raise request.forbidden(_OTHER)
            pod.spec.overhead.clear()
            for name in fixed:
                pod.spec.overhead[name].CopyFrom(fixed[name])
        _schedule(request, pod.spec, found.scheduling)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        pod: core.Pod = request.obj
        if not pod.spec.overhead:
            return
        found = await _class_of(request, lookup)
        if found is None or not found.HasField("overhead"):
            raise request.forbidden(_ALONE)
        if not _same(pod.spec.overhead, found.overhead.podFixed):
            raise request.forbidden(_OTHER)


async def _class_of(request: AdmissionRequest, lookup: Lookup) -> node.RuntimeClass | None:
    spec = request.obj.spec
    if not spec.HasField("runtimeClassName"):
        return None
    found = await lookup.find(RUNTIME_CLASS, "", spec.runtimeClassName)
    if found is None:
        raise request.forbidden(f'pod rejected: RuntimeClass "{spec.runtimeClassName}" not found')
    message: node.RuntimeClass = found.message
    return message


def _same(one: Any, other: Any) -> bool:
    return set(one) == set(other) and all(
        Quantity.parse(one[name].string) == Quantity.parse(other[name].string) for name in one
    )


def _schedule(request: AdmissionRequest, spec: core.PodSpec, scheduling: node.Scheduling) -> None:
    """Add the class's node selector and tolerations; the tolerations come after the pod's own."""
    for key in sorted(scheduling.nodeSelector):
        wanted = scheduling.nodeSelector[key]
        if spec.nodeSelector.get(key, wanted) != wanted:
            raise request.forbidden(
                f"conflict: runtimeClass.Scheduling.NodeSelector[{key}] = {wanted};"
                f" pod.Spec.NodeSelector[{key}] = {spec.nodeSelector[key]}"
            )
        spec.nodeSelector[key] = wanted
    for toleration in scheduling.tolerations:
        if toleration not in spec.tolerations:
            spec.tolerations.append(toleration)
