"""Node groups of the cloud, read from YAML and validated; each has the Node that its instances become.

    nodeGroups:
    - name: small
      min: 0                      # reported to the autoscaler; the cloud does not enforce it
      max: 10                     # the cloud refuses larger sizes
      target: 1                   # instances at the first start
      provisioningDelay: 2s       # from the request until the instance runs
      deletionDelay: 0s           # from the request until the instance is deleted
      template: {cpu: "4", memory: 16Gi, pods: 110, labels: {a: b}, taints: [{key: k, effect: NoSchedule}]}
      failures: {increase: 1, provisioning: 1, stuck: 1, errorCode: OUT_OF_STOCK, errorClass: OutOfResources}

With `failures` the first N increases are refused, and the first N instances fail or never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import yaml

from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import EMULATED_EPHEMERAL_STORAGE, EPHEMERAL_STORAGE
from nominee.machinery.resources.quantity import Quantity, QuantityError
from nominee.machinery.wire.codec import DecodeError, from_json
from nominee.machinery.wire.files import yaml_text
from nominee.machinery.wire.values.scalars import parse_seconds

GROUP_LABEL = "nominee.dev/node-group"
_TEXTS_MAX = 16
ERROR_CLASSES = {"OutOfResources": 1, "Other": 99}
_GROUP_FIELDS = {"name", "min", "max", "target", "provisioningDelay", "deletionDelay", "template", "failures"}
_TEMPLATE_FIELDS = {"cpu", "memory", "pods", "resources", "labels", "annotations", "taints"}
_FAILURE_FIELDS = {"increase", "provisioning", "stuck", "errorCode", "errorMessage", "errorClass"}


class NodeGroupError(ValueError):
    """An invalid file; the text has the path of the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Emulated failures, counted from the group's first instance or increase."""

    increase: int = 0
    provisioning: int = 0
    stuck: int = 0
    error_code: str = "OUT_OF_STOCK"
    error_message: str = "no instance of this type is available"
    error_class: int = ERROR_CLASSES["OutOfResources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A group of the file. Delays in seconds."""

    name: str
    min: int
    max: int
    target: int
    template: core.Node
    provisioning_delay: float = 0.0
    deletion_delay: float = 0.0
    failures: Failures = field(default_factory=Failures)


def load(path: Path | None) -> tuple[NodeGroup, ...]:
    """Read the groups of a file; without a file there are no groups.

    Raises:
        NodeGroupError: the file cannot be read, or is invalid.
    """
    if path is None:
        return ()
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NodeGroupError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NodeGroupError(f"{path}: not text in UTF-8") from None
    except NodeGroupError as error:
        raise NodeGroupError(f"{path}: {error}") from None


@lru_cache(_TEXTS_MAX)
def parse(text: str) -> tuple[NodeGroup, ...]:
    """Parse the groups of a YAML document. They are cached: never change a template.

    Raises:
        NodeGroupError: the document is invalid.
    """
    try:
        document = yaml_text.parse(text)
    except yaml.YAMLError as error:
        raise NodeGroupError(f"invalid YAML: {error}") from None
    if document is None:
        return ()
    rows = _list(_mapping(document, "the document").get("nodeGroups"), "nodeGroups")
    groups = tuple(_group(row, f"nodeGroups[{index}]") for index, row in enumerate(rows))
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1:
            raise NodeGroupError(f"nodeGroups: duplicate name {name}")
    return groups


def _group(row: object, at: str) -> NodeGroup:
    fields = _known(row, _GROUP_FIELDS, at)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise NodeGroupError(f"{at}.name: expected a name")
    minimum = _count(fields, "min", 0, at)
    maximum = _count(fields, "max", max(minimum, 1000), at)
    target = _count(fields, "target", minimum, at)
    if minimum > maximum:
        raise NodeGroupError(f"{at}: min {minimum} is above max {maximum}")
    if target > maximum:
        raise NodeGroupError(f"{at}: target {target} is above max {maximum}")
    return NodeGroup(
        name=name,
        min=minimum,
        max=maximum,
        target=target,
        template=_template(name, fields.get("template"), f"{at}.template"),
        provisioning_delay=_duration(fields, "provisioningDelay", at),
        deletion_delay=_duration(fields, "deletionDelay", at),
        failures=_failures(fields.get("failures"), f"{at}.failures"),
    )


def _template(group: str, row: object, at: str) -> core.Node:
    """Return the node that an instance of the group becomes: ready, and with the group's label."""
    fields = _known(row, _TEMPLATE_FIELDS, at)
    amounts = {
        "pods": fields.get("pods", 110),
        EPHEMERAL_STORAGE: EMULATED_EPHEMERAL_STORAGE,
        **_mapping(fields.get("resources") or {}, f"{at}.resources"),
    }
    for name in ("cpu", "memory"):
        if name not in fields:
            raise NodeGroupError(f"{at}.{name}: required")
        amounts[name] = fields[name]
    node = core.Node()
    node.metadata.name = f"{group}-template"
    for target, name in (
        (node.metadata.labels, "labels"),
        (node.metadata.annotations, "annotations"),
    ):
        for key, value in _mapping(fields.get(name) or {}, f"{at}.{name}").items():
            target[str(key)] = str(value)
    node.metadata.labels[GROUP_LABEL] = group
    for name, amount in amounts.items():
        try:
            text = Quantity.parse(str(amount)).canonical()
        except QuantityError as error:
            raise NodeGroupError(f"{at}.{name}: {error}") from None
        node.status.capacity[str(name)].string = text
        node.status.allocatable[str(name)].string = text
    for index, taint in enumerate(_list(fields.get("taints") or [], f"{at}.taints")):
        place = f"{at}.taints[{index}]"
        try:
            node.spec.taints.append(from_json(core.Taint, _mapping(taint, place), strict=True))
        except DecodeError as error:
            raise NodeGroupError(f"{place}: {error}") from None
    node.status.conditions.add(type="Ready", status="True")
    return node


def _failures(row: object, at: str) -> Failures:
    if row is None:
        return Failures()
    fields = _known(row, _FAILURE_FIELDS, at)
    default = Failures()
    for name in ("errorCode", "errorMessage"):
        if not isinstance(fields.get(name, ""), str):  # YAML reads NO as false
            raise NodeGroupError(f"{at}.{name}: expected a string; put it in quotes")
    class_name = fields.get("errorClass", "OutOfResources")
    if not isinstance(class_name, str) or class_name not in ERROR_CLASSES:
        raise NodeGroupError(f"{at}.errorClass: expected one of {', '.join(ERROR_CLASSES)}")
    return Failures(
        increase=_count(fields, "increase", 0, at),
        provisioning=_count(fields, "provisioning", 0, at),
        stuck=_count(fields, "stuck", 0, at),
        error_code=str(fields.get("errorCode", default.error_code)),
        error_message=str(fields.get("errorMessage", default.error_message)),
        error_class=ERROR_CLASSES[class_name],
    )


def _mapping(value: object, at: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise NodeGroupError(f"{at}: expected a mapping")
    return value


def _list(value: object, at: str) -> list[object]:
    if not isinstance(value, list):
        raise NodeGroupError(f"{at}: expected a list")
    return value


def _known(value: object, fields: set[str], at: str) -> Mapping[str, object]:
    mapping = _mapping(value, at)
    for name in mapping:
        if name not in fields:
            raise NodeGroupError(f"{at}.{name}: unknown field; known are {', '.join(sorted(fields))}")
    return mapping


def _count(fields: Mapping[str, object], name: str, default: int, at: str) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise NodeGroupError(f"{at}.{name}: expected an integer of 0 or more")
    return value


def _duration(fields: Mapping[str, object], name: str, at: str) -> float:
    try:
        seconds = parse_seconds(str(fields.get(name, "0")))
    except ValueError:
        raise NodeGroupError(f"{at}.{name}: expected a duration like 500ms or 2m") from None
    if seconds < 0:
        raise NodeGroupError(f"{at}.{name}: must not be negative")
    return seconds
