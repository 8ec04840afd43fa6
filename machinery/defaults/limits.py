"""Defaults of LimitRanges, ResourceQuotas, EndpointSlices and CSIDrivers (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.machinery.api.pb import core, discovery, storage
from nominee.machinery.defaults import fields, quantities
from nominee.machinery.features.gates import Gates


def limit_range(obj: core.LimitRange, gates: Gates) -> None:
    """Fill in a LimitRange: the default limit is the maximum, the default request that limit."""
    for limit in obj.spec.limits:
        for amounts in (
            limit.max, limit.min, limit.default, limit.defaultRequest, limit.maxLimitRequestRatio
        ):  # fmt: skip
            quantities.resource_list(amounts)
        if limit.type != "Container":
            continue
        # The limit is at most the greatest, the request the limit, or else the least.
        for source, target in (
            (limit.max, limit.default),
            (limit.default, limit.defaultRequest),
            (limit.min, limit.defaultRequest),
        ):
            for name in source:
                if name not in target:
                    target[name].CopyFrom(source[name])


def resource_quota(obj: core.ResourceQuota, gates: Gates) -> None:
    for amounts in (obj.spec.hard, obj.status.hard, obj.status.used):
        quantities.resource_list(amounts)


def endpoint_slice(obj: discovery.EndpointSlice, gates: Gates) -> None:
    for port in obj.ports:
        fields.set_absent(port, name="", protocol="TCP")


def csi_driver(obj: storage.CSIDriver, gates: Gates) -> None:
    """Fill in a CSIDriver."""
    spec = obj.spec
    fields.set_absent(spec, attachRequired=True, fsGroupPolicy="ReadWriteOnceWithFSType")
    fields.set_absent(spec, podInfoOnMount=False, storageCapacity=False)
    if not spec.volumeLifecycleModes:
        spec.volumeLifecycleModes.append("Persistent")
    fields.set_absent(spec, requiresRepublish=False, seLinuxMount=False)
