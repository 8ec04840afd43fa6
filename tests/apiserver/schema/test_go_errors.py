"""The errors of Go's decoders, by the type of the field."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from nominee.apiserver.schema.go_errors import conversion_problem, unmarshal_problem
from nominee.apiserver.schema.go_named_types import NAMED_TYPES
from nominee.machinery.api.pb import core, devices, node
from nominee.machinery.wire import codec
from nominee.machinery.wire.schema import messages

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
    (
        core.Pod,
        {"spec": {"restartPolicy": 1}},
        "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type"
        " v1.RestartPolicy",
        "cannot convert int64 to v1.RestartPolicy",
    ),
    (
        core.PersistentVolumeClaim,
        {"spec": {"accessModes": "a"}},
        "json: cannot unmarshal string into Go struct field PersistentVolumeClaimSpec.spec.accessModes of"
        " type []v1.PersistentVolumeAccessMode",
        "cannot restore slice from string",
    ),
    (
        core.PersistentVolumeClaim,
        {"spec": {"accessModes": [True]}},
        "json: cannot unmarshal bool into Go struct field PersistentVolumeClaimSpec.spec.accessModes of type"
        " v1.PersistentVolumeAccessMode",
        "unrecognized type: string",
    ),
    (
        core.PersistentVolumeClaim,
        {"status": {"allocatedResourceStatuses": [1]}},
        "json: cannot unmarshal array into Go struct field"
        " PersistentVolumeClaimStatus.status.allocatedResourceStatuses of type"
        " map[v1.ResourceName]v1.ClaimResourceStatus",
        "cannot restore map from slice",
    ),
    (
        core.Pod,
        {"metadata": {"ownerReferences": [{"uid": 1}]}},
        "json: cannot unmarshal number into Go struct field OwnerReference.metadata.ownerReferences.uid of"
        " type types.UID",
        "cannot convert int64 to types.UID",
    ),
    # A field of an embedded struct is one of the struct that embeds it.
    (
        core.Pod,
        {"spec": {"volumes": [{"emptyDir": {"medium": 1}, "name": "v"}]}},
        "json: cannot unmarshal number into Go struct field EmptyDirVolumeSource.spec.volumes.emptyDir.medium"
        " of type v1.StorageMedium",
        "cannot convert int64 to v1.StorageMedium",
    ),
    (
        core.Pod,
        {"spec": {"volumes": [{"emptyDir": 1, "name": "v"}]}},
        "json: cannot unmarshal number into Go struct field Volume.spec.volumes.emptyDir of type"
        " v1.EmptyDirVolumeSource",
        "cannot restore struct from: int64",
    ),
    (
        core.Pod,
        {"spec": {"ephemeralContainers": [{"imagePullPolicy": 1}]}},
        "json: cannot unmarshal number into Go struct field"
        " EphemeralContainer.spec.ephemeralContainers.imagePullPolicy of type v1.PullPolicy",
        "cannot convert int64 to v1.PullPolicy",
    ),
    # A type that decodes itself does not know its field, unless JSON's decoder called it.
    (
        core.Service,
        {"spec": {"ports": [{"targetPort": True}]}},
        "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        "json: cannot unmarshal bool into Go value of type int32",
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


def test_types_with_a_name_are_of_fields_of_the_wire() -> None:
    texts = {
        (full_name, field.name)
        for full_name, message in messages().items()
        for field in message.fields
        if field.type == "string"
    }
    assert not set(NAMED_TYPES) - texts
