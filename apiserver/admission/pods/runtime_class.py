"""RuntimeClass: sets a pod's overhead and scheduling from its RuntimeClass (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Sequence
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
        if found.HasField("scheduling"):
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
    """Add the class's node selector and tolerations (setScheduling); the tolerations follow the pod's own."""
    for key in sorted(scheduling.nodeSelector):
        wanted = scheduling.nodeSelector[key]
        if spec.nodeSelector.get(key, wanted) != wanted:
            raise request.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted};"
                f" pod.spec.nodeSelector[{key}] = {spec.nodeSelector[key]}"
            )
        spec.nodeSelector[key] = wanted
    merged = _merge([*spec.tolerations, *scheduling.tolerations])
    del spec.tolerations[:]
    spec.tolerations.extend(merged)


def _merge(tolerations: Sequence[core.Toleration]) -> list[core.Toleration]:
    """Return the tolerations without those that another one covers; of equal ones the first stays.

    Source: Kubernetes 1.36, MergeTolerations (pkg/util/tolerations).
    """
    merged: list[core.Toleration] = []
    for index, each in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if _terms(other) != _terms(each))
        if not any(_covers(other, each) for other in (*merged, *later)):
            merged.append(each)
    return merged


def _covers(one: core.Toleration, other: core.Toleration) -> bool:
    """Return whether `one` tolerates whatever `other` does (isSuperset).

    As upstream, an omitted operator of `other` is not taken for Equal.
    """
    if _terms(one) == _terms(other):
        return True
    if one.key != other.key and (one.key or one.operator != "Exists"):
        return False
    if one.effect not in ("", other.effect) or (one.effect == "NoExecute" and not _lasts(one, other)):
        return False
    if one.operator in ("", "Equal"):
        return other.operator == "Equal" and one.value == other.value
    return one.operator == "Exists"


def _lasts(one: core.Toleration, other: core.Toleration) -> bool:
    """Return whether `one` tolerates for at least as long as `other`."""
    if not one.HasField("tolerationSeconds"):
        return True
    return other.HasField("tolerationSeconds") and other.tolerationSeconds <= one.tolerationSeconds


def _terms(toleration: core.Toleration) -> tuple[str, str, str, str, int | None]:
    seconds = toleration.tolerationSeconds if toleration.HasField("tolerationSeconds") else None
    return toleration.key, toleration.operator, toleration.value, toleration.effect, seconds
