"""LimitRanger: a namespace's LimitRanges set defaults and bounds of pods and claims (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.machinery.api.kinds import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates
from nominee.machinery.resources import resource_lists as amounts
from nominee.machinery.resources.quantity import Quantity
from nominee.machinery.resources.resource_lists import Amounts

ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    """Applies the defaults of the namespace's LimitRanges, and refuses objects outside their bounds."""

    name = "LimitRanger"
    requests = (
        (POD, "CREATE", ""),
        (POD, "UPDATE", "resize"),
        (PERSISTENT_VOLUME_CLAIM, "CREATE", ""),
        (PERSISTENT_VOLUME_CLAIM, "UPDATE", ""),
    )

    def __init__(self, gates: Gates) -> None:
        self._pod_level = gates.enabled("PodLevelResources")

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        if request.kind is POD:
            for found in _ranges(request, lookup):
                fill_in(request.obj, found.message)

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        for found in _ranges(request, lookup):
            limits = found.message.spec.limits
            if request.kind is POD:
                problems = pod_problems(request.obj, limits, pod_level=self._pod_level)
            else:
                problems = claim_problems(request.obj, limits)
            unique = list(dict.fromkeys(problems))
            if unique:
                raise request.forbidden(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")


def _ranges(request: AdmissionRequest, lookup: Lookup) -> Sequence[CachedObject]:
    found = lookup.listed(LIMIT_RANGE, request.namespace)
    # The stored object decides: a client may leave out the deletionTimestamp, or send one.
    if found and request.old is not None and request.old.metadata.HasField("deletionTimestamp"):
        return []
    return found


def fill_in(pod: core.Pod, limit_range: core.LimitRange) -> None:
    """Set the default limits and requests of a pod's containers in place; an annotation lists them."""
    limits: dict[str, Any] = {}
    requests: dict[str, Any] = {}
    for limit in limit_range.spec.limits:
        if limit.type == "Container":
            limits.update(limit.default)
            requests.update(limit.defaultRequest)
    if not limits and not requests:
        return
    done: list[str] = []
    for what, containers in (
        ("container", pod.spec.containers),
        ("init container", pod.spec.initContainers),
    ):
        for container in containers:
            for side, defaults in (("request", requests), ("limit", limits)):
                target = container.resources.requests if side == "request" else container.resources.limits
                missing = sorted(name for name in defaults if name not in target)
                for name in missing:
                    target[name].CopyFrom(defaults[name])
                if missing:
                    done.append(f"{', '.join(missing)} {side} for {what} {container.name}")
    if done:
        pod.metadata.annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(done)}"


def pod_problems(pod: core.Pod, limits: Any, *, pod_level: bool) -> Iterator[str]:
    """Yield the violations of a LimitRange's bounds by a pod."""
    for limit in limits:
        if limit.type == "Container":
            for container in (*pod.spec.containers, *pod.spec.initContainers):
                resources = container.resources
                yield from _problems(limit, amounts.read(resources.requests), amounts.read(resources.limits))
        elif limit.type == "Pod":
            asked = amounts.of_pod(pod, "requests", pod_level=pod_level)
            yield from _problems(limit, asked, amounts.of_pod(pod, "limits", pod_level=pod_level))


def claim_problems(claim: core.PersistentVolumeClaim, limits: Any) -> Iterator[str]:
    """Yield the violations of a LimitRange's bounds by a claim; claims have requests only."""
    for limit in limits:
        if limit.type != "PersistentVolumeClaim":
            continue
        asked = amounts.read(claim.spec.resources.requests)
        yield from _too_small(limit, asked, {})
        for name, most in _bounds(limit.max):
            if name not in asked:
                yield f"maximum {name} usage per {limit.type} is {most}.  No request is specified"
            elif asked[name] > most:
                yield f"maximum {name} usage per {limit.type} is {most}, but request is {asked[name]}"


def _bounds(resource_list: Mapping[str, Any]) -> list[tuple[str, Quantity]]:
    return sorted(amounts.read(resource_list).items(), key=lambda each: each[0])


def _problems(limit: core.LimitRangeItem, asked: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _too_small(limit, asked, limits)
    for name, most in _bounds(limit.max):
        start = f"maximum {name} usage per {limit.type} is {most}"
        if name not in limits:
            yield f"{start}.  No limit is specified"
        elif limits[name] > most:
            yield f"{start}, but limit is {limits[name]}"
        elif name in asked and asked[name] > most:
            yield f"{start}, but request is {asked[name]}"
    for name, most in _bounds(limit.maxLimitRequestRatio):
        start = f"{name} max limit to request ratio per {limit.type} is {most}"
        if not asked.get(name):
            yield f"{start}, but no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{start}, but no limit is specified or limit is 0"
        else:
            ratio = limits[name].milli_value() / asked[name].milli_value()
            if ratio > most.milli_value() / 1000:
                yield f"{start}, but provided ratio is {ratio:.6f}"


def _too_small(limit: core.LimitRangeItem, asked: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in _bounds(limit.min):
        start = f"minimum {name} usage per {limit.type} is {least}"
        if name not in asked:
            yield f"{start}.  No request is specified"
        elif asked[name] < least:
            yield f"{start}, but request is {asked[name]}"
        elif name in limits and limits[name] < least:
            yield f"{start}, but limit is {limits[name]}"
