"""Nodes (kube-apiserver 1.36, ValidateNode and ValidateNodeUpdate; registry/core/node)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.objects.selectable_fields import bool_text, selectable
from nominee.apiserver.printing.cells import NONE, UNKNOWN
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import declarative, field, names
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.scheduling_terms import label_name, taint_effect
from nominee.apiserver.validation.values import addresses, quantities
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import format_time

PREEMPTION_POLICY_OWNERS_MAX = 20
_PREEMPTION_GATE = "InPlacePodVerticalScalingSchedulerPreemption"
_CIDR_CHANGED = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_CHANGED = 'node updates may not change providerID except from "" to valid'
_ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


class NodeStrategy(Strategy[core.Node]):
    """Nodes may come with a status: the kubelet registers itself so."""

    def prepare_for_create(self, new: core.Node, env: Environment) -> None:
        self.drop_disabled(new, None, env)

    def drop_disabled(self, new: core.Node, old: core.Node | None, env: Environment) -> None:
        _drop_node_fields(new, old, env)

    def validate(self, new: core.Node, env: Environment) -> list[Cause]:
        return self._validate(new) + _preemption_policy(new, None, env)

    def validate_update(self, new: core.Node, old: core.Node, env: Environment) -> list[Cause]:
        # As upstream, a problem that both find is reported twice.
        return [*self._validate(new), *_validate_update(new, old), *_preemption_policy(new, old, env)]

    def _validate(self, new: core.Node) -> list[Cause]:
        return self.validate_metadata(new) + _validate(new)

    def warnings(self, new: core.Node, old: core.Node | None) -> Sequence[str]:
        return tuple(_warnings(new))


class NodeStatusStrategy(StatusStrategy[core.Node]):
    """PUT of `status`; `config` can only be kept."""

    def prepare_for_update(self, new: core.Node, old: core.Node, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        # As spec.configSource.
        if not old.status.HasField("config"):
            new.status.ClearField("config")

    def validate_update(self, new: core.Node, old: core.Node, env: Environment) -> list[Cause]:
        return list(_validate_update(new, old))


def _drop_node_fields(new: core.Node, old: core.Node | None, env: Environment) -> None:
    used = old is not None and old.spec.HasField("podPreemptionPolicy")
    if not env.gates.enabled(_PREEMPTION_GATE) and not used:
        new.spec.ClearField("podPreemptionPolicy")
    # Dynamic kubelet configuration is gone since 1.24; only the field is left.
    if old is None or not old.spec.HasField("configSource"):
        new.spec.ClearField("configSource")
    if old is None:
        new.status.ClearField("config")


def _preemption_policy(new: core.Node, old: core.Node | None, env: Environment) -> list[Cause]:
    """Check spec.podPreemptionPolicy (KEP-5836), whose rules upstream generates from the type's tags.

    Where the gate is off a stored policy may stay as it is or be removed.
    """
    path = "spec.podPreemptionPolicy"
    if not new.spec.HasField("podPreemptionPolicy"):
        return []
    policy = new.spec.podPreemptionPolicy
    before = old.spec.podPreemptionPolicy if old is not None else core.NodePodPreemptionPolicy()
    if not env.gates.enabled(_PREEMPTION_GATE):
        kept = old is not None and old.spec.HasField("podPreemptionPolicy") and policy == before
        return [] if kept else [field.forbidden(path, "")]
    return declarative.string_set(
        f"{path}.disableResizePreemption",
        policy.disableResizePreemption,
        PREEMPTION_POLICY_OWNERS_MAX,
        declarative.label_key,
        before=before.disableResizePreemption,
    )


def _validate(obj: core.Node) -> list[Cause]:
    """Beside its metadata."""
    return [*_taints("metadata.taints", obj.spec.taints), *_amounts(obj), *_ranges(obj.spec.podCIDRs)]


def _ranges(cidrs: Sequence[str]) -> list[Cause]:
    """One for each family of addresses."""
    path = "spec.podCIDRs"
    errors = [cause for i, cidr in enumerate(cidrs) for cause in addresses.ip_range(f"{path}[{i}]", cidr)]
    if len(cidrs) > 1 and (len(cidrs) > 2 or len({":" in cidr for cidr in cidrs}) < 2):
        problem = "may specify no more than one CIDR for each IP family"
        errors.append(field.invalid(path, list(cidrs), problem))
    errors += [
        field.duplicate(f"{path}[{index}]", cidr) for index, cidr in enumerate(cidrs) if cidr in cidrs[:index]
    ]
    return errors


def _validate_update(new: core.Node, old: core.Node) -> Iterator[Cause]:
    yield from metadata.object_meta_update(new.metadata, old.metadata)
    yield from _amounts(new)
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(new.status.addresses):
        pair = (address.type, address.address)
        if pair in seen:
            value = {"Type": address.type, "Address": address.address}
            yield field.duplicate(f"status.addresses[{index}]", value)
        seen.add(pair)
    if old.spec.podCIDRs:
        before, after = old.spec.podCIDRs, new.spec.podCIDRs
        changed = (
            sum(one != other for one, other in zip(before, after, strict=True))
            if len(before) == len(after)
            else 1
        )
        yield from [field.forbidden("spec.podCIDRs", _CIDR_CHANGED)] * changed
    if old.spec.providerID and old.spec.providerID != new.spec.providerID:
        yield field.forbidden("spec.providerID", _PROVIDER_CHANGED)
    if new.spec.taints:
        yield from _taints("metadata.taints", new.spec.taints)
    if new.spec.externalID != old.spec.externalID:
        yield field.forbidden("spec.externalID", "may not be updated")


def _taints(path: str, found: Iterable[core.Taint]) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(found):
        at = f"{path}[{index}]"
        yield from label_name(f"{at}.key", taint.key)
        problems = names.label_value(taint.value)
        if problems:
            yield field.invalid(f"{at}.value", taint.value, ";".join(problems))
        yield from taint_effect(f"{at}.effect", taint.effect, allow_empty=False)
        pair = (taint.key, taint.effect)
        if pair in seen:
            yield _twice(at, taint)
        seen.add(pair)


def _twice(path: str, taint: core.Taint) -> Cause:
    added = format_time(taint.timeAdded.seconds) if taint.HasField("timeAdded") else None
    # The internal type has no names of its own for JSON.
    value = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect, "TimeAdded": added}
    error = field.duplicate(path, value)
    return Cause(error.reason, f"{error.message}: taints must be unique by key and effect pair", path)


def _amounts(obj: core.Node) -> Iterator[Cause]:
    for part in ("capacity", "allocatable"):
        values = getattr(obj.status, part)
        for name in sorted(values):
            yield from quantities.amount(f"status.{part}.{name}", name, values[name])


def _warnings(node: core.Node) -> Iterator[str]:
    if node.spec.HasField("configSource"):
        yield "spec.configSource: the feature is no longer supported"
    if node.spec.externalID:
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, cidr in enumerate(node.spec.podCIDRs):
        yield from addresses.range_warnings(f"spec.podCIDRs[{index}]", cidr)


def _fields(node: core.Node) -> dict[str, str]:
    return {"metadata.name": node.metadata.name, "spec.unschedulable": bool_text(node.spec.unschedulable)}


def _row(node: core.Node, now: float) -> Cells:
    ready = [condition.status for condition in node.status.conditions if condition.type == "Ready"]
    status = ["Ready" if ready[-1] == "True" else "NotReady"] if ready else ["Unknown"]
    if node.spec.unschedulable:
        status.append("SchedulingDisabled")
    roles = set()
    for label, value in node.metadata.labels.items():
        if label.startswith(_ROLE_LABEL_PREFIX):
            roles.add(label.removeprefix(_ROLE_LABEL_PREFIX))
        elif label == _ROLE_LABEL:
            roles.add(value)
    addresses: dict[str, str] = {}
    for address in node.status.addresses:
        addresses.setdefault(address.type, address.address)
    info = node.status.nodeInfo
    kernel = info.kernelVersion or UNKNOWN
    if info.architecture:
        kernel = f"{kernel} ({info.architecture})"
    return [
        ",".join(status),
        ",".join(sorted(role for role in roles if role)) or NONE,
        info.kubeletVersion,
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.osImage or UNKNOWN,
        kernel,
        info.containerRuntimeVersion or UNKNOWN,
    ]


RULES = KindRules(
    kind=kinds.NODE,
    strategy=NodeStrategy(kinds.NODE, {"status": NodeStatusStrategy(kinds.NODE)}),
    columns=Columns(
        _row,
        NAME,
        Column("Status", "The status of the node"),
        Column("Roles", "The roles of the node"),
        AGE,
        Column("Version", "nodesysteminfo-v1#kubeletVersion"),
        wide("Internal-IP", "nodestatus-v1#addresses"),
        wide("External-IP", "nodestatus-v1#addresses"),
        wide("OS-Image", "nodesysteminfo-v1#osImage"),
        wide("Kernel-Version", "nodesysteminfo-v1#kernelVersion"),
        wide("Container-Runtime", "nodesysteminfo-v1#containerRuntimeVersion"),
    ),
    fields=selectable(core.Node, _fields),
)
