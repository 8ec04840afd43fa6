"""The errors of Go's decoders, by the type of the field."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from nominee.apiserver.schema.go_errors import conversion_problem, unmarshal_problem
from nominee.machinery.api.pb import core, devices, node
from nominee.machinery.wire import codec

CASES: list[tuple[type[Message], dict[str, Any], str, str]] = [
    (
        core.Node,
        {"status": {"capacity": ["cpu"]}},
        "json: cannot unmarshal array into Go struct field NodeStatus.status.capacity of type"
        " v1.ResourceList",
        "cannot restore map from slice",
    ),
    (
        core.Node,
        {"status": {"capacity": {"cpu": []}}},
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        node.RuntimeClass,
        {"overhead": {"podFixed": 5}},
        "json: cannot unmarshal number into Go struct field Overhead.overhead.podFixed of type"
        " v1.ResourceList",
        "cannot restore map from int64",
    ),
    (
        core.ConfigMap,
        {"data": ["a"]},
        "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
        "cannot restore map from slice",
    ),
    (
        devices.ResourceSlice,
        {"spec": {"devices": [{"attributes": ["a"]}]}},
        "json: cannot unmarshal array into Go struct field Device.spec.devices.attributes of type"
        " map[v1.QualifiedName]v1.DeviceAttribute",
        "cannot restore map from slice",
    ),
    (
        core.Pod,
        {"spec": {"tolerations": {"key": "a"}}},
        "json: cannot unmarshal object into Go struct field PodSpec.spec.tolerations of type []v1.Toleration",
        "cannot restore slice from map",
    ),
    (
        core.Pod,
        {"spec": {"hostNetwork": "x"}},
        "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        "unrecognized type: bool",
    ),
    (
        core.Pod,
        {"spec": {"priority": 1.5}},
        "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        "cannot convert float64 to int32",
    ),
]


@pytest.mark.parametrize(("message", "document", "problem", "converted"), CASES)
def test_a_value_that_does_not_fit_its_field(
    message: type[Message], document: dict[str, Any], problem: str, converted: str
) -> None:
    with pytest.raises(codec.DecodeError) as caught:
        codec.from_json(message, document)
    assert unmarshal_problem(message, document, caught.value) == problem
    assert conversion_problem(message, document, caught.value) == converted
