"""What node groups the cloud has: read from YAML, checked, and each with the Node that its machines become.

    nodeGroups:
    - name: small
      min: 0                      # the autoscaler's business; the cloud only tells it
      max: 10                     # the cloud refuses to grow further
      target: 1                   # machines at the first start
      provisioningDelay: 2s       # from the order until the machine runs
      deletionDelay: 0s           # from the request until the machine is gone
      template: {cpu: "4", memory: 16Gi, pods: 110, labels: {a: b}, taints: [{key: k, effect: NoSchedule}]}
      failures: {increase: 1, provisioning: 1, stuck: 1, errorCode: OUT_OF_STOCK, errorClass: OutOfResources}

`failures` makes the first N orders be refused, the first N machines come with an error, or never come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from machinery.api.pb import core
from machinery.resources.pod_resources import EMULATED_EPHEMERAL_STORAGE, EPHEMERAL_STORAGE
from machinery.resources.quantity import Quantity, QuantityError
from machinery.wire.codec import DecodeError, from_json
from machinery.wire.scalars import parse_seconds

GROUP_LABEL = "nominee.dev/node-group"
ERROR_CLASSES = {"OutOfResources": 1, "Other": 99}
_GROUP_FIELDS = {"name", "min", "max", "target", "provisioningDelay", "deletionDelay", "template", "failures"}
_TEMPLATE_FIELDS = {"cpu", "memory", "pods", "resources", "labels", "annotations", "taints"}
_FAILURE_FIELDS = {"increase", "provisioning", "stuck", "errorCode", "errorMessage", "errorClass"}


class NodeGroupError(ValueError):
    """The file says something that makes no sense; the text names the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What goes wrong, counted from the group's first machine or order."""

    increase: int = 0
    provisioning: int = 0
    stuck: int = 0
    error_code: str = "OUT_OF_STOCK"
    error_message: str = "no machine of this kind is left"
    error_class: int = ERROR_CLASSES["OutOfResources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A group as the file has it. Delays in seconds."""

    name: str
    min: int
    max: int
    target: int
    template: core.Node
    provisioning_delay: float = 0.0
    deletion_delay: float = 0.0
    failures: Failures = field(default_factory=Failures)


def load(path: Path | None) -> tuple[NodeGroup, ...]:
    """The groups of a file; none without a file. NodeGroupError for what cannot be read."""
    if path is None:
        return ()
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NodeGroupError(f"{path}: {error.strerror}") from None
    except NodeGroupError as error:
        raise NodeGroupError(f"{path}: {error}") from None


def parse(text: str) -> tuple[NodeGroup, ...]:
    """The groups of a YAML document."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise NodeGroupError(f"no YAML: {error}") from None
    if document is None:
        return ()
    rows = _mapping(document, "the document").get("nodeGroups")
    if not isinstance(rows, list):
        raise NodeGroupError("nodeGroups: expected a list")
    groups = tuple(_group(row, f"nodeGroups[{index}]") for index, row in enumerate(rows))
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1:
            raise NodeGroupError(f"nodeGroups: {name} is there twice")
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
    """The node that a machine of the group becomes: ready, and with the group's label."""
    fields = _known(row, _TEMPLATE_FIELDS, at)
    amounts = {
        "pods": fields.get("pods", 110),
        EPHEMERAL_STORAGE: EMULATED_EPHEMERAL_STORAGE,
        **_mapping(fields.get("resources") or {}, f"{at}.resources"),
    }
    for name in ("cpu", "memory"):
        if name not in fields:
            raise NodeGroupError(f"{at}.{name}: must be given")
        amounts[name] = fields[name]
    node = core.Node()
    node.metadata.name = f"{group}-template"
    for where, given in (
        (node.metadata.labels, fields.get("labels")),
        (node.metadata.annotations, fields.get("annotations")),
    ):
        for key, value in _mapping(given or {}, at).items():
            where[str(key)] = str(value)
    node.metadata.labels[GROUP_LABEL] = group
    for name, amount in amounts.items():
        try:
            text = Quantity.parse(str(amount)).canonical()
        except QuantityError as error:
            raise NodeGroupError(f"{at}.{name}: {error}") from None
        node.status.capacity[str(name)].string = text
        node.status.allocatable[str(name)].string = text
    for index, taint in enumerate(fields.get("taints") or []):
        try:
            node.spec.taints.append(from_json(core.Taint, taint, strict=True))
        except DecodeError as error:
            raise NodeGroupError(f"{at}.taints[{index}]: {error}") from None
    node.status.conditions.add(type="Ready", status="True")
    return node


def _failures(row: object, at: str) -> Failures:
    if row is None:
        return Failures()
    fields = _known(row, _FAILURE_FIELDS, at)
    default = Failures()
    for name in ("errorCode", "errorMessage"):
        if not isinstance(fields.get(name, ""), str):  # YAML reads NO as false
            raise NodeGroupError(f"{at}.{name}: expected a text; put it in quotes")
    class_name = fields.get("errorClass", "OutOfResources")
    if class_name not in ERROR_CLASSES:
        raise NodeGroupError(f"{at}.errorClass: expected one of {', '.join(ERROR_CLASSES)}")
    return Failures(
        increase=_count(fields, "increase", 0, at),
        provisioning=_count(fields, "provisioning", 0, at),
        stuck=_count(fields, "stuck", 0, at),
        error_code=str(fields.get("errorCode", default.error_code)),
        error_message=str(fields.get("errorMessage", default.error_message)),
        error_class=ERROR_CLASSES[class_name],
    )


def _mapping(value: object, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise NodeGroupError(f"{at}: expected a mapping")
    return value


def _known(value: object, fields: set[str], at: str) -> Mapping[str, Any]:
    found = _mapping(value, at)
    for name in found:
        if name not in fields:
            raise NodeGroupError(f"{at}.{name}: unknown; there are {', '.join(sorted(fields))}")
    return found


def _count(fields: Mapping[str, Any], name: str, default: int, at: str) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise NodeGroupError(f"{at}.{name}: expected a number from 0")
    return value


def _duration(fields: Mapping[str, Any], name: str, at: str) -> float:
    try:
        seconds = parse_seconds(str(fields.get(name, "0")))
    except ValueError:
        raise NodeGroupError(f"{at}.{name}: expected a duration like 500ms or 2m") from None
    if seconds < 0:
        raise NodeGroupError(f"{at}.{name}: must not be negative")
    return seconds
