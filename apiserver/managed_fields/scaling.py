"""managedFields through the scale subresource: the owner of a workload's replicas owns its Scale's.

Source: apimachinery 1.36, util/managedfields/scalehandler.go.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from nominee.apiserver.managed_fields import entries, manager
from nominee.apiserver.managed_fields.entries import BadEntries, Managed
from nominee.apiserver.managed_fields.fields.field_set import FieldSet
from nominee.apiserver.managed_fields.fields.paths import Path, field
from nominee.apiserver.managed_fields.manager import Endpoint, Who
from nominee.apiserver.managed_fields.merge.merge_engine import Owned
from nominee.machinery.api.kinds import Kind

_REPLICAS: Final[Path] = (field("spec"), field("replicas"))
_ONLY: Final = FieldSet.of(_REPLICAS)


@cache
def endpoint() -> Endpoint:
    """Return the endpoint of Scale as a kind of its own."""
    from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling

    kind = Kind("autoscaling", "v1", "Scale", "scale", autoscaling.Scale, autoscaling.Scale)
    return Endpoint(kind, "scale")


def track(parent: Endpoint, live: Any, new: Any, live_scale: Any, new_scale: Any, who: Who) -> None:
    """Set managedFields of a workload whose Scale was written."""
    if not _show(parent, live, live_scale):
        return
    manager.track_update(endpoint(), live_scale, new_scale, who)
    take_back(parent, live, new, new_scale)


def apply(parent: Endpoint, live: Any, live_scale: Any, config: Any, who: Who, *, force: bool) -> Any:
    """Return the Scale that an apply to a workload's Scale makes, with its managedFields.

    Raises: StatusError, as `manager.apply`.
    """
    _show(parent, live, live_scale)
    return manager.apply(endpoint(), live_scale, config, who, force=force)


def _managed(parent: Endpoint, obj: Any) -> Managed:
    try:
        return entries.decode(obj.metadata.managedFields, parent.message)
    except BadEntries:
        return Managed()


def _show(parent: Endpoint, live: Any, scale: Any) -> bool:
    """Copy the owners of the replicas into the Scale; return whether there are any."""
    version = endpoint().kind.api_version
    managed = _managed(parent, live)
    owners = {
        who: Owned(_ONLY, version, owned.applied)
        for who, owned in managed.owners.items()
        if owned.api_version == parent.kind.api_version and _REPLICAS in owned.fields
    }
    scale.metadata.ClearField("managedFields")
    scale.metadata.managedFields.extend(entries.encode(Managed(owners, managed.times)))
    return bool(owners)


def take_back(parent: Endpoint, live: Any, new: Any, scale: Any) -> None:
    """Set managedFields of a workload from those of its Scale."""
    managed, scaled = _managed(parent, live), entries.decode(scale.metadata.managedFields, endpoint().message)
    # Entries of this write have the Scale's version; in the workload all have the workload's.
    version = parent.kind.api_version
    shown = {
        entries.identity(who.name, who.operation, version, who.subresource): owned
        for who, owned in scaled.owners.items()
    }
    times = {
        entries.identity(who.name, who.operation, version, who.subresource): time
        for who, time in scaled.times.items()
    }
    owners = {}
    for who, owned in managed.owners.items():
        if owned.api_version != version:
            continue
        fields = owned.fields
        if _REPLICAS in fields and who not in shown:
            fields = fields - _ONLY
        if fields:
            owners[who] = Owned(fields, owned.api_version, owned.applied)
    for who, owned in shown.items():
        if _REPLICAS not in owned.fields:
            continue
        before = owners.get(who)
        fields = before.fields | _ONLY if before is not None else _ONLY
        owners[who] = Owned(fields, version, owned.applied)
    new.metadata.ClearField("managedFields")
    new.metadata.managedFields.extend(entries.encode(Managed(owners, {**managed.times, **times})))
