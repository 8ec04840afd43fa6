"""OpenAPI documents: what is in them, and v2's form for older clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from nominee.machinery.features.gates import Version
from tests.apiserver.rest.asgi import Rest, in_memory

OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MADE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, value) of a message whose fields all have a length, or are flags."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, bytes([varint()])
            continue
        assert tag & 7 == 2, tag
        length = varint()
        yield tag >> 3, data[at : at + length]
        at += length


def first(data: bytes, *way: int) -> bytes:
    """The first field of each number on the way down."""
    for number in way:
        data = next(value for found, value in fields(data) if found == number)
    return data


def named(data: bytes, number: int) -> dict[str, bytes]:
    entries = [value for found, value in fields(data) if found == number]
    return {first(entry, 1).decode(): first(entry, 2) for entry in entries}


@pytest.fixture
async def rest() -> Rest:
    return await in_memory()


async def test_v2_in_protobuf(rest: Rest) -> None:
    reply = await rest.request("GET", "/openapi/v2", headers={"accept": OLD})
    assert (reply.code, reply.header("content-type")) == (200, MADE)
    plain = (await rest.request("GET", "/openapi/v2")).document
    body = reply.body
    assert (first(body, 1), first(body, 2, 1)) == (b"2.0", b"Kubernetes")
    definitions, paths = named(first(body, 9), 1), named(first(body, 8), 2)
    assert definitions.keys() == plain["definitions"].keys()
    assert paths.keys() == plain["paths"].keys()
    pod = definitions["io.k8s.api.core.v1.Pod"]
    properties = named(first(pod, 25), 1)
    assert properties.keys() == plain["definitions"]["io.k8s.api.core.v1.Pod"]["properties"].keys()
    assert first(properties["spec"], 1) == b"#/definitions/io.k8s.api.core.v1.PodSpec"
    assert first(properties["kind"], 22, 1) == b"string"
    about = named(pod, 31)["x-kubernetes-group-version-kind"]
    assert json.loads(first(about, 2)) == [{"group": "", "version": "v1", "kind": "Pod"}]
    containers = named(first(definitions["io.k8s.api.core.v1.PodSpec"], 25), 1)["containers"]
    assert first(containers, 23, 1, 1) == b"#/definitions/io.k8s.api.core.v1.Container"
    # An older kubectl looks here whether the server validates fields.
    patch = first(paths["/api/v1/namespaces/{namespace}/pods/{name}"], 8)
    parameters = [value for number, value in fields(patch) if number == 8]
    assert b"fieldValidation" in {first(value, 1, 2, 3, 4) for value in parameters}


async def test_a_matching_etag_gets_304(rest: Rest) -> None:
    headers = {"accept": OLD}
    tag = (await rest.request("GET", "/openapi/v2", headers=headers)).header("etag")
    again = await rest.request("GET", "/openapi/v2", headers={**headers, "if-none-match": tag})
    assert (again.code, again.body) == (304, b"")


async def test_other_media_types_get_406(rest: Rest) -> None:
    assert (await rest.request("GET", "/openapi/v2", headers={"accept": "text/html"})).code == 406
    mixed = await rest.request("GET", "/openapi/v2", headers={"accept": "text/html, application/json"})
    assert mixed.header("content-type") == "application/json"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v1/namespaces", {"get", "post"}),
        ("/api/v1/nodes", {"get", "post", "delete"}),
        ("/api/v1/namespaces/{namespace}/pods", {"get", "post", "delete"}),
        ("/api/v1/pods", {"get"}),
    ],
)
async def test_v3_offers_what_there_is(rest: Rest, path: str, methods: set[str]) -> None:
    document: Any = (await rest.request("GET", "/openapi/v3/api/v1")).document
    assert document["paths"][path].keys() == methods


@pytest.mark.parametrize(("version", "has_it"), [(Version(1, 36), False), (Version(1, 37), True)])
async def test_the_fields_are_those_of_the_emulated_version(version: Version, has_it: bool) -> None:
    """Node.spec.podPreemptionPolicy (KEP-5836), whatever its gate; kubectl reads v3, older ones v2."""
    rest = await in_memory(version=version)
    v3: Any = (await rest.request("GET", "/openapi/v3/api/v1")).document
    v2: Any = (await rest.request("GET", "/openapi/v2")).document
    for schemas in (v3["components"]["schemas"], v2["definitions"]):
        spec = schemas["io.k8s.api.core.v1.NodeSpec"]["properties"]
        assert ("podPreemptionPolicy" in spec) == has_it
        policy = schemas.get("io.k8s.api.core.v1.NodePodPreemptionPolicy", {"properties": {}})
        assert list(policy["properties"]) == (["disableResizePreemption"] if has_it else [])
