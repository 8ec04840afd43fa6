"""Devices, classes and claims for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nominee.machinery.api.pb import core, devices
from nominee.machinery.wire import codec

DRIVER = "gpu.example.com"


def device(name: str, **fields: Any) -> dict[str, Any]:
    """Return a device; `attributes` and `capacity` as plain values: `{"model": "a100", "memory": 3}`."""
    attributes = {key: _attribute(value) for key, value in fields.pop("attributes", {}).items()}
    capacity = {
        key: value if isinstance(value, dict) else {"value": value}
        for key, value in fields.pop("capacity", {}).items()
    }
    return {"name": name, "attributes": attributes, "capacity": capacity, **fields}


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def resource_slice(
    name: str,
    *found: dict[str, Any],
    node: str = "",
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> devices.ResourceSlice:
    """Return a slice of one pool (named after the slice), on all nodes unless it has a node or a selector."""
    where: dict[str, Any] = {"nodeName": node} if node else {}
    if not node and not {"nodeSelector", "perDeviceNodeSelection", "sharedCounters"} & spec.keys():
        where = {"allNodes": True}
    body = {
        "driver": driver,
        "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": count},
        "devices": list(found),
        **where,
        **spec,
    }
    return codec.from_json(devices.ResourceSlice, {"metadata": {"name": name}, "spec": body})


def device_class(name: str = "gpu", expression: str = "", **spec: Any) -> devices.DeviceClass:
    selectors = [{"cel": {"expression": expression}}] if expression else []
    return codec.from_json(
        devices.DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}
    )


def request(name: str = "r", of: str = "gpu", *, where: str = "", **fields: Any) -> dict[str, Any]:
    """Return a request for devices of a class; `where` is a CEL expression."""
    selectors = [{"cel": {"expression": where}}] if where else []
    return {"name": name, "exactly": {"deviceClassName": of, "selectors": selectors, **fields}}


def first_of(name: str, *alternatives: dict[str, Any]) -> dict[str, Any]:
    """Return a request for the first of several alternatives, each made by `request`."""
    flat = [{"name": a["name"], **a["exactly"]} for a in alternatives]
    return {"name": name, "firstAvailable": flat}


def claim(
    name: str = "claim",
    *requests: dict[str, Any],
    constraints: Sequence[Mapping[str, Any]] = (),
    config: Sequence[Mapping[str, Any]] = (),
    status: Mapping[str, Any] | None = None,
    uid: str = "",
    **metadata: Any,
) -> devices.ResourceClaim:
    """Return a claim in `default`."""
    spec = {
        "requests": list(requests or [request()]),
        "constraints": list(constraints),
        "config": list(config),
    }
    meta = {"name": name, "namespace": "default", **({"uid": uid} if uid else {}), **metadata}
    return codec.from_json(
        devices.ResourceClaim, {"metadata": meta, "spec": {"devices": spec}, "status": dict(status or {})}
    )


def template(name: str = "one-gpu", *requests: dict[str, Any]) -> devices.ResourceClaimTemplate:
    spec = {"devices": {"requests": list(requests or [request()])}}
    return codec.from_json(
        devices.ResourceClaimTemplate,
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": spec}},
    )


def allocation(*results: tuple[str, str], node: str = "", request: str = "r") -> dict[str, Any]:
    """Return a claim's allocation of (pool, device) pairs."""
    found: dict[str, Any] = {
        "devices": {
            "results": [
                {"request": request, "driver": DRIVER, "pool": pool, "device": name} for pool, name in results
            ]
        }
    }
    if node:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        found["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return found


def using(pod: core.Pod, *, claim: str = "", template: str = "", name: str = "device") -> core.Pod:
    """Add a reference to a claim or a template to the pod, and return the pod."""
    reference = pod.spec.resourceClaims.add(name=name)
    if claim:
        reference.resourceClaimName = claim
    if template:
        reference.resourceClaimTemplateName = template
    return pod
