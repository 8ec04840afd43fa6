"""The golden cases of pods/resize: defaults, strategy and PodResizeValidator, without storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from nominee.apiserver.admission.chain import Chain
from nominee.apiserver.admission.interface import AdmissionRequest
from nominee.apiserver.admission.limit_ranger import LimitRanger
from nominee.apiserver.admission.pods.node_declared_feature_validator import NodeDeclaredFeatureValidator
from nominee.apiserver.admission.pods.pod_resize_validator import PodResizeValidator
from nominee.apiserver.kinds.core.pods.rules import RULES
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry import rules
from nominee.machinery import defaults
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.resources import qos
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire import codec, envelope, presence
from nominee.machinery.wire.values.scalars import DecodeError
from tests.support.recordings import read

CASES = read("resize_validation.jsonl")
RECORDED = Version(1, 36)


class Objects:
    """What admission can look up."""

    def __init__(self, case: dict[str, Any]) -> None:
        documents = case.get("nodes") or []
        self._nodes = {d["metadata"]["name"]: codec.from_json(core.Node, d) for d in documents}
        # As recorded: LimitRanges that no API server has stored, so that `max` is no `default`.
        self._limits = [codec.from_json(core.LimitRange, d) for d in case.get("limitRanges") or []]

    async def find(self, kind: Kind[Any], namespace: str, name: str) -> CachedObject | None:
        assert kind is kinds.NODE
        if name not in self._nodes:
            return None
        return CachedObject(kind, "", name, 1, stored=envelope.encode(self._nodes[name]))

    async def known(self, kind: Kind[Any]) -> Sequence[CachedObject]:
        raise NotImplementedError

    def listed(self, kind: Kind[Any], namespace: str) -> Sequence[CachedObject]:
        assert kind is kinds.LIMIT_RANGE
        return [
            CachedObject(kind, namespace, limits.metadata.name, 1, stored=envelope.encode(limits))
            for limits in self._limits
        ]

    async def change(self, kind: Kind[Any], namespace: str, name: str, mutate: Any) -> None:
        raise NotImplementedError


def requested(case: dict[str, Any], gates: Gates) -> core.Pod:
    """Return the body of the request with its defaults; raises StatusError."""
    with _stage("decode"):
        try:
            pod = codec.from_json(core.Pod, case["new"])
        except DecodeError as error:
            raise StatusError(400, "BadRequest", error.message) from error
    defaults.apply(kinds.POD, pod, gates)
    return pod


def gates_of(case: dict[str, Any], version: Version = RECORDED) -> Gates:
    return Gates("apiserver", version, case.get("gates") or {})


async def resize(case: dict[str, Any], version: Version = RECORDED) -> core.Pod:
    """Return the pod after the request; raises StatusError."""
    gates = gates_of(case, version)
    env = Environment(gates, to_time(1_700_000_000.0))
    old = codec.from_json(core.Pod, case["old"])
    presence.fill(old)
    new = requested(case, gates)
    lookup = Objects(case)
    plugins = [LimitRanger(gates), NodeDeclaredFeatureValidator(gates), PodResizeValidator(gates)]
    request = AdmissionRequest(
        "UPDATE", kinds.POD, old.metadata.namespace, old.metadata.name, "resize", new, old
    )
    await Chain(plugins, lookup).admit(request)
    with _stage("validation"):
        rules.before_update(RULES.strategy.subresources["resize"], new, old, env)
    for plugin in plugins:
        with _stage(f"admission:{plugin.name}"):
            await Chain([plugin], lookup).validate(request)
    return new


@contextmanager
def _stage(name: str) -> Iterator[None]:
    """Note on an error in which stage of the request it was raised."""
    try:
        yield
    except StatusError as error:
        error.add_note(name)
        raise


def _lists(requirements: core.ResourceRequirements) -> dict[str, dict[str, str]]:
    lists = {
        "limits": {name: requirements.limits[name].string for name in sorted(requirements.limits)},
        "requests": {name: requirements.requests[name].string for name in sorted(requirements.requests)},
    }
    return {name: values for name, values in lists.items() if values}


def _refusal(error: StatusError) -> dict[str, Any]:
    """Return a refusal in the recorded form; the message of several errors is left out there."""
    found: dict[str, Any] = {"accepted": False, "code": error.code, "reason": error.reason}
    found["stage"] = error.__notes__[0]
    if error.causes:
        found["errors"] = sorted((c.reason, c.field, c.message) for c in error.causes)
    if len(error.causes) < 2:
        found["message"] = error.message
    return found


def _result(pod: core.Pod, old: core.Pod, new: core.Pod) -> dict[str, Any]:
    """Return a changed pod in the recorded form."""
    containers = (*pod.spec.containers, *pod.spec.initContainers)
    found: dict[str, Any] = {
        "accepted": True,
        "generation": pod.metadata.generation,
        "specChanged": pod.spec != old.spec,
        "qosClass": qos.recorded_qos_class(pod),
        "resources": {container.name: _lists(container.resources) for container in containers},
    }
    if pod.spec.HasField("resources"):
        found["podResources"] = _lists(pod.spec.resources)
    dropped = sorted(_changes("", codec.to_json(new), codec.to_json(pod)))
    if dropped:
        found["dropped"] = dropped
    return found


def _changes(path: str, one: Any, other: Any) -> Iterator[str]:
    """Yield the paths at which two documents differ; the server always sets the generation itself."""
    if one == other or path == "metadata.generation":
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _changes(f"{path}.{key}".lstrip("."), one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (each, its) in enumerate(zip(one, other, strict=True)):
            yield from _changes(f"{path}[{index}]", each, its)
    else:
        yield path


def _recorded(expect: dict[str, Any]) -> dict[str, Any]:
    found = dict(expect)
    if "errors" in expect:
        found["errors"] = sorted((e["type"], e["field"], e["message"]) for e in expect["errors"])
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
async def test_a_resize_is_judged_as_by_the_real_server(case: dict[str, Any]) -> None:
    try:
        pod = await resize(case)
    except StatusError as error:
        outcome = _refusal(error)
    else:
        old, new = codec.from_json(core.Pod, case["old"]), requested(case, gates_of(case))
        presence.fill(old)
        presence.fill(new)
        outcome = _result(pod, old, new)
    assert outcome == _recorded(case["expect"])
