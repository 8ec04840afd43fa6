"""Our messages hold the very bytes that a real API server wrote to etcd (kube-apiserver 1.36.2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nominee.machinery.api.kinds import by_kind
from nominee.machinery.wire import envelope, protos

GOLDEN = Path(__file__).parents[1] / "golden"
PROTO = Path(__file__).parents[2] / "proto"
VALUES = [
    value
    for value in json.loads((GOLDEN / "etcd_values.json").read_text())
    if value["enc"] == "protobuf" and by_kind(*value["gvk"].rsplit("/", 1))
]


def test_the_proto_files_are_those_of_the_table() -> None:
    for path, text in protos.render().items():
        assert (PROTO / path).read_text() == text, (
            f"{path}: run `python -m nominee.machinery.wire.protos proto`"
        )


def test_there_are_golden_values() -> None:
    assert len(VALUES) >= 10


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value["key"])
def test_real_bytes_survive_decoding_and_encoding(value: dict[str, str]) -> None:
    data = bytes.fromhex(value["hex"])
    kind = by_kind(*value["gvk"].rsplit("/", 1))
    assert kind is not None
    obj = envelope.decode(kind, data)
    assert envelope.encode(obj) == data


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value["key"])
def test_resource_version_goes_in_without_decoding(value: dict[str, str]) -> None:
    data = bytes.fromhex(value["hex"])
    kind = by_kind(*value["gvk"].rsplit("/", 1))
    assert kind is not None
    obj = envelope.decode(kind, envelope.with_resource_version(data, 123456))
    assert obj.metadata.resourceVersion == "123456"
    obj.metadata.resourceVersion = ""
    assert envelope.encode(obj) == data


@pytest.mark.parametrize(
    "data", [b"", b"k8s\x00", b"{}", b"k8s\x00\x0a\x02", b"k8s\x00\x0a\x00\x12\x7f", b"k8s\x00\xff\xff"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    kind = by_kind("v1", "Pod")
    assert kind is not None
    with pytest.raises(envelope.EnvelopeError):
        envelope.decode(kind, data)
