"""ResourceSlices (kube-apiserver 1.36, pkg/apis/resource/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nominee.apiserver.kinds.resource import device_terms
from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.objects.selectable_fields import selectable
from nominee.apiserver.printing.cells import UNSET
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, lists
from nominee.apiserver.validation.scheduling_terms import node_selector
from nominee.apiserver.validation.values import device_names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import devices

_DEVICES_MAX = 128
_DEVICES_MAX_ADVANCED = 64
_COUNTER_SETS_MAX = 8
_COUNTERS_MAX = 32
_CONSUMPTIONS_MAX = 2
_ATTRIBUTES_MAX = 32
_TAINTS_MAX = 16
_VALUE_LENGTH_MAX = 64
_ONE_OF = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_OF_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is"
    " set to true in the ResourceSlice spec"
)
_NUMBER = r"(0|[1-9]\d*)"
_PRE_RELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = r"[0-9a-zA-Z-]+"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?",
    re.ASCII,
)


def _validate(obj: devices.ResourceSlice) -> list[Cause]:
    spec = obj.spec
    errors = list(device_names.driver("spec.driver", spec.driver))
    errors += device_names.pool("spec.pool.name", spec.pool.name)
    if spec.pool.resourceSliceCount <= 0:
        path = "spec.pool.resourceSliceCount"
        errors.append(field.invalid(path, spec.pool.resourceSliceCount, "must be greater than zero"))
    if spec.pool.generation < 0:
        problem = "must be greater than or equal to zero"
        errors.append(field.invalid("spec.pool.generation", spec.pool.generation, problem))
    errors += _placement(spec)
    if spec.sharedCounters and spec.devices:
        errors.append(field.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    advanced = any(
        device.taints
        or device.consumesCounters
        or any(_listed(value) for value in device.attributes.values())
        for device in spec.devices
    )
    errors += lists.distinct(
        "spec.devices",
        spec.devices,
        _DEVICES_MAX_ADVANCED if advanced else _DEVICES_MAX,
        lambda path, device: _device(path, device, own_nodes=spec.perDeviceNodeSelection),
        key=lambda device: device.name,
    )
    return errors + lists.distinct(
        "spec.sharedCounters",
        spec.sharedCounters,
        _COUNTER_SETS_MAX,
        lambda path, found: _counters(path, "name", found.name, list(found.counters)),
        key=lambda found: found.name,
    )


def _validate_change(new: devices.ResourceSlice, old: devices.ResourceSlice) -> list[Cause]:
    errors = field.immutable("spec.pool.name", new.spec.pool.name, old.spec.pool.name)
    errors += field.immutable("spec.driver", new.spec.driver, old.spec.driver)
    after, before = (each.spec.nodeName if each.spec.HasField("nodeName") else None for each in (new, old))
    return errors + field.immutable("spec.nodeName", after, before)


def _placement(spec: devices.ResourceSliceSpec) -> Iterator[Cause]:
    given: list[str] = []
    if spec.HasField("nodeName"):
        if spec.nodeName:
            given.append("`nodeName`")
            yield from device_names.subdomain("spec.nodeName", spec.nodeName)
        else:
            yield field.invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
    if spec.HasField("nodeSelector"):
        given.append("`nodeSelector`")
        yield from node_selector("spec.nodeSelector", spec.nodeSelector)
        if len(spec.nodeSelector.nodeSelectorTerms) != 1:
            problem = "must have exactly one node selector term"
            yield field.invalid("spec.nodeSelector.nodeSelectorTerms", None, problem)
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.HasField(name):
            if getattr(spec, name):
                given.append(f"`{name}`")
            else:
                yield field.invalid(f"spec.{name}", False, "must be either unset or set to true")
    if not given:
        yield field.required("spec", _ONE_OF)
    elif len(given) > 1:
        shown = "{" + ", ".join(given) + "}"
        yield field.invalid("spec", shown, f"{_ONE_OF}, but multiple fields are set")


def _device(path: str, device: devices.Device, *, own_nodes: bool) -> list[Cause]:
    errors = device_names.label(f"{path}.name", device.name)
    count = len(device.attributes) + len(device.capacity)
    if count > _ATTRIBUTES_MAX:
        problem = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES_MAX}"
        errors.append(field.invalid(path, count, problem))
    for name in sorted(device.attributes):
        errors += device_names.attribute_name(f"{path}.attributes", name)
        errors += _attribute(f"{path}.attributes[{name}]", device.attributes[name])
    for name in sorted(device.capacity):
        errors += device_names.attribute_name(f"{path}.capacity", name)
        if device.capacity[name].HasField("requestPolicy") and not device.allowMultipleAllocations:
            problem = "allowMultipleAllocations must be true"
            errors.append(field.forbidden(f"{path}.capacity[{name}].requestPolicy", problem))
    errors += lists.each(f"{path}.taints", device.taints, _TAINTS_MAX, device_terms.taint)
    errors += lists.distinct(
        f"{path}.consumesCounters",
        device.consumesCounters,
        _CONSUMPTIONS_MAX,
        lambda at, found: _counters(at, "counterSet", found.counterSet, list(found.counters)),
        key=lambda found: found.counterSet,
    )
    errors += _device_placement(path, device, own_nodes=own_nodes)
    return [
        *errors,
        *device_terms.binding_conditions(path, device.bindingConditions, device.bindingFailureConditions),
    ]


def _device_placement(path: str, device: devices.Device, *, own_nodes: bool) -> Iterator[Cause]:
    present = [name for name in ("nodeName", "nodeSelector", "allNodes") if device.HasField(name)]
    if not own_nodes:
        if not present:
            return
        problem = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to"
            " true in the ResourceSlice spec"
        )
        yield field.invalid(path, None, problem)
        return
    if "nodeName" in present:
        if device.nodeName:
            yield from device_names.subdomain(f"{path}.nodeName", device.nodeName)
        else:
            present.remove("nodeName")
            yield field.invalid(f"{path}.nodeName", "", "must not be empty")
    if "nodeSelector" in present:
        yield from node_selector(f"{path}.nodeSelector", device.nodeSelector)
    if "allNodes" in present and not device.allNodes:
        present.remove("allNodes")
        yield field.invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    if not present:
        yield field.required(path, _ONE_OF_DEVICE)
    elif len(present) > 1:
        shown = "{" + ", ".join(f"`{name}`" for name in present) + "}"
        yield field.invalid(path, shown, _ONE_OF_DEVICE)


def _listed(attribute: devices.DeviceAttribute) -> bool:
    return bool(attribute.ints or attribute.bools or attribute.strings or attribute.versions)


def _attribute(path: str, attribute: devices.DeviceAttribute) -> Iterator[Cause]:
    count = sum(attribute.HasField(name) for name in ("int", "bool", "string", "version"))
    count += sum(bool(getattr(attribute, name)) for name in ("ints", "bools", "strings", "versions"))
    if len(attribute.string.encode()) > _VALUE_LENGTH_MAX:
        yield field.too_long(f"{path}.string", _VALUE_LENGTH_MAX)
    if attribute.HasField("version"):
        if not _SEMVER.fullmatch(attribute.version):
            problem = "must be a string compatible with semver.org spec 2.0.0"
            yield field.invalid(f"{path}.version", attribute.version, problem)
        if len(attribute.version.encode()) > _VALUE_LENGTH_MAX:
            yield field.too_long(f"{path}.version", _VALUE_LENGTH_MAX)
    if count != 1:
        yield field.invalid(path, "", "exactly one value must be specified")


def _counters(path: str, name_field: str, name: str, counters: list[str]) -> list[Cause]:
    at = f"{path}.{name_field}"
    errors = device_names.label(at, name) if name else [field.required(at)]
    at = f"{path}.counters"
    if not counters:
        return [*errors, field.required(at)]
    if len(counters) > _COUNTERS_MAX:
        return [*errors, field.too_many(at, len(counters), _COUNTERS_MAX)]
    for counter in sorted(counters):
        errors += device_names.label(at, counter)
    return errors


def _fields(found: devices.ResourceSlice) -> dict[str, str]:
    spec = found.spec
    return {
        "metadata.name": found.metadata.name,
        "spec.nodeName": spec.nodeName,
        "spec.driver": spec.driver,
    }


def _row(obj: devices.ResourceSlice, now: float) -> Cells:
    spec = obj.spec
    node = spec.nodeName if spec.HasField("nodeName") else UNSET
    return [node, spec.driver, spec.pool.name]


def _unknown_field(label: str) -> str:
    return f"field label not supported for {kinds.RESOURCE_SLICE.api_version}, Kind=ResourceSlice: {label}"


class ResourceSliceStrategy(SimpleStrategy[devices.ResourceSlice]):
    """Adds their time to taints of devices that come without one (SetDefaults_DeviceTaint)."""

    def prepare_for_create(self, new: devices.ResourceSlice, env: Environment) -> None:
        _date_taints(new, env)
        super().prepare_for_create(new, env)

    def prepare_for_update(
        self, new: devices.ResourceSlice, old: devices.ResourceSlice, env: Environment
    ) -> None:
        _date_taints(new, env)
        super().prepare_for_update(new, old, env)


def _date_taints(new: devices.ResourceSlice, env: Environment) -> None:
    for device in new.spec.devices:
        for taint in device.taints:
            if not taint.HasField("timeAdded"):
                taint.timeAdded.CopyFrom(env.now)


RULES = KindRules(
    kind=kinds.RESOURCE_SLICE,
    strategy=ResourceSliceStrategy(kinds.RESOURCE_SLICE, _validate, _validate_change, counts_generation=True),
    columns=Columns(
        _row,
        NAME,
        Column("Node", "resourceslicespec-resource-v1#nodeName"),
        Column("Driver", "resourceslicespec-resource-v1#driver"),
        Column("Pool", "resourcepool-resource-v1#name"),
        AGE,
    ),
    fields=selectable(devices.ResourceSlice, _fields, unknown=_unknown_field),
    delete_response=DeleteResponse.OBJECT,
)
