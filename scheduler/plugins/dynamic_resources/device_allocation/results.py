"""Build the status of a claim for the devices that were chosen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nominee.machinery.api.pb import core, devices
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    AllocationError,
    Amounts,
    DeviceView,
    Features,
    Node,
    RequestView,
)

FINALIZER = "resource.kubernetes.io/delete-protection"
_FROM_CLASS, _FROM_CLAIM = "FromClass", "FromClaim"


@dataclass(frozen=True, slots=True)
class Chosen:
    """One device for one request; `share_id` and the capacity taken where the device is shared."""

    request: RequestView
    device: DeviceView
    share_id: str = ""
    consumed: Amounts | None = None


def allocation_of(
    claim: devices.ResourceClaim,
    chosen: Sequence[Chosen],
    picked: Mapping[str, RequestView],
    classes: Mapping[str, devices.DeviceClass],
    node: Node,
    features: Features,
) -> devices.AllocationResult:
    """Return the allocation.

    `picked`: by request name the alternative that was taken (or the request itself).

    Raises:
        AllocationError: the allocation cannot be expressed.
    """
    allocation = devices.AllocationResult()
    for one in chosen:
        result = allocation.devices.results.add(
            request=one.request.full_name, driver=one.device.id.driver, pool=one.device.id.pool,
            device=one.device.id.device, tolerations=one.request.tolerations,
        )  # fmt: skip
        if one.request.admin_access:
            result.adminAccess = True
        if one.share_id:
            result.shareID = one.share_id
        for name, amount in (one.consumed or {}).items():
            result.consumedCapacity[name].string = str(amount)
        if features.binding_conditions:
            result.bindingConditions.extend(one.device.message.bindingConditions)
            result.bindingFailureConditions.extend(one.device.message.bindingFailureConditions)
    _add_class_config(allocation, claim, picked, classes)
    _add_claim_config(allocation, claim, picked)
    if features.brief_config:
        for entry in allocation.devices.config:
            if all(_is_for(entry.requests, picked[asked.name]) for asked in claim.spec.devices.requests):
                del entry.requests[:]
    selector = _node_selector([one.device for one in chosen], node.name, claim.metadata.name)
    if selector is not None:
        allocation.nodeSelector.CopyFrom(selector)
    return allocation


def _add_class_config(
    allocation: devices.AllocationResult,
    claim: devices.ResourceClaim,
    picked: Mapping[str, RequestView],
    classes: Mapping[str, devices.DeviceClass],
) -> None:
    """Add each class's configuration once, for all requests of the class."""
    added: dict[str, list[devices.DeviceAllocationConfiguration]] = {}
    for asked in claim.spec.devices.requests:
        request = picked[asked.name]
        if request.class_name in added:
            for entry in added[request.class_name]:
                entry.requests.append(request.full_name)
            continue
        added[request.class_name] = [
            allocation.devices.config.add(
                source=_FROM_CLASS,
                requests=[request.full_name],
                deviceConfiguration=config.deviceConfiguration,
            )
            for config in classes[request.class_name].spec.config
        ]


def _add_claim_config(
    allocation: devices.AllocationResult, claim: devices.ResourceClaim, picked: Mapping[str, RequestView]
) -> None:
    """Add the claim's own configuration, where it is for a request (or alternative) that was taken."""
    for config in claim.spec.devices.config:
        wanted = set(config.requests)
        times = 1
        if wanted:
            times = sum(_is_for(wanted, picked[asked.name]) for asked in claim.spec.devices.requests)
        for _ in range(times):
            allocation.devices.config.add(
                source=_FROM_CLAIM, requests=config.requests, deviceConfiguration=config.deviceConfiguration
            )


def _is_for(requests: Collection[str], taken: RequestView) -> bool:
    """Return whether they name the request, or the alternative that was taken."""
    return taken.base_name in requests or taken.full_name in requests


def _node_selector(chosen: Iterable[DeviceView], node_name: str, claim: str) -> core.NodeSelector | None:
    """Return where all of the devices can be reached; None: everywhere."""
    selector = core.NodeSelector()
    term = selector.nodeSelectorTerms.add()
    for device in chosen:
        where: devices.Device | devices.ResourceSliceSpec = (
            device.message if device.slice.per_device else device.slice.message.spec
        )
        if where.HasField("nodeName") or device.message.bindsToNode:
            local = core.NodeSelector()
            local.nodeSelectorTerms.add().matchFields.add(
                key="metadata.name", operator="In", values=[node_name]
            )
            return local
        if not where.HasField("nodeSelector"):
            continue
        terms = where.nodeSelector.nodeSelectorTerms
        if len(terms) > 1:
            text = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector for claim {claim}: {text}")
        for one in terms:
            _add_new(one.matchFields, term.matchFields)
            _add_new(one.matchExpressions, term.matchExpressions)
    return selector if term.matchFields or term.matchExpressions else None


def _add_new(requirements: Iterable[core.NodeSelectorRequirement], to: object) -> None:
    """Add those that are not there yet; the order of values does not matter."""
    known = {(r.key, r.operator, frozenset(r.values)) for r in to}  # type: ignore[attr-defined]
    for requirement in requirements:
        key = requirement.key, requirement.operator, frozenset(requirement.values)
        if key not in known:
            known.add(key)
            to.append(requirement)  # type: ignore[attr-defined]
