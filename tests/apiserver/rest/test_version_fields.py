"""A server of an older version does not know newer fields."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nominee.apiserver.fronts.rest.front import FrontOptions
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.registry.registry import Registry
from nominee.apiserver.schema import version_fields
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import envelope
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage
from tests.apiserver.rest.asgi import Rest, in_memory, rest_front

_PODS = "/api/v1/namespaces/default/pods"
_OLD = Version(1, 32)
_NEWER = ["spec.hostnameOverride", "spec.containers[0].lifecycle.stopSignal"]


def _pod() -> dict[str, Any]:
    container = {"name": "c", "image": "i", "lifecycle": {"stopSignal": "SIGUSR1"}}
    return {
        "metadata": {"name": "p"},
        "spec": {"os": {"name": "linux"}, "hostnameOverride": "h", "containers": [container]},
    }


async def _server(version: Version) -> Rest:
    storage = MemoryStorage()
    clock = FakeClock()
    gates = Gates("apiserver", version)
    registry = Registry(storage, MemoryCache(storage), None, gates=gates, clock=clock, rng=random.Random(1))
    await bootstrap(registry)
    return Rest(rest_front(registry, clock, FrontOptions(version, "127.0.0.1:1")))


@pytest.fixture
async def old() -> Rest:
    return await _server(_OLD)


async def test_they_are_dropped_with_a_warning(old: Rest) -> None:
    made = await old.json("POST", _PODS, _pod())
    assert made.code == 201, made.body
    assert sorted(made.warnings) == sorted(f'unknown field "{path}"' for path in _NEWER)
    spec = made.document["spec"]
    assert "hostnameOverride" not in spec
    assert spec["containers"][0]["lifecycle"] == {}
    assert spec["os"] == {"name": "linux"}
    assert (await old.json("POST", _PODS, _pod(), {"fieldValidation": "Ignore", "dryRun": "All"})).code == 409


async def test_strict_refuses_them(old: Rest) -> None:
    reply = await old.json("POST", _PODS, _pod(), {"fieldValidation": "Strict"})
    assert reply.code == 400
    for path in _NEWER:
        assert f'unknown field "{path}"' in reply.document["message"]


@pytest.mark.parametrize("strict", [True, False])
async def test_a_patch_cannot_set_them(old: Rest, strict: bool) -> None:
    document = _pod()
    del document["spec"]["hostnameOverride"], document["spec"]["containers"][0]["lifecycle"]
    assert (await old.json("POST", _PODS, document)).code == 201
    reply = await old.json(
        "PATCH",
        f"{_PODS}/p",
        {"metadata": {"labels": {"a": "b"}}, "spec": {"hostnameOverride": "h"}},
        {"fieldValidation": "Strict"} if strict else None,
        content="application/merge-patch+json",
    )
    if strict:
        assert reply.code == 422
        assert 'unknown field \\"spec.hostnameOverride\\"' in reply.body.decode()
    else:
        assert reply.code == 200, reply.body
        assert reply.warnings == ['unknown field "spec.hostnameOverride"']
        assert "hostnameOverride" not in reply.document["spec"]


async def test_protobuf_drops_them_silently(old: Rest) -> None:
    pod = core.Pod()
    pod.metadata.name = "p"
    pod.spec.hostnameOverride = "h"
    pod.spec.containers.add(name="c", image="i")
    body = envelope.encode(pod)
    headers = {"content-type": "application/vnd.kubernetes.protobuf", "accept": "application/json"}
    made = await old.request("POST", _PODS, None, body, headers)
    assert (made.code, made.warnings) == (201, []), made.body
    assert "hostnameOverride" not in made.document["spec"]


async def test_the_newest_knows_them() -> None:
    made = await (await in_memory()).json("POST", _PODS, _pod())
    assert (made.code, made.warnings) == (201, []), made.body
    assert made.document["spec"]["hostnameOverride"] == "h"


def test_each_field_has_a_version() -> None:
    assert version_fields.drop(Version(1, 36), core.Pod()) == []
    since = {}
    for minor in (32, 33, 34, 35, 36):
        for kind in (kinds.POD, kinds.NODE):
            parts = version_fields.parts_of(Version(1, minor), kind.message.DESCRIPTOR.full_name)
            for part in parts:
                for inner in part.inner or ():
                    if inner.inner is None:
                        since[f"{part.field.json_name}.{inner.field.json_name}"] = minor + 1
    assert since == {
        "spec.podPreemptionPolicy": 37,
        "spec.schedulingGroup": 36,
        "status.nodeAllocatableResourceClaimStatuses": 36,
        "status.declaredFeatures": 35,
        "status.resources": 35,
        "status.allocatedResources": 35,
        "spec.hostnameOverride": 34,
        "status.extendedResourceClaimStatus": 34,
        "status.observedGeneration": 33,
    }
