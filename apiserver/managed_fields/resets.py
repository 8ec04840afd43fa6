"""Which fields an endpoint does not change, so that nobody owns them by it.

Source: kube-apiserver 1.36, GetResetFields and GetResetFieldsFilter of the strategies in pkg/registry.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from apiserver.managed_fields.field_set import FieldSet
from apiserver.managed_fields.merge_engine import Keep
from apiserver.managed_fields.paths import Path, field
from machinery.api.kinds import Kind

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
    "PodGroup": (_SPEC, _METADATA),
}


@cache
def keep(kind: Kind[Any], subresource: str) -> Keep:
    """What of a set counts at this endpoint."""
    if subresource == "status":
        resets = _STATUS_RESETS.get(kind.kind, (_SPEC,))
    else:
        # Of resize nothing is reset, as measured: labels in its body are owned, and not set.
        main = subresource in ("", "finalize")
        resets = (_STATUS,) if main and "status" in kind.subresources else ()
    if not resets:
        return _everything
    reset = FieldSet.of(*resets)
    return lambda found: found.without_trees(reset)


def _everything(found: FieldSet) -> FieldSet:
    return found
