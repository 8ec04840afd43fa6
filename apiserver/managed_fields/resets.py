"""Which fields an endpoint does not change, so that nobody owns them by it.

Source: kube-apiserver 1.36, GetResetFields and GetResetFieldsFilter of the strategies in pkg/registry.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from apiserver.managed_fields.field_set import FieldSet
from apiserver.managed_fields.merge_engine import Keep
from apiserver.managed_fields.paths import Path, field
from machinery.kinds import Kind

_SPEC: Path = (field("spec"),)
_STATUS: Path = (field("status"),)
_METADATA: Path = (field("metadata"),)
# Of status, where it is more than the spec.
_STATUS_RESETS: dict[str, tuple[Path, ...]] = {
    "Pod": (_SPEC, (*_METADATA, field("deletionTimestamp")), (*_METADATA, field("ownerReferences"))),
    "Deployment": (_SPEC, (*_METADATA, field("labels"))),
    "CSINode": (_SPEC, _METADATA),
    "VolumeAttachment": (_SPEC, _METADATA),
    "ResourceClaim": (_SPEC, _METADATA),
    "FlowSchema": (_SPEC, _METADATA),
    "PriorityLevelConfiguration": (_SPEC, _METADATA),
}
_RESIZED = frozenset({field("resources"), field("resizePolicy")})


@cache
def keep(kind: Kind[Any], subresource: str) -> Keep:
    """What of a set counts at this endpoint."""
    if subresource == "resize":
        return _resized
    if subresource == "status":
        resets = _STATUS_RESETS.get(kind.kind, (_SPEC,))
    else:
        resets = (_STATUS,) if "status" in kind.subresources and subresource != "scale" else ()
    if not resets:
        return _everything
    reset = FieldSet.of(*resets)
    return lambda found: found.without_trees(reset)


def _everything(found: FieldSet) -> FieldSet:
    return found


def _resized(found: FieldSet) -> FieldSet:
    """Only resources and resize policies of containers."""
    spec = found.below(field("spec"))
    kept: dict[str, FieldSet] = {}
    for name in (field("containers"), field("initContainers")):
        containers = {}
        for element, container in spec.below(name).children.items():
            children = {each: container.children[each] for each in _RESIZED & container.children.keys()}
            below = FieldSet(container.members & _RESIZED, children)
            if below:
                containers[element] = below
        if containers:
            kept[name] = FieldSet((), containers)
    return FieldSet((), {field("spec"): FieldSet((), kept)}) if kept else FieldSet()
