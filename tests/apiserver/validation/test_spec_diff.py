"""Differences of structures in messages, beyond those that the recordings have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from google.protobuf.message import Message

from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.spec_diff import diff
from nominee.machinery.api.pb import core
from nominee.machinery.wire.schema import messages
from tests.apiserver.rest.asgi import in_memory

_M = TypeVar("_M", bound=Message)


def _changed(message: _M, change: Callable[[_M], None]) -> str:
    changed = type(message)()
    changed.CopyFrom(message)
    change(changed)
    return diff(message, changed)


def test_fields_of_the_host_are_in_the_security_context() -> None:
    def host_network(spec: core.PodSpec) -> None:
        spec.hostNetwork = True

    assert _changed(core.PodSpec(), host_network) == (
        "@@ -12,7 +12,7 @@\n"
        '  "AutomountServiceAccountToken": null,\n'
        '  "NodeName": "",\n'
        '  "SecurityContext": {\n'
        '-  "HostNetwork": false,\n'
        '+  "HostNetwork": true,\n'
        '   "HostPID": false,\n'
        '   "HostIPC": false,\n'
        '   "ShareProcessNamespace": null,\n'
    )


def test_the_deprecated_service_account_is_not_shown() -> None:
    def service_account(spec: core.PodSpec) -> None:
        spec.serviceAccount = "a"

    assert _changed(core.PodSpec(), service_account) == ""


def test_structures_that_are_inlined_have_no_name() -> None:
    def image(container: core.EphemeralContainer) -> None:
        container.ephemeralContainerCommon.image = "<b>"

    before = core.EphemeralContainer(targetContainerName="c")
    before.ephemeralContainerCommon.name = "e"
    assert _changed(before, image) == (
        "@@ -1,6 +1,6 @@\n"
        " {\n"
        '  "Name": "e",\n'
        '- "Image": "",\n'
        '+ "Image": "\\u003cb\\u003e",\n'
        '  "Command": null,\n'
        '  "Args": null,\n'
        '  "WorkingDir": "",\n'
    )


def test_a_change_at_the_end_has_less_context() -> None:
    def target(container: core.EphemeralContainer) -> None:
        container.targetContainerName = "c"

    assert _changed(core.EphemeralContainer(), target).endswith(
        '  "TTY": false,\n- "TargetContainerName": ""\n+ "TargetContainerName": "c"\n }\n'
    )


def test_types_with_a_json_of_their_own_are_shown_by_it() -> None:
    spec = core.PodSpec()
    container = spec.containers.add(name="c")
    container.resources.requests["cpu"].string = "100m"
    container.livenessProbe.handler.httpGet.port.type = 1
    container.livenessProbe.handler.httpGet.port.strVal = "web"
    shown = dump(spec)["Containers"][0]
    assert shown["Resources"]["Requests"] == {"cpu": "100m"}
    assert shown["LivenessProbe"]["HTTPGet"]["Port"] == "web"
    added = dump(core.Taint(key="a", timeAdded={"seconds": 0}))
    assert added == {"Key": "a", "Value": "", "Effect": "", "TimeAdded": "1970-01-01T00:00:00Z"}


def test_a_number_that_only_the_api_has_as_a_pointer() -> None:
    assert dump(core.ServiceAccountTokenProjection()) == {"Audience": "", "ExpirationSeconds": 0, "Path": ""}


@pytest.mark.parametrize("message", [core.PodSpec, core.PodSecurityContext, core.VolumeSource,
                                     core.PersistentVolumeSource])  # fmt: skip
def test_no_field_of_the_wire_is_lost(message: type[Message]) -> None:
    fields = {field.go_name for field in messages()[message.DESCRIPTOR.full_name].fields}
    shown = set(dump(message()))
    if message is core.PodSpec:
        moved = {"HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers"}
        fields -= moved | {"DeprecatedServiceAccount"}
    assert shown == fields


async def test_the_source_of_a_volume_and_the_secret_that_may_come_later() -> None:
    rest = await in_memory()
    document = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "x"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "d.example", "volumeHandle": "h"},
        },
    }
    made = (await rest.json("POST", "/api/v1/persistentvolumes", document)).document
    made["spec"]["csi"] |= {"volumeHandle": "i", "controllerExpandSecretRef": {"name": "s", "namespace": "n"}}
    reply = await rest.json("PUT", "/api/v1/persistentvolumes/x", made)
    assert (reply.code, reply.document["message"]) == (
        422,
        'PersistentVolume "x" is invalid: spec.persistentvolumesource: Forbidden: spec.persistentvolumesource'
        " is immutable after creation\n"
        "@@ -22,7 +22,7 @@\n"
        '  "StorageOS": null,\n'
        '  "CSI": {\n'
        '   "Driver": "d.example",\n'
        '-  "VolumeHandle": "h",\n'
        '+  "VolumeHandle": "i",\n'
        '   "ReadOnly": false,\n'
        '   "FSType": "",\n'
        '   "VolumeAttributes": null,\n',
    )


async def test_a_claim_that_is_bound_is_compared_with_its_volume() -> None:
    rest = await in_memory()
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    document = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "x"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "s",
        },
    }
    made = (await rest.json("POST", path, document)).document
    made["spec"] |= {"volumeName": "v", "storageClassName": "t"}
    reply = await rest.json("PUT", f"{path}/x", made)
    assert reply.code == 422
    assert reply.document["message"].endswith(
        "@@ -10,7 +10,7 @@\n"
        "   }\n"
        "  },\n"
        '  "VolumeName": "v",\n'
        '- "StorageClassName": "s",\n'
        '+ "StorageClassName": "t",\n'
        '  "VolumeMode": "Filesystem",\n'
        '  "DataSource": null,\n'
        '  "DataSourceRef": null,\n'
    )
